"""A run: every item of a source is read and counted once, and what is done is kept.

A source is an iterable of items. An item has an `image_id`; `key()`, a hash of all that is read;
`load(metric, protocol)`, prediction (None: the annotators are counted) and ground truth; and
`form`, what stands for the prediction's own form ("humans", "none"). See `items` for arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Iterable, Sequence, Sized
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Unpack

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError, InputWarning, Problem, Setting, warn
from bsdsbench.images import GroundTruth, Prediction, valid_of, without_void
from bsdsbench.io import read_bytes, read_once, show
from bsdsbench.loaders import Pair, ground_truths, pair, read_prediction, read_truth
from bsdsbench.loaders.formats.photos import find_photos, photos_beside, read_photo
from bsdsbench.loaders.readers import empty_truth, instances_beside, n_levels
from bsdsbench.loaders.reading import DARKER, soft_evidence, truth_evidence
from bsdsbench.loaders.sets.identity import (
    folder_fingerprints,
    identify,
    set_fingerprint,
)
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.results.evaluation import ABSENT, EMPTY, TASK, Evaluation
from bsdsbench.results.storage import pack_record, unfinished
from bsdsbench.runs.executors import mapped, pool
from bsdsbench.runs.item_sources import items_of
from bsdsbench.runs.keywords import HumanOptions, ItemOptions, Plan, RunOptions, StrPath, planned
from bsdsbench.runs.sanity import LOOKS, Look, first_look, look_at, polarity
from bsdsbench.scores.counts import ImageRecord

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}
FEW = 1000  # images of which a worker gets one at a time
Inputs = tuple[Prediction | None, GroundTruth]


def evaluate(
    pred_dir: StrPath,
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Evaluate a folder of predictions against a folder of ground truth.

    An empty folder is an error. The scores do not depend on workers, executor or shards.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Paired by image id over any mix of file formats and nested folders.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: that of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : RunOptions
        Keywords of the run; `runs.keywords.RunKeywords` says what each means.

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
    plan = planned("evaluate", RunOptions, options, protocol, metrics)
    plan.refuse_out_in(pred_dir=pred_dir, gt_dir=gt_dir)
    ids = None
    if plan.task is not None:
        check_truth(plan.task, gt_dir, plan.protocol, plan.split_file)
        ids = None if plan.split_file else plan.task.ids or None
    items, absent = folders(pred_dir, gt_dir, plan, ids), list[str]()
    if plan.missing == "skip":
        every = folders(pred_dir, gt_dir, attrs.evolve(plan, missing="zero"), ids)
        absent = [item.image_id for item in every if not item.pair.pred_paths]
    blank = about_folders(items, plan, pred=pred_dir, gt=gt_dir)
    if absent:
        blank = replace(blank, provenance={**blank.provenance, ABSENT: absent})
    return run(items, plan, blank)


def evaluate_humans(
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT,
    **options: Unpack[HumanOptions],
) -> Evaluation:
    """Evaluate each annotator of a data set against the others: the human point of the plots.

    The metrics are those with a human form. Every image needs two annotators.

    Parameters
    ----------
    gt_dir : path
        Folder of ground truth.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: that of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : HumanOptions
        Keywords of the run; `runs.keywords.RunKeywords` says what each means.

    Returns
    -------
    Evaluation
        Records and scores of the annotators. Raises as `evaluate`.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth
    >>> run = bb.evaluate_humans(sample_ground_truth(), workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.81
    """
    plan = planned("evaluate_humans", HumanOptions, options, protocol, metrics)
    plan.refuse_out_in(gt_dir=gt_dir)
    items = [FileItem(p, "", form="humans") for p in ground_truths(gt_dir, plan.split_file)]
    return run(items, plan, about_folders(items, plan, gt=gt_dir))


def evaluate_items(
    items: Iterable[tuple[str, Any, Any]],
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT,
    **options: Unpack[ItemOptions],
) -> Evaluation:
    """Evaluate images from an iterable: a data set of another library, arrays in zarr, a generator.

    It is read a few images for each worker at a time, and scored as files with the same values.

    Parameters
    ----------
    items : iterable of (str, prediction, truth)
        Image id; the others as `StreamingEvaluator.update` takes them for one image.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: that of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : ItemOptions
        Keywords of the run; `runs.keywords.RunKeywords` says what each means.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        As `evaluate`; for an item of another form, or an id twice, at once.

    Examples
    --------
    >>> import numpy as np
    >>> maps = (("a", np.eye(20), [np.eye(20)]), ("b", np.eye(20), [np.eye(20)]))
    >>> evaluate_items(maps, workers=1).boundary_score().ods.f
    1.0
    """
    if not isinstance(items, Iterable):
        raise DataError(f"items: {kind_of_value(items)}, expected an iterable of images")
    plan = planned("evaluate_items", ItemOptions, options, protocol, metrics, name="items")
    about = {"pred_kind": plan.pred_kind, "missing": "error"}
    total = len(items) if isinstance(items, Sized) else 0
    blank = Evaluation(plan.protocol, str(plan.name), (), about)
    images = items_of(items, registry.get(plan.metrics[0]), plan.protocol)
    return run(images, plan, blank, total)


# ---- a run ---------------------------------------------------------------------------------------


def run(source: Iterable[Any], options: Plan, blank: Evaluation, total: int = 0) -> Evaluation:
    """Give `blank` the records of a source, in its order, and write the results.

    source : a sequence is cut to the shard of the options; total : how many images another iterable
    will give, or 0. Raises DataError that lists every fault, KeyboardInterrupt with what is kept.
    """
    about, (part, parts) = dict(blank.provenance), options.shard
    several = 1  # that a worker gets at once
    if isinstance(source, Sequence):
        source = source[part - 1 :: parts]
        total = len(source)
        several = max(1, min(16, total // FEW))
        if parts > 1:
            about["shard"] = f"{part}/{parts}"
    records, faults, left_out = [], {}, []
    looks, looked, kept = [], "", 0
    # What a worker needs, ready to be pickled
    sent = attrs.evolve(options, progress=None, executor=None, out=None, task=None)
    with unfinished(options.out, options.fresh) if options.out else nullcontext() as stored:
        marks = stored.marks if stored else {}
        calls = (
            (item, sent, marks.get(item.image_id, ""), number < LOOKS, stored is not None)
            for number, item in enumerate(source)
        )
        try:
            with (
                pool(options, total, several) as (executor, ahead),
                closing(mapped(count, calls, executor, ahead, several)) as stream,
            ):
                for done, ((item, *_), found) in enumerate(stream, 1):
                    if stored and found.kept:
                        found.record = stored.load(item.image_id)
                        kept += found.record is not None
                        if found.record is None:  # damaged
                            found = count(item, sent, keep=True)
                    if found.fault:
                        faults[item.image_id] = found.fault
                    elif found.record is None:
                        left_out.append(item.image_id)
                    else:
                        records.append(found.record)
                        if stored and not found.kept:
                            stored.add(found.record, found.data)
                    if found.look:
                        looks.append(found.look)
                    if done == LOOKS:
                        looked = _warned(first_look(looks, options))
                    if options.progress:
                        options.progress(done, max(total, done), item.image_id)
            if not looked and 0 < len(looks) < LOOKS:
                looked = _warned(first_look(looks, options))
            faults = dict(sorted(faults.items()))
            if faults and (options.on_error == "fail" or not records):
                raise DataError.collect(faults.values())
            skipped = {each: "; ".join(map(str, error.problems)) for each, error in faults.items()}
            if left_out:
                if not records and parts == 1:
                    raise DataError(f"{blank.name}: no image with boundaries in its ground truth")
                about[EMPTY] = sorted(left_out)
            failed = {**blank.failed, **skipped}
            result = replace(blank, records=records, provenance=about, failed=failed, kept=kept)
            _warned(w for w in result.verdict() if DARKER not in looked or DARKER not in str(w))
            if options.out:
                result.save(options.out)
            return result
        except (KeyboardInterrupt, BrokenExecutor) as error:
            left = Problem(has="nothing was kept")
            if stored:
                (kept,) = stored.database.execute("select count(*) from record").fetchone()
                text = f"{kept} images are kept in {show(str(options.out))}: the same call goes on"
                left = Problem(has=text, fix=(Setting("fresh", False),) if options.fresh else ())
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(left) from None
            raise DataError(attrs.evolve(left, has=f"{error}; {left.has}")) from None


def _warned(given: Iterable[InputWarning]) -> str:
    """Warn the caller of a run's entry point, and return what of."""
    given = list(given)
    for warning in given:
        warn(warning)
    return "; ".join(map(str, given))


@attrs.define(slots=False)
class Counted:
    """What became of an image: its record, that the stored one stands (kept), or a fault.

    None of these: the protocol leaves it out. data : the record as it is stored
    """

    record: ImageRecord | None = None
    data: bytes = b""
    kept: bool = False
    fault: DataError | None = None
    look: Look | None = None


def count(
    item: Any, options: Plan, known: str = "", look: bool = False, keep: bool = False
) -> Counted:
    """Read and count one image: the only place where that is done.

    known : the fingerprint of the record that is there; look : measure what `first_look` looks at;
    keep : the record is to be stored. A fault is returned, whatever it is.
    """
    found = Counted()
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
        counted = (without_void(one, valid_of(gt)) for one in gt.boundaries)
        drawn = first.gt_kind != "annotators" or any(map(np.any, counted))
        if not drawn and protocol.empty_gt == "error":
            raise empty_truth(gt.where, len(gt.boundaries))
        if found.kept or (not drawn and protocol.empty_gt != "count"):
            return found
        counts, curve, whole = {}, False, False
        for metric in map(registry.get, options.metrics):
            counts[metric.name] = metric.count_image(pred, gt, protocol)
            curve = curve or "thresholds" in metric.uses
            whole = whole or metric.reads_whole_truth
        record = evidence_record(
            item.image_id, None if item.form else pred, gt, first, protocol, curve
        )
        truths = gt.fingerprints(whole)
        found.record = replace(
            record,
            counts=counts,
            fingerprint=mark,
            seconds=time.perf_counter() - started,
            truth=truths.listed,
            form=item.form or record.form,
            whole_truth=truths.whole,
        )
        found.data = pack_record(found.record) if keep else b""
    except DataError as error:
        found.fault = error
    except MemoryError:
        found.fault = DataError(f"{item.image_id}: not enough memory for this image")
    except Exception as error:  # a bug costs one image, and says where it is
        unexpected = f"unexpected {type(error).__name__}: {error} ({_place(error, options)})"
        found.fault = DataError(Problem(item.image_id, unexpected))
    return found


def evidence_record(
    image_id: str,
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    curve: bool,
) -> ImageRecord:
    """Return what the files of an image showed, as a record without counts.

    curve : False for metrics without thresholds.
    """
    opt, truth = metric.options_of(protocol), truth_evidence(gt)
    if "labels" in gt.parts:
        truth = truth | metric.label_evidence(gt.labels, opt, truth=True)
    record = ImageRecord(image_id, gt.shape, gt=truth)
    if pred is None:
        return record
    shown = soft_evidence(pred, protocol, curve)
    if pred.kind == "classes" and pred.classes.ndim == 2:
        shown = shown | metric.label_evidence(pred.classes, opt, truth=False)
    shown = attrs.evolve(shown, values=shown.values | polarity(pred, gt, protocol))
    return replace(record, form=pred.form, pred=shown)


def _place(error: Exception, options: Plan) -> str:
    """Return whose bug an error is: the innermost line of bsdsbench or of a metric's package."""
    packages = {type(registry.get(name)).__module__.partition(".")[0] for name in options.metrics}
    package, file, number = "bsdsbench", __file__, 0
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module in packages | {"bsdsbench"}:
            package, file, number = module, frame.f_code.co_filename, line
    return f"a bug in {package}, in {os.path.basename(file)}, line {number}"


# ---- the images of folders -----------------------------------------------------------------------


@attrs.frozen(slots=False)
class FileItem:
    """An image of two folders. kind : of the prediction, "" where the annotators are counted.

    beside : instance maps, read with the ground truth; n_maps : label maps of a missing prediction
    """

    pair: Pair
    kind: str
    photo: Path | None = None
    beside: tuple[Path, ...] = ()
    form: str = ""
    n_maps: int = 1

    @property
    def image_id(self) -> str:
        """Its name."""
        return self.pair.image_id

    def key(self) -> bytes:
        """A hash of the bytes of its files."""
        found = hashlib.blake2b(f"{self.kind} {self.n_maps}".encode(), digest_size=16)
        for group in (self.pair.pred_paths, self.pair.gt_paths, (self.photo,), self.beside):
            found.update(b"|")
            for path in filter(None, group):
                found.update(hashlib.blake2b(read_bytes(path)).digest())
        return found.digest()

    def load(self, metric: Metric, protocol: Protocol) -> Inputs:
        """Prediction and ground truth. Raises DataError."""
        options, readings = metric.options_of(protocol), metric.readings(protocol, self.kind)
        instances = getattr(options, "instances", False)
        gt = read_truth(self.pair, metric.gt_kind, protocol, instances, readings.gt)
        if self.photo is not None:
            gt = gt.replace(photo=read_photo(self.photo))
        if not self.kind:
            return None, gt
        n_maps = len(metric.class_names(options)) or self.n_maps
        return read_prediction(self.pair, self.kind, gt.shape, n_maps, readings.pred), gt


def folders(
    pred_dir: StrPath, gt_dir: StrPath, options: Plan, ids: Sequence[str] | None = None
) -> list[FileItem]:
    """The images of a folder of predictions and one of ground truth. Raises PairingError.

    ids : the images that count, in place of a split file
    """
    first, kind = registry.get(options.metrics[0]), str(options.pred_kind)
    own, photos = first.options_of(options.protocol), dict[str, Path]()
    if str(options.executor).startswith("dask://"):  # its workers run in other folders
        pred_dir, gt_dir = os.path.abspath(pred_dir), os.path.abspath(gt_dir)
    pairs = pair(
        pred_dir,
        gt_dir,
        options.split_file if ids is None else ids,
        options.missing,
        pred_kind=kind,
        gt_kind=first.gt_kind,
        classes=first.class_names(own),
        sequences=first.in_sequences(own),
    )
    for metric in map(registry.get, options.metrics):
        if metric.photo and (place := options.images_dir or photos_beside(gt_dir)):
            photos = find_photos(place, [p.image_id for p in pairs])
    items, n_maps = [], n_levels(pairs) if kind == "labels" else 1
    for p in pairs:
        beside = map(instances_beside, p.gt_paths) if getattr(own, "instances", False) else ()
        form = "" if p.pred_paths else "none"
        files = photos.get(p.image_id), tuple(filter(None, beside))
        items.append(FileItem(p, kind, *files, form, 1 if p.pred_paths else n_maps))
    return items


def about_folders(items: Sequence[FileItem], options: Plan, **places: StrPath) -> Evaluation:
    """The Evaluation of a run of folders (pred, gt), which still lacks its records."""
    name, about, there = "human", dict[str, Any](), dict[str, str]()
    if options.images_dir is not None and "pred" in places:
        places["photos"] = options.images_dir
    for what, folder in places.items():
        about[what] = show(folder)
        path = str(Path(folder).resolve())
        if show(path) == path:
            there[what] = path
    ids = "\0".join(map(attrgetter("image_id"), items)).encode("utf-8", "surrogateescape")
    about["images"] = hashlib.blake2b(ids, digest_size=8).hexdigest()  # of all shards
    if "pred" in places:
        named = list(Path(places["pred"]).resolve().parts)
        while len(named) > 1 and named[-1].lower() in SPLITS:
            named.pop()
        name = options.name or show(named[-1])
        about |= {"pred_kind": options.pred_kind, "missing": options.missing}
        if options.split_file is not None:
            about["split"] = show(options.split_file)
        if options.task is not None:
            about[TASK] = options.task.to_mapping()
    if options.shard != (1, 1):  # no shard sees the ground truth of the others
        found = hashlib.blake2b(digest_size=8)
        for item in items:
            for file in item.pair.gt_paths:
                with suppress(DataError):  # the run says so in its turn
                    found.update(hashlib.blake2b(read_bytes(file)).digest())
        about["truth"] = found.hexdigest()
    return Evaluation(options.protocol, name, (), about, places=there)


def check_truth(
    task: Task, gt_dir: StrPath, protocol: Protocol, split_file: StrPath | None = None
) -> None:
    """Raise DataError if the ground truth is not the task's set.

    For a set without a fingerprint only the ids or the number of images can be checked.
    """
    if task.fingerprint is None:
        there = {p.image_id for p in ground_truths(gt_dir, split_file or task.ids or None)}
        count = len(there & set(task.ids or there))
        what = "" if task.images in (None, count) else f"{count} images"
        expected = f"the {task.images} of {task.set}"
    else:
        found = folder_fingerprints(gt_dir, protocol, split_file)
        same = set_fingerprint(found) == task.fingerprint
        what, expected = "" if same else f"is {identify(found).describe()}", task.set
    if what:
        raise DataError(f"{show(gt_dir)}: {what}, expected {expected} ({task.name})")


@attrs.frozen(eq=False)
class Sources:
    """Two folders: image id -> pair, -> picture (may lack some); whose ground truth is read."""

    pairs: dict[str, Pair]
    photos: dict[str, Path]
    pred_kind: str
    metric: Metric

    def load(self, image_id: str, protocol: Protocol) -> Any:
        """Prediction and ground truth of an image, as a run reads them. Raises DataError."""
        photo = self.photos.get(image_id) if self.metric.photo else None
        return FileItem(self.pairs[image_id], self.pred_kind, photo).load(self.metric, protocol)

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """The ground truth alone. Raises DataError."""
        return FileItem(self.pairs[image_id], "").load(self.metric, protocol)[1]

    def photo(self, image_id: str, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
        """The picture, or None if there is none of that size."""
        if image_id not in self.photos:
            return None
        pixels = read_photo(self.photos[image_id])
        return pixels if pixels.shape[:2] == shape else None


def find_sources(
    run: Evaluation,
    pred_dir: StrPath | None = None,
    gt_dir: StrPath | None = None,
    images_dir: StrPath | None = None,
    *,
    metric: str | None = None,
) -> Sources:
    """The files a run was made from: the given folders, or those it names.

    Only the run's own images are read; one that was counted without a prediction (missing="zero")
    stays without. images_dir: by default those of the run, or beside its ground truth (BSDS).
    metric : whose ground truth is meant; default: the run's first. Raises DataError if the folders
    are not known, are gone, or lack an image of the run.
    """
    pred, gt = pred_dir or run.place("pred"), gt_dir or run.place("gt")
    if not pred or not gt:
        raise DataError(f"{run.name}: where its predictions and ground truth are is not known")
    if not run.metrics:
        raise DataError(f"{run.name}: no images, expected a run with records")
    found = registry.get(metric or run.metrics[0])
    kind = str(run.provenance.get("pred_kind") or found.pred_kinds[0])
    missing = "zero" if run.provenance.get("missing", "zero") == "zero" else "error"
    pairs = pair(
        pred,
        gt,
        run.image_ids,
        missing,
        pred_kind=kind,
        gt_kind=found.gt_kind,
        classes=found.class_names(found.options_of(run.protocol)),
        sequences=found.in_sequences(found.options_of(run.protocol)),
    )
    photos = images_dir or run.place("photos") or photos_beside(gt)
    by_id = {p.image_id: p for p in pairs}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, found)


def fault_of(run: Evaluation, error: DataError) -> str:
    """What is wrong with a run's files, its folders by name only: where they lie is private."""
    line = str(error.problems[0])
    for folder in filter(None, map(run.place, ("pred", "gt", "photos"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
