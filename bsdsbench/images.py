"""The inputs to metrics: an image's prediction and its ground truth. Nothing here reads files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.arguments import (
    Bools,
    Floats,
    check_array,
    check_list,
    check_path,
    kind_of_value,
    suggest_one_map,
)
from bsdsbench.errors import DataError, Fix, MissingPartError, Problem, Setting, ShapeError
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence
from bsdsbench.text import show

Map = NDArray[Any]
_FORMS = ("soft", "ucm2", "segs", "classes", "depth")
_WORDS = {"soft": "soft maps", "segs": "segmentations"}  # of parts whose names are short forms
# Allowed axes and kinds of dtype (numpy's letters). Default: two axes, with bools or real numbers
_AXES = {"classes": (2, 3), "class_boundaries": (3,), "photo": (3,)}
_DTYPE_KINDS = {"photo": "u"}
_LABELS = ("labels", "instances", "classes", "segs", "segmentations")
_CLASS_MAPS = ("labels", "class_boundaries", "instances")
_AS_LABELS = Setting("pred_kind", "labels", "for label maps")


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines and their junctions. The values are not checked."""

    ends: Floats  # (N, 4): row, column, row, column of the two ends
    scores: Floats  # (N,), the strength of each predicted line
    junctions: Floats | None = None  # (M, 3): row, column and score; None if the file has none
    grid: tuple[int, int] | None = None  # (rows, columns) that coordinates span; None if unknown


@frozen(eq=False, init=False, slots=False)
class ImageParts:
    """Base class of Prediction and GroundTruth: an image's named maps and lines, called parts.

    Each part is also an attribute; reading an absent one raises MissingPartError. The constructor
    validates types, shapes and values, so that the counting code can rely on them.
    """

    image_id: str
    path: Path | None
    parts: Mapping[str, Any]  # the present parts by name
    shape: tuple[int, int]  # (H, W) of the image; (0, 0) without maps
    evidence: Evidence  # properties of the values, for consistency checks of a whole set

    part_names: ClassVar[Sequence[str]]  # of all parts that an object may have
    tuple_parts: ClassVar[Sequence[str]]  # names of those with an array per threshold or annotator

    def __init__(
        self, image_id: str, path: Path | None, evidence: Evidence | None, **given: object
    ) -> None:
        """Validate the parts `given` by name, such as mask=ARRAY, and store all that are not None.

        All maps except the photo must have the same size, with (2H+1, 2W+1) for a ucm2 (checked by
        `_set_parts`). `evidence` has properties of the values in the files, by which the whole set
        is checked, such as whether all masks have the same scale. Raises DataError, which names the
        part, for an unknown or invalid part.
        """
        owner = type(self).__name__
        if not isinstance(image_id, str):
            raise DataError(f"{owner}.image_id: {kind_of_value(image_id)}, expected text")
        path = None if path is None else check_path(path, f"{owner}.path")
        parts: dict[str, Any] = {}
        for name, value in given.items():
            label = f"{owner}.{name}"  # such as "GroundTruth.mask", for errors
            if name not in self.part_names:
                raise DataError(f"{label}: expected one of {', '.join(self.part_names)}")
            if value is None:
                continue
            if name == "lines":  # not checked
                parts[name] = value
            elif name in self.tuple_parts:  # such as one map for each annotator
                maps = []
                for k, array in enumerate(check_list(value, label, "a list"), 1):
                    # Errors about its values name the annotator
                    maps.append(_check_part(name, array, label, map_label=f"ground truth {k}"))
                parts[name] = tuple(maps)
            else:
                parts[name] = _check_part(name, value, label, label)
        self._set_parts(image_id, path, evidence or NO_EVIDENCE, parts)

    @classmethod
    def of_checked(
        cls, image_id: str, path: Path | None, evidence: Evidence, parts: Mapping[str, Any]
    ) -> Self:
        """Construct an instance without the constructor's checks, from parts that are valid.

        `parts` maps names, such as "boundaries", to arrays (or tuples of arrays) of the dtypes to
        which the constructor converts them. Only sizes are checked: raises ShapeError if the maps
        do not have the size of one image.
        """
        made = cls.__new__(cls)
        made._set_parts(image_id, path, evidence, parts)
        return made

    def _set_parts(
        self, image_id: str, path: Path | None, evidence: Evidence, parts: Mapping[str, Any]
    ) -> None:
        """Store validated parts, also as attributes, after checking that all maps have one size.

        Raises ShapeError, which names the part, if a map differs in size from the first one.
        """
        shape = (0, 0)
        for name, value in parts.items():
            if name in ("lines", "photo"):  # a photo may have another size
                continue
            maps = value if name in self.tuple_parts else (value,)  # one map, or a tuple of maps
            for array in maps:
                rows, cols = array.shape[-2:]
                if name == "ucm2":  # (2 H + 1, 2 W + 1)
                    rows, cols = (rows - 1) // 2, (cols - 1) // 2
                if shape == (0, 0):  # the first map decides
                    shape = (rows, cols)
                if (rows, cols) != shape:  # raises ShapeError
                    same_shape((rows, cols), shape, f"{type(self).__name__}.{name}")
        self.__attrs_init__(image_id, path, parts, shape, evidence)  # sets the fields of the class
        self.__dict__.update(parts)  # the instance is frozen, so that `self.mask = ...` would fail

    def __repr__(self) -> str:
        """Return the parts, as in "<GroundTruth 'a.mat': boundaries 5 x bool (321, 481)>"."""
        texts = []
        for name, part in self.parts.items():
            maps = part if isinstance(part, tuple) else (part,)
            number = f"{len(maps)} x " if name in self.tuple_parts else ""
            is_map = bool(maps) and isinstance(maps[0], np.ndarray)
            texts.append(f"{name} {number}{maps[0].dtype} {maps[0].shape}" if is_map else name)
        return f"<{type(self).__name__} {self.where!r}: {', '.join(texts)}>"

    @property
    def where(self) -> str:
        """The name of the image in error messages: its path or, without a path, its image id."""
        return show(self.path or self.image_id)

    def __getattr__(self, name: str) -> Any:
        """Raise MissingPartError for an absent part, and AttributeError for any other name.

        Python calls this only if the normal attribute lookup fails.
        """
        if name not in self.part_names:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        present = [k for k, part in self.parts.items() if not isinstance(part, tuple) or part]
        has = f"has {', '.join(_WORDS.get(k, k) for k in present) or 'nothing'}"
        raise MissingPartError(Problem(self.where, has, _WORDS.get(name, name)))


