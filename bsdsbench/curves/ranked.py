"""PR, ROC and DET curves of labels and scores, with VLFeat's options.

Let P and N be the numbers of positives and negatives, and TP and FP the numbers of positives and
negatives whose score is at or above a threshold. Then recall = TPR = TP/P, FPR = FP/N, precision =
TP/(TP + FP). At the first point of a curve, nothing is predicted positive.

ties="merge" makes one point per distinct score, as scikit-learn does. The curve and its areas
depend on the scores alone. 0/0 is NaN, and the precision of the first point is 1.

ties="sample" is VLFeat's rule: one point per sample, with equal scores in the given order. This
order then changes the curve and its areas (with constant scores, the ROC area can be 0 or 1).
Denominators, and TP in precision, are at least e = 1e-10: precision = max(TP, e)/max(TP + FP, e).

VLFeat itself differs from ties="sample" in two cases. If a class is missing, its areas are 0 or 1
instead of NaN. If there is no equal error rate, its threshold is 0 instead of NaN.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats, Ints, check_number, check_word
from bsdsbench.curves.samples import LabelReading, Ranking, Ties, rank, read_only, read_samples
from bsdsbench.errors import DataError
from bsdsbench.tables.result_object import TabularCurve

# The axes of a ROC curve, x before y: VLFeat's four variants, then the same with swapped axes
Variant = Literal["fptp", "tntp", "tptn", "fpfn", "tpfp", "tnfn", "fntn", "fnfp"]
VARIANTS = get_args(Variant)
# The rate on an axis -> the names that `parse_variant` accepts for it
RATE_NAMES = {
    "tp": ("true positive rate", "tpr", "recall", "sensitivity", "hit rate"),
    "fp": ("false positive rate", "fpr", "fall out", "false alarm rate"),
    "tn": ("true negative rate", "tnr", "specificity"),
    "fn": ("false negative rate", "fnr", "miss rate"),
}
_FLOOR = 1e-10  # VLFeat's smallest denominator; see the top of this module


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRResult(TabularCurve):
    """The precision-recall curve of a ranking; see `pr`. Undefined numbers are NaN.

    Parameters
    ----------
    recall, precision, thresholds : array
        float64 (K,), by descending threshold. At the first point nothing is predicted positive.
    tp, fp : array
        int64 (K,), true and false positives at each threshold.
    auc : float
        Area under the points by the trapezoidal rule. The curve is not extended to recall 1.
    ap : float
        Average precision: the sum over points of precision times the rise of recall.
    ap_11 : float
        Mean over recall levels 0, 0.1 .. 1 of the largest precision at or beyond the level
        (VLFeat's ap_interp_11).
    chance : float
        Expected precision of a random ranking.
    positives, negatives : int
        The class totals used for recall and `chance`: num_positives and num_negatives if given.

    Examples
    --------
    >>> curve = pr([1, 0, 1], [0.9, 0.5, 0.4])
    >>> round(curve.ap, 3), curve.recall.tolist()
    (0.833, [0.0, 0.5, 0.5, 1.0])
    """

    recall: Floats
    precision: Floats
    thresholds: Floats
    tp: Ints
    fp: Ints
    auc: float
    ap: float
    ap_11: float
    chance: float
    positives: int
    negatives: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ROCResult(TabularCurve):
    """The ROC curve of a ranking; see `roc` and `det`. Undefined numbers are NaN.

    Parameters
    ----------
    tpr, fpr, thresholds : array
        float64 (K,), by descending threshold. At the first point nothing is predicted positive.
    tp, fp : array
        int64 (K,), true and false positives at each threshold.
    auc : float
        Area under the curve on the axes of `plot`.
    eer, eer_threshold : float
        Equal error rate, and the first threshold at which TPR >= TNR. NaN if there is none.
    plot : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn", "tpfp", "tnfn", "fntn" or "fnfp".
    positives, negatives : int
        The class totals used for the rates.

    Examples
    --------
    >>> curve = roc([1, 0, 1], [0.9, 0.5, 0.4])
    >>> curve.auc, curve.negatives
    (0.5, 1)
    """

    tpr: Floats
    fpr: Floats
    thresholds: Floats
    tp: Ints
    fp: Ints
    auc: float
    eer: float
    eer_threshold: float
    plot: Variant
    positives: int
    negatives: int

    @property
    def tnr(self) -> Floats:
        """The true negative rate, 1 - fpr, float64 (K,)."""
        return 1 - self.fpr

    @property
    def fnr(self) -> Floats:
        """The miss rate, 1 - tpr, float64 (K,)."""
        return 1 - self.tpr


def pr(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "merge",
    reading: LabelReading = "auto",
    interpolate: bool = False,
    normalize_prior: float | None = None,
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool | None = None,
    stable: bool = False,
) -> PRResult:
    """Compute the precision-recall curve, its area, AP and 11-point AP, as VLFeat's vl_pr does.

    Without positives, auc, ap and ap_11 are NaN. Without negatives, precision is 1. If a class is
    missing, an InputWarning is given.

    Parameters
    ----------
    labels, scores : array_like
        The label and the score of each of n samples. Arrays of any shape are flattened.
    ties : str
        "merge": one point per distinct score, as in scikit-learn. "sample": one point per sample,
        with equal scores in the given order, as in VLFeat.
    reading : str
        The meaning of labels. If they are bool, True is always positive.

        - "auto": 0 and 1 are read as "binary"; -1 and 1, with or without 0, as "sign". Other labels
          raise DataError
        - "binary": 0 is negative, and any other label is positive
        - "sign": labels above 0 are positive, labels below 0 negative, those of 0 left out
        - "larger": the larger of two distinct labels, such as 1 and 2, is positive
    interpolate : bool
        Replace each precision by the largest precision at this or a higher recall.
    normalize_prior : float or None
        In [0, 1]. Precision is computed as if this fraction of the samples were positive.
    num_positives, num_negatives : int or None
        Class totals instead of the numbers of samples, but not below them; also floats like 1e4.
    include_inf : bool or None
        If True, samples with score -inf rank last. If False, they are never retrieved, as in
        VLFeat. The default is False with ties="sample", otherwise True.
    stable : bool
        If True, drop the first point and return the arrays in input order, with NaN (-1 in counts)
        for samples that are never retrieved. The summary numbers do not change.

    Raises
    ------
    DataError
        If a value is NaN, an option is out of range, or labels do not fit `reading` or are one-hot.

    Examples
    --------
    >>> pr([1, 0, 1], [0.9, 0.5, 0.4]).recall.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    samples = read_samples(labels, scores, reading)
    ranking = rank(samples, ties, include_inf, stable, num_positives, num_negatives)
    return pr_from_ranking(ranking, interpolate, normalize_prior)


def roc(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "merge",
    reading: LabelReading = "auto",
    plot: Variant = "fptp",
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool | None = None,
    stable: bool = False,
) -> ROCResult:
    """Compute the ROC curve, its area and its equal error rate, as VLFeat's vl_roc does.

    If a class is missing, the area and the equal error rate are NaN. Raises and warns as `pr` does.

    Parameters
    ----------
    labels, scores, ties, reading : as in `pr`
        The samples; "merge" for a point per distinct score, "sample" for one per sample in the
        given order; which labels are positive, such as those above 0 ("sign").
    plot : str
        Axes of the plot, x before y: "fptp" is TPR over FPR. The rate on the y axis decides which
        area is computed; x may be a rate or 1 minus it (FPR or TNR), which have the same steps:

        - "fptp", "tntp": sum of TPR times the rise of FPR
        - "tptn", "fntn": sum of TNR times the rise of TPR
        - "fpfn", "tnfn": sum of FNR times the rise of FPR (1 - AUC on a complete curve)
        - "tpfp", "fnfp": sum of FPR times the rise of TPR

        VLFeat has "fptp", "tntp", "tptn" and "fpfn". A curve that ends early is not extended.
    num_positives, num_negatives, include_inf, stable : as in `pr`
        Class totals, if they exceed the samples; False if samples with score -inf are never
        retrieved; True for arrays in the order of the samples, not by descending threshold.

    Examples
    --------
    >>> roc([1, 0, 1], [0.9, 0.5, 0.4]).tpr.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    samples = read_samples(labels, scores, reading)
    ranking = rank(samples, ties, include_inf, stable, num_positives, num_negatives)
    return roc_from_ranking(ranking, plot)


def det(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "merge",
    reading: LabelReading = "auto",
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool | None = None,
    stable: bool = False,
) -> ROCResult:
    """Compute the DET curve: miss rate (fnr) over false alarm rate (fpr), as VLFeat's vl_det does.

    The result is that of `roc`, which has `fnr` too. All points from (fpr 0, fnr 1) on are kept.
    scikit-learn's det_curve drops points at both ends and runs in the opposite direction.

    Parameters
    ----------
    labels, scores, ties, reading, num_positives, num_negatives, include_inf, stable : as in `roc`
        The samples, and how they are read, ordered and counted.

    Examples
    --------
    >>> det([1, 0, 1], [0.9, 0.5, 0.4]).fnr.tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    samples = read_samples(labels, scores, reading)
    ranking = rank(samples, ties, include_inf, stable, num_positives, num_negatives)
    return roc_from_ranking(ranking)


def trapezoids(x: Floats, y: Floats) -> float:
    """Return the area under a polyline by the trapezoidal rule; negative where x decreases."""
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)


