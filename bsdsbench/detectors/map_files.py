"""The folder of a detector's maps: run.json, which says whose they are, and a file for each map."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from attrs import Factory, asdict, define
from numpy.typing import NDArray

from bsdsbench.errors import DataError, InputWarning, Setting, warn
from bsdsbench.io import as_json, png_bytes, read_json, remove_leftovers, write_atomic
from bsdsbench.text import show

RUN_FILE = "run.json"
_SUFFIXES = (".png", ".mat")


@define
class MapsRecord:
    """The contents of run.json: the detector, and the state of its maps so far.

    Parameters
    ----------
    function, name, tag : str
        MODULE:FUNCTION or a baseline, the name in tables, the user's own mark (or None).
    file : dict or None
        Name and hash of the file that holds the function.
    versions : dict of str to str
        Of bsdsbench and of Python.
    made : str
        When the first map was made.
    kind : str or None
        "soft" or "labels"; None before the first map.
    milliseconds : dict of str to float
        Time of each call by image id.
    scales : str or None
        At which scales it was called for each map, as `MultiScale` writes it.
    """

    function: str
    name: str
    tag: str | None
    file: dict[str, str] | None
    versions: dict[str, str]
    made: str = Factory(lambda: time.strftime("%Y-%m-%d %H:%M"))
    kind: str | None = None
    milliseconds: dict[str, float] = Factory(dict)
    scales: str | None = None

    def detector(self) -> dict[str, object]:
        """Return what identifies the detector, for the provenance of its scores."""
        words = ("function", "name", "tag", "file", "versions", *["scales"] * bool(self.scales))
        return {w: getattr(self, w) for w in words}

    def save(self, maps: Path) -> None:
        """Write run.json."""
        write_atomic(
            maps / RUN_FILE,
            as_json({k: v for k, v in asdict(self).items() if k not in ("kind", "scales") or v}),
        )


def maps_in(maps: Path) -> list[Path]:
    """Return the files of a folder that are maps."""
    return [path for path in maps.iterdir() if path.suffix in _SUFFIXES]


def open_maps(maps: Path, record: MapsRecord, *, resume: bool, fresh: bool) -> set[str]:
    """Make the folder ready, and return the ids of maps that stay, which `record` then knows.

    Maps that are not to stay are deleted. Raises DataError for maps without the user's word, of
    another detector, or that bsdsbench did not write.
    """
    maps.mkdir(parents=True, exist_ok=True)
    remove_leftovers(maps)
    present = maps_in(maps)
    if not present:
        return set()
    holds = f"{show(maps)}: holds {len(present)} maps"
    if not (maps / RUN_FILE).is_file():
        raise DataError(f"{holds} that bsdsbench did not write, expected a folder of its own")
    if fresh:
        for path in present:
            path.unlink()
        return set()
    earlier = read_json(maps / RUN_FILE, "what a detector's run wrote")
    words = ("function", "tag", "scales")
    marks = [f"{word} {earlier[word]}" for word in words if earlier.get(word)]
    holds += f" of {earlier.get('name')} ({', '.join(marks)}; {earlier.get('made')})"
    if not resume:
        fix = Setting("resume", True, "keeps them"), Setting("fresh", True, "makes them again")
        raise DataError(holds, fix=fix)
    if other := [w for w in words if earlier.get(w) != getattr(record, w)]:
        raise DataError(f"{holds}, expected maps of this {' and '.join(other)} to go on with")
    if record.file and earlier.get("file") not in (None, record.file):
        edited = f"{holds}, made by another {record.file['name']} than this one"
        warn(InputWarning(edited, fix=Setting("fresh", True, "makes them again")))
    kept = {path.stem for path in present}
    record.made, record.kind = earlier.get("made", record.made), earlier.get("kind")
    times = earlier.get("milliseconds", {})
    record.milliseconds = {image_id: ms for image_id, ms in times.items() if image_id in kept}
    return kept


class MapFile(NamedTuple):
    """A detector's answer as a file: its kind, "soft" or "labels", its suffix and its bytes.

    A .mat file has kind "soft": that it holds label maps is in the file.
    """

    kind: str
    suffix: str
    content: bytes


def encoded(answer: object, shape: tuple[int, ...]) -> MapFile:
    """Return the file for a detector's answer to a picture of `shape` (H, W).

    Raises DataError for another shape or type, NaN, and values out of range.
    """
    if isinstance(answer, list | tuple):
        from scipy.io import savemat

        if not answer:
            raise DataError("returned an empty list, expected at least one label map")
        cell = np.empty((1, len(answer)), object)
        for level, labels in enumerate(answer):
            cell[0, level] = _renumbered(np.asarray(labels), shape)
        stream = io.BytesIO()
        savemat(stream, {"segs": cell}, do_compression=True)
        return MapFile("soft", ".mat", stream.getvalue())
    array = np.asarray(answer)
    if array.dtype.kind not in "fb" and array.dtype not in (np.uint8, np.uint16):
        return MapFile("labels", ".png", png_bytes(_renumbered(array, shape)))
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape}, expected {shape}")
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif array.dtype.kind == "f":
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise DataError("returned values outside [0, 1] or NaN, expected a soft map in [0, 1]")
        array = np.rint(array * 65535.0).astype(np.uint16)
    return MapFile("soft", ".png", png_bytes(np.ascontiguousarray(array)))


def _renumbered(labels: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Return a label map with the numbers 1 .. n."""
    if labels.shape != shape:
        raise DataError(f"returned shape {labels.shape}, expected {shape}")
    if labels.dtype.kind not in "iub":
        raise DataError(f"returned dtype {labels.dtype}, expected integer labels")
    values, positions = np.unique(labels, return_inverse=True)
    if values.size > 65535:
        raise DataError(f"returned {values.size} labels, expected at most 65535")
    return (positions.reshape(labels.shape) + 1).astype(np.uint16)
