"""Every form of prediction, from files written by other libraries."""

import re
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
from bsdsbench.loaders.matlab import read_mat
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


@pytest.mark.parametrize("head", ["P2", "P5"])
def test_pgm_keeps_its_values_or_is_refused(tmp_path, head):
    """Pillow stretches values to 255 or 65535: classes 0 .. 19 would change their numbers."""
    path = tmp_path / "a.pgm"
    for top, dtype in ((255, ">u1"), (65535, ">u2"), (19, ">u1"), (1000, ">u2")):
        values = (np.arange(15) % (top + 1)).astype(dtype)
        body = values.tobytes() if head == "P5" else " ".join(map(str, values)).encode()
        path.write_bytes(f"{head} 5 3 {top}\n".encode() + body)
        if top in (255, 65535):
            np.testing.assert_array_equal(load_prediction(path).soft, values.reshape(3, 5))
        else:
            with pytest.raises(FileFormatError, match=rf"a\.pgm: has maxval {top}, expected 255"):
                load_prediction(path, kind="labels")
    path.write_bytes(b"P6 1 1 65535\n" + bytes(6))
    refused("has maxval 65535, expected 255", load_prediction, path, error=FileFormatError)


def test_moving_pictures_are_refused(tmp_path):
    frames = [Image.fromarray(GRAY), Image.fromarray(255 - GRAY)]
    for name in ("a.gif", "a.webp"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], lossless=True)
        with pytest.raises(FileFormatError, match="has 2 pages, expected one"):
            load_prediction(tmp_path / name)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_keep_every_value(tmp_path, suffix):
    wide = (np.arange(15).reshape(3, 5) * 4681).astype(np.uint16)
    Image.fromarray(wide).save(tmp_path / f"a{suffix}")
    soft = load_prediction(tmp_path / f"a{suffix}").soft
    assert soft.dtype == np.uint16
    np.testing.assert_array_equal(soft, wide)


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


def test_jpeg_gray_and_as_three_equal_channels(tmp_path):
    flat = np.full((16, 24), 77, np.uint8)
    Image.fromarray(flat).save(tmp_path / "a.jpg", quality=100)
    Image.fromarray(flat).convert("RGB").save(tmp_path / "b.jpeg", quality=100)
    for name in ("a.jpg", "b.jpeg"):
        np.testing.assert_array_equal(load_prediction(tmp_path / name).soft, flat)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "P"])
def test_colour_modes_that_say_gray(tmp_path, mode):
    Image.fromarray(GRAY).convert(mode).save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.png").soft, GRAY)


def test_one_bit_gives_zero_and_white(tmp_path):
    Image.fromarray(GRAY > 99).save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.png").soft, (GRAY > 99) * 255)


def test_colour_transparency_and_pages_are_refused(tmp_path):
    rgb = np.stack([GRAY, GRAY, GRAY], -1)
    rgb[1, 2, 0] ^= 1
    Image.fromarray(rgb).save(tmp_path / "c.png")
    with pytest.raises(FileFormatError, match=r"c\.png: is a colour picture .* expected gray"):
        load_prediction(tmp_path / "c.png")
    Image.fromarray(np.dstack([GRAY, GRAY, GRAY, GRAY])).save(tmp_path / "t.png")
    refused("has transparent pixels", load_prediction, tmp_path / "t.png", error=FileFormatError)
    page = Image.fromarray(GRAY)
    page.save(tmp_path / "p.tif", save_all=True, append_images=[page, page])
    refused("has 3 pages, expected one", load_prediction, tmp_path / "p.tif", error=FileFormatError)


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


def test_bool_array_is_black_and_white(tmp_path):
    np.save(tmp_path / "a.npy", GRAY > 99)
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.npy").soft, (GRAY > 99) * 255)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.0, 200.0]], r"values from 0 to 200, expected floats in \[0, 1\] .*divide by 255"),
        ([[0.0, 40000.0]], "divide by 65535"),
        ([[-3.0, 4.0]], "apply the sigmoid"),
        ([[-0.5, 0.5]], "apply the sigmoid"),
        ([[0.0, 1.0001]], "overshoot"),
        ([[0.0, 1e9]], "scale to 0..1"),
        ([[np.nan, 0.5]], "1 of 2 values are NaN or infinite"),
        ([[np.inf, -np.inf]], "2 of 2 values are NaN or infinite"),
    ],
)
def test_values_out_of_range_say_why(tmp_path, values, words):
    np.save(tmp_path / "a.npy", np.array(values))
    refused(words, load_prediction, tmp_path / "a.npy", error=FileFormatError)


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


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_ucm2(tmp_path, packed):
    ucm2 = np.arange(7 * 11).reshape(7, 11) / 77
    savemat(tmp_path / "a.mat", {"ucm2": ucm2, "x": 1.0}, do_compression=packed)
    pred = load_prediction(tmp_path / "a.mat")
    assert pred.shape == (3, 5)
    np.testing.assert_array_equal(pred.ucm2, ucm2)
    np.testing.assert_array_equal(pred.boundary_map(), ucm2[2::2, 2::2])


