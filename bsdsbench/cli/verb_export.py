"""bsdsbench export: runs as files that other programs read and anyone can recount."""

from __future__ import annotations

import click

from bsdsbench.cli.options import names_option, verb


@verb("export", short_help="Write runs for the model hub, Every Eval Ever, or as CSV.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("--to", type=click.Choice(["hf", "eee", "csv"]), required=True, help="Format.")
@click.option("-o", "--out", required=True, type=click.Path(), help="A folder for the runs.")
@click.option(
    "--dataset",
    default="",
    metavar="ORG/NAME",
    help="Data set on the hub; needed for hf.",
)
@names_option
def command(runs: tuple[str, ...], to: str, out: str, dataset: str, names: list[str] | None) -> int:
    """Export the scores of runs with task, signature, version and the hash of their counts.

    The runs must belong to a task (`evaluate --task`). hf writes .eval_results/TASK.yaml for the
    model hub, eee a file of the Every Eval Ever schema with 95 % intervals, and csv one row per
    score. Each folder also gets result.json and counts.npz, from which `bsdsbench import` verifies
    the scores.
    """
    from bsdsbench.report.exports import export

    for folder in export(runs, to, out, names, dataset=dataset):
        print(folder)
    return 0
