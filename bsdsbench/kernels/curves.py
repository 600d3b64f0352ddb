"""Kernels for curves: upper convex hull of points, and bootstrap of average precision."""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Find the vertices of the upper convex hull of n points, and return their number.

    x, y float64 (n,): the points, sorted by x, then by y.
    corners int64 (n,): its first elements receive the indices of the vertices, ascending.

    Points on a line between two vertices are left out. The method is Andrew's monotone chain.
    """
    n_vertices = 0
    for point in range(x.size):
        while n_vertices >= 2:
            before, last = corners[n_vertices - 2], corners[n_vertices - 1]
            last_dx, last_dy = x[last] - x[before], y[last] - y[before]
            point_dx, point_dy = x[point] - x[before], y[point] - y[before]
            # Keep the last vertex if it lies above the line from the one before to the new point
            if last_dx * point_dy < last_dy * point_dx:
                break
            n_vertices -= 1
        corners[n_vertices] = point
        n_vertices += 1
    return n_vertices


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
    for sample in range(n_samples):
        n_drawn = 0
        for i in range(n):
            n_drawn += weights[sample, image[i]]
        order = np.empty(n_drawn, np.int64)  # the prediction at each rank of the sample
        n_ordered, first = 0, 0
        while first < n:  # first : last are one image's predictions with equal scores
            last = first + 1
            while last < n and image[last] == image[first] and score[last] == score[first]:
                last += 1
            for _ in range(weights[sample, image[first]]):
                for i in range(first, last):
                    order[n_ordered] = i
                    n_ordered += 1
            first = last
        for rule in range(n_rules):
            n_hits = 0  # hits up to a rank, starting at the last rank
            for rank in range(n_drawn):
                n_hits += hits[order[rank], rule]
            best_precision = 0.0  # the largest precision at this rank or later
            for rank in range(n_drawn - 1, -1, -1):
                best_precision = max(best_precision, n_hits / (rank + 1))
                if hits[order[rank], rule]:
                    sums[sample, rule] += best_precision
                    n_hits -= 1
    return sums
