"""The official tables by plain definitions: scipy's matching, loops over images and thresholds."""

from itertools import pairwise

import numpy as np

from tests.reference import matching, regions, thinning
from tests.reference.scores import between, f_of, of_sums, shares

MAX_DIST = 0.0075  # of the diagonal


def boundary_counts(bmaps, truths):
    """cntR sumR cntP sumP of thinned maps, a row each."""
    rows, radius = [], MAX_DIST * np.hypot(*truths[0].shape)
    for bmap in map(thinning.thin, bmaps):
        pairs = [matching.optimum(bmap, gt, radius, k)[1] for k, gt in enumerate(truths)]
        hit = {at for found in pairs for at, _ in found}
        total = sum(int(gt.sum()) for gt in truths)
        rows.append((sum(map(len, pairs)), total, len(hit), int(bmap.sum())))
    return np.array(rows)


def best_between(thresholds, rows):
    """T R P F of the first best F on the lines between neighbouring points, 100 steps each."""
    points = [(t, *shares(row)[::-1]) for t, row in zip(thresholds, rows, strict=True)]
    best = (0.0, 0.0, 0.0, -1.0)
    for a, b in pairwise(points):
        for d in np.linspace(0, 1, 100):
            t, r, p = (y * d + x * (1 - d) for x, y in zip(a, b, strict=True))
            if f_of(p, r) > best[3]:
                best = (t, r, p, f_of(p, r))
    return best


def boundary_tables(thresholds, images):
    """images : the counts of each, in the order of their ids."""
    total = np.sum(images, axis=0)
    own = [image[np.argmax([f_of(*shares(row)) for row in image])] for image in images]
    p_max, r_max = shares(np.sum(own, axis=0))
    curve = [shares(row) for row in total]
    line = sorted({r: p for p, r in curve[::-1]}.items())
    area = sum(between(line, k / 100) for k in range(101)) / 100
    each = [(k, *best_between(thresholds, image)) for k, image in enumerate(images, 1)]
    table = [(t, r, p, f_of(p, r)) for t, (p, r) in zip(thresholds, curve, strict=True)]
    best = (*best_between(thresholds, total), r_max, p_max, f_of(p_max, r_max), area)
    return {"eval_bdry.txt": [best], "eval_bdry_thr.txt": table, "eval_bdry_img.txt": each}


def region_tables(thresholds, images):
    """images : (segmentations, one per threshold; the annotators' region maps)."""
    area = [len(gts) * gts[0].size for _, gts in images]
    covered = [[regions.covered_gt(s, gts) for s in segs] for segs, gts in images]
    exact = [[of_sums(regions.covered_pred(s, gts), s.size) for s in segs] for segs, gts in images]
    best = sum(regions.best_covered_gt(segs, gts) for segs, gts in images) / sum(area)
    share = np.sum(covered, axis=0) / sum(area)
    own = [int(np.argmax(row)) for row in covered]  # the first of ties
    ois = sum(map(max, covered)) / sum(area)
    pri, voi = (
        np.array([[np.mean([f(s, g) for g in gts]) for s in segs] for segs, gts in images])
        for f in (regions.rand_index, regions.voi)
    )
    first, ri_at, voi_at = share.argmax(), pri.mean(0).argmax(), voi.mean(0).argmin()
    ri_voi = (
        *(thresholds[ri_at], pri.mean(0)[ri_at], pri.max(1).mean()),
        *(thresholds[voi_at], voi.mean(0)[voi_at], voi.min(1).mean()),
    )
    return {
        "eval_cover.txt": [(thresholds[first], share[first], ois, best)],
        "eval_cover_th.txt": list(zip(thresholds, share, strict=True)),
        "eval_cover_img.txt": [
            (i, thresholds[k], row[k] / size, p[k])
            for i, (k, row, size, p) in enumerate(zip(own, covered, area, exact, strict=True), 1)
        ],
        "eval_RI_VOI.txt": [ri_voi],
        "eval_RI_VOI_thr.txt": list(zip(thresholds, pri.mean(0), voi.mean(0), strict=True)),
    }
