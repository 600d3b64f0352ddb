"""Occlusion edges of depth maps: neighbours whose inverse depths differ by more than a ratio."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import Bools, Floats, Ints
from bsdsbench.kernels.jit import inner, kernel

_NEARLY_ONE = 1 - 1e-12  # so that a rounding error of a product does not decide


@inner
def _count_exceeded(depth, other_depth, ratios):
    """Count the ratios (R,), ascending and >= 1, that larger / smaller depth exceeds.

    Both are inverse depths >= 0. Returns 0 if they are equal or one is NaN, R if only one is 0.
    """
    large, small = max(depth, other_depth), min(depth, other_depth)
    # Most pairs exceed no ratio, or have a NaN; a division takes longer
    if not large > small * ratios[0] * _NEARLY_ONE:
        return 0
    if small == 0.0:
        return ratios.size
    ratio, n_exceeded = large / small, 0
    while n_exceeded < ratios.size and ratio > ratios[n_exceeded]:
        n_exceeded += 1
    return n_exceeded


def ratio_pairs(pred: Floats, gt: Floats, valid: Bools, ratios: Floats) -> Ints:
    """Count the pairs of neighbouring pixels whose inverse depths differ by more than each ratio.

    pred, gt (H, W): inverse depths. valid (H, W): both pixels must be True. ratios (R,): ascending.

    Returns counts (R, 4, 3). Axis 0 is the ratio, and axis 1 the position of the nearer pixel in
    the pair (left, top, right, bottom). Axis 2 has the pairs that exceed the ratio (0) in both maps
    with the same pixel nearer, (1) in pred, and (2) in gt.
    """
    count = np.zeros((ratios.size, 4, 3), np.int64)
    _count_pairs(pred, gt, valid, ratios, count)
    # From pairs that exceed exactly k ratios to those that exceed k or more
    return np.cumsum(count[::-1], axis=0)[::-1]


@kernel(_nrt=False)
def _count_pairs(pred, gt, valid, ratios, count):
    """Count the pairs of neighbouring pixels by how many ratios their inverse depths exceed.

    They give the precision and the recall of occlusion edges, the pairs that exceed a ratio.

    pred, gt float64 (H, W): inverse depths. The nearer pixel of a pair has the larger one.
    valid bool (H, W): both pixels of a pair must be True.
    ratios float64 (R,): ascending, >= 1.
    count int64 (R, 4, 3): 0 on entry; receives the numbers of pairs. Axis 0 is the number of ratios
        exceeded minus 1 (pairs that exceed none are not counted), axis 1 the position of the nearer
        pixel in the pair (left, top, right, bottom), and axis 2 (0) both maps, (1) pred or (2) gt.
        If the same pixel is nearer in both maps, the pair is also counted in [..., 0], at the
        smaller of its two numbers of ratios: both maps exceed only these.
    """
    height, width = pred.shape
    for y in range(height):
        for x in range(width):
            if not valid[y, x]:
                continue
            for vertical in range(2):  # the right neighbour, then the lower one
                other_y, other_x = y + vertical, x + 1 - vertical
                if other_y >= height or other_x >= width or not valid[other_y, other_x]:
                    continue
                n_pred = _count_exceeded(pred[y, x], pred[other_y, other_x], ratios)
                n_gt = _count_exceeded(gt[y, x], gt[other_y, other_x], ratios)
                if n_pred == 0 and n_gt == 0:
                    continue
                # The position of the nearer pixel: 0 left, 1 top, 2 right, 3 bottom
                pred_side = vertical if pred[y, x] > pred[other_y, other_x] else vertical + 2
                gt_side = vertical if gt[y, x] > gt[other_y, other_x] else vertical + 2
                if n_pred > 0:
                    count[n_pred - 1, pred_side, 1] += 1
                if n_gt > 0:
                    count[n_gt - 1, gt_side, 2] += 1
                if pred_side == gt_side and min(n_pred, n_gt) > 0:
                    count[min(n_pred, n_gt) - 1, pred_side, 0] += 1


def count_hit_mask_edges(pred: Floats, mask: Bools, ratios: Floats) -> Ints:
    """Count the edges of a mask, and those that coincide with a depth edge of a prediction.

    A mask edge is a pair of neighbours, one inside the mask and one outside. A depth edge is a pair
    whose inverse depths differ by more than a ratio. In a run of adjacent depth edges along a row
    or column, only the strongest counts. A depth edge hits a mask edge if they are the same pair
    and the nearer pixel is inside the mask.

    pred (H, W): inverse depths, larger for nearer pixels. mask (H, W): True inside. ratios (R,):
    ascending, >= 1.

    Returns counts (R, 4, 2). Axis 0 is the ratio, and axis 1 the position of the inside pixel in
    the pair (left, top, right, bottom). Axis 2 has the mask edges that are hit, and all mask edges.
    """
    count = np.zeros((ratios.size, 4, 2), np.int64)  # added to by the kernel
    for vertical in range(2):  # horizontal pairs, then vertical ones as those of the transposed map
        inverse_depth, inside = (pred.T, mask.T) if vertical else (pred, mask)
        # Both copies are C-contiguous, so one kernel is compiled
        inverse_depth, inside = inverse_depth.copy(order="C"), inside.copy(order="C")
        quotients = np.empty(inverse_depth.shape[1])  # work space, for the pairs of one row
        # Adds the edges between horizontal neighbours, or transposed vertical ones, to `count`
        _count_along_rows(inverse_depth, inside, ratios, quotients, count, vertical)
    return count


@kernel(_nrt=False)
def _count_along_rows(pred, mask, ratios, quotients, count, vertical):
    """Count the mask edges along each row, and those that coincide with a depth edge, in `count`.

    First the left pixel of each pair of horizontal neighbours is taken as inside, then the right
    one. The pair is a mask edge if the mask is True inside and False outside. It is a depth edge,
    for each of the `ratios` separately, if its quotient, inverse depth inside / inverse depth
    outside, exceeds the ratio. Of adjacent depth edges only the pair with the largest quotient is
    kept (the first of equal ones). A mask edge is hit if its pair is kept.

    pred float64 (H, W): inverse depths. mask bool (H, W). ratios float64 (R,).
    quotients float64 (W,): work space for the quotients of one row.
    count int64 (R, 4, 2): added to in place. Axis 0 is the ratio, axis 1 the position of the pixel
        inside (left, top, right, bottom), and axis 2 the mask edges that are hit, and all of them.
    vertical: 1 if the maps are transposed, so that their rows are columns of the image, else 0.
    """
    height, width = pred.shape
    for y in range(height):
        for inside_right in range(2):  # 1 if the right pixel of each pair is taken as inside
            side = vertical + 2 * inside_right  # 0 left, 1 top, 2 right, 3 bottom
            for x in range(width - 1):  # the pair x, x + 1
                inside, outside = pred[y, x + inside_right], pred[y, x + 1 - inside_right]
                if outside != 0.0:
                    quotients[x] = inside / outside
                elif inside > 0.0:
                    quotients[x] = np.inf
                else:
                    quotients[x] = np.nan  # exceeds no ratio
                if mask[y, x + inside_right] and not mask[y, x + 1 - inside_right]:
                    for ratio_index in range(ratios.size):
                        count[ratio_index, side, 1] += 1
            for ratio_index in range(ratios.size):
                best = -1  # the pair with the largest quotient in the current run; -1 outside runs
                for x in range(width):  # the last x has no pair, and ends a run
                    if x < width - 1 and quotients[x] > ratios[ratio_index]:
                        if best < 0 or quotients[x] > quotients[best]:
                            best = x
                    elif best >= 0:
                        if mask[y, best + inside_right] and not mask[y, best + 1 - inside_right]:
                            count[ratio_index, side, 0] += 1
                        best = -1
