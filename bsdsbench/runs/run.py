"""A run: every item of a source is read and counted once, and what is done is kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.bounded import listed, read_bytes, read_once, show
from bsdsbench.files.errors import DataError, InputWarning, ShapeError, is_text
from bsdsbench.loaders.groundtruth import empty_truth
from bsdsbench.loaders.identity import image_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.runs import sources
from bsdsbench.runs.evaluation import EMPTY, Evaluation
from bsdsbench.runs.first_look import LOOKS, SCALE, Look, first_look, form_of, look_at, plain_forms
from bsdsbench.runs.folder import Records, pack_records, unfinished
from bsdsbench.runs.run_identity import TASK, check_truth
from bsdsbench.runs.run_options import MANY, Folder, RunOptions, takes
from bsdsbench.runs.sources import FileItem, Item
from bsdsbench.scores.counts import ImageRecord

AHEAD = 3  # images under way for each worker, so that memory stays flat


@takes(
    *("protocol", "*", "task", "metrics", "name", "split_file", "missing", "pred_kind"),
    "images_dir",
    *("shard", "workers", "executor", "out", "fresh", "on_error", "progress"),
)
def evaluate(pred_dir: Folder, gt_dir: Folder, *, options: RunOptions) -> Evaluation:
    """Evaluate a folder of predictions against a folder of ground truth.

    An empty folder is an error. The scores do not depend on workers, executor or shards.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Paired by image id over any mix of file formats and nested folders.
    {options}

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        That lists every problem of the run; the good images' records are kept in `out`.

    Warns
    -----
    InputWarning
        Where the first images are inverted, mirrored or exchanged, or all maps zero.

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
    options.refuse_out_in(pred_dir=pred_dir, gt_dir=gt_dir)
    task = options.task
    if task is not None:
        split = None if options.split_file is None else Path(options.split_file)
        check_truth(task, Path(gt_dir), options.protocol, split)
    ids = task.ids if task is not None and task.ids and not options.split_file else None
    items = sources.folders(pred_dir, gt_dir, options, ids)
    return run(items, options, about_folders(pred_dir, gt_dir, items, options))


@takes(
    *("protocol", "*", "metrics", "split_file", "workers", "executor", "out", "fresh", "on_error"),
    "progress",
)
def evaluate_humans(gt_dir: Folder, *, options: RunOptions) -> Evaluation:
    """Evaluate each annotator of a data set against the others: the human point of the plots.

    The metrics are those with a human form. Every image needs two annotators.

    Parameters
    ----------
    gt_dir : path
        Folder of ground truth.
    {options}

    Returns
    -------
    Evaluation
        Records and scores of the annotators.

    Raises
    ------
    DataError
        As `evaluate`.

    References
    ----------
    Source: see bsdsbench.metrics.base.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth
    >>> run = bb.evaluate_humans(sample_ground_truth(), workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.81
    """
    options.refuse_out_in(gt_dir=gt_dir)
    items = sources.humans(gt_dir, options)
    about = {"gt": show(gt_dir), "images": digest_of(item.image_id for item in items)}
    return run(
        items, options, Evaluation(options.protocol, "human", (), about, places=_at(gt=gt_dir))
    )


@takes(
    *("protocol", "*", "metrics", "name", "workers", "executor", "out", "fresh", "on_error"),
    "progress",
    name="items",
)
def evaluate_items(items: Iterable[tuple[str, Any, Any]], *, options: RunOptions) -> Evaluation:
    """Evaluate images from an iterable: a data set of another library, arrays in zarr, a generator.

    The iterable is read as the images are needed, a few for each worker at a time. The scores are
    those that `evaluate` gives of files with the same values.

    Parameters
    ----------
    items : iterable of (str, prediction, truth)
        Image id; prediction and truth as `StreamingEvaluator.update` takes them for one image.
    {options}

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        That lists every problem of the run; for an item of another form, or an id twice, at once;
        if all maps are bytes of 0 and 1, of which none counts.

    Examples
    --------
    >>> import numpy as np
    >>> maps = (("a", np.eye(20), [np.eye(20)]), ("b", np.eye(20), [np.eye(20)]))
    >>> evaluate_items(maps, workers=1).boundary_score().ods.f
    1.0
    """
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise DataError(
            f"items: {kind_of_value(items)}, expected (id, prediction, truth) of images"
        )
    about = {"pred_kind": options.pred_kind, "missing": "error"}
    total = len(items) if isinstance(items, Sized) else 0
    blank = Evaluation(options.protocol, options.name, (), about)
    return run(sources.arrays(items, options.metrics), options, blank, total)


