"""Depth maps: names, axes, .dpt byte by byte."""

import struct

import numpy as np
import pytest
from scipy.io import savemat

from bsdsbench.files import bounded
from bsdsbench.loaders.depth_files import depth_prediction, depth_truth, matte_mask, read_dpt
from bsdsbench.loaders.pairing import Pair
from tests.helpers.runs import refused

DEPTH = np.arange(6.0).reshape(2, 3)
NAMES = ["depth", "pred_depths", "pred_depth", "depth_pred", "disparity", "pred", "prediction"]


@pytest.fixture
def read(tmp_path):
    def call(loader=depth_prediction, **arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        if loader is depth_truth:
            return depth_truth(Pair("7", (), (tmp_path / "a.npz",)))
        return loader(Pair("7", (tmp_path / "a.npz",), ()), (2, 3))

    return call


def test_names_in_the_order_in_which_they_are_taken(read):
    for k, name in enumerate(NAMES):
        others = dict.fromkeys(["a", *NAMES[k + 1 :]], DEPTH * 0)
        found = read(**{name: DEPTH, **others})
        assert found.depth.tolist() == DEPTH.tolist(), name
        assert (found.image_id, found.path.name) == ("7", "a.npz")
    assert read(whatever=DEPTH).depth.tolist() == DEPTH.tolist()


@pytest.mark.parametrize("dtype", [bool, np.int16, np.uint8, np.float32])
def test_values_are_kept_as_they_are(read, dtype):
    assert read(depth=DEPTH.astype(dtype)).depth.dtype == dtype


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": DEPTH, "b": DEPTH}, "has a, b, expected one array, or one named depth$"),
        ({}, "has nothing, expected one array, or one named depth$"),
        ({"depth": DEPTH[0]}, r"depth of shape \(3,\), expected a map \(H, W\)$"),
        ({"a": DEPTH[None, None, 0]}, "x"),
        ({"a": np.zeros((2, 3, 2))}, r"depth of shape \(2, 3, 2\), expected a map \(H, W\)$"),
        ({"a": np.zeros((2, 1, 3))}, r"depth of shape \(2, 1, 3\), expected a map \(H, W\)$"),
    ],
)
def test_what_is_no_depth_map(read, arrays, words):
    if words == "x":
        assert read(**arrays).depth.tolist() == DEPTH[:1].tolist()
    else:
        refused(rf"a\.npz: {words}", read, **arrays)


def test_no_numbers_are_no_map(tmp_path):
    cells = np.empty((1, 1), object)
    cells[0, 0] = DEPTH
    path = tmp_path / "a.mat"
    savemat(path, {"edges": cells})
    words = r"a\.mat: edges is no array of numbers, expected a map \(H, W\)$"
    refused(words, depth_truth, Pair("7", (), (path,)))
    savemat(path, {"edges": DEPTH, "matte": cells})
    refused(words.replace("edges", "matte"), depth_truth, Pair("7", (), (path,)))
    savemat(path, {"data": {"depth": DEPTH, "other": DEPTH}})
    assert depth_truth(Pair("7", (), (path,))).depth.tolist() == DEPTH.tolist()


def test_a_truth_of_one_map_is_its_depth_unless_it_says_what_it_is(read):
    found = read(depth_truth, whatever=DEPTH)
    assert (found.depth.tolist(), found.boundaries) == (DEPTH.tolist(), ())
    for name in ("edges", "matte"):
        assert read(depth_truth, **{name: DEPTH / 5}).depth is None
    for name in ("edges", "matte", "valid"):
        found = read(depth_truth, **{name: DEPTH / 5, "disparity": DEPTH + 1})
        assert found.depth.tolist() == (DEPTH + 1).tolist()
    for name in ("edges", "matte", "valid", "mask_invalid", "mask_transp"):
        words = r"a\.npz: maps of the sizes \[\(2, 2\), \(2, 3\)\], expected one$"
        refused(words, read, depth_truth, **{name: DEPTH[:, :2] / 5, "depth": DEPTH})


def test_a_matte_is_cut_above_a_tenth():
    assert matte_mask(np.uint8([[25, 26]])).tolist() == [[False, True]]
    assert matte_mask(np.int32([[0, 1]])).tolist() == [[False, True]]
    assert matte_mask(np.array([[0.1, 0.1001]])).tolist() == [[False, True]]


BODY = DEPTH.astype("<f4").tobytes()


def dpt(cols=3, rows=2, body=BODY, mark=202021.25):
    return struct.pack("<fii", mark, cols, rows) + body


def test_dpt_by_hand(tmp_path, monkeypatch):
    (tmp_path / "a.dpt").write_bytes(dpt())
    found = read_dpt(tmp_path / "a.dpt")
    assert (found.dtype, found.tolist()) == (np.float32, DEPTH.tolist())
    assert found.flags.writeable
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 24)
    assert read_dpt(tmp_path / "a.dpt").shape == (2, 3)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 23)
    refused("claims 2 x 3 values of 4 bytes", read_dpt, tmp_path / "a.dpt")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (dpt()[:11], "does not start with 202021.25, expected a .dpt file of MPI Sintel"),
        (dpt()[:-1], "35 bytes for 2 x 3 pixels, expected 12 and 4 each"),
        (dpt() + b"x", "37 bytes for 2 x 3 pixels, expected 12 and 4 each"),
        (dpt(-3, -2), "36 bytes for -2 x -3 pixels, expected 12 and 4 each"),
        (dpt(0, 5, b""), "12 bytes for 5 x 0 pixels, expected 12 and 4 each"),
    ],
)
def test_dpt_files_that_are_none(tmp_path, data, words):
    (tmp_path / "a.dpt").write_bytes(data)
    refused(rf"a\.dpt: {words}$", read_dpt, tmp_path / "a.dpt")
