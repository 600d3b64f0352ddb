"""The counts and the record of an image, and the scores of a data set: read-only values by name.

A record also holds evidence: properties of the pixel values in the image's files. One image is not
enough to tell what its values mean: bytes 0 and 1 may be a mask, or the noise of a gray map whose
other images reach 255. `bsdsbench.loaders.reading` decides from the evidence of all images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats, Ints, check_array, check_list, kind_of_value
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult

Stack = Mapping[str, NDArray[Any]]
Value = str | float | None  # an image's value of a grouping attribute; None if it is missing
# Name of the matches at the second and further tolerances, int64 (..., tolerances, T, 4)
OTHER_MATCHES = "other_matches"
MAX_WHOLE = 2**53  # up to this number sums of counts are exact in float64
# The columns of `MatchCounts.matches`
MATCH_COLUMNS = ("matched_gt", "total_gt", "matched_pred", "total_pred")
MATCHED_GT, TOTAL_GT, MATCHED_PRED, TOTAL_PRED = range(4)

_N = TypeVar("_N")


class _AttributeDict(ReadOnlyDict[_N]):
    """A read-only mapping whose values are also attributes."""

    def __getattr__(self, name: str) -> _N:
        if name in self:
            return self[name]
        expected = "" if name.startswith("_") else f": expected one of {', '.join(self)}"
        raise AttributeError(f"{name!r}{expected}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a {type(self).__name__} is read-only")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Counts(_AttributeDict[NDArray[Any]]):
    """The counts of a metric in one image: read-only arrays by name, each also an attribute.

    Integers and bools are stored as int64, other numbers as float64.

    Parameters
    ----------
    **arrays : array_like
        Name -> numbers.

    Raises
    ------
    DataError
        If a value is not a number, or an integer is below 0 or above MAX_WHOLE.

    Examples
    --------
    >>> counts = Counts(matched=[3, 1], total=[4, 4])
    >>> counts.matched.tolist(), int(counts["total"].sum())
    ([3, 1], 8)
    """

    def __init__(self, **arrays: object) -> None:
        """Store read-only copies of the arrays in C order, as int64 or float64.

        Integers must lie between 0 and 2^53 (MAX_WHOLE). The range of floats is not checked.
        """
        counts = dict[str, NDArray[Any]]()
        for name, value in arrays.items():
            numbers = check_array(value, name)
            is_float = numbers.dtype.kind == "f"
            array = np.array(numbers, np.float64 if is_float else np.int64, order="C")
            array.setflags(write=False)
            if not is_float and (array.min(initial=0) < 0 or array.max(initial=0) > MAX_WHOLE):
                raise DataError(f"{name}: from {numbers.min()} to {numbers.max()}, expected counts")
            counts[name] = array
        super().__init__(counts)

    def __reduce__(self) -> tuple[object, ...]:
        return unchecked_counts, (dict(self),)

    def __repr__(self) -> str:
        """Return one line with the arrays and their shapes."""
        return f"<Counts: {', '.join(f'{name} {array.shape}' for name, array in self.items())}>"

    def equals(self, other: object) -> bool:
        """Return True if `other` holds the same arrays bit for bit. NaN equals NaN."""
        if not isinstance(other, Counts) or self.keys() != other.keys():
            return False
        return all(
            array.dtype == other[name].dtype and np.array_equal(array, other[name], equal_nan=True)
            for name, array in self.items()
        )


class MatchCounts(Counts):
    """Matched and total boundary pixels of an image at every threshold, in one array.

    Parameters
    ----------
    thresholds : array_like
        float64 (T,).
    matches : array_like
        int64 (..., T, 4). The columns are numbers of pixels: `matched_gt` and `total_gt` of the
        ground truth, `matched_pred` and `total_pred` of the prediction. They are also items and
        attributes, such as `counts["matched_gt"]` and `counts.matched_gt`, int64 (..., T).
    **arrays : array_like
        Further counts.

    Raises
    ------
    DataError
        As for `Counts`, and if more pixels are matched than there are.

    Examples
    --------
    >>> counts = MatchCounts([0.2, 0.5], [[3, 4, 3, 6], [2, 4, 2, 2]])
    >>> counts.matches.shape, counts.total_pred.tolist()
    ((2, 4), [6, 2])
    """

    thresholds: Floats
    matches: Ints
    matched_gt: Ints
    total_gt: Ints
    matched_pred: Ints
    total_pred: Ints

    def __init__(self, thresholds: ArrayLike, matches: ArrayLike, **arrays: object) -> None:
        """Store the arrays, and check `matches` (..., T, 4) for T thresholds."""
        grid = np.asarray(thresholds, np.float64)
        super().__init__(thresholds=grid, matches=matches, **arrays)
        pixels = self["matches"]
        if pixels.shape[-2:] != (*grid.shape, len(MATCH_COLUMNS)):
            raise ShapeError(f"matches: shape {pixels.shape}, expected (..., {grid.size}, 4)")
        matched = pixels[..., [MATCHED_GT, MATCHED_PRED]]
        total = pixels[..., [TOTAL_GT, TOTAL_PRED]]
        if (matched > total).any():
            raise DataError("more matched than there are, expected at most the total")

    def __missing__(self, name: str) -> Ints:
        if name not in MATCH_COLUMNS:
            raise KeyError(name)
        column: Ints = self["matches"][..., MATCH_COLUMNS.index(name)]
        return column

    def __getattr__(self, name: str) -> Any:
        return self[name] if name in MATCH_COLUMNS else super().__getattr__(name)


def _are_match_counts(arrays: Mapping[str, Any]) -> bool:
    """Return True if the arrays include `thresholds` (T,) and `matches` (..., T, 4)."""
    if not {"thresholds", "matches"} <= arrays.keys():
        return False
    return np.shape(arrays["matches"])[-2:] == (np.size(arrays["thresholds"]), len(MATCH_COLUMNS))


def checked_counts(arrays: Mapping[str, Any]) -> Counts:
    """Convert an image's arrays to `MatchCounts` or to `Counts`, and check them.

    They become `MatchCounts` if they include "thresholds" (T,) and "matches" (..., T, 4). `Counts`
    are returned unchanged.
    """
    if isinstance(arrays, Counts):
        return arrays
    return MatchCounts(**arrays) if _are_match_counts(arrays) else Counts(**arrays)


def unchecked_counts(arrays: Mapping[str, Any]) -> Counts:
    """Build `Counts`, or `MatchCounts` if matches are among them, without checking the arrays.

    It is for int64 or float64 arrays that are valid anyway: stored `Counts`, or those that kernels
    filled. They are not copied, but made read-only in place.
    """
    kind = MatchCounts if _are_match_counts(arrays) else Counts
    counts = kind.__new__(kind)  # without `__init__`, which copies and checks
    dict.update(counts, arrays)  # the class's own `update` refuses changes
    for array in arrays.values():
        array.setflags(write=False)
    return counts


def stack_counts(
    images: Sequence[Mapping[str, Any]], shared: Sequence[str] = (), ragged: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Stack the counts of one or more images. Returns one array per name, images along axis 0.

    shared: names of arrays that are the same for all images, such as "thresholds". They are
        returned once, without the axis of images.
    ragged: names of arrays (length, ...) whose length may differ between images. They become
        float64 (images, longest length, ...), padded with NaN at the end.

    Raises ShapeError if images differ in their names, a shared array, or the shape of any other
    array that is not ragged.
    """
    for image in images:
        unshared = image.keys() ^ images[0].keys()  # names in one of the two only
        if unshared:
            raise ShapeError(f"only some images have the counts {', '.join(sorted(unshared))}")
    stack = {}
    for name in images[0]:
        arrays = list(map(np.asarray, map(itemgetter(name), images)))
        if name in ragged:
            longest = max(len(array) for array in arrays)
            padded = np.full((len(arrays), longest, *arrays[0].shape[1:]), np.nan)
            for k, array in enumerate(arrays):
                padded[k, : len(array)] = array
            stack[name] = padded
            continue
        try:
            stack[name] = np.array(arrays)  # in half the time of np.stack
        except ValueError:
            raise ShapeError(f"images have different {name}, expected the same shape") from None
        if name in shared:
            if (stack[name] != arrays[0]).any():
                raise ShapeError(f"images have different {name}, expected the same")
            stack[name] = arrays[0]
    return stack


