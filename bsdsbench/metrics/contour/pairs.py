"""Checked pairs of masks or label maps, and the conventions for empty ones.

Masks are (H, W) bool, 0 and 1, or 0 and 255 in uint8. Label maps are (H, W) integer with the labels
0 .. classes - 1. `ignore` is one more label: pixels with it in the ground truth are cleared in both
maps before anything is drawn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import Bool, binary_map, is_binary, same_shape
from bsdsbench.metrics.label_maps import SIDES, as_label_map, as_label_maps

Labels = NDArray[np.int32]


class LabelPair(NamedTuple):
    """pred and gt as int32 (H, W), labels 0 .. n - 1, -1 for none; shape is that of the image.

    A pair of masks has one label and may be cut to the box of both, with a frame of one pixel.
    """

    pred: Labels
    gt: Labels
    n: int
    shape: tuple[int, ...]

    def diagonal(self, spacing: tuple[float, float] = (1.0, 1.0)) -> float:
        """Of the image."""
        return math.hypot(self.shape[0] * spacing[0], self.shape[1] * spacing[1])


NAN, INF = math.nan, math.inf
# name -> overlap and distance where both masks are empty, and where one is; in words. NaN is not
# counted; a distance of None is the diagonal of the image.
CONVENTIONS: dict[str, tuple[Any, Any, str]] = {
    "skip": ((NAN, NAN), (0, NAN), "both empty: not counted; one: overlap 0, no distance"),
    "inf": ((NAN, NAN), (0, INF), "both empty: not counted; one: overlap 0, distance inf"),
    "perfect": ((1, 0), (0, NAN), "both empty: perfect; one: overlap 0, no distance"),
    "diagonal": (
        (1, 0),
        (0, None),
        "both empty: perfect; one: overlap 0, distance the image diagonal",
    ),
    "zero": ((0, NAN), (0, NAN), "both or one empty: overlap 0, no distance"),
}


def as_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    classes: int | None = None,
    ignore: int | None = None,
    first: int = 0,
) -> LabelPair:
    """Masks (classes None) or label maps whose labels begin at `first`, checked.

    0 is nothing where it is below `first`. Raises DataError or ShapeError.
    """
    if classes is None:
        return mask_pair(*as_masks(pred, gt))
    maps, end = as_label_maps(pred, gt), first + classes
    nothing = {0: ""} if first else {}
    if ignore is not None and ignore >= 0:
        nothing[ignore] = " (ignored)"
    found = []
    for labels, what in zip(maps, SIDES, strict=True):
        none = np.isin(labels, list(nothing))
        wrong = ~none & ((labels < first) | (labels >= end))
        if wrong.any():
            also = "".join(f", or {label}{words}" for label, words in nothing.items())
            line = f"{what}: label {labels[wrong][0]}, expected {first} .. {end - 1}{also}"
            raise DataError(line)
        new = np.ascontiguousarray(labels, np.int32) - np.int32(first)
        new[none] = -1
        found.append(new)
    if ignore in nothing:
        found[0][maps[1] == ignore] = -1
    return LabelPair(found[0], found[1], classes, maps[0].shape)


def as_masks(pred: ArrayLike, gt: ArrayLike) -> tuple[Bool, Bool]:
    """Two masks of one shape, checked. Raises DataError or ShapeError."""
    masks = []
    for given, what in zip((pred, gt), SIDES, strict=True):
        found = np.asarray(given)
        if found.dtype.kind in "iu" and not is_binary(found):
            labels = np.unique(as_label_map(found, what)).tolist()
            if len(labels) > 2:
                raise DataError(
                    f"{what}: {len(labels)} labels, from {labels[0]} to {labels[-1]}, expected a "
                    "mask of 0 and 1: name the classes (contour.classes='one,two,three' in the "
                    "order of their labels, contour.first=1 where 0 is none)"
                )
        masks.append(binary_map(found, what))
    same_shape(masks[0].shape, masks[1].shape)
    if not masks[1].size:  # the kernels look at one
        raise DataError(f"{SIDES[1]}: shape {masks[1].shape}, expected at least one pixel")
    return masks[0], masks[1]


def mask_pair(pred: Bool, gt: Bool) -> LabelPair:
    """A pair of bool masks of one shape, cut to the box of both with a frame of one pixel."""
    either = pred | gt
    at = [np.flatnonzero(either.any(axis=axis)) for axis in (1, 0)]
    box = tuple(slice(max(i[0] - 1, 0), i[-1] + 2) if i.size else slice(0, 1) for i in at)
    mine, true = (np.ascontiguousarray(m[box]).astype(np.int32) - 1 for m in (pred, gt))
    return LabelPair(mine, true, 1, gt.shape)
