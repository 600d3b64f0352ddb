"""From label and instance maps to pairs of masks: by class, by number, or matched by overlap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.kernels.contingency import runs, tabulate
from bsdsbench.loaders.map_checks import same_shape
from bsdsbench.metrics.contour.pairs import (
    F8,
    SIDES,
    LabelPair,
    Labels,
    as_label_map,
    as_pair,
)
from bsdsbench.protocol.contour_params import ContourParams
from bsdsbench.scores.ratios import ratio

I8 = NDArray[np.int64]
MATCH_IOU = 0.5  # above it, a region has one partner at most


def pair_of(pred: ArrayLike, gt: ArrayLike, at: ContourParams) -> tuple[LabelPair, I8 | None]:
    """The masks to compare, and the class of each (None: label k is class k).

    Raises DataError for what is no such map, ShapeError for unequal shapes.
    """
    if at.unit == "class":
        if at.classes:
            return class_pair(pred, gt, at), None
        return as_pair(pred, gt), None
    maps = instance_maps(pred, gt, at)
    shape = maps.pred.shape[0], maps.pred.shape[1]
    if at.unit == "id":
        both, number = np.unique(np.concatenate([maps.pred_ids, maps.gt_ids]), return_inverse=True)
        split = maps.pred_ids.size
        pred_new, gt_new = number[:split], number[split:]
        class_of = maps.class_of_value(both)
    else:
        matched = match(maps)
        pred_new, gt_new, class_of = matched.pred_new, matched.gt_new, matched.class_of
    pair = LabelPair(
        _renumber(maps.pred, pred_new), _renumber(maps.gt, gt_new), class_of.size, shape
    )
    return pair, class_of


def class_pair(pred: ArrayLike, gt: ArrayLike, at: ContourParams) -> LabelPair:
    """Label maps with the labels first, first + 1, .. as labels 0, 1, ..; 0 is nothing below."""
    if at.first == 0:
        return as_pair(pred, gt, len(at.classes), at.ignore)
    maps = [as_label_map(a, w) for a, w in zip((pred, gt), SIDES, strict=True)]
    # One label more, the last, stands for nothing; the map is checked with all of them.
    shifted = [np.where(a == at.ignore, -2, a.astype(np.int64)) for a in maps]
    n = len(at.classes)
    for a, labels, what in zip(shifted, maps, SIDES, strict=True):
        wrong = (a != -2) & (a != 0) & ((a < at.first) | (a >= at.first + n))
        if wrong.any():
            raise DataError(
                f"{what}: label {int(labels[wrong][0])}, expected {at.first} .. "
                f"{at.first + n - 1}, 0 or {at.ignore} (ignored)"
            )
    same_shape(maps[0].shape, maps[1].shape)
    void = shifted[1] == -2
    pred4, gt4 = (np.where(void | (a <= 0), -1, a - at.first).astype(np.int32) for a in shifted)
    return LabelPair(pred4, gt4, n, (void.shape[0], void.shape[1]))


class InstanceMaps(NamedTuple):
    """Regions of both maps numbered 0, 1, .. apart, -1 for none; their values in the files.

    void_share f8: how much of each predicted region lay in ignored pixels of the ground truth.
    """

    pred: Labels
    gt: Labels
    pred_ids: I8
    gt_ids: I8
    void_share: F8
    at: ContourParams

    def class_of_value(self, values: I8) -> I8:
        """The class of values in the files, from 0."""
        return values // self.at.divisor - self.at.first if self.at.divisor else values * 0


def instance_maps(pred: ArrayLike, gt: ArrayLike, at: ContourParams) -> InstanceMaps:
    """Both maps with their regions numbered. Raises DataError and ShapeError."""
    maps = [as_label_map(a, w).astype(np.int64) for a, w in zip((pred, gt), SIDES, strict=True)]
    same_shape(maps[0].shape, maps[1].shape)
    voids = [_void(labels, at) for labels in maps]
    kept = [_named(labels, void, at, w) for labels, void, w in zip(maps, voids, SIDES, strict=True)]
    whole, _ = kept[0], kept[1]
    number, ids = numbered(whole)
    all_pixels = np.bincount(number[number >= 0], minlength=ids.size)
    number[voids[1]] = -1
    left = np.bincount(number[number >= 0], minlength=ids.size)
    gt_number, gt_ids = numbered(np.where(voids[1], -1, kept[1]))
    return InstanceMaps(number, gt_number, ids, gt_ids, 1.0 - ratio(left, all_pixels), at)


def _void(labels: NDArray[Any], at: ContourParams) -> NDArray[Any]:
    if at.ignore < 0:
        return np.zeros(labels.shape, bool)
    return (labels // at.divisor if at.divisor else labels) == at.ignore


def _named(labels: NDArray[Any], void: NDArray[Any], at: ContourParams, what: str) -> NDArray[Any]:
    """The map with -1 for what is no instance; values that name no class are an error."""
    if not at.divisor:
        return np.where(void | (labels <= 0), -1, labels)
    classes = labels // at.divisor
    nothing = void | (classes == 0) if at.first else void
    wrong = ~nothing & ((classes < at.first) | (classes >= at.first + max(len(at.classes), 1)))
    if wrong.any():
        value = int(labels[wrong][0])
        raise DataError(
            f"{what}: value {value} is class {value // at.divisor}, expected {at.first} .. "
            f"{at.first + max(len(at.classes), 1) - 1}"
        )
    return np.where(nothing, -1, labels)


def numbered(labels: NDArray[Any]) -> tuple[Labels, I8]:
    """Distinct values from 0 up numbered 0, 1, ...; -1 stays. Also the values."""
    values, number = np.unique(labels, return_inverse=True)
    negative = int((values < 0).sum())
    number = np.maximum(number.reshape(labels.shape) - negative, -1)
    return number.astype(np.int32), values[negative:].astype(np.int64)


def _renumber(labels: Labels, new: NDArray[Any]) -> Labels:
    """Label k becomes new[k]; -1 stays."""
    table = np.append(new, -1).astype(np.int32)
    return np.ascontiguousarray(table[labels])


class Matching(NamedTuple):
    """Regions with a partner (iou of each), then those of pred alone, then those of gt alone.

    pred_new, gt_new : the number of each region in this order; class_of, void_share : of the order
    """

    pred_new: I8
    gt_new: I8
    class_of: I8
    iou: F8
    n_pred_only: int
    void_share: F8


def match(maps: InstanceMaps) -> Matching:
    """Pairs of one class whose intersection over union is above 0.5; each region is in one."""
    n_pred, n_gt = maps.pred_ids.size, maps.gt_ids.size
    rows = np.where(maps.gt < 0, n_gt, maps.gt).ravel().astype(np.int32)
    cols = np.where(maps.pred < 0, n_pred, maps.pred).reshape(1, -1).astype(np.int32)
    start, j, shared = tabulate(*runs(rows, cols, np.zeros(2, np.int64)), n_gt + 1, n_pred + 1)
    i = np.repeat(np.arange(n_gt + 1), np.diff(start))
    in_gt = np.bincount(i, shared, n_gt + 1)
    in_pred = np.bincount(j, shared, n_pred + 1)
    real = (i < n_gt) & (j < n_pred)
    i, j, shared = i[real], j[real], shared[real]
    pred_class, gt_class = maps.class_of_value(maps.pred_ids), maps.class_of_value(maps.gt_ids)
    iou = ratio(shared, in_gt[i] + in_pred[j] - shared)
    good = (iou > MATCH_IOU) & (pred_class[j] == gt_class[i])
    i, j, iou = i[good], j[good], iou[good]
    pred_new, gt_new = np.full(n_pred, -1), np.full(n_gt, -1)
    pred_new[j] = gt_new[i] = np.arange(i.size)
    alone_pred, alone_gt = np.flatnonzero(pred_new < 0), np.flatnonzero(gt_new < 0)
    pred_new[alone_pred] = i.size + np.arange(alone_pred.size)
    gt_new[alone_gt] = i.size + alone_pred.size + np.arange(alone_gt.size)
    return Matching(
        pred_new,
        gt_new,
        np.concatenate([gt_class[i], pred_class[alone_pred], gt_class[alone_gt]]),
        iou,
        alone_pred.size,
        maps.void_share[alone_pred],
    )
