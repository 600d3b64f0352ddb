"""Broken and hostile input: one printable line that names the file, bounded memory, no surprise."""

import io
import os
import pickle
import struct
import sys
import time
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from bsdsbench.files import bounded as shared
from bsdsbench.files.bounded import read_bytes, show
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.loaders import load_ground_truth, load_prediction
from tests.helpers.runs import refused

GRAY = (np.arange(30 * 50).reshape(30, 50) % 256).astype(np.uint8)


def _chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _png_bytes():
    stream = io.BytesIO()
    Image.fromarray(GRAY).save(stream, "PNG")
    return stream.getvalue()


def _refused(path, words):
    for load in (load_prediction, load_ground_truth):
        with pytest.raises(FileFormatError, match=words) as caught:
            load(path)
        assert str(caught.value).isprintable()
        assert path.name in str(caught.value)


def test_a_picture_header_of_100000_by_100000(tmp_path):
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    png = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data)
    (tmp_path / "big.png").write_bytes(png + _chunk(b"IEND", b""))
    _refused(tmp_path / "big.png", "expected at most 100000000")
    bmp = bytearray(54)
    bmp[:2], bmp[14] = b"BM", 40
    struct.pack_into("<IIIHH", bmp, 10, 54, 40, 100_000, 100, 0)
    struct.pack_into("<iiHH", bmp, 18, 100_000, 100_000, 1, 24)
    (tmp_path / "big.bmp").write_bytes(bmp + bytes(100))
    _refused(tmp_path / "big.bmp", "expected at most 100000000")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_just_over_the_bound_is_refused_before_decoding(tmp_path):
    rows = zlib.compress(bytes(10_001) * 10_000, 9)  # 100 KB for 100 million pixels
    header = struct.pack(">IIBBBBB", 10_001, 10_000, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows)
    (tmp_path / "bomb.png").write_bytes(png + _chunk(b"IEND", b""))
    _refused(tmp_path / "bomb.png", "claims 10000 x 10001 values, expected at most 100000000")


@pytest.mark.parametrize("shape", ["(100000, 100000)", "(3, 5)", "(18446744073709551616,)"])
def test_numpy_headers_that_do_not_fit_the_bytes(tmp_path, shape):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(80)
    (tmp_path / "a.npy").write_bytes(data)
    _refused(tmp_path / "a.npy", "expected (at most 100000000|120)")


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_is_ever_unpickled(tmp_path):
    mark = tmp_path / "unpickled"
    objects = np.empty(1, object)
    objects[0] = Bomb(str(mark))
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    _refused(tmp_path / "a.npy", "holds Python objects, which are never loaded, expected numbers")
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb(str(mark))))
    _refused(tmp_path / "b.npy", "a pickle or damaged")
    np.savez(tmp_path / "c.npz", x=objects)
    _refused(tmp_path / "c.npz", "Python objects")
    np.save(tmp_path / "d.npy", np.zeros(2, [("a", "f8")]))
    _refused(tmp_path / "d.npy", "expected numbers")
    assert not mark.exists()


