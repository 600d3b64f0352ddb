"""All contour measures of one image, as counts that are additive over images.

Two definitions of each measure are in use and both are kept: the mean over images (or instances) of
each image's value, from `value_sum` / `value_count`, and the value of the pixels of all images
together, from the integer counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.metrics.contour import overlap, surface
from bsdsbench.metrics.contour.instances import pair_of
from bsdsbench.metrics.contour.label_options import ContourOptions
from bsdsbench.metrics.contour.pairs import F8, LabelPair, convention, settle
from bsdsbench.scores.counts import Counts

I8 = NDArray[np.int64]


def contour_counts(pred: ArrayLike, gt: ArrayLike, params: ContourOptions | None = None) -> Counts:
    """Count one image: two masks, or two label maps if `params` has classes.

    With C classes, M measures in the order of `ContourOptions.measures()`, W widths and R radii:

    value_sum   : f8 (C, M), each measure summed over the pairs of masks for which it is defined
    value_count : i8 (C, M), how many those are
    areas       : i8 (C, 3), pixels in both masks, in pred, in gt
    shells      : i8 (C, W, 3), the same of the inner boundaries of Boundary IoU
    near        : i8 (C, R, 2), boundary pixels ("side") of pred and of gt within each radius
    outline     : i8 (C, 2), boundary pixels of pred and of gt
    pairs       : i8 (C, 3), masks compared: of both sides, of pred alone, of gt alone

    pred, gt : (H, W) masks; label maps with the labels `params.first` on; instance maps if
        `params.unit` is "instance" or "id" (see `ContourOptions`)

    Raises DataError for what is no mask or label map, ShapeError for unequal shapes.
    """
    at = ContourOptions() if params is None else params
    pair, class_of = pair_of(pred, gt, at)
    n_classes = len(at.class_names)
    values, parts = pair_values(pair, at)
    table = np.stack(list(values.values()), axis=1)
    defined = ~np.isnan(table)
    has_pred, has_gt = parts["areas"][:, 1] > 0, parts["areas"][:, 2] > 0
    kinds = np.stack([has_pred & has_gt, has_pred & ~has_gt, ~has_pred & has_gt], axis=1)
    return Counts(
        value_sum=_by_class(np.where(defined, table, 0.0), class_of, n_classes),
        value_count=_by_class(defined, class_of, n_classes),
        areas=_by_class(parts["areas"], class_of, n_classes),
        shells=_by_class(parts["shells"], class_of, n_classes),
        near=_by_class(parts["near"], class_of, n_classes),
        outline=_by_class(parts["outline"], class_of, n_classes),
        pairs=_by_class(kinds, class_of, n_classes),
    )


def _by_class(table: NDArray[Any], class_of: I8 | None, n: int) -> NDArray[Any]:
    """Rows of the labels summed into rows of their classes."""
    if class_of is None:
        return table
    out = np.zeros((n, *table.shape[1:]), np.float64 if table.dtype.kind == "f" else np.int64)
    np.add.at(out, class_of, table)
    return out


def pair_values(
    pair: LabelPair, at: ContourOptions
) -> tuple[dict[str, F8], Mapping[str, NDArray[Any]]]:
    """Measure -> value of each label, NaN where undefined; and the integers of `contour_counts`."""
    convention(at.empty)
    values: dict[str, F8] = {}
    areas = overlap.shared(pair)
    has = areas[:, 1] > 0, areas[:, 2] > 0
    groups = frozenset(at.groups)

    def put(name: str, value: F8, present: Any = has, *, distance: bool = False) -> None:
        diagonal = pair.diagonal(at.spacing) if distance else None
        values[name] = settle(value, present[0], present[1], at.empty, diagonal)

    mask = overlap.iou(areas)
    put("iou", mask)
    shells = _shells(pair, at, put, mask) if "boundary-iou" in groups else []
    near, outline = _davis(pair, at, put) if "davis" in groups else _no_davis(pair.n)
    if groups & {"distance", "nsd", "bf", "fom"}:
        _rims(pair, at, put, groups)
    if groups & {"distance", "nsd"}:
        _corners(pair, at, put, groups)
    if "trimap" in groups:
        for width, counts in zip(
            at.trimap_widths, overlap.trimap_shared(pair, at.trimap_widths), strict=True
        ):
            put(f"trimap@{width:g}", overlap.iou(counts), (counts[:, 1] > 0, counts[:, 2] > 0))
    if "cldice" in groups:
        counts = overlap.skeleton_shared(pair)
        put("cldice", overlap.cl_dice_of(counts), (counts[:, 1] > 0, counts[:, 3] > 0))
    parts = {
        "areas": areas,
        "shells": np.array(shells, np.int64).reshape(len(shells), pair.n, 3).transpose(1, 0, 2),
        "near": near,
        "outline": outline,
    }
    return {name: values[name] for name in at.measures()}, parts


def _shells(pair: LabelPair, at: ContourOptions, put: Any, mask: F8) -> list[I8]:
    shells = [overlap.shell_shared(pair, size) for size in at.boundary_sizes]
    for size, counts in zip(at.boundary_sizes, shells, strict=True):
        put(f"biou@{size:g}", overlap.iou(counts))
        put(f"biou-min@{size:g}", np.minimum(mask, overlap.iou(counts)))
    return shells


def _no_davis(n: int) -> tuple[I8, I8]:
    return np.empty((n, 0, 2), np.int64), np.zeros((n, 2), np.int64)


def _davis(pair: LabelPair, at: ContourOptions, put: Any) -> tuple[I8, I8]:
    d = surface.distances(pair, "side")
    radii = [surface.davis_radius(pair.shape, bound) for bound in at.davis_bounds]
    found = surface.boundary_fs(d, radii)
    for i, bound in enumerate(at.davis_bounds):
        put(f"f@{bound:g}", found[:, i], d.present())
    near = np.stack(d.within(radii), axis=2).astype(np.int64)
    return near, np.stack(d.counts(), axis=1)


def _rims(pair: LabelPair, at: ContourOptions, put: Any, groups: Any) -> None:
    """Everything from the rims: with the spacing, and in pixels."""
    d = surface.distances(pair, "rim", at.spacing)
    if "distance" in groups:
        put("hd", surface.largest(d), distance=True)
        for definition in ("pooled", "directed"):
            name = f"hd{at.percent:g}-{definition}"
            put(name, surface.percentile(d, at.percent, definition), distance=True)
            put(f"assd-{definition}", surface.mean_distance(d, definition), distance=True)
    if "nsd" in groups:
        for form in ("counts", "mean"):
            found = surface.surface_dice(d, at.tolerances, form)
            for i, tolerance in enumerate(at.tolerances):
                put(f"nsd-{form}@{tolerance:g}", found[:, i])
    if groups & {"bf", "fom"} and at.spacing != (1.0, 1.0):
        d = surface.distances(pair, "rim")
    if "bf" in groups:
        theta = at.bf_theta if at.bf_theta >= 1 else at.bf_theta * pair.diagonal()
        put("bf", surface.boundary_fs(d, theta)[:, 0])
    if "fom" in groups:
        put("fom", surface.merit(d, at.pratt_alpha))


def _corners(pair: LabelPair, at: ContourOptions, put: Any, groups: Any) -> None:
    d = surface.distances(pair, "corner", at.spacing)
    if "distance" in groups:
        put(f"hd{at.percent:g}-area", surface.percentile(d, at.percent, "area"), distance=True)
    if "nsd" in groups:
        found = surface.surface_dice(d, at.tolerances, "area")
        for i, tolerance in enumerate(at.tolerances):
            put(f"nsd-area@{tolerance:g}", found[:, i])


__all__ = ["contour_counts", "pair_values"]
