"""Scores that show how much each class of errors costs, from the counts of `boundary_errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.scores.counts import MATCHED_GT, TOTAL_GT, TOTAL_PRED, Stack
from bsdsbench.scores.curve import PRCurve, best
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, weighted_sum

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol

COUNTED = "agreement_pixels"  # this count is present if and only if errors were counted by class
MISSED, FALSE = ("suppressed", "near_missed", "absent"), ("duplicate", "near_false", "background")
AGREEMENT = ("alone", "some", "all")


def error_scores(stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, Any]:
    """Compute the scores of the error classes for S samples of N images.

    There are nine classes, three in each group. MISSED: annotated pixels by why they are missed.
    FALSE: false pixels by their distance from the ground truth. AGREEMENT: annotated pixels by who
    drew them, one annotator alone, some but not all, or all. Pixels are counted at the threshold
    nearest to the ODS threshold, that of the highest F of the data set.

    stack: the counts of `boundary_errors` at T thresholds: "matches" (N, T, 4); "missed" and
        "false" (N, T, 3), the pixels of each class; "agreement_pixels" (N, 3), all annotated pixels
        of each class, and "agreement_matched" (N, T, 3), the matched ones of these. Metrics with
        several curves, such as one for each object class, have an additional axis 1 for them.
    weights: int (S, N), how many times each image occurs in each sample.

    Returns a dict of four groups. Each maps the name of a class, such as "absent", to float64 (S,).
    Each curve has its own ODS threshold. Pixels at these are summed over curves. A score is NaN if
    its denominator is 0.

    "error": for the classes MISSED, their pixels divided by all annotated pixels; for the classes
        FALSE, their pixels divided by all predicted pixels
    "error_share": the same pixels divided by all missed pixels, or by all false pixels
    "agreement": for the classes AGREEMENT, their matched pixels divided by all their pixels
    "delta_ods": for all nine classes, the increase in ODS if the errors of this class alone are
        corrected; the mean over those curves that have ground truth
    """
    thresholds, sums = stack["thresholds"], dict[str, Floats]()
    # Sum the counts of each curve over the images of each sample: name -> (S, curves, T, columns)
    for name in ("matches", "missed", "false", "agreement_matched", "agreement_pixels"):
        # "agreement_pixels" are stored without the axis of thresholds, and repeated for each
        rows = 1 if name == "agreement_pixels" else thresholds.size
        of_images = stack[name].reshape(len(stack[name]), -1, rows, stack[name].shape[-1])
        summed = weighted_sum(weights, of_images)
        sums[name] = np.broadcast_to(summed, (*summed.shape[:2], thresholds.size, summed.shape[3]))
    # The counts at the ODS threshold of each curve, summed over curves: name -> (S, columns)
    totals: dict[str, Floats] = {}
    rises = []  # of ODS, an array (S, 9) for each curve
    for k in range(sums["matches"].shape[1]):
        counts = {name: summed[:, k] for name, summed in sums.items()}  # (S, T, columns)
        curve = PRCurve.of_counts(thresholds, counts["matches"], protocol.operator)
        ods = best(curve, protocol.ods_rule)  # the point with the highest F in each sample, (S,)
        rises.append(_ods_rises(counts, thresholds, np.asarray(ods.f), protocol))
        ods_threshold = np.asarray(ods.threshold)[:, None]  # (S, 1)
        nearest = np.abs(thresholds - ods_threshold).argmin(axis=1)  # index of a threshold, (S,)
        for name, at_thresholds in counts.items():
            totals[name] = totals.get(name, 0) + at_thresholds[np.arange(len(nearest)), nearest]
    # Divide the pixels of each class, (S, 3), by those of which they are a share
    missed, false, matches = totals["missed"], totals["false"], totals["matches"]
    annotated, predicted = matches[:, [TOTAL_GT]], matches[:, [TOTAL_PRED]]  # (S, 1) each
    all_missed, all_false = missed.sum(axis=1, keepdims=True), false.sum(axis=1, keepdims=True)
    agreement = defined_ratio(totals["agreement_matched"], totals["agreement_pixels"])
    error = np.hstack([defined_ratio(missed, annotated), defined_ratio(false, predicted)])
    error_share = np.hstack([defined_ratio(missed, all_missed), defined_ratio(false, all_false)])
    return {
        "error": _by_class(MISSED + FALSE, error),
        "error_share": _by_class(MISSED + FALSE, error_share),
        "agreement": _by_class(AGREEMENT, agreement),
        "delta_ods": _by_class(MISSED + FALSE + AGREEMENT, defined_mean(np.array(rises), axis=0)),
    }


def _by_class(classes: tuple[str, ...], scores: Floats) -> dict[str, Floats]:
    """Split an array (S, classes) into its columns: class name -> float64 (S,)."""
    return dict(zip(classes, scores.T, strict=True))


def _ods_rises(
    counts: dict[str, Floats], thresholds: Floats, ods_f: Floats, protocol: Protocol
) -> Floats:
    """Compute how much the ODS of one curve rises if a single class of errors is corrected.

    Each class is corrected by itself. Missed pixels of a class are counted as matched, which raises
    recall; no predicted pixel is added, so precision stays. False pixels of a class are removed
    from the prediction, which raises precision.

    counts: the counts of the curve, summed over the images of each of S samples: name -> (S, T,
        columns). "missed" and "false" have the pixels of three classes each. "agreement_pixels" and
        "agreement_matched" have all annotated pixels, and the matched ones, in another three
        classes: drawn by one annotator alone, by some but not all, or by all.
    ods_f: (S,), the ODS before any correction.

    Returns float64 (S, 9), a column for each class: three of missed pixels, three of false pixels,
    and three of unmatched pixels by the agreement of annotators. It is NaN without ground truth.
    """
    matches = counts["matches"]
    unmatched = counts["agreement_pixels"] - counts["agreement_matched"]
    repairs = (  # the column of `matches` that changes, and by how much for each class, (S, T, 3)
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
