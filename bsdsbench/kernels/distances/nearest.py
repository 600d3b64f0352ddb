"""Many-to-one matching at all thresholds: a pixel counts if any other lies within the radius.

Home-made scripts do this with a distance transform. It is not the benchmark: any number of
predictions may share one ground-truth pixel.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def count_steps(start, pixel, added, annotators, close, rows, cols, dy, dx):
    """matched_gt, matched_pred and total_pred at each step of the events, each i8 (n,).

    start, pixel, added : the events, as from `thinning.thinning_events`, n steps
    annotators : i8 (rows * cols,), how many annotators marked a pixel
    close      : bool (rows * cols,), whether a marked pixel lies within the radius
    dy, dx     : offsets of all pixels within the radius, itself included
    """
    n = start.size - 1
    near = np.zeros(rows * cols, np.int32)  # predictions within the radius of each pixel
    matched_gt, matched_pred = np.empty(n, np.int64), np.empty(n, np.int64)
    total_pred = np.empty(n, np.int64)
    hits, right, total = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        for e in range(start[k], start[k + 1]):
            at = pixel[e]
            step = 1 if added[e] else -1
            total += step
            right += step * close[at]
            y, x = at // cols, at % cols
            for d in range(dy.size):
                v, u = y + dy[d], x + dx[d]
                if 0 <= v < rows and 0 <= u < cols:
                    there = v * cols + u
                    before = near[there]
                    near[there] = before + step
                    if (before == 0) != (before + step == 0):
                        hits += step * annotators[there]
        matched_gt[k], matched_pred[k], total_pred[k] = hits, right, total
    return matched_gt, matched_pred, total_pred
