"""Readings: what the values of one side's files mean, for a whole set and not image by image.

Each side of a run, its truth and its predictions, has one `Reading`. Options say it, or it is
inferred where a single meaning is in use for what the files hold. For masks:

| values of a mask | meaning |
|---|---|
| 0 and one of 1, 255, 65535, in any type | what is not 0 is the object |
| many, from 0 to white | gray, as resizing and JPEG make masks: the object is above one half, or from `gt_threshold` on |
| three; or more with areas of one value between | two meanings, a void or gray: refused, unless an option says one, or other files of the side are gray |

An image is read once, by itself: what options and its values imply is applied, and the `Evidence` is
kept in its record. `verdict` joins the evidence of all images where the whole set is known: at the
end of a run that is no shard, when shards are merged, and when a stream is computed.
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
    Prediction,
    described,
    few_lines,
    is_binary,
    one_map,
    unit,
)
from bsdsbench.loaders.labels import VOID_EVIDENCE, WHITE_FOR_CLASSES, train_id_options
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.fields import tidy
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import LEVELS, NO_EVIDENCE, Evidence, ImageRecord, Values
from bsdsbench.text import counted, listed

Cut = float | tuple[float, float, float] | None
WHITE = {"u1": 255, "u2": 65535}
LOSSY = (".jpg", ".jpeg", ".webp")  # a file of these holds no exact values
FORM_WORDS = {  # of predictions, in words
    "soft8": "soft 8-bit maps",
    "soft16": "soft 16-bit maps",
    "float": "soft float maps",
    "binary": "binary maps",
    "ucm2": "contour maps of double size (ucm2)",
    "segs": "segmentations",
}
# A faint map has no value that counts: bytes of 0 and 1, 8 bit saved as 16, divided by 255 twice.
# One may be an image without boundaries; a set of them alone is a fault of its form.
# Of 255 and 65535, by bytes a value: no detector's strongest boundary in a whole set
SMALL = {1: 9, 2: 255}
SIDE_NAMES = ("its prediction", "its truth")
DARKER = "are darker on the ground truth than off it"


class Kind(Enum):
    """What the files of a side hold."""

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
    """A mask, the pixels of it that are not void (None: all), and what its values show."""

    mask: Bool
    valid: Bool | None
    evidence: Evidence


@frozen
class Reading:
    """What options say of one side's files.

    Parameters
    ----------
    kind : Kind
        What they hold.
    cut : float or None
        The share of white from which gray is object; None: above one half.
    void : tuple of float
        Values of truth that are counted nowhere. In a prediction, where they are a third value,
        they are no object.
    inverted, normalised : bool
        The object is dark; each map is divided by its largest value. Inversion comes last.
    truth : bool
        True for the side of the ground truth.
    void_option : str
        The option that names the void, such as "saliency.ignore"; "" where the metric has none.
    metric : str
        The name of the metric, whose options are proposed.
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
        """Return a map of this side as the mask that it means. Raises DataError, ShapeError.

        Parameters
        ----------
        values : array
            (H, W) of any numbers.
        what : str
            Its name in errors.
        file : str
            The name of its file; one of JPEG is always gray.
        """
        values, valid = one_map(values, what), None
        if self.void and values.dtype != bool and (self.truth or not is_binary(values)):
            valid = ~_is_any(values, self.void)
            values = np.where(valid, values, values.dtype.type(0))
        if self.normalised and (top := values.max(initial=0)) > 0:
            values = values / top
        exact = not self.normalised and not file.lower().endswith(LOSSY)
        evidence = evolve(_mask_evidence(values, self.cut, exact), file=file)
        # A preset's cut just above 0 says what is not the object, not what a third value is.
        if exact and self.cut is not None and self.cut < 1 / 255 and not is_binary(values):
            levels = _third_values(values)
            few = evidence.values | Values.FEW
            evidence = evolve(evidence, values=few, levels=levels) if levels else evidence
        try:
            mask = binarise(values, self.cut, what, inclusive=self.cut is not None)
        except DataError as error:
            ways = tuple(self.ways(_levels_of(values), values))
            raise DataError(str(error), fix=ways) from None
        mask = ~mask if self.inverted else mask
        if valid is not None and not (values.any() or valid.all()):
            evidence = evidence | VOID_EVIDENCE
        mask = mask if valid is None else mask & valid
        return MaskRead(mask, valid if self.truth else None, evidence)

    def boundary(self, values: Map, what: str, file: str = "") -> MaskRead:
        """Return an annotator's map as `mask` does, but refuse gray without a threshold."""
        values = one_map(values, what)
        known = values[~_is_any(values, self.void)] if self.void else values
        if self.cut is None and not is_binary(known):
            levels = _levels_of(known)
            has = f"values {_listed(levels)}" if levels else "gray values"
            raise DataError(
                f"{what}: {has}, {described(values)}, expected boundaries of 0 and 1 or 0 and 255",
                fix=tuple(self.ways(levels, values)),
            )
        return self.mask(values, what, file)

    def ways(self, levels: Sequence[float], values: Map) -> Iterator[Fix]:
        """Yield the options under which a map has one meaning, each only where it leaves an object.

        `levels` are the values of the map, where they are few.
        """
        top, void = float(values.max(initial=0)), self.void_option and _void_levels(levels)
        white = next((white for white in (1, 255, 65535) if top <= white), 0)
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

    def faults(self, images: Sequence[Evidence], shown: Values) -> Iterator[Problem]:
        """Yield what keeps the files of a side from having one reading.

        `shown` is what they show together.
        """
        side = SIDE_NAMES[self.truth]
        if shown & Values.FEW and not shown & Values.GRAY:
            few = _first(images, Values.FEW)
            has = f"{side} of the values {_listed(few.levels)}"
            ways = tuple(self.ways(few.levels, np.array(few.levels)))
            yield Problem(few.file, has, "a mask of two values, or gray", ways)
        elif shown & Values.UNIT and shown & (Values.WHITE | Values.GRAY):
            white = _first(images, Values.WHITE | Values.GRAY).file
            has = f"{side} has values up to 1, that of {white} up to white"
            apart = (Setting("gt_threshold", 0.5, "takes gray ones apart"),) * self.truth
            yield Problem(_first(images, Values.UNIT).file, has, "one scale in a set", apart)
        if self.truth and shown & Values.FAINT and not shown & Values.STRONG:
            least, ways = "one half", ()
            if self.cut is not None:
                least = f"gt_threshold = {self.cut}"
                ways = (Setting("gt_threshold", "none", "for masks of 0 and 1"),)
            has = f"all values of {side}, and of all others, are below {least}"
            yield Problem(_first(images, Values.FAINT).file, has, "values up to white", ways)

    def label_faults(self, images: Sequence[Evidence], shown: Values) -> Iterator[Problem]:
        """Yield what keeps the labels of a side from being those that are meant."""
        side = f"{SIDE_NAMES[self.truth]}, as all others, has"
        if shown & Values.WHITE_LABELS and not shown & Values.LABELS:
            file = _first(images, Values.WHITE_LABELS).file
            yield Problem(file, f"{side} {WHITE_FOR_CLASSES}")
        if len(images) > 1 and shown == Values.VOID_ALONE and not _numbers_of(images):
            none = (Setting(self.void_option, -1, "where that is the object"),)
            yield Problem(_first(images, shown).file, f"{side} nothing but void", "an object", none)
        if shown & Values.PIECES and len(_numbers_of(images)) == 1:
            pieces, option = _first(images, Values.PIECES), f"{self.metric}.components"
            has = f"{side} one number, {_listed(pieces.levels)}, and that in several pieces"
            fix = Setting(option, 8, "numbers them"), Setting(option, 0, "takes them as one object")
            yield Problem(pieces.file, has, "a number for each instance", fix)
        if shown & Values.TRAIN_IDS and not shown & Values.LABEL_IDS:
            has, ids = f"{side} train ids (0, 1, ..)", train_id_options(self.metric)
            yield Problem(_first(images, Values.TRAIN_IDS).file, has, "label ids", (ids,))

    def describe(self, images: Sequence[Evidence], forms: Sequence[str] = ()) -> str:
        """Return the reading in words, with what the files show and how many there are."""
        shown, holds = reduce(or_, images, NO_EVIDENCE).values, self.kind.value
        if self.kind is Kind.SOFT:
            holds = " and ".join(FORM_WORDS.get(form, form) for form in sorted(set(forms)))
        elif self.kind is Kind.MASK:
            white = Values.WHITE | Values.GRAY
            holds += f" ({'white' if shown & white else '1' if shown & Values.UNIT else 'not 0'}"
            if self.cut is not None:
                holds = f"masks (from {self.cut:g} of white on"
            elif shown & Values.GRAY:
                holds = "masks (gray above one half"
            holds += " is no object)" if self.inverted else " is the object)"
        words = [holds]
        if self.inverted and self.kind is not Kind.MASK:
            words.append("inverted")
        words += [f"void {_listed(self.void)}"] if self.void and self.truth else []
        words += ["divided by their maximum"] if self.normalised else []
        counts = set(map(attrgetter("maps"), images))
        if self.kind is Kind.BOUNDARIES and self.truth:
            span = f"{min(counts)}-{max(counts)}" if len(counts) > 1 else f"{max(counts)}"
            words.append(f"{span} annotator{'s' * (span != '1')} an image")
        else:
            words.append(counted(len(images), "file"))
        arranged = self.layout.describe()
        return ", ".join(words) + f" ({arranged})" * bool(arranged)


