"""Curves at chosen thresholds: of samples counted in bins, or of weighted targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.ranked import det_from_ranking, pr_from_ranking, roc_from_ranking
from bsdsbench.curves.ranking import Ranking
from bsdsbench.curves.results import DETResult, PRResult, ROCResult
from bsdsbench.curves.samples import F8, I8, check_samples, floats, locked, same_size, total
from bsdsbench.files.errors import DataError, MergeError, ShapeError
from bsdsbench.tables.result_object import ShownCurve


class BinnedCurves:
    """PR, ROC and DET at fixed thresholds, from batches of labels and scores.

    The state is two integers per bin, so that any split into batches, any order and any merge of
    workers gives the same curves. A point predicts score >= threshold. Below the lowest threshold
    nothing is retrieved: the curves end there (a lowest threshold of 0 closes those of scores in
    [0, 1]). Without samples a curve has all its points at (0, 1), its AP is NaN.

    Parameters
    ----------
    thresholds : array_like or int
        f8 (T,), rising; or a whole number n >= 2 for n even ones from 0 to 1.

    Raises
    ------
    DataError
        For thresholds that do not rise.

    References
    ----------
    Source of the form: torchmetrics' binned curves.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> bins = curves.BinnedCurves(thresholds=[0.25, 0.5, 0.75])
    >>> bins.update([1, -1, 1], [0.9, 0.5, 0.4])
    >>> bins.roc().fpr.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    def __init__(self, thresholds: ArrayLike | int = 256) -> None:
        if isinstance(thresholds, int | np.integer):
            if thresholds < 2:
                raise DataError(f"thresholds {thresholds}: expected 2 or more")
            thresholds = np.linspace(0, 1, int(thresholds))
        t = floats(thresholds, "thresholds")
        if t.size == 0 or (np.diff(t) <= 0).any():
            raise DataError("thresholds: expected at least one value, strictly rising")
        self.thresholds: F8 = locked(t)
        self._bins = np.zeros((2, t.size + 1), np.int64)

    def update(self, labels: ArrayLike, scores: ArrayLike) -> None:
        """Count a batch, two arrays of one size; the labels are those of `pr`.

        Raises ShapeError for different sizes, DataError for NaN; a bad batch changes nothing.

        Parameters
        ----------
        labels : array_like
            As of `pr`.
        scores : array_like
            Of the same size.
        """
        positive, negative, s = check_samples(labels, scores)
        from bsdsbench.kernels.ranks import histogram

        histogram(positive, negative, s, self.thresholds, self._bins[0], self._bins[1])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.thresholds, self._bins)

    @property
    def state(self) -> I8:
        """i8 (2, T+1): positives, negatives per bin; bin b is thresholds[b-1] <= score < [b]."""
        return self._bins.copy()

    @classmethod
    def from_state(cls, thresholds: ArrayLike, state: ArrayLike) -> BinnedCurves:
        """The counter that had this state, i8 (2, T+1) (a saved one, or a sum of several).

        Raises DataError for a state of another shape or with negative counts.

        Parameters
        ----------
        thresholds : array_like
            As of the saved counter.
        state : array_like
            Its counts, i8 (2, T+1).
        """
        out = cls(thresholds)
        bins = np.asarray(state)
        if bins.shape != out._bins.shape or bins.dtype.kind not in "iu" or (bins < 0).any():
            raise DataError(
                f"state: {bins.dtype} {bins.shape}, expected whole numbers {out._bins.shape}"
            )
        out._bins += bins.astype(np.int64)
        return out

    def merge(self, other: BinnedCurves) -> None:
        """Add another counter's samples. Raises MergeError for other thresholds.

        Parameters
        ----------
        other : BinnedCurves
            With equal thresholds.
        """
        if not np.array_equal(self.thresholds, other.thresholds):
            raise MergeError("binned curves: different thresholds, expected the same")
        self._bins += other._bins

    def reset(self) -> None:
        """Forget every sample."""
        self._bins[:] = 0

    def ranking(self) -> Ranking:
        """The counts at each threshold, as of merged ties.

        Returns
        -------
        Ranking
            One point for each threshold.
        """
        # Suffix sums: what lies at or above each threshold.
        above = np.cumsum(self._bins[:, ::-1], axis=1)[:, ::-1]
        tp, fp = above[:, 1:]
        return Ranking.from_counts(self.thresholds, tp, fp, int(above[0, 0]), int(above[1, 0]))

    def pr(self, **options: Any) -> PRResult:
        """The PR curve; options of `pr_from_ranking`.

        Parameters
        ----------
        **options : object
            As of `pr_from_ranking`.

        Returns
        -------
        PRResult
            Curve and numbers.
        """
        return pr_from_ranking(self.ranking(), **options)

    def roc(self, **options: Any) -> ROCResult:
        """The ROC curve; options of `roc_from_ranking`.

        Parameters
        ----------
        **options : object
            As of `roc_from_ranking`.

        Returns
        -------
        ROCResult
            Curve and numbers.
        """
        return roc_from_ranking(self.ranking(), **options)

    def det(self, **options: Any) -> DETResult:
        """The DET curve; options of `det_from_ranking`.

        Parameters
        ----------
        **options : object
            As of `det_from_ranking`.

        Returns
        -------
        DETResult
            Curve and numbers.
        """
        return det_from_ranking(self.ranking(), **options)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdCurve(ShownCurve):
    """Precision, TPR and FPR at each threshold, f8 (T,), thresholds falling; see `threshold_curve`.

    Parameters
    ----------
    precision, tpr, fpr, thresholds : array
        f8 (T,).
    positives, negatives : float
        Total weight of each class.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> bins = curves.BinnedCurves(thresholds=[0.25, 0.5, 0.75])
    >>> bins.update([1, -1, 1], [0.9, 0.5, 0.4])
    >>> bins.roc().thresholds.tolist()
    [inf, 0.75, 0.5, 0.25]
    """

    precision: F8
    tpr: F8
    fpr: F8
    thresholds: F8
    positives: float
    negatives: float


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
    if m == 0:
        return np.empty(0)
    ordered = np.sort(values)
    # 0-based position of quantile i/parts: m i / parts - 1/2.
    position = np.maximum(2 * m * np.arange(1, parts) - parts, 0)
    low, rest = np.divmod(position, 2 * parts)
    high = np.minimum(low + 1, m - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rest / (2 * parts))


def _rows(
    targets: ArrayLike, scores: ArrayLike, instance_count: ArrayLike | None
) -> tuple[F8, F8, F8]:
    s, target = floats(scores, "scores"), floats(targets, "targets")
    same_size(target, s, "targets", "scores")
    if instance_count is None:
        return s, np.clip(target, 0, 1), np.ones(s.size)
    count = floats(instance_count, "instance_count")
    if count.size not in (1, s.size):
        raise ShapeError(
            f"instance_count: {count.size} values, expected 1 or one per score ({s.size})"
        )
    if (count < 0).any():
        raise DataError("instance_count: expected numbers, 0 or more")
    count = np.broadcast_to(count, s.shape)
    return s, np.minimum(target, count), count
