"""bsdsbench saliency: measures of salient object maps."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.evaluating import evaluate_metric, run_options


@click.command("saliency", short_help="Score saliency maps: MAE, F, S, E and weighted F.")
@click.argument("pred_dir", type=click.Path())
@run_options
@click.option("--beta2", type=float, help="Value of beta^2 in F; default 0.3.")
@click.option(
    "--stretch/--no-stretch",
    default=None,
    help="Stretch each map to 0 .. 1 first, or use it unchanged; default: stretch.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="saliency.FIELD=VALUE",
    help="Change a rule: levels, operator, cap, e_divisor, centroid; or any field of the protocol.",
)
def command(
    pred_dir: str,
    beta2: float | None,
    stretch: bool | None,
    overrides: tuple[str, ...],
    **options: Any,
) -> int:
    """Score PRED_DIR against masks: MAE, F, E- and S-measure, weighted F, IoU, Dice, BER.

    The table has means of the images' values; result.json also ratios of counts added over images.
    Masks may be gray: above 128 is foreground. The rules are PySODMetrics', and printed.
    """
    from bsdsbench.protocol.protocol import Protocol, parse_overrides

    given = {"beta2": beta2, "stretch": stretch}
    changes = {name: value for name, value in given.items() if value is not None}
    protocol = Protocol.preset("saliency").replace(saliency=changes)
    protocol = protocol.replace(**parse_overrides(overrides))
    return evaluate_metric("saliency", pred_dir, protocol, **options)
