"""All measures of two masks, or of each label of two label maps; `measure` defines them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, check_number, check_word
from bsdsbench.errors import DataError
from bsdsbench.images import Map
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.contour.outlines import PIXELS, BothOutlines, Compared, skeleton_pixels
from bsdsbench.metrics.contour.pairs import CONVENTIONS, as_pair
from bsdsbench.metrics.label_maps import Spacing
from bsdsbench.protocol.fields import is_number, plain
from bsdsbench.scores.ratios import defined_f, defined_ratio, f_measure, quantile, ratio


def davis_radius(shape: tuple[int, ...], bound: float) -> float:
    """Return the radius in pixels within which DAVIS' F matches outlines in an image of `shape`.

    A `bound` below 1 is a fraction of the image diagonal, and is rounded up to whole pixels.
    """
    return float(bound if bound >= 1 else math.ceil(bound * math.hypot(*shape)))


def iou(counts: Map) -> Floats:
    """Compute the intersection over union of masks, float64 (...); NaN if both are empty.

    counts (..., 3): the number of pixels in both maps, in pred, and in gt.
    """
    in_both, in_pred, in_gt = counts[..., 0], counts[..., 1], counts[..., 2]
    return defined_ratio(in_both, in_pred + in_gt - in_both)


def dice(counts: Map) -> Floats:
    """Compute the Dice coefficient of masks, float64 (...); NaN if both are empty.

    counts (..., 3): the number of pixels in both maps, in pred, and in gt.
    """
    in_both, in_pred, in_gt = counts[..., 0], counts[..., 1], counts[..., 2]
    return defined_ratio(2 * in_both, in_pred + in_gt)


def _f_within(outlines: BothOutlines, radius: float) -> Floats:
    """Compute the F-measure of the outlines of each of n labels, float64 (n,).

    Precision is the share of the points of pred's outline within `radius` of gt's outline, and
    recall the share of the points of gt's outline within `radius` of pred's.
    """
    limit = with_tolerance(radius)  # slightly larger, so that rounding errors do not decide
    pred, gt = outlines
    precision = ratio(pred.count_by_label(pred.distance <= limit), pred.n_points)
    recall = ratio(gt.count_by_label(gt.distance <= limit), gt.n_points)
    return f_measure(precision, recall)


def _fom(outlines: BothOutlines, alpha: float) -> Floats:
    """Compute Pratt's figure of merit of each of n labels, float64 (n,).

    This is the sum of 1 / (1 + alpha d^2) over the points of pred's outline, where d is a point's
    distance to gt's outline, divided by the larger outline's number of points. The caller replaces
    the value of a label without an outline in pred or in gt.
    """
    pred, gt = outlines
    merit = pred.sum_by_label(1.0 / (1.0 + alpha * pred.distance * pred.distance))
    return ratio(merit, np.maximum(pred.n_points, gt.n_points))


def _hausdorff(
    definition: Literal["directed", "pooled", "area"], outlines: BothOutlines, percent: float
) -> Floats:
    """Compute the Hausdorff distance at a percentile for each of n labels, float64 (n,).

    It is NaN if either outline is empty. `definition` is one of:

    - "pooled": the percentile of the distances of both outlines together
    - "directed": the larger of the two outlines' percentiles
    - "area": as "directed", with each point weighted by the contour length that it stands for
    """
    share = check_number(percent, "percent", 0, 100) / 100
    pred, gt = outlines
    percentiles = np.full(pred.n_points.size, np.nan)
    for label in np.flatnonzero((pred.n_points > 0) & (gt.n_points > 0)).tolist():
        # The points of the label in the arrays of both outlines
        in_pred = slice(pred.start[label], pred.start[label + 1])
        in_gt = slice(gt.start[label], gt.start[label + 1])
        pred_distance, gt_distance = pred.distance[in_pred], gt.distance[in_gt]
        if definition == "pooled":
            both = np.concatenate([pred_distance, gt_distance])
            percentiles[label] = quantile(both, share)
        elif definition == "directed":
            percentiles[label] = max(quantile(pred_distance, share), quantile(gt_distance, share))
        else:
            pred_percentile = _length_quantile(pred_distance, pred.length[in_pred], share)
            gt_percentile = _length_quantile(gt_distance, gt.length[in_gt], share)
            percentiles[label] = max(pred_percentile, gt_percentile)
    return percentiles


def _length_quantile(distance: Floats, length: Floats, q: float) -> float:
    """Return the smallest distance within which at least a share `q` of the contour's length lies.

    distance, length (points,): each point's distance to the other outline, and contour length.
    """
    # By distance, then by length, as surface-distance does: in another order, the sums could round
    # differently, which matters where a share equals q
    order = np.lexsort((length, distance))
    share_within = np.cumsum(length[order]) / np.sum(length[order])
    first = int(np.searchsorted(share_within, q))
    return float(distance[order[min(first, order.size - 1)]])  # the last share may round below q


def _assd(definition: Literal["directed", "pooled"], outlines: BothOutlines) -> Floats:
    """Compute the average symmetric surface distance of each of n labels, float64 (n,).

    It is the mean distance of the points of both outlines together ("pooled"), or the mean of the
    two outlines' mean distances ("directed"). The caller replaces the value of a label without an
    outline in pred or in gt.
    """
    pred, gt = outlines
    pred_sum, gt_sum = pred.sum_by_label(pred.distance), gt.sum_by_label(gt.distance)
    if definition == "directed":
        return (ratio(pred_sum, pred.n_points) + ratio(gt_sum, gt.n_points)) / 2
    return ratio(pred_sum + gt_sum, pred.n_points + gt.n_points)


def _nsd(
    unit: Literal["area", "counts", "mean"], outlines: BothOutlines, tolerance: float
) -> Floats:
    """Compute the normalised surface distance of each of n labels, float64 (n,).

    It is the share of the length of both contours ("area") or of the points of both outlines
    ("counts") within `tolerance` of the other outline, or the mean of the two outlines' shares of
    points ("mean"). The caller replaces the value of a label that has no outline in pred or in gt.
    """
    # For pred and for gt: the length or number of points within the tolerance, and in all, (n,)
    near, total = list[Any](), list[Any]()
    for outline in outlines:
        is_near = outline.distance <= with_tolerance(tolerance)
        if unit == "area":
            near.append(outline.sum_by_label(is_near * outline.length))
            total.append(outline.sum_by_label(outline.length))
        else:
            near.append(outline.count_by_label(is_near))
            total.append(outline.n_points)
    (near_pred, near_gt), (all_pred, all_gt) = near, total
    if unit == "mean":
        return (ratio(near_pred, all_pred) + ratio(near_gt, all_gt)) / 2
    return ratio(near_pred + near_gt, all_pred + all_gt)


def cldice(skeletons: Map) -> Floats:
    """Compute clDice, float64 (...): the F-measure of the skeletons' shares inside the other mask.

    skeletons (..., 2, 2): for pred and for gt, the skeleton pixels inside the other mask, and all
        skeleton pixels. clDice is NaN if both skeletons are empty.
    """
    return defined_f(defined_ratio(skeletons[..., 0], skeletons[..., 1]))


class _Definition(NamedTuple):
    """The way in which a measure of `TABLE` is computed."""

    # What is compared: numbers of pixels ("areas", "shells", "trimap", "skeletons"), or outlines of
    # a kind ("rim", "side", "corner"), with distances in the unit of `spacing` or "in pixels"
    inputs: str
    value_of: Callable[[Any, float], Floats]  # (these inputs, size) -> value of each label (n,)
    size: float  # default size
    is_distance: bool  # which value of `CONVENTIONS` is used for empty masks: distance or overlap


TABLE = {
    "iou": _Definition("areas", lambda areas, _: iou(areas), 0.0, False),
    "dice": _Definition("areas", lambda areas, _: dice(areas), 0.0, False),
    "biou": _Definition("shells", lambda shells, _: iou(shells), 0.02, False),
    "biou-min": _Definition("shells", lambda shells, _: iou(shells), 0.02, False),
    "f": _Definition("side in pixels", _f_within, 0.008, False),
    "bf": _Definition("rim in pixels", _f_within, 0.0075, False),
    "hd": _Definition("rim", lambda outlines, _: _hausdorff("directed", outlines, 100), 0.0, True),
    "hd%-pooled": _Definition("rim", partial(_hausdorff, "pooled"), 95.0, True),
    "hd%-directed": _Definition("rim", partial(_hausdorff, "directed"), 95.0, True),
    "hd%-area": _Definition("corner", partial(_hausdorff, "area"), 95.0, True),
    "assd-pooled": _Definition("rim", lambda outlines, _: _assd("pooled", outlines), 0.0, True),
    "assd-directed": _Definition("rim", lambda outlines, _: _assd("directed", outlines), 0.0, True),
    "nsd-area": _Definition("corner", partial(_nsd, "area"), 1.0, False),
    "nsd-counts": _Definition("rim", partial(_nsd, "counts"), 1.0, False),
    "nsd-mean": _Definition("rim", partial(_nsd, "mean"), 1.0, False),
    "fom": _Definition("rim in pixels", _fom, 1 / 9, False),
    "trimap": _Definition("trimap", lambda areas, _: iou(areas), 3.0, False),
    "cldice": _Definition("skeletons", lambda skeletons, _: cldice(skeletons), 0.0, False),
}


def label_values(compared: Compared, name: str, size: float, empty: str) -> Floats:
    """Compute one measure of two maps for each of their n labels, float64 (n,).

    name: a key of `TABLE`. size: its width, radius, percentile or tolerance.
    empty: a key of `CONVENTIONS`. The convention sets the value of a label for which one or both
        maps lack what is compared: pixels, an outline or a skeleton.
    """
    definition, pair = TABLE[name], compared.pair
    inputs: BothOutlines | Map
    if definition.inputs == "areas":
        inputs = compared.areas
    elif definition.inputs == "shells":
        inputs = compared.shells(size)
    elif definition.inputs == "trimap":
        inputs = compared.trimap_areas(size)
    elif definition.inputs == "skeletons":
        inputs = skeleton_pixels(pair.pred, pair.gt, pair.n)
    else:
        kind, _, unit = definition.inputs.partition(" in ")  # "rim", or "rim" and "pixels"
        inputs = compared.outlines(kind, PIXELS if unit == "pixels" else compared.spacing)
    if name == "f":  # a fraction of the diagonal, rounded up, or pixels
        size = davis_radius(pair.shape, size)
    elif name == "bf" and size < 1:  # a fraction of the diagonal
        size *= math.hypot(*pair.shape)
    values = definition.value_of(inputs, size)  # without meaning where a map lacks the label
    if name == "biou-min":  # the smaller of Boundary IoU, computed so far, and IoU
        values = np.minimum(values, iou(compared.areas))
    if isinstance(inputs, tuple):  # two outlines
        lacks_pred, lacks_gt = inputs[0].n_points == 0, inputs[1].n_points == 0
    else:  # areas (n, 3): in both maps, in pred, in gt; or of skeletons (n, 2, 2): inside, all
        in_pred_and_gt = inputs[:, :, 1] if inputs.ndim == 3 else inputs[:, 1:]
        lacks_pred, lacks_gt = (in_pred_and_gt == 0).T
    if not (lacks_pred | lacks_gt).any():
        return values
    # A convention has two values for two empty maps and two for one: of overlaps, of distances
    convention = CONVENTIONS[empty]
    column = 1 if definition.is_distance else 0
    for_both, for_one = convention.both_empty[column], convention.one_empty[column]
    values = np.where(lacks_pred | lacks_gt, for_one, values)
    return np.where(lacks_pred & lacks_gt, for_both, values)


def measure(
    name: str,
    pred: ArrayLike,
    gt: ArrayLike,
    size: float | None = None,
    *,
    classes: int | None = None,
    ignore: int | tuple[int, ...] | None = None,
    spacing: Spacing = PIXELS,
    empty: str = "skip",
) -> float | Floats:
    """Compute a measure of two masks, or of every label of two label maps.

    Three kinds of outline are used. The rim consists of the mask's pixels that have one of their
    four neighbours outside the mask. The side outline consists of the pixels that differ from their
    right, lower or lower-right neighbour. The contour runs between pixels, and has a length.

    The measures, with the meaning and default of `size`:

    - "iou", "dice": intersection over union, and Dice. No size.
    - "biou": Boundary IoU, the IoU of the pixels that d erosions with a 3 x 3 square remove, where
      d is max(1, round(size x diagonal)), or int(size) if `size` is at least 1; default 0.02.
      "biou-min": the smaller of Boundary IoU and IoU, used for AP and PQ.
    - "f": F of DAVIS. Precision is the share of the side outline of `pred` within a radius of that
      of `gt`; recall is the converse. The radius is ceil(size x diagonal), or `size` if at least 1;
      default 0.008. DAVIS uses empty="perfect".
    - "bf": BF score, as "f" for the rims; size x diagonal is not rounded; default 0.0075.
    - "hd": Hausdorff distance of the rims. No size.
    - "hd%-pooled": percentile `size` (default 95) of the distances of both rims together (medpy,
      panoptica). "hd%-directed": the larger of the two rims' percentiles (MONAI). "hd%-area": the
      same for contours, with points weighted by contour length (surface-distance).
    - "assd-pooled": mean of the distances of both rims together (medpy 0.5). "assd-directed": mean
      of the two rims' mean distances (panoptica). No size.
    - "nsd-area": share of the length of both contours within the tolerance `size` (default 1) of
      the other contour (surface-distance). "nsd-counts": the same for rim pixels (MONAI).
      "nsd-mean": mean of the two rims' shares.
    - "fom": Pratt's figure of merit, the sum of 1 / (1 + alpha d^2) over the rim of `pred`, where d
      is the distance to the rim of `gt`, divided by the number of pixels of the larger rim; `size`
      is alpha, default 1/9.
    - "trimap": IoU among the pixels at most `size` (default 3) from another label of `gt`. If a
      label has no such pixels in either map, it counts as empty.
    - "cldice": harmonic mean of the shares of each skeleton that lie in the other mask. No size.

    Parameters
    ----------
    name : str
        One of the names above.
    pred, gt : array_like
        (H, W) masks, or integer label maps with the labels 0 .. classes - 1 if `classes` is given.
    size : float, optional
        The width, radius, percentile or tolerance of the measure, if it has one.
    classes : int, optional
        Number of labels; None for masks.
    ignore : int or tuple of int, optional
        Labels of void pixels in the ground truth. These pixels are cleared in both maps.
    spacing : tuple of float
        Distance between rows and between columns: the unit of distances and tolerances, except for
        "f", "bf", "fom" and "trimap", which use pixels.
    empty : str
        Convention for empty masks, a key of `CONVENTIONS`. By default, overlaps are NaN if both
        masks are empty and 0 if one is; distances are NaN in both cases.

    Returns
    -------
    float or array
        A number for masks, float64 (classes,) for label maps.

    Raises
    ------
    DataError, ShapeError
        DataError if the name is unknown, an array is not a mask or label map, or a number is out of
        range. ShapeError if the shapes differ.

    Examples
    --------
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> measure("hd", a, b), measure("nsd-counts", a, b), measure("hd%-directed", a, b, 50)
    (4.0, 0.5, 2.0)
    >>> round(measure("biou", a, b), 4), measure("assd-pooled", a, b)
    (0.1765, 1.6)
    """
    usual_size = TABLE[check_word(name, "measure", TABLE)].size  # checks that the name is a key
    check_word(empty, "empty", CONVENTIONS)
    size = usual_size if size is None else check_number(size, f"size of {name}", 0, math.inf)
    if name.startswith("hd%") and 0 < size < 1:
        raise DataError(f"size of {name}: {size:g}, expected a percentile: 95 for 95 %")
    if classes is not None:
        classes = int(check_number(plain(classes), "classes", 1, math.inf, whole=True))
    ignored = np.atleast_1d(() if ignore is None else ignore).tolist()
    if not all(is_number(value) and value % 1 == 0 for value in ignored):
        raise DataError(f"ignore: {ignore!r}, expected whole numbers")
    # Both maps with labels from 0, without void pixels; their outlines are computed when needed
    compared = Compared(as_pair(pred, gt, classes, ignored), spacing)
    values = label_values(compared, name, size, empty)  # a mask is the single label 0
    return float(values[0]) if classes is None else values


class _Settings(TypedDict, total=False):
    """The keyword arguments of `measure` other than `classes`."""

    ignore: int | tuple[int, ...] | None
    spacing: Spacing
    empty: str


class Measure(NamedTuple):
    """A callable for one measure: `measure` with this `name`, and this default of `empty`."""

    name: str
    empty: str = "skip"

    @overload
    def __call__(
        self, pred: ArrayLike, gt: ArrayLike, size: float | None = ..., **more: Unpack[_Settings]
    ) -> float:
        """Compute the measure of two masks (H, W)."""

    @overload
    def __call__(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        size: float | None = ...,
        *,
        classes: int,
        **more: Unpack[_Settings],
    ) -> Floats:
        """Compute the measure of each label 0 .. classes - 1 in two label maps, (classes,)."""

    def __call__(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        size: float | None = None,
        *,
        classes: int | None = None,
        **more: Unpack[_Settings],
    ) -> float | Floats:
        """Compute the measure of two masks (H, W), or of each label of two label maps.

        The arguments are those of `measure`; the default of `empty` is `self.empty`.
        """
        more.setdefault("empty", self.empty)
        return measure(self.name, pred, gt, size, classes=classes, **more)
