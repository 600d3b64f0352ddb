"""Records on disk: the bytes of counts.npz, and what a run has done so far.

Records are written in columns, and checked when they are read. Those in OUT/.records an interrupted
or repeated run need not make again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import (
    MAX_DECODED_BYTES,
    MAX_TEXT,
    MAX_WHOLE,
    FaultError,
    read_bytes,
    reading,
    show,
)
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.writing import digest, inside, is_run, locked, write_atomic
from bsdsbench.loaders.formats import unpack_npz
from bsdsbench.loaders.official_txt import PER_IMAGE
from bsdsbench.metrics import registry
from bsdsbench.scores.counts import ImageRecord, stacked

MAX_IMAGES = 200_000
ABOUT = {"ids": "U", "sizes": "iu", "fingerprints": "U"}
LATER = ("truths", "forms")  # text, not in counts of the first version
Columns = dict[str, NDArray[Any]]


def columns(rows: Sequence[ImageRecord]) -> Columns:
    """`ids`, `sizes`, `fingerprints`, `truths`, `forms`, and METRIC.FIELD stacked, image first.

    Raises ValueError if the images have arrays of different shapes.
    """
    arrays: Columns = {
        "ids": np.array([r.image_id for r in rows], np.str_),
        "sizes": np.array([r.size for r in rows], np.int64).reshape(-1, 2),
        "fingerprints": np.array([r.fingerprint for r in rows], np.str_),
        "truths": np.array([r.truth for r in rows], np.str_),
        "forms": np.array([r.form for r in rows], np.str_),
    }
    for metric in dict.fromkeys(m for r in rows for m in r.counts):
        counts = [r.counts[metric] for r in rows if metric in r.counts]
        for name, array in stacked(counts, (), registry.get(metric).ragged).items():
            arrays[f"{metric}.{name}"] = array
    return arrays


def pack_records(records: Iterable[ImageRecord]) -> bytes:
    """Records as the bytes of an .npz with the arrays of `columns`. Same records, same bytes.

    Raises ValueError if the images have arrays of different shapes.
    """
    buffer = BytesIO()
    np.savez_compressed(buffer, **columns(list(records)))  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_records(path: Path, data: bytes | None = None) -> tuple[ImageRecord, ...]:
    """Read what `pack_records` wrote into `path`, or `data` found there. Raises FileFormatError."""
    data = read_bytes(path) if data is None else data
    with reading(path, "a bsdsbench counts file"):
        arrays = unpack_npz(data, text=True, limit=MAX_DECODED_BYTES)
        check_columns(arrays)
        return tuple(_row(arrays, i) for i in range(len(arrays["ids"])))


def _row(arrays: Columns, i: int) -> ImageRecord:
    counts: dict[str, Any] = {}
    for key, array in arrays.items():
        metric, dot, name = key.partition(".")
        if dot:
            row = array[i]
            if name in registry.get(metric).ragged:
                row = row[~np.isnan(row).all(axis=-1)]
            counts.setdefault(metric, {})[name] = row
    rows, cols = arrays["sizes"][i]
    return ImageRecord(
        str(arrays["ids"][i]),
        (int(rows), int(cols)),
        counts,
        str(arrays["fingerprints"][i]),
        truth=str(arrays["truths"][i]) if "truths" in arrays else "",
        form=str(arrays["forms"][i]) if "forms" in arrays else "",
    )


def check_columns(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise FaultError unless the arrays are whole columns of sound counts. See `columns`."""
    for name, kinds in ABOUT.items():
        if name not in arrays or arrays[name].dtype.kind not in kinds:
            raise FaultError(f"has no sound array {name!r}, expected it in a counts file")
    count = len(arrays["ids"]) if arrays["ids"].ndim == 1 else -1
    if count > MAX_IMAGES:
        raise FaultError(f"has {count} images, expected at most {MAX_IMAGES}")
    expected = {"ids": (count,), "sizes": (count, 2), "fingerprints": (count,)}
    if any(arrays[name].shape != shape for name, shape in expected.items()):
        raise FaultError("ids, sizes and fingerprints of different lengths, expected one per image")
    if arrays["ids"].dtype.itemsize > 4 * MAX_TEXT:
        raise FaultError(f"has ids of over {MAX_TEXT} characters, expected shorter ones")
    _check_range("sizes", arrays["sizes"])
    named: dict[str, dict[str, NDArray[Any]]] = {}
    for key, array in arrays.items():
        metric, dot, name = key.partition(".")
        if dot:
            named.setdefault(metric, {})[name] = array
        elif key in LATER and (array.dtype.kind != "U" or array.ndim != 1):
            raise FaultError(
                f"{key}: {array.dtype} of shape {array.shape}, expected text per image"
            )
        elif key not in (*ABOUT, *LATER):
            raise FaultError(f"has an array {key[:40]!r}, expected METRIC.FIELD")
        if array.shape[:1] != (count,):
            raise FaultError(f"{key[:80]}: shape {array.shape}, expected one row per image")
    for metric, found in named.items():
        if count:
            _check_metric(metric, found)


def _check_metric(metric: str, found: Mapping[str, NDArray[Any]]) -> None:
    """The fields of the metric's counts, each of its type and in its range."""
    for name, array in found.items():
        what = f"{metric}.{name}"
        if array.dtype.kind == "f":
            if np.isinf(array).any():
                raise FaultError(f"{what}: not finite numbers, expected measures")
        else:
            _check_range(what, array)
        if name == "thresholds" and not (np.diff(array, axis=-1) > 0).all():
            raise FaultError(f"{what}: not increasing, expected thresholds")


