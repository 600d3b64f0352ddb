"""Boundaries of classes: how good are those of cars, of people, of every class by itself?

Definition. Each class is a boundary benchmark of its own; then the mean over the classes that have
ground truth.

Conventions. Maps are prepared as the published programs do: add a frame of ignored labels, halve
the labels, draw the boundaries (of classes and of each instance), thin and halve them, resize
predictions to the ground truth, crop both. The tolerance is a fraction of the diagonal of the
result. `interior = "kill"` removes predictions inside a region of their class, further from its
boundary than the tolerance, after thinning like the SBD programs; "kill_first" removes them before
thinning like SEISM. `absent = "skip"` leaves an image out of the classes it does not have.
`protocol.thin` selects the thin or the raw form.

A label map is (H, W) integer, an instance map too, with 0 where there is no instance; boundaries of
all classes are (C, H, W), bool for ground truth and soft (or bool) for a prediction, classes in the
order of `SemanticOptions.classes`.

Source. Hariharan et al., "Semantic contours from inverse detectors", ICCV 2011 (SBD); Yu et al.,
"Simultaneous Edge Alignment and Learning" (SEAL), ECCV 2018; the programs of SBD, SEAL, SEISM and
py-edge-eval.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from bsdsbench.arguments import I8, Bool
from bsdsbench.errors import DataError, ProtocolError, ShapeError
from bsdsbench.images import GroundTruth, Map, Prediction, refuse_channels
from bsdsbench.loaders.label_evidence import (
    id_evidence,
    label_evidence,
    refuse_white,
    train_id_options,
)
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, FilesRead, ScoreTree, over
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.metrics.label_ids import SIDES, refuse_other_numbering
from bsdsbench.metrics.label_maps import as_label_map, faults_named
from bsdsbench.protocol.fields import (
    CLASS_NAMES,
    LABEL,
    accepting,
    is_int,
    is_number,
    one_of,
    option,
    whole,
)
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, TOTAL_GT, Evidence, Score, Stack, value_at
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_sum
from bsdsbench.transforms.resize import bicubic


def _is_labels(values: object) -> bool:
    return isinstance(values, tuple) and all(is_int(v) and 0 <= v < 2**31 for v in values)


@frozen
class SemanticOptions:
    """What the programs of per-class boundaries do differently, and the classes."""

    classes: tuple[str, ...] = option(
        (),
        "The names in the order of their labels.",
        CLASS_NAMES,
        caption=lambda o: f"{len(o.classes)} classes",
    )
    first: int = option(0, "The label of the first class; the others follow without a gap.", LABEL)
    ids: tuple[int, ...] = option(
        (),
        "Or the label of each class, where there are gaps; other labels up to the "
        "largest are of no class.",
        accepting(_is_labels, "labels from 0"),
    )
    ignore: int | tuple[int, ...] = option(
        255,
        "Label of pixels that belong to nothing, or -1 for none; also several labels.",
        accepting(
            lambda v: (is_int(v) and -1 <= v < 2**31) or _is_labels(v), "a label, labels, or -1"
        ),
    )
    radius: int = option(
        0,
        "Half width of the boundaries drawn from label maps, pixels; 0 is the one-pixel rule.",
        whole(0, 99, "0 to 99"),
        caption="radius {}",
    )
    ignored_rule: str = option(
        "drop",
        "With a radius, ignored pixels are never boundary and no side of one "
        '("drop"), or a strip of them that is thin enough is boundary, as '
        'py-edge-eval draws ("span").',
        one_of("drop", "span"),
        caption="ignored labels {}",
    )
    interior: str = option(
        "keep",
        '"keep"; or "kill": predictions inside a region of their class, further '
        "from its boundary than the tolerance, are taken out after thinning; "
        '"kill_first": before it.',
        one_of("keep", "kill", "kill_first"),
        caption=lambda o: f"interior {o.interior}",
    )
    absent: str = option(
        "count",
        '"count" the predictions of a class in images without it, or "skip" such images.',
        one_of("count", "skip"),
        caption=lambda o: f"absent {o.absent}",
    )
    instances: bool = option(
        False,
        "Boundaries between instances of one class count too (needs an instance map).",
        caption="instances separated",
    )
    instance_from: int = option(
        1,
        "The smallest value of an instance map that is an instance (Cityscapes: 1000).",
        whole(1, 2**31 - 1, "a value from 1"),
    )
    thin_gt: bool = option(
        False, "Boundaries of the ground truth are thinned.", caption="ground truth thinned"
    )
    border: int = option(
        0,
        "Pixels along the border that are excluded.",
        whole(0, 9999, "0 to 9999 pixels"),
        caption=lambda o: f"border of {o.border} {o.border_rule}" if o.border else "",
    )
    border_rule: str = option(
        "crop",
        '"crop" them off both sides, so that the tolerance is that of what is left;'
        ' or "ignore": labels get a frame of the ignored label, predictions are 0 '
        "there; the tolerance is that of the full size.",
        one_of("crop", "ignore"),
    )
    scale: float = option(
        1.0,
        "The ground truth is scaled to this, by the nearest pixel as imresize.",
        accepting(lambda v: is_number(v) and 0 < v <= 1, "a number in (0, 1]"),
        caption=lambda o: f"{o.scaled} scaled by {o.scale:g}" if o.scale != 1 else "",
    )
    scaled: str = option(
        "labels",
        '"labels" are scaled and then drawn, or their "boundaries" once they are drawn.',
        one_of("labels", "boundaries"),
    )
    resize: str = option(
        "refuse",
        'Predictions of another size than the ground truth: "refuse", "nearest" as '
        'Pillow, or "bicubic" as MATLAB\'s imresize.',
        one_of("refuse", "nearest", "bicubic"),
        caption="resized {}",
    )

    @property
    def frame(self) -> int:
        """Width of the frame of ignored labels."""
        return self.border if self.border_rule == "ignore" else 0

    @property
    def class_labels(self) -> tuple[int, ...]:
        """The label of each class."""
        return self.ids or tuple(range(self.first, self.first + len(self.classes)))

    @property
    def ignored(self) -> tuple[int, ...]:
        """The labels of pixels that belong to nothing, none for -1."""
        given = self.ignore if isinstance(self.ignore, tuple) else (self.ignore,)
        return tuple(label for label in given if label >= 0)


def class_boundaries(
    labels: Map, params: SemanticOptions, instances: Map | None = None, framed: Map | None = None
) -> Bool:
    """Return the boundary of every class of a label map (H, W), bool (C, H, W).

    With radius 0 a pixel is boundary of a class where it and the pixel below, to the right or
    below-right are not both in the class or both out of it (the rule of seg2bdry); with radius r,
    where the other side of the class's outline is at most r pixels away. Ignored pixels are on no
    side and never boundary. With `instances` (H, W) the boundaries of the class's instances, each
    drawn by itself, are added. Raises DataError for other maps or a label that is no class,
    ShapeError for unequal shapes.
    Source: Yu et al., "Simultaneous Edge Alignment and Learning" (SEAL), ECCV 2018.

    framed : the labels with a frame of the ignored one, where there is one. Instances are drawn
        without it, as in py-edge-eval; that matters only where ignored pixels are spanned.
    """
    whole = as_label_map(labels, "label map")
    labels = whole if framed is None else framed
    valid = ~np.isin(labels, params.ignored)
    present, known = set(np.unique(labels[valid]).tolist()), params.class_labels
    if strange := present - {0, *(range(max(known)) if params.ids else ()), *known}:
        ignored = ", ".join(map(str, params.ignored)) or "none"
        raise DataError(
            f"label map: label {min(strange)}, expected {min(known)} .. {max(known)}, 0 or "
            f"{ignored} (ignored)",
            fix=train_id_options("semantic") if params.ids else (),
        )
    draw = _spanned if params.radius > 0 and params.ignored_rule == "span" else _drawn
    out = np.zeros((len(params.classes), *labels.shape), bool)
    for k, label in enumerate(known):
        if label not in present:
            continue
        region = whole == label
        masks = [labels == label]
        if instances is not None:
            numbers = np.unique(instances[region])
            masks += [region & (instances == n) for n in numbers[numbers >= params.instance_from]]
        for mask in masks:
            places = [np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0)]
            margin = 2 * params.radius + 1  # nothing beyond is near it
            box = tuple(slice(max(a[0] - margin, 0), a[-1] + margin + 1) for a in places)
            out[k][box] |= draw(mask[box], valid[box], params.radius)
    return out


def _drawn(mask: Bool, valid: Bool, radius: int) -> Bool:
    if radius:
        inside, outside = mask & valid, ~mask & valid
        return inside & near(outside, radius) | outside & near(inside, radius)
    return seg2bdry(mask, valid)


def _spanned(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw as py-edge-eval does: distances out of the class and to it are together within `radius`.

    Ignored pixels belong to the class for the first of these, and do not for the second.
    """
    from scipy.ndimage import distance_transform_edt

    inside = mask | ~valid
    if inside.all():  # nothing to be far from
        return np.zeros(mask.shape, bool)
    return np.asarray(distance_transform_edt(inside) + distance_transform_edt(~mask) <= radius)


