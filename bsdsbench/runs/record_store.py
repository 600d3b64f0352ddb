"""The records of a run in OUT/.records: what an interrupted or repeated run need not do again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NamedTuple

from bsdsbench.files.bounded import MAX_DECODED_BYTES, show
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.manifest import digest, is_run
from bsdsbench.files.writing import inside, locked, write_atomic
from bsdsbench.loaders.official_txt import PER_IMAGE
from bsdsbench.runs.counts_file import unpack_records
from bsdsbench.scores.counts import ImageRecord

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
