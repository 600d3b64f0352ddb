"""Sums per label: pixels that two label maps share, and distances between outlines.

Label maps are (H, W) int32, below 0 for pixels without a label.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def shared(pred, gt, n):
    """Pixels of each label in both maps, in pred, in gt: i8 (n, 3). Flat maps."""
    out = np.zeros((n, 3), np.int64)
    for p in range(pred.size):
        a, b = pred[p], gt[p]
        if a >= 0:
            out[a, 1] += 1
            if a == b:
                out[a, 0] += 1
        if b >= 0:
            out[b, 2] += 1
    return out


@kernel
def shared_within(pred, gt, distance, limits, n):
    """`shared` among the pixels with a distance up to each limit: i8 (len(limits), n, 3)."""
    out = np.zeros((limits.size, n, 3), np.int64)
    for p in range(pred.size):
        a, b, d = pred[p], gt[p], distance[p]
        for i in range(limits.size):
            if d <= limits[i]:
                if a >= 0:
                    out[i, a, 1] += 1
                    if a == b:
                        out[i, a, 0] += 1
                if b >= 0:
                    out[i, b, 2] += 1
    return out


@kernel
def confusion_table(pred, gt, n):
    """Pixels of ground-truth label i that are predicted as j: i8 (n + 1, n + 1), last: no label."""
    out = np.zeros((n + 1, n + 1), np.int64)
    for p in range(pred.size):
        a = pred[p] if pred[p] >= 0 else n
        b = gt[p] if gt[p] >= 0 else n
        out[b, a] += 1
    return out


@kernel
def within(start, distance, weight, limits):
    """Sum of the weights of each label's sites with a distance up to each limit: f8 (n, limits)."""
    n = start.size - 1
    out = np.zeros((n, limits.size))
    for k in range(n):
        for i in range(start[k], start[k + 1]):
            for j in range(limits.size):
                if distance[i] <= limits[j]:
                    out[k, j] += weight[i]
    return out


@kernel
def totals(start, distance, alpha):
    """Of each label's sites: the sum and the largest of d, and the sum of 1/(1 + alpha d^2).

    f8 (n, 3); 0, -inf and 0 where there is no site.
    """
    n = start.size - 1
    out = np.zeros((n, 3))
    for k in range(n):
        out[k, 1] = -np.inf
        for i in range(start[k], start[k + 1]):
            d = distance[i]
            out[k, 0] += d
            out[k, 1] = max(out[k, 1], d)
            out[k, 2] += 1.0 / (1.0 + alpha * d * d)
    return out


@kernel
def quantiles(a_start, a, b_start, b, q):
    """The q-quantile of each label's a, of its b, and of both lists together: f8 (n, 3).

    Linear between the two nearest ranks, as numpy's default; NaN of an empty list.
    """
    n = a_start.size - 1
    out = np.full((n, 3), np.nan)
    for k in range(n):
        mine = a[a_start[k] : a_start[k + 1]]
        other = b[b_start[k] : b_start[k + 1]]
        out[k, 0] = _quantile(mine, q)
        out[k, 1] = _quantile(other, q)
        out[k, 2] = _quantile(np.concatenate((mine, other)), q)
    return out


@kernel
def _quantile(values, q):
    if values.size == 0:
        return np.nan
    rank = q * (values.size - 1)
    low = int(np.floor(rank))
    if low + 1 >= values.size:
        return values.max()
    parts = np.partition(values, low)
    below, above = parts[low], parts[low + 1 :].min()
    if below == above:  # also of two infinite ones
        return below
    return below + (rank - low) * (above - below)
