"""Exact Euclidean distances between the outlines of all labels, and of all pixels of a label map.

Distances are squared and float64: whole numbers, and so exact, where the spacing is 1. `row_step`
and `col_step` are the spacing of rows and columns.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import F8, I4, I8
from bsdsbench.kernels.jit import inner, kernel

# Rows visited by searches, per pixel of the bounding box, before the box is transformed instead. So
# searches take at most a few times as long as the transform. The distances are the same.
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
    float64, one per site of a, infinite where b has no site of the label.

    The rows around a site are searched outwards, which is fast where outlines are near each other.
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

    row_start : room for where the sites of each row start
    searched : becomes the first site of each label that has no distance, or the label's end
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
            distance[site], visited = _search_rows(
                a_rows[site], a_cols[site], b_cols, row_start, low, high, row_step, col_step
            )
            patience -= visited
            site += 1
        searched[k] = site


@inner
def _search_rows(r, c, cols, row_start, low, high, row_step, col_step):
    """Find the site nearest to (r, c): its squared distance, and how many rows were visited.

    cols : columns of the sites, row by row, each row ascending
    row_start : where the rows low .. high start in `cols`, and where the last ends
    """
    best, visited = np.inf, 0
    away = low - r if r < low else (r - high if r > high else 0)
    while True:
        across = away * row_step
        across *= across
        if across >= best or (r - away < low and r + away > high):
            return best, visited
        row = r - away
        while row <= r + away:
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
                        squared = across + along * along
                        best = squared if squared < best else best
            row += 2 * away if away else 1
        visited += 1
        away += 1


def to_other_label(labels: I4, row_step: float, col_step: float) -> F8:
    """Return the squared distance of each pixel to the nearest pixel of another label.

    labels : int32 (H, W)
    Returns float64 (H, W), infinite if there is one label only; the outside of the map is no label.

    Distances along the columns come first, then the lower envelope of parabolas over each run of a
    row (Felzenszwalb and Huttenlocher, Theory of Computing 2012; Meijster et al., ISMM 2000).
    """
    distance, vertices = np.empty(labels.shape), np.empty((3, labels.shape[1] + 3))
    _transform(labels, float(row_step), float(col_step), *vertices, distance)
    return distance


@kernel(_nrt=False)
def _transform(labels, row_step, col_step, vertex_x, vertex_y, until, distance):
    """Write what `to_other_label` returns; see `_lower_envelope` for the other arrays."""
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
        first = np.int64(0)  # of a constant numba would compile the envelope once more
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
    a parabola with its vertex at (vertex_x, vertex_y); parabola i is the lowest from until[i] to
    until[i + 1]. The three arrays are room for the parabolas of the envelope.
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
