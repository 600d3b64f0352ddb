"""Make tables of scores, one per metric with a row per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column, Metric
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.footers import (
    TableFooter,
    reading_line,
    summarize_reasons,
    table_footer,
    undefined_notes,
)
from bsdsbench.results.score_names import select
from bsdsbench.scores.counts import part_of, value_at
from bsdsbench.scores.curve import PRCurve, describe_late_starts
from bsdsbench.tables import table as model
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

METHOD, PART = model.Field("method", "Method"), model.Field("part", "Part")
_OF_MAPS = {"pred", "reading"}  # differences of what the predictions' files hold
GRID_END = "grid end"  # beside an ODS at the first or the last threshold
AT_GRID_END = (
    f"[{GRID_END}] no threshold is better than the first or the last one: this ODS says nothing "
    "about the method."
)
# A row: its name, its scores as in result.json, and the mark of each score that is not comparable
# with its column, by key
Row = tuple[str, Mapping[str, Any], Mapping[str, str]]


def _describe_images(runs: Sequence[Evaluation]) -> str:
    """Describe the images of runs in words.

    - "5 to 9 images" if the runs have different numbers of images
    - the name of the set if it is a known one
    - otherwise the number of images
    """
    sizes = sorted({len(run.records) for run in runs})
    if len(sizes) > 1:
        return f"{sizes[0]} to {sizes[-1]} images"
    if runs[0].signature.set.startswith("set:"):  # an unknown set
        return counted(sizes[0], "image")
    return runs[0].set_line


def with_left_out(
    tables: Sequence[Table], left_out: Mapping[str, Mapping[str, str]]
) -> list[Table]:
    """Return the tables with a last column of left-out images and reasons, for CSV files.

    `left_out` is {run: {image id: reason}}. A table without a column of runs is unchanged, and so
    are all tables if no run lacks an image.
    """
    if not any(left_out.values()):
        return list(tables)
    extended = []
    for table in tables:
        if METHOD in table.columns:
            name_column = table.columns.index(METHOD)
            rows = []
            for row in table.rows:
                reasons = left_out.get(str(row[name_column]), {})
                rows.append([*row, summarize_reasons(reasons)])
            columns = [*table.columns, model.Field("left_out", "Left out")]
            table = replace(table, columns=columns, rows=rows)
        extended.append(table)
    return extended


def curves_of(run: Evaluation, metric: str) -> dict[str, PRCurve]:
    """Return the precision-recall curves of a metric by part. The overall part is "".

    Parts are classes, or other parts of a score. Those without a curve are left out.
    """
    scorer = registry.get(metric)
    score = run.score(metric)
    paths: dict[str, tuple[str, ...]] = {"": ()}
    if run.records:
        paths |= scorer.parts(run.protocol, scorer.options_of(run.protocol))
    curves = {}
    for part, path in paths.items():
        curve = (part_of(score, path) or {}).get("curve")
        if isinstance(curve, PRCurve):
            curves[part] = curve
    return curves


def is_area(score: str) -> bool:
    """Return True for the key of an AP, which is an area under a curve."""
    return score.rpartition(".")[2] in ("ap", "ap_mean")


def late_starts_note(runs: Sequence[Evaluation], metric: str) -> str:
    """Return a note on curves that start above recall 0, if the AP rule counts 0 below the start.

    Curves are named by run, if there are several runs, and by part, such as a class. Returns "" if
    there are no such curves, or if the runs have different AP rules.
    """
    ap_rules = {registry.get(metric).ap_rule(run.protocol) for run in runs}
    if len(ap_rules) != 1:
        return ""
    curves = {}
    for run in runs:
        for part, curve in curves_of(run, metric).items():
            run_name = run.name if len(runs) > 1 else ""
            curves[", ".join(filter(None, (run_name, part)))] = curve
    return describe_late_starts(curves, ap_rules.pop())


# ---- what a detector takes -----------------------------------------------------------------------


def _add_times(table: Table, runs: Sequence[Evaluation]) -> Table:
    """Return the table with a last column: milliseconds per image of each run's detector.

    The first rows are those of `runs`; a further row has no time. The table is returned unchanged
    if no run has a time. Times are ranked only if all are of the same machine, and a note names the
    machines.
    """
    rows = [[*row, None] for row in table.rows]
    names_by_machine: dict[str, list[str]] = {}
    for run, row in zip(runs, rows, strict=False):
        speed = run.provenance.detector or {}
        milliseconds = speed.get("ms_per_image")
        if isinstance(milliseconds, int | float) and 0 <= milliseconds < math.inf:
            row[-1] = float(milliseconds)
            machine = str(speed.get("machine") or "machine not named")
            names_by_machine.setdefault(machine, []).append(run.name)
    if not names_by_machine:
        return table
    machines = list(names_by_machine)
    higher_is_better: bool | None = False
    if len(machines) > 1:
        machines = [f"{', '.join(names)} on {m}" for m, names in names_by_machine.items()]
        higher_is_better = None
    note = "ms per image: median time of the detector on one image, warm-up left out"
    column = model.Field("ms_per_image", "ms per image", "ms", ".1f", higher_is_better, paper=False)
    notes = [Note(f"{note}; {'; '.join(machines)}.", (column.key,)), *table.notes]
    return replace(table, columns=[*table.columns, column], rows=rows, notes=notes)


# ---- a row a run ---------------------------------------------------------------------------------


def score_tables(
    runs: Sequence[Evaluation],
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> list[Table]:
    """Return one table per metric: a row per run, then the extra rows that have scores of it.

    A single row is shown with all columns of the metric. Several rows are shown with the columns
    that serve a comparison; the parts of their scores, such as classes, are in a second table, in
    which the best run of each part is marked. Runs of `bsdsbench run` have a last column,
    milliseconds per image.

    Parameters
    ----------
    runs : sequence of Evaluation
        The runs.
    extra : sequence of tuple
        Further rows, such as published results: name, {metric: scores as in result.json}, and
        {key of a score: mark}. A score with a mark, even "", is never the best.
    notes : sequence of str
        Further lines below each table.
    columns : sequence of str or None
        The columns to show, by key or heading; "all" for every one. Default: the usual ones.

    Returns
    -------
    list of Table
        The tables, in the order of the metrics.

    Raises
    ------
    DataError
        If a name in `columns` is no score of any table.
    """
    n_rows = len(runs) + len(extra)
    contents = "scores" if n_rows == 1 else f"{n_rows} methods"
    if runs[0].records:
        contents += f" on {_describe_images(runs)}"
    contents += f", protocol {runs[0].protocol.name}"
    style = _Style(n_rows == 1, columns is not None, contents, table_footer(runs), notes)
    tables = []
    for name in dict.fromkeys(metric for run in runs for metric in run.metrics):
        metric = registry.get(name)
        with_metric = [run for run in runs if name in run.metrics]
        rows: list[Row] = [(run.name, run.score(name).to_mapping(), {}) for run in with_metric]
        for label, by_metric, marks in extra:
            if name in by_metric:
                rows.append((label, by_metric[name], marks))
        keys = list(dict.fromkeys(key for _, scores, _ in rows for key in scores))
        # `columns_of` adds the columns of further tolerances that a row has
        overall = _Rows(name, metric.title, metric.columns_of(keys), rows)
        tables.append(_add_times(_score_table(overall, metric, with_metric, style), with_metric))
        if parts := _part_rows(metric, with_metric, style.alone):
            title = f"{metric.title}, part by part"
            part_rows = list(parts.values())
            by_part = _Rows(f"{name}-parts", title, metric.part_columns, part_rows, list(parts))
            tables.append(_score_table(by_part, metric, with_metric, style))
    return select(tables, columns) if columns and "all" not in columns else tables


class _Style(NamedTuple):
    """The properties that all tables of one call of `score_tables` have in common.

    alone : True if the tables have a single row
    chosen : True if the user chose the columns
    contents : what the tables show, in words
    footer : the texts below each table
    notes : further lines below each table
    """

    alone: bool
    chosen: bool
    contents: str
    footer: TableFooter
    notes: Sequence[str]


class _Rows(NamedTuple):
    """The rows of one table, and the columns that the table may have.

    key, title : of the table
    columns : the columns of the metric that may be shown
    rows : the rows, with the scores of one metric or of a part of it
    names : in a table of parts, the (part, run) of each row; otherwise ()
    """

    key: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    names: Sequence[tuple[str, str]] = ()


def _choose_columns(
    content: _Rows, usual: Sequence[str] | None, style: _Style
) -> dict[str, Column]:
    """Return the columns to show, by their keys in the table, which have "_" for a ".".

    A column is shown if any row has its score and if the user chose columns. Without a choice, it
    must also fit the number of rows (`Column.shown`) and be in `usual`, the usual keys of the
    metric, if they are not None. An undefined score counts as one that the row has.
    """
    kinds = ("always", "own" if style.alone else "several")
    measured = {key for _, scores, _ in content.rows for key in scores}
    columns = {}
    for column in content.columns:
        is_usual = column.shown in kinds and (usual is None or column.key in usual)
        if column.key.partition(".")[0] in measured and (style.chosen or is_usual):
            columns[column.key.replace(".", "_")] = column
    return columns


def _score_notes(
    content: _Rows,
    columns: Mapping[str, Column],
    metric: Metric,
    runs: Sequence[Evaluation],
    style: _Style,
) -> list[str | Note]:
    """Return the notes below a table of scores, in this order.

    - runs whose curve starts late, below the columns of AP
    - the metric's further numbers of each row (`Metric.numbers`), except in a table of parts
    - the notes that all tables have in common
    - in a table of parts, what the mark of an ODS at the end of its thresholds means

    columns : key in the table -> column that is shown
    """
    notes = list[str | Note]()
    area_keys = tuple(key for key, column in columns.items() if is_area(column.key))
    if area_keys and (line := late_starts_note(runs, metric.name)):
        notes.append(Note(f"{line}.", area_keys, names_columns=True))
    if not content.names:
        for name, scores, _ in content.rows:
            present = [c.key for c in metric.numbers if c.key in scores]
            if present:
                numbers = ", ".join(f"{scores[key]:,.0f} {key}" for key in present)
                notes.append(f"{name}: {numbers}.")
    notes += [*style.footer["notes"], *style.notes]
    if content.names and any(marks for _, _, marks in content.rows):
        notes.append(AT_GRID_END)
    return notes


def _score_table(
    content: _Rows, metric: Metric, runs: Sequence[Evaluation], style: _Style
) -> Table:
    """Make the table of a metric's scores, or of the scores of its parts.

    runs : the runs that have the metric; in a table of overall scores, the first rows are theirs
    """
    usual = metric.usual(metric.options_of(runs[0].protocol))
    columns = _choose_columns(content, usual, style)
    filled = _fill_rows(columns, content.rows)
    labels = [METHOD]
    if content.names:
        labels = [PART] if style.alone else [PART, METHOD]
        for names, cells in zip(content.names, filled.cells, strict=True):
            cells[:1] = names[: len(labels)]
    n_explained = len(content.names) if content.names else len(runs)  # not published results
    row_notes = filled.partial_means
    for row, notes in enumerate(undefined_notes(columns, filled.scores[:n_explained])):
        row_notes[row] = [*notes, *row_notes[row]]
    fields = list(labels)
    for column in columns.values():
        digits = column.digits if style.alone else max(0, column.digits - 1)
        fields.append(table_column(column, digits))
    return Table(
        content.key,
        content.title,
        fields,
        filled.cells,
        caption=style.footer["caption"],
        reading=style.footer["reading"],
        signatures=style.footer["signatures"],
        notes=_score_notes(content, columns, metric, runs, style),
        row_notes=row_notes,
        sentence=f"{content.title}: {style.contents}",
        n_labels=len(labels),
        ranked_within=PART.key if content.names else "",
    )


def _part_rows(
    metric: Metric, runs: Sequence[Evaluation], alone: bool
) -> dict[tuple[str, str], Row]:
    """Return {(part, run): row} for the parts of a metric, such as classes, sorted by part.

    With several rows in the overall table (`alone` is False), parts are left out if they have no
    scores of their own, or if their scores are columns of the overall table. An ODS at the first or
    last threshold is marked.
    """
    overall_keys = {c.key for c in metric.columns}
    main_key = next((c.key for c in metric.part_columns if c.score), None)
    rows_of_part: dict[str, dict[tuple[str, str], Row]] = {}
    for run in runs:
        if not run.records:
            continue
        for part, path in metric.parts(run.protocol, metric.options_of(run.protocol)).items():
            scores = part_of(run.score(metric.name).to_mapping(), path)
            if scores is None:
                continue
            if not alone and (main_key is None or ".".join((*path, main_key)) in overall_keys):
                continue
            marks = {"ods": GRID_END} if scores.get("at_grid_end") else {}
            label = part if alone else f"{part}, {run.name}"
            rows_of_part.setdefault(part, {})[part, run.name] = (label, scores, marks)
    return dict(chain.from_iterable(rows.items() for rows in rows_of_part.values()))


class _FilledRows(NamedTuple):
    """The content of a table, a list entry per row.

    cells : the name of the row, then the cell of each column
    scores : key in the table -> score; None if it is undefined
    partial_means : notes on means that are over some images, classes or the like only
    """

    cells: list[list[Cell]]
    scores: list[dict[str, Any]]
    partial_means: list[list[Note]]


def _fill_rows(columns: Mapping[str, Column], rows: Sequence[Row]) -> _FilledRows:
    """Return the cells, scores and notes of a table.

    columns : key in the table -> column of the metric
    rows : (name, scores of the metric as in result.json, key of the metric -> mark)

    A score with a mark becomes an Estimate that is not comparable with its column. If a score is a
    mean over some images, classes or the like only, its row has "over": {key: {unit: (number in the
    mean, number of all)}}, and a note.
    """
    filled = _FilledRows([], [], [])
    for name, scores, marks in rows:
        values: dict[str, Any] = {}
        cells: list[Cell] = [name]
        notes: list[Note] = []
        for key, column in columns.items():
            score = value_at(scores, column.key)
            values[key] = score
            cell = score
            mark = marks.get(column.key)
            if mark is not None and score is not None:
                cell = Estimate(score, mark=f"[{mark}]" if mark else "", comparable=False)
            cells.append(cell)
            for unit, (n, n_all) in scores.get("over", {}).get(column.key, {}).items():
                line = f"means over {n:,} of {n_all:,} {unit} of {name}."
                notes.append(Note(line, (key,), names_columns=True))
        filled.cells.append(cells)
        filled.scores.append(values)
        filled.partial_means.append(notes)
    return filled


def table_column(column: Column, digits: int, prefix: str = "") -> model.Field:
    """Convert a metric's column to a column of a table, with `digits` decimals.

    The key in the table is the metric's key after `prefix`, with "_" for a ".". A column that is no
    score, such as a threshold, is not ranked.
    """
    return model.Field(
        prefix + column.key.replace(".", "_"),
        column.heading,
        column.short,
        f".{digits}f",
        not column.lower if column.score else None,
        paper=column.score,
    )


def at_threshold_of(run: Evaluation, other: Evaluation) -> list[Table]:
    """Return tables of precision, recall and F of a run at the ODS threshold of another run.

    There is a table with one row for each metric that has a curve in both runs. It also has the ODS
    of `run` and the threshold of this ODS. Raises DataError if protocols or kinds of maps differ,
    if the thresholds span different ranges, or if no metric has a curve in both runs.
    """
    only_alike = "a threshold holds for one protocol and kind of maps"
    for pair in pair_differences([other, run]):  # the images may differ
        difference = pair.difference
        is_essential = difference.of_protocol or difference.field in _OF_MAPS
        if is_essential and difference.severity is not Severity.IGNORED:
            raise DataError(f"{pair.line()}; {only_alike}")
    columns = [METHOD, model.Field("threshold", f"threshold of {other.name}", "threshold", ".3f")]
    columns += [model.Field(key, key.upper(), "", ".4f") for key in ("p", "r", "f", "ods")]
    columns.append(model.Field("ods_threshold", "ODS threshold", "threshold", ".3f"))
    text = f"P, R, F: at the ODS threshold of {other.name}; ODS: at the best threshold of this run."
    notes: list[str | Note] = [Note(text, ("p", "r", "f", "ods"))]
    if shared := {*run.image_ids} & {*other.image_ids}:
        notes.append(
            f"{len(shared)} images are also in {other.name}, so its threshold was not chosen "
            "independently."
        )
    tables = []
    for metric in run.with_curve:
        if metric not in other.with_curve:
            continue
        score = run.score(metric)
        other_score = other.score(metric)
        spans = ["{:g} to {:g}".format(*s.curve.thresholds[[0, -1]]) for s in (other_score, score)]
        if spans[0] != spans[1]:  # of segmentations, whose thresholds are their levels
            differing = f"{other.name}, {run.name}: thresholds from {' / '.join(spans)}"
            raise DataError(f"{differing}; {only_alike}")
        point = score.curve.at(other_score.ods.threshold)
        at_threshold = [point.threshold, point.precision, point.recall, point.f]
        table = Table(
            f"{metric}-at-threshold",
            f"{registry.get(metric).title}, at the threshold that was best on {other.name}",
            columns,
            [[run.name, *at_threshold, score.ods.f, score.ods.threshold]],
            notes=notes,
            reading=reading_line([run, other]),
            signatures=[f"Signature of {other.name}: {other.signature}"],
        )
        tables.append(table)
    if not tables:
        raise DataError(f"{other.name}: no metric with thresholds, expected one of {run.name}")
    return tables
