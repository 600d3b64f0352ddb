"""Broken and hostile input: one printable line that names the file, bounded memory, no surprise."""

import io
import os
import pickle
import struct
import sys
import time
import zlib

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from bsdsbench import io as shared
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import read_bytes
from bsdsbench.loaders.readers import load_ground_truth, load_prediction
from bsdsbench.text import show
from tests.helpers.runs import refused

GRAY = (np.arange(30 * 50).reshape(30, 50) % 256).astype(np.uint8)


def png_bytes():
    stream = io.BytesIO()
    Image.fromarray(GRAY).save(stream, "PNG")
    return stream.getvalue()


def png(rows, columns, data):
    parts = (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)), (b"IDAT", data)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in (*parts, (b"IEND", b""))
    )


def bmp(rows, columns):
    head = b"BM" + struct.pack("<IIIIiiHH", 154, 0, 54, 40, columns, rows, 1, 24)
    return head + bytes(124)


def element(kind, body):
    return struct.pack("<II", kind, len(body)) + body


def matlab(*elements, packed=False):
    body = b"".join(elements)
    body = element(15, zlib.compress(body, 9)) if packed else body
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + body


def array(shape, data, kind=6):
    dims = element(5, struct.pack(f"<{len(shape)}i", *shape)) + bytes(-4 * len(shape) % 8)
    head = element(6, struct.pack("<II", kind, 0)) + dims + element(1, b"ucm2") + bytes(4)
    return element(14, head + data)


NINE = element(9, bytes(72))
MOST = "at most 100000000"
BOMBS = {
    "a.png": (png(100_000, 100_000, zlib.compress(bytes(1000))), MOST),
    "a.bmp": (bmp(100_000, 100_000), MOST),
    **{
        f"{k}.mat": (matlab(array(shape, NINE), packed=True), words)
        for k, (shape, words) in enumerate((
            ((100_000, 100_000), MOST),
            ((5, 3), "5 x 3 with 9 values"),
            ((-3, -3), "dimensions"),
            ((2**31 - 1,) * 6, MOST),
        ))
    },
    "size.mat": (matlab(struct.pack("<II", 14, 2**32 - 16), bytes(1 << 24), packed=True),
                 "more than 536870912 bytes"),
    # says 1000 bytes and goes on for 16 million
    "more.mat": (matlab(struct.pack("<II", 14, 1000), bytes(1 << 24), packed=True), "compressed"),
    "text.png": (b"hello", "is not a picture"),
    "empty.png": (b"", "is empty"),
}  # fmt: skip


def refused_by_both(path, words):
    for load in (load_prediction, load_ground_truth):
        with pytest.raises(FileFormatError, match=words) as caught:
            load(path)
        assert str(caught.value).isprintable()
        assert path.name in str(caught.value)


@pytest.mark.parametrize("name", BOMBS)
def test_headers_that_do_not_fit_the_bytes(tmp_path, name):
    data, words = BOMBS[name]
    (tmp_path / name).write_bytes(data)
    refused_by_both(tmp_path / name, words)


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
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb(str(mark))))
    np.savez(tmp_path / "c.npz", x=objects)
    for name, words in {"a.npy": "Python objects", "b.npy": "pickle", "c.npz": "objects"}.items():
        refused_by_both(tmp_path / name, words)
    assert not mark.exists()


# --- HDF5


def test_matlab_7_3_references_in_a_circle(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        cell = file.create_dataset("segs", (1000, 1), h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        cell[...] = np.full((1000, 1), cell.ref, h5py.ref_dtype)
    refused_by_both(tmp_path / "a.mat", "nested deeper than 8|decodes to more than")


# --- damaged files, and paths


@pytest.mark.parametrize("name", ["a.png", "a.tif", "lzw.tif", "a.bmp", "a.jpg", "a.npy", "a.npz",
                                  "a.mat", "packed.mat"])  # fmt: skip
def test_truncated_at_any_tenth(tmp_path, capfd, name):
    path = tmp_path / name
    if name.endswith(".npy"):
        np.save(path, GRAY)
    elif name.endswith(".npz"):
        np.savez(path, x=GRAY)
    elif name.endswith(".mat"):
        savemat(path, {"x": GRAY}, do_compression=name == "packed.mat")
    else:
        Image.fromarray(GRAY).save(path, **({"compression": "tiff_lzw"} if "lzw" in name else {}))
    whole = path.read_bytes()
    load_prediction(path)
    for tenth in range(1, 10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        refused_by_both(path, name)
    assert capfd.readouterr() == ("", "")


def test_wrong_kinds_of_path(tmp_path, monkeypatch):
    refused_by_both(tmp_path / "none.png", "cannot be opened")
    (tmp_path / "folder.png").mkdir()
    refused_by_both(tmp_path / "folder.png", "is a folder")
    refused("expected a path of text", load_prediction, "a\0.png")
    if sys.platform != "win32":  # which would hang
        os.mkfifo(tmp_path / "pipe.png")
        refused_by_both(tmp_path / "pipe.png", "is not a regular file")
    (tmp_path / "a.png").write_bytes(png_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(shared, "MAX_FILE_BYTES", 10)
        refused_by_both(tmp_path / "a.png", "at most 10")

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    refused_by_both(tmp_path / "a.png", "Permission denied")


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(png_bytes())
    real = os.fstat

    def growing(handle):
        found = real(handle)
        with path.open("ab") as file:
            file.write(b"more")
        time.sleep(0.001)
        return found

    monkeypatch.setattr(shared.os, "fstat", growing)
    refused(r"a\.png: changed while it was read", read_bytes, path, error=FileFormatError)


@pytest.mark.parametrize(
    "name",
    ["new\nline", "tab\t'quotes\"", "<script>alert(1)<script>", "..hidden..", "right\u202eleft",
     "esc\x1b[31m", "surrogate\udcff", "-rf", "\u00fcml\u00e4ut"],
)  # fmt: skip
def test_names_stay_one_printable_line(tmp_path, name):
    path = tmp_path / f"{name}.png"
    try:
        path.write_bytes(png_bytes())
    except OSError:
        pytest.skip("this file system has no such names")
    found = load_prediction(path).image_id
    assert found == show(name)
    assert found.isprintable()
    assert found.encode("utf-8")
    path.write_bytes(b"broken")
    with pytest.raises(DataError, match="is not a picture") as caught:
        load_prediction(path)
    assert str(caught.value).isprintable()
