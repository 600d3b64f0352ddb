"""Metrics with a precision-recall curve: what they share, their score, and their matched pixels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.columns import Column
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts, Counts, Stack
from bsdsbench.scores.curve import (
    CurveCounts,
    OperatingPoint,
    PRCurve,
    best,
    best_point,
    curve_columns,
    pr_curve,
)
from bsdsbench.scores.ratios import Weights, or_none
from bsdsbench.tables.read_only import ReadOnly
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
_S = TypeVar("_S", bound="CurveScore")


class CurveMetric(Metric):
    """A metric with a precision-recall curve: ODS, OIS, AP, curves and bootstrap come with it.

    Its counts are `CurveCounts`: thresholds f8 (T,), matched_gt, total_gt, matched_pred and
    total_pred i8 (T,). Most need no more than `count` and `example`.

    Examples
    --------
    >>> from bsdsbench.metrics import registry
    >>> metric = registry.get("pixel")
    >>> [column.key for column in metric.columns[:3]]
    ['ods', 'ods.threshold', 'ois']
    >>> metric.image_values(metric.count(*metric.example()))["f"]
    0.0
    """

    counts_type: ClassVar[type[Counts]] = BoundaryCounts
    columns: ClassVar[tuple[Column, ...]] = (
        Column("ods", "ODS"),
        Column("ods.threshold", "ODS threshold", "at", digits=3, shown="own", score=False),
        Column("ods.precision", "ODS P", "P", shown="own", score=False),
        Column("ods.recall", "ODS R", "R", shown="own", score=False),
        Column("ois", "OIS"),
        Column(
            "ap", "AP", undefined="recall is the same at every threshold, so nothing has an area"
        ),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("f", "F"),
        Column("precision", "P"),
        Column("recall", "R"),
        Column("threshold", "at", score=False),
    )

    def four(self, stack: Stack) -> NDArray[np.int64]:
        """matched_gt, total_gt, matched_pred and total_pred of each image, i8 (N, T, 4).

        Parameters
        ----------
        stack : dict of str to array
            Field -> (N, ...), see `Counts.stacked`.

        Returns
        -------
        array
            i8 (N, T, 4).
        """
        names = ("matched_gt", "total_gt", "matched_pred", "total_pred")
        return np.stack([stack[name] for name in names], axis=-1)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        return curve_columns(stack["thresholds"], self.four(stack), weights, protocol)

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> CurveScore:
        return CurveScore.of(values, stack["thresholds"], self.four(stack), ids, protocol)

    def image_values(self, counts: CurveCounts) -> dict[str, float]:
        return best_point(pr_curve(counts)).to_mapping()

    def best_of_images(self, counts: Sequence[Any]) -> list[dict[str, float]]:
        """`values_of_images` of a metric whose image values are these: all curves at once.

        Parameters
        ----------
        counts : sequence of Counts
            Of images with the same thresholds.

        Returns
        -------
        list of dict
            In their order.
        """
        if not counts:
            return []
        stack = self.counts_type.stacked(counts)
        points = best(PRCurve.of_counts(stack["thresholds"], self.four(stack)))
        return [OperatingPoint(*map(float, p)).to_mapping() for p in zip(*points, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class MatchMaps(ReadOnly):
    """Which pixels are matched at one threshold, for overlays. All bool, read-only.

    true_pred, false_pred : (H, W), predicted pixels matched with some annotator, with none
    matched_gt, missed_gt : (A, H, W), each annotator's pixels that are matched, that are not
    """

    true_pred: NDArray[np.bool_]
    false_pred: NDArray[np.bool_]
    matched_gt: NDArray[np.bool_]
    missed_gt: NDArray[np.bool_]


class MatchingMetric(CurveMetric):
    """A curve metric whose matched pixels can be drawn."""

    def draws(self, protocol: Protocol) -> bool:
        """False if nothing is matched with these options.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        bool
            True for most metrics.
        """
        return True

    @abstractmethod
    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
    ) -> MatchMaps:
        """The pixels that `count` counts at one threshold."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class CurveScore(ShownScore):
    """Scores of a metric with a PR curve; all in [0, 1].

    Parameters
    ----------
    ods, ois : OperatingPoint
        Best F at one threshold of all images, and at each image's own.
    ap : float
        Area under the PR curve; NaN where recall is the same at every threshold (label maps).
    n_images : int
        Number of images.
    curve : PRCurve
        Counts summed over the images, at each threshold.
    per_image : tuple of tuple of str, OperatingPoint
        (image id, its best point), in id order.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> score = bb.boundary_score(bb.boundary_counts(line, [line], "bsds500"))
    >>> score.ois.f, score.per_image[0]
    (1.0, ('image', OperatingPoint(threshold=0.01, precision=1.0, recall=1.0, f=1.0)))
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    n_images: int
    curve: PRCurve
    per_image: tuple[tuple[str, OperatingPoint], ...]

    @classmethod
    def of(
        cls: type[_S],
        values: Mapping[str, float],
        thresholds: F8,
        four: NDArray[np.int64],
        ids: Sequence[str],
        protocol: Protocol,
        **more: float,
    ) -> _S:
        """From the columns of `curve_columns` and the counts (N, T, 4) that they are made of.

        Parameters
        ----------
        values : dict of str to float
            What `curve_columns` gives.
        thresholds : array
            f8 (T,).
        four : array
            i8 (N, T, 4), see `CurveMetric.four`.
        ids : sequence of str
            Image ids, in the order of the stack.
        protocol : Protocol
            Its settings and options.
        **more : float
            Further fields of the class.
        """
        points = zip(*best(PRCurve.of_counts(thresholds, four)), strict=True)
        p, r, own_p, own_r = (
            values[k] for k in ("ods.precision", "ods.recall", "ois.precision", "ois.recall")
        )
        return cls(
            ods=OperatingPoint(values["ods.threshold"], p, r, values["ods"]),
            ois=OperatingPoint(None, own_p, own_r, values["ois"]),
            ap=values["ap"],
            n_images=len(ids),
            curve=PRCurve.of_counts(thresholds, four.sum(axis=0), protocol.operator),
            per_image=tuple(
                (image_id, OperatingPoint(*map(float, point)))
                for image_id, point in zip(ids, points, strict=True)
            ),
            **more,
        )

    def more(self) -> dict[str, Any]:
        """Scores beside ODS, OIS and AP, as plain values.

        Returns
        -------
        dict
            Name -> value; empty here.
        """
        return {}

    def to_mapping(self) -> dict[str, Any]:
        return {
            "ods": self.ods.to_mapping(),
            "ois": self.ois.to_mapping(),
            "ap": or_none(self.ap),
            **self.more(),
            "n_images": self.n_images,
        }
