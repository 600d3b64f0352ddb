"""Pictures of masks, classes and objects: right pixels, false and missed ones in three colours.

A pixel that is false and missed alike, of another class or object, has a fourth.

Of centre lines the buffers are pale. Of several classes there is one picture of all and one of
each. Where the metric measures distances a ring marks where the outlines are farthest apart, and a
line leads to the nearest pixel of the other outline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics.contour.region_pixels import LargestError
from bsdsbench.metrics.optional import ComparesLines
from bsdsbench.metrics.structures import LinePixels
from bsdsbench.report.overlays import (
    FALSE,
    MATCHED,
    MISSED,
    NEAR_BOTH,
    NEAR_GT,
    NEAR_PRED,
    OPACITY,
    OTHER,
    drawn_metric,
    matching_metric,
    paint,
)
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.ratios import f_measure, ratio

_RING = 0.02  # radius of the ring, of the diagonal


class RegionOverlay(NamedTuple):
    """One class of an image, or all; or its centre lines.

    measure, value : "Dice", of lines "F"
    classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED, OTHER, of lines also NEAR_...
    n_matched_gt, n_gt : annotated pixels that are matched, and all
    error : where the outlines are farthest apart, or None
    """

    name: str
    measure: str
    value: float
    classes: NDArray[np.uint8]
    n_matched_gt: int
    n_gt: int
    error: LargestError | None


def has_others(run: Evaluation) -> bool:
    """Return whether regions are drawn that can be of another class or object."""
    metric = drawn_metric(run)
    if metric is None or metric.reads != "classes" or matching_metric(run) is not None:
        return False
    files = metric.files_read(metric.options_of(run.protocol))
    return files.labels is not Kind.MASK or files.numbered


def has_buffers(run: Evaluation) -> bool:
    """Return whether centre lines are drawn, with their buffers."""
    return isinstance(drawn_metric(run), ComparesLines)


def region_overlays(pred: Prediction, gt: GroundTruth, run: Evaluation) -> list[RegionOverlay]:
    """Return the overlays of an image: of all classes, then of each; of masks and lines one."""
    metric: Any = drawn_metric(run)
    inputs = pred, gt, run.protocol, metric.options_of(run.protocol)
    if isinstance(metric, ComparesLines):
        return [_line_overlay(metric.line_pixels(*inputs))]
    regions = metric.region_pixels(*inputs)
    overlays, errors = [], regions.largest_errors()
    for name, number in regions.parts():
        pixels = regions.part(number)
        classes = np.zeros(regions.pred.shape, np.uint8)
        for code, drawn in zip((MATCHED, FALSE, MISSED), pixels, strict=True):
            classes[drawn] = code
        classes[pixels.false & pixels.missed] = OTHER
        n_right, n_missed = int(pixels.right.sum()), int(pixels.missed.sum())
        numbers = n_right, n_right + n_missed, errors.get(number)
        overlays.append(RegionOverlay(name, "Dice", pixels.dice, classes, *numbers))
    return overlays


def _line_overlay(pixels: LinePixels) -> RegionOverlay:
    """Return the overlay of centre lines: a predicted pixel is true within the other's buffer."""
    (pred, gt), (near_pred, near_gt) = pixels
    classes = np.zeros(pred.shape, np.uint8)
    for code, drawn in (
        (NEAR_PRED, near_pred),
        (NEAR_GT, near_gt),
        (NEAR_BOTH, near_pred & near_gt),
        (MISSED, gt & ~near_pred),
        (FALSE, pred & ~near_gt),
        (MATCHED, pred & near_gt),
    ):
        classes[drawn] = code
    n_found, n_gt = int((gt & near_pred).sum()), int(gt.sum())
    correct = ratio((pred & near_gt).sum(), pred.sum())
    f = float(f_measure(correct, ratio(n_found, n_gt)))
    return RegionOverlay("lines", "F", f, classes, n_found, n_gt, None)


def paint_regions(
    overlay: RegionOverlay, photo: NDArray[np.uint8] | None = None, void: Bool | None = None
) -> NDArray[np.uint8]:
    """Return an overlay as (H, W, 3) uint8, the colours translucent over the picture."""
    from skimage.draw import circle_perimeter, line

    pixels, error = paint(overlay.classes, photo, OPACITY, void), overlay.error
    if error is not None and error.distance > 0:
        shape = overlay.classes.shape
        radius = max(3, round(_RING * float(np.hypot(*shape))))
        for wider, shade in ((1, 255), (0, 0)):
            ring = circle_perimeter(error.row, error.col, radius + wider, shape=shape)
            pixels[ring] = shade
        pixels[line(error.row, error.col, error.to_row, error.to_col)] = 0
    return pixels
