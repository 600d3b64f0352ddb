"""The meaning of the values in files: how masks become bool, and checks of a whole set.

Each side of a run (predictions, ground truth) has `ReadOptions`. Without an option, a mask is read
by the only meaning in use for such values:

| values of a mask | meaning |
|---|---|
| 0 and one of 1, 255, 65535, in any type | the object is not 0 |
| many, from 0 to white | gray, as resizing and JPEG make masks: the object is above one half, or from `gt_threshold` on |
| three, or more with uniform areas of a middle value | two meanings, void or gray: refused, unless an option chooses, or other files of the side are gray |

Each image is read by itself, and the properties of its values are kept as `Evidence` in its record.
`check_all_values` judges the evidence of all images once the set is complete.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from attrs import Factory, evolve, frozen

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError, Fix, InputWarning, Problem, Setting
from bsdsbench.images import Map, describe_values, is_binary, white_above
from bsdsbench.loaders.labels import VOID_EVIDENCE, WHITE_FOR_CLASSES, train_id_options
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.fields import tidy
from bsdsbench.scores.counts import LEVELS, NO_EVIDENCE, Evidence, ImageRecord, Values
from bsdsbench.text import counted, listed

LOSSY = (".jpg", ".jpeg", ".webp")  # formats that change values
FORM_WORDS = {  # form of a prediction -> words
    "soft8": "soft 8-bit maps",
    "soft16": "soft 16-bit maps",
    "float": "soft float maps",
    "binary": "binary maps",
    "ucm2": "contour maps of double size (ucm2)",
    "segs": "segmentations",
}
SIDE_NAMES = ("its prediction", "its truth")
DARKER = "are darker on the ground truth than off it"

Cut = float | tuple[float, float, float] | None  # see `binarise`


class Kind(Enum):
    """What the files of a side contain."""

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
    """A binarised map."""

    mask: Bool  # (H, W), True at the object or boundary, False at void pixels
    valid: Bool | None  # (H, W), False at void pixels; None if no pixel is void
    evidence: Evidence  # the properties of the map's values before it was binarised


@frozen
class ReadOptions:
    """The options by which the files of one side, predictions or ground truth, are read."""

    kind: Kind
    # Gray pixels are object from this fraction of white on. None: if they are above one half.
    cut: float | None = None
    void: tuple[float, ...] = ()  # values of pixels that are not scored
    inverted: bool = False  # True if the object is dark; masks are inverted after the cut
    normalised: bool = False  # True if each map is divided by its largest value
    truth: bool = True  # True for the ground truth, False for the predictions
    # Name of the option that sets `void`, such as "saliency.ignore"; "" if the metric has none
    void_option: str = ""
    metric: str = ""  # the metric whose options are suggested in error messages
    layout: Layout = Factory(Layout)  # the arrangement of the files

    def mask(self, values: Map, what: str = "mask", file: str = "") -> MaskRead:
        """Binarise an (H, W) map of any numbers under these options.

        1. Void pixels are set to 0. In a prediction, this is only done if the map has values other
           than 0 and one of 1, 255 and 65535.
        2. If `normalised` is True, the map is divided by its largest value.
        3. The map is compared with `cut`, or with one half if `cut` is None (see `binarise`).
        4. If `inverted` is True, the mask is inverted.
        5. Void pixels are set to False.

        `what` names the map in error messages. `file` is the name of its file, or "". The `valid`
        map that is returned is None for predictions, and if no pixel can be void.

        Raises DataError, with the options that would help, if the values have no single meaning.
        """
        valid = None
        if self.void and values.dtype != bool and (self.truth or not is_binary(values)):
            valid = ~_is_any_of(values, self.void)
            values = np.where(valid, values, values.dtype.type(0))
        if self.normalised and values.max(initial=0) > 0:
            values = values / values.max()
        evidence = self._evidence_of(values, file)
        try:
            mask = binarise(values, self.cut, what, inclusive=self.cut is not None)
        except DataError as error:
            fixes = tuple(self.suggest_fixes(_distinct_values(values), values))
            raise DataError(str(error), fix=fixes) from None
        if self.inverted:
            mask = ~mask
        if valid is None:
            return MaskRead(mask, None, evidence)
        has_only_void = not values.any() and not valid.all()
        if has_only_void:
            evidence = evidence | VOID_EVIDENCE
        return MaskRead(mask & valid, valid if self.truth else None, evidence)

    def _evidence_of(self, values: Map, file: str) -> Evidence:
        """Record which kinds of values an (H, W) mask has, so that a whole set can be checked.

        - A bool mask, or one that is 0 everywhere, has no properties.
        - If `cut` is set, a mask is STRONG if a value reaches the cut or if it has only the values
          0 and white. Otherwise it is FAINT. Wide integers, which have no white, are neither.
        - Without `cut`, a mask of 0 and 1 is UNIT, and one of 0 and 255 or 65535 is WHITE. In
          floats and wide integers, however, a mask of two such values is STRONG.
        - Other masks are GRAY, unless they are FEW or have only two values, such as 0 and 200.
          Float masks are also STRONG if a value exceeds one half, and otherwise FAINT.
        - A mask is also FEW if a third value seems to have a meaning, such as void. This is not
          tested for a mask that is normalised, has a lossy file, or for which `cut` decides.
        """
        top = values.max(initial=0)
        if values.dtype == bool or not top:
            return Evidence(maps=1, file=file)
        white = _white_of(values)
        has_two_values = is_binary(values)
        levels: tuple[float, ...] = ()
        is_as_drawn = not self.normalised and not file.lower().endswith(LOSSY)
        # A cut decides what a third gray level means, unless it lies just above 0 (as in presets)
        cut_decides = self.cut is not None and self.cut >= 1 / 255
        if is_as_drawn and not has_two_values and not cut_decides:
            levels = _third_values(values)
        properties = Values.FEW if levels else Values.NOTHING
        if self.cut is not None:
            reaches_cut = top >= self.cut * white or (has_two_values and top > 1)
            if white:  # integers wider than 16 bits have no white to compare with
                properties |= Values.STRONG if reaches_cut else Values.FAINT
        elif has_two_values:
            if white <= 1:  # in floats and wide integers, 0 and 1 cannot be the noise of a gray map
                properties = Values.STRONG
            else:
                properties = Values.UNIT if top == 1 else Values.WHITE
        else:
            if not levels and len(_distinct_values(values)) != 2:
                properties = Values.GRAY
            if white == 1:
                properties |= Values.STRONG if top > 0.5 else Values.FAINT
        return Evidence(properties, levels, maps=1, file=file)

    def boundary(self, values: Map, what: str, file: str = "") -> MaskRead:
        """Binarise an annotator's (H, W) boundary map as `mask` does, but without a default cut.

        If `cut` is None, DataError is raised unless the values of the pixels that are not void are
        0 and one of 1, 255 and 65535.
        """
        not_void = values[~_is_any_of(values, self.void)] if self.void else values
        if self.cut is None and not is_binary(not_void):
            levels = _distinct_values(not_void)
            has = f"values {_listed(levels)}" if levels else "gray values"
            expected = "expected boundaries of 0 and 1 or 0 and 255"
            fixes = tuple(self.suggest_fixes(levels, values))
            raise DataError(f"{what}: {has}, {describe_values(values)}, {expected}", fix=fixes)
        return self.mask(values, what, file)

    def suggest_fixes(self, levels: Sequence[float], values: Map) -> Iterator[Fix]:
        """Yield the options that would each give a map with a third value a single meaning.

        - If the metric has an option for void, it can declare the middle values void.
        - For gray maps, predictions can be normalised. Ground truth can get a threshold of one
          half, if its largest value reaches half of white so that some object is left.
        - Where boundaries are expected, integers can be read as region labels or classes.

        `levels` are the distinct values of the map, or () if there are more than LEVELS.
        """
        top = float(values.max(initial=0))
        white = white_above(top)
        void = _void_levels(levels) if self.void_option else ()
        if void:
            value = void[0] if len(void) == 1 else list(void)
            yield Setting(self.void_option, value, "for a void")
        if not self.truth:
            yield Setting("normalise", True, "for gray maps")
        elif 2 * top >= white > 0:
            yield Setting("gt_threshold", 0.5, "for gray maps")
        if self.kind is Kind.BOUNDARIES and values.dtype.kind in "iu":
            yield Setting("gt_kind", "labels", "for region labels")
            yield "metric contour for classes"

    def value_problems(self, images: Sequence[Evidence], values: Values) -> Iterator[Problem]:
        """Yield the problems of a set of masks whose values have no single meaning.

        - Some masks have a third value, which may mean void or gray, and no mask is gray.
        - If that is not so: some masks hold 0 and 1 in 8 or 16 bits, while others reach white. The
          set then has two scales.
        - No value of the ground truth reaches the cut, so there is no object.

        `images` is the evidence of each image, and `values` holds the properties of all images.
        """
        side = SIDE_NAMES[self.truth]
        if values & Values.FEW and not values & Values.GRAY:
            example = _first_file_with(Values.FEW, images)
            has = f"{side} of the values {_listed(example.levels)}"
            fixes = tuple(self.suggest_fixes(example.levels, np.array(example.levels)))
            yield Problem(example.file, has, "a mask of two values, or gray", fixes)
        elif values & Values.UNIT and values & (Values.WHITE | Values.GRAY):
            white_file = _first_file_with(Values.WHITE | Values.GRAY, images).file
            has = f"{side} has values up to 1, that of {white_file} up to white"
            fix = Setting("gt_threshold", 0.5, "takes gray ones apart")
            file = _first_file_with(Values.UNIT, images).file
            yield Problem(file, has, "one scale in a set", (fix,) if self.truth else ())
        if self.truth and values & Values.FAINT and not values & Values.STRONG:
            limit = "one half" if self.cut is None else f"gt_threshold = {self.cut}"
            has = f"all values of {side}, and of all others, are below {limit}"
            fix = Setting("gt_threshold", "none", "for masks of 0 and 1")
            file = _first_file_with(Values.FAINT, images).file
            yield Problem(file, has, "values up to white", () if self.cut is None else (fix,))

    def label_problems(self, images: Sequence[Evidence], values: Values) -> Iterator[Problem]:
        """Yield the problems of a set of label maps that seem to be something else.

        - All maps hold only 0 and 255, so they are masks and not class maps.
        - There are several maps with void pixels, but none has an object. The pixels that are
          taken for void may be the object.
        - All instances of the set have the same number, and some map has several connected pieces
          with this number, so the instances are not numbered.
        - Some labels can only be train ids, and no label can only be a label id (`id_evidence`).

        `images` is the evidence of each image, and `values` holds the properties of all images.
        """
        side = f"{SIDE_NAMES[self.truth]}, as all others, has"
        if values & Values.WHITE_LABELS and not values & Values.LABELS:
            file = _first_file_with(Values.WHITE_LABELS, images).file
            yield Problem(file, f"{side} {WHITE_FOR_CLASSES}")
        if len(images) > 1 and values == Values.VOID_ALONE and not _object_numbers(images):
            fix = Setting(self.void_option, -1, "where that is the object")
            file = _first_file_with(values, images).file
            yield Problem(file, f"{side} nothing but void", "an object", (fix,))
        if values & Values.PIECES and len(_object_numbers(images)) == 1:
            example = _first_file_with(Values.PIECES, images)
            has = f"{side} one number, {_listed(example.levels)}, and that in several pieces"
            option = f"{self.metric}.components"
            number = Setting(option, 8, "numbers them")
            join = Setting(option, 0, "takes them as one object")
            yield Problem(example.file, has, "a number for each instance", (number, join))
        if values & Values.TRAIN_IDS and not values & Values.LABEL_IDS:
            file = _first_file_with(Values.TRAIN_IDS, images).file
            fix = train_id_options(self.metric)
            yield Problem(file, f"{side} train ids (0, 1, ..)", "label ids", (fix,))

    def describe(self, images: Sequence[Evidence], forms: Sequence[str] = ()) -> str:
        """Describe how the files are read, as in "boundaries, inverted, 4-7 annotators an image".

        `images` is the evidence found in each image's file; there must be at least one. `forms` are
        the forms of the predictions, such as "soft8" for uint8, and are used only for soft maps.
        """
        content = self.kind.value
        if self.kind is Kind.SOFT:
            content = " and ".join([FORM_WORDS.get(form, form) for form in sorted(set(forms))])
        elif self.kind is Kind.MASK:
            content = self._describe_masks(reduce(or_, images, NO_EVIDENCE).values)
        phrases = [content]
        if self.inverted and self.kind is not Kind.MASK:
            phrases.append("inverted")
        if self.void and self.truth:
            phrases.append(f"void {_listed(self.void)}")
        if self.normalised:
            phrases.append("divided by their maximum")
        if self.kind is Kind.BOUNDARIES and self.truth:
            n_annotators = [evidence.maps for evidence in images]
            low, high = min(n_annotators), max(n_annotators)
            span = f"{low}-{high}" if low < high else f"{high}"
            phrases.append(f"{span} annotator{'' if span == '1' else 's'} an image")
        else:
            phrases.append(counted(len(images), "file"))
        if layout := self.layout.describe():
            phrases[-1] += f" ({layout})"
        return ", ".join(phrases)

    def _describe_masks(self, values: Values) -> str:
        """Return "masks" and, in brackets, which values are the object. `values`: of all masks."""
        verb = "is no object" if self.inverted else "is the object"
        if self.cut is not None:
            return f"masks (from {self.cut:g} of white on {verb})"
        if values & Values.GRAY:
            return f"masks (gray above one half {verb})"
        level = "white" if values & Values.WHITE else "1" if values & Values.UNIT else "not 0"
        return f"masks ({level} {verb})"


def _first_file_with(properties: Values, images: Sequence[Evidence]) -> Evidence:
    """Return the evidence of the alphabetically first file that has any of the properties."""
    matching = [evidence for evidence in images if evidence.values & properties]
    return min(matching, key=lambda evidence: evidence.file)


def _object_numbers(images: Sequence[Evidence]) -> set[tuple[float, ...]]:
    """Return the distinct object numbers of a set, each as (number,), if no image has several.

    Images without an object are ignored. Returns an empty set if any image has several numbers.
    """
    if any(evidence.values & Values.NUMBERS for evidence in images):
        return set()
    return {evidence.levels for evidence in images if evidence.levels}


class Readings(NamedTuple):
    """The options by which the files of both sides are read."""

    pred: ReadOptions
    gt: ReadOptions

    def with_layouts(self, pred: Layout | None, gt: Layout | None) -> Readings:
        """Return a copy with the layouts (numbers and names of files) set; None: one per image."""
        one = Layout()
        return Readings(evolve(self.pred, layout=pred or one), evolve(self.gt, layout=gt or one))

    def check_values(self, records: Sequence[ImageRecord]) -> list[InputWarning]:
        """Check whether the values of all files of a set, as recorded, have one consistent meaning.

        Returns a warning if every predicted map is zero everywhere, and one if most soft maps are
        darker on annotated boundaries than elsewhere. Raises one DataError that lists all problems
        of both sides, for example that no value of any soft map is large enough to count.
        """
        preds, gts = list[Evidence](), list[Evidence]()
        for record in records:
            sides = record.evidence_for(self.gt.metric)
            preds.append(sides.pred)
            gts.append(sides.gt)
        joined = reduce(or_, preds, NO_EVIDENCE)
        gt_values = reduce(or_, gts, NO_EVIDENCE).values
        by_number = self.gt.kind is Kind.OBJECTS
        problems = list(self._number_problems(preds, gts) if by_number else ())
        problems += self.pred.value_problems(preds, joined.values)
        problems += self.pred.label_problems(preds, joined.values)
        problems += self.gt.value_problems(gts, gt_values)
        problems += self.gt.label_problems(gts, gt_values)
        warnings = list[InputWarning]()
        if joined.values & Values.FAINT and not joined.values & Values.STRONG:
            if joined.strongest:
                strongest = max(records, key=lambda record: record.pred.strongest)
                problems.append(_faint_problem(strongest.form, joined.strongest))
            else:
                warnings.append(InputWarning("every map is zero everywhere: nothing is predicted"))
        if problems:
            raise DataError("", problems)
        if joined.values & Values.DARK:
            dark = [r.image_id for r in records if r.pred.values & Values.DARK]
            light = [r.image_id for r in records if r.pred.values & Values.LIGHT]
            if len(dark) > len(light):
                has = f"{len(dark)} of {len(dark) + len(light)} maps {DARKER} [{listed(dark, 3)}]"
                warnings.append(InputWarning(has, fix=Setting("invert", not self.pred.inverted)))
        return warnings

    def _number_problems(
        self, preds: Sequence[Evidence], gts: Sequence[Evidence]
    ) -> Iterator[Problem]:
        """Yield a problem if the only object of a set has different numbers on the two sides.

        This is for objects that are paired by their number (`Kind.OBJECTS`). It is reported
        only if one of the two numbers is white (255 or 65535), because objects 1 and 2, for
        example, may really be different. `preds` and `gts` are the evidence of each image.
        """
        gt_numbers, pred_numbers = _object_numbers(gts), _object_numbers(preds)
        white = (gt_numbers | pred_numbers) & {(255.0,), (65535.0,)}
        if white and len(gt_numbers) == len(pred_numbers) == 1 and gt_numbers != pred_numbers:
            (pred_number,) = pred_numbers.pop()
            (gt_number,) = gt_numbers.pop()
            has = f"{SIDE_NAMES[False]}, as all others, has one number, {pred_number:g}"
            expected = f"that of the truth, {gt_number:g}: objects are paired by their number"
            file = min(e.file for e in preds if e.levels)
            yield Problem(file, has, expected, ("save the object as 1",))

    def describe(self, records: Sequence[ImageRecord]) -> str:
        """Describe how both sides are read: "Read as: predictions ...; truth ...".

        The predictions are left out if no image has one, for example because annotators are scored
        against each other. Returns "" if there are no images, or if an image has no evidence, as in
        reference runs.
        """
        preds, gts, forms = list[Evidence](), list[Evidence](), list[str]()
        for record in records:
            sides = record.evidence_for(self.gt.metric)
            if sides.gt.maps == 0:
                return ""
            gts.append(sides.gt)
            if record.form not in ("none", "humans"):
                preds.append(sides.pred)
                forms.append(record.form)
        if not gts:
            return ""
        line = f"truth {self.gt.describe(gts)}"
        if preds:
            line = f"predictions {self.pred.describe(preds, forms)}; {line}"
        return f"Read as: {line}"


def check_all_values(
    readings: Iterable[Readings], records: Sequence[ImageRecord]
) -> list[InputWarning]:
    """Check a whole set of images for all metrics, and return the distinct warnings.

    `readings` has one item for each metric, which tells how the metric reads the files. `records`
    has one item for each image.

    Raises one DataError with the problems of all metrics. A problem that occurs for several metrics
    is listed once, with the fixes that any of them suggests.
    """
    warnings: dict[str, InputWarning] = {}
    problems: dict[tuple[str, ...], Problem] = {}  # the key is all fields except the fixes
    for metric_readings in readings:
        try:
            for warning in metric_readings.check_values(records):
                warnings[str(warning)] = warning
        except DataError as error:
            for problem in error.problems:
                key = problem.file, problem.has, problem.expected
                known = problems.setdefault(key, problem)
                new_fixes = [fix for fix in problem.fix if fix not in known.fix]
                problems[key] = evolve(known, fix=(*known.fix, *new_fixes))
    if problems:
        raise DataError("", list(problems.values()))
    return list(warnings.values())


def describe_readings(readings: Iterable[Readings], records: Sequence[ImageRecord]) -> str:
    """Describe in one line how the metrics of a run read the files.

    `readings` has one item for each metric. The line begins with the description of the first
    metric. Metrics that read the files differently follow as "; by METRIC, METRIC predictions ...".
    Returns "" if `readings` is empty.
    """
    metrics_by_line: dict[str, list[str]] = {}
    for metric_readings in readings:
        line = metric_readings.describe(records)
        metrics_by_line.setdefault(line, []).append(metric_readings.gt.metric)
    phrases: list[str] = []
    for line, metrics in metrics_by_line.items():
        other = f"by {', '.join(metrics)} {line.removeprefix('Read as: ')}"
        phrases.append(other if phrases else line)
    return "; ".join(phrases)


def _listed(levels: Sequence[float]) -> str:
    """Join numbers with commas."""
    return ", ".join(f"{level:g}" for level in levels)


def _faint_problem(form: str, top: float) -> Problem:
    """Return the problem of a set of predictions in which no value is large enough to count.

    `top` is the largest value of the set, and `form` the form of the map that has it. Values range
    from 0 to 255 in the form "soft8", to 65535 in "soft16", and to 1 in all other forms.
    """
    full_scale = {"soft8": 255, "soft16": 65535}.get(form, 1)
    fixes: list[Fix] = [Setting("normalise", True, "takes each map's largest value as 1")]
    if full_scale > 1 and top > 1:
        fixes.append(Setting("pred_kind", "labels", "reads region labels"))
    fixes.append("metric contour for masks and classes")
    scale = f" of {full_scale}" if full_scale > 1 else ""
    return Problem(
        has=f"no value above {top:.4g}{scale} in any map (0/1 or labels saved as 8 bit, 8 bit "
        "saved as 16, divided by 255 twice?)",
        expected=f"strengths from 0 to {full_scale}",
        fix=tuple(fixes),
    )


def binarise(values: Map, cut: Cut, what: str, inclusive: bool = False) -> Bool:
    """Convert an (H, W) mask of any numbers, which may be gray, to bool.

    - A bool mask is returned unchanged.
    - A mask of two values, 0 and one of 1, 255 and 65535, is True where it is not 0. (If
      `inclusive` is True, however, 0 and 1 in uint8 or uint16 are treated as gray.)
    - Other masks are gray. They are True above the cut, or from the cut on if `inclusive` is True.

    `cut` is the threshold as a fraction of white, which is 255 in uint8, 65535 in uint16 and 1 in
    floats. A tuple gives the thresholds for uint8, uint16 and floats as values. None is one half.
    `what` names the mask in error messages.

    Raises DataError for gray masks if a value is below 0 or above white, or if `inclusive` is False
    and no value of an integer mask exceeds the cut, because its scale is then unknown.
    """
    if values.dtype == bool:
        return values
    white = _white_of(values)
    top = values.max(initial=0)
    is_noise = inclusive and top == 1 and white > 1  # 0 and 1 of 255 are gray for a given cut
    if is_binary(values) and not is_noise:
        return np.asarray(values != 0)
    if cut is None:
        cut = 128.0, 128.0 * 257, 0.5
    elif not isinstance(cut, tuple):
        cut = cut * 255, cut * 65535, cut
    level = cut[0] if white == 255 else cut[1] if white == 65535 else cut[2]
    in_range = values.min(initial=0) >= 0 and top <= white
    # Masks are often resized or saved as JPEG, but some value is then above the cut
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
    """Return the distinct values of a mask, ascending, if one has a third meaning, such as void.

    Resizing and JPEG also create middle values, but only along the outline of the object. The
    number of distinct values decides:

    - Two values have no third meaning.
    - If there are three values, one of them has a third meaning.
    - If there are more, there is a third meaning if a middle value fills an area of 3 x 3 pixels.
      There is none, however, if there are more than LEVELS values and some lie strictly between
      half the largest value and the largest: the mask is then gray, like an average of masks.

    Returns () if there is no third meaning. If there are more than LEVELS values, only the largest
    and the smallest ones are returned, LEVELS in all.
    """
    levels = _distinct_values(values)
    if len(levels) == 2:
        return ()
    if len(levels) != 3:
        low, top = values.min(), values.max()
        has_many = not levels
        if has_many and ((values > top / 2) & (values < top)).any():
            return ()
        inner = values[1:-1, 1:-1]  # the pixels with eight neighbours
        fills_area = (inner > low) & (inner < top)
        for row, col in np.ndindex(3, 3):
            fills_area &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
        if not fills_area.any():
            return ()
    if not levels:
        distinct = np.unique(values)
        return tuple(map(float, (*distinct[: LEVELS - 1], distinct[-1])))
    return levels


def _distinct_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map in ascending order, or () if there are more than LEVELS.

    >>> _distinct_values(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels = list[float]()
    rest = values.ravel()
    # Stops after LEVELS + 1 passes, while np.unique would sort all pixels
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def _is_any_of(values: Map, levels: Sequence[float]) -> Bool:
    """Return an (H, W) bool map that is True at the pixels that have one of the given values.

    If the map holds floats, the `levels` are first rounded to its precision.
    """
    dtype = values.dtype if values.dtype.kind == "f" else None
    return np.isin(values, np.array(levels, dtype))


def _void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels that must be void if the map is a mask, which has only 0 and white.

    White is 1 if 1 is a level. Otherwise white is the largest level, which must be 255 or 65535.
    Returns () if there is no white, or if 0 is no level.

    >>> _void_levels((0, 1, 255)), _void_levels((0, 127, 255)), _void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))
