"""Validation of the arguments of public functions.

An invalid argument raises DataError with a one-line message. It begins with `what`, the name by
which the user knows the argument.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import Bools as Bools
from bsdsbench.kernels.arrays import Floats as Floats
from bsdsbench.kernels.arrays import Ints as Ints
from bsdsbench.text import did_you_mean, escape_unprintable, is_path, shorten

MAX_GIVEN = 10**9  # numbers in an array; np.broadcast_to makes huge arrays of few bytes


def _refuse_masked_array(value: object, what: str) -> None:
    """Raise DataError if `value` is a NumPy masked array, whose mask would be ignored."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # its import takes 10 ms
        raise DataError(f"{what}: a masked array, expected one without a mask: fill it first")


def check_array(value: object, what: str) -> NDArray[Any]:
    """Convert an array, a nested sequence, a tensor or a list of these to a NumPy array of numbers.

    Half-precision tensors become float32, and the byte order becomes native. The data are copied
    only if necessary. Raises DataError for a masked array, for values that are not numbers, and for
    more than MAX_GIVEN (10^9) numbers, as a view by np.broadcast_to may have. `what` is the name of
    the argument in messages.
    """
    _refuse_masked_array(value, what)
    try:
        convertible: Any = value
        if hasattr(convertible, "detach"):  # a torch tensor, on any device
            tensor = convertible.detach().cpu()
            if "float16" in str(tensor.dtype):  # numpy has no bfloat16; float32 holds both
                tensor = tensor.float()
            convertible = tensor.numpy()
        elif isinstance(value, list | tuple) and value and hasattr(value[0], "detach"):
            convertible = [check_array(tensor, what) for tensor in value]
        array = np.asarray(convertible)
    except Exception as error:  # the conversion may raise anything
        raise DataError(f"{what}: {kind_of_value(value)}, expected an array ({error})") from None
    is_numeric = array.dtype.kind in "biuf"  # bool, signed or unsigned integer, float
    if not is_numeric or array.size > MAX_GIVEN:
        limit = f"at most {MAX_GIVEN} " if array.size > MAX_GIVEN else ""
        has = kind_of_value(array if array.ndim else value)  # a list is described by its elements
        raise DataError(f"{what}: {has}, expected an array of {limit}numbers")
    # The kernels expect True to be the byte 1; in Pillow's images of one bit it is 255
    if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
        array = array.view(np.uint8) != 0
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_numbers(value: object, what: str, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Convert a number, a nested sequence of numbers or an array to an array of `dtype`.

    The data are copied only if necessary. Raises DataError for a masked array and for values that
    are not numbers.
    """
    _refuse_masked_array(value, what)
    convertible: Any = value
    if hasattr(convertible, "detach"):  # a torch tensor
        convertible = check_array(value, what)
    try:
        return np.asarray(convertible, dtype)
    except (TypeError, ValueError, OverflowError):
        kind = kind_of_value(value)
        raise DataError(f"{what}: {kind}, expected {np.dtype(dtype)} numbers") from None


def check_list(value: object, what: str, expected: str) -> list[Any]:
    """Convert an iterable to a list.

    Raises DataError if the value is text, bytes, a mapping or a masked array, or is not iterable.
    The message names the value by `what`, and says what was `expected`.
    """
    _refuse_masked_array(value, what)
    items: Any = value
    with suppress(TypeError):
        if not isinstance(items, str | bytes | Mapping):
            return list(items)
    raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")


def check_number(value: object, what: str, low: float, high: float, whole: bool = False) -> float:
    """Check that a value is a number from `low` to `high`, inclusive, and return it as a float.

    If `whole` is True, the value must be an integer and is returned as an int. Raises DataError for
    a number outside the range, NaN, a bool, or any other type.
    """
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value <= high:
        noun = "whole number" if whole else "number"
        limits = f"from {low:g} to {high:g}" if high < math.inf else f"of {low:g} or more"
        expected = f"a {noun} {limits}"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return int(value) if whole else float(value)


def given_level(value: Any) -> float:
    """Check that a value is a confidence level, and return it as a float.

    Raises DataError below 0.5, because 0.05 is the share of errors that the level 0.95 allows.
    """
    if not isinstance(value, int | float | np.number) or not 0.5 <= value < 1:
        has = f"level: {kind_of_value(value)}"
        raise DataError(f"{has}, expected a confidence from 0.5 to below 1, such as 0.95")
    return float(value)


def check_path(value: object, what: str) -> Path:
    """Convert text or a path object to a Path.

    Raises DataError for any other value, and for a path that is empty, bytes or has a NUL.
    """
    path: Any = value
    if not is_path(path):
        raise DataError(f"{what}: {kind_of_value(value)}, expected a path of text")
    return Path(path)


def check_word(value: object, what: str, words: Collection[str]) -> str:
    """Return `value` if it is one of the allowed `words`; otherwise raise DataError."""
    if not isinstance(value, str) or value not in words:
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        known = ", ".join(words)
        raise DataError(f"{what} {kind_of_value(value)}: expected one of {known}{hint}")
    return value


def kind_of_value(value: object) -> str:
    """Describe a value for an error message.

    An array is described by its dtype and shape; None, bools, numbers, strings and tuples of them
    by their Python literals, shortened if necessary; anything else by its type.
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    literals = value if isinstance(value, tuple) else (value,)
    if all(literal is None or isinstance(literal, int | float | str) for literal in literals):
        return shorten(escape_unprintable(repr(value)), 60 if isinstance(value, str) else 40)
    return f"of type {type(value).__name__}"


def suggest_one_map(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Suggest, for an error message, how to reduce an array of C maps to one.

    The axis of the maps is the last if it is shorter than the first, and otherwise the first.
    Returns () unless there are three axes, all longer than 1.

    >>> suggest_one_map((48, 64, 2))[0]
    'one of the 2 maps along axis 2: array[:, :, k]'
    """
    if len(shape) != 3 or 1 in shape:
        return ()
    axis = 2 if shape[2] < shape[0] else 0
    index = ":, :, k" if axis else "k"
    single = f"one of the {shape[axis]} maps along axis {axis}: array[{index}]"
    return single, f"of classes: numpy.argmax(array, axis={axis}), for a metric of classes"
