"""Classification of missed and false pixels at every threshold, by why they stay unmatched.

A step is the change of the predicted map from one threshold to the next; the result "at step k" is
that for the threshold reached. Matched predicted pixels lie within the tolerance r of an annotated
pixel. So the false pixels of each class follow from the numbers of predicted pixels within r and
within 2r of the annotations, minus the matched ones. For missed pixels, two sets of steps are
recorded as bits for each ground-truth pixel: the steps at which it is matched, and the steps at
which an unmatched predicted pixel lies within 2r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool, Events
from bsdsbench.kernels.bits import count_set_bits, unpack
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching import matching
from bsdsbench.kernels.matching.graph import bits_within_reach, half_widths
from bsdsbench.kernels.matching.matching import Truth

# The agreement on a ground-truth pixel, see `agreement_of`
NO_CLASS, ALONE, SOME, ALL = range(-1, 3)


class Surroundings(NamedTuple):
    """The pixels within twice the tolerance of annotated pixels."""

    half: I4  # (2 R + 1,): half widths of the rows of the disk of radius 2r, see `graph.Disk`
    near: U8  # (H, words): bits of the pixels within 2r of an annotated pixel


class StepErrors(NamedTuple):
    """Numbers of pixels at each of n thresholds, in the order of the events, int64."""

    matched_gt: I8  # (n,): matched pixels of the ground truth, summed over annotators
    matched_pred: I8  # (n,): predicted pixels that are matched with at least one annotator
    # (n, 3), missed pixels: (0) matched at the last threshold, else (1) with a false pixel within
    # 2r, else (2) neither
    missed: I8
    # (n, 3), false pixels by distance d to the nearest annotated pixel: d <= r, r < d <= 2r, d > 2r
    false: I8
    agreement_matched: I8  # (n, 3): matched ground-truth pixels that are ALONE, SOME, ALL


class PixelSteps(NamedTuple):
    """The steps (thresholds) at which each pixel is matched or not, as bits in uint64 words.

    Bits are in the order in which the steps were matched, see `backwards`. K is the number of
    predicted pixels within the tolerance of the ground truth. A ground-truth vertex is "reached" if
    it is matched at the last step of the events.
    """

    row_of: I4  # (H, W): the row in `false` of each pixel that is ever on, else -1
    false: U8  # (rows, words): the steps at which a predicted pixel is on and unmatched
    matched: U8  # (K, words): the steps at which a predicted pixel is matched
    matched_pixel: U8  # (K,): the flat indices of these pixels
    gt_matched: U8  # (ground-truth vertices, words): the steps at which a vertex is matched
    # (ground-truth vertices, words): the steps at which a vertex is unmatched and has a false pixel
    # within 2r; 0 for reached vertices
    near_false: U8
    is_reached: Bool  # (ground-truth vertices,): matched after the last step
    matched_gt: I8  # (n,): numbers of matched ground-truth vertices, in the order of the bits
    # (2, n): numbers of predicted pixels within r and 2r of the ground truth, in events' order
    n_on: I8
    backwards: bool  # True if the bits are in the reverse order of the events


def prepare_surroundings(truth: Truth, max_dist_px: float) -> Surroundings:
    """Find the pixels within twice the tolerance of any annotated pixel.

    truth: the annotators' maps, from `prepare_truth`.
    max_dist_px: the tolerance (not doubled), in pixels.

    Returns these pixels as bits, and the half width of each row of the disk of twice the tolerance.
    Raises DataError if the radius of the disk, reduced to the image's diagonal, is above 1800 px.
    """
    half = half_widths(2 * max_dist_px, truth.shape)
    return Surroundings(half, bits_within_reach(truth.drawn, half))


def agreement_of(truth: Truth) -> I8:
    """Classify each annotated pixel by how many other annotators agree with it.

    Another annotator agrees with a pixel if a pixel of that annotator's map is matched with it. The
    class is ALONE if no other annotator agrees, ALL if every other one does, and SOME otherwise.
    With a single annotator it is NO_CLASS.

    Returns an int64 array (vertices,). The vertices are the pixels of all annotators.
    """
    n_others = len(truth.vertices.tiles) - 1
    if n_others == 0:
        return np.full(truth.vertices.pixel.size, NO_CLASS)
    n_matched = matching.count_partners(truth)
    agreement = np.full(truth.vertices.pixel.size, SOME)
    agreement[n_matched == n_others] = ALL
    agreement[n_matched == 0] = ALONE
    return agreement


def match_by_pixel(events: Events, truth: Truth, surroundings: Surroundings) -> PixelSteps:
    """Match predicted to annotated pixels at every threshold, and record the steps of each pixel.

    A pixel can be matched, unmatched, or unmatched near a false pixel: see `PixelSteps`.

    events: the pixels that enter or leave the predicted map from one threshold to the next. Pixels
        farther than twice the tolerance from the ground truth may be missing.
    truth: the annotators' maps, from `prepare_truth`.
    surroundings: the pixels within twice the tolerance of these, from `prepare_surroundings`.
    """
    n_steps = events.start.size - 1
    backwards = matching.should_start_at_lowest_threshold(events.added, truth)
    steps = matching.steps_within_reach(events, truth, gt_enters=backwards)
    gt_bits = np.zeros((truth.vertices.pixel.size, (n_steps + 63) // 64), np.uint64)
    matched_gt = np.zeros(n_steps, np.int64)
    annotators = np.arange(len(truth.vertices.tiles))
    pred = matching.match_all(steps, truth, annotators, matched_gt, gt_bits)

    row_of = np.full(truth.shape, -1, np.int32)
    false_bits = np.zeros((np.count_nonzero(events.added), gt_bits.shape[1]), np.uint64)
    n_on = np.zeros((2, n_steps), np.int64)
    near = unpack(np.concatenate([truth.near, surroundings.near]), truth.shape[1])
    _record_active_steps(events, near.reshape(2, -1), backwards, row_of.ravel(), false_bits, n_on)
    last = 0 if backwards else n_steps - 1
    near_bits = np.zeros_like(gt_bits)
    _record_near_steps(
        truth.vertices.pixel, gt_bits, last, pred, row_of, false_bits, surroundings.half, near_bits
    )
    bit_of_last = gt_bits[:, last >> 6] >> np.uint64(last & 63) & np.uint64(1)
    return PixelSteps(
        row_of=row_of,
        false=false_bits,
        matched=pred.bits,
        matched_pixel=pred.pixel,
        gt_matched=gt_bits,
        near_false=near_bits,
        is_reached=bit_of_last == 1,
        matched_gt=matched_gt,
        n_on=n_on,
        backwards=backwards,
    )


def classify_steps(
    events: Events, size: I8, truth: Truth, surroundings: Surroundings, agreement: I8
) -> StepErrors:
    """Count the matched, missed and false pixels of each class at each of n thresholds.

    The classes are described in `StepErrors`: missed pixels by why they are missed, false pixels by
    their distance from the ground truth.

    events: the changes of the predicted map. Changes of pixels farther than twice the tolerance
        from the ground truth may be missing.
    size (n,): number of pixels of the whole predicted map at each threshold.
    truth, surroundings: the annotators' maps and the pixels within twice the tolerance of these,
        from `prepare_truth` and `prepare_surroundings`.
    agreement (ground-truth vertices,): for each annotated pixel, whether no other annotator
        (ALONE), some (SOME) or all (ALL) have a pixel matched with it, from `agreement_of`; or
        NO_CLASS.
    """
    steps = match_by_pixel(events, truth, surroundings)
    n_steps = size.size
    # Kind of each annotated pixel: 4 if it is matched at the lowest threshold, plus the agreement
    # from 0 (NO_CLASS) to 3 (ALL)
    kind = 4 * steps.is_reached + (agreement - NO_CLASS)
    matched_pred = count_set_bits(steps.matched)[0, :n_steps]
    near_false = count_set_bits(steps.near_false)[0, :n_steps]
    # Numbers of matched annotated pixels, (2, 4, n): unmatched or matched at the lowest threshold,
    # agreement, step
    by_kind = count_set_bits(steps.gt_matched, kind, 8)[:, :n_steps].reshape(2, 4, n_steps)
    matched_gt = steps.matched_gt
    if steps.backwards:
        matched_gt, matched_pred = matched_gt[::-1], matched_pred[::-1]
        near_false, by_kind = near_false[::-1], by_kind[..., ::-1]
    # Missed, but matched at the lowest threshold
    suppressed = np.count_nonzero(steps.is_reached) - by_kind[1].sum(0)
    absent = truth.vertices.pixel.size - matched_gt - suppressed - near_false
    within_r, within_2r = steps.n_on
    return StepErrors(
        matched_gt=matched_gt,
        matched_pred=matched_pred,
        missed=np.column_stack([suppressed, near_false, absent]),
        false=np.column_stack([within_r - matched_pred, within_2r - within_r, size - within_2r]),
        agreement_matched=by_kind.sum(0)[1:].T,
    )


@kernel(_nrt=False)
def _record_active_steps(events, near, backwards, row_of, bits, n_on):
    """Record the steps at which each pixel is on, and count the pixels that are on in two regions.

    events: the pixels that enter or leave the predicted map at each of n steps (thresholds).
    near bool (2, H * W): the two regions, the pixels within r and within 2r of the ground truth.
    backwards: if True, step s is bit n - 1 - s of `bits`, otherwise bit s.
    row_of int32 (H * W,): -1 on entry; receives the row of `bits` for each pixel that ever changes.
    bits uint64 (rows, words): 0 on entry; receives the steps after which a pixel is on. Each change
        flips the bits of its step and of all later ones.
    n_on int64 (2, n): 0 on entry; receives the number of pixels that are on in each region after
        each step, in the order of the events.
    """
    start, pixel, added = events
    n_steps, all_bits = start.size - 1, ~np.uint64(0)
    n_rows = 0
    for step in range(n_steps):
        first = n_steps - step if backwards else step
        for k in range(2 if step else 0):
            n_on[k, step] = n_on[k, step - 1]
        for event in range(start[step], start[step + 1]):
            p = pixel[event]
            for k in range(2):
                if near[k, p]:
                    n_on[k, step] += 1 if added[event] else -1
            if row_of[p] < 0:
                row_of[p] = n_rows
                n_rows += 1
            i = row_of[p]
            # Flip the bits from `first` on, or below it if backwards
            for word in range(bits.shape[1]):
                low = min(max(first - (word << 6), 0), 64)
                from_first = all_bits << np.uint64(low) if low < 64 else np.uint64(0)
                bits[i, word] ^= ~from_first if backwards else from_first


@kernel(_nrt=False)
def _record_near_steps(gt_pixel, gt_bits, last, pred, row_of, bits, half, near_bits):
    """Record the steps at which a missed pixel has a false pixel in the disk around it.

    A missed pixel is an unmatched ground-truth pixel. A false pixel is a predicted pixel that is
    on, and matched with no annotator. Step s is bit s & 63 of word s >> 6.

    gt_pixel uint64 (vertices,): flat indices of the ground-truth vertices.
    gt_bits uint64 (vertices, words): the steps at which each vertex is matched.
    last: index of the step with the lowest threshold. Vertices matched at it are skipped.
    pred: the predicted vertices: vertex i is the pixel with the flat index pred.pixel[i], and
        pred.bits[i] has the steps at which it is matched.
    row_of int32 (H, W): the row of each pixel in `bits`, or -1 if the pixel is never on.
    bits uint64 (rows, words): the steps at which a predicted pixel is on. Those at which it is
        matched are removed in place, which leaves the steps at which it is false.
    half int32 (2 R + 1,): half the width of each row of the disk.
    near_bits uint64 (vertices, words): 0 on entry; receives the steps.
    """
    rows, cols = row_of.shape
    reach, words = half.size // 2, bits.shape[1]
    for i in range(pred.pixel.size):  # leave the steps at which the pixel is false
        row, col = divmod(np.int64(pred.pixel[i]), cols)
        for word in range(words):
            bits[row_of[row, col], word] ^= pred.bits[i, word]
    for i in range(gt_pixel.size):
        if gt_bits[i, last >> 6] >> np.uint64(last & 63) & np.uint64(1):
            continue
        row, col = divmod(np.int64(gt_pixel[i]), cols)
        for y in range(max(row - reach, 0), min(row + reach + 1, rows)):
            width = half[y - row + reach]
            for x in range(max(col - width, 0), min(col + width + 1, cols)):
                j = row_of[y, x]
                if j >= 0:
                    for word in range(words):
                        near_bits[i, word] |= bits[j, word]
        for word in range(words):
            near_bits[i, word] &= ~gt_bits[i, word]