def _check_range(what: str, array: NDArray[Any]) -> None:
    """Whole numbers from 0 to 2^53: what a count may be."""
    if array.dtype.kind not in "iu":
        raise FaultError(f"{what}: {array.dtype}, expected whole numbers")
    if array.size and not (array.min() >= 0 and array.max() <= MAX_WHOLE):
        raise FaultError(f"{what}: from {array.min()} to {array.max()}, expected counts")


FOLDER = ".records"
LOG = "records"
HEAD = 20 + 1 + 32 + 1 + 12 + 1 + 32 + 1  # characters of an entry's first line


class _Entry(NamedTuple):
    fingerprint: str
    at: int
    size: int
    checksum: str


class RecordStore:
    """Records in one file, to which each is appended: a line about it, then `pack_records` of it.

    The line holds a hash of the image id, the fingerprint, the size and a checksum of the bytes.
    The last entry of an image counts, and what a killed run left half written at the end is cut
    off. Whoever opens it holds the folder (`run_locked`). Raises OSError and DataError.
    """

    def __init__(self, out: Path) -> None:
        self.path = inside(out, f"{FOLDER}/{LOG}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.known: dict[str, _Entry] = {}
        self._superseded = False
        if self.path.is_symlink() or (self.path.is_file() and self.path.stat().st_nlink > 1):
            self._detach()
        elif self.path.exists() and not self.path.is_file():
            raise DataError(f"{show(self.path)}: not a file, expected the records of a run")
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        self._file.truncate(self._read_heads())

    def _detach(self) -> None:
        """Start with a copy, or with none: appending would change a file elsewhere."""
        data = b"" if self.path.is_symlink() else self.path.read_bytes()
        write_atomic(self.path, data, durable=False)

    def _read_heads(self) -> int:
        """Note where each record lies; the length of what is whole."""
        whole, end = 0, os.fstat(self._file.fileno()).st_size
        while whole < end:
            self._file.seek(whole)
            words = self._file.read(HEAD).decode("ascii", "replace").split()
            if len(words) != 4 or not words[2].isdigit():
                break
            key, fingerprint, size, checksum = words
            following = whole + HEAD + int(size)
            if following > min(end, MAX_DECODED_BYTES):
                break
            self._superseded |= key in self.known
            self.known[key] = _Entry(fingerprint, whole + HEAD, int(size), checksum)
            whole = following
        return whole

    def fingerprint(self, image_id: str) -> str:
        """The fingerprint of the stored record of this image, or ''."""
        entry = self.known.get(_key(image_id))
        return entry.fingerprint if entry else ""

    def load(self, image_id: str) -> ImageRecord | None:
        """The stored record, or None if there is none or it is damaged."""
        entry = self.known.get(_key(image_id))
        data = self._bytes(entry) if entry else b""
        if entry is None or digest(data) != entry.checksum:
            return None
        with suppress(ValueError):
            (record,) = unpack_records(self.path, data)
            if record.image_id == image_id and record.fingerprint == entry.fingerprint:
                return record
        return None

    def add(self, record: ImageRecord, data: bytes) -> None:
        """Keep a record, of which `data` is what `pack_records` gives. Raises OSError."""
        key, checksum = _key(record.image_id), digest(data)
        head = f"{key} {record.fingerprint} {len(data):12d} {checksum}\n".encode("ascii")
        at = self._file.seek(0, os.SEEK_END) + HEAD
        try:
            rest = memoryview(head + data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:  # a full disk is reported without a name
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._superseded |= key in self.known
        self.known[key] = _Entry(record.fingerprint, at, len(data), checksum)

    def forget(self, image_ids: Iterable[str]) -> None:
        """Drop the stored records of these images."""
        for image_id in image_ids:
            self._superseded |= self.known.pop(_key(image_id), None) is not None

    def clear(self) -> None:
        """Forget everything (`--fresh`)."""
        self._file.truncate(0)
        self.known.clear()

    def close(self) -> None:
        """Close the file; it is written again without the records that no longer count."""
        kept = None
        if self._superseded:
            kept = b"".join(self._entry(key) for key in self.known)
        self._file.close()
        if kept is not None:
            write_atomic(self.path, kept, durable=False)

    def _entry(self, key: str) -> bytes:
        entry = self.known[key]
        self._file.seek(entry.at - HEAD)
        return self._file.read(HEAD + entry.size)

    def _bytes(self, entry: _Entry) -> bytes:
        self._file.seek(entry.at)
        return self._file.read(entry.size)


def _key(image_id: str) -> str:
    raw = image_id.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(raw, digest_size=10).hexdigest()


def run_locked(out: Path, wait: float = 0.0) -> AbstractContextManager[None]:
    """Hold OUT for one run or one saving. Raises as `locked`."""
    return locked(out, FOLDER, PER_IMAGE, wait=wait)


def refuse_unfinished(path: Path) -> None:
    """Raise FileFormatError for a folder that has records but no result."""
    if (path / FOLDER).is_dir() and not is_run(path):
        raise FileFormatError(
            f"{path}: a run that was not finished; the command that began it goes on with it"
        )
