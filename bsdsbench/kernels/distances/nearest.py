"""Many-to-one matching at all thresholds: a pixel counts if any pixel of the other map is near.

Home-made scripts do this with a distance transform. It is not the benchmark, because any number of
predictions may share one ground-truth pixel.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import I8, Bool, Events
from bsdsbench.kernels.jit import kernel


def count_steps(events: Events, annotators: I8, close: Bool, dy: I8, dx: I8) -> I8:
    """Count the pixels that have a pixel of the other map within the radius, after each of n steps.

    events: the changes of the predicted map.
    annotators (H, W): number of annotators who marked each pixel.
    close (H, W): True if a marked pixel lies within the radius of the pixel.
    dy, dx (offsets,): rows and columns to all pixels within the radius, including (0, 0).

    Returns (3, n): marked pixels near a predicted one, summed over annotators; predicted pixels
    near a marked one; and all predicted pixels.
    """
    counts = np.empty((3, events.start.size - 1), np.int64)
    n_near = np.zeros(annotators.shape, np.int32)
    _count_steps(events, annotators, close, dy, dx, n_near, counts)
    return counts


@kernel(_nrt=False)
def _count_steps(events, annotators, close, dy, dx, n_near, counts):
    """Write the numbers of near and of all pixels after each step of `events` into `counts`.

    annotators int64, close bool, dy, dx: as in `count_steps`.
    n_near int32 (H, W): work space, 0 on entry. The number of predicted pixels within the radius of
        each pixel.
    counts int64 (3, n): marked pixels near a predicted one, summed over annotators; predicted
        pixels near a marked one; and all predicted pixels.
    """
    (rows, cols), n = n_near.shape, counts.shape[1]
    matched_gt, matched_pred, total_pred = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        for e in range(events.start[k], events.start[k + 1]):
            y, x = events.pixel[e] // cols, events.pixel[e] % cols
            change = 1 if events.added[e] else -1
            total_pred += change
            matched_pred += change * close[y, x]
            for d in range(dy.size):
                v, u = y + dy[d], x + dx[d]
                if 0 <= v < rows and 0 <= u < cols:
                    before = n_near[v, u]
                    n_near[v, u] = before + change
                    if (before == 0) != (before + change == 0):
                        matched_gt += change * annotators[v, u]
        counts[0, k], counts[1, k], counts[2, k] = matched_gt, matched_pred, total_pred
