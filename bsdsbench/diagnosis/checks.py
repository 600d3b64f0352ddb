"""What the doctor keeps of each image, and the table of its checks.

Thresholds of the verdicts lie far from what sound maps give: thinned maps are 0.00 to 0.56 thick
and raw ones 0.99; JPEG traces are below 1.13 in sound maps and above 1.29 at quality 92; sound maps
of three detectors and of UCMs are 0.00 to 0.39 pixels off; no map of the sample has a value of
exactly k/100.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis import symptoms
from bsdsbench.files.bounded import counted
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import Pair
from bsdsbench.loaders.inputs import Prediction
from bsdsbench.loaders.pairing import Files, grouped, is_set
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.first_look import (
    faint_words,
    is_faint,
    look_at,
    position,
    swaps,
    thickness,
    thumbnail,
)
from bsdsbench.runs.run import FileItem

ERROR, WARNING = "error", "warning"
MEASURED = "measured"
THICK, THIN = 0.8, 0.6
JPEG = 1.2
SHIFT = 1.2
CORRELATED = 0.05
FEW_VALUES = 10
HUNDREDTHS = 0.01
# Data sets whose images have many annotators, all of which count
MANY_ANNOTATORS = ("bsds500", "bsds300", "mdbd-edges", "mdbd-boundaries")


@dataclass(slots=True)
class Seen:
    """What is kept of an image: numbers and thumbnails, `more` only of some; `faults` end the
    asking."""

    image_id: str
    file: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    fits: bool
    annotators: int = 0
    several_sizes: bool = False
    marked: float = 0.0
    empty: tuple[int, ...] = ()
    constant: bool = False
    high: float = 0.0
    values: int = FEW_VALUES  # of a soft map
    faint: tuple[float, str] | None = None
    way: str = ""
    thumbnails: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    faults: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Inputs:
    """The files of both sides by image id, in order; what was seen, and what cannot be read."""

    metric: Metric
    protocol: Protocol
    kind: str
    split_file: str | Path | None = None
    preds: Files = field(default_factory=dict)
    gts: Files = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    odd: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    counts: list[Any] = field(default_factory=list)

    def group(self, pred_dir: Path, gt_dir: Path) -> None:
        """List the files. Raises PairingError for folders that cannot be listed."""
        given = pred_dir, gt_dir, self.split_file, self.kind
        classes = self.metric.class_names(self.opt)
        wanted, preds, gts, _ = grouped(*given, gt_kind=self.metric.gt_kind, classes=classes)
        self.preds, self.gts = (
            {i: side[i] for i in sorted(side) if wanted is None or i in wanted}
            for side in (preds, gts)
        )

    @property
    def opt(self) -> Any:
        """The options of the metric."""
        return self.metric.options_of(self.protocol)

    @property
    def sound(self) -> list[Seen]:
        """Images with a map and marks, and without a fault so far."""
        return [s for s in self.seen if s.thumbnails is not None and not s.faults]

    @property
    def measured(self) -> list[Seen]:
        """Those of them that more is known of."""
        return [s for s in self.seen if s.more and not s.faults]

    def look_at(self, image_id: str, closely: bool) -> None:
        """Read an image as `evaluate` does, and keep what the checks ask for."""
        paths, opt, protocol = self.preds[image_id], self.opt, self.protocol
        several = self.kind in ("labels", "classes")
        pair = Pair(image_id, tuple(paths if several else paths[:1]), tuple(self.gts[image_id]))
        try:
            found, gt = FileItem(pair, self.kind).load(self.metric, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred = cast(Prediction, found)
        file, fits = paths[0].name, self.metric.fits(pred, gt, opt)
        seen = Seen(image_id, file, (pred.shape, gt.shape), fits)
        self.seen.append(seen)
        if self.metric.name not in registry.DEFAULT:
            if closely and fits:
                try:
                    self.counts.append(self.metric.count(pred, gt, protocol, opt))
                except DataError as error:
                    self.refused.append(error.problems[0])
                    return
                for symptom in self.metric.symptoms(pred, gt, protocol, opt):
                    self.odd.setdefault(symptom, []).append(file)
            return
        marks = [bool(b.any()) for b in gt.boundaries]
        seen.annotators, seen.empty = len(marks), tuple(k for k, m in enumerate(marks, 1) if not m)
        seen.several_sizes = any(b.shape != gt.shape for b in gt.boundaries)
        seen.marked = float(np.mean([b.mean() for b in gt.boundaries]))
        look = look_at(pred, gt, protocol)
        soft, truth = look.soft, look.truth
        if not soft.size:
            return
        seen.high, seen.constant = float(soft.max()), soft.min() == soft.max()
        given = pred.soft if pred.ucm2 is None else pred.ucm2
        if given is not None and is_faint(given, protocol):
            seen.faint = float(given.max(initial=0)), pred.form
        if pred.soft is not None:
            seen.values = len(np.unique(pred.soft))
        if not look.measured:
            return
        small = thumbnail(soft), thumbnail(truth)
        seen.thumbnails = small[0].astype(np.float32), small[1].astype(np.float32)
        seen.way = position(look)
        if not closely:
            return
        seen.more = {
            "near and far": symptoms.near_and_far(soft, truth),
            "median": float(np.median(soft)),
            "surface": symptoms.correlation(soft, truth),
            "jpeg": np.inf if file.lower().endswith((".jpg", ".jpeg")) else 0.0,
        }
        if pred.soft is not None:
            seen.more["thickness"] = thickness(soft)
            seen.more["jpeg"] = max(seen.more["jpeg"], symptoms.jpeg_ratio(soft))
            if pred.soft.dtype.kind == "f":
                seen.more["hundredths"] = symptoms.on_hundredths(pred.soft)


Hit = tuple[Sequence[Seen] | Sequence[str], dict[str, Any]]
Looks = Callable[[Inputs], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Check:
    """What it looks at (gives the images or files, and words), what it says and what mends that."""

    name: str
    level: str
    looks: Looks
    says: str
    mends: str = ""


# ---- what a check looks at -----------------------------------------------------------------------


def each(which: Callable[[Seen, Protocol], bool], among: str = "seen") -> Looks:
    """Looks at images one by one, of "seen", "sound" or "measured"."""

    def looks(inputs: Inputs) -> Iterator[Hit]:
        asked: list[Seen] = getattr(inputs, among)
        if found := [s for s in asked if which(s, inputs.protocol)]:
            yield found, {"of": len(asked), "maps": counted(len(found), "map")}

    return looks


def names(what: str) -> Looks:
    """Looks at the names of files: "renamed", of another "split", "missing" or "extra"."""

    def looks(inputs: Inputs) -> Iterator[Hit]:
        missing = [i for i in inputs.gts if i not in inputs.preds]
        extra = [i for i in inputs.preds if i not in inputs.gts]
        common, longer = len(inputs.gts) - len(missing), ""
        for name in extra:  # what was put before or after every id
            before, there, after = name.partition(missing[0] if missing else name)
            if missing and there and {f"{before}{i}{after}" for i in missing} <= {*extra}:
                longer = f"{before}*{after}"
        found = {"missing": missing, "extra": extra}
        if missing and extra and common < len(inputs.gts) / 2:
            found = {"renamed" if longer else "split": extra}
        if ids := found.get(what):
            words = {"of": len(inputs.gts), "common": common, "longer": longer}
            yield ids, {**words, "preds": counted(len(extra), "prediction")}

    return looks


def doubled(inputs: Inputs) -> Iterator[Hit]:
    frames = inputs.split_file is not None
    for what, side in (("prediction", inputs.preds), ("ground truth", inputs.gts)):
        same: dict[str, list[str]] = {}
        for image_id in side:
            same.setdefault(image_id.casefold(), []).append(image_id)
        wrong = [
            ids
            for ids in same.values()
            if len(ids) > 1
            or not (is_set(ids[0], side[ids[0]], frames) or inputs.kind == "classes")
        ]
        if files := [str(path) for ids in wrong for i in ids for path in side[i]]:
            yield files, {"what": what}


REASONS = {
    "label maps need pred_kind": "labels",
    "no boundary pixel in any": "empty-truth",
    "expected boundaries of 0 and 1": "gt-values",
    "expected floats in [0, 1] (": "range",
}


def unread(code: str) -> Looks:
    """Looks at what reading refused; faults that differ in numbers only are one."""

    def looks(inputs: Inputs) -> Iterator[Hit]:
        kinds: dict[str, list[str]] = {}
        for text in inputs.unread:
            if code == next((v for k, v in REASONS.items() if k in text), "unreadable"):
                what = text.partition(": ")[2] or text
                kinds.setdefault(re.sub(r"[0-9][0-9.e+-]*", "#", what), []).append(text)
        for texts in kinds.values():
            file, _, what = texts[0].partition(": ")
            words = texts[0] if len(texts) == 1 else f"{len(texts)} files: {what or file}"
            said = re.search(r"\? ([^?)]*)\)$", texts[0])
            mends = said[1] if said else "write the files again as expected"
            files = [Path(text.partition(": ")[0]).name for text in texts]
            yield files, {"words": words, "mends": mends}

    return looks


def resized(inputs: Inputs) -> Iterator[Hit]:
    if odd := [s for s in inputs.seen if not (s.several_sizes or s.fits or _turned(s))]:
        have, want = (" x ".join(map(str, shape)) for shape in odd[0].shapes)
        yield odd, {"of": len(inputs.seen), "example": f"{have} for an image of {want}"}


def _turned(s: Seen) -> bool:
    have, want = s.shapes
    return not s.fits and have == want[::-1]


def one_annotator(inputs: Inputs) -> Iterator[Hit]:
    name = inputs.protocol.name.rstrip("*")
    if name in MANY_ANNOTATORS and inputs.seen and all(s.annotators == 1 for s in inputs.seen):
        yield [], {"name": inputs.protocol.name}


def empty_annotators(inputs: Inputs) -> Iterator[Hit]:
    if found := [s for s in inputs.seen if s.empty]:
        names = [f"{s.image_id} annotator {', '.join(map(str, s.empty))}" for s in found]
        yield names, {"images": counted(len(found), "image")}


def faint(inputs: Inputs) -> Iterator[Hit]:
    tops = [s.faint for s in inputs.seen if s.faint]
    if tops and len(tops) == len(inputs.seen) and max(tops)[0]:
        top, form = max(tops)
        what, _, mends = faint_words(form, top).partition(": ")
        yield inputs.seen, {"words": what, "mends": mends}


def inverted(inputs: Inputs) -> Iterator[Hit]:
    """The ground truth's neighbourhood is darker than the rest: in most, or on bright ground."""
    asked = inputs.measured
    dark = [s for s in asked if s.more["near and far"][0] < s.more["near and far"][1]]
    bright = [s for s in dark if s.more["median"] > 0.5]
    if found := dark if len(dark) > len(asked) / 2 else bright:
        yield found, {"of": len(asked)}


