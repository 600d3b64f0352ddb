"""bsdsbench best-of: several runs into one that chooses by the ground truth."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option


@click.command("best-of", short_help="The best of M runs at each threshold, by the ground truth.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the result.")
@click.option("--name", help="The method's name; default: that of the first run.")
@format_option("table", "json")
def command(outs: tuple[str, ...], out: str, name: str | None, form: str) -> int:
    """Per image and threshold the counts of the run of best F, as models with a granularity do it.

    OUT are runs of one method on the same images, or folders of official ID_ev1.txt files. The
    result says in its name that it chose by the ground truth: it stands beside no other scores.
    """
    from bsdsbench.cli.evaluating import show_run
    from bsdsbench.runs.best_of import best_of
    from bsdsbench.runs.loading import load_runs

    run = best_of(load_runs(outs), name)
    run.save(out)
    show_run(run, form, out)
    return 0
