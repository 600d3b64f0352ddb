"""Wireframes: the pixels of straight lines matched with those of annotated lines, F^H and AP^H.

At each score threshold the lines above it are drawn and matched one to one with the annotated
ones (bsdsbench.loaders.line_maps, bsdsbench.metrics.boundary). TP are the matched predicted pixels,
summed over images; precision is TP / predicted pixels, recall TP / annotated pixels.

Then, as in L-CNN's program, recalls in ascending and precisions in descending order are paired by
rank, regardless of their thresholds. F^H is the largest F of these pairs. AP^H is the area under
the largest precision at a recall or a higher one, with precision 0 at recall 0 and at recall 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import (
    CURVE,
    MAPS,
    MATCHING,
    Column,
    CurveMetric,
    CurveScore,
    MatchingMetric,
    MatchMaps,
)
from bsdsbench.metrics.boundary import boundary_counts, boundary_match_maps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts, Stack
from bsdsbench.scores.curve import PRCurve, summed_curve
from bsdsbench.scores.ratios import Weights, f_measure

F8 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class WireframeScore(CurveScore):
    """F^H and AP^H, and the curve they are made of; ods, ois and ap as in `CurveScore`."""

    fh: float
    aph: float

    def more(self) -> dict[str, Any]:
        """fh and aph."""
        return {"fh": self.fh, "aph": self.aph}


class WireframeMetric(MatchingMetric):
    """Straight lines: pixels of lines matched one to one within a tolerance."""

    name = "wireframe"
    title = "Wireframes"
    pred_kinds = ("lines",)
    gt_kind = "lines"
    default_protocol = "wireframe"
    uses = (*MAPS, *CURVE, *MATCHING)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("fh", "F^H"),
        Column("aph", "AP^H"),
        CurveMetric.columns[-1],
    )

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> BoundaryCounts:
        """See `bsdsbench.boundary_counts`: a map of line scores against the annotated lines."""
        return boundary_counts(pred, gt, protocol)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """F^H and AP^H, beside those of `CurveMetric`."""
        curve = summed_curve(stack["thresholds"], self.four(stack), weights)
        found = dict(zip(("fh", "aph"), heat_scores(curve), strict=True))
        return {**super().scores(stack, weights, protocol), **found}

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> WireframeScore:
        """F^H, AP^H and the curve."""
        more = {name: values[name] for name in ("fh", "aph")}
        return WireframeScore.of(
            values, stack["thresholds"], self.four(stack), ids, protocol, **more
        )

    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
    ) -> MatchMaps:
        """See `boundary_match_maps`."""
        return boundary_match_maps(pred, gt, protocol, threshold)

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """A line of a few pixels."""
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
