"""The measures of one segmentation, read off what `region_counts` counts."""

from types import SimpleNamespace

from bsdsbench.metrics.region.scoring import ERRORS, pair_curve

from bsdsbench.metrics.region.counting import region_counts


def against(seg, *gts):
    """Every measure of `seg` against the annotators."""
    counts = region_counts(seg, list(gts))
    found = {name: values[0] for name, values in counts.arrays().items() if values.ndim}
    found |= {name: error(counts)[0] for name, error in ERRORS.items() if name not in found}
    found["covering"] = found["covered_gt"] / found["total_gt"]
    found["pair_f"] = pair_curve(counts).f[0]
    found["pairs"] = found["pair_precision"], found["pair_recall"]
    found["fop"] = found["fop_precision"], found["fop_recall"]
    return SimpleNamespace(**found)
