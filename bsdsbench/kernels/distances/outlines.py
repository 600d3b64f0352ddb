"""Outlines of all labels of a map at once: lists of sites by label, in raster order.

A label map is int32 (H, W) with labels below n; labels below 0 are ignored. A list of sites is
`start` (n + 1,), `rows` and `cols`: the sites of label k are start[k] : start[k + 1].
"""

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def rims(padded, n):
    """List the pixels of each label that have one of their four neighbours outside of it.

    padded : int32 (H + 2, W + 2), the label map in a frame of -1
    Returns start, rows, cols.
    """
    height, width = padded.shape
    position = np.empty((height - 2) * (width - 2), np.int64)
    count = 0
    start = np.zeros(n + 1, np.int64)
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
    for k in range(n):
        start[k + 1] += start[k]
    fill = start.copy()
    rows = np.empty(count, np.int32)
    cols = np.empty(count, np.int32)
    for i in range(count):
        r, c = divmod(position[i], width)
        k = padded[r, c]
        rows[fill[k]] = r - 1
        cols[fill[k]] = c - 1
        fill[k] += 1
    return start, rows, cols


@kernel
def corners(padded, n):
    """List, for each label, the windows of 2 x 2 pixels that have the label in some of them.

    padded : int32 (H + 1, W + 1), which has windows at (H, W) places
    Returns start, rows, cols of the windows' upper left pixels, and their codes, uint8: the sum,
    over the pixels that have the label, of 8, 4, 2, 1 for the upper left, upper right, lower left
    and lower right one.
    """
    height, width = padded.shape
    position = np.empty(height * width, np.int64)
    count = 0
    for r in range(height - 1):
        for c in range(width - 1):
            a = padded[r, c]
            if a != padded[r, c + 1] or a != padded[r + 1, c] or a != padded[r + 1, c + 1]:
                position[count] = r * width + c
                count += 1
    flat = padded.ravel()
    start = np.zeros(n + 1, np.int64)
    window = np.empty(4, np.int32)
    for i in range(count):
        _copy_window(flat, position[i], width, window)
        for j in range(4):
            if _code(window, j):
                start[window[j] + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    fill = start.copy()
    rows = np.empty(start[n], np.int32)
    cols = np.empty(start[n], np.int32)
    code = np.empty(start[n], np.uint8)
    for i in range(count):
        _copy_window(flat, position[i], width, window)
        for j in range(4):
            window_code, k = _code(window, j), window[j]
            if window_code:
                rows[fill[k]], cols[fill[k]] = divmod(position[i], width)
                code[fill[k]] = window_code
                fill[k] += 1
    return start, rows, cols, code


@kernel
def _copy_window(flat, corner, width, window):
    """Copy the 2 x 2 pixels with that upper left corner, a flat index, into `window` (4,)."""
    window[0], window[1] = flat[corner], flat[corner + 1]
    window[2], window[3] = flat[corner + width], flat[corner + width + 1]


@kernel
def _code(window, j):
    """Return the code (see `corners`) of the label of pixel j of a window.

    It is 0 if the label is ignored, or was met in an earlier pixel of the window.
    """
    code = 0
    for i in range(4):
        if window[i] == window[j]:
            code |= 8 >> i
    return code if window[j] >= 0 and code < 16 >> j else 0
