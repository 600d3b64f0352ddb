"""Reading .mat files of MATLAB 5 to 7 (`hdf5` reads 7.3): numeric arrays, cells, structs.

A corrupted file must neither crash the process, as it does with scipy's reader, nor exhaust its
memory. Before memory is allocated, every size is therefore checked against the number of bytes in
the file. The reader is as fast as scipy.io.loadmat and saves its import (0.3 s).

Source: MathWorks, "MAT-File Format", level 5.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.io import DecodedBytes, FaultError, check_size
from bsdsbench.loaders.formats.hdf5 import read_hdf5
from bsdsbench.loaders.formats.pictures import MAX_DEPTH
from bsdsbench.text import show

# MATLAB's numbers of storage types ("mi...") and of array classes ("mx...") -> numpy's type codes
STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
STORAGE[13] = "u8"
CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
MATRIX, COMPRESSED = 14, 15  # further types of elements
CELL, STRUCT, SPARSE = 1, 2, 5  # further array classes
LOGICAL, COMPLEX = 0x02, 0x08  # flags of an array
# Bytes counted as decoded for every item of a cell and every field name, even if it is empty,
# because Python objects take memory too
_ITEM_BYTES = 1024
TAG_BYTES = 8  # an element of a file begins with a tag: the type and the size of its data
EXPECTED_INTACT = "expected a sound MATLAB file"
TOO_SHORT = "ends too early (truncated?), expected a whole MATLAB file"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def decode_mat(data: bytes) -> dict[str, object]:
    """Decode the bytes of a .mat file (version 5 to 7.3) to a dict of its variables by name.

    Numeric arrays become NumPy arrays of at least two axes and the equivalent dtype (bool for
    logical); sparse arrays become dense. A cell becomes a list in column-major order, a struct a
    dict, and a struct array a list of dicts. Text, objects and function handles become None.

    Before version 7.3, a file has a header of 128 bytes, whose last two give the byte order, and
    then elements. Elements other than arrays, and an incomplete tag at the end, are ignored. Raises
    FaultError if the file is damaged or not a MATLAB file.
    """
    if data.startswith(HDF5_MAGIC) or data[512:520] == HDF5_MAGIC:
        return read_hdf5(data)
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI"):
        raise FaultError("no MATLAB header, expected a MATLAB file, version 5 to 7.3")
    order = "<" if data[126:128] == b"IM" else ">"  # the letters MI, written as a 16-bit number
    file = _Reader(memoryview(data), order, DecodedBytes(), position=128)
    variables = {}
    while len(data) - file.position >= TAG_BYTES:
        kind, body = file.read_element()
        if kind == COMPRESSED:
            kind, body = file.inflate(body)
        if kind == MATRIX and len(body):
            reader = _Reader(body, order, file.decoded_bytes)
            value = reader.read_variable(depth=0)  # and sets `name`
            variables[reader.name] = value
    return variables


class _Element(NamedTuple):
    """An element of a file: its type, such as MATRIX or a key of STORAGE, and its data."""

    kind: int
    body: memoryview


@dataclass(slots=True)
class _Reader:
    """A cursor over the bytes of a file or an element. Reading past the end raises FaultError."""

    data: memoryview
    order: str  # the byte order, "<" or ">", as struct and numpy write it
    decoded_bytes: DecodedBytes  # counts the decoded bytes of the whole file
    position: int = 0  # the index of the next element in `data`
    name: str = ""  # of the variable that was read last; "" inside a cell or struct

    def read_element(self) -> _Element:
        """Return the next element of a MATLAB 5 to 7 file, and advance past it.

        An element starts with two 32-bit words, type and size. The data follow, padded to 8 bytes
        unless compressed. If the upper half of the first word is nonzero, the element is small:
        that half is the size, and the second word holds the data (at most 4 bytes).
        """
        n_bytes = len(self.data)
        start = self.position + TAG_BYTES
        if start > n_bytes:
            raise FaultError(TOO_SHORT)
        kind, size = struct.unpack_from(self.order + "II", self.data, self.position)
        is_small = kind >> 16 != 0  # both type and size are in the first word
        if is_small:
            kind, size = kind & 0xFFFF, kind >> 16
            next_position = start
            start -= 4  # the data are the second word of the tag
            if size > 4:
                raise FaultError(f"damaged element, {EXPECTED_INTACT}")
        else:
            padding = 0 if kind == COMPRESSED else -size % 8
            next_position = start + size + padding
        if start + size > n_bytes:
            raise FaultError(TOO_SHORT)
        self.position = min(next_position, n_bytes)  # the last element may lack its padding
        return _Element(kind, self.data[start : start + size])

    def read_numbers(self) -> NDArray[Any]:
        """Read the next element as a 1-D array in its stored dtype; FaultError unless numeric."""
        kind, body = self.read_element()
        code = STORAGE.get(kind)  # a letter and the item size, such as "f8"
        if code is None or len(body) % int(code[1]):
            raise FaultError(f"damaged element, {EXPECTED_INTACT}")
        return np.frombuffer(body, self.order + code)

    def inflate(self, body: memoryview) -> _Element:
        """Decompress the data of a compressed element, and return the one element inside.

        The data begin with the tag of the element inside, its type and size, which must be right.
        """
        try:
            from zlib_ng.zlib_ng import decompressobj  # five times as fast as zlib
        except ImportError:
            from zlib import decompressobj  # type: ignore[assignment]

        tag = decompressobj().decompress(body[:1024], TAG_BYTES)  # a few bytes give the tag
        if len(tag) < TAG_BYTES:
            raise FaultError(TOO_SHORT)
        kind, size = struct.unpack(self.order + "II", tag)  # two words, in the file's byte order
        self.decoded_bytes.add(size + TAG_BYTES)  # raises for too much, before it is decompressed
        stream = decompressobj()
        raw = stream.decompress(body, size + TAG_BYTES + 1)  # one byte more, to see if it goes on
        if len(raw) != size + TAG_BYTES or not stream.eof:
            raise FaultError(f"a damaged compressed block, {EXPECTED_INTACT}")
        return _Element(kind, memoryview(raw)[TAG_BYTES:])

    def read_variable(self, depth: int) -> object:
        """Read the array, cell or struct at the current position, and set `name` to its name.

        It consists of the elements flags, dimensions, name and values. The first word of the flags
        has the array class in its lowest 8 bits, and LOGICAL and COMPLEX in the next 8. Unsupported
        classes, such as function handles, give None; their values need not be skipped, as nothing
        else follows. `depth` is the nesting level, 0 at the top. Raises FaultError for complex,
        damaged or too deeply nested variables.
        """
        # Each call reads the next element
        flag_words, dimensions = self.read_numbers(), self.read_numbers()
        self.name = bytes(self.read_element().body).decode("latin-1")
        if flag_words.size != 2 or flag_words.dtype.kind != "u" or dimensions.dtype.kind != "i":
            raise FaultError(f"a damaged array header, {EXPECTED_INTACT}")
        shape = tuple(dimensions.tolist())
        if not 2 <= len(shape) <= 8 or min(shape) < 0:
            raise FaultError(f"an array of {len(shape)} dimensions, {EXPECTED_INTACT}")
        if depth > MAX_DEPTH:
            raise FaultError(f"nested deeper than {MAX_DEPTH}, expected arrays, cells and structs")
        array_class, flags = int(flag_words[0]) & 0xFF, int(flag_words[0]) >> 8
        is_logical = bool(flags & LOGICAL)  # one of the 8 bits above the class
        value: Any = None
        is_numeric = array_class == SPARSE or array_class in CLASSES
        if flags & COMPLEX and is_numeric:
            raise FaultError(f"variable {show(self.name)!r} is complex, expected real numbers")
        if array_class in CLASSES:  # numbers; the dtype "?" is bool
            value = self.read_dense(shape, np.dtype("?" if is_logical else CLASSES[array_class]))
        elif array_class == SPARSE:
            value = self.read_sparse(shape, np.dtype("?" if is_logical else "f8"))
        elif array_class == CELL:  # whose items, like fields of a struct, are one level deeper
            value = self.read_items(math.prod(shape), depth)
        elif array_class == STRUCT:
            value = self.read_struct(math.prod(shape), depth)
        return value

    def read_dense(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Read numbers of any stored type as a column-major array of this `shape` and `dtype`."""
        check_size(shape, dtype.itemsize)
        stored = self.read_numbers()
        if stored.size != math.prod(shape):
            size = " x ".join(map(str, shape))
            raise FaultError(f"an array of {size} with {stored.size} values, {EXPECTED_INTACT}")
        if stored.dtype != dtype:
            self.decoded_bytes.add(stored.size * dtype.itemsize)
            # A damaged file may hold doubles outside the range of `dtype`, which must not warn
            with np.errstate(invalid="ignore"):
                stored = stored.astype(dtype)
        return stored.reshape(shape, order="F")

    def read_sparse(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Read a sparse matrix as a dense array of `shape`.

        It is stored by columns (CSC): the row index of each value, the index of the first value of
        each column, followed by the number of values, and the values.
        """
        from scipy.sparse import csc_array

        check_size(shape, itemsize=8)
        self.decoded_bytes.add(math.prod(shape) * 8)  # raises if the file decodes to too much
        # Each call reads the next element
        rows, starts, values = self.read_numbers(), self.read_numbers(), self.read_numbers()
        # The number of values. MATLAB may store more, as it reserves memory for further values
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
        """Return the values of `count` items of a cell or struct, at the nesting level `depth`.

        Each item is a nested variable: an element of the type MATRIX. One without data is an empty
        array (0, 0). Raises FaultError for damaged items, or too many.
        """
        # In the file, an item takes at least the bytes of a tag, which begins every element
        n_left = len(self.data) - self.position
        if count * TAG_BYTES > n_left:
            raise FaultError(f"{count} items in {n_left} bytes, {EXPECTED_INTACT}")
        # In memory, an item takes at least _ITEM_BYTES. The counter raises at the limit for a file
        self.decoded_bytes.add(count * _ITEM_BYTES)
        values: list[object] = []
        for _ in range(count):
            kind, body = self.read_element()
            if kind != MATRIX:
                raise FaultError(f"a damaged cell or struct, {EXPECTED_INTACT}")
            value: object = np.zeros((0, 0))
            if len(body):
                item_reader = _Reader(body, self.order, self.decoded_bytes)
                value = item_reader.read_variable(depth + 1)  # refuses too deep a level
            values.append(value)
        return values

    def read_struct(self, count: int, depth: int) -> object:
        """Read a struct array of `count` structs, at the nesting level `depth`.

        It is stored as the length of a field name, the field names, padded with zeros to this
        length, and the field values, struct by struct. Returns a dict if `count` is 1, otherwise a
        list of dicts; [] if there are no fields. Raises FaultError if the struct is damaged.
        """
        name_length = self.read_numbers()
        text = bytes(self.read_element().body)
        is_length = name_length.size == 1 and name_length.dtype.kind in "iu"
        # MATLAB's names have up to 63 characters and a zero
        if not is_length or not 0 < int(name_length[0]) <= 64:
            raise FaultError(f"a damaged struct, {EXPECTED_INTACT}")
        length = int(name_length[0])
        # Raises if the file decodes to too many bytes. A name counts as the memory of an object
        self.decoded_bytes.add(len(text) // length * _ITEM_BYTES)
        names = []
        for start in range(0, len(text), length):
            names.append(text[start : start + length].partition(b"\0")[0].decode("latin-1"))
        values = self.read_items(count * len(names), depth)  # of all structs, one after another
        structs = []
        for k in range(count if names else 0):
            of_struct = values[k * len(names) : (k + 1) * len(names)]
            structs.append(dict(zip(names, of_struct, strict=True)))
        return structs[0] if count == len(structs) == 1 else structs
