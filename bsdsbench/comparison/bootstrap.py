"""A run's scores under image weights: what a bootstrap or a jackknife asks thousands of times.

A `Sampler` holds the counts of all images as one table. Weights (B, N) say how often each of N
images is in each of B samples; weights @ counts are the sums of each sample. All are integers far
below 2^53, so the float64 product is exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.precision_recall import RECALL_LEVELS, f_measure, image_best_index, ratio
from bsdsbench.core.records import ImageRecord
from bsdsbench.kernels.resample import best_f, precision_at, recall_at
from bsdsbench.metrics.region.scoring import fop_curve
from bsdsbench.runs.evaluation import Evaluation

F8 = NDArray[np.float64]
_STEPS = np.arange(100) / 99
_FIELDS = ("matched_gt", "total_gt", "matched_pred", "total_pred")


class CurveSampler:
    """Boundary or pixel scores: ods, ois, ap, r50 (boundary), mae (pixel)."""

    def __init__(self, records: Sequence[ImageRecord], metric: str) -> None:
        counts: list[Any] = [r.counts()[metric] for r in records]
        self.metric = metric
        self.table = np.stack([_four(c) for c in counts]).astype(np.float64)  # (N, T, 4)
        best = [image_best_index(c) for c in counts]
        self.chosen = self.table[np.arange(len(counts)), best]  # (N, 4), the OIS rule
        if metric == "pixel":
            self.errors = np.array([[float(c.abs_error_sum), c.n_pixels] for c in counts])

    def curves(self, weights: F8) -> tuple[F8, F8]:
        """Precision and recall of each sample, both (B, T)."""
        n, t, _ = self.table.shape
        sums = (weights @ self.table.reshape(n, t * 4)).reshape(-1, t, 4)
        return ratio(sums[..., 2], sums[..., 3]), ratio(sums[..., 0], sums[..., 1])

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        precision, recall = self.curves(weights)
        one = weights @ self.chosen
        out = {
            "ods": best_f(precision, recall, _STEPS),
            "ois": f_measure(ratio(one[:, 2], one[:, 3]), ratio(one[:, 0], one[:, 1])),
            "ap": precision_at(recall, precision, RECALL_LEVELS).sum(axis=-1) * 0.01,
        }
        if self.metric == "boundary":
            out["r50"] = recall_at(precision, recall, 0.5)
        else:
            error = weights @ self.errors
            out["mae"] = ratio(error[:, 0], error[:, 1])
        return out


class RegionSampler:
    """Region scores: covering (ods, ois, best), pri and voi (ods, ois), fop (ods, ois, ap).

    The sums are of floats here, so a score may differ from `region_score` in its last bits.
    """

    def __init__(self, records: Sequence[ImageRecord]) -> None:
        counts: list[Any] = [r.counts()["region"] for r in records]
        self.covered = _stack(counts, lambda c: c.covered_gt)
        self.total = _stack(counts, lambda c: c.total_gt)
        share = ratio(self.covered, self.total)
        self.covered_best = self.covered[np.arange(len(counts)), share.argmax(axis=1)]
        self.every_best = np.array([float(c.best_covered_gt) for c in counts])
        self.pri = _stack(counts, lambda c: c.pri)
        self.voi = _stack(counts, lambda c: c.voi)
        curves = [fop_curve(c) for c in counts]
        self.fop = np.stack(
            [_stack(curves, lambda c: c.precision), _stack(curves, lambda c: c.recall)]
        )
        self.fop_best = self.fop[:, np.arange(len(counts)), [int(np.argmax(c.f)) for c in curves]]

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        n = weights.sum(axis=1)
        total = weights @ self.total
        precision, recall = (weights @ table / n[:, None] for table in self.fop)
        p_ois, r_ois = (weights @ best / n for best in self.fop_best)
        return {
            "covering.ods": ratio(weights @ self.covered, total).max(axis=1),
            "covering.ois": ratio(weights @ self.covered_best, total[:, 0]),
            "covering.best": ratio(weights @ self.every_best, total[:, 0]),
            "pri.ods": (weights @ self.pri / n[:, None]).max(axis=1),
            "pri.ois": weights @ self.pri.max(axis=1) / n,
            "voi.ods": (weights @ self.voi / n[:, None]).min(axis=1),
            "voi.ois": weights @ self.voi.min(axis=1) / n,
            "fop.ods": f_measure(precision, recall).max(axis=1),
            "fop.ois": f_measure(p_ois, r_ois),
            "fop.ap": precision_at(recall, precision, RECALL_LEVELS).sum(axis=-1) * 0.01,
        }


def _stack(items: Sequence[Any], value: Callable[[Any], F8]) -> F8:
    return np.stack([value(c) for c in items]).astype(np.float64)


def _four(counts: Any) -> NDArray[np.int64]:
    """Counts as (T, 4): matched_gt, total_gt, matched_pred, total_pred."""
    if hasattr(counts, "tp"):
        columns = (counts.tp, counts.tp + counts.fn, counts.tp, counts.tp + counts.fp)
        return np.stack(columns, axis=-1)
    return np.stack([getattr(counts, name) for name in _FIELDS], axis=-1)


def samplers(run: Evaluation) -> Mapping[str, CurveSampler | RegionSampler]:
    """Metric -> sampler, for the metrics of `run`."""
    return {
        m: RegionSampler(run.records) if m == "region" else CurveSampler(run.records, m)
        for m in run.metrics
    }


def run_scores(samplers: Mapping[str, Any], weights: F8) -> dict[str, F8]:
    """ "metric.score" -> (B,), over all metrics."""
    return {
        f"{metric}.{name}": values
        for metric, sampler in samplers.items()
        for name, values in sampler.scores(weights).items()
    }


def bootstrap_weights(n_images: int, n_boot: int, seed: int) -> NDArray[np.float64]:
    """(n_boot, n_images): how often each image is drawn when n_images are, with replacement."""
    rng = np.random.default_rng(seed)
    share = np.full(n_images, 1 / n_images)
    return rng.multinomial(n_images, share, size=n_boot).astype(np.float64)


def jackknife_weights(n_images: int) -> NDArray[np.float64]:
    """(n_images, n_images): each image left out once."""
    return 1.0 - np.eye(n_images)


def per_image_values(run: Evaluation, metric: str) -> dict[str, float]:
    """image_id -> the value images are compared by: best F or best covering, in id order."""
    if metric == "region":
        return {image_id: row["covering"] for image_id, row in run.region_score().per_image}
    score = run.boundary_score() if metric == "boundary" else run.pixel_score()
    return {image_id: point.f for image_id, point in score.per_image}
