"""Between ROC and PR space: conversion, convex hull, achievable curve, count-linear interpolation.

With P positives and N negatives a point is a pair of counts (TP, FP); ROC and PR show the same
counts in two ways. A straight line in ROC space is a straight line of counts and a hyperbola in PR
space. Source: Davis and Goadrich, The relationship between precision-recall and ROC curves (2006).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.results import PRPoints, ROCPoints
from bsdsbench.curves.samples import F8, floats
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.scores.ratios import ratio


def roc_to_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """The PR points of ROC points, one for one: (precision, recall), f8 (K,) each.

    Precision at (0, 0) is 0/0: NaN. No points give none.

    Parameters
    ----------
    fpr : array_like
        False positive rates, f8 (K,).
    tpr : array_like
        True positive rates, f8 (K,).
    positives : float
        Number of positives.
    negatives : float
        Number of negatives.

    Returns
    -------
    PRPoints
        One point for each.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For rates outside [0, 1] or totals that are not above 0.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc_to_pr([0.1], [1.0], 10, 100).precision.tolist()
    [0.5]
    """
    x, y = _pair(fpr, tpr, "fpr", "tpr")
    tp, fp = y * above_zero(positives, "positives"), x * above_zero(negatives, "negatives")
    precision = ratio(tp, tp + fp)
    precision[tp + fp == 0] = np.nan
    return PRPoints(precision, y)


def pr_to_roc(
    precision: ArrayLike,
    recall: ArrayLike,
    positives: float,
    negatives: float,
    *,
    check: bool = True,
) -> ROCPoints:
    """The ROC points of PR points, one for one: (fpr, tpr), f8 (K,) each.

    FP = TP (1/precision - 1). At recall 0 any FP is possible: NaN, except for the conventional
    point (recall 0, precision 1), which is (0, 0). No points give none.

    Parameters
    ----------
    precision : array_like
        f8 (K,).
    recall : array_like
        f8 (K,).
    positives : float
        Number of positives.
    negatives : float
        Number of negatives.
    check : bool
        Refuse points that no ranking of these totals can have.

    Returns
    -------
    ROCPoints
        One point for each.

    Raises
    ------
    DataError
        As `roc_to_pr`.
    DataError
        For a point that no ranking of these totals can have (precision 0 at recall > 0, or more
        false positives than negatives); check=False gives the impossible FPR instead.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.pr_to_roc([0.5], [1.0], 10, 100).fpr.tolist()
    [0.1]
    """
    p, r = _pair(precision, recall, "precision", "recall", missing="precision")
    total, rest = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    with np.errstate(divide="ignore", invalid="ignore"):
        fpr = total * r * (1 / p - 1) / rest
    empty = r == 0
    fpr[empty] = np.where(p[empty] == 1, 0.0, np.nan)
    # 1 + 1e-9: a printed or rounded precision must not make full recall impossible.
    bad = ~empty & ~(fpr <= 1 + 1e-9)
    if check and bad.any():
        k = int(bad.argmax())
        raise DataError(
            f"precision {p[k]:g} at recall {r[k]:g}: means a false positive rate of {fpr[k]:g} "
            f"with {positives:g} positives and {negatives:g} negatives, expected at most 1"
        )
    return ROCPoints(np.minimum(fpr, 1) if check else fpr, r)


def roc_convex_hull(fpr: ArrayLike, tpr: ArrayLike) -> ROCPoints:
    """The corners of the upper convex hull of ROC points, with (0, 0) and (1, 1) added.

    Points in any order; returns (fpr, tpr), neither falling, from (0, 0) to (1, 1), no three on a
    line (up to rounding). No points at all give the chance line.

    Parameters
    ----------
    fpr : array_like
        False positive rates, f8 (K,).
    tpr : array_like
        True positive rates, f8 (K,).

    Returns
    -------
    ROCPoints
        The corners from (0, 0) to (1, 1).

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For rates outside [0, 1].

    References
    ----------
    Source: Davis and Goadrich 2006; Andrew's monotone chain.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc_convex_hull([0.5, 0.6], [0.8, 0.1]).tpr.tolist()
    [0.0, 0.8, 1.0]
    """
    x, y = _pair(fpr, tpr, "fpr", "tpr")
    return ROCPoints(*_hull(x, y, 1.0, 1.0))


def achievable_pr(fpr: ArrayLike, tpr: ArrayLike, positives: float, negatives: float) -> PRPoints:
    """The best PR curve that mixing the given ROC points allows: their hull seen in PR space.

    Never below any of the
    points given; no points give the chance line.

    Parameters
    ----------
    fpr : array_like
        False positive rates, f8 (K,).
    tpr : array_like
        True positive rates, f8 (K,).
    positives : float
        Number of positives.
    negatives : float
        Number of negatives.

    Returns
    -------
    PRPoints
        (precision, recall) with a point at each hull corner and at each whole TP between, from
        recall 0 (where the first precision is carried flat) to (1, P/(P + N)).

    Raises
    ------
    DataError
        As `roc_to_pr`.

    References
    ----------
    Source: Davis and Goadrich 2006, section 3.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> best = curves.achievable_pr([0.5], [0.8], 10, 10)
    >>> float(best.recall[-1]), float(best.precision[-1])
    (1.0, 0.5)
    """
    x, y = _pair(fpr, tpr, "fpr", "tpr")
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    fp, tp = _hull(as_counts(x, n), as_counts(y, p), n, p)
    return interpolate_pr(tp, fp, p)


def interpolate_pr(tp: ArrayLike, fp: ArrayLike, positives: float) -> PRPoints:
    """Count-linear interpolation: the points and new ones at each whole TP strictly between.

    Between A and B, FP(t) = FP_A + (FP_B - FP_A)/(TP_B - TP_A) (t - TP_A). A start at TP = FP = 0
    takes the precision of the next point, which is the limit along the line.

    Parameters
    ----------
    tp, fp : array_like
        Counts (K,) along a curve, neither falling.
    positives : float
        P, by which TP is divided to give the recall.

    Returns
    -------
    PRPoints
        (precision, recall), recall not falling; no points give none.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For counts that fall or a total that is not above 0.

    References
    ----------
    Source: Davis and Goadrich 2006, section 4.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.interpolate_pr([5, 10], [5, 30], 20).recall.tolist()
    [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    """
    a, b = check_counts(tp, fp)
    total = above_zero(positives, "positives")
    if a.size == 0:
        return PRPoints(np.empty(0), np.empty(0))
    whole = np.arange(np.floor(a[0]) + 1, np.ceil(a[-1]))
    new = whole[~np.isin(whole, a)]
    k = np.searchsorted(a, new, side="right") - 1
    slope = (b[k + 1] - b[k]) / (a[k + 1] - a[k])
    t, f = np.r_[a, new], np.r_[b, b[k] + slope * (new - a[k])]
    order = np.argsort(t, kind="stable")
    t, f = t[order], f[order]
    precision = ratio(t, t + f)
    start = int(np.count_nonzero(t + f == 0))
    precision[:start] = precision[start] if start < t.size else 1.0
    return PRPoints(precision, t / total)


def check_counts(tp: ArrayLike, fp: ArrayLike) -> tuple[F8, F8]:
    """tp and fp as f8 (K,). Raises DataError if one falls along the curve or is negative."""
    a, b = floats(tp, "tp"), floats(fp, "fp")
    if a.size != b.size:
        raise ShapeError(f"tp: {a.size} values, fp: {b.size} values, expected as many of each")
    for values, name in ((a, "tp"), (b, "fp")):
        if (np.diff(values, prepend=0) < 0).any():
            raise DataError(f"{name}: expected counts, 0 or more, that do not fall along the curve")
    return a, b


def as_counts(rates: F8, total: float) -> F8:
    """rates x total, made whole where rounding alone keeps it from being so."""
    counts = rates * total
    whole = np.rint(counts)
    return np.where(np.abs(counts - whole) <= 1e-12 * max(total, 1), whole, counts)


def _hull(x: F8, y: F8, right: float, top: float) -> tuple[F8, F8]:
    from bsdsbench.kernels.ranks import upper_hull

    x, y = np.r_[0, x, right], np.r_[0, y, top]
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    corners = np.empty(x.size, np.int64)
    corners = corners[: upper_hull(x, y, corners)]
    return x[corners], y[corners]


def _pair(
    first: ArrayLike, second: ArrayLike, name_a: str, name_b: str, missing: str = ""
) -> tuple[F8, F8]:
    """Two f8 (K,) of values in [0, 1]; NaN, an undefined value, only in the array `missing`."""
    out = []
    for values, name in ((first, name_a), (second, name_b)):
        if name == missing:
            array = np.asarray(values, np.float64).ravel()
            known = array[~np.isnan(array)]
        else:
            known = array = floats(values, name)
        if known.size and not (known.min() >= 0 and known.max() <= 1):
            raise DataError(
                f"{name}: values from {known.min():g} to {known.max():g}, expected 0..1"
            )
        out.append(array)
    if out[0].size != out[1].size:
        raise ShapeError(
            f"{name_a}: {out[0].size} values, {name_b}: {out[1].size} values, "
            "expected as many of each"
        )
    return out[0], out[1]


def above_zero(value: float, name: str) -> float:
    """A total as float. Raises DataError unless it is finite and above 0."""
    if not 0 < value < np.inf:
        raise DataError(f"{name} {value!r}: expected a number above 0")
    return float(value)