def about_folders(
    pred_dir: Folder, gt_dir: Folder, items: Sequence[FileItem], options: RunOptions
) -> Evaluation:
    """The Evaluation of a run of two folders, which still lacks its records."""
    about: dict[str, Any] = {
        "pred": show(pred_dir),
        "gt": show(gt_dir),
        "images": digest_of(item.image_id for item in items),
        "pred_kind": options.pred_kind,
        "missing": options.missing,
    }
    if options.split_file is not None:
        about["split"] = show(options.split_file)
    if options.images_dir is not None:
        about["photos"] = show(options.images_dir)
    if options.task is not None:
        about[TASK] = options.task.to_mapping()
    if options.shard != (1, 1):  # no shard sees the ground truth of the others
        found = hashlib.blake2b(digest_size=8)
        for path in (path for item in items for path in item.pair.gt_paths):
            with contextlib.suppress(DataError):  # the run says so in its turn
                found.update(hashlib.blake2b(read_bytes(path)).digest())
        about["truth"] = found.hexdigest()
    more = {} if options.images_dir is None else {"photos": options.images_dir}
    name = options.name or show(Path(pred_dir).resolve().name)
    places = _at(pred=pred_dir, gt=gt_dir, **more)
    return Evaluation(options.protocol, name, (), about, places=places)


def digest_of(ids: Iterable[str]) -> str:
    """A hash of the ids of the whole set, which shows that shards belong together."""
    text = "\0".join(ids).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _at(**folders: Folder) -> dict[str, str]:
    """Folders as absolute paths, without those whose names are no text."""
    found = {}
    for what, folder in folders.items():
        if is_text(path := str(Path(folder).resolve())):
            found[what] = path
    return found


# ---- a run ---------------------------------------------------------------------------------------


def run(
    source: Iterable[Item], options: RunOptions, blank: Evaluation, total: int = 0
) -> Evaluation:
    """Give `blank` the records of a source, and write the results.

    source : a sequence is cut to the shard of the options; total : how many images another iterable
    will give, or 0. Raises DataError that lists every fault, KeyboardInterrupt with what is kept.
    """
    about = dict(blank.provenance)
    if isinstance(source, Sequence):
        source = source[options.shard[0] - 1 :: options.shard[1]]
        total = len(source)
        if options.shard != (1, 1):
            about["shard"] = f"{options.shard[0]}/{options.shard[1]}"
    folder = unfinished(options.out, options.fresh) if options.out else nullcontext()
    with folder as stored:
        try:
            counted = _counted(source, options, stored, total)
            faults = dict(sorted(counted.faults.items()))
            if faults and (options.on_error == "fail" or not counted.records):
                raise DataError.collect(list(faults.values()))
            if counted.left_out:
                if not counted.records and options.shard == (1, 1):
                    raise DataError(f"{blank.name}: no image with boundaries in its ground truth")
                about[EMPTY] = sorted(counted.left_out)
            records, note = plain_forms(counted.records, options.protocol)
            if note:
                warnings.warn(note, InputWarning, stacklevel=4)
            failed = dict(blank.failed)
            for image_id, error in faults.items():
                failed[image_id] = "; ".join(error.problems)
            done = replace(
                blank, records=records, provenance=about, failed=failed, kept=counted.kept
            )
            if options.out:
                done.save(options.out)
            return done
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_kept(stored, options)) from None
        except BrokenExecutor as error:
            raise DataError(f"{error}; {_kept(stored, options)}") from None


