"""Sources of images: two folders, arrays of any iterable, and the files of a finished run."""

from __future__ import annotations

import hashlib
import json
import os
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import given_array, kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction, one_channel
from bsdsbench.io import HeldFiles, ReadBytes, read_bytes
from bsdsbench.loaders.formats.photos import find_photos, photos_beside, read_photo
from bsdsbench.loaders.pairing import Layout, Pair, Split, ground_truths, pair
from bsdsbench.loaders.readers import (
    annotation_of,
    instances_beside,
    mask_parts,
    n_levels,
    read_prediction,
    read_truth,
    read_valid,
    refuse_last_axis,
    truth_of,
)
from bsdsbench.loaders.reading import Kind, Reading, Readings
from bsdsbench.loaders.sets.identity import folder_fingerprints, identify, set_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.registry import ReadAlike
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.keywords import TEXT_CHECK, Plan, StrPath, stamp_of
from bsdsbench.scores.counts import ImageRecord, checked_counts
from bsdsbench.text import show

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}


class Inputs(NamedTuple):
    """A prediction (None where the annotators are counted) and its ground truth."""

    pred: Prediction | None
    gt: GroundTruth


class PredictionAndTruth(NamedTuple):
    """A prediction and its ground truth."""

    pred: Prediction
    gt: GroundTruth


def check_same_counts(
    run: Evaluation, image_id: str, stored: Mapping[str, Any], counted: Mapping[str, Any]
) -> None:
    """Raise DataError where files that are counted again do not give the counts of the run."""
    again = checked_counts(counted)
    if not all(np.array_equal(stored[name], again[name], equal_nan=True) for name in again):
        raise DataError(
            f"{image_id}: other counts than those of {run.name}; its files or its settings are not "
            "those of the run"
        )


@attrs.frozen
class RunHeader:
    """What is known of a run before its images are counted.

    `places` are the absolute paths of the folders in the provenance, `failed` the images that could
    not even be predicted, with the reason.
    """

    name: str
    protocol: Protocol
    provenance: Provenance
    places: Mapping[str, str] = attrs.field(factory=dict)
    failed: Mapping[str, str] = attrs.field(factory=dict)

    def with_provenance(self, **known: Any) -> RunHeader:
        """Return the header with these fields of the provenance."""
        return attrs.evolve(self, provenance=attrs.evolve(self.provenance, **known))


class Item(typing.Protocol):
    """One image of a run."""

    @property
    def image_id(self) -> str:
        """Its name."""

    @property
    def form(self) -> str:
        """Return the word in place of the prediction's own form: "humans", "none", or ""."""

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of all that is read, by calls of `read`."""

    def load(self, alike: ReadAlike, protocol: Protocol, read: ReadBytes) -> Inputs:
        """Read prediction and ground truth as these metrics do. Raises DataError."""


def image_fingerprint(item: Item, stamp: str, read: ReadBytes) -> str:
    """Return the hash of an image's files and of all else that its counts depend on."""
    named = json.dumps([stamp, item.image_id]).encode()
    return hashlib.blake2b(named + item.key(read), digest_size=16).hexdigest()


