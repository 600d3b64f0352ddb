"""Sparse tables of the overlaps n(i,j) between a segmentation and the annotators of an image.

n(i,j) is the number of pixels in region i of the segmentation and region j of an annotator. Every
distinct label is one region, connected or not. Columns are the regions of all annotators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import I8, Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Map, same_shape
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.metrics.label_maps import as_label_map

AREA_SHARE = 0.99  # of the image, held by the candidates for objects and parts


class RegionMap(NamedTuple):
    """A flat label map, its regions numbered 0, 1, ... in raster order of their first pixels."""

    labels: I4  # (N,), the region of each pixel
    area: I8  # (regions,), pixels of each region
    zero: int  # the number that the label 0 got, or -1 if the map has no 0


def number_regions(labels: Map) -> RegionMap:
    """Number the regions of a label map (H, W) of integers in raster order of their first pixels.

    The kernel allocates a table over the range of labels. If the range is large (more than four
    times the number of pixels plus 64 K, or beyond int32), labels are replaced by their ranks.
    """
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    if high - low > 4 * flat.size + 65536 or not -(2**31) <= low <= high < 2**31:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    span = high - low + 1
    number, area = np.empty(flat.size, np.int32), np.zeros(min(span, flat.size), np.int64)
    n_regions = kernel.renumber(
        np.ascontiguousarray(flat, np.int32), low, np.full(span, -1, np.int32), number, area
    )
    first_zero = int((labels == 0).argmax())
    has_zero = labels.flat[first_zero] == 0
    return RegionMap(number, area[:n_regions].copy(), int(number[first_zero]) if has_zero else -1)


@dataclass(frozen=True, eq=False)
class Annotators:
    """The label maps of the A annotators of one image.

    The G regions of all annotators are the columns of `OverlapTable`, annotator after annotator.
    """

    shape: tuple[int, ...]  # rows and columns of the image, which has N pixels
    labels: I4  # (A, N), the region of each pixel, numbered from 0 for each annotator
    col_start: I8  # (A + 1,), the first column of each annotator, and G
    col_area: I8  # (G,), pixels of each column's region
    ann_of_col: I4  # (G,), the annotator of each column
    candidate: Bool  # (G,), whether the region is a candidate for objects and parts
    zero: tuple[int, ...]  # (A,), the column of each annotator's label 0, or -1

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Build from at least one label map (H, W). Raises DataError for other arrays."""
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        regions = [number_regions(array) for array in arrays]
        n_regions = [m.area.size for m in regions]
        start = np.cumsum([0, *n_regions])
        zeros = zip(start[:-1].tolist(), [m.zero for m in regions], strict=True)
        return cls(
            shape=arrays[0].shape,
            labels=np.stack([m.labels for m in regions]),
            col_start=start,
            col_area=np.concatenate([m.area for m in regions]),
            ann_of_col=np.repeat(np.arange(len(regions), dtype=np.int32), n_regions),
            candidate=np.concatenate([select_candidates(m.area) for m in regions]),
            zero=tuple(first + zero if zero >= 0 else -1 for first, zero in zeros),
        )

    @cached_property
    def squares_and_bits(self) -> Any:
        """Sums of b^2, int64 (A,), and b log2 b, float64 (A,), over each annotator's areas b."""
        areas = np.split(self.col_area, self.col_start[1:-1])
        squares, bits = zip(*map(kernel.squares_and_bits, areas), strict=True)
        return np.array(squares, np.int64), np.array(bits)


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """The table of overlaps n(i,j): pixels in region i of a segmentation and j of annotators."""

    gts: Annotators  # whose regions are the columns
    cells: kernel.Cells  # n(i,j) in CSR form; no row is empty
    zero: int = -1  # the row of the segmentation's label 0, or -1; hierarchies have no label 0

    @classmethod
    def of(cls, labels: I4, n_regions: int, gts: Annotators, zero: int = -1) -> OverlapTable:
        """Build from a segmentation (N,) of regions 0 .. n_regions - 1, with label 0 at `zero`."""
        runs = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        return cls(gts, kernel.tabulate(*runs, n_regions, gts.col_area.size), zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Build from a label map (H, W). Raises DataError or ShapeError for other arrays."""
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        regions = number_regions(array)
        return cls.of(regions.labels, regions.area.size, gts, regions.zero)

    def merge_rows(self, new_row: I4, n_rows: int) -> OverlapTable:
        """Return a table of `n_rows` rows; `new_row` int32 (rows,) is the row that each becomes."""
        indptr, cols, counts = self.cells
        rows = np.repeat(new_row, np.diff(indptr))
        table = kernel.tabulate(rows, cols, counts, n_rows, self.gts.col_area.size)
        return OverlapTable(self.gts, table)

    @property
    def n_pixels(self) -> int:
        """The number of pixels N."""
        return self.gts.labels.shape[1]

    @cached_property
    def row_area(self) -> I8:
        """The areas a_i of the rows, int64 (rows,)."""
        indptr, _, counts = self.cells
        sums: I8 = np.add.reduceat(counts, indptr[:-1])  # no row is empty
        return sums // self.gts.labels.shape[0]  # each annotator has all pixels of the row

    @cached_property
    def squares_and_bits(self) -> Any:
        """The sums of a^2 (int) and of a log2 a (float) over the rows' areas a."""
        return kernel.squares_and_bits(self.row_area)

    @cached_property
    def overlaps(self) -> kernel.OverlapSums:
        """The sums over cells that all measures need; see `kernel.OverlapSums`."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def select_candidates(area: Map) -> Bool:
    """Return which regions are candidates for objects and parts, bool (regions,).

    `area` (regions,) holds their pixels. Candidates are the largest regions that cover 0.99 of the
    image: regions are taken in descending area (of equal areas the later in raster order first)
    until they do. Shares are added as doubles, as in SEISM: if regions cover exactly 0.99 of the
    pixels, the sum is often slightly smaller, and one more region is taken.
    """
    order = np.argsort(area, kind="stable")[::-1]
    covered = np.cumsum(area[order] / area.sum())
    candidate = np.empty(area.size, np.bool_)
    candidate[order[0]] = True
    candidate[order[1:]] = covered[:-1] < AREA_SHARE
    return candidate
