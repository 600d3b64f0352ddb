"""Right, false and missed pixels of masks, label maps and objects.

Overlays and the viewer draw them. A pixel is right if both maps have the same object at the pixel:
the mask, the same class, or two paired objects. Void pixels are neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import I8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.distances import distances, outlines
from bsdsbench.metrics.contour.pairs import as_masks, pair_of
from bsdsbench.metrics.label_maps import LabelOptions, as_counted, label_maps, name_file_in_errors
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    OTHER_PIXEL,
    DrawnSteps,
    LargestError,
    changes_of,
)


class PartPixels(NamedTuple):
    """The right, false and missed pixels of one class, or of all classes; bool (H, W) each."""

    right: Bool
    false: Bool
    missed: Bool

    def classes(self) -> NDArray[np.uint8]:
        """Return the code of each pixel, such as MATCHED_PIXEL, or 0; u1 (H, W)."""
        kinds = MATCHED_PIXEL * self.right + FALSE_PIXEL * self.false + MISSED_PIXEL * self.missed
        return np.where(self.false & self.missed, OTHER_PIXEL, kinds).astype(np.uint8)


class RegionPixels(NamedTuple):
    """Both maps of an image with the same numbering of objects.

    pred, gt : int32 (H, W), the object at each pixel, or -1
    class_of : i8 (objects,), the class of each object
    names : the names of the classes
    spacing : row and column step, or None if the metric measures no distances
    """

    pred: Map
    gt: Map
    class_of: I8
    names: tuple[str, ...]
    spacing: tuple[float, float] | None = None

    def part(self, number: int | None = None) -> PartPixels:
        """Return the pixels of the class with this number, or of all classes."""
        sides = [self._within(labels, number) for labels in (self.pred, self.gt)]
        right = sides[0] & (self.pred == self.gt)
        return PartPixels(right, sides[0] & ~right, sides[1] & ~right)

    def parts(self) -> Iterator[tuple[str, int | None]]:
        """Yield the name and number of each drawn part, first all classes if there are several."""
        if len(self.names) > 1:
            yield "all classes", None
        yield from ((name, k) for k, name in enumerate(self.names))

    def steps(self) -> DrawnSteps:
        """Return the codes of the pixels in each part, one part for each step."""
        errors, parts = self.largest_errors(), dict(self.parts())
        pixels = [self.part(number) for number in parts.values()]
        right, false, missed = np.array(
            [[np.count_nonzero(kind) for kind in part] for part in pixels]
        ).T
        classes = np.stack([part.classes().ravel() for part in pixels], axis=1)
        return DrawnSteps(
            np.arange(float(len(parts))),
            np.stack([right, right + missed, right, right + false], axis=-1),
            *changes_of(classes, self.pred.shape),
            parts=tuple(parts),
            measure="Dice",
            marks=tuple(errors.get(number) for number in parts.values()),
        )

    def _within(self, labels: Map, number: int | None) -> Bool:
        wanted = np.append(np.ones(self.class_of.size, bool), False)
        if number is not None:
            wanted[:-1] = self.class_of == number
        return wanted[labels]

    def largest_errors(self) -> dict[int | None, LargestError]:
        """Find the outline pixels that are farthest apart, for each class and, as None, for all.

        Their distance is the largest Hausdorff distance of an object of the class. Classes without
        an object in both maps are left out; the result is {} if the metric measures no distances.
        """
        if self.spacing is None:
            return {}
        n, largest = self.class_of.size, dict[int | None, LargestError]()
        rims = [
            outlines.rims(np.pad(labels.astype(np.int32), 1, constant_values=-1), n)
            for labels in (self.pred, self.gt)
        ]
        for (start, rows, cols), other in (rims, rims[::-1]):
            squared = distances.nearest(start, rows, cols, *other, *self.spacing)
            for label in range(n):
                sites = slice(*start[label : label + 2])
                if not np.isfinite(squared[sites]).any():  # one side has no outline
                    continue
                site = start[label] + int(squared[sites].argmax())
                opposite = slice(*other[0][label : label + 2])
                other_rows, other_cols = other[1][opposite], other[2][opposite]
                down = (other_rows - rows[site]) * self.spacing[0]
                right = (other_cols - cols[site]) * self.spacing[1]
                nearest = int((down**2 + right**2).argmin())
                error = LargestError(
                    int(rows[site]),
                    int(cols[site]),
                    int(other_rows[nearest]),
                    int(other_cols[nearest]),
                    float(np.sqrt(squared[site])),
                )
                for number in (None, int(self.class_of[label])):
                    if number not in largest or error.distance > largest[number].distance:
                        largest[number] = error
        return largest


def mask_pixels(pred: Bool, gt: Bool, spacing: tuple[float, float] | None = None) -> RegionPixels:
    """Convert two masks (H, W) to regions of one class."""
    pred_labels, gt_labels = (mask.astype(np.int32) - 1 for mask in (pred, gt))
    return RegionPixels(pred_labels, gt_labels, np.zeros(1, np.int64), ("mask",), spacing)


def region_pixels(
    pred: Prediction, gt: GroundTruth, opt: LabelOptions, spacing: tuple[float, float] | None = None
) -> RegionPixels:
    """Read both maps of an image as metrics of label maps do.

    Raises DataError if a map is no label map, mask or instance map as the options say.
    """
    opt = as_counted(opt, gt)
    with name_file_in_errors(pred, gt):
        maps = label_maps(pred, gt, opt)
        if opt.unit == "class" and not opt.classes:
            return mask_pixels(*as_masks(*maps, opt.ignored), spacing)
        pair, class_of = pair_of(*maps, opt)
    if class_of is None:
        class_of = np.arange(pair.n)
    return RegionPixels(pair.pred, pair.gt, class_of, opt.class_names, spacing)
