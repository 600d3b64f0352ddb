"""AP and ODS of a run by every rule in use, for each of its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.boundary import truth_maps, whole_image_counts
from bsdsbench.metrics.optional import CurveOfPixels
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import curves_of, reading_line
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best
from bsdsbench.tables.table import Cell, Field, Table

_RULES = [("AP", *rule) for rule in AP_RULES.items()]
_RULES += [("ODS", *rule) for rule in ODS_RULES.items()]


def with_whole_image(files: Sources, protocol: Protocol, grid: F8, matches: F8) -> PRCurve:
    """Return the curve of counts (T, 4) at thresholds (T,), and of all pixels at threshold 0."""
    truths = (files.truth(image_id, protocol) for image_id in files.pairs)
    first = sum(whole_image_counts(truth_maps(t, protocol), t.parts.get("valid")) for t in truths)
    return PRCurve.of_counts(np.r_[0.0, grid], np.vstack([first, matches]))


def rules_tables(runs: Sequence[Evaluation], gt_dir: StrPath | None = None) -> list[Table]:
    """Return a table for each metric with curves: a row for each rule of AP and ODS, and each part
    of the metric that has a curve, a column for each run.

    None stands where a rule cannot be applied. Of a run without counts only the curve is read. The
    row of threshold 0 comes from the run's counts, or from its ground truth (`gt_dir`, or where the
    run says). Raises DataError for runs without any curve.
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
        labels += [Field("part", "Curve")] * any(parts)
        columns = [*labels, *(Field(f"run_{k}", r.name, "", ".4f") for k, r in enumerate(runs, 1))]
        rows: list[list[Cell]] = []
        for score, rule, words in _RULES:
            for part in parts:
                cells = [of_run.get(part, {}).get((score, rule)) for of_run in by_run]
                rows.append([score, rule, *[part] * any(parts), *cells, words])
        columns.append(Field("what", "What it is"))
        alone = metric in registry.DEFAULT_METRICS
        key, title = ("rules", "Rules") if alone else (f"rules-{metric}", f"Rules, {metric}")
        reading, n_labels = reading_line(runs), len(labels)
        tables.append(Table(key, title, columns, rows, reading=reading, n_labels=n_labels))
    if not tables:
        raise DataError(f"{', '.join(run.name for run in runs)}: no curve, expected one to read")
    return tables


def _by_rules(
    run: Evaluation, metric: str, part: str, curve: PRCurve, gt_dir: StrPath | None
) -> Mapping[tuple[str, str], float | None]:
    """Return the number of a curve by (score, rule), None where the rule cannot be applied."""
    whole, scorer, is_boundary = curve, registry.get(metric), metric in registry.DEFAULT_METRICS
    if not run.records:
        curve = whole = replace(curve, whole_image=bool(curve.thresholds[0] == 0))
    elif not part:
        if isinstance(scorer, CurveOfPixels):
            whole = scorer.with_whole_image(curve, run.stack(metric))
        if is_boundary and not whole.whole_image and curve.thresholds[-1] <= 1:
            matches = run.stack(metric)["matches"].sum(axis=0)
            with suppress(DataError):  # the ground truth is not there
                files = find_sources(run, gt_dir=gt_dir, metric=metric)
                whole = with_whole_image(files, run.protocol, curve.thresholds, matches)
    steps = curve if is_boundary else whole  # of boundaries the measured rows
    numbers: dict[tuple[str, str], float | None] = {}
    for rule in AP_RULES:
        read = {"edter": whole, "step": steps}.get(rule, curve)
        value = float(area(read, rule))
        numbers["AP", rule] = None if np.isnan(value) else value
    return numbers | {("ODS", rule): float(best(curve, rule).f) for rule in ODS_RULES}
