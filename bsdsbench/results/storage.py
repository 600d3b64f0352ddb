"""Store a run in its folder OUT: its provenance, its records and its scores.

While a run is unfinished, OUT has records.db but no result.json, and a call with the same inputs
resumes the run. result.json contains the hash of counts.npz. It is deleted first and written last,
so a folder without it is not a finished run. Only one run at a time can lock OUT.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict
from zipfile import ZIP_DEFLATED, ZipFile

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import (
    FaultError,
    Progress,
    as_json,
    digest,
    file_errors,
    json_field,
    json_fields,
    locked,
    parse_json,
    read_bytes,
    remove_leftovers,
    too_much_json,
    write_atomic,
)
from bsdsbench.loaders.formats.official_txt import PER_IMAGE
from bsdsbench.loaders.formats.pictures import unpack_npz
from bsdsbench.loaders.pairing import Layout
from bsdsbench.metrics import registry
from bsdsbench.metrics.optional import ResultFiles
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.scores.counts import Counts, Evidence, ImageRecord, Score, Sides, unchecked_counts
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import show

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

RESULT, COUNTS, RECORDS, UNFINISHED = "result.json", "counts.npz", "records.db", ".result.json"
SCHEMA = "bsdsbench.result/1"
# Patterns of other files of a result. Those of an earlier one are deleted before a run is saved
WRITTEN_FILES = ("eval_*.txt", f"{PER_IMAGE}/*.txt", "pr.png", "pr.svg", "overlays/*.png")
_SIDES = ("pred", "gt")  # fields of `ImageRecord` that hold `Evidence`
MAX_IMAGES = 200_000
MAX_BYTES = 1 << 31  # limit for all arrays: 200,000 images with boundary and pixel counts
# Array of counts.npz with one entry per image -> field of `ImageRecord`
_FIELDS = {
    "ids": "image_id",
    "sizes": "size",
    "fingerprints": "fingerprint",
    "truths": "truth",
    "forms": "form",
    "whole_truths": "whole_truth",
}
_GROUPS = "groups"  # the groups of each image as JSON, if any image has groups


@attrs.frozen(kw_only=True)
class Provenance:
    """The inputs of a run, and how it was made, as in result.json. None or () means unknown."""

    # Folders as given by the user
    pred: str | None = None
    gt: str | None = None
    photos: str | None = None
    valid: str | None = None
    images: str | None = None  # hash of the image ids of all shards together
    pred_kind: str | None = None  # "soft" or "labels", see `Metric.pred_kinds`
    date: str | None = None  # when the last image was counted, in UTC
    # Number and names of the files per image
    pred_layout: Layout | None = None
    gt_layout: Layout | None = None
    missing: str | None = None  # treatment of a missing prediction: "error", "zero" or "skip"
    sources: Mapping[str, Any] | None = None  # plug-in metric -> hash of its source file
    split: str | None = None  # the split file
    task: Task | None = None  # the task that the run was made for
    truth: str | None = None  # only for a shard: hash of the ground truth of all shards
    shard: str | None = None  # "I/N"
    # The content of the detector's run.json, and its times. It is not validated when it is read.
    detector: Mapping[str, Any] | None = None
    empty_gt: tuple[str, ...] = ()  # ids of images left out because their ground truth is empty
    no_prediction: tuple[str, ...] = ()  # ids of images left out because they have no prediction
    # Only for a reference run: its key, and a short and a long description of its source
    reference: str | None = None
    source: str | None = None
    about: str | None = None
    official: str | None = None  # folder of official files
    # Only for a shared run: the terms of use, and the text to cite
    licence: str | None = None
    citation: str | None = None
    best_of: tuple[str, ...] = ()  # only for a run made by `best_of`: the names of its runs

    def to_mapping(self) -> dict[str, object]:
        """Return the fields as a dict for JSON, without those that are None or ().

        A layout is also omitted if it equals `Layout()`: one file per image and no sequences.
        """
        known: dict[str, object] = {}
        for name, value in attrs.asdict(self, recurse=False).items():
            if isinstance(value, Task):
                known[name] = value.to_mapping()
            elif value not in (None, (), Layout()):
                known[name] = asdict(value) if isinstance(value, Layout) else value
        return known

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Provenance:
        """Rebuild a Provenance from JSON. Missing and malformed values become None or ().

        In a list, only the items of a wrong type are dropped.
        """
        known: dict[str, Any] = {}
        for field in attrs.fields(cls):
            value = values.get(field.name)
            if field.name == "task":
                with suppress(DataError, TypeError, KeyError):  # it is malformed
                    known["task"] = Task.from_mapping(value)
            elif field.name in ("pred_layout", "gt_layout"):  # of malformed ones it keeps a part
                known[field.name] = Layout.from_mapping(value)
            elif field.name in ("detector", "sources"):  # mappings, kept without validation
                known[field.name] = ReadOnlyDict(value) if isinstance(value, Mapping) else None
            elif field.default == ():  # a tuple of texts
                if isinstance(value, list | tuple):
                    known[field.name] = tuple(v for v in value if isinstance(v, str))
            elif isinstance(value, str):  # all other fields are texts
                known[field.name] = value
        return cls(**known)  # fields that are not in `known` get their default, None or ()


class RunArguments(TypedDict, total=False):
    """The arguments with which to construct an Evaluation that was read from files."""

    protocol: Required[Protocol]
    name: Required[str]
    records: Required[Sequence[ImageRecord]]
    provenance: Provenance
    reported: dict[str, Score]
    failed: dict[str, str]
    places: dict[str, str]


class Records:
    """The stored records of an unfinished run, in the SQLite file records.db.

    The table `record` has one row per image, with the columns

    - id: the image id
    - mark: the fingerprint of everything on which the counts depend
    - data: the bytes of `pack_record`
    - hash: the hash of `data`

    The attribute `fingerprints` maps the id of each stored image to its mark.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. The caller must hold the lock of its folder.

        Raises sqlite3.Error or UnicodeDecodeError if the file is damaged.
        """
        # SQLite's own locks are unreliable on network disks
        address = path.resolve().as_uri() + "?nolock=1"
        self.database = sqlite3.connect(address, uri=True, isolation_level=None)
        execute = self.database.execute
        try:
            # Safe if the process is killed. A power cut can damage the file: see quick_check.
            execute("pragma synchronous=off")
            execute("pragma locking_mode=exclusive")  # one journal for all records
            execute(
                "create table if not exists record "
                "(id text primary key, mark text, data blob, hash text)"
            )
            if execute("pragma quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick_check failed")
            self.fingerprints: dict[str, str] = dict(execute("select id, mark from record"))
        except BaseException:
            self.database.close()  # the caller deletes a damaged file
            raise

    def changed_sources(self, sources: Mapping[str, str]) -> list[str]:
        """Store the hash of each metric's source file; return the metrics whose hash has changed.

        sources : metric -> hash of its source file. A metric without a stored hash is unchanged.
        """
        self.database.execute("create table if not exists source (metric text primary key, hash)")
        stored = dict(self.database.execute("select metric, hash from source"))
        self.database.executemany("insert or replace into source values (?, ?)", sources.items())
        return [name for name in sources if stored.get(name, sources[name]) != sources[name]]

    def __len__(self) -> int:
        """Return the number of stored records. It is correct even if `add` was interrupted."""
        (count,) = self.database.execute("select count(*) from record").fetchone()
        return int(count)

    def load(self, image_id: str) -> ImageRecord | None:
        """Return the stored record of an image, or None if it is missing or damaged."""
        query = "select data, hash from record where id=?"
        # ValueError: damaged bytes; TypeError: there is no row, and `fetchone` returns None
        with suppress(ValueError, sqlite3.Error, TypeError):
            data, stored_hash = self.database.execute(query, (image_id,)).fetchone()
            if digest(data) == stored_hash:
                record = unpack_record(data)
                # The fingerprint is of everything on which the counts depend
                if (record.image_id, record.fingerprint) == (image_id, self.fingerprints[image_id]):
                    return record
        return None

    def add(self, record: ImageRecord, data: bytes) -> None:
        """Store a record, replacing any of the same image. `data` are its bytes (`pack_record`)."""
        row = (record.image_id, record.fingerprint, data, digest(data))
        self.database.execute("insert or replace into record values (?, ?, ?, ?)", row)
        self.fingerprints[record.image_id] = record.fingerprint


@contextmanager
def locked_records(out: Path, fresh: bool) -> Iterator[Records]:
    """Lock the folder OUT for a run, and yield the records that an earlier call has stored.

    If `fresh` is True or their file is damaged, the records are deleted first. result.json is
    always deleted, because OUT is not a finished run until the new run ends.

    Raises RunLockedError if another run holds the lock, or OSError if the disk is full.
    """
    with locked(out):
        remove_leftovers(out)
        path = out / RECORDS
        if fresh:
            path.unlink(missing_ok=True)
        try:
            try:
                records = Records(path)
            # A power cut has damaged the file; even decoding sqlite's message may fail
            except (sqlite3.Error, UnicodeDecodeError):
                path.unlink()  # these images are counted again
                records = Records(path)
            (out / RESULT).unlink(missing_ok=True)
            with closing(records.database):
                yield records
        except sqlite3.Error as error:  # a full disk
            raise OSError(None, str(error), str(path)) from None


def save_run(run: Evaluation, out: Path, progress: Progress | None = None) -> None:
    """Write a run and the files of its metrics, such as official tables, into the folder OUT.

    An earlier result in OUT is deleted. result.json is put in place after all other files have
    been written, so a folder with result.json is complete.

    progress : called with (files written, approximate total, name of the file)

    Raises RunLockedError if another run holds the lock.
    """
    counts = npz_bytes(arrays_of_run(run))  # the content of counts.npz: counts of all images
    result_json = _result_bytes(run, out, counts)  # with the hash of `counts`
    with locked(out, wait=60):
        # If the process is killed later on, this file shows that the run is unfinished
        write_atomic(out / UNFINISHED, result_json)
        (out / RESULT).unlink(missing_ok=True)
        for pattern in WRITTEN_FILES:  # of an earlier result: official tables, figures, overlays
            for stale in out.glob(pattern):
                stale.unlink()
        for metric in map(registry.get, run.metrics):
            if not isinstance(metric, ResultFiles):
                continue
            score, stack = run.score(metric.name), run.stack(metric.name)
            options = metric.options_of(run.protocol)
            files = metric.files(score, run.image_ids, stack, run.protocol, options)
            for n_written, (name, text) in enumerate(files, 1):
                # Not flushed to the disk one by one, which is slow: a run without these is readable
                write_atomic(os.path.join(out, name), text, durable=False)
                if progress:  # the total is approximate: most metrics write one file per image
                    progress(min(n_written, len(run.records)), len(run.records), name)
        write_atomic(out / COUNTS, counts)
        os.replace(out / UNFINISHED, out / RESULT)
    run._stacks.clear()  # frees counts stacked for the scores, as large as the records


def _result_bytes(run: Evaluation, out: Path, counts: bytes) -> bytes:
    """Return the content of result.json for OUT, with a line per image and the hash of `counts`.

    Paths of the run's folders are relative to OUT, so that everything can be moved together. If the
    content is too large to be read back, the list of images is empty; counts.npz has all of them.
    """
    content = run.to_mapping()
    if run.places:
        relative = dict(run.places)
        for side, path in run.places.items():
            with suppress(ValueError):  # on another drive, where the path stays absolute
                relative[side] = Path(os.path.relpath(path, out.resolve())).as_posix()
        content["places"] = relative
    content["files"] = {COUNTS: digest(counts)}
    images: Any = content.pop("images")  # a dict for each image
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # without line breaks
    fields = []
    for key, value in content.items():
        fields.append(f"{encode(key)}: {as_json(value).rstrip()}")
    start = "{\n " + ",\n ".join(fields) + ',\n "images": [\n  '
    end = "\n ]\n}\n"
    data = (start + ",\n  ".join(map(encode, images)) + end).encode()
    if too_much_json(data):
        data = (start + end).encode()
    return data


def read_result(folder: Path) -> RunArguments:
    """Read the folder of a finished run as the arguments of an Evaluation.

    Raises FileFormatError if a file is missing, damaged, has another schema, or is of another run.
    """
    path = folder / RESULT
    data = read_bytes(path)
    counts = read_bytes(folder / COUNTS)
    with file_errors(path, "the result of a run"):
        content = parse_json(data)
        check_schema(content, SCHEMA)
        if content.get("files") != {COUNTS: digest(counts)}:
            fault = f"does not belong to this {COUNTS} (one was changed, or is of another run)"
            raise FaultError(f"{fault}: evaluate again with -o on this folder")
        records = unpack_records(folder / COUNTS, counts)
        # "pred", "gt" ... -> path of the folder, relative to that of the run; absent if unknown
        places = json_fields({"places": {}, **content}, "places", str)
        arguments = run_arguments(content, records)
        for side, place in places.items():
            places[side] = os.path.normpath(folder.absolute() / place)
        return {**arguments, "places": places}


def check_schema(content: object, schema: str) -> None:
    """Raise FaultError unless the content of a JSON file is a dict whose "schema" is `schema`."""
    stored = content.get("schema") if isinstance(content, dict) else None
    if stored != schema:
        raise FaultError(f"schema {stored!r}, expected {schema!r}")


def run_arguments(content: Mapping[str, Any], records: Sequence[ImageRecord]) -> RunArguments:
    """Return the arguments of an Evaluation from its records and the JSON stored with them."""
    if json_field(content, "n_images", int) != len(records):
        raise FaultError(f"n_images is not the {len(records)} of the counts")
    return {
        "protocol": registry.read_protocol(json_field(content, "protocol", dict)),
        "name": json_field(content, "name", str),
        "records": records,
        "provenance": Provenance.from_mapping(json_field(content, "provenance", dict)),
        "failed": json_fields(content, "failed", str),
    }


def is_run(folder: Path) -> bool:
    """Return True if the folder holds a finished run, False if it holds no run.

    Raises FileFormatError if it holds an unfinished run.
    """
    is_finished = (folder / RESULT).exists()
    has_traces = (folder / RECORDS).exists() or (folder / UNFINISHED).exists()
    if has_traces and not is_finished:
        fault = "an unfinished run; repeat the command that began it to continue"
        raise FileFormatError(f"{show(folder)}: {fault}")
    return is_finished


def pack_record(record: ImageRecord) -> bytes:
    """Serialise the record of an image to the bytes that are stored in records.db.

    The bytes are one line of JSON, then the raw data of all count arrays, in which integers have
    the smallest unsigned type that holds them. The line is a list of the image's id, size and so on
    (_FIELDS), then

    - evidence: a list of [metric, pred, gt], where pred and gt are [numbers, file name]. The
      numbers (`Evidence.row`) are statistics of the pixel values. Those of all images together tell
      what the values mean, such as whether white is the object. The metric is "" for the first
      metric; others are included only if their evidence differs.
    - arrays: [metric, name, dtype, shape] for each array, in the order in which they are stored
    - groups: a dict from column to value
    """
    # An .npz of the same content takes 0.4 ms longer per image
    arrays: list[tuple[str, str, str, tuple[int, ...]]] = []
    array_bytes = []
    for metric, counts in record.counts.items():
        for name, array in counts.items():
            if array.dtype == np.int64:  # numbers, none negative, most of which fit 16 bits
                array = array.astype(np.min_scalar_type(array.max(initial=0)))
            arrays.append((metric, name, array.dtype.str, array.shape))
            array_bytes.append(array.tobytes())
    evidence_by_metric = {"": Sides(record.pred, record.gt), **record.others}
    evidence = []
    for name, (pred, gt) in evidence_by_metric.items():
        evidence.append([name, [pred.row(), pred.file], [gt.row(), gt.file]])
    fields = attrgetter(*_FIELDS.values())(record)
    line = json.dumps([*fields, evidence, arrays, record.groups])
    return b"\n".join([line.encode(), b"".join(array_bytes)])


def unpack_record(data: bytes) -> ImageRecord:
    """Rebuild a record from the bytes of `pack_record`; its arrays are read-only views of `data`.

    Raises ValueError or TypeError if the bytes are damaged.
    """
    line, _, array_bytes = data.partition(b"\n")
    # First the values of the fields that _FIELDS names: id, size, fingerprint and so on
    *values, evidence_rows, array_rows, groups = json.loads(line)
    fields = dict(zip(_FIELDS.values(), values, strict=True))
    fields["size"] = tuple(fields["size"])  # a list in JSON
    counts: dict[str, Any] = {}  # metric -> name -> array
    offset = 0  # where an array begins in `array_bytes`, which has them end to end
    for metric, name, dtype, shape in array_rows:
        array: NDArray[Any] = np.ndarray(shape, dtype, array_bytes, offset)
        counts.setdefault(metric, {})[name] = array
        offset += array.nbytes
    evidence = {}  # metric -> that of the prediction and the ground truth
    for metric, (pred_numbers, pred_file), (gt_numbers, gt_file) in evidence_rows:
        pred = Evidence.of_row(pred_numbers, pred_file)
        evidence[metric] = Sides(pred, Evidence.of_row(gt_numbers, gt_file))
    pred, gt = evidence.pop("")  # for the first metric; what remains is that for other metrics
    return ImageRecord(**fields, counts=counts, pred=pred, gt=gt, groups=groups, others=evidence)


def arrays_of_run(run: Evaluation) -> dict[str, NDArray[Any]]:
    """Convert the records of a run of N images to the arrays of counts.npz.

    - ids (N,), sizes (N, 2), fingerprints (N,) and so on: the fields in _FIELDS
    - pred_values (N, K) and pred_files (N,), gt_values and gt_files: for the first metric, the
      evidence, K statistics of the pixel values of an image (`Evidence.row`), and its file
    - METRIC:pred_values and so on: the evidence for another metric, only if it differs in an image
    - groups (N,): the groups of each image as JSON, only if any image has groups
    - METRIC.NAME (N, ...): the counts. Arrays that are the same for all images are repeated.
    """
    arrays, records = {}, run.records
    for name, field in _FIELDS.items():
        column = list(map(attrgetter(field), records))
        arrays[name] = np.array(column, np.int64 if name == "sizes" else np.str_)
    arrays["sizes"] = arrays["sizes"].reshape(-1, 2)  # also without records
    with_own_evidence, have_groups = set[str](), False
    for record in records:
        with_own_evidence.update(record.others)  # names of metrics
        have_groups = have_groups or bool(record.groups)
    with_evidence = ["", *sorted(with_own_evidence)] if records else []  # "": the first metric
    for metric in with_evidence:
        for side in _SIDES:  # "pred" and "gt"
            prefix = f"{metric}:{side}" if metric else side
            rows, files = [], []
            for record in records:
                evidence = getattr(record.evidence_for(metric), side)  # of the first for ""
                rows.append(evidence.row())
                files.append(evidence.file)
            arrays[f"{prefix}_values"] = np.array(rows, np.float64)
            arrays[f"{prefix}_files"] = np.array(files, np.str_)
    if have_groups:
        arrays[_GROUPS] = np.array([json.dumps(record.groups) for record in records])
    for metric in records[0].counts if records else ():
        for name, array in run.stack(metric).items():
            is_shared = name in registry.get(metric).shared  # one for all images: thresholds (T,)
            shape = (len(records), *array.shape) if is_shared else array.shape
            arrays[f"{metric}.{name}"] = np.broadcast_to(array, shape)
    size = sum(map(attrgetter("nbytes"), arrays.values()))
    if len(records) > MAX_IMAGES or size > MAX_BYTES:
        limits = f"{MAX_IMAGES} images and {MAX_BYTES} bytes: evaluate in parts"
        raise DataError(f"counts of {len(records)} images, {size} bytes: expected at most {limits}")
    return arrays


def npz_bytes(arrays: Mapping[str, NDArray[Any]], level: int = 3, comment: bytes = b"") -> bytes:
    """Return the bytes of an .npz file with these arrays. Equal arrays give equal bytes.

    level : the zip compression level; 6 takes three times as long as 3
    comment : the comment of the zip archive, which is at the end of the file
    """
    buffer = BytesIO()
    # Unlike np.savez, `archive.open` always writes the same date
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=level) as archive:
        archive.comment = comment
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_records(path: Path, data: bytes) -> tuple[ImageRecord, ...]:
    """Rebuild the records from `data`, the bytes of counts.npz; `path` is for error messages.

    Raises FileFormatError if the bytes are damaged.
    """
    with file_errors(path, "a bsdsbench counts file"):
        return records_of_arrays(unpack_npz(data, limit=MAX_BYTES))


def records_of_arrays(arrays: dict[str, NDArray[Any]]) -> tuple[ImageRecord, ...]:
    """Rebuild the records of N images from the result of `arrays_of_run`: {name: array (N, ...)}.

    The arrays are the fields of the records (ids, sizes, ...), evidence (statistics of the pixel
    values), groups as JSON, and counts. They are removed from `arrays`, until only counts are left.
    Damaged arrays can raise any exception, so call this within `file_errors`.
    """
    n_images = arrays["ids"].size
    if n_images > MAX_IMAGES:
        raise FaultError(f"has {n_images} images, expected at most {MAX_IMAGES}")
    if missing := ", ".join(_FIELDS.keys() - arrays.keys()):
        raise FaultError(f"has no {missing} (of another version), expected it: evaluate again")
    columns = {field: arrays.pop(name).tolist() for name, field in _FIELDS.items()}
    # The evidence for the first metric, in "gt_values" and so on, and that for metrics for which it
    # differs, in "METRIC:gt_values" and so on. There is none without images
    first_evidence = _pop_evidence(arrays, "") if n_images else []
    other_metrics = [key.partition(":")[0] for key in arrays if key.endswith(":gt_values")]
    other_evidence = {name: _pop_evidence(arrays, name) for name in other_metrics if n_images}
    group_texts = arrays.pop(_GROUPS, np.full(n_images, "{}")).tolist()
    groups = [parse_json(text.encode()) for text in group_texts]
    for row in groups:
        is_dict = isinstance(row, dict)
        if not is_dict or not all(isinstance(v, str | float | None) for v in row.values()):
            raise FaultError("groups that are neither numbers nor text, expected these")
    counts: list[dict[str, Any]] = [{} for _ in range(n_images)]  # metric -> name -> array
    for key, stored in arrays.items():  # "METRIC.NAME" -> counts (N, ...)
        metric_name, _, name = key.partition(".")
        metric = registry.get(metric_name)
        # For the checks of `Counts`, which also converts to int64 or float64
        array = Counts(**{name: stored})[name]
        # If counts that are `shared`, such as thresholds, are equal for all images as usual, every
        # image gets a view of a single copy
        if name in metric.shared and (array == array[:1]).all():
            array = np.broadcast_to(array[:1].copy(), array.shape)
        for counts_of_image, image_array in zip(counts, array, strict=True):
            values = np.asarray(image_array)  # may be a single number
            if name in metric.ragged:  # padded with rows of NaN to one array
                values = values[~np.isnan(values).all(axis=-1)]
            counts_of_image.setdefault(metric.name, {})[name] = values
    records = []
    for k in range(n_images):
        fields = {field: column[k] for field, column in columns.items()}
        fields["size"] = tuple(fields["size"])
        record = ImageRecord(
            **fields,
            counts={metric: unchecked_counts(values) for metric, values in counts[k].items()},
            pred=first_evidence[k].pred,
            gt=first_evidence[k].gt,
            groups=groups[k],
            others={metric: evidence[k] for metric, evidence in other_evidence.items()},
        )
        records.append(record)
    return tuple(records)


def _pop_evidence(arrays: dict[str, NDArray[Any]], metric: str) -> list[Sides]:
    """Remove the arrays with the evidence for a metric ("" for the first metric) from `arrays`.

    Evidence is a row of statistics of the pixel values, from which the meaning of the values was
    concluded. Returns one `Sides` per image: the evidence of its prediction and its ground truth.
    """
    by_side: dict[str, list[Evidence]] = {}
    for side in _SIDES:  # "pred" and "gt"
        prefix = f"{metric}:{side}" if metric else side
        # Floats (N, K), of each image K statistics, and (N,) with names of files
        rows, files = arrays.pop(f"{prefix}_values"), arrays.pop(f"{prefix}_files")
        by_side[side] = list(map(Evidence.of_row, rows, files.tolist()))
    return list(map(Sides, by_side["pred"], by_side["gt"]))
