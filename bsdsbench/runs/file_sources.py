"""The images of folders as items of a run, and the files that a run was made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import read_bytes
from bsdsbench.loaders import Pair, ground_truths, pair, read_prediction, read_truth
from bsdsbench.loaders.formats.photos import find_photos, photos_beside, read_photo
from bsdsbench.loaders.readers import instances_beside, n_levels, read_valid
from bsdsbench.loaders.sets.identity import folder_fingerprints, identify, set_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.results.evaluation import TASK, Evaluation
from bsdsbench.runs.keywords import Plan, StrPath
from bsdsbench.text import show

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}
Inputs = tuple[Prediction | None, GroundTruth]


@attrs.frozen(slots=False)
class FileItem:
    """An image of two folders. kind : of the prediction, "" where the annotators are counted.

    beside : instance maps, read with the ground truth; n_maps : label maps of a missing prediction
    valid : mask of the pixels that are counted
    """

    pair: Pair
    kind: str
    photo: Path | None = None
    beside: tuple[Path, ...] = ()
    form: str = ""
    n_maps: int = 1
    valid: Path | None = None

    @property
    def image_id(self) -> str:
        """Its name."""
        return self.pair.image_id

    def key(self) -> bytes:
        """A hash of the bytes of its files."""
        found = hashlib.blake2b(f"{self.kind} {self.n_maps}".encode(), digest_size=16)
        groups = [self.pair.pred_paths, self.pair.gt_paths, (self.photo,), self.beside]
        for group in groups + [(self.valid,)] * (self.valid is not None):
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
        if self.valid is not None:
            known = gt.parts.get("valid", True)
            gt = gt.replace(valid=read_valid(self.valid, gt.shape) & known)
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
    views = fields_of_view(options.valid_dir, pairs)
    items, n_maps = [], n_levels(pairs) if kind == "labels" else 1
    for p in pairs:
        beside = map(instances_beside, p.gt_paths) if getattr(own, "instances", False) else ()
        form, maps = ("", 1) if p.pred_paths else ("none", n_maps)
        files = photos.get(p.image_id), tuple(filter(None, beside))
        items.append(FileItem(p, kind, *files, form, maps, views.get(p.image_id)))
    return items


def fields_of_view(valid_dir: StrPath | None, pairs: Sequence[Pair]) -> dict[str, Path]:
    """Image id -> mask of the pixels that are counted. Raises PairingError where one lacks."""
    if valid_dir is None:
        return {}
    ids = [p.image_id for p in pairs]
    how = {"gt_kind": "mask", "sequences": any("/" in image_id for image_id in ids)}
    masks = pair(None, os.path.abspath(valid_dir), ids, "zero", **how)
    return {mask.image_id: mask.gt_paths[0] for mask in masks}


def about_folders(items: Sequence[FileItem], options: Plan, **places: StrPath) -> Evaluation:
    """The Evaluation of a run of folders (pred, gt), which still lacks its records."""
    name, about, there = "human", dict[str, Any](), dict[str, str]()
    if options.images_dir is not None and "pred" in places:
        places["photos"] = options.images_dir
    if options.valid_dir is not None:
        places["valid"] = options.valid_dir
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
            for file in filter(None, (*item.pair.gt_paths, item.valid)):
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
    views: dict[str, Path]

    def load(self, image_id: str, protocol: Protocol) -> Any:
        """Prediction and ground truth of an image, as a run reads them. Raises DataError."""
        photo = self.photos.get(image_id) if self.metric.photo else None
        files, view = self.pairs[image_id], self.views.get(image_id)
        item = FileItem(files, self.pred_kind, photo, valid=view)
        return item.load(self.metric, protocol)

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """The ground truth alone. Raises DataError."""
        item = FileItem(self.pairs[image_id], "", valid=self.views.get(image_id))
        return item.load(self.metric, protocol)[1]

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
    views = fields_of_view(run.place("valid"), pairs) if found.void else {}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, found, views)


def fault_of(run: Evaluation, error: DataError) -> str:
    """What is wrong with a run's files, its folders by name only: where they lie is private."""
    line = str(error.problems[0])
    for folder in filter(None, map(run.place, ("pred", "gt", "photos", "valid"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
