"""The table of file formats: suffix -> reader of its arrays. A new format is a line here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from bsdsbench.loaders.arrays import read_npy, read_npz
from bsdsbench.loaders.images import read_image
from bsdsbench.loaders.matlab import read_mat
from bsdsbench.loaders.reading import IMAGE_SUFFIXES, FaultError, reading
from bsdsbench.loaders.segtext import read_seg

# A reader takes (path, indices) and gives name -> array; a picture or plain array has the name "".
Reader = Callable[[Any, bool], dict[str, Any]]
READERS: dict[str, Reader] = {
    **{suffix: lambda path, indices: {"": read_image(path, indices)} for suffix in IMAGE_SUFFIXES},
    ".npy": lambda path, indices: {"": read_npy(path)},
    ".npz": lambda path, indices: read_npz(path),
    ".mat": lambda path, indices: read_mat(path),
    ".seg": lambda path, indices: {"": read_seg(path)},
}


def read_arrays(
    path: str | os.PathLike[str], indices: bool = False, what: str = "arrays"
) -> dict[str, Any]:
    """Name -> array of everything in a file of any format.

    indices : a palette picture gives its indices, not its colours
    what    : what was expected, for the error. Raises FileFormatError, one line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in READERS:
        with reading(path, what):
            known = ", ".join(READERS)
            raise FaultError(f"suffix {suffix or 'missing'}, expected one of {known}")
    return READERS[suffix](path, indices)
