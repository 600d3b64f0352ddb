"""Boundaries: how many predicted boundary pixels are right, and how many annotated ones are found?

Definition. At each threshold the prediction becomes a binary map, thinned to lines one pixel wide,
and is matched one to one with each annotator's boundaries, within max_dist_px pixels, at minimum
cost (bsdsbench.kernels.matching.matching). Recall is the share of annotated pixels that are
matched, summed over annotators; precision is the share of predicted pixels that are matched with at
least one annotator.

Conventions. Counts are summed over images before they are divided. Void pixels are removed from
both maps before matching. The matching is optimal, whereas the official program's is randomised.

Source. Arbelaez, Maire, Fowlkes and Malik, "Contour detection and hierarchical image segmentation",
PAMI 2011; BSDS500's evaluation_bdry_image.m and collect_eval_bdry.m; the edges toolbox (R50).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bsdsbench.arguments import Bools, Floats, Ints, check_array
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Map, Prediction, annotated_maps, binary_map, same_shape
from bsdsbench.loaders.formats.official_txt import format_boundary_tables, safe_name
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.base import (
    AT_ODS,
    IMAGES,
    Arrays,
    Column,
    Counter,
    Opt,
    ScoreTree,
    Texts,
    ValuesMetric,
    VoidOptions,
)
from bsdsbench.metrics.matches import Match as Match
from bsdsbench.metrics.matches import given_prediction
from bsdsbench.metrics.matches import match_boundaries as match_boundaries
from bsdsbench.protocol.protocol import MATCHED, Protocol
from bsdsbench.scores.counts import (
    OTHER_MATCHES,
    Counts,
    ImageRecord,
    MatchCounts,
    Score,
    Stack,
    key_at,
    nest,
    part_of,
    unchecked_counts,
    value_at,
)
from bsdsbench.scores.curve import BoundaryScore, PRCurve, area, best, curve_scores, recall_at_half
from bsdsbench.scores.ratios import Weights
from bsdsbench.transforms.maps import clean, prepare

if TYPE_CHECKING:
    from bsdsbench.kernels.arrays import MapChanges

# Kernels are imported inside functions, so that scores can be read and shown without loading them
CURVE_COLUMNS = (
    Column("ods", "ODS"),
    Column("ods.threshold", "ODS threshold", "threshold", digits=3, shown="own", score=False),
    Column("ods.precision", "ODS P", "P", shown="own", score=False),
    Column("ods.recall", "ODS R", "R", shown="own", score=False),
    Column("ois", "OIS"),
    Column("ap", "AP", undefined="all thresholds have the same recall (binary or label maps)"),
)
F_AT_ODS = Column(AT_ODS, "F at the ODS threshold", "F at ODS")  # for the table of images
BOUNDARY_COLUMNS = (
    *CURVE_COLUMNS,
    Column("r50", "R50", undefined="the curve does not cross a precision of 0.5"),
    IMAGES,
)


class CurveMetric(ValuesMetric[Opt]):
    """A metric with precision-recall curves that are scored as in the boundary benchmark.

    The curves are those of `curve_paths` or, if this is empty, a single one. `values` may add means
    over images.
    """

    cuts_at_thresholds = True
    part_columns = BOUNDARY_COLUMNS

    def curves(self, stack: Stack, opt: Opt) -> dict[tuple[str, ...], Ints]:
        """Return the counts of each curve, keyed by the path to its scores in a `Score`.

        A single curve has the path (). Each of several curves has a path such as ("seval",), whose
        first key is also the name of its counts in `stack`. Counts are int64 (N, T, 4) for N images
        and T thresholds: matched and all ground-truth pixels, matched and all predicted pixels.
        """
        if not self.curve_paths:
            return {(): stack["matches"]}
        return {path: stack[path[0]] for path in self.curve_paths.values()}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Compute ODS, OIS, AP and R50 of each curve for S data sets, as arrays (S,).

        stack: the counts of N images. weights (S, N): how often each occurs in each data set.

        The scores of a single curve, which has the path (), are returned as they are, such as
        "ods". Those of several are nested by their paths: ("seval",) has ["seval"]["ods"]. The base
        class adds the means over images of the metric's `values`, if it has any.
        """
        scores = {}  # path -> scores; R50 is the recall at precision 0.5
        for path, matches in self.curves(stack, opt).items():
            scores[path] = curve_scores(stack["thresholds"], matches, weights, protocol, r50=True)
        curves = scores[()] if () in scores else nest(scores)
        return {**curves, **super().scores(stack, weights, protocol, opt)}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: Opt
    ) -> Texts:
        """Yield (file name, text) for the tables of each curve, in the official BSDS format.

        The files of a single curve are eval_bdry.txt and so on. Those of several curves (such as
        one for each class) are in folders named after the curves.

        score: scores of several curves are nested by path, such as score["per_class"]["car"].
        stack: the counts. "counted", bool (N, curves), if present, says which images of N count.
        """
        curves = self.curves(stack, opt)  # path -> int64 (N, T, 4)
        counted = stack.get("counted", np.ones((len(ids), len(curves))))
        for k, (path, matches) in enumerate(curves.items()):
            curve_score = part_of(score, path)
            if curve_score is None:  # such as a class without annotated boundaries
                continue
            folder = f"{safe_name(path[-1])}/" if path else ""  # () is the path of a single curve
            images = np.flatnonzero(counted[:, k])  # indices of those that count for this curve
            listed_ids, listed_matches = np.array(ids)[images].tolist(), matches[images]
            for name, text in format_boundary_tables(
                curve_score, listed_ids, stack["thresholds"], listed_matches, protocol.ods_rule
            ):
                yield folder + name, text