def test_zip_that_lies_or_explodes(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", b"\x93NUMPY")
    _refused(tmp_path / "a.npz", "compressed in another way")
    monkeypatch.setattr(shared, "MAX_DECODED_BYTES", 1000)
    np.savez_compressed(tmp_path / "b.npz", x=np.zeros((50, 50)))
    _refused(tmp_path / "b.npz", "decodes to more than 1000 bytes")


def _matlab(*elements):
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def _packed(body):
    packed = zlib.compress(body, 9)
    return struct.pack("<II", 15, len(packed)) + packed


def _array(shape, data, kind=6):
    dims = struct.pack(f"<{len(shape)}i", *shape)
    dims += bytes(-len(dims) % 8)
    body = struct.pack("<IIII", 6, 8, kind, 0) + struct.pack("<II", 5, 4 * len(shape)) + dims
    body += struct.pack("<II", 1, 4) + b"ucm2" + bytes(4)
    return struct.pack("<II", 14, len(body) + len(data)) + body + data


def test_matlab_dimensions_that_do_not_fit_the_bytes(tmp_path):
    nine = struct.pack("<II", 9, 72) + bytes(72)
    (tmp_path / "ok.mat").write_bytes(_matlab(_array((3, 3), nine)))
    assert load_prediction(tmp_path / "ok.mat").shape == (1, 1)
    for shape, words in {
        (100_000, 100_000): "expected at most 100000000",
        (5, 3): "an array of 5 x 3 with 9 values",
        (-3, -3): "dimensions",
        (2**31 - 1,) * 6: "expected at most 100000000",
    }.items():
        (tmp_path / "a.mat").write_bytes(_matlab(_packed(_array(shape, nine))))
        _refused(tmp_path / "a.mat", words)


def test_matlab_bomb_is_not_decoded(tmp_path):
    head = struct.pack("<II", 14, 2**32 - 16)
    (tmp_path / "a.mat").write_bytes(_matlab(_packed(head + bytes(1 << 24))))
    _refused(tmp_path / "a.mat", "decodes to more than 536870912 bytes")
    head = struct.pack("<II", 14, 1000)  # says 1000 bytes and goes on for 16 million
    (tmp_path / "b.mat").write_bytes(_matlab(_packed(head + bytes(1 << 24))))
    _refused(tmp_path / "b.mat", "a damaged compressed block")


@pytest.mark.parametrize(
    "filters", [{"fletcher32": True}, {"compression": "lzf"}, {"scaleoffset": 4}]
)
def test_matlab_7_3_filters_that_matlab_does_not_use(tmp_path, filters):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("ucm2", data=np.ones((9, 9), "i4"), **filters)
    _refused(tmp_path / "a.mat", "unknown filter, expected gzip or none")
    with h5py.File(tmp_path / "b.mat", "w") as file:
        file.create_dataset("ucm2", data=np.ones((9, 9)), compression="gzip", shuffle=True)
    assert load_prediction(tmp_path / "b.mat").ucm2.sum() == 81


@pytest.mark.slow
def test_matlab_7_3_groups_in_a_graph_of_hard_links(tmp_path, monkeypatch):
    """Seven groups of 40 links to the next: 40^7 ways through 13 kB."""
    monkeypatch.setattr(shared, "MAX_DECODED_BYTES", 1 << 24)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        below = file.create_dataset("#leaf", data=np.ones((1, 1)))
        for level in range(7):
            group = file.create_group("ucm2" if level == 6 else f"#{level}")
            for k in range(40):
                group[f"g{k}"] = below
            below = group
    _refused(tmp_path / "a.mat", "decodes to more than")


def test_matlab_7_3_references_in_a_circle(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        cell = file.create_dataset("segs", (1000, 1), h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        cell[...] = np.full((1000, 1), cell.ref, h5py.ref_dtype)
    _refused(tmp_path / "a.mat", "nested deeper than 8|decodes to more than")


def _samples(folder):
    Image.fromarray(GRAY).save(folder / "a.png")
    Image.fromarray(GRAY).save(folder / "a.tif")
    Image.fromarray(GRAY).save(folder / "z.tif", compression="tiff_lzw")
    Image.fromarray(GRAY).save(folder / "a.bmp")
    Image.fromarray(GRAY).save(folder / "a.jpg")
    np.save(folder / "a.npy", GRAY)
    np.savez(folder / "a.npz", x=GRAY)
    savemat(folder / "a.mat", {"x": GRAY}, do_compression=True)
    savemat(folder / "b.mat", {"x": GRAY})
    return sorted(folder.iterdir())


def test_truncated_at_any_tenth(tmp_path, capfd):
    for path in _samples(tmp_path):
        whole = path.read_bytes()
        for tenth in range(1, 10):
            path.write_bytes(whole[: len(whole) * tenth // 10])
            with pytest.raises(FileFormatError, match=path.name) as caught:
                load_prediction(path)
            assert str(caught.value).isprintable()
    assert capfd.readouterr() == ("", "")


def test_every_flipped_bit_of_png_pixels_is_seen(tmp_path):
    data = bytearray(_png_bytes())
    start = data.index(b"IDAT")
    for at in range(start, len(data) - 12, 37):
        damaged = data.copy()
        damaged[at] ^= 4
        (tmp_path / "a.png").write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"a\.png: is damaged|a\.png: is not a pic"):
            load_prediction(tmp_path / "a.png")


def test_wrong_kind_of_path(tmp_path):
    (tmp_path / "empty.png").touch()
    _refused(tmp_path / "empty.png", r"empty\.png: is empty \(0 bytes\)")
    _refused(tmp_path / "none.png", r"none\.png: cannot be opened \(No such file or directory\)")
    (tmp_path / "folder.png").mkdir()
    _refused(tmp_path / "folder.png", "is a folder, expected a file")
    (tmp_path / "text.png").write_text("hello")
    _refused(tmp_path / "text.png", "is not a picture")
    refused(r"null (byte|character)", load_prediction, "a\0.png", error=FileFormatError)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    _refused(tmp_path / "pipe.png", "is not a regular file")


def test_no_permission_reported_by_the_system(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(_png_bytes())

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    _refused(tmp_path / "a.png", r"a\.png: cannot be opened \(Permission denied\)")


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(_png_bytes())
    real = os.fstat

    def growing(handle):
        found = real(handle)
        with path.open("ab") as file:
            file.write(b"more")
        time.sleep(0.001)
        return found

    monkeypatch.setattr(shared.os, "fstat", growing)
    refused(r"a\.png: changed while it was read", read_bytes, path, error=FileFormatError)


def test_over_the_size_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "MAX_FILE_BYTES", 10)
    (tmp_path / "a.png").write_bytes(_png_bytes())
    _refused(tmp_path / "a.png", "bytes, expected at most 10")


HOSTILE_NAMES = [
    "new\nline.png",
    "tab\t'quotes\".png",
    "<script>alert(1)</script>.png",
    "..hidden...png",
    "right\u202eleft.png",
    "esc\x1b[31m.png",
    "surrogate\udcff.png",
    "-rf.png",
    "\u00fcml\u00e4ut.png",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_stay_one_printable_line(tmp_path, name):
    name = name.replace("</", "<")
    path = tmp_path / name
    try:
        path.write_bytes(_png_bytes())
    except OSError:
        pytest.skip("this file system has no such names")
    pred = load_prediction(path)
    assert pred.image_id == show(name)[:-4]
    assert pred.image_id.isprintable()
    pred.image_id.encode("utf-8")
    path.write_bytes(b"broken")
    with pytest.raises(DataError, match="is not a picture") as caught:
        load_prediction(path)
    assert str(caught.value).isprintable()
