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

from bsdsbench.files.errors import DataError, ProtocolError, ShapeError
from bsdsbench.loaders.inputs import binary_map, is_binary, same_shape

F8 = NDArray[np.float64]
Labels = NDArray[np.int32]
SIDES = ("prediction", "ground truth")


class LabelPair(NamedTuple):
    """pred and gt as int32 (H, W), labels 0 .. n - 1, -1 for none; shape is that of the image.

    A pair of masks has one label and may be cut to the box of both, with a frame of one pixel.
    """

    pred: Labels
    gt: Labels
    n: int
    shape: tuple[int, int]

    def diagonal(self, spacing: tuple[float, float] = (1.0, 1.0)) -> float:
        """Of the image."""
        return math.hypot(self.shape[0] * spacing[0], self.shape[1] * spacing[1])


class Convention(NamedTuple):
    """Overlap and distance where both masks are empty, and where one is; NaN is not counted.

    one_distance : None for the diagonal of the image
    """

    both_overlap: float
    both_distance: float
    one_overlap: float
    one_distance: float | None
    words: str


NAN, INF = math.nan, math.inf
CONVENTIONS = {
    "skip": Convention(NAN, NAN, 0, NAN, "both empty: not counted; one: overlap 0, no distance"),
    "inf": Convention(NAN, NAN, 0, INF, "both empty: not counted; one: overlap 0, distance inf"),
    "perfect": Convention(1, 0, 0, NAN, "both empty: perfect; one: overlap 0, no distance"),
    "diagonal": Convention(
        1, 0, 0, None, "both empty: perfect; one: overlap 0, distance the image diagonal"
    ),
    "zero": Convention(0, NAN, 0, NAN, "both or one empty: overlap 0, no distance"),
    "error": Convention(NAN, NAN, NAN, NAN, "an empty mask is an error"),
}


def settle(values: Any, n_pred: Any, n_gt: Any, empty: str, diagonal: float | None) -> F8:
    """Values of each label, with those of empty masks as the convention `empty` says.

    n_pred, n_gt : how many pixels or sites each label has
    diagonal : the image's, for a distance; None for an overlap
    """
    if empty not in CONVENTIONS:
        raise ProtocolError(f"empty {empty!r}: expected one of {', '.join(CONVENTIONS)}")
    rule = CONVENTIONS[empty]
    both, one = (n_pred == 0) & (n_gt == 0), (n_pred == 0) ^ (n_gt == 0)
    if empty == "error" and np.any(both | one):
        k = int(np.flatnonzero(both | one)[0])
        sides = [w for w, n in zip(SIDES, (n_pred, n_gt), strict=True) if not np.ravel(n)[k]]
        side = f"the {sides[0]}" if len(sides) == 1 else "both masks"
        raise DataError(f"label {k}: {side} empty, expected an outline (empty = 'error')")
    if diagonal is None:
        for_both, for_one = rule.both_overlap, rule.one_overlap
    else:
        for_both = rule.both_distance
        for_one = diagonal if rule.one_distance is None else rule.one_distance
    return np.where(both, for_both, np.where(one, for_one, values))


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
    maps = as_label_maps(pred, gt)
    nothing = {0: ""} if first else {}
    if ignore is not None and ignore >= 0:
        nothing[ignore] = " (ignored)"
    checked = [_from_0(a, first, classes, nothing, w) for a, w in zip(maps, SIDES, strict=True)]
    void = maps[1] == ignore if ignore in nothing else None
    if void is not None and void.any():
        checked[0] = np.where(void, np.int32(-1), checked[0])
    return LabelPair(checked[0], checked[1], classes, maps[0].shape)


def as_masks(pred: ArrayLike, gt: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two masks of one shape, checked. Raises DataError or ShapeError."""
    for given, what in zip((pred, gt), SIDES, strict=True):
        found = np.asarray(given)
        if found.ndim == 2 and found.dtype.kind in "iu" and not is_binary(found):
            labels = np.unique(found).tolist()
            if len(labels) > 2:
                raise DataError(
                    f"{what}: {len(labels)} labels, from {labels[0]} to {labels[-1]}, expected a "
                    "mask of 0 and 1: name the classes (contour.classes='one,two,three' in the "
                    "order of their labels, contour.first=1 where 0 is none)"
                )
    masks = binary_map(np.asarray(pred), SIDES[0]), binary_map(np.asarray(gt), SIDES[1])
    check_shapes(masks[0].shape, masks[1].shape)
    return masks


def check_shapes(pred: tuple[int, ...], gt: tuple[int, ...]) -> None:
    """Raise ShapeError unless they are equal, with a pixel at least: the kernels look at one."""
    same_shape(pred, gt)
    if 0 in gt:
        raise ShapeError(f"{SIDES[1]}: shape {gt}, expected at least one pixel")


def mask_pair(pred: NDArray[np.bool_], gt: NDArray[np.bool_]) -> LabelPair:
    """A pair of bool masks of one shape, cut to the box of both with a frame of one pixel."""
    either = pred | gt
    at = [np.flatnonzero(either.any(axis=axis)) for axis in (1, 0)]
    box = tuple(slice(max(i[0] - 1, 0), i[-1] + 2) if i.size else slice(0, 1) for i in at)
    cut = [np.ascontiguousarray(m[box]).astype(np.int32) - 1 for m in (pred, gt)]
    return LabelPair(cut[0], cut[1], 1, (gt.shape[0], gt.shape[1]))


def as_label_maps(pred: ArrayLike, gt: ArrayLike) -> list[NDArray[Any]]:
    """Two (H, W) arrays of integers of one shape, checked; bool as 0 and 1."""
    maps = []
    for labels, what in zip((pred, gt), SIDES, strict=True):
        array = np.asarray(labels)
        if array.ndim != 2:
            raise ShapeError(f"{what}: shape {array.shape}, expected a label map (rows, columns)")
        if array.dtype.kind not in "biu":
            raise DataError(f"{what}: dtype {array.dtype}, expected a label map of integers")
        maps.append(array.astype(np.uint8) if array.dtype.kind == "b" else array)
    check_shapes(maps[0].shape, maps[1].shape)
    return maps


def _from_0(array: NDArray[Any], first: int, n: int, nothing: dict[int, str], what: str) -> Labels:
    """The labels first .. first + n - 1 as 0 .. n - 1 in int32, those of `nothing` as -1."""
    low, high, end = int(array.min()), int(array.max()), first + n
    if low >= first and high < end and not any(low <= label <= high for label in nothing):
        labels = np.ascontiguousarray(array, np.int32)
        return labels - np.int32(first) if first else labels
    none = np.any([array == label for label in nothing], axis=0)
    wrong = ~none & ((array < first) | (array >= end))
    if wrong.any():
        also = "".join(f", or {label}{words}" for label, words in nothing.items())
        raise DataError(
            f"{what}: label {int(array[wrong][0])}, expected {first} .. {end - 1}{also}"
        )
    return np.where(none, np.int32(-1), array.astype(np.int32) - np.int32(first))
