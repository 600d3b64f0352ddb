"""Counts of the scores of two classes at or above every distinct score, from the highest down.

No branch of `partition_scores` depends on a class, because a branch that the processor cannot
predict doubles the time. The caller allocates the outputs.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def partition_scores(positive, negative, scores, parted):
    """Copy the scores of positives to the front of `parted`, and those of negatives to its back.

    positive, negative bool (n,): which scores belong to each class. Scores that belong to neither
        are left out.
    scores float64 (n,): the scores.
    parted float64 (n + 1,): receives the positives in their order, and the negatives in reverse
        order. It has one element more than `scores`, because each score is written at both ends
        before it is known which of them keeps it.

    Returns two indices i and j: the positives are parted[:i], and the negatives are parted[j:].
    """
    i, j = 0, parted.size
    for k in range(scores.size):
        # Write at both ends; only the end that advances keeps the score
        parted[i] = parted[j - 1] = scores[k]
        i += np.int64(positive[k])
        j -= np.int64(negative[k])
    return i, j


@kernel
def merge_levels(pos, neg, thresholds, tp, fp):
    """Count the positives and negatives at or above every distinct score.

    pos, neg float64: the scores of each class, in ascending order.
    thresholds float64, tp and fp int64 (n + 1,): receive one point for each distinct score, the
        highest first. Its threshold is the score, and tp and fp are the numbers of positives and
        negatives at or above it. The first point is always (+inf, 0, 0), even if a score is +inf.

    Returns the number of points.
    """
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    i, j = pos.size - 1, neg.size - 1  # the next score of each class, from the highest down
    k = 0  # the last point
    while i >= 0 or j >= 0:
        if i >= 0 and j >= 0:
            level = max(pos[i], neg[j])
            i, j = i - (pos[i] == level), j - (neg[j] == level)
        elif i >= 0:
            level, i = pos[i], i - 1
        else:
            level, j = neg[j], j - 1
        k += (k == 0) | (thresholds[k] != level)  # a new point, unless the last has this score
        # + 0.0 turns -0 into 0
        thresholds[k], tp[k], fp[k] = level + 0.0, pos.size - 1 - i, neg.size - 1 - j
    return k + 1
