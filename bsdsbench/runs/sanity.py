"""Checks of a run's predictions: are maps inverted, flipped, swapped, too thick or badly scaled?

`first_look` checks the first few images of a run and returns warnings. The doctor applies the same
functions to every image. `evidence_of` is independent of this: it notes properties of the values of
each image, by which `loaders.reading.check_all_values` judges all images together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import Fix, InputWarning, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, unit
from bsdsbench.loaders.reading import DARKER
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import ShowsLabels
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, Sides, Values
from bsdsbench.text import listed

LOOKS = 4  # number of images that are checked: the first by name, as neighbours are often swapped
Thumbnail = NDArray[np.floating[Any]]
_Thumbnails = tuple[str, Thumbnail, Thumbnail]  # image id, thumbnails of the map and of the GT
_Finding = tuple[str, Fix | None]  # a fault, as the end of "N maps ...", and the suggested fix
FILLED: _Finding = ("have filled areas as ground truth, not lines", "metric contour for masks")
RAW: _Finding = ("have broad edges, whose precision is low without NMS", Setting("nms"))
# A map is inverted if 1 - value is more than this many times larger on the ground truth than off it
MUCH_DARKER = 1.3
# Correlations between thumbnails, measured on BSDS500 val and the sample: 0.22 to 0.85 between a
# map and its ground truth (0.03 for one map), up to 0.24 with the ground truth of other images, and
# up to 0.26 if the map is flipped
AROUND = 9  # side of the square whose mean is subtracted, because all images share a coarse layout
_ALIKE = 0.2  # smallest correlation at which a map fits a ground truth
_CHANCE = 18.0  # five standard deviations of the correlation of n random pixels: 18 / sqrt(n)
BETTER = 2.0  # a fit is clearly better from this many times the correlation of the upright map on
# Limit of `thickness`. Raw maps have 0.99, maps thinned by NMS up to 0.88 (multiplier 1.03 or more)
_BROAD = 0.95
# The largest value of a faint map, by the number of bytes per value. A faint map holds bytes of 0
# and 1, 8-bit values saved as 16 bit, or values divided by 255 twice. A single faint map may be an
# image without boundaries; a set of faint maps was saved wrongly, because every detector has
# stronger boundaries somewhere in a set.
_MAX_FAINT = {1: 9, 2: 255}
FLIPS = (
    ("mirrored left to right", np.fliplr),
    ("upside down", np.flipud),
    ("turned by 180 degrees", partial(np.rot90, k=2)),
    ("transposed", np.transpose),
)


class Look(NamedTuple):
    """The maps of one image that `first_look` compares."""

    pred: Prediction
    soft: F8  # (H, W): the soft map in [0, 1], inverted if the protocol says so; (0, 0) if none
    # (H, W): the number of annotators that mark each pixel; (0, 0) if their maps differ in size
    truth: F8
    measured: bool  # True if both maps have the same size and neither is constant


def look_at(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Look:
    """Return the soft map and the annotated pixels of an image, for `first_look` to compare."""
    soft = truth = np.zeros((0, 0))
    if pred.kind in ("soft", "ucm2"):
        soft = unit(pred.boundary_map())
        soft = 1 - soft if protocol.invert else soft
    if len({boundary_map.shape for boundary_map in gt.boundaries}) == 1:
        truth = np.sum(gt.boundaries, axis=0, dtype=np.float64)
    fits = soft.shape == truth.shape and soft.size > 0
    return Look(pred, soft, truth, fits and bool(np.ptp(soft) > 0 and np.ptp(truth) > 0))


def first_look(
    looks: Sequence[Look], protocol: Protocol, unused: Collection[str]
) -> list[InputWarning]:
    """Return warnings about the first images of a run.

    The checks are made in this order, and the first one that fails ends them:

    1. Inverted maps: most maps are much darker on annotated boundaries than elsewhere.
    2. Flipped maps: a map fits its ground truth clearly better when mirrored, rotated or
       transposed. There is one warning for each kind of flip.
    3. Swapped maps: a map fits the ground truth of another image.
    4. Thick maps (`_find_thick_maps`). This is only checked if the protocol thins maps without NMS,
       and a score depends on NMS and on the match tolerance.

    Images whose `measured` is False are ignored. `unused` are the fields of the protocol on which
    no score of the run depends.
    """
    looks = [look for look in looks if look.measured]
    ids_by_finding: dict[_Finding, list[str]] = {}
    dark_ids = [look.pred.image_id for look in looks if _has_dark_boundaries(look)]
    if 2 * len(dark_ids) > len(looks):
        ids_by_finding[DARKER, Setting("invert", not protocol.invert)] = dark_ids
    else:
        ids_by_finding = _find_misplaced_maps(looks)
    needs_thin_lines = protocol.thin and not protocol.nms and not {"nms", "max_dist"} & set(unused)
    if not ids_by_finding and needs_thin_lines:
        ids_by_finding = _find_thick_maps(looks)
    warnings = []
    for (description, fix), ids in ids_by_finding.items():
        line = f"{len(ids)} of {len(looks)} maps looked at {description} [{listed(ids, 3)}]"
        warnings.append(InputWarning(line, fix=fix or ()))
    return warnings


def _find_misplaced_maps(looks: Sequence[Look]) -> dict[_Finding, list[str]]:
    """Return the ids of flipped maps by the kind of flip or, without any, pairs of swapped maps."""
    ids_by_finding: dict[_Finding, list[str]] = {}
    thumbnails = []
    for look in looks:
        image_id = look.pred.image_id
        small_map, small_truth = thumbnail(look.soft), thumbnail(look.truth)
        thumbnails.append((image_id, small_map, small_truth))
        if orientation := best_orientation(small_map, small_truth):
            flipped = (f"fit their ground truth only {orientation}", None)
            ids_by_finding.setdefault(flipped, []).append(image_id)
    if not ids_by_finding:
        swaps = [f"{a} looks like {b}" for a, b in find_swaps(thumbnails)]
        if swaps:
            ids_by_finding["fit the ground truth of another image", None] = swaps
    return ids_by_finding


def _find_thick_maps(looks: Sequence[Look]) -> dict[_Finding, list[str]]:
    """Return the ids of soft maps with broad edges, if most soft maps have them for one reason.

    The reason is FILLED if the ground truth is thick too, because it marks areas, and else RAW.
    """
    ids_by_reason: dict[_Finding, list[str]] = {FILLED: [], RAW: []}
    n_soft = 0
    for look in looks:
        if look.pred.kind == "soft":
            n_soft += 1
            if thickness(look.soft) > _BROAD:
                reason = FILLED if thickness(look.truth) > _BROAD else RAW
                ids_by_reason[reason].append(look.pred.image_id)
    return {reason: ids for reason, ids in ids_by_reason.items() if 2 * len(ids) > n_soft}


def _sample_lines(values: Map) -> Map:
    """Return up to 16 evenly spaced rows of a map (H, W).

    If the map is stored column by column, columns are returned instead, because that is faster.
    """
    lines = values.T if values.strides[0] < values.strides[1] else values
    return lines[:: 1 + len(lines) // 16]


def _is_faint(soft: Map, protocol: Protocol, has_thresholds: bool = True) -> bool:
    """Return True if a soft map was probably saved on a wrong scale, because its values are small.

    An integer map is faint if no value exceeds _MAX_FAINT. Any map is faint if no value reaches the
    protocol's lowest threshold above 0; this is not checked without `has_thresholds`. Bool maps,
    and all maps if the protocol normalises them, are never faint.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    max_faint = _MAX_FAINT[soft.dtype.itemsize] if soft.dtype.kind == "u" else -1  # -1: no limit
    lowest = min(filter(None, protocol.thresholds)) if has_thresholds else 0
    for lines in (_sample_lines(soft), soft):  # a few rows are enough for most maps
        largest = lines.max(initial=0)
        is_on = float(unit(np.asarray(largest))) >= lowest  # scaled to [0, 1]
        if largest > max_faint and is_on:
            return False
    return True


