"""Result objects: arrays along the ranking and the summary numbers of a curve."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

import numpy as np

from bsdsbench.curves.samples import F8, I8
from bsdsbench.tables.result_object import ShownCurve

Variant = Literal["fptp", "tntp", "tptn", "fpfn"]


class PRPoints(NamedTuple):
    """Points of a PR curve, f8 (K,) each, recall not falling. Unpacks as precision, recall.

    Parameters
    ----------
    precision : array
        f8 (K,).
    recall : array
        f8 (K,).
    """

    precision: F8
    recall: F8


class ROCPoints(NamedTuple):
    """Points of a ROC curve, f8 (K,) each, neither falling. Unpacks as fpr, tpr.

    Parameters
    ----------
    fpr : array
        False positive rates, f8 (K,).
    tpr : array
        True positive rates, f8 (K,).
    """

    fpr: F8
    tpr: F8


class CurveResult(ShownCurve):
    """Shared behaviour of the results."""

    __slots__ = ()

    def equals(self, other: object) -> bool:
        """True if `other` has the same type and every field is equal, NaN equal to NaN."""
        if type(other) is not type(self):
            return False
        for field in fields(self):  # type: ignore[arg-type]
            a, b = np.asarray(getattr(self, field.name)), np.asarray(getattr(other, field.name))
            if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return False
        return True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRResult(CurveResult):
    """Precision against recall along a ranking; see `pr`.

    Parameters
    ----------
    recall, precision, thresholds : array
        f8 (K,).
    tp, fp : array
        i8 (K,).
    auc : float
        Trapezoids over (recall, precision), not extended to recall 1; interpolated and without
        positives NaN.
    ap : float
        Sum of the precisions where recall rises, weighted by the rise; NaN without positives.
    ap_11 : float
        Mean over recall levels 0, 0.1 .. 1 of the best precision at or beyond the level, the
        conventional (0, 1) point included (VLFeat ap_interp_11).
    chance : float
        Precision of a random ranking.
    positives, negatives : int
        The totals in use (num_positives, num_negatives where given).
    """

    recall: F8
    precision: F8
    thresholds: F8
    tp: I8
    fp: I8
    auc: float
    ap: float
    ap_11: float
    chance: float
    positives: int
    negatives: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ROCResult(CurveResult):
    """True against false positive rates along a ranking; see `roc`.

    tpr, tnr, fpr, fnr, thresholds : f8 (K,); tp, fp : i8 (K,)

    Parameters
    ----------
    tpr : array
        True positive rates, f8 (K,).
    fpr : array
        False positive rates, f8 (K,).
    thresholds : array
        The thresholds of the curve.
    tp : array
        True positives along the curve, (K,), not falling.
    fp : array
        False positives along the curve, (K,), not falling.
    auc : float
        Area of the `plot` variant.
    eer : float
        Equal error rate, NaN where the curve ends before its crossing.
    eer_threshold : float
        Score of the sample (or level) whose inclusion makes the crossing, else 0.
    plot : str
        "fptp", "tntp", "tptn" or "fpfn": x axis, then y axis.
    positives, negatives : int
        The totals in use.
    """

    tpr: F8
    fpr: F8
    thresholds: F8
    tp: I8
    fp: I8
    auc: float
    eer: float
    eer_threshold: float
    plot: Variant
    positives: int
    negatives: int

    @property
    def tnr(self) -> F8:
        """1 - fpr, f8 (K,)."""
        return 1 - self.fpr

    @property
    def fnr(self) -> F8:
        """1 - tpr, f8 (K,)."""
        return 1 - self.tpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DETResult(CurveResult):
    """Miss rate (fnr) against false alarm rate (fpr) along a ranking; see `det`.

    Parameters
    ----------
    fpr, fnr, thresholds : array
        f8 (K,).
    tp, fp : array
        i8 (K,); eer and eer_threshold as in `ROCResult`.
    eer : float
        Equal error rate.
    eer_threshold : float
        Threshold at the equal error rate.
    positives : int
        Number of positives.
    negatives : int
        Number of negatives.
    """

    fpr: F8
    fnr: F8
    thresholds: F8
    tp: I8
    fp: I8
    eer: float
    eer_threshold: float
    positives: int
    negatives: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdCurve(CurveResult):
    """Precision, TPR and FPR at each threshold, f8 (T,), thresholds falling; see `threshold_curve`.

    Parameters
    ----------
    precision : array
        f8 (T,).
    tpr : array
        True positive rates, f8 (K,).
    fpr : array
        False positive rates, f8 (K,).
    thresholds : array
        The thresholds of the curve.
    positives, negatives : float
        Total weight of each class.
    """

    precision: F8
    tpr: F8
    fpr: F8
    thresholds: F8
    positives: float
    negatives: float
