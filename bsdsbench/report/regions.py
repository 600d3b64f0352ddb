"""Pictures of masks, classes and objects: right pixels, false and missed ones in three colours.

A pixel that is false and missed alike, of another class or object, has a fourth.

Of several classes there is one picture of all and one of each. Where the metric measures distances
a ring marks where the outlines are farthest apart, and a line leads to the nearest pixel of the
other outline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.contour.region_pixels import LargestError
from bsdsbench.metrics.optional import ComparesRegions
from bsdsbench.report.overlays import (
    FALSE,
    MATCHED,
    MISSED,
    OTHER,
    files_changed,
    matching_metric,
    paint,
)
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import Counts, ImageRecord

OPACITY = 0.6  # of the colours over a picture
_RING = 0.02  # radius of the ring, of the diagonal


class RegionOverlay(NamedTuple):
    """One class of an image, or all.

    classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED, OTHER
    error : where the outlines are farthest apart, or None
    """

    name: str
    dice: float
    classes: NDArray[np.uint8]
    error: LargestError | None


def region_metric(run: Evaluation) -> Metric | None:
    """Return the metric whose regions are drawn: one that reads the files as the run's first."""
    if not run.metrics:
        return None
    kind = run.provenance.pred_kind or registry.get(run.metrics[0]).pred_kinds[0]
    metrics = registry.by_reading(run.metrics, run.protocol, kind)[0]
    return next((metric for metric in metrics if isinstance(metric, ComparesRegions)), None)


def has_others(run: Evaluation) -> bool:
    """Return whether regions are drawn that can be of another class or object."""
    metric = region_metric(run)
    if metric is None or metric.reads != "classes" or matching_metric(run) is not None:
        return False
    files = metric.files_read(metric.options_of(run.protocol))
    return files.labels is not Kind.MASK or files.numbered


def region_overlays(
    pred: Prediction, gt: GroundTruth, run: Evaluation, record: ImageRecord
) -> list[RegionOverlay]:
    """Return the overlays of an image: of all classes, then of each; of masks one.

    Raises DataError if counting gives other numbers than the run: then the files have changed.
    """
    metric: Any = region_metric(run)
    counted = Counts(**metric.count_image(pred, gt, run.protocol))
    if not counted.equals(record.counts[metric.name]):
        raise files_changed(record.image_id, "other counts than those of the run")
    regions = metric.region_pixels(pred, gt, run.protocol, metric.options_of(run.protocol))
    overlays, errors = [], regions.largest_errors()
    for name, number in regions.parts():
        pixels = regions.part(number)
        classes = np.zeros(regions.pred.shape, np.uint8)
        for code, drawn in zip((MATCHED, FALSE, MISSED), pixels, strict=True):
            classes[drawn] = code
        classes[pixels.false & pixels.missed] = OTHER
        overlays.append(RegionOverlay(name, pixels.dice, classes, errors.get(number)))
    return overlays


def paint_regions(
    overlay: RegionOverlay, photo: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Return an overlay as (H, W, 3) uint8, the colours translucent over the picture."""
    from skimage.draw import circle_perimeter, line

    pixels, error = paint(overlay.classes, photo, OPACITY), overlay.error
    if error is not None and error.distance > 0:
        shape = overlay.classes.shape
        radius = max(3, round(_RING * float(np.hypot(*shape))))
        for wider, shade in ((1, 255), (0, 0)):
            ring = circle_perimeter(error.row, error.col, radius + wider, shape=shape)
            pixels[ring] = shade
        pixels[line(error.row, error.col, error.to_row, error.to_col)] = 0
    return pixels
