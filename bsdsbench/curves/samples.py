"""Labels, scores and other arrays of numbers as they are given."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import refuse_mask
from bsdsbench.files.errors import DataError, InputWarning, ShapeError

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]
Pair = tuple[F8, F8]
LabelReading = Literal["auto", "binary", "sign"]

# Integers beyond this are not all distinct as float64, so a ranking could change.
_EXACT = 2**53


def samples(labels: ArrayLike, scores: ArrayLike, reading: LabelReading) -> tuple[Bools, Bools, F8]:
    """(positive, negative, scores), each (n,); `reading` as in `pr`. Warns of a missing class."""
    y, s = numbers(labels, "labels"), numbers(scores, "scores")
    same_size(y, s, "labels", "scores")
    if s.dtype.kind in "iu" and s.size and (int(s.max()) > _EXACT or int(s.min()) < -_EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    if reading not in get_args(LabelReading):
        raise DataError(f"reading {reading!r}: expected one of {', '.join(get_args(LabelReading))}")
    if y.dtype == bool:
        reading = "binary"
    elif reading == "auto":
        other = ~np.isin(y, (-1, 0, 1))
        if other.any():
            raise DataError(
                f"labels: {np.unique(y).size} values with {y[other.argmax()]:g} among them, "
                "expected 0 and 1, -1 and 1, or -1, 0 and 1 (others: 'binary' or 'sign' by name)"
            )
        reading = "sign" if (y < 0).any() else "binary"
    positive, negative = (y != 0, y == 0) if reading == "binary" else (y > 0, y < 0)
    for word, found in (("positives", positive), ("negatives", negative)):
        if y.size and not found.any():
            warnings.warn(f"no {word} (labels read as {reading})", InputWarning, stacklevel=4)
    return positive, negative, s.astype(np.float64, copy=False)


def numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as a 1-D array of real numbers without NaN. Raises DataError otherwise."""
    refuse_mask(values, name)
    try:
        array = np.asarray(values).ravel()
    except ValueError:
        raise DataError(f"{name}: rows of different lengths, expected one array") from None
    if array.dtype.kind not in "buif":
        raise DataError(f"{name}: type {array.dtype}, expected real numbers")
    bad = np.isnan(array)
    if bad.any():
        raise DataError(
            f"{name}: {int(bad.sum())} NaN, the first at index {int(bad.argmax())}, "
            "expected numbers"
        )
    return array


def floats(values: ArrayLike, name: str) -> F8:
    """`values` as float64 (n,) without NaN or infinity. Raises DataError otherwise."""
    array = numbers(values, name).astype(np.float64)
    if not np.isfinite(array).all():
        raise DataError(f"{name}: infinite values, expected finite numbers")
    return array


def same_size(a: NDArray[Any], b: NDArray[Any], name_a: str, name_b: str) -> None:
    """Raise ShapeError unless both have as many values."""
    if a.size != b.size:
        raise ShapeError(
            f"{name_a}: {a.size} values, {name_b}: {b.size} values, expected as many of each"
        )


def shares(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str) -> Pair:
    """Two f8 (K,) of values in [0, 1]. Raises DataError, ShapeError for different lengths."""
    x, y = floats(a, name_a), floats(b, name_b)
    for array, name in ((x, name_a), (y, name_b)):
        if array.size and not (array.min() >= 0 and array.max() <= 1):
            raise DataError(
                f"{name}: values from {array.min():g} to {array.max():g}, expected 0..1"
            )
    same_size(x, y, name_a, name_b)
    return x, y


def whole_number(value: Any, name: str) -> int:
    """A number of samples, 0 or more. Raises DataError for anything else."""
    try:
        whole = int(value)
        good = whole == value and 0 <= whole <= _EXACT and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise DataError(f"{name} {value!r}: expected a whole number, 0 or more")
    return whole


def above_zero(value: float, name: str) -> float:
    """A total as float. Raises DataError unless it is finite and above 0."""
    if not 0 < value < np.inf:
        raise DataError(f"{name} {value!r}: expected a number above 0")
    return float(value)


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """`array` itself, made read-only: for arrays nobody else holds."""
    array.flags.writeable = False
    return array
