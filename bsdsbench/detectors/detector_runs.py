"""Call a detector on every picture, keep its maps, time it, evaluate it.

The detector is any Python function from an (H, W, 3) uint8 picture to a soft map or to labels. Its
maps are written into OUT/maps, and run.json there says whose they are. A folder that holds maps is
refused, unless the user says that they are kept (`resume`) or made again (`fresh`).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, Unpack

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench import __version__
from bsdsbench.errors import DataError, InputWarning, Problem, Setting, warn
from bsdsbench.io import as_json, locked, png_bytes, read_json, remove_leftovers, write_atomic
from bsdsbench.loaders.formats.photos import find_photos, read_photo
from bsdsbench.loaders.pairing import ground_truths, read_split
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import score_tables
from bsdsbench.runs.engine import run_source
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.keywords import DetectorOptions, Plan, StrPath, planned
from bsdsbench.runs.sources import folder_header, folders
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table
from bsdsbench.text import counted, listed, show, visible

Detector = Callable[[NDArray[np.uint8]], Any]
ABOUT = "run.json"
SUFFIXES = (".png", ".mat")
SAVE_SECONDS = 1.0  # between two writings of run.json


@dataclass(frozen=True, slots=True, repr=False)
class DetectorRun(Shown):
    """What `run` found: where the maps are, what they cost, what failed, and the scores.

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
    >>> found = bb.run("sobel", sample_images(), out=tempfile.mkdtemp())
    >>> found.kind, len(found.milliseconds), found.failed
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
        """Median milliseconds per picture; NaN where there was no successful call."""
        return float(np.median(list(self.milliseconds.values()) or [np.nan]))

    def __repr__(self) -> str:
        """One line: name, pictures, time, the main scores."""
        told = f"{len(self.milliseconds)} pictures, {self.ms_per_image:.1f} ms per image"
        return f"<DetectorRun {self.name!r}, {told}: {self.evaluation!r}>"

    def tables(self) -> list[Table]:
        """The scores where there are any, with the time beside them."""
        return score_tables([self.evaluation]) if self.evaluation else []

    def to_mapping(self) -> dict[str, Any]:
        """Plain values: name, times, failures, and the scores where there are any."""
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
    metrics: str | Sequence[str] = registry.DEFAULT,
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
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: that of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
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
    >>> found = bb.run(dark, sample_images(), gt=sample_ground_truth(), out=tempfile.mkdtemp())
    >>> len(found.milliseconds), round(found.evaluation.boundary_score().ods.f, 2)
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
    detector: Detector,
    function: Detector | str,
    images: StrPath,
    gt: StrPath | None,
    plan: Plan,
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
        ground_truths(gt, ids)  # they are there, before the detector is called
    whose = _whose(detector, function, plan)
    with locked(plan.out):  # type: ignore[arg-type]
        maps = plan.out / "maps"  # type: ignore[operator]
        about, kept = _opened(maps, whose, plan)
        failed = _detect(
            detector, {i: photos[i] for i in share if i not in kept}, maps, about, plan
        )
        if failed and (plan.on_error == "fail" or len(failed) == len(share)):
            lines = [f"{image_id}: {reason}" for image_id, reason in failed.items()]
            raise DataError("\n".join(lines), lines)
        kind, times = about.get("kind", "soft"), about["milliseconds"]
        made = {image_id: times[image_id] for image_id in share if image_id in times}
        taken_over = len(kept.intersection(share))
        name = str(whose["name"])
        result = DetectorRun(name, maps, kind, made, machine(), failed, kept=taken_over)
        if gt is None:
            return result
        plan = attrs.evolve(plan, name=name, pred_kind=kind, split_file=None)
        whole = folders(maps, gt, attrs.evolve(plan, missing="zero"), ids)
        items = [item for item in whole if item.image_id in share and item.pair.pred_paths]
        header = folder_header(whole, plan, pred=maps, gt=gt)
        speed = {
            "ms_per_image": result.ms_per_image,
            "machine": result.machine,
            **whose,
            "taken_over": taken_over,
        }
        shard = None if plan.shard == (1, 1) else f"{plan.shard[0]}/{plan.shard[1]}"
        header = header.with_provenance(detector=ReadOnlyDict(speed), shard=shard)
        header = attrs.evolve(header, failed=failed)
        return replace(
            result, evaluation=run_source(items, attrs.evolve(plan, shard=(1, 1)), header)
        )


