"""The inputs of metrics: a prediction, and an image's ground truth. No disk access here."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.arguments import F8, Bool, given_array, given_list, kind_of_value
from bsdsbench.errors import DataError, MissingPartError, Problem, Setting, ShapeError
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence
from bsdsbench.text import show

Map = NDArray[Any]
_FORMS = ("soft", "ucm2", "segs", "classes", "depth")
# Allowed numbers of axes and kinds of dtypes, if other than (H, W) and any real numbers
_AXES = {"classes": (2, 3), "class_boundaries": (3,), "photo": (3,)}
_DTYPE_KINDS = {"segs": "biu", "segmentations": "biu", "photo": "u"}
_LABELS = ("labels", "instances", "classes")


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines and their junctions. No value is checked.

    `ends` (N, 4) holds the row and column of both ends, `scores` (N,) the strength of each
    predicted line. `junctions` (M, 3) holds row, column and score, or is None if the file has none.
    `grid` is the size (rows, columns) in which the coordinates are measured, or None if the file
    does not say.
    """

    ends: F8
    scores: F8
    junctions: F8 | None = None
    grid: tuple[int, int] | None = None


@frozen(eq=False, init=False)
class ImageParts:
    """Base class of a metric's inputs: parts by name, each also an attribute.

    `parts` holds the parts that are present. Reading an absent part raises DataError, so a metric
    need not check for presence. Types, shapes and values are checked when the object is made, and
    that all parts have one size. The code that counts relies on these checks.
    """

    image_id: str
    path: Path | None
    parts: Mapping[str, Any]
    shape: tuple[int, int]
    evidence: Evidence

    known: ClassVar[Sequence[str]]
    several: ClassVar[Sequence[str]]  # names of tuples with one array per threshold or annotator

    def __init__(
        self, image_id: str, path: Path | None, evidence: Evidence | None, **given: object
    ) -> None:
        """Check the given parts, by name, and keep those that are not None. Raises DataError."""
        owner = type(self).__name__
        parts: dict[str, Any] = {}
        shape = (0, 0)
        if not isinstance(image_id, str):
            raise DataError(f"{owner}.image_id: {kind_of_value(image_id)}, expected text")
        for name, value in given.items():
            label = f"{owner}.{name}"
            if name not in self.known:
                raise DataError(f"{label}: expected one of {', '.join(self.known)}")
            if value is None:
                continue
            if name == "lines":
                parts[name] = value
                continue
            is_tuple = name in self.several
            arrays = []
            for number, item in enumerate(
                given_list(value, label, "a list") if is_tuple else [value], 1
            ):
                array = _checked_part(
                    name, item, label, f"ground truth {number}" if is_tuple else label
                )
                arrays.append(array)
                if name != "photo":
                    rows, cols = array.shape[-2:]
                    size = ((rows - 1) // 2, (cols - 1) // 2) if name == "ucm2" else (rows, cols)
                    shape = size if shape == (0, 0) else shape
                    same_shape(size, shape, label)
            parts[name] = tuple(arrays) if is_tuple else arrays[0]
        self.__attrs_init__(image_id, path, parts, shape, evidence or NO_EVIDENCE)

    @property
    def where(self) -> str:
        """The path, or the image id if there is no path. Used in error messages."""
        return show(self.path or self.image_id)

    @property
    def file(self) -> str:
        """The name of the file, or the image id if there is no file."""
        return self.path.name if self.path else self.image_id

    def __getattr__(self, name: str) -> Any:
        """Return a part. Raises MissingPartError if it is absent, AttributeError for
        other names.
        """
        if name not in self.known:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if name not in self.parts:
            present = [k for k, part in self.parts.items() if not isinstance(part, tuple) or part]
            has = f"has {', '.join(present) or 'nothing'}"
            raise MissingPartError(Problem(self.where, has, name))
        return self.parts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.parts]


