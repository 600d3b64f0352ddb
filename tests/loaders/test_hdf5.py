"""MATLAB 7.3 and plain HDF5, laid out as MATLAB does it: values by class, limits, refusals."""

import math
import zlib

import numpy as np
import pytest

from bsdsbench import io as bounded
from bsdsbench.io import FaultError
from bsdsbench.loaders.formats.hdf5 import MATLAB_HEADER, read_hdf5
from bsdsbench.loaders.formats.pictures import read_arrays
from tests.helpers.processes import start_python
from tests.helpers.runs import refused, write_maps

h5py = pytest.importorskip("h5py")
WIDE = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def read(tmp_path):
    """What `read_hdf5` makes of the file that a function fills."""

    def call(fill):
        with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
            fill(file)
        return read_hdf5(MATLAB_HEADER + (tmp_path / "a.h5").read_bytes()[len(MATLAB_HEADER) :])

    return call


def put(file, name, values, kind=None, **more):
    """A data set as MATLAB stores it: columns first."""
    item = file.create_dataset(name, data=np.asarray(values).T, **more)
    if kind is not None:
        item.attrs["MATLAB_class"] = kind
    return item


def cell(file, name, refs, kind=b"cell"):
    item = file.create_dataset(name, data=np.array(refs, h5py.ref_dtype))
    if kind:
        item.attrs["MATLAB_class"] = np.bytes_(kind)
    return item


def test_values_by_their_class(read):
    kind = np.bytes_

    def fill(file):
        put(file, "double", WIDE, kind("double"))
        put(file, "plain", WIDE.astype(">i2"))
        put(file, "logical", np.uint8([[0, 1, 2]]), kind("logical"))
        for name in ("char", "function_handle", "opaque", "object"):
            put(file, name, np.uint16([[104, 105]]), kind(name))
        put(file, "nothing", np.uint64([[0, 0]]), kind("double")).attrs["MATLAB_empty"] = 1
        put(file, "no_cell", np.uint64([[0, 0]]), kind("cell")).attrs["MATLAB_empty"] = 1
        put(file, "full", WIDE, kind("double")).attrs["MATLAB_empty"] = 0
        file.create_dataset("text", data="abc")
        put(file, "#hidden", WIDE)

    found = read(fill)
    assert set(found) == {*("double", "plain", "logical", "nothing", "no_cell", "full", "text"),
                          *("char", "function_handle", "opaque", "object")}  # fmt: skip
    for name in ("double", "plain", "full"):
        assert found[name].tolist() == WIDE.tolist()
    assert found["plain"].dtype == np.dtype("=i2")
    assert (found["logical"].dtype, found["logical"].tolist()) == (bool, [[False, True, True]])
    for name in ("char", "function_handle", "opaque", "object", "text"):
        assert found[name] is None
    assert found["nothing"].shape == (0, 0)
    assert found["no_cell"] == []


def test_structs_and_cells(read):
    """A struct, one of cells, an array of structs, an object; cells down the columns."""

    def fill(file):
        refs = [put(file, f"#refs#/{k}", [[float(k)]]).ref for k in range(4)]
        cell(file, "cells", [refs[:2], refs[2:]])
        for name in ("struct", "of_cells", "several"):
            file.create_group(name).attrs["MATLAB_class"] = np.bytes_("struct")
        put(file["struct"], "a", WIDE)
        cell(file["of_cells"], "a", [refs[:2]])
        cell(file["several"], "a", [refs[:2]], None)
        cell(file["several"], "b", [refs[2:]], None)
        file.create_group("empty")
        file.create_group("object").attrs["MATLAB_class"] = np.bytes_("table")
        file.create_group("by_others").attrs["MATLAB_class"] = "struct"

    found = read(fill)
    assert [v.item() for v in found["cells"]] == [0, 1, 2, 3]
    assert found["struct"]["a"].tolist() == WIDE.tolist()
    assert [v.item() for v in found["of_cells"]["a"]] == [0, 1]
    several = [{k: v.item() for k, v in each.items()} for each in found["several"]]
    assert several == [{"a": 0, "b": 2}, {"a": 1, "b": 3}]
    assert (found["empty"], found["object"], found["by_others"]) == ({}, None, {})


def test_nesting_of_8_is_read_and_9_refused(read):
    def fill(file, depth):
        at = put(file, "#0", WIDE)
        for k in range(1, depth):
            at = cell(file, f"#{k}", [[at.ref]])
        cell(file, "x", [[at.ref]])

    value = read(lambda file: fill(file, 8))["x"]
    for _ in range(8):
        value = value[0]
    assert value.tolist() == WIDE.tolist()
    refused("nested deeper", read, lambda file: fill(file, 9), error=FaultError)


def spent(monkeypatch, bytes_):
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", bytes_)


ITEM = 32_768


@pytest.mark.parametrize(
    ("fill", "cost"),
    [
        (lambda f: put(f, "x", WIDE), ITEM + 48),
        (lambda f: cell(f, "x", [[put(f, "#a", [[1.0]]).ref] * 3]), 2 * ITEM + 3 * (ITEM + 8)),
        (lambda f: [f.create_group(f"x/{k}") for k in "ab"], 3 * ITEM),
    ],
)
def test_what_values_cost(read, monkeypatch, fill, cost):
    """Each name and item 32 KiB, beside the bytes of arrays: exactly so much is enough."""
    spent(monkeypatch, cost)
    assert "x" in read(fill)
    spent(monkeypatch, cost - 1)
    refused(f"^decodes to more than {cost - 1} bytes, expected less$", read, fill, error=FaultError)


