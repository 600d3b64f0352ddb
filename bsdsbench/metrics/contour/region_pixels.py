"""Right, false and missed pixels of masks, label maps and objects.

Overlays and the viewer draw them. A pixel is right if both maps have the same object at the pixel:
the mask, the same class, or two paired objects. Void pixels are neither right nor wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import I8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.distances import distances
from bsdsbench.metrics.contour.pairs import as_masks, pair_masks
from bsdsbench.metrics.label_maps import MapContents, name_file_in_errors, read_maps
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    OTHER_PIXEL,
    DrawnSteps,
    LargestError,
    changes_of,
)


class RegionPixels(NamedTuple):
    """Both maps of an image with the same numbering of objects."""

    pred: Map  # int32 (H, W), the object at each pixel, or -1
    gt: Map
    class_of: I8  # (objects,), the class of each object
    names: tuple[str, ...]  # of the classes
    spacing: tuple[float, float] | None = None  # row, column step; None: distances are not measured

    def steps(self) -> DrawnSteps:
        """Return the class of each pixel (right, false, missed), with one step per part.

        A part is a class; the first part is all classes together, if there are several. The F of a
        step is the Dice of the part.
        """
        parts: dict[str, int | None] = {"all classes": None} if len(self.names) > 1 else {}
        parts |= {name: k for k, name in enumerate(self.names)}
        errors = self._largest_errors()
        classes = np.stack([self._classify(k).ravel() for k in parts.values()], axis=1)
        codes = (MATCHED_PIXEL, FALSE_PIXEL, MISSED_PIXEL, OTHER_PIXEL)
        right, false, missed, other = ((classes == code).sum(axis=0) for code in codes)  # (parts,)
        n_gt, n_pred = right + missed + other, right + false + other
        return DrawnSteps(
            np.arange(float(len(parts))),
            np.stack([right, n_gt, right, n_pred], axis=-1),
            *changes_of(classes, self.pred.shape),
            parts=tuple(parts),
            measure="Dice",
            marks=tuple(errors.get(number) for number in parts.values()),
        )

    def _classify(self, number: int | None) -> Map:
        """Return the class of each pixel as a code of `pixel_steps`, uint8 (H, W); 0 is none.

        Only objects of the class `number` are compared, or all if it is None. A pixel is false if
        `pred` has an object there that `gt` has not, missed likewise, and OTHER_PIXEL if both.
        """
        # One entry per object, and False at the end for the label -1
        is_wanted = np.append((self.class_of == number) | (number is None), False)
        in_pred, in_gt = is_wanted[self.pred], is_wanted[self.gt]
        is_right = in_pred & (self.pred == self.gt)
        kinds = [is_right, in_pred & in_gt, in_pred, in_gt]
        codes = [MATCHED_PIXEL, OTHER_PIXEL, FALSE_PIXEL, MISSED_PIXEL]
        return np.select(kinds, np.array(codes, np.uint8), np.uint8(0))

    def _largest_errors(self) -> dict[int | None, LargestError]:
        """Find the largest Hausdorff distance in each class and, as None, of all objects."""
        if self.spacing is None:
            return {}
        n, largest = self.class_of.size, dict[int | None, LargestError]()
        rims = [
            distances.rims(np.pad(labels.astype(np.int32), 1, constant_values=-1), n)
            for labels in (self.pred, self.gt)
        ]
        for rim, other in (rims, rims[::-1]):
            squared = distances.nearest(rim, other, *self.spacing)
            for label in range(n):
                sites = slice(*rim.start[label : label + 2])
                if not np.isfinite(squared[sites]).any():  # one map has no such object
                    continue
                site = sites.start + int(squared[sites].argmax())
                opposite = slice(*other.start[label : label + 2])
                down = (other.rows[opposite] - rim.rows[site]) * self.spacing[0]
                right = (other.cols[opposite] - rim.cols[site]) * self.spacing[1]
                nearest = opposite.start + int((down**2 + right**2).argmin())
                error = LargestError(
                    row=int(rim.rows[site]),
                    col=int(rim.cols[site]),
                    to_row=int(other.rows[nearest]),
                    to_col=int(other.cols[nearest]),
                    distance=float(np.sqrt(squared[site])),
                )
                for number in (None, int(self.class_of[label])):
                    if number not in largest or error.distance > largest[number].distance:
                        largest[number] = error
        return largest


def mask_pixels(pred: Bool, gt: Bool, spacing: tuple[float, float] | None = None) -> RegionPixels:
    """Convert two bool masks (H, W) to regions of one class, "mask"."""
    pred_labels, gt_labels = (mask.astype(np.int32) - 1 for mask in (pred, gt))
    return RegionPixels(pred_labels, gt_labels, np.zeros(1, np.int64), ("mask",), spacing)


def region_pixels(
    pred: Prediction, gt: GroundTruth, opt: MapContents, spacing: tuple[float, float] | None = None
) -> RegionPixels:
    """Read both maps of an image and pair their objects; `spacing` measures distances."""
    with name_file_in_errors(pred, gt):
        pred_map, gt_map, opt = read_maps(pred, gt, opt)
        if opt.unit == "class" and not opt.classes:
            return mask_pixels(*as_masks(pred_map, gt_map, opt.ignored), spacing)
        pair, class_of, _ = pair_masks(pred_map, gt_map, opt)
    return RegionPixels(pair.pred, pair.gt, class_of, opt.class_names, spacing)
