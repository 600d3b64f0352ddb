"""bsdsbench leaderboard: a static page from a folder of runs."""

from __future__ import annotations

import click

from bsdsbench.cli.options import bootstrap_options


@click.command("leaderboard", short_help="Write a static page of ranked runs.")
@click.argument("runs_dir", type=click.Path())
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the site.")
@bootstrap_options(2000)
def command(runs_dir: str, out: str, n_boot: int, seed: int) -> int:
    """Rank the runs in RUNS_DIR, one folder each, on a page that any web server can host.

    Runs of one ground truth and one protocol make a board, with intervals, groups that do not
    differ, signatures, and published rows of the same set. A repository keeps it honest by scoring
    the maps of a pull request itself: `evaluate` with the board's signature, then `leaderboard`.
    """
    from bsdsbench.diagnosis.findings import counted
    from bsdsbench.report.leaderboard import write_leaderboard

    for board in write_leaderboard(runs_dir, out, n_boot=n_boot, seed=seed):
        print(f"{board.title}: {counted(len(board.rows), 'row')}")
    print(out)
    return 0