def _check_part(name: str, value: object, label: str, map_label: str) -> Map:
    """Validate one array of an image, and return it with the dtype that metrics expect.

    `name` is the name of the part. It decides the axes: (C, H, W) for "class_boundaries", (H, W) or
    (C, H, W) for "classes", three axes for "photo", and (H, W) for all others. It also decides the
    values:

    - "boundaries", "mask" and "valid" become bool; for "valid", any value but 0 is True
    - label maps (H, W), such as "labels" and "segs", become integers
    - "soft" and "ucm2" are checked to be bool, uint8, uint16, or floats in [0, 1]

    `label` names the array in error messages, and `map_label` in those about non-binary values.
    Raises DataError for a wrong type, shape or value.
    """
    array = check_array(value, label)  # converts lists and tensors
    n_axes = _AXES.get(name, (2,))
    kinds = _DTYPE_KINDS.get(name, "biuf")
    if array.dtype.kind not in kinds or array.ndim not in n_axes:
        noun = "numbers" if "f" in kinds else "integers"
        fault = f"{label}: {kind_of_value(array)}, expected {noun} and"
        fix = suggest_one_map(array.shape) if n_axes == (2,) else ()
        raise DataError(f"{fault} {' or '.join(map(str, n_axes))} axes", fix=fix)
    if name in _LABELS and array.ndim == 2:
        return labels_to_integers(array, "label map")
    if name in ("soft", "ucm2"):
        return check_soft_map(array, "ucm2" if name == "ucm2" else "soft map")
    if name in ("boundaries", "mask"):
        return binary_map(array, map_label)
    if name == "valid" and array.dtype.kind == "f" and np.isnan(array).any():
        raise DataError(f"{label}: {np.isnan(array).sum()} values are NaN, expected 0 or 1")
    return array != 0 if name == "valid" else array


