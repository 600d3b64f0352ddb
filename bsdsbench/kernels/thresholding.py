"""All thresholds from one read of the pixels of a map (H, W).

A pixel is on at threshold t where value >= t, compared in float64: an unsigned 8-bit value v is
v / 255, a 16-bit one v / 65535, a float32 is promoted exactly. Its level is the number of
thresholds at or below it, so it is on at exactly the thresholds i < level (increasing order).

The level of an integer is read from a table. That of a float follows from its bucket,
floor(value * K) with K a power of two: the product is exact, so the value reaches all thresholds of
lower buckets and none of higher ones. On an even grid a bucket has at most one threshold, and one
comparison decides.
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
    """Pixels by prediction and ground truth at each of T thresholds, int64 (T,) each."""

    tp: I8
    fp: I8
    fn: I8
    tn: I8


class _Checked(NamedTuple):
    """Flat values and thresholds in dtypes that kernels accept."""

    flat: NDArray[Any]
    thresholds: F8


class _Buckets(NamedTuple):
    """Thresholds sorted into buckets of [0, 1]: the bucket of a value is floor(value * n)."""

    of_threshold: I8  # (T,)
    n: int  # a power of two
    threshold: F8 | None  # (n + 1,) of each bucket, NaN if it has none; None: some share a bucket


class _Bisection(NamedTuple):
    """The arguments of `_float_levels`. Bucket b has thresholds from index first[b] on."""

    first: I8
    thresholds: F8  # padded with NaN, which no value reaches
    halvings: int  # number of comparisons that find a level within the fullest bucket
    n_buckets: float


def levels(values: NDArray[Any], thresholds: F8) -> NDArray[np.int16]:
    """Return the number of thresholds that each pixel reaches: the number of t with value >= t.

    `values`, of any shape, are uint8 (v / 255), uint16 (v / 65535), float32, float64 or bool.
    `thresholds` are float64 (T,), not decreasing, T < 32768. Returns int16 of the shape of
    `values`. NaN reaches no threshold. Raises ValueError for other dtypes.
    """
    flat, thresholds = _checked(values, thresholds)
    if flat.dtype.kind == "u":
        level = _lookup_table(flat.dtype, thresholds.tobytes()).take(flat)
    else:
        level = np.zeros(flat.size, np.int16)
        room = np.empty(flat.size, np.int32)
        _float_levels(flat, *_bisection(thresholds.tobytes()), room, level)
    return level.reshape(np.shape(values))


def confusion(values: NDArray[Any], gt: Bool, thresholds: F8) -> Confusion:
    """Count true and false positives and negatives at each threshold, pixel by pixel.

    `values` and `thresholds` are as for `levels`, and so is ValueError. `gt` is bool in the shape
    of `values`. The counts are suffix sums of one histogram of the pixels.
    """
    flat, thresholds = _checked(values, thresholds)
    truth = np.ascontiguousarray(gt, np.bool_)
    mask = truth.view(np.uint8).ravel()
    above = np.arange(1, thresholds.size + 1)  # the first bin that reaches each threshold
    buckets = _buckets(thresholds.tobytes())
    if flat.dtype.kind == "u":
        table = _lookup_table(flat.dtype, thresholds.tobytes())
        hist = np.zeros((_LANES, 2 * above.size + 2), np.int64)
        _table_histogram(flat, mask, table, hist)
    elif buckets.threshold is not None:
        hist = np.zeros((_LANES, 4 * buckets.threshold.size), np.int64)
        _bucket_histogram(flat, mask, buckets.threshold, float(buckets.n), hist)
        above = 2 * buckets.of_threshold + 1
    else:  # thresholds too close together for one comparison
        reached = levels(flat, thresholds).view(np.uint16)
        identity = np.arange(above.size + 1, dtype=np.int16)
        hist = np.zeros((_LANES, 2 * identity.size), np.int64)
        _table_histogram(reached, mask, identity, hist)
    at_least = np.cumsum(hist.sum(axis=0).reshape(-1, 2)[::-1], axis=0)[::-1]
    negative, positive = at_least[0]
    fp, tp = at_least[above, 0], at_least[above, 1]
    return Confusion(tp, fp, positive - tp, negative - fp)


def _checked(values: NDArray[Any], thresholds: F8) -> _Checked:
    """Convert values to a flat array of a dtype for kernels (bool to uint8). Raises ValueError."""
    flat = np.ascontiguousarray(values).ravel()
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8) * np.uint8(255)
    if flat.dtype.str[1:] not in ("u1", "u2", "f4", "f8") or not flat.dtype.isnative:
        raise ValueError(f"dtype {flat.dtype}, expected uint8, uint16, float32, float64 or bool")
    return _Checked(flat, np.ascontiguousarray(thresholds, np.float64))


@lru_cache(maxsize=16)
def _lookup_table(dtype: np.dtype[Any], thresholds: bytes) -> NDArray[np.int16]:
    """Return the level of every value of an unsigned integer type, int16. `thresholds` are the
    bytes of a float64 array, which can be a key of the cache.
    """
    t, top = np.frombuffer(thresholds), int(np.iinfo(dtype).max)
    lowest = np.ceil(np.clip(t, 0, 2) * top)  # the first value that reaches t, or the one before
    lowest += lowest / top < t
    edges = np.concatenate([[0], np.clip(lowest, 0, top + 1), [top + 1]]).astype(np.int64)
    return np.repeat(np.arange(edges.size - 1, dtype=np.int16), np.diff(edges))


@lru_cache(maxsize=16)
def _buckets(thresholds: bytes) -> _Buckets:
    """Sort thresholds, given as bytes of a float64 array, into buckets. The number of buckets is
    doubled until no two thresholds share a bucket, up to about 16 buckets per threshold.
    """
    t = np.frombuffer(thresholds)
    k = 1 << int(t.size).bit_length()
    most = 16 * k
    while True:
        bucket = np.floor(np.clip(t, 0, 1) * k).astype(np.int64)
        if np.all(np.diff(bucket) > 0):
            threshold_of_bucket = np.full(k + 1, np.nan)
            threshold_of_bucket[bucket] = t
            return _Buckets(bucket, k, threshold_of_bucket)
        if k >= most:
            return _Buckets(bucket, k, None)
        k *= 2


@lru_cache(maxsize=16)
def _bisection(thresholds: bytes) -> _Bisection:
    """Prepare thresholds, given as bytes of a float64 array, for `_float_levels`."""
    bucket, k, _ = _buckets(thresholds)
    first = np.searchsorted(bucket, np.arange(k + 2))
    halvings = int(np.diff(first).max(initial=0)).bit_length()
    padded = np.append(np.frombuffer(thresholds), np.full(1 << halvings, np.nan))
    return _Bisection(first, padded, halvings, float(k))


@kernel(_nrt=False)
def _float_levels(values, first, thresholds, halvings, n_buckets, on, levels):
    """Write the level of each value into `levels`, int16, 0 on entry, by bucket and bisection.

    `first`, `thresholds`, `halvings` and `n_buckets` are the fields of `_Bisection`. `on`, int32,
    is work space for the indices of the pixels that reach a threshold.
    """
    n = np.uint64(0)
    for p in range(values.size):  # no branch, which the processor could not predict
        on[n] = p
        n += np.uint64(np.float64(values[p]) >= thresholds[0])
    for pixel in on[:n]:
        p = np.uint64(pixel)
        value = np.float64(values[p])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < n_buckets else n_buckets
        level = first[np.uint64(np.int64(scaled))]
        for h in range(halvings - 1, -1, -1):
            step = np.int64(1) << h
            level += step * (value >= thresholds[np.uint64(level + step - 1)])
        levels[p] = level


@kernel(_nrt=False)
def _bucket_histogram(values, gt, threshold_of_bucket, n_buckets, hist):
    """Count values in `hist` by bucket, by whether they reach its threshold, and by ground truth.

    `values` are float32 or float64 (N,), `gt` is uint8 (N,), 0 or 1. `threshold_of_bucket` is
    (n_buckets + 1,): the value 1 has a bucket of its own. `hist` is int64, (lanes, 4 * (n_buckets
    + 1)), with column 4 * bucket + 2 * reached + gt. Its lanes have to be summed.
    """
    for p in range(values.size):
        value = np.float64(values[p])
        scaled = value * n_buckets
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < n_buckets else n_buckets
        bucket = np.int64(scaled)
        reached = value >= threshold_of_bucket[np.uint64(bucket)]
        hist[p % _LANES, np.uint64(4 * bucket + 2 * reached + gt[p])] += 1


@kernel(_nrt=False)
def _table_histogram(values, gt, table, hist):
    """Add the values of each level, which `table` maps from values, to `hist`, by ground truth.
    `hist` is int64 (lanes, 2 * levels).
    """
    for p in range(values.size):
        hist[p % _LANES, np.uint64(2 * table[values[p]] + gt[p])] += 1
