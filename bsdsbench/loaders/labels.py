"""Label maps and masks (H, W): their boundaries, and clues to what their values mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools, check_array
from bsdsbench.errors import DataError, Setting, ShapeError
from bsdsbench.images import Map, is_binary, labels_to_integers
from bsdsbench.protocol.fields import tidy
from bsdsbench.scores.counts import LEVELS, NO_EVIDENCE, Evidence, Values

# Slices of a map: pixels, and their neighbours below, to the right, and diagonally between these
PIXEL_PAIRS: tuple[tuple[Any, Any], ...] = (
    (np.s_[:-1], np.s_[1:]),
    (np.s_[:, :-1], np.s_[:, 1:]),
    (np.s_[:-1, :-1], np.s_[1:, 1:]),
)
VOID_EVIDENCE = Evidence(Values.VOID_ALONE)
WHITE_FOR_CLASSES = (
    "only 0 and 255, expected the labels of `classes`, from `first` on (if these are masks, divide "
    "them by 255, or give no `classes`)"
)


def seg2bdry(labels: NDArray[Any], valid: Bools | None = None) -> Bools:
    """Return the boundary pixels of a label map as an (H, W) bool map.

    A pixel is a boundary pixel if its label differs from that of the pixel below, to the right, or
    diagonally below and right. Neighbours that are void or outside the image are not compared.

    Parameters
    ----------
    labels : array
        (H, W), integers, whole floats or bools; they only need to differ between regions.
    valid : array or None
        (H, W), False or 0 for void pixels, which are never boundary pixels. None means that no
        pixel is void.

    Raises
    ------
    ShapeError, DataError
        If the map does not have two axes or whole numbers, or `valid` has another shape.

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
    labels = check_array(labels, "label map")
    if labels.ndim != 2:
        raise ShapeError(f"label map: shape {labels.shape}, expected (H, W)")
    labels = labels_to_integers(labels, "label map")
    if valid is not None:
        valid = check_array(valid, "valid") != 0
        if valid.shape != labels.shape:
            raise ShapeError(f"valid: shape {valid.shape}, expected {labels.shape} of the labels")
    edge = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in PIXEL_PAIRS:
        differs = labels[pixel] != labels[neighbour]
        edge[pixel] |= differs if valid is None else differs & valid[pixel] & valid[neighbour]
    return edge


def lone_label(labels: Map) -> int:
    """Return the label that may be void in a map of regions, (H, W), and 0 if there is none.

    It is the smallest label if that is negative. Otherwise it is 255 or 65535, if that is the
    largest label, far above the others, which lie closer together.
    """
    smallest, largest = int(labels.min(initial=0)), int(labels.max(initial=0))
    if smallest < 0:
        return smallest
    if largest not in (255, 65535):
        return 0
    gaps: list[int] = np.diff(np.unique(labels)).tolist()  # between successive labels
    if len(gaps) < 2:
        return 0
    is_far_above = gaps[-1] > max(64, 2 * max(gaps[:-1]))
    return largest if is_far_above else 0


def has_specks(labels: Map) -> bool:
    """Return True if over 0.05 % of the pixels of a map of regions, and over 50, are specks.

    In the map, (H, W), a speck has another label than its eight neighbours, unlike a pixel of a
    thin line. In what people drew in BSDS500 val, at most 0.013 % of the pixels are specks, and in
    most maps over 0.05 % if that was saved as JPEG.
    """
    inner = labels[1:-1, 1:-1]
    is_speck = np.ones(inner.shape, np.bool_)
    for row, col in np.ndindex(3, 3):
        if (row, col) != (1, 1):
            is_speck &= labels[row : row + inner.shape[0], col : col + inner.shape[1]] != inner
    return bool(np.count_nonzero(is_speck) > max(50, 0.0005 * labels.size))


def label_evidence(labels: Map, known: Collection[int]) -> Values:
    """Return the flag WHITE_LABELS if an (H, W) label map may be a mask, otherwise LABELS.

    It may be a mask of 0 and 255 if it has no other values, some 255, and 255 is not one of the
    `known` class labels. A single such image proves little, because 255 may be an ignored label; if
    all images of a set are such, they are masks.
    """
    if 255 in known or not is_binary(labels[::16]):  # a few rows are enough for most maps
        return Values.LABELS
    is_mask = labels.max(initial=0) == 255 and is_binary(labels)
    return Values.WHITE_LABELS if is_mask else Values.LABELS


