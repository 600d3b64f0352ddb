"""Class maps prepared for per-class boundaries: drawn, resized, cropped, interiors removed.

Arrays only. A label map is (H, W) integer, an instance map (H, W) integer with 0 where there is no
instance; maps of all classes are (C, H, W), classes in the order of the protocol's.

The steps follow the published programs: add a frame of ignored labels, halve the labels, draw the
boundaries (of classes and of each instance), thin and halve them, resize predictions to the ground
truth, crop both. The tolerance is a fraction of the diagonal of the result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import same_shape
from bsdsbench.metrics.imresize import bicubic
from bsdsbench.metrics.label_maps import as_label_map
from bsdsbench.protocol.fields import LABEL, NAMES, check, is_int, is_number, one_of, option, whole

Bool = NDArray[np.bool_]


def _is_labels(values: Any) -> bool:
    return isinstance(values, tuple) and all(is_int(v) and 0 <= v < 2**31 for v in values)


@frozen
class SemanticOptions:
    """What the programs of per-class boundaries do differently, and the classes."""

    classes: tuple[str, ...] = option(
        (),
        "The names in the order of their labels.",
        NAMES,
        caption=lambda o: f"{len(o.classes)} classes",
    )
    first: int = option(0, "The label of the first class; the others follow without a gap.", LABEL)
    ids: tuple[int, ...] = option(
        (),
        "Or the label of each class, where there are gaps; other labels up to the "
        "largest are of no class.",
        check(_is_labels, "labels from 0"),
    )
    ignore: int | tuple[int, ...] = option(
        255,
        "Label of pixels that belong to nothing, or -1 for none; also several labels.",
        check(lambda v: (is_int(v) and -1 <= v < 2**31) or _is_labels(v), "a label, labels, or -1"),
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
        check(lambda v: is_number(v) and 0 < v <= 1, "a number in (0, 1]"),
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
    labels: NDArray[Any],
    params: SemanticOptions,
    instances: NDArray[Any] | None = None,
    framed: NDArray[Any] | None = None,
) -> Bool:
    """The boundary of every class of a label map (H, W), bool (C, H, W).

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
    if instances is not None:
        same_shape(as_label_map(instances, "instance map").shape, whole.shape, "instance map")
    labels = whole if framed is None else framed
    valid = ~np.isin(labels, params.ignored)
    present, known = set(np.unique(labels[valid]).tolist()), params.class_labels
    if strange := sorted(present - {0, *(range(max(known)) if params.ids else ()), *known}):
        ignored = ", ".join(map(str, params.ignored)) or "none"
        raise DataError(
            f"label map: label {strange[0]}, expected {min(known)} .. {max(known)}, 0 or "
            f"{ignored} (ignored)"
        )
    draw = _spanned if params.radius > 0 and params.ignored_rule == "span" else _drawn
    out = np.zeros((len(params.classes), *labels.shape), bool)
    for k, label in enumerate(known):
        if label not in present:
            continue
        region = whole == label
        masks = [labels == label]
        if instances is not None:
            own = np.unique(instances[region])
            masks += [region & (instances == n) for n in own[own >= params.instance_from]]
        for mask in masks:
            at = [np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0)]
            margin = 2 * params.radius + 1  # nothing beyond is near it
            box = tuple(slice(max(a[0] - margin, 0), a[-1] + margin + 1) for a in at)
            out[k][box] |= draw(mask[box], valid[box], params.radius)
    return out


def _drawn(mask: Bool, valid: Bool, radius: int) -> Bool:
    if radius:
        inside, outside = mask & valid, ~mask & valid
        return inside & near(outside, radius) | outside & near(inside, radius)
    edge = np.zeros(mask.shape, bool)
    for dy, dx in ((1, 0), (0, 1), (1, 1)):
        here = np.s_[: mask.shape[0] - dy, : mask.shape[1] - dx]
        there = np.s_[dy:, dx:]
        edge[here] |= (mask[here] != mask[there]) & valid[here] & valid[there]
    return edge


def _spanned(mask: Bool, valid: Bool, radius: int) -> Bool:
    """As py-edge-eval draws: the distances out of the class (ignored pixels belong to it there) and
    to the class (there they do not), together at most `radius`."""
    from scipy.ndimage import distance_transform_edt

    inside = mask | ~valid
    if inside.all():  # nothing to be far from
        return np.zeros(mask.shape, bool)
    return np.asarray(distance_transform_edt(inside) + distance_transform_edt(~mask) <= radius)


def near(target: Bool, radius: float) -> Bool:
    """Pixels no further than `radius` from a target pixel."""
    from bsdsbench.kernels.graph import disk, within_reach

    within: Bool = within_reach(np.ascontiguousarray(target), disk(radius, target.shape).half)
    return within


