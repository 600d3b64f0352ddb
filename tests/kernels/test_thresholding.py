"""Levels and confusion counts: ties, every integer value, every dtype, hand-counted maps."""

import numpy as np
import pytest

from bsdsbench.kernels.thresholding import confusion, levels
from bsdsbench.protocol.fields import even_thresholds
from tests.reference import thinning as reference

OFFICIAL = np.array(even_thresholds(99))


@pytest.mark.parametrize("count", [1, 5, 99, 254, 255, 1000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_integer_value(dtype, count):
    values = np.arange(np.iinfo(dtype).max + 1, dtype=np.int64).astype(dtype).reshape(-1, 2)
    thresholds = np.array(even_thresholds(count))
    expected = np.searchsorted(thresholds, values / np.iinfo(dtype).max, side="right")
    found = levels(values, thresholds)
    assert found.dtype == np.int16
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integer_ties_count_as_reached(dtype):
    top = np.iinfo(dtype).max
    for values in np.array_split(np.arange(1, top + 1, dtype=dtype), 3):
        n, at = np.arange(values.size), values / top
        assert np.array_equal(levels(values, np.nextafter(at, 0)), n + 1)
        assert np.array_equal(levels(values, at), n + 1)
        assert np.array_equal(levels(values, np.nextafter(at, 2)), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_ties_count_as_reached(dtype):
    at = OFFICIAL.astype(dtype)
    thresholds = at.astype(np.float64)
    n = np.arange(99)
    assert np.array_equal(levels(at, thresholds), n + 1)
    assert np.array_equal(levels(np.nextafter(at, dtype(0)), thresholds), n)
    assert np.array_equal(levels(np.nextafter(at, dtype(1)), thresholds), n + 1)


def test_values_outside_the_range_and_nan():
    values = np.array([-1.0, 0.0, 1.0, 7.0, np.inf, -np.inf, np.nan])
    assert levels(values, np.array([0.5, 1.0])).tolist() == [0, 0, 2, 2, 2, 0, 0]
    assert levels(values, np.array([0.0])).tolist() == [0, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("apart", [[], [0.7]])
def test_crowded_thresholds(apart):
    thresholds = np.append(0.3 + 1e-12 * np.arange(500), apart)
    values = np.concatenate([thresholds, np.nextafter(thresholds, 0), [0.0, 0.5]]).reshape(2, -1)
    expected = np.searchsorted(thresholds, values, side="right")
    assert np.array_equal(levels(values, thresholds), expected)
    gt = np.arange(values.size).reshape(values.shape) % 3 == 0
    tp, fp, _, _ = confusion(values, gt, thresholds)
    on = expected[None] > np.arange(thresholds.size)[:, None, None]
    assert np.array_equal(tp, (on & gt).sum((1, 2)))
    assert np.array_equal(fp, (on & ~gt).sum((1, 2)))


def test_views_are_read_in_their_own_order():
    values = np.random.default_rng(5).random((9, 14))
    gt = values.T > 0.6
    found = confusion(values.T, gt, OFFICIAL)
    for a, b in zip(found, confusion(values.T.copy(), gt.copy(), OFFICIAL), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(levels(values[::-1, ::2], OFFICIAL), levels(values, OFFICIAL)[::-1, ::2])
    assert np.array_equal(levels(values[:, 3], OFFICIAL), reference.levels(values[:, 3], OFFICIAL))
