"""Sparse contingency tables of one segmentation with all annotators of an image.

A table has one row per region of the segmentation and one column per region of any annotator; the
columns of annotator k are `col_start[k] : col_start[k+1]`. It is sparse, so its size depends on the
overlapping regions, not on rows times columns: in all functions here `indptr`, `cols`, `counts` are
its arrays as in scipy's CSR format. The cells of row r are indptr[r] : indptr[r+1], with ascending
columns `cols` and their numbers of pixels `counts`, none 0.

Regions are numbered in raster order of their first pixel, so the same partition gives the same
table for any labels and any way of building it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from bsdsbench.kernels.arrays import F8, I4, I8, Bool
from bsdsbench.kernels.jit import kernel

# Overlaps that make an object and a part, and the credit of a part: Pont-Tuset and Marques,
# Supervised Evaluation of Image Segmentation and Object Proposal Techniques, PAMI 2016
GAMMA_OBJECT, GAMMA_PART, BETA = 0.9, 0.25, 0.1
Cells: TypeAlias = tuple[I8, I4, I8]  # indptr, cols, counts


def renumber(labels: I4, low: int, span: int) -> tuple[I4, I8]:
    """Number the regions of a flat int32 label map 0, 1, ... in the order of their first pixels.

    Labels lie in [low, low + span). Returns the map of these numbers, int32 (N,), and the area of
    each region, int64 (regions,).
    """
    numbered, area = np.empty(labels.size, np.int32), np.zeros(min(span, labels.size), np.int64)
    n_regions = _renumber(labels, low, np.full(span, -1, np.int32), numbered, area)
    return numbered, area[:n_regions].copy()


@kernel(_nrt=False)
def _renumber(labels, low, number_of_label, numbered, area):
    """Write the numbers and areas of `renumber`. Returns the number of regions."""
    n_regions = 0
    for p in range(labels.size):
        label = labels[p] - low
        if number_of_label[label] < 0:
            number_of_label[label] = n_regions
            n_regions += 1
        numbered[p] = number_of_label[label]
        area[numbered[p]] += 1
    return n_regions


def value_pairs(pred: I8, gt: I8) -> tuple[I8, I4]:
    """Count the pixels of each pair of values at the same place of two flat int64 maps.

    Returns the pairs, int64 (3, n), and the index of each pixel's pair, int32 (N,). A pair is the
    value in pred, the value in gt and the number of pixels. Pairs are in the order of their first
    pixels.

    The pairs are found in a hash table with open addressing (`slots`, at most half full), which is
    searched once per run of pixels with the same pair. If it is full, the known pairs are counted
    into a larger table as if they were pixels.
    """
    pair_of_pixel = np.empty(pred.size, np.int32)
    pairs = np.empty((3, 0), np.int64)
    n = 0  # known pairs
    p = 0  # counted pixels
    while p < pred.size:
        known = pairs
        pairs = np.empty((3, max(512, 2 * n)), np.int64)
        slots = np.full(2 * pairs.shape[1], -1, np.int32)
        if n:
            _count_pairs(known[0], known[1], 0, 0, pairs, slots, np.empty(n, np.int32))
            pairs[2, :n] = known[2]
        n, p = _count_pairs(pred, gt, p, n, pairs, slots, pair_of_pixel)
    return pairs[:, :n].copy(), pair_of_pixel


@kernel(_nrt=False)
def _count_pairs(pred, gt, p, n, pairs, slots, pair_of_pixel):
    """Count pairs as `value_pairs` does, from pixel p on, if n pairs are known.

    `slots`, int32 with a power of two as length, holds the index of a pair in `pairs`, or -1.
    Returns the number of pairs, and the first pixel of a pair for which `pairs` has no room, or the
    end. Only 32 bits are multiplied, so that no product overflows: without numba numpy would warn.
    """
    one, half, low = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    last = np.uint64(slots.size - 1)
    while p < pred.size:
        a, b, first = pred[p], gt[p], p
        while p < pred.size and pred[p] == a and gt[p] == b:
            p += 1
        key, second = np.uint64(a), np.uint64(b)
        key = ((key ^ key >> half) & low) * np.uint64(0x9E3779B9)
        key = (key ^ key >> half ^ second ^ second >> half) & low
        slot = key * np.uint64(0xD6E8FEB9) >> np.uint64(20) & last
        k = np.int64(slots[slot])
        while k >= 0 and (pairs[0, k] != a or pairs[1, k] != b):
            slot = slot + one & last
            k = np.int64(slots[slot])
        if k < 0:
            if n == pairs.shape[1]:
                return n, first
            k = n
            slots[slot] = n
            pairs[0, n], pairs[1, n], pairs[2, n] = a, b, 0
            n += 1
        pairs[2, k] += p - first
        for q in range(first, p):
            pair_of_pixel[q] = k
    return n, p


def overlap_runs(labels: I4, gts: I4, col_start: I8) -> tuple[I4, I4, I8]:
    """Return the overlaps of a segmentation with each annotator's, run by run of pixels.

    `labels`, int32 (N,), are the regions 0, 1, ... of the segmentation, which are the table's rows.
    `gts`, int32 (A, N), are the regions of each annotator. `col_start`, int64 (A + 1,), is the
    table's column of each annotator's region 0.

    Returns row, column and number of pixels of each run, (n,) each. A cell of the table may have
    many runs, which `tabulate` adds up.
    """
    (rows, cols), counts = np.empty((2, gts.size), np.int32), np.empty(gts.size, np.int64)
    n = _find_runs(labels, gts, col_start, rows, cols, counts)
    return rows[:n], cols[:n], counts[:n]


@kernel(_nrt=False)
def _find_runs(labels, gts, col_start, rows, cols, counts):
    """Write the rows, columns and counts of `overlap_runs`. Returns the number of runs."""
    (n_ann, n_px), n = gts.shape, 0
    for k in range(n_ann):
        first, row, col = 0, labels[0], gts[k, 0]
        for p in range(1, n_px + 1):
            if p < n_px and labels[p] == row and gts[k, p] == col:
                continue
            rows[n] = row
            cols[n] = col + col_start[k]
            counts[n] = p - first
            n += 1
            if p < n_px:
                first, row, col = p, labels[p], gts[k, p]
    return n


def tabulate(rows: I4, cols: I4, counts: I8, n_rows: int, n_cols: int) -> Cells:
    """Build a table from (row, column, pixels) triples. Triples of the same cell are added.

    `rows`, `cols` and `counts` are (n,) each, in any order. Returns indptr (n_rows + 1,), cols and
    counts of the table. The triples are sorted by two stable counting sorts, by column and then by
    row.
    """
    cell_col, cell_count = np.empty(rows.size, np.int32), np.zeros(rows.size, np.int64)
    indptr, start, row_end = np.zeros((3, n_rows + 1), np.int64)
    by_col, col_fill = np.empty(rows.size, np.int64), np.zeros(n_cols + 1, np.int64)
    n = _tabulate(
        rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count
    )
    return indptr, cell_col[:n].copy(), cell_count[:n].copy()


@kernel(_nrt=False)
def _tabulate(rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count):
    """Write the table of `tabulate`. Returns the number of its cells. `col_fill`, `by_col`, `start`
    and `row_end` are work space for the sorts. All but `by_col` are 0 on entry.
    """
    n, n_rows = rows.size, start.size - 1
    for e in range(n):
        col_fill[cols[e] + 1] += 1
    for c in range(col_fill.size - 1):
        col_fill[c + 1] += col_fill[c]
    for e in range(n):
        by_col[col_fill[cols[e]]] = e
        col_fill[cols[e]] += 1

    for e in range(n):
        start[rows[e] + 1] += 1
    for r in range(n_rows):
        start[r + 1] += start[r]
        row_end[r] = start[r]
    for e in by_col:
        r = rows[e]
        cell = row_end[r]
        if cell > start[r] and cell_col[cell - 1] == cols[e]:
            cell_count[cell - 1] += counts[e]
        else:
            cell_col[cell] = cols[e]
            cell_count[cell] = counts[e]
            row_end[r] = cell + 1

    n = 0
    for r in range(n_rows):  # close the gaps that summed cells have left between rows
        for cell in range(start[r], row_end[r]):
            cell_col[n] = cell_col[cell]
            cell_count[n] = cell_count[cell]
            n += 1
        indptr[r + 1] = n
    return n


class OverlapSums(NamedTuple):
    """The sums over cells that region measures need.

    n is the number of pixels of a cell, a and b are the areas of its row and its column, and IoU is
    n / (a + b - n). There are A annotators.
    """

    best_gt: F8  # (n_cols,), the largest IoU in each column
    covered_pred: float  # sum over rows of a times the largest IoU with any annotator's region
    ints: I8  # (A, 3): sum n^2; sum over columns of the largest n; sum over rows of the largest n
    # (A, 5): sum n log2 n; sum n max(1 - n/a, 1 - n/b); sum n min(1 - n/a, 1 - n/b);
    # sum n (1 - n/a); sum n (1 - n/b)
    floats: F8


def overlap_sums(
    table: Cells, row_area: I8, col_area: I8, ann_of_col: I4, n_ann: int
) -> OverlapSums:
    """Return the sums of a table whose rows and columns have the given areas. `ann_of_col` is the
    annotator of each column.
    """
    best_gt, largest = np.zeros(col_area.size), np.zeros(col_area.size, np.int64)
    ints, floats = np.zeros((n_ann, 3), np.int64), np.zeros((n_ann, 5))
    covered = _add_overlaps(*table, row_area, col_area, ann_of_col, best_gt, largest, ints, floats)
    return OverlapSums(best_gt, covered, ints, floats)


@kernel(_nrt=False)
def _add_overlaps(
    indptr, cols, counts, row_area, col_area, ann_of_col, best_gt, largest, ints, floats
):
    """Add up the fields of `OverlapSums` in one pass over the cells. Returns `covered_pred`.
    `largest`, 0 on entry, receives the largest n of each column.
    """
    covered_pred = 0.0
    for r in range(row_area.size):
        row_largest = 0
        best_pred = 0.0
        for e in range(indptr[r], indptr[r + 1]):
            c = cols[e]
            k = ann_of_col[c]
            n = counts[e]
            iou = n / (row_area[r] + col_area[c] - n)
            best_gt[c] = max(best_gt[c], iou)
            best_pred = max(best_pred, iou)
            largest[c] = max(largest[c], n)
            row_largest = max(row_largest, n)
            if e + 1 == indptr[r + 1] or ann_of_col[cols[e + 1]] != k:
                ints[k, 2] += row_largest
                row_largest = 0
            outside_pred = 1.0 - n / row_area[r]  # the share of the row outside this cell
            outside_gt = 1.0 - n / col_area[c]
            ints[k, 0] += n * n
            floats[k, 0] += n * np.log2(n)
            floats[k, 1] += n * max(outside_pred, outside_gt)
            floats[k, 2] += n * min(outside_pred, outside_gt)
            floats[k, 3] += n * outside_pred
            floats[k, 4] += n * outside_gt
        covered_pred += row_area[r] * best_pred
    for c in range(col_area.size):
        ints[ann_of_col[c], 1] += largest[c]
    return covered_pred


@kernel(_nrt=False)
def squares_and_bits(area):
    """Return sum a^2, an integer, and sum a log2 a over areas a, added in order."""
    squares, bits = np.int64(0), 0.0
    for a in area:
        squares += a * a
        bits += a * np.log2(a)
    return squares, bits


def fop_sums(
    table: Cells,
    row_area: I8,
    col_area: I8,
    row_candidate: Bool,
    col_candidate: Bool,
    n_ann: int,
) -> tuple[float, float]:
    """Return the numerators of precision and recall for objects and parts.

    Measure of Pont-Tuset and Marques (PAMI 2016): a region counts 1 as an object, BETA as a part,
    else the share of it that its fragments cover. Only candidates count: row_candidate bool
    (n_rows,), col_candidate bool (n_cols,). Areas as for `overlap_sums`.
    """
    sizes = row_area.size, col_area.size
    classes, shares = [np.zeros(n, np.int64) for n in sizes], [np.zeros(n) for n in sizes]
    candidates = row_candidate, col_candidate
    _classify(*table, row_area, col_area, *candidates, *classes, *shares)
    shares[0] /= n_ann
    pred, gt = map(_sum_credits, classes, shares, candidates)
    return pred, gt


def _sum_credits(classes: I8, fraction: F8, is_candidate: Bool) -> float:
    """Sum the regions' credits in order. Returns 0 without a candidate."""
    credits = np.where(classes == 2, 1.0, np.where(classes == 1, BETA, fraction))[is_candidate]
    return float(np.cumsum(credits)[-1]) if credits.size else 0.0


