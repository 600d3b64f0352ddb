"""Average precision of the predictions of several images, ranked together, for weighted sets."""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def hit_sums(image, score, hits, weights):
    """The precision of each hit, the largest from its rank on, summed: f8 (S, K).

    image, score : (L,) by falling score, of equal ones by image; hits : bool (L, K), by K rules;
    weights : i8 (S, N), how often each image is in each set. Several copies of an image follow each
    other where scores are equal. Divided by the number of true things a sum is the area under the
    precision-recall curve.
    """
    n_sets, n_rules, n = len(weights), hits.shape[1], len(image)
    out = np.zeros((n_sets, n_rules))
    for s in range(n_sets):
        total = 0
        for i in range(n):
            total += weights[s, image[i]]
        order = np.empty(total, np.int64)
        rank, first = 0, 0
        while first < n:
            last = first + 1
            while last < n and image[last] == image[first] and score[last] == score[first]:
                last += 1
            for _ in range(weights[s, image[first]]):
                for i in range(first, last):
                    order[rank] = i
                    rank += 1
            first = last
        for k in range(n_rules):
            true = 0
            for r in range(total):
                true += hits[order[r], k]
            best = 0.0
            for r in range(total - 1, -1, -1):
                best = max(best, true / (r + 1))
                if hits[order[r], k]:
                    out[s, k] += best
                    true -= 1
    return out
