"""Sparse contingency tables of one segmentation with all annotators of an image.

A table has one row for each region of the segmentation and one column for each region of each
annotator. A cell is the number of pixels that its two regions share. The columns of annotator k are
`col_start[k] : col_start[k+1]`. Regions are numbered in raster order of their first pixel, so the
table depends only on the partition, not on the label values.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import Bools, Floats, Int32s, Ints
from bsdsbench.kernels.jit import kernel

# Minimum overlap (share of area) of an object and of a part, and the credit of a part; an object's
# credit is 1. Source: Pont-Tuset and Marques, Supervised Evaluation of Image Segmentation and
# Object Proposal Techniques, PAMI 2016.
GAMMA_OBJECT, GAMMA_PART, BETA = 0.9, 0.25, 0.1
_NEITHER, _PART, _OBJECT = 0, 1, 2  # the class of a region
_UNREACHED = np.int64(2**62)  # cost of a row to which no path leads
_BLOCK = 1 << 13  # pixels converted to int64 at a time; for 64 KB, no fresh memory is mapped


class Cells(NamedTuple):
    """A table of overlaps as a CSR matrix. Row r has the cells indptr[r] : indptr[r + 1]."""

    indptr: Ints  # (rows + 1,)
    cols: Int32s  # (cells,): the column of each cell, ascending within a row
    counts: Ints  # (cells,): the number of pixels of each cell, above 0


@kernel(_nrt=False)
def renumber(labels, low, number_of_label, numbered, area):
    """Renumber labels 0, 1, ... in order of first occurrence, and return the number of labels.

    labels int32 (N,): the label of each pixel.
    low: a lower bound of the labels, usually their minimum.
    number_of_label int32 (span,): work space, -1 on entry. Element i is the new label of low + i,
        or -1 if that label has not occurred yet.
    numbered int32 (N,): receives the new label of each pixel.
    area int64 (labels or more,): 0 on entry; receives the number of pixels of each new label.
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


class ValuePairs(NamedTuple):
    """The n distinct pairs of values (pred, gt) of two flat maps, in order of first occurrence."""

    table: Ints  # (3, n), for each pair: the value in pred, the value in gt, the number of pixels
    of_pixel: Int32s  # (N,), the column of each pixel's pair in `table`


def value_pairs(pred: NDArray[Any], gt: NDArray[Any]) -> ValuePairs:
    """Count the pixels of each distinct pair of values (pred, gt) of two flat integer maps.

    pred, gt (N,): the maps, of any integer dtype.

    The pairs are found by a hash table with two slots for each pair that there is room for. When
    there is no more room, the known pairs are inserted into a larger table as if they were pixels,
    in order. Pixels are converted to int64 in blocks that fit the CPU's cache.
    """
    pair_of_pixel = np.empty(pred.size, np.int32)
    # Room for 512 pairs, one per column: the value in pred, the value in gt, the number of pixels
    pairs = np.empty((3, 512), np.int64)
    slots = np.full(1024, -1, np.int32)  # the index of a pair, or -1
    n_pairs = n_pixels = 0  # known pairs, and counted pixels
    while n_pixels < pred.size:
        block = slice(n_pixels, n_pixels + _BLOCK)
        pred_block, gt_block = pred[block].astype(np.int64), gt[block].astype(np.int64)
        # Counts the pixels, and adds new pairs, until all pixels are counted or `pairs` is full
        n_pairs, n_counted = _count_pairs(
            pred_block, gt_block, n_pairs, pairs, slots, pair_of_pixel[block]
        )
        n_pixels += n_counted
        if n_counted < pred_block.size:  # no more room
            known_pred, known_gt, known_counts = pairs
            pairs = np.empty((3, 2 * n_pairs), np.int64)
            slots = np.full(4 * n_pairs, -1, np.int32)
            unused = np.empty(n_pairs, np.int32)  # the pair of each "pixel"
            _count_pairs(known_pred, known_gt, 0, pairs, slots, unused)
            pairs[2, :n_pairs] = known_counts
    return ValuePairs(pairs[:, :n_pairs].copy(), pair_of_pixel)


