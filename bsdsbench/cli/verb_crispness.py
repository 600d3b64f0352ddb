"""bsdsbench crispness: average crispness, SEval and CEval of raw maps in one run."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.evaluating import evaluate_metric, run_options


@click.command("crispness", short_help="Measure average crispness, CEval and SEval.")
@click.argument("pred_dir", type=click.Path())
@run_options
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change a field of both protocols, such as max_dist=0.011.",
)
def command(pred_dir: str, overrides: tuple[str, ...], **options: Any) -> int:
    """Measure how crisp the raw maps of PRED_DIR are.

    Average crispness is the mean of sum(NMS map)/sum(raw map). SEval scores the maps with NMS and
    thinning, CEval without either.
    """
    from bsdsbench.files.errors import ProtocolError
    from bsdsbench.protocol.protocol import Protocol, parse_overrides

    changes = parse_overrides(overrides)
    if {"nms", "thin"} & changes.keys():
        raise ProtocolError("crispness: nms and thin are what SEval and CEval differ in")
    protocol = Protocol.preset("crispness-seval").replace(**changes)
    return evaluate_metric("crispness", pred_dir, protocol, **options)
