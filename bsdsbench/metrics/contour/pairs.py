"""Convert masks, label maps and instance maps to pairs of masks; the conventions for empty masks.

Masks are (H, W) bool, 0 and 1, or 0 and 255 in uint8. Label maps are (H, W) integers with the
labels 0 .. classes - 1. Pixels whose annotated label is one of `ignored` are cleared in both maps.
Instances are paired by number, or matched by overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import binary_map, is_binary, same_shape
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.metrics.label_maps import (
    SIDES,
    VOID,
    LabelOptions,
    MapPair,
    as_label_map,
    as_label_maps,
    void_of,
)
from bsdsbench.scores.ratios import ratio

Labels = NDArray[np.int32]
_SMALL = 2**14  # masks of up to this many pixels are measured whole: finding a box takes as long
MATCH_IOU = 0.5  # regions with a larger IoU have at most one such partner


class LabelPair(NamedTuple):
    """Two label maps (H, W) with the labels 0 .. n - 1, and -1 for none; int32, or int8 for masks.

    A pair of masks has n = 1, and may be cropped to the bounding box of both masks plus one pixel;
    `shape` is the shape of the image.
    """

    pred: Labels
    gt: Labels
    n: int
    shape: tuple[int, ...]

    def diagonal(self, spacing: tuple[float, float] = (1.0, 1.0)) -> float:
        """Return the length of the image's diagonal for pixels of this (row, column) spacing."""
        return math.hypot(self.shape[0] * spacing[0], self.shape[1] * spacing[1])


NAN, INF = math.nan, math.inf
# name -> ((overlap, distance) if both masks are empty, (overlap, distance) if one is, description).
# NaN is not counted; a distance of None is the diagonal of the image.
CONVENTIONS: dict[str, tuple[Any, Any, str]] = {
    "skip": ((NAN, NAN), (0, NAN), "both empty: not counted; one: overlap 0, no distance"),
    "inf": ((NAN, NAN), (0, INF), "both empty: not counted; one: overlap 0, distance inf"),
    "perfect": ((1, 0), (0, NAN), "both empty: perfect; one: overlap 0, no distance"),
    "diagonal": (
        (1, 0),
        (0, None),
        "both empty: perfect; one: overlap 0, distance the image diagonal",
    ),
    "zero": ((0, NAN), (0, NAN), "both or one empty: overlap 0, no distance"),
}


def as_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    classes: int | None = None,
    ignored: Sequence[float] = (),
    first: int = 0,
) -> LabelPair:
    """Check two masks (`classes` is None), or two label maps, and number their labels from 0.

    The labels of maps are `first` .. `first` + classes - 1; 0 means no label if `first` is larger.
    Raises DataError if an array is no such map, ShapeError if the shapes differ.
    """
    if classes is None:
        masks = as_masks(pred, gt, ignored)
        box: tuple[slice, ...] = ()
        if masks[0].size > _SMALL:  # crop to the bounding box of both masks plus one pixel
            either = masks[0] | masks[1]
            covered = [np.flatnonzero(either.any(axis=axis)) for axis in (1, 0)]
            box = tuple(slice(max(i[0] - 1, 0), i[-1] + 2) if i.size else slice(1) for i in covered)
        pred_labels, gt_labels = (np.subtract(m[box].view(np.int8), 1, order="C") for m in masks)
        return LabelPair(pred_labels, gt_labels, 1, masks[0].shape)
    maps, end = as_label_maps(pred, gt), first + classes
    nothing: dict[float, str] = {0: ""} if first else {}
    nothing |= dict.fromkeys(ignored, " (ignored)")
    renumbered = []
    for labels, what in zip(maps, SIDES, strict=True):
        none = np.isin(labels, list(nothing))
        none |= False if labels.dtype != np.int64 else labels == VOID
        if what == SIDES[0] and labels.max() < 0:  # an empty prediction
            none = labels == -1
        wrong = ~none & ((labels < first) | (labels >= end))
        if wrong.any():
            also = "".join(f", or {label}{words}" for label, words in nothing.items())
            raise DataError(
                f"{what}: label {labels[wrong][0]}, expected {first} .. {end - 1}{also}"
            )
        from_zero = np.ascontiguousarray(labels, np.int32) - np.int32(first)
        from_zero[none] = -1
        renumbered.append(from_zero)
    void = void_of(maps[1], ignored)
    if void is not None:
        renumbered[0][void] = -1
    return LabelPair(renumbered[0], renumbered[1], classes, maps[0].shape)


