"""Call a detector on every picture, keep its maps, time it, evaluate it.

The detector is any Python function from an (H, W, 3) uint8 picture to a soft map or to labels.
Its maps are kept under OUT/maps (see detector_maps); a later run reuses those that the same
detector made from the same pictures, and the result says so.
"""

from __future__ import annotations

import io
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.findings import counted
from bsdsbench.files.bounded import listed
from bsdsbench.files.errors import DataError, visible
from bsdsbench.files.writing import png_bytes
from bsdsbench.integrations.call_identity import identity_of
from bsdsbench.integrations.detector_maps import DetectorMaps
from bsdsbench.integrations.opened_files import marks_of, noted_in
from bsdsbench.loaders.pairing import read_split
from bsdsbench.loaders.photos import find_photos, read_photo
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.job import check_run, kind_of, protocol_of
from bsdsbench.runs.record_store import run_locked
from bsdsbench.runs.runner import Settings, check_words, digest_of, part_of, prepared
from bsdsbench.runs.runner import run as score
from bsdsbench.runs.score_tables import KEY as SPEED
from bsdsbench.runs.score_tables import METHOD, Speed, score_tables, with_speeds
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Cell, Field, Table

Detector = Callable[[NDArray[np.uint8]], Any]
SOFT_INTEGERS = (np.uint8, np.uint16, np.bool_)


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
    taken_over : int
        How many maps are of an earlier call of the same detector.
    notes : tuple of str
        What the user should know, such as why no map was taken over.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_images
    >>> found = bb.run("sobel", sample_images(), out=tempfile.mkdtemp())
    >>> found.kind, len(found.milliseconds), found.failed
    ('soft', 16, {})
    >>> sorted(found.to_mapping())[:3]
    ['failed', 'kind', 'machine']
    """

    name: str
    maps: Path
    kind: str
    milliseconds: dict[str, float]
    machine: str
    failed: dict[str, str] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    taken_over: int = 0
    notes: tuple[str, ...] = ()

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
        """A row of pictures and time, then the scores where there are any.

        Returns
        -------
        list of Table
            In the order in which they are shown.
        """
        counts = (("pictures", "Pictures"), ("failed", "Failed"))
        columns = [METHOD, *(Field(*count, "", "d") for count in counts)]
        rows: list[list[Cell]] = [[self.name, len(self.milliseconds), len(self.failed)]]
        table = Table("detector", "Detector", columns, rows, notes=self.notes)
        own = with_speeds(table, {self.name: self.speed})
        return [own, *(score_tables([self.evaluation]) if self.evaluation else [])]

    def to_mapping(self) -> dict[str, Any]:
        """Plain values: name, times, failures, and the scores where there are any.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {
            "name": self.name,
            "maps": str(self.maps),
            "kind": self.kind,
            "ms_per_image": self.ms_per_image if self.milliseconds else None,
            "machine": self.machine,
            "n_images": len(self.milliseconds),
            "failed": self.failed,
            "taken_over": self.taken_over,
            "scores": self.evaluation.scores() if self.evaluation else None,
        }


