"""Kernels for curves: upper convex hull of points, and bootstrap of average precision."""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Find the vertices of the upper convex hull of n points, and return their number, k.

    x, y float64 (n,): the points, sorted by x, then by y.
    corners int64 (n,): its first k elements receive the indices of the vertices, ascending.

    Points on a line between two vertices are left out. The method is Andrew's monotone chain.
    """
    k = 0
    for c in range(x.size):
        while k >= 2:
            a, b = corners[k - 2], corners[k - 1]
            # Keep b if it lies above the line from a to c
            if (x[b] - x[a]) * (y[c] - y[a]) < (y[b] - y[a]) * (x[c] - x[a]):
                break
            k -= 1
        corners[k] = c
        k += 1
    return k


@kernel
def sum_interpolated_precision(image, score, hits, weights):
    """Sum the interpolated precision over all true positives, for each of S bootstrap samples.

    The interpolated precision of a true positive (hit) is the largest precision at its rank or any
    later rank. The sum divided by the number of objects is the average precision.

    image int (L,): index of the image of each of L predictions.
    score float64 (L,): in descending order; predictions with equal scores are sorted by image.
    hits bool (L, K): whether each prediction is a true positive by each of K matching rules.
    weights int64 (S, N): how often each of N images occurs in each bootstrap sample. Among
        predictions with equal scores, those of the same copy of an image stay together.

    Returns the sums, float64 (S, K).
    """
    n_samples, n_rules, n = len(weights), hits.shape[1], len(image)
    sums = np.zeros((n_samples, n_rules))
    for s in range(n_samples):
        total = 0
        for i in range(n):
            total += weights[s, image[i]]
        order = np.empty(total, np.int64)  # the prediction at each rank of the sample
        rank, first = 0, 0
        while first < n:  # first : last are one image's predictions with equal scores
            last = first + 1
            while last < n and image[last] == image[first] and score[last] == score[first]:
                last += 1
            for _ in range(weights[s, image[first]]):
                for i in range(first, last):
                    order[rank] = i
                    rank += 1
            first = last
        for k in range(n_rules):
            n_hits = 0  # hits up to rank r, starting at the last rank
            for r in range(total):
                n_hits += hits[order[r], k]
            best = 0.0  # the largest precision at rank r or later
            for r in range(total - 1, -1, -1):
                best = max(best, n_hits / (r + 1))
                if hits[order[r], k]:
                    sums[s, k] += best
                    n_hits -= 1
    return sums
