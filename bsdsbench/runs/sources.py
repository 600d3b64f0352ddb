"""Sources of images: two folders, an iterable of arrays, and the files of a finished run."""

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
from bsdsbench.loaders.annotators import join_annotations, parse_annotation, refuse_last_axis
from bsdsbench.loaders.formats.photos import find_photos, photos_beside, read_photo
from bsdsbench.loaders.pairing import Layout, Pair, Split, ground_truths, pair
from bsdsbench.loaders.readers import (
    instances_beside,
    mask_parts,
    n_placeholder_maps,
    read_prediction,
    read_truth,
    read_valid,
)
from bsdsbench.loaders.reading import Kind, Reading, Readings
from bsdsbench.loaders.sets.identity import folder_fingerprints, identify, set_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.registry import ReadAlike
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.provenance import Provenance
from bsdsbench.runs.keywords import TEXT_CHECK, Plan, StrPath, stamp_of
from bsdsbench.scores.counts import ImageRecord, checked_counts
from bsdsbench.text import show

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}


class Inputs(NamedTuple):
    """A prediction and its ground truth. The prediction is None if the annotators are scored."""

    pred: Prediction | None
    gt: GroundTruth


class PredictionAndTruth(NamedTuple):
    """A prediction and its ground truth."""

    pred: Prediction
    gt: GroundTruth


def check_same_counts(
    run: Evaluation, image_id: str, stored: Mapping[str, Any], counted: Mapping[str, Any]
) -> None:
    """Raise DataError if an image, counted again, does not give the counts of the run.

    `stored` are the counts of the run, `counted` the new ones.
    """
    new_counts = checked_counts(counted)
    if not all(
        np.array_equal(stored[name], new_counts[name], equal_nan=True) for name in new_counts
    ):
        raise DataError(
            f"{image_id}: other counts than those of {run.name}; its files or its settings are not "
            "those of the run"
        )


@attrs.frozen
class RunHeader:
    """The facts about a run that are known before its images are counted.

    `places` holds the absolute paths of the provenance's folders. `failed` maps the images for
    which the detector gave no prediction to the reason.
    """

    name: str
    protocol: Protocol
    provenance: Provenance
    places: Mapping[str, str] = attrs.field(factory=dict)
    failed: Mapping[str, str] = attrs.field(factory=dict)

    def with_provenance(self, **known: Any) -> RunHeader:
        """Return the header with changed fields of the provenance."""
        return attrs.evolve(self, provenance=attrs.evolve(self.provenance, **known))


class Item(typing.Protocol):
    """One image of a run."""

    @property
    def image_id(self) -> str:
        """The id of the image."""

    @property
    def form(self) -> str:
        """The word that replaces the form of the prediction: "humans", "none" or ""."""

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of everything that `load` reads. `read` reads the bytes of a file."""

    def load(self, alike: ReadAlike, protocol: Protocol, read: ReadBytes) -> Inputs:
        """Read the prediction and the ground truth for metrics that read alike."""


def image_fingerprint(item: Item, stamp: str, read: ReadBytes) -> str:
    """Return a hash of an image's files and of the run's `stamp`: all that its counts depend on."""
    text = json.dumps([stamp, item.image_id]).encode()
    return hashlib.blake2b(text + item.key(read), digest_size=16).hexdigest()


@attrs.frozen(slots=False)
class FileItem:
    """An image whose files lie in two folders."""

    pair: Pair
    kind: str  # of the prediction; "" if the annotators are scored
    photo: Path | None = None
    instances: tuple[Path, ...] = ()  # instance maps that belong to the ground truth
    form: str = ""
    n_maps: int = 1  # label maps in place of a missing prediction
    valid: Path | None = None  # mask of the pixels that are counted: the field of view

    @property
    def image_id(self) -> str:
        """The id of the image."""
        return self.pair.image_id

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of the bytes of the image's files."""
        digest = hashlib.blake2b(f"{self.kind} {self.n_maps}".encode(), digest_size=16)
        groups = [self.pair.pred_paths, self.pair.gt_paths, (self.photo,), self.instances]
        if self.valid is not None:
            groups.append((self.valid,))
        for group in groups:
            digest.update(b"|")
            for path in filter(None, group):
                digest.update(hashlib.blake2b(read(path)).digest())
        return digest.digest()

    def load(self, alike: ReadAlike, protocol: Protocol, read: ReadBytes = read_bytes) -> Inputs:
        """Read the prediction and the ground truth for metrics that read alike."""
        (metric, *_), files, readings = alike
        gt = read_truth(self.pair, metric.gt_kind, protocol, files.instances, readings.gt, read)
        if self.photo is not None:
            gt = gt.replace(photo=read_photo(self.photo, read))
        if self.valid is not None:
            not_void = gt.parts.get("valid", True)
            gt = gt.replace(valid=read_valid(self.valid, gt.shape, read) & not_void)
        if not self.kind:
            return Inputs(None, gt)
        n_maps = len(files.classes) or self.n_maps
        pred = read_prediction(self.pair, self.kind, gt.shape, n_maps, readings.pred, read)
        return Inputs(pred, gt)


