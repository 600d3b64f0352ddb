"""The comparison of runs in a report: a verdict in sentences, and intervals in tables of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.scores.ratios import short
from bsdsbench.tables.table import Cell, Note, Table

_MAX_COMPARED = 4  # how many runs the verdict compares with the best run


def verdict_lines(comparison: Comparison) -> list[str]:
    """Say in sentences which run is best, by the first score that the comparison shows.

    The next _MAX_COMPARED runs are compared with the best run, with a line for each. If there are
    more runs, a last line gives their number. Runs with an undefined score are left out.
    """
    score = comparison.scores_shown[0]
    has_one_metric = len({s.partition(".")[0] for s in comparison.scores}) == 1
    title = heading(score, score if has_one_metric else "")
    ranked = [i for i in comparison.intervals if i.score == score and not np.isnan(i.value)]
    ranked.sort(key=lambda i: i.value, reverse=not lower_is_better(score))
    if not ranked:
        return []
    best, *worse = ranked
    best_text = f"{title} {best.value:.3f}"
    if not np.isnan(best.low):
        best_text += f" ({comparison.percent} interval {best.low:.3f} to {best.high:.3f})"
    if not worse:
        return [f"{best.run}: {best_text}."]
    lines = [f"{best.run} is best: {best_text}."]
    for interval in worse[:_MAX_COMPARED]:
        lines.append(_difference_line(comparison, best.run, interval.run, score))
    if len(worse) > _MAX_COMPARED:
        lines.append(f"{len(worse) - _MAX_COMPARED} more are lower.")
    return lines


def _difference_line(comparison: Comparison, best: str, other: str, score: str) -> str:
    """Say in a sentence how much better the run `best` is than the run `other`.

    The difference is printed as a positive number even if lower scores are better. Its interval is
    printed from the end nearer to 0. This end is printed as a negative number if 0 lies in the
    interval.
    """
    d = comparison.difference_of(best, other, score)
    low, high = sorted((abs(d.low), abs(d.high)))
    contains_zero = (d.low < 0) != (d.high < 0)
    span = f"{-low if contains_zero else low:.3f} to {high:.3f}"
    p = "p < 0.001" if d.p_holm < 0.001 else f"p = {short(d.p_holm)}"
    basis = f"{comparison.percent} interval {span}, {p} after Holm's correction"
    if np.isnan(d.p_holm):
        basis = "no p-value"
        conclusion = "it is unknown whether this is real"
    elif d.significant(comparison.level):
        conclusion = "this is real"
    else:
        conclusion = "this may be due to chance"
    return f"{abs(d.value):.3f} better than {other} ({basis}): {conclusion}."


def merge_intervals(scores: Sequence[Table], compared: Sequence[Table]) -> list[Table]:
    """Insert the confidence intervals of a comparison into tables of scores.

    scores : tables with the key METRIC (a row per run) or METRIC-parts (a row per class, or
        whatever else the metric scores separately)
    compared : the tables of the comparison. The table "scores" has the intervals for all METRIC
        tables, in columns METRIC_COLUMN. The table METRIC-parts has those for the table with the
        same key

    Returns the tables of scores with intervals, then the remaining tables of the comparison. The
    notes of "scores" are added to the last table that got intervals from it.
    """
    compared_by_key = {table.key: table for table in compared}
    merged = list[Table]()
    last_changed = None  # index of the last table with intervals from "scores"
    for table in scores:
        if table.key.endswith("-parts") and table.key in compared_by_key:
            intervals = compared_by_key.pop(table.key)
            notes = [*table.notes, *(note for note in intervals.notes if isinstance(note, str))]
            rows = _rows_with_intervals(table, intervals)
            merged.append(replace(table, rows=rows, notes=list(dict.fromkeys(notes))))
        elif "scores" in compared_by_key and not table.key.endswith("-parts"):
            rows = _rows_with_intervals(table, compared_by_key["scores"], f"{table.key}_")
            if rows != [list(row) for row in table.rows]:
                last_changed = len(merged)
            merged.append(replace(table, rows=rows))
        else:
            merged.append(table)
    if last_changed is not None:
        intervals = compared_by_key.pop("scores")
        merged[last_changed] = _add_interval_notes(merged[last_changed], intervals)
    return [*merged, *compared_by_key.values()]


def _add_interval_notes(table: Table, intervals: Table) -> Table:
    """Return a table of scores, with the sentence and the notes of the table "scores" added.

    A note can be about columns, which are called METRIC_COLUMN in `intervals` and COLUMN in
    `table`. If `table` has none of these columns, the note is left out.

    intervals : the table "scores" of a comparison
    """
    keys = {field.key for field in table.columns}
    notes = [*table.notes, f"{intervals.sentence}."]
    for note in intervals.notes:
        if isinstance(note, str):
            notes.append(note)
            continue
        columns = tuple(key.removeprefix(f"{table.key}_") for key in note.columns)
        if not keys.isdisjoint(columns):
            notes.append(Note(note.text, columns, note.names_columns, note.needed))
    return replace(table, notes=list(dict.fromkeys(notes)))


def _rows_with_intervals(table: Table, intervals: Table, prefix: str = "") -> list[list[Cell]]:
    """Return the rows of `table`, with cells replaced by the corresponding cells of `intervals`.

    Two cells correspond if the labels of their rows (the first `table.n_labels` cells) are equal,
    and their columns are KEY in `table` and `prefix` + KEY in `intervals`. Cells without a
    corresponding one stay as they are.
    """
    n_labels = table.n_labels
    interval_keys = [field.key for field in intervals.columns]
    cells = dict[tuple[Cell, ...], Cell]()  # (*labels, key) -> cell
    for row in intervals.rows:
        for key, cell in zip(interval_keys, row, strict=True):
            cells[(*row[:n_labels], key)] = cell
    keys = [prefix + field.key for field in table.columns]
    rows = []
    for row in table.rows:
        labels = row[:n_labels]
        rows.append([cells.get((*labels, k), cell) for k, cell in zip(keys, row, strict=True)])
    return rows
