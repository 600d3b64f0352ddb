"""The table of overlaps between the regions of a segmentation and those of all annotators.

Every distinct label is one region, connected or not.
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

_AREA_SHARE = 0.99  # share of the image that the candidates for objects and parts cover


class RegionMap(NamedTuple):
    """The N pixels of a label map, row by row, with regions numbered 0, 1, ...

    The numbers are in the order in which the regions first occur.
    """

    labels: I4  # (N,), the region of each pixel
    area: I8  # (regions,), pixels of each region
    zero: int  # the number of the region that had the label 0, or -1 if the map has no label 0


def number_regions(labels: Map) -> RegionMap:
    """Number the regions of a label map (H, W) in the order in which they first occur."""
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    # The kernel has a table with an entry for each integer from low to high: if that would be
    # large, or labels exceed int32, the labels are replaced by their ranks
    is_wide = high - low > 4 * flat.size + 65536
    fits_int32 = low >= -(2**31) and high < 2**31
    if is_wide or not fits_int32:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    span = high - low + 1
    number, area = np.empty(flat.size, np.int32), np.zeros(min(span, flat.size), np.int64)
    number_of_label = np.full(span, -1, np.int32)  # work space, -1: not seen yet
    flat = np.ascontiguousarray(flat, np.int32)
    n_regions = kernel.renumber(flat, low, number_of_label, number, area)
    first_zero = int((labels == 0).argmax())  # the first pixel if there is no label 0
    zero = int(number[first_zero]) if labels.flat[first_zero] == 0 else -1
    return RegionMap(number, area[:n_regions].copy(), zero)


class _AreaSums(NamedTuple):
    """Two sums over the regions of one map (numbers), or of each of A annotators (arrays (A,))."""

    squares: Any  # the sum of area^2, a whole number
    bits: Any  # the sum of area x log2(area)


@dataclass(frozen=True, eq=False)
class Annotators:
    """The label maps of the A annotators of one image, with numbered regions.

    The G regions of all maps are the columns of `OverlapTable`: first the regions of the first
    annotator, then those of the second, and so on.
    """

    shape: tuple[int, ...]  # rows and columns of the image, which has N pixels
    labels: I4  # (A, N), the region of each pixel, numbered from 0 for each annotator
    col_start: I8  # (A + 1,): annotator k has the columns col_start[k] .. col_start[k + 1] - 1
    col_area: I8  # (G,), pixels of each column's region
    ann_of_col: I4  # (G,), the annotator of each column
    candidate: Bool  # (G,), regions that `select_candidates` chose for objects and parts
    zero: tuple[int, ...]  # (A,), the column of each annotator's label 0, or -1

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Number the regions in the label maps (H, W) of one annotator or more.

        Raises DataError if there is no map, or if they are not label maps of one shape.
        """
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        region_maps = [number_regions(array) for array in arrays]
        n_regions = [m.area.size for m in region_maps]
        col_start = np.cumsum([0, *n_regions])
        zero = np.array([m.zero for m in region_maps])
        return cls(
            shape=arrays[0].shape,
            labels=np.stack([m.labels for m in region_maps]),
            col_start=col_start,
            col_area=np.concatenate([m.area for m in region_maps]),
            ann_of_col=np.repeat(np.arange(len(region_maps), dtype=np.int32), n_regions),
            candidate=np.concatenate([select_candidates(m.area) for m in region_maps]),
            zero=tuple(np.where(zero < 0, -1, col_start[:-1] + zero).tolist()),
        )

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums over the areas b_j of each annotator's regions, two arrays (A,)."""
        areas = np.split(self.col_area, self.col_start[1:-1])
        squares, bits = zip(*map(kernel.squares_and_bits, areas), strict=True)
        return _AreaSums(np.array(squares, np.int64), np.array(bits))


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """The table of overlaps n(i,j): pixels in region i of a segmentation and region j of `gts`."""

    gts: Annotators
    cells: kernel.Cells  # the n(i,j) above 0, as a sparse matrix in CSR form; no row is empty
    zero: int = -1  # the row of the segmentation's label 0, or -1; hierarchies have no label 0

    @classmethod
    def of(cls, labels: I4, n_regions: int, gts: Annotators, zero: int = -1) -> OverlapTable:
        """Count the overlaps of a segmentation whose regions (N,) are numbered 0 .. n_regions - 1.

        zero: the region that had the label 0, or -1 if there is none.
        """
        rows, cols, counts = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        cells = kernel.tabulate(rows, cols, counts, n_regions, gts.col_area.size)
        return cls(gts, cells, zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Count the overlaps of a segmentation that is given as a label map (H, W).

        Raises DataError unless `labels` is a label map of the annotators' shape.
        """
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        regions = number_regions(array)
        return cls.of(regions.labels, regions.area.size, gts, regions.zero)

    def merge_rows(self, new_row: I4, n_rows: int) -> OverlapTable:
        """Return the table, of `n_rows` rows, after some regions of the segmentation were merged.

        new_row (rows,): for each row of this table, the row of the new table to which it is added.
        """
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
        return sums // self.gts.labels.shape[0]  # a row counts its region once for each annotator

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums over the areas a_i of the segmentation's regions, two numbers."""
        return _AreaSums(*kernel.squares_and_bits(self.row_area))

    @cached_property
    def overlaps(self) -> kernel.OverlapSums:
        """The sums over cells that all measures need; see `kernel.OverlapSums`."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def select_candidates(area: Map) -> Bool:
    """Select the regions that are candidates for objects and parts (see `region.counting`).

    Regions are taken from the largest to the smallest until they cover 0.99 of the image. Among
    regions of equal area, the last in raster order is taken first. `area` is in pixels.
    """
    from_largest = np.argsort(area, kind="stable")[::-1]
    # Divided before they are added, as in SEISM: where regions cover exactly 0.99, rounding often
    # makes the sum smaller, and one more region is taken
    covered = np.cumsum(area[from_largest] / area.sum())
    candidate = np.empty(area.size, np.bool_)
    candidate[from_largest[0]] = True
    candidate[from_largest[1:]] = covered[:-1] < _AREA_SHARE  # covered by all larger regions
    return candidate
