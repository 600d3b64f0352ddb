"""Every measure of two masks, or of every label of two label maps, in the table `TABLE`.

Three kinds of outline are in use, and give different numbers:

- "rim": pixels of the mask with one of the four neighbours outside the mask or the image
  (scipy, medpy, MONAI, torchmetrics, panoptica).
- "side": pixels that differ from the one to the right, below, or below-right; pixels outside
  the image are equal (seg2bmap: DAVIS and everything that uses its F).
- "corner": corners of pixels where 2 x 2 of them are neither all in nor all out, each with the
  length of contour that crosses there (DeepMind's surface-distance).

Distances are Euclidean, to the outline of the same label in the other map.
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
from bsdsbench.kernels.distances import distances, erosion
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.contour.pairs import CONVENTIONS, LabelPair, as_pair
from bsdsbench.metrics.label_maps import Overlaps, find_overlaps
from bsdsbench.protocol.fields import listed_values
from bsdsbench.scores.ratios import defined_f, defined_ratio, f_measure, ratio

Spacing = tuple[float, float]
PIXELS = (1.0, 1.0)


class OutlinePoints(NamedTuple):
    """The points (pixels or corners of pixels) of the outlines of n labels in one map."""

    start: I8  # (n + 1,); the points of label k are start[k] : start[k + 1] of the other arrays
    label: I8  # (points,)
    distance: F8  # (points,), to the label's outline in the other map; inf if it has none there
    length: F8  # (points,), length of contour at the point; 0 for the outline "rim"

    @property
    def n(self) -> I8:
        """The number of points of each label, int64 (n,)."""
        return np.diff(self.start)

    def sums(self, values: Map) -> F8:
        """Sum `values` (points,) over the points of each label, float64 (n,)."""
        return np.bincount(self.label, values, self.start.size - 1).astype(np.float64)


BothOutlines = tuple[OutlinePoints, OutlinePoints]  # of pred and of gt


class Compared:
    """Two label maps to compare. It keeps what several measures need, so it is computed only once.

    `spacing` holds the distance between adjacent rows and that between adjacent columns. Raises
    DataError unless both are finite and above 0.
    """

    def __init__(self, pair: LabelPair, spacing: Spacing = PIXELS) -> None:
        if len(spacing) != 2 or not all(0 < s < math.inf for s in spacing):
            raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
        self.pair, self.spacing = pair, (float(spacing[0]), float(spacing[1]))
        self._outlines: dict[tuple[str, Spacing], BothOutlines] = {}
        self._shells: dict[int, I8] = {}

    @cached_property
    def areas(self) -> I8:
        """The number of pixels of each label in both maps, in pred and in gt, int64 (n, 3)."""
        if self.pair.n == 1:  # for masks this takes a tenth of the time
            in_pred, in_gt = self.pair.pred >= 0, self.pair.gt >= 0
            return np.array([[np.count_nonzero(m) for m in (in_pred & in_gt, in_pred, in_gt)]])
        return self._sum_areas(self._overlaps.pixels)

    @cached_property
    def _overlaps(self) -> Overlaps:
        """The pairs of labels (in pred, in gt) that occur at a pixel."""
        return find_overlaps(self.pair.pred, self.pair.gt)

    def _sum_areas(self, pixels: I8) -> I8:
        """Sum the pixels of each label, int64 (n, 3), with the columns of `areas`.

        `pixels` holds the number of pixels to count for each pair of labels in `_overlaps`.
        """
        pred, gt = self._overlaps.pred, self._overlaps.gt
        in_both = np.where(pred == gt, pred, -1)
        # Labels are counted from index 1 on: index 0 is for -1 (no label), and is dropped
        labels_of = (in_both, pred, gt)
        sums = [np.bincount(labels + 1, pixels, self.pair.n + 1)[1:] for labels in labels_of]
        return np.stack(sums, axis=1).astype(np.int64)

    def shells(self, size: float) -> I8:
        """Count the pixels of each label's inner boundary, int64 (n, 3), with columns of `areas`.

        The inner boundary is what repeated erosion with a 3 x 3 square removes. `size` is its
        width, see `_shell_width`.
        """
        width = _shell_width(self.pair.shape, size)
        if width not in self._shells:
            pred, gt, n, _ = self.pair
            if n == 1:  # for masks this takes a fifth of the time
                self._shells[width] = erosion.mask_shells(pred >= 0, gt >= 0, width)
            else:
                self._shells[width] = erosion.label_shells(pred, gt, n, width)
        return self._shells[width]

    def outlines(self, kind: str, steps: Spacing) -> BothOutlines:
        """Return the outlines of pred and of gt, with the distance of each point to the other one.

        kind: "rim", "side" or "corner", see the top of this module.
        steps: the distances between rows and between columns, in the unit of the result.
        """
        if (kind, steps) not in self._outlines:
            self._outlines[kind, steps] = _find_outlines(self.pair, kind, steps)
        return self._outlines[kind, steps]

    def _trimap_areas(self, width: float) -> I8:
        """Count `areas`, but only among the pixels at most `width` away from another label of gt.

        Raises DataError if `width` is not positive and finite.
        """
        if not 0 < width < math.inf:
            raise DataError(f"trimap width {width}: expected pixels above 0")
        near = self._squared_distance_to_other_label <= with_tolerance(width * width)
        overlap_of_pixel = self._overlaps.of_pixel[near]
        return self._sum_areas(np.bincount(overlap_of_pixel, minlength=self._overlaps.pixels.size))

    @cached_property
    def _squared_distance_to_other_label(self) -> F8:
        """The squared distance of each pixel to the nearest one of another gt label, (H, W)."""
        return distances.to_other_label(self.pair.gt.astype(np.int32), *PIXELS)

    def find(self, what: str, size: float) -> Any:
        """Return the counts or outlines that a measure of `TABLE` compares.

        `what` is one of these names:

        - "areas": the number of pixels of each label in both maps, in pred and in gt, int64 (n, 3)
        - "shells": the same, but only pixels of inner boundaries, whose width is `size`
        - "trimap": the same, but only pixels at most `size` away from another label of gt
        - "skeletons": int64 (n, 2, 2), the counts of `skeleton_pixels`
        - "rim", "side", "corner": the outlines of pred and of gt, with distances in the unit of
          `spacing`, or in pixels if " in pixels" is appended, as in "rim in pixels"

        `size` is not used for the other names.
        """
        if what == "areas":
            return self.areas
        if what == "shells":
            return self.shells(size)
        if what == "trimap":
            return self._trimap_areas(size)
        if what == "skeletons":
            return skeleton_pixels(self.pair.pred, self.pair.gt, self.pair.n)
        kind, _, in_pixels = what.partition(" ")
        return self.outlines(kind, PIXELS if in_pixels else self.spacing)


def _find_outlines(pair: LabelPair, kind: str, steps: Spacing) -> BothOutlines:
    """Find the outlines of both maps, and the distance of each point to the other map's outline.

    kind: "rim", "side" or "corner", see the top of this module. For "rim" and "corner", everything
        beyond the image is outside all labels. For "side", the last row and column are repeated.
    steps: the distances between rows and between columns.
    """
    traced = []  # of pred, of gt
    for labels in (pair.pred.astype(np.int32), pair.gt.astype(np.int32)):
        if kind == "side":
            padded = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
        else:
            padded = np.pad(labels, 1, constant_values=-1)
        trace = distances.rims if kind == "rim" else distances.corners
        traced.append(trace(padded, pair.n))
    length_of_window = _contour_lengths(steps)
    outlines = []
    for here, other in (traced, traced[::-1]):
        distance = np.sqrt(distances.nearest(here, other, *steps))
        length = np.zeros(distance.size) if kind == "rim" else length_of_window[here.codes]
        label = np.repeat(np.arange(pair.n), np.diff(here.start))
        outlines.append(OutlinePoints(here.start, label, distance, length))
    return outlines[0], outlines[1]


def _contour_lengths(steps: Spacing) -> F8:
    """Return the length of contour in a window of 2 x 2 pixels, for each of 16 patterns.

    The index of a pattern is the code of `distances.corners`: its bits 8, 4, 2, 1 are the upper
    left, upper right, lower left and lower right pixel. The contour joins the midpoints between
    neighbouring pixels that differ.
    """
    half_diagonal = 0.5 * math.sqrt(steps[0] * steps[0] + steps[1] * steps[1])
    lengths = np.full(16, half_diagonal)  # one pixel differs from the other three
    lengths[[0b0000, 0b1111]] = 0.0
    lengths[[0b1100, 0b0011]] = steps[1]  # the rows differ
    lengths[[0b1010, 0b0101]] = steps[0]  # the columns differ
    lengths[[0b1001, 0b0110]] = 2 * half_diagonal  # a chessboard
    return lengths


def pixel_distances(a: Map, b: Map) -> F8:
    """Compute the distance in pixels from each pixel of mask `a` to the nearest pixel of mask `b`.

    Returns float64, one value per pixel of `a` in raster order; all are inf if `b` is empty.
    """
    points = []
    for mask in (a, b):
        rows, cols = np.array(np.nonzero(mask), np.int32)
        points.append(distances.Outlines(np.array([0, rows.size]), rows, cols))  # a single label
    return np.sqrt(distances.nearest(points[0], points[1], *PIXELS))


def _shell_width(shape: tuple[int, ...], size: float) -> int:
    """Return the width in pixels of the inner boundary of Boundary IoU.

    A `size` below 1 is a fraction of the image diagonal. The width is rounded, halves to even, and
    is at least 1. A `size` of 1 or more is the width, rounded down. Raises DataError if `size` is
    not positive and finite.
    """
    if not 0 < size < math.inf:
        raise DataError(f"boundary width {size}: expected a fraction of the diagonal, or pixels")
    return int(size) if size >= 1 else max(1, round(size * math.hypot(*shape)))


def skeleton_pixels(pred: Map, gt: Map, n_labels: int) -> I8:
    """Count the skeleton pixels of every label in two label maps (H, W); -1 is no label.

    Returns int64 (n_labels, 2, 2). The second axis is the map, pred or gt. The third axis holds two
    numbers: the skeleton pixels that have the same label in the other map, and all of them.
    """
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    counts = []
    for labels, other in ((pred, gt), (gt, pred)):
        skeletons = np.full_like(labels, -1)
        for label, box in enumerate(find_objects(labels + 1, n_labels)):
            if box:  # None if the map lacks the label
                skeletons[box][skeletonize(labels[box] == label)] = label
        is_skeleton = skeletons >= 0
        is_inside = is_skeleton & (skeletons == other)
        counts.append(
            [np.bincount(skeletons[on], minlength=n_labels) for on in (is_inside, is_skeleton)]
        )
    return np.array(counts, np.int64).transpose(2, 0, 1)  # from (map, 2, label)


def davis_radius(shape: tuple[int, ...], bound: float) -> float:
    """Return the radius in pixels by DAVIS' rule.

    It is `bound` itself if that is at least 1, and otherwise ceil(bound x image diagonal).
    """
    return float(bound) if bound >= 1 else float(math.ceil(bound * math.hypot(*shape)))


def iou(counts: Map, divide: Callable[..., F8] = ratio) -> F8:
    """Compute intersection over union (...) from numbers of pixels (..., 3), as in `areas`.

    counts: pixels in both maps, in pred, and in gt, in the last axis.
    divide: the function that divides. 0/0 is 0 by default, and NaN with `defined_ratio`.
    """
    return divide(counts[..., 0], counts[..., 1] + counts[..., 2] - counts[..., 0])


def dice(counts: Map, divide: Callable[..., F8] = ratio) -> F8:
    """Compute Dice (...) from numbers of pixels (..., 3). The arguments are those of `iou`."""
    return divide(2 * counts[..., 0], counts[..., 1] + counts[..., 2])


def _f_within(outlines: BothOutlines, radius: float) -> F8:
    """Compute F (n,) from the shares of each outline's points within `radius` of the other one."""
    limit = with_tolerance(radius)
    precision, recall = (ratio(o.sums(o.distance <= limit), o.n) for o in outlines)
    return f_measure(precision, recall)


