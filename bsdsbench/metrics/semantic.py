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

Label maps and instance maps are (H, W) integers; 0 in an instance map is no instance. Boundaries of
all classes are (C, H, W), bool in the ground truth and soft or bool in a prediction, with the
classes in the order of `SemanticOptions.classes`.

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
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.labels import (
    id_evidence,
    label_evidence,
    refuse_channels,
    refuse_white,
    seg2bdry,
    train_id_options,
)
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, FilesRead, ScoreTree, over
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.metrics.label_maps import SIDES, as_label_map, faults_named, refuse_other_numbering
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
    """The classes, and the choices in which programs of per-class boundaries differ."""

    classes: tuple[str, ...] = option(
        (),
        "Class names in the order of their labels.",
        CLASS_NAMES,
        caption=lambda o: f"{len(o.classes)} classes",
    )
    first: int = option(0, "Label of the first class; the others follow without a gap.", LABEL)
    ids: tuple[int, ...] = option(
        (),
        "Label of each class, if the labels have gaps; other labels up to the largest belong to no "
        "class.",
        accepting(_is_labels, "labels from 0"),
    )
    ignore: int | tuple[int, ...] = option(
        255,
        "Label, or labels, of pixels that belong to no class; -1 for none.",
        accepting(
            lambda v: (is_int(v) and -1 <= v < 2**31) or _is_labels(v), "a label, labels, or -1"
        ),
    )
    radius: int = option(
        0,
        "Half width in pixels of the boundaries drawn from label maps; 0 for the one-pixel rule.",
        whole(0, 99, "0 to 99"),
        caption="radius {}",
    )
    ignored_rule: str = option(
        "drop",
        'Ignored pixels if `radius` is above 0. "drop": they are never boundary, and there is no '
        'boundary between them and a class. "span": a thin strip of them is boundary, as '
        "py-edge-eval draws it.",
        one_of("drop", "span"),
        caption="ignored labels {}",
    )
    interior: str = option(
        "keep",
        "Predictions inside a region of their class, further from its boundary than the tolerance: "
        '"keep" them, or remove them after thinning ("kill") or before thinning ("kill_first").',
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
        "Also count the boundaries between instances of a class (needs an instance map).",
        caption="instances separated",
    )
    instance_from: int = option(
        1,
        "Smallest value in an instance map that is an instance (Cityscapes: 1000).",
        whole(1, 2**31 - 1, "a value from 1"),
    )
    thin_gt: bool = option(
        False, "Thin the boundaries of the ground truth.", caption="ground truth thinned"
    )
    border: int = option(
        0,
        "Width in pixels of the image border that is excluded.",
        whole(0, 9999, "0 to 9999 pixels"),
        caption=lambda o: f"border of {o.border} {o.border_rule}" if o.border else "",
    )
    border_rule: str = option(
        "crop",
        '"crop" cuts the border off both maps, and the tolerance is that of the smaller size; '
        '"ignore" gives the border of label maps the ignored label and sets predictions there to '
        "0, and the tolerance is that of the full size.",
        one_of("crop", "ignore"),
    )
    scale: float = option(
        1.0,
        "Scale factor of the ground truth; takes the nearest pixel, as imresize does.",
        accepting(lambda v: is_number(v) and 0 < v <= 1, "a number in (0, 1]"),
        caption=lambda o: f"{o.scaled} scaled by {o.scale:g}" if o.scale != 1 else "",
    )
    scaled: str = option(
        "labels",
        'Scale the "labels" before boundaries are drawn, or the drawn "boundaries".',
        one_of("labels", "boundaries"),
    )
    resize: str = option(
        "refuse",
        'Predictions whose size differs from the ground truth: "refuse" them, or resize them by '
        '"nearest" as in Pillow or by "bicubic" as in MATLAB\'s imresize.',
        one_of("refuse", "nearest", "bicubic"),
        caption="resized {}",
    )

    @property
    def frame(self) -> int:
        """The width in pixels of the frame of ignored labels, 0 if there is none."""
        return self.border if self.border_rule == "ignore" else 0

    @property
    def class_labels(self) -> tuple[int, ...]:
        """The label of each class."""
        return self.ids or tuple(range(self.first, self.first + len(self.classes)))

    @property
    def ignored(self) -> tuple[int, ...]:
        """The labels of ignored pixels, () if `ignore` is -1."""
        given = self.ignore if isinstance(self.ignore, tuple) else (self.ignore,)
        return tuple(label for label in given if label >= 0)


