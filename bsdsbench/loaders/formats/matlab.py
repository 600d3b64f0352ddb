"""Reading MATLAB 5 to 7 .mat files (7.3 is read by `hdf5`): numeric arrays, cells, structs.

This reader exists because a corrupted file must neither crash the process nor use up its memory:
scipy's reader crashes the interpreter on three of 1,500 damaged files. Every size is checked
against the present bytes before anything is allocated. The reader is as fast as scipy.io.loadmat
and saves its import (0.3 s). Source: MathWorks, "MAT-File Format", level 5.

Numeric arrays become ndarrays in MATLAB's class (logical as bool, sparse as dense), cells lists in
column order, a struct a dict, and a struct array a list of dicts. Text, objects and function
handles become None.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.io import Budget, FaultError, PathLike, ReadBytes, check_size, read_bytes, reading
from bsdsbench.loaders.formats.hdf5 import read_hdf5
from bsdsbench.loaders.formats.pictures import MAX_DEPTH
from bsdsbench.text import show

# "mi" storage types and "mx" classes -> numpy type codes
STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
STORAGE[13] = "u8"
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8"}
CLASSES[15] = "u8"
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, SPARSE = 1, 2, 5
LOGICAL, COMPLEX = 0x02, 0x08
_ITEM_COST = 1024  # bytes charged per item of a cell and name of a field, even if empty
TAG_BYTES = 8  # type and size before the data of an element
EXPECTED_INTACT = "expected a sound MATLAB file"
TOO_SHORT = "ends too early (truncated?), expected a whole MATLAB file"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def read_mat(path: PathLike, read: ReadBytes = read_bytes) -> dict[str, object]:
    """Return the variables of a .mat file by name.

    Raises FileFormatError for anything that is not a sound MATLAB 5, 7 or 7.3 file, and for an
    empty file. A file without variables gives {}.
    """
    data = read(path)
    is_hdf5 = data.startswith(HDF5_MAGIC) or data[512:520] == HDF5_MAGIC
    with reading(path, "a MATLAB file, version 5 to 7.3"):
        return read_hdf5(data) if is_hdf5 else _read_v5(data)


def _read_v5(data: bytes) -> dict[str, object]:
    """Return the variables in the bytes of a MATLAB 5 or 7 file. Raises FaultError."""
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI"):
        raise FaultError("no MATLAB header, expected a MATLAB file, version 5 to 7.3")
    file = _Reader(memoryview(data), "<" if data[126:128] == b"IM" else ">", Budget(), 128)
    variables = {}
    while len(data) - file.position >= 8:
        kind, body = file.read_element()
        if kind == COMPRESSED:
            kind, body = file.inflate(body)
        if kind == MATRIX and len(body):
            name, value = _Reader(body, file.order, file.budget).read_variable(0)
            variables[name] = value
    return variables


class _Element(NamedTuple):
    """The type and the bytes of an element."""

    kind: int
    body: memoryview


class _Variable(NamedTuple):
    """An array, a cell or a struct with its name."""

    name: str
    value: object


class _Reader:
    """A reading position that cannot pass the end of its bytes, and a budget for decoded bytes."""

    def __init__(self, data: memoryview, order: str, budget: Budget, position: int = 0) -> None:
        self.data, self.order, self.budget, self.position = data, order, budget, position

    def read_element(self) -> _Element:
        """Return the next element, and skip the padding to 8 bytes."""
        position = self.position
        most = len(self.data)
        if most - position < 8:
            raise FaultError(TOO_SHORT)
        kind, size = struct.unpack_from(self.order + "II", self.data, position)
        if kind >> 16:  # small form: size and type in one word, data in the other
            kind, size, start, end = kind & 0xFFFF, kind >> 16, position + 4, position + 8
        else:
            start = position + 8
            end = start + size + (-size % 8 if kind != COMPRESSED else 0)
        if start == position + 4 and size > 4:
            raise FaultError(f"damaged element, {EXPECTED_INTACT}")
        if start + size > most:
            raise FaultError(TOO_SHORT)
        self.position = min(end, most)
        return _Element(kind, self.data[start : start + size])

    def read_numbers(self) -> NDArray[Any]:
        """Return the next element as a 1-D array in its storage type."""
        kind, body = self.read_element()
        code = STORAGE.get(kind)
        if code is None or len(body) % int(code[1]):
            raise FaultError(f"damaged element, {EXPECTED_INTACT}")
        return np.frombuffer(body, self.order + code)

    def inflate(self, body: memoryview) -> _Element:
        """Return the element inside a compressed element, decoding no more bytes than it declares.

        zlib-ng, if installed, is five times as fast as Python's zlib.
        """
        try:
            from zlib_ng.zlib_ng import decompressobj
        except ImportError:
            from zlib import decompressobj  # type: ignore[assignment]

        tag = decompressobj().decompress(body[:1024], 8)
        if len(tag) < 8:
            raise FaultError(TOO_SHORT)
        kind, size = struct.unpack(self.order + "II", tag)
        self.budget.spend(size + 8)
        stream = decompressobj()
        raw = stream.decompress(body, size + 9)
        if len(raw) != size + 8 or not stream.eof:
            raise FaultError(f"a damaged compressed block, {EXPECTED_INTACT}")
        return _Element(kind, memoryview(raw)[8:])

    def read_variable(self, depth: int) -> _Variable:
        """Return the next array, cell or struct with its name.

        `depth` is the nesting level, limited to MAX_DEPTH. Other classes, such as function handles,
        give None. Raises FaultError for damaged or complex data.
        """
        flags_words, dims = self.read_numbers(), self.read_numbers()
        name = bytes(self.read_element()[1]).decode("latin-1")
        if flags_words.size != 2 or flags_words.dtype.kind != "u" or dims.dtype.kind != "i":
            raise FaultError(f"a damaged array header, {EXPECTED_INTACT}")
        shape = tuple(dims.tolist())
        if not 2 <= len(shape) <= 8 or min(shape) < 0:
            raise FaultError(f"an array of {len(shape)} dimensions, {EXPECTED_INTACT}")
        if depth > MAX_DEPTH:
            raise FaultError(f"nested deeper than {MAX_DEPTH}, expected arrays, cells and structs")
        kind, flags = int(flags_words[0]) & 0xFF, int(flags_words[0]) >> 8
        value: Any = None
        if flags & COMPLEX and kind in (SPARSE, *CLASSES):
            raise FaultError(f"variable {show(name)!r} is complex, expected real numbers")
        if kind in CLASSES:
            value = self.read_dense(shape, np.dtype("?" if flags & LOGICAL else CLASSES[kind]))
        elif kind == SPARSE:
            value = self.read_sparse(shape, np.dtype("?" if flags & LOGICAL else "f8"))
        elif kind == CELL:
            value = self.read_items(math.prod(shape), depth)
        elif kind == STRUCT:
            value = self.read_struct(math.prod(shape), depth)
        return _Variable(name, value)

    def read_dense(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a dense array of `shape`, converted to `dtype`. Raises FaultError."""
        check_size(shape, dtype.itemsize)
        stored = self.read_numbers()
        if stored.size != math.prod(shape):
            size = " x ".join(map(str, shape))
            raise FaultError(f"an array of {size} with {stored.size} values, {EXPECTED_INTACT}")
        if stored.dtype != dtype:
            self.budget.spend(stored.size * dtype.itemsize)
            # A damaged file may hold doubles out of the class's range, which must not warn
            with np.errstate(invalid="ignore"):
                stored = stored.astype(dtype)
        return stored.reshape(shape, order="F")

    def read_sparse(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a dense array from MATLAB's compressed columns. Raises FaultError."""
        from scipy.sparse import csc_array

        check_size(shape, 8)
        self.budget.spend(math.prod(shape) * 8)
        rows, starts, values = self.read_numbers(), self.read_numbers(), self.read_numbers()
        count = int(starts[-1]) if starts.size else -1
        try:
            array = csc_array((values[:count].astype(dtype), rows[:count], starts), shape)
            array.check_format()
            is_sound = rows.dtype.kind in "iu" and starts.dtype.kind in "iu" and count >= 0
        except (ValueError, IndexError, TypeError):
            is_sound = False
        if not is_sound:
            raise FaultError(f"a damaged sparse array, {EXPECTED_INTACT}")
        return np.asarray(array.toarray())

    def read_items(self, count: int, depth: int) -> list[object]:
        """Return the next `count` items of a cell or struct at a nesting level."""
        n_left = len(self.data) - self.position
        if count * TAG_BYTES > n_left:
            raise FaultError(f"{count} items in {n_left} bytes, {EXPECTED_INTACT}")
        self.budget.spend(count * _ITEM_COST)
        values = []
        for _ in range(count):
            kind, body = self.read_element()
            if kind != MATRIX:
                raise FaultError(f"a damaged cell or struct, {EXPECTED_INTACT}")
            inner = _Reader(body, self.order, self.budget)
            values.append(inner.read_variable(depth + 1).value if len(body) else np.zeros((0, 0)))
        return values

    def read_struct(self, count: int, depth: int) -> object:
        """Return a struct as a dict, or a struct array of `count` elements as a list of dicts."""
        width = self.read_numbers()
        text = bytes(self.read_element()[1])
        if width.size != 1 or width.dtype.kind not in "iu" or not 0 < int(width[0]) <= 64:
            raise FaultError(f"a damaged struct, {EXPECTED_INTACT}")
        starts = range(0, len(text), step := int(width[0]))
        self.budget.spend(len(text) // step * _ITEM_COST)
        names, rows = [], []
        for start in starts:
            names.append(text[start : start + step].split(b"\0")[0].decode("latin-1"))
        values = self.read_items(count * len(names), depth)
        for k in range(0, len(values), len(names) or 1):
            rows.append(dict(zip(names, values[k : k + len(names)], strict=True)))
        return rows[0] if count == len(rows) == 1 else rows
