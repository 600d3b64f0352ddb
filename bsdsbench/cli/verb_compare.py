"""bsdsbench compare: test whether methods differ."""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.options import (
    bootstrap_options,
    choice,
    names_option,
    quiet_option,
    table_output_options,
    verb,
)


@verb("compare", short_help="Test whether the differences between runs are real.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|ref:NAME]...")
@names_option
@bootstrap_options
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
@choice(
    "--interval",
    of=("percentile", "bca"),
    help="Percentile interval, or bias-corrected and accelerated.",
)
@choice(
    "--test",
    of=("bootstrap", "permutation", "wilcoxon"),
    help="Test for the p-values; intervals come from the bootstrap.",
)
@click.option("--common", is_flag=True, help="Compare on the images that all runs have.")
@click.option("--force", is_flag=True, help="Compare even if protocols or ground truth differ.")
@table_output_options("FOLDER/TABLE.csv")
@quiet_option
def command(
    runs: tuple[str, ...],
    names: list[str] | None,
    form: str | None,
    out: str | None,
    columns: list[str] | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Compare runs image by image (paired): differences, bootstrap intervals, p-values.

    OUT is the folder of a run, or a folder with official ID_ev1.txt files by any program; ref:NAME
    is a reference run on BSDS500 test: ref:cob, ref:hed, ref:mcg, ref:se ...
    """
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import print_json, progress, show_tables
    from bsdsbench.runs.evaluation import load_runs
    from bsdsbench.tables.forms import form_of

    form = form_of(out, form)
    loaded = load_runs(runs, names)
    with progress("compare", quiet, "samples") as report:
        found = bb.compare(loaded, **options, progress=report)
    found = found if columns is None else found.only(columns)
    if form == "json" and out is None:
        print_json(found.to_mapping())
    else:
        show_tables(found.tables(), out, form)
    if form != "table" or out:
        for note in found.notes:
            print(f"bsdsbench: {note}", file=sys.stderr)
    return 0
