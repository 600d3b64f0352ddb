"""The rules by which ODS and AP are read off a precision-recall curve, by name.

All programs below share the counts and differ only here. L is the 101 recall levels 0, 0.01 .. 1.

| AP rule | rows | precision at a level of L | sum |
|---|---|---|---|
| bsds | without threshold 0 | linear; of equal recalls the first row; outside the rows 0 | / 100 |
| edter | with threshold 0, where every pixel is on and nothing is thinned | as bsds | / 100 |
| endpoints | and the points (R 0, P 1), (R 1, P 0) | as bsds | / 100 |
| seism | where nothing is predicted (R 0, P 1), without ground truth (R 1, P 0) | as bsds | / 100 |
| sbd | without threshold 0 | linear; of equal recalls the last row; outside the rows 0 | / 100 |
| 101-point | without threshold 0 | the largest precision at that recall or a higher one | / 101 |

`101-point` is also the last column of the SBD programs' result file. The ODS rules are
`interpolated` (100 steps between neighbouring thresholds) and `maximum` (the thresholds alone).

Sources: collect_eval_bdry.m of BSDS500 (bsds); edgesEvalImg.m of EDTER (edter);
plot-edge-pr-curves (endpoints); eval_cont.m and general_ap.m of SEISM (seism); the SBD benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import ProtocolError
from bsdsbench.scores.precision_recall import ratio

F8 = NDArray[np.float64]
LEVELS = np.arange(101) / 100

AP_RULES: dict[str, str] = {
    "bsds": "linear precision at 101 recalls, nothing outside the measured range",
    "edter": "as bsds, with the row of threshold 0: all pixels on, not thinned",
    "endpoints": "as bsds, with the points (R 0, P 1) and (R 1, P 0)",
    "seism": "as bsds, thresholds without a detection at (R 0, P 1)",
    "sbd": "as bsds, but of equal recalls the last row",
    "101-point": "mean over 101 recalls of the largest precision from there on",
}
ODS_RULES: dict[str, str] = {
    "interpolated": "100 linear steps between neighbouring thresholds",
    "maximum": "the best of the thresholds themselves",
}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A curve as the rules read it, one row per threshold, thresholds increasing.

    recall, precision : f8 (T,), 0/0 = 0
    detected   : bool (T,), whether anything is predicted there; None where that is not known
    annotated  : False if the ground truth has no boundary pixel at all
    whole_image : True if the first row is of threshold 0 with every pixel on
    """

    recall: F8
    precision: F8
    detected: NDArray[np.bool_] | None = None
    annotated: bool = True
    whole_image: bool = False


def rows_of_counts(thresholds: ArrayLike, four: ArrayLike, operator: str = ">=") -> Rows:
    """Rows from matched_gt, total_gt, matched_pred, total_pred, (T, 4), at the thresholds (T,).

    With `operator` ">=" a threshold 0 is the row of the whole image.
    """
    counts = np.asarray(four)
    first = np.asarray(thresholds, np.float64)[:1]
    return Rows(
        recall=ratio(counts[:, 0], counts[:, 1]),
        precision=ratio(counts[:, 2], counts[:, 3]),
        detected=counts[:, 3] > 0,
        annotated=bool(counts[:, 1].any()),
        whole_image=operator == ">=" and bool((first == 0).any()),
    )


def area(rows: Rows, rule: str = "bsds") -> float:
    """Average precision of a curve by the named rule.

    NaN where the rule needs what the curve does not have: the row of threshold 0 (edter), or which
    thresholds have no detection (seism). No rows, or fewer than two distinct recalls (101-point:
    no rows), give 0. Raises ProtocolError for an unknown rule.

    Examples
    --------
    >>> rows = Rows(np.array([0.6, 0.2]), np.array([0.5, 1.0]))
    >>> round(area(rows), 4), round(area(rows, "101-point"), 4)
    (0.3075, 0.4059)
    """
    if rule not in AP_RULES:
        raise ProtocolError(f"ap_rule {rule!r}: expected one of {', '.join(AP_RULES)}")
    if rule == "edter":
        return _linear(rows.recall, rows.precision) if rows.whole_image else float("nan")
    start = int(rows.whole_image)
    recall, precision = rows.recall[start:], rows.precision[start:]
    if rule == "101-point":
        return _largest(recall, precision)
    if rule == "sbd":
        return _linear(recall[::-1], precision[::-1])
    if rule == "endpoints":
        return _linear(np.r_[1.0, recall, 0.0], np.r_[0.0, precision, 1.0])
    if rule == "seism":
        if rows.detected is None:
            return float("nan")
        if not rows.annotated:  # every row is (R 1, P 0)
            return 0.0
        detected = rows.detected[start:]
        recall, precision = np.where(detected, recall, 0.0), np.where(detected, precision, 1.0)
    return _linear(recall, precision)


def all_areas(rows: Rows) -> dict[str, float]:
    """Rule -> AP for every rule; NaN as in `area`."""
    return {rule: area(rows, rule) for rule in AP_RULES}


def _linear(recall: F8, precision: F8) -> float:
    """The official sum; of equal recalls the first row given is kept."""
    distinct, first = np.unique(recall, return_index=True)
    if distinct.size < 2:
        return 0.0
    levels = np.interp(LEVELS, distinct, precision[first], left=0.0, right=0.0)
    return float(levels.sum() * 0.01)


def _largest(recall: F8, precision: F8) -> float:
    best = [precision[recall >= level].max(initial=0.0) for level in LEVELS]
    return float(np.mean(best))