def mirrored(inputs: Inputs) -> Iterator[Hit]:
    ways: dict[str, list[Seen]] = {}
    for s in inputs.sound:
        ways.setdefault(s.way, []).append(s)
    for way in filter(None, ways):
        yield ways[way], {"way": way, "maps": counted(len(ways[way]), "map")}


def exchanged(inputs: Inputs) -> Iterator[Hit]:
    by_id = {s.image_id: s for s in inputs.sound}
    small = [(i, *s.thumbnails) for i, s in by_id.items() if s.thumbnails]
    if swapped := dict(swaps(small)):
        a, b = next(iter(swapped.items()))
        words = {"maps": counted(len(swapped), "map"), "a": a, "b": b}
        yield [by_id[image_id] for image_id in swapped], words


def thinned(inputs: Inputs) -> Iterator[Hit]:
    nms = inputs.protocol.nms
    if nms or not inputs.protocol.thin:
        asked = [s for s in inputs.measured if "thickness" in s.more]
        if found := [s for s in asked if s.more["thickness"] < THIN]:
            mends = "give the raw maps to this protocol" + nms * ", or --set nms=false"
            yield found, {"of": len(asked), "mends": mends}


def grid_values(inputs: Inputs) -> Iterator[Hit]:
    """Values that are k/100, where the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits."""
    grid = set(inputs.protocol.thresholds)
    near = {round(t, 9) for t in grid}
    off = sum(k / 100 not in grid and round(k / 100, 9) in near for k in range(1, 100))
    asked = [s for s in inputs.measured if "hundredths" in s.more]
    found = [s for s in asked if s.more["hundredths"] > HUNDREDTHS]
    if off and found and not inputs.protocol.nms:
        yield found, {"of": len(asked), "off": off}


