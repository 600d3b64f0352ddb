"""Any file to its arrays, by the table of formats."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError, check_size, listed, read_bytes, reading, show
from bsdsbench.loaders.format_table import FORMATS, GROUND_TRUTH_SUFFIXES, PREDICTION_SUFFIXES


def id_of(path: str | os.PathLike[str]) -> str:
    """The image id of a file: its name without the (known) suffix, as one printable line."""
    name = os.path.basename(path)
    stem, dot, suffix = name.rpartition(".")
    known = dot and stem and f".{suffix}".lower() in GROUND_TRUTH_SUFFIXES
    return show(stem if known else name)


__all__ = [
    "GROUND_TRUTH_SUFFIXES",
    "PREDICTION_SUFFIXES",
    "FaultError",
    "check_size",
    "id_of",
    "listed",
    "read_bytes",
    "reading",
    "show",
]


MAX_DEPTH = 8


class Budget:
    """The bytes a file may still decode to."""

    def __init__(self) -> None:
        self.left = bounded.MAX_DECODED_BYTES

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise FaultError(
                f"decodes to more than {bounded.MAX_DECODED_BYTES} bytes, expected less"
            )


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
