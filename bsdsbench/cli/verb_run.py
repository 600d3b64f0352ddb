"""bsdsbench run: call a detector on every picture, time it, evaluate it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.options import (
    format_option,
    protocol_from,
    protocol_options,
    quiet_option,
    split_protocol,
    workers_option,
)

_OPTIONS = (
    click.option(
        "--gt", type=click.Path(), help="Ground-truth folder; without it nothing is scored."
    ),
    click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the results."),
    protocol_options("default: that of the first metric, bsds500 for most"),
    click.option(
        "--metrics",
        default="boundary",
        show_default=True,
        metavar="M,M",
        help="Comma-separated metrics to compute.",
    ),
    click.option("--name", help="The detector's name in tables."),
    workers_option,
    click.option("--fresh", is_flag=True, help="Call the detector again on every picture."),
    click.option(
        "--resume",
        is_flag=True,
        help="Take over earlier maps also where their detector's identity cannot be known.",
    ),
    format_option("table", "json"),
    quiet_option,
)


def detector_options(function: Any) -> Any:
    """The options that `run` and `baseline` share."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("run", short_help="Run, time and score your own detector.")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.argument("images", type=click.Path())
@detector_options
def command(function: str, images: str, **options: Any) -> int:
    """Call MODULE:FUNCTION on every picture in IMAGES, time it and evaluate what it returns.

    The function takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1] or
    uint8 or uint16, or labels (int32 or int64), or a list of label maps. Its maps are kept in
    OUT/maps; a later run takes over those of the same function and pictures, and says so.
    Pictures on which it fails are listed, and the exit status is 2.
    """
    return detect(function, images, **options)


def detect(function: Any, images: str, *, form: str, quiet: bool, **options: Any) -> int:
    """Run a detector with the shared options and show what came out."""
    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import print_json, print_scores
    from bsdsbench.integrations.detectors import run

    fields, options = split_protocol(options)
    options["metrics"] = [m.strip() for m in options["metrics"].split(",") if m.strip()]
    with progress("detect", quiet) as report:
        protocol = protocol_from(**fields, metrics=options["metrics"])
        found = run(function, images, protocol=protocol, progress=report, **options)
    if form == "json":
        print_json(found.to_mapping())
    else:
        if found.evaluation:
            print_scores([found.evaluation])
        timed = f"{found.ms_per_image:.1f} ms per image (median of {len(found.milliseconds)}"
        print(f"time     {timed}, one at a time, warm-up left out; {found.machine})")
        print(f"maps     {found.maps}")
        if found.evaluation:
            print(f"results  {Path(options['out'])}")
    for note in found.notes:
        print(f"bsdsbench: {note}", file=sys.stderr)
    for image_id, reason in found.failed.items():
        print(f"bsdsbench: failed on {image_id!r}: {reason}", file=sys.stderr)
    return 2 if found.failed else 0
