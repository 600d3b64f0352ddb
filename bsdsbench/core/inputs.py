"""What the loaders hand to the metrics: a prediction, an image's ground truth. No disk here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """One image's output of an algorithm, in exactly one of four forms.

    Nothing is checked here: loaders give sound values, and metrics check what they are given.

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
    """

    image_id: str
    path: Path | None = None
    soft: NDArray[Any] | None = None
    ucm2: NDArray[np.float64] | None = None
    segs: tuple[NDArray[np.int32], ...] | None = None
    classes: NDArray[Any] | None = None

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
        raise ValueError("a set of segmentations has no single soft boundary map")


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

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        given = (*self.boundaries[:1], *self.segmentations[:1])
        others = (self.labels, self.mask, self.class_boundaries, np.zeros((0, 0)))
        first: NDArray[Any] = next(a for a in (*given, *others) if a is not None)
        return first.shape[-2], first.shape[-1]
