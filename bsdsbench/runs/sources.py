"""Sources: the images of a run as items, each with an id, a hash of what belongs to it, and how it
is read.

`evaluate` goes through the items of two folders; explain, overlays and report read them again, one
by one, from the folders that a run names, and see the same arrays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from typing import Protocol as Shape

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import kind_of_value, to_numpy
from bsdsbench.files.bounded import read_bytes, show
from bsdsbench.files.errors import DataError, is_text
from bsdsbench.loaders import Pair, ground_truths, pair, read_prediction, read_truth
from bsdsbench.loaders.groundtruth import instances_beside
from bsdsbench.loaders.inputs import GroundTruth, Prediction, binary_map, one_scale, scale_of
from bsdsbench.loaders.photos import find_photos, photos_beside, read_photo
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run_options import Folder, RunOptions

Inputs = tuple[Prediction | None, GroundTruth]


class Item(Shape):
    """One image. form : of its prediction where it is not the prediction's own ("humans")."""

    @property
    def image_id(self) -> str:
        """Its name."""

    @property
    def form(self) -> str:
        """What stands for the prediction's form, or ""."""

    def key(self) -> bytes:
        """A hash of all that is read."""

    def load(self, metric: Metric, protocol: Protocol) -> Inputs:
        """Prediction (None: the annotators are counted) and ground truth. Raises DataError."""


@attrs.frozen
class FileItem:
    """An image of two folders. kind : of the prediction, "" where the annotators are counted.

    beside : instance maps, which are read with the ground truth
    """

    pair: Pair
    kind: str
    photo: Path | None = None
    beside: tuple[Path, ...] = ()

    @property
    def image_id(self) -> str:
        """Its name."""
        return self.pair.image_id

    @property
    def form(self) -> str:
        """What stands for the prediction's form, or ""."""
        return "" if self.pair.pred_paths else "none" if self.kind else "humans"

    def key(self) -> bytes:
        """A hash of the bytes of its files."""
        found = hashlib.blake2b(self.kind.encode(), digest_size=16)
        for group in (self.pair.pred_paths, self.pair.gt_paths, (self.photo,), self.beside):
            found.update(b"|")
            for path in filter(None, group):
                found.update(hashlib.blake2b(read_bytes(path)).digest())
        return found.digest()

    def load(self, metric: Metric, protocol: Protocol) -> Inputs:
        """Prediction and ground truth. Raises DataError."""
        options = metric.options_of(protocol)
        gt = read_truth(self.pair, metric.gt_kind, protocol, metric.reads_instances(options))
        if self.photo is not None:
            gt = replace(gt, photo=read_photo(self.photo))
        if not self.kind:
            return None, gt
        n_classes = len(metric.class_names(options)) or 1
        return read_prediction(self.pair, self.kind, gt.shape, n_classes), gt


@attrs.frozen
class ArrayItem:
    """An image of arrays; or what was wrong with them."""

    image_id: str
    inputs: tuple[Prediction, GroundTruth] | DataError
    form: str = ""

    def key(self) -> bytes:
        """A hash of the arrays."""
        found = hashlib.blake2b(digest_size=16)
        for each in self._sound():
            for field in fields(each):
                value = getattr(each, field.name)
                for array in value if isinstance(value, tuple) else (value,):
                    if isinstance(array, np.ndarray):
                        found.update(f"{field.name} {array.dtype.str} {array.shape}\n".encode())
                        found.update(np.ascontiguousarray(array).data)
        return found.digest()

    def load(self, metric: Metric, protocol: Protocol) -> Inputs:
        """Prediction and ground truth. Raises DataError."""
        return self._sound()

    def _sound(self) -> tuple[Prediction, GroundTruth]:
        if isinstance(self.inputs, DataError):
            raise self.inputs
        return self.inputs