def _checked_part(name: str, value: object, label: str, map_label: str) -> Map:
    """Check one array of a part and return it in the dtype in which it is counted. `label` names
    the part in errors, `map_label` a map that is not binary.
    """
    array = given_array(value, label)
    n_axes = _AXES.get(name, (2,))
    kinds = _DTYPE_KINDS.get(name, "biuf")
    if array.dtype.kind not in kinds or array.ndim not in n_axes:
        expected = "numbers" if "f" in kinds else "integers"
        expected += f" and {' or '.join(map(str, n_axes))} axes"
        fix = suggest_one_map(array.shape) if n_axes == (2,) else ()
        raise DataError(f"{label}: {kind_of_value(array)}, expected {expected}", fix=fix)
    if name in _LABELS and array.ndim == 2:
        return whole_labels(array, "label map")
    if name in ("soft", "ucm2"):
        return check_soft_map(array, "ucm2" if name == "ucm2" else "soft map")
    if name in ("boundaries", "mask"):
        return binary_map(array, map_label)
    return array != 0 if name == "valid" else array


class Prediction(ImageParts):
    """One image's output of an algorithm, in exactly one of five forms.

    Raises DataError for parts of no form or of several forms, and when an absent part is read.

    Parameters
    ----------
    image_id : str
        The image's id.
    path : path or None
        The file it was read from, or None.
    soft : array
        (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1].
    ucm2 : array
        (2H+1, 2W+1) float64, ultrametric contour map at double size, in [0, 1].
    segs : tuple of array
        Tuple of (H, W) integer label maps, one per threshold 1..n.
    classes : array
        (H, W) class labels, kept as integers (`whole_labels`), or (C, H, W) soft maps or bool, one
        per class.
    depth : array
        (H, W) numbers, depth or inverse depth, also NaN and infinite.
    angles : array
        (H, W) radians, the orientation of the edges in `soft`.
    lines : Lines
        Straight lines, beside the soft map that they are drawn as.
    evidence : Evidence or None
        Properties of the values in its files.

    Attributes
    ----------
    parts : dict
        The given parts, by the names above.
    shape : tuple of int
        (rows, columns) of the image the prediction is for.
    kind : str
        The form: soft, ucm2, segs, classes, depth.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Prediction("a", soft=np.zeros((3, 4)))
    >>> pred.kind, pred.shape, pred.boundary_map().shape
    ('soft', (3, 4), (3, 4))
    """

    __slots__ = ()
    known = (*_FORMS, "angles", "lines")
    several = ("segs",)

    def __init__(
        self,
        image_id: str,
        path: Path | None = None,
        *,
        evidence: Evidence | None = None,
        **parts: object,
    ) -> None:
        super().__init__(image_id, path, evidence, **parts)
        if len(self.parts.keys() & set(_FORMS)) != 1:
            present = ", ".join(self.parts) or "nothing"
            raise DataError(f"Prediction: has {present}, expected one of {', '.join(_FORMS)}")

    @classmethod
    def of(cls, pred: Map | Prediction) -> Prediction:
        """Return a Prediction unchanged; wrap a soft map (H, W) in a Prediction."""
        return pred if isinstance(pred, Prediction) else cls("prediction", soft=pred)

    @property
    def kind(self) -> str:
        """The form of the prediction."""
        return min(self.parts.keys() & set(_FORMS))

    @property
    def form(self) -> str:
        """The form as one word for signatures. Soft maps: "soft8", "soft16", "binary", "float"."""
        if self.kind != "soft":
            return self.kind
        names = {"u1": "soft8", "u2": "soft16", "b1": "binary"}
        return names.get(self.soft.dtype.str[1:], "float")

    def boundary_map(self) -> Map:
        """Return the soft map (H, W): `soft`, or ucm2[2::2, 2::2] as the official boundaryBench.

        Raises DataError if the prediction has neither.

        Returns
        -------
        array
            (H, W), as stored.
        """
        # contiguous: counting runs along rows
        return np.ascontiguousarray(self.ucm2[2::2, 2::2]) if self.kind == "ucm2" else self.soft


class Fingerprints(NamedTuple):
    """Both versions of a ground truth's fingerprint.

    `listed` is version 1, which the list of known sets uses. `whole` is version 2, which covers all
    annotated parts.
    """

    listed: str
    whole: str


def _narrowest(array: Map) -> str:
    """Return the first of "<u1", "<i4", "<int64" and "<u8" that can hold all labels."""
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    limits = {kind: np.iinfo(kind) for kind in ("<u1", "<i4", "<i8", "<u8")}
    return next(kind for kind, limit in limits.items() if limit.min <= low and high <= limit.max)


