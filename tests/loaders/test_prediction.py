"""Every form of prediction, from files written by other libraries."""

import sys

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from scipy.sparse import csc_matrix

from bsdsbench.errors import FileFormatError
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import load_prediction, read_prediction
from tests.helpers.runs import refused

GRAY = (np.arange(3 * 5).reshape(3, 5) * 17).astype(np.uint8)
SOFT = GRAY / 255
PICTURES = (".png", ".PNG", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm", ".pnm", ".webp")
FLOATS = (".npy", ".npz", ".mat", "packed.mat", ".h5")


def save(folder, values, suffix, name="x"):
    """A file of one array in any format."""
    path = folder / f"a.b{suffix.removeprefix('packed')}"
    if suffix == ".npy":
        np.save(path, values)
    elif suffix == ".npz":
        np.savez_compressed(path, **{name: values})
    elif suffix.endswith(".mat"):
        savemat(path, {name: values}, do_compression=suffix.startswith("packed"))
    elif suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file[name] = values
    else:
        picture = Image.fromarray(values)
        picture = picture.convert("RGB") if suffix == ".webp" else picture
        picture.save(path, **({"lossless": True} if suffix == ".webp" else {}))
    return path


@pytest.mark.parametrize(
    ("suffix", "values"),
    [(suffix, GRAY) for suffix in (*PICTURES, *FLOATS)]
    + [(suffix, GRAY.astype(np.uint16) * 257) for suffix in (".png", ".tif", *FLOATS)]
    + [(suffix, SOFT.astype(dtype)) for suffix in FLOATS for dtype in (np.float32, np.float64)]
    + [(".tif", SOFT.astype(np.float32))],
)
def test_a_soft_map_in_every_format(tmp_path, suffix, values):
    found = load_prediction(save(tmp_path, values, suffix))
    assert (found.image_id, found.soft.dtype) == ("a.b", values.dtype)
    assert found.soft.flags.c_contiguous
    np.testing.assert_array_equal(found.soft, values)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (SOFT.astype(np.float16), np.float32),
        (SOFT.astype(">f4"), np.float32),
        (np.asfortranarray(GRAY), np.uint8),
        (GRAY > 99, np.uint8),
        (GRAY[None, None], np.uint8),
    ],
)
def test_types_and_axes_of_arrays(tmp_path, values, dtype):
    found = load_prediction(save(tmp_path, values, ".npy")).soft
    assert (found.dtype, found.ndim, found.flags.c_contiguous) == (dtype, 2, True)
    expected = values * 255 if values.dtype == bool else values
    np.testing.assert_array_equal(found.ravel(), np.ravel(expected).astype(dtype))


def test_float_pfm(tmp_path):
    soft = SOFT.astype("<f4")
    (tmp_path / "a.pfm").write_bytes(b"Pf\n5 3\n-1.0\n" + soft[::-1].tobytes())  # rows upwards
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.pfm").soft, soft)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matlab_ucm2(tmp_path, dtype):
    ucm2 = (np.arange(7 * 11).reshape(7, 11) / 77).astype(dtype)
    found = load_prediction(save(tmp_path, ucm2, ".mat", "ucm2"))
    assert found.shape == (3, 5)
    np.testing.assert_array_equal(found.ucm2, ucm2)
    np.testing.assert_array_equal(found.boundary_map(), ucm2[2::2, 2::2])