def packed(file, chunks=(2, 4), size=None, shuffle=False):
    """4 x 8 doubles in chunks, the first of which may inflate to another size."""
    item = put(file, "x", np.arange(32.0).reshape(8, 4), chunks=chunks, compression="gzip",
               shuffle=shuffle)  # fmt: skip
    if size is not None:
        item.id.write_direct_chunk((0, 0), zlib.compress(bytes(size)))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("chunks", [(4, 8), (2, 4), (3, 5)])
def test_chunks_of_any_shape(read, chunks, shuffle):
    found = read(lambda file: packed(file, chunks, shuffle=shuffle))["x"]
    assert found.tolist() == np.arange(32.0).reshape(8, 4).tolist()


def test_a_chunk_has_the_size_that_it_says(read):
    assert read(lambda file: packed(file, size=64))["x"][0].tolist() == [0, 0, 2, 3]
    for size in (0, 63, 65, 10_000):
        refused(
            "not of 64 bytes", read, lambda file, n=size: packed(file, size=n), error=FaultError
        )


def test_chunks_are_bounded_in_number_and_bytes(read, monkeypatch):
    monkeypatch.setattr("bsdsbench.loaders.formats.hdf5.MAX_CHUNKS", 4)
    monkeypatch.setattr("bsdsbench.loaders.formats.hdf5._ITEM_BYTES", 0)
    assert read(packed)["x"].shape == (8, 4)
    monkeypatch.setattr("bsdsbench.loaders.formats.hdf5.MAX_CHUNKS", 3)
    refused("4 chunks of 64 bytes", read, packed, error=FaultError)


def empty(shape, dtype, **more):
    return lambda file: file.create_dataset("x", shape, dtype, **more)


@pytest.mark.parametrize(
    ("fill", "most", "shape", "words"),
    [
        (empty((3, 64), "f8"), 192 * 8, (64, 3), "3 x 64"),
        # a chunk takes eight times its bytes
        (empty((1, 1), "f8", chunks=(16, 16), maxshape=(None, None)), 16 * 16 * 64, (1, 1), "16 x"),
    ],
)
def test_claims_are_checked_before_anything_is_made(read, monkeypatch, fill, most, shape, words):
    monkeypatch.setattr("bsdsbench.loaders.formats.hdf5._ITEM_BYTES", 0)
    spent(monkeypatch, most)
    assert np.shape(read(fill)["x"]) == shape
    spent(monkeypatch, most - 1)
    refused(f"^claims {words}", read, fill, error=FaultError)


def test_what_is_elsewhere_is_not_read(read, tmp_path):
    def beside(file):
        file.create_dataset("x", (4,), "u1", external=[(str(tmp_path / "raw"), 0, 4)])

    def virtual(file):
        layout = h5py.VirtualLayout((4,), "u1")
        layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "x", (4,))
        file.create_virtual_dataset("x", layout)

    def link(file):
        put(file, "y", WIDE)
        file["x"] = h5py.SoftLink("/y")

    def inside(file):
        file.create_group("x")["y"] = h5py.ExternalLink("b.h5", "x")

    for fill, words in ((beside, "file"), (virtual, "file"), (link, "'x'"), (inside, "'y'")):
        refused(words, read, fill, error=FaultError)


@pytest.mark.parametrize("suffix", [".h5", ".hdf5"])
def test_a_plain_file_gives_its_arrays_as_h5py_does(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = WIDE, np.arange(24).reshape(2, 3, 4)
        file["text"] = "abc"
        file.create_group("group")
    for found in (read_arrays(path), read_hdf5(path.read_bytes())):
        assert (found.pop("text"), found.pop("group")) == (None, {})
        assert found["x"].tolist() == WIDE.tolist()
        assert found["y"].tolist() == np.arange(24).reshape(2, 3, 4).tolist()
        assert all(v.flags.c_contiguous for v in found.values())
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(math.prod((10, 10))))
    refused(rf"a\{suffix}: is damaged or cut short, expected a whole HDF5 file$", read_arrays, path)


@pytest.mark.slow
def test_python_ends_in_peace_after_a_file_that_is_cut(tmp_path):
    for name in "abc":
        write_maps(tmp_path / "maps", {name: np.eye(30, dtype=bool)})
        (tmp_path / "gt").mkdir(exist_ok=True)
        with h5py.File(tmp_path / "gt" / f"{name}.mat", "w", userblock_size=512) as file:
            put(file, "x", np.eye(30))
        path = tmp_path / "gt" / f"{name}.mat"
        data = MATLAB_HEADER + path.read_bytes()[len(MATLAB_HEADER) :]
        path.write_bytes(data[: len(data) // 2] if name == "b" else data)
    words = ["evaluate", tmp_path / "maps", "--gt", tmp_path / "gt", "--workers", 2, "--quiet"]
    with start_python("-c", "import bsdsbench.cli as c; c.main()", *words) as process:
        _, printed = process.communicate(timeout=100)
    assert process.returncode == 2  # -11 if HDF5 frees what Python has torn down
    assert printed.endswith("b.mat: is damaged or cut short, expected a whole HDF5 file\n")


def test_any_byte_but_zero_is_true(tmp_path):
    """As in Pillow's images of one bit, whose True has the byte 255."""
    values = np.array([[0, 255, 1]], np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = values.view(bool)
    (read,) = read_arrays(tmp_path / "a.h5").values()
    assert read.view(np.uint8).tolist() == [[0, 1, 1]]
