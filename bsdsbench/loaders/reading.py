"""Readings: the meaning of the values in one side's files, for a whole set at once.

Each side of a run, its ground truth and its predictions, has one `Reading`. Options set the
reading; without an option it is inferred if only one meaning is in use for such files. For masks:

| values of a mask | meaning |
|---|---|
| 0 and one of 1, 255, 65535, in any type | the object is not 0 |
| many, from 0 to white | gray, as resizing and JPEG make masks: the object is above one half, or from `gt_threshold` on |
| three, or more with uniform areas of a middle value | two meanings, void or gray: refused, unless an option chooses, or other files of the side are gray |

Each image is read by itself: the options are applied, and the properties of its values are kept as
`Evidence` in its record. `verdict` joins the evidence of all images once the whole set is known: at
the end of a run that is no shard, when shards are merged, and when a stream is computed.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import reduce
from operator import attrgetter, or_
from typing import NamedTuple

import numpy as np
from attrs import Factory, evolve, frozen

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError, Fix, InputWarning, Problem, Setting
from bsdsbench.images import (
    Map,
    described,
    is_binary,
    one_map,
)
from bsdsbench.loaders.labels import VOID_EVIDENCE, WHITE_FOR_CLASSES, train_id_options
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.fields import tidy
from bsdsbench.scores.counts import LEVELS, NO_EVIDENCE, Evidence, ImageRecord, Values
from bsdsbench.text import counted, listed

Cut = float | tuple[float, float, float] | None
WHITE = {"u1": 255, "u2": 65535}
LOSSY = (".jpg", ".jpeg", ".webp")  # formats that do not keep exact values
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


class Kind(Enum):
    """The content of the files of a side."""

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
    """A mask, its pixels that are not void (None: all), and the properties of its values."""

    mask: Bool
    valid: Bool | None
    evidence: Evidence


@frozen
class Reading:
    """The meaning of one side's files, as the options set it.

    Parameters
    ----------
    kind : Kind
        The content of the files.
    cut : float or None
        The fraction of white from which gray is object. None: gray above one half.
    void : tuple of float
        Ground-truth values that are counted nowhere. In a prediction with a third value the pixels
        of these values are no object.
    inverted : bool
        The object is dark. Maps are inverted last.
    normalised : bool
        Each map is divided by its largest value.
    truth : bool
        True for the ground truth, False for the predictions.
    void_option : str
        The option that sets `void`, such as "saliency.ignore"; "" if the metric has none.
    metric : str
        The name of the metric whose options errors suggest.
    layout : Layout
        How the files became images.
    """

    kind: Kind
    cut: float | None = None
    void: tuple[float, ...] = ()
    inverted: bool = False
    normalised: bool = False
    truth: bool = True
    void_option: str = ""
    metric: str = ""
    layout: Layout = Factory(Layout)

    def mask(self, values: Map, what: str = "mask", file: str = "") -> MaskRead:
        """Binarise a map with the options of this side. Raises DataError and ShapeError.

        Parameters
        ----------
        values : array
            (H, W) of any numbers.
        what : str
            Name of the map in errors.
        file : str
            Name of its file. In lossy formats such as JPEG a third value has no meaning.

        Returns
        -------
        MaskRead
            Its valid pixels are None for predictions, and if no value is void.
        """
        values = one_map(values, what)
        valid = None
        if self.void and values.dtype != bool and (self.truth or not is_binary(values)):
            valid = ~_is_any(values, self.void)
            values = np.where(valid, values, values.dtype.type(0))
        if self.normalised and (top := values.max(initial=0)) > 0:
            values = values / top
        evidence = self._evidence_of(values, file)
        try:
            mask = binarise(values, self.cut, what, inclusive=self.cut is not None)
        except DataError as error:
            fixes = tuple(self.suggest_fixes(_levels_of(values), values))
            raise DataError(str(error), fix=fixes) from None
        mask = ~mask if self.inverted else mask
        if valid is None:
            return MaskRead(mask, None, evidence)
        if not (values.any() or valid.all()):
            evidence = evidence | VOID_EVIDENCE
        return MaskRead(mask & valid, valid if self.truth else None, evidence)

    def _evidence_of(self, values: Map, file: str) -> Evidence:
        """Return the properties of a mask's values, void excluded, before it is binarised."""
        exact = not self.normalised and not file.lower().endswith(LOSSY)
        evidence = evolve(_mask_evidence(values, self.cut, exact), file=file)
        # A preset's threshold just above 0 cannot tell what a third gray level means, so keep it
        is_tiny = self.cut is not None and self.cut < 1 / 255
        if exact and is_tiny and not is_binary(values) and (levels := _third_values(values)):
            evidence = evolve(evidence, values=evidence.values | Values.FEW, levels=levels)
        return evidence

    def boundary(self, values: Map, what: str, file: str = "") -> MaskRead:
        """Binarise an annotator's map as `mask` does, but refuse gray without a threshold."""
        values = one_map(values, what)
        not_void = values[~_is_any(values, self.void)] if self.void else values
        if self.cut is None and not is_binary(not_void):
            levels = _levels_of(not_void)
            has = f"values {_listed(levels)}" if levels else "gray values"
            raise DataError(
                f"{what}: {has}, {described(values)}, expected boundaries of 0 and 1 or 0 and 255",
                fix=tuple(self.suggest_fixes(levels, values)),
            )
        return self.mask(values, what, file)

    def suggest_fixes(self, levels: Sequence[float], values: Map) -> Iterator[Fix]:
        """Yield the options under which a map has a single meaning and still holds an object.

        `levels` are the distinct values of the map, or () if there are many.
        """
        top = float(values.max(initial=0))
        white = next((white for white in (1, 255, 65535) if top <= white), 0)
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
        """Yield the problems that keep the files of a side from having one meaning.

        `values` are the properties of all images together.
        """
        side = SIDE_NAMES[self.truth]
        if values & Values.FEW and not values & Values.GRAY:
            example = _first(images, Values.FEW)
            has = f"{side} of the values {_listed(example.levels)}"
            fixes = tuple(self.suggest_fixes(example.levels, np.array(example.levels)))
            yield Problem(example.file, has, "a mask of two values, or gray", fixes)
        elif values & Values.UNIT and values & (Values.WHITE | Values.GRAY):
            white_file = _first(images, Values.WHITE | Values.GRAY).file
            has = f"{side} has values up to 1, that of {white_file} up to white"
            fix = Setting("gt_threshold", 0.5, "takes gray ones apart")
            file = _first(images, Values.UNIT).file
            yield Problem(file, has, "one scale in a set", (fix,) if self.truth else ())
        if self.truth and values & Values.FAINT and not values & Values.STRONG:
            limit = "one half" if self.cut is None else f"gt_threshold = {self.cut}"
            has = f"all values of {side}, and of all others, are below {limit}"
            fix = Setting("gt_threshold", "none", "for masks of 0 and 1")
            file = _first(images, Values.FAINT).file
            yield Problem(file, has, "values up to white", () if self.cut is None else (fix,))

    def label_problems(self, images: Sequence[Evidence], values: Values) -> Iterator[Problem]:
        """Yield the problems that suggest that the labels of a side have another meaning.

        `values` are the properties of all images together.
        """
        side = f"{SIDE_NAMES[self.truth]}, as all others, has"
        if values & Values.WHITE_LABELS and not values & Values.LABELS:
            file = _first(images, Values.WHITE_LABELS).file
            yield Problem(file, f"{side} {WHITE_FOR_CLASSES}")
        if len(images) > 1 and values == Values.VOID_ALONE and not _numbers_of(images):
            fix = Setting(self.void_option, -1, "where that is the object")
            yield Problem(
                _first(images, values).file, f"{side} nothing but void", "an object", (fix,)
            )
        if values & Values.PIECES and len(_numbers_of(images)) == 1:
            example = _first(images, Values.PIECES)
            has = f"{side} one number, {_listed(example.levels)}, and that in several pieces"
            option = f"{self.metric}.components"
            fixes = (
                Setting(option, 8, "numbers them"),
                Setting(option, 0, "takes them as one object"),
            )
            yield Problem(example.file, has, "a number for each instance", fixes)
        if values & Values.TRAIN_IDS and not values & Values.LABEL_IDS:
            file = _first(images, Values.TRAIN_IDS).file
            fix = train_id_options(self.metric)
            yield Problem(file, f"{side} train ids (0, 1, ..)", "label ids", (fix,))

    def describe(self, images: Sequence[Evidence], forms: Sequence[str] = ()) -> str:
        """Describe the reading in words, with the properties and the number of the files.

        `forms` are the forms of the predictions, for soft maps.
        """
        phrases = [self._describe_kind(reduce(or_, images, NO_EVIDENCE).values, forms)]
        if self.inverted and self.kind is not Kind.MASK:
            phrases.append("inverted")
        if self.void and self.truth:
            phrases.append(f"void {_listed(self.void)}")
        if self.normalised:
            phrases.append("divided by their maximum")
        n_maps = list(map(attrgetter("maps"), images))
        if self.kind is Kind.BOUNDARIES and self.truth:
            low, high = min(n_maps), max(n_maps)
            span = f"{low}-{high}" if low < high else f"{high}"
            phrases.append(f"{span} annotator{'' if span == '1' else 's'} an image")
        else:
            phrases.append(counted(len(images), "file"))
        layout = self.layout.describe()
        return ", ".join(phrases) + (f" ({layout})" if layout else "")

    def _describe_kind(self, values: Values, forms: Sequence[str]) -> str:
        """Describe the content of the files, whose values together have these properties."""
        if self.kind is Kind.SOFT:
            return " and ".join(FORM_WORDS.get(form, form) for form in sorted(set(forms)))
        if self.kind is not Kind.MASK:
            return self.kind.value
        verb = "is no object" if self.inverted else "is the object"
        if self.cut is not None:
            return f"masks (from {self.cut:g} of white on {verb})"
        if values & Values.GRAY:
            return f"masks (gray above one half {verb})"
        object_value = "1" if values & Values.UNIT else "not 0"
        return f"masks ({'white' if values & Values.WHITE else object_value} {verb})"


