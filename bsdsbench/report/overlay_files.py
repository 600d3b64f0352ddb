"""The overlays of a run's images, as files and in grids."""

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
from bsdsbench.report.overlays import (
    OPACITY,
    chosen_threshold,
    drawn_metric,
    paint,
    pixel_steps,
    void_stripes,
)
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.sources import find_sources
from bsdsbench.scores.ratios import short

BEST, AT_ODS, PIXELS = "best", "ods", "pixels"  # how the names of files end


class Painted(NamedTuple):
    """An overlay as (H, W, 3) uint8, how the name of its file ends, and its score in words."""

    kind: str
    pixels: NDArray[np.uint8]
    caption: str


def overlay_path(out: str | os.PathLike[str], image_id: str) -> Path | None:
    """Return where the overlay of an image lies that is looked at first, None where it is not."""
    paths = (Path(out, f"{safe_name(image_id)}_{kind}.png") for kind in (BEST, PIXELS))
    return next(filter(Path.is_file, paths), None)


def paint_image(
    pred: Prediction, gt: GroundTruth, run: Evaluation, photo: NDArray[np.uint8] | None
) -> Iterator[Painted]:
    """Yield the overlays of an image, each painted when it is asked for.

    At thresholds they are at the image's own of largest F and at the data set's, if it has one; of
    parts all classes, then each of several.
    """
    steps, void, of_set = pixel_steps(pred, gt, run), void_stripes(gt, run), chosen_threshold(run)
    shown = {BEST: steps.best}
    if steps.parts:
        names = [PIXELS, *(f"{PIXELS}_{safe_name(part)}" for part in steps.parts[1:])]
        shown = dict(zip(names, range(len(names)), strict=True))
    elif of_set is not None:
        shown[AT_ODS] = int(np.abs(steps.thresholds - of_set).argmin())
    for kind, k in shown.items():
        look = OPACITY if steps.areas else 1.0, void, steps.marks[k] if steps.marks else None
        words = f"{steps.measure} {short(steps.scores.f[k])}"
        yield Painted(kind, paint(steps.at(k), photo, *look), words)


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
    metric = drawn_metric(run)
    if metric is None:
        had = ", ".join(run.metrics) or "none"
        raise DataError(
            f"{run.name}: no metric whose pixels can be drawn, as those of boundaries, masks and "
            f"classes, for overlays (it has {had})"
        )
    sources, written = find_sources(run), []
    records = [r for r in run.records if image_ids is None or r.image_id in image_ids]
    for done, record in enumerate(records, 1):
        pred, gt = sources.load_of_run(run, record, metric)
        photo = sources.photo(record.image_id, gt.shape)
        for kind, pixels, _ in paint_image(pred, gt, run, photo):
            written.append(Path(out, f"{safe_name(record.image_id)}_{kind}.png"))
            write_atomic(written[-1], png_bytes(pixels), durable=False)
        if progress:
            progress(done, len(records), record.image_id)
    return written
