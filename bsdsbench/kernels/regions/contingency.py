"""Sparse contingency tables of one segmentation with all annotators of an image.

A table has one row per region of the segmentation and one column per region of any annotator; the
columns of annotator k are `col_start[k] : col_start[k+1]`. It is sparse, so its size depends on the
overlapping regions, not on rows times columns: in all functions here `indptr`, `cols`, `counts` are
its arrays as in scipy's CSR format. The cells of row r are indptr[r] : indptr[r+1], with ascending
columns `cols` and their numbers of pixels `counts`, none 0.

Regions are numbered in raster order of their first pixel, so the same partition gives the same
table for any labels and any way of building it.
"""

import numpy as np

from bsdsbench.kernels.jit import inner, kernel

# Overlaps that make an object and a part, and the credit of a part: Pont-Tuset and Marques,
# Supervised Evaluation of Image Segmentation and Object Proposal Techniques, PAMI 2016
GAMMA_OBJECT, GAMMA_PART, BETA = 0.9, 0.25, 0.1


@kernel
def renumber(labels, low, span):
    """Number the regions of a flat int32 label map 0, 1, ... in the order of their first pixels.

    Labels lie in [low, low + span). Returns the map with these numbers, int32 (N,), and the area of
    each region, int64 (regions,).
    """
    number_of_label = np.full(span, -1, np.int32)
    numbered = np.empty(labels.size, np.int32)
    area = np.zeros(min(span, labels.size), np.int64)
    n_regions = 0
    for p in range(labels.size):
        label = labels[p] - low
        if number_of_label[label] < 0:
            number_of_label[label] = n_regions
            n_regions += 1
        numbered[p] = number_of_label[label]
        area[numbered[p]] += 1
    return numbered, area[:n_regions].copy()


@kernel
def value_pairs(pred, gt):
    """Count the pixels of each pair of values at the same place of two flat int64 maps.

    Returns int64 (3, n), for each pair the value in pred, the value in gt and the number of pixels,
    in the order of their first pixels; and the index of each pixel's pair, int32 (N,).

    The pairs are found in a hash table with open addressing (`slots`, at most half full), which is
    searched once per run of pixels with the same pair.
    """
    pair_of_pixel = np.empty(pred.size, np.int32)
    pairs, slots, n = np.empty((3, 512), np.int64), np.full(1024, -1, np.int32), 0
    p = 0
    while p < pred.size:
        a, b, first = pred[p], gt[p], p
        while p < pred.size and pred[p] == a and gt[p] == b:
            p += 1
        slot = _find_slot(a, b, pairs, slots)
        if slots[slot] < 0:
            if n == pairs.shape[1]:
                pairs, slots = _double_table(pairs, slots)
                slot = _find_slot(a, b, pairs, slots)
            slots[slot] = n
            pairs[0, n], pairs[1, n], pairs[2, n] = a, b, 0
            n += 1
        pairs[2, slots[slot]] += p - first
        pair_of_pixel[first:p] = slots[slot]
    return pairs[:, :n].copy(), pair_of_pixel


@inner
def _find_slot(a, b, pairs, slots):
    """Return the slot of the hash table that has the pair (a, b), or the free slot to put it in.

    slots : int32 (a power of two,), the index of a pair in `pairs`, -1 where free
    Only 32 bits are multiplied, so that no product overflows: without numba numpy would warn.
    """
    first, second, half = np.uint64(a), np.uint64(b), np.uint64(32)
    low, last = np.uint64(0xFFFFFFFF), np.uint64(slots.size - 1)
    key = ((first ^ first >> half) & low) * np.uint64(0x9E3779B9)
    key = (key ^ key >> half ^ second ^ second >> half) & low
    slot = key * np.uint64(0xD6E8FEB9) >> np.uint64(20) & last
    while slots[slot] >= 0 and (pairs[0, slots[slot]] != a or pairs[1, slots[slot]] != b):
        slot = slot + np.uint64(1) & last
    return slot


@kernel
def _double_table(pairs, slots):
    """Return copies of `pairs` (3, n), all of it used, and `slots` with room for 2 n pairs."""
    n = pairs.shape[1]
    larger, slots = np.empty((3, 2 * n), np.int64), np.full(2 * slots.size, -1, np.int32)
    for k in range(n):  # element by element: a slice assignment would take seconds to compile
        for row in range(3):
            larger[row, k] = pairs[row, k]
        slots[_find_slot(pairs[0, k], pairs[1, k], larger, slots)] = k
    return larger, slots


@kernel
def overlap_runs(labels, gts, col_start):
    """Return the overlaps of a segmentation with each annotator's, run by run of pixels.

    labels : int32 (N,), regions 0, 1, ... of the segmentation, which are the table's rows
    gts : int32 (A, N), regions 0, 1, ... of each annotator
    col_start : int64 (A + 1,), the table's column of each annotator's region 0
    Returns row, column and number of pixels of each run, (n,) each. The same cell of the table may
    have many runs; `tabulate` adds them up.
    """
    n_ann, n_px = gts.shape
    rows = np.empty(n_ann * n_px, np.int32)
    cols = np.empty(n_ann * n_px, np.int32)
    counts = np.empty(n_ann * n_px, np.int64)
    n = 0
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
    return rows[:n], cols[:n], counts[:n]


