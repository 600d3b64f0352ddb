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
    """Return the largest total intersection of regions paired one to one with annotators'.

    The total is summed over annotators. `indptr`, `cols` and `counts` form a table of
    contingency.py. The columns of annotator k are col_start[k] : col_start[k+1].
    """
    n_rows = indptr.size - 1
    n_cols = int(col_start[-1])
    row_of_cell = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(indptr))
    table = tabulate(cols, row_of_cell, counts, n_cols, n_rows)
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
    """Pair the columns first .. last-1 with rows. Returns the total intersection of the pairs.

    The cells of column c are start[c] : start[c+1], with their rows and pixels n. The other arrays
    are work space, int64 (rows,) and (columns,). `row_potential` is never positive. `parent_col` is
    the column from which a row was reached.
    """
    for r in range(dist.size):
        col_of_row[r], row_potential[r], dist[r], done[r] = -1, 0, _UNREACHED, 0
    for c in range(last - first):
        row_of_col[c], col_potential[c] = -1, 0
    for new in range(last - first):
        n_seen = n_scanned = 0
        length = np.int64(0)
        # A path may also end at a column that gives its row away and stays unmatched.
        c, unmatched, unmatched_dist, end = new, -1, _UNREACHED, -1
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
    """Return the nearest of the rows `seen` that are not done (the first of equals), or -1."""
    nearest = -1
    for r in seen:
        if not done[r] and (nearest < 0 or dist[r] < dist[nearest]):
            nearest = r
    return nearest
