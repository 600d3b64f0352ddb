"""Many-to-one matching, a wrong implementation of the benchmark that `explain` tests for.

A predicted pixel is correct if any annotated pixel lies within the tolerance; an annotated pixel is
detected if any predicted pixel does. Without the one-to-one rule, thick edges and double responses
cost nothing: HED's first 40 maps score 0.8038 instead of 0.7657.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.boundary import threshold_events, truth_maps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import MatchCounts


def many_to_one_counts(
    pred: Map | Prediction, gts: Sequence[Map] | GroundTruth, protocol: Protocol
) -> MatchCounts:
    """Count the boundary pixels of an image, where a pixel may be matched any number of times.

    Arguments, result and errors are those of `boundary_counts`: counts (T, 4) at T thresholds,
    summed over annotators. A predicted pixel is matched if a pixel of any annotator lies within the
    tolerance. Maps without a boundary pixel give zeros.
    """
    from scipy import ndimage

    from bsdsbench.kernels.distances.distances import count_near_pixels

    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps = truth_maps(truth, protocol)  # (A, H, W)
    rows, cols = gt_maps.shape[1:]
    radius = protocol.radius((rows, cols))
    thresholds, events, _ = threshold_events(
        pred, (rows, cols), protocol, valid=truth.parts.get("valid")
    )
    marked = gt_maps.any(axis=0)
    close = np.zeros(marked.shape, bool)
    if marked.any():
        close = ndimage.distance_transform_edt(~marked) <= with_tolerance(radius)
    reach = int(with_tolerance(radius))
    dy, dx = (a.ravel() for a in np.mgrid[-reach : reach + 1, -reach : reach + 1])
    inside = np.hypot(dy, dx) <= with_tolerance(radius)
    annotators = gt_maps.sum(axis=0, dtype=np.int64)
    n_near, counted = np.zeros(marked.shape, np.int32), np.empty((3, thresholds.size), np.int64)
    count_near_pixels(events, annotators, close, dy[inside], dx[inside], n_near, counted)
    matched_gt, matched_pred, total_pred = counted
    total_gt = np.full(thresholds.size, annotators.sum())
    # Events begin at the highest threshold, counts at the lowest
    counts = (matched_gt[::-1], total_gt, matched_pred[::-1], total_pred[::-1])
    return MatchCounts(thresholds, np.column_stack(counts))
