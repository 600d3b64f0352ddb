""".npy and .npz at their limits, the table of formats, what a file may decode to."""

import io
import struct
import zipfile

import numpy as np
import pytest

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError
from bsdsbench.loaders import formats
from bsdsbench.loaders.formats import (
    FORMATS,
    Budget,
    id_of,
    read_arrays,
    read_npy,
    read_npz,
    unpack_npz,
)
from tests.helpers.runs import refused

WIDE = np.arange(6.0).reshape(2, 3)
BYTES = WIDE.tobytes()


def npy(shape="(2, 3)", descr="'<f8'", body=BYTES, version=(1, 0), order=False):
    head = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode("latin-1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(head))
    return b"\x93NUMPY" + bytes(version) + size + head + body


def packed(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.PNG", "a"),
        ("a.b", "a.b"),
        ("png", "png"),
        (".png", ".png"),
        ("x/a.seg", "a"),
        ("img.v2.MAT", "img.v2"),
        ("2018.jpg.mat", "2018.jpg"),
        ("1.5", "1.5"),
        ("a\nb.png", "a\\nb"),
    ],
)
def test_the_id_of_a_file(name, expected):
    assert id_of(name) == expected


@pytest.mark.parametrize(("name", "said"), [("a.XYZ", r"\.xyz"), ("a", "missing")])
def test_other_suffixes_are_refused(tmp_path, name, said):
    words = rf"{name}: suffix {said}, expected arrays in one of \.png, .*, \.seg$"
    refused(words, read_arrays, tmp_path / name)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("order", [False, True])
def test_npy_by_hand(tmp_path, version, order):
    (tmp_path / "a.npy").write_bytes(npy(version=version, order=order))
    found = read_npy(tmp_path / "a.npy")
    assert found.tolist() == ([[0, 2, 4], [1, 3, 5]] if order else WIDE.tolist())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (npy(body=bytes(47)), r"47 bytes for \(2, 3\) float64, expected 48"),
        (npy(body=bytes(49)), r"49 bytes for \(2, 3\) float64, expected 48"),
        (npy("(-2, -3)"), r"48 bytes for \(-2, -3\) float64"),
        (npy("(2, -3)"), r"48 bytes for \(2, -3\) float64"),
        (npy("(-1, 0, 7)", body=b""), r"0 bytes for \(-1, 0, 7\) float64"),
        (npy(descr="'<c16'"), "holds '<c16', expected numbers"),
        (npy(descr="'<U2'"), "holds '<U2', expected numbers"),
        (npy(descr="'|b0'", body=b""), "expected"),
        (npy(descr="'|V8'"), r"holds '\|V8', expected numbers"),
        (npy(descr="'nothing'"), "no header of numbers"),
        (npy(version=(3, 0)), "no header of numbers"),
        (b"\x93NUMPX" + bytes(90), "no header of numbers"),
    ],
)
def test_npy_files_that_are_none(tmp_path, data, words):
    (tmp_path / "a.npy").write_bytes(data)
    refused(rf"a\.npy: .*{words}", read_npy, tmp_path / "a.npy")


def test_truth_values_are_0_and_1_whatever_byte_they_are(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy("(1, 4)", "'|b1'", bytes([0, 1, 2, 255])))
    found = read_npy(tmp_path / "a.npy")
    assert found.dtype == bool
    assert found.view(np.uint8).tolist() == [[0, 1, 1, 1]]


def test_no_axes_and_no_values(tmp_path):
    np.save(tmp_path / "a.npy", np.float64(3))
    np.save(tmp_path / "b.npy", np.zeros((0, 4)))
    assert read_npy(tmp_path / "a.npy").shape == ()
    assert read_npy(tmp_path / "b.npy").shape == (0, 4)


@pytest.mark.parametrize("pack", [np.savez, np.savez_compressed])
def test_a_member_s_sum_is_checked(tmp_path, pack):
    """One bit of the archive's list of members is another: the sum of x."""
    pack(tmp_path / "a.npz", x=WIDE)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[data.rindex(b"PK\x01\x02") + 16] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    refused(r"a\.npz: .*damaged", read_npz, tmp_path / "a.npz")


def test_text_only_where_it_is_asked_for():
    data = packed(names=np.array(["a", "bc"]), x=WIDE)
    assert unpack_npz(data, text=True)["names"].tolist() == ["a", "bc"]
    refused("holds '<U2', expected numbers$", unpack_npz, data, error=FaultError)


def test_bytes_of_all_members_are_bounded(monkeypatch):
    data = packed(x=WIDE, y=WIDE)
    whole = 2 * (128 + 48)  # numpy's headers have 128 bytes
    assert set(unpack_npz(data, limit=whole)) == {"x", "y"}
    words = f"^decodes to more than {whole - 1} bytes, expected less$"
    refused(words, unpack_npz, data, limit=whole - 1, error=FaultError)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", whole)
    assert len(unpack_npz(data)) == 2
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", whole - 1)
    refused(words, unpack_npz, data, error=FaultError)


def test_a_limit_stands_in_place_of_what_a_picture_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "MAX_PIXELS", 6)
    assert unpack_npz(packed(x=WIDE))["x"].shape == (2, 3)
    np.save(tmp_path / "a.npy", np.zeros(7))
    refused("npy: claims 7 values, expected at most 6$", read_npy, tmp_path / "a.npy")
    data = packed(x=np.zeros(7))
    assert unpack_npz(data, limit=1000)["x"].shape == (7,)
    refused("^claims 7 values, expected at most 6$", unpack_npz, data, error=FaultError)


def test_the_number_of_members_is_bounded(monkeypatch):
    monkeypatch.setattr(formats, "MAX_MEMBERS", 2)
    assert len(unpack_npz(packed(x=WIDE, y=WIDE))) == 2
    data = packed(x=WIDE, y=WIDE, z=WIDE)
    refused("^holds 3 arrays, expected at most 2$", unpack_npz, data, error=FaultError)


def test_other_members_are_passed_over_and_either_kind_of_zip_is_read(tmp_path):
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", how) as archive:
            archive.writestr("notes.txt", b"nothing")
            archive.writestr("x.npy", npy())
        assert {k: v.tolist() for k, v in read_npz(tmp_path / "a.npz").items()} == {
            "x": WIDE.tolist()
        }
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", b"nothing")
    assert read_npz(tmp_path / "a.npz") == {}


def test_a_budget_may_be_spent_to_the_last_byte(monkeypatch):
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 10)
    budget = Budget()
    budget.spend(4)
    budget.spend(6)
    refused("^decodes to more than 10 bytes, expected less$", budget.spend, 1, error=FaultError)


def test_every_format_has_a_reader():
    for suffix, reader in FORMATS.items():
        module, function = reader.split(":")
        found = __import__(f"bsdsbench.loaders.{module}", fromlist=[function])
        assert callable(getattr(found, function)), suffix
