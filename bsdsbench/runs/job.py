"""One image as a piece of work: read, check, count. What a worker runs, in whatever process.

A job is small (paths and a protocol) and its answer is small (counts), so that it travels well.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bsdsbench.core.errors import DataError, FileFormatError, ShapeError
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import ImageRecord
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction
from bsdsbench.loaders.reading import read_bytes, show


@dataclass(frozen=True, slots=True)
class Job:
    """What to evaluate. `known` is the fingerprint of the record that is already there, if any."""

    pair: Pair
    protocol: Protocol
    metrics: tuple[str, ...]
    pred_kind: str = "soft"
    humans: bool = False
    known: str = ""


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


def fingerprint(job: Job) -> str:
    """A hash of all that the counts depend on: bytes of the files, protocol, metrics, kernels.

    Raises FileFormatError for a file that cannot be read.
    """
    settings = [
        KERNEL_VERSION,
        job.protocol.to_mapping(),
        job.metrics,
        job.pred_kind,
        job.humans,
        job.pair.image_id,
    ]
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    for group in (job.pair.pred_paths, job.pair.gt_paths):
        digest.update(len(group).to_bytes(8, "little"))
        for path in group:
            data = read_bytes(path)
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()


def _stamps(pair: Pair) -> list[tuple[int, int, int]]:
    found = [os.stat(path) for path in (*pair.pred_paths, *pair.gt_paths)]
    return [(s.st_ino, s.st_size, s.st_mtime_ns) for s in found]


def _evaluate(job: Job) -> ImageRecord:
    gt = load_ground_truth(job.pair, **job.protocol.gt_options())
    if job.humans:
        from bsdsbench.metrics.humans import human_counts

        human = {m: human_counts(m, gt, job.protocol) for m in job.metrics}
        return ImageRecord(job.pair.image_id, gt.shape, **human)
    pred = _prediction(job, gt)
    counts = {m: metric_function(m)(pred, gt, job.protocol) for m in job.metrics}
    return ImageRecord(job.pair.image_id, gt.shape, **counts)


def _prediction(job: Job, gt: GroundTruth) -> Prediction:
    if not job.pair.pred_paths:
        return Prediction(job.pair.image_id, soft=np.zeros(gt.shape, np.uint8))
    pred = load_prediction(job.pair, kind=job.pred_kind)
    if pred.shape != gt.shape:
        turned = "; it is transposed" if pred.shape == gt.shape[::-1] else ""
        raise ShapeError(
            f"{pred.path or job.pair.image_id}: {pred.shape[0]}x{pred.shape[1]} (rows x columns), "
            f"expected {gt.shape[0]}x{gt.shape[1]} as its ground truth has{turned}"
        )
    return pred


def metric_function(name: str) -> Callable[..., Any]:
    """The function that counts one image for a metric: (pred, gts, protocol) -> counts."""
    if name == "boundary":
        from bsdsbench.metrics.boundary import boundary_counts

        return boundary_counts
    if name == "pixel":
        from bsdsbench.metrics.pixel import pixel_counts

        return pixel_counts
    from bsdsbench.metrics.region.counting import region_counts

    return region_counts
