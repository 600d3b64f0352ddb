"""A run's folder, OUT, in three sentences.

While a run is unfinished OUT holds records.db and no result.json, and a call with the same inputs
goes on. result.json is removed first and written last, and names the hash of counts.npz; a folder
without it is not a result. One run at a time holds OUT's lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import FaultError, parse_json, read_bytes, reading, show, too_much_json
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.writing import digest, locked, remove_leftovers, write_atomic, write_durable
from bsdsbench.loaders.official_txt import PER_IMAGE
from bsdsbench.runs.record_store import unpack_records
from bsdsbench.scores.counts import ImageRecord

RESULT, COUNTS, RECORDS, UNFINISHED = "result.json", "counts.npz", "records.db", ".result.json"
SCHEMA = "bsdsbench.result/1"
# What an earlier result left, and would be wrong beside another one
OURS = ("eval_*.txt", f"{PER_IMAGE}/*.txt", "pr.png", "pr.svg", "timing.json", "overlays/*.png")


class Records:
    """records.db: what a run has counted so far, by image id and a hash of all it depends on."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path, self._database = path, database
        self.marks: dict[str, str] = dict(database.execute("select id, mark from record"))

    def load(self, image_id: str) -> ImageRecord | None:
        """The stored record, or None if it is damaged."""
        rows = self._database.execute(
            "select cast(data as blob), hash from record where id=?", (image_id,)
        )
        data, told = rows.fetchone()
        with contextlib.suppress(DataError):
            if digest(data) != told:
                return None
            (record,) = unpack_records(self.path, data)
            if record.image_id == image_id and record.fingerprint == self.marks[image_id]:
                return record
        return None

    def __len__(self) -> int:
        return int(self._database.execute("select count(*) from record").fetchone()[0])

    def add(self, record: ImageRecord, data: bytes) -> None:
        """Keep a record, of which `data` is what `pack_records` gives."""
        row = (record.image_id, record.fingerprint, data, digest(data))
        self._database.execute("insert or replace into record values (?, ?, ?, ?)", row)


@contextmanager
def unfinished(out: Path, fresh: bool) -> Iterator[Records]:
    """Hold OUT for a run, which is no result meanwhile. Raises RunLockedError, DataError, OSError.

    fresh : forget what an earlier run counted
    """
    with locked(out):
        remove_leftovers(out)
        path = out / RECORDS
        if fresh:
            path.unlink(missing_ok=True)
        try:
            database = _opened(path)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the second: its message
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(None, str(error), str(path)) from None
            path.unlink()  # damaged by a power cut: these images are counted again
            database = _opened(path)
        (out / RESULT).unlink(missing_ok=True)
        try:
            with closing(database):
                yield Records(path, database)
        except sqlite3.Error as error:  # a full disk
            raise OSError(None, str(error), str(path)) from None


def _opened(path: Path) -> sqlite3.Connection:
    # OUT's own lock is held, and network disks have poor ones
    where = path.resolve().as_uri() + "?nolock=1"
    database = sqlite3.connect(where, uri=True, check_same_thread=False, isolation_level=None)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # A killed process loses nothing by this; what a power cut damages is found when it is read
    database.execute("pragma synchronous=off")
    database.execute(
        "create table if not exists record (id text primary key, mark text, data blob, hash text)"
    )
    if database.execute("pragma quick_check").fetchone() != ("ok",):
        raise sqlite3.DatabaseError
    return database


def write_result(
    out: Path, result: dict[str, Any], counts: bytes, others: Iterable[tuple[str, str | bytes]]
) -> None:
    """Write a result as a whole, in place of an earlier one. Raises RunLockedError, OSError."""
    named = {**result, "files": {COUNTS: digest(counts)}}
    data = as_json(named)
    if too_much_json(data):  # counts.npz has all of them
        data = as_json({**named, "images": []})
    with locked(out, wait=60):
        # It is there before the earlier one goes, so that what is killed in between is known
        write_durable(out / UNFINISHED, data)
        (out / RESULT).unlink(missing_ok=True)
        for stale in (path for pattern in OURS for path in out.glob(pattern)):
            stale.unlink()
        for name, content in others:
            write_atomic(out / name, content, durable=False)
        write_atomic(out / COUNTS, counts)
        os.replace(out / UNFINISHED, out / RESULT)


def as_json(content: dict[str, Any]) -> bytes:
    """The bytes of a JSON file."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_result(folder: Path) -> tuple[dict[str, Any], tuple[ImageRecord, ...]]:
    """What result.json says, and the records of counts.npz. Raises FileFormatError."""
    refuse_unfinished(folder)
    path = folder / RESULT
    data, counts = read_bytes(path), read_bytes(folder / COUNTS)
    with reading(path, "the result of a run"):
        found = parse_json(data)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise FaultError(f"expected schema {SCHEMA!r}")
        named = found.get("files")
        if not isinstance(named, dict) or named.get(COUNTS) != digest(counts):
            raise FaultError(
                f"does not name this {COUNTS} (altered, or of another run), expected both as they "
                "were written: evaluate again with -o on this folder"
            )
    return found, unpack_records(folder / COUNTS, counts)


def is_run(folder: Path) -> bool:
    """True for the folder of a finished run."""
    return (folder / RESULT).exists()


def refuse_unfinished(folder: Path) -> None:
    """Raise FileFormatError for a run that was begun and has no result."""
    if not is_run(folder) and any((folder / name).exists() for name in (RECORDS, UNFINISHED)):
        raise FileFormatError(
            f"{show(folder)}: a run that was not finished; the command that began it goes on"
        )
