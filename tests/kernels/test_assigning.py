"""Weights of pairs as whole numbers."""

import numpy as np
import pytest

from bsdsbench.kernels.assigning import weights


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 1023, 2**20])
@pytest.mark.parametrize("span", [1.0, 1.99, 4.34, 1e15])
def test_weights_are_as_fine_as_their_sums_allow(n, span):
    """n of them and one have at most 59 bits; no unit is finer than 2^-40."""
    low, high = -3.0, span - 3.0
    found = weights([np.array([high, low]), np.empty(0)], n)
    unit = found.resolution / 2**16
    assert found.parts[0].tolist() == [round((high - low) / unit), 0]
    assert found.parts[1].size == 0
    assert found.top <= 2**59
    assert found.top > 2**56 or unit == 2**-40