@attrs.define
class _Counts:
    """What came of a source's items."""

    records: list[ImageRecord] = attrs.field(factory=list)
    faults: dict[str, DataError] = attrs.field(factory=dict)
    left_out: list[str] = attrs.field(factory=list)
    kept: int = 0


def _counted(
    source: Iterable[Item], options: RunOptions, stored: Records | None, total: int
) -> _Counts:
    """Count every item, in the order of the source; records that still stand are taken."""
    found, looks = _Counts(), []
    workers = max(1, min(options.workers or available_cores(), total or 10**9))
    marks, keep = ({}, False) if stored is None else (stored.marks, True)
    # What a worker needs, ready to be pickled
    sent = attrs.evolve(options, progress=None, executor=None, out=None, task=None)
    calls = (
        (item, sent, marks.get(item.image_id, ""), number < LOOKS, keep)
        for number, item in enumerate(source)
    )
    with (
        pool(options, workers, source) as (executor, ahead),
        closing(mapped(count, calls, executor, ahead)) as stream,
    ):
        for done, (call, counted) in enumerate(stream, 1):
            if counted.kept and stored is not None:
                counted.record = stored.load(call[0].image_id)
                if counted.record is None:  # damaged
                    counted = count(call[0], sent, keep=True)
                else:
                    found.kept += 1
            if counted.record is not None:
                found.records.append(counted.record)
                if stored is not None and counted.data:
                    stored.add(counted.record, counted.data)
            elif counted.fault is not None:
                found.faults[counted.image_id] = counted.fault
            else:
                found.left_out.append(counted.image_id)
            if counted.look:
                looks.append(counted.look)
            if done == min(LOOKS, total or LOOKS):
                for note in first_look(looks, options):
                    warnings.warn(note, InputWarning, stacklevel=5)
            if options.progress:
                options.progress(done, max(total, done), counted.image_id)
    return found


def _kept(stored: Records | None, options: RunOptions) -> str:
    """What an interrupt leaves, in words."""
    if not stored:
        return "nothing was kept"
    again = "the same call without fresh=True" if options.fresh else "the same call"
    return f"{len(stored)} images are kept in {show(str(options.out))}: {again} goes on"


# ---- one image -----------------------------------------------------------------------------------


@attrs.define
class Counted:
    """What became of an image: its record, that the stored one stands (kept), or a fault.

    None of these: the protocol leaves it out. data : the record as it is stored
    """

    image_id: str
    record: ImageRecord | None = None
    data: bytes = b""
    kept: bool = False
    fault: DataError | None = None
    look: Look | None = None


def count(
    item: Item, options: RunOptions, known: str = "", look: bool = False, keep: bool = False
) -> Counted:
    """Read and count one image: the only place where that is done.

    known : the fingerprint of the record that is there; look : measure what `first_look` looks at;
    keep : the record is to be stored. A fault is returned, whatever it is.
    """
    found = Counted(item.image_id)
    first, protocol = registry.get(options.metrics[0]), options.protocol
    try:
        with read_once():
            text = json.dumps([options.stamp, item.image_id]).encode()
            mark = hashlib.blake2b(text + item.key(), digest_size=16).hexdigest()
            found.kept = mark == known
            if found.kept and not look:
                return found
            started = time.perf_counter()
            pred, gt = item.load(first, protocol)
        if look and pred is not None:
            found.look = look_at(pred, gt, protocol)
        drawn = first.gt_kind != "annotators" or any(map(np.any, gt.boundaries))
        if not drawn and protocol.empty_gt == "error":
            raise empty_truth(gt.path or gt.image_id, len(gt.boundaries))
        if found.kept or (not drawn and protocol.empty_gt != "count"):
            return found
        truth, form, counts, curve = image_fingerprint(gt), item.form, {}, False
        for metric in map(registry.get, options.metrics):
            own = options.settings[metric.name]
            if pred is None:
                counts[metric.name] = metric.count_humans(gt, protocol, own)
                continue
            if not metric.fits(pred, gt, own):
                turned = "; it is transposed" if pred.shape == gt.shape[::-1] else ""
                raise ShapeError(
                    f"{pred.path or item.image_id}: {pred.shape[0]}x{pred.shape[1]} (rows x "
                    f"columns), expected {gt.shape[0]}x{gt.shape[1]} as its ground truth has"
                    f"{turned}"
                )
            counts[metric.name] = metric.count(pred, gt, protocol, own)
            curve = curve or "thresholds" in metric.uses
        if pred is not None:
            form = form or form_of(pred, protocol, curve)
            form += f"{SCALE}{gt.scale}" if gt.scale else ""
        spent = time.perf_counter() - started
        found.record = ImageRecord(item.image_id, gt.shape, counts, mark, spent, truth, form)
        found.data = pack_records([found.record]) if keep else b""
    except DataError as error:
        found.fault = error
    except MemoryError:
        found.fault = DataError(f"{item.image_id}: not enough memory for this image")
    except OSError as error:
        where = error.filename or item.image_id
        found.fault = DataError(f"{show(where)}: {error.strerror or error}")
    except Exception as error:  # a bug in bsdsbench costs one image, and says where it is
        place = traceback.extract_tb(error.__traceback__)[-1]
        found.fault = DataError(
            f"{item.image_id}: unexpected {type(error).__name__}: {error} (a bug in bsdsbench, in "
            f"{os.path.basename(place.filename)}, line {place.lineno})"
        )
    return found


