"""bsdsbench ap: every AP rule on the counts of runs, side by side."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.options import format_option, names_option


@click.command("ap", short_help="All AP values of runs, by rule.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@names_option
@click.option("--gt", "gt_dir", type=click.Path(), help="Ground truth; default: the run's own.")
@format_option("table", "json")
def command(outs: tuple[str, ...], names: list[str] | None, gt_dir: str | None, form: str) -> int:
    """Show AP by every rule in use, and ODS by both, from the counts of each OUT.

    The row of threshold 0 that the rule edter needs is made from the ground truth alone; where
    that is not to be found the value is "-".
    """
    from bsdsbench.cli.show import new_table, print_json, print_table
    from bsdsbench.core.score_rules import AP_RULES, ODS_RULES
    from bsdsbench.runs.all_rules import all_rules
    from bsdsbench.runs.loading import load_runs

    runs = load_runs(outs, names)
    found = {run.name: all_rules(run, gt_dir) for run in runs}
    if form == "json":
        print_json(found)
        return 0
    table = new_table("rules")
    for heading in ("score", "rule"):
        table.add_column(heading)
    for run in runs:
        table.add_column(run.name, justify="right")
    table.add_column("what it is")
    for score, rules in (("AP", AP_RULES), ("ODS", ODS_RULES)):
        for rule, what in rules.items():
            values = (found[run.name][score.lower()][rule] for run in runs)
            table.add_row(score, rule, *map(_shown, values), what)
    print_table(table)
    return 0


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}"
