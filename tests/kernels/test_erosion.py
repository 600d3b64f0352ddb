"""Inner boundaries of masks and label maps, against scipy's erosion of each mask."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from bsdsbench.kernels.distances.erosion import label_shells, mask_shells


def shell(mask: np.ndarray, width: int) -> np.ndarray:
    return mask & ~ndimage.binary_erosion(mask, np.ones((3, 3)), width)


def sums(pred: np.ndarray, gt: np.ndarray) -> list[int]:
    return [int(np.count_nonzero(m)) for m in (pred & gt, pred, gt)]


def assert_counted(pred: np.ndarray, gt: np.ndarray, width: int) -> None:
    expected = []
    for k in range(2):
        masks = pred == k, gt == k
        expected.append(sums(*(shell(m, width) for m in masks)))
        assert mask_shells(*masks, width).tolist() == expected[-1:]
    assert label_shells(pred, gt, 2, width).tolist() == expected


def maps(rows: int, cols: int) -> st.SearchStrategy[np.ndarray]:
    """Two label maps with -1, 0 and 1, mostly 0."""
    shape = st.tuples(st.just(2), st.integers(1, rows), st.integers(1, cols))
    labels = st.sampled_from([0, 1, -1]).map(np.int32)
    return shape.flatmap(lambda s: arrays.arrays(np.int32, s, elements=labels, fill=st.just(0)))


@settings(deadline=None)
@given(maps(12, 12), st.integers(1, 8))
def test_small_maps(pair, width):
    assert_counted(*pair, width)


@settings(deadline=None)
@given(maps(6, 200), st.integers(1, 3))
def test_rows_of_several_words(pair, width):
    assert_counted(*pair, width)


@pytest.mark.parametrize("width", [1, 15, 31, 32, 33, 63, 64, 65, 100, 10**9])
def test_wide_boundaries(width):
    pred, gt = np.zeros((2, 210, 260), np.int32)
    pred[:3], gt[5, 130], gt[200:, 250:] = 1, -1, 1
    iterations = min(width, 300)
    expected = sums(*(shell(m == 0, iterations) for m in (pred, gt)))
    assert label_shells(pred, gt, 2, width)[0].tolist() == expected
    assert mask_shells(pred == 0, gt == 0, width).tolist() == [expected]
