"""Exact Euclidean distances between the outlines of all labels, and of all pixels of a label map.

Squared distances as float64; whole numbers, and so exact, where the spacing is 1.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel

# Rows searched per pixel of the box before the whole box is transformed instead: so all searches
# take some few times as long as the transform at most. The distances are the same.
_PATIENCE = 2


@kernel
def nearest(a_start, a_rows, a_cols, b_start, b_rows, b_cols, row_step, col_step):
    """Squared distance from each site of a to the nearest site of b with the same label.

    Sites as `bsdsbench.kernels.outlines` lists them; infinite where b has no site of the label. A
    search through rows, outwards from the site, costs little where outlines are near each other.
    If the distance is large, the rest of the label's sites read an exact transform of the box.
    """
    out = np.full(a_rows.size, np.inf)
    for k in range(a_start.size - 1):
        b = slice(b_start[k], b_start[k + 1])
        if b_start[k] == b_start[k + 1] or a_start[k] == a_start[k + 1]:
            continue
        rows, cols = b_rows[b], b_cols[b]
        low, high = rows[0], rows[-1]
        row_start = _row_index(rows)
        top, left, bottom, right = _box(
            a_rows[a_start[k] : a_start[k + 1]], a_cols[a_start[k] : a_start[k + 1]], rows, cols
        )
        patience = _PATIENCE * (bottom - top + 1) * (right - left + 1)
        at = a_start[k]
        while at < a_start[k + 1] and patience >= 0:
            found, visited = _search(
                a_rows[at], a_cols[at], cols, row_start, low, high, row_step, col_step
            )
            out[at] = found
            patience -= visited
            at += 1
        if at < a_start[k + 1]:
            box = np.ones((bottom - top + 1, right - left + 1), np.int32)
            for i in range(rows.size):
                box[rows[i] - top, cols[i] - left] = 0
            distance = to_other_label(box, row_step, col_step)
            for i in range(at, a_start[k + 1]):
                r, c = a_rows[i] - top, a_cols[i] - left
                out[i] = distance[r, c] if box[r, c] else 0.0
    return out


@kernel
def _row_index(rows):
    """Where each row from the first to the last begins, and the end; rows ascending."""
    low = rows[0]
    start = np.zeros(rows[-1] - low + 2, np.int64)
    for r in rows:
        start[r - low + 1] += 1
    for i in range(start.size - 1):
        start[i + 1] += start[i]
    return start


@kernel
def _box(a_rows, a_cols, b_rows, b_cols):
    """Top, left, bottom and right of two lists of sites, all within; rows ascending."""
    top, bottom = min(a_rows[0], b_rows[0]), max(a_rows[-1], b_rows[-1])
    left, right = min(a_cols.min(), b_cols.min()), max(a_cols.max(), b_cols.max())
    return np.int64(top), np.int64(left), np.int64(bottom), np.int64(right)


@kernel(_nrt=False)
def _search(r, c, cols, row_start, low, high, row_step, col_step):
    """Squared distance of (r, c) to the nearest of the sites, and how many rows were looked at."""
    best = np.inf
    visited = np.int64(0)
    away = max(np.int64(0), low - r, r - high)
    while True:
        across = (away * row_step) ** 2
        if across >= best or (r - away < low and r + away > high):
            return best, visited
        if low <= r - away <= high:
            best = _in_row(c, cols, row_start, r - away - low, across, col_step, best)
        if away > 0 and low <= r + away <= high:
            best = _in_row(c, cols, row_start, r + away - low, across, col_step, best)
        visited += 1
        away += 1


@kernel(_nrt=False)
def _in_row(c, cols, row_start, row, across, col_step, best):
    first, last = row_start[row], row_start[row + 1]
    begin, end = first, last
    while first < last:
        middle = (first + last) >> 1
        if cols[middle] < c:
            first = middle + 1
        else:
            last = middle
    if first < end:
        best = min(best, across + ((cols[first] - c) * col_step) ** 2)
    if first > begin:
        best = min(best, across + ((c - cols[first - 1]) * col_step) ** 2)
    return best


@kernel
def to_other_label(labels, row_step, col_step):
    """Squared distance of each pixel to the nearest pixel of another label, f8 (H, W).

    labels int32 (H, W). Infinite if there is one label only; the outside of the map is no label.
    Columns first, then the lower envelope of parabolas over each run of a row (Felzenszwalb and
    Huttenlocher, Theory of Computing 2012; Meijster et al., ISMM 2000).
    """
    height, width = labels.shape
    out = np.empty((height, width))
    for c in range(width):
        out[0, c] = np.inf
    for r in range(1, height):
        for c in range(width):
            same = labels[r, c] == labels[r - 1, c]
            out[r, c] = out[r - 1, c] + 1 if same else 1
    for r in range(height - 2, -1, -1):
        for c in range(width):
            same = labels[r, c] == labels[r + 1, c]
            out[r, c] = min(out[r, c], out[r + 1, c] + 1 if same else 1)
    place = np.empty(width + 2)
    height_at = np.empty(width + 2)
    until = np.empty(width + 3)
    for r in range(height):
        first = 0
        while first < width:
            last = first + 1
            while last < width and labels[r, last] == labels[r, first]:
                last += 1
            _envelope(out, r, first, last, row_step, col_step, place, height_at, until)
            first = last
    return out


@kernel(_nrt=False)
def _envelope(out, r, first, last, row_step, step, place, height_at, until):
    """Replace pixels along the columns by squared distances, in out[r, first:last]."""
    n = 0
    for x in range(max(first - 1, 0), min(last + 1, out.shape[1])):
        bottom = 0.0 if x < first or x >= last else (out[r, x] * row_step) ** 2
        if bottom == np.inf:
            continue
        at = x * step
        cross = -np.inf
        while n > 0:
            cross = (bottom + at * at - height_at[n - 1] - place[n - 1] * place[n - 1]) / (
                2 * (at - place[n - 1])
            )
            if cross > until[n - 1]:
                break
            n -= 1
        until[n] = cross
        place[n] = at
        height_at[n] = bottom
        n += 1
    if n == 0:
        for x in range(first, last):
            out[r, x] = np.inf
        return
    until[n] = np.inf
    i = 0
    for x in range(first, last):
        while until[i + 1] < x * step:
            i += 1
        out[r, x] = height_at[i] + (x * step - place[i]) ** 2
