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
    """Precision, TPR and FPR at each of T falling thresholds, as `threshold_curve` returns.

    Examples
    --------
    >>> threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).thresholds.round(3).tolist()
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
    """Compute precision, TPR and FPR at quantiles of the scores, as Schroedl's prec_rec does.

    Quantiles follow Hazen's rule: the k-th smallest of m scores is the quantile (k - 0.5)/m,
    quantiles between two scores are interpolated linearly, and those beyond the ends are the
    smallest and the largest score. A quantile is often the midpoint of two scores, so the highest
    scores may exceed all thresholds, and there is no point without predictions.

    Parameters
    ----------
    targets : array_like
        (n,), the positive fraction of each row, clipped to [0, 1]. With instance_count it is the
        number of positives in the row, clipped to at most its count.
    scores : array_like
        (n,), finite.
    num_thresholds : int or None
        T: thresholds are the quantiles i/T, i = 1 .. T-1, and the smallest score, without
        duplicates. The default is the number of distinct scores, but at most 100. 0 and 1 give the
        smallest score only.
    instance_count : array_like or None
        Number of instances in each row, one number or (n,). The default is 1.
    strict : bool
        Predict if score > threshold, and omit the smallest score, as in the copy of section 6.3 of
        the 2013 note. False: predict if score >= threshold.

    Returns
    -------
    ThresholdCurve
        Points by falling threshold. TPR is NaN without positives, FPR without negatives. Without
        rows there are no points.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DataError
        If a value is NaN or infinite, or if a count is negative.

    Examples
    --------
    >>> float(threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).tpr[-1])
    1.0
    """
    target, s = columns("number", targets=targets, scores=scores)
    if instance_count is None:
        instances = np.ones(s.size)
        positive_instances = np.clip(target, 0, 1)
    else:
        instances = _instances_per_row(instance_count, s.size)
        positive_instances = np.minimum(target, instances)
    distinct = np.unique(s)
    n_quantiles = min(distinct.size, 100)
    if num_thresholds is not None:
        n_quantiles = whole_number(num_thresholds, "num_thresholds")
    levels = _hazen_quantiles(s, n_quantiles)
    if not strict:
        levels = np.r_[distinct[:1], levels]
    thresholds = np.unique(levels)[::-1]
    order = np.argsort(-s, kind="stable")
    # The number of rows that are predicted at each threshold, the first in order of falling scores
    n_rows = np.searchsorted(-s[order], -thresholds, side="left" if strict else "right")
    tp = np.r_[0.0, np.cumsum(positive_instances[order])][n_rows]
    predicted = np.r_[0.0, np.cumsum(instances[order])][n_rows]
    positives = float(positive_instances.sum())
    negatives = float((instances - positive_instances).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        return ThresholdCurve(
            precision=read_only(tp / predicted),
            tpr=read_only(tp / np.float64(positives)),
            fpr=read_only((predicted - tp) / np.float64(negatives)),
            thresholds=read_only(thresholds),
            positives=positives,
            negatives=negatives,
        )


def _instances_per_row(instance_count: ArrayLike, n_rows: int) -> F8:
    """Return the number of instances in each row, float64 (n_rows,), from one number or (n_rows,).

    Raises ShapeError for another size, and DataError if a number is negative.
    """
    (counts,) = columns("number", instance_count=instance_count)
    if counts.size not in (1, n_rows):
        raise ShapeError(
            f"instance_count: {counts.size} values, expected 1 or one per score ({n_rows})"
        )
    if (counts < 0).any():
        raise DataError("instance_count: expected numbers, 0 or more")
    return np.broadcast_to(counts, n_rows)


def _hazen_quantiles(values: F8, parts: int) -> F8:
    """Return the quantiles i/parts, i = 1 .. parts - 1, by Hazen's rule, in ascending order.

    values (m,): in any order. Without values there are no quantiles. Positions are computed in
    integers, so that a quantile at the position of a value is exactly that value, which numpy does
    not guarantee.
    """
    m = values.size
    if m == 0:
        return np.empty(0)
    ordered = np.sort(values)
    # The quantile i/parts has the 0-based position m i / parts - 1/2 = position / (2 parts)
    position = np.maximum(2 * m * np.arange(1, parts) - parts, 0)
    below, remainder = np.divmod(position, 2 * parts)
    above = np.minimum(below + 1, m - 1)
    rise = ordered[above] - ordered[below]
    return ordered[below] + rise * (remainder / (2 * parts))
