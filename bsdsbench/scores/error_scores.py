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

    "error": missed pixels of each class in MISSED, divided by all annotated pixels; false pixels of
        each class in FALSE, divided by all predicted pixels
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
    tables = _sum_tables(stack, weights)
    at_ods, rises = [], []  # one element per curve
    for curve in range(tables["matches"].shape[1]):
        table = {name: counts[:, curve] for name, counts in tables.items()}  # (S, T, columns)
        summed = PRCurve.of_counts(thresholds, table["matches"], protocol.operator)
        ods = best(summed, protocol.ods_rule)
        nearest = np.abs(thresholds - np.asarray(ods.threshold)[:, None]).argmin(axis=1)  # (S,)
        at_ods.append({name: t[np.arange(len(nearest)), nearest] for name, t in table.items()})
        rises.append(_ods_rises(table, thresholds, np.asarray(ods.f), protocol))
    sums = {name: np.sum([table[name] for table in at_ods], axis=0) for name in tables}
    missed, false, total = sums["missed"], sums["false"], sums["matches"]  # (S, columns)
    all_missed, all_false = (pixels.sum(axis=1, keepdims=True) for pixels in (missed, false))
    return {
        "error": _by_class(MISSED, defined_ratio(missed, total[:, [TOTAL_GT]]))
        | _by_class(FALSE, defined_ratio(false, total[:, [TOTAL_PRED]])),
        "error_share": _by_class(MISSED, defined_ratio(missed, all_missed))
        | _by_class(FALSE, defined_ratio(false, all_false)),
        "agreement": _by_class(AGREEMENT, defined_ratio(sums["agreement_matched"], sums[COUNTED])),
        "delta_ods": _by_class(MISSED + FALSE + AGREEMENT, defined_mean(np.array(rises), axis=0)),
    }


def _by_class(classes: tuple[str, ...], columns: F8) -> dict[str, F8]:
    """Return the columns (S, classes) as class -> float64 (S,)."""
    return dict(zip(classes, columns.T, strict=True))


def _ods_rises(table: dict[str, F8], thresholds: F8, ods_f: F8, protocol: Protocol) -> F8:
    """Return how much the ODS of one curve rises if a class of errors is repaired, (S, 9).

    The nine columns are the classes, each repaired alone: MISSED (their pixels count as matched),
    FALSE (their pixels are removed) and AGREEMENT (their unmatched pixels count as matched).
    Samples without ground truth are NaN.

    table: the summed counts of the curve, name -> (S, T, columns).
    ods_f (S,): the F of the curve's ODS, before any repair.
    """
    matches = table["matches"]
    unmatched = table[COUNTED] - table["agreement_matched"]
    missed, false = table["missed"], table["false"]
    repairs = [(MATCHED_GT, missed), (TOTAL_PRED, -false), (MATCHED_GT, unmatched)]
    rises = []
    for column, change in repairs:
        for pixels in np.moveaxis(change, -1, 0):  # (S, T), of one class
            repaired = matches.copy()
            repaired[..., column] += pixels
            curve = PRCurve.of_counts(thresholds, repaired, protocol.operator)
            rises.append(best(curve, protocol.ods_rule).f - ods_f)
    has_gt = matches[:, :1, TOTAL_GT] > 0
    return np.where(has_gt, np.column_stack(rises), np.nan)


def _sum_tables(stack: Stack, weights: Weights) -> dict[str, F8]:
    """Return the weighted sum of each count over the images: name -> (S, curves, T, columns).

    Counts without an axis of curves are taken as one curve. The count named COUNTED does not depend
    on the threshold; it is repeated at all T thresholds.
    """
    n_images, n_steps = len(stack["matches"]), len(stack["thresholds"])
    tables: dict[str, F8] = {}
    for name in ("matches", "missed", "false", "agreement_matched", COUNTED):
        counts = stack[name]
        rows = 1 if name == COUNTED else n_steps
        # (N, curves, T or 1, columns)
        counts_by_curve = counts.reshape(n_images, -1, rows, counts.shape[-1])
        summed = weighted_sum(weights, counts_by_curve)
        tables[name] = np.broadcast_to(summed, (*summed.shape[:2], n_steps, summed.shape[-1]))
    return tables
