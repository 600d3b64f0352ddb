"""Interpretation of pixel values: binarising masks, and consistency checks of a whole set.

The predictions and the ground truth of a run are each read under a `ReadOptions`. If no option is
set, mask values must have a single conventional meaning (see `binarise`). A mask with a third value
(void or gray?) is rejected, unless an option decides or other files of the set are clearly gray.

Each image is read on its own. What its values reveal about their encoding is its `Evidence`, which
`check_all_values` checks for all images once the set is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

import numpy as np
from attrs import evolve, frozen

from bsdsbench.arguments import Bools
from bsdsbench.errors import DataError, Fix, InputWarning, InvertedWarning, Problem, Setting
from bsdsbench.images import Map, describe_values, is_binary, remedies_beyond, without_void
from bsdsbench.loaders.formats.pictures import refuse_jpeg_noise, white_above
from bsdsbench.loaders.labels import (
    VOID_EVIDENCE,
    WHITE_FOR_CLASSES,
    distinct_values,
    third_values,
    train_id_options,
    void_levels,
    white_of,
)
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.signature import WORDS
from bsdsbench.scores.counts import Evidence, ImageRecord, Values
from bsdsbench.text import join_names

LOSSY = (".jpg", ".jpeg", ".webp")  # formats that change values
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

    mask: Bools  # (H, W), True at the object or boundary, False at void pixels
    # (H, W), False at void pixels; None for a prediction, or if no void values apply
    valid: Bools | None
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
        """Binarise a map, (H, W): True at the object or the boundaries, False at void pixels.

        Void pixels are set to 0. The map is divided by its maximum if `normalised`, thresholded at
        `cut` (None: one half, see `binarise`), and inverted if `inverted`.

        - is_logical: True if the file states that 0 and 1 are truth values (BSDS). A binary map is
          then True where nonzero, whatever the `cut`.
        - what, file: the name of the map in errors, and of its file, or ""

        Raises DataError, with the options that would help, if the values are ambiguous, or if
        boundaries are neither binary (0 and one of 1, 255 and 65535) nor thresholded at a `cut`.
        """
        valid = None
        # In a binary prediction, 255 is the object, even if it is void in the ground truth
        if self.void and values.dtype != bool and (self.truth or not is_binary(values)):
            # In the precision of the map, so that a void value of 0.1 equals the 0.1 of float32
            dtype = values.dtype if values.dtype.kind == "f" else None
            valid = ~np.isin(values, np.array(self.void, dtype))
        values = without_void(values, valid)
        if self.normalised and values.max(initial=0) > 0:
            values = values / values.max()
        binary = is_binary(values)  # only 0 and one of 1, 255 and 65535
        # `distinct_values` returns () for more than 5 values, among which may be noise of JPEG
        if self.truth and self.cut is not None and not distinct_values(values):
            refuse_jpeg_noise(values, white_of(values), self.cut, what)
        try:
            if self.kind in (Kind.BOUNDARIES, Kind.REGIONS) and self.cut is None and not binary:
                levels = _join_numbers(distinct_values(values))
                has = f"values {levels}" if levels else "gray values"
                expected = "expected boundaries of 0 and 1 or 0 and 255"
                raise DataError(f"{what}: {has}, {describe_values(values)}, {expected}")
            if binary and is_logical:
                mask = values if values.dtype == bool else np.asarray(values != 0)
                evidence = Evidence(maps=1, file=file)  # without flags, as nothing is ambiguous
            else:
                # A pixel equal to a given `cut` is object; one equal to one half, by default, not
                mask = binarise(values, self.cut, what, inclusive=self.cut is not None)
                evidence = self._evidence_of(values, binary, file)
        except DataError as error:
            fixes = tuple(self.suggest_fixes(distinct_values(values), values))
            raise DataError(str(error), fix=fixes) from None
        if self.inverted:
            mask = ~mask
        if valid is None:
            return MaskRead(mask, None, evidence)
        if not values.any() and not valid.all():  # nothing but void
            evidence = evidence | VOID_EVIDENCE
        # Void pixels of a prediction are only no object; those of the truth are not scored
        return MaskRead(mask & valid, valid if self.truth else None, evidence)

    def _evidence_of(self, values: Map, binary: bool, file: str) -> Evidence:
        """Return flags of an (H, W) mask that show the scale of its values, such as 0 to 255.

        The scale is known only from all masks together (`problems`): if one goes up to 1, and
        another up to 255, the first may be a mask of 0 and 1, or almost black.

        - FAINT: no value reaches the threshold, or a prediction is empty. STRONG: otherwise
        - FEW: a third value may mean void; the distinct values are returned as `levels`
        - without a `cut`, in 8 and 16 bits, UNIT: only 0 and 1, where 1 may be a gray level, almost
          black. WHITE: only 0 and 255 or 65535
        - without a `cut`, GRAY: more than two values, of which none may mean void

        `binary` is True if the mask holds only 0 and one of 1, 255 and 65535. `file` is its name.
        """
        top = values.max(initial=0)
        flags = Values.NOTHING
        if values.dtype == bool or not top:  # bools and zeros have no scale
            if not self.truth:  # an inverted map of zeros is object everywhere
                flags = Values.STRONG if top or self.inverted else Values.FAINT
            return Evidence(flags, maps=1, file=file)
        if not self.truth and values.dtype.kind != "f":  # integers other than 0 are not empty
            flags = Values.STRONG
        # A third value means something only if a program wrote it: division and JPEG create others
        is_as_drawn = not self.normalised and not file.lower().endswith(LOSSY)
        # A cut decides what a third value means, unless it lies just above 0 (as in presets)
        cut_decides = self.cut is not None and self.cut >= 1 / 255
        may_have_third = is_as_drawn and not binary and not cut_decides
        levels = third_values(values) if may_have_third else ()
        if levels:
            flags |= Values.FEW
        white = white_of(values)  # 255, 65535, 1 in floats, 0 in integers wider than 16 bits
        if self.cut is None:
            if binary and white > 1:
                flags |= Values.UNIT if top == 1 else Values.WHITE
            elif not binary and not levels and len(distinct_values(values)) != 2:
                flags |= Values.GRAY
            if white == 1 or (binary and not white):  # 1 is white in floats and wide integers
                flags |= Values.STRONG if top > 0.5 else Values.FAINT
        elif white:
            # A mask of 0 and 255 is object where nonzero, in 16 bits too (see `binarise`)
            reaches_cut = top >= self.cut * white or (binary and top > 1)
            flags |= Values.STRONG if reaches_cut else Values.FAINT
        return Evidence(flags, levels, maps=1, file=file)

    def suggest_fixes(self, levels: Sequence[float], values: Map) -> Iterator[Fix]:
        """Yield advice for an ambiguous map: one option for each meaning that its values may have.

        Values between 0 and white may be void, and integers numbers of objects, or labels of
        classes or regions. If they are gray levels, ground truth is to be thresholded at one half,
        if any reaches half of white, and a prediction is to be normalised. `levels` are the
        distinct values of the map `values`, or () if there are more than LEVELS.
        """
        are_integers = values.dtype.kind in "iu"
        top = float(values.max(initial=0))
        void = void_levels(levels) if self.void_option else ()
        if 0 < len(void) < 3:  # more values are rather labels
            value = void[0] if len(void) == 1 else list(void)
            yield Setting(self.void_option, value, f"if {_join_numbers(void)} is void")
        if self.kind is Kind.MASK and are_integers and self.components:
            yield Setting(f"{self.metric}.components", "none", "if both sides number objects")
        elif self.kind is Kind.MASK and are_integers:
            yield "--set contour.classes=NAME,NAME (segmentation.classes) if these are class labels"
        if self.truth:
            if 2 * top >= white_above(top) > 0:  # white of the scale of `top`: 1, 255 or 65535
                yield Setting("gt_threshold", 0.5, "if these are gray levels")
        elif values.min(initial=0) < 0 or 1 < top <= 1.25:  # a resize or a network goes so far
            yield from remedies_beyond(float(values.min()), top)
        elif not levels and (white := white_of(values)) > 1:
            # `binarise` refuses many values in 8 or 16 bits only if none exceeds half of white
            yield Setting("normalise", True, "if the maximum of each map is white")
            half = white * 128 // 255  # 128 in uint8, 32896 in uint16
            yield f"save map > {half}, which is empty here, if {white} is white"
        elif np.isfinite(top):  # floats, or a few levels, which may also be labels
            yield Setting("normalise", True, "if these are gray levels")
        if self.kind is Kind.BOUNDARIES and are_integers:
            yield Setting("gt_kind", "labels", "if these are region labels")
            yield "--metrics contour if these are class labels"

    def problems(self, images: Sequence[Evidence]) -> Iterator[Problem]:
        """Yield one problem for each way in which the values of a set may be misinterpreted.

        `images` has the `Evidence` of each image on this side: flags of its values, and `levels`,
        its distinct values or its object number. A flag of one image counts for the set, as all
        files of a set are written alike. A problem names the first file with the flag.
        """
        flags = _all_flags(images)  # flags that some image has
        side = SIDE_NAMES[self.truth]
        has_always = f"{side}, like all others, has"

        def problem(flag: Values, has: str, expected: str = "", *fixes: Fix) -> Problem:
            """Return a problem of the first file with a flag."""
            return Problem(_first_evidence_with(flag, images).file, has, expected, fixes)

        # FEW: a mask has a third value, void or gray. GRAY: a mask has many values, so it is gray
        if flags & Values.FEW and not flags & Values.GRAY:
            levels = _first_evidence_with(Values.FEW, images).levels
            # The map is no longer in memory, but its distinct values suffice for advice
            advice = self.suggest_fixes(levels, np.array(levels))
            has = f"{side} has the values {_join_numbers(levels)}"
            yield problem(Values.FEW, has, "two values, or gray levels", *advice)
        # UNIT: a mask of 8 or 16 bits goes up to 1. WHITE or GRAY: one goes up to white
        elif flags & Values.UNIT and flags & (Values.WHITE | Values.GRAY):
            white_file = _first_evidence_with(Values.WHITE | Values.GRAY, images).file
            has = f"{side} has values up to 1, that of {white_file} up to white"
            gray = Setting("gt_threshold", 0.5, "if these are gray levels")
            fix = gray if self.truth else "save gray maps as masks, map > 128"
            yield problem(Values.UNIT, has, "the same scale in all files", fix)
        # FAINT: no value of a mask reaches the threshold. STRONG: some value does
        if self.truth and flags & Values.FAINT and not flags & Values.STRONG:
            limit = "at most one half" if self.cut is None else f"below gt_threshold = {self.cut}"
            # Masks of 0 and 255 (WHITE) are neither FAINT nor STRONG, so that not all are faint
            and_all = "" if flags & Values.WHITE else ", and of all others,"
            has, white = f"all values of {side}{and_all} are {limit}", "white (255, 65535 or 1.0)"
            unset = Setting("gt_threshold", "none", "if these are masks of 0 and 1")
            fixes = () if self.cut is None else (unset,)
            yield problem(Values.FAINT, has, f"values up to {white}", *fixes)
        # WHITE_LABELS: a label map holds only 0 and 255, as masks do. LABELS: one has other labels
        if flags & Values.WHITE_LABELS and not flags & Values.LABELS:
            yield problem(Values.WHITE_LABELS, f"{has_always} {WHITE_FOR_CLASSES}")
        # VOID_ALONE: a map has void pixels and no object, so the void value may be the object
        if len(images) > 1 and flags == Values.VOID_ALONE and not _object_numbers(images):
            fix = Setting(self.void_option, -1, "if it is the object")
            yield problem(Values.VOID_ALONE, f"{has_always} only void", "an object", fix)
        # PIECES: the objects of a map have one number, but form several connected components. If
        # the whole set has only this number, it is perhaps a mask, whose objects are not numbered
        if flags & Values.PIECES and len(_object_numbers(images)) == 1:
            option = f"{self.metric}.components"
            number = Setting(option, 8, "to number them, if both sides are masks")
            levels = _first_evidence_with(Values.PIECES, images).levels
            has = f"{has_always} one number, {_join_numbers(levels)}, for several pieces"
            as_one = Setting(option, 0, "to take them as one object")
            yield problem(Values.PIECES, has, "a number for each instance", number, as_one)
        # TRAIN_IDS: a label can only be a train id of Cityscapes (0 to 18). LABEL_IDS: one can only
        # be a label id (7, 8, 11 .. 33)
        if flags & Values.TRAIN_IDS and not flags & Values.LABEL_IDS:
            fix = train_id_options(self.metric)
            yield problem(Values.TRAIN_IDS, f"{has_always} train ids (0, 1, ..)", "label ids", fix)

    def describe(
        self, images: Sequence[Evidence], layout: Layout, forms: Sequence[str] = ()
    ) -> str:
        """Describe how the files are read, as in "boundaries, inverted, 4-7 annotators per image".

        `images` has the `Evidence` of each image (at least one), `layout` the number of files for
        an image. `forms` are the storage formats of soft predictions, such as "soft8" for uint8.
        """
        content = (Kind.REGIONS if self.reads_regions else self.kind).value
        if self.kind is Kind.SOFT:
            names = sorted(set(forms))
            content = " and ".join(map(WORDS["pred"].names.get, names, names))  # or the form itself
        elif self.kind is Kind.MASK:
            flags = _all_flags(images)
            object_values = "not 0"  # bools and floats of two values
            if self.cut is not None:
                object_values = f"from {self.cut:g} of white on"
            elif flags & Values.GRAY:  # some masks have many values, so all are thresholded
                object_values = "gray above one half"
            elif flags & Values.WHITE:  # masks of 0 and 255 or 65535
                object_values = "white"
            elif flags & Values.UNIT:  # masks of 0 and 1
                object_values = "1"
            content = f"masks ({object_values} is {'no' if self.inverted else 'the'} object)"
        phrases = [content]
        if self.inverted and self.kind is not Kind.MASK:
            phrases.append("inverted")
        if self.void and self.truth:
            phrases.append(f"void {_join_numbers(self.void)}")
        if self.normalised:
            phrases.append("divided by their maximum")
        n_files = len(images)
        files = f"{n_files} file{'' if n_files == 1 else 's'}"
        if self.kind is Kind.BOUNDARIES and self.truth:
            n_annotators = list(map(attrgetter("maps"), images))
            low, high = min(n_annotators), max(n_annotators)
            number = f"{low}-{high}" if low < high else f"{high}"
            files = f"{number} annotator{'' if high == 1 else 's'} per image"
        arrangement = layout.describe()  # such as "2 files per image: ID_0 .. ID_1"; "" for one
        phrases.append(f"{files} ({arrangement})" if arrangement else files)
        return ", ".join(phrases)


def _all_flags(images: Sequence[Evidence]) -> Values:
    """Return the flags that any of the images has."""
    distinct = set(map(attrgetter("values"), images))  # few, and enums are slow to unite
    return reduce(or_, distinct, Values.NOTHING)


def _first_evidence_with(flags: Values, images: Sequence[Evidence]) -> Evidence:
    """Return the evidence of the alphabetically first file with any of the flags."""
    return min((e for e in images if e.values & flags), key=attrgetter("file"))


def _object_numbers(images: Sequence[Evidence]) -> set[float]:
    """Return the numbers of the objects in a set, or an empty set if some image has several.

    The `levels` of an image whose objects have one number are this number.
    """
    if _all_flags(images) & Values.NUMBERS:  # some image has several numbers
        return set()
    return {evidence.levels[0] for evidence in images if evidence.levels}


class Readings(NamedTuple):
    """How one metric reads the predictions and the ground truth."""

    pred: ReadOptions
    gt: ReadOptions

    def check_values(self, records: Sequence[ImageRecord]) -> Iterator[Problem | InputWarning]:
        """Check that the values in the files of a set have one meaning.

        The evidence of each image is in its record. A soft map that is almost 0, or an empty mask,
        is FAINT, others are STRONG. DARK maps are darker on the ground truth than elsewhere. Yields

        - a Problem, an error, if the values have no single meaning, or all soft maps are almost 0
        - an InputWarning if nothing is predicted in any image, or some maps have another scale
        - an InvertedWarning if some soft maps, a quarter of the masks, or some truths are DARK
        """
        preds, gts = [], []
        for record in records:
            pred, gt = record.evidence_for(self.gt.metric)  # as this metric has read the files
            preds.append(pred)
            gts.append(gt)
        flags = _all_flags(preds)  # the flags that at least one prediction has
        if self.gt.kind is Kind.OBJECTS:  # they are paired by their number
            yield from self._number_problems(preds, gts)
        yield from self.pred.problems(preds)
        yield from self.gt.problems(gts)
        if flags & Values.FAINT and not flags & Values.STRONG:  # all are
            maxima = [evidence.strongest for evidence in preds]
            if any(maxima):  # soft maps; they are 0 for masks, and for soft maps of zeros
                largest = max(maxima)
                form = records[maxima.index(largest)].form
                yield _problem_of_faint_maps(form, largest, beside_mask=self.gt.kind is Kind.MASK)
            else:
                is_mask = self.pred.kind is Kind.MASK
                has = "no value exceeds one half" if is_mask else "every map is all zeros"
                yield InputWarning(f"{has}: nothing is predicted")
        elif any(map(attrgetter("strongest"), preds)):  # some are almost 0, or in percent
            yield from _scale_warnings(records, preds)
        # DARK: darker on the ground truth than elsewhere. LIGHT: not; neither flag: unknown
        dark, n_light = list[str](), 0
        for record, pred in zip(records, preds, strict=True):
            if pred.values & Values.DARK:
                dark.append(record.image_id)
            if pred.values & Values.LIGHT:
                n_light += 1
        n_maps = len(dark) + n_light
        # A few masks may miss the object without being inverted
        if dark and (self.pred.kind is not Kind.MASK or 4 * len(dark) >= n_maps):
            has = f"{len(dark)} of {n_maps} maps {DARKER} [{join_names(dark, 3)}]"
            invert = Setting("invert", not self.pred.inverted)
            yield InvertedWarning(has, fix=invert if len(dark) > n_light else "invert only these")
        # If the truth of all images is inverted, the check of the first images tells it
        inverted = list[str]()
        for record, gt in zip(records, gts, strict=True):
            if gt.values & Values.DARK:
                inverted.append(record.image_id)
        if 0 < len(inverted) < len(records):
            has = f"ground truth of {len(inverted)} of {len(records)} images is inverted"
            has += f", unlike the others: most pixels are boundary [{join_names(inverted, 3)}]"
            yield InvertedWarning(has, fix="invert only these")

    def _number_problems(
        self, preds: Sequence[Evidence], gts: Sequence[Evidence]
    ) -> Iterator[Problem]:
        """Yield a problem if all predicted objects have one number, and all annotated ones another.

        For example 1 and 255: objects that are paired by their number would never match. One of the
        two must be white (255 or 65535), the value of a mask; 1 and 2 may be different objects.
        """
        # Each is empty if some image has several numbers
        gt_numbers, pred_numbers = _object_numbers(gts), _object_numbers(preds)
        white = (gt_numbers | pred_numbers) & {255.0, 65535.0}
        if white and len(gt_numbers) == len(pred_numbers) == 1 and gt_numbers != pred_numbers:
            (pred_number,), (gt_number,) = pred_numbers, gt_numbers
            has = f"{SIDE_NAMES[False]}, like all others, has one number, {pred_number:g}"
            expected = f"{gt_number:g} as in the truth: objects are paired by their number"
            file = min(e.file for e in preds if e.levels)  # the first file with an object
            yield Problem(file, has, expected, ("save the object as 1",))  # on both sides

    def describe(
        self, records: Sequence[ImageRecord], pred_layout: Layout, gt_layout: Layout
    ) -> str:
        """Describe how the files are read, as in "Read as: predictions ...; truth ...".

        Without predictions (annotators are scored against each other), these are left out. Returns
        "" without images, or if values were not examined, as for the results of other programs.
        """
        preds, gts, forms = [], [], []  # the evidence of each side, and the formats of predictions
        for record in records:
            pred, gt = record.evidence_for(self.gt.metric)
            if not gt.maps:  # the number of examined maps
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


def _scale_warnings(
    records: Sequence[ImageRecord], preds: Sequence[Evidence]
) -> Iterator[InputWarning]:
    """Yield a warning if some soft maps, but not all, are probably stored on another scale.

    In `preds`, the evidence of each prediction, `strongest` is the maximum of a map that is almost
    0, 100 for 8-bit maps in percent, and 0 for other maps. The maps that are named are NARROW:
    `strongest` is the white of a mask (1), or of 8 bits (255) in a 16-bit map. If a quarter of the
    maps are of 16 bits and at most 255, all of these are named: an image without boundaries gives
    such a map, but hardly so often. So are maps in percent, if there are three.
    """
    narrow, of_8_bits = dict[str, float](), dict[str, float]()  # image id -> largest value
    in_percent = list[str]()  # image ids
    for record, pred in zip(records, preds, strict=True):
        if pred.values & Values.NARROW:
            narrow[record.image_id] = pred.strongest
        if record.form == "soft16" and 1 < pred.strongest <= 255:
            of_8_bits[record.image_id] = pred.strongest
        elif pred.strongest == 100:
            in_percent.append(record.image_id)
    if 4 * len(of_8_bits) >= len(records):
        narrow = of_8_bits
    if 3 <= len(in_percent) < len(records) <= 4 * len(in_percent):  # if all: `FirstImages`
        has = f"100 of 255 is the largest value of {len(in_percent)} of {len(records)} maps"
        fix = "percent? save all maps on the same scale"
        yield InputWarning(f"{has} [{join_names(in_percent, 3)}]", fix=fix)
    if narrow:
        has = f"{len(narrow)} of {len(records)} maps have no value above {max(narrow.values()):g}"
        fix = "0/1, or 8 bit saved as 16? save all maps on the same scale"
        yield InputWarning(f"{has}, unlike the others [{join_names([*narrow], 3)}]", fix=fix)


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


def _join_numbers(levels: Sequence[float]) -> str:
    """Join numbers with commas."""
    return ", ".join(f"{level:g}" for level in levels)


def _problem_of_faint_maps(form: str, top: float, beside_mask: bool) -> Problem:
    """Return the problem to report if all values of a set of predictions are too small to count.

    `top` is the largest value in the set, and `form` the storage format of the map that has it:
    "soft8" (uint8), "soft16" (uint16), "classes" for a stack of boundary maps, or another one, such
    as "float". `beside_mask`: the truth is a mask, with which no regions are compared.
    """
    white = {"soft8": 255, "soft16": 65535}.get(form, 1)  # 1 in floats
    if form == "classes" and top >= 1:  # of 8 bits, because no float map that reaches 1 is faint
        white = 255
    fixes: list[Fix] = [Setting("normalise", True, "divides each map by its maximum")]
    if form in ("soft8", "soft16") and top > 1 and not beside_mask:  # perhaps region numbers
        fixes.append(Setting("pred_kind", "labels", "reads region labels"))
    fixes.append("--metrics contour scores masks and class labels")
    scale = f" of {white}" if white > 1 else ""
    return Problem(
        has=f"predictions: no value above {top:.4g}{scale} in any map (0/1 or labels saved as 8 "
        "bit, 8 bit saved as 16, divided by 255 twice?)",
        expected=f"soft maps from 0 to {white}",
        fix=tuple(fixes),
    )


def binarise(values: Map, cut: float | None, what: str, inclusive: bool = False) -> Bools:
    """Convert an (H, W) mask to bool.

    - A binary mask, of 0 and one of 1, 255 and 65535, is True where nonzero.
    - Any other mask is gray: True above the threshold `cut` or, if `inclusive`, at or above it.

    `cut` is a fraction of white, which is 255 in uint8, 65535 in uint16 and 1 in floats; None means
    one half. `inclusive` is True if a user gave it, who says by this that masks are gray. Raises
    DataError, which names the mask (`what`), if gray values do not fit this scale.
    """
    if values.dtype == bool:
        return values
    white = white_of(values)
    top = values.max(initial=0)
    # To a user's threshold, 0 and 1 of 255 or 65535 are gray levels, both almost black
    is_gray = inclusive and top == 1 and white > 1
    if is_binary(values) and not is_gray:
        return np.asarray(values != 0)
    # 128 in uint8 and 128 * 257 in uint16, as programs convert 8 to 16 bits by the factor 257
    half = 128 * (white // 255) if white > 1 else 0.5
    level = half if cut is None else cut * white
    lowest = values.min(initial=top)
    # Up to rounding of floats. False for integers of 32 bits, as `white` is 0
    in_range = lowest >= -1e-6 and top <= white + 1e-6
    # At a threshold of almost 0, a mask of 1 and 2, which are perhaps labels, is object everywhere
    is_all_object = level < white / 255 and 0 < lowest < top
    # Integers at or below the threshold may be labels. Floats are on the scale from 0 to 1, and a
    # mask that was resized or saved as JPEG still has some value above the threshold
    is_scale_unknown = not inclusive and white > 1 and top <= level
    if not in_range or is_all_object or is_scale_unknown:
        expected = "expected 0 and 1, 0 and 255, or gray in uint8, uint16 or floats from 0 to 1"
        raise DataError(f"{what}: {describe_values(values)}, {expected}")
    return np.asarray(values >= level if inclusive else values > level)