@attrs.frozen(slots=False)
class FileItem:
    """An image of two folders."""

    pair: Pair
    kind: str  # of the prediction; "" where the annotators are counted
    photo: Path | None = None
    instances: tuple[Path, ...] = ()  # instance maps, read with the ground truth
    form: str = ""
    n_maps: int = 1  # label maps that a missing prediction stands for
    valid: Path | None = None  # mask of the pixels that are counted

    @property
    def image_id(self) -> str:
        """Its name."""
        return self.pair.image_id

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of the bytes of its files."""
        digest = hashlib.blake2b(f"{self.kind} {self.n_maps}".encode(), digest_size=16)
        groups = [self.pair.pred_paths, self.pair.gt_paths, (self.photo,), self.instances]
        for group in groups + [(self.valid,)] * (self.valid is not None):
            digest.update(b"|")
            for path in filter(None, group):
                digest.update(hashlib.blake2b(read(path)).digest())
        return digest.digest()

    def load(self, alike: ReadAlike, protocol: Protocol, read: ReadBytes = read_bytes) -> Inputs:
        """Read prediction and ground truth. Raises DataError."""
        (metric, *_), files, readings = alike
        gt = read_truth(self.pair, metric.gt_kind, protocol, files.instances, readings.gt, read)
        if self.photo is not None:
            gt = gt.replace(photo=read_photo(self.photo, read))
        if self.valid is not None:
            known = gt.parts.get("valid", True)
            gt = gt.replace(valid=read_valid(self.valid, gt.shape, read) & known)
        if not self.kind:
            return Inputs(None, gt)
        n_maps = len(files.classes) or self.n_maps
        given = self.pair, self.kind, gt.shape, n_maps, readings.pred, read
        return Inputs(read_prediction(*given), gt)


def folders(
    pred_dir: StrPath, gt_dir: StrPath, plan: Plan, ids: Sequence[str] | None = None
) -> list[FileItem]:
    """List the images of a folder of predictions and one of ground truth. Raises PairingError.

    `ids` are the images to evaluate, in place of a split file.
    """
    alike, kind, photos = plan.by_reading[0], plan.pred_kind, dict[str, Path]()
    if plan.on_dask:  # its workers run in other folders
        pred_dir, gt_dir = os.path.abspath(pred_dir), os.path.abspath(gt_dir)
    split = plan.split_file if ids is None else ids
    pairs = _pairs(pred_dir, gt_dir, split, plan.missing, kind, alike)
    for metric in map(registry.get, plan.metrics):
        if metric.photo and (images_dir := plan.images_dir or photos_beside(gt_dir)):
            photos = find_photos(images_dir, [p.image_id for p in pairs])
    views = _fields_of_view(plan.valid_dir, pairs)
    items, n_maps = [], n_levels(pairs) if kind == "labels" else 1
    for p in pairs:
        instances = map(instances_beside, p.gt_paths) if alike.files.instances else ()
        form, maps = ("", 1) if p.pred_paths else ("none", n_maps)
        others = photos.get(p.image_id), tuple(filter(None, instances))
        items.append(FileItem(p, kind, *others, form, maps, views.get(p.image_id)))
    return items


def _pairs(
    pred_dir: StrPath, gt_dir: StrPath, split: Split, missing: str, kind: str, alike: ReadAlike
) -> list[Pair]:
    """Pair the files of both sides as these metrics read them. Raises PairingError."""
    files = alike.files
    kinds = {"pred_kind": kind, "gt_kind": alike.metrics[0].gt_kind}
    of_classes = {"classes": files.classes, "sequences": files.sequences}
    return pair(pred_dir, gt_dir, split, missing, **kinds, **of_classes)


def _fields_of_view(valid_dir: StrPath | None, pairs: Sequence[Pair]) -> dict[str, Path]:
    """Map image ids to masks of the counted pixels. Raises PairingError where one is missing."""
    if valid_dir is None:
        return {}
    ids = [p.image_id for p in pairs]
    sequences = any("/" in image_id for image_id in ids)
    folder = os.path.abspath(valid_dir)
    masks = pair(None, folder, ids, "zero", gt_kind="mask", sequences=sequences)
    return {mask.image_id: mask.gt_paths[0] for mask in masks}


def folder_header(
    items: Sequence[FileItem], plan: Plan, *, gt: StrPath, pred: StrPath | None = None
) -> RunHeader:
    """Return the header of a run of folders; without predictions the annotators are counted."""
    photos = None if pred is None else plan.images_dir
    given = {"pred": pred, "gt": gt, "photos": photos, "valid": plan.valid_dir}
    shown, places = dict[str, Any](), dict[str, str]()
    for side, folder in given.items():
        if folder is not None:
            shown[side], path = show(folder), str(Path(folder).resolve())
            places |= {side: path} if show(path) == path else {}
    ids = "\0".join(map(attrgetter("image_id"), items)).encode("utf-8", "surrogateescape")
    provenance = Provenance(
        **shown,
        images=hashlib.blake2b(ids, digest_size=8).hexdigest(),
        pred_layout=Layout.of_files({item.image_id: item.pair.pred_paths for item in items}),
        gt_layout=Layout.of_files({item.image_id: item.pair.gt_paths for item in items}),
    )
    name = "human"
    if pred is not None:
        parts = list(Path(pred).resolve().parts)
        while len(parts) > 1 and parts[-1].lower() in SPLITS:
            parts.pop()
        name = plan.name or show(parts[-1])
        provenance = attrs.evolve(
            provenance,
            pred_kind=plan.pred_kind,
            missing=plan.missing,
            split=None if plan.split_file is None else show(plan.split_file),
            task=plan.task,
        )
    if plan.shard != (1, 1):  # no shard sees the ground truth of the others
        truth = hashlib.blake2b(digest_size=8)
        for item in items:
            for file in filter(None, (*item.pair.gt_paths, item.valid)):
                with suppress(DataError):  # the run says so in its turn
                    truth.update(hashlib.blake2b(read_bytes(file)).digest())
        provenance = attrs.evolve(provenance, truth=truth.hexdigest())
    return RunHeader(name, plan.protocol, provenance, places)


def check_truth(
    task: Task, gt_dir: StrPath, protocol: Protocol, split_file: StrPath | None = None
) -> None:
    """Raise DataError if the ground truth is not the task's set.

    For a set without a fingerprint only the ids or the number of images can be checked.
    """
    if task.fingerprint is None:
        ids = {p.image_id for p in ground_truths(gt_dir, split_file or task.ids or None)}
        count = len(ids & set(task.ids or ids))
        if task.images in (None, count):
            return
        has, expected = f"{count} images", f"the {task.images} of {task.set}"
    else:
        truths = folder_fingerprints(gt_dir, protocol, split_file)
        if set_fingerprint(truths) == task.fingerprint:
            return
        has, expected = f"is {identify(truths).describe()}", task.set
    raise DataError(f"{show(gt_dir)}: {has}, expected {expected} ({task.name})")


# ---- images of arrays ----------------------------------------------------------------------------


@attrs.frozen
class ArrayItem:
    """An image of arrays; or what was wrong with them."""

    image_id: str
    inputs: dict[str, Inputs] | DataError  # by the first metric that reads them so
    form: str = ""

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of the arrays."""
        digest = hashlib.blake2b(digest_size=16)
        for side in filter(None, chain(*self._sound_inputs().values())):
            digest.update(repr(side.evidence).encode())
            for name, value in sorted(side.parts.items()):
                for array in value if isinstance(value, tuple) else (value,):
                    if isinstance(array, np.ndarray):
                        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
                        digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def load(self, alike: ReadAlike, protocol: Protocol, read: ReadBytes) -> Inputs:
        """Return prediction and ground truth. Raises DataError."""
        return self._sound_inputs()[alike.metrics[0].name]

    def _sound_inputs(self) -> dict[str, Inputs]:
        if isinstance(self.inputs, DataError):
            raise self.inputs
        return self.inputs


