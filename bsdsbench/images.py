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
# parts with other axes than (H, W), or other than any real numbers
_AXES = {"classes": (2, 3), "class_boundaries": (3,), "photo": (3,)}
_DTYPE_KINDS = {"segs": "biu", "segmentations": "biu", "photo": "u"}
_LABELS = ("labels", "instances", "classes")


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines and their junctions; none is checked here.

    ends      : (N, 4), row column row column; scores : (N,), of predicted lines
    junctions : (M, 3), row, column and score; None where a file has none
    grid      : rows and columns that the coordinates are in; None where the file does not say
    """

    ends: F8
    scores: F8
    junctions: F8 | None = None
    grid: tuple[int, int] | None = None


@frozen(eq=False, init=False)
class ImageParts:
    """What is known of an image: parts by name, each also an attribute.

    Reading a part that is not there raises DataError, so that no metric has to look before;
    `parts` tells what is there. Types, shapes, values and that all have one size are checked here,
    once: what counts them relies on it.
    """

    image_id: str
    path: Path | None
    parts: Mapping[str, Any]
    shape: tuple[int, int]
    evidence: Evidence

    known: ClassVar[Sequence[str]]
    several: ClassVar[Sequence[str]]  # tuples, of one array per threshold or annotator

    def __init__(
        self, image_id: str, path: Path | None, evidence: Evidence | None, **given: object
    ) -> None:
        owner, parts, shape = type(self).__name__, dict[str, Any](), (0, 0)
        if not isinstance(image_id, str):
            raise DataError(f"{owner}.image_id: {kind_of_value(image_id)}, expected text")
        for name, value in given.items():
            what, is_tuple, maps = f"{owner}.{name}", name in self.several, []
            if name not in self.known:
                raise DataError(f"{what}: expected one of {', '.join(self.known)}")
            if value is None or name == "lines":
                parts |= {} if value is None else {name: value}
                continue
            axes, kinds = _AXES.get(name, (2,)), _DTYPE_KINDS.get(name, "biuf")
            for number, item in enumerate(
                given_list(value, what, "a list") if is_tuple else [value], 1
            ):
                array = given_array(item, what)
                if array.dtype.kind not in kinds or array.ndim not in axes:
                    expected = "numbers" if "f" in kinds else "integers"
                    expected += f" and {' or '.join(map(str, axes))} axes"
                    fix = stack_ways(array.shape) if axes == (2,) else ()
                    fault = f"{what}: {kind_of_value(array)}, expected {expected}"
                    raise DataError(fault, fix=fix)
                if name in _LABELS and array.ndim == 2:
                    array = whole_labels(array, "label map")
                elif name in ("soft", "ucm2"):
                    array = soft_map(array, "ucm2" if name == "ucm2" else "soft map")
                elif name in ("boundaries", "mask"):
                    array = binary_map(array, f"ground truth {number}" if is_tuple else what)
                maps.append(array != 0 if name == "valid" else array)
                if name != "photo":
                    rows, cols = array.shape[-2:]
                    size = ((rows - 1) // 2, (cols - 1) // 2) if name == "ucm2" else (rows, cols)
                    shape = size if shape == (0, 0) else shape
                    same_shape(size, shape, what)
            parts[name] = tuple(maps) if is_tuple else maps[0]
        self.__attrs_init__(image_id, path, parts, shape, evidence or NO_EVIDENCE)

    @property
    def where(self) -> str:
        """Its file, or its id, for errors."""
        return show(self.path or self.image_id)

    @property
    def file(self) -> str:
        """The name of its file, or its id."""
        return self.path.name if self.path else self.image_id

    def __getattr__(self, name: str) -> Any:
        if name not in self.known:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if name not in self.parts:
            has = [k for k, part in self.parts.items() if not isinstance(part, tuple) or part]
            raise MissingPartError(Problem(self.where, f"has {', '.join(has) or 'nothing'}", name))
        return self.parts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.parts]


class Prediction(ImageParts):
    """One image's output of an algorithm, in exactly one of five forms.

    Raises DataError, as reading another form does.

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
        (H, W) radians, beside a soft map whose edges have an orientation.
    lines : Lines
        Straight lines, beside the soft map that they are drawn as.
    evidence : Evidence or None
        What the values of its files show.

    Attributes
    ----------
    parts : dict
        What was given, by the names above.
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
            has = ", ".join(self.parts) or "nothing"
            raise DataError(f"Prediction: has {has}, expected one of {', '.join(_FORMS)}")

    @classmethod
    def of(cls, pred: Map | Prediction) -> Prediction:
        """Return a prediction as it is, of an array the one of a soft map."""
        return pred if isinstance(pred, Prediction) else cls("prediction", soft=pred)

    @property
    def kind(self) -> str:
        return min(self.parts.keys() & set(_FORMS))

    @property
    def form(self) -> str:
        """Return the form in a word, for signatures; of soft maps soft8, soft16, binary, float."""
        if self.kind != "soft":
            return self.kind
        words = {"u1": "soft8", "u2": "soft16", "b1": "binary"}
        return words.get(self.soft.dtype.str[1:], "float")

    def boundary_map(self) -> Map:
        """The (H, W) soft map: itself, or ucm2[2::2, 2::2] (official boundaryBench).

        Raises DataError for segmentations.

        Returns
        -------
        array
            (H, W), as stored.
        """
        # contiguous: counting runs along rows
        return np.ascontiguousarray(self.ucm2[2::2, 2::2]) if self.kind == "ucm2" else self.soft


