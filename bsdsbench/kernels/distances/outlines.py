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

    padded int32 (H + 2, W + 2): the label map in a frame of -1. Labels below 0 are ignored.
    n: number of labels; all labels are below n.

    Returns start int64 (n + 1,), rows and cols int32 (sites,). The pixels of label k are start[k]
    to start[k + 1] - 1, in raster order, with rows and columns of the map without the frame.
    """
    label, *site = np.empty((3, padded.size), np.int32)
    count = _find_rims(padded, label, *site)
    return _by_label(label[:count], n, *(column[:count] for column in site))


@kernel(_nrt=False)
def _find_rims(padded, label, rows, cols):
    """Write the label, row and column of each pixel at the rim of its label, in raster order.

    padded int32 (H + 2, W + 2): the label map in a frame of -1.
    label, rows, cols int32: long enough for all pixels. The first elements receive the pixels.

    Returns the number of pixels. Rows and columns are those of the map without the frame.
    """
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
    """List, for each label, the windows of 2 x 2 pixels in which some but not all pixels have it.

    padded int32 (H + 1, W + 1): a label map, with windows at (H, W) places. Labels below 0 are
        ignored.
    n: number of labels; all labels are below n.

    Returns start int64 (n + 1,), and rows, cols and codes int32 (windows,). The windows of label k
    are start[k] to start[k + 1] - 1, in raster order. Row and column are those of the upper left
    pixel. The code is the sum of 8, 4, 2 and 1 for the upper left, upper right, lower left and
    lower right pixel if it has the label.
    """
    label, *site = np.empty((4, 4 * padded.size), np.int32)
    count = _find_corners(padded, np.empty(4, np.int32), label, *site)
    return _by_label(label[:count], n, *(column[:count] for column in site))


@kernel(_nrt=False)
def _find_corners(padded, window, label, rows, cols, code):
    """List the labels that some but not all pixels of a 2 x 2 window have, and return how many.

    padded int32 (H + 1, W + 1): the label map, with windows at (H, W) places.
    window int32 (4,): work space. The labels of a window: upper left, upper right, lower left,
        lower right.
    label, rows, cols, code int32: long enough for all entries. The first elements receive an entry
        for each label in each window, in raster order of the windows: the label, row and column of
        the upper left pixel, and the code. The code is the sum of 8, 4, 2, 1 for the upper left,
        upper right, lower left and lower right pixel if it has the label.
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
                # A label that an earlier pixel of the window has is in the list already. Its code
                # has the bit of that pixel, 16 >> j or more.
                if window[j] >= 0 and window_code < 16 >> j:
                    label[count] = window[j]
                    rows[count] = r
                    cols[count] = c
                    code[count] = window_code
                    count += 1
    return count


def _by_label(label: I4, n: int, *site: I4) -> tuple[Any, ...]:
    """Sort sites by label, keeping the order of sites with the same label.

    label int32 (sites,): 0 to n - 1.
    site: further arrays (sites,), such as rows and columns.

    Returns the index of each label's first site and the number of sites, int64 (n + 1,), then the
    further arrays in the new order.
    """
    if n == 1:
        return np.array([0, label.size]), *(column.copy() for column in site)
    start = np.zeros(n + 1, np.int64)
    order = np.empty(label.size, np.int64)
    np.cumsum(np.bincount(label, minlength=n), out=start[1:])
    _sort(label, start[:-1].copy(), order)
    return start, *(column[order] for column in site)


@kernel(_nrt=False)
def _sort(label, fill, order):
    """Write the indices that sort `label` into `order`. Sites of one label keep their order.

    label int32 (sites,): 0 to n - 1.
    fill int64 (n,): the place of each label's next site in `order`, changed in place. On entry the
        label's start.
    order int64 (sites,): receives the indices.
    """
    for i in range(label.size):
        order[fill[label[i]]] = i
        fill[label[i]] += 1
