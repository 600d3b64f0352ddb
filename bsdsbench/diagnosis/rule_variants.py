"""What numbers can be read off counts that are there: no image is counted again.

A table is i8 (N, T, 4): per image and threshold matched_gt, total_gt, matched_pred, total_pred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.curve_rules import AP_RULES, RECALL_LEVELS, area, best_point
from bsdsbench.scores.ratios import f_measure, ratio

I8 = NDArray[np.int64]
F8 = NDArray[np.float64]
MEASURES = ("ods", "ois", "ap")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Counts of some images at some thresholds, with the operator they were made with.

    counts : i8 (N, T, 4); thresholds : f8 (T,)
    """

    counts: I8
    thresholds: F8
    operator: str = ">="

    def of(self, images: NDArray[np.int64] | slice) -> Table:
        """The table of some of the images."""
        return Table(self.counts[images], self.thresholds, self.operator)

    def summed(self) -> I8:
        """i8 (T, 4)."""
        total: I8 = self.counts.sum(axis=0)
        return total


@dataclass(frozen=True, slots=True)
class Reading:
    """Another way to make one measure from counts.

    measure, label : "ap", "AP with end points"
    who   : whose programs do so
    value : Table -> number, NaN where the counts do not have what it needs
    """

    measure: str
    label: str
    who: str
    value: Callable[[Table], float]


def curve(counts: I8, thresholds: F8) -> PRCurve:
    """The PR curve of summed counts (T, 4)."""
    return PRCurve.of_counts(thresholds, counts)


def image_f(table: Table) -> F8:
    """F of each image at each threshold, f8 (N, T)."""
    return PRCurve.of_counts(table.thresholds, table.counts).f


def measure(
    table: Table, name: str, ap_rule: str = "bsds", ods_rule: str = "interpolated"
) -> float:
    """ODS, OIS or AP of a table by the named rules."""
    if name == "ods" and ods_rule == "maximum":
        return _ods_maximum(table)
    if name == "ods":
        return best_point(curve(table.summed(), table.thresholds)).f
    if name == "ois":
        best = image_f(table).argmax(axis=1)
        total = table.counts[np.arange(len(best)), best].sum(axis=0)
        return float(f_measure(ratio(total[2], total[3]), ratio(total[0], total[1])))
    return _area(table, ap_rule)


def _ods_maximum(table: Table) -> float:
    return float(curve(table.summed(), table.thresholds).f.max())


def _ods_mean(table: Table) -> float:
    return float(image_f(table).mean(axis=0).max())


def _ods_mean_pr(table: Table) -> float:
    c = table.counts
    p, r = ratio(c[..., 2], c[..., 3]).mean(axis=0), ratio(c[..., 0], c[..., 1]).mean(axis=0)
    return float(f_measure(p, r).max())


def _ois_mean(table: Table) -> float:
    return float(image_f(table).max(axis=1).mean())


def _area(table: Table, rule: str) -> float:
    return float(area(PRCurve.of_counts(table.thresholds, table.summed(), table.operator), rule))


def _envelope(table: Table) -> float:
    one = curve(table.summed(), table.thresholds)
    best = [one.precision[one.recall >= level].max(initial=0.0) for level in RECALL_LEVELS]
    return float(np.sum(best) * 0.01)


def _step(table: Table) -> float:
    one = curve(table.summed(), table.thresholds)
    order = np.argsort(one.recall, kind="stable")
    return float(np.sum(np.diff(one.recall[order], prepend=0.0) * one.precision[order]))


def _trapezoid(table: Table) -> float:
    one = curve(table.summed(), table.thresholds)
    order = np.argsort(one.recall, kind="stable")
    p, r = one.precision[order], one.recall[order]
    return float(np.sum(np.diff(r) * (p[1:] + p[:-1]) / 2))


def _ap_mean(table: Table) -> float:
    return float(np.mean(area(PRCurve.of_counts(table.thresholds, table.counts, table.operator))))


_AP_WHO = {
    "bsds": "the BSDS500 and edges programs",
    "edter": "EDTER, UAED, MuGE, SAUGE",
    "endpoints": "plot-edge-pr-curves",
    "seism": "SEISM and multi-task learning (InvPT, ATRC)",
    "sbd": "the SBD programs, Area",
    "101-point": "the SBD programs, AP; COCO-style scripts",
}
READINGS: tuple[Reading, ...] = (
    Reading("ods", "ODS at a threshold, not interpolated", "SEISM, skeval", _ods_maximum),
    Reading("ods", "ODS as mean of the images' F", "home-made scripts", _ods_mean),
    Reading("ods", "ODS as F of the images' mean P and R", "home-made scripts", _ods_mean_pr),
    Reading("ois", "OIS as mean of the images' best F", "home-made scripts", _ois_mean),
    *(
        Reading("ap", f"AP rule {rule}", _AP_WHO[rule], lambda t, rule=rule: _area(t, rule))  # type: ignore[misc]
        for rule in AP_RULES
    ),
    Reading("ap", "AP of the envelope", "home-made scripts", _envelope),
    Reading("ap", "AP as a step sum", "scikit-learn's average precision", _step),
    Reading("ap", "AP as a trapezoid sum", "numpy's and scikit-learn's auc", _trapezoid),
    Reading("ap", "AP as mean of the images' AP", "home-made scripts", _ap_mean),
)
