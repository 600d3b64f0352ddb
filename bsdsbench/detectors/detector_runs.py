"""Call a detector on every picture, keep its maps, time it, evaluate it.

The detector is any Python function from an (H, W, 3) uint8 picture to a soft map or to labels. Its
maps are written into OUT/maps, and run.json there says whose they are. A folder that holds maps is
refused, unless the user says that they are kept (`resume`) or made again (`fresh`).
"""

from __future__ import annotations

import contextlib
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import attrs
import numpy as np

from bsdsbench import __version__
from bsdsbench.detectors.imported_functions import (
    Detector,
    file_of,
    fresh_modules,
    load_function,
    reason_of,
    undisturbed,
)
from bsdsbench.detectors.map_files import MapsRecord, encoded, maps_in, open_maps
from bsdsbench.errors import DataError, Problem, Setting
from bsdsbench.io import locked, write_atomic
from bsdsbench.loaders.formats.photos import find_photos, read_photo
from bsdsbench.loaders.pairing import ground_truths, read_split
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import score_tables
from bsdsbench.runs.engine import available_cores, run_source
from bsdsbench.runs.keywords import DetectorOptions, Plan, StrPath, planned
from bsdsbench.runs.sources import folder_header, folders
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table
from bsdsbench.text import counted, listed, show, visible

SAVE_SECONDS = 1.0  # between two writings of run.json


@dataclass(frozen=True, slots=True, repr=False)
class DetectorRun(TabularResult):
    """One run of a detector: its map folder, its times, its failures and, if evaluated, its scores.

    Parameters
    ----------
    name : str
        The detector's name in tables.
    maps : Path
        Folder of the maps, one file per picture.
    kind : str
        "soft", or "labels" for label maps.
    milliseconds : dict of str to float
        Time of each call by image id; the warm-up call is not among them.
    machine : str
        Processor, cores and Python that the times belong to.
    failed : dict of str to str
        Pictures the detector failed on, with the reason.
    evaluation : Evaluation or None
        The scores, where ground truth was given.
    kept : int
        How many maps are of an earlier call.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_images
    >>> sobel = bb.run("sobel", sample_images(), out=tempfile.mkdtemp())
    >>> sobel.kind, len(sobel.milliseconds), sobel.failed
    ('soft', 16, {})
    """

    name: str
    maps: Path
    kind: str
    milliseconds: dict[str, float]
    machine: str
    failed: dict[str, str]
    evaluation: Evaluation | None = None
    kept: int = 0

    @property
    def ms_per_image(self) -> float:
        """Median milliseconds per picture; NaN if no call succeeded."""
        return float(np.median(list(self.milliseconds.values()) or [np.nan]))

    def __repr__(self) -> str:
        """One line: name, pictures, time, the main scores."""
        cost = f"{len(self.milliseconds)} pictures, {self.ms_per_image:.1f} ms per image"
        return f"<DetectorRun {self.name!r}, {cost}: {self.evaluation!r}>"

    def tables(self) -> list[Table]:
        """Return the tables of scores, if there are scores, with a column of times."""
        return score_tables([self.evaluation]) if self.evaluation else []

    def to_mapping(self) -> dict[str, object]:
        """Return plain values: name, times, failures and, if evaluated, the scores."""
        return {
            "name": self.name,
            "maps": str(self.maps),
            "kind": self.kind,
            "ms_per_image": self.ms_per_image if self.milliseconds else None,
            "machine": self.machine,
            "n_images": len(self.milliseconds),
            "failed": self.failed,
            "kept": self.kept,
            "scores": self.evaluation.scores() if self.evaluation else None,
        }


def run(
    function: Detector | str,
    images: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    *,
    gt: StrPath | None = None,
    **options: Unpack[DetectorOptions],
) -> DetectorRun:
    """Call a detector on every picture of a folder, time it, and evaluate its maps.

    It is called on one picture at a time, in this process, and may print and change the working
    folder: neither does harm. Its maps are in OUT/maps, floats as 16-bit PNG, rounded to 1/65535,
    and OUT/maps/run.json says whose they are.

    Parameters
    ----------
    function : callable or str
        From an (H, W, 3) uint8 picture to a soft map (H, W) of bool, uint8, uint16 or floats in
        [0, 1], to a label map (H, W) of any other integers, or to a list of label maps, coarse to
        fine. "MODULE:FUNCTION" names one to import, the current folder is searched first; a name
        alone is one of `bsdsbench.detectors.baselines`, such as "canny".
    images : path
        Folder of pictures.
    protocol, metrics
        As for `evaluate`.
    gt : path, optional
        Ground-truth folder; without it there are no scores.
    **options : DetectorOptions
        Keywords of the run, see `runs.keywords.RunKeywords`; `on_error` is "skip" by default.

    Returns
    -------
    DetectorRun
        Times and scores; the median leaves out a first call that only warms up.

    Raises
    ------
    DataError
        If the function cannot be imported, there are no pictures, the function failed on all, or
        OUT holds maps and neither `resume` nor `fresh` is given.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> def dark(image):
    ...     return image.mean(axis=2) < 60
    >>> threshold = bb.run(dark, sample_images(), gt=sample_ground_truth(), out=tempfile.mkdtemp())
    >>> len(threshold.milliseconds), round(threshold.evaluation.boundary_score().ods.f, 2)
    (16, 0.28)
    """
    plan = planned("run", DetectorOptions, options, protocol, metrics, on_error="skip")
    if plan.out is None:
        raise DataError("out: None, expected a folder for the maps")
    if plan.fresh and plan.resume:
        raise DataError("fresh, resume: expected one of them")
    plan = attrs.evolve(plan, out=plan.out.resolve(), missing="skip")
    with contextlib.ExitStack() as modules:
        if isinstance(function, str) and ":" in function:
            modules.enter_context(fresh_modules(function.partition(":")[0]))
        detector = load_function(function) if isinstance(function, str) else function
        return _run(detector, function, images, gt, plan)