class Prediction(ImageParts):
    """The output of an algorithm for one image: exactly one of five kinds of map.

    The kinds are `soft`, `ucm2`, `segs`, `classes` and `depth`. The attribute `parts` holds the
    given parts by name, and `shape` is (rows, columns) of the image.

    Parameters
    ----------
    image_id : str
        The image's id.
    path : path or None
        The file it was read from.
    soft : array
        (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1].
    ucm2 : array
        (2H+1, 2W+1) float64, ultrametric contour map at double size, in [0, 1].
    segs : tuple of array
        (H, W) integer label maps, one per threshold 1..n.
    classes : array
        (H, W) integer class labels, or (C, H, W) soft or bool maps, one per class.
    depth : array
        (H, W) numbers, depth or inverse depth; NaN and infinity are allowed.
    angles : array
        (H, W) radians, the orientation of the edges in `soft`.
    lines : Lines
        Straight lines; `soft` is then a drawing of them.
    evidence : Evidence or None
        Properties of the values in its files, for consistency checks of a whole set.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Prediction("a", soft=np.zeros((3, 4)))
    >>> pred.kind, pred.shape, pred.boundary_map().shape
    ('soft', (3, 4), (3, 4))
    """

    part_names = (*_FORMS, "angles", "lines")
    tuple_parts = ("segs",)

    def __init__(
        self,
        image_id: str,
        path: Path | None = None,
        *,
        evidence: Evidence | None = None,
        **parts: object,
    ) -> None:
        """Create a prediction from its `parts`, the maps that the class describes.

        Raises DataError unless exactly one of soft, ucm2, segs, classes and depth is given. The
        other parts, `angles` and `lines`, may come beside a soft map.
        """
        super().__init__(image_id, path, evidence, **parts)
        if len(self.parts.keys() & set(_FORMS)) != 1:
            present = ", ".join(self.parts) or "nothing"
            raise DataError(f"Prediction: has {present}, expected one of {', '.join(_FORMS)}")

    @classmethod
    def of(cls, pred: Map | Prediction) -> Prediction:
        """Convert a soft map (H, W) to a Prediction. A Prediction is returned unchanged."""
        return pred if isinstance(pred, Prediction) else cls("prediction", soft=pred)

    @cached_property
    def kind(self) -> str:
        """The name of the given map: soft, ucm2, segs, classes or depth."""
        (form,) = self.parts.keys() & set(_FORMS)
        return form

    @property
    def form(self) -> str:
        """The kind of prediction in one word, with the dtype of soft maps.

        Soft maps are "soft8" (uint8), "soft16" (uint16), "binary" (bool) or "float"; for all other
        predictions it is `kind`.
        """
        if self.kind != "soft":
            return self.kind
        words = {"uint8": "soft8", "uint16": "soft16", "bool": "binary"}
        return words.get(self.soft.dtype.name, "float")

    def boundary_map(self) -> Map:
        """Return the (H, W) boundary strengths: `soft`, or `ucm2[2::2, 2::2]`.

        Raises MissingPartError if the prediction has neither.
        """
        if self.kind != "ucm2":
            return self.soft
        # The pixels of the official boundaryBench; contiguous, because counting goes row by row
        return np.ascontiguousarray(self.ucm2[2::2, 2::2])


class Fingerprints(NamedTuple):
    """Both versions of a ground truth's fingerprint, 16 hex digits each."""

    listed: str  # version 1, used by the list of known public sets
    whole: str  # version 2, which covers all annotated parts; "" if not computed


