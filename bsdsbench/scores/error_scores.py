"""What classes of errors cost: scores of the counts of `boundary_errors`.

At the threshold of the counts that is nearest to the ODS threshold: each class of missed (false)
pixels as a share of all annotated (predicted) pixels, and of all missed (false) ones; and the
recall of what one, some, all annotators drew. `delta_ods` is by how much ODS rises where only that
class is repaired: its missed pixels count as matched, or its false ones are removed.
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
    """Return `error`, `error_share`, `agreement` and `delta_ods`: class -> (S,).

    The stack has the counts of `boundary_errors`, with or without an axis of curves after that of
    images. Of several curves (classes of a label map) pixels are summed, each at its own threshold,
    and `delta_ods` is the mean over those that have ground truth.
    """
    thresholds = stack["thresholds"]
    n_images, n_steps = len(stack["matches"]), len(thresholds)
    tables: dict[str, F8] = {}  # name -> (S, curves, T, numbers)
    for name in ("matches", "missed", "false", "agreement_matched", COUNTED):
        counts, rows = stack[name], 1 if name == COUNTED else n_steps
        summed = weighted_sum(weights, counts.reshape(n_images, -1, rows, counts.shape[-1]))
        tables[name] = np.broadcast_to(summed, (*summed.shape[:2], n_steps, summed.shape[-1]))
    here, gains = [], []
    for curve in range(tables["matches"].shape[1]):
        table_of = {name: table[:, curve] for name, table in tables.items()}
        matches = table_of["matches"]
        whole = best(PRCurve.of_counts(thresholds, matches, protocol.operator), protocol.ods_rule)
        step = np.abs(thresholds - np.asarray(whole.threshold)[:, None]).argmin(axis=1)
        here.append({name: table[np.arange(len(step)), step] for name, table in table_of.items()})
        unmatched = table_of[COUNTED] - table_of["agreement_matched"]
        repairs = [
            (MATCHED_GT, table_of["missed"]),
            (TOTAL_PRED, -table_of["false"]),
            (MATCHED_GT, unmatched),
        ]
        risen = []
        for column, change in repairs:
            for pixels in np.moveaxis(change, -1, 0):
                repaired = matches.copy()
                repaired[..., column] += pixels
                risen_curve = PRCurve.of_counts(thresholds, repaired, protocol.operator)
                risen.append(best(risen_curve, protocol.ods_rule).f - whole.f)
        gains.append(np.where(matches[:, :1, TOTAL_GT] > 0, np.column_stack(risen), np.nan))
    sums = {name: np.sum([table[name] for table in here], axis=0) for name in tables}
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
        "delta_ods": (((*MISSED, *FALSE, *AGREEMENT), defined_mean(np.array(gains), axis=0)),),
    }
    scores: dict[str, Any] = {}
    for group, parts in groups.items():
        scores[group] = {}
        for names, shares in parts:
            scores[group] |= dict(zip(names, shares.T, strict=True))
    return scores
