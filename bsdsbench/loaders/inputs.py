"""The inputs of metrics: a prediction, and an image's ground truth. No disk access here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, given_list, kind_of_value
from bsdsbench.files.errors import DataError, ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines and their junctions; none is checked here.

    ends      : (N, 4), row column row column; scores : (N,), of predicted lines
    junctions : (M, 3), row, column and score; None where a file has none
    grid      : rows and columns that the coordinates are in; None where the file does not say
    """

    ends: NDArray[np.float64]
    scores: NDArray[np.float64]
    junctions: NDArray[np.float64] | None = None
    grid: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """One image's output of an algorithm, in exactly one of five forms.

    Types and shapes are checked here, values by the metrics. Raises DataError.

    Parameters
    ----------
    image_id : str
        The image's id.
    path : path or None
        The file it was read from, or None.
    soft : array or None
        (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1].
    ucm2 : array or None
        (2H+1, 2W+1) float64, ultrametric contour map at double size, in [0, 1].
    segs : tuple of array or None
        Tuple of (H, W) integer label maps, one per threshold 1..n.
    classes : array or None
        (H, W) class labels, kept as integers (`whole_labels`), or (C, H, W) soft maps or bool, one
        per class.
    depth : array or None
        (H, W) numbers, depth or inverse depth, also NaN and infinite.
    angles : array or None
        (H, W) radians, beside a soft map whose edges have an orientation.
    lines : Lines or None
        Straight lines, beside the soft map that they are drawn as.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Prediction("a", soft=np.zeros((3, 4)))
    >>> pred.shape, pred.boundary_map().shape
    ((3, 4), (3, 4))
    """

    image_id: str
    path: Path | None = None
    soft: NDArray[Any] | None = None
    ucm2: NDArray[np.float64] | None = None
    segs: tuple[NDArray[Any], ...] | None = None
    classes: NDArray[Any] | None = None
    depth: NDArray[Any] | None = None
    angles: NDArray[Any] | None = None
    lines: Lines | None = None

    def __post_init__(self) -> None:
        maps = dict.fromkeys(("soft", "ucm2", "depth", "angles"), (2,))
        _settle(self, {**maps, "classes": (2, 3), "segs": "biu"})
        if sum(getattr(self, name) is not None for name in FORMS) > 1:
            raise DataError(f"Prediction: several forms, expected one of {', '.join(FORMS)}")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the image the prediction is for."""
        if self.ucm2 is not None:
            return (self.ucm2.shape[0] - 1) // 2, (self.ucm2.shape[1] - 1) // 2
        for given in (self.soft, *(self.segs or ()), self.classes, self.depth):
            if given is not None:
                return given.shape[-2], given.shape[-1]
        return 0, 0

    @property
    def form(self) -> str:
        """The form in a word, for signatures: soft8, soft16, float, binary, ucm2, segs, classes,
        depth.
        """
        if self.soft is not None:
            names = {"u1": "soft8", "u2": "soft16", "b1": "binary"}
            return names.get(self.soft.dtype.str[1:], "float")
        return next((name for name in FORMS if getattr(self, name) is not None), "")

    def boundary_map(self) -> NDArray[Any]:
        """The (H, W) soft map: itself, or ucm2[2::2, 2::2] (official boundaryBench).

        Raises ValueError for segmentations, or for nothing.

        Returns
        -------
        array
            (H, W), as stored.
        """
        if self.soft is not None:
            return self.soft
        if self.ucm2 is not None:
            return np.ascontiguousarray(self.ucm2[2::2, 2::2])
        raise DataError("a set of segmentations has no single soft boundary map")


@dataclass(frozen=True, slots=True, eq=False)
class GroundTruth:
    """One image's human annotations; which of them are there depends on what was asked for.

    Parameters
    ----------
    image_id : str
        The image's id.
    boundaries : tuple of array
        Tuple of (H, W) bool, one per annotator.
    segmentations : tuple of array
        Tuple of (H, W) integer label maps, one per annotator; empty where the data set has only
        boundaries.
    path : path or None
        The file it was read from, or None.
    labels : array or None
        (H, W) class labels, kept as integers (`whole_labels`).
    instances : array or None
        (H, W), which instance a pixel belongs to, where class labels have them; kept as integers.
    class_boundaries : array or None
        (C, H, W) bool, where there are boundaries of classes and no labels, or both.
    mask : array or None
        (H, W) bool, the object.
    photo : array or None
        (H, W, 3) uint8, the picture itself.
    depth : array or None
        (H, W) numbers, depth or inverse depth, also NaN and infinite.
    valid : array or None
        (H, W) bool, where the depth is known, if that is annotated.
    angles : tuple of array
        (H, W) radians per annotator, where boundaries have an orientation.
    lines : Lines or None
        Straight lines, beside the boundaries that they are drawn as.
    scale : str
        What 8- and 16-bit maps were taken for, as `scale_of` says.

    Examples
    --------
    >>> import numpy as np
    >>> truth = GroundTruth("a", (np.eye(3, dtype=bool),))
    >>> truth.shape, len(truth.boundaries)
    ((3, 3), 1)
    """

    image_id: str
    boundaries: tuple[NDArray[np.bool_], ...] = ()
    segmentations: tuple[NDArray[Any], ...] = ()
    path: Path | None = None
    labels: NDArray[Any] | None = None
    class_boundaries: NDArray[np.bool_] | None = None
    instances: NDArray[Any] | None = None
    mask: NDArray[np.bool_] | None = None
    photo: NDArray[np.uint8] | None = None
    depth: NDArray[Any] | None = None
    valid: NDArray[np.bool_] | None = None
    angles: tuple[NDArray[Any], ...] = ()
    lines: Lines | None = None
    scale: str = ""

    def __post_init__(self) -> None:
        maps = dict.fromkeys(("labels", "instances", "mask", "depth", "valid"), (2,))
        stacks = dict.fromkeys(("class_boundaries", "photo"), (3,))
        lists = {"boundaries": "biuf", "segmentations": "biu", "angles": "biuf"}
        _settle(self, {**lists, **maps, **stacks})
        if self.mask is not None:
            object.__setattr__(self, "mask", binary_map(self.mask, "GroundTruth.mask"))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        others = self.labels, self.mask, self.depth, self.class_boundaries
        for given in (*self.boundaries, *self.segmentations, *others):
            if given is not None:
                return given.shape[-2], given.shape[-1]
        return 0, 0


FORMS = ("soft", "ucm2", "segs", "classes", "depth")


def _settle(given: Any, fields: dict[str, Any]) -> None:
    """Check the id and the arrays of an input; lists become tuples, labels integers.

    fields : name -> number s of axes, or of a list of (H, W) maps the kinds of their numbers
    """
    owner = type(given).__name__
    if not isinstance(given.image_id, str):
        raise DataError(f"{owner}.image_id: {kind_of_value(given.image_id)}, expected text")
    for name, dims in fields.items():
        value, what = getattr(given, name), f"{owner}.{name}"
        if value is None:
            continue
        kinds, axes = "u" if name == "photo" else "biuf", dims
        maps = {what: value}
        if isinstance(dims, str):
            kinds, axes = dims, (2,)
            value = tuple(given_list(value, what, "a list of (H, W) arrays"))
            maps = {f"{what} {k}": each for k, each in enumerate(value, 1)}
        for what, each in maps.items():
            if not isinstance(each, np.ndarray) or each.dtype.kind not in kinds:
                expected = "an array of numbers" if "f" in kinds else "integer labels"
                raise DataError(f"{what}: {kind_of_value(each)}, expected {expected}")
            if given_array(each, what).ndim not in axes:
                expected = " or ".join(map(str, axes))
                raise DataError(f"{what}: shape {each.shape}, expected {expected} axes")
        if name in ("labels", "instances", "classes") and value.ndim == 2:
            value = whole_labels(value, "label map")
        object.__setattr__(given, name, value)


Bool = NDArray[np.bool_]


def soft_map(pred: Any, what: str = "prediction") -> NDArray[Any]:
    """The one rule for a soft map: (H, W) bool, uint8, uint16, or floats in [0, 1].

    Floats come as float32 (half precision too) or float64; nothing is copied that need not be.
    """
    soft = given_array(pred, what)
    if soft.ndim != 2:
        raise ShapeError(f"{what}: shape {soft.shape}, expected (rows, columns)")
    kind, size = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and size <= 2):
        raise DataError(
            f"{what}: dtype {described(soft)}, expected uint8, uint16, bool or "
            "floats in [0, 1] (label maps need pred_kind='labels')"
        )
    if kind == "f":
        soft = soft.astype(np.float32 if size <= 4 else np.float64, copy=False)
        low, high = float(soft.min(initial=0)), float(soft.max(initial=0))
        bad = soft.size - int(np.isfinite(soft).sum()) if not (low >= 0 and high <= 1) else 0
        if bad:
            raise DataError(
                f"{what}: {bad} of {soft.size} values are NaN or infinite, "
                "expected floats in [0, 1]"
            )
        if not (low >= 0 and high <= 1):
            reasons = (
                (low >= -0.05 and high <= 1.05, "overshoot of a resize? clip to [0, 1]"),
                (low < 0, "raw network output? apply the sigmoid"),
                (high <= 255, "0..255 as float? divide by 255"),
                (high <= 65535, "0..65535 as float? divide by 65535"),
                (True, "scale to 0..1"),
            )
            raise DataError(
                f"{what}: values from {soft.min():.6g} to {soft.max():.6g}, expected floats in "
                f"[0, 1] ({next(text for fits, text in reasons if fits)})"
            )
    return soft


def unit(soft: NDArray[Any]) -> NDArray[np.float64]:
    """A sound soft map as float64 in [0, 1]: value/255 for uint8, value/65535 for uint16."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def described(values: NDArray[Any]) -> str:
    if not values.size:
        return str(values.dtype)
    return f"{values.dtype} with values from {values.min()} to {values.max()}"