def class_boundaries(
    labels: Map, params: SemanticOptions, instances: Map | None = None, framed: Map | None = None
) -> Bool:
    """Draw the boundary of every class of a label map (H, W), bool (C, H, W).

    With radius 0 a pixel is boundary of a class if it and the pixel below, to the right or
    below-right are not both inside or both outside the class (the rule of seg2bdry). With radius r
    a pixel is boundary if the other side of the class's outline is at most r pixels away. Ignored
    pixels are on neither side and never boundary. If `instances` (H, W) are given, the boundary of
    each instance of the class is drawn too. `framed` are the labels with a frame of the ignored
    label; instances are drawn without the frame as in py-edge-eval, which only matters if
    `ignored_rule` is "span".

    Raises DataError if an array is no label map or has a label of no class, ShapeError if the
    shapes differ. Source: Yu et al., "Simultaneous Edge Alignment and Learning" (SEAL), ECCV 2018.
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
            covered = [np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0)]  # rows, columns
            margin = 2 * params.radius + 1  # pixels further away do not change the boundary
            box = tuple(slice(max(a[0] - margin, 0), a[-1] + margin + 1) for a in covered)
            out[k][box] |= draw(mask[box], valid[box], params.radius)
    return out


def _drawn(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask; pixels that are not `valid` are never boundary."""
    if radius:
        inside, outside = mask & valid, ~mask & valid
        return inside & near(outside, radius) | outside & near(inside, radius)
    return seg2bdry(mask, valid)