def shifted(inputs: Inputs) -> Iterator[Hit]:
    if asked := inputs.measured:
        total = np.mean([s.more["surface"] for s in asked], axis=0)
        dy, dx = symptoms.shift_of(total)
        if max(abs(dy), abs(dx)) > SHIFT and total.max() >= CORRELATED:
            yield asked, {"dy": dy, "dx": dx}


def refused(inputs: Inputs) -> Iterator[Hit]:
    for text in dict.fromkeys(inputs.refused):
        yield [], {"words": text}


# ---- the table -----------------------------------------------------------------------------------

# fmt: off
CHECKS = (
    # files and names
    Check("names", ERROR, names("renamed"), "names of {preds} differ from the ids by {longer!r}",
          "rename the files to ID.png"),
    Check("split", ERROR, names("split"), "only {common} of {of} images have a prediction, and "
          "{preds} no ground truth: two different splits?", "give --gt of the same split"),
    Check("missing", ERROR, names("missing"), "{n} of {of} images have no prediction",
          "predict them, or --split-file with the ids, or --missing zero|skip"),
    Check("extra", ERROR, names("extra"), "{preds} without ground truth",
          "check the split, or --split-file with the ids that count"),
    Check("doubled", ERROR, doubled, "more than one {what} file for an image",
          "leave one file for each image"),
    # what cannot be read
    Check("labels", ERROR, unread("labels"), "{words}", "--pred-kind labels"),
    Check("empty-truth", ERROR, unread("empty-truth"), "{words}",
          "--set empty_gt=skip or count, or other annotations"),
    Check("gt-values", ERROR, unread("gt-values"), "{words}",
          "--set gt_threshold=0.5 for gray, --set gt_kind=labels for region labels"),
    Check("range", ERROR, unread("range"), "{words}", "{mends}, or save as 8-bit PNG"),
    Check("unreadable", ERROR, unread("unreadable"), "{words}", "{mends}"),
    # sizes
    Check("annotators", ERROR, each(lambda s, _: s.several_sizes),
          "annotators of one image have several sizes", "draw its annotations in one size"),
    Check("transposed", ERROR, each(lambda s, _: _turned(s)), "{n} of {of} predictions are "
          "transposed: rows and columns are exchanged", "transpose them before saving"),
    Check("resized", ERROR, resized, "{n} of {of} predictions have another size: {example}",
          "predict at the size of the image, or resize to it; no option does"),
    # annotations and values
    Check("one-annotator", WARNING, one_annotator,
          "one annotator an image, where {name} has several that all count",
          "give --gt the original annotations, or --protocol of your data set"),
    Check("gt-polarity", ERROR, each(lambda s, _: s.marked > 0.5 and not s.empty),
          "most ground-truth pixels are boundary: dark lines on bright ground?",
          "--set gt_invert=true"),
    Check("empty-annotator", WARNING, empty_annotators,
          "an annotator has no boundary in {images}", "check the annotations"),
    Check("faint", ERROR, faint, "{words}", "{mends}"),
    Check("zero", ERROR, each(lambda s, _: s.constant and s.high == 0 and not s.faults),
          "{maps} with zeros only", "predict again"),
    Check("saturated", ERROR, each(lambda s, _: s.constant and s.high > 0 and not s.faults),
          "{maps} with one value everywhere (saturated?)",
          "save the sigmoid's output, not the logits"),
    Check("few-values", WARNING, each(lambda s, _: s.values < FEW_VALUES and not s.faults),
          f"{{maps}} with fewer than {FEW_VALUES} values: the curve has few points",
          "save soft maps"),
    # places
    Check("inverted", ERROR, inverted,
          "{n} of {of} maps are darker on the ground truth than off it", "--invert"),
    Check("mirrored", ERROR, mirrored, "{maps} would fit the ground truth better {way}",
          "turn them back before saving"),
    Check("exchanged", ERROR, exchanged, "{maps} would fit the ground truth of another image, such "
          "as the map of {a} that of {b}", "check the order of names and maps when saving"),
    # what some are measured for
    Check("raw", WARNING,
          each(lambda s, p: p.thin and not p.nms and s.more.get("thickness", 0) > THICK, MEASURED),
          "{n} of {of} maps have broad edges: never thinned by NMS", "--nms"),
    Check("thinned", WARNING, thinned, "{n} of {of} maps are thinned already", "{mends}"),
    Check("grid-values", WARNING, grid_values,
          "{n} of {of} float maps hold values of exactly k/100; the thresholds are MATLAB's "
          "linspace, {off} of which differ from k/100 in the last bit: rounding decides whether "
          "such a value is on", "save the maps unrounded, or as 8 or 16 bit PNG"),
    Check("jpeg", WARNING, each(lambda s, _: s.more["jpeg"] > JPEG, MEASURED),
          "{n} of {of} maps have been through JPEG, which invents edges", "save as PNG or .npy"),
    Check("shift", WARNING, shifted,
          "maps are shifted by about {dy:+.1f} rows and {dx:+.1f} columns",
          "move them back, or undo the padding or crop of the network; no option does"),
    # other metrics, which say themselves what else is odd (`Metric.symptoms`)
    Check("refused", ERROR, refused, "{words}", "what it expects, or another option of the metric"),
)
# fmt: on