class Fingerprints(NamedTuple):
    """Both versions of a ground truth's fingerprint.

    `listed` is version 1, by which known sets are listed, `whole` version 2, of all that is
    annotated.
    """

    listed: str
    whole: str


def _narrowest(array: Map) -> str:
    """Return the first of four types that holds the labels, whatever type they came in."""
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    limits = {kind: np.iinfo(kind) for kind in ("<u1", "<i4", "<i8", "<u8")}
    return next(kind for kind, has in limits.items() if has.min <= low and high <= has.max)


class GroundTruth(ImageParts):
    """One image's human annotations; which parts are there depends on what was asked for.

    Parameters
    ----------
    image_id : str
        The image's id.
    boundaries : tuple of array
        Tuple of (H, W) bool, one per annotator; empty where there are none.
    segmentations : tuple of array
        Tuple of (H, W) integer label maps, one per annotator, where the data set has more than
        boundaries.
    path : path or None
        The file it was read from, or None.
    evidence : Evidence or None
        What the values of its files show.
    labels : array
        (H, W) class labels, kept as integers (`whole_labels`).
    class_boundaries : array
        (C, H, W) bool, where there are boundaries of classes and no labels, or both.
    instances : array
        (H, W), which instance a pixel belongs to, where class labels have them; kept as integers.
    mask : array
        (H, W) bool, the object.
    photo : array
        (H, W, 3) uint8, the picture itself.
    depth : array
        (H, W) numbers, depth or inverse depth, also NaN and infinite.
    valid : array
        (H, W) bool, the pixels that are counted, all where it is not there: those of known depth,
        or those that are not void. Void is neither object nor ground and counts nowhere, whatever
        mask, boundaries and prediction have there.
    angles : tuple of array
        (H, W) radians per annotator, where boundaries have an orientation.
    lines : Lines
        Straight lines, beside the boundaries that they are drawn as.

    Attributes
    ----------
    parts : dict
        What was given, by the names above.
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
        drawn = {"boundaries": boundaries, "segmentations": segmentations}
        super().__init__(image_id, path, evidence, **drawn, **parts)

    @classmethod
    def of(cls, gts: Sequence[Map] | GroundTruth) -> GroundTruth:
        """Return a ground truth as it is, of the boundary maps of annotators one of these."""
        return gts if isinstance(gts, GroundTruth) else cls("ground truth", gts)

    @property
    def fingerprint(self) -> str:
        """The annotations as 16 hex digits, whatever the file format.

        >>> GroundTruth("a", (np.eye(3, 4, dtype=bool),)).fingerprint
        'f55623f951edd08d'
        """
        return self.fingerprints().whole

    def fingerprints(self, whole: bool = True) -> Fingerprints:
        """Return both versions of the fingerprint; without `whole` the second is "".

        Version 1 begins sha256 over "ROWSxCOLSxANNOTATORS\\n" in ASCII, then each annotator's
        boundaries in order, one bit per pixel (row-major, big bit order), then what else is
        annotated, each as "NUMBER SHAPE\\n" and its values, integers in four bytes and others in
        eight, little-endian. Boundaries stand for the segmentations that they were made of.

        Version 2 goes on with what version 1 does not hold, integers that four bytes wrap and
        segmentations beside boundaries, each as "NUMBER SHAPE TYPE\\n" and its values in the first
        of the types u1, i4, i8, u8 that holds them. Where there is nothing of that both are equal.
        """
        digest = hashlib.sha256(b"%dx%dx%d\n" % (*self.shape, len(self.boundaries)))
        for drawn in self.boundaries:
            digest.update(np.packbits(drawn).tobytes())
        names = "labels", "instances", "class_boundaries", "mask", "depth", "valid"
        others = [*map(self.parts.get, names), *self.parts.get("angles", ())]
        others += [self.lines.ends, self.lines.junctions] if "lines" in self.parts else []
        segmentations = list(self.parts.get("segmentations", ()))
        others += [] if self.boundaries else segmentations
        wrapped = []
        for number, array in enumerate(others):
            if array is not None:
                digest.update(f"{number} {array.shape}\n".encode())
                digest.update(array.astype("<f8" if array.dtype.kind == "f" else "<i4").tobytes())
                if array.dtype.kind in "iu" and array.itemsize >= 4:
                    wrapped += [(number, array)] * (_narrowest(array) in ("<i8", "<u8"))
        listed = digest.hexdigest()[:16]
        if not whole:
            return Fingerprints(listed, "")
        beside = segmentations if self.boundaries else []
        for number, array in [*wrapped, *enumerate(beside, len(others))]:
            kind = _narrowest(array)
            digest.update(f"{number} {array.shape} {kind[1:]}\n".encode())
            digest.update(array.astype(kind).tobytes())
        return Fingerprints(listed, digest.hexdigest()[:16])

    def replace(self, **parts: object) -> GroundTruth:
        """The same with other parts; None takes one away."""
        kept = {"path": self.path, "evidence": self.evidence, **self.parts}
        return GroundTruth(self.image_id, **{**kept, **parts})


def one_map(values: object, what: str) -> Map:
    """Return an array that has two axes. Raises ShapeError, for a stack with ways to one map."""
    array = given_array(values, what)
    if array.ndim != 2:
        fault = f"{what}: shape {array.shape}, expected (rows, columns)"
        raise ShapeError(fault, fix=stack_ways(array.shape))
    return array


def one_channel(array: Map) -> Map:
    """Return a map (H, W, 1) as (H, W); any other array is returned unchanged."""
    alone = array.ndim == 3 and array.shape[2] == 1 < min(array.shape[:2])
    return array[:, :, 0] if alone else array


def stack_ways(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return what makes one map of a stack (C, H, W) or (H, W, C) of several, in words.

    >>> stack_ways((48, 64, 2))[0]
    'one of the 2 maps along axis 2: array[:, :, k]'
    """
    if len(shape) != 3 or 1 in shape:
        return ()
    axis = 2 if shape[2] < shape[0] else 0
    one = f"one of the {shape[axis]} maps along axis {axis}: array[{':, :, k' if axis else 'k'}]"
    return one, f"of classes: numpy.argmax(array, axis={axis}), for a metric of classes"


