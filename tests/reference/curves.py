"""Slow, plain definitions of the curves: one loop per sample, exact fractions where they help."""

import math
from fractions import Fraction
from itertools import pairwise

FLOOR = 1e-10


def counts(labels, scores, merge=False, include_inf=False):
    """[(threshold, tp, fp)] from (inf, 0, 0) on, best score first, ties in input order."""
    rows = [(s, y) for s, y in zip(scores, labels, strict=True)]
    if merge:
        rows = [row for row in rows if row[1] != 0]
    rows.sort(key=lambda row: -row[0])
    points = [(math.inf, 0, 0)]
    for k, (s, y) in enumerate(rows):
        if s == -math.inf and not include_inf:
            break
        _, tp, fp = points[-1]
        point = (s, tp + (y > 0), fp + (y < 0))
        if merge and k and rows[k - 1][0] == s:
            points.pop()
        points.append(point)
    return points


def vl_pr(labels, scores, num_positives=None, num_negatives=None, prior=None, interpolate=False):
    """recall, precision, auc, ap, ap_11 by the words of the VLFeat help."""
    points = counts(labels, scores)
    p = sum(y > 0 for y in labels) if num_positives is None else num_positives
    n = sum(y < 0 for y in labels) if num_negatives is None else num_negatives
    recall, precision = [], []
    for _, tp, fp in points:
        recall.append(tp / max(p, FLOOR))
        if prior is None:
            a, b = tp, fp
        else:
            a, b = prior * tp / max(p, FLOOR), (1 - prior) * fp / max(n, FLOOR)
        precision.append(max(a, FLOOR) / max(a + b, FLOOR))
    if interpolate:
        precision = [max(precision[k:]) for k in range(len(precision))]
    auc = ap = 0.0
    for k in range(1, len(points)):
        auc += (recall[k] - recall[k - 1]) * (precision[k] + precision[k - 1]) / 2
        if points[k][1] > points[k - 1][1]:
            ap += precision[k]
    ap_11 = 0.0
    for i in range(11):
        at = [
            precision[k]
            for k in range(len(points))
            if p and Fraction(points[k][1], p) >= Fraction(i, 10)
        ]
        if p == 0 and i == 0:
            at = precision
        ap_11 += max(at, default=0.0) / 11
    return recall, precision, auc, ap / p if p else math.nan, ap_11


def vl_roc(labels, scores, plot="fptp", num_positives=None, num_negatives=None):
    """tpr, tnr, auc, eer, eer_threshold by the words of the VLFeat help and code."""
    points = counts(labels, scores)
    p = sum(y > 0 for y in labels) if num_positives is None else num_positives
    n = sum(y < 0 for y in labels) if num_negatives is None else num_negatives
    tpr = [tp / max(p, FLOOR) for _, tp, _ in points]
    tnr = [1 - fp / max(n, FLOOR) for _, _, fp in points]
    auc = 0.0
    for k in range(1, len(points)):
        if plot in ("fptp", "tntp"):
            auc += tpr[k] * (tnr[k - 1] - tnr[k])
        elif plot == "tptn":
            auc += tnr[k] * (tpr[k] - tpr[k - 1])
        else:
            auc += (1 - tpr[k]) * (tnr[k - 1] - tnr[k])
    s = max(k for k in range(len(points)) if tnr[k] > tpr[k])
    if s == len(points) - 1:
        return tpr, tnr, auc, math.nan, 0.0
    eer = 1 - tpr[s] if tpr[s] == tpr[s + 1] else 1 - tnr[s]
    return tpr, tnr, auc, eer, points[s + 1][0]


def heights_at(points, x):
    """Where lines through neighbouring points (x, y) are at x; both ends of an upright one."""
    seen = []
    for (x_a, y_a), (x_b, y_b) in pairwise(points):
        if x_a <= x <= x_b:
            flat = x_a == x_b
            seen += [y_a, y_b] if flat else [y_a + (y_b - y_a) * (x - x_a) / (x_b - x_a)]
    return seen


