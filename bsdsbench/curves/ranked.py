"""PR, ROC and DET curves of labels and scores, with VLFeat's options.

Let P and N be the numbers of positives and negatives, TP and FP those among the best scores. Then
recall = TPR = TP/P, FPR = FP/N, precision = TP/(TP + FP); the first point is "nothing predicted".

ties="merge" makes one point per distinct score, as scikit-learn does: curve and areas depend on
the scores alone. Ratios are plain, 0/0 is NaN, and the precision of nothing predicted is 1.

ties="sample" is VLFeat's rule: one point per sample, equal scores in the order given, on which
curve and areas then depend (a constant score has ROC area 0 or 1). Ratios have VLFeat's floor
e = 1e-10: TP/max(P, e), max(TP, e)/max(TP + FP, e). Without equal scores the two agree. Where a
class is missing numbers are NaN under both (VLFeat has areas of 0 or 1), and so is the threshold
of an equal error rate that there is not (VLFeat has 0).

A score of -inf, the logarithm of 0, is the smallest score; under ties="sample" such a sample is
never retrieved, as in VLFeat. `include_inf` says so for either.
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
# X axis, then y axis: the four of VLFeat, and the same rates the other way round
Variant = Literal["fptp", "tntp", "tptn", "fpfn", "tpfp", "tnfn", "fntn", "fnfp"]
VARIANTS = get_args(Variant)
# The rates of a variant as they are called
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
class ROCResult(TabularCurve):
    """True and false positive rates along a ranking; see `roc`, `det`. Undefined numbers are NaN.

    Parameters
    ----------
    tpr, fpr, thresholds, tp, fp : array
        (K,), f8, the counts i8.
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
        """The rate of true negatives, 1 - fpr, f8 (K,)."""
        return 1 - self.fpr

    @property
    def fnr(self) -> F8:
        """The rate of misses, 1 - tpr, f8 (K,)."""
        return 1 - self.tpr


_C = TypeVar("_C", PRResult, ROCResult)


