"""Every measure of two masks, or of every label of two maps at once: one table, `TABLE`.

`compared` defines the outlines between which distances are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, given_number, given_word
from bsdsbench.images import Map
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.contour.compared import PIXELS, BothSites, Compared, Spacing
from bsdsbench.metrics.contour.pairs import CONVENTIONS, as_pair
from bsdsbench.protocol.fields import listed_values
from bsdsbench.scores.ratios import defined_f, defined_ratio, f_measure, ratio


def davis_radius(shape: tuple[int, ...], bound: float) -> float:
    """Return DAVIS' radius in pixels: `bound` from 1 on, else ceil(bound * image diagonal)."""
    return float(bound) if bound >= 1 else float(math.ceil(bound * math.hypot(*shape)))


def iou(counts: Map, _: float = 0.0, divide: Callable[..., F8] = ratio) -> F8:
    """Compute intersection over union (...) from the pixels (..., 3) in both maps, pred and gt.

    `divide` decides what 0/0 is. The second argument, a size in `TABLE`, is not used.
    """
    return divide(counts[..., 0], counts[..., 1] + counts[..., 2] - counts[..., 0])


def _dice(counts: I8, _: float) -> F8:
    """Compute Dice (n,) from the pixels (n, 3) in both maps, pred and gt. 0/0 is 0."""
    return ratio(2 * counts[:, 0], counts[:, 1] + counts[:, 2])


def _f_within(sides: BothSites, radius: float) -> F8:
    """Compute F (n,) from the shares of both outlines that lie within `radius` of the other."""
    return f_measure(*(ratio(s.sums(s.distance <= with_tolerance(radius)), s.n) for s in sides))


def _fom(sides: BothSites, alpha: float) -> F8:
    """Compute Pratt's figure of merit of each label, (n,); 0/0 is 0.

    It is the sum of 1 / (1 + alpha d^2) over the sites of pred, d being the distance to the outline
    of gt, divided by the larger number of sites.
    """
    pred, gt = sides
    merit = pred.sums(1.0 / (1.0 + alpha * pred.distance * pred.distance))
    return ratio(merit, np.maximum(pred.n, gt.n))


def _hausdorff(definition: str, sides: BothSites, percent: float) -> F8:
    """Compute a percentile of the Hausdorff distance of each label, float64 (n,).

    - "directed": the larger of the percentiles of the two outlines' distances
    - "pooled": the percentile of the distances of both outlines together
    - "area": the larger of the two distances within which this share of the contour's length lies

    It is NaN if an outline is empty. Raises DataError if `percent` is not in 0 .. 100.
    """
    share = given_number(percent, "percent", 0, 100) / 100
    pred, gt = sides
    percentiles = np.full(pred.n.size, np.nan)
    for k in np.flatnonzero((pred.n > 0) & (gt.n > 0)).tolist():
        of_pred, of_gt = (slice(*side.start[k : k + 2]) for side in sides)
        pred_distance, gt_distance = pred.distance[of_pred], gt.distance[of_gt]
        if definition == "pooled":
            percentiles[k] = _quantile(np.concatenate([pred_distance, gt_distance]), share)
        elif definition == "directed":
            percentiles[k] = max(_quantile(pred_distance, share), _quantile(gt_distance, share))
        else:
            of_length = _length_quantile(pred_distance, pred.length[of_pred], share)
            percentiles[k] = max(of_length, _length_quantile(gt_distance, gt.length[of_gt], share))
    return percentiles


def _quantile(values: F8, q: float) -> float:
    """Return the quantile `q` of values, interpolated linearly between the two nearest ranks.

    numpy's quantile adds in another order, and can differ in the last bit.
    """
    rank = q * (values.size - 1)
    low, high = math.floor(rank), math.ceil(rank)
    ranked = np.partition(values, (low, high))
    return float(ranked[low] + (rank - low) * (ranked[high] - ranked[low]))


def _length_quantile(distance: F8, length: F8, q: float) -> float:
    """Return the smallest distance within which at least the share `q` of the length (sites,) lies.

    Sites are sorted by (distance, length) and summed by numpy, as in surface-distance: if a share
    equals q up to the last bit, another order of the sums would choose another distance.
    """
    order = np.lexsort((length, distance))
    share = np.cumsum(length[order]) / np.sum(length[order])
    return float(distance[order[min(int(np.searchsorted(share, q)), order.size - 1)]])


def _assd(directed: bool, sides: BothSites, _: float) -> F8:
    """Compute the average surface distance of each label, (n,).

    If `directed` it is the mean of the two outlines' means, else that of all their distances.
    """
    distance_sums = [side.sums(side.distance) for side in sides]
    return _share_of_outlines(distance_sums, [side.n for side in sides], directed)


