"""Wireframes: are the straight lines and the junctions of a building found?

Definition. F^H and AP^H count the pixels of drawn lines, matched one to one with the annotated
lines. F^H is the largest F of the curve, AP^H the area under the interpolated curve, with precision
0 at recall 0 and at recall 1 (more in `WireframeMetric.scores`). sAP compares the ends of lines on
a grid of 128 x 128 (`_match_lines`). It is the area under the interpolated curve of the predictions
of all images, ranked by score; equal scores keep the order of images and files. msAP is its mean
over the distance thresholds 5, 10 and 15. mAP^J is the same for junctions at 0.5, 1 and 2.

Conventions. Junctions in an image without annotated junctions are neither true nor false. Networks
pad their output by repeating its first lines. Therefore F^H and AP^H use the lines of a file up to
the first repetition of the first score (a single line if the best lines all have the score 1), and
sAP uses the lines up to the first repetition of the first line.

Source. L-CNN (Zhou, Qi, Ma, ICCV 2019), eval-sAP.py, eval-APH.py, eval-mAPJ.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from bsdsbench.arguments import Bools, Floats
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Lines, Prediction
from bsdsbench.loaders.formats.line_files import GRID, draw_lines
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, Metric, ScoreTree, Symptoms
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.protocol.fields import one_of, option
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_ratio, f_measure, weighted_sum

# A prediction can only match an annotation whose distance is below the threshold. The distance of
# two lines is the sum of the squared distances between their ends. Unit: cells of the grid.
LINE_THRESHOLDS = (5.0, 10.0, 15.0)
JUNCTION_THRESHOLDS = (0.5, 1.0, 2.0)
Grid = tuple[int, int]  # rows and columns
SLACK = 2.0  # grid cells: networks place points slightly beyond their grid


@frozen
class WireframeOptions:
    """Options of the wireframe metric: the grid on which predicted lines have coordinates."""

    lines_in: str = option(
        "network",
        'Grid of the coordinates in files without a `grid`: of the "network" (128 x 128) or of the '
        '"image".',
        one_of("network", "image"),
        caption={"image": "lines in pixels of the image"},
    )


class WireframeMetric(Metric[WireframeOptions]):
    """Straight lines and junctions: pixels of drawn lines, sAP of lines, and mAP^J of junctions."""

    name, title, reads, options = "wireframe", "Wireframes", "lines", WireframeOptions
    default_protocol, version, ragged = "wireframe", 3, ("lines", "junctions")
    uses = (*MAPS, *CURVE, *MATCHING)
    curved = cuts_at_thresholds = has_errors = True
    columns = (
        Column("fh", "F^H"),
        Column("aph", "AP^H"),
        *(Column(f"sap{k:g}", f"sAP{k:g}", quantity="sap") for k in LINE_THRESHOLDS),
        Column("msap", "msAP", quantity="sap"),
        Column("map_j", "mAP^J"),
        IMAGES,
    )
    image_columns = (Column("ods", "F"),)

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: WireframeOptions,
        counter: Counter = boundary_counts,
    ) -> Arrays:
        """Count the pixels of the drawn lines, and match lines and junctions by distance.

        counter: the function that counts the pixels: `boundary_counts`, or one that returns further
            arrays. Its counts are returned with these:

        lines : float64 (L, 4), for each predicted line its score, then 1 if it is a true positive
            at the distance thresholds 5, 10 and 15, else 0
        junctions : float64 (J, 4), the same at 0.5, 1 and 2, by descending score
        n_lines, n_junctions : float64 (), the numbers of annotated lines and junctions

        If the prediction or the ground truth has no junctions, `junctions` is empty and
        `n_junctions` is NaN.
        """
        drawn = pred  # has the map of its drawn lines
        grid = _grid_of(pred, gt, opt)  # range (rows, columns) of predicted coordinates
        # The reader, which does not know the option, has drawn lines without a grid on GRID
        if pred.lines.grid is None and grid != GRID:
            soft = draw_lines(pred.lines, gt.shape, grid)
            drawn = Prediction(pred.image_id, pred.path, soft=soft)
        # Distances are in cells of GRID, to which all coordinates are scaled
        lines, gt_lines, gt_grid = pred.lines, gt.lines, gt.lines.grid or GRID
        _check_coordinates(lines, grid, pred.where)
        _check_coordinates(gt_lines, gt_grid, gt.where)
        gt_ends = _scale_to_128(gt_lines.ends, gt_grid)
        counts: dict[str, Any] = {
            **counter(drawn, gt, protocol),
            "lines": _match_lines(lines, _scale_to_128(lines.ends, grid), gt_ends),
            "n_lines": float(len(gt_ends)),
            "junctions": np.zeros((0, 4)),
            "n_junctions": np.nan,
        }
        if lines.junctions is not None and gt_lines.junctions is not None:
            gt_junctions = _scale_to_128(gt_lines.junctions[:, :2], gt_grid)  # (M, row and column)
            counts["n_junctions"] = float(len(gt_junctions))
            if len(gt_junctions):  # L-CNN's program ignores predictions in images without junctions
                # (J, 3): row and column, in cells of `grid`, and score of each predicted junction
                best_first = lines.junctions[np.argsort(-lines.junctions[:, 2], kind="stable")]
                pred_junctions = _scale_to_128(best_first[:, :2], grid)
                offsets = pred_junctions[:, None] - gt_junctions  # (J, M, 2)
                is_hit = _find_hits(np.sqrt((offsets**2).sum(axis=-1)), JUNCTION_THRESHOLDS)
                counts["junctions"] = np.column_stack([best_first[:, 2], is_hit])
        return counts

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: WireframeOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) if lines fit better with rows and columns exchanged.

        That is, if over 2 n + 1 predicted lines are true positives at the largest distance
        threshold when rows and columns are exchanged, but only n as given.
        """
        grid = _grid_of(pred, gt, opt)
        gt_ends = _scale_to_128(gt.lines.ends, gt.lines.grid or GRID)  # GRID is 128 x 128
        n_hits = []  # true positives at the largest distance threshold: as given, exchanged
        for order in ([0, 1, 2, 3], [1, 0, 3, 2]):  # the columns hold row, column, row, column
            pred_ends = _scale_to_128(pred.lines.ends[:, order], grid)
            n_hits.append(_match_lines(pred.lines, pred_ends, gt_ends)[:, -1].sum())
        as_given, exchanged = n_hits
        if exchanged > 2 * as_given + 1:
            problem = "lines fit the truth only with rows and columns exchanged"
            yield "transposed", problem, "write row, column of both ends"

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: WireframeOptions
    ) -> ScoreTree:
        """Compute the scores of pixels, lines and junctions for S data sets.

        stack: the counts of N images. weights (S, N): how often each occurs in each data set.

        Returns the `curve_scores` of the pixels, and `fh`, `aph` (pixels), `sap5`, `sap10`,
        `sap15`, `msap` (lines) and `map_j` (junctions), float64 (S,).
        """
        scores = curve_scores(stack["thresholds"], stack["matches"], weights, protocol)
        curve = scores["curve"]
        # (S, T). The program of L-CNN sorts recalls and precisions separately, and pairs the lowest
        # recall with the highest precision, and so on. So precision never rises along the curve,
        # and AP is the sum of the steps of recall, each times its precision
        recall, precision = np.sort(curve.recall), np.sort(curve.precision)[:, ::-1]
        scores["fh"] = f_measure(precision, recall).max(axis=1)
        scores["aph"] = np.sum(np.diff(recall, prepend=0.0) * precision, axis=1)
        # `lines` (N, L, 4): score, then 1 or 0 for a hit at three distances. AP at each, (S, 3)
        sap = _pooled_ap(stack["lines"], stack["n_lines"], weights)
        for k, threshold in enumerate(LINE_THRESHOLDS):
            scores[f"sap{threshold:g}"] = sap[:, k]
        junction_ap = _pooled_ap(stack["junctions"], stack["n_junctions"], weights)
        return {**scores, "msap": sap.mean(axis=1), "map_j": junction_ap.mean(axis=1)}


