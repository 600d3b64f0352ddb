"""Right, false and missed pixels of masks, label maps and objects, as their metrics compare them.

They are what overlays and the viewer draw. A pixel is right if both maps have the same object
there: the mask, the class, or two objects that are paired. Void is nothing on either side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import I8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.distances import distances, outlines
from bsdsbench.metrics.contour.pairs import as_masks, pair_of
from bsdsbench.metrics.label_maps import LabelOptions, as_counted, faults_named, label_maps


class LargestError(NamedTuple):
    """Where the outlines of an object are farthest apart: a pixel, and the nearest of the other."""

    row: int
    col: int
    to_row: int
    to_col: int
    distance: float  # in the unit of `spacing`


class PartPixels(NamedTuple):
    """The pixels of one class, or of all, bool (H, W) each."""

    right: Bool
    false: Bool
    missed: Bool

    @property
    def dice(self) -> float:
        """Return the Dice of these pixels; NaN without any."""
        right, false, missed = map(np.count_nonzero, self)
        wrong = false + missed
        return 2 * right / (2 * right + wrong) if right + wrong else float("nan")


class RegionPixels(NamedTuple):
    """Both maps of an image in one numbering.

    pred, gt : int32 (H, W), the object of each pixel, -1 for none
    class_of : i8, the class of each object
    names : the classes
    spacing : row and column step where the metric measures distances, else None
    """

    pred: Map
    gt: Map
    class_of: I8
    names: tuple[str, ...]
    spacing: tuple[float, float] | None = None

    def part(self, number: int | None = None) -> PartPixels:
        """Return the pixels of one class, or of all."""
        sides = [self._within(labels, number) for labels in (self.pred, self.gt)]
        right = sides[0] & (self.pred == self.gt)
        return PartPixels(right, sides[0] & ~right, sides[1] & ~right)

    def parts(self) -> Iterator[tuple[str, int | None]]:
        """Yield name and number of what is drawn: of several classes all come first."""
        if len(self.names) > 1:
            yield "all classes", None
        yield from ((name, k) for k, name in enumerate(self.names))

    def _within(self, labels: Map, number: int | None) -> Bool:
        wanted = np.append(np.ones(self.class_of.size, bool), False)
        if number is not None:
            wanted[:-1] = self.class_of == number
        return wanted[labels]

    def largest_error(self, number: int | None = None) -> LargestError | None:
        """Return where the outlines of one class, or of any, are farthest apart, as the largest
        Hausdorff distance of its objects; None without distances or two outlines."""
        if self.spacing is None:
            return None
        n, rims, largest = self.class_of.size, [], None
        for labels in (self.pred, self.gt):
            framed = np.pad(labels.astype(np.int32), 1, constant_values=-1)
            rims.append(outlines.rims(framed, n))
        for (start, rows, cols), other in (rims, rims[::-1]):
            squared = distances.nearest(start, rows, cols, *other, *self.spacing)
            label = np.repeat(np.arange(n), np.diff(start))
            squared[np.isinf(squared)] = -1
            if number is not None:
                squared[self.class_of[label] != number] = -1
            if not squared.size or squared.max() < 0:
                continue
            site = int(squared.argmax())
            others = slice(*other[0][label[site] : label[site] + 2])
            down = (other[1][others] - rows[site]) * self.spacing[0]
            right = (other[2][others] - cols[site]) * self.spacing[1]
            nearest = int((down**2 + right**2).argmin())
            error = LargestError(
                int(rows[site]),
                int(cols[site]),
                int(other[1][others][nearest]),
                int(other[2][others][nearest]),
                float(np.sqrt(squared[site])),
            )
            if largest is None or error.distance > largest.distance:
                largest = error
        return largest


def mask_pixels(pred: Bool, gt: Bool, spacing: tuple[float, float] | None = None) -> RegionPixels:
    """Return two masks (H, W) as regions of one class."""
    pred_labels, gt_labels = (mask.astype(np.int32) - 1 for mask in (pred, gt))
    return RegionPixels(pred_labels, gt_labels, np.zeros(1, np.int64), ("mask",), spacing)


def region_pixels(
    pred: Prediction, gt: GroundTruth, opt: LabelOptions, spacing: tuple[float, float] | None = None
) -> RegionPixels:
    """Return both maps of an image as metrics of label maps compare them.

    Raises DataError for what is no such map.
    """
    opt = as_counted(opt, gt)
    with faults_named(pred, gt):
        maps = label_maps(pred, gt, opt)
        if opt.unit == "class" and not opt.classes:
            return mask_pixels(*as_masks(*maps, opt.ignored), spacing)
        pair, class_of = pair_of(*maps, opt)
    if class_of is None:
        class_of = np.arange(pair.n)
    return RegionPixels(pair.pred, pair.gt, class_of, opt.class_names, spacing)
