"""MATLAB 5 to 7 byte by byte: elements, classes, cells, structs, sparse arrays, limits."""

import struct
import zlib

import numpy as np
import pytest

from bsdsbench import io as bounded
from bsdsbench.io import FaultError
from bsdsbench.loaders.formats.matlab import decode_mat
from tests.helpers.runs import refused

ORDERS = pytest.mark.parametrize("order", ["<", ">"])
# "mi" storage and "mx" class -> numpy's code, by MathWorks' table
STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
           13: "u8"}  # fmt: skip
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
           15: "u8"}  # fmt: skip
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


def sparse(rows=(0, 1, 0), starts=(0, 1, 1, 3), values=(5.0, 6, 7), shape=(2, 3), flags=0,
           kinds=(5, 5)):  # fmt: skip
    parts = numbers(kinds[0], rows), numbers(kinds[1], starts), numbers(9, values)
    return matrix(5, shape, *parts, flags=flags)


def cells(*items, shape=None):
    return matrix(1, shape or (1, len(items)), *items)


def record(shape, names, items, width=4, widths=None, kind=5):
    text = b"".join(n.ljust(width, b"\0") for n in names)
    word = numbers(kind, [width] if widths is None else widths)
    return matrix(2, shape, word, element(1, text), *items)


def scalars(*values):
    return [array([[float(v)]], name=b"") for v in values]


def nested(depth):
    item = scalars(3)[0]
    for _ in range(depth):
        item = cells(item)
    return item


def packed(whole, order="<"):
    body = zlib.compress(whole)
    return struct.pack(order + "II", 15, len(body)) + body  # without padding


def read(*elements, order="<", head=b"MATLAB 5.0"):
    mark = b"IM" if order == "<" else b"MI"
    return decode_mat(head.ljust(126) + mark + b"".join(elements))


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value.tolist()


@ORDERS
@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_from_every_storage(order, kind):
    for stored in STORAGE:
        for flags, code, expected in ((0, CLASSES[kind], WIDE), (2, "b1", WIDE != 0)):
            found = read(array(WIDE, kind, stored, order, flags=flags), order=order)["x"]
            assert found.dtype.kind + str(found.dtype.itemsize) == code, stored
            assert found.tolist() == expected.tolist(), stored


@ORDERS
@pytest.mark.parametrize("pack", [False, True])
def test_variables_one_after_another(order, pack):
    """Whatever else is between them is passed over."""
    first, last = (array(WIDE * k, name=n, order=order) for k, n in ((1, b"a"), (2, b"longer")))
    parts = [first, numbers(9, [1, 2], order), element(14, b"", order), last]
    parts = [packed(p, order) for p in parts] if pack else parts
    found = read(*parts, order=order)
    assert plain(found) == {"a": WIDE.tolist(), "longer": (WIDE * 2).tolist()}
    assert read(order=order) == read(bytes(7), order=order) == {}


def small(size, order="<"):
    words = (2, size) if order == "<" else (size, 2)
    return struct.pack(order + "HH", *words) + bytes(range(1, size + 1)).ljust(4, b"\0")


@ORDERS
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_small_elements(order, size):
    found = read(matrix(9, (1, size), small(size, order), order=order), order=order)["x"]
    assert found.tolist() == [list(range(1, size + 1))]


def test_sparse_arrays_by_hand():
    for flags, expected in ((0, [[5, 0, 7], [0, 0, 6]]), (2, [[True, False, True], [0, 0, True]])):
        found = read(sparse(flags=flags))["x"]
        assert (found.dtype, found.tolist()) == (bool if flags else np.float64, expected)
    # more room than there are values, as MATLAB may leave
    assert read(sparse((0, 9), (0, 1, 1, 1), (5, 3)))["x"].tolist() == [[5, 0, 0], [0, 0, 0]]
    assert not read(sparse((), (0, 0, 0, 0), ()))["x"].any()


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (cells(*scalars(1, 2, 3), element(14, b""), shape=(2, 2)), [[[1]], [[2]], [[3]], []]),
        (record((1, 1), [b"a", b"bc"], scalars(1, 2)), {"a": [[1]], "bc": [[2]]}),
        (record((1, 2), [b"a", b"b"], scalars(1, 2, 3, 4)),
         [{"a": [[1]], "b": [[2]]}, {"a": [[3]], "b": [[4]]}]),
        (record((1, 0), [b"a"], []), []),
        (nested(8), [[[[[[[[[[3]]]]]]]]]]),
    ],
)  # fmt: skip
def test_cells_and_structs_by_hand(whole, expected):
    assert plain(read(whole)["x"]) == expected


def head_of(word, dims):
    return element(14, word + dims + element(1, b"x") + numbers(9, [1]))


SIX, ONE = numbers(9, range(6)), numbers(5, [1, 1])
WRONG = {
    "an element that is damaged": (
        matrix(9, (1, 5), small(5)),
        matrix(9, (1, 1), element(8, bytes(8))),
        matrix(9, (1, 1), element(9, bytes(7))),
    ),
    "ends too early": (
        array(WIDE)[:-1],
        matrix(9, (1, 1)),
        array(WIDE) + struct.pack("<II", 14, 8),
        packed(b"\0" * 7),
    ),
    "compressed block": (packed(array(WIDE) + b"x"), packed(array(WIDE)[:-1])),
    "dimensions": tuple(matrix(6, s, SIX) for s in ((6,), (1,) * 8 + (6,), (-2, -3), (6, -1))),
    "2 x 3 with": tuple(matrix(6, (2, 3), numbers(9, range(n))) for n in (5, 7)),
    "header": (
        head_of(numbers(6, [6]), ONE),
        head_of(numbers(5, [6, 0]), ONE),
        head_of(numbers(6, [6, 0]), numbers(9, [1, 1])),
    ),
    "complex": (array(WIDE, flags=8), array(WIDE, flags=10), sparse(flags=8)),
    "sparse": (
        sparse((0, 2, 1)),
        sparse(values=(5.0, 6)),
        *(sparse(starts=s) for s in ((0, 1, 3), (0, 2, 1, 3))),
        sparse(kinds=(9, 5)),
    ),
    "struct": (
        *(record((1, 1), [b"a"], scalars(1), widths=w) for w in ([0], [4, 4])),
        record((1, 1), [b"a"], scalars(1), kind=9),
        cells(numbers(9, [1])),
    ),
    "3 items in 16 bytes": (matrix(1, (1, 3), element(14, b""), element(14, b"")),),
    "nested deeper": (nested(9),),
}


@pytest.mark.parametrize(("name", "whole"), [(n, w) for n, all_ in WRONG.items() for w in all_])
def test_what_is_no_sound_file(name, whole):
    words = name.replace("an element that is damaged", "damaged element")
    refused(words, read, whole, error=FaultError)


@pytest.mark.parametrize(
    ("whole", "cost"),
    [
        (array(WIDE, 7, 5), 6 * 4),
        (array(WIDE, 6, 2, flags=2), 6),
        (sparse(), 6 * 8),
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
    refused("^(decodes to more than|claims 2 x 3)", read, whole, error=FaultError)


@pytest.mark.parametrize(
    ("block", "head", "kind", "turned"),
    [
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
    assert decode_mat((tmp_path / "a.mat").read_bytes())["x"].tolist() == expected.tolist()
