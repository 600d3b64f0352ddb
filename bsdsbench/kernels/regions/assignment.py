"""One-to-one assignment of regions with the largest total intersection, on a sparse table.

Columns (annotated regions) are added one by one, each by the cheapest augmenting path over the rows
(shortest augmenting paths with potentials, Jonker and Volgenant, Computing 1987). A pair of n
common pixels costs -n, an unmatched column 0. All costs are integers, so the result is exact. Only
stored cells are visited.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I8
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.regions.contingency import Cells, tabulate

_UNREACHED = np.int64(2**62)


class _Rows(NamedTuple):
    """The state of the rows in a search, int64 (rows,) each."""

    col: I8  # the column of each row's pair, or -1
    potential: I8  # dual variable, never positive
    dist: I8  # cost of the cheapest path from the new column, or _UNREACHED
    parent_col: I8  # the column before the row on this path
    is_done: I8  # 1 if the distance is final
    reached: I8  # list of the rows with a distance


class _Columns(NamedTuple):
    """The state of an annotator's columns in a search, int64 (columns,) each."""

    row: I8  # the row of each column's pair, or -1
    potential: I8  # dual variable
    scanned: I8  # list of the columns on paths


def largest_total(table: Cells, col_start: I8) -> int:
    """Return the largest total intersection, in pixels, of one-to-one pairs of regions.

    The regions of the segmentation, rows of the table, are paired with those of each annotator in
    turn, and the totals are summed over annotators. The columns of annotator k are
    col_start[k] : col_start[k + 1].
    """
    n_rows, n_cols = table.indptr.size - 1, int(col_start[-1])
    row_of_cell = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(table.indptr))
    by_column = tabulate(table.cols, row_of_cell, table.counts, n_cols, n_rows)  # transposed
    rows = _Rows(*np.empty((6, n_rows), np.int64))
    columns = _Columns(*np.empty((3, n_cols), np.int64))
    return sum(_assign_columns(by_column, *ends, rows, columns) for ends in pairwise(col_start))


@kernel(_nrt=False)
def _assign_columns(table, first, last, rows, columns):
    """Pair the columns first .. last - 1 with rows, and return the largest total intersection.

    table: Cells, column by column: column c meets row table.cols[e] in table.counts[e] pixels, e
        from table.indptr[c] to table.indptr[c + 1] - 1.
    rows, columns: work space with any content. Columns are counted from `first` on.

    Each column in turn starts a search for the cheapest augmenting path (Dijkstra's algorithm on
    reduced costs). The path ends at the nearest free row, or at a column that gives its row away.
    Then the potentials are updated, and pairs along the path are exchanged.
    """
    start, row_of_cell, overlap = table
    dist, is_done, reached, scanned = rows.dist, rows.is_done, rows.reached, columns.scanned
    for r in range(dist.size):
        rows.col[r], rows.potential[r], dist[r], is_done[r] = -1, 0, _UNREACHED, 0
    for c in range(last - first):
        columns.row[c], columns.potential[c] = -1, 0
    for new_col in range(last - first):
        n_reached = n_scanned = 0
        path_cost = np.int64(0)
        # A path may also end at a column that gives its row away and stays unmatched.
        unmatched, unmatched_cost = -1, _UNREACHED
        c, free_row = new_col, -1  # the column to scan, and the free row at the end of the path
        while True:
            scanned[n_scanned] = c
            n_scanned += 1
            if path_cost - columns.potential[c] < unmatched_cost:
                unmatched, unmatched_cost = c, path_cost - columns.potential[c]
            for cell in range(start[first + c], start[first + c + 1]):
                r = row_of_cell[cell]
                cost = path_cost - overlap[cell] - columns.potential[c] - rows.potential[r]
                if not is_done[r] and cost < dist[r]:
                    if dist[r] == _UNREACHED:
                        reached[n_reached] = r
                        n_reached += 1
                    dist[r] = cost
                    rows.parent_col[r] = c
            nearest = -1  # of equal distances the first row
            for r in reached[:n_reached]:
                if not is_done[r] and (nearest < 0 or dist[r] < dist[nearest]):
                    nearest = r
            if nearest < 0 or unmatched_cost <= dist[nearest]:
                path_cost = unmatched_cost
                break
            path_cost = dist[nearest]
            if rows.col[nearest] < 0:
                free_row = nearest
                break
            is_done[nearest] = 1
            c = rows.col[nearest]
        for c in scanned[:n_scanned]:
            before = np.int64(0) if c == new_col else dist[columns.row[c]]
            columns.potential[c] += path_cost - before
        for r in reached[:n_reached]:
            if is_done[r]:
                rows.potential[r] -= path_cost - dist[r]
        if free_row < 0:
            free_row = columns.row[unmatched]
            columns.row[unmatched] = -1
        while free_row >= 0:  # flip the path, from its end back to the new column
            c = rows.parent_col[free_row]
            rows.col[free_row] = c
            columns.row[c], free_row = free_row, columns.row[c]
            if c == new_col:
                break
        for r in reached[:n_reached]:
            dist[r] = _UNREACHED
            is_done[r] = 0
    total = np.int64(0)
    for c in range(last - first):
        for cell in range(start[first + c], start[first + c + 1]):
            if row_of_cell[cell] == columns.row[c]:
                total += overlap[cell]
    return total