def _nsd(unit: str, sides: BothSites, tolerance: float) -> F8:
    """Compute the normalised surface distance: the share of the outlines within `tolerance`, (n,).

    The share is that of both contours' length ("area"), that of both outlines' sites ("counts"), or
    the mean of the shares of the two outlines' sites ("mean").
    """
    near, total = [], []
    for side in sides:
        weight = side.length if unit == "area" else np.ones(side.length.size)
        near.append(side.sums((side.distance <= with_tolerance(tolerance)) * weight))
        total.append(side.sums(weight))
    return _share_of_outlines(near, total, unit == "mean")


def _share_of_outlines(part: list[F8], whole: Sequence[F8 | I8], mean: bool) -> F8:
    """Return part / whole, (n,) each, of the outlines of pred and gt; 0/0 is 0.

    With `mean` the two ratios are averaged; otherwise the arrays are added first.
    """
    if mean:
        return (ratio(part[0], whole[0]) + ratio(part[1], whole[1])) / 2
    return ratio(part[0] + part[1], whole[0] + whole[1])


def cldice(skeletons: Map) -> F8:
    """Compute clDice (...) from counts (..., 2, 2) of `skeleton_pixels`; NaN without skeletons."""
    return defined_f(defined_ratio(skeletons[..., 0], skeletons[..., 1]))


class _Definition(NamedTuple):
    """A measure of `TABLE`.

    what, size : what is compared, an argument of `Compared.find`, and the default size
    value_of : function (what was found, size) -> the value of each label, float64 (n,)
    is_distance : False for an overlap, whose value for empty masks is another one
    """

    what: str
    value_of: Callable[[Any, float], F8]
    size: float
    is_distance: bool


TABLE = {
    "iou": _Definition("areas", iou, 0.0, False),
    "dice": _Definition("areas", _dice, 0.0, False),
    "biou": _Definition("shells", iou, 0.02, False),
    "biou-min": _Definition("shells", iou, 0.02, False),
    "f": _Definition("side in pixels", _f_within, 0.008, False),
    "bf": _Definition("rim in pixels", _f_within, 0.0075, False),
    "hd": _Definition("rim", lambda sides, _: _hausdorff("directed", sides, 100), 0.0, True),
    "hd%-pooled": _Definition("rim", partial(_hausdorff, "pooled"), 95.0, True),
    "hd%-directed": _Definition("rim", partial(_hausdorff, "directed"), 95.0, True),
    "hd%-area": _Definition("corner", partial(_hausdorff, "area"), 95.0, True),
    "assd-pooled": _Definition("rim", partial(_assd, False), 0.0, True),
    "assd-directed": _Definition("rim", partial(_assd, True), 0.0, True),
    "nsd-area": _Definition("corner", partial(_nsd, "area"), 1.0, False),
    "nsd-counts": _Definition("rim", partial(_nsd, "counts"), 1.0, False),
    "nsd-mean": _Definition("rim", partial(_nsd, "mean"), 1.0, False),
    "fom": _Definition("rim in pixels", _fom, 1 / 9, False),
    "trimap": _Definition("trimap", iou, 3.0, False),
    "cldice": _Definition("skeletons", lambda skeletons, _: cldice(skeletons), 0.0, False),
}


