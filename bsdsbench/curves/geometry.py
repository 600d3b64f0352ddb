"""ROC and PR space: conversion, convex hull, interpolation, dominance and crossings of curves.

Both spaces show the same counts (TP, FP). A straight line in ROC space is linear in the counts, and
a hyperbola in PR space. So a curve lies above another in one space exactly if it does in the other.
Source: Davis and Goadrich, The relationship between precision-recall and ROC curves (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, check_array, check_word, kind_of_value
from bsdsbench.curves.samples import (
    above_zero,
    check_columns,
    counts_from_rates,
    printed_step,
    refuse_small_total,
    without_undefined_ends,
)
from bsdsbench.errors import DataError
from bsdsbench.scores.ratios import defined_ratio, ratio

Space = Literal["roc", "pr"]
LineShape = Literal["counts", "straight"]
Relation = Literal["first", "second", "equal", "neither"]  # which of two curves dominates
_TOLERANCE = 1e-12  # heights that differ by at most this, relatively, count as equal
# A curve: (fpr, tpr) in ROC space, (precision, recall) in PR space
Curve: TypeAlias = Sequence[ArrayLike]


class PRPoints(NamedTuple):
    """Points of a PR curve, float64 (K,), by rising recall. Unpacks as precision, recall."""

    precision: Floats
    recall: Floats


class ROCPoints(NamedTuple):
    """Points of a ROC curve, float64 (K,). Both rates are non-decreasing. Unpacks as fpr, tpr."""

    fpr: Floats
    tpr: Floats


def roc_to_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """Convert ROC points to PR points. The precision at (0, 0) is 0/0 and becomes NaN.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, float64 (K,).
    positives, negatives : float
        Number of samples of each class.

    Examples
    --------
    >>> roc_to_pr([0.1], [1.0], 10, 100).precision.tolist()
    [0.5]
    """
    fp_rate, tp_rate = check_columns("share", fpr=fpr, tpr=tpr)
    tp = tp_rate * above_zero(positives, "positives")
    fp = fp_rate * above_zero(negatives, "negatives")
    return PRPoints(precision=defined_ratio(tp, tp + fp), recall=tp_rate)


def pr_to_roc(
    precision: ArrayLike, recall: ArrayLike, positives: float, negatives: float
) -> ROCPoints:
    """Convert PR points to ROC points.

    False positives are computed as FP = TP (1/precision - 1). At recall 0 they are unknown, so the
    FPR is NaN. As an exception, the conventional point (recall 0, precision 1) becomes (0, 0).

    Parameters
    ----------
    precision, recall : array_like
        Points, float64 (K,) each. At recall 0, precision may be NaN, as `roc_to_pr` returns it.
    positives, negatives : float
        Number of samples of each class.

    Raises
    ------
    DataError
        If a precision or recall is outside [0, 1], if a total is not above 0, or if a point is
        impossible: precision 0 at a recall above 0, or more false positives than negatives.

    Examples
    --------
    >>> pr_to_roc([0.5], [1.0], 10, 100).fpr.tolist()
    [0.1]
    """
    # `roc_to_pr` returns precision NaN at recall 0, where its value has no effect here
    known = np.nan_to_num(check_array(precision, "precision"))
    p, r = check_columns("share", precision=known, recall=recall)
    n_positive, n_negative = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    with np.errstate(divide="ignore", invalid="ignore"):
        fpr = n_positive * r * (1 / p - 1) / n_negative
        # By how much FPR may rise if precision and recall change by the last printed digit
        fpr_rounding = printed_step(p, r) * n_positive * (r / p + 1) / p / n_negative
    has_no_tp = r == 0
    fpr[has_no_tp] = np.where(p[has_no_tp] == 1, 0.0, np.nan)
    is_possible = has_no_tp | ((p > 0) & (fpr <= 1 + fpr_rounding))
    if not is_possible.all():
        k = int(is_possible.argmin())  # the first that is not
        raise DataError(
            f"precision {p[k]:g} at recall {r[k]:g}: means a false positive rate of {fpr[k]:g} "
            f"with {positives:g} positives and {negatives:g} negatives, expected at most 1"
        )
    return ROCPoints(np.minimum(fpr, 1), r)


def roc_convex_hull(fpr: ArrayLike, tpr: ArrayLike) -> ROCPoints:
    """Return the corners of the upper convex hull of ROC points, with (0, 0) and (1, 1) added.

    No three corners are collinear, up to rounding. Without points the hull is the chance line.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, float64 (K,), in any order.

    Examples
    --------
    >>> roc_convex_hull([0.5, 0.6], [0.8, 0.1]).tpr.tolist()
    [0.0, 0.8, 1.0]
    """
    x, y = check_columns("share", fpr=fpr, tpr=tpr)
    return ROCPoints(*_hull(x, y, 1.0, 1.0))


def achievable_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """Return the achievable PR curve of ROC points: their convex hull, converted to PR space.

    Randomly mixing the classifiers at these points can reach every point of this curve, but none
    above it (Davis and Goadrich 2006, section 3). Without points it is the chance line.

    Parameters
    ----------
    fpr, tpr, positives, negatives : as in `roc_to_pr`
        The points, and the number of samples of each class.

    Returns
    -------
    PRPoints
        The corners of the hull, and a point at each whole TP between them. The first point has
        recall 0 and the precision of the next point. The last point has recall 1 and precision P/(P
        + N).

    Examples
    --------
    >>> best = achievable_pr([0.5], [0.8], 10, 10)
    >>> float(best.recall[-1]), float(best.precision[-1])
    (1.0, 0.5)
    """
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    x, y = check_columns("share", fpr=fpr, tpr=tpr)
    fp, tp = _hull(x=counts_from_rates(x, n), y=counts_from_rates(y, p), right=n, top=p)
    return interpolate_pr(tp, fp, p)


def interpolate_pr(tp: ArrayLike, fp: ArrayLike, positives: float) -> PRPoints:
    """Return the PR curve through points (TP, FP), with counts changing linearly between them.

    A point is added at each whole TP between two points (Davis and Goadrich 2006, section 4).
    Points with TP = FP = 0 come first, and have no precision (0/0). They get that of the next
    point, which is the limit of precision along the line to it, or 1 if there is no next point.

    Parameters
    ----------
    tp, fp : array_like
        Counts of shape (K,) along a curve, both non-decreasing.
    positives : float
        P, the number of positives. Recall is TP/P.

    Returns
    -------
    PRPoints
        The given and the added points in ascending order of recall; empty if there are no points.

    Examples
    --------
    >>> interpolate_pr([5, 10], [5, 30], 20).recall.tolist()
    [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    """
    total = above_zero(positives, "positives")
    tps, fps = insert_whole_tp(tp, fp)  # also checks the counts
    if tps.size == 0:
        return PRPoints(tps, fps)
    refuse_small_total(tps[-1], total, "positives")  # recall would exceed 1
    predicted = tps + fps
    precision = ratio(tps, predicted)
    n_without_predictions = int(np.count_nonzero(predicted == 0))  # these come first
    if n_without_predictions < tps.size:
        precision[:n_without_predictions] = precision[n_without_predictions]
    else:
        precision[:] = 1
    return PRPoints(precision, tps / total)


def insert_whole_tp(tp: ArrayLike, fp: ArrayLike) -> list[Floats]:
    """Insert a point at each whole TP between the points of a curve, with FP interpolated linearly.

    In PR space they show that the way between two points is bent. The given counts must not
    decrease along the curve. Returns TP and FP of all points, (K,) each.
    """
    tps, fps = check_columns("count", tp=tp, fp=fp)
    if tps.size == 0:
        return [tps, fps]
    whole_tp = np.arange(np.floor(tps[0]) + 1, np.ceil(tps[-1]))
    new_tp = whole_tp[~np.isin(whole_tp, tps)]
    # Indices of the given points before and after each new point
    left = np.searchsorted(tps, new_tp, side="right") - 1
    right = left + 1
    slope = (fps[right] - fps[left]) / (tps[right] - tps[left])
    new_fp = fps[left] + slope * (new_tp - tps[left])
    all_tps, all_fps = np.r_[tps, new_tp], np.r_[fps, new_fp]
    order = np.argsort(all_tps, kind="stable")
    return [all_tps[order], all_fps[order]]


class _Polyline(NamedTuple):
    """Corners of a polyline in a plane, float64 (K,) each, with non-decreasing x."""

    x: Floats
    y: Floats


def _hull(x: Floats, y: Floats, right: float, top: float) -> _Polyline:
    """Return the vertices of the upper convex hull of n points, (0, 0) and (right, top).

    x, y : float64 (n,), the coordinates of the points, in any order
    right, top : the largest possible x and y: 1 and 1 for rates, N and P for counts

    The vertices are in ascending order of x. Points on a line between two vertices are left out.
    """
    from bsdsbench.kernels.curves import upper_hull

    all_x, all_y = np.r_[0, x, right], np.r_[0, y, top]
    order = np.lexsort((all_y, all_x))  # by x, then by y
    all_x, all_y = all_x[order], all_y[order]
    indices = np.empty(order.size, np.int64)  # of the vertices, filled by `upper_hull`
    n_vertices = upper_hull(all_x, all_y, indices)
    vertices = indices[:n_vertices]
    return _Polyline(all_x[vertices], all_y[vertices])


def dominates(
    a: Curve,
    b: Curve,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: LineShape = "counts",
) -> bool:
    """Return True if curve `a` is nowhere below curve `b`. A curve dominates itself.

    ROC curves are extended to (0, 0) and (1, 1). PR curves are extended from their first point to
    recall 0 at constant precision, and are compared up to the smaller of their last recalls. A
    curve dominates another in ROC space exactly if it does in PR space (Davis and Goadrich 2006,
    theorem 3.2).

    Parameters
    ----------
    a, b : pair of array_like
        (fpr, tpr) in ROC space, (precision, recall) in PR space. Each array is (K,), along the
        curve in either direction. End points that are undefined (0/0) after conversion from the
        other space are dropped with an InputWarning.
    space : str
        "roc" or "pr".
    within : tuple of float, float
        The range of FPR (ROC) or recall (PR) in which the curves are compared.
    lines : str
        How PR points are joined: "counts" (counts change linearly, which is correct) or "straight"
        (straight lines in PR space, as in printed figures). It has no effect in ROC space.

    Raises
    ------
    DataError
        If a PR curve has no point with a recall above 0, if FPR or recall both rises and falls, if
        precision is 0 at a recall above 0, or if the curves do not overlap within the range.

    Examples
    --------
    >>> dominates(([0, 1], [0.5, 1]), ([0, 1], [0, 1]))
    True
    """
    return bool((_heights(a, b, space, within, lines).difference >= 0).all())


def relation(a: Curve, b: Curve, *, space: Space = "roc") -> Relation:
    """Return which of two curves dominates the other. Raises errors as `dominates` does.

    - "first": `a` is above `b` somewhere and nowhere below it
    - "second": `b` is above `a` somewhere and nowhere below it
    - "neither": each is above the other somewhere
    - "equal": the curves do not differ
    """
    difference = _heights(a, b, space, (0.0, 1.0), "counts").difference
    if (difference > 0).any():
        return "neither" if (difference < 0).any() else "first"
    return "second" if (difference < 0).any() else "equal"


def crossings(
    a: Curve,
    b: Curve,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: LineShape = "counts",
) -> ROCPoints | PRPoints:
    """Return the points, in the given space, at which curves `a` and `b` cross, from left to right.

    Curves cross where one goes from below the other to above it, not where they only touch. If they
    coincide over an interval and have changed places after it, its first point is the crossing.

    Parameters
    ----------
    a, b, space, within, lines : as in `dominates`
        Two curves, their space, the range of FPR or recall, and how PR points are joined.

    Examples
    --------
    >>> crossings(([0, 0.5, 1], [0, 0.5, 1]), ([0, 0.5, 1], [0, 0.8, 1])).fpr.size
    0
    """
    # The curves as polylines, on which x is FPR or recall. The height is TPR or precision, but
    # -FP/P for lines="counts" in PR space, so that segments are straight, and higher is better
    x, height = _crossings_of_heights(_heights(a, b, space, within, lines))
    if space == "roc":
        return ROCPoints(fpr=x, tpr=height)
    if lines == "straight":
        return PRPoints(precision=height, recall=x)
    return PRPoints(precision=x / (x - height), recall=x)  # TP / (TP + FP), where x is TP/P


class _Heights(NamedTuple):
    """The heights (y) of two polylines at both ends of each of n - 1 intervals of x.

    The intervals lie between n positions: the ends of the compared range, and each x between them
    at which a polyline has a corner. Interval i has the entry 2i, just right of position i, and the
    entry 2i + 1, just left of position i + 1. Heights left and right of a position differ where a
    polyline is vertical. Between two entries both polylines are straight.
    """

    x: Floats  # (2n - 2,): the position of each entry
    a: Floats  # (2n - 2,)
    b: Floats  # (2n - 2,)
    difference: Floats  # a - b; 0 if equal up to rounding


def _crossings_of_heights(heights: _Heights) -> _Polyline:
    """Return the points at which two polylines cross, from left to right.

    They cross where the difference of their heights changes its sign from one nonzero entry of
    `heights` to the next. Between two entries both are straight, and two entries with equal x are
    left and right of a vertical line. If the polylines are equal between the nonzero entries, the
    first point at which they are equal is the crossing.
    """
    x, height_a, height_b, difference = heights
    is_above = difference > 0  # a above b
    crossing_x, crossing_height = [], []
    for i, j in pairwise(np.flatnonzero(difference).tolist()):
        if is_above[i] == is_above[j]:
            continue
        if j > i + 1:  # the polylines are equal between i and j
            crossing_x.append(x[i + 1])
            crossing_height.append(height_a[i + 1])
        elif x[i] == x[j]:
            # A line is vertical at this x, and passes the other at the other's height. If a rises
            # from 1 to 5 past b at 3, this is the larger of the heights at i, max(1, 3); if a falls
            # from 5 to 1, it is the smaller one, min(5, 3)
            falls = height_a[j] < height_a[i] or height_b[j] < height_b[i]
            two_heights = height_a[i], height_b[i]
            crossing_x.append(x[i])
            crossing_height.append(min(two_heights) if falls else max(two_heights))
        else:  # both are straight from i to j: the fraction of the way at which they are equal
            fraction = difference[i] / (difference[i] - difference[j])
            crossing_x.append(x[i] + fraction * (x[j] - x[i]))
            crossing_height.append(height_a[i] + fraction * (height_a[j] - height_a[i]))
    return _Polyline(np.array(crossing_x, np.float64), np.array(crossing_height, np.float64))


def _heights(
    a: Curve, b: Curve, space: Space, within: tuple[float, float], lines: LineShape
) -> _Heights:
    """Compute the heights of two curves, as polylines, at each x at which one of them has a corner.

    x is FPR or recall, and `within` is its range. In PR space the range ends where the shorter
    curve ends, and `lines` tells how points are joined: with "counts" that change linearly, or by
    "straight" lines. A difference within rounding (`_TOLERANCE` times the largest height) is 0.

    As a line may be vertical, a position x has two heights, just left and just right of it. With
    the corners 0, 0.5 and 1, the entries are those at 0 (right), 0.5 (left and right), 1 (left).
    """
    check_word(space, "space", get_args(Space))
    check_word(lines, "lines", get_args(LineShape))
    low, high = within
    line_a, line_b = _polyline(a, space, lines), _polyline(b, space, lines)
    if space == "pr":
        high = min(high, line_a.x[-1], line_b.x[-1])
    if not 0 <= low < high <= 1:
        raise DataError(f"within {within}: expected a range with length inside both curves")
    corner_x = np.unique(np.r_[line_a.x, line_b.x])
    inner_x = corner_x[(corner_x > low) & (corner_x < high)]
    positions = np.r_[low, inner_x, high]
    heights_a = _heights_right_and_left(line_a, positions)
    heights_b = _heights_right_and_left(line_b, positions)
    # Rates are up to 1, but the heights -FP/P of "counts" may be larger
    largest_height = max(1.0, float(np.abs(heights_a).max()), float(np.abs(heights_b).max()))
    difference = heights_a - heights_b
    difference[np.abs(difference) <= _TOLERANCE * largest_height] = 0
    x_of_entries = np.repeat(positions, 2)[1:-1]  # each position twice, but not the first and last
    return _Heights(x_of_entries, heights_a, heights_b, difference)


def _heights_right_and_left(line: _Polyline, positions: Floats) -> Floats:
    """Return the heights (y) of a polyline just right and just left of n ascending positions (x).

    The two heights at a position differ if the polyline is vertical there. Their order, (2n - 2,),
    is: right of position 0, left of position 1, right of position 1, ..., left of the last one.
    """
    interpolated = np.interp(positions, line.x, line.y)
    # First and last corner at a position; they differ where the line is vertical
    first_corner = np.searchsorted(line.x, positions, side="left")
    last_corner = np.searchsorted(line.x, positions, side="right") - 1
    is_corner = line.x[first_corner] == positions
    y_left = np.where(is_corner, line.y[first_corner], interpolated)
    y_right = np.where(is_corner, line.y[last_corner], interpolated)
    left_and_right = np.ravel(np.c_[y_left, y_right])  # of each position in turn
    return left_and_right[1:-1]  # not left of the first position, and not right of the last


def _polyline(curve: Curve, space: Space, lines: LineShape) -> _Polyline:
    """Return a curve, given in either direction, as a polyline on which higher is better.

    - In ROC space, x is FPR and y is TPR. The points (0, 0) and (1, 1) are added.
    - In PR space with lines="straight", x is recall and y is precision. Points with recall 0 are
      replaced by one point, with the precision at the next higher recall.
    - In PR space with lines="counts", TP and FP are interpolated linearly instead of precision. x
      is recall, which is TP/P for P positives, and y is -FP/P: straight lines are then linear in
      the counts, and fewer false positives are higher. Points with recall 0 are replaced by (0, 0),
      no predictions: from there on, precision is constant up to the first point.

    End points that are undefined (NaN, from a conversion to this space) are dropped with a warning.
    """
    if not isinstance(curve, tuple | list | np.ndarray) or len(curve) != 2:
        names = "FPR, TPR" if space == "roc" else "precision, recall"
        raise DataError(f"curve: {kind_of_value(curve)}, expected a pair of arrays ({names})")
    if space == "roc":
        x_name = "fpr"
        fpr, tpr = without_undefined_ends(curve[0], curve[1], "fpr")
        x, y = check_columns("number", fpr=fpr, tpr=tpr)
    else:
        x_name = "recall"
        precision, recall = without_undefined_ends(curve[0], curve[1], "precision")
        x, y = check_columns("number", recall=recall, precision=precision)
    if x.size and x[0] > x[-1]:  # given from right to left
        x, y = x[::-1], y[::-1]
    if space == "roc":
        x, y = np.r_[0, x, 1], np.r_[0, y, 1]
    else:
        has_tp = x > 0
        recall, precision = x[has_tp], y[has_tp]
        if recall.size == 0 or (precision <= 0).any():
            raise DataError("precision: expected above 0 wherever recall is above 0, at least once")
        if lines == "straight":
            y = np.r_[precision[0], precision]
        else:
            fp_per_positive = recall * (1 / precision - 1)  # FP / P = TP / P * FP / TP
            y = np.r_[0, -fp_per_positive]
        x = np.r_[0, recall]
    # x starts at 0. An FPR above 1 falls to the added point at 1
    if (np.diff(x) < 0).any() or x[-1] > 1:
        raise DataError(f"{x_name}: expected 0..1, not turning back")
    return _Polyline(x, y)
