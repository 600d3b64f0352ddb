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

from bsdsbench.arguments import I8, Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Map, same_shape
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.metrics.label_maps import as_label_map

_AREA_SHARE = 0.99  # fraction of the image to be covered by candidates for objects and parts


class RegionMap(NamedTuple):
    """The N pixels of a label map in raster order, with regions renumbered 0, 1, ...

    Regions are numbered in order of first occurrence.
    """

    labels: I4  # (N,), the region of each pixel
    area: I8  # (regions,), number of pixels of each region
    zero: int  # new number of the region with label 0, or -1 if the map has no label 0


def number_regions(labels: Map) -> RegionMap:
    """Renumber the regions of a label map (H, W) from 0, in order of first occurrence.

    Returns the region (H * W,) of each pixel, the area (regions,) of each region in pixels, and the
    new number of label 0, or -1 if the map has no label 0.
    """
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    # The kernel uses a table with one entry per integer from low to high. If the table would be
    # large or labels do not fit into int32, replace labels by their ranks
    is_wide = high - low > 4 * flat.size + 65536
    fits_int32 = low >= -(2**31) and high < 2**31
    if is_wide or not fits_int32:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    span = high - low + 1
    number, area = np.empty(flat.size, np.int32), np.zeros(min(span, flat.size), np.int64)
    number_of_label = np.full(span, -1, np.int32)  # scratch table; -1: label not seen yet
    flat = np.ascontiguousarray(flat, np.int32)
    n_regions = kernel.renumber(flat, low, number_of_label, number, area)
    first_zero = int((labels == 0).argmax())  # 0, the first pixel, if there is no label 0
    zero = int(number[first_zero]) if labels.flat[first_zero] == 0 else -1
    return RegionMap(number, area[:n_regions].copy(), zero)


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
    labels: I4  # (A, N), the region of each pixel, numbered from 0 for each annotator
    col_start: I8  # (A + 1,): annotator k has the columns col_start[k] .. col_start[k + 1] - 1
    col_area: I8  # (G,), number of pixels of each annotated region
    ann_of_col: I4  # (G,), index of the annotator of each column
    candidate: Bool  # (G,), True for candidates for objects and parts (`select_candidates`)
    zero: tuple[int, ...]  # (A,), the column of each annotator's label 0, or -1 if there is none

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Number the regions of the annotators' label maps (H, W), and measure their areas.

        The regions of each map are numbered from 0; each is also a column of `OverlapTable`.

        Raises DataError if there is no map or one is not a label map, and ShapeError if the shapes
        differ.
        """
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        region_maps = [number_regions(array) for array in arrays]
        n_regions = [m.area.size for m in region_maps]
        col_start = np.cumsum([0, *n_regions])  # the regions of all annotators are columns
        zero = np.array([m.zero for m in region_maps])  # number of label 0 in each map, or -1
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
        """Sums over the areas of each annotator's regions, as two arrays (A,)."""
        areas = np.split(self.col_area, self.col_start[1:-1])
        squares, bits = zip(*map(kernel.squares_and_bits, areas), strict=True)
        return _AreaSums(np.array(squares, np.int64), np.array(bits))


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """Overlap areas, in pixels, of a segmentation's regions (rows) and annotated ones (columns)."""

    gts: Annotators  # its regions are the columns
    cells: kernel.Cells  # the nonzero overlaps, as a sparse matrix in CSR form; no row is empty
    zero: int = -1  # row of the segmentation's label 0; -1 if there is none, as in hierarchies

    @classmethod
    def of(cls, labels: I4, n_regions: int, gts: Annotators, zero: int = -1) -> OverlapTable:
        """Tabulate the overlaps of a segmentation's regions with those of all annotators.

        labels (N,): the region 0 .. n_regions - 1 of each pixel.
        zero: the region that had label 0 before renumbering, or -1 if there is none.
        """
        rows, cols, counts = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        cells = kernel.tabulate(rows, cols, counts, n_regions, gts.col_area.size)
        return cls(gts, cells, zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Tabulate the overlaps of a segmentation that is given as a label map (H, W).

        Raises DataError if `labels` is not a label map, and ShapeError if its shape differs from
        the annotators' maps.
        """
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        regions = number_regions(array)
        return cls.of(regions.labels, regions.area.size, gts, regions.zero)

    def merge_rows(self, new_row: I4, n_rows: int) -> OverlapTable:
        """Return a new table with `n_rows` rows, in which regions of the segmentation are merged.

        new_row (rows,): for each row of this table, the row of the new table it is added to.
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
        """The area in pixels of each region of the segmentation, int64 (rows,)."""
        indptr, _, counts = self.cells
        sums: I8 = np.add.reduceat(counts, indptr[:-1])  # no row is empty
        return sums // self.gts.labels.shape[0]  # a row counts each pixel once per annotator

    @cached_property
    def area_sums(self) -> _AreaSums:
        """Sums over the areas of the segmentation's regions, as two scalars."""
        return _AreaSums(*kernel.squares_and_bits(self.row_area))

    @cached_property
    def overlaps(self) -> kernel.OverlapSums:
        """Sums over the cells from which the measures are computed; see `kernel.OverlapSums`."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def select_candidates(area: Map) -> Bool:
    """Select candidate regions for objects and parts (see `region.counting`), bool (regions,).

    Regions are selected from largest to smallest until they cover 0.99 of the image. Among regions
    of equal area, the last in raster order comes first. `area` (regions,) is in pixels.
    """
    from_largest = np.argsort(area, kind="stable")[::-1]
    # Divide before summing, as SEISM does. If regions cover exactly 0.99, rounding often makes the
    # sum slightly smaller, and one more region is selected
    covered = np.cumsum(area[from_largest] / area.sum())
    candidate = np.empty(area.size, np.bool_)
    candidate[from_largest[0]] = True
    candidate[from_largest[1:]] = covered[:-1] < _AREA_SHARE  # covered by all larger regions
    return candidate