@pytest.mark.parametrize("shape", [(6, 10), (4, 5), (5, 4), (1, 5)])
def test_matlab_ucm2_of_even_size_is_refused(tmp_path, shape):
    savemat(tmp_path / "a.mat", {"ucm2": np.zeros(shape)})
    with pytest.raises(
        FileFormatError, match=rf"ucm2 of shape {re.escape(str(shape))}, expected odd sizes"
    ):
        load_prediction(tmp_path / "a.mat")


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


def test_matlab_soft_map_by_being_alone_by_usual_or_given_name(tmp_path):
    path = tmp_path / "a.mat"
    soft = GRAY / 255
    savemat(path, {"strange": soft, "scalar": 2.0, "text": "hello"})
    np.testing.assert_array_equal(load_prediction(path).soft, soft)
    savemat(path, {"E": soft, "O": soft * 0})
    np.testing.assert_array_equal(load_prediction(path).soft, soft)
    savemat(path, {"one": soft * 0, "two": soft})
    np.testing.assert_array_equal(load_prediction(path, name="two").soft, soft)
    with pytest.raises(FileFormatError, match="variables one, two, expected ucm2, segs or one"):
        load_prediction(path)
    with pytest.raises(FileFormatError, match="variables one, two, expected 'three'"):
        load_prediction(path, name="three")


def test_matlab_logical_sparse_and_single(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"edges": GRAY > 99})
    np.testing.assert_array_equal(load_prediction(path).soft, (GRAY > 99) * 255)
    savemat(path, {"edges": csc_matrix(GRAY / 255)})
    np.testing.assert_array_equal(load_prediction(path).soft, GRAY / 255)
    savemat(path, {"edges": np.float32(GRAY / 255)})
    assert load_prediction(path).soft.dtype == np.float32  # type: ignore[union-attr]


def test_matlab_values_survive_any_nesting(tmp_path):
    inner = np.empty((1, 2), object)
    inner[0, 0], inner[0, 1] = np.int8([[-1, 2, 3]]), "text"
    value = {"s": {"a": np.arange(6.0).reshape(2, 3), "c": inner}, "n": np.uint64([[2**63]])}
    savemat(tmp_path / "a.mat", value)
    found = read_mat(tmp_path / "a.mat")
    np.testing.assert_array_equal(found["s"]["a"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(found["s"]["c"][0], [[-1, 2, 3]])
    assert found["s"]["c"][1] is None
    assert found["n"][0, 0] == 2**63


def _save_hdf5(path, ucm2, segs):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        item = file.create_dataset("ucm2", data=ucm2.T, compression="gzip")
        item.attrs["MATLAB_class"] = np.bytes_("double")
        refs = np.empty((len(segs), 1), h5py.ref_dtype)
        for k, labels in enumerate(segs):
            file[f"#refs#/{k}"] = labels.T
            file[f"#refs#/{k}"].attrs["MATLAB_class"] = np.bytes_("double")
            refs[k, 0] = file[f"#refs#/{k}"].ref
        file.create_dataset("segs", data=refs).attrs["MATLAB_class"] = np.bytes_("cell")


def test_matlab_7_3(tmp_path):
    ucm2 = np.arange(7 * 11).reshape(7, 11) / 77
    segs = [GRAY // 50, GRAY // 90]
    _save_hdf5(tmp_path / "a.mat", ucm2, segs)
    np.testing.assert_array_equal(load_prediction(tmp_path / "a.mat").ucm2, ucm2)
    found = load_prediction(tmp_path / "a.mat", name="segs").segs
    np.testing.assert_array_equal(found, segs)


def test_matlab_7_3_without_h5py_names_the_extra(tmp_path, monkeypatch):
    _save_hdf5(tmp_path / "a.mat", np.zeros((3, 3)), [GRAY])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(FileFormatError, match=r"pip install 'bsdsbench\[hdf5\]'"):
        load_prediction(tmp_path / "a.mat")


def test_matlab_7_3_links_to_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = GRAY
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["ucm2"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "x")
    with pytest.raises(FileFormatError, match="'ucm2' is a link, expected data"):
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


def test_unknown_suffix_lists_the_known(tmp_path):
    (tmp_path / "a.exr").write_bytes(b"x")
    with pytest.raises(FileFormatError, match=r"suffix \.exr, expected one of \.png, .*\.mat"):
        load_prediction(tmp_path / "a.exr")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", ["u2", "f4", "f8"])
def test_either_byte_order_gives_the_same_map(tmp_path, order, code):
    values = np.array([[0, 1, 0], [1, 1, 0]], order + code)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "b.npz", x=values)
    for name in ("a.npy", "b.npz"):
        soft = load_prediction(tmp_path / name).soft
        assert soft.dtype == np.dtype(code)
        assert soft.dtype.isnative
        assert soft.tolist() == values.tolist()


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


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, bool])
def test_a_ucm2_of_other_types_is_refused(tmp_path, dtype):
    savemat(tmp_path / "a.mat", {"ucm2": np.ones((9, 13), dtype)})
    with pytest.raises(FileFormatError, match=r"a\.mat: ucm2 of \w+, expected floats in \[0, 1\]"):
        load_prediction(tmp_path / "a.mat")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_ucm2_of_floats_is_read(tmp_path, dtype):
    ucm2 = np.zeros((9, 13), dtype)
    ucm2[4] = 0.25
    savemat(tmp_path / "a.mat", {"ucm2": ucm2})
    assert np.array_equal(load_prediction(tmp_path / "a.mat").ucm2, ucm2)


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
