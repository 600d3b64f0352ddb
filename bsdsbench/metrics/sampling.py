"""A data set's scores under image weights: what a bootstrap or a jackknife asks thousands of times.

Weights (B, N) say how often each of N images is in each of B samples; weights @ counts are the sums
of each sample. All are integers far below 2^53, so the float64 product is exact in any order.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.ap_rules import area, rows_of_counts
from bsdsbench.scores.precision_recall import (
    RECALL_LEVELS,
    CurveCounts,
    f_measure,
    four_counts,
    image_best_index,
    ratio,
)

F8 = NDArray[np.float64]
_STEPS = np.arange(100) / 99


class Sampler(typing.Protocol):
    """What `Metric.sampler` gives."""

    def scores(self, weights: F8) -> dict[str, F8]:
        """Key of a score column -> (B,), for weights (B, N)."""


class CurveSampler:
    """ods, ois and ap of summed counts; r50 where it is asked for.

    more : further scores, each a function of the weights
    """

    def __init__(
        self,
        counts: Sequence[CurveCounts],
        protocol: Protocol,
        *,
        r50: bool = False,
        more: Mapping[str, Callable[[F8], F8]] | None = None,
    ) -> None:
        self.protocol = protocol
        self.thresholds = counts[0].thresholds
        self.table = np.stack([four_counts(c) for c in counts]).astype(np.float64)  # (N, T, 4)
        best = [image_best_index(c) for c in counts]
        self.chosen = self.table[np.arange(len(counts)), best]  # (N, 4), the OIS rule
        self.r50 = r50
        self.more = dict(more or {})

    def curves(self, weights: F8) -> tuple[F8, F8]:
        """Precision and recall of each sample, both (B, T)."""
        sums = self._sums(weights)
        return ratio(sums[..., 2], sums[..., 3]), ratio(sums[..., 0], sums[..., 1])

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        from bsdsbench.kernels.resample import best_f, recall_at

        precision, recall = self.curves(weights)
        one = weights @ self.chosen
        interpolated = self.protocol.ods_rule == "interpolated"
        out = {
            "ods": best_f(precision, recall, _STEPS)
            if interpolated
            else f_measure(precision, recall).max(axis=-1),
            "ois": f_measure(ratio(one[:, 2], one[:, 3]), ratio(one[:, 0], one[:, 1])),
            "ap": self._areas(weights, precision, recall),
        }
        if self.r50:
            out["r50"] = recall_at(precision, recall, 0.5)
        return {**out, **{name: value(weights) for name, value in self.more.items()}}

    def _sums(self, weights: F8) -> F8:
        n, t, _ = self.table.shape
        sums: F8 = (weights @ self.table.reshape(n, t * 4)).reshape(-1, t, 4)
        return sums

    def _areas(self, weights: F8, precision: F8, recall: F8) -> F8:
        """AP of each sample, (B,), by the protocol's rule; the official one has a kernel. NaN where
        the curve of a sample is one point."""
        rule, operator = self.protocol.ap_rule, self.protocol.operator
        if rule == "bsds" and not self.protocol.whole_image:
            areas = official_areas(precision, recall)
        else:
            rows = (rows_of_counts(self.thresholds, s, operator) for s in self._sums(weights))
            areas = np.array([area(r, rule) for r in rows])
        return defined_areas(recall, areas)


def defined_areas(recall: F8, areas: F8) -> F8:
    """The areas (B,) of curves with recall (B, T), NaN where a curve is one point."""
    point = (recall[:, 0] > 0) & (recall == recall[:, :1]).all(axis=1)
    return np.where(point, np.nan, areas)


class MeanSampler:
    """Scores that are means over images, and ratios of sums.

    means  : score -> (N,), each image's value
    bests  : score -> (N, T); the mean over images at each threshold, then the largest
    ratios : score -> (numerators (N,), denominators (N,)), summed before they are divided
    NaN marks an image that has no such value: it is left out of the mean.
    """

    def __init__(
        self,
        means: Mapping[str, Any],
        bests: Mapping[str, Any] | None = None,
        ratios: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> None:
        self.means = {k: np.asarray(v, np.float64) for k, v in means.items()}
        self.bests = {k: np.asarray(v, np.float64) for k, v in (bests or {}).items()}
        self.ratios = {
            k: (np.asarray(a, np.float64), np.asarray(b, np.float64))
            for k, (a, b) in (ratios or {}).items()
        }

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        n = weights.sum(axis=1)
        out = {}
        for name, values in self.means.items():
            there = ~np.isnan(values)
            total = weights @ np.where(there, values, 0.0)
            out[name] = np.where(weights @ there > 0, ratio(total, weights @ there), np.nan)
        for name, table in self.bests.items():
            out[name] = (weights @ table / n[:, None]).max(axis=1)
        for name, (top, bottom) in self.ratios.items():
            out[name] = ratio(weights @ top, weights @ bottom)
        return out


class JoinedSampler:
    """Samplers of the parts of a score: the keys of each with its name in front, if it has one."""

    def __init__(self, parts: Mapping[str, Sampler]) -> None:
        self.parts = dict(parts)

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        return {
            f"{name}.{key}" if name else key: values
            for name, part in self.parts.items()
            for key, values in part.scores(weights).items()
        }


def official_areas(precision: F8, recall: F8) -> F8:
    """Average precision of each curve (B, T) by the official rule, (B,)."""
    from bsdsbench.kernels.resample import precision_at

    return precision_at(recall, precision, RECALL_LEVELS).sum(axis=-1) * 0.01
