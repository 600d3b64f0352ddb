"""Reading HDF5 files, including MATLAB 7.3 .mat files; needs the extra `bsdsbench[hdf5]`."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsdsbench import io as bounded
from bsdsbench.io import DecodedBytes, FaultError, check_size
from bsdsbench.loaders.formats.pictures import MAX_DEPTH
from bsdsbench.text import show

if TYPE_CHECKING:
    import h5py

# Bytes counted as decoded for every item of a cell or struct, so that reading ends even if items
# refer to each other in a circle
_ITEM_BYTES = 1 << 15
CHUNK_COST = 8  # while a chunk is decoded, all buffers together take this many times its size
MAX_CHUNKS = 100_000
DEFLATE, SHUFFLE = 1, 2  # HDF5's numbers of the accepted filters
MATLAB_HEADER = b"MATLAB 7.3 MAT-file"
CLASS, EMPTY = "MATLAB_class", "MATLAB_empty"  # names of the attributes that MATLAB sets
SKIPPED = {"char", "function_handle", "opaque", "object"}  # classes that are read as None


def _read_attribute(item: h5py.Dataset | h5py.Group, name: str) -> object:
    """Return an attribute of an item, with bytes decoded to text; "" if it is absent."""
    value = item.attrs.get(name, "")
    return value.decode("latin-1") if isinstance(value, bytes) else value


def read_hdf5(data: bytes) -> dict[str, object]:
    """Decode an HDF5 file, and return its variables by name.

    In a MATLAB 7.3 file, which is HDF5 too, cells become lists, structs dicts, and the axes of
    arrays, which MATLAB stores reversed, are put right. Arrays that other programs wrote keep their
    axes. Internal variables ("#...") are left out. Raises FaultError if h5py is not installed.
    """
    try:
        import h5py
    except ImportError:
        raise FaultError(
            "is a MATLAB 7.3 (HDF5) file, expected h5py to read it: pip install 'bsdsbench[hdf5]' "
            "(or save with -v7)"
        ) from None
    try:  # given a Python file object, HDF5 crashes at exit if the file could not be opened
        file_id = h5py.h5f.open_file_image(data)
    except (OSError, ValueError):
        raise FaultError("is damaged or cut short, expected a whole HDF5 file") from None
    with h5py.File(file_id) as file:
        is_matlab = data.startswith(MATLAB_HEADER)
        converter = _Converter(file, has_reversed_axes=is_matlab, decoded_bytes=DecodedBytes())
        return converter.convert_items(file, depth=0)


@dataclass
class _Converter:
    """Converts the items of an HDF5 file to arrays, lists and dicts."""

    file: h5py.File  # open; references are looked up in it
    # True for files with MATLAB's header. MATLAB stores arrays column by column, which reverses
    # their axes. In other files only arrays with the attribute MATLAB_class have reversed axes.
    has_reversed_axes: bool
    decoded_bytes: DecodedBytes

    def convert_items(self, group: h5py.Group, depth: int) -> dict[str, object]:
        """Convert the items of a group, at this nesting level, to a dict by name."""
        import h5py

        self.decoded_bytes.add(len(group) * _ITEM_BYTES)  # raises if there are too many items
        items: dict[str, object] = {}
        for name in group:
            if depth == 0 and name.startswith("#"):  # MATLAB's internal data, such as "#refs#"
                continue
            # A soft or external link may lead to another place or file
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise FaultError(f"variable {show(name)!r} is a link, expected data")
            items[name] = self.convert(group[name], depth)
        return items

    def convert_group(self, group: h5py.Group, depth: int) -> object:
        """Convert a struct to a dict, a struct array to a list of dicts, and other groups to None.

        A struct array is stored as one list of values per field. A struct with fields that are
        cells looks alike, but a cell has the attribute MATLAB_class, and such a list has not.
        """
        if _read_attribute(group, CLASS) not in ("", "struct"):
            return None
        fields = self.convert_items(group, depth + 1)
        lists: list[list[object]] = []  # the fields that may belong to a struct array
        for name, value in fields.items():
            if isinstance(value, list) and CLASS not in group[name].attrs:
                lists.append(value)
        if len(lists) < len(fields) or len(set(map(len, lists))) != 1:  # a single struct
            return fields
        # Struct k has value k of each list
        return [dict(zip(fields, values, strict=True)) for values in zip(*lists, strict=True)]

    def convert(self, item: h5py.Dataset | h5py.Group, depth: int) -> object:
        """Convert a group or a data set of an HDF5 file, at the nesting level `depth`.

        Groups go to `convert_group`. Cells become lists, and numeric data sets arrays. Text,
        function handles and objects become None. If MATLAB marks an item as empty, a cell becomes
        [], and any other item an array of shape (0, 0). Raises FaultError if `depth` exceeds
        MAX_DEPTH, or if the data are in another file or unsafe to read.
        """
        import h5py

        if depth > MAX_DEPTH:
            raise FaultError(f"nested deeper than {MAX_DEPTH}, expected arrays, cells and structs")
        if isinstance(item, h5py.Group):
            return self.convert_group(item, depth)
        kind = str(_read_attribute(item, CLASS))
        if kind in SKIPPED:
            return None
        if _read_attribute(item, EMPTY):
            return [] if kind == "cell" else np.zeros((0, 0))
        if item.external or item.is_virtual:
            raise FaultError("keeps its data in another file, expected plain data")
        _check_chunks(item)
        # Comparing dtypes is not enough: the dtype of text equals that of references
        is_cell = h5py.check_ref_dtype(item.dtype) is h5py.Reference
        if not is_cell and item.dtype.kind not in "iufb":
            return None
        check_size(item.shape, item.dtype.itemsize)
        n_bytes = _ITEM_BYTES if is_cell else item.dtype.itemsize  # in memory, of each entry
        self.decoded_bytes.add(math.prod(item.shape) * n_bytes)  # raises if they are too many
        array = np.asarray(item[()])
        if array.dtype == bool:  # a damaged file may have other bytes than 0 and 1
            array = array.view(np.uint8) != 0
        if is_cell:  # references to its items, stored in MATLAB's order
            return [self.convert(self.file[ref], depth + 1) for ref in array.ravel()]
        # MATLAB stores the axes reversed; in other files, its attribute marks the arrays it wrote
        if self.has_reversed_axes or CLASS in item.attrs:
            array = array.T
        target = np.dtype("?") if kind == "logical" else array.dtype.newbyteorder("=")
        return array.astype(target, copy=False)


def _check_chunks(item: h5py.Dataset) -> None:
    """Raise FaultError if a data set in an HDF5 file is unsafe to read.

    Only unfiltered data, or gzip with or without shuffle, is accepted. The size and the number of
    chunks are limited, and each compressed chunk is decoded once to check that its size is right.
    """
    properties = item.id.get_create_plist()
    filters = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]  # their ids
    if filters not in ([], [DEFLATE], [SHUFFLE, DEFLATE]):
        raise FaultError("is compressed by an unknown filter, expected gzip or none")
    if not item.chunks:  # stored as one block
        return
    # HDF5 decodes a whole chunk into a buffer that grows by doubling, beside the array
    check_size(item.chunks, CHUNK_COST * item.dtype.itemsize)
    size = math.prod(item.chunks) * item.dtype.itemsize
    count = item.id.get_num_chunks()
    # Twice the limit of arrays, because chunks at the border reach beyond the array
    if count > MAX_CHUNKS or count * size > 2 * bounded.MAX_DECODED_BYTES:
        raise FaultError(f"has {count} chunks of {size} bytes, expected fewer")
    if not filters:
        return
    for k in range(count):
        offset = item.id.get_chunk_info(k).chunk_offset
        skipped_filters, raw = item.id.read_direct_chunk(offset)
        if skipped_filters:  # a bit mask; stored without compression, so it cannot expand
            continue
        # One byte more, to see if the chunk goes on. Shuffling does not change the size
        if len(zlib.decompressobj().decompress(raw, size + 1)) != size:
            raise FaultError(f"has a chunk that is not of {size} bytes, expected a sound file")