@kernel(_nrt=False)
def _count_pairs(pred, gt, n_pairs, pairs, slots, pair_of_pixel):
    """Count the pixels of each pair of values (pred, gt), until the table of pairs is full.

    pred, gt int64 (N,): the values of the N pixels in the two maps.
    n_pairs: number of pairs known on entry.
    pairs int64 (3, capacity): each column holds the value in pred, the value in gt and the number
        of pixels of a pair.
    slots int32 (2 capacity,): a hash table with open addressing: the index of a pair, or -1. A pair
        is in the slot of its hash (`_slot_of`) or, if others are there, in the next free slot.
    pair_of_pixel int32 (N,): receives the index of each counted pixel's pair.

    Returns the number of known pairs, and the number of counted pixels. The latter is N, or the
    index of the first pixel of a new pair for which `pairs` has no room.
    """
    pixel, one, last_slot = 0, np.uint64(1), np.uint64(slots.size - 1)
    while pixel < pred.size:
        # A run of pixels with the same pair of values
        pred_value, gt_value, run_start = pred[pixel], gt[pixel], pixel
        while pixel < pred.size and pred[pixel] == pred_value and gt[pixel] == gt_value:
            pixel += 1
        # Find the index of the pair; it is -1 if a free slot comes first
        slot = _slot_of(pred_value, gt_value, last_slot)
        pair = np.int64(slots[slot])
        while pair >= 0 and (pairs[0, pair] != pred_value or pairs[1, pair] != gt_value):
            slot = (slot + one) & last_slot  # after the last slot, the first follows
            pair = np.int64(slots[slot])
        if pair < 0:  # a new pair
            if n_pairs == pairs.shape[1]:
                return n_pairs, run_start
            pair = n_pairs
            slots[slot] = n_pairs
            pairs[0, n_pairs], pairs[1, n_pairs], pairs[2, n_pairs] = pred_value, gt_value, 0
            n_pairs += 1
        pairs[2, pair] += pixel - run_start
        for pixel_of_run in range(run_start, pixel):
            pair_of_pixel[pixel_of_run] = pair
    return n_pairs, pixel


@kernel(inline="always", _nrt=False)
def _slot_of(a, b, last_slot):
    """Hash a pair of int64 values to a slot, 0 .. last_slot (a power of two minus 1)."""
    # The 64 bits of each value are folded to 32, so that no product with the odd 32-bit constants
    # overflows; without numba, numpy would warn. The slot is taken from bit 20 of the last product
    # on, because the lowest bits depend on few bits of the values
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)  # low: the lower 32 bits
    key, second = np.uint64(a), np.uint64(b)
    key = ((key ^ (key >> half)) & low) * np.uint64(0x9E3779B9)
    key = (key ^ (key >> half) ^ second ^ (second >> half)) & low
    return ((key * np.uint64(0xD6E8FEB9)) >> np.uint64(20)) & last_slot


class OverlapRuns(NamedTuple):
    """Runs of consecutive pixels with the same predicted region and the same annotated region."""

    rows: Int32s  # (runs,), the predicted region of each run, its row of the table
    cols: Int32s  # (runs,), the annotated region of each run, its column of the table
    counts: Ints  # (runs,), the number of pixels of each run


def overlap_runs(labels: Int32s, gts: Int32s, col_start: Ints) -> OverlapRuns:
    """List the runs of consecutive pixels that share a predicted and an annotated region.

    labels (N,): region 0, 1, ... of each pixel in the prediction.
    gts (A, N): region 0, 1, ... of each pixel for each of A annotators.
    col_start (A + 1,): the column of each annotator's region 0, and the number of columns.

    The runs are ordered by annotator. Two regions may have many runs in common.
    """
    begins = np.ones(gts.shape, np.bool_)  # (A, N), True at the first pixel of a run
    np.not_equal(gts[:, 1:], gts[:, :-1], out=begins[:, 1:])
    begins[:, 1:] |= labels[1:] != labels[:-1]
    start = np.flatnonzero(begins)  # flat index in `gts` of the first pixel of each run
    n_runs = np.count_nonzero(begins, axis=1)  # of each annotator
    annotator = np.repeat(np.arange(len(gts)), n_runs)  # of each run
    rows = labels[start - annotator * labels.size]
    cols = gts.ravel()[start] + col_start.astype(np.int32)[annotator]
    return OverlapRuns(rows, cols, counts=np.diff(start, append=gts.size))