def evidence_of(
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> Sides:
    """Return the properties of an image's values, by which all images are later judged together.

    A soft map is FAINT or STRONG (`_is_faint`), and DARK or LIGHT (`_polarity`). Floats that come
    from no file are always STRONG, as a network in training may return any numbers. If the metric
    interprets labels, the evidence of the label maps on both sides is added.

    pred: the prediction; None if there is no file, and the prediction then has no evidence.
    has_thresholds: False if the metric has no lowest threshold that a soft map must reach.
    """
    gt_evidence = gt.evidence
    pred_evidence = NO_EVIDENCE
    if not gt_evidence.maps:  # arrays, whose values leave no doubt
        gt_evidence = Evidence(maps=max(1, len(gt.boundaries)), file=gt.file)
    if pred is not None:
        pred_evidence = evolve(pred.evidence, maps=max(pred.evidence.maps, 1), file=pred.file)
        if pred.kind in ("soft", "ucm2"):
            soft = pred.parts[pred.kind]
            strength = Values.STRONG
            may_be_faint = pred.path or soft.dtype.kind == "u"
            if may_be_faint and _is_faint(soft, protocol, has_thresholds):
                strength = Values.FAINT
                pred_evidence = evolve(pred_evidence, strongest=float(soft.max(initial=0)))
            values = strength | _polarity(pred, gt, protocol)
            pred_evidence = evolve(pred_evidence, values=values)
    if isinstance(metric, ShowsLabels):
        options = metric.options_of(protocol)
        if "labels" in gt.parts:
            gt_evidence = gt_evidence | metric.label_evidence(gt.labels, options, truth=True)
        if pred is not None and pred.kind == "classes" and pred.classes.ndim == 2:
            labels = metric.label_evidence(pred.classes, options, truth=False)
            pred_evidence = pred_evidence | labels
    return Sides(pred_evidence, gt_evidence)


def _polarity(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Values:
    """Tell whether a soft map draws boundaries dark (DARK) or light (LIGHT).

    A map whose mean is below one half is LIGHT: boundaries cover little of an image, so that a map
    with dark boundaries is bright overall. A brighter map is DARK if it is much darker on annotated
    boundaries than elsewhere, and else LIGHT. NOTHING is returned for an empty map, and for a
    bright one that is constant or has no ground truth of its size. If the protocol inverts maps,
    all this concerns the inverted map.
    """
    if 0 in pred.shape:
        return Values.NOTHING
    # The benchmark takes every second value of a ucm2 map (2 H + 1, 2 W + 1) as a map (H, W)
    soft = pred.soft if pred.kind == "soft" else pred.ucm2[2::2, 2::2]
    white = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    # A few rows, with a stricter limit, are enough for most maps and save averaging the whole map
    for lines, limit in ((_sample_lines(soft), 0.25), (soft, 0.5)):
        mean = float(lines.mean()) / white
        if (1 - mean if protocol.invert else mean) < limit:
            return Values.LIGHT
    look = look_at(pred, gt, protocol)
    if not look.measured:
        return Values.NOTHING
    return Values.DARK if _has_dark_boundaries(look) else Values.LIGHT


def _has_dark_boundaries(look: Look) -> bool:
    """Return True if a map is bright overall but much darker on annotated boundaries.

    The mean of the map must be above 0.5, and 1 - value must be on average more than MUCH_DARKER
    times larger in blocks with annotated pixels than in other blocks. Returns False if all blocks
    are of one kind.
    """
    if not look.soft.mean() > 0.5:
        return False
    darkness = 1 - _block_means(look.soft)
    is_marked = _block_means(look.truth) > 0
    has_both = is_marked.any() and not is_marked.all()
    return bool(has_both and darkness[is_marked].mean() > MUCH_DARKER * darkness[~is_marked].mean())


def _block_means(values: F8) -> F8:
    """Return the means of blocks of 4 x 4 pixels of a map (H, W), or of 2 x 2 if H or W < 200.

    Rows and columns at the end that fill no block are left out.
    """
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side, values.shape[1] // side
    blocks = values[: rows * side, : cols * side].reshape(rows, side, cols, side)
    return np.asarray(blocks.mean(axis=(1, 3)))


def thumbnail(values: F8) -> F8:
    """Shrink a map (H, W) to block means, smooth it, subtract the local mean, and scale to norm 1.

    The sum of the products of two thumbnails is their correlation. A constant map gives zeros.
    """
    # Sums of shifted copies replace scipy's filters, whose import takes longer than all of this
    small = _smoothed(_block_means(values), (1, 4, 6, 4, 1))
    small = small - _smoothed(small, (1,) * AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, weights: Sequence[float]) -> F8:
    """Convolve the columns and rows of a map (H, W) with the weights, divided by their sum.

    Beyond the border the outermost values are repeated.
    """
    for _ in range(2):  # along the first axis; the map is transposed each time
        half = len(weights) // 2
        padded = np.pad(values, ((half, half), (0, 0)), "edge")
        summed = np.zeros_like(values)
        for k, weight in enumerate(weights):
            summed += weight * padded[k : k + len(values)]
        values = (summed / sum(weights)).T
    return values


def best_orientation(pred: Thumbnail, truth: Thumbnail) -> str:
    """Return the name of the flip that makes a prediction fit its ground truth clearly better.

    Returns "" if there is none. Both arguments are thumbnails of the same shape.
    """
    best_name = ""
    best_fit = _min_convincing_fit(pred.size, float((pred * truth).sum()))
    for name, flip in FLIPS:
        flipped = flip(pred)
        if flipped.shape == truth.shape:  # transposing changes it unless the map is square
            fit = float((flipped * truth).sum())
            if fit > best_fit:
                best_fit, best_name = fit, name
    return best_name


def _min_convincing_fit(n_pixels: int, own_fit: float) -> float:
    """Return the correlation that a flipped map, or another ground truth, must exceed.

    This is the largest of three limits: the correlation of maps that fit at all, the correlation
    that two thumbnails of `n_pixels` may reach by chance, and BETTER times `own_fit`, the
    correlation between the unflipped map and its ground truth.
    """
    return max(_ALIKE, _CHANCE / math.sqrt(n_pixels), BETTER * own_fit)


def find_swaps(thumbnails: Iterable[_Thumbnails]) -> list[tuple[str, str]]:
    """Return likely swaps, as (id of a map, id of the other image whose ground truth it fits).

    A swap is reported if, among the images whose thumbnails have the same shape, the map and the
    other ground truth are each other's best match, and match clearly better than the map and its
    own ground truth. Two swapped maps usually give two pairs.
    """
    by_shape: dict[tuple[int, ...], list[_Thumbnails]] = {}
    for images in thumbnails:
        by_shape.setdefault(images[1].shape, []).append(images)
    swapped = []
    for same_shape in by_shape.values():
        ids, preds, truths = zip(*same_shape, strict=True)
        # (n, n): correlation between each map (row) and each ground truth (column)
        fits = np.tensordot(np.stack(preds), np.stack(truths), ((1, 2), (1, 2)))
        for k, best in enumerate(fits.argmax(axis=1).tolist()):
            is_mutual = fits[:, best].argmax() == k
            least = _min_convincing_fit(preds[0].size, fits[k, k])
            if best != k and is_mutual and fits[k, best] > least:
                swapped.append((ids[k], ids[best]))
    return swapped


def thickness(soft: F8) -> float:
    """Return the fraction of strong pixels that lie in a 2 x 2 square of strong pixels.

    Lines one pixel wide give 0, broad edges almost 1, and a map of zeros NaN. The fraction is the
    mean over three definitions of "strong": pixels from the median, from the upper quartile, and
    from the upper tenth of the non-zero values on.
    """
    values = soft[soft > 0]
    if not values.size:
        return math.nan
    fractions = []
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        squares = strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:]
        # (H + 1, W + 1): entry (y, x) is the square whose bottom right pixel is (y, x)
        full = np.pad(squares, 1)
        in_square = full[:-1, :-1] | full[1:, :-1] | full[:-1, 1:] | full[1:, 1:]
        fractions.append(in_square.sum() / strong.sum())
    return float(np.mean(fractions))
