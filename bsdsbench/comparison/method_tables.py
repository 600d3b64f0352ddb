"""Make the tables of methods: means over runs with their spread, intervals and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.comparison_tables import (
    difference_cells,
    difference_fields,
    heading,
    left_out_of,
    score_field,
)
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, runs_of
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, flat_scores, usual_scores
from bsdsbench.results.score_tables import METHOD, Row, table_footer
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

if TYPE_CHECKING:
    from bsdsbench.comparison.methods import MethodComparison


def _scores_of_methods(methods: Sequence[Method]) -> dict[tuple[str, str], ScoresOfRuns]:
    """Return the scores of the runs by (method, METRIC.SCORE), for scores that all runs have.

    Raises DataError if the runs of a method are not comparable.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))
    flat = {method.name: [flat_scores(run) for run in method.runs] for method in methods}
    all_runs = [scores for runs in flat.values() for scores in runs]
    names = [score for score in all_runs[0] if all(score in scores for scores in all_runs)]
    return {
        (method, score): ScoresOfRuns(tuple(scores[score] for scores in runs))
        for method, runs in flat.items()
        for score in names
    }


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of the means of scores over the runs of each method, without a comparison.

    spread : the spread that is shown beside a mean
    columns : the scores to show, such as "ods", or "all"; None for the usual ones
    extra : further rows, such as published results: name, {metric: scores}, {key: mark}
    notes : further lines below the table

    Raises DataError if a score is unknown, or if the runs of a method are not comparable.
    """
    of_runs = _scores_of_methods(methods)
    known = list(dict.fromkeys(score for _, score in of_runs))
    first_run = methods[0].runs[0]
    shown = chosen_scores(columns, known) if columns else usual_scores(first_run, known)
    rows = _mean_rows(methods, shown, of_runs, spread)
    for name, by_metric, marks in extra:
        row: list[Cell] = [name]
        for score in shown:
            metric, _, key = score.partition(".")
            cell = value_at(by_metric.get(metric, {}), key)
            mark = marks.get(key)
            if mark is not None and cell is not None:
                cell = Estimate(cell, mark=f"[{mark}]" if mark else "", comparable=False)
            row.append(cell)
        rows.append(row)
    footer: Any = table_footer(runs_of(methods))
    footer["notes"] = [spread.note, *footer["notes"], *notes]
    footer["sentence"] = f"Scores on {counted(len(first_run.records), 'image')}: {spread.words}"
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **footer)


def _mean_rows(
    methods: Sequence[Method],
    scores: Sequence[str],
    of_runs: Mapping[tuple[str, str], ScoresOfRuns],
    spread: Spread,
) -> list[list[Cell]]:
    """Return a row for each method: its name, and the mean of each score with its spread.

    `of_runs` has the scores of the runs by (method, score).
    """
    rows: list[list[Cell]] = []
    for method in methods:
        means = [of_runs[method.name, score].cell(spread) for score in scores]
        rows.append([method.name, *means])
    return rows


def method_tables(compared: MethodComparison, spread: Spread) -> list[Table]:
    """Return the tables of means, of their intervals and, for several methods, of differences."""
    scores = compared.scores_shown
    images = counted(compared.n_images, "image")
    notes: list[str | Note] = [*left_out_of(compared)]
    notes += [f"{line.removesuffix('.')}." for line in compared.notes]
    fields = [score_field(score) for score in scores]
    means = Table(
        "methods",
        "Scores of methods",
        [METHOD, *fields],
        _mean_rows(compared.methods, scores, compared.of_runs, spread),
        notes=[spread.note, *notes],
        sentence=f"Scores on {images}: {spread.words}",
    )
    interval_rows: list[list[Cell]] = []
    for method in compared.methods:
        row: list[Cell] = [method.name]
        for score in scores:
            interval = compared.interval_of(method.name, score)
            row.append(Estimate(interval.value, interval.low, interval.high))
        interval_rows.append(row)
    unranked = [replace(field, higher_is_better=None) for field in fields]
    title = f"Means over runs with {compared.percent} intervals"
    tables = [
        means,
        Table("intervals", title, [METHOD, *unranked], interval_rows, notes=notes, aside=True),
    ]
    if len(compared.methods) > 1:
        rows: list[list[Cell]] = []
        for d in compared.differences:
            if d.score in scores:
                rows.append([d.a, d.b, heading(d.score), *difference_cells(d, compared.level)])
        columns = difference_fields(compared.percent)
        tables.append(Table("differences", "Differences", columns, rows, notes=notes, n_labels=3))
    clusters = ""
    if compared.cluster:
        clusters = f" in {compared.n_clusters} clusters ({compared.cluster})"
    caption = (
        f"{images}{clusters}, {compared.n_boot} bootstrap samples of images and runs, "
        f"seed {compared.seed}. Protocol: {compared.protocol}"
    )
    return [replace(table, caption=caption, reading=compared.reading) for table in tables]
