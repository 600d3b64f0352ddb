"""Every measure of two masks, or of every label of two maps at once: one table, `TABLE`.

Three outlines are in use, and give different numbers:

- "rim": pixels of the mask with one of the four neighbours outside the mask or the image
  (scipy, medpy, MONAI, torchmetrics, panoptica).
- "side": pixels that differ from the one to the right, below, or below-right; pixels outside
  the image are equal (seg2bmap: DAVIS and everything that uses its F).
- "corner": corners of pixels where 2 x 2 of them are neither all in nor all out, each with the
  length of contour that crosses there (DeepMind's surface-distance).

Distances are Euclidean, between the sites of the same label in the other map, in the unit of
`spacing` = (row, column) steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.files.arguments import given_number
from bsdsbench.files.errors import DataError
from bsdsbench.kernels import distances, erosion, outlines
from bsdsbench.kernels.contingency import value_pairs
from bsdsbench.loaders.inputs import Map
from bsdsbench.metrics.contour.pairs import F8, I8, LabelPair, as_masks, as_pair, settle
from bsdsbench.scores.ratios import f_measure, ratio

Spacing = tuple[float, float]
COCO, CITYSCAPES = 0.02, 0.005  # widths of Boundary IoU, fractions of the diagonal
PIXELS = (1.0, 1.0)


class Sites(NamedTuple):
    """The outline of one map: the sites of label k are [k] : [k + 1] of start; their distance to
    the outline of the other map, inf without one, and the length of contour at them."""

    start: I8
    distance: F8
    length: F8

    @property
    def n(self) -> I8:
        """Sites of each label."""
        return np.diff(self.start)

    def of(self, k: int) -> tuple[F8, F8]:
        """Distance and length at the sites of label k."""
        here = slice(self.start[k], self.start[k + 1])
        return self.distance[here], self.length[here]

    def sums(self, values: Map) -> F8:
        """The sum of each label's values, in their order."""
        label = np.repeat(np.arange(self.n.size), self.n)
        return np.bincount(label, values, self.n.size).astype(np.float64)

    def within(self, limit: float) -> I8:
        """How many of each label's sites have a distance up to the limit."""
        before = np.concatenate([[0], np.cumsum(self.distance <= limit)])
        return np.diff(before[self.start])


Sides = tuple[Sites, Sites]  # of pred and of gt


class Compared:
    """Two label maps, and what is made of them once for all measures: pixels and outlines."""

    def __init__(self, pair: LabelPair, spacing: Spacing = PIXELS) -> None:
        if len(spacing) != 2 or not all(0 < s < math.inf for s in spacing):
            raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
        self.pair, self.spacing = pair, (float(spacing[0]), float(spacing[1]))
        self._made: dict[Any, Any] = {}

    def _once(self, key: Any, make: Callable[..., Any], *given: Any) -> Any:
        if key not in self._made:
            self._made[key] = make(*given)
        return self._made[key]

    @cached_property
    def areas(self) -> I8:
        """Pixels of each label in both, in pred, in gt: (n, 3)."""
        if self.pair.n == 1:  # masks, in a tenth of the time
            on, true = self.pair.pred >= 0, self.pair.gt >= 0
            return np.array([[np.count_nonzero(some) for some in (on & true, on, true)]])
        return self._areas(self.labels[0][2])

    @cached_property
    def labels(self) -> Any:
        """The pairs of labels that occur, with their pixels, (3, pairs); the pair of each pixel."""
        return value_pairs(*(np.ascontiguousarray(m, np.int64).ravel() for m in self.pair[:2]))

    def _areas(self, pixels: I8) -> I8:
        """`areas` from how many pixels each pair of labels has."""
        pred, gt, _ = self.labels[0]
        each = (np.where(pred == gt, pred, -1), pred, gt)
        sums = [np.bincount(labels + 1, pixels, self.pair.n + 1)[1:] for labels in each]
        return np.stack(sums, axis=1).astype(np.int64)

    def shells(self, size: float) -> Any:
        """`areas` of the inner boundaries of Boundary IoU."""
        width = shell_width(self.pair.shape, size)
        return self._once(width, erosion.label_shells, *self.pair[:3], width)

    def trimap(self, width: float) -> I8:
        """`areas` of the pixels up to `width` from another label of gt."""
        if not 0 < width < math.inf:
            raise DataError(f"trimap width {width}: expected pixels above 0")
        pairs, pair_of = self.labels
        squares = self._once("to other", distances.to_other_label, self.pair.gt, *PIXELS)
        near = pair_of[np.ravel(squares) <= width * width]
        return self._areas(np.bincount(near, minlength=pairs.shape[1]))

    def skeletons(self) -> I8:
        """Skeleton pixels of each label: gt's in pred, pred's, gt's, pred's in gt: (n, 4)."""
        from scipy.ndimage import find_objects
        from skimage.morphology import skeletonize

        counts, n = [], self.pair.n
        for labels, other in (self.pair[:2], self.pair[1::-1]):
            thin = np.full_like(labels, -1)
            for k, box in enumerate(find_objects(labels + 1, n)):
                if box:
                    thin[box][skeletonize(labels[box] == k)] = k
            counts.append(Compared(LabelPair(thin, other, n, other.shape)).areas[:, :2])
        return np.hstack(counts)[:, [2, 1, 3, 0]]

    def sites(self, outline: str, spacing: Spacing) -> Any:
        """The outlines of pred and of gt."""
        return self._once((outline, spacing), _outlines, self.pair, outline, spacing)

    def drawn(self, what: str, size: float) -> Any:
        """What a measure compares: the outlines of pred and of gt, or pixels of each label.

        Pixels are (n, 3), in both, in pred, in gt; of skeletons (n, 4).
        """
        if what in ("shells", "trimap"):
            return getattr(self, what)(size)
        if what == "areas":
            return self.areas
        if what == "skeletons":
            return self.skeletons()
        outline, _, in_pixels = what.partition(" ")
        return self.sites(outline, PIXELS if in_pixels else self.spacing)


