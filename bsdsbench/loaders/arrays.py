"""What the arrays of a file are as maps of an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError, listed, show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import whole_labels

Map = NDArray[Any]


def maps_of(found: dict[str, Any]) -> dict[str, Any]:
    """What of a file can be a picture: what is alone, and numeric arrays that are no row."""
    return {
        name: value
        for name, value in found.items()
        if len(found) == 1
        or (is_numeric(value) and (value.ndim > 2 or (value.ndim == 2 and min(value.shape) != 1)))
    }


def is_numeric(value: Any) -> TypeGuard[Map]:
    """True for an array of real numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def plane(array: Any, what: str) -> Map:
    """An array of numbers as (H, W), axes of length 1 dropped where there are more than two."""
    if not is_numeric(array):
        raise FaultError(f"{what} is not a numeric array, expected (H, W)")
    if array.ndim > 2:
        array = array.reshape([n for n in array.shape if n != 1] or [1, 1])
    if array.ndim != 2 or not array.size:
        raise FaultError(f"{what} of shape {array.shape}, expected (H, W)")
    return array


def check_maps(maps: Sequence[Map], what: str) -> None:
    """Raise FaultError unless maps of an image have one size, and MAX_DECODED_BYTES in all."""
    total, most = sum(m.nbytes for m in maps), bounded.MAX_DECODED_BYTES
    if total > most:
        raise FaultError(f"maps of {total} bytes in all, expected at most {most}")
    if len({m.shape for m in maps}) > 1:
        sizes = listed([f"{h} x {w}" for h, w in dict.fromkeys(m.shape for m in maps)])
        raise FaultError(f"{what} of sizes {sizes} (rows x columns), expected one size")


def label_map(array: Any) -> Map:
    """(H, W) labels with the values of the file: int32, or wider integers where they need it."""
    labels = whole_labels(plane(array, "a label map"), "label map")
    small = labels.min() >= -(2**31) and labels.max() < 2**31
    return labels.astype(np.int32, copy=False) if small else labels


def only_array(found: dict[str, Any], path: Path) -> Map:
    """The array of a file that holds just one. Raises DataError."""
    arrays = [a for a in found.values() if isinstance(a, np.ndarray)]
    if len(arrays) != 1:
        raise DataError(f"{show(path)}: {len(arrays)} arrays, expected one")
    return arrays[0]
