"""From two folders to an Evaluation: pair, run the jobs, keep the records, write the results."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, InputWarning
from bsdsbench.loaders import ground_truths, pair
from bsdsbench.loaders.pairing import maps_in
from bsdsbench.loaders.photos import find_photos, photos_beside
from bsdsbench.metrics import registry
from bsdsbench.metrics.maps import without_tops
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.runs.evaluation import EMPTY, Evaluation
from bsdsbench.runs.executors import available_cores, outcomes
from bsdsbench.runs.first_look import first_look
from bsdsbench.runs.job import (
    Failure,
    Job,
    LeftOut,
    Outcome,
    Packed,
    Unchanged,
    check_run,
    kind_of,
    protocol_of,
)
from bsdsbench.runs.record_store import RecordStore, run_locked
from bsdsbench.runs.run_identity import TASK, absolute, check_truth, fixed_by
from bsdsbench.scores.counts import ImageRecord

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is carried out. None of it changes a score."""

    workers: int | None = None
    executor: str | Executor = "process"
    out: Path | None = None
    fresh: bool = False
    on_error: str = "fail"
    progress: Progress | None = None


@dataclass(slots=True)
class _Results:
    records: list[ImageRecord] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    kept: int = 0


def evaluate(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    task: Task | str | Path | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT,
    name: str | None = None,
    split_file: str | Path | None = None,
    missing: str = "error",
    pred_kind: str | None = None,
    images_dir: str | Path | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    executor: str | Executor = "process",
    out: str | Path | None = None,
    fresh: bool = False,
    on_error: str = "fail",
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a folder of predictions against a folder of ground truth.

    An empty folder is an error. The scores do not depend on workers, executor or shards.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Paired by image id over any mix of file formats and nested folders.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: the one of the first metric.
    task : Task or str or path or None
        A set, a protocol and a metric by one name, or in a .toml file: gives protocol
        and metric, and the ground truth must be its set.
    metrics : str or sequence of str
        Names of metrics, see `bsdsbench.metrics.registry.names`.
    name : str or None
        The name in tables and legends.
    split_file : path or None
        Text file of the ids to evaluate, one per line; default: all images of the ground truth.
    missing : str
        How to treat a missing prediction: "error", "zero" (an empty map) or "skip".
    pred_kind : str or None
        "soft", "labels" for pictures and arrays that hold label maps, "classes"; default: what the
        metrics expect.
    images_dir : path or None
        The pictures, for metrics that have use for them; default: those beside the ground truth in
        BSDS layout.
    shard : tuple of int, int
        (i, n) evaluates the i-th of n parts of the images, i = 1 .. n.
    workers : int or None
        How many images at a time; default: the available cores.
    executor : str or Executor
        "process", "thread", "dask://host:port" or a concurrent.futures.Executor.
    out : path or None
        Folder for results and for records, from which a later call goes on; None: nothing is
        written.
    fresh : bool
        Ignore the records of an earlier run in `out`.
    on_error : str
        "fail" raises when all images have been tried; "skip" leaves the bad ones out and lists them
        in `failed`.
    progress : callable or None
        Called with (done, total, image_id).

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
        Where a few pairs, looked at first, are inverted, mirrored or exchanged, or all maps zero.

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
    of = None if task is None else Task.load(task)
    if of is not None:
        protocol, metrics = fixed_by(of, protocol, metrics, missing, on_error)
    chosen = check_words(metrics, missing, on_error, shard)
    check_run(name, workers, out, {"predictions": pred_dir, "ground truth": gt_dir})
    if of is not None:
        check_truth(of, gt_dir, of.resolved(), split_file)
    blank, jobs = prepared(
        *(pred_dir, gt_dir, protocol_of(protocol, chosen), chosen),
        name=name,
        split_file=split_file,
        missing=missing,
        kind=kind_of(pred_kind, chosen),
        images_dir=images_dir,
        ids=of.ids if of and not split_file else (),
    )
    if of is not None:
        blank.provenance[TASK] = of.to_mapping()
    settings = Settings(workers, executor, Path(out) if out else None, fresh, on_error, progress)
    return run(blank, jobs, settings, shard)


def prepared(
    pred_dir: str | Path,
    gt_dir: str | Path,
    proto: Protocol,
    chosen: tuple[str, ...],
    *,
    kind: str,
    name: str | None = None,
    split_file: str | Path | None = None,
    missing: str = "error",
    images_dir: str | Path | None = None,
    ids: Sequence[str] = (),
) -> tuple[Evaluation, list[Job]]:
    """An Evaluation that still lacks its records, and the jobs that make them; see `evaluate`."""
    first = registry.get(chosen[0])
    pairs = pair(
        pred_dir,
        gt_dir,
        split_file=split_file,
        missing=missing,
        pred_kind=kind,
        gt_kind=first.gt_kind,
        classes=first.class_names(first.options_of(proto)),
        ids=ids or None,
    )
    photos = _photos(chosen, gt_dir, images_dir, [p.image_id for p in pairs])
    maps = {folder: maps_in(folder) for folder in {q.parent for p in pairs for q in p.pred_paths}}
    jobs = [
        Job(
            *(p, proto, chosen, kind),
            photo=photos.get(p.image_id),
            hashes=_hashes(p.pred_paths, maps),
        )
        for p in pairs
    ]
    origin: dict[str, Any] = {
        "pred": show(pred_dir),
        "gt": show(gt_dir),
        "images": digest_of(p.image_id for p in pairs),
        "pred_kind": kind,
        "missing": missing,
    }
    if split_file is not None:
        origin["split"] = show(split_file)
    if images_dir is not None:
        origin["photos"] = show(images_dir)
    places = {"pred": pred_dir, "gt": gt_dir, **({"photos": images_dir} if images_dir else {})}
    blank = Evaluation(proto, name or show(Path(pred_dir).resolve().name), (), origin)
    return replace(blank, places=absolute(places)), jobs


def evaluate_humans(
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    metrics: str | Sequence[str] = registry.DEFAULT,
    split_file: str | Path | None = None,
    workers: int | None = None,
    executor: str | Executor = "process",
    out: str | Path | None = None,
    fresh: bool = False,
    on_error: str = "fail",
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate each annotator of a data set against the others: the human point of the plots.

    metrics are those with a human form; the other arguments are those of `evaluate`. Every image
    needs two annotators.

    Parameters
    ----------
    gt_dir : path
        Folder of ground truth.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: the one of the first metric.
    metrics : str or sequence of str
        Names of metrics; here those with a human form.
    split_file : path or None
        Text file of the ids to evaluate, one per line; default: all images of the ground truth.
    workers : int or None
        Images at a time; default: the available cores.
    executor : str or Executor
        As in `evaluate`.
    out : path or None
        Folder for results and records; None: nothing is written.
    fresh : bool
        Ignore the records of an earlier run in `out`.
    on_error : str
        "fail" or "skip", as in `evaluate`.
    progress : callable or None
        Called with (done, total, image_id).

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
    chosen = check_words(metrics, "error", on_error, (1, 1))
    check_run(None, workers, out, {"ground truth": gt_dir})
    proto = protocol_of(protocol, chosen)
    pairs = ground_truths(gt_dir, split_file)
    jobs = [Job(p, proto, chosen, humans=True) for p in pairs]
    origin = {"gt": show(gt_dir), "images": digest_of(p.image_id for p in pairs)}
    blank = Evaluation(proto, "human", (), origin, places=absolute({"gt": gt_dir}))
    settings = Settings(workers, executor, Path(out) if out else None, fresh, on_error, progress)
    return run(blank, jobs, settings)


def _hashes(
    paths: Sequence[Path], maps: Mapping[Path, Mapping[str, str] | None]
) -> tuple[str, ...]:
    """What a detector wrote into the files, if they are maps of one."""
    found = [maps[path.parent] for path in paths]
    if None in found:
        return ()
    return tuple((m or {}).get(path.name, "") for path, m in zip(paths, found, strict=True))


def _photos(
    metrics: Sequence[str], gt_dir: str | Path, images_dir: str | Path | None, ids: list[str]
) -> dict[str, Path]:
    """Image id -> picture, if a metric uses it."""
    if not any(registry.get(m).photo for m in metrics):
        return {}
    folder = images_dir or photos_beside(gt_dir)
    return find_photos(folder, set(ids)) if folder else {}


def run(
    blank: Evaluation,
    jobs: Iterable[Job],
    settings: Settings,
    shard: tuple[int, int] = (1, 1),
    total: int = 0,
) -> Evaluation:
    """Give `blank` the records of one shard's jobs; total: how many an iterable will give, or 0."""
    if isinstance(jobs, Sequence):
        jobs = jobs[shard[0] - 1 :: shard[1]]
        total = len(jobs)
        for note in first_look(jobs, settings.on_error):
            warnings.warn(note, InputWarning, stacklevel=3)
    blank = replace(blank, provenance={**blank.provenance, **part_of(shard)})
    with run_locked(settings.out) if settings.out else nullcontext():
        results = _run_jobs(jobs, settings, total)
        problems = {f.image_id: f for f in sorted(results.failures, key=lambda f: f.image_id)}
        if problems and (settings.on_error == "fail" or not results.records):
            lines = [line for f in problems.values() for line in f.problems]
            raise DataError("\n".join(lines), lines)
        if results.left_out:
            if not results.records and shard == (1, 1):
                raise DataError(f"{blank.name}: no image with boundaries in its ground truth")
            more = {EMPTY: sorted(results.left_out)}
            blank = replace(blank, provenance={**blank.provenance, **more})
        done = replace(
            blank,
            records=without_tops(results.records),
            kept=results.kept,
            failed={**blank.failed, **{k: "; ".join(f.problems) for k, f in problems.items()}},
        )
        if settings.out:
            done.save(settings.out)
    return done


def _run_jobs(jobs: Iterable[Job], settings: Settings, total: int) -> _Results:
    store = RecordStore(settings.out) if settings.out else None
    if store and settings.fresh:
        store.clear()
    results = _Results()
    workers = int(settings.workers or available_cores())  # numpy's narrow ones overflow
    workers = max(1, min(workers, total or workers))
    stored = closing(store) if store else nullcontext()
    finding = closing(_outcomes(jobs, store, settings.executor, workers, results))
    with stored, finding as stream:
        for count, outcome in enumerate(stream, 1):
            if isinstance(outcome, ImageRecord):
                results.records.append(outcome)
            elif isinstance(outcome, Failure):
                results.failures.append(outcome)
            elif isinstance(outcome, LeftOut):
                results.left_out.append(outcome.image_id)
            if settings.progress:
                settings.progress(count, max(total, count), outcome.image_id)
    return results


def _outcomes(
    jobs: Iterable[Job],
    store: RecordStore | None,
    executor: str | Executor,
    workers: int,
    results: _Results,
) -> Generator[Outcome, None, None]:
    """Every job's record or failure; stored records are read back, new ones stored."""
    if store is None:
        yield from outcomes(jobs, executor, workers)
        return
    kept: dict[str, ImageRecord] = {}
    with closing(outcomes(_known(jobs, store, kept), executor, workers)) as stream:
        for outcome in stream:
            found = kept.pop(outcome.image_id, None)
            if isinstance(outcome, Unchanged) and found is not None:
                outcome = found
                results.kept += 1
            elif isinstance(outcome, Packed):
                store.add(outcome.record, outcome.data)
                outcome = outcome.record
            yield outcome


def _known(
    jobs: Iterable[Job], store: RecordStore, kept: dict[str, ImageRecord]
) -> Generator[Job, None, None]:
    """The jobs with the mark of their record, kept until they end; a damaged one is made again."""
    for job in jobs:
        name = job.pair.image_id
        mark = store.fingerprint(name)
        record = store.load(name) if mark else None
        if record is not None:
            kept[name] = record
        elif mark:
            store.forget([name])
        yield replace(job, known=mark if record is not None else "", packed=True)


def digest_of(ids: Iterable[str]) -> str:
    """A hash of the ids of the whole set, which shows that shards belong together."""
    text = "\0".join(ids).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def part_of(shard: tuple[int, int]) -> dict[str, str]:
    """What the provenance of a shard says."""
    return {} if shard == (1, 1) else {"shard": f"{shard[0]}/{shard[1]}"}


def check_words(
    metrics: str | Sequence[str], missing: str, on_error: str, shard: tuple[int, int]
) -> tuple[str, ...]:
    """The metrics in the order of tables. Raises DataError with every wrong word."""
    problems: list[str] = []
    chosen: tuple[str, ...] = ()
    try:
        chosen = registry.chosen(metrics)
    except DataError as error:
        problems += error.problems
    for value, what, allowed in (
        (missing, "missing", ("error", "zero", "skip")),
        (on_error, "on_error", ("fail", "skip")),
    ):
        if not isinstance(value, str) or value not in allowed:
            problems.append(f"{what} {kind_of_value(value)}: expected one of {', '.join(allowed)}")
    whole = isinstance(shard, tuple) and len(shard) == 2 and all(type(n) is int for n in shard)
    if not whole or not 1 <= shard[0] <= shard[1]:
        problems.append(f"shard {shard!r}: expected (I, N) with 1 <= I <= N")
    if problems:
        raise DataError("\n".join(problems), problems)
    return chosen