def pr_from_ranking(
    ranking: Ranking, interpolate: bool = False, prior: float | None = None
) -> PRResult:
    """Compute the PR curve and its areas from the counts at each threshold.

    If `interpolate` is True, each precision is replaced by the largest one at this or a higher
    recall. `prior` is the fraction of positives that precision is computed for, in [0, 1]; None for
    that of the samples. Without positives, the areas are NaN.
    """
    p, n = ranking.positives, ranking.negatives
    tp = ranking.tp.astype(np.float64)
    recall = _rate(ranking, tp, p)  # tp / p
    precision = _precision(ranking, tp, prior)
    if interpolate:
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    auc = ap = ap_11 = np.nan
    if p:
        auc = trapezoids(recall, precision)
        ap = float(np.sum(np.diff(tp) * precision[1:]) / p)  # the rise of recall, times precision
        ap_11 = _eleven_point_ap(ranking.tp, precision, p)
    share_of_positives = p / (p + n) if p + n else np.nan
    chance = share_of_positives if prior is None else float(prior)
    fields = _shared_fields(ranking, recall=recall, precision=precision)
    return PRResult(**fields, auc=auc, ap=ap, ap_11=ap_11, chance=chance)


def _eleven_point_ap(tp: Ints, precision: Floats, positives: int) -> float:
    """Return the mean over recall levels 0, 0.1 .. 1 of the largest precision at or beyond each.

    tp, precision (K,): at points of ascending TP, and so ascending recall. A level that no point
    reaches counts as 0.
    """
    # The smallest TP with a recall of at least i/10 is i P / 10, rounded up. Integer arithmetic
    # ensures that no level is missed by rounding errors; -(-a // b) rounds up
    smallest_tp = -(-np.arange(11) * positives // 10)  # (11,)
    first_point = np.searchsorted(tp, smallest_tp)  # with at least this TP; K if there is none
    reached = first_point[first_point < tp.size]  # of the levels that are reached
    largest_from = np.maximum.accumulate(precision[::-1])[::-1]  # (K,): from each point on
    largest_at_levels = largest_from[reached]
    # From high to low recall: in another order, the last bit of the sum could differ
    return float(largest_at_levels[::-1].sum() / 11)


def _rate(ranking: Ranking, counts: NDArray[Any], total: int) -> Floats:
    """Return counts divided by the total of their class, which is the TPR or FPR at each point.

    If the class is empty, the rates are NaN or, with ties="sample", 0 as in VLFeat.
    """
    missing_total = _FLOOR if ranking.ties == "sample" else np.nan
    return counts / (total or missing_total)


def _precision(ranking: Ranking, tp: Floats, prior: float | None) -> Floats:
    """Return the precision at each threshold of a ranking. It is 1 where nothing is predicted.

    `tp` is `ranking.tp` as float64. If `prior` is given, precision is computed as if this fraction
    of the samples were positive: each of the P positives has the weight prior/P, and each of the N
    negatives (1 - prior)/N.
    """
    fp = ranking.fp.astype(np.float64)
    if prior is not None:
        prior = check_number(prior, "normalize_prior", 0, 1)
        tp = prior * tp / max(ranking.positives, 1)  # 0 without positives, as TP is 0
        fp = (1 - prior) * fp / max(ranking.negatives, 1)
    predicted = np.add(tp, fp, out=fp)  # in place, which saves memory for many samples
    if ranking.ties == "sample":  # VLFeat's rule, so with its floor of 1e-10: 0/0 becomes 1
        return np.maximum(tp, _FLOOR) / np.maximum(predicted, _FLOOR)
    n_without_predictions = np.searchsorted(predicted, 0, "right")  # these points come first
    with np.errstate(invalid="ignore"):
        precision = np.divide(tp, predicted, out=predicted)
    precision[:n_without_predictions] = 1
    return precision


def roc_from_ranking(ranking: Ranking, plot: Variant = "fptp") -> ROCResult:
    """Compute the ROC curve, its area and its equal error rate from the counts at each threshold.

    If a class is missing, the area and the equal error rate are NaN. `plot` names the axes of the
    area, x before y: "fptp" is TPR over FPR, "tptn" is TNR over TPR.
    """
    check_word(plot, "plot", VARIANTS)
    p, n = ranking.positives, ranking.negatives
    tpr, fpr = _rate(ranking, ranking.tp, p), _rate(ranking, ranking.fp, n)  # tp / p, fp / n
    auc = eer = eer_threshold = np.nan
    if p and n:
        auc = _roc_area(ranking, plot)
        eer, eer_threshold = _find_equal_error(tpr, fpr, ranking.thresholds)
    fields = _shared_fields(ranking, tpr=tpr, fpr=fpr)
    return ROCResult(**fields, auc=auc, eer=eer, eer_threshold=eer_threshold, plot=plot)


class _EqualError(NamedTuple):
    """The equal error rate, and the first threshold at which TPR >= TNR; NaN if there is none."""

    rate: float
    threshold: float


def _find_equal_error(tpr: Floats, fpr: Floats, thresholds: Floats) -> _EqualError:
    """Find where a ROC curve, by descending threshold, crosses the line TPR = TNR.

    The crossing lies between the last point with TPR < TNR and the next point. If only one rate
    changes there, the error rate is 1 minus the other rate. If both change, they are interpolated
    linearly. Error rate and threshold are NaN if TPR < TNR at all points.
    """
    # TPR rises and TNR falls along the curve: bisect to find the first point with TPR >= TNR
    after = bisect_left(range(tpr.size), True, key=lambda k: 1 - fpr[k] <= tpr[k])
    if after == tpr.size:
        return _EqualError(np.nan, np.nan)
    before = after - 1  # not below 0, as TPR is 0 and TNR is 1 at the first point
    tpr_before, tpr_after = tpr[before], tpr[after]
    tnr_before, tnr_after = 1 - fpr[before], 1 - fpr[after]
    tpr_rise, tnr_fall = tpr_after - tpr_before, tnr_before - tnr_after
    if tpr_rise and tnr_fall:  # samples of both classes with equal scores were merged
        tpr_at_crossing = tpr_before + tpr_rise * (tnr_before - tpr_before) / (tpr_rise + tnr_fall)
        rate = 1 - tpr_at_crossing
    elif tpr_rise:
        rate = 1 - tnr_before
    else:
        rate = 1 - tpr_before
    return _EqualError(float(rate), float(thresholds[after]))


def _roc_area(ranking: Ranking, plot: Variant) -> float:
    """Return the area under a ROC curve on the axes `plot`, such as "fptp" (x FPR, y TPR).

    Neither class may be missing. The rate on the y axis decides the area: of TPR or FNR as FPR
    rises, or of FPR or TNR as TPR rises. All four follow from the area under the points (FP, TP),
    which is summed in integers, so that nothing is rounded before the final divisions. Divided by P
    N (numbers of positives and negatives), it is the area under the rates.
    """
    p, n = ranking.positives, ranking.negatives
    last_tp, last_fp = int(ranking.tp[-1]), int(ranking.fp[-1])
    # Use Python integers (dtype object) where int64 would overflow
    integer = object if last_tp * last_fp >= 2**63 else np.int64
    fp_rise = np.diff(ranking.fp).astype(integer, copy=False)
    tp = ranking.tp.astype(integer, copy=False)
    # The trapezoidal rule, times 2. With ties="sample", TP and FP never rise together, so each
    # trapezoid is a rectangle, as VLFeat sums them
    twice_below_curve = int(np.dot(tp[1:], fp_rise)) + int(np.dot(tp[:-1], fp_rise))
    # The rest of the rectangle from (0, 0) to the last point is the area under FP along TP
    twice_left_of_curve = 2 * last_tp * last_fp - twice_below_curve
    area_of_tpr = twice_below_curve / (2 * p * n)
    area_of_fpr = twice_left_of_curve / (2 * p * n)
    area_by_rate_of_y = {
        "tp": area_of_tpr,
        "fp": area_of_fpr,
        "fn": last_fp / n - area_of_tpr,  # of FNR = 1 - TPR, from FPR 0 to the last FPR
        "tn": last_tp / p - area_of_fpr,  # of TNR = 1 - FPR, from TPR 0 to the last TPR
    }
    y_rate = plot[2:]
    return area_by_rate_of_y[y_rate]


def parse_variant(name: str) -> Variant:
    """Parse the axes of a ROC plot from a string such as "fptp" or "TPR over FPR".

    The string is either a value of the option `plot` of `roc`, such as "fptp" (x before y), or two
    names from RATE_NAMES joined by "over", "against", "versus" or "vs" (y before x). Case is
    ignored. Raises DataError if it is neither.

    >>> parse_variant("FPTP"), parse_variant("recall over false positive rate")
    ('fptp', 'fptp')
    """
    text = re.sub(r"[\s_-]+", " ", name.strip().lower())
    rate_of_name = {alias: rate for rate, aliases in RATE_NAMES.items() for alias in aliases}
    y_and_x = re.split(r" (?:over|against|versus|vs\.?) ", text)  # such as ["tpr", "fpr"]
    x_and_y = [rate_of_name.get(rate_name, "") for rate_name in reversed(y_and_x)]  # "fp", "tp"
    for variant in VARIANTS:  # such as "fptp"
        if variant in (text, "".join(x_and_y)):
            return variant
    pairs = f"{', '.join(VARIANTS)}, or Y over X such as 'TPR over FPR'"
    raise DataError(f"plot {name!r}: expected {pairs}")


def along_curve(curve: PRResult | ROCResult) -> PRResult | ROCResult:
    """Return a curve with its points by descending threshold, starting without predictions.

    A curve that is empty or starts at TP = FP = 0 has this order and is returned unchanged. Other
    curves were made by `pr` or `roc` with stable=True. They lack this point, and have one point per
    sample in input order. They are sorted by TP + FP, samples that are never retrieved (counts of
    -1) are dropped, and the point without predictions is added before the first.
    """
    if curve.tp.size == 0 or curve.tp[0] == curve.fp[0] == 0:
        return curve
    by_predicted = np.argsort(curve.tp + curve.fp, kind="stable")  # indices of the samples
    kept = by_predicted[curve.tp[by_predicted] >= 0]
    arrays: dict[str, Any] = {}
    # Without predictions, TP, FP and the rates are 0
    value_at_first_point = {"thresholds": np.inf, "precision": 1.0}
    for name, values in curve.points().items():
        with_first = np.r_[value_at_first_point.get(name, 0.0), values[kept]]
        arrays[name] = read_only(with_first.astype(values.dtype))
    return replace(curve, **arrays)


def roc_of_counts(
    thresholds: ArrayLike, tp: ArrayLike, fp: ArrayLike, positives: int, negatives: int
) -> ROCResult:
    """Compute the ROC curve from true and false positives at T ascending thresholds.

    The points (0, 0) and (1, 1) are added, with the thresholds inf and -inf.
    """
    ranking = Ranking(  # by descending threshold
        thresholds=np.r_[np.inf, np.flip(thresholds), -np.inf],
        tp=np.r_[0, np.flip(tp), positives],
        fp=np.r_[0, np.flip(fp), negatives],
        positives=positives,
        negatives=negatives,
    )
    return roc_from_ranking(ranking)


def _shared_fields(ranking: Ranking, **rates: Floats) -> dict[str, Any]:
    """Return the fields that PRResult and ROCResult share, and `rates`, as read-only arrays.

    The arrays have one value per point of the curve, by descending threshold. But if the ranking
    was made with stable=True, they have one value per sample, in input order: that of the first
    point at which the sample is predicted positive. Samples that never are (with the score -inf)
    get -1 in counts and NaN elsewhere.
    """
    arrays = {"tp": ranking.tp, "fp": ranking.fp, "thresholds": ranking.thresholds}
    fields: dict[str, Any] = {**rates, **arrays}
    point = ranking.point_of_sample  # (n,), or None unless stable=True; -1 for never
    for name, values in fields.items():
        if point is not None:
            missing = -1 if values.dtype.kind == "i" else np.nan
            values = np.where(point >= 0, values[point], missing)
        fields[name] = read_only(np.ascontiguousarray(values))
    return {**fields, "positives": ranking.positives, "negatives": ranking.negatives}
