"""Check whether predicted maps are inverted, flipped, swapped, too thick or on the wrong scale.

`first_look` checks the first images of a run, and the `doctor` command applies the same functions
to every image. `evidence_of` collects statistics of each image's values, which
`loaders.reading.check_all_values` pools over all images of the run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, Bool
from bsdsbench.errors import DataError, Fix, InputWarning, InvertedWarning, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, unit
from bsdsbench.loaders.labels import lone_white
from bsdsbench.loaders.reading import DARKER
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import Diagnosed, ShowsLabels, Symptom
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.areas import comparable_areas, is_dark_on_mask
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, Sides, Values
from bsdsbench.text import listed

# The windows of `_smoothed` for the weights 1, 4, 6, 4, 1, and for the mean of 9 x 9 pixels, which
# is subtracted because all images share a coarse layout
_BLUR, _AROUND = ((2, 1),) * 4, ((3, 1), (3, 3))
# These limits are based on correlations between thumbnails on BSDS500 val and the sample: 0.22 to
# 0.85 between a map and its ground truth (0.03 for one map), up to 0.24 between a map and the
# ground truth of another image, and up to 0.26 between a flipped map and its ground truth.
_LEAST_FIT = 0.2  # the smallest correlation at which a map is considered to fit a ground truth
# Thumbnails of n random pixels hardly ever have a correlation above this value / sqrt(n), which is
# five standard deviations of the correlation
_FIT_OF_NOISE = 18.0
# A flip, or the ground truth of another image, fits a map "clearly better" if the correlation is at
# least this many times that of the unflipped map with the ground truth of its own image
CLEARLY_BETTER = 2.0
# Name of a flip, whether it transposes a map, and by how many quarters it then turns it to the left
FLIPS = (
    ("mirrored left to right", True, 3),
    ("upside down", True, 1),
    ("turned by 180 degrees", False, 2),
    ("transposed", True, 0),
    ("turned to the left", False, 1),
    ("turned to the right", False, 3),
    ("transposed and turned by 180 degrees", True, 2),
)
LOOKS = 4  # number of images to check: the first by name, because neighbours are often swapped
_Mistake = tuple[str, Fix | None]  # its description, which completes "N maps ...", and a fix
COVERED = "have ground truth in which most pixels are boundary (dark lines on white?)"
_AREAS = {"mask", "labels"}  # parts of a ground truth that are areas instead of lines
_CONTOUR = "--metrics contour scores masks"
FILLED: _Mistake = ("have filled areas as ground truth, not lines", _CONTOUR)
SWAPPED: _Mistake = ("fit the ground truth of another image", "check the names of the files")
SAME: _Mistake = ("are the same map", "save one map per image")
CONSTANT: _Mistake = ("have one value everywhere, unlike their ground truth", "predict again")
RAW: _Mistake = ("have broad edges, whose precision is low without NMS", Setting("nms"))
# A map is inverted if 1 - value is more than this many times larger on the ground truth than off it
MUCH_DARKER = 1.3
FEWEST_TURNED = 3  # masks or label maps that fit better when turned in the same way
# Maps whose `thickness` exceeds this value have broad edges. Raw maps have about 0.99, and maps
# thinned by NMS up to 0.88 (with a multiplier of 1.03 or more).
_BROAD_EDGES = 0.95
# Number of bytes per value -> the largest value of a faint map. A faint map has bytes 0 and 1, or
# 8-bit values saved as 16 bit. One may be an image without boundaries. If all maps are faint, they
# were saved wrongly, because every detector finds stronger boundaries somewhere in a set.
_MAX_FAINT = {1: 9, 2: 255}
# Cameras and instruments have 10 or 12 bits: no value of theirs exceeds this when saved as 16 bits
_TWELVE_BITS = 4095
_LITTLE = 0.1  # a smaller share of the annotated pixels is expected to count only by mistake


class Look(NamedTuple):
    """The maps of one image for the checks of `first_look` and of the doctor."""

    pred: Prediction
    gt: GroundTruth
    soft: F8  # (H, W) in [0, 1], inverted if the protocol inverts maps; (0, 0) without a soft map
    truth: F8  # (H, W) number of annotators that mark each pixel; (0, 0) without boundaries
    is_comparable: bool  # True if `soft` and `truth` have the same shape, and neither is constant


def look_at(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Look:
    """Prepare one image for the checks for mistakes such as inverted maps (`first_look`)."""
    # A soft map beside a mask without boundaries is left out: it would be compared with boundaries
    soft = truth = np.zeros((0, 0))
    if pred.kind in ("soft", "ucm2") and (gt.boundaries or "mask" not in gt.parts):
        soft = unit(pred.boundary_map())  # floats in [0, 1]
        soft = 1 - soft if protocol.invert else soft
    if gt.boundaries:
        truth = np.sum(gt.boundaries, axis=0, dtype=np.float64)
    is_same_shape = soft.shape == truth.shape and soft.size > 0
    is_comparable = is_same_shape and bool(np.ptp(soft) > 0 and np.ptp(truth) > 0)  # not constant
    return Look(pred, gt, soft, truth, is_comparable)


def find_symptoms(
    pred: Prediction,
    gt: GroundTruth,
    protocol: Protocol,
    metrics: Iterable[Metric[Any]],
    areas: Thumbnails | None = None,
) -> Iterator[Symptom]:
    """Yield (code, description, fix) for each sign of a wrong setting or file in one image.

    The code is "turned" for a map that fits the ground-truth mask or labels only mirrored, rotated
    or transposed, "inverted" for a map that is darker on the ground-truth mask than elsewhere, and
    "outside" if nearly all that is annotated is void, "void" if a region probably is, and "volume"
    if the maps are probably slices. Metrics add symptoms with codes of their own.

    areas: thumbnails of map and truth (`area_thumbnails`). With None, "turned" is not looked for.
    """
    orientation = "" if areas is None else best_orientation(areas.pred, areas.truth)
    if orientation:  # "" if it is right
        yield "turned", f"maps fit the ground truth only {orientation}", "turn them back"
    if "mask" in gt.parts and is_dark_on_mask(pred, gt, protocol):
        problem = "the map is darker on the object than beside it"
        yield "inverted", problem, Setting("invert", not protocol.invert)
    # `valid` is False for void pixels, such as those outside a field of view
    drawn_maps = (gt.mask,) if "mask" in gt.parts else gt.boundaries
    if drawn_maps and "valid" in gt.parts:
        drawn = np.any(drawn_maps, axis=0)
        if np.count_nonzero(drawn[gt.valid]) < _LITTLE * np.count_nonzero(drawn):
            fix = "0 is what does not count in a field of view"
            yield "outside", "nearly all that is annotated lies in pixels that do not count", fix
    n_maps = len(pred.parts.get("segs", ()))
    if n_maps == len(gt.boundaries) and n_maps >= 10:  # hardly those of thresholds
        problem = f"there are {n_maps} label maps beside as many annotators: slices of a volume?"
        yield "volume", problem, "save a file for each slice"
    has_regions = protocol.gt_kind == "labels"
    for metric in metrics:
        has_regions |= metric.segmentations
        if isinstance(metric, Diagnosed):
            opt = metric.options_of(protocol)
            if metric.fits(pred, gt, opt):
                yield from metric.symptoms(pred, gt, protocol, opt)
    if has_regions:
        for white in filter(None, map(lone_white, gt.parts.get("segmentations", ()))):
            problem = f"{white} is a region of the truth like its other labels: is it void?"
            fix = "give its pixels the labels beside them, or (not of metric region) use --valid"
            yield "void", problem, fix


def first_look(
    looks: Sequence[Look],
    protocol: Protocol,
    unused: Collection[str],
    metrics: Sequence[Metric[Any]] = (),
) -> list[InputWarning]:
    """Return a warning for each mistake that the first images of a run suggest.

    Of the following checks, only the first that finds a mistake is reported:

    1. Inverted ground truth: in most images, most pixels are boundaries (only if they are matched).
    2. Inverted maps: most maps are much darker on annotated boundaries than elsewhere.
    3. Mistaken files: predictions are constant or all the same although their ground truth is not,
       or most of them fit the mask or labels of another image.
    4. Flipped maps: a map fits its ground truth clearly better mirrored, rotated or transposed.
    5. Swapped maps: a map fits the ground truth of another image clearly better than its own.
    6. Thick maps: most maps have broad edges (only if boundaries are matched, thinned without NMS).

    In addition, symptoms of single images are reported if most images have them, except the scale
    of depth maps, which affects few measures, and so are 16-bit maps that use at most 12 bits.

    unused: protocol fields that no metric of the run uses. metrics: those whose symptoms count.
    """
    comparable = [look for look in looks if look.is_comparable]
    dark = [look for look in comparable if has_dark_boundaries(look.soft, look.truth)]
    # Boundaries cover most pixels
    covered = [look for look in comparable if look.truth.mean() > look.truth.max() / 2]
    n_compared = len(comparable)
    common = _find_common_symptoms(looks, protocol, metrics)
    is_matched = not {"nms", "max_dist"} & set(unused)  # the run matches boundary pixels
    ids_by_mistake = _find_flipped_or_swapped(comparable)
    if is_matched and 2 * len(covered) > n_compared:  # most truths are probably inverted
        inverted_truth = COVERED, Setting("gt_invert", not protocol.gt_invert)
        ids_by_mistake = {inverted_truth: [look.pred.image_id for look in covered]}
    elif 2 * len(dark) > n_compared:  # most maps are
        inverted_maps = DARKER, Setting("invert", not protocol.invert)
        ids_by_mistake = {inverted_maps: [look.pred.image_id for look in dark]}
    if not ids_by_mistake and is_matched and protocol.thin and not protocol.nms:
        ids_by_mistake = _find_thick_maps(comparable)
    if 2 * max(len(covered), len(dark)) <= n_compared:  # neither maps nor truth are inverted
        mistaken_files = _find_mistaken_files(looks, common.thumbnails)
        if mistaken_files:
            ids_by_mistake, n_compared = mistaken_files, len(looks)
    warnings = list[InputWarning]()
    maxima = [int(x.pred.soft.max(initial=0)) for x in looks if x.pred.form == "soft16"]
    # Above 255, because maps of 8 bits in 16 are reported as faint once all images are counted
    has_few_bits = maxima and min(maxima) > _MAX_FAINT[2] and max(maxima) <= _TWELVE_BITS
    if has_few_bits and not protocol.normalise:
        normalise = Setting("normalise", True, "divides each map by its maximum")
        has = f"no value above {max(maxima)} of 65535 in the checked maps"
        warnings.append(InputWarning(f"{has} (10 or 12 bit saved as 16?)", fix=normalise))
    for (code, problem, fix), ids in common.ids_by_symptom.items():
        # A shifted mask of a centred object may fit better when it is turned
        is_chance = code == "turned" and len(ids) < FEWEST_TURNED
        if 2 * len(ids) > len(looks) and code != "scale" and not is_chance:
            line = f"{problem} in {len(ids)} of {len(looks)} checked images [{listed(ids, 3)}]"
            kind = InvertedWarning if code == "inverted" else InputWarning
            warnings.append(kind(line, fix=fix))
    for (description, remedy), ids in ids_by_mistake.items():
        line = f"{len(ids)} of {n_compared} checked maps {description} [{listed(ids, 3)}]"
        kind = InvertedWarning if description is DARKER else InputWarning
        warnings.append(kind(line, fix=remedy or ()))
    return warnings


class _CommonSymptoms(NamedTuple):
    ids_by_symptom: dict[Symptom, list[str]]  # the images that have the symptom
    thumbnails: list[Thumbnails]  # those of `area_thumbnails`


def _find_common_symptoms(
    looks: Sequence[Look], protocol: Protocol, metrics: Sequence[Metric[Any]]
) -> _CommonSymptoms:
    """Find symptoms and thumbnails of the first images, until half of LOOKS images are sound.

    A mistake in the others would not be reported, as this takes more than half of the images. If a
    metric raises DataError for an image, only the symptoms up to then are included.
    """
    n_sound = 0  # images without symptoms whose maps cannot fit another ground truth clearly better
    common = _CommonSymptoms({}, [])
    for pred, gt, *_ in looks:
        if 2 * n_sound >= LOOKS:
            break
        areas, symptoms, fit = area_thumbnails(pred, gt, protocol), set[Symptom](), 1.0
        with suppress(DataError):  # counting the image raised the same error
            symptoms.update(find_symptoms(pred, gt, protocol, metrics, areas))
        for symptom in sorted(symptoms, key=str):
            common.ids_by_symptom.setdefault(symptom, []).append(pred.image_id)
        if areas is not None:
            common.thumbnails.append(areas)
            fit = float((areas.pred * areas.truth).sum())  # correlation with its own ground truth
        n_sound += not symptoms and CLEARLY_BETTER * fit >= 1
    return common


def _find_mistaken_files(
    looks: Sequence[Look], thumbnails: Sequence[Thumbnails]
) -> dict[_Mistake, list[str]]:
    """Find signs that predictions come from wrong files, and return the first: {mistake: ids}.

    - CONSTANT: all of two or more predictions have one value everywhere, although their ground
      truth has not. Half of them are enough for soft maps; those that are all 0 are not counted,
      because some images have no boundary.
    - SAME: LOOKS images have the same prediction but different ground truth.
    - SWAPPED: more than half of the masks and label maps fit the ground truth of another image. In
      place of ids, the result has texts "ID looks like OTHER_ID".
    """
    is_soft = bool(looks) and looks[0].pred.kind in ("soft", "ucm2")
    constant = list[str]()  # ids
    first: Sequence[Map] = ()  # the maps of the first prediction
    n_same, are_all_empty = 0, True  # `n_same`: how many equal the first prediction
    for look in looks:
        parts, predicted = look.gt.parts, look.pred.parts[look.pred.kind]
        # Label maps for several thresholds are a tuple of maps
        values: Sequence[Map] = predicted if isinstance(predicted, tuple) else (predicted,)
        first = first or values
        is_same = len(values) == len(first)
        for a, b in zip(values, first, strict=False):
            # Most maps already differ in every 16th row
            is_same = is_same and np.array_equal(a[::16], b[::16]) and np.array_equal(a, b)
        n_same += is_same
        # The first of these that the ground truth has
        truth = parts.get("mask", parts.get("labels", parts.get("depth", look.truth)))
        lowest = values[0].flat[0]
        is_constant = True
        for a in values:
            is_constant = is_constant and bool((a[::16] == lowest).all() and (a == lowest).all())
        is_empty = is_constant and not lowest
        is_mistake = is_constant and not (is_soft and is_empty)
        if is_mistake and np.size(truth) and truth.min() < truth.max():
            constant.append(look.pred.image_id)
        are_all_empty &= is_empty
    # `Readings.check_values` warns of a set in which nothing is predicted
    is_reported = are_all_empty and (is_soft or any("mask" in look.gt.parts for look in looks))
    fewest = max(2, len(looks) / 2 if is_soft else len(looks))  # half of soft maps are enough
    if len(constant) >= fewest and not is_reported:
        return {CONSTANT: constant}
    are_same = n_same == len(looks) == LOOKS and not constant and not are_all_empty
    if are_same and len({look.gt.fingerprint for look in looks}) > 1:
        return {SAME: [look.pred.image_id for look in looks]}
    swaps = find_swaps(thumbnails)
    if 2 * len(swaps) > len(looks):
        return {SWAPPED: [f"{image_id} looks like {other_id}" for image_id, other_id in swaps]}
    return {}


def _find_flipped_or_swapped(looks: Sequence[Look]) -> dict[_Mistake, list[str]]:
    """Find flipped maps and, if there are none, swapped maps: {mistake: image ids}.

    Each way in which maps are flipped, such as "upside down", is a mistake of its own. For swapped
    maps, the ids are texts "ID looks like OTHER_ID".
    """
    ids_by_mistake: dict[_Mistake, list[str]] = {}
    thumbnails = []
    for look in looks:
        image_id = look.pred.image_id
        small_map, small_truth = thumbnail(look.soft), thumbnail(look.truth)
        thumbnails.append(Thumbnails(image_id, small_map, small_truth))
        orientation = best_orientation(small_map, small_truth)  # "" if it is right
        if orientation:
            flipped = (f"fit their ground truth only {orientation}", None)
            ids_by_mistake.setdefault(flipped, []).append(image_id)
    if not ids_by_mistake:
        for image_id, other_id in find_swaps(thumbnails):
            ids_by_mistake.setdefault(SWAPPED, []).append(f"{image_id} looks like {other_id}")
    return ids_by_mistake


def _find_thick_maps(looks: Sequence[Look]) -> dict[_Mistake, list[str]]:
    """Find out whether most soft maps have broad edges: {mistake: image ids}, {} if they have not.

    The mistake of a map is FILLED if its ground truth has broad edges too, because this marks areas
    instead of lines. Otherwise it is RAW, a map that was not thinned. The one of the two that
    applies to more than half of the soft maps is returned.
    """
    n_soft = 0
    ids_by_reason: dict[_Mistake, list[str]] = {FILLED: [], RAW: []}
    for look in looks:
        if look.pred.kind == "soft":
            n_soft += 1
            if thickness(look.soft) > _BROAD_EDGES:
                reason = FILLED if thickness(look.truth) > _BROAD_EDGES else RAW
                ids_by_reason[reason].append(look.pred.image_id)
    for reason, ids in ids_by_reason.items():
        if 2 * len(ids) > n_soft:
            return {reason: ids}
    return {}


def _sample_lines(values: Map) -> Map:
    """Return about 16 evenly spaced rows of an (H, W) map, or columns if these are contiguous."""
    lines = values.T if values.strides[0] < values.strides[1] else values
    return lines[:: 1 + len(lines) // 16]


def _is_faint(soft: Map, protocol: Protocol, has_thresholds: bool = True) -> bool:
    """Return True if the values of a soft map are so small that its scale is probably wrong.

    A map is faint in two cases. It has unsigned integers of at most _MAX_FAINT (9 in 8 bits, 255 in
    16). Or all values, scaled to [0, 1], are below the smallest positive threshold; if
    `has_thresholds` is False, all values must be 0. Bool maps and maps that the protocol normalises
    are never faint.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    max_faint, white = -1, 1  # floats have no such limit, and 1 is white
    if soft.dtype.kind == "u":
        max_faint, white = _MAX_FAINT[soft.dtype.itemsize], np.iinfo(soft.dtype).max
    # 5e-324, the smallest positive float, is reached by all values except 0
    smallest_threshold = min(filter(None, protocol.thresholds)) if has_thresholds else 5e-324
    # Test a sample of rows first, and the whole map only if the sample looks faint
    for lines in (_sample_lines(soft), soft):
        largest = lines.max(initial=0)
        if largest > max_faint and float(largest) / white >= smallest_threshold:  # not faint
            return False
    return True


