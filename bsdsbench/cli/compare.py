"""bsdsbench compare: are these methods different?"""

from __future__ import annotations

import sys
from typing import Any

import click


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("--names", help="Names of the runs, with commas between; default: as stored.")
@click.option("--n-boot", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "--interval", type=click.Choice(["percentile", "bca"]), default="percentile", show_default=True
)
@click.option("--common", is_flag=True, help="Compare on the images that all runs have.")
@click.option("--force", is_flag=True, help="Compare in spite of different protocols.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "latex", "markdown", "csv"]),
    default="table",
    show_default=True,
)
@click.option("-o", "--out", type=click.Path(), help="Write there instead of to the screen.")
def command(
    runs: tuple[str, ...], names: str | None, form: str, out: str | None, **options: Any
) -> int:
    """Paired bootstrap over images between runs: differences, intervals, p-values.

    OUT is the folder of a run, or a folder with official ID_ev1.txt files by any program.
    """
    import json

    import bsdsbench as bb
    from bsdsbench.cli.show import print_tables, write_or_print
    from bsdsbench.official_run import load_runs
    from bsdsbench.report import (
        comparison_mapping,
        comparison_tables,
        to_csv,
        to_latex,
        to_markdown,
    )

    given = [n.strip() for n in names.split(",")] if names else None
    found = bb.compare(load_runs(runs, given), **options)
    if form != "table" or out:
        for note in found.notes:
            print(f"bsdsbench: {note}", file=sys.stderr)
    if form == "json":
        mapping = comparison_mapping(found)
        write_or_print(json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False), out)
        return 0
    tables = comparison_tables(found)
    if form == "table" and not out:
        print_tables(tables)
        return 0
    render = {"table": to_markdown, "markdown": to_markdown, "latex": to_latex, "csv": to_csv}
    write_or_print(render[form](tables), out)
    return 0
