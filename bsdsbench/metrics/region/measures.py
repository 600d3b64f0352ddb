"""Measures between a segmentation and one annotator, or all annotators of an image.

n(i,j): pixels in region i of the segmentation and region j of the annotator; a_i, b_j: areas of the
regions; N: pixels of the image. Every distinct label value is one region, connected or not; what
the labels are is of no consequence. `Table` holds n(i,j), everything else is derived from it.

Sources: Arbelaez et al., PAMI 2011 (covering, PRI, VOI: the official program); Pont-Tuset and
Marques, CVPR 2013 and PAMI 2016 (SEISM: the other measures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.arguments import given_array
from bsdsbench.core.errors import DataError, ShapeError
from bsdsbench.kernels import contingency as kernel
from bsdsbench.kernels.assignment import largest_total

AREA_SHARE = 0.99  # of the image, held by the candidates for objects and parts


def as_label_map(labels: ArrayLike, what: str = "labels") -> NDArray[Any]:
    """A 2-D integer array, checked. Raises DataError for anything else, or for no pixels."""
    array = given_array(labels, what)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise DataError(
            f"{what}: {array.dtype} array of shape {array.shape}, expected a (rows, columns) map "
            "of integer labels"
        )
    return array


def canonical(labels: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Flat int32 labels 0, 1, ... in raster order of the regions' first pixels; their areas."""
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    if high - low > 4 * flat.size + 65536 or not -(2**31) <= low <= high < 2**31:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    return kernel.renumber(np.ascontiguousarray(flat, np.int32), low, high - low + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Annotators:
    """The label maps of one image's annotators, ready for tables.

    labels (A, N) int32, regions numbered per annotator; col_area i8 (G,) and ann_of_col i4 (G,) for
    the G regions of all annotators; candidate bool (G,): large enough for objects and parts;
    squares i8 (A,), bits f8 (A,): sum b^2 and sum b log2 b of each annotator.
    """

    shape: tuple[int, int]
    labels: NDArray[np.int32]
    col_start: NDArray[np.int64]
    col_area: NDArray[np.int64]
    ann_of_col: NDArray[np.int32]
    candidate: NDArray[np.bool_]
    squares: NDArray[np.int64]
    bits: NDArray[np.float64]

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """From (H, W) label maps. Raises DataError for none, ShapeError for unequal shapes."""
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            check_shape(array.shape, arrays[0].shape, "ground truth")
        flat, areas = zip(*(canonical(a) for a in arrays), strict=True)
        sizes = [a.size for a in areas]
        squares, bits = zip(*(kernel.squares_and_bits(a) for a in areas), strict=True)
        return cls(
            shape=(arrays[0].shape[0], arrays[0].shape[1]),
            labels=np.stack(flat),
            col_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            col_area=np.concatenate(areas),
            ann_of_col=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            candidate=np.concatenate([fop_candidates(a) for a in areas]),
            squares=np.array(squares, np.int64),
            bits=np.array(bits),
        )

    @property
    def count(self) -> int:
        """Number of annotators."""
        return self.labels.shape[0]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """n(i,j) of one segmentation with all annotators: rows of (column, pixels) cells, see
    `bsdsbench.kernels.contingency`. Equal partitions give equal tables."""

    gts: Annotators
    indptr: NDArray[np.int64]
    cols: NDArray[np.int32]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int32], n_regions: int, gts: Annotators) -> Table:
        """From flat labels numbered in raster order (`canonical`)."""
        cells = kernel.runs(labels, gts.labels, gts.col_start)
        return cls(gts, *kernel.tabulate(*cells, n_regions, gts.col_area.size))

    def merged(self, new_row: NDArray[np.int32], n_rows: int) -> Table:
        """The table after each row r became part of row new_row[r]."""
        n_cols = self.gts.col_area.size
        cells = self.indptr, self.cols, self.counts
        return Table(self.gts, *kernel.merge_rows(*cells, new_row, n_rows, n_cols))

    @property
    def n_pixels(self) -> int:
        """N, pixels of the image."""
        return int(self.gts.labels.shape[1])

    def row_area(self) -> NDArray[np.int64]:
        """a_i, i8 (R,)."""
        return kernel.row_sums(self.indptr, self.counts) // self.gts.count

    def cells(self, annotator: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
        """Row, column and pixels of the cells with one annotator."""
        first, last = self.gts.col_start[annotator : annotator + 2]
        mine = (self.cols >= first) & (self.cols < last)
        rows = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        return rows[mine], self.cols[mine] - first, self.counts[mine]


class Measures(NamedTuple):
    """One segmentation against all annotators: sums, and means over annotators.

    covered_gt, covered_pred : sum of b_j (a_i) times the best intersection over union
    best_gt     : f8 (G,) the best intersection over union of each annotated region
    pri, voi    : mean Rand index; mean variation of information in bits
    hamming_gt, hamming_pred : sum over annotators of N - sum_j max_i n, N - sum_i max_j n
    pair_precision, pair_recall : means over annotators
    bce, gce, lce : means over annotators, 0 is best
    nvoi : mean over annotators, 1 is best
    """

    covered_gt: float
    covered_pred: float
    best_gt: NDArray[np.float64]
    pri: float
    voi: float
    hamming_gt: int
    hamming_pred: int
    pair_precision: float
    pair_recall: float
    bce: float
    gce: float
    lce: float
    nvoi: float


def measure(table: Table) -> Measures:
    """All measures but objects-and-parts and bipartite matching, from one pass over the table."""
    gts = table.gts
    area, n_ann = table.row_area(), gts.count
    best_gt, covered_pred, ints, floats = kernel.overlap_sums(
        table.indptr, table.cols, table.counts, area, gts.col_area, gts.ann_of_col, n_ann
    )
    n_px = table.n_pixels
    pairs = n_px * (n_px - 1) // 2
    squares, bits_pred = kernel.squares_and_bits(area)
    together_pred = _pairs(int(squares), n_px)
    rand, bits, precision, recall, similar = [], [], [], [], []
    n_regions = np.diff(gts.col_start)
    for k in range(n_ann):
        together_gt = _pairs(int(gts.squares[k]), n_px)
        together = _pairs(int(ints[k, 0]), n_px)
        apart = together_pred + together_gt - 2 * together
        rand.append(1.0 - apart / pairs if pairs else 1.0)
        bits.append(max(0.0, float(bits_pred + gts.bits[k] - 2.0 * floats[k, 0]) / n_px))
        similar.append(_nvoi(bits[-1], max(area.size, int(n_regions[k]))))
        precision.append(together / together_pred if together_pred else 0.0)
        recall.append(together / together_gt if together_gt else 0.0)
    return Measures(
        covered_gt=float((best_gt * gts.col_area).sum()),
        covered_pred=float(covered_pred),
        best_gt=best_gt,
        pri=_mean(rand),
        voi=_mean(bits),
        hamming_gt=n_ann * n_px - int(ints[:, 1].sum()),
        hamming_pred=n_ann * n_px - int(ints[:, 2].sum()),
        pair_precision=_mean(precision),
        pair_recall=_mean(recall),
        bce=_mean((floats[:, 1] / n_px).tolist()),
        gce=_mean((np.minimum(floats[:, 3], floats[:, 4]) / n_px).tolist()),
        lce=_mean((floats[:, 2] / n_px).tolist()),
        nvoi=_mean(similar),
    )


class FopSums(NamedTuple):
    """Objects and parts: numerators and numbers of candidates; precision = pred/candidates_pred."""

    pred: float
    candidates_pred: int
    gt: float
    candidates_gt: int


def fop_sums(table: Table) -> FopSums:
    """Objects-and-parts numerators of one table, see `fop`."""
    gts, area = table.gts, table.row_area()
    candidate = fop_candidates(area)
    pred, gt = kernel.fop_sums(
        *(table.indptr, table.cols, table.counts, area, gts.col_area),
        *(candidate, gts.candidate, gts.count),
    )
    return FopSums(pred, int(candidate.sum()), gt, int(gts.candidate.sum()))


def fop_candidates(area: NDArray[Any]) -> NDArray[np.bool_]:
    """Regions that count, bool (R,): in descending area, while the share of the image added so far,
    before the region, is below 0.99. Of equal areas the later in raster order comes first."""
    order = np.argsort(area, kind="stable")[::-1]
    before = np.cumsum(area[order]) - area[order]
    out = np.zeros(area.size, np.bool_)
    out[order] = before / area.sum() < AREA_SHARE
    return out


def matched_area(table: Table) -> int:
    """Largest total intersection of a one-to-one assignment of regions, summed over annotators."""
    return int(largest_total(table.indptr, table.cols, table.counts, table.gts.col_start))


def check_shape(shape: tuple[int, ...], expected: tuple[int, ...], what: str) -> None:
    """Raise ShapeError unless two (rows, columns) are equal."""
    if tuple(shape) != tuple(expected):
        raise ShapeError(
            f"{what}: {shape[0]}x{shape[1]} pixels, expected {expected[0]}x{expected[1]}"
        )


def _pairs(sum_of_squares: int, n_px: int) -> int:
    return (sum_of_squares - n_px) // 2


def _nvoi(voi: float, most_regions: int) -> float:
    """1 - VOI / (2 log2 of the larger number of regions); 1 where both are one region."""
    return 1.0 - voi / (2 * math.log2(most_regions)) if most_regions > 1 else 1.0


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def table_of(seg: ArrayLike, gts: Sequence[ArrayLike]) -> Table:
    """The table of one (H, W) label map with one label map per annotator.

    Raises DataError for what is no label map or no annotator, ShapeError for unequal shapes.
    """
    annotators = Annotators.of(gts)
    labels = as_label_map(seg, "segmentation")
    check_shape(labels.shape, annotators.shape, "segmentation")
    flat, area = canonical(labels)
    return Table.of(flat, area.size, annotators)


# One segmentation and one annotator. All take (H, W) integer label maps and raise DataError for
# anything else, ShapeError where their shapes differ.


def covering(seg: ArrayLike, gt: ArrayLike) -> float:
    """Covering of `gt` by `seg`: (1/N) sum_j b_j max_i n(i,j) / (a_i + b_j - n(i,j)), in [0, 1].

    Source: PAMI 2011, eq. 8; official match_segmentations.m.
    """
    table = table_of(seg, [gt])
    return measure(table).covered_gt / table.n_pixels


def rand_index(seg: ArrayLike, gt: ArrayLike) -> float:
    """Rand index: the share of pixel pairs on which both agree, together or apart, in [0, 1].

    1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single pixel. The PRI of an image is
    its mean over annotators. Source: PAMI 2011, eq. 7; official match_segmentations2.m.
    """
    return measure(table_of(seg, [gt])).pri


def voi(seg: ArrayLike, gt: ArrayLike) -> float:
    """Variation of information in bits: H(seg) + H(gt) - 2 I(seg, gt), a metric, 0 is best.

    Source: Meila, COLT 2003; official match_segmentations2.m.
    """
    return measure(table_of(seg, [gt])).voi


def normalised_voi(seg: ArrayLike, gt: ArrayLike) -> float:
    """Normalised VOI, a similarity: 1 - VOI / (2 log2 max(regions of seg, of gt)), 1 is best.

    1 where both are one region. Source: the published program of PAMI 2016 (SEISM).
    """
    return measure(table_of(seg, [gt])).nvoi


def voi_per_log_area(seg: ArrayLike, gt: ArrayLike) -> float:
    """VOI / log2(N), an error in [0, 1], 0 is best; 0 for a single pixel. Source: Meila 2007."""
    table = table_of(seg, [gt])
    return measure(table).voi / math.log2(table.n_pixels) if table.n_pixels > 1 else 0.0


def pair_precision_recall(seg: ArrayLike, gt: ArrayLike) -> tuple[float, float]:
    """Precision-recall for regions, over pairs of pixels; 0/0 = 0.

    n11 = (sum n^2 - N)/2 pairs together in both, n10 = (sum a^2 - sum n^2)/2 in `seg` only,
    n01 = (sum b^2 - sum n^2)/2 in `gt` only; precision n11/(n11+n10), recall n11/(n11+n01).
    Source: Martin, PhD thesis 2003; PAMI 2016.
    """
    found = measure(table_of(seg, [gt]))
    return found.pair_precision, found.pair_recall


def pair_f(seg: ArrayLike, gt: ArrayLike) -> float:
    """F = 2PR/(P+R) of `pair_precision_recall`, 0/0 = 0."""
    precision, recall = pair_precision_recall(seg, gt)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def directional_hamming(seg: ArrayLike, gt: ArrayLike) -> tuple[int, int]:
    """Directional Hamming distances in pixels, 0 is best: (from gt, from seg).

    N - sum_j max_i n(i,j): pixels of annotated regions outside the region they share most with, so
    it grows with over-segmentation; N - sum_i max_j n(i,j): the other direction, it grows with
    under-segmentation. Source: Huang and Dom, ICIP 1995; PAMI 2016.
    """
    found = measure(table_of(seg, [gt]))
    return found.hamming_gt, found.hamming_pred


def van_dongen(seg: ArrayLike, gt: ArrayLike) -> float:
    """Van Dongen distance in pixels: half the sum of both directional Hamming distances.

    N - (sum_j max_i n(i,j) + sum_i max_j n(i,j)) / 2, 0 is best.
    Source: van Dongen, CWI report INS-R0012, 2000; PAMI 2016.
    """
    return sum(directional_hamming(seg, gt)) / 2


def bgm(seg: ArrayLike, gt: ArrayLike) -> int:
    """Bipartite graph matching distance in pixels, 0 is best.

    N - the largest total intersection of a one-to-one assignment of regions.
    Source: Jiang et al., EURASIP JASP 2006; PAMI 2016.
    """
    table = table_of(seg, [gt])
    return table.n_pixels - matched_area(table)


def bce(seg: ArrayLike, gt: ArrayLike) -> float:
    """Bidirectional consistency error: (1/N) sum n max(1 - n/a, 1 - n/b), in [0, 1], 0 is best.

    Source: Martin, PhD thesis 2003; PAMI 2016.
    """
    return measure(table_of(seg, [gt])).bce


def lce(seg: ArrayLike, gt: ArrayLike) -> float:
    """Local consistency error: (1/N) sum n min(1 - n/a, 1 - n/b), in [0, 1], 0 is best.

    0 where each region of one lies in a region of the other, place by place.
    Source: Martin et al., ICCV 2001; PAMI 2016.
    """
    return measure(table_of(seg, [gt])).lce


def gce(seg: ArrayLike, gt: ArrayLike) -> float:
    """Global consistency error: (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), in [0, 1], 0 is best.

    0 where one is a refinement of the other. Source: Martin et al., ICCV 2001; PAMI 2016.
    """
    return measure(table_of(seg, [gt])).gce


def fop(seg: ArrayLike, gts: Sequence[ArrayLike]) -> tuple[float, float]:
    """Objects and parts: (precision, recall) of a segmentation against all annotators of an image.

    - Candidates: in the segmentation, and in each annotator apart, regions in descending area while
      the share of the image added so far, before the region, is below 0.99; of equal areas the
      one whose first pixel is later in raster order comes first.
    - Each pair of candidates with recall r = n/b and precision p = n/a: r >= 0.9 and p >= 0.9 makes
      both objects; else r >= 0.25 and p >= 0.9 makes the segmentation's region a part; else
      r >= 0.9 and p >= 0.25 the annotator's. An object of any annotator stays an object.
    - Each pair, candidates or not: if p >= 0.9 and r < 0.9, r is added to the annotator region's
      over-segmentation; else if r >= 0.9 and p < 0.9, p to the region's under-segmentation.
    - Precision = (objects + 0.1 parts + under-segmentation of the other candidates / annotators)
      / candidates, in the segmentation. Recall = (objects + 0.1 parts + over-segmentation of the
      other candidates) / candidates, over all annotators' regions.

    Source: Pont-Tuset and Marques, CVPR 2013 and PAMI 2016.
    """
    found = fop_sums(table_of(seg, gts))
    return found.pred / found.candidates_pred, found.gt / found.candidates_gt
