"""Neighbouring pixels of depth maps whose inverse depths differ by more than a ratio."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.jit import inner, kernel


@inner
def _steps(a, b, ratios):
    """How many of the increasing ratios, 1 or more, the larger of two inverse depths exceeds."""
    large, small = max(a, b), min(a, b)
    if not large > small:  # equal, or NaN
        return 0
    if small == 0.0:
        return ratios.size
    ratio, n = large / small, 0
    while n < ratios.size and ratio > ratios[n]:
        n += 1
    return n


@kernel
def ratio_pairs(pred, gt, valid, ratios):
    """Pairs beyond each ratio in both maps, in pred, in gt: i8 (R, 4, 3).

    pred, gt : inverse depths f8 (H, W); valid : bool (H, W), a pair with another pixel counts
    nowhere; directions left, top, right, bottom: in which of its two pixels a pair is nearer.
    """
    h, w = pred.shape
    n = ratios.size
    count = np.zeros((n + 1, 4, 3), np.int64)
    for y in range(h):
        for x in range(w):
            if not valid[y, x]:
                continue
            for way in range(2):
                v, u = y + way, x + 1 - way
                if v >= h or u >= w or not valid[v, u]:
                    continue
                p = _steps(pred[y, x], pred[v, u], ratios)
                g = _steps(gt[y, x], gt[v, u], ratios)
                p_side = way if pred[y, x] > pred[v, u] else way + 2
                g_side = way if gt[y, x] > gt[v, u] else way + 2
                count[p, p_side, 1] += 1
                count[g, g_side, 2] += 1
                if p_side == g_side:
                    count[min(p, g), p_side, 0] += 1
    for k in range(n - 1, -1, -1):
        for side in range(4):
            for i in range(3):
                count[k, side, i] += count[k + 1, side, i]
    return count[1:]


def thinned_pairs(pred: F8, mask: Bool, ratios: F8) -> I8:
    """Edges of a mask that are largest in a run of pairs of pred beyond each ratio: i8 (R, 4, 2).

    pred : inverse depths f8 (H, W); mask : bool (H, W). Last: such edges, and all of the mask.
    """
    count = np.zeros((ratios.size, 4, 2), np.int64)
    for way in range(2):  # copies are of one kind, so there is one kernel to compile
        rows = (pred.T, mask.T) if way else (pred, mask)
        _along_rows(*(a.copy(order="C") for a in rows), ratios, count, way)
    return count


@kernel
def _along_rows(pred, mask, ratios, count, way):
    h, w = pred.shape
    ratio = np.empty(w)
    for y in range(h):
        for side in range(2):
            for x in range(w - 1):
                a, b = (pred[y, x + 1], pred[y, x]) if side else (pred[y, x], pred[y, x + 1])
                ratio[x] = a / b if b != 0.0 else np.inf if a > 0.0 else np.nan
                if mask[y, x + side] and not mask[y, x + 1 - side]:
                    for k in range(ratios.size):
                        count[k, way + 2 * side, 1] += 1
            for k in range(ratios.size):
                best = -1
                for x in range(w):
                    if x < w - 1 and ratio[x] > ratios[k]:
                        if best < 0 or ratio[x] > ratio[best]:
                            best = x
                    elif best >= 0:
                        if mask[y, best + side] and not mask[y, best + 1 - side]:
                            count[k, way + 2 * side, 0] += 1
                        best = -1
