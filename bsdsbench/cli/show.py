"""Scores as tables for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

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
    for metric in runs[0].metrics:
        rows = [(run.name, _COLUMNS[metric](getattr(run, f"{metric}_score")())) for run in runs]
        print_table(_table(metric, rows))


def _table(metric: str, rows: Sequence[tuple[str, dict[str, str]]]) -> Table:
    from rich.markup import escape

    table = new_table(metric)
    table.add_column("method")
    for name in rows[0][1]:
        table.add_column(name, justify="right")
    for method, cells in rows:
        table.add_row(escape(method), *cells.values())
    return table


def _boundary(score: Any) -> dict[str, str]:
    cells = {
        "ODS": f"{score.ods.f:.4f}",
        "at": f"{score.ods.threshold:.3f}",
        "P": f"{score.ods.precision:.4f}",
        "R": f"{score.ods.recall:.4f}",
        "OIS": f"{score.ois.f:.4f}",
        "AP": f"{score.ap:.4f}",
        "R50": f"{score.r50:.4f}",
        "images": str(score.n_images),
    }
    if score.curve.thresholds.size == 1:  # a point has no area, and nothing to choose from
        cells.update(dict.fromkeys(("at", "OIS", "AP", "R50"), "-"))
    return cells


def _pixel(score: Any) -> dict[str, str]:
    return {
        "ODS": f"{score.ods.f:.4f}",
        "at": f"{score.ods.threshold:.3f}",
        "OIS": f"{score.ois.f:.4f}",
        "AP": f"{score.ap:.4f}",
        "AUC-ROC": f"{score.auc_roc:.4f}",
        "EER": f"{score.eer:.4f}",
        "MAE": f"{score.mae:.4f}",
        "images": str(score.n_images),
    }


def _region(score: Any) -> dict[str, str]:
    found = score.to_mapping()
    return {
        "cover ODS": f"{found['covering']['ods']:.4f}",
        "OIS": f"{found['covering']['ois']:.4f}",
        "best": f"{found['covering']['best']:.4f}",
        "PRI ODS": f"{found['pri']['ods']:.4f}",
        "PRI OIS": f"{found['pri']['ois']:.4f}",
        "VOI ODS": f"{found['voi']['ods']:.4f}",
        "VOI OIS": f"{found['voi']['ois']:.4f}",
        "Fop ODS": f"{found['fop']['ods']:.4f}",
    }


_COLUMNS = {"boundary": _boundary, "pixel": _pixel, "region": _region}


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
