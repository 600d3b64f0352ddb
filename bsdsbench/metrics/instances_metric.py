"""Objects that touch: is each nucleus, cell or lesion found, and only once?

Definition. All scores are computed from the pixel overlaps of annotated and predicted objects:
aggregated Jaccard indices (AJI, AJI+) by `_jaccard_sums`, sorted AP by `_sorted_ap`. Precision,
recall and F count objects that match by a rule (option `overlap`).

Conventions. Each object in a map has its own number; 0 is background. Void pixels are removed from
both maps, which also removes objects that consist only of void pixels. AJI and sorted AP are means
over the images with objects; precision, recall and F count the objects of all images together.

Source. Kumar et al., TMI 2017 (AJI); Graham et al., HoVer-Net, MedIA 2019 (AJI+); Chen et al.,
SortedAP, 2023 (arXiv 2309.04887); cellpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, Ints
from bsdsbench.images import Map
from bsdsbench.metrics.base import IMAGES, Column, ScoreTree, ValuesMetric
from bsdsbench.metrics.contour.pairs import find_instances, match_regions
from bsdsbench.metrics.label_maps import (
    COMPONENTS,
    MapContents,
    as_label_maps,
    number_masks,
    void_of,
)
from bsdsbench.metrics.label_metric import LabelMetric
from bsdsbench.protocol.fields import (
    IGNORE,
    accepting,
    each,
    is_int,
    is_number,
    listed_values,
    one_of,
    option,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import defined_f, defined_ratio

NONE = "no object in any image"
_CELLPOSE_IOU = 0.5  # cellpose maximises the number of pairs with at least this IoU
_FOUND_PHRASE = {"iou": "found with", "one-to-one": "pairs with"}
JACCARD = ("aji", "aji_plus", "aji_union")
IndexPairs = tuple[Ints, Ints]  # (pairs,) each: indices of annotated objects, of predicted ones


@frozen
class InstancesOptions(MapContents):
    """The definition of an object, and of when it counts as found."""

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
        caption=lambda o: (
            "" if o.overlap == "any" else f"{_FOUND_PHRASE[o.overlap]} IoU above {o.iou:g}"
        ),
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
        """The names of the size classes, such as "below 10" and "from 10" (pixels)."""
        ends = [f"{size:g}" for size in self.sizes]
        between = [f"{low} to below {high}" for low, high in pairwise(ends)]
        return (f"below {ends[0]}", *between, f"from {ends[-1]}") if ends else ()


def instance_counts(pred: ArrayLike, gt: ArrayLike, opt: InstancesOptions | None = None) -> Counts:
    """Count the matched and unmatched objects of one image.

    Parameters
    ----------
    pred, gt : array_like
        Label maps (H, W) of integers, in which each pixel holds the number of its object; 0 or -1
        means no object. If `opt.components` is 4 or 8, the maps are masks, whose connected
        components are the objects.
    opt : InstancesOptions or None
        Defines what an object is, and when it counts as found; None means the defaults.

    Returns
    -------
    Counts
        With these arrays:

        - `inside`, `joined`, int64 (3,): numerators and denominators in pixels of three aggregated
          Jaccard indices, summed intersections / summed unions of paired objects, with unpaired
          ones in the denominator. AJI pairs each annotated object with the one of largest IoU,
          AJI+ one to one; cellpose's AJI divides by the pixels in any object.
        - `objects`, int64 (2, 2): [[annotated objects that were found, all annotated objects],
          [predicted objects that are correct, all predicted objects]]
        - `sorted_ap`, float64 (): the sorted AP, or NaN if neither map has an object
        - `by_size`, int64 (B, 2, 2): `objects` of each of B size classes, only if `opt.sizes` is
          set

    Raises
    ------
    DataError
        If an array is not a label map or has a value below -1, or the shapes differ.

    Examples
    --------
    The first of two predicted objects overlaps the only annotated object with an IoU of 2/3:

    >>> counts = instance_counts([[1, 1, 2, 2]], [[1, 1, 1, 0]])
    >>> counts.objects.tolist()  # 1 of 1 annotated objects found, 1 of 2 predicted ones correct
    [[1, 1], [1, 2]]
    >>> counts.inside.tolist(), counts.joined.tolist()  # 2 + 3 pixels; cellpose: all 4 pixels
    ([2, 2, 2], [5, 5, 4])
    """
    opt = opt or InstancesOptions()
    pred_map, gt_map = as_label_maps(pred, gt)
    if opt.components:
        void = void_of(gt_map, opt.ignored)
        valid = None if void is None else ~void
        pred_map, gt_map = number_masks(pred_map, gt_map, opt.components, valid)
        opt = evolve(opt, ignore=())  # now numbers, of which none is to be ignored
    instances = find_instances(pred_map, gt_map, opt)
    # Areas of the objects without void pixels, so that objects on these alone have the area 0
    pixels = instances.overlaps.pixels
    gt_pixels, pred_pixels = instances.gt.count_pixels(pixels), instances.pred.count_pixels(pixels)
    matched = match_regions(instances, opt.overlap, opt.iou)  # indices of found and correct objects
    gt_rows = _count_by_size(matched.gt, gt_pixels, opt.sizes)
    pred_rows = _count_by_size(matched.pred, pred_pixels, opt.sizes)
    by_size = np.stack([gt_rows, pred_rows], axis=1)  # (B, 2, 2); B = 1 if `sizes` is empty
    # The pixels that each of G annotated objects shares with each of P predicted ones, (G, P)
    overlapping = match_regions(instances, rule="any")  # all pairs with a common pixel
    shared = np.zeros((gt_pixels.size, pred_pixels.size), np.int64)
    shared[overlapping.gt, overlapping.pred] = overlapping.shared
    shared, pred_pixels = shared[:, pred_pixels > 0], pred_pixels[pred_pixels > 0]
    iou = shared / (gt_pixels[:, None] + pred_pixels - shared)
    one_to_one = _assignment()(iou, maximize=True)
    inside, joined = _jaccard_sums(shared, iou, gt_pixels, pred_pixels, one_to_one)
    return Counts(
        inside=inside,
        joined=joined,
        objects=by_size.sum(axis=0),
        sorted_ap=_sorted_ap(iou[one_to_one], gt_pixels.size + pred_pixels.size),
        **({"by_size": by_size} if opt.sizes else {}),
    )


def _jaccard_sums(
    shared: Ints, iou: Floats, gt_pixels: Ints, pred_pixels: Ints, one_to_one: IndexPairs
) -> Ints:
    """Return the numerators and the denominators of three Jaccard indices, int64 (2, 3), in pixels.

    A numerator is the sum of the intersections of paired objects. The indices are

    - AJI: each annotated object is paired with the predicted object of largest IoU, which others
      may share. The denominator is the sum of the unions of pairs, and the areas of unpaired
      objects.
    - AJI+: the same with the pairs `one_to_one`.
    - cellpose's AJI: the pairs are one to one, as many as possible with an IoU of at least 0.5.
      Further pairs with a smaller IoU count too. The denominator is the number of pixels that are
      in any object of either map.

    For example, [[2, 2, 2], [5, 5, 4]] if the annotated map is [1, 1, 1, 0] and the predicted one
    [1, 1, 2, 2]. The objects 1 share 2 of 3 pixels, and the predicted object 2 is unpaired, of 2
    pixels. Together the objects cover 4 pixels.

    shared, iou (G, P): the number of common pixels, and the IoU, of each of G annotated objects
        with each of P predicted objects.
    gt_pixels (G,), pred_pixels (P,): the number of pixels of each object.
    one_to_one: the one-to-one pairs with the largest sum of IoUs, (indices of annotated objects,
        indices of predicted objects).
    """
    sums = []  # (numerator, denominator) of each index
    largest_iou = one_to_one  # no pairs, if a map has no object
    if iou.size:
        largest_iou = np.arange(len(iou)), iou.argmax(axis=1)
    for gt_index, pred_index in (largest_iou, one_to_one):
        has_overlap = shared[gt_index, pred_index] > 0  # the other objects are unpaired
        gt_index, pred_index = gt_index[has_overlap], pred_index[has_overlap]
        intersections = shared[gt_index, pred_index].sum()
        unions = gt_pixels[gt_index].sum() + pred_pixels[pred_index].sum() - intersections
        unpaired = np.delete(gt_pixels, gt_index).sum() + np.delete(pred_pixels, pred_index).sum()
        sums.append((intersections, unions + unpaired))
    # A pair with an IoU of at least 0.5 benefits by 1. The IoU terms add up to at most 1/2, so they
    # only break ties between assignments with equal numbers of such pairs
    most_pairs = max(min(iou.shape), 1)
    benefit = (iou >= _CELLPOSE_IOU) + iou / (2 * most_pairs)
    cellpose_pairs = _assignment()(benefit, maximize=True)  # min(G, P) pairs
    in_any_object = gt_pixels.sum() + pred_pixels.sum() - shared.sum()
    sums.append((shared[cellpose_pairs].sum(), in_any_object))
    return np.array(sums).T  # two rows: numerators and denominators


def _sorted_ap(pair_ious: Floats, n_objects: int) -> float:
    """Compute sorted AP: the area under TP / (TP + FP + FN) as the required IoU grows from 0 to 1.

    pair_ious: IoU of each one-to-one pair. A pair is a true positive (TP) up to its own IoU.
    n_objects: number of objects in both maps together. If it is 0, the result is NaN.

    The curve is linear between these IoUs, constant below the smallest, and ends at 0 for IoU 1.
    """
    if not n_objects:
        return np.nan
    ious = np.sort(pair_ious[pair_ious > 0])
    if not ious.size:
        return 0.0
    tp = np.arange(ious.size, 0, -1)  # at each IoU
    quality = tp / (n_objects - tp)  # a TP is two objects, so TP + FP + FN = n_objects - TP
    heights = np.concatenate([quality[:1], quality, [0.0]])  # at 0, at each IoU, and at 1
    widths = np.diff([0.0, *ious, 1.0])
    return (widths * (heights[1:] + heights[:-1])).sum() / 2  # the trapezoidal rule


def _count_by_size(matched: Ints, pixels: Ints, sizes: Sequence[int]) -> Ints:
    """Count the matched objects and all objects of one map in each of B size classes, int64 (B, 2).

    matched: indices of the matched objects; an index may occur several times.
    pixels (objects,): area of each object in pixels; objects without a pixel are not counted.
    sizes (B - 1,): ascending lower bounds, in pixels, of the second to last size classes.
    """
    size_class = np.searchsorted(sizes, pixels, side="right")
    n_classes = len(sizes) + 1
    n_matched = np.bincount(size_class[np.unique(matched)], minlength=n_classes)
    n_all = np.bincount(size_class[pixels > 0], minlength=n_classes)
    return np.column_stack([n_matched, n_all])


@cache
def _assignment() -> Callable[..., IndexPairs]:
    """Return scipy's `linear_sum_assignment`, if possible without importing scipy.optimize.

    It pairs rows with columns one to one for the largest (`maximize`) sum of the entries.
    """
    import scipy

    # Importing all of scipy.optimize would take as long as compiling this metric's kernels. So load
    # only the extension module that defines the function, if it still has this private name
    spec = PathFinder.find_spec("scipy.optimize._lsap", [f"{scipy.__path__[0]}/optimize"])
    if spec is None or spec.loader is None:
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.linear_sum_assignment


def _object_scores(objects: Map) -> dict[str, Floats]:
    """Compute F, precision, recall and the numbers of found, missed and false objects, (...) each.

    objects (..., 2, 2): [[found, all annotated], [correct, all predicted]] in the last two axes.

    Recall is NaN if nothing is annotated, precision if nothing is predicted, F if both are NaN.
    """
    n_matched, n_all = objects[..., 0], objects[..., 1]  # (..., 2): annotated, predicted
    shares = defined_ratio(n_matched, n_all)
    n_unmatched = (n_all - n_matched).astype(np.float64)
    return {
        "f1": defined_f(shares),
        "precision": shares[..., 1],
        "recall": shares[..., 0],
        "found": n_matched[..., 0].astype(np.float64),
        "missed": n_unmatched[..., 0],
        "false": n_unmatched[..., 1],
    }


COUNTED_OBJECTS = tuple(
    Column(key, key, digits=0, score=False) for key in ("found", "missed", "false")
)


class InstancesMetric(LabelMetric[InstancesOptions], ValuesMetric[InstancesOptions]):
    """Objects of label maps: aggregated Jaccard index, F of found objects, sorted AP."""

    name, title, options = "instances", "Objects", InstancesOptions
    counts_of = staticmethod(instance_counts)
    columns = (
        Column("aji", "AJI", quantity="aji", undefined=NONE),
        Column("aji_plus", "AJI+", quantity="aji", undefined=NONE),
        Column("aji_union", "AJI of cellpose", shown="own", quantity="aji"),
        Column("f1", "F1", quantity="f1", undefined=NONE),
        Column("precision", "precision", undefined="nothing is predicted"),
        Column("recall", "recall", undefined="nothing is annotated"),
        Column("sorted_ap", "sorted AP", undefined=NONE),
        *COUNTED_OBJECTS,
        *(Column(f"pooled.{k}", f"{k} pooled", shown="never", quantity="aji") for k in JACCARD),
        Column("mean_f1", "mean F1", shown="never", quantity="f1"),
        IMAGES,
    )
    image_columns = (*columns[:2], *columns[3:10])
    part_columns, numbers = (*columns[3:6], *COUNTED_OBJECTS), COUNTED_OBJECTS
    summed = ("inside", "joined", "objects", "by_size")

    def values(self, counts: Stack, opt: InstancesOptions) -> dict[str, Floats]:
        """Compute the values of N images whose means over images are scores, (N,) each.

        These are the Jaccard indices AJI, AJI+ and cellpose's ("aji", "aji_plus", "aji_union"),
        "sorted_ap", and "mean_f1", the F of the matched objects. ("f1" is the F of all images.)
        """
        indices = defined_ratio(counts["inside"], counts["joined"])  # (N, 3), as in JACCARD
        scores = dict(zip(JACCARD, indices.T, strict=True))
        scores["sorted_ap"] = counts["sorted_ap"]
        return {**scores, "mean_f1": _object_scores(counts["objects"])["f1"]}

    def pooled(self, sums: Stack, opt: InstancesOptions) -> ScoreTree:
        """Compute the scores of the objects of all images in each of S data sets, (S,).

        Returns F, precision and recall, the numbers of found, missed and false objects, and the
        Jaccard indices from summed pixels ("pooled"). If `opt.sizes` is set, "by_size" maps the
        name of each size class to the scores of its objects.
        """
        # `objects` (S, 2, 2): [[found, all annotated], [correct, all predicted]]. "by_size" has
        # them for each of B size classes, (S, B, 2, 2)
        scores: dict[str, Any] = _object_scores(sums["objects"])  # score -> (S,)
        # Intersections / unions of paired objects in pixels, (S, 3): AJI, AJI+ and cellpose's AJI
        indices = defined_ratio(sums["inside"], sums["joined"])
        scores["pooled"] = dict(zip(JACCARD, indices.T, strict=True))
        if opt.sizes:
            by_size = _object_scores(sums["by_size"])  # score -> (S, size classes)
            scores["by_size"] = {}
            for k, name in enumerate(opt.size_names):
                scores["by_size"][name] = {key: values[:, k] for key, values in by_size.items()}
        return scores

    def parts(self, protocol: Protocol, opt: InstancesOptions) -> dict[str, tuple[str, ...]]:
        """Map each size class to the path of its scores."""
        return {name: ("by_size", name) for name in opt.size_names}
