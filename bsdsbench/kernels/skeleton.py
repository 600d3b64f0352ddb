"""Skeletons of the labels of a map, those of scikit-image's 2-D `skeletonize`.

This is two-subiteration thinning after Zhang and Suen (1984), with other neighbourhoods than the
paper's; scripts/skeleton_table.py derives them from scikit-image's results on random masks. Each
label of the (H, W) map is thinned within its box, as words of 64 pixels in tiles (thinning.py).
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.judging import TILE
from bsdsbench.kernels.thinning import NEVER, thin_tiles

# What the subiterations delete (judging.py)
_DELETED = np.array(
    [
        [0xD1500000D050F0E8, 0x5100000001010002, 0x0000000080008088, 0x1101000B00000008],
        [0x510100004010C020, 0x0101000B00010002, 0x00000000000080AA, 0x030B008B0001808A],
    ],
    np.uint64,
)


@kernel
def skeletons(labels, n):
    """The skeleton of each label 0 .. n - 1, thinned on its own.

    labels : (H, W) int32; a negative label is none
    Returns a copy of `labels` with -1 off the skeletons.
    """
    out = np.full(labels.shape, -1, np.int32)
    boxes = _boxes(labels, n)
    for k in range(n):
        if boxes[k, 0] < boxes[k, 2]:
            _skeleton(labels, k, boxes[k], out)
    return out


@kernel
def _boxes(labels, n):
    """(n, 4): first row and column of each label, one beyond its last."""
    rows, cols = labels.shape
    boxes = np.zeros((n, 4), np.int64)
    boxes[:, 0], boxes[:, 1] = rows, cols
    for r in range(rows):
        for c in range(cols):
            k = labels[r, c]
            if k >= 0:
                boxes[k, 0] = min(boxes[k, 0], r)
                boxes[k, 1] = min(boxes[k, 1], c)
                boxes[k, 2] = r + 1
                boxes[k, 3] = max(boxes[k, 3], c + 1)
    return boxes


@kernel
def _skeleton(labels, k, box, out):
    """Write label k where its skeleton is."""
    top, left, bottom, right = box
    tiles, words = (bottom - top + TILE - 1) // TILE, (right - left + 63) >> 6
    stride = tiles + 2
    full = np.zeros((words + 2) * stride * TILE, np.uint64)
    due = np.full((words + 2) * stride, np.int32(NEVER), np.int32)
    lit = np.empty(words * tiles, np.int32)
    n_lit = 0
    for r in range(top, bottom):
        for c in range(left, right):
            if labels[r, c] == k:
                at = (((c - left) >> 6) + 1) * stride * TILE + TILE + r - top
                full[at] |= np.uint64(1) << np.uint64((c - left) & 63)
                if due[at // TILE] == NEVER:
                    due[at // TILE] = 0
                    lit[n_lit] = at // TILE
                    n_lit += 1
    now, gone = full.copy(), full.copy()
    active, changed = lit.copy(), lit.copy()
    thin_tiles(lit[:n_lit], full, now, gone, due, active, changed, stride, _DELETED)
    for r in range(top, bottom):
        for c in range(left, right):
            at = (((c - left) >> 6) + 1) * stride * TILE + TILE + r - top
            if now[at] >> np.uint64((c - left) & 63) & np.uint64(1):
                out[r, c] = k