def _outlines(pair: LabelPair, outline: str, steps: Spacing) -> tuple[Sites, ...]:
    sides = []
    for labels in pair[:2]:
        around = np.pad(labels, 1, constant_values=-1)
        if outline == "side":
            around = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
        sides.append((outlines.rims if outline == "rim" else outlines.corners)(around, pair.n))
    found = []
    for (start, rows, cols, *code), other in zip(sides, sides[::-1], strict=True):
        distance = np.sqrt(distances.nearest(start, rows, cols, *other[:3], *steps))
        length = contour_lengths(steps)[code[0]] if code else np.zeros(rows.size)
        found.append(Sites(start, distance, length))
    return tuple(found)


def pixel_distances(a: Map, b: Map, spacing: Spacing = PIXELS) -> F8:
    """From each pixel of the map a, row by row, to the nearest of b; infinite where b has none."""
    sides: list[Any] = []
    for drawn in (a, b):
        rows, cols = np.nonzero(drawn)
        sides += [np.array([0, rows.size]), rows.astype(np.int32), cols.astype(np.int32)]
    return np.asarray(np.sqrt(distances.nearest(*sides, *spacing)))


def contour_lengths(spacing: Spacing) -> F8:
    """Length of the contour in 2 x 2 pixels, for each code of `outlines.corners`, (16,).

    The contour joins the middles of the sides between two pixels: half a diagonal where one pixel
    differs, a step where two neighbours do, two half diagonals where two opposite ones do.
    """
    down, right = spacing
    half = 0.5 * math.sqrt(down * down + right * right)
    out = np.full(16, half)
    out[[0, 15]] = 0.0
    out[[0b1100, 0b0011]] = right
    out[[0b1010, 0b0101]] = down
    out[[0b1001, 0b0110]] = 2 * half
    return out


def shell_width(shape: tuple[int, ...], size: float) -> int:
    """Width of Boundary IoU's boundary: max(1, round(size x diagonal)) pixels; `size` from 1 on."""
    if not 0 < size < math.inf:
        raise DataError(f"boundary width {size}: expected a fraction of the diagonal, or pixels")
    return int(size) if size >= 1 else max(1, round(size * math.hypot(*shape)))


def davis_radius(shape: tuple[int, ...], bound: float = 0.008) -> float:
    """Radius in pixels of DAVIS' F: ceil(bound x diagonal), or `bound` itself from 1 on."""
    return float(bound) if bound >= 1 else float(math.ceil(bound * math.hypot(*shape)))


def iou(counts: Map, _: float = 0.0, of: Callable[..., F8] = ratio) -> F8:
    """Intersection over union of (..., 3) pixels in both, in pred, in gt; by default 0/0 = 0."""
    return of(counts[..., 0], counts[..., 1] + counts[..., 2] - counts[..., 0])


def _dice(counts: I8, _: float) -> F8:
    return ratio(2 * counts[:, 0], counts[:, 1] + counts[:, 2])


def _cldice(n: I8, _: float) -> F8:
    return f_measure(ratio(n[:, 3], n[:, 1]), ratio(n[:, 0], n[:, 2]))