class PairedFolders(NamedTuple):
    """The images of two folders, and the ids of those left out as they have no prediction."""

    items: list[FileItem]
    absent: tuple[str, ...]


def list_items(
    pred_dir: StrPath, gt_dir: StrPath, plan: Plan, ids: Sequence[str] | None = None
) -> PairedFolders:
    """Pair the predictions with the ground truth, and return an item for each image.

    `ids` are the images to evaluate, in place of a split file. Raises PairingError if a prediction
    or a ground truth is missing, unless `plan.missing` allows it.
    """
    alike = plan.by_reading[0]
    kind = plan.pred_kind
    if plan.on_dask:  # Dask workers have other working directories
        pred_dir, gt_dir = os.path.abspath(pred_dir), os.path.abspath(gt_dir)
    split = plan.split_file if ids is None else ids
    missing = "error" if plan.missing == "error" else "zero"
    pairs = _pair_files(pred_dir, gt_dir, split, missing, kind, alike)
    absent: tuple[str, ...] = ()
    if plan.missing == "skip":
        absent = tuple(p.image_id for p in pairs if not p.pred_paths)
        pairs = [p for p in pairs if p.pred_paths]
    photos: dict[str, Path] = {}
    reads_photos = any(map(attrgetter("photo"), map(registry.get, plan.metrics)))
    if reads_photos and (images_dir := plan.images_dir or photos_beside(gt_dir)):
        photos = find_photos(images_dir, [p.image_id for p in pairs])
    views = _fields_of_view(plan.valid_dir, pairs)
    n_maps = n_placeholder_maps(pairs) if kind == "labels" else 1
    items = [_item_of(p, kind, alike, photos, views, n_maps) for p in pairs]
    return PairedFolders(items, absent)


def _item_of(
    pair: Pair,
    kind: str,
    alike: ReadAlike,
    photos: Mapping[str, Path],
    views: Mapping[str, Path],
    n_maps: int = 1,
) -> FileItem:
    """Return the item of an image with its photo, instance maps and field of view, if any.

    `n_maps` label maps stand for a missing prediction.
    """
    instances = map(instances_beside, pair.gt_paths) if alike.files.instances else ()
    return FileItem(
        pair=pair,
        kind=kind,
        photo=photos.get(pair.image_id),
        instances=tuple(filter(None, instances)),
        form="" if pair.pred_paths else "none",
        n_maps=1 if pair.pred_paths else n_maps,
        valid=views.get(pair.image_id),
    )


