"""The pairs of values of two flat maps, against a dictionary."""

from collections import Counter

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsdsbench.kernels.regions.contingency import value_pairs


def assert_counted(pred: np.ndarray, gt: np.ndarray) -> None:
    pairs, cell = value_pairs(pred, gt)
    expected = Counter(zip(pred.tolist(), gt.tolist(), strict=True))  # in order of first pixels
    assert [tuple(row) for row in pairs.T.tolist()] == [(*k, n) for k, n in expected.items()]
    np.testing.assert_array_equal(pairs[:2, cell], [pred, gt])


@settings(deadline=None)
@given(
    arrays.arrays(
        np.int64,
        st.tuples(st.just(2), st.integers(0, 60)),
        elements=st.one_of(st.integers(-2, 3), st.integers(-(2**63), 2**63 - 1)),
    )
)
def test_pairs_of_a_few_values(maps):
    assert_counted(*maps)


@pytest.mark.parametrize("n", [511, 512, 513, 1025, 5000])
def test_the_table_grows(n):
    values = np.random.default_rng(0).permutation(np.arange(n))
    assert_counted(np.tile(values, 2), np.tile(values << 32, 2))
