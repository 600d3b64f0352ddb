"""The engine of a run: reads and counts each item of a source once, and keeps its record.

A source is an iterable of `runs.sources.Item`. Records are stored as soon as they are counted, so
that the same call continues after an interruption.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import attrs
import numpy as np

from bsdsbench.errors import DataError, InputWarning, Problem, Setting, describe_unexpected, warn
from bsdsbench.images import GroundTruth, Prediction, without_void
from bsdsbench.io import HeldFiles
from bsdsbench.loaders.readers import empty_truth_error
from bsdsbench.loaders.reading import DARKER
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Counter, Metric
from bsdsbench.metrics.optional import ShowsLabels
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_rows
from bsdsbench.results.storage import Records, locked_records, pack_record
from bsdsbench.runs.keywords import Plan
from bsdsbench.runs.sanity import LOOKS, Look, first_look, look_at, soft_evidence
from bsdsbench.runs.sources import Inputs, Item, RunHeader, image_fingerprint
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, ImageRecord, Sides
from bsdsbench.text import listed, show

R = TypeVar("R")
C = TypeVar("C", bound=Sequence[Any])  # the arguments of a call
SMALL_RUN = 1000  # a worker gets one image at a time for each SMALL_RUN images, at most MAX_BATCH
MAX_BATCH = 16
MANY_WORKERS = 8  # from here on processes are faster than threads, because reading holds the GIL
AHEAD = 3  # batches under way per worker, so that memory stays flat


def run_source(source: Iterable[Item], plan: Plan, header: RunHeader, total: int = 0) -> Evaluation:
    """Count the images of a source in order, and return and save the evaluation.

    - Of a sequence only the plan's shard is counted. Its groups are checked before the first image.
    - Any other iterable is counted as it comes. `total` is the number of its images, or 0 if not
      known; it is shown as progress, and limits the number of workers.

    `header` holds what is known about the run before images are counted. If `plan.out` is set,
    records are stored there as soon as they are counted, and a repeated call continues.

    Raises DataError that lists the errors of all images, unless the plan skips bad images. If the
    run is interrupted, or a worker died, KeyboardInterrupt or DataError says how many images are
    kept.
    """
    batch = 1  # images that a worker gets at once
    if isinstance(source, Sequence):
        _check_groups(source, plan, header)
        shard, n_shards = plan.shard
        source = source[shard - 1 :: n_shards]
        total = len(source)
        batch = max(1, min(MAX_BATCH, total // SMALL_RUN))
        if n_shards > 1:
            absent_here = header.provenance.no_prediction[shard - 1 :: n_shards]
            header = header.with_provenance(shard=f"{shard}/{n_shards}", no_prediction=absent_here)
    with locked_records(plan.out, plan.fresh) if plan.out else nullcontext() as stored:
        if stored is not None:
            for name in stored.changed_sources(plan.sources):
                change = f"the file of metric {name!r} was changed since its images were counted"
                warn(InputWarning(f"{show(str(plan.out))}: {change}; they are counted again"))
        try:
            images = _count_all(source, plan, stored, total, batch)
            evaluation = _build_evaluation(images, plan, header)
            if plan.out:
                evaluation.save(plan.out)
            return evaluation
        except (KeyboardInterrupt, BrokenExecutor) as error:
            kept = _describe_kept(stored, plan)
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(kept) from None
            raise DataError(attrs.evolve(kept, has=f"{error}; {kept.has}")) from None


def _check_groups(source: Sequence[Item], plan: Plan, header: RunHeader) -> None:
    """Raise DataError if the plan's groups do not fit the images of a whole source.

    Rows of images that are neither in the source nor without a prediction are refused, unless the
    source is a part of a larger set.
    """
    if plan.groups is None and plan.group_by is None:
        return
    is_whole_set = not (plan.split_file or plan.task or header.provenance.shard)
    absent = {*header.failed, *header.provenance.no_prediction}
    ids = [item.image_id for item in source]
    group_rows(ids, plan.groups, plan.group_by, absent if is_whole_set else None)


def _describe_kept(stored: Records | None, plan: Plan) -> Problem:
    """Describe how many images an interrupted run keeps, and how to go on."""
    if stored is None:
        return Problem(has="nothing was kept")
    images = f"{len(stored)} images are kept in {show(str(plan.out))}"
    fix = (Setting("fresh", False),) if plan.fresh else ()  # would delete them
    return Problem(has=f"{images}: repeat the same call to continue", fix=fix)


@attrs.define
class _CountedImages:
    """The outcomes of all images of a run.

    - records: the counts of each image that was counted, in the order of the source
    - errors: id of an image that could not be counted -> its error
    - left_out: ids of images without annotated boundaries, which the protocol leaves out
    - n_kept: number of records that an earlier call had made
    - looked_dark: True if the first look has already warned about inverted maps
    """

    records: list[ImageRecord] = attrs.Factory(list)
    errors: dict[str, DataError] = attrs.Factory(dict)
    left_out: list[str] = attrs.Factory(list)
    n_kept: int = 0
    looked_dark: bool = False


class _Call(NamedTuple):
    """The arguments of a call of `count`, by name."""

    item: Item
    plan: Plan
    stored_hash: str
    sanity_check: bool
    serialise: bool


def _count_all(
    source: Iterable[Item], plan: Plan, stored: Records | None, total: int, batch: int
) -> _CountedImages:
    """Count every image, store each new record, and warn about problems of the first images.

    stored: the records of earlier calls, to which new records are added; None without a folder.
    total: number of images, or 0 if not known. batch: images that a worker gets at once.

    An image whose stored record is still valid is not counted again. The first LOOKS images are
    always read, because they are compared with their ground truth.
    """
    images = _CountedImages()
    looks = list[Look]()
    n_done = 0
    # Workers get the plan without the parts that they do not need or that cannot be pickled
    sent = attrs.evolve(plan, progress=None, executor=None, out=None, task=None, groups=None)
    hashes = stored.fingerprints if stored is not None else {}
    calls = (
        _Call(
            item=item,
            plan=sent,
            stored_hash=hashes.get(item.image_id, ""),
            sanity_check=number < LOOKS,
            serialise=stored is not None,
        )
        for number, item in enumerate(source)
    )
    with (
        _open_executor(plan, total, batch) as (executor, ahead),
        closing(_map_in_order(count, calls, executor, ahead, batch)) as stream,
    ):
        for n_done, (call, outcome) in enumerate(stream, 1):
            image_id = call.item.image_id
            record = outcome.record
            if stored is not None and outcome.unchanged:
                record = stored.load(image_id)
                if record is None:  # it is damaged
                    outcome = count(call.item, sent, serialise=True)
                    record = outcome.record
                else:
                    images.n_kept += 1
            if outcome.error:
                images.errors[image_id] = outcome.error
            elif record is None:
                images.left_out.append(image_id)
            else:
                images.records.append(record)
                if stored is not None and not outcome.unchanged:
                    stored.add(record, outcome.data)
            if outcome.look:
                looks.append(outcome.look)
            if n_done == LOOKS:
                images.looked_dark = _warn_of_first(looks, plan)
            if plan.progress:
                plan.progress(n_done, max(total, n_done), image_id)
    if n_done < LOOKS:
        images.looked_dark = _warn_of_first(looks, plan)
    return images


def _warn_of_first(looks: Sequence[Look], plan: Plan) -> bool:
    """Warn about problems of the first images. Return True if their maps are inverted."""
    warnings = first_look(looks, plan.protocol, plan.unused)
    for warning in warnings:
        warn(warning)
    return DARKER in "".join(map(str, warnings))


def _build_evaluation(images: _CountedImages, plan: Plan, header: RunHeader) -> Evaluation:
    """Build the evaluation of the counted images, and warn about problems of the whole set.

    Raises DataError

    - with the errors of all images, if the plan does not skip bad images or no image is left
    - if no image of a run that is not a shard has boundaries in its ground truth
    - if the values of the files cannot be interpreted in one consistent way
    """
    errors = dict(sorted(images.errors.items()))
    if errors and (plan.on_error == "fail" or not images.records):
        raise DataError.collect(errors.values())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    header = header.with_provenance(date=now, sources=plan.sources or None)
    failed = {image_id: "; ".join(map(str, error.problems)) for image_id, error in errors.items()}
    if plan.on_dask:  # Dask workers got absolute paths
        origin = header.provenance
        for folder in filter(None, (origin.pred, origin.gt, origin.photos)):
            absolute = os.path.abspath(folder)
            failed = {i: reason.replace(absolute, folder) for i, reason in failed.items()}
    if images.left_out:
        if not images.records and plan.shard[1] == 1:
            raise DataError(f"{header.name}: no image with boundaries in its ground truth")
        header = header.with_provenance(empty_gt=tuple(sorted(images.left_out)))
    evaluation = Evaluation(
        protocol=header.protocol,
        name=header.name,
        records=images.records,
        provenance=header.provenance,
        failed={**header.failed, **failed},
        places=dict(header.places),
        kept=images.n_kept,
    ).with_groups(plan.groups, plan.group_by)
    for warning in evaluation.verdict():
        if not (images.looked_dark and DARKER in str(warning)):
            warn(warning)
    return evaluation


# ---- an image ------------------------------------------------------------------------------------


@attrs.frozen
class Outcome:
    """The outcome of `count` for one image.

    - record: the counts, or None if `unchanged`, after an error, or if the protocol leaves the
      image out
    - data: the serialised record, b"" if not asked for
    - unchanged: True if the stored record of the image is still valid
    - error: the reason why the image cannot be counted, or None
    - look: the measurements for `first_look`, or None if not asked for
    """

    record: ImageRecord | None = None
    data: bytes = b""
    unchanged: bool = False
    error: DataError | None = None
    look: Look | None = None


def count(
    item: Item,
    plan: Plan,
    stored_hash: str = "",
    sanity_check: bool = False,
    serialise: bool = False,
) -> Outcome:
    """Read and count one image. All images are counted here.

    stored_hash: fingerprint of the stored record, "" if there is none. If it is equal to that of
        the files, the image is not counted, and read only for `sanity_check`.
    sanity_check: add the measurements for `first_look` to the outcome.
    serialise: add the serialised record to the outcome.

    Nothing is raised: errors of any kind, also bugs of a metric, are in the outcome.
    """
    protocol = plan.protocol
    look = None
    try:
        files = HeldFiles()
        fingerprint = image_fingerprint(item, plan.stamp, files)
        unchanged = fingerprint == stored_hash
        if unchanged and not sanity_check:
            return Outcome(unchanged=True)
        started = time.perf_counter()
        inputs = [item.load(alike, protocol, files) for alike in plan.by_reading]
        pred, gt = inputs[0]
        del files  # free memory for counting
        if sanity_check and pred is not None:
            look = look_at(pred, gt, protocol)
        has_boundary = True
        if plan.by_reading[0].metrics[0].gt_kind == "annotators":
            drawn = map(without_void, gt.boundaries, repeat(gt.parts.get("valid")))
            has_boundary = any(map(np.any, drawn))
        if not has_boundary and protocol.empty_gt == "error":
            raise empty_truth_error(gt.where, len(gt.boundaries))
        is_left_out = not has_boundary and protocol.empty_gt != "count"
        if unchanged or is_left_out:
            return Outcome(unchanged=unchanged, look=look)
        record = _count_metrics(item, inputs, plan)
        record = replace(record, fingerprint=fingerprint, seconds=time.perf_counter() - started)
        return Outcome(record, pack_record(record) if serialise else b"", look=look)
    except DataError as error:
        return Outcome(error=error, look=look)
    except MemoryError:
        too_large = DataError(f"{item.image_id}: not enough memory for this image")
        return Outcome(error=too_large, look=look)
    except Exception as error:  # a bug must not cost more than one image
        packages = {type(registry.get(name)).__module__.partition(".")[0] for name in plan.metrics}
        fault = describe_unexpected(error, packages | {"bsdsbench"})
        return Outcome(error=DataError(Problem(item.image_id, fault)), look=look)


def _count_metrics(item: Item, inputs: Sequence[Inputs], plan: Plan) -> ImageRecord:
    """Return the record of an image: the counts of all metrics, and the evidence of its files.

    inputs: prediction and ground truth as each group of `plan.by_reading` reads them. A group is
    a set of metrics that read files in the same way.

    Evidence is stored once for the first metric, and again for each metric whose evidence differs.
    """
    metrics = list(map(registry.get, plan.metrics))
    counter: Counter | None = None
    if plan.errors:
        from bsdsbench.metrics.error_classes import boundary_errors  # imports numba

        counter = boundary_errors
    counts: dict[str, Any] = dict.fromkeys(plan.metrics)  # keeps the order of the metrics
    evidence: dict[str, Sides] = {}
    forms: dict[str, str] = {}  # of the prediction, by metric
    has_thresholds = any(map(attrgetter("cuts_at_thresholds"), metrics))
    for alike, (pred, gt) in zip(plan.by_reading, inputs, strict=True):
        file_pred = None if item.form else pred  # a missing prediction was filled in
        sides = None
        for metric in alike.metrics:
            counts[metric.name] = metric.count_image(pred, gt, plan.protocol, counter)
            if sides is None or metric.reads == "classes":  # metrics read labels differently
                sides = evidence_of(file_pred, gt, metric, plan.protocol, has_thresholds)
            evidence[metric.name] = sides
            forms[metric.name] = file_pred.form if file_pred is not None else item.form
    main = plan.metrics[0]
    gt = inputs[0].gt
    fingerprints = gt.fingerprints(any(map(attrgetter("reads_whole_truth"), metrics)))
    return ImageRecord(
        item.image_id,
        gt.shape,
        counts,
        truth=fingerprints.listed,
        form=forms[main],
        whole_truth=fingerprints.whole,
        pred=evidence[main].pred,
        gt=evidence[main].gt,
        others={name: sides for name, sides in evidence.items() if sides != evidence[main]},
    )


def evidence_of(
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> Sides:
    """Return what the values in the files of an image show about their meaning, to one metric.

    - prediction: the evidence of `soft_evidence`, or none if `pred` is None
    - ground truth: the evidence of its files; of arrays only the number of their maps
    - for a metric that interprets labels, also the evidence of label maps

    `has_thresholds` is False for metrics without thresholds, which have no lowest threshold that a
    soft map must reach.
    """
    gt_evidence = gt.evidence
    pred_evidence = NO_EVIDENCE
    if not gt_evidence.maps:  # made of arrays, which leave no doubt about their values
        gt_evidence = Evidence(maps=max(1, len(gt.boundaries)), file=gt.file)
    if pred is not None:
        pred_evidence = soft_evidence(pred, gt, protocol, has_thresholds)
    if isinstance(metric, ShowsLabels):
        opt = metric.options_of(protocol)
        if "labels" in gt.parts:
            gt_evidence = gt_evidence | metric.label_evidence(gt.labels, opt, truth=True)
        if pred is not None and pred.kind == "classes" and pred.classes.ndim == 2:
            labels = metric.label_evidence(pred.classes, opt, truth=False)
            pred_evidence = pred_evidence | labels
    return Sides(pred_evidence, gt_evidence)


# ---- where images are counted: here, in threads, in processes, on a Dask cluster -----------------


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _open_executor(plan: Plan, total: int, batch: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield the executor of a run, and the number of batches that may be under way.

    In this order:

    - an Executor of the user, which stays open
    - the executor of a Dask cluster
    - None for a single worker: calls are made in this thread
    - a pool of processes or threads (`_start_workers`)

    `total` is the number of images, 0 if not known, and `batch` the number in a call.
    """
    requested = plan.executor
    workers = max(1, min(plan.workers or available_cores(), total or 10**9))
    if isinstance(requested, Executor):
        yield requested, AHEAD * workers
    elif plan.on_dask:
        from bsdsbench.runs.dask_cluster import dask_executor, silent

        with silent(), dask_executor(requested) as (executor, cores):
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1
    else:
        with _start_workers(workers, requested, batch) as pool:
            yield pool, AHEAD * workers


