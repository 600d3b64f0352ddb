"""Thinning by the words of the paper: shifted copies of the whole map, no table, no bookkeeping."""

from itertools import pairwise

import numpy as np


def neighbours(on):
    """x1..x8 of every pixel, anticlockwise from the east; outside the image is off."""
    padded = np.pad(on.astype(bool), 1)
    rows, cols = on.shape
    offsets = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1)]
    return [padded[1 + r : 1 + r + rows, 1 + c : 1 + c + cols] for r, c in offsets]


def removable(x, second):
    """Lam, Lee & Suen (1992), conditions G1, G2, G3 (or G3' in the second subiteration)."""
    x1, x2, x3, x4, x5, x6, x7, x8 = x
    pairs = [(x1, x2, x3), (x3, x4, x5), (x5, x6, x7), (x7, x8, x1)]
    crossings = np.zeros(np.shape(x1), int)
    n1 = np.zeros(np.shape(x1), int)
    n2 = np.zeros(np.shape(x1), int)
    for edge, corner, following in pairs:
        crossings += np.logical_not(edge) & (corner | following)
        n1 += edge | corner
        n2 += corner | following
    smaller = np.minimum(n1, n2)
    if second:
        g3 = np.logical_not((x6 | x7 | np.logical_not(x4)) & x5)
    else:
        g3 = np.logical_not((x2 | x3 | np.logical_not(x8)) & x1)
    return (crossings == 1) & (smaller >= 2) & (smaller <= 3) & g3


def thin(bmap):
    """Both subiterations in turn until a full iteration leaves the map as it was."""
    now = np.array(bmap, bool)
    while True:
        before = now.copy()
        for second in (False, True):
            now = now & ~removable(neighbours(now), second)
        if np.array_equal(now, before):
            return now


def levels(values, thresholds):
    """Number of thresholds at or below each value, one comparison per pixel and threshold."""
    values = np.asarray(values)
    if values.dtype == bool:
        values = values.astype(np.uint8) * np.uint8(255)
    scale = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}.get(values.dtype)
    exact = values.astype(np.float64) / scale if scale else values.astype(np.float64)
    return sum((exact >= t).astype(np.int64) for t in thresholds)


def replay(events, shape):
    """The maps at thresholds 0 .. n-1 from (start, pixel, added), with checks of the events."""
    start, pixel, added = events
    now = np.zeros(shape, bool).ravel()
    maps = []
    for a, b in pairwise(start):
        where, on = pixel[a:b].astype(np.int64), added[a:b]
        if not np.array_equal(now[where], ~on):
            raise ValueError("an event that changes nothing")
        if np.unique(where).size != where.size:
            raise ValueError("two events of a pixel in a step")
        now[where] = on
        maps.append(now.reshape(shape).copy())
    return np.array(maps[::-1], bool).reshape(len(start) - 1, *shape)
