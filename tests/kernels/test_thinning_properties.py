"""Changes of random maps, replayed, give at every threshold what thinning it alone gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.ndimage import gaussian_filter

from bsdsbench.kernels import thinning
from bsdsbench.kernels.thinning import stack_changes, thinning_changes
from tests.reference import thinning as reference
from tests.reference.thinning import replay

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=14)


@st.composite
def level_maps(draw):
    """White noise, smooth noise, and steep ramps: few and many levels, thin and thick."""
    n = draw(st.integers(1, 9))
    rows, cols = draw(SHAPES)
    if draw(st.booleans()):
        return draw(hnp.arrays(np.int16, (rows, cols), elements=st.integers(0, n))), n
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    noise = gaussian_filter(rng.random((2 * rows, 2 * cols)), draw(st.floats(0.3, 4)))
    noise = (noise - noise.min()) / max(np.ptp(noise), 1e-9)
    return np.minimum(noise * (n + 1), n).astype(np.int16), n


@settings(max_examples=150, deadline=None)
@given(level_maps())
@pytest.mark.slow
def test_changes_give_every_thinned_map(case):
    levels, n = case
    maps = replay(thinning_changes(levels, n), levels.shape)
    for i, found in enumerate(maps):
        assert np.array_equal(found, reference.thin(levels > i)), i


@pytest.mark.parametrize("blur", [0, 0.7, 3, 9])
@pytest.mark.parametrize("shape", [(65, 64), (64, 65), (130, 200)])
def test_changes_over_several_words_and_tiles(shape, blur):
    """Thick and thin maps with an empty frame of varying width, so that the box moves."""
    rng = np.random.default_rng(shape[1])
    for frame in range(0, 15, 7):
        noise = gaussian_filter(rng.random(shape), blur)
        levels = np.floor(8 * (noise - noise.min()) / np.ptp(noise)).astype(np.int16)
        levels[:frame], levels[:, :frame], levels[:, shape[1] - frame :] = 0, 0, 0
        maps = replay(thinning_changes(levels, 8), shape)
        for i, found in enumerate(maps):
            assert np.array_equal(found, reference.thin(levels > i)), i


def test_more_changes_than_there_was_room_for(monkeypatch):
    levels = np.random.default_rng(0).integers(0, 100, (60, 70)).astype(np.int16)
    every = thinning_changes(levels, 99)
    assert every[0][-1] > 2 * np.count_nonzero(levels)
    monkeypatch.setattr(thinning, "_CHANGES_PER_PIXEL", 1)
    for found, expected in zip(thinning_changes(levels, 99), every, strict=True):
        assert np.array_equal(found, expected)


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=9)))
def test_changes_of_a_stack(maps):
    assert np.array_equal(replay(stack_changes(maps), maps.shape[1:]), maps)
