"""Every form of prediction, from files written by other libraries."""

import sys
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from scipy.sparse import csc_matrix

from bsdsbench.files.errors import FileFormatError, ShapeError
from bsdsbench.loaders import Pair, load_prediction, read_prediction
from tests.helpers.runs import refused

GRAY = (np.arange(3 * 5).reshape(3, 5) * 17).astype(np.uint8)


@pytest.mark.parametrize(
    "suffix", [".png", ".PNG", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm", ".pnm"]
)
def test_gray_pictures(tmp_path, suffix):
    Image.fromarray(GRAY).save(tmp_path / f"a.b{suffix}")
    pred = load_prediction(tmp_path / f"a.b{suffix}")
    assert pred.image_id == "a.b"
    assert pred.soft.dtype == np.uint8
    np.testing.assert_array_equal(pred.soft, GRAY)


def test_lossless_webp_and_float_pfm(tmp_path):
    Image.fromarray(GRAY).convert("RGB").save(tmp_path / "a.webp", lossless=True)
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.webp").soft, GRAY)
    soft = (GRAY / 255).astype("<f4")
    (tmp_path / "a.pfm").write_bytes(b"Pf\n5 3\n-1.0\n" + soft[::-1].tobytes())  # rows upwards
    found = load_prediction(tmp_path / "a.pfm").soft
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, soft)


def test_big_endian_sixteen_bit_tiff(tmp_path):
    wide = (np.arange(15).reshape(3, 5) * 4681).astype(">u2")
    tags = [(256, 3, 5), (257, 3, 3), (258, 3, 16), (259, 3, 1), (262, 3, 1), (273, 4, 110)]
    tags += [(277, 3, 1), (278, 3, 3)]
    entries = b"".join(
        t.to_bytes(2, "big")
        + k.to_bytes(2, "big")
        + (1).to_bytes(4, "big")
        + (v.to_bytes(2, "big") + b"\0\0" if k == 3 else v.to_bytes(4, "big"))
        for t, k, v in tags
    )
    head = b"MM\0*" + (8).to_bytes(4, "big") + len(tags).to_bytes(2, "big") + entries + b"\0" * 4
    assert len(head) == 110
    (tmp_path / "a.tif").write_bytes(head + wide.tobytes())
    soft = load_prediction(tmp_path / "a.tif").soft
    assert soft.dtype == np.dtype(np.uint16)
    np.testing.assert_array_equal(soft, wide)


def test_sixteen_bit_colour_is_refused_not_halved(tmp_path):
    import struct
    import zlib

    rows = b"".join(b"\0" + bytes(range(12)) for _ in range(2))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 16, 2, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in parts
    )
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    with pytest.raises(FileFormatError, match="16-bit colour, expected gray"):
        load_prediction(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.float32([[0, 0.5], [1, 0.25], [0, 0]]), np.float32),
        (np.float64([[0, 0.5, 1]]), np.float64),
        (np.float16([[0, 0.5], [1, 0.25], [0, 0]]), np.float32),
        (np.array([[0, 0.5, 1]], ">f4"), np.float32),
        (GRAY, np.uint8),
        (GRAY.astype(np.uint16), np.uint16),
        (np.asfortranarray(GRAY), np.uint8),
        (GRAY[None, None], np.uint8),
        (GRAY[..., None], np.uint8),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_numpy_arrays(tmp_path, array, dtype, suffix):
    path = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, array)
    else:
        np.savez_compressed(path, whatever=array)
    soft = load_prediction(path).soft
    assert soft.dtype == np.dtype(dtype)
    assert soft.flags.c_contiguous
    np.testing.assert_array_equal(soft, array.reshape(soft.shape))


def test_integers_that_are_no_soft_map(tmp_path):
    np.save(tmp_path / "a.npy", GRAY.astype(np.int64))
    with pytest.raises(
        FileFormatError, match=r"int64 with values from 0 to 238, .* pred_kind='labels'"
    ):
        load_prediction(tmp_path / "a.npy")


