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
        (H, W) bool, False for void pixels, which are never boundary pixels. None means that no
        pixel is void.

    Returns
    -------
    array
        (H, W) bool, True for boundary pixels.

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
    """Tell whether an (H, W) label map may actually be a mask of 0 and 255.

    Returns WHITE_LABELS if it may be a mask: it has the value 255, no other value except 0, and 255
    is not the label of a class. Returns LABELS otherwise. `known` are the labels of the classes.

    One such image proves little, because 255 may be an ignored label. But if all images of a set
    are like this, they are masks.
    """
    is_white = (
        255 not in known
        and is_binary(labels[::16])  # a few rows are enough for most maps
        and labels.max(initial=0) == 255
        and is_binary(labels)
    )
    return Values.WHITE_LABELS if is_white else Values.LABELS


def refuse_white(pred: Map, gt: Map, known: Collection[int], what: str) -> None:
    """Check that a prediction does not hold a mask where the ground truth holds class labels.

    - pred, gt: (H, W) label maps of the prediction and of the ground truth
    - known: the labels of the classes
    - what: the name of the prediction in the error message

    Raises DataError if the prediction looks like a mask of 0 and 255 (see `label_evidence`), the
    ground truth has labels other than 0 and 255, and the prediction is 255 at a pixel where the
    ground truth is not.
    """
    if label_evidence(pred, known) is not Values.WHITE_LABELS:
        return
    has_label = (gt != 0) & (gt != 255)
    if has_label.any() and (pred[gt != 255] != 0).any():
        raise DataError(f"{what}: {WHITE_FOR_CLASSES}")


def number_evidence(numbers: Map, void: Collection[float], by_number: bool = False) -> Evidence:
    """Return evidence on whether a map gives each object (instance) a number of its own.

    If all maps of a set have a single number for many objects, the objects were not numbered.

    - numbers: (H, W) map of object numbers
    - void: the values of void pixels. All other values above 0 are object numbers.
    - by_number: True if objects are identified by their numbers. An object may then consist of
      several pieces, so pieces are no evidence.

    Returns this evidence:

    - If there is no object: VOID_ALONE if there are void pixels, and otherwise none.
    - If there are several numbers: NUMBERS.
    - If there is one number, it is stored in `levels`. If its pixels form several connected pieces,
      the evidence is also PIECES, unless `by_number` is True.
    """
    # Look at every 16th row first, which often has several numbers; then look at the whole map
    for rows in (numbers[::16], numbers):
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
    """Return evidence on which of the two numberings of Cityscapes a label map uses.

    Label ids have gaps. Train ids number the same n classes from 0 to n - 1. A label of the map can
    therefore only be a label id if it is n or larger, and only be a train id if it is below n and
    not one of the label ids.

    - labels: (H, W) label map
    - ids: the n label ids of the classes
    - ignored: labels that are not considered; 0 is not considered either

    Returns LABEL_IDS if some label can only be a label id. If there is none, returns TRAIN_IDS if
    some label can only be a train id. Otherwise, returns no evidence.
    """
    n_classes = len(ids)
    present = np.setdiff1d(labels, [0, *ignored])
    is_small = present < n_classes
    if np.isin(present[~is_small], ids).any():
        return Evidence(Values.LABEL_IDS)
    if not np.isin(present[is_small], ids).all():
        return Evidence(Values.TRAIN_IDS)
    return NO_EVIDENCE


def train_id_options(metric: str) -> Setting:
    """Return the options by which a metric reads train ids: METRIC.ids=[] and METRIC.ignore=255.

    They are suggested in an error message. `metric` is the name of the metric.
    """
    ignored = (Setting(f"{metric}.ignore", 255),)
    return Setting(f"{metric}.ids", [], "for train ids on both sides", ignored)
