"""The inputs of metrics: a prediction, and an image's ground truth. No disk access here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import (
    given_array,
    given_list,
    kind_of_value,
    refuse_mask,
    refuse_size,
)
from bsdsbench.files.errors import DataError, ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines and their junctions; none is checked here.

    Parameters
    ----------
    ends : array
        (N, 4) float, row column row column.
    scores : array
        (N,) float, of predicted lines.
    junctions : array or None
        (M, 3) float, row, column and score; None where a file has none.
    grid : tuple of int, int, or None
        The rows and columns that the coordinates are in; None where the file does not say.
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
        _settle(self, dict(soft=2, ucm2=2, depth=2, angles=2, classes=(2, 3), segs="biu"))
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
        maps = dict(labels=2, instances=2, mask=2, depth=2, valid=2, class_boundaries=3, photo=3)
        _settle(self, dict(boundaries="biuf", segmentations="biu", angles="biuf", **maps))
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
LABELS = ("labels", "instances", "classes")  # integers where they are (H, W)


def _settle(given: Any, fields: dict[str, Any]) -> None:
    """Check the id and the arrays of an input; lists become tuples, labels integers.

    fields : name -> number of axes, or of a list of (H, W) maps the kinds of their numbers
    Raises DataError.
    """
    kind = type(given).__name__
    if not isinstance(given.image_id, str):
        raise DataError(f"{kind}.image_id: {kind_of_value(given.image_id)}, expected text")
    for name, dims in fields.items():
        value, what = getattr(given, name), f"{kind}.{name}"
        if value is None:
            continue
        if isinstance(dims, str):
            value = tuple(given_list(value, what, "a list of (H, W) arrays"))
            for k, each in enumerate(value, 1):
                _check_map(each, f"{what} {k}", dims, (2,))
        else:
            dims = dims if isinstance(dims, tuple) else (dims,)
            _check_map(value, what, "u" if name == "photo" else "biuf", dims)
            if name in LABELS and value.ndim == 2:
                value = whole_labels(value, "label map")
        object.__setattr__(given, name, value)


def _check_map(value: object, what: str, kinds: str, dims: tuple[int, ...]) -> None:
    """Raise DataError unless `value` is an array of a kind of numbers and a number of axes."""
    refuse_mask(value, what)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        expected = "an array of numbers" if "f" in kinds else "integer labels"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    refuse_size(value, what)
    if value.ndim not in dims:
        axes = " or ".join(map(str, dims))
        raise DataError(f"{what}: shape {value.shape}, expected {axes} axes")


Bool = NDArray[np.bool_]


def soft_map(pred: Any, what: str = "prediction") -> NDArray[Any]:
    """The one rule for a soft map, wherever it comes from: files, arrays, streams, tensors.

    pred : (H, W) bool, uint8 (value/255), uint16 (value/65535), or float of any size in [0, 1];
           any byte order
    what : names it in errors

    Returns it in the byte order of this machine, floats as float32 or float64: half precision as
    float32, longer ones as float64. Nothing is copied that need not be. Raises ShapeError unless
    2-D, DataError for another dtype, values out of range, NaN.
    """
    soft = given_array(pred, what)
    if soft.ndim != 2:
        raise ShapeError(f"{what}: shape {soft.shape}, expected (rows, columns)")
    kind, size = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and size <= 2):
        raise DataError(
            f"{what}: dtype {described(soft)}, expected uint8, uint16, bool or "
            "floats in [0, 1] (label maps need pred_kind='labels', --pred-kind labels)"
        )
    if kind == "f":
        soft = soft.astype(np.float32 if size <= 4 else np.float64, copy=False)
        _check_unit(soft, what)
    return soft.astype(soft.dtype.newbyteorder("="), copy=False)


def described(values: NDArray[Any]) -> str:
    if not values.size:
        return str(values.dtype)
    return f"{values.dtype} with values from {values.min()} to {values.max()}"


def _check_unit(values: NDArray[Any], what: str) -> None:
    """Raise DataError unless every value lies in [0, 1]; the line says the probable reason."""
    if not values.size:
        return
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return
    if not np.isfinite(values).all():
        bad = int(values.size - np.isfinite(values).sum())
        raise DataError(
            f"{what}: {bad} of {values.size} values are NaN or infinite, expected floats in [0, 1]"
        )
    if low >= -0.05 and high <= 1.05:
        reason = "overshoot of a resize? clip to [0, 1]"
    elif low < 0:
        reason = "raw network output? apply the sigmoid"
    elif high <= 255:
        reason = "0..255 as float? divide by 255"
    elif high <= 65535:
        reason = "0..65535 as float? divide by 65535"
    else:
        reason = "scale to 0..1"
    raise DataError(
        f"{what}: values from {low:.6g} to {high:.6g}, expected floats in [0, 1] ({reason})"
    )


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

    bool, and two values as in `binary_map`, need no cut. uint8 and uint16 go up to 255 and 65535,
    floats to 1; whatever the values of one image, that is their scale.

    cuts  : what is above them is on, of uint8, uint16 and floats
    least : also what is equal, and 0 and 1 in uint8 and uint16 are gray too
    Raises DataError for other integers, floats outside [0, 1], and without `least` for integers
    none of which is above the cut: such a mask is of no known scale.
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
    """What an 8- or 16-bit map says about the scale of its set: 0 and 1 could be a mask, or noise
    of a gray map.

    "0/1", "full", "faint" where nothing reaches `cut`, a share of white; "" for other maps, and
    where all is 0.
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
    """The scale of an image's maps. Raises DataError where one is of 0 and 1 beside gray ones."""
    found = set(scales)
    if {"0/1", "full"} <= found:
        raise DataError(f"{what}: some maps up to 1, some up to white, expected one scale")
    return max(found, default="")  # "full" before "faint", and before none


def whole_labels(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The one rule for labels: integers are kept, bool is 0 and 1, floats must be whole numbers.

    Raises DataError for other floats, and those that are not exact (beyond 2^53).
    """
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
    """Raise ShapeError unless the prediction, or `what` it is, has the size of the ground truth."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}")