def _fom(outlines: BothOutlines, alpha: float) -> F8:
    """Compute Pratt's figure of merit of each label, (n,); 0/0 is 0.

    The figure of merit is the sum of 1 / (1 + alpha d^2) over the points of pred's outline, where d
    is a point's distance to gt's outline, divided by the larger outline's number of points.
    """
    pred, gt = outlines
    merit = pred.sums(1.0 / (1.0 + alpha * pred.distance * pred.distance))
    return ratio(merit, np.maximum(pred.n, gt.n))


def _hausdorff(definition: str, outlines: BothOutlines, percent: float) -> F8:
    """Compute a percentile of the Hausdorff distance of each label, float64 (n,).

    The result is NaN if either outline is empty. `definition` is one of

    - "directed": the percentile of each outline's distances, then the larger of the two
    - "pooled": the percentile of the distances of both outlines together
    - "area": for each outline, the distance within which `percent` of its length lies, then the
      larger of the two
    """
    share = given_number(percent, "percent", 0, 100) / 100
    pred, gt = outlines
    percentiles = np.full(pred.n.size, np.nan)
    for k in np.flatnonzero((pred.n > 0) & (gt.n > 0)).tolist():
        in_pred, in_gt = slice(*pred.start[k : k + 2]), slice(*gt.start[k : k + 2])
        of_pred, of_gt = pred.distance[in_pred], gt.distance[in_gt]
        if definition == "pooled":
            percentiles[k] = _quantile(np.concatenate([of_pred, of_gt]), share)
        elif definition == "directed":
            percentiles[k] = max(_quantile(of_pred, share), _quantile(of_gt, share))
        else:
            within_pred = _length_quantile(of_pred, pred.length[in_pred], share)
            within_gt = _length_quantile(of_gt, gt.length[in_gt], share)
            percentiles[k] = max(within_pred, within_gt)
    return percentiles


