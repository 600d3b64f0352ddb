"""Counts of one image: declared fields, which define checking, adding, stacking and equality.

Counts hold integers and sums of one image. Their metric derives every score from them, with one
function for one image, a data set and its resamples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_floats
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.tables.read_only import ReadOnly

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Stack = Mapping[str, NDArray[Any]]
_C = TypeVar("_C", bound="Counts")


def frozen(array: Any, dtype: Any, what: str = "array") -> NDArray[Any]:
    """A contiguous read-only copy of `array` as `dtype`; `what` names it in errors."""
    if type(array) is not np.ndarray or array.dtype != dtype:
        array = given_floats(array, what, dtype)
    out = array.copy()
    out.setflags(write=False)
    return out


class Declared(NamedTuple):
    """What a field of counts is; see `count_field`."""

    axes: tuple[str, ...]
    dtype: type
    shared: bool
    at_most: str
    undefined: bool
    later: bool
    ragged: bool


def count_field(
    axes: str = "T",
    dtype: type = np.int64,
    *,
    shared: bool = False,
    at_most: str = "",
    undefined: bool = False,
    later: bool = False,
    ragged: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Declare a field of `Counts`.

    Parameters
    ----------
    axes : str
        A letter or a number for each axis, as "C T" or "257"; fields with a letter in common have
        the same length there. "" is a number.
    dtype : type
        np.int64 for counts, none of which is below 0, or np.float64.
    shared : bool
        The same in all images of a data set, as thresholds are: not added, and stacked once.
    at_most : str
        A field that is nowhere smaller.
    undefined : bool
        NaN may stand for an undefined value.
    later : bool
        Runs of older versions lack it: None and NaN stand for it.
    ragged : bool
        Each image has its own number of rows, of np.float64. Where images are put together, rows of
        NaN follow the shorter ones.
    default : array or number
        What stands where it is not given.

    Returns
    -------
    dataclasses.Field
        The field of a frozen dataclass derived from `Counts`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import bsdsbench as bb
    >>> @dataclass(frozen=True, slots=True, eq=False)
    ... class Hits(bb.Counts):
    ...     hits: object = bb.count_field("C", at_most="total")
    ...     total: object = bb.count_field("C")
    >>> (Hits([1, 0], [2, 2]) + Hits([1, 1], [1, 1])).hits.tolist()
    [2, 1]
    >>> Hits([3, 0], [2, 2])
    Traceback (most recent call last):
    ...
    bsdsbench.files.errors.DataError: hits: more than there are, expected at most total
    """
    about = Declared(
        tuple(axes.split()), dtype, shared, at_most, undefined or later or ragged, later, ragged
    )
    value = None if later else default
    return field(default=value, metadata={"counted": about})


def thresholds_field() -> Any:
    """The thresholds (T,), increasing and the same for all images."""
    return count_field("T", np.float64, shared=True)


