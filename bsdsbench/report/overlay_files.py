"""The overlays of a run's images, of matched boundaries or of regions, as files and in grids."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import png_bytes, write_atomic
from bsdsbench.loaders.formats.official_txt import safe_name
from bsdsbench.report.overlays import matching_metric, overlay, paint
from bsdsbench.report.regions import paint_regions, region_metric, region_overlays
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.sources import find_sources
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.ratios import short

BEST, AT_ODS, PIXELS = "best", "ods", "pixels"  # how the names of files end


class Painted(NamedTuple):
    """An overlay as (H, W, 3) uint8, how the name of its file ends, and its score in words."""

    kind: str
    pixels: NDArray[np.uint8]
    caption: str


def has_overlays(run: Evaluation) -> bool:
    """Return whether a metric of the run can be drawn."""
    return matching_metric(run) is not None or region_metric(run) is not None


def overlay_path(run: Evaluation, out: str | os.PathLike[str], image_id: str) -> Path:
    """Return where the overlay of an image lies that is looked at first."""
    return Path(out, f"{safe_name(image_id)}_{BEST if matching_metric(run) else PIXELS}.png")


def paint_image(
    pred: Prediction,
    gt: GroundTruth,
    run: Evaluation,
    record: ImageRecord,
    photo: NDArray[np.uint8] | None,
) -> Iterator[Painted]:
    """Yield the overlays of an image, each painted when it is asked for.

    Of boundaries they are at the image's own threshold of largest F and at the data set's; of
    regions all classes, then each of several. Raises DataError for files that have changed.
    """
    metric = matching_metric(run)
    if metric is None:
        for number, part in enumerate(region_overlays(pred, gt, run, record)):
            kind = f"{PIXELS}_{safe_name(part.name)}" if number else PIXELS
            yield Painted(kind, paint_regions(part, photo), f"Dice {short(part.dice)}")
        return
    for kind in (BEST, AT_ODS):
        threshold = None if kind == BEST else run.score(metric.name).ods.threshold or 0.0
        drawn = overlay(pred, gt, run, record, threshold)
        yield Painted(kind, paint(drawn.classes, photo), f"F {short(drawn.f)}")


def write_overlays(
    run: Evaluation,
    out: str | os.PathLike[str],
    *,
    image_ids: Collection[str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write ID_best.png and ID_ods.png of every image, or of some, into `out`; their paths.

    Of regions these are ID_pixels.png, and ID_pixels_CLASS.png for each of several classes. Raises
    DataError if files are gone, or no metric of the run can be drawn, OSError.
    """
    if not has_overlays(run):
        had = ", ".join(run.metrics) or "none"
        raise DataError(
            f"{run.name}: no metric of boundaries, masks, classes or objects, for overlays (it has "
            f"{had})"
        )
    sources, written = find_sources(run), []
    records = [r for r in run.records if image_ids is None or r.image_id in image_ids]
    for done, record in enumerate(records, 1):
        pred, gt = sources.load(record.image_id, run.protocol)
        photo = sources.photo(record.image_id, gt.shape)
        for kind, pixels, _ in paint_image(pred, gt, run, record, photo):
            written.append(Path(out, f"{safe_name(record.image_id)}_{kind}.png"))
            write_atomic(written[-1], png_bytes(pixels), durable=False)
        if progress:
            progress(done, len(records), record.image_id)
    return written