def _quantile(values: F8, q: float) -> float:
    """Return the quantile `q` in [0, 1] by linear interpolation between ranks.

    numpy.quantile is not used because its result can differ in the last bit.
    """
    rank = q * (values.size - 1)
    low, high = math.floor(rank), math.ceil(rank)
    ranked = np.partition(values, (low, high))
    return float(ranked[low] + (rank - low) * (ranked[high] - ranked[low]))


def _length_quantile(distance: F8, length: F8, q: float) -> float:
    """Return the smallest distance within which at least a share `q` of the contour lies.

    distance, length (points,): of each point of one outline.

    Points are sorted by (distance, length) and added by numpy, as surface-distance does. Where a
    share is equal to q but for the last bit, another order would lead to another distance.
    """
    order = np.lexsort((length, distance))
    share = np.cumsum(length[order]) / np.sum(length[order])
    first = int(np.searchsorted(share, q))  # the last share may be below 1 by rounding
    return float(distance[order[min(first, order.size - 1)]])


def _assd(directed: bool, outlines: BothOutlines, _: float) -> F8:
    """Compute the average surface distance of each label, (n,).

    If `directed`, the distances are averaged over the points of each outline, and then over the two
    outlines. Otherwise they are averaged over the points of both outlines together.
    """
    sums = [outline.sums(outline.distance) for outline in outlines]
    return _divide_outlines(sums, [outline.n for outline in outlines], directed)


