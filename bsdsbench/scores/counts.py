"""An image's counts and its record, and the scores made of them: read-only values by name.

A record also holds what the image's files show about the meaning of their values. One image does
not decide that: bytes of 0 and 1 are a mask, or the noise of a gray map whose other images go up to
255. So each image leaves evidence, and what that of all images says together is decided once
(`bsdsbench.loaders.reading`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8, given_array
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult

Stack = Mapping[str, NDArray[Any]]
Value = str | float | None  # of an image in a column of groups
# The counts at the tolerances after the first, i8 (..., D - 1, T, 4)
OTHER_MATCHES = "other_matches"
MAX_WHOLE = 2**53  # up to here sums of counts are exact as float64
# The columns of `MatchCounts.matches`
MATCH_COLUMNS = ("matched_gt", "total_gt", "matched_pred", "total_pred")
MATCHED_GT, TOTAL_GT, MATCHED_PRED, TOTAL_PRED = range(4)

_N = TypeVar("_N")


class _Named(ReadOnlyDict[_N]):
    """Values as items and as attributes."""

    def __getattr__(self, name: str) -> _N:
        if name in self:
            return self[name]
        expected = "" if name.startswith("_") else f": expected one of {', '.join(self)}"
        raise AttributeError(f"{name!r}{expected}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a {type(self).__name__} is read-only")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Counts(_Named[NDArray[Any]]):
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

    def __init__(self, **arrays: object) -> None:
        counts = dict[str, NDArray[Any]]()
        for name, value in arrays.items():
            given = given_array(value, name)
            kind = np.float64 if given.dtype.kind == "f" else np.int64
            array = np.array(given, kind, order="C")
            array.setflags(write=False)
            # Below 0 is beyond MAX_WHOLE as unsigned.
            if kind is np.int64 and array.view(np.uint64).max(initial=0) > MAX_WHOLE:
                raise DataError(f"{name}: from {given.min()} to {given.max()}, expected counts")
            counts[name] = array
        super().__init__(counts)

    def __reduce__(self) -> tuple[object, ...]:
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


class MatchCounts(Counts):
    """Matched and total boundary pixels of an image at every threshold, one array.

    Its columns are attributes and items, too: `counts.matched_gt`, `counts["matched_gt"]`.

    Parameters
    ----------
    thresholds : array_like
        f8 (T,).
    matches : array_like
        i8 (..., T, 4): ground-truth pixels matched and in all, predicted pixels matched and in
        all, i.e. `matched_gt`, `total_gt`, `matched_pred` and `total_pred`.
    **arrays : array_like
        What else was counted.

    Raises
    ------
    DataError
        As `Counts`, and for more matched pixels than there are.

    Examples
    --------
    >>> counts = MatchCounts([0.2, 0.5], [[3, 4, 3, 6], [2, 4, 2, 2]])
    >>> counts.matches.shape, counts.total_pred.tolist()
    ((2, 4), [6, 2])
    """

    thresholds: F8
    matches: I8
    matched_gt: I8  # the columns of `matches`, (..., T)
    total_gt: I8
    matched_pred: I8
    total_pred: I8

    def __init__(self, thresholds: ArrayLike, matches: ArrayLike, **arrays: object) -> None:
        grid = np.asarray(thresholds, np.float64)
        super().__init__(thresholds=grid, matches=matches, **arrays)
        rows = self["matches"]
        if rows.shape[-2:] != (*grid.shape, len(MATCH_COLUMNS)):
            raise ShapeError(f"matches: shape {rows.shape}, expected (..., {grid.size}, 4)")
        if (rows[..., ::2] > rows[..., 1::2]).any():
            raise DataError("more matched than there are, expected at most the total")

    def __missing__(self, name: str) -> I8:
        if name not in MATCH_COLUMNS:
            raise KeyError(name)
        column: I8 = self["matches"][..., MATCH_COLUMNS.index(name)]
        return column

    def __getattr__(self, name: str) -> Any:
        return self[name] if name in MATCH_COLUMNS else super().__getattr__(name)


def _of_curve(arrays: Mapping[str, Any]) -> bool:
    """Return True if the arrays are those of `MatchCounts`."""
    if not {"thresholds", "matches"} <= arrays.keys():
        return False
    return np.shape(arrays["matches"])[-2:] == (np.size(arrays["thresholds"]), len(MATCH_COLUMNS))


def checked_counts(arrays: Mapping[str, Any]) -> Counts:
    """Return arrays by name as counts, and those of a curve as `MatchCounts`.

    Runs of earlier versions have each column of `matches` as an array.
    """
    if arrays.keys() >= {"thresholds", *MATCH_COLUMNS}:
        arrays = dict(arrays)
        arrays["matches"] = np.stack([arrays.pop(name) for name in MATCH_COLUMNS], axis=-1)
    elif isinstance(arrays, Counts):
        return arrays
    return MatchCounts(**arrays) if _of_curve(arrays) else Counts(**arrays)


def counts_of(arrays: Mapping[str, Any]) -> Counts:
    """Return the counts of arrays that were checked before, as in a copy or a pickle."""
    kind = MatchCounts if _of_curve(arrays) else Counts
    counts = kind.__new__(kind)
    dict.update(counts, arrays)
    for array in arrays.values():
        array.setflags(write=False)
    return counts


def stacked(
    images: Sequence[Mapping[str, Any]], shared: Sequence[str] = (), ragged: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return the counts of N >= 1 images as arrays (N, ...) by name.

    Arrays named in `shared` are the same in all images and are returned once, as they are; those
    named in `ragged` differ in length and are filled up with NaN.
    """
    stack = {}
    for image in images:
        if odd := image.keys() ^ images[0].keys():
            raise ShapeError(f"only some images have the counts {', '.join(sorted(odd))}")
    for name in images[0]:
        arrays = [np.asarray(image[name]) for image in images]
        first = arrays[0]
        if name in ragged:
            stack[name] = np.full((len(arrays), max(map(len, arrays)), *first.shape[1:]), np.nan)
            for row, array in zip(stack[name], arrays, strict=True):
                row[: len(array)] = array
            continue
        try:
            stack[name] = np.array(arrays)  # in half the time of np.stack
        except ValueError:
            raise ShapeError(f"images have different {name}, expected the same shape") from None
        if name in shared:
            if (stack[name] != first).any():
                raise ShapeError(f"images have different {name}, expected the same")
            stack[name] = first
    return stack


