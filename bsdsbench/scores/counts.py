"""What has names and does not change: an image's counts and its record, and the score made of them.

All are plain numbers, arrays and curves by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import given_array
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.scores.evidence import UNKNOWN, Evidence
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import Shown

Stack = Mapping[str, NDArray[Any]]
MAX_WHOLE = 2**53  # up to here sums of counts are exact as float64


class _Named(ReadOnlyDict[Any]):
    """Values as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        known = "" if name.startswith("_") else f": expected one of {', '.join(self)}"
        raise AttributeError(f"{name!r}{known}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a {type(self).__name__} is read-only")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Counts(_Named):
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

    def __init__(self, **arrays: Any) -> None:
        for name, value in arrays.items():
            given = given_array(value, name)
            kind = np.float64 if given.dtype.kind == "f" else np.int64
            array = np.array(given, kind, order="C")
            array.setflags(write=False)
            # Below 0 is beyond MAX_WHOLE as unsigned.
            if kind is np.int64 and array.view(np.uint64).max(initial=0) > MAX_WHOLE:
                raise DataError(f"{name}: from {given.min()} to {given.max()}, expected counts")
            arrays[name] = array
        super().__init__(arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return counts_of, (dict(self),)

    def __repr__(self) -> str:
        """One line: the arrays and their shapes."""
        return f"<Counts: {', '.join(f'{name} {array.shape}' for name, array in self.items())}>"

    def equals(self, other: object) -> bool:
        """True if `other` holds the same arrays bit for bit, NaN equal to NaN."""
        return (
            isinstance(other, Counts)
            and self.keys() == other.keys()
            and all(
                array.dtype == other[name].dtype
                and np.array_equal(array, other[name], equal_nan=True)
                for name, array in self.items()
            )
        )


def counts_of(arrays: Mapping[str, Any]) -> Counts:
    """The counts of arrays that were checked before: of a copy, of a pickle, of a part."""
    found = Counts()
    dict.update(found, arrays)
    for array in arrays.values():
        array.setflags(write=False)
    return found


def stacked(
    images: Sequence[Mapping[str, Any]], shared: Sequence[str] = (), ragged: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The counts of N >= 1 images: name -> (N, ...).

    shared : names of arrays that all images have in common, given once as they are
    ragged : names of arrays of different lengths, filled up with NaN
    """
    out = {}
    names = set(images[0])
    if odd := next((image.keys() ^ names for image in images if image.keys() != names), None):
        raise ShapeError(f"only some images have the counts {', '.join(sorted(odd))}")
    for name in images[0]:
        arrays = [np.asarray(image[name]) for image in images]
        first = arrays[0]
        if name in ragged:
            out[name] = np.full((len(arrays), max(map(len, arrays)), *first.shape[1:]), np.nan)
            for row, array in zip(out[name], arrays, strict=True):
                row[: len(array)] = array
            continue
        try:
            out[name] = np.array(arrays)  # in half the time of np.stack
        except ValueError:
            raise ShapeError(f"images have different {name}, expected the same shape") from None
        if name in shared:
            if (out[name] != first).any():
                raise ShapeError(f"images have different {name}, expected the same")
            out[name] = first
    return out


@dataclass(frozen=True, eq=False)
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
        Fingerprint of the annotations alone, version 1 (loaders.sets.identity); "" where not
        known.
    form : str
        What the prediction was ("soft8", "ucm2" ...); "" where not known.
    whole_truth : str
        Fingerprint of all that is annotated, version 2; "" where no metric reads more than
        boundaries, or in runs of versions before.
    pred, gt : Evidence
        What the values of its files show about the reading of their set.

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
    whole_truth: str = ""
    pred: Evidence = UNKNOWN
    gt: Evidence = UNKNOWN

    def __post_init__(self) -> None:
        found = dict(self.counts)
        for metric, counts in found.items():
            found[metric] = counts if isinstance(counts, Counts) else Counts(**counts)
        object.__setattr__(self, "counts", ReadOnlyDict(found))

    def equals(self, other: object) -> bool:
        """True if id, size, fingerprint and every count are the same, bit for bit."""
        return (
            isinstance(other, ImageRecord)
            and (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and self.counts.keys() == other.counts.keys()
            and all(counts.equals(other.counts[k]) for k, counts in self.counts.items())
        )


class Score(Shown, _Named):
    """Scores by name, as items and as attributes; a group of scores is a `Score` again.

    Undefined numbers are NaN here and None in `to_mapping()`, which leaves out curves.

    Parameters
    ----------
    values : dict
        Name -> number, text, array, curve, or a dict of these.

    Examples
    --------
    >>> score = Score({"ods": {"threshold": 0.2, "f": 0.5}, "ap": float("nan"), "n_images": 2})
    >>> score.ods.f, score["ods"]["threshold"]
    (0.5, 0.2)
    >>> score.to_mapping()
    {'ods': {'threshold': 0.2, 'f': 0.5}, 'ap': None, 'n_images': 2}
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        found = dict(values)
        for name, value in found.items():
            if isinstance(value, np.ndarray):
                found[name] = value.view()
                found[name].setflags(write=False)
            elif isinstance(value, Mapping):
                found[name] = Score(value)
        super().__init__(found)

    def numbers(self) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                out |= {f"{name}.{key}": number for key, number in value.numbers().items()}
            elif isinstance(value, int | float):
                out[name] = value
        return out

    def to_mapping(self) -> dict[str, Any]:
        """The numbers as plain values, for JSON: undefined and infinite ones are None."""
        out: dict[str, Any] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                out[name] = value.to_mapping()
            elif isinstance(value, int | float | str):
                out[name] = None if isinstance(value, float) and not math.isfinite(value) else value
            elif isinstance(value, tuple) and all(isinstance(v, str | int) for v in value):
                out[name] = list(value)
        return out


def one_of(tree: Mapping[str, Any], k: int = 0) -> dict[str, Any]:
    """The k-th data set's scores, of a tree of arrays and curves over S data sets.

    Of what is said under "over" that is left which is over fewer than there are.
    """
    out: dict[str, Any] = {}
    for name, value in tree.items():
        if value is None:
            out[name] = None
        elif isinstance(value, Mapping):
            out |= {name: one_of(value, k)} if name != "over" else {}
        else:
            number = value[k]
            out[name] = number.item() if isinstance(number, np.generic) else number
    for key, units in tree.get("over", {}).items():
        for unit, pairs in units.items():
            some, of = map(int, pairs[k])
            if 0 < some < of:
                out.setdefault("over", {}).setdefault(key, {})[unit] = some, of
    return out


def part_of(tree: Any, path: Sequence[str]) -> Any:
    """What is at the end of a path of names, None where there is nothing."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def at(tree: Mapping[str, Any], key: str) -> Any:
    """The value at a column's key, a path as "ods.threshold"; of a point of a curve its F.

    None where there is no such value.
    """
    value = part_of(tree, key.split("."))
    return value.get("f") if isinstance(value, Mapping) else value
