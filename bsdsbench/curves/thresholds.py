"""Curves at chosen thresholds, for weighted and fractional targets (Schroedl's prec_rec)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.results import ThresholdCurve
from bsdsbench.curves.samples import F8, floats, locked, numbers, total
from bsdsbench.files.errors import DataError, ShapeError


def threshold_curve(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    num_thresholds: int | None = None,
    instance_count: ArrayLike | None = None,
    strict: bool = False,
) -> ThresholdCurve:
    """Precision, TPR and FPR at quantiles of the scores (Schroedl's prec_rec).

    The quantiles follow Hazen's rule (sorted value k of m sits at (k - 0.5)/m, linear between,
    clamped), duplicates removed, falling: often midpoints, and the best scores may be below none.
    There is no point for "nothing predicted". 0/0 is NaN: no positives give TPR NaN, no negatives
    FPR NaN. No rows: no points.

    Parameters
    ----------
    targets : array_like
        (n,) share of a row that is positive, cut to [0, 1]; with instance_count, the number of
        positives in the row, at most its count (not cut below).
    scores : array_like
        (n,) finite.
    num_thresholds : int or None
        Quantiles i/T, i = 1 .. T-1, and the smallest score; default min(distinct scores, 100). 0
        and 1: the smallest score only.
    instance_count : array_like or None
        How many instances a row stands for, one number or (n,); default 1.
    strict : bool
        Predict score > threshold and leave the smallest score out, as in the copy of section 6.3 of
        the 2013 note; default score >= threshold.

    Returns
    -------
    ThresholdCurve
        Precision, TPR and FPR at each threshold.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For NaN.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> float(curves.threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).tpr[-1])
    1.0
    """
    s, target, count = _rows(targets, scores, instance_count)
    distinct = np.unique(s)
    wanted = total(num_thresholds, "num_thresholds", min(distinct.size, 100))
    levels = hazen_quantiles(s, wanted)
    if not strict:
        levels = np.r_[distinct[:1], levels]
    thresholds = np.unique(levels)[::-1]
    order = np.argsort(-s, kind="stable")
    # Rows predicted at each threshold: the first k of the falling scores.
    k = np.searchsorted(-s[order], -thresholds, side="left" if strict else "right")
    tp = np.r_[0.0, np.cumsum(target[order])][k]
    predicted = np.r_[0.0, np.cumsum(count[order])][k]
    positives, negatives = float(target.sum()), float((count - target).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        return ThresholdCurve(
            precision=locked(tp / predicted),
            tpr=locked(tp / np.float64(positives)),
            fpr=locked((predicted - tp) / np.float64(negatives)),
            thresholds=locked(thresholds),
            positives=positives,
            negatives=negatives,
        )


def hazen_quantiles(values: F8, parts: int) -> F8:
    """The quantiles i/parts, i = 1 .. parts - 1, of `values` by Hazen's rule, rising.

    f8 (parts - 1,), empty for parts < 2 or no values. Positions are whole-number fractions, so a
    quantile that falls on a value is that value.
    """
    m = values.size
    if parts < 2 or m == 0:
        return np.empty(0)
    ordered = np.sort(values)
    # 0-based position of quantile i/parts: m i / parts - 1/2.
    position = 2 * m * np.arange(1, parts) - parts
    position = np.clip(position, 0, 2 * parts * (m - 1))
    low, rest = np.divmod(position, 2 * parts)
    high = np.minimum(low + 1, m - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rest / (2 * parts))


def _rows(
    targets: ArrayLike, scores: ArrayLike, instance_count: ArrayLike | None
) -> tuple[F8, F8, F8]:
    s, target = floats(scores, "scores"), floats(targets, "targets")
    if s.size != target.size:
        raise ShapeError(
            f"targets: {target.size} values, scores: {s.size} values, expected as many of each"
        )
    if instance_count is None:
        return s, np.clip(target, 0, 1), np.ones(s.size)
    count = numbers(instance_count, "instance_count").astype(np.float64)
    if count.size not in (1, s.size):
        raise ShapeError(
            f"instance_count: {count.size} values, expected 1 or one per score ({s.size})"
        )
    if (count < 0).any() or not np.isfinite(count).all():
        raise DataError("instance_count: expected finite numbers, 0 or more")
    count = np.broadcast_to(count, s.shape)
    return s, np.minimum(target, count), count
