"""bsdsbench semantic: per-class boundaries."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.evaluating import evaluate_metric, run_options
from bsdsbench.cli.options import (
    ProtocolCommand,
    protocol_from,
    protocol_options,
    split_protocol,
)


@click.command(
    "semantic",
    cls=ProtocolCommand,
    short_help="Score the boundaries of every class, and their mean.",
)
@click.argument("pred_dir", type=click.Path())
@run_options
@protocol_options("one with classes is required")
def command(pred_dir: str, **options: Any) -> int:
    """Score the boundaries of every class, and their mean: `--protocol sbd` or `cityscapes`.

    PRED_DIR has label maps (ID.png), arrays (ID.npy of classes x rows x columns), or one folder of
    soft maps per class. Rules are changed by `--set semantic.interior=kill`,
    `--no-thin` and other options.
    """
    fields, options = split_protocol(options)
    return evaluate_metric("semantic", pred_dir, protocol_from(**fields), **options)
