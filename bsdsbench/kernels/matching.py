"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels so
that as little as possible is paid: round(100 d) for a pair at distance d, C for each pair short
(graph.py has the costs and the rule for ties). Among the optima one is singled out, so every count
is a function of the maps alone: neither the order of the thresholds nor anything before matters.

Maps at neighbouring thresholds differ little. Hence the matching of one threshold, with the duals
that prove it optimal, is turned into the next one's:

1. pixels that leave the map free their mates. Such a mate keeps its dual, which is no longer 0 as
   a free vertex' should be: in what follows it counts as matched to a dummy of its own;
2. pixels that enter take their place, one after another (search.py);
3. each mate freed in 1 and still free enters anew from its side, by the same search mirrored.

Adding and removing in any order is right, so maps need not nest (segmentations do not).

A pixel that is matched with several annotators counts once in `matched_pred`. Each predicted
pixel carries one bit a threshold; an annotator sets the bits of the range of thresholds in which
the pixel is matched, at its end.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bsdsbench.kernels.graph import ABSENT, Geometry, Side, geometry, side
from bsdsbench.kernels.search import Work, enter, work

I8 = NDArray[np.int64]


def match_steps(
    start: I8,
    pixel: NDArray[np.int32],
    added: NDArray[np.bool_],
    gts: NDArray[np.bool_],
    max_dist_px: float,
) -> tuple[I8, I8]:
    """Matched pixels after each of n steps: (ground truth summed over annotators, predicted).

    start, pixel, added : as `thinning.thinning_events` gives them
    gts : (A, H, W) bool
    Returns two i8 (n,). Raises DataError where the costs would not be exact (graph.geometry).
    """
    steps = start.size - 1
    on = np.zeros(gts[0].size, np.bool_)
    on[pixel] = True
    universe = np.flatnonzero(on).astype(np.int32)
    vertex = np.searchsorted(universe, pixel).astype(np.int32)
    bits = np.zeros((universe.size, (steps + 63) // 64), np.uint64)
    matched_gt = np.zeros(steps, np.int64)
    for annotator, gt in enumerate(gts):
        problem = _problem(universe, gt, max_dist_px, annotator)
        _run(start, vertex, added, *problem, bits, matched_gt)
    return matched_gt, _count_bits(bits, steps)


def match_maps(
    bmap: NDArray[np.bool_], gt: NDArray[np.bool_], max_dist_px: float, annotator: int = 0
) -> NDArray[np.int64]:
    """The pairs of one (H, W) bool map with one annotator's: i8 (2, K), flat indices pred, gt.

    The same pairs as `match_steps` counts for that annotator, in order of the predicted pixels.
    """
    universe = np.flatnonzero(bmap).astype(np.int32)
    start = np.array([0, universe.size], np.int64)
    vertex, added = np.arange(universe.size, dtype=np.int32), np.ones(universe.size, np.bool_)
    problem = _problem(universe, gt, max_dist_px, annotator)
    bits = np.zeros((universe.size, 1), np.uint64)
    _run(start, vertex, added, *problem, bits, np.zeros(1, np.int64))
    pred_side, gt_side = problem[:2]
    matched = pred_side.mate >= 0
    pairs = pred_side.pixel[matched], gt_side.pixel[pred_side.mate[matched]]
    return np.array(pairs, np.int64)


def _problem(
    universe: NDArray[np.int32], gt: NDArray[np.bool_], max_dist_px: float, annotator: int
) -> tuple[Side, Side, Geometry, Work]:
    """The sides of one annotator's problem, nothing matched yet, its costs, and working room."""
    gt_pixel = np.flatnonzero(gt).astype(np.int32)
    geo = geometry(gt.shape, max_dist_px, gt_pixel.size, annotator)
    reach = geo.half.size // 2
    pred_side = side(universe, gt.size, gt_pixel.size, reach, True)
    gt_side = side(gt_pixel, gt.size, universe.size, reach, False)
    return pred_side, gt_side, geo, work(max(universe.size, gt_pixel.size))


@njit(cache=True, nogil=True)
def _run(start, vertex, added, pred, gt, geo, work, bits, matched_gt):
    """One annotator: add its matched pixels to `matched_gt` (n,), set the bits of the predicted."""
    steps = start.size - 1
    since = np.empty(pred.pixel.size, np.int32)
    freed = np.empty(gt.pixel.size, np.int32)
    matched = 0
    for step in range(steps):
        n_freed = 0
        for event in range(start[step], start[step + 1]):
            i = vertex[event]
            if not added[event]:
                j = pred.mate[i]
                if j >= 0:
                    pred.mate[i] = -1
                    gt.mate[j] = -1
                    freed[n_freed] = j
                    n_freed += 1
                    matched -= 1
                    _set_bits(bits[i], since[i], step)
                pred.dual[i] = ABSENT
                continue
            ousted, reached = enter(i, pred, gt, geo, work)
            if ousted != i:
                since[i] = step
                if ousted >= 0:
                    _set_bits(bits[ousted], since[ousted], step)
                else:
                    matched += 1
        for k in range(n_freed):
            if gt.mate[freed[k]] < 0:
                _, reached = enter(freed[k], gt, pred, geo, work)
                if reached >= 0:
                    since[reached] = step
                    matched += 1
        matched_gt[step] += matched
    for i in range(pred.pixel.size):
        if pred.mate[i] >= 0:
            _set_bits(bits[i], since[i], steps)


@njit(cache=True, nogil=True)
def _set_bits(bits, begin, end):
    """Set the bits begin .. end-1 of a row of 64-bit words."""
    if begin == end:
        return
    for word in range(begin >> 6, (end + 63) >> 6):
        lo = max(begin - (word << 6), 0)
        hi = min(end - (word << 6), 64)
        ones = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (hi - lo))
        bits[word] |= ones << np.uint64(lo)


@njit(cache=True, nogil=True)
def _count_bits(bits, steps):
    """i8 (steps,): in how many rows each bit is set."""
    counts = np.zeros(steps, np.int64)
    for row in range(bits.shape[0]):
        for step in range(steps):
            counts[step] += np.int64(bits[row, step >> 6] >> np.uint64(step & 63) & np.uint64(1))
    return counts
