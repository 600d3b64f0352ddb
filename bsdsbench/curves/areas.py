"""Areas under PR and ROC curves by named rules.

The area under a PR curve depends on the rule. Rules differ in how they join two points (not at all,
by a straight line, or with counts changing linearly), in where the curve starts at recall 0, and in
the recall levels that are averaged.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, check_number, check_word
from bsdsbench.curves.geometry import PRPoints, achievable_pr, interpolate_pr, roc_convex_hull
from bsdsbench.curves.ranked import pr_from_ranking, roc_from_ranking, trapezoids
from bsdsbench.curves.samples import (
    LabelReading,
    Ranking,
    Samples,
    above_zero,
    check_columns,
    printed_step,
    rank,
    read_samples,
    refuse_small_total,
    without_undefined_ends,
)
from bsdsbench.errors import DataError
from bsdsbench.protocol.fields import even_thresholds
from bsdsbench.scores.curve import PRCurve, area
from bsdsbench.scores.ratios import ratio

Rule = Literal["davis-goadrich", "trapezoid", "step", "bsds", "11-point", "101-point"]
_RULES = get_args(Rule)


def auc_pr(precision: ArrayLike, recall: ArrayLike, *, rule: Rule = "davis-goadrich") -> float:
    """Return the area under a PR curve by a named rule. Without points it is 0.

    Parameters
    ----------
    precision, recall : array_like
        float64 (K,), along the curve in either direction. Undefined end points (recall 0, precision
        NaN) are dropped with an InputWarning.
    rule : str
        How the area is computed:

        - "davis-goadrich": the exact area if TP and FP change linearly between the points
        - "trapezoid": straight lines between the points, which is optimistic
        - "step": the sum over points of the rise of recall since the previous point (or 0) times
          the precision (average precision)
        - "bsds": the sum over recall levels 0, 0.01 .. 1 of the precision interpolated linearly
          between the points (0 outside them), times 0.01. The points may be in any order
        - "11-point", "101-point": the mean over 11 or 101 evenly spaced recall levels in [0, 1] of
          the largest precision at or beyond the level, or 0 if there is none (PASCAL 2007, COCO)

    Raises
    ------
    DataError
        If the rule is unknown, if a value is outside [0, 1], or if recall both rises and falls
        (except with "bsds"). With "davis-goadrich" also if precision is 0 at a recall above 0, or
        if false positives decrease as recall rises.

    Examples
    --------
    >>> auc_pr([1.0, 0.5], [0.5, 1.0], rule="trapezoid")
    0.375
    """
    check_word(rule, "rule", _RULES)
    p, r = without_undefined_ends(precision, recall, "precision")
    p, r = check_columns("share", precision=p, recall=r)
    if r.size == 0:
        return 0.0
    if rule == "bsds":  # the default of `area`. It needs no thresholds: number the points instead
        return float(area(PRCurve(np.arange(r.size, dtype=np.float64), p, r)))
    if r[0] > r[-1]:
        p, r = p[::-1], r[::-1]
    if (np.diff(r) < 0).any():
        raise DataError("recall: expected values that rise (or fall) all along the curve")
    if rule == "trapezoid":
        return trapezoids(r, p)
    if rule == "step":
        return float(np.sum(np.diff(r, prepend=0) * p))
    if rule == "davis-goadrich":  # counts are linear between the points
        return _count_linear_area(p, r)
    recall_levels = np.arange(11) / 10 if rule == "11-point" else np.arange(101) / 100
    return float(_largest_precision_from(p, r, recall_levels).mean())


def _count_linear_area(precision: Floats, recall: Floats) -> float:
    """Return the area under a PR curve, by rising recall, with counts linear between its points.

    Points with recall 0 are left out. Raises DataError if false positives decrease.
    """
    has_tp = recall > 0
    # With 1 positive, TP equals recall. The area is the same for any number of positives
    p, tp = precision[has_tp], recall[has_tp]
    if (p == 0).any():
        raise DataError("precision 0 at a recall above 0: expected a precision above 0 there")
    fp = tp * (1 / p - 1)  # because precision is TP / (TP + FP)
    # By how much FP may change if precision and recall change by the last printed digit
    fp_rounding = printed_step(p, tp) * (tp / p + 1) / p
    largest_fp_so_far = np.maximum.accumulate(fp)
    falls_by_rounding = largest_fp_so_far - fp <= fp_rounding
    non_decreasing_fp = np.where(falls_by_rounding, largest_fp_so_far, fp)
    return davis_goadrich_area(tp, non_decreasing_fp, positives=1)


def davis_goadrich_area(tp: ArrayLike, fp: ArrayLike, positives: float) -> float:
    """Return the exact area under a PR curve whose counts change linearly between its points.

    If the first point has TP > 0, it is joined to (0, 0), so that its precision extends to recall
    0. Leading points (0, FP) are kept: false positives ranked before all positives lower the area.
    No area is added beyond the last point. Without points the area is 0.

    From point A to point B, FP = k TP + c. The integral of precision, t / ((1 + k) t + c), over t
    from TP_A to TP_B is (TP_B - TP_A) / (1 + k) - c / (1 + k)^2 ln((TP_B + FP_B) / (TP_A + FP_A)).

    Parameters
    ----------
    tp, fp : array_like
        Counts of shape (K,) along the curve, both non-decreasing.
    positives : float
        The number of positives. Recall is TP / positives.

    Examples
    --------
    >>> davis_goadrich_area([1, 2], [0, 0], 2)
    1.0
    """
    tps, fps = check_columns("count", tp=tp, fp=fp)
    total = above_zero(positives, "positives")
    refuse_small_total(tps.max(initial=0), total, "positives")
    if tps.size and tps[0] > 0:
        tps, fps = np.r_[0.0, tps], np.r_[0.0, fps]
    rises = np.diff(tps) > 0  # a segment along which only FP rises has no area
    tp_a, tp_b = tps[:-1][rises], tps[1:][rises]
    fp_a, fp_b = fps[:-1][rises], fps[1:][rises]
    k = (fp_b - fp_a) / (tp_b - tp_a)
    c = fp_a - k * tp_a
    predicted_a, predicted_b = tp_a + fp_a, tp_b + fp_b
    # If A is (0, 0), c is 0 and the logarithm has no effect, so the growth is set to 1
    growth = np.divide(
        predicted_b, predicted_a, out=np.ones_like(predicted_b), where=predicted_a > 0
    )
    integrals = (tp_b - tp_a) / (1 + k) - c / (1 + k) ** 2 * np.log(growth)
    return float(np.sum(integrals) / total)


class CurveAreas(NamedTuple):
    """The areas under the PR and ROC curves of one ranking. Unpacks as pr, roc."""

    pr: float
    roc: float


def auccalculator_areas(
    tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float, *, min_recall: float = 0.0
) -> CurveAreas:
    """Return the areas in PR and ROC space that the program AUCCalculator computes.

    Both areas are computed by the trapezoidal rule, without a convex hull. Before that, the points
    are changed in four steps:

    1. Points with TP = 0 are dropped, which is optimistic if false positives are ranked first.
    2. If the first TP is above 1, the point (1, FP/TP) is added before it.
    3. The point (P, N), where everything is predicted positive, is added at the end.
    4. For the PR area, points are inserted at each whole TP, with FP interpolated linearly, and the
       first precision is extended to recall 0.

    Parameters
    ----------
    tp, fp : array_like
        Counts of shape (K,) along the curve, both non-decreasing.
    positives, negatives : float
        P and N, the number of samples of each class.
    min_recall : float
        The PR area covers recall from this value to 1. It does not affect the ROC area.

    Examples
    --------
    >>> pr, roc = auccalculator_areas([1, 2], [0, 2], 2, 2)
    >>> roc
    0.75
    """
    all_tps, all_fps = check_columns("count", tp=tp, fp=fp)
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    has_tp = all_tps > 0
    tps, fps = all_tps[has_tp], all_fps[has_tp]  # step 1
    if tps.size and tps[0] > 1:
        tps, fps = np.r_[1.0, tps], np.r_[fps[0] / tps[0], fps]  # step 2
    tps, fps = np.r_[tps, p], np.r_[fps, n]  # step 3
    under_roc = trapezoids(np.r_[0, fps] / n, np.r_[0, tps] / p)
    points = interpolate_pr(tps, fps, p)  # step 4
    precision = np.r_[points.precision[0], points.precision]
    recall = np.r_[0.0, points.recall]
    if check_number(min_recall, "min_recall", 0, 1):
        # Replace all points up to `min_recall` by one point, interpolated at `min_recall`
        precision_at_start = np.interp(min_recall, recall, precision)
        is_later = recall > min_recall
        precision = np.r_[precision_at_start, precision[is_later]]
        recall = np.r_[min_recall, recall[is_later]]
    return CurveAreas(trapezoids(recall, precision), under_roc)


def _largest_precision_from(precision: Floats, recall: Floats, levels: Floats) -> Floats:
    """Return the largest precision at or beyond each of L recall levels, (L,).

    The points are sorted by ascending recall. The precision is 0 at levels that no point reaches.
    """
    # Entry k is the largest precision from point k on; entry K is for levels beyond all points
    largest_from = np.r_[np.maximum.accumulate(precision[::-1])[::-1], 0.0]
    return largest_from[np.searchsorted(recall, levels)]


class AreaRow(NamedTuple):
    """An AP or area under the curve of a ranking, as one program or paper computes it.

    Parameters
    ----------
    name : str
        The program or paper, and its name for the value.
    space : str
        "PR" or "ROC".
    value : float
        The value. NaN if the program returns none, for example without positives.
    points : str
        The points of the curve, for example "per distinct score".
    ties : str
        How equal scores are treated, for example "merged".
    start : str
        Where the curve starts at recall 0 (at FPR 0 in ROC space).
    rule : str
        How the area is computed, for example "trapezoid".

    Examples
    --------
    >>> row = area_table([1, 0, 1], [0.9, 0.5, 0.4])[0]
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


