"""The checks of `doctor`, which turn what was read and measured into findings.

A remedy that can be applied to the maps (inversion, NMS, shifting back) is tried on the measured
images, and reported only if it raises their F by GAIN. Correct maps of three detectors and of UCMs
are displaced by 0.00 to 0.39 pixels; shifting back maps that were moved by one pixel diagonally
raises F by 0.003 to 0.011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.diagnosis import measured_maps
from bsdsbench.errors import DataError, Fix, InputWarning, Problem, Setting, group_similar_problems
from bsdsbench.images import Prediction
from bsdsbench.loaders.pairing import Grouping, Pair
from bsdsbench.loaders.reading import Kind, Readings
from bsdsbench.loaders.sets.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import Symptom
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs import fit, sanity
from bsdsbench.runs.sources import FileItem
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.text import grouped, join_names, quantity

ERROR, WARNING = "error", "warning"
GAIN = 0.003  # a remedy is reported if it raises F by at least this much
FEW_VALUES = 10  # a map with fewer distinct values gives a curve with few points
SCALED = 1.5  # pixels; maps are "scaled" if the displacements of two quarters differ by more
# Pixels: n sound maps may seem displaced by FARTHEST_SOUND and, by chance, by 0.8 / sqrt(n) more,
# or by as much as fewer maps if they have fewer pixels than LARGE_ENOUGH
FARTHEST_SOUND, DISPLACEMENT_BY_CHANCE, LARGE_ENOUGH = 0.65, 0.8, 128 * 128
N_THRESHOLDS_OF_TRIAL = 5  # at which a remedy is tried, for speed
REWRITE = "write the files again as expected"  # the remedy of a file that cannot be used
# Presets for data sets with several annotators per image, all of whom are counted
MANY_ANNOTATORS = ("bsds500", "bsds300", "mdbd-edges", "mdbd-boundaries")


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem with its kind, severity, files and remedy.

    Parameters
    ----------
    code, message : str
        The short name of the kind of problem, such as "inverted", and a one-line description.
    level : str
        "error" (a score would be wrong or impossible) or "warning" (it may be intended).
    files : tuple of str
        The affected files.
    fix : tuple of Setting or str
        Alternative remedies: options to set, or steps in words.

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
        """Return the remedies in words. `write` formats an option; default: as Python keyword."""
        return Problem(fix=self.fix).fixes(write)

    def line(self, limit: int = 3, write: Callable[[Setting], str] | None = None) -> str:
        """Return one line, "LEVEL: CODE: MESSAGE [FILES] -> REMEDY", with at most `limit` files."""
        where = f" [{join_names(list(self.files), limit)}]" if self.files else ""
        fix = f" -> {self.fixes(write)}" if self.fix else ""
        return f"{self.level}: {self.code}: {self.message}{where}{fix}"


class Findings(list[Finding]):
    """The findings of `doctor`, errors first."""

    n_images: int = 0  # number of images read
    n_measured: int = 0  # number of images that were also measured, which is slower
    reading: str = ""  # how predictions and ground truth are interpreted, in one line
    note: str = ""  # a line if the curve starts at a high recall, below which AP counts 0, or ""

    def summary(self) -> str:
        """Return one line: the numbers of errors and warnings, and of images read and measured."""
        errors = sum(f.level == "error" for f in self)
        counts = f"{quantity(errors, 'error')}, {quantity(len(self) - errors, 'warning')}"
        return (
            f"{counts if self else 'nothing found'}; {quantity(self.n_images, 'image')} read, "
            f"{self.n_measured} of them measured"
        )


# code -> (level, message, remedies). Metrics other than boundary define their own symptoms
# (`Diagnosed.symptoms`).
# fmt: off
CHECKS = {
    "names": (ERROR, "{preds} are named {longer!r}, where * is the id",
        ("rename the files to ID.png",)),
    "split": (ERROR, "only {common} of {of} images have a prediction, and {preds} no ground "
        "truth: another split?",
        ("give the ground truth of the same split",)),
    "missing": (ERROR, "{n} of {of} images have no prediction",
        ("predict them", Setting("split_file", ..., "with the ids"),
         Setting("missing", "zero"), Setting("missing", "skip"))),
    "extra": (ERROR, "{preds} without ground truth",
        ("check the split", Setting("split_file", ..., "with the ids that count"))),
    "unknown": (ERROR, "{n} of {of} ids in the split file have no ground truth",
        ("correct the split file",)),
    "doubled": (ERROR, "more than one {what} file for an image",
        ("leave one file for each image",)),
    "unreadable": (ERROR, "{words}", ()),
    "transposed": (ERROR, "{n} of {of} predictions are transposed: rows and columns are exchanged",
        ("transpose them before saving",)),
    "resized": (ERROR, "{n} of {of} predictions have another size: {first.sizes}",
        ("predict at the size of the image, or resize the maps; no option does that",)),
    "one-annotator": (WARNING, "one annotator per image, but {name} has several, and all count",
        ("give the original annotations", Setting("protocol", ..., "of your data set"))),
    "gt-polarity": (ERROR, "most ground-truth pixels are boundary (dark lines on white?)",
        (Setting("gt_invert"),)),
    "values": (ERROR, "{words}", ()),
    "zero": (ERROR, "{maps} with zeros only", ("check how the maps are saved",)),
    "saturated": (ERROR, "{maps} with one value everywhere", ("check how the maps are saved",)),
    "few-values": (WARNING,
        f"{{maps}} with fewer than {FEW_VALUES} values: the curve has few points",
        ("save soft maps",)),
    "inverted": (ERROR,
        "{n} of {measured} maps are darker on the ground truth than off it; inverted, {tried}",
        ()),
    "mirrored": (ERROR, "{maps} fit the ground truth better {way}",
        ("flip or rotate them back before saving",)),
    "exchanged": (ERROR,
        "{maps} fit the ground truth of another image better, such as map {a} that of image {b}",
        ("check the order of names and maps when saving",)),
    "raw": (WARNING, "{n} of {measured} maps have broad edges; with NMS, {tried}",
        (Setting("nms"),)),
    "thinned": (WARNING,
        "{n} of {measured} maps have thin lines, but this protocol expects raw maps",
        ("give the raw maps", Setting("nms", False, "if its NMS was applied already"))),
    "grid-values": (WARNING, "{n} of {measured} maps are floats with values of exactly k/100; the "
        "thresholds are MATLAB's linspace, many of which differ from k/100 in the last "
        "bit: rounding decides whether such a value is on",
        ("save the maps unrounded, or as 8 or 16 bit PNG",)),
    "jpeg": (WARNING, "{n} of {measured} maps have JPEG artefacts, which are false edges",
        ("save as PNG or .npy",)),
    "shift": (WARNING,
        "maps are shifted by about {dy:+.1f} rows and {dx:+.1f} columns; moved back, {tried}",
        ("move them back, or undo the network's padding or crop; no option does that",)),
    "scaled": (WARNING,
        "maps are displaced unevenly: by {dy:+.1f} rows and {dx:+.1f} columns in the upper left "
        "quarter, {dy2:+.1f} and {dx2:+.1f} in the lower right",
        ("predict at the size of the image, without padding or crop; no option does that",)),
    "refused": (ERROR, "{words}", ("give what is expected, or set another option of the metric",)),
}
# fmt: on


@dataclass(slots=True, eq=False)
class ExaminedImage:
    """What the doctor knows about one image."""

    image_id: str
    file: str  # the name of its first prediction file
    sizes: str  # the sizes of prediction and image, in words
    codes: set[str]  # the problems of this image, keys of CHECKS
    annotators: int = 0  # the number of annotators of boundaries
    # The flip or rotation with which the map fits the ground truth far better, in words, or ""
    orientation: str = ""
    thumbnails: fit.Thumbnails | None = None  # float32; None if map or ground truth is constant
    maps: fit.CheckedImage | None = None  # None unless the slow measurements were made
    few_values: Sequence[float] = ()  # those of a map with the problem "few-values"


@dataclass(slots=True)
class Examination:
    """The files of predictions and ground truth, what was read and measured, and the findings."""

    metric: Metric
    protocol: Protocol
    kind: str  # kind of predictions, such as "soft"
    grouping: Grouping  # the files of each image
    # Images whose sizes fit, with hints on how to interpret their values; they have no counts
    records: list[ImageRecord] = field(default_factory=list)
    # Images with slow measurements, with their counts
    measured: list[ImageRecord] = field(default_factory=list)
    images: list[ExaminedImage] = field(default_factory=list)  # images that could be read
    # Those without an error so far. Only problems of these are reported
    sound: list[ExaminedImage] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)  # errors of images that could not be read
    refused: list[str] = field(default_factory=list)  # reasons why the metric cannot count an image
    symptoms: dict[Symptom, list[str]] = field(default_factory=dict)  # -> files that show it
    findings: Findings = field(default_factory=Findings)

    @property
    def readings(self) -> Readings:
        """The `Readings`: how the metric interprets the prediction and ground-truth files."""
        return self.metric.readings(self.protocol, self.kind)

    def read_image(self, image_id: str, measure: bool) -> None:
        """Read the files of an image as `evaluate` does, and look for problems of this image.

        The image is added to `images` and to `sound`, from which checks remove it once they report
        an error of it, and to `records` if the sizes of prediction and ground truth fit. If it
        cannot be read, only its error is added to `unread`.

        If `measure` is True and the sizes fit, the image is also counted: it is added to
        `measured`, and its file to the `symptoms` that it shows, or the metric's reason why it
        cannot be counted to `refused`. For a boundary metric this includes slow measurements, and
        an image whose map or ground truth is constant is not counted.
        """
        protocol, metric = self.protocol, self.metric
        paths = tuple(self.grouping.pred.files[image_id])
        gt_paths = tuple(self.grouping.gt.files[image_id])
        # Only label maps may have several files per image; a second one is reported as "doubled"
        if self.kind not in ("labels", "classes"):
            paths = paths[:1]
        item = FileItem(image_id, Pair(image_id, paths, gt_paths), self.kind)
        try:
            # Metrics are grouped by how they read files; of a single metric there is one group
            (group,) = registry.group_by_reading([metric.name], protocol, self.kind)
            prediction, gt = item.load(group)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred = cast(Prediction, prediction)  # None only if annotators are scored
        checked = fit.CheckedImage(pred, gt, protocol)
        pred_size, gt_size = " x ".join(map(str, pred.shape)), " x ".join(map(str, gt.shape))
        sizes = f"{pred_size} for an image of {gt_size}"
        image = ExaminedImage(image_id, paths[0].name, sizes, codes=set())
        self.images.append(image)
        self.sound.append(image)
        # False if the sizes differ and the metric does not resize
        fits = metric.fits(pred, gt, metric.options_of(protocol))
        if fits:
            # Flags of the values, such as FAINT or DARK, by which `check_values` judges the set
            sides = sanity.evidence_of(pred, gt, metric, protocol, metric.cuts_at_thresholds)
            record = ImageRecord(image_id, gt.shape, form=pred.form, pred=sides.pred, gt=sides.gt)
            self.records.append(record)
        else:
            image.codes.add("transposed" if pred.shape == gt.shape[::-1] else "resized")
        if metric.name in registry.DEFAULT_METRICS:  # boundary
            measure = _measure_boundaries(image, checked, measure) and measure
        if not measure or not fits:
            return
        try:
            counts = metric.count_image(pred, gt, protocol)
        except DataError as error:
            self.refused.append(str(error.problems[0]))
            return
        self.measured.append(ImageRecord(gt.image_id, gt.shape, {metric.name: counts}))
        for symptom in sanity.find_symptoms(checked, [metric]):
            self.symptoms.setdefault(symptom, []).append(image.file)

    def report_images(
        self, code: str, images: Sequence[ExaminedImage] | None = None, **details: object
    ) -> None:
        """Report a problem of some sound images, those without an error so far.

        If the problem is an error and not a warning, the images are removed from `sound`, so that
        later checks ignore them.

        code : the kind of problem, a key of CHECKS
        images : the images that have the problem, by default those with `code` among their codes.
            If there are none, nothing is reported
        details : values for the placeholders of the message, in addition to {first} (the first
            image), {maps} (such as "2 maps"), {measured} (the number of sound images that were
            measured), and those of `report`
        """
        images = self.sound_with(code) if images is None else images
        if not images:
            return
        measured = sum(image.maps is not None for image in self.sound)  # had slow measurements
        maps = quantity(len(images), "map")
        details = {"first": images[0], "maps": maps, "measured": measured, **details}
        self.report(code, [image.file for image in images], **details)
        if CHECKS[code][0] == ERROR:  # its level
            unsound = set(images)
            self.sound = [image for image in self.sound if image not in unsound]

    def sound_with(self, code: str) -> list[ExaminedImage]:
        """Return the sound images that have the problem `code`."""
        return [image for image in self.sound if code in image.codes]

    def report(self, code: str, files: Sequence[str] = (), **details: Any) -> None:
        """Add a finding about some files, or about the whole set if `files` is empty.

        code : the kind of problem, a key of CHECKS, which defines its level, message and remedies
        details : values for the placeholders of the message, in addition to {n} (number of files)
            and {of} (number of images). The item `fix`, a tuple, replaces the remedies
        """
        level, template, fix = CHECKS[code]
        message = template.format(**{"of": len(self.images), "n": len(files), **details})
        self.findings.append(Finding(code, level, message, (*files,), details.get("fix", fix)))

    def report_remedy(
        self,
        code: str,
        images: Sequence[ExaminedImage],
        protocol: Protocol | None = None,
        change: Callable[[Floats], Floats] | None = None,
        **details: object,
    ) -> None:
        """Report a problem of `images` only if its remedy raises their ODS F by GAIN or more.

        The remedy is tried on those of the images that were measured, at N_THRESHOLDS_OF_TRIAL
        thresholds only, for speed. If there are none, nothing is reported.

        code : the kind of problem, a key of CHECKS
        protocol, change : the remedy: another protocol, or a function that changes each soft map,
            float64 (H, W), before it is counted, such as one that shifts it
        details : values for further placeholders of the message. {tried} is set here, such as
            "F rises from 0.512 to 0.633"
        """
        checked_images = [image.maps for image in images if image.maps]
        if not checked_images:
            return
        f_values = []  # ODS F without and with the remedy
        for trial, changes_maps in ((self.protocol, False), (protocol or self.protocol, True)):
            trial = trial.replace(thresholds=N_THRESHOLDS_OF_TRIAL)
            options = self.metric.options_of(trial)
            counts = []
            for checked in checked_images:
                pred = checked.pred
                if change and changes_maps:
                    pred = Prediction(pred.image_id, soft=change(pred.boundary_map()))
                counts.append(self.metric.count(pred, checked.gt, trial, options))
            score = self.metric.score_of(self.metric.stack(counts), trial)
            f_values.append(float(score["ods"]["f"]))
        before, after = f_values
        if after >= before + GAIN:
            tried = f"F rises from {before:.3f} to {after:.3f}"
            self.report_images(code, images, tried=tried, **details)


def _measure_boundaries(image: ExaminedImage, checked: fit.CheckedImage, measure: bool) -> bool:
    """Find the problems of a boundary map, and add their codes, such as "zero", to `image`.

    Returns True if the map and the ground truth can be compared: they have the same size, and
    neither is constant. Only then is the map's orientation determined and, if `measure` is True,
    are the slow measurements made. Otherwise, only the values of the map and of the ground truth
    are checked, and nothing at all if the prediction has no soft map.
    """
    image.annotators = len(checked.gt.boundaries)
    if not checked.soft.size:
        return False
    if image.annotators and checked.is_mostly_boundary:
        image.codes.add("gt-polarity")
    if checked.soft.max() == checked.soft.min():
        if checked.soft.any():
            image.codes.add("saturated")
        elif checked.truth.any():  # otherwise it is right
            image.codes.add("zero")
    elif checked.pred.kind == "soft":
        values = np.unique(checked.pred.soft)
        if values.size < FEW_VALUES:
            image.codes.add("few-values")
            image.few_values = values.tolist()
    if not checked.is_comparable:  # other sizes, or one of the two is constant
        return False
    # To find flipped maps (orientation "upside down", for example) and, later, exchanged maps
    small = fit.Thumbnails.of(image.image_id, checked.soft, checked.truth)
    image.orientation = small.best_orientation()
    pred, truth = small.pred.astype(np.float32), small.truth.astype(np.float32)
    image.thumbnails = fit.Thumbnails(image.image_id, pred, truth)
    if measure:
        image.maps = checked
        image.codes |= measured_maps.find_slow_problems(image.file, checked)
    return True


def check_image_names(examination: Examination) -> None:
    """Report images that lack a file, and those that seem to have more than one.

    Ids with a prediction only are "extra", those with ground truth only "missing", and those in a
    split that have no ground truth "unknown". If the first two occur and fewer than half of the
    ground-truth ids have a prediction, a single problem is reported instead: "names" if the extra
    names are the missing ids plus a common prefix or suffix, as in 2018_edge; otherwise "split",
    because the folders probably hold different splits of the data set.

    "doubled" are ids that differ only in case, such as "Dog" and "dog", of which the other side has
    not all, and ids for which it is unclear which files belong to the image
    (`FilesOfSide.ambiguous`).
    """
    grouping = examination.grouping
    preds, gts = grouping.pred.files, grouping.gt.files  # by image id
    wanted = grouping.wanted or set()  # the ids in the split file, if there is one
    if unknown := sorted(wanted - gts.keys()):
        examination.report("unknown", unknown, of=len(wanted))
    missing = [image_id for image_id in gts if image_id not in preds]
    extra = [image_id for image_id in preds if image_id not in gts]
    n_common = len(gts) - len(missing)
    numbers = {"of": len(gts), "common": n_common, "preds": quantity(len(extra), "prediction")}
    if missing and extra and n_common < len(gts) / 2:
        for name in extra:
            prefix, first_id, suffix = name.partition(missing[0])  # no `first_id` if not in `name`
            if first_id and {prefix + image_id + suffix for image_id in missing} <= set(extra):
                examination.report("names", extra, longer=f"{prefix}*{suffix}", **numbers)
                break
        else:
            examination.report("split", extra, **numbers)
    else:
        for code, ids in (("missing", missing), ("extra", extra)):
            if ids:
                examination.report(code, ids, **numbers)
    for what, side in (("prediction", grouping.pred), ("ground truth", grouping.gt)):
        doubled_files: list[str] = []
        ids_by_lower_case = grouped((image_id.casefold(), image_id) for image_id in side.files)
        for ids in ids_by_lower_case.values():
            is_doubled = len(ids) > 1 and not preds.keys() & gts.keys() >= {*ids}
            if is_doubled or ids[0] in side.ambiguous:
                doubled_files += [str(file) for image_id in ids for file in side.files[image_id]]
        if doubled_files:
            examination.report("doubled", doubled_files, what=what)


def check_files(examination: Examination) -> None:
    """Report files that cannot be read, images that the metric cannot count, and symptoms.

    - "unreadable": files whose error messages differ only in file name and numbers share a finding
    - "refused": one finding for each distinct message of the metric
    - symptoms: signs of a wrong option, with a code of their own such as "turned". One is reported
      if at least half of the measured images show it
    """
    for similar in group_similar_problems(examination.unread):
        files = [Path(problem.file).name for problem in similar]
        first = similar[0]
        fault = attrs.evolve(first, file="", fix=())  # the message without file and remedy
        # If the problem has no remedy of its own, it is to write the files again (REWRITE)
        words = f"{quantity(len(files), 'file')}: {fault}"
        examination.report("unreadable", files, words=words, fix=first.fix or (REWRITE,))
    for reason in dict.fromkeys(examination.refused):  # distinct ones, each with its file in it
        examination.report("refused", words=reason)
    for (code, text, remedy), files in examination.symptoms.items():
        is_chance = sanity.is_chance(code, len(files))
        if 2 * len(files) >= len(examination.measured) and not is_chance:
            message = f"{text} in {quantity(len(files), 'image')}"
            fixes = remedy if isinstance(remedy, tuple) else (remedy,)
            examination.findings.append(Finding(code, WARNING, message, tuple(files), fixes))


def check_values(examination: Examination) -> None:
    """Report problems with the sizes of maps, the annotations, and the values of maps.

    Most problems concern single images. They were found when the images were read, and are listed
    in the `codes` of an image. Once an error of an image is reported, its other problems are not.
    So sizes come first, then annotations, and values last.

    Two problems concern the whole set:

    - "one-annotator": every image has a single annotator, although the data set, one of
      MANY_ANNOTATORS, has several. Only of its images, or in .mat files
    - "values": a problem that `Readings.check_values` found, for example because the values do not
      have the same meaning in all files. It is a `Problem` (an error) or a warning
    """
    for code in ("transposed", "resized"):
        examination.report_images(code)
    name = examination.protocol.name  # ends with "*" if a field of the preset was changed
    numbers_of_annotators = {image.annotators for image in examination.images}
    if name.rstrip("*") in MANY_ANNOTATORS and numbers_of_annotators == {1}:
        of_known_sets = set[str]().union(*shipped_sets().values())  # image ids
        for image_id, paths in examination.grouping.gt.files.items():
            # Pictures of other images are hardly of this data set
            if image_id in of_known_sets or paths[0].suffix == ".mat":
                examination.report("one-annotator", name=name)
                break
    examination.report_images("gt-polarity")
    for fault in examination.readings.check_values(examination.records):
        if isinstance(fault, Problem):
            fix = fault.fix or (REWRITE,)
            examination.report("values", words=attrs.evolve(fault, fix=()), fix=fix)
        elif examination.readings.pred.kind is Kind.MASK and type(fault) is InputWarning:
            # Warnings of soft maps are left to later checks, which measure more. Inverted masks,
            # whose warning is of a derived class, are reported as a symptom of an image instead.
            message = str(attrs.evolve(fault.problem, fix=()))
            finding = Finding("values", WARNING, message, fix=fault.problem.fix)
            examination.findings.append(finding)
    for code in ("zero", "saturated"):
        examination.report_images(code)
    # The curve has many points if a few maps have few values, or each map has others
    few = examination.sound_with("few-values")
    values = set[float]().union(*(image.few_values for image in few))
    if 2 * len(few) >= len(examination.sound) and len(values) < FEW_VALUES:
        examination.report_images("few-values")


def check_fit(examination: Examination) -> None:
    """Report sound boundary maps that do not lie on the ground truth as they should.

    First come errors: maps that are "inverted" (if inversion raises F), "mirrored" (a finding for
    each flip or rotation), or "exchanged" with that of another image, probably because two maps
    were saved under each other's names. Reporting removes their images from `examination.sound`:
    they are not tested for what comes next, warnings about the lines of the maps.
    """
    dark, protocol = examination.sound_with("inverted"), examination.protocol
    invert = Setting("invert", not protocol.invert)
    inverting = protocol.replace(invert=invert.value)
    examination.report_remedy("inverted", dark, inverting, fix=(invert,))
    turned = grouped((image.orientation, image) for image in examination.sound)
    for orientation in sorted(turned.keys() - {""}):  # "": as it should be
        examination.report_images("mirrored", turned[orientation], way=orientation)
    sound = examination.sound  # without the images of the problems reported so far
    # Id of an image -> id of the image whose ground truth its map fits better
    other_of_image = dict(fit.find_swaps(filter(None, (image.thumbnails for image in sound))))
    a, b = next(iter(other_of_image.items()), ("", ""))  # the example in the message
    exchanged = [image for image in sound if image.image_id in other_of_image]
    examination.report_images("exchanged", exchanged, a=a, b=b)
    examination.report_remedy("raw", examination.sound_with("raw"), protocol.replace(nms=True))
    unthinned = CHECKS["thinned"][2][: 1 + protocol.nms]  # without NMS, it cannot be left out
    n_measured = sum(image.maps is not None for image in examination.sound)
    for code, fix in (("thinned", unthinned), ("grid-values", ()), ("jpeg", ())):
        # All maps of a set are made alike; a few may be sparse, or show that their photo is a JPEG
        if 2 * len(examination.sound_with(code)) >= n_measured:
            examination.report_images(code, fix=fix or CHECKS[code][2])
    _check_displacement(examination)


def _check_displacement(examination: Examination) -> None:
    """Report a displacement from the ground truth that all measured maps have in common.

    It is the shift of greatest correlation, averaged over the images, in (rows, columns), minus
    0.5. From -1 to 0.65 (FARTHEST_SOUND) it is ignored, as maps lie on the truth's lines or half a
    pixel below them, gradients on BSDS500 a whole one; of few or small maps, also more. If the
    displacements of the four quarters of the maps differ by more than 1.5 pixels (SCALED), the
    problem is "scaled". Otherwise it is "shift", which `report_remedy` reports only if counting
    with maps that are moved back raises F.
    """
    images = [image for image in examination.sound if image.maps]
    maps = [(image.maps.soft, image.maps.truth) for image in images if image.maps]
    moved = measured_maps.find_displacement(maps) if maps else None
    n_large = sum(min(1, soft.size / LARGE_ENOUGH) for soft, _ in maps)
    chance = DISPLACEMENT_BY_CHANCE / np.sqrt(n_large) if maps else 0
    if not moved or (min(moved) >= -1 - chance and max(moved) <= FARTHEST_SOUND + chance):
        return
    steps = [0 if -1 <= d <= 0.5 else -round(d) for d in moved]
    # Of the upper left, upper right, lower left and lower right quarters. One that does not fit the
    # ground truth is missing; the comparison needs all four
    quarters = measured_maps.find_quarter_displacements(maps)
    if len(quarters) == 4 and np.ptp(quarters, axis=0).max() > SCALED + chance:
        upper_left, lower_right = quarters[0], quarters[-1]
        corners = {"dy": upper_left.rows, "dx": upper_left.columns}
        corners |= {"dy2": lower_right.rows, "dx2": lower_right.columns}
        examination.report_images("scaled", images, **corners)
        return
    move_back = partial(np.roll, shift=steps, axis=(0, 1))
    examination.report_remedy("shift", images, change=move_back, dy=moved.rows, dx=moved.columns)