@kernel(_nrt=False)
def _classify(
    indptr,
    cols,
    counts,
    row_area,
    col_area,
    row_candidate,
    col_candidate,
    row_class,
    col_class,
    under,
    over,
):
    """Set the classes of regions (2 object, 1 part, 0 neither) and the covered fractions.

    `under` is the fraction of a row that consists of whole annotated regions, `over` the fraction
    of a column that consists of whole rows.
    """
    for r in range(row_area.size):
        for e in range(indptr[r], indptr[r + 1]):
            c = cols[e]
            recall = counts[e] / col_area[c]
            precision = counts[e] / row_area[r]
            if precision >= GAMMA_OBJECT and recall < GAMMA_OBJECT:
                over[c] += recall
            elif recall >= GAMMA_OBJECT and precision < GAMMA_OBJECT:
                under[r] += precision
            if not (row_candidate[r] and col_candidate[c]):
                continue
            if recall >= GAMMA_OBJECT and precision >= GAMMA_OBJECT:
                row_class[r] = 2
                col_class[c] = 2
            elif recall >= GAMMA_PART and precision >= GAMMA_OBJECT:
                row_class[r] = max(row_class[r], 1)
            elif recall >= GAMMA_OBJECT and precision >= GAMMA_PART:
                col_class[c] = max(col_class[c], 1)
