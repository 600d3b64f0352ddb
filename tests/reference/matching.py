"""Boundary matching by plain definition: every pair listed, solved by somebody else's solver."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching
from scipy.spatial import cKDTree

MASK = 2**64 - 1


def lost_pair(max_dist_px: float) -> int:
    return max(1, math.ceil(100 * 100 * max_dist_px))


def pairs(bmap, gt, max_dist_px: float):
    """(i, j, c): indices among the set pixels of bmap and of gt, and round(100 distance)."""
    a, b = np.argwhere(bmap).reshape(-1, 2), np.argwhere(gt).reshape(-1, 2)
    if not len(a) or not len(b):
        return np.zeros(0, int), np.zeros(0, int), np.zeros(0, int)
    near = cKDTree(a).sparse_distance_matrix(cKDTree(b), max_dist_px + 1e-6, output_type="ndarray")
    square = ((a[near["i"]] - b[near["j"]]) ** 2).sum(1)
    keep = np.sqrt(square) <= max_dist_px
    return near["i"][keep], near["j"][keep], np.rint(100 * np.sqrt(square[keep])).astype(int)


def tie(pred: int, gt: int, annotator: int) -> int:
    """The 24-bit hash that decides between optima, in Python's own integers."""
    x = pred * 0xD6E8FEB86659FD93 + gt * 0xA0761D6478BD642F + annotator * 0x9E3779B97F4A7C15
    x &= MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return (x ^ x >> 31) >> 40


def optimum(bmap, gt, max_dist_px: float, annotator: int = 0):
    """(cost, pairs of flat indices) of the one optimum, by scipy's dense assignment.

    It is the one where costs and ties stay whole numbers in 53 bits: for small maps.
    """
    i, j, c = pairs(bmap, gt, max_dist_px)
    p, g = np.flatnonzero(bmap), np.flatnonzero(gt)
    lost = lost_pair(max_dist_px)
    ties = [tie(int(a), int(b), annotator) for a, b in zip(p[i], g[j], strict=True)]
    big = 1 << (24 + len(g).bit_length())
    gain = np.zeros((len(p), len(g)))
    gain[i, j] = (lost - c) * big - np.array(ties, np.int64)
    assert gain.max(initial=0) < 2**50
    rows = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
    chosen = [(int(p[a]), int(g[b])) for a, b in rows if gain[a, b] > 0]
    paid = dict(zip(zip(p[i].tolist(), g[j].tolist(), strict=True), c.tolist(), strict=True))
    cost = sum(paid[pair] for pair in chosen)
    return cost + lost * (len(p) + len(g) - len(chosen)), chosen


def dense_cost(bmap, gt, max_dist_px: float) -> int:
    """The least cost, by scipy's dense assignment with one outlier for every pixel."""
    i, j, c = pairs(bmap, gt, max_dist_px)
    n, m, lost = np.count_nonzero(bmap), np.count_nonzero(gt), lost_pair(max_dist_px)
    gain = np.zeros((n, m))
    gain[i, j] = lost - c
    at = linear_sum_assignment(gain, maximize=True)
    return lost * (n + m) - int(gain[at].sum())


def sparse_cost(bmap, gt, max_dist_px: float) -> int:
    """The least cost, by scipy's min_weight_full_bipartite_matching on the official graph.

    Every predicted pixel has an outlier column of its own, every ground-truth pixel an outlier
    row, at C; outlier rows and columns of a possible pair are joined, at C as well.
    """
    i, j, c = pairs(bmap, gt, max_dist_px)
    n, m, lost = np.count_nonzero(bmap), np.count_nonzero(gt), lost_pair(max_dist_px)
    if not n + m:
        return 0
    rows = np.concatenate([i, np.arange(n), n + np.arange(m), n + j])
    cols = np.concatenate([j, m + np.arange(n), np.arange(m), m + i])
    paid = np.concatenate([c, np.full(n + m + len(j), lost)])
    at = rows.astype(np.int32), cols.astype(np.int32)  # scipy 1.11 matches no int64 graph
    graph = coo_array((paid + 1.0, at), shape=(n + m, n + m))  # 0 would be no edge
    at = min_weight_full_bipartite_matching(csr_array(graph))
    return int(csr_array(graph)[at].sum()) - (n + m)


def cardinality(bmap, gt, max_dist_px: float) -> int:
    """The largest number of pairs, by scipy's maximum_bipartite_matching."""
    i, j, _ = pairs(bmap, gt, max_dist_px)
    shape = (np.count_nonzero(bmap), np.count_nonzero(gt))
    if 0 in shape:
        return 0
    at = i.astype(np.int32), j.astype(np.int32)
    graph = csr_array(coo_array((np.ones(len(i), bool), at), shape=shape))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
