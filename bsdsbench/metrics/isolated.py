"""Pixels taken out of thinned maps: single ones, as bwmorph's "clean", or those of a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]


def clean(maps: Bool) -> Bool:
    """Maps (..., H, W) without the pixels that have none of the eight neighbours.

    All pixels are looked at in the map as it was. An empty map gives an empty map.

    Examples
    --------
    >>> clean(np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]], bool)).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    """
    padded = np.pad(maps, [(0, 0)] * (maps.ndim - 2) + [(1, 1), (1, 1)])
    rows, cols = maps.shape[-2:]
    near = np.zeros(maps.shape, bool)
    for dy in range(3):
        for dx in range(3):
            if (dy, dx) != (1, 1):
                near |= padded[..., dy : dy + rows, dx : dx + cols]
    return maps & near


def replayed(events: Any, shape: tuple[int, ...]) -> Bool:
    """The map at each threshold, (T, H, W), thresholds increasing, from thinning's events."""
    start, pixel, added = events
    n = start.size - 1
    maps = np.zeros((n, int(np.prod(shape))), bool)
    here = np.zeros(maps.shape[1], bool)
    for k in range(n):
        step = slice(start[k], start[k + 1])
        here[pixel[step]] = added[step]
        maps[n - 1 - k] = here
    return maps.reshape(n, *shape)


def without(events: Any, dropped: Bool) -> Any:
    """Thinning's events but for those of the pixels in `dropped`, (H, W)."""
    start, pixel, added = events
    kept = ~np.ravel(dropped)[pixel]
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[start], pixel[kept], added[kept]
