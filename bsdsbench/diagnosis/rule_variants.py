"""Scores that existing counts give under other rules; no image is counted again.

A table is i8 (N, T, 4): per image and threshold matched_gt, total_gt, matched_pred, total_pred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bsdsbench.curves.areas import largest_beyond
from bsdsbench.protocol.fields import HOME_MADE
from bsdsbench.scores.curve import AP_RULES, RECALL_LEVELS, PRCurve, area, best_point
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

    def curve(self) -> PRCurve:
        """The PR curve of the sum of the images."""
        return PRCurve.of_counts(self.thresholds, self.counts.sum(axis=0), self.operator)

    def image_curves(self) -> PRCurve:
        """The curve of each image, a stack."""
        return PRCurve.of_counts(self.thresholds, self.counts, self.operator)


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


def measure(
    table: Table, name: str, ap_rule: str = "bsds", ods_rule: str = "interpolated"
) -> float:
    """ODS, OIS or AP of a table by the named rules."""
    if name == "ods":
        return best_point(table.curve(), ods_rule).f
    if name == "ois":
        best = table.image_curves().f.argmax(axis=1)
        gt, all_gt, pred, all_pred = table.counts[np.arange(len(best)), best].sum(axis=0)
        return float(f_measure(ratio(pred, all_pred), ratio(gt, all_gt)))
    return float(area(table.curve(), ap_rule))


def _ods_mean_pr(table: Table) -> float:
    images = table.image_curves()
    return float(f_measure(images.precision.mean(axis=0), images.recall.mean(axis=0)).max())


def _rising(table: Table) -> tuple[F8, F8]:
    """Precision and recall, recall not falling."""
    curve = table.curve()
    order = np.argsort(curve.recall, kind="stable")
    return curve.precision[order], curve.recall[order]


def _envelope(table: Table) -> float:
    return float(np.sum(largest_beyond(*_rising(table), RECALL_LEVELS)) * 0.01)


def _step(table: Table) -> float:
    p, r = _rising(table)
    return float(np.sum(np.diff(r, prepend=0.0) * p))


def _trapezoid(table: Table) -> float:
    p, r = _rising(table)
    return float(np.sum(np.diff(r) * (p[1:] + p[:-1]) / 2))


_AP_WHO = {
    "bsds": "the BSDS500 and edges programs",
    "edter": "EDTER, UAED, MuGE, SAUGE",
    "endpoints": "plot-edge-pr-curves",
    "seism": "SEISM and multi-task learning (InvPT, ATRC)",
    "sbd": "the SBD programs, Area",
    "101-point": "the SBD programs, AP; COCO-style scripts",
}
READINGS: tuple[Reading, ...] = (
    Reading(
        "ods",
        "ODS at a threshold, not interpolated",
        "SEISM, skeval",
        lambda t: measure(t, "ods", ods_rule="maximum"),
    ),
    Reading(
        "ods",
        "ODS as mean of the images' F",
        HOME_MADE,
        lambda t: float(t.image_curves().f.mean(axis=0).max()),
    ),
    Reading("ods", "ODS as F of the images' mean P and R", HOME_MADE, _ods_mean_pr),
    Reading(
        "ois",
        "OIS as mean of the images' best F",
        HOME_MADE,
        lambda t: float(t.image_curves().f.max(axis=1).mean()),
    ),
    *(
        Reading("ap", f"AP rule {rule}", _AP_WHO[rule], partial(measure, name="ap", ap_rule=rule))
        for rule in AP_RULES
    ),
    Reading("ap", "AP of the envelope", HOME_MADE, _envelope),
    Reading("ap", "AP as a step sum", "scikit-learn's average precision", _step),
    Reading("ap", "AP as a trapezoid sum", "numpy's and scikit-learn's auc", _trapezoid),
    Reading(
        "ap",
        "AP as mean of the images' AP",
        HOME_MADE,
        lambda t: float(area(t.image_curves()).mean()),
    ),
)
