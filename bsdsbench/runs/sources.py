"""Find and read the input files of a run, from two folders or for a finished run."""

from __future__ import annotations

import hashlib
import json
import os
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError, InputWarning, warn
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import HeldFiles, ReadBytes, read_bytes
from bsdsbench.loaders import pairing, readers
from bsdsbench.loaders.formats.class_files import find_instances_file
from bsdsbench.loaders.formats.photos import find_photo_folder, find_photos, read_photo
from bsdsbench.loaders.pairing import Layout, Pair
from bsdsbench.loaders.sets.identity import folder_fingerprints, identify, set_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.registry import MetricGroup
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.keywords import Plan, StrPath, hash_settings
from bsdsbench.scores.counts import ImageRecord, checked_counts
from bsdsbench.text import show

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}


class Inputs(NamedTuple):
    """The prediction and ground truth of one image."""

    pred: Prediction | None  # None if the annotators are scored against each other
    gt: GroundTruth


class PredictionAndTruth(NamedTuple):
    """The `Inputs` of an image whose prediction is not None."""

    pred: Prediction
    gt: GroundTruth


def check_same_counts(
    run: Evaluation, image_id: str, stored: Mapping[str, Any], counted: Mapping[str, Any]
) -> None:
    """Raise DataError if the new counts of an image differ from those stored in the run.

    `stored` and `counted` hold arrays by name, those of one metric.
    """
    for name, array in checked_counts(counted).items():
        if not np.array_equal(stored[name], array, equal_nan=True):
            raise DataError(
                f"{image_id}: other counts than those of {run.name}; its files or its settings are "
                "not those of the run"
            )


class Item(typing.Protocol):
    """One image of a run: its id, a hash of its inputs, and a way to read them."""

    @property
    def image_id(self) -> str:
        """The id of the image."""

    @property
    def form(self) -> str:
        """The value of `ImageRecord.form` if the prediction is not from a file, otherwise "".

        It is "none" if an empty map replaces a missing file, and "humans" if annotators are scored.
        """

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of everything that `load` reads. `read` returns the bytes of a file."""

    def load(self, group: MetricGroup, read: ReadBytes) -> Inputs:
        """Read the image's prediction and ground truth for a group of metrics."""


def image_fingerprint(item: Item, settings_hash: str, read: ReadBytes) -> str:
    """Return a hash of everything that an image's counts depend on: its id, files and settings.

    settings_hash: see `Plan.settings_hash`.
    """
    text = json.dumps([settings_hash, item.image_id]).encode()
    return hashlib.blake2b(text + item.key(read), digest_size=16).hexdigest()