def _whose(detector: Detector, function: Detector | str, plan: Plan) -> dict[str, Any]:
    """Return what run.json says of a detector, which `function` is or names."""
    named: Any = detector if hasattr(detector, "__qualname__") else type(detector)
    path = function if isinstance(function, str) else f"{named.__module__}:{named.__qualname__}"
    return {
        "function": path,
        "name": plan.name or (named.__name__ if ":" in path else path),
        "tag": plan.tag,
        "file": _file_of(detector) if path == function and ":" in path else None,
        "versions": {"bsdsbench": __version__, "python": platform.python_version()},
    }


def _opened(maps: Path, whose: dict[str, Any], plan: Plan) -> tuple[dict[str, Any], set[str]]:
    """What run.json is to say, and the ids of maps that are there and stay. Those that are not to
    stay are deleted. Raises DataError for maps without the user's word, or of another detector."""
    about = {**whose, "made": time.strftime("%Y-%m-%d %H:%M"), "milliseconds": {}}
    maps.mkdir(parents=True, exist_ok=True)
    remove_leftovers(maps)
    there = [path for path in maps.iterdir() if path.suffix in SUFFIXES]
    if not there:
        return about, set()
    holds = f"{show(maps)}: holds {len(there)} maps"
    if not (maps / ABOUT).is_file():
        raise DataError(f"{holds} that bsdsbench did not write, expected a folder of its own")
    if plan.fresh:
        for path in there:
            path.unlink()
        return about, set()
    earlier = read_json(maps / ABOUT, "what a detector's run wrote")
    marks = [f"{w} {earlier[w]}" for w in ("function", "tag") if earlier.get(w)]
    holds += f" of {earlier.get('name')} ({', '.join(marks)}; {earlier.get('made')})"
    if not plan.resume:
        fix = Setting("resume", True, "keeps them"), Setting("fresh", True, "makes them again")
        raise DataError(holds, fix=fix)
    if other := [w for w in ("function", "tag") if earlier.get(w) != whose[w]]:
        raise DataError(f"{holds}, expected maps of this {' and '.join(other)} to go on with")
    if whose["file"] and earlier.get("file") not in (None, whose["file"]):
        edited = f"{holds}, made by another {whose['file']['name']} than this one"
        warn(InputWarning(edited, fix=Setting("fresh", True, "makes them again")))
    kept = {path.stem for path in there}
    times = {k: ms for k, ms in earlier.get("milliseconds", {}).items() if k in kept}
    return {**about, **earlier, **whose, "milliseconds": times}, kept


def _detect(
    detector: Detector,
    photos: dict[str, Path],
    maps: Path,
    about: dict[str, Any],
    plan: Plan,
) -> dict[str, str]:
    """Make the maps, and note in `about` what they are; the pictures it fails on, with reasons."""
    failed = {}
    warm, saved = False, -SAVE_SECONDS

    def save() -> None:
        write_atomic(maps / ABOUT, as_json(about))

    try:
        for done, (image_id, path) in enumerate(photos.items(), 1):
            try:
                picture = read_photo(path)
                with _undisturbed():
                    if not warm:  # imports and compilers are not the detector's speed
                        detector(picture.copy())
                    warm = True
                    given = picture.copy()  # a function may write into its argument
                    started = time.perf_counter()
                    result = detector(given)
                    spent = time.perf_counter() - started
                kind, suffix, data = encoded(result, picture.shape[:2])
            except (Exception, SystemExit) as error:  # the user's function may raise anything
                failed[image_id] = _reason(error)
            else:
                if kind != about.setdefault("kind", kind):
                    raise DataError("the function returned soft maps and labels, expected one")
                if time.monotonic() - saved > SAVE_SECONDS:  # before the first map, too
                    save()
                    saved = time.monotonic()
                write_atomic(maps / f"{image_id}{suffix}", data, durable=False)
                about["milliseconds"][image_id] = round(1000 * spent, 3)
            if plan.progress:
                plan.progress(done, len(photos), image_id)
    except KeyboardInterrupt:
        there = sum(path.suffix in SUFFIXES for path in maps.iterdir())
        fix = Setting("resume", True, "goes on with them")
        raise KeyboardInterrupt(
            Problem(has=f"{there} maps are kept in {show(maps)}", fix=(fix,))
        ) from None
    finally:
        save()
    return failed


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """What the detector prints is no result, and the working folder stays."""
    here = os.getcwd()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(here)


