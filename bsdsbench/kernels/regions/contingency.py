"""Sparse contingency tables of one segmentation with all annotators of an image.

A table has one row per region of the segmentation and one column per region of any annotator; the
columns of annotator k are `col_start[k] : col_start[k+1]`. It is kept as rows of (column, pixels)
cells with columns ascending and no empty cell, so its size depends on the overlapping regions, not
on rows times columns. Regions are numbered in raster order of their first pixel, so the same
partition gives the same table for any labels and any way of building it.
"""

import numpy as np

from bsdsbench.kernels.jit import inner, kernel

GAMMA_OBJECT, GAMMA_PART, BETA = 0.9, 0.25, 0.1  # objects and parts, as published


@kernel
def renumber(labels, low, span):
    """Number the regions of a flat label map by first pixel; labels lie in [low, low + span).

    Returns the map of numbers, int32, and the areas of the regions.
    """
    number = np.full(span, -1, np.int32)
    out = np.empty(labels.size, np.int32)
    area = np.zeros(min(span, labels.size), np.int64)
    count = 0
    for p in range(labels.size):
        label = labels[p] - low
        if number[label] < 0:
            number[label] = count
            count += 1
        out[p] = number[label]
        area[out[p]] += 1
    return out, area[:count].copy()


@kernel
def value_pairs(pred, gt):
    """The pairs of values that two flat int64 maps have, in order of their first pixels.

    Returns i8 (3, n): each pair's value in pred, in gt, its pixels; and the pair of each pixel,
    int32. A hash table with open addressing, at most half full, is asked once a run of pixels.
    """
    cell = np.empty(pred.size, np.int32)
    pairs, slots, n = np.empty((3, 512), np.int64), np.full(1024, -1, np.int32), 0
    p = 0
    while p < pred.size:
        a, b, first = pred[p], gt[p], p
        while p < pred.size and pred[p] == a and gt[p] == b:
            p += 1
        at = _slot(a, b, pairs, slots)
        if slots[at] < 0:
            if n == pairs.shape[1]:
                pairs, slots = _doubled(pairs, slots)
                at = _slot(a, b, pairs, slots)
            slots[at] = n
            pairs[0, n], pairs[1, n], pairs[2, n] = a, b, 0
            n += 1
        pairs[2, slots[at]] += p - first
        cell[first:p] = slots[at]
    return pairs[:, :n].copy(), cell


@inner
def _slot(a, b, pairs, slots):
    """Where the pair (a, b) is, or is to be put.

    Halves of 32 bits are multiplied: no product overflows, of which numpy would warn without numba.
    """
    first, second, half = np.uint64(a), np.uint64(b), np.uint64(32)
    low, last = np.uint64(0xFFFFFFFF), np.uint64(slots.size - 1)
    key = ((first ^ first >> half) & low) * np.uint64(0x9E3779B9)
    key = (key ^ key >> half ^ second ^ second >> half) & low
    at = key * np.uint64(0xD6E8FEB9) >> np.uint64(20) & last
    while slots[at] >= 0 and (pairs[0, slots[at]] != a or pairs[1, slots[at]] != b):
        at = at + np.uint64(1) & last
    return at


@kernel
def _doubled(pairs, slots):
    """The table refilled with room for twice as many pairs."""
    n = pairs.shape[1]
    more, slots = np.empty((3, 2 * n), np.int64), np.full(2 * slots.size, -1, np.int32)
    for k in range(n):  # an assignment of arrays would compile for seconds
        for row in range(3):
            more[row, k] = pairs[row, k]
        slots[_slot(pairs[0, k], pairs[1, k], more, slots)] = k
    return more, slots