class Ranking(NamedTuple):
    """Counts along falling scores; point 0 is "nothing predicted", point k score >= thresholds[k].

    positives, negatives : all of them, those never retrieved (-inf) too
    rows : the point at which each row comes in, -1 if never
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
    """Return the precision-recall curve, its area, AP and 11-point AP (VLFeat's vl_pr).

    Without positives all numbers are NaN, without negatives precision is 1.

    Parameters
    ----------
    labels, scores : array_like
        Arrays of one size n, any shape.
    ties : str
        "merge": one point per distinct score, as scikit-learn; "sample": one point per sample,
        equal scores in the order given, as VLFeat.
    reading : str
        What labels mean. "binary": 0 negative, all else positive; "sign": > 0 positive, < 0
        negative, 0 left out; "auto": 0 and 1 as binary, -1 and 1 as sign, also with 0 among them;
        "larger": the larger of two values is positive (1 and 2); other labels are refused. True
        and False are positive and negative.
    interpolate : bool
        Precision becomes the largest one at this or a higher recall.
    normalize_prior : float or None
        A in [0, 1]: precision as if a share `a` of the samples were positive.
    num_positives, num_negatives : int or None
        Totals to use in place of P and N, 1e4 as well as 10_000; fewer than there are warns.
    include_inf : bool or None
        True ranks scores of -inf last, as any smallest score; False never retrieves them, which is
        VLFeat's rule. None: False with ties="sample", else True.
    stable : bool
        Drop the first point and give the values in input order, NaN (counts: -1) for samples never
        retrieved; the summary numbers do not change.

    Raises
    ------
    ShapeError, DataError
        For different lengths; for NaN, labels of another kind, or an option out of its range. A
        missing class is an InputWarning.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.pr([1, 0, 1], [0.9, 0.5, 0.4]).recall.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    sampled = samples(labels, scores, reading)
    counts = rank(*sampled, ties, include_inf, stable, num_positives, num_negatives)
    return pr_of(counts, interpolate, normalize_prior)


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
    """Return the ROC curve, its area and equal error rate (VLFeat's vl_roc).

    If a class is missing the area and the equal error rate are NaN. Raises and warns as `pr`.

    Parameters
    ----------
    labels, scores, ties, reading : as in `pr`
        The samples and what they mean.
    plot : str
        Which area, and which axes a display draws: x, then y. "fptp" and "tntp": sum of TPR over
        the rise of FPR; "tptn" and "fntn": of TNR over the rise of TPR; "fpfn" and "tnfn": of FNR
        over the rise of FPR (1 - AUC on a complete curve); "tpfp" and "fnfp": of FPR over the rise
        of TPR. VLFeat has the first of each pair but "tpfp". A curve that ends early is not
        extended.
    num_positives, num_negatives, include_inf, stable : as in `pr`
        What is done with them.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc([1, 0, 1], [0.9, 0.5, 0.4]).tpr.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    sampled = samples(labels, scores, reading)
    return roc_of(rank(*sampled, ties, include_inf, stable, num_positives, num_negatives), plot)


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
    """Return the DET curve: miss rate (fnr) against false alarm rate (fpr) (VLFeat's vl_det).

    All points are kept, from (0, 1) on (scikit-learn's det_curve cuts both ends and runs the other
    way). Missing classes and errors are those of `roc`.

    Parameters
    ----------
    labels, scores : as in `pr`
        The samples.
    ties, reading, num_positives, num_negatives, include_inf, stable : as in `pr`
        What is done with them.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.det([1, 0, 1], [0.9, 0.5, 0.4]).fnr.tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    sampled = samples(labels, scores, reading)
    return roc_of(rank(*sampled, ties, include_inf, stable, num_positives, num_negatives))


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
    """Count positives and negatives along the falling scores; stable: where each row comes in."""
    totals = []
    for name, total, of_class in (
        ("num_positives", num_positives, positive),
        ("num_negatives", num_negatives, negative),
    ):
        counted = int(np.count_nonzero(of_class))
        totals.append(counted if total is None else whole_number(total, name))
        if totals[-1] < counted:
            warn(InputWarning(f"{name} {total}: fewer than the {counted} there are"))
    given_word(ties, "ties", get_args(Ties))
    if ties == "merge":
        small = scores.size <= 10_000
        split, merge_levels = (ranks.split, ranks.merge_levels) if small else ranks.compiled()
        both = np.empty(scores.size + 1)
        end, begin = split(positive, negative, scores, both)
        classes = both[:end], both[begin:]
        for one in classes:
            one.sort()
        size = end + both.size - begin + 1
        thresholds, tp, fp = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
        k = merge_levels(*classes, thresholds, tp, fp)
        if 2 * k < size:  # of few levels nothing of the size of the samples is kept
            thresholds, tp, fp = (a[:k].copy() for a in (thresholds, tp, fp))
        thresholds, tp, fp = thresholds[:k], tp[:k], fp[:k]
    else:
        # A stable sort takes twice the time of a plain one and of a repair of the ties' order.
        order = np.argsort(-scores)
        falling = scores[order]
        tied = np.cumsum(falling[1:] != falling[:-1])
        order[1:] += scores.size * tied
        order.sort()
        order %= max(scores.size, 1)
        thresholds = np.r_[np.inf, scores[order]] + 0  # -0 becomes 0
        tp, fp = (np.r_[0, np.cumsum(of_class[order])] for of_class in (positive, negative))
    include_inf = ties == "merge" if include_inf is None else include_inf
    never = 0 if include_inf else int(np.searchsorted(thresholds[::-1], -np.inf, "right"))
    kept = slice(tp.size - never)
    where = None
    if stable:
        where = np.searchsorted(-thresholds, -scores, side="right") - 1
        if ties == "sample":
            where[order] = np.arange(1, scores.size + 1)
        if not include_inf:
            where[scores == -np.inf] = -1
    return Ranking(thresholds[kept], tp[kept], fp[kept], totals[0], totals[1], ties, where)


def trapezoids(x: F8, y: F8) -> float:
    """Return the area under points joined by straight lines."""
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)


def pr_of(c: Ranking, interpolate: bool = False, prior: float | None = None) -> PRResult:
    """Return what `pr` does, of counts."""
    p, n = c.positives, c.negatives
    hits, misses = c.tp.astype(np.float64), c.fp.astype(np.float64)
    recall = hits / (p or (_FLOOR if c.ties == "sample" else np.nan))
    tp = hits
    if prior is not None:
        if not 0 <= prior <= 1:
            raise DataError(f"normalize_prior {prior!r}: expected a share from 0 to 1")
        tp, misses = prior * hits / max(p, 1), (1 - prior) * misses / max(n, 1)
    chosen = np.add(tp, misses, out=misses)
    if c.ties == "sample":
        precision = np.maximum(tp, _FLOOR) / np.maximum(chosen, _FLOOR)
    else:
        none = np.searchsorted(chosen, 0, "right")
        with np.errstate(invalid="ignore"):
            precision = np.divide(tp, chosen, out=chosen)
        precision[:none] = 1
    if interpolate:
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    auc = ap = ap_11 = np.nan
    if p:
        auc = trapezoids(recall, precision)
        ap = np.sum(np.diff(hits) * precision[1:]) / p
        # The first point with recall >= i/10, in whole numbers: no level is missed by rounding.
        first = np.searchsorted(c.tp, -(-np.arange(11) * p // 10))
        best = np.maximum.reduceat(precision, first[first < c.tp.size])
        ap_11 = np.maximum.accumulate(best[::-1]).sum() / 11
    chance = prior if prior is not None else p / (p + n) if p + n else np.nan
    summary = {"auc": auc, "ap": ap, "ap_11": ap_11, "chance": chance}
    numbers: dict[str, Any] = {name: float(value) for name, value in summary.items()}
    return PRResult(**_points(c, recall=recall, precision=precision), **numbers)


def roc_of(c: Ranking, plot: Variant = "fptp") -> ROCResult:
    """Return what `roc` does, of counts."""
    given_word(plot, "plot", VARIANTS)
    p, n = c.positives, c.negatives
    floor = _FLOOR if c.ties == "sample" else np.nan
    tpr, fpr = c.tp / (p or floor), c.fp / (n or floor)
    area = error = threshold = np.nan
    if p and n:
        # In whole numbers up to the last division, so that the area is exact. Twice that under
        # (FP, TP), in two parts; int64 may not hold one, Python's numbers do.
        end_p, end_n = int(c.tp[-1]), int(c.fp[-1])
        kind = object if end_p * end_n >= 2**63 else np.int64
        # Per sample, one of tp and fp stands still: the trapezoids are VLFeat's rectangles.
        rise, twice = np.diff(c.fp).astype(kind, copy=False), 0
        for part in (c.tp[1:], c.tp[:-1]):
            twice += int(np.dot(part.astype(kind, copy=False), rise))
        over_tpr = (2 * end_p * end_n - twice) / (2 * p * n)  # FPR over the rise of TPR
        area = {
            "tp": twice / (2 * p * n),
            "fn": end_n / n - twice / (2 * p * n),
            "tn": end_p / p - over_tpr,
            "fp": over_tpr,
        }[plot[2:]]
        # The equal error rate, after the last point where TNR > TPR. Both rates rise along the
        # curve, so that it can be searched for by halves.
        s = bisect_left(range(tpr.size), True, key=lambda k: 1 - fpr[k] <= tpr[k]) - 1
        if s + 1 < tpr.size:
            tnr, threshold = 1 - fpr[s], float(c.thresholds[s + 1])
            rise_p, fall_n = tpr[s + 1] - tpr[s], tnr - (1 - fpr[s + 1])
            error = 1 - (tpr[s] if rise_p == 0 else tnr)
            if rise_p and fall_n:
                # A merged tie: where the line between the two points meets TPR = TNR.
                error = 1 - (tpr[s] + rise_p * (tnr - tpr[s]) / (rise_p + fall_n))
    numbers: dict[str, Any] = {"auc": area, "eer": float(error), "eer_threshold": threshold}
    return ROCResult(**_points(c, tpr=tpr, fpr=fpr), **numbers, plot=plot)


def variant_of(words: str) -> Variant:
    """Return the variant of `roc` that is named in VLFeat's way or in words, in any case.

    Raises DataError for other words.

    >>> variant_of("FPTP"), variant_of("recall over false positive rate")
    ('fptp', 'fptp')
    """
    text = words.strip().lower()
    parts = re.split(r" (?:over|against|versus|vs\.?) ", re.sub(r"[\s_-]+", " ", text))
    rates = [rate for part in parts for rate, names in RATE_NAMES.items() if part in names]
    for variant in VARIANTS:
        if variant in (text, "".join(rates[::-1])):
            return variant
    pairs = f"{', '.join(VARIANTS)}, or Y over X such as 'TPR over FPR'"
    raise DataError(f"plot {words!r}: expected {pairs}")


def along_curve(curve: _C) -> _C:
    """Return a curve with its points from the first to the last; `stable` has them as samples."""
    if curve.tp.size == 0 or curve.tp[0] == curve.fp[0] == 0:
        return curve
    order = np.argsort(curve.tp + curve.fp, kind="stable")
    order = order[curve.tp[order] >= 0]
    first = {"thresholds": np.inf, "precision": 1}  # of nothing predicted; others are 0
    arrays: dict[str, Any] = {}
    for name, column in curve.points().items():
        with_first = np.r_[first.get(name, 0), column[order]]
        arrays[name] = read_only(with_first.astype(column.dtype))
    return replace(curve, **arrays)


def roc_of_counts(
    thresholds: ArrayLike, tp: ArrayLike, fp: ArrayLike, positives: int, negatives: int
) -> ROCResult:
    """Return the ROC curve of counts at rising thresholds (T,), from (0, 0) to (1, 1)."""
    ends = (np.inf, thresholds, -np.inf), (0, tp, positives), (0, fp, negatives)
    t, tps, fps = (np.r_[first, np.flip(values), last] for first, values, last in ends)
    return roc_of(Ranking(t, tps, fps, positives, negatives))


def _points(c: Ranking, **rates: F8) -> dict[str, Any]:
    """Return the fields that every result has: read-only rates, counts, thresholds; totals."""
    arrays: dict[str, Any] = {**rates, "tp": c.tp, "fp": c.fp, "thresholds": c.thresholds}
    if c.rows is not None:
        for name, values in arrays.items():
            missing = -1 if values.dtype.kind == "i" else np.nan
            arrays[name] = np.where(c.rows >= 0, values[c.rows], missing)
    fields = {name: read_only(np.ascontiguousarray(values)) for name, values in arrays.items()}
    return {**fields, "positives": c.positives, "negatives": c.negatives}
