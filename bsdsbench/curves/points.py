"""Points of a curve in PR and ROC space, from rates, from counts, or from any curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, kind_of_value
from bsdsbench.curves.areas import davis_goadrich_area
from bsdsbench.curves.geometry import (
    PRPoints,
    Relation,
    ROCPoints,
    crossings,
    insert_whole_tp,
    relation,
    roc_convex_hull,
)
from bsdsbench.curves.ranked import (
    PRResult,
    Ranking,
    ROCResult,
    along_curve,
    pr_from_ranking,
    roc_from_ranking,
    trapezoids,
)
from bsdsbench.curves.samples import above_zero, columns, counts_from_rates, read_only
from bsdsbench.errors import DataError, Setting
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import defined_ratio
from bsdsbench.tables.result_object import TabularCurve

AxesKind = Literal["pr", "roc", "det"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CurvePoints(TabularCurve):
    """Points of a curve with their precision, TPR and FPR, NaN where undefined or not known.

    Parameters
    ----------
    precision, tpr, fpr, thresholds : array
        float64 (T,), from the point with the fewest predictions on.
    positives, negatives : float
        Total of each class; NaN if not known.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> points = curves.CurvePoints.of_counts([5, 10], [5, 30], 20, 100)
    >>> points.recall.tolist(), points.precision.tolist()
    ([0.25, 0.5], [0.5, 0.25])
    """

    precision: F8
    tpr: F8
    fpr: F8
    thresholds: F8
    positives: float
    negatives: float

    @classmethod
    def of_rates(
        cls, fpr: ArrayLike, tpr: ArrayLike, positives: float = np.nan, negatives: float = np.nan
    ) -> CurvePoints:
        """Build ROC points, sorted by FPR. Precision is NaN unless both totals are given.

        Raises DataError for rates outside [0, 1], and for totals that are not above 0.
        """
        x, y = columns("share", fpr=fpr, tpr=tpr)
        for name, total in (("positives", positives), ("negatives", negatives)):
            if not np.isnan(total):
                above_zero(total, name)
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
        tp, fp = counts_from_rates(y, positives), counts_from_rates(x, negatives)
        return cls(
            precision=read_only(defined_ratio(tp, tp + fp)),
            tpr=read_only(y),
            fpr=read_only(x),
            thresholds=read_only(np.full(x.size, np.nan)),
            positives=float(positives),
            negatives=float(negatives),
        )

    @classmethod
    def of_counts(
        cls, tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float
    ) -> CurvePoints:
        """Build points from counts. Raises DataError for counts below 0 or above their totals."""
        p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
        a, b = columns("number", tp=tp, fp=fp)
        return cls.of_rates(b / n, a / p, p, n)

    @property
    def recall(self) -> F8:
        """The true positive rate, float64 (T,)."""
        return self.tpr

    @property
    def fnr(self) -> F8:
        """The miss rate, 1 - tpr, float64 (T,)."""
        return 1 - self.tpr

    @property
    def tp(self) -> F8:
        """True positives, float64 (T,)."""
        return counts_from_rates(self.tpr, self.positives)

    @property
    def fp(self) -> F8:
        """False positives, float64 (T,)."""
        return counts_from_rates(self.fpr, self.negatives)

    @property
    def is_curve(self) -> bool:
        """True if no rate falls from one point to the next, so that lines may join the points."""
        return not ((np.diff(self.tpr) < 0) | (np.diff(self.fpr) < 0)).any()

    @property
    def auc(self) -> float:
        """Trapezoids under the points, (0, 0) and (1, 1) in ROC space; NaN for no curve."""
        if not self.is_curve:
            return float("nan")
        x, y = np.r_[0, self.fpr, 1], np.r_[0, self.tpr, 1]
        return trapezoids(x, y)

    @property
    def area(self) -> float:
        """Exact area under the count-linear PR curve up to the last point.

        NaN without totals, without points, or if the points form no curve.
        """
        if not self.is_curve or np.isnan(self.tp + self.fp).any() or not self.tpr.size:
            return float("nan")
        return davis_goadrich_area(self.tp, self.fp, self.positives)

    @property
    def chance(self) -> float:
        """The precision of a random ranking, P/(P + N)."""
        return float(self.positives / (self.positives + self.negatives))

    def hull(self) -> CurvePoints:
        """Return the corners of the upper convex hull in ROC space, with the same totals.

        If a class is missing, so that rates are undefined, the points are returned unchanged.
        """
        if np.isnan(self.fpr + self.tpr).any():
            return self
        return CurvePoints.of_rates(
            *roc_convex_hull(self.fpr, self.tpr), self.positives, self.negatives
        )

    def with_between(self) -> CurvePoints:
        """Return the points and the points at each whole TP between them, linear in counts.

        Raises DataError without totals, and for counts that fall.
        """
        to_pr_form(self)
        tp, fp = insert_whole_tp(self.tp, self.fp)
        return CurvePoints.of_counts(tp, fp, self.positives, self.negatives)


AnyCurve = PRResult | ROCResult | CurvePoints | ROCPoints | PRPoints | PRCurve


def to_space(curve: AnyCurve, axes: AxesKind) -> PRResult | ROCResult | CurvePoints | PRCurve:
    """Convert any curve of the package to a form that has the rates of the axes.

    Raises DataError for any other value, for a stack of curves, and for a curve without the totals
    of the classes if the axes need them.
    """
    return to_pr_form(curve) if axes == "pr" else _to_roc_form(curve)


def to_pr_form(curve: AnyCurve) -> PRResult | CurvePoints | PRCurve:
    """Convert a curve to a form with precision and recall. Raises DataError as `to_space` does."""
    if isinstance(curve, PRResult):
        return along_curve(curve)
    if isinstance(curve, ROCResult):
        return pr_from_ranking(_ranking(along_curve(curve)))
    if isinstance(curve, PRCurve):
        if curve.precision.ndim > 1:
            raise DataError(f"a stack of {len(curve.precision)} curves, expected one of them")
        return curve
    if isinstance(curve, PRPoints):
        return _from_pr_points(curve)
    points = _points(curve)
    if points.tpr.size and math.isnan(points.positives + points.negatives):
        raise _missing_totals()
    return points


def _to_roc_form(curve: AnyCurve) -> ROCResult | CurvePoints:
    """Convert a curve to a form with TPR and FPR. Raises DataError as `to_space` does."""
    if isinstance(curve, ROCResult):
        return along_curve(curve)
    if isinstance(curve, PRResult):
        return roc_from_ranking(_ranking(along_curve(curve)))
    if isinstance(curve, PRCurve | PRPoints):
        raise _missing_totals()
    return _points(curve)


class Meeting(NamedTuple):
    """Which of two curves lies above the other, and where they cross.

    `relation` is "first" or "second" for the curve that is nowhere below the other, "equal", or
    "neither" if they cross. `places` are the crossing points from left to right.
    """

    relation: Relation
    places: CurvePoints


def meeting(a: CurvePoints, b: CurvePoints, axes: AxesKind = "roc") -> Meeting:
    """Compare two curves, completed by (0, 0) and (1, 1) in ROC space.

    If both have the same totals, PR space gives the same relation (Davis and Goadrich 2006, theorem
    3.2). Otherwise axes="pr" compares the curves of precision and recall. Raises DataError for
    points that form no curve, and if a class is missing.

    Examples
    --------
    >>> a = CurvePoints.of_rates([0, 0.75], [0.5, 1], 20, 2000)
    >>> b = CurvePoints.of_rates([0.25], [1], 20, 2000)
    >>> above, places = meeting(a, b)
    >>> above, places.fpr.round(12).tolist(), places.recall.round(12).tolist()
    ('neither', [0.15], [0.6])
    """
    totals = a.positives, a.negatives
    if axes != "pr" or totals == (b.positives, b.negatives):
        roc_curves: list[Any] = [(curve.fpr, curve.tpr) for curve in (a, b)]
        fpr, tpr = crossings(*roc_curves)
        return Meeting(relation(*roc_curves), CurvePoints.of_rates(fpr, tpr, *totals))
    pr_curves: list[Any] = []
    for curve in (a, b):
        is_defined = ~np.isnan(curve.precision)
        pr_curves.append((curve.precision[is_defined], curve.recall[is_defined]))
    places = _from_pr_points(PRPoints(*crossings(*pr_curves, space="pr")))
    return Meeting(relation(*pr_curves, space="pr"), places)


def points_of(curve: AnyCurve) -> CurvePoints:
    """Convert any curve to points in both spaces. Raises DataError as `to_space` does."""
    roc = _to_roc_form(curve)
    if isinstance(roc, CurvePoints):
        return roc
    precision = read_only(defined_ratio(roc.tp, roc.tp + roc.fp))
    return CurvePoints(precision, roc.tpr, roc.fpr, roc.thresholds, roc.positives, roc.negatives)


def _from_pr_points(points: PRPoints) -> CurvePoints:
    """Convert points of PR space to CurvePoints by rising recall. FPR and totals are NaN."""
    order = np.argsort(points.recall, kind="stable")
    unknown = np.full(points.recall.size, np.nan)
    return CurvePoints(
        points.precision[order], points.recall[order], unknown, unknown, math.nan, math.nan
    )


def _points(curve: object) -> CurvePoints:
    """Convert ROC points to CurvePoints. Raises DataError for any other value but CurvePoints."""
    if isinstance(curve, ROCPoints):
        return CurvePoints.of_rates(*curve)
    if isinstance(curve, CurvePoints):
        return curve
    raise DataError(f"{kind_of_value(curve)}: expected a curve of bsdsbench.curves")


def _ranking(c: PRResult | ROCResult) -> Ranking:
    """Return the counts of a curve as a ranking."""
    return Ranking(c.thresholds, c.tp, c.fp, c.positives, c.negatives)


def _missing_totals() -> DataError:
    """Return the error for a curve without the totals of the classes."""
    fixes = [Setting("num_positives", ...), Setting("num_negatives", ...)]
    what = "points of one space, expected the totals of the classes for the other"
    return DataError(what, fix=fixes)
