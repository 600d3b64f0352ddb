"""All thresholds from one read of the pixels of a map (H, W).

A pixel is on at a threshold t if its value is at least t. Values are compared as float64: an
unsigned 8-bit value v stands for v / 255, a 16-bit value v for v / 65535, and a float32 is
converted exactly. The level of a pixel is the number of thresholds that it reaches. If the
thresholds are in ascending order, the pixel is on at exactly the thresholds with index i < level.

The level of an integer is read from a table. The level of a float follows from its bucket,
floor(value * K), where K is a power of two: the product is exact, so the value reaches all
thresholds in lower buckets and none in higher ones. If no two thresholds share a bucket, as on an
even grid, one comparison decides.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.jit import kernel

_LANES = 4  # histograms side by side, because neighbouring pixels often share a bin


class Confusion(NamedTuple):
    """The numbers of true and false positives and negatives at T thresholds, int64 (T,) each."""

    tp: I8
    fp: I8
    fn: I8
    tn: I8


class _Buckets(NamedTuple):
    """T thresholds in n equal buckets of [0, 1]: the bucket of a value is floor(value * n).

    They let the level of a float be found with few comparisons.
    """

    n: int  # number of buckets, a power of two
    of_threshold: I8  # (T,): the bucket of each threshold
    # (n + 1,): the threshold in each bucket, NaN if there is none. None if two share a bucket.
    threshold: F8 | None
    first: I8  # (n + 2,): bucket b has the thresholds first[b] to first[b + 1] - 1
    padded: F8  # the thresholds, padded with NaN, which no value reaches
    halvings: int  # number of comparisons that find a level within the fullest bucket


def levels(values: NDArray[Any], thresholds: F8) -> NDArray[np.int16]:
    """Return, for each value, how many thresholds it reaches (value >= threshold).

    values: any shape; uint8 (taken as v / 255), uint16 (v / 65535), float32, float64 or bool
        (0 and 1). NaN reaches no threshold.
    thresholds (T,): in ascending order, T < 32768, because the answer is int16.

    Raises ValueError for any other dtype.
    """
    flat, key = _flatten(values), np.asarray(thresholds, np.float64).tobytes()
    if flat.dtype.kind == "u":
        level = _lookup_table(flat.dtype, key).take(flat)
    else:
        level = np.zeros(flat.size, np.int16)
        n, _, _, first, padded, halvings = _buckets(key)
        reaching = np.flatnonzero(flat >= padded[:1]).view(np.uint64)
        _float_levels(flat, reaching, first, padded, halvings, float(n), level)
    return level.reshape(np.shape(values))


def confusion(values: NDArray[Any], gt: Bool, thresholds: F8) -> Confusion:
    """Count true and false positives and negatives at each threshold, pixel by pixel.

    values, thresholds: as in `levels`. A pixel is positive at threshold t if its value >= t.
    gt: True where a pixel is positive in the ground truth; of the same shape as `values`.

    The counts are read from one histogram of the pixels, by ground truth and by a bin that rises
    with the value. The bin is the level (number of thresholds reached) or, for floats with at most
    one threshold in each bucket, the bucket and whether the value reaches its threshold.
    """
    flat, key = _flatten(values), np.asarray(thresholds, np.float64).tobytes()
    mask = np.ascontiguousarray(gt, np.bool_).view(np.uint8).ravel()
    above = np.arange(1, thresholds.size + 1)  # the first bin that reaches each threshold
    buckets = _buckets(key)
    if flat.dtype.kind == "u":
        hist = np.zeros((_LANES, 2 * above.size + 2), np.int64)
        _table_histogram(flat, mask, _lookup_table(flat.dtype, key), hist)
    elif buckets.threshold is not None:
        hist = np.zeros((_LANES, 4 * buckets.threshold.size), np.int64)
        _bucket_histogram(flat, mask, buckets.threshold, float(buckets.n), hist)
        above = 2 * buckets.of_threshold + 1
    else:  # thresholds too close together for one comparison
        reached = levels(flat, thresholds).view(np.uint16)
        identity = np.arange(above.size + 1, dtype=np.int16)
        hist = np.zeros((_LANES, 2 * identity.size), np.int64)
        _table_histogram(reached, mask, identity, hist)
    n_in_bin = hist.sum(axis=0).reshape(-1, 2)  # (bins, 2): without and with ground truth
    n_from_bin = np.cumsum(n_in_bin[::-1], axis=0)[::-1]  # in this bin and all higher ones
    n_negative, n_positive = n_from_bin[0]
    fp, tp = n_from_bin[above, 0], n_from_bin[above, 1]
    return Confusion(tp, fp, n_positive - tp, n_negative - fp)


def _flatten(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as a flat contiguous array, with bool as uint8 of 0 and 255.

    Raises ValueError for dtypes that `levels` does not accept.
    """
    flat = np.ascontiguousarray(values).ravel()
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8) * np.uint8(255)
    if flat.dtype.str[1:] not in ("u1", "u2", "f4", "f8") or not flat.dtype.isnative:
        raise ValueError(f"dtype {flat.dtype}, expected uint8, uint16, float32, float64 or bool")
    return flat


