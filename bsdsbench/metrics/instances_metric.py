"""Objects that touch: is each nucleus, cell or lesion found, and only once?

Definition. Every score comes from the table of overlaps of the objects. AJI pairs each annotated
object with the predicted object of largest IoU; AJI+ pairs objects one to one so that the sum of
IoU is largest. Both divide the intersections of the pairs by their unions plus the pixels of
unpaired objects. Precision, recall and F count the objects that overlap by a rule (option
`overlap`). Sorted AP is the area under TP / (TP + FP + FN) as the required IoU grows from 0 to 1.

Conventions. A map has a number for each object, and 0 elsewhere. Void pixels are removed from both
maps, and with them objects that lie on void only. AJI and sorted AP are means over the images with
objects; precision, recall and F count the objects of all images together. `pooled` and `mean_f1`
are the opposite.

Source. Kumar et al., TMI 2017 (AJI); Graham et al., HoVer-Net, MedIA 2019 (AJI+); Chen et al.,
SortedAP, 2023 (arXiv 2309.04887); cellpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.labels import number_evidence
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics.base import IGNORE, IMAGES, Column, FilesRead, ScoreTree, ValuesMetric
from bsdsbench.metrics.contour.region_pixels import region_pixels
from bsdsbench.metrics.label_maps import (
    COMPONENTS,
    SIDES,
    VOID,
    LabelOptions,
    as_label_maps,
    is_stack,
    label_maps,
    name_file_in_errors,
    number_components,
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
    """Options that say what an object is, and when it counts as found."""

    components: int | None = COMPONENTS
    overlap: str = option(
        "iou",
        'Which objects are found (ground truth) or right (predictions): "any" if they overlap an '
        'object of the other map, "iou" if their IoU with it is above `iou`, "one-to-one" if they '
        "can also be assigned to it one to one.",
        one_of("any", "iou", "one-to-one"),
        caption={"any": "found with any overlap"},
    )
    iou: float = option(
        0.5,
        'A found object has an IoU above this number; unused if `overlap` is "any".',
        accepting(lambda v: is_number(v) and 0 <= v < 1, "a number from 0, below 1"),
        caption=lambda o: "" if o.overlap == "any" else f"{_FOUND[o.overlap]} IoU above {o.iou:g}",
    )
    ignore: tuple[float, ...] = IGNORE
    sizes: tuple[int, ...] = option(
        (),
        "Also count found, missed and false objects by size: the numbers of pixels at which size "
        "classes begin, such as 10,100.",
        [
            each(lambda v: is_int(v) and v >= 1, 0, 20, "whole numbers of pixels from 1 on"),
            accepting(lambda v: list(v) == sorted({*v}), "increasing numbers"),
        ],
        listed_values,
        caption=lambda o: f"by size: {', '.join(o.size_names)} px" if o.sizes else "",
    )

    @property
    def size_names(self) -> tuple[str, ...]:
        """The names of the classes of sizes, in pixels."""
        ends = [f"{size:g}" for size in self.sizes]
        between = [f"{low} to below {high}" for low, high in pairwise(ends)]
        return (f"below {ends[0]}", *between, f"from {ends[-1]}") if ends else ()


def instance_counts(pred: ArrayLike, gt: ArrayLike, opt: InstancesOptions | None = None) -> Counts:
    """Count the objects of one image, two (H, W) maps of integers.

    Raises DataError if an array is no label map, ShapeError if the shapes differ. The counts:

    inside, joined : i8 (3,), sums of intersections and of unions for each index of JACCARD
    objects : i8 (2, 2), annotated objects found and in all, predicted objects right and in all
    sorted_ap : f8 (), NaN if there are no objects
    by_size : i8 (B, 2, 2), `objects` of each class of sizes; only if the option `sizes` is set

    Examples
    --------
    >>> counts = instance_counts([[1, 1, 2, 2]], [[1, 1, 1, 0]])
    >>> counts.inside.tolist(), counts.joined.tolist(), counts.objects.tolist()
    ([2, 2, 2], [5, 5, 4], [[1, 1], [1, 2]])
    """
    opt = opt or InstancesOptions()
    maps = as_label_maps(pred, gt)
    void = np.isin(maps[1], [VOID, *opt.ignore]) if opt.ignore else void_of(maps[1])
    maps = [np.maximum(m if void is None else np.where(void, 0, m), 0) for m in maps]
    if opt.components:
        maps = [
            number_components(m, opt.components, what) for m, what in zip(maps, SIDES, strict=True)
        ]
    overlaps = _overlaps(*maps)
    one_to_one = _assignment()(overlaps.iou, maximize=True)
    sums = _jaccard_sums(overlaps, one_to_one)
    detected, right = _found_objects(overlaps, opt)
    n_objects = len(overlaps.gt_pixels) + len(overlaps.pred_pixels)
    by_size: dict[str, ArrayLike] = {}
    if opt.sizes:
        sides = ((detected, overlaps.gt_pixels), (right, overlaps.pred_pixels))
        rows = [_matched_by_size(*side, opt.sizes) for side in sides]
        by_size = {"by_size": np.stack(rows, axis=1)}
    return Counts(
        inside=sums.inside,
        joined=sums.joined,
        objects=[[detected.sum(), detected.size], [right.sum(), right.size]],
        sorted_ap=_sorted_ap(overlaps.iou[one_to_one], n_objects) if n_objects else np.nan,
        **by_size,
    )


class _Overlaps(NamedTuple):
    """The overlaps of G annotated with P predicted objects, in pixels: (G, P) but for the sizes."""

    shared: I8
    union: I8
    iou: F8
    gt_pixels: I8  # (G,)
    pred_pixels: I8  # (P,)


def _overlaps(pred: Map, gt: Map) -> _Overlaps:
    """Tabulate the overlaps of the objects of two maps of numbers, in which 0 is no object."""
    cells = value_pairs(*(m.ravel().astype(np.int64) for m in (pred, gt)))[0]
    # Objects are numbered from 1 without gaps; 0, appended, is always there.
    rows, cols = (np.unique(np.append(m, 0), return_inverse=True)[1] for m in cells[1::-1])
    table = np.zeros((rows.max() + 1, cols.max() + 1), np.int64)
    table[rows[:-1], cols[:-1]] = cells[2]
    shared, gt_pixels, pred_pixels = table[1:, 1:], table.sum(axis=1)[1:], table.sum(axis=0)[1:]
    union = gt_pixels[:, None] + pred_pixels - shared
    return _Overlaps(shared, union, shared / union, gt_pixels, pred_pixels)


class _JaccardSums(NamedTuple):
    """The sums of intersections and of unions of pairs, for each index in JACCARD."""

    inside: list[np.int64]
    joined: list[np.int64]


def _jaccard_sums(overlaps: _Overlaps, one_to_one: tuple[I8, I8]) -> _JaccardSums:
    """Sum the intersections and unions of the pairs of each index in JACCARD.

    AJI takes for each annotated object the predicted one of largest IoU, AJI+ the `one_to_one`
    pairs. The AJI of cellpose pairs as many objects with an IoU of at least 0.5 as possible.
    """
    shared, union, iou, gt_pixels, pred_pixels = overlaps
    largest = (np.arange(len(gt_pixels)), iou.argmax(axis=1)) if iou.size else one_to_one
    inside, joined = [], []
    for candidates in (largest, one_to_one):
        pairs = np.zeros(iou.shape, bool)
        pairs[candidates] = shared[candidates] > 0
        gt_only, pred_only = ~pairs.any(axis=1), ~pairs.any(axis=0)
        inside.append(shared[pairs].sum())
        joined.append(union[pairs].sum() + gt_pixels[gt_only].sum() + pred_pixels[pred_only].sum())
    benefit = (iou >= 0.5) + iou / (2 * max(min(iou.shape), 1))  # IoU only decides between equals
    inside.append(shared[_assignment()(benefit, maximize=True)].sum())
    joined.append(gt_pixels.sum() + pred_pixels.sum() - shared.sum())
    return _JaccardSums(inside, joined)


class _FoundObjects(NamedTuple):
    """Which annotated objects (G,) are detected and which predicted objects (P,) are right."""

    detected: Bool
    right: Bool


def _found_objects(overlaps: _Overlaps, opt: InstancesOptions) -> _FoundObjects:
    """Apply the option `overlap` to the table of overlaps."""
    good = overlaps.shared > 0 if opt.overlap == "any" else overlaps.iou > opt.iou
    if opt.overlap != "one-to-one":
        return _FoundObjects(np.any(good, axis=1), np.any(good, axis=0))
    from scipy.sparse import csgraph, csr_array

    partner = csgraph.maximum_bipartite_matching(csr_array(good))  # of each column, -1: none
    return _FoundObjects(np.isin(np.arange(len(good)), partner), partner >= 0)


def _sorted_ap(pair_ious: F8, n_objects: int) -> F8:
    """Compute the area under TP / (TP + FP + FN), which falls at the IoU of each pair."""
    steps = np.sort(pair_ious[pair_ious > 0])
    tp = np.arange(steps.size, 0, -1)
    quality = tp / (n_objects - tp)
    quality = np.concatenate([quality[:1], quality, [0.0]])
    return (np.diff([0.0, *steps, 1.0]) * (quality[1:] + quality[:-1])).sum() / 2


def _matched_by_size(is_matched: Bool, pixels: I8, sizes: Sequence[int]) -> I8:
    """Count the matched and all objects of each class of sizes, (B, 2)."""
    size_class = np.searchsorted(sizes, pixels, side="right")
    matched, total = (
        np.bincount(classes, minlength=len(sizes) + 1)
        for classes in (size_class[is_matched], size_class)
    )
    return np.stack([matched, total], axis=-1)


@cache
def _assignment() -> Callable[..., tuple[I8, I8]]:
    """Return `scipy.optimize.linear_sum_assignment`, imported from its own module if possible.

    Importing all of scipy.optimize takes as long as compiling the kernels of this metric.
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
    """The scores of counts of objects (..., 2, 2); every field is (...,)."""

    f1: F8
    precision: F8
    recall: F8
    found: F8
    missed: F8
    false: F8


