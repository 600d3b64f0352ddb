"""Tables of AP and ODS by every rule in use, for each curve of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.boundary import truth_maps, whole_image_counts
from bsdsbench.metrics.optional import whole_curve
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.footers import reading_line
from bsdsbench.results.score_tables import curves_of
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best
from bsdsbench.tables.table import Cell, Field, Table

_RULES = [("AP", *rule) for rule in AP_RULES.items()]
_RULES += [("ODS", *rule) for rule in ODS_RULES.items()]


def with_whole_image(files: Sources, protocol: Protocol, grid: F8, matches: F8) -> PRCurve:
    """Build the curve of counts (T, 4) at the thresholds `grid` (T,), with a row for threshold 0.

    At threshold 0 every pixel is on; its counts come from the ground truth files.
    """
    truths = (files.truth(image_id, protocol) for image_id in files.pairs)
    first = sum(whole_image_counts(truth_maps(t, protocol), t.parts.get("valid")) for t in truths)
    return PRCurve.of_counts(np.r_[0.0, grid], np.vstack([first, matches]))


def rules_tables(runs: Sequence[Evaluation], gt_dir: StrPath | None = None) -> list[Table]:
    """Build a table for each metric with curves: one column for each run, one row for each rule.

    If parts of a metric have curves, there is one row for each rule and part. A cell is None if the
    rule cannot be applied. A run without counts only has its curve. The row of threshold 0 comes
    from the run's counts, or from its ground truth (`gt_dir`, by default the folder that the run
    names). Raises DataError if no run has a curve.
    """
    tables = []
    for metric in dict.fromkeys(metric for run in runs for metric in run.metrics):
        by_run = []
        for run in runs:
            curves = curves_of(run, metric) if metric in run.metrics else {}
            values = {part: _by_rules(run, metric, part, curves[part], gt_dir) for part in curves}
            by_run.append(values)
        parts = dict.fromkeys(part for values in by_run for part in values)
        if not parts:
            continue
        labels = [Field("score", "Score"), Field("rule", "Rule")]
        if any(parts):
            labels.append(Field("part", "Curve"))
        columns = [*labels, *(Field(f"run_{k}", r.name, "", ".4f") for k, r in enumerate(runs, 1))]
        rows: list[list[Cell]] = []
        for score, rule, description in _RULES:
            for part in parts:
                cells = [values.get(part, {}).get((score, rule)) for values in by_run]
                row_labels = (score, rule, part)[: len(labels)]
                rows.append([*row_labels, *cells, description])
        columns.append(Field("what", "What it is"))
        is_default = metric in registry.DEFAULT_METRICS
        key, title = ("rules", "Rules") if is_default else (f"rules-{metric}", f"Rules, {metric}")
        reading, n_labels = reading_line(runs), len(labels)
        tables.append(Table(key, title, columns, rows, reading=reading, n_labels=n_labels))
    if not tables:
        raise DataError(f"{', '.join(run.name for run in runs)}: no curve, expected one to read")
    return tables


def _by_rules(
    run: Evaluation, metric: str, part: str, curve: PRCurve, gt_dir: StrPath | None
) -> Mapping[tuple[str, str], float | None]:
    """Compute (score, rule) -> value for one curve, None if the rule cannot be applied."""
    whole, is_boundary = curve, metric in registry.DEFAULT_METRICS
    if not run.records:
        curve = whole = replace(curve, whole_image=bool(curve.thresholds[0] == 0))
    elif not part:
        whole = whole_curve(registry.get(metric), curve, run.stack(metric))
        if is_boundary and not whole.whole_image and curve.thresholds[-1] <= 1:
            matches = run.stack(metric)["matches"].sum(axis=0)
            with suppress(DataError):  # the ground truth is not there
                files = find_sources(run, gt_dir=gt_dir, metric=metric)
                whole = with_whole_image(files, run.protocol, curve.thresholds, matches)
    steps = curve if is_boundary else whole  # boundaries use the measured rows only
    numbers: dict[tuple[str, str], float | None] = {}
    for rule in AP_RULES:
        read = {"edter": whole, "step": steps}.get(rule, curve)
        value = float(area(read, rule))
        numbers["AP", rule] = None if np.isnan(value) else value
    return numbers | {("ODS", rule): float(best(curve, rule).f) for rule in ODS_RULES}
