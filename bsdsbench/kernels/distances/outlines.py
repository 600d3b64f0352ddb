"""Outlines of all labels of a map at once: lists of sites by label, in raster order.

A label map is int32 (H, W) with labels below n; labels below 0 are ignored. A list of sites is
`start` (n + 1,), `rows` and `cols`: the sites of label k are start[k] : start[k + 1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I4, I8
from bsdsbench.kernels.jit import inner, kernel


def rims(padded: I4, n: int) -> tuple[I8, I4, I4]:
    """List the pixels of each label that have one of their four neighbours outside of it.

    padded : int32 (H + 2, W + 2), the label map in a frame of -1
    Returns start, rows, cols.
    """
    (start, fill), position = np.zeros((2, n + 1), np.int64), np.empty(padded.size, np.int64)
    sites = np.empty((2, padded.size), np.int32)
    _list_rims(padded, position, start, fill, *sites)
    rows, cols = sites[:, : start[n]].copy()
    return start, rows, cols


@kernel(_nrt=False)
def _list_rims(padded, position, start, fill, rows, cols):
    """Write the lists that `rims` returns; `position` and `fill` are room."""
    height, width = padded.shape
    count = 0
    for r in range(1, height - 1):
        for c in range(1, width - 1):
            k = padded[r, c]
            if k >= 0 and not (
                padded[r, c - 1] == k
                and padded[r, c + 1] == k
                and padded[r - 1, c] == k
                and padded[r + 1, c] == k
            ):
                position[count] = r * width + c
                count += 1
                start[k + 1] += 1
    for k in range(start.size - 1):
        start[k + 1] += start[k]
        fill[k] = start[k]
    for i in range(count):
        r = position[i] // width
        c = position[i] - r * width
        k = padded[r, c]
        rows[fill[k]], cols[fill[k]] = r - 1, c - 1
        fill[k] += 1


def corners(padded: I4, n: int) -> tuple[I8, I4, I4, NDArray[np.uint8]]:
    """List, for each label, the windows of 2 x 2 pixels that have the label in some of them.

    padded : int32 (H + 1, W + 1), which has windows at (H, W) places
    Returns start, rows, cols of the windows' upper left pixels, and their codes, uint8: the sum,
    over the pixels that have the label, of 8, 4, 2, 1 for the upper left, upper right, lower left
    and lower right one.
    """
    (start, fill), position = np.zeros((2, n + 1), np.int64), np.empty(padded.size, np.int64)
    sites, code = np.empty((2, 4 * padded.size), np.int32), np.empty(4 * padded.size, np.uint8)
    _list_corners(padded, position, np.empty(4, np.int32), start, fill, *sites, code)
    rows, cols = sites[:, : start[n]].copy()
    return start, rows, cols, code[: start[n]].copy()


@kernel(_nrt=False)
def _list_corners(padded, position, window, start, fill, rows, cols, code):
    """Write the lists that `corners` returns; `position`, `window` and `fill` are room."""
    height, width = padded.shape
    count = 0
    for r in range(height - 1):
        for c in range(width - 1):
            a = padded[r, c]
            if a != padded[r, c + 1] or a != padded[r + 1, c] or a != padded[r + 1, c + 1]:
                position[count] = r * width + c
                count += 1
                _copy_window(padded, r, c, window)
                for j in range(4):
                    if _code(window, j):
                        start[window[j] + 1] += 1
    for k in range(start.size - 1):
        start[k + 1] += start[k]
        fill[k] = start[k]
    for i in range(count):
        r = position[i] // width
        c = position[i] - r * width
        _copy_window(padded, r, c, window)
        for j in range(4):
            window_code, k = _code(window, j), window[j]
            if window_code:
                rows[fill[k]], cols[fill[k]], code[fill[k]] = r, c, window_code
                fill[k] += 1


@inner
def _copy_window(labels, r, c, window):
    """Copy the 2 x 2 pixels with the upper left corner (r, c) into `window` (4,)."""
    window[0], window[1] = labels[r, c], labels[r, c + 1]
    window[2], window[3] = labels[r + 1, c], labels[r + 1, c + 1]


@inner
def _code(window, j):
    """Return the code (see `corners`) of the label of pixel j of a window.

    It is 0 if the label is ignored, or was met in an earlier pixel of the window.
    """
    code = 0
    for i in range(4):
        if window[i] == window[j]:
            code |= 8 >> i
    return code if window[j] >= 0 and code < 16 >> j else 0
