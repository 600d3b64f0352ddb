"""Every form of ground truth."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from scipy.sparse import csc_matrix

from bsdsbench.errors import FileFormatError
from bsdsbench.images import GroundTruth
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import load_ground_truth, read_truth
from bsdsbench.loaders.reading import Kind, ReadOptions
from tests.helpers.runs import refused

EDGE = np.array([[0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
LABELS = np.array([[1, 1, 2, 2], [1, 1, 2, 3], [1, 4, 4, 3]])
TURNED = LABELS[::-1, ::-1].copy()
NONE = np.empty((1, 0), object)


def bsds(path, annotators):
    cells = np.empty((1, len(annotators)), object)
    cells[0, :] = annotators
    savemat(path, {"groundTruth": cells}, do_compression=True)
    return path


@pytest.fixture
def read(tmp_path):
    """What is read of an array, as a file of this suffix."""

    def call(values, suffix=".npy", **how):
        path = tmp_path / f"a{suffix}"
        values = np.asarray(values)
        np.save(path, values) if suffix == ".npy" else Image.fromarray(values).save(path)
        return load_ground_truth(path, **how)

    return call


def truth(path, kind):
    return read_truth(
        Pair("a", (), (path,)), kind, ReadOptions(Kind.MASK if kind == "mask" else Kind.CLASSES)
    )


# --- BSDS


@pytest.mark.parametrize(
    ("annotators", "boundaries", "labels"),
    [
        ([{"Segmentation": LABELS.astype(np.uint16), "Boundaries": EDGE.astype(np.uint8)},
          {"Segmentation": LABELS * 2, "Boundaries": EDGE & False}],
         [EDGE, EDGE & False], [LABELS, LABELS * 2]),
        ([{"Segmentation": LABELS}], [seg2bdry(LABELS)], [LABELS]),
        ([{"Boundaries": csc_matrix(EDGE)}], [EDGE], []),
        ([{"Boundaries": EDGE}, {"Segmentation": LABELS}], [EDGE, seg2bdry(LABELS)], []),
    ],
)  # fmt: skip
def test_bsds_mat_has_all_annotators(tmp_path, annotators, boundaries, labels):
    found = load_ground_truth(bsds(tmp_path / "2018.mat", annotators))
    assert (found.image_id, found.shape) == ("2018", (3, 4))
    np.testing.assert_array_equal(found.boundaries, boundaries)
    np.testing.assert_array_equal(found.segmentations, labels)
    assert {b.dtype for b in found.boundaries} == {np.dtype(bool)}
    given = [each["Segmentation"].dtype for each in annotators[: len(labels)]]
    assert [s.dtype for s in found.segmentations] == given


@pytest.mark.parametrize(
    ("annotators", "words"),
    [
        ([], "no annotators"),
        ([{"Other": EDGE}], "annotation 1: the fields Other, expected Boundaries or Segmentation"),
        ([{"Boundaries": "text"}], "the fields Boundaries without numbers, expected Boundaries"),
        ([{"Boundaries": EDGE & False}] * 2, "any of 2 annotations"),
        ([{"Boundaries": EDGE}, {"Boundaries": EDGE.T}], r"\(4, 3\)"),
        ([{"Segmentation": LABELS}, {"Segmentation": LABELS.T}], r"\(4, 3\)"),
        ([{"Boundaries": EDGE, "Segmentation": LABELS.T}], r"\(4, 3\)"),
        ([{"Boundaries": LABELS}], "0 to 4|1 to 4"),
        ([{"Boundaries": NONE}], "annotation 1"),
    ],
)
def test_bsds_mat_faults(tmp_path, annotators, words):
    path = bsds(tmp_path / "a.mat", annotators)
    refused(rf"a\.mat: .*({words})", load_ground_truth, path, error=FileFormatError)


def test_bsds300_seg(tmp_path):
    runs = ["0 0 0 1", "1 0 2 3", "0 1 0 1", "1 1 2 2", "2 1 3 3", "0 2 0 0", "2 2 1 3"]
    head = ["format ascii cr", "date Thu Apr 12 2001", "image 7", "width 4", "height 3", "data"]
    (tmp_path / "7.seg").write_bytes(("\r\n".join([*head, *runs]) + "\r\n").encode())
    found = load_ground_truth(tmp_path / "7.seg")
    labels = np.array([[1, 1, 2, 2], [1, 1, 2, 3], [1, 3, 3, 3]])
    np.testing.assert_array_equal(found.segmentations, [labels])
    np.testing.assert_array_equal(found.boundaries, [seg2bdry(labels)])


# --- pictures and arrays


@pytest.mark.parametrize(
    ("values", "suffix"),
    [(EDGE, ".npy"), (EDGE.astype(np.float32), ".npy"), (EDGE * np.uint8(1), ".png")]
    + [(np.int64(white) * EDGE, ".npy") for white in (1, 255, 65535)]
    + [(EDGE * np.uint8(255), ".png"), (EDGE, ".png")],
)
def test_two_values_that_are_boundaries(read, values, suffix):
    np.testing.assert_array_equal(read(values, suffix).boundaries, [EDGE])
    np.testing.assert_array_equal(read(values, suffix, gt_invert=True).boundaries, [~EDGE])
    assert read(np.full_like(values, values.max()), suffix).boundaries[0].all()


@pytest.mark.parametrize("values", [(0, 2), (7, 7), (-1, 0), (1, 255), (0, np.nan)])
def test_other_values_are_gray(read, values):
    given = np.array([values, values[::-1], (0, 0)])
    has = f"with values from {given.min()} to {given.max()}"
    if np.isnan(given).any():
        has = "with 2 values that are NaN or infinite"
    words = rf"a\.npy: .*{given.dtype} {has}"
    refused(words, read, given, error=FileFormatError)
    if given.dtype.kind == "f":
        refused(words, read, given, gt_threshold=0.5, error=FileFormatError)


@pytest.mark.parametrize("suffix", [".npy", ".png"])
def test_labels_become_the_boundaries_of_seg2bdry(read, suffix):
    labels = LABELS.astype(np.uint8)
    found = read(labels, suffix, kind="labels")
    np.testing.assert_array_equal(found.boundaries, [seg2bdry(labels)])
    np.testing.assert_array_equal(found.segmentations, [labels])
    refused("no boundary pixel", read, labels * 0, suffix, kind="labels")


def test_gray_is_cut_where_told(read):
    gray = np.array([[0, 100, 200], [255, 0, 0]], np.uint8)
    for values, half in ((gray, 127.5), (gray / 255, 0.5), (gray.astype(np.uint16) * 257, 32767.5)):
        found = read(values, gt_threshold=0.5)
        np.testing.assert_array_equal(found.boundaries[0], values >= half)


@pytest.mark.parametrize(
    ("values", "cut"),
    [
        (np.uint8([0, 127, 128, 129, 255]), 3),
        (np.uint16([0, 128 * 257 - 1, 128 * 257, 128 * 257 + 1, 65535]), 3),
        (np.float64([0, 0.4, 0.5, 0.51, 1]), 3),
        *((np.array([0, 0, 1, 1, 1], kind), 2) for kind in (np.uint8, np.uint16, bool)),
        *((np.array([0, 0, 255, 255, 255], kind), 2) for kind in (np.uint16, np.float64)),
    ],
)
def test_where_a_mask_is_cut(tmp_path, values, cut):
    """Gray above 128 of 255; of two values all above 0; of floats above a half."""
    np.save(tmp_path / "a.npy", values[None])
    found = truth(tmp_path / "a.npy", "mask").mask
    assert found.tolist() == [[False] * cut + [True] * (5 - cut)]
    np.save(tmp_path / "a.npy", values)
    refused(r"a\.npy: .*\(5,\)", truth, tmp_path / "a.npy", "mask", error=FileFormatError)


def test_several_annotators_in_a_file_or_a_file_each(tmp_path, read):
    other = np.roll(EDGE, 1, 0)
    np.testing.assert_array_equal(read(np.stack([EDGE, other])).boundaries, [EDGE, other])
    paths = (tmp_path / "7_1.png", tmp_path / "7_2.png")
    for path, values in zip(paths, (EDGE, other), strict=True):
        Image.fromarray(values).save(path)
    found = load_ground_truth(paths)
    assert found.image_id == "7_1"
    np.testing.assert_array_equal(found.boundaries, [EDGE, other])
    Image.fromarray(EDGE.T).save(paths[1])
    refused(r"7_2\.png: .*\(4, 3\)", load_ground_truth, paths, error=FileFormatError)
    both = [tmp_path / "a.npy", paths[0]]
    refused(r"a\.npy: several annotators", load_ground_truth, both, error=FileFormatError)
    refused(r"a\.npy: no annotators", read, np.zeros((0, 3, 4)), error=FileFormatError)
    refused("x: no files", load_ground_truth, [], image_id="x", error=FileFormatError)


def test_a_palette_s_colours_are_boundaries_and_its_indices_labels(tmp_path):
    picture = Image.fromarray(EDGE.astype(np.uint8)).convert("P")
    picture.putpalette([255, 255, 255, 0, 0, 0])
    picture.putdata(EDGE.astype(int).ravel().tolist())
    picture.save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_ground_truth(tmp_path / "a.png").boundaries, [~EDGE])
    found = load_ground_truth(tmp_path / "a.png", kind="labels")
    np.testing.assert_array_equal(found.segmentations, [EDGE])
    np.testing.assert_array_equal(truth(tmp_path / "a.png", "classes").labels, EDGE)


def test_sbd_s_instances_alone_are_no_classes(tmp_path):
    struct = {"Segmentation": EDGE * 3.0, "Boundaries": EDGE, "Categories": 7}
    savemat(tmp_path / "a.mat", {"GTinst": struct})
    refused("a.mat: has variables GTinst", truth, tmp_path / "a.mat", "classes")


def test_valid_pixels_that_are_undefined_are_refused():
    valid = np.array([[1, np.nan, 0]])
    refused("valid: 1 values are NaN", GroundTruth, "a", labels=valid * 0 == 0, valid=valid)