def soft_map(pred: object, what: str = "prediction") -> Map:
    """Return a soft map that was checked: (H, W) bool, uint8, uint16, or floats in [0, 1].

    Floats come as float32 (half precision too) or float64; nothing is copied that need not be.
    """
    soft = one_map(pred, what)
    kind, size = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and size <= 2):
        raise DataError(
            f"{what}: dtype {described(soft)}, expected uint8, uint16, bool or floats in [0, 1]",
            fix=Setting("pred_kind", "labels", "for label maps"),
        )
    if kind != "f":
        return soft
    soft = soft.astype(np.float32 if size <= 4 else np.float64, copy=False)
    # One pass over sound maps: as integers, NaN, what is above 1 and what has a sign exceed 1.
    bits, one = soft.view(f"u{soft.itemsize}"), np.ones(1, soft.dtype)
    if not soft.size or bits.max() <= one.view(bits.dtype)[0]:
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
    sound = not (math.isnan(low) or math.isnan(high))
    raise DataError(
        f"{what}: values from {span}, expected floats in [0, 1]", fix=(fix,) if sound else ()
    )


def without_void(maps: Map, valid: Bool | None) -> Map:
    """Return a map (..., H, W) with 0 where pixels are void."""
    return maps if valid is None else np.where(valid, maps, maps.dtype.type(0))


