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
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, given_number, given_word
from bsdsbench.errors import DataError
from bsdsbench.images import Map
from bsdsbench.kernels.distances import distances, erosion, outlines
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.metrics.contour.pairs import CONVENTIONS, LabelPair, as_pair
from bsdsbench.protocol.fields import listed_values
from bsdsbench.scores.ratios import defined_f, defined_ratio, f_measure, ratio

Spacing = tuple[float, float]
PIXELS = (1.0, 1.0)


class Sites(NamedTuple):
    """The outline sites of every label of one map, label after label.

    The sites of label k are `start[k] : start[k + 1]` of `distance` and `length`. `distance` is
    the distance to the other map's outline of the same label, inf if that label has none there;
    `length` is the length of contour at the site.
    """

    start: I8
    distance: F8
    length: F8

    @property
    def n(self) -> I8:
        """Number of sites of each label, (n,)."""
        return np.diff(self.start)

    def sums(self, values: Map) -> F8:
        """Sum one value per site over the sites of each label, from first to last."""
        label = np.repeat(np.arange(self.n.size), self.n)
        return np.bincount(label, values, self.n.size).astype(np.float64)


_Sides = tuple[Sites, Sites]  # of pred and of gt


class Compared:
    """Two label maps with the pixels and outlines that all measures share, computed once."""

    def __init__(self, pair: LabelPair, spacing: Spacing = PIXELS) -> None:
        if len(spacing) != 2 or not all(0 < s < math.inf for s in spacing):
            raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
        self.pair, self.spacing = pair, (float(spacing[0]), float(spacing[1]))
        self._sites: dict[tuple[str, Spacing], tuple[Sites, ...]] = {}
        self._shells: dict[int, I8] = {}

    @cached_property
    def areas(self) -> I8:
        """Count each label's pixels: common to both maps, in pred, in gt; (n, 3)."""
        if self.pair.n == 1:  # masks, in a tenth of the time
            on, true = self.pair.pred >= 0, self.pair.gt >= 0
            return np.array([[np.count_nonzero(mask) for mask in (on & true, on, true)]])
        return self._areas(self._labels[0][2])

    @cached_property
    def _labels(self) -> Any:
        """Return rows (label of pred, label of gt, pixels) for every pair of labels that occurs,
        (3, pairs), and the number of each pixel's pair."""
        return value_pairs(*(np.ascontiguousarray(m, np.int64).ravel() for m in self.pair[:2]))

    def _areas(self, pixels: I8) -> I8:
        """Compute `areas` from the number of pixels of each pair in `_labels`."""
        pred, gt, _ = self._labels[0]
        labels_of = (np.where(pred == gt, pred, -1), pred, gt)
        sums = [np.bincount(labels + 1, pixels, self.pair.n + 1)[1:] for labels in labels_of]
        return np.stack(sums, axis=1).astype(np.int64)

    def shells(self, width: int) -> I8:
        """Count the pixels of each label's inner boundary of this width, with the columns of
        `areas`. The inner boundary is defined in `bsdsbench.kernels.distances.erosion`."""
        if width not in self._shells:
            pred, gt, n, _ = self.pair
            if n == 1:  # masks, in a fifth of the time
                self._shells[width] = erosion.mask_shells(pred >= 0, gt >= 0, width)
            else:
                self._shells[width] = erosion.label_shells(pred, gt, n, width)
        return self._shells[width]

    def sites(self, outline: str, steps: Spacing) -> tuple[Sites, ...]:
        """Return the outline sites of pred and of gt; `steps` is the (row, column) spacing."""
        if (outline, steps) not in self._sites:
            self._sites[outline, steps] = _outlines(self.pair, outline, steps)
        return self._sites[outline, steps]

    @cached_property
    def _to_other(self) -> F8:
        return distances.to_other_label(self.pair.gt.astype(np.int32), *PIXELS)

    def drawn(self, what: str, size: float) -> Any:
        """Return what a measure compares, named by the first entry of a row of `TABLE`.

        "areas": each label's pixels, (n, 3); "shells": pixels of its inner boundaries, (n, 3);
        "trimap": its pixels at most `size` from another label of gt, (n, 3); "skeletons": see
        `skeleton_pixels`, (n, 2, 2). "rim", "side" and "corner": the outline sites of pred and
        gt, with distances in the unit of `spacing`, or in pixels if " in pixels" follows.
        """
        if what == "areas":
            return self.areas
        if what == "shells":
            return self.shells(_shell_width(self.pair.shape, size))
        if what == "trimap":
            if not 0 < size < math.inf:
                raise DataError(f"trimap width {size}: expected pixels above 0")
            pairs, pair_of = self._labels
            near = pair_of[np.ravel(self._to_other) <= with_tolerance(size * size)]
            return self._areas(np.bincount(near, minlength=pairs.shape[1]))
        if what == "skeletons":
            return skeleton_pixels(*self.pair[:3])
        outline, _, in_pixels = what.partition(" ")
        return self.sites(outline, PIXELS if in_pixels else self.spacing)


