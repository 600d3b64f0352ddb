"""Checks of arguments to public functions: a wrong kind of value gives a one-line error."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import F8 as F8
from bsdsbench.kernels.arrays import I8 as I8
from bsdsbench.kernels.arrays import Bool as Bool
from bsdsbench.text import clip, visible

MAX_GIVEN = 10**9  # values of an array: many may be told by few bytes (np.broadcast_to)


def refuse_mask(value: Any, what: str) -> None:
    """Raise DataError for a masked array: its mask would be lost."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # its import takes 10 ms
        raise DataError(f"{what}: a masked array, expected one without a mask: fill it first")


def given_array(value: Any, what: str) -> NDArray[Any]:
    """An array of real numbers or bool in the byte order of this machine, of an array or tensor."""
    refuse_mask(value, what)
    try:
        if hasattr(value, "detach"):  # of torch, on any device
            value = value.detach().cpu()
            # numpy has no bfloat16; float32 holds every half precision value
            value = (value.float() if "float16" in str(value.dtype) else value).numpy()
        array = np.asarray(value)
    except Exception as error:  # the conversion may raise anything
        raise DataError(f"{what}: {kind_of_value(value)}, expected an array ({error})") from None
    if array.dtype.kind not in "biuf" or array.size > MAX_GIVEN:
        expected = f"an array of at most {MAX_GIVEN} numbers"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def given_floats(value: Any, what: str, dtype: Any = np.float64) -> NDArray[Any]:
    """Numbers or arrays of numbers as one dtype; none is cut to a whole one."""
    refuse_mask(value, what)
    try:
        given = np.asarray(value)
        with np.errstate(invalid="ignore"):
            found = np.asarray(given, dtype)
    except (TypeError, ValueError, OverflowError):
        kind = kind_of_value(value)
        raise DataError(f"{what}: {kind}, expected {np.dtype(dtype)} numbers") from None
    if found.dtype.kind == "i" and given.dtype.kind == "f" and not np.array_equal(found, given):
        raise DataError(f"{what}: {given[found != given].flat[0]:g}, expected whole numbers")
    return found


def given_list(value: Any, what: str, expected: str) -> list[Any]:
    """The items of any iterable but text."""
    refuse_mask(value, what)
    try:
        if not isinstance(value, str | bytes):
            return list(value)
    except TypeError:
        pass
    raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")


def given_number(value: Any, what: str, low: float, high: float, whole: bool = False) -> Any:
    """A number in low .. high as float, or as int where it has to be whole."""
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value <= high:
        expected = f"a {'whole ' * whole}number from {low:g} to {high:g}"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return int(value) if whole else float(value)


def given_path(value: Any, what: str) -> Path:
    """A path from text or a path object."""
    try:
        return Path(value)
    except TypeError:
        raise DataError(f"{what}: {kind_of_value(value)}, expected a path of text") from None


def given_word(value: Any, what: str, words: Collection[str]) -> str:
    """One of the words."""
    if not isinstance(value, str) or value not in words:
        raise DataError(f"{what} {kind_of_value(value)}: expected one of {', '.join(words)}")
    return value


def kind_of_value(value: Any) -> str:
    """A value as errors name it: its type, and itself where it is short."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str):
        return clip(visible(repr(value)), 60 if isinstance(value, str) else 40)
    return f"of type {type(value).__name__}"