# Values of the fields `points` and `ties` of an `AreaRow`
_MERGED = "per distinct score", "merged"
_SAMPLE = "per sample", "input order"
_BINNED = "per threshold, even on [0, 1]", "by bin"
_GRID = "per threshold", "by threshold"
_LINEAR = "merged, count-linear inside"
_FLAT = "first precision flat"
_FLAT_OR_LOWER = f"{_FLAT}; false positives that come first count"
_BSDS_RULE = "linear at 101 recall levels, sum / 100"
# Names of the rows of `area_table` that are areas under a ROC curve
_ROC_AREAS = "scikit-learn roc_auc_score", "VLFeat roc auc"
# Row name in `area_table` -> its fields `points`, `ties`, `start` and `rule`
_DESCRIPTIONS = {
    "scikit-learn average_precision_score": (*_MERGED, "none", "step"),
    "scikit-learn precision_recall_curve + auc": (*_MERGED, "(0, 1)", "trapezoid"),
    "torchmetrics AveragePrecision, exact": (*_MERGED, "(0, 1)", "step"),
    "torchmetrics AveragePrecision, binned": (*_BINNED, "(0, 1)", "step"),
    "VLFeat ap": (*_SAMPLE, "none", "step"),
    "VLFeat auc": (*_SAMPLE, "(0, 1)", "trapezoid"),
    "VLFeat ap, Interpolate": (*_SAMPLE, "none", "step under the envelope"),
    "VLFeat ap_interp_11": (*_SAMPLE, "(0, 1)", "mean of 11 recall levels"),
    "PASCAL VOC 2007 AP": (*_SAMPLE, "none", "mean of 11 recall levels"),
    "PASCAL VOC 2010 AP": (*_SAMPLE, "none", "step under the envelope"),
    "COCO AP": (*_SAMPLE, "none", "mean of 101 recall levels"),
    "Davis-Goadrich, count-linear": ("per distinct score", _LINEAR, _FLAT_OR_LOWER, "closed form"),
    "Davis-Goadrich, achievable (ROC hull)": ("hull corners", "merged", _FLAT, "closed form"),
    "AUCCalculator": ("per distinct score and whole TP", _LINEAR, _FLAT, "trapezoid"),
    "BSDS area, 99 thresholds": (*_GRID, "0 outside the recall range", _BSDS_RULE),
    "scikit-learn roc_auc_score": (*_MERGED, "(0, 0)", "trapezoid"),
    "VLFeat roc auc": (*_SAMPLE, "(0, 0)", "rectangles"),
}


