"""Objects that touch: is each nucleus, cell or lesion found, and only once?

Definition. All comes from the table of overlaps of the objects. AJI joins each annotated object
with the predicted one of largest IoU, AJI+ makes one-to-one pairs of the largest sum of IoU:
intersections of the pairs over their unions and the pixels of objects in none. Precision, recall
and F are of objects that overlap by a named rule. Sorted AP is the area under TP / (TP + FP + FN)
over the IoU that is asked for.

Conventions. A map has a number for each object, 0 for none. Void is taken out of both maps; an
object that lies wholly on it is in neither. AJI and sorted AP are means over the images with
objects, precision, recall and F of all objects together; `pooled` and `mean_f1` are the other way
round.

Source. Kumar et al., TMI 2017 (AJI); Graham et al., HoVer-Net, MedIA 2019 (AJI+); Chen et al.,
SortedAP, 2023 (arXiv 2309.04887); cellpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.label_evidence import number_evidence
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics.base import IGNORE, IMAGES, Column, FilesRead, ScoreTree, ValuesMetric
from bsdsbench.metrics.contour.region_pixels import region_pixels
from bsdsbench.metrics.label_ids import SIDES, is_stack
from bsdsbench.metrics.label_maps import (
    COMPONENTS,
    VOID,
    LabelOptions,
    as_label_maps,
    faults_named,
    label_maps,
    numbered,
    void_of,
)
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.protocol.fields import (
    accepting,
    each,
    is_int,
    is_number,
    listed_values,
    one_of,
    option,
)
from bsdsbench.protocol.protocol import READ, Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Counts, Evidence, Stack
from bsdsbench.scores.ratios import Weights, defined_f, defined_ratio, weighted_sum

NONE = "no object in any image"
_FOUND = {"iou": "found with", "one-to-one": "pairs with"}
JACCARD = ("aji", "aji_plus", "aji_union")


@frozen
class InstancesOptions:
    """What an object is, and when it is found."""

    components: int | None = COMPONENTS
    overlap: str = option(
        "iou",
        'Objects are found (right) that have an overlap with one of the other map: "any", or an '
        'IoU above `iou` ("iou"); or as many of these as make pairs ("one-to-one").',
        one_of("any", "iou", "one-to-one"),
        caption={"any": "found with any overlap"},
    )
    iou: float = option(
        0.5,
        "The IoU of a found object is above it, unless any overlap is enough.",
        accepting(lambda v: is_number(v) and 0 <= v < 1, "a number from 0, below 1"),
        caption=lambda o: "" if o.overlap == "any" else f"{_FOUND[o.overlap]} IoU above {o.iou:g}",
    )
    ignore: tuple[float, ...] = IGNORE
    sizes: tuple[int, ...] = option(
        (),
        "Count found, missed and false objects by their size too: numbers of pixels from which on "
        "the next class of sizes begins, as 10,100.",
        [
            each(lambda v: is_int(v) and v >= 1, 0, 20, "whole numbers of pixels from 1 on"),
            accepting(lambda v: list(v) == sorted({*v}), "increasing numbers"),
        ],
        listed_values,
        caption=lambda o: f"by size: {', '.join(o.size_names)} px" if o.sizes else "",
    )

    @property
    def size_names(self) -> tuple[str, ...]:
        """The classes of sizes, in pixels."""
        ends = [f"{size:g}" for size in self.sizes]
        between = [f"{low} to below {high}" for low, high in pairwise(ends)]
        return (f"below {ends[0]}", *between, f"from {ends[-1]}") if ends else ()


def instance_counts(pred: ArrayLike, gt: ArrayLike, opt: InstancesOptions | None = None) -> Counts:
    """The counts of one image, (H, W) integers. Raises DataError, ShapeError.

    inside, joined : i8 (3,), the intersections and unions that the indices of JACCARD add up
    objects : i8 (2, 2), annotated objects found and all, predicted ones right and all
    sorted_ap : f8 (), NaN without any object
    by_size : i8 (B, 2, 2), `objects` of each class of sizes; only with `sizes`

    Examples
    --------
    >>> counts = instance_counts([[1, 1, 2, 2]], [[1, 1, 1, 0]])
    >>> counts.inside.tolist(), counts.joined.tolist(), counts.objects.tolist()
    ([2, 2, 2], [5, 5, 4], [[1, 1], [1, 2]])
    """
    linear_sum_assignment = _assignment()
    opt = opt or InstancesOptions()
    maps = as_label_maps(pred, gt)
    void = np.isin(maps[1], [VOID, *opt.ignore]) if opt.ignore else void_of(maps[1])
    maps = [np.maximum(m if void is None else np.where(void, 0, m), 0) for m in maps]
    if opt.components:
        maps = [numbered(m, opt.components, what) for m, what in zip(maps, SIDES, strict=True)]
    cells = value_pairs(*(m.ravel().astype(np.int64) for m in maps))[0]
    # numbers of the objects from 1, 0 for none
    numbers = [np.unique(np.append(row, 0), return_inverse=True)[1] for row in cells[1::-1]]
    table = np.zeros([row.max() + 1 for row in numbers], np.int64)
    table[numbers[0][:-1], numbers[1][:-1]] = cells[2]
    shared, in_gt, in_pred = table[1:, 1:], table.sum(axis=1)[1:], table.sum(axis=0)[1:]
    union = in_gt[:, None] + in_pred - shared
    iou = shared / union
    one_to_one = linear_sum_assignment(iou, maximize=True)
    best = (np.arange(len(in_gt)), iou.argmax(axis=1)) if iou.size else one_to_one
    inside, joined = [], []
    for way in (best, one_to_one):
        pairs = np.zeros(iou.shape, bool)
        pairs[way] = shared[way] > 0
        alone = in_gt[~pairs.any(axis=1)].sum() + in_pred[~pairs.any(axis=0)].sum()
        inside.append(shared[pairs].sum())
        joined.append(union[pairs].sum() + alone)
    often = (iou >= 0.5) + iou / (2 * max(min(iou.shape), 1))  # pairs from 0.5 on come first
    inside.append(shared[linear_sum_assignment(often, maximize=True)].sum())
    joined.append(in_gt.sum() + in_pred.sum() - shared.sum())
    good = shared > 0 if opt.overlap == "any" else iou > opt.iou
    detected, right = good.any(axis=1), good.any(axis=0)
    if opt.overlap == "one-to-one":
        from scipy.sparse import csgraph, csr_array

        paired = csgraph.maximum_bipartite_matching(csr_array(good))  # rows of columns, or -1
        detected, right = np.isin(np.arange(len(in_gt)), paired), paired >= 0
    n, steps = len(in_gt) + len(in_pred), np.sort(iou[one_to_one])
    steps = steps[steps > 0]  # TP / (TP + FP + FN) over the IoU that is asked for falls at these
    tp = np.arange(steps.size, 0, -1)
    ap = tp / (n - tp)
    ap = np.concatenate([ap[:1], ap, [0.0]])
    area = (np.diff([0.0, *steps, 1.0]) * (ap[1:] + ap[:-1])).sum() / 2
    objects = [[detected.sum(), len(in_gt)], [right.sum(), len(in_pred)]]
    by_size: dict[str, ArrayLike] = {}
    if opt.sizes:
        n_sizes, rows = len(opt.sizes) + 1, []
        for is_matched, pixels in ((detected, in_gt), (right, in_pred)):
            size = np.searchsorted(opt.sizes, pixels, side="right")
            matched = np.bincount(size[is_matched], minlength=n_sizes)
            rows.append(np.stack([matched, np.bincount(size, minlength=n_sizes)], axis=-1))
        by_size = {"by_size": np.stack(rows, axis=1)}
    ap_value = area if n else np.nan
    return Counts(inside=inside, joined=joined, objects=objects, sorted_ap=ap_value, **by_size)


@cache
def _assignment() -> Callable[..., tuple[I8, I8]]:
    """Return `scipy.optimize.linear_sum_assignment`, read from its own file if it has one.

    To import all of scipy.optimize takes as long as to compile the kernels of this metric.
    """
    import scipy

    spec = PathFinder.find_spec("scipy.optimize._lsap", [f"{scipy.__path__[0]}/optimize"])
    if spec is None or spec.loader is None:
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.linear_sum_assignment


class _Detection(NamedTuple):
    """What columns show of counts of objects (..., 2, 2)."""

    f1: F8
    precision: F8
    recall: F8
    found: F8
    missed: F8
    false: F8


def _detection(objects: Map) -> _Detection:
    """Return the scores of objects, and how many are found, missed and false."""
    matched, total = objects[..., 0], objects[..., 1]
    shares = defined_ratio(matched, total)
    missed, false = np.moveaxis(total - matched, -1, 0).astype(np.float64)
    n_found = matched[..., 0].astype(np.float64)
    return _Detection(defined_f(shares), shares[..., 1], shares[..., 0], n_found, missed, false)


def _without_ignored(gt: GroundTruth, opt: InstancesOptions) -> GroundTruth:
    """Return the annotation with the numbers to ignore as pixels that are not valid."""
    if not opt.ignore or "mask" in gt.parts:
        return gt
    return gt.replace(valid=~np.isin(gt.labels, opt.ignore) & gt.parts.get("valid", True))


def _label_options(opt: InstancesOptions) -> LabelOptions:
    """Return the options as metrics of label maps have them."""
    return LabelOptions(unit="instance", components=opt.components)


COUNTED_OBJECTS = tuple(
    Column(key, key, digits=0, score=False, pooled=True) for key in ("found", "missed", "false")
)


def objects_line(score: Mapping[str, Any]) -> str:
    """Return how many objects are found, missed and false, in words."""
    return ", ".join(f"{score[c.key]:,.0f} {c.key}" for c in COUNTED_OBJECTS)


class InstancesMetric(ValuesMetric[InstancesOptions]):
    """Objects of label maps: aggregated Jaccard index, F of found objects, sorted AP.

    Scores: means over the images that have objects; `pooled`, and precision, recall and F, of the
    objects of all images together.
    """

    name, title, reads, options = "instances", "Objects", "classes", InstancesOptions
    default_protocol, void, void_option = "masks", True, "ignore"
    columns = (
        Column("aji", "AJI", quantity="aji", undefined=NONE),
        Column("aji_plus", "AJI+", quantity="aji", undefined=NONE),
        Column("aji_union", "AJI of cellpose", shown="own", quantity="aji"),
        Column("f1", "F1", quantity="f1", undefined=NONE, pooled=True),
        Column("precision", "precision", undefined="nothing is predicted", pooled=True),
        Column("recall", "recall", undefined="nothing is annotated", pooled=True),
        Column("sorted_ap", "sorted AP", undefined=NONE),
        *COUNTED_OBJECTS,
        *(
            Column(f"pooled.{key}", f"{key} pooled", shown="never", quantity="aji", pooled=True)
            for key in JACCARD
        ),
        Column("mean_f1", "mean F1", shown="never", quantity="f1"),
        IMAGES,
    )
    image_columns = (*columns[:2], *columns[3:10])
    part_columns = (*columns[3:6], *COUNTED_OBJECTS)

    def used(self, opt: InstancesOptions) -> tuple[str, ...]:
        return READ if opt.components else ()

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: InstancesOptions
    ) -> Counts:
        gt, labels = _without_ignored(gt, opt), _label_options(opt)
        with faults_named(pred, gt):
            plain = evolve(opt, components=0, ignore=())
            return instance_counts(*label_maps(pred, gt, labels), plain)

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: InstancesOptions
    ) -> DrawnSteps:
        """Return the objects of both maps, paired where their IoU is above 0.5."""
        return region_pixels(pred, _without_ignored(gt, opt), _label_options(opt)).steps()

    def files_read(self, opt: InstancesOptions) -> FilesRead:
        """Return what label maps hold; the void of numbered objects is left out in `count`."""
        if not opt.components:
            return FilesRead(Kind.INSTANCES)
        return FilesRead(Kind.MASK, opt.ignore, numbered=True)

    def label_evidence(self, labels: Map, opt: InstancesOptions, truth: bool) -> Evidence:
        if truth and opt.ignore:
            labels = np.where(np.isin(labels, opt.ignore), 0, labels)
        return number_evidence(labels, ()) if opt.components is None else NO_EVIDENCE

    def fits(self, pred: Prediction, gt: GroundTruth, opt: InstancesOptions) -> bool:
        return pred.shape == gt.shape or is_stack(pred, gt)

    def values(self, counts: Stack, opt: InstancesOptions) -> dict[str, F8]:
        aji = dict(zip(JACCARD, defined_ratio(counts["inside"], counts["joined"]).T, strict=True))
        detection = _detection(counts["objects"])
        return {
            **aji,
            **{f"pooled.{key}": values for key, values in aji.items()},
            "sorted_ap": counts["sorted_ap"],
            "mean_f1": detection.f1,
            **detection._asdict(),
        }

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: InstancesOptions
    ) -> ScoreTree:
        scores = dict(super().scores(stack, weights, protocol, opt))
        if opt.sizes:
            detection = _detection(weighted_sum(weights, stack["by_size"]))._asdict()
            scores["by_size"] = {
                name: {key: values[:, k] for key, values in detection.items()}
                for k, name in enumerate(opt.size_names)
            }
        return scores

    def parts(self, protocol: Protocol, opt: InstancesOptions) -> dict[str, tuple[str, ...]]:
        return {name: ("by_size", name) for name in opt.size_names}

    def numbers_line(self, score: Mapping[str, Any]) -> str:
        return objects_line(score)
