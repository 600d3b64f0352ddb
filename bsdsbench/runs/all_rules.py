"""AP and ODS of a run by every rule in use."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_by_id
from bsdsbench.metrics.boundary_maps import truth_maps, whole_image_counts
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import find_sources
from bsdsbench.scores.ap_rules import AP_RULES, ODS_RULES, Rows, area, rows_of_counts
from bsdsbench.scores.precision_recall import best_point, curve_of, four_counts

METRIC = registry.DEFAULT[0]
Values = dict[str, dict[str, float | None]]


def all_rules(run: Any, gt_dir: str | os.PathLike[str] | None = None) -> Values:
    """{"ap": {rule: value}, "ods": {rule: value}} of a run; None where a rule cannot be applied.

    Of a run without counts only the curve is read. The row of threshold 0 comes from the run's
    counts, or from its ground truth (`gt_dir`, or where the run says). Raises DataError for a run
    without a curve.
    """
    if isinstance(run, Evaluation):
        counts = counts_by_id(run.records, METRIC)
        thresholds = next(iter(counts.values())).thresholds
        four = np.sum([four_counts(c) for c in counts.values()], axis=0)
        rows = rows_of_counts(thresholds, four, run.protocol.operator)
        curve = curve_of(thresholds, four)
        whole = None if rows.whole_image else _with_whole_image(run, gt_dir, thresholds, four)
    else:
        curve, whole = run.score(METRIC).curve, None
        rows = Rows(curve.recall, curve.precision, whole_image=bool(curve.thresholds[0] == 0))
    ap = {
        rule: _known(area(whole if whole and rule == "edter" else rows, rule)) for rule in AP_RULES
    }
    best = {"interpolated": best_point(curve).f, "maximum": float(curve.f.max())}
    return {"ap": ap, "ods": {rule: best[rule] for rule in ODS_RULES}}


def _with_whole_image(run: Evaluation, gt_dir: Any, thresholds: Any, four: Any) -> Rows | None:
    """The rows with that of threshold 0, from the ground truth; None if it is not to be found."""
    if thresholds[-1] > 1:  # segmentations have no such row
        return None
    try:
        sources = find_sources(run, gt_dir=gt_dir, metric=METRIC)
        truths = (sources.truth(i, run.protocol) for i in sources.pairs)
        first = np.sum([whole_image_counts(truth_maps(gt, run.protocol)) for gt in truths], axis=0)
    except DataError:
        return None
    return rows_of_counts(np.r_[0.0, thresholds], np.vstack([first, four]))


def _known(value: float) -> float | None:
    return None if value != value else value
