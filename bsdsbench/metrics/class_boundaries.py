"""Draw the boundaries of the classes and instances of a label map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Map, same_shape
from bsdsbench.loaders.labels import seg2bdry, train_id_options
from bsdsbench.metrics.label_maps import as_label_map

if TYPE_CHECKING:
    from bsdsbench.metrics.semantic import SemanticOptions


def class_boundaries(
    labels: Map, params: SemanticOptions, instances: Map | None = None, framed: Map | None = None
) -> Bool:
    """Draw the boundaries of each class in a label map.

    With radius 0, a pixel is on the boundary of a class if the 2 x 2 block of the pixel and its
    right, lower and lower-right neighbours lies partly in the class, as in seg2bdry. With radius r,
    it is if a pixel on the other side of the class's outline is at most r away. Ignored pixels are
    on neither side, and never on a boundary. The exception is `ignored_rule` "span" with a radius
    above 0: boundaries then run across thin strips of ignored pixels.

    labels: integers (H, W). Each is the label of a class, 0, or an ignored label.
    instances: integers (H, W), the number of the instance at each pixel. If given, the boundary of
        each instance whose number is at least `params.instance_from` is drawn too.
    framed: `labels` with the image border set to the ignored label. If given, classes are drawn
        from this map, but instances from `labels`, as in py-edge-eval. Only "span" needs it.

    Returns bool (C, H, W), with the classes in the order of `params.classes`. Raises DataError if
    `labels` has other labels, and ShapeError if the shapes differ.
    """
    unframed = as_label_map(labels, "label map")
    if instances is not None:
        same_shape(instances.shape, unframed.shape, "instances")
    drawn_labels = unframed if framed is None else framed
    valid = ~np.isin(drawn_labels, params.ignored)
    present = set(np.unique(drawn_labels[valid]).tolist())
    _check_labels(present, params)
    spans = params.radius > 0 and params.ignored_rule == "span"
    draw = _draw_spanning_boundary if spans else _draw_boundary
    margin = 2 * params.radius + 1  # pixels further from a region do not change its boundary
    boundaries = np.zeros((len(params.classes), *drawn_labels.shape), bool)
    for k, label in enumerate(params.class_labels):
        if label not in present:
            continue
        masks = [drawn_labels == label]
        if instances is not None:
            region = unframed == label
            numbers = np.unique(instances[region])
            masks += [region & (instances == n) for n in numbers[numbers >= params.instance_from]]
        for mask in masks:
            rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            box = np.s_[
                max(rows[0] - margin, 0) : rows[-1] + margin + 1,
                max(cols[0] - margin, 0) : cols[-1] + margin + 1,
            ]
            boundaries[k][box] |= draw(mask[box], valid[box], params.radius)
    return boundaries


def _check_labels(present: set[int], params: SemanticOptions) -> None:
    """Raise DataError if a label in `present` is neither 0 nor the label of a class.

    If `params.ids` lists the labels of the classes, all labels below the largest are allowed.
    """
    known = params.class_labels
    gaps = range(max(known)) if params.ids else ()  # labels below the largest
    strange = present - {0, *known, *gaps}
    if strange:
        ignored = ", ".join(map(str, params.ignored)) or "none"
        raise DataError(
            f"label map: label {min(strange)}, expected {min(known)} .. {max(known)}, 0 or "
            f"{ignored} (ignored)",
            fix=train_id_options("semantic") if params.ids else (),
        )


def _draw_boundary(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask among the valid pixels; all maps are bool (H, W)."""
    if not radius:
        return seg2bdry(mask, valid)
    inside, outside = mask & valid, ~mask & valid
    return inside & dilate(outside, radius) | outside & dilate(inside, radius)


def _draw_spanning_boundary(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask as py-edge-eval does; all maps are bool (H, W).

    A pixel is on the boundary if its distance to the outside of the mask plus its distance to the
    mask is at most `radius`. Pixels that are not `valid` are inside for the first distance and
    outside for the second, so that the boundary spans thin strips of them.
    """
    from scipy.ndimage import distance_transform_edt

    inside = mask | ~valid
    if inside.all():  # nothing is outside
        return np.zeros(mask.shape, bool)
    return np.asarray(distance_transform_edt(inside) + distance_transform_edt(~mask) <= radius)


def dilate(mask: Bool, radius: float) -> Bool:
    """Dilate a mask (H, W) by a disk: True where a mask pixel is at most `radius` pixels away."""
    from bsdsbench.kernels.matching.graph import half_widths, within_reach

    dilated: Bool = within_reach(np.ascontiguousarray(mask), half_widths(radius, mask.shape))
    return dilated
