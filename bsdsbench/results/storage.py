"""Store a run in its folder OUT.

While a run is unfinished, OUT holds records.db and no result.json, and a call with the same inputs
continues the run. result.json is removed first and written last, and contains the hash of
counts.npz; a folder without result.json is not a result. One run at a time holds the lock of OUT.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from io import BytesIO
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import (
    FaultError,
    as_json,
    digest,
    locked,
    parse_json,
    read_bytes,
    reading,
    remove_leftovers,
    too_much_json,
    write_atomic,
)
from bsdsbench.loaders.formats.official_txt import PER_IMAGE
from bsdsbench.loaders.formats.pictures import unpack_npz
from bsdsbench.loaders.pairing import Layout
from bsdsbench.metrics import registry
from bsdsbench.protocol.tasks import Task
from bsdsbench.scores.counts import (
    NO_EVIDENCE,
    Counts,
    Evidence,
    ImageRecord,
    Sides,
    Stack,
    Value,
    counts_of,
)
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import show

RESULT, COUNTS, RECORDS, UNFINISHED = "result.json", "counts.npz", "records.db", ".result.json"
SCHEMA = "bsdsbench.result/1"
# Files of an earlier result, which are deleted because they would be wrong beside a new result
OURS = ("eval_*.txt", f"{PER_IMAGE}/*.txt", "pr.png", "pr.svg", "timing.json", "overlays/*.png")
_SIDES = ("pred", "gt")  # fields of a record: what their files show
MAX_IMAGES = 200_000
MAX_BYTES = 1 << 31  # of all columns together: 200,000 images of boundary and pixel counts
# Arrays of counts.npz with an entry for each image, and the fields of its record
_FIELDS = {
    "ids": "image_id",
    "sizes": "size",
    "fingerprints": "fingerprint",
    "truths": "truth",
    "forms": "form",
    "whole_truths": "whole_truth",
}
_OPTIONAL_ARRAYS = {"whole_truths"}  # missing in runs of earlier versions
_GROUPS = "groups"  # the groups of each image as JSON, if any image has groups


class Records:
    """The records that a run has counted so far (records.db), by image id.

    Each record has a fingerprint, the hash of everything that it depends on.
    """

    def __init__(self, path: Path) -> None:
        # OUT's own lock is held, and network disks have poor ones
        where = path.resolve().as_uri() + "?nolock=1"
        self.database = sqlite3.connect(where, uri=True, isolation_level=None)
        try:
            self.fingerprints = self._opened()
        except BaseException:
            self.database.close()  # a damaged file is deleted next
            raise

    def _opened(self) -> dict[str, str]:
        """Create the table, check the whole file, and return the fingerprint of each image."""
        execute = self.database.execute
        # A killed process loses nothing. Damage by a power cut is found when the file is read.
        execute("pragma synchronous=off")
        execute("pragma locking_mode=exclusive")  # one journal for all records
        execute(
            "create table if not exists record (id text primary key, mark text, data blob, hash "
            "text)"
        )
        if execute("pragma quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError
        return dict(execute("select id, mark from record"))

    def changed_sources(self, sources: Mapping[str, str]) -> list[str]:
        """Return the metrics whose source file differs from the one of the last call.

        `sources` maps metrics to hashes of their source files, which are stored.
        """
        self.database.execute("create table if not exists source (metric text primary key, hash)")
        before = dict(self.database.execute("select metric, hash from source"))
        self.database.executemany("insert or replace into source values (?, ?)", sources.items())
        return [name for name in sources if before.get(name, sources[name]) != sources[name]]

    def __len__(self) -> int:
        """Return the number of stored records, also after an interrupt within `add`."""
        (count,) = self.database.execute("select count(*) from record").fetchone()
        return int(count)

    def load(self, image_id: str) -> ImageRecord | None:
        """Return the stored record, or None if it is missing or damaged."""
        row = "select data, hash from record where id=?"
        with suppress(ValueError, sqlite3.Error, TypeError):
            data, stored_hash = self.database.execute(row, (image_id,)).fetchone()
            if digest(data) == stored_hash:
                record = unpack_record(data)
                if (record.image_id, record.fingerprint) == (image_id, self.fingerprints[image_id]):
                    return record
        return None

    def add(self, record: ImageRecord, data: bytes) -> None:
        """Store a record, given also as the bytes that `pack_record` made in a worker."""
        row = (record.image_id, record.fingerprint, data, digest(data))
        self.database.execute("insert or replace into record values (?, ?, ?, ?)", row)
        self.fingerprints[record.image_id] = record.fingerprint


@contextmanager
def unfinished(out: Path, fresh: bool) -> Iterator[Records]:
    """Lock OUT for a run and yield its records. OUT is not a result in the meantime.

    `fresh` deletes what an earlier run counted. Raises RunLockedError if another run holds the
    lock, and OSError if the disk is full.
    """
    with locked(out):
        remove_leftovers(out)
        path = out / RECORDS
        if fresh:
            path.unlink(missing_ok=True)
        try:
            try:
                records = Records(path)
            except (sqlite3.Error, UnicodeDecodeError):  # the second: of its message
                path.unlink()  # damaged by a power cut: these images are counted again
                records = Records(path)
            (out / RESULT).unlink(missing_ok=True)
            with closing(records.database):
                yield records
        except sqlite3.Error as error:  # a full disk
            raise OSError(None, str(error), str(path)) from None


@contextmanager
def writing_result(
    out: Path, content: Mapping[str, Any], counts: bytes
) -> Iterator[Callable[[str, str], None]]:
    """Replace the result in OUT, and yield a function that writes its further files.

    The function takes the name and the text of a file. Raises RunLockedError if another run holds
    the lock, and OSError if a file cannot be written.
    """
    content = {**content, "files": {COUNTS: digest(counts)}}
    data = _result_json(content)
    if too_much_json(data):  # counts.npz has all of the images
        data = _result_json({**content, "images": []})
    with locked(out, wait=60):
        # It is there before the earlier one goes, so that what is killed in between is known
        write_atomic(out / UNFINISHED, data)
        (out / RESULT).unlink(missing_ok=True)
        for pattern in OURS:
            for stale in out.glob(pattern):
                stale.unlink()
        made = {""}

        def write(name: str, content: str) -> None:  # not atomic: it is no result yet
            path, folder = f"{out}/{name}", os.path.dirname(name)
            try:
                if folder not in made:
                    os.makedirs(out / folder, exist_ok=True)
                    made.add(folder)
                with open(path, "wb") as stream:
                    stream.write(content.encode())
            except BaseException as error:
                with suppress(OSError):
                    os.unlink(path)
                if isinstance(error, OSError):  # a full disk has no name
                    raise OSError(error.errno, error.strerror, path) from None
                raise

        yield write
        write_atomic(out / COUNTS, counts)
        os.replace(out / UNFINISHED, out / RESULT)


def _result_json(content: Mapping[str, Any]) -> bytes:
    """Return the text of result.json with one image per line.

    Indenting every value would take ten times as long.
    """
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    images = ",\n  ".join(map(encode, content["images"]))
    others = [(key, value) for key, value in content.items() if key != "images"]
    fields = [f"{encode(key)}: {as_json(value).rstrip()}" for key, value in others]
    fields.append(f'"images": [\n  {images}\n ]')
    return ("{\n " + ",\n ".join(fields) + "\n}\n").encode()


class StoredResult(NamedTuple):
    """The content of result.json, and the records of counts.npz."""

    content: dict[str, Any]
    records: tuple[ImageRecord, ...]


def read_result(folder: Path) -> StoredResult:
    """Read the folder of a finished run. Raises FileFormatError if a file is missing or damaged."""
    path = folder / RESULT
    data, counts = read_bytes(path), read_bytes(folder / COUNTS)
    with reading(path, "the result of a run"):
        content = parse_json(data)
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise FaultError(f"expected schema {SCHEMA!r}")
        if content.get("files") != {COUNTS: digest(counts)}:
            raise FaultError(
                f"does not name this {COUNTS} (altered, or of another run), expected both as they "
                "were written: evaluate again with -o on this folder"
            )
    return StoredResult(content, unpack_records(folder / COUNTS, counts))


def is_run(folder: Path) -> bool:
    """Return True if the folder holds a finished run.

    Raises FileFormatError if the run was not finished.
    """
    done = (folder / RESULT).exists()
    if not done and ((folder / RECORDS).exists() or (folder / UNFINISHED).exists()):
        raise FileFormatError(
            f"{show(folder)}: an unfinished run; repeat the command that began it to continue"
        )
    return done


# ---- where the inputs came from ------------------------------------------------------------------

_LAYOUTS = ("pred_layout", "gt_layout")


@attrs.frozen(kw_only=True)
class Provenance:
    """The inputs of a run, and how the run was made. Unknown values are None or ().

    The names of the fields are the keys of `provenance` in result.json.
    """

    # Folders of a run, as they were given
    pred: str | None = None
    gt: str | None = None
    photos: str | None = None
    valid: str | None = None
    images: str | None = None  # hash of the ids of all shards' images
    pred_kind: str | None = None
    date: str | None = None  # when the last image was counted, in UTC
    # How the files of a side became images
    pred_layout: Layout | None = None
    gt_layout: Layout | None = None
    missing: str | None = None
    sources: Mapping[str, Any] | None = None  # metric of another package -> hash of its file
    split: str | None = None  # the split file
    task: Task | None = None  # that the run was made for
    truth: str | None = None  # of a shard: hash of the ground truth of all shards
    shard: str | None = None  # "I/N"
    detector: Mapping[str, Any] | None = None  # its run.json and times; a file may hold anything
    empty_gt: tuple[str, ...] = ()  # images that the protocol left out
    no_prediction: tuple[str, ...] = ()  # images without a prediction, where that is allowed
    # Of a reference run: its key, and where its counts come from
    reference: str | None = None
    source: str | None = None
    about: str | None = None
    official: str | None = None  # folder of official files
    # Of a run that its author shares: terms of use, and the text to cite it by
    licence: str | None = None
    citation: str | None = None
    # Of the best of several runs: their names, and how often each was chosen
    best_of: tuple[str, ...] = ()
    chosen: tuple[int, ...] = ()

    def to_mapping(self) -> dict[str, object]:
        """Return the known values in plain form, ready for JSON."""
        values = attrs.asdict(self, recurse=False)
        if self.task is not None:
            values["task"] = self.task.to_mapping()
        for name in _LAYOUTS:
            layout = values[name]
            values[name] = None if layout in (None, Layout()) else asdict(layout)
        known = {key: value for key, value in values.items() if value not in (None, ())}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in known.items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Provenance:
        """Rebuild a Provenance from the result of `to_mapping`.

        Values that are missing or malformed, such as in an edited file, keep their defaults.
        """
        known: dict[str, Any] = {}
        for field in attrs.fields(cls):
            value = values.get(field.name)
            if field.name == "task":
                with suppress(DataError, TypeError, KeyError):
                    known["task"] = Task.from_mapping(value)
            elif field.name in _LAYOUTS:
                known[field.name] = Layout.from_mapping(value)
            elif field.name in ("detector", "sources"):
                known[field.name] = ReadOnlyDict(value) if isinstance(value, Mapping) else None
            elif field.default == ():
                kind = int if field.name == "chosen" else str
                if isinstance(value, list | tuple):
                    known[field.name] = tuple(v for v in value if isinstance(v, kind))
            elif isinstance(value, str):
                known[field.name] = value
        return cls(**known)


# ---- records as bytes ----------------------------------------------------------------------------


def pack_record(record: ImageRecord) -> bytes:
    """Convert a record to bytes: a JSON line that describes the arrays, then the arrays."""
    # 0.4 ms less for each image than an .npz
    arrays, values = [], []
    for metric, counts in record.counts.items():
        for name, array in counts.items():
            if array.dtype == np.int64:  # a fourth of the bytes
                array = array.astype(np.min_scalar_type(array.max(initial=0)))
            arrays.append((metric, name, array.dtype.str, array.shape))
            values.append(array.tobytes())
    fields = attrgetter(*_FIELDS.values())(record)
    evidence, shown = {"": Sides(record.pred, record.gt), **record.others}, []
    for name, (pred, gt) in evidence.items():
        shown.append([name, [pred.row(), pred.file], [gt.row(), gt.file]])
    line = json.dumps([*fields, shown, arrays, record.groups])
    return b"\n".join([line.encode(), b"".join(values)])


def unpack_record(data: bytes) -> ImageRecord:
    """Rebuild a record from the bytes of `pack_record`.

    Raises ValueError or TypeError for other bytes.
    """
    line, _, values = data.partition(b"\n")
    image_id, size, fingerprint, *rest = json.loads(line)
    texts, (shown, arrays, groups) = rest[: len(_FIELDS) - 3], rest[len(_FIELDS) - 3 :]
    counts, offset = dict[str, Any](), 0
    for metric, name, dtype, shape in arrays:
        array: NDArray[Any] = np.ndarray(shape, dtype, values, offset)
        counts.setdefault(metric, {})[name] = array
        offset += array.nbytes
    others = {name: Sides(*starmap(Evidence.of_row, sides)) for name, *sides in shown}
    known = *texts, *others.pop(""), groups, others
    return ImageRecord(image_id, tuple(size), counts, fingerprint, 0.0, *known)


def columns_of(
    records: Sequence[ImageRecord], stacks: Mapping[str, Stack]
) -> dict[str, NDArray[Any]]:
    """Convert records to arrays by name: ids, sizes ..., and METRIC.FIELD for the counts.

    `stacks` are the counts of all images by metric. Raises ShapeError if the images have arrays of
    different shapes, and DataError if there is more than `unpack_records` accepts.
    """
    arrays = {}
    for name, field in _FIELDS.items():
        column = list(map(attrgetter(field), records))
        arrays[name] = np.array(column, np.int64 if name == "sizes" else np.str_)
    arrays["sizes"] = arrays["sizes"].reshape(-1, 2)
    for name in ("", *sorted(set().union(*[record.others for record in records]))):
        both = zip(*[record.evidence_for(name) for record in records], strict=True)
        for side, evidence in zip(_SIDES, both, strict=False):  # there may be no records
            key = f"{name}:{side}" if name else side
            arrays[f"{key}_values"] = np.array([e.row() for e in evidence], np.float64)
            arrays[f"{key}_files"] = np.array([e.file for e in evidence], np.str_)
    if any(record.groups for record in records):
        arrays[_GROUPS] = np.array([json.dumps(record.groups) for record in records])
    for metric in records[0].counts if records else ():
        for name, array in stacks[metric].items():
            shape = (len(records), *array.shape) if name in registry.get(metric).shared else None
            arrays[f"{metric}.{name}"] = np.broadcast_to(array, shape or array.shape)
    size = sum(map(attrgetter("nbytes"), arrays.values()))
    if len(records) > MAX_IMAGES or size > MAX_BYTES:
        raise DataError(
            f"counts of {len(records)} images, {size} bytes: expected at most {MAX_IMAGES} "
            f"images and {MAX_BYTES} bytes: evaluate in parts"
        )
    return arrays


def npz_bytes(arrays: Mapping[str, NDArray[Any]], level: int = 3, comment: bytes = b"") -> bytes:
    """Serialise arrays to .npz bytes, deterministically: equal arrays give equal bytes."""
    buffer = BytesIO()
    # Level 6 takes three times as long as level 3. `open` stamps a fixed date, unlike np.savez.
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=level) as packed:
        packed.comment = comment
        for name, array in arrays.items():
            with packed.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_records(path: Path, data: bytes) -> tuple[ImageRecord, ...]:
    """Read the records in the bytes of counts.npz. `path` names the file in errors.

    Raises FileFormatError if the bytes are damaged.
    """
    with reading(path, "a bsdsbench counts file"):
        return records_of(unpack_npz(data, text=True, limit=MAX_BYTES))


def records_of(arrays: dict[str, NDArray[Any]]) -> tuple[ImageRecord, ...]:
    """Rebuild the records from the arrays of `columns_of`, and empty `arrays`.

    Damaged arrays may raise any exception; the caller `reading` turns it into one error message.
    """
    count = arrays["ids"].size
    if count > MAX_IMAGES:
        raise FaultError(f"has {count} images, expected at most {MAX_IMAGES}")
    for name in _OPTIONAL_ARRAYS - arrays.keys():
        arrays[name] = np.full(count, "")
    columns = {field: arrays.pop(name).tolist() for name, field in _FIELDS.items()}
    metrics = [key.partition(":")[0] for key in arrays if key.endswith(":gt_values")]
    evidence = {name: _pop_evidence(arrays, name, count) for name in ("", *metrics)}
    main_evidence = evidence.pop("")
    groups = _groups_of(arrays.pop(_GROUPS, np.full(count, "{}")))
    counts = _counts_per_image(arrays, count)
    records = []
    for k in range(count):
        fields = {field: column[k] for field, column in columns.items()}
        fields["size"] = tuple(fields["size"])
        record = ImageRecord(
            **fields,
            counts={metric: counts_of(values) for metric, values in counts[k].items()},
            pred=main_evidence[k].pred,
            gt=main_evidence[k].gt,
            groups=groups[k],
            others={name: sides[k] for name, sides in evidence.items()},
        )
        records.append(record)
    return tuple(records)


def _pop_evidence(arrays: dict[str, NDArray[Any]], name: str, count: int) -> list[Sides]:
    """Remove the evidence for a metric from `arrays`, and return it for each image.

    `name` is "" for the first metric. Runs of earlier versions have no evidence.
    """
    sides = []
    for side in _SIDES:
        prefix = f"{name}:{side}" if name else side
        rows = arrays.pop(f"{prefix}_values", None)
        files = arrays.pop(f"{prefix}_files", None)
        if rows is None or files is None:
            sides.append([NO_EVIDENCE] * count)
        else:
            sides.append(list(map(Evidence.of_row, rows, files.tolist())))
    return list(map(Sides, *sides))


def _counts_per_image(arrays: Mapping[str, NDArray[Any]], count: int) -> list[dict[str, Any]]:
    """Return metric -> name -> array for each image, from arrays of all images by METRIC.NAME."""
    counts: list[dict[str, Any]] = [{} for _ in range(count)]
    for key, stored in arrays.items():
        metric_name, _, name = key.partition(".")
        metric = registry.get(metric_name)
        (array,) = Counts(**{name: stored}).values()  # checks the array
        if name in metric.shared and (array == array[:1]).all():
            array = np.broadcast_to(array[:1].copy(), array.shape)
        for counts_of_image, row in zip(counts, array[:, np.newaxis], strict=True):
            values = row[0, ...]  # an array, even of a single number
            if name in metric.ragged:
                values = values[~np.isnan(values).all(axis=-1)]
            counts_of_image.setdefault(metric.name, {})[name] = values
    return counts


def _groups_of(texts: NDArray[Any]) -> list[dict[str, Value]]:
    """Parse the groups of each image from JSON.

    Raises FaultError if a value is neither a number nor text.
    """
    groups = list(map(parse_json, map(str.encode, texts.tolist())))
    for values in groups:
        if not isinstance(values, dict) or not all(
            value is None or isinstance(value, str | float) for value in values.values()
        ):
            raise FaultError("groups that are neither numbers nor text, expected these")
    return groups
