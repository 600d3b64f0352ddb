"""The engine of a run: each item of a source is read and counted once, and its record is kept.

A source is an iterable of `runs.sources.Item`. What a run has counted is stored as it goes, so that
the same call continues after an interruption.
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

from bsdsbench.errors import DataError, InputWarning, Problem, Setting, unexpected, warn
from bsdsbench.images import GroundTruth, Prediction, without_void
from bsdsbench.io import HeldFiles
from bsdsbench.loaders.readers import empty_truth
from bsdsbench.loaders.reading import DARKER, soft_evidence
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Counter, Metric
from bsdsbench.metrics.optional import ShowsLabels
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_rows
from bsdsbench.results.storage import Records, pack_record, unfinished
from bsdsbench.runs.keywords import Plan
from bsdsbench.runs.sanity import LOOKS, Look, first_look, look_at, polarity
from bsdsbench.runs.sources import Inputs, Item, RunHeader, image_fingerprint
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, ImageRecord, Sides
from bsdsbench.text import listed, show

R = TypeVar("R")
C = TypeVar("C", bound=Sequence[Any])  # the arguments of a call
SMALL_RUN = 1000  # images up to which a worker gets one at a time
MANY = 8  # workers from which processes are faster than threads: reading holds the GIL
AHEAD = 3  # calls under way for each worker, so that memory stays flat


def run_source(source: Iterable[Item], plan: Plan, header: RunHeader, total: int = 0) -> Evaluation:
    """Count the images of a source, in its order, and write the results.

    A sequence is cut to the plan's shard. `total` is the number of images that an iterable without
    a length gives, or 0. Raises DataError that lists every error, and KeyboardInterrupt that says
    how many images are kept.
    """
    batch = 1  # images that a worker gets at once
    if isinstance(source, Sequence):
        if plan.groups is not None or plan.group_by is not None:  # faults are found before counting
            whole_set = not (plan.split_file or plan.task or header.provenance.shard)
            absent = {*header.failed, *header.provenance.no_prediction}
            others = absent if whole_set else None
            group_rows(
                list(map(attrgetter("image_id"), source)), plan.groups, plan.group_by, others
            )
        part, parts = plan.shard
        source = source[part - 1 :: parts]
        total = len(source)
        batch = max(1, min(16, total // SMALL_RUN))
        if parts > 1:
            lacking = header.provenance.no_prediction[part - 1 :: parts]
            header = header.with_provenance(shard=f"{part}/{parts}", no_prediction=lacking)
    with unfinished(plan.out, plan.fresh) if plan.out else nullcontext() as stored:
        if stored is not None:
            for name in stored.changed_sources(plan.sources):
                file = f"the file of metric {name!r} was changed since its images were counted"
                warn(InputWarning(f"{show(str(plan.out))}: {file}; they are counted again"))
        try:
            evaluation = _evaluation(_count_all(source, plan, stored, total, batch), plan, header)
            if plan.out:
                evaluation.save(plan.out)
            return evaluation
        except (KeyboardInterrupt, BrokenExecutor) as error:
            kept = Problem(has="nothing was kept")
            if stored is not None:
                images = f"{len(stored)} images are kept in {show(str(plan.out))}"
                fix = (Setting("fresh", False),) if plan.fresh else ()
                kept = Problem(has=f"{images}: the same call goes on", fix=fix)
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(kept) from None
            raise DataError(attrs.evolve(kept, has=f"{error}; {kept.has}")) from None


@attrs.define
class _CountedImages:
    """The outcomes of all images of a run, and what its first images showed."""

    records: list[ImageRecord] = attrs.Factory(list)
    errors: dict[str, DataError] = attrs.Factory(dict)
    left_out: list[str] = attrs.Factory(list)  # ids of images without annotated boundaries
    n_kept: int = 0  # records that an earlier call had made
    looked_dark: bool = False  # the first look has warned that the maps are inverted


class _Call(NamedTuple):
    """The arguments of a call of `count`."""

    item: Item
    plan: Plan
    stored_hash: str
    sanity_check: bool
    serialise: bool


def _count_all(
    source: Iterable[Item], plan: Plan, stored: Records | None, total: int, batch: int
) -> _CountedImages:
    """Count every image, store each new record, and warn of faults in the first images."""
    images, looks, n_done = _CountedImages(), list[Look](), 0
    # What a worker needs, ready to be pickled
    sent = attrs.evolve(plan, progress=None, executor=None, out=None, task=None, groups=None)
    hashes = stored.fingerprints if stored is not None else {}
    calls = (
        _Call(item, sent, hashes.get(item.image_id, ""), number < LOOKS, stored is not None)
        for number, item in enumerate(source)
    )
    with (
        _pool(plan, total, batch) as (executor, ahead),
        closing(_mapped(count, calls, executor, ahead, batch)) as stream,
    ):
        for n_done, (call, outcome) in enumerate(stream, 1):
            image_id, record = call.item.image_id, outcome.record
            if stored is not None and outcome.unchanged:
                record = stored.load(image_id)
                images.n_kept += record is not None
                if record is None:  # it is damaged
                    outcome = count(call.item, sent, serialise=True)
                    record = outcome.record
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
    """Warn of faults in the first images; return True if they are inverted."""
    warnings = first_look(looks, plan) if looks else []
    for warning in warnings:
        warn(warning)
    return DARKER in "".join(map(str, warnings))


def _evaluation(images: _CountedImages, plan: Plan, header: RunHeader) -> Evaluation:
    """Return the evaluation of the counted images, and warn of faults that only the whole set
    shows.

    Raises DataError for the images' errors where the plan does not skip them.
    """
    errors = dict(sorted(images.errors.items()))
    if errors and (plan.on_error == "fail" or not images.records):
        raise DataError.collect(errors.values())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    header = header.with_provenance(date=now, sources=plan.sources or None)
    failed = {image_id: "; ".join(map(str, error.problems)) for image_id, error in errors.items()}
    for folder in (header.provenance.pred, header.provenance.gt) if plan.on_dask else ():
        whole = os.path.abspath(folder or "")  # what its workers were given
        failed = {image_id: text.replace(whole, folder or "") for image_id, text in failed.items()}
    if images.left_out:
        if not images.records and plan.shard[1] == 1:
            raise DataError(f"{header.name}: no image with boundaries in its ground truth")
        header = header.with_provenance(empty_gt=tuple(sorted(images.left_out)))
    evaluation = Evaluation(
        header.protocol,
        header.name,
        images.records,
        header.provenance,
        {**header.failed, **failed},
        dict(header.places),
        images.n_kept,
    ).with_groups(plan.groups, plan.group_by)
    for warning in evaluation.verdict():
        if not (images.looked_dark and DARKER in str(warning)):
            warn(warning)
    return evaluation


# ---- an image ------------------------------------------------------------------------------------


@attrs.frozen
class Outcome:
    """What became of an image: a record, a stored record that is up to date, or an error.

    Without any of these the protocol leaves the image out. `data` is the serialised record.
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
    """Read and count one image: the only place where that is done.

    `stored_hash` is the fingerprint of the record that is stored; an image with the same one is not
    counted again. With `sanity_check` the outcome has what `first_look` needs, with `serialise` the
    record as bytes, too. Errors of any kind are returned, not raised.
    """
    first, protocol, look = plan.by_reading[0].metrics[0], plan.protocol, None
    try:
        files = HeldFiles()
        fingerprint = image_fingerprint(item, plan.stamp, files)
        unchanged = fingerprint == stored_hash
        if unchanged and not sanity_check:
            return Outcome(unchanged=True)
        started = time.perf_counter()
        inputs = [item.load(alike, protocol, files) for alike in plan.by_reading]
        pred, gt = inputs[0]
        del files  # counting needs the memory
        if sanity_check and pred is not None:
            look = look_at(pred, gt, protocol)
        valid = gt.parts.get("valid")
        counted = map(without_void, gt.boundaries, repeat(valid))
        annotated = first.gt_kind != "annotators" or any(map(np.any, counted))
        if not annotated and protocol.empty_gt == "error":
            raise empty_truth(gt.where, len(gt.boundaries))
        if unchanged or (not annotated and protocol.empty_gt != "count"):
            return Outcome(unchanged=unchanged, look=look)
        record = _count_metrics(item, inputs, plan)
        record = replace(record, fingerprint=fingerprint, seconds=time.perf_counter() - started)
        return Outcome(record, pack_record(record) if serialise else b"", look=look)
    except DataError as error:
        return Outcome(error=error, look=look)
    except MemoryError:
        memory = DataError(f"{item.image_id}: not enough memory for this image")
        return Outcome(error=memory, look=look)
    except Exception as error:  # a bug costs one image, and says where it is
        packages = {type(registry.get(name)).__module__.partition(".")[0] for name in plan.metrics}
        fault = unexpected(error, packages | {"bsdsbench"})
        return Outcome(error=DataError(Problem(item.image_id, fault)), look=look)


