"""AP and ODS of a run by every rule in use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.metrics.boundary import truth_maps, whole_image_counts
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import find_sources
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best_point, four_counts
from bsdsbench.scores.ratios import or_none
from bsdsbench.tables.table import Field, Table

METRIC = registry.DEFAULT[0]
Values = dict[str, dict[str, float | None]]


def all_rules(run: Any, gt_dir: str | os.PathLike[str] | None = None) -> Values:
    """{"ap": {rule: value}, "ods": {rule: value}} of a run; None where a rule cannot be applied.

    Of a run without counts only the curve is read. The row of threshold 0 comes from the run's
    counts, or from its ground truth (`gt_dir`, or where the run says). Raises DataError for a run
    without a curve.
    """
    if isinstance(run, Evaluation):
        images = [counts for _, counts in counts_in_order(run.records, METRIC)]
        thresholds = images[0].thresholds
        four = np.sum([four_counts(c) for c in images], axis=0)
        curve = PRCurve.of_counts(thresholds, four, run.protocol.operator)
        whole = None if curve.whole_image else _with_whole_image(run, gt_dir, thresholds, four)
    else:
        found, whole = run.score(METRIC).curve, None
        curve = replace(found, whole_image=bool(found.thresholds[0] == 0))
    ap = {}
    for rule in AP_RULES:
        drawn = whole if whole and rule == "edter" else curve
        ap[rule] = or_none(float(area(drawn, rule)))
    return {"ap": ap, "ods": {rule: best_point(curve, rule).f for rule in ODS_RULES}}


def rules_table(runs: Sequence[Any], gt_dir: str | os.PathLike[str] | None = None) -> Table:
    """A row for each rule of AP and ODS, a column for each run. Arguments as of `all_rules`."""
    found = [all_rules(run, gt_dir) for run in runs]
    columns = [Field("score", "Score"), Field("rule", "Rule")]
    columns += [Field(f"run_{k + 1}", run.name, "", ".4f") for k, run in enumerate(runs)]
    rows = [
        [score, rule, *(values[score.lower()][rule] for values in found), what]
        for score, rules in (("AP", AP_RULES), ("ODS", ODS_RULES))
        for rule, what in rules.items()
    ]
    return Table("rules", "Rules", [*columns, Field("what", "What it is")], rows, n_labels=2)


def _with_whole_image(run: Evaluation, gt_dir: Any, thresholds: Any, four: Any) -> PRCurve | None:
    """The curve with the row of threshold 0, from the ground truth; None if it is not found."""
    if thresholds[-1] > 1:  # segmentations have no such row
        return None
    try:
        sources = find_sources(run, gt_dir=gt_dir, metric=METRIC)
        truths = (sources.truth(i, run.protocol) for i in sources.pairs)
        first = np.sum([whole_image_counts(truth_maps(gt, run.protocol)) for gt in truths], axis=0)
    except DataError:
        return None
    return PRCurve.of_counts(np.r_[0.0, thresholds], np.vstack([first, four]))
