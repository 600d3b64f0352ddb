"""ROC and PR space: conversion, convex hull, interpolation, dominance and crossings of curves.

With P positives and N negatives a point is a pair of counts (TP, FP), which ROC and PR space show
in two ways. A straight line in ROC space is a straight line of counts, and a hyperbola in PR space.
So a curve is above another in one space exactly if it is in the other. lines="straight" joins PR
points by straight lines instead, as printed figures do.
Source: Davis and Goadrich, The relationship between precision-recall and ROC curves (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, given_word
from bsdsbench.curves.samples import above_zero, columns, counts_from_rates, defined
from bsdsbench.errors import DataError
from bsdsbench.scores.ratios import defined_ratio, ratio

Space = Literal["roc", "pr"]
LineShape = Literal["counts", "straight"]
# Which of two curves dominates
Relation = Literal["first", "second", "equal", "neither"]
# Relative differences of interpolated heights below this are rounding
_TOLERANCE = 1e-12
# A curve: (fpr, tpr) in ROC space, (precision, recall) in PR space
Curve: TypeAlias = Sequence[ArrayLike]


class PRPoints(NamedTuple):
    """Points of a PR curve, float64 (K,). Recall does not fall. Unpacks as precision, recall."""

    precision: F8
    recall: F8


class ROCPoints(NamedTuple):
    """Points of a ROC curve, float64 (K,). Neither rate falls. Unpacks as fpr, tpr."""

    fpr: F8
    tpr: F8


def roc_to_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """Convert ROC points to PR points. The precision at (0, 0) is 0/0, which gives NaN.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, float64 (K,).
    positives, negatives : float
        Number of samples of each class.

    Raises
    ------
    ShapeError, DataError
        If the lengths differ; for rates outside [0, 1] or totals that are not above 0.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc_to_pr([0.1], [1.0], 10, 100).precision.tolist()
    [0.5]
    """
    x, y = columns("share", fpr=fpr, tpr=tpr)
    tp, fp = y * above_zero(positives, "positives"), x * above_zero(negatives, "negatives")
    return PRPoints(defined_ratio(tp, tp + fp), y)


def pr_to_roc(
    precision: ArrayLike, recall: ArrayLike, positives: float, negatives: float
) -> ROCPoints:
    """Convert PR points to ROC points: FP = TP (1/precision - 1).

    At recall 0 any FP is possible, which gives NaN. The conventional point (recall 0, precision 1)
    becomes (0, 0).

    Parameters
    ----------
    precision, recall : array_like
        float64 (K,).
    positives, negatives : float
        Number of samples of each class.

    Raises
    ------
    DataError
        As `roc_to_pr` does, and for a point that is impossible with these totals: precision 0 at
        recall > 0, or more false positives than negatives.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.pr_to_roc([0.5], [1.0], 10, 100).fpr.tolist()
    [0.1]
    """
    # `roc_to_pr` gives NaN at (0, 0), where the precision does not matter
    p, r = columns("share", precision=np.nan_to_num(precision), recall=recall)
    n_positive, n_negative = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    with np.errstate(divide="ignore", invalid="ignore"):
        fpr = n_positive * r * (1 / p - 1) / n_negative
    is_empty = r == 0
    fpr[is_empty] = np.where(p[is_empty] == 1, 0.0, np.nan)
    # 1 + 1e-9: a rounded precision must not make full recall impossible
    is_impossible = ~is_empty & ~(fpr <= 1 + 1e-9)
    if is_impossible.any():
        k = int(is_impossible.argmax())
        raise DataError(
            f"precision {p[k]:g} at recall {r[k]:g}: means a false positive rate of {fpr[k]:g} "
            f"with {positives:g} positives and {negatives:g} negatives, expected at most 1"
        )
    return ROCPoints(np.minimum(fpr, 1), r)


def roc_convex_hull(fpr: ArrayLike, tpr: ArrayLike) -> ROCPoints:
    """Return the corners of the upper convex hull of ROC points and of (0, 0) and (1, 1).

    Without points the hull is the chance line. Raises as `roc_to_pr` does. Andrew's monotone chain.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, float64 (K,), in any order.

    Returns
    -------
    ROCPoints
        Corners from (0, 0) to (1, 1). No three are on a line, up to rounding.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc_convex_hull([0.5, 0.6], [0.8, 0.1]).tpr.tolist()
    [0.0, 0.8, 1.0]
    """
    x, y = columns("share", fpr=fpr, tpr=tpr)
    return ROCPoints(*_hull(x, y, 1.0, 1.0))


def achievable_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """Return the best PR curve that mixtures of ROC points achieve: the ROC hull in PR space.

    Without points it is the chance line. Raises as `roc_to_pr` does. Source: section 3 of the
    paper.

    Parameters
    ----------
    fpr, tpr, positives, negatives : as in `roc_to_pr`
        The points and the totals.

    Returns
    -------
    PRPoints
        Points at each corner of the hull and at each whole TP between them, from recall 0, with
        the first corner's precision, to (recall 1, precision P/(P + N)).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> best = curves.achievable_pr([0.5], [0.8], 10, 10)
    >>> float(best.recall[-1]), float(best.precision[-1])
    (1.0, 0.5)
    """
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    x, y = columns("share", fpr=fpr, tpr=tpr)
    fp, tp = _hull(counts_from_rates(x, n), counts_from_rates(y, p), n, p)
    return interpolate_pr(tp, fp, p)


def interpolate_pr(tp: ArrayLike, fp: ArrayLike, positives: float) -> PRPoints:
    """Interpolate points (TP, FP) linearly in counts, at each whole TP between them.

    Between A and B, FP(t) = FP_A + (FP_B - FP_A)/(TP_B - TP_A) (t - TP_A). A start at TP = FP = 0
    has the precision of the next point, which is the limit along the line. Source: section 4.

    Parameters
    ----------
    tp, fp : array_like
        Counts of shape (K,) along a curve, both non-decreasing.
    positives : float
        P, by which TP is divided to give the recall.

    Returns
    -------
    PRPoints
        The given and the new points, by rising recall; empty without points.

    Raises
    ------
    ShapeError, DataError
        If the lengths differ; for counts that fall or a total that is not above 0.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.interpolate_pr([5, 10], [5, 30], 20).recall.tolist()
    [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    """
    total = above_zero(positives, "positives")
    t, f = insert_whole_tp(tp, fp)
    if t.size == 0:
        return PRPoints(t, f)
    precision = ratio(t, t + f)
    start = int(np.count_nonzero(t + f == 0))
    precision[:start] = precision[start] if start < t.size else 1.0
    return PRPoints(precision, t / total)


class _Counted(NamedTuple):
    """Counts along a curve, float64 (K,). Neither falls."""

    tp: F8
    fp: F8


def insert_whole_tp(tp: ArrayLike, fp: ArrayLike) -> _Counted:
    """Insert the points at each whole TP between counts along a curve, linear in counts."""
    a, b = columns("count", tp=tp, fp=fp)
    if a.size == 0:
        return _Counted(a, b)
    whole_tp = np.arange(np.floor(a[0]) + 1, np.ceil(a[-1]))
    new_tp = whole_tp[~np.isin(whole_tp, a)]
    k = np.searchsorted(a, new_tp, side="right") - 1
    slope = (b[k + 1] - b[k]) / (a[k + 1] - a[k])
    t, f = np.r_[a, new_tp], np.r_[b, b[k] + slope * (new_tp - a[k])]
    order = np.argsort(t, kind="stable")
    return _Counted(t[order], f[order])


class _Points(NamedTuple):
    """Points, float64 (K,) each."""

    x: F8
    y: F8


def _hull(x: F8, y: F8, right: float, top: float) -> _Points:
    """Return the upper convex hull of points and of (0, 0) and (right, top), by rising x."""
    from bsdsbench.kernels.hull import upper_hull

    x, y = np.r_[0, x, right], np.r_[0, y, top]
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    corners = np.empty(x.size, np.int64)
    corners = corners[: upper_hull(x, y, corners)]
    return _Points(x[corners], y[corners])


def dominates(
    a: Curve,
    b: Curve,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: LineShape = "counts",
) -> bool:
    """Return True if curve `a` is nowhere below curve `b`. A curve dominates itself.

    ROC curves are completed by (0, 0) and (1, 1). PR curves keep their first precision down to
    recall 0, and are compared up to the smaller of both last recalls. A curve dominates another in
    ROC space exactly if it does in PR space (Davis and Goadrich 2006, theorem 3.2).

    Parameters
    ----------
    a, b : pair of array_like
        (fpr, tpr) in ROC space, (precision, recall) in PR space. The undefined end of a converted
        curve (NaN beside 0) is left out with an InputWarning.
    space : str
        "roc" or "pr".
    within : tuple of float, float
        The range of FPR (ROC) or recall (PR) in which the curves are compared.
    lines : str
        In PR space, "counts" (count-linear, which is correct) or "straight".

    Raises
    ------
    ShapeError, DataError
        For PR curves without points, curves that turn back, a range without length.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.dominates(([0, 1], [0.5, 1]), ([0, 1], [0, 1]))
    True
    """
    heights = _heights(a, b, space, within, lines)
    return bool((heights.difference >= 0).all())


def crossings(
    a: Curve,
    b: Curve,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: LineShape = "counts",
) -> ROCPoints | PRPoints:
    """Return the crossings of curves `a` and `b` from left to right. Raises as `dominates` does.

    Curves that touch without changing sides do not cross. If curves share a stretch before they
    change sides, the first point of the stretch is returned.

    Parameters
    ----------
    a, b, space, within, lines : as in `dominates`
        The curves and how they are compared.

    Returns
    -------
    ROCPoints or PRPoints
        The points of that space, float64 (K,).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.crossings(([0, 0.5, 1], [0, 0.5, 1]), ([0, 0.5, 1], [0, 0.8, 1])).fpr.size
    0
    """
    x, ya, yb, difference = _heights(a, b, space, within, lines)
    sign = np.sign(difference)
    crossed = []
    for i, j in pairwise(np.flatnonzero(sign).tolist()):
        if sign[i] == sign[j]:
            continue
        if j > i + 1:
            crossed.append((x[i + 1], ya[i + 1]))
        elif x[i] == x[j]:
            # At least one curve is vertical: take the first height that both have
            first_shared = min if ya[j] < ya[i] or yb[j] < yb[i] else max
            crossed.append((x[i], first_shared(ya[i], yb[i])))
        else:
            weight = difference[i] / (difference[i] - difference[j])
            crossed.append((x[i] + weight * (x[j] - x[i]), ya[i] + weight * (ya[j] - ya[i])))
    points = np.array(crossed, np.float64).reshape(-1, 2)
    u, v = points[:, 0], points[:, 1]
    if space == "roc":
        return ROCPoints(u, v)
    return PRPoints(v if lines == "straight" else u / (u - v), u)


def relation(a: Curve, b: Curve, *, space: Space = "roc") -> Relation:
    """Return which of two curves dominates the other, if any. Raises as `dominates` does."""
    difference = _heights(a, b, space, (0.0, 1.0), "counts").difference
    is_above, is_below = bool((difference > 0).any()), bool((difference < 0).any())
    if is_above and is_below:
        return "neither"
    return "first" if is_above else "second" if is_below else "equal"


class _Heights(NamedTuple):
    """The heights of two curves on both sides of each corner, (2 corners - 2,) each.

    Entry 2i is just right of corner i, entry 2i + 1 just left of the next corner.
    """

    x: F8
    a: F8
    b: F8
    difference: F8  # a - b, 0 within rounding


def _heights(
    a: Curve, b: Curve, space: Space, within: tuple[float, float], lines: LineShape
) -> _Heights:
    """Compute the heights of two curves at all corners in the range `within`. Raises DataError."""
    given_word(space, "space", get_args(Space))
    given_word(lines, "lines", get_args(LineShape))
    polylines = [_polyline(curve, space, lines) for curve in (a, b)]
    low, high = within
    if space == "pr":
        high = min(high, *(line.x[-1] for line in polylines))
    if not 0 <= low < high <= 1:
        raise DataError(f"within {within}: expected a range with length inside both curves")
    corners = np.unique(np.concatenate([line.x for line in polylines]))
    grid = np.r_[low, corners[(corners > low) & (corners < high)], high]
    heights = []
    for x, y in polylines:
        height = np.interp(grid, x, y)
        first = np.searchsorted(x, grid, side="left")
        last = np.searchsorted(x, grid, side="right") - 1
        left = np.where(x[first] == grid, y[first], height)
        right = np.where(x[last] == grid, y[last], height)
        heights.append(np.ravel(np.c_[left, right])[1:-1])
    scale = max(1.0, *(float(np.abs(h).max()) for h in heights))
    difference = heights[0] - heights[1]
    difference[np.abs(difference) <= _TOLERANCE * scale] = 0
    return _Heights(np.repeat(grid, 2)[1:-1], heights[0], heights[1], difference)


def _polyline(curve: Curve, space: Space, lines: LineShape) -> _Points:
    """Return the corners of a curve in a plane in which it is straight between them.

    x does not fall. y is TPR in ROC space. In PR space y is precision, or -FP/P for count-linear
    curves. The better of two curves is higher. Raises DataError for a curve that turns back.
    """
    names = ("fpr", "tpr") if space == "roc" else ("recall", "precision")
    if space == "roc":  # conversion to ROC space may leave FPR undefined at an end
        x_values, y_values = defined(curve[0], curve[1], "fpr")
    else:  # conversion to PR space may leave precision undefined at an end
        y_values, x_values = defined(curve[0], curve[1], "precision")
    x, y = columns("number", **{names[0]: x_values, names[1]: y_values})
    if x.size and x[0] > x[-1]:
        x, y = x[::-1], y[::-1]
    if space == "roc":
        x, y = np.r_[0, x, 1], np.r_[0, y, 1]
    else:
        x, y = x[x > 0], y[x > 0]
        if x.size == 0 or (y <= 0).any():
            raise DataError("precision: expected above 0 wherever recall is above 0, at least once")
        if lines == "straight":
            x, y = np.r_[0, x], np.r_[y[0], y]
        else:
            x, y = np.r_[0, x], np.r_[0, -x * (1 / y - 1)]
    if (np.diff(x) < 0).any() or x[-1] > 1:  # x[0] is 0
        raise DataError(f"{names[0]}: expected 0..1, not turning back")
    return _Points(x, y)