def _outlines(pair: LabelPair, outline: str, steps: Spacing) -> tuple[Sites, ...]:
    """Find the outline sites of both maps and their distances to the other map's outline."""
    sides = []
    for labels in np.array(pair[:2], np.int32):
        around = np.pad(labels, 1, constant_values=-1)
        if outline == "side":
            around = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
        sides.append((outlines.rims if outline == "rim" else outlines.corners)(around, pair.n))
    # Length of the contour within 2 x 2 pixels, for each code of `outlines.corners`. The contour
    # joins the midpoints of the edges between unequal pixels: it is half a diagonal long if one
    # pixel differs, one step if two neighbours do, two half diagonals if two opposite pixels do.
    half = 0.5 * math.sqrt(steps[0] * steps[0] + steps[1] * steps[1])
    lengths = np.full(16, half)
    lengths[[0b0000, 0b1111]] = 0.0
    lengths[[0b1100, 0b0011]], lengths[[0b1010, 0b0101]] = steps[1], steps[0]
    lengths[[0b1001, 0b0110]] = 2 * half
    sites = []
    for (start, rows, cols, *code), other in zip(sides, sides[::-1], strict=True):
        distance = np.sqrt(distances.nearest(start, rows, cols, *other[:3], *steps))
        length = lengths[code[0]] if code else np.zeros(rows.size)
        sites.append(Sites(start, distance, length))
    return tuple(sites)


def pixel_distances(a: Map, b: Map) -> F8:
    """Compute the distance from each pixel of `a`, row by row, to the nearest pixel of `b`.

    Distances are inf if `b` is empty.
    """
    (a_rows, a_cols), (b_rows, b_cols) = (np.array(np.nonzero(drawn), np.int32) for drawn in (a, b))
    starts = [np.array([0, rows.size]) for rows in (a_rows, b_rows)]
    sites = starts[0], a_rows, a_cols, starts[1], b_rows, b_cols
    return np.sqrt(distances.nearest(*sites, *PIXELS))


def _shell_width(shape: tuple[int, ...], size: float) -> int:
    """Return the width in pixels of the boundary of Boundary IoU.

    A `size` below 1 is a fraction of the diagonal, rounded, at least one pixel; a larger one is the
    width itself.
    """
    if not 0 < size < math.inf:
        raise DataError(f"boundary width {size}: expected a fraction of the diagonal, or pixels")
    return int(size) if size >= 1 else max(1, round(size * math.hypot(*shape)))


def davis_radius(shape: tuple[int, ...], bound: float) -> float:
    """Return the radius of DAVIS' F: ceil(bound x diagonal), or `bound` itself if at least 1."""
    return float(bound) if bound >= 1 else float(math.ceil(bound * math.hypot(*shape)))


def iou(counts: Map, _: float = 0.0, divide: Callable[..., F8] = ratio) -> F8:
    """Compute intersection over union from pixels (..., 3): common, of pred, of gt.

    `divide` says what 0/0 gives; by default 0.
    """
    return divide(counts[..., 0], counts[..., 1] + counts[..., 2] - counts[..., 0])


def _dice(counts: I8, _: float) -> F8:
    """Compute Dice from pixels (n, 3): common, of pred, of gt."""
    return ratio(2 * counts[:, 0], counts[:, 1] + counts[:, 2])


def _f_within(sides: _Sides, radius: float) -> F8:
    """Compute F from the shares of both outlines that lie within `radius` of the other outline."""
    return f_measure(*(ratio(s.sums(s.distance <= with_tolerance(radius)), s.n) for s in sides))


