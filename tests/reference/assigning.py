"""Assignment by plain definition: every pair's cost in a table, solved by scipy's solvers."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

METRICS = {
    "l2": lambda d: np.sqrt((d**2).sum(-1)),
    "l1": lambda d: np.abs(d).sum(-1),
    "linf": lambda d: np.abs(d).max(-1),
}


def cost_table(a, b, radius, metric, a_value=0.0):
    """(N, M) costs of points (N, 2) with points (M, 2), infinite where a pair is not allowed."""
    far = METRICS[metric]((b[None] - a[:, None]).astype(float))
    return np.where(far <= radius, far + np.broadcast_to(a_value, len(a))[:, None], np.inf)


def dense(table):
    """Number of pairs and least total cost: a missing pair costs more than all the others."""
    if not np.isfinite(table).any():
        return 0, 0.0
    rows, cols = linear_sum_assignment(np.where(np.isfinite(table), table, missing(table)))
    paid = table[rows, cols]
    return int(np.isfinite(paid).sum()), float(paid[np.isfinite(paid)].sum())


def missing(table):
    known = table[np.isfinite(table)]
    return known.max() + (min(table.shape) + 1) * (np.ptp(known) + 1)


def sparse(table):
    """The same by the sparse solver, which wants every row matched: to a column of its own if need
    be, at the price of a missing pair.

    Third, how exact that cost is: costs are made whole numbers of 40 bits first, since the solver
    need not end with others.
    """
    if len(table) > table.shape[1]:
        return sparse(table.T)
    n, m = table.shape
    i, j = np.nonzero(np.isfinite(table))
    if not len(i):
        return 0, 0.0, 0.0
    low, most = table[i, j].min(), np.ptp(table[i, j])
    unit = 2.0 ** np.ceil(np.log2((most + 1) * (n + 1)) - 40)
    cost = np.rint((table - low) / unit)
    at = np.append(i, range(n)).astype(np.int32), np.append(j, range(m, m + n)).astype(np.int32)
    paid = np.append(cost[i, j], np.full(n, missing(cost))) + 1  # 0 would be no edge
    row, col = min_weight_full_bipartite_matching(csr_array(coo_array((paid, at))))
    found = table[row, col.clip(max=m - 1)][col < m]
    return len(found), float(found.sum()), len(found) * unit
