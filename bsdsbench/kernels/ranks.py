"""Counting along a ranking (n,), and sums along a curve. The caller allocates the outputs.

Positives and negatives are sorted separately (plain sorts of values, no argsort) and walked from
the top; the counts at a score are the numbers of each at or above it. The inner loops have no
unpredictable branch: on ten million scores that gains more than skipping work would.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import kernel

# Terms added one after the other before the partial sum is put aside: keeps rounding small.
_BLOCK = 1024


@kernel
def split(positive, negative, scores, out):
    """Copy the scores of positives to the front of `out` (n + 1,), of negatives to its end.

    Returns where the positives end and where the negatives begin.
    """
    i, j = 0, out.size
    for k in range(scores.size):
        # Both are written; only the one whose end moves stays.
        out[i] = scores[k]
        out[j - 1] = scores[k]
        i += np.int64(positive[k])
        j -= np.int64(negative[k])
    return i, j


@kernel
def merge_levels(pos, neg, thresholds, tp, fp):
    """Fill in the counts at each distinct score, from ascending scores of each class.

    thresholds f8, tp and fp i8 need room for n + 1; entry 0 is +inf, 0, 0. Returns the number of
    entries, 1 + levels.
    """
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    i, j, k = pos.size - 1, neg.size - 1, 0
    while i >= 0 or j >= 0:
        if i >= 0 and j >= 0:
            level = max(pos[i], neg[j])
            i, j = i - (pos[i] == level), j - (neg[j] == level)
        elif i >= 0:
            level, i = pos[i], i - 1
        else:
            level, j = neg[j], j - 1
        # Entry 0 is no level, not even for a score of +inf.
        k += (k == 0) | (thresholds[k] != level)
        thresholds[k], tp[k], fp[k] = level, pos.size - 1 - i, neg.size - 1 - j
    return k + 1


@kernel
def merge_samples(pos, neg, thresholds, tp, fp):
    """Fill in the counts after each sample; False if a positive and a negative share a score.

    As `merge_levels`, with n + 1 entries. A tie inside one class cannot change the counts; one
    between the classes can, and the caller must then order the samples itself.
    """
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    i, j = pos.size - 1, neg.size - 1
    for k in range(1, pos.size + neg.size + 1):
        if i >= 0 and j >= 0:
            if pos[i] == neg[j]:
                return False
            thresholds[k] = max(pos[i], neg[j])
            up = pos[i] > neg[j]
            i, j = i - up, j - (not up)
        elif i >= 0:
            thresholds[k], i = pos[i], i - 1
        else:
            thresholds[k], j = neg[j], j - 1
        tp[k], fp[k] = pos.size - 1 - i, neg.size - 1 - j
    return True


@kernel
def pack(positive, negative, bits, packed):
    """One integer per row that sorts best score first, ties by row, and carries the class.

    bits is the score, f4 without -0, seen as i4. packed i8 (n,), n < 2**30: 32 bits of order, 30
    of row number, 2 of class (1 positive, 2 negative, 0 neither).
    """
    for k in range(bits.size):
        b = np.int64(bits[k])
        # Negative floats count down in their low 31 bits: flip them.
        rising = b ^ ((b >> 31) & 0x7FFFFFFF)
        kind = np.int64(positive[k]) + 2 * np.int64(negative[k])
        packed[k] = (~rising << 32) | (np.int64(k) << 2) | kind


@kernel
def unpack(packed, levels, thresholds, tp, fp):
    """Counts after each sample from sorted `packed`; levels f8, distinct scores, falling."""
    thresholds[0], tp[0], fp[0] = np.inf, 0, 0
    level = -1
    for k in range(packed.size):
        level += k == 0 or (packed[k] >> 32) != (packed[k - 1] >> 32)
        thresholds[k + 1] = levels[level]
        tp[k + 1] = tp[k] + (packed[k] & 1)
        fp[k + 1] = fp[k] + ((packed[k] >> 1) & 1)


@kernel
def pr_sums(tp, recall, precision):
    """Sums along a PR curve: of precision x rise of tp, and of twice the trapezoids."""
    ap, area = 0.0, 0.0
    for start in range(1, tp.size, _BLOCK):
        a, b = 0.0, 0.0
        for k in range(start, min(start + _BLOCK, tp.size)):
            a += precision[k] * (tp[k] - tp[k - 1])
            b += (precision[k] + precision[k - 1]) * (recall[k] - recall[k - 1])
        ap += a
        area += b
    return ap, area


@kernel
def roc_sum(tp, fp):
    """Twice the area under the (fp, tp) polyline, a whole number."""
    area = np.int64(0)
    for k in range(1, tp.size):
        area += (tp[k] + tp[k - 1]) * (fp[k] - fp[k - 1])
    return area


@kernel
def histogram(positive, negative, scores, thresholds, pos, neg):
    """Add to `pos` and `neg` how many samples of each class lie in the T+1 bins of T thresholds.

    thresholds f8 (T,), T > 0, finite, rising; pos and neg i8 (T+1,). Bin b holds scores with
    thresholds[b-1] <= score < thresholds[b]. A table of even cells tells where to look: the map
    from score to cell is monotone, so thresholds in lower cells are below the score.
    """
    cells = 4 * thresholds.size
    low, high = thresholds[0], thresholds[-1]
    scale = (cells - 1) / (high - low) if high > low else 0.0
    start = np.zeros(cells + 1, np.int64)
    for t in thresholds:
        start[np.int64((t - low) * scale) + 1] += 1
    for c in range(cells):
        start[c + 1] += start[c]
    for k in range(scores.size):
        s = np.float64(scores[k])
        cell = np.int64((min(max(s, low), high) - low) * scale)
        b, end = start[cell], start[cell + 1]
        while b < end:
            mid = (b + end) >> 1
            if thresholds[mid] <= s:
                b = mid + 1
            else:
                end = mid
        pos[b] += positive[k]
        neg[b] += negative[k]


@kernel
def tally(positive, negative, scores, low, pos, neg):
    """Add to `pos` and `neg` how many samples of each class have each score low, low + 1 ..."""
    for k in range(scores.size):
        value = np.int64(scores[k]) - low
        pos[value] += positive[k]
        neg[value] += negative[k]


@kernel
def upper_hull(x, y, corners):
    """Corners (indices) of the upper convex hull, from the first to the last point.

    x, y f8, sorted by x, then y. Fills `corners` i8 (n,); returns how many. Points on a line
    between two corners are left out. Source: Andrew's monotone chain.
    """
    k = 0
    for c in range(x.size):
        while k >= 2:
            a, b = corners[k - 2], corners[k - 1]
            if (x[b] - x[a]) * (y[c] - y[a]) < (y[b] - y[a]) * (x[c] - x[a]):
                break
            k -= 1
        corners[k] = c
        k += 1
    return k
