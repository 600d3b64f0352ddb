"""Neighbouring pixels of depth maps whose inverse depths differ by more than a ratio.

The side of such a pair is the place of the nearer pixel: 0 left, 1 top, 2 right, 3 bottom.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.jit import inner, kernel


@inner
def _count_exceeded(a, b, ratios):
    """Count the ratios that the quotient of two inverse depths exceeds, the larger over the
    smaller. `ratios` are float64 (R,), increasing, from 1 on.
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

    `pred` and `gt` are float64 (H, W), inverse depths. `valid`, bool (H, W), are the counted
    pixels; both pixels of a pair must be valid. `ratios` are float64 (R,), increasing, from 1 on.
    Returns int64 (R, 4, 3), by ratio and side: pairs that differ in both maps, in pred, in gt.
    """
    count = np.zeros((ratios.size + 1, 4, 3), np.int64)
    _count_pairs(pred, gt, valid, ratios, count)
    return np.cumsum(count[::-1], axis=0)[::-1][1:]


@kernel(_nrt=False)
def _count_pairs(pred, gt, valid, ratios, count):
    """Count the pairs of `ratio_pairs` by the number of exceeded ratios. `count` is 0 on entry."""
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


def count_hit_mask_edges(pred: F8, mask: Bool, ratios: F8) -> I8:
    """Count the mask edges that the thinned depth edges of `pred` hit.

    A depth edge is a pair of neighbours whose inverse depths differ by more than a ratio. Of a run
    of adjacent depth edges only the strongest is kept. `pred` is float64 (H, W), inverse depths.
    The edges of `mask`, bool (H, W), are the pairs of a pixel inside and a pixel outside. `ratios`
    are float64 (R,). Returns int64 (R, 4, 2), by ratio and side: hit mask edges, and all mask
    edges.
    """
    count = np.zeros((ratios.size, 4, 2), np.int64)
    for vertical in range(2):  # both copies are C-contiguous, so one kernel is compiled
        maps = (pred.T, mask.T) if vertical else (pred, mask)
        ratio = np.empty(maps[0].shape[1])
        _count_along_rows(*(a.copy(order="C") for a in maps), ratios, ratio, count, vertical)
    return count


@kernel(_nrt=False)
def _count_along_rows(pred, mask, ratios, ratio, count, vertical):
    """Add the edges between neighbours in a row to `count`, the result of `count_hit_mask_edges`.

    `vertical` is 1 if the maps are transposed, so that the rows are columns of the image. `ratio`
    is work space for a row.
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