class GroundTruth(ImageParts):
    """The human annotations of one image. The metric decides which parts are used.

    The attribute `parts` holds the given parts by name, and `shape` is (rows, columns).

    Parameters
    ----------
    image_id : str
        The image's id.
    boundaries : tuple of array
        (H, W) bool, one per annotator; empty if the set has no boundaries.
    segmentations : tuple of array
        (H, W) integer label maps, one per annotator.
    path : path or None
        The file it was read from.
    evidence : Evidence or None
        Properties of the values in its files, for consistency checks of a whole set.
    labels : array
        (H, W) integer class labels.
    class_boundaries : array
        (C, H, W) bool, the boundaries of each class; with or without `labels`.
    instances : array
        (H, W) integers, the instance of each pixel; only together with class labels.
    mask : array
        (H, W) bool, the object.
    photo : array
        (H, W, 3) uint8, the image itself.
    depth : array
        (H, W) numbers, depth or inverse depth; NaN and infinity are allowed.
    valid : array
        (H, W) bool, False at pixels to ignore (void, or of unknown depth), whatever the other maps
        hold there. By default, all pixels count.
    angles : tuple of array
        (H, W) radians per annotator, if boundaries have an orientation.
    lines : Lines
        Straight lines; `boundaries` is then a drawing of them.

    Examples
    --------
    >>> import numpy as np
    >>> truth = GroundTruth("a", (np.eye(3, dtype=bool),))
    >>> truth.shape, len(truth.boundaries), "mask" in truth.parts
    ((3, 3), 1, False)
    """

    tuple_parts = ("boundaries", "segmentations", "angles")
    part_names = (*tuple_parts, *_CLASS_MAPS, "mask", "photo", "depth", "valid", "lines")

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
        """Create the ground truth of an image from its maps, the parts that the class describes."""
        parts = {"boundaries": boundaries, "segmentations": segmentations, **parts}
        super().__init__(image_id, path, evidence, **parts)

    @classmethod
    def of(cls, gts: Sequence[Map] | GroundTruth) -> GroundTruth:
        """Convert one (H, W) boundary map per annotator, or that of a single one.

        A GroundTruth is returned unchanged.
        """
        if isinstance(gts, GroundTruth):
            return gts
        is_single = getattr(gts, "ndim", 0) == 2  # an array or a tensor
        return cls("ground truth", [gts] if is_single else gts)

    @property
    def fingerprint(self) -> str:
        """A hash of the annotations as 16 hex digits, independent of the file format.

        >>> GroundTruth("a", (np.eye(3, 4, dtype=bool),)).fingerprint
        'f55623f951edd08d'
        """
        return self.fingerprints().whole

    def fingerprints(self, whole: bool = True) -> Fingerprints:
        r"""Return both versions of the fingerprint. With whole=False, version 2 is "".

        Version 1 is the first 16 hex digits of the SHA-256 of:

        1. "ROWSxCOLSxANNOTATORS\n" in ASCII.
        2. The boundaries of each annotator, packed to one bit per pixel, row by row, most
           significant bit first.
        3. For each further array, "NUMBER SHAPE\n" and its values, little-endian: floats as
           float64, all else as int32. NUMBER is the array's index in this list: labels, instances,
           class_boundaries, mask, depth, valid (these six keep their numbers even if absent), each
           annotator's angles, the ends and the junctions of lines and, if there are no boundaries,
           the segmentations.

        Version 2 continues the hash with what version 1 loses: integer arrays with values beyond
        int32, and segmentations if there are also boundaries. Each adds "NUMBER SHAPE TYPE\n" and
        its values in the first of the types u1, i4, i8 and u8 that holds them all. If there are no
        such arrays, both versions are equal.
        """
        parts = self.parts
        boundary_maps = parts.get("boundaries", ())
        digest = hashlib.sha256(b"%dx%dx%d\n" % (*self.shape, len(boundary_maps)))
        for boundaries in boundary_maps:
            digest.update(np.packbits(boundaries).tobytes())
        names = "labels", "instances", "class_boundaries", "mask", "depth", "valid"
        arrays: list[Map | None] = [*map(parts.get, names), *parts.get("angles", ())]
        if "lines" in parts:
            arrays += [parts["lines"].ends, parts["lines"].junctions]
        segmentations = list(parts.get("segmentations", ()))
        if not boundary_maps:
            arrays += segmentations
        only_in_version_2: list[tuple[int, Map]] = []  # (NUMBER, array)
        for number, array in enumerate(arrays):
            if array is None:
                continue
            digest.update(f"{number} {array.shape}\n".encode())
            dtype = "<f8" if array.dtype.kind == "f" else "<i4"
            digest.update(array.astype(dtype, order="C", copy=False).data)
            # Values beyond int32 wrap around. They are searched in dtypes that can hold them only
            may_wrap = array.dtype.kind in "iu" and not np.can_cast(array.dtype, np.int32)
            if may_wrap and narrowest_dtype(array) in ("<i8", "<u8"):
                only_in_version_2.append((number, array))
        version_1 = digest.hexdigest()[:16]
        if not whole:
            return Fingerprints(version_1, "")
        if boundary_maps:
            only_in_version_2 += enumerate(segmentations, len(arrays))  # numbered after the others
        for number, array in only_in_version_2:
            dtype = narrowest_dtype(array)
            digest.update(f"{number} {array.shape} {dtype[1:]}\n".encode())
            digest.update(array.astype(dtype, order="C", copy=False).data)
        return Fingerprints(version_1, digest.hexdigest()[:16])

    def replace(self, **parts: object) -> GroundTruth:
        """Return a copy with new parts, `path` or `evidence`; None removes a part."""
        unchanged = {"path": self.path, "evidence": self.evidence, **self.parts}
        return GroundTruth(self.image_id, **{**unchanged, **parts})