def as_masks(pred: ArrayLike, gt: ArrayLike, ignored: Sequence[float] = ()) -> MapPair:
    """Check two masks and clear void pixels in both.

    Raises DataError if an array is no mask, ShapeError if the shapes differ.
    """
    masks, void = [], void_of(gt, ignored)
    gt = gt if void is None else np.where(void, 0, gt)
    for given, what in zip((pred, gt), SIDES, strict=True):
        array = np.asarray(given)
        if array.dtype.kind in "iu" and not is_binary(array):
            labels = np.unique(as_label_map(array, what)).tolist()
            if len(labels) > 2:
                raise DataError(
                    f"{what}: {len(labels)} labels, from {labels[0]} to {labels[-1]}, expected a "
                    "mask of 0 and 1: name the classes",
                    fix=(
                        Setting("contour.classes", "one,two,three", "in the order of their labels"),
                        Setting("contour.first", 1, "where 0 is none"),
                    ),
                )
        masks.append(binary_map(array, what))
    same_shape(masks[0].shape, masks[1].shape)
    if not masks[1].size:  # the kernels need one
        raise DataError(f"{SIDES[1]}: shape {masks[1].shape}, expected at least one pixel")
    return MapPair(masks[0] if void is None else masks[0] & ~void, masks[1])


class ClassedPair(NamedTuple):
    """Two label maps, and the class of each label, (n,), or None if label k is class k."""

    pair: LabelPair
    class_of: I8 | None


def pair_of(pred: ArrayLike, gt: ArrayLike, opt: LabelOptions) -> ClassedPair:
    """Convert two maps to the masks to compare: those of classes, or of paired instances.

    Raises DataError if an array is not such a map as the options say, ShapeError if the shapes
    differ.
    """
    if opt.unit == "class":
        pair = as_pair(pred, gt, len(opt.classes) or None, opt.ignored, opt.first)
        return ClassedPair(pair, None)
    instances = instances_of(pred, gt, opt)
    if opt.unit == "id":
        both = np.union1d(instances.pred.ids, instances.gt.ids)
        pred_new, gt_new = (np.searchsorted(both, side.ids) for side in instances[:2])
        class_of = _class_of_value(both, opt)
    else:
        pred_new, gt_new, class_of = match(instances)[:3]
    # An instance that lies on void only is no mask.
    kept = np.zeros(class_of.size, bool)
    for side, new in ((instances.pred, pred_new), (instances.gt, gt_new)):
        kept[new[side.cells[side.cells >= 0]]] = True
    place, class_of = np.cumsum(kept) - 1, class_of[kept]
    # Renumber the regions, cell by cell; -1 stays -1.
    sides = ((instances.pred, place[pred_new]), (instances.gt, place[gt_new]))
    labels = [np.append(new, -1).astype(np.int32)[old.cells][instances.cell] for old, new in sides]
    pair = LabelPair(labels[0], labels[1], class_of.size, instances.cell.shape)
    return ClassedPair(pair, class_of)


class Regions(NamedTuple):
    """The regions of one map, numbered 0, 1, .. in ascending order of their values in the file.

    ids, class_of : i8 (regions,), value and class of each region
    cells : i8 (cells,), the region of each cell, or -1
    void : bool (cells,), cells that are ignored
    """

    ids: I8
    class_of: I8
    cells: I8
    void: Bool


