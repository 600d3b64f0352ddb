"""Measures between a segmentation and the annotators of an image.

n(i,j) is the number of pixels in region i of the segmentation and region j of the annotator, a_i
and b_j are the areas of the regions, and N is the number of pixels. Every distinct label is one
region, connected or not. Label 0 is special only in the adapted Rand error, where programs treat it
differently (`RULES`). All measures are computed from `OverlapTable`, which holds n(i,j).

Sources: Arbelaez et al., PAMI 2011, and the official program (covering, PRI, VOI); Pont-Tuset and
Marques, CVPR 2013 and PAMI 2016, and SEISM (the other measures).

For an ultrametric contour map the table is computed once, at the finest threshold, and its rows are
merged up the hierarchy; thresholds at which no region merges cost nothing. The official measures
use the 8-connected regions of ucm2 <= t, SEISM's measures the pixels that are 4-connected across
the contour grid. On a well-formed ucm2 both are the same regions and are computed once.
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
from bsdsbench.kernels.regions.assignment import largest_total
from bsdsbench.metrics.label_maps import as_label_map
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.ratios import ratio
from bsdsbench.transforms.maps import prepare

AREA_SHARE = 0.99  # of the image, held by the candidates for objects and parts


class Canonical(NamedTuple):
    """A flat label map with regions numbered 0, 1, ... in raster order, and the regions' areas.

    `zero` is the number that the label 0 got, or -1 if the map has no 0.
    """

    labels: I4
    area: I8
    zero: int


def canonical(labels: Map) -> Canonical:
    """Number the regions of a label map in raster order of their first pixels.

    The kernel allocates a table over the range of labels. If the range is large (more than four
    times the number of pixels plus 64 K), labels are first replaced by their ranks.
    """
    flat = labels.ravel()
    low, high = int(flat.min()), int(flat.max())
    if high - low > 4 * flat.size + 65536 or not -(2**31) <= low <= high < 2**31:
        flat = np.unique(flat, return_inverse=True)[1].ravel()
        low, high = 0, int(flat.max())
    number, area = kernel.renumber(np.ascontiguousarray(flat, np.int32), low, high - low + 1)
    first = int((labels == 0).argmax())
    return Canonical(number, area, int(number[first]) if labels.flat[first] == 0 else -1)


@dataclass(frozen=True, slots=True, eq=False)
class Annotators:
    """The label maps of the A annotators of one image; columns are the G regions of all of them.

    labels : (A, N) int32, regions numbered from 0 for each annotator
    col_start : i8 (A + 1,), the first column of each annotator, and G
    col_area, ann_of_col : i8 and i4 (G,), area and annotator of each column
    candidate : bool (G,), whether the region is a candidate for objects and parts
    squares, bits : i8 and f8 (A,), sum b^2 and sum b log2 b of each annotator
    zero : the column of each annotator's label 0, or -1
    """

    shape: tuple[int, ...]
    labels: I4
    col_start: I8
    col_area: I8
    ann_of_col: I4
    candidate: Bool
    squares: I8
    bits: F8
    zero: tuple[int, ...]

    @classmethod
    def of(cls, maps: Sequence[ArrayLike]) -> Annotators:
        """Build from (H, W) label maps.

        Raises DataError if there is no label map, ShapeError if the shapes differ.
        """
        arrays = [as_label_map(m, "ground truth") for m in maps]
        if not arrays:
            raise DataError("ground truth: no segmentation, expected one label map or more")
        for array in arrays[1:]:
            same_shape(array.shape, arrays[0].shape, "ground truth")
        flat, areas, zeros = zip(*map(canonical, arrays), strict=True)
        sizes = [a.size for a in areas]
        start = np.cumsum([0, *sizes])
        squares, bits = zip(*map(kernel.squares_and_bits, areas), strict=True)
        return cls(
            shape=arrays[0].shape,
            labels=np.stack(flat),
            col_start=start,
            col_area=np.concatenate(areas),
            ann_of_col=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            candidate=np.concatenate([*map(_fop_candidates, areas)]),
            squares=np.array(squares, np.int64),
            bits=np.array(bits),
            zero=tuple(
                column if column < 0 else int(start[k]) + column for k, column in enumerate(zeros)
            ),
        )


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """The sparse table n(i,j) of one segmentation with the regions of all annotators.

    `cells` are the rows in compressed form: where each row begins, and the column and the number of
    pixels of each cell (see `bsdsbench.kernels.regions.contingency`). `zero` is the row of the
    segmentation's label 0, or -1; hierarchies have no label 0.
    """

    gts: Annotators
    cells: kernel.Cells
    zero: int = -1

    @classmethod
    def of(cls, labels: I4, n_regions: int, gts: Annotators, zero: int = -1) -> OverlapTable:
        """Build from flat labels numbered by `canonical`."""
        runs = kernel.overlap_runs(labels, gts.labels, gts.col_start)
        return cls(gts, kernel.tabulate(*runs, n_regions, gts.col_area.size), zero)

    @classmethod
    def of_map(cls, labels: ArrayLike, gts: Annotators) -> OverlapTable:
        """Build from a (H, W) label map.

        Raises DataError if the array is no label map, ShapeError if its shape differs.
        """
        array = as_label_map(labels, "segmentation")
        same_shape(array.shape, gts.shape, "segmentation")
        flat, area, zero = canonical(array)
        return cls.of(flat, area.size, gts, zero)

    def merged(self, new_row: I4, n_rows: int) -> OverlapTable:
        """Merge rows: each row r becomes part of row new_row[r]."""
        start, cols, pixels = self.cells
        rows = np.repeat(new_row, np.diff(start))
        table = kernel.tabulate(rows, cols, pixels, n_rows, self.gts.col_area.size)
        return OverlapTable(self.gts, table)

    @property
    def n_pixels(self) -> int:
        """The number of pixels N."""
        return self.gts.labels.shape[1]

    @cached_property
    def row_area(self) -> I8:
        """The areas a_i of the rows, i8 (R,)."""
        start, _, pixels = self.cells
        sums: I8 = np.add.reduceat(pixels, start[:-1])  # no row is empty
        return sums // self.gts.labels.shape[0]

    @cached_property
    def squares_and_bits(self) -> Any:
        """Return sum a^2 and sum a log2 a."""
        return kernel.squares_and_bits(self.row_area)

    @cached_property
    def overlaps(self) -> kernel.OverlapSums:
        """The sums over cells that all measures need."""
        gts = self.gts
        areas = self.row_area, gts.col_area
        return kernel.overlap_sums(self.cells, *areas, gts.ann_of_col, len(gts.labels))


def _fop_candidates(area: Map) -> Bool:
    """Select the candidates for objects and parts, bool (R,): the largest regions.

    Regions are taken in descending area (of equal areas the later in raster order first) until they
    cover 0.99 of the image. Shares are added as doubles, as in SEISM: if regions cover exactly 0.99
    of the pixels, the sum is often slightly smaller, and one more region is taken.
    """
    order = np.argsort(area, kind="stable")[::-1]
    before = np.cumsum(area[order] / area.sum())
    out = np.empty(area.size, np.bool_)
    out[order[0]] = True
    out[order[1:]] = before[:-1] < AREA_SHARE
    return out


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
    protocol : Protocol or None
        Thresholds and `regions_from_soft`; default the bsds500 preset.

    Returns
    -------
    Counts
        Sums and means over annotators; arrays are f8 (T,) unless another type is named.
        `thresholds`; `n_pixels` i8 (). `covered_gt`, `covered_pred`: covered area of all annotated
        and of all predicted regions; `total_gt`, `total_pred` i8: their area; `best_covered_gt` f8
        (): covered area if each region takes its best threshold. `pri`: mean Rand index; `voi`,
        `voi_split`, `voi_merge`: variation of information in bits, and its two parts. `fop_pred`,
        `fop_gt`, `fop_pred_candidates` and `fop_gt_candidates` i8, `fop_precision`, `fop_recall`:
        objects and parts. `pair_precision`, `pair_recall`: pairs of pixels. `hamming_gt`,
        `hamming_pred`, `bgm` i8: distances in pixels. `bce`, `gce`, `lce`: consistency errors.
        `nvoi`. `are_region`, `are_skimage`, `are_cremi`: adapted Rand errors, see `RULES`.

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
    maps = given_list(given, "ground truth", "label maps or a GroundTruth")
    annotators, thresholds = Annotators.of(maps), proto.threshold_array()
    if not isinstance(pred, Prediction):
        array = given_array(pred, "prediction")
        if array.dtype.kind in "iub":
            pred = Prediction("prediction", segs=tuple(array) if array.ndim == 3 else (array,))
        elif array.shape == tuple(2 * n + 1 for n in annotators.shape):
            pred = Prediction("prediction", ucm2=array)
        else:
            pred = Prediction("prediction", soft=array)
    if pred.kind == "ucm2":
        tables = _of_ucm(pred.ucm2, annotators, thresholds)
    elif pred.kind == "segs":
        thresholds = np.arange(1, len(pred.segs) + 1, dtype=np.float64)
        tables = _of_maps(pred.segs, annotators)
    else:
        soft = pred.soft
        same_shape(soft.shape, annotators.shape, pred.where)
        if soft.any() and not proto.regions_from_soft:
            raise DataError(
                f"{pred.where}: a soft boundary map, expected ucm2, segs or a label map",
                fix=(
                    Setting("pred_kind", "labels", "for label maps in pictures and arrays"),
                    Setting("regions_from_soft", True, "closes a soft map into regions"),
                ),
            )
        soft = prepare(soft, proto)
        tables = _of_maps((_close_regions(soft, t) for t in proto.thresholds), annotators)
    best, rows = np.zeros(annotators.col_area.size), []
    last: tuple[OverlapTable | None, OverlapTable | None] = None, None
    counts: dict[str, Any] = {}
    n_ann, n_px = annotators.labels.shape
    for official_table, seism_table in tables:  # a repeated table keeps its measures
        if official_table is not last[0]:
            counts |= official(official_table)
            np.maximum(best, counts.pop("best_gt"), out=best)
        if seism_table is not last[1]:
            counts |= seism(seism_table)
        last = official_table, seism_table
        rows.append({**counts, "total_gt": n_px * n_ann, "total_pred": n_px})
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    covered = (best * annotators.col_area).sum()
    return Counts(thresholds=thresholds, n_pixels=n_px, best_covered_gt=covered, **columns)


def _close_regions(soft: Map, threshold: float) -> I4:
    """Close a soft boundary map into regions at one threshold; labels (H, W) int32 start at 1.

    Regions are the 4-connected components of pixels below the threshold (uint8 and uint16 maps are
    value/255 and value/65535). Each boundary pixel joins the region of the nearest pixel below the
    threshold. If there is no such pixel the image is one region. Regions of different thresholds
    need not be nested.
    """
    from scipy import ndimage

    inside = unit(soft) < threshold
    labels, count = ndimage.label(inside)
    if count == 0:
        return np.ones(soft.shape, np.int32)
    nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return labels[tuple(nearest)].astype(np.int32)


def _ucm_tables(levels: I4, gts: Annotators, n_levels: int) -> Iterator[OverlapTable]:
    """Yield the table at each threshold of a hierarchy, the same object while no region merges.

    `levels` is the result of `bsdsbench.kernels.regions.ucm.join_levels`.
    """
    labels, count = ucm.finest_regions(levels)
    a, b, start = ucm.later_joins(levels, labels, n_levels)
    roots = np.arange(count, dtype=np.int32)
    parent = roots.copy()
    table = OverlapTable.of(labels, count, gts)
    yield table
    for level in range(1, n_levels):
        joins = slice(start[level], start[level + 1])
        new_row, new_roots = ucm.join(parent, roots, a[joins], b[joins])
        if new_roots.size < roots.size:
            table = table.merged(new_row, new_roots.size)
        roots = new_roots
        yield table


def _of_maps(
    maps: Iterable[ArrayLike], gts: Annotators
) -> Iterator[tuple[OverlapTable, OverlapTable]]:
    """Yield the table of each label map, for the official and for SEISM's measures."""
    for labels in maps:
        table = OverlapTable.of_map(labels, gts)
        yield table, table


