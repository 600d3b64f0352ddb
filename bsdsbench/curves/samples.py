"""Input checks: labels and scores (n,), and small helpers for arrays of numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import refuse_mask
from bsdsbench.files.errors import DataError, InputWarning, ShapeError

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]
Pair = tuple[F8, F8]

# Integers beyond this are not all distinct as float64, so a ranking could change.
_EXACT = 2**53
NO_NEGATIVES = (
    "labels: zeros and no negative one: 0 is ignored, as in VLFeat, so there are no negatives; "
    "labels of 0 and 1 are given as labels == 1"
)


def check_samples(
    labels: ArrayLike, scores: ArrayLike, *, small_integers: bool = False
) -> tuple[Bools, Bools, NDArray[Any]]:
    """(positive, negative, scores), each 1-D and of one length n, from any two arrays of one size.

    The sign of a label decides: > 0 positive, < 0 negative, 0 neither. True and False, which have
    no sign, are positive and negative. Zeros without a negative label, which mean something else in
    most programs, are an InputWarning. Scores come back as float32 or float64, never rounded; with
    small_integers, those of 8 and 16 bits as they are.
    Raises ShapeError for different lengths, DataError for NaN or for values that are not numbers.
    """
    y, s = numbers(labels, "labels"), numbers(scores, "scores")
    same_size(y, s, "labels", "scores")
    if s.dtype.kind != "f" and not (small_integers and s.dtype.itemsize <= 2):
        s = _as_float(s)
    if y.dtype == bool:
        return y, ~y, s
    positive, negative = y > 0, y < 0
    if y.size and not negative.any() and positive.any() and not positive.all():
        warnings.warn(NO_NEGATIVES, InputWarning, stacklevel=4)
    return positive, negative, s


def numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as a 1-D array of real numbers without NaN. Raises DataError otherwise."""
    refuse_mask(values, name)
    try:
        array = np.asarray(values).ravel()
    except ValueError:
        raise DataError(f"{name}: rows of different lengths, expected one array") from None
    if array.dtype.kind not in "buif":
        raise DataError(f"{name}: type {array.dtype}, expected real numbers")
    if array.dtype.kind == "f":
        bad = np.isnan(array)
        if bad.any():
            raise DataError(
                f"{name}: {int(bad.sum())} NaN, the first at index {int(bad.argmax())}, "
                "expected numbers"
            )
        if array.dtype.itemsize not in (4, 8):
            return array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64)
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


def shares(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, *, undefined: str = "") -> Pair:
    """Two f8 (K,) of values in [0, 1]; NaN, an undefined value, only in the array `undefined`.

    Raises DataError for other values, ShapeError for different lengths.
    """
    out = []
    for values, name in ((a, name_a), (b, name_b)):
        if name == undefined:
            array = np.asarray(values, np.float64).ravel()
            known = array[~np.isnan(array)]
        else:
            known = array = floats(values, name)
        if known.size and not (known.min() >= 0 and known.max() <= 1):
            raise DataError(
                f"{name}: values from {known.min():g} to {known.max():g}, expected 0..1"
            )
        out.append(array)
    same_size(out[0], out[1], name_a, name_b)
    return out[0], out[1]


def total(value: Any, name: str, default: int | None = None) -> int:
    """A whole number of samples, the default for None. Raises DataError for anything else."""
    if value is None and default is not None:
        return default
    try:
        whole = int(value)
        good = whole == value and 0 <= whole <= _EXACT and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise DataError(f"{name} {value!r}: expected a whole number, 0 or more")
    return whole


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """`array` itself, made read-only: for arrays nobody else holds."""
    array.flags.writeable = False
    return array


def _as_float(s: NDArray[Any]) -> NDArray[Any]:
    if s.dtype.itemsize <= 2:
        return s.astype(np.float32)
    if s.size and s.dtype.itemsize == 8 and (int(s.max()) > _EXACT or int(s.min()) < -_EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    return s.astype(np.float64)