def _first(images: Sequence[Evidence], sign: Values) -> Evidence:
    """Return the evidence of the first file, by name, that has a property of `sign`."""
    return min((e for e in images if e.values & sign), key=lambda e: e.file)


def _numbers_of(images: Sequence[Evidence]) -> set[tuple[float, ...]]:
    """Return the object numbers in use if no map has several numbers, or an empty set otherwise."""
    if any(e.values & Values.NUMBERS for e in images):
        return set()
    return {e.levels for e in images if e.levels}


class Readings(NamedTuple):
    """The readings of both sides."""

    pred: Reading
    gt: Reading

    def with_layouts(self, pred: Layout | None, gt: Layout | None) -> Readings:
        """Return the readings with the layouts of the files of both sides."""
        none = Layout()
        return Readings(evolve(self.pred, layout=pred or none), evolve(self.gt, layout=gt or none))

    def verdict(self, records: Sequence[ImageRecord]) -> list[InputWarning]:
        """Return warnings about a whole set. Raises DataError if the set has no single meaning.

        Only properties of all images together decide, so that shards, workers and order do not
        matter.
        """
        sides = [record.evidence_for(self.gt.metric) for record in records]
        preds = [side.pred for side in sides]
        gts = [side.gt for side in sides]
        pred_values = reduce(or_, preds, NO_EVIDENCE).values
        gt_values = reduce(or_, gts, NO_EVIDENCE).values
        problems = [
            *self.number_problems(preds, gts),
            *self.pred.value_problems(preds, pred_values),
            *self.pred.label_problems(preds, pred_values),
            *self.gt.value_problems(gts, gt_values),
            *self.gt.label_problems(gts, gt_values),
        ]
        warnings = list[InputWarning]()
        if pred_values & Values.FAINT and not pred_values & Values.STRONG:
            strongest = max(records, key=lambda record: record.pred.strongest)
            top = reduce(or_, preds).strongest
            if top:
                problems.append(_faint_problem(strongest.form, top))
            else:
                warnings.append(InputWarning("every map is zero everywhere: nothing is predicted"))
        if problems:
            raise DataError("", problems)
        if not pred_values & Values.DARK:
            return warnings
        dark = [r.image_id for r in records if r.pred.values & Values.DARK]
        n_light = sum(bool(r.pred.values & Values.LIGHT) for r in records)
        if len(dark) > n_light:
            has = f"{len(dark)} of {len(dark) + n_light} maps {DARKER} [{listed(dark, 3)}]"
            warnings.append(InputWarning(has, fix=Setting("invert", not self.pred.inverted)))
        return warnings

    def number_problems(
        self, preds: Sequence[Evidence], gts: Sequence[Evidence]
    ) -> Iterator[Problem]:
        """Yield a problem if the sides number their only object differently, one white."""
        if self.gt.kind is not Kind.OBJECTS:
            return
        gt_numbers, pred_numbers = _numbers_of(gts), _numbers_of(preds)
        white = (gt_numbers | pred_numbers) & {(255.0,), (65535.0,)}
        if white and len(gt_numbers) == len(pred_numbers) == 1 and gt_numbers != pred_numbers:
            (pred_number,), (gt_number,) = *pred_numbers, *gt_numbers
            has = f"{SIDE_NAMES[False]}, as all others, has one number, {pred_number:g}"
            expected = f"that of the truth, {gt_number:g}: objects are paired by their number"
            file = min(e.file for e in preds if e.levels)
            yield Problem(file, has, expected, ("save the object as 1",))

    def describe(self, records: Sequence[ImageRecord]) -> str:
        """Describe both readings in one line. Return "" if the evidence of a file is not known."""
        preds = list[Evidence]()
        gts = list[Evidence]()
        forms = list[str]()
        for record in records:
            sides = record.evidence_for(self.gt.metric)
            gts.append(sides.gt)
            if record.form not in ("none", "humans"):
                preds.append(sides.pred)
                forms.append(record.form)
        if not all(map(attrgetter("maps"), gts)) or not gts:
            return ""
        phrases = [f"truth {self.gt.describe(gts)}"]
        if preds:
            phrases.insert(0, f"predictions {self.pred.describe(preds, forms)}")
        return f"Read as: {'; '.join(phrases)}"


