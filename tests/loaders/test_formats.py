""".npy and .npz at their limits, the table of formats, what a file may decode to."""

import io
import struct
import zipfile

import numpy as np
import pytest

from bsdsbench import io as bounded
from bsdsbench.errors import FileFormatError
from bsdsbench.io import FaultError
from bsdsbench.loaders.formats import pictures as formats
from bsdsbench.loaders.formats.pictures import FORMATS, id_of, read_arrays, unpack_npz
from tests.helpers.runs import refused

WIDE = np.arange(6.0).reshape(2, 3)
BYTES = WIDE.tobytes()


def npy(shape="(2, 3)", descr="'<f8'", body=BYTES, version=(1, 0), order=False):
    head = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode("latin-1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(head))
    return b"\x93NUMPY" + bytes(version) + size + head + body


def packed(how=zipfile.ZIP_DEFLATED, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
        archive.writestr("notes.txt", b"nothing")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.PNG", "a"), ("a.b", "a.b"), ("png", "png"), (".png", ".png"), ("x/a.seg", "a"),
     ("img.v2.MAT", "img.v2"), ("2018.jpg.mat", "2018.jpg"), ("1.5", "1.5"), ("a\nb.png", "a\\nb")],
)  # fmt: skip
def test_the_id_of_a_file(name, expected):
    assert id_of(name) == expected


@pytest.mark.parametrize(("name", "said"), [("a.XYZ", r"\.xyz"), ("a", "missing")])
def test_other_suffixes_are_refused(tmp_path, name, said):
    refused(rf"{name}: suffix {said}, .*\.png, .*\.seg$", read_arrays, tmp_path / name)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_has_a_reader_that_names_the_file(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_bytes(b"nothing of the kind" * 20)
    refused(rf"a\{suffix}: ", read_arrays, tmp_path / f"a{suffix}", error=FileFormatError)


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("how", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_npy_by_hand(tmp_path, order, how):
    data, path = npy(order=order), tmp_path / ("a.npz" if how is not None else "a.npy")
    path.write_bytes(data if how is None else packed(how, x=data))
    found = read_arrays(path)["" if how is None else "x"]
    assert found.tolist() == ([[0, 2, 4], [1, 3, 5]] if order else WIDE.tolist())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (npy("(1, 4)", "'|b1'", bytes([0, 1, 2, 255])), [[False, True, True, True]]),
        (npy("()", body=BYTES[:8]), 0),
        (npy("(3,)", "'>i2'", bytes([0, 1, 1, 0, 0, 2])), [1, 256, 2]),
    ],
)
def test_types_and_axes_of_npy(tmp_path, data, expected):
    (tmp_path / "a.npy").write_bytes(data)
    found = read_arrays(tmp_path / "a.npy")[""]
    assert (found.tolist(), found.dtype.isnative) == (expected, True)
    assert set(np.ravel(found).view(np.uint8).tolist()) <= {0, 1} or found.dtype != bool


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (npy(body=bytes(47)), "47 bytes"),
        (npy("(100000, 100000)"), "100000 x 100000"),
        (npy(descr="'<c16'"), "'<c16'"),
        (npy(descr="'|b0'", body=b""), "no .npy file of numbers"),
        (npy(descr="'|O'"), "Python objects"),
        (npy(descr="[('a', '<f8')]"), "expected numbers"),
        (b"\x93NUMPX" + bytes(90), "no .npy file of numbers"),
    ],
)
def test_npy_files_that_are_none(tmp_path, data, words):
    (tmp_path / "a.npy").write_bytes(data)
    refused(rf"a\.npy: .*{words}", read_arrays, tmp_path / "a.npy", error=FileFormatError)
    refused(words, unpack_npz, packed(x=data), error=FaultError)


def changed(at, value, **members):
    """An archive whose list of members says something else of the first."""
    data = bytearray(packed(**members))
    at += data.index(b"PK\x01\x02")
    data[at : at + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_that_lie(tmp_path, how):
    """Of a member's checksum, of its size, of its name."""
    for data in (
        changed(16, b"\0\0\0\0", how=how, x=npy()),
        changed(24, (400_000_000).to_bytes(4, "little"), how=how, x=npy()),
        changed(46, b"y", how=how, x=npy(), y=npy()),
        packed(how, x=npy())[:-30],
    ):
        (tmp_path / "a.npz").write_bytes(data)
        refused(r"a\.npz: ", read_arrays, tmp_path / "a.npz", error=FileFormatError)
    assert unpack_npz(packed(how)) == {}


def test_text_only_where_it_is_asked_for():
    text = npy("(2,)", "'<U1'", "ab".encode("utf-32-le"))
    assert unpack_npz(packed(x=text), limit=10**6)["x"].tolist() == ["a", "b"]
    refused("x holds '<U1', expected numbers", unpack_npz, packed(x=text), error=FaultError)
    assert list(unpack_npz(packed(x=text, y=npy()))) == ["y"]  # a name beside a map


def test_bytes_pixels_and_members_are_bounded(tmp_path, monkeypatch):
    """`limit` stands in place of what a picture may have."""
    data, whole = packed(x=npy(), y=npy()), 2 * len(npy())
    assert set(unpack_npz(data, limit=whole)) == {"x", "y"}
    refused(f"more than {whole - 1} bytes", unpack_npz, data, limit=whole - 1, error=FaultError)
    for name, most in (("MAX_DECODED_BYTES", whole), ("MAX_PIXELS", 6)):
        with monkeypatch.context() as patch:
            patch.setattr(bounded, name, most)
            assert len(unpack_npz(data)) == 2
            patch.setattr(bounded, name, most - 1)
            refused(f"{most - 1}", unpack_npz, data, error=FaultError)
            assert len(unpack_npz(data, limit=whole)) == 2
    (tmp_path / "a.npy").write_bytes(npy())
    monkeypatch.setattr(bounded, "MAX_PIXELS", 5)
    refused("claims 2 x 3", read_arrays, tmp_path / "a.npy")
    monkeypatch.setattr(formats, "MAX_MEMBERS", 1)
    refused("2 arrays", unpack_npz, data, error=FaultError)