@pytest.mark.parametrize("shape", [(0, 4), (7,), (2, 3, 4), ()])
def test_shapes_that_are_no_map(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    refused(r"a\.npy: .*(shape|2-D)", load_prediction, tmp_path / "a.npy", error=FileFormatError)


@pytest.mark.parametrize(
    ("ucm2", "words"),
    [(np.zeros(shape), f"of shape {shape}") for shape in ((6, 10), (4, 5), (5, 4), (1, 5))]
    + [(np.ones((9, 13), dtype), "of u?int|of bool") for dtype in ("u1", "u2", "i4", "?")],
)
def test_what_is_no_ucm2(tmp_path, ucm2, words):
    savemat(tmp_path / "a.mat", {"ucm2": ucm2})
    words = words.replace("(", r"\(").replace(")", r"\)")
    refused(rf"a\.mat: ucm2 ({words})", load_prediction, tmp_path / "a.mat", error=FileFormatError)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matlab_ucm2(tmp_path, packed, dtype):
    ucm2 = (np.arange(7 * 11).reshape(7, 11) / 77).astype(dtype)
    savemat(tmp_path / "a.mat", {"ucm2": ucm2, "x": 1.0}, do_compression=packed)
    pred = load_prediction(tmp_path / "a.mat")
    assert pred.shape == (3, 5)
    np.testing.assert_array_equal(pred.ucm2, ucm2)
    np.testing.assert_array_equal(pred.boundary_map(), ucm2[2::2, 2::2])


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_segs(tmp_path, packed):
    cells = np.empty((1, 3), object)
    for k in range(3):
        cells[0, k] = (GRAY // (k + 40) + 1).astype((np.uint16, np.float64, np.uint8)[k])
    savemat(tmp_path / "a.mat", {"segs": cells}, do_compression=packed)
    segs = load_prediction(tmp_path / "a.mat").segs
    assert len(segs) == 3
    for k in range(3):
        assert segs[k].dtype == np.int32
        np.testing.assert_array_equal(segs[k], GRAY // (k + 40) + 1)


def test_matlab_soft_map_by_being_alone_by_usual_name(tmp_path):
    path = tmp_path / "a.mat"
    soft = GRAY / 255
    savemat(path, {"strange": soft, "scalar": 2.0, "text": "hello"})
    np.testing.assert_array_equal(load_prediction(path).soft, soft)
    savemat(path, {"E": soft, "O": soft * 0})
    np.testing.assert_array_equal(load_prediction(path).soft, soft)
    savemat(path, {"one": soft * 0, "two": soft})
    with pytest.raises(FileFormatError, match="variables one, two, expected ucm2, segs or one"):
        load_prediction(path)


def test_matlab_logical_sparse_and_single(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"edges": GRAY > 99})
    np.testing.assert_array_equal(load_prediction(path).soft, (GRAY > 99) * 255)
    savemat(path, {"edges": csc_matrix(GRAY / 255)})
    np.testing.assert_array_equal(load_prediction(path).soft, GRAY / 255)
    savemat(path, {"edges": np.float32(GRAY / 255)})
    assert load_prediction(path).soft.dtype == np.float32  # type: ignore[union-attr]


def test_matlab_7_3_without_h5py_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(FileFormatError, match=r"pip install 'bsdsbench\[hdf5\]'"):
        load_prediction(tmp_path / "a.mat")


def test_label_maps_as_pictures_and_arrays(tmp_path):
    labels = GRAY // 50
    picture = Image.fromarray(labels).convert("P")
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9, 8, 8, 8])
    picture.putdata(labels.ravel().tolist())
    picture.save(tmp_path / "p.png")
    Image.fromarray(labels.astype(np.uint16)).save(tmp_path / "g.png")
    np.save(tmp_path / "a.npy", labels.astype(np.float64))
    for name in ("p.png", "g.png", "a.npy"):
        segs = load_prediction(tmp_path / name, kind="labels").segs
        assert len(segs) == 1
        np.testing.assert_array_equal(segs[0], labels)
    refused("is a colour picture", load_prediction, tmp_path / "p.png", error=FileFormatError)