def _start_workers(workers: int, requested: object, batch: int) -> Executor:
    """Return a pool of processes or of threads.

    Processes are used for the executor "process", and for "auto" if there are many workers or many
    images. If processes cannot be started, "auto" uses threads, and "process" raises DataError.
    """
    pays_off = workers >= MANY_WORKERS or batch > 1
    if requested == "process" or (requested == "auto" and pays_off):
        methods = multiprocessing.get_all_start_methods()
        # No plain fork: the progress display has a thread, and locks must not be inherited
        method = "forkserver" if "forkserver" in methods else "spawn"
        context = multiprocessing.get_context(method)
        try:
            return ProcessPoolExecutor(workers, context, _set_up_worker)
        except OSError as error:  # no semaphores, as in a container without /dev/shm
            if requested == "process":
                raise DataError(f"executor 'process': {error}, expected 'thread'") from None
    return ThreadPoolExecutor(workers)


def _set_up_worker() -> None:
    """Leave Ctrl-C to the parent process, and end this process when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        """Wait for the parent, then end this process."""
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _map_in_order(
    function: Callable[..., R],
    calls: Iterable[C],
    executor: Executor | None,
    ahead: int,
    batch: int = 1,
) -> Generator[tuple[C, R], None, None]:
    """Lazily yield (call, function(*call)) for every call, in order.

    calls: arguments of a call each, of which the first is an Item.
    executor: makes the calls; None makes them in this thread.
    ahead: the largest number of batches under way. batch: the number of calls in a batch.

    Raises BrokenExecutor, which names the images under way, if a worker died.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    remaining = iter(calls)
    waiting = deque[tuple[list[C], Future[list[R]]]]()  # batches under way, the oldest first
    try:
        while True:
            new = list(islice(remaining, batch)) if len(waiting) < ahead else []
            if not new and not waiting:
                return
            try:
                if new:
                    waiting.append((new, executor.submit(_call_until_deadline, function, new)))
                    continue
                oldest, future = waiting[0]
                returned = future.result()
                not_called = oldest[len(returned) :]
                if not_called:
                    future = executor.submit(_call_until_deadline, function, not_called)
                    waiting[0] = not_called, future
                else:
                    waiting.popleft()
            except Exception as error:
                lost = listed([call[0].image_id for pending, _ in waiting for call in pending])
                raise BrokenExecutor(
                    f"a worker died ({type(error).__name__}: out of memory, a cluster without "
                    f"workers, or a script without if __name__ == '__main__'?), under way: {lost}"
                ) from None
            yield from zip(oldest, returned, strict=False)  # of the calls that were made
    finally:
        for _, future in waiting:
            future.cancel()


def _call_until_deadline(function: Callable[..., R], calls: Sequence[C]) -> list[R]:
    """Make calls in order until 0.1 s have passed, and return what they returned.

    At least one call is made. The caller goes on from the first call without an entry. Short
    batches keep Ctrl-C and the progress display responsive.
    """
    returned = []
    end = time.monotonic() + 0.1
    for call in calls:
        returned.append(function(*call))
        if time.monotonic() > end:
            break
    return returned
