"""Run a detector on every image of a folder, save and evaluate its maps, and time it.

The maps are written to OUT/maps, with a run.json that describes the detector. If the folder already
contains maps, the user must choose to keep them (`resume`) or to recompute them (`fresh`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, Unpack

import attrs
import numpy as np

from bsdsbench import __version__
from bsdsbench.arguments import kind_of_value
from bsdsbench.detectors.map_files import MapsRecord, encode_map, maps_in, open_maps
from bsdsbench.errors import DataError, Problem, Setting
from bsdsbench.io import locked, write_atomic
from bsdsbench.loaders.formats.photos import IMAGE_SUFFIXES, find_photos, read_photo
from bsdsbench.loaders.formats.pictures import find_files, id_of
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.split_files import read_split
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import score_tables
from bsdsbench.runs.engine import available_cores, run_source
from bsdsbench.runs.keywords import DetectorOptions, Plan, StrPath, plan_call
from bsdsbench.runs.sources import list_items, run_of_folders
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table
from bsdsbench.text import escape_unprintable, join_names, quantity, show
from bsdsbench.transforms.multi_scale import Detector


@dataclass(frozen=True, slots=True, repr=False)
class DetectorRun(TabularResult):
    """The result of running a detector: its maps, times, failures and, if evaluated, scores.

    Parameters
    ----------
    name : str
        The detector's name in tables.
    maps : Path
        Folder of the maps, one file per image.
    kind : str
        "soft", or "labels" for label maps.
    milliseconds : dict of str to float
        Image id -> time of the detector's call, without the warm-up call.
    machine : str
        Processor, cores and Python version on which the times were measured.
    failed : dict of str to str
        Image id -> reason why the detector failed on this image.
    evaluation : Evaluation or None
        The scores, or None if there was no ground truth.
    kept : int
        Number of maps kept from an earlier run.

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
        """The median time per image in milliseconds, or NaN if no call succeeded."""
        return float(np.median(list(self.milliseconds.values()) or [np.nan]))

    def __repr__(self) -> str:
        cost = f"{len(self.milliseconds)} pictures, {self.ms_per_image:.1f} ms per image"
        return f"<DetectorRun {self.name!r}, {cost}: {self.evaluation!r}>"

    def tables(self) -> list[Table]:
        """Return the score tables with a column of times, or [] if nothing was scored."""
        return score_tables([self.evaluation]) if self.evaluation else []

    def to_mapping(self) -> dict[str, object]:
        """Return the fields, the median time per image and the scores as a dict for JSON."""
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
    """Run a detector on every image of a folder, time it, and evaluate its maps.

    The detector is called on one image at a time in this process. It may print and may change the
    working directory. The maps are written to OUT/maps; floats are stored as 16-bit PNG, rounded to
    1/65535. OUT/maps/run.json describes the detector.

    Parameters
    ----------
    function : callable or str
        A function that takes an (H, W, 3) uint8 image and returns one of: a soft map (H, W) of
        bool, uint8, uint16 or floats in [0, 1]; a label map (H, W) of any other integer dtype; a
        list of label maps, coarse to fine. "MODULE:FUNCTION" is imported, searching the current
        folder first. Any other string, such as "canny", names a `bsdsbench.detectors.baselines`.
    images : path
        Folder of images.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    gt : path, optional
        Ground-truth folder. If it is None, nothing is scored.
    **options : DetectorOptions
        Keywords of the run; see `runs.keywords.RunKeywords`. `on_error` defaults to "skip".

    Returns
    -------
    DetectorRun
        The folder of the maps, the time of each call, the images on which the detector failed and,
        if `gt` is given, the scores, as `evaluation`. The first image is processed twice, because
        the first call is a warm-up that is not timed.

    Raises
    ------
    DataError
        If the function cannot be imported, if there are no images, if the function fails on all
        images, or if OUT contains maps and neither `resume` nor `fresh` is given.

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
    plan = plan_call("run", DetectorOptions, options, protocol, metrics, on_error="skip")
    if plan.out is None:
        raise DataError("no folder for the maps is given", fix=Setting("out", "OUT"))
    if plan.fresh and plan.resume:
        raise DataError("fresh and resume: expected only one of them")
    # Refuse an `out` inside an input folder, where its maps would be read as images
    plan.refuse_out_in(images=images, **({} if gt is None else {"gt": gt}))
    out = plan.out.resolve()
    # Images on which the detector fails have no map, and are left out of the scores
    plan = attrs.evolve(plan, out=out, missing="skip")
    with contextlib.ExitStack() as contexts:
        if isinstance(function, str) and ":" in function:  # MODULE:FUNCTION
            contexts.enter_context(_current_folder_first())
        detector = _load_function(function) if isinstance(function, str) else function
        if not callable(detector):
            expected = "a function, MODULE:FUNCTION or the name of a detector"
            raise DataError(f"function: {kind_of_value(detector)}, expected {expected}")
        record = _new_record(detector, function, plan)  # the contents of run.json
        photos = _photos_of_split(images, plan.split_file)  # image id -> path
        ids = sorted(photos)
        number, n_shards = plan.shard  # this call computes part `number`, from 1, of the images
        shard_ids = ids[number - 1 :: n_shards]
        if gt is not None:
            gt = Path(gt).resolve()
            # Raises if one is missing, before the detector is called. All ids, as shards are merged
            ground_truths(gt, ids)
        contexts.enter_context(locked(out))  # refuse a second run in this folder
        maps = out / "maps"
        kept_ids = open_maps(maps, record, resume=plan.resume, fresh=plan.fresh)
        if plan.multi_scale:
            detector = plan.multi_scale.of(detector)  # averages the maps of several image sizes
        new_photos = {i: photos[i] for i in shard_ids if i not in kept_ids}
        # Write the maps, and set their kind and the times of the calls in `record`
        failed = _detect(detector, new_photos, maps, record, plan)  # image id -> reason
        if failed and (plan.on_error == "fail" or len(failed) == len(shard_ids)):
            lines = [f"{image_id}: {reason}" for image_id, reason in failed.items()]
            raise DataError("\n".join(lines), lines)
        detected = DetectorRun(
            name=record.name,
            maps=maps,
            kind=record.kind or "soft",  # None if no map was made
            milliseconds={i: record.milliseconds[i] for i in shard_ids if i in record.milliseconds},
            machine=machine(),
            failed=failed,
            kept=len(kept_ids.intersection(shard_ids)),
        )
        if gt is None:
            return detected
        return replace(detected, evaluation=_evaluate(detected, gt, ids, shard_ids, record, plan))


def _photos_of_split(images: StrPath, split_file: StrPath | None) -> dict[str, Path]:
    """Return {image id: absolute path} of the photos in a folder.

    If `split_file` is given, only the photos that it lists are returned. Raises DataError if one of
    them is missing, or if there are no photos.
    """
    known = set(map(id_of, find_files(images, IMAGE_SUFFIXES)))
    wanted_ids = None if split_file is None else read_split(split_file, known)
    photos = {i: path.resolve() for i, path in find_photos(images, wanted_ids).items()}
    if missing_ids := [image_id for image_id in wanted_ids or () if image_id not in photos]:
        has = f"no picture for: {join_names(missing_ids)}"
        raise DataError(Problem(show(images), has, names=tuple(missing_ids)))
    if not photos:
        has = "is no folder" if os.path.isfile(images) else "does not exist"
        if os.path.isdir(images):
            has = "has no pictures"
        raise DataError(f"{show(images)}: {has}, expected a folder of pictures")
    return photos


def _evaluate(
    detected: DetectorRun,
    gt: Path,
    ids: list[str],
    shard_ids: list[str],
    record: MapsRecord,
    plan: Plan,
) -> Evaluation:
    """Score the detector's maps of the images `shard_ids` against the ground truth in `gt`.

    A shard is a part of the images that one of several processes computes. Images on which the
    detector failed are left out of the scores. The result also describes the whole data set, all
    images `ids`, so that the results of several shards can be merged.

    record: the contents of run.json. Those that identify the detector are stored with the scores.
    plan: the settings of the call, such as protocol and metrics.
    """
    # `ids` are those of the split file, so that it is not needed any more
    plan = attrs.evolve(plan, name=record.name, pred_kind=detected.kind, split_file=None)
    # An item for each image of the data set: the files of its map and ground truth. missing="zero"
    # lists images without a map too, to be scored as empty maps: these are left out of `items`
    all_items, _ = list_items(detected.maps, gt, attrs.evolve(plan, missing="zero"), ids)
    items = [item for item in all_items if item.image_id in shard_ids and item.pair.pred_paths]
    # Describe the whole data set and the detector (provenance), without any image counted so far
    about_detector = {
        "ms_per_image": detected.ms_per_image,
        "machine": detected.machine,
        **record.detector(),  # function, name, tag, file and versions
        "taken_over": detected.kept,  # number of maps from an earlier call
    }
    number, n_shards = plan.shard
    shard = None if n_shards == 1 else f"{number}/{n_shards}"
    empty_run = run_of_folders(all_items, plan, pred=detected.maps, gt=gt)
    empty_run = empty_run.with_provenance(detector=ReadOnlyDict(about_detector), shard=shard)
    empty_run = replace(empty_run, failed=detected.failed)
    # Count the images. `items` are those of the shard alone: (1, 1), the only part of one, keeps
    # `run_source` from selecting a shard of them again
    return run_source(items, attrs.evolve(plan, shard=(1, 1)), empty_run)


def _new_record(detector: Detector, function: Detector | str, plan: Plan) -> MapsRecord:
    """Return the contents of run.json for a detector that has not made any maps yet.

    `function` is what the user gave: the detector itself, MODULE:FUNCTION, or the name of a
    baseline. Only for MODULE:FUNCTION does the record include a hash of the detector's file.
    """
    # A callable object, such as a network, is named after its class
    named: Any = detector if hasattr(detector, "__qualname__") else type(detector)
    spec = function if isinstance(function, str) else f"{named.__module__}:{named.__qualname__}"
    is_baseline = ":" not in spec  # a name such as "canny"
    file = None  # name and hash of the detector's file, if it has one
    path = getattr(sys.modules.get(named.__module__), "__file__", None)
    if isinstance(function, str) and not is_baseline and path:
        digest = hashlib.blake2b(Path(path).read_bytes(), digest_size=16)
        file = {"name": Path(path).name, "blake2b": digest.hexdigest()}
    return MapsRecord(
        function=spec,
        name=plan.name or (spec if is_baseline else named.__name__),
        tag=plan.tag,
        file=file,
        versions={"bsdsbench": __version__, "python": platform.python_version()},
        scales=str(plan.multi_scale) if plan.multi_scale else None,
    )


def _detect(
    detector: Detector, photos: dict[str, Path], maps: Path, record: MapsRecord, plan: Plan
) -> dict[str, str]:
    """Call the detector on each photo, write its maps, and return {image id: reason for failure}.

    An image fails if the photo cannot be read, if the detector raises an exception, or if it
    returns something that is not a map. The first successful call is a warm-up: it is not timed,
    and the call is repeated.

    record: modified in place: the kind of the maps and the times of the calls are set. It is saved
        before the first map, and at the end even after an error.

    Raises DataError if the detector returns soft maps for some images and labels for others. If the
    user interrupts the run, KeyboardInterrupt is raised again with advice on how to resume.
    """
    failed = {}
    is_warm = False
    try:
        for done, (image_id, path) in enumerate(photos.items(), 1):
            try:
                image = read_photo(path)
                with _undisturbed():
                    if not is_warm:  # do not time lazy imports and compilation
                        detector(image.copy())
                    is_warm = True
                    argument = image.copy()  # the detector may modify it
                    started = time.perf_counter()
                    returned_map = detector(argument)
                    seconds = time.perf_counter() - started
                file = encode_map(returned_map, image.shape[:2])
            except (Exception, SystemExit) as error:  # the user's function may raise anything
                failed[image_id] = _reason_of(error)
            else:
                if record.kind is None:  # there is no map yet
                    record.kind = file.kind
                    record.save(maps)
                if file.kind != record.kind:
                    kinds = "both soft maps and labels"
                    raise DataError(f"the function returned {kinds}, expected one kind")
                # durable=False: to flush every map to the disk is slow
                write_atomic(maps / f"{image_id}{file.suffix}", file.content, durable=False)
                record.milliseconds[image_id] = round(1000 * seconds, 3)
            if plan.progress:
                plan.progress(done, len(photos), image_id)
    except KeyboardInterrupt:
        fix = Setting("resume", True, "goes on with them")
        advice = f"{len(maps_in(maps))} maps are kept in {show(maps)}"
        # With the advice as its argument, which the command line prints; it remains an interrupt
        raise KeyboardInterrupt(Problem(has=advice, fix=(fix,))) from None
    finally:
        record.save(maps)
    return failed


def machine() -> str:
    """Describe this computer in one line: processor, available cores, system and Python version."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        if model := re.search(r"^model name\s*:\s*(\S.*)", text, re.MULTILINE):
            name = escape_unprintable(model[1])
    cores = quantity(available_cores(), "core")
    return f"{name}, {cores}, {platform.system()}, Python {platform.python_version()}"