def tabulate(rows: Int32s, cols: Int32s, counts: Ints, n_rows: int, n_cols: int) -> Cells:
    """Build a sparse table from (row, column, number of pixels) triples in any order (COO to CSR).

    The triples are rows[e], cols[e], counts[e]. The counts of duplicates are summed. The kernel
    sorts the triples by column, then by row, each time without changing the order of equal ones.
    """
    # The table in CSR form, with room for a cell per triple; the kernel fills the first n cells
    indptr = np.zeros(n_rows + 1, np.int64)  # row r has the cells indptr[r] : indptr[r + 1]
    cell_col, cell_count = np.empty(rows.size, np.int32), np.zeros(rows.size, np.int64)
    # Work space: the triples sorted by column, the place of each column's next triple (`col_fill`),
    # the place of each row's first triple (`start`), and the end of its cells (`row_end`)
    by_col, col_fill = np.empty(rows.size, np.int64), np.zeros(n_cols + 1, np.int64)
    start, row_end = np.zeros((2, n_rows + 1), np.int64)
    n = _tabulate(
        rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count
    )
    return Cells(indptr, cell_col[:n].copy(), cell_count[:n].copy())


@kernel(_nrt=False)
def _tabulate(rows, cols, counts, col_fill, by_col, start, row_end, indptr, cell_col, cell_count):
    """Build a table from (row, column, pixels) triples, and return its number of cells.

    rows int32, cols int32, counts int64 (n,): the triples, in any order.
    indptr int64 (n_rows + 1,), cell_col int32, cell_count int64 (n,): receive the table. Row r has
        the cells indptr[r] : indptr[r + 1], each with its column and its number of pixels.
    col_fill int64 (n_cols + 1,), by_col int64 (n,), start, row_end int64 (n_rows + 1,): work space.

    All these arrays except by_col and cell_col are 0 on entry. The triples are sorted by column,
    then by row, with two stable counting sorts.
    """
    n_rows = start.size - 1
    # Sort the triples by column: by_col receives their indices. Count the triples of column c in
    # col_fill[c + 1], and sum the counts, so that col_fill[c] is the number of triples in earlier
    # columns, where those of column c begin. It moves on as they are placed
    for triple in range(rows.size):
        col_fill[cols[triple] + 1] += 1
    for col in range(col_fill.size - 1):
        col_fill[col + 1] += col_fill[col]
    for triple in range(rows.size):
        by_col[col_fill[cols[triple]]] = triple
        col_fill[cols[triple]] += 1

    # In the same way, row r has room for all its triples from start[r] on, and is filled up to
    # row_end[r]. Triples come by column, so one of the column of its row's last cell is added to it
    for triple in range(rows.size):
        start[rows[triple] + 1] += 1
    for row in range(n_rows):
        start[row + 1] += start[row]
        row_end[row] = start[row]
    for triple in by_col:
        row = rows[triple]
        cell = row_end[row]
        if cell > start[row] and cell_col[cell - 1] == cols[triple]:
            cell_count[cell - 1] += counts[triple]
        else:
            cell_col[cell], cell_count[cell] = cols[triple], counts[triple]
            row_end[row] = cell + 1

    n_cells = 0
    for row in range(n_rows):  # close the gaps that summed duplicates left between rows
        for cell in range(start[row], row_end[row]):
            cell_col[n_cells], cell_count[n_cells] = cell_col[cell], cell_count[cell]
            n_cells += 1
        indptr[row + 1] = n_cells
    return n_cells


