"""Counts of one image, and the record that carries them. Counts add over images; no ratios here.

A record holds integers and per-image sums; every score is derived from them by the metric they
belong to, by one function for one image and for a whole data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_floats
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.tables.read_only import ReadOnly

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
_C = TypeVar("_C", bound="ArrayRecord")


def frozen(array: Any, dtype: Any, what: str = "array") -> NDArray[Any]:
    """A contiguous read-only copy of `array` as `dtype`; `what` names it in errors."""
    out = np.array(given_floats(array, what, dtype), order="C", copy=True)
    out.flags.writeable = False
    return out


class ArrayRecord(ReadOnly):
    """Shared behaviour of frozen dataclasses whose fields are arrays.

    undefined : the fields that may hold NaN
    later : the fields that files of older versions do not have; None stands for them
    """

    __slots__ = ()
    undefined: ClassVar[tuple[str, ...]] = ()
    later: ClassVar[tuple[str, ...]] = ()

    def equals(self, other: object) -> bool:
        """True if `other` has the same type and every array is equal, NaN equal to NaN."""
        if type(other) is not type(self):
            return False
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return all(
            a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in pairs
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Field name -> array, in the order of the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def freeze_counts(record: Any, names: tuple[str, ...]) -> None:
    """For __post_init__: thresholds f8 (T,), the named fields i8 (T,), none below 0.

    Fields named matched_X are at most their total_X. Raises ShapeError, DataError.
    """
    object.__setattr__(record, "thresholds", frozen(record.thresholds, np.float64, "thresholds"))
    for name in names:
        counts = frozen(getattr(record, name), np.int64, name)
        if counts.shape != record.thresholds.shape:
            raise ShapeError(
                f"{name}: shape {counts.shape}, expected one count per threshold "
                f"{record.thresholds.shape}"
            )
        if counts.size and counts.min() < 0:
            raise DataError(f"{name}: from {counts.min()} to {counts.max()}, expected counts")
        object.__setattr__(record, name, counts)
    for name in names:
        total = getattr(record, name.replace("matched_", "total_"))
        if (getattr(record, name) > total).any():
            raise DataError(f"{name}: more matched than there are, expected at most the total")


def add_counts(a: _C, b: object) -> _C:
    """For __add__: every array but the thresholds, which must be the same. Raises ShapeError."""
    if type(b) is not type(a):
        return NotImplemented
    mine, theirs = a.arrays(), b.arrays()
    if not np.array_equal(mine["thresholds"], theirs["thresholds"]):
        raise ShapeError("counts at different thresholds cannot be added")
    return type(a)(*(v if k == "thresholds" else v + theirs[k] for k, v in mine.items()))


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryCounts(ArrayRecord):
    """Matched and total boundary pixels at each threshold.

    Adds over images, never over annotators.

    Parameters
    ----------
    thresholds : array
        f8 (T,).
    matched_gt, total_gt : array
        i8 (T,) ground-truth pixels, summed over annotators (cntR, sumR).
    matched_pred, total_pred : array
        i8 (T,) predicted pixels; matched with any annotator (cntP, sumP).

    Raises
    ------
    ShapeError
        For arrays of different lengths, and when counts at different thresholds are added.
    DataError
        For what is no whole number or below 0, and more matched than there are.

    References
    ----------
    Source: official ID_ev1.txt.
    """

    thresholds: F8
    matched_gt: I8
    total_gt: I8
    matched_pred: I8
    total_pred: I8

    def __post_init__(self) -> None:
        freeze_counts(self, ("matched_gt", "total_gt", "matched_pred", "total_pred"))

    def __add__(self, other: BoundaryCounts) -> BoundaryCounts:
        return add_counts(self, other)


@dataclass(frozen=True, slots=True, eq=False)
class ImageRecord:
    """All counts of one image.

    size is (rows, columns); counts maps the name of a metric to its counts (an ArrayRecord);
    fingerprint is a hash of prediction, ground truth, protocol and kernel version; seconds is the
    computing time and takes no part in `equals`.

    Parameters
    ----------
    image_id : str
        The image's id.
    size : tuple of int, int
        Rows and columns.
    counts : dict of str to object
        Name of a metric to its counts (an ArrayRecord).
    fingerprint : str
        Hash of prediction, ground truth, protocol and kernel version.
    seconds : float
        Computing time; takes no part in `equals`.
    truth : str
        Fingerprint of the annotations alone (bsdsbench.loaders.identity); "" where not known.
    form : str
        What the prediction was ("soft8", "ucm2" ...); "" where not known.
    """

    image_id: str
    size: tuple[int, int]
    counts: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    seconds: float = 0.0
    truth: str = ""
    form: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", dict(self.counts))

    def equals(self, other: object) -> bool:
        """True if id, size, fingerprint and every count are the same."""
        if not isinstance(other, ImageRecord):
            return False
        return (
            (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and self.counts.keys() == other.counts.keys()
            and all(self.counts[k].equals(other.counts[k]) for k in self.counts)
        )


__all__ = [
    "ArrayRecord",
    "BoundaryCounts",
    "ImageRecord",
    "add_counts",
    "freeze_counts",
    "frozen",
]
