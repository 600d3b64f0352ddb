"""Levels and counts of random maps equal one comparison per pixel and threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bsdsbench.kernels.thresholding import confusion, levels
from tests.reference import thinning as reference

UNIT = st.floats(0, 1, width=32)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=9)


@st.composite
def cases(draw):
    """Values of any supported type; thresholds that often coincide with values."""
    dtype = draw(st.sampled_from([np.uint8, np.uint16, np.float32, np.float64, np.bool_]))
    kind = np.dtype(dtype).kind
    elements = UNIT if kind == "f" else None
    values = draw(hnp.arrays(dtype, draw(SHAPES), elements=elements))
    top = np.iinfo(dtype).max if kind == "u" else 1
    ties = [float(v) / top for v in values.ravel()[:5]]
    other = st.one_of(st.floats(0, 1), *([st.sampled_from(ties)] if ties else []))
    thresholds = sorted(draw(st.lists(other, min_size=1, max_size=30)))
    gt = draw(hnp.arrays(np.bool_, values.shape))
    return values, gt, np.array(thresholds)


@settings(max_examples=150, deadline=None)
@given(cases())
@pytest.mark.slow
def test_levels_and_confusion(case):
    values, gt, thresholds = case
    expected = reference.levels(values, thresholds)
    assert np.array_equal(levels(values, thresholds), expected)
    on = expected[None] > np.arange(thresholds.size)[:, None, None]
    truth = [on & gt, on & ~gt, ~on & gt, ~on & ~gt]
    for found, pixels in zip(confusion(values, gt, thresholds), truth, strict=True):
        assert np.array_equal(found, pixels.sum(axis=(1, 2)))
