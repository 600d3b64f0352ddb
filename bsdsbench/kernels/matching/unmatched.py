"""Classification of missed and false pixels at every threshold, by why they stay unmatched.

A step is the change of the predicted map from one threshold to the next; the result "at step k" is
that for the threshold reached. Vertices are the annotated pixels of all annotators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool, MapChanges
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
    """Numbers of pixels at each of n thresholds, in the order of the changes, int64."""

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

    K is the number of predicted pixels within the tolerance of the ground truth.
    """

    row_of: I4  # (H, W): the row in `false` of each pixel that is ever on, else -1
    false: U8  # (rows, words): the steps at which a predicted pixel is on and unmatched
    matched: U8  # (K, words): the steps at which a predicted pixel is matched
    matched_pixel: U8  # (K,): the flat indices of these pixels
    gt_matched: U8  # (ground-truth vertices, words): the steps at which a vertex is matched
    # (ground-truth vertices, words): the steps at which a vertex is unmatched and has a false pixel
    # within 2r; 0 for vertices that are matched at the lowest threshold
    near_false: U8
    is_matched_at_lowest: Bool  # (ground-truth vertices,): matched at the lowest threshold
    matched_gt: I8  # (n,): numbers of matched ground-truth vertices, in the order of the bits
    # (2, n): numbers of predicted pixels within r and 2r of the ground truth, in changes' order
    n_within: I8
    backwards: bool  # True if bit 0 is the lowest threshold, the last of the changes


