"""Where the score of one image is lost: missed and false pixels by class at every threshold.

With r the tolerance, a missed pixel is `suppressed` if it is matched at the lowest threshold of the
protocol (the row of the whole image, which matches everything, is not one); else `near` if a false
pixel lies within 2r; else `absent`. A false pixel is a `duplicate` if an annotated pixel lies
within r, all such being taken; `near` within 2r; else `background`. An annotated pixel's agreement
is how many other annotators drew a pixel that it is matched with: it is drawn by one `alone`, by
`some`, or by `all`. The idea is that of TIDE (Bolya et al., ECCV 2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.metrics.boundary_maps import threshold_events, truth_maps, whole_image_counts
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    DrawnSteps,
    changes_of,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import MatchCounts
from bsdsbench.scores.error_scores import FALSE, MISSED

#: Codes of the classes in `pixel_classes`: missed pixels first
ERROR_CODES = {name: code for code, name in enumerate((*MISSED, *FALSE), 4)}


def pixel_classes(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol,
    *,
    errors: bool,
    dropped: Bool | None = None,
) -> dict[str, DrawnSteps]:
    """Return `steps`: what each pixel is at every threshold but 0, as `boundary_counts` counts it.

    With `errors` false and missed pixels have the `ERROR_CODES`. A pixel that is predicted is not
    shown as missed; of several annotators' classes the first in MISSED is shown.
    """
    from bsdsbench.kernels.bits import unpack
    from bsdsbench.kernels.matching.matching import prepare_truth
    from bsdsbench.kernels.matching.unmatched import match_by_pixel, prepare_surroundings

    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")
    shape = gt_maps.shape[1:]
    radius = protocol.radius(shape)
    target = prepare_truth(gt_maps, radius)
    around = prepare_surroundings(target, radius)
    thresholds, events, size = threshold_events(pred, shape, protocol, dropped=dropped, valid=valid)
    steps = match_by_pixel(*events, target, around)
    pred_pixel = np.flatnonzero(steps.row_of >= 0)
    false = steps.false[steps.row_of.flat[pred_pixel]]
    pixel = np.union1d(pred_pixel, target.pixel)
    row_of_gt, row_of_pred = (np.searchsorted(pixel, p) for p in (target.pixel, pred_pixel))
    missed, reached, near_false = ~steps.gt_matched, steps.is_reached[:, None], steps.near_false
    kinds = (missed & np.where(reached, missed, 0), near_false, missed & ~near_false)
    classes = np.zeros((pixel.size, thresholds.size), np.uint8)
    for code, kind in reversed(list(enumerate(kinds, 4))):  # the first is written last
        bits = np.zeros((pixel.size, missed.shape[1]), np.uint64)
        np.bitwise_or.at(bits, row_of_gt, kind)
        classes[unpack(bits, thresholds.size)] = code if errors else MISSED_PIXEL
    row, col = np.divmod(pred_pixel, shape[1])
    inside = [unpack(near, shape[1])[row, col] for near in (target.near, around.near)]
    zone = np.select(inside, [7, 8], 9).astype(np.uint8) if errors else np.uint8(FALSE_PIXEL)
    predicted = classes[row_of_pred]
    predicted = np.where(unpack(false, thresholds.size), np.reshape(zone, (-1, 1)), predicted)
    classes[row_of_pred] = predicted
    row_of_matched = np.searchsorted(pixel, steps.matched_pixel)
    matched = unpack(steps.matched, thresholds.size)
    classes[row_of_matched] = np.where(matched, np.uint8(MATCHED_PIXEL), classes[row_of_matched])
    forwards = slice(None, None, 1 if steps.backwards else -1)
    matched_gt, total_gt = steps.matched_gt[forwards], target.pixel.size
    counted = (
        np.full_like(matched_gt, total_gt),
        np.count_nonzero(matched, axis=0)[forwards],
        size[::-1],
    )
    matches = np.stack([matched_gt, *counted], axis=-1)
    changes = changes_of(classes[:, forwards], shape, pixel)
    return {"steps": DrawnSteps(thresholds, matches, *changes, areas=False)}


def boundary_errors(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol | str | None = None,
    *,
    dropped: Bool | None = None,
) -> MatchCounts:
    """Count missed, false and matched boundary pixels of one image by class.

    The classes add up to the missed and the false pixels of `boundary_counts` at every threshold.

    Parameters
    ----------
    pred, gts, protocol, dropped
        As for `boundary_counts`.

    Returns
    -------
    MatchCounts
        Those of `boundary_counts`, and i8 `missed` (T, 3: suppressed, near, absent), `false` (T, 3:
        duplicate, near, background), `agreement_pixels` (3: alone, some, all) and
        `agreement_matched` (T, 3), summed over annotators as total_gt is. Two annotators have no
        pixels of `some`, a single one has none of any agreement.

    Raises
    ------
    ShapeError, DataError
        As `boundary_counts`.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line, pred = np.zeros((20, 30)), np.zeros((20, 30))
    >>> line[10] = 1
    >>> pred[10, :9], pred[10, 9:20], pred[12, 25:28] = 0.9, 0.3, 0.8
    >>> errors = bb.boundary_errors(pred, [line], bb.Protocol(thresholds=(0.2, 0.5), max_dist_px=1))
    >>> errors.missed.tolist(), errors.false.tolist()
    ([[0, 3, 7], [11, 3, 7]], [[0, 3, 0], [0, 3, 0]])
    """
    from bsdsbench.kernels.bits import unpack
    from bsdsbench.kernels.matching.matching import prepare_truth
    from bsdsbench.kernels.matching.unmatched import classify_steps, prepare_surroundings

    pred, truth, protocol = Prediction.of(pred), GroundTruth.of(gts), Protocol.load(protocol)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")
    shape = gt_maps.shape[1:]
    target = prepare_truth(gt_maps, protocol.radius(shape))
    around = prepare_surroundings(target, protocol.radius(shape))
    thresholds, events, size = threshold_events(pred, shape, protocol, around.near, dropped, valid)
    errors = classify_steps(*events, size, target, around)
    total_gt = np.full(thresholds.size, target.pixel.size)
    matches = np.column_stack([errors.matched_gt, total_gt, errors.matched_pred, size])
    agreement_pixels = np.bincount(around.agreement + 1, minlength=4)[1:]
    rows = [t[::-1] for t in (matches, errors.missed, errors.false, errors.agreement_matched)]
    if protocol.whole_image and pred.kind != "segs":  # every annotated pixel is matched there
        thresholds, first = np.r_[0.0, thresholds], whole_image_counts(gt_maps, valid)
        counted = np.ones(shape, np.bool_) if valid is None else valid
        within = [
            np.count_nonzero(unpack(b, shape[1]) & counted) for b in (target.near, around.near)
        ]
        false = np.diff([first[2], *within, first[3]])
        whole = map(np.asarray, (first, (0, 0, 0), false, agreement_pixels))
        rows = [np.vstack([row, table]) for row, table in zip(whole, rows, strict=True)]
    matches, missed, false, agreement_matched = rows
    return MatchCounts(
        thresholds,
        matches,
        missed=missed,
        false=false,
        agreement_pixels=agreement_pixels,
        agreement_matched=agreement_matched,
    )
