"""Reading HDF5 and MATLAB 7.3 .mat files, which are HDF5, through the extra `bsdsbench[hdf5]`."""

from __future__ import annotations

import io
import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from bsdsbench import io as bounded
from bsdsbench.io import Budget, FaultError, PathLike, ReadBytes, check_size, read_bytes, reading
from bsdsbench.loaders.formats.pictures import MAX_DEPTH
from bsdsbench.text import show

if TYPE_CHECKING:
    import h5py

_ITEM_COST = 1 << 15  # bytes charged per item of a cell or struct, because items may form circles
CHUNK_COST = 8
MAX_CHUNKS = 100_000
DEFLATE, SHUFFLE = 1, 2  # HDF5's numbers of the filters that are accepted
MATLAB_HEADER = b"MATLAB 7.3 MAT-file"
CLASS, EMPTY = "MATLAB_class", "MATLAB_empty"
SKIPPED = {"char", "function_handle", "opaque", "object"}


def _attribute(item: h5py.Dataset | h5py.Group, name: str) -> object:
    """Return an attribute of an item, bytes as text, or "" if it is absent."""
    value = item.attrs.get(name, "")
    return value.decode("latin-1") if isinstance(value, bytes) else value


def read_hdf5(data: bytes) -> dict[str, object]:
    """Return the variables in the bytes of an HDF5 file, of MATLAB's files as `read_mat` does.

    MATLAB writes column by column, so that the axes of its arrays are reversed in the file. Its
    files begin with a header, and each of its arrays has an attribute. Other arrays are returned
    unchanged. External and virtual storage are never followed. Raises FaultError.
    """
    try:
        import h5py
    except ImportError:
        raise FaultError(
            "is a MATLAB 7.3 (HDF5) file, expected h5py to read it: pip install 'bsdsbench[hdf5]' "
            "(or save with -v7)"
        ) from None
    budget = Budget()
    has_reversed_axes = data.startswith(MATLAB_HEADER)

    def linked(group: h5py.Group, name: str) -> h5py.Dataset | h5py.Group:
        """Return the target of a hard link. Raises FaultError for other links."""
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise FaultError(f"variable {show(name)!r} is a link, expected data")
        return group[name]

    def struct(group: h5py.Group, depth: int) -> object:
        """Return a struct as a dict, a struct array as a list of dicts, or an object as None."""
        if _attribute(group, CLASS) not in ("", "struct"):
            return None
        budget.spend(len(group) * _ITEM_COST)
        fields = {k: value(linked(group, k), depth + 1) for k in group}
        # a struct array is a group of cells without the class "cell"
        lists = [
            v for k, v in fields.items() if isinstance(v, list) and CLASS not in group[k].attrs
        ]
        if not fields or len(lists) < len(fields) or len(set(map(len, lists))) > 1:
            return fields
        return [dict(zip(fields, row, strict=True)) for row in zip(*lists, strict=True)]

    def value(item: h5py.Dataset | h5py.Group, depth: int) -> object:
        """Return a data set or a group as `read_mat` returns the value."""
        if depth > MAX_DEPTH:
            raise FaultError(f"nested deeper than {MAX_DEPTH}, expected arrays, cells and structs")
        if isinstance(item, h5py.Group):
            return struct(item, depth)
        kind = str(_attribute(item, CLASS))
        if kind in SKIPPED:
            return None
        if _attribute(item, EMPTY):
            return [] if kind == "cell" else np.zeros((0, 0))
        if item.external or item.is_virtual:
            raise FaultError("keeps its data in another file, expected plain data")
        _check_chunks(item)
        # the dtype of text is equal to that of references
        is_cell = h5py.check_ref_dtype(item.dtype) is h5py.Reference
        if not is_cell and item.dtype.kind not in "iufb":
            return None
        check_size(item.shape, item.dtype.itemsize)
        budget.spend(math.prod(item.shape) * (_ITEM_COST if is_cell else item.dtype.itemsize))
        array = np.asarray(item[()])
        if is_cell:  # reversed axes in C order are MATLAB's column order
            return [value(file[ref], depth + 1) for ref in array.ravel()]
        array = array.T if has_reversed_axes or CLASS in item.attrs else array
        target = np.dtype("?") if kind == "logical" else array.dtype.newbyteorder("=")
        return array.astype(target, copy=False)

    with h5py.File(io.BytesIO(data), "r") as file:
        budget.spend(len(file) * _ITEM_COST)
        return {k: value(linked(file, k), 0) for k in file if not k.startswith("#")}


def _check_chunks(item: h5py.Dataset) -> None:
    """Raise FaultError if a compressed chunk does not decode to its declared size."""
    plan = item.id.get_create_plist()
    filters = [plan.get_filter(k)[0] for k in range(plan.get_nfilters())]
    if filters not in ([], [DEFLATE], [SHUFFLE, DEFLATE]):
        raise FaultError("is compressed by an unknown filter, expected gzip or none")
    if not item.chunks:
        return
    # a chunk is decoded whole, beside the array and in a buffer that doubles as it grows
    check_size(item.chunks, CHUNK_COST * item.dtype.itemsize)
    size = math.prod(item.chunks) * item.dtype.itemsize
    count = item.id.get_num_chunks()
    if count > MAX_CHUNKS or count * size > 2 * bounded.MAX_DECODED_BYTES:
        raise FaultError(f"has {count} chunks of {size} bytes, expected fewer")
    for k in range(count if filters else 0):
        offset = item.id.get_chunk_info(k).chunk_offset
        skipped_filters, raw = item.id.read_direct_chunk(offset)
        if not skipped_filters and len(zlib.decompressobj().decompress(raw, size + 1)) != size:
            raise FaultError(f"has a chunk that is not of {size} bytes, expected a sound file")


def read_h5(path: PathLike, read: ReadBytes = read_bytes) -> dict[str, object]:
    """Return the arrays of a .h5 file by name. Raises FileFormatError."""
    data = read(path)
    with reading(path, "an HDF5 file"):
        return {k: v for k, v in read_hdf5(data).items() if isinstance(v, np.ndarray)}