# Functions that a user names ---------------------------------------------------------------------


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep a user's function from printing to standard output and changing the working directory.

    Its output goes to standard error, and the working directory is restored afterwards.
    """
    working_folder = os.getcwd()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(working_folder)


@contextlib.contextmanager
def _current_folder_first() -> Iterator[None]:
    """Search the current folder first for modules, in the `with` block, and forget them at the end.

    The next run loads them again: they may be edited, or another folder may use the same names.
    """
    folder, loaded_before = Path.cwd(), set(sys.modules)
    old_path, old_dont_write_bytecode = list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # cached bytecode would hide edits within the same second
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = old_path
        sys.dont_write_bytecode = old_dont_write_bytecode
        for name in set(sys.modules) - loaded_before:
            package = name.partition(".")[0]
            is_own = (folder / f"{package}.py").is_file() or (folder / package).is_dir()
            if is_own and package != __name__.partition(".")[0]:
                del sys.modules[name]


def _load_function(spec: str) -> Detector:
    """Import MODULE:FUNCTION or, if `spec` has no colon, return the baseline of this name.

    FUNCTION may be dotted, such as "Class.method". Raises DataError if the import fails, or if
    there is no such function or baseline.
    """
    if ":" not in spec:
        from bsdsbench.detectors.baselines import baseline  # imports scikit-image

        return baseline(spec)
    module_name, _, attribute = spec.partition(":")
    try:
        with _undisturbed():
            loaded: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise DataError(f"{spec!r}: cannot be imported ({_reason_of(error)})") from None
    for name in attribute.split("."):
        loaded = getattr(loaded, name, None)
    if not callable(loaded):
        raise DataError(f"{spec!r}: {module_name} has no function {attribute!r}")
    return loaded


def _reason_of(error: BaseException) -> str:
    """Return the message of a DataError, or "TYPE: MESSAGE" in a line of up to 300 characters."""
    if isinstance(error, DataError):
        return str(error)
    return escape_unprintable(f"{type(error).__name__}: {error}")[:300]