class GroundTruth(ImageParts):
    """The human annotations of one image. The metric decides which parts are read.

    Parameters
    ----------
    image_id : str
        The image's id.
    boundaries : tuple of array
        Tuple of (H, W) bool, one per annotator; empty if the set has no boundaries.
    segmentations : tuple of array
        Tuple of (H, W) integer label maps, one per annotator, if the data set has segmentations.
    path : path or None
        The file it was read from, or None.
    evidence : Evidence or None
        Properties of the values in its files.
    labels : array
        (H, W) class labels, kept as integers (`whole_labels`).
    class_boundaries : array
        (C, H, W) bool, the boundaries of each class; with or without `labels`.
    instances : array
        (H, W) integers, the instance of each pixel; only beside class labels.
    mask : array
        (H, W) bool, the object.
    photo : array
        (H, W, 3) uint8, the image itself.
    depth : array
        (H, W) numbers, depth or inverse depth, also NaN and infinite.
    valid : array
        (H, W) bool, the pixels that are counted: those of known depth, or those that are not
        void. Void pixels are neither object nor background and count nowhere, whatever values
        the other maps have at them. Without it all pixels are counted.
    angles : tuple of array
        (H, W) radians per annotator, if boundaries have an orientation.
    lines : Lines
        Straight lines, beside the boundaries that they are drawn as.

    Attributes
    ----------
    parts : dict
        The given parts, by the names above.
    shape : tuple of int
        (rows, columns).

    Examples
    --------
    >>> import numpy as np
    >>> truth = GroundTruth("a", (np.eye(3, dtype=bool),))
    >>> truth.shape, len(truth.boundaries), "mask" in truth.parts
    ((3, 3), 1, False)
    """

    __slots__ = ()
    several = ("boundaries", "segmentations", "angles")
    known = (
        *several,
        "labels",
        "class_boundaries",
        "instances",
        "mask",
        "photo",
        "depth",
        "valid",
        "lines",
    )

    def __init__(
        self,
        image_id: str,
        boundaries: Sequence[object] = (),
        segmentations: Sequence[Any] | None = None,
        path: Path | None = None,
        *,
        evidence: Evidence | None = None,
        **parts: object,
    ) -> None:
        annotations = {"boundaries": boundaries, "segmentations": segmentations}
        super().__init__(image_id, path, evidence, **annotations, **parts)

    @classmethod
    def of(cls, gts: Sequence[Map] | GroundTruth) -> GroundTruth:
        """Return a GroundTruth unchanged; wrap the boundary maps of annotators in a GroundTruth."""
        return gts if isinstance(gts, GroundTruth) else cls("ground truth", gts)

    @property
    def fingerprint(self) -> str:
        """A hash of the annotations as 16 hex digits, equal for all file formats.

        >>> GroundTruth("a", (np.eye(3, 4, dtype=bool),)).fingerprint
        'f55623f951edd08d'
        """
        return self.fingerprints().whole

    def fingerprints(self, whole: bool = True) -> Fingerprints:
        """Return both versions of the fingerprint. Without `whole` the second version is "".

        Version 1 is the beginning of the sha256 over these bytes:

        1. "ROWSxCOLSxANNOTATORS\\n" in ASCII.
        2. The boundaries of each annotator, one bit per pixel (row-major, big bit order).
        3. Every other part as "NUMBER SHAPE\\n" and its values, little-endian: integers in four
           bytes, floats in eight. Segmentations are skipped if the image has boundaries.

        Version 2 continues with integers that four bytes would wrap, and with segmentations beside
        boundaries. Each array is written as "NUMBER SHAPE TYPE\\n" and its values in the first of
        the types u1, i4, int64, u8 that holds them. Without such arrays both versions are equal.
        """
        digest = hashlib.sha256(b"%dx%dx%d\n" % (*self.shape, len(self.boundaries)))
        for boundaries in self.boundaries:
            digest.update(np.packbits(boundaries).tobytes())
        names = "labels", "instances", "class_boundaries", "mask", "depth", "valid"
        further_parts = [*map(self.parts.get, names), *self.parts.get("angles", ())]
        if "lines" in self.parts:
            further_parts += [self.lines.ends, self.lines.junctions]
        segmentations = list(self.parts.get("segmentations", ()))
        if not self.boundaries:
            further_parts += segmentations
        wrapped = []
        for number, array in enumerate(further_parts):
            if array is not None:
                digest.update(f"{number} {array.shape}\n".encode())
                digest.update(array.astype("<f8" if array.dtype.kind == "f" else "<i4").tobytes())
                may_wrap = array.dtype.kind in "iu" and array.itemsize >= 4
                if may_wrap and _narrowest(array) in ("<i8", "<u8"):
                    wrapped.append((number, array))
        listed = digest.hexdigest()[:16]
        if not whole:
            return Fingerprints(listed, "")
        not_hashed = segmentations if self.boundaries else []
        for number, array in [*wrapped, *enumerate(not_hashed, len(further_parts))]:
            kind = _narrowest(array)
            digest.update(f"{number} {array.shape} {kind[1:]}\n".encode())
            digest.update(array.astype(kind).tobytes())
        return Fingerprints(listed, digest.hexdigest()[:16])

    def replace(self, **parts: object) -> GroundTruth:
        """Return a copy with other parts. None removes a part."""
        unchanged = {"path": self.path, "evidence": self.evidence, **self.parts}
        return GroundTruth(self.image_id, **{**unchanged, **parts})


