"""bsdsbench crispness: average crispness, SEval and CEval of raw maps in one run."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.options import format_option, quiet_option, workers_option


@click.command("crispness", short_help="Average crispness, CEval and SEval.")
@click.argument("pred_dir", type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("-o", "--out", type=click.Path(), help="Folder for the results of both evaluations.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change a field of both protocols, such as max_dist=0.011.",
)
@click.option("--split-file", type=click.Path(), help="Ids to evaluate, one on a line.")
@workers_option
@format_option("table", "json")
@quiet_option
def command(
    pred_dir: str, gt_dir: str, overrides: tuple[str, ...], form: str, quiet: bool, **options: Any
) -> int:
    """How crisp the raw maps of PRED_DIR are.

    Average crispness is the mean of sum(NMS map)/sum(raw map). SEval scores the maps with NMS and
    thinning, CEval without either.
    """
    from dataclasses import replace

    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import print_json, print_scores
    from bsdsbench.core.protocol import parse_overrides
    from bsdsbench.metrics.crispness import crispness

    with progress("crispness", quiet) as report:
        found = crispness(
            pred_dir, gt_dir, changes=parse_overrides(overrides), progress=report, **options
        )
    if form == "json":
        print_json(found.to_mapping())
        return 0
    name = found.seval.name
    print_scores([replace(found.seval, name=f"{name} SEval"), replace(found.ceval, name="CEval")])
    print(f"average crispness {found.average:.4f} of {len(found.per_image)} images")
    print(f"SEval protocol {found.seval.protocol.describe()}")
    print(f"CEval protocol {found.ceval.protocol.describe()}")
    return 0
