"""Many-to-one matching at all thresholds: a pixel counts if any other lies within the radius.

Home-made scripts do this with a distance transform. It is not the benchmark: any number of
predictions may share one ground-truth pixel.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def count_steps(start, pixel, added, annotators, close, rows, cols, dy, dx):
    """Count the pixels that have a pixel of the other map within the radius, at each of n steps.

    start, pixel, added : the changes of the predicted map, see `thinning.Events`
    annotators : int64 (rows * cols,), the number of annotators who marked a pixel
    close : bool (rows * cols,), whether a marked pixel lies within the radius
    dy, dx : offsets of all pixels within the radius, including (0, 0)
    Returns matched_gt (summed over annotators), matched_pred and total_pred, int64 (n,) each.
    """
    n = start.size - 1
    n_near = np.zeros(rows * cols, np.int32)  # predictions within the radius of each pixel
    matched_gt, matched_pred = np.empty(n, np.int64), np.empty(n, np.int64)
    total_pred = np.empty(n, np.int64)
    now_matched_gt, now_matched_pred, now_total = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        for e in range(start[k], start[k + 1]):
            p = pixel[e]
            change = 1 if added[e] else -1
            now_total += change
            now_matched_pred += change * close[p]
            y, x = p // cols, p % cols
            for d in range(dy.size):
                v, u = y + dy[d], x + dx[d]
                if 0 <= v < rows and 0 <= u < cols:
                    q = v * cols + u
                    before = n_near[q]
                    n_near[q] = before + change
                    if (before == 0) != (before + change == 0):
                        now_matched_gt += change * annotators[q]
        matched_gt[k], matched_pred[k], total_pred[k] = now_matched_gt, now_matched_pred, now_total
    return matched_gt, matched_pred, total_pred
