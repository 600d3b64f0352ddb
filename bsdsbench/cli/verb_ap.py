"""bsdsbench ap: every AP rule on the counts of runs, side by side."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option, names_option


@click.command("ap", short_help="Show the AP of runs by every rule in use.")
@click.argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@names_option
@click.option(
    "--gt", "gt_dir", type=click.Path(), help="Ground-truth folder; default: the run's own."
)
@format_option("table", "json")
def command(outs: tuple[str, ...], names: list[str] | None, gt_dir: str | None, form: str) -> int:
    """Show AP by every rule in use, and ODS by both, from the counts of each OUT.

    The row of threshold 0 that the rule edter needs is made from the ground truth alone; where
    it cannot be found the value is "-".
    """
    from bsdsbench.cli.show import print_json, print_tables
    from bsdsbench.runs.all_rules import all_rules
    from bsdsbench.runs.loading import load_runs
    from bsdsbench.scores.curve_rules import AP_RULES, ODS_RULES
    from bsdsbench.tables.table import Column, Table

    runs = load_runs(outs, names)
    found = {run.name: all_rules(run, gt_dir) for run in runs}
    if form == "json":
        print_json(found)
        return 0
    columns = [Column("score", "Score"), Column("rule", "Rule")]
    columns += [Column(f"run_{k + 1}", run.name, "", ".4f") for k, run in enumerate(runs)]
    rows = [
        [score, rule, *(found[run.name][score.lower()][rule] for run in runs), what]
        for score, rules in (("AP", AP_RULES), ("ODS", ODS_RULES))
        for rule, what in rules.items()
    ]
    print_tables(
        [Table("rules", "Rules", [*columns, Column("what", "What it is")], rows, n_labels=2)]
    )
    return 0