def near(target: Bool, radius: float) -> Bool:
    """Return the pixels no further than `radius` from a target pixel."""
    from bsdsbench.kernels.matching.graph import disk, within_reach

    within: Bool = within_reach(np.ascontiguousarray(target), disk(radius, target.shape).half)
    return within


class PreparedClasses(NamedTuple):
    """Predicted maps and boundaries of the ground truth, (C, H, W), and its labels (H, W)."""

    maps: Map
    truth: Bool
    labels: Map | None


def _prepare_classes(pred: Map, gt: GroundTruth, params: SemanticOptions) -> PreparedClasses:
    """Return both sides ready to be compared.

    pred : (H, W) labels, or (C, H, W) soft maps or bool
    gt : with labels (H, W), which are drawn with the instances where `params.instances` is on; or
        with class boundaries (C, H, W), unless a band on both sides is drawn from labels
    Raises ShapeError if sizes do not fit, DataError for parts that are wanted and missing.
    """
    from bsdsbench.kernels.thinning import thin_each

    labels, stored = gt.parts.get("labels"), gt.parts.get("class_boundaries")
    later = params.scale if params.scaled == "boundaries" else 1
    if stored is None or (params.radius and labels is not None):
        truth = _from_labels(gt.labels, params, gt.instances if params.instances else None)
    else:
        truth = _framed(_of_classes(stored, params, "class boundaries") != 0, params)
        later = params.scale
    truth = _nearest(thin_each(truth) if params.thin_gt else truth, later)
    if labels is not None:
        labels = _nearest(_framed(labels, params), params.scale)
    maps = _nearest(_from_labels(pred, params, None), later) if pred.ndim == 2 else pred
    maps = _fitted(_of_classes(maps, params, "class maps"), truth.shape[1:], params.resize)
    if params.frame or not params.border:
        return PreparedClasses(_framed(maps, params), truth, labels)
    if min(truth.shape[1:]) <= 2 * params.border:
        raise ShapeError(
            f"ground truth {truth.shape[1:]}, expected more than the border of "
            f"{params.border} pixels on each side"
        )
    inner = np.s_[..., params.border : -params.border, params.border : -params.border]
    maps, truth = (np.ascontiguousarray(side[inner]) for side in (maps, truth))
    labels = None if labels is None else np.ascontiguousarray(labels[inner])
    return PreparedClasses(maps, truth, labels)


