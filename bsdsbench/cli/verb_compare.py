"""bsdsbench compare: are these methods different?"""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.options import format_option, names_option


@click.command("compare", short_help="Are the differences between runs real?")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@names_option
@click.option(
    "--n-boot", type=click.IntRange(1), default=10_000, show_default=True, help="Samples."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same numbers."
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "--interval",
    type=click.Choice(["percentile", "bca"]),
    default="percentile",
    show_default=True,
    help="Plain, or bias-corrected and accelerated.",
)
@click.option("--common", is_flag=True, help="Compare on the images that all runs have.")
@click.option("--force", is_flag=True, help="Compare in spite of different protocols.")
@format_option("table", "json", "latex", "markdown", "csv")
@click.option("-o", "--out", type=click.Path(), help="Write there instead of to the screen.")
def command(
    runs: tuple[str, ...], names: list[str] | None, form: str, out: str | None, **options: Any
) -> int:
    """Paired bootstrap over images between runs: differences, intervals, p-values.

    OUT is the folder of a run, or a folder with official ID_ev1.txt files by any program.
    """
    import json

    import bsdsbench as bb
    from bsdsbench.cli.show import print_tables, write_or_print
    from bsdsbench.report import (
        comparison_mapping,
        comparison_tables,
        to_csv,
        to_latex,
        to_markdown,
    )
    from bsdsbench.runs.loading import load_runs

    found = bb.compare(load_runs(runs, names), **options)
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