# ---- what the files of an image show -------------------------------------------------------------

LEVELS = 5  # as many distinct values of a map are kept, and no map of more has a third value


class Values(Flag):
    """Properties of a map's values; the properties of several maps are combined with `|`."""

    NOTHING = 0
    UNIT = auto()  # 0 and 1 in 8 or 16 bits
    WHITE = auto()  # 0 and white
    GRAY = auto()  # more than `LEVELS` values
    FEW = auto()  # three to `LEVELS` values
    FAINT = auto()  # none reaches what counts
    STRONG = auto()  # some do
    WHITE_LABELS = auto()  # labels of 0 and 255 alone, where 255 is no class
    LABELS = auto()  # other labels
    DARK = auto()  # darker on the boundaries than off them
    LIGHT = auto()  # not darker there
    PIECES = auto()  # one number of instances, in several pieces
    NUMBERS = auto()  # several numbers of instances
    TRAIN_IDS = auto()  # labels below the number of classes, one of them of no class
    LABEL_IDS = auto()  # a label of a class above them
    VOID_ALONE = auto()  # void, and no object


@frozen
class Evidence:
    """The properties of one side's maps of an image; `|` combines the evidence of several maps.

    Parameters
    ----------
    values : Values
        What any of the maps shows.
    levels : tuple of float
        All values of a map of few, for the line that refuses it; or the one number in pieces.
    strongest : float
        The largest value of a faint map.
    maps : int
        How many maps there are, such as annotators; 0 where nothing is known.
    file : str
        The name of the first file, or the image's id where there is none.

    Examples
    --------
    >>> both = Evidence(Values.UNIT, maps=1) | Evidence(Values.FEW, (0.0, 1.0, 255.0), maps=1)
    >>> both.values == Values.UNIT | Values.FEW, both.levels, both.maps
    (True, (0.0, 1.0, 255.0), 2)
    """

    values: Values = Values.NOTHING
    levels: tuple[float, ...] = ()
    strongest: float = 0.0
    maps: int = 0
    file: str = ""

    def __or__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.values | other.values,
            max(self.levels, other.levels),
            max(self.strongest, other.strongest),
            self.maps + other.maps,
            min(filter(None, (self.file, other.file)), default=""),
        )

    def row(self) -> list[float]:
        """Return all but the file as numbers, always as many; `of_row` reads them back."""
        levels = [*self.levels, *[math.nan] * (LEVELS - len(self.levels))]
        return [self.values.value, self.strongest, self.maps, *levels]

    @classmethod
    def of_row(cls, row: Iterable[float], file: str) -> Evidence:
        """Return the evidence that `row` made numbers of. Raises ValueError, TypeError."""
        values, strongest, maps, *levels = map(float, row)
        known = tuple(level for level in levels if level == level)
        return cls(Values(int(values)), known, strongest, int(maps), file)


NO_EVIDENCE = Evidence()


