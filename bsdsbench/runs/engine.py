"""Runs: `evaluate`, `evaluate_humans`, and the function `run_source` that all kinds of runs share.

An entry point resolves its keywords into a `Plan` and lists its images as `runs.sources.Item`. The
record of each image is stored as soon as it is counted, so that repeating the call resumes the run.
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
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

import attrs

from bsdsbench.errors import DataError, InputWarning, InvertedWarning, Problem, Setting, warn
from bsdsbench.io import HeldFiles
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.readers import empty_truth_error
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Counter
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_rows
from bsdsbench.results.storage import Records, locked_records, pack_record, save_run
from bsdsbench.runs.fit import CheckedImage
from bsdsbench.runs.keywords import MAX_WORKERS, HumanOptions, Plan, RunOptions, StrPath, plan_call
from bsdsbench.runs.sanity import N_CHECKED, FirstImages, describe_bug, evidence_of
from bsdsbench.runs.sources import (
    FileItem,
    Inputs,
    Item,
    check_truth,
    image_fingerprint,
    list_items,
    run_of_folders,
)
from bsdsbench.scores.counts import ImageRecord, Sides
from bsdsbench.text import join_names, shorten, show

R = TypeVar("R")
C = TypeVar("C", bound=Sequence[Any])  # the arguments of a call
BATCH_DIVISOR = 1000  # a worker gets 1/1000 of the images of a run at a time ...
MAX_BATCH = 16  # ... but at least 1 and at most this many
MANY_WORKERS = 8  # from this number on, processes are faster, because reading files holds the GIL
AHEAD = 3  # number of batches submitted per worker, which limits the memory of a run


def evaluate(
    pred_dir: StrPath,
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Evaluate a folder of predictions against a folder of ground truth.

    The scores do not depend on workers, executor or shards.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders with files of any format, also in subfolders. Files are paired by image id.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : RunOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        If a folder is empty, or an image or the whole set has a problem. All problems are listed,
        and `out` keeps the records of the images without problems.

    Warns
    -----
    InputWarning
        If the first maps seem inverted, flipped, swapped or too thick, if most maps of the set seem
        inverted, or if all maps are zero everywhere.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> run = bb.evaluate(maps, sample_ground_truth(), "bsds500", workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.619
    """
    plan = plan_call("evaluate", RunOptions, options, protocol, metrics)
    plan.refuse_out_in(pred_dir=pred_dir, gt_dir=gt_dir)
    task = plan.task  # a data set, a protocol and a metric under one name
    if task is not None:
        check_truth(task, gt_dir, plan.protocol, plan.split_file)
    ids = () if task is None or plan.split_file else task.ids
    items, absent = list_items(pred_dir, gt_dir, plan, ids or None)  # `absent`: no prediction
    uncounted = run_of_folders(items, plan, absent, pred=pred_dir, gt=gt_dir)  # no records yet
    return run_source(items, plan, uncounted)


def evaluate_humans(
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[HumanOptions],
) -> Evaluation:
    """Score each annotator of a data set against the others (human performance).

    Parameters
    ----------
    gt_dir : path
        Folder of ground truth with two or more annotators of every image.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that can score annotators.
    **options : HumanOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the annotators, under the name "human".

    Raises
    ------
    DataError
        If an image or the whole set has a problem. All problems are listed.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth
    >>> run = bb.evaluate_humans(sample_ground_truth(), workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.81
    """
    plan = plan_call("evaluate_humans", HumanOptions, options, protocol, metrics)
    plan.refuse_out_in(gt_dir=gt_dir)
    folder = os.path.abspath(gt_dir) if plan.on_dask else gt_dir  # workers are in other folders
    pairs = ground_truths(folder, plan.split_file)
    items = [FileItem(pair.image_id, pair, "", form="humans") for pair in pairs]
    return run_source(items, plan, run_of_folders(items, plan, gt=gt_dir))