def named_id(value: object) -> str:
    """Return an image's id as text: text, or a whole number of Python, numpy or torch.

    Raises DataError for anything else.

    Examples
    --------
    >>> named_id("a"), named_id(3), named_id(np.int64(3)), named_id(np.array(3))
    ('a', '3', '3', '3')
    """
    item = getattr(value, "item", None)  # of numpy and torch
    plain = item() if item and getattr(value, "ndim", 0) == 0 else value
    if isinstance(plain, int) and not isinstance(plain, bool):
        plain = str(plain)
    if not TEXT_CHECK.accepts(plain):
        raise DataError(f"image id {kind_of_value(value)}: expected text, or a whole number")
    return str(plain)


def array_items(items: Iterable[object], plan: Plan) -> Iterator[ArrayItem]:
    """Yield the images of an iterable of (id, prediction, truth), one by one as they are needed.

    Raises DataError for an item of another form, or an id twice.
    """
    seen = set()
    for number, item in enumerate(items, 1):
        if not (isinstance(item, tuple | list) and len(item) == 3):
            wrong = f"item {number}: {kind_of_value(item)}"
            raise DataError(f"{wrong}, expected (id, prediction, truth)")
        image_id, pred, truth = item
        try:
            image_id = named_id(image_id)
        except DataError as error:
            raise DataError(f"item {number}: {error}") from None
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        try:
            inputs = {}
            for (metric, *_), _, readings in plan.by_reading:
                inputs[metric.name] = Inputs(
                    _prediction_of(image_id, pred, plan.pred_kind, readings),
                    _truth_of_arrays(image_id, truth, metric.gt_kind, readings.gt, plan.protocol),
                )
            yield ArrayItem(image_id, inputs)
        except DataError as error:
            yield ArrayItem(image_id, error)


