"""The images that the doctor examines: reading them, and measuring their values.

Each image gets the codes of its problems. The thresholds are far from the values of sound maps.
Thinned maps are 0.00 to 0.56 thick and raw maps 0.99. JPEG traces are below 1.13 in sound maps and
above 1.29 at quality 92. No map of the sample has a value of exactly k/100.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.diagnosis import symptoms
from bsdsbench.errors import DataError, Fix, Problem
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.pairing import Files, Pair
from bsdsbench.loaders.reading import Readings
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import Diagnosed
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.sanity import (
    Thumbnail,
    best_orientation,
    evidence_of,
    look_at,
    thickness,
    thumbnail,
)
from bsdsbench.runs.sources import FileItem
from bsdsbench.scores.counts import ImageRecord

FEW_VALUES = 10  # a map with fewer has a curve with few points
THICK, THIN = 0.8, 0.6
JPEG = 1.2
HUNDREDTHS = 0.01


@dataclass(slots=True)
class ExaminedImage:
    """What the doctor knows of one image."""

    image_id: str
    file: str  # the name of its first prediction file
    sizes: str  # the sizes of prediction and image, in words
    codes: set[str]  # the problems of this image, keys of CHECKS
    annotators: int = 0  # the number of annotators of boundaries
    orientation: str = ""  # "mirrored ..." if the map fits the ground truth far better so
    # float32, of the map and of the ground truth; None if either is constant
    thumbnails: tuple[Thumbnail, Thumbnail] | None = None
    maps: MeasuredMaps | None = None  # of an image that is measured further


@dataclass(frozen=True, slots=True)
class MeasuredMaps:
    """The data of an image that is measured further."""

    pred: Prediction
    gt: GroundTruth
    soft: F8  # (H, W) in [0, 1]: the prediction's map as the protocol reads it
    truth: F8  # (H, W): the number of annotators that marked each pixel


@dataclass(slots=True)
class ExaminedInputs:
    """The files of both sides, the images read, and the problems met while reading."""

    metric: Metric
    protocol: Protocol
    kind: str  # of predictions
    preds: Files  # image id -> files, sorted by id
    gts: Files
    # Ids of several files that cannot be told to be one image, of predictions and of ground truth
    doubled: tuple[set[str], set[str]]
    n_measured: int = 0  # images that were measured further
    # The images whose sizes fit, with the evidence of their files, without counts
    records: list[ImageRecord] = field(default_factory=list)
    # The images that were measured further, with counts; empty for the boundary metric
    counted: list[ImageRecord] = field(default_factory=list)
    images: list[ExaminedImage] = field(default_factory=list)  # those that could be read
    unread: list[Problem] = field(default_factory=list)  # of images that could not be read
    refused: list[str] = field(default_factory=list)  # why the metric cannot count an image
    # (code, problem, remedy) that the metric itself reports -> file names
    symptoms: dict[tuple[str, str, Fix], list[str]] = field(default_factory=dict)

    @property
    def readings(self) -> Readings:
        """The readings of the files of both sides."""
        return self.metric.readings(self.protocol, self.kind)

    def look_at(self, image_id: str, closely: bool) -> None:
        """Read an image as `evaluate` does, and add what the checks need to the fields.

        An image that cannot be read is only added to `unread`. With `closely` the image is measured
        further if its sizes fit.
        """
        protocol, metric = self.protocol, self.metric
        paths = tuple(self.preds[image_id])
        if self.kind not in ("labels", "classes"):  # which may have several files
            paths = paths[:1]
        item = FileItem(Pair(image_id, paths, tuple(self.gts[image_id])), self.kind)
        try:
            (same_reading,) = registry.group_by_reading([metric.name], protocol, self.kind)
            prediction, gt = item.load(same_reading, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred = cast(Prediction, prediction)
        fits = metric.fits(pred, gt, metric.options_of(protocol))
        is_uneven = any(b.shape != gt.shape for b in gt.boundaries)
        codes = set[str]()
        if is_uneven:
            codes.add("annotators")
        elif not fits:
            codes.add("transposed" if pred.shape == gt.shape[::-1] else "resized")
        pred_size, gt_size = " x ".join(map(str, pred.shape)), " x ".join(map(str, gt.shape))
        sizes = f"{pred_size} for an image of {gt_size}"
        image = ExaminedImage(image_id, paths[0].name, sizes, codes)
        self.images.append(image)
        if fits and not is_uneven:
            sides = evidence_of(pred, gt, metric, protocol, metric.cuts_at_thresholds)
            record = ImageRecord(image_id, gt.shape, form=pred.form, pred=sides.pred, gt=sides.gt)
            self.records.append(record)
        if metric.name in registry.DEFAULT_METRICS:
            self._measure_boundaries(image, pred, gt, closely)
        elif closely and fits:
            opt = metric.options_of(protocol)
            try:
                counts = {metric.name: metric.count(pred, gt, protocol, opt)}
            except DataError as error:
                self.refused.append(str(error.problems[0]))
                return
            self.counted.append(ImageRecord(gt.image_id, gt.shape, counts))
            self.n_measured += 1
            if isinstance(metric, Diagnosed):
                for symptom in metric.symptoms(pred, gt, protocol, opt):
                    self.symptoms.setdefault(symptom, []).append(image.file)

    def _measure_boundaries(
        self, image: ExaminedImage, pred: Prediction, gt: GroundTruth, closely: bool
    ) -> None:
        """Measure a boundary map, and add the codes of its problems to `image.codes`.

        The polarity of the ground truth, the values of the map and its orientation are always
        measured. With `closely`, maps that are comparable with the ground truth are measured
        further. Predictions without a soft map have no problems here.
        """
        image.annotators = len(gt.boundaries)
        look = look_at(pred, gt, self.protocol)
        soft, truth = look.soft, look.truth
        if not soft.size:
            return
        all_drew = all(b.any() for b in gt.boundaries)
        if all_drew and np.mean([b.mean() for b in gt.boundaries]) > 0.5:
            image.codes.add("gt-polarity")
        if not soft.any():
            image.codes.add("zero")
        if soft.max() == soft.min() > 0:
            image.codes.add("saturated")
        if pred.kind == "soft" and len(np.unique(pred.soft)) < FEW_VALUES:
            image.codes.add("few-values")
        if not look.measured:
            return
        small_pred, small_truth = thumbnail(soft), thumbnail(truth)
        image.orientation = best_orientation(small_pred, small_truth)
        image.thumbnails = small_pred.astype(np.float32), small_truth.astype(np.float32)
        if closely:
            self.n_measured += 1
            image.maps = MeasuredMaps(pred, gt, soft, truth)
            image.codes |= self._measure_closely(image.file, pred, soft)

    def _measure_closely(self, file: str, pred: Prediction, soft: F8) -> set[str]:
        """Return the codes of the problems of a map that take longer to find.

        `soft` (H, W) is the map in [0, 1]. A ucm2 is only judged by the suffix of its file.

        - "jpeg": the file is a JPEG, or its values have traces of JPEG
        - "thinned", "raw": lines are thin under a protocol that suppresses non-maxima or does not
          thin; or thick under any other
        - "grid-values": many values of a float map are exactly k/100, as are thresholds but for
          the last bit
        """
        protocol = self.protocol
        codes = {"jpeg"} if file.lower().endswith((".jpg", ".jpeg")) else set()
        if pred.kind != "soft":
            return codes
        if symptoms.jpeg_ratio(soft) > JPEG:
            codes.add("jpeg")
        thick = thickness(soft)
        takes_raw_maps = protocol.nms or not protocol.thin
        if takes_raw_maps and thick < THIN:
            codes.add("thinned")
        if not takes_raw_maps and thick > THICK:
            codes.add("raw")
        # the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits
        is_near_grid = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
        may_be_rounded = is_near_grid and pred.soft.dtype.kind == "f" and not protocol.nms
        if may_be_rounded and symptoms.share_on_hundredths(pred.soft) > HUNDREDTHS:
            codes.add("grid-values")
        return codes
