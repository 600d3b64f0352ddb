"""The contingency table of a segmentation with all annotators of an image.

n(i,j): pixels in region i of the segmentation and region j of the annotator. Every distinct label
value is one region, connected or not. Only label 0 matters, which some measures leave out:
`Annotators.zero` and `Table.zero` say where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.kernels import contingency as kernel
from bsdsbench.loaders.inputs import same_shape
from bsdsbench.metrics.label_maps import as_label_map

AREA_SHARE = 0.99  # of the image, held by the candidates for objects and parts


def canonical(labels: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Flat int32 labels 0, 1, ... in raster order of the regions' first pixels; their areas.

    The kernel has a table of the whole span of values: where they are few and far apart (more than
    four times the pixels, beyond 64 K entries that cost nothing), they are ranked first.
    """
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    if high - low > 4 * flat.size + 65536 or not -(2**31) <= low <= high < 2**31:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    return kernel.renumber(np.ascontiguousarray(flat, np.int32), low, high - low + 1)


def zero_region(labels: NDArray[Any], numbers: NDArray[np.int32]) -> int:
    """The number that `canonical` gave to the label 0, -1 where there is none."""
    first = int((labels == 0).argmax())
    return int(numbers[first]) if labels.flat[first] == 0 else -1


@dataclass(frozen=True, slots=True, eq=False)
class Annotators:
    """The label maps of one image's annotators, ready for tables.

    labels : (A, N) int32, regions numbered per annotator
    col_area, ann_of_col : i8 and i4 (G,), of the G regions of all annotators
    candidate : bool (G,), large enough for objects and parts
    squares, bits : i8 and f8 (A,), sum b^2 and sum b log2 b of each annotator
    zero : the column of each annotator's label 0, -1 where there is none
    """

    shape: tuple[int, ...]
    labels: NDArray[np.int32]
    col_start: NDArray[np.int64]
    col_area: NDArray[np.int64]
    ann_of_col: NDArray[np.int32]
    candidate: NDArray[np.bool_]
    squares: NDArray[np.int64]
    bits: NDArray[np.float64]
    zero: tuple[int, ...]

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """From (H, W) label maps. Raises DataError for none, ShapeError for unequal shapes."""
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        flat, areas = zip(*map(canonical, arrays), strict=True)
        sizes = [a.size for a in areas]
        start = np.cumsum([0, *sizes])
        squares, bits = zip(*map(kernel.squares_and_bits, areas), strict=True)
        zeros = zip(start.tolist(), map(zero_region, arrays, flat), strict=False)
        return cls(
            shape=arrays[0].shape,
            labels=np.stack(flat),
            col_start=start,
            col_area=np.concatenate(areas),
            ann_of_col=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            candidate=np.concatenate([*map(fop_candidates, areas)]),
            squares=np.array(squares, np.int64),
            bits=np.array(bits),
            zero=tuple(-1 if at < 0 else first + at for first, at in zeros),
        )


@dataclass(frozen=True, eq=False)
class Table:
    """n(i,j) of one segmentation with all annotators: rows of (column, pixels) cells, see
    `bsdsbench.kernels.contingency`. Equal partitions give equal cells; zero is the row of the
    segmentation's label 0, -1 where there is none (hierarchies have none).

    cells : where each row begins, and the end; column and pixels of each cell
    """

    gts: Annotators
    cells: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]
    zero: int = -1

    @classmethod
    def of(
        cls, labels: NDArray[np.int32], n_regions: int, gts: Annotators, zero: int = -1
    ) -> Table:
        """From flat labels numbered in raster order (`canonical`)."""
        found = kernel.runs(labels, gts.labels, gts.col_start)
        return cls(gts, kernel.tabulate(*found, n_regions, gts.col_area.size), zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> Table:
        """From a (H, W) label map. Raises DataError for anything else, or ShapeError."""
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        flat, area = canonical(array)
        return cls.of(flat, area.size, gts, zero_region(array, flat))

    def merged(self, new_row: NDArray[np.int32], n_rows: int) -> Table:
        """The table after each row r became part of row new_row[r], in a hierarchy."""
        n_cols = self.gts.col_area.size
        return Table(self.gts, kernel.merge_rows(*self.cells, new_row, n_rows, n_cols))

    @property
    def n_pixels(self) -> int:
        """N, pixels of the image."""
        return self.gts.labels.shape[1]

    @cached_property
    def row_area(self) -> NDArray[np.int64]:
        """a_i, i8 (R,)."""
        return kernel.row_sums(self.cells[0], self.cells[2]) // self.gts.labels.shape[0]

    @cached_property
    def squares_and_bits(self) -> Any:
        """sum a^2 and sum a log2 a."""
        return kernel.squares_and_bits(self.row_area)

    @cached_property
    def overlaps(self) -> Any:
        """What all measures need of the cells, see `kernels.contingency.overlap_sums`."""
        gts = self.gts
        areas = self.row_area, gts.col_area, gts.ann_of_col
        return kernel.overlap_sums(*self.cells, *areas, len(gts.labels))


def fop_candidates(area: NDArray[Any]) -> NDArray[np.bool_]:
    """Regions that count, bool (R,): in descending area, while the share of the image added so far,
    before the region, is below 0.99. Of equal areas the later in raster order comes first.

    Shares are added as doubles, as SEISM does: where they make up 0.99 of the pixels exactly, their
    sum is often just below."""
    order = np.argsort(area, kind="stable")[::-1]
    before = np.cumsum(area[order] / area.sum())
    out = np.empty(area.size, np.bool_)
    out[order[0]] = True
    out[order[1:]] = before[:-1] < AREA_SHARE
    return out
