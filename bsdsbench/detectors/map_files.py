"""The folder of a detector's maps: one file per image, and a description in run.json."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from attrs import Factory, asdict, define
from numpy.typing import NDArray

from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError, InputWarning, Setting, warn
from bsdsbench.images import check_soft_map
from bsdsbench.io import as_json, png_bytes, read_json, remove_leftovers, write_atomic
from bsdsbench.text import show

RUN_FILE = "run.json"
_SUFFIXES = (".png", ".mat")


@define
class MapsRecord:
    """The contents of run.json: the detector, and what is known about its maps so far."""

    function: str  # MODULE:FUNCTION or the name of a baseline
    name: str  # name in tables
    tag: str | None  # the user's label for the maps
    file: dict[str, str] | None  # "name" and "blake2b" hash of the file that defines the function
    versions: dict[str, str]  # versions of "bsdsbench" and "python"
    made: str = Factory(lambda: time.strftime("%Y-%m-%d %H:%M"))  # when the first map was made
    kind: str | None = None  # "soft" or "labels"; None before the first map
    milliseconds: dict[str, float] = Factory(dict)  # image id -> time of the detector's call
    scales: str | None = None  # str(MultiScale), or None for a single scale

    def detector(self) -> dict[str, object]:
        """Return the fields that identify the detector, to be stored with its scores."""
        optional = ("scales",) if self.scales else ()
        names = ("function", "name", "tag", "file", "versions", *optional)
        return {name: getattr(self, name) for name in names}

    def save(self, maps: Path) -> None:
        """Write the record to run.json in the folder `maps`, omitting unset `kind` and `scales`."""
        optional = ("kind", "scales")
        fields = {k: v for k, v in asdict(self).items() if v or k not in optional}
        write_atomic(maps / RUN_FILE, as_json(fields))


def maps_in(maps: Path) -> list[Path]:
    """Return the paths of the .png and .mat files directly in a folder."""
    return [path for path in maps.iterdir() if path.suffix in _SUFFIXES]


def open_maps(maps: Path, record: MapsRecord, *, resume: bool, fresh: bool) -> set[str]:
    """Create or reopen the folder of a detector's maps, and return the ids of the maps it keeps.

    `resume` keeps the maps in the folder, and `fresh` deletes them. If maps are kept, their kind,
    date and times are copied into `record` from run.json. Until then, `record` only describes the
    detector: its function and the file of this, the user's tag, the image scales it averages.

    Raises DataError if the folder contains maps that bsdsbench did not write, if it contains maps
    and neither option is set, or if `resume` is set and the maps were made with a different
    function, tag or scales. Warns if `resume` is set and the detector's file has changed.
    """
    maps.mkdir(parents=True, exist_ok=True)
    remove_leftovers(maps)
    present = maps_in(maps)
    if not present:
        return set()
    holds = f"{show(maps)}: holds {len(present)} maps"
    if not (maps / RUN_FILE).is_file():
        raise DataError(f"{holds} that bsdsbench did not write, expected a new folder")
    if fresh:
        for path in present:
            path.unlink()
        return set()
    earlier = read_json(maps / RUN_FILE, "what a detector's run wrote")  # fields of a MapsRecord
    identifying = ("function", "tag", "scales")
    details = [f"{key} {earlier[key]}" for key in identifying if earlier.get(key)]
    holds += f" of {earlier.get('name')} ({', '.join(details)}; {earlier.get('made')})"
    if not resume:
        fix = Setting("resume", True, "keeps them"), Setting("fresh", True, "replaces them")
        raise DataError(holds, fix=fix)
    different = [key for key in identifying if earlier.get(key) != getattr(record, key)]
    if different:
        raise DataError(f"{holds}, expected maps of the same {' and '.join(different)} to resume")
    earlier_file = earlier.get("file")  # name and hash; None if it was not recorded
    if record.file and earlier_file not in (None, record.file):
        edited = f"{holds}; {record.file['name']} has changed since"
        warn(InputWarning(edited, fix=Setting("fresh", True, "replaces them")))
    kept_ids = {path.stem for path in present}
    record.made = earlier.get("made", record.made)  # the date of the first map
    record.kind = earlier.get("kind")  # "soft" or "labels"
    times = earlier.get("milliseconds", {})
    record.milliseconds = {image_id: ms for image_id, ms in times.items() if image_id in kept_ids}
    return kept_ids


class MapFile(NamedTuple):
    """A map encoded as a file."""

    # "labels" for a PNG file of labels, otherwise "soft". A .mat file of label maps is also "soft",
    # because its readers recognise label maps by themselves.
    kind: str
    suffix: str  # ".png" or ".mat"
    content: bytes


def encode_map(answer: object, shape: tuple[int, ...]) -> MapFile:
    """Encode what a detector returned for an image of `shape` (H, W) as a PNG or .mat file.

    The dtype of a map decides what it is and how it is stored:

    - uint8 or uint16: a soft map, stored unchanged as a PNG
    - bool: a soft map, stored as a PNG of 0 and 255
    - floats in [0, 1]: a soft map, stored as a 16-bit PNG, rounded to 1 / 65535
    - other integers: a label map, stored as a 16-bit PNG with the labels renumbered to 1 .. n;
      refused if they change at most pixels, as soft maps and thin lines do

    A list or tuple of label maps is stored as a .mat file with the cell array `segs`.

    Raises DataError if the list is empty, a shape or dtype is wrong, or a float is not in [0, 1].
    """
    if isinstance(answer, list | tuple):
        from scipy.io import savemat

        if not answer:
            raise DataError("the detector returned an empty list, expected at least one label map")
        cell_array = np.empty((1, len(answer)), object)  # saved as a MATLAB cell
        for k, labels in enumerate(answer):
            cell_array[0, k] = _renumber(np.asarray(labels), shape)
        stream = io.BytesIO()
        savemat(stream, {"segs": cell_array}, do_compression=True)
        return MapFile("soft", ".mat", stream.getvalue())
    array = np.asarray(answer)
    lengths = [length for length in shape if length != 1]
    if array.ndim > 2 and [*array.squeeze().shape] == lengths:  # (1, H, W), as networks return
        array = array.reshape(shape)
    if array.ndim == 0 or array.dtype.kind in "OSU":  # a scalar, objects or text
        raise DataError(
            f"the detector returned {kind_of_value(answer)}, expected an array {shape} of numbers"
        )
    is_soft = array.dtype.kind in "fb" or array.dtype in (np.uint8, np.uint16)
    if not is_soft:
        if array.dtype.kind in "iu" and _changes_at_most_pixels(array):
            raise DataError(
                f"the detector returned {array.dtype} that changes at most pixels, expected a "
                "soft map (return floats in [0, 1], uint8 or bool), or labels (return [labels])"
            )
        return MapFile("labels", ".png", png_bytes(_renumber(array, shape)))
    if array.shape != shape:
        raise DataError(f"the detector returned shape {array.shape}, expected {shape}")
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    elif array.dtype.kind == "f":
        array = check_soft_map(array, "the detector's map")
        # In float64, because 65535 exceeds the largest float16
        array = np.rint(array.astype(np.float64) * 65535.0).astype(np.uint16)
    return MapFile("soft", ".png", png_bytes(np.ascontiguousarray(array)))


def _changes_at_most_pixels(labels: NDArray[Any]) -> bool:
    """Return True if most pixels differ from one of their four neighbours, as in a soft map.

    An integer map like this is probably not of labels, and is refused. The limit is half of the
    pixels. If labels have at most 100 pixels on average, as small objects and superpixels do, most
    of their pixels are at an edge, so it is 80 %: in a 5 x 5 square, 16 of 25 pixels (64 %) are.
    Pixels with the lowest value, often the background, are left out.
    """
    differs = np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        along_axis = np.moveaxis(differs, axis, 0)  # a view: filling it fills `differs`
        changes = np.diff(np.moveaxis(labels, axis, 0), axis=0) != 0
        along_axis[:-1] |= changes  # the pixels before and after each change
        along_axis[1:] |= changes
    inside = labels > labels.min(initial=np.iinfo(labels.dtype).max)  # `initial` if it is empty
    n_pixels, n_labels = np.count_nonzero(inside), np.unique(labels[inside]).size
    has_small_labels = n_pixels <= 100 * n_labels
    most = 0.8 if has_small_labels else 0.5
    return bool(np.count_nonzero(differs & inside) > most * n_pixels)


def _renumber(labels: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Return a label map whose n labels are renumbered to 1 .. n, in ascending order.

    Raises DataError unless these are up to 65535 integers or bool values, of the given shape.
    """
    if labels.shape != shape:
        raise DataError(f"the detector returned shape {labels.shape}, expected {shape}")
    if labels.dtype.kind not in "iub":
        raise DataError(f"the detector returned dtype {labels.dtype}, expected integer labels")
    values, indices = np.unique(labels, return_inverse=True)
    if values.size > 65535:
        raise DataError(f"the detector returned {values.size} labels, expected at most 65535")
    return (indices.reshape(labels.shape) + 1).astype(np.uint16)
