"""Boundary benchmark of one image: which predicted boundary pixels have a human counterpart.

At each threshold the prediction becomes a map of boundary pixels, thinned to one pixel. The map is
matched one to one with every annotator's boundaries, within max_dist_px pixels, at the least cost
(bsdsbench.kernels.matching). Recall counts the ground-truth pixels matched, summed over
annotators; precision counts the predicted pixels matched with at least one annotator.

Everything here takes arrays and returns counts or maps; nothing touches a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.checks import annotated_maps, binary_map, same_shape, soft_map
from bsdsbench.core.errors import DataError
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.labels import seg2bdry
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import BoundaryCounts, frozen
from bsdsbench.core.softmap import prepare
from bsdsbench.kernels import thinning
from bsdsbench.kernels.graph import outlier_cost
from bsdsbench.kernels.matching import match_maps, match_steps
from bsdsbench.kernels.thresholding import levels
from bsdsbench.metrics.whole_image import with_whole_image

Bool = NDArray[np.bool_]
SMALLEST = float(np.nextafter(0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A one-to-one matching of two boundary maps.

    pred_match, gt_match : i8 (H, W), the flat (row-major) index of the partner in the other map,
        -1 where there is none
    cost      : sum of round(100 distance) over the pairs + C (n_pred + n_gt - n_matched), with
        C = ceil(100 * 100 * max_dist_px), the official objective (at least 1)
    n_matched : number of pairs
    """

    pred_match: NDArray[np.int64]
    gt_match: NDArray[np.int64]
    cost: int
    n_matched: int


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryMatchMaps:
    """Which pixels are matched at one threshold, for overlays. All bool, read-only.

    true_pred, false_pred : (H, W), predicted pixels matched with some annotator, with none
    matched_gt, missed_gt : (A, H, W), each annotator's pixels that are matched, that are not
    """

    true_pred: Bool
    false_pred: Bool
    matched_gt: Bool
    missed_gt: Bool


def boundary_counts(
    pred: NDArray[Any] | Prediction,
    gts: Sequence[NDArray[Any]] | GroundTruth,
    protocol: Protocol | None = None,
) -> BoundaryCounts:
    """Matched and total boundary pixels of one image at every threshold of the protocol.

    pred : (H, W) soft map of uint8 (value/255), uint16 (value/65535), bool, or float in [0, 1]; or
        a Prediction. Segmentations have the thresholds 1 .. n instead of the protocol's.
    gts  : one (H, W) map per annotator, of 0 and 1 in any dtype or of 0 and 255 in uint8; or a
        GroundTruth
    protocol : the bsds500 preset if None
    Returns BoundaryCounts; maps without a boundary pixel give zeros.
    Raises ShapeError if sizes differ, DataError for NaN, values out of range, or no annotator.
    Source: official evaluation_bdry_image.m and correspondPixels.
    """
    protocol = protocol or Protocol.preset("bsds500")
    gt_maps = annotated_maps(gts)
    thresholds, (start, pixel, added) = threshold_events(pred, gt_maps.shape[1:], protocol)
    radius = protocol.radius(gt_maps.shape[1:])
    matched_gt, matched_pred = match_steps(start, pixel, added, gt_maps, radius)
    present = np.concatenate([[0], np.cumsum(np.where(added, 1, -1))])
    total_gt = np.full(thresholds.size, np.count_nonzero(gt_maps))
    counts = BoundaryCounts(
        thresholds, matched_gt[::-1], total_gt, matched_pred[::-1], present[start[:0:-1]]
    )
    segs = isinstance(pred, Prediction) and pred.segs is not None
    return with_whole_image(counts, gt_maps) if protocol.whole_image and not segs else counts


