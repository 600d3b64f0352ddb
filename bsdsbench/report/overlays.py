"""Pictures of the matching: matched pixels green, false ones orange, missed ones blue.

Overlays come from the matching itself (`Metric.match_maps`), so their pixels add up to the
counts of the scores. The colours are those of Okabe and Ito, which everyone can distinguish.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import png_bytes, write_atomic
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.boundary import MatchMaps
from bsdsbench.plotting.style import PIXELS
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import PRCurve, four_counts
from bsdsbench.scores.ratios import f_measure, ratio

NOTHING, MATCHED, FALSE, MISSED = range(4)
COLORS = tuple(tuple(bytes.fromhex(c[1:])) for c in ("#FFFFFF", *PIXELS.values()))
PALE = 0.62  # how far a picture under an overlay is drawn towards white
KINDS = ("best", "ods")
_ENTRY, _ROW = 66, 15  # pixels of an entry of the legend


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """One image at one threshold. classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED."""

    threshold: float
    precision: float
    recall: float
    f: float
    classes: NDArray[np.uint8]


def matching_metric(names: Iterable[str], protocol: Protocol) -> Metric | None:
    """The first of the named metrics whose matching can be drawn."""
    metrics = map(registry.get, names)
    return next((m for m in metrics if m.draws(m.options_of(protocol))), None)


def overlay_metric(run: Evaluation) -> Metric:
    """The metric of the run whose matching can be drawn. Raises DataError if it has none."""
    found = matching_metric(run.metrics, run.protocol)
    if found:
        return found
    raise DataError(
        f"{run.name}: no metric that matches pixels, expected one for overlays (it has "
        f"{', '.join(run.metrics) or 'none'})"
    )


def overlay(
    pred: Prediction, gt: GroundTruth, run: Evaluation, threshold: float, record: ImageRecord
) -> Overlay:
    """The overlay of one image at the threshold of its counts that is nearest to `threshold`.

    Raises DataError if it does not add up to the counts: then the files have changed since.
    """
    metric = overlay_metric(run)
    counts: Any = record.counts[metric.name]
    k = int(np.argmin(np.abs(counts.thresholds - threshold)))
    at = float(counts.thresholds[k])
    opt = metric.options_of(run.protocol)
    maps = metric.match_maps(pred, gt, run.protocol, opt, at)
    counted = int(counts.matched_pred[k]), int(counts.matched_gt[k])
    found = int(maps.true_pred.sum()), int(maps.matched_gt.sum())
    if found != counted:
        raise DataError(
            f"{record.image_id}: {found} matched pixels, the run has {counted}; its files or its "
            "settings are not those of the run"
        )
    recall = ratio(maps.matched_gt.sum(), maps.matched_gt.sum() + maps.missed_gt.sum())
    precision = ratio(maps.true_pred.sum(), maps.true_pred.sum() + maps.false_pred.sum())
    f = f_measure(precision, recall)
    return Overlay(at, float(precision), float(recall), float(f), classes_of(maps))


def classes_of(maps: MatchMaps) -> NDArray[np.uint8]:
    """(H, W) uint8: predictions matched or false; where there is none, pixels some annotator has
    and that are not matched for him."""
    out = np.zeros(maps.true_pred.shape, np.uint8)
    out[maps.missed_gt.any(axis=0)] = MISSED
    out[maps.false_pred] = FALSE
    out[maps.true_pred] = MATCHED
    return out


def image_threshold(run: Evaluation, record: ImageRecord) -> float:
    """The threshold of an image's largest F, no interpolation; the first of ties."""
    counts: Any = record.counts[overlay_metric(run).name]
    curve = PRCurve.of_counts(counts.thresholds, four_counts(counts))
    return float(curve.thresholds[curve.f.argmax()])


def paint(classes: NDArray[np.uint8], photo: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """An overlay as (H, W, 3) uint8, on white or on the paled picture."""
    colors = np.array(COLORS, np.uint8)
    if photo is None:
        return colors[classes]
    gray = photo.mean(axis=2, keepdims=True)
    ground = np.rint(255 * PALE + gray * (1 - PALE)).astype(np.uint8)
    return np.where((classes == NOTHING)[..., None], ground, colors[classes])


def with_legend(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture (H, W, 3) with what its colours mean in lines beneath it."""
    from PIL import Image, ImageDraw

    words = list(zip(PIXELS, COLORS[1:], strict=True))
    columns = max(1, min(len(words), pixels.shape[1] // _ENTRY))
    below = Image.new("RGB", (pixels.shape[1], _ROW * -(-len(words) // columns)), "white")
    draw = ImageDraw.Draw(below)
    for k, (word, color) in enumerate(words):
        x, y = k % columns * _ENTRY + 3, k // columns * _ROW
        draw.rectangle((x, y + 4, x + 8, y + 11), fill=color)
        draw.text((x + 12, y + 2), word, fill="black")
    return np.vstack([pixels, np.asarray(below)])


def draw_overlays(
    run: Evaluation,
    sources: Sources,
    progress: Progress | None = None,
    image_ids: Collection[str] | None = None,
) -> Iterator[tuple[str, str, Overlay, NDArray[np.uint8] | None]]:
    """(image id, "best" or "ods", overlay, picture) of every image, or of some, in id order."""
    ods = run.score(overlay_metric(run).name).ods.threshold or 0.0
    records = [r for r in run.records if image_ids is None or r.image_id in image_ids]
    for done, record in enumerate(records, 1):
        pred, gt = sources.load(record.image_id, run)
        photo = sources.photo(record.image_id, gt.shape)
        for kind, at in zip(KINDS, (image_threshold(run, record), ods), strict=True):
            yield record.image_id, kind, overlay(pred, gt, run, at, record), photo
        if progress:
            progress(done, len(records), record.image_id)


def write_overlays(
    run: Evaluation,
    out: str | os.PathLike[str],
    *,
    image_ids: Collection[str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write ID_best.png and ID_ods.png of every image, or of some, into `out`; their paths.

    Beneath the pixels of the image is a legend of the colours.
    best is the image's own threshold of largest F, ods the data set's. Raises DataError if files
    are gone, OSError.
    """
    from bsdsbench.loaders.official_txt import safe_name

    sources = find_sources(run, metric=overlay_metric(run).name)
    written = []
    for image_id, kind, found, photo in draw_overlays(run, sources, progress, image_ids):
        written.append(Path(out, f"{safe_name(image_id)}_{kind}.png"))
        picture = png_bytes(with_legend(paint(found.classes, photo)))
        write_atomic(written[-1], picture, durable=False)
    return written