def _pair_files(
    pred_dir: StrPath, gt_dir: StrPath, split: Split, missing: str, kind: str, alike: ReadAlike
) -> list[Pair]:
    """Pair the files of both sides for metrics that read alike. Raises PairingError."""
    return pair(
        pred_dir,
        gt_dir,
        split,
        missing,
        pred_kind=kind,
        gt_kind=alike.metrics[0].gt_kind,
        classes=alike.files.classes,
        sequences=alike.files.sequences,
    )


def _fields_of_view(valid_dir: StrPath | None, pairs: Sequence[Pair]) -> dict[str, Path]:
    """Map image ids to their field-of-view files. Raises PairingError if one is missing."""
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
    """Return the header of a run over folders. Without `pred` the annotators are scored.

    The header of a shard holds a hash of its ground-truth files, because no shard sees those of the
    others.
    """
    photos = None if pred is None else plan.images_dir
    folders = {"pred": pred, "gt": gt, "photos": photos, "valid": plan.valid_dir}
    present = {side: folder for side, folder in folders.items() if folder is not None}
    paths = {side: str(Path(folder).resolve()) for side, folder in present.items()}
    known: dict[str, Any] = {side: show(folder) for side, folder in present.items()}
    if pred is not None:
        known |= {"pred_kind": plan.pred_kind, "missing": plan.missing, "task": plan.task}
        known["split"] = None if plan.split_file is None else show(plan.split_file)
    ids = "\0".join(map(attrgetter("image_id"), items)).encode("utf-8", "surrogateescape")
    provenance = Provenance(
        **known,
        images=hashlib.blake2b(ids, digest_size=8).hexdigest(),
        pred_layout=Layout.of_files({item.image_id: item.pair.pred_paths for item in items}),
        gt_layout=Layout.of_files({item.image_id: item.pair.gt_paths for item in items}),
        truth=_hash_ground_truth(items) if plan.shard != (1, 1) else None,
    )
    name = "human" if pred is None else plan.name or _method_name(pred)
    places = {side: path for side, path in paths.items() if show(path) == path}
    return RunHeader(name, plan.protocol, provenance, places)


def _method_name(pred_dir: StrPath) -> str:
    """Return the last part of a folder's path that is not the name of a split."""
    parts = list(Path(pred_dir).resolve().parts)
    while len(parts) > 1 and parts[-1].lower() in SPLITS:
        parts.pop()
    return show(parts[-1])


def _hash_ground_truth(items: Sequence[FileItem]) -> str:
    """Return a hash of the ground-truth files of all items."""
    digest = hashlib.blake2b(digest_size=8)
    for item in items:
        for file in filter(None, (*item.pair.gt_paths, item.valid)):
            with suppress(DataError):  # the run reports an unreadable file when it reaches it
                digest.update(hashlib.blake2b(read_bytes(file)).digest())
    return digest.hexdigest()


