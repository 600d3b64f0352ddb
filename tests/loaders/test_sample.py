"""The shipped sample: complete, small, in BSDS layout, and made again alike by its script."""

import importlib
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.io import loadmat

from bsdsbench.errors import DataError
from bsdsbench.loaders import sample
from bsdsbench.loaders.sample import sample_results, sample_root

ROOT = sample_root()
IDS = sorted(path.stem for path in (ROOT / "images" / "test").iterdir())
RESULTS = (*sample.DETECTORS, "structure-tensor-raw", "watershed-ucm")


@pytest.fixture(scope="module")
def maker():
    scripts = str(Path(__file__).parents[2] / "scripts")
    sys.path.insert(0, scripts)
    try:
        return importlib.import_module("make_sample")
    finally:
        sys.path.remove(scripts)


def test_every_image_has_annotations_and_every_result(maker):
    assert len(IDS) >= 12
    assert sorted(maker.image_ids()) == IDS
    for folder in (ROOT / "groundTruth" / "test", *map(sample_results, RESULTS)):
        assert sorted(path.stem for path in folder.iterdir()) == IDS, folder
    assert sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file()) < 6_000_000
    for path in ROOT.rglob("*.mat"):  # no date
        assert path.read_bytes()[:116].rstrip() == b"MATLAB 5.0 MAT-file, bsdsbench sample"


@pytest.mark.parametrize("image_id", IDS)
def test_annotators_and_sizes(image_id):
    shape = iio.imread(ROOT / "images" / "test" / f"{image_id}.jpg").shape
    assert shape in {(321, 481, 3), (481, 321, 3)}
    cell = loadmat(ROOT / "groundTruth" / "test" / f"{image_id}.mat")["groundTruth"]
    assert cell.shape[0] == 1
    assert 3 <= cell.shape[1] <= 5
    drawn = set()
    for one in cell[0]:
        labels, edges = one["Segmentation"][0, 0], one["Boundaries"][0, 0]
        assert labels.shape == edges.shape == shape[:2]
        assert (labels.dtype, edges.dtype) == (np.uint16, np.uint8)
        assert np.array_equal(np.unique(labels), np.arange(1, max(labels.max(), 2) + 1))
        assert set(np.unique(edges)) == {0, 1}
        drawn.add(edges.tobytes())
    assert len(drawn) == cell.shape[1], "two annotators drew the same"
    on = {}
    for method in RESULTS[:-1]:
        soft = iio.imread(ROOT / "results" / method / f"{image_id}.png")
        assert (soft.shape, soft.dtype) == (shape[:2], np.dtype(np.uint8))
        assert len(np.unique(soft)) >= 20
        on[method] = (soft > 0).sum()
    assert on["structure-tensor-raw"] > 3 * on["structure-tensor"]
    ucm2 = loadmat(ROOT / "results" / "watershed-ucm" / f"{image_id}.mat")["ucm2"]
    assert ucm2.shape == (2 * shape[0] + 1, 2 * shape[1] + 1)
    assert 0 == ucm2.min() < ucm2.max() <= 1
    assert not ucm2[1::2, 1::2].any()  # a pixel itself is never a contour


def test_ucm_heights_by_hand(maker):
    # Three columns a | b | c; a meets b at strength 0.2, the pair meets c at 0.6.
    basins = np.repeat([[0, 0, 1, 1, 2, 2]], 4, axis=0)
    strength = np.zeros((4, 6))
    strength[:, 1], strength[:, 4] = 0.2, 0.6
    height = maker.merge_heights(basins, strength)
    assert height.tolist() == [[0, 0.2, 0.6], [0.2, 0, 0.6], [0.6, 0.6, 0]]


def test_root_is_found_in_an_installed_package_first(tmp_path, monkeypatch):
    package = tmp_path / "site" / "bsdsbench"
    monkeypatch.setattr(sample, "__file__", str(package / "loaders" / "sample.py"))
    with pytest.raises(DataError, match="no sample data"):
        sample_root()
    for root in (tmp_path / "site" / "datasets" / "sample", package / "_sample"):
        (root / "groundTruth").mkdir(parents=True)
        assert sample_root() == root
    with pytest.raises(DataError, match="only a checkout has results"):
        sample_results("canny")