def _count_metrics(item: Item, inputs: Sequence[Inputs], plan: Plan) -> ImageRecord:
    """Return the record of an image: the counts of all metrics and what its files showed.

    `inputs` are what each group of the plan's metrics reads.
    """
    metrics = list(map(registry.get, plan.metrics))
    counter: Counter | None = None
    if plan.errors:
        from bsdsbench.metrics.error_classes import boundary_errors  # which imports numba

        counter = boundary_errors
    counts: dict[str, Any] = dict.fromkeys(plan.metrics)  # in their order
    sides, forms = dict[str, Sides](), dict[str, str]()
    has_thresholds = any(map(attrgetter("cuts_at_thresholds"), metrics))
    for (group, _, _), (pred, gt) in zip(plan.by_reading, inputs, strict=True):
        shown, both = None if item.form else pred, None
        for metric in group:
            counts[metric.name] = metric.count_image(pred, gt, plan.protocol, counter)
            if both is None or metric.reads == "classes":  # labels show each metric its own
                both = evidence_of(shown, gt, metric, plan.protocol, has_thresholds)
            sides[metric.name] = both
            forms[metric.name] = shown.form if shown is not None else item.form
    first, gt = plan.metrics[0], inputs[0].gt
    truths = gt.fingerprints(any(map(attrgetter("reads_whole_truth"), metrics)))
    return ImageRecord(
        item.image_id,
        gt.shape,
        counts,
        truth=truths.listed,
        form=forms[first],
        whole_truth=truths.whole,
        pred=sides[first].pred,
        gt=sides[first].gt,
        others={name: both for name, both in sides.items() if both != sides[first]},
    )