def _nsd(unit: str, outlines: BothOutlines, tolerance: float) -> F8:
    """Compute normalised surface distance, (n,): the share of the outlines within `tolerance`.

    `unit` is "area" for the share of the length of both contours together, "counts" for the share
    of the points of both outlines together, or "mean" for the mean of each outline's share.
    """
    near, total = [], []
    for outline in outlines:
        weight = outline.length if unit == "area" else np.ones(outline.length.size)
        near.append(outline.sums((outline.distance <= with_tolerance(tolerance)) * weight))
        total.append(outline.sums(weight))
    return _divide_outlines(near, total, unit == "mean")


def _divide_outlines(sums: list[F8], totals: Sequence[F8 | I8], separately: bool) -> F8:
    """Divide sums over the points of two outlines by their totals, as arrays (n,); 0/0 is 0.

    If `separately`, each outline's sum is divided by its total, and the two ratios are averaged.
    Otherwise the sums and the totals of both outlines are added first.
    """
    if separately:
        return (ratio(sums[0], totals[0]) + ratio(sums[1], totals[1])) / 2
    return ratio(sums[0] + sums[1], totals[0] + totals[1])


def cldice(skeletons: Map) -> F8:
    """Compute clDice (...) from counts (..., 2, 2) of `skeleton_pixels`; NaN if both are empty."""
    return defined_f(defined_ratio(skeletons[..., 0], skeletons[..., 1]))


