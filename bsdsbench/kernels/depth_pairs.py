"""Neighbouring pixels of depth maps whose inverse depths differ by more than a ratio.

A side is the place of the nearer of two neighbours: 0 left, 1 top, 2 right, 3 bottom.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.jit import inner, kernel


@inner
def _count_exceeded(a, b, ratios):
    """Return how many of the ratios the quotient of two inverse depths exceeds.

    The larger is divided by the smaller. ratios : float64 (R,), increasing, from 1 on
    """
    large, small = max(a, b), min(a, b)
    if not large > small:  # equal, or NaN
        return 0
    if small == 0.0:
        return ratios.size
    ratio, n = large / small, 0
    while n < ratios.size and ratio > ratios[n]:
        n += 1
    return n


def ratio_pairs(pred: F8, gt: F8, valid: Bool, ratios: F8) -> I8:
    """Count the pairs of neighbours whose inverse depths differ by more than each ratio.

    pred, gt : float64 (H, W), inverse depths
    valid : bool (H, W), pixels that are counted: both pixels of a pair must be
    ratios : float64 (R,), increasing, from 1 on
    Returns int64 (R, 4, 3), by ratio and side: pairs that differ so in both maps, in pred, in gt.
    """
    by_number = np.zeros((ratios.size + 1, 4, 3), np.int64)
    _count_pairs(pred, gt, valid, ratios, by_number)
    return np.cumsum(by_number[::-1], axis=0)[::-1][1:]


@kernel(_nrt=False)
def _count_pairs(pred, gt, valid, ratios, count):
    """Count the pairs as `ratio_pairs`, by how many ratios are exceeded; `count` are zeros."""
    h, w = pred.shape
    for y in range(h):
        for x in range(w):
            if not valid[y, x]:
                continue
            for vertical in range(2):
                v, u = y + vertical, x + 1 - vertical
                if v >= h or u >= w or not valid[v, u]:
                    continue
                p = _count_exceeded(pred[y, x], pred[v, u], ratios)
                g = _count_exceeded(gt[y, x], gt[v, u], ratios)
                p_side = vertical if pred[y, x] > pred[v, u] else vertical + 2
                g_side = vertical if gt[y, x] > gt[v, u] else vertical + 2
                count[p, p_side, 1] += 1
                count[g, g_side, 2] += 1
                if p_side == g_side:
                    count[min(p, g), p_side, 0] += 1


def thinned_pairs(pred: F8, mask: Bool, ratios: F8) -> I8:
    """Count the edges of a mask at which the depth edges of pred, thinned, lie.

    A run of neighbouring pairs of pred beyond a ratio is thinned to its pair with the largest
    ratio.

    pred : float64 (H, W), inverse depths
    mask : bool (H, W); its edges are the pairs of a pixel inside and one outside
    ratios : float64 (R,)
    Returns int64 (R, 4, 2), by ratio and side: such edges of the mask, and all edges of the mask.
    """
    count = np.zeros((ratios.size, 4, 2), np.int64)
    for vertical in range(2):  # both copies are C-contiguous, so one kernel is compiled
        maps = (pred.T, mask.T) if vertical else (pred, mask)
        ratio = np.empty(maps[0].shape[1])
        _count_along_rows(*(a.copy(order="C") for a in maps), ratios, ratio, count, vertical)
    return count


@kernel(_nrt=False)
def _count_along_rows(pred, mask, ratios, ratio, count, vertical):
    """Add the edges between neighbours in a row to `count`, as `thinned_pairs` returns it.

    `vertical` is 1 if the maps are transposed, and so the rows are columns of the image. `ratio` is
    room for a row.
    """
    h, w = pred.shape
    for y in range(h):
        for side in range(2):
            for x in range(w - 1):
                a, b = (pred[y, x + 1], pred[y, x]) if side else (pred[y, x], pred[y, x + 1])
                ratio[x] = a / b if b != 0.0 else np.inf if a > 0.0 else np.nan
                if mask[y, x + side] and not mask[y, x + 1 - side]:
                    for k in range(ratios.size):
                        count[k, vertical + 2 * side, 1] += 1
            for k in range(ratios.size):
                best = -1
                for x in range(w):
                    if x < w - 1 and ratio[x] > ratios[k]:
                        if best < 0 or ratio[x] > ratio[best]:
                            best = x
                    elif best >= 0:
                        if mask[y, best + side] and not mask[y, best + 1 - side]:
                            count[k, vertical + 2 * side, 0] += 1
                        best = -1