@kernel
def runs(labels, gts, col_start):
    """Cells (row, column, pixels), with repeats: one per run of pixels of one row and one column.

    labels (N,), gts (A, N) int32, both numbered 0, 1, ...
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
    """Sum cells of equal (row, column) into a table: indptr (n_rows+1,), cols, counts.

    Two stable counting sorts, by column and then by row.
    """
    n = rows.size
    place = np.zeros(n_cols + 1, np.int64)
    for e in range(n):
        place[cols[e] + 1] += 1
    for c in range(n_cols):
        place[c + 1] += place[c]
    by_col = np.empty(n, np.int64)
    for e in range(n):
        by_col[place[cols[e]]] = e
        place[cols[e]] += 1

    start = np.zeros(n_rows + 1, np.int64)
    for e in range(n):
        start[rows[e] + 1] += 1
    for r in range(n_rows):
        start[r + 1] += start[r]
    fill = start[:n_rows].copy()
    col_out = np.empty(n, np.int32)
    count_out = np.zeros(n, np.int64)
    for e in by_col:
        r = rows[e]
        at = fill[r]
        if at > start[r] and col_out[at - 1] == cols[e]:
            count_out[at - 1] += counts[e]
        else:
            col_out[at] = cols[e]
            count_out[at] = counts[e]
            fill[r] = at + 1

    indptr = np.zeros(n_rows + 1, np.int64)
    n = 0
    for r in range(n_rows):  # close the gaps that summed cells left
        for at in range(start[r], fill[r]):
            col_out[n] = col_out[at]
            count_out[n] = count_out[at]
            n += 1
        indptr[r + 1] = n
    return indptr, col_out[:n].copy(), count_out[:n].copy()


@kernel
def merge_rows(indptr, cols, counts, new_row, n_rows, n_cols):
    """The table after row r has become part of row `new_row[r]`."""
    rows = np.empty(cols.size, np.int32)
    for r in range(indptr.size - 1):
        rows[indptr[r] : indptr[r + 1]] = new_row[r]
    return tabulate(rows, cols, counts, n_rows, n_cols)


@kernel
def overlap_sums(indptr, cols, counts, row_area, col_area, ann_of_col, n_ann):
    """Everything the measures need from the cells, in one pass.

    best_gt (n_cols,) : the largest intersection over union of each column
    covered_pred  : sum of each row's area times the same, over all annotators
    ints (A, 3)   : sum n^2; sum over columns of the largest n; sum over rows of the largest n
    floats (A, 5) : sum n log2 n; sum n max(1-n/a, 1-n/b); the same with min; sum n (1-n/a);
                    sum n (1-n/b)
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
            out_pred = 1.0 - n / row_area[r]
            out_gt = 1.0 - n / col_area[c]
            ints[k, 0] += n * n
            floats[k, 0] += n * np.log2(n)
            floats[k, 1] += n * max(out_pred, out_gt)
            floats[k, 2] += n * min(out_pred, out_gt)
            floats[k, 3] += n * out_pred
            floats[k, 4] += n * out_gt
        covered_pred += row_area[r] * best_pred
    for c in range(col_area.size):
        ints[ann_of_col[c], 1] += largest[c]
    return best_gt, covered_pred, ints, floats


@kernel
def squares_and_bits(area):
    """sum a^2 and sum a log2 a, in order."""
    squares, bits = np.int64(0), 0.0
    for a in area:
        squares += a * a
        bits += a * np.log2(a)
    return squares, bits


@kernel
def fop_sums(indptr, cols, counts, row_area, col_area, row_candidate, col_candidate, n_ann):
    """Objects and parts: the numerators of precision and recall (PAMI 2016).

    row_candidate bool (n_rows,), col_candidate bool (n_cols,).
    """
    row_class = np.zeros(row_area.size, np.int8)  # 0 none, 1 part, 2 object
    col_class = np.zeros(col_area.size, np.int8)
    under = np.zeros(row_area.size)
    over = np.zeros(col_area.size)
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
def _credit(kind, fragmentation):
    if kind == 2:
        return 1.0
    if kind == 1:
        return BETA
    return fragmentation