def annotated_maps(gts: Sequence[NDArray[Any]] | GroundTruth) -> Bool:
    """Every annotator's boundaries, maps as for `binary_map`, as one (A, H, W) bool array."""
    given = (
        gts.boundaries
        if isinstance(gts, GroundTruth)
        else given_list(gts, "ground truth", "a list of maps or a GroundTruth")
    )
    maps = [binary_map(gt, f"ground truth {k}") for k, gt in enumerate(given, 1)]
    if not maps:
        raise DataError("ground truth: no annotators, expected at least one")
    for gt in maps:
        if gt.shape != maps[0].shape:
            raise ShapeError(f"ground truth: shapes {maps[0].shape} and {gt.shape}, expected one")
    return np.array(maps)  # np.stack takes four times as long for small ones


WHITE = {"u1": 255, "u2": 65535}


def binary_map(values: NDArray[Any], what: str) -> Bool:
    """A (H, W) map of two values as bool: 0 and 1, 0 and 255 or 0 and 65535, of any dtype."""
    values = given_array(values, what)
    if values.ndim != 2:
        raise ShapeError(f"{what}: shape {values.shape}, expected (rows, columns)")
    if values.dtype == bool:
        return values
    if values.dtype == np.uint8 and values.max(initial=0) <= 1:
        return values.view(np.bool_)
    on: Bool = values != 0
    if not is_binary(values):
        raise DataError(
            f"{what}: values other than 0 and 1, {described(values)}, expected a map of 0 and 1, "
            "or of 0 and 255"
        )
    return on


