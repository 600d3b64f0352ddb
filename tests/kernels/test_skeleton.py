"""The skeleton of each label is scikit-image's of its mask."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import ndimage
from skimage.morphology import skeletonize

from bsdsbench.kernels.skeleton import skeletons


def expected(labels, n):
    out = np.full(labels.shape, -1, np.int32)
    for k in range(n):
        out[skeletonize(labels == k)] = k
    return out


@settings(deadline=None)
@given(
    arrays(np.int32, array_shapes(min_dims=2, max_dims=2, max_side=70), elements=st.integers(-1, 2))
)
def test_random_labels(labels):
    np.testing.assert_array_equal(skeletons(labels, 3), expected(labels, 3))


@pytest.mark.parametrize("width", [0, 1, 2, 5])
@pytest.mark.parametrize("shape", [(33, 64), (90, 200), (1, 300), (300, 1)])
def test_blobs(width, shape):
    rng = np.random.default_rng(width)
    fields = [ndimage.gaussian_filter(rng.random(shape), width) for _ in range(4)]
    labels = np.argmax(fields, axis=0).astype(np.int32) - 1
    np.testing.assert_array_equal(skeletons(labels, 3), expected(labels, 3))


def test_all_on_and_none():
    full = np.zeros((70, 131), np.int32)
    np.testing.assert_array_equal(skeletons(full, 1), expected(full, 1))
    assert (skeletons(full - 1, 1) == -1).all()
    assert skeletons(np.empty((0, 5), np.int32), 1).shape == (0, 5)
