"""Interpretation of pixel values: binarising masks, and consistency checks of a whole set.

The predictions and the ground truth of a run are each read under a `ReadOptions`. If no option is
set, mask values must have a single conventional meaning (see `binarise`). A mask with a third value
(void or gray?) is rejected, unless an option decides or other files of the set are clearly gray.

Each image is read on its own. What its values reveal about their encoding is stored in its record
as `Evidence`, and `check_all_values` checks the evidence of all images once the set is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from attrs import evolve, frozen

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError, Fix, InputWarning, InvertedWarning, Problem, Setting
from bsdsbench.images import Map, describe_values, is_binary, white_above
from bsdsbench.loaders.formats.pictures import refuse_jpeg_noise
from bsdsbench.loaders.labels import VOID_EVIDENCE, WHITE_FOR_CLASSES, train_id_options
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.fields import tidy
from bsdsbench.scores.counts import LEVELS, Evidence, ImageRecord, Values
from bsdsbench.text import listed

LOSSY = (".jpg", ".jpeg", ".webp")  # formats that change values
FORM_WORDS = {  # `Prediction.form` -> description
    "soft8": "soft 8-bit maps",
    "soft16": "soft 16-bit maps",
    "float": "soft float maps",
    "binary": "binary maps",
    "ucm2": "contour maps of double size (ucm2)",
    "segs": "segmentations",
}
SIDE_NAMES = ("its prediction", "its ground truth")
DARKER = "are darker on the ground truth than off it"


class Kind(Enum):
    """What the prediction files, or the ground-truth files, contain."""

    SOFT = "soft maps"
    MASK = "masks"
    CLASSES = "class maps"
    INSTANCES = "instance maps"
    OBJECTS = "maps of objects by their number"
    REGIONS = "segmentations"
    BOUNDARIES = "boundaries"
    DEPTH = "depth maps"
    LINES = "lines"


class MaskRead(NamedTuple):
    """A binarised map: a mask, or the boundaries that one annotator drew."""

    mask: Bool  # (H, W), True at the object or boundary, False at void pixels
    # (H, W), False at void pixels; None for a prediction, or if no void values apply
    valid: Bool | None
    evidence: Evidence  # properties of the map's values before it was binarised
    labels: Map | None = None  # (H, W) integers, the regions that the annotator drew


@frozen
class ReadOptions:
    """How to interpret the pixel values of the predictions, or of the ground truth."""

    kind: Kind
    # Gray pixels at or above this fraction of white are object. None: those above one half.
    cut: float | None = None
    void: tuple[float, ...] = ()  # values of pixels that are not scored
    inverted: bool = False  # True if the object is dark; masks are inverted after thresholding
    normalised: bool = False  # True if each map is divided by its maximum
    truth: bool = True  # True for the ground truth, False for the predictions
    # Name of the option that sets `void`, such as "saliency.ignore"; "" if the metric has none
    void_option: str = ""
    metric: str = ""  # the metric whose options are suggested in error messages
    reads_regions: bool = False  # True if annotators' regions are used instead of their boundaries
    allow_empty: bool = False  # True to accept images in which no annotator drew a boundary
    components: bool = False  # True if the objects are the connected components of the mask

    def mask(
        self, values: Map, what: str = "mask", file: str = "", is_logical: bool = False
    ) -> MaskRead:
        """Binarise a map, (H, W), according to these options.

        1. Set void pixels to 0, unless a prediction is binary already.
        2. If `normalised`, divide by the maximum.
        3. Threshold at `cut`, or at one half if `cut` is None (see `binarise`).
        4. If `inverted`, invert the mask.
        5. Set void pixels to False.

        A map is binary if it holds 0 and one of 1, 255 and 65535. Boundaries (`kind` is BOUNDARIES
        or REGIONS) must be binary if `cut` is None. If `is_logical` is True, as for BSDS files, a
        binary map is True where nonzero, whatever the `cut`. `what` names the map in errors, and
        `file` is its file name, or "". Raises DataError if its values are ambiguous, with the
        options that would resolve the ambiguity.
        """
        valid = None
        if self.void and values.dtype != bool and (self.truth or not is_binary(values)):
            # In the precision of the map, so that a void value of 0.1 equals the 0.1 of float32
            dtype = values.dtype if values.dtype.kind == "f" else None
            valid = ~np.isin(values, np.array(self.void, dtype))
            values = np.where(valid, values, values.dtype.type(0))
        if self.normalised and values.max(initial=0) > 0:
            values = values / values.max()
        binary = is_binary(values)
        if self.truth and self.cut is not None and not _distinct_values(values):
            refuse_jpeg_noise(values, _white_of(values), self.cut, what)
        try:
            if self.kind in (Kind.BOUNDARIES, Kind.REGIONS) and self.cut is None and not binary:
                levels = _listed(_distinct_values(values))
                has = f"values {levels}" if levels else "gray values"
                expected = "expected boundaries of 0 and 1 or 0 and 255"
                raise DataError(f"{what}: {has}, {describe_values(values)}, {expected}")
            if binary and is_logical:
                mask = values if values.dtype == bool else np.asarray(values != 0)
                evidence = Evidence(maps=1, file=file)  # without flags, as nothing is ambiguous
            else:
                mask = binarise(values, self.cut, what, inclusive=self.cut is not None)
                evidence = self._evidence_of(values, binary, file)
        except DataError as error:
            fixes = tuple(self.suggest_fixes(_distinct_values(values), values))
            raise DataError(str(error), fix=fixes) from None
        if self.inverted:
            mask = ~mask
        if valid is None:
            return MaskRead(mask, None, evidence)
        if not values.any() and not valid.all():  # nothing but void
            evidence = evidence | VOID_EVIDENCE
        return MaskRead(mask & valid, valid if self.truth else None, evidence)

    def _evidence_of(self, values: Map, binary: bool, file: str) -> Evidence:
        """Return evidence of the scale of an (H, W) mask, by which a whole set is checked later.

        If one mask goes up to 1 (flag UNIT), for example, and another one up to 255 (WHITE), their
        scales differ. FAINT means that no value reaches the threshold, STRONG that one does, GRAY
        that there are many values, and FEW, with the distinct values as `levels`, that a third
        value may mean void.

        `binary` is True if the mask holds only 0 and one of 1, 255 and 65535. `file` is its name,
        or "".
        """
        top = values.max(initial=0)
        flags = Values.NOTHING
        if not self.truth and (values.dtype.kind != "f" or not top):
            is_empty = not (top or self.inverted)  # an inverted map of zeros is object everywhere
            flags = Values.FAINT if is_empty else Values.STRONG
        if values.dtype == bool or not top:  # bools and zeros have no scale
            return Evidence(flags, maps=1, file=file)
        white = _white_of(values)  # 255, 65535, 1 in floats, 0 in integers wider than 16 bits
        is_as_drawn = not self.normalised and not file.lower().endswith(LOSSY)
        # A cut decides what a third value means, unless it lies just above 0 (as in presets)
        cut_decides = self.cut is not None and self.cut >= 1 / 255
        may_have_third = is_as_drawn and not binary and not cut_decides
        levels = _third_values(values) if may_have_third else ()
        flags |= Values.FEW if levels else Values.NOTHING
        if self.cut is not None:
            reaches_cut = top >= self.cut * white or (binary and top > 1)
            if white:
                flags |= Values.STRONG if reaches_cut else Values.FAINT
        elif binary and white <= 1:  # floats and wide integers, in which 1 is no faint gray level
            flags |= Values.STRONG
        elif binary:
            flags |= Values.UNIT if top == 1 else Values.WHITE
        else:
            if not levels and len(_distinct_values(values)) != 2:
                flags |= Values.GRAY
            if white == 1:  # floats
                flags |= Values.STRONG if top > 0.5 else Values.FAINT
        return Evidence(flags, levels, maps=1, file=file)

    def suggest_fixes(self, levels: Sequence[float], values: Map) -> Iterator[Fix]:
        """Yield advice for an ambiguous map: one option for each meaning that its values may have.

        - One or two values between 0 and white may be void, if the metric has an option for void.
        - Integers may be numbers of objects or labels of classes, if a mask is expected, and region
          or class labels, if boundaries are expected.
        - Values may be gray levels. Predictions are then to be normalised, and ground truth is to
          be thresholded at one half, if any value reaches half of white.

        `levels` are the distinct values of the map `values`, or () if there are more than LEVELS.
        """
        top = float(values.max(initial=0))
        are_integers = values.dtype.kind in "iu"
        void = _void_levels(levels) if self.void_option else ()
        if 0 < len(void) < 3:  # more values are rather labels
            value = void[0] if len(void) == 1 else list(void)
            yield Setting(self.void_option, value, f"if {_listed(void)} is void")
        if self.kind is Kind.MASK and are_integers and self.components:
            masks = "predictions" if self.truth else "truth"
            yield Setting(f"{self.metric}.components_of", masks, "if these are object numbers")
        elif self.kind is Kind.MASK and are_integers:
            yield "--set contour.classes=NAME,NAME (segmentation.classes) if these are class labels"
        if not self.truth and values.min(initial=0) < 0:
            yield "apply the sigmoid, if it is raw network output"
        elif not self.truth and np.isfinite(top):
            white = 0 if levels else _white_of(values)  # with few levels they may be labels
            meaning = (
                "if the maximum of each map is white" if white > 1 else "if these are gray levels"
            )
            yield Setting("normalise", True, meaning)
            if white > 1:
                yield f"save map > {white * 128 // 255}, which is empty here, if {white} is white"
        elif 2 * top >= white_above(top) > 0:  # white of the scale of `top`: 1, 255 or 65535
            yield Setting("gt_threshold", 0.5, "if these are gray levels")
        if self.kind is Kind.BOUNDARIES and are_integers:
            yield Setting("gt_kind", "labels", "if these are region labels")
            yield "--metrics contour if these are class labels"

    def problems(self, images: Sequence[Evidence], others: Sequence[Evidence]) -> Iterator[Problem]:
        """Yield one problem for each way in which the values of a set may be misinterpreted.

        `images` has the evidence of each ground truth if `self.truth` is True, otherwise of each
        prediction: flags of its values before thresholding. `others` is that of the other side. A
        problem names one file as an example.
        """
        side, values = SIDE_NAMES[self.truth], _all_flags(images)  # flags that some image has

        def first_with(flags: Values) -> Evidence:
            """Return the evidence of the alphabetically first file that has any of the flags."""
            return min((e for e in images if e.values & flags), key=attrgetter("file"))

        # A third value of a mask may mean void or gray, and no mask is clearly gray by many values
        if values & Values.FEW and not values & Values.GRAY:
            example = first_with(Values.FEW)
            has = f"{side} has the values {_listed(example.levels)}"
            fixes = tuple(self.suggest_fixes(example.levels, np.array(example.levels)))
            yield Problem(example.file, has, "two values, or gray levels", fixes)
        # One mask of 8 or 16 bits goes up to 1, another one up to white
        elif values & Values.UNIT and values & (Values.WHITE | Values.GRAY):
            white_file = first_with(Values.WHITE | Values.GRAY).file
            has = f"{side} has values up to 1, that of {white_file} up to white"
            fix: Fix = "save gray maps as masks, map > 128"
            if self.truth:
                fix = Setting("gt_threshold", 0.5, "if these are gray levels")
            yield Problem(first_with(Values.UNIT).file, has, "the same scale in all files", (fix,))
        # No value of the ground truth reaches the threshold, so the set has no object
        if self.truth and values & Values.FAINT and not values & Values.STRONG:
            limit = "at most one half" if self.cut is None else f"below gt_threshold = {self.cut}"
            # A binary mask of 0 and 255 has no flag FAINT or STRONG, and may be among them
            and_all = "" if values & Values.WHITE else ", and of all others,"
            has = f"all values of {side}{and_all} are {limit}"
            expected = "values up to white (255, 65535 or 1.0)"
            fix = Setting("gt_threshold", "none", "if these are masks of 0 and 1")
            fixes = () if self.cut is None else (fix,)
            yield Problem(first_with(Values.FAINT).file, has, expected, fixes)
        side = f"{side}, like all others, has"
        # All label maps hold only 0 and 255, as masks do
        if values & Values.WHITE_LABELS and not values & Values.LABELS:
            yield Problem(first_with(Values.WHITE_LABELS).file, f"{side} {WHITE_FOR_CLASSES}")
        # No map has an object, so the void value may be the object
        if len(images) > 1 and values == Values.VOID_ALONE and not _single_numbers(images):
            fix = Setting(self.void_option, -1, "if it is the object")
            yield Problem(first_with(values).file, f"{side} only void", "an object", (fix,))
        # One number in the whole set, for several connected components of some map: not numbered?
        if values & Values.PIECES and len(_single_numbers(images)) == 1:
            example = first_with(Values.PIECES)
            has = f"{side} one number, {_listed(example.levels)}, for several pieces"
            option = f"{self.metric}.components"
            beside: tuple[Setting, ...] = ()  # a second option, if the other side is numbered
            if _all_flags(others) & Values.NUMBERS:
                beside = (Setting(f"{option}_of", "truth" if self.truth else "predictions"),)
            fix = Setting(option, 8, "to number them", beside)
            fixes = (fix, Setting(option, 0, "to take them as one object"))
            yield Problem(example.file, has, "a number for each instance", fixes)
        # Some labels can only be Cityscapes' train ids, and none only its label ids (7, 8, 11 ..)
        if values & Values.TRAIN_IDS and not values & Values.LABEL_IDS:
            file, fix = first_with(Values.TRAIN_IDS).file, train_id_options(self.metric)
            yield Problem(file, f"{side} train ids (0, 1, ..)", "label ids", (fix,))

    def describe(
        self, images: Sequence[Evidence], layout: Layout, forms: Sequence[str] = ()
    ) -> str:
        """Describe how the files are read, as in "boundaries, inverted, 4-7 annotators per image".

        `images` has the `Evidence` of each image (at least one): flags of its values, and `maps`,
        its number of annotators. `layout` is the number of files per image. `forms` are the storage
        formats of the predictions, such as "soft8" for uint8; only soft maps need them.
        """
        content = (Kind.REGIONS if self.reads_regions else self.kind).value
        if self.kind is Kind.SOFT:
            kinds = sorted(set(forms))
            content = " and ".join(map(FORM_WORDS.get, kinds, kinds))
        elif self.kind is Kind.MASK:
            values = _all_flags(images)
            level = "white" if values & Values.WHITE else "1" if values & Values.UNIT else "not 0"
            if values & Values.GRAY:
                level = "gray above one half"
            if self.cut is not None:
                level = f"from {self.cut:g} of white on"
            content = f"masks ({level} is {'no' if self.inverted else 'the'} object)"
        phrases = [content]
        if self.inverted and self.kind is not Kind.MASK:
            phrases.append("inverted")
        if self.void and self.truth:
            phrases.append(f"void {_listed(self.void)}")
        if self.normalised:
            phrases.append("divided by their maximum")
        low = high = len(images)  # the number of files, or below the range of annotators per image
        noun, tail = "file", ""
        if self.kind is Kind.BOUNDARIES and self.truth:
            n_annotators = [evidence.maps for evidence in images]
            low, high, noun, tail = min(n_annotators), max(n_annotators), "annotator", " per image"
        number = f"{low}-{high}" if low < high else f"{high}"
        phrases.append(f"{number} {noun}{'' if number == '1' else 's'}{tail}")
        if arrangement := layout.describe():
            phrases[-1] += f" ({arrangement})"
        return ", ".join(phrases)


def _all_flags(images: Sequence[Evidence]) -> Values:
    """Return the flags that any of the images has."""
    flags = Values.NOTHING
    for evidence in images:
        flags |= evidence.values
    return flags


def _single_numbers(images: Sequence[Evidence]) -> set[float]:
    """Return the object numbers of a set if no image has several; otherwise an empty set."""
    if _all_flags(images) & Values.NUMBERS:
        return set()
    return {evidence.levels[0] for evidence in images if evidence.levels}


class Readings(NamedTuple):
    """How one metric reads the predictions and the ground truth."""

    pred: ReadOptions
    gt: ReadOptions

    def check_values(self, records: Sequence[ImageRecord]) -> Iterator[Problem | InputWarning]:
        """Check that the values in the files of a set have one meaning.

        `records` has the record of each image, with the evidence of its prediction and of its
        ground truth: flags such as FAINT (all values are almost 0, unlike STRONG), NARROW (faint,
        and at most the white of fewer bits), DARK (darker on the ground truth) and LIGHT. Yields

        - a Problem, an error, if the values have no single meaning, or soft maps are almost 0
        - an InputWarning if nothing is predicted in any image, or some predictions are NARROW
        - an InvertedWarning if some soft maps, or a quarter of the masks, are DARK
        """
        preds, gts = [], []
        for record in records:
            pred, gt = record.evidence_for(self.gt.metric)
            preds.append(pred)
            gts.append(gt)
        values = _all_flags(preds)  # the flags that at least one prediction has
        if self.gt.kind is Kind.OBJECTS:
            yield from self._number_problems(preds, gts)
        for options, images, others in ((self.pred, preds, gts), (self.gt, gts, preds)):
            yield from options.problems(images, others)
        if values & Values.FAINT and not values & Values.STRONG:  # all maps are almost 0
            strongest = max(evidence.strongest for evidence in preds)
            if strongest:
                form = max(records, key=lambda record: record.pred.strongest).form
                yield _faint_problem(form, strongest)
            else:
                is_mask = self.pred.kind is Kind.MASK
                has = "no value exceeds one half" if is_mask else "every map is all zeros"
                yield InputWarning(f"{has}: nothing is predicted")
        elif values & Values.FAINT:  # some maps are
            faint = [record for record in records if record.pred.values & Values.FAINT]
            narrow = [record for record in faint if record.pred.values & Values.NARROW]
            # Maps of 16 bits without a value of more than 8 bits may be images without boundaries,
            # but hardly a quarter of them
            of_8_bits = [r for r in faint if r.form == "soft16" and 1 < r.pred.strongest <= 255]
            if 4 * len(of_8_bits) >= len(records):
                narrow = of_8_bits
            if narrow:
                top = max(record.pred.strongest for record in narrow)
                has = f"{len(narrow)} of {len(records)} maps have no value above {top:g}"
                ids = listed([record.image_id for record in narrow], 3)
                fix = "0/1, or 8 bit saved as 16? save all maps on the same scale"
                yield InputWarning(f"{has}, unlike the others [{ids}]", fix=fix)
        if values & Values.DARK:
            dark = [r.image_id for r in records if r.pred.values & Values.DARK]
            light = [r.image_id for r in records if r.pred.values & Values.LIGHT]
            n_maps = len(dark) + len(light)
            has = f"{len(dark)} of {n_maps} maps {DARKER} [{listed(dark, 3)}]"
            invert = Setting("invert", not self.pred.inverted)
            are_most = len(dark) > len(light)
            # A few masks may be wrong without being inverted
            if self.pred.kind is not Kind.MASK or 4 * len(dark) >= n_maps:
                yield InvertedWarning(has, fix=invert if are_most else "invert only these")

    def _number_problems(
        self, preds: Sequence[Evidence], gts: Sequence[Evidence]
    ) -> Iterator[Problem]:
        """Yield a problem if all predicted objects have one number, and all annotated ones another.

        For example 1 and 255: objects that are paired by their number would never match. One of the
        two must be white (255 or 65535), the value of a mask; 1 and 2 may be different objects.
        """
        gt_numbers, pred_numbers = _single_numbers(gts), _single_numbers(preds)
        white = (gt_numbers | pred_numbers) & {255.0, 65535.0}
        if white and len(gt_numbers) == len(pred_numbers) == 1 and gt_numbers != pred_numbers:
            pred_number, gt_number = pred_numbers.pop(), gt_numbers.pop()
            has = f"{SIDE_NAMES[False]}, like all others, has one number, {pred_number:g}"
            expected = f"{gt_number:g} as in the truth: objects are paired by their number"
            file = min(e.file for e in preds if e.levels)
            yield Problem(file, has, expected, ("save the object as 1",))

    def describe(
        self, records: Sequence[ImageRecord], pred_layout: Layout, gt_layout: Layout
    ) -> str:
        """Describe how the files are read, as in "Read as: predictions ...; truth ...".

        The predictions are left out if there are none, for example when annotators are scored
        against each other. Returns "" if there are no images, or if an image has no evidence, as
        in reference runs.
        """
        preds, gts, forms = [], [], []
        for record in records:
            pred, gt = record.evidence_for(self.gt.metric)
            if not gt.maps:
                return ""
            gts.append(gt)
            if record.form not in ("none", "humans"):  # humans: annotators against each other
                preds.append(pred)
                forms.append(record.form)
        if not gts:
            return ""
        line = f"truth {self.gt.describe(gts, gt_layout)}"
        if preds:
            line = f"predictions {self.pred.describe(preds, pred_layout, forms)}; {line}"
        return f"Read as: {line}"


def check_all_values(
    readings: Iterable[Readings], records: Sequence[ImageRecord]
) -> list[InputWarning]:
    """Check with `Readings.check_values` that the values of a set have one meaning for each metric.

    `readings` has one item per metric, and `records` one per image. Returns the distinct warnings.
    Raises one DataError with all problems. A problem of several metrics is listed once, with the
    fixes that each of them suggests.
    """
    warnings: dict[str, InputWarning] = {}
    problems: dict[tuple[str, ...], Problem] = {}  # the key is all fields except the fixes
    for metric_readings in readings:
        for finding in metric_readings.check_values(records):
            if isinstance(finding, InputWarning):
                warnings[str(finding)] = finding
                continue
            key = finding.file, finding.has, finding.expected
            same = problems.get(key, finding)  # that of an earlier metric
            fixes = dict.fromkeys((*same.fix, *finding.fix))  # each once, in order
            problems[key] = evolve(finding, fix=tuple(fixes))
    if problems:
        raise DataError("", list(problems.values()))
    return list(warnings.values())


def _listed(levels: Sequence[float]) -> str:
    """Join numbers with commas."""
    return ", ".join(f"{level:g}" for level in levels)


def _faint_problem(form: str, top: float) -> Problem:
    """Return the problem to report if all values of a set of predictions are too small to count.

    `top` is the largest value in the set, and `form` the storage format of the map that has it:
    white is 255 for "soft8" (uint8), 65535 for "soft16" (uint16), and 1 for all others.
    """
    full_scale = {"soft8": 255, "soft16": 65535}.get(form, 1)
    fixes: list[Fix] = [Setting("normalise", True, "divides each map by its maximum")]
    if full_scale > 1 and top > 1:
        fixes.append(Setting("pred_kind", "labels", "reads region labels"))
    fixes.append("--metrics contour scores masks and class labels")
    scale = f" of {full_scale}" if full_scale > 1 else ""
    return Problem(
        has=f"predictions: no value above {top:.4g}{scale} in any map (0/1 or labels saved as 8 "
        "bit, 8 bit saved as 16, divided by 255 twice?)",
        expected=f"soft maps from 0 to {full_scale}",
        fix=tuple(fixes),
    )


def binarise(values: Map, cut: float | None, what: str, inclusive: bool = False) -> Bool:
    """Convert an (H, W) mask to bool.

    - A bool mask is returned unchanged.
    - A binary mask, of 0 and one of 1, 255 and 65535, is True where nonzero. Exception: if
      `inclusive` is True, 0 and 1 in uint8 or uint16 are gray levels.
    - Any other mask is gray: True above the threshold or, if `inclusive`, at or above it.

    The threshold `cut` is a fraction of white, which is 255 in uint8, 65535 in uint16 and 1 in
    floats; None means one half. `what` names the mask in errors. Raises DataError for gray levels
    outside 0 .. white, for other integer dtypes and, unless `inclusive`, for gray integers that are
    all at or below the threshold, because their scale is unknown.
    """
    if values.dtype == bool:
        return values
    white = _white_of(values)
    top = values.max(initial=0)
    is_gray = inclusive and top == 1 and white > 1  # 0 and 1 of 255 or 65535
    if is_binary(values) and not is_gray:
        return np.asarray(values != 0)
    half = 128 * (white // 255) if white > 1 else 0.5  # 128 in uint8, 32896 in uint16
    level = half if cut is None else cut * white
    in_range = values.min(initial=0) >= 0 and top <= white
    # A mask that was resized or saved as JPEG still has some value above the cut
    if not in_range or (not inclusive and white > 1 and top <= level):
        raise DataError(
            f"{what}: {describe_values(values)}, expected 0 and 1, 0 and 255, or gray in uint8, "
            "uint16 or floats from 0 to 1"
        )
    return np.asarray(values >= level if inclusive else values > level)


def _white_of(values: Map) -> int:
    """Return the value of white in a map's dtype: 255, 65535, 1 for floats, 0 for other dtypes."""
    if values.dtype.kind == "f":
        return 1
    return {"uint8": 255, "uint16": 65535}.get(values.dtype.name, 0)


