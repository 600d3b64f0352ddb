"""Sums per label: pixels that two label maps share, and distances between outlines.

Label maps are (H, W) int32, below 0 for pixels without a label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.jit import kernel

F8 = NDArray[np.float64]


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


def quantiles(a_start: NDArray[np.int64], a: F8, b_start: NDArray[np.int64], b: F8, q: float) -> F8:
    """The q-quantile of each label's a, of its b, and of both lists together: f8 (n, 3).

    Linear between the two nearest ranks, as numpy's default; NaN of an empty list.
    """
    out = np.empty((a_start.size - 1, 3))
    for k, row in enumerate(out):
        mine, other = a[a_start[k] : a_start[k + 1]], b[b_start[k] : b_start[k + 1]]
        row[:] = [_quantile(x, q) for x in (mine, other, np.concatenate((mine, other)))]
    return out


def _quantile(values: F8, q: float) -> float:
    """In numpy: its partition would take a compiler 3 s."""
    if values.size == 0:
        return np.nan
    rank = q * (values.size - 1)
    low = int(rank)
    if low + 1 == values.size:
        return float(values.max())
    parts = np.partition(values, (low, low + 1))
    below, above = float(parts[low]), float(parts[low + 1])
    if below == above:  # also of two infinite ones
        return below
    return below + (rank - low) * (above - below)