class _Definition(NamedTuple):
    """A measure of `TABLE`."""

    what: str  # the counts or outlines that are compared, a name of `Compared.find`
    value_of: Callable[[Any, float], F8]  # (what `find` returned, size) -> value of each label (n,)
    size: float  # the default
    is_distance: bool  # selects the distance or the overlap of a convention for empty masks


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
    "assd-pooled": _Definition("rim", partial(_assd, False), 0.0, True),
    "assd-directed": _Definition("rim", partial(_assd, True), 0.0, True),
    "nsd-area": _Definition("corner", partial(_nsd, "area"), 1.0, False),
    "nsd-counts": _Definition("rim", partial(_nsd, "counts"), 1.0, False),
    "nsd-mean": _Definition("rim", partial(_nsd, "mean"), 1.0, False),
    "fom": _Definition("rim in pixels", _fom, 1 / 9, False),
    "trimap": _Definition("trimap", lambda areas, _: iou(areas), 3.0, False),
    "cldice": _Definition("skeletons", lambda skeletons, _: cldice(skeletons), 0.0, False),
}


def label_values(compared: Compared, name: str, size: float, empty: str) -> F8:
    """Compute one measure for each label, float64 (n,).

    name: a key of `TABLE`.
    size: the size of the measure, as `measure` describes it.
    empty: a key of `CONVENTIONS`. This convention gives the value of labels of which one map or
        both have nothing to compare: no pixels, no outline or no skeleton.
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
    if isinstance(inputs, tuple):  # outlines
        n_pred, n_gt = inputs[0].n, inputs[1].n
    elif definition.what == "skeletons":
        n_pred, n_gt = inputs[:, 0, 1], inputs[:, 1, 1]
    else:  # areas
        n_pred, n_gt = inputs[:, 1], inputs[:, 2]
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
      smaller of Boundary IoU and IoU, used for AP and PQ.
    - "f": F of DAVIS, from the shares of both "side" outlines within ceil(size x diagonal) pixels,
      or `size` pixels if at least 1; default 0.008. DAVIS uses empty="perfect".
    - "bf": BF score, as "f" but from the "rim" outlines, within size x diagonal; default 0.0075.
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
      by the larger number of rim pixels; `size` is alpha, default 1/9.
    - "trimap": IoU among the pixels at most `size` (default 3) from another label of `gt`; a label
      without such pixels in either map counts as empty.
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
    DataError, ShapeError
        If the name is unknown, an array is no mask or label map, or a size is out of range; if the
        shapes differ.

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
    """The function `measure` with its name and its convention for empty masks already chosen."""

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
        """Compute the measure `name`. The arguments, and what is returned, are as in `measure`."""
        settings.setdefault("empty", self.empty)
        return measure(self.name, pred, gt, size, classes=classes, **settings)