def _f_within(sides: Sides, radius: float) -> F8:
    """F of the shares of both outlines within a radius in pixels."""
    return f_measure(*(ratio(s.within(radius), s.n) for s in sides))


def _f_below(sides: Sides, radius: float) -> F8:
    return _f_within(sides, float(np.nextafter(radius, -np.inf)))


def _fom(sides: Sides, alpha: float) -> F8:
    pred, gt = sides
    merit = pred.sums(1.0 / (1.0 + alpha * pred.distance * pred.distance))
    return ratio(merit, np.maximum(pred.n, gt.n))


def _hausdorff(definition: str, sides: Sides, percent: float) -> F8:
    q = given_number(percent, "percent", 0, 100) / 100
    pred, gt = sides
    quantile: Callable[..., float] = _length_quantile if definition == "area" else _quantile
    found = np.full(pred.n.size, np.nan)
    for k in np.flatnonzero((pred.n > 0) & (gt.n > 0)).tolist():
        lists = [pred.of(k), gt.of(k)]
        if definition == "pooled":
            lists = [(np.concatenate([lists[0][0], lists[1][0]]), lists[0][1])]
        found[k] = max(quantile(*each, q) for each in lists)
    return found


def _quantile(distance: F8, _: F8, q: float) -> float:
    """Linear between the two nearest ranks, as numpy's, which has NaN between infinite ones."""
    rank = q * (distance.size - 1)
    low = int(rank)
    high = min(low + 1, distance.size - 1)
    parts = np.partition(distance, (low, high))
    below, above = float(parts[low]), float(parts[high])
    return below if below == above else below + (rank - low) * (above - below)


def _length_quantile(distance: F8, length: F8, q: float) -> float:
    """The first distance up to which the share q of the length lies.

    The order is that of (distance, length) and the sums are numpy's, as in surface-distance: where
    a share is q up to the last bit, another order is another distance.
    """
    order = np.lexsort((length, distance))
    share = np.cumsum(length[order]) / np.sum(length[order])
    return float(distance[order[min(int(np.searchsorted(share, q)), order.size - 1)]])


def _assd(mean: bool, sides: Sides, _: float) -> F8:
    return _of_both([s.sums(s.distance) for s in sides], [s.n for s in sides], mean)


def _nsd(form: str, sides: Sides, tolerance: float) -> F8:
    near, total = [], []
    for s in sides:
        length = s.length if form == "area" else np.ones(s.length.size)
        near.append(s.sums((s.distance <= tolerance) * length))
        total.append(s.sums(length))
    return _of_both(near, total, form == "mean")


def _of_both(part: list[F8], whole: list[Any], mean: bool) -> F8:
    """The mean of the two outlines' ratios, or the ratio of both together."""
    if mean:
        return (ratio(part[0], whole[0]) + ratio(part[1], whole[1])) / 2
    return ratio(part[0] + part[1], whole[0] + whole[1])


# name -> what is compared, see `Compared.drawn`; the function of it and a size that gives the value
# of each label; and whether it is a distance, which an empty mask may not have
TABLE: dict[str, tuple[str, Callable[[Any, float], F8], bool]] = {
    "iou": ("areas", iou, False),
    "dice": ("areas", _dice, False),
    "biou": ("shells", iou, False),
    "biou-min": ("shells", iou, False),
    "f": ("side in pixels", _f_within, False),
    "bf": ("rim in pixels", _f_within, False),
    "bf-pixels": ("rim in pixels", _f_within, False),
    "bf-strict": ("rim in pixels", _f_below, False),
    "hd": ("rim", lambda sides, _: _hausdorff("directed", sides, 100), True),
    "hd%-pooled": ("rim", partial(_hausdorff, "pooled"), True),
    "hd%-directed": ("rim", partial(_hausdorff, "directed"), True),
    "hd%-area": ("corner", partial(_hausdorff, "area"), True),
    "assd-pooled": ("rim", partial(_assd, False), True),
    "assd-directed": ("rim", partial(_assd, True), True),
    "nsd-area": ("corner", partial(_nsd, "area"), False),
    "nsd-counts": ("rim", partial(_nsd, "counts"), False),
    "nsd-mean": ("rim", partial(_nsd, "mean"), False),
    "fom": ("rim in pixels", _fom, False),
    "trimap": ("trimap", iou, False),
    "cldice": ("skeletons", _cldice, False),
}


