"""Sums per label against loops, numpy's quantiles and scikit-learn's confusion table."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from bsdsbench.kernels import tallies

N = 4


@pytest.fixture
def maps():
    pred, gt = np.random.default_rng(1).integers(-1, 3, (2, 90)).astype(np.int32)
    return pred, gt


@pytest.fixture
def lists():
    """Distances of sites of four labels, the third without any, one infinite; their weights."""
    rng = np.random.default_rng(2)
    distance = np.round(9 * rng.random(30), 1)
    distance[29] = np.inf
    return np.array([0, 1, 12, 12, 30]), distance, rng.random(30)


def sums(pred, gt):
    return [[((pred == k) & (gt == k)).sum(), (pred == k).sum(), (gt == k).sum()] for k in range(N)]


def test_shared(maps):
    assert tallies.shared(*maps, N).tolist() == sums(*maps)


def test_shared_within(maps):
    far, limits = np.arange(90.0), np.array([0.0, 40.0, 89.0])
    found = tallies.shared_within(*maps, far, limits, N)
    assert found.tolist() == [sums(*(m[: int(limit) + 1] for m in maps)) for limit in limits]


def test_confusion_table(maps):
    pred, gt = (np.where(m < 0, N, m) for m in maps)
    expected = confusion_matrix(gt, pred, labels=range(N + 1))
    assert tallies.confusion_table(*maps, N).tolist() == expected.tolist()


def test_within(lists):
    start, distance, weight = lists
    limits = np.array([0.0, 3.5, distance[4]])
    found = tallies.within(start, distance, weight, limits)
    for k, one in enumerate(found):
        d, w = (x[start[k] : start[k + 1]] for x in (distance, weight))
        assert one == pytest.approx([w[d <= limit].sum() for limit in limits])


def test_totals(lists):
    start, distance, _ = lists
    for k, one in enumerate(tallies.totals(start, distance, 1 / 9)):
        d = distance[start[k] : start[k + 1]]
        expected = [d.sum(), d.max(initial=-np.inf), (1 / (1 + d**2 / 9)).sum()]
        assert one == pytest.approx(expected)


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 0.95, 1.0])
def test_quantiles(lists, q):
    start, distance, other = lists
    distance = np.minimum(distance, 8)  # numpy has NaN between two infinite ones
    b_start = start[-1] - start[::-1]
    found = tallies.quantiles(start, distance, b_start, other, q)
    assert found.shape == (N, 3)
    for k, one in enumerate(found):
        a, b = distance[start[k] : start[k + 1]], other[b_start[k] : b_start[k + 1]]
        expected = [np.quantile(x, q) if x.size else np.nan for x in (a, b, np.concatenate([a, b]))]
        assert one == pytest.approx(expected, nan_ok=True)


def test_a_quantile_of_infinite_distances_is_infinite():
    start = np.array([0, 3])
    infinite = np.full(3, np.inf)
    assert np.isposinf(tallies.quantiles(start, infinite, start, infinite, 0.5)).all()
