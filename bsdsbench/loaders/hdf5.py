"""Reading MATLAB 7.3 .mat files, which are HDF5, through the extra `bsdsbench[hdf5]`."""

from __future__ import annotations

import io
import math
from collections.abc import Collection
from typing import Any

import numpy as np

from bsdsbench.files import bounded
from bsdsbench.loaders.budget import MAX_DEPTH, Budget
from bsdsbench.loaders.reading import FaultError, check_size

REFERENCE_COST = 4096
CHUNK_COST = 8
SAFE_FILTERS = {"gzip", None}
CLASS, EMPTY = "MATLAB_class", "MATLAB_empty"
SKIPPED = {"char", "function_handle", "opaque", "object"}


def read_hdf5(data: bytes, names: Collection[str] | None = None) -> dict[str, Any]:
    """The variables of a MATLAB 7.3 file given as bytes; the same values as `read_mat`.

    Raises FaultError when h5py is not installed or a variable is not plain data of this file
    (external and virtual storage are never followed).
    """
    try:
        import h5py
    except ImportError:
        raise FaultError(
            "is a MATLAB 7.3 (HDF5) file, expected h5py to read it: pip install 'bsdsbench[hdf5]' "
            "(or save with -v7)"
        ) from None
    with h5py.File(io.BytesIO(data), "r") as file:
        wanted = [k for k in file if not k.startswith("#") and (names is None or k in names)]
        budget = Budget()
        return {k: _value(file, _own(file, k), budget, 0) for k in wanted}


def _own(group: Any, name: str) -> Any:
    """The object of a hard link; a soft or external link could point anywhere."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise FaultError(f"variable {bounded.show(name)!r} is a link, expected data")
    return group[name]


def _value(file: Any, item: Any, budget: Budget, depth: int) -> Any:
    import h5py

    if depth > MAX_DEPTH:
        raise FaultError(f"nested deeper than {MAX_DEPTH}, expected arrays, cells and structs")
    if isinstance(item, h5py.Group):
        return _struct(file, item, budget, depth)
    kind = item.attrs.get(CLASS, b"")
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    if kind in SKIPPED:
        return None
    if item.attrs.get(EMPTY, 0):
        return [] if kind == "cell" else np.zeros((0, 0))
    if item.external or item.is_virtual or item.compression not in SAFE_FILTERS:
        raise FaultError("keeps its data in another file or an unknown filter, expected plain data")
    if item.dtype == h5py.ref_dtype:
        return _cell(file, item, budget, depth)
    if item.dtype.kind not in "iufb":
        return None
    check_size(item.shape, item.dtype.itemsize)
    # a chunk is decoded whole, beside the array and in a buffer that doubles as it grows
    check_size(item.chunks or (), CHUNK_COST * item.dtype.itemsize)
    budget.spend(math.prod(item.shape) * item.dtype.itemsize)
    # MATLAB writes column by column: the axes come reversed
    array = np.asarray(item[()]).T
    wanted = np.dtype(np.bool_) if kind == "logical" else array.dtype.newbyteorder("=")
    return array.astype(wanted, copy=False)


def _cell(file: Any, item: Any, budget: Budget, depth: int) -> list[Any]:
    check_size(item.shape, 8)
    # references may lead round in a circle: every one followed is paid for
    budget.spend(math.prod(item.shape) * REFERENCE_COST)
    # reversed axes in C order are MATLAB's column order
    return [_value(file, file[ref], budget, depth + 1) for ref in item[()].ravel()]


def _struct(file: Any, group: Any, budget: Budget, depth: int) -> Any:
    if group.attrs.get(CLASS, b"struct") not in (b"struct", "struct"):
        return None
    fields = {k: _value(file, _own(group, k), budget, depth + 1) for k in group}
    # a struct array is a group of cells without the class "cell"
    rows = {
        len(v) for k, v in fields.items() if isinstance(v, list) and CLASS not in group[k].attrs
    }
    if fields and len(rows) == 1 and all(isinstance(v, list) for v in fields.values()):
        return [{k: v[i] for k, v in fields.items()} for i in range(rows.pop())]
    return fields
