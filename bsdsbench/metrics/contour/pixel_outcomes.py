"""Which pixels of two label maps are correct, false positives or missed, for overlays.

A pixel is correct if both maps have the same object there: the mask, the same class, or two paired
instances. Void pixels are neither correct nor wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Bools
from bsdsbench.kernels.distances import distances
from bsdsbench.metrics.contour.outlines import trace
from bsdsbench.metrics.contour.pairs import LabelPair
from bsdsbench.metrics.label_maps import Spacing
from bsdsbench.metrics.pixel_steps import LargestError, OverlaySteps, PixelClass, steps_of_classes


def draw_masks(pred: Bools, gt: Bools, spacing: Spacing | None = None) -> OverlaySteps:
    """Classify the pixels of two masks (H, W) as correct, false positive or missed, for an overlay.

    spacing: distance between rows and between columns. If given, the pair of pixels at the
        Hausdorff distance of the masks is marked.
    """
    # As label maps with -1 as background and 0 as the only label
    maps = pred.astype(np.int32) - 1, gt.astype(np.int32) - 1
    pair = LabelPair(*maps, n=1, shape=pred.shape, class_of=np.zeros(1, np.int64))
    return draw_classes(pair, ("mask",), spacing)


def draw_classes(pair: LabelPair, names: Sequence[str], spacing: Spacing | None) -> OverlaySteps:
    """Classify the pixels of two label maps for drawings of their errors, one for each class.

    If there are several classes, a drawing of all of them comes first. In a drawing, a pixel is
    correct, false, missed, in different objects of the two maps (OTHER), or in no object. An OTHER
    pixel counts as annotated and as predicted, so the F-measure of a drawing is its Dice score.

    pair: the maps. An object has the same label 0 .. n - 1 in both; -1 is no object.
    names: the names of the classes, of which `pair.class_of` has the indices.
    spacing: distance between rows and between columns. If given, a drawing marks the two pixels at
        the largest Hausdorff distance of an object, if any object is in both maps.

    Each drawing is a step of the `OverlaySteps`, which list what changes from one to the next.
    """
    # The drawings: name -> index of its class, or None for all classes
    parts: dict[str, int | None] = {"all classes": None} if len(names) > 1 else {}
    parts |= {name: k for k, name in enumerate(names)}
    codes = (PixelClass.MATCHED, PixelClass.OTHER, PixelClass.FALSE, PixelClass.MISSED)
    # For each drawing, MATCHED where both maps have the same object of its class, OTHER where they
    # have different ones, FALSE for an object in pred only, MISSED for one in gt only, otherwise 0
    columns = []
    for class_index in parts.values():
        is_wanted = np.ones(pair.n, bool) if class_index is None else pair.class_of == class_index
        is_wanted = np.append(is_wanted, False)  # the index -1 (no object) takes the last entry
        in_pred, in_gt = is_wanted[pair.pred], is_wanted[pair.gt]
        is_right = in_pred & (pair.pred == pair.gt)
        conditions = [is_right, in_pred & in_gt, in_pred, in_gt]  # the first that holds decides
        columns.append(np.select(conditions, np.array(codes, np.uint8), np.uint8(0)).ravel())
    outcomes = np.stack(columns, axis=1)  # (pixels, drawings), 0 for no object
    n_right, n_other, n_false, n_missed = ((outcomes == code).sum(axis=0) for code in codes)
    n_gt, n_pred = n_right + n_missed + n_other, n_right + n_false + n_other
    # Index of a class, or None for all classes -> the two pixels at its largest Hausdorff distance
    errors = {} if spacing is None else _largest_errors(pair, spacing)
    marks = tuple(map(errors.get, parts.values()))
    numbers = np.arange(float(len(parts)))  # of the drawings
    # The columns of match counts: matched and all pixels of gt, then of pred
    matches = np.stack([n_right, n_gt, n_right, n_pred], axis=-1)
    steps = steps_of_classes(numbers, matches, outcomes, pair.shape)
    return steps._replace(parts=tuple(parts), measure="Dice", marks=marks)


def _largest_errors(pair: LabelPair, spacing: Spacing) -> dict[int | None, LargestError]:
    """Find the two pixels at the largest Hausdorff distance of an object in each class.

    An object's rim consists of its pixels with a 4-neighbour of another label or at the image edge.
    Its Hausdorff distance is the largest distance from a pixel of its rim in either map to the
    nearest pixel of its rim in the other map.

    pair: the maps. An object has the same label 0 .. n - 1 in both.
    spacing: distance between rows and between columns.

    Returns class -> the two pixels and their distance. The key None stands for all classes. A class
    has no entry if none of its objects is in both maps.
    """
    largest: dict[int | None, LargestError] = {}
    pred_rims, gt_rims = (trace(labels, pair.n, "rim") for labels in (pair.pred, pair.gt))
    # The rim pixels of label k are at start[k] .. start[k + 1] - 1 of the arrays rows and cols
    for rims, other in ((pred_rims, gt_rims), (gt_rims, pred_rims)):
        # (rim pixels,), to the nearest rim pixel of the same label in the other map; inf if none
        squared = distances.nearest(rims, other, *spacing)
        for label in range(pair.n):
            first, end = rims.start[label], rims.start[label + 1]
            if not np.isfinite(squared[first:end]).any():  # one map has no such object
                continue
            farthest = first + int(squared[first:end].argmax())
            row, col = int(rims.rows[farthest]), int(rims.cols[farthest])
            other_first, other_end = other.start[label], other.start[label + 1]
            down = (other.rows[other_first:other_end] - row) * spacing[0]
            right = (other.cols[other_first:other_end] - col) * spacing[1]
            nearest = other_first + int((down**2 + right**2).argmin())  # first in raster order
            to_row, to_col = int(other.rows[nearest]), int(other.cols[nearest])
            error = LargestError(row, col, to_row, to_col, float(np.sqrt(squared[farthest])))
            for key in (None, int(pair.class_of[label])):
                if key not in largest or error.distance > largest[key].distance:
                    largest[key] = error
    return largest
