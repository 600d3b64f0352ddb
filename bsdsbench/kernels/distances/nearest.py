"""Many-to-one matching at all thresholds: a pixel counts if any pixel of the other map is near.

Home-made scripts do this with a distance transform. It is not the benchmark, because any number of
predictions may share one ground-truth pixel.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, Bool
from bsdsbench.kernels.jit import kernel


def count_steps(
    start: I8,
    pixel: I4,
    added: Bool,
    annotators: I8,
    close: Bool,
    shape: tuple[int, ...],
    dy: I8,
    dx: I8,
) -> I8:
    """Count the pixels that have a pixel of the other map within the radius, after each of n steps.

    start int64 (n + 1,), pixel int32, added bool (changes,): step k adds the pixel with the flat
        index pixel[e] to the predicted map, or removes it, e from start[k] to start[k + 1] - 1.
    annotators int64 (H * W,): number of annotators who marked each pixel.
    close bool (H * W,): True if a marked pixel lies within the radius of the pixel.
    shape: rows H and columns W.
    dy, dx int64 (offsets,): rows and columns to all pixels within the radius, including (0, 0).

    Returns int64 (3, n): marked pixels near a predicted one, summed over annotators; predicted
    pixels near a marked one; and all predicted pixels.
    """
    counts = np.empty((3, start.size - 1), np.int64)
    n_near = np.zeros(shape, np.int32)
    _count_steps(start, pixel, added, annotators, close, dy, dx, n_near, counts)
    return counts


@kernel(_nrt=False)
def _count_steps(start, pixel, added, annotators, close, dy, dx, n_near, counts):
    """Write the counts of `count_steps` into `counts`, int64 (3, n).

    start int64 (n + 1,), pixel int32, added bool (changes,): step k adds the pixel with the flat
        index pixel[e] to the predicted map, or removes it, e from start[k] to start[k + 1] - 1.
    annotators int64 (H * W,): number of annotators who marked each pixel.
    close bool (H * W,): True if a marked pixel lies within the radius of the pixel.
    dy, dx int64 (offsets,): rows and columns to all pixels within the radius.
    n_near int32 (H, W): work space, 0 on entry. The number of predicted pixels within the radius of
        each pixel.
    """
    (rows, cols), n = n_near.shape, start.size - 1
    matched_gt, matched_pred, total_pred = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        for e in range(start[k], start[k + 1]):
            p = pixel[e]
            change = 1 if added[e] else -1
            total_pred += change
            matched_pred += change * close[p]
            y, x = p // cols, p % cols
            for d in range(dy.size):
                v, u = y + dy[d], x + dx[d]
                if 0 <= v < rows and 0 <= u < cols:
                    before = n_near[v, u]
                    n_near[v, u] = before + change
                    if (before == 0) != (before + change == 0):
                        matched_gt += change * annotators[v * cols + u]
        counts[0, k], counts[1, k], counts[2, k] = matched_gt, matched_pred, total_pred