def _first(images: Sequence[Evidence], sign: Values) -> Evidence:
    """Return what the first file shows, by its name, of those that show a sign."""
    return min((e for e in images if e.values & sign), key=lambda e: e.file)


def _numbers_of(images: Sequence[Evidence]) -> set[tuple[float, ...]]:
    """Return the numbers of instances where no map has more than one, else none."""
    if any(e.values & Values.NUMBERS for e in images):
        return set()
    return {e.levels for e in images if e.levels}


class Readings(NamedTuple):
    """The readings of both sides."""

    pred: Reading
    gt: Reading

    def with_layouts(self, pred: Layout | None, gt: Layout | None) -> Readings:
        """Return the readings of files in these layouts."""
        none = Layout()
        return Readings(evolve(self.pred, layout=pred or none), evolve(self.gt, layout=gt or none))

    def verdict(self, records: Sequence[ImageRecord]) -> list[InputWarning]:
        """Return what looks wrong with a whole set. Raises DataError where it has no one reading.

        Only what is true of all its images together is a verdict, so that it does not depend on
        shards, workers or order.
        """
        both = [record.shown_to(self.gt.metric) for record in records]
        preds, gts = zip(*both, strict=True) if both else ((), ())
        shown, of_truth = reduce(or_, preds, NO_EVIDENCE), reduce(or_, gts, NO_EVIDENCE)
        problems, warned = [*self.number_faults(preds, gts)], list[InputWarning]()
        for reading, images, values in (
            (self.pred, preds, shown.values),
            (self.gt, gts, of_truth.values),
        ):
            problems += reading.faults(images, values)
            problems += reading.label_faults(images, values)
        if shown.values & Values.FAINT and not shown.values & Values.STRONG:
            if shown.strongest:
                top = max(records, key=lambda r: r.pred.strongest)
                problems.append(_faint_problem(top.form, shown.strongest))
            else:
                warned.append(InputWarning("every map is zero everywhere: nothing is predicted"))
        if problems:
            raise DataError("", problems)
        if not shown.values & Values.DARK:
            return warned
        dark = [r.image_id for r in records if r.pred.values & Values.DARK]
        light = sum(bool(r.pred.values & Values.LIGHT) for r in records)
        if len(dark) > light:
            has = f"{len(dark)} of {len(dark) + light} maps {DARKER} [{listed(dark, 3)}]"
            warned.append(InputWarning(has, fix=Setting("invert", not self.pred.inverted)))
        return warned

    def number_faults(
        self, preds: Sequence[Evidence], gts: Sequence[Evidence]
    ) -> Iterator[Problem]:
        """Yield a fault if the only object has another number on each side, one of them white."""
        if self.gt.kind is not Kind.OBJECTS:
            return
        true, predicted = _numbers_of(gts), _numbers_of(preds)
        white = (true | predicted) & {(255.0,), (65535.0,)}
        if white and len(true) == len(predicted) == 1 and true != predicted:
            (number,), (true_number,) = *predicted, *true
            has = f"{SIDE_NAMES[False]}, as all others, has one number, {number:g}"
            expected = f"that of the truth, {true_number:g}: objects are paired by their number"
            file = min(e.file for e in preds if e.levels)
            yield Problem(file, has, expected, ("save the object as 1",))

    def describe(self, records: Sequence[ImageRecord]) -> str:
        """Return both readings in a line; "" where it is not known what the files showed."""
        preds, gts, forms = list[Evidence](), list[Evidence](), list[str]()
        for record in records:
            shown = record.shown_to(self.gt.metric)
            gts.append(shown.gt)
            if record.form not in ("none", "humans"):
                preds.append(shown.pred)
                forms.append(record.form)
        if not all(map(attrgetter("maps"), gts)) or not gts:
            return ""
        sides = [f"predictions {self.pred.describe(preds, forms)}"] * bool(preds)
        return f"Read as: {'; '.join([*sides, f'truth {self.gt.describe(gts)}'])}"