def values_of(c: Compared, name: str, size: float, empty: str) -> F8:
    """A measure of `TABLE` of each label, empty masks as the convention says."""
    what, of, is_distance = TABLE[name]
    drawn = c.drawn(what, size)
    if name == "f":
        size = davis_radius(c.pair.shape, size)
    elif name == "bf" and size < 1:
        size *= c.pair.diagonal()
    values = of(drawn, size)
    if name == "biou-min":
        values = np.minimum(values, iou(c.areas))
    pred, gt = (s.n for s in drawn) if isinstance(drawn, tuple) else drawn.T[1:3]
    return settle(values, pred, gt, empty, c.pair.diagonal(c.spacing) if is_distance else None)


def measure(
    name: str,
    pred: ArrayLike,
    gt: ArrayLike,
    size: float = 0.0,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    spacing: Spacing = PIXELS,
    empty: str = "skip",
) -> Any:
    """A measure of two masks, or of every label of two maps.

    Parameters
    ----------
    name : str
        A key of `TABLE`, as "hd", "nsd-area".
    pred, gt : array_like
        (H, W) masks, or integer label maps where `classes` is given.
    size : float
        Its width, radius, percent or tolerance, where it has one.
    classes : int, optional
        Number of labels, 0 .. classes - 1.
    ignore : int, optional
        Label of the ground truth's pixels that are nothing; cleared on both sides.
    spacing : tuple of float
        Row and column step; distances and tolerances are in their unit.
    empty : str
        What empty masks give, a name of `CONVENTIONS`; the default leaves them out (NaN).

    Returns
    -------
    float or array
        One number of masks, f8 (classes,) of label maps.

    Raises
    ------
    DataError, ShapeError
        For an unknown name, no mask or label map, sizes out of range; unequal shapes.

    Examples
    --------
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> measure("hd", a, b), measure("nsd-counts", a, b, 1)
    (4.0, 0.5)
    """
    if name not in TABLE:
        raise DataError(f"measure {name!r}: expected one of {', '.join(TABLE)}")
    size = given_number(size, f"size of {name}", 0, math.inf)
    c = Compared(as_pair(pred, gt, classes, ignore), spacing)
    values = values_of(c, name, size, empty)
    return float(values[0]) if classes is None else values


def mask_iou(pred: ArrayLike, gt: ArrayLike, *, empty: str = "perfect", **options: Any) -> Any:
    """Intersection over union, the J of DAVIS: by default 1 where both are empty. See `measure`."""
    return measure("iou", pred, gt, empty=empty, **options)


def boundary_iou(
    pred: ArrayLike, gt: ArrayLike, size: float = COCO, *, with_mask: bool = False, **options: Any
) -> Any:
    """Boundary IoU: intersection over union of the masks' inner boundaries. Options of `measure`.

    The boundary of a mask is what `d` erosions with a 3 x 3 square take away, the outside of the
    image being no mask; d = max(1, round(size x diagonal)).

    size : fraction of the diagonal (0.02: COCO, LVIS; 0.005: Cityscapes), or pixels from 1 on
    with_mask : the smaller of Boundary IoU and mask IoU, which AP and PQ use

    Source: Cheng et al., Boundary IoU, CVPR 2021.

    Examples
    --------
    >>> a, b = np.zeros((2, 9, 9), bool)
    >>> a[1:8, 1:8] = b[1:8, 1:7] = True
    >>> round(boundary_iou(a, b, 1), 4)  # 17 pixels of 24 and 22
    0.5862
    """
    if options.get("classes") is not None:
        return measure("biou-min" if with_mask else "biou", pred, gt, size, **options)
    masks = as_masks(pred, gt)  # two masks alone have a kernel of their own, five times as fast
    found = erosion.mask_shells(*masks, shell_width(masks[1].shape, size))
    values = iou(found)
    value = values.min(keepdims=True) if with_mask else values[1:]
    empty = options.get("empty", "skip")
    return float(settle(value, found[1:, 1], found[1:, 2], empty, None)[0])


def trimap_iou(pred: ArrayLike, gt: ArrayLike, width: float, **options: Any) -> Any:
    """Intersection over union among the pixels up to `width` from another label of `gt`.

    The distance is Euclidean, to the nearest pixel of another label, so that width 1 is the pixels
    with a four-neighbour of another label. A label without a pixel there, on either side, is empty.
    Options of `measure`.

    Source: Kohli, Ladicky and Torr, IJCV 2009; Kraehenbuehl and Koltun, NIPS 2011.
    """
    return measure("trimap", pred, gt, width, **options)


def cl_dice(pred: ArrayLike, gt: ArrayLike, **options: Any) -> Any:
    """clDice: harmonic mean of the shares of each mask's skeleton that lie in the other mask.

    The skeleton is scikit-image's in 2-D. Options of `measure`. Source: Shit et al., CVPR 2021.
    """
    return measure("cldice", pred, gt, **options)