def reject_binary_prediction(pred: Map, gt: Map, known: Collection[int], what: str) -> None:
    """Raise DataError if a prediction is a binary mask but class labels are expected.

    That is, if `pred` (H, W) has only 0 and 255, the ground truth `gt` other labels, and `pred` is
    255 where `gt` is not. `known` are the class labels, and `what` names the prediction.
    """
    if label_evidence(pred, known) is not Values.WHITE_LABELS:
        return
    has_label = (gt != 0) & (gt != 255)
    if has_label.any() and (pred[gt != 255] != 0).any():
        raise DataError(f"{what}: {WHITE_FOR_CLASSES}")


def number_evidence(numbers: Map, void: Collection[float], by_number: bool = False) -> Evidence:
    """Return evidence of whether the objects (instances) in a map have different numbers.

    In the (H, W) map `numbers`, void pixels have the values `void`, and all other values above 0
    are objects. The evidence, by which the whole set is judged once all images are read, is

    - the flag NUMBERS if the objects have several numbers
    - for a single number: this number as `levels`, and PIECES if its pixels form several connected
      components, as if a mask was given in place of numbers. If `by_number` is True, the metric
      pairs objects by number, and this is not tested.
    - without an object: VOID_ALONE if there are void pixels, otherwise nothing
    """
    # Every 16th row often has several numbers already, which saves looking at the whole map. The
    # whole map is last, so that `is_object` is then that of all pixels
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
    if by_number:  # an object may have several components
        return Evidence(levels=(float(number),))
    from scipy.ndimage import label

    n_pieces = label(is_object, np.ones((3, 3)))[1]  # diagonal neighbours are connected
    return Evidence(Values.PIECES if n_pieces > 1 else Values.NOTHING, (float(number),))


def id_evidence(labels: Map, ids: Sequence[int], ignored: Collection[int]) -> Evidence:
    """Return evidence of whether a label map uses Cityscapes label ids or train ids.

    Both number the same n classes: train ids from 0 to n - 1, and label ids (`ids`) with gaps: 7,
    8, 11 .. 33 for 19 classes. LABEL_IDS: some label is a label id and at least n. TRAIN_IDS: none
    is, and some label is below n and not a label id. 0 and the `ignored` labels do not count.
    """
    n_classes = len(ids)
    present = np.setdiff1d(labels, [0, *ignored])  # the distinct labels without these
    is_small = present < n_classes  # as all train ids are, 0 .. n - 1
    if np.isin(present[~is_small], ids).any():
        return Evidence(Values.LABEL_IDS)
    if not np.isin(present[is_small], ids).all():
        return Evidence(Values.TRAIN_IDS)
    return NO_EVIDENCE


def train_id_options(metric: str) -> Setting:
    """Return the fix to suggest for maps of train ids: METRIC.ids=[] and METRIC.ignore=255."""
    ignored = (Setting(f"{metric}.ignore", 255),)
    return Setting(f"{metric}.ids", [], "if both sides hold train ids", ignored)


def third_values(values: Map) -> tuple[float, ...]:
    """Return the sorted distinct values of a mask if it may have a third class, such as void.

    Two values are object and background. Of more than three, one between the smallest and the
    largest must fill a block of 3 x 3 pixels, because resizing and JPEG create values along
    outlines only. More than LEVELS (5) values, some of them in the upper half, are gray instead.

    Returns () if there is no third class. At most LEVELS values are returned, as many as evidence
    can store: of more values, the LEVELS - 1 smallest and the largest.
    """
    levels = distinct_values(values)  # () if there are more than LEVELS
    if len(levels) == 2:
        return ()
    if len(levels) == 3:
        return levels
    low, top = values.min(), values.max()
    if not levels and ((values > top / 2) & (values < top)).any():
        return ()  # gray, like an average of masks
    inner = values[1:-1, 1:-1]  # the pixels with eight neighbours
    fills_block = (inner > low) & (inner < top)
    for row, col in np.ndindex(3, 3):  # keep pixels whose neighbours all have the same value
        fills_block &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
    if not fills_block.any():
        return ()
    if levels:
        return levels
    distinct = np.unique(values)
    return tuple(map(float, (*distinct[: LEVELS - 1], distinct[-1])))


def white_of(values: Map) -> int:
    """Return the value of white in a map's dtype: 255, 65535, 1 for floats, 0 for other dtypes."""
    if values.dtype.kind == "f":
        return 1
    return {"uint8": 255, "uint16": 65535}.get(values.dtype.name, 0)


def distinct_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map in ascending order, or () if there are more than LEVELS.

    >>> distinct_values(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels = list[float]()
    rest = values.ravel()  # the pixels whose values are not yet in `levels`
    # Stops after LEVELS + 1 passes, while np.unique would sort all pixels
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels that must mean void if the map is a mask: all except 0 and white.

    White is 1 if that is a level; otherwise it is the largest level, which must be 255 or 65535.
    Returns () if 0 or white is missing.

    >>> void_levels((0, 1, 255)), void_levels((0, 127, 255)), void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))
