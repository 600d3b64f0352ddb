"""Distances between outlines, and to the nearest pixel of another label, by comparing all."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from bsdsbench.kernels.distances import distances
from bsdsbench.kernels.distances.distances import Outlines

STEPS = ((1.0, 1.0), (0.5, 2.25))


def sites(rng, density, shape=(13, 17), labels=3):
    """Pixels of three labels in raster order, the second without any."""
    start, rows, cols = [0], [], []
    for k in range(labels):
        on = rng.random(shape) < (0 if k == 1 else density)
        on[tuple(n // 2 for n in shape)] = k != 1
        y, x = np.nonzero(on)
        rows.append(y), cols.append(x)
        start.append(start[-1] + y.size)
    return Outlines(np.array(start), *(np.concatenate(x).astype(np.int32) for x in (rows, cols)))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("density", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("patience", [distances._PATIENCE, 0])
def test_nearest_sites(density, steps, patience):
    rng = np.random.default_rng(round(100 * density))
    a, b = sites(rng, density), sites(rng, 0.02)
    # Beyond the patience of the search
    far = a if patience else a._replace(rows=a.rows + np.int32(40))
    found = distances.nearest(far, b, *steps)
    for k in range(3):
        mine, other = (
            np.stack([s[1][s[0][k] : s[0][k + 1]], s[2][s[0][k] : s[0][k + 1]]], 1) * steps
            for s in (far, b)
        )
        expected = cdist(mine, other, "sqeuclidean").min(1) if len(other) else np.inf
        assert found[far[0][k] : far[0][k + 1]] == pytest.approx(expected, rel=1e-12)


def test_nearest_where_one_side_has_no_site():
    one, none = np.array([0, 1]), np.array([0, 0])
    here, nothing = np.array([4], np.int32), np.zeros(0, np.int32)
    a, b = Outlines(one, here, here), Outlines(none, nothing, nothing)
    assert distances.nearest(a, b, 1.0, 1.0).tolist() == [np.inf]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(5))
def test_to_other_label(seed, steps):
    rng = np.random.default_rng(seed)
    labels = np.kron(rng.integers(0, 3, (3, 4)), np.ones((4, 3), int)).astype(np.int32)
    labels[rng.random(labels.shape) < 0.03 * seed] = 7
    at = np.argwhere(np.ones(labels.shape, bool)) * steps
    apart = cdist(at, at, "sqeuclidean")
    apart[labels.ravel()[:, None] == labels.ravel()] = np.inf
    found = distances.to_other_label(labels, *steps)
    assert found.ravel() == pytest.approx(apart.min(1), rel=1e-12)


def test_one_label_is_infinitely_far_from_others():
    found = distances.to_other_label(np.zeros((3, 4), np.int32), 1.0, 1.0)
    assert np.isinf(found).all()
