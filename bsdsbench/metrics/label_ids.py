"""Refuse label maps whose ids cannot be meant: a different numbering, or ids cut to 8 bits.

A map is refused only for what a correct map cannot show. The numbering counts as different if
another numbering makes more than half of the pixels right, and more than four times as many as the
labels as they are.
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
    """Tell whether either side is a stack of maps, with one map for each class or instance."""
    maps = pred.classes, gt.parts.get("class_boundaries", np.zeros((0, 0)))
    return any(side.ndim == 3 for side in maps)


def refuse_stack(maps: Map, shape: tuple[int, ...], what: str) -> None:
    """Raise DataError if `maps` is a stack, (C, H, W) or (H, W, C), and no label map (H, W).

    `shape` is the other side's; from it the message names the axis of the stack.
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
    """Raise DataError if the class labels of the two maps are numbered differently.

    `labels` are the labels of the classes in the options. One side may have their positions
    instead (train ids), or labels that are one too low or too high.
    """
    if pred.shape != gt.shape:
        return
    known = ~np.isin(gt, list(ignored))
    n_known = int(known.sum())
    if 4 * int((pred == gt)[known].sum()) >= n_known:  # enough pixels are right
        return
    flat_pred, flat_gt = (np.ascontiguousarray(m[known], np.int64) for m in (pred, gt))
    predicted, annotated, pixels = value_pairs(flat_pred, flat_gt)[0]
    right = int(pixels[predicted == annotated].sum())
    for renumbered, numbering in _numberings(predicted, np.array(labels)):
        same = renumbered == annotated
        n_agreeing = np.unique(renumbered[same]).size
        agrees = n_agreeing >= FEW or (n_agreeing > 1 and np.isin(renumbered, annotated).all())
        fits = int(pixels[same].sum())
        if agrees and 2 * fits > n_known and 4 * right < fits:
            raise DataError(
                f"{SIDES[0]}: {numbering}, expected one numbering on both sides: as the labels of "
                f"the classes are given, {min(labels)} .. {max(labels)} "
                f"({100 * fits // n_known} % of the pixels would be right, "
                f"{100 * right // n_known} % are)",
                fix=_ways(labels),
            )


def _numberings(values: I8, labels: I8) -> Iterator[tuple[I8, str]]:
    """Yield the predicted labels converted from each other numbering in use, and its name."""
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
    """Raise DataError if one map holds the other map's numbers modulo 256 (or 65536).

    Cut numbers of instances are accepted if all of them still differ; classes and ids are not, as
    the number itself matters.
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
    """Raise DataError if a map uses every number of its type, some for several pieces.

    Such a map had more instances than numbers.
    """
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
    """Number the connected pieces of equal labels from 1; pixels of `background` become 0.

    Pieces are connected by 4 or by 8 `neighbours`.
    """
    from skimage.measure import label

    numbers = np.unique(labels, return_inverse=True)[1].reshape(labels.shape) + 1
    if background is not None:
        numbers[labels == background] = 0
    pieces: Map = label(numbers, background=0, connectivity=1 if neighbours == 4 else 2)
    return pieces