def match_boundaries(bmap: NDArray[Any], gt: NDArray[Any], max_dist_px: float) -> Match:
    """Match two boundary maps one to one at the least cost.

    bmap, gt : (H, W) maps of 0 and 1 in any dtype, or of 0 and 255 in uint8, taken as they are
        (no thinning)
    max_dist_px : largest distance of a pair in pixels
    Maps without a boundary pixel have no pairs. Raises ShapeError if the sizes differ, DataError
    for other values or a negative distance.
    Source: official correspondPixels; the optimum, where that program is randomised.
    """
    bmap, gt = binary_map(bmap, "prediction"), binary_map(gt, "ground truth")
    same_shape(bmap.shape, gt.shape)
    if not 0 <= max_dist_px < np.inf:
        raise DataError(f"max_dist_px {max_dist_px}: expected pixels, 0 or more")
    pred_at, gt_at = match_maps(bmap, gt, max_dist_px)
    pred_match, gt_match = np.full(bmap.size, -1), np.full(gt.size, -1)
    pred_match[pred_at], gt_match[gt_at] = gt_at, pred_at
    (row, col), (gt_row, gt_col) = (np.divmod(at, max(bmap.shape[1], 1)) for at in (pred_at, gt_at))
    unpaired = np.count_nonzero(bmap) + np.count_nonzero(gt) - pred_at.size
    cost = np.rint(100 * np.hypot(row - gt_row, col - gt_col)).sum()
    return Match(
        frozen(pred_match.reshape(bmap.shape), np.int64),
        frozen(gt_match.reshape(gt.shape), np.int64),
        int(cost) + outlier_cost(max_dist_px) * int(unpaired),
        int(pred_at.size),
    )


def boundary_match_maps(
    pred: NDArray[Any] | Prediction,
    gts: Sequence[NDArray[Any]] | GroundTruth,
    protocol: Protocol | None,
    threshold: float,
) -> BoundaryMatchMaps:
    """The pixels that `boundary_counts` counts at one threshold.

    `threshold` is one of the protocol's, or any in (0, 1], for segmentations a number 1 .. n; the
    rest as there. The sums of true_pred and matched_gt are the counts matched_pred and matched_gt
    at that threshold.
    """
    protocol = protocol or Protocol.preset("bsds500")
    gt_maps = annotated_maps(gts)
    shape = gt_maps.shape[1:]
    if isinstance(pred, Prediction) and pred.segs is not None:
        if threshold not in range(1, len(pred.segs) + 1):
            raise DataError(f"threshold {threshold:g}: expected a number 1 .. {len(pred.segs)}")
        pred = Prediction(pred.image_id, segs=(pred.segs[int(threshold) - 1],))
    elif threshold:
        protocol = protocol.replace(thresholds=(threshold,))
    elif protocol.operator == ">":
        protocol = protocol.replace(thresholds=(SMALLEST,), operator=">=")
    if threshold == 0 and protocol.whole_image:
        bmap = np.ones(shape, bool)
    else:
        _, (_, pixel, _) = threshold_events(pred, shape, protocol)
        bmap = np.zeros(shape, bool)
        bmap.flat[pixel] = True
    matched_pred, matched_gt = np.zeros(shape, bool), np.zeros(gt_maps.shape, bool)
    for annotator, gt in enumerate(gt_maps):
        pred_at, gt_at = match_maps(bmap, gt, protocol.radius(shape), annotator)
        matched_pred.flat[pred_at] = True
        matched_gt[annotator].flat[gt_at] = True
    maps = (matched_pred, bmap & ~matched_pred, matched_gt, gt_maps & ~matched_gt)
    return BoundaryMatchMaps(*(frozen(m, np.bool_) for m in maps))


def thin(bmap: NDArray[Any]) -> Bool:
    """Thin a boundary map until it is stable, as MATLAB's bwmorph(bmap, 'thin', Inf).

    bmap : (H, W) of 0 and 1 in any dtype, or of 0 and 255 in uint8
    Returns a new (H, W) bool map; an empty map gives an empty map. Raises ShapeError unless 2-D,
    DataError for other values.
    Source: Guo and Hall 1989; Lam, Lee and Suen 1992.
    """
    return thinning.thin(binary_map(bmap, "boundary map"))


def threshold_events(
    pred: NDArray[Any] | Prediction, shape: tuple[int, ...], protocol: Protocol
) -> tuple[NDArray[np.float64], thinning.Events]:
    """Increasing thresholds, and the changes of the thinned map from the highest downwards."""
    if isinstance(pred, Prediction):
        same_shape(pred.shape, shape)
        if pred.segs is not None:
            for seg in pred.segs:
                same_shape(seg.shape, shape)
            bmaps = [seg2bdry(seg) for seg in pred.segs]
            if protocol.thin:
                bmaps = [thinning.thin(bmap) for bmap in bmaps]
            return np.arange(1.0, len(bmaps) + 1), thinning.stack_events(np.stack(bmaps))
        pred = pred.boundary_map()
    soft = soft_map(pred)
    same_shape(soft.shape, shape)
    start = int(protocol.whole_image)  # that row needs no matching
    level = levels(prepare(soft, protocol), protocol.cuts()[start:])
    thresholds = protocol.threshold_array()[start:]
    return thresholds, thinning.thinning_events(level, thresholds.size, protocol.thin)
