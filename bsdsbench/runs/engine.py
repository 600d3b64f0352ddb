"""The engine of a run: each item of a source is read and counted once, and its record is kept.

A source is an iterable of `runs.sources.Item`. What a run has counted is stored as it goes, so that
the same call continues after an interruption.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import attrs
import numpy as np

from bsdsbench.errors import DataError, InputWarning, Problem, Setting, unexpected, warn
from bsdsbench.images import GroundTruth, Prediction, valid_of, without_void
from bsdsbench.io import HeldFiles
from bsdsbench.loaders.readers import empty_truth
from bsdsbench.loaders.reading import DARKER, soft_evidence
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Counter, Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_rows
from bsdsbench.results.provenance import RunHeader
from bsdsbench.results.storage import Records, pack_record, unfinished
from bsdsbench.runs.executors import mapped, pool
from bsdsbench.runs.keywords import Plan
from bsdsbench.runs.sanity import LOOKS, Look, first_look, look_at, polarity
from bsdsbench.runs.sources import Inputs, Item
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.evidence import Evidence, Sides
from bsdsbench.text import show

SMALL_RUN = 1000  # images up to which a worker gets one at a time


def run_source(source: Iterable[Item], plan: Plan, header: RunHeader, total: int = 0) -> Evaluation:
    """Count the images of a source, in its order, and write the results.

    A sequence is cut to the plan's shard. `total` is the number of images that an iterable without
    a length gives, or 0. Raises DataError that lists every error, and KeyboardInterrupt that says
    how many images are kept.
    """
    batch = 1  # images that a worker gets at once
    if isinstance(source, Sequence):
        others = None if plan.split_file or plan.task or header.provenance.shard else header.absent
        group_rows([item.image_id for item in source], plan.groups, plan.group_by, others)
        part, parts = plan.shard
        source = source[part - 1 :: parts]
        total = len(source)
        batch = max(1, min(16, total // SMALL_RUN))
        if parts > 1:
            absent = header.provenance.no_prediction[part - 1 :: parts]
            header = header.with_provenance(shard=f"{part}/{parts}", no_prediction=absent)
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
    """Count every image, store each new record, and warn of what is wrong with the first ones."""
    images, looks, n_done = _CountedImages(), list[Look](), 0
    # What a worker needs, ready to be pickled
    sent = attrs.evolve(plan, progress=None, executor=None, out=None, task=None, groups=None)
    hashes = stored.fingerprints if stored is not None else {}
    calls = (
        _Call(item, sent, hashes.get(item.image_id, ""), number < LOOKS, stored is not None)
        for number, item in enumerate(source)
    )
    with (
        pool(plan, total, batch) as (executor, ahead),
        closing(mapped(count, calls, executor, ahead, batch)) as stream,
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
    """Warn of what is wrong with the first images; return True if they are inverted."""
    warnings = first_look(looks, plan) if looks else []
    for warning in warnings:
        warn(warning)
    return any(DARKER in str(warning) for warning in warnings)


def _evaluation(images: _CountedImages, plan: Plan, header: RunHeader) -> Evaluation:
    """Return the evaluation of the counted images, and warn of what the whole set shows.

    Raises DataError for the images' errors where the plan does not skip them.
    """
    errors = dict(sorted(images.errors.items()))
    if errors and (plan.on_error == "fail" or not images.records):
        raise DataError.collect(errors.values())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    header = header.with_provenance(date=now)
    failed = {image_id: "; ".join(map(str, error.problems)) for image_id, error in errors.items()}
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
    first, protocol, look = registry.readers(plan.metrics)[0], plan.protocol, None
    try:
        files = HeldFiles()
        stamp = json.dumps([plan.stamp, item.image_id]).encode()
        fingerprint = hashlib.blake2b(stamp + item.key(files), digest_size=16).hexdigest()
        unchanged = fingerprint == stored_hash
        if unchanged and not sanity_check:
            return Outcome(unchanged=True)
        started = time.perf_counter()
        inputs = [item.load(group[0], protocol, files) for group in plan.by_reading]
        pred, gt = inputs[0]
        del files  # counting needs the memory
        if sanity_check and pred is not None:
            look = look_at(pred, gt, protocol)
        counted = (without_void(boundary, valid_of(gt)) for boundary in gt.boundaries)
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
    metrics = [registry.get(name) for name in plan.metrics]
    counter: Counter | None = None
    if plan.errors:
        from bsdsbench.metrics.error_classes import boundary_errors  # which imports numba

        counter = boundary_errors
    counts, records = dict[str, Any](), dict[str, ImageRecord]()
    has_thresholds = any(metric.cuts_at_thresholds for metric in metrics)
    for group, (pred, gt) in zip(plan.by_reading, inputs, strict=True):
        shown, record = None if item.form else pred, None
        for metric in group:
            counts[metric.name] = metric.count_image(pred, gt, plan.protocol, counter)
            if record is None or metric.reads == "classes":  # labels show each metric its own
                given = item.image_id, shown, gt, metric, plan.protocol, has_thresholds
                record = evidence_record(*given)
            records[metric.name] = record
    record = records[plan.metrics[0]]
    sides = {name: Sides(of_metric.pred, of_metric.gt) for name, of_metric in records.items()}
    others = {name: both for name, both in sides.items() if both != (record.pred, record.gt)}
    truths = inputs[0].gt.fingerprints(any(metric.reads_whole_truth for metric in metrics))
    return replace(
        record,
        counts={name: counts[name] for name in plan.metrics},
        others=others,
        truth=truths.listed,
        form=item.form or record.form,
        whole_truth=truths.whole,
    )


def evidence_record(
    image_id: str,
    pred: Prediction | None,
    gt: GroundTruth,
    metric: Metric,
    protocol: Protocol,
    has_thresholds: bool,
) -> ImageRecord:
    """Return what the files of an image showed, as a record without counts.

    A metric without thresholds (`has_thresholds` is False) has no lowest one that a soft map must
    reach.
    """
    opt, truth = metric.options_of(protocol), gt.evidence
    if not truth.maps:  # made of arrays that say themselves what they are
        truth = Evidence(maps=max(1, len(gt.boundaries)), file=gt.file)
    if "labels" in gt.parts:
        truth = truth | metric.label_evidence(gt.labels, opt, truth=True)
    record = ImageRecord(image_id, gt.shape, gt=truth)
    if pred is None:
        return record
    shown = soft_evidence(pred, protocol, has_thresholds)
    if pred.kind == "classes" and pred.classes.ndim == 2:
        shown = shown | metric.label_evidence(pred.classes, opt, truth=False)
    shown = attrs.evolve(shown, values=shown.values | polarity(pred, gt, protocol))
    return replace(record, form=pred.form, pred=shown)
