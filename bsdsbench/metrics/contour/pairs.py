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

from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.loaders.inputs import Bool, binary_map, is_binary, same_shape
from bsdsbench.metrics.base import F8
from bsdsbench.metrics.label_maps import SIDES, as_label_map, as_label_maps
from bsdsbench.scores.counts import I8

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


class Convention(NamedTuple):
    """(overlap, distance) where both masks are empty, and where one is.

    NaN is not counted; a distance of None is the diagonal of the image.
    """

    both: tuple[float, float]
    one: tuple[float, float | None]
    words: str


NAN, INF = math.nan, math.inf
CONVENTIONS = {
    "skip": Convention(
        (NAN, NAN), (0, NAN), "both empty: not counted; one: overlap 0, no distance"
    ),
    "inf": Convention(
        (NAN, NAN), (0, INF), "both empty: not counted; one: overlap 0, distance inf"
    ),
    "perfect": Convention((1, 0), (0, NAN), "both empty: perfect; one: overlap 0, no distance"),
    "diagonal": Convention(
        (1, 0), (0, None), "both empty: perfect; one: overlap 0, distance the image diagonal"
    ),
    "zero": Convention((0, NAN), (0, NAN), "both or one empty: overlap 0, no distance"),
    "error": Convention((NAN, NAN), (NAN, NAN), "an empty mask is an error"),
}


def settle(values: F8, n_pred: I8, n_gt: I8, empty: str, diagonal: float | None) -> F8:
    """Values of each label, with those of empty masks as the convention `empty` says.

    n_pred, n_gt : how many pixels or sites each label has
    diagonal : the image's, for a distance; None for an overlap
    """
    if empty not in CONVENTIONS:
        raise ProtocolError(f"empty {empty!r}: expected one of {', '.join(CONVENTIONS)}")
    rule, kind = CONVENTIONS[empty], diagonal is not None
    both, one = (n_pred == 0) & (n_gt == 0), (n_pred == 0) ^ (n_gt == 0)
    if empty == "error" and np.any(both | one):
        k = int(np.argmax(both | one))
        side = "both masks" if both[k] else f"the {SIDES[int(n_gt[k] == 0)]}"
        raise DataError(f"label {k}: {side} empty, expected an outline (empty = 'error')")
    for_one: Any = diagonal if rule.one[kind] is None else rule.one[kind]
    return np.where(both, rule.both[kind], np.where(one, for_one, values))


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
        low, high = int(labels.min()), int(labels.max())
        new = np.ascontiguousarray(labels, np.int32) - np.int32(first)
        # else there is nothing to be taken out: in a fourth of the time
        if low < first or high >= end or any(low <= label <= high for label in nothing):
            none = np.any([labels == label for label in nothing], axis=0)
            wrong = ~none & ((labels < first) | (labels >= end))
            if wrong.any():
                also = "".join(f", or {label}{words}" for label, words in nothing.items())
                line = f"{what}: label {labels[wrong][0]}, expected {first} .. {end - 1}{also}"
                raise DataError(line)
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
