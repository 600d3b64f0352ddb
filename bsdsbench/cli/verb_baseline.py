"""bsdsbench baseline: `run` with a detector or segmenter of scikit-image."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.verb_run import detect, detector_options

NAMES = (
    *("canny", "sobel", "scharr", "structure-tensor", "structure-tensor-raw"),
    *("felzenszwalb", "slic", "watershed"),
)


@click.command("baseline", short_help="Run, time and score a detector of scikit-image.")
@click.argument("baseline_name", type=click.Choice(NAMES), metavar="NAME")
@click.argument("images", type=click.Path())
@detector_options
def command(baseline_name: str, images: str, **options: Any) -> int:
    """Call the baseline NAME on every picture in IMAGES, time it and evaluate it.

    Edge detectors: canny, sobel, scharr, structure-tensor, and structure-tensor-raw without
    non-maximum suppression. Segmenters, with a sweep from coarse to fine: felzenszwalb, slic,
    watershed. They are those of scikit-image; see `bsdsbench run` for a function of your own.
    """
    from bsdsbench.integrations.baselines import baseline

    options["name"] = options["name"] or baseline_name
    return detect(baseline(baseline_name), images, **options)
