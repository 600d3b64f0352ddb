"""Overlays of a run's images that colour the pixels: matched green, false orange, missed blue.

Error classes, if the run counted them, are shades of orange and blue. Pixels confused with another
class or object are pink. The coloured pixels are exactly those counted for the scores. The palette
(Okabe and Ito) is safe for colour-blind readers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools
from bsdsbench.errors import DataError, with_file_of_side
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import png_bytes, write_atomic
from bsdsbench.loaders.formats.official_txt import safe_name
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.error_classes import pixel_classes
from bsdsbench.metrics.optional import DrawsPixels
from bsdsbench.metrics.pixel_steps import LargestError, OverlaySteps
from bsdsbench.plotting import style
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.score_tables import metric_with_errors
from bsdsbench.runs.sources import find_sources

# The colours of the pixel classes of `OverlaySteps`, in the order of the classes, as "#rrggbb"
_EVERY_COLOR = ("#FFFFFF", *style.PIXEL_COLORS.values(), *style.ERROR_COLORS.values())
_EVERY_COLOR += (style.OTHER_COLOR, style.VOID_COLOR)
COLORS = tuple(tuple(bytes.fromhex(color[1:])) for color in _EVERY_COLOR)
VOID_CLASS = len(COLORS) - 1
PALE = 0.62  # fraction of white mixed into the photo below an overlay
OPACITY = 0.6  # of coloured areas over a photo
_RING = 0.02  # radius of the ring around the largest error, as a fraction of the diagonal
BEST, AT_ODS, PIXELS = "best", "ods", "pixels"  # suffixes of file names, as in ID_best.png


def drawn_metric(run: Evaluation) -> Metric | None:
    """Return the metric whose pixels are drawn for a run, or None if no metric can be drawn.

    This is the run's first metric that matches boundaries and has a precision-recall curve. If
    there is none, it is the first metric that can classify pixels (DrawsPixels) as it counted them.
    """
    for name in registry.with_curve(run.metrics, run.protocol):
        metric = registry.get(name)
        # True of metrics that match boundaries, as their errors have classes
        if metric.has_errors:
            return metric
    # The kind of the predictions, such as "soft"; if not recorded, the usual kind of the metric
    pred_kind = run.provenance.pred_kind or registry.get(run.metrics[0]).pred_kinds[0]
    # A run's files are loaded for drawing as the first group of metrics reads them, for example
    # with its void values. A metric of another group would not draw the pixels that it counted
    first_group = registry.group_by_reading(run.metrics, run.protocol, pred_kind)[0]
    for name in run.metrics:
        metric = registry.get(name)
        if metric in first_group.metrics and isinstance(metric, DrawsPixels):
            return metric
    return None


def pixel_steps(
    pred: Prediction, gt: GroundTruth, run: Evaluation, errors: bool | None = None
) -> OverlaySteps:
    """Classify each pixel of an image as matched, false or missed, as the `drawn_metric` counts it.

    The result has a drawing ("step") for every threshold or, if the metric has none, for every part
    that it scores separately, such as an object class. If `errors` is True, false and missed pixels
    of boundaries are divided by cause, such as "duplicate"; if None, only if the run counted these.
    """
    metric: Any = drawn_metric(run)
    options = metric.options_of(run.protocol)
    if errors is None:
        errors = metric_with_errors(run) is not None
    try:
        if isinstance(metric, DrawsPixels):  # a metric of masks or labels
            return metric.pixel_steps(pred, gt, run.protocol, options)
        # A metric of boundaries prepares the maps in `count`, and passes them to a function that
        # counts. This one returns the class of each pixel in place of counts
        classify = partial(pixel_classes, errors=errors)
        steps: OverlaySteps = metric.count(pred, gt, run.protocol, options, classify)["steps"]
        return steps
    except DataError as error:  # metrics know only arrays: name the files
        raise with_file_of_side(error, pred.where, gt.where) from None


def chosen_threshold(run: Evaluation) -> float | None:
    """Return the ODS threshold of a run's `drawn_metric`, 0 if unknown; None if it has no ODS."""
    metric = drawn_metric(run)
    score = {} if metric is None else run.score(metric.name)
    if "ods" not in score:
        return None
    threshold = score["ods"]["threshold"]
    return 0.0 if threshold is None else float(threshold)


def void_pixels(gt: GroundTruth, run: Evaluation) -> Bools | None:
    """Return a bool (H, W) mask of the pixels that are not counted, or None if all are counted.

    If the ground truth has a valid map, these are the pixels outside it; otherwise those with a
    void value in its label map.
    """
    valid = gt.parts.get("valid")  # bool (H, W), or None
    if valid is None and "labels" in gt.parts and gt.labels.ndim == 2:
        metric = drawn_metric(run)
        void_labels = [] if metric is None else registry.void_labels([metric], run.protocol)
        valid = ~np.isin(gt.labels, void_labels)
    return None if valid is None or valid.all() else ~valid


