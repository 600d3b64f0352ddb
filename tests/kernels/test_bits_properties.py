"""Maps as words of bits, and what is laid over them, at widths around a word's and two words'."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from bsdsbench.kernels.bits import pack, unpack
from bsdsbench.kernels.matching.graph import disk, within_reach

COLS = st.sampled_from([1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200])
QUICK = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def maps(draw):
    """Mostly empty (H, W) bool maps."""
    shape = draw(st.integers(1, 12)), draw(COLS)
    return draw(hnp.arrays(bool, shape, elements=st.booleans(), fill=st.just(False)))


@QUICK
@given(maps())
def test_packed_words_hold_each_pixel_and_nothing_else(bmap) -> None:
    rows, cols = bmap.shape
    words = pack(bmap)
    assert words.shape == (rows, -(-cols // 64))
    column = np.arange(64 * words.shape[1])
    bit = words[:, column >> 6] >> (column & 63).astype(np.uint64) & np.uint64(1)
    np.testing.assert_array_equal(bit[:, :cols], bmap)
    assert not bit[:, cols:].any()
    np.testing.assert_array_equal(unpack(words, cols), bmap)


@QUICK
@given(maps(), st.sampled_from([0.0, 1.0, 1.42, 3.5, 17.3, 70.0, 150.0]))
def test_within_reach_is_the_distance_to_the_nearest_pixel(bmap, radius) -> None:
    near = within_reach(bmap, disk(radius, bmap.shape).half)
    distance = ndimage.distance_transform_edt(~bmap) if bmap.any() else np.full(bmap.shape, np.inf)
    np.testing.assert_array_equal(near, distance <= radius)
