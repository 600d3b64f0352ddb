"""Points of a curve in both spaces: given as rates or as counts, or taken from any curve."""

from __future__ import annotations

import math
import typing
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
    between,
    crossings,
    relation,
    roc_convex_hull,
)
from bsdsbench.curves.ranked import (
    PRResult,
    Ranking,
    ROCResult,
    along_curve,
    pr_of,
    roc_of,
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
        f8 (T,), from the point with the fewest predictions on.
    positives, negatives : float
        Total of each class; NaN if it is not known.

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
        """Return ROC points from left to right; without the totals precision is not known.

        Raises DataError for rates outside [0, 1], and for totals that are not above 0.
        """
        x, y = columns("share", fpr=fpr, tpr=tpr)
        for name, total in (("positives", positives), ("negatives", negatives)):
            if not np.isnan(total):
                above_zero(total, name)
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
        tp, fp = counts_from_rates(y, positives), counts_from_rates(x, negatives)
        precision, unknown = read_only(defined_ratio(tp, tp + fp)), np.full(x.size, np.nan)
        totals = float(positives), float(negatives)
        return cls(precision, read_only(y), read_only(x), read_only(unknown), *totals)

    @classmethod
    def of_counts(
        cls, tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float
    ) -> CurvePoints:
        """Return points of counts. Raises DataError for counts below 0 or above their totals."""
        p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
        a, b = columns("number", tp=tp, fp=fp)
        return cls.of_rates(b / n, a / p, p, n)

    @property
    def recall(self) -> F8:
        """The true positive rate, f8 (T,)."""
        return self.tpr

    @property
    def fnr(self) -> F8:
        """The rate of misses, 1 - tpr, f8 (T,)."""
        return 1 - self.tpr

    @property
    def tp(self) -> F8:
        """True positives, f8 (T,)."""
        return counts_from_rates(self.tpr, self.positives)

    @property
    def fp(self) -> F8:
        """False positives, f8 (T,)."""
        return counts_from_rates(self.fpr, self.negatives)

    @property
    def is_curve(self) -> bool:
        """True if no rate falls from one point to the next, so that lines may join them."""
        return not ((np.diff(self.tpr) < 0) | (np.diff(self.fpr) < 0)).any()

    @property
    def auc(self) -> float:
        """Trapezoids under the points, (0, 0) and (1, 1) in ROC space; NaN if it is no curve."""
        if not self.is_curve:
            return float("nan")
        x, y = np.r_[0, self.fpr, 1], np.r_[0, self.tpr, 1]
        return trapezoids(x, y)

    @property
    def area(self) -> float:
        """Exact area under the count-linear PR curve; NaN without totals or where it is no curve.

        It ends at the last point; see `davis_goadrich_area`.
        """
        if not self.is_curve or np.isnan(self.tp + self.fp).any() or not self.tpr.size:
            return float("nan")
        return davis_goadrich_area(self.tp, self.fp, self.positives)

    @property
    def chance(self) -> float:
        """Precision of a random ranking, P/(P + N)."""
        return float(self.positives / (self.positives + self.negatives))

    def hull(self) -> CurvePoints:
        """Return the corners of the upper convex hull in ROC space, with the same totals.

        Where a class is missing it is the curve itself, whose rates are undefined.
        """
        if np.isnan(self.fpr + self.tpr).any():
            return self
        return CurvePoints.of_rates(
            *roc_convex_hull(self.fpr, self.tpr), self.positives, self.negatives
        )

    def with_between(self) -> CurvePoints:
        """Return the points and those between them, linear in counts, at each whole TP.

        Raises DataError without totals, and for counts that fall.
        """
        pr_form(self)
        tp, fp = between(self.tp, self.fp)
        return CurvePoints.of_counts(tp, fp, self.positives, self.negatives)


AnyCurve = PRResult | ROCResult | CurvePoints | ROCPoints | PRPoints | PRCurve


def in_space(curve: AnyCurve, axes: AxesKind) -> PRResult | ROCResult | CurvePoints | PRCurve:
    """Return a curve in the form that has the rates of the axes: any curve of the package.

    Raises DataError for what is no curve, for a stack of curves, and for one without the totals of
    the classes that the axes need.
    """
    return pr_form(curve) if axes == "pr" else _roc_form(curve)


def pr_form(curve: AnyCurve) -> PRResult | CurvePoints | PRCurve:
    """Return a curve in a form with precision and recall. Raises DataError as `in_space`."""
    if isinstance(curve, PRResult):
        return along_curve(curve)
    if isinstance(curve, ROCResult):
        return pr_of(_ranking(along_curve(curve)))
    if isinstance(curve, PRCurve):
        if curve.precision.ndim > 1:
            raise DataError(f"a stack of {len(curve.precision)} curves, expected one of them")
        return curve
    if isinstance(curve, PRPoints):
        p, r = (column[np.argsort(curve.recall, kind="stable")] for column in curve)
        unknown = np.full(r.size, np.nan)
        return CurvePoints(p, r, unknown, unknown, math.nan, math.nan)
    points = _points(curve)
    if points.tpr.size and math.isnan(points.positives + points.negatives):
        raise _without_totals()
    return points


def _roc_form(curve: AnyCurve) -> ROCResult | CurvePoints:
    """Return a curve in a form with TPR and FPR. Raises DataError as `in_space`."""
    if isinstance(curve, ROCResult):
        return along_curve(curve)
    if isinstance(curve, PRResult):
        return roc_of(_ranking(along_curve(curve)))
    if isinstance(curve, PRCurve | PRPoints):
        raise _without_totals()
    return _points(curve)


class Meeting(NamedTuple):
    """Which of two curves dominates the other, and the places where they cross, left to right."""

    relation: Relation
    places: CurvePoints


def meeting(a: CurvePoints, b: CurvePoints, axes: AxesKind = "roc") -> Meeting:
    """Return how two curves lie to each other, completed by (0, 0) and (1, 1) in ROC space.

    In PR space it is the same where both have the same totals (Davis and Goadrich 2006, theorem
    3.2); else the curves of precision and recall are compared as they are. Raises DataError for
    points that are no curve, and where a class is missing.

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
        pair: list[Any] = [(curve.fpr, curve.tpr) for curve in (a, b)]
        fpr, tpr = crossings(*pair)
        return Meeting(relation(*pair), CurvePoints.of_rates(fpr, tpr, *totals))
    pair = []
    for curve in (a, b):
        known = ~np.isnan(curve.precision)
        pair.append((curve.precision[known], curve.recall[known]))
    crossed = pr_form(PRPoints(*crossings(*pair, space="pr")))
    return Meeting(relation(*pair, space="pr"), typing.cast(CurvePoints, crossed))


def points_of(curve: AnyCurve) -> CurvePoints:
    """Return the points of a curve in both spaces. Raises DataError as `in_space`."""
    c = _roc_form(curve)
    if isinstance(c, CurvePoints):
        return c
    precision = read_only(defined_ratio(c.tp, c.tp + c.fp))
    return CurvePoints(precision, c.tpr, c.fpr, c.thresholds, c.positives, c.negatives)


def _points(curve: object) -> CurvePoints:
    if isinstance(curve, ROCPoints):
        return CurvePoints.of_rates(*curve)
    if isinstance(curve, CurvePoints):
        return curve
    raise DataError(f"{kind_of_value(curve)}: expected a curve of bsdsbench.curves")


def _ranking(c: PRResult | ROCResult) -> Ranking:
    return Ranking(c.thresholds, c.tp, c.fp, c.positives, c.negatives)


def _without_totals() -> DataError:
    fixes = [Setting("num_positives", ...), Setting("num_negatives", ...)]
    what = "points of one space, expected the totals of the classes for the other"
    return DataError(what, fix=fixes)
