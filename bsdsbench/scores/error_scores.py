"""How much each class of errors costs: scores from the counts of `boundary_errors`.

The ODS threshold may lie between two thresholds of the counts; the shares of errors are those at
the nearer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.scores.counts import MATCHED_GT, TOTAL_GT, TOTAL_PRED, Stack
from bsdsbench.scores.curve import PRCurve, best
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, weighted_sum

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol

COUNTED = "agreement_pixels"  # the count that tells whether errors were counted
MISSED, FALSE = ("suppressed", "near_missed", "absent"), ("duplicate", "near_false", "background")
AGREEMENT = ("alone", "some", "all")


def error_scores(stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, Any]:
    """Return the scores of error classes in S samples of N images: group -> class -> float64 (S,).

    "error": missed pixels of each class divided by all annotated pixels, false pixels of each class
        divided by all predicted pixels
    "error_share": the same pixels divided by all missed pixels, or by all false pixels
    "agreement": recall of the pixels that one, some or all annotators drew
    "delta_ods": how much ODS rises if the errors of one class alone are repaired

    The first three use the threshold nearest to the ODS threshold. NaN: the denominator is 0.

    stack: the counts of `boundary_errors` for all images, (N, ...) per name. A second axis may
        hold one curve per class of a label map. Then pixels are summed over the curves, each at its
        own ODS threshold, and delta_ods is the mean over the curves with ground truth.
    weights int (S, N): number of copies of each image in each sample.
    """
    thresholds = stack["thresholds"]
    sums = _sum_over_images(stack, weights)
    totals = dict.fromkeys(sums, np.zeros(()))  # name -> (S, columns), at the ODS thresholds
    rises = []  # one array for each curve
    for k in range(sums["matches"].shape[1]):
        of_curve = {name: counts[:, k] for name, counts in sums.items()}  # (S, T, columns)
        curve = PRCurve.of_counts(thresholds, of_curve["matches"], protocol.operator)
        ods = best(curve, protocol.ods_rule)
        rises.append(_ods_rises(of_curve, thresholds, np.asarray(ods.f), protocol))
        distance = np.abs(thresholds - np.asarray(ods.threshold)[:, None])  # (S, T)
        nearest = np.arange(len(distance)), distance.argmin(axis=1)
        for name, counts in of_curve.items():
            totals[name] = totals[name] + counts[nearest]
    missed, false, matches = totals["missed"], totals["false"], totals["matches"]
    annotated, predicted = matches[:, [TOTAL_GT]], matches[:, [TOTAL_PRED]]
    all_missed, all_false = missed.sum(axis=1, keepdims=True), false.sum(axis=1, keepdims=True)
    agreement = defined_ratio(totals["agreement_matched"], totals[COUNTED])
    error = np.hstack([defined_ratio(missed, annotated), defined_ratio(false, predicted)])
    error_share = np.hstack([defined_ratio(missed, all_missed), defined_ratio(false, all_false)])
    return {
        "error": _by_class(MISSED + FALSE, error),
        "error_share": _by_class(MISSED + FALSE, error_share),
        "agreement": _by_class(AGREEMENT, agreement),
        "delta_ods": _by_class(MISSED + FALSE + AGREEMENT, defined_mean(np.array(rises), axis=0)),
    }


def _by_class(classes: tuple[str, ...], scores: F8) -> dict[str, F8]:
    """Return the columns of (S, classes) by the name of their class, (S,) each."""
    return dict(zip(classes, scores.T, strict=True))


def _ods_rises(counts: dict[str, F8], thresholds: F8, ods_f: F8, protocol: Protocol) -> F8:
    """Return how much the ODS of one curve rises if a class of errors is repaired, (S, 9).

    Each column repairs one class alone: MISSED (their pixels count as matched), FALSE (their pixels
    are removed), then AGREEMENT (their unmatched pixels count as matched). Samples without ground
    truth are NaN.

    counts: the summed counts of the curve, name -> (S, T, columns).
    ods_f (S,): the F of the curve's ODS, before any repair.
    """
    matches = counts["matches"]
    unmatched = counts[COUNTED] - counts["agreement_matched"]
    repairs = (
        (MATCHED_GT, counts["missed"]),
        (TOTAL_PRED, -counts["false"]),
        (MATCHED_GT, unmatched),
    )
    rises = []
    for column, changes in repairs:
        for k in range(changes.shape[-1]):  # one class of errors
            repaired = matches.copy()
            repaired[..., column] += changes[..., k]
            curve = PRCurve.of_counts(thresholds, repaired, protocol.operator)
            rises.append(best(curve, protocol.ods_rule).f - ods_f)
    has_gt = matches[:, :1, TOTAL_GT] > 0
    return np.where(has_gt, np.column_stack(rises), np.nan)


def _sum_over_images(stack: Stack, weights: Weights) -> dict[str, F8]:
    """Return the weighted sum of each count over the images: name -> (S, curves, T, columns).

    Counts without an axis of curves are those of one curve. The count named COUNTED does not depend
    on the threshold; it is repeated at all T thresholds.
    """
    n_images, n_thresholds = len(stack["matches"]), len(stack["thresholds"])
    sums: dict[str, F8] = {}
    for name in ("matches", "missed", "false", "agreement_matched", COUNTED):
        counts = stack[name]
        n_columns = counts.shape[-1]
        n_rows = 1 if name == COUNTED else n_thresholds
        summed = weighted_sum(weights, counts.reshape(n_images, -1, n_rows, n_columns))
        sums[name] = np.broadcast_to(summed, (*summed.shape[:2], n_thresholds, n_columns))
    return sums
