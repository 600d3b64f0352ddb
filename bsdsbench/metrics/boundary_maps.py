"""Boundary maps (H, W) ready to be matched: annotators', cleaned, or the whole image at 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth
from bsdsbench.loaders.map_checks import annotated_maps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts


def truth_maps(gts: Sequence[NDArray[Any]] | GroundTruth, protocol: Protocol) -> NDArray[np.bool_]:
    """Every annotator's boundaries, bool (A, H, W), thinned where the protocol says so.

    Raises as `annotated_maps`.
    """
    from bsdsbench.kernels.thinning import thin_each

    maps = annotated_maps(gts)
    return thin_each(maps) if protocol.gt_thin else maps


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


FourCounts = tuple[int, int, int, int]


def whole_image_counts(gt_maps: NDArray[np.bool_]) -> FourCounts:
    """matched_gt, total_gt, matched_pred and total_pred of an image that is boundary everywhere.

    gt_maps : bool (A, H, W). No pixels give zeros.
    """
    annotated = int(np.count_nonzero(gt_maps))
    drawn = int(np.count_nonzero(gt_maps.any(axis=0)))
    return annotated, annotated, drawn, int(gt_maps[0].size)


def with_whole_image(counts: BoundaryCounts, gt_maps: NDArray[np.bool_]) -> BoundaryCounts:
    """The counts with the row of threshold 0 before the others."""
    four = (counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred)
    rows = (
        np.r_[first, rest] for first, rest in zip(whole_image_counts(gt_maps), four, strict=True)
    )
    return BoundaryCounts(np.r_[0.0, counts.thresholds], *rows)
