"""Where the score of one image is lost: missed and false pixels by class at every threshold.

`boundary_errors` defines the classes. The lowest threshold there is not a threshold 0 that stands
for the whole image. All annotated pixels within r of a duplicate are matched with other pixels. If
there are several annotators, each annotated pixel also has an agreement: `alone`, `some` or `all`,
if it is matched with a pixel of none, some or all of the other annotators. The idea is from TIDE
(Bolya et al., ECCV 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.images import GroundTruth, Map, Prediction, without_void
from bsdsbench.metrics.boundary import threshold_changes, truth_maps, whole_image_counts
from bsdsbench.metrics.matches import given_prediction
from bsdsbench.metrics.pixel_steps import OverlaySteps, PixelClass, changes_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import MATCHED_PRED, TOTAL_PRED, MatchCounts
from bsdsbench.scores.error_scores import FALSE, MISSED

if TYPE_CHECKING:
    from bsdsbench.kernels.matching.unmatched import PixelSteps

#: Error class -> code in `pixel_classes`. Codes 1 to 3 are those of `PixelClass`.
ERROR_CODES = {name: code for code, name in enumerate((*MISSED, *FALSE), 4)}


def pixel_classes(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol,
    *,
    errors: bool,
    dropped: Bool | None = None,
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
    from bsdsbench.kernels.matching.matching import prepare_truth
    from bsdsbench.kernels.matching.unmatched import match_by_pixel, prepare_surroundings

    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")  # (A, H, W), (H, W)
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])
    target = prepare_truth(gt_maps, radius)  # its `near`: the pixels within the radius, as bits
    around = prepare_surroundings(target, radius)  # its `near`: those within twice the radius
    # `changes` are the pixels that enter or leave the predicted map at each of T steps, from the
    # highest threshold to the lowest. `pixel_bits` holds rows of bits, such as `matched` and
    # `false`, in which bit k tells whether a pixel is matched (or false) at step k
    at_thresholds = threshold_changes(pred, shape, protocol, dropped=dropped, valid=valid)
    thresholds, changes, size = at_thresholds
    n_steps, pixel_bits = thresholds.size, match_by_pixel(changes, target, around)
    is_predicted = pixel_bits.row_of.ravel() >= 0  # at any step
    pred_pixel, gt_pixel = np.flatnonzero(is_predicted), target.vertices.pixel
    is_drawn = is_predicted.copy()  # predicted or annotated
    is_drawn[gt_pixel] = True
    pixel = np.flatnonzero(is_drawn)

    false_bits = pixel_bits.false[pixel_bits.row_of.flat[pred_pixel]]
    false_codes = np.full(pred_pixel.size, PixelClass.FALSE)
    if errors:  # a pixel has the same class at every threshold at which it is false
        duplicate, near, background = (ERROR_CODES[name] for name in FALSE)
        is_within_radius = unpack(target.near, shape[1]).flat[pred_pixel]
        is_within_double = unpack(around.near, shape[1]).flat[pred_pixel]
        false_codes = np.select([is_within_radius, is_within_double], [duplicate, near], background)
    # (code, pixels, bits: the steps at which each pixel has the code). Where the annotators of a
    # pixel differ, the first code that applies is shown: matched, false, or one of the missed
    layers = [(int(PixelClass.MATCHED), pixel_bits.matched_pixel, pixel_bits.matched)]
    for code in np.unique(false_codes).tolist():
        is_of_code = false_codes == code
        layers.append((code, pred_pixel[is_of_code], false_bits[is_of_code]))
    for code, missed_bits in _missed_bits(pixel_bits, errors).items():
        layers.append((code, gt_pixel, missed_bits))
    classes = np.zeros((pixel.size, n_steps), np.uint8)  # a row for each pixel that is drawn
    for code, pixels, bits in reversed(layers):  # so that an earlier code replaces later ones
        code_bits = np.zeros((pixel.size, bits.shape[1]), np.uint64)
        np.bitwise_or.at(code_bits, np.searchsorted(pixel, pixels), bits)
        classes[unpack(code_bits, n_steps)] = code

    # A backwards matching starts at the lowest threshold, `changes` and `size` at the highest
    ascending = slice(None, None, 1 if pixel_bits.backwards else -1)
    matched_gt = pixel_bits.matched_gt[ascending]
    matched_pred = count_set_bits(pixel_bits.matched)[0, :n_steps][ascending]
    total_gt = np.full_like(matched_gt, gt_pixel.size)
    matches = np.stack([matched_gt, total_gt, matched_pred, size[::-1]], axis=-1)
    class_changes = changes_of(np.ascontiguousarray(classes[:, ascending]), shape, pixel)
    return {"steps": OverlaySteps(thresholds, matches, *class_changes, areas=False)}


def _missed_bits(pixel_bits: PixelSteps, errors: bool) -> dict[int, NDArray[np.uint64]]:
    """Return the steps (thresholds) at which each annotated pixel is in each class of missed ones.

    pixel_bits: has rows of bits for annotated pixels, uint64 (pixels, words). Bit k of a row of
        `gt_matched` is set if the pixel is matched at step k, of `near_false` if it is missed and a
        false pixel is near. `is_matched_at_lowest` (pixels,) is True for pixels that are matched at
        the lowest threshold.
    errors: if True, there are three classes, with the codes in `ERROR_CODES`; otherwise, all missed
        pixels have the code PixelClass.MISSED.

    Returns code of the class -> bits of the same form. Steps in two classes count for the first.
    """
    missed = ~pixel_bits.gt_matched
    if not errors:
        return {PixelClass.MISSED: missed}
    bits_of_class = {
        "suppressed": np.where(pixel_bits.is_matched_at_lowest[:, None], missed, 0),
        "near_missed": pixel_bits.near_false,
        "absent": missed & ~pixel_bits.near_false,
    }
    return {ERROR_CODES[name]: bits_of_class[name] for name in MISSED}


def boundary_errors(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol | str | None = None,
    *,
    dropped: Bool | None = None,
) -> MatchCounts:
    """Count the missed, false and matched boundary pixels of one image by class.

    At each threshold, the classes of errors add up to all missed and all false pixels. Let r be the
    matching tolerance. A missed pixel is suppressed if it is matched at the lowest threshold, else
    near if a false pixel lies within 2r, else absent. A false pixel is a duplicate if an annotated
    pixel lies within r, else near if one lies within 2r, else background.

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
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])
    target = prepare_truth(gt_maps, radius)
    around = unmatched.prepare_surroundings(target, radius)
    # `changes`: the pixels that enter or leave the predicted map, from the highest threshold on
    at_thresholds = threshold_changes(pred, shape, protocol, around.near, dropped, valid)
    thresholds, changes, size = at_thresholds
    agreement = unmatched.agreement_of(target)  # class of each annotated pixel, or NO_CLASS (-1)
    errors = unmatched.classify_steps(changes, size, target, around, agreement)
    total_gt = np.full(thresholds.size, target.vertices.pixel.size)
    matches = np.column_stack([errors.matched_gt, total_gt, errors.matched_pred, size])
    agreement_pixels = np.bincount(agreement + 1, minlength=4)[1:]  # without NO_CLASS
    tables = {  # in order of ascending thresholds; steps begin at the highest
        "matches": matches[::-1],
        "missed": errors.missed[::-1],
        "false": errors.false[::-1],
        "agreement_matched": errors.agreement_matched[::-1],
    }
    if protocol.whole_image and pred.kind != "segs":
        thresholds = np.r_[0.0, thresholds]
        matches_of_all = whole_image_counts(gt_maps, valid)
        # Duplicates are within r of an annotated pixel but not matched, near pixels within 2r but
        # not r, and background pixels are all others
        n_matched, n_all = matches_of_all[[MATCHED_PRED, TOTAL_PRED]]
        within = (unpack(bits, shape[1]) for bits in (target.near, around.near))
        n_within = [without_void(mask, valid).sum() for mask in within]
        first_rows = {
            "matches": matches_of_all,
            "missed": np.zeros(3, np.int64),  # every annotated pixel is matched
            "false": np.diff([n_matched, *n_within, n_all]),
            "agreement_matched": agreement_pixels,
        }
        tables = {name: np.vstack([first_rows[name], rows]) for name, rows in tables.items()}
    return MatchCounts(thresholds, **tables, agreement_pixels=agreement_pixels)
