"""Conversion of masks, label maps and instance maps to two maps with common labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Bools, Floats, Ints, check_array
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import Map, binary_map, is_binary, one_map, same_shape
from bsdsbench.metrics.label_maps import (
    GT_SIDE,
    PRED_SIDE,
    VOID,
    MapContents,
    MapPair,
    Overlaps,
    as_label_map,
    as_label_maps,
    box_around,
    find_overlaps,
    void_of,
)
from bsdsbench.scores.ratios import ratio

Labels = NDArray[np.int32]
# Masks of up to this many pixels are not cropped: finding their box takes as long as it saves
_LARGEST_UNCROPPED = 2**14
MATCH_IOU = 0.5  # a region has an IoU above this with at most one region of the other map


class LabelPair(NamedTuple):
    """Two label maps with the labels 0 .. n - 1 of the masks to compare; -1 is no label.

    Two masks are a pair with n = 1, in int8 (0 inside, -1 outside). They may be cropped.
    """

    pred: Labels  # (H, W)
    gt: Labels
    n: int
    shape: tuple[int, ...]  # rows and columns of the image
    class_of: Ints  # (n,), the class of each label
    # (n,), ascending numbers of the instances in the files; None if not paired by number
    ids: Ints | None = None


NAN, INF = math.nan, math.inf


class _Convention(NamedTuple):
    """The values of measures if one of two masks is empty, or both are; means skip NaN."""

    both_empty: tuple[float, float]  # value of overlaps such as IoU, value of distances
    one_empty: tuple[float, float]
    text: str  # a description for captions


CONVENTIONS = {
    "skip": _Convention(
        (NAN, NAN), (0, NAN), "both empty: not counted; one: overlap 0, no distance"
    ),
    "inf": _Convention(
        (NAN, NAN), (0, INF), "both empty: not counted; one: overlap 0, distance inf"
    ),
    "perfect": _Convention((1, 0), (0, NAN), "both empty: perfect; one: overlap 0, no distance"),
}


def as_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    classes: int | None = None,
    ignored: Sequence[float] = (),
    first: int = 0,
) -> LabelPair:
    """Check two masks or two label maps (H, W), and renumber their labels from 0; -1 is no class.

    classes: number of classes, with the labels first .. first + classes - 1. If None, the maps are
        masks, whose only label becomes 0. To save time, large masks are cropped around both.
    ignored: labels that are no class. Where `gt` has one (void pixels), both maps become -1.
    first: label of the first class. If it is above 0, label 0 is no class.

    A prediction that is -1 everywhere is accepted as empty. Raises DataError if an array is not
    such a map or has another label, and ShapeError if the shapes differ.
    """
    if classes is None:
        masks = as_masks(pred, gt, ignored)
        box: tuple[slice, ...] = ()  # no cropping
        if masks.pred.size > _LARGEST_UNCROPPED:
            in_either = masks.pred | masks.gt
            # A single pixel if both masks are empty. `LabelPair.shape` remains that of the image
            box = box_around(in_either, 1) if in_either.any() else (slice(1), slice(1))
        # The int8 view of a bool mask is 1 inside and 0 outside; labels are 0 inside, -1 outside
        labels = [np.subtract(mask[box].view(np.int8), 1, order="C") for mask in masks]
        return LabelPair(labels[0], labels[1], 1, masks.pred.shape, np.zeros(1, np.int64))
    pred_map, gt_map = as_label_maps(pred, gt)
    labels_of_classes = range(first, first + classes)
    new_pred = _number_classes(pred_map, labels_of_classes, ignored, PRED_SIDE)
    new_gt = _number_classes(gt_map, labels_of_classes, ignored, GT_SIDE)
    void = void_of(gt_map, ignored)
    if void is not None:
        new_pred[void] = -1
    return LabelPair(new_pred, new_gt, classes, pred_map.shape, np.arange(classes))


def _number_classes(labels: Map, classes: range, ignored: Sequence[float], what: str) -> Labels:
    """Renumber the classes of a label map (H, W) from 0; pixels without a class become -1.

    classes: labels of the classes. If they start above 0, label 0 stands for no class.
    ignored: other labels that stand for no class, beside VOID, that of void pixels in int64 maps.
    what: "prediction" or "ground truth". A prediction that is -1 everywhere is accepted as empty.

    Raises DataError, which begins with `what`, for any other label.
    """
    # Labels that stand for no class -> a remark on the label in the error message
    remarks: dict[float, str] = {0: ""} if classes.start > 0 else {}
    remarks |= dict.fromkeys(ignored, " (ignored)")
    if what == PRED_SIDE and labels.max() < 0:  # an empty prediction, unless it has -2 or less
        has_no_class = labels == -1
    else:
        has_no_class = np.isin(labels, list(remarks))
        if labels.dtype == np.int64:  # VOID fits no smaller type
            has_no_class |= labels == VOID
    is_wrong = ~has_no_class & ((labels < classes.start) | (labels >= classes.stop))
    if is_wrong.any():
        wrong, fix = labels[is_wrong][0], ""
        if what == GT_SIDE and wrong < 0:  # -1 for void, which is no value of the option `ignore`
            fix = "if it is void, save it as 255 and set ignore=255"
        elif wrong == classes.stop and 0 in classes and 0 not in ignored:  # one label too many
            fix = "first=1 if 0 is the background, or one more class"
        also = "".join(f", or {label}{remark}" for label, remark in remarks.items())
        raise DataError(
            f"{what}: label {wrong}, expected {classes.start} .. {classes.stop - 1}{also}",
            fix=fix or (),
        )
    numbers: Labels = np.ascontiguousarray(labels, np.int32) - np.int32(classes.start)
    numbers[has_no_class] = -1
    return numbers


def as_masks(pred: ArrayLike, gt: ArrayLike, ignored: Sequence[float] = ()) -> MapPair:
    """Check two masks (H, W), and return them as bool, with False where `gt` is one of `ignored`.

    A mask is an array of bool, of 0 and 1, or of 0 and 255. Raises DataError if an array has no
    pixels or other values, such as those of a label map, and ShapeError if the shapes differ.
    """
    void = void_of(gt, ignored)
    gt_without_void = gt if void is None else np.where(void, 0, gt)
    masks = []
    for values, side in ((pred, PRED_SIDE), (gt_without_void, GT_SIDE)):
        array = check_array(values, side)
        if array.dtype.kind in "iu" and not is_binary(array):
            labels = np.unique(as_label_map(array, side)).tolist()  # refuses arrays not of two axes
            if len(labels) > 2:  # a label map: its classes need names, and a first label
                raise DataError(
                    f"{side}: {len(labels)} labels, from {labels[0]} to {labels[-1]}, expected a "
                    "mask of 0 and 1: name the classes",
                    fix=(
                        Setting("contour.classes", "one,two,three", "in the order of their labels"),
                        Setting("contour.first", 1, "where 0 is none"),
                    ),
                )
        plane = array if array.ndim == 2 else one_map(array, side)  # refuses all others
        masks.append(binary_map(plane, side))
    same_shape(masks[0].shape, masks[1].shape)
    if not masks[1].size:  # the kernels need a pixel
        raise DataError(f"{GT_SIDE}: shape {masks[1].shape}, expected at least one pixel")
    return MapPair(masks[0] if void is None else masks[0] & ~void, masks[1])


def overlaps_of_classes(pred: ArrayLike, gt: ArrayLike, opt: MapContents) -> Overlaps:
    """Count the pixels of each (predicted class, annotated class) in two label maps or masks.

    In the `Overlaps` that are returned, classes are numbered from 0, and -1 means no class. In
    masks, the object (1) is class 0, and the background (0) is -1. A pair with a -1 can occur
    several times, as several labels can stand for no class.
    """
    if not opt.classes:
        masks, void = as_masks(pred, gt, opt.ignored), void_of(gt, opt.ignored)
        if void is not None:  # remove void pixels, which would count as background: (pixels,)
            masks = MapPair(masks.pred[~void], masks.gt[~void])
        overlaps = find_overlaps(masks.pred, masks.gt)
        return overlaps._replace(pred=overlaps.pred - 1, gt=overlaps.gt - 1)
    overlaps = find_overlaps(*as_label_maps(pred, gt))
    # Check and renumber each distinct pair of labels once, as if the pairs were an image of one row
    pred_row, gt_row = overlaps.pred[None], overlaps.gt[None]
    classes = as_pair(pred_row, gt_row, len(opt.classes), opt.ignored, opt.first)
    return overlaps._replace(pred=classes.pred[0], gt=classes.gt[0])


def pair_masks(pred: ArrayLike, gt: ArrayLike, opt: MapContents) -> LabelPair:
    """Renumber two maps (H, W) so that the masks to compare have the same label in both.

    `opt.unit` determines which masks are compared: masks of the same class ("class"), instances
    with the same number ("id"), or instances of a class with an IoU above 0.5 ("instance"). An
    instance without a partner gets a label that the other map lacks. Instances that lie only on
    void pixels are left out.

    Returns the two maps with the labels 0 .. n - 1 (-1: no mask), the class index (n,) of each
    label, and the instance number (n,) of each label, or None unless `opt.unit` is "id". Raises
    DataError if an array does not fit the options, and ShapeError if the shapes differ.
    """
    if opt.unit == "class":  # label k is class k; without classes (None), a mask has the label 0
        return as_pair(pred, gt, len(opt.classes) or None, opt.ignored, opt.first)
    instances = find_instances(pred, gt, opt)
    pred_regions, gt_regions = instances.pred, instances.gt
    # A mask to compare is a region of pred, a region of gt, or a pair of them. First number all
    # masks: region k of pred belongs to mask mask_of_pred[k], region k of gt to mask_of_gt[k]
    ids = None
    if opt.unit == "id":  # a mask for each number in either map, in ascending order
        ids = np.union1d(pred_regions.ids, gt_regions.ids)
        mask_of_pred = np.searchsorted(ids, pred_regions.ids)
        mask_of_gt = np.searchsorted(ids, gt_regions.ids)
        class_of_mask = _class_of_value(ids, opt)
    else:  # in the order: pairs, then the other regions of pred, then the other regions of gt
        paired = match_regions(instances)
        n_pred, n_gt = pred_regions.ids.size, gt_regions.ids.size
        pred_only = np.setdiff1d(np.arange(n_pred), paired.pred)
        gt_only = np.setdiff1d(np.arange(n_gt), paired.gt)
        mask_of_pred, mask_of_gt = np.zeros(n_pred, np.int64), np.zeros(n_gt, np.int64)
        mask_of_pred[np.concatenate([paired.pred, pred_only])] = np.arange(n_pred)
        mask_of_gt[paired.gt] = np.arange(paired.gt.size)
        mask_of_gt[gt_only] = n_pred + np.arange(gt_only.size)
        # The two regions of a pair have the same class
        classes = gt_regions.class_of[paired.gt], pred_regions.class_of[pred_only]
        class_of_mask = np.concatenate([*classes, gt_regions.class_of[gt_only]])
    # From masks of regions to masks of overlaps. An overlap is a pair of values that the two maps
    # have at a pixel, and all its pixels are in the same masks. The index -1 (no region) selects
    # the appended last entry, -1 (no mask)
    pred_mask = np.append(mask_of_pred, -1)[pred_regions.region_of_overlap]
    gt_mask = np.append(mask_of_gt, -1)[gt_regions.region_of_overlap]
    mask_of_overlap = np.stack([pred_mask, gt_mask])  # (2, overlaps)
    # Masks that lie only on void pixels are in no overlap: leave them out. Label k is masks[k]
    masks = np.setdiff1d(mask_of_overlap, -1)
    labels = np.searchsorted(masks, mask_of_overlap).astype(np.int32)  # (2, overlaps)
    labels[mask_of_overlap < 0] = -1
    overlap_of_pixel = instances.overlaps.of_pixel  # (H, W)
    return LabelPair(
        pred=labels[0][overlap_of_pixel],
        gt=labels[1][overlap_of_pixel],
        n=masks.size,
        shape=overlap_of_pixel.shape,
        class_of=class_of_mask[masks],
        ids=None if ids is None else ids[masks],
    )


class Regions(NamedTuple):
    """The regions of one of two maps, numbered 0, 1, .. in ascending order of their values.

    An overlap is a pair of values that the two maps have at a common pixel, see `Overlaps`.
    """

    ids: Ints  # (regions,), the value of each region
    class_of: Ints  # (regions,), the class of each region
    region_of_overlap: Ints  # (overlaps,), the region to which each overlap belongs, or -1
    void: Bools  # (overlaps,), True for overlaps with an ignored value in this map

    def count_pixels(self, pixels: Ints) -> Ints:
        """Sum `pixels`, one number for each overlap, over the overlaps of each region."""
        is_region = self.region_of_overlap >= 0
        sums = np.bincount(self.region_of_overlap[is_region], pixels[is_region], self.ids.size)
        return sums.astype(np.int64)


class Instances(NamedTuple):
    """The regions of two instance maps, without void pixels and crowds, and their overlaps."""

    pred: Regions
    gt: Regions
    overlaps: Overlaps
    on_crowd: Ints  # (regions of pred,), pixels on any crowd, which count in the union of a pair
    excused: Floats  # (regions of pred,), share of pixels on void or on a crowd of the same class


def find_instances(pred: ArrayLike, gt: ArrayLike, opt: MapContents) -> Instances:
    """Find the regions (instances) of two instance maps (H, W), and the overlaps of their values.

    Void pixels and crowds (groups of objects that are not annotated one by one) are in no region.
    Instead, `on_crowd` is the number of pixels of each predicted region on a crowd, and `excused`
    the share of its pixels that are void or on a crowd of its class. A caller may pardon an
    unpaired region with a large share.

    Raises DataError if a value is not a valid instance, and ShapeError if the shapes differ.
    """
    # An overlap is a distinct pair of values at common pixels. (overlaps,) each: the value in pred,
    # that in gt, and the number of pixels
    overlaps = find_overlaps(*as_label_maps(pred, gt))
    pred_values, gt_values, pixels = overlaps.pred, overlaps.gt, overlaps.pixels
    if opt.things:  # values below the divisor are classes without a number: give them one
        pred_values = _number_plain_classes(pred_values, opt)
        gt_values = _number_plain_classes(gt_values, opt)
    pred_regions = _number_regions(pred_values, opt, PRED_SIDE)
    gt_regions = _number_regions(gt_values, opt, GT_SIDE)
    is_void = gt_regions.void  # (overlaps,), also True for crowds, as their class is ignored
    is_crowd, is_excused = np.zeros_like(is_void), is_void
    if opt.divisor:  # otherwise values have no class, and there are no crowds
        # A crowd has an ignored class. Its number counts down from the divisor: divisor - 1 for
        # class 0, divisor - 2 for class 1. With the divisor 1000 and the ignored class 255, 255998
        # is a crowd of class 1. If a class has two crowds, the first one has a number lower by C,
        # for C classes, and so an index of C or more, which no prediction has: panopticapi heeds
        # only the last
        crowd_class = opt.divisor - 1 - gt_values % opt.divisor
        is_crowd = is_void & (gt_values != VOID) & (crowd_class < 2 * len(opt.class_names))
        # A crowd excuses predictions of its class, other void pixels excuse those of any class
        is_same_class = crowd_class == _class_of_value(pred_values, opt)
        is_excused = np.where(is_crowd, is_same_class, is_void)
    on_crowd = pred_regions.count_pixels(pixels * is_crowd)  # of each predicted region
    n_excused = pred_regions.count_pixels(pixels * is_excused)
    excused = ratio(n_excused, pred_regions.count_pixels(pixels))
    # Annotated regions have no void pixels: remove them from the predicted ones as well
    region_of_overlap = np.where(is_void, -1, pred_regions.region_of_overlap)
    pred_regions = pred_regions._replace(region_of_overlap=region_of_overlap)
    return Instances(pred_regions, gt_regions, overlaps, on_crowd, excused)


def _number_plain_classes(values: Ints, opt: MapContents) -> Ints:
    """Convert class labels without an instance number, as in Cityscapes, to class x divisor + n.

    Values from 0 to below the divisor are such labels; others are unchanged. Most classes get the
    number 0, so that they are a single region. But the label of a class in `opt.things`, whose
    objects have numbers, stands for a crowd: a group of objects that are not annotated one by one.
    It becomes the value of a crowd, as described in `find_instances`.

    With the divisor 1000, the class 255 ignored, and classes from 7 on of which 26 has numbered
    objects, 7 becomes 7000, and 26, with the index 26 - 7 = 19, becomes 255999 - 19 = 255980.
    """
    class_index = values - opt.first
    is_label = (values >= 0) & (values < opt.divisor)
    numbered = np.where(is_label, values * opt.divisor, values)
    # Crowds have an ignored class, which the options require beside `things`
    last_ignored_value = (max(opt.ignored, default=-1) + 1) * opt.divisor - 1
    classes_with_numbers = [opt.classes.index(name) for name in opt.things or ()]
    is_crowd = is_label & np.isin(class_index, classes_with_numbers)
    return np.where(is_crowd, last_ignored_value - class_index, numbered)


def _class_of_value(values: Ints, opt: MapContents) -> Ints:
    """Return the index, counted from 0, of the class of each value class x divisor + number.

    If `opt.divisor` is 0, values are numbers without a class, and the index is 0 for all.
    """
    if not opt.divisor:
        return np.zeros_like(values)
    return values // opt.divisor - opt.first


def _number_regions(values: Ints, opt: MapContents, what: str) -> Regions:
    """Number the regions of one of two instance maps in ascending order of their values.

    values (overlaps,): the value in this map of each overlap, a pair of values that the two maps
        have at a common pixel.
    what: "prediction" or "ground truth".

    With `opt.divisor`, a value is class x divisor + number, otherwise the number of an instance.
    Two kinds of values are no regions:

    - void: values that are ignored, or have an ignored class; and VOID, a negative number that
      stands for pixels without annotation. Only these are True in `Regions.void`.
    - background: 0 and -1. With a divisor, class 0 if the classes start above 0, and all values of
      a prediction that is -1 everywhere.

    Raises DataError if a value is no valid instance; or if it may be, such as 7, instance 7 of
    class 0 or the label of class 7, and `opt.things` (classes with numbers) is None.
    """
    if opt.divisor:
        classes = values // opt.divisor
        last = opt.first + max(len(opt.classes), 1) - 1  # the classes are opt.first .. last
        # A value above the last class can only be an instance, if there is a class 0
        is_label = (values > 0) & (values < opt.divisor) & ((opt.first > 0) | (values <= last))
        if opt.things is None and is_label.any():
            raise DataError(
                f"{what}: value {values[is_label][0]}, expected class x {opt.divisor} + number (a "
                "class alone, or a group, as in Cityscapes: things='...' names the classes that "
                "have instances; instances of a class 0: things=[])"
            )
        void = (values == VOID) | np.isin(classes, opt.ignored)
        has_no_region = void | ((classes == 0) & (opt.first > 0))
        if what == PRED_SIDE and values.max() < 0:  # an empty prediction, unless it has -2 or less
            has_no_region = values == -1
        is_wrong = ~has_no_region & ((classes < opt.first) | (classes > last))
        if is_wrong.any():
            has = f"class {classes[is_wrong][0]}"
            if not opt.things:  # otherwise the value may be a multiplied label, which is in no file
                has = f"value {values[is_wrong][0]} is {has}"
            raise DataError(f"{what}: {has}, expected {opt.first} .. {last}")
    else:
        # Only the annotators' ignored values mean void. A predicted instance may have any number
        void = (values == VOID) | np.isin(values, opt.ignored if what == GT_SIDE else ())
        if values[values != VOID].min(initial=0) < -1:
            raise DataError(
                f"{what}: value {values.min()}, expected 0 or -1 for nothing and the numbers of "
                "instances (16-bit numbers read as signed?)"
            )
        has_no_region = void | (values <= 0)
    # Number the distinct values. Those of regions are not negative, so -1 comes first if it occurs:
    # it is dropped from `ids`, and its number 0 becomes -1
    ids, region = np.unique(np.where(has_no_region, -1, values), return_inverse=True)
    if has_no_region.any():
        ids, region = ids[1:], region - 1
    return Regions(ids, _class_of_value(ids, opt), region, void)


class RegionPairs(NamedTuple):
    """Pairs of an annotated and a predicted region, in ascending order of the annotated regions."""

    gt: Ints  # (pairs,), the index of the annotated region
    pred: Ints  # (pairs,), the index of the predicted region
    shared: Ints  # (pairs,), the number of pixels in both regions
    iou: Floats  # (pairs,)


def match_regions(
    instances: Instances, rule: str = "iou", least_iou: float = MATCH_IOU
) -> RegionPairs:
    """Pair the regions (instances) of two instance maps by one of these rules:

    - "any": all regions that overlap
    - "iou": regions of the same class with an IoU above `least_iou`. If that is at least 0.5, each
      region is in at most one pair.
    - "one-to-one": as many of the pairs of "iou" as possible, with each region in at most one
    - "id": regions with the same number, even if they do not overlap

    Void pixels do not count in the IoU, but the pixels of a predicted region on a crowd (a group of
    objects that are not annotated one by one) count in the union. Source: the matching of segments
    in evaluation.py of panopticapi, the official program of the panoptic quality.

    Returns the indices of both regions of each pair, ascending by the annotated region, with the
    number of pixels that they share, and their IoU.
    """
    # `pixels` (overlaps,): the maps have each distinct pair of values, an overlap, in so many
    # pixels. The sum over the overlaps of a region is its area; `find_instances` left out crowds
    pred, gt, pixels = instances.pred, instances.gt, instances.overlaps.pixels
    gt_area, pred_area = gt.count_pixels(pixels), pred.count_pixels(pixels)
    pred_area += instances.on_crowd
    # Candidate i: the regions gt_at[i] and pred_at[i] have shared[i] pixels in common. Each overlap
    # that is in a region of both maps is one
    is_in_both = (pred.region_of_overlap >= 0) & (gt.region_of_overlap >= 0)
    gt_at, pred_at = gt.region_of_overlap[is_in_both], pred.region_of_overlap[is_in_both]
    shared = pixels[is_in_both]
    if rule == "id":  # the candidates are the numbers that both maps have
        is_same = gt.ids[gt_at] == pred.ids[pred_at]
        # The pixels of each annotated region that have its number in pred too, often none
        shared_of_gt = np.bincount(gt_at[is_same], shared[is_same], gt.ids.size)
        _, gt_at, pred_at = np.intersect1d(gt.ids, pred.ids, return_indices=True)
        shared = shared_of_gt.astype(np.int64)[gt_at]  # 0 for regions that do not overlap
    iou = ratio(shared, gt_area[gt_at] + pred_area[pred_at] - shared)
    pairs = np.lexsort((pred_at, gt_at))  # indices of paired candidates, by gt_at, then pred_at
    if rule in ("iou", "one-to-one"):
        is_pair = (iou > least_iou) & (gt.class_of[gt_at] == pred.class_of[pred_at])
        pairs = pairs[is_pair[pairs]]
    if rule == "one-to-one":
        from scipy.sparse import csgraph, csr_array

        shape = gt.ids.size, pred.ids.size
        graph = csr_array((np.ones(pairs.size), (gt_at[pairs], pred_at[pairs])), shape)
        gt_of_pred = csgraph.maximum_bipartite_matching(graph)  # -1: unpaired
        pairs = pairs[gt_of_pred[pred_at[pairs]] == gt_at[pairs]]
    return RegionPairs(gt_at[pairs], pred_at[pairs], shared[pairs], iou[pairs])
