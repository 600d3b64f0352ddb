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
from numpy.typing import NDArray

from bsdsbench.kernels import contingency as kernel
from bsdsbench.kernels.assignment import largest_total
from bsdsbench.metrics.region.adapted_rand import RULES, Squares, adapted_rand_errors
from bsdsbench.metrics.region.contingency_table import Table, fop_candidates


class Measures(NamedTuple):
    """One segmentation against all annotators: sums, and means over annotators.

    covered_gt, covered_pred : sum of b_j (a_i) times the best intersection over union, n(i,j) /
        (a_i + b_j - n(i,j)); over N the covering, in [0, 1]. PAMI 2011, eq. 8
    best_gt : f8 (G,) the best intersection over union of each annotated region
    pri     : mean Rand index, the share of pixel pairs that both join or both separate:
        1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single pixel. PAMI 2011, eq. 7
    voi     : mean variation of information in bits, H(seg) + H(gt) - 2 I(seg, gt), a metric, 0 is
        best. Meila, COLT 2003
    hamming_gt, hamming_pred : directional Hamming distances in pixels, summed over annotators, 0 is
        best: N - sum_j max_i n, pixels of annotated regions outside the region they share most
        with, grows with over-segmentation; N - sum_i max_j n with under-segmentation. Half the sum
        is van Dongen's distance. Huang and Dom, ICIP 1995; van Dongen, CWI report INS-R0012, 2000
    pair_precision, pair_recall : over pairs of pixels, 0/0 = 0, means over annotators:
        n11 = (sum n^2 - N)/2 together in both, n10 = (sum a^2 - sum n^2)/2 in the segmentation
        only, n01 = (sum b^2 - sum n^2)/2 in the annotator's only; n11/(n11+n10), n11/(n11+n01).
        Martin, PhD thesis 2003
    bce, gce, lce : bidirectional, global and local consistency error, in [0, 1], 0 is best, means:
        (1/N) sum n max(1 - n/a, 1 - n/b); (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), 0 where one
        refines the other; (1/N) sum n min(1 - n/a, 1 - n/b), 0 where one does place by place.
        Martin et al., ICCV 2001; Martin 2003
    nvoi    : mean of 1 - VOI / (2 log2 max(regions of seg, of gt)), 1 is best, 1 where both are one
        region. The published program of PAMI 2016 (SEISM)
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
    """Objects-and-parts numerators of one table: an image's segmentation and all its annotators.

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
    gts, area = table.gts, table.row_area()
    candidate = fop_candidates(area)
    pred, gt = kernel.fop_sums(
        *(table.indptr, table.cols, table.counts, area, gts.col_area),
        *(candidate, gts.candidate, gts.count),
    )
    return FopSums(pred, int(candidate.sum()), gt, int(gts.candidate.sum()))


def matched_area(table: Table) -> int:
    """Largest total intersection of a one-to-one assignment of regions, summed over annotators.

    N minus it is the bipartite graph matching distance in pixels, 0 is best.
    Source: Jiang et al., EURASIP JASP 2006; PAMI 2016.
    """
    return int(largest_total(table.indptr, table.cols, table.counts, table.gts.col_start))


def _nvoi(voi: float, most_regions: int) -> float:
    """1 - VOI / (2 log2 of the larger number of regions); 1 where both are one region."""
    return 1.0 - voi / (2 * math.log2(most_regions)) if most_regions > 1 else 1.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
