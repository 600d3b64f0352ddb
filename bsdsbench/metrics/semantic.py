"""Per-class boundaries: a separate boundary benchmark for each class, then the mean over classes.

Arrays: a label map is (H, W) integer; boundaries of all classes are (C, H, W), bool for ground
truth and soft (or bool) for a prediction, classes in the order of `SemanticOptions.classes`.

bsdsbench.metrics.class_maps applies what `SemanticOptions` says about maps. Here
`interior = "kill"` removes predictions inside a region of their class, further from its boundary
than the tolerance, after thinning like the SBD programs; "kill_first" removes them before thinning
like SEISM. `absent = "skip"` leaves an image out of the classes it does not have. `protocol.thin`
selects the thin or the raw form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.official_txt import boundary_files, safe_name
from bsdsbench.metrics.base import Metric, counts_in_order
from bsdsbench.metrics.boundary import (
    BoundaryMetric,
    BoundaryScore,
    boundary_counts,
    boundary_result,
)
from bsdsbench.metrics.class_maps import SemanticOptions, interior, prepare_classes
from bsdsbench.metrics.columns import Column, within
from bsdsbench.protocol.constants import CURVE, MAPS, MATCHING
from bsdsbench.protocol.protocol import Protocol, preset_names
from bsdsbench.scores.counts import (
    BoundaryCounts,
    Counts,
    ImageRecord,
    Stack,
    count_field,
    thresholds_field,
)
from bsdsbench.scores.curve import best_point, curve_columns, pr_curve
from bsdsbench.scores.ratios import Weights, defined_mean, or_none, weighted_sum
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
_FOUR = ("matched_gt", "total_gt", "matched_pred", "total_pred")


@dataclass(frozen=True, slots=True, eq=False)
class SemanticCounts(Counts):
    """Boundary counts of every class, in the order of the protocol's classes.

    thresholds : f8 (T,)
    counted    : i8 (C,), images in which the class was counted: 0 or 1 for one image
    matched_gt, total_gt, matched_pred, total_pred : i8 (C, T), zero where it was not counted

    Adds over images. Raises ShapeError for arrays of different lengths.
    """

    thresholds: F8 = thresholds_field()
    counted: I8 = count_field("C")
    matched_gt: I8 = count_field("C T", at_most="total_gt")
    total_gt: I8 = count_field("C T")
    matched_pred: I8 = count_field("C T", at_most="total_pred")
    total_pred: I8 = count_field("C T")

    def of_class(self, k: int) -> BoundaryCounts:
        """The boundary counts of the k-th class."""
        return BoundaryCounts(self.thresholds, *(getattr(self, name)[k] for name in _FOUR))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticScore(ShownScore):
    """Scores per class (only classes the ground truth has) and their means.

    absent : the classes without a single ground-truth boundary pixel; they are not in the means
    """

    per_class: dict[str, BoundaryScore]
    absent: tuple[str, ...]
    ods_mean: float
    ois_mean: float
    ap_mean: float
    n_images: int

    def to_mapping(self) -> dict[str, Any]:
        return {
            "ods_mean": self.ods_mean,
            "ois_mean": self.ois_mean,
            "ap_mean": or_none(self.ap_mean),
            "n_classes": len(self.per_class),
            "absent": list(self.absent),
            "per_class": {name: score.to_mapping() for name, score in self.per_class.items()},
            "n_images": self.n_images,
        }


def semantic_counts(
    pred: NDArray[Any],
    gt: NDArray[Any],
    protocol: Protocol,
    *,
    labels: NDArray[Any] | None = None,
    instances: NDArray[Any] | None = None,
) -> dict[str, BoundaryCounts]:
    """One image's boundary counts of every class.

    Parameters
    ----------
    pred : (H, W) labels, or (C, H, W) soft maps or bool
    gt : (H, W) labels, or (C, H, W) bool boundaries
    protocol : Protocol with options of this metric
    labels : (H, W), optional
        The regions beside boundaries in `gt`, which only an `interior` that kills needs.
    instances : (H, W) integer, optional
        0 where there is no instance; needed where `instances` is on and `gt` has labels.

    Returns
    -------
    dict of BoundaryCounts
        By class name, without the classes that `absent = "skip"` leaves out.

    Raises
    ------
    ShapeError
        If sizes do not fit.
    DataError
        For labels or instances that the protocol needs and that are missing.
    ProtocolError
        If the protocol has no classes.
    """
    params = SemanticMetric().options_of(protocol)
    maps, truth, labels = prepare_classes(pred, gt, params, labels, instances)
    if params.interior != "keep" and labels is None:
        raise DataError(
            f"ground truth: only boundaries, expected labels for interior = '{params.interior}'"
        )
    radius = protocol.radius((truth.shape[1], truth.shape[2]))
    counts = {}
    for k, name in enumerate(params.classes):
        if params.absent == "skip" and not truth[k].any():
            continue
        soft, dropped = maps[k], None
        if labels is not None and params.interior != "keep":
            far = interior(np.equal(labels, params.class_labels[k]), truth[k], radius)
            if params.interior == "kill":
                dropped = far
            else:
                soft = np.where(far, soft.dtype.type(0), soft)
        counts[name] = boundary_counts(soft, (truth[k],), protocol, dropped=dropped)
    return counts


class SemanticMetric(Metric):
    """Each class is a boundary benchmark of its own, then the mean over the classes."""

    name = "semantic"
    title = "Boundaries of classes"
    pred_kinds = ("classes",)
    gt_kind = "classes"
    counts_type = SemanticCounts
    default_protocol = None
    options = SemanticOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("ods_mean", "mean ODS"),
        Column("ois_mean", "mean OIS"),
        Column("ap_mean", "mean AP"),
        Column("n_classes", "classes", digits=0, shown="own", score=False),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    part_columns = BoundaryMetric.columns
    image_columns: ClassVar[tuple[Column, ...]] = (Column("f", "mean F of its classes", "F"),)

    def options_of(self, protocol: Protocol) -> SemanticOptions:
        """Its options. Raises ProtocolError, which names presets, unless there are classes."""
        found: SemanticOptions = super().options_of(protocol)
        if not found.classes:
            presets = [n for n in preset_names() if self.name in Protocol.preset(n).options]
            raise ProtocolError(
                f"protocol {protocol.name}: no classes, expected one of "
                f"{', '.join(presets)}, or a file with a [{self.name}] table"
            )
        return found

    def class_names(self, protocol: Protocol) -> tuple[str, ...]:
        return self.options_of(protocol).classes

    def reads_instances(self, protocol: Protocol) -> bool:
        """True where boundaries between instances count."""
        return self.options_of(protocol).instances

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> SemanticCounts:
        if pred.classes is None:
            raise DataError(f"{pred.path or pred.image_id}: no class maps, expected them")
        # a band on both sides is drawn from the labels, whatever boundaries are stored
        band = self.options_of(protocol).radius > 0 and gt.labels is not None
        truth = gt.labels if band or gt.class_boundaries is None else gt.class_boundaries
        if truth is None:
            raise DataError(f"{gt.path or gt.image_id}: no labels of classes, expected them")
        found = semantic_counts(
            pred.classes, truth, protocol, labels=gt.labels, instances=gt.instances
        )
        thresholds = protocol.threshold_array()
        rows = np.zeros((4, len(self.options_of(protocol).classes), thresholds.size), np.int64)
        counted = np.zeros(rows.shape[1], np.int64)
        for k, name in enumerate(self.options_of(protocol).classes):
            if name in found:
                counted[k] = 1
                rows[:, k] = [getattr(found[name], field) for field in _FOUR]
        return SemanticCounts(thresholds, counted, *rows)

    def fits(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> bool:
        """True also for maps of another size where the protocol says how they are resized."""
        return super().fits(pred, gt, protocol) or self.options_of(protocol).resize != "refuse"

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """ODS, OIS and AP of each class, NaN for those that a data set's ground truth does not
        have, and the means over the others."""
        four = _four(stack)
        there = weighted_sum(weights, four[..., 1].max(axis=2)) > 0
        classes: dict[str, list[F8]] = {key: [] for key in ("ods", "ois", "ap")}
        out: dict[str, F8] = {}
        for k in range(four.shape[1]):
            found = curve_columns(stack["thresholds"], four[:, k], weights, protocol)
            out |= {f"{k}.{key}": value for key, value in found.items()}
            for key, values in classes.items():
                values.append(np.where(there[:, k], found[key], np.nan))
        means = {
            f"{key}_mean": defined_mean(np.array(values), axis=0) for key, values in classes.items()
        }
        return {**means, **out}

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> SemanticScore:
        """The score of each class, and the means. Raises DataError if no class has ground truth."""
        four, per_class, absent = _four(stack), {}, []
        for k, name in enumerate(self.options_of(protocol).classes):
            if not four[:, k, :, 1].any():
                absent.append(name)
                continue
            had = np.flatnonzero(stack["counted"][:, k]).tolist()
            own = [ids[i] for i in had]
            part = within(values, str(k))
            per_class[name] = boundary_result(
                part, stack["thresholds"], four[had, k], own, protocol
            )
        if not per_class:
            raise DataError("semantic score: no class has a ground-truth boundary")
        means = {key: values[key] for key in ("ods_mean", "ois_mean", "ap_mean")}
        return SemanticScore(per_class, tuple(absent), **means, n_images=len(ids))

    def parts(self, score: SemanticScore) -> Mapping[str, Any]:
        return score.per_class

    def image_values(self, counts: SemanticCounts) -> dict[str, float]:
        """The mean of the best F of the classes the image has; NaN if it has none."""
        there = np.flatnonzero(counts.total_gt.any(axis=1))
        best = [best_point(pr_curve(counts.of_class(k))).f for k in there.tolist()]
        return {"f": float(np.mean(best)) if best else float("nan")}

    def files(
        self, score: SemanticScore, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        images = dict(counts_in_order(records, self.name))
        for k, name in enumerate(self.options_of(protocol).classes):
            if name not in score.per_class:
                continue
            for file, text in boundary_files(score.per_class[name], _images_of(images, k)):
                yield f"{safe_name(name)}/{file}", text

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        labels = np.ones((12, 16), np.uint8)
        labels[:, 8:] = 2
        options = SemanticOptions(classes=("left", "right"), first=1)
        protocol = Protocol(thresholds=(0.25, 0.5), options={self.name: options})
        return Prediction("a", classes=labels), GroundTruth("a", labels=labels), protocol


def _four(stack: Stack) -> I8:
    """The counts of each class, (N, C, T, 4)."""
    return np.stack([stack[name] for name in _FOUR], axis=-1)


def _images_of(
    images: Mapping[str, SemanticCounts], k: int
) -> Iterator[tuple[str, BoundaryCounts]]:
    """(image id, counts of the k-th class) of the images in which it was counted."""
    return ((i, c.of_class(k)) for i, c in images.items() if c.counted[k])
