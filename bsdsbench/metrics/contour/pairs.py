"""Masks, label maps and instance maps become maps with common labels.

Masks are (H, W) bool, 0 and 1, or 0 and 255 in uint8. Label maps are (H, W) integers with the
labels 0 .. classes - 1. Pixels whose annotated label is one of `ignored` are cleared in both maps.
Instances are paired by number, or matched by overlap.
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
    Map,
    binary_map,
    is_binary,
    one_map,
    same_shape,
)
from bsdsbench.kernels.arrays import I4
from bsdsbench.metrics.label_maps import (
    SIDES,
    VOID,
    MapContents,
    MapPair,
    Overlaps,
    as_label_map,
    as_label_maps,
    find_overlaps,
    void_of,
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
    labels_of_classes = range(first, first + classes)
    new_pred = _number_classes(pred_map, labels_of_classes, ignored, SIDES[0])
    new_gt = _number_classes(gt_map, labels_of_classes, ignored, SIDES[1])
    void = void_of(gt_map, ignored)
    if void is not None:
        new_pred[void] = -1
    return LabelPair(new_pred, new_gt, classes, pred_map.shape)


def _number_classes(labels: Map, classes: range, ignored: Sequence[float], what: str) -> Labels:
    """Renumber the classes in a label map (H, W) from 0. Pixels of no class become -1.

    classes: the labels of the classes. If the first of them is above 0, label 0 means no class.
    ignored: further labels that mean no class. VOID also means no class.
    what: the entry of SIDES that says which of the two maps it is. If it is the prediction, and it
        is -1 everywhere, all its pixels have no class.

    Raises DataError if any other label occurs.
    """
    remarks: dict[float, str] = {0: ""} if classes.start else {}  # label of no class -> remark
    remarks |= dict.fromkeys(ignored, " (ignored)")
    is_none = np.isin(labels, list(remarks))
    if labels.dtype == np.int64:
        is_none |= labels == VOID
    if what == SIDES[0] and labels.max() < 0:  # -1 everywhere: an empty prediction
        is_none = labels == -1
    is_wrong = ~is_none & ((labels < classes.start) | (labels >= classes.stop))
    if is_wrong.any():
        also = "".join(f", or {label}{remark}" for label, remark in remarks.items())
        raise DataError(
            f"{what}: label {labels[is_wrong][0]}, expected {classes.start} .. "
            f"{classes.stop - 1}{also}"
        )
    numbers: Labels = np.ascontiguousarray(labels, np.int32) - np.int32(classes.start)
    numbers[is_none] = -1
    return numbers


def _pair_of_masks(masks: MapPair) -> LabelPair:
    """Convert two bool masks (H, W) to int8 label maps: 0 inside the mask, -1 outside it.

    Masks of more than _SMALL pixels are cropped to the box around both, with a margin of one pixel.
    """
    box: tuple[slice, ...] = ()  # no cropping
    if masks.pred.size > _SMALL:
        in_either = masks.pred | masks.gt
        rows = np.flatnonzero(in_either.any(axis=1))
        cols = np.flatnonzero(in_either.any(axis=0))
        box = (slice(1), slice(1))  # a single pixel if both masks are empty
        if rows.size:
            top, left = max(rows[0] - 1, 0), max(cols[0] - 1, 0)
            box = (slice(top, rows[-1] + 2), slice(left, cols[-1] + 2))
    # The view of a bool mask is 1 inside and 0 outside, one above the labels
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
    pred_regions, gt_regions = instances.pred, instances.gt
    # Number the masks to compare; a mask may consist of a region of pred, of gt, or of one of each
    ids = None
    if opt.unit == "id":
        ids = np.union1d(pred_regions.ids, gt_regions.ids)
        mask_of_pred = np.searchsorted(ids, pred_regions.ids)
        mask_of_gt = np.searchsorted(ids, gt_regions.ids)
        class_of = _class_of_value(ids, opt)
    else:
        matching = match_regions(instances)
        mask_of_pred, mask_of_gt = matching.pred_new, matching.gt_new
        class_of = matching.class_of
    # Only masks with pixels get a label: instances that lie on void pixels alone are left out
    has_pixels = np.zeros(class_of.size, bool)
    has_pixels[mask_of_pred[pred_regions.with_pixels]] = True
    has_pixels[mask_of_gt[gt_regions.with_pixels]] = True
    label_of_mask = np.cumsum(has_pixels) - 1
    of_pixel = instances.overlaps.of_pixel
    pred_labels = pred_regions.label_pixels(label_of_mask[mask_of_pred], of_pixel)
    gt_labels = gt_regions.label_pixels(label_of_mask[mask_of_gt], of_pixel)
    pair = LabelPair(pred_labels, gt_labels, int(has_pixels.sum()), pred_labels.shape)
    return ClassedPair(pair, class_of[has_pixels], None if ids is None else ids[has_pixels])


class Regions(NamedTuple):
    """The regions of one map, numbered 0, 1, .. in ascending order of their values in the file."""

    ids: I8  # (regions,), the value of each region
    class_of: I8  # (regions,), the class of each region
    of_overlap: I8  # (overlaps,), the region to which each of `Instances.overlaps` belongs, or -1
    void: Bool  # (overlaps,), True for overlaps with an ignored value in this map

    def count_pixels(self, pixels: I8) -> I8:
        """Count the pixels of each region, int64 (regions,).

        pixels (overlaps,): the number of pixels of each overlap.
        """
        is_region = self.of_overlap >= 0
        sums = np.bincount(self.of_overlap[is_region], pixels[is_region], self.ids.size)
        return sums.astype(np.int64)

    @property
    def with_pixels(self) -> I8:
        """The index of the region of each overlap that belongs to a region, with repetitions."""
        return self.of_overlap[self.of_overlap >= 0]

    def label_pixels(self, label_of_region: I8, of_pixel: I4) -> Labels:
        """Draw a map (H, W) in which each region has its label, and all other pixels -1.

        label_of_region (regions,): the label of each region.
        of_pixel (H, W): the index of the overlap that each pixel belongs to.
        """
        # The index -1 of pixels without a region takes the last entry, which is the label -1
        labels = np.append(label_of_region, -1).astype(np.int32)
        label_of_overlap: Labels = labels[self.of_overlap]
        return label_of_overlap[of_pixel]


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
    # The number after an ignored label, counted back from divisor - 1, is the class of a crowd.
    # Numbers from C to 2 C - 1, for C classes, are crowds that excuse no prediction.
    crowd_class = opt.divisor - 1 - gt_values % max(opt.divisor, 1)
    is_ignored = gt_regions.void & (gt_values != VOID)
    is_crowd = is_ignored & (crowd_class >= 0) & (crowd_class < 2 * len(opt.class_names))
    is_own_crowd = is_crowd & (crowd_class == _class_of_value(pred_values, opt))
    is_void = gt_regions.void & ~is_crowd
    pixels = overlaps.pixels
    on_crowd = pred_regions.count_pixels(pixels * is_crowd)
    n_excused = pred_regions.count_pixels(pixels * (is_void | is_own_crowd))
    excused = ratio(n_excused, pred_regions.count_pixels(pixels))
    pred_regions.of_overlap[gt_regions.void] = -1  # from here on, void pixels are in no region
    return Instances(pred_regions, gt_regions, overlaps, on_crowd, excused)


def _number_bare_labels(values: I8, opt: MapContents) -> I8:
    """Replace labels of classes (values below the divisor) with class x divisor + number.

    The label of a class in `opt.things` becomes the value of a crowd of this class (see
    `Instances`). The label of any other class becomes a single region with the number 0. Negative
    values, and values not below the divisor, stay as they are.
    """
    class_index = values - opt.first
    is_label = (values >= 0) & (values < opt.divisor)
    single_region = values * opt.divisor
    replaced = np.where(is_label, single_region, values)
    # Values with the ignored label L end at L x divisor + divisor - 1, which is the crowd of the
    # class 0. The crowds of the next classes are below it.
    last_ignored_value = (max(opt.ignored, default=-1) + 1) * opt.divisor - 1
    countable = [opt.classes.index(name) for name in opt.things or ()]
    is_crowd = is_label & np.isin(class_index, countable)
    return np.where(is_crowd, last_ignored_value - class_index, replaced)


def _class_of_value(values: I8, opt: MapContents) -> I8:
    """Return the class, numbered from 0, of each value of an instance map.

    If there is no divisor (`opt.divisor` is 0), all values have the class 0.
    """
    if not opt.divisor:
        return np.zeros_like(values)
    return values // opt.divisor - opt.first


def _number_regions(values: I8, opt: MapContents, what: str) -> Regions:
    """Number the regions of one of two instance maps in ascending order of their values.

    values (overlaps,): the value in this map of each overlap, which is a pair of values that the
        two maps have at a common pixel.
    what: the entry of SIDES that says which of the two maps it is.

    Void values (pixels that are not judged) belong to no region. They are VOID and, if there is a
    divisor, values of ignored classes. If there is none, they are VOID and ignored values of the
    ground truth.

    Raises DataError if a value cannot be an instance.
    """
    if opt.divisor:
        void = (values == VOID) | np.isin(values // opt.divisor, opt.ignored)
        is_none = _without_class(values, void, opt, what)
    else:
        ignored = opt.ignored if what == SIDES[1] else ()
        void = (values == VOID) | np.isin(values, ignored)
        is_none = _without_number(values, void, what)
    region_values = np.where(is_none, -1, values)
    ids, region = np.unique(region_values, return_inverse=True)
    if is_none.any():  # the first id is -1: number it -1, and the regions from 0
        ids, region = ids[1:], region - 1
    return Regions(ids, _class_of_value(ids, opt), region, void)


def _without_number(values: I8, void: Bool, what: str) -> Bool:
    """Return which values of a map without classes belong to no instance, bool (overlaps,).

    These are values that are `void`, 0 and -1. Raises DataError if a value is below -1. `what`, an
    entry of SIDES, names the map in the message.
    """
    if values[values != VOID].min(initial=0) < -1:
        raise DataError(
            f"{what}: value {values.min()}, expected 0 or -1 for nothing and the numbers of "
            "instances (16-bit numbers read as signed?)"
        )
    return void | (values <= 0)


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


class _RegionPairs(NamedTuple):
    """Pairs of an annotated and a predicted region."""

    gt: I8  # (pairs,), the index of the annotated region
    pred: I8  # (pairs,), the index of the predicted region
    iou: F8  # (pairs,)


def _find_pairs(instances: Instances, by_number: bool) -> _RegionPairs:
    """Find the pairs of an annotated and a predicted region that stand for the same instance.

    If `by_number` is True, the two regions of a pair have the same number, even if they do not
    overlap. Otherwise they have the same class and an IoU above 0.5. The pairs are in no particular
    order.
    """
    pred, gt, pixels = instances.pred, instances.gt, instances.overlaps.pixels
    n_pred = pred.count_pixels(pixels) + instances.on_crowd
    n_gt = gt.count_pixels(pixels)
    is_in_both = (pred.of_overlap >= 0) & (gt.of_overlap >= 0)
    gt_at, pred_at = gt.of_overlap[is_in_both], pred.of_overlap[is_in_both]
    n_shared = pixels[is_in_both]
    if by_number:
        has_same_number = gt.ids[gt_at] == pred.ids[pred_at]
        n_shared_of_gt = np.bincount(gt_at, n_shared * has_same_number, gt.ids.size)
        _, gt_at, pred_at = np.intersect1d(gt.ids, pred.ids, return_indices=True)
        n_shared = n_shared_of_gt.astype(np.int64)[gt_at]  # 0 for regions that do not overlap
    iou = ratio(n_shared, n_gt[gt_at] + n_pred[pred_at] - n_shared)
    if by_number:
        return _RegionPairs(gt_at, pred_at, iou)
    is_pair = (iou > MATCH_IOU) & (pred.class_of[pred_at] == gt.class_of[gt_at])
    return _RegionPairs(gt_at[is_pair], pred_at[is_pair], iou[is_pair])


def match_regions(instances: Instances, by_number: bool = False) -> Matching:
    """Pair the regions of two instance maps.

    By default, regions of the same class with an IoU above 0.5 are paired, so that each has at most
    one partner. If `by_number` is True, regions with the same number are paired instead, even if
    they do not overlap.

    Void pixels are not counted in the IoU, except that predicted pixels on a crowd stay in the
    union. Source: panopticapi, evaluation.py.
    """
    pred, gt = instances.pred, instances.gt
    pairs = _find_pairs(instances, by_number)
    order = np.argsort(pairs.gt)
    paired_gt, paired_pred, iou = pairs.gt[order], pairs.pred[order], pairs.iou[order]
    n_pairs = order.size
    pred_new, gt_new = np.full(pred.ids.size, -1), np.full(gt.ids.size, -1)
    pred_new[paired_pred] = np.arange(n_pairs)
    gt_new[paired_gt] = np.arange(n_pairs)
    pred_only, gt_only = np.flatnonzero(pred_new < 0), np.flatnonzero(gt_new < 0)
    pred_new[pred_only] = n_pairs + np.arange(pred_only.size)
    gt_new[gt_only] = n_pairs + pred_only.size + np.arange(gt_only.size)
    class_of = np.concatenate(
        [gt.class_of[paired_gt], pred.class_of[pred_only], gt.class_of[gt_only]]
    )
    return Matching(pred_new, gt_new, class_of, iou, instances.excused[pred_only])