class Instances(NamedTuple):
    """The regions of both maps. A cell is a pair of values (pred, gt) that occurs.

    pixels : i8 (cells,), pixels of each cell
    cell : int32 (H, W), the cell of each pixel
    on_crowd : i8 (predicted regions,), pixels on any crowd, which stay in the union of a pair
    excused : f8 (predicted regions,), share of pixels on void or on the crowd of the region's class

    Ignored pixels are void, except for the last numbers of the ignored label: for C classes, the
    number divisor - 1 - k is the crowd of class k (from 0) if k < C, and a crowd that excuses no
    prediction if C <= k < 2 C.
    """

    pred: Regions
    gt: Regions
    pixels: I8
    cell: Labels
    on_crowd: I8
    excused: F8


def instances_of(pred: ArrayLike, gt: ArrayLike, opt: LabelOptions) -> Instances:
    """Find the regions of two instance maps, and how they overlap.

    Raises DataError if an array is not such a map as the options say, ShapeError if the shapes
    differ.
    """
    maps = as_label_maps(pred, gt)
    pairs, cell = value_pairs(*(np.ascontiguousarray(m, np.int64).ravel() for m in maps))
    pixels = pairs[2]
    pairs = _numbered(pairs[:2], opt) if opt.things else pairs[:2]
    pred_regions, gt_regions = (
        _regions(values, opt, side) for values, side in zip(pairs, SIDES, strict=True)
    )
    # The number of an ignored label, counted from the last one, is the class of a crowd.
    crowd_class = opt.divisor - 1 - pairs[1] % max(opt.divisor, 1)
    has_number = gt_regions.void & (pairs[1] != VOID)
    is_crowd = has_number & (crowd_class >= 0) & (crowd_class < 2 * len(opt.class_names))
    is_own_crowd = is_crowd & (crowd_class == _class_of_value(pairs[0], opt))
    is_excused = (gt_regions.void & ~is_crowd) | is_own_crowd
    n_pixels, on_crowd, n_excused = (
        _sums(np.where(cells, pred_regions.cells, -1), pixels, pred_regions.ids.size)
        for cells in (True, is_crowd, is_excused)
    )
    pred_regions.cells[gt_regions.void] = -1
    cell = cell.reshape(maps[0].shape)
    excused = ratio(n_excused, n_pixels)
    return Instances(pred_regions, gt_regions, pixels, cell, on_crowd, excused)


def _numbered(values: I8, opt: LabelOptions) -> I8:
    """Give labels without an instance number a value: the first instance of the class.

    For a class in `opt.things` the value is that of the crowd of the class.
    """
    is_label = (values >= 0) & (values < opt.divisor)
    countable = [opt.classes.index(name) for name in opt.things or ()]
    is_crowd = is_label & np.isin(values - opt.first, countable)
    crowd = (max(opt.ignored, default=-1) + 1) * opt.divisor - 1 - (values - opt.first)
    return np.where(is_crowd, crowd, np.where(is_label, values * opt.divisor, values))


def _class_of_value(values: I8, opt: LabelOptions) -> I8:
    """Return the class, from 0, of values in the files."""
    return values // opt.divisor - opt.first if opt.divisor else values * 0


def _sums(number: I8, pixels: I8, n: int) -> I8:
    """Sum the pixels of cells over n regions; `number` is the region of each cell, or -1."""
    inside = number >= 0
    return np.bincount(number[inside], pixels[inside], n).astype(np.int64)


