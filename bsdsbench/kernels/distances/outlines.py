"""Outlines of all labels of a map at once. Labels are below n; labels below 0 are ignored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I4, I8
from bsdsbench.kernels.jit import kernel


class Outlines(NamedTuple):
    """The outline sites of n labels: label k has start[k] : start[k + 1], in raster order."""

    start: I8  # (n + 1,)
    rows: I4
    cols: I4
    codes: I4 = np.zeros(0, np.int32)  # of each site, if the sites are `corners`


def rims(padded: I4, n: int) -> Outlines:
    """List the pixels of each of n labels that have one of their four neighbours outside the label.

    `padded` (H + 2, W + 2) is the label map in a frame of -1. Rows and columns are those of the map
    without the frame.
    """
    sites = np.empty((3, padded.size), np.int32)
    count = _find_rims(padded, *sites)
    start, (rows, cols) = _sort_by_label(sites[:, :count], n)
    return Outlines(start, rows, cols)


@kernel(_nrt=False)
def _find_rims(padded, label, rows, cols):
    """Write label, row and column of each pixel at the rim of its label, and return their number.

    padded int32 (H + 2, W + 2): the label map in a frame of -1.
    label, rows, cols int32: receive the pixels in raster order, without the frame.
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


def corners(padded: I4, n: int) -> Outlines:
    """List, for each of n labels, the windows of 2 x 2 pixels in which some but not all have it.

    `padded` (H + 1, W + 1) is a label map, with windows at (H, W) places. The row and column of a
    window are those of its upper left pixel. Its code is the sum of 8, 4, 2 and 1 for the upper
    left, upper right, lower left and lower right pixel if it has the label.
    """
    sites = np.empty((4, 4 * padded.size), np.int32)
    count = _find_corners(padded, np.empty(4, np.int32), *sites)
    start, (rows, cols, codes) = _sort_by_label(sites[:, :count], n)
    return Outlines(start, rows, cols, codes)


@kernel(_nrt=False)
def _find_corners(padded, window, label, rows, cols, code):
    """List the labels that some but not all pixels of a 2 x 2 window have, and return how many.

    padded int32 (H + 1, W + 1): the label map, with windows at (H, W) places.
    window int32 (4,): work space. The labels of a window: upper left, upper right, lower left,
        lower right.
    label, rows, cols, code int32: receive an entry for each label in each window, in raster order:
        the label, row and column of the upper left pixel, and the sum of 8, 4, 2, 1 for the pixels
        with the label, in the order of `window`.
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


def _sort_by_label(sites: I4, n: int) -> tuple[I8, I4]:
    """Sort sites by label, keeping the order of sites with the same label.

    Row 0 of `sites` has the labels, 0 to n - 1, other rows what belongs to them. Returns the start
    of each label after sorting, (n + 1,), and the other rows in the new order.
    """
    label = sites[0]
    if n == 1:
        return np.array([0, label.size]), sites[1:].copy()
    start = np.zeros(n + 1, np.int64)
    order = np.empty(label.size, np.int64)
    np.cumsum(np.bincount(label, minlength=n), out=start[1:])
    _sort(label, start[:-1].copy(), order)
    return start, sites[1:].take(order, axis=1)


@kernel(_nrt=False)
def _sort(label, fill, order):
    """Write the indices that sort `label` into `order`. Sites of one label keep their order.

    label int32, order int64 (sites,). fill int64 (n,): the place of each label's next site in
        `order`, changed in place. On entry the label's start.
    """
    for i in range(label.size):
        order[fill[label[i]]] = i
        fill[label[i]] += 1
