"""Boundaries of classes: how good are the boundaries of cars, of people, of each class?

Definition. Each class is a boundary benchmark of its own. The scores are averaged over the classes
that occur in the ground truth.

Conventions. Maps are prepared as the published programs do it, in this order: add a frame of
ignored labels, scale the labels, draw the boundaries (of classes and of each instance), thin and
scale the boundaries, resize predictions to the ground truth, crop both. The tolerance is a fraction
of the diagonal of the prepared maps. `interior = "kill"` removes predictions inside a region of
their class that are further from its boundary than the tolerance, after thinning like the SBD
programs; "kill_first" removes them before thinning like SEISM. `absent = "skip"` ignores an image
for the classes that it does not have. `protocol.thin` selects the thin or the raw form.

Source. Hariharan et al., "Semantic contours from inverse detectors", ICCV 2011 (SBD); Yu et al.,
"Simultaneous Edge Alignment and Learning" (SEAL), ECCV 2018; the programs of SBD, SEAL, SEISM and
py-edge-eval.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bsdsbench.arguments import I8, Bool
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.formats.pictures import refuse_channels
from bsdsbench.loaders.labels import id_evidence, label_evidence, refuse_white
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, FilesRead, ScoreTree, over
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.metrics.label_maps import (
    SIDES,
    name_file_in_errors,
    refuse_other_numbering,
)
from bsdsbench.metrics.semantic_maps import SemanticOptions, dilate, prepare_classes
from bsdsbench.metrics.semantic_maps import class_boundaries as class_boundaries  # of the API
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, TOTAL_GT, Evidence, Score, Stack, value_at
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_sum


class SemanticMetric(CurveMetric[SemanticOptions]):
    """One boundary benchmark for each class, and the mean over the classes."""

    name = "semantic"
    title = "Boundaries of classes"
    reads = "classes"
    default_protocol = None
    options = SemanticOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    void_option, has_errors = "ignore", True
    columns = (
        Column("ods_mean", "mean ODS"),
        Column("ois_mean", "mean OIS"),
        Column("ap_mean", "mean AP"),
        Column("n_classes", "classes", digits=0, shown="own", score=False),
        IMAGES,
    )
    image_columns = (Column("ods_mean", "mean F of its classes", "F"),)

    def options_of(self, protocol: Protocol) -> SemanticOptions:
        """Return the metric's options. Raises ProtocolError if no classes are named."""
        options: SemanticOptions = super().options_of(protocol)
        if not options.classes:
            raise ProtocolError(
                f"protocol {protocol.name}: no classes, expected one of cityscapes, sbd, sbd-seal, "
                "or a file with a [semantic] table"
            )
        return options

    def files_read(self, opt: SemanticOptions) -> FilesRead:
        """Return that there is a file per class, and whether instance maps are read."""
        return FilesRead(classes=opt.classes, instances=opt.instances)

    def fits(self, pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> bool:
        """Return True if `count` can take the sizes: they are equal, or `resize` is not "refuse".

        Also accepts maps (H, W, C) with the classes on the last axis: `count` refuses them with a
        message that suggests to move the axis.
        """
        is_last = pred.classes.ndim == 3 and pred.classes.shape[-1] == len(opt.classes)
        return is_last or pred.shape == gt.shape or opt.resize != "refuse"

    def label_evidence(self, labels: Map, opt: SemanticOptions, truth: bool) -> Evidence:
        """Return the evidence of an annotated label map (H, W) on its numbering.

        A predicted map gives no evidence.
        """
        if not truth:
            return NO_EVIDENCE
        ids = id_evidence(labels, opt.ids, opt.ignored) if opt.ids else NO_EVIDENCE
        return ids | Evidence(label_evidence(labels, opt.class_labels))

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: SemanticOptions,
        counter: Counter = boundary_counts,
    ) -> Arrays:
        """Count the boundary pixels of every class of one image.

        thresholds : float64 (T,)
        counted : bool (C,), False for the classes that `opt.absent` skips
        matches : int64 (C, T, 4), the `matches` of `boundary_counts`, 0 for skipped classes

        Further arrays of the `counter` get a first axis of classes in the same way. With
        `opt.interior`, predictions deep inside the regions of their class are removed before
        thinning ("kill_first") or after thinning ("kill"); classes without an annotated boundary
        keep theirs.
        """
        _check_numbering(pred, gt, opt)
        maps, boundaries, labels = prepare_classes(pred.classes, gt, opt)
        if opt.interior != "keep" and labels is None:
            raise DataError(
                f"ground truth: only boundaries, expected labels for interior = '{opt.interior}'"
            )
        # Empty maps tell which arrays the counter returns
        empty = counter(np.zeros(boundaries.shape[1:]), (boundaries[0] & False,), protocol)
        counts: dict[str, Any] = dict(empty)
        for name in counts.keys() - {"thresholds"}:
            counts[name] = np.zeros((len(opt.classes), *counts[name].shape), np.int64)
        radius = protocol.radius((boundaries.shape[1], boundaries.shape[2]))
        counted = boundaries.any(axis=(1, 2)) | (opt.absent == "count")
        for k in np.flatnonzero(counted):
            soft, drawn, dropped = maps[k], boundaries[k], None
            if labels is not None and opt.interior != "keep" and drawn.any():
                interior = np.equal(labels, opt.class_labels[k]) & ~dilate(drawn, radius)
                if opt.interior == "kill_first":
                    soft = np.where(interior, soft.dtype.type(0), soft)
                else:
                    dropped = interior
            for name, array in counter(soft, (drawn,), protocol, dropped=dropped).items():
                if name != "thresholds":
                    counts[name][k] = array
        return {**counts, "counted": counted}

    def curves(self, stack: Stack, opt: SemanticOptions) -> dict[tuple[str, ...], I8]:
        """Return the counts (N, T, 4) of each class; keys are paths ("per_class", NAME)."""
        names = enumerate(opt.classes)
        return {("per_class", name): stack["matches"][:, k] for k, name in names}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SemanticOptions
    ) -> ScoreTree:
        """Return the scores of S weighted data sets.

        ods_mean, ois_mean, ap_mean : (S,), means over the classes that the ground truth has
        n_classes : (S,), the number of these classes
        per_class : class -> its scores, (S,) each, NaN in data sets whose ground truth lacks the
            class
        over : how many classes each mean includes
        """
        # (S, C): annotated boundary pixels; their number is the same at all thresholds
        n_annotated = weighted_sum(weights, stack["matches"][..., TOTAL_GT].max(axis=2))
        is_annotated, n_images = n_annotated > 0, weighted_sum(weights, stack["counted"])
        per_class, means, n_defined = {}, {}, {}
        for k, ((_, name), matches) in enumerate(self.curves(stack, opt).items()):
            scores = curve_scores(stack["thresholds"], matches, weights, protocol, r50=True)
            scores = {**scores, "n_images": n_images[:, k]}
            per_class[name] = _undefine_absent(scores, is_annotated[:, k])
        for key in ("ods", "ois", "ap"):
            values = np.array([value_at(score, key) for score in per_class.values()])  # (C, S)
            means[f"{key}_mean"] = defined_mean(values, axis=0)
            n_defined[f"{key}_mean"] = (~np.isnan(values)).sum(axis=0), is_annotated.shape[1]
        n_classes = is_annotated.sum(axis=1)
        over_classes = over("classes", n_defined)
        return {**means, "n_classes": n_classes, "per_class": per_class, "over": over_classes}

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """Compute the scores of a data set from the stacked counts of its images.

        `per_class` has the annotated classes only; `absent` is a tuple with the names of the
        others. Raises DataError if no class is annotated.
        """
        scores = dict(super().score_of(stack, protocol))
        per_class = scores["per_class"]
        annotated = np.any(stack["matches"][..., TOTAL_GT], axis=(0, 2)).tolist()
        if not any(annotated):
            raise DataError("semantic score: no class has a ground-truth boundary")
        is_annotated = dict(zip(per_class, annotated, strict=True))
        scores["per_class"] = {n: score for n, score in per_class.items() if is_annotated[n]}
        return Score({**scores, "absent": tuple(n for n in per_class if not is_annotated[n])})

    def parts(self, protocol: Protocol, opt: SemanticOptions) -> dict[str, tuple[str, ...]]:
        """Return the path to the scores of each class."""
        return {name: ("per_class", name) for name in opt.classes}