def run_source(source: Iterable[Item], plan: Plan, run: Evaluation, total: int = 0) -> Evaluation:
    """Count the images of a source in order, and return `run` with their records.

    If the source is a sequence, only the plan's shard is counted. Any other iterable is consumed
    lazily and completely; `total` is its number of images, or 0 if unknown.

    If `plan.out` is set, the evaluation is saved there, and each record as soon as it is counted,
    so that repeating the call resumes the run. Raises DataError with the
    errors of all images, unless `plan.on_error` is "skip". If the run is interrupted or a worker
    dies, the KeyboardInterrupt or DataError says how many images were stored.
    """
    batch = 1  # number of images that a worker gets at a time
    if isinstance(source, Sequence):
        if plan.groups is not None or plan.group_by is not None:
            # Raises now, before counting, if the table lacks an image or has an unknown one. For a
            # part of a set (None), it may be that of the whole set
            ids = [item.image_id for item in source]
            is_part = plan.split_file or plan.task or run.provenance.shard
            others = None if is_part else {*run.failed, *run.provenance.no_prediction}
            group_rows(ids, plan.groups, plan.group_by, others)
        shard, n_shards = plan.shard  # every N-th image; (1, 1): all
        source = source[shard - 1 :: n_shards]
        total = len(source)
        batch = max(1, min(MAX_BATCH, total // BATCH_DIVISOR))
        if n_shards > 1:  # each image without a prediction is listed by one shard too
            absent_here = run.provenance.no_prediction[shard - 1 :: n_shards]
            run = run.with_provenance(shard=f"{shard}/{n_shards}", no_prediction=absent_here)
    with locked_records(plan.out, plan.fresh) if plan.out else nullcontext() as stored:
        if stored is not None and plan.sources:  # hashes of the Python files of plug-in metrics
            for name in stored.changed_sources(plan.sources):
                change = f"the file of metric {name!r} was changed since its images were counted"
                warn(InputWarning(f"{show(str(plan.out))}: {change}; they are counted again"))
        try:
            images = _count_all(source, plan, stored, total, batch)
            run = _complete_run(run, images, plan)
            if plan.out:
                save_run(run, plan.out)
            return run
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_describe_kept(stored, plan)) from None
        except BrokenExecutor as error:  # a worker died
            raise DataError(_describe_kept(stored, plan, f"{error}; ")) from None


def _describe_kept(stored: Records | None, plan: Plan, prefix: str = "") -> Problem:
    """Return the message of an interrupted run: how many images it stored, and how to resume it."""
    if stored is None:
        return Problem(has=f"{prefix}nothing was kept")
    kept = f"{prefix}{len(stored)} images are kept in {show(str(plan.out))}"
    fix = (Setting("fresh", False),) if plan.fresh else ()  # True would delete the records first
    return Problem(has=f"{kept}: repeat the same call to continue", fix=fix)


@attrs.define
class _CountedImages:
    """The records and errors of all images of a run."""

    records: list[ImageRecord] = attrs.Factory(list)  # in the order of the source
    errors: dict[str, DataError] = attrs.Factory(dict)  # by image id
    left_out: list[str] = attrs.Factory(list)  # ids of images without annotated boundaries
    n_kept: int = 0  # number of records reused from an earlier call
    warned_inverted: bool = False  # True if a warning said that the first maps look inverted


class _Call(NamedTuple):
    """The arguments of `count`, in its order."""

    item: Item
    plan: Plan
    stored_hash: str
    sanity_check: bool
    serialise: bool


def _count_all(
    source: Iterable[Item], plan: Plan, stored: Records | None, total: int, batch: int
) -> _CountedImages:
    """Count every image in parallel, store each new record, and check the maps of the first images.

    stored: the records of an earlier call, to which new ones are added; None to store nothing. An
        image is not counted again (`unchanged`) if its record still fits its files and settings.
    total, batch: the number of images, or 0 if unknown, and that which a worker gets at a time.
    """
    images = _CountedImages()
    first_images = FirstImages(plan)  # these are checked once for mistakes
    # Image id -> hash of its files and settings when its record was stored
    hashes = stored.fingerprints if stored is not None else {}
    stores = stored is not None  # then workers also return each record as bytes, to be stored
    calls = (
        _Call(item, plan, hashes.get(item.image_id, ""), k < N_CHECKED, serialise=stores)
        for k, item in enumerate(source)
    )
    with (
        _open_executor(plan, total, batch) as (executor, max_pending),
        closing(_map_in_order(count, calls, executor, max_pending, batch)) as outcomes,
    ):
        for n_done, (call, outcome) in enumerate(outcomes, 1):
            image_id = call.item.image_id
            record = None
            if stored is not None and outcome.unchanged:  # files and settings are those of a record
                record = stored.load(image_id)
                if record is not None:
                    images.n_kept += 1
                else:  # it is damaged: count the image again, here and now
                    outcome = count(call.item, call.plan, serialise=True)
            if outcome.record is not None:  # newly counted
                record = outcome.record
                if stored is not None:
                    stored.add(record, outcome.data)  # `data`: the record as bytes
            if record is not None:
                images.records.append(record)
            elif outcome.error is not None:
                images.errors[image_id] = outcome.error
            else:  # its ground truth has no boundaries
                images.left_out.append(image_id)
            truth = fingerprint = ""  # hashes: of the ground truth, and of all files and settings
            has_prediction = call.item.form == ""  # not "none" or "humans", see `Item.form`
            if record is not None and has_prediction:
                truth, fingerprint = record.truth, record.fingerprint
            read_again = partial(_read_for_checks, call.item, plan, fingerprint)
            first_images.add(outcome.checked, truth, read_again)  # None beyond the first images
            if plan.progress:
                plan.progress(n_done, max(total, n_done), image_id)
    first_images.check()  # if this was not done, as there are few images
    images.warned_inverted = first_images.warned_inverted
    return images


def _read_for_checks(item: Item, plan: Plan, fingerprint: str) -> CheckedImage | None:
    """Return the maps of an image that was counted, and whose record has this `fingerprint`."""
    return count(item, plan, fingerprint, sanity_check=True).checked


def _complete_run(run: Evaluation, images: _CountedImages, plan: Plan) -> Evaluation:
    """Return the run with its counted images, and warn about problems of the whole set.

    Raises DataError with the errors of all images, unless `plan.on_error` is "skip" and some image
    was counted; if the values in the files have no consistent interpretation; or if no image has
    annotated boundaries, unless the run is a shard.
    """
    errors = dict(sorted(images.errors.items()))  # by image id
    if errors and (plan.on_error == "fail" or not images.records):
        raise DataError.collect(errors.values())
    if images.left_out and not images.records and plan.shard == (1, 1):  # (1, 1): no shard
        raise DataError(f"{run.name}: no image with boundaries in its ground truth")
    failed = dict(run.failed)
    for image_id, error in errors.items():
        reason = "; ".join(map(str, error.problems))
        for folder in (run.provenance.pred, run.provenance.gt, run.provenance.photos):
            if plan.on_dask and folder:  # workers got an absolute path: restore the user's
                reason = reason.replace(os.path.abspath(folder), folder)
        failed[image_id] = reason
    origin = attrs.evolve(
        run.provenance,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        sources=plan.sources or None,  # hashes of the Python files of plug-in metrics
        empty_gt=tuple(sorted(images.left_out)),  # images without annotated boundaries
    )
    run = replace(run, provenance=origin, records=images.records, failed=failed, kept=images.n_kept)
    if plan.groups is not None or plan.group_by is not None:
        run = run.with_groups(plan.groups, plan.group_by)
    for warning in run.verdict():  # of all files together; inversion is reported only once
        if not (images.warned_inverted and isinstance(warning, InvertedWarning)):
            warn(warning)
    return run


@attrs.frozen
class Outcome:
    """The return value of `count`. If all fields but `checked` are empty, the image is left out."""

    record: ImageRecord | None = None  # the counts
    data: bytes = b""  # the serialised record, if requested
    unchanged: bool = False  # True if the stored record of the image is still valid
    error: DataError | None = None
    checked: CheckedImage | None = None  # the maps for `check_first_images`, if requested


def count(
    item: Item,
    plan: Plan,
    stored_hash: str = "",
    sanity_check: bool = False,
    serialise: bool = False,
) -> Outcome:
    """Read and count one image. All exceptions, even bugs, are returned instead of raised.

    If the ground truth has no boundaries, `protocol.empty_gt` decides whether the image is counted
    ("count"), left out ("skip", with an empty Outcome) or an error ("error").

    stored_hash: fingerprint of the record that an earlier call stored, or "". If it is still that
        of the files and settings, the image is not counted, and only read if `sanity_check` is set.
        The Outcome then has no record, and `unchanged` is True.
    sanity_check: True to also return the maps, to be checked for mistakes such as inversion.
    serialise: True to also return the record as bytes.
    """
    protocol = plan.protocol
    checked = None
    try:
        files = HeldFiles()  # reads each file once, for its hash and for decoding
        fingerprint = image_fingerprint(item, plan.settings_hash, files)
        unchanged = fingerprint == stored_hash
        if unchanged and not sanity_check:
            return Outcome(unchanged=True)
        started = time.perf_counter()
        # One pair for each group of metrics that interpret files in the same way
        inputs = []
        for group in plan.metric_groups:
            inputs.append(item.load(group, files))
        pred, gt = inputs[0]  # all groups have the same kind of ground truth
        first_metrics = plan.metric_groups[0].metrics
        del files  # free memory for counting
        if sanity_check and pred is not None and item.form != "none":  # "none": no prediction
            checked = CheckedImage(pred, gt, protocol)
        is_empty = first_metrics[0].gt_kind == "annotators"  # only boundaries can be missing
        valid = gt.parts.get("valid", True)  # False for void pixels
        for drawing in gt.boundaries:
            is_empty = is_empty and not drawing.any(where=valid)
        if is_empty and protocol.empty_gt == "error":
            raise empty_truth_error(gt.where, len(gt.boundaries))
        if unchanged or (is_empty and protocol.empty_gt != "count"):
            return Outcome(unchanged=unchanged, checked=checked)
        record = _count_metrics(item, inputs, plan, fingerprint, started)
        return Outcome(record, pack_record(record) if serialise else b"", checked=checked)
    except DataError as error:
        return Outcome(error=error, checked=checked)
    except Exception as error:  # a bug must not stop the other images
        fault = describe_bug(error, plan)
        return Outcome(error=DataError(Problem(item.image_id, fault)), checked=checked)


def _count_metrics(
    item: Item, inputs: Sequence[Inputs], plan: Plan, fingerprint: str, started: float
) -> ImageRecord:
    """Count one image for all metrics of a run, and return its record.

    The record also has evidence: statistics of the pixel values of prediction and ground truth,
    from which the meaning of the values is decided once all images have been counted.

    inputs: prediction and ground truth, one pair for each group of metrics in `plan.metric_groups`,
        which read the files in the same way.
    fingerprint: hash of the image's files and of all settings.
    started: value of `time.perf_counter` at which reading the image began.
    """
    counter: Counter | None = None  # None: without errors by class
    if plan.errors:
        from bsdsbench.metrics.error_classes import boundary_errors  # imports numba

        counter = boundary_errors  # also counts missed and false pixels by class
    has_thresholds = reads_whole_truth = False  # the latter: more than boundaries is compared
    for metric in map(registry.get, plan.metrics):
        has_thresholds |= metric.cuts_at_thresholds
        reads_whole_truth |= metric.reads_whole_truth
    counts: dict[str, Any] = dict.fromkeys(plan.metrics)  # keeps the order of the metrics
    evidence_by_metric: dict[str, Sides] = {}
    for group, (pred, gt) in zip(plan.metric_groups, inputs, strict=True):
        file_pred = None if item.form else pred  # `form`: an empty map or annotators, no file
        evidence = None
        for metric in group.metrics:
            counts[metric.name] = metric.count_image(pred, gt, plan.protocol, counter)
            # That of the group, but metrics of class labels judge these by their own options
            if evidence is None or metric.reads == "classes":
                evidence = evidence_of(file_pred, gt, metric, plan.protocol, has_thresholds)
            evidence_by_metric[metric.name] = evidence
    first_evidence = evidence_by_metric[plan.metrics[0]]
    differing_evidence = {}
    for name, evidence in evidence_by_metric.items():
        if evidence != first_evidence:
            differing_evidence[name] = evidence
    pred, gt = inputs[0]  # of the group of the first metric
    truth = gt.fingerprints(reads_whole_truth)  # hashes: `listed` of boundaries, `whole` of all
    return ImageRecord(
        item.image_id,
        gt.shape,
        counts,
        fingerprint=fingerprint,
        seconds=time.perf_counter() - started,
        truth=truth.listed,
        form=item.form or (pred.form if pred is not None else ""),  # such as "soft8"
        whole_truth=truth.whole,
        pred=first_evidence.pred,
        gt=first_evidence.gt,
        others=differing_evidence,
    )


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


@contextmanager
def _open_executor(plan: Plan, total: int, batch: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield the executor of a run, and the maximum number of pending batches (AHEAD per worker).

    The executor is the user's, one on a Dask cluster, or a pool of workers. It is None if there is
    only one worker.

    `total` is the number of images, or 0 if unknown; `batch`, that which a worker gets at a time.
    """
    requested = plan.executor  # a word such as "thread", an Executor, or a Dask cluster
    workers = min(plan.workers or available_cores(), total or MAX_WORKERS)
    if isinstance(requested, Executor):  # the user's, which is not shut down
        yield requested, AHEAD * workers
    elif plan.on_dask:
        from bsdsbench.runs.dask_cluster import dask_executor, silent

        with silent(), dask_executor(requested) as (executor, cores):  # `silent`: its loggers
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1  # calls are made in this thread
    else:
        with _start_workers(workers, requested, batch) as pool:
            yield pool, AHEAD * workers


def _start_workers(workers: int, requested: object, batch: int) -> Executor:
    """Start a pool of workers: processes ("process"), or threads ("thread" or None).

    If "auto" is requested, they are processes if there are at least MANY_WORKERS workers or if they
    get several images at a time (`batch`), and threads if processes cannot be started. "process"
    raises DataError then.
    """
    pays_off = workers >= MANY_WORKERS or batch > 1
    if requested == "process" or (requested == "auto" and pays_off):
        has_server = "forkserver" in multiprocessing.get_all_start_methods()
        # Not "fork": the progress display has a thread, and locks must not be inherited
        context = multiprocessing.get_context("forkserver" if has_server else "spawn")
        try:
            return ProcessPoolExecutor(workers, context, _set_up_worker)
        except OSError as error:  # no semaphores, as in a container without /dev/shm
            if requested == "process":
                raise DataError(f"executor 'process': {error}, expected 'thread'") from None
    return ThreadPoolExecutor(workers)


def _set_up_worker() -> None:
    """Make this process ignore Ctrl-C, which the parent handles, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:  # a killed parent could not shut its workers down
        if parent := multiprocessing.parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


class _Batch(NamedTuple, Generic[C, R]):
    """Calls that were submitted together."""

    calls: list[C]
    future: Future[list[R]]  # of what the calls return


def _map_in_order(
    function: Callable[..., R],
    calls: Iterable[C],
    executor: Executor | None,
    max_pending: int,
    batch: int = 1,
) -> Generator[tuple[C, R], None, None]:
    """Yield (call, function(*call)) for every call in order, computing the next calls in parallel.

    Calls are submitted in batches. A worker stops after 0.1 s and returns the results that it has;
    the calls of its batch that were not made are submitted again.

    calls: argument tuples, whose first element is an Item.
    executor: makes the calls; if it is None, they are made in this thread.
    max_pending, batch: the maximum number of batches that are pending, and of calls per batch.

    `function` returns its errors. So an exception means that a worker died, and BrokenExecutor is
    raised, with the ids of the images in the pending batches.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    remaining = iter(calls)
    pending = deque[_Batch[C, R]]()  # the oldest first
    try:
        while True:
            new = list(islice(remaining, batch)) if len(pending) < max_pending else []
            if not new and not pending:
                return
            try:
                if new:  # submit batches until enough are pending, then wait for the oldest
                    future = executor.submit(_call_until_deadline, function, new)
                    pending.append(_Batch(new, future))
                    continue
                oldest = pending[0].calls
                returned = pending[0].future.result()  # of the first calls, made in time
                not_made = oldest[len(returned) :]
                if not_made:  # they stay the oldest batch, so that the order is kept
                    future = executor.submit(_call_until_deadline, function, not_made)
                    pending[0] = _Batch(not_made, future)
                else:
                    pending.popleft()
            except Exception as error:
                lost = join_names(
                    [call[0].image_id for waiting in pending for call in waiting.calls]
                )
                fault = shorten(f"{type(error).__name__}: {error}", 120)
                raise BrokenExecutor(
                    f"a worker process died ({fault}; out of memory, a cluster without "
                    f"workers, or a script without if __name__ == '__main__'?), in work: {lost}"
                ) from None
            yield from zip(oldest, returned, strict=False)  # without the calls that were not made
    finally:
        for submitted in pending:
            submitted.future.cancel()


def _call_until_deadline(function: Callable[..., R], calls: Sequence[C]) -> list[R]:
    """Make calls in order until 0.1 s have passed (but at least one), and return their results.

    The short time keeps Ctrl-C and the progress display responsive.
    """
    returned = []
    end = time.monotonic() + 0.1
    for call in calls:
        returned.append(function(*call))
        if time.monotonic() > end:
            break
    return returned
