"""bsdsbench superpixel: measures of superpixel segmentations."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.evaluating import evaluate_metric, run_options


@click.command("superpixel", short_help="Score superpixels: errors, recall, evenness.")
@click.argument("pred_dir", type=click.Path())
@run_options
@click.option(
    "--images",
    "images_dir",
    type=click.Path(),
    help="Folder of the images, for explained variation.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set how the ground truth is read: gt_kind=labels for images of region labels.",
)
def command(pred_dir: str, overrides: tuple[str, ...], **options: Any) -> int:
    """Score superpixels: undersegmentation error, ASA, recall, compactness, explained variation.

    PRED_DIR has one label map of superpixels per image. Pictures beside the ground truth in BSDS
    layout are found automatically.
    """
    from bsdsbench.protocol.protocol import Protocol, parse_overrides

    protocol = Protocol.preset("bsds500").replace(**parse_overrides(overrides))
    return evaluate_metric("superpixel", pred_dir, protocol, **options)
