"""Region measures by their plain definitions: dense tables, loops, each threshold apart.

Slow. Only numpy, and scikit-image for the connected components of a contour map.
"""

import numpy as np
from skimage.measure import label


def official_regions(ucm2, threshold):
    """8-connected components of ucm2 <= t, read at the pixel positions."""
    return label(ucm2 <= threshold, connectivity=2)[1::2, 1::2]


def seism_regions(ucm2, threshold):
    """4-connected pixels, joined where the contour element between them is not above t."""
    grid = np.zeros(ucm2.shape, bool)
    grid[1::2, 1::2] = True
    grid[1::2, 2:-1:2] = ucm2[1::2, 2:-1:2] <= threshold
    grid[2:-1:2, 1::2] = ucm2[2:-1:2, 1::2] <= threshold
    return label(grid, connectivity=1)[1::2, 1::2]


def table(seg, gt):
    """n(i,j) as a dense array."""
    i = np.unique(seg, return_inverse=True)[1].ravel()
    j = np.unique(gt, return_inverse=True)[1].ravel()
    n = np.zeros((i.max() + 1, j.max() + 1), np.int64)
    np.add.at(n, (i, j), 1)
    return n


def overlap(seg, gt):
    """Intersection over union of every two regions."""
    n = table(seg, gt)
    return n / (n.sum(1)[:, None] + n.sum(0)[None] - n)


def covered_gt(seg, gts):
    return sum(float((overlap(seg, g).max(0) * table(seg, g).sum(0)).sum()) for g in gts)


def covered_pred(seg, gts):
    best = np.max([overlap(seg, g).max(1) for g in gts], axis=0)
    return float((best * table(seg, seg).sum(1)).sum())


def best_covered_gt(segs, gts):
    total = 0.0
    for g in gts:
        best = np.max([overlap(s, g).max(0) for s in segs], axis=0)
        total += float((best * table(g, g).sum(0)).sum())
    return total


def pair_counts(seg, gt):
    """Unordered pairs of pixels: together in both, in seg only, in gt only, in neither."""
    s, g = seg.ravel(), gt.ravel()
    upper = np.triu(np.ones((s.size, s.size), bool), 1)
    in_s, in_g = (s[:, None] == s)[upper], (g[:, None] == g)[upper]
    return (
        int((in_s & in_g).sum()),
        int((in_s & ~in_g).sum()),
        int((~in_s & in_g).sum()),
        int((~in_s & ~in_g).sum()),
    )


def entropy(p):
    p = p[p > 0]
    return float(-(p * np.log2(p)).sum())


def voi(seg, gt):
    p = table(seg, gt) / seg.size
    h1, h2, joint = entropy(p.sum(1)), entropy(p.sum(0)), entropy(p)
    return h1 + h2 - 2 * (h1 + h2 - joint)


def rand_index(seg, gt):
    """From the table, for images too large for all pairs."""
    n = table(seg, gt)
    pairs = seg.size * (seg.size - 1) / 2
    same = (n * (n - 1) / 2).sum()
    s, g = ((m * (m - 1) / 2).sum() for m in (n.sum(1), n.sum(0)))
    return (pairs - s - g + 2 * same) / pairs


def hamming(seg, gt):
    n = table(seg, gt)
    return seg.size - int(n.max(0).sum()), seg.size - int(n.max(1).sum())


def normalised_voi(seg, gt):
    """1 - VOI / (2 log2 of the larger number of regions); 1 where both are one region."""
    most = max(np.unique(seg).size, np.unique(gt).size)
    return 1.0 if most == 1 else 1 - voi(seg, gt) / (2 * np.log2(most))