def is_binary(values: NDArray[Any]) -> bool:
    """True where there is nothing but 0 and one of 1, 255 and 65535."""
    top = values.max(initial=0)
    return top in (0, 1, 255, 65535) and not ((values != 0) & (values != top)).any()


def cut_map(
    values: NDArray[Any], cuts: tuple[float, float, float], what: str, least: bool = False
) -> Bool:
    """The one rule for masks that may be gray, (H, W) as bool.

    bool and two values as in `binary_map` need no cut. uint8 and uint16 go up to 255 and 65535,
    floats to 1, whatever the values of one image.

    cuts  : what is above them is on, of uint8, uint16 and floats
    least : also what is equal, and 0 and 1 in uint8 and uint16 are gray too
    Without `least` integers none of which is above the cut are of no known scale, an error.
    """
    if values.dtype == bool:
        return values
    kind = values.dtype.str[1:] if values.dtype.kind == "u" else values.dtype.kind
    low, top = values.min(initial=0), values.max(initial=0)
    if is_binary(values) and not (least and top == 1 and kind in WHITE):
        return np.asarray(values != 0)
    white = {**WHITE, "f": 1}.get(kind)
    if white is None or not (low >= 0 and top <= white):
        raise DataError(
            f"{what}: {described(values)}, expected 0 and 1, 0 and 255, or gray in uint8, uint16 "
            "or floats from 0 to 1"
        )
    cut = cuts[list((*WHITE, "f")).index(kind)]
    if not least and kind in WHITE and top <= cut:
        raise DataError(f"{what}: {described(values)}, expected 0 and 1, or values up to {white}")
    return np.asarray(values >= cut if least else values > cut)


def scale_of(values: NDArray[Any], cut: float = 0) -> str:
    """The scale of an 8- or 16-bit map: 0 and 1 could be a mask, or noise of a gray map.

    "0/1", "full", "faint" where nothing reaches `cut`, a share of white; "" where nothing says.
    """
    kind = values.dtype.str[1:]
    top = values.max(initial=0) if kind in WHITE else 0
    if not top:
        return ""
    if cut:
        binary = top in (255, 65535) and is_binary(values)
        return "full" if binary or top >= cut * WHITE[kind] else "faint"
    return "0/1" if top == 1 else "full"


def one_scale(scales: Iterable[str], what: str) -> str:
    """The scale of an image's maps: all of 0 and 1, or all gray."""
    found = set(scales)
    if {"0/1", "full"} <= found:
        raise DataError(f"{what}: some maps up to 1, some up to white, expected one scale")
    return max(found, default="")  # "full" before "faint", and before none


def whole_labels(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The one rule for labels: integers stay, bool is 0 and 1, floats must be whole and exact."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind != "f":
        return values
    low, high = values.min(initial=0), values.max(initial=0)
    parts = np.array_split(values, 1 + (values.size >> 20))  # little memory beside the map
    if not (low >= -(2**53) and high <= 2**53 and all((x == np.rint(x)).all() for x in parts)):
        raise DataError(
            f"{what}: label values that are not whole numbers, from {low:g} to {high:g}, expected "
            "integer labels"
        )
    return values.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.int64)


def same_shape(pred: tuple[int, ...], gt: tuple[int, ...], what: str = "prediction") -> None:
    """Raise ShapeError unless the prediction has the size of the ground truth."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}")
