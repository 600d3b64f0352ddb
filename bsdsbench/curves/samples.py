"""Checks of labels, scores and other arrays of numbers that users pass to curves."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, Bool, given_array, given_number, given_word
from bsdsbench.errors import DataError, InputWarning, Setting, ShapeError, warn

Bools = Bool
LabelReading = Literal["auto", "binary", "sign", "larger"]

# Larger integers are not all distinct as float64, so that a ranking could change
EXACT = 2**53


class Samples(NamedTuple):
    """Labelled scores, without the samples that are neither positive nor negative."""

    positive: Bools
    negative: Bools
    scores: F8


def samples(labels: ArrayLike, scores: ArrayLike, reading: LabelReading) -> Samples:
    """Return masks of the positives and the negatives, and the scores as float64, each (n,).

    `reading` tells which labels are positive: "binary" all but 0; "sign" those above 0, while 0 is
    neither; "larger" the larger of two values; "auto" is "sign" if a label is negative, else
    "binary". Bool labels are always "binary". Warns if a class is missing.
    """
    y, s = _real_array(labels, "labels"), _real_array(scores, "scores")
    _check_same_size(labels=y, scores=s)
    if s.dtype.kind in "iu" and s.size and (int(s.max()) > EXACT or int(s.min()) < -EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    given_word(reading, "reading", get_args(LabelReading))
    if y.dtype == bool:
        reading = "binary"
    elif reading == "auto":
        reading = _infer_reading(y)
    if reading == "larger":
        values = np.unique(y)
        if values.size != 2:
            raise DataError(f"labels: {values.size} values, expected two, of which one is larger")
        positive, negative = y == values[1], y == values[0]
    else:
        positive, negative = (y != 0, y == 0) if reading == "binary" else (y > 0, y < 0)
    for name, is_member in (("positives", positive), ("negatives", negative)):
        if y.size and not is_member.any():
            warn(InputWarning(f"no {name} (labels read as {reading})"))
    return Samples(positive, negative, s.astype(np.float64, copy=False))


def _infer_reading(labels: NDArray[Any]) -> LabelReading:
    """Return "sign" or "binary" for labels of -1, 0 and 1. Raises DataError for other labels. It
    suggests every reading that gives both classes.
    """
    is_other = ~np.isin(labels, (-1, 0, 1))
    if is_other.any():
        values = np.unique(labels)
        options = (
            (values.size == 2, "larger", "for the larger of two as positive"),
            ((values == 0).any(), "binary", "for all but 0 as positive"),
            (values[0] < 0 < values[-1], "sign", "for those above 0 as positive"),
        )
        raise DataError(
            f"labels: {values.size} values with {labels[is_other.argmax()]:g} among them, "
            "expected 0 and 1, -1 and 1, or -1, 0 and 1",
            fix=[Setting("reading", name, effect) for fits, name, effect in options if fits],
        )
    return "sign" if (labels < 0).any() else "binary"


def defined(first: ArrayLike, second: ArrayLike, name: str) -> list[NDArray[Any]]:
    """Drop the undefined points at the ends of two columns, with a warning.

    An undefined point is NaN in the first column, called `name`, and 0 in the second. It is the 0/0
    of a curve that was converted between PR and ROC space.
    """
    a, b = (given_array(column, name).ravel() for column in (first, second))
    if a.size == b.size and np.isnan(a).any():
        sound = np.flatnonzero(~(np.isnan(a) & (b == 0)))
        inner = slice(sound[0], sound[-1] + 1) if sound.size else slice(0)
        if n_left_out := a.size - a[inner].size:
            warn(InputWarning(f"{name}: {n_left_out} undefined (0/0) at the end, left out"))
        a, b = a[inner], b[inner]
    return [a, b]


def whole_number(value: float, name: str) -> int:
    """Convert a whole number from 0 to 2**53, such as 1e4, to int. Raises DataError."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(given_number(value, name, 0, EXACT, whole=True))


def counts_from_rates(rates: F8, total: float) -> F8:
    """Multiply rates by their total. Counts within rounding of a whole number become whole."""
    counts = rates * total
    rounded = np.rint(rates * total)
    return np.where(np.abs(counts - rounded) <= 1e-12 * max(total, 1), rounded, counts)


def _real_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Flatten values to an array of real numbers. Raises DataError for NaN and other kinds."""
    array = given_array(values, name).ravel()
    is_nan = np.isnan(array)
    if is_nan.any():
        fault = f"{int(is_nan.sum())} NaN, the first at index {int(is_nan.argmax())}"
        raise DataError(f"{name}: {fault}, expected numbers")
    return array


def columns(kind: Literal["number", "share", "count"], **arguments: ArrayLike) -> list[F8]:
    """Convert the keyword arguments to float64 (K,) arrays of one length.

    All must be finite; a "share" lies in 0 .. 1, a "count" is 0 or more and does not fall. Raises
    DataError for other values, and ShapeError if the lengths differ.
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
    """Raise ShapeError if the arrays differ in length."""
    if len({array.size for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name}: {array.size} values" for name, array in arrays.items())
        raise ShapeError(f"{sizes}, expected as many of each")


def above_zero(value: float, name: str) -> float:
    """Return a total as a float. Raises DataError if it is not finite and above 0."""
    if not 0 < value < np.inf:
        raise DataError(f"{name} {value!r}: expected a number above 0")
    return float(value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only in place, and return it."""
    array.flags.writeable = False
    return array