@contextlib.contextmanager
def fresh_modules(name: str) -> Iterator[None]:
    """Import the module `name` from its file as it is now, from the current folder first.

    Modules of the current folder that are imported meanwhile are forgotten in the end, and
    `sys.path` and what was imported before are restored: another call, in another folder or after
    an edit, gets what it asks for.
    """
    here, package = Path.cwd(), name.partition(".")[0]
    path, bytecode, before = list(sys.path), sys.dont_write_bytecode, dict(sys.modules)
    local = (here / f"{package}.py").is_file() or (here / package).is_dir()
    for module, loaded in before.items():
        same = module == name or (local and module.partition(".")[0] == package)
        if same and package != "bsdsbench" and not _is_installed(loaded):
            del sys.modules[module]
    sys.path.insert(0, str(here))
    sys.dont_write_bytecode = True  # it cannot tell an edit within a second from what was there
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for module, loaded in list(sys.modules.items()):
            if module not in before and _is_of(loaded, here):
                del sys.modules[module]
        sys.modules.update(before)


def _is_installed(module: Any) -> bool:
    """Return whether a module is of Python or in site-packages, which nobody edits."""
    file, places = getattr(module, "__file__", None) or "", sysconfig.get_paths()
    return any(Path(file).is_relative_to(places[kind]) for kind in ("stdlib", "purelib", "platlib"))


def _is_of(module: Any, folder: Path) -> bool:
    """Return whether a module was imported from the folder itself, not from packages below it."""
    package, file = (
        getattr(module, "__name__", "").partition(".")[0],
        getattr(module, "__file__", None),
    )
    files = [file] if file else list(getattr(module, "__path__", ()))  # of a folder of modules
    return any(
        Path(file) == place / f"{package}.py" or Path(file).is_relative_to(place / package)
        for place in (folder, folder.resolve())
        for file in files
    )


def _file_of(detector: Detector) -> dict[str, str] | None:
    """Return name and hash of the file that a function is from."""
    file = getattr(sys.modules.get(detector.__module__), "__file__", None)
    if file is None:
        return None
    data = Path(file).read_bytes()
    return {"name": Path(file).name, "blake2b": hashlib.blake2b(data, digest_size=16).hexdigest()}


def load_function(spec: str) -> Detector:
    """Return the function that "MODULE:FUNCTION" names, or a baseline."""
    if ":" not in spec:
        from bsdsbench.detectors.baselines import baseline

        return baseline(spec)
    module_name, _, attribute = spec.partition(":")
    try:
        with _undisturbed():
            function: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise DataError(f"{spec!r}: cannot be imported ({_reason(error)})") from None
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise DataError(f"{spec!r}: {module_name} has no function {attribute!r}")
    return function


def machine() -> str:
    """Processor, cores and Python in one line, to stand beside times."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        if found := re.search(r"^model name\s*:\s*(\S.*)", text, re.MULTILINE):
            name = visible(found[1])
    cores = counted(available_cores(), "core")
    return f"{name}, {cores}, {platform.system()}, Python {platform.python_version()}"


def encoded(result: Any, shape: tuple[int, ...]) -> tuple[str, str, bytes]:
    """What a detector returned for a picture (H, W), as a file: kind ("soft" or "labels"; .mat says
    itself that it has label maps), suffix, bytes. Raises DataError for another shape or type, NaN,
    values out of range."""
    if isinstance(result, list | tuple):
        from scipy.io import savemat

        if not result:
            raise DataError("returned an empty list, expected at least one label map")
        cell = np.empty((1, len(result)), object)
        for i, labels in enumerate(result):
            cell[0, i] = _labels(np.asarray(labels), shape)
        stream = io.BytesIO()
        savemat(stream, {"segs": cell}, do_compression=True)
        return "soft", ".mat", stream.getvalue()
    array = np.asarray(result)
    if array.dtype.kind not in "fb" and array.dtype not in (np.uint8, np.uint16):
        return "labels", ".png", png_bytes(_labels(array, shape))
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape}, expected {shape}")
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif array.dtype.kind == "f":
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise DataError("returned values outside [0, 1] or NaN, expected a soft map in [0, 1]")
        array = np.rint(array * 65535.0).astype(np.uint16)
    return "soft", ".png", png_bytes(np.ascontiguousarray(array))


def _labels(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """A label map with the numbers 1 .. n."""
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape}, expected {shape}")
    if array.dtype.kind not in "iub":
        raise DataError(f"returned dtype {array.dtype}, expected integer labels")
    values, inverse = np.unique(array, return_inverse=True)
    if values.size > 65535:
        raise DataError(f"returned {values.size} labels, expected at most 65535")
    return (inverse.reshape(array.shape) + 1).astype(np.uint16)


def _reason(error: BaseException) -> str:
    if isinstance(error, DataError):
        return str(error)
    return visible(f"{type(error).__name__}: {error}")[:300]