def _spanned(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask as py-edge-eval does, so that it spans thin ignored strips.

    A pixel is boundary if its distance to the outside plus its distance to the class is at most
    `radius`. Ignored pixels count as inside for the first distance and as outside for the second.
    """
    from scipy.ndimage import distance_transform_edt

    inside = mask | ~valid
    if inside.all():  # there is no outside, and no boundary
        return np.zeros(mask.shape, bool)
    return np.asarray(distance_transform_edt(inside) + distance_transform_edt(~mask) <= radius)


def near(target: Bool, radius: float) -> Bool:
    """Return the pixels at most `radius` pixels away from a target pixel."""
    from bsdsbench.kernels.matching.graph import disk, within_reach

    within: Bool = within_reach(np.ascontiguousarray(target), disk(radius, target.shape).half)
    return within


class PreparedClasses(NamedTuple):
    """Predicted maps and annotated boundaries, (C, H, W), and annotated labels (H, W) or None."""

    maps: Map
    truth: Bool
    labels: Map | None


def _prepare_classes(pred: Map, gt: GroundTruth, params: SemanticOptions) -> PreparedClasses:
    """Prepare a prediction and its ground truth as the options say, so that they can be compared.

    `pred` is a label map (H, W), or maps (C, H, W), soft or bool. Annotated boundaries of classes
    (C, H, W) are used if there are any, unless a radius asks to draw them from labels (H, W).
    Raises ShapeError if the sizes differ, DataError if a needed part is missing.
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
    """Draw the boundaries of classes from labels, scaled first if `scaled` is "labels"."""
    scale = params.scale if params.scaled == "labels" else 1
    scaled = None if instances is None else _nearest(instances, scale)
    framed = _nearest(_framed(whole, params), scale)
    return class_boundaries(_nearest(whole, scale), params, scaled, framed)


def _of_classes(array: Map, params: SemanticOptions, what: str) -> Map:
    """Return an array (C, H, W). Raises ShapeError if it does not have one map for each class."""
    if array.ndim != 3 or array.shape[0] != len(params.classes):
        last = "numpy.moveaxis(maps, -1, 0)" if array.shape[-1] == len(params.classes) else ()
        expected = f"({len(params.classes)}, rows, columns)"
        raise ShapeError(f"{what}: shape {array.shape}, expected {expected}", fix=last)
    return array


def _framed(maps: Map, params: SemanticOptions) -> Map:
    """Overwrite the border of maps if `border_rule` is "ignore".

    Labels (H, W) get the first ignored label, maps (C, H, W) get 0. Labels stay as they are if no
    label is ignored.
    """
    border, values = params.frame, params.ignored if maps.ndim == 2 else (0,)
    if not border or not values:
        return maps
    out = np.full(maps.shape, values[0], np.result_type(maps, np.min_scalar_type(values[0])))
    rows, cols = (slice(border, max(n - border, border)) for n in maps.shape[-2:])
    out[..., rows, cols] = maps[..., rows, cols]
    return out


def _fitted(maps: Map, shape: tuple[int, ...], rule: str) -> Map:
    """Resize predicted maps (C, H, W) to the `shape` (H, W) of the ground truth.

    `rule` is the option `resize`; "refuse" raises ShapeError if the sizes differ.
    """
    if maps.shape[1:] == tuple(shape):
        return maps
    if rule == "refuse":
        raise ShapeError(f"prediction {maps.shape[1:]}, expected the size {tuple(shape)}")
    if rule == "bicubic":
        return np.stack([bicubic(m, (shape[0], shape[1])) for m in maps])
    from PIL import Image

    chosen = []  # the rows and the columns that Pillow samples, read off a resized ramp
    for n, wanted in zip(maps.shape[1:], shape, strict=True):
        ramp = Image.fromarray(np.arange(n, dtype=np.int32)[None])
        chosen.append(np.asarray(ramp.resize((wanted, 1), Image.Resampling.NEAREST))[0])
    return np.ascontiguousarray(maps[:, chosen[0]][:, :, chosen[1]])


def _nearest(array: Map, scale: float) -> Map:
    """Resize (..., H, W) to ceil(scale x size) by nearest neighbours, like MATLAB's imresize.

    Positions follow from the scale, halves are rounded up, and positions beyond the end are
    mirrored: of five pixels, a scale of 0.5 takes pixels 1, 3 and 4.
    """
    if scale == 1:
        return array
    for axis, size in zip((-2, -1), array.shape[-2:], strict=True):
        centre = np.arange(1, math.ceil(size * scale) + 1) / scale + 0.5 * (1 - 1 / scale)
        index = (np.floor(centre + 0.5).astype(np.int64) - 1) % (2 * size)
        array = np.take(array, np.minimum(index, 2 * size - 1 - index), axis)
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
        """Accept equal sizes, any size if `resize` says how to resize, and channels-last maps.

        Maps with the classes on the last axis are refused later, with the remedy.
        """
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
        """Count the boundaries of every class of one image.

        thresholds : f8 (T,)
        counted : i8 (C,), 0 for the classes that `absent` skips, else 1
        matches : i8 (C, T, 4), the matches of `boundary_counts`, zeros for skipped classes

        Other arrays of the `counter` are stacked in the same way, with a first axis of classes.
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
        """Return the scores of each class, and their means over the annotated classes.

        Scores are NaN in the data sets whose ground truth does not have the class.
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
        """Return the scores of the annotated classes; `absent` names the other classes.

        Raises DataError if no class is annotated.
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
        return {name: ("per_class", name) for name in opt.classes}


def _where(annotated: Bool, scores: object) -> Any:
    """Set the scores of a class to NaN for data sets in which the class is not annotated.

    `scores` is a nested dict of arrays (S,); numbers of images and curves stay as they are.
    """
    if isinstance(scores, dict):
        return {k: v if k == "n_images" else _where(annotated, v) for k, v in scores.items()}
    return np.where(annotated, scores, np.nan) if isinstance(scores, np.ndarray) else scores