def consistency_errors(seg, gt):
    """BCE, GCE, LCE, pixel by pixel."""
    bce = lce = out_seg = out_gt = 0.0
    for s, g in zip(seg.ravel(), gt.ravel(), strict=True):
        in_s, in_g = seg == s, gt == g
        e1 = (in_s & ~in_g).sum() / in_s.sum()
        e2 = (in_g & ~in_s).sum() / in_g.sum()
        bce, lce = bce + max(e1, e2), lce + min(e1, e2)
        out_seg, out_gt = out_seg + e1, out_gt + e2
    return bce / seg.size, min(out_seg, out_gt) / seg.size, lce / seg.size


def _candidates(areas):
    """Largest first until the shares added reach 0.99; of equal areas the last given first."""
    chosen, share = set(), 0.0
    for i in sorted(range(len(areas)), key=lambda i: (-areas[i], -i)):
        if share < 0.99:
            chosen.add(i)
        share += areas[i] / sum(areas)
    return chosen


def _raster(labels):
    """Labels in the order in which they are first met."""
    seen = {}
    for v in labels.ravel().tolist():
        seen.setdefault(v, len(seen))
    return np.array([seen[v] for v in labels.ravel().tolist()]).reshape(labels.shape)


def fop(seg, gts):
    """Objects and parts: precision numerator, candidates, recall numerator, candidates."""
    seg, gts = _raster(seg), [_raster(g) for g in gts]
    seg_areas = np.bincount(seg.ravel()).tolist()
    seg_chosen = _candidates(seg_areas)
    kind, under = {}, [0.0] * len(seg_areas)
    gt_sum, gt_chosen_count = 0.0, 0
    for gt in gts:
        areas = np.bincount(gt.ravel()).tolist()
        chosen = _candidates(areas)
        gt_kind, over = {}, [0.0] * len(areas)
        for i, a in enumerate(seg_areas):
            for j, b in enumerate(areas):
                n = int(((seg == i) & (gt == j)).sum())
                r, p = n / b, n / a
                if i in seg_chosen and j in chosen:
                    if r >= 0.9 and p >= 0.9:
                        kind[i] = gt_kind[j] = 1.0
                    elif r >= 0.25 and p >= 0.9:
                        kind.setdefault(i, 0.1)
                    elif r >= 0.9 and p >= 0.25:
                        gt_kind.setdefault(j, 0.1)
                if p >= 0.9 and r < 0.9:
                    over[j] += r
                elif r >= 0.9 and p < 0.9:
                    under[i] += p
        gt_sum += sum(gt_kind.get(j, over[j]) for j in chosen)
        gt_chosen_count += len(chosen)
    pred_sum = sum(kind.get(i, under[i] / len(gts)) for i in seg_chosen)
    return pred_sum, len(seg_chosen), gt_sum, gt_chosen_count


def sums(segs, gts):
    """Field of the counts -> its values, for each segmentation."""
    parts = [fop(s, gts) for s in segs]
    errors = [[consistency_errors(s, g) for g in gts] for s in segs]
    return {
        "covered_gt": [covered_gt(s, gts) for s in segs],
        "covered_pred": [covered_pred(s, gts) for s in segs],
        "best_covered_gt": best_covered_gt(segs, gts),
        "total_gt": [gts[0].size * len(gts)] * len(segs),
        "total_pred": [gts[0].size] * len(segs),
        "n_pixels": gts[0].size,
        "pri": [np.mean([rand_index(s, g) for g in gts]) for s in segs],
        "voi": [np.mean([voi(s, g) for g in gts]) for s in segs],
        "nvoi": [np.mean([normalised_voi(s, g) for g in gts]) for s in segs],
        "hamming_gt": [sum(hamming(s, g)[0] for g in gts) for s in segs],
        "hamming_pred": [sum(hamming(s, g)[1] for g in gts) for s in segs],
        "bce": np.mean(errors, axis=1)[:, 0],
        "gce": np.mean(errors, axis=1)[:, 1],
        "lce": np.mean(errors, axis=1)[:, 2],
        "fop_pred": [f[0] for f in parts],
        "fop_pred_candidates": [f[1] for f in parts],
        "fop_gt": [f[2] for f in parts],
        "fop_gt_candidates": [f[3] for f in parts],
    }
