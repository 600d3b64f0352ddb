"""Where the score of one image is lost: missed and false pixels by class at every threshold.

`boundary_errors` defines the classes. The idea is from TIDE (Bolya et al., ECCV 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools, Ints
from bsdsbench.images import GroundTruth, Map, Prediction, without_void
from bsdsbench.metrics.boundary import threshold_changes, truth_maps, whole_image_counts
from bsdsbench.metrics.matches import given_prediction
from bsdsbench.metrics.pixel_steps import OverlaySteps, PixelClass, steps_of_classes
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import MATCHED_PRED, TOTAL_PRED, MatchCounts
from bsdsbench.scores.error_scores import FALSE, MISSED

if TYPE_CHECKING:
    from bsdsbench.kernels.matching.unmatched import PixelSteps

#: Error class -> code in `pixel_classes`. Codes 1 to 3 are those of `PixelClass`.
ERROR_CODES = {name: code for code, name in enumerate((*MISSED, *FALSE), 4)}


class _Layer(NamedTuple):
    """The n pixels that have a class at some step, and the steps at which each has it."""

    code: int  # of the class: a `PixelClass`, or a value of `ERROR_CODES`
    pixels: Ints | NDArray[np.uint64]  # (n,), flat indices in the image
    bits: NDArray[np.uint64]  # (n, words), bit k of a row is set if the pixel has the class then


def pixel_classes(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol,
    *,
    errors: bool,
    dropped: Bools | None = None,
) -> dict[str, OverlaySteps]:
    """Classify the boundary pixels as matched, false or missed at each threshold, for overlays.

    A predicted pixel is matched or false. A pixel that is only annotated is missed if the pixel of
    at least one annotator is unmatched.

    pred, gts: a soft map (H, W), and a boundary map (H, W) of each of A annotators.
    protocol: its thresholds and first tolerance are used, without a threshold 0 (the whole image).
    dropped: bool (H, W), True at predicted pixels to remove after thinning.
    errors: if True, the classes of false and missed pixels are those of `ERROR_CODES`, such as
        "duplicate", which tell why they are wrong; if False, they are FALSE and MISSED.

    Returns {"steps": OverlaySteps}, with a step for each threshold. It is a dict because this
    function can replace `boundary_counts` as the `counter` of a metric.
    """
    from bsdsbench.kernels.bits import count_set_bits, unpack
    from bsdsbench.kernels.matching import unmatched
    from bsdsbench.kernels.matching.matching import prepare_truth

    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")  # (A, H, W), (H, W)
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])  # radius: tolerance r
    target = prepare_truth(gt_maps, radius)  # the annotated pixels, and those within r of one
    # `changes`: the pixels that enter or leave the predicted map at each of T steps, from the
    # highest threshold to the lowest. `size` (T,): the number of its pixels after each step
    at_thresholds = threshold_changes(pred, shape, protocol, dropped=dropped, valid=valid)
    thresholds, changes, size = at_thresholds
    # Rows of uint64 words, one row for each pixel: bit k is set in `matched` if the pixel is
    # matched, and in `false` if it is predicted and not matched, at step k
    pixel_bits = unmatched.match_by_pixel(changes, target)
    false_row_of_pixel = pixel_bits.row_of.ravel()  # (H * W,), -1 if it is never predicted
    # Flat indices of the pixels that are predicted at any step; of those that are annotated, once
    # for each annotator; and of all these pixels, in ascending order
    has_class = false_row_of_pixel >= 0
    pred_pixel, gt_pixel = np.flatnonzero(has_class), target.vertices.pixel.astype(np.int64)
    has_class[gt_pixel] = True
    pixel = np.flatnonzero(has_class)
    # False pixels have the same class at every threshold at which they are false
    false_bits = pixel_bits.false[false_row_of_pixel[pred_pixel]]
    false_codes = np.full(pred_pixel.size, PixelClass.FALSE)
    missed = {int(PixelClass.MISSED): ~pixel_bits.gt_matched}  # code -> bits of annotated pixels
    if errors:
        around = unmatched.prepare_surroundings(target, radius)  # within 2r of an annotated pixel
        duplicate, near, background = (ERROR_CODES[name] for name in FALSE)
        is_within_r = unpack(target.near, shape[1]).flat[pred_pixel]
        is_within_2r = unpack(around.near, shape[1]).flat[pred_pixel]
        false_codes = np.select([is_within_r, is_within_2r], [duplicate, near], background)
        near_false = unmatched.near_false_bits(pixel_bits, target, around)
        missed = _missed_by_class(pixel_bits, near_false)
    # Where the annotators of a pixel differ, the first layer that applies is shown: matched, false,
    # or one of the missed
    layers = [_Layer(PixelClass.MATCHED, pixel_bits.matched_pixel, pixel_bits.matched)]
    for code in np.flatnonzero(np.bincount(false_codes)).tolist():
        is_of_code = false_codes == code
        layers.append(_Layer(code, pred_pixel[is_of_code], false_bits[is_of_code]))
    for code, missed_bits in missed.items():
        layers.append(_Layer(code, gt_pixel, missed_bits))
    # Order all by ascending threshold. `size` begins at the highest threshold, and so do the bits,
    # unless `backwards` is set: then the matching began at the lowest
    ascending = slice(None, None, 1 if pixel_bits.backwards else -1)
    matched_gt = pixel_bits.matched_gt[ascending]
    matched_pred = count_set_bits(pixel_bits.matched)[0, : thresholds.size][ascending]
    total_gt = np.full_like(matched_gt, gt_pixel.size)
    matches = np.stack([matched_gt, total_gt, matched_pred, size[::-1]], axis=-1)
    classes = _merge_layers(layers, pixel, thresholds.size)[:, ascending]
    steps = steps_of_classes(thresholds, matches, np.ascontiguousarray(classes), shape, pixel)
    return {"steps": steps._replace(areas=False)}


def _merge_layers(layers: Sequence[_Layer], pixel: Ints, n_steps: int) -> NDArray[np.uint8]:
    """Return the class of each of P pixels at each of T steps, uint8 (P, T); 0 is no class.

    layers: if several apply to a pixel at a step, the first of them gives the class.
    pixel (P,): the flat indices of the pixels, in ascending order.
    """
    from bsdsbench.kernels.bits import unpack

    classes = np.zeros((pixel.size, n_steps), np.uint8)
    n_words = layers[0].bits.shape[1]  # bit k of a pixel's words stands for step k
    has_class = np.zeros((pixel.size, n_words), np.uint64)
    for layer in layers:
        new_bits = np.zeros_like(has_class)
        row = np.searchsorted(pixel, layer.pixels)  # of each pixel of the layer
        # A layer has a pixel once for each annotator who drew it: unite the steps of all
        np.bitwise_or.at(new_bits, row, layer.bits)
        new_bits &= ~has_class  # not the steps at which an earlier layer gave the class
        has_class |= new_bits
        classes += unpack(new_bits, n_steps) * np.uint8(layer.code)
    return classes


def _missed_by_class(
    pixel_bits: PixelSteps, near_false: NDArray[np.uint64]
) -> dict[int, NDArray[np.uint64]]:
    """Return the steps (thresholds) at which each annotated pixel is in each class of missed ones.

    pixel_bits: has rows of bits for annotated pixels, uint64 (pixels, words). Bit k of a row of
        `gt_matched` is set if the pixel is matched at step k.
    near_false: bit k of a row is set if the pixel is missed at step k and a false pixel is near; 0
        if the lowest threshold matches the pixel.

    Returns code of the class (`ERROR_CODES`) -> bits of the same form: the steps at which the pixel
    is missed and the lowest threshold matches it (suppressed), else a false pixel is near, else
    neither (absent). Bits after the last step have no meaning.
    """
    missed = ~pixel_bits.gt_matched
    matched_at_lowest = pixel_bits.is_matched_at_lowest[:, None]  # (pixels, 1)
    bits_of_class = {
        "suppressed": np.where(matched_at_lowest, missed, 0),
        "near_missed": near_false,
        "absent": np.where(matched_at_lowest, 0, missed & ~near_false),
    }
    return {ERROR_CODES[name]: bits_of_class[name] for name in MISSED}


def boundary_errors(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol | str | None = None,
    *,
    dropped: Bools | None = None,
) -> MatchCounts:
    """Count the missed, false and matched boundary pixels of one image by class.

    At each threshold, the classes of errors add up to all missed and all false pixels. Let r be the
    matching tolerance. A missed pixel is suppressed if it is matched at the lowest threshold above
    0, else near if a false pixel lies within 2r, else absent. A false pixel is a duplicate if an
    annotated pixel lies within r (all of these are matched with other pixels), else near if one
    lies within 2r, else background.

    Parameters
    ----------
    pred, gts, protocol, dropped : as in `boundary_counts`
        The soft map, the annotators' maps, the protocol, of which only the first tolerance is used,
        and the predicted pixels to remove after thinning.

    Returns
    -------
    MatchCounts
        `thresholds` and `matches` as in `boundary_counts`, and the following int64 arrays, in which
        annotated pixels are summed over annotators.

        - `missed` (T, 3): missed pixels that are suppressed, near, absent
        - `false` (T, 3): false pixels that are duplicate, near, background
        - `agreement_pixels` (3,): pixels drawn by one annotator alone, by some, by all. With two
          annotators no pixel is drawn by some; with a single one all three are 0.
        - `agreement_matched` (T, 3): the matched pixels among these

    Raises
    ------
    DataError
        If the sizes differ, a value is NaN or out of range, or there is no annotator.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line, pred = np.zeros((20, 30)), np.zeros((20, 30))
    >>> line[10] = 1
    >>> pred[10, :9], pred[10, 9:20], pred[12, 25:28] = 0.9, 0.3, 0.8
    >>> errors = bb.boundary_errors(pred, [line], bb.Protocol(thresholds=(0.2, 0.5), max_dist_px=1))
    >>> errors.missed.tolist(), errors.false.tolist()
    ([[0, 3, 7], [11, 3, 7]], [[0, 3, 0], [0, 3, 0]])
    """
    from bsdsbench.kernels.bits import unpack
    from bsdsbench.kernels.matching import unmatched
    from bsdsbench.kernels.matching.matching import prepare_truth

    pred, truth, protocol = given_prediction(pred), GroundTruth.of(gts), Protocol.load(protocol)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])  # radius: tolerance r
    # Bit masks: `target.near` has the pixels within r of an annotated one, `around.near` within 2r
    target = prepare_truth(gt_maps, radius)
    around = unmatched.prepare_surroundings(target, radius)
    # The changes of the predicted map, step by step from the highest threshold to the lowest, and
    # its `size` after each step
    at_thresholds = threshold_changes(pred, shape, protocol, dropped, valid)
    thresholds, changes, size = at_thresholds
    # Of each annotated pixel: 0, 1 or 2 if it is drawn by its annotator alone, by some or by all,
    # as the pixels of the other annotators are matched with it; -1 if there is no other annotator
    agreement = unmatched.agreement_of(target)
    agreement_pixels = np.bincount(agreement + 1, minlength=4)[1:]  # without the value -1
    errors = unmatched.classify_steps(changes, size, target, around, agreement)
    total_gt = np.full(thresholds.size, target.vertices.pixel.size)
    matches = np.column_stack([errors.matched_gt, total_gt, errors.matched_pred, size])
    tables = {  # [::-1]: in order of ascending thresholds
        "matches": matches[::-1],
        "missed": errors.missed[::-1],
        "false": errors.false[::-1],
        "agreement_matched": errors.agreement_matched[::-1],
    }
    if protocol.whole_image and pred.kind != "segs":
        # Put a row for threshold 0 first, at which every pixel is predicted
        thresholds = np.r_[0.0, thresholds]
        all_matches = whole_image_counts(gt_maps, valid)
        n_matched, n_all = all_matches[[MATCHED_PRED, TOTAL_PRED]]
        n_within_r, n_within_2r = (
            without_void(unpack(bits, shape[1]), valid).sum() for bits in (target.near, around.near)
        )
        first_rows = {
            "matches": all_matches,
            "missed": np.zeros(3, np.int64),  # every annotated pixel is matched
            # Duplicate, near and background; all matched pixels are within r
            "false": np.diff([n_matched, n_within_r, n_within_2r, n_all]),
            "agreement_matched": agreement_pixels,
        }
        tables = {name: np.vstack([first_rows[name], rows]) for name, rows in tables.items()}
    return MatchCounts(thresholds, **tables, agreement_pixels=agreement_pixels)