class Counts(ReadOnly):
    """Base of the counts of a metric: a frozen dataclass of fields declared by `count_field`.

    adds : whether counts of several images can be added; otherwise scores take them one by one.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> list(bb.PixelCounts.declared())
    ['thresholds', 'tp', 'fp', 'fn', 'tn', 'abs_error_sum']
    """

    __slots__ = ()
    adds: ClassVar[bool] = True

    @classmethod
    def declared(cls) -> Mapping[str, Declared]:
        """Field name -> what it is, in order."""
        return _fields(cls)[0]  # type: ignore[arg-type]

    def __init_subclass__(cls) -> None:
        """Keep dataclasses from writing a repr of whole arrays."""
        cls.__repr__ = Counts.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """One line: the ends of every field."""
        parts = []
        for name, array in self.arrays().items():
            low, high = (f"{f(array):g}" for f in (np.min, np.max)) if array.size else ("none", "")
            parts.append(f"{name} {low if low == high or not high else f'{low} .. {high}'}")
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def __post_init__(self) -> None:
        about, fixed = _fields(type(self))  # type: ignore[arg-type]
        sizes = fixed.copy()
        for name, what in about.items():
            value = getattr(self, name)
            if value is None and what.later:
                value = np.full([sizes.get(axis, 0) for axis in what.axes], np.nan)
                if what.ragged:
                    value = np.zeros((0, *map(int, what.axes[1:])))
            array = frozen(value, what.dtype, name)
            if what.ragged and array.ndim > 1:
                array = array[: np.count_nonzero(~np.isnan(array).all(axis=-1))]
            expected = tuple(map(sizes.setdefault, what.axes, array.shape))
            if array.shape != expected or array.ndim != len(what.axes):
                wanted = f"{expected}" if array.ndim == len(what.axes) else f"{len(what.axes)} axes"
                raise ShapeError(f"{name}: shape {array.shape}, expected {wanted}")
            if what.dtype is np.int64 and np.count_nonzero(array < 0):
                raise DataError(f"{name}: from {array.min()} to {array.max()}, expected counts")
            object.__setattr__(self, name, _one_for_all(array) if what.shared else array)
        for name, what in about.items():
            if what.at_most and np.count_nonzero(getattr(self, name) > getattr(self, what.at_most)):
                raise DataError(f"{name}: more than there are, expected at most {what.at_most}")

    def __add__(self: _C, other: object) -> _C:
        if type(other) is not type(self) or not self.adds:
            return NotImplemented
        sums = {}
        for name, what in self.declared().items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine.shape != theirs.shape or (what.shared and not np.array_equal(mine, theirs)):
                raise ShapeError(f"counts of different {name} cannot be added")
            sums[name] = mine if what.shared else mine + theirs
        return type(self)(**sums)

    def equals(self, other: object) -> bool:
        """True if `other` has the same type and every array is equal, NaN equal to NaN.

        Parameters
        ----------
        other : object
            Usually counts.

        Returns
        -------
        bool
            Bit for bit.
        """
        if type(other) is not type(self):
            return False
        mine, theirs = self.arrays(), other.arrays()
        return all(
            a.shape == theirs[k].shape
            and np.array_equal(a, theirs[k], equal_nan=a.dtype.kind == "f")
            for k, a in mine.items()
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Field name -> array, in the order of the fields.

        Returns
        -------
        dict
            Name -> array.
        """
        return {name: getattr(self, name) for name in self.declared()}

    @classmethod
    def stacked(cls, images: Sequence[Counts]) -> dict[str, NDArray[Any]]:
        """The counts of N >= 1 images: field name -> (N, ...), shared fields once.

        Raises ShapeError for images whose shared fields or shapes differ.

        Parameters
        ----------
        images : sequence of Counts
            One for each image.
        """
        out = {}
        for name, what in cls.declared().items():
            arrays = [getattr(c, name) for c in images]
            first = arrays[0]
            same = all(np.array_equal(a, first) for a in arrays) if what.shared else True
            if what.ragged:
                out[name] = stacked_rows(arrays)
                continue
            if not same or any(a.shape != first.shape for a in arrays):
                raise ShapeError(f"images have different {name}, expected the same")
            out[name] = first if what.shared else np.stack(arrays)
        return out


_shared: dict[tuple[str, tuple[int, ...], bytes], NDArray[Any]] = {}


def _one_for_all(array: NDArray[Any]) -> NDArray[Any]:
    """The first read-only array with these values: images of a data set hold one in common."""
    if len(_shared) > 64:
        _shared.clear()
    return _shared.setdefault((array.dtype.str, array.shape, array.tobytes()), array)


@cache
def _fields(cls: type) -> tuple[Mapping[str, Declared], dict[str, int]]:
    """What `declared` gives, and the axes whose names are their sizes."""
    found = {f.name: f.metadata["counted"] for f in fields(cls)}
    axes = {axis for what in found.values() for axis in what.axes}
    return MappingProxyType(found), {axis: int(axis) for axis in axes if axis.isdigit()}


def stacked_rows(arrays: Sequence[F8]) -> F8:
    """Arrays (L, ...) of different lengths as one (N, L, ...), filled up with NaN."""
    out = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), np.nan)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryCounts(Counts):
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

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> counts = bb.boundary_counts(line, [line], "bsds500")
    >>> int(counts.matched_gt[0]), int(counts.total_gt[0])
    (20, 20)
    >>> bb.boundary_score(counts).ods.f
    1.0
    """

    thresholds: F8 = thresholds_field()
    matched_gt: I8 = count_field(at_most="total_gt")
    total_gt: I8 = count_field()
    matched_pred: I8 = count_field(at_most="total_pred")
    total_pred: I8 = count_field()


@dataclass(frozen=True, slots=True, eq=False)
class ImageRecord:
    """All counts of one image.

    size is (rows, columns). counts maps the name of a metric to its counts (`Counts`).
    fingerprint is a hash of prediction, ground truth, protocol and kernel version. seconds is the
    computing time and takes no part in `equals`.

    Parameters
    ----------
    image_id : str
        The image's id.
    size : tuple of int, int
        Rows and columns.
    counts : dict of str to object
        Name of a metric to its counts (`Counts`).
    fingerprint : str
        Hash of prediction, ground truth, protocol and kernel version.
    seconds : float
        Computing time; takes no part in `equals`.
    truth : str
        Fingerprint of the annotations alone (bsdsbench.loaders.identity); "" where not known.
    form : str
        What the prediction was ("soft8", "ucm2" ...); "" where not known.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.boundary_counts(np.eye(20), [np.eye(20)], "bsds500")
    >>> record = ImageRecord("a", (20, 20), {"boundary": counts})
    >>> bb.Evaluation(bb.Protocol.preset("bsds500"), "mine", (record,)).boundary_score().ods.f
    1.0
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
        """True if id, size, fingerprint and every count are the same.

        Parameters
        ----------
        other : object
            Usually a record.

        Returns
        -------
        bool
            Bit for bit.
        """
        if not isinstance(other, ImageRecord):
            return False
        return (
            (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and self.counts.keys() == other.counts.keys()
            and all(self.counts[k].equals(other.counts[k]) for k in self.counts)
        )
