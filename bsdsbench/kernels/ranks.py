"""Cumulative counts of positives and negatives at every distinct score, the highest score first.

`partition_scores` does not branch on the class of a sample, because mispredicted branches would
double its time. The caller allocates the outputs.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def partition_scores(positive, negative, scores, parted):
    """Copy the scores of positives to the front of `parted`, and those of negatives to its back.

    positive, negative bool (n,): the samples of each class. Scores of neither class are left out.
    scores float64 (n,).
    parted float64 (n + 1,): receives the positives in their order, and the negatives in reverse
        order. The extra element is needed because each score is written at both ends, and only one
        end then advances.

    Returns the end of the positives, which begin at 0, and the start of the negatives in `parted`.
    """
    positives_end, negatives_start = 0, parted.size
    for sample in range(scores.size):
        parted[positives_end] = parted[negatives_start - 1] = scores[sample]
        positives_end += np.int64(positive[sample])
        negatives_start -= np.int64(negative[sample])
    return positives_end, negatives_start


@kernel
def merge_levels(pos, neg, thresholds, tp, fp):
    """Count the positives (tp) and negatives (fp) at or above every distinct score.

    pos, neg float64: the scores of each class, in ascending order.
    thresholds float64, tp and fp int64 (n + 1,): receive the points of the curve. The first is
        (+inf, 0, 0), where nothing is predicted positive. Each distinct score adds one, the highest
        first, whose threshold is the score: a score of +inf gives a second point at +inf.

    Returns the number of points, including the first.
    """
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    i, j = pos.size - 1, neg.size - 1  # the next score of each class, from the highest down
    point = 0  # index of the last point
    while i >= 0 or j >= 0:
        # Take the higher of the next scores, from both classes if they are equal
        if i >= 0 and j >= 0:
            level = max(pos[i], neg[j])
            i, j = i - (pos[i] == level), j - (neg[j] == level)
        elif i >= 0:
            level, i = pos[i], i - 1
        else:
            level, j = neg[j], j - 1
        # A new point, unless the last one has this score
        point += (point == 0) | (thresholds[point] != level)
        # Adding 0.0 turns -0.0 into 0.0
        thresholds[point], tp[point], fp[point] = level + 0.0, pos.size - 1 - i, neg.size - 1 - j
    return point + 1