class OverlapSums(NamedTuple):
    """Sums over the cells of a table of overlaps, from which region measures are computed.

    n is the number of pixels of a cell, a is the area of its row (a predicted region), b is the
    area of its column (an annotated region), and IoU is n / (a + b - n). There are A annotators.
    """

    best_gt: Floats  # (n_cols,), the largest IoU in each column
    covered_pred: float  # sum over rows of a times the largest IoU with any annotator's region
    squares: Ints  # (A,), sum of n^2
    largest_of_cols: Ints  # (A,), sum over columns of the largest n
    largest_of_rows: Ints  # (A,), sum over rows of the largest n
    bits: Floats  # (A,), sum of n log2 n
    larger_error: Floats  # (A,), sum of n max(1 - n/a, 1 - n/b)
    smaller_error: Floats  # (A,), sum of n min(1 - n/a, 1 - n/b)
    pred_error: Floats  # (A,), sum of n (1 - n/a)
    gt_error: Floats  # (A,), sum of n (1 - n/b)


def overlap_sums(
    table: Cells, row_area: Ints, col_area: Ints, ann_of_col: Int32s, n_ann: int
) -> OverlapSums:
    """Compute the sums over overlaps of two regions from which region measures are derived.

    An overlap is the n pixels that a predicted region, of a pixels, and an annotated one, of b
    pixels, have in common. The Rand index needs, for each annotator, the sum of n^2; the variation
    of information that of n log2 n (`bits`); the consistency errors those of n (1 - n/a)
    (`pred_error`), of n (1 - n/b) (`gt_error`), and of the larger and the smaller of both. The
    Hamming distance needs the largest n of each region, and covering the largest IoU.

    table: n of each overlap. Its rows are predicted regions, its columns those of all annotators.
    row_area, col_area: number of pixels of each predicted and each annotated region.
    ann_of_col (n_cols,): index of the annotator of each column, ascending.
    n_ann: number of annotators.
    """
    sums = OverlapSums(
        best_gt=np.zeros(col_area.size),  # the largest IoU of each annotated region
        covered_pred=0.0,  # set below, as a kernel can change arrays, but not a number
        squares=np.zeros(n_ann, np.int64),
        largest_of_cols=np.zeros(n_ann, np.int64),
        largest_of_rows=np.zeros(n_ann, np.int64),
        bits=np.zeros(n_ann),
        larger_error=np.zeros(n_ann),
        smaller_error=np.zeros(n_ann),
        pred_error=np.zeros(n_ann),
        gt_error=np.zeros(n_ann),
    )
    largest_of_col = np.zeros(col_area.size, np.int64)  # work space
    # Fills the arrays; returns the sum over predicted regions of their area times largest IoU
    covered_pred = _add_overlaps(table, row_area, col_area, ann_of_col, largest_of_col, sums)
    return sums._replace(covered_pred=covered_pred)