def verdict(readings: Iterable[Readings], records: Sequence[ImageRecord]) -> list[InputWarning]:
    """Return warnings about a whole set from the readings of all its metrics.

    Raises DataError as `Readings.verdict` does. A problem of several metrics is listed once, with
    the options of each metric.
    """
    warnings: dict[str, InputWarning] = {}
    problems: dict[tuple[str, ...], Problem] = {}
    for metric_readings in readings:
        try:
            for warning in metric_readings.verdict(records):
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


def read_as(readings: Iterable[Readings], records: Sequence[ImageRecord]) -> str:
    """Describe the readings of a run in one line. Readings that differ from the first come last."""
    metrics_by_line: dict[str, list[str]] = {}
    for metric_readings in readings:
        line = metric_readings.describe(records)
        metrics_by_line.setdefault(line, []).append(metric_readings.gt.metric)
    first_line, *other_lines = metrics_by_line or [""]
    further = [
        f"by {', '.join(metrics_by_line[line])} {line.removeprefix('Read as: ')}"
        for line in other_lines
    ]
    return "; ".join([first_line, *further])


# ---- masks ---------------------------------------------------------------------------------------


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def binarise(values: Map, cut: Cut, what: str, inclusive: bool = False) -> Bool:
    """Convert a mask (H, W), which may be gray, to bool. All masks are converted here.

    Masks that are bool or have two values, as in `binary_map`, need no cut. White is 255 in uint8,
    65535 in uint16 and 1 in floats, whatever the values of one image. Raises DataError for values
    beyond white or below 0. Without `inclusive` an integer map with no value above the cut is
    refused too, because its scale is not known.

    Parameters
    ----------
    values : array
        (H, W) of any numbers.
    cut : float, tuple of float or None
        A fraction of white, or three values for uint8, uint16 and floats. Larger values are on.
        None: 128 of 255 (masks are often resized or saved as JPEG), or half of 1 for floats.
    what : str
        Name of the mask in errors.
    inclusive : bool
        Values equal to the cut are on too, and 0 and 1 in uint8 and uint16 count as gray levels.
    """
    if values.dtype == bool:
        return values
    if cut is None:
        cut = 128.0, 128.0 * 257, 0.5
    cuts = cut if isinstance(cut, tuple) else (cut * 255, cut * 65535, cut)
    white = 1 if values.dtype.kind == "f" else WHITE.get(values.dtype.str[1:], 0)
    top = values.max(initial=0)
    if is_binary(values) and not (inclusive and top == 1 and white > 1):
        return np.asarray(values != 0)
    level = {255: cuts[0], 65535: cuts[1]}.get(white, cuts[2])
    in_range = values.min(initial=0) >= 0 and top <= white
    if not in_range or (not inclusive and white > 1 and top <= level):
        raise DataError(
            f"{what}: {described(values)}, expected 0 and 1, 0 and 255, or gray in uint8, uint16 "
            "or floats from 0 to 1"
        )
    return np.asarray(values >= level if inclusive else values > level)