class Sides(NamedTuple):
    """What the files of an image's prediction and of its truth show to a metric."""

    pred: Evidence = NO_EVIDENCE
    gt: Evidence = NO_EVIDENCE


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
        What the values of its files show about the reading of their set, to its first metric.
    groups : dict of str to str, float or None
        Its scene, patient, size ...: column of a table of groups -> value; takes no part in
        `equals`.
    others : dict of str to Sides
        What the files show to each metric that they show something else to.

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
    pred: Evidence = NO_EVIDENCE
    gt: Evidence = NO_EVIDENCE
    groups: Mapping[str, Value] = field(default_factory=dict)
    others: Mapping[str, Sides] = field(default_factory=dict)

    def shown_to(self, metric: str) -> Sides:
        """Return what the files of both sides show to a metric."""
        return self.others.get(metric, Sides(self.pred, self.gt))

    def __post_init__(self) -> None:
        checked = map(checked_counts, self.counts.values())
        object.__setattr__(self, "counts", ReadOnlyDict(zip(self.counts, checked, strict=True)))
        object.__setattr__(self, "groups", ReadOnlyDict(self.groups))

    def equals(self, other: object) -> bool:
        """True if id, size, fingerprint and every count are the same, bit for bit."""
        return (
            isinstance(other, ImageRecord)
            and (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and self.counts.keys() == other.counts.keys()
            and all(counts.equals(other.counts[k]) for k, counts in self.counts.items())
        )


class Score(TabularResult, _Named[Any]):
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
        scores = dict(values)
        for name, value in scores.items():
            if isinstance(value, np.ndarray):
                scores[name] = value.view()
                scores[name].setflags(write=False)
            elif isinstance(value, Mapping) and not isinstance(value, Score):
                is_point = value.keys() == OperatingPoint.__annotations__.keys()
                scores[name] = OperatingPoint(**value) if is_point else Score(value)
        super().__init__(scores)

    def numbers(self) -> dict[str, float]:
        """Return every number by its path of names, such as "ods.f"."""
        numbers: dict[str, float] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                numbers |= {f"{name}.{key}": number for key, number in value.numbers().items()}
            elif isinstance(value, int | float):
                numbers[name] = value
        return numbers

    def to_mapping(self) -> dict[str, object]:
        """Return plain values for JSON: undefined and infinite numbers are None."""
        plain: dict[str, Any] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                plain[name] = value.to_mapping()
            elif isinstance(value, int | float | str):
                is_defined = not isinstance(value, float) or math.isfinite(value)
                plain[name] = value if is_defined else None
            elif isinstance(value, tuple) and all(isinstance(v, str | int) for v in value):
                plain[name] = list(value)
        return plain


class OperatingPoint(Score):
    """A point of a precision-recall curve: its threshold, and recall, precision and F in [0, 1].

    `threshold` is None where each image has its own (OIS). Of a stack of S curves all four are
    arrays f8 (S,).

    Parameters
    ----------
    threshold : float or None
        Where on the curve the point is.
    recall, precision, f : float
        The scores there.

    Examples
    --------
    >>> point = OperatingPoint(threshold=0.5, recall=0.6, precision=0.75, f=2 / 3)
    >>> point.recall, point["precision"]
    (0.6, 0.75)
    >>> point.to_mapping()
    {'threshold': 0.5, 'recall': 0.6, 'precision': 0.75, 'f': 0.6666666666666666}
    """

    threshold: float | None
    recall: float
    precision: float
    f: float

    if TYPE_CHECKING:
        __getattr__: None  # type: ignore[assignment,misc]  # a name beyond these four is an error

    def __init__(self, *, threshold: object, recall: object, precision: object, f: object) -> None:
        point = {"threshold": threshold, "recall": recall, "precision": precision, "f": f}
        super().__init__(point)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(OperatingPoint, **self), ()


def sample_scores(tree: Mapping[str, Any], k: int = 0) -> dict[str, object]:
    """Return the scores of the k-th data set, from arrays and curves over S data sets.

    Under "over" stand the numbers of images or classes that a mean is over, as pairs (number,
    all of them); a pair is kept only where some are missing.
    """
    scores: dict[str, Any] = {}
    numbers_behind = tree.get("over", {})
    if not all(isinstance(units, Mapping) for units in numbers_behind.values()):
        numbers_behind = {}  # the scores of a class of that name
    for name, value in tree.items():
        if value is None:
            scores[name] = None
        elif isinstance(value, Mapping):
            scores |= {name: sample_scores(value, k)} if value is not numbers_behind else {}
        else:
            number = value[k]
            scores[name] = number.item() if isinstance(number, np.generic) else number
    for key, units in numbers_behind.items():
        for unit, pairs in units.items():
            defined, total = map(int, pairs[k])
            if 0 < defined < total:
                scores.setdefault("over", {}).setdefault(key, {})[unit] = defined, total
    return scores


def part_of(tree: object, path: Sequence[str]) -> Any:
    """Return the value at the end of a path of names; None if there is none."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def value_at(tree: Mapping[str, Any], key: str) -> Any:
    """Return the value of a column, whose key may be a path such as "ods.threshold".

    The value of a point of a curve is its F. None where there is no such value.
    """
    value = part_of(tree, key.split("."))
    return value.get("f") if isinstance(value, Mapping) else value
