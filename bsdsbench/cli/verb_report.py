"""bsdsbench report: runs as a page, or as tables for a paper."""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.options import (
    PAGE,
    bootstrap_options,
    names_option,
    published_option,
    quiet_option,
    refuse,
    table_output_options,
    verb,
)

BOOTSTRAP = ("n_boot", "seed")


@verb("report", short_help="Write runs as a page, or as tables.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|ref:NAME]...")
@table_output_options("with --format csv FOLDER/TABLE.csv")
@click.option("--rules", is_flag=True, help="Show AP by every rule in use, and ODS by both.")
@names_option
@published_option
@click.option("--title", default="", help="Title; default: the names.")
@click.option(
    "--gt", "gt_dir", type=click.Path(), help="Ground-truth folder; default: the run's own."
)
@click.option(
    "--images",
    "images_dir",
    type=click.Path(),
    help="Folder of the images; default: beside the ground truth.",
)
@click.option(
    "--pred",
    "pred_dirs",
    multiple=True,
    type=click.Path(),
    help="Folder of predictions, one per run in the same order; default: the runs' own.",
)
@click.option("--pictures/--no-pictures", default=True, show_default=True, help="Show the images.")
@click.option(
    "--full-pictures",
    is_flag=True,
    help="Show every image; default: the worst, the best and those that differ most, up to 5 MB.",
)
@click.option(
    "--human",
    is_flag=True,
    help="Mark human agreement on BSDS500, if the runs are of its test images.",
)
@bootstrap_options
@quiet_option
def command(
    runs: tuple[str, ...],
    out: str | None,
    form: str | None,
    columns: list[str] | None,
    rules: bool,
    names: list[str] | None,
    published: list[str] | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Report runs: tables of their scores, or one self-contained page (-o FILE.html).

    OUT is the folder of a run, or a folder with official files by any program; ref:NAME is a
    reference run. Tables go to
    standard output or a file of their format.

    For --rules, the threshold-0 row that the rule edter needs is computed from the ground truth; if
    that is not found the value is "-".
    """
    from bsdsbench.cli.evaluating import show_tables
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.files.errors import DataError
    from bsdsbench.report import score_tables
    from bsdsbench.runs.evaluation import load_runs
    from bsdsbench.tables.forms import form_of

    form = form_of(out, form)
    if rules:
        from bsdsbench.runs.all_rules import rules_table

        refuse((*PAGE, *BOOTSTRAP, "published", "columns"), "--rules")
        show_tables([rules_table(load_runs(runs, names), options["gt_dir"])], out, form)
    elif form != "html":
        refuse((*PAGE, *BOOTSTRAP, "gt_dir"), "tables, only with a page (-o FILE.html)")
        loaded = load_runs(runs, names)
        extra, notes = published_beside(published or (), loaded)
        show_tables(score_tables(loaded, extra=extra, notes=notes), out, form, columns)
    elif not out:
        raise DataError("--format html: expected -o FILE.html")
    else:
        refuse(("columns",), "a page (-o FILE.html)")
        _page(load_runs(runs, names), out, quiet, published=published or (), **options)
    return 0


def _page(
    runs: list[Any], out: str, quiet: bool, *, pred_dirs: tuple[str, ...], **options: Any
) -> None:
    from bsdsbench.cli.evaluating import progress
    from bsdsbench.report import write_report

    with progress("report", quiet) as shown:
        given = list(pred_dirs) or None
        notes = write_report(runs, out, pred_dirs=given, progress=shown, **options)
    for note in notes:
        print(f"bsdsbench: {note}", file=sys.stderr)
    print(out)