def narrowest_dtype(array: Map) -> str:
    """Return the first of "<u1", "<i4", "<i8", "<u8" that holds all values of an integer array."""
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    for dtype in ("<u1", "<i4", "<i8"):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return "<u8"


def one_map(values: object, what: str) -> Map:
    """Convert user input to an (H, W) array; raise ShapeError if it does not have two axes."""
    array = check_array(values, what)
    if array.ndim != 2:
        fault = f"{what}: shape {array.shape}, expected (rows, columns)"
        raise ShapeError(fault, fix=suggest_one_map(array.shape))
    return array


def one_channel(array: Map) -> Map:
    """Return an (H, W, 1) map as (H, W), and any other array unchanged.

    An array with H = 1 or W = 1 is unchanged too, because its axes are ambiguous.
    """
    is_single = array.ndim == 3 and array.shape[2] == 1 < min(array.shape[:2])
    return array[:, :, 0] if is_single else array


def check_soft_map(soft: Map, what: str = "prediction") -> Map:
    """Check that an (H, W) soft map is bool, uint8, uint16, or float in [0, 1], and return it.

    It is not copied, except that float16 becomes float32, and values beyond 0 or 1 by rounding are
    clipped. `what` names the map in errors. Raises DataError for others, usually with a remedy.
    """
    kind, n_bytes = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and n_bytes <= 2):
        are_truth_values = bool(((soft == 0) | (soft == 1)).all())
        expected = "expected uint8, uint16, bool or floats in [0, 1]"
        remedies = ("save 0 and 1 as bool", _AS_LABELS) if are_truth_values else (_AS_LABELS,)
        raise DataError(f"{what}: dtype {describe_values(soft)}, {expected}", fix=remedies)
    if kind != "f":
        return soft
    soft = soft.astype(np.float32 if n_bytes <= 4 else np.float64, copy=False)
    # All tests in one pass: read as unsigned integers, the bits of NaN, of negative values (their
    # sign is the highest bit) and of values above 1 exceed those of 1.0
    bits = soft.view(f"u{soft.itemsize}")
    bits_of_1 = np.ones(1, soft.dtype).view(bits.dtype)[0]
    if not soft.size or bits.max() <= bits_of_1:
        return soft
    low, high = float(soft.min()), float(soft.max())  # both are NaN if a value is
    if low >= -1e-6 and high <= 1 + 1e-6:  # rounded, as a mean of maps; or -0.0, by its bits
        return soft.clip(0, 1)
    has, fix = f"values from {low:.7g} to {high:.7g}", remedies_beyond(low, high)
    if not math.isfinite(high - low):
        has, fix = f"{np.count_nonzero(~np.isfinite(soft))} values are NaN or infinite", ()
    elif (soft == np.rint(soft)).all():
        fix += (_AS_LABELS,)
    raise DataError(f"{what}: {has}, expected floats in [0, 1]", fix=fix)


