"""Distances between the outlines of masks, for all labels at once.

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import given_number
from bsdsbench.files.errors import DataError
from bsdsbench.kernels import distances as kernel
from bsdsbench.kernels import outlines, tallies
from bsdsbench.metrics.contour.pairs import F8, INF, LabelPair, as_pair, settle
from bsdsbench.scores.ratios import f_measure, ratio

Spacing = tuple[float, float]
PRATT_ALPHA = 1 / 9


class Distances(NamedTuple):
    """Both directions: sites of label k are [k] : [k + 1] of start; distance and contour length."""

    pred_start: NDArray[np.int64]
    pred: F8
    pred_length: F8
    gt_start: NDArray[np.int64]
    gt: F8
    gt_length: F8

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sites of each label, in pred and in gt."""
        return np.diff(self.pred_start), np.diff(self.gt_start)

    def present(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which labels have an outline, in pred and in gt."""
        n_pred, n_gt = self.counts()
        return n_pred > 0, n_gt > 0

    def each(self, tally: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
        """`tally(start, distance, *args)` of both directions."""
        return tally(self.pred_start, self.pred, *args), tally(self.gt_start, self.gt, *args)

    def within(self, limits: ArrayLike, *, lengths: bool = False) -> tuple[F8, F8]:
        """Sites (or contour length) with a distance up to each limit, (n, limits) each."""
        at = np.atleast_1d(np.asarray(limits, np.float64))
        weights = (self.pred_length, self.gt_length) if lengths else (None, None)
        pred, gt = (
            np.ones(d.size) if w is None else w
            for d, w in zip((self.pred, self.gt), weights, strict=True)
        )
        return (
            tallies.within(self.pred_start, self.pred, pred, at),
            tallies.within(self.gt_start, self.gt, gt, at),
        )


def distances(pair: LabelPair, outline: str = "rim", spacing: Spacing = (1.0, 1.0)) -> Distances:
    """Distance of every site of one outline to the other of its label; inf where it has none."""
    if len(spacing) != 2 or not all(0 < s < math.inf for s in spacing):
        raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
    pred, gt = (_outline(labels, pair.n, outline) for labels in (pair.pred, pair.gt))
    steps = float(spacing[0]), float(spacing[1])
    there = np.sqrt(kernel.nearest(*pred[:3], *gt[:3], *steps))
    back = np.sqrt(kernel.nearest(*gt[:3], *pred[:3], *steps))
    lengths = contour_lengths(steps)
    return Distances(pred[0], there, lengths[pred[3]], gt[0], back, lengths[gt[3]])


def _outline(labels: NDArray[np.int32], n: int, outline: str) -> tuple[Any, ...]:
    if outline == "rim":
        start, rows, cols = outlines.rims(np.pad(labels, 1, constant_values=-1), n)
        return start, rows, cols, np.zeros(rows.size, np.uint8)
    if outline == "side":
        return outlines.corners(np.pad(labels, ((0, 1), (0, 1)), mode="edge"), n)
    return outlines.corners(np.pad(labels, 1, constant_values=-1), n)


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


# What follows takes distances to one number per label; empty masks are settled by the callers.


def largest(d: Distances) -> F8:
    """Hausdorff distance: the largest distance of either direction."""
    pred, gt = d.each(tallies.totals, 0.0)
    return np.maximum(pred[:, 1], gt[:, 1])


def percentile(d: Distances, percent: float, definition: str) -> F8:
    """Hausdorff distance at a percentile, see `hausdorff_percent`."""
    if not 0 <= percent <= 100:
        raise DataError(f"percent {percent}: expected 0 to 100")
    if definition == "area":
        pred = _length_quantiles(d.pred_start, d.pred, d.pred_length, percent / 100)
        gt = _length_quantiles(d.gt_start, d.gt, d.gt_length, percent / 100)
        return np.maximum(pred, gt)
    found = tallies.quantiles(d.pred_start, d.pred, d.gt_start, d.gt, percent / 100)
    _known("definition", definition, ("pooled", "directed", "area"))
    return found[:, 2] if definition == "pooled" else np.maximum(found[:, 0], found[:, 1])


def _length_quantiles(start: NDArray[np.int64], distance: F8, length: F8, q: float) -> F8:
    """Each label's first distance up to which the share q of the length lies, (n,), else NaN.

    The order is that of (distance, length) and the sums are numpy's, as in surface-distance: where
    a share is q up to the last bit, another order is another distance.
    """
    out = np.full(start.size - 1, np.nan)
    for k in np.flatnonzero(np.diff(start)):
        here = slice(start[k], start[k + 1])
        order = np.lexsort((length[here], distance[here]))
        share = np.cumsum(length[here][order]) / np.sum(length[here][order])
        at = min(int(np.searchsorted(share, q)), order.size - 1)
        out[k] = distance[here][order[at]]
    return out


def mean_distance(d: Distances, definition: str) -> F8:
    """Mean distance: "pooled" over both lists, or the mean of the two "directed" means."""
    _known("definition", definition, ("pooled", "directed"))
    n_pred, n_gt = d.counts()
    pred, gt = (t[:, 0] for t in d.each(tallies.totals, 0.0))
    if definition == "pooled":
        return ratio(pred + gt, n_pred + n_gt)
    return (ratio(pred, n_pred) + ratio(gt, n_gt)) / 2


def surface_dice(d: Distances, tolerances: ArrayLike, form: str) -> F8:
    """NSD at each tolerance, (n, tolerances): "area", "counts" or "mean" (see `nsd`)."""
    _known("form", form, ("area", "counts", "mean"))
    pred, gt = d.within(tolerances, lengths=form == "area")
    if form == "area":
        n_pred, n_gt = (w[:, 0] for w in d.within(np.inf, lengths=True))
    else:
        n_pred, n_gt = (n.astype(np.float64) for n in d.counts())
    if form == "mean":
        return (ratio(pred, n_pred[:, None]) + ratio(gt, n_gt[:, None])) / 2
    return ratio(pred + gt, (n_pred + n_gt)[:, None])


def boundary_fs(d: Distances, radii: ArrayLike) -> F8:
    """F at each radius, (n, radii): precision and recall are the shares of sites within it."""
    n_pred, n_gt = d.counts()
    pred, gt = d.within(radii)
    return f_measure(ratio(pred, n_pred[:, None]), ratio(gt, n_gt[:, None]))


def merit(d: Distances, alpha: float) -> F8:
    """Pratt's figure of merit."""
    n_pred, n_gt = d.counts()
    pred = tallies.totals(d.pred_start, d.pred, float(alpha))
    return ratio(pred[:, 2], np.maximum(n_pred, n_gt))


def _known(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise DataError(f"{what} {value!r}: expected one of {', '.join(known)}")


def _measure(
    pred: ArrayLike,
    gt: ArrayLike,
    outline: str,
    of: Callable[[Distances, LabelPair], F8],
    options: tuple[int | None, int | None, Spacing, str],
    distance: bool,
) -> Any:
    """options : classes, ignore, spacing, empty; distance : the value is one, not a share"""
    classes, ignore, spacing, empty = options
    pair = as_pair(pred, gt, classes, ignore)
    d = distances(pair, outline, spacing)
    diagonal = pair.diagonal(spacing) if distance else None
    values = settle(of(d, pair), *d.present(), empty, diagonal)
    return float(values[0]) if classes is None else values


def hausdorff(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    spacing: Spacing = (1.0, 1.0),
    empty: str = "skip",
) -> Any:
    """Hausdorff distance of the rims of two masks, or of every label of two maps.

    Parameters
    ----------
    pred, gt : (H, W) masks, or integer label maps where `classes` is given
    classes : number of labels, 0 .. classes - 1
    ignore : label of the ground truth's pixels that are nothing; cleared on both sides
    spacing : row and column step; the result is in their unit
    empty : what empty masks give, a name of `CONVENTIONS`; the default leaves them out (NaN)

    Returns
    -------
    float, or f8 (classes,)

    Raises
    ------
    DataError or ShapeError for what is no mask or label map, or of unequal shapes.

    Notes
    -----
    The same as medpy.metric.binary.hd, MONAI, panoptica and torchmetrics' hausdorff_distance.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> hausdorff(a, b)
    4.0
    """
    options = (classes, ignore, spacing, empty)
    return _measure(pred, gt, "rim", lambda d, _: largest(d), options, distance=True)


def hausdorff_percent(
    pred: ArrayLike,
    gt: ArrayLike,
    percent: float = 95.0,
    *,
    definition: str = "pooled",
    classes: int | None = None,
    ignore: int | None = None,
    spacing: Spacing = (1.0, 1.0),
    empty: str = "skip",
) -> Any:
    """Hausdorff distance at a percentile, HD95 by default. Options as of `hausdorff`.

    definition : "pooled", the percentile of both lists of distances together (medpy, panoptica);
        "directed", the larger of the two lists' percentiles (MONAI); "area", the larger of the two
        distances up to which that share of the contour's length lies (surface-distance)

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 5, 9), bool)
    >>> a[1:4, 1:4] = b[1:4, 3:8] = True
    >>> hausdorff_percent(a, b, 50), hausdorff_percent(a, b, 50, definition="directed")
    (1.5, 2.0)
    """
    outline = "corner" if definition == "area" else "rim"
    options = (classes, ignore, spacing, empty)
    return _measure(
        pred, gt, outline, lambda d, _: percentile(d, percent, definition), options, distance=True
    )


def assd(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    definition: str = "pooled",
    classes: int | None = None,
    ignore: int | None = None,
    spacing: Spacing = (1.0, 1.0),
    empty: str = "skip",
) -> Any:
    """Average symmetric surface distance of the rims. Options as of `hausdorff`.

    definition : "pooled", the mean of both lists of distances together (medpy 0.5, MONAI with
        symmetric=True); "directed", the mean of the two lists' means (panoptica, older medpy)

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 1:7] = True
    >>> assd(a, b), assd(a, b, definition="directed")
    (1.25, 0.8333333333333334)
    """
    options = (classes, ignore, spacing, empty)
    return _measure(
        pred, gt, "rim", lambda d, _: mean_distance(d, definition), options, distance=True
    )


def nsd(
    pred: ArrayLike,
    gt: ArrayLike,
    tolerance: float,
    *,
    form: str = "area",
    classes: int | None = None,
    ignore: int | None = None,
    spacing: Spacing = (1.0, 1.0),
    empty: str = "skip",
) -> Any:
    """Normalized surface distance (surface Dice) at a tolerance, in [0, 1]. Options as `hausdorff`.

    form : "area", the share of both contours' length within the tolerance (surface-distance; MONAI
        with use_subvoxels); "counts", the share of both rims' pixels (MONAI); "mean", the mean of
        the two shares (panoptica)

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 1:7] = True
    >>> nsd(a, b, 1, form="counts"), nsd(a, b, 1, form="mean")
    (0.625, 0.75)
    """
    tolerance = given_number(tolerance, "tolerance", 0, INF)
    outline = "corner" if form == "area" else "rim"
    options = (classes, ignore, spacing, empty)
    return _measure(
        pred,
        gt,
        outline,
        lambda d, _: surface_dice(d, tolerance, form)[:, 0],
        options,
        distance=False,
    )


def bf_score(
    pred: ArrayLike,
    gt: ArrayLike,
    theta: float | None = None,
    *,
    strict: bool = False,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "skip",
) -> Any:
    """BF score: F of the rims' pixels that lie within `theta` pixels of the other rim.

    theta : pixels, default 0.75 % of the diagonal; strict : nearer than theta, not up to it.
    Other options as of `hausdorff`. Source: Csurka et al., BMVC 2013.
    """

    def of(d: Distances, pair: LabelPair) -> F8:
        limit = 0.0075 * pair.diagonal() if theta is None else given_number(theta, "theta", 0, INF)
        return boundary_fs(d, np.nextafter(limit, -np.inf) if strict else limit)[:, 0]

    options = (classes, ignore, (1.0, 1.0), empty)
    return _measure(pred, gt, "rim", of, options, distance=False)


def davis_radius(shape: tuple[int, int], bound: float = 0.008) -> float:
    """Radius in pixels of DAVIS' F: ceil(bound x diagonal), or `bound` itself from 1 on."""
    return float(bound) if bound >= 1 else float(math.ceil(bound * math.hypot(*shape)))


def davis_f(
    pred: ArrayLike,
    gt: ArrayLike,
    bound: float = 0.008,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "perfect",
) -> Any:
    """Boundary F of DAVIS, and with bound = 3, 5, 9, 12 the F at that many pixels.

    bound : below 1 a fraction of the diagonal, rounded up to pixels; from 1 on pixels
    empty : by default as in DAVIS, 1 where both have no boundary and 0 where one has none. Note
        that a mask that fills the image has no boundary here.

    Source: Perazzi et al., CVPR 2016; the official davis2017-evaluation, metrics.py.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 8, 9), bool)
    >>> a[2:5, 2:5] = b[2:5, 4:8] = True
    >>> round(davis_f(a, b, 1), 4), round(davis_f(a, b, 2), 4)
    (0.6154, 0.8333)
    """
    bound = given_number(bound, "bound", 0, INF)
    options = (classes, ignore, (1.0, 1.0), empty)
    return _measure(
        pred,
        gt,
        "side",
        lambda d, pair: boundary_fs(d, davis_radius(pair.shape, bound))[:, 0],
        options,
        distance=False,
    )


def pratt_fom(
    pred: ArrayLike,
    gt: ArrayLike,
    alpha: float = PRATT_ALPHA,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "skip",
) -> Any:
    """Pratt's figure of merit of the rims, in [0, 1]: sum 1/(1 + alpha d^2) / max(n_pred, n_gt).

    The sum goes over the rim pixels of `pred`, d pixels to the nearest of `gt`: the figure is not
    symmetric. Options as of `hausdorff`. Source: Abdou and Pratt, Proc. IEEE 1979.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 3, 9), bool)
    >>> a[1, 1:3] = b[1, 2:6] = True
    >>> round(pratt_fom(a, b), 3)
    0.475
    """
    alpha = given_number(alpha, "alpha", 0, INF)
    options = (classes, ignore, (1.0, 1.0), empty)
    return _measure(pred, gt, "rim", lambda d, _: merit(d, alpha), options, distance=False)