def _grid_of(pred: Prediction, gt: GroundTruth, opt: WireframeOptions) -> Grid:
    """Return the range (rows, columns) of predicted coordinates, by the file or the option."""
    return pred.lines.grid or (gt.shape if opt.lines_in == "image" else GRID)


def _match_lines(lines: Lines, pred_ends: Floats, gt_ends: Floats) -> Floats:
    """Match predicted lines to annotated ones, in the order of the file.

    lines: the N predicted lines as they are in the file. Networks fill up a file of fixed length
        with its first lines. If the first line occurs again, it and all that follow are ignored.
    pred_ends (N, 4), gt_ends (M, 4): row and column of both ends, on the grid of 128 x 128.

    Returns float64 (L, 4) for the L lines before the padding: the score, then 1 or 0 for each of
    LINE_THRESHOLDS, by whether the line is a true positive: its nearest annotated line is closer
    than the threshold, and is not the match of an earlier line.
    """
    equals_first = (lines.ends == lines.ends[:1]).all(axis=1)
    repetitions = np.flatnonzero(equals_first)[1:]  # without the first line itself
    n_lines = repetitions[0] if repetitions.size else len(pred_ends)
    pred = pred_ends[:n_lines].reshape(-1, 1, 2, 2)  # (L, 1, end, row and column)
    gt = gt_ends.reshape(1, -1, 2, 2)  # (1, M, end, row and column)
    # Sum of the squared distances between ends, (L, M), with the ends of gt in either order.
    # LINE_THRESHOLDS are limits of this sum, without a root
    distance = ((pred - gt) ** 2).sum(axis=(2, 3))
    swapped_distance = ((pred - gt[:, :, ::-1]) ** 2).sum(axis=(2, 3))
    is_hit = _find_hits(np.minimum(distance, swapped_distance), LINE_THRESHOLDS)
    return np.column_stack([lines.scores[:n_lines], is_hit])


