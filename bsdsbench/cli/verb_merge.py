"""bsdsbench merge: the shards of one run into the whole."""

from __future__ import annotations

from pathlib import Path

import click

from bsdsbench.cli.options import format_option


@click.command("merge", short_help="Join the shards of one run.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the whole run.")
@format_option("table", "json")
def command(outs: tuple[str, ...], out: str, form: str) -> int:
    """Join runs made with --shard 1/N .. N/N; the result is that of one undivided run."""
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import write_plots
    from bsdsbench.cli.show import print_json, print_scores

    if Path(out).resolve() in [Path(each).resolve() for each in outs]:
        raise click.UsageError(f"-o {out} is one of the shards, expected another folder")
    run = bb.merge([bb.Evaluation.load(each) for each in outs])
    run.save(out)
    write_plots(run, out)
    if form == "json":
        print_json(run.to_mapping())
    else:
        print_scores([run])
    return 2 if run.failed else 0
