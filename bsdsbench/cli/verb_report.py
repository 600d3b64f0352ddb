"""bsdsbench report: runs as one HTML page, or their scores as LaTeX, Markdown or CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.options import names_option, quiet_option


@click.command("report", short_help="Runs as an HTML page, or as tables.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("-o", "--out", type=click.Path(), help="A .html file, or where the table goes.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "latex", "markdown", "csv"]),
    help="Default: html with a .html file, else markdown.",
)
@names_option
@click.option("--published", default="", metavar="KEY,...", help="Published: keys, set=, rule=.")
@click.option("--title", default="", help="Of the page; default: the names.")
@click.option("--gt", "gt_dir", type=click.Path(), help="Ground truth; default: the run's own.")
@click.option(
    "--images",
    "images_dir",
    type=click.Path(),
    help="The pictures annotated; default: beside the ground truth.",
)
@click.option(
    "--pred",
    "pred_dirs",
    multiple=True,
    type=click.Path(),
    help="Predictions, one folder per run in their order; default: the runs' own.",
)
@click.option(
    "--pictures/--no-pictures", default=True, show_default=True, help="Show the images in the page."
)
@click.option("--human", is_flag=True, help="Mark human agreement on BSDS500.")
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
    from bsdsbench.cli.show import write_or_print
    from bsdsbench.comparison.published import find_published
    from bsdsbench.core.errors import DataError
    from bsdsbench.report import score_tables, to_csv, to_latex, to_markdown, write_report
    from bsdsbench.runs.loading import load_runs

    loaded = load_runs(runs, names)
    if form is None:
        form = "html" if out and Path(out).suffix.lower() in (".html", ".htm") else "markdown"
    if form != "html":
        keys = [key for key in published.split(",") if key.strip()]
        tables = score_tables(loaded, [run.name for run in loaded], find_published(keys))
        render = {"latex": to_latex, "markdown": to_markdown, "csv": to_csv}[form]
        write_or_print(render(tables), out)
        return 0
    if not out:
        raise DataError("--format html: expected -o FILE.html")
    with progress("report", quiet) as shown:
        notes = write_report(
            loaded, out, pred_dirs=list(pred_dirs) or None, progress=shown, **options
        )
    for note in notes:
        print(f"bsdsbench: {note}", file=sys.stderr)
    print(out)
    return 0