def verdict(readings: Iterable[Readings], records: Sequence[ImageRecord]) -> list[InputWarning]:
    """Return what looks wrong with a whole set to any of its metrics, each with its readings.

    Raises DataError as `Readings.verdict`; what several metrics refuse is one problem, with the
    options of each.
    """
    warned, problems = dict[str, InputWarning](), dict[tuple[str, ...], Problem]()
    for of_metric in readings:
        try:
            for warning in of_metric.verdict(records):
                warned[str(warning)] = warning
        except DataError as error:
            for problem in error.problems:
                before = problems.setdefault((problem.file, problem.has, problem.expected), problem)
                more = [fix for fix in problem.fix if fix not in before.fix]
                both = evolve(before, fix=(*before.fix, *more))
                problems[problem.file, problem.has, problem.expected] = both
    if problems:
        raise DataError("", list(problems.values()))
    return list(warned.values())


def read_as(readings: Iterable[Readings], records: Sequence[ImageRecord]) -> str:
    """Return the readings of a run in a line; those of metrics that read otherwise come last."""
    lines = dict[str, list[str]]()
    for of_metric in readings:
        lines.setdefault(of_metric.describe(records), []).append(of_metric.gt.metric)
    first, *others = lines or [""]
    further = [f"by {', '.join(lines[line])} {line[9:]}" for line in others]
    return "; ".join([first, *further])


