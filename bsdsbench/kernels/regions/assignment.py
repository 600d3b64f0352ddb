"""One-to-one assignment of regions with the largest total intersection, on a sparse table.

Columns (annotated regions) are added one by one, each by the cheapest augmenting path over the rows
(shortest augmenting paths with potentials, Jonker and Volgenant, Computing 1987). A pair of n
common pixels costs -n, an unmatched column 0. All costs are integers, so the result is exact. Only
stored cells are visited.
"""

from itertools import pairwise

import numpy as np

from bsdsbench.kernels.arrays import I4, I8
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.regions.contingency import tabulate

_UNREACHED = np.int64(2**62)


def largest_total(indptr: I8, cols: I4, counts: I8, col_start: I8) -> int:
    """Return the largest total intersection, in pixels, of one-to-one pairs of regions.

    The regions of the segmentation are paired with those of each annotator in turn, and the totals
    are summed over annotators.

    indptr int64, cols int32, counts int64: the table of overlaps in CSR form. Row r, a region of
        the segmentation, meets the annotated region cols[e] in counts[e] pixels, e from indptr[r]
        to indptr[r + 1] - 1.
    col_start int64 (A + 1,): the columns of annotator k are col_start[k] : col_start[k + 1].
    """
    n_rows = indptr.size - 1
    n_cols = int(col_start[-1])
    row_of_cell = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(indptr))
    table = tabulate(cols, row_of_cell, counts, n_cols, n_rows)  # transposed: column by column
    work_space = *np.empty((6, n_rows), np.int64), *np.empty((3, n_cols), np.int64)
    return sum(_assign_columns(*table, *ends, *work_space) for ends in pairwise(col_start))


@kernel(_nrt=False)
def _assign_columns(
    start,
    rows,
    n,
    first,
    last,
    col_of_row,
    row_potential,
    dist,
    parent_col,
    done,
    seen,
    row_of_col,
    col_potential,
    scanned,
):
    """Pair the columns first .. last - 1 with rows, and return the largest total intersection.

    start int64 (columns + 1,), rows int32, n int64 (cells,): column c meets row rows[e] in n[e]
        pixels, e from start[c] to start[c + 1] - 1.

    The rest is work space with any content, int64. Columns are counted from `first` on.
    col_of_row, row_of_col: the partner of each row and column, or -1.
    row_potential, col_potential: the dual variables; those of rows are never positive.
    dist, parent_col (rows,): cost of the cheapest path from the new column to a row, and the column
        before the row on this path.
    done (rows,): 1 if the distance of a row is final.
    seen, scanned: lists of the rows with a distance, and of the columns on paths.

    Each column in turn starts a search for the cheapest augmenting path (Dijkstra's algorithm on
    reduced costs). The path ends at the nearest free row, or at a column that gives its row away.
    Then the potentials are updated, and pairs along the path are exchanged.
    """
    for r in range(dist.size):
        col_of_row[r], row_potential[r], dist[r], done[r] = -1, 0, _UNREACHED, 0
    for c in range(last - first):
        row_of_col[c], col_potential[c] = -1, 0
    for new in range(last - first):
        n_seen = n_scanned = 0
        length = np.int64(0)
        # A path may also end at a column that gives its row away and stays unmatched.
        unmatched, unmatched_dist = -1, _UNREACHED
        c, end = new, -1  # the column to scan, and the free row at the end of the path
        while True:
            scanned[n_scanned] = c
            n_scanned += 1
            if length - col_potential[c] < unmatched_dist:
                unmatched, unmatched_dist = c, length - col_potential[c]
            for cell in range(start[first + c], start[first + c + 1]):
                r = rows[cell]
                d = length - n[cell] - col_potential[c] - row_potential[r]
                if not done[r] and d < dist[r]:
                    if dist[r] == _UNREACHED:
                        seen[n_seen] = r
                        n_seen += 1
                    dist[r] = d
                    parent_col[r] = c
            nearest = _nearest_row(seen[:n_seen], done, dist)
            if nearest < 0 or unmatched_dist <= dist[nearest]:
                length = unmatched_dist
                break
            length = dist[nearest]
            if col_of_row[nearest] < 0:
                end = nearest
                break
            done[nearest] = 1
            c = col_of_row[nearest]
        for s in range(n_scanned):
            c = scanned[s]
            col_potential[c] += length if c == new else length - dist[row_of_col[c]]
        for s in range(n_seen):
            r = seen[s]
            if done[r]:
                row_potential[r] -= length - dist[r]
        if end < 0:
            end = row_of_col[unmatched]
            row_of_col[unmatched] = -1
        while end >= 0:  # flip the path, from its end back to the new column
            c = parent_col[end]
            col_of_row[end] = c
            row_of_col[c], end = end, row_of_col[c]
            if c == new:
                break
        for s in range(n_seen):
            dist[seen[s]] = _UNREACHED
            done[seen[s]] = 0
    total = np.int64(0)
    for c in range(last - first):
        for cell in range(start[first + c], start[first + c + 1]):
            if rows[cell] == row_of_col[c]:
                total += n[cell]
    return total


@kernel(inline="always")
def _nearest_row(seen, done, dist):
    """Return the row with the least distance in the list `seen`, or -1 if all rows are done.

    done, dist (rows,): as in `_assign_columns`. Of equal distances the first row is returned.
    """
    nearest = -1
    for r in seen:
        if not done[r] and (nearest < 0 or dist[r] < dist[nearest]):
            nearest = r
    return nearest
