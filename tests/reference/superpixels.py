"""Measures of superpixels against one annotator's regions, by loops over both."""

import numpy as np


def measures(seg, gt):
    leak, levin = 0, []
    for j in np.unique(gt):
        met = np.unique(seg[gt == j])
        for i in met:
            inside = ((seg == i) & (gt == j)).sum()
            leak += min(inside, (seg == i).sum() - inside)
        levin.append((np.isin(seg, met).sum() - (gt == j).sum()) / (gt == j).sum())
    best = [max(((seg == i) & (gt == j)).sum() for j in np.unique(gt)) for i in np.unique(seg)]
    return {"ue": leak / seg.size, "ue_levin": np.mean(levin), "asa": sum(best) / seg.size}
