"""The files of a run, found and read again: explain, overlays and report see the same arrays."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import Pair, pair
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.photos import find_photos, photos_beside, read_photo
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run import FileItem
from bsdsbench.runs.run_options import Folder


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
    how = {"pred_kind": kind, "gt_kind": found.gt_kind, "classes": classes}
    pairs = pair(pred, gt, run.image_ids, missing, **how)
    photos = images_dir or run.place("photos") or photos_beside(gt)
    by_id = {p.image_id: p for p in pairs}
    return Sources(by_id, find_photos(photos, by_id) if photos else {}, kind, found)


def fault_of(run: Evaluation, error: DataError) -> str:
    """What is wrong with a run's files, its folders by name only: where they lie is private."""
    line = error.problems[0]
    for folder in filter(None, map(run.place, ("pred", "gt", "photos"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line
