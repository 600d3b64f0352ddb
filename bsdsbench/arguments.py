"""Checks of arguments to public functions: a wrong kind of value gives a one-line error."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import F8 as F8
from bsdsbench.kernels.arrays import I8 as I8
from bsdsbench.kernels.arrays import Bool as Bool
from bsdsbench.text import clip, visible

MAX_GIVEN = 10**9  # values of an array: many may be told by few bytes (np.broadcast_to)


def _refuse_mask(value: object, what: str) -> None:
    """Raise DataError for a masked array: its mask would be lost."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # its import takes 10 ms
        raise DataError(f"{what}: a masked array, expected one without a mask: fill it first")


def given_array(value: object, what: str) -> NDArray[Any]:
    """Return an array or a tensor as real numbers or bool in the byte order of this machine."""
    _refuse_mask(value, what)
    try:
        tensor: Any = value
        if hasattr(tensor, "detach"):  # of torch, on any device
            tensor = tensor.detach().cpu()
            # numpy has no bfloat16; float32 holds every half precision value
            tensor = (tensor.float() if "float16" in str(tensor.dtype) else tensor).numpy()
        array = np.asarray(tensor)
    except Exception as error:  # the conversion may raise anything
        raise DataError(f"{what}: {kind_of_value(value)}, expected an array ({error})") from None
    if array.dtype.kind not in "biuf" or array.size > MAX_GIVEN:
        expected = f"an array of at most {MAX_GIVEN} numbers"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def given_floats(value: object, what: str, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return numbers or arrays of numbers as one dtype; none is cut to a whole one."""
    _refuse_mask(value, what)
    try:
        given = np.asarray(value)
        if given.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                numbers = np.asarray(given, dtype)
        else:
            numbers = np.asarray(given, dtype)
    except (TypeError, ValueError, OverflowError):
        kind = kind_of_value(value)
        raise DataError(f"{what}: {kind}, expected {np.dtype(dtype)} numbers") from None
    if numbers.dtype.kind == "i" and given.dtype.kind == "f" and not np.array_equal(numbers, given):
        raise DataError(f"{what}: {given[numbers != given].flat[0]:g}, expected whole numbers")
    return numbers


def given_list(value: object, what: str, expected: str) -> list[Any]:
    """Return the items of any iterable but text."""
    _refuse_mask(value, what)
    items: Any = value
    with suppress(TypeError):
        if not isinstance(items, str | bytes):
            return list(items)
    raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")


def given_number(value: object, what: str, low: float, high: float, whole: bool = False) -> float:
    """Return a number in low .. high as float, or as int where it has to be whole."""
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value <= high:
        expected = f"a {'whole ' * whole}number from {low:g} to {high:g}"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return int(value) if whole else float(value)


def given_path(value: object, what: str) -> Path:
    """Return a path from text or a path object."""
    path: Any = value
    try:
        return Path(path)
    except TypeError:
        raise DataError(f"{what}: {kind_of_value(value)}, expected a path of text") from None


def given_word(value: object, what: str, words: Collection[str]) -> str:
    """Return one of the words."""
    if not isinstance(value, str) or value not in words:
        raise DataError(f"{what} {kind_of_value(value)}: expected one of {', '.join(words)}")
    return value


def kind_of_value(value: object) -> str:
    """Return a value as errors name it: its type, and itself where it is short."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str):
        return clip(visible(repr(value)), 60 if isinstance(value, str) else 40)
    return f"of type {type(value).__name__}"
