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
_NEITHER, _PART, _OBJECT = 0, 1, 2  # the class of a region
Cells: TypeAlias = tuple[I8, I4, I8]  # indptr, cols, counts


def renumber(labels: I4, low: int, span: int) -> tuple[I4, I8]:
    """Number the regions of a flat label map 0, 1, ... in the order of their first pixels.

    labels int32 (N,): with values from low to low + span - 1.

    Returns the map of numbers, int32 (N,), and the area of each region in pixels, int64 (regions,).
    """
    numbered = np.empty(labels.size, np.int32)
    area = np.zeros(min(span, labels.size), np.int64)
    n_regions = _renumber(labels, low, np.full(span, -1, np.int32), numbered, area)
    return numbered, area[:n_regions].copy()


@kernel(_nrt=False)
def _renumber(labels, low, number_of_label, numbered, area):
    """Number the labels in the order of their first pixels, and return how many there are.

    labels int32 (N,): values from `low` to low + span - 1.
    number_of_label int32 (span,): work space, -1 on entry. The number of label low + i, or -1.
    numbered int32 (N,): receives the number of each pixel's label.
    area int64 (regions or more,): 0 on entry, receives the pixels of each number.
    """
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
    """Count the pixels of each pair of values that two flat int64 maps (N,) have at a place.

    Returns the pairs, int64 (3, n), and the index of each pixel's pair, int32 (N,). The rows are
    the value in pred, the value in gt and the number of pixels. Pairs are in the order of their
    first pixels.

    The pairs are found in a hash table with open addressing, which is at most half full, and is
    searched once per run of pixels with the same pair. If there is no room for another pair, the
    known pairs are entered into a larger table as if they were pixels.
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
    """Count the pixels from p on by their pair of values (pred, gt).

    pred, gt int64 (N,): the two maps.
    n: number of pairs that are known on entry.
    pairs int64 (3, capacity): changed in place. Column k holds the value in pred, the value in gt
        and the number of pixels of pair k.
    slots int32 (a power of two,): changed in place. The hash table: the index of a pair, or -1.
    pair_of_pixel int32 (N,): receives the index of each counted pixel's pair.

    Returns the number of known pairs, and the first pixel that is not counted: N, or the first
    pixel of a new pair for which `pairs` has no room.

    Only 32 bits are multiplied, so that no product overflows: without numba numpy would warn.
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
    """List the runs of pixels with the same pair of regions in a segmentation and an annotator's.

    labels int32 (N,): region 0, 1, ... of each pixel in the segmentation, a row of the table.
    gts int32 (A, N): region 0, 1, ... of each pixel in each annotator's segmentation.
    col_start int64 (A + 1,): column of the table for region 0 of each annotator, and the number of
        columns at the end.

    Returns row int32, column int32 and number of pixels int64 of each run, (n,) each. A cell of the
    table may have many runs; `tabulate` adds them up.
    """
    begins = np.ones(gts.shape, np.bool_)
    np.not_equal(gts[:, 1:], gts[:, :-1], out=begins[:, 1:])
    begins[:, 1:] |= labels[1:] != labels[:-1]
    start = np.flatnonzero(begins)
    n_runs = np.count_nonzero(begins, axis=1)  # of each annotator
    pixel = start - np.repeat(np.arange(len(gts)) * labels.size, n_runs)
    columns = gts.ravel()[start] + np.repeat(col_start[:-1].astype(np.int32), n_runs)
    return labels[pixel], columns, np.diff(start, append=gts.size)


def tabulate(rows: I4, cols: I4, counts: I8, n_rows: int, n_cols: int) -> Cells:
    """Build a sparse table in CSR form from triples of row, column and number of pixels.

    rows int32, cols int32, counts int64 (n,): the triples, in any order. Triples of the same cell
        are added.

    Returns indptr int64 (n_rows + 1,), cols int32 and counts int64 (cells,). The cells of row r are
    indptr[r] : indptr[r + 1], with ascending columns.
    """
    cell_col = np.empty(rows.size, np.int32)
    cell_count = np.zeros(rows.size, np.int64)
    indptr, start, row_end = np.zeros((3, n_rows + 1), np.int64)
    by_col = np.empty(rows.size, np.int64)
    col_fill = np.zeros(n_cols + 1, np.int64)
    n = _tabulate(
        rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count
    )
    return indptr, cell_col[:n].copy(), cell_count[:n].copy()


@kernel(_nrt=False)
def _tabulate(rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count):
    """Write the table of `tabulate`, and return the number of its cells.

    rows int32, cols int32, counts int64 (n,): the triples.
    indptr int64 (n_rows + 1,), cell_col int32 and cell_count int64 (n,): receive the table. indptr
        and cell_count are 0 on entry.
    col_fill int64 (n_cols + 1,), by_col int64 (n,), start and row_end int64 (n_rows + 1,): work
        space. All but by_col are 0 on entry.

    The triples are sorted by column, then by row, with two stable counting sorts.
    """
    n, n_rows = rows.size, start.size - 1
    # by_col: the triples by column. col_fill: where the next triple of a column goes.
    for e in range(n):
        col_fill[cols[e] + 1] += 1
    for c in range(col_fill.size - 1):
        col_fill[c + 1] += col_fill[c]
    for e in range(n):
        by_col[col_fill[cols[e]]] = e
        col_fill[cols[e]] += 1

    # Row r has room for all its triples from start[r] on, and is filled up to row_end[r]
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
    """Return the sums over the cells of a table that region measures need.

    table: indptr, cols and counts of the table, in CSR form.
    row_area int64 (n_rows,), col_area int64 (n_cols,): pixels of each region.
    ann_of_col int32 (n_cols,): index of each column's annotator, ascending.
    n_ann: number of annotators.
    """
    best_gt = np.zeros(col_area.size)
    largest = np.zeros(col_area.size, np.int64)
    ints = np.zeros((n_ann, 3), np.int64)
    floats = np.zeros((n_ann, 5))
    covered = _add_overlaps(*table, row_area, col_area, ann_of_col, best_gt, largest, ints, floats)
    return OverlapSums(best_gt, covered, ints, floats)