@attrs.frozen(eq=False)
class Sources:
    """The images of two folders: image id -> pair, image id -> picture (may lack some).

    metric : the one whose ground truth is read
    """

    pairs: dict[str, Pair]
    photos: dict[str, Path]
    pred_kind: str
    metric: Metric

    def load(
        self, image_id: str, run: Evaluation, protocol: Protocol | None = None
    ) -> tuple[Prediction, GroundTruth]:
        """Prediction and ground truth of an image, as the run read them. Raises DataError."""
        photo = self.photos.get(image_id) if self.metric.photo else None
        item = FileItem(self.pairs[image_id], self.pred_kind, photo)
        return item.load(self.metric, protocol or run.protocol)  # type: ignore[return-value]

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """The ground truth alone. Raises DataError."""
        return FileItem(self.pairs[image_id], "").load(self.metric, protocol)[1]

    def photo(self, image_id: str, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
        """The picture, or None if there is none of that size."""
        if image_id not in self.photos:
            return None
        pixels = read_photo(self.photos[image_id])
        return pixels if pixels.shape[:2] == shape else None


def folders(
    pred_dir: Folder, gt_dir: Folder, options: RunOptions, ids: Sequence[str] | None = None
) -> list[FileItem]:
    """The images of a folder of predictions and one of ground truth. Raises PairingError.

    ids : the images that count, in place of a split file
    """
    first = registry.get(options.metrics[0])
    if str(options.executor).startswith("dask://"):  # its workers run in other folders
        pred_dir, gt_dir = os.path.abspath(pred_dir), os.path.abspath(gt_dir)
    how = (options.split_file, options.missing, options.pred_kind or "")
    classes = first.class_names(options.settings[first.name])
    pairs = pair(pred_dir, gt_dir, *how, gt_kind=first.gt_kind, classes=classes, ids=ids)
    photos: dict[str, Path] = {}
    if any(registry.get(m).photo for m in options.metrics):
        place = options.images_dir or photos_beside(gt_dir)
        photos = find_photos(place, {p.image_id for p in pairs}) if place else {}
    beside: dict[str, tuple[Path, ...]] = {}
    if first.reads_instances(options.settings[first.name]):
        found = {p.image_id: map(instances_beside, p.gt_paths) for p in pairs}
        beside = {name: tuple(filter(None, paths)) for name, paths in found.items()}
    kind = options.pred_kind or ""
    return [FileItem(p, kind, photos.get(p.image_id), beside.get(p.image_id, ())) for p in pairs]


def humans(gt_dir: Folder, options: RunOptions) -> list[FileItem]:
    """The images of a folder of ground truth, whose annotators are counted. Raises PairingError."""
    return [FileItem(p, "") for p in ground_truths(gt_dir, options.split_file)]


def arrays(items: Iterable[Any], metrics: Sequence[str]) -> Iterator[ArrayItem]:
    """The images of any iterable of (id, prediction, truth), as they are asked for.

    Raises DataError for an item of another form, or an id twice.
    """
    seen: set[str] = set()
    for number, item in enumerate(items, 1):
        if not isinstance(item, tuple | list) or len(item) != 3:
            raise DataError(
                f"item {number}: {kind_of_value(item)}, expected (id, prediction, truth)"
            )
        image_id, pred, gts = item
        if not isinstance(image_id, str) or not image_id or not is_text(image_id):
            raise DataError(f"item {number}: id {kind_of_value(image_id)}, expected text")
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        yield array_item(image_id, pred, gts, metrics)


def array_item(image_id: str, pred: Any, gts: Any, metrics: Sequence[str]) -> ArrayItem:
    """An image of arrays as its metrics read them, or what is wrong with them."""
    first = registry.get(metrics[0])
    kind = first.pred_kinds[0]
    try:
        if isinstance(pred, Prediction):
            found = pred
        elif kind == "classes":
            found = Prediction(image_id, classes=to_numpy(pred))
        elif kind == "labels":
            found = Prediction(image_id, segs=(_plane(pred),))
        elif kind == "depth-map":
            found = Prediction(image_id, depth=_plane(pred))
        else:
            found = Prediction(image_id, soft=_plane(pred))
        gt = gts if isinstance(gts, GroundTruth) else _truth(image_id, gts, first.gt_kind)
    except DataError as error:
        return ArrayItem(image_id, error)
    return ArrayItem(image_id, (found, gt))


def _truth(image_id: str, gts: Any, kind: str) -> GroundTruth:
    what = f"{image_id}: ground truth"
    if kind == "mask":
        plane = _plane(gts)
        return GroundTruth(image_id, mask=binary_map(plane, what), scale=scale_of(plane))
    if kind == "depth-map":
        return GroundTruth(image_id, depth=_plane(gts))
    if kind == "classes":
        array = to_numpy(gts)
        if array.ndim == 2:
            return GroundTruth(image_id, labels=array)
        return GroundTruth(image_id, class_boundaries=array != 0)
    if isinstance(gts, list | tuple):
        maps = [_plane(g) for g in gts]
    else:
        array = to_numpy(gts)
        if array.ndim not in (2, 3):
            given = kind_of_value(gts)
            raise DataError(f"ground truth: {given}, expected maps (H, W) or (A, H, W)")
        maps = [array] if array.ndim == 2 else list(array)
    drawn = tuple(binary_map(a, what) for a in maps)
    return GroundTruth(image_id, drawn, scale=one_scale(map(scale_of, maps), what))


def _plane(pred: Any) -> NDArray[Any]:
    """(H, W) from (H, W) or (1, H, W)."""
    soft = to_numpy(pred)
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft


def find_sources(
    run: Evaluation,
    pred_dir: Folder | None = None,
    gt_dir: Folder | None = None,
    images_dir: Folder | None = None,
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
    classes = found.class_names(found.options_of(run.protocol))
    how = (None, missing, kind)
    pairs = pair(pred, gt, *how, gt_kind=found.gt_kind, classes=classes, ids=run.image_ids)
    photos = images_dir or run.place("photos") or photos_beside(gt)
    by_id = {p.image_id: p for p in pairs}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, found)


def fault_of(run: Evaluation, error: DataError) -> str:
    """What is wrong with a run's files, its folders by name only: where they lie is private."""
    line = error.problems[0]
    for folder in filter(None, map(run.place, ("pred", "gt", "photos"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
