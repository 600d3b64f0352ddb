"""The cost of classes of errors: scores from the counts of `boundary_errors`.

All scores are taken at the counts' threshold nearest to the ODS threshold. Each class of missed
(false) pixels is given as a fraction of all annotated (predicted) pixels, and of all missed (false)
pixels. `agreement` is the recall of pixels that one, some or all annotators drew. `delta_ods` is
the rise of ODS if only one class is repaired: its missed pixels count as matched, or its false
pixels are removed.
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
    """Return `error`, `error_share`, `agreement` and `delta_ods`, each class -> (S,).

    The stack has the counts of `boundary_errors`, with or without an axis of curves after the axis
    of images. For several curves (classes of a label map) pixels are summed, each curve at its own
    threshold, and `delta_ods` is the mean over the curves with ground truth.
    """
    thresholds = stack["thresholds"]
    tables = _sum_tables(stack, weights)
    at_ods, rises = [], []
    for curve in range(tables["matches"].shape[1]):
        table = {name: values[:, curve] for name, values in tables.items()}  # (S, T, numbers)
        matches = table["matches"]
        ods = best(PRCurve.of_counts(thresholds, matches, protocol.operator), protocol.ods_rule)
        step = np.abs(thresholds - np.asarray(ods.threshold)[:, None]).argmin(axis=1)
        at_ods.append({name: v[np.arange(len(step)), step] for name, v in table.items()})
        unmatched = table[COUNTED] - table["agreement_matched"]
        repairs = [
            (MATCHED_GT, table["missed"]),
            (TOTAL_PRED, -table["false"]),
            (MATCHED_GT, unmatched),
        ]
        rise_of_class = []
        for column, change in repairs:
            for pixels in np.moveaxis(change, -1, 0):
                repaired = matches.copy()
                repaired[..., column] += pixels
                repaired_curve = PRCurve.of_counts(thresholds, repaired, protocol.operator)
                rise_of_class.append(best(repaired_curve, protocol.ods_rule).f - ods.f)
        has_truth = matches[:, :1, TOTAL_GT] > 0
        rises.append(np.where(has_truth, np.column_stack(rise_of_class), np.nan))
    sums = {name: np.sum([table[name] for table in at_ods], axis=0) for name in tables}
    missed, false, total = sums["missed"], sums["false"], sums["matches"]
    groups = {
        "error": (
            (MISSED, defined_ratio(missed, total[:, [TOTAL_GT]])),
            (FALSE, defined_ratio(false, total[:, [TOTAL_PRED]])),
        ),
        "error_share": (
            (MISSED, defined_ratio(missed, missed.sum(axis=1, keepdims=True))),
            (FALSE, defined_ratio(false, false.sum(axis=1, keepdims=True))),
        ),
        "agreement": ((AGREEMENT, defined_ratio(sums["agreement_matched"], sums[COUNTED])),),
        "delta_ods": (((*MISSED, *FALSE, *AGREEMENT), defined_mean(np.array(rises), axis=0)),),
    }
    scores: dict[str, Any] = {}
    for group, classes in groups.items():
        scores[group] = {}
        for names, values in classes:
            scores[group] |= dict(zip(names, values.T, strict=True))
    return scores


def _sum_tables(stack: Stack, weights: Weights) -> dict[str, F8]:
    """Sum each of the counts over images: name -> (S, curves, T, numbers)."""
    n_images, n_steps = len(stack["matches"]), len(stack["thresholds"])
    tables: dict[str, F8] = {}
    for name in ("matches", "missed", "false", "agreement_matched", COUNTED):
        counts = stack[name]
        rows = 1 if name == COUNTED else n_steps  # COUNTED does not depend on the threshold
        summed = weighted_sum(weights, counts.reshape(n_images, -1, rows, counts.shape[-1]))
        tables[name] = np.broadcast_to(summed, (*summed.shape[:2], n_steps, summed.shape[-1]))
    return tables
