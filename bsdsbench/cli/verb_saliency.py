"""bsdsbench saliency: measures of salient object maps."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.evaluating import evaluate_metric, run_options


@click.command("saliency", short_help="MAE, F, S, E and weighted F of saliency maps.")
@click.argument("pred_dir", type=click.Path())
@run_options
@click.option("--beta2", type=float, help="beta^2 of F; default 0.3.")
@click.option("--normalise", is_flag=True, help="Stretch each map to 0 .. 1 first.")
def command(pred_dir: str, beta2: float | None, normalise: bool, **options: Any) -> int:
    """MAE, F, E-measure, S-measure, weighted F, IoU and Dice of PRED_DIR against masks.

    The table has means of the images' values; result.json also ratios of counts added over images.
    """
    from bsdsbench.core.protocol import Protocol

    changes: dict[str, Any] = {"stretch": normalise}
    if beta2 is not None:
        changes["beta2"] = beta2
    protocol = Protocol.preset("saliency").replace(saliency=changes)
    return evaluate_metric("saliency", pred_dir, protocol, **options)
