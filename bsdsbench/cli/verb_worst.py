"""bsdsbench worst: the images a run does worst on."""

from __future__ import annotations

from pathlib import Path

import click

from bsdsbench.cli.options import quiet_option, table_output_options, verb


@verb("worst", short_help="List the worst images of a run, or where two differ most.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT [OUT]")
@click.option(
    "-n",
    "--number",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of images to list.",
)
@click.option("--metric", help="Metric to sort by; default: the first that the runs have.")
@click.option("--overlays", is_flag=True, help="Draw overlays of these images into OUT/overlays.")
@table_output_options("FOLDER/TABLE.csv")
@quiet_option
def command(
    runs: tuple[str, ...],
    number: int,
    metric: str | None,
    overlays: bool,
    out: str | None,
    form: str | None,
    columns: list[str] | None,
    quiet: bool,
) -> int:
    """List the images with the lowest scores, with the paths of their overlays.

    For two runs, list the images on which they differ most. Overlays are drawn by `evaluate
    --overlays` for every image, or by --overlays here for the listed ones.
    """
    from bsdsbench.cli.evaluating import progress, show_tables
    from bsdsbench.report.worst import worst_table
    from bsdsbench.runs.evaluation import load_runs
    from bsdsbench.tables.forms import form_of

    form = form_of(out, form)
    folders = [Path(run) for run in runs]
    with progress("overlays", quiet or not overlays) as report:
        table = worst_table(load_runs(runs), folders, number, metric, overlays, report)
    show_tables([table], out, form, columns)
    return 0
