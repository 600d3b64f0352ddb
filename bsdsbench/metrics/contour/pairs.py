"""Masks, label maps and instance maps become maps with common labels; how these differ is drawn.

Masks are (H, W) bool, 0 and 1, or 0 and 255 in uint8. Label maps are (H, W) integers with the
labels 0 .. classes - 1. Pixels whose annotated label is one of `ignored` are cleared in both maps.
Instances are paired by number, or matched by overlap. A pixel is right if both maps have the same
object there: the mask, the same class, or two paired objects. Void pixels, which are not to be
judged, are neither right nor wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    binary_map,
    is_binary,
    one_map,
    same_shape,
)
from bsdsbench.kernels.distances import distances
from bsdsbench.metrics.label_maps import (
    SIDES,
    VOID,
    MapContents,
    MapPair,
    Overlaps,
    as_label_map,
    as_label_maps,
    find_overlaps,
    name_file_in_errors,
    read_maps,
    void_of,
)
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    OTHER_PIXEL,
    DrawnSteps,
    LargestError,
    changes_of,
)
from bsdsbench.scores.ratios import ratio

Labels = NDArray[np.int32]
_SMALL = 2**14  # masks of up to this many pixels are not cropped: finding their box takes as long
MATCH_IOU = 0.5  # a region has an IoU above this with at most one region of the other map


class LabelPair(NamedTuple):
    """Two label maps with the labels 0 .. n - 1; -1 is no label.

    Two masks are a pair with n = 1, in int8 (0 inside, -1 outside). They may be cropped to the box
    around both masks, with a margin of one pixel.
    """

    pred: Labels  # (H, W)
    gt: Labels
    n: int
    shape: tuple[int, ...]  # rows and columns of the image

    def diagonal(self, spacing: tuple[float, float] = (1.0, 1.0)) -> float:
        """Return the length of the image's diagonal in the unit of `spacing` (row, column)."""
        return math.hypot(self.shape[0] * spacing[0], self.shape[1] * spacing[1])


NAN, INF = math.nan, math.inf


class _Convention(NamedTuple):
    """The values of measures if one of two masks is empty, or both are; means leave out NaN.

    The first value of a pair is for measures of overlap, the second for measures of distance.
    """

    both_empty: tuple[float, float]
    one_empty: tuple[float, float | None]  # None stands for the diagonal of the image
    text: str  # a description for captions


CONVENTIONS = {
    "skip": _Convention(
        (NAN, NAN), (0, NAN), "both empty: not counted; one: overlap 0, no distance"
    ),
    "inf": _Convention(
        (NAN, NAN), (0, INF), "both empty: not counted; one: overlap 0, distance inf"
    ),
    "perfect": _Convention((1, 0), (0, NAN), "both empty: perfect; one: overlap 0, no distance"),
    "diagonal": _Convention(
        (1, 0), (0, None), "both empty: perfect; one: overlap 0, distance the image diagonal"
    ),
    "zero": _Convention((0, NAN), (0, NAN), "both or one empty: overlap 0, no distance"),
}


def as_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    classes: int | None = None,
    ignored: Sequence[float] = (),
    first: int = 0,
) -> LabelPair:
    """Check two masks or two label maps (H, W), and renumber their labels from 0.

    classes: the number of classes, whose labels are first .. first + classes - 1. If it is None,
        the maps are masks.
    ignored: labels that belong to no class. Pixels of `gt` with such a label are void, and become
        -1 in both maps.
    first: the label of the first class. If it is above 0, label 0 means no class.

    A prediction that is -1 everywhere is empty. Raises DataError if an array is not such a map or
    has a label of no class, and ShapeError if the shapes differ.
    """
    if classes is None:
        return _pair_of_masks(as_masks(pred, gt, ignored))
    pred_map, gt_map = as_label_maps(pred, gt)
    # Values that are no class -> remark for the message
    other_values: dict[float, str] = {0: ""} if first else {}
    other_values |= dict.fromkeys(ignored, " (ignored)")
    renumbered = []
    for labels, what in ((pred_map, SIDES[0]), (gt_map, SIDES[1])):
        is_none = np.isin(labels, list(other_values))
        if labels.dtype == np.int64:
            is_none |= labels == VOID
        if what == SIDES[0] and labels.max() < 0:  # -1 everywhere: an empty prediction
            is_none = labels == -1
        is_wrong = ~is_none & ((labels < first) | (labels >= first + classes))
        if is_wrong.any():
            also = "".join(f", or {value}{remark}" for value, remark in other_values.items())
            raise DataError(
                f"{what}: label {labels[is_wrong][0]}, expected {first} .. "
                f"{first + classes - 1}{also}"
            )
        from_zero = np.ascontiguousarray(labels, np.int32) - np.int32(first)
        from_zero[is_none] = -1
        renumbered.append(from_zero)
    void = void_of(gt_map, ignored)
    if void is not None:
        renumbered[0][void] = -1
    return LabelPair(renumbered[0], renumbered[1], classes, pred_map.shape)


