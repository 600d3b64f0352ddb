"""Check whether predicted maps are inverted, flipped, swapped, too thick or on the wrong scale.

`FirstImages` checks the first images of a run (`check_first_images`), and the `doctor` command
applies the same functions to every image. `evidence_of` collects statistics of each image's values,
which `loaders.reading.check_all_values` pools over all images of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import starmap
from operator import attrgetter
from typing import Any

import attrs
import numpy as np

from bsdsbench.errors import (
    DataError,
    Fix,
    InputWarning,
    InvertedWarning,
    Setting,
    describe_unexpected,
    warn,
)
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.labels import has_specks, lone_label
from bsdsbench.loaders.reading import DARKER
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import Diagnosed, ShowsLabels, Symptom
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.fit import (
    BROAD_EDGES,
    CheckedImage,
    Thumbnails,
    find_swaps,
    is_suppressed,
    shows_regions,
    thickness,
)
from bsdsbench.runs.keywords import Plan
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, Sides, Values
from bsdsbench.text import join_names

N_CHECKED = 4  # number of images to check: the first by name, because neighbours are often swapped
# Images that show something are searched among this many: the first slices of a volume may be empty
_MOST_SEARCHED = 100
FEWEST_TURNED = 3  # masks or label maps that fit better when turned in the same way
# Bytes per value -> the largest value of a faint map: bytes 0 and 1, or 8-bit values saved
# as 16 bit. One may be an image without boundaries. If all are faint, they were saved wrongly.
_MAX_FAINT = {1: 9, 2: 255}
_LEAST_VALID = 0.1  # if a smaller share of the annotation counts, the map of void is probably wrong
# What is wrong with the edges of most maps -> the description in the warning, and the remedy
_THICK_OR_THIN: dict[str, tuple[str, Fix | tuple[Fix, ...]]] = {
    "regions": (
        "have regions of one value each, not edges",
        Setting("pred_kind", "labels", "if they are label maps"),
    ),
    "thin": (
        "have thin edges, which NMS breaks up",
        ("give the raw maps", Setting("nms", False, "if its NMS was applied already")),
    ),
    "areas": (
        "have filled areas as ground truth, not lines",
        "--metrics contour scores masks",
    ),
    "broad": ("have broad edges, whose precision is low without NMS", Setting("nms")),
}
_GENERAL_PRESETS = ("bsds500", "custom")  # those that are also used for own data
_MANY_MAPS = 10  # as many label maps as annotators, and at least this many, are probably slices


def find_symptoms(checked: CheckedImage, metrics: Sequence[Metric[Any]]) -> Iterator[Symptom]:
    """Yield (code, description, fix) for each sign of a wrong setting or file in one image.

    The fix is an option to set (`Setting`) or an instruction in words. The `symptoms` of metrics
    that have their own are among them.
    """
    pred, gt, protocol = checked.pred, checked.gt, checked.protocol
    if checked.areas and (orientation := checked.areas.best_orientation()):  # "" if it is right
        yield "turned", f"maps fit the ground truth only {orientation}", "turn them back"
    if "mask" in gt.parts and checked.is_dark_on_mask():
        yield "inverted", "the map is darker on the object than beside it", _turn_back(protocol)
    # `valid` is False for void pixels, such as those outside a field of view, marked by 0 in a file
    drawn_maps = (gt.mask,) if "mask" in gt.parts else gt.boundaries
    if drawn_maps and "valid" in gt.parts:
        drawn = np.any(drawn_maps, axis=0)
        if np.count_nonzero(drawn[gt.valid]) < _LEAST_VALID * np.count_nonzero(drawn):
            fix = "0 is what does not count in a field of view"
            yield "outside", "nearly all that is annotated lies in pixels that do not count", fix
    # Several label maps of an image may be cuts of a hierarchy at several thresholds. Those are
    # hardly as many as the annotators, but each slice of a volume has one annotated map
    n_maps = len(pred.parts.get("segs", ()))
    if n_maps == len(gt.boundaries) and n_maps >= _MANY_MAPS:
        problem = f"there are {n_maps} label maps beside as many annotators: slices of a volume?"
        yield "volume", problem, "save a file for each slice"
    is_apart = sum(map(np.any, gt.boundaries)) > 1 and checked.truth.max() == 1
    # In every fourth row and column, lines are thin, also those drawn with a broad pen
    if is_apart and thickness(checked.truth[::4, ::4]) > BROAD_EDGES:
        problem = "the areas that annotators mark never overlap: a file for each object?"
        yield "objects", problem, "merge the files of an image"
    # Whether label maps of the ground truth count as such, or for the boundaries between labels
    reads_regions, are_matched = protocol.gt_kind == "labels", not metrics
    thins_maps = not metrics
    for metric in metrics:
        thins_maps |= "gt_thin" in metric.uses
        reads_regions |= metric.segmentations
        are_matched |= "max_dist" in metric.uses
        if isinstance(metric, Diagnosed):  # it has symptoms of its own
            opt = metric.options_of(protocol)
            if metric.fits(pred, gt, opt):
                yield from metric.symptoms(pred, gt, protocol, opt)
    # If a metric matches boundaries, `check_first_images` finds inverted ground truth
    if not are_matched and checked.is_comparable and checked.is_truth_inverted():
        problem = "most pixels of the truth are boundaries, on which the map is darker"
        turn_back = Setting("gt_invert", not protocol.gt_invert)
        yield "inverted", f"{problem} (dark lines on white?)", turn_back
    # The preset of a data set fits the truth of this set
    is_general = protocol.name.rstrip("*") in _GENERAL_PRESETS
    if is_general and thins_maps and protocol.thin and not protocol.gt_thin and gt.boundaries:
        drawn = gt.boundaries[0].astype(np.float64)  # lines of several annotators are adjacent
        are_broad_lines = thickness(drawn) > BROAD_EDGES >= thickness(drawn[::4, ::4])
        # Below a broad map they may be areas, of which `check_first_images` warns
        if are_broad_lines and (protocol.nms or thickness(checked.soft) <= BROAD_EDGES):
            problem = "lines of the truth are several pixels wide, and thin edges match only a part"
            yield "broad", problem, Setting("gt_thin")
    if reads_regions:
        drawn_regions = gt.parts.get("segmentations", ())
        # A negative label, or 255 or 65535 far above all others; `lone_label` is 0 without any
        for label in filter(None, map(lone_label, drawn_regions)):
            problem = f"{label} is a region of the truth like its other labels: is it void?"
            fix = "give its pixels the labels beside them, or (not of metric region) use --valid"
            yield "void", problem, fix
        if any(map(has_specks, drawn_regions)):
            problem = "many pixels of the truth have a label unlike all beside them: JPEG?"
            yield "resized", problem, "save the labels as PNG"


def _turn_back(protocol: Protocol) -> tuple[Fix, ...]:
    """Return the settings that invert the maps, or the truth.

    A wrong choice would compare the backgrounds, which are alike even for a bad map.
    """
    maps = Setting("invert", not protocol.invert, "if the maps are inverted")
    return maps, Setting("gt_invert", not protocol.gt_invert, "if the truth is")


def warning_of_maps(
    description: str, ids: Sequence[str], n_checked: int, fix: Fix | Sequence[Fix] = ()
) -> InputWarning:
    """Return the warning "N of M checked maps DESCRIPTION [IDS]"."""
    kind = InvertedWarning if description is DARKER else InputWarning
    has = f"{len(ids)} of {n_checked} checked maps {description} [{join_names(list(ids), 3)}]"
    return kind(has, fix=fix)


def check_first_images(
    images: Sequence[CheckedImage],
    protocol: Protocol,
    unused: Collection[str],
    metrics: Sequence[Metric[Any]] = (),
) -> list[InputWarning]:
    """Return a warning for each mistake that the first images of a run suggest.

    Reported are maps that use a part of the values of their form, symptoms (`find_symptoms`) that
    most images have, and the first mistake of these: inverted ground truth, inverted maps, mistaken
    files, flipped, swapped, thick or thin maps. All but mistaken files concern boundaries, and
    images with a map and boundaries of the same size, neither of them constant.

    unused: protocol fields that no metric of the run uses. metrics: those whose symptoms count.
    """
    warnings = list[InputWarning]()
    if not protocol.normalise and "normalise" not in unused:  # values count as they are
        warnings += _find_small_scales(images)
    warnings += _common_symptoms(images, metrics)
    comparable, covered, dark = (
        list[CheckedImage](),
        list[str](),
        list[str](),
    )  # the last two are ids
    for checked in images:
        if checked.is_comparable:
            comparable.append(checked)
            covered += [checked.pred.image_id] if checked.is_mostly_boundary else []
            dark += [checked.pred.image_id] if checked.has_dark_boundaries else []
    n_checked = len(comparable)
    are_covered, are_dark = 2 * len(covered) > n_checked, 2 * len(dark) > n_checked
    is_matched = not {"nms", "max_dist"} & set(unused)  # the run matches boundary pixels
    if are_covered and is_matched:
        description = "have ground truth in which most pixels are boundary (dark lines on white?)"
        fix = Setting("gt_invert", not protocol.gt_invert)
        return [*warnings, warning_of_maps(description, covered, n_checked, fix)]
    if are_dark:
        # Boundaries cover a small part of an image, unless they are inverted or objects
        fixes = _turn_back(protocol) if are_covered else Setting("invert", not protocol.invert)
        return [*warnings, warning_of_maps(DARKER, dark, n_checked, fixes)]
    mistakes = [] if are_covered else _find_mistaken_files(images, metrics, protocol)
    mistakes = mistakes or _find_flipped_or_swapped(comparable)
    if not mistakes and is_matched and (protocol.thin or protocol.nms):
        mistakes = _find_thick_or_thin_maps(comparable, protocol.nms)
    return warnings + mistakes


def _common_symptoms(
    images: Sequence[CheckedImage], metrics: Sequence[Metric[Any]]
) -> Iterator[InputWarning]:
    """Yield a warning for each symptom (`find_symptoms`) that more than half of the images have.

    If a metric raises DataError for an image, only its symptoms up to then are included.
    """
    ids_of_symptom = dict[Symptom, list[str]]()
    for checked in images:
        symptoms = set[Symptom]()
        with suppress(DataError):  # counting the image raised the same error
            symptoms.update(find_symptoms(checked, metrics))
        for symptom in sorted(symptoms, key=str):
            ids_of_symptom.setdefault(symptom, []).append(checked.pred.image_id)
    for (code, problem, fix), ids in ids_of_symptom.items():
        # "scale" is that of depth maps, on which few measures depend; the doctor alone reports it
        if 2 * len(ids) > len(images) and code != "scale" and not is_chance(code, len(ids)):
            has = f"{problem} in {len(ids)} of {len(images)} checked images [{join_names(ids, 3)}]"
            kind = InvertedWarning if code == "inverted" else InputWarning
            yield kind(has, fix=fix)


def is_chance(code: str, n_images: int) -> bool:
    """Return True for a symptom that so few images may show by chance.

    A shifted mask of a centred object may fit better when it is turned.
    """
    return code == "turned" and n_images < FEWEST_TURNED


@attrs.define
class FirstImages:
    """Collects the maps of a run's first images, and warns of mistakes once there are enough.

    An image whose ground truth is the same everywhere tells nothing about orientation, labels or
    void values. Therefore the first N_CHECKED other images are checked or, if there are none among
    the first _MOST_SEARCHED, the first N_CHECKED images.
    """

    plan: Plan
    n_seen: int = 0
    are_checked: bool = False
    warned_inverted: bool = False  # True if maps look inverted
    shown: list[CheckedImage] = attrs.Factory(list)  # of images that show something
    others: list[CheckedImage] = attrs.Factory(list)  # of others among the first N_CHECKED
    plain_truths: set[str] = attrs.Factory(set)  # hashes of ground truth that shows nothing

    def add(
        self,
        checked: CheckedImage | None,
        truth: str,
        read_again: Callable[[], CheckedImage | None],
    ) -> None:
        """Add the next image, and check the images as soon as there are enough.

        checked: its maps; None beyond the first N_CHECKED images, and if it has none.
        truth: a hash of its ground truth; "" if it has no prediction or could not be counted.
        read_again: returns its maps.
        """
        if self.are_checked:
            return
        self.n_seen += 1
        if self.n_seen > N_CHECKED and truth and truth not in self.plain_truths:
            checked = read_again()
        if checked is not None and _shows_something(checked.gt, self.plan.metric_groups[0].void):
            self.shown.append(checked)
        elif checked is not None:
            self.plain_truths.add(truth)
            self.others += [checked] if self.n_seen <= N_CHECKED else []
        if len(self.shown) == N_CHECKED or self.n_seen == _MOST_SEARCHED:
            self.check()

    def check(self) -> None:
        """Warn of mistakes in the images, unless this was done before."""
        if self.are_checked:
            return
        self.are_checked = True
        plan, images = self.plan, self.shown or self.others
        try:
            # `plan.unused`: fields of the protocol that affect no score of the run
            warnings = check_first_images(
                images, plan.protocol, plan.unused, plan.metric_groups[0].metrics
            )
        except Exception as error:  # a bug in a metric's own search for mistakes, as of a plug-in
            fault = describe_bug(error, plan)
            if plan.on_error == "fail":
                raise DataError(fault) from error
            warnings = [InputWarning(fault)]
        for warning in warnings:
            warn(warning)
        self.warned_inverted = InvertedWarning in map(type, warnings)


def _shows_something(gt: GroundTruth, void: Sequence[float]) -> bool:
    """Return True if some annotation is not constant, the photo and void pixels left out."""
    for name in gt.parts.keys() - {"photo", "valid"}:
        part = gt.parts[name]
        for values in part if isinstance(part, tuple) else (part,):
            if not isinstance(values, np.ndarray):  # Lines
                return True
            counted = values[~np.isin(values, void)] if void else values
            if counted.size and (counted != counted.flat[0]).any():
                return True
    return False


def _is_annotated(gt: GroundTruth) -> bool:
    """Return True unless there is no boundary and no object, and a single label at most."""
    objects = gt.parts.get("mask", ())
    return _shows_something(gt, ()) or any(map(np.any, (*gt.boundaries, objects)))


def describe_bug(error: Exception, plan: Plan) -> str:
    """Return the message for an unexpected exception of a run, which is a bug or lack of memory."""
    if isinstance(error, MemoryError):
        return "not enough memory for this image"
    packages = {type(registry.get(m)).__module__.partition(".")[0] for m in plan.metrics}
    return describe_unexpected(error, packages | {"bsdsbench"})


def _find_small_scales(images: Sequence[CheckedImage]) -> Iterator[InputWarning]:
    """Yield a warning if the soft maps of the first images seem to be on a smaller scale.

    - 16 bits: all maps end between 256 and 4095, as pictures of 10 or 12 bits do
    - 8 bits: all maps end at the same value from 10 to 127, as percentages or numbers of votes do
    - all values are within 0.27 .. 0.73, and begin or end as those of a second sigmoid (0.5 to
      0.73) or softmax of two probabilities (0.27 to 0.73, 1 / (1 + e) to e / (1 + e)): a first one
      gives almost 0 or 1 somewhere. A network that has learnt little is unlikely to end so

    Maps that end at a smaller integer are reported once all images are counted (`_is_faint`).
    """
    maxima_of_white = dict[int, list[int]]()  # white of the dtype -> the largest value of each map
    n_soft = n_narrow = 0
    for checked in images:
        if checked.pred.kind == "soft" and checked.pred.soft.size:
            n_soft += 1
            least_value, largest_value = checked.pred.soft.min(), checked.pred.soft.max()
            maxima_of_white.setdefault(checked.white, []).append(int(largest_value))
            low, high = least_value / checked.white, largest_value / checked.white
            # A little wider, because 8 bits round the ends to 0.267 and 0.733
            is_narrow = 0.265 < low < high < 0.735
            begins_as_softmax, begins_as_sigmoid = low < 0.285, 0.495 < low < 0.515
            ends_as_both = high > 0.715
            n_narrow += is_narrow and (begins_as_softmax or begins_as_sigmoid or ends_as_both)
    for white, maxima in maxima_of_white.items():
        least, largest = min(maxima), max(maxima)
        # Two maps may end at the same value by chance, but hardly at 100
        is_same_end = least == largest and (len(maxima) > 2 or maxima == [100, 100])
        if white == 65535 and least >= 256 and largest <= 4095:
            scale = "10 or 12 bit saved as 16?"  # from cameras and instruments
        elif white == 255 and 10 <= largest <= 127 and is_same_end:
            scale = "percent, or votes?"
        else:
            continue
        has = f"no value above {largest} of {white} in the checked maps ({scale})"
        yield InputWarning(has, fix=Setting("normalise", True, "divides each map by its maximum"))
    if 1 < n_soft == n_narrow:  # one map may be so
        has = "all values of the checked maps are within 0.27 .. 0.73 (sigmoid or softmax twice?)"
        yield InputWarning(has, fix="evaluate the map before the second")


def _find_mistaken_files(
    images: Sequence[CheckedImage], metrics: Sequence[Metric[Any]], protocol: Protocol
) -> list[InputWarning]:
    """Find the first of these signs that predictions come from wrong files.

    - All of two or more predictions have one value everywhere, although their ground truth has not.
      Half of them are enough for soft maps; those that are all 0 are not counted, because some
      images have no boundary.
    - All of N_CHECKED (4) images have the same prediction but different ground truth.
    - More than half of the masks and label maps fit the ground truth of another image.

    metrics, protocol: those of the run, which tell the values of void pixels.
    """
    is_soft = bool(images) and images[0].pred.kind in ("soft", "ucm2")
    constant = list[str]()  # ids
    n_same, are_all_empty = 0, True  # `n_same`: how many predictions equal the first
    has_masks, first_maps = False, ()
    for checked in images:
        predicted = checked.pred.parts[checked.pred.kind]
        # Or several label maps, such as one for each threshold
        maps = predicted if isinstance(predicted, tuple) else (predicted,)
        first_maps = first_maps or maps
        first_value = maps[0].flat[0]
        n_same += len(maps) == len(first_maps) and all(map(np.array_equal, maps, first_maps))
        is_constant = True
        for a in maps:
            is_constant = is_constant and bool((a == first_value).all())
        is_empty = is_constant and not first_value
        are_all_empty &= is_empty
        if is_constant and not (is_soft and is_empty):
            void = registry.void_labels(metrics, protocol)
            constant += [checked.pred.image_id] if _shows_something(checked.gt, void) else []
        has_masks |= "mask" in checked.gt.parts
    # If no map or mask of the whole set predicts anything, the end of the run warns of that
    # (`Readings.check_values`), so that a warning here would repeat it
    is_reported = are_all_empty and (is_soft or has_masks)
    n_needed = max(2, len(images) / 2 if is_soft else len(images))
    if len(constant) >= n_needed and not is_reported:
        description = "have one value everywhere, unlike their ground truth"
        return [warning_of_maps(description, constant, len(images), "predict again")]
    are_same = n_same == len(images) == N_CHECKED and not constant and not are_all_empty
    if are_same and len({checked.gt.fingerprint for checked in images}) > 1:
        ids = [checked.pred.image_id for checked in images]
        return [
            warning_of_maps("are the same map", ids, len(images), "save one each, if not meant")
        ]
    thumbnails = filter(None, map(attrgetter("areas"), images))  # None without a mask or labels
    return _find_swapped(thumbnails, len(images), n_needed=len(images) // 2 + 1)


def _find_flipped_or_swapped(images: Sequence[CheckedImage]) -> list[InputWarning]:
    """Find flipped maps, a warning for each way such as "upside down", or else swapped maps.

    If maps are flipped, their correlations with other images say nothing.
    """
    thumbnails, flipped = list[Thumbnails](), dict[str, list[str]]()  # orientation -> ids
    n_areas = 0  # number of images whose ground truth is areas
    for checked in images:
        image = Thumbnails.of(checked.pred.image_id, checked.soft, checked.truth)
        thumbnails.append(image)
        n_areas += checked.shows_areas
        if orientation := image.best_orientation():  # "" if it is right
            flipped.setdefault(orientation, []).append(image.image_id)
    warnings = list[InputWarning]()
    for orientation, ids in flipped.items():
        if not (n_areas and is_chance("turned", len(ids))):
            description = f"fit their ground truth only {orientation}"
            warnings.append(warning_of_maps(description, ids, len(images)))
    return warnings or _find_swapped(thumbnails, len(images))


def _find_swapped(
    thumbnails: Iterable[Thumbnails], n_checked: int, n_needed: int = 1
) -> list[InputWarning]:
    """Warn of maps that fit the ground truth of another image, if there are `n_needed` or more."""
    swaps = list(starmap("{} looks like {}".format, find_swaps(thumbnails)))
    if len(swaps) < n_needed:
        return []
    description = "fit the ground truth of another image"
    return [warning_of_maps(description, swaps, n_checked, "check the names of the files")]


def _find_thick_or_thin_maps(images: Sequence[CheckedImage], nms: bool) -> list[InputWarning]:
    """Warn if most maps have thin edges, on which NMS is done, broad ones without it, or regions.

    If the ground truth of a map has broad edges too, it marks areas instead of lines, which is
    right if the protocol thins them.
    """
    ids: dict[str, list[str]] = {"thin": [], "areas": [], "regions": [], "broad": []}
    n_checked = 0
    for checked in images:
        if not nms and checked.pred.kind != "soft":
            continue
        n_checked += 1
        if nms and is_suppressed(checked.soft):
            ids["thin"].append(checked.pred.image_id)
        elif not nms and thickness(checked.soft) > BROAD_EDGES:
            is_area = checked.shows_areas
            key = "areas" if is_area else "regions" if shows_regions(checked.soft) else "broad"
            ids[key] += [] if is_area and checked.protocol.gt_thin else [checked.pred.image_id]
    for key, image_ids in ids.items():
        if 2 * len(image_ids) > n_checked:
            description, fix = _THICK_OR_THIN[key]
            return [warning_of_maps(description, image_ids, len(images), fix)]
    return []


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
    largest = soft.max(initial=0)
    return bool(largest <= max_faint or float(largest) / white < smallest_threshold)


def _is_nearly_full(gt: GroundTruth) -> bool:
    """Return True if the first annotator marks most pixels, as inverted lines do, but few areas."""
    return bool(gt.boundaries) and np.count_nonzero(gt.boundaries[0]) > 0.75 * gt.boundaries[0].size


def evidence_of(
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> Sides:
    """Collect statistics of one image's values, to detect wrong conventions such as inverted maps.

    One image is not enough to tell, so the statistics are later pooled over all images. They are
    those collected when the files were read, to which this function adds flags:

    - soft map: FAINT if its values are so small that its scale is probably wrong (`_is_faint`),
      with NARROW if its maximum is 1 or 255, the white of fewer bits; otherwise STRONG
    - soft map, or mask beside a mask: DARK if it is darker on the annotated boundaries or object
      than elsewhere, otherwise LIGHT (`CheckedImage.polarity`)
    - ground truth: DARK if boundaries cover most pixels, and the map is darker on them
    - label maps: those of the metric's `label_evidence`, if it interprets labels

    pred: the prediction. If it is None, its statistics are empty.
    has_thresholds: True if a metric thresholds soft maps; maps below all thresholds are then faint.
    """
    gt_evidence = gt.evidence
    pred_evidence = NO_EVIDENCE
    if not gt_evidence.maps:  # arrays, which are not ambiguous as files are
        gt_file = gt.path.name if gt.path else gt.image_id
        gt_evidence = Evidence(maps=max(1, len(gt.boundaries)), file=gt_file)
    if pred is not None:
        is_soft = pred.kind in ("soft", "ucm2")
        # Boundaries of each class; a metric without thresholds reads masks, also as (1, H, W)
        is_stack = has_thresholds and pred.kind == "classes" and pred.classes.ndim == 3
        # A set of flags; the maximum of a faint map, or 100 of an 8-bit map, otherwise 0
        values, strongest = pred.evidence.values, pred.evidence.strongest
        if is_soft or is_stack:
            soft = pred.parts[pred.kind]
            # Float arrays are never faint: a network in training may return any values
            may_be_faint = pred.path is not None or soft.dtype.kind == "u"
            # A metric that stretches each map itself takes masks of 0 and 1, but a few more small
            # integers are hardly gray levels
            is_scaled = has_thresholds or "normalise" in metric.used(metric.options_of(protocol))
            may_be_faint = may_be_faint and (is_scaled or soft.max(initial=0) != 1)
            if may_be_faint and _is_faint(soft, protocol, has_thresholds):
                if _is_annotated(gt):  # elsewhere, a good map is faint
                    strongest = float(soft.max(initial=0))
                    values |= Values.FAINT
                    if strongest in (1, 255):  # 255 in 16 bits; 255 of 8 bits would not be faint
                        values |= Values.NARROW
            else:
                values |= Values.STRONG
                has_scale = has_thresholds and not protocol.normalise and soft.dtype == np.uint8
                strongest = 100.0 if has_scale and soft.max(initial=0) == 100 else 0.0
        # Classes are only bright or dark if they are a mask
        if is_soft or (pred.kind == "classes" and "mask" in gt.parts):
            checked = CheckedImage(pred, gt, protocol)
            values |= checked.polarity()
            if _is_nearly_full(gt) and checked.is_comparable and checked.is_truth_inverted():
                gt_evidence |= Evidence(Values.DARK)
        pred_file = pred.path.name if pred.path else pred.image_id
        levels, n_maps = pred.evidence.levels, max(pred.evidence.maps, 1)  # distinct values
        pred_evidence = Evidence(values, levels, strongest, n_maps, pred_file)
    # A metric of class maps that needs those of all images to decide what a label means
    if metric.reads == "classes" and isinstance(metric, ShowsLabels):
        options = metric.options_of(protocol)
        if "labels" in gt.parts:
            gt_evidence |= metric.label_evidence(gt.labels, options, truth=True)
        if pred is not None and pred.kind == "classes" and pred.classes.ndim == 2:
            pred_evidence |= metric.label_evidence(pred.classes, options, truth=False)
    return Sides(pred_evidence, gt_evidence)