def _regions(values: I8, opt: LabelOptions, what: str) -> Regions:
    """Number the regions of one map; `values` are the values of its cells.

    Raises DataError if a value belongs to no class. `what` names the map in the message.
    """
    last = opt.first + max(len(opt.classes), 1) - 1
    if opt.divisor:
        classes = values // opt.divisor
        void = (values == VOID) | np.isin(classes, opt.ignored)
        nothing = void | ((classes == 0) & (opt.first > 0))
        alone = (values > 0) & (values < opt.divisor) & ((opt.first > 0) | (values <= last))
        if opt.things is None and alone.any():
            raise DataError(
                f"{what}: value {values[alone][0]}, expected class x {opt.divisor} + number (a "
                "class alone, or a group, as in Cityscapes: things='...' names the classes that "
                "have instances; instances of a class 0: things=[])"
            )
        if what == SIDES[0] and values.max() < 0:  # an empty prediction
            nothing = values == -1
        wrong = ~nothing & ((classes < opt.first) | (classes > last))
        if wrong.any():
            value = int(values[wrong][0])
            fault = f"value {value} is class {value // opt.divisor}"
            raise DataError(f"{what}: {fault}, expected {opt.first} .. {last}")
    else:
        if values[values != VOID].min(initial=0) < -1:
            raise DataError(
                f"{what}: value {values.min()}, expected 0 or -1 for nothing and the numbers of "
                "instances (16-bit numbers read as signed?)"
            )
        ignored = opt.ignored if what == SIDES[1] else ()
        void = (values == VOID) | np.isin(values, ignored)
        nothing = void | (values <= 0)
    ids, number = np.unique(np.where(nothing, -1, values), return_inverse=True)
    negative = int((ids < 0).sum())
    ids = ids[negative:]
    return Regions(ids, _class_of_value(ids, opt), number - negative, void)


class Matching(NamedTuple):
    """A common numbering of the regions of both maps.

    Pairs come first, then unmatched regions of pred, then unmatched regions of gt.

    pred_new, gt_new : i8, the new number of each region of pred and of gt
    class_of : i8, the class of each new number
    iou : f8, the IoU of each pair
    excused : f8, the excused share of each unmatched region of pred
    """

    pred_new: I8
    gt_new: I8
    class_of: I8
    iou: F8
    excused: F8


def match(instances: Instances, by_number: bool = False) -> Matching:
    """Pair regions of the same class whose IoU is above 0.5, or regions of the same number.

    Void pixels are not counted; pixels on a crowd stay in the union. Source: panopticapi,
    evaluation.py.
    """
    pred, gt, pixels = instances[:3]
    in_pred = _sums(pred.cells, pixels, pred.ids.size) + instances.on_crowd
    in_gt = _sums(gt.cells, pixels, gt.ids.size)
    both = (pred.cells >= 0) & (gt.cells >= 0)
    i, j, shared = gt.cells[both], pred.cells[both], pixels[both]
    if by_number:
        has_same_number = gt.ids[i] == pred.ids[j]
        shared_of_gt = np.bincount(i, shared * has_same_number, gt.ids.size).astype(np.int64)
        _, i, j = np.intersect1d(gt.ids, pred.ids, return_indices=True)
        shared = shared_of_gt[i]
    iou = ratio(shared, in_gt[i] + in_pred[j] - shared)
    good = by_number | ((iou > MATCH_IOU) & (pred.class_of[j] == gt.class_of[i]))
    good = np.flatnonzero(good)[np.argsort(i[good])]
    i, j, iou = i[good], j[good], iou[good]
    pred_new, gt_new = np.full(pred.ids.size, -1), np.full(gt.ids.size, -1)
    pred_new[j] = gt_new[i] = np.arange(i.size)
    alone_pred, alone_gt = np.flatnonzero(pred_new < 0), np.flatnonzero(gt_new < 0)
    pred_new[alone_pred] = i.size + np.arange(alone_pred.size)
    gt_new[alone_gt] = i.size + alone_pred.size + np.arange(alone_gt.size)
    order = gt.class_of[i], pred.class_of[alone_pred], gt.class_of[alone_gt]
    return Matching(pred_new, gt_new, np.concatenate(order), iou, instances.excused[alone_pred])
