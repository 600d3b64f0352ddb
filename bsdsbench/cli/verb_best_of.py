"""bsdsbench best-of: several runs into one that chooses by the ground truth."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option


@click.command("best-of", short_help="Take the best of M runs at each threshold.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the result.")
@click.option("--name", help="The method's name; default: that of the first run.")
@format_option("table", "json")
def command(outs: tuple[str, ...], out: str, name: str | None, form: str) -> int:
    """For each image and threshold, take the counts of the run with the best F.

    Methods with a granularity setting report such scores. OUT are runs of one method on the
    same images, or folders of official ID_ev1.txt files. The name of the result says that it chose
    by the ground truth: it does not compare with other scores.
    """
    from bsdsbench.cli.evaluating import show_run
    from bsdsbench.runs.best_of import best_of
    from bsdsbench.runs.loading import load_runs

    run = best_of(load_runs(outs), name)
    run.save(out)
    show_run(run, form, out)
    return 0
