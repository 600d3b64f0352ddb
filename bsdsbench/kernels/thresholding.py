"""Thresholding of a map (H, W) at all thresholds in one pass over its pixels.

A pixel is on at a threshold t if its value is at least t. Values are compared as float64: a uint8
value v stands for v / 255, a uint16 value v for v / 65535, and a float32 is converted exactly. The
level of a pixel is the number of thresholds that it reaches. The thresholds are ascending, so the
pixel is on at exactly the thresholds with index i < level.

The level of an integer is read from a lookup table, that of a float found by buckets (`_buckets`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import Bools, Floats, Ints
from bsdsbench.kernels.jit import kernel

_LANES = 4  # histograms filled in turn, because neighbouring pixels often share a bin


class Confusion(NamedTuple):
    """True and false positives and negatives at each of T thresholds, int64 (T,) each."""

    tp: Ints
    fp: Ints
    fn: Ints
    tn: Ints


class _Buckets(NamedTuple):
    """A lookup table of T thresholds in n equal buckets of [0, 1].

    The bucket of a value is floor(value * n); the value 1 has the extra bucket n.
    """

    n: int  # number of buckets, a power of two
    of_threshold: Ints  # (T,): the bucket of each threshold
    # (n + 1,): the threshold in each bucket, NaN if there is none. None if two share a bucket.
    threshold: Floats | None
    first: Ints  # (n + 2,): bucket b has the thresholds first[b] to first[b + 1] - 1
    padded: Floats  # the thresholds, padded with NaN (which no value reaches) for the binary search
    n_comparisons: int  # of the binary search among the thresholds of a bucket


def levels(values: NDArray[Any], thresholds: Floats) -> NDArray[np.int16]:
    """Count, for each value, the thresholds that it reaches (value >= threshold).

    values: any shape; uint8 (taken as v / 255), uint16 (v / 65535), float32, float64 or bool
        (0 and 1). NaN reaches no threshold. Raises ValueError for any other dtype.
    thresholds (T,): ascending, T < 32768.

    Returns int16 counts of the shape of `values`.
    """
    # Bytes, so that tables made from the thresholds can be cached
    flat, key = _flatten(values), np.asarray(thresholds, np.float64).tobytes()
    if flat.dtype.kind == "u":  # look up the level of each of the 256 or 65536 values
        level = _lookup_table(flat.dtype, key).take(flat)
    else:  # divide [0, 1] into n buckets, and look up the thresholds below and in a value's bucket
        level = np.zeros(flat.size, np.int16)
        table = _buckets(key)
        # Most pixels of an edge map do not reach the lowest threshold. (It is in an array, because
        # numpy 1 would round a single number to float32)
        lowest = table.padded[:1]
        reaching = np.flatnonzero(flat >= lowest).view(np.uint64)  # numba need not test the sign
        n, n_comparisons = float(table.n), table.n_comparisons
        _float_levels(flat, reaching, table.first, table.padded, n_comparisons, n, level)
    return level.reshape(np.shape(values))


def confusion(values: NDArray[Any], gt: Bools, thresholds: Floats) -> Confusion:
    """Count true and false positives and negatives at each threshold, pixel by pixel.

    values: any shape; uint8 (taken as v / 255), uint16 (v / 65535), float32, float64 or bool. A
        pixel is predicted positive at threshold t if value >= t.
    gt: bool of the shape of `values`, True for positives.
    thresholds (T,): ascending, T < 32768.

    Each pixel is counted once, in a histogram over bins of the value, positives and negatives
    apart. The pixels that reach a threshold are those in its `first_bin` and all higher bins. With
    thresholds [0.25, 0.5], for example, bin 0 has the values below 0.25, bin 1 those from 0.25 to
    below 0.5, and bin 2 the others; the first bins are 1 and 2.
    """
    # The thresholds as bytes are the key of cached tables
    flat, key = _flatten(values), np.asarray(thresholds, np.float64).tobytes()
    mask = np.ascontiguousarray(gt, np.bool_).view(np.uint8).ravel()
    n_levels = thresholds.size + 1  # the level of a pixel is the number of thresholds it reaches
    first_bin = np.arange(1, n_levels)  # (T,), for bins that are levels
    buckets = _buckets(key)  # n equal parts of [0, 1]; a float v is in bucket floor(v * n)
    # The kernels fill `hist`, with the columns 2 * bin (negatives) and 2 * bin + 1 (positives).
    # Successive pixels are counted in different rows, which is faster; the rows are summed below
    if flat.dtype.kind == "u":  # a table has the level of each possible value
        hist = np.zeros((_LANES, 2 * n_levels), np.int64)
        _table_histogram(flat, mask, _lookup_table(flat.dtype, key), hist)
    elif buckets.threshold is not None:  # (buckets,): no bucket has more than one threshold
        # Bin 2 b has the values in bucket b below its threshold, and bin 2 b + 1 those from it on.
        # So a threshold in bucket b is reached by the values in bin 2 b + 1 and higher ones
        n_bins = 2 * buckets.threshold.size
        hist = np.zeros((_LANES, 2 * n_bins), np.int64)
        _bucket_histogram(flat, mask, buckets.threshold, float(buckets.n), hist)
        first_bin = 2 * buckets.of_threshold + 1
    else:  # thresholds too close for buckets: compute levels, and count these integers
        level = levels(flat, thresholds).view(np.uint16)  # from int16, which none is below 0
        level_itself = np.arange(n_levels, dtype=np.int16)  # the table of the kernel
        hist = np.zeros((_LANES, 2 * n_levels), np.int64)
        _table_histogram(level, mask, level_itself, hist)
    n_in_bin = hist.sum(axis=0).reshape(-1, 2)  # (bins, 2): negatives, positives
    n_from_bin = np.cumsum(n_in_bin[::-1], axis=0)[::-1]  # in this bin and all higher ones
    n_negative, n_positive = n_from_bin[0]
    fp, tp = n_from_bin[first_bin, 0], n_from_bin[first_bin, 1]
    return Confusion(tp=tp, fp=fp, fn=n_positive - tp, tn=n_negative - fp)


def _flatten(values: NDArray[Any]) -> NDArray[Any]:
    """Flatten values to a contiguous array, and convert bool to uint8 (0 and 255).

    Raises ValueError for dtypes that `levels` does not accept.
    """
    flat = np.ascontiguousarray(values).ravel()
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8) * np.uint8(255)
    if flat.dtype.str[1:] not in ("u1", "u2", "f4", "f8") or not flat.dtype.isnative:
        raise ValueError(f"dtype {flat.dtype}, expected uint8, uint16, float32, float64 or bool")
    return flat


@lru_cache(maxsize=16)
def _lookup_table(dtype: np.dtype[Any], thresholds_key: bytes) -> NDArray[np.int16]:
    """Tabulate the number of thresholds that each value of uint8 (v / 255) or uint16 reaches.

    thresholds_key: ascending float64 (T,) as bytes, because the cache needs a hashable argument.

    Returns int16, (256,) or (65536,), indexed by v.
    """
    thresholds, largest = np.frombuffer(thresholds_key), int(np.iinfo(dtype).max)
    # The smallest value that reaches each threshold. (No value reaches one above 1, such as inf,
    # which is clipped to 2.) Rounding may make the product too small: then add 1
    smallest = np.ceil(np.clip(thresholds, 0, 2) * largest)
    smallest += (smallest / largest) < thresholds
    smallest = np.minimum(smallest, largest + 1)
    # The values edges[k] .. edges[k + 1] - 1 reach k thresholds
    edges = np.concatenate([[0], smallest, [largest + 1]]).astype(np.int64)
    return np.repeat(np.arange(edges.size - 1, dtype=np.int16), np.diff(edges))


@lru_cache(maxsize=16)
def _buckets(thresholds_key: bytes) -> _Buckets:
    """Build a lookup table that finds, in constant time, how many thresholds a value reaches.

    [0, 1] is divided into n equal buckets. n is doubled until each bucket holds at most one
    threshold, but at most 4 times. A value v is in bucket floor(v * n), where the product is exact,
    as n is a power of two. The value 1 has the extra bucket n. A value reaches all thresholds in
    lower buckets; one comparison, or a binary search, tells which it reaches in its own bucket.

    thresholds_key: ascending float64 (T,) as bytes, because the cache needs a hashable argument.
    """
    thresholds = np.frombuffer(thresholds_key)
    n = 1 << int(thresholds.size).bit_length()  # the first power of two above T
    largest_n = 16 * n
    while True:
        bucket = np.floor(np.clip(thresholds, 0, 1) * n).astype(np.int64)  # of each threshold
        are_apart = bool(np.all(np.diff(bucket) > 0))
        if are_apart or n >= largest_n:
            break
        n *= 2
    threshold_of_bucket = None
    if are_apart:
        threshold_of_bucket = np.full(n + 1, np.nan)
        threshold_of_bucket[bucket] = thresholds
    # Bucket b, one of 0 .. n, has the thresholds with the indices first[b] to first[b + 1] - 1
    first = np.searchsorted(bucket, np.arange(n + 2))
    largest = int(np.diff(first).max(initial=0))  # the most thresholds in one bucket
    n_comparisons = largest.bit_length()  # of a binary search among them
    # NaN, which no value reaches, where a search in the last buckets looks beyond the thresholds
    padded = np.append(thresholds, np.full(1 << n_comparisons, np.nan))
    return _Buckets(n, bucket, threshold_of_bucket, first, padded, n_comparisons)


@kernel(_nrt=False)
def _float_levels(values, reaching, first, thresholds, n_comparisons, n_buckets, levels):
    """Write the level of each value, the number of thresholds t with value >= t, into `levels`.

    [0, 1] is divided into equal buckets. A value reaches all thresholds in lower buckets than its
    own; a binary search among those in its own bucket completes the level.

    values float32 or float64 (N,): values outside [0, 1] are put into the first or last bucket.
    reaching uint64: the indices of the values that reach the lowest threshold. Other levels are not
        written.
    first int64 (n_buckets + 2,): the number of thresholds in lower buckets than each. The last
        bucket, n_buckets, has the value 1.
    thresholds float64: in ascending order, then 2^n_comparisons times NaN, which no value reaches.
    n_comparisons: of the binary search. No bucket has 2^n_comparisons thresholds.
    n_buckets: the number of buckets, a power of two, as a float.
    levels int16 (N,): 0 on entry.
    """
    for i in reaching:
        value = np.float64(values[i])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < n_buckets else n_buckets
        level = first[np.int64(scaled)]  # thresholds of the lower buckets
        # Add powers of two, the largest first: each if the value reaches that many thresholds more
        for power in range(n_comparisons - 1, -1, -1):
            step = 1 << power
            level += step * (value >= thresholds[level + step - 1])
        levels[i] = level


@kernel(_nrt=False)
def _bucket_histogram(values, gt, threshold_of_bucket, n_buckets, hist):
    """Count values in `hist` by bucket, by whether they reach its threshold, and by ground truth.

    Each bucket has at most one threshold, so these counts tell how many values reach each one.

    values float32 or float64 (N,). gt uint8 (N,): the ground truth of each value, 0 or 1.
    threshold_of_bucket float64 (n_buckets + 1,): the threshold in each bucket, or NaN if it has
        none. The last bucket holds only the value 1.
    n_buckets: the number of buckets in [0, 1), a power of two, as a float.
    hist int64 (4 (_LANES), 4 * (n_buckets + 1)): 0 on entry. A value is counted in the column
        4 * bucket + 2 * reached + gt, where reached is 1 if the value reaches the threshold of its
        bucket, else 0. The histogram is the sum of the rows. Neighbouring values are counted in
        different rows, so that one increment need not wait for another.
    """
    for i in range(values.size):
        value = np.float64(values[i])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0  # 0 for NaN too
        scaled = scaled if scaled < n_buckets else n_buckets
        bucket = np.int64(scaled)
        reached = value >= threshold_of_bucket[np.uint64(bucket)]
        hist[i % _LANES, np.uint64(4 * bucket + 2 * reached + gt[i])] += 1


@kernel(_nrt=False)
def _table_histogram(values, gt, table, hist):
    """Count values in `hist` by level and by ground truth.

    values uint8 or uint16 (N,). gt uint8 (N,): the ground truth of each value, 0 or 1.
    table int16 (possible values,): the level of each possible value.
    hist int64 (_LANES, 2 * levels): 0 on entry. A value is counted in the column 2 * level + gt.
        The histogram is the sum of the rows. Neighbouring values are counted in different rows, so
        that one increment need not wait for another.
    """
    for p in range(values.size):
        hist[p % _LANES, np.uint64(2 * table[values[p]] + gt[p])] += 1
