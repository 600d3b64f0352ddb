"""Areas under PR and ROC curves: every rule by its name.

The area under a PR curve depends on the rule. Rules differ in what lies between two points
(nothing, a straight line, the count-linear curve), in the start at recall 0 and in the recall
levels used.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.geometry import above_zero, check_counts, interpolate_pr
from bsdsbench.curves.samples import F8, Pair, floats, same_size, shares
from bsdsbench.files.errors import DataError
from bsdsbench.scores.curve import PRCurve, area
from bsdsbench.scores.ratios import ratio

Rule = Literal[
    "davis-goadrich", "auccalculator", "trapezoid", "step", "bsds", "11-point", "101-point"
]
RULES = get_args(Rule)
_ROUNDING = 1e-6


def auc_pr(
    precision: ArrayLike,
    recall: ArrayLike,
    *,
    rule: Rule = "davis-goadrich",
    positives: int | None = None,
    negatives: int | None = None,
    min_recall: float = 0.0,
) -> float:
    """The area under a PR curve by the rule named.

    No points give 0.

    Parameters
    ----------
    precision, recall : array_like
        f8 (K,), along the curve in either direction.
    rule : str
        What lies between the points given:

        - "davis-goadrich": count-linear curves, in closed form; see `davis_goadrich_area`
        - "auccalculator": AUCCalculator's: count-linear points at each whole TP, trapezoids between
          them, ended by (P, N); needs positives and negatives
        - "trapezoid": straight lines; nothing outside the points (optimistic)
        - "step": rise of recall x precision after it, from recall 0 (average precision)
        - "bsds": straight lines read at recall 0, 0.01 .. 1, 0 outside, sum x 0.01
        - "11-point", "101-point": mean over even recall levels of the best precision at or beyond
          the level, 0 if none (PASCAL 2007, COCO). A conventional point (recall 0, precision 1)
          counts if it is among the points, as in VLFeat
    positives, negatives : int or None
        How many there are of each, for the rule "auccalculator".
    min_recall : float
        Only the part to the right of it ("davis-goadrich", "auccalculator").

    Returns
    -------
    float
        The area; 0 without points.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For an unknown rule, NaN, values outside [0, 1], or recall that turns back (not under
        "bsds", which sorts).

    References
    ----------
    Sources: with each rule; Davis and Goadrich 2006; the official collect_eval_bdry.m ("bsds").

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.auc_pr([1.0, 0.5], [0.5, 1.0], rule="trapezoid")
    0.375
    """
    if rule not in RULES:
        raise DataError(f"rule {rule!r}: expected one of {', '.join(RULES)}")
    if min_recall and rule not in ("davis-goadrich", "auccalculator"):
        raise DataError(f"min_recall: not part of rule {rule!r}, expected 0")
    p, r = shares(precision, recall, "precision", "recall")
    if r.size == 0:
        return 0.0
    if rule == "bsds":
        return float(area(PRCurve(np.arange(r.size, dtype=np.float64), p, r)))
    p, r = _rising(p, r)
    if rule == "trapezoid":
        return float(np.dot(np.diff(r), p[1:] + p[:-1]) / 2)
    if rule == "step":
        return float(np.dot(np.diff(r, prepend=0), p))
    if rule in ("11-point", "101-point"):
        parts = 10 if rule == "11-point" else 100
        best = largest_beyond(p, r, np.arange(parts + 1) / parts)
        return float(ratio(best.sum(), parts + 1))
    keep = r > 0
    p, r = p[keep], r[keep]
    if (p == 0).any():
        raise DataError("precision 0 at a recall above 0: expected a precision above 0 there")
    if rule == "davis-goadrich":
        return davis_goadrich_area(r, _false_positives(r, p), 1, min_recall=min_recall)
    if positives is None or negatives is None:
        raise DataError("rule 'auccalculator': expected positives and negatives")
    tp = _whole(r * positives, positives)
    fp = _whole(_false_positives(tp, p), positives + negatives)
    return auccalculator_areas(tp, fp, positives, negatives, min_recall=min_recall)[0]


def _false_positives(tp: F8, precision: F8) -> F8:
    """What the precision says; FP stands still where only float32's rounding makes it fall."""
    fp = tp * (1 / precision - 1)
    highest = np.maximum.accumulate(fp)
    return np.where(highest - fp <= _ROUNDING * tp / precision, highest, fp)


def _whole(counts: F8, total: float) -> F8:
    """Counts among `total`, made whole where only float32's rounding keeps them from being so."""
    whole = np.rint(counts)
    return np.where(np.abs(counts - whole) <= _ROUNDING * total, whole, counts)


