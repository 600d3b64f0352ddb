"""What measures compare: the areas, inner boundaries, outlines and skeletons of labels in two maps.

There are three kinds of outline in use, which give different numbers (`trace` defines them): "rim"
(scipy, medpy, MONAI, torchmetrics, panoptica), "side" (seg2bmap: DAVIS and everything that uses its
F) and "corner" (DeepMind's surface-distance; each point has the length of the contour around it).
Distances are Euclidean, to the outline of the same label in the other map.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Bools, Floats, Ints, as_numbers
from bsdsbench.errors import DataError
from bsdsbench.images import Map
from bsdsbench.kernels.distances import distances, erosion
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.contour.pairs import LabelPair, Labels
from bsdsbench.metrics.label_maps import Overlaps, Spacing, box_around, find_overlaps

PIXELS = (1.0, 1.0)


class OutlinePoints(NamedTuple):
    """The points (pixels or corners of pixels) of the outlines of n labels in one map."""

    start: Ints  # (n + 1,); the points of label k are start[k] : start[k + 1] of the other arrays
    label: Ints  # (points,), the label of each point
    distance: Floats  # (points,), to the label's outline in the other map; inf if there is none
    length: Floats  # (points,), contour length at each point; 0 for the outline "rim"

    @property
    def n_points(self) -> Ints:
        """The number of points of each label, int64 (n,)."""
        return np.diff(self.start)

    def sum_by_label(self, values: Map) -> Floats:
        """Sum `values` (points,) over the points of each label, float64 (n,)."""
        return np.bincount(self.label, values, self.start.size - 1).astype(np.float64)

    def count_by_label(self, marks: Bools) -> Ints:
        """Count the marked points of each label, int64 (n,), by a mark for each point (points,)."""
        return np.diff(np.searchsorted(np.flatnonzero(marks), self.start))


BothOutlines = tuple[OutlinePoints, OutlinePoints]  # of pred and of gt


class Compared:
    """Two label maps, and the areas and outlines of their labels (computed on first use, cached).

    pair: the two maps, with n labels.
    spacing: distances of rows and of columns. DataError is raised unless finite and above 0.
    """

    def __init__(self, pair: LabelPair, spacing: Spacing = PIXELS) -> None:
        steps = np.array(spacing) if spacing is PIXELS else as_numbers(spacing, "spacing")
        if steps.shape != (2,) or not all(0 < step < math.inf for step in steps):
            raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
        self.pair, self.spacing = pair, (float(steps[0]), float(steps[1]))
        self._outlines: dict[tuple[str, Spacing], BothOutlines] = {}
        self._shells: dict[int, Ints] = {}

    @cached_property
    def areas(self) -> Ints:
        """The number of pixels of each label in both maps, in pred and in gt, int64 (n, 3)."""
        if self.pair.n == 1:  # for masks this takes a tenth of the time
            in_pred, in_gt = self.pair.pred >= 0, self.pair.gt >= 0
            n_both = np.count_nonzero(in_pred & in_gt)
            return np.array([[n_both, np.count_nonzero(in_pred), np.count_nonzero(in_gt)]])
        return self._sum_areas(self._overlaps.pixels)

    @cached_property
    def _overlaps(self) -> Overlaps:
        """The pairs of labels (in pred, in gt) that occur at a pixel."""
        return find_overlaps(self.pair.pred, self.pair.gt)

    def _sum_areas(self, pixels: Ints) -> Ints:
        """Sum numbers of pixels for each label: in both maps, in pred and in gt, int64 (n, 3).

        pixels: the number of pixels for each pair of labels (in pred, in gt) in `_overlaps`.
        """
        pred, gt = self._overlaps.pred, self._overlaps.gt  # the labels of each pair
        in_both = np.where(pred == gt, pred, -1)
        sums = np.zeros((self.pair.n, 3), np.int64)
        for k, labels in enumerate((in_both, pred, gt)):
            # Index 0 is for the pixels of -1 (no label), and is dropped
            sums[:, k] = np.bincount(labels + 1, pixels, self.pair.n + 1)[1:]
        return sums

    def shells(self, size: float) -> Ints:
        """Count the pixels of each label's inner boundary, for Boundary IoU.

        The inner boundary consists of the pixels that repeated erosion with a 3 x 3 square removes.
        `size` is the number of erosions (rounded down) or, if below 1, a fraction of the image
        diagonal, rounded (halves to even) to at least one. It must be above 0 and finite.

        Returns int64 (n, 3): for each label, the number of these pixels in both maps (at the same
        place), in pred, and in gt.
        """
        if not 0 < size < math.inf:
            has = f"boundary width {size}"
            raise DataError(f"{has}: expected a fraction of the diagonal, or pixels")
        diagonal = math.hypot(*self.pair.shape)
        width = int(size) if size >= 1 else max(1, round(size * diagonal))
        if width not in self._shells:
            pred, gt, n = self.pair.pred, self.pair.gt, self.pair.n
            if n == 1:  # for masks (labels 0 and -1) this takes a fifth of the time
                self._shells[width] = erosion.mask_shells(pred >= 0, gt >= 0, width)
            else:
                self._shells[width] = erosion.label_shells(pred, gt, n, width)
        return self._shells[width]

    def outlines(self, kind: str, steps: Spacing) -> BothOutlines:
        """Return the outlines of all labels in pred and in gt, two `OutlinePoints` (cached).

        These give each point's distance to the outline of its label in the other map, and the
        length of the contour in the 2 x 2 pixels around the point. The points of a rim are pixels,
        not corners of four pixels: they have no such length, and it is 0.

        kind: "rim" (pixels with one of their four neighbours outside the label), "side" (pixels
            that differ from their right, lower or lower-right neighbour) or "corner" (corners of
            pixels at which the contour passes).
        steps: the distances between rows and between columns, in the unit of the result.
        """
        if (kind, steps) not in self._outlines:
            n, length_of_pattern = self.pair.n, _contour_lengths(steps)
            # `start`, `rows`, `cols` of the points: label k has those from start[k] to start[k + 1]
            pred, gt = trace(self.pair.pred, n, kind), trace(self.pair.gt, n, kind)
            outlines = []
            for outline, other in ((pred, gt), (gt, pred)):
                squared = distances.nearest(outline, other, *steps)  # to the label's other outline
                length = np.zeros(squared.size)
                if kind != "rim":  # a code 0 .. 15 says which of the 2 x 2 pixels have the label
                    length = length_of_pattern[outline.codes]
                label = np.repeat(np.arange(n), np.diff(outline.start))  # of each point
                outlines.append(OutlinePoints(outline.start, label, np.sqrt(squared), length))
            self._outlines[kind, steps] = outlines[0], outlines[1]
        return self._outlines[kind, steps]

    @cached_property
    def _squared_distance_to_other_label(self) -> Floats:
        """The squared distance of each pixel to the nearest one of another gt label, (H, W)."""
        return distances.to_other_label(self.pair.gt.astype(np.int32), *PIXELS)

    def trimap_areas(self, width: float) -> Ints:
        """Count as `areas`, but only the pixels within `width` pixels of another label of gt."""
        if not 0 < width < math.inf:
            raise DataError(f"trimap width {width}: expected a finite number of pixels above 0")
        # The limit is slightly larger, so that rounding errors do not decide
        is_near = self._squared_distance_to_other_label <= with_tolerance(width * width)
        pair_of_near = self._overlaps.of_pixel[is_near]  # index of the labels in pred and in gt
        n_near = np.bincount(pair_of_near, minlength=self._overlaps.pixels.size)  # of each pair
        return self._sum_areas(n_near)


def trace(labels: Labels, n_labels: int, kind: str) -> distances.Outlines:
    """Trace the outline of each label 0 .. n - 1 in a label map (H, W); -1 is no label.

    kind: "rim" (pixels with one of their four neighbours outside the label), "side" (pixels that
        differ from their right, lower or lower-right neighbour) or "corner" (corners of pixels at
        which the contour passes).

    For a square of 2 x 2 pixels in the middle of a map, "rim" gives its 4 pixels, "side" the 5
    pixels above and to the left of it and 3 of its own, and "corner" the 8 corners on its border.

    Returns the points of the outlines, label by label: rows, columns, and for "side" and "corner" a
    code for which of the 2 x 2 pixels around the point have the label: the sum of 8 (upper left), 4
    (upper right), 2 (lower left) and 1 (lower right).
    """
    labels = labels.astype(np.int32)
    # `corners` returns, for each label, the 2 x 2 windows of pixels of which some have the label
    # and some do not. A window has the index (r, c) of its upper left pixel
    if kind == "side":
        # The last row and column have no lower and right neighbours. Repeating them gives equal
        # ones, which adds no outline along the image's border
        repeated = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
        return distances.corners(repeated, n_labels)
    # Surround the map with "no label", so that an outline also passes along the image's border
    surrounded = np.pad(labels, 1, constant_values=-1)
    if kind == "rim":
        return distances.rims(surrounded, n_labels)
    # The frame shifts the indices by 1: window (r, c) lies around the upper left corner of (r, c)
    return distances.corners(surrounded, n_labels)


def _contour_lengths(steps: Spacing) -> Floats:
    """Return the contour length in a 2 x 2 window of pixels for each pattern, float64 (16,).

    The contour joins the midpoints between neighbouring pixels that differ. The index of a pattern
    has the bits 8, 4, 2, 1 for the upper left, upper right, lower left and lower right pixel.
    `steps` are the distances between rows and between columns.
    """
    half_diagonal = 0.5 * math.sqrt(steps[0] * steps[0] + steps[1] * steps[1])
    lengths = np.full(16, half_diagonal)  # one pixel differs from the other three
    lengths[[0b0000, 0b1111]] = 0.0
    lengths[[0b1100, 0b0011]] = steps[1]  # the rows differ
    lengths[[0b1010, 0b0101]] = steps[0]  # the columns differ
    lengths[[0b1001, 0b0110]] = 2 * half_diagonal  # diagonal neighbours are equal
    return lengths


def pixel_distances(a: Map, b: Map) -> Floats:
    """Compute the distance of each pixel of mask `a` to the nearest pixel of mask `b`.

    Returns float64 (pixels of a,), in raster order and in pixels; inf if `b` is empty.
    """
    outlines = []
    for mask in (a, b):  # the kernel takes the pixels of each as the outline of a single label
        rows, cols = np.array(np.nonzero(mask), np.int32)
        outlines.append(distances.Outlines(np.array([0, len(rows)]), rows, cols))
    return np.sqrt(distances.nearest(outlines[0], outlines[1], *PIXELS))


def skeleton_pixels(pred: Map, gt: Map, n_labels: int) -> Ints:
    """Count the pixels of every label's skeleton (centre line) in two label maps (H, W).

    Returns int64 (n_labels, 2, 2): for pred and for gt, the skeleton pixels that have the same
    label in the other map, and all skeleton pixels. Pixels labelled -1 belong to no label.
    """
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    counts = np.zeros((n_labels, 2, 2), np.int64)
    for side, (labels, other) in enumerate([(pred, gt), (gt, pred)]):
        skeletons = np.full_like(labels, -1)  # the label whose skeleton has the pixel
        if n_labels == 1 and (is_object := labels == 0).any():  # in a tenth of the time
            boxes = [box_around(is_object, 0)]
        else:
            boxes = find_objects(labels + 1, n_labels)
        for label, box in enumerate(boxes):
            if box:  # None if the map lacks the label
                skeletons[box][skeletonize(labels[box] == label)] = label
        is_skeleton = skeletons >= 0
        is_inside = is_skeleton & (skeletons == other)
        counts[:, side, 0] = np.bincount(skeletons[is_inside], minlength=n_labels)
        counts[:, side, 1] = np.bincount(skeletons[is_skeleton], minlength=n_labels)
    return counts