@kernel(_nrt=False)
def _add_overlaps(table, row_area, col_area, ann_of_col, largest, sums):
    """Add the sums over the cells of a table to `sums`, in one pass, and return `covered_pred`.

    `covered_pred` is the sum over predicted regions of their area times their largest IoU.

    table: Cells. Rows are predicted regions, and columns are annotated regions. Row r has the cells
        indptr[r] : indptr[r + 1], each with its column and its number of pixels.
    row_area int64 (n_rows,), col_area int64 (n_cols,): pixels of each region.
    ann_of_col int32 (n_cols,): the annotator of each column, ascending, so that the cells of a row
        are sorted by annotator.
    largest int64 (n_cols,): 0 on entry, receives the largest number of pixels in each column.
    sums: an OverlapSums, whose arrays are 0 on entry. `best_gt` receives the largest IoU of each
        column; the other arrays receive the sums for each annotator.
    """
    indptr, cols, counts = table
    covered_pred = 0.0
    for row in range(row_area.size):
        row_largest = 0  # the most pixels in one cell of this row and the current annotator
        best_pred = 0.0  # the largest IoU in this row
        for cell in range(indptr[row], indptr[row + 1]):
            col = cols[cell]
            ann = ann_of_col[col]
            n = counts[cell]  # pixels in both regions
            iou = n / (row_area[row] + col_area[col] - n)
            sums.best_gt[col] = max(sums.best_gt[col], iou)
            best_pred = max(best_pred, iou)
            largest[col] = max(largest[col], n)
            row_largest = max(row_largest, n)
            # After the last cell of this annotator in this row
            if cell + 1 == indptr[row + 1] or ann_of_col[cols[cell + 1]] != ann:
                sums.largest_of_rows[ann] += row_largest
                row_largest = 0
            # The share of each region that lies outside the other
            outside_pred, outside_gt = 1.0 - n / row_area[row], 1.0 - n / col_area[col]
            sums.squares[ann] += n * n
            sums.bits[ann] += n * np.log2(n)
            sums.larger_error[ann] += n * max(outside_pred, outside_gt)
            sums.smaller_error[ann] += n * min(outside_pred, outside_gt)
            sums.pred_error[ann] += n * outside_pred
            sums.gt_error[ann] += n * outside_gt
        covered_pred += row_area[row] * best_pred
    for col in range(col_area.size):
        sums.largest_of_cols[ann_of_col[col]] += largest[col]
    return covered_pred


@kernel(_nrt=False)
def squares_and_bits(area):
    """Return the sums of a^2 and of a log2(a) over the areas a of regions.

    area int64 (regions,): all above 0. They are added in order, so that results are reproducible.
    """
    squares, bits = np.int64(0), 0.0
    for a in area:
        squares += a * a
        bits += a * np.log2(a)
    return squares, bits


class _Regions(NamedTuple):
    """The regions of one segmentation, and their classification as objects or parts.

    Only candidates (regions that are allowed to count) are classified and receive credit.
    """

    area: Ints  # (regions,) in pixels
    is_candidate: Bools
    classes: Ints  # _OBJECT, _PART or _NEITHER (0)
    covered: Floats  # share of the area that is covered by regions inside it, see `_classify`

    def credit(self) -> float:
        """Return the total credit of the candidates, or 0.0 if there are none.

        An object earns 1, a part earns BETA, and any other candidate earns the share of its area
        that is covered. The credits are added in order, so that results are reproducible.
        """
        is_object, is_part = self.classes == _OBJECT, self.classes == _PART
        credits = np.where(is_object, 1.0, np.where(is_part, BETA, self.covered))
        summed = np.cumsum(credits[self.is_candidate])
        return float(summed[-1]) if summed.size else 0.0


class FopSums(NamedTuple):
    """The numerators of precision and recall for objects and parts, see `fop_sums`."""

    pred: float  # the credit of all predicted regions, for precision
    gt: float  # the credit of all annotated regions, for recall


def fop_sums(
    table: Cells,
    row_area: Ints,
    col_area: Ints,
    row_candidate: Bools,
    col_candidate: Bools,
    n_ann: int,
) -> FopSums:
    """Return the numerators of precision and of recall for objects and parts.

    table: its rows are predicted regions, its columns annotated regions.
    row_area, col_area: number of pixels of each predicted and each annotated region.
    row_candidate, col_candidate: True for candidates, the regions that are allowed to count.
    n_ann: number of annotators.

    A numerator is the sum of the candidates' credits: of predicted regions for precision, of
    annotated regions for recall. A region lies in one of the other segmentation if 0.9 of its area
    does. The class of a candidate decides its credit:

    - an object and a candidate of the other segmentation lie in each other: 1
    - a part lies in such a candidate, and covers at least 0.25 of it: 0.1 (BETA)
    - neither: the share of its area that regions of the other segmentation cover which lie in it;
      for a predicted region, the mean share over the annotators
    """
    n_rows, n_cols = row_area.size, col_area.size
    # `_classify` fills the arrays of zeros: the class of each region, and the share that is covered
    pred = _Regions(row_area, row_candidate, np.zeros(n_rows, np.int64), np.zeros(n_rows))
    gt = _Regions(col_area, col_candidate, np.zeros(n_cols, np.int64), np.zeros(n_cols))
    _classify(table, pred, gt)
    # The shares of predicted regions are summed over annotators
    pred = pred._replace(covered=pred.covered / n_ann)
    return FopSums(pred=pred.credit(), gt=gt.credit())  # the sums of credits