# ---- what the files of an image show -------------------------------------------------------------

LEVELS = 5  # the distinct values of a map are kept if there are at most this many


class Values(Flag):
    """Properties of the values of a map or of several maps (combined with `|`)."""

    NOTHING = 0
    UNIT = auto()  # only 0 and 1, stored in 8 or 16 bits
    WHITE = auto()  # only 0 and white
    GRAY = auto()  # a mask of gray levels: neither binary, nor of two values, nor FEW
    FEW = auto()  # a mask with a third value that may mean void (`labels.third_values`)
    FAINT = auto()  # a soft map that is probably on the wrong scale: all values are near 0
    STRONG = auto()  # a soft map that is not faint
    WHITE_LABELS = auto()  # only labels 0 and 255, and 255 is not a class
    LABELS = auto()  # other labels
    DARK = auto()  # a map or mask that is darker on the boundaries or the object than elsewhere
    LIGHT = auto()  # a map or mask that is not darker there
    PIECES = auto()  # all instances have the same label, and form several connected components
    NUMBERS = auto()  # instances have different labels
    TRAIN_IDS = auto()  # a label below the number of classes that is not a class id
    LABEL_IDS = auto()  # a class id at or above the number of classes
    VOID_ALONE = auto()  # void pixels, but no object
    NARROW = auto()  # a faint map up to the white of fewer bits: 1, or 255 in 16 bits