@kernel
def tabulate(rows, cols, counts, n_rows, n_cols):
    """Build a table from (row, column, pixels) triples, adding up those of the same cell.

    rows, cols, counts : (n,) each, in any order
    Returns indptr (n_rows + 1,), cols and counts of the table. The triples are sorted by two stable
    counting sorts, by column and then by row.
    """
    n = rows.size
    col_fill = np.zeros(n_cols + 1, np.int64)
    for e in range(n):
        col_fill[cols[e] + 1] += 1
    for c in range(n_cols):
        col_fill[c + 1] += col_fill[c]
    by_col = np.empty(n, np.int64)
    for e in range(n):
        by_col[col_fill[cols[e]]] = e
        col_fill[cols[e]] += 1

    start = np.zeros(n_rows + 1, np.int64)
    for e in range(n):
        start[rows[e] + 1] += 1
    for r in range(n_rows):
        start[r + 1] += start[r]
    row_end = start[:n_rows].copy()
    cell_col = np.empty(n, np.int32)
    cell_count = np.zeros(n, np.int64)
    for e in by_col:
        r = rows[e]
        cell = row_end[r]
        if cell > start[r] and cell_col[cell - 1] == cols[e]:
            cell_count[cell - 1] += counts[e]
        else:
            cell_col[cell] = cols[e]
            cell_count[cell] = counts[e]
            row_end[r] = cell + 1

    indptr = np.zeros(n_rows + 1, np.int64)
    n = 0
    for r in range(n_rows):  # close the gaps between rows that summed cells left
        for cell in range(start[r], row_end[r]):
            cell_col[n] = cell_col[cell]
            cell_count[n] = cell_count[cell]
            n += 1
        indptr[r + 1] = n
    return indptr, cell_col[:n].copy(), cell_count[:n].copy()


@kernel
def merge_rows(indptr, cols, counts, new_row, n_rows, n_cols):
    """Return the table in which each row r is added to row `new_row[r]`, int32 (old rows,)."""
    rows = np.empty(cols.size, np.int32)
    for r in range(indptr.size - 1):
        rows[indptr[r] : indptr[r + 1]] = new_row[r]
    return tabulate(rows, cols, counts, n_rows, n_cols)


@kernel
def overlap_sums(indptr, cols, counts, row_area, col_area, ann_of_col, n_ann):
    """Compute the sums that region measures need from a table, in one pass over its cells.

    row_area, col_area : areas a of the segmentation's regions, b of the annotators'
    ann_of_col : the annotator of each column;  n_ann: their number A
    Returns, with n for the pixels of a cell and IoU = n / (a + b - n),
    best_gt : f8 (n_cols,), the largest IoU in each column
    covered_pred : f8, the sum over rows of a times the largest IoU with any annotator's region
    ints : i8 (A, 3), sum n^2; sum over columns of the largest n; sum over rows of the largest n
    floats : f8 (A, 5), sum n log2 n; sum n max(1 - n/a, 1 - n/b); sum n min(1 - n/a, 1 - n/b);
        sum n (1 - n/a); sum n (1 - n/b)
    """
    best_gt = np.zeros(col_area.size)
    covered_pred = 0.0
    largest = np.zeros(col_area.size, np.int64)
    ints = np.zeros((n_ann, 3), np.int64)
    floats = np.zeros((n_ann, 5))
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
    return best_gt, covered_pred, ints, floats


@kernel
def squares_and_bits(area):
    """Return sum a^2, an integer, and sum a log2 a over areas a, added in order."""
    squares, bits = np.int64(0), 0.0
    for a in area:
        squares += a * a
        bits += a * np.log2(a)
    return squares, bits


@kernel
def fop_sums(indptr, cols, counts, row_area, col_area, row_candidate, col_candidate, n_ann):
    """Return the numerators of precision and recall for objects and parts.

    Measure of Pont-Tuset and Marques (PAMI 2016): a region counts 1 as an object, BETA as a part,
    else the share of it that its fragments cover. Only candidates count: row_candidate bool
    (n_rows,), col_candidate bool (n_cols,). Areas as for `overlap_sums`.
    """
    row_class = np.zeros(row_area.size, np.int8)  # 0 neither, 1 part, 2 object
    col_class = np.zeros(col_area.size, np.int8)
    under = np.zeros(row_area.size)  # share of a row that consists of whole annotated regions
    over = np.zeros(col_area.size)  # share of a column that consists of whole rows
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
    pred = 0.0
    for r in range(row_area.size):
        if row_candidate[r]:
            pred += _credit(row_class[r], under[r] / n_ann)
    gt = 0.0
    for c in range(col_area.size):
        if col_candidate[c]:
            gt += _credit(col_class[c], over[c])
    return pred, gt


@kernel
def _credit(region_class, fragmentation):
    """Return the credit of a region: class 2, object; 1, part; 0, by its fragmentation."""
    if region_class == 2:
        return 1.0
    if region_class == 1:
        return BETA
    return fragmentation