def _pair_of_masks(masks: MapPair) -> LabelPair:
    """Convert two bool masks (H, W) to int8 label maps: 0 inside the mask, -1 outside it.

    Masks of more than _SMALL pixels are cropped to the box around both, with a margin of one pixel.
    """
    box: tuple[slice, ...] = ()
    if masks.pred.size > _SMALL:
        either = masks.pred | masks.gt
        rows, cols = np.flatnonzero(either.any(axis=1)), np.flatnonzero(either.any(axis=0))
        box = (slice(1), slice(1))  # a single pixel if both masks are empty
        if rows.size:
            box = tuple(slice(max(i[0] - 1, 0), i[-1] + 2) for i in (rows, cols))
    pred, gt = (np.subtract(mask[box].view(np.int8), 1, order="C") for mask in masks)
    return LabelPair(pred, gt, 1, masks.pred.shape)


def as_masks(pred: ArrayLike, gt: ArrayLike, ignored: Sequence[float] = ()) -> MapPair:
    """Check two masks (H, W), and return them as bool, with False at void pixels in both.

    Pixels are void if their value in `gt` is one of `ignored`. Raises DataError if an array has no
    pixels or is not a mask of two values, and ShapeError if the shapes differ.
    """
    void = void_of(gt, ignored)
    gt_without_void = gt if void is None else np.where(void, 0, gt)
    masks = [_as_mask(pred, SIDES[0]), _as_mask(gt_without_void, SIDES[1])]
    same_shape(masks[0].shape, masks[1].shape)
    if not masks[1].size:  # the kernels need a pixel
        raise DataError(f"{SIDES[1]}: shape {masks[1].shape}, expected at least one pixel")
    return MapPair(masks[0] if void is None else masks[0] & ~void, masks[1])


def _as_mask(values: ArrayLike, what: str) -> Bool:
    """Convert a mask (H, W) to bool.

    Raises DataError if the array is not a mask, for example a label map. `what` names the array in
    the message.
    """
    array = np.asarray(values)
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
    return binary_map(one_map(array, what), what)


class ClassedPair(NamedTuple):
    """Two label maps, and what each of their n labels stands for."""

    pair: LabelPair
    class_of: I8  # (n,), the class of each label
    # (n,), the number of each label in the files, ascending; None if instances are not paired by it
    ids: I8 | None


