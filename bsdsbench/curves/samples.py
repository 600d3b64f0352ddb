"""Check labels, scores and other arrays of numbers that users pass."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, Bool, given_array, given_number, given_word
from bsdsbench.errors import DataError, InputWarning, Setting, ShapeError, warn

Bools = Bool
LabelReading = Literal["auto", "binary", "sign", "larger"]

# Integers beyond this are not all distinct as float64, so a ranking could change.
EXACT = 2**53


class Samples(NamedTuple):
    """Labelled scores, without the samples that are neither positive nor negative."""

    positive: Bools
    negative: Bools
    scores: F8


def samples(labels: ArrayLike, scores: ArrayLike, reading: LabelReading) -> Samples:
    """Return which samples are positive, which negative, and the scores, each (n,).

    `reading` is that of `pr`. Warns of a missing class.
    """
    y, s = _real_array(labels, "labels"), _real_array(scores, "scores")
    _check_same_size(labels=y, scores=s)
    if s.dtype.kind in "iu" and s.size and (int(s.max()) > EXACT or int(s.min()) < -EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    given_word(reading, "reading", get_args(LabelReading))
    if y.dtype == bool:
        reading = "binary"
    elif reading == "auto":
        other = ~np.isin(y, (-1, 0, 1))
        if other.any():
            values = np.unique(y)
            ways = {  # those that give both classes
                "larger": ("for the larger of two as positive", values.size == 2),
                "binary": ("for all but 0 as positive", (values == 0).any()),
                "sign": ("for those above 0 as positive", values[0] < 0 < values[-1]),
            }
            raise DataError(
                f"labels: {values.size} values with {y[other.argmax()]:g} among them, "
                "expected 0 and 1, -1 and 1, or -1, 0 and 1",
                fix=[Setting("reading", way, says) for way, (says, fits) in ways.items() if fits],
            )
        reading = "sign" if (y < 0).any() else "binary"
    if reading == "larger":
        values = np.unique(y)
        if values.size != 2:
            raise DataError(f"labels: {values.size} values, expected two, of which one is larger")
        positive, negative = y == values[1], y == values[0]
    else:
        positive, negative = (y != 0, y == 0) if reading == "binary" else (y > 0, y < 0)
    for word, of_class in (("positives", positive), ("negatives", negative)):
        if y.size and not of_class.any():
            warn(InputWarning(f"no {word} (labels read as {reading})"))
    return Samples(positive, negative, s.astype(np.float64, copy=False))


def defined(first: ArrayLike, second: ArrayLike, name: str) -> list[NDArray[Any]]:
    """Return two columns without the undefined points at their ends, and warn of those left out.

    Such a point is NaN in the first column, called `name`, and 0 in the second: 0/0 of a curve
    that was converted between the spaces.
    """
    a, b = (given_array(column, name).ravel() for column in (first, second))
    if a.size == b.size and np.isnan(a).any():
        kept = np.flatnonzero(~(np.isnan(a) & (b == 0)))
        inner = slice(kept[0], kept[-1] + 1) if kept.size else slice(0)
        if left_out := a.size - a[inner].size:
            warn(InputWarning(f"{name}: {left_out} undefined (0/0) at the end, left out"))
        a, b = a[inner], b[inner]
    return [a, b]


def whole_number(value: float, name: str) -> int:
    """Return a whole number, 0 or more; 1e4 is one. Raises DataError for others."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(given_number(value, name, 0, EXACT, whole=True))


def counts_from_rates(rates: F8, total: float) -> F8:
    """Return rates times their total, as whole numbers where only rounding made them fractions."""
    counts, whole = rates * total, np.rint(rates * total)
    return np.where(np.abs(counts - whole) <= 1e-12 * max(total, 1), whole, counts)


def _real_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as a 1-D array of real numbers. Raises DataError for NaN and other kinds."""
    array = given_array(values, name).ravel()
    bad = np.isnan(array)
    if bad.any():
        where = f"{int(bad.sum())} NaN, the first at index {int(bad.argmax())}"
        raise DataError(f"{name}: {where}, expected numbers")
    return array


def columns(kind: Literal["number", "share", "count"], **arguments: ArrayLike) -> list[F8]:
    """Return the arguments, passed by name, as float64 (K,) arrays of one length.

    All must be finite, a "share" from 0 to 1, a "count" 0 or more and not falling. Raises DataError
    for other values, ShapeError for different lengths.
    """
    arrays = []
    for name, values in arguments.items():
        array = _real_array(values, name).astype(np.float64)
        if not np.isfinite(array).all():
            raise DataError(f"{name}: infinite values, expected finite numbers")
        if kind == "share" and array.size and not (array.min() >= 0 and array.max() <= 1):
            raise DataError(
                f"{name}: values from {array.min():g} to {array.max():g}, expected 0..1"
            )
        if kind == "count" and (np.diff(array, prepend=0) < 0).any():
            raise DataError(f"{name}: expected counts, 0 or more, that do not fall along the curve")
        arrays.append(array)
    _check_same_size(**dict(zip(arguments, arrays, strict=True)))
    return arrays


def _check_same_size(**arrays: NDArray[Any]) -> None:
    """Raise ShapeError unless all have as many values."""
    if len({array.size for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name}: {array.size} values" for name, array in arrays.items())
        raise ShapeError(f"{sizes}, expected as many of each")


def above_zero(value: float, name: str) -> float:
    """Return a total as a float. Raises DataError unless it is finite and above 0."""
    if not 0 < value < np.inf:
        raise DataError(f"{name} {value!r}: expected a number above 0")
    return float(value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it; nobody else may hold it."""
    array.flags.writeable = False
    return array