def area_table(
    labels: ArrayLike, scores: ArrayLike, *, reading: LabelReading = "auto"
) -> tuple[AreaRow, ...]:
    """Compute every variant of AP and AUC for the same labels and scores.

    The variants are those of scikit-learn 1.9, torchmetrics 1.9 (reimplemented from its source, not
    run), VLFeat, the PASCAL VOC and COCO development kits, AUCCalculator and the BSDS benchmark.

    Parameters
    ----------
    labels, scores, reading : as in `pr`
        Class and score of each sample, how labels are read. Errors and warnings are those of `pr`.

    Returns
    -------
    tuple of AreaRow
        The same 17 rows for any data, each with the name of an area, its value, and how it is
        computed. A value is NaN if there are no positives, if its program rejects the scores, or,
        for ROC areas, if there are no negatives.

    Examples
    --------
    >>> len(area_table([1, 0, 1], [0.9, 0.5, 0.4]))
    17
    """
    area_of_name = _compute_areas(read_samples(labels, scores, reading))
    rows = []
    for name, (points, ties, start, rule) in _DESCRIPTIONS.items():
        space = "ROC" if name in _ROC_AREAS else "PR"
        value = area_of_name.get(name, np.nan)
        rows.append(AreaRow(name, space, value, points, ties, start, rule))
    return tuple(rows)