@kernel(_nrt=False)
def _classify(table, pred, gt):
    """Classify the regions of two segmentations as objects, parts or neither by their overlaps.

    table: Cells. Row r, a region of `pred`, has the cells indptr[r] : indptr[r + 1], each with its
        column, a region of `gt`, and its number of pixels.
    pred, gt: _Regions, with their areas in pixels and whether they are candidates. Their arrays
        `classes` and `covered`, 0 on entry, are filled.

    A region lies almost entirely in another if at least 0.9 (GAMMA_OBJECT) of its area does. Two
    candidates are objects if each lies almost entirely in the other. A candidate is a part if it
    lies almost entirely in a candidate of the other segmentation and covers at least 0.25
    (GAMMA_PART) of that candidate. A region that is both is an object.

    `covered` is the share of a region's area that is covered by regions of the other segmentation
    that lie almost entirely in it, whether they are candidates or not. If two regions lie almost
    entirely in each other, neither adds to the share of the other. The shares of a predicted region
    are summed over annotators.
    """
    indptr, cols, overlaps = table
    pred_class, gt_class = pred.classes, gt.classes
    for r in range(pred.area.size):
        for e in range(indptr[r], indptr[r + 1]):
            c = cols[e]
            recall = overlaps[e] / gt.area[c]
            precision = overlaps[e] / pred.area[r]
            # Does the predicted region lie almost entirely in the annotated one, or the reverse?
            pred_inside, gt_inside = precision >= GAMMA_OBJECT, recall >= GAMMA_OBJECT
            if pred_inside and not gt_inside:
                gt.covered[c] += recall
            elif gt_inside and not pred_inside:
                pred.covered[r] += precision
            if not (pred.is_candidate[r] and gt.is_candidate[c]):
                continue
            if gt_inside and pred_inside:
                pred_class[r] = gt_class[c] = _OBJECT
            elif recall >= GAMMA_PART and pred_inside:
                pred_class[r] = max(pred_class[r], _PART)
            elif gt_inside and precision >= GAMMA_PART:
                gt_class[c] = max(gt_class[c], _PART)


class _Rows(NamedTuple):
    """The state of the rows during the assignment, int64 (rows,) each."""

    col: Ints  # the column assigned to each row, or -1
    potential: Ints  # dual variable, never positive
    dist: Ints  # cost of the cheapest path from the inserted column, or _UNREACHED
    parent_col: Ints  # the column that precedes the row on this path
    is_done: Ints  # 1 if the distance is final
    reached: Ints  # list of the rows that have a distance


class _Columns(NamedTuple):
    """The state of an annotator's columns during the assignment, int64 (columns,) each."""

    row: Ints  # the row assigned to each column, or -1
    potential: Ints  # dual variable
    scanned: Ints  # list of the columns whose cells were searched


def largest_total(table: Cells, col_start: Ints) -> int:
    """Return the largest total intersection, in pixels, of a one-to-one assignment of regions.

    The predicted regions are assigned to the regions of each annotator separately, and the totals
    are summed over annotators.

    table: a row for each predicted region, a column for each region of each annotator.
    col_start (A + 1,): annotator k has the columns col_start[k] to col_start[k + 1] - 1.
    """
    n_rows, n_cols = table.indptr.size - 1, int(col_start[-1])
    row_of_cell = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(table.indptr))
    by_column = tabulate(table.cols, row_of_cell, table.counts, n_cols, n_rows)  # transposed
    # Work space: an array for each field, all set anew for each annotator
    rows = _Rows(*np.empty((6, n_rows), np.int64))
    columns = _Columns(*np.empty((3, n_cols), np.int64))
    total = 0
    for first, last in pairwise(col_start):  # an annotator's columns are `first` to last - 1
        total += _assign_columns(by_column, first, last, rows, columns)
    return total


