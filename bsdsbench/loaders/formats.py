"""Any file to its arrays, by the table of formats."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from bsdsbench.loaders.format_table import FORMATS
from bsdsbench.loaders.reading import FaultError, reading


def read_arrays(
    path: str | os.PathLike[str], indices: bool = False, what: str = "arrays"
) -> dict[str, Any]:
    """Name -> array of everything in a file of any format.

    indices : a palette picture gives its indices, not its colours
    what    : what was expected, for the error. Raises FileFormatError, one line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        with reading(path, what):
            known = ", ".join(FORMATS)
            raise FaultError(f"suffix {suffix or 'missing'}, expected one of {known}")
    module, _, function = FORMATS[suffix].reader.partition(":")
    found: dict[str, Any] = getattr(import_module(f"bsdsbench.loaders.{module}"), function)(
        path, indices
    )
    return found