def _fom(sides: _Sides, alpha: float) -> F8:
    """Compute Pratt's figure of merit."""
    pred, gt = sides
    merit = pred.sums(1.0 / (1.0 + alpha * pred.distance * pred.distance))
    return ratio(merit, np.maximum(pred.n, gt.n))


def _hausdorff(definition: str, sides: _Sides, percent: float) -> F8:
    """Compute a percentile of each label's Hausdorff distance, NaN if one outline is empty.

    `definition` is "directed", "pooled" or "area", the endings of the names in `TABLE`.
    """
    q = given_number(percent, "percent", 0, 100) / 100
    quantile: Callable[..., float] = _length_quantile if definition == "area" else _quantile
    distances_of = np.full(sides[0].n.size, np.nan)
    for k in np.flatnonzero((sides[0].n > 0) & (sides[1].n > 0)).tolist():
        parts = [slice(*s.start[k : k + 2]) for s in sides]
        lists = [(s.distance[part], s.length[part]) for s, part in zip(sides, parts, strict=True)]
        if definition == "pooled":
            lists = [(np.concatenate([lists[0][0], lists[1][0]]), lists[0][1])]
        distances_of[k] = max(quantile(*sites, q) for sites in lists)
    return distances_of


def _quantile(distance: F8, _: F8, q: float) -> float:
    """Interpolate linearly between the two nearest ranks; numpy adds in another order."""
    rank = q * (distance.size - 1)
    low, high = math.floor(rank), math.ceil(rank)
    parts = np.partition(distance, (low, high))
    return float(parts[low] + (rank - low) * (parts[high] - parts[low]))


def _length_quantile(distance: F8, length: F8, q: float) -> float:
    """Return the smallest distance within which at least the share q of the length lies.

    Sites are sorted by (distance, length) and summed by numpy, as in surface-distance: if a share
    equals q up to the last bit, another order of the sums would choose another distance.
    """
    order = np.lexsort((length, distance))
    share = np.cumsum(length[order]) / np.sum(length[order])
    return float(distance[order[min(int(np.searchsorted(share, q)), order.size - 1)]])


def _assd(mean: bool, sides: _Sides, _: float) -> F8:
    """Compute the average surface distance: the mean of two means, or of all distances."""
    return _of_both([s.sums(s.distance) for s in sides], [s.n for s in sides], mean)


def _nsd(form: str, sides: _Sides, tolerance: float) -> F8:
    """Compute NSD from contour lengths ("area"), from site counts ("counts"), or as the mean of
    the shares of the two outlines ("mean")."""
    lengths = [s.length if form == "area" else np.ones(s.length.size) for s in sides]
    both = [*zip(sides, lengths, strict=True)]
    near = [s.sums((s.distance <= with_tolerance(tolerance)) * length) for s, length in both]
    return _of_both(near, [s.sums(length) for s, length in both], form == "mean")


def _of_both(part: list[F8], whole: Sequence[F8 | I8], mean: bool) -> F8:
    """Return the mean of part/whole over the two outlines, or the ratio of their sums."""
    if mean:
        return (ratio(part[0], whole[0]) + ratio(part[1], whole[1])) / 2
    return ratio(part[0] + part[1], whole[0] + whole[1])


def skeleton_pixels(pred: Map, gt: Map, n_labels: int) -> I8:
    """Count the skeleton pixels of every label in two maps (H, W) of labels, -1 for none.

    Returns
    -------
    array
        (n_labels, 2, 2): of the prediction and of the ground truth, the pixels of the skeleton that
        have the same label in the other map, and all of them.
    """
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    counts = []
    for labels, other in ((pred, gt), (gt, pred)):
        skeletons = np.full_like(labels, -1)
        for label, box in enumerate(find_objects(labels + 1, n_labels)):
            if box:
                skeletons[box][skeletonize(labels[box] == label)] = label
        drawn = skeletons >= 0
        inside = drawn & (skeletons == other)
        counts.append([np.bincount(skeletons[on], minlength=n_labels) for on in (inside, drawn)])
    return np.array(counts, np.int64).transpose(2, 0, 1)


