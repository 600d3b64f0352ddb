"""Ids of label maps that cannot be meant: another numbering than the truth's, or cut to 8 bits.

Only what a map that is meant as it stands does not show is refused. Another numbering is one under
which more than half of the pixels are right, and as they stand fewer than a quarter of those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from bsdsbench.arguments import I8
from bsdsbench.errors import DataError, Fix
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.label_evidence import train_id_options

SIDES = ("prediction", "ground truth")  # what faults begin with
FEW = 3  # labels from which on agreement cannot be chance, even if the truth lacks some


def is_stack(pred: Prediction, gt: GroundTruth) -> bool:
    """Return True if either side is a stack of maps, one a class or an instance."""
    maps = pred.classes, gt.parts.get("class_boundaries", np.zeros((0, 0)))
    return any(side.ndim == 3 for side in maps)


def refuse_stack(maps: Map, shape: tuple[int, ...], what: str) -> None:
    """Raise DataError for (C, H, W) or (H, W, C) in place of a label map (H, W).

    shape : of the other side, which shows the axis where it is no stack too
    """
    if maps.ndim == 3:
        axis = -1 if maps.shape[:2] == shape[-2:] and maps.shape[1:] != shape[-2:] else 0
        raise DataError(
            f"{what}: {maps.dtype} maps of shape {maps.shape}, expected a label map (H, W)",
            fix=(
                f"of classes: numpy.argmax(maps, axis={axis})",
                "of instances: one map with their numbers",
            ),
        )


def refuse_other_numbering(
    pred: Map, gt: Map, labels: Sequence[int], ignored: Collection[float]
) -> None:
    """Raise DataError for class labels of one shape that are numbered in two ways.

    labels : the label of each class in the options, of which either side may have the position
    (train ids) or a neighbour
    """
    if pred.shape != gt.shape:
        return
    known = ~np.isin(gt, list(ignored))
    n_known = int(known.sum())
    if 4 * int((pred == gt)[known].sum()) >= n_known:  # enough is right
        return
    pairs = value_pairs(*(np.ascontiguousarray(m[known], np.int64) for m in (pred, gt)))[0]
    true, pixels = pairs[1], pairs[2]
    right = int(pixels[pairs[0] == true].sum())
    for renumbered, words in _numberings(pairs[0], np.array(labels)):
        same = renumbered == true
        kinds = np.unique(renumbered[same])
        shown = kinds.size >= FEW or (kinds.size > 1 and np.isin(renumbered, true).all())
        fits = int(pixels[same].sum())
        if shown and 2 * fits > n_known and 4 * right < fits:
            raise DataError(
                f"{SIDES[0]}: {words}, expected one numbering on both sides: as the labels of the "
                f"classes are given, {min(labels)} .. {max(labels)} ({100 * fits // n_known} % of "
                f"the pixels would be right, {100 * right // n_known} % are)",
                fix=_ways(labels),
            )


def _numberings(values: I8, labels: I8) -> Iterator[tuple[I8, str]]:
    """Yield predicted labels as they would be if one side had another numbering, and its name."""
    n = len(labels)
    if np.ptp(labels) >= n:  # there are gaps
        order = np.argsort(labels)
        place = order[np.minimum(np.searchsorted(labels, values, sorter=order), n - 1)]
        for first in (0, 1):  # train ids, and those of programs that keep 0 for the background
            train = (values >= first) & (values < first + n)
            of_train = np.where(train, labels[np.where(train, values - first, 0)], -1)
            ids = f"train ids ({first} .. {first + n - 1})"
            yield of_train, f"{ids} beside label ids in the truth"
            to_train = np.where(labels[place] == values, place + first, -1)
            yield to_train, f"label ids beside {ids} in the truth"
    yield values - 1, "labels one above those of the truth"
    yield values + 1, "labels one below those of the truth"


def _ways(labels: Sequence[int]) -> tuple[Fix, ...]:
    if max(labels) - min(labels) < len(labels):
        return ("shift the labels of one side",)
    return (
        "convert one side: label ids are read as they are given",
        train_id_options("semantic"),  # no other metric has labels with gaps
    )


def refuse_cut_numbers(pred: Map, gt: Map, unit: str) -> None:
    """Raise DataError for a map of few bits that holds the other one's numbers modulo 256.

    Instances keep apart as long as no two numbers became one; classes and ids are the number.
    """
    if pred.shape != gt.shape:
        return
    sides = ((pred, gt, SIDES[0]), (gt, pred, SIDES[1]))
    for narrow, wide, what in sides:
        size = 1 << (8 * narrow.dtype.itemsize)
        if narrow.dtype.kind not in "iu" or size > 1 << 16 or wide.max(initial=0) < size:
            continue
        beyond, rest = wide >= size, wide & (size - 1)
        ids = np.unique(wide[wide > 0])
        kept = np.unique(ids & (size - 1))
        lost = unit != "instance" or kept.size < ids.size or kept[0] == 0
        unsigned = narrow.view(f"u{narrow.dtype.itemsize}")
        if lost and 2 * int((unsigned == rest)[beyond].sum()) > int(beyond.sum()):
            raise DataError(
                f"{what}: {narrow.dtype} with the other side's numbers modulo {size} (up to "
                f"{wide.max()} there), expected all their bits: save 16 or 32 bits"
            )


def refuse_reused_numbers(numbers: Map, what: str) -> None:
    """Raise DataError for numbers of instances that ran out: all are in use, some in pieces."""
    size = 1 << (8 * numbers.dtype.itemsize)
    if numbers.dtype.kind != "u" or numbers.max(initial=0) != size - 1:
        return
    used = np.unique(numbers[numbers > 0]).size
    if used == size - 1 and pieces_of(numbers, 8, 0).max() > used:
        raise DataError(
            f"{what}: all {used} numbers of {numbers.dtype} are in use, some for several pieces "
            "(more instances than numbers?), expected one for each instance: save 16 or 32 bits"
        )


def pieces_of(labels: Map, neighbours: int, background: int | None = None) -> Map:
    """Return a label map's connected pieces by number from 1; a `background` stays 0.

    neighbours : 8, or 4 without the diagonal ones
    """
    from skimage.measure import label

    numbers = np.unique(labels, return_inverse=True)[1].reshape(labels.shape) + 1
    if background is not None:
        numbers[labels == background] = 0
    pieces: Map = label(numbers, background=0, connectivity=1 if neighbours == 4 else 2)
    return pieces
