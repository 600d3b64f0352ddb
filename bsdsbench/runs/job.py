"""One image as a piece of work: read, check, count. What a worker runs, in whatever process.

A job is small (paths and a protocol) and its answer is small (counts), so that it travels well.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from bsdsbench.files.errors import DataError, FileFormatError, ShapeError
from bsdsbench.files.manifest import digest as hash_of
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.loaders import Pair, read_prediction, read_truth
from bsdsbench.loaders.identity import image_fingerprint
from bsdsbench.loaders.photos import read_photo
from bsdsbench.loaders.reading import read_bytes, show
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord


@dataclass(frozen=True, slots=True)
class Job:
    """What to evaluate.

    photo : the picture, where a metric uses it; known : the fingerprint of the record that
    is already there, if any; hashes : of a detector's maps, what its run wrote
    """

    pair: Pair
    protocol: Protocol
    metrics: tuple[str, ...]
    pred_kind: str = "soft"
    humans: bool = False
    photo: Path | None = None
    known: str = ""
    hashes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An image that could not be evaluated, and one line per fault."""

    image_id: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The record that is already there still stands."""

    image_id: str


Outcome = ImageRecord | Failure | Unchanged


def run_job(job: Job) -> Outcome:
    """Evaluate one image. A fault of the input comes back as a Failure, never as an exception."""
    try:
        before = _stamps(job.pair)
        mark = fingerprint(job)
        if mark == job.known:
            return Unchanged(job.pair.image_id)
        started = time.perf_counter()
        record = _evaluate(job)
        if _stamps(job.pair) != before:
            raise FileFormatError(
                f"{job.pair.image_id}: a file changed while it was read, expected it to stay"
            )
        return replace(record, fingerprint=mark, seconds=time.perf_counter() - started)
    except DataError as error:
        return Failure(job.pair.image_id, error.problems)
    except MemoryError:
        return Failure(
            job.pair.image_id, (f"{job.pair.image_id}: not enough memory for this image",)
        )
    except OSError as error:
        where = error.filename or job.pair.image_id
        return Failure(job.pair.image_id, (f"{show(where)}: {error.strerror or error}",))
    except Exception as error:  # a fault of ours costs one image, and says where it is
        place = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{job.pair.image_id}: unexpected {type(error).__name__}: {error}"
        where = f"{os.path.basename(place.filename)}, line {place.lineno}"
        return Failure(job.pair.image_id, (f"{line} (a fault of bsdsbench, in {where})",))


def fingerprint(job: Job) -> str:
    """A hash of all that the counts depend on: bytes of the files, protocol, metrics, kernels.

    Raises FileFormatError for a file that cannot be read.
    """
    settings = [
        KERNEL_VERSION,
        job.protocol.to_mapping(),
        [(m, registry.get(m).version) for m in job.metrics],
        job.pred_kind,
        job.humans,
        job.pair.image_id,
    ]
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    expected = dict(zip(job.pair.pred_paths, job.hashes, strict=False))
    for group in (job.pair.pred_paths, job.pair.gt_paths, _photos(job)):
        digest.update(len(group).to_bytes(8, "little"))
        for path in group:
            data = read_bytes(path)
            if expected.get(path) not in (None, hash_of(data)):
                raise FileFormatError(
                    f"{show(path)}: is not the map that the detector's run wrote (altered, or of "
                    "another run): run the detector again"
                )
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()


def _stamps(pair: Pair) -> list[tuple[int, int, int]]:
    found = [os.stat(path) for path in (*pair.pred_paths, *pair.gt_paths)]
    return [(s.st_ino, s.st_size, s.st_mtime_ns) for s in found]


def _photos(job: Job) -> tuple[Path, ...]:
    return () if job.photo is None else (job.photo,)


def _evaluate(job: Job) -> ImageRecord:
    metrics = {name: registry.get(name) for name in job.metrics}
    first = metrics[job.metrics[0]]
    gt = read_truth(job.pair, first.gt_kind, job.protocol, first.reads_instances(job.protocol))
    mark = image_fingerprint(gt) if gt.boundaries else ""
    if job.photo is not None:
        gt = replace(gt, photo=read_photo(job.photo))
    if job.humans:
        human = {name: m.count_humans(gt, job.protocol) for name, m in metrics.items()}
        return ImageRecord(job.pair.image_id, gt.shape, human, truth=mark, form="humans")
    n_classes = len(first.class_names(job.protocol)) or 1
    pred = read_prediction(job.pair, job.pred_kind, gt.shape, n_classes)
    if not all(m.fits(pred, gt, job.protocol) for m in metrics.values()):
        turned = "; it is transposed" if pred.shape == gt.shape[::-1] else ""
        raise ShapeError(
            f"{pred.path or job.pair.image_id}: {pred.shape[0]}x{pred.shape[1]} (rows x columns), "
            f"expected {gt.shape[0]}x{gt.shape[1]} as its ground truth has{turned}"
        )
    counts = {name: m.count(pred, gt, job.protocol) for name, m in metrics.items()}
    form = pred.form if job.pair.pred_paths else "none"
    return ImageRecord(job.pair.image_id, gt.shape, counts, truth=mark, form=form)
