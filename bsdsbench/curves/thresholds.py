"""Precision, TPR and FPR at quantiles of the scores, for weighted or fractional targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8
from bsdsbench.curves.points import CurvePoints
from bsdsbench.curves.samples import columns, read_only, whole_number
from bsdsbench.errors import DataError, ShapeError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdCurve(CurvePoints):
    """Precision, TPR and FPR at each of T falling thresholds, see `threshold_curve`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).thresholds.round(3).tolist()
    [0.7, 0.45, 0.4]
    """


def threshold_curve(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    num_thresholds: int | None = None,
    instance_count: ArrayLike | None = None,
    strict: bool = False,
) -> ThresholdCurve:
    """Compute precision, TPR and FPR at quantiles of the scores (Schroedl's prec_rec).

    The quantiles follow Hazen's rule: sorted value k of m sits at (k - 0.5)/m, linear between,
    clamped at the ends. Duplicates are removed, and thresholds fall. They are often midpoints, so
    the highest scores may be above all thresholds, and there is no point without predictions.
    Without positives TPR is NaN, without negatives FPR; without rows there are no points.

    Parameters
    ----------
    targets : array_like
        (n,) positive fraction of each row, clipped to [0, 1]. With instance_count it is the number
        of positives in the row, clipped to at most its count.
    scores : array_like
        (n,) finite.
    num_thresholds : int or None
        T: thresholds are the quantiles i/T, i = 1 .. T-1, and the smallest score. The default is
        min(distinct scores, 100); 0 and 1 give the smallest score only.
    instance_count : array_like or None
        Number of instances in a row, one number or (n,). None: 1.
    strict : bool
        Predict if score > threshold, and omit the smallest score, as in the copy of section 6.3 of
        the 2013 note. False: predict if score >= threshold.

    Raises
    ------
    ShapeError, DataError
        If the lengths differ; for NaN.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> float(curves.threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).tpr[-1])
    1.0
    """
    target, s = columns("number", targets=targets, scores=scores)
    if instance_count is None:
        count = np.ones(s.size)
        target = np.clip(target, 0, 1)
    else:
        (count,) = columns("number", instance_count=instance_count)
        if count.size not in (1, s.size):
            raise ShapeError(
                f"instance_count: {count.size} values, expected 1 or one per score ({s.size})"
            )
        if (count < 0).any():
            raise DataError("instance_count: expected numbers, 0 or more")
        count = np.broadcast_to(count, s.shape)
        target = np.minimum(target, count)
    distinct = np.unique(s)
    n_quantiles = min(distinct.size, 100)
    if num_thresholds is not None:
        n_quantiles = whole_number(num_thresholds, "num_thresholds")
    levels = _hazen_quantiles(s, n_quantiles)
    if not strict:
        levels = np.r_[distinct[:1], levels]
    thresholds = np.unique(levels)[::-1]
    order = np.argsort(-s, kind="stable")
    # The first k rows in order of falling scores are predicted at a threshold
    k = np.searchsorted(-s[order], -thresholds, side="left" if strict else "right")
    tp = np.r_[0.0, np.cumsum(target[order])][k]
    predicted = np.r_[0.0, np.cumsum(count[order])][k]
    positives, negatives = float(target.sum()), float((count - target).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        return ThresholdCurve(
            precision=read_only(tp / predicted),
            tpr=read_only(tp / np.float64(positives)),
            fpr=read_only((predicted - tp) / np.float64(negatives)),
            thresholds=read_only(thresholds),
            positives=positives,
            negatives=negatives,
        )


def _hazen_quantiles(values: F8, parts: int) -> F8:
    """Return the quantiles i/parts, i = 1 .. parts - 1, of values by Hazen's rule, rising.

    Positions are computed in integers, so that a quantile at the position of a value is exactly
    that value, which numpy does not guarantee.
    """
    m = values.size
    if m == 0:
        return np.empty(0)
    ordered = np.sort(values)
    # 0-based position of quantile i/parts: m i / parts - 1/2.
    position = np.maximum(2 * m * np.arange(1, parts) - parts, 0)
    low, remainder = np.divmod(position, 2 * parts)
    rise = ordered[np.minimum(low + 1, m - 1)] - ordered[low]
    return ordered[low] + rise * (remainder / (2 * parts))
