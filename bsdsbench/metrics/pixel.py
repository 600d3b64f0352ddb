"""Pixel benchmark of one image: every pixel against the ground truth at its own place.

There is no tolerance, no thinning and no matching: at each threshold a pixel is a true or false
positive or negative. Several annotators count as so many copies of the image, so every count is a
sum over annotators and tp + fp + fn + tn is (image pixels) x (annotators) at every threshold. The
same holds for the sum of absolute errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.checks import annotated_maps, same_shape, soft_map
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.labels import seg2bdry
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import PixelCounts
from bsdsbench.core.softmap import prepare
from bsdsbench.kernels.thresholding import confusion

Bool = NDArray[np.bool_]
I8 = NDArray[np.int64]


def pixel_counts(
    pred: NDArray[Any] | Prediction,
    gts: Sequence[NDArray[Any]] | GroundTruth,
    protocol: Protocol | None = None,
) -> PixelCounts:
    """Confusion counts of one image's pixels at every threshold of the protocol.

    pred : (H, W) soft map of uint8 (value/255), uint16 (value/65535), bool, or float in [0, 1]; or
        a Prediction. It is inverted and put through NMS if the protocol says so, never thinned.
        Segmentations have the thresholds 1 .. n instead of the protocol's, and as their soft map
        the share of them that has a boundary at a pixel.
    gts  : one (H, W) map per annotator, of 0 and 1 in any dtype or of 0 and 255 in uint8; or a
        GroundTruth
    protocol : the bsds500 preset if None
    Returns PixelCounts, summed over annotators; an image without pixels gives zeros.
    Raises ShapeError if sizes differ, DataError for NaN, values out of range, or no annotator.
    Source: confusion counts by definition; thresholds as in the official evaluation_bdry_image.m.
    """
    protocol = protocol or Protocol.preset("bsds500")
    gt_maps = annotated_maps(gts)
    if isinstance(pred, Prediction):
        same_shape(pred.shape, gt_maps.shape[1:])
        if pred.segs is not None:
            return _of_segmentations(pred.segs, gt_maps)
        pred = pred.boundary_map()
    soft = soft_map(pred)
    same_shape(soft.shape, gt_maps.shape[1:])
    soft = prepare(soft, protocol)
    thresholds = protocol.threshold_array()
    tp, fp, fn, tn = _summed(soft, gt_maps, protocol.cuts())
    return PixelCounts(thresholds, tp, fp, fn, tn, _abs_error(soft, gt_maps))


def _of_segmentations(segs: tuple[NDArray[np.int32], ...], gt_maps: Bool) -> PixelCounts:
    for seg in segs:
        same_shape(seg.shape, gt_maps.shape[1:])
    bmaps = np.stack([seg2bdry(seg) for seg in segs])
    tp, fp, fn, tn = np.hstack([_summed(bmap, gt_maps, np.array([1.0])) for bmap in bmaps])
    error = _abs_error(bmaps.mean(axis=0), gt_maps)
    return PixelCounts(np.arange(1.0, len(segs) + 1), tp, fp, fn, tn, error)


def _summed(soft: NDArray[Any], gt_maps: Bool, thresholds: NDArray[np.float64]) -> I8:
    """tp, fp, fn, tn as i8 (4, T), summed over annotators."""
    return np.sum([confusion(soft, gt, thresholds) for gt in gt_maps], axis=0)


def _abs_error(soft: NDArray[Any], gt_maps: Bool) -> NDArray[np.float64]:
    """Sum of |soft - gt| over pixels and annotators; exact up to one division for integers."""
    if soft.dtype == np.bool_:
        soft = soft.view(np.uint8) * np.uint8(255)
    top = 1 if soft.dtype.kind == "f" else int(np.iinfo(soft.dtype).max)
    values = soft.astype(np.float64 if top == 1 else np.int64)
    total = sum(np.where(gt, top - values, values).sum() for gt in gt_maps)
    return np.array(total / top)