def cldice(skeletons: Map) -> F8:
    """Return clDice of `skeleton_pixels` (..., 2, 2), NaN where neither mask has a skeleton."""
    return defined_f(defined_ratio(skeletons[..., 0], skeletons[..., 1]))


# name -> (what is compared, see `Compared.drawn`; the function that computes each label's value
# from what is compared and a size; the default size; whether the measure is a distance, and so
# undefined or infinite for an empty mask)
TABLE: dict[str, tuple[str, Callable[[Any, float], F8], float, bool]] = {
    "iou": ("areas", iou, 0.0, False),
    "dice": ("areas", _dice, 0.0, False),
    "biou": ("shells", iou, 0.02, False),
    "biou-min": ("shells", iou, 0.02, False),
    "f": ("side in pixels", _f_within, 0.008, False),
    "bf": ("rim in pixels", _f_within, 0.0075, False),
    "hd": ("rim", lambda sides, _: _hausdorff("directed", sides, 100), 0.0, True),
    "hd%-pooled": ("rim", partial(_hausdorff, "pooled"), 95.0, True),
    "hd%-directed": ("rim", partial(_hausdorff, "directed"), 95.0, True),
    "hd%-area": ("corner", partial(_hausdorff, "area"), 95.0, True),
    "assd-pooled": ("rim", partial(_assd, False), 0.0, True),
    "assd-directed": ("rim", partial(_assd, True), 0.0, True),
    "nsd-area": ("corner", partial(_nsd, "area"), 1.0, False),
    "nsd-counts": ("rim", partial(_nsd, "counts"), 1.0, False),
    "nsd-mean": ("rim", partial(_nsd, "mean"), 1.0, False),
    "fom": ("rim in pixels", _fom, 1 / 9, False),
    "trimap": ("trimap", iou, 3.0, False),
    "cldice": ("skeletons", lambda skeletons, _: cldice(skeletons), 0.0, False),
}


def values_of(c: Compared, name: str, size: float, empty: str) -> F8:
    """Compute one measure of `TABLE` for each label; `empty` says what empty masks give."""
    what, value_of, _, is_distance = TABLE[name]
    drawn = c.drawn(what, size)
    if name == "f":
        size = davis_radius(c.pair.shape, size)
    elif name == "bf" and size < 1:
        size *= c.pair.diagonal()
    values = value_of(drawn, size)
    if name == "biou-min":
        values = np.minimum(values, iou(c.areas))
    if isinstance(drawn, tuple):
        n_pred, n_gt = (sites.n for sites in drawn)
    else:  # pixels of masks, (n, 3), or of skeletons, (n, 2, 2)
        n_pred, n_gt = drawn[..., 1].T if what == "skeletons" else drawn.T[1:3]
    is_empty = (n_pred == 0) | (n_gt == 0)
    if not is_empty.any():
        return values
    both, one, _ = CONVENTIONS[empty]
    for_one = c.pair.diagonal(c.spacing) if one[is_distance] is None else one[is_distance]
    values = np.where(is_empty, for_one, values)
    return np.where((n_pred == 0) & (n_gt == 0), both[is_distance], values)


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
        (H, W) masks, or integer label maps if `classes` is given.
    size : float, optional
        The width, radius, percentile or tolerance of the measure, if it has one.
    classes : int, optional
        Number of labels, 0 .. classes - 1.
    ignore : int or tuple of int, optional
        Labels of void pixels of the ground truth; these pixels are cleared in both maps.
    spacing : tuple of float
        Row and column step; distances and tolerances are in its unit.
    empty : str
        What empty masks give, a name of `CONVENTIONS`; the default leaves them out (NaN).

    Returns
    -------
    float or array
        One number for masks, f8 (classes,) for label maps.

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
    usual = TABLE[given_word(name, "measure", TABLE)][2]
    given_word(empty, "empty", CONVENTIONS)
    size = usual if size is None else given_number(size, f"size of {name}", 0, math.inf)
    ignored = () if ignore is None else listed_values(ignore)
    c = Compared(as_pair(pred, gt, classes, ignored), spacing)
    values = values_of(c, name, size, empty)
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
        """Compute the measure of two masks, or of every label; the arguments are `measure`'s."""
        settings.setdefault("empty", self.empty)
        return measure(self.name, pred, gt, size, classes=classes, **settings)
