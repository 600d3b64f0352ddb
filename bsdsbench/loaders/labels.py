"""Label maps: their boundaries, and evidence about the meaning of their numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool, given_array
from bsdsbench.errors import DataError, Setting, ShapeError
from bsdsbench.images import Map, is_binary
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, Values

VOID_EVIDENCE = Evidence(Values.VOID_ALONE)
WHITE_FOR_CLASSES = (
    "only 0 and 255, expected the labels of `classes`, from `first` on (masks: divide them by 255, "
    "or name no `classes`)"
)


def seg2bdry(labels: NDArray[Any], valid: Bool | None = None) -> Bool:
    """Return the boundary pixels of a label map, at image size.

    A pixel is boundary if its label differs from that of the pixel below, to the right or
    diagonally below-right. Neighbours that are outside the image or void count as equal.

    Parameters
    ----------
    labels : array
        (H, W), any integer or bool dtype; the values only need to differ between regions.
    valid : array or None
        (H, W) bool, False for void pixels, which are never boundary. None: no pixel is void.

    Returns
    -------
    array
        Bool (H, W); an empty map gives an empty map.

    Raises
    ------
    ShapeError
        Unless 2-D.

    References
    ----------
    Source: official seg2bdry.m, 'imageSize'.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> bb.seg2bdry(np.array([[1, 1, 2], [1, 1, 2]])).astype(int).tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    labels = given_array(labels, "label map")
    if labels.ndim != 2:
        raise ShapeError(f"label map: shape {labels.shape}, expected (H, W)")
    edge = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in (
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:, :-1], np.s_[:, 1:]),
        (np.s_[:-1, :-1], np.s_[1:, 1:]),
    ):
        differs = labels[pixel] != labels[neighbour]
        edge[pixel] |= differs if valid is None else differs & valid[pixel] & valid[neighbour]
    return edge


def label_evidence(labels: Map, known: Collection[int]) -> Values:
    """Return WHITE_LABELS if a map holds 0 and 255 alone and 255 is no class, or LABELS otherwise.

    One image may hold nothing but 0 and an ignored label; a whole set does not. `known` are the
    labels of the classes.
    """
    is_white = 255 not in known and labels.max(initial=0) == 255 and is_binary(labels)
    return Values.WHITE_LABELS if is_white else Values.LABELS


def refuse_white(pred: Map, gt: Map, known: Collection[int], what: str) -> None:
    """Raise DataError if a prediction has 0 and 255 alone, but the ground truth has other labels.

    `known` are the labels of the classes; a class 255 is allowed.
    """
    has_label = (gt != 0) & (gt != 255)
    is_white = label_evidence(pred, known) is Values.WHITE_LABELS
    if is_white and has_label.any() and (pred[gt != 255] != 0).any():
        raise DataError(f"{what}: {WHITE_FOR_CLASSES}")


def number_evidence(numbers: Map, void: Collection[float], by_number: bool = False) -> Evidence:
    """Return whether a map of instances has several numbers, or one number in several pieces.

    `by_number` is True if an object keeps its number, and may have several pieces.
    """
    is_object = (numbers > 0) & ~np.isin(numbers, list(void))
    number = numbers.max(initial=0, where=is_object)
    if not number:
        return VOID_EVIDENCE if np.isin(numbers, list(void)).any() else NO_EVIDENCE
    if (numbers != number)[is_object].any():
        return Evidence(Values.NUMBERS)
    if by_number:
        return Evidence(levels=(float(number),))
    from scipy.ndimage import label

    has_pieces = label(is_object, np.ones((3, 3)))[1] > 1
    return Evidence(Values.PIECES if has_pieces else Values.NOTHING, (float(number),))


def id_evidence(labels: Map, ids: Sequence[int], ignored: Collection[int]) -> Evidence:
    """Return whether the labels are train ids or label ids, which have gaps.

    A set with label ids has an id that is not below the number of classes. Train ids include labels
    below that number that are no id.
    """
    present = np.setdiff1d(labels, [0, *ignored])
    if np.isin(present[present >= len(ids)], ids).any():
        return Evidence(Values.LABEL_IDS)
    below = present[present < len(ids)]
    return Evidence(Values.TRAIN_IDS) if np.setdiff1d(below, ids).size else NO_EVIDENCE


def train_id_options(metric: str) -> Setting:
    """Return the setting with which a metric reads train ids instead of label ids."""
    ignored = (Setting(f"{metric}.ignore", 255),)
    return Setting(f"{metric}.ids", [], "for train ids on both sides", ignored)