def _paint(
    classes: NDArray[np.uint8],
    photo: NDArray[np.uint8] | None,
    opacity: float,
    mark: LargestError | None,
) -> NDArray[np.uint8]:
    """Paint pixel classes in colours, and return the picture as a uint8 (H, W, 3) array.

    classes : uint8 (H, W), indices into COLORS; pixels of class 0 show the background
    photo : the background, uint8 (H, W, 3), drawn pale and gray; None for white
    opacity : of the colours over a photo
    mark : an error to mark with a ring and a line to the nearest pixel of the other outline. It is
        not marked if its distance is 0
    """
    from skimage.draw import circle_perimeter, line

    pixels = np.array(COLORS, np.uint8)[classes]  # (H, W, 3)
    if photo is not None:
        gray_photo = photo.mean(axis=2, keepdims=True)  # (H, W, 1)
        pale_photo = np.rint(255 * PALE + gray_photo * (1 - PALE))
        alpha = np.where(classes == 0, 0, opacity)[..., None]  # (H, W, 1)
        pixels = np.rint(alpha * pixels + (1 - alpha) * pale_photo).astype(np.uint8)
    if mark is not None and mark.distance > 0:
        radius = max(3, round(_RING * float(np.hypot(*classes.shape))))
        white_ring = circle_perimeter(mark.row, mark.col, radius + 1, shape=classes.shape)
        black_ring = circle_perimeter(mark.row, mark.col, radius, shape=classes.shape)
        pixels[white_ring] = 255
        pixels[black_ring] = 0
        pixels[line(mark.row, mark.col, mark.to_row, mark.to_col)] = 0
    return pixels


class Painted(NamedTuple):
    """An overlay of one image."""

    kind: str  # the suffix of the file name, such as "best" for ID_best.png
    pixels: NDArray[np.uint8]  # (H, W, 3)
    caption: str  # the score, such as "F 0.712"


def overlay_path(out: str | os.PathLike[str], image_id: str) -> Path | None:
    """Return the main overlay of an image, ID_best.png or ID_pixels.png in `out`, or None."""
    for kind in (BEST, PIXELS):
        path = Path(out, f"{safe_name(image_id)}_{kind}.png")
        if path.is_file():
            return path
    return None


def paint_image(
    pred: Prediction, gt: GroundTruth, run: Evaluation, photo: NDArray[np.uint8] | None
) -> Iterator[Painted]:
    """Yield the overlays of an image: at its best threshold, and at the ODS threshold if known.

    For a metric without thresholds, they show all its parts (such as classes) together, and each
    part. Overlays are painted lazily. Void pixels are gray. `photo` is the background, uint8
    (H, W, 3), or None for white.
    """
    # A drawing per threshold or part, with the class of each pixel: matched, false, missed ...
    drawings = pixel_steps(pred, gt, run)
    f_of_drawings = drawings.scores.f  # (drawings,), of this image
    void = void_pixels(gt, run)  # bool (H, W), or None if all pixels count
    opacity = OPACITY if drawings.areas else 1.0  # without areas, only lines: they hide little
    ods_threshold = chosen_threshold(run)
    index_of_kind = {}  # suffix of the file name -> index of the drawing
    if drawings.parts:
        index_of_kind[PIXELS] = 0  # the first drawing has all parts together
        for k, part in enumerate(drawings.parts[1:], 1):
            index_of_kind[f"{PIXELS}_{safe_name(part)}"] = k
    else:
        index_of_kind[BEST] = drawings.best
        if ods_threshold is not None:  # the threshold nearest to it
            index_of_kind[AT_ODS] = int(np.abs(drawings.thresholds - ods_threshold).argmin())
    for kind, k in index_of_kind.items():
        classes = drawings.at(k)  # (H, W), 0 for pixels without a class
        if void is not None:
            classes = np.where(void & (classes == 0), np.uint8(VOID_CLASS), classes)
        mark = drawings.marks[k] if drawings.marks else None  # where outlines are farthest apart
        pixels = _paint(classes, photo, opacity, mark)
        yield Painted(kind, pixels, f"{drawings.measure} {f_of_drawings[k]:.3f}")  # "F 0.712"


def write_overlays(
    run: Evaluation,
    out: str | os.PathLike[str],
    *,
    image_ids: Collection[str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the overlays of a run's images into the folder `out`, and return the file paths.

    The files are ID_best.png (at the image's best threshold) and ID_ods.png (at the ODS threshold)
    or, if the metric has no thresholds, ID_pixels.png and ID_pixels_CLASS.png.

    run : a run whose predictions and ground truth still exist
    image_ids : the images to draw; default: all
    progress : called after each image

    Raises DataError if files of the run are missing, or if none of its metrics can be drawn.
    """
    metric = drawn_metric(run)
    if metric is None:
        metrics = ", ".join(run.metrics) or "none"
        raise DataError(
            f"{run.name}: no metric whose pixels can be drawn, as those of boundaries, masks and "
            f"classes, for overlays (it has {metrics})"
        )
    sources = find_sources(run)
    written = []
    records = [r for r in run.records if image_ids is None or r.image_id in image_ids]
    for done, record in enumerate(records, 1):
        pred, gt = sources.load_of_run(run, record, metric)
        photo = sources.photo(record.image_id, gt.shape)
        for overlay in paint_image(pred, gt, run, photo):
            path = Path(out, f"{safe_name(record.image_id)}_{overlay.kind}.png")
            write_atomic(path, png_bytes(overlay.pixels), durable=False)
            written.append(path)
        if progress:
            progress(done, len(records), record.image_id)
    return written