# ---- masks ---------------------------------------------------------------------------------------


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def binarise(values: Map, cut: Cut, what: str, inclusive: bool = False) -> Bool:
    """Return a mask that may be gray, (H, W), as bool: the one rule for them. Raises DataError.

    bool and two values as in `binary_map` need no cut. uint8 and uint16 go up to 255 and 65535,
    floats to 1, whatever the values of one image. Without `inclusive`, integers none of which is
    above the cut are of no known scale, an error.

    Parameters
    ----------
    values : array
        (H, W) of any numbers.
    cut : float, tuple of float or None
        A share of white, or the values for uint8, uint16 and floats; what is above them is on.
        None: above 128 of 255, as masks are often resized or saved as JPEG, or half of floats.
    what : str
        Its name in errors.
    inclusive : bool
        On is also what is equal to the cut, and 0 and 1 in uint8 and uint16 are gray too.
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
    sound = values.min(initial=0) >= 0 and top <= white
    if not sound or (not inclusive and white > 1 and top <= level):
        raise DataError(
            f"{what}: {described(values)}, expected 0 and 1, 0 and 255, or gray in uint8, uint16 "
            "or floats from 0 to 1"
        )
    return np.asarray(values >= level if inclusive else values > level)


def _mask_evidence(values: Map, cut: float | None = None, exact: bool = True) -> Evidence:
    """Return what the values of a mask show: of a cut, or of two, few or many values.

    Integers wider than 16 bits have no white, so that 0 and 1 cannot be the noise of a gray map.
    `exact` is False for values that are none of the mask's own, as those of JPEG.
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
        shows = Values.UNIT if top == 1 else Values.WHITE
        return Evidence(shows if white > 1 else Values.STRONG, maps=1)
    levels = _third_values(values) if exact else ()
    shows = Values.FEW if levels else Values.GRAY
    if white == 1:
        shows |= Values.STRONG if top > 0.5 else Values.FAINT
    if len(_levels_of(values)) == 2:  # as 0 and 200: neither a third value nor gray
        shows &= ~Values.GRAY
    return Evidence(shows, levels, maps=1)


