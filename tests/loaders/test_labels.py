"""seg2bdry on hand-drawn maps with unequal rows and columns, and against its definition."""

import numpy as np
import pytest

from bsdsbench.errors import ShapeError
from bsdsbench.loaders.labels import seg2bdry
from tests.reference import contours


def test_equals_the_definition_pixel_by_pixel():
    labels = np.random.default_rng(0).integers(0, 3, (7, 11))
    np.testing.assert_array_equal(seg2bdry(labels), contours.side(labels))


@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (1, 6), (6, 1)])
def test_uniform_and_thin_maps_have_no_boundary(shape):
    edge = seg2bdry(np.full(shape, 3, np.uint16))
    assert edge.shape == shape
    assert edge.dtype == bool
    assert not edge.any()


def test_refuses_other_ranks():
    with pytest.raises(ShapeError, match=r"shape \(2, 2, 2\), expected \(H, W\)"):
        seg2bdry(np.zeros((2, 2, 2), int))
