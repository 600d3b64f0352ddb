"""From label and instance maps to pairs of masks: by class, by number, or matched by overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.kernels.contingency import value_pairs
from bsdsbench.metrics.contour.label_options import LabelOptions
from bsdsbench.metrics.contour.pairs import (
    F8,
    SIDES,
    LabelPair,
    Labels,
    as_label_maps,
    as_pair,
)
from bsdsbench.scores.ratios import ratio

I8 = NDArray[np.int64]
MATCH_IOU = 0.5  # above it, a region has one partner at most


def pair_of(pred: ArrayLike, gt: ArrayLike, at: LabelOptions) -> tuple[LabelPair, I8 | None]:
    """The masks to compare, and the class of each (None: label k is class k).

    Raises DataError for what is no such map, ShapeError for unequal shapes.
    """
    if at.unit == "class":
        return class_pair(pred, gt, at), None
    found = instances_of(pred, gt, at)
    if at.unit == "id":
        both = np.union1d(found.pred_ids, found.gt_ids)
        pred_new, gt_new = (np.searchsorted(both, ids) for ids in (found.pred_ids, found.gt_ids))
        class_of = class_of_value(both, at)
    else:
        pred_new, gt_new, class_of = match(found)[:3]
    # what regions become, cell by cell, and -1 stays
    sides = ((found.pred, pred_new), (found.gt, gt_new))
    mine, true = (np.append(new, -1).astype(np.int32)[old][found.cell] for old, new in sides)
    return LabelPair(mine, true, class_of.size, (mine.shape[0], mine.shape[1])), class_of


def class_pair(pred: ArrayLike, gt: ArrayLike, at: LabelOptions) -> LabelPair:
    """Masks, or label maps with the labels first, first + 1, .. as labels 0, 1, .."""
    return as_pair(pred, gt, len(at.classes) or None, at.ignore, at.first)


class Instances(NamedTuple):
    """The regions of both maps, each numbered 0, 1, .. by their values in the files, ascending.

    The pixels fall into cells: the pairs of values that occur.
    pred, gt  : i8 (cells,), the region of each map, -1 for none; pixels i8 (cells,)
    cell      : int32 (H, W), the cell of each pixel
    on_crowd  : i8, pixels of each predicted region on any crowd, which pairing counts
    excused   : f8, the share of each predicted region on void or on the crowd of its own class

    Ignored pixels are void, but for the last numbers of the ignored label: with C classes,
    divisor - 1 - k is the crowd of class k (from 0), and of C .. 2 C - 1 one that excuses nothing.
    """

    pred: I8
    gt: I8
    pixels: I8
    cell: Labels
    pred_ids: I8
    gt_ids: I8
    on_crowd: I8
    excused: F8
    at: LabelOptions


def instances_of(pred: ArrayLike, gt: ArrayLike, at: LabelOptions) -> Instances:
    """The regions of two instance maps. Raises DataError and ShapeError."""
    maps = as_label_maps(pred, gt)
    pairs, cell = value_pairs(*(np.ascontiguousarray(m, np.int64).ravel() for m in maps))
    pixels = pairs[2]
    ids, number, _ = _regions(pairs[0], at, SIDES[0])
    gt_ids, gt_number, void = _regions(pairs[1], at, SIDES[1])
    from_last = at.divisor - 1 - pairs[1] % max(at.divisor, 1)
    crowd = void & (from_last >= 0) & (from_last < 2 * len(at.class_names))
    own = crowd & (from_last == class_of_value(pairs[0], at))
    in_pred, on_crowd, off = (
        _sums(np.where(some, number, -1), pixels, ids.size)
        for some in (True, crowd, (void & ~crowd) | own)
    )
    number[void] = -1
    cell = cell.reshape(maps[0].shape)
    excused = ratio(off, in_pred)
    return Instances(number, gt_number, pixels, cell, ids, gt_ids, on_crowd, excused, at)


def class_of_value(values: I8, at: LabelOptions) -> I8:
    """The class of values in the files, from 0."""
    return values // at.divisor - at.first if at.divisor else values * 0


def _sums(number: I8, pixels: I8, n: int) -> I8:
    """Pixels of each of n regions."""
    some = number >= 0
    return np.bincount(number[some], pixels[some], n).astype(np.int64)


def _regions(values: I8, at: LabelOptions, what: str) -> tuple[I8, I8, NDArray[np.bool_]]:
    """The distinct values of instances, ascending; which of them each value is, -1 if none; which
    are void. Raises DataError for those that name no class."""
    classes = values // at.divisor if at.divisor else values
    void = (classes == at.ignore) & (at.ignore >= 0)
    nothing = void | ((classes == 0) & (at.first > 0) if at.divisor else values <= 0)
    last = at.first + max(len(at.classes), 1) - 1
    wrong = ~nothing & ((classes < at.first) | (classes > last))
    if at.divisor and wrong.any():
        value = int(values[wrong][0])
        raise DataError(
            f"{what}: value {value} is class {value // at.divisor}, expected {at.first} .. {last}"
        )
    ids, number = np.unique(np.where(nothing, -1, values), return_inverse=True)
    negative = int((ids < 0).sum())
    return ids[negative:], number - negative, void


class Matching(NamedTuple):
    """Regions with a partner (iou of each), then those of pred alone (excused), then of gt alone.

    pred_new, gt_new : the number of each region in this order; class_of : of the order
    """

    pred_new: I8
    gt_new: I8
    class_of: I8
    iou: F8
    n_pred_only: int
    excused: F8


def match(found: Instances) -> Matching:
    """Pairs of one class whose intersection over union is above 0.5; each region is in one.

    Void counts nowhere; pixels on a crowd stay in the union. Source: panopticapi, evaluation.py.
    """
    n_pred, n_gt = found.pred_ids.size, found.gt_ids.size
    in_pred = _sums(found.pred, found.pixels, n_pred) + found.on_crowd
    in_gt = _sums(found.gt, found.pixels, n_gt)
    both = (found.pred >= 0) & (found.gt >= 0)
    i, j, shared = found.gt[both], found.pred[both], found.pixels[both]
    pred_class, gt_class = (class_of_value(ids, found.at) for ids in (found.pred_ids, found.gt_ids))
    iou = ratio(shared, in_gt[i] + in_pred[j] - shared)
    good = np.flatnonzero((iou > MATCH_IOU) & (pred_class[j] == gt_class[i]))
    good = good[np.argsort(i[good])]
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
        found.excused[alone_pred],
    )
