"""PR, ROC and DET curves of labels and scores, with VLFeat's options.

Let P and N be the numbers of positives and negatives, TP and FP the numbers among the best scores.
Then recall = TPR = TP/P, FPR = FP/N, precision = TP/(TP + FP). At the first point nothing is
predicted.

ties="merge" makes one point per distinct score, as scikit-learn does. Curve and areas depend on the
scores alone. 0/0 is NaN, and the precision of the first point is 1.

ties="sample" is VLFeat's rule: one point per sample, with equal scores in the given order, which
then changes curve and areas (a constant score has ROC area 0 or 1). Ratios have VLFeat's floor
e = 1e-10: TP/max(P, e), max(TP, e)/max(TP + FP, e). Without equal scores both rules agree. If a
class is missing, numbers are NaN under both rules (VLFeat has areas of 0 or 1). The threshold of an
equal error rate that does not exist is NaN too (VLFeat has 0).

A score of -inf, the logarithm of 0, is the smallest score. Under ties="sample" such a sample is
never retrieved, as in VLFeat. `include_inf` chooses either treatment under both rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, given_word
from bsdsbench.curves.samples import Bools, LabelReading, read_only, samples, whole_number
from bsdsbench.errors import DataError, InputWarning, warn
from bsdsbench.kernels import ranks
from bsdsbench.tables.result_object import TabularCurve

Ties = Literal["merge", "sample"]
# X axis, then y axis: the four variants of VLFeat, and four with swapped axes
Variant = Literal["fptp", "tntp", "tptn", "fpfn", "tpfp", "tnfn", "fntn", "fnfp"]
VARIANTS = get_args(Variant)
# Names of the rates of a variant
RATE_NAMES = {
    "tp": ("true positive rate", "tpr", "recall", "sensitivity", "hit rate"),
    "fp": ("false positive rate", "fpr", "fall out", "false alarm rate"),
    "tn": ("true negative rate", "tnr", "specificity"),
    "fn": ("false negative rate", "fnr", "miss rate"),
}
_FLOOR = 1e-10


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRResult(TabularCurve):
    """Precision against recall along a ranking; see `pr`. Undefined numbers are NaN.

    Parameters
    ----------
    recall, precision, thresholds, tp, fp : array
        (K,), float64, the counts int64.
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
        The totals in use: num_positives and num_negatives if given.

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
class ROCResult(TabularCurve):
    """True and false positive rates along a ranking; see `roc`, `det`. Undefined numbers are NaN.

    Parameters
    ----------
    tpr, fpr, thresholds, tp, fp : array
        (K,), float64, the counts int64.
    auc : float
        Area of the `plot` variant.
    eer, eer_threshold : float
        Equal error rate, and the score whose inclusion makes the crossing; NaN where there is none.
    plot : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn", "tpfp", "tnfn", "fntn" or "fnfp".
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
        """The rate of true negatives, 1 - fpr, float64 (K,)."""
        return 1 - self.fpr

    @property
    def fnr(self) -> F8:
        """The miss rate, 1 - tpr, float64 (K,)."""
        return 1 - self.tpr


_C = TypeVar("_C", PRResult, ROCResult)


class Ranking(NamedTuple):
    """Counts along falling scores.

    At point 0 nothing is predicted; at point k the samples with score >= thresholds[k] are. The
    totals `positives` and `negatives` include samples that are never retrieved (-inf). `rows` is
    the point at which each sample is first predicted, -1 if never; None if that was not asked for.
    """

    thresholds: F8
    tp: I8
    fp: I8
    positives: int
    negatives: int
    ties: Ties = "merge"
    rows: I8 | None = None


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
    """Compute the precision-recall curve, its area, AP and 11-point AP (VLFeat's vl_pr).

    Without positives all numbers are NaN. Without negatives precision is 1.

    Parameters
    ----------
    labels, scores : array_like
        Arrays of one size n, any shape.
    ties : str
        "merge": one point per distinct score, as scikit-learn; "sample": one point per sample,
        equal scores in the order given, as VLFeat.
    reading : str
        The meaning of labels. "binary": 0 is negative, all else positive. "sign": > 0 is positive,
        < 0 negative, 0 left out. "auto": 0 and 1 as binary; -1 and 1, with or without 0, as sign;
        other labels are refused. "larger": the larger of two values is positive (1 and 2). True
        is positive and False negative.
    interpolate : bool
        Precision becomes the largest one at this or a higher recall.
    normalize_prior : float or None
        A fraction in [0, 1]: precision as if this fraction of the samples were positive.
    num_positives, num_negatives : int or None
        Totals in place of P and N, 1e4 as well as 10_000. Warns if they are too small.
    include_inf : bool or None
        True ranks scores of -inf last, as any smallest score. False never retrieves them, as
        VLFeat. None: False with ties="sample", else True.
    stable : bool
        Drop the first point and return the values in input order, NaN (counts: -1) for samples
        that are never retrieved. The summary numbers do not change.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DataError
        For NaN, labels of another kind, or an option out of range.

    Warns
    -----
    InputWarning
        If a class is missing.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.pr([1, 0, 1], [0.9, 0.5, 0.4]).recall.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    sampled = samples(labels, scores, reading)
    counts = rank(*sampled, ties, include_inf, stable, num_positives, num_negatives)
    return pr_from_ranking(counts, interpolate, normalize_prior)


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
    """Compute the ROC curve, its area and equal error rate (VLFeat's vl_roc).

    If a class is missing, the area and the equal error rate are NaN. Raises and warns as `pr` does.

    Parameters
    ----------
    labels, scores, ties, reading : as in `pr`
        The samples and their meaning.
    plot : str
        The area, and the axes of a display: x, then y. "fptp" and "tntp": sum of TPR over the
        rise of FPR; "tptn" and "fntn": of TNR over the rise of TPR; "fpfn" and "tnfn": of FNR
        over the rise of FPR (1 - AUC on a complete curve); "tpfp" and "fnfp": of FPR over the rise
        of TPR. VLFeat has the first of each pair but "tpfp". A curve that ends early is not
        extended.
    num_positives, num_negatives, include_inf, stable : as in `pr`
        The treatment of ties, labels and totals.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc([1, 0, 1], [0.9, 0.5, 0.4]).tpr.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    sampled = samples(labels, scores, reading)
    return roc_from_ranking(
        rank(*sampled, ties, include_inf, stable, num_positives, num_negatives), plot
    )


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
    """Compute the DET curve: miss rate (fnr) against false alarm rate (fpr) (VLFeat's vl_det).

    All points from (0, 1) on are kept; scikit-learn's det_curve cuts both ends and runs the other
    way. Missing classes and errors are treated as by `roc`.

    Parameters
    ----------
    labels, scores : as in `pr`
        The samples.
    ties, reading, num_positives, num_negatives, include_inf, stable : as in `pr`
        The treatment of ties, labels and totals.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.det([1, 0, 1], [0.9, 0.5, 0.4]).fnr.tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    sampled = samples(labels, scores, reading)
    return roc_from_ranking(rank(*sampled, ties, include_inf, stable, num_positives, num_negatives))


def rank(
    positive: Bools,
    negative: Bools,
    scores: F8,
    ties: Ties = "merge",
    include_inf: bool | None = None,
    stable: bool = False,
    num_positives: int | None = None,
    num_negatives: int | None = None,
) -> Ranking:
    """Count positives and negatives along the falling scores.

    With `stable` the ranking holds the point at which each sample is first predicted. Warns if a
    given total is smaller than the number of samples.
    """
    totals = []
    for name, total, is_member in (
        ("num_positives", num_positives, positive),
        ("num_negatives", num_negatives, negative),
    ):
        n_members = int(np.count_nonzero(is_member))
        totals.append(n_members if total is None else whole_number(total, name))
        if totals[-1] < n_members:
            warn(InputWarning(f"{name} {total}: fewer than the {n_members} there are"))
    given_word(ties, "ties", get_args(Ties))
    order = None
    if ties == "merge":
        thresholds, tp, fp = _count_levels(positive, negative, scores)
    else:
        order = _falling_order(scores)
        thresholds = np.r_[np.inf, scores[order]] + 0  # -0 becomes 0
        tp, fp = (np.r_[0, np.cumsum(is_member[order])] for is_member in (positive, negative))
    include_inf = ties == "merge" if include_inf is None else include_inf
    n_never = 0 if include_inf else int(np.searchsorted(thresholds[::-1], -np.inf, "right"))
    retrieved = slice(tp.size - n_never)
    rows = None
    if stable:
        rows = np.searchsorted(-thresholds, -scores, side="right") - 1
        if order is not None:
            rows[order] = np.arange(1, scores.size + 1)
        if not include_inf:
            rows[scores == -np.inf] = -1
    return Ranking(
        thresholds[retrieved], tp[retrieved], fp[retrieved], totals[0], totals[1], ties, rows
    )


class _Levels(NamedTuple):
    """Counts at each distinct score, from the highest down, after a point without predictions."""

    thresholds: F8
    tp: I8
    fp: I8


def _count_levels(positive: Bools, negative: Bools, scores: F8) -> _Levels:
    """Count positives and negatives at each distinct score."""
    is_small = scores.size <= 10_000
    partition, merge_levels = (
        (ranks.partition_scores, ranks.merge_levels) if is_small else ranks.compiled()
    )
    parted = np.empty(scores.size + 1)
    end, begin = partition(positive, negative, scores, parted)
    classes = parted[:end], parted[begin:]
    for class_scores in classes:
        class_scores.sort()
    size = end + parted.size - begin + 1
    levels = _Levels(np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64))
    n = merge_levels(*classes, *levels)
    levels = _Levels(levels.thresholds[:n], levels.tp[:n], levels.fp[:n])
    if 2 * n < size:  # copies free the memory of the unused rest
        levels = _Levels(levels.thresholds.copy(), levels.tp.copy(), levels.fp.copy())
    return levels


def _falling_order(scores: F8) -> I8:
    """Return the order of falling scores, with equal scores in the given order. A stable sort takes
    twice the time of a plain sort and the repair of the ties' order.
    """
    order = np.argsort(-scores)
    falling = scores[order]
    level = np.cumsum(falling[1:] != falling[:-1])
    order[1:] += scores.size * level
    order.sort()
    order %= max(scores.size, 1)
    return order


def trapezoids(x: F8, y: F8) -> float:
    """Return the area under points that are joined by straight lines."""
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)


