"""bsdsbench run: call a detector on every picture, time it, evaluate it."""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.evaluating import check_overlays, say_left_out, write_overlays
from bsdsbench.cli.options import (
    PROTOCOL_FIELDS,
    metrics_or_default,
    protocol_from,
    run_option,
    shared_by_runs,
    verb,
)


@verb("run", short_help="Run, time and score a detector: yours or a built-in one.")
@click.argument("function", metavar="MODULE:FUNCTION|NAME")
@click.argument("images", type=click.Path())
@click.option("--gt", type=click.Path(), help="Ground-truth folder; without it nothing is scored.")
@run_option("out", required=True)
@run_option("tag")
@run_option("resume")
@shared_by_runs(on_error="skip")
def command(function: str, images: str, form: str, quiet: bool, **options: Any) -> int:
    """Call a detector on every picture in IMAGES, time it and evaluate what it returns.

    MODULE:FUNCTION takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1]
    or uint8 or uint16, or labels (int32 or int64), or a list of label maps. NAME is one of
    scikit-image: canny, sobel, scharr, structure-tensor, structure-tensor-raw (without non-maximum
    suppression), or a segmenter, coarse to fine: felzenszwalb, slic, watershed.

    The maps are written to OUT/maps, and run.json there says whose they are. A folder that holds
    maps is refused: --resume keeps them, --fresh makes them again. Pictures on which the detector
    fails are listed, and the exit status is 2.
    """
    from bsdsbench.cli.evaluating import print_json, print_scores, progress
    from bsdsbench.integrations.detectors import run

    overlays = options.pop("overlays")
    fields = {name: options.pop(name) for name in PROTOCOL_FIELDS}
    metrics = options["metrics"] = metrics_or_default(options["metrics"])
    protocol = protocol_from(**fields, metrics=metrics)
    if overlays:
        check_overlays(metrics, protocol, options["gt"] and options["out"])
    with progress(options["name"] or function.rpartition(":")[2], quiet) as report:
        found = run(function, images, protocol=protocol, progress=report, **options)
    if overlays and found.evaluation:
        write_overlays(found.evaluation, options["out"], quiet)
    if form == "json":
        print_json(found.to_mapping())
    else:
        if found.evaluation:
            print_scores([found.evaluation])
        timed = f"{found.ms_per_image:.1f} ms per image (median of {len(found.milliseconds)}"
        print(f"time     {timed}, one at a time, warm-up left out; {found.machine})")
        print(f"maps     {found.maps}")
        if found.evaluation:
            print(f"results  {options['out']}")
    if found.evaluation:
        say_left_out(found.evaluation)
    if found.kept:
        print(
            f"bsdsbench: {found.kept} of {len(found.milliseconds) or found.kept} maps are of an "
            "earlier call",
            file=sys.stderr,
        )
    for image_id, reason in found.failed.items():
        print(f"bsdsbench: failed on {image_id!r}: {reason}", file=sys.stderr)
    return 2 if found.failed else 0