def hausdorff(pred: ArrayLike, gt: ArrayLike, **options: Any) -> Any:
    """Hausdorff distance of the rims. Options of `measure`.

    The same as medpy.metric.binary.hd, MONAI, panoptica and torchmetrics' hausdorff_distance.

    Examples
    --------
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> hausdorff(a, b)
    4.0
    """
    return measure("hd", pred, gt, **options)


def hausdorff_percent(
    pred: ArrayLike,
    gt: ArrayLike,
    percent: float = 95.0,
    *,
    definition: str = "pooled",
    **options: Any,
) -> Any:
    """Hausdorff distance at a percentile, HD95 by default. Options of `measure`.

    definition : "pooled", the percentile of both lists of distances together (medpy, panoptica);
        "directed", the larger of the two lists' percentiles (MONAI); "area", the larger of the two
        distances up to which that share of the contour's length lies (surface-distance)

    Examples
    --------
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> hausdorff_percent(a, b, 50), hausdorff_percent(a, b, 50, definition="directed")
    (1.5, 2.0)
    """
    return measure(f"hd%-{definition}", pred, gt, percent, **options)


def assd(pred: ArrayLike, gt: ArrayLike, *, definition: str = "pooled", **options: Any) -> Any:
    """Average symmetric surface distance of the rims. Options of `measure`.

    definition : "pooled", the mean of both lists of distances together (medpy 0.5, MONAI with
        symmetric=True); "directed", the mean of the two lists' means (panoptica, older medpy)

    Examples
    --------
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 1:7] = True
    >>> assd(a, b), assd(a, b, definition="directed")
    (1.25, 0.8333333333333334)
    """
    return measure(f"assd-{definition}", pred, gt, **options)


def nsd(
    pred: ArrayLike, gt: ArrayLike, tolerance: float, *, form: str = "area", **options: Any
) -> Any:
    """Normalized surface distance (surface Dice) at a tolerance, in [0, 1]. Options of `measure`.

    form : "area", the share of both contours' length within the tolerance (surface-distance; MONAI
        with use_subvoxels); "counts", the share of both rims' pixels (MONAI); "mean", the mean of
        the two shares (panoptica)

    Examples
    --------
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 1:7] = True
    >>> nsd(a, b, 1, form="counts"), nsd(a, b, 1, form="mean")
    (0.625, 0.75)
    """
    return measure(f"nsd-{form}", pred, gt, tolerance, **options)


def bf_score(
    pred: ArrayLike,
    gt: ArrayLike,
    theta: float | None = None,
    *,
    strict: bool = False,
    **options: Any,
) -> Any:
    """BF score: F of the rims' pixels that lie within `theta` pixels of the other rim.

    theta : pixels, default 0.75 % of the diagonal; strict : nearer than theta, not up to it.
    Other options of `measure`. Source: Csurka et al., BMVC 2013.
    """
    limit = 0.0075 * math.hypot(*np.shape(gt)) if theta is None else theta
    return measure("bf-strict" if strict else "bf-pixels", pred, gt, limit, **options)


def davis_f(
    pred: ArrayLike, gt: ArrayLike, bound: float = 0.008, *, empty: str = "perfect", **options: Any
) -> Any:
    """Boundary F of DAVIS, and with bound = 3, 5, 9, 12 the F at that many pixels.

    A `bound` below 1 is a fraction of the diagonal, rounded up to pixels; from 1 on it is pixels.
    By default `empty` is as in DAVIS, 1 where both have no boundary and 0 where one has none; a
    mask that fills the image has no boundary here. Other options of `measure`.

    Source: Perazzi et al., CVPR 2016; the official davis2017-evaluation, metrics.py.

    Examples
    --------
    >>> a, b = np.zeros((2, 8, 9), bool)
    >>> a[2:5, 2:5] = b[2:5, 4:8] = True
    >>> round(davis_f(a, b, 1), 4), round(davis_f(a, b, 2), 4)
    (0.6154, 0.8333)
    """
    return measure("f", pred, gt, bound, empty=empty, **options)


def pratt_fom(pred: ArrayLike, gt: ArrayLike, alpha: float = 1 / 9, **options: Any) -> Any:
    """Pratt's figure of merit of the rims, in [0, 1]: sum 1/(1 + alpha d^2) / max(n_pred, n_gt).

    The sum goes over the rim pixels of `pred`, d pixels to the nearest of `gt`: the figure is not
    symmetric. Options of `measure`. Source: Abdou and Pratt, Proc. IEEE 1979.

    Examples
    --------
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 2:6] = True
    >>> round(pratt_fom(a, b), 3)
    0.475
    """
    return measure("fom", pred, gt, alpha, **options)
