"""Scores of many resampled curves at once: the rules of `aggregate`, one row per resample.

Every row gives the same bits as `aggregate` gives for that curve alone, as the operations and their
order are the same; tests hold the two together.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def _ratio(a, b):
    return a / b if b != 0.0 else 0.0


@kernel
def _f(p, r):
    return _ratio(2.0 * p * r, p + r)


@kernel
def best_f(precision, recall, steps):
    """Largest F of each curve with linear steps between neighbours: (B, T) twice -> (B,).

    F grows with both precision and recall, so a segment whose better ends together do not beat the
    best so far is left out; the margin is far above rounding.
    """
    count, size = precision.shape
    out = np.zeros(count)
    for b in range(count):
        best = _f(precision[b, 0], recall[b, 0]) if size == 1 else 0.0
        for k in range(size - 1):
            p0, p1 = precision[b, k], precision[b, k + 1]
            r0, r1 = recall[b, k], recall[b, k + 1]
            if _f(max(p0, p1), max(r0, r1)) * (1.0 + 1e-9) < best:
                continue
            for s in steps:
                p = p1 * s + p0 * (1.0 - s)
                r = r1 * s + r0 * (1.0 - s)
                best = max(best, _f(p, r))
        out[b] = best
    return out


@kernel
def _distinct(keys, values, x, y):
    """Sorted distinct keys with the value of the first of equals, into x and y; how many."""
    n = 0
    for i in np.argsort(keys, kind="mergesort"):
        if n == 0 or keys[i] != x[n - 1]:
            x[n], y[n] = keys[i], values[i]
            n += 1
    return n


@kernel
def _linear(x, y, n, at):
    """y at `at` on the line through n points; 0 right of the last, y[0] left of the first."""
    if at > x[n - 1]:
        return 0.0
    j = np.searchsorted(x[:n], at, side="right") - 1
    if j < 0:
        return y[0]
    if j == n - 1 or x[j] == at:
        return y[j]
    slope = (y[j + 1] - y[j]) / (x[j + 1] - x[j])
    return slope * (at - x[j]) + y[j]


@kernel
def precision_at(recall, precision, levels):
    """Precision of each curve at recall `levels`, 0 outside its range: (B, T) twice -> (B, L)."""
    count, size = recall.shape
    out = np.zeros((count, levels.size))
    x, y = np.empty(size), np.empty(size)
    for b in range(count):
        n = _distinct(recall[b], precision[b], x, y)
        if n < 2:
            continue
        for i in range(levels.size):
            if levels[i] >= x[0]:
                out[b, i] = _linear(x, y, n, levels[i])
    return out


@kernel
def recall_at(precision, recall, target):
    """Recall of each curve where precision falls below target for good: (B, T) twice -> (B,).

    NaN where it never does, as `precision_recall.recall_at_precision` has it.
    """
    count, size = recall.shape
    out = np.full(count, np.nan)
    for b in range(count):
        p, r = precision[b], recall[b]
        for i in range(size):
            if p[i] < target:
                continue
            if p[i] == target:
                out[b] = r[i]
            elif i:
                out[b] = (r[i] - r[i - 1]) / (p[i] - p[i - 1]) * (target - p[i - 1]) + r[i - 1]
            break
    return out