def one_map(values: object, what: str) -> Map:
    """Return the values as an array with two axes.

    Raises ShapeError for another shape. For a stack of maps the error suggests how to make one map.
    """
    array = given_array(values, what)
    if array.ndim != 2:
        fault = f"{what}: shape {array.shape}, expected (rows, columns)"
        raise ShapeError(fault, fix=suggest_one_map(array.shape))
    return array


def one_channel(array: Map) -> Map:
    """Drop the last axis of a map (H, W, 1). Any other array is returned unchanged."""
    is_single = array.ndim == 3 and array.shape[2] == 1 < min(array.shape[:2])
    return array[:, :, 0] if is_single else array


def suggest_one_map(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Suggest how to make one map of a stack (C, H, W) or (H, W, C). Return () for another shape.

    >>> suggest_one_map((48, 64, 2))[0]
    'one of the 2 maps along axis 2: array[:, :, k]'
    """
    if len(shape) != 3 or 1 in shape:
        return ()
    axis = 2 if shape[2] < shape[0] else 0
    index = ":, :, k" if axis else "k"
    single = f"one of the {shape[axis]} maps along axis {axis}: array[{index}]"
    return single, f"of classes: numpy.argmax(array, axis={axis}), for a metric of classes"


def check_soft_map(pred: object, what: str = "prediction") -> Map:
    """Check a soft map (H, W): bool, uint8, uint16, or floats in [0, 1].

    Float16 becomes float32. Other sound maps are returned without a copy. Raises DataError for
    another dtype or range, and ShapeError for another shape.
    """
    soft = one_map(pred, what)
    kind, n_bytes = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and n_bytes <= 2):
        raise DataError(
            f"{what}: dtype {described(soft)}, expected uint8, uint16, bool or floats in [0, 1]",
            fix=Setting("pred_kind", "labels", "for label maps"),
        )
    if kind != "f":
        return soft
    soft = soft.astype(np.float32 if n_bytes <= 4 else np.float64, copy=False)
    # Fast path in one pass: read as unsigned integers, NaN, negative values and values above 1 all
    # exceed the bits of 1.0
    bits = soft.view(f"u{soft.itemsize}")
    bits_of_1 = np.ones(1, soft.dtype).view(bits.dtype)[0]
    if not soft.size or bits.max() <= bits_of_1:
        return soft
    low, high = float(soft.min()), float(soft.max())
    if low >= 0 and high <= 1:
        return soft
    fix = "divide by 255, if it is 0..255 as float"
    if low >= -0.05 and high <= 1.05:
        fix = "clip to [0, 1], if a resize overshot"
    elif low < 0:
        fix = "apply the sigmoid, if it is raw network output"
    span = f"{soft.min():.6g} to {soft.max():.6g}"
    has_nan = math.isnan(low) or math.isnan(high)
    raise DataError(
        f"{what}: values from {span}, expected floats in [0, 1]", fix=() if has_nan else (fix,)
    )


def without_void(maps: Map, valid: Bool | None) -> Map:
    """Return maps (..., H, W) with void pixels set to 0. `valid` is None if no pixel is void."""
    return maps if valid is None else np.where(valid, maps, maps.dtype.type(0))


def unit(soft: Map) -> F8:
    """Convert a checked soft map to float64 in [0, 1]: value/255 for uint8, /65535 for uint16."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def described(values: Map) -> str:
    """Describe the dtype and the range of a map for an error message."""
    span = f" with values from {values.min()} to {values.max()}" if values.size else ""
    return f"{values.dtype}{span}"


def annotated_maps(gt: GroundTruth) -> Bool:
    """Stack the boundaries of all annotators, with void pixels set to 0: bool (A, H, W).

    Raises DataError if the ground truth has no annotators.
    """
    if not gt.boundaries:
        raise DataError("ground truth: no annotators, expected at least one")
    # np.stack takes four times as long for small maps
    return without_void(np.array(gt.boundaries), gt.parts.get("valid"))


def annotated_masks(gt: GroundTruth) -> Bool:
    """Return the object mask of a crack set as (1, H, W), or `annotated_maps` if there is no mask.

    Metrics that count pixels or objects, rather than boundaries, use it.
    """
    return np.asarray(gt.mask[None]) if "mask" in gt.parts else annotated_maps(gt)


def binary_map(values: Map, what: str) -> Bool:
    """Convert a map (H, W) of 0 and 1, 0 and 255 or 0 and 65535 to bool. Any dtype is accepted.

    Raises DataError for other values, and ShapeError for another shape.
    """
    values = one_map(values, what)
    if values.dtype == bool:
        return values
    if values.dtype == np.uint8 and values.max(initial=0) <= 1:
        return values.view(np.bool_)
    if not is_binary(values):
        raise DataError(
            f"{what}: values other than 0 and 1, {described(values)}, expected a map of 0 and 1, "
            "or of 0 and 255"
        )
    return np.asarray(values != 0)


def is_binary(values: Map) -> bool:
    """Return True if all values are 0 or one other value, which is 1, 255 or 65535."""
    if values.dtype == np.bool_:
        return True
    top = values.max(initial=0)
    return top in (0, 1, 255, 65535) and not ((values != 0) & (values != top)).any()


def few_lines(values: Map) -> Map:
    """Sample about 16 rows of a map, or about 16 columns if the map is stored by columns.

    Reading along the storage order is faster.
    """
    is_column_major = values.strides[0] < values.strides[1]
    lines = values.T if is_column_major else values
    return lines[:: 1 + len(lines) // 16]


def whole_labels(values: Map, what: str) -> Map:
    """Check labels and return them as integers.

    Integers stay unchanged, bool becomes 0 and 1. Raises DataError for floats that are not whole or
    exceed 2**53.
    """
    if values.dtype.kind != "f":
        return values.view(np.uint8) if values.dtype.kind == "b" else values
    low, high = values.min(initial=0), values.max(initial=0)
    if not (low >= -(2**53) and high <= 2**53 and (values == np.rint(values)).all()):
        raise DataError(
            f"{what}: label values that are not whole numbers, from {low:g} to {high:g}, expected "
            "integer labels"
        )
    return values.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.int64)


def same_shape(pred: tuple[int, ...], gt: tuple[int, ...], what: str = "prediction") -> None:
    """Raise ShapeError if a prediction and its ground truth differ in size."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}")


def refuse_channels(maps: Sequence[Map], what: str, expected: str) -> None:
    """Raise DataError if the maps add up to one in every pixel, as the channels of classes do.

    Probabilities and one-hot maps add up to one, in any scale, and their inversions to a constant.
    Maps of a single value are accepted. The lines of two annotators leave most pixels at 0.
    """
    n = len(maps)
    if n < 2 or len(set(map(np.shape, maps))) > 1:
        return
    white: float = 1
    slack = 0.02
    if all(channel.dtype.kind in "iub" for channel in maps):
        top = max(1 if channel.dtype == bool else np.max(channel, initial=0) for channel in maps)
        white = next((level for level in (1, 255, 65535) if top <= level), 0)
        slack = n if white > 1 else 0  # each map is rounded
    for region in (np.s_[:1, :1], np.s_[:1], np.s_[:]):  # the first pixel is enough for most maps
        total = np.sum(list(map(itemgetter(region), maps)), axis=0, dtype=np.float64)
        # Channels add up to white, inverted channels to n - 1 times white
        if not any((np.abs(total - full) <= slack).all() for full in (white, (n - 1) * white)):
            return
    if any(channel.min() < channel.max() for channel in maps):
        raise DataError(
            f"{what}{n} maps that add up to one in every pixel, expected {expected}",
            fix=(
                "of classes: numpy.argmax(maps, axis=0) is their label map",
                "save the map of one class, (H, W)",
            ),
        )
