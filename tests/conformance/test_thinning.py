"""Thinned real maps are, pixel by pixel, those of the slow definition and of scikit-image."""

import numpy as np
import pytest
from skimage.morphology import thin as skimage_thin

from bsdsbench.kernels.thinning import stack_changes, thin_map, thinning_changes
from bsdsbench.kernels.thresholding import levels
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.readers import load_prediction
from bsdsbench.protocol.fields import even_thresholds
from tests.reference import thinning as reference

THRESHOLDS = np.array(even_thresholds(99))


@pytest.mark.parametrize(
    ("each", "step"), [(33, 23), pytest.param(1, 1, marks=pytest.mark.heavy)], ids=["some", "all"]
)
def test_maps(bsds500, bsds500_bench, each, step):
    files = sorted((bsds500 / "ucm2" / "val").glob("*.mat"))[::each]
    for kind in ("ucm2", "png"):
        files += sorted((bsds500_bench / kind).iterdir())
    assert len(files) >= 14
    for k, path in enumerate(files):
        level = levels(load_prediction(path).boundary_map(), THRESHOLDS)
        maps = reference.replay(thinning_changes(level, 99), level.shape)
        for i in range(3 * k % step, 99, step):
            assert np.array_equal(maps[i], reference.thin(level > i)), (path.name, i)


def test_segmentations(bsds500_bench):
    for path in (bsds500_bench / "segs").glob("*.mat"):
        segs = load_prediction(path).segs
        bmaps = np.stack([thin_map(seg2bdry(seg)) for seg in segs])
        for seg, bmap in zip(segs, bmaps, strict=True):
            assert np.array_equal(bmap, skimage_thin(seg2bdry(seg))), path.name
        assert np.array_equal(reference.replay(stack_changes(bmaps), bmaps.shape[1:]), bmaps)
        assert np.array_equal(bmaps[-1], reference.thin(seg2bdry(segs[-1])))
