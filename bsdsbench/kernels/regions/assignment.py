"""One-to-one assignment of regions with the largest total intersection, on a sparse table.

Columns (annotated regions) are added one by one, each by the cheapest augmenting path over the rows
(shortest augmenting paths with potentials, Jonker and Volgenant, Computing 1987). All costs are
integers, so the result is exact. Only stored cells are visited; a column without a profitable row
stays unmatched at cost 0.
"""

import numpy as np

from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.regions.contingency import tabulate


@kernel
def largest_total(indptr, cols, counts, col_start):
    """Largest total of a one-to-one assignment with each annotator, summed over annotators."""
    n_rows = indptr.size - 1
    row_of = np.empty(cols.size, np.int32)
    for r in range(n_rows):
        row_of[indptr[r] : indptr[r + 1]] = r
    start, rows, n = tabulate(cols, row_of, counts, col_start[-1], n_rows)
    total = np.int64(0)
    for k in range(col_start.size - 1):
        total += _assign(start, rows, n, col_start[k], col_start[k + 1], n_rows)
    return total


@kernel
def _assign(start, rows, n, first, last, n_rows):
    far = np.int64(2**62)
    owner = np.full(n_rows, -1, np.int64)  # the column a row is given to
    price = np.zeros(n_rows, np.int64)  # potentials of rows, never positive
    taken = np.full(last - first, -1, np.int64)  # the row of a column
    level = np.zeros(last - first, np.int64)  # potentials of columns
    dist = np.full(n_rows, far, np.int64)
    back = np.empty(n_rows, np.int64)  # the column a row was reached from
    done = np.zeros(n_rows, np.bool_)
    seen = np.empty(n_rows, np.int64)
    scanned = np.empty(last - first, np.int64)
    for new in range(last - first):
        n_seen = n_scanned = 0
        low = np.int64(0)
        c, alone, alone_dist, end = new, -1, far, -1
        while True:
            scanned[n_scanned] = c
            n_scanned += 1
            if low - level[c] < alone_dist:  # column c could end the path by staying alone
                alone, alone_dist = c, low - level[c]
            for e in range(start[first + c], start[first + c + 1]):
                r = rows[e]
                d = low - n[e] - level[c] - price[r]
                if not done[r] and d < dist[r]:
                    if dist[r] == far:
                        seen[n_seen] = r
                        n_seen += 1
                    dist[r] = d
                    back[r] = c
            best = -1
            for s in range(n_seen):
                r = seen[s]
                if not done[r] and (best < 0 or dist[r] < dist[best]):
                    best = r
            if best < 0 or alone_dist <= dist[best]:
                low = alone_dist
                break
            low = dist[best]
            if owner[best] < 0:
                end = best
                break
            done[best] = True
            c = owner[best]
        for s in range(n_scanned):
            c = scanned[s]
            level[c] += low if c == new else low - dist[taken[c]]
        for s in range(n_seen):
            r = seen[s]
            if done[r]:
                price[r] -= low - dist[r]
        if end < 0:  # the row of the column that stays alone is handed on
            end = taken[alone]
            taken[alone] = -1
        while end >= 0:
            c = back[end]
            owner[end] = c
            taken[c], end = end, taken[c]
            if c == new:
                break
        for s in range(n_seen):
            dist[seen[s]] = far
            done[seen[s]] = False
    total = np.int64(0)
    for c in range(last - first):
        for e in range(start[first + c], start[first + c + 1]):
            if rows[e] == taken[c]:
                total += n[e]
    return total