@frozen
class Evidence:
    """Statistics of the values in an image's predictions, or in its ground-truth maps.

    `loaders.reading` pools them over all images to decide what the values mean, for example which
    value is the object. The operator `|` combines the evidence of several maps.
    """

    values: Values = Values.NOTHING  # the properties that at least one of the maps has
    # With FEW: the distinct values of the map. With PIECES: the label that all instances have.
    levels: tuple[float, ...] = ()
    strongest: float = 0.0  # maximum of a faint map, otherwise 0
    maps: int = 0  # number of maps, such as annotators' maps; 0 if the values were not examined
    file: str = ""  # name of the first file, or the image id if there is no file

    def __or__(self, other: Evidence) -> Evidence:
        """Combine the statistics of two sets of maps to those of all these maps.

        Two `levels`, tuples of the distinct values of a map, cannot be combined: the larger tuple
        is kept. Of two files, the first in sort order is named. So their order does not matter.
        """
        return Evidence(
            values=self.values | other.values,
            levels=max(self.levels, other.levels),
            strongest=max(self.strongest, other.strongest),
            maps=self.maps + other.maps,
            file=min(filter(None, (self.file, other.file)), default=""),
        )

    def row(self) -> list[float]:
        """Return 3 + LEVELS numbers: values, strongest, maps, then levels padded with NaN."""
        padding = [math.nan] * (LEVELS - len(self.levels))
        return [self.values.value, self.strongest, self.maps, *self.levels, *padding]

    @classmethod
    def of_row(cls, row: Iterable[float], file: str) -> Evidence:
        """Rebuild stored evidence: the inverse of `row`.

        row: values, strongest, maps, and the levels, padded with NaN.
        file: the name of the file, which `row` does not include.

        Raises ValueError or TypeError if `row` has fewer than three numbers or invalid ones.
        """
        values, strongest, maps, *levels = map(float, row)
        known_levels = tuple(level for level in levels if not math.isnan(level))
        return cls(Values(int(values)), known_levels, strongest, int(maps), file)


