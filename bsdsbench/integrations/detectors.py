"""Call a detector on every picture, keep its maps, time it, evaluate it.

The detector is any Python function from an (H, W, 3) uint8 picture to a soft map or to labels.
What it returned is kept under OUT/maps, one file per picture, and OUT/calls.jsonl has one line per
call; a later run calls it only where picture, function or machine changed.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.findings import counted
from bsdsbench.files.errors import DataError
from bsdsbench.files.escapes import visible
from bsdsbench.files.writing import png_bytes, write_atomic
from bsdsbench.loaders.pairing import read_split
from bsdsbench.loaders.photos import find_photos, read_photo
from bsdsbench.loaders.reading import listed
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.settings import clipped
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.runner import evaluate
from bsdsbench.runs.score_tables import METHOD, score_tables
from bsdsbench.runs.speed import KEY as SPEED
from bsdsbench.runs.speed import Speed, with_speeds
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Cell, Column, Table

Detector = Callable[[NDArray[np.uint8]], Any]
Progress = Callable[[int, int, str], None]
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
    """

    name: str
    maps: Path
    kind: str
    milliseconds: dict[str, float]
    machine: str
    failed: dict[str, str] = field(default_factory=dict)
    evaluation: Evaluation | None = None

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
        columns = [METHOD, *(Column(*count, "", "d") for count in counts)]
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
    workers: int | None = None,
    fresh: bool = False,
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
    protocol, metrics, split_file, workers : various
        As in `evaluate`. The detector itself is called on one picture at a time.
    name : str, optional
        The name in tables; by default that of the function.
    fresh : bool
        Call the function again also where its result is there.
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

    Examples
    --------
    >>> import bsdsbench as bb
    >>> found = bb.run("my_detector:detect", "images", gt="gt", out="out/mine")  # doctest: +SKIP
    >>> found.ms_per_image                                                       # doctest: +SKIP
    12.5
    """
    if on_error not in ("fail", "skip"):
        raise DataError(f"on_error {clipped(on_error)}: expected fail or skip")
    detector = load_function(function) if isinstance(function, str) else function
    photos = find_photos(images)
    if split_file is not None:
        wanted = read_split(split_file)
        if lost := [image_id for image_id in wanted if image_id not in photos]:
            raise DataError(f"{visible(str(images))}: no picture for: {listed(lost)}")
        photos = {image_id: photos[image_id] for image_id in wanted}
    if not photos:
        raise DataError(f"{visible(str(images))}: no pictures, expected at least one")
    built_in = function if isinstance(function, str) and ":" not in function else None
    shown = name or built_in or str(getattr(detector, "__name__", type(detector).__name__))
    calls = _Calls(Path(out), detector, fresh)
    for done, (image_id, path) in enumerate(sorted(photos.items()), 1):
        calls.add(image_id, path)
        if progress:
            progress(done, len(photos), image_id)
    if calls.failed and (on_error == "fail" or not calls.milliseconds):
        lines = [f"{image_id}: {reason}" for image_id, reason in calls.failed.items()]
        raise DataError("\n".join(lines), lines)
    found = DetectorRun(
        shown, calls.maps, calls.kind(), calls.milliseconds, machine(), calls.failed
    )
    if gt is None:
        return found
    scores = evaluate(
        *(found.maps, gt, protocol),
        metrics=metrics,
        name=shown,
        split_file=split_file,
        missing="skip",
        on_error=on_error,
        pred_kind=found.kind,
        workers=workers,
        out=out,
    )
    scores = replace(
        scores,
        provenance={**scores.provenance, SPEED: found.speed.to_mapping()},
        failed={**calls.failed, **scores.failed},
    )
    scores.save(out)
    return replace(found, evaluation=scores)


def load_function(spec: str) -> Detector:
    """The function that "MODULE:FUNCTION" names, or a baseline; the current folder comes first.

    Parameters
    ----------
    spec : str
        An importable module, a colon, and the name of a callable in it (dots reach inside); or the
        name of a baseline.

    Returns
    -------
    callable
        The function.

    Raises
    ------
    DataError
        If there is no such baseline, the module cannot be imported, or it has no such callable.
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
    """The calls of one detector, resumed from and appended to OUT/calls.jsonl."""

    def __init__(self, out: Path, detector: Detector, fresh: bool) -> None:
        self.out, self.maps, self.detector = out, out / "maps", detector
        self.log = out / "calls.jsonl"
        self.key = _identity(detector)
        self.milliseconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.warm = False
        self.known = {} if fresh else _read_log(self.log)
        self.maps.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.log.unlink(missing_ok=True)

    def add(self, image_id: str, path: Path) -> None:
        """Call the detector on one picture, unless the result of the same call is there."""
        try:
            picture = read_photo(path)
        except DataError as error:
            self.failed[image_id] = str(error)
            return
        key = hashlib.blake2b(picture.tobytes(), digest_size=12, key=self.key).hexdigest()
        kept = self.known.get(image_id, {})
        if kept.get("key") == key and (self.maps / str(kept.get("file"))).is_file():
            self.milliseconds[image_id], self.kinds[image_id] = kept["ms"], kept["kind"]
            return
        for old in self.maps.glob(f"{_escape(image_id)}.*"):
            old.unlink()
        try:
            result, spent = self._timed(picture)
            kind, suffix, data = encoded(result, picture.shape[:2])
        except (Exception, SystemExit) as error:  # the user's function may raise anything
            self.failed[image_id] = _reason(error)
            return
        name = f"{image_id}{suffix}"
        write_atomic(self.maps / name, data, durable=False)
        self.milliseconds[image_id], self.kinds[image_id] = spent, kind
        line = {"id": image_id, "file": name, "kind": kind, "ms": spent, "key": key}
        with self.log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

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
    """What a detector returned as a file.

    Parameters
    ----------
    result : array or sequence of arrays
        See `run`.
    shape : tuple of int
        Height and width of the picture.

    Returns
    -------
    kind, suffix, data : str, str, bytes
        "soft" or "labels" and a PNG, or "segs" and a MATLAB file of several label maps.

    Raises
    ------
    DataError
        For another shape than the picture's, NaN, values out of range, or another type.
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


def _identity(detector: Detector) -> bytes:
    """A digest of name, source and machine, so that a changed function is called again."""
    name = f"{getattr(detector, '__module__', '')}:{getattr(detector, '__qualname__', '')}"
    try:
        source = inspect.getsource(detector)
    except (OSError, TypeError):
        source = ""
    told = f"{name}\0{source}\0{machine()}"  # times of two machines are not mixed
    return hashlib.blake2b(told.encode(), digest_size=16).digest()


def _read_log(path: Path) -> dict[str, Mapping[str, Any]]:
    """The last whole line of each image; a line cut short by a kill is left out."""
    found: dict[str, Mapping[str, Any]] = {}
    if not path.is_file():
        return found
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            entry = json.loads(line)
            found[entry["id"]] = entry
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _escape(text: str) -> str:
    """`text` as a pattern of Path.glob that matches itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def _reason(error: BaseException) -> str:
    if isinstance(error, DataError):
        return str(error)
    return visible(f"{type(error).__name__}: {error}")[:300]
