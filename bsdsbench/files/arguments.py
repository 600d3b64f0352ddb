"""Checks of arguments to public functions: a wrong kind of value gives a one-line error."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, clip, visible

MAX_GIVEN = 10**9  # values of an array: many may be told by few bytes (np.broadcast_to)


def refuse_mask(value: Any, what: str) -> None:
    """Raise DataError for a masked array: its mask would be lost."""
    if isinstance(value, np.ma.MaskedArray):
        raise DataError(f"{what}: a masked array, expected one without a mask: fill it first")


def given_array(value: Any, what: str) -> NDArray[Any]:
    """An array of real numbers or bool, in the byte order of this machine."""
    refuse_mask(value, what)
    try:
        array = np.asarray(value)
    except Exception as error:  # the conversion may raise anything
        raise DataError(f"{what}: {kind_of_value(value)}, expected an array ({error})") from None
    if array.dtype.kind not in "biuf" or array.size > MAX_GIVEN:
        expected = f"an array of at most {MAX_GIVEN} numbers"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def to_numpy(value: Any) -> NDArray[Any]:
    """A numpy array from an array or a torch tensor on any device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # numpy has no bfloat16; float32 holds every half precision value.
        if "float16" in str(value.dtype):
            value = value.float()
        value = value.numpy()
    return given_array(value, "array")


def given_list(value: Any, what: str, expected: str) -> list[Any]:
    """The items of any iterable but text."""
    refuse_mask(value, what)
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return list(value)
    except TypeError:
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}") from None


def given_number(value: Any, what: str, low: float, high: float) -> float:
    """A number in low .. high."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or not low <= value <= high:
        raise DataError(
            f"{what}: {kind_of_value(value)}, expected a number from {low:g} to {high:g}"
        )
    return float(value)


def given_share(value: Any, what: str) -> float:
    """A number above 0 and below 1."""
    share = given_number(value, what, 0, 1)
    if not 0 < share < 1:
        raise DataError(f"{what} {value}: expected a share in (0, 1)")
    return share


def given_whole(value: Any, what: str, low: int, high: int | None = None) -> int:
    """A whole number of at least `low` and at most `high`, if there is one."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not good or value < low or (high is not None and value > high):
        limits = f", {low} or more" if high is None else f" from {low} to {high}"
        raise DataError(f"{what}: {kind_of_value(value)}, expected a whole number{limits}")
    return int(value)


def given_path(value: Any, what: str) -> Path:
    """A path from text or a path object."""
    try:
        return Path(value)
    except TypeError:
        raise DataError(f"{what}: {kind_of_value(value)}, expected a path of text") from None


def given_paths(value: Any, what: str) -> list[Path]:
    """One path or several."""
    if isinstance(value, str | os.PathLike):
        return [given_path(value, what)]
    return [given_path(each, what) for each in given_list(value, what, "a path or several")]


def given_word(value: Any, what: str, words: Collection[str]) -> str:
    """One of the words."""
    if not isinstance(value, str) or value not in words:
        raise DataError(f"{what} {kind_of_value(value)}: expected one of {', '.join(words)}")
    return value


def given_floats(value: Any, what: str, dtype: Any = np.float64) -> NDArray[Any]:
    """Numbers or arrays of numbers as one dtype; none is cut to a whole one."""
    refuse_mask(value, what)
    try:
        given = np.asarray(value)
        if np.dtype(dtype).kind != "i" or given.dtype.kind != "f":
            return np.asarray(given, dtype)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"{what}: {kind_of_value(value)}, expected {np.dtype(dtype)} numbers"
        ) from None
    whole = (given == np.rint(given)) & (np.abs(given) < 2.0**63)
    if not whole.all():
        raise DataError(f"{what}: {given[~whole].flat[0]:g}, expected whole numbers")
    return given.astype(dtype)


def kind_of_value(value: Any) -> str:
    """A value as errors name it: its type, and itself where it is short."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool | int | float):
        return clip(repr(value), 40)
    if isinstance(value, str):
        return clip(visible(repr(value)), 60)
    return f"of type {type(value).__name__}"
