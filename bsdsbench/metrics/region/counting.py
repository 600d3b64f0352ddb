"""One image's segmentations against its annotators -> counts. Never touches a disk.

For an ultrametric contour map the contingency table is made once, at the finest threshold, and
merged up the hierarchy; thresholds at which no region merges cost nothing. Official measures
(covering, PRI, VOI) see the 8-connected regions of ucm2 <= t, SEISM's measures pixels that are
4-connected across the contour grid; on a well-formed ucm2 the two are the same regions and are
computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import given_array, given_list
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.kernels import ucm
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.maps import as_float32, prepare, unit
from bsdsbench.metrics.region.contingency_table import Annotators, Table, as_label_map, check_shape
from bsdsbench.metrics.region.measures import fop_sums, matched_area, measure
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts

_PARTS = ("voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi")
_OFFICIAL = ("covered_gt", "covered_pred", "pri", "voi", *_PARTS)
_HUMAN_MEANS = frozenset(
    ["n_pixels", "pri", "voi", "bce", "gce", "lce", "nvoi", *_PARTS]
    + [f"{kind}_{name}" for kind in ("fop", "pair") for name in ("precision", "recall")]
)
_SEISM = (
    *("hamming_gt", "hamming_pred", "pair_precision", "pair_recall"),
    *("bce", "gce", "lce", "nvoi"),
)


def region_counts(
    pred: Prediction | ArrayLike | Sequence[ArrayLike],
    gts: GroundTruth | Sequence[ArrayLike],
    protocol: Protocol | str | None = None,
) -> Counts:
    """Count one image's regions against all its annotators, at every threshold.

    Parameters
    ----------
    pred : Prediction or array_like or sequence of array_like
        A Prediction; or an integer (H, W) label map, or a sequence of them (thresholds 1 .. n); or
        a float (2H+1, 2W+1) ultrametric contour map; or a soft (H, W) boundary map, closed into
        regions if `protocol.regions_from_soft` is on.
    gts : GroundTruth or sequence of array_like
        A GroundTruth with segmentations, or a sequence of (H, W) label maps.
    protocol : Protocol or None
        Thresholds and `regions_from_soft`; default the bsds500 preset.

    Returns
    -------
    Counts
        Sums, and means over annotators, f8 (T,) if nothing else is said:
        `thresholds`; `n_pixels` i8 (); `covered_gt`, `covered_pred`, covered area of all annotated
        and of all predicted regions, and `total_gt`, `total_pred` i8, their area; `best_covered_gt`
        f8 (), with every region's best over the thresholds; `pri`, mean Rand index; `voi`, bits,
        and its parts `voi_split`, `voi_merge`; `fop_pred`, `fop_gt` and `fop_pred_candidates`,
        `fop_gt_candidates` i8, objects and parts, with `fop_precision`, `fop_recall`;
        `pair_precision`, `pair_recall`; `hamming_gt`, `hamming_pred`, `bgm` i8, in pixels;
        `bce`, `gce`, `lce`, consistency errors; `nvoi`; `are_region`, `are_skimage`, `are_cremi`,
        adapted Rand errors by what the label 0 is.

    Raises
    ------
    DataError
        For no segmentation on either side, an image without pixels or a soft map without
        `regions_from_soft`.
    ShapeError
        Where shapes differ.

    References
    ----------
    Source: official evaluation_reg_image.m; SEISM (see bsdsbench.metrics.region.measures).

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> halves = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    >>> bb.region_counts([halves], [halves]).pri.tolist()
    [1.0]
    """
    proto = Protocol.of(protocol)
    annotators = Annotators.of(_segmentations(gts))
    found = _as_prediction(pred, annotators.shape)
    if found.ucm2 is not None:
        return _ucm_counts(found.ucm2, annotators, proto.threshold_array())
    if found.segs:
        thresholds = np.arange(1, len(found.segs) + 1, dtype=np.float64)
        return _collect(map_tables(found.segs, annotators), annotators, thresholds)
    if found.soft is None:
        raise DataError(f"{_name(found)}: no segmentation, expected one or more")
    if found.soft.any() and not proto.regions_from_soft:
        raise DataError(
            f"{_name(found)}: a soft boundary map, expected ucm2, segs or a label map; "
            "label maps in pictures and arrays need pred_kind='labels' (--pred-kind labels); "
            "regions_from_soft = true in the protocol closes a soft map into regions"
        )
    soft = prepare(found.soft, proto)
    closed = (close_regions(soft, t) for t in proto.thresholds)
    return _collect(map_tables(closed, annotators), annotators, proto.threshold_array())


def human_region_counts(gt: GroundTruth | Sequence[ArrayLike]) -> Counts:
    """Each annotator's segmentation against the other annotators', at the one threshold 1.

    Counts and areas are summed over the left-out annotators; ratios (pri, voi, precision, recall
    and consistency errors) are means over them.
    Raises DataError for fewer than two annotators.
    """
    maps = _segmentations(gt)
    if len(maps) < 2:
        raise DataError(f"human score: {len(maps)} annotator, expected two or more")
    rows = []
    for k, left_out in enumerate(maps):
        others = [m for i, m in enumerate(maps) if i != k]
        rows.append(region_counts(as_label_map(left_out), others))
    values: dict[str, Any] = {name: np.sum([r[name] for r in rows], axis=0) for name in rows[0]}
    means = {name: values[name] / len(rows) for name in _HUMAN_MEANS if name != "n_pixels"}
    return Counts(**{**values, **means, "thresholds": np.ones(1), "n_pixels": rows[0].n_pixels})


def close_regions(soft: NDArray[Any], threshold: float) -> NDArray[np.int32]:
    """A soft boundary map closed into regions at one threshold: a label map (H, W) int32, from 1.

    Regions are the 4-connected components of pixels below the threshold (uint8 and uint16 maps are
    taken as value/255 and value/65535); each boundary pixel goes to the region of the nearest pixel
    below. One region if there is no such pixel. Not thinned, not nested in the threshold.
    """
    from scipy import ndimage

    inside = unit(soft) < threshold
    labels, count = ndimage.label(inside)
    if count == 0 or inside.all():
        return np.ones(soft.shape, np.int32)
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return labels[tuple(nearest)].astype(np.int32)


def map_tables(maps: Any, gts: Annotators) -> Iterator[Table]:
    """The table of each label map (H, W). Raises DataError or ShapeError."""
    for labels in maps:
        yield Table.of_map(labels, gts)


def ucm_tables(levels: NDArray[np.int32], gts: Annotators, n_levels: int) -> Iterator[Table]:
    """The table at each threshold of a hierarchy; the same object while no region merges.

    levels: what `bsdsbench.kernels.ucm.join_levels` gives.
    """
    labels, count = ucm.finest_regions(levels)
    a, b, start = ucm.later_joins(levels, labels, n_levels)
    roots = np.arange(count, dtype=np.int32)
    parent = roots.copy()
    table = Table.of(labels, count, gts)
    yield table
    for level in range(1, n_levels):
        here = slice(start[level], start[level + 1])
        new_row, new_roots = ucm.join(parent, roots, a[here], b[here])
        if new_roots.size < roots.size:
            table = table.merged(new_row, new_roots.size)
        roots = new_roots
        yield table


def _ucm_counts(
    ucm2: NDArray[np.float64], gts: Annotators, thresholds: NDArray[np.float64]
) -> Counts:
    array = np.ascontiguousarray(ucm2, np.float64)
    _check_ucm2(array, gts.shape, thresholds)
    official = ucm.join_levels(array, thresholds, True)
    seism = ucm.join_levels(array, thresholds, False)
    tables = ucm_tables(official, gts, thresholds.size)
    if np.array_equal(official, seism):
        return _collect(tables, gts, thresholds)
    return _collect(tables, gts, thresholds, ucm_tables(seism, gts, thresholds.size))


def _check_ucm2(
    ucm2: NDArray[np.float64], shape: tuple[int, int], thresholds: NDArray[np.float64]
) -> None:
    expected = 2 * shape[0] + 1, 2 * shape[1] + 1
    if ucm2.shape != expected:
        raise ShapeError(
            f"ucm2: {'x'.join(map(str, ucm2.shape))}, expected {expected[0]}x{expected[1]} "
            f"for a {shape[0]}x{shape[1]} image"
        )
    if np.isnan(ucm2).any():
        raise DataError("ucm2: holds NaN, expected strengths in [0, 1]")
    if (ucm2[1::2, 1::2] > thresholds[0]).any():
        raise DataError(
            "ucm2: strengths at pixel positions (odd rows and columns), expected 0 there"
        )


def _collect(
    tables: Iterator[Table],
    gts: Annotators,
    thresholds: NDArray[np.float64],
    seism_tables: Iterator[Table] | None = None,
) -> Counts:
    """Measure every table; a table that is the same object as the one before is not measured twice.

    Where `seism_tables` is None the official tables serve all measures.
    """
    best = np.zeros(gts.col_area.size)
    rows: list[dict[str, Any]] = []
    official = seism = None
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    others = iter(seism_tables) if seism_tables is not None else None
    for table in tables:
        other = next(others) if others is not None else table
        if table is not official or other is not seism:
            found = measure(table)
            np.maximum(best, found.best_gt, out=best)
            first = {name: getattr(found, name) for name in _OFFICIAL}
            second = _seism_row(other, measure(other) if other is not table else found)
            official, seism = table, other
        rows.append({**first, **second})
    n_px = gts.labels.shape[1]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return Counts(
        thresholds=thresholds,
        n_pixels=np.array(n_px),
        total_gt=np.full(len(rows), n_px * gts.count),
        total_pred=np.full(len(rows), n_px),
        best_covered_gt=np.array((best * gts.col_area).sum()),
        **columns,
    )


def _seism_row(table: Table, found: Any) -> dict[str, Any]:
    fop = fop_sums(table)
    return {
        **{name: getattr(found, name) for name in _SEISM},
        "bgm": table.n_pixels * table.gts.count - matched_area(table),
        "fop_pred": fop.pred,
        "fop_pred_candidates": fop.candidates_pred,
        "fop_gt": fop.gt,
        "fop_gt_candidates": fop.candidates_gt,
        "fop_precision": fop.pred / fop.candidates_pred,
        "fop_recall": fop.gt / fop.candidates_gt,
    }


def _as_prediction(pred: Any, shape: tuple[int, int]) -> Prediction:
    if isinstance(pred, Prediction):
        found = pred
    elif isinstance(pred, (list, tuple)) and pred and isinstance(pred[0], np.ndarray):
        found = Prediction("prediction", segs=tuple(as_label_map(s) for s in pred))
    else:
        array = given_array(pred, "prediction")
        if array.ndim == 3 and array.dtype.kind in "iu":
            found = Prediction("prediction", segs=tuple(array))
        elif array.dtype.kind in "iub":
            found = Prediction("prediction", segs=(as_label_map(array),))
        elif array.shape == (2 * shape[0] + 1, 2 * shape[1] + 1):
            found = Prediction("prediction", ucm2=array)
        else:
            found = Prediction("prediction", soft=array)
    if found.soft is not None:
        as_float32(found.soft)  # for its checks
        check_shape(found.soft.shape, shape, _name(found))
    return found


def _segmentations(gts: GroundTruth | Sequence[ArrayLike]) -> Sequence[ArrayLike]:
    if not isinstance(gts, GroundTruth):
        return given_list(gts, "ground truth", "label maps or a GroundTruth")
    if not gts.segmentations:
        raise DataError(
            f"{gts.path or gts.image_id}: ground truth without segmentations, expected label maps "
            "for region measures"
        )
    return gts.segmentations


def _name(pred: Prediction) -> str:
    return str(pred.path or pred.image_id)
