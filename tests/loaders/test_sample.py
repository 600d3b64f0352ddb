"""The shipped sample: complete, small, in BSDS layout, and made again alike by its script."""

import importlib
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.io import loadmat

from bsdsbench.files.errors import DataError
from bsdsbench.loaders import sample
from bsdsbench.loaders.sample import sample_root

ROOT = sample_root()
IDS = sorted(path.stem for path in (ROOT / "images" / "test").iterdir())
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def maker():
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("make_sample")
    finally:
        sys.path.remove(str(SCRIPTS))


def annotations(image_id):
    cell = loadmat(ROOT / "groundTruth" / "test" / f"{image_id}.mat")["groundTruth"]
    assert cell.shape[0] == 1
    structs = [cell[0, i] for i in range(cell.shape[1])]
    return [(one["Segmentation"][0, 0], one["Boundaries"][0, 0]) for one in structs]


def test_every_image_has_annotations_and_every_result(maker):
    assert len(IDS) >= 12
    assert sorted(maker.image_ids()) == IDS
    folders = [ROOT / "groundTruth" / "test", *(ROOT / "results").iterdir()]
    assert {f.name for f in folders[1:]} == {
        "canny",
        "sobel",
        "structure-tensor",
        "structure-tensor-raw",
        "watershed-ucm",
    }
    for folder in folders:
        assert sorted(path.stem for path in folder.iterdir()) == IDS, folder


def test_under_six_megabytes_in_total():
    assert sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file()) < 6_000_000


@pytest.mark.parametrize("image_id", IDS)
def test_annotators_and_sizes(image_id):
    shape = iio.imread(ROOT / "images" / "test" / f"{image_id}.jpg").shape
    assert shape in {(321, 481, 3), (481, 321, 3)}
    people = annotations(image_id)
    assert 3 <= len(people) <= 5
    for labels, edges in people:
        assert labels.shape == edges.shape == shape[:2]
        assert (labels.dtype, edges.dtype) == (np.uint16, np.uint8)
        assert np.array_equal(np.unique(labels), np.arange(1, labels.max() + 1))
        assert labels.max() >= 2
        assert set(np.unique(edges)) == {0, 1}
    drawn = [edges.tobytes() for _, edges in people]
    assert len(set(drawn)) == len(drawn), "two annotators drew the same"
    for method in (*sample.DETECTORS, "structure-tensor-raw"):
        soft = iio.imread(ROOT / "results" / method / f"{image_id}.png")
        assert (soft.shape, soft.dtype) == (shape[:2], np.dtype(np.uint8))
        assert len(np.unique(soft)) >= 20
    ucm2 = loadmat(ROOT / "results" / "watershed-ucm" / f"{image_id}.mat")["ucm2"]
    assert ucm2.shape == (2 * shape[0] + 1, 2 * shape[1] + 1)
    assert 0 == ucm2.min() < ucm2.max() <= 1
    assert not ucm2[1::2, 1::2].any()  # a pixel itself is never a contour


def test_the_raw_map_is_wide_and_the_thinned_one_narrow():
    for image_id in IDS:
        raw, thin = (
            iio.imread(ROOT / "results" / name / f"{image_id}.png") > 0
            for name in ("structure-tensor-raw", "structure-tensor")
        )
        assert raw.sum() > 3 * thin.sum()


def test_mat_files_carry_no_date():
    for path in ROOT.rglob("*.mat"):
        assert path.read_bytes()[:116].rstrip() == b"MATLAB 5.0 MAT-file, bsdsbench sample"


@pytest.mark.slow
def test_one_image_is_made_alike_twice_and_as_shipped(maker):
    once, again = maker.make_image("fruit1"), maker.make_image("fruit1")
    assert once == again
    # Codecs and libraries of other versions may differ in the last bit, so compare what is seen.
    name = "images/test/fruit1.jpg"
    made, shipped = (iio.imread(data).astype(int) for data in (once[name], ROOT / name))
    assert np.abs(made - shipped).mean() < 2


def test_ucm_heights_by_hand(maker):
    # Three columns a | b | c; a meets b at strength 0.2, the pair meets c at 0.6.
    basins = np.repeat([[0, 0, 1, 1, 2, 2]], 4, axis=0)
    strength = np.zeros((4, 6))
    strength[:, 1], strength[:, 4] = 0.2, 0.6
    height = maker.merge_heights(basins, strength)
    assert height.tolist() == [[0, 0.2, 0.6], [0.2, 0, 0.6], [0.6, 0.6, 0]]


def test_boundaries_follow_the_official_ground_truth(maker):
    labels = np.ones((5, 7), np.uint16)
    labels[:, 3:] = 2
    expected = np.zeros((5, 7), np.uint8)
    expected[:, 2] = 1  # the pixel that differs from the one on its right
    assert np.array_equal(maker.boundaries(labels), expected)


def test_root_is_found_in_an_installed_package_first(tmp_path, monkeypatch):
    package = tmp_path / "site" / "bsdsbench"
    monkeypatch.setattr(sample, "__file__", str(package / "loaders" / "sample.py"))
    with pytest.raises(DataError, match="no sample data, expected"):
        sample_root()
    checkout = tmp_path / "site" / "datasets" / "sample"
    (checkout / "groundTruth").mkdir(parents=True)
    assert sample_root() == checkout
    (package / "_sample" / "groundTruth").mkdir(parents=True)
    assert sample_root() == package / "_sample"