def prepare_surroundings(truth: Truth, max_dist_px: float) -> Surroundings:
    """Find the pixels within twice the tolerance of any annotated pixel.

    truth: the annotators' maps, from `prepare_truth`.
    max_dist_px: the tolerance (not doubled), in pixels. Raises DataError if it is too large.
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
    n_others = truth.n_annotators - 1
    if n_others == 0:
        return np.full(truth.vertices.pixel.size, NO_CLASS)
    n_agreeing = matching.count_partners(truth)  # annotators who agree with each pixel
    agreement = np.full(truth.vertices.pixel.size, SOME)
    agreement[n_agreeing == n_others] = ALL
    agreement[n_agreeing == 0] = ALONE
    return agreement


def match_by_pixel(changes: MapChanges, truth: Truth, surroundings: Surroundings) -> PixelSteps:
    """Match predicted to annotated pixels at n thresholds, and record when each pixel is matched.

    A pixel gets a row of uint64 words with a bit for each threshold: bit b & 63 of word b >> 6 is
    set if the pixel is matched (or false, or missed near a false pixel) at threshold b. Threshold 0
    is the highest or, if `backwards` is True in what is returned, the lowest.

    changes: the pixels that enter or leave the predicted map from one threshold to the next. Pixels
        farther than twice the tolerance r from the ground truth may be missing.
    truth: the annotators' maps, from `prepare_truth`.
    surroundings: the pixels within 2r of annotated pixels, and the disk of radius 2r in which a
        missed pixel may have a near false pixel, from `prepare_surroundings`.
    """
    n_steps = changes.start.size - 1  # one for each threshold
    words = (n_steps + 63) // 64
    gt_pixel = truth.vertices.pixel  # flat indices of the annotated pixels, annotator by annotator
    # From the lowest threshold to the highest, if this is likely to be faster
    backwards = matching.should_start_at_lowest_threshold(changes.added, truth)
    predicted = matching.steps_within_reach(changes, truth, lowest_first=backwards)
    # For the K predicted pixels within r, `pred` has flat indices `pixel` (K,) and the thresholds
    # at which they are matched, `matched_bits` (K, words). `gt_bits` are those of the annotated
    # pixels, and `matched_gt` their number at each threshold
    pred, gt_bits, matched_gt = matching.match_all(predicted, truth)

    # Fill `false_bits`, at first with the thresholds at which each predicted pixel is on, in row
    # row_of[y, x] for pixel (y, x); and `n_within`, the number of pixels on within r and within 2r
    row_of = np.full(truth.shape, -1, np.int32)
    most_pixels = np.count_nonzero(changes.added)  # a pixel may enter the map several times
    false_bits = np.zeros((most_pixels, words), np.uint64)
    n_within = np.zeros((2, n_steps), np.int64)
    near = unpack(np.concatenate([truth.near, surroundings.near]), truth.shape[1])
    within = near.reshape(2, -1)  # bool (2, H * W): the pixels within r, and those within 2r
    _record_active_steps(changes, within, backwards, row_of.ravel(), false_bits, n_within)
    # Remove the thresholds at which a predicted pixel is matched from `false_bits`. Fill
    # `near_bits`, the thresholds at which a missed pixel has a false pixel in the disk of radius
    # 2r; none for pixels that are matched at the lowest threshold
    lowest = 0 if backwards else n_steps - 1  # the bit of the lowest threshold
    near_bits = np.zeros_like(gt_bits)
    disk = surroundings.half  # the half width of each row of the disk
    _record_near_steps(gt_pixel, gt_bits, lowest, pred, row_of, false_bits, disk, near_bits)
    lowest_bit = gt_bits[:, lowest >> 6] >> np.uint64(lowest & 63) & np.uint64(1)
    return PixelSteps(
        row_of=row_of,
        false=false_bits,
        matched=pred.matched_bits,
        matched_pixel=pred.pixel,
        gt_matched=gt_bits,
        near_false=near_bits,
        is_matched_at_lowest=lowest_bit == 1,
        matched_gt=matched_gt,
        n_within=n_within,
        backwards=backwards,
    )


def classify_steps(
    changes: MapChanges, size: I8, truth: Truth, surroundings: Surroundings, agreement: I8
) -> StepErrors:
    """Count the matched, missed and false pixels of each class at each of n thresholds.

    An annotated pixel that is missed is "suppressed" if it is matched at the lowest threshold; else
    "near false" if an unmatched predicted pixel lies within 2r of it, where r is the tolerance of
    matching; else "absent". False pixels are divided by their distance from the ground truth: up to
    r, up to 2r, and farther.

    changes: the changes of the predicted map. Changes of pixels farther than twice the tolerance
        from the ground truth may be missing.
    size (n,): number of pixels of the whole predicted map at each threshold.
    truth, surroundings: the annotators' maps and the pixels within twice the tolerance of these,
        from `prepare_truth` and `prepare_surroundings`.
    agreement (annotated pixels,): whether no other annotator (ALONE), some (SOME) or all (ALL) have
        a pixel matched with it, from `agreement_of`; or NO_CLASS.
    """
    steps = match_by_pixel(changes, truth, surroundings)
    n_steps = size.size
    # Count the pixels (rows of bits) with the bit of each step (threshold) set: (1, bits), for one
    # kind of pixel. There may be more bits than steps
    matched_pred = count_set_bits(steps.matched)[0, :n_steps]
    near_false = count_set_bits(steps.near_false)[0, :n_steps]
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
    within_r, within_2r = steps.n_within  # predicted pixels, (n,); all matched ones are within r
    return StepErrors(
        matched_gt=matched_gt,
        matched_pred=matched_pred,
        missed=np.column_stack([suppressed, near_false, absent]),
        false=np.column_stack([within_r - matched_pred, within_2r - within_r, size - within_2r]),
        agreement_matched=matched_of_kind.sum(axis=0)[1:].T,  # without NO_CLASS
    )


@kernel(_nrt=False)
def _record_active_steps(changes, within, backwards, row_of, bits, n_within):
    """Record the steps at which each pixel is on, and count the pixels that are on in two regions.

    changes (start, pixel, added): the changes of the predicted map, which is empty at first, at
        each of n steps (thresholds). Change c is of step s if start[s] <= c < start[s + 1]. Pixel
        pixel[c], a flat index, then enters the map (added[c] is True) or leaves it.
    within bool (2, H * W): the two regions, the pixels within r and within 2r of the ground truth.
    backwards: if True, step s is bit n - 1 - s of `bits`, as in a matching that begins at the
        lowest threshold; otherwise bit s. Bit b of a row is bit b & 63 of word b >> 6.

    These arrays are filled in place:

    row_of int32 (H * W,): -1 on entry; receives the row of `bits` for each pixel that ever changes.
    bits uint64 (rows, words): 0 on entry; receives the steps after which a pixel is on.
    n_within int64 (2, n): 0 on entry; receives the number of pixels that are on in each region
        after each step, in the order of the changes.
    """
    start, pixel, added = changes
    n_steps, all_bits = start.size - 1, ~np.uint64(0)
    n_rows = 0  # rows of `bits` in use
    for step in range(n_steps):
        if step > 0:
            n_within[0, step], n_within[1, step] = n_within[0, step - 1], n_within[1, step - 1]
        for change in range(start[step], start[step + 1]):
            p = pixel[change]
            for k in range(2):
                if within[k, p]:
                    n_within[k, step] += 1 if added[change] else -1
            if row_of[p] < 0:
                row_of[p] = n_rows
                n_rows += 1
            row = row_of[p]
            # A pixel keeps its new state until its next change: flip this step and all later ones.
            # On at step 1 and off at step 3 gives, from step 0 on, 01111.. and then 01100..
            # The flipped bits are those from `limit` on or, if backwards, those below `limit`: of 5
            # steps, step 1 and the later ones are the bits 3, 2, 1 and 0, below 4
            limit = n_steps - step if backwards else step
            for word in range(bits.shape[1]):
                n_below = min(max(limit - 64 * word, 0), 64)  # bits of this word below `limit`
                # A shift by 64, the size of a word, is undefined
                from_limit = all_bits << np.uint64(n_below) if n_below < 64 else np.uint64(0)
                bits[row, word] ^= ~from_limit if backwards else from_limit


@kernel(_nrt=False)
def _record_near_steps(gt_pixel, gt_bits, lowest, pred, row_of, bits, half, near_bits):
    """Record the steps at which a missed pixel has a false pixel in the disk around it.

    A missed pixel is an unmatched ground-truth pixel. A false pixel is a predicted pixel that is
    on, and matched with no annotator. Step s is bit s & 63 of word s >> 6.

    gt_pixel uint64 (vertices,): flat index of the pixel of each ground-truth vertex.
    gt_bits uint64 (vertices, words): the steps at which each vertex is matched.
    lowest: index of the step with the lowest threshold. Vertices matched at it are skipped.
    pred: the predicted vertices: vertex i is the pixel with the flat index pred.pixel[i], and
        pred.matched_bits[i] has the steps at which it is matched.
    row_of int32 (H, W): the row of each pixel in `bits`, or -1 if the pixel is never on.
    bits uint64 (rows, words): the steps at which a predicted pixel is on. Those at which it is
        matched are removed in place, which leaves the steps at which it is false.
    half int32 (2 R + 1,): the half width of each row of the disk, which reaches from -half to half.
    near_bits uint64 (vertices, words): 0 on entry; receives the steps for each ground-truth vertex.
    """
    rows, cols = row_of.shape
    reach, words = half.size // 2, bits.shape[1]
    for i in range(pred.pixel.size):
        row, col = divmod(np.int64(pred.pixel[i]), cols)
        for word in range(words):  # a matched pixel is on, so XOR removes these steps
            bits[row_of[row, col], word] ^= pred.matched_bits[i, word]
    for i in range(gt_pixel.size):
        if gt_bits[i, lowest >> 6] >> np.uint64(lowest & 63) & np.uint64(1):
            continue
        # Unite the steps of all false pixels in the disk, then remove those of a match
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