@kernel(_nrt=False)
def _assign_columns(table, first, last, rows, columns):
    """Assign rows to the columns first .. last - 1, and return the largest total intersection.

    table: Cells of the transposed table: column c overlaps row table.cols[e] by table.counts[e]
        pixels, for e from table.indptr[c] to table.indptr[c + 1] - 1.
    rows, columns: work space, with any content. Index 0 of `columns` is the column `first`.

    A pair costs minus its number of common pixels, an unmatched column 0. Columns are inserted one
    by one, each by a search for the cheapest augmenting path, which ends at the nearest free row
    or at a column that gives up its row and stays unmatched. Then the pairs along the path are
    exchanged (Jonker and Volgenant, Computing 1987). The search is Dijkstra's algorithm on reduced
    costs: the cost of a pair minus the potentials of its row and column, and for an unmatched
    column 0 minus its potential. Potentials are updated so that a pair's reduced cost is never
    below 0, and is 0 if it is assigned. So a column is as far as the row assigned to it.
    """
    start, row_of_cell, overlap = table
    dist, is_done, reached, scanned = rows.dist, rows.is_done, rows.reached, columns.scanned
    for r in range(dist.size):
        rows.col[r], rows.potential[r], dist[r], is_done[r] = -1, 0, _UNREACHED, 0
    for c in range(last - first):
        columns.row[c], columns.potential[c] = -1, 0
    for new_col in range(last - first):
        n_reached = n_scanned = 0
        path_cost = np.int64(0)
        # The cheapest column that could end the path by giving up its row, and the path's cost
        unmatched, unmatched_cost = -1, _UNREACHED
        c, free_row = new_col, -1  # the column to scan, and the free row at the end of the path
        while True:
            scanned[n_scanned] = c
            n_scanned += 1
            if path_cost - columns.potential[c] < unmatched_cost:
                unmatched, unmatched_cost = c, path_cost - columns.potential[c]
            for cell in range(start[first + c], start[first + c + 1]):
                r = row_of_cell[cell]
                cost = path_cost - overlap[cell] - columns.potential[c] - rows.potential[r]
                if not is_done[r] and cost < dist[r]:
                    if dist[r] == _UNREACHED:
                        reached[n_reached] = r
                        n_reached += 1
                    dist[r] = cost
                    rows.parent_col[r] = c
            nearest = -1  # ties go to the row that was reached first
            for r in reached[:n_reached]:
                if not is_done[r] and (nearest < 0 or dist[r] < dist[nearest]):
                    nearest = r
            if nearest < 0 or unmatched_cost <= dist[nearest]:
                path_cost = unmatched_cost
                break
            path_cost = dist[nearest]
            if rows.col[nearest] < 0:
                free_row = nearest
                break
            is_done[nearest] = 1
            c = rows.col[nearest]
        # Update the potentials by the path's cost minus the distance: that of a scanned column is
        # the distance of its row, and 0 for the new one, where the path begins
        for k in range(n_scanned):
            c = scanned[k]
            column_dist = np.int64(0) if c == new_col else dist[columns.row[c]]
            columns.potential[c] += path_cost - column_dist
        for k in range(n_reached):
            r = reached[k]
            if is_done[r]:
                rows.potential[r] -= path_cost - dist[r]
        if free_row < 0:  # the path ends at a column that gives up its row (the new one has none)
            free_row = columns.row[unmatched]
            columns.row[unmatched] = -1
        while free_row >= 0:  # flip the path, from its end back to the new column
            c = rows.parent_col[free_row]
            rows.col[free_row] = c
            columns.row[c], free_row = free_row, columns.row[c]
            if c == new_col:
                break
        for k in range(n_reached):
            dist[reached[k]], is_done[reached[k]] = _UNREACHED, 0
    total = np.int64(0)
    for c in range(last - first):
        for cell in range(start[first + c], start[first + c + 1]):
            if row_of_cell[cell] == columns.row[c]:
                total += overlap[cell]
    return total
