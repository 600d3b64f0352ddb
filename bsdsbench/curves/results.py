"""Result objects: arrays along the ranking and the summary numbers of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from bsdsbench.curves.samples import F8, I8
from bsdsbench.tables.result_object import ShownCurve

Variant = Literal["fptp", "tntp", "tptn", "fpfn"]


class PRPoints(NamedTuple):
    """Points of a PR curve, f8 (K,), recall not falling. Unpacks as precision, recall."""

    precision: F8
    recall: F8


class ROCPoints(NamedTuple):
    """Points of a ROC curve, f8 (K,), neither rate falling. Unpacks as fpr, tpr."""

    fpr: F8
    tpr: F8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRResult(ShownCurve):
    """Precision against recall along a ranking; see `pr`. Undefined numbers are NaN.

    Parameters
    ----------
    recall, precision, thresholds, tp, fp : array
        (K,), f8, the counts i8.
    auc : float
        Trapezoids over (recall, precision), not extended to recall 1.
    ap : float
        Sum of the precisions where recall rises, weighted by the rise.
    ap_11 : float
        Mean over recall levels 0, 0.1 .. 1 of the best precision at or beyond the level, the
        conventional (0, 1) point included (VLFeat ap_interp_11).
    chance : float
        Precision of a random ranking.
    positives, negatives : int
        The totals in use (num_positives, num_negatives where given).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> found = curves.pr([1, 0, 1], [0.9, 0.5, 0.4])
    >>> round(found.ap, 3), found.recall.tolist()
    (0.833, [0.0, 0.5, 0.5, 1.0])
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
class ROCResult(ShownCurve):
    """True against false positive rates along a ranking; see `roc`. Undefined numbers are NaN.

    Parameters
    ----------
    tpr, fpr, thresholds, tp, fp : array
        (K,), f8, the counts i8.
    auc : float
        Area of the `plot` variant.
    eer, eer_threshold : float
        Equal error rate, and the score whose inclusion makes the crossing; NaN where there is none.
    plot : str
        "fptp", "tntp", "tptn" or "fpfn": x axis, then y axis.
    positives, negatives : int
        The totals in use.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> found = curves.roc([1, 0, 1], [0.9, 0.5, 0.4])
    >>> found.auc, found.negatives
    (0.5, 1)
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
class DETResult(ShownCurve):
    """Miss rate (fnr) against false alarm rate (fpr) along a ranking; fields as of `ROCResult`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> found = curves.det([1, 0, 1], [0.9, 0.5, 0.4])
    >>> found.eer, found.positives
    (0.5, 2)
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
