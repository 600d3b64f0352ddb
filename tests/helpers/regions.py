"""The measures of one segmentation, read off what `region_counts` counts."""

from types import SimpleNamespace

from bsdsbench.metrics.region.counting import region_counts
from bsdsbench.metrics.region.metric import RegionMetric, _image_curves
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.ratios import f_measure


def humans(gt):
    """Each annotator of an image against the others."""
    return Counts(**RegionMetric().count_image(None, gt, Protocol()))


def against(seg, *gts):
    """Every measure of `seg` against the annotators."""
    counts = region_counts(seg, list(gts))
    found = {name: values[0] for name, values in counts.items() if values.ndim}
    curves = _image_curves({name: values[None] for name, values in counts.items()})
    found = {**{name: curve[0, 0] for name, curve in curves.items()}, **found}
    found["covering"] = found["covered_gt"] / found["total_gt"]
    found["pairs"] = found["pair_precision"], found["pair_recall"]
    found["pair_f"] = float(f_measure(*found["pairs"]))
    found["fop"] = found["fop_precision"], found["fop_recall"]
    return SimpleNamespace(**found)