def pr_from_ranking(c: Ranking, interpolate: bool = False, prior: float | None = None) -> PRResult:
    """Compute the result of `pr` from counts. `prior` is its option normalize_prior."""
    p, n = c.positives, c.negatives
    hits = c.tp.astype(np.float64)
    fp = c.fp.astype(np.float64)
    recall = hits / (p or (_FLOOR if c.ties == "sample" else np.nan))
    tp = hits
    if prior is not None:
        if not 0 <= prior <= 1:
            raise DataError(f"normalize_prior {prior!r}: expected a share from 0 to 1")
        tp, fp = prior * hits / max(p, 1), (1 - prior) * fp / max(n, 1)
    predicted = np.add(tp, fp, out=fp)
    if c.ties == "sample":
        precision = np.maximum(tp, _FLOOR) / np.maximum(predicted, _FLOOR)
    else:
        n_empty = np.searchsorted(predicted, 0, "right")  # points without a prediction
        with np.errstate(invalid="ignore"):
            precision = np.divide(tp, predicted, out=predicted)
        precision[:n_empty] = 1
    if interpolate:
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    auc = ap = ap_11 = np.nan
    if p:
        auc = trapezoids(recall, precision)
        ap = np.sum(np.diff(hits) * precision[1:]) / p
        # The first point with recall >= i/10, in whole numbers, so that rounding misses no level
        level_start = np.searchsorted(c.tp, -(-np.arange(11) * p // 10))
        best = np.maximum.reduceat(precision, level_start[level_start < c.tp.size])
        ap_11 = np.maximum.accumulate(best[::-1]).sum() / 11
    chance = prior if prior is not None else p / (p + n) if p + n else np.nan
    summary = {"auc": auc, "ap": ap, "ap_11": ap_11, "chance": chance}
    numbers: dict[str, Any] = {name: float(value) for name, value in summary.items()}
    return PRResult(**_shared_fields(c, recall=recall, precision=precision), **numbers)


def roc_from_ranking(c: Ranking, plot: Variant = "fptp") -> ROCResult:
    """Compute the result of `roc` from counts."""
    given_word(plot, "plot", VARIANTS)
    p, n = c.positives, c.negatives
    floor = _FLOOR if c.ties == "sample" else np.nan
    tpr, fpr = c.tp / (p or floor), c.fp / (n or floor)
    auc = error = threshold = np.nan
    if p and n:
        auc = _roc_area(c, plot)
        # Both rates rise along the curve, so bisection finds the last point with TNR > TPR
        s = bisect_left(range(tpr.size), True, key=lambda k: 1 - fpr[k] <= tpr[k]) - 1
        if s + 1 < tpr.size:
            tnr = 1 - fpr[s]
            threshold = float(c.thresholds[s + 1])
            tpr_rise, tnr_fall = tpr[s + 1] - tpr[s], tnr - (1 - fpr[s + 1])
            error = 1 - (tpr[s] if tpr_rise == 0 else tnr)
            if tpr_rise and tnr_fall:
                # A merged tie: the line between both points crosses TPR = TNR
                error = 1 - (tpr[s] + tpr_rise * (tnr - tpr[s]) / (tpr_rise + tnr_fall))
    numbers: dict[str, Any] = {"auc": auc, "eer": float(error), "eer_threshold": threshold}
    return ROCResult(**_shared_fields(c, tpr=tpr, fpr=fpr), **numbers, plot=plot)


def _roc_area(c: Ranking, plot: Variant) -> float:
    """Return the area of the `plot` variant under a ROC curve with both classes.

    All numbers are whole up to the last division, so that the area is exact. int64 may not hold
    twice the area under (FP, TP), but Python's integers do.
    """
    p, n = c.positives, c.negatives
    last_tp, last_fp = int(c.tp[-1]), int(c.fp[-1])
    kind = object if last_tp * last_fp >= 2**63 else np.int64
    # Per sample either TP or FP rises, so that the trapezoids are VLFeat's rectangles
    rise = np.diff(c.fp).astype(kind, copy=False)
    twice = sum(int(np.dot(tp.astype(kind, copy=False), rise)) for tp in (c.tp[1:], c.tp[:-1]))
    fpr_over_tpr = (2 * last_tp * last_fp - twice) / (2 * p * n)
    areas = {
        "tp": twice / (2 * p * n),
        "fn": last_fp / n - twice / (2 * p * n),
        "tn": last_tp / p - fpr_over_tpr,
        "fp": fpr_over_tpr,
    }
    return areas[plot[2:]]


def parse_variant(name: str) -> Variant:
    """Return the variant of `roc` with a name in VLFeat's style or in words, in any case.

    Raises DataError for other words.

    >>> parse_variant("FPTP"), parse_variant("recall over false positive rate")
    ('fptp', 'fptp')
    """
    text = name.strip().lower()
    parts = re.split(r" (?:over|against|versus|vs\.?) ", re.sub(r"[\s_-]+", " ", text))
    rates = [rate for part in parts for rate, names in RATE_NAMES.items() if part in names]
    for variant in VARIANTS:
        if variant in (text, "".join(rates[::-1])):
            return variant
    pairs = f"{', '.join(VARIANTS)}, or Y over X such as 'TPR over FPR'"
    raise DataError(f"plot {name!r}: expected {pairs}")


def along_curve(curve: _C) -> _C:
    """Return a curve with its points in order. A curve of `stable` has them in input order."""
    if curve.tp.size == 0 or curve.tp[0] == curve.fp[0] == 0:
        return curve
    order = np.argsort(curve.tp + curve.fp, kind="stable")
    order = order[curve.tp[order] >= 0]
    first_point = {"thresholds": np.inf, "precision": 1}  # nothing predicted; other values are 0
    arrays: dict[str, Any] = {}
    for name, column in curve.points().items():
        values = np.r_[first_point.get(name, 0), column[order]]
        arrays[name] = read_only(values.astype(column.dtype))
    return replace(curve, **arrays)


def roc_of_counts(
    thresholds: ArrayLike, tp: ArrayLike, fp: ArrayLike, positives: int, negatives: int
) -> ROCResult:
    """Compute the ROC curve of counts at rising thresholds (T,), from (0, 0) to (1, 1)."""
    ends = (np.inf, thresholds, -np.inf), (0, tp, positives), (0, fp, negatives)
    t, tps, fps = (np.r_[first, np.flip(values), last] for first, values, last in ends)
    return roc_from_ranking(Ranking(t, tps, fps, positives, negatives))


def _shared_fields(c: Ranking, **rates: F8) -> dict[str, Any]:
    """Return the fields that both results have: read-only rates, counts, thresholds, and totals."""
    arrays: dict[str, Any] = {**rates, "tp": c.tp, "fp": c.fp, "thresholds": c.thresholds}
    if c.rows is not None:
        for name, values in arrays.items():
            missing = -1 if values.dtype.kind == "i" else np.nan
            arrays[name] = np.where(c.rows >= 0, values[c.rows], missing)
    fields = {name: read_only(np.ascontiguousarray(values)) for name, values in arrays.items()}
    return {**fields, "positives": c.positives, "negatives": c.negatives}