@lru_cache(maxsize=16)
def _lookup_table(dtype: np.dtype[Any], thresholds: bytes) -> NDArray[np.int16]:
    """Return how many thresholds each possible value of an unsigned integer dtype reaches.

    dtype: uint8 or uint16. A value v stands for v divided by the largest value of the dtype.
    thresholds: the bytes of a float64 array (T,) in ascending order, because the cache needs a
        hashable argument.

    Returns an array with an element for each value of the dtype.
    """
    t, top = np.frombuffer(thresholds), int(np.iinfo(dtype).max)
    lowest = np.ceil(np.clip(t, 0, 2) * top)  # the first value that reaches each threshold
    lowest += lowest / top < t  # ... which the product may miss by rounding
    # The values edges[k] .. edges[k + 1] - 1 reach k thresholds
    edges = np.concatenate([[0], np.clip(lowest, 0, top + 1), [top + 1]]).astype(np.int64)
    return np.repeat(np.arange(edges.size - 1, dtype=np.int16), np.diff(edges))


@lru_cache(maxsize=16)
def _buckets(thresholds: bytes) -> _Buckets:
    """Sort thresholds into equal buckets of [0, 1].

    The number of buckets is doubled until no two thresholds share a bucket, up to about 16 to 32
    buckets per threshold.

    thresholds: the bytes of a float64 array (T,) in ascending order, because the cache needs a
        hashable argument.
    """
    t = np.frombuffer(thresholds)
    n = 1 << int(t.size).bit_length()
    largest_n = 16 * n
    while True:
        bucket = np.floor(np.clip(t, 0, 1) * n).astype(np.int64)
        are_apart = bool(np.all(np.diff(bucket) > 0))
        if are_apart or n >= largest_n:
            break
        n *= 2
    threshold_of_bucket = None
    if are_apart:
        threshold_of_bucket = np.full(n + 1, np.nan)
        threshold_of_bucket[bucket] = t
    first = np.searchsorted(bucket, np.arange(n + 2))
    halvings = int(np.diff(first).max(initial=0)).bit_length()
    padded = np.append(t, np.full(1 << halvings, np.nan))
    return _Buckets(n, bucket, threshold_of_bucket, first, padded, halvings)


@kernel(_nrt=False)
def _float_levels(values, reaching, first, thresholds, halvings, n_buckets, levels):
    """Write the level of each value, the number of thresholds t with value >= t, into `levels`.

    Buckets of equal width divide [0, 1]. The bucket of a value gives the first thresholds that may
    exceed it, and a bisection among the thresholds of this bucket finds the level.

    values float32 or float64 (N,): values outside [0, 1] are put into the first or last bucket.
    reaching uint64: the indices of the values that reach the lowest threshold. The levels of the
        others are not written.
    first int64 (n_buckets + 2,): bucket b has the thresholds first[b] to first[b + 1] - 1.
    thresholds float64: in ascending order, padded with NaN.
    halvings: number of comparisons that find a level within the fullest bucket.
    n_buckets: a power of two, as a float. The bucket of a value v is floor(v * n_buckets), so that
        v = 1 has one more bucket of its own.
    levels int16 (N,): 0 on entry.
    """
    for p in reaching:
        value = np.float64(values[p])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < n_buckets else n_buckets
        level = first[np.int64(scaled)]  # thresholds of the lower buckets
        for h in range(halvings - 1, -1, -1):
            step = 1 << h
            level += step * (value >= thresholds[level + step - 1])
        levels[p] = level


@kernel(_nrt=False)
def _bucket_histogram(values, gt, threshold_of_bucket, n_buckets, hist):
    """Count values in `hist` by bucket, by whether they reach its threshold, and by ground truth.

    values float32 or float64 (N,): the values.
    gt uint8 (N,): the ground truth of each value, 0 or 1.
    threshold_of_bucket float64 (n_buckets + 1,): the threshold in each bucket, or NaN if it has
        none. The value 1 has the last bucket to itself.
    n_buckets: the number of buckets in [0, 1), a power of two, as a float.
    hist int64 (_LANES, 4 * (n_buckets + 1)): 0 on entry. A value is counted in the column
        4 * bucket + 2 * reached + gt, where reached is 1 if the value reaches the threshold of its
        bucket, else 0. The histogram is the sum of the rows, the lanes; neighbouring values are
        counted in different lanes, so that one increment need not wait for another.
    """
    for p in range(values.size):
        value = np.float64(values[p])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0  # 0 for NaN too
        scaled = scaled if scaled < n_buckets else n_buckets
        bucket = np.int64(scaled)
        reached = value >= threshold_of_bucket[np.uint64(bucket)]
        hist[p % _LANES, np.uint64(4 * bucket + 2 * reached + gt[p])] += 1


@kernel(_nrt=False)
def _table_histogram(values, gt, table, hist):
    """Count values in `hist` by level and by ground truth.

    values uint8 or uint16 (N,): the values.
    gt uint8 (N,): the ground truth of each value, 0 or 1.
    table int16 (possible values,): the level of each value.
    hist int64 (_LANES, 2 * levels): 0 on entry. A value is counted in the column 2 * level + gt.
        The histogram is the sum of the rows, the lanes; see `_bucket_histogram`.
    """
    for p in range(values.size):
        hist[p % _LANES, np.uint64(2 * table[values[p]] + gt[p])] += 1
