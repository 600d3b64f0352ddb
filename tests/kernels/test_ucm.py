"""The hierarchy of an ultrametric contour map against components of each threshold by itself."""

import numpy as np
import pytest

from bsdsbench.kernels.regions import ucm
from tests.reference.regions import official_regions, seism_regions

THRESHOLDS = np.array([0.1, 0.35, 0.5, 0.75])


def in_order(labels):
    """Numbered 0, 1, .. as they are first met."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()].tolist()


@pytest.fixture(params=range(5))
def ucm2(request):
    rng = np.random.default_rng(request.param)
    found = np.ones((2 * 7 + 1, 2 * 9 + 1))  # with a frame that joins nothing
    found[1:-1, 1:-1] = rng.choice([0, 0.1, 0.2, 0.35, 0.6, 0.75, 0.9, 0.9], (13, 17))
    found[1::2, 1::2] = 0
    return found


@pytest.mark.parametrize("corners", [True, False])
def test_regions_of_every_threshold(ucm2, corners):
    slow = official_regions if corners else seism_regions
    levels = ucm.join_levels(ucm2, THRESHOLDS, corners)
    labels, count = ucm.finest_regions(levels)
    assert labels.tolist() == in_order(slow(ucm2, THRESHOLDS[0]))
    assert count == labels.max() + 1
    a, b, start = ucm.later_joins(levels, labels, THRESHOLDS.size)
    parent, roots, row = np.arange(count, dtype=np.int32), np.arange(count, dtype=np.int32), labels
    for k in range(1, THRESHOLDS.size):
        pairs = slice(start[k], start[k + 1])
        assert all(x != y for x, y in zip(a[pairs], b[pairs], strict=True))
        new_row, roots = ucm.join(parent, roots, a[pairs], b[pairs])
        row = new_row[row]
        assert in_order(row) == in_order(slow(ucm2, THRESHOLDS[k])), k
        assert roots.size == row.max() + 1
    assert start[1] == 0
    assert start[-1] == a.size == b.size
