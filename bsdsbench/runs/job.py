"""One image as a job for a worker: read, check, count.

A job (paths and a protocol) and its result (counts) are small, so they are cheap to send.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.bounded import read_bytes, show
from bsdsbench.files.errors import DataError, FileFormatError, ShapeError, is_text
from bsdsbench.files.writing import digest as hash_of
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.loaders import Pair, read_prediction, read_truth
from bsdsbench.loaders.groundtruth import empty_truth
from bsdsbench.loaders.identity import image_fingerprint
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.photos import read_photo
from bsdsbench.metrics import registry
from bsdsbench.metrics.maps import beside, form_of
from bsdsbench.protocol.fields import clipped
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.record_store import pack_records
from bsdsbench.scores.counts import ImageRecord


@dataclass(frozen=True, slots=True)
class Job:
    """What to evaluate.

    photo : the picture, where a metric uses it; known : the fingerprint of the record that
    is already there, if any; hashes : of a detector's maps, what its run wrote; packed : the
    record is to be stored; arrays : the inputs themselves where there are no files, or what was
    wrong with them
    """

    pair: Pair
    protocol: Protocol
    metrics: tuple[str, ...]
    pred_kind: str = "soft"
    humans: bool = False
    photo: Path | None = None
    known: str = ""
    hashes: tuple[str, ...] = ()
    packed: bool = False
    arrays: tuple[Prediction, GroundTruth] | DataError | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An image that could not be evaluated, and one line per fault."""

    image_id: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The record that is already there still stands."""

    image_id: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An image that the protocol leaves out: its ground truth has no boundary."""

    image_id: str


@dataclass(frozen=True, slots=True)
class Packed:
    """A record and its bytes for the store, made by the worker since that takes a while."""

    record: ImageRecord
    data: bytes

    @property
    def image_id(self) -> str:
        """The image it is of."""
        return self.record.image_id


Outcome = ImageRecord | Packed | Failure | Unchanged | LeftOut


def run_job(job: Job) -> Outcome:
    """Evaluate one image. A fault of the input comes back as a Failure, never as an exception."""
    try:
        if isinstance(job.arrays, DataError):
            raise job.arrays
        before = _stamps(job.pair)
        mark = fingerprint(job)
        if mark == job.known:
            return Unchanged(job.pair.image_id)
        started = time.perf_counter()
        record = record_of(job)
        if isinstance(record, LeftOut):
            return record
        if _stamps(job.pair) != before:
            raise FileFormatError(
                f"{job.pair.image_id}: a file changed while it was read, expected it to stay"
            )
        record = replace(record, fingerprint=mark, seconds=time.perf_counter() - started)
        return Packed(record, pack_records([record])) if job.packed else record
    except DataError as error:
        return Failure(job.pair.image_id, error.problems)
    except MemoryError:
        return Failure(
            job.pair.image_id, (f"{job.pair.image_id}: not enough memory for this image",)
        )
    except OSError as error:
        where = error.filename or job.pair.image_id
        return Failure(job.pair.image_id, (f"{show(where)}: {error.strerror or error}",))
    except Exception as error:  # a bug in bsdsbench costs one image, and says where it is
        place = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{job.pair.image_id}: unexpected {type(error).__name__}: {error}"
        where = f"{os.path.basename(place.filename)}, line {place.lineno}"
        return Failure(job.pair.image_id, (f"{line} (a bug in bsdsbench, in {where})",))


def fingerprint(job: Job) -> str:
    """A hash of all that the counts depend on: bytes of the files, protocol, metrics, kernels.

    Raises FileFormatError for a file that cannot be read.
    """
    versions = tuple((m, registry.get(m).version) for m in job.metrics)
    shared = _shared_text(KERNEL_VERSION, job.protocol, versions, job.pred_kind, job.humans)
    text = f"[{shared}, {json.dumps(job.pair.image_id)}]"
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    expected = dict(zip(job.pair.pred_paths, job.hashes, strict=False))
    for group in (job.pair.pred_paths, job.pair.gt_paths, _photos(job)):
        digest.update(len(group).to_bytes(8, "little"))
        for path in group:
            data = read_bytes(path)
            if (wanted := expected.get(path)) is not None and wanted != hash_of(data):
                raise FileFormatError(
                    f"{show(path)}: is not the map that the detector's run wrote (altered, or of "
                    "another run): run the detector again"
                )
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    for each in job.arrays if isinstance(job.arrays, tuple) else ():
        for name, array in _arrays_of(each):
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _shared_text(version: int, protocol: Protocol, *more: Any) -> str:
    """What the images of a run have in common, as JSON, without the brackets around it."""
    return json.dumps([version, protocol.to_mapping(), *more], sort_keys=True)[1:-1]


