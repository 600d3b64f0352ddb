"""Thinned real maps are, pixel by pixel, those of the slow definition and of scikit-image."""

import numpy as np
import pytest
from skimage.morphology import thin as skimage_thin

from bsdsbench.kernels.thinning import stack_events, thin, thinning_events
from bsdsbench.kernels.thresholding import levels
from bsdsbench.loaders import load_prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.protocol.protocol import even_thresholds
from tests.reference import thinning as reference

THRESHOLDS = np.array(even_thresholds(99))


def thinned(pred):
    """Levels, and the 99 maps that the events give."""
    level = levels(pred.boundary_map(), THRESHOLDS)
    return level, reference.replay(thinning_events(level, 99), level.shape)


def mats(folder):
    files = sorted(folder.glob("*.mat"))
    assert files, folder
    return files


@pytest.mark.parametrize("index", [0, 33, 66, 99])
def test_val_map(bsds500, index):
    level, maps = thinned(load_prediction(mats(bsds500 / "ucm2" / "val")[index]))
    for i in range(index % 7, 99, 23):
        assert np.array_equal(maps[i], reference.thin(level > i)), i


@pytest.mark.parametrize("kind", ["ucm2", "png"])
def test_self_test_maps(bsds500_bench, kind):
    files = sorted((bsds500_bench / kind).iterdir())
    assert len(files) == 5
    for k, path in enumerate(files):
        level, maps = thinned(load_prediction(path))
        for i in (3 + k, 40 + 2 * k):
            assert np.array_equal(maps[i], reference.thin(level > i)), (path.name, i)


def test_segmentations(bsds500_bench):
    for path in mats(bsds500_bench / "segs"):
        segs = load_prediction(path).segs
        bmaps = np.stack([thin(seg2bdry(seg)) for seg in segs])
        for seg, bmap in zip(segs, bmaps, strict=True):
            assert np.array_equal(bmap, skimage_thin(seg2bdry(seg))), path.name
        assert np.array_equal(reference.replay(stack_events(bmaps), bmaps.shape[1:]), bmaps)
        assert np.array_equal(bmaps[-1], reference.thin(seg2bdry(segs[-1])))


@pytest.mark.heavy
def test_all_maps(bsds500, bsds500_bench):
    files = mats(bsds500 / "ucm2" / "val") + sorted((bsds500_bench / "png").iterdir())
    files += mats(bsds500_bench / "ucm2")
    assert len(files) == 110
    for path in files:
        level, maps = thinned(load_prediction(path))
        for i in range(99):
            assert np.array_equal(maps[i], reference.thin(level > i)), (path.name, i)
