"""Exact Euclidean distances between the outlines of labels, and from pixels to the nearest other
label.

Distances are squared and float64. With spacing 1 they are whole numbers, and so exact. `row_step`
and `col_step` are the spacing of rows and columns.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import F8, I4, I8
from bsdsbench.kernels.jit import inner, kernel

# Row offsets that searches may visit, per pixel of the bounding box, before the box is transformed.
# So searches take at most a few times as long as the transform. The distances are the same.
_PATIENCE = np.int64(2)


def nearest(
    a_start: I8,
    a_rows: I4,
    a_cols: I4,
    b_start: I8,
    b_rows: I4,
    b_cols: I4,
    row_step: float,
    col_step: float,
) -> F8:
    """Return the squared distance from each site of a to the nearest site of b with the same label.

    The sites of a and b are lists by label as in outlines.py: start (n + 1,), rows, cols. Returns
    one float64 per site of a, infinite if b has no site of the label.

    The rows around a site are searched outwards, which is fast if outlines are near each other.
    Once the searches of a label have visited too many rows, its other sites read their distances
    from an exact distance transform of the label's bounding box.
    """
    distance, searched = np.full(a_rows.size, np.inf), a_start[1:].copy()
    row_start = np.empty(b_rows.max(initial=0) + 2, np.int64)
    sites = a_start, a_rows, a_cols, b_start, b_rows, b_cols
    _search(*sites, float(row_step), float(col_step), row_start, distance, searched)
    for k in np.flatnonzero(searched < a_start[1:]):
        a, b = slice(a_start[k], a_start[k + 1]), slice(b_start[k], b_start[k + 1])
        top, left = min(a_rows[a][0], b_rows[b][0]), min(a_cols[a].min(), b_cols[b].min())
        bottom, right = max(a_rows[a][-1], b_rows[b][-1]), max(a_cols[a].max(), b_cols[b].max())
        is_background = np.ones((bottom - top + 1, right - left + 1), np.int32)
        is_background[b_rows[b] - top, b_cols[b] - left] = 0
        transform = to_other_label(is_background, row_step, col_step)
        rest = slice(searched[k], a.stop)
        place = a_rows[rest] - top, a_cols[rest] - left
        distance[rest] = np.where(is_background[place], transform[place], 0.0)
    return distance


@kernel(_nrt=False)
def _search(
    a_start,
    a_rows,
    a_cols,
    b_start,
    b_rows,
    b_cols,
    row_step,
    col_step,
    row_start,
    distance,
    searched,
):
    """Write the squared distances of sites, label by label, until too many rows were visited.

    `row_start` is work space: the start of each row's sites. `searched` receives the first site of
    each label that has no distance, or the label's end.
    """
    for k in range(searched.size):
        b_first, b_end, site = b_start[k], b_start[k + 1], a_start[k]
        if b_first == b_end or site == a_start[k + 1]:
            continue
        low, high = b_rows[b_first], b_rows[b_end - 1]
        for r in range(high - low + 2):
            row_start[r] = b_first if r == 0 else 0
        for i in range(b_first, b_end):
            row_start[b_rows[i] - low + 1] += 1
        for r in range(high - low + 1):
            row_start[r + 1] += row_start[r]
        a_end = a_start[k + 1]
        top = low if low < a_rows[site] else a_rows[site]
        bottom = high if high > a_rows[a_end - 1] else a_rows[a_end - 1]
        left = right = a_cols[site]
        for i in range(site, a_end):
            left = a_cols[i] if a_cols[i] < left else left
            right = a_cols[i] if a_cols[i] > right else right
        for i in range(b_first, b_end):
            left = b_cols[i] if b_cols[i] < left else left
            right = b_cols[i] if b_cols[i] > right else right
        patience = _PATIENCE * (bottom - top + 1) * (right - left + 1)
        while site < a_end and patience >= 0:
            distance[site], n_offsets = _search_rows(
                a_rows[site], a_cols[site], b_cols, row_start, low, high, row_step, col_step
            )
            patience -= n_offsets
            site += 1
        searched[k] = site


@inner
def _search_rows(r, c, cols, row_start, low, high, row_step, col_step):
    """Return the squared distance from (r, c) to the nearest site, and the row offsets searched.

    Rows are searched outwards from r. In a row a binary search finds the two sites next to column
    c. `cols` holds the columns of the sites, row by row, each row ascending. The rows low .. high
    start at `row_start` in `cols`; its last element is the end of the last row.
    """
    best, n_offsets = np.inf, 0
    row_offset = low - r if r < low else (r - high if r > high else 0)
    while True:
        squared_row_distance = row_offset * row_step
        squared_row_distance *= squared_row_distance
        if squared_row_distance >= best or (r - row_offset < low and r + row_offset > high):
            return best, n_offsets
        row = r - row_offset
        while row <= r + row_offset:
            if low <= row <= high:
                begin, end = row_start[row - low], row_start[row - low + 1]
                first, last = begin, end
                while first < last:
                    middle = (first + last) >> 1
                    if cols[middle] < c:
                        first = middle + 1
                    else:
                        last = middle
                for i in range(first - 1, first + 1):  # the sites on both sides of the column
                    if begin <= i < end:
                        along = (cols[i] - c) * col_step
                        squared = squared_row_distance + along * along
                        best = squared if squared < best else best
            row += 2 * row_offset if row_offset else 1
        n_offsets += 1
        row_offset += 1


def to_other_label(labels: I4, row_step: float, col_step: float) -> F8:
    """Return the squared distance of each pixel to the nearest pixel with another label.

    `labels` is int32 (H, W). Returns float64 (H, W), infinite if there is only one label. The
    outside of the map is no label.

    Distances along the columns come first, then the lower envelope of parabolas over each run of a
    row (Felzenszwalb and Huttenlocher, Theory of Computing 2012; Meijster et al., ISMM 2000).
    """
    distance, vertices = np.empty(labels.shape), np.empty((3, labels.shape[1] + 3))
    _transform(labels, float(row_step), float(col_step), *vertices, distance)
    return distance


@kernel(_nrt=False)
def _transform(labels, row_step, col_step, vertex_x, vertex_y, until, distance):
    """Write the distances of `to_other_label` into `distance`. See `_lower_envelope`."""
    height, width = labels.shape
    for c in range(width):
        distance[0, c] = np.inf
    for r in range(1, height):
        for c in range(width):
            same = labels[r, c] == labels[r - 1, c]
            distance[r, c] = distance[r - 1, c] + 1 if same else 1
    for r in range(height - 2, -1, -1):
        for c in range(width):
            same = labels[r, c] == labels[r + 1, c]
            below = distance[r + 1, c] + 1 if same else 1
            distance[r, c] = below if below < distance[r, c] else distance[r, c]
    for r in range(height):
        first = np.int64(0)  # for a literal 0 numba would compile the envelope a second time
        while first < width:
            last = first + 1
            while last < width and labels[r, last] == labels[r, first]:
                last += 1
            _lower_envelope(distance, r, first, last, row_step, col_step, vertex_x, vertex_y, until)
            first = last


@inner
def _lower_envelope(distance, r, first, last, row_step, step, vertex_x, vertex_y, until):
    """Replace pixels along the columns by squared distances, in distance[r, first:last].

    The columns first .. last-1 have one label; a neighbouring column has distance 0. Each column is
    a parabola with its vertex at (vertex_x, vertex_y). Parabola i is the lowest from until[i] to
    until[i + 1]. The three arrays are work space for the parabolas of the envelope.
    """
    n = 0
    for column in range(first - 1, last + 1):
        if column < 0 or column == distance.shape[1]:
            continue
        outside = column < first or column >= last
        y = 0.0 if outside else distance[r, column] * row_step
        y *= y
        if y == np.inf:
            continue
        x = column * step
        crossing = -np.inf
        while n > 0:
            crossing = (y + x * x - vertex_y[n - 1] - vertex_x[n - 1] * vertex_x[n - 1]) / (
                2 * (x - vertex_x[n - 1])
            )
            if crossing > until[n - 1]:
                break
            n -= 1
        until[n] = crossing
        vertex_x[n] = x
        vertex_y[n] = y
        n += 1
    if n == 0:
        for column in range(first, last):
            distance[r, column] = np.inf
        return
    until[n] = np.inf
    i = 0
    for column in range(first, last):
        while until[i + 1] < column * step:
            i += 1
        along = column * step - vertex_x[i]
        distance[r, column] = vertex_y[i] + along * along
