"""Why pixels stay unmatched: the classes of missed and of false pixels at every threshold.

A matched predicted pixel lies within the tolerance r of an annotated one. So the false pixels of
each class follow from how many pixels are on within r and within 2r, less those that are matched.
For missed pixels each ground-truth pixel has the bits of the steps at which it is matched, and of
those at which a predicted pixel without a partner lies within 2r of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import pack
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching.graph import NO_VERTEX, bits_within_reach, disk, row_col
from bsdsbench.kernels.matching.matching import (
    Steps,
    Truth,
    count_set_bits,
    match_all,
    should_start_at_lowest_threshold,
    steps_within_reach,
)

NO_CLASS, ALONE, SOME, ALL = range(-1, 3)


class Surroundings(NamedTuple):
    """What is near the annotated pixels at any threshold."""

    half: I4  # of the disk of twice the tolerance, see graph.Disk
    near: U8  # bits of the pixels within it of an annotated pixel
    agreement: I8  # of each ground-truth vertex: ALONE, SOME, ALL or NO_CLASS


class StepErrors(NamedTuple):
    """Numbers of pixels after each of n steps, int64."""

    matched_gt: I8  # (n,)
    matched_pred: I8  # (n,)
    missed: I8  # (n, 3): matched after the last step; else near a false pixel; else absent
    false: I8  # (n, 3): within r of an annotated pixel, within 2r, farther
    agreement_matched: I8  # (n, 3): matched ground truth that is ALONE, SOME, ALL


class PixelSteps(NamedTuple):
    """What is on and matched after which of n steps: bits of steps, uint64 (pixels, words) each.

    The steps are in the order of the matching, see `backwards`.
    """

    pixel: I8  # flat indices of the pixels that are ever on
    on: U8  # steps after which each is on
    matched: U8  # and has a partner
    gt_matched: U8  # of each ground-truth vertex
    is_reached: Bool  # matched after the last step
    near_false: U8  # of the vertices that are not reached: missed beside a false pixel
    matched_gt: I8  # (n,) numbers of matched vertices
    n_on: I8  # (2, n) numbers of pixels within r and 2r of the ground truth, forwards
    backwards: bool  # the first step is the last of the events


def prepare_surroundings(truth: Truth, max_dist_px: float) -> Surroundings:
    """Return what `classify_steps` needs of the ground truth.

    Raises DataError if twice the tolerance is too large for memory.
    """
    drawn = np.zeros(truth.shape, np.bool_)
    drawn.flat[truth.pixel] = True
    half = disk(2 * max_dist_px, truth.shape).half
    return Surroundings(half, bits_within_reach(pack(drawn), half), _agreement(truth))


def _agreement(truth: Truth) -> I8:
    """Return the class of each ground-truth vertex, by how many annotators have a partner of it.

    Of two annotators the first is matched as the prediction. One alone has no classes.
    """
    n_annotators, ends = len(truth.tiles), truth.ends
    partners = np.zeros(truth.pixel.size, np.int64)
    for first in range(n_annotators):
        of_first = slice(ends[first], ends[first + 1])
        pixel = truth.pixel[of_first]
        vertex, all_enter = np.arange(pixel.size, dtype=np.int32), np.ones(pixel.size, np.bool_)
        start, tile = np.array([0, pixel.size]), truth.tiles[first].copy()
        steps = Steps(start, vertex, all_enter, False, pixel, tile)
        for second in range(first + 1, n_annotators):
            of_second = slice(ends[second], ends[second + 1])
            target = truth._replace(
                ends=ends[second : second + 2] - ends[second],
                pixel=truth.pixel[of_second],
                tiles=truth.tiles[second : second + 1],
            )
            mate = match_all(steps, target, 0, np.zeros(1, np.int64)).node["mate"]
            is_matched = mate != NO_VERTEX
            partners[of_first] += is_matched
            partners[of_second][mate[is_matched]] += 1
    if n_annotators < 2:
        return np.full(partners.size, NO_CLASS)
    return np.where(partners == 0, ALONE, np.where(partners == n_annotators - 1, ALL, SOME))


def match_by_pixel(
    start: I8, pixel: I4, added: Bool, truth: Truth, surroundings: Surroundings
) -> PixelSteps:
    """Match at every step, and keep of each pixel at which steps it is on and matched.

    start, pixel, added : `thinning.Events`; those of pixels beyond 2r may be left out
    """
    n_steps, backwards = start.size - 1, should_start_at_lowest_threshold(added, truth)
    steps = steps_within_reach(start, pixel, added, truth, gt_enters=backwards)
    gt_bits = np.zeros((truth.pixel.size, (n_steps + 63) // 64), np.uint64)
    matched_gt = np.zeros(n_steps, np.int64)
    pred = match_all(steps, truth, 0, matched_gt, gt_bits)

    row_of, is_on = np.full(truth.shape, -1, np.int32), np.zeros(truth.shape, np.bool_)
    is_on.flat[pixel] = True
    row_of[is_on] = np.arange(np.count_nonzero(is_on))
    on_bits = np.zeros((np.count_nonzero(is_on), gt_bits.shape[1]), np.uint64)
    n_on = np.zeros((2, n_steps), np.int64)
    near = np.stack([truth.near, surroundings.near])
    _set_steps_on(start, pixel, added, near, backwards, row_of, on_bits, n_on)
    matched_bits = np.zeros_like(on_bits)
    matched_bits[row_of.flat[pred.pixel]] = pred.bits

    last = 0 if backwards else n_steps - 1
    is_reached = gt_bits[:, last >> 6] >> np.uint64(last & 63) & np.uint64(1) == 1
    near_bits = np.zeros((np.count_nonzero(~is_reached), gt_bits.shape[1]), np.uint64)
    false_bits = on_bits & ~matched_bits
    _set_steps_near(truth.pixel[~is_reached], row_of, false_bits, surroundings.half, near_bits)
    near_bits &= ~gt_bits[~is_reached]
    pixels = np.flatnonzero(is_on)
    return PixelSteps(
        pixels, on_bits, matched_bits, gt_bits, is_reached, near_bits, matched_gt, n_on, backwards
    )


def classify_steps(
    start: I8, pixel: I4, added: Bool, size: I8, truth: Truth, surroundings: Surroundings
) -> StepErrors:
    """Count matched, missed and false pixels after each step of the events.

    start, pixel, added : `thinning.Events`; those of pixels beyond 2r may be left out
    size : int64 (n,), of the whole map after each step
    """
    steps, n_steps = match_by_pixel(start, pixel, added, truth, surroundings), start.size - 1
    gt_bits, is_reached, matched_gt = steps.gt_matched, steps.is_reached, steps.matched_gt
    rows = [steps.matched, gt_bits[is_reached], steps.near_false]
    rows += [gt_bits[surroundings.agreement == k] for k in (ALONE, SOME, ALL)]
    n_set = np.zeros((len(rows), n_steps), np.int64)
    for bits, counts in zip(rows, n_set, strict=True):
        count_set_bits(bits, np.zeros(64 * bits.shape[1], np.int64), counts)
    if steps.backwards:
        matched_gt, n_set = matched_gt[::-1], n_set[:, ::-1]
    matched_pred, matched_reached, near_false, *agreement_matched = n_set
    suppressed = np.count_nonzero(is_reached) - matched_reached
    absent = truth.pixel.size - matched_gt - suppressed - near_false
    within_r, within_2r = steps.n_on
    return StepErrors(
        matched_gt,
        matched_pred,
        np.column_stack([suppressed, near_false, absent]),
        np.column_stack([within_r - matched_pred, within_2r - within_r, size - within_2r]),
        np.column_stack(agreement_matched),
    )


@kernel(_nrt=False)
def _set_steps_on(start, pixel, added, near, backwards, row_of, bits, n_on):
    """Set the bits of the steps after which each pixel is on, in the order of the matching.

    near : uint64 (2, H, words), the pixels that `n_on` (2, n), zeros, becomes the numbers of
    row_of : int32 (H, W), the row of a pixel in `bits`
    """
    n_steps, one, all_bits = start.size - 1, np.uint64(1), ~np.uint64(0)
    for step in range(n_steps):
        first = n_steps - step if backwards else step
        for k in range(2 if step else 0):
            n_on[k, step] = n_on[k, step - 1]
        for event in range(start[step], start[step + 1]):
            row, col = row_col(pixel[event], row_of.shape[1])
            for k in range(2):
                inside = np.int64(near[k, row, col >> np.uint64(6)] >> (col & np.uint64(63)) & one)
                n_on[k, step] += inside if added[event] else -inside
            i = row_of[row, col]
            for word in range(bits.shape[1]):  # it changes from this step on
                low = min(max(first - (word << 6), 0), 64)
                from_first = all_bits << np.uint64(low) if low < 64 else np.uint64(0)
                bits[i, word] ^= ~from_first if backwards else from_first


@kernel(_nrt=False)
def _set_steps_near(pixel, row_of, bits, half, near_bits):
    """Set the bits of the steps at which a predicted pixel in the disk around each has its bit.

    pixel : flat indices of the rows of `near_bits`;  bits, row_of : as `_set_steps_on`
    """
    rows, cols = row_of.shape
    reach = half.size // 2
    for i in range(pixel.size):
        unsigned_row, unsigned_col = row_col(pixel[i], cols)
        row, col = np.int64(unsigned_row), np.int64(unsigned_col)
        for y in range(max(row - reach, 0), min(row + reach + 1, rows)):
            width = half[y - row + reach]
            for x in range(max(col - width, 0), min(col + width + 1, cols)):
                j = row_of[y, x]
                if j >= 0:
                    for word in range(bits.shape[1]):
                        near_bits[i, word] |= bits[j, word]
