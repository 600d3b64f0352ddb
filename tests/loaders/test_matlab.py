"""MATLAB 5 to 7 byte by byte: elements, classes, cells, structs, sparse arrays, limits."""

import struct
import zlib

import numpy as np
import pytest

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError
from bsdsbench.loaders.matlab import _read_v5, read_mat
from tests.helpers.runs import refused

ORDERS = pytest.mark.parametrize("order", ["<", ">"])
# "mi" storage and "mx" class -> numpy's code, by MathWorks' table
STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
           13: "u8"}  # fmt: skip
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
           15: "u8"}  # fmt: skip
DAMAGED = "^damaged element, expected a sound MATLAB file$"
SHORT = r"^ends too early \(truncated\?\), expected a whole MATLAB file$"
WIDE = np.arange(6.0).reshape(2, 3)


def element(kind, body, order="<"):
    return struct.pack(order + "II", kind, len(body)) + body + bytes(-len(body) % 8)


def numbers(kind, values, order="<"):
    return element(kind, np.asarray(values, order + STORAGE[kind]).tobytes(), order)


def matrix(kind, shape, *parts, flags=0, name=b"x", order="<"):
    word = struct.pack(order + "II", kind | flags << 8, 0)
    body = element(6, word, order) + numbers(5, shape, order) + element(1, name, order)
    return element(14, body + b"".join(parts), order)


def array(values, kind=6, stored=9, order="<", **more):
    values = np.asarray(values)
    data = numbers(stored, values.ravel(order="F"), order)
    return matrix(kind, values.shape, data, order=order, **more)


def file(*elements, order="<"):
    return b"MATLAB 5.0".ljust(126) + (b"IM" if order == "<" else b"MI") + b"".join(elements)


def packed(whole, order="<"):
    body = zlib.compress(whole)
    return struct.pack(order + "II", 15, len(body)) + body  # without padding


def read(*elements, order="<"):
    return _read_v5(file(*elements, order=order))


def fails(words, *elements):
    refused(words, read, *elements, error=FaultError)


@ORDERS
@pytest.mark.parametrize("stored", STORAGE)
@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_from_every_storage(order, kind, stored):
    found = read(array(WIDE, kind, stored, order), order=order)["x"]
    assert found.dtype.kind + str(found.dtype.itemsize) == CLASSES[kind]
    assert found.tolist() == WIDE.tolist()
    found = read(array(WIDE, kind, stored, order, flags=2), order=order)["x"]
    assert found.dtype == bool
    assert found.tolist() == (WIDE != 0).tolist()


@ORDERS
@pytest.mark.parametrize("pack", [False, True])
def test_variables_one_after_another(order, pack):
    """Whatever else is between them is passed over; the last may lack its padding."""
    first, last = (
        array(WIDE * k, name=n, order=order) for k, n in ((1, b"a"), (2, b"longer name"))
    )
    parts = [first, numbers(9, [1, 2], order), element(14, b"", order), last]
    if pack:
        parts = [packed(p, order) for p in parts]
    for tail in (b"", bytes(7)):
        found = read(*parts, tail, order=order)
        assert {k: v.tolist() for k, v in found.items()} == {
            "a": WIDE.tolist(),
            "longer name": (WIDE * 2).tolist(),
        }
    unpadded = array(np.uint8([[1, 2, 3]]), 9, 2, order)[:-5]
    size = struct.unpack_from(order + "I", unpadded, 4)[0] - 5
    unpadded = unpadded[:4] + struct.pack(order + "I", size) + unpadded[8:]
    assert read(unpadded, order=order)["x"].tolist() == [[1, 2, 3]]


@ORDERS
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_small_elements(order, size):
    words = (2, size) if order == "<" else (size, 2)
    small = struct.pack(order + "HH", *words) + bytes(range(1, size + 1)).ljust(4, b"\0")
    found = read(matrix(9, (1, size), small, order=order), order=order)["x"]
    assert found.tolist() == [list(range(1, size + 1))]


def test_elements_that_are_none():
    five = struct.pack("<HH", 2, 5) + bytes(4)
    fails(DAMAGED, matrix(9, (1, 5), five))
    fails(DAMAGED, matrix(9, (1, 1), element(8, bytes(8))))
    fails(DAMAGED, matrix(9, (1, 1), element(9, bytes(7))))
    fails(SHORT, array(WIDE)[:-1])
    fails(SHORT, matrix(9, (1, 1)))
    fails(SHORT, array(WIDE), struct.pack("<II", 14, 8))
    fails(SHORT, packed(b"\0" * 7))
    fails("^a damaged compressed block", packed(array(WIDE) + b"x"))
    fails("^a damaged compressed block", packed(array(WIDE)[:-1]))