def run(
    function: Detector | str,
    images: str | Path,
    *,
    out: str | Path,
    gt: str | Path | None = None,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT,
    name: str | None = None,
    split_file: str | Path | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    fresh: bool = False,
    resume: bool = False,
    on_error: str = "skip",
    progress: Progress | None = None,
) -> DetectorRun:
    """Call a detector on every picture of a folder, time it, and evaluate its maps.

    Parameters
    ----------
    function : callable or str
        From an (H, W, 3) uint8 picture to a soft map (H, W) of bool, uint8, uint16 or floats in
        [0, 1], to a label map (H, W) of any other integers, or to a list of label maps, coarse to
        fine. "MODULE:FUNCTION" names one to import, the current folder is searched first; a name
        alone is one of `bsdsbench.integrations.baselines`, such as "canny".
    images : path
        Folder of pictures.
    out : path
        Folder for maps, times and scores. Floats are kept as 16-bit PNG, rounded to 1/65535.
    gt : path, optional
        Ground-truth folder; without it there are no scores.
    protocol, metrics, split_file, shard, workers : various
        As in `evaluate`; `shard` is of the pictures, and `merge` joins the results. The detector
        itself is called on one picture at a time.
    name : str, optional
        The name in tables; by default that of the function.
    fresh : bool
        Call the function again also where its result is there.
    resume : bool
        Take over earlier maps also where it cannot be known that they are of this very function: a
        lambda, a closure, an object, a module that holds a network.
    on_error : str
        "skip" lists the pictures on which the function fails in `failed`, with the reason; "fail"
        raises when all have been tried.
    progress : callable, optional
        Called with (done, total, image_id).

    Returns
    -------
    DetectorRun
        Times and scores; the median leaves out a first call that only warms up.

    Raises
    ------
    DataError
        If the function cannot be imported, there are no pictures, or the function failed on all.

    Notes
    -----
    Maps of an earlier run in `out` are taken over if all is the same: the picture, the function and
    its arguments, the sources of its module and of the modules of yours that it imports, versions
    and machine, and the files that it opened when it was called, such as weights. What a library
    opens from C (h5py, onnxruntime) is not seen: then `fresh` calls it again. Result and signature
    say how many maps were taken over.

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
    chosen = check_words(metrics, "skip", on_error, shard)
    detector = load_function(function) if isinstance(function, str) else function
    wanted = None if split_file is None else read_split(split_file)
    photos = find_photos(images, wanted)
    if wanted is not None:
        if lost := [image_id for image_id in wanted if image_id not in photos]:
            raise DataError(f"{visible(str(images))}: no picture for: {listed(lost)}")
        photos = {image_id: photos[image_id] for image_id in wanted}
    if not photos:
        raise DataError(f"{visible(str(images))}: no pictures, expected at least one")
    whole = digest_of(sorted(photos))
    mine = dict(sorted(photos.items())[shard[0] - 1 :: shard[1]])
    built_in = function if isinstance(function, str) and ":" not in function else None
    shown = name or built_in or str(getattr(detector, "__name__", type(detector).__name__))
    with run_locked(Path(out)):
        return _run_and_score(
            _Calls(Path(out), detector, fresh, resume),
            *(mine, shown, gt, protocol, chosen, split_file, workers, on_error, progress),
            {"images": whole, **part_of(shard)},
        )


def _run_and_score(
    calls: _Calls,
    photos: dict[str, Path],
    shown: str,
    gt: str | Path | None,
    protocol: Protocol | str | None,
    chosen: tuple[str, ...],
    split_file: str | Path | None,
    workers: int | None,
    on_error: str,
    progress: Progress | None,
    origin: dict[str, str],
) -> DetectorRun:
    out = calls.maps.folder.parent
    with calls.maps.written(photos):
        for done, (image_id, path) in enumerate(sorted(photos.items()), 1):
            calls.add(image_id, path)
            if progress:
                progress(done, len(photos), image_id)
    if calls.failed and (on_error == "fail" or not calls.milliseconds):
        lines = [f"{image_id}: {reason}" for image_id, reason in calls.failed.items()]
        raise DataError("\n".join(lines), lines)
    found = DetectorRun(
        *(shown, calls.maps.folder, calls.kind(), calls.milliseconds, machine(), calls.failed),
        taken_over=calls.maps.taken_over,
        notes=calls.maps.notes(),
    )
    if gt is None:
        return found
    check_run(shown, workers, out, {"maps": found.maps, "ground truth": gt})
    blank, jobs = prepared(
        *(found.maps, gt, protocol_of(protocol, chosen), chosen),
        name=shown,
        split_file=split_file,
        missing="skip",
        kind=kind_of(found.kind, chosen),
    )
    told = {**found.speed.to_mapping(), "taken_over": found.taken_over, "call": calls.maps.digest}
    told_all = {**blank.provenance, SPEED: told, **origin}
    blank = replace(blank, provenance=told_all, failed=calls.failed)
    return replace(
        found, evaluation=score(blank, jobs, Settings(workers, out=out, on_error=on_error))
    )


def load_function(spec: str) -> Detector:
    """The function that "MODULE:FUNCTION" names, or a baseline; the current folder comes first.

    Dots in FUNCTION reach inside. Raises DataError if there is no such baseline, the module cannot
    be imported, or it has no such callable.
    """
    if ":" not in spec:
        from bsdsbench.integrations.baselines import baseline

        return baseline(spec)
    module_name, _, attribute = spec.partition(":")
    if not (module_name and attribute):
        raise DataError(f"{spec!r}: expected MODULE:FUNCTION, such as my_detector:detect")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
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
    return (
        f"{_processor()}, {counted(available_cores(), 'core')}, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    """The processor's name where the system tells it, else its kind."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return visible(value.strip())
    return platform.processor() or platform.machine()