def davis_goadrich_area(
    tp: ArrayLike, fp: ArrayLike, positives: float, *, min_recall: float = 0.0
) -> float:
    """The exact area under the count-linear curve through the points (TP, FP).

    A first point with TP > 0 is joined to (0, 0), which carries
    its precision flat; a point (0, FP > 0) is kept, so false positives that come first are paid
    for. Nothing is added beyond the last point. No points give 0. Errors as `interpolate_pr`.

    Along a segment FP = k TP + c, the precision t / ((1 + k) t + c) has the integral
    [dTP / (1 + k) - c / (1 + k)^2 ln(((1 + k) TP_B + c) / ((1 + k) TP_A + c))].

    Parameters
    ----------
    tp, fp : array_like
        True and false positives along the curve, (K,), both non-decreasing.
    positives : float
        Number of positives.
    min_recall : float
        Only the area to the right of this recall counts.

    Returns
    -------
    float
        The area; 0 without points.

    References
    ----------
    Source: the integral of Davis and Goadrich's interpolation (2006).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.davis_goadrich_area([1, 2], [0, 0], 2)
    1.0
    """
    a, b = check_counts(tp, fp)
    positives = above_zero(positives, "positives")
    if a.size and a[0] > 0:
        a, b = np.r_[0.0, a], np.r_[0.0, b]
    a, b = _cut(a, b, min_recall * positives)
    moves = np.diff(a) > 0
    tp_a, tp_b, fp_a, fp_b = a[:-1][moves], a[1:][moves], b[:-1][moves], b[1:][moves]
    k = (fp_b - fp_a) / (tp_b - tp_a)
    c = fp_a - k * tp_a
    # The two arguments of the logarithm are TP + FP at the ends; from (0, 0), c is 0.
    start, end = tp_a + fp_a, tp_b + fp_b
    log = np.log(np.divide(end, start, out=np.ones_like(end), where=start > 0))
    return float(np.sum((tp_b - tp_a) / (1 + k) - c / (1 + k) ** 2 * log) / positives)


def auccalculator_areas(
    tp: ArrayLike, fp: ArrayLike, positives: float, negatives: float, *, min_recall: float = 0.0
) -> tuple[float, float]:
    """AUCCalculator's areas of the points (TP, FP): (under PR, under ROC).

    One point per distinct score goes in. Points with TP = 0 are dropped. If the first TP is above
    1, (1, FP/TP) comes before it. (P, N) ends the curve. Points at whole TP are put between. The
    first precision is carried flat to recall 0. Areas are trapezoids. There is no hull. Dropping
    the TP = 0 points is optimistic when false positives come first. No points give the area of
    (P, N) alone.
    Errors as `interpolate_pr`, also for counts that exceed their totals.

    Parameters
    ----------
    tp, fp, positives, negatives, min_recall : as in `davis_goadrich_area`
        Counts along the curve and totals.

    Returns
    -------
    tuple of float, float
        Area under PR, area under ROC.

    References
    ----------
    Source: AUCCalculator (Davis and Goadrich 2006).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> pr, roc = curves.auccalculator_areas([1, 2], [0, 2], 2, 2)
    >>> roc
    0.75
    """
    a, b = check_counts(tp, fp)
    positives = above_zero(positives, "positives")
    negatives = above_zero(negatives, "negatives")
    a, b = a[a > 0], b[a > 0]
    if a.size and a[0] > 1:
        a, b = np.r_[1.0, a], np.r_[b[0] / a[0], b]
    a, b = np.r_[a, positives], np.r_[b, negatives]
    check_counts(a, b)
    precision, recall = interpolate_pr(a, b, positives)
    precision, recall = np.r_[precision[0], precision], np.r_[0.0, recall]
    if min_recall:
        edge = np.interp(min_recall, recall, precision)
        right = recall > min_recall
        precision, recall = np.r_[edge, precision[right]], np.r_[min_recall, recall[right]]
    x, y = np.r_[0, b] / negatives, np.r_[0, a] / positives
    under_pr = np.dot(np.diff(recall), precision[1:] + precision[:-1]) / 2
    return float(under_pr), float(np.dot(np.diff(x), y[1:] + y[:-1]) / 2)


def auc_roc(fpr: ArrayLike, tpr: ArrayLike) -> float:
    """Trapezoids under ROC points in the order given; nothing added at the ends.

    Parameters
    ----------
    fpr, tpr : array_like
        False and true positive rates, f8 (K,).

    Returns
    -------
    float
        The area; 0 without points.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For NaN or infinity.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.auc_roc([0, 0.5, 1], [0, 1, 1])
    0.75
    """
    x, y = floats(fpr, "fpr"), floats(tpr, "tpr")
    same_size(x, y, "fpr", "tpr")
    return float(np.dot(np.diff(x), y[1:] + y[:-1]) / 2)


def _cut(tp: F8, fp: F8, low: float) -> Pair:
    """The part of the curve with TP >= low, its first point count-linear."""
    if low <= 0 or tp.size == 0:
        return tp, fp
    right = tp > low
    return np.r_[low, tp[right]], np.r_[np.interp(low, tp, fp), fp[right]]


def largest_beyond(precision: F8, recall: F8, levels: F8) -> F8:
    """The largest precision at each level of recall or beyond, 0 if none; recall not falling."""
    best = np.r_[np.maximum.accumulate(precision[::-1])[::-1], 0.0]
    return best[np.searchsorted(recall, levels)]


def _rising(p: F8, r: F8) -> Pair:
    if r[0] > r[-1]:
        p, r = p[::-1], r[::-1]
    if (np.diff(r) < 0).any():
        raise DataError("recall: expected values that rise (or fall) all along the curve")
    return p, r
