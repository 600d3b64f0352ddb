"""The doctor: find errors in the inputs before a long run.

The doctor compares names first. Then it reads every file once and checks sizes, values and the
polarity of the ground truth. A few images spread over the set are measured further: the
distribution of values, the thickness of lines, traces of JPEG, displacement. A cause is reported
only if it was measured, and a remedy that can be applied to the maps (inversion, NMS, shifting
back) only if it was tried on these images and raised their F by GAIN. An image with an error is not
examined further. `CHECKS` has the messages.

The doctor cannot recognise maps that were computed at a lower resolution, or resized and back, as
they are blurred like other maps.

The thresholds of the verdicts are far from the values of sound maps. Thinned maps are 0.00 to 0.56
thick and raw maps 0.99. JPEG traces are below 1.13 in sound maps and above 1.29 at quality 92. Maps
of three detectors and of UCMs are displaced by 0.00 to 0.39 pixels, and shifting back maps that
were moved by one pixel diagonally raises F by 0.003 to 0.011. No map of the sample has a value of
exactly k/100.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np

from bsdsbench.arguments import F8, given_number, given_path
from bsdsbench.diagnosis import symptoms
from bsdsbench.diagnosis.findings import CHECKS, ERROR, FEW_VALUES, WARNING, Finding, Findings
from bsdsbench.errors import DataError, Fix, Problem, Setting, alike
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.pairing import Files, Pair, group_files
from bsdsbench.loaders.reading import Readings
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.metrics.optional import Diagnosed
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.score_tables import is_area, late_starts_note
from bsdsbench.runs.engine import evidence_of
from bsdsbench.runs.keywords import Plan, RunKeywords, plan
from bsdsbench.runs.sanity import (
    Thumbnail,
    best_orientation,
    find_swaps,
    look_at,
    thickness,
    thumbnail,
)
from bsdsbench.runs.sources import FileItem
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import LATE_START, NOTHING_BELOW, PRCurve
from bsdsbench.scores.ratios import short
from bsdsbench.text import counted

THICK, THIN = 0.8, 0.6
JPEG = 1.2
GAIN = 0.003  # a remedy is reported if it raises F by at least this much
SCALED = 1.5  # pixels: maps are scaled if the displacements of two quarters differ by more
CORRELATED = 0.05
TRIAL = 5  # number of thresholds at which a remedy is tried
HUNDREDTHS = 0.01
AS_EXPECTED = "write the files again as expected"
# Data sets whose images have several annotators, who all count
MANY_ANNOTATORS = ("bsds500", "bsds300", "mdbd-edges", "mdbd-boundaries")


def doctor(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    split_file: str | Path | None = None,
    pred_kind: str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    looked_at: int = 12,
    progress: Progress | None = None,
) -> Findings:
    """Examine predictions and ground truth, and list the problems, errors first.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders of predictions and of ground truth.
    protocol : Protocol or None
        The protocol for `evaluate`, as some problems depend on it; default: the metric's protocol.
    split_file : path or None
        A file with the ids of the images to examine.
    pred_kind : str or None
        "soft", or "labels" for images and arrays that hold label maps; default: the kind that the
        metric expects.
    metrics : str or sequence of str
        The metrics for `evaluate`. Boundary maps are examined most closely; for other metrics the
        metric itself says what looks wrong.
    looked_at : int
        The number of images for the slower measurements, spread over the set.
    progress : callable or None
        Called with (steps done, all steps, next step); a step is an image, or the checks.

    Returns
    -------
    Findings
        A list of the problems; empty if there are none.

    Raises
    ------
    PairingError
        If a folder cannot be listed. A problem of a file is a finding, not an error.
    DataError
        If the metric does not take this kind of prediction.

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
    options = plan(keywords, protocol, metrics)
    findings, readings, notes = Findings(), dict[str, None](), dict[str, None]()
    for name in options.metrics:
        new = _examined(name, options, pred_dir, gt_dir, looked_at, progress)
        findings += [finding for finding in new if finding not in findings]
        findings.n_images, findings.n_measured = new.n_images, new.n_measured
        readings[new.reading] = None
        notes[new.note] = None
    findings.sort(key=lambda finding: finding.level != ERROR)
    findings.reading, findings.note = ("; ".join(filter(None, k)) for k in (readings, notes))
    return findings


