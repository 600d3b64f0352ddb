"""Outlines of all labels of a map, and exact Euclidean distances between outlines and pixels.

Labels are 0 .. n - 1; pixels with a label below 0 are ignored. Distances are squared and float64.
If rows and columns are 1 apart, squared distances are whole numbers, and so exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import Floats, Int32s, Ints
from bsdsbench.kernels.jit import inner, kernel

# Row offsets that searches may visit, per pixel of the bounding box, before the box is transformed.
# So searches take at most a few times as long as the transform. The distances are the same.
_PATIENCE = np.int64(2)


class Outlines(NamedTuple):
    """The outline sites (pixels, or corners between pixels) of n labels.

    Label k has the sites start[k] : start[k + 1], in raster order.
    """

    start: Ints  # (n + 1,)
    rows: Int32s  # (sites,)
    cols: Int32s  # (sites,)
    codes: Int32s = np.zeros(0, np.int32)  # (sites,), if the sites are `corners`


def rims(padded: Int32s, n: int) -> Outlines:
    """List, for each of n labels, its pixels of which one of the four neighbours has another label.

    padded (H + 2, W + 2): the label map in a frame of -1, which counts as another label. Returned
        rows and columns refer to the map without the frame. Labels below 0 have no outline.
    """
    sites = np.empty((3, padded.size), np.int32)
    count = _find_rims(padded, *sites)
    return _sort_by_label(sites[:, :count], n)


@kernel(_nrt=False)
def _find_rims(padded, labels, rows, cols):
    """List the pixels of which one of the four neighbours has another label.

    padded int32 (H + 2, W + 2): the label map in a frame of -1.
    labels, rows, cols int32: receive the label, row and column of each pixel, in raster order. Rows
        and columns refer to the map without the frame.

    Returns the number of pixels in the list.
    """
    count = 0
    for row in range(1, padded.shape[0] - 1):
        for col in range(1, padded.shape[1] - 1):
            label = padded[row, col]
            if label >= 0 and not (
                padded[row, col - 1] == label
                and padded[row, col + 1] == label
                and padded[row - 1, col] == label
                and padded[row + 1, col] == label
            ):
                labels[count], rows[count], cols[count] = label, row - 1, col - 1
                count += 1
    return count


def corners(padded: Int32s, n: int) -> Outlines:
    """List, for each of n labels, the 2 x 2 windows in which some pixels, but not all, have it.

    padded (H + 1, W + 1): a label map. It has (H, W) windows. Labels below 0 have no outline.

    A window is given by the row and column of its upper left pixel, and by a code that tells which
    of its pixels have the label: the sum of 8 for the upper left pixel, 4 for the upper right, 2
    for the lower left and 1 for the lower right, such as 12 for the two upper pixels.
    """
    sites = np.empty((4, 4 * padded.size), np.int32)
    count = _find_corners(padded, np.empty(4, np.int32), *sites)
    return _sort_by_label(sites[:, :count], n)


@kernel(_nrt=False)
def _find_corners(padded, window, label, rows, cols, code):
    """List the labels in each 2 x 2 window of a label map that does not have a single label.

    padded int32 (H + 1, W + 1): the label map. The upper left pixels of the windows are its first H
        rows and W columns. Labels below 0 are not listed.
    window int32 (4,): work space for the labels of a window: upper left, upper right, lower left,
        lower right.
    label, rows, cols, code int32: receive one entry for each window and label in it, with the
        windows in raster order: the label, the row and column of the window's upper left pixel, and
        a code that tells which of its pixels have the label, the sum of 8 (upper left), 4 (upper
        right), 2 (lower left) and 1 (lower right).

    Returns the number of entries.
    """
    count = 0
    for r in range(padded.shape[0] - 1):
        for c in range(padded.shape[1] - 1):
            k = padded[r, c]
            if k == padded[r, c + 1] and k == padded[r + 1, c] and k == padded[r + 1, c + 1]:
                continue
            for pixel in range(4):
                window[pixel] = padded[r + (pixel >> 1), c + (pixel & 1)]
            for pixel in range(4):  # whose bit in the code is 8 >> pixel
                window_code = 0
                for other in range(4):
                    if window[other] == window[pixel]:
                        window_code |= 8 >> other
                # The label is listed already if an earlier pixel has it. The code then contains the
                # bit of that pixel, which is 16 >> pixel or more
                if window[pixel] >= 0 and window_code < 16 >> pixel:
                    label[count], rows[count], cols[count] = window[pixel], r, c
                    code[count] = window_code
                    count += 1
    return count


def _sort_by_label(sites: Int32s, n: int) -> Outlines:
    """Sort outline points (sites) by label, keeping the order of sites with the same label.

    sites (3 or 4, sites): one column for each site. Row 0 has its label, 0 .. n - 1, rows 1 and 2
        its row and column in the image, and row 3, only of corners, its code.
    """
    label, numbers = sites[0], sites[1:]
    if n == 1:
        return Outlines(np.array([0, label.size]), *numbers.copy())
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(label, minlength=n), out=start[1:])
    # numpy sorts integers of up to 16 bits several times as fast
    order = np.argsort(label.astype(np.min_scalar_type(n)), kind="stable")
    return Outlines(start, *numbers.take(order, axis=1))


def nearest(a: Outlines, b: Outlines, row_step: float, col_step: float) -> Floats:
    """Return the squared distance from each site of a to the nearest site of b with the same label.

    A site is a point of an outline: a pixel, or a corner between pixels.

    a, b: the outlines of n labels in two maps, from `rims` or from `corners`.
    row_step, col_step: distances between adjacent rows and between adjacent columns.

    Returns an array (sites of a,). A distance is infinite if b has no site with the label.

    The rows around each site are searched outwards, which is fast if the outlines are close. If
    this takes too long, the label's remaining sites get their distances from a distance transform.
    """
    # `_search` fills `distance`, and lowers the end of each label's sites in `searched_end` to the
    # end of those that it searched. It leaves both for labels that b lacks
    distance = np.full(a.rows.size, np.inf)
    searched_end = a.start[1:].copy()
    row_start = np.empty(b.rows.max(initial=0) + 2, np.int64)  # work space
    a_sites, b_sites = (a.start, a.rows, a.cols), (b.start, b.rows, b.cols)
    _search(a_sites, b_sites, float(row_step), float(col_step), row_start, distance, searched_end)
    for k in np.flatnonzero(searched_end < a.start[1:]):
        in_a, in_b = slice(a.start[k], a.start[k + 1]), slice(b.start[k], b.start[k + 1])
        a_rows, a_cols, b_rows, b_cols = a.rows[in_a], a.cols[in_a], b.rows[in_b], b.cols[in_b]
        # The box around the sites of both; rows are in ascending order
        top, left = min(a_rows[0], b_rows[0]), min(a_cols.min(), b_cols.min())
        bottom, right = max(a_rows[-1], b_rows[-1]), max(a_cols.max(), b_cols.max())
        # Draw the sites of b as label 0 in the box, on a background of label 1
        is_background = np.ones((bottom - top + 1, right - left + 1), np.int32)
        is_background[b_rows - top, b_cols - left] = 0
        to_sites = to_other_label(is_background, row_step, col_step)  # from background pixels
        rest = slice(searched_end[k], a.start[k + 1])  # the sites of a without a distance
        place = a.rows[rest] - top, a.cols[rest] - left  # rows and columns in the box
        # Sites of a that are also sites of b are no background, and have the distance 0
        distance[rest] = np.where(is_background[place], to_sites[place], 0.0)
    return distance


@kernel(_nrt=False)
def _search(a, b, row_step, col_step, row_start, distance, searched_end):
    """Write the squared distances from outline points to the nearest points of another outline.

    From each point (site) of a label in a, the rows r, r - 1 and r + 1, r - 2 and r + 2, ... are
    searched for the nearest site of b (`_search_rows`). A row offset, the distance in rows, counts
    as one visit. When a label's visits exceed twice (_PATIENCE) the number of pixels in the box
    around its sites, a distance transform of the box would be faster: the label's remaining sites
    are left to the caller.

    a, b: (start, rows, cols) of the sites of n labels in two maps. Label k has the sites start[k] :
        start[k + 1], in raster order.
    row_step, col_step: distances between adjacent rows and between adjacent columns.
    row_start int64 (largest row of b + 2,): work space. It holds, for each row of a label in b, the
        index of the first site.
    distance float64 (sites of a,): infinite on entry; receives the squared distances from the sites
        of a to the nearest site of b with the same label.
    searched_end int64 (n,): on entry, the end of each label's sites in a; receives, for each label,
        the first site that was not searched. It is left unchanged for labels that a or b lacks.
    """
    a_start, a_rows, a_cols = a
    b_start, b_rows, b_cols = b
    for label in range(searched_end.size):
        b_first, b_end, site = b_start[label], b_start[label + 1], a_start[label]
        if b_first == b_end or site == a_start[label + 1]:  # no sites: distances stay infinite
            continue
        low, high = b_rows[b_first], b_rows[b_end - 1]  # the first and the last row with a b site
        # The sites of row low + r are row_start[r] : row_start[r + 1], none if these are equal. If
        # the sites 0, 1 and 2 are in the rows 4, 4 and 6, for example, it is [0, 2, 2, 3]
        r = 0
        for i in range(b_first, b_end):
            while r <= b_rows[i] - low:
                row_start[r] = i
                r += 1
        row_start[r] = b_end
        # The bounding box of the sites in a and b
        a_end = a_start[label + 1]
        top = low if low < a_rows[site] else a_rows[site]
        bottom = high if high > a_rows[a_end - 1] else a_rows[a_end - 1]
        left = right = a_cols[site]
        for i in range(site, a_end):
            left = a_cols[i] if a_cols[i] < left else left
            right = a_cols[i] if a_cols[i] > right else right
        for i in range(b_first, b_end):
            left = b_cols[i] if b_cols[i] < left else left
            right = b_cols[i] if b_cols[i] > right else right
        visits_left = _PATIENCE * (bottom - top + 1) * (right - left + 1)
        while site < a_end and visits_left >= 0:
            distance[site], n_visits = _search_rows(
                a_rows[site], a_cols[site], b_cols, row_start, low, high, row_step, col_step
            )
            visits_left -= n_visits
            site += 1
        searched_end[label] = site


@inner
def _search_rows(r, c, cols, row_start, low, high, row_step, col_step):
    """Return the squared distance from (r, c) to the nearest site, and the cost of the search.

    A site is a point of an outline.

    cols int32: the columns of the sites, row by row, ascending in each row.
    row_start int64: the sites of row i are row_start[i - low] : row_start[i - low + 1].
    low, high: the first and the last row that has a site.
    row_step, col_step: distances between adjacent rows and between adjacent columns.

    The rows r - k and r + k are searched for increasing row offsets k. The search ends when both
    rows lie outside low .. high, or are no nearer than the nearest site so far. In each row, only
    the sites on both sides of column c can be the nearest. The cost is the number of offsets.
    """
    best, n_offsets = np.inf, 0
    row_offset = 0  # or, if r lies outside the rows with sites, to the first of them
    if r < low:
        row_offset = low - r
    elif r > high:
        row_offset = r - high
    while True:
        squared_row_distance = row_offset * row_step
        squared_row_distance *= squared_row_distance
        if squared_row_distance >= best or (r - row_offset < low and r + row_offset > high):
            return best, n_offsets
        row = r - row_offset
        while row <= r + row_offset:  # the rows r - row_offset and r + row_offset
            if low <= row <= high:
                begin, end = row_start[row - low], row_start[row - low + 1]
                first, last = begin, end
                while first < last:  # find the first site from column c on
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
            row += 2 * row_offset if row_offset > 0 else 1  # to the lower row, or end the loop
        n_offsets += 1
        row_offset += 1


def to_other_label(labels: Int32s, row_step: float, col_step: float) -> Floats:
    """Return, for each pixel, the squared distance to the nearest pixel with another label.

    labels (H, W): the label map. Pixels outside the map do not count.
    row_step, col_step: distances between adjacent rows and between adjacent columns.

    Distances are infinite if the map has only one label. (Felzenszwalb and Huttenlocher, Theory of
    Computing 2012; Meijster et al., ISMM 2000.)
    """
    distance = np.empty(labels.shape)
    vertices = np.empty((3, labels.shape[1] + 3))
    _transform(labels, float(row_step), float(col_step), *vertices, distance)
    return distance


@kernel(_nrt=False)
def _transform(labels, row_step, col_step, vertex_x, vertex_y, until, distance):
    """Write the squared distance from each pixel to the nearest pixel with another label.

    labels int32 (H, W): the label map.
    row_step, col_step: distances between adjacent rows and between adjacent columns.
    vertex_x, vertex_y, until float64 (W + 3,): work space of `_lower_envelope`, for parabolas.
    distance float64 (H, W): receives the squared distances, infinite if there is only one label.

    First `distance` receives the distances along columns. Then the squared distance of a pixel is
    the smallest of (distance to a column)^2 + (distance along that column)^2. Columns beyond the
    run of its label in the row are not needed: the pixel next to the run is nearer.
    """
    height, width = labels.shape
    # Down and up the columns: the number of rows to the nearest other label, infinite without one
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
            # Replace the distances of the run, the columns first : last, by the squared ones
            _lower_envelope(distance, r, first, last, row_step, col_step, vertex_x, vertex_y, until)
            first = last


@inner
def _lower_envelope(distance, row, first, last, row_step, col_step, vertex_x, vertex_y, until):
    """Turn distances along columns into squared Euclidean distances, for a run of pixels in a row.

    distance float64 (H, W): on entry, the number of rows from each pixel to the nearest pixel with
        another label in the same column. The elements distance[r, first:last], a run of pixels with
        one label, are changed in place.
    row_step, col_step: distances between adjacent rows and between adjacent columns.
    vertex_x, vertex_y, until float64 (W + 3,): work space. Parabola i of the envelope has its
        vertex at (vertex_x[i], vertex_y[i]) and is the lowest from x = until[i] to until[i + 1].

    Along the row, the squared distance from x to the nearest other label in the column at x_c is
    (x - x_c)^2 + (distance along the column)^2, a parabola with its vertex at x_c. The smallest at
    each x is the lower envelope (Felzenszwalb and Huttenlocher). The pixels next to the run have
    another label, so their parabolas have a vertex of height 0. (At the border of the map there is
    none.) Without any parabola, the distances are infinite.
    """
    # Add the parabolas from left to right. All have the same shape, so the new one is the lowest to
    # the right of its crossing with the last. If the last begins further right, it is useless
    n_parabolas = 0
    for column in range(max(first - 1, 0), min(last + 1, distance.shape[1])):
        outside = column < first or column >= last
        y = 0.0 if outside else distance[row, column] * row_step
        y *= y
        if y == np.inf:  # no other label in this column
            continue
        x = column * col_step
        crossing = -np.inf  # the x from which the new parabola is the lowest
        while n_parabolas > 0:
            last_x, last_y = vertex_x[n_parabolas - 1], vertex_y[n_parabolas - 1]
            crossing = (y + x * x - last_y - last_x * last_x) / (2 * (x - last_x))
            if crossing > until[n_parabolas - 1]:
                break
            n_parabolas -= 1
        vertex_x[n_parabolas], vertex_y[n_parabolas], until[n_parabolas] = x, y, crossing
        n_parabolas += 1
    if n_parabolas == 0:
        for column in range(first, last):
            distance[row, column] = np.inf
        return
    until[n_parabolas] = np.inf
    # Read the envelope at each column
    parabola = 0
    for column in range(first, last):
        while until[parabola + 1] < column * col_step:
            parabola += 1
        along = column * col_step - vertex_x[parabola]
        distance[row, column] = vertex_y[parabola] + along * along
