"""Pictures at a threshold: matched pixels green, false ones orange, missed ones blue.

Of boundaries they are those of the matching, of soft maps those of a mask. In runs whose classes of
errors were counted false and missed pixels have a shade for each. The pixels add up to the counts
of the scores. The colours are those of Okabe and Ito, which everyone can distinguish.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, Bool
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.boundary import MatchMaps
from bsdsbench.metrics.error_classes import pixel_errors
from bsdsbench.metrics.optional import (
    ComparesLines,
    ComparesRegions,
    CutsSoftMaps,
    MatchesPixels,
)
from bsdsbench.metrics.soft_pixels import SoftPixels
from bsdsbench.plotting.style import (
    BUFFER_COLORS,
    ERROR_COLORS,
    OTHER_COLOR,
    PIXEL_COLORS,
    VOID_COLOR,
)
from bsdsbench.protocol.fields import listed_values
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.sources import PredictionAndTruth, Sources, files_changed
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import COUNTED
from bsdsbench.scores.error_scores import MISSED as MISSED_CLASSES
from bsdsbench.scores.ratios import f_beta, ratio

NOTHING, MATCHED, FALSE, MISSED = range(4)
_EVERY_COLOR = {
    **{"nothing": "#FFFFFF", **PIXEL_COLORS, **ERROR_COLORS},
    "other": OTHER_COLOR,
    **BUFFER_COLORS,
    "void": VOID_COLOR,
}
COLORS = tuple(tuple(bytes.fromhex(color[1:])) for color in _EVERY_COLOR.values())
OTHER, NEAR_BOTH, NEAR_PRED, NEAR_GT, VOID = range(len(COLORS) - 5, len(COLORS))
_ERROR_CODES = {name: list(_EVERY_COLOR).index(name) for name in ERROR_COLORS}
PALE = 0.62  # how far a picture under an overlay is drawn towards white
OPACITY = 0.6  # of the colours of areas over a picture
_STRIPE = 4  # pixels, of void


class Overlay(NamedTuple):
    """One image at one threshold.

    classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED, or of the classes of the latter two
    """

    threshold: float
    recall: float
    precision: float
    f: float
    classes: NDArray[np.uint8]


def matching_metric(run: Evaluation) -> Metric | None:
    """Return the first metric of the run that can draw its matching."""
    metrics = map(registry.get, registry.with_curve(run.metrics, run.protocol))
    return next((metric for metric in metrics if isinstance(metric, MatchesPixels)), None)


def drawn_metric(run: Evaluation) -> Metric | None:
    """Return the metric whose pixels are drawn.

    Without a matching it is the first of soft maps, regions or lines that reads the files as the
    run's first metric.
    """
    if not run.metrics or (matching := matching_metric(run)):
        return matching if run.metrics else None
    kind = run.provenance.pred_kind or registry.get(run.metrics[0]).pred_kinds[0]
    read_alike = registry.by_reading(run.metrics, run.protocol, kind)[0]
    for metric in filter(read_alike.__contains__, map(registry.get, run.metrics)):
        if isinstance(metric, CutsSoftMaps | ComparesRegions | ComparesLines):
            return metric
    return None


def chosen_threshold(run: Evaluation) -> float | None:
    """Return the best threshold of the whole set for the metric that is drawn, if it has one."""
    metric = drawn_metric(run)
    if not isinstance(metric, MatchesPixels | CutsSoftMaps):
        return None
    score = run.score(metric.name)
    return float(score.ods.threshold or 0.0) if "ods" in score else None


def load_image(sources: Sources, run: Evaluation, record: ImageRecord) -> PredictionAndTruth:
    """Read the files of an image to draw. Raises DataError where they are not those of the run.

    Of boundaries the matching says so, as it is made anew to be drawn.
    """
    metric = drawn_metric(run)
    if metric is None or matching_metric(run):
        return sources.load(record.image_id, run.protocol)
    return sources.load_of_run(run, record, metric)


def void_values(run: Evaluation) -> tuple[float, ...]:
    """Return the values of truth files that are void for the metric that is drawn."""
    metric = drawn_metric(run)
    if metric is None or not metric.void_option:
        return ()
    return listed_values(getattr(metric.options_of(run.protocol), metric.void_option))


def void_stripes(gt: GroundTruth, run: Evaluation) -> Bool | None:
    """Return stripes (H, W) over the pixels of an image that are counted nowhere, or None."""
    valid = gt.parts.get("valid")
    if valid is None and "labels" in gt.parts and gt.labels.ndim == 2:
        valid = ~np.isin(gt.labels, void_values(run))
    if valid is None or valid.all():
        return None
    rows, columns = np.indices(valid.shape)
    return np.asarray(~valid & ((rows + columns) // _STRIPE % 2 == 0))


def has_void(run: Evaluation) -> bool:
    """Return whether pixels may be counted nowhere."""
    return bool(run.place("valid") or void_values(run))


class SoftScores(NamedTuple):
    """The scores of an image at each threshold, f8 (T,) each."""

    recall: F8
    precision: F8
    f: F8


def soft_pixels(pred: Prediction, gt: GroundTruth, run: Evaluation) -> SoftPixels:
    """Return the soft map of a run's image and its masks, as its metric cuts it."""
    metric: Any = drawn_metric(run)
    pixels: SoftPixels = metric.soft_pixels(pred, gt, run.protocol, metric.options_of(run.protocol))
    return pixels


def soft_scores(soft: SoftPixels) -> SoftScores:
    """Return the scores of a soft map against masks."""
    matched_gt, total_gt, matched_pred, total_pred = soft.matches.T
    recall, precision = ratio(matched_gt, total_gt), ratio(matched_pred, total_pred)
    return SoftScores(recall, precision, f_beta(precision, recall, soft.beta2))


def overlay(
    pred: Prediction, gt: GroundTruth, run: Evaluation, record: ImageRecord, threshold: float | None
) -> Overlay:
    """Return the overlay of an image at the threshold of its counts nearest to `threshold`.

    None: that of its largest F, the first of ties.

    Raises DataError if it does not add up to the counts: then the files have changed since.
    """
    metric: Any = drawn_metric(run)
    if isinstance(metric, CutsSoftMaps):
        soft = soft_pixels(pred, gt, run)
        scores, levels = soft_scores(soft), soft.thresholds
        k = int(scores.f.argmax() if threshold is None else np.abs(levels - threshold).argmin())
        recall, precision, f = (float(of_all[k]) for of_all in scores)
        return Overlay(float(levels[k]), recall, precision, f, soft.classes(k))
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
    classes: NDArray[np.uint8],
    photo: NDArray[np.uint8] | None = None,
    opacity: float = 1.0,
    void: Bool | None = None,
) -> NDArray[np.uint8]:
    """Return an overlay as (H, W, 3) uint8, on white or on the paled picture."""
    colors = np.array(COLORS, np.uint8)
    if void is not None:
        classes = np.where(void & (classes == NOTHING), np.uint8(VOID), classes)
    if photo is None:
        return colors[classes]
    gray = photo.mean(axis=2, keepdims=True)
    ground = np.rint(255 * PALE + gray * (1 - PALE))
    share = np.where(classes == NOTHING, 0, opacity)[..., None]
    return np.rint(share * colors[classes] + (1 - share) * ground).astype(np.uint8)
