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

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.loaders.inputs import GroundTruth, Prediction, check_white, scale_of_classes
from bsdsbench.loaders.official_txt import boundary_files, safe_name
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree, over
from bsdsbench.metrics.boundary import BOUNDARY_COLUMNS, boundary_counts
from bsdsbench.metrics.class_maps import SemanticOptions, interior, prepare_classes
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol, preset_names
from bsdsbench.scores.counts import Counts, ImageRecord, Score, Stack, at
from bsdsbench.scores.curve import FOUR, curve_scores, four_counts
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_sum


def semantic_counts(
    pred: NDArray[Any],
    gt: NDArray[Any],
    protocol: Protocol,
    params: SemanticOptions,
    *,
    labels: NDArray[Any] | None = None,
    instances: NDArray[Any] | None = None,
) -> dict[str, Counts]:
    """One image's boundary counts of every class, by name, without those that `absent` skips.

    pred : (H, W) labels, or (C, H, W) soft maps or bool
    gt : (H, W) labels, or (C, H, W) bool boundaries
    labels : (H, W), the regions beside boundaries in `gt`, which an `interior` that kills needs
    instances : (H, W), 0 where there is none; needed where `instances` is on and `gt` has labels

    Raises ShapeError if sizes do not fit, DataError for labels or instances that are missing.

    Examples
    --------
    >>> labels, options = np.repeat([[0, 1]], 4, axis=0), SemanticOptions(classes=("a", "b"))
    >>> found = semantic_counts(labels, labels, Protocol(thresholds=(0.5,)), options)
    >>> {name: int(counts.matched_pred[0]) for name, counts in found.items()}
    {'a': 4, 'b': 4}
    """
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
    reads = "classes"
    default_protocol = None
    options = SemanticOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    columns = (
        Column("ods_mean", "mean ODS"),
        Column("ois_mean", "mean OIS"),
        Column("ap_mean", "mean AP"),
        Column("n_classes", "classes", digits=0, shown="own", score=False),
        IMAGES,
    )
    part_columns = BOUNDARY_COLUMNS
    image_columns = (Column("ods_mean", "mean F of its classes", "F"),)

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

    def class_names(self, opt: SemanticOptions) -> tuple[str, ...]:
        return opt.classes

    def reads_instances(self, opt: SemanticOptions) -> bool:
        """True where boundaries between instances count."""
        return opt.instances

    def fits(self, pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> bool:
        """True also for maps of another size where the protocol says how they are resized."""
        return pred.shape == gt.shape or opt.resize != "refuse"

    def scale(self, gt: GroundTruth, opt: SemanticOptions) -> str:
        return "" if gt.labels is None else scale_of_classes(gt.labels, opt.class_labels)

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SemanticOptions
    ) -> Tree:
        """thresholds f8 (T,); counted i8 (C,), 1 where the class was counted; the four counts of
        `boundary_counts` of each class, i8 (C, T), zero where it was not."""
        if pred.classes is None:
            raise DataError(f"{pred.path or pred.image_id}: no class maps, expected them")
        # a band on both sides is drawn from the labels, whatever boundaries are stored
        band = opt.radius > 0 and gt.labels is not None
        truth = gt.labels if band or gt.class_boundaries is None else gt.class_boundaries
        if truth is None:
            raise DataError(f"{gt.path or gt.image_id}: no labels of classes, expected them")
        if truth.ndim == 2 and pred.classes.shape == truth.shape:
            where = str(pred.path or pred.image_id)
            check_white(pred.classes, truth, opt.class_labels, where)
        found = semantic_counts(
            pred.classes, truth, protocol, opt, labels=gt.labels, instances=gt.instances
        )
        rows = np.zeros((len(FOUR), len(opt.classes), len(protocol.thresholds)), np.int64)
        for k, name in enumerate(opt.classes):
            if name in found:
                rows[:, k] = [found[name][key] for key in FOUR]
        counted = np.isin(opt.classes, list(found))
        four = dict(zip(FOUR, rows, strict=True))
        return {"thresholds": protocol.threshold_array(), "counted": counted, **four}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SemanticOptions
    ) -> Tree:
        """The scores of each class, NaN for those that a data set's ground truth does not have, and
        the means over the others."""
        four = four_counts(stack)
        there = weighted_sum(weights, four[..., 1].max(axis=2)) > 0
        n_images = weighted_sum(weights, stack["counted"])
        per_class = {}
        for k, name in enumerate(opt.classes):
            found = curve_scores(stack["thresholds"], four[:, k], weights, protocol, r50=True)
            per_class[name] = _where(there[:, k], {**found, "n_images": n_images[:, k]})
        means, known = {}, {}
        for key in ("ods", "ois", "ap"):
            values = np.array([at(score, key) for score in per_class.values()])
            means[f"{key}_mean"] = defined_mean(values, axis=0)
            known[f"{key}_mean"] = (~np.isnan(values)).sum(axis=0), there.shape[1]
        n_classes, few = there.sum(axis=1), over("classes", known)
        return {**means, "n_classes": n_classes, "per_class": per_class, "over": few}

    def score(self, records: Sequence[ImageRecord], protocol: Protocol) -> Score:
        """With the classes that the ground truth has, and the names of the others in `absent`.

        Raises DataError if no class has ground truth.
        """
        found = dict(super().score(records, protocol))
        every = found["per_class"]
        own = [r.counts[self.name].total_gt.any(axis=1) for r in records]
        has = dict(zip(every, np.any(own, axis=0), strict=True))
        if not any(has.values()):
            raise DataError("semantic score: no class has a ground-truth boundary")
        found["per_class"] = {name: score for name, score in every.items() if has[name]}
        return Score({**found, "absent": tuple(name for name in every if not has[name])})

    def parts(self, protocol: Protocol, opt: SemanticOptions) -> dict[str, tuple[str, ...]]:
        return {name: ("per_class", name) for name in opt.classes}

    def files(
        self,
        score: Score,
        ids: Sequence[str],
        stack: Stack,
        protocol: Protocol,
        opt: SemanticOptions,
    ) -> Iterator[tuple[str, str]]:
        four = four_counts(stack)
        for k, name in enumerate(opt.classes):
            if name in score.per_class:
                had = np.flatnonzero(stack["counted"][:, k]).tolist()
                own = [ids[i] for i in had]
                how = stack["thresholds"], four[had, k], protocol.ods_rule
                for file, text in boundary_files(score.per_class[name], own, *how):
                    yield f"{safe_name(name)}/{file}", text


def _where(there: NDArray[np.bool_], found: Any) -> Any:
    """The scores, NaN for the data sets without ground truth of the class; curves as they are."""
    if isinstance(found, dict):
        return {k: v if k == "n_images" else _where(there, v) for k, v in found.items()}
    return np.where(there, found, np.nan) if isinstance(found, np.ndarray) else found