NO_EVIDENCE = Evidence()


class Sides(NamedTuple):
    """The `Evidence` of an image's prediction and of its ground truth."""

    pred: Evidence = NO_EVIDENCE
    gt: Evidence = NO_EVIDENCE


@dataclass(frozen=True, eq=False)
class ImageRecord:
    """The counts of one image for all metrics, with its size and hashes of its inputs.

    Parameters
    ----------
    image_id : str
        The image id.
    size : tuple of int, int
        Rows and columns.
    counts : dict of str to Counts or dict of arrays
        Metric name -> counts.
    fingerprint : str
        Hash of the prediction, ground truth, protocol and kernel version.
    seconds : float
        Computing time.
    truth : str
        Version 1 fingerprint of the annotations (see `loaders.sets.identity`); "" if unknown.
    form : str
        Storage format of the prediction, such as "soft8" or "ucm2"; "" if unknown.
    whole_truth : str
        Version 2 fingerprint, of everything annotated; "" if no metric reads more than boundaries.
    pred, gt : Evidence
        Statistics of the values of the prediction and of the ground truth, for the first metric.
    groups : dict of str to str, float or None
        Grouping attribute, such as scene or patient -> value of the image.
    others : dict of str to Sides
        Metric name -> its evidence, only for metrics whose evidence differs from `pred` and `gt`.

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

    def evidence_for(self, metric: str) -> Sides:
        """Return the evidence for a metric: `others[metric]`, or `pred` and `gt` if not there."""
        return self.others.get(metric, Sides(self.pred, self.gt))

    def __post_init__(self) -> None:
        """Convert the counts of each metric to `Counts`, and make both mappings read-only."""
        counts = {}
        for metric, arrays in self.counts.items():
            counts[metric] = checked_counts(arrays)
        object.__setattr__(self, "counts", ReadOnlyDict(counts))
        object.__setattr__(self, "groups", ReadOnlyDict(self.groups))

    def equals(self, other: object) -> bool:
        """Return True if two records have equal id, size, fingerprint and counts, bit for bit."""
        if not isinstance(other, ImageRecord) or self.counts.keys() != other.counts.keys():
            return False
        properties = attrgetter("image_id", "size", "fingerprint")
        if properties(self) != properties(other):
            return False
        return all(counts.equals(other.counts[name]) for name, counts in self.counts.items())


class Score(TabularResult, _AttributeDict[Any]):
    """A read-only mapping of scores, which are also attributes. Nested groups are scores too.

    Undefined scores are NaN; `to_mapping()` converts them to None and omits curves.

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
        """Store the values. Arrays become read-only views, and nested mappings become scores.

        A mapping with the fields of `OperatingPoint` becomes one; any other becomes a `Score`.
        """
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
        """Return all numbers, including NaN, as a flat dict with dotted keys such as "ods.f"."""
        numbers: dict[str, float] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                for key, number in value.numbers().items():
                    numbers[f"{name}.{key}"] = number
            elif isinstance(value, int | float):
                numbers[name] = value
        return numbers

    def to_mapping(self) -> dict[str, object]:
        """Return the scores as a nested dict for JSON.

        It has the numbers, strings, and tuples of strings or integers; NaN and infinity become
        None. Arrays, curves and other values are left out.
        """
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
    """A point of a precision-recall curve. For a stack of S curves, each field has shape (S,).

    Parameters
    ----------
    threshold : float or None
        The threshold; None if each image has its own (OIS).
    recall, precision, f : float
        In [0, 1].

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
        __getattr__: None  # type: ignore[assignment,misc]  # any other name is an error

    def __init__(self, *, threshold: object, recall: object, precision: object, f: object) -> None:
        """Store the four fields; each is a number, or float64 (S,) for S curves."""
        point = {"threshold": threshold, "recall": recall, "precision": precision, "f": f}
        super().__init__(point)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(OperatingPoint, **self), ()


def sample_scores(tree: Mapping[str, Any], k: int = 0) -> dict[str, object]:
    """Return the scores of sample k from scores that were computed for S samples at once.

    A sample is the data set itself or a resample of it, as in a bootstrap.

    tree: nested mappings of scores by name. A score is an array (S,) or (S, ...), a stack of S
        curves, or None. The entry "over" says how many values each mean includes, such as {"iou":
        {"images": array (S, 2)}}: "iou" is a mean over images, and the columns are the number of
        images with a defined value and the number of all images.

    Returns a dict with the same nesting, in which each score is replaced by its element k. In
    "over", only means over some but not all values are kept, as pairs of integers.
    """
    over = tree.get("over", {})
    if over and not all(isinstance(numbers_by_unit, Mapping) for numbers_by_unit in over.values()):
        over = {}  # its values are scores, of a class that happens to be named "over"
    scores: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            if value is not over:
                scores[name] = sample_scores(value, k)
        elif value is None:
            scores[name] = None
        else:
            score = value[k]
            scores[name] = score.item() if isinstance(score, np.generic) else score
    for key, numbers_by_unit in over.items():  # such as "iou", {"images": array (S, 2)}
        for unit, numbers in numbers_by_unit.items():
            n_defined, n_all = int(numbers[k][0]), int(numbers[k][1])
            if 0 < n_defined < n_all:
                scores.setdefault("over", {}).setdefault(key, {})[unit] = n_defined, n_all
    return scores


def counts_by_image(
    records: Sequence[ImageRecord] | Counts, metric: str
) -> dict[str, Mapping[str, Any]]:
    """Return {image id: counts of the metric}, sorted by image id.

    The counts of a single image may take the place of records. Raises DataError if there are no
    records, if one is no ImageRecord, or if a record lacks counts of the metric.
    """
    if isinstance(records, Counts):
        return {"image": records}
    expected = "ImageRecords, or the counts of one image"
    records = check_list(records, f"{metric} scores", expected)
    if not records:
        raise DataError(f"{metric} scores: no records, expected at least one")
    for record in records:
        if not isinstance(record, ImageRecord):
            has = f"{metric} scores: {kind_of_value(record)}"
            raise DataError(f"{has}, expected {expected}")
    counts = {}
    for record in sorted(records, key=attrgetter("image_id")):
        if metric not in record.counts:
            raise DataError(f"{metric} scores: {record.image_id} has no {metric} counts")
        counts[record.image_id] = record.counts[metric]
    return counts


def part_of(tree: object, path: Sequence[str]) -> Any:
    """Follow a path of keys into nested mappings. Returns None if a key is missing."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def nest(scores: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Nest scores by their paths: the score with the path ("ue", "min") is at ["ue"]["min"]."""
    tree: dict[str, Any] = {}
    for (*groups, name), score in scores.items():
        group = tree
        for outer in groups:
            group = group.setdefault(outer, {})
        group[name] = score
    return tree


def key_at(score: str, size: float | str) -> str:
    """Return the key of a score at a size or a tolerance: "f@0_008" for 0.008.

    A tolerance is text, such as "0.00375" or "mean". "_" replaces dots, which separate nested keys.
    """
    digits = size if isinstance(size, str) else f"{size:g}"
    return f"{score}@{digits}".replace(".", "_")


def value_at(tree: Mapping[str, Any], key: str) -> Any:
    """Return the value at a dotted path in nested scores, such as "ods.threshold".

    For a point of a curve, such as "ods", this is its F. It is None if the path does not exist.
    """
    value = part_of(tree, key.split("."))
    return value.get("f") if isinstance(value, Mapping) else value