# ---- workers -------------------------------------------------------------------------------------


def available_cores() -> int:
    """Processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def pool(
    options: RunOptions, workers: int, source: Iterable[Item]
) -> Iterator[tuple[Executor | None, int]]:
    """The executor of a run, None for one worker here; and how many images may be under way."""
    asked, ahead = options.executor, AHEAD * workers
    if isinstance(asked, Executor):
        yield asked, ahead
    elif asked not in (None, "thread", "process"):
        from bsdsbench.runs.cluster import dask

        seen = next(iter(source), None) if isinstance(source, Sequence) else None
        paths = (*seen.pair.pred_paths, *seen.pair.gt_paths) if isinstance(seen, FileItem) else ()
        with dask(str(asked), [os.path.abspath(path) for path in paths]) as (executor, cores):
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1
    else:
        processes = asked == "process" or (asked is None and workers >= MANY)
        chosen = _processes(workers, asked) if processes else None
        with chosen or ThreadPoolExecutor(workers) as executor:
            yield executor, ahead


def _processes(workers: int, asked: Any) -> Executor | None:
    """Processes; None where the system has none, as without /dev/shm, and nobody asked for them."""
    methods = multiprocessing.get_all_start_methods()
    # Never plain fork: the progress display has a thread, and locks must not be inherited
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    try:
        return ProcessPoolExecutor(workers, context, _begin_worker)
    except (OSError, ImportError, NotImplementedError) as error:
        if asked is None:
            return None
        raise DataError(f"executor 'process': {error}, expected thread on this system") from None


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


def mapped(
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    executor: Executor | None,
    ahead: int,
) -> Generator[tuple[tuple[Any, ...], Any], None, None]:
    """(call, function(*call)) of every call, in order, with at most `ahead` under way.

    Raises BrokenExecutor that names the images under way, where a worker died.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    waiting: deque[tuple[tuple[Any, ...], Future[Any]]] = deque()
    lost: list[tuple[tuple[Any, ...], Exception]] = []

    def results(left: int) -> Iterator[tuple[tuple[Any, ...], Any]]:
        while len(waiting) > left:
            call, future = waiting.popleft()
            try:
                found = future.result()
            except Exception as error:
                lost.append((call, error))
            else:
                yield call, found

    try:
        for call in calls:
            try:
                waiting.append((call, executor.submit(function, *call)))
            except BrokenExecutor as error:
                lost.append((call, error))
            yield from results(ahead - 1)
            if lost:
                break
        yield from results(0)  # also what was done before a death
    finally:
        for _, future in waiting:
            future.cancel()
    if lost:
        raise BrokenExecutor(
            f"a worker died ({type(lost[0][1]).__name__}: out of memory, or a script without if "
            f"__name__ == '__main__'?), under way: {listed([c[0].image_id for c, _ in lost])}"
        )
