"""Kernels of curves: the upper convex hull of points, and average precision over images."""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Find the corners of the upper convex hull of n points, and return the number of corners, k.

    x, y float64 (n,): the points, sorted by x, then by y.
    corners int64 (n,): its first k elements receive the indices of the corners, ascending.

    Points on a line between two corners are left out. The method is Andrew's monotone chain.
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
    """Sum the interpolated precision over all hits, for S samples of the images (a bootstrap).

    The interpolated precision of a hit is the largest precision at its rank or a later one. The sum
    divided by the number of objects is the area under the interpolated precision-recall curve.

    image int (L,): index of the image of each of L predictions.
    score float64 (L,): in descending order; predictions with equal scores are sorted by image.
    hits bool (L, K): True if a prediction is a hit by each of K matching rules.
    weights int64 (S, N): copies of each of N images in each sample. Among predictions with equal
        scores, those of the same copy of an image stay together.

    Returns a float64 array (S, K) of sums, for each sample and each matching rule.
    """
    n_samples, n_rules, n = len(weights), hits.shape[1], len(image)
    sums = np.zeros((n_samples, n_rules))
    for s in range(n_samples):
        total = 0
        for i in range(n):
            total += weights[s, image[i]]
        order = np.empty(total, np.int64)  # the prediction at each rank of the sample
        rank, first = 0, 0
        while first < n:  # first : last are an image's predictions of one score
            last = first + 1
            while last < n and image[last] == image[first] and score[last] == score[first]:
                last += 1
            for _ in range(weights[s, image[first]]):
                for i in range(first, last):
                    order[rank] = i
                    rank += 1
            first = last
        for k in range(n_rules):
            n_hits = 0  # among the predictions up to a rank, at first the last one
            for r in range(total):
                n_hits += hits[order[r], k]
            best = 0.0  # the largest precision from rank r on
            for r in range(total - 1, -1, -1):
                best = max(best, n_hits / (r + 1))
                if hits[order[r], k]:
                    sums[s, k] += best
                    n_hits -= 1
    return sums
