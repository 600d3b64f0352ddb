"""Boundary maps that are ready to be matched: thinned, at every threshold, without void pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.images import (
    GroundTruth,
    Prediction,
    annotated_maps,
    same_shape,
)
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.transforms.maps import clean, prepare

if TYPE_CHECKING:
    from bsdsbench.kernels.thinning import Events


def truth_maps(gt: GroundTruth, protocol: Protocol) -> Bool:
    """Return the boundaries of every annotator, bool (A, H, W), thinned if `protocol.gt_thin`."""
    maps = annotated_maps(gt)
    if protocol.gt_thin:
        from bsdsbench.kernels.thinning import thin_each

        maps = thin_each(maps)
    return maps


def boundaries_of_segs(
    pred: Prediction, shape: tuple[int, ...], valid: Bool | None = None
) -> Bool | None:
    """Return the boundaries of a prediction's T segmentations, bool (T, H, W).

    Returns None if the prediction has another form, such as a soft map. Void pixels, False in
    `valid` (H, W), separate no segments. Raises ShapeError if the prediction does not have the
    (rows, columns) `shape`.
    """
    same_shape(pred.shape, shape)
    return np.stack([seg2bdry(s, valid) for s in pred.segs]) if pred.kind == "segs" else None


class ThresholdEvents(NamedTuple):
    """The changes of a thinned map as the threshold falls, one step per threshold.

    thresholds : float64 (T,), ascending
    events : the changes of each step; step 0 is the highest threshold
    size : int64 (T,), pixels of the map after each step
    """

    thresholds: F8
    events: Events
    size: I8


def threshold_events(
    pred: Prediction,
    shape: tuple[int, ...],
    protocol: Protocol,
    near: NDArray[np.uint64] | None = None,
    dropped: Bool | None = None,
    valid: Bool | None = None,
) -> ThresholdEvents:
    """Threshold and thin a prediction at all thresholds, as changes from one map to the next.

    shape: (rows, columns) of the ground truth; ShapeError is raised for another size.
    near uint64 (H, words) of `bits.pack`: changes of pixels whose bit is 0 may be left out. None:
        all changes are returned.
    dropped bool (H, W): pixels to remove after thinning, or None.
    valid bool (H, W): void pixels (False) are removed before thinning. None: there are none.

    Segmentations have the thresholds 1, 2, ... and a boundary map each. All other predictions are
    soft maps, cut at the protocol's thresholds; the threshold 0 of `protocol.whole_image` is left
    out, as it needs no matching.
    """
    from bsdsbench.kernels import thinning, thresholding

    size = None
    bmaps = boundaries_of_segs(pred, shape, valid)
    if valid is not None:  # also if a threshold of 0 takes every pixel
        dropped = ~valid if dropped is None else dropped | ~valid
    if bmaps is not None:
        thresholds = np.arange(1.0, len(bmaps) + 1)
        events = thinning.stack_events(thinning.thin_each(bmaps) if protocol.thin else bmaps)
    else:
        soft, start = pred.boundary_map(), int(protocol.whole_image)
        thresholds, cuts = protocol.threshold_array()[start:], protocol.cuts()[start:]
        if near is None or protocol.clean or dropped is not None:
            near = thinning.EVERYWHERE
        if protocol.invert or protocol.normalise or protocol.nms or valid is not None:
            soft = prepare(soft, protocol, valid)
        level = thresholding.levels(soft, cuts)  # (H, W): thresholds that each pixel reaches
        events, size = thinning.events_near(level, thresholds.size, protocol.thin, near)
        if protocol.clean:
            events = thinning.stack_events(clean(rebuild_maps(events, shape)))
            size = None
    if dropped is not None:
        events = _without_pixels(events, dropped)
        size = None
    if size is None:
        size = _size_after_steps(events)
    return ThresholdEvents(thresholds, events, size)


def _without_pixels(events: Events, dropped: Bool) -> Events:
    """Return the changes of the pixels that are False in `dropped` (H, W)."""
    from bsdsbench.kernels.thinning import Events

    is_kept = ~np.ravel(dropped)[events.pixel]
    n_kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    start = n_kept_before[events.start]
    return Events(start, events.pixel[is_kept], events.added[is_kept])


def _size_after_steps(events: Events) -> I8:
    """Return the number of pixels in the map after each of T steps, int64 (T,)."""
    n_entered_before = np.concatenate([[0], np.cumsum(events.added)])
    n_entered = n_entered_before[events.start]
    n_left = events.start - n_entered
    return (n_entered - n_left)[1:]


def rebuild_maps(events: Events, shape: tuple[int, ...]) -> Bool:
    """Rebuild the map at each threshold, bool (T, H, W) from the lowest to the highest.

    `events` are those of `threshold_events`, whose steps begin at the highest threshold, and
    `shape` is (H, W).
    """
    start, pixel, _ = events
    changed = np.zeros((start.size - 1, math.prod(shape)), bool)
    step_of_change = np.repeat(np.arange(len(changed)), np.diff(start))
    changed[step_of_change, pixel] = True
    maps = np.logical_xor.accumulate(changed)[::-1]
    return np.ascontiguousarray(maps).reshape(-1, *shape)


def whole_image_counts(gt_maps: Bool, valid: Bool | None = None) -> I8:
    """Return the counts of a prediction with every pixel on, int64 (4,), columns as in `matches`.

    `gt_maps` is (A, H, W). Every annotated pixel is matched, and every predicted pixel that any
    annotator drew. Void pixels, False in `valid` (H, W), are not predicted.
    """
    n_annotated = int(np.count_nonzero(gt_maps))
    n_drawn = int(np.count_nonzero(gt_maps.any(axis=0)))
    n_predicted = int(gt_maps[0].size if valid is None else np.count_nonzero(valid))
    return np.array([n_annotated, n_annotated, n_drawn, n_predicted])
