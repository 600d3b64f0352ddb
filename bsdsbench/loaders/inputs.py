"""The inputs of metrics: a prediction, and an image's ground truth. No disk access here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, kind_of_value, refuse_mask, refuse_size
from bsdsbench.files.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """One image's output of an algorithm, in exactly one of four forms.

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
        Tuple of (H, W) int32 label maps, one per threshold 1..n.
    classes : array or None
        (H, W) integer class labels, or (C, H, W) soft maps or bool, one per class.
    angles : array or None
        (H, W) radians, beside a soft map whose edges have an orientation.
    """

    image_id: str
    path: Path | None = None
    soft: NDArray[Any] | None = None
    ucm2: NDArray[np.float64] | None = None
    segs: tuple[NDArray[np.int32], ...] | None = None
    classes: NDArray[Any] | None = None
    angles: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        _check_id(self.image_id, "Prediction")
        segs = () if self.segs is None else _maps(self.segs, "Prediction.segs", "biu")
        object.__setattr__(self, "segs", None if self.segs is None else segs)
        forms = {"soft": "biuf", "ucm2": "biuf", "classes": "biuf"}
        for name, kinds in forms.items():
            dims = (2, 3) if name == "classes" else (2,)
            _check_map(getattr(self, name), f"Prediction.{name}", kinds, dims)
        _check_map(self.angles, "Prediction.angles", "biuf", (2,))
        if sum(v is not None for v in (self.soft, self.ucm2, self.segs, self.classes)) > 1:
            raise DataError("Prediction: several forms, expected one of soft, ucm2, segs, classes")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the image the prediction is for."""
        if self.soft is not None:
            return self.soft.shape[0], self.soft.shape[1]
        if self.ucm2 is not None:
            return (self.ucm2.shape[0] - 1) // 2, (self.ucm2.shape[1] - 1) // 2
        if self.segs:
            return self.segs[0].shape[0], self.segs[0].shape[1]
        if self.classes is not None:
            return self.classes.shape[-2], self.classes.shape[-1]
        return 0, 0

    @property
    def form(self) -> str:
        """The form in a word, for signatures: soft8, soft16, float, binary, ucm2, segs, classes."""
        if self.soft is not None:
            names = {"u1": "soft8", "u2": "soft16", "b1": "binary"}
            return names.get(self.soft.dtype.str[1:], "float")
        others = {"ucm2": self.ucm2, "segs": self.segs, "classes": self.classes}
        return next((name for name, value in others.items() if value is not None), "")

    def boundary_map(self) -> NDArray[Any]:
        """The (H, W) soft map: itself, or ucm2[2::2, 2::2] (official boundaryBench).

        Raises ValueError for segmentations, or for nothing.
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
        Tuple of (H, W) int32 label maps, one per annotator; empty where the data set has only
        boundaries.
    path : path or None
        The file it was read from, or None.
    labels : array or None
        (H, W) integer class labels.
    instances : array or None
        (H, W) integer, which instance a pixel belongs to, where class labels have them.
    class_boundaries : array or None
        (C, H, W) bool, where there are boundaries of classes and no labels, or both.
    mask : array or None
        (H, W) bool, the object.
    photo : array or None
        (H, W, 3) uint8, the picture itself.
    angles : tuple of array
        (H, W) radians per annotator, where boundaries have an orientation.
    """

    image_id: str
    boundaries: tuple[NDArray[np.bool_], ...] = ()
    segmentations: tuple[NDArray[np.int32], ...] = ()
    path: Path | None = None
    labels: NDArray[Any] | None = None
    class_boundaries: NDArray[np.bool_] | None = None
    instances: NDArray[Any] | None = None
    mask: NDArray[np.bool_] | None = None
    photo: NDArray[np.uint8] | None = None
    angles: tuple[NDArray[Any], ...] = ()

    def __post_init__(self) -> None:
        _check_id(self.image_id, "GroundTruth")
        for name, kinds in (("boundaries", "biuf"), ("segmentations", "biu"), ("angles", "biuf")):
            maps = _maps(getattr(self, name), f"GroundTruth.{name}", kinds)
            object.__setattr__(self, name, maps)
        _check_map(self.labels, "GroundTruth.labels", "iu", (2,))
        _check_map(self.mask, "GroundTruth.mask", "biuf", (2,))
        _check_map(self.class_boundaries, "GroundTruth.class_boundaries", "biuf", (3,))
        _check_map(self.photo, "GroundTruth.photo", "u", (3,))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        given = (*self.boundaries[:1], *self.segmentations[:1])
        others = (self.labels, self.mask, self.class_boundaries, np.zeros((0, 0)))
        first: NDArray[Any] = next(a for a in (*given, *others) if a is not None)
        return first.shape[-2], first.shape[-1]


def _check_id(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise DataError(f"{what}.image_id: {kind_of_value(value)}, expected text")


def _maps(values: Any, what: str, kinds: str) -> tuple[NDArray[Any], ...]:
    """A list or tuple of (H, W) arrays as a tuple."""
    maps = tuple(given_list(values, what, "a list of (H, W) arrays"))
    for k, each in enumerate(maps, 1):
        _check_map(each, f"{what} {k}", kinds, (2,), optional=False)
    return maps


def _check_map(
    value: object, what: str, kinds: str, dims: tuple[int, ...], optional: bool = True
) -> None:
    """Raise DataError unless `value` is an array of a kind of numbers and a number of axes."""
    if value is None and optional:
        return
    refuse_mask(value, what)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        expected = "integer labels" if "f" not in kinds else "an array of numbers"
        raise DataError(f"{what}: {kind_of_value(value)}, expected {expected}")
    refuse_size(value, what)
    if value.ndim not in dims:
        axes = " or ".join(map(str, dims))
        raise DataError(f"{what}: shape {value.shape}, expected {axes} axes")