def check_truth(
    task: Task, gt_dir: StrPath, protocol: Protocol, split_file: StrPath | None = None
) -> None:
    """Raise DataError if the ground truth in `gt_dir` is not the set of the task.

    For a set without a fingerprint only the ids or the number of images are compared.
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
        has = f"is {identify(truths).describe()}"
        expected = task.set
    raise DataError(f"{show(gt_dir)}: {has}, expected {expected} ({task.name})")


# ---- images of arrays ----------------------------------------------------------------------------


@attrs.frozen
class ArrayItem:
    """An image whose inputs are arrays, or the error that the arrays gave."""

    image_id: str
    inputs: dict[str, Inputs] | DataError  # by the first metric of each group that reads alike
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
        """Return the prediction and the ground truth for metrics that read alike."""
        return self._sound_inputs()[alike.metrics[0].name]

    def _sound_inputs(self) -> dict[str, Inputs]:
        """Return the inputs by metric. Raises the DataError of faulty arrays."""
        if isinstance(self.inputs, DataError):
            raise self.inputs
        return self.inputs


def named_id(value: object) -> str:
    """Convert an image id to text. Integers of Python, numpy and torch are accepted.

    Raises DataError for any other value.

    Examples
    --------
    >>> named_id("a"), named_id(3), named_id(np.int64(3)), named_id(np.array(3))
    ('a', '3', '3', '3')
    """
    item = getattr(value, "item", None)  # numpy and torch scalars convert themselves
    plain = item() if item and getattr(value, "ndim", 0) == 0 else value
    is_int = isinstance(plain, int) and not isinstance(plain, bool)
    if not (is_int or TEXT_CHECK.accepts(plain)):
        raise DataError(f"image id {kind_of_value(value)}: expected text, or a whole number")
    return str(plain)


def array_items(items: Iterable[object], plan: Plan) -> Iterator[ArrayItem]:
    """Yield an item for each (id, prediction, ground truth) of an iterable, as each is needed.

    Raises DataError for an entry of another form, and for a repeated id.
    """
    seen = set()
    for number, item in enumerate(items, 1):
        if not (isinstance(item, tuple | list) and len(item) == 3):
            fault = f"item {number}: {kind_of_value(item)}"
            raise DataError(f"{fault}, expected (id, prediction, truth)")
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
    """Wrap an array in a Prediction. If the ground truth is a mask, binarise a class map. `kind` is
    the content of the array: "classes", "labels", "depth-map", or else a soft map.
    """
    if not isinstance(pred, Prediction):
        array = one_channel(given_array(pred, "array")) if kind == "classes" else _plane(pred)
        name = {"classes": "classes", "labels": "segs", "depth-map": "depth"}.get(kind, "soft")
        parts: dict[str, Any] = {name: (array,) if kind == "labels" else array}
        pred = Prediction(image_id, **parts)
    is_label_map = "classes" in pred.parts and pred.classes.ndim == 2
    if readings.gt.kind is Kind.MASK and is_label_map and not pred.evidence.maps:
        binarised = readings.pred.mask(pred.classes, f"{image_id}: prediction", image_id)
        mask, evidence = binarised.mask, binarised.evidence
        pred = Prediction(image_id, pred.path, classes=mask, evidence=evidence)
    return pred


def _truth_of_arrays(
    image_id: str, truth: object, kind: str, reading: Reading, protocol: Protocol
) -> GroundTruth:
    """Wrap arrays in a GroundTruth of a kind. Raises DataError. Labels, also those of a
    GroundTruth, are binarised if `reading` says that they are a mask.
    """
    are_masks = reading.kind is Kind.MASK
    label = f"{image_id}: ground truth"
    if isinstance(truth, GroundTruth):
        if are_masks and "labels" in truth.parts and "mask" not in truth.parts:
            return truth.replace(labels=None, **mask_parts(truth.labels, reading, image_id, label))
        return truth
    if kind == "annotators":
        regions = reading.kind is Kind.REGIONS and protocol.gt_kind == "labels"
        planes = map(_plane, _annotator_maps(truth))
        annotations = [parse_annotation(p, reading, label, image_id, regions) for p in planes]
        return join_annotations(image_id, None, annotations)
    array = one_channel(given_array(truth, "array")) if kind == "classes" else _plane(truth)
    if are_masks and array.ndim == 2:
        parts: dict[str, Any] = mask_parts(array, reading, image_id, label)
        return GroundTruth(image_id, **parts)
    if kind == "depth-map":
        return GroundTruth(image_id, depth=array)
    if array.ndim == 2:
        return GroundTruth(image_id, labels=array)
    return GroundTruth(image_id, class_boundaries=array != 0)


def _annotator_maps(truth: object) -> Iterable[object]:
    """Split an array (H, W) or (A, H, W) into the maps of annotators; a list is returned as it is.
    Raises DataError for another shape.
    """
    if isinstance(truth, list | tuple):
        return truth
    array = one_channel(given_array(truth, "array"))
    if array.ndim not in (2, 3):
        wrong = f"ground truth: {kind_of_value(truth)}"
        raise DataError(f"{wrong}, expected maps (H, W) or (A, H, W)")
    if array.ndim == 2:
        return array[None]
    refuse_last_axis(array)
    return array


def _plane(pred: object) -> NDArray[Any]:
    """Return a map (H, W), (1, H, W) or (H, W, 1) as (H, W)."""
    soft = one_channel(given_array(pred, "array"))
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft


# ---- the files of a finished run -----------------------------------------------------------------


@attrs.frozen(eq=False)
class Sources:
    """The files of a run, by image id."""

    pairs: dict[str, Pair]
    photos: dict[str, Path]  # may lack images
    pred_kind: str
    metric: Metric  # the metric for which the ground truth is read
    views: dict[str, Path]  # masks of the counted pixels

    def load(
        self, image_id: str, protocol: Protocol, read: ReadBytes = read_bytes
    ) -> PredictionAndTruth:
        """Read the prediction and the ground truth of an image, as a run does. Raises DataError."""
        pred, gt = self._item(image_id, protocol).load(self._alike(protocol), protocol, read)
        if pred is None:
            raise DataError(f"{image_id}: a run of annotators, expected one with predictions")
        return PredictionAndTruth(pred, gt)

    def load_of_run(
        self, run: Evaluation, record: ImageRecord, metric: Metric | None
    ) -> PredictionAndTruth:
        """Read an image of a run, and check that its files are still those of the run.

        They are if their hash is the stored one. Otherwise (changed files, another version of the
        package, no stored hash) `metric` counts the image again; raises DataError if the counts
        differ. If `metric` is None, such an image is returned unchecked.
        """
        files = HeldFiles()
        item = self._item(record.image_id, run.protocol)
        inputs = self.load(record.image_id, run.protocol, files)
        for errors in (False, True):  # the hash depends on whether error classes were counted
            stamp = stamp_of(run.metrics, run.protocol, self.pred_kind, errors)
            if image_fingerprint(item, stamp, files) == record.fingerprint:
                return inputs
        if metric is not None:
            counted = metric.count_image(*inputs, run.protocol)
            check_same_counts(run, record.image_id, record.counts[metric.name], counted)
        return inputs

    def _alike(self, protocol: Protocol) -> ReadAlike:
        """Return how the metric reads files by a protocol."""
        return registry.by_reading([self.metric.name], protocol, self.pred_kind)[0]

    def _item(self, image_id: str, protocol: Protocol) -> FileItem:
        """Return the item of an image, as the run had it."""
        photos = self.photos if self.metric.photo else {}
        alike = self._alike(protocol)
        return _item_of(self.pairs[image_id], self.pred_kind, alike, photos, self.views)

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """Read the ground truth of an image alone. Raises DataError."""
        item = FileItem(self.pairs[image_id], "", valid=self.views.get(image_id))
        return item.load(self._alike(protocol), protocol).gt

    def photo(self, image_id: str, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
        """Read the photo of an image, or return None if there is none of that shape."""
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
    """Find the files that a run was made from, in the given folders or in those of its provenance.

    Only images of the run are listed. An image counted without a prediction (missing="zero") stays
    without. `images_dir` is by default the folder of the run's photos, or the one beside the ground
    truth (BSDS). The ground truth is read for `metric`, by default the run's first. Raises
    DataError if a folder is not known, is gone, or lacks an image of the run.
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
    pairs = _pair_files(pred, gt, run.image_ids, missing, kind, alike)
    photos = images_dir or run.place("photos") or photos_beside(gt)
    by_id = {p.image_id: p for p in pairs}
    views = _fields_of_view(run.place("valid"), pairs) if reader.void else {}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, reader, views)


def fault_of(run: Evaluation, error: DataError) -> str:
    """Describe the problem with a run's files, with folder names in place of private paths."""
    line = str(error.problems[0])
    for folder in filter(None, map(run.place, ("pred", "gt", "photos", "valid"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