class _Calls:
    """The calls of one detector on pictures, and what they took."""

    def __init__(self, out: Path, detector: Detector, fresh: bool, resume: bool) -> None:
        self.detector = detector
        # times of two machines are not mixed
        self.maps = DetectorMaps(out / "maps", identity_of(detector, machine()), fresh, resume)
        self.milliseconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.warm = False
        self.began = time.time()
        self.opened: set[str] = set()

    def add(self, image_id: str, path: Path) -> None:
        """Call the detector on one picture, unless the result of the same call is there."""
        try:
            picture = read_photo(path)
        except DataError as error:
            self.failed[image_id] = str(error)
            return
        kept = self.maps.kept(image_id, picture)
        if kept is None:
            try:
                with noted_in(self.opened):
                    result, spent = self._timed(picture)
                made = encoded(result, picture.shape[:2])
            except (Exception, SystemExit) as error:  # the user's function may raise anything
                self.failed[image_id] = _reason(error)
                return
            read = marks_of(self.opened, self.maps.folder, self.began)
            kept = self.maps.add(image_id, picture, made, spent, read)
        self.milliseconds[image_id], self.kinds[image_id] = kept.ms, kept.kind

    def _timed(self, picture: NDArray[np.uint8]) -> tuple[Any, float]:
        if not self.warm:  # imports, caches and compilers are not the detector's speed
            self.detector(picture.copy())
            self.warm = True
        given = picture.copy()  # a function may write into its argument
        started = time.perf_counter()
        result = self.detector(given)
        return result, round(1000 * (time.perf_counter() - started), 3)

    def kind(self) -> str:
        """ "soft" or "labels", as pictures are to be read; segs in .mat say it themselves."""
        kinds = set(self.kinds.values()) - {"segs"}
        if len(kinds) > 1:
            raise DataError("the function returned soft maps and labels, expected one of them")
        return kinds.pop() if kinds else "soft"


def encoded(result: Any, shape: tuple[int, ...]) -> tuple[str, str, bytes]:
    """What a detector returned for a picture (H, W), as a file: kind, suffix, bytes.

    The kinds are "soft" and "labels", a PNG, and "segs", a MATLAB file of several label maps.
    Raises DataError for another shape than the picture's, NaN, values out of range, or another
    type.
    """
    if isinstance(result, list | tuple):
        maps = [_labels(np.asarray(one), shape) for one in result]
        if not maps:
            raise DataError("returned an empty list, expected at least one label map")
        return "segs", ".mat", _segs_bytes(maps)
    array = np.asarray(result)
    _same_shape(array, shape)
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
    _same_shape(array, shape)
    if array.dtype.kind not in "iub":
        raise DataError(f"returned dtype {array.dtype}, expected integer labels")
    values, inverse = np.unique(array, return_inverse=True)
    if values.size > 65535:
        raise DataError(f"returned {values.size} labels, expected at most 65535")
    return (inverse.reshape(array.shape) + 1).astype(np.uint16)


def _same_shape(array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape}, expected {shape}")


def _segs_bytes(maps: Sequence[NDArray[np.uint16]]) -> bytes:
    from scipy.io import savemat

    cell = np.empty((1, len(maps)), object)
    for i, labels in enumerate(maps):
        cell[0, i] = labels
    stream = io.BytesIO()
    savemat(stream, {"segs": cell}, do_compression=True)
    return stream.getvalue()


def _reason(error: BaseException) -> str:
    if isinstance(error, DataError):
        return str(error)
    return visible(f"{type(error).__name__}: {error}")[:300]