def test_matlab_segs(tmp_path):
    cells = np.empty((1, 3), object)
    for k, dtype in enumerate((np.uint16, np.float64, np.uint8)):
        cells[0, k] = (GRAY // (k + 40) + 1).astype(dtype)
    segs = load_prediction(save(tmp_path, cells, ".mat", "segs")).segs
    assert [s.dtype for s in segs] == [np.uint16, np.int32, np.uint8]
    np.testing.assert_array_equal(segs, [GRAY // (k + 40) + 1 for k in range(3)])


def test_the_variable_that_is_meant(tmp_path):
    """The only one that is more than a row, or one of a usual name; sparse and logical too."""
    path, cases = tmp_path / "a.mat", []
    cases.append(({"strange": SOFT, "scalar": 2.0, "text": "hello"}, SOFT))
    cases.append(({"soft": SOFT, "row": np.ones((1, 5)), "column": np.ones((3, 1))}, SOFT))
    cases.append(({"E": SOFT, "O": SOFT * 0}, SOFT))
    cases.append(({"edges": GRAY > 99}, (GRAY > 99) * 255))
    cases.append(({"edges": csc_matrix(SOFT)}, SOFT))
    for variables, expected in cases:
        savemat(path, variables)
        np.testing.assert_array_equal(load_prediction(path).soft, expected)
    for variables in ({"pred": SOFT > 0.5, "prob": SOFT}, {"edges": GRAY, "edge": 255 - GRAY}):
        savemat(path, variables)
        names = ", ".join(sorted(variables))
        refused(f"has variables {names}, expected one of {names}", load_prediction, path)
    savemat(path, {"pred": SOFT, "prob": SOFT, "truth": GRAY})
    assert load_prediction(path).soft.tolist() == SOFT.tolist()
    for variables in ({"one": SOFT, "two": SOFT}, {"groundTruth": {"Boundaries": GRAY}}):
        savemat(path, variables)
        names = ", ".join(variables)
        refused(rf"a\.mat: .*{names}", load_prediction, path, error=FileFormatError)


@pytest.mark.parametrize("kind", [".png", ".npy", ".seg"])
def test_label_maps_of_one_file_and_of_several(tmp_path, kind):
    labels, path = GRAY // 50, tmp_path / f"a{kind}"
    if kind == ".seg":
        runs = "".join(f"{labels[r, c]} {r} {c} {c}\n" for r, c in np.ndindex(3, 5))
        path.write_text("width 5\nheight 3\ndata\n" + runs)
        labels = labels + 1
    else:
        path = save(tmp_path, labels.astype(np.uint16), kind)
    (seg,) = load_prediction(path, kind="labels").segs
    np.testing.assert_array_equal(seg, labels)
    other = save(tmp_path, GRAY // 20, ".bmp")
    found = load_prediction((path, other), "7")
    assert found.image_id == "7"
    np.testing.assert_array_equal(found.segs, [labels, GRAY // 20])
    save(tmp_path, GRAY.T, ".bmp")
    refused(r"a\.b\.bmp: .*\(5, 3\)", load_prediction, (path, other), error=FileFormatError)


def test_masks_of_objects_are_no_label_maps(tmp_path):
    """As programs that segment everything write them, a file an object."""
    masks = [k == GRAY // 50 for k in range(3)]
    paths = [tmp_path / f"{k + 1}.png" for k in range(3)]
    for path, mask in zip(paths, masks, strict=True):
        Image.fromarray(mask.astype(np.uint8) * 255).save(path)
    words = "several masks of 0 and white, .*number the objects in one map; .*save 1 and 2"
    refused(words, load_prediction, paths)
    Image.fromarray(GRAY // 50).save(paths[2])
    assert len(load_prediction(paths).segs) == 3


@pytest.mark.parametrize(
    ("values", "suffix", "name", "words"),
    [
        (GRAY.astype(np.int64), ".npy", "x", "int64 with values from 0 to 238.*pred_kind='labels'"),
        *((np.zeros(shape), ".npy", "x", r"\(") for shape in ((0, 4), (2, 3, 4))),
        *(
            (np.zeros(shape), ".mat", "ucm2", f"{shape[0]}, {shape[1]}")
            for shape in ((6, 10), (1, 5))
        ),
        *((np.ones((9, 13), d), ".mat", "ucm2", "of u?int|of b") for d in ("u1", "?")),
    ],
)
def test_what_is_no_prediction(tmp_path, values, suffix, name, words):
    path = save(tmp_path, values, suffix, name)
    refused(rf"a\.b{suffix}: .*({words})", load_prediction, path, error=FileFormatError)


def test_matlab_7_3_without_h5py_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused(r"a\.mat: .*bsdsbench\[hdf5\]", load_prediction, tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("soft", {"soft": (3, 5)}),
        ("labels", {"segs": (2, 3, 5)}),
        ("classes", {"classes": (2, 3, 5)}),
        ("lines", {"soft": (3, 5)}),
        ("oriented", {"soft": (3, 5), "angles": (3, 5)}),
        ("depth-map", {"depth": (3, 5)}),
    ],
)
def test_without_a_file_nothing_is_predicted(kind, fields):
    found = read_prediction(Pair("a", (), ()), kind, (3, 5), n_maps=2)
    for name, shape in fields.items():
        assert np.array_equal(getattr(found, name), np.zeros(shape)), name
    if kind == "lines":
        assert (found.lines.ends.shape, found.lines.scores.shape) == ((0, 4), (0,))


def test_maps_of_classes_have_one_size(tmp_path):
    paths = tuple(tmp_path / f"{k}" / "a.npy" for k in "bc")
    for path, width in zip(paths, (5, 4), strict=True):
        path.parent.mkdir()
        np.save(path, np.zeros((3, width), bool))
    refused(r"c.a\.npy: shape \(3, 4\)", read_prediction, Pair("a", paths, ()), "classes", (3, 5))
    found = read_prediction(Pair("a", paths[:1] * 3, ()), "classes", (3, 5))
    assert found.classes.shape == (3, 3, 5)


def test_axes_of_length_one_of_a_label_map_are_dropped(tmp_path):
    labels = np.arange(12).reshape(1, 3, 4, 1)
    np.save(tmp_path / "a.npy", labels)
    found = read_prediction(Pair("a", (tmp_path / "a.npy",), ()), "classes", (3, 4))
    assert found.classes.tolist() == labels[0, ..., 0].tolist()
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4, 5)))
    given = Pair("a", (tmp_path / "a.npy",), ())
    refused(r"a\.npy: label map of shape \(2, 3, 4, 5\)", read_prediction, given, "classes", (3, 4))