def point_areas(
    tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float
) -> tuple[AreaRow, ...]:
    """Compute the area under points (TP, FP) by each rule that does not need the samples.

    The counts must not decrease along the curve. Returns 9 rows with areas under the PR curve, then
    2 with areas under the ROC curve. The fields `ties` and `start` of a row are "-", because they
    describe how samples are ranked, and here are none.
    """
    tps, fps = check_columns("count", tp=tp, fp=fp)
    p, n = above_zero(positives, "positives"), above_zero(negatives, "negatives")
    # Two areas with counts linear between points: of the corners of the convex hull in ROC space,
    # as counts TP, FP, which mixtures of two classifiers can achieve; and of the given points
    hull = roc_convex_hull(fps / n, tps / p)  # refuses totals below the counts
    achievable = davis_goadrich_area(hull.tpr * p, hull.fpr * n, p)
    count_linear = davis_goadrich_area(tps, fps, p)
    whole_tp_points = interpolate_pr(tps, fps, p)  # precision and recall, at each whole TP too
    has_predictions = tps + fps > 0  # where precision is defined
    given_points = PRPoints(ratio(tps, tps + fps)[has_predictions], (tps / p)[has_predictions])
    auccalculator = auccalculator_areas(tps, fps, p, n).pr
    under_roc = trapezoids(np.r_[0, fps / n, 1], np.r_[0, tps / p, 1])
    # Name, rule and value of each area. At (P, N) all P positives and N negatives are predicted
    pr_areas = [
        ("Davis-Goadrich, count-linear", "closed form", count_linear),
        ("Davis-Goadrich, achievable (ROC hull)", "closed form", achievable),
        ("AUCCalculator", "trapezoid at each whole TP, to (P, N)", auccalculator),
        ("step at each whole TP", "step", auc_pr(*whole_tp_points, rule="step")),
        ("straight lines", "trapezoid", auc_pr(*given_points, rule="trapezoid")),
        ("step", "step", auc_pr(*given_points, rule="step")),
        ("11-point", "mean of 11 recall levels", auc_pr(*given_points, rule="11-point")),
        ("101-point", "mean of 101 recall levels", auc_pr(*given_points, rule="101-point")),
        ("BSDS area", _BSDS_RULE, auc_pr(*given_points, rule="bsds")),
    ]
    roc_areas = [
        ("ROC trapezoids", "trapezoid from (0, 0) to (1, 1)", under_roc),
        ("ROC hull", "trapezoid", trapezoids(*hull)),
    ]
    rows = []
    for space, areas in (("PR", pr_areas), ("ROC", roc_areas)):
        for name, rule, value in areas:
            row = AreaRow(name, space, value, points="as given", ties="-", start="-", rule=rule)
            rows.append(row)
    return tuple(rows)


