"""Shared by the loaders: known suffixes, image ids, and bounded reading."""

from __future__ import annotations

import os

from bsdsbench.files.bounded import (
    FaultError,
    check_size,
    listed,
    read_bytes,
    reading,
    show,
)
from bsdsbench.loaders.format_table import GROUND_TRUTH_SUFFIXES, PREDICTION_SUFFIXES


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
