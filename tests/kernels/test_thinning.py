"""Thinning: the bits follow the definition, hand-drawn maps, scikit-image as an outside truth."""

import numpy as np
import pytest
from skimage.morphology import thin as skimage_thin

from bsdsbench.kernels.thinning import (
    TILE_ROWS,
    mark_deletable,
    stack_changes,
    thin_map,
    thinning_changes,
)
from tests.reference import thinning as reference

OFFSETS = ((0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1))  # x1 .. x8


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("col", [1, 62, 63, 64, 65])
def test_a_pixel_is_judged_as_defined_in_all_neighbourhoods(second, col):
    # A box of 3 words by 3 tiles; the pixel at the tiles' corners, edges and inside.
    stride = 5 * TILE_ROWS
    for row in (1, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 5):
        for code in range(256):
            x = [bool(code >> i & 1) for i in range(8)]
            on = np.zeros((3 * TILE_ROWS, 192), bool)
            on[row, col] = True
            for beside, (down, right) in zip(x, OFFSETS, strict=True):
                on[row + down, col + right] = beside
            now = np.zeros(5 * stride, np.uint64)
            packed = np.packbits(on, axis=1, bitorder="little").view("<u8").astype(np.uint64)
            now.reshape(5, stride)[1:4, TILE_ROWS : 4 * TILE_ROWS] = packed.T
            gone = np.zeros_like(now)
            at = (col // 64 + 1) * stride + TILE_ROWS + row
            tile = at // TILE_ROWS * TILE_ROWS
            mark_deletable(now, gone, tile, stride, int(second))
            deleted = bool(gone[at] >> np.uint64(col % 64) & np.uint64(1))
            assert deleted == reference.removable(x, second), code


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (17, 30), (70, 131)])
@pytest.mark.parametrize("density", [0.2, 0.5, 0.8, 1.0])
def test_same_as_scikit_image(shape, density):
    bmap = np.random.default_rng(7).random(shape) < density
    assert np.array_equal(thin_map(bmap), skimage_thin(bmap))


def test_changes_of_a_stack_from_the_last_map_to_the_first():
    maps = np.array([[[True, False, True]], [[False, True, False]]])
    start, pixel, added = stack_changes(maps)
    assert start.tolist() == [0, 1, 4]
    assert pixel.tolist() == [1, 0, 1, 2]
    assert added.tolist() == [True, True, False, True]


def test_no_maps_no_changes():
    start, pixel, added = stack_changes(np.zeros((0, 3, 4), bool))
    assert (start.tolist(), pixel.size, added.size) == ([0], 0, 0)
    for shape in ((3, 4), (0, 0), (0, 300), (300, 0), (70, 300)):
        start, pixel, added = thinning_changes(np.zeros(shape, np.int16), 5)
        assert (start.tolist(), pixel.size, added.size) == ([0] * 6, 0, 0)