@pytest.mark.parametrize("data", [file()[:127], file()[:126] + b"XX", b"MATLAB"])
def test_heads_that_are_none(data):
    words = "^no MATLAB header, expected a MATLAB file, version 5 to 7.3$"
    refused(words, _read_v5, data, error=FaultError)


def test_a_file_without_variables_is_empty():
    assert read() == {}
    assert read(bytes(7)) == {}


def test_dimensions():
    for shape in ((6,), (1,) * 8 + (6,), (-2, -3), (6, -1)):
        fails(f"^an array of {len(shape)} dimensions, expected a sound",
              matrix(6, shape, numbers(9, range(6))))  # fmt: skip
    for shape in ((1, 6), (1,) * 7 + (6,), (0, 3)):
        found = read(matrix(6, shape, numbers(9, range(6 if 0 not in shape else 0))))["x"]
        assert found.shape == shape
    for count in (5, 7):
        fails(
            f"^an array of 2 x 3 with {count} values", matrix(6, (2, 3), numbers(9, range(count)))
        )


@pytest.mark.parametrize(
    ("word", "dims"),
    [
        (numbers(6, [6]), numbers(5, [1, 1])),
        (numbers(6, [6, 0, 0]), numbers(5, [1, 1])),
        (numbers(5, [6, 0]), numbers(5, [1, 1])),
        (numbers(6, [6, 0]), numbers(6, [1, 1])),
        (numbers(6, [6, 0]), numbers(9, [1, 1])),
    ],
)
def test_heads_of_arrays_that_are_none(word, dims):
    body = word + dims + element(1, b"x") + numbers(9, [1])
    fails("^a damaged array header, expected a sound MATLAB file$", element(14, body))


@pytest.mark.parametrize("flags", [8, 10])
def test_complex_numbers_are_refused(flags):
    fails("^variable 'x' is complex, expected real numbers$", array(WIDE, flags=flags))


@pytest.mark.parametrize("flags", [1, 4, 5])
def test_other_flags_say_nothing(flags):
    assert read(array(WIDE, flags=flags))["x"].dtype == np.float64
    assert read(sparse((0, 1, 0), flags=flags))["x"].dtype == np.float64


@pytest.mark.parametrize(
    ("block", "head", "kind", "turned"),
    [
        (0, b"", None, False),
        (512, b"", None, False),
        (512, b"MATLAB 7.3 MAT-file, Platform: GLNXA64", None, True),
        (0, b"", np.bytes_("double"), True),
    ],
)
def test_version_7_3_is_by_columns_where_matlab_wrote_it(tmp_path, block, head, kind, turned):
    h5py = pytest.importorskip("h5py")
    square = np.arange(9.0).reshape(3, 3)
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=block) as made:
        item = made.create_dataset("x", data=square)
        if kind is not None:
            item.attrs["MATLAB_class"] = kind
    data = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "a.mat").write_bytes(head + data[len(head) :])
    expected = square.T if turned else square
    assert read_mat(tmp_path / "a.mat")["x"].tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [0, 3, 4, 16, 17, 18])
def test_what_is_no_number_is_none(kind):
    assert read(array(WIDE, kind)) == {"x": None}


# --- sparse


def sparse(rows=(0, 1, 1), starts=(0, 1, 1, 3), values=(5.0, 6, 7), shape=(2, 3), flags=0,
           kinds=(5, 5)):  # fmt: skip
    parts = numbers(kinds[0], rows), numbers(kinds[1], starts), numbers(9, values)
    return matrix(5, shape, *parts, flags=flags)


def test_sparse_arrays_by_hand():
    rows = (0, 1, 0)
    found = read(sparse(rows))["x"]
    assert (found.dtype, found.tolist()) == (np.float64, [[5, 0, 7], [0, 0, 6]])
    found = read(sparse(rows, flags=2))["x"]
    assert (found.dtype, found.tolist()) == (bool, [[True, False, True], [False, False, True]])
    # more room than there are values, as MATLAB may leave
    assert read(sparse((0, 9), (0, 1, 1, 1), (5, 3)))["x"].tolist() == [[5, 0, 0], [0, 0, 0]]
    assert not read(sparse((), (0, 0, 0, 0), ()))["x"].any()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": (0, 2, 1)},
        {"rows": (0, -1, 1)},
        {"rows": (0, 1)},
        {"values": (5.0, 6)},
        {"starts": (0, 1, 3)},
        {"starts": (0, 1, 1, 1, 3)},
        {"starts": (1, 1, 1, 3)},
        {"starts": (0, 2, 1, 3)},
        {"starts": (0, 0, 0, -1)},
        {"kinds": (9, 5)},
        {"kinds": (5, 9)},
    ],
)
def test_sparse_arrays_that_are_none(change):
    given = {"rows": (0, 1, 0)} | change
    fails("^a damaged sparse array, expected a sound MATLAB file$", sparse(**given))