def _of_ucm(
    ucm2: F8, gts: Annotators, thresholds: F8
) -> Iterator[tuple[OverlapTable, OverlapTable]]:
    """Return the official program's and SEISM's table at each threshold."""
    array = np.ascontiguousarray(ucm2, np.float64)
    rows, cols = gts.shape
    same_shape(array.shape, (2 * rows + 1, 2 * cols + 1), "ucm2")
    if (array[1::2, 1::2] > thresholds[0]).any():
        raise DataError(
            "ucm2: strengths at pixel positions (odd rows and columns), expected 0 there"
        )
    levels = [ucm.join_levels(array, thresholds, corners) for corners in (True, False)]
    tables = _ucm_tables(levels[0], gts, thresholds.size)
    if np.array_equal(levels[0], levels[1]):
        return ((table, table) for table in tables)
    return zip(tables, _ucm_tables(levels[1], gts, thresholds.size), strict=True)


def official(table: OverlapTable) -> dict[str, float | F8]:
    """Compute the official program's measures, and others from the same regions.

    Covered areas are sums over annotators, all other values are means.

    covered_gt, covered_pred : sum of b_j (a_i) times the best intersection over union, n(i,j) /
        (a_i + b_j - n(i,j)); divided by N it is the covering, in [0, 1]. PAMI 2011, eq. 8
    best_gt : f8 (G,) the best intersection over union of each annotated region
    pri     : mean Rand index, the share of pixel pairs that both join or both separate:
        1 - (sum a^2 + sum b^2 - 2 sum n^2) / (N (N - 1)); 1 for a single pixel. PAMI 2011, eq. 7
    voi     : mean variation of information in bits, H(seg) + H(gt) - 2 I(seg, gt), a metric, 0 is
        best. Meila, COLT 2003
    voi_split, voi_merge : means of H(seg | gt) and H(gt | seg), bits; they sum to voi
    are_region, are_skimage, are_cremi : means of `_adapted_rand`
    """
    gts, n_px = table.gts, table.n_pixels
    best_gt, covered_pred, _, floats = table.overlaps
    together, in_pred, in_gt = _pairs(table)
    bits = table.squares_and_bits[1]
    measures: dict[str, float | F8] = {
        "covered_gt": float((best_gt * gts.col_area).sum()),
        "covered_pred": float(covered_pred),
        "best_gt": best_gt,
        "pri": _mean(1.0 - ratio(in_pred + in_gt - 2 * together, n_px * (n_px - 1) // 2)),
        "voi": _mean(_voi(table)),
        "voi_split": _mean(np.maximum(0.0, (gts.bits - floats[:, 0]) / n_px)),
        "voi_merge": _mean(np.maximum(0.0, (bits - floats[:, 0]) / n_px)),
    }
    for rule in RULES:
        measures[f"are_{rule}"] = _mean(
            [_adapted_rand(table, k, rule) for k in range(len(gts.labels))]
        )
    return measures


def seism(table: OverlapTable) -> dict[str, float]:
    """Compute SEISM's measures. Distances in pixels are sums over annotators, the others means.

    hamming_gt, hamming_pred : directional Hamming distances in pixels, 0 is best. N - sum_j max_i n
        counts the pixels of annotated regions outside the region they overlap most, and grows with
        over-segmentation; N - sum_i max_j n grows with under-segmentation. Half the sum of both is
        van Dongen's distance. Huang and Dom, ICIP 1995; van Dongen, CWI report INS-R0012, 2000
    pair_precision, pair_recall : pairs of pixels that share a region in both maps, divided by the
        pairs that do in the segmentation and in the annotator's map; 0/0 = 0. Martin, PhD thesis
        2003
    bce, gce, lce : bidirectional, global and local consistency error, in [0, 1], 0 is best.
        bce = (1/N) sum n max(1 - n/a, 1 - n/b).
        gce = (1/N) min(sum n (1 - n/a), sum n (1 - n/b)), 0 if one map refines the other.
        lce = (1/N) sum n min(1 - n/a, 1 - n/b), 0 if at each place one map refines the other.
        Martin et al., ICCV 2001; Martin 2003
    nvoi : mean of 1 - VOI / (2 log2 max(regions of seg, regions of gt)), 1 is best; 1 if both maps
        are one region. Published program of PAMI 2016
    bgm : bipartite graph matching distance in pixels, 0 is best: N minus the largest total
        intersection of a one-to-one assignment of regions. Jiang et al., EURASIP JASP 2006
    fop_* : objects and parts. `_fop_candidates` selects the candidates of the segmentation and of
        each annotator. For each pair of candidates with recall r = n/b and precision p = n/a: if
        r >= 0.9 and p >= 0.9, both are objects; else if r >= 0.25 and p >= 0.9, the segmentation's
        region is a part; else if r >= 0.9 and p >= 0.25, the annotator's region is a part. A region
        that is an object for one annotator remains an object. For each pair of regions, candidates
        or not: if p >= 0.9 and r < 0.9, r is added to the over-segmentation of the annotator's
        region; else if r >= 0.9 and p < 0.9, p is added to the under-segmentation of the region.
        Precision = (objects + 0.1 parts + under-segmentation of the other candidates / annotators)
        / candidates, in the segmentation. Recall = (objects + 0.1 parts + over-segmentation of the
        other candidates) / candidates, over the regions of all annotators
    """
    gts, n_px, area = table.gts, table.n_pixels, table.row_area
    _, _, ints, floats = table.overlaps
    together, in_pred, in_gt = _pairs(table)
    all_px = n_px * len(gts.labels)
    most_bits = [math.log2(max(n, area.size)) for n in np.diff(gts.col_start).tolist()]
    candidate = _fop_candidates(area)
    areas = area, gts.col_area, candidate, gts.candidate
    pred, gt = kernel.fop_sums(table.cells, *areas, len(gts.labels))
    n_pred, n_gt = int(candidate.sum()), int(gts.candidate.sum())
    return {
        "hamming_gt": all_px - int(ints[:, 1].sum()),
        "hamming_pred": all_px - int(ints[:, 2].sum()),
        "pair_precision": _mean(ratio(together, in_pred)),
        "pair_recall": _mean(ratio(together, in_gt)),
        "bce": _mean(floats[:, 1] / n_px),
        "gce": _mean(np.minimum(floats[:, 3], floats[:, 4]) / n_px),
        "lce": _mean(floats[:, 2] / n_px),
        "nvoi": _mean(1.0 - ratio(_voi(table), 2 * np.array(most_bits))),
        "bgm": all_px - int(largest_total(*table.cells, gts.col_start)),
        "fop_pred": pred,
        "fop_pred_candidates": n_pred,
        "fop_gt": gt,
        "fop_gt_candidates": n_gt,
        "fop_precision": pred / n_pred,
        "fop_recall": gt / n_gt,
    }


class _PixelPairs(NamedTuple):
    """Numbers of pixel pairs that share a region: in both maps, in the segmentation, in each
    annotator's map; `both` and `gt` are (A,)."""

    both: Any
    pred: Any
    gt: Any


def _pairs(table: OverlapTable) -> _PixelPairs:
    """Count the pairs of pixels that share a region."""
    sums = table.overlaps.ints[:, 0], table.squares_and_bits[0], table.gts.squares
    return _PixelPairs(*((squares - table.n_pixels) // 2 for squares in sums))


def _voi(table: OverlapTable) -> F8:
    """Compute the variation of information with each annotator in bits, (A,)."""
    both = 2.0 * table.overlaps.floats[:, 0]
    bits = table.squares_and_bits[1] + table.gts.bits - both
    return np.asarray(np.maximum(0.0, bits / table.n_pixels))


def _mean(values: F8 | Sequence[float]) -> float:
    """Return the mean, from a correctly rounded sum that no order of annotators changes."""
    return math.fsum(values) / len(values)


def _adapted_rand(table: OverlapTable, annotator: int, rule: str) -> float:
    """Compute the adapted Rand error with one annotator: 1 - F of pixel pairs, in [0, 1].

    A pair counts if its pixels share a region. `rule` says what the label 0 is, and whether a pixel
    forms a pair with itself:

    - "skimage": pixels with 0 in the truth are ignored, 0 in the segmentation is a region like any
      other, and pixels form no pairs with themselves (scikit-image's default).
    - "cremi": pixels with 0 in the truth are ignored, each pixel with 0 in the segmentation is a
      region of its own, which adds 1/N to the sums (N are all pixels), and pixels form pairs with
      themselves (CREMI, SNEMI3D, gala).
    - "region": 0 is a region like any other in both maps (scikit-image with ignore_labels=()).

    The error is 0 if neither map has a pair. Source: Arganda-Carreras et al., Frontiers in
    Neuroanatomy 2015.
    """
    # Sums of squared areas. Minus the number of pixels they are twice the number of pairs.
    both: float = int(table.overlaps.ints[annotator, 0])
    pred: float = int(table.squares_and_bits[0])
    truth = int(table.gts.squares[annotator])
    zero, n_counted = table.gts.zero[annotator], table.n_pixels
    indptr, cols, counts = table.cells
    if rule != "region" and zero >= 0:  # ignore the pixels with 0 in the truth
        ignored = np.flatnonzero(cols == zero)
        n = counts[ignored]
        area = table.row_area[np.searchsorted(indptr, ignored, side="right") - 1]
        rest = area - n
        n_ignored = int(table.gts.col_area[zero])
        both -= int(n @ n)
        truth -= n_ignored**2
        n_counted -= n_ignored
        pred -= int(area @ area - rest @ rest)
    if rule != "cremi":
        both, pred, truth = both - n_counted, pred - n_counted, truth - n_counted
    elif table.zero >= 0:
        cells = slice(*indptr[table.zero : table.zero + 2])
        first, last = table.gts.col_start[annotator : annotator + 2]
        of_annotator = (cols[cells] >= first) & (cols[cells] < last) & (cols[cells] != zero)
        n = counts[cells][of_annotator]
        alone = int(n.sum())
        both = both - int(n @ n) + alone / table.n_pixels
        pred = pred - alone**2 + alone / table.n_pixels
    weight = 0.5 * truth + 0.5 * pred
    return 1.0 - both / weight if weight else 0.0
