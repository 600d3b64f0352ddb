"""Two classes of scores, each sorted, walked from the top. The caller allocates the outputs.

No branch here depends on a class or a score: one that cannot be foreseen doubles the time.
"""

from functools import cache

import numpy as np


def split(positive, negative, scores, out):
    """Positives to the front of `out` (n + 1,), negatives to its end; where they end and begin."""
    i, j = 0, out.size
    for k in range(scores.size):
        # Both are written; only the one whose end moves stays.
        out[i] = out[j - 1] = scores[k]
        i += np.int64(positive[k])
        j -= np.int64(negative[k])
    return i, j


def merge_levels(pos, neg, thresholds, tp, fp):
    """Count each class, f8 rising, at or above every distinct score, falling; how many points.

    Fills thresholds f8, tp and fp i8 (n + 1,); point 0 is +inf, 0, 0, also where a score is +inf.
    """
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    i, j, k = pos.size - 1, neg.size - 1, 0
    while i >= 0 or j >= 0:
        if i >= 0 and j >= 0:
            level = max(pos[i], neg[j])
            i, j = i - (pos[i] == level), j - (neg[j] == level)
        elif i >= 0:
            level, i = pos[i], i - 1
        else:
            level, j = neg[j], j - 1
        k += (k == 0) | (thresholds[k] != level)
        # + 0.0 makes -0 into 0
        thresholds[k], tp[k], fp[k] = level + 0.0, pos.size - 1 - i, neg.size - 1 - j
    return k + 1


@cache
def compiled():
    """Both, compiled. Up to 10,000 scores they are done sooner than numba is imported."""
    from bsdsbench.kernels.jit import kernel

    return kernel(split), kernel(merge_levels)
