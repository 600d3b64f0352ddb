"""The files a run was made from, read again as the run read them.

Which kind the predictions are, and which images count, is in the run's provenance and records; so
explain, overlays and report see the same arrays as the run did.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import Pair, pair, read_prediction, read_truth
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.photos import find_photos, photos_beside, read_photo
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation

Folder = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Where the files of a run are: image id -> pair, image id -> picture (may lack some).

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
        found, proto = self.pairs[image_id], protocol or run.protocol
        gt = self.truth(image_id, proto)
        n_classes = len(self.metric.class_names(self.metric.options_of(proto))) or 1
        return read_prediction(found, self.pred_kind, gt.shape, n_classes), gt

    def truth(self, image_id: str, protocol: Protocol) -> GroundTruth:
        """The ground truth alone. Raises DataError."""
        instances = self.metric.reads_instances(self.metric.options_of(protocol))
        return read_truth(self.pairs[image_id], self.metric.gt_kind, protocol, instances)

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
    """The files a run was made from: the given folders, or those its provenance names.

    Only the run's own images are read; one that was counted without a prediction (missing="zero")
    stays without. images_dir: by default those of the run, or beside its ground truth (BSDS).
    metric : whose ground truth is meant; default: the run's first. Raises DataError if the folders
    are not known, are gone, or lack an image of the run.
    """
    pred, gt = pred_dir or run.place("pred"), gt_dir or run.place("gt")
    if not run.own and not (pred_dir and gt_dir):
        raise DataError(
            f"{run.name}: was not made by this user on this machine, so the folders it names "
            f"({show(pred)}, {show(gt)}) are not read unless they are given, as a report can be"
        )
    if not pred or not gt:
        raise DataError(f"{run.name}: where its predictions and ground truth are is not known")
    if not run.metrics:
        raise DataError(f"{run.name}: no images, expected a run with records")
    found = registry.get(metric or run.metrics[0])
    pred_kind = str(run.provenance.get("pred_kind") or _kind(run))
    missing = str(run.provenance.get("missing", "zero"))
    wanted = run.image_ids
    pairs = {
        p.image_id: p
        for p in pair(
            pred,
            gt,
            missing="zero" if missing == "zero" else "error",
            pred_kind=pred_kind,
            gt_kind=found.gt_kind,
            classes=found.class_names(found.options_of(run.protocol)),
            ids=wanted,
        )
    }
    lost = sorted(set(wanted) - pairs.keys())
    if lost:
        raise DataError(f"{show(pred)}: no files of image {lost[0]!r}, expected those of the run")
    folder = images_dir or run.place("photos") or photos_beside(gt)
    return Sources(pairs, find_photos(folder, pairs) if folder else {}, pred_kind, found)


def fault_of(run: Evaluation, error: DataError) -> str:
    """What is wrong with a run's files, its folders by name only: where they lie is private."""
    line = error.problems[0]
    for folder in filter(None, map(run.place, ("pred", "gt", "photos"))):
        line = line.replace(show(folder), show(Path(folder).name))
    return line


def _kind(run: Evaluation) -> str:
    """Of runs that do not say: segmentations have the thresholds 1 .. n, not the protocol's."""
    counts = run.records[0].counts[run.metrics[0]].get("thresholds")
    if counts is None or np.array_equal(counts, run.protocol.threshold_array()):
        return "soft"
    return "labels"
