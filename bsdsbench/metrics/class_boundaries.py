"""Draw the boundaries of the classes and instances of a label map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Map, same_shape
from bsdsbench.loaders.labels import seg2bdry, train_id_options
from bsdsbench.metrics.label_maps import as_label_map, box_around

if TYPE_CHECKING:
    from bsdsbench.metrics.semantic import SemanticOptions


def class_boundaries(
    labels: Map, params: SemanticOptions, instances: Map | None = None, framed: Map | None = None
) -> Bool:
    """Draw the boundaries of each class in a label map.

    If `params.radius` is 0, a pixel is on the boundary of a class if the 2 x 2 block of the pixel
    and its right, lower and lower-right neighbours lies partly in the class, as in seg2bdry. With a
    radius r > 0, a pixel is on the boundary if a pixel on the other side of the class's outline is
    at most r away. Ignored pixels are on neither side, and never on a boundary. There is one
    exception: with a radius above 0 and `params.ignored_rule` "span", boundaries run across thin
    strips of ignored pixels.

    labels: integers (H, W). Each is the label of a class, 0, or an ignored label.
    instances: integers (H, W), the number of the instance at each pixel. If given, the boundary of
        each instance whose number is at least `params.instance_from` is drawn too.
    framed: `labels` with the image border set to the ignored label, for the rule "span". If given,
        classes are drawn from this map, but instances from `labels`, as in py-edge-eval.

    Returns bool (C, H, W), with the classes in the order of `params.classes`. Raises DataError if
    `labels` has other labels, and ShapeError if the shapes differ.
    """
    unframed = as_label_map(labels, "label map")
    if instances is not None:
        same_shape(instances.shape, unframed.shape, "instances")
    drawn_labels = unframed if framed is None else framed
    valid = ~np.isin(drawn_labels, params.ignored)
    present = set(np.unique(drawn_labels[valid]).tolist())
    # If `ids` lists the labels because they have gaps, the others below the largest are no class
    known = params.class_labels
    strange = present - {0, *known, *(range(max(known)) if params.ids else ())}
    if strange:
        ignored = ", ".join(map(str, params.ignored)) or "none"
        raise DataError(
            f"label map: label {min(strange)}, expected {min(known)} .. {max(known)}, 0 or "
            f"{ignored} (ignored)",
            fix=train_id_options("semantic") if params.ids else (),
        )
    spans = params.radius > 0 and params.ignored_rule == "span"
    draw = _draw_spanning_boundary if spans else _draw_boundary
    margin = 2 * params.radius + 1  # pixels further from a region do not change its boundary
    boundaries = np.zeros((len(params.classes), *drawn_labels.shape), bool)
    for k, label in enumerate(known):
        if label not in present:
            continue
        masks = [drawn_labels == label]
        if instances is not None:
            region = unframed == label
            numbers = np.unique(instances[region])
            masks += [region & (instances == n) for n in numbers[numbers >= params.instance_from]]
        for mask in masks:  # of the class, and of each of its instances
            box = box_around(mask, margin)
            boundaries[k][box] |= draw(mask[box], valid[box], params.radius)
    return boundaries


def _draw_boundary(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask among the valid pixels; all maps are bool (H, W)."""
    if not radius:
        return seg2bdry(mask, valid)
    inside, outside = mask & valid, ~mask & valid
    return inside & dilate(outside, radius) | outside & dilate(inside, radius)


def _draw_spanning_boundary(mask: Bool, valid: Bool, radius: int) -> Bool:
    """Draw the boundary of a mask as py-edge-eval does; all maps are bool (H, W).

    A pixel is on the boundary if its distance to the nearest valid pixel outside the mask plus its
    distance to the mask is at most `radius`. Void pixels do not count as outside, so that the
    boundary spans thin strips of them.
    """
    from scipy.ndimage import distance_transform_edt

    is_outside = ~mask & valid
    if not is_outside.any():
        return np.zeros(mask.shape, bool)
    to_outside, to_mask = (distance_transform_edt(~region) for region in (is_outside, mask))
    return np.asarray(to_outside + to_mask <= radius)


def dilate(mask: Bool, radius: float) -> Bool:
    """Dilate a mask (H, W) by a disk: True where a mask pixel is at most `radius` pixels away."""
    from bsdsbench.kernels.matching.graph import half_widths, within_reach

    return within_reach(np.ascontiguousarray(mask), half_widths(radius, mask.shape))