def _mask_evidence(values: Map, cut: float | None = None, exact: bool = True) -> Evidence:
    """Return the evidence of a mask's values: whether they reach the cut, or how many they are.

    Integers wider than 16 bits have no white, so that their 0 and 1 cannot be the noise of a gray
    map. `exact` is False if the values were changed after drawing, as by JPEG.
    """
    if values.dtype == bool or not (top := values.max(initial=0)):
        return Evidence(maps=1)
    white = 1 if values.dtype.kind == "f" else WHITE.get(values.dtype.str[1:], 0)
    binary = is_binary(values)
    if cut is not None:
        strong = (binary and top > 1) or top >= cut * white
        sign = Values.STRONG if strong else Values.FAINT
        return Evidence(sign if white else Values.NOTHING, maps=1)
    if binary:
        properties = Values.UNIT if top == 1 else Values.WHITE
        return Evidence(properties if white > 1 else Values.STRONG, maps=1)
    levels = _third_values(values) if exact else ()
    properties = Values.FEW if levels else Values.GRAY
    if white == 1:
        properties |= Values.STRONG if top > 0.5 else Values.FAINT
    if len(_levels_of(values)) == 2:  # for example 0 and 200: neither a third value nor gray
        properties &= ~Values.GRAY
    return Evidence(properties, levels, maps=1)


