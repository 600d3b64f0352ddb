"""Regions given one to one: scipy's total, for each annotator apart."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from bsdsbench.kernels.regions.contingency import Cells, largest_total


def tables():
    """Regions by the regions of one to three annotators: sparse, full, with ties, large counts."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rows, widths = rng.integers(1, 8), rng.integers(1, 7, rng.integers(1, 4))
        most = (2, 4, 50, 10**9)[seed % 4]
        counts = rng.integers(1, most + 1, (rows, widths.sum()))
        counts[rng.random(counts.shape) < (0.0, 0.3, 0.7)[seed % 3]] = 0
        yield seed, counts, np.concatenate([[0], np.cumsum(widths)])


def cells(counts):
    sparse = csr_array(counts)
    return Cells(sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data)


def test_the_largest_total_is_scipys():
    for seed, counts, starts in tables():
        parts = [counts[:, a:b] for a, b in pairwise(starts)]
        best = sum(part[linear_sum_assignment(part, maximize=True)].sum() for part in parts)
        assert largest_total(cells(counts), starts.astype(np.int64)) == best, seed


def test_regions_without_a_cell_stay_alone():
    assert largest_total(cells(np.zeros((3, 2), np.int64)), np.array([0, 1, 2])) == 0


@pytest.mark.parametrize("turned", [False, True])
def test_a_long_row_of_exchanges(turned):
    """Each region is wanted by its neighbour too: the last one moves all before it."""
    n = 40
    counts = 10 * np.eye(n, dtype=np.int64) + 9 * np.eye(n, k=1, dtype=np.int64)
    counts[-1, 0] = 400
    counts = counts[:, ::-1] if turned else counts
    best = counts[linear_sum_assignment(counts, maximize=True)].sum()
    assert largest_total(cells(counts), np.array([0, n])) == best
