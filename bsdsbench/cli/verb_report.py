"""bsdsbench report: runs as one HTML page, or their scores as LaTeX, Markdown or CSV."""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.options import names_option, quiet_option, table_output_options


@click.command("report", short_help="Write runs as an HTML page or as tables.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@table_output_options
@names_option
@click.option(
    "--published",
    default="",
    metavar="KEY,...",
    help="Published results to add: keys, set=NAME, rule=NAME.",
)
@click.option("--title", default="", help="Title of the page; default: the names.")
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
@click.option(
    "--pictures/--no-pictures", default=True, show_default=True, help="Show the images in the page."
)
@click.option(
    "--human",
    is_flag=True,
    help="Mark human agreement on BSDS500, if the runs are of its test images.",
)
@quiet_option
def command(
    runs: tuple[str, ...],
    out: str | None,
    form: str | None,
    names: list[str] | None,
    published: str,
    pred_dirs: tuple[str, ...],
    quiet: bool,
    **options: Any,
) -> int:
    """Report runs: one self-contained HTML page, or tables of their scores.

    OUT is the folder of a run, or a folder with official files by any program.
    """
    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import show_tables
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.files.errors import DataError
    from bsdsbench.report import score_tables, write_report
    from bsdsbench.runs.loading import load_runs
    from bsdsbench.tables.output import form_of

    form = form_of(out, form)
    keys = [key for key in published.split(",") if key.strip()]
    loaded = load_runs(runs, names)
    if form != "html":
        extra, notes = published_beside(keys, loaded)
        show_tables(score_tables(loaded, extra=extra, notes=notes), out, form)
        return 0
    if not out:
        raise DataError("--format html: expected -o FILE.html")
    with progress("report", quiet) as shown:
        notes = write_report(
            *(loaded, out),
            published=keys,
            pred_dirs=list(pred_dirs) or None,
            progress=shown,
            **options,
        )
    for note in notes:
        print(f"bsdsbench: {note}", file=sys.stderr)
    print(out)
    return 0