def evidence_of(
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> Sides:
    """Return what the files of both sides of an image showed to a metric.

    A metric without thresholds (`has_thresholds` is False) has no lowest one that a soft map must
    reach.
    """
    truth, shown = gt.evidence, NO_EVIDENCE
    if not truth.maps:  # made of arrays that say themselves what they are
        truth = Evidence(maps=max(1, len(gt.boundaries)), file=gt.file)
    if pred is not None:
        shown = soft_evidence(pred, protocol, has_thresholds)
        shown = attrs.evolve(shown, values=shown.values | polarity(pred, gt, protocol))
    if isinstance(metric, ShowsLabels):
        opt = metric.options_of(protocol)
        if "labels" in gt.parts:
            truth = truth | metric.label_evidence(gt.labels, opt, truth=True)
        if pred is not None and pred.kind == "classes" and pred.classes.ndim == 2:
            shown = shown | metric.label_evidence(pred.classes, opt, truth=False)
    return Sides(shown, truth)


# ---- where images are counted: here, in threads, in processes, on a Dask cluster -----------------


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _pool(plan: Plan, total: int, batch: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield the executor of a run, None for one worker here, and the limit of calls under way."""
    asked = plan.executor
    workers = max(1, min(plan.workers or available_cores(), total or 10**9))
    if isinstance(asked, Executor):
        yield asked, AHEAD * workers
    elif plan.on_dask:
        from bsdsbench.runs.dask_cluster import dask_executor, silent

        with silent(), dask_executor(asked) as (executor, cores):
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1
    else:
        chosen: Executor | None = None
        if asked == "process" or (asked == "auto" and (workers >= MANY or batch > 1)):
            methods = multiprocessing.get_all_start_methods()
            # No plain fork: the progress display has a thread, and locks must not be inherited
            way = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
            try:
                chosen = ProcessPoolExecutor(workers, way, _begin_worker)
            except OSError as error:  # no semaphores, as in a container without /dev/shm
                if asked == "process":
                    raise DataError(f"executor 'process': {error}, expected 'thread'") from None
        with chosen or ThreadPoolExecutor(workers) as executor:
            yield executor, AHEAD * workers


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _mapped(
    function: Callable[..., R],
    calls: Iterable[C],
    executor: Executor | None,
    ahead: int,
    batch: int = 1,
) -> Generator[tuple[C, R], None, None]:
    """Yield (call, function(*call)) of every call, in order; the first argument is an item.

    A worker gets `batch` calls at once; at most `ahead` times as many are under way. Raises
    BrokenExecutor that names the images under way, where a worker died.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    rest, waiting = iter(calls), deque[tuple[list[C], Future[list[R]]]]()
    try:
        while True:
            new = list(islice(rest, batch)) if len(waiting) < ahead else []
            if not new and not waiting:
                return
            try:
                if new:
                    waiting.append((new, executor.submit(_within_a_moment, function, new)))
                    continue
                given, future = waiting[0]
                returned = future.result()
                if left := given[len(returned) :]:
                    waiting[0] = left, executor.submit(_within_a_moment, function, left)
                else:
                    waiting.popleft()
            except Exception as error:
                lost = listed([call[0].image_id for given, _ in waiting for call in given])
                raise BrokenExecutor(
                    f"a worker died ({type(error).__name__}: out of memory, a cluster without "
                    f"workers, or a script without if __name__ == '__main__'?), under way: {lost}"
                ) from None
            yield from zip(given, returned, strict=False)
    finally:
        for _, future in waiting:
            future.cancel()


def _within_a_moment(function: Callable[..., R], calls: Sequence[C]) -> list[R]:
    """Make the calls that begin within 0.1 s, so that Ctrl-C and progress do not wait."""
    returned, end = [], time.monotonic() + 0.1
    for call in calls:
        returned.append(function(*call))
        if time.monotonic() > end:
            break
    return returned
