"""Ratios of neighbouring depths, counted by hand."""

import numpy as np
import pytest

from bsdsbench.kernels.depth_pairs import count_hit_mask_edges


@pytest.mark.parametrize("turned", [False, True])
def test_a_ratio_that_is_the_limit_is_no_edge(turned):
    pred, mask = np.array([[5.0, 4.0, 4.0]]), np.array([[True, False, False]])
    if turned:
        pred, mask = np.ascontiguousarray(pred.T), np.ascontiguousarray(mask.T)
    count = count_hit_mask_edges(pred, mask, np.array([1.2, 1.25, 1.3]))
    assert count[:, int(turned)].tolist() == [[1, 1], [0, 1], [0, 1]]
    assert np.delete(count, int(turned), axis=1).sum() == 0