@kernel(_nrt=False)
def _add_overlaps(
    indptr, cols, counts, row_area, col_area, ann_of_col, best_gt, largest, ints, floats
):
    """Add up the fields of `OverlapSums` in one pass over the cells, and return `covered_pred`.

    indptr, cols, counts: the table in CSR form; a cell has n = counts[e] pixels.
    row_area int64 (n_rows,), col_area int64 (n_cols,): the areas a and b of its row and its column.
    ann_of_col int32 (n_cols,): the annotator of each column, ascending.
    best_gt float64 (n_cols,): 0 on entry, receives the largest IoU of each column.
    largest int64 (n_cols,): 0 on entry, receives the largest n of each column.
    ints int64 (A, 3), floats float64 (A, 5): 0 on entry, receive the sums of each annotator. Their
        columns are those of `OverlapSums`.
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
            if e + 1 == indptr[r + 1] or ann_of_col[cols[e + 1]] != k:  # the annotator's last cell
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
    """Return sum a^2, an integer, and sum a log2 a, a float, over the areas a int64 (regions,).

    The areas are added in order.
    """
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
    """Return the numerators of precision and of recall for objects and parts.

    A region counts 1 as an object and BETA as a part. Otherwise it counts the share of its area
    that its fragments cover: the regions of the other side that lie almost entirely within it
    (Pont-Tuset and Marques, PAMI 2016).

    table: indptr, cols and counts in CSR form. Rows are predicted regions, columns annotated ones.
    row_area int64 (n_rows,), col_area int64 (n_cols,): pixels of each region.
    row_candidate bool (n_rows,), col_candidate bool (n_cols,): the regions that count.
    n_ann: number of annotators, over which the covered share of a predicted region is averaged.
    """
    pred_class, pred_covered = np.zeros(row_area.size, np.int64), np.zeros(row_area.size)
    gt_class, gt_covered = np.zeros(col_area.size, np.int64), np.zeros(col_area.size)
    _classify(
        *table,
        row_area,
        col_area,
        row_candidate,
        col_candidate,
        pred_class,
        gt_class,
        pred_covered,
        gt_covered,
    )
    pred_covered /= n_ann
    pred_sum = _sum_credits(pred_class, pred_covered, row_candidate)
    gt_sum = _sum_credits(gt_class, gt_covered, col_candidate)
    return pred_sum, gt_sum


def _sum_credits(classes: I8, covered: F8, is_candidate: Bool) -> float:
    """Sum the credits of candidates: 1 for an object, BETA for a part, else the covered share.

    classes int64, covered float64, is_candidate bool (regions,). The credits are added in order.
    Returns 0.0 without a candidate.
    """
    credits = np.where(classes == _OBJECT, 1.0, np.where(classes == _PART, BETA, covered))
    of_candidates = credits[is_candidate]
    return float(np.cumsum(of_candidates)[-1]) if of_candidates.size else 0.0


@kernel(_nrt=False)
def _classify(
    indptr,
    cols,
    overlaps,
    pred_area,
    gt_area,
    pred_candidate,
    gt_candidate,
    pred_class,
    gt_class,
    pred_covered,
    gt_covered,
):
    """Classify the regions of two segmentations by their overlaps, as objects, parts or neither.

    indptr, cols, overlaps: the table in CSR form. Predicted region r, a row, meets annotated region
        cols[e] in overlaps[e] pixels, e from indptr[r] to indptr[r + 1] - 1.
    pred_area, gt_area int64: pixels of each region.
    pred_candidate, gt_candidate bool: only pairs of two candidates give a class.
    pred_class, gt_class int64: receive _OBJECT, _PART or _NEITHER; _NEITHER on entry.
    pred_covered, gt_covered float64: receive the share of each region that is covered by regions of
        the other side that lie almost entirely within it; 0 on entry. A pair of regions that both
        lie almost entirely in each other is not included.

    "Almost entirely" means the share GAMMA_OBJECT or more. A region is an object if it has such a
    partner in both directions. It is a part if it lies almost entirely in a region of which it is
    at least the share GAMMA_PART.
    """
    for r in range(pred_area.size):
        for e in range(indptr[r], indptr[r + 1]):
            c = cols[e]
            recall = overlaps[e] / gt_area[c]
            precision = overlaps[e] / pred_area[r]
            pred_inside, gt_inside = precision >= GAMMA_OBJECT, recall >= GAMMA_OBJECT
            if pred_inside and not gt_inside:
                gt_covered[c] += recall
            elif gt_inside and not pred_inside:
                pred_covered[r] += precision
            if not (pred_candidate[r] and gt_candidate[c]):
                continue
            if gt_inside and pred_inside:
                pred_class[r] = _OBJECT
                gt_class[c] = _OBJECT
            elif recall >= GAMMA_PART and pred_inside:
                pred_class[r] = max(pred_class[r], _PART)
            elif gt_inside and precision >= GAMMA_PART:
                gt_class[c] = max(gt_class[c], _PART)
