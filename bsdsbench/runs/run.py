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
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, Unpack

import attrs
import numpy as np

from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError, InputWarning, Problem, Setting, warn
from bsdsbench.images import GroundTruth, Prediction, valid_of, without_void
from bsdsbench.io import read_once
from bsdsbench.loaders import ground_truths
from bsdsbench.loaders.readers import empty_truth
from bsdsbench.loaders.reading import DARKER, soft_evidence, truth_evidence
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.error_classes import boundary_errors
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import ABSENT, EMPTY, Evaluation
from bsdsbench.results.storage import pack_record, unfinished
from bsdsbench.runs.executors import mapped, pool
from bsdsbench.runs.file_sources import FileItem, about_folders, check_truth, folders
from bsdsbench.runs.item_sources import items_of
from bsdsbench.runs.keywords import HumanOptions, ItemOptions, Plan, RunOptions, StrPath, planned
from bsdsbench.runs.sanity import LOOKS, Look, first_look, look_at, polarity
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.text import show

FEW = 1000  # images of which a worker gets one at a time


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
        every = folders(pred_dir, gt_dir, attrs.evolve(plan, missing="zero", valid_dir=None), ids)
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
        counter = boundary_errors if options.errors else None
        for metric in map(registry.get, options.metrics):
            counts[metric.name] = metric.count_image(pred, gt, protocol, counter)
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
