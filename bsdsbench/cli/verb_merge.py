"""bsdsbench merge: join the shards of one run, or take the best of several runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bsdsbench.cli.options import format_option, quiet_option, verb


@verb("merge", short_help="Join the shards of one run, or take the best of several.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the result.")
@click.option(
    "--best-of", is_flag=True, help="Take the best of several runs at each image and threshold."
)
@click.option("--name", help="The method's name in tables; default: that of the first run.")
@format_option("table", "json")
@quiet_option
def command(
    outs: tuple[str, ...], out: str, best_of: bool, name: str | None, form: str, quiet: bool
) -> int:
    """Join runs made with --shard 1/N .. N/N; the result is identical to a single run's.

    With --best-of, OUT are runs of one method on the same images, or folders of official
    ID_ev1.txt files: for each image and threshold the counts of the run with the best F are taken,
    as methods with a granularity setting report them. The name of the result says that it chose by
    the ground truth: it is not comparable with other scores.
    """
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import progress, show_run, write_plots
    from bsdsbench.runs import merging
    from bsdsbench.runs.evaluation import load_runs

    if Path(out).resolve() in [Path(each).resolve() for each in outs]:
        raise click.UsageError(f"-o {out}: is one of the runs, expected another folder")
    if best_of:
        run = merging.best_of(load_runs(outs), name)
    else:
        run = bb.merge([bb.Evaluation.load(each) for each in outs])
        run = replace(run, name=name) if name else run
    with progress("merge", quiet, "files") as report:
        run.save(out, report)
    write_plots(run, out)
    return show_run(run, form, out)