def _examined(
    name: str,
    options: Plan,
    pred_dir: str | Path,
    gt_dir: str | Path,
    looked_at: int,
    progress: Progress | None,
) -> Findings:
    """Examine the inputs of one metric."""
    examined, kind, split_file = registry.get(name), options.pred_kind, options.split_file
    places = given_path(pred_dir, "pred_dir"), given_path(gt_dir, "gt_dir")
    files = examined.files_read(examined.options_of(options.protocol))
    gt_kind, classes = examined.gt_kind, files.classes
    _, *sides = group_files(*places, split_file, kind, gt_kind, classes, files.sequences)
    preds, gts = (dict(sorted(side.files.items())) for side in sides)
    several = [side.doubled for side in sides]
    looked_at = int(given_number(looked_at, "looked_at", 1, 10**7, whole=True))
    inputs = _Inputs(examined, options.protocol, kind, preds, gts, several)
    both = [image_id for image_id in gts if image_id in preds]
    step = max(1, -(-len(both) // looked_at))
    for k, image_id in enumerate(both):
        if progress:
            progress(k + 1, len(both) + 1, image_id)
        inputs.look_at(image_id, closely=inputs.n_measured * step <= k)
    if progress:
        progress(len(both) + 1, len(both) + 1, "checks")
    examination = _Examination(inputs)
    for check in (_check_names, _check_files, _check_values, _check_places, _check_lines):
        check(examination)
    findings = examination.findings
    findings.n_images, findings.n_measured = len(both), inputs.n_measured
    readings = inputs.readings.with_layouts(*(side.layout for side in sides))
    findings.reading = readings.describe(inputs.records)
    if not any(finding.level == ERROR for finding in findings):
        findings.note = _late_start(inputs)
    return findings


def _late_start(inputs: _Inputs) -> str:
    """Note the recall at which the curve of the measured images starts, if AP is 0 below it.

    Boundaries are counted at the highest and the lowest threshold only; maps with the same recall
    at both have no AP. Returns "" if there is nothing to note.
    """
    if inputs.counted and any(map(is_area, (c.key for c in inputs.metric.columns))):
        run = Evaluation(inputs.protocol, "maps", inputs.counted)
        line = late_starts_note([run], inputs.metric.name)
        measured = counted(len(inputs.counted), "image")
        return f"note: of the {measured} measured, {line}" if line else ""
    kept = [image.kept for image in inputs.images if image.kept]
    soft = [image for image in kept if image.pred.kind != "segs"]
    protocol, levels = inputs.protocol, [t for t in inputs.protocol.thresholds if t > 0]
    if not soft or len(levels) < 2 or protocol.ap_rule not in NOTHING_BELOW:
        return ""
    ends = protocol.replace(thresholds=(levels[0], levels[-1]))
    counts = [boundary_counts(image.pred, image.gt, ends).matches for image in soft]
    curve = PRCurve.of_counts(ends.thresholds, np.sum(counts, axis=0), protocol.operator)
    low, first = curve.recall
    blank = protocol.ap_rule == "seism" and curve.blank is not None and curve.blank[-1]
    if first <= LATE_START or low == first or blank:
        return ""
    return (
        f"note: the curve of the {counted(len(soft), 'image')} measured starts at recall "
        f"{short(float(first), 2)}; what lies below counts 0 in AP (rule {protocol.ap_rule})"
    )


@dataclass(slots=True)
class _Image:
    """The doctor's notes on one image."""

    image_id: str
    file: str
    sizes: str
    codes: set[str]  # the problems of this image, keys of CHECKS
    annotators: int = 0
    way: str = ""  # "mirrored ..." if that fits the ground truth far better
    thumbnails: tuple[Thumbnail, Thumbnail] | None = None  # of map and ground truth
    kept: _Kept | None = None  # of an image that is looked at closely


@dataclass(frozen=True, slots=True)
class _Kept:
    """The data of an image that is measured further."""

    pred: Prediction
    gt: GroundTruth
    soft: F8  # (H, W), the prediction's map as the protocol reads it
    truth: F8  # (H, W), the number of annotators that marked each pixel


@dataclass(slots=True)
class _Inputs:
    """The files of both sides by image id, the images read, and the problems met while reading."""

    metric: Metric
    protocol: Protocol
    kind: str
    preds: Files
    gts: Files
    several: list[set[str]]
    n_measured: int = 0  # images that were measured further
    records: list[ImageRecord] = field(default_factory=list)  # without counts
    counted: list[ImageRecord] = field(default_factory=list)  # with counts, unless boundary
    images: list[_Image] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    odd: dict[tuple[str, str, Fix], list[str]] = field(default_factory=dict)

    @property
    def readings(self) -> Readings:
        """The readings of the files of both sides."""
        return self.metric.readings(self.protocol, self.kind)

    def look_at(self, image_id: str, closely: bool) -> None:
        """Read an image as `evaluate` does, and keep the data that the checks need."""
        paths, protocol, metric = self.preds[image_id], self.protocol, self.metric
        several = self.kind in ("labels", "classes")
        pair = Pair(image_id, tuple(paths if several else paths[:1]), tuple(self.gts[image_id]))
        try:
            (alike,) = registry.by_reading([metric.name], protocol, self.kind)
            prediction, gt = FileItem(pair, self.kind).load(alike, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred, opt, file = cast(Prediction, prediction), metric.options_of(protocol), paths[0].name
        fits, turned = metric.fits(pred, gt, opt), pred.shape == gt.shape[::-1]
        uneven = any(b.shape != gt.shape for b in gt.boundaries)
        size = "resized" if not turned else "transposed"
        codes = {"annotators"} if uneven else set() if fits else {size}
        sizes = "{} for an image of {}".format(*(" x ".join(map(str, a.shape)) for a in (pred, gt)))
        image = _Image(image_id, file, sizes, codes)
        self.images.append(image)
        if fits and not uneven:
            shown = evidence_of(pred, gt, metric, protocol, metric.cuts_at_thresholds)
            record = ImageRecord(image_id, gt.shape, form=pred.form, pred=shown.pred, gt=shown.gt)
            self.records.append(record)
        if metric.name in registry.DEFAULT_METRICS:
            self._measure_boundaries(image, pred, gt, closely)
        elif closely and fits:
            self._measure_by_metric(file, pred, gt)

    def _measure_by_metric(self, file: str, pred: Prediction, gt: GroundTruth) -> None:
        """Keep the metric's counts and symptoms, or the reason why it refuses the image."""
        opt, name = self.metric.options_of(self.protocol), self.metric.name
        try:
            counts = {name: self.metric.count(pred, gt, self.protocol, opt)}
        except DataError as error:
            self.refused.append(str(error.problems[0]))
            return
        self.counted.append(ImageRecord(gt.image_id, gt.shape, counts))
        self.n_measured += 1
        if isinstance(self.metric, Diagnosed):
            for symptom in self.metric.symptoms(pred, gt, self.protocol, opt):
                self.odd.setdefault(symptom, []).append(file)

    def _measure_boundaries(
        self, image: _Image, pred: Prediction, gt: GroundTruth, closely: bool
    ) -> None:
        """Add the problems of a boundary map to `image.codes`; keep its data if `closely`."""
        protocol, file = self.protocol, image.file
        marks = [bool(b.any()) for b in gt.boundaries]
        image.annotators = len(marks)
        look = look_at(pred, gt, protocol)
        soft, truth = look.soft, look.truth
        if not soft.size:
            return
        wrong = {
            "gt-polarity": all(marks) and np.mean([b.mean() for b in gt.boundaries]) > 0.5,
            "zero": not soft.any(),
            "saturated": soft.max() == soft.min() > 0,
            "few-values": pred.kind == "soft" and len(np.unique(pred.soft)) < FEW_VALUES,
        }
        if look.measured:
            small = thumbnail(soft), thumbnail(truth)
            image.way = best_orientation(*small)
            image.thumbnails = small[0].astype(np.float32), small[1].astype(np.float32)
        if look.measured and closely:
            self.n_measured += 1
            image.kept = _Kept(pred, gt, soft, truth)
            wrong["jpeg"] = file.lower().endswith((".jpg", ".jpeg"))
            if pred.kind == "soft":
                thick, apart = thickness(soft), protocol.nms or not protocol.thin
                wrong["jpeg"] |= symptoms.jpeg_ratio(soft) > JPEG
                wrong |= {"thinned": apart and thick < THIN, "raw": not apart and thick > THICK}
                # the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits
                near = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
                if near and pred.soft.dtype.kind == "f" and not protocol.nms:
                    wrong["grid-values"] = symptoms.on_hundredths(pred.soft) > HUNDREDTHS
        image.codes |= {code for code, holds in wrong.items() if holds}


class _Examination:
    """The findings so far, and the images with an error, which are not examined further."""

    def __init__(self, inputs: _Inputs) -> None:
        self.inputs, self.findings, self.faulty = inputs, Findings(), set[str]()

    @property
    def sound(self) -> list[_Image]:
        """The images without an error so far."""
        return [image for image in self.inputs.images if image.image_id not in self.faulty]

    @property
    def kept(self) -> list[tuple[_Image, _Kept]]:
        """The images without an error that were measured further, with their data."""
        return [(image, image.kept) for image in self.sound if image.kept]

    def report_images(self, code: str, images: Sequence[_Image], **details: object) -> None:
        """Report a problem of these images, if there are any; after an error they are not sound."""
        if images:
            details = {"first": images[0], "maps": counted(len(images), "map"), **details}
            self.report(code, [image.file for image in images], n=len(images), **details)
            if CHECKS[code][0] == ERROR:
                self.faulty.update(image.image_id for image in images)

    def report(self, code: str, files: Sequence[str] = (), **details: Any) -> None:
        """Report a problem of files, or of the whole set.

        `code` is a key of CHECKS, whose message is filled in with `details`; `fix` replaces its
        remedy.
        """
        level, text, fix = CHECKS[code]
        details = {
            "of": len(self.inputs.images),
            "n": len(files),
            "measured": len(self.kept),
            **details,
        }
        finding = Finding(code, level, text.format(**details), (*files,), details.get("fix", fix))
        self.findings.append(finding)

    def best_f(
        self, kept: Sequence[_Kept], protocol: Protocol, change: Callable[[Any], Any] | None = None
    ) -> float:
        """Compute the best F of these maps over a few thresholds; `change` converts each map."""
        metric, few = self.inputs.metric, protocol.replace(thresholds=TRIAL)
        counts = []
        for image in kept:
            pred = image.pred
            if change:
                pred = Prediction(pred.image_id, soft=change(pred.boundary_map()))
            counts.append(metric.count(pred, image.gt, few, metric.options_of(few)))
        return float(metric.score_of(metric.stack(counts), few)["ods"]["f"])

    def report_remedy(
        self,
        code: str,
        images: Sequence[_Image],
        protocol: Protocol | None = None,
        change: Callable[[Any], Any] | None = None,
        **details: object,
    ) -> None:
        """Report a problem of these images if its remedy raises their best F by at least GAIN.

        The remedy is a different `protocol`, or a `change` of each map.
        """
        kept = [image.kept for image in images if image.kept]
        if kept:
            before = self.best_f(kept, self.inputs.protocol)
            after = self.best_f(kept, protocol or self.inputs.protocol, change)
            if after >= before + GAIN:
                tried = f"F rises from {before:.3f} to {after:.3f}"
                self.report_images(code, images, tried=tried, **details)


def _check_names(examination: _Examination) -> None:
    """Report files without a partner, and several files for one image."""
    inputs = examination.inputs
    preds, gts = inputs.preds, inputs.gts
    missing, extra = [i for i in gts if i not in preds], [i for i in preds if i not in gts]
    numbers = {"of": len(gts), "common": len(gts) - len(missing)}
    extra_preds = counted(len(extra), "prediction")
    if missing and extra and numbers["common"] < len(gts) / 2:
        for name in extra:  # does every id have the same prefix and suffix?
            before, id_, after = name.partition(missing[0])
            if id_ and {before + i + after for i in missing} <= {*extra}:
                examination.report("names", extra, preds=extra_preds, longer=f"{before}*{after}")
                break
        else:
            examination.report("split", extra, preds=extra_preds, **numbers)
    else:
        for code, ids in (("missing", missing), ("extra", extra)):
            if ids:
                examination.report(code, ids, preds=extra_preds, **numbers)
    sides = ("prediction", preds), ("ground truth", gts)
    for (what, side), several in zip(sides, inputs.several, strict=True):
        alike_names: dict[str, list[str]] = {}
        for image_id in side:
            alike_names.setdefault(image_id.casefold(), []).append(image_id)
        double = [ids for ids in alike_names.values() if len(ids) > 1 or ids[0] in several]
        if files := [str(path) for ids in double for i in ids for path in side[i]]:
            examination.report("doubled", files, what=what)


def _check_files(examination: _Examination) -> None:
    """Report files that cannot be read or that the metric refuses.

    Problems that differ in numbers only are reported as one.
    """
    inputs = examination.inputs
    for equal in alike(inputs.unread):
        text = f"{counted(len(equal), 'file')}: {attrs.evolve(equal[0], file='', fix=())}"
        files = [Path(problem.file).name for problem in equal]
        fix = equal[0].fix or (AS_EXPECTED,)
        examination.report("unreadable", files, words=text, fix=fix)
    for text in dict.fromkeys(inputs.refused):
        examination.report("refused", words=text)
    for (code, text, remedy), files in inputs.odd.items():  # symptoms that the metric itself found
        if 2 * len(files) >= inputs.n_measured:
            message = f"{text} in {counted(len(files), 'image')}"
            examination.findings.append(Finding(code, WARNING, message, tuple(files), (remedy,)))


def _check_values(examination: _Examination) -> None:
    """Report odd sizes, annotations and values of single images, and of the whole set."""
    images, name = examination.inputs.images, examination.inputs.protocol.name

    def coded(*codes: str) -> None:
        for code in codes:
            examination.report_images(
                code, [image for image in examination.sound if code in image.codes]
            )

    coded("annotators", "transposed", "resized")
    if name.rstrip("*") in MANY_ANNOTATORS and images and all(i.annotators == 1 for i in images):
        examination.report("one-annotator", name=name)
    coded("gt-polarity")
    inputs, problems = examination.inputs, tuple[Problem, ...]()
    try:  # the set as a whole
        inputs.readings.verdict(inputs.records)
    except DataError as error:
        problems = error.problems
    for problem in problems:
        fix = problem.fix or (AS_EXPECTED,)
        examination.report("values", words=attrs.evolve(problem, fix=()), fix=fix)
    coded("zero", "saturated", "few-values")


def _check_places(examination: _Examination) -> None:
    """Report maps that are inverted, or fit better when mirrored or for a different image."""
    protocol = examination.inputs.protocol
    kept = examination.kept
    dark = [i for i, k in kept if symptoms.darker_near(k.soft, k.truth)]
    if 2 * len(dark) <= len(kept):  # if they are few, only those on bright ground
        dark = [i for i in dark if i.kept and np.median(i.kept.soft) > 0.5]
    fix = Setting("invert", not protocol.invert)
    upright = protocol.replace(invert=fix.value)
    examination.report_remedy("inverted", dark, upright, fix=(fix,))
    placed = [image for image in examination.sound if image.thumbnails]
    for way in sorted({image.way for image in placed} - {""}):
        examination.report_images(
            "mirrored", [image for image in placed if image.way == way], way=way
        )
    by_id = {image.image_id: image for image in placed}
    thumbnails = [(i.image_id, *i.thumbnails) for i in placed if i.thumbnails]
    if swapped := dict(find_swaps(thumbnails)):
        a, b = next(iter(swapped.items()))
        examination.report_images("exchanged", [by_id[image_id] for image_id in swapped], a=a, b=b)


def _check_lines(examination: _Examination) -> None:
    """Report lines that are too thick or too thin, odd values, and displacements."""
    protocol, kept = examination.inputs.protocol, examination.kept

    def coded(code: str) -> list[_Image]:
        return [image for image, _ in kept if code in image.codes]

    examination.report_remedy("raw", coded("raw"), protocol.replace(nms=True))
    for code in ("thinned", "grid-values", "jpeg"):
        examination.report_images(code, coded(code))
    maps = [(k.soft, k.truth) for _, k in kept]
    moved = symptoms.displacement(maps, CORRELATED) if maps else None
    if not moved or (round(moved.rows), round(moved.columns)) == (0, 0):
        return
    back = -round(moved.rows), -round(moved.columns)
    quarters = symptoms.quarters(maps, CORRELATED)
    rows, columns = np.ptp(quarters, axis=0) if len(quarters) == 4 else (0.0, 0.0)
    images = [image for image, _ in kept]
    if max(rows, columns) > SCALED:
        first, last = quarters[0], quarters[-1]
        ends = {"dy": first.rows, "dx": first.columns, "dy2": last.rows, "dx2": last.columns}
        examination.report_images("scaled", images, **ends)
    else:
        examination.report_remedy(
            "shift",
            images,
            change=lambda soft: np.roll(soft, back, (0, 1)),
            dy=moved.rows,
            dx=moved.columns,
        )