@attrs.frozen(slots=False)
class FileItem:
    """An image whose inputs are files."""

    image_id: str
    pair: Pair
    kind: str  # kind of the prediction, such as "soft", or "" if the annotators are scored
    photo: Path | None = None  # the original image
    instances: tuple[Path, ...] = ()  # instance maps that belong to the ground truth
    form: str = ""  # see `Item.form`
    n_maps: int = 1  # number of empty label maps that replace a missing prediction
    valid: Path | None = None  # mask of the field of view, outside which pixels are ignored

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of the content of all files of the image, which `read` returns as bytes.

        `load` replaces a missing prediction by `n_maps` empty maps of `kind`, so these two are
        hashed too.
        """
        digest = hashlib.blake2b(f"{self.kind} {self.n_maps}".encode(), digest_size=16)
        photos = () if self.photo is None else (self.photo,)
        files_by_role = [self.pair.pred_paths, self.pair.gt_paths, photos, self.instances]
        if self.valid is not None:
            files_by_role.append((self.valid,))
        for paths in files_by_role:
            digest.update(b"|")  # ends a role: moving a file to the next one changes the hash
            for path in paths:
                digest.update(hashlib.blake2b(read(path)).digest())
        return digest.digest()

    def load(self, group: MetricGroup, read: ReadBytes = read_bytes) -> Inputs:
        """Read the prediction and the ground truth as the metrics in `group` interpret them.

        The ground truth includes the photo, and its valid pixels are those in the field of view, if
        given. If the image has no file of a prediction, the prediction is an empty map. If
        annotators are scored (`kind` is ""), it is None. `read` returns the bytes of a file.
        """
        files = group.files  # `instances`: whether there are instance maps beside label maps
        readings = group.readings  # the meaning of the values, such as whether 255 is void
        gt_kind = group.metrics[0].gt_kind  # a group reads files as its first metric does
        gt = readers.read_truth(self.pair, gt_kind, readings.gt, files.instances, read)
        if self.photo is not None:
            gt = gt.replace(photo=read_photo(self.photo, read))
        if self.valid is not None:
            field_of_view = readers.read_field_of_view(self.valid, gt.shape, read)
            not_void = gt.parts.get("valid", True)
            gt = gt.replace(valid=field_of_view & not_void)
        if not self.kind:
            return Inputs(None, gt)
        # Of an empty prediction: one per class if predictions have a file per class (`classes`)
        n_maps = len(files.classes) or self.n_maps
        pred = readers.read_prediction(self.pair, self.kind, gt.shape, n_maps, readings.pred, read)
        return Inputs(pred, gt)


class PairedFolders(NamedTuple):
    """The paired images of two folders."""

    items: list[FileItem]
    absent: tuple[str, ...]  # ids of images left out because they have no prediction


def list_items(
    pred_dir: StrPath, gt_dir: StrPath, plan: Plan, ids: Sequence[str] | None = None
) -> PairedFolders:
    """Pair the predictions in a folder with their ground truth, and return an item for each image.

    ids: the images to evaluate. Default: those of the plan's split file, or all if it has none.

    `plan.missing` says what becomes of an image without a prediction: "skip" leaves it out, "zero"
    gives it an item without a file, and "error" raises. Raises PairingError, which lists all such
    images, and all images without ground truth.
    """
    if os.path.realpath(pred_dir) == os.path.realpath(gt_dir):
        warn(InputWarning(f"{show(pred_dir)}: the predictions are the ground truth itself"))
    images_dir = plan.images_dir
    if images_dir is not None and not os.path.isdir(images_dir):
        raise DataError(f"{show(images_dir)}: is not a folder, expected one of pictures")
    # Photos, the original images, are needed by some metrics only
    if not any(map(attrgetter("photo"), map(registry.get, plan.metrics))):
        images_dir = None
    elif images_dir is None:
        images_dir = find_photo_folder(gt_dir)
    if plan.on_dask:  # Dask workers have other working directories
        pred_dir, gt_dir = os.path.abspath(pred_dir), os.path.abspath(gt_dir)
        images_dir = images_dir and os.path.abspath(images_dir)
    wanted = plan.split_file if ids is None else ids
    folders = pred_dir, gt_dir, images_dir, plan.valid_dir  # the last: masks of the field of view
    group = plan.metric_groups[0]  # further groups read the same files, with other meanings
    return _pair_files(*folders, wanted, plan.missing, plan.pred_kind, group)


def _pair_files(
    pred_dir: StrPath,
    gt_dir: StrPath,
    photo_dir: StrPath | None,
    valid_dir: StrPath | None,
    wanted: Sequence[str] | StrPath | None,
    missing: str | None,
    kind: str,
    group: MetricGroup,
) -> PairedFolders:
    """Pair predictions with their ground truth, and collect all files of each image as an item.

    photo_dir, valid_dir: the folders of photos and of masks of the field of view, if they are read.
    wanted: the ids of the images, or a file that lists them; None for all.
    missing: what becomes of an image without a prediction: "skip" leaves it out, "zero" gives it an
        item without a file, and "error" raises.
    kind: the kind of the predictions, such as "soft".
    group: the metrics for which the files are read. Its `files` say what they expect: the names of
        the `classes` if a prediction has one file per class, and whether ids are SEQUENCE/FRAME
        (`sequences`) and the ground truth has instance maps (`instances`) beside its label maps.

    Raises PairingError, which lists all images that lack a file.
    """
    pairs = pairing.pair(
        pred_dir,
        gt_dir,
        wanted,
        "error" if missing == "error" else "zero",  # with "skip", they are left out below
        pred_kind=kind,
        gt_kind=group.metrics[0].gt_kind,
        classes=group.files.classes,
        sequences=group.files.sequences,
    )
    absent: tuple[str, ...] = ()
    if missing == "skip":
        absent = tuple(p.image_id for p in pairs if not p.pred_paths)
        pairs = [p for p in pairs if p.pred_paths]
    ids = list(map(attrgetter("image_id"), pairs))
    photos = find_photos(photo_dir, {*ids}) if photo_dir else {}
    views = {} if valid_dir is None else _fields_of_view(valid_dir, ids)
    # Number of empty label maps that replace a missing prediction
    n_maps = readers.count_placeholder_maps(pairs) if kind == "labels" else 1
    items = []
    for matched in pairs:
        image_id = matched.image_id
        has_pred = len(matched.pred_paths) > 0
        # Label maps beside which there may be a map of instances
        gt_paths = matched.gt_paths if group.files.instances else ()
        item = FileItem(
            image_id=image_id,
            pair=matched,
            kind=kind,
            photo=photos.get(image_id),
            instances=tuple(filter(None, map(find_instances_file, gt_paths))),
            form="" if has_pred else "none",
            n_maps=1 if has_pred else n_maps,
            valid=views.get(image_id),
        )
        items.append(item)
    return PairedFolders(items, absent)


def _fields_of_view(valid_dir: StrPath, ids: Sequence[str]) -> dict[str, Path]:
    """Find the mask of the field of view of each image in `valid_dir`: {image id: path}.

    Raises PairingError if an image has no mask.
    """
    sequences = any("/" in image_id for image_id in ids)  # ids of video frames: SEQUENCE/FRAME
    folder = os.path.abspath(valid_dir)
    # Masks are paired as if they were ground truth without predictions (None, "zero"), so they are
    # returned as `gt_paths`
    masks = pairing.pair(
        None, folder, ids, "zero", "mask of the field of view", gt_kind="mask", sequences=sequences
    )
    return {mask.image_id: mask.gt_paths[0] for mask in masks}


def run_of_folders(
    items: Sequence[FileItem],
    plan: Plan,
    absent: tuple[str, ...] = (),
    *,
    gt: StrPath,
    pred: StrPath | None = None,
) -> Evaluation:
    """Start a run over folders, before its images are counted: an Evaluation without records.

    It has the name and the provenance of the run: folders, layout of the files, and settings. The
    provenance of a shard has a hash of the ground truth of all shards, which `merge` compares.

    items: all images of the run, including those of other shards.
    absent: the ids of images left out because they have no prediction.
    gt, pred: the folders. If `pred` is None, the annotators are scored, and the name is "human".

    The default name is that of the folder of predictions. If this is the name of a split, such as
    "test", the nearest parent folder with another name is used.
    """
    fields: dict[str, Any] = {}  # of the provenance
    photos = None if pred is None else plan.images_dir
    folders = {"pred": pred, "gt": gt, "photos": photos, "valid": plan.valid_dir}
    if pred is not None:
        fields.update(pred_kind=plan.pred_kind, missing=plan.missing, task=plan.task)
        fields["split"] = None if plan.split_file is None else show(plan.split_file)
    places = {}  # absolute paths of the folders
    for role, folder in folders.items():
        if folder is not None:
            fields[role] = show(folder)  # as the caller gave it, which may be a relative path
            path = str(Path(folder).resolve())
            if show(path) == path:  # `show` would replace unprintable characters: not stored
                places[role] = path
    pred_files, gt_files = {}, {}
    for item in items:
        pred_files[item.image_id] = item.pair.pred_paths
        gt_files[item.image_id] = item.pair.gt_paths
    ids = "\0".join(gt_files).encode("utf-8", "surrogateescape")  # the ids of all shards
    provenance = Provenance(
        **fields,
        images=hashlib.blake2b(ids, digest_size=8).hexdigest(),
        no_prediction=absent,
        pred_layout=Layout.of_files(pred_files),  # the number and names of the files per image
        gt_layout=Layout.of_files(gt_files),
        truth=None if plan.shard == (1, 1) else _hash_ground_truth(items),  # (1, 1): no shard
    )
    name = "human"
    if pred is not None:
        parts = list(Path(pred).resolve().parts)
        while len(parts) > 1 and parts[-1].lower() in SPLITS:
            parts.pop()
        name = plan.name or show(parts[-1])
    return Evaluation(plan.protocol, name, [], provenance, places=places)


def _hash_ground_truth(items: Sequence[FileItem]) -> str:
    """Return a hash of the ground-truth and field-of-view files. Unreadable files are skipped."""
    digest = hashlib.blake2b(digest_size=8)
    for item in items:
        for file in filter(None, (*item.pair.gt_paths, item.valid)):  # `valid`: field of view
            with suppress(DataError):  # the run reports an unreadable file when it reaches it
                # Of hashes of equal length, because files joined end to end hide their limits
                digest.update(hashlib.blake2b(read_bytes(file)).digest())
    return digest.hexdigest()


def check_truth(
    task: Task, gt_dir: StrPath, protocol: Protocol, split_file: StrPath | None = None
) -> None:
    """Raise DataError if the ground truth in `gt_dir` is not that of the task.

    A task is a data set or a part of it, a metric and a protocol. If the task has a fingerprint
    (hash) of all annotations, it must match. Otherwise the number of images must match; if the task
    lists ids, only images with these ids are counted. If the task has no number of images either,
    any ground truth is accepted.

    split_file: a list of the images to use; None means all in `gt_dir`. Without a fingerprint, None
        means the ids of the task, if it has any.
    """
    if task.fingerprint is not None:
        hashes = folder_fingerprints(gt_dir, protocol, split_file)  # image id -> hash
        if set_fingerprint(hashes) == task.fingerprint:
            return
        found_set = identify(hashes)  # the known data set with the most images in common
        fault = f"is {found_set.describe()}, expected {task.set}"
    else:
        wanted = split_file or task.ids or None  # None: all
        ids = {files.image_id for files in pairing.ground_truths(gt_dir, wanted)}
        count = len(ids.intersection(task.ids) if task.ids else ids)
        if task.images in (None, count):
            return
        # `task.set` is the name of the data set, and `task.images` the number of its images
        fault = f"{count} images, expected the {task.images} of {task.set}"
    raise DataError(f"{show(gt_dir)}: {fault} (task {task.name})")


@attrs.frozen(eq=False)
class Sources:
    """The input files of a finished run. The keys of the dicts are image ids."""

    items: dict[str, FileItem]  # prediction and ground-truth files
    photos: dict[str, Path]  # original images, for the images that have one
    pred_kind: str  # the kind of the predictions, such as "soft"
    metric: Metric  # the metric for which the files are read
    # `hash_settings` of the run without and with error classes, either of which it may have counted
    settings_hashes: tuple[str, str]

    def load(
        self, image_id: str, protocol: Protocol, read: ReadBytes = read_bytes
    ) -> PredictionAndTruth:
        """Read the prediction and ground truth of an image, as `self.metric` reads them.

        protocol: has settings for reading, such as whether maps are inverted.
        read: returns the bytes of a file.

        Raises DataError if a file cannot be read, or if the image has only annotators, which are
        scored against each other.
        """
        pred, gt = self.items[image_id].load(self._metric_group(protocol), read)
        if pred is None:
            raise DataError(f"{image_id}: a run of annotators, expected one with predictions")
        return PredictionAndTruth(pred, gt)

    def load_of_run(
        self, run: Evaluation, record: ImageRecord, metric: Metric | None
    ) -> PredictionAndTruth:
        """Read an image of a run, and check that its files are still those that were counted.

        They are if the hash of its files and settings is still that in its `record`. Otherwise, the
        image is counted again with `metric`, and DataError is raised if the counts differ from the
        stored ones; the hash alone also changes with the version of the package. With None for
        `metric`, changed files are accepted.
        """
        item = self.items[record.image_id]
        files = HeldFiles()  # a function that reads each file once, here to decode and to hash it
        inputs = self.load(record.image_id, run.protocol, files)
        for settings_hash in self.settings_hashes:  # with and without counts of error classes
            if image_fingerprint(item, settings_hash, files) == record.fingerprint:
                return inputs
        if metric is not None:
            counted = metric.count_image(*inputs, run.protocol)
            check_same_counts(run, record.image_id, record.counts[metric.name], counted)
        return inputs

    def _metric_group(self, protocol: Protocol) -> MetricGroup:
        """Return how files are read for `self.metric` under this protocol."""
        return registry.group_by_reading([self.metric.name], protocol, self.pred_kind)[0]

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """Read the ground truth of an image. Raises DataError if a file cannot be read."""
        item = attrs.evolve(self.items[image_id], kind="", photo=None)
        return item.load(self._metric_group(protocol)).gt

    def photo(self, image_id: str, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
        """Read the photo of an image, or return None if there is none of this shape (H, W)."""
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
    """Find the input files of a finished run. They are not read before `Sources.load` is called.

    pred_dir, gt_dir: the folders of predictions and ground truth. Default: those of the run.
    images_dir: the folder of photos. Default: that of the run, or the one beside the ground truth
        in the BSDS layout.
    metric: the name of a metric. If the run does not have it, the files are read for this metric.
        Otherwise, they are read for the run's first metric that reads masks, or for its first
        metric if none does.

    Raises DataError if a folder is unknown or does not exist, if an image of the run is missing,
    or if the run has no images. A missing prediction is an empty map if the run counted it as one
    (`missing="zero"`), otherwise an error.
    """
    pred, gt = pred_dir or run.place("pred"), gt_dir or run.place("gt")
    if not pred or not gt:
        raise DataError(f"{run.name}: where its predictions and ground truth are is not known")
    if not run.metrics:
        raise DataError(f"{run.name}: no images, expected a run with records")
    metrics = run.metrics if metric is None or metric in run.metrics else [metric]
    reader = registry.readers(metrics)[0]  # the first that requires masks, otherwise the first
    kind = run.provenance.pred_kind or reader.pred_kinds[0]
    # An empty map replaces a missing prediction if it did so in the run, or if this is not known
    missing = "zero" if run.provenance.missing in (None, "zero") else "error"
    group = registry.group_by_reading([reader.name], run.protocol, kind)[0]
    photo_dir = images_dir or run.place("photos") or find_photo_folder(gt)
    photos = find_photos(photo_dir, {*run.image_ids}) if photo_dir else {}
    valid_dir = run.place("valid") if reader.void else None  # fields of view exclude void pixels
    folders = pred, gt, photo_dir if reader.photo else None, valid_dir
    items, _ = _pair_files(*folders, run.image_ids, missing, kind, group)
    settings = run.metrics, run.protocol, kind
    # Two hashes, because the run does not say whether it counted errors by class
    settings_hashes = hash_settings(*settings), hash_settings(*settings, errors=True)
    return Sources({item.image_id: item for item in items}, photos, kind, reader, settings_hashes)


def fault_of(run: Evaluation, error: DataError) -> str:
    """Return the first problem of an error about a run's files, without private paths.

    Paths of the run's folders are replaced by the names of the folders.
    """
    line = str(error.problems[0])
    for side in ("pred", "gt", "photos", "valid"):
        if folder := run.place(side):
            line = line.replace(show(folder), show(Path(folder).name))
    return line