def _prediction_of(image_id: str, pred: object, kind: str, readings: Readings) -> Prediction:
    if not isinstance(pred, Prediction):
        array = one_channel(given_array(pred, "array")) if kind == "classes" else _plane(pred)
        part = {"classes": "classes", "labels": "segs", "depth-map": "depth"}.get(kind, "soft")
        parts: dict[str, Any] = {part: (array,) if kind == "labels" else array}
        pred = Prediction(image_id, **parts)
    is_label_map = "classes" in pred.parts and pred.classes.ndim == 2
    if readings.gt.kind is Kind.MASK and is_label_map and not pred.evidence.maps:
        cut = readings.pred.mask(pred.classes, f"{image_id}: prediction", image_id)
        pred = Prediction(image_id, pred.path, classes=cut.mask, evidence=cut.evidence)
    return pred


def _truth_of_arrays(
    image_id: str, truth: object, kind: str, reading: Reading, protocol: Protocol
) -> GroundTruth:
    masks, label = reading.kind is Kind.MASK, f"{image_id}: ground truth"
    if isinstance(truth, GroundTruth):
        if masks and "labels" in truth.parts and "mask" not in truth.parts:
            return truth.replace(labels=None, **mask_parts(truth.labels, reading, image_id, label))
        return truth
    if kind == "annotators":
        if not isinstance(truth, list | tuple):
            array = one_channel(given_array(truth, "array"))
            if array.ndim not in (2, 3):
                wrong = f"ground truth: {kind_of_value(truth)}"
                raise DataError(f"{wrong}, expected maps (H, W) or (A, H, W)")
            if array.ndim == 3:
                refuse_last_axis(array)
            truth = array[None] if array.ndim == 2 else array
        regions = reading.kind is Kind.REGIONS and protocol.gt_kind == "labels"
        planes = map(_plane, truth)
        drawn = [annotation_of(plane, reading, label, image_id, regions) for plane in planes]
        return truth_of(image_id, None, drawn)
    array = one_channel(given_array(truth, "array")) if kind == "classes" else _plane(truth)
    if masks and array.ndim == 2:
        parts: dict[str, Any] = mask_parts(array, reading, image_id, label)
        return GroundTruth(image_id, **parts)
    if kind == "depth-map":
        return GroundTruth(image_id, depth=array)
    if array.ndim == 2:
        return GroundTruth(image_id, labels=array)
    return GroundTruth(image_id, class_boundaries=array != 0)


def _plane(pred: object) -> NDArray[Any]:
    """Return (H, W) of (H, W), (1, H, W) or (H, W, 1)."""
    soft = one_channel(given_array(pred, "array"))
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft


# ---- the files of a finished run -----------------------------------------------------------------


