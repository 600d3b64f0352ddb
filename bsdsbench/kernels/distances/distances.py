"""Exact Euclidean distances between the outlines of all labels, and of all pixels of a label map.

Distances are squared and float64: whole numbers, and so exact, where the spacing is 1. `row_step`
and `col_step` are the spacing of rows and columns.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel

# Rows visited by searches, per pixel of the bounding box, before the box is transformed instead. So
# searches take at most a few times as long as the transform. The distances are the same.
_PATIENCE = 2


@kernel
def nearest(a_start, a_rows, a_cols, b_start, b_rows, b_cols, row_step, col_step):
    """Return the squared distance from each site of a to the nearest site of b with the same label.

    The sites of a and b are lists by label as in outlines.py: start (n + 1,), rows, cols. Returns
    float64, one per site of a, infinite where b has no site of the label.

    The rows around a site are searched outwards, which is fast where outlines are near each other.
    Once the searches of a label have visited too many rows, its other sites read their distances
    from an exact distance transform of the label's bounding box.
    """
    distance = np.empty(a_rows.size)
    distance[:] = np.inf
    for k in range(a_start.size - 1):
        b = slice(b_start[k], b_start[k + 1])
        if b_start[k] == b_start[k + 1] or a_start[k] == a_start[k + 1]:
            continue
        rows, cols = b_rows[b], b_cols[b]
        low, high = rows[0], rows[-1]
        row_start = _row_index(rows)
        top, left, bottom, right = _bounding_box(
            a_rows[a_start[k] : a_start[k + 1]], a_cols[a_start[k] : a_start[k + 1]], rows, cols
        )
        patience = _PATIENCE * (bottom - top + 1) * (right - left + 1)
        site = a_start[k]
        while site < a_start[k + 1] and patience >= 0:
            distance[site], visited = _search_rows(
                a_rows[site], a_cols[site], cols, row_start, low, high, row_step, col_step
            )
            patience -= visited
            site += 1
        if site < a_start[k + 1]:
            is_background = np.ones((bottom - top + 1, right - left + 1), np.int32)
            for i in range(rows.size):
                is_background[rows[i] - top, cols[i] - left] = 0
            transform = to_other_label(is_background, row_step, col_step)
            for i in range(site, a_start[k + 1]):
                r, c = a_rows[i] - top, a_cols[i] - left
                distance[i] = transform[r, c] if is_background[r, c] else 0.0
    return distance


@kernel
def _row_index(rows):
    """Return where the sites of each row start, from the first row to the last, and where they end.

    rows : the row of each site, ascending
    """
    low = rows[0]
    start = np.zeros(rows[-1] - low + 2, np.int64)
    for r in rows:
        start[r - low + 1] += 1
    for i in range(start.size - 1):
        start[i + 1] += start[i]
    return start


@kernel
def _bounding_box(a_rows, a_cols, b_rows, b_cols):
    """Return the top, left, bottom and right pixels of two lists of sites, their rows ascending."""
    top, bottom = min(a_rows[0], b_rows[0]), max(a_rows[-1], b_rows[-1])
    left, right = a_cols[0], a_cols[0]
    for cols in (a_cols, b_cols):  # a loop, as .min() and .max() take seconds to compile
        for c in cols:
            left, right = min(left, c), max(right, c)
    return np.int64(top), np.int64(left), np.int64(bottom), np.int64(right)


@kernel(_nrt=False)
def _search_rows(r, c, cols, row_start, low, high, row_step, col_step):
    """Find the site nearest to (r, c): its squared distance, and how many rows were visited.

    cols : columns of the sites, row by row, each row ascending
    row_start : where the rows low .. high start in `cols`, see `_row_index`
    """
    best = np.inf
    visited = np.int64(0)
    away = max(np.int64(0), low - r, r - high)
    while True:
        across = (away * row_step) ** 2
        if across >= best or (r - away < low and r + away > high):
            return best, visited
        if low <= r - away <= high:
            best = _nearest_in_row(c, cols, row_start, r - away - low, across, col_step, best)
        if away > 0 and low <= r + away <= high:
            best = _nearest_in_row(c, cols, row_start, r + away - low, across, col_step, best)
        visited += 1
        away += 1


@kernel(_nrt=False)
def _nearest_in_row(c, cols, row_start, row, across, col_step, best):
    """Return the squared distance of column c to the nearest site of a row, or `best` if less.

    row : index in `row_start`, see `_row_index`
    across : squared distance between the rows
    """
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
    """Return the squared distance of each pixel to the nearest pixel of another label.

    labels : int32 (H, W)
    Returns float64 (H, W), infinite if there is one label only; the outside of the map is no label.

    Distances along the columns come first, then the lower envelope of parabolas over each run of a
    row (Felzenszwalb and Huttenlocher, Theory of Computing 2012; Meijster et al., ISMM 2000).
    """
    height, width = labels.shape
    distance = np.empty((height, width))
    for c in range(width):
        distance[0, c] = np.inf
    for r in range(1, height):
        for c in range(width):
            same = labels[r, c] == labels[r - 1, c]
            distance[r, c] = distance[r - 1, c] + 1 if same else 1
    for r in range(height - 2, -1, -1):
        for c in range(width):
            same = labels[r, c] == labels[r + 1, c]
            distance[r, c] = min(distance[r, c], distance[r + 1, c] + 1 if same else 1)
    vertex_x = np.empty(width + 2)
    vertex_y = np.empty(width + 2)
    until = np.empty(width + 3)
    for r in range(height):
        first = np.int64(0)  # of a constant numba would compile the envelope once more
        while first < width:
            last = first + 1
            while last < width and labels[r, last] == labels[r, first]:
                last += 1
            _lower_envelope(distance, r, first, last, row_step, col_step, vertex_x, vertex_y, until)
            first = last
    return distance


@kernel(_nrt=False)
def _lower_envelope(distance, r, first, last, row_step, step, vertex_x, vertex_y, until):
    """Replace pixels along the columns by squared distances, in distance[r, first:last].

    The columns first .. last-1 have one label; a neighbouring column has distance 0. Each column is
    a parabola with its vertex at (vertex_x, vertex_y); parabola i is the lowest from until[i] to
    until[i + 1]. The three arrays are room for the parabolas of the envelope.
    """
    n = 0
    for column in range(max(first - 1, 0), min(last + 1, distance.shape[1])):
        outside = column < first or column >= last
        y = 0.0 if outside else (distance[r, column] * row_step) ** 2
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
        distance[r, column] = vertex_y[i] + (column * step - vertex_x[i]) ** 2