def unit(soft: Map) -> F8:
    """Return a sound soft map as float64 in [0, 1]: value/255 for uint8, value/65535 for uint16."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def described(values: Map) -> str:
    """Return the type and the range of a map, for errors."""
    span = f" with values from {values.min()} to {values.max()}" if values.size else ""
    return f"{values.dtype}{span}"


def annotated_maps(gt: GroundTruth) -> Bool:
    """Return the boundaries of all annotators without void pixels: (A, H, W) bool."""
    if not gt.boundaries:
        raise DataError("ground truth: no annotators, expected at least one")
    # np.stack takes four times as long for small maps
    return without_void(np.array(gt.boundaries), gt.parts.get("valid"))


def annotated_masks(gt: GroundTruth) -> Bool:
    """Return the masks of crack sets, which have them beside their outlines, or `annotated_maps`.

    For what counts pixels or objects rather than boundaries.
    """
    return np.asarray(gt.mask[None]) if "mask" in gt.parts else annotated_maps(gt)


def binary_map(values: Map, what: str) -> Bool:
    """Return a map (H, W) of 0 and 1, 0 and 255 or 0 and 65535, in any dtype, as bool."""
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
    """Return True if a map holds nothing but 0 and one of 1, 255 and 65535."""
    if values.dtype == np.bool_:
        return True
    top = values.max(initial=0)
    return top in (0, 1, 255, 65535) and not ((values != 0) & (values != top)).any()


def few_lines(values: Map) -> Map:
    """Return about 16 rows of a map, or columns where it is stored by these: both in its order."""
    by_columns = values.strides[0] < values.strides[1]
    lines = values.T if by_columns else values
    return lines[:: 1 + len(lines) // 16]


def whole_labels(values: Map, what: str) -> Map:
    """Return checked labels: integers stay, bool is 0 and 1, floats must be whole and exact."""
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
    """Raise ShapeError unless the prediction has the size of the ground truth."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}")


def refuse_channels(maps: Sequence[Map], what: str, expected: str) -> None:
    """Raise DataError for maps that add up to one at every pixel, which marks one-hot classes.

    So do probabilities, one-hot maps, both in any scale, and the inversion of either. Maps of one
    value each say nothing, and two annotators who draw lines leave most pixels free.
    """
    n = len(maps)
    if n < 2 or len(set(map(np.shape, maps))) > 1:
        return
    integers = all(drawn.dtype.kind in "iub" for drawn in maps)
    top = max(1 if drawn.dtype == bool else np.max(drawn, initial=0) for drawn in maps)
    one = next((white for white in (1, 255, 65535) if top <= white), 0) if integers else 1
    slack = n * (one > 1) if integers else 0.02
    for part in (np.s_[:1, :1], np.s_[:1], np.s_[:]):  # of most maps the first pixel is enough
        total = np.sum(list(map(itemgetter(part), maps)), axis=0, dtype=np.float64)
        if not any((np.abs(total - full) <= slack).all() for full in (one, (n - 1) * one)):
            return
    if any(drawn.min() < drawn.max() for drawn in maps):
        raise DataError(
            f"{what}{n} maps that add up to one in every pixel, expected {expected}",
            fix=(
                "of classes: numpy.argmax(maps, axis=0) is their label map",
                "save the map of one class, (H, W)",
            ),
        )