def _third_values(values: Map) -> tuple[float, ...]:
    """Return the levels of a mask that has more than object and background; () for gray maps.

    Resizing and JPEG give many values between, in seams. So three values have two meanings, and
    more of them where one between fills an area of 3 x 3 pixels, unless they are many and some lie
    between one half and white, as where the masks of several people are averaged.
    """
    levels = _levels_of(values)
    if len(levels) == 2:
        return ()
    if len(levels) != 3:
        low, top = values.min(), values.max()
        if not levels and ((values > top / 2) & (values < top)).any():
            return ()
        if not _has_areas(values, low, top):
            return ()
    if not levels:
        every = np.unique(values)
        levels = tuple(map(float, (*every[: LEVELS - 1], every[-1])))
    return levels


def _has_areas(values: Map, low: float, top: float) -> bool:
    """Return True if 3 x 3 pixels have one value between `low` and `top`, both excluded."""
    inner = values[1:-1, 1:-1]
    flat = (inner > low) & (inner < top)
    for row, col in np.ndindex(3, 3):
        flat &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
    return bool(flat.any())


def _levels_of(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map, ascending; () where they are more than `LEVELS`.

    >>> _levels_of(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels, rest = list[float](), values.ravel()
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def _is_any(values: Map, levels: Sequence[float]) -> Bool:
    """Return a mask of the pixels that have one of the levels, in the map's own precision."""
    return np.isin(values, np.array(levels, values.dtype) if values.dtype.kind == "f" else levels)


def _void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the values without which a map of these levels is a mask; () where none are.

    >>> _void_levels((0, 1, 255)), _void_levels((0, 127, 255)), _void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))


# ---- soft maps -----------------------------------------------------------------------------------


def _is_faint(soft: Map, protocol: Protocol, curve: bool = True) -> bool:
    """Return True if nothing of a map reaches the lowest threshold, or it holds small integers.

    `curve` is False for metrics without thresholds.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    small = SMALL[soft.dtype.itemsize] if soft.dtype.kind == "u" else -1
    least = min(filter(None, protocol.thresholds)) if curve else 0
    for part in (few_lines(soft), soft):  # a few are enough for most maps
        top = part.max(initial=0)
        if not (top <= small or float(unit(np.asarray(top))) < least):
            return False
    return True


def soft_evidence(pred: Prediction, protocol: Protocol, curve: bool) -> Evidence:
    """Return what a prediction shows: whether any value of a soft map counts.

    `curve` is False for metrics without thresholds. Arrays are faint as small integers only: a
    network that is still trained may give any numbers.
    """
    evidence = evolve(pred.evidence, maps=max(pred.evidence.maps, 1), file=pred.file)
    if pred.kind not in ("soft", "ucm2"):
        return evidence
    soft = pred.parts[pred.kind]
    if _is_faint(soft, protocol, curve) and (pred.path or soft.dtype.kind == "u"):
        return evolve(evidence, values=Values.FAINT, strongest=float(soft.max(initial=0)))
    return evolve(evidence, values=Values.STRONG)


def _faint_problem(form: str, top: float) -> Problem:
    """Return the fault of a set whose maps are all faint, with its strongest value."""
    full = {"soft8": 255, "soft16": 65535}.get(form, 1)
    labels = (Setting("pred_kind", "labels", "reads region labels"),) * (full > 1 < top)
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
