"""Boundaries of classes: how good are the boundaries of cars, of people, of each class?

Definition. Each class is a separate boundary benchmark. The scores are averaged over the classes
that occur in the ground truth.

Conventions. Label maps and instance maps are (H, W) integers; 0 in an instance map is no instance.
Boundaries of all classes are (C, H, W), bool in the ground truth and soft or bool in a prediction.
Maps are prepared as in the published programs, in this order: overwrite the image border with an
ignored label, scale the labels, draw the boundaries, thin and scale them, resize predictions to the
ground truth, crop both. The tolerance is a fraction of the diagonal of the prepared maps.

Source. Hariharan et al., "Semantic contours from inverse detectors", ICCV 2011 (SBD); Yu et al.,
"Simultaneous Edge Alignment and Learning" (SEAL), ECCV 2018; the programs of SBD, SEAL, SEISM and
py-edge-eval.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from bsdsbench.arguments import Bools, Ints
from bsdsbench.errors import DataError, Setting, ShapeError
from bsdsbench.images import GroundTruth, Map, Prediction, check_soft_map, same_shape
from bsdsbench.loaders.formats.pictures import refuse_channels
from bsdsbench.loaders.labels import (
    id_evidence,
    label_evidence,
    reject_binary_prediction,
    seg2bdry,
    train_id_options,
)
from bsdsbench.metrics.base import (
    IMAGES,
    Column,
    Counter,
    FilesRead,
    ScoreTree,
    Symptoms,
    class_means,
)
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.metrics.label_maps import GT_SIDE, PRED_SIDE, as_label_map, box_around
from bsdsbench.metrics.label_metric import refuse_other_numbering
from bsdsbench.metrics.optional import Arrays
from bsdsbench.protocol.fields import (
    CLASS_NAMES,
    LABEL,
    accepting,
    is_int,
    is_number,
    listed_values,
    one_of,
    option,
    whole,
)
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, TOTAL_GT, Evidence, Stack, value_at
from bsdsbench.scores.ratios import Weights, weighted_sum
from bsdsbench.transforms.resize import bicubic


def _is_labels(values: object) -> bool:
    """Return True for a tuple of integers in 0 .. 2^31 - 1."""
    return isinstance(values, tuple) and all(is_int(v) and 0 <= v < 2**31 for v in values)


_CLASSES_EXPECTED = (
    "class names: set semantic.classes=NAME,NAME, or use a protocol that has them (cityscapes, "
    "sbd, sbd-seal)"
)


@frozen
class SemanticOptions:
    """The classes, and the choices on which published per-class boundary benchmarks differ."""

    classes: tuple[str, ...] = option(
        (),
        "Class names in the order of their labels.",
        [*CLASS_NAMES, accepting(bool, _CLASSES_EXPECTED)],
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
    def class_labels(self) -> tuple[int, ...]:
        """The label of each class."""
        return self.ids or tuple(range(self.first, self.first + len(self.classes)))

    @property
    def ignored(self) -> tuple[int, ...]:
        """The labels of ignored pixels, () if `ignore` is -1."""
        return listed_values(self.ignore)


class PreparedClasses(NamedTuple):
    """The prepared maps of one image with C classes, all of the same size."""

    maps: Map  # (C, H, W), predicted boundaries, soft or bool
    boundaries: Bools  # (C, H, W), annotated boundaries
    labels: Map | None  # (H, W), annotated labels, or None if only boundaries are annotated


def _prepare_classes(pred: Map, gt: GroundTruth, params: SemanticOptions) -> PreparedClasses:
    """Bring the boundaries of all classes in the prediction and the ground truth to the same size.

    The prediction `pred` is a label map (H, W), whose boundaries are drawn here, or the boundaries
    of each class (C, H, W), soft or bool. The ground truth, and predicted labels, are scaled by
    `params.scale`. Predicted boundaries of another size are resized by the rule `params.resize`. A
    border of `params.border` pixels is cut off at the end or, with the rule "ignore", overwritten:
    in labels by the ignored label, in boundaries by 0.

    Raises ShapeError if a shape is wrong or nothing is left inside the border, and MissingPartError
    if `gt` lacks a map that is needed.
    """
    from bsdsbench.kernels.thinning import thin_each

    boundaries, is_scaled = gt.parts.get("class_boundaries"), False
    # Draw the labels if there are no annotated boundaries, or if a radius is given
    if boundaries is None or ("labels" in gt.parts and params.radius > 0):
        instances = gt.instances if params.instances else None
        boundaries = class_boundaries(gt.labels, params, instances, GT_SIDE)
        is_scaled = params.scaled == "labels"  # before the boundaries were drawn
    else:
        _check_class_axis(boundaries, params, GT_SIDE)
        boundaries = _overwrite_border(boundaries != 0, params)
    if params.thin_gt:
        boundaries = thin_each(boundaries)
    if not is_scaled:
        boundaries = _scale_to_nearest(boundaries, params.scale)
    labels = gt.parts.get("labels")  # None if the ground truth has only boundaries
    if labels is not None:
        labels = _scale_to_nearest(_overwrite_border(labels, params), params.scale)
    maps = pred
    if pred.ndim == 2:  # a label map
        maps = class_boundaries(pred, params, None, PRED_SIDE)
        if params.scaled == "boundaries":  # otherwise, the labels were scaled before drawing
            maps = _scale_to_nearest(maps, params.scale)
    _check_class_axis(maps, params, PRED_SIDE)
    maps = _resize(maps, boundaries.shape[1:], params.resize)
    border = params.border
    if border == 0 or params.border_rule == "ignore":  # keep the size; predict 0 in the border
        return PreparedClasses(_overwrite_border(maps, params), boundaries, labels)
    if min(boundaries.shape[1:]) <= 2 * border:
        raise ShapeError(
            f"{GT_SIDE}: shape {boundaries.shape[1:]}, expected more than the border of "
            f"{border} pixels on each side"
        )
    inner = np.s_[..., border:-border, border:-border]
    maps, boundaries = np.ascontiguousarray(maps[inner]), np.ascontiguousarray(boundaries[inner])
    return PreparedClasses(maps, boundaries, None if labels is None else labels[inner])


def class_boundaries(
    labels: Map, params: SemanticOptions, instances: Map | None = None, what: str = "label map"
) -> Bools:
    """Draw the boundaries of each class in a label map, by the rule of `_draw_boundary`.

    With `params.radius` 0, they are one pixel wide; with a radius r, a pixel is on the boundary if
    it is at most r pixels from the other side of it. Ignored pixels are on neither side.

    If `params.scaled` is "labels", the labels are first scaled by `params.scale`. With the border
    rule "ignore", the border of the image first gets the ignored label, so that no class has
    boundaries there.

    labels: integers (H, W). Each is the label of a class, 0, or an ignored label.
    instances: integers (H, W), the number of the instance at each pixel. If given, the boundary of
        each instance is drawn too. Numbers below `params.instance_from` are no instances: in
        Cityscapes, 26001 is a car, but 7 the road.
    what: the name of the labels in errors.

    Returns bool (C, H', W'), with the classes in the order of `params.classes`. The size (H', W')
    differs from (H, W) if the labels are scaled. Raises DataError if `labels` has other labels, and
    ShapeError if the shapes differ.
    """
    label_map = as_label_map(labels, what)
    scale = params.scale if params.scaled == "labels" else 1
    class_map = _scale_to_nearest(_overwrite_border(label_map, params), scale)
    if instances is not None:
        same_shape(instances.shape, label_map.shape, f"{what}: instances")
        instances = _scale_to_nearest(instances, scale)
        # Instances keep their pixels in an ignored border, as in the program py-edge-eval
        class_of_instance_pixel = _scale_to_nearest(label_map, scale)
    valid = ~np.isin(class_map, params.ignored)
    present = set(np.unique(class_map[valid]).tolist())
    # If `params.ids` lists the labels of the classes, as they have gaps, all other labels below the
    # largest are allowed too: their pixels belong to no class
    known = params.class_labels
    gaps = range(max(known)) if params.ids else ()  # 0 .. largest - 1, which include the gaps
    if unknown := present - {0, *known, *gaps}:
        ignored = ", ".join(map(str, params.ignored)) or "none"
        no_class = "" if 0 in known else ", 0"
        fixes = [train_id_options("semantic")] if params.ids else []
        if not params.ids and params.first == 0 and min(unknown) == len(known):
            fixes = [Setting("semantic.first", 1, "if 0 is the background, or one more class")]
        raise DataError(
            f"{what}: label {min(unknown)}, expected {min(known)} .. {max(known)}{no_class} or "
            f"{ignored} (ignored)",
            fix=tuple(fixes),
        )
    margin = 2 * params.radius + 1  # pixels further from a mask do not change its boundary
    boundaries = np.zeros((len(params.classes), *class_map.shape), bool)
    for k, label in enumerate(known):
        if label not in present:
            continue
        masks = [class_map == label]  # of the class, and of each of its instances
        if instances is not None:
            region = class_of_instance_pixel == label
            numbers = np.unique(instances[region])
            masks += [region & (instances == n) for n in numbers[numbers >= params.instance_from]]
        for mask in masks:
            box = box_around(mask, margin)
            boundaries[k][box] |= _draw_boundary(mask[box], valid[box], params)
    return boundaries


def _draw_boundary(mask: Bools, valid: Bools, params: SemanticOptions) -> Bools:
    """Draw the boundary of a mask among the valid pixels; all maps are bool (H, W).

    If `params.radius` is 0, a pixel is on the boundary if the 2 x 2 block of the pixel and its
    right, lower and lower-right neighbours lies partly in the mask, as in seg2bdry. With a radius
    r > 0, it is if a pixel on the other side of the outline is at most r away. Ignored pixels,
    False in `valid`, are on neither side, and never on a boundary. With the rule "span" of
    py-edge-eval, a pixel is on the boundary if its distances to the mask and to the nearest valid
    pixel outside the mask add up to at most r, so that boundaries run across thin strips of ignored
    pixels.
    """
    inside, outside, radius = mask & valid, ~mask & valid, params.radius
    if not radius:
        return seg2bdry(mask, valid)
    if params.ignored_rule != "span":
        return inside & dilate(outside, radius) | outside & dilate(inside, radius)
    if not outside.any():
        return np.zeros(mask.shape, bool)
    from scipy.ndimage import distance_transform_edt

    to_outside, to_mask = (distance_transform_edt(~region) for region in (outside, mask))
    return np.asarray(to_outside + to_mask <= radius)


def dilate(mask: Bools, radius: float) -> Bools:
    """Dilate a mask (H, W) by a disk: True where a mask pixel is at most `radius` pixels away."""
    from bsdsbench.kernels.matching.graph import half_widths, within_reach

    return within_reach(np.ascontiguousarray(mask), half_widths(radius, mask.shape))


def _check_class_axis(array: Map, params: SemanticOptions, what: str) -> None:
    """Raise ShapeError unless `array`, called `what` in the error, is (C, H, W) for C classes."""
    if array.ndim != 3 or array.shape[0] != len(params.classes):
        is_last = array.shape[-1] == len(params.classes)
        fix = "numpy.moveaxis(maps, -1, 0)" if is_last else ()
        expected = f"({len(params.classes)}, rows, columns)"
        raise ShapeError(f"{what}: shape {array.shape}, expected {expected}", fix=fix)


def _overwrite_border(maps: Map, params: SemanticOptions) -> Map:
    """Return maps with an overwritten border, `params.border` pixels wide, if the rule is "ignore".

    In boundary maps (C, H, W), the border becomes 0. In a label map (H, W), it gets the first of
    the ignored labels. If no label is ignored, or `params.border_rule` is "crop", nothing changes.
    """
    border, values = params.border, params.ignored if maps.ndim == 2 else (0,)
    if border == 0 or params.border_rule != "ignore" or not values:
        return maps
    dtype = np.result_type(maps, np.min_scalar_type(values[0]))  # one that can hold the value too
    framed = np.full(maps.shape, values[0], dtype)
    # Keep what is inside the border: nothing, rows border : border, if the map is smaller than that
    rows, cols = (slice(border, max(n - border, border)) for n in maps.shape[-2:])
    framed[..., rows, cols] = maps[..., rows, cols]
    return framed


def _resize(maps: Map, shape: tuple[int, ...], rule: str) -> Map:
    """Resize the maps (C, H, W) of C classes to `shape` (rows, columns).

    rule: "nearest", "bicubic", or "refuse", which raises ShapeError if the sizes differ.
    """
    if maps.shape[1:] == tuple(shape):
        return maps
    if rule == "refuse":
        raise ShapeError(f"{PRED_SIDE}: shape {maps.shape[1:]}, expected {tuple(shape)}")
    if rule == "bicubic":
        return np.stack([bicubic(m, (shape[0], shape[1])) for m in maps])
    from PIL import Image

    # Find which rows and columns Pillow samples, by letting it resize the row and column indices
    sampled = []
    for size, new_size in zip(maps.shape[1:], shape, strict=True):
        numbers = Image.fromarray(np.arange(size, dtype=np.int32)[None])
        sampled.append(np.asarray(numbers.resize((new_size, 1), Image.Resampling.NEAREST))[0])
    return np.ascontiguousarray(maps[:, sampled[0]][:, :, sampled[1]])


def _scale_to_nearest(array: Map, scale: float) -> Map:
    """Resize an array (..., H, W) to ceil(scale x size) by nearest-neighbour sampling.

    As in MATLAB's imresize, sample positions depend only on the scale, not on the rounded new size.
    A position halfway between two pixels rounds up, and positions past the end are reflected back
    into the image. For example, scale 0.5 picks the indices 1, 3 and 4 of five pixels.
    """
    if scale == 1:
        return array
    for axis, size in zip((-2, -1), array.shape[-2:], strict=True):
        # The old pixels have their centres at 1, 2, .., so that the image begins at 0.5. The centre
        # of new pixel n is n - 0.5 new pixels from there: at (n - 0.5) / scale + 0.5
        n = np.arange(1, math.ceil(size * scale) + 1)
        centre = n / scale + 0.5 * (1 - 1 / scale)  # the same, as imresize writes it
        index = np.floor(centre + 0.5).astype(np.int64) - 1  # counted from 0
        index %= 2 * size  # the reflected image follows the image, and both repeat
        mirrored = np.minimum(index, 2 * size - 1 - index)  # size -> size - 1, and so on
        array = np.take(array, mirrored, axis)
    return np.ascontiguousarray(array)


class SemanticMetric(CurveMetric[SemanticOptions]):
    """One boundary benchmark for each class, and the mean over the classes."""

    name, title, reads, options = "semantic", "Boundaries of classes", "classes", SemanticOptions
    default_protocol, void_option, has_errors = None, "ignore", True
    uses = (*MAPS, *CURVE, *MATCHING)
    columns = (
        Column("ods_mean", "mean ODS"),
        Column("ois_mean", "mean OIS"),
        Column("ap_mean", "mean AP"),
        Column("n_classes", "classes", digits=0, shown="own", score=False),
        IMAGES,
    )
    image_columns = (Column("ods_mean", "mean F of its classes", "F"),)

    def files_read(self, opt: SemanticOptions) -> FilesRead:
        """Return what is read: one predicted file per class, and instance maps if needed."""
        return FilesRead(classes=opt.classes, instances=opt.instances)

    def fits(self, pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> bool:
        """Return True if sizes match or are resized, or for (H, W, C), which `count` rejects."""
        is_last = pred.classes.ndim == 3 and pred.classes.shape[-1] == len(opt.classes)
        return is_last or pred.shape == gt.shape or opt.resize != "refuse"

    def label_evidence(self, labels: Map, opt: SemanticOptions, truth: bool) -> Evidence:
        """Collect evidence on the class numbering of an annotated label map; none if predicted."""
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
        """Count the matched and the total boundary pixels of each of C classes in one image.

        counter: the function that counts one class: `boundary_counts`, or one that returns further
            arrays. Its `dropped` (H, W) is True at predicted pixels to remove after thinning.

        Returns `thresholds` (T,); the other arrays of `counter` for all classes, such as `matches`
        (C, T, 4); and `counted`, bool (C,), False for classes that were skipped, whose counts are
        0. A class is skipped if it has no annotated boundary and `opt.absent` is "skip".
        """
        _check_numbering(pred, gt, opt)  # that both maps number the classes alike
        # Boundaries of each class in both maps, (C, H, W), and annotated labels (H, W) or None
        maps, boundaries, labels = _prepare_classes(pred.classes, gt, opt)
        if opt.interior != "keep" and labels is None:
            raise DataError(
                f"{gt.where}: only boundaries, expected labels for interior = '{opt.interior}'"
            )
        shape = boundaries.shape[1], boundaries.shape[2]
        counted = np.asarray(boundaries.any(axis=(1, 2))) | (opt.absent == "count")
        # Count an empty map to learn the names and shapes of the arrays; skipped classes keep 0
        empty = counter(np.zeros(shape), (np.zeros(shape, bool),), protocol)
        n = len(opt.classes)
        counts = {name: np.zeros((n, *array.shape), array.dtype) for name, array in empty.items()}
        for k in np.flatnonzero(counted):
            soft = check_soft_map(maps[k], f"{pred.where}: soft map of class {opt.classes[k]}")
            drawn, dropped = boundaries[k], None
            # Remove predictions inside the class, farther from its boundary than the tolerance
            if labels is not None and opt.interior != "keep" and drawn.any():
                is_class = labels == opt.class_labels[k]  # `opt.classes` has the names
                interior = is_class & ~dilate(drawn, protocol.radius(shape))
                if opt.interior == "kill_first":  # before thinning
                    soft = np.where(interior, soft.dtype.type(0), soft)
                else:  # "kill": after thinning
                    dropped = interior
            class_counts = counter(Prediction.of(soft), (drawn,), protocol, dropped=dropped)
            for name, array in class_counts.items():
                counts[name][k] = array
        return {**counts, "thresholds": empty["thresholds"], "counted": counted}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SemanticOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) if the maps of a stack fit the classes only in another order.

        That is, if the strengths of the maps on the boundaries of their classes have a sum that
        more than doubles once each class, of at least two, has the map of the best assignment.
        """
        from scipy.optimize import linear_sum_assignment

        maps, boundaries, _ = _prepare_classes(pred.classes, gt, opt)
        annotated = np.flatnonzero(boundaries.any(axis=(1, 2)))
        if pred.classes.ndim != 3 or annotated.size < 2:
            return
        radius = protocol.radius((maps.shape[1], maps.shape[2]))
        near = [dilate(boundaries[k], radius) for k in annotated]
        strength = np.stack([maps[:, pixels].mean(axis=1) for pixels in near])  # (class, map)
        rows, best = linear_sum_assignment(strength, maximize=True)
        on_own_map, on_best_map = strength[rows, annotated], strength[rows, best]  # of each class
        if on_best_map.sum() > 2 * max(on_own_map.sum(), 0):
            moved = (on_best_map - on_own_map).argmax()
            name, other = opt.classes[annotated[moved]], opt.classes[best[moved]]
            problem = f"boundaries of the classes are in maps of others ({name} in that of {other})"
            yield "classes", problem, "check the order of the maps and `semantic.first`"

    def curves(self, stack: Stack, opt: SemanticOptions) -> dict[tuple[str, ...], Ints]:
        """Return the `matches` (N, T, 4) of each class, by the path ("per_class", NAME)."""
        matches = stack["matches"]
        return {("per_class", name): matches[:, k] for k, name in enumerate(opt.classes)}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SemanticOptions
    ) -> ScoreTree:
        """Compute the boundary scores of each class, and their means over classes, for S data sets.

        stack: the counts of N images for C classes: `matches` (N, C, T, 4), with 4 pixel counts at
            each of T thresholds, and `counted`, bool (N, C), False if a class was skipped.
        weights (S, N): how often each image occurs in each data set.

        Returns:

        ods_mean, ois_mean, ap_mean : means over the classes that occur in the ground truth, (S,)
        n_classes : number of these classes, (S,)
        per_class : class name -> scores of the class, NaN in data sets without the class
        over : number of classes in each mean, and number of all classes
        """
        # The number of annotated pixels is the same at all thresholds: take that at the first
        n_annotated = weighted_sum(weights, stack["matches"][:, :, 0, TOTAL_GT])  # (S, C)
        is_annotated = n_annotated > 0
        n_images = weighted_sum(weights, stack["counted"])  # (S, C)
        # The scores of each curve, such as ods and ap; `curves` has one for each class
        per_class: Any = super().scores(stack, weights, protocol, opt)["per_class"]
        for k, (name, scores) in enumerate(per_class.items()):
            scores["n_images"] = n_images[:, k]
            per_class[name] = _nan_where_absent(scores, is_annotated[:, k])
        values = {}
        for key in ("ods", "ois", "ap"):
            of_classes = [value_at(scores, key) for scores in per_class.values()]  # (S,) each
            values[f"{key}_mean"] = np.array(of_classes).T  # (S, C), of which means are taken
        n_classes = is_annotated.sum(axis=1)
        # `class_means` returns means over the classes that are not NaN, and "over", their numbers
        return {**class_means(values), "n_classes": n_classes, "per_class": per_class}

    def complete(self, scores: dict[str, Any], stack: Stack) -> dict[str, Any]:
        """Remove classes without annotated boundaries from `per_class`, and list them in `absent`.

        Raises DataError if no class has an annotated boundary.
        """
        per_class = scores["per_class"]
        n_annotated = stack["matches"][..., TOTAL_GT]  # (images, classes, thresholds)
        annotated = np.any(n_annotated, axis=(0, 2)).tolist()
        if not any(annotated):
            raise DataError("semantic score: no class has a ground-truth boundary")
        absent = tuple(n for n, drawn in zip(per_class, annotated, strict=True) if not drawn)
        kept = {name: score for name, score in per_class.items() if name not in absent}
        return {**scores, "per_class": kept, "absent": absent}

    def parts(self, protocol: Protocol, opt: SemanticOptions) -> dict[str, tuple[str, ...]]:
        """Map each class to the path of its scores."""
        return {name: ("per_class", name) for name in opt.classes}


