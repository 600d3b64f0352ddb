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
from bsdsbench.metrics.optional import CutsSoftMaps
from bsdsbench.report.overlays import (
    OPACITY,
    chosen_threshold,
    drawn_metric,
    load_image,
    matching_metric,
    overlay,
    paint,
    void_stripes,
)
from bsdsbench.report.regions import paint_regions, region_overlays
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


def in_parts(run: Evaluation) -> bool:
    """Return whether what is drawn of a run is in parts, and not at thresholds."""
    return matching_metric(run) is None and not isinstance(drawn_metric(run), CutsSoftMaps)


def overlay_path(run: Evaluation, out: str | os.PathLike[str], image_id: str) -> Path:
    """Return where the overlay of an image lies that is looked at first."""
    return Path(out, f"{safe_name(image_id)}_{PIXELS if in_parts(run) else BEST}.png")


def paint_image(
    pred: Prediction,
    gt: GroundTruth,
    run: Evaluation,
    record: ImageRecord,
    photo: NDArray[np.uint8] | None,
) -> Iterator[Painted]:
    """Yield the overlays of an image, each painted when it is asked for.

    Of boundaries and soft maps they are at the image's own threshold of largest F and at the data
    set's; of regions all classes, then each of several. Raises DataError for files that have
    changed.
    """
    void = void_stripes(gt, run)
    if in_parts(run):
        for number, part in enumerate(region_overlays(pred, gt, run)):
            kind = f"{PIXELS}_{safe_name(part.name)}" if number else PIXELS
            words = f"{part.measure} {short(part.value)}"
            yield Painted(kind, paint_regions(part, photo, void), words)
        return
    of_set, opacity = chosen_threshold(run), 1.0 if matching_metric(run) else OPACITY
    for kind, threshold in (BEST, None), *[(AT_ODS, of_set)] * (of_set is not None):
        drawn = overlay(pred, gt, run, record, threshold)
        yield Painted(kind, paint(drawn.classes, photo, opacity, void), f"F {short(drawn.f)}")


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
    if drawn_metric(run) is None:
        had = ", ".join(run.metrics) or "none"
        raise DataError(
            f"{run.name}: no metric whose pixels can be drawn, as those of boundaries, masks and "
            f"classes, for overlays (it has {had})"
        )
    sources, written = find_sources(run), []
    records = [r for r in run.records if image_ids is None or r.image_id in image_ids]
    for done, record in enumerate(records, 1):
        pred, gt = load_image(sources, run, record)
        photo = sources.photo(record.image_id, gt.shape)
        for kind, pixels, _ in paint_image(pred, gt, run, record, photo):
            written.append(Path(out, f"{safe_name(record.image_id)}_{kind}.png"))
            write_atomic(written[-1], png_bytes(pixels), durable=False)
        if progress:
            progress(done, len(records), record.image_id)
    return written