def test_several_label_maps_of_one_image(tmp_path):
    for k in range(2):
        Image.fromarray(GRAY // (k + 20)).save(tmp_path / f"{k}.png")
    paths = (tmp_path / "0.png", tmp_path / "1.png")
    pred = load_prediction(Pair("7", paths, ()))
    assert pred.image_id == "7"
    np.testing.assert_array_equal(pred.segs, [GRAY // 20, GRAY // 21])
    Image.fromarray(GRAY.T).save(tmp_path / "1.png")
    with pytest.raises(FileFormatError, match=r"sizes 3 x 5, 5 x 3 .*expected one size"):
        load_prediction(paths)


def test_an_npz_member_that_lies_is_refused_before_it_is_made(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((30, 40)))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (400_000_000).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FileFormatError, match="claims more than its bytes can hold"):
        load_prediction(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("x.npy", b"1")
        archive.writestr("x.npy", b"2")
    refused("two arrays of one name", load_prediction, tmp_path / "b.npz", error=FileFormatError)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("soft", {"soft": (3, 5)}),
        ("labels", {"soft": (3, 5)}),
        ("classes", {"classes": (2, 3, 5)}),
        ("lines", {"soft": (3, 5)}),
        ("oriented", {"soft": (3, 5), "angles": (3, 5)}),
        ("depth-map", {"depth": (3, 5)}),
    ],
)
def test_without_a_file_nothing_is_predicted(kind, fields):
    found = read_prediction(Pair("a", (), ()), kind, (3, 5), n_classes=2)
    for name, shape in fields.items():
        assert np.array_equal(getattr(found, name), np.zeros(shape)), name
    if kind == "lines":
        assert (found.lines.ends.shape, found.lines.scores.shape) == ((0, 4), (0,))


def test_maps_of_classes_have_one_size(tmp_path):
    paths = tuple(tmp_path / f"{k}" / "a.npy" for k in "bc")
    for path, width in zip(paths, (5, 4), strict=True):
        path.parent.mkdir()
        np.save(path, np.zeros((3, width), bool))
    with pytest.raises(ShapeError, match="of a have several sizes, expected one"):
        read_prediction(Pair("a", paths, ()), "classes", (3, 5))
    found = read_prediction(Pair("a", paths[:1] * 3, ()), "classes", (3, 5))
    assert found.classes.shape == (3, 3, 5)


def test_of_several_arrays_a_row_or_a_column_is_no_map(tmp_path):
    maps = {"soft": GRAY / 255, "row": np.ones((1, 5)), "column": np.ones((3, 1))}
    np.savez(tmp_path / "a.npz", **maps, line=np.ones(4), number=np.float64(1))
    assert np.array_equal(load_prediction(tmp_path / "a.npz").soft, GRAY / 255)
    np.savez(tmp_path / "a.npz", soft=GRAY[None] / 255, row=np.ones((1, 5)))
    assert np.array_equal(load_prediction(tmp_path / "a.npz").soft, GRAY / 255)


@pytest.mark.parametrize(
    ("shape", "read"),
    [((1, 1, 1), (1, 1)), ((1, 3, 1, 2), (3, 2)), ((2, 1, 3), (2, 3)), ((1, 4), (1, 4))],
)
def test_axes_of_length_1_are_dropped(tmp_path, shape, read):
    np.save(tmp_path / "a.npy", np.linspace(0, 1, int(np.prod(shape))).reshape(shape))
    found = load_prediction(tmp_path / "a.npy").soft
    assert np.array_equal(found, np.linspace(0, 1, int(np.prod(shape))).reshape(read))