def _third_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a mask with a third meaning beside object and background.

    Return () for gray maps: resizing and JPEG make many middle values, but only in seams. A mask
    with exactly three values has a third meaning. A mask with more values has one if a middle value
    fills an area of 3 x 3 pixels, unless there are more than LEVELS values and some lie between one
    half and white, as in an average of several people's masks.
    """
    levels = _levels_of(values)
    if len(levels) == 2:
        return ()
    if len(levels) != 3:
        low = values.min()
        top = values.max()
        if not levels and ((values > top / 2) & (values < top)).any():
            return ()
        if not _has_areas(values, low, top):
            return ()
    if not levels:
        every = np.unique(values)
        levels = tuple(map(float, (*every[: LEVELS - 1], every[-1])))
    return levels


def _has_areas(values: Map, low: float, top: float) -> bool:
    """Return True if 3 x 3 pixels share one value strictly between `low` and `top`."""
    inner = values[1:-1, 1:-1]
    flat = (inner > low) & (inner < top)
    for row, col in np.ndindex(3, 3):
        flat &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
    return bool(flat.any())


def _levels_of(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map, ascending, or () if there are more than `LEVELS`.

    >>> _levels_of(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels = list[float]()
    rest = values.ravel()
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def _is_any(values: Map, levels: Sequence[float]) -> Bool:
    """Return a mask of the pixels with one of the levels, compared in the map's precision."""
    return np.isin(values, np.array(levels, values.dtype) if values.dtype.kind == "f" else levels)


def _void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels to declare void so that only 0 and white remain.

    White is 1, 255 or 65535. Return () if 0 or white is absent.

    >>> _void_levels((0, 1, 255)), _void_levels((0, 127, 255)), _void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))


def _faint_problem(form: str, top: float) -> Problem:
    """Describe the problem of a set whose maps are all faint. `top` is its largest value."""
    full = {"soft8": 255, "soft16": 65535}.get(form, 1)
    may_be_labels = full > 1 and top > 1
    labels = (Setting("pred_kind", "labels", "reads region labels"),) if may_be_labels else ()
    return Problem(
        has=f"no value above {top:.4g}{f' of {full}' if full > 1 else ''} in any map (0/1 or "
        "labels saved as 8 bit, 8 bit saved as 16, divided by 255 twice?)",
        expected=f"strengths from 0 to {full}",
        fix=(
            Setting("normalise", True, "takes each map's largest value as 1"),
            *labels,
            "metric contour for masks and classes",
        ),
    )
