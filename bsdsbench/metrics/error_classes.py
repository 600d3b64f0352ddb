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
from bsdsbench.metrics.boundary import threshold_events, truth_maps, whole_image_counts
from bsdsbench.metrics.pixel_steps import DrawnSteps, PixelClass, changes_of
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
) -> dict[str, DrawnSteps]:
    """Classify the boundary pixels as matched, false or missed at each threshold, for overlays.

    A predicted pixel is matched or false. A pixel that is only annotated is missed if the pixel of
    at least one annotator is unmatched.

    pred, gts, protocol, dropped: as in `boundary_counts`. A threshold 0 that stands for the whole
        image is left out.
    errors: if True, the classes of false and missed pixels are those of `ERROR_CODES`, such as
        "duplicate", which tell why they are wrong; if False, they are FALSE and MISSED.

    Returns {"steps": DrawnSteps}, with a step for each threshold. It is a dict because this
    function can replace `boundary_counts` as the `counter` of a metric.
    """
    from bsdsbench.kernels.bits import count_set_bits, unpack
    from bsdsbench.kernels.matching.matching import prepare_truth
    from bsdsbench.kernels.matching.unmatched import match_by_pixel, prepare_surroundings

    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])
    target = prepare_truth(gt_maps, radius)
    around = prepare_surroundings(target, radius)
    thresholds, events, size = threshold_events(pred, shape, protocol, dropped=dropped, valid=valid)
    n_steps, steps = thresholds.size, match_by_pixel(events, target, around)
    is_predicted = steps.row_of.ravel() >= 0  # at any step
    pred_pixel = np.flatnonzero(is_predicted)
    is_drawn = is_predicted.copy()  # predicted or annotated
    is_drawn[target.vertices.pixel] = True
    pixel = np.flatnonzero(is_drawn)

    false_bits = steps.false[steps.row_of.flat[pred_pixel]]
    false_codes = np.full(pred_pixel.size, PixelClass.FALSE)
    if errors:  # a pixel has the same class at every threshold at which it is false
        duplicate, near, background = (ERROR_CODES[name] for name in FALSE)
        is_within_radius = unpack(target.near, shape[1]).flat[pred_pixel]
        is_within_double = unpack(around.near, shape[1]).flat[pred_pixel]
        false_codes = np.select([is_within_radius, is_within_double], [duplicate, near], background)
    # (code, pixels, bits: the steps at which each pixel has the code). Where the annotators of a
    # pixel differ, the first code that applies is shown: matched, false, or one of the missed
    layers = [(int(PixelClass.MATCHED), steps.matched_pixel, steps.matched)]
    for code in np.unique(false_codes).tolist():
        is_of_code = false_codes == code
        layers.append((code, pred_pixel[is_of_code], false_bits[is_of_code]))
    for code, missed in _missed_steps(steps, errors).items():
        layers.append((code, target.vertices.pixel, missed))
    classes = np.zeros((pixel.size, n_steps), np.uint8)  # a row for each pixel that is drawn
    for code, pixels, bits in reversed(layers):  # so that an earlier code replaces later ones
        has_code = np.zeros((pixel.size, bits.shape[1]), np.uint64)  # a bit for each step
        np.bitwise_or.at(has_code, np.searchsorted(pixel, pixels), bits)
        classes[unpack(has_code, n_steps)] = code

    # A backwards matching starts at the lowest threshold, `events` at the highest
    ascending = slice(None, None, 1 if steps.backwards else -1)
    matched_gt = steps.matched_gt[ascending]
    matched_pred = count_set_bits(steps.matched)[0, :n_steps][ascending]
    total_gt = np.full_like(matched_gt, target.vertices.pixel.size)
    matches = np.stack([matched_gt, total_gt, matched_pred, size[::-1]], axis=-1)
    changes = changes_of(np.ascontiguousarray(classes[:, ascending]), shape, pixel)
    return {"steps": DrawnSteps(thresholds, matches, *changes, areas=False)}


def _missed_steps(steps: PixelSteps, errors: bool) -> dict[int, NDArray[np.uint64]]:
    """Return the steps (thresholds) at which each annotated pixel is in each class of missed ones.

    Returns code of the class -> uint64 (annotated pixels, words). Bit k of a row is set if the
    pixel is in the class at step k. If `errors` is True, there are three classes, with the codes in
    `ERROR_CODES`; otherwise, the single class is PixelClass.MISSED.
    """
    is_missed = ~steps.gt_matched
    if not errors:
        return {PixelClass.MISSED: is_missed}
    steps_of_class = {
        "suppressed": np.where(steps.is_reached[:, None], is_missed, 0),
        "near_missed": steps.near_false,
        "absent": is_missed & ~steps.near_false,
    }
    return {ERROR_CODES[name]: steps_of_class[name] for name in MISSED}


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
        Only the first tolerance of the protocol is used.

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

    pred, truth, protocol = Prediction.of(pred), GroundTruth.of(gts), Protocol.load(protocol)
    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")
    shape, radius = gt_maps.shape[1:], protocol.radius(gt_maps.shape[1:])
    target = prepare_truth(gt_maps, radius)
    around = unmatched.prepare_surroundings(target, radius)
    thresholds, events, size = threshold_events(pred, shape, protocol, around.near, dropped, valid)
    agreement = unmatched.agreement_of(target)
    errors = unmatched.classify_steps(events, size, target, around, agreement)
    total_gt = np.full(thresholds.size, target.vertices.pixel.size)
    matches = np.column_stack([errors.matched_gt, total_gt, errors.matched_pred, size])
    agreement_pixels = np.bincount(agreement + 1, minlength=4)[1:]  # without NO_CLASS, -1
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
