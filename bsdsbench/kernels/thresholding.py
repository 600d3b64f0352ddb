"""All thresholds from one read of the pixels of a map (H, W).

A pixel is on at threshold t where value >= t, compared in float64: an unsigned 8-bit value v is
v / 255, a 16-bit one v / 65535, a float32 is promoted exactly. Its level is the number of
thresholds at or below it, so it is on at exactly the thresholds i < level (increasing order).

Integers look their level up. Floats look up their bucket, floor(value * K) with K a power of two:
the product is exact, so all thresholds of lower buckets are reached and none of higher ones. On an
even grid a bucket has at most one threshold, and one comparison settles it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.jit import kernel

_LANES = 4  # histograms side by side, as neighbouring pixels often share a bin


def levels(values: NDArray[Any], thresholds: F8) -> NDArray[np.int16]:
    """How many thresholds each pixel reaches: the count of t with value >= t.

    values     : (H, W), any shape, of uint8 (v / 255), uint16 (v / 65535), float32, float64, bool
    thresholds : f8 (T,), not decreasing, T < 32768
    Returns int16 of the shape of `values`. NaN reaches no threshold. Raises ValueError for other
    dtypes.
    """
    flat, thresholds = _checked(values, thresholds)
    if flat.dtype.kind == "u":
        out = _lookup_table(flat.dtype, thresholds.tobytes()).take(flat)
    else:
        out = np.zeros(flat.size, np.int16)
        _float_levels(flat, *_bisection(thresholds.tobytes()), np.empty(flat.size, np.int32), out)
    return out.reshape(np.shape(values))


def confusion(values: NDArray[Any], gt: Bool, thresholds: F8) -> tuple[I8, I8, I8, I8]:
    """True and false positives, false and true negatives at each threshold, pixel by pixel.

    values, thresholds : as for `levels`
    gt                 : bool, the shape of `values`
    Returns (tp, fp, fn, tn), each int64 (T,); zeros where there is no pixel. Raises ValueError as
    `levels` does. One histogram of the pixels, then its suffix sums.
    """
    flat, thresholds = _checked(values, thresholds)
    truth = np.ascontiguousarray(gt, np.bool_)
    mask = truth.view(np.uint8).ravel()
    above = np.arange(1, thresholds.size + 1)  # the first bin that reaches each threshold
    bucket, k, cut = _buckets(thresholds.tobytes())
    if flat.dtype.kind == "u":
        table = _lookup_table(flat.dtype, thresholds.tobytes())
        hist = _table_histogram(flat, mask, table, above.size + 1)
    elif cut is not None:
        hist = _cut_histogram(flat, mask, cut, float(k))
        above = 2 * bucket + 1
    else:  # thresholds too close together for one comparison
        reached = levels(flat, thresholds).view(np.uint16)
        identity = np.arange(above.size + 1, dtype=np.int16)
        hist = _table_histogram(reached, mask, identity, identity.size)
    at_least = np.cumsum(hist.sum(axis=0)[::-1], axis=0)[::-1]
    negative, positive = at_least[0]
    fp, tp = at_least[above, 0], at_least[above, 1]
    return tp, fp, positive - tp, negative - fp


def _checked(values: NDArray[Any], thresholds: F8) -> tuple[NDArray[Any], F8]:
    flat = np.ascontiguousarray(values).ravel()
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8) * np.uint8(255)
    if flat.dtype.str[1:] not in ("u1", "u2", "f4", "f8") or not flat.dtype.isnative:
        raise ValueError(f"dtype {flat.dtype}, expected uint8, uint16, float32, float64 or bool")
    return flat, np.ascontiguousarray(thresholds, np.float64)


@lru_cache(maxsize=16)
def _lookup_table(dtype: np.dtype[Any], thresholds: bytes) -> NDArray[np.int16]:
    """Level of every value of an unsigned integer type."""
    t, top = np.frombuffer(thresholds), int(np.iinfo(dtype).max)
    lowest = np.ceil(np.clip(t, 0, 2) * top)  # the value that reaches t, or that before it
    lowest += lowest / top < t
    edges = np.concatenate([[0], np.clip(lowest, 0, top + 1), [top + 1]]).astype(np.int64)
    return np.repeat(np.arange(edges.size - 1, dtype=np.int16), np.diff(edges))


@lru_cache(maxsize=16)
def _buckets(thresholds: bytes) -> tuple[I8, int, F8 | None]:
    """(bucket of each threshold, K, threshold of each bucket).

    K is doubled until no two share a bucket, up to 16 buckets each; if some then still do, the
    last is None. A bucket without a threshold has NaN, which nothing reaches.
    """
    t = np.frombuffer(thresholds)
    k = 1 << int(t.size).bit_length()
    most = 16 * k
    while True:
        bucket = np.floor(np.clip(t, 0, 1) * k).astype(np.int64)
        if np.all(np.diff(bucket) > 0):
            cut = np.full(k + 1, np.nan)
            cut[bucket] = t
            return bucket, k, cut
        if k >= most:
            return bucket, k, None
        k *= 2


@lru_cache(maxsize=16)
def _bisection(thresholds: bytes) -> tuple[I8, F8, int, float]:
    """What `_float_levels` needs: first, thresholds, halvings, K."""
    bucket, k, _ = _buckets(thresholds)
    first = np.searchsorted(bucket, np.arange(k + 2))
    halvings = int(np.diff(first).max(initial=0)).bit_length()
    padded = np.append(np.frombuffer(thresholds), np.full(1 << halvings, np.nan))
    return first, padded, halvings, float(k)


@kernel(_nrt=False)
def _float_levels(values, first, thresholds, halvings, k, on, out):
    """Level by bucket and bisection; bucket b starts at threshold first[b], NaN after the last.

    on : room for the pixels of any level but 0;  out : zeros
    """
    n = np.uint64(0)
    for p in range(values.size):  # no branch: the processor could not guess it
        on[n] = p
        n += np.uint64(np.float64(values[p]) >= thresholds[0])
    for pixel in on[:n]:
        p = np.uint64(pixel)
        value = np.float64(values[p])
        scaled = value * k
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < k else k
        level = first[np.uint64(np.int64(scaled))]
        for h in range(halvings - 1, -1, -1):
            step = np.int64(1) << h
            level += step * (value >= thresholds[np.uint64(level + step - 1)])
        out[p] = level


@kernel
def _cut_histogram(values, gt, cut, k):
    """(lanes, 2 * buckets, 2) counts: below / from the bucket's threshold on, by ground truth."""
    hist = np.zeros((_LANES, 4 * cut.size), np.int64)
    for p in range(values.size):
        value = np.float64(values[p])
        scaled = value * k
        scaled = scaled if scaled > 0.0 else 0.0
        scaled = scaled if scaled < k else k
        bucket = np.int64(scaled)
        reached = value >= cut[np.uint64(bucket)]
        hist[p % _LANES, np.uint64(4 * bucket + 2 * reached + gt[p])] += 1
    return hist.reshape(_LANES, -1, 2)


@kernel
def _table_histogram(values, gt, table, levels):
    """(lanes, levels, 2) counts by ground truth, the level of a value read from the table."""
    hist = np.zeros((_LANES, 2 * levels), np.int64)
    for p in range(values.size):
        hist[p % _LANES, np.uint64(2 * table[values[p]] + gt[p])] += 1
    return hist.reshape(_LANES, -1, 2)