def remedies_beyond(low: float, high: float) -> tuple[Fix, ...]:
    """Return what makes a sound map of floats from `low` to `high`, of which some exceed [0, 1].

    A cubic resize overshoots by up to a fifth of white, which is 1 or 255. Network output is not
    near 255, and seldom all within 5 % of [0, 1].
    """
    if low >= 0 and high > 2:
        white = "100 or 255" if high <= 100 else 255 if high <= 1.25 * 255 else 65535
        return (f"divide by {white}, if that is white",)
    white, sigmoid = 255 if high > 127 else 1, "apply the sigmoid, if it is raw network output"
    if low < -0.25 * white or high > 1.25 * white:
        is_tanh = low >= -1 and high <= 1
        return ("use (x + 1) / 2, if it is output of tanh", sigmoid) if is_tanh else (sigmoid,)
    clip = f"clip to [0, {white}], if a resize overshot"
    is_resized = white == 255 or (low >= -0.05 and high <= 1.05)
    return (clip,) if is_resized else (clip, sigmoid)


def without_void(maps: Map, valid: Bools | None) -> Map:
    """Return a copy of (..., H, W) maps, 0 where the (H, W) map `valid` is False; None: `maps`."""
    return maps if valid is None else np.where(valid, maps, maps.dtype.type(0))


def to_unit_range(soft: Map) -> Floats:
    """Convert a soft map to float64 in [0, 1]: uint8 is divided by 255, and uint16 by 65535."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def describe_values(values: Map) -> str:
    """Describe a map, as in "uint8 with values from 0 to 7". An empty map has only its dtype."""
    if n_undefined := np.count_nonzero(~np.isfinite(values)):
        return f"{values.dtype} with {n_undefined} values that are NaN or infinite"
    span = f" with values from {values.min()} to {values.max()}" if values.size else ""
    return f"{values.dtype}{span}"


def annotated_maps(gt: GroundTruth) -> Bools:
    """Stack the boundaries of all A annotators to an (A, H, W) bool array, False at void pixels."""
    if not gt.boundaries:
        raise DataError("ground truth: no annotators, expected at least one")
    # np.stack takes four times as long for small maps
    return without_void(np.array(gt.boundaries), gt.parts.get("valid"))


def annotated_masks(gt: GroundTruth) -> Bools:
    """Return the object mask as (1, H, W) or, if there is none, the result of `annotated_maps`."""
    return np.asarray(gt.mask[None]) if "mask" in gt.parts else annotated_maps(gt)


def binary_map(values: Map, what: str) -> Bools:
    """Convert a map of 0 and one of 1, 255 and 65535, in any dtype, to bool.

    Raises DataError for other values; `what` names the map in the message. If the map is uint8 with
    values 0 and 1, the result is a view of it.
    """
    if values.dtype == bool:
        return values
    if values.dtype == np.uint8 and values.max(initial=0) <= 1:
        return values.view(np.bool_)
    if not is_binary(values):
        has = f"values other than 0 and 1, {describe_values(values)}"
        raise DataError(f"{what}: {has}, expected a map of 0 and 1, or of 0 and 255")
    return np.asarray(values != 0)


def is_binary(values: Map) -> bool:
    """Return True if a map is bool, or has no values except 0 and one of 1, 255 and 65535."""
    if values.dtype == np.bool_:
        return True
    top = values.max(initial=0).item()  # 65535 is beyond float16
    return top in (0, 1, 255, 65535) and not ((values != 0) & (values != top)).any()


def labels_to_integers(values: Map, what: str) -> Map:
    """Convert a label map, which may be stored as floats, to integers.

    Integers are returned unchanged, and bool as a uint8 view. Floats become int32 if all values
    fit, otherwise int64. Raises DataError if a float is not a whole number or its absolute value
    exceeds 2**53; `what` names the labels in the message.
    """
    if values.dtype.kind != "f":
        return values.view(np.uint8) if values.dtype.kind == "b" else values
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if not (low >= -(2**53) and high <= 2**53 and (values == np.rint(values)).all()):
        has = f"values that are not whole numbers, {describe_values(values)}"
        raise DataError(f"{what}: {has}, expected integers")
    return values.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.int64)


def same_shape(
    pred: tuple[int, ...], gt: tuple[int, ...], what: str = "prediction", contours: bool = False
) -> None:
    """Raise ShapeError, naming the prediction by `what`, unless both shapes are equal.

    `contours` is True for a soft boundary map, which may be a contour map of double size.
    """
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        is_doubled = contours and tuple(pred) == tuple(2 * length + 1 for length in gt)
        fix = "a contour map of double size: name its variable ucm2" if is_doubled else ()
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}", fix=fix)
