"""Checks of arguments to public functions. A wrong kind of value gives a one-line error."""

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

MAX_GIVEN = 10**9  # values of an array; np.broadcast_to makes huge arrays of few bytes


def _refuse_mask(value: object, what: str) -> None:
    """Raise DataError for a masked array, whose mask would be lost."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # its import takes 10 ms
        raise DataError(f"{what}: a masked array, expected one without a mask: fill it first")


def given_array(value: object, what: str) -> NDArray[Any]:
    """Convert an array or a tensor to real numbers or bool in the byte order of this machine.

    `what` is the name of the array in errors. Raises DataError if the value is no such array.
    """
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


def as_numbers(value: object, what: str, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Convert a value to an array of `dtype`. Fractions are never truncated.

    `what` is the name of the value in errors. Raises DataError for a value that is not numeric or,
    with an integer dtype, not whole.
    """
    if type(value) is np.ndarray and value.dtype == dtype:  # as nearly always
        return value
    _refuse_mask(value, what)
    try:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                numbers = np.asarray(array, dtype)
        else:
            numbers = np.asarray(array, dtype)
    except (TypeError, ValueError, OverflowError):
        kind = kind_of_value(value)
        raise DataError(f"{what}: {kind}, expected {np.dtype(dtype)} numbers") from None
    if (
        numbers.dtype.kind in "iu"
        and array.dtype.kind == "f"
        and not np.array_equal(numbers, array)
    ):
        raise DataError(f"{what}: {array[numbers != array].flat[0]:g}, expected whole numbers")
    return numbers


def given_list(value: object, what: str, expected: str) -> list[Any]:
    """Return the items of any iterable but text. Raises DataError for text and other values."""
    _refuse_mask(value, what)
    items: Any = value
    with suppress(TypeError):
        if not isinstance(items, str | bytes):
            return list(items)
    raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")


def given_number(value: object, what: str, low: float, high: float, whole: bool = False) -> float:
    """Check that a number lies in low .. high; return a float, or with `whole` an int."""
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value <= high:
        expected = f"a {'whole ' * whole}number from {low:g} to {high:g}"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return int(value) if whole else float(value)


def given_path(value: object, what: str) -> Path:
    """Convert text or a path object to a Path. Raises DataError for other values."""
    path: Any = value
    try:
        return Path(path)
    except TypeError:
        raise DataError(f"{what}: {kind_of_value(value)}, expected a path of text") from None


def given_word(value: object, what: str, words: Collection[str]) -> str:
    """Check that a value is one of the allowed words. Raises DataError otherwise."""
    if not isinstance(value, str) or value not in words:
        raise DataError(f"{what} {kind_of_value(value)}: expected one of {', '.join(words)}")
    return value


def kind_of_value(value: object) -> str:
    """Describe a value for an error message: its type or, if it is short, the value."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str):
        return clip(visible(repr(value)), 60 if isinstance(value, str) else 40)
    return f"of type {type(value).__name__}"
