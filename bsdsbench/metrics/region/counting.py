"""Region measures of one image, from the overlaps of a segmentation with its annotations.

Each distinct label is one region, connected or not. Label 0 is an ordinary label except in the
adapted Rand error (`_adapted_rand`). In the formulas, n is the number of pixels that a region of
the segmentation shares with an annotated region, a and b are the areas of these two regions, and N
is the number of pixels of the image. Unless stated otherwise, a measure is a mean over annotators.

Measures of the official program (Arbelaez et al., PAMI 2011), and others of the same regions:

covered_gt : sum of b times the best IoU, n / (a + b - n), over the regions of all annotators.
    Divided by the sum of b, this is the covering, in [0, 1]. PAMI 2011, eq. 8
covered_pred : sum of a times the best IoU with a region of any annotator
pri : Rand index, the fraction of pixel pairs that are in the same region in both maps, or in
    different regions in both: 1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single
    pixel. PAMI 2011, eq. 7
voi : variation of information in bits, H(seg) + H(gt) - 2 I(seg, gt). Meila, COLT 2003
voi_split, voi_merge : H(seg | gt) and H(gt | seg) in bits; they sum to voi
are_region, are_skimage, are_cremi : adapted Rand errors, see `_adapted_rand`

Measures of SEISM (Pont-Tuset and Marques, CVPR 2013 and PAMI 2016). Distances in pixels are summed
over annotators, and the `fop` values compare the segmentation with all annotators together:

hamming_gt, hamming_pred : directional Hamming distances in pixels, N - sum_j max_i n (grows with
    over-segmentation) and N - sum_i max_j n (grows with under-segmentation). Half their sum is van
    Dongen's distance. Huang and Dom, ICIP 1995; van Dongen, CWI report INS-R0012
pair_precision, pair_recall : number of pixel pairs that are in the same region in both maps,
    divided by the number in the same region of the segmentation (precision) or of the annotator's
    map (recall); 0/0 = 0. Martin, PhD thesis 2003
bce, gce, lce : bidirectional, global and local consistency error, in [0, 1].
    bce = (1/N) sum n max(1 - n/a, 1 - n/b).
    gce = (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), 0 if one map is a refinement of the other.
    lce = (1/N) sum n min(1 - n/a, 1 - n/b), 0 if one map locally refines the other everywhere.
    Martin et al., ICCV 2001; Martin 2003
nvoi : 1 - VOI / (2 log2 max(regions of seg, regions of gt)); 1 if both maps are a single region
bgm : bipartite graph matching distance in pixels: N minus the total overlap of the best one-to-one
    assignment of regions. Jiang et al., EURASIP JASP 2006
fop_pred, fop_gt : credits of the objects and parts in the segmentation and in all annotations, by
    `fop_sums` and `_classify` in `bsdsbench.kernels.regions.contingency`
fop_pred_candidates, fop_gt_candidates : number of candidates
fop_precision, fop_recall : fop_pred and fop_gt divided by the number of candidates
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, check_array, check_list
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, to_unit_range
from bsdsbench.kernels.arrays import Int32s
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.kernels.regions import ucm
from bsdsbench.metrics.region.overlap_table import Annotators, OverlapTable, select_candidates
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.ratios import ratio
from bsdsbench.transforms.maps import prepare

ADAPTED_RAND_RULES = ("region", "skimage", "cremi")


def region_counts(
    pred: Prediction | ArrayLike | Sequence[ArrayLike],
    gts: GroundTruth | Sequence[ArrayLike],
    protocol: Protocol | str | None = None,
) -> Counts:
    """Compute the region measures of one image against all its annotators, at every threshold.

    Parameters
    ----------
    pred : Prediction or array_like or sequence of array_like
        A Prediction; an integer (H, W) label map, or a sequence of n of them (thresholds 1 .. n);
        a float (2H+1, 2W+1) ultrametric contour map; or a soft (H, W) boundary map, which is
        partitioned into regions if `protocol.regions_from_soft` is True.
    gts : GroundTruth or sequence of array_like
        A GroundTruth with segmentations, a sequence of (H, W) label maps, or one of them.
    protocol : Protocol, str or None
        Supplies the thresholds and `regions_from_soft`; None means the bsds500 preset.

    Returns
    -------
    Counts
        The measures defined in the docstring of `bsdsbench.metrics.region.counting`, such as
        `pri`: float64 (T,), or int64 (T,) for numbers of pixels or candidates. Also these arrays:

        - `thresholds` float64 (T,); `n_pixels` int64 ()
        - `total_gt`, `total_pred` int64 (T,): the total area of annotated and predicted regions
        - `best_covered_gt` float64 (): `covered_gt` with the best threshold of each gt region

    Raises
    ------
    DataError
        If there is no segmentation in `pred` or `gts`, the image has no pixels, or the prediction
        is a soft map other than all zeros and `regions_from_soft` is False.
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> halves = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    >>> bb.region_counts([halves], [halves]).pri.tolist()
    [1.0]
    """
    proto = Protocol.load(protocol)
    given: Any = gts.segmentations if isinstance(gts, GroundTruth) else gts
    given = [given] if getattr(given, "ndim", 0) == 2 else given  # a single annotator
    annotators = Annotators.of(check_list(given, "ground truth", "label maps or a GroundTruth"))
    if not isinstance(pred, Prediction):
        array = check_array(pred, "prediction")
        if array.dtype.kind in "iub":  # one label map (H, W), or several (n, H, W)
            pred = Prediction("prediction", segs=tuple(array) if array.ndim == 3 else (array,))
        elif array.shape == tuple(2 * n + 1 for n in annotators.shape):  # contours between pixels
            pred = Prediction("prediction", ucm2=array)
        else:
            pred = Prediction("prediction", soft=array)
    thresholds = proto.threshold_array()
    if pred.kind == "segs":
        thresholds = np.arange(1.0, len(pred.segs) + 1)
    curves: dict[str, Any] = {}  # name of a measure -> list of its values at all thresholds
    measures: dict[str, Any] = {}  # name of a measure -> its value at the current threshold
    # Tables of the overlaps of predicted and annotated regions. There are two at each threshold, as
    # the official program and the program SEISM divide a contour map into regions differently
    last_official = last_seism = None  # the tables at the threshold before
    for tables in _tables_at_thresholds(pred, annotators, proto):
        # If no regions have merged since then, the table is the same object: the values still hold
        if tables.official is not last_official:
            measures |= _measure_official(tables.official)
        if tables.seism is not last_seism:
            measures |= _measure_seism(tables.seism)
        last_official, last_seism = tables.official, tables.seism
        for name, value in measures.items():
            curves.setdefault(name, []).append(value)
    # "best_gt" (G,) is the best IoU of each annotated region at a threshold: take the best of all
    best_iou = np.maximum.reduce(curves.pop("best_gt"))
    n_annotators, n_pixels = annotators.labels.shape  # the region of each pixel in each flat map
    curves["total_gt"] = np.full(thresholds.size, n_pixels * n_annotators)
    curves["total_pred"] = np.full(thresholds.size, n_pixels)
    covered = (best_iou * annotators.col_area).sum()
    return Counts(thresholds=thresholds, n_pixels=n_pixels, best_covered_gt=covered, **curves)


class _TablePair(NamedTuple):
    """Overlaps of predicted and annotated regions at one threshold, for two region definitions."""

    official: OverlapTable  # its rows are regions as the official program defines them
    seism: OverlapTable  # its rows are regions as the program SEISM defines them


def _tables_at_thresholds(
    pred: Prediction, gts: Annotators, protocol: Protocol
) -> Iterator[_TablePair]:
    """Yield the overlaps of predicted and annotated regions at each threshold, in ascending order.

    `pred` is one of three kinds of prediction. Given label maps ("segs") count as one threshold
    each. An ultrametric contour map ("ucm2") or a soft boundary map is partitioned into regions at
    each threshold of the protocol. Raises DataError for a soft map that is not all zeros if
    `protocol.regions_from_soft` is False.

    There are two tables at each threshold. Only the regions of a "ucm2" differ between the official
    program and SEISM, the program of Pont-Tuset and Marques; otherwise both are the same table.
    """
    if pred.kind == "ucm2":
        yield from _tables_of_ucm(pred.ucm2, gts, protocol.threshold_array())
        return
    maps: Iterable[Map]
    if pred.kind == "segs":
        maps = pred.segs
    else:
        soft = pred.soft
        # If the map has the double size of a contour map, the error message suggests "ucm2"
        same_shape(soft.shape, gts.shape, pred.where, contours=True)
        if soft.any() and not protocol.regions_from_soft:
            raise DataError(
                f"{pred.where}: a soft boundary map, expected ucm2, segs or a label map",
                fix=(
                    Setting("pred_kind", "labels", "for label maps in pictures and arrays"),
                    Setting("regions_from_soft", True, "closes a soft map into regions"),
                ),
            )
        soft = prepare(soft, protocol)  # inversion and NMS, if the protocol asks for them
        maps = (_close_regions(soft, threshold) for threshold in protocol.thresholds)
    for labels in maps:
        table = OverlapTable.of_map(labels, gts)
        yield _TablePair(official=table, seism=table)


def _close_regions(soft: Map, threshold: float) -> Int32s:
    """Partition a soft boundary map (H, W) into regions, labelled from 1; returns int32 (H, W).

    Regions are the 4-connected components of the pixels below the threshold, which is in [0, 1].
    Every other pixel is assigned to the nearest region. If there is none, the image is one region.
    """
    from scipy import ndimage

    inside = to_unit_range(soft) < threshold
    labels, n_regions = ndimage.label(inside)
    if n_regions == 0:
        return np.ones(soft.shape, np.int32)
    # (2, H, W): row and column of the nearest pixel below the threshold
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return labels[tuple(nearest)].astype(np.int32)


def _tables_of_levels(levels: Int32s, gts: Annotators, n_levels: int) -> Iterator[OverlapTable]:
    """Yield the overlap table of a region hierarchy at each of `n_levels` ascending thresholds.

    The rows of a table are the regions at a threshold. Regions only merge as the threshold rises,
    so pixels are counted at the first threshold alone, and rows are added up for later tables. If
    no regions merge at a threshold, the previous table object is yielded again.

    levels (2, H, W): for each pixel, the index of the threshold from which on it is in one region
        with its right neighbour (levels[0]) and with its lower neighbour (levels[1]).
    """
    labels, n_regions = ucm.finest_regions(levels)  # at the first threshold
    # At threshold t, one[i] and other[i], finest regions, merge for start[t] <= i < start[t + 1]
    one, other, start = ucm.later_joins(levels, labels, n_levels)
    # A row is a set of finest regions, and is represented by one of them, the root of the set
    roots = np.arange(n_regions, dtype=np.int32)
    parent = roots.copy()  # disjoint-set forest, in which `ucm.join` unites sets in place
    table = OverlapTable.of(labels, n_regions, gts)
    yield table
    for level in range(1, n_levels):
        merging = slice(start[level], start[level + 1])
        new_row, new_roots = ucm.join(parent, roots, one[merging], other[merging])
        if new_roots.size < roots.size:  # fewer regions: add each row to the row new_row[row]
            table = table.merge_rows(new_row, new_roots.size)
        roots = new_roots
        yield table


def _tables_of_ucm(ucm2: Floats, gts: Annotators, thresholds: Floats) -> Iterator[_TablePair]:
    """Yield the overlap tables of an ultrametric contour map at each ascending threshold.

    A table has the common pixels of each region of the map (row) and each annotated region
    (column). There are two at each threshold: of the 8-connected regions of the official program,
    and of the 4-connected regions of the program SEISM. If these agree at all thresholds, both are
    the same object. `ucm2` (2H + 1, 2W + 1) has the pixels of the image at odd rows and columns,
    and contours between them. Raises ShapeError for another shape. Raises DataError if the value at
    an image pixel, normally 0, is above the first threshold: the pixel would be in no region at it.
    """
    array = np.ascontiguousarray(ucm2, np.float64)
    rows, cols = gts.shape
    same_shape(array.shape, (2 * rows + 1, 2 * cols + 1), "ucm2")
    if (array[1::2, 1::2] > thresholds[0]).any():
        raise DataError(
            "ucm2: strengths at pixel positions (odd rows and columns), expected 0 there"
        )
    # (2, H, W): index of the lowest threshold at which each pixel joins its right neighbour, and
    # its lower one. 8-connected regions also join through a corner where four pixels meet
    official_levels = ucm.join_levels(array, thresholds, corners=True)
    seism_levels = ucm.join_levels(array, thresholds, corners=False)
    # The index replaces the strength of contours from here on: only the order of joins matters
    official_tables = _tables_of_levels(official_levels, gts, thresholds.size)
    if np.array_equal(official_levels, seism_levels):
        yield from (_TablePair(table, table) for table in official_tables)
    else:
        seism_tables = _tables_of_levels(seism_levels, gts, thresholds.size)
        yield from map(_TablePair, official_tables, seism_tables)


def _measure_official(table: OverlapTable) -> dict[str, float | Floats]:
    """Compute covering, Rand index, VOI and adapted Rand errors of a segmentation.

    The rows of `table` are its regions, the columns the regions of all A annotators.

    Returns a dict of name -> value, such as "pri" -> 0.93, averaged over annotators except for
    these: `covered_gt` and `covered_pred`, the areas of the annotated (predicted) regions times
    their best IoUs, summed over regions; and `best_gt` (G,), the best IoU of each annotated region.
    """
    gts, n_pixels = table.gts, table.n_pixels
    # For each annotator (A,): `squares` holds sum x^2 and `bits` sum x log2 x, where x is the area
    # of every overlap, of every predicted region (one sum for all annotators), of every gt region
    overlaps, pred_areas, gt_areas = table.overlap_sums, table.area_sums, gts.area_sums
    # Ordered pairs of pixels that are in one region of one map, and in two regions of the other
    disagreeing = pred_areas.squares + gt_areas.squares - 2 * overlaps.squares
    # Conditional entropies in bits, H(seg | gt) and H(gt | seg)
    split = (gt_areas.bits - overlaps.bits) / n_pixels
    merge = (pred_areas.bits - overlaps.bits) / n_pixels
    measures: dict[str, float | Floats] = {
        "covered_gt": float((overlaps.best_gt * gts.col_area).sum()),
        "covered_pred": float(overlaps.covered_pred),  # in this direction, a kernel has summed it
        "best_gt": overlaps.best_gt,
        "pri": _mean(1.0 - ratio(disagreeing, n_pixels * (n_pixels - 1))),
        # VOI is split + merge up to rounding, which could also make a part negative
        "voi": _mean(_voi(table)),
        "voi_split": _mean(np.maximum(0.0, split)),
        "voi_merge": _mean(np.maximum(0.0, merge)),
    }
    for rule in ADAPTED_RAND_RULES:  # they differ in pairs of a pixel with itself, and in label 0
        errors = [_adapted_rand(table, k, rule) for k in range(len(gts.labels))]
        measures[f"are_{rule}"] = _mean(errors)
    return measures


def _measure_seism(table: OverlapTable) -> dict[str, float]:
    """Compute the measures of SEISM, the program of Pont-Tuset and Marques, for one segmentation.

    The rows of `table` are its regions, the columns the regions of all A annotators.

    Returns name -> value, such as "fop_recall" -> 0.41. The numbers of pixels ("hamming_gt",
    "hamming_pred", "bgm") are summed over annotators. "fop" (objects and parts) compares the
    segmentation with all annotators together. The others are means over annotators.
    """
    gts, n_pixels = table.gts, table.n_pixels
    overlaps = table.overlap_sums  # sums for each annotator, (A,)
    all_pixels = n_pixels * len(gts.labels)
    # Pairs of pixels in one region of pred, of gt, and of both. `squares` is sum n^2 over regions
    # or overlaps of n pixels. These have n (n - 1) / 2 pairs, so sum n^2 - sum n, where sum n is
    # the number of pixels, is twice the number of pairs
    common_pairs = overlaps.squares - n_pixels
    pred_pairs = table.area_sums.squares - n_pixels
    gt_pairs = gts.area_sums.squares - n_pixels
    # Normalised VOI (variation of information). VOI is at most 2 log2(regions of the map that has
    # more). Two maps of a single region have VOI 0, and `ratio` makes 0/0 to 0, so they have nvoi 1
    n_regions = np.maximum(np.diff(gts.col_start), table.row_area.size)  # of both maps, (A,)
    largest_voi = 2 * np.array([math.log2(n) for n in n_regions.tolist()])
    nvoi = 1.0 - ratio(_voi(table), largest_voi)
    # Objects and parts: a region earns 1 if it is an object (nearly equal to a region of the other
    # map), and less if it is a part of one, or is covered by several. Only candidates earn: the
    # largest regions of a map, which cover 0.99 of it. Every map has at least one
    area, candidate = table.row_area, select_candidates(table.row_area)
    n_pred, n_gt = int(candidate.sum()), int(gts.candidate.sum())
    credit = kernel.fop_sums(
        table.cells, area, gts.col_area, candidate, gts.candidate, len(gts.labels)
    )
    return {
        # Hamming distances: the pixels of each annotated region outside its largest overlap with a
        # predicted region; and the reverse
        "hamming_gt": all_pixels - int(overlaps.largest_of_cols.sum()),
        "hamming_pred": all_pixels - int(overlaps.largest_of_rows.sum()),
        "pair_precision": _mean(ratio(common_pairs, pred_pairs)),
        "pair_recall": _mean(ratio(common_pairs, gt_pairs)),
        # Consistency errors. A pixel has two errors: the share of its predicted region that lies
        # outside its annotated region, and the reverse. Bidirectional: the larger error of each
        # pixel. Global: the same one for all pixels, with the smaller sum. Local: the smaller one
        "bce": _mean(overlaps.larger_error / n_pixels),
        "gce": _mean(np.minimum(overlaps.pred_error, overlaps.gt_error) / n_pixels),
        "lce": _mean(overlaps.smaller_error / n_pixels),
        "nvoi": _mean(nvoi),
        # Bipartite graph matching: pixels outside the best one-to-one assignment of regions
        "bgm": all_pixels - int(kernel.largest_total(table.cells, gts.col_start)),
        "fop_pred": credit.pred,
        "fop_pred_candidates": n_pred,
        "fop_gt": credit.gt,
        "fop_gt_candidates": n_gt,
        "fop_precision": credit.pred / n_pred,
        "fop_recall": credit.gt / n_gt,
    }


def _voi(table: OverlapTable) -> Floats:
    """Compute the variation of information with each annotator in bits, float64 (A,).

    It is (sum a log2 a + sum b log2 b - 2 sum n log2 n) / N for the areas a of predicted regions, b
    of annotated regions, n of their overlaps, and N pixels. Rounding could make it negative.
    """
    pred_bits, gt_bits = table.area_sums.bits, table.gts.area_sums.bits
    bits = pred_bits + gt_bits - 2.0 * table.overlap_sums.bits
    return np.asarray(np.maximum(0.0, bits / table.n_pixels))


def _mean(values: Floats | Sequence[float]) -> float:
    """Return the mean of values, independent of their order (`fsum` rounds the sum only once)."""
    return math.fsum(values) / len(values)


def _adapted_rand(table: OverlapTable, annotator: int, rule: str) -> float:
    """Compute the adapted Rand error against one annotator: 1 - F of pixel pairs, in [0, 1].

    A map has a pair if both its pixels are in one region. The error is 1 - 2 B / (P + G), where P
    is the number of pairs of the segmentation, G of the annotator's map, and B of both maps; or 0
    if P and G are 0. `annotator` is an index. `rule` defines the meaning of label 0, and the pairs:

    - "region": 0 is an ordinary region in both maps, and a pixel is not paired with itself
      (scikit-image with ignore_labels=())
    - "skimage": as "region", but pixels with gt label 0 are ignored (scikit-image's default)
    - "cremi": pixels with gt label 0 are ignored, and a pixel is also paired with itself. Each
      pixel with 0 in the segmentation is a region of its own (programs CREMI, SNEMI3D and gala)

    Source: Arganda-Carreras et al., Frontiers in Neuroanatomy 2015.
    """
    zero_col = table.gts.zero_cols[annotator]  # of the annotated region with label 0; -1: none
    splits_zero = rule == "cremi" and table.zero_row >= 0
    # Ordered pairs of pixels in one region, also with itself: n^2 in a region of n pixels
    both_pairs: float  # in one region of both maps
    pred_pairs: float
    if rule == "region" or (zero_col < 0 and not splits_zero):  # label 0 needs no treatment
        both_pairs = int(table.overlap_sums.squares[annotator])
        pred_pairs = int(table.area_sums.squares)
        gt_pairs = int(table.gts.area_sums.squares[annotator])
        n_pixels = table.n_pixels
    else:
        # An overlap has a row (region of the segmentation), a column (region of an annotator) and a
        # number of pixels. In the sparse table, row r has the overlaps indptr[r] : indptr[r + 1]
        indptr, cols, counts = table.cells
        first, end = table.gts.col_start[annotator : annotator + 2]  # the annotator's columns
        is_counted = (cols >= first) & (cols < end) & (cols != zero_col)
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))[is_counted]
        cols, counts = cols[is_counted], counts[is_counted]
        # If each pixel of the row with label 0 is a region of its own, its only pair, with itself,
        # counts just 1/N for N pixels of the image, as in CREMI's program
        is_split = splits_zero & (rows == table.zero_row)
        split_pairs = int(counts[is_split].sum()) / table.n_pixels
        unsplit = counts[~is_split]
        pred_area = np.bincount(rows[~is_split], unsplit).astype(np.int64)
        gt_area = np.bincount(cols - first, counts).astype(np.int64)
        both_pairs = int(unsplit @ unsplit) + split_pairs
        pred_pairs = int(pred_area @ pred_area) + split_pairs
        gt_pairs = int(gt_area @ gt_area)
        n_pixels = int(counts.sum())  # without ignored ones
    with_itself = 0 if rule == "cremi" else n_pixels  # pairs to remove
    mean_pairs = 0.5 * (gt_pairs - with_itself) + 0.5 * (pred_pairs - with_itself)
    return 1.0 - (both_pairs - with_itself) / mean_pairs if mean_pairs else 0.0