def _from_labels(whole: Map, params: SemanticOptions, instances: Map | None) -> Bool:
    """Return the boundaries of classes, of labels that are scaled first if options say so."""
    scale = params.scale if params.scaled == "labels" else 1
    scaled = None if instances is None else _nearest(instances, scale)
    framed = _nearest(_framed(whole, params), scale)
    return class_boundaries(_nearest(whole, scale), params, scaled, framed)


def _of_classes(array: Map, params: SemanticOptions, what: str) -> Map:
    if array.ndim != 3 or array.shape[0] != len(params.classes):
        last = "numpy.moveaxis(maps, -1, 0)" if array.shape[-1] == len(params.classes) else ()
        expected = f"({len(params.classes)}, rows, columns)"
        raise ShapeError(f"{what}: shape {array.shape}, expected {expected}", fix=last)
    return array


def _framed(maps: Map, params: SemanticOptions) -> Map:
    """Maps with a frame where the border rule is "ignore": labels (H, W) of the ignored label, if
    there is one, others (C, H, W) of 0."""
    border, values = params.frame, params.ignored if maps.ndim == 2 else (0,)
    if not border or not values:
        return maps
    out = np.full(maps.shape, values[0], np.result_type(maps, np.min_scalar_type(values[0])))
    rows, cols = (slice(border, max(n - border, border)) for n in maps.shape[-2:])
    out[..., rows, cols] = maps[..., rows, cols]
    return out