def pair_masks(pred: ArrayLike, gt: ArrayLike, opt: MapContents) -> ClassedPair:
    """Renumber two maps (H, W) so that the masks to compare have the same label in both.

    The meaning of a label of the new maps depends on `opt.unit`:

    - "class": a class
    - "id": two instances with the same number
    - "instance": two instances that `match_regions` pairs, because they overlap enough

    An instance without a partner gets a label that does not occur in the other map. Instances that
    lie only on void pixels are left out.

    Raises DataError if an array does not hold what the options say, and ShapeError if the shapes
    differ.
    """
    if opt.unit == "class":
        pair = as_pair(pred, gt, len(opt.classes) or None, opt.ignored, opt.first)
        return ClassedPair(pair, np.arange(pair.n), None)
    instances = find_instances(pred, gt, opt)
    ids = None
    if opt.unit == "id":
        ids = np.union1d(instances.pred.ids, instances.gt.ids)
        pred_new = np.searchsorted(ids, instances.pred.ids)
        gt_new = np.searchsorted(ids, instances.gt.ids)
        class_of = _class_of_value(ids, opt)
    else:
        matching = match_regions(instances)
        pred_new, gt_new, class_of = matching.pred_new, matching.gt_new, matching.class_of
    sides = (instances.pred, pred_new), (instances.gt, gt_new)
    has_pixels = np.zeros(class_of.size, bool)  # False for instances that lie on void alone
    for regions, new in sides:
        is_region = regions.of_overlap >= 0
        has_pixels[new[regions.of_overlap[is_region]]] = True
    label_of_new = np.cumsum(has_pixels) - 1
    maps = []
    for regions, new in sides:
        # The index -1 (no region) takes the last entry, -1 (no label)
        label_of_region = np.append(label_of_new[new], -1).astype(np.int32)
        label_of_overlap = label_of_region[regions.of_overlap]
        maps.append(label_of_overlap[instances.overlaps.of_pixel])
    pair = LabelPair(maps[0], maps[1], int(has_pixels.sum()), maps[0].shape)
    return ClassedPair(pair, class_of[has_pixels], None if ids is None else ids[has_pixels])


class Regions(NamedTuple):
    """The regions of one map, numbered 0, 1, .. in ascending order of their values in the file."""

    ids: I8  # (regions,), the value of each region
    class_of: I8  # (regions,), the class of each region
    of_overlap: I8  # (overlaps,), the region to which each of `Instances.overlaps` belongs, or -1
    void: Bool  # (overlaps,), True for overlaps with an ignored value in this map

    def count_pixels(self, pixels: I8) -> I8:
        """Sum `pixels` (overlaps,) over the overlaps of each region, int64 (regions,)."""
        is_region = self.of_overlap >= 0
        sums = np.bincount(self.of_overlap[is_region], pixels[is_region], self.ids.size)
        return sums.astype(np.int64)


class Instances(NamedTuple):
    """The regions of two instance maps, and the overlaps of their values.

    Pixels with an ignored label are void, unless their number says that they are a crowd: a group
    of objects that are not told apart. If there are C classes, the number divisor - 1 - k means

    - if k < C: a crowd of class k, numbered from 0. It excuses predictions of this class: one of
      which more than half lies on the crowd or on void pixels is not a false positive.
    - if C <= k < 2 C: a crowd that excuses no prediction
    """

    pred: Regions
    gt: Regions
    overlaps: Overlaps
    # For each predicted region: the number of its pixels on any crowd, which stay in the union of a
    # pair, and the share of its pixels that are on void or on a crowd of its own class
    on_crowd: I8
    excused: F8


def find_instances(pred: ArrayLike, gt: ArrayLike, opt: MapContents) -> Instances:
    """Find the regions of two instance maps (H, W), and how they overlap.

    Raises DataError if a value is not the number of an instance, and ShapeError if the shapes
    differ.
    """
    overlaps = find_overlaps(*as_label_maps(pred, gt))
    pred_values, gt_values = overlaps.pred, overlaps.gt
    if opt.things:
        pred_values = _number_bare_labels(pred_values, opt)
        gt_values = _number_bare_labels(gt_values, opt)
    pred_regions = _number_regions(pred_values, opt, SIDES[0])
    gt_regions = _number_regions(gt_values, opt, SIDES[1])
    # The number after an ignored label, counted back from divisor - 1, is the class of a crowd
    crowd_class = opt.divisor - 1 - gt_values % max(opt.divisor, 1)
    has_number = gt_regions.void & (gt_values != VOID)
    is_crowd = has_number & (crowd_class >= 0) & (crowd_class < 2 * len(opt.class_names))
    is_own_crowd = is_crowd & (crowd_class == _class_of_value(pred_values, opt))
    is_excused = (gt_regions.void & ~is_crowd) | is_own_crowd
    pixels = overlaps.pixels
    on_crowd = pred_regions.count_pixels(pixels * is_crowd)
    excused = ratio(
        pred_regions.count_pixels(pixels * is_excused), pred_regions.count_pixels(pixels)
    )
    pred_regions.of_overlap[gt_regions.void] = -1  # from here on, void pixels are in no region
    return Instances(pred_regions, gt_regions, overlaps, on_crowd, excused)