@attrs.frozen(eq=False)
class Sources:
    """The files of a run, by image id."""

    pairs: dict[str, Pair]
    photos: dict[str, Path]  # may lack some
    pred_kind: str
    metric: Metric  # whose ground truth is read
    views: dict[str, Path]  # masks of the counted pixels

    def load(
        self, image_id: str, protocol: Protocol, read: ReadBytes = read_bytes
    ) -> PredictionAndTruth:
        """Read prediction and ground truth of an image, as a run does. Raises DataError."""
        pred, gt = self._item(image_id, protocol).load(self._alike(protocol), protocol, read)
        if pred is None:
            raise DataError(f"{image_id}: a run of annotators, expected one with predictions")
        return PredictionAndTruth(pred, gt)

    def load_of_run(
        self, run: Evaluation, record: ImageRecord, metric: Metric | None
    ) -> PredictionAndTruth:
        """Read an image of a run. Raises DataError where its files are not those of the run.

        They are if they have the hash that is stored beside the counts. Another version of the
        package hashes otherwise, and some runs keep no hash: then the metric counts them again.
        """
        files, item = HeldFiles(), self._item(record.image_id, run.protocol)
        inputs = self.load(record.image_id, run.protocol, files)
        for errors in (False, True):
            stamp = stamp_of(run.metrics, run.protocol, self.pred_kind, errors)
            if image_fingerprint(item, stamp, files) == record.fingerprint:
                return inputs
        if metric is not None:
            stored, counted = record.counts[metric.name], metric.count_image(*inputs, run.protocol)
            check_same_counts(run, record.image_id, stored, counted)
        return inputs

    def _alike(self, protocol: Protocol) -> ReadAlike:
        """Return how the metric reads files by a protocol."""
        return registry.by_reading([self.metric.name], protocol, self.pred_kind)[0]

    def _item(self, image_id: str, protocol: Protocol) -> FileItem:
        """Return the image as the run had it."""
        files = self.pairs[image_id]
        photo = self.photos.get(image_id) if self.metric.photo else None
        with_instances = self._alike(protocol).files.instances
        instances = map(instances_beside, files.gt_paths) if with_instances else ()
        others = photo, tuple(filter(None, instances))
        return FileItem(files, self.pred_kind, *others, valid=self.views.get(image_id))

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """The ground truth alone. Raises DataError."""
        item = FileItem(self.pairs[image_id], "", valid=self.views.get(image_id))
        return item.load(self._alike(protocol), protocol).gt

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
    """Find the files that a run was made from, in the given folders or those that it names.

    Only the run's own images are read; one that was counted without a prediction (missing="zero")
    stays without. `images_dir` are by default those of the run, or beside its ground truth (BSDS).
    The ground truth is that of `metric`, by default of the run's first one. Raises DataError if
    the folders are not known, are gone, or lack an image of the run.
    """
    pred, gt = pred_dir or run.place("pred"), gt_dir or run.place("gt")
    if not pred or not gt:
        raise DataError(f"{run.name}: where its predictions and ground truth are is not known")
    if not run.metrics:
        raise DataError(f"{run.name}: no images, expected a run with records")
    reader = registry.readers(run.metrics if metric in run.metrics or not metric else [metric])[0]
    kind = run.provenance.pred_kind or reader.pred_kinds[0]
    missing = "zero" if run.provenance.missing in (None, "zero") else "error"
    alike = registry.by_reading([reader.name], run.protocol, kind)[0]
    pairs = _pairs(pred, gt, run.image_ids, missing, kind, alike)
    photos = images_dir or run.place("photos") or photos_beside(gt)
    by_id = {p.image_id: p for p in pairs}
    views = _fields_of_view(run.place("valid"), pairs) if reader.void else {}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, reader, views)


def fault_of(run: Evaluation, error: DataError) -> str:
    """Describe the fault of a run's files; folders appear by name only: paths are private."""
    line = str(error.problems[0])
    for folder in filter(None, map(run.place, ("pred", "gt", "photos", "valid"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
