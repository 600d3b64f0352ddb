"""Points of a curve in PR and ROC space, from rates, counts, other curves or fractional targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, kind_of_value
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
    ROCResult,
    along_curve,
    pr_from_ranking,
    roc_from_ranking,
    trapezoids,
)
from bsdsbench.curves.samples import (
    RATE_SLACK,
    Ranking,
    above_zero,
    check_columns,
    counts_from_rates,
    read_only,
    whole_number,
)
from bsdsbench.errors import DataError, InputWarning, Setting, ShapeError, warn
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import defined_ratio
from bsdsbench.tables.result_object import TabularCurve

AxesKind = Literal["pr", "roc", "det"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CurvePoints(TabularCurve):
    """Points of a curve in PR and ROC space. Undefined and unknown values are NaN.

    Parameters
    ----------
    precision, tpr, fpr, thresholds : array
        float64 (T,), from the fewest predictions to the most.
    positives, negatives : float
        Number of samples of each class. NaN if unknown.

    Examples
    --------
    >>> points = CurvePoints.of_counts([5, 10], [5, 30], 20, 100)
    >>> points.recall.tolist(), points.precision.tolist()
    ([0.25, 0.5], [0.5, 0.25])
    """

    precision: Floats
    tpr: Floats
    fpr: Floats
    thresholds: Floats
    positives: float
    negatives: float

    @classmethod
    def of_rates(
        cls, fpr: ArrayLike, tpr: ArrayLike, positives: float = np.nan, negatives: float = np.nan
    ) -> CurvePoints:
        """Build the curve from rates (T,) in any order. The points are sorted by FPR, then TPR.

        Thresholds are NaN. Precision is NaN if a class total is unknown (NaN).
        """
        x, y = check_columns("share", fpr=fpr, tpr=tpr)
        for name, total in (("positives", positives), ("negatives", negatives)):
            if not np.isnan(total):
                above_zero(total, name)
        order = np.lexsort((y, x))  # by x, then by y
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
        """Build the curve from counts (T,) in any order. The points are sorted by FPR, then TPR."""
        p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
        tps, fps = check_columns("number", tp=tp, fp=fp)
        return cls.of_rates(fps / n, tps / p, p, n)

    @property
    def recall(self) -> Floats:
        """The true positive rate, float64 (T,)."""
        return self.tpr

    @property
    def fnr(self) -> Floats:
        """The miss rate, 1 - tpr, float64 (T,)."""
        return 1 - self.tpr

    @property
    def tp(self) -> Floats:
        """True positives, float64 (T,). NaN if `positives` is unknown."""
        return counts_from_rates(self.tpr, self.positives)

    @property
    def fp(self) -> Floats:
        """False positives, float64 (T,). NaN if `negatives` is unknown."""
        return counts_from_rates(self.fpr, self.negatives)

    @property
    def is_curve(self) -> bool:
        """True if neither rate decreases from point to point, so that lines may join the points."""
        return not ((np.diff(self.tpr) < 0) | (np.diff(self.fpr) < 0)).any()

    @property
    def auc(self) -> float:
        """Area under the ROC points by the trapezoidal rule, with (0, 0) and (1, 1) added.

        It is NaN if a rate decreases from point to point, so that no line joins the points.
        """
        if not self.is_curve:
            return float("nan")
        return trapezoids(np.r_[0, self.fpr, 1], np.r_[0, self.tpr, 1])

    @property
    def area(self) -> float:
        """Area under the PR curve by `davis_goadrich_area`.

        It is NaN if there are no points, if a class total is unknown, or if a rate decreases from
        point to point, so that no line joins the points.
        """
        if not self.is_curve or np.isnan(self.tp + self.fp).any() or not self.tpr.size:
            return float("nan")
        return davis_goadrich_area(self.tp, self.fp, self.positives)

    @property
    def chance(self) -> float:
        """The expected precision of a random ranking, P/(P + N). NaN without samples."""
        return float(defined_ratio(self.positives, self.positives + self.negatives))

    def hull(self) -> CurvePoints:
        """Return the corners of the upper convex hull in ROC space.

        If a rate is NaN, the hull is undefined and the curve itself is returned.
        """
        if np.isnan(self.fpr + self.tpr).any():
            return self
        corners = roc_convex_hull(self.fpr, self.tpr)
        return CurvePoints.of_rates(*corners, self.positives, self.negatives)

    def with_between(self) -> CurvePoints:
        """Return the curve with a point added at each whole TP between two points.

        FP is interpolated linearly between the two points. Thresholds of all points become NaN.
        Raises DataError if a class total is unknown.
        """
        check_totals(self)
        tp, fp = insert_whole_tp(self.tp, self.fp)
        return CurvePoints.of_counts(tp, fp, self.positives, self.negatives)


AnyCurve = PRResult | ROCResult | CurvePoints | ROCPoints | PRPoints | PRCurve


def to_space(curve: AnyCurve, axes: AxesKind) -> PRResult | ROCResult | CurvePoints | PRCurve:
    """Convert a curve to an object that has the two rates of the given axes.

    "pr" axes need precision and recall, "roc" and "det" axes TPR and FPR. The points of the
    returned object are in the order in which a line joins them. The kinds of curves are:

    - PRResult and ROCResult, of labels and scores, have counts and can be converted to each other.
    - CurvePoints have the rates of both spaces; precision is unknown if a class total is.
    - ROCPoints have no precision. PRPoints, and PRCurve of the boundary benchmark, have no number
      of negatives, and so no FPR.

    Raises DataError if `curve` is not a single curve of this package, or if the conversion needs
    class totals that it does not have: ROCPoints for "pr" axes, PRPoints and PRCurve for others.
    """
    if isinstance(curve, PRResult | ROCResult):
        curve = along_curve(curve)  # by descending threshold
        if isinstance(curve, PRResult if axes == "pr" else ROCResult):
            return curve
        # The counts of the curve, from which the other kind of curve is computed
        ranking = Ranking(curve.thresholds, curve.tp, curve.fp, curve.positives, curve.negatives)
        return pr_from_ranking(ranking) if axes == "pr" else roc_from_ranking(ranking)
    if axes != "pr":  # TPR and FPR
        return points_of(curve)  # raises if there is no FPR
    if isinstance(curve, PRPoints):
        return _from_pr_points(curve)  # CurvePoints, with NaN for what is unknown
    if isinstance(curve, PRCurve):
        if curve.precision.ndim > 1:
            raise DataError(f"a stack of {len(curve.precision)} curves, expected one of them")
        return curve
    points = points_of(curve)
    check_totals(points)  # precision needs both totals
    return points


def points_of(curve: AnyCurve) -> CurvePoints:
    """Convert a curve to CurvePoints, by descending threshold.

    Raises DataError for curves of precision and recall without counts, and for what is no curve.
    """
    if isinstance(curve, CurvePoints):
        return curve
    if isinstance(curve, ROCPoints):
        return CurvePoints.of_rates(fpr=curve.fpr, tpr=curve.tpr)
    if isinstance(curve, PRResult | ROCResult):
        roc = to_space(curve, "roc")  # a PRResult becomes the ROCResult of the same counts
        assert isinstance(roc, ROCResult)
        precision = read_only(defined_ratio(roc.tp, roc.tp + roc.fp))
        totals = roc.positives, roc.negatives
        return CurvePoints(precision, roc.tpr, roc.fpr, roc.thresholds, *totals)
    if isinstance(curve, PRCurve | PRPoints):  # FPR needs the number of negatives
        raise _missing_totals()
    raise DataError(f"{kind_of_value(curve)}: expected a curve of bsdsbench.curves")


def check_totals(points: CurvePoints) -> None:
    """Raise DataError if there are points but a class total is unknown."""
    if points.tpr.size and math.isnan(points.positives + points.negatives):
        raise _missing_totals()


def _missing_totals() -> DataError:
    """Return the error for a conversion that needs unknown class totals."""
    return DataError(
        "points of one space, expected the totals of the classes for the other",
        fix=[Setting("num_positives", ...), Setting("num_negatives", ...)],
    )


def _from_pr_points(points: PRPoints) -> CurvePoints:
    """Convert PR points to CurvePoints, sorted by recall. FPR, thresholds and totals are NaN."""
    order = np.argsort(points.recall, kind="stable")
    unknown = np.full(points.recall.size, np.nan)
    return CurvePoints(
        precision=points.precision[order],
        tpr=points.recall[order],
        fpr=unknown,
        thresholds=unknown,
        positives=math.nan,
        negatives=math.nan,
    )


class Meeting(NamedTuple):
    """Which of two curves lies above the other, and the points at which they cross."""

    relation: Relation  # "first", "second", "neither" or "equal", as by `geometry.relation`
    places: CurvePoints  # from left to right; FPR is NaN if they were computed in PR space


def meeting(a: CurvePoints, b: CurvePoints, axes: AxesKind = "roc") -> Meeting:
    """Determine which of two curves lies above the other, and where they cross.

    The result has `relation` ("first", "second", "neither" or "equal": the curve that is above the
    other) and `places` (the crossings). The curves are compared in ROC space, extended to (0, 0)
    and (1, 1). If both have the same numbers of positives and of negatives, the relation in PR
    space is the same (Davis and Goadrich 2006, theorem 3.2). If they differ, it need not be, so
    axes="pr" then compares the curves in PR space. FPR is unknown at crossings computed there.

    Examples
    --------
    >>> a = CurvePoints.of_rates([0, 0.75], [0.5, 1], 20, 2000)
    >>> b = CurvePoints.of_rates([0.25], [1], 20, 2000)
    >>> above, places = meeting(a, b)
    >>> above, places.fpr.round(12).tolist(), places.recall.round(12).tolist()
    ('neither', [0.15], [0.6])
    """
    a, b = points_of(a), points_of(b)
    totals = a.positives, a.negatives
    if axes != "pr" or totals == (b.positives, b.negatives):
        roc_a, roc_b = ROCPoints(a.fpr, a.tpr), ROCPoints(b.fpr, b.tpr)
        fpr, tpr = crossings(roc_a, roc_b)
        return Meeting(relation(roc_a, roc_b), CurvePoints.of_rates(fpr, tpr, *totals))
    pr_a, pr_b = _defined_pr_points(a), _defined_pr_points(b)
    precision, recall = crossings(pr_a, pr_b, space="pr")
    places = _from_pr_points(PRPoints(precision, recall))  # with FPR and totals NaN
    return Meeting(relation(pr_a, pr_b, space="pr"), places)


def _defined_pr_points(curve: CurvePoints) -> PRPoints:
    """Return precision and recall of the points with defined precision."""
    is_defined = ~np.isnan(curve.precision)
    return PRPoints(curve.precision[is_defined], curve.recall[is_defined])


def threshold_curve(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    num_thresholds: int | None = None,
    instance_count: ArrayLike | None = None,
    strict: bool = False,
) -> CurvePoints:
    """Compute precision, TPR and FPR at quantiles of the scores, as Schroedl's prec_rec does.

    Quantiles follow Hazen's rule: the k-th smallest of m scores is the quantile (k - 0.5)/m.
    Quantiles between two scores are interpolated linearly, and those beyond the ends are the
    smallest and largest score. A quantile is often the midpoint of two scores, so the highest
    scores may exceed all thresholds. No point without predictions is added.

    Parameters
    ----------
    targets : array_like
        (n,), the positive fraction of each row, clipped to [0, 1]. If instance_count is given, the
        number of positives in each row, limited to the row's instance count.
    scores : array_like
        (n,), finite.
    num_thresholds : int or None
        T: the thresholds are the quantiles i/T, i = 1 .. T-1, and the smallest score, without
        duplicates. The default is the number of distinct scores, but at most 100. If it is 0 or 1,
        the smallest score is the only threshold.
    instance_count : array_like or None
        Number of instances in each row, one number or (n,). The default is 1.
    strict : bool
        If False, rows with score >= threshold are predicted positive. If True, rows with score >
        threshold are, and the smallest score is not a threshold (as in the copy in section 6.3 of
        the 2013 note).

    Returns
    -------
    CurvePoints
        Points by descending threshold. TPR is NaN without positives, FPR without negatives. Without
        rows there are no points.

    Examples
    --------
    >>> float(threshold_curve([1, 0, 1], [0.9, 0.5, 0.4]).tpr[-1])
    1.0
    """
    positive_instances, s = check_columns("number", targets=targets, scores=scores)
    if instance_count is None:
        instances = np.ones(s.size)
        n_above = np.count_nonzero(positive_instances > 1 + RATE_SLACK)
        if n_above and positive_instances.min() > 0:
            has = f"targets: {n_above} above 1, which count as 1, and none at 0"
            warn(InputWarning(f"{has}: labels of 1 and 2?"))
        positive_instances = np.clip(positive_instances, 0, 1)
    else:
        (instances,) = check_columns("number", instance_count=instance_count)
        if instances.size not in (1, s.size):
            raise ShapeError(
                f"instance_count: {instances.size} values, expected 1 or one per score ({s.size})"
            )
        if (instances < 0).any():
            raise DataError("instance_count: expected numbers, 0 or more")
        instances = np.broadcast_to(instances, s.size)
        positive_instances = np.minimum(positive_instances, instances)
    # Quantiles i / T of the scores for i = 1 .. T - 1, by Hazen's definition
    distinct = np.unique(s)
    if num_thresholds is None:
        num_thresholds = min(distinct.size, 100)
    quantiles = _hazen_quantiles(s, whole_number(num_thresholds, "num_thresholds"))
    smallest = distinct[:0] if strict else distinct[:1]  # also empty without scores
    thresholds = np.unique(np.r_[smallest, quantiles])[::-1]  # descending
    by_falling_score = np.argsort(-s, kind="stable")
    falling_scores = s[by_falling_score]
    side: Literal["left", "right"] = "left" if strict else "right"
    # At each threshold. Negated, because `searchsorted` needs rising values
    n_predicted_rows = np.searchsorted(-falling_scores, -thresholds, side)
    # Instances in the first k rows, k = 0 .. n, read at the numbers of predicted rows
    positives_in_rows = np.r_[0.0, np.cumsum(positive_instances[by_falling_score])]
    instances_in_rows = np.r_[0.0, np.cumsum(instances[by_falling_score])]
    tp, predicted = positives_in_rows[n_predicted_rows], instances_in_rows[n_predicted_rows]
    positives = float(positive_instances.sum())
    negatives = float((instances - positive_instances).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        return CurvePoints(
            precision=read_only(tp / predicted),
            tpr=read_only(tp / np.float64(positives)),
            fpr=read_only((predicted - tp) / np.float64(negatives)),
            thresholds=read_only(thresholds),
            positives=positives,
            negatives=negatives,
        )


def _hazen_quantiles(values: Floats, n: int) -> Floats:
    """Return the quantiles 1/n, 2/n .. (n - 1)/n of the values by Hazen's rule, ascending.

    Quantile q of m sorted values is at index q m - 1/2, interpolated between the neighbouring
    values. Indices below 0 count as 0. Without values, the result is empty.

    A quantile that falls on a value equals it exactly, which numpy does not guarantee.
    """
    m = values.size
    if m == 0:
        return np.empty(0)
    ordered = np.sort(values)
    # The index m i / n - 1/2 of quantile i/n, as an integer multiple of 1/(2 n)
    index_in_steps = np.maximum(2 * m * np.arange(1, n) - n, 0)
    left, steps_beyond_left = np.divmod(index_in_steps, 2 * n)
    right = np.minimum(left + 1, m - 1)
    rise = ordered[right] - ordered[left]
    return ordered[left] + rise * (steps_beyond_left / (2 * n))
