"""Scores as tables for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from bsdsbench.metrics.base import Column
    from bsdsbench.report.tables import Table as TextTable
    from bsdsbench.runs.evaluation import Evaluation


def new_table(title: str | None = None) -> Table:
    """An empty table in the look of all of them."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")


def print_table(table: Table) -> None:
    """Print to standard output; as wide as the terminal, or as the content needs in a file."""
    import sys

    from rich.console import Console

    width = None if sys.stdout.isatty() else 100
    Console(width=width, highlight=False).print(table)


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_scores(runs: Sequence[Evaluation]) -> None:
    """One table per metric, one row per run."""
    from rich.markup import escape

    from bsdsbench.metrics import registry
    from bsdsbench.metrics.base import column_values

    for metric in runs[0].metrics:
        mappings = [run.score(metric).to_mapping() for run in runs]
        columns = _columns_of(registry.get(metric).columns, mappings)
        table = new_table(metric)
        table.add_column("method")
        for column in columns:
            table.add_column(escape(column.short or column.heading), justify="right")
        for run, mapping in zip(runs, mappings, strict=True):
            values = column_values(columns, mapping)
            cells = [number(values[c.key], c.digits) for c in columns]
            table.add_row(escape(run.name), *cells)
        print_table(table)
        if len(runs) == 1:
            _print_parts(runs[0], metric)


def _columns_of(columns: Sequence[Column], mappings: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns of a run's own table, without measures that no run was asked for."""
    return [
        c
        for c in columns
        if c.shown != "never" and any(c.key.split(".")[0] in mapping for mapping in mappings)
    ]


def _print_parts(run: Evaluation, metric: str) -> None:
    """The parts of a score that have a table of their own: classes, kinds of evaluation."""
    from rich.markup import escape

    from bsdsbench.metrics import registry
    from bsdsbench.metrics.base import column_values

    found = registry.get(metric)
    parts = found.parts(run.score(metric))
    if not parts:
        return
    columns = _columns_of(found.part_columns, [score.to_mapping() for score in parts.values()])
    table = new_table()
    table.add_column("part")
    for column in columns:
        table.add_column(escape(column.short or column.heading), justify="right")
    for name, score in parts.items():
        values = column_values(columns, score.to_mapping())
        table.add_row(escape(name), *(number(values[c.key], c.digits) for c in columns))
    print_table(table)


def number(value: float | None, digits: int) -> str:
    """A score with so many decimals; "-" where it is undefined."""
    return "-" if value is None else f"{value:.{digits}f}"


def print_tables(tables: Sequence[TextTable]) -> None:
    """Tables of `bsdsbench.report` on the screen: best in bold, letters and notes beneath."""
    from rich.markup import escape

    from bsdsbench.report.tables import numeric_columns

    for table in tables:
        shown = new_table(table.title)
        for name, numeric in zip(table.columns, numeric_columns(table), strict=True):
            shown.add_column(escape(name), justify="right" if numeric else "left")
        for row in table.rows:
            cells = [f"{escape(c.text)} {c.letters}".rstrip() for c in row]
            bold = [f"[bold]{t}[/bold]" if c.best else t for t, c in zip(cells, row, strict=True)]
            shown.add_row(*bold)
        print_table(shown)
        for note in table.notes:
            print(note)


def write_or_print(text: str, out: str | None) -> None:
    """`text` into the file `out`, whole or not at all, or to standard output."""
    from pathlib import Path

    from bsdsbench.core.files import write_atomic

    if out:
        write_atomic(Path(out), text if text.endswith("\n") else text + "\n")
    else:
        print(text.rstrip("\n"))