def _check_coordinates(lines: Lines, grid: Grid, where: str) -> None:
    """Raise DataError if coordinates of lines or junctions are implausible for `grid`.

    If no coordinate exceeds 1, and some end of a line is not at 0, they are probably fractions of
    the image size; negative ones occur, as networks may place points outside. If a coordinate
    exceeds the grid (rows, columns) by more than SLACK (2) cells, the grid is probably larger.
    `where` names the file in the message.
    """
    junctions = np.zeros((0, 3)) if lines.junctions is None else lines.junctions
    points = np.concatenate([lines.ends.reshape(-1, 2), junctions[:, :2]])
    if not points.size:
        return
    row, column = points.max(axis=0)
    if max(row, column) <= 1 and lines.ends.any():
        span = f"{min(0, points.min()):.4g} .. {max(row, column):.4g}"
        raise DataError(
            f"{where}: all coordinates lie within {span}, expected those of "
            f"a grid of {grid[0]} x {grid[1]} (image fractions? multiply by rows and columns)"
        )
    if row > grid[0] + SLACK or column > grid[1] + SLACK:
        raise DataError(
            f"{where}: lines up to row {row:.4g}, column {column:.4g}, expected them inside "
            f"a grid of {grid[0]} x {grid[1]} (in pixels: wireframe.lines_in=image; on the network "
            f"grid {GRID[0]} x {GRID[1]}: lines_in=network; other: `grid` in the file; points are "
            "row, column)"
        )


def _scale_to_128(coordinates: Floats, grid: Grid) -> Floats:
    """Scale points (N, 2) or lines (N, 4), row column (row column), from `grid` to 128 x 128."""
    scale = np.divide(GRID, grid)  # of rows and of columns
    return coordinates * np.resize(scale, coordinates.shape[1])


def _find_hits(distance: Floats, thresholds: tuple[float, ...]) -> Bools:
    """Determine which of P predictions are true positives at K distance thresholds, bool (P, K).

    A prediction is a true positive if its nearest annotation (the first of several equally near) is
    closer than the threshold, and no earlier prediction was matched to the same annotation.

    distance (P, M): the distance of each prediction from each of M annotations, with predictions in
        the order in which they are matched.
    """
    is_hit = np.zeros((len(distance), len(thresholds)), bool)
    if not distance.size:
        return is_hit
    nearest_annotation, least_distance = distance.argmin(axis=1), distance.min(axis=1)
    for k, threshold in enumerate(thresholds):
        candidates = np.flatnonzero(least_distance < threshold)
        # `unique` gives the position of the first candidate of each annotation
        first = np.unique(nearest_annotation[candidates], return_index=True)[1]
        is_hit[candidates[first], k] = True
    return is_hit


def _pooled_ap(predictions: Floats, n_annotated: Floats, weights: Weights) -> Floats:
    """Compute interpolated average precision at three distance thresholds for S data sets.

    The predictions of all images are ranked together by score; equal scores keep the images' order.
    Returns float64 (S, 3), NaN for a data set in which nothing is annotated.

    predictions (N, L, 4): for each predicted line or junction of N images the score, then 1 or 0
        for each threshold, by whether it is a true positive; padded with rows of NaN.
    n_annotated (N,): the number of annotated lines or junctions; NaN counts as 0.
    weights (S, N): how often each image occurs in each of S data sets.
    """
    from bsdsbench.kernels.curves import sum_interpolated_precision

    image, row = np.nonzero(~np.isnan(predictions[..., 0]))
    pooled = predictions[image, row]  # (predictions of all images, 4): score, then 0 or 1
    order = np.argsort(-pooled[:, 0], kind="stable")
    scores, hits = pooled[order, 0], np.ascontiguousarray(pooled[order, 1:] != 0)
    # The sum over hits of the precision at the rank of the hit, or of the largest at a later rank,
    # (S, 3). An image that occurs twice in a data set has its predictions of equal score twice in a
    # row (a, b, a, b, not a, a, b, b): therefore the kernel needs the scores
    times = np.ascontiguousarray(weights, np.int64)
    sums = sum_interpolated_precision(image[order], scores, hits, times)
    total = weighted_sum(weights, np.nan_to_num(n_annotated))[:, None]
    return defined_ratio(sums, total)  # AP, of all annotations
