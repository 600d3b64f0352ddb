"""Counts of one image, plain arrays by name, and its record, which holds those of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, given_floats
from bsdsbench.files.errors import DataError, ShapeError

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Stack = Mapping[str, NDArray[Any]]
MAX_WHOLE = 2**53  # up to here sums of counts are exact as float64


def frozen(array: Any, dtype: Any, what: str = "array") -> NDArray[Any]:
    """A contiguous read-only copy of `array` as `dtype`; `what` names it in errors."""
    if type(array) is not np.ndarray or array.dtype != dtype:
        array = given_floats(array, what, dtype)
    out = array.copy()
    out.setflags(write=False)
    return out


class Counts(Mapping[str, NDArray[Any]]):
    """What a metric counted in one image: read-only arrays by name, also as attributes.

    Whole numbers are int64, others float64.

    Parameters
    ----------
    **arrays : array_like
        Name -> numbers.

    Raises
    ------
    DataError
        For what is no number, or a count below 0.

    Examples
    --------
    >>> counts = Counts(matched=[3, 1], total=[4, 4])
    >>> counts.matched.tolist(), int(counts["total"].sum())
    ([3, 1], 8)
    """

    __slots__ = ("_arrays",)

    def __init__(self, **arrays: Any) -> None:
        found = {}
        for name, value in arrays.items():
            array = given_array(value, name)
            kind = np.float64 if array.dtype.kind == "f" else np.int64
            given = array
            if array.flags.writeable or array.dtype != kind or not array.flags.c_contiguous:
                array = np.array(array, kind, order="C")
                array.setflags(write=False)
            # Below 0 is beyond MAX_WHOLE as unsigned.
            if kind is np.int64 and array.view(np.uint64).max(initial=0) > MAX_WHOLE:
                raise DataError(f"{name}: from {given.min()} to {given.max()}, expected counts")
            found[name] = array
        object.__setattr__(self, "_arrays", found)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(name)
        return self._arrays[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: counts are read-only")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Counts, **dict(self)), ()

    def __repr__(self) -> str:
        """One line: the ends of every array."""
        parts = []
        for name, array in self.items():
            low, high = (f"{f(array):g}" for f in (np.min, np.max)) if array.size else ("none", "")
            parts.append(f"{name} {low if low == high or not high else f'{low} .. {high}'}")
        return f"<Counts: {', '.join(parts)}>"

    def equals(self, other: object) -> bool:
        """True if `other` holds the same arrays bit for bit, NaN equal to NaN."""
        return (
            isinstance(other, Counts)
            and self.keys() == other.keys()
            and all(
                a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
                for a, b in ((a, other[k]) for k, a in self.items())
            )
        )


def stacked(
    images: Sequence[Mapping[str, Any]], shared: Sequence[str] = (), ragged: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The counts of N >= 1 images: name -> (N, ...).

    shared : names of arrays that all images have in common, given once as they are
    ragged : names of arrays of different lengths, filled up with NaN
    """
    out = {}
    for name in images[0]:
        first, *_ = arrays = [np.asarray(each[name]) for each in images if name in each]
        if name in shared:
            if not all(a is first or np.array_equal(a, first) for a in arrays):
                raise ShapeError(f"images have different {name}, expected the same")
            out[name] = first
        elif name in ragged:
            rows = np.full((len(arrays), max(map(len, arrays)), *first.shape[1:]), np.nan)
            for row, array in zip(rows, arrays, strict=True):
                row[: len(array)] = array
            out[name] = rows
        elif len(arrays) < len(images) or any(a.shape != first.shape for a in arrays):
            raise ShapeError(f"images have different {name}, expected the same shape")
        else:
            out[name] = np.stack(arrays)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class ImageRecord:
    """All counts of one image.

    Parameters
    ----------
    image_id : str
        The image's id.
    size : tuple of int, int
        Rows and columns.
    counts : dict of str to Counts or dict of arrays
        Name of a metric to its counts.
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
        counts = {k: c if isinstance(c, Counts) else Counts(**c) for k, c in self.counts.items()}
        object.__setattr__(self, "counts", counts)

    def equals(self, other: object) -> bool:
        """True if id, size, fingerprint and every count are the same, bit for bit."""
        if not isinstance(other, ImageRecord):
            return False
        return (
            (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and self.counts.keys() == other.counts.keys()
            and all(self.counts[k].equals(other.counts[k]) for k in self.counts)
        )
