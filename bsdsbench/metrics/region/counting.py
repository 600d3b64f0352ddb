"""Measures between a segmentation and the annotators of an image, from their table of overlaps.

n(i,j) is the number of pixels in region i of the segmentation and region j of the annotator, a_i
and b_j are the areas of the regions, and N is the number of pixels. Every distinct label is one
region, connected or not. Label 0 is special only in the adapted Rand error (`RULES`).

For an ultrametric contour map the table is computed once, at the finest threshold, and its rows are
merged up the hierarchy. The official measures use the 8-connected regions of ucm2 <= t, SEISM's
measures the pixels that are 4-connected across the contour grid; on a well-formed ucm2 these are
the same.

Sources: Arbelaez et al., PAMI 2011, and the official program (covering, PRI, VOI); Pont-Tuset and
Marques, CVPR 2013 and PAMI 2016, and SEISM (the other measures).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, Bool, given_array, given_list
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, unit
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions import contingency as kernel
from bsdsbench.kernels.regions import ucm
from bsdsbench.metrics.label_maps import as_label_map
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.ratios import ratio
from bsdsbench.transforms.maps import prepare

RULES = ("region", "skimage", "cremi")  # of the adapted Rand error
_AREA_SHARE = 0.99  # share of the image that the candidates for objects and parts cover


class RegionMap(NamedTuple):
    """A flat label map with regions numbered 0, 1, ... in raster order of their first pixels."""

    labels: I4  # (N,), the region of each pixel
    area: I8  # (regions,), pixels of each region
    zero: int  # the number of the region that had the label 0, or -1 if the map has no label 0


def number_regions(labels: Map) -> RegionMap:
    """Number the regions of an integer label map (H, W) in raster order of their first pixels."""
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    # The kernel has a table with an entry for each integer from low to high: if that would be
    # large, or labels exceed int32, the labels are replaced by their ranks
    if high - low > 4 * flat.size + 65536 or not -(2**31) <= low <= high < 2**31:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    span = high - low + 1
    number, area = np.empty(flat.size, np.int32), np.zeros(min(span, flat.size), np.int64)
    number_of_label = np.full(span, -1, np.int32)  # work space, -1: not seen yet
    flat = np.ascontiguousarray(flat, np.int32)
    n_regions = kernel.renumber(flat, low, number_of_label, number, area)
    first_zero = int((labels == 0).argmax())
    zero = int(number[first_zero]) if labels.flat[first_zero] == 0 else -1
    return RegionMap(number, area[:n_regions].copy(), zero)


class _AreaSums(NamedTuple):
    """Two sums over the regions of one map (numbers), or of each of A annotators (arrays (A,))."""

    squares: Any  # the sum of area^2, a whole number
    bits: Any  # the sum of area x log2(area)


@dataclass(frozen=True, eq=False)
class Annotators:
    """The label maps of the A annotators of one image.

    They have G regions in all, which are the columns of `OverlapTable`: first the regions of the
    first annotator, then of the second, and so on.
    """

    shape: tuple[int, ...]  # rows and columns of the image, which has N pixels
    labels: I4  # (A, N), the region of each pixel, numbered from 0 for each annotator
    col_start: I8  # (A + 1,): annotator k has the columns col_start[k] .. col_start[k + 1] - 1
    col_area: I8  # (G,), pixels of each column's region
    ann_of_col: I4  # (G,), the annotator of each column
    candidate: Bool  # (G,), regions that `_select_candidates` chose for objects and parts
    zero: tuple[int, ...]  # (A,), the column of each annotator's label 0, or -1

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Build from the label maps (H, W) of one annotator or more.

        Raises DataError if there is no map, or if an array is not a label map, and ShapeError if
        the shapes differ.
        """
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        regions = [number_regions(array) for array in arrays]
        n_regions = [m.area.size for m in regions]
        start = np.cumsum([0, *n_regions])
        zero_columns = []
        for first, region_map in zip(start[:-1].tolist(), regions, strict=True):
            zero_columns.append(first + region_map.zero if region_map.zero >= 0 else -1)
        return cls(
            shape=arrays[0].shape,
            labels=np.stack([m.labels for m in regions]),
            col_start=start,
            col_area=np.concatenate([m.area for m in regions]),
            ann_of_col=np.repeat(np.arange(len(regions), dtype=np.int32), n_regions),
            candidate=np.concatenate([_select_candidates(m.area) for m in regions]),
            zero=tuple(zero_columns),
        )

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums over the areas b_j of each annotator's regions, two arrays (A,)."""
        areas_of_annotators = np.split(self.col_area, self.col_start[1:-1])
        sums = [_AreaSums(*kernel.squares_and_bits(areas)) for areas in areas_of_annotators]
        squares, bits = [one.squares for one in sums], [one.bits for one in sums]
        return _AreaSums(np.array(squares, np.int64), np.array(bits))


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """The table of overlaps n(i,j): pixels in region i of a segmentation and region j of `gts`."""

    gts: Annotators
    cells: kernel.Cells  # the n(i,j) above 0, as a sparse matrix in CSR form; no row is empty
    zero: int = -1  # the row of the segmentation's label 0, or -1; hierarchies have no label 0

    @classmethod
    def of(cls, labels: I4, n_regions: int, gts: Annotators, zero: int = -1) -> OverlapTable:
        """Build from `labels` (N,), the region of each pixel, numbered 0 .. n_regions - 1."""
        runs = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        return cls(gts, kernel.tabulate(*runs, n_regions, gts.col_area.size), zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Build from a label map (H, W).

        Raises DataError if `labels` is not a label map, ShapeError if its shape is not that of gts.
        """
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        regions = number_regions(array)
        return cls.of(regions.labels, regions.area.size, gts, regions.zero)

    def merge_rows(self, new_row: I4, n_rows: int) -> OverlapTable:
        """Return a table of `n_rows` rows, to whose row new_row[r] each row r is added."""
        indptr, cols, counts = self.cells
        rows = np.repeat(new_row, np.diff(indptr))
        table = kernel.tabulate(rows, cols, counts, n_rows, self.gts.col_area.size)
        return OverlapTable(self.gts, table)

    @property
    def n_pixels(self) -> int:
        """The number of pixels N."""
        return self.gts.labels.shape[1]

    @cached_property
    def row_area(self) -> I8:
        """The areas a_i of the rows, int64 (rows,)."""
        indptr, _, counts = self.cells
        sums: I8 = np.add.reduceat(counts, indptr[:-1])  # no row is empty
        return sums // self.gts.labels.shape[0]  # a row counts its region once for each annotator

    @cached_property
    def area_sums(self) -> _AreaSums:
        """The sums over the areas a_i of the segmentation's regions, two numbers."""
        return _AreaSums(*kernel.squares_and_bits(self.row_area))

    @cached_property
    def overlaps(self) -> kernel.OverlapSums:
        """The sums over cells that all measures need; see `kernel.OverlapSums`."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def _select_candidates(area: Map) -> Bool:
    """Select the regions that are candidates for objects and parts (see `_measure_seism`).

    Regions are taken from the largest to the smallest until they cover 0.99 of the image. Among
    regions of equal area, the last in raster order is taken first.

    `area` (regions,) holds the number of pixels of each region. Returns bool (regions,).
    """
    order = np.argsort(area, kind="stable")[::-1]
    # Divided before they are added, as in SEISM: where regions cover exactly 0.99, rounding often
    # makes the sum smaller, and one more region is taken
    covered = np.cumsum(area[order] / area.sum())
    candidate = np.empty(area.size, np.bool_)
    candidate[order[0]] = True
    candidate[order[1:]] = covered[:-1] < _AREA_SHARE
    return candidate


def region_counts(
    pred: Prediction | ArrayLike | Sequence[ArrayLike],
    gts: GroundTruth | Sequence[ArrayLike],
    protocol: Protocol | str | None = None,
) -> Counts:
    """Compare the regions of one image with the regions of all its annotators, at every threshold.

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
        Sums and means over annotators. Arrays are float64 (T,) unless another type is named.

        - `thresholds`; `n_pixels` int64 ()
        - `covered_gt`, `covered_pred`: the covered area of all annotated and all predicted regions
        - `total_gt`, `total_pred` int64: the area of all annotated and of all predicted regions
        - `best_covered_gt` float64 (): the covered area if each region takes its best threshold
        - `pri`: the mean Rand index
        - `voi`, `voi_split`, `voi_merge`: variation of information in bits, and its two parts
        - `nvoi`: normalised variation of information
        - `fop_pred`, `fop_gt`, `fop_precision`, `fop_recall`, and int64 `fop_pred_candidates` and
          `fop_gt_candidates`: objects and parts
        - `pair_precision`, `pair_recall`: pairs of pixels
        - `hamming_gt`, `hamming_pred`, `bgm` int64: distances in pixels
        - `bce`, `gce`, `lce`: consistency errors
        - `are_region`, `are_skimage`, `are_cremi`: adapted Rand errors

    Raises
    ------
    DataError
        If either side has no segmentation, the image has no pixels, or the prediction is a soft map
        and `regions_from_soft` is off.
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
    given = gts.segmentations if isinstance(gts, GroundTruth) else gts
    annotators = Annotators.of(given_list(given, "ground truth", "label maps or a GroundTruth"))
    if not isinstance(pred, Prediction):
        pred = _to_prediction(pred, annotators.shape)
    thresholds = proto.threshold_array()
    if pred.kind == "segs":
        thresholds = np.arange(1.0, len(pred.segs) + 1)
    columns = _measure_tables(_tables_at_thresholds(pred, annotators, proto))
    best_iou = np.maximum.reduce(columns.pop("best_gt"))  # (G,), at any threshold
    n_annotators, n_pixels = annotators.labels.shape
    columns["total_gt"] = np.full(thresholds.size, n_pixels * n_annotators)
    columns["total_pred"] = np.full(thresholds.size, n_pixels)
    covered = (best_iou * annotators.col_area).sum()
    return Counts(thresholds=thresholds, n_pixels=n_pixels, best_covered_gt=covered, **columns)


def _to_prediction(pred: object, shape: tuple[int, ...]) -> Prediction:
    """Convert an array to a prediction of the kind that its type and shape suggest.

    An array of integers or bool is one label map (H, W), or a stack (n, H, W) of them. An array of
    floats is an ultrametric contour map if its shape is (2H + 1, 2W + 1), where `shape` (H, W) is
    that of the ground truth. Any other array of floats is a soft boundary map.
    """
    array = given_array(pred, "prediction")
    if array.dtype.kind in "iub":
        return Prediction("prediction", segs=tuple(array) if array.ndim == 3 else (array,))
    if array.shape == tuple(2 * n + 1 for n in shape):
        return Prediction("prediction", ucm2=array)
    return Prediction("prediction", soft=array)


class _TablePair(NamedTuple):
    """The overlaps of a prediction's regions with the annotators' regions, at one threshold."""

    official: OverlapTable  # its rows are the regions that the official program forms
    seism: OverlapTable  # its rows are the regions that SEISM forms


def _tables_at_thresholds(
    pred: Prediction, gts: Annotators, protocol: Protocol
) -> Iterator[_TablePair]:
    """Return an iterator over a prediction's tables of overlaps, in ascending order of thresholds.

    If the prediction consists of segmentations, each of them stands for a threshold. Any other
    prediction is cut into regions at each threshold of the protocol.

    Raises DataError if the prediction is a soft map and `protocol.regions_from_soft` is off. A soft
    map that is 0 everywhere is accepted in any case.
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
    """Compute all measures at every threshold.

    Returns a dict from the name of each measure to the list of its values, one for each threshold.
    A table that is the same object as at the previous threshold is not measured again.
    """
    measures: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    previous = None
    for pair in tables:
        if previous is None or pair.official is not previous.official:
            measures |= _measure_official(pair.official)
        if previous is None or pair.seism is not previous.seism:
            measures |= _measure_seism(pair.seism)
        previous = pair
        for name, value in measures.items():
            columns.setdefault(name, []).append(value)
    return columns


def _close_regions(soft: Map, threshold: float) -> I4:
    """Close a soft boundary map (H, W) into regions; their labels, int32 (H, W), begin at 1.

    Regions are the 4-connected components of the pixels below the threshold, which is in [0, 1].
    Each other pixel joins the region of the pixel below the threshold that is nearest to it. If no
    pixel is below, the image is one region. Regions at different thresholds need not be nested.
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
    """Yield the table of a hierarchy's regions at each of `n_levels` thresholds.

    levels (2, H, W), from `ucm.join_levels`: for each pixel, the index of the threshold at which it
        joins its right neighbour ([0]) and its lower neighbour ([1]).

    If no regions merge at a threshold, the table object of the threshold before is yielded again.
    """
    labels, n_regions = ucm.finest_regions(levels)
    # Pairs (a, b) of finest regions that join. Those from start[t] to start[t + 1] - 1 join at
    # threshold t
    a, b, start = ucm.later_joins(levels, labels, n_levels)
    roots = np.arange(n_regions, dtype=np.int32)  # the finest region that stands for each row
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
    """Yield the tables of each label map (H, W); both tables of a pair are the same object."""
    for labels in maps:
        table = OverlapTable.of_map(labels, gts)
        yield _TablePair(table, table)


def _tables_of_ucm(ucm2: F8, gts: Annotators, thresholds: F8) -> Iterator[_TablePair]:
    """Yield the two tables of overlaps of an ultrametric contour map at each threshold.

    One table of each pair is for the regions of the official program, which may also connect at the
    corners of the contour grid. The other is for SEISM's regions, which are 4-connected. The two
    are the same object if the regions agree at all thresholds.

    ucm2 (2H + 1, 2W + 1): contour strengths. The pixels of the image lie at odd rows and columns,
        where the strength is normally 0.
    thresholds (T,): in ascending order.

    Raises ShapeError if the shape of `ucm2` does not fit the ground truth, and DataError if the
    strength at a pixel is above the first threshold.
    """
    array = np.ascontiguousarray(ucm2, np.float64)
    rows, cols = gts.shape
    same_shape(array.shape, (2 * rows + 1, 2 * cols + 1), "ucm2")
    if (array[1::2, 1::2] > thresholds[0]).any():
        raise DataError(
            "ucm2: strengths at pixel positions (odd rows and columns), expected 0 there"
        )
    # Regions of the official program are 8-connected across the contour grid, SEISM's 4-connected
    levels = ucm.join_levels(array, thresholds, True)
    seism_levels = ucm.join_levels(array, thresholds, False)
    tables = _tables_of_levels(levels, gts, thresholds.size)
    if np.array_equal(levels, seism_levels):
        for table in tables:
            yield _TablePair(table, table)
    else:
        seism_tables = _tables_of_levels(seism_levels, gts, thresholds.size)
        for table, seism_table in zip(tables, seism_tables, strict=True):
            yield _TablePair(table, seism_table)


def _measure_official(table: OverlapTable) -> dict[str, float | F8]:
    """Compute the official program's measures, and others from the same regions.

    Measures without further words are means over the annotators. n, a, b and N are explained at the
    top of this module.

    best_gt : float64 (G,), the best IoU of each annotated region, n(i,j) / (a_i + b_j - n(i,j))
    covered_gt : sum of b_j times this IoU over the regions of all annotators; divided by the sum of
        b_j it is the covering, in [0, 1]. PAMI 2011, eq. 8
    covered_pred : sum of a_i times the best IoU with a region of any annotator
    pri : Rand index, the share of the pairs of pixels that are in one region in both maps, or in
        different regions in both: 1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single
        pixel. PAMI 2011, eq. 7
    voi : variation of information in bits, H(seg) + H(gt) - 2 I(seg, gt). Meila, COLT 2003
    voi_split, voi_merge : H(seg | gt) and H(gt | seg) in bits; they sum to voi
    are_region, are_skimage, are_cremi : adapted Rand errors, see `_adapted_rand`
    """
    gts, n_px = table.gts, table.n_pixels
    sums, row_sums, gt_sums = table.overlaps, table.area_sums, gts.area_sums
    overlap_squares, overlap_bits = sums.ints[:, 0], sums.floats[:, 0]  # n^2, n log2 n
    disagreeing = row_sums.squares + gt_sums.squares - 2 * overlap_squares
    measures: dict[str, float | F8] = {
        "covered_gt": float((sums.best_gt * gts.col_area).sum()),
        "covered_pred": float(sums.covered_pred),
        "best_gt": sums.best_gt,
        "pri": _mean(1.0 - ratio(disagreeing, n_px * (n_px - 1))),
        "voi": _mean(_voi(table)),
        "voi_split": _mean(np.maximum(0.0, (gt_sums.bits - overlap_bits) / n_px)),
        "voi_merge": _mean(np.maximum(0.0, (row_sums.bits - overlap_bits) / n_px)),
    }
    for rule in RULES:
        errors = [_adapted_rand(table, k, rule) for k in range(len(gts.labels))]
        measures[f"are_{rule}"] = _mean(errors)
    return measures


def _measure_seism(table: OverlapTable) -> dict[str, float]:
    """Compute SEISM's measures from n(i,j), the areas a and b, and the number of pixels N.

    Distances in pixels are sums over annotators, `fop` values compare the segmentation with all
    annotators together, and all other values are means over annotators.

    hamming_gt, hamming_pred : directional Hamming distances in pixels, N - sum_j max_i n (grows
        with over-segmentation) and N - sum_i max_j n (grows with under-segmentation). Half their
        sum is van Dongen's distance. Huang and Dom, ICIP 1995; van Dongen, CWI report INS-R0012
    pair_precision, pair_recall : pairs of pixels that share a region in both maps, divided by those
        that do in the segmentation and in the annotator's map; 0/0 = 0. Martin, PhD thesis 2003
    bce, gce, lce : bidirectional, global and local consistency error, in [0, 1].
        bce = (1/N) sum n max(1 - n/a, 1 - n/b).
        gce = (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), 0 if one map refines the other.
        lce = (1/N) sum n min(1 - n/a, 1 - n/b), 0 if at each place one map refines the other.
        Martin et al., ICCV 2001; Martin 2003
    nvoi : 1 - VOI / (2 log2 max(regions of seg, regions of gt)); 1 if both maps are one region
    bgm : bipartite graph matching distance in pixels: N minus the largest total intersection of a
        one-to-one assignment of regions. Jiang et al., EURASIP JASP 2006
    fop_pred, fop_gt : credit of the objects and parts in the segmentation and in all annotations.
        Let r = n/b be the recall and p = n/a the precision of a region of the segmentation and one
        of an annotator. If both are candidates (see `_select_candidates`), they are objects if
        r >= 0.9 and p >= 0.9. Otherwise the segmentation's region is a part if r >= 0.25 and
        p >= 0.9, and the annotator's region is a part if r >= 0.9 and p >= 0.25. A region that is
        an object in one pair remains an object.
        For any two regions, candidates or not: if p >= 0.9 and r < 0.9, r is added to the
        over-segmentation of the annotator's region; if r >= 0.9 and p < 0.9, p is added to the
        under-segmentation of the segmentation's region.
        fop_pred = objects + 0.1 parts + under-segmentation of the other candidates / annotators.
        fop_gt = objects + 0.1 parts + over-segmentation of the other candidates
    fop_pred_candidates, fop_gt_candidates : number of candidates
    fop_precision, fop_recall : fop_pred and fop_gt divided by the candidates
    """
    gts, n_px, area = table.gts, table.n_pixels, table.row_area
    sums, all_px = table.overlaps, n_px * len(gts.labels)
    most_bits = [math.log2(max(n, area.size)) for n in np.diff(gts.col_start).tolist()]
    candidate = _select_candidates(area)
    fop_pred, fop_gt = kernel.fop_sums(
        table.cells, area, gts.col_area, candidate, gts.candidate, len(gts.labels)
    )
    n_pred, n_gt = int(candidate.sum()), int(gts.candidate.sum())
    # Columns of `kernel.OverlapSums.ints` and `floats`, (A,) each
    overlap_squares, largest_of_cols, largest_of_rows = sums.ints.T
    _, larger_error, smaller_error, pred_error, gt_error = sums.floats.T
    return {
        "hamming_gt": all_px - int(largest_of_cols.sum()),
        "hamming_pred": all_px - int(largest_of_rows.sum()),
        # A region of n pixels has n (n - 1) / 2 pairs, so n^2 - n is twice their number
        "pair_precision": _mean(ratio(overlap_squares - n_px, table.area_sums.squares - n_px)),
        "pair_recall": _mean(ratio(overlap_squares - n_px, gts.area_sums.squares - n_px)),
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


def _voi(table: OverlapTable) -> F8:
    """Compute the variation of information with each annotator, in bits, float64 (A,)."""
    overlap_bits = table.overlaps.floats[:, 0]
    bits = table.area_sums.bits + table.gts.area_sums.bits - 2.0 * overlap_bits
    return np.asarray(np.maximum(0.0, bits / table.n_pixels))


def _mean(values: F8 | Sequence[float]) -> float:
    """Return the mean of values. Their sum is rounded once, so their order makes no difference."""
    return math.fsum(values) / len(values)


def _adapted_rand(table: OverlapTable, annotator: int, rule: str) -> float:
    """Compute the adapted Rand error with one annotator: 1 - F of pixel pairs, in [0, 1].

    The pairs of a map are the pairs of pixels that share a region in it. The error is 0 if neither
    map has any. `annotator` is the annotator's index. `rule` says what the label 0 means, and which
    pairs are counted:

    - "region": 0 is a region like any other in both maps, and pixels form no pairs with themselves
      (scikit-image with ignore_labels=())
    - "skimage": as "region", but pixels with 0 in the truth are ignored (scikit-image's default)
    - "cremi": pixels with 0 in the truth are ignored, each pixel with 0 in the segmentation is a
      separate region, which adds 1/N to the sums (N counts all pixels), and pixels form pairs with
      themselves (CREMI, SNEMI3D, gala)

    Source: Arganda-Carreras et al., Frontiers in Neuroanatomy 2015.
    """
    # Sums of squared areas; less the number of pixels, each is twice the number of pairs
    both: float = int(table.overlaps.ints[annotator, 0])
    pred: float = int(table.area_sums.squares)
    gt = int(table.gts.area_sums.squares[annotator])
    zero, n_counted = table.gts.zero[annotator], table.n_pixels
    indptr, cols, counts = table.cells
    if rule != "region" and zero >= 0:  # leave out the pixels with 0 in the truth
        cells = np.flatnonzero(cols == zero)
        n_lost = counts[cells]
        rows = np.searchsorted(indptr, cells, side="right") - 1
        area = table.row_area[rows]  # of the segmentation's regions that lose pixels
        rest = area - n_lost
        n_ignored = int(table.gts.col_area[zero])
        both -= int(n_lost @ n_lost)
        gt -= n_ignored**2
        n_counted -= n_ignored
        pred -= int(area @ area - rest @ rest)
    if rule != "cremi":  # no pairs of a pixel with itself
        both, pred, gt = both - n_counted, pred - n_counted, gt - n_counted
    elif table.zero >= 0:  # split the segmentation's region 0 into its pixels
        row = slice(*indptr[table.zero : table.zero + 2])
        first, end = table.gts.col_start[annotator : annotator + 2]
        is_counted = (cols[row] >= first) & (cols[row] < end) & (cols[row] != zero)
        n_joint = counts[row][is_counted]
        n_alone = int(n_joint.sum())
        both = both - int(n_joint @ n_joint) + n_alone / table.n_pixels
        pred = pred - n_alone**2 + n_alone / table.n_pixels
    mean_square = 0.5 * gt + 0.5 * pred
    return 1.0 - both / mean_square if mean_square else 0.0