def precision_at(points, recall):
    """Count-linear precision of a curve [(tp, fp)] (fractions of P) at a recall above 0.

    The smallest and largest precision there, as a pair: they differ where FP rises at one TP.
    """
    seen = heights_at(points, recall)
    return recall / (recall + max(seen)), recall / (recall + min(seen))


def tpr_at(points, fpr):
    """Smallest and largest TPR of a ROC curve [(fpr, tpr)] at an FPR, in exact fractions."""
    seen = heights_at(points, fpr)
    return min(seen), max(seen)


def hull_height(points, x):
    """Highest point at x on any line between two of the points: the hull by its definition."""
    heights = [y for u, y in points if u == x]
    for u, y in points:
        for w, z in points:
            if u < x < w:
                heights.append(y + (z - y) * (x - u) / (w - u))
    return max(heights)


def prec_rec(scores, targets, thresholds, count=None, strict=False):
    """[(precision, tpr, fpr)] at thresholds: Schroedl's definition, row by row."""
    out = []
    if count is None:
        targets, count = [min(max(t, 0), 1) for t in targets], [1] * len(scores)
    else:
        targets = [min(t, c) for t, c in zip(targets, count, strict=True)]
    p, n = sum(targets), sum(count) - sum(targets)
    for level in thresholds:
        hit = [s > level if strict else s >= level for s in scores]
        tp = sum(t for t, h in zip(targets, hit, strict=True) if h)
        predicted = sum(c for c, h in zip(count, hit, strict=True) if h)
        out.append(
            (
                tp / predicted if predicted else math.nan,
                tp / p if p else math.nan,
                (predicted - tp) / n if n else math.nan,
            )
        )
    return out


def hazen(values, share):
    """One quantile by Hazen's rule, in exact fractions."""
    ordered = [Fraction(v) for v in sorted(values)]
    position = share * len(ordered) - Fraction(1, 2)
    if position <= 0:
        return ordered[0]
    if position >= len(ordered) - 1:
        return ordered[-1]
    k = position.numerator // position.denominator
    return ordered[k] + (ordered[k + 1] - ordered[k]) * (position - k)


def level_mean(labels, scores, levels):
    """PASCAL 2007 and COCO: mean over recall levels of the best precision at or beyond, else 0."""
    points = counts(labels, scores, include_inf=True)[1:]
    p = sum(y > 0 for y in labels)
    total = 0.0
    for level in levels:
        total += max((tp / (tp + fp) for _, tp, fp in points if tp / p >= level), default=0.0)
    return total / len(levels)


def all_point(labels, scores):
    """PASCAL 2010: area under the envelope of precision, summed where recall rises."""
    points = counts(labels, scores, include_inf=True)
    p = sum(y > 0 for y in labels)
    total = 0.0
    for k in range(1, len(points)):
        best = max(tp / (tp + fp) for _, tp, fp in points[k:])
        total += (points[k][1] - points[k - 1][1]) / p * best
    return total


def binned_ap(labels, scores, thresholds):
    """torchmetrics' binned average precision: score >= threshold, 0/0 precision 0, (0, 1) last."""
    p = sum(y > 0 for y in labels)
    total, after = 0.0, 0.0
    for level in sorted(thresholds, reverse=True):
        hit = [y > 0 for s, y in zip(scores, labels, strict=True) if s >= level]
        recall = sum(hit) / p
        total += (recall - after) * (sum(hit) / len(hit) if hit else 0.0)
        after = recall
    return total


def bsds_area(labels, scores, thresholds):
    """Linear precision at recall 0, 0.01 .. 1, 0 outside, sum x 0.01; first of equal recalls."""
    p = sum(y > 0 for y in labels)
    seen = {}
    for level in thresholds:
        hit = [y > 0 for s, y in zip(scores, labels, strict=True) if s >= level]
        seen.setdefault(sum(hit) / p, sum(hit) / len(hit) if hit else 0.0)
    ordered = sorted(seen.items())
    if len(ordered) < 2:
        return 0.0
    return sum((heights_at(ordered, i / 100) or [0])[0] for i in range(101)) * 0.01
