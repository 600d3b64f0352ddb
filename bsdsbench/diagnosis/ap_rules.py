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
from bsdsbench.results.score_tables import curves_of, reading_line
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best
from bsdsbench.tables.table import Cell, Field, Table

_RULES = [("AP", *rule) for rule in AP_RULES.items()]
_RULES += [("ODS", *rule) for rule in ODS_RULES.items()]


def add_whole_image(files: Sources, protocol: Protocol, grid: F8, matches: F8) -> PRCurve:
    """Build a run's curve with a row for threshold 0, at which every pixel is predicted.

    The counts of this row come from the ground-truth files, which are all read by the protocol.
    `matches` (T, 4) are the counts at the thresholds `grid` (T,), which are above 0, summed over
    the images.
    """
    truths = (files.truth(image_id, protocol) for image_id in files.pairs)
    first = sum(whole_image_counts(truth_maps(t, protocol), t.parts.get("valid")) for t in truths)
    return PRCurve.of_counts(np.r_[0.0, grid], np.vstack([first, matches]))


def build_rules_tables(runs: Sequence[Evaluation], gt_dir: StrPath | None = None) -> list[Table]:
    """Build a table of AP and ODS by every rule in use, for each metric with curves.

    There is one row for each rule and one column for each run. If parts of a metric (such as
    classes) have curves too, there is one row for each rule and part. A cell is None if the run has
    no such curve, or if the rule cannot be applied to it.

    Some rules need the row of threshold 0. It comes from the run's counts, or from its ground truth
    in `gt_dir`, by default the folder that the run names; a run without counts has its curve only.

    Raises DataError if no run has a curve.
    """
    tables = []
    for metric in dict.fromkeys(metric for run in runs for metric in run.metrics):
        values_of_runs = []  # of each run: part -> {(score, rule): value}
        for run in runs:
            curves = curves_of(run, metric) if metric in run.metrics else {}
            values_of_runs.append(
                {part: _apply_rules(run, metric, part, c, gt_dir) for part, c in curves.items()}
            )
        parts = dict.fromkeys(part for values in values_of_runs for part in values)
        if not parts:
            continue
        labels = [Field("score", "Score"), Field("rule", "Rule")]
        if any(parts):  # beside the curve of the whole metric, ""
            labels.append(Field("part", "Curve"))
        run_columns = [Field(f"run_{k}", r.name, "", ".4f") for k, r in enumerate(runs, 1)]
        rows: list[list[Cell]] = []
        for score, rule, description in _RULES:
            for part in parts:
                cells = [values.get(part, {}).get((score, rule)) for values in values_of_runs]
                row_labels = (score, rule, part)[: len(labels)]
                rows.append([*row_labels, *cells, description])
        is_default = metric in registry.DEFAULT_METRICS
        table = Table(
            "rules" if is_default else f"rules-{metric}",
            "Rules" if is_default else f"Rules, {metric}",
            [*labels, *run_columns, Field("what", "What it is")],
            rows,
            reading=reading_line(runs),
            n_labels=len(labels),
        )
        tables.append(table)
    if not tables:
        raise DataError(f"{', '.join(run.name for run in runs)}: no curve, expected one to read")
    return tables


def _apply_rules(
    run: Evaluation, metric: str, part: str, curve: PRCurve, gt_dir: StrPath | None
) -> Mapping[tuple[str, str], float | None]:
    """Compute AP and ODS of one curve by every rule: {("AP" or "ODS", rule): value}.

    A value is None if the rule cannot be applied. `part` is "" for the curve of the whole metric.

    The rule "edter" reads the curve with the row of threshold 0, if this can be had: from the curve
    itself, from the run's counts or, for boundaries, from the ground truth (`gt_dir`, or the folder
    that the run names). The rule "step" reads that curve too, but for boundaries the measured rows
    only. All other rules read the measured rows.
    """
    is_boundary = metric in registry.DEFAULT_METRICS
    whole = curve  # with the row of threshold 0
    if not run.records:
        curve = whole = replace(curve, whole_image=bool(curve.thresholds[0] == 0))
    elif not part:
        whole = whole_curve(registry.get(metric), curve, run.stack(metric))
        if is_boundary and not whole.whole_image and curve.thresholds[-1] <= 1:
            matches = run.stack(metric)["matches"].sum(axis=0)
            with suppress(DataError):  # the ground truth is not there
                files = find_sources(run, gt_dir=gt_dir, metric=metric)
                whole = add_whole_image(files, run.protocol, curve.thresholds, matches)
    curve_of_rule = {"edter": whole, "step": curve if is_boundary else whole}
    numbers: dict[tuple[str, str], float | None] = {}
    for rule in AP_RULES:
        ap = float(area(curve_of_rule.get(rule, curve), rule))
        numbers["AP", rule] = None if np.isnan(ap) else ap
    for rule in ODS_RULES:
        numbers["ODS", rule] = float(best(curve, rule).f)
    return numbers
