"""Which pixels of two label maps are correct, false positives or missed, for overlays.

A pixel is correct if both maps have the same object there: the mask, the same class, or two paired
objects. Void pixels, which are not to be judged, are neither correct nor wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import I8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.distances import distances
from bsdsbench.metrics.contour.pairs import LabelPair, as_masks, pair_masks
from bsdsbench.metrics.label_maps import MapContents, name_file_in_errors
from bsdsbench.metrics.label_metric import read_maps
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    OTHER_PIXEL,
    DrawnSteps,
    LargestError,
    changes_of,
)


def draw_masks(pred: Bool, gt: Bool, spacing: tuple[float, float] | None = None) -> DrawnSteps:
    """Classify the pixels of two masks (H, W) as correct, false positive or missed, for an overlay.

    If `spacing` (the distance between neighbouring rows and columns) is given, the two pixels
    between which the Hausdorff distance of the masks is measured are marked.
    """
    pair = LabelPair(pred.astype(np.int32) - 1, gt.astype(np.int32) - 1, 1, pred.shape)
    return _draw_classes(pair, np.zeros(1, np.int64), ("mask",), spacing)


def draw_regions(
    pred: Prediction, gt: GroundTruth, opt: MapContents, spacing: tuple[float, float] | None = None
) -> DrawnSteps:
    """Classify the pixels of an image as correct, false positive or missed, for each class.

    If the maps are two masks, their foreground is the only class.

    opt: the options that say what the maps hold.
    spacing: the distance between neighbouring rows and between neighbouring columns. If it is
        given, the result also marks, for each class, the two pixels between which the largest
        Hausdorff distance of an object is measured.
    """
    with name_file_in_errors(pred, gt):
        pred_map, gt_map, opt = read_maps(pred, gt, opt)
        if opt.unit == "class" and not opt.classes:
            masks = as_masks(pred_map, gt_map, opt.ignored)
            return draw_masks(masks.pred, masks.gt, spacing)
        pair, class_of, _ = pair_masks(pred_map, gt_map, opt)
    return _draw_classes(pair, class_of, opt.class_names, spacing)


def _draw_classes(
    pair: LabelPair, class_of: I8, names: Sequence[str], spacing: tuple[float, float] | None
) -> DrawnSteps:
    """Classify each pixel for each class: correct, false positive, missed, other, or no object.

    These outcomes are defined in `_outcomes`.

    class_of (n,): the class of each label in `pair`, an index of `names`.
    names: the names of the classes.
    spacing: the distance between neighbouring rows and between neighbouring columns, or None if no
        distances are to be marked.

    Returns steps whose `parts` are the classes. If there are several classes, "all classes" is the
    first part. The pixels are counted so that the F of a part is its Dice.
    """
    # Name of a part -> its class, or None for all classes
    parts: dict[str, int | None] = {"all classes": None} if len(names) > 1 else {}
    parts |= {name: k for k, name in enumerate(names)}
    columns = [_outcomes(pair, class_of, number).ravel() for number in parts.values()]
    outcomes = np.stack(columns, axis=1)  # (pixels, parts)
    n_right = (outcomes == MATCHED_PIXEL).sum(axis=0)  # (parts,), and so on
    n_false = (outcomes == FALSE_PIXEL).sum(axis=0)
    n_missed = (outcomes == MISSED_PIXEL).sum(axis=0)
    n_other = (outcomes == OTHER_PIXEL).sum(axis=0)
    # "Other" pixels are in different objects of the two maps, so they are missed and false
    n_gt, n_pred = n_right + n_missed + n_other, n_right + n_false + n_other
    errors = {} if spacing is None else _largest_errors(pair, class_of, spacing)
    return DrawnSteps(
        np.arange(float(len(parts))),
        np.stack([n_right, n_gt, n_right, n_pred], axis=-1),
        *changes_of(outcomes, pair.shape),
        parts=tuple(parts),
        measure="Dice",
        marks=tuple(errors.get(number) for number in parts.values()),
    )


def _outcomes(pair: LabelPair, class_of: I8, number: int | None) -> Map:
    """Classify each pixel by the objects of one class that are there, or of all classes.

    number: the class, or None for the objects of all classes.

    Returns uint8 (H, W). A pixel is MATCHED_PIXEL if both maps have the same object there,
    OTHER_PIXEL if they have different objects, FALSE_PIXEL if only `pred` has an object,
    MISSED_PIXEL if only `gt` has one, and 0 if neither has.
    """
    is_wanted = np.ones(class_of.size, bool) if number is None else class_of == number
    is_wanted = np.append(is_wanted, False)  # the index -1 (no object) takes the last entry
    in_pred, in_gt = is_wanted[pair.pred], is_wanted[pair.gt]
    is_right = in_pred & (pair.pred == pair.gt)
    conditions = [is_right, in_pred & in_gt, in_pred, in_gt]  # the first that holds decides
    codes = [MATCHED_PIXEL, OTHER_PIXEL, FALSE_PIXEL, MISSED_PIXEL]
    return np.select(conditions, np.array(codes, np.uint8), np.uint8(0))


def _largest_errors(
    pair: LabelPair, class_of: I8, spacing: tuple[float, float]
) -> dict[int | None, LargestError]:
    """Find the object with the largest Hausdorff distance in each class, and in all classes.

    Objects that only one of the maps has are left out.

    Returns class -> the two pixels between which this distance lies, and the distance. The key None
    is for all classes together. Classes without an object in both maps have no entry.
    """
    largest: dict[int | None, LargestError] = {}
    pred_rims, gt_rims = (
        distances.rims(np.pad(labels.astype(np.int32), 1, constant_values=-1), pair.n)
        for labels in (pair.pred, pair.gt)
    )
    for rims, other in ((pred_rims, gt_rims), (gt_rims, pred_rims)):
        squared = distances.nearest(rims, other, *spacing)
        for label in range(pair.n):
            first, end = rims.start[label], rims.start[label + 1]
            if not np.isfinite(squared[first:end]).any():  # one map has no such object
                continue
            farthest = first + int(squared[first:end].argmax())
            row, col = int(rims.rows[farthest]), int(rims.cols[farthest])
            nearest = _nearest_point(other, label, row, col, spacing)
            error = LargestError(
                row=row,
                col=col,
                to_row=int(other.rows[nearest]),
                to_col=int(other.cols[nearest]),
                distance=float(np.sqrt(squared[farthest])),
            )
            for number in (None, int(class_of[label])):
                if number not in largest or error.distance > largest[number].distance:
                    largest[number] = error
    return largest


def _nearest_point(
    outlines: distances.Outlines, label: int, row: int, col: int, spacing: tuple[float, float]
) -> int:
    """Return the index, in `outlines`, of a label's outline point that is nearest to (row, col).

    spacing: the distance between neighbouring rows and between neighbouring columns.

    If several points are equally near, the first in raster order is returned.
    """
    first, end = outlines.start[label], outlines.start[label + 1]
    down = (outlines.rows[first:end] - row) * spacing[0]
    right = (outlines.cols[first:end] - col) * spacing[1]
    return int(first + (down**2 + right**2).argmin())
