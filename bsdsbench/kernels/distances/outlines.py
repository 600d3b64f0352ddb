"""Outlines of all labels of a map at once: lists of sites by label, in raster order.

A label map is int32 (H, W) with labels below n; labels below 0 are ignored. A list of sites is
`start` (n + 1,), `rows` and `cols`: the sites of label k are start[k] : start[k + 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bsdsbench.kernels.arrays import I4, I8
from bsdsbench.kernels.jit import kernel


def rims(padded: I4, n: int) -> tuple[I8, I4, I4]:
    """List the pixels of each label that have one of their four neighbours outside the label.
    `padded` is int32 (H + 2, W + 2), the label map in a frame of -1. Returns start, rows, cols.
    """
    label, *site = np.empty((3, padded.size), np.int32)
    count = _find_rims(padded, label, *site)
    return _by_label(label[:count], n, *(column[:count] for column in site))


@kernel(_nrt=False)
def _find_rims(padded, label, rows, cols):
    """Write the label, row and column of the sites of `rims`. Returns their number."""
    count = 0
    for r in range(1, padded.shape[0] - 1):
        for c in range(1, padded.shape[1] - 1):
            k = padded[r, c]
            if k >= 0 and not (
                padded[r, c - 1] == k
                and padded[r, c + 1] == k
                and padded[r - 1, c] == k
                and padded[r + 1, c] == k
            ):
                label[count] = k
                rows[count] = r - 1
                cols[count] = c - 1
                count += 1
    return count


def corners(padded: I4, n: int) -> tuple[I8, I4, I4, I4]:
    """List the windows of 2 x 2 pixels that have a label in some but not all pixels.

    `padded` is int32 (H + 1, W + 1), with windows at (H, W) places. Returns start, the rows and
    cols of the windows' upper left pixels, and their codes. A code adds 8, 4, 2, 1 for the upper
    left, upper right, lower left and lower right pixel if it has the label.
    """
    label, *site = np.empty((4, 4 * padded.size), np.int32)
    count = _find_corners(padded, np.empty(4, np.int32), label, *site)
    return _by_label(label[:count], n, *(column[:count] for column in site))


@kernel(_nrt=False)
def _find_corners(padded, window, label, rows, cols, code):
    """Write the label, row, column and code of the sites of `corners`. Returns their number.
    `window`, int32 (4,), is work space.
    """
    count = 0
    for r in range(padded.shape[0] - 1):
        for c in range(padded.shape[1] - 1):
            k = padded[r, c]
            if k == padded[r, c + 1] and k == padded[r + 1, c] and k == padded[r + 1, c + 1]:
                continue
            for j in range(4):
                window[j] = padded[r + (j >> 1), c + (j & 1)]
            for j in range(4):
                window_code = 0
                for i in range(4):
                    if window[i] == window[j]:
                        window_code |= 8 >> i
                # A label that an earlier pixel of the window has is in the list already
                if window[j] >= 0 and window_code < 16 >> j:
                    label[count] = window[j]
                    rows[count] = r
                    cols[count] = c
                    code[count] = window_code
                    count += 1
    return count


def _by_label(label: I4, n: int, *site: I4) -> tuple[Any, ...]:
    """Sort sites by label. Return each label's start, and the sorted columns."""
    if n == 1:
        return np.array([0, label.size]), *(column.copy() for column in site)
    start, order = np.zeros(n + 1, np.int64), np.empty(label.size, np.int64)
    np.cumsum(np.bincount(label, minlength=n), out=start[1:])
    _sort(label, start[:-1].copy(), order)
    return start, *(column[order] for column in site)


@kernel(_nrt=False)
def _sort(label, fill, order):
    """Write the order that sorts `label`. Sites of one label keep their order. `fill`, int64 (n,),
    holds the start of each label in `order`, and is changed.
    """
    for i in range(label.size):
        order[fill[label[i]]] = i
        fill[label[i]] += 1