def _check_numbering(pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> None:
    """Raise DataError if the two sides are not label maps, or boundaries, of the same classes.

    Two label maps must share a numbering, and only classes may be white. Maps (C, H, W) must be
    boundaries, not exclusive channels such as probabilities of classes.
    """
    labels, pred_maps = gt.parts.get("labels"), pred.classes
    with name_file_in_errors(pred, gt):
        if labels is not None and pred_maps.ndim == 2 == labels.ndim:
            refuse_other_numbering(pred_maps, labels, opt.class_labels, opt.ignored)
        for maps, what in zip((pred_maps, gt.parts.get("class_boundaries")), SIDES, strict=True):
            if maps is not None and maps.ndim == 3:
                refuse_channels(tuple(maps), f"{what}: ", "boundaries of each class")
    if labels is not None and pred_maps.shape == labels.shape:
        refuse_white(pred_maps, labels, opt.class_labels, pred.where)


def _undefine_absent(scores: object, is_annotated: Bool) -> Any:
    """Set the scores of one class to NaN in data sets in which the class is not annotated.

    scores: array (S,), or a dict of arrays and of such dicts. Entries "n_images" and values that
        are no arrays, such as curves, stay as they are.
    is_annotated (S,): whether the ground truth of each data set has the class.
    """
    if isinstance(scores, dict):
        return {
            key: value if key == "n_images" else _undefine_absent(value, is_annotated)
            for key, value in scores.items()
        }
    return np.where(is_annotated, scores, np.nan) if isinstance(scores, np.ndarray) else scores