def _compute_areas(samples: Samples) -> dict[str, float]:
    """Compute the areas of `area_table` for samples, each as its program computes it.

    Returns a dict from names, such as "VLFeat ap", to areas. All areas are missing if there are no
    positives; those of scikit-learn if a score is inf; and the BSDS area if there are no scores, or
    if one is outside [0, 1]. Without negatives, ROC areas are NaN. Two PR areas that need FPR, of
    the ROC hull and of AUCCalculator, are then 1, as precision is 1 everywhere.
    """
    merged = rank(samples, "merge")  # counts at each distinct score
    p, n = merged.positives, merged.negatives
    if not p:
        return {}
    areas: dict[str, Any] = {}
    if (samples.scores < np.inf).all():  # scikit-learn rejects inf, but accepts -inf
        merged_curve = pr_from_ranking(merged)
        areas["scikit-learn average_precision_score"] = merged_curve.ap
        areas["scikit-learn precision_recall_curve + auc"] = merged_curve.auc
        areas["scikit-learn roc_auc_score"] = roc_from_ranking(merged).auc
    areas |= _torchmetrics_areas(samples)
    each_sample = rank(samples, "sample")  # VLFeat has one point per sample
    vlfeat_curve = pr_from_ranking(each_sample)
    areas["VLFeat ap"] = vlfeat_curve.ap
    areas["VLFeat auc"] = vlfeat_curve.auc
    areas["VLFeat ap, Interpolate"] = pr_from_ranking(each_sample, interpolate=True).ap
    areas["VLFeat ap_interp_11"] = vlfeat_curve.ap_11  # mean over 11 recall levels
    areas["VLFeat roc auc"] = roc_from_ranking(each_sample).auc
    areas |= _development_kit_areas(samples)
    achievable = auccalculator = 1.0
    if n:
        # The convex hull in ROC space: a random mixture of two classifiers achieves its edges
        achievable = auc_pr(*achievable_pr(merged.fp / n, merged.tp / p, p, n))
        auccalculator = auccalculator_areas(merged.tp, merged.fp, p, n).pr
    # With counts linear between points
    areas["Davis-Goadrich, count-linear"] = davis_goadrich_area(merged.tp, merged.fp, p)
    areas["Davis-Goadrich, achievable (ROC hull)"] = achievable
    areas["AUCCalculator"] = auccalculator
    scores = samples.scores
    if scores.size and scores.min() >= 0 and scores.max() <= 1:
        thresholds = np.array(even_thresholds(99))  # 0.01, 0.02 .. 0.99
        precision, recall = _pr_at_thresholds(merged, thresholds)
        areas["BSDS area, 99 thresholds"] = area(PRCurve(thresholds, precision, recall))
    return {name: float(value) for name, value in areas.items()}


def _torchmetrics_areas(samples: Samples) -> dict[str, float]:
    """Compute average precision as torchmetrics does: exact, and binned with 100 thresholds.

    If a score is outside [0, 1], all pass a sigmoid in single precision, as in torchmetrics.
    """
    if samples.scores.min(initial=1) < 0 or samples.scores.max(initial=0) > 1:
        with np.errstate(over="ignore"):
            sigmoid = 1 / (1 + np.exp(-samples.scores.astype(np.float32)))
        samples = samples._replace(scores=sigmoid.astype(np.float64))
    ranking = rank(samples)
    # The binned form has evenly spaced thresholds in [0, 1]
    precision, recall = _pr_at_thresholds(ranking, np.linspace(0, 1, 100))
    # Recall decreases with rising threshold, and is 0 beyond the last threshold
    recall_fall = -np.diff(np.r_[recall, 0])
    binned = np.sum(recall_fall * precision)
    return {
        "torchmetrics AveragePrecision, exact": pr_from_ranking(ranking).ap,
        "torchmetrics AveragePrecision, binned": binned,
    }


def _development_kit_areas(samples: Samples) -> dict[str, float]:
    """Compute average precision as the PASCAL VOC and COCO development kits do.

    The kits have one point per sample, of which at least one must be positive, in the order of
    falling scores. A score of -inf ranks last. The point without predictions is no point of theirs.
    """
    ranking = rank(samples, "sample", include_inf=True)
    tp, fp = ranking.tp[1:], ranking.fp[1:]
    precision, recall = ratio(tp, tp + fp), tp / ranking.positives
    # VOC 2010 makes precision monotonic: the largest one at this or a higher recall
    largest_precision = np.maximum.accumulate(precision[::-1])[::-1]
    # Computed as COCO does: ten levels differ from i/100 in the last bit, such as 0.35, and so are
    # above or below a recall of 35/100, which decides whether its point counts for the level
    levels = np.linspace(0, 1, 101)
    return {
        "PASCAL VOC 2007 AP": auc_pr(precision, recall, rule="11-point"),
        "PASCAL VOC 2010 AP": auc_pr(largest_precision, recall, rule="step"),
        "COCO AP": _largest_precision_from(precision, recall, levels).mean(),
    }


def _pr_at_thresholds(ranking: Ranking, thresholds: Floats) -> PRPoints:
    """Return precision and recall at T thresholds. Scores at or above a threshold are positive.

    The ranking must have a positive sample. Its first threshold must be inf, so that its counts
    (all 0 there) also cover thresholds above the largest score. Precision 0/0 is 0.
    """
    # The counts at a threshold are those of the ranking's smallest threshold at or above it.
    # Thresholds are negated because searchsorted needs ascending order
    point = np.searchsorted(-ranking.thresholds, -thresholds, side="right") - 1
    tp, fp = ranking.tp[point], ranking.fp[point]
    return PRPoints(ratio(tp, tp + fp), tp / ranking.positives)
