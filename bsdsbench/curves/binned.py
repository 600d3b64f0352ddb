"""Curves of more samples than fit in memory: counts in bins, which add."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.ranked import det_from_ranking, pr_from_ranking, roc_from_ranking
from bsdsbench.curves.ranking import Ranking
from bsdsbench.curves.results import DETResult, PRResult, ROCResult
from bsdsbench.curves.samples import F8, I8, check_samples, floats, locked
from bsdsbench.files.errors import DataError, MergeError


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
        """Add another counter's samples. Raises MergeError for other thresholds."""
        if not np.array_equal(self.thresholds, other.thresholds):
            raise MergeError("binned curves: different thresholds, expected the same")
        self._bins += other._bins

    def reset(self) -> None:
        """Forget every sample."""
        self._bins[:] = 0

    def ranking(self) -> Ranking:
        """The counts at each threshold, as of merged ties."""
        # Suffix sums: what lies at or above each threshold.
        above = np.cumsum(self._bins[:, ::-1], axis=1)[:, ::-1]
        tp, fp = above[:, 1:]
        return Ranking.from_counts(self.thresholds, tp, fp, int(above[0, 0]), int(above[1, 0]))

    def pr(self, **options: Any) -> PRResult:
        """The PR curve; options of `pr_from_ranking`."""
        return pr_from_ranking(self.ranking(), **options)

    def roc(self, **options: Any) -> ROCResult:
        """The ROC curve; options of `roc_from_ranking`."""
        return roc_from_ranking(self.ranking(), **options)

    def det(self, **options: Any) -> DETResult:
        """The DET curve; options of `det_from_ranking`."""
        return det_from_ranking(self.ranking(), **options)
