"""Call a detector on every picture, keep its maps, time it, evaluate it.

The detector is any Python function from an (H, W, 3) uint8 picture to a soft map or to labels. Its
maps are written into OUT/maps, and run.json there says whose they are. A folder that holds maps is
refused, unless the user says that they are kept (`resume`) or made again (`fresh`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench import __version__
from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.bounded import (
    listed,
    locked,
    png_bytes,
    read_json,
    remove_leftovers,
    show,
    write_atomic,
)
from bsdsbench.files.errors import DataError, visible
from bsdsbench.loaders.pairing import ground_truths, read_split
from bsdsbench.loaders.photos import find_photos, read_photo
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run import about_folders, available_cores, folders
from bsdsbench.runs.run import run as score
from bsdsbench.runs.run_options import SPEED, Folder, RunOptions, takes
from bsdsbench.runs.score_tables import METHOD, Speed, score_tables, with_speeds
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Cell, Field, Table

Detector = Callable[[NDArray[np.uint8]], Any]
SOFT_INTEGERS = (np.uint8, np.uint16, np.bool_)
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
    failed: dict[str, str] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    kept: int = 0

    @property
    def ms_per_image(self) -> float:
        """Median milliseconds per picture; NaN where there was no successful call."""
        return float(np.median(list(self.milliseconds.values()) or [np.nan]))

    @property
    def speed(self) -> Speed:
        """What tables show beside the scores."""
        return Speed(self.ms_per_image, self.machine)

    def __repr__(self) -> str:
        """One line: name, pictures, time, the main scores."""
        failed = f", failed on {len(self.failed)}" if self.failed else ""
        scores = f": {self.evaluation!r}" if self.evaluation else ""
        return (
            f"<DetectorRun {self.name!r}, {len(self.milliseconds)} pictures{failed}, "
            f"{self.ms_per_image:.1f} ms per image{scores}>"
        )

    def tables(self) -> list[Table]:
        """A row of pictures and time, then the scores where there are any."""
        counts = (("pictures", "Pictures"), ("failed", "Failed"))
        columns = [METHOD, *(Field(*count, "", "d") for count in counts)]
        rows: list[list[Cell]] = [[self.name, len(self.milliseconds), len(self.failed)]]
        own = with_speeds(Table("detector", "Detector", columns, rows), {self.name: self.speed})
        return [own, *(score_tables([self.evaluation]) if self.evaluation else [])]

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


@takes(
    *("*", "out", "protocol", "metrics", "name", "split_file", "shard", "workers", "executor"),
    *("fresh", "resume", "tag", "on_error", "progress"),
    on_error="skip",
)
def run(
    function: Detector | str, images: Folder, *, gt: Folder | None = None, options: RunOptions
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
        alone is one of `bsdsbench.integrations.baselines`, such as "canny".
    images : path
        Folder of pictures.
    gt : path, optional
        Ground-truth folder; without it there are no scores.
    {options}

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
    if options.out is None:
        raise DataError("out: None, expected a folder for the maps")
    if options.fresh and options.resume:
        raise DataError("fresh, resume: expected one of them")
    options = attrs.evolve(options, out=options.out.resolve(), missing="skip")
    detector = load_function(function) if isinstance(function, str) else function
    if not callable(detector):
        raise DataError(f"function: {kind_of_value(function)}, expected a function or its name")
    wanted = None if options.split_file is None else read_split(options.split_file)
    photos = {i: path.resolve() for i, path in find_photos(images, wanted).items()}
    if wanted is not None:
        if lost := [image_id for image_id in wanted if image_id not in photos]:
            raise DataError(f"{show(images)}: no picture for: {listed(lost)}")
        photos = {image_id: photos[image_id] for image_id in wanted}
    if not photos:
        raise DataError(f"{show(images)}: no pictures, expected at least one")
    ids = sorted(photos)
    mine = ids[options.shard[0] - 1 :: options.shard[1]]
    if gt is not None:
        gt = Path(gt).resolve()
        options.refuse_out_in(gt=gt)
        ground_truths(gt, ids)  # they are there, before the detector is called
    built_in = function if isinstance(function, str) and ":" not in function else None
    kind = type(detector).__name__
    shown = options.name or built_in or str(getattr(detector, "__name__", kind))
    path = (getattr(detector, name, "") for name in ("__module__", "__qualname__"))
    about = {
        "function": function if isinstance(function, str) else ":".join(filter(None, path)) or kind,
        "name": shown,
        "tag": options.tag,
        "versions": {"bsdsbench": __version__, "python": platform.python_version()},
    }
    with locked(options.out):  # type: ignore[arg-type]
        maps = _Maps(options.out / "maps", about, options)  # type: ignore[operator]
        failed = _detect(detector, {i: photos[i] for i in mine}, maps, options)
        made = {i: ms for i, ms in maps.milliseconds.items() if i in mine}
        if failed and (options.on_error == "fail" or len(failed) == len(mine)):
            lines = [f"{image_id}: {reason}" for image_id, reason in failed.items()]
            raise DataError("\n".join(lines), lines)
        kept = sum(i in mine for i in maps.kept)
        result = DetectorRun(shown, maps.folder, maps.kind, made, machine(), failed, kept=kept)
        if gt is None:
            return result
        options = attrs.evolve(options, name=shown, pred_kind=maps.kind, split_file=None)
        whole = folders(maps.folder, gt, attrs.evolve(options, missing="zero"), ids)
        items = [item for item in whole if item.image_id in mine and item.pair.pred_paths]
        blank = about_folders(whole, options, pred=maps.folder, gt=gt)
        told = {**result.speed._asdict(), **about, "taken_over": kept}
        more: dict[str, Any] = {SPEED: told}
        if options.shard != (1, 1):
            more["shard"] = f"{options.shard[0]}/{options.shard[1]}"
        blank = replace(blank, provenance={**blank.provenance, **more}, failed=failed)
        evaluation = score(items, attrs.evolve(options, shard=(1, 1)), blank)
        return replace(result, evaluation=evaluation)


def _detect(
    detector: Detector, photos: dict[str, Path], maps: _Maps, options: RunOptions
) -> dict[str, str]:
    """Make the maps that lack; the pictures it fails on, with the reason."""
    failed: dict[str, str] = {}
    warm = False
    try:
        for done, (image_id, path) in enumerate(photos.items(), 1):
            if image_id not in maps.kept:
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
                    made = encoded(result, picture.shape[:2])
                except (Exception, SystemExit) as error:  # the user's function may raise anything
                    failed[image_id] = _reason(error)
                else:
                    maps.add(image_id, made, 1000 * spent)
            if options.progress:
                options.progress(done, len(photos), image_id)
    except KeyboardInterrupt:
        kept = f"{len(maps.kept | maps.made)} maps are kept in {show(maps.folder)}"
        raise KeyboardInterrupt(f"{kept}: resume=True goes on with them") from None
    finally:
        maps.write_about()
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


class _Maps:
    """The maps of one detector in a folder, and what run.json says of them."""

    def __init__(self, folder: Path, about: dict[str, Any], options: RunOptions) -> None:
        self.folder, self.kind = folder, "soft"
        self.milliseconds: dict[str, float] = {}
        self.kept: set[str] = set()
        self.made: set[str] = set()
        self._about = {**about, "made": time.strftime("%Y-%m-%d %H:%M")}
        self._kinds: set[str] = set()
        self._saved = 0.0
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        there = [path for path in folder.iterdir() if path.suffix in SUFFIXES]
        if there:
            self._take(there, options)
        self.write_about()

    def _take(self, there: Sequence[Path], options: RunOptions) -> None:
        """Keep the maps that are there, or delete them, as the user says. Raises DataError."""
        if not (self.folder / ABOUT).is_file():
            raise DataError(
                f"{show(self.folder)}: holds {len(there)} maps that bsdsbench did not write, "
                "expected a folder of its own"
            )
        found = read_json(self.folder / ABOUT, "what a detector's run wrote")
        told = [f"{w} {found[w]}" for w in ("function", "tag") if found.get(w)]
        whose = f"{len(there)} maps of {found.get('name')} ({', '.join(told)}; {found.get('made')})"
        if not (options.resume or options.fresh):
            raise DataError(
                f"{show(self.folder)}: holds {whose}: resume=True keeps them, fresh=True makes "
                "them again"
            )
        if options.fresh:
            for path in there:
                path.unlink()
            return
        other = [w for w in ("function", "tag") if found.get(w) != self._about.get(w)]
        if other:
            raise DataError(
                f"{show(self.folder)}: holds {whose}, expected maps of this {' and '.join(other)} "
                "to go on with"
            )
        self.kept = {path.stem for path in there}
        self._about["made"] = found.get("made")
        times = found.get("milliseconds")
        self.milliseconds = dict(times) if isinstance(times, dict) else {}
        self._add_kind("segs" if there[0].suffix == ".mat" else str(found.get("kind")))

    def add(self, image_id: str, made: tuple[str, str, bytes], ms: float) -> None:
        """Write a map: its kind, suffix and bytes, and what it took."""
        kind, suffix, data = made
        self._add_kind(kind)
        if not self.made:
            self.write_about()
        write_atomic(self.folder / f"{image_id}{suffix}", data, durable=False)
        self.milliseconds[image_id] = round(ms, 3)
        self.made.add(image_id)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.write_about()

    def _add_kind(self, kind: str) -> None:
        """ "soft" or "labels", as pictures are to be read; segs in .mat say it themselves."""
        self._kinds |= {kind} - {"segs"}
        if len(self._kinds) > 1:
            raise DataError("the function returned soft maps and labels, expected one of them")
        self.kind = next(iter(self._kinds), "soft")

    def write_about(self) -> None:
        """Write run.json."""
        about = {**self._about, "kind": self.kind, "milliseconds": self.milliseconds}
        write_atomic(self.folder / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
        self._saved = time.monotonic()


def load_function(spec: str) -> Detector:
    """The function that "MODULE:FUNCTION" names, from the current folder first, or a baseline."""
    if ":" not in spec:
        from bsdsbench.integrations.baselines import baseline

        return baseline(spec)
    module_name, _, attribute = spec.partition(":")
    if not (module_name and attribute):
        raise DataError(f"{spec!r}: expected MODULE:FUNCTION, such as my_detector:detect")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with _undisturbed():
            found: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise DataError(f"{spec!r}: cannot be imported ({_reason(error)})") from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise DataError(f"{spec!r}: {module_name} has no function {attribute!r}")
    return found


def machine() -> str:
    """Processor, cores and Python in one line, to stand beside times."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                name = visible(value.strip())
                break
    cores = available_cores()
    plural = "" if cores == 1 else "s"
    return f"{name}, {cores} core{plural}, {platform.system()}, Python {platform.python_version()}"


