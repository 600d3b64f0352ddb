"""Measures between a segmentation and one annotator, or all annotators of an image.

n(i,j) is the number of pixels in region i of the segmentation and region j of the annotator, a_i
and b_j are the areas of the regions, and N is the number of pixels. Every distinct label value is
one region, connected or not; only label 0 matters, for the adapted Rand error. `Table` holds
n(i,j), everything else is derived from it.

Sources: Arbelaez et al., PAMI 2011 (covering, PRI, VOI: the official program); Pont-Tuset and
Marques, CVPR 2013 and PAMI 2016 (SEISM: the other measures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.kernels import contingency as kernel
from bsdsbench.kernels.assignment import largest_total
from bsdsbench.metrics.region.adapted_rand import RULES, Squares, adapted_rand_errors
from bsdsbench.metrics.region.contingency_table import Table, fop_candidates, table_of


class Measures(NamedTuple):
    """One segmentation against all annotators: sums, and means over annotators.

    covered_gt, covered_pred : sum of b_j (a_i) times the best intersection over union
    best_gt     : f8 (G,) the best intersection over union of each annotated region
    pri, voi    : mean Rand index; mean variation of information in bits
    hamming_gt, hamming_pred : sum over annotators of N - sum_j max_i n, N - sum_i max_j n
    pair_precision, pair_recall : means over annotators
    bce, gce, lce : means over annotators, 0 is best
    nvoi : mean over annotators, 1 is best
    voi_split, voi_merge : means of H(seg | gt) and H(gt | seg), bits; they sum to voi
    are_region, are_skimage, are_cremi : mean adapted Rand errors by the rule of the label 0
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
    voi_split: float
    voi_merge: float
    are_region: float
    are_skimage: float
    are_cremi: float


def measure(table: Table) -> Measures:
    """All measures but objects-and-parts and bipartite matching, from one pass over the table."""
    gts = table.gts
    area, n_ann = table.row_area(), gts.count
    best_gt, covered_pred, ints, floats = kernel.overlap_sums(
        table.indptr, table.cols, table.counts, area, gts.col_area, gts.ann_of_col, n_ann
    )
    n_px = table.n_pixels
    squares, bits = kernel.squares_and_bits(area)
    of_one = zip(
        *(ints[:, 0].tolist(), gts.squares.tolist(), floats[:, 0].tolist(), gts.bits.tolist()),
        np.maximum(np.diff(gts.col_start), area.size).tolist(),
        strict=True,
    )
    rows = [
        _against_one(table, k, Squares(both, int(squares), truth), (shared, bits, own), most)
        for k, (both, truth, shared, own, most) in enumerate(of_one)
    ]
    return Measures(
        covered_gt=float((best_gt * gts.col_area).sum()),
        covered_pred=float(covered_pred),
        best_gt=best_gt,
        hamming_gt=n_ann * n_px - int(ints[:, 1].sum()),
        hamming_pred=n_ann * n_px - int(ints[:, 2].sum()),
        bce=_mean((floats[:, 1] / n_px).tolist()),
        gce=_mean((np.minimum(floats[:, 3], floats[:, 4]) / n_px).tolist()),
        lce=_mean((floats[:, 2] / n_px).tolist()),
        **{name: _mean(v) for name, v in zip(_MEANS, zip(*rows, strict=True), strict=True)},
    )


_MEANS = (
    *("pri", "voi", "nvoi", "pair_precision", "pair_recall", "voi_split", "voi_merge"),
    *(f"are_{rule}" for rule in RULES),
)


def _against_one(
    table: Table,
    annotator: int,
    squares: Squares,
    bits: tuple[float, float, float],
    most_regions: int,
) -> tuple[float, ...]:
    """The values of `_MEANS`; bits are sums of area log2 area of the same regions as `squares`."""
    n_px = table.n_pixels
    pairs = n_px * (n_px - 1) // 2
    both, pred, gt = squares
    together, in_pred, in_gt = (both - n_px) // 2, (pred - n_px) // 2, (gt - n_px) // 2
    both_bits, pred_bits, gt_bits = bits
    voi = max(0.0, (pred_bits + gt_bits - 2.0 * both_bits) / n_px)
    return (
        1.0 - (in_pred + in_gt - 2 * together) / pairs if pairs else 1.0,
        voi,
        _nvoi(voi, most_regions),
        together / in_pred if in_pred else 0.0,
        together / in_gt if in_gt else 0.0,
        max(0.0, (gt_bits - both_bits) / n_px),
        max(0.0, (pred_bits - both_bits) / n_px),
        *adapted_rand_errors(table, annotator, squares),
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


def matched_area(table: Table) -> int:
    """Largest total intersection of a one-to-one assignment of regions, summed over annotators."""
    return int(largest_total(table.indptr, table.cols, table.counts, table.gts.col_start))


def _nvoi(voi: float, most_regions: int) -> float:
    """1 - VOI / (2 log2 of the larger number of regions); 1 where both are one region."""
    return 1.0 - voi / (2 * math.log2(most_regions)) if most_regions > 1 else 1.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# One segmentation and one annotator. All take (H, W) integer label maps and raise DataError for
# anything else, ShapeError where their shapes differ.


def covering(seg: ArrayLike, gt: ArrayLike) -> float:
    """Covering of `gt` by `seg`: (1/N) sum_j b_j max_i n(i,j) / (a_i + b_j - n(i,j)), in [0, 1].

    Source: PAMI 2011, eq. 8; official match_segmentations.m.
    """
    table = table_of(seg, [gt])
    return measure(table).covered_gt / table.n_pixels


def rand_index(seg: ArrayLike, gt: ArrayLike) -> float:
    """Rand index: the share of pixel pairs that both join or both separate, in [0, 1].

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

    - Candidates: in the segmentation and in each annotator, regions in descending area while
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
