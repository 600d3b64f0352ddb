"""Classification of missed and false pixels at every threshold, by why they stay unmatched."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import Bools, Int32s, Ints, MapChanges, Uint64s
from bsdsbench.kernels.bits import count_set_bits, unpack
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching import matching
from bsdsbench.kernels.matching.graph import bits_before, bits_within_reach, half_widths
from bsdsbench.kernels.matching.matching import Truth

# The agreement on a ground-truth pixel, see `agreement_of`
NO_CLASS, ALONE, SOME, ALL = range(-1, 3)


class Surroundings(NamedTuple):
    """The pixels within twice the tolerance of annotated pixels."""

    half: Int32s  # (2 R + 1,): half widths of the rows of the disk of radius 2r, see `graph.Disk`
    near: Uint64s  # (H, words): bits of the pixels within 2r of an annotated pixel


class StepErrors(NamedTuple):
    """Numbers of pixels at each of n thresholds, in the order of the changes, int64."""

    matched_gt: Ints  # (n,): matched pixels of the ground truth, summed over annotators
    matched_pred: Ints  # (n,): predicted pixels that are matched with at least one annotator
    # (n, 3), missed pixels: (0) matched at the last threshold, else (1) with a false pixel within
    # 2r, else (2) neither
    missed: Ints
    # (n, 3), false pixels by distance d to the nearest annotated pixel: d <= r, r < d <= 2r, d > 2r
    false: Ints
    agreement_matched: Ints  # (n, 3): matched ground-truth pixels that are ALONE, SOME, ALL


class PixelSteps(NamedTuple):
    """The steps (thresholds) at which each pixel is matched or not, as bits in uint64 words.

    K is the number of predicted pixels within the tolerance of the ground truth.
    """

    row_of: Int32s  # (H, W): the row in `false` of each pixel that is ever on, else -1
    false: Uint64s  # (rows, words): the steps at which a predicted pixel is on and unmatched
    matched: Uint64s  # (K, words): the steps at which a predicted pixel is matched
    matched_pixel: Uint64s  # (K,): the flat indices of these pixels
    gt_matched: Uint64s  # (ground-truth vertices, words): the steps at which a vertex is matched
    is_matched_at_lowest: Bools  # (ground-truth vertices,): matched at the lowest threshold
    matched_gt: Ints  # (n,): numbers of matched ground-truth vertices, in the order of the bits
    backwards: bool  # True if bit 0 is the lowest threshold, the last of the changes


def prepare_surroundings(truth: Truth, max_dist_px: float) -> Surroundings:
    """Find the pixels within twice the tolerance of any annotated pixel.

    truth: the annotators' maps, from `prepare_truth`.
    max_dist_px: the tolerance (not doubled), in pixels. Raises DataError if it is too large.
    """
    half = half_widths(2 * max_dist_px, truth.shape)
    return Surroundings(half, bits_within_reach(truth.drawn, half))


def agreement_of(truth: Truth) -> Ints:
    """Classify each annotated pixel by how many other annotators agree with it.

    Another annotator agrees with a pixel if a pixel of that annotator's map is matched with it. The
    class is ALONE if no other annotator agrees, ALL if every other one does, and SOME otherwise.
    With a single annotator it is NO_CLASS.

    Returns an int64 array (vertices,). The vertices are the pixels of all annotators.
    """
    n_others = truth.n_annotators - 1
    if n_others == 0:
        return np.full(truth.vertices.pixel.size, NO_CLASS)
    n_agreeing = matching.count_partners(truth)  # annotators who agree with each pixel
    agreement = np.full(truth.vertices.pixel.size, SOME)
    agreement[n_agreeing == n_others] = ALL
    agreement[n_agreeing == 0] = ALONE
    return agreement


def match_by_pixel(changes: MapChanges, truth: Truth) -> PixelSteps:
    """Match predicted to annotated pixels at n thresholds, and record when each pixel is matched.

    A pixel gets a row of uint64 words with a bit for each threshold: bit b & 63 of word b >> 6 is
    set if the pixel is matched (or false) at threshold b. Threshold 0 is the highest or, if
    `backwards` is True in what is returned, the lowest.

    changes: the pixels that enter or leave the predicted map from one threshold to the next.
    truth: the annotators' maps, from `prepare_truth`.
    """
    n_steps = changes.start.size - 1  # one for each threshold
    predicted = matching.steps_within_reach(changes, truth)
    backwards = predicted.backwards
    # For the K predicted pixels within r, `pred` has flat indices `pixel` (K,) and the thresholds
    # at which they are matched, `matched_bits` (K, words). `gt_bits` are those of the annotated
    # pixels, and `matched_gt` their number at each threshold
    pred, gt_bits, matched_gt = matching.match_all(predicted, truth)

    # Number the pixels that are ever on: each has a row of bits
    is_ever_on = np.zeros(math.prod(truth.shape), np.bool_)
    is_ever_on[changes.pixel] = True
    n_rows = np.count_nonzero(is_ever_on)
    row_of = np.full(is_ever_on.size, -1, np.int32)
    row_of[is_ever_on] = np.arange(n_rows)
    # Set the bits of the thresholds at which a pixel is on. A pixel that enters or leaves keeps its
    # new state until its next change, so each change flips the bit of its step and all later ones
    before = bits_before(n_steps)  # row k has the bits below k. Backwards, later steps are lower
    from_step_bits = before[n_steps:0:-1].copy() if backwards else before[-1] ^ before[:-1]
    false_bits = np.zeros((n_rows, from_step_bits.shape[1]), np.uint64)
    _flip_from_step(changes.start, row_of[changes.pixel], from_step_bits, false_bits)
    false_bits[row_of[pred.pixel]] ^= pred.matched_bits  # without those at which it is matched

    lowest = 0 if backwards else n_steps - 1  # the bit of the lowest threshold
    lowest_bit = gt_bits[:, lowest >> 6] >> np.uint64(lowest & 63) & np.uint64(1)
    return PixelSteps(
        row_of=row_of.reshape(truth.shape),
        false=false_bits,
        matched=pred.matched_bits,
        matched_pixel=pred.pixel,
        gt_matched=gt_bits,
        is_matched_at_lowest=lowest_bit == 1,
        matched_gt=matched_gt,
        backwards=backwards,
    )


def near_false_bits(steps: PixelSteps, truth: Truth, surroundings: Surroundings) -> Uint64s:
    """Find the steps at which each annotated pixel is missed and has a false pixel within 2r.

    Returns rows of bits for the annotated pixels, as `steps.gt_matched`; 0 for those that are
    matched at the lowest threshold.
    """
    missed = np.flatnonzero(~steps.is_matched_at_lowest)
    missed_pixel = truth.vertices.pixel[missed].astype(np.int64)  # flat indices
    near_bits = np.zeros_like(steps.gt_matched)
    false_nearby = np.zeros((missed.size, near_bits.shape[1]), np.uint64)
    _unite_in_disk(missed_pixel, surroundings.half, steps.row_of, steps.false, false_nearby)
    near_bits[missed] = false_nearby & ~steps.gt_matched[missed]
    return near_bits


def _count_within(changes: MapChanges, region: Bools) -> Ints:
    """Count the pixels of a map that lie in a region (H, W), after each of n steps, (n,).

    changes: the pixels that enter or leave the map at each step. It is empty at first.
    """
    # Sum 1 for each pixel that enters, and -1 for each one that leaves; 0 outside the region
    sign = 2 * changes.added.view(np.int8) - 1
    n_before = np.zeros(sign.size + 1, np.int32)  # each change, and after the last
    np.cumsum(region.view(np.int8).ravel().take(changes.pixel) * sign, out=n_before[1:])
    return n_before[changes.start[1:]].astype(np.int64)


def classify_steps(
    changes: MapChanges, size: Ints, truth: Truth, surroundings: Surroundings, agreement: Ints
) -> StepErrors:
    """Count the matched, missed and false pixels of each class at each of n thresholds.

    An annotated pixel that is missed is "suppressed" if it is matched at the lowest threshold; else
    "near false" if an unmatched predicted pixel lies within 2r of it, where r is the tolerance of
    matching; else "absent". False pixels are divided by their distance from the ground truth: up to
    r, up to 2r, and farther.

    changes: the changes of the predicted map.
    size (n,): number of pixels of the predicted map at each threshold.
    truth, surroundings: the annotators' maps and the pixels within twice the tolerance of these,
        from `prepare_truth` and `prepare_surroundings`.
    agreement (annotated pixels,): whether no other annotator (ALONE), some (SOME) or all (ALL) have
        a pixel matched with it, from `agreement_of`; or NO_CLASS.
    """
    steps = match_by_pixel(changes, truth)
    n_steps = size.size
    # Count the pixels (rows of bits) with the bit of each step (threshold) set: (1, bits), for one
    # kind of pixel. There may be more bits than steps
    matched_pred = count_set_bits(steps.matched)[0, :n_steps]
    near_false = count_set_bits(near_false_bits(steps, truth, surroundings))[0, :n_steps]
    # Count matched annotated pixels of 8 kinds separately: 4 kinds of agreement, from 0 (NO_CLASS)
    # to 3 (ALL), of pixels that are unmatched (+ 0) or matched (+ 4) at the lowest threshold
    kind = 4 * steps.is_matched_at_lowest + (agreement - NO_CLASS)
    of_kind = count_set_bits(steps.gt_matched, kind, n_kinds=8)[:, :n_steps]
    matched_of_kind = of_kind.reshape(2, 4, n_steps)  # matched at the lowest, agreement, step
    matched_gt = steps.matched_gt
    if steps.backwards:  # the bits are in reverse order: put the highest threshold first
        matched_gt, matched_pred = matched_gt[::-1], matched_pred[::-1]
        near_false, matched_of_kind = near_false[::-1], matched_of_kind[..., ::-1]
    # Of the pixels matched at the lowest threshold, those that are not matched at this one
    n_matched_at_lowest = np.count_nonzero(steps.is_matched_at_lowest)
    suppressed = n_matched_at_lowest - matched_of_kind[1].sum(axis=0)
    # The other missed pixels are near false (`near_false` leaves out the suppressed) or absent
    absent = truth.vertices.pixel.size - matched_gt - suppressed - near_false
    # Numbers of predicted pixels within r and 2r, (n,); all matched ones are within r
    within_r, within_2r = (
        _count_within(changes, unpack(near, truth.shape[1]))
        for near in (truth.near, surroundings.near)
    )
    return StepErrors(
        matched_gt=matched_gt,
        matched_pred=matched_pred,
        missed=np.column_stack([suppressed, near_false, absent]),
        false=np.column_stack([within_r - matched_pred, within_2r - within_r, size - within_2r]),
        agreement_matched=matched_of_kind.sum(axis=0)[1:].T,  # without NO_CLASS
    )


@kernel(_nrt=False)
def _flip_from_step(start, row, from_step_bits, bits):
    """Flip the bits of each pixel that changes, from the step of the change on.

    With 4 steps, a pixel that enters a map at step 1 and leaves it at step 3 gets, from step 0 on,
    the bits 0111 and then 0110: the steps at which it is on.

    start int64 (n + 1,): step s has the changes start[s] : start[s + 1].
    row (changes,): the row of `bits` that belongs to the changed pixel.
    from_step_bits uint64 (n, words): row s has the bits of step s and of all later steps.
    bits uint64 (pixels, words): 0 on entry; changed in place.
    """
    for step in range(start.size - 1):
        for change in range(start[step], start[step + 1]):
            for word in range(bits.shape[1]):
                bits[row[change], word] ^= from_step_bits[step, word]


@kernel(_nrt=False)
def _unite_in_disk(pixel, half, row_of, bits, united):
    """Unite, for each of some pixels, the bits of all pixels in the disk around it.

    pixel int64 (pixels,): the flat indices of the pixels.
    half int32 (2 R + 1,): the half width of each row of the disk, which reaches from -half to half.
    row_of int32 (H, W): the row of each pixel in `bits`, or -1 if it has no bits.
    bits uint64 (rows, words).
    united uint64 (pixels, words): 0 on entry; receives the united bits.
    """
    rows, cols = row_of.shape
    reach = half.size // 2
    for i in range(pixel.size):
        row, col = divmod(pixel[i], cols)
        for y in range(max(row - reach, 0), min(row + reach + 1, rows)):
            width = half[y - row + reach]
            for x in range(max(col - width, 0), min(col + width + 1, cols)):
                j = row_of[y, x]
                if j >= 0:
                    for word in range(bits.shape[1]):
                        united[i, word] |= bits[j, word]
