"""Pictures of the matching: matched pixels green, false ones orange, missed ones blue.

In runs whose classes of errors were counted false and missed pixels have a shade for each.
Overlays come from the matching itself (`MatchesPixels.match_maps`), so their pixels add up to the
counts of the scores. The colours are those of Okabe and Ito, which everyone can distinguish.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.boundary import MatchMaps
from bsdsbench.metrics.error_classes import pixel_errors
from bsdsbench.metrics.optional import MatchesPixels
from bsdsbench.plotting.style import ERROR_COLORS, OTHER_COLOR, PIXEL_COLORS
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import COUNTED
from bsdsbench.scores.error_scores import MISSED as MISSED_CLASSES

NOTHING, MATCHED, FALSE, MISSED = range(4)
_EVERY_COLOR = {
    **{"nothing": "#FFFFFF", **PIXEL_COLORS, **ERROR_COLORS},
    "other": OTHER_COLOR,
}
COLORS = tuple(tuple(bytes.fromhex(color[1:])) for color in _EVERY_COLOR.values())
OTHER = len(COLORS) - 1
_ERROR_CODES = {name: list(_EVERY_COLOR).index(name) for name in ERROR_COLORS}
PALE = 0.62  # how far a picture under an overlay is drawn towards white


class Overlay(NamedTuple):
    """One image at one threshold.

    classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED, or of the classes of the latter two
    """

    threshold: float
    recall: float
    precision: float
    f: float
    classes: NDArray[np.uint8]


def files_changed(image_id: str, fault: str) -> DataError:
    """Return the error of an image whose files, counted again, do not give the run's counts."""
    return DataError(f"{image_id}: {fault}; its files or its settings are not those of the run")


def matching_metric(run: Evaluation) -> Metric | None:
    """Return the first metric of the run whose matching can be drawn."""
    metrics = map(registry.get, registry.with_curve(run.metrics, run.protocol))
    return next((metric for metric in metrics if isinstance(metric, MatchesPixels)), None)


def overlay(
    pred: Prediction, gt: GroundTruth, run: Evaluation, record: ImageRecord, threshold: float | None
) -> Overlay:
    """Return the overlay of an image at the threshold of its counts nearest to `threshold`.

    None: that of its largest F, the first of ties.

    Raises DataError if it does not add up to the counts: then the files have changed since.
    """
    metric: Any = matching_metric(run)
    counts: Any = record.counts[metric.name]
    every = counts.thresholds
    curve = PRCurve.of_counts(every, counts.matches)
    k = int(curve.f.argmax() if threshold is None else np.abs(every - threshold).argmin())
    counted_at = float(every[k])
    maps = metric.match_maps(pred, gt, run.protocol, metric.options_of(run.protocol), counted_at)
    counted = int(counts.matched_pred[k]), int(counts.matched_gt[k])
    matched = int(maps.true_pred.sum()), int(maps.matched_gt.sum())
    if matched != counted:
        raise files_changed(record.image_id, f"{matched} matched pixels, the run has {counted}")
    classes = _classes_of(maps)
    if COUNTED in counts:
        first = float(every[every > 0][0])  # not the row of the whole image
        lowest = metric.match_maps(pred, gt, run.protocol, metric.options_of(run.protocol), first)
        errors = pixel_errors(maps, lowest, run.protocol.radius(gt.shape))
        for name, pixels in errors.items():
            whole = MISSED if name in MISSED_CLASSES else FALSE
            classes[pixels & (classes == whole)] = _ERROR_CODES[name]
    recall, precision, f = (float(v[k]) for v in (curve.recall, curve.precision, curve.f))
    return Overlay(counted_at, recall, precision, f, classes)


def _classes_of(maps: MatchMaps) -> NDArray[np.uint8]:
    """Return a map (H, W) of predictions matched or false, and elsewhere of missed pixels.

    Missed are those that some annotator has and that are not matched for him.
    """
    out = np.zeros(maps.true_pred.shape, np.uint8)
    out[maps.missed_gt.any(axis=0)] = MISSED
    out[maps.false_pred] = FALSE
    out[maps.true_pred] = MATCHED
    return out


def paint(
    classes: NDArray[np.uint8], photo: NDArray[np.uint8] | None = None, opacity: float = 1.0
) -> NDArray[np.uint8]:
    """Return an overlay as (H, W, 3) uint8, on white or on the paled picture."""
    colors = np.array(COLORS, np.uint8)
    if photo is None:
        return colors[classes]
    gray = photo.mean(axis=2, keepdims=True)
    ground = np.rint(255 * PALE + gray * (1 - PALE))
    share = np.where(classes == NOTHING, 0, opacity)[..., None]
    return np.rint(share * colors[classes] + (1 - share) * ground).astype(np.uint8)
