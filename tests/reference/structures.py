"""Plain definitions of topology, centre lines, objects and calibration, pixel by pixel."""

from itertools import permutations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from skimage.measure import label


def components(mask, neighbours):
    """The sets of pixels that hang together."""
    named, n = label(mask, connectivity=neighbours // 4, return_num=True)
    return [set(map(tuple, np.argwhere(named == k + 1).tolist())) for k in range(n)]


def betti(mask, connectivity):
    """Components and holes; outside the mask there is background."""
    both = (mask, connectivity), (~np.pad(mask, 1), 12 - connectivity)
    n, ground = (label(m, connectivity=k // 4, return_num=True)[1] for m, k in both)
    return n, ground - 1


def betti_errors(pred, gt, connectivity=8, patch=0, stride=0):
    """Mean absolute differences of b0, b1 and b0 - b1 over patches; None where no patch fits."""
    found, size = [], (patch, patch) if patch else gt.shape
    starts = [range(0, n - k + 1, stride or k) for n, k in zip(gt.shape, size, strict=True)]
    for r in starts[0]:
        for c in starts[1]:
            here = np.s_[r : r + size[0], c : c + size[1]]
            a, b = np.subtract(*(betti(m[here], connectivity) for m in (pred, gt)))
            found.append(np.abs([a, b, a - b]))
    return np.mean(found, axis=0) if found else None


def ccq(pred, gt, buffer, spacing=(1, 1)):
    """Completeness, correctness and quality of centre lines; NaN for 0 / 0."""
    far = []
    for mine, other in ((pred, gt), (gt, pred)):
        sites, others = (np.argwhere(m) * spacing for m in (mine, other))
        far.append([min(np.hypot(*(others - at).T), default=np.inf) for at in sites])
    right, found = (sum(d <= buffer for d in each) for each in far)
    n, of = map(len, far)
    return tuple(
        a / b if b else np.nan for a, b in ((found, of), (right, n), (right, n + of - found))
    )


def objects(labels):
    return [labels == k for k in np.unique(labels[labels > 0])]


def iou_table(pred, gt):
    return np.array([[(p & g).sum() / (p | g).sum() for p in objects(pred)] for g in objects(gt)])


def jaccard(pred, gt, pairs):
    """Summed intersections and unions of pairs (gt, pred); objects in no pair join the unions."""
    mine, true = objects(pred), objects(gt)
    inside = sum(int((true[i] & mine[j]).sum()) for i, j in pairs)
    joined = sum(int((true[i] | mine[j]).sum()) for i, j in pairs)
    joined += sum(int(g.sum()) for i, g in enumerate(true) if i not in {i for i, _ in pairs})
    joined += sum(int(p.sum()) for j, p in enumerate(mine) if j not in {j for _, j in pairs})
    return inside, joined


def aji(pred, gt):
    """Each annotated object with the predicted one of the largest IoU, which may serve twice."""
    if not objects(pred) or not objects(gt):
        return jaccard(pred, gt, [])
    table = iou_table(pred, gt)
    return jaccard(
        pred, gt, [(i, int(row.argmax())) for i, row in enumerate(table) if row.max() > 0]
    )


def pairings(pred, gt):
    """All one-to-one pairings with the largest sum of IoU, pairs without overlap left out."""
    a, b = len(objects(gt)), len(objects(pred))
    if not a or not b:
        return [()]
    table = iou_table(pred, gt)
    ways = [
        tuple(zip(range(a), j, strict=True)) if a <= b else tuple(zip(j, range(b), strict=True))
        for j in permutations(range(max(a, b)), min(a, b))
    ]
    sums = [sum(table[at] for at in way) for way in ways]
    best = [way for way, s in zip(ways, sums, strict=True) if s >= max(sums) - 1e-12]
    return [tuple(at for at in way if table[at] > 0) for way in best]


def sorted_ap(iou, n_pred, n_gt):
    """Through the points of TP / (TP + FP + FN) at each pair's IoU; level before the first."""
    iou, area, before = sorted(iou), 0.0, (0.0, None)
    for k, at in enumerate([*iou, 1.0]):
        tp = len(iou) - k
        ap = tp / (n_pred + n_gt - tp)
        area += (at - before[0]) * (ap + (ap if before[1] is None else before[1])) / 2
        before = at, ap
    return area if iou else 0.0


def overlaps(pred, gt):
    """Pixels in both and in either, of each annotated with each predicted object."""
    predicted, true = objects(pred), objects(gt)
    pairs = [[((p & g).sum(), (p | g).sum()) for p in predicted] for g in true]
    return np.reshape(pairs, (len(true), len(predicted), 2))


def found_objects(pixels, overlap, at):
    """Annotated objects found, all, predicted ones right, all; pixels : what `overlaps` returns."""
    both, either = np.moveaxis(pixels, -1, 0)
    near = both > 0 if overlap == "any" else both / either > at
    found, right = near.any(axis=1).sum(), near.any(axis=0).sum()
    if overlap == "one-to-one" and near.size:
        found = right = (maximum_bipartite_matching(csr_array(near)) >= 0).sum()
    return [[found, near.shape[0]], [right, near.shape[1]]]


def calibration(p, annotators, bins=15, closed="left"):
    """Pixels, marked pixels and the sum of p of each bin; several annotators one by one."""
    out = np.zeros((bins, 3))
    ends = [k * (1 / bins) for k in range(1, bins)]
    for mask in annotators:
        for value, on in zip(p.ravel().tolist(), mask.ravel().tolist(), strict=True):
            k = sum(value >= e if closed == "left" else value > e for e in ends)
            out[k] += 1, on, value
    return out.T


def calibration_errors(pixels, marked, value):
    """ECE, ACE and MCE."""
    gap = [abs(v - m) / n for n, m, v in zip(pixels, marked, value, strict=True) if n]
    return sum(abs(value - marked)) / sum(pixels), np.mean(gap), max(gap)
