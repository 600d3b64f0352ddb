"""Wireframes: are the straight lines and the junctions of a building found?

Definition. F^H and AP^H count pixels. At each threshold of the score, the lines above it are drawn
and matched one to one with the annotated lines (loaders.formats.line_files, metrics.boundary). TP
is the number of matched predicted pixels, summed over images; precision is TP / predicted pixels,
recall TP / annotated pixels. As in L-CNN's program, recalls in ascending and precisions in
descending order are then paired by rank, regardless of their thresholds. F^H is the largest F of
these pairs. AP^H is the area under the interpolated curve (the largest precision at this or a
higher recall), with precision 0 at recall 0 and at recall 1.

sAP compares end points on a grid of 128 x 128. The distance of two lines is the sum of the squared
distances of their ends, for the better of the two ways to pair the ends. Predictions are taken in
the order of the file: one is true if its nearest annotated line (the first of equally near ones) is
nearer than 5, 10 or 15 and not yet taken. The predictions of all images are then ranked by score,
ties in the order of images and files. sAP is the area under the interpolated curve; msAP is the
mean of the three. mAP^J does the same for junctions, as the mean over the distances 0.5, 1 and 2;
junctions are taken by falling score, not in the order of the file.

Conventions. Junctions in an image without annotated junctions are neither true nor false. Networks
pad their output by repeating its first lines. For F^H and AP^H the lines of a file end at the first
repetition of the first score (if the best lines of a detector all have the score 1, one line is
left), for sAP at the first repetition of the first line.

Source. L-CNN (Zhou, Qi, Ma, ICCV 2019), eval-sAP.py, eval-APH.py, eval-mAPJ.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from bsdsbench.arguments import F8, Bool
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Lines, Prediction
from bsdsbench.loaders.formats.line_files import GRID, drawn_lines
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, Metric, ScoreTree
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.protocol.fields import one_of, option
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_ratio, f_measure, weighted_sum

SQUARED = (5.0, 10.0, 15.0)  # limits of the distances of lines
APART = (0.5, 1.0, 2.0)  # limits of the distances of junctions
SLACK = 2.0  # grid cells: networks place points slightly beyond their grid
FURTHER = ("fh", "aph", "sap5", "sap10", "sap15", "msap", "map_j")


@frozen
class WireframeOptions:
    """The option that says what the coordinates of predicted lines are."""

    lines_in: str = option(
        "network",
        'Grid of the coordinates in files without a `grid`: of the "network" (128 x 128) or of the '
        '"image".',
        one_of("network", "image"),
        caption={"image": "lines in pixels of the image"},
    )


class WireframeMetric(Metric[WireframeOptions]):
    """Straight lines: pixels matched within a tolerance, ends and junctions by their distance."""

    name = "wireframe"
    title = "Wireframes"
    version = 3
    reads = "lines"
    ragged = ("lines", "junctions")
    default_protocol = "wireframe"
    options = WireframeOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    curved = cuts_at_thresholds = has_errors = True
    columns = (
        Column("fh", "F^H"),
        Column("aph", "AP^H"),
        *(Column(f"sap{k:g}", f"sAP{k:g}", quantity="sap") for k in SQUARED),
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
        """Count pixels as `bsdsbench.boundary_counts` does, and lines and junctions by distance.

        lines : f8 (L, 4), each predicted line's score and whether it is true at 5, 10 and 15
        junctions : f8 (J, 4), the same at 0.5, 1 and 2, by falling score; none if none is annotated
        n_lines, n_junctions : f8 (), number of annotated ones, NaN if either side has no such data
        """
        counts: dict[str, Any] = {**counter(self._drawn(pred, gt, opt), gt, protocol)}
        counts |= dict.fromkeys(self.ragged, np.zeros((0, 4)))
        counts |= dict.fromkeys(("n_lines", "n_junctions"), np.nan)
        if "lines" not in pred.parts or "lines" not in gt.parts:
            return counts
        drawn, truth = pred.lines, gt.lines
        grid, true_grid = self._grid(drawn, gt, opt), truth.grid or GRID
        _check_places(drawn, grid, pred.where)
        _check_places(truth, true_grid, gt.where)
        again = np.flatnonzero((drawn.ends[1:] == drawn.ends[:1]).all(axis=1)) + 1
        lines = _scaled(drawn.ends, grid)[: again[0] if again.size else None]
        a = lines.reshape(-1, 1, 2, 2)
        b = _scaled(truth.ends, true_grid).reshape(1, -1, 2, 2)
        straight, crossed = (((a - other) ** 2).sum(axis=(2, 3)) for other in (b, b[:, :, ::-1]))
        hits = _hits(np.minimum(straight, crossed), SQUARED)
        counts["lines"] = np.column_stack([drawn.scores[: len(lines)], hits])
        counts["n_lines"] = float(len(truth.ends))
        if drawn.junctions is not None and truth.junctions is not None:
            places = _scaled(truth.junctions[:, :2], true_grid)
            best_first = np.argsort(-drawn.junctions[:, 2], kind="stable")
            juncs = drawn.junctions[best_first if len(places) else []]
            apart = _scaled(juncs[:, :2], grid)[:, None] - places
            hits = _hits(np.sqrt((apart**2).sum(axis=-1)), APART)
            counts["junctions"] = np.column_stack([juncs[:, 2], hits])
            counts["n_junctions"] = float(len(places))
        return counts

    def _grid(self, lines: Lines, gt: GroundTruth, opt: WireframeOptions) -> tuple[int, int]:
        """Return the (rows, columns) of the grid of predicted coordinates."""
        return lines.grid or (gt.shape if opt.lines_in == "image" else GRID)

    def _drawn(self, pred: Prediction, gt: GroundTruth, opt: WireframeOptions) -> Prediction:
        """Return the prediction with a soft map of its lines, drawn from the grid of its lines."""
        if "lines" not in pred.parts or pred.lines.grid:
            return pred
        grid = self._grid(pred.lines, gt, opt)
        drawn = pred.soft if grid == GRID else drawn_lines(pred.lines, gt.shape, grid)
        return Prediction(pred.image_id, pred.path, soft=drawn)

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: WireframeOptions
    ) -> ScoreTree:
        """Return F^H, AP^H, sAP and mAP^J, beside ODS, OIS, AP and curve of the pixels."""
        pixels = curve_scores(stack["thresholds"], stack["matches"], weights, protocol)
        curve = pixels["curve"]
        recall, precision = np.sort(curve.recall), np.sort(curve.precision)[:, ::-1]
        ap = np.sum(np.diff(recall, prepend=0.0) * precision, axis=1)
        sap = _pooled_ap(stack["lines"], stack["n_lines"], weights)
        junctions = _pooled_ap(stack["junctions"], stack["n_junctions"], weights)
        best_f = f_measure(precision, recall).max(axis=1)
        further = (best_f, ap, *sap.T, sap.mean(axis=1), junctions.mean(axis=1))
        return {**pixels, **dict(zip(FURTHER, further, strict=True))}


def _check_places(lines: Lines, grid: tuple[int, int], where: str) -> None:
    """Raise DataError if lines lie beyond their grid, or all of them in its first cell."""
    junctions = np.zeros((0, 3)) if lines.junctions is None else lines.junctions
    places = np.concatenate([lines.ends.reshape(-1, 2), junctions[:, :2]])
    if not places.size:
        return
    row, column = places.max(axis=0)
    if max(row, column) <= 1 and lines.ends.any():
        raise DataError(
            f"{where}: all coordinates lie within 0 .. {max(row, column):.4g}, expected those of "
            f"a grid of {grid[0]} x {grid[1]} (shares of the picture? multiply by rows and columns)"
        )
    if row > grid[0] + SLACK or column > grid[1] + SLACK:
        raise DataError(
            f"{where}: lines up to row {row:.4g}, column {column:.4g}, expected them inside "
            f"a grid of {grid[0]} x {grid[1]} (pixels of the picture: wireframe.lines_in=image; "
            f"of the network's {GRID[0]} x {GRID[1]}: lines_in=network; another: `grid` in the "
            "file; each point is row, column)"
        )


def _scaled(values: F8, grid: tuple[int, int]) -> F8:
    """Scale coordinates (row, column, ...) from a grid to the grid of 128 x 128."""
    factor = np.resize(np.divide(GRID, grid), values.shape[1])
    return values if grid == GRID else np.asarray(values * factor)


def _hits(distance: F8, limits: tuple[float, ...]) -> Bool:
    """Tell which predictions are true at each limit, (P, limits), from distances (P, annotated).

    A prediction is true if its nearest annotated item is nearer than the limit and no earlier
    prediction has taken that item.
    """
    out = np.zeros((len(distance), len(limits)), bool)
    if distance.size:
        nearest, least = distance.argmin(axis=1), distance.min(axis=1)
        for k, limit in enumerate(limits):
            near = np.flatnonzero(least < limit)
            out[near[np.unique(nearest[near], return_index=True)[1]], k] = True
    return out


def _pooled_ap(ranked: F8, n_true: F8, weights: Weights) -> F8:
    """Compute AP at each limit for S weighted data sets, (S, 3); NaN if nothing is annotated.

    `ranked` (N, L, 4) has the score and three hits of each prediction; rows of NaN fill up images
    with fewer than L predictions. `n_true` (N,) is the number of annotated items.
    """
    from bsdsbench.kernels.pooled_ap import sum_interpolated_precision

    image, row = np.nonzero(~np.isnan(ranked[..., 0]))
    rows = ranked[image, row]
    order = np.argsort(-rows[:, 0], kind="stable")
    hits = np.ascontiguousarray(rows[order, 1:] != 0)
    sums = sum_interpolated_precision(
        image[order], rows[order, 0], hits, np.ascontiguousarray(weights, np.int64)
    )
    total = weighted_sum(weights, np.nan_to_num(n_true))[:, None]
    return defined_ratio(sums, total)
