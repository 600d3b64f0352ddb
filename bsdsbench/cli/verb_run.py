"""bsdsbench run: call a detector on every picture, time it, evaluate it."""

from __future__ import annotations

import sys
from typing import Any

import click

from bsdsbench.cli.evaluating import check_overlays, run_options, say_left_out, write_overlays
from bsdsbench.cli.options import metrics_or_default, protocol_from, split_protocol, verb


@verb("run", short_help="Run, time and score a detector: yours or a built-in one.")
@click.argument("function", metavar="MODULE:FUNCTION|NAME")
@click.argument("images", type=click.Path())
@click.option("--gt", type=click.Path(), help="Ground-truth folder; without it nothing is scored.")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the results.")
@click.option(
    "--resume",
    is_flag=True,
    help="Reuse earlier maps even if the detector may have changed unnoticed.",
)
@run_options(on_error="skip")
def command(function: str, images: str, form: str, quiet: bool, **options: Any) -> int:
    """Call a detector on every picture in IMAGES, time it and evaluate what it returns.

    MODULE:FUNCTION takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1]
    or uint8 or uint16, or labels (int32 or int64), or a list of label maps. NAME is one of
    scikit-image: canny, sobel, scharr, structure-tensor, structure-tensor-raw (without non-maximum
    suppression), or a segmenter, coarse to fine: felzenszwalb, slic, watershed.

    The maps are kept in OUT/maps; a later run reuses those of the same function and pictures,
    and says so. Pictures on which the detector fails are listed, and the exit status is 2.
    """
    from bsdsbench.cli.evaluating import print_json, print_scores, progress
    from bsdsbench.integrations.detectors import run

    overlays = options.pop("overlays")
    fields, options = split_protocol(options)
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
    for note in found.notes:
        print(f"bsdsbench: {note}", file=sys.stderr)
    for image_id, reason in found.failed.items():
        print(f"bsdsbench: failed on {image_id!r}: {reason}", file=sys.stderr)
    return 2 if found.failed else 0