def _fitted(maps: Map, shape: tuple[int, ...], rule: str) -> Map:
    """Return predicted maps at the size of the ground truth."""
    if maps.shape[1:] == tuple(shape):
        return maps
    if rule == "refuse":
        raise ShapeError(f"prediction {maps.shape[1:]}, expected the size {tuple(shape)}")
    if rule == "bicubic":
        return np.stack([bicubic(m, (shape[0], shape[1])) for m in maps])
    from PIL import Image

    places = []  # which rows, which columns Pillow takes
    for n, wanted in zip(maps.shape[1:], shape, strict=True):
        line = Image.fromarray(np.arange(n, dtype=np.int32)[None])
        places.append(np.asarray(line.resize((wanted, 1), Image.Resampling.NEAREST))[0])
    return np.ascontiguousarray(maps[:, places[0]][:, :, places[1]])


def _nearest(array: Map, scale: float) -> Map:
    """Return (..., H, W) at ceil(scale x size), each pixel the nearest one, like MATLAB's imresize.

    Positions by the scale, halves rounded up, mirrored beyond the end: 1, 3, 4 of 5 halved.
    """
    if scale == 1:
        return array
    for axis, size in zip((-2, -1), array.shape[-2:], strict=True):
        centre = np.arange(1, math.ceil(size * scale) + 1) / scale + 0.5 * (1 - 1 / scale)
        places = (np.floor(centre + 0.5).astype(np.int64) - 1) % (2 * size)
        array = np.take(array, np.minimum(places, 2 * size - 1 - places), axis)
    return np.ascontiguousarray(array)


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
        return FilesRead(classes=opt.classes, instances=opt.instances)

    def fits(self, pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> bool:
        """Return True also for maps of another size where the protocol says how to resize them."""
        last = pred.classes.ndim == 3 and pred.classes.shape[-1] == len(opt.classes)
        return last or pred.shape == gt.shape or opt.resize != "refuse"

    def label_evidence(self, labels: Map, opt: SemanticOptions, truth: bool) -> Evidence:
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
        """Count the boundaries of every class.

        thresholds f8 (T,); counted i8 (C,), 1 but for the classes that `absent` skips; matches i8
        (C, T, 4), of `boundary_counts` of each class, zero where it was not counted. A counter that
        counts more adds what it counts, with an axis of classes before the others.
        """
        given = gt.parts.get("labels")
        with faults_named(pred, gt):
            if given is not None and pred.classes.ndim == 2 == given.ndim:
                refuse_other_numbering(pred.classes, given, opt.class_labels, opt.ignored)
            for maps, what in zip(
                (pred.classes, gt.parts.get("class_boundaries")), SIDES, strict=True
            ):
                if maps is not None and maps.ndim == 3:
                    refuse_channels(tuple(maps), f"{what}: ", "boundaries of each class")
        if given is not None and pred.classes.shape == given.shape:
            refuse_white(pred.classes, given, opt.class_labels, pred.where)
        maps, truth, labels = _prepare_classes(pred.classes, gt, opt)
        if opt.interior != "keep" and labels is None:
            raise DataError(
                f"ground truth: only boundaries, expected labels for interior = '{opt.interior}'"
            )
        radius = protocol.radius((truth.shape[1], truth.shape[2]))
        counts: dict[str, Any] = dict(
            counter(np.zeros(truth.shape[1:]), (truth[0] & False,), protocol)
        )
        for name in counts.keys() - {"thresholds"}:
            counts[name] = np.zeros((len(opt.classes), *counts[name].shape), np.int64)
        counted = truth.any(axis=(1, 2)) | (opt.absent == "count")
        for k in np.flatnonzero(counted):
            soft, drawn, dropped = maps[k], truth[k], None
            if labels is not None and opt.interior != "keep" and drawn.any():
                dropped = np.equal(labels, opt.class_labels[k]) & ~near(drawn, radius)
                if opt.interior == "kill_first":
                    soft, dropped = np.where(dropped, soft.dtype.type(0), soft), None
            for name, numbers in counter(soft, (drawn,), protocol, dropped=dropped).items():
                if name != "thresholds":
                    counts[name][k] = numbers
        return {**counts, "counted": counted}

    def curves(self, stack: Stack, opt: SemanticOptions) -> dict[tuple[str, ...], I8]:
        names = enumerate(opt.classes)
        return {("per_class", name): stack["matches"][:, k] for k, name in names}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SemanticOptions
    ) -> ScoreTree:
        """Return the scores of each class, and the means over those with ground truth.

        The scores of a class that a data set's ground truth does not have are NaN.
        """
        annotated = weighted_sum(weights, stack["matches"][..., TOTAL_GT].max(axis=2)) > 0
        n_images = weighted_sum(weights, stack["counted"])
        per_class, means, known = {}, {}, {}
        for k, ((_, name), matches) in enumerate(self.curves(stack, opt).items()):
            scores = curve_scores(stack["thresholds"], matches, weights, protocol, r50=True)
            per_class[name] = _where(annotated[:, k], {**scores, "n_images": n_images[:, k]})
        for key in ("ods", "ois", "ap"):
            values = np.array([value_at(score, key) for score in per_class.values()])
            means[f"{key}_mean"] = defined_mean(values, axis=0)
            known[f"{key}_mean"] = (~np.isnan(values)).sum(axis=0), annotated.shape[1]
        n_classes, few = annotated.sum(axis=1), over("classes", known)
        return {**means, "n_classes": n_classes, "per_class": per_class, "over": few}

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """Return the score of the classes that the ground truth has, the others in `absent`.

        Raises DataError if no class has ground truth.
        """
        scores = dict(super().score_of(stack, protocol))
        per_class = scores["per_class"]
        annotated = np.any(stack["matches"][..., TOTAL_GT], axis=(0, 2)).tolist()
        if not any(annotated):
            raise DataError("semantic score: no class has a ground-truth boundary")
        has = dict(zip(per_class, annotated, strict=True))
        scores["per_class"] = {name: score for name, score in per_class.items() if has[name]}
        return Score({**scores, "absent": tuple(name for name in has if not has[name])})

    def parts(self, protocol: Protocol, opt: SemanticOptions) -> dict[str, tuple[str, ...]]:
        return {name: ("per_class", name) for name in opt.classes}


def _where(annotated: Bool, scores: object) -> Any:
    """Return the scores, NaN for the data sets without ground truth of the class.

    Curves stay as they are.
    """
    if isinstance(scores, dict):
        return {k: v if k == "n_images" else _where(annotated, v) for k, v in scores.items()}
    return np.where(annotated, scores, np.nan) if isinstance(scores, np.ndarray) else scores