def _arrays_of(given: Prediction | GroundTruth) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of an input, each with the name of its field."""
    for each in fields(given):
        value = getattr(given, each.name)
        for array in value if isinstance(value, tuple) else (value,):
            if isinstance(array, np.ndarray):
                yield each.name, array


def _stamps(pair: Pair) -> list[tuple[int, int, int]]:
    found = [os.stat(path) for path in (*pair.pred_paths, *pair.gt_paths)]
    return [(s.st_ino, s.st_size, s.st_mtime_ns) for s in found]


def _photos(job: Job) -> tuple[Path, ...]:
    return () if job.photo is None else (job.photo,)


def is_left_out(gt: GroundTruth, kind: str, protocol: Protocol) -> bool:
    """True if the protocol leaves out an image because nobody drew a boundary in it.

    kind : `Metric.gt_kind`. Raises DataError if the protocol refuses such an image.
    """
    if kind != "annotators" or protocol.empty_gt == "count" or any(b.any() for b in gt.boundaries):
        return False
    if protocol.empty_gt == "error":
        raise empty_truth(gt.path or gt.image_id, len(gt.boundaries))
    return True


def record_of(job: Job) -> ImageRecord | LeftOut:
    """The record of one image, without fingerprint and time."""
    metrics = {name: registry.get(name) for name in job.metrics}
    first = metrics[job.metrics[0]]
    if isinstance(job.arrays, tuple):
        pred, gt = job.arrays
    else:
        instances = first.reads_instances(first.options_of(job.protocol))
        gt = read_truth(job.pair, first.gt_kind, job.protocol, instances)
        pred = None
    if is_left_out(gt, first.gt_kind, job.protocol):
        return LeftOut(job.pair.image_id)
    mark = image_fingerprint(gt)
    if job.photo is not None:
        gt = replace(gt, photo=read_photo(job.photo))
    if job.humans:
        human = {
            name: m.count_humans(gt, job.protocol, m.options_of(job.protocol))
            for name, m in metrics.items()
        }
        return ImageRecord(job.pair.image_id, gt.shape, human, truth=mark, form="humans")
    if pred is None:
        n_classes = len(first.class_names(first.options_of(job.protocol))) or 1
        pred = read_prediction(job.pair, job.pred_kind, gt.shape, n_classes)
    options = {name: m.options_of(job.protocol) for name, m in metrics.items()}
    if not all(m.fits(pred, gt, options[name]) for name, m in metrics.items()):
        turned = "; it is transposed" if pred.shape == gt.shape[::-1] else ""
        raise ShapeError(
            f"{pred.path or job.pair.image_id}: {pred.shape[0]}x{pred.shape[1]} (rows x columns), "
            f"expected {gt.shape[0]}x{gt.shape[1]} as its ground truth has{turned}"
        )
    counts = {name: m.count(pred, gt, job.protocol, options[name]) for name, m in metrics.items()}
    form = pred.form if job.pair.pred_paths else "none"
    if job.arrays is not None:  # nobody looked at them before
        form = form_of(pred, job.protocol)
    return ImageRecord(job.pair.image_id, gt.shape, counts, truth=mark, form=beside(form, gt))


MAX_WORKERS = 4096


def usual_protocol(metrics: Sequence[str]) -> str:
    """The first metric's default preset, bsds500 if it names none."""
    return registry.get(metrics[0]).default_protocol or "bsds500"


def protocol_of(protocol: Protocol | str | None, metrics: Sequence[str]) -> Protocol:
    """The resolved protocol: the one given, or the default of the first metric.

    Raises ProtocolError for options that no metric has or a value out of its range, if it lacks
    what a metric needs, or if there is no default.
    """
    given = Protocol.of(usual_protocol(metrics) if protocol is None else protocol)
    proto = registry.settled(given)
    for metric in metrics:
        found = registry.get(metric)
        found.check(proto, found.options_of(proto))
    return proto


def check_run(
    name: str | None,
    workers: int | None,
    out: str | os.PathLike[str] | None,
    folders: Mapping[str, str | os.PathLike[str]],
) -> None:
    """Raise DataError, listing all faults, for what no run can be made of.

    The results may not lie inside a folder that is read (they would be paired with it the next
    time), and everything that is written as text must be text.
    """
    faults = []
    for what, folder in (*folders.items(), ("out", out)):
        if not isinstance(folder, str | os.PathLike) and (folder is not None or what != "out"):
            faults.append(f"{what}: {kind_of_value(folder)}, expected the path of a folder")
    if name is not None and not (isinstance(name, str) and name and is_text(name)):
        faults.append(f"name {clipped(name)}: expected text in UTF-8")
    whole = isinstance(workers, int | np.integer) and not isinstance(workers, bool)
    if workers is not None and not (whole and 1 <= workers <= MAX_WORKERS):
        faults.append(f"workers {clipped(workers)}: expected a number from 1 to {MAX_WORKERS}")
    if out is not None and not faults:
        target = Path(out).resolve()
        faults += [
            f"{show(out)}: lies in the folder of the {what} ({show(folder)}), expected a folder "
            "elsewhere for the results"
            for what, folder in folders.items()
            if target.is_relative_to(Path(folder).resolve())
        ]
    if faults:
        raise DataError("\n".join(faults), faults)


def kind_of(pred_kind: str | None, metrics: Sequence[str]) -> str:
    """The kind of the predictions: the one given, or what the first metric expects.

    Raises DataError if a metric does not take it, or metrics read different ground truth.
    """
    found = [registry.get(m) for m in metrics]
    if pred_kind is not None and not isinstance(pred_kind, str):
        raise DataError(f"pred_kind: {kind_of_value(pred_kind)}, expected a word")
    kind = pred_kind or found[0].pred_kinds[0]
    faults = [
        f"metric {m.name}: takes predictions of kind {' or '.join(m.pred_kinds)}, not {kind!r}"
        for m in found
        if kind not in m.pred_kinds
    ]
    faults += [
        f"metrics {found[0].name}, {m.name}: read different ground truth ({found[0].gt_kind}, "
        f"{m.gt_kind}), expected one run for each"
        for m in found
        if m.gt_kind != found[0].gt_kind
    ]
    if faults:
        raise DataError("\n".join(faults), faults)
    return kind