def _number_bare_labels(values: I8, opt: MapContents) -> I8:
    """Replace labels of classes (values below the divisor) with class x divisor + number.

    The label of a class in `opt.things` becomes the value of a crowd of this class (see
    `Instances`). The label of any other class becomes a single region with the number 0. Negative
    values, and values not below the divisor, stay as they are.
    """
    is_label = (values >= 0) & (values < opt.divisor)
    countable = [opt.classes.index(name) for name in opt.things or ()]
    is_crowd = is_label & np.isin(values - opt.first, countable)
    crowd = (max(opt.ignored, default=-1) + 1) * opt.divisor - 1 - (values - opt.first)
    return np.where(is_crowd, crowd, np.where(is_label, values * opt.divisor, values))


def _class_of_value(values: I8, opt: MapContents) -> I8:
    """Return the class, numbered from 0, of each value of an instance map.

    If there is no divisor (`opt.divisor` is 0), all values have the class 0.
    """
    return values // opt.divisor - opt.first if opt.divisor else values * 0


def _number_regions(values: I8, opt: MapContents, what: str) -> Regions:
    """Number the regions of one map from the values (overlaps,) that its overlaps have.

    what: the entry of SIDES that says which of the two maps it is.

    If there is a divisor, values of ignored classes are void, and `_without_class` says which other
    values are not regions. If there is none, each value above 0 is a region, and ignored values of
    the ground truth are void. VOID is always void.

    Raises DataError if a value cannot be an instance.
    """
    if opt.divisor:
        void = (values == VOID) | np.isin(values // opt.divisor, opt.ignored)
        is_none = _without_class(values, void, opt, what)
    else:
        if values[values != VOID].min(initial=0) < -1:
            raise DataError(
                f"{what}: value {values.min()}, expected 0 or -1 for nothing and the numbers of "
                "instances (16-bit numbers read as signed?)"
            )
        ignored = opt.ignored if what == SIDES[1] else ()
        void = (values == VOID) | np.isin(values, ignored)
        is_none = void | (values <= 0)
    ids, number = np.unique(np.where(is_none, -1, values), return_inverse=True)
    if is_none.any():  # the first id is -1: number it -1, and the regions from 0
        ids, number = ids[1:], number - 1
    return Regions(ids, _class_of_value(ids, opt), number, void)


def _without_class(values: I8, void: Bool, opt: MapContents, what: str) -> Bool:
    """Return which of the values class x divisor + number belong to no region, bool (overlaps,).

    These are values that are `void`, values of class 0 if the first class is above 0, and all
    values of a prediction that is -1 everywhere.

    Raises DataError if a value has a class that does not exist. Also raises DataError if a value is
    a class without a number, unless `opt.things` says what this means. `what`, an entry of SIDES,
    names the map in the message.
    """
    last = opt.first + max(len(opt.classes), 1) - 1
    classes = values // opt.divisor
    is_bare = (values > 0) & (values < opt.divisor) & ((opt.first > 0) | (values <= last))
    if opt.things is None and is_bare.any():
        raise DataError(
            f"{what}: value {values[is_bare][0]}, expected class x {opt.divisor} + number (a "
            "class alone, or a group, as in Cityscapes: things='...' names the classes that "
            "have instances; instances of a class 0: things=[])"
        )
    is_none = void | ((classes == 0) & (opt.first > 0))
    if what == SIDES[0] and values.max() < 0:  # -1 everywhere: an empty prediction
        is_none = values == -1
    is_wrong = ~is_none & ((classes < opt.first) | (classes > last))
    if is_wrong.any():
        value = int(values[is_wrong][0])
        has = f"value {value} is class {value // opt.divisor}"
        raise DataError(f"{what}: {has}, expected {opt.first} .. {last}")
    return is_none


class Matching(NamedTuple):
    """New numbers for the regions of two maps, such that paired regions have the same number.

    The first numbers are those of pairs, in the order of their annotated regions. Unpaired regions
    of pred follow, and then those of gt.
    """

    pred_new: I8  # (regions of pred,), the new number of each region
    gt_new: I8  # (regions of gt,), the same
    class_of: I8  # the class of each new number; a pair has the class of the annotated region
    iou: F8  # (pairs,), the IoU of each pair
    excused: F8  # (unpaired regions of pred,), `Instances.excused` of each


def match_regions(instances: Instances, by_number: bool = False) -> Matching:
    """Pair the regions of two instance maps.

    By default, regions of the same class with an IoU above 0.5 are paired, so that each has at most
    one partner. If `by_number` is True, regions with the same number are paired instead, even if
    they do not overlap.

    Void pixels are not counted in the IoU, except that predicted pixels on a crowd stay in the
    union. Source: panopticapi, evaluation.py.
    """
    pred, gt, pixels = instances.pred, instances.gt, instances.overlaps.pixels
    in_pred = pred.count_pixels(pixels) + instances.on_crowd
    in_gt = gt.count_pixels(pixels)
    in_both = (pred.of_overlap >= 0) & (gt.of_overlap >= 0)
    # Candidates: annotated region i and predicted region j, with their shared pixels
    i, j, shared = gt.of_overlap[in_both], pred.of_overlap[in_both], pixels[in_both]
    if by_number:
        has_same_number = gt.ids[i] == pred.ids[j]
        shared_of_gt = np.bincount(i, shared * has_same_number, gt.ids.size).astype(np.int64)
        _, i, j = np.intersect1d(gt.ids, pred.ids, return_indices=True)  # also without overlap
        shared = shared_of_gt[i]
    iou = ratio(shared, in_gt[i] + in_pred[j] - shared)
    if not by_number:
        is_pair = (iou > MATCH_IOU) & (pred.class_of[j] == gt.class_of[i])
        i, j, iou = i[is_pair], j[is_pair], iou[is_pair]
    order = np.argsort(i)
    i, j, iou = i[order], j[order], iou[order]
    pred_new, gt_new = np.full(pred.ids.size, -1), np.full(gt.ids.size, -1)
    pred_new[j] = gt_new[i] = np.arange(i.size)
    pred_only, gt_only = np.flatnonzero(pred_new < 0), np.flatnonzero(gt_new < 0)
    pred_new[pred_only] = i.size + np.arange(pred_only.size)
    gt_new[gt_only] = i.size + pred_only.size + np.arange(gt_only.size)
    class_of = np.concatenate([gt.class_of[i], pred.class_of[pred_only], gt.class_of[gt_only]])
    return Matching(pred_new, gt_new, class_of, iou, instances.excused[pred_only])


def draw_masks(pred: Bool, gt: Bool, spacing: tuple[float, float] | None = None) -> DrawnSteps:
    """Classify the pixels of two masks (H, W) as correct, false positive or missed, for an overlay.

    If `spacing` (the distance between neighbouring rows and columns) is given, the two pixels
    between which the Hausdorff distance of the masks is measured are marked.
    """
    pair = LabelPair(pred.astype(np.int32) - 1, gt.astype(np.int32) - 1, 1, pred.shape)
    return _draw_classes(pair, np.zeros(1, np.int64), ("mask",), spacing)


def draw_regions(
    pred: Prediction, gt: GroundTruth, opt: MapContents, spacing: tuple[float, float] | None = None
) -> DrawnSteps:
    """Classify the pixels of an image as correct, false positive or missed, for each class.

    If the maps are two masks, their foreground is the only class.

    opt: the options that say what the maps hold.
    spacing: the distance between neighbouring rows and between neighbouring columns. If it is
        given, the result also marks, for each class, the two pixels between which the largest
        Hausdorff distance of an object is measured.
    """
    with name_file_in_errors(pred, gt):
        pred_map, gt_map, opt = read_maps(pred, gt, opt)
        if opt.unit == "class" and not opt.classes:
            masks = as_masks(pred_map, gt_map, opt.ignored)
            return draw_masks(masks.pred, masks.gt, spacing)
        pair, class_of, _ = pair_masks(pred_map, gt_map, opt)
    return _draw_classes(pair, class_of, opt.class_names, spacing)


def _draw_classes(
    pair: LabelPair, class_of: I8, names: Sequence[str], spacing: tuple[float, float] | None
) -> DrawnSteps:
    """Classify each pixel for each class: correct, false positive, missed, other, or no object.

    These outcomes are defined in `_outcomes`.

    class_of (n,): the class of each label in `pair`, an index of `names`.
    names: the names of the classes.
    spacing: the distance between neighbouring rows and between neighbouring columns, or None if no
        distances are to be marked.

    Returns steps whose `parts` are the classes. If there are several classes, "all classes" is the
    first part. The pixels are counted so that the F of a part is its Dice.
    """
    parts: dict[str, int | None] = {"all classes": None} if len(names) > 1 else {}
    parts |= {name: k for k, name in enumerate(names)}
    outcomes = np.stack([_outcomes(pair, class_of, k).ravel() for k in parts.values()], axis=1)
    n_right, n_false, n_missed, n_other = (  # (parts,) each
        (outcomes == code).sum(axis=0)
        for code in (MATCHED_PIXEL, FALSE_PIXEL, MISSED_PIXEL, OTHER_PIXEL)
    )
    # "Other" pixels are in different objects of the two maps, so they are missed and false
    n_gt, n_pred = n_right + n_missed + n_other, n_right + n_false + n_other
    errors = {} if spacing is None else _largest_errors(pair, class_of, spacing)
    return DrawnSteps(
        np.arange(float(len(parts))),
        np.stack([n_right, n_gt, n_right, n_pred], axis=-1),
        *changes_of(outcomes, pair.shape),
        parts=tuple(parts),
        measure="Dice",
        marks=tuple(errors.get(number) for number in parts.values()),
    )


def _outcomes(pair: LabelPair, class_of: I8, number: int | None) -> Map:
    """Classify each pixel by the objects of one class that are there, or of all classes.

    number: the class, or None for the objects of all classes.

    Returns uint8 (H, W). A pixel is MATCHED_PIXEL if both maps have the same object there,
    OTHER_PIXEL if they have different objects, FALSE_PIXEL if only `pred` has an object,
    MISSED_PIXEL if only `gt` has one, and 0 if neither has.
    """
    is_wanted = (class_of == number) | (number is None)
    is_wanted = np.append(is_wanted, False)  # for the index -1 (no object)
    in_pred, in_gt = is_wanted[pair.pred], is_wanted[pair.gt]
    is_right = in_pred & (pair.pred == pair.gt)
    conditions = [is_right, in_pred & in_gt, in_pred, in_gt]  # the first that holds decides
    codes = [MATCHED_PIXEL, OTHER_PIXEL, FALSE_PIXEL, MISSED_PIXEL]
    return np.select(conditions, np.array(codes, np.uint8), np.uint8(0))


def _largest_errors(
    pair: LabelPair, class_of: I8, spacing: tuple[float, float]
) -> dict[int | None, LargestError]:
    """Find the object with the largest Hausdorff distance in each class, and in all classes.

    Objects that only one of the maps has are left out.

    Returns class -> the two pixels between which this distance lies, and the distance. The key None
    is for all classes together. Classes without an object in both maps have no entry.
    """
    largest: dict[int | None, LargestError] = {}
    pred_rims, gt_rims = (
        distances.rims(np.pad(labels.astype(np.int32), 1, constant_values=-1), pair.n)
        for labels in (pair.pred, pair.gt)
    )
    for rims, other in ((pred_rims, gt_rims), (gt_rims, pred_rims)):
        squared = distances.nearest(rims, other, *spacing)
        for label in range(pair.n):
            points = slice(*rims.start[label : label + 2])
            if not np.isfinite(squared[points]).any():  # one map has no such object
                continue
            farthest = points.start + int(squared[points].argmax())
            row, col = rims.rows[farthest], rims.cols[farthest]
            opposite = slice(*other.start[label : label + 2])
            down = (other.rows[opposite] - row) * spacing[0]
            right = (other.cols[opposite] - col) * spacing[1]
            nearest = opposite.start + int((down**2 + right**2).argmin())
            error = LargestError(
                row=int(row),
                col=int(col),
                to_row=int(other.rows[nearest]),
                to_col=int(other.cols[nearest]),
                distance=float(np.sqrt(squared[farthest])),
            )
            for number in (None, int(class_of[label])):
                if number not in largest or error.distance > largest[number].distance:
                    largest[number] = error
    return largest