def _check_numbering(pred: Prediction, gt: GroundTruth, opt: SemanticOptions) -> None:
    """Raise DataError if an image's maps hold something else than a class metric expects.

    A map is either a label map (H, W), the number of a class at each pixel, or a stack (C, H, W),
    the boundaries of each of C classes. Each check calls a function that raises the error.
    """
    expected = "boundaries of each class"  # how the message names what a stack should hold
    pred_maps = pred.classes
    labels = gt.parts.get("labels")  # None if the ground truth has no label map
    # Two label maps must number the classes alike: not one from 0 and the other from 1
    if labels is not None and pred_maps.ndim == 2 and labels.ndim == 2:
        refuse_other_numbering(pred_maps, labels, opt.class_labels, opt.ignored)
    # The maps of a stack must not add up to 1 at each pixel, as one-hot maps and probabilities do
    if pred_maps.ndim == 3:
        refuse_channels(tuple(pred_maps), f"{PRED_SIDE}: ", expected)
    if "class_boundaries" in gt.parts:
        refuse_channels(tuple(gt.class_boundaries), f"{GT_SIDE}: ", expected)
    # A predicted label map must not be a mask of 0 and 255. The check compares the maps by pixel
    if labels is not None and pred_maps.shape == labels.shape:
        reject_binary_prediction(pred_maps, labels, opt.class_labels, PRED_SIDE)


def _nan_where_absent(scores: object, is_annotated: Bools) -> Any:
    """Return the scores of a class, with NaN for data sets in which the class is not annotated.

    scores: nested dicts of arrays (S,), such as {"ap": array, "ods": {"f": array}}. The entry
        `n_images`, and values that are not arrays, such as curves, are kept unchanged.
    is_annotated (S,): True for data sets with annotated boundaries of the class.
    """
    if isinstance(scores, np.ndarray):
        return np.where(is_annotated, scores, np.nan)
    if not isinstance(scores, dict):
        return scores
    return {
        name: value if name == "n_images" else _nan_where_absent(value, is_annotated)
        for name, value in scores.items()
    }
