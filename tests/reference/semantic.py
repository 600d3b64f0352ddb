"""Per-class boundaries by their plain definition: pixel loops, each threshold apart."""

import math

import numpy as np

from tests.reference import matching, thinning


def disk_boundary(mask, valid, radius):
    """On where a pixel of the other side lies within the radius; ignored pixels are on no side."""
    out = np.zeros(mask.shape, bool)
    rows, cols = mask.shape
    for y in range(rows):
        for x in range(cols):
            for v in range(max(y - radius, 0), min(y + radius + 1, rows)):
                for u in range(max(x - radius, 0), min(x + radius + 1, cols)):
                    near = math.hypot(v - y, u - x) <= radius
                    if near and valid[y, x] and valid[v, u] and mask[y, x] != mask[v, u]:
                        out[y, x] = True
    return out


def far_inside(mask, boundary, max_dist_px):
    """Pixels of the mask with no boundary pixel within the distance."""
    at = np.argwhere(boundary)
    out = np.zeros(mask.shape, bool)
    for y, x in np.argwhere(mask):
        out[y, x] = len(at) > 0 and np.hypot(*(at - (y, x)).T).min() > max_dist_px
    return out


def counts(pred, gt, mask, thresholds, max_dist, thin=True, interior="kill"):
    """matched_gt, total_gt, matched_pred, total_pred at each threshold; pred uint8, gt bool."""
    radius = max_dist * math.hypot(*gt.shape)
    killed = far_inside(mask, gt, radius)
    rows = []
    for t in thresholds:
        on = pred / 255 >= t
        if interior == "kill_first":
            on &= ~killed
        if thin:
            on = thinning.thin(on)
        if interior == "kill":
            on &= ~killed
        pairs = matching.cardinality(on, gt, radius)
        rows.append((pairs, int(gt.sum()), pairs, int(on.sum())))
    return np.array(rows)
