"""Wireframes: straight lines and junctions against annotated ones.

F^H and AP^H, by pixels: at each score threshold the lines above it are drawn and matched one to one
with the annotated ones (bsdsbench.loaders.line_maps, bsdsbench.metrics.boundary). TP are the
matched predicted pixels, summed over images; precision is TP / predicted pixels, recall TP /
annotated pixels. Then, as in L-CNN's program, recalls in ascending and precisions in descending
order are paired by rank, regardless of their thresholds. F^H is the largest F of these pairs. AP^H
is the area under the largest precision at a recall or a higher one, with precision 0 at recall 0
and at recall 1.

sAP, by ends, on a grid of 128 x 128: the distance of two lines is the smaller of the two sums of
squared distances of their ends. In the order of the file a prediction is true if its nearest
annotated line, the first of equals, is nearer than 5, 10 or 15 and not taken. All images'
predictions are ranked by score, equal ones in the order of images and files. sAP is the area under
the largest precision at a recall or a higher one; msAP is the mean of three. mAP^J is the same of
junctions, mean of the distances 0.5, 1 and 2.

A file's lines end where one equals the first (the networks' output is padded so).

Source: L-CNN (Zhou, Qi, Ma, ICCV 2019), eval-sAP.py, eval-APH.py, eval-mAPJ.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Lines, Prediction
from bsdsbench.loaders.line_files import drawn_lines
from bsdsbench.loaders.line_maps import GRID
from bsdsbench.metrics.boundary import boundary_counts, boundary_match_maps
from bsdsbench.metrics.columns import Column
from bsdsbench.metrics.curve_metric import CurveMetric, CurveScore, MatchingMetric, MatchMaps
from bsdsbench.protocol.constants import CURVE, MAPS, MATCHING
from bsdsbench.protocol.fields import one_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts, Stack, count_field
from bsdsbench.scores.curve import PRCurve, summed_curve
from bsdsbench.scores.ratios import Weights, defined_ratio, f_measure, or_none, weighted_sum

F8 = NDArray[np.float64]
SQUARED = (5.0, 10.0, 15.0)  # of lines
APART = (0.5, 1.0, 2.0)  # of junctions
MORE = ("fh", "aph", "sap5", "sap10", "sap15", "msap", "map_j")


@frozen
class WireframeOptions:
    """Where predicted lines are."""

    lines_in: str = field(
        default="network",
        validator=one_of("network", "image"),
        metadata={
            "help": (
                'Coordinates of a file that does not say its `grid`: of the "network" (128 '
                'x 128), or of the "image".'
            ),
            "caption": {"image": "lines in pixels of the image"},
            "others": {"network": "L-CNN, HAWP", "image": "detectors that work on the picture"},
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class WireframeCounts(BoundaryCounts):
    """Matched pixels of one image, and its ranked lines and junctions.

    thresholds to total_pred are as in `BoundaryCounts`.

    lines : f8 (L, 4), each line's score and whether it is true at 5, 10 and 15
    junctions : f8 (J, 4), the same at 0.5, 1 and 2
    n_lines, n_junctions : f8 (), those of the truth, NaN without any to compare

    Ranks of one image do not add.
    """

    adds: ClassVar[bool] = False

    lines: F8 | None = count_field("L 4", np.float64, ragged=True, later=True)
    junctions: F8 | None = count_field("J 4", np.float64, ragged=True, later=True)
    n_lines: F8 | None = count_field("", np.float64, later=True)
    n_junctions: F8 | None = count_field("", np.float64, later=True)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class WireframeScore(CurveScore):
    """F^H, AP^H, sAP and mAP^J, and the curve of pixels; ods, ois and ap as in `CurveScore`."""

    fh: float
    aph: float
    sap5: float
    sap10: float
    sap15: float
    msap: float
    map_j: float

    def more(self) -> dict[str, Any]:
        return {name: or_none(getattr(self, name)) for name in MORE}


class WireframeMetric(MatchingMetric):
    """Straight lines: pixels matched within a tolerance, ends and junctions by their distance."""

    name = "wireframe"
    title = "Wireframes"
    version = 2
    pred_kinds = ("lines",)
    gt_kind = "lines"
    counts_type = WireframeCounts
    default_protocol = "wireframe"
    options = WireframeOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("fh", "F^H"),
        Column("aph", "AP^H"),
        Column("sap5", "sAP5", quantity="sap"),
        Column("sap10", "sAP10", quantity="sap"),
        Column("sap15", "sAP15", quantity="sap"),
        Column("msap", "msAP", quantity="sap"),
        Column("map_j", "mAP^J"),
        CurveMetric.columns[-1],
    )

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> WireframeCounts:
        """Pixels as `bsdsbench.boundary_counts`, and lines and junctions by distance."""
        pixels = boundary_counts(self._drawn(pred, gt, protocol), gt, protocol).arrays()
        mine, truth = pred.lines, gt.lines
        if mine is None or truth is None:
            return WireframeCounts(**pixels)
        grid = self._grid(mine, gt, protocol)
        lines = _scaled(mine.ends, grid)[: _padded(mine.ends)]
        true = _scaled(truth.ends, truth.grid or GRID)
        found = {
            "lines": _ranked(mine.scores[: len(lines)], line_hits(lines, true)),
            "n_lines": np.array(float(len(true))),
        }
        if mine.junctions is not None and truth.junctions is not None:
            points = _scaled(mine.junctions[:, :2], grid)
            places = _scaled(truth.junctions[:, :2], truth.grid or GRID)
            found["junctions"] = _ranked(mine.junctions[:, 2], junction_hits(points, places))
            found["n_junctions"] = np.array(float(len(places)))
        return WireframeCounts(**pixels, **found)

    def _grid(self, lines: Lines, gt: GroundTruth, protocol: Protocol) -> tuple[int, int]:
        in_image = self.options_of(protocol).lines_in == "image"
        return lines.grid or (gt.shape if in_image else GRID)

    def _drawn(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Prediction:
        """The prediction with its lines drawn from the grid that they are in."""
        if pred.lines is None or pred.lines.grid:
            return pred
        grid = self._grid(pred.lines, gt, protocol)
        return pred if grid == GRID else replace(pred, soft=drawn_lines(pred.lines, gt.shape, grid))

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """F^H, AP^H, sAP and mAP^J, beside those of `CurveMetric`."""
        curve = summed_curve(stack["thresholds"], self.four(stack), weights)
        sap = pooled_ap(stack["lines"], stack["n_lines"], weights)
        junctions = pooled_ap(stack["junctions"], stack["n_junctions"], weights)
        found = (*heat_scores(curve), *sap.T, sap.mean(axis=1), junctions.mean(axis=1))
        return {**super().scores(stack, weights, protocol), **dict(zip(MORE, found, strict=True))}

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> WireframeScore:
        more = {name: values[name] for name in MORE}
        return WireframeScore.of(
            values, stack["thresholds"], self.four(stack), ids, protocol, **more
        )

    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
    ) -> MatchMaps:
        return boundary_match_maps(self._drawn(pred, gt, protocol), gt, protocol, threshold)

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        drawn = np.zeros((12, 16))
        drawn[3:9, 5] = 0.8
        protocol = Protocol(thresholds=(0.5, 0.7), operator=">", thin=False)
        return Prediction("a", soft=drawn), GroundTruth("a", (drawn > 0,)), protocol


def heat_scores(curve: PRCurve) -> tuple[F8, F8]:
    """F^H and AP^H of a curve, or of each curve of a stack.

    Examples
    --------
    >>> curve = PRCurve(np.array([0.5, 0.9]), np.array([0.5, 0.8]), np.array([0.6, 0.4]))
    >>> [round(float(v), 4) for v in heat_scores(curve)]
    [0.5455, 0.42]
    """
    recall, precision = np.sort(curve.recall), np.sort(curve.precision)[..., ::-1]
    steps = np.diff(recall, prepend=0.0)
    return f_measure(precision, recall).max(axis=-1), np.sum(steps * precision, axis=-1)


def _scaled(values: F8, grid: tuple[int, int]) -> F8:
    """Coordinates row column (row column) of a grid on that of 128 x 128."""
    factor = np.array([*GRID] * (values.shape[1] // 2)) / ([*grid] * (values.shape[1] // 2))
    return values if grid == GRID else np.asarray(values * factor)


def _padded(lines: F8) -> int:
    """How many lines there are before one equals the first."""
    again = np.flatnonzero((lines[1:] == lines[:1]).all(axis=1))
    return int(again[0]) + 1 if again.size else len(lines)


def line_hits(lines: F8, true: F8) -> NDArray[np.bool_]:
    """Which predicted lines (N, 4) are true at 5, 10 and 15, (N, 3)."""
    a, b = lines.reshape(-1, 1, 2, 2), true.reshape(1, -1, 2, 2)
    straight, crossed = (((a - other) ** 2).sum(axis=(2, 3)) for other in (b, b[:, :, ::-1]))
    return _hits(np.minimum(straight, crossed), SQUARED)


def junction_hits(points: F8, true: F8) -> NDArray[np.bool_]:
    """Which predicted junctions (N, 2) are true at 0.5, 1 and 2, (N, 3)."""
    return _hits(np.sqrt(((points[:, None] - true[None]) ** 2).sum(axis=-1)), APART)


def _hits(distance: F8, limits: tuple[float, ...]) -> NDArray[np.bool_]:
    """In their order, whether each row's nearest column is below a limit and not taken."""
    out = np.zeros((len(distance), len(limits)), bool)
    if not distance.size:
        return out
    nearest = distance.argmin(axis=1)
    least = distance[np.arange(len(distance)), nearest]
    for k, limit in enumerate(limits):
        near = np.flatnonzero(least < limit)
        _, first = np.unique(nearest[near], return_index=True)
        out[near[first], k] = True
    return out


def _ranked(scores: F8, hits: NDArray[np.bool_]) -> F8:
    return np.column_stack([scores, hits]).astype(np.float64)


def pooled_ap(ranked: F8, n_true: F8, weights: Weights) -> F8:
    """AP at each limit of the weighted sets, (S, 3); NaN without anything true.

    ranked : f8 (N, L, 4), score and hits, NaN where an image has no more; n_true : f8 (N,)
    """
    from bsdsbench.kernels.pooled_ap import hit_sums

    image, at = np.nonzero(~np.isnan(ranked[..., 0]))
    rows = ranked[image, at]
    order = np.argsort(-rows[:, 0], kind="stable")
    hits = np.ascontiguousarray(rows[order, 1:] != 0)
    sums = hit_sums(image[order], rows[order, 0], hits, np.ascontiguousarray(weights, np.int64))
    total = weighted_sum(weights, np.nan_to_num(n_true))[:, None]
    return defined_ratio(sums, total)
