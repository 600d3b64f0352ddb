"""Measures between a segmentation and the annotators of an image.

n(i,j) is the number of pixels in region i of the segmentation and region j of the annotator, a_i
and b_j are the areas of the regions, and N is the number of pixels. Every distinct label is one
region, connected or not. Label 0 is special only in the adapted Rand error, where programs treat it
differently (`RULES`). All measures are computed from `OverlapTable`, which holds n(i,j).

Sources: Arbelaez et al., PAMI 2011, and the official program (covering, PRI, VOI); Pont-Tuset and
Marques, CVPR 2013 and PAMI 2016, and SEISM (the other measures).

For an ultrametric contour map the table is computed once, at the finest threshold, and its rows are
merged up the hierarchy. The official measures use the 8-connected regions of ucm2 <= t, SEISM's
measures the pixels that are 4-connected across the contour grid. On a well-formed ucm2 both are the
same regions and are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, given_array, given_list
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, unit
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.kernels.regions import ucm
from bsdsbench.metrics.region.overlaps import Annotators, OverlapTable, select_candidates
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.ratios import ratio
from bsdsbench.transforms.maps import prepare

RULES = ("region", "skimage", "cremi")


def region_counts(
    pred: Prediction | ArrayLike | Sequence[ArrayLike],
    gts: GroundTruth | Sequence[ArrayLike],
    protocol: Protocol | str | None = None,
) -> Counts:
    """Compare the regions of one image with those of all its annotators, at every threshold.

    Parameters
    ----------
    pred : Prediction or array_like or sequence of array_like
        A Prediction; or an integer (H, W) label map, or a sequence of them (thresholds 1 .. n); or
        a float (2H+1, 2W+1) ultrametric contour map; or a soft (H, W) boundary map, closed into
        regions if `protocol.regions_from_soft` is on.
    gts : GroundTruth or sequence of array_like
        A GroundTruth with segmentations, or a sequence of (H, W) label maps.
    protocol : Protocol, str or None
        Thresholds and `regions_from_soft`; default the bsds500 preset.

    Returns
    -------
    Counts
        Sums and means over annotators; arrays are float64 (T,) unless another type is named.
        `thresholds`; `n_pixels` int64 (). `covered_gt`, `covered_pred`: covered area of all
        annotated and of all predicted regions; `total_gt`, `total_pred` int64: their area;
        `best_covered_gt` float64 (): covered area if each region takes its best threshold. `pri`:
        mean Rand index; `voi`, `voi_split`, `voi_merge`: variation of information in bits, and its
        two parts. `fop_pred`, `fop_gt`, `fop_pred_candidates` and `fop_gt_candidates` int64,
        `fop_precision`, `fop_recall`: objects and parts. `pair_precision`, `pair_recall`: pairs of
        pixels. `hamming_gt`, `hamming_pred`, `bgm` int64: distances in pixels. `bce`, `gce`, `lce`:
        consistency errors. `nvoi`: normalised variation of information. `are_region`,
        `are_skimage`, `are_cremi`: adapted Rand errors.

    Raises
    ------
    DataError, ShapeError
        If either side has no segmentation, the image has no pixels, or the prediction is a soft map
        and `regions_from_soft` is off; if the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> halves = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    >>> bb.region_counts([halves], [halves]).pri.tolist()
    [1.0]
    """
    proto = Protocol.load(protocol)
    given = gts.segmentations if isinstance(gts, GroundTruth) else gts
    annotators = Annotators.of(given_list(given, "ground truth", "label maps or a GroundTruth"))
    if not isinstance(pred, Prediction):
        pred = _to_prediction(pred, annotators.shape)
    thresholds = proto.threshold_array()
    if pred.kind == "segs":
        thresholds = np.arange(1.0, len(pred.segs) + 1)
    columns = _measure_tables(_tables_at_thresholds(pred, annotators, proto))
    best_iou = np.maximum.reduce(columns.pop("best_gt"))  # of each annotated region
    n_annotators, n_pixels = annotators.labels.shape
    columns["total_gt"] = np.full(thresholds.size, n_pixels * n_annotators)
    columns["total_pred"] = np.full(thresholds.size, n_pixels)
    covered = (best_iou * annotators.col_area).sum()
    return Counts(thresholds=thresholds, n_pixels=n_pixels, best_covered_gt=covered, **columns)


def _to_prediction(pred: object, shape: tuple[int, ...]) -> Prediction:
    """Convert an array by its type and shape: label map(s), ultrametric contour map or soft map."""
    array = given_array(pred, "prediction")
    if array.dtype.kind in "iub":
        return Prediction("prediction", segs=tuple(array) if array.ndim == 3 else (array,))
    if array.shape == tuple(2 * n + 1 for n in shape):
        return Prediction("prediction", ucm2=array)
    return Prediction("prediction", soft=array)


class _TablePair(NamedTuple):
    """The tables at one threshold: of the official program's regions, and of SEISM's regions."""

    official: OverlapTable
    seism: OverlapTable


def _tables_at_thresholds(
    pred: Prediction, gts: Annotators, protocol: Protocol
) -> Iterator[_TablePair]:
    """Return an iterator over the tables of a prediction at each threshold.

    - an ultrametric contour map is cut at the protocol's thresholds
    - each segmentation is a threshold of its own
    - a soft map is closed into regions at the protocol's thresholds. Raises DataError if
      `regions_from_soft` is off, unless the map is 0 everywhere
    """
    if pred.kind == "ucm2":
        return _tables_of_ucm(pred.ucm2, gts, protocol.threshold_array())
    if pred.kind == "segs":
        return _tables_of_maps(pred.segs, gts)
    soft = pred.soft
    same_shape(soft.shape, gts.shape, pred.where)
    if soft.any() and not protocol.regions_from_soft:
        raise DataError(
            f"{pred.where}: a soft boundary map, expected ucm2, segs or a label map",
            fix=(
                Setting("pred_kind", "labels", "for label maps in pictures and arrays"),
                Setting("regions_from_soft", True, "closes a soft map into regions"),
            ),
        )
    soft = prepare(soft, protocol)
    return _tables_of_maps((_close_regions(soft, t) for t in protocol.thresholds), gts)


def _measure_tables(tables: Iterator[_TablePair]) -> dict[str, Any]:
    """Compute all measures of tables: name -> list. The same table again keeps its measures."""
    measures: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    previous: tuple[OverlapTable | None, OverlapTable | None] = None, None
    for pair in tables:
        if pair.official is not previous[0]:
            measures |= official(pair.official)
        if pair.seism is not previous[1]:
            measures |= seism(pair.seism)
        previous = pair
        for name, value in measures.items():
            columns.setdefault(name, []).append(value)
    return columns


def _close_regions(soft: Map, threshold: float) -> I4:
    """Close a soft boundary map (H, W) into regions; the labels, int32 (H, W), start at 1.

    Regions are the 4-connected components of pixels below the threshold in [0, 1], or the whole
    image if there are none. Each boundary pixel joins the region of the nearest of these pixels.
    Regions of different thresholds need not be nested.
    """
    from scipy import ndimage

    inside = unit(soft) < threshold
    labels, n_regions = ndimage.label(inside)
    if n_regions == 0:
        return np.ones(soft.shape, np.int32)
    # (2, H, W): row and column of the nearest pixel below the threshold
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return labels[tuple(nearest)].astype(np.int32)


def _tables_of_levels(levels: I4, gts: Annotators, n_levels: int) -> Iterator[OverlapTable]:
    """Yield the table at each threshold of a hierarchy; the same object while no region merges.

    `levels` (2, H, W): the thresholds at which pixels join their right and lower neighbours.
    """
    labels, n_regions = ucm.finest_regions(levels)
    a, b, start = ucm.later_joins(levels, labels, n_levels)  # pairs of finest regions by threshold
    roots = np.arange(n_regions, dtype=np.int32)
    parent = roots.copy()  # the disjoint-set forest that `ucm.join` changes
    table = OverlapTable.of(labels, n_regions, gts)
    yield table
    for level in range(1, n_levels):
        joins = slice(start[level], start[level + 1])
        new_row, new_roots = ucm.join(parent, roots, a[joins], b[joins])
        if new_roots.size < roots.size:
            table = table.merge_rows(new_row, new_roots.size)
        roots = new_roots
        yield table


def _tables_of_maps(maps: Iterable[ArrayLike], gts: Annotators) -> Iterator[_TablePair]:
    """Yield the table of each label map (H, W), the same one for both kinds of measures."""
    for labels in maps:
        table = OverlapTable.of_map(labels, gts)
        yield _TablePair(table, table)


def _tables_of_ucm(ucm2: F8, gts: Annotators, thresholds: F8) -> Iterator[_TablePair]:
    """Return an iterator over the tables of an ultrametric contour map at each threshold.

    `ucm2` is (2H + 1, 2W + 1) and `thresholds` (T,) ascend. Raises ShapeError if the shape differs
    from the ground truth's, DataError if pixels have strengths above the first threshold.
    """
    array = np.ascontiguousarray(ucm2, np.float64)
    rows, cols = gts.shape
    same_shape(array.shape, (2 * rows + 1, 2 * cols + 1), "ucm2")
    if (array[1::2, 1::2] > thresholds[0]).any():
        raise DataError(
            "ucm2: strengths at pixel positions (odd rows and columns), expected 0 there"
        )
    # Regions of the official program are 8-connected across the contour grid, SEISM's 4-connected
    levels, seism_levels = (ucm.join_levels(array, thresholds, corner) for corner in (True, False))
    tables = _tables_of_levels(levels, gts, thresholds.size)
    if np.array_equal(levels, seism_levels):
        return (_TablePair(table, table) for table in tables)
    seism_tables = _tables_of_levels(seism_levels, gts, thresholds.size)
    return map(_TablePair, tables, seism_tables)


def official(table: OverlapTable) -> dict[str, float | F8]:
    """Compute the official program's measures, and others from the same regions.

    Covered areas are sums over annotators, all other values are means. With N pixels, areas a_i of
    the segmentation's regions, b_j of an annotator's regions, and overlaps n(i,j):

    covered_gt, covered_pred : sum of b_j (a_i) times the best intersection over union, n(i,j) /
        (a_i + b_j - n(i,j)); divided by N it is the covering, in [0, 1]. PAMI 2011, eq. 8
    best_gt : float64 (G,), the best intersection over union of each annotated region
    pri : Rand index, the share of pixel pairs that both join or both separate:
        1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single pixel. PAMI 2011, eq. 7
    voi : variation of information in bits, H(seg) + H(gt) - 2 I(seg, gt), a metric, 0 is best.
        Meila, COLT 2003
    voi_split, voi_merge : H(seg | gt) and H(gt | seg) in bits; they sum to voi
    are_region, are_skimage, are_cremi : adapted Rand errors, see `_adapted_rand`
    """
    gts, n_px = table.gts, table.n_pixels
    sums, pairs = table.overlaps, _count_pixel_pairs(table)
    overlap_bits = sums.floats[:, 0]  # n log2 n
    row_bits, gt_bits = (areas.squares_and_bits[1] for areas in (table, gts))  # a log2 a
    disagreeing = pairs.pred + pairs.gt - 2 * pairs.both
    measures: dict[str, float | F8] = {
        "covered_gt": float((sums.best_gt * gts.col_area).sum()),
        "covered_pred": float(sums.covered_pred),
        "best_gt": sums.best_gt,
        "pri": _mean(1.0 - ratio(disagreeing, n_px * (n_px - 1) // 2)),
        "voi": _mean(_voi(table)),
        "voi_split": _mean(np.maximum(0.0, (gt_bits - overlap_bits) / n_px)),
        "voi_merge": _mean(np.maximum(0.0, (row_bits - overlap_bits) / n_px)),
    }
    for rule in RULES:
        errors = [_adapted_rand(table, k, rule) for k in range(len(gts.labels))]
        measures[f"are_{rule}"] = _mean(errors)
    return measures


def seism(table: OverlapTable) -> dict[str, float]:
    """Compute SEISM's measures from n(i,j), the areas a and b, and the number of pixels N.

    Distances in pixels and objects are sums over annotators, all other values are means.

    hamming_gt, hamming_pred : directional Hamming distances in pixels, 0 is best. N - sum_j max_i n
        counts the pixels of annotated regions outside the region they overlap most, and grows with
        over-segmentation; N - sum_i max_j n grows with under-segmentation. Half the sum of both is
        van Dongen's distance. Huang and Dom, ICIP 1995; van Dongen, CWI report INS-R0012, 2000
    pair_precision, pair_recall : pairs of pixels that share a region in both maps, divided by those
        that do in the segmentation and in the annotator's map; 0/0 = 0. Martin, PhD thesis 2003
    bce, gce, lce : bidirectional, global and local consistency error, in [0, 1], 0 is best.
        bce = (1/N) sum n max(1 - n/a, 1 - n/b).
        gce = (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), 0 if one map refines the other.
        lce = (1/N) sum n min(1 - n/a, 1 - n/b), 0 if at each place one map refines the other.
        Martin et al., ICCV 2001; Martin 2003
    nvoi : 1 - VOI / (2 log2 max(regions of seg, regions of gt)), 1 is best; 1 if both maps are one
        region. Published program of PAMI 2016
    bgm : bipartite graph matching distance in pixels, 0 is best: N minus the largest total
        intersection of a one-to-one assignment of regions. Jiang et al., EURASIP JASP 2006
    fop_pred, fop_gt : credit of the objects and parts in the segmentation and in all annotations,
        among the candidates of `select_candidates`. Of a pair of candidates with recall r = n/b and
        precision p = n/a, both are objects if r >= 0.9 and p >= 0.9; else the segmentation's region
        is a part if r >= 0.25 and p >= 0.9, the annotator's if r >= 0.9 and p >= 0.25. An object
        for one annotator remains one. Of any pair of regions, if p >= 0.9 and r < 0.9, r is added
        to the over-segmentation of the annotator's region; else if r >= 0.9 and p < 0.9, p is added
        to the under-segmentation of the segmentation's region. fop_pred = objects + 0.1 parts +
        under-segmentation of the other candidates / annotators. fop_gt = objects + 0.1 parts +
        over-segmentation of the other candidates
    fop_pred_candidates, fop_gt_candidates : number of candidates
    fop_precision, fop_recall : fop_pred and fop_gt divided by the candidates
    """
    gts, n_px, area = table.gts, table.n_pixels, table.row_area
    sums, pairs = table.overlaps, _count_pixel_pairs(table)
    all_px = n_px * len(gts.labels)
    most_bits = [math.log2(max(n, area.size)) for n in np.diff(gts.col_start).tolist()]
    candidate = select_candidates(area)
    fop_pred, fop_gt = kernel.fop_sums(
        table.cells, area, gts.col_area, candidate, gts.candidate, len(gts.labels)
    )
    n_pred, n_gt = int(candidate.sum()), int(gts.candidate.sum())
    # Columns of `kernel.OverlapSums.ints` and `floats`, (A,) each
    _, largest_of_cols, largest_of_rows = sums.ints.T
    _, larger_error, smaller_error, pred_error, gt_error = sums.floats.T
    return {
        "hamming_gt": all_px - int(largest_of_cols.sum()),
        "hamming_pred": all_px - int(largest_of_rows.sum()),
        "pair_precision": _mean(ratio(pairs.both, pairs.pred)),
        "pair_recall": _mean(ratio(pairs.both, pairs.gt)),
        "bce": _mean(larger_error / n_px),
        "gce": _mean(np.minimum(pred_error, gt_error) / n_px),
        "lce": _mean(smaller_error / n_px),
        "nvoi": _mean(1.0 - ratio(_voi(table), 2 * np.array(most_bits))),
        "bgm": all_px - int(kernel.largest_total(table.cells, gts.col_start)),
        "fop_pred": fop_pred,
        "fop_pred_candidates": n_pred,
        "fop_gt": fop_gt,
        "fop_gt_candidates": n_gt,
        "fop_precision": fop_pred / n_pred,
        "fop_recall": fop_gt / n_gt,
    }


class _PixelPairs(NamedTuple):
    """Pairs of pixels that share a region: in both maps (A,), in one segmentation, in gt (A,)."""

    both: Any
    pred: Any
    gt: Any


def _count_pixel_pairs(table: OverlapTable) -> _PixelPairs:
    """Count the pairs of pixels that share a region, for each of A annotators."""
    row_squares, gt_squares = (areas.squares_and_bits[0] for areas in (table, table.gts))
    squares = table.overlaps.ints[:, 0], row_squares, gt_squares
    # A region of n pixels has n (n - 1) / 2 pairs, and the areas sum to the number of pixels
    return _PixelPairs(*((square_sum - table.n_pixels) // 2 for square_sum in squares))


def _voi(table: OverlapTable) -> F8:
    """Compute the variation of information with each annotator in bits, float64 (A,)."""
    overlap_bits = table.overlaps.floats[:, 0]
    bits = table.squares_and_bits[1] + table.gts.squares_and_bits[1] - 2.0 * overlap_bits
    return np.asarray(np.maximum(0.0, bits / table.n_pixels))


def _mean(values: F8 | Sequence[float]) -> float:
    """Return the mean, by a correctly rounded sum, so that the order of annotators is no matter."""
    return math.fsum(values) / len(values)


def _adapted_rand(table: OverlapTable, annotator: int, rule: str) -> float:
    """Compute the adapted Rand error with one annotator: 1 - F of pixel pairs, in [0, 1].

    A pair counts if its pixels share a region; the error is 0 if neither map has a pair. By `rule`,

    - "region": 0 is a region like any other in both maps, and pixels form no pairs with themselves
      (scikit-image with ignore_labels=())
    - "skimage": as "region", but pixels with 0 in the truth are ignored (scikit-image's default)
    - "cremi": pixels with 0 in the truth are ignored, each pixel with 0 in the segmentation is a
      region of its own, which adds 1/N to the sums (N are all pixels), and pixels form pairs with
      themselves (CREMI, SNEMI3D, gala)

    Source: Arganda-Carreras et al., Frontiers in Neuroanatomy 2015.
    """
    # Sums of squared areas. Minus the number of pixels they are twice the number of pairs.
    both: float = int(table.overlaps.ints[annotator, 0])
    pred: float = int(table.squares_and_bits[0])
    gt = int(table.gts.squares_and_bits[0][annotator])
    zero, n_counted = table.gts.zero[annotator], table.n_pixels
    indptr, cols, counts = table.cells
    if rule != "region" and zero >= 0:  # remove the pixels with 0 in the truth
        cells = np.flatnonzero(cols == zero)
        n = counts[cells]
        rows = np.searchsorted(indptr, cells, side="right") - 1
        area = table.row_area[rows]
        rest = area - n
        n_ignored = int(table.gts.col_area[zero])
        both -= int(n @ n)
        gt -= n_ignored**2
        n_counted -= n_ignored
        pred -= int(area @ area - rest @ rest)
    if rule != "cremi":
        both, pred, gt = both - n_counted, pred - n_counted, gt - n_counted
    elif table.zero >= 0:  # split the segmentation's region 0 into its pixels
        row = slice(*indptr[table.zero : table.zero + 2])
        first, end = table.gts.col_start[annotator : annotator + 2]
        is_counted = (cols[row] >= first) & (cols[row] < end) & (cols[row] != zero)
        n = counts[row][is_counted]
        n_alone = int(n.sum())
        both = both - int(n @ n) + n_alone / table.n_pixels
        pred = pred - n_alone**2 + n_alone / table.n_pixels
    mean_square = 0.5 * gt + 0.5 * pred
    return 1.0 - both / mean_square if mean_square else 0.0
