"""The doctor: errors in the inputs, found before a long run.

Names are compared first, then every file is read once, one image after the other; what is kept of
an image is numbers and two thumbnails. What takes a transform (polarity, thickness, traces of JPEG,
shift) is measured on a few images spread over the set. `CHECKS` says what is made of it.

Thresholds of the verdicts lie far from what sound maps give: thinned maps are 0.00 to 0.56 thick
and raw ones 0.99; JPEG traces are below 1.13 in sound maps and above 1.29 at quality 92; sound maps
of three detectors and of UCMs are 0.00 to 0.39 pixels off; no map of the sample has a value of
exactly k/100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np

from bsdsbench.diagnosis import symptoms
from bsdsbench.files.arguments import given_path
from bsdsbench.files.bounded import counted, listed
from bsdsbench.files.errors import DataError, Fix, Problem, Setting, alike
from bsdsbench.loaders import Pair
from bsdsbench.loaders.inputs import Prediction
from bsdsbench.loaders.pairing import Files, grouped
from bsdsbench.loaders.reading import faint_problem, is_faint
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Progress
from bsdsbench.runs.first_look import look_at, position, swaps, thickness, thumbnail
from bsdsbench.runs.keywords import RunKeywords, plan
from bsdsbench.runs.run import FileItem

ERROR, WARNING = "error", "warning"
THICK, THIN = 0.8, 0.6
JPEG = 1.2
SHIFT = 1.2
CORRELATED = 0.05
FEW_VALUES = 10
HUNDREDTHS = 0.01
AS_EXPECTED = "write the files again as expected"
# Data sets whose images have many annotators, all of which count
MANY_ANNOTATORS = ("bsds500", "bsds300", "mdbd-edges", "mdbd-boundaries")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: its code, "error" or "warning", what it is, the files, and what fixes it.

    Parameters
    ----------
    code, message : str
        Short name of the kind of fault; what is wrong, in one line.
    level : str
        "error" (a score would be wrong or impossible) or "warning" (it may be intended).
    files : tuple of str
        The files concerned.
    fix : tuple of Setting or str
        The options or the steps that fix it, one or the other.

    Examples
    --------
    >>> print(Finding("inverted", "error", "dark on bright", fix=(Setting("invert"),)).line())
    error: inverted: dark on bright -> invert=True
    """

    code: str
    level: str
    message: str
    files: tuple[str, ...] = ()
    fix: tuple[Fix, ...] = ()

    def fixes(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return what fixes it in words, with options as `write` writes them (as Python does)."""
        return Problem(fix=self.fix).fixes(write)

    def line(self, limit: int = 3, write: Callable[[Setting], str] | None = None) -> str:
        """Return one printable line, with `limit` of the files."""
        where = f" [{listed(list(self.files), limit)}]" if self.files else ""
        fix = f" -> {self.fixes(write)}" if self.fix else ""
        return f"{self.level}: {self.code}: {self.message}{where}{fix}"


class Findings(list[Finding]):
    """What `doctor` found, errors first; n_measured of n_images took the slower measurements."""

    n_images: int = 0
    n_measured: int = 0

    def summary(self) -> str:
        """One line: how many errors and warnings, and on how much they rest."""
        errors = sum(f.level == "error" for f in self)
        counts = f"{counted(errors, 'error')}, {counted(len(self) - errors, 'warning')}"
        return (
            f"{counts if self else 'nothing found'}; {counted(self.n_images, 'image')} read, "
            f"{self.n_measured} of them measured"
        )


def doctor(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    split_file: str | Path | None = None,
    pred_kind: str | None = None,
    metric: str = registry.DEFAULT[0],
    looked_at: int = 12,
    progress: Progress | None = None,
) -> Findings:
    """Examine predictions and ground truth; errors first, an empty list if all is well.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders of predictions and of ground truth.
    protocol : Protocol or None
        What `evaluate` will be called with, as some faults depend on it; the metric's if None.
    split_file : path or None
        Only the ids in this file count.
    pred_kind : str or None
        "soft", or "labels" for pictures and arrays that hold label maps; default: what the metric
        expects.
    metric : str
        What the inputs are for; of others than boundaries the metric says what looks wrong.
    looked_at : int
        How many images the slower measurements take, spread over the set.
    progress : callable or None
        Called with (steps done, all steps, what comes next); a step is an image, or the checks.

    Raises
    ------
    PairingError
        If a folder cannot be listed; every fault of a file is a finding.
    DataError
        For a kind of prediction that the metric does not take.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> thick = bb.run("structure-tensor-raw", sample_images(), out=tempfile.mkdtemp()).maps
    >>> [finding.fixes() for finding in bb.doctor(thick, sample_ground_truth())]
    ['nms=True']
    """
    keywords = RunKeywords(pred_kind=pred_kind, split_file=split_file)
    options = plan(keywords, protocol, (metric,))
    asked, kind = registry.get(metric), options.pred_kind
    places = given_path(pred_dir, "pred_dir"), given_path(gt_dir, "gt_dir")
    classes = asked.class_names(asked.options_of(options.protocol))
    _, *sides = grouped(*places, split_file, kind, asked.gt_kind, classes)
    preds, gts = (dict(sorted(side.files.items())) for side in sides)
    several = [side.doubled for side in sides]
    inputs = Inputs(asked, options.protocol, kind, preds, gts, several)
    both = [image_id for image_id in gts if image_id in preds]
    step = max(1, -(-len(both) // looked_at))
    for k, image_id in enumerate(both):
        if progress:
            progress(k + 1, len(both) + 1, image_id)
        inputs.look_at(image_id, closely=inputs.n_measured * step <= k)
    if progress:
        progress(len(both) + 1, len(both) + 1, "checks")
    found = Findings()
    for code, hits, words in faults(inputs):
        if hits or words:
            level, says, mends = CHECKS[code]
            given = {"n": len(hits), "of": len(inputs.seen), "maps": counted(len(hits), "map")}
            given |= {"measured": len(inputs.measured), "first": next(iter(hits), ""), **words}
            files = tuple(hit.file if isinstance(hit, Seen) else hit for hit in hits)
            fix = words.get("fix", mends)
            found.append(Finding(code, level, says.format(**given), files, fix))
            for hit in hits:
                if isinstance(hit, Seen) and level == ERROR:
                    hit.faulty = True
    for (code, said, fix), odd in inputs.odd.items():  # what the metric itself finds odd
        if 2 * len(odd) >= inputs.n_measured:
            message = f"{said} in {counted(len(odd), 'image')}"
            found.append(Finding(code, WARNING, message, tuple(odd), (fix,)))
    found.sort(key=lambda finding: finding.level != ERROR)
    found.n_images, found.n_measured = len(both), inputs.n_measured
    return found


@dataclass(slots=True)
class Seen:
    """What is kept of an image: `codes`, what is wrong with it alone; numbers and thumbnails.

    more   : numbers of the images that are looked at closely
    faulty : True from its first error on, which ends the asking
    """

    image_id: str
    file: str
    sizes: str
    codes: set[str]
    annotators: int = 0
    faint: tuple[float, str] | None = None
    way: str = ""
    thumbnails: tuple[Any, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    faulty: bool = False


@dataclass(slots=True)
class Inputs:
    """The files of both sides by image id, in order; what was seen, and what cannot be read."""

    metric: Metric
    protocol: Protocol
    kind: str
    preds: Files
    gts: Files
    several: list[set[str]]
    n_measured: int = 0  # looked at closely
    seen: list[Seen] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    odd: dict[tuple[str, str, Fix], list[str]] = field(default_factory=dict)

    @property
    def sound(self) -> list[Seen]:
        """Images with a map and marks, and without an error so far."""
        return [s for s in self.seen if s.thumbnails and not s.faulty]

    @property
    def measured(self) -> list[Seen]:
        """Those of them that more is known of."""
        return [s for s in self.sound if s.more]

    def look_at(self, image_id: str, closely: bool) -> None:
        """Read an image as `evaluate` does, and keep what the checks ask for."""
        paths, protocol, metric = self.preds[image_id], self.protocol, self.metric
        several = self.kind in ("labels", "classes")
        pair = Pair(image_id, tuple(paths if several else paths[:1]), tuple(self.gts[image_id]))
        try:
            found, gt = FileItem(pair, self.kind).load(metric, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred, opt, file = cast(Prediction, found), metric.options_of(protocol), paths[0].name
        fits, turned = metric.fits(pred, gt, opt), pred.shape == gt.shape[::-1]
        uneven = any(b.shape != gt.shape for b in gt.boundaries)
        size = "resized" if not turned else "transposed"
        codes = {"annotators"} if uneven else set() if fits else {size}
        sizes = "{} for an image of {}".format(*(" x ".join(map(str, a.shape)) for a in (pred, gt)))
        seen = Seen(image_id, file, sizes, codes)
        self.seen.append(seen)
        if metric.name not in registry.DEFAULT:
            if closely and fits:
                try:
                    metric.count(pred, gt, protocol, opt)
                except DataError as error:
                    self.refused.append(str(error.problems[0]))
                    return
                self.n_measured += 1
                for symptom in metric.symptoms(pred, gt, protocol, opt):
                    self.odd.setdefault(symptom, []).append(file)
            return
        marks = [bool(b.any()) for b in gt.boundaries]
        seen.annotators = len(marks)
        look = look_at(pred, gt, protocol)
        soft, truth = look.soft, look.truth
        if not soft.size:
            return
        given = pred.parts[pred.kind]
        if is_faint(given, protocol):
            seen.faint = float(given.max(initial=0)), pred.form
        wrong = {
            "gt-polarity": all(marks) and np.mean([b.mean() for b in gt.boundaries]) > 0.5,
            "zero": not soft.any(),
            "saturated": soft.max() == soft.min() > 0,
            "few-values": pred.kind == "soft" and len(np.unique(pred.soft)) < FEW_VALUES,
        }
        if look.measured:
            small = thumbnail(soft), thumbnail(truth)
            seen.way = position(*small)
            seen.thumbnails = tuple(each.astype(np.float32) for each in small)
        if look.measured and closely:
            self.n_measured += 1
            seen.more = {
                "dark": symptoms.darker_near(soft, truth),
                "bright": np.median(soft) > 0.5,
                "surface": symptoms.correlation(soft, truth),
            }
            wrong["jpeg"] = file.lower().endswith((".jpg", ".jpeg"))
            if pred.kind == "soft":
                thick, apart = thickness(soft), protocol.nms or not protocol.thin
                wrong["jpeg"] |= symptoms.jpeg_ratio(soft) > JPEG
                wrong |= {"thinned": apart and thick < THIN, "raw": not apart and thick > THICK}
                # the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits
                near = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
                if near and pred.soft.dtype.kind == "f" and not protocol.nms:
                    wrong["grid-values"] = symptoms.on_hundredths(pred.soft) > HUNDREDTHS
        codes |= {code for code, there in wrong.items() if there}


def faults(inputs: Inputs) -> Iterator[tuple[str, Sequence[Any], dict[str, Any]]]:
    """Code, the images or files that have it, and words for its message, in the order of asking: an
    image with an error is not asked further. Without images and words there is no fault."""
    preds, gts, seen = inputs.preds, inputs.gts, inputs.seen

    def coded(*codes: str) -> Iterator[tuple[str, list[Seen], dict[str, Any]]]:
        for code in codes:
            yield code, [s for s in seen if code in s.codes and not s.faulty], {}

    # files and names
    missing, extra = [i for i in gts if i not in preds], [i for i in preds if i not in gts]
    few: dict[str, Any] = {"of": len(gts), "common": len(gts) - len(missing)}
    few["preds"] = counted(len(extra), "prediction")
    if missing and extra and few["common"] < len(gts) / 2:
        for name in extra:  # what was put before or after every id
            before, there, after = name.partition(missing[0])
            if there and {before + i + after for i in missing} <= {*extra}:
                yield "names", extra, {**few, "longer": f"{before}*{after}"}
                break
        else:
            yield "split", extra, few
    else:
        for code, ids in (("missing", missing), ("extra", extra)):
            yield code, ids, few if ids else {}
    sides = ("prediction", preds), ("ground truth", gts)
    for (what, side), several in zip(sides, inputs.several, strict=True):
        same: dict[str, list[str]] = {}
        for image_id in side:
            same.setdefault(image_id.casefold(), []).append(image_id)
        double = [ids for ids in same.values() if len(ids) > 1 or ids[0] in several]
        if files := [str(path) for ids in double for i in ids for path in side[i]]:
            yield "doubled", files, {"what": what}
    # what reading refused; faults that differ in numbers only are one
    for equal in alike(inputs.unread):
        files = [Path(problem.file).name for problem in equal]
        words = f"{counted(len(equal), 'file')}: {attrs.evolve(equal[0], file='', fix=())}"
        yield "unreadable", files, {"words": words, "fix": equal[0].fix or (AS_EXPECTED,)}
    # sizes, annotations and values
    yield from coded("annotators", "transposed", "resized")
    name = inputs.protocol.name
    if name.rstrip("*") in MANY_ANNOTATORS and seen and all(s.annotators == 1 for s in seen):
        yield "one-annotator", [], {"name": name}
    yield from coded("gt-polarity")
    tops = [s.faint for s in seen if s.faint]
    if tops and len(tops) == len(seen) and max(tops)[0]:
        top, form = max(tops)
        faint = faint_problem(form, top)
        words = f"{faint.has}, expected {faint.expected}"
        yield "faint", seen, {"words": words, "fix": faint.fix}
    yield from coded("zero", "saturated", "few-values")
    # places: darker near the ground truth are most maps, or those on bright ground
    dark = [s for s in inputs.measured if s.more["dark"]]
    most = 2 * len(dark) > len(inputs.measured)
    yield "inverted", [s for s in dark if most or s.more["bright"]], {}
    ways: dict[str, list[Seen]] = {}
    for s in inputs.sound:
        if s.way:
            ways.setdefault(s.way, []).append(s)
    for way, turned in ways.items():
        yield "mirrored", turned, {"way": way}
    by_id = {s.image_id: s for s in inputs.sound}
    if swapped := dict(swaps([(i, *s.thumbnails) for i, s in by_id.items()])):
        a, b = next(iter(swapped.items()))
        yield "exchanged", [by_id[image_id] for image_id in swapped], {"a": a, "b": b}
    # what some are measured for
    yield from coded("raw", "thinned", "grid-values", "jpeg")
    if asked := inputs.measured:
        total = np.mean([s.more["surface"] for s in asked], axis=0)
        dy, dx = symptoms.shift_of(total)
        if max(abs(dy), abs(dx)) > SHIFT and total.max() >= CORRELATED:
            yield "shift", asked, {"dy": dy, "dx": dx}
    for text in dict.fromkeys(inputs.refused):
        yield "refused", [], {"words": text}


# Code -> level, what is said, what mends it. Other metrics say themselves what is odd
# (`Metric.symptoms`).
CHECKS = {
    "names": (
        ERROR,
        "names of {preds} differ from the ids by {longer!r}",
        ("rename the files to ID.png",),
    ),
    "split": (
        ERROR,
        "only {common} of {of} images have a prediction, and {preds} no ground "
        "truth: two different splits?",
        ("give the ground truth of the same split",),
    ),
    "missing": (
        ERROR,
        "{n} of {of} images have no prediction",
        (
            "predict them",
            Setting("split_file", ..., "with the ids"),
            Setting("missing", "zero"),
            Setting("missing", "skip"),
        ),
    ),
    "extra": (
        ERROR,
        "{preds} without ground truth",
        ("check the split", Setting("split_file", ..., "with the ids that count")),
    ),
    "doubled": (
        ERROR,
        "more than one {what} file for an image",
        ("leave one file for each image",),
    ),
    "unreadable": (ERROR, "{words}", ()),
    "annotators": (
        ERROR,
        "annotators of one image have several sizes",
        ("draw its annotations in one size",),
    ),
    "transposed": (
        ERROR,
        "{n} of {of} predictions are transposed: rows and columns are exchanged",
        ("transpose them before saving",),
    ),
    "resized": (
        ERROR,
        "{n} of {of} predictions have another size: {first.sizes}",
        ("predict at the size of the image", "resize to it; no option does"),
    ),
    "one-annotator": (
        WARNING,
        "one annotator an image, where {name} has several that all count",
        ("give the original annotations", Setting("protocol", ..., "of your data set")),
    ),
    "gt-polarity": (
        ERROR,
        "most ground-truth pixels are boundary: dark lines on bright ground?",
        (Setting("gt_invert"),),
    ),
    "faint": (ERROR, "{words}", ()),
    "zero": (ERROR, "{maps} with zeros only", ("predict again",)),
    "saturated": (
        ERROR,
        "{maps} with one value everywhere (saturated?)",
        ("save the sigmoid's output, not the logits",),
    ),
    "few-values": (
        WARNING,
        f"{{maps}} with fewer than {FEW_VALUES} values: the curve has few points",
        ("save soft maps",),
    ),
    "inverted": (
        ERROR,
        "{n} of {measured} maps are darker on the ground truth than off it",
        (Setting("invert"),),
    ),
    "mirrored": (
        ERROR,
        "{maps} would fit the ground truth better {way}",
        ("turn them back before saving",),
    ),
    "exchanged": (
        ERROR,
        "{maps} would fit the ground truth of another image, such as the map of {a} that of {b}",
        ("check the order of names and maps when saving",),
    ),
    "raw": (
        WARNING,
        "{n} of {measured} maps have broad edges: never thinned by NMS",
        (Setting("nms"),),
    ),
    "thinned": (
        WARNING,
        "{n} of {measured} maps are thinned already",
        ("give the raw maps to this protocol", Setting("nms", False, "where it has NMS")),
    ),
    "grid-values": (
        WARNING,
        "{n} of {measured} maps are floats with values of exactly k/100; the "
        "thresholds are MATLAB's linspace, many of which differ from k/100 in the last "
        "bit: rounding decides whether such a value is on",
        ("save the maps unrounded, or as 8 or 16 bit PNG",),
    ),
    "jpeg": (
        WARNING,
        "{n} of {measured} maps have been through JPEG, which invents edges",
        ("save as PNG or .npy",),
    ),
    "shift": (
        WARNING,
        "maps are shifted by about {dy:+.1f} rows and {dx:+.1f} columns",
        ("move them back, or undo the padding or crop of the network; no option does",),
    ),
    "refused": (ERROR, "{words}", ("give what it expects, or another option of the metric",)),
}