def label_values(compared: Compared, name: str, size: float, empty: str) -> F8:
    """Compute one measure of `TABLE` for each label, float64 (n,).

    `size` is the width, radius, percentile or tolerance of the measure. `empty` names the
    convention in `CONVENTIONS` for labels that are empty in pred, gt or both.
    """
    definition = TABLE[name]
    inputs = compared.find(definition.what, size)
    if name == "f":
        size = davis_radius(compared.pair.shape, size)
    elif name == "bf" and size < 1:
        size *= compared.pair.diagonal()
    values = definition.value_of(inputs, size)
    if name == "biou-min":
        values = np.minimum(values, iou(compared.areas))
    if isinstance(inputs, tuple):
        n_pred, n_gt = (sites.n for sites in inputs)
    elif definition.what == "skeletons":
        n_pred, n_gt = inputs[..., 1].T
    else:
        _, n_pred, n_gt = inputs.T
    is_empty = (n_pred == 0) | (n_gt == 0)
    if not is_empty.any():
        return values
    convention, kind = CONVENTIONS[empty], int(definition.is_distance)  # (overlap, distance)
    for_both, for_one = convention.both_empty[kind], convention.one_empty[kind]
    if for_one is None:
        for_one = compared.pair.diagonal(compared.spacing)
    values = np.where(is_empty, for_one, values)
    return np.where((n_pred == 0) & (n_gt == 0), for_both, values)


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
) -> float | F8:
    """Compute a measure of two masks, or of every label of two label maps.

    The measures, with the meaning and default of `size`:

    - "iou", "dice": intersection over union, Dice. No size.
    - "biou": Boundary IoU, the IoU of the pixels that d erosions with a 3 x 3 square remove. d is
      max(1, round(size x diagonal)), or `size` itself if at least 1; default 0.02. "biou-min": the
      smaller of Boundary IoU and IoU, used for AP and PQ. Cheng et al. 2021.
    - "f": F of DAVIS, from the shares of both "side" outlines within ceil(size x diagonal) pixels,
      or `size` pixels if at least 1; default 0.008. DAVIS uses empty="perfect". Perazzi et al.
      2016.
    - "bf": BF score, as "f" but from the "rim" outlines, within size x diagonal; default 0.0075.
      Csurka et al. 2013.
    - "hd": Hausdorff distance of the "rim" outlines. No size.
    - "hd%-pooled": a percentile (`size`, default 95) of the distances of both outlines together
      (medpy, panoptica). "hd%-directed": the larger of the two outlines' percentiles (MONAI).
      "hd%-area": the larger of the two distances within which that share of the contour's length
      lies (surface-distance).
    - "assd-pooled": mean of the distances of both outlines together (medpy 0.5). "assd-directed":
      mean of the two outlines' mean distances (panoptica). No size.
    - "nsd-area": share of both contours' length within the tolerance `size`, default 1
      (surface-distance). "nsd-counts": share of both outlines' pixels (MONAI). "nsd-mean": mean of
      the two outlines' shares.
    - "fom": Pratt's figure of merit, the sum of 1 / (1 + alpha d^2) over the rim of `pred` divided
      by the larger number of rim pixels; `size` is alpha, default 1/9. Abdou and Pratt 1979.
    - "trimap": IoU among the pixels at most `size` (default 3) from another label of `gt`; a label
      without such pixels in either map counts as empty. Kohli et al. 2009.
    - "cldice": harmonic mean of the shares of each skeleton that lie in the other mask. No size.
      Shit et al. 2021.

    Parameters
    ----------
    name : str
        One of the names above.
    pred, gt : array_like
        (H, W) masks, or integer label maps with the labels 0 .. classes - 1 if `classes` is given.
    size : float, optional
        The width, radius, percentile or tolerance of the measure, if it has one.
    classes : int, optional
        Number of labels.
    ignore : int or tuple of int, optional
        Labels of void pixels of the ground truth; these pixels are cleared in both maps.
    spacing : tuple of float
        Row and column step; distances and tolerances are in its unit, except for "f", "bf", "fom"
        and "trimap", which are in pixels.
    empty : str
        The value of empty masks, a name of `CONVENTIONS`; the default leaves them out (NaN).

    Returns
    -------
    float or array
        One number for masks, float64 (classes,) for label maps.

    Raises
    ------
    DataError
        If the name is unknown, an array is no mask or label map, or a size is out of range.
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> measure("hd", a, b), measure("nsd-counts", a, b), measure("hd%-directed", a, b, 50)
    (4.0, 0.5, 2.0)
    >>> round(measure("biou", a, b), 4), measure("assd-pooled", a, b)
    (0.1765, 1.6)
    """
    usual_size = TABLE[given_word(name, "measure", TABLE)].size
    given_word(empty, "empty", CONVENTIONS)
    size = usual_size if size is None else given_number(size, f"size of {name}", 0, math.inf)
    ignored = () if ignore is None else listed_values(ignore)
    compared = Compared(as_pair(pred, gt, classes, ignored), spacing)
    values = label_values(compared, name, size, empty)
    return float(values[0]) if classes is None else values


class _Settings(TypedDict, total=False):
    """The keywords of `measure` other than `classes`."""

    ignore: int | tuple[int, ...] | None
    spacing: Spacing
    empty: str


class Measure(NamedTuple):
    """The function `measure` with its name and its convention for empty masks already chosen.

    Examples
    --------
    >>> Measure("iou", empty="perfect")(np.zeros((2, 3), bool), np.zeros((2, 3), bool))
    1.0
    """

    name: str
    empty: str = "skip"

    @overload
    def __call__(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        size: float | None = None,
        *,
        classes: None = None,
        **settings: Unpack[_Settings],
    ) -> float: ...

    @overload
    def __call__(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        size: float | None = None,
        *,
        classes: int,
        **settings: Unpack[_Settings],
    ) -> F8: ...

    def __call__(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        size: float | None = None,
        *,
        classes: int | None = None,
        **settings: Unpack[_Settings],
    ) -> float | F8:
        """Compute `measure` by this name, with this convention for empty masks by default."""
        settings.setdefault("empty", self.empty)
        return measure(self.name, pred, gt, size, classes=classes, **settings)
