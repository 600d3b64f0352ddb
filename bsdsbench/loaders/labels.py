"""Label maps (H, W): their boundaries, and evidence that tells what their numbers mean."""

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

    A pixel is a boundary pixel if its label differs from the label of the pixel below, to the
    right, or diagonally below to the right. Pixels outside the image and void pixels never differ.

    Parameters
    ----------
    labels : array
        (H, W), any integer or bool dtype; the values only need to differ between regions.
    valid : array or None
        (H, W) bool, False for void pixels. None: no pixel is void.

    Returns
    -------
    array
        Bool (H, W).

    Raises
    ------
    ShapeError
        If the map does not have two axes.

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
    pixels_and_neighbours = (
        (np.s_[:-1], np.s_[1:]),  # below
        (np.s_[:, :-1], np.s_[:, 1:]),  # to the right
        (np.s_[:-1, :-1], np.s_[1:, 1:]),  # diagonally below to the right
    )
    for pixel, neighbour in pixels_and_neighbours:
        differs = labels[pixel] != labels[neighbour]
        edge[pixel] |= differs if valid is None else differs & valid[pixel] & valid[neighbour]
    return edge


def label_evidence(labels: Map, known: Collection[int]) -> Values:
    """Return WHITE_LABELS if a label map may be a mask, else LABELS.

    It may be a mask if its values are 0 and 255, and 255 is not among `known`, the labels of the
    classes. One such image proves little, as 255 may be an ignored label, but a set of them does.
    """
    is_white = (
        255 not in known
        and is_binary(labels[::16])  # a few rows are enough for most maps
        and labels.max(initial=0) == 255
        and is_binary(labels)
    )
    return Values.WHITE_LABELS if is_white else Values.LABELS


def refuse_white(pred: Map, gt: Map, known: Collection[int], what: str) -> None:
    """Raise DataError if predicted labels look like a mask of 0 and 255, but true labels do not.

    The prediction is then 255 at some pixel whose true label is not, 255 is not among `known`, the
    labels of the classes, and the ground truth has labels other than 0 and 255. `what` names the
    prediction in the error.
    """
    if label_evidence(pred, known) is not Values.WHITE_LABELS:
        return
    has_label = (gt != 0) & (gt != 255)
    if has_label.any() and (pred[gt != 255] != 0).any():
        raise DataError(f"{what}: {WHITE_FOR_CLASSES}")


def number_evidence(numbers: Map, void: Collection[float], by_number: bool = False) -> Evidence:
    """Return evidence on whether a map gives each object (instance) a number of its own.

    Values in `void` are void, other values above 0 are objects. The evidence is

    - no object: VOID_ALONE if there are void pixels, else nothing
    - several numbers: NUMBERS
    - one number in several connected pieces: PIECES, and the number in `levels`
    - one number in one piece: only the number in `levels`. With `by_number` this also holds for
      several pieces, because objects are then identified by their numbers and may be in pieces.
    """
    for rows in (numbers[::16], numbers):  # a few rows are enough for most maps
        is_object = rows > 0
        for value in void:
            is_object &= rows != value
        if is_object.any():
            number = rows.flat[is_object.argmax()]  # that of the first pixel of an object
            if (is_object & (rows != number)).any():
                return Evidence(Values.NUMBERS)
    if not is_object.any():
        return VOID_EVIDENCE if np.isin(numbers, list(void)).any() else NO_EVIDENCE
    if by_number:
        return Evidence(levels=(float(number),))
    from scipy.ndimage import label

    n_pieces = label(is_object, np.ones((3, 3)))[1]  # diagonal neighbours are connected
    return Evidence(Values.PIECES if n_pieces > 1 else Values.NOTHING, (float(number),))


def id_evidence(labels: Map, ids: Sequence[int], ignored: Collection[int]) -> Evidence:
    """Return evidence on whether labels are label ids or train ids, Cityscapes' two numberings.

    Label ids are the n given `ids`, which have gaps; train ids number the same classes 0 .. n - 1.
    A label of `ids` that is n or more is evidence of LABEL_IDS. Without one, a label below n that
    is not in `ids` is evidence of TRAIN_IDS. Labels 0 and `ignored` are not considered.
    """
    n_classes = len(ids)
    present = np.setdiff1d(labels, [0, *ignored])
    if np.isin(present[present >= n_classes], ids).any():
        return Evidence(Values.LABEL_IDS)
    small_labels = present[present < n_classes]
    return Evidence(Values.TRAIN_IDS) if np.setdiff1d(small_labels, ids).size else NO_EVIDENCE


def train_id_options(metric: str) -> Setting:
    """Return the options by which a metric reads train ids: METRIC.ids=[] and METRIC.ignore=255."""
    ignored = (Setting(f"{metric}.ignore", 255),)
    return Setting(f"{metric}.ids", [], "for train ids on both sides", ignored)