def prepare_classes(
    pred: NDArray[Any],
    gt: NDArray[Any],
    params: SemanticOptions,
    labels: NDArray[Any] | None = None,
    instances: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], Bool, NDArray[Any] | None]:
    """Predicted maps, boundaries of the ground truth and its labels, ready to be compared.

    pred : (H, W) labels, or (C, H, W) soft maps or bool
    gt : (H, W) labels, or (C, H, W) boundaries; then `labels` gives the regions, where known
    instances : (H, W), 0 where there is none; drawn with label maps if `params.instances` is on
    Raises ShapeError if sizes do not fit, DataError for instances that are wanted and missing.
    """
    from bsdsbench.kernels.thinning import thin_each

    if gt.ndim == 2:
        labels = gt
        if params.instances and instances is None:
            raise DataError("ground truth: no instance map, expected one for instances = true")
        truth = _from_labels(gt, params, instances if params.instances else None, params.thin_gt)
    else:
        truth = _framed(_of_classes(gt, params, "class boundaries") != 0, params.frame, False)
        truth = _nearest(thin_each(truth) if params.thin_gt else truth, params.scale)
    if labels is not None:
        labels = _nearest(_with_frame(labels, params), params.scale)
    maps = _from_labels(pred, params, None, False) if pred.ndim == 2 else pred
    maps = _fitted(_of_classes(maps, params, "class maps"), truth.shape[1:], params.resize)
    if params.frame or not params.border:
        return _framed(maps, params.frame, False), truth, labels
    if min(truth.shape[1:]) <= 2 * params.border:
        raise ShapeError(
            f"ground truth {truth.shape[1:]}, expected more than the border of "
            f"{params.border} pixels on each side"
        )
    inner = np.s_[..., params.border : -params.border, params.border : -params.border]
    maps, truth = (np.ascontiguousarray(each[inner]) for each in (maps, truth))
    return maps, truth, None if labels is None else np.ascontiguousarray(labels[inner])


def _from_labels(
    whole: NDArray[Any], params: SemanticOptions, instances: NDArray[Any] | None, thin: bool
) -> Bool:
    from bsdsbench.kernels.thinning import thin_each

    first = params.scale if params.scaled == "labels" else 1
    own = None if instances is None else _nearest(instances, first)
    framed = _nearest(_with_frame(whole, params), first)
    drawn = class_boundaries(_nearest(whole, first), params, own, framed)
    return _nearest(thin_each(drawn) if thin else drawn, params.scale / first)


def _of_classes(array: NDArray[Any], params: SemanticOptions, what: str) -> NDArray[Any]:
    if array.ndim != 3 or array.shape[0] != len(params.classes):
        raise ShapeError(
            f"{what}: shape {array.shape}, expected ({len(params.classes)}, rows, columns)"
        )
    return array


def _with_frame(labels: NDArray[Any], params: SemanticOptions) -> NDArray[Any]:
    """The label map with a frame of the ignored label, where the border rule is "ignore"."""
    return _framed(labels, params.frame, params.ignored[0]) if params.ignored else labels


def _framed(maps: NDArray[Any], border: int, value: int) -> NDArray[Any]:
    """(..., H, W) maps with one value along the border."""
    if not border:
        return maps
    out = np.full(maps.shape, value, np.result_type(maps, np.min_scalar_type(value)))
    rows, cols = (slice(border, max(n - border, border)) for n in maps.shape[-2:])
    out[..., rows, cols] = maps[..., rows, cols]
    return out


def _fitted(maps: NDArray[Any], shape: tuple[int, ...], how: str) -> NDArray[Any]:
    """Predicted maps at the size of the ground truth."""
    if maps.shape[1:] == tuple(shape):
        return maps
    if how == "refuse":
        raise ShapeError(f"prediction {maps.shape[1:]}, expected the size {tuple(shape)}")
    if how == "bicubic":
        return np.stack([bicubic(m, (shape[0], shape[1])) for m in maps])
    from PIL import Image

    at = []  # which rows, which columns Pillow takes
    for n, wanted in zip(maps.shape[1:], shape, strict=True):
        line = Image.fromarray(np.arange(n, dtype=np.int32)[None])
        at.append(np.asarray(line.resize((wanted, 1), Image.Resampling.NEAREST))[0])
    return np.ascontiguousarray(maps[:, at[0]][:, :, at[1]])


def _nearest(array: NDArray[Any], scale: float) -> NDArray[Any]:
    """(..., H, W) at ceil(scale x size), each pixel the nearest one, like MATLAB's imresize.

    Positions by the scale, halves rounded up, mirrored beyond the end: 1, 3, 4 of 5 halved.
    """
    if scale == 1:
        return array
    for axis, size in zip((-2, -1), array.shape[-2:], strict=True):
        centre = np.arange(1, math.ceil(size * scale) + 1) / scale + 0.5 * (1 - 1 / scale)
        at = (np.floor(centre + 0.5).astype(np.int64) - 1) % (2 * size)
        array = np.take(array, np.minimum(at, 2 * size - 1 - at), axis)
    return np.ascontiguousarray(array)
