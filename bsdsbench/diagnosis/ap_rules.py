"""AP and ODS of a run by every rule in use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from bsdsbench.errors import DataError
from bsdsbench.images import valid_of
from bsdsbench.metrics import registry
from bsdsbench.metrics.boundary import truth_maps, whole_image_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.run import Sources, find_sources
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best, four_counts
from bsdsbench.tables.table import Field, Table

METRIC = registry.DEFAULT[0]
RULES = [("AP", *rule) for rule in AP_RULES.items()]
RULES += [("ODS", *rule) for rule in ODS_RULES.items()]


def with_whole_image(files: Sources, protocol: Protocol, grid: Any, four: Any) -> PRCurve:
    """The curve of counts (T, 4) at thresholds (T,), and of all pixels at threshold 0."""
    truths = (files.truth(image_id, protocol) for image_id in files.pairs)
    first = sum(np.array(whole_image_counts(truth_maps(t, protocol), valid_of(t))) for t in truths)
    return PRCurve.of_counts(np.r_[0.0, grid], np.vstack([first, four]))


def rules_table(runs: Sequence[Evaluation], gt_dir: StrPath | None = None) -> Table:
    """A row for each rule of AP and ODS, a column for each run; None where it cannot be applied.

    Of a run without counts only the curve is read. The row of threshold 0 comes from the run's
    counts, or from its ground truth (`gt_dir`, or where the run says). Raises DataError for a run
    without a curve.
    """
    columns, found = [Field("score", "Score"), Field("rule", "Rule")], []
    for k, run in enumerate(runs, 1):
        curve = whole = run.score(METRIC).curve
        if not run.records:
            curve = whole = replace(curve, whole_image=bool(curve.thresholds[0] == 0))
        elif not curve.whole_image and curve.thresholds[-1] <= 1:  # segmentations: no such row
            four = four_counts(run.stack(METRIC)).sum(axis=0)
            with suppress(DataError):  # the ground truth is not there
                files = find_sources(run, gt_dir=gt_dir, metric=METRIC)
                whole = with_whole_image(files, run.protocol, curve.thresholds, four)
        areas = [area(whole if rule == "edter" else curve, rule) for rule in AP_RULES]
        best_f = [best(curve, rule).f for rule in ODS_RULES]
        found.append([*[None if v != v else v for v in map(float, areas)], *best_f])
        columns.append(Field(f"run_{k}", run.name, "", ".4f"))
    columns.append(Field("what", "What it is"))
    cells = [[*rule[:2], *values, rule[2]] for rule, *values in zip(RULES, *found, strict=True)]
    return Table("rules", "Rules", columns, cells, n_labels=2)