def evidence_of(
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> Sides:
    """Collect statistics of one image's values, to detect wrong conventions such as inverted maps.

    One image is not enough to tell, so the statistics are later pooled over all images. They are
    those collected when the files were read, and also flags: FAINT if all values of a soft map are
    so small that the scale is probably wrong, otherwise STRONG; NARROW for a faint map whose
    maximum is the white of fewer bits; DARK if the map or mask is darker on the boundaries or the
    object than elsewhere, otherwise LIGHT. If the metric interprets labels, it adds statistics of
    the label maps.

    pred: the prediction. If it is None, its statistics are empty.
    has_thresholds: True if a metric thresholds soft maps; maps below all thresholds are then faint.
    """
    gt_evidence = gt.evidence
    pred_evidence = NO_EVIDENCE
    if not gt_evidence.maps:  # arrays, which are not ambiguous as files are
        gt_file = gt.path.name if gt.path else gt.image_id
        gt_evidence = Evidence(maps=max(1, len(gt.boundaries)), file=gt_file)
    if pred is not None:
        read = pred.evidence  # collected on reading
        values, strongest = read.values, read.strongest  # flags, and the maximum of a faint map
        if pred.kind in ("soft", "ucm2"):
            soft = pred.parts[pred.kind]
            # Float arrays are never faint: a network in training may return any values
            may_be_faint = pred.path is not None or soft.dtype.kind == "u"
            if may_be_faint and _is_faint(soft, protocol, has_thresholds):
                strongest = float(soft.max(initial=0))
                values |= Values.FAINT
                if strongest in (1, 255):  # 255 in 16 bits; in 8 bits, it would not be faint
                    values |= Values.NARROW
            else:
                values |= Values.STRONG
        if pred.kind in ("soft", "ucm2") or (pred.kind == "classes" and "mask" in gt.parts):
            values |= _polarity(pred, gt, protocol)
        pred_file = pred.path.name if pred.path else pred.image_id
        pred_evidence = Evidence(values, read.levels, strongest, max(read.maps, 1), pred_file)
    if metric.reads == "classes" and isinstance(metric, ShowsLabels):
        options = metric.options_of(protocol)
        if "labels" in gt.parts:
            gt_evidence |= metric.label_evidence(gt.labels, options, truth=True)
        if pred is not None and pred.kind == "classes" and pred.classes.ndim == 2:
            pred_evidence |= metric.label_evidence(pred.classes, options, truth=False)
    return Sides(pred_evidence, gt_evidence)


def _polarity(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Values:
    """Return DARK if a map or mask is probably inverted, LIGHT if it is not, NOTHING if unknown.

    Boundaries and objects should be bright on a dark ground. A map is DARK if its mean is high, but
    it is darker on the annotated boundaries or object than elsewhere. If the protocol inverts soft
    maps, the inverted one is meant. A map is unknown if it has no pixels, or if it is bright, but
    cannot be compared with boundaries, as their sizes differ or one of the two is constant.
    """
    if 0 in pred.shape:
        return Values.NOTHING
    # As in the BSDS benchmark: every second value of a ucm2 map (2 H + 1, 2 W + 1) is a pixel
    values = pred.ucm2[2::2, 2::2] if pred.kind == "ucm2" else pred.parts[pred.kind]
    is_soft = pred.kind in ("soft", "ucm2")
    white = np.iinfo(values.dtype).max if is_soft and values.dtype.kind == "u" else 1
    inverts = is_soft and protocol.invert
    # Most maps are so dark that a sample of rows decides, which saves averaging all pixels
    sample_mean = float(_sample_lines(values).mean()) / white
    if (1 - sample_mean if inverts else sample_mean) < 0.25:
        return Values.LIGHT
    if "mask" in gt.parts:  # compare the object with the ground, whose mean must exceed `least`
        is_dark = is_dark_on_mask(pred, gt, protocol, least=0.5)
        return Values.DARK if is_dark else Values.LIGHT
    mean = float(values.mean()) / white
    if (1 - mean if inverts else mean) < 0.5:  # boundaries cover a small part of an image
        return Values.LIGHT
    look = look_at(pred, gt, protocol)  # the map and the boundaries of all annotators
    if not look.is_comparable:
        return Values.NOTHING
    return Values.DARK if has_dark_boundaries(look.soft, look.truth) else Values.LIGHT


def has_dark_boundaries(soft: F8, truth: F8) -> bool:
    """Return True if a map (H, W) in [0, 1] is much darker on annotated boundaries than elsewhere.

    `truth` (H, W) is the number of annotators that marked each pixel. The mean of the blocks of
    pixels with a mark is compared with that of all others; False if either are missing.
    """
    brightness = _block_means(soft)
    is_marked = _block_means(truth) > 0
    if is_marked.all() or not is_marked.any():
        return False
    on, off = brightness[is_marked].mean(), brightness[~is_marked].mean()
    is_inverted = soft.mean() > 0.5 and 1 - on > MUCH_DARKER * (1 - off)
    # As in a map of distances to the boundaries. Thin lines, with a lower mean, may just miss them
    is_distance = soft.mean() > 0.1 and on < off / 2
    return bool(is_inverted or is_distance)


def thickness(soft: F8) -> float:
    """Return the fraction of a soft map's strong pixels that lie in 2 x 2 squares of strong pixels.

    It is 0 for lines one pixel wide, and almost 1 for broad edges. A pixel is strong if its value
    is at or above a quantile of the positive values. The fraction is averaged over the quantiles
    0.5, 0.75 and 0.9. It is NaN if no value is positive.
    """
    values = soft[soft > 0]
    if not values.size:
        return math.nan
    fractions = []
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        squares = strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:]
        # (H + 1, W + 1): entry (y, x) is the square whose bottom right pixel is (y, x)
        padded = np.pad(squares, 1)
        in_square = padded[:-1, :-1] | padded[1:, :-1] | padded[:-1, 1:] | padded[1:, 1:]
        fractions.append(in_square.sum() / strong.sum())
    return float(np.mean(fractions))


class Thumbnails(NamedTuple):
    image_id: str
    pred: F8  # (h, w), a thumbnail of the predicted map
    truth: F8  # (h, w), a thumbnail of its ground truth


def area_thumbnails(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Thumbnails | None:
    """Reduce a prediction, and the mask or labels of its ground truth, to thumbnails.

    They show the maps of `comparable_areas`. None if the two cannot be compared.
    """
    areas = comparable_areas(pred, gt, protocol) if _AREAS & gt.parts.keys() else None
    if areas is None:
        return None
    return Thumbnails(pred.image_id, thumbnail(areas.pred), thumbnail(areas.truth))


def _block_means(values: F8 | Bool) -> F8:
    """Downsample a map by averaging whole blocks of 4 x 4, or of 2 x 2 if H or W is below 200."""
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side * side, values.shape[1] // side * side
    pixels: Map = values.view(np.uint8) if values.dtype == bool else values  # sums are at most 16
    # Slices are added, because numpy's sums over short axes take five times as long
    lines = pixels[0:rows:side, :cols]
    for k in range(1, side):
        lines = lines + pixels[k:rows:side, :cols]
    sums = lines[:, ::side]
    for k in range(1, side):
        sums = sums + lines[:, k::side]
    return np.asarray(sums / side**2)


def thumbnail(values: F8 | Bool) -> F8:
    """Reduce an (H, W) map to a small array, so that maps can be compared quickly.

    It is downsampled and smoothed, its local mean over 9 x 9 pixels is subtracted, and it is scaled
    to unit norm, so that sums of products are correlations. Constant maps become all zeros.
    """
    # `_smoothed` replaces scipy's filters, whose import takes longer than all of this
    small = _smoothed(_block_means(values), _BLUR)
    small = small - _smoothed(small, _AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, windows: Sequence[tuple[int, int]]) -> F8:
    """Smooth an (H, W) map along both axes, repeating the values at the border beyond it.

    Each window (size, step) in turn sums `size` values `step` apart; their mean is formed last.
    """
    sizes, steps = np.transpose(windows)
    half, total_weight = int(((sizes - 1) * steps).sum()) // 2, int(sizes.prod())
    for _ in range(2):  # smooth the columns and transpose, then the rows, which restores the shape
        lines = values.take(np.arange(-half, len(values) + half), axis=0, mode="clip")
        for size, step in windows:
            n = len(lines) - (size - 1) * step
            sums = lines[:n]
            for k in range(1, size):
                sums = sums + lines[k * step : k * step + n]
            lines = sums
        values = (lines / total_weight).T
    return values


def best_orientation(pred: F8, truth: F8) -> str:
    """Return the name of the flip, such as "upside down", after which a map fits its truth best.

    The fit is the correlation of two thumbnails (h, w), the sum of their products. A flip must fit
    clearly better than the unflipped map, and better than random pixels would; otherwise, the
    result is "".
    """
    unflipped_fit = float((pred * truth).sum())
    noise = _FIT_OF_NOISE / math.sqrt(pred.size)
    best, best_fit = "", max(_LEAST_FIT, noise, CLEARLY_BETTER * unflipped_fit)
    if best_fit >= 1:  # as much as a correlation can be
        return ""
    for name, transposes, quarters in FLIPS:
        flipped = np.rot90(pred.T if transposes else pred, quarters)
        if flipped.shape == truth.shape:  # transposing changes it, unless the map is square
            fit = float((flipped * truth).sum())
            if fit > best_fit:
                best, best_fit = name, fit
    return best


def find_swaps(thumbnails: Iterable[Thumbnails]) -> list[tuple[str, str]]:
    """Find maps that were probably saved under the name of another image.

    A map is reported if it and the ground truth of another image are each other's best match, and
    they match clearly better than the map and the ground truth of its own image. The match is the
    correlation of thumbnails of unit norm, of which only those of the same shape are compared.

    Returns pairs of ids: the image whose map is wrong, and the image whose ground truth the map
    fits. Two maps that were swapped with each other usually give two pairs.
    """
    swapped = []
    by_shape: dict[tuple[int, ...], list[Thumbnails]] = {}
    for image in thumbnails:
        by_shape.setdefault(image.pred.shape, []).append(image)
    for same_shape in by_shape.values():
        if len(same_shape) == 1:
            continue
        preds = np.stack([image.pred for image in same_shape])  # (n, h, w)
        truths = np.stack([image.truth for image in same_shape])
        # (n, n): correlation, the sum of products, of each map (row) and each ground truth (column)
        fits = np.tensordot(preds, truths, ((1, 2), (1, 2)))
        # Two thumbnails of random pixels correlate by chance, less so if they have more pixels
        noise = _FIT_OF_NOISE / math.sqrt(preds[0].size)  # a correlation that chance hardly exceeds
        for k, best in enumerate(fits.argmax(axis=1).tolist()):  # map k fits this truth best
            is_mutual = fits[:, best].argmax() == k
            least_fit = max(_LEAST_FIT, noise, CLEARLY_BETTER * fits[k, k])
            if best != k and is_mutual and fits[k, best] > least_fit:
                swapped.append((same_shape[k].image_id, same_shape[best].image_id))
    return swapped