def test_sparse_arrays_of_other_kinds():
    words = "^a complex or N-D sparse array, expected a real matrix$"
    fails(words, sparse(flags=8))
    fails(words, sparse(shape=(2, 3, 1)))


# --- cells and structs


def cells(*items, shape=None):
    return matrix(1, shape or (1, len(items)), *items)


def record(shape, names, items, width=4):
    text = b"".join(n.ljust(width, b"\0") for n in names)
    return matrix(2, shape, numbers(5, [width]), element(1, text), *items)


def scalars(*values):
    return [array([[float(v)]], name=b"") for v in values]


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value.tolist()


def test_cells_and_structs_by_hand():
    found = read(cells(*scalars(1, 2, 3), element(14, b""), shape=(2, 2)))["x"]
    assert plain(found) == [[[1]], [[2]], [[3]], []]
    assert found[3].shape == (0, 0)
    one = read(record((1, 1), [b"a", b"bc"], scalars(1, 2)))["x"]
    assert plain(one) == {"a": [[1]], "bc": [[2]]}
    two = read(record((1, 2), [b"a", b"bc"], scalars(1, 2, 3, 4)))["x"]
    assert plain(two) == [{"a": [[1]], "bc": [[2]]}, {"a": [[3]], "bc": [[4]]}]
    assert read(record((1, 0), [b"a"], []))["x"] == []
    assert read(record((1, 1), [], []))["x"] == []
    assert plain(read(record((1, 1), [b"a", b"b"], scalars(1, 2), width=1))["x"]) == {
        "a": [[1]],
        "b": [[2]],
    }
    long = b"n" * 64
    assert set(read(record((1, 1), [long], scalars(1), width=64))["x"]) == {"n" * 64}


@pytest.mark.parametrize("width", [[0], [65], [-1], [4, 4], []])
def test_structs_whose_names_have_no_width(width):
    item = matrix(2, (1, 1), numbers(5, width), element(1, b"a\0\0\0"), *scalars(1))
    fails("^a damaged struct, expected a sound MATLAB file$", item)
    item = matrix(2, (1, 1), numbers(9, [4]), element(1, b"a\0\0\0"), *scalars(1))
    fails("^a damaged struct, expected a sound MATLAB file$", item)


def test_cells_that_are_none():
    fails("^a damaged cell or struct, expected a sound", cells(numbers(9, [1])))
    empty = element(14, b"")
    assert len(read(matrix(1, (1, 2), empty, empty))["x"]) == 2
    fails("^a cell of 3 items in 16 bytes, expected", matrix(1, (1, 3), empty, empty))


def test_nesting_of_8_is_read_and_9_refused():
    item = scalars(3)[0]
    for _ in range(8):
        item = cells(item)
    assert plain(read(item)["x"]) == [[[[[[[[[[3]]]]]]]]]]
    fails("^nested deeper than 8, expected arrays, cells and structs$", cells(item))


@pytest.mark.parametrize(
    ("whole", "cost"),
    [
        (array(WIDE, 7, 5), 6 * 4),
        (array(WIDE, 6, 1), 6 * 8),
        (array(WIDE, 6, 2, flags=2), 6),
        (sparse((0, 1, 0)), 6 * 8),
        (array(WIDE, 7, 5) * 2, 2 * 6 * 4),
        (sparse((0, 1, 0)) * 2, 2 * 6 * 8),
        (cells(*[element(14, b"")] * 3), 3 * 1024),
        (record((1, 1), [b"a", b"b"], scalars(1, 2)), 2 * 1024 + 2 * 1024),
        (packed(array(WIDE)), len(array(WIDE))),
    ],
)
def test_what_values_cost(monkeypatch, whole, cost):
    """Bytes that are made beside the file's, 1 KiB per item and name: so much is enough."""
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", cost)
    assert "x" in read(whole)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", cost - 1)
    fails(f"^(decodes to more than {cost - 1} bytes|claims 2 x 3 values of . bytes)", whole)
