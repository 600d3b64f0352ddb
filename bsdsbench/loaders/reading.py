"""What loaders share: the suffixes they know, image ids, and the bounded reading of core."""

from __future__ import annotations

import os

from bsdsbench.core.bounded import (
    FaultError,
    check_size,
    listed,
    read_bytes,
    reading,
    show,
)

IMAGE_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
ARRAY_SUFFIXES = (".npy", ".npz")
PREDICTION_SUFFIXES = (*IMAGE_SUFFIXES, *ARRAY_SUFFIXES, ".mat")
GROUND_TRUTH_SUFFIXES = (*PREDICTION_SUFFIXES, ".seg")


def id_of(path: str | os.PathLike[str]) -> str:
    """The image id of a file: its name without the (known) suffix, as one printable line."""
    name = os.path.basename(path)
    stem, dot, suffix = name.rpartition(".")
    known = dot and stem and f".{suffix}".lower() in GROUND_TRUTH_SUFFIXES
    return show(stem if known else name)


__all__ = [
    "ARRAY_SUFFIXES",
    "GROUND_TRUTH_SUFFIXES",
    "IMAGE_SUFFIXES",
    "PREDICTION_SUFFIXES",
    "FaultError",
    "check_size",
    "id_of",
    "listed",
    "read_bytes",
    "reading",
    "show",
]
