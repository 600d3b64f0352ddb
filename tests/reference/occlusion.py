"""Occlusion boundaries by plain definition: a threshold at a time, pairs by scipy's solver."""

import numpy as np

from tests.reference import matching, thinning


def counts(soft, angles, truths, cuts, radius, thin=False):
    """Seven columns: thresh cntR sumR cntP sumP cntR_occ cntP_occ; truths (edges, angles)."""
    rows = []
    for cut in cuts:
        bmap = thinning.thin(soft >= cut) if thin else soft >= cut
        hit, right, n, right_gt, total = set(), set(), 0, 0, 0
        for annotator, (edge, angle) in enumerate(truths):
            total += edge.sum()
            for at, gt_at in matching.optimum(bmap, edge, radius, annotator)[1]:
                n += 1
                hit.add(at)
                turn = abs(float(angles.flat[at]) - float(angle.flat[gt_at])) % (2 * np.pi)
                if turn <= np.pi / 2 or turn >= 3 * np.pi / 2:
                    right_gt += 1
                    right.add(at)
        rows.append((cut, n, total, len(hit), bmap.sum(), right_gt, len(right)))
    return np.array(rows, float)