def encoded(result: Any, shape: tuple[int, ...]) -> tuple[str, str, bytes]:
    """What a detector returned for a picture (H, W), as a file: kind ("soft", "labels", "segs"),
    suffix, bytes. Raises DataError for another shape or type, NaN, values out of range."""
    if isinstance(result, list | tuple):
        from scipy.io import savemat

        maps = [_labels(np.asarray(one), shape) for one in result]
        if not maps:
            raise DataError("returned an empty list, expected at least one label map")
        cell = np.empty((1, len(maps)), object)
        for i, labels in enumerate(maps):
            cell[0, i] = labels
        stream = io.BytesIO()
        savemat(stream, {"segs": cell}, do_compression=True)
        return "segs", ".mat", stream.getvalue()
    array = np.asarray(result)
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape}, expected {shape}")
    if array.dtype.type in SOFT_INTEGERS:
        if array.dtype == np.bool_:
            array = array.astype(np.uint8) * np.uint8(255)
        return "soft", ".png", png_bytes(np.ascontiguousarray(array))
    if array.dtype.kind == "f":
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise DataError("returned values outside [0, 1] or NaN, expected a soft map in [0, 1]")
        return "soft", ".png", png_bytes(np.rint(array * 65535.0).astype(np.uint16))
    return "labels", ".png", png_bytes(_labels(array, shape))


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
