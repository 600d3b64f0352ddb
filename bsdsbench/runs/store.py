"""The records a run has made so far, one file each, so that a killed run resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from bsdsbench.files.bounded import read_bytes
from bsdsbench.files.locking import locked
from bsdsbench.files.manifest import digest
from bsdsbench.files.writing import inside, write_atomic
from bsdsbench.loaders.official_txt import PER_IMAGE
from bsdsbench.runs.counts_file import pack_records, unpack_records
from bsdsbench.scores.counts import ImageRecord

FOLDER = ".records"
DIGEST = 32  # characters of a checksum


class RecordStore:
    """Records under OUT/.records, named by a hash of the image id and by their fingerprint.

    Each file is that of `pack_records` and a checksum of it.
    """

    def __init__(self, out: Path) -> None:
        self.folder = inside(out, f"{FOLDER}/record").parent
        self.known: dict[str, str] = {}
        for path in self.folder.glob("*-*.npz"):
            key, _, mark = path.stem.partition("-")
            self.known[key] = mark

    def fingerprint(self, image_id: str) -> str:
        """The fingerprint of the stored record of this image, or ''."""
        return self.known.get(_key(image_id), "")

    def load(self, image_id: str) -> ImageRecord | None:
        """The stored record, or None if its file is gone or damaged."""
        path = self._path(image_id)
        try:
            data = read_bytes(path)
            if digest(data[:-DIGEST]).encode() != data[-DIGEST:]:
                return None
            (record,) = unpack_records(path, data[:-DIGEST])
        except ValueError:
            return None
        mine = record.image_id == image_id and record.fingerprint == self.known[_key(image_id)]
        return record if mine else None

    def add(self, record: ImageRecord) -> None:
        """Keep a record; an older one of the same image is dropped. Raises OSError."""
        key = _key(record.image_id)
        old = self._path(record.image_id) if key in self.known else None
        self.known[key] = record.fingerprint
        data = pack_records([record])
        data += digest(data).encode()
        write_atomic(self._path(record.image_id), data, durable=False)
        if old is not None and old != self._path(record.image_id):
            old.unlink(missing_ok=True)

    def forget(self, image_ids: Iterable[str]) -> None:
        """Drop the stored records of these images."""
        for image_id in image_ids:
            self._path(image_id).unlink(missing_ok=True)
            self.known.pop(_key(image_id))

    def clear(self) -> None:
        """Forget everything (`--fresh`)."""
        for path in self.folder.glob("*-*.npz"):
            path.unlink(missing_ok=True)
        self.known.clear()

    def _path(self, image_id: str) -> Path:
        key = _key(image_id)
        return self.folder / f"{key}-{self.known[key]}.npz"


def _key(image_id: str) -> str:
    raw = image_id.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(raw, digest_size=10).hexdigest()


def run_locked(out: Path, wait: float = 0.0) -> AbstractContextManager[None]:
    """Hold OUT for one run or one saving. Raises as `locked`."""
    return locked(out, FOLDER, PER_IMAGE, wait=wait)
