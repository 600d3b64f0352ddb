"""Results on standard output or in a file: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsdsbench.runs.evaluation import Evaluation
    from bsdsbench.tables.table import Table


def print_tables(tables: Sequence[Table]) -> None:
    """Print to standard output: fitted to a terminal, as wide as needed in a pipe or file."""
    from bsdsbench.tables import as_text

    as_text.print_tables(tables, sys.stdout)


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_scores(runs: Sequence[Evaluation]) -> None:
    """One table per metric, one row per run."""
    from bsdsbench.runs.score_tables import score_tables

    print_tables(score_tables(runs))


def show_tables(tables: Sequence[Table], out: str | None, form: str) -> None:
    """Tables in a form, printed or written to `out`; reports the written files on stderr."""
    from bsdsbench.tables.output import render, write_tables
    from bsdsbench.tables.table import read_at_once

    if out is not None:
        written = write_tables(tables, out, form)
        print(f"bsdsbench: wrote {', '.join(map(str, written))}", file=sys.stderr)
    elif form == "table":
        print_tables(shown := read_at_once(tables))
        if aside := [table.title for table in tables if table not in shown]:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside)}")
    else:
        print(render(tables, form).rstrip("\n"))