def _run(
    detector: Detector, function: Detector | str, images: StrPath, gt: StrPath | None, plan: Plan
) -> DetectorRun:
    """Call `detector`, which `function` is or names, with checked options; see `run`."""
    wanted = None if plan.split_file is None else read_split(plan.split_file)
    photos = {i: path.resolve() for i, path in find_photos(images, wanted).items()}
    if lost := [image_id for image_id in wanted or () if image_id not in photos]:
        raise DataError(f"{show(images)}: no picture for: {listed(lost)}")
    if not photos:
        raise DataError(f"{show(images)}: no pictures, expected at least one")
    ids = sorted(photos)
    share = ids[plan.shard[0] - 1 :: plan.shard[1]]
    if gt is not None:
        gt = Path(gt).resolve()
        plan.refuse_out_in(gt=gt)
        ground_truths(gt, ids)  # a missing one is refused before the detector is called
    if plan.out is None:
        raise DataError("out: None, expected a folder for the maps")
    record = _record_of(detector, function, plan)
    with locked(plan.out):
        maps = plan.out / "maps"
        kept = open_maps(maps, record, resume=plan.resume, fresh=plan.fresh)
        if plan.multi_scale:
            detector = plan.multi_scale.of(detector)
        wanting = {image_id: photos[image_id] for image_id in share if image_id not in kept}
        failed = _detect(detector, wanting, maps, record, plan)
        if failed and (plan.on_error == "fail" or len(failed) == len(share)):
            lines = [f"{image_id}: {reason}" for image_id, reason in failed.items()]
            raise DataError("\n".join(lines), lines)
        times = {i: record.milliseconds[i] for i in share if i in record.milliseconds}
        kind, taken_over = record.kind or "soft", len(kept.intersection(share))
        detected = DetectorRun(record.name, maps, kind, times, machine(), failed, kept=taken_over)
        if gt is None:
            return detected
        plan = attrs.evolve(plan, name=record.name, pred_kind=kind, split_file=None)
        whole = folders(maps, gt, attrs.evolve(plan, missing="zero"), ids)
        items = [item for item in whole if item.image_id in share and item.pair.pred_paths]
        speed = {
            "ms_per_image": detected.ms_per_image,
            "machine": detected.machine,
            **record.detector(),
            "taken_over": taken_over,
        }
        shard = None if plan.shard == (1, 1) else f"{plan.shard[0]}/{plan.shard[1]}"
        header = folder_header(whole, plan, pred=maps, gt=gt)
        header = header.with_provenance(detector=ReadOnlyDict(speed), shard=shard)
        header = attrs.evolve(header, failed=failed)
        scored = run_source(items, attrs.evolve(plan, shard=(1, 1)), header)
        return replace(detected, evaluation=scored)


def _record_of(detector: Detector, function: Detector | str, plan: Plan) -> MapsRecord:
    """Return the record of a detector, which `function` is or names, before its first map."""
    named: Any = detector if hasattr(detector, "__qualname__") else type(detector)
    path = function if isinstance(function, str) else f"{named.__module__}:{named.__qualname__}"
    return MapsRecord(
        function=path,
        name=plan.name or (named.__name__ if ":" in path else path),
        tag=plan.tag,
        file=file_of(detector) if path == function and ":" in path else None,
        versions={"bsdsbench": __version__, "python": platform.python_version()},
        scales=str(plan.multi_scale) if plan.multi_scale else None,
    )


def _detect(
    detector: Detector, photos: dict[str, Path], maps: Path, record: MapsRecord, plan: Plan
) -> dict[str, str]:
    """Write the map of every photo, note it in `record`, and return failures by id."""
    failed = {}
    warm, saved = False, -SAVE_SECONDS
    try:
        for done, (image_id, path) in enumerate(photos.items(), 1):
            try:
                picture = read_photo(path)
                with undisturbed():
                    if not warm:  # imports and compilers are not the detector's speed
                        detector(picture.copy())
                    warm = True
                    given = picture.copy()  # a function may write into its argument
                    started = time.perf_counter()
                    answer = detector(given)
                    spent = time.perf_counter() - started
                file = encoded(answer, picture.shape[:2])
            except (Exception, SystemExit) as error:  # the user's function may raise anything
                failed[image_id] = reason_of(error)
            else:
                record.kind = record.kind or file.kind
                if file.kind != record.kind:
                    raise DataError("the function returned soft maps and labels, expected one")
                if time.monotonic() - saved > SAVE_SECONDS:  # before the first map, too
                    record.save(maps)
                    saved = time.monotonic()
                write_atomic(maps / f"{image_id}{file.suffix}", file.content, durable=False)
                record.milliseconds[image_id] = round(1000 * spent, 3)
            if plan.progress:
                plan.progress(done, len(photos), image_id)
    except KeyboardInterrupt:
        fix = Setting("resume", True, "goes on with them")
        kept = f"{len(maps_in(maps))} maps are kept in {show(maps)}"
        raise KeyboardInterrupt(Problem(has=kept, fix=(fix,))) from None
    finally:
        record.save(maps)
    return failed


def machine() -> str:
    """Return processor, cores and Python in one line, to stand beside times."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        if model := re.search(r"^model name\s*:\s*(\S.*)", text, re.MULTILINE):
            name = visible(model[1])
    cores = counted(available_cores(), "core")
    return f"{name}, {cores}, {platform.system()}, Python {platform.python_version()}"