def _detection(objects: Map) -> _Detection:
    """Compute F, precision and recall of objects, and how many are found, missed and false."""
    matched, total = objects[..., 0], objects[..., 1]
    shares = defined_ratio(matched, total)
    missed, false = np.moveaxis(total - matched, -1, 0).astype(np.float64)
    n_found = matched[..., 0].astype(np.float64)
    return _Detection(defined_f(shares), shares[..., 1], shares[..., 0], n_found, missed, false)


def _without_ignored(gt: GroundTruth, opt: InstancesOptions) -> GroundTruth:
    """Mark the pixels of ignored numbers as not valid in the annotation."""
    if not opt.ignore or "mask" in gt.parts:
        return gt
    return gt.replace(valid=~np.isin(gt.labels, opt.ignore) & gt.parts.get("valid", True))


def _label_options(opt: InstancesOptions) -> LabelOptions:
    """Convert the options to those of label maps."""
    return LabelOptions(unit="instance", components=opt.components)


COUNTED_OBJECTS = tuple(
    Column(key, key, digits=0, score=False, pooled=True) for key in ("found", "missed", "false")
)


class InstancesMetric(ValuesMetric[InstancesOptions]):
    """Objects of label maps: aggregated Jaccard index, F of found objects, sorted AP.

    AJI and sorted AP are means over the images that have objects. Precision, recall, F and the
    scores in `pooled` come from the objects of all images together.
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
    part_columns, numbers = (*columns[3:6], *COUNTED_OBJECTS), COUNTED_OBJECTS

    def used(self, opt: InstancesOptions) -> tuple[str, ...]:
        return READ if opt.components else ()

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: InstancesOptions
    ) -> Counts:
        gt, labels = _without_ignored(gt, opt), _label_options(opt)
        with name_file_in_errors(pred, gt):
            plain = evolve(opt, components=0, ignore=())
            return instance_counts(*label_maps(pred, gt, labels), plain)

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: InstancesOptions
    ) -> DrawnSteps:
        """Return the pixels of the objects of both maps, paired if their IoU is above 0.5."""
        return region_pixels(pred, _without_ignored(gt, opt), _label_options(opt)).steps()

    def files_read(self, opt: InstancesOptions) -> FilesRead:
        """Return what label maps hold. Void is named for masks only, as `count` itself removes it
        from maps of numbered objects."""
        if not opt.components:
            return FilesRead(Kind.INSTANCES)
        return FilesRead(Kind.MASK, opt.ignore)

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
