"""Areas under PR and ROC curves, each rule by its name.

The area under a PR curve depends on the rule. Rules differ in the curve between two points (none, a
straight line, the count-linear curve), in the start at recall 0 and in the recall levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, given_word
from bsdsbench.curves.geometry import PRPoints, achievable_pr, interpolate_pr, roc_convex_hull
from bsdsbench.curves.ranked import Ranking, pr_from_ranking, rank, roc_from_ranking, trapezoids
from bsdsbench.curves.samples import Bools, LabelReading, above_zero, columns, defined, samples
from bsdsbench.errors import DataError
from bsdsbench.protocol.protocol import even_thresholds
from bsdsbench.scores.curve import PRCurve, area
from bsdsbench.scores.ratios import defined_ratio, ratio

Rule = Literal["davis-goadrich", "trapezoid", "step", "bsds", "11-point", "101-point"]
_RULES = get_args(Rule)
_ROUNDING = 1e-6


def auc_pr(precision: ArrayLike, recall: ArrayLike, *, rule: Rule = "davis-goadrich") -> float:
    """Return the area under a PR curve by a named rule.

    Parameters
    ----------
    precision, recall : array_like
        float64 (K,), along the curve in either direction. A NaN precision at an end with recall 0
        is the 0/0 of a converted curve. It is left out with an InputWarning.
    rule : str
        The rule for the area between the points:

        - "davis-goadrich": count-linear curves, in closed form; see `davis_goadrich_area`
        - "trapezoid": straight lines; nothing outside the points (optimistic)
        - "step": rise of recall x precision after it, from recall 0 (average precision)
        - "bsds": straight lines read at recall 0, 0.01 .. 1, 0 outside, sum x 0.01
        - "11-point", "101-point": mean over even recall levels of the best precision at or beyond
          the level, 0 if there is none (PASCAL 2007, COCO). The conventional point (recall 0,
          precision 1) counts only if it is among the points, as in VLFeat

    Returns
    -------
    float
        The area; 0 without points.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DataError
        For an unknown rule, NaN, values outside [0, 1], or a recall that turns back ("bsds" sorts
        the points instead).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.auc_pr([1.0, 0.5], [0.5, 1.0], rule="trapezoid")
    0.375
    """
    given_word(rule, "rule", _RULES)
    precision, recall = defined(precision, recall, "precision")
    p, r = columns("share", precision=precision, recall=recall)
    if r.size == 0:
        return 0.0
    if rule == "bsds":
        return float(area(PRCurve(np.arange(r.size, dtype=np.float64), p, r)))
    if r[0] > r[-1]:
        p, r = p[::-1], r[::-1]
    if (np.diff(r) < 0).any():
        raise DataError("recall: expected values that rise (or fall) all along the curve")
    if rule == "trapezoid":
        return trapezoids(r, p)
    if rule == "step":
        return float(np.sum(np.diff(r, prepend=0) * p))
    if rule != "davis-goadrich":
        n_steps = 10 if rule == "11-point" else 100
        return float(largest_precision_from(p, r, np.arange(n_steps + 1) / n_steps).mean())
    p, r = p[r > 0], r[r > 0]
    if (p == 0).any():
        raise DataError("precision 0 at a recall above 0: expected a precision above 0 there")
    fp = r * (1 / p - 1)
    # A fall of FP within float32 rounding is removed
    highest = np.maximum.accumulate(fp)
    return davis_goadrich_area(r, np.where(highest - fp <= _ROUNDING * r / p, highest, fp), 1)


def davis_goadrich_area(tp: ArrayLike, fp: ArrayLike, positives: float) -> float:
    """Return the exact area under the count-linear curve through points (TP, FP).

    A first point with TP > 0 is joined to (0, 0), so that its precision holds down to recall 0. A
    point (0, FP > 0) is kept, so false positives that are ranked first lower the area. Nothing is
    added beyond the last point. Raises as `interpolate_pr` does.

    Along a segment FP = k TP + c, the precision t / ((1 + k) t + c) has the integral [dTP / (1 + k)
    - c / (1 + k)^2 ln(((1 + k) TP_B + c) / ((1 + k) TP_A + c))].

    Parameters
    ----------
    tp, fp, positives : as in `interpolate_pr`
        Counts along the curve, and P.

    Returns
    -------
    float
        The area; 0 without points.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.davis_goadrich_area([1, 2], [0, 0], 2)
    1.0
    """
    a, b = columns("count", tp=tp, fp=fp)
    positives = above_zero(positives, "positives")
    if a.size and a[0] > 0:
        a, b = np.r_[0.0, a], np.r_[0.0, b]
    rises = np.diff(a) > 0
    tp_a = a[:-1][rises]
    tp_b = a[1:][rises]
    fp_a = b[:-1][rises]
    fp_b = b[1:][rises]
    k = (fp_b - fp_a) / (tp_b - tp_a)
    c = fp_a - k * tp_a
    # The arguments of the logarithm are TP + FP at both ends. From (0, 0) on c is 0.
    start, end = tp_a + fp_a, tp_b + fp_b
    log = np.log(np.divide(end, start, out=np.ones_like(end), where=start > 0))
    return float(np.sum((tp_b - tp_a) / (1 + k) - c / (1 + k) ** 2 * log) / positives)


class CurveAreas(NamedTuple):
    """The areas under the PR and the ROC curve of one ranking. Unpacks as pr, roc."""

    pr: float
    roc: float


def auccalculator_areas(
    tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float, *, min_recall: float = 0.0
) -> CurveAreas:
    """Return the areas that AUCCalculator computes for points (TP, FP), one per distinct score.

    Points with TP = 0 are dropped, which is optimistic if false positives are ranked first. If the
    first TP is above 1, the point (1, FP/TP) is added before it. The curve ends at (P, N). Points
    are inserted at each whole TP, the first precision is kept down to recall 0, and areas are
    trapezoids; no hull is taken. Raises as `interpolate_pr` does, and DataError for counts that
    exceed their totals.

    Parameters
    ----------
    tp, fp, positives, negatives : as in `davis_goadrich_area`
        Counts along the curve and totals.
    min_recall : float
        Left end of the PR area.

    Returns
    -------
    CurveAreas
        Area under PR, area under ROC.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> pr, roc = curves.auccalculator_areas([1, 2], [0, 2], 2, 2)
    >>> roc
    0.75
    """
    a, b = columns("count", tp=tp, fp=fp)
    positives = above_zero(positives, "positives")
    negatives = above_zero(negatives, "negatives")
    a, b = a[a > 0], b[a > 0]
    if a.size and a[0] > 1:
        a, b = np.r_[1.0, a], np.r_[b[0] / a[0], b]
    a, b = np.r_[a, positives], np.r_[b, negatives]
    precision, recall = interpolate_pr(a, b, positives)
    precision, recall = np.r_[precision[0], precision], np.r_[0.0, recall]
    if min_recall:
        edge = np.interp(min_recall, recall, precision)
        right = recall > min_recall
        precision, recall = np.r_[edge, precision[right]], np.r_[min_recall, recall[right]]
    under_roc = trapezoids(np.r_[0, b] / negatives, np.r_[0, a] / positives)
    return CurveAreas(trapezoids(recall, precision), under_roc)


def auc_roc(fpr: ArrayLike, tpr: ArrayLike) -> float:
    """Return the area of the trapezoids under ROC points, in the given order.

    No points are added at the ends.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, float64 (K,).

    Returns
    -------
    float
        The area; 0 without points.

    Raises
    ------
    ShapeError, DataError
        If the lengths differ; for NaN or infinity.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.auc_roc([0, 0.5, 1], [0, 1, 1])
    0.75
    """
    return trapezoids(*columns("number", fpr=fpr, tpr=tpr))


def largest_precision_from(precision: F8, recall: F8, levels: F8) -> F8:
    """Return the largest precision at or beyond each recall level, or 0 if there is none.

    `recall` must not fall.
    """
    best = np.r_[np.maximum.accumulate(precision[::-1])[::-1], 0.0]
    return best[np.searchsorted(recall, levels)]


class AreaRow(NamedTuple):
    """An area or average precision of a ranking, and the program or paper that computes it.

    Parameters
    ----------
    name, space : str
        Program or paper, and what it calls the number; "PR" or "ROC".
    value : float
        The number; NaN if the program gives none (no positives, rejected scores).
    points, ties, start, rule : str
        Descriptions of the points of the curve, the treatment of equal scores, the value at
        recall 0, and the sum.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> row = curves.area_table([1, 0, 1], [0.9, 0.5, 0.4])[0]
    >>> row.name, round(row.value, 3)
    ('scikit-learn average_precision_score', 0.833)
    """

    name: str
    space: str
    value: float
    points: str
    ties: str
    start: str
    rule: str


_MERGED, _SAMPLE = "per distinct score | merged", "per sample | input order"
# name -> "points | ties | start | rule"
_DESCRIPTIONS = {
    "scikit-learn average_precision_score": f"{_MERGED} | none | step",
    "scikit-learn precision_recall_curve + auc": f"{_MERGED} | (0, 1) | trapezoid",
    "torchmetrics AveragePrecision, exact": f"{_MERGED} | (0, 1) | step",
    "torchmetrics AveragePrecision, binned": "per threshold, even on [0, 1] | by bin | (0, 1)"
    " | step",
    "VLFeat ap": f"{_SAMPLE} | none | step",
    "VLFeat auc": f"{_SAMPLE} | (0, 1) | trapezoid",
    "VLFeat ap, Interpolate": f"{_SAMPLE} | none | step under the envelope",
    "VLFeat ap_interp_11": f"{_SAMPLE} | (0, 1) | mean of 11 recall levels",
    "PASCAL VOC 2007 AP": f"{_SAMPLE} | none | mean of 11 recall levels",
    "PASCAL VOC 2010 AP": f"{_SAMPLE} | none | step under the envelope",
    "COCO AP": f"{_SAMPLE} | none | mean of 101 recall levels",
    "Davis-Goadrich, count-linear": f"{_MERGED}, count-linear inside"
    " | first precision flat; false positives that come first count | closed form",
    "Davis-Goadrich, achievable (ROC hull)": "hull corners | merged | first precision flat"
    " | closed form",
    "AUCCalculator": "per distinct score and whole TP | merged, count-linear inside"
    " | first precision flat | trapezoid",
    "BSDS area, 99 thresholds": "per threshold | by threshold | 0 outside the recall range"
    " | linear at 101 recall levels, sum / 100",
    "scikit-learn roc_auc_score": f"{_MERGED} | (0, 0) | trapezoid",
    "VLFeat roc auc": f"{_SAMPLE} | (0, 0) | rectangles",
}


def area_table(
    labels: ArrayLike, scores: ArrayLike, *, reading: LabelReading = "auto"
) -> tuple[AreaRow, ...]:
    """Compute every AP and AUC variant of the same labels and scores, with name and rule.

    The values are those of scikit-learn 1.9, torchmetrics 1.9 (read, not run), VLFeat, the PASCAL
    VOC and COCO development kits, AUCCalculator and the BSDS benchmark, computed here from their
    definitions. PR values are NaN without positives, ROC values if a class is missing.

    Parameters
    ----------
    labels, scores, reading : as in `pr`
        The samples and the meaning of labels.

    Raises
    ------
    DataError
        As `pr` does.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> len(curves.area_table([1, 0, 1], [0.9, 0.5, 0.4]))
    17
    """
    values = _compute_areas(*samples(labels, scores, reading))
    rows = []
    for name, description in _DESCRIPTIONS.items():
        space = "ROC" if "roc" in name else "PR"
        rows.append(AreaRow(name, space, values.get(name, np.nan), *description.split(" | ")))
    return tuple(rows)


def point_areas(
    tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float
) -> tuple[AreaRow, ...]:
    """Compute the area under a curve of points by each rule, like `area_table` for samples.

    The arguments and the errors are those of `auccalculator_areas`.
    """
    a, b = columns("count", tp=tp, fp=fp)
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    hull = roc_convex_hull(b / n, a / p)
    interpolated = interpolate_pr(a, b, p)
    drawn = PRPoints(defined_ratio(a, a + b), a / p)
    drawn = PRPoints(*(column[a + b > 0] for column in drawn))
    achievable = davis_goadrich_area(hull.tpr * p, hull.fpr * n, p)
    auccalculator_area = auccalculator_areas(a, b, p, n).pr
    under_roc = trapezoids(np.r_[0, b / n, 1], np.r_[0, a / p, 1])
    rows = [
        ("Davis-Goadrich, count-linear", "closed form", davis_goadrich_area(a, b, p)),
        ("Davis-Goadrich, achievable (ROC hull)", "closed form", achievable),
        ("AUCCalculator", "trapezoid at each whole TP, to (P, N)", auccalculator_area),
        ("step at each whole TP", "step", auc_pr(*interpolated, rule="step")),
        ("straight lines", "trapezoid", auc_pr(*drawn, rule="trapezoid")),
        ("step", "step", auc_pr(*drawn, rule="step")),
        ("11-point", "mean of 11 recall levels", auc_pr(*drawn, rule="11-point")),
        ("101-point", "mean of 101 recall levels", auc_pr(*drawn, rule="101-point")),
        ("BSDS area", "linear at 101 recall levels, sum / 100", auc_pr(*drawn, rule="bsds")),
        ("ROC trapezoids", "trapezoid from (0, 0) to (1, 1)", under_roc),
        ("ROC hull", "trapezoid", trapezoids(*hull)),
    ]
    areas = []
    for name, rule, value in rows:
        space = "ROC" if name.startswith("ROC") else "PR"
        areas.append(AreaRow(name, space, value, "as given", "-", "-", rule))
    return tuple(areas)


def _compute_areas(positive: Bools, negative: Bools, s: F8) -> dict[str, float]:
    """Compute the values of `area_table` by name, without those that are undefined."""
    merged, sample = (rank(positive, negative, s, ties) for ties in ("merge", "sample"))
    p, n = merged.positives, merged.negatives
    # scikit-learn rejects +inf, but accepts -inf as its smallest score
    finite = bool((s < np.inf).all())
    areas: dict[str, Any] = {}
    if p and n:
        areas["VLFeat roc auc"] = roc_from_ranking(sample).auc
        if finite:
            areas["scikit-learn roc_auc_score"] = roc_from_ranking(merged).auc
    if not p:
        return areas
    if finite:
        curve = pr_from_ranking(merged)
        areas["scikit-learn average_precision_score"] = curve.ap
        areas["scikit-learn precision_recall_curve + auc"] = curve.auc
    areas |= _torchmetrics_areas(positive, negative, s)
    curve = pr_from_ranking(sample)
    areas |= {"VLFeat ap": curve.ap, "VLFeat auc": curve.auc, "VLFeat ap_interp_11": curve.ap_11}
    areas["VLFeat ap, Interpolate"] = pr_from_ranking(sample, interpolate=True).ap
    areas |= _development_kit_areas(positive, negative, s)
    areas["Davis-Goadrich, count-linear"] = davis_goadrich_area(merged.tp, merged.fp, p)
    # A ranking without negatives has precision 1 everywhere.
    areas["Davis-Goadrich, achievable (ROC hull)"] = areas["AUCCalculator"] = 1.0
    if n:
        best = achievable_pr(merged.fp / n, merged.tp / p, p, n)
        areas["Davis-Goadrich, achievable (ROC hull)"] = auc_pr(*best)
        areas["AUCCalculator"] = auccalculator_areas(merged.tp, merged.fp, p, n)[0]
    if _is_in_unit_range(s):
        thresholds = np.array(even_thresholds(99))
        areas["BSDS area, 99 thresholds"] = area(
            PRCurve(thresholds, *_pr_at_thresholds(merged, thresholds))
        )
    return {name: float(value) for name, value in areas.items()}


def _is_in_unit_range(scores: F8) -> bool:
    """Return True if all scores lie in [0, 1] and there is a score."""
    return bool(scores.size and scores.min() >= 0 and scores.max() <= 1)


def _torchmetrics_areas(positive: Bools, negative: Bools, s: F8) -> dict[str, float]:
    """Compute torchmetrics' average precisions, if there are positives.

    Scores outside [0, 1] pass through a sigmoid, in single precision.
    """
    if not _is_in_unit_range(s):
        with np.errstate(over="ignore"):
            s = (1 / (1 + np.exp(-s.astype(np.float32)))).astype(np.float64)
    ranking = rank(positive, negative, s)
    precision, recall = _pr_at_thresholds(ranking, np.linspace(0, 1, 100))
    return {
        "torchmetrics AveragePrecision, exact": pr_from_ranking(ranking).ap,
        "torchmetrics AveragePrecision, binned": -np.sum(np.diff(np.r_[recall, 0]) * precision),
    }


def _development_kit_areas(positive: Bools, negative: Bools, s: F8) -> dict[str, float]:
    """Compute the average precisions of the PASCAL VOC and COCO kits, if there are positives.

    MATLAB and numpy sort -inf like any score, and add no conventional first point.
    """
    full = pr_from_ranking(rank(positive, negative, s, "sample", include_inf=True))
    precision, recall = ratio(full.tp, full.tp + full.fp)[1:], full.recall[1:]
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    levels = np.linspace(0, 1, 101)  # rounds differently than i/100
    return {
        "PASCAL VOC 2007 AP": auc_pr(precision, recall, rule="11-point"),
        "PASCAL VOC 2010 AP": auc_pr(envelope, recall, rule="step"),
        "COCO AP": largest_precision_from(precision, recall, levels).mean(),
    }


def _pr_at_thresholds(ranking: Ranking, thresholds: F8) -> PRPoints:
    """Return precision and recall for score >= each of finite thresholds."""
    k = np.searchsorted(-ranking.thresholds, -thresholds, side="right") - 1
    tp = ranking.tp[k]
    return PRPoints(ratio(tp, tp + ranking.fp[k]), tp / ranking.positives)


class DeLongResult(NamedTuple):
    """The areas under two ROC curves of the same samples, and the test of their difference.

    Parameters
    ----------
    auc, other : float
        The areas of `scores` and of `other`.
    difference, low, high : float
        auc - other, and its interval.
    p : float
        Two-sided p-value of no difference; NaN if the variance is 0.
    covariance : array
        float64 (2, 2), of the two areas. The square root of the diagonal is their standard error.
    """

    auc: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    covariance: F8


def delong(
    labels: ArrayLike,
    scores: ArrayLike,
    other: ArrayLike,
    *,
    level: float = 0.95,
    reading: LabelReading = "auto",
    clusters: ArrayLike | None = None,
) -> DeLongResult:
    """Compare the areas under the ROC curves of two scores of the same samples.

    Parameters
    ----------
    labels, scores, other : array
        Arrays (n,). Labels have the forms of `roc`. A tied pair counts half.
    level : float
        Confidence level of the interval, between 0 and 1.
    reading : str
        As in `roc`.
    clusters : array or None
        (n,), the group of each sample, such as a patient. None: samples are independent.

    Returns
    -------
    DeLongResult

    Raises
    ------
    DataError
        If there are fewer than two positives or negatives, so that there is no variance.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson, Biometrics 1988; computed by ranks as in Sun, Xu, IEEE Signal
    Processing Letters 2014. With clusters: Obuchowski, Biometrics 1997.

    Examples
    --------
    >>> test = delong([0, 0, 1, 1, 1], [1, 3, 2, 4, 5], [2, 1, 3, 5, 4])
    >>> round(test.difference, 3), round(test.p, 3)
    (-0.167, 0.48)
    """
    from scipy.stats import rankdata

    if not 0 < level < 1:
        raise DataError(f"level {level!r}: expected a number between 0 and 1")
    above, below = [], []
    for values in (scores, other):
        positive, negative, s = samples(labels, values, reading)
        n_positive, n_negative = int(positive.sum()), int(negative.sum())
        if min(n_positive, n_negative) < 2:
            raise DataError(
                f"labels: {n_positive} positives and {n_negative} negatives, expected two of each"
            )
        ranks = rankdata(np.r_[s[positive], s[negative]])
        # The fraction of negatives below each positive, and of positives above each negative
        above.append((ranks[:n_positive] - rankdata(s[positive])) / n_negative)
        below.append(1 - (ranks[n_positive:] - rankdata(s[negative])) / n_positive)
    if clusters is None:
        covariance = np.cov(above) / n_positive + np.cov(below) / n_negative
    else:
        members = np.unique(np.asarray(clusters), return_inverse=True)[1]
        if members.shape != positive.shape:
            raise DataError(f"clusters: shape {members.shape}, expected {positive.shape}")
        covariance = _clustered_covariance(above, below, members[positive], members[negative])
    auc, other_auc = (float(np.mean(fractions)) for fractions in above)
    difference = auc - other_auc
    error = float(np.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0)))
    half_width = NormalDist().inv_cdf((1 + level) / 2) * error
    p = 2 * NormalDist().cdf(-abs(difference) / error) if error else float("nan")
    return DeLongResult(
        auc, other_auc, difference, difference - half_width, difference + half_width, p, covariance
    )


def _clustered_covariance(
    above: Sequence[F8], below: Sequence[F8], positive_clusters: I8, negative_clusters: I8
) -> F8:
    """Return the covariance (2, 2) of two areas if samples are clustered.

    `above` and `below` hold, for both scores, the fractions of each positive and each negative
    sample. The last two arguments are the clusters of these samples. Raises DataError if all
    positives or all negatives are in one cluster.
    """
    n_clusters = max(positive_clusters.max(), negative_clusters.max()) + 1
    sums, factors = [], []
    for fractions, members in ((above, positive_clusters), (below, negative_clusters)):
        n_with = np.unique(members).size
        if n_with < 2:
            raise DataError("clusters: one has all positives or negatives, expected two or more")
        centred = [fraction - fraction.mean() for fraction in fractions]
        summed = [np.bincount(members, values, n_clusters) for values in centred]
        sums.append(np.array(summed) / members.size)
        factors.append(n_with / (n_with - 1))
    positives, negatives = sums
    n_used = np.unique(np.concatenate([positive_clusters, negative_clusters])).size
    cross = n_used / (n_used - 1) * (positives @ negatives.T)
    within = factors[0] * (positives @ positives.T) + factors[1] * (negatives @ negatives.T)
    return np.asarray(within + cross + cross.T)
