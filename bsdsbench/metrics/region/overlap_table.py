"""The overlap (contingency) table of a segmentation's regions and the regions of all annotators.

Each distinct label is one region, connected or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bools, Ints
from bsdsbench.errors import DataError
from bsdsbench.images import Map, same_shape
from bsdsbench.kernels.arrays import Int32s
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.metrics.label_maps import as_label_map

_COVERED_BY_CANDIDATES = 0.99  # fraction of the image that candidates for objects and parts cover


class RegionMap(NamedTuple):
    """The N pixels of a label map, with regions renumbered from 0 in order of first occurrence."""

    labels: Int32s  # (N,), the region of each pixel
    area: Ints  # (regions,), number of pixels of each region
    zero_region: int  # new number of the region with label 0, or -1 if the map has no label 0


def number_regions(labels: Map) -> RegionMap:
    """Renumber the regions of a label map (H, W) from 0, in order of first occurrence.

    Returns the region (H * W,) of each pixel, the area (regions,) of each region in pixels, and the
    new number of label 0, or -1 if the map has no label 0.
    """
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    # The kernel uses a table with one entry per integer from low to high. If this would be much
    # larger than the map, or labels do not fit into int32, replace labels by their ranks 0, 1, ...
    is_wide = high - low > 4 * flat.size + 65536
    fits_int32 = low >= -(2**31) and high < 2**31
    if is_wide or not fits_int32:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    span = high - low + 1
    # Filled by the kernel: the region of each pixel, its area (there are at most min(span, pixels)
    # regions), and the region of the label low + i, which is -1 until the label occurs
    region = np.empty(flat.size, np.int32)
    area = np.zeros(min(span, flat.size), np.int64)
    region_of_label = np.full(span, -1, np.int32)
    flat = np.ascontiguousarray(flat, np.int32)
    n_regions = kernel.renumber(flat, low, region_of_label, region, area)
    zero_pixels = np.flatnonzero(labels == 0)  # in the original map, before ranks replaced labels
    zero_region = int(region[zero_pixels[0]]) if zero_pixels.size else -1
    return RegionMap(region, area[:n_regions].copy(), zero_region)


class _AreaSums(NamedTuple):
    """Sums over the regions of one map (scalars), or of each of A annotators (arrays (A,))."""

    squares: Any  # sum of area^2, an integer
    bits: Any  # sum of area x log2(area)


@dataclass(frozen=True, eq=False)
class Annotators:
    """The renumbered label maps of the A annotators of one image.

    The G regions of all maps are the columns of `OverlapTable`, annotator by annotator.
    """

    shape: tuple[int, ...]  # (rows, columns) of the image, which has N pixels
    labels: Int32s  # (A, N), the region of each pixel, numbered from 0 for each annotator
    col_start: Ints  # (A + 1,): annotator k has the columns col_start[k] .. col_start[k + 1] - 1
    col_area: Ints  # (G,), number of pixels of each annotated region
    ann_of_col: Int32s  # (G,), index of the annotator of each column
    candidate: Bools  # (G,), True for candidates for objects and parts (`select_candidates`)
    zero_cols: tuple[int, ...]  # (A,), the column of each annotator's label 0; -1 if there is none

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Number the regions of the annotators' label maps (H, W), and measure their areas.

        The regions of each map are numbered from 0. They are also columns of tables, annotator by
        annotator: if the first map has 5 regions, region 2 of the second map is column 7.

        Two properties of regions are kept for measures that treat some of them differently: which
        have the label 0, which the adapted Rand error may ignore, and which are candidates, the
        large regions that earn credit in the measure of objects and parts.

        Raises DataError without a map or if one is no label map, ShapeError if the shapes differ.
        """
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        region_maps = [number_regions(array) for array in arrays]
        n_regions = [m.area.size for m in region_maps]
        col_start = np.cumsum([0, *n_regions])  # the column of each annotator's region 0
        zero_regions = np.array([m.zero_region for m in region_maps])  # -1: no label 0
        zero_cols = np.where(zero_regions < 0, -1, col_start[:-1] + zero_regions)
        return cls(
            shape=arrays[0].shape,
            labels=np.stack([m.labels for m in region_maps]),
            col_start=col_start,
            col_area=np.concatenate([m.area for m in region_maps]),
            ann_of_col=np.repeat(np.arange(len(region_maps), dtype=np.int32), n_regions),
            candidate=np.concatenate([select_candidates(m.area) for m in region_maps]),
            zero_cols=tuple(zero_cols.tolist()),
        )

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums of area^2 and of area x log2(area) over each annotator's regions, (A,) each."""
        areas_by_annotator = np.split(self.col_area, self.col_start[1:-1])
        squares, bits = zip(*map(kernel.squares_and_bits, areas_by_annotator), strict=True)
        return _AreaSums(np.array(squares, np.int64), np.array(bits))


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """Overlap areas, in pixels, of a segmentation's regions (rows) and annotated ones (columns)."""

    gts: Annotators  # its regions are the columns
    cells: kernel.Cells  # the nonzero overlaps, as a sparse matrix in CSR form; no row is empty
    zero_row: int = -1  # of the segmentation's label 0; -1 if there is none, as in hierarchies

    @classmethod
    def of(
        cls, labels: Int32s, n_regions: int, gts: Annotators, zero_row: int = -1
    ) -> OverlapTable:
        """Tabulate the overlaps of a segmentation's regions with those of all annotators.

        labels (N,): the region 0 .. n_regions - 1 of each pixel, which is its row of the table.
        zero_row: the region that had label 0 before renumbering, or -1 if there is none.
        """
        # Runs of consecutive pixels with the same row and column, and the length of each run
        rows, cols, counts = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        cells = kernel.tabulate(rows, cols, counts, n_regions, gts.col_area.size)
        return cls(gts, cells, zero_row)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Tabulate the overlaps of a segmentation that is given as a label map (H, W)."""
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        regions = number_regions(array)
        return cls.of(regions.labels, regions.area.size, gts, regions.zero_region)

    def merge_rows(self, new_row: Int32s, n_rows: int) -> OverlapTable:
        """Return a new table with `n_rows` rows, in which regions of the segmentation are merged.

        new_row (rows,): for each row of this table, the row of the new table it is added to.
        """
        indptr, cols, counts = self.cells  # sparse (CSR), row r has np.diff(indptr)[r] cells
        rows = np.repeat(new_row, np.diff(indptr))
        table = kernel.tabulate(rows, cols, counts, n_rows, self.gts.col_area.size)
        return OverlapTable(self.gts, table)

    @property
    def n_pixels(self) -> int:
        """The number of pixels N."""
        return self.gts.labels.shape[1]

    @cached_property
    def row_area(self) -> Ints:
        """The area in pixels of each region of the segmentation, int64 (rows,)."""
        indptr, _, counts = self.cells
        sums: Ints = np.add.reduceat(counts, indptr[:-1])  # no row is empty
        return sums // self.gts.labels.shape[0]  # a row counts each pixel once per annotator

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums of area^2 and of area x log2(area) over the segmentation's regions, scalars."""
        return _AreaSums(*kernel.squares_and_bits(self.row_area))

    @cached_property
    def overlap_sums(self) -> kernel.OverlapSums:
        """Sums over the overlaps from which measures are computed, such as sum n^2 (`squares`)."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def select_candidates(area: Map) -> Bools:
    """Select candidate regions for objects and parts: True for each candidate, bool (regions,).

    A candidate is a region that may earn credit in this measure of a segmentation. Regions are
    selected from largest to smallest until they cover 0.99 of the image. Among regions of equal
    area, the last in raster order comes first. `area` (regions,) is in pixels.
    """
    # Of equal areas, a stable sort keeps the raster order of the regions, and [::-1] reverses it
    from_largest = np.argsort(area, kind="stable")[::-1]
    # Divide before summing, as SEISM does. If regions cover exactly 0.99, rounding often makes the
    # sum slightly smaller, and one more region is selected
    covered = np.cumsum(area[from_largest] / area.sum())
    candidate = np.empty(area.size, np.bool_)
    candidate[from_largest[0]] = True
    # A region is selected if those before it, which cover covered[:-1], do not suffice
    candidate[from_largest[1:]] = covered[:-1] < _COVERED_BY_CANDIDATES
    return candidate
