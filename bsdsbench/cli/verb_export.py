"""bsdsbench export: runs as files that other programs read and anyone can recount."""

from __future__ import annotations

import click

from bsdsbench.cli.options import names_option, verb


@verb("export", short_help="Write runs for the model hub, Every Eval Ever, or as CSV.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("--to", type=click.Choice(["hf", "eee", "csv"]), required=True, help="Format.")
@click.option("-o", "--out", required=True, type=click.Path(), help="Gets a folder for each run.")
@click.option("--dataset", default="", metavar="ORG/NAME", help="Data set on the hub, for hf.")
@names_option
def command(runs: tuple[str, ...], to: str, out: str, dataset: str, names: list[str] | None) -> int:
    """Export runs of a task: scores with task, signature, version and the hash of their counts.

    hf writes .eval_results/TASK.yaml of the model hub, eee a file of the Every Eval Ever schema
    with 95 % intervals, csv a row per score. Beside it lie result.json and counts.npz, so that
    `bsdsbench import` can recount the scores.
    """
    from bsdsbench.report.exports import export

    for folder in export(runs, to, out, names, dataset=dataset):
        print(folder)
    return 0
