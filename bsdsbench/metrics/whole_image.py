"""The row of threshold 0, where every pixel of the image is a prediction and nothing is thinned.

With every pixel on, each annotated pixel can take the prediction at its own place. That pairs all
of them at no distance: no matching has more pairs, and every other one with as many costs more. So
the optimum is known without a search: all ground-truth pixels are matched, and of the predictions
those that some annotator has drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.records import BoundaryCounts

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