def _third_values(values: Map) -> tuple[float, ...]:
    """Return the sorted distinct values of a mask if it may have a third class, such as void.

    A mask of three values may have one, a mask of two may not. Of more values, one between the
    smallest and the largest must fill a block of 3 x 3 pixels, because resizing and JPEG create
    values along outlines only. A mask of more than LEVELS values, some of them between half of the
    largest and the largest, is gray instead, like an average of masks.

    Returns () if there is no third class. Of more than LEVELS values, only the LEVELS - 1 smallest
    and the largest are returned.
    """
    levels = _distinct_values(values)  # () if there are more than LEVELS
    if len(levels) in (2, 3):
        return levels if len(levels) == 3 else ()
    low, top = values.min(), values.max()
    if not levels and ((values > top / 2) & (values < top)).any():
        return ()  # gray, like an average of masks
    inner = values[1:-1, 1:-1]  # the pixels with eight neighbours
    fills_block = (inner > low) & (inner < top)  # the value in between is that of all neighbours
    for row, col in np.ndindex(3, 3):
        fills_block &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
    if not fills_block.any():  # resizing and JPEG create values along outlines only
        return ()
    if levels:
        return levels
    distinct = np.unique(values)
    return tuple(map(float, (*distinct[: LEVELS - 1], distinct[-1])))


def _distinct_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map in ascending order, or () if there are more than LEVELS.

    >>> _distinct_values(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels = list[float]()
    rest = values.ravel()  # the pixels whose values are not yet in `levels`
    # Stops after LEVELS + 1 passes, while np.unique would sort all pixels
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def _void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels that must mean void if the map is a mask: all except 0 and white.

    White is 1 if that is a level; otherwise it is the largest level, which must be 255 or 65535.
    Returns () if 0 or white is missing.

    >>> _void_levels((0, 1, 255)), _void_levels((0, 127, 255)), _void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))