class BoundaryMetric(CurveMetric[VoidOptions]):
    """Boundary pixels matched one to one within a tolerance: the BSDS benchmark."""

    name, title = "boundary", "Boundaries"
    options, void, void_option = VoidOptions, True, "ignore"
    uses, columns = MATCHED, BOUNDARY_COLUMNS
    curved = has_errors = True
    tolerance_scores = ("ods", "ois", "ap")
    image_columns = (
        Column("ods", "best F"),
        Column("ods.precision", "P"),
        Column("ods.recall", "R"),
        Column("ods.threshold", "threshold", score=False),
        F_AT_ODS,
    )

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: VoidOptions,
        counter: Counter | None = None,
    ) -> Arrays:
        """Count the matched boundary pixels of an image at every tolerance of the protocol.

        counter: a function of the same (pred, gt, protocol) that counts at the first tolerance, and
            returns further arrays, such as errors by class. None for `boundary_counts` alone.
        opt: the values of void pixels, which were applied when `gt` was read.
        """
        if counter is None:
            return _count_boundaries(pred, gt, protocol)
        has_others = len(protocol.tolerances) > 1
        at_others = _count_boundaries(pred, gt, protocol) if has_others else {}
        # Only the first has `other_matches`; `thresholds` and `matches` are equal in both
        return {**at_others, **counter(pred, gt, protocol)}

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: VoidOptions) -> Arrays:
        """Evaluate each annotator against all others, and sum the counts.

        Each map in turn serves as the prediction, at the single threshold 0.5. Returns the arrays
        of `boundary_counts`: `matches` (1, 4), and with several tolerances `other_matches`, summed
        over the left-out annotators; and `thresholds` (1,), not summed.
        """
        annotators = gt.boundaries
        for_binary_maps = protocol.replace(thresholds=(0.5,), nms=False, invert=False)
        counts = []
        for k, left_out in enumerate(annotators):
            others = gt.replace(boundaries=annotators[:k] + annotators[k + 1 :])
            counts.append(boundary_counts(left_out, others, for_binary_maps))
        sums = {name: np.sum([c[name] for c in counts], axis=0) for name in counts[0]}
        return {**sums, "thresholds": counts[0].thresholds}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: VoidOptions
    ) -> ScoreTree:
        """Compute ODS, OIS, AP and R50 for S data sets, as arrays (S,).

        stack: the counts of N images. weights (S, N): how often each occurs in each data set.

        Returns the result of `curve_scores` at the first tolerance. If the protocol has several
        tolerances, each score in `tolerance_scores` is added at every tolerance ("ods@0_00375"),
        and averaged over tolerances ("ods@mean").
        """
        thresholds = stack["thresholds"]
        scores = curve_scores(thresholds, stack["matches"], weights, protocol, r50=True)
        if OTHER_MATCHES not in stack:  # there is a single tolerance
            return scores
        per_tolerance = [scores]  # R50 only at the first, as it has no column for each tolerance
        for matches in np.moveaxis(stack[OTHER_MATCHES], 1, 0):  # from (N, tolerances, T, 4)
            per_tolerance.append(curve_scores(thresholds, matches, weights, protocol))
        for key in self.tolerance_scores:  # "ods" and "ois", points whose F is averaged, and "ap"
            for name, at_one in zip(protocol.tolerance_names, per_tolerance, strict=True):
                scores[key_at(key, name)] = at_one[key]
            values = [value_at(at_one, key) for at_one in per_tolerance]
            scores[key_at(key, "mean")] = np.mean(values, axis=0)
        return scores

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the scores in the result tables that the official BSDS program has written.

        tables: file name -> array (rows, columns). These files are used:

        - eval_bdry_thr.txt: the curve, from which R50 is computed
        - eval_bdry.txt: ODS, OIS and AP. Without it, ODS and AP are computed from the curve, and
          OIS is NaN.
        - eval_bdry_img.txt: the best point of each image. Without it, `n_images` is 0.

        Returns the scores by key, `curve`, `n_images`, and `images`: for each image, its number as
        text and its scores. Returns None if there is neither eval_bdry_thr.txt nor eval_bdry.txt.
        Raises DataError if eval_bdry.txt is there without eval_bdry_thr.txt.
        """
        if "eval_bdry_thr.txt" not in tables:
            if "eval_bdry.txt" not in tables:
                return None
            raise DataError("no eval_bdry_thr.txt, expected it for a curve")
        # columns: threshold, recall, precision, F
        thresholds, recall, precision = tables["eval_bdry_thr.txt"][:, :3].T
        curve = PRCurve(thresholds, precision, recall)
        names = ("threshold", "recall", "precision", "f")
        if "eval_bdry.txt" in tables:
            # columns: threshold, recall, precision, F of ODS; recall, precision, F of OIS; AP
            *points, ap = tables["eval_bdry.txt"][0, :8].tolist()
            ods, ois = points[:4], points[4:]
        else:
            ods, ois, ap = [float(best(curve)[name]) for name in names], [math.nan] * 3, math.nan
        images = []
        # columns: number of the image; threshold, recall, precision and F of its best point
        for number, *point in tables.get("eval_bdry_img.txt", np.zeros((0, 5))).tolist():
            keys = ("ods.threshold", "ods.recall", "ods.precision", "ods")
            images.append((f"{number:.0f}", dict(zip(keys, point, strict=True))))
        return {
            "ods": dict(zip(names, ods, strict=True)),
            "ois": dict(zip(names[1:], ois, strict=True)),
            "ap": float(area(curve)) if math.isnan(ap) else ap,  # area under the curve
            "n_images": len(images),
            "images": tuple(images),
            "curve": curve,
            **{name: float(value) for name, value in recall_at_half(curve).items()},  # r50 ..
        }


def boundary_score(
    records: Sequence[ImageRecord] | Counts, protocol: Protocol | str | None = None
) -> BoundaryScore:
    """Compute the boundary scores of a data set from its images' records, or of a single image.

    Images without a boundary pixel in either map do not contribute. Source: collect_eval_bdry.m.

    Parameters
    ----------
    records : sequence of ImageRecord, or Counts
        One record with boundary counts per image, in any order; or the counts of a single image, so
        that `ods` is its best F.
    protocol : Protocol, str or None
        The protocol, or the name of a preset, that sets the rules of the scores; bsds500 if None.

    Returns
    -------
    BoundaryScore
        `ods` and `ois`, the points with the best F if one threshold is used for all images, and
        one for each image; `ap`, the average precision; `r50` and `edges_r50`, the recall at
        precision 0.5, as in BSDS and as in the edges toolbox; `curve` and `n_images`.

    Raises
    ------
    DataError
        If there are no records, if a record has no boundary counts, or if the records were computed
        at different thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> one = bb.boundary_score(bb.boundary_counts(line, [line]))
    >>> one.ods.f, one.curve.recall[:2].tolist()
    (1.0, [1.0, 1.0])
    """
    return BoundaryScore(BoundaryMetric().score(records, Protocol.load(protocol)))


def boundary_counts(
    pred: Map | Prediction,
    gts: Sequence[Map] | GroundTruth,
    protocol: Protocol | str | None = None,
    *,
    dropped: Bools | None = None,
) -> MatchCounts:
    """Count the boundary pixels of one image, and those matched one to one, at each threshold.

    A predicted and an annotated pixel can be matched if they are at most the protocol's tolerance
    apart. Source: official evaluation_bdry_image.m and correspondPixels.

    Parameters
    ----------
    pred : array or Prediction
        (H, W) soft map of uint8 (value/255), uint16 (value/65535), bool, or float in [0, 1]; or a
        Prediction. If it holds n segmentations, their numbers 1 .. n are the thresholds.
    gts : sequence of array, or GroundTruth
        One (H, W) map per annotator, or a map alone, of 0 and 1 in any dtype or of 0 and 255 in
        uint8; or a GroundTruth.
    protocol : Protocol, str or None
        A protocol or the name of a preset; bsds500 if None.
    dropped : array or None
        (H, W) bool map, True at predicted pixels to remove after thinning.

    Returns
    -------
    MatchCounts
        `thresholds` float64 (T,) and `matches` int64 (T, 4) at the first tolerance, with the
        columns

        - `matched_gt`, `total_gt`: matched and all ground-truth pixels, summed over annotators
          (cntR, sumR of the official ID_ev1.txt)
        - `matched_pred`, `total_pred`: predicted pixels matched with at least one annotator, and
          all predicted pixels (cntP, sumP)

        If the protocol has D > 1 tolerances, also `other_matches` int64 (D - 1, T, 4).

    Raises
    ------
    ShapeError
        If the sizes differ.
    DataError
        If a value of a map is NaN or out of range, or if there is no annotator.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.zeros((20, 30))
    >>> line[10] = 1
    >>> counts = bb.boundary_counts(line, [line], bb.Protocol(thresholds=(0.5,)))
    >>> int(counts.matched_pred[0]), int(counts.total_pred[0])
    (30, 30)
    """
    inputs = given_prediction(pred), GroundTruth.of(gts), Protocol.load(protocol)
    return _count_boundaries(*inputs, dropped)


def _count_boundaries(
    pred: Prediction, truth: GroundTruth, protocol: Protocol, dropped: Bools | None = None
) -> MatchCounts:
    """Match the boundary pixels of one image at each threshold and tolerance, and count them.

    Returns `thresholds` (T,), `matches` (T, 4) with matched and all annotated pixels, matched and
    all predicted ones, and `other_matches` at further tolerances. `dropped` marks pixels to remove.
    """
    from bsdsbench.kernels.matching.matching import match_steps, prepare_truth

    gt_maps, valid = truth_maps(truth, protocol), truth.parts.get("valid")  # (A, H, W), (H, W)
    shape = gt_maps.shape[1:]
    radii = protocol.radii(shape)  # the tolerances in pixels
    widest_truth = prepare_truth(gt_maps, max(radii))
    # `changes`: the pixels that enter or leave the predicted map, from the highest threshold on.
    # `n_pred` (T,): the pixels of the map after each step
    thresholds, changes, n_pred = threshold_changes(pred, shape, protocol, dropped, valid)
    has_whole_image = protocol.whole_image and pred.kind != "segs"  # which have no threshold 0
    n_gt = widest_truth.vertices.pixel.size  # of all annotators, at every threshold
    total_gt = np.full(thresholds.size, n_gt)
    tables = []  # one table (T, 4) for each tolerance, in order of ascending thresholds
    for radius in radii:
        truth_at_radius = widest_truth if radius == max(radii) else prepare_truth(gt_maps, radius)
        matched_gt, matched_pred = match_steps(changes, truth_at_radius)  # from the highest
        table = np.column_stack([matched_gt[::-1], total_gt, matched_pred[::-1], n_pred[::-1]])
        if has_whole_image:  # a row for threshold 0, at which every pixel is predicted
            table = np.vstack([whole_image_counts(gt_maps, valid), table])
        tables.append(table)
    if has_whole_image:
        thresholds = np.r_[0.0, thresholds]
    counts = {"thresholds": thresholds, "matches": tables[0]}
    if len(tables) > 1:
        counts[OTHER_MATCHES] = np.stack(tables[1:])
    # Not validated again, as the kernels made them
    return cast(MatchCounts, unchecked_counts(counts))


def truth_maps(gt: GroundTruth, protocol: Protocol) -> Bools:
    """Return the boundaries of A annotators, bool (A, H, W), thinned if `protocol.gt_thin`."""
    from bsdsbench.kernels.thinning import thin_each

    return thin_each(annotated_maps(gt)) if protocol.gt_thin else annotated_maps(gt)


class ThresholdChanges(NamedTuple):
    """The boundary maps at T thresholds, stored as the changes between them in T steps."""

    thresholds: Floats  # (T,), ascending, so that step k belongs to thresholds[T - 1 - k]
    changes: MapChanges  # the pixels that each step adds to the map or removes from it
    size: Ints  # (T,), the number of boundary pixels after each step


def threshold_changes(
    pred: Prediction,
    shape: tuple[int, ...],
    protocol: Protocol,
    dropped: Bools | None = None,
    valid: Bools | None = None,
) -> ThresholdChanges:
    """Compute the boundary map of a prediction at each of T thresholds, as changes between them.

    A soft map is thresholded and, if `protocol.thin`, thinned. If `protocol.whole_image`, the first
    threshold is 0 and stands for the whole image; it needs no matching, and is left out. If the
    prediction is a list of segmentations, the boundaries of the k-th are the map at threshold k.

    shape: (rows, columns) of the ground truth.
    dropped: bool (H, W), True at the pixels to remove after thinning.
    valid: bool (H, W), False at void pixels, which are removed before thinning and after it.

    Step 0 leads from an empty map to that of the highest threshold, step k to the next lower one.
    Its changes start[k] .. start[k + 1] - 1 are flat indices, `pixel`, with `added` True or False.
    Raises ShapeError if `pred` has another size.
    """
    from bsdsbench.kernels import thinning, thresholding

    same_shape(pred.shape, shape)
    if dropped is not None:
        dropped = binary_map(check_array(dropped, "dropped"), "dropped")
        same_shape(dropped.shape, shape, "dropped")
    if valid is not None:  # void pixels were set to 0, but a threshold of 0 includes them
        dropped = ~valid if dropped is None else dropped | ~valid
    if pred.kind == "segs":
        maps = np.stack([seg2bdry(s, valid) for s in pred.segs])  # none around void pixels
        thresholds = np.arange(1.0, len(maps) + 1)
        changes = thinning.stack_changes(thinning.thin_each(maps) if protocol.thin else maps)
    else:
        soft = pred.boundary_map()
        if protocol.invert or protocol.normalise or protocol.nms or valid is not None:
            soft = prepare(soft, protocol, valid)  # apply these
        n_skipped = 1 if protocol.whole_image else 0  # the threshold 0
        thresholds = np.array(protocol.thresholds[n_skipped:])
        smallest_values = protocol.cuts()[n_skipped:]  # (T,), that are boundary at each threshold
        level = thresholding.levels(soft, smallest_values)  # (H, W), thresholds a pixel reaches
        changes = thinning.thinning_changes(level, thresholds.size, protocol.thin)
        if protocol.clean:  # remove pixels without neighbours
            changes = thinning.stack_changes(clean(rebuild_maps(changes, shape)))
    if dropped is not None:
        is_kept = ~np.ravel(dropped)[changes.pixel]
        n_kept = np.r_[0, np.cumsum(is_kept)]  # of the first 0, 1, .. changes
        start = n_kept[changes.start]
        changes = thinning.MapChanges(start, changes.pixel[is_kept], changes.added[is_kept])
    n_added = np.zeros(changes.added.size + 1, np.int64)  # by the first 0, 1, .. changes
    np.cumsum(changes.added, out=n_added[1:])
    # Of the start[k] changes before step k, some add a pixel, and all others remove one
    n_added_before = n_added[changes.start]
    n_removed_before = changes.start - n_added_before
    size = (n_added_before - n_removed_before)[1:]
    return ThresholdChanges(thresholds, changes, size)


def rebuild_maps(changes: MapChanges, shape: tuple[int, ...]) -> Bools:
    """Rebuild the boundary maps at T thresholds from the pixel changes between them.

    changes: the pixels that enter or leave the map, from an empty map to that of the highest
        threshold (step 0), and then from one threshold to the next lower one.
    shape: (H, W).

    Returns bool (T, H, W), from the lowest to the highest threshold.
    """
    n_steps = changes.start.size - 1
    step_of_change = np.repeat(np.arange(n_steps), np.diff(changes.start))
    has_changed = np.zeros((n_steps, math.prod(shape)), bool)  # at each step
    has_changed[step_of_change, changes.pixel] = True
    # A pixel is on after a step if it has changed an odd number of times so far
    from_highest = np.logical_xor.accumulate(has_changed)
    return np.ascontiguousarray(from_highest[::-1]).reshape(n_steps, *shape)


def whole_image_counts(gt_maps: Bools, valid: Bools | None = None) -> Ints:
    """Return the counts of a prediction in which every pixel of the image is a boundary pixel.

    All boundary pixels in `gt_maps` (A, H, W), the maps of A annotators, are matched. Void pixels,
    which are False in `valid` (H, W), are not predicted.

    Returns int64 (4,): matched_gt, total_gt, matched_pred, total_pred.
    """
    n_annotated, n_drawn = np.count_nonzero(gt_maps), np.count_nonzero(gt_maps.any(axis=0))
    n_predicted = gt_maps[0].size if valid is None else np.count_nonzero(valid)
    return np.array([n_annotated, n_annotated, n_drawn, n_predicted])
