"""What the measures of two label maps compare: pixels, outlines, shells and skeletons.

Three outlines are in use, and give different numbers:

- "rim": pixels of the mask with one of the four neighbours outside the mask or the image
  (scipy, medpy, MONAI, torchmetrics, panoptica).
- "side": pixels that differ from the one to the right, below, or below-right; pixels outside
  the image are equal (seg2bmap: DAVIS and everything that uses its F).
- "corner": corners of pixels where 2 x 2 of them are neither all in nor all out, each with the
  length of contour that crosses there (DeepMind's surface-distance).

Distances are Euclidean, between the sites of the same label in the other map, in the unit of
`spacing` = (row, column) steps.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.errors import DataError
from bsdsbench.images import Map
from bsdsbench.kernels.distances import distances, erosion, outlines
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.contour.pairs import LabelPair
from bsdsbench.metrics.label_maps import Overlaps, find_overlaps

Spacing = tuple[float, float]
PIXELS = (1.0, 1.0)


class Sites(NamedTuple):
    """The outline sites (pixels or corners) of n labels of one map, label after label.

    start : int64 (n + 1,); the sites of label k are start[k] : start[k + 1] of the other arrays
    distance : float64 (sites,), to the other map's outline of the same label, inf if it has none
    length : float64 (sites,), length of contour at the site; 0 unless sites are corners
    """

    start: I8
    distance: F8
    length: F8

    @property
    def n(self) -> I8:
        """The number of sites of each label, int64 (n,)."""
        return np.diff(self.start)

    def sums(self, values: Map) -> F8:
        """Sum `values` (sites,) over the sites of each label, float64 (n,)."""
        label = np.repeat(np.arange(self.n.size), self.n)
        return np.bincount(label, values, self.n.size).astype(np.float64)


BothSites = tuple[Sites, Sites]  # of pred and of gt


class Compared:
    """Two label maps, with the pixels and outlines that measures share, each computed once.

    `pair` holds the maps with labels 0 .. n - 1; `spacing` is the (row, column) step of pixels.
    Raises DataError if a step is not positive and finite.
    """

    def __init__(self, pair: LabelPair, spacing: Spacing = PIXELS) -> None:
        if len(spacing) != 2 or not all(0 < s < math.inf for s in spacing):
            raise DataError(f"spacing {spacing}: expected two steps above 0, of rows and columns")
        self.pair, self.spacing = pair, (float(spacing[0]), float(spacing[1]))
        self._sites: dict[tuple[str, Spacing], BothSites] = {}
        self._shells: dict[int, I8] = {}

    @cached_property
    def areas(self) -> I8:
        """The pixels of each label, int64 (n, 3): common to both maps, in pred, in gt."""
        if self.pair.n == 1:  # masks, in a tenth of the time
            on, true = self.pair.pred >= 0, self.pair.gt >= 0
            return np.array([[np.count_nonzero(mask) for mask in (on & true, on, true)]])
        return self._sum_areas(self._label_pairs.pixels)

    @cached_property
    def _label_pairs(self) -> Overlaps:
        """The pairs of labels that occur at a pixel."""
        return find_overlaps(self.pair.pred, self.pair.gt)

    def _sum_areas(self, pixels: I8) -> I8:
        """Compute `areas` from numbers of pixels, one for each pair in `_label_pairs`."""
        pred, gt, _, _ = self._label_pairs
        labels_of = (np.where(pred == gt, pred, -1), pred, gt)
        # The label -1, which is none, is counted at index 0 and dropped
        sums = [np.bincount(labels + 1, pixels, self.pair.n + 1)[1:] for labels in labels_of]
        return np.stack(sums, axis=1).astype(np.int64)

    def shells(self, size: float) -> I8:
        """Count the pixels of each label's inner boundary, int64 (n, 3), columns as in `areas`.

        The inner boundary, or shell, is what erosions with a 3 x 3 square remove, as many as the
        width that `size` stands for.
        """
        width = _shell_width(self.pair.shape, size)
        if width not in self._shells:
            pred, gt, n, _ = self.pair
            if n == 1:  # masks, in a fifth of the time
                self._shells[width] = erosion.mask_shells(pred >= 0, gt >= 0, width)
            else:
                self._shells[width] = erosion.label_shells(pred, gt, n, width)
        return self._shells[width]

    def sites(self, outline: str, steps: Spacing) -> BothSites:
        """Return the sites of the "rim", "side" or "corner" outlines of pred and gt.

        Distances are in the unit of the (row, column) `steps`.
        """
        if (outline, steps) not in self._sites:
            self._sites[outline, steps] = _find_sites(self.pair, outline, steps)
        return self._sites[outline, steps]

    @cached_property
    def _to_other_label(self) -> F8:
        """The squared distance of each pixel to another label of gt, float64 (H, W)."""
        return distances.to_other_label(self.pair.gt.astype(np.int32), *PIXELS)

    def find(self, what: str, size: float) -> Any:
        """Return the pixels or sites that a measure of `TABLE` compares.

        - "areas": pixels of each label, int64 (n, 3): in both maps, in pred, in gt
        - "shells": the same for the inner boundaries whose width is `size`
        - "trimap": the same for the pixels at most `size` from another label of gt
        - "skeletons": int64 (n, 2, 2), the counts of `skeleton_pixels`
        - "rim", "side", "corner": the `Sites` of pred and gt, with distances in the unit of
          `spacing`, or in pixels if " in pixels" follows

        Raises DataError if the size is not positive and finite.
        """
        if what == "areas":
            return self.areas
        if what == "shells":
            return self.shells(size)
        if what == "trimap":
            if not 0 < size < math.inf:
                raise DataError(f"trimap width {size}: expected pixels above 0")
            near = self._label_pairs.of_pixel[self._to_other_label <= with_tolerance(size * size)]
            return self._sum_areas(np.bincount(near, minlength=self._label_pairs.pixels.size))
        if what == "skeletons":
            return skeleton_pixels(*self.pair[:3])
        outline, _, in_pixels = what.partition(" ")
        return self.sites(outline, PIXELS if in_pixels else self.spacing)


def _find_sites(pair: LabelPair, outline: str, steps: Spacing) -> BothSites:
    """Find the outline sites of both maps, and their distances to the other map's outline.

    - "rim": pixels with a neighbour outside the label; pixels outside the image are outside
    - "side": 2 x 2 windows with pixels inside and outside; the map is continued by its edge pixels
    - "corner": the same windows, also around the image, where pixels outside it are outside
    """
    outlines_of = []  # of pred and gt
    for labels in np.array(pair[:2], np.int32):
        if outline == "side":
            padded = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
        else:
            padded = np.pad(labels, 1, constant_values=-1)
        trace = outlines.rims if outline == "rim" else outlines.corners
        outlines_of.append(trace(padded, pair.n))
    lengths = _contour_lengths(steps)
    sites = []
    for side, other in zip(outlines_of, outlines_of[::-1], strict=True):
        distance = np.sqrt(distances.nearest(side, other, *steps))
        length = np.zeros(distance.size) if outline == "rim" else lengths[side.codes]
        sites.append(Sites(side.start, distance, length))
    return sites[0], sites[1]


def _contour_lengths(steps: Spacing) -> F8:
    """Return the length of contour within 2 x 2 pixels, float64 (16,), by `outlines.corners` code.

    The bits 8, 4, 2, 1 of a code are the upper left, upper right, lower left and lower right pixel.
    The contour joins the midpoints of the edges between unequal pixels: half a diagonal if one
    pixel differs from the others, one step if two neighbours do, two half diagonals if opposite
    pixels do.
    """
    half_diagonal = 0.5 * math.sqrt(steps[0] * steps[0] + steps[1] * steps[1])
    lengths = np.full(16, half_diagonal)
    lengths[[0b0000, 0b1111]] = 0.0
    lengths[[0b1100, 0b0011]] = steps[1]
    lengths[[0b1010, 0b0101]] = steps[0]
    lengths[[0b1001, 0b0110]] = 2 * half_diagonal
    return lengths


def pixel_distances(a: Map, b: Map) -> F8:
    """Compute the distance in pixels from each pixel of mask `a` to the nearest pixel of mask `b`.

    Masks are (H, W). Returns float64, one value for each pixel of `a`, row by row; inf if `b` is
    empty.
    """
    a_sites, b_sites = (np.array(np.nonzero(drawn), np.int32) for drawn in (a, b))
    a_outline, b_outline = (  # one label
        outlines.Outlines(np.array([0, rows.size]), rows, cols) for rows, cols in (a_sites, b_sites)
    )
    squared = distances.nearest(a_outline, b_outline, *PIXELS)
    return np.sqrt(squared)


def _shell_width(shape: tuple[int, ...], size: float) -> int:
    """Return the width in pixels of the inner boundary of Boundary IoU.

    A `size` below 1 is a fraction of the diagonal of the image: the width is rounded, half to even,
    and at least 1. A larger size is the width, without its decimals. Raises DataError if the size
    is not positive and finite.
    """
    if not 0 < size < math.inf:
        raise DataError(f"boundary width {size}: expected a fraction of the diagonal, or pixels")
    return int(size) if size >= 1 else max(1, round(size * math.hypot(*shape)))


def skeleton_pixels(pred: Map, gt: Map, n_labels: int) -> I8:
    """Count the skeleton pixels of every label in two label maps (H, W), where -1 is none.

    Returns int64 (n_labels, 2, 2), by label and map (pred, gt): the pixels of the skeleton that
    have the same label in the other map, and all of them.
    """
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    counts = []
    for labels, other in ((pred, gt), (gt, pred)):
        skeletons = np.full_like(labels, -1)
        for label, box in enumerate(find_objects(labels + 1, n_labels)):
            if box:
                skeletons[box][skeletonize(labels[box] == label)] = label
        is_skeleton = skeletons >= 0
        is_inside = is_skeleton & (skeletons == other)
        counts.append(
            [np.bincount(skeletons[on], minlength=n_labels) for on in (is_inside, is_skeleton)]
        )
    return np.array(counts, np.int64).transpose(2, 0, 1)  # from (map, 2, label)
