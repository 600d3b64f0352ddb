"""Small pictures for a report: photographs as thumbnails, lines as palette PNG."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.writing import png_bytes
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.report.overlays import COLORS, Overlay, image_threshold, overlay
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import Sources
from bsdsbench.scores.counts import ImageRecord

THUMBNAIL = 320  # longer side, pixels
THUMB = 120  # that of the table
QUALITY = 70
_OVERLAY_PALETTE = [(*color, 255 if i else 0) for i, color in enumerate(COLORS)]
_LEVELS = 8


def image_pictures(
    sources: Sources, run: Evaluation, record: ImageRecord, ods_threshold: float
) -> dict[str, Any]:
    """A run's pictures of one image: pred, and overlays at its best and at the ODS threshold."""
    pred, gt = sources.load(record.image_id, run)
    best = overlay(pred, gt, run, image_threshold(run, record), record)
    ods = overlay(pred, gt, run, ods_threshold, record)
    return {
        "pred": jpeg_uri(_gray(pred, run)),
        "best": _overlay_data(best),
        "ods": _overlay_data(ods),
    }


def gt_picture(sources: Sources, run: Evaluation, image_id: str) -> dict[str, Any]:
    """The annotators' boundaries of one image, darker where more agree, and its photograph.

    Also `thumb`, a small picture for the table; `paper` says that it has a transparent ground.
    """
    _, gt = sources.load(image_id, run)
    photo = sources.photo(image_id, gt.shape)
    out = {"gt": gt_uri(gt), "size": [gt.shape[1], gt.shape[0]], "annotators": len(gt.boundaries)}
    if photo is None:
        return {**out, "thumb": out["gt"], "paper": True}
    return {**out, "photo": jpeg_uri(photo), "thumb": jpeg_uri(photo, THUMB)}


def gt_uri(gt: GroundTruth) -> str:
    """Share of annotators per pixel as a palette PNG with a transparent ground.

    Of label maps and masks their outlines.
    """
    share = np.mean(_lines(gt), axis=0)
    levels = np.ceil(share * (_LEVELS - 1)).astype(np.uint8)
    shades = np.linspace(190, 0, _LEVELS).astype(int)
    palette = [(v, v, v, 255 if i else 0) for i, v in enumerate(shades)]
    return _uri("png", png_bytes(levels, palette))


def _lines(gt: GroundTruth) -> list[NDArray[np.bool_]]:
    if gt.boundaries:
        return list(gt.boundaries)
    if gt.class_boundaries is not None:
        return [np.asarray(gt.class_boundaries.any(axis=0))]
    regions = gt.labels if gt.labels is not None else gt.mask
    return [np.zeros(gt.shape, bool) if regions is None else seg2bdry(regions)]


def jpeg_uri(pixels: NDArray[np.uint8], side: int = THUMBNAIL) -> str:
    """A picture at most `side` pixels long, (H, W) gray or (H, W, 3)."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, optimize=True)
    return _uri("jpeg", out.getvalue())


def _gray(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """The prediction as it is thresholded, dark lines on white; segmentations: their share."""
    from bsdsbench.metrics.maps import prepare, unit

    if pred.segs is not None:
        soft: Any = np.mean([seg2bdry(s) for s in pred.segs], axis=0)
    else:
        soft = unit(prepare(pred.boundary_map(), run.protocol))
    return np.asarray(np.rint(255 * (1 - np.clip(soft, 0, 1))), np.uint8)


def _overlay_data(found: Overlay) -> dict[str, Any]:
    numbers = (found.threshold, found.recall, found.precision, found.f)
    return {
        "at": [round(v, 4) for v in numbers],
        "png": _uri("png", png_bytes(found.classes, _OVERLAY_PALETTE)),
    }


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
