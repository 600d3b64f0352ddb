"""Classes of missed and false boundary pixels by plain definition, one map at a time."""

import numpy as np
from scipy.spatial import cKDTree

from tests.reference.matching import optimum


def distance_to(drawn):
    """(H, W): how far each pixel is from the nearest one that is drawn, infinite without any."""
    every = np.argwhere(np.ones(drawn.shape, bool))
    if not drawn.any():
        return np.full(drawn.shape, np.inf)
    return cKDTree(np.argwhere(drawn)).query(every)[0].reshape(drawn.shape)


def matched(bmap, gt, radius, annotator=0):
    """Which pixels of the two maps are matched, (2, H, W)."""
    sides = np.zeros((2, *bmap.shape), bool)
    for pair in optimum(bmap, gt, radius, annotator)[1]:
        for side, pixel in zip(sides, pair, strict=True):
            side.flat[pixel] = True
    return sides


def agreement(gts, radius):
    """(A, H, W): 0 alone, 1 some, 2 all; -1 where nothing is drawn or nobody else draws."""
    partners = np.zeros(gts.shape, int)
    for i in range(len(gts)):
        for j in range(i + 1, len(gts)):
            first, second = matched(gts[i], gts[j], radius)
            partners[i] += first
            partners[j] += second
    classes = np.where(partners == 0, 0, np.where(partners == len(gts) - 1, 2, 1))
    return np.where(gts & (len(gts) > 1), classes, -1)


def errors(bmaps, gts, radius):
    """The counts of maps (T, H, W), the lowest threshold first, against annotators (A, H, W)."""
    classes, to_drawn = agreement(gts, radius), distance_to(gts.any(axis=0))
    within, near = to_drawn <= radius, to_drawn <= 2 * radius
    rows, reached, before = [], None, None
    for bmap in bmaps:
        if before is not None and (bmap == before).all():
            rows.append(rows[-1])
            continue
        sides = np.array([matched(bmap, gt, radius, k) for k, gt in enumerate(gts)])
        hit, false = sides[:, 1], bmap & ~sides[:, 0].any(axis=0)
        reached, before = hit if reached is None else reached, bmap
        missed, close = gts & ~hit, distance_to(false) <= 2 * radius
        rows.append(
            [
                [missed & reached, missed & ~reached & close, missed & ~reached & ~close],
                [[false & within], [false & near & ~within], [false & ~near]],
                [hit & (classes == k) for k in range(3)],
            ]
        )
    names = ("missed", "false", "agreement_matched")
    found = {
        name: np.array([[np.sum(pixels) for pixels in row[k]] for row in rows])
        for k, name in enumerate(names)
    }
    return {**found, "agreement_pixels": [np.sum(classes == k) for k in range(3)]}
