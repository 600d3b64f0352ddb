"""The samples of a bootstrap and a jackknife, and a run's scores in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_share, given_whole
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.scores.ratios import Weights
from bsdsbench.scores.score import at

F8 = NDArray[np.float64]
_CHUNK = 2000  # samples at a time
# Wherever an interval or a p-value is made: a run has one interval, in every table.
N_BOOT, SEED = 10_000, 0


class Told:
    """How many of all samples are done, for a progress bar: (done, total, "")."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, samples: int) -> None:
        self._done += samples
        if self._progress:
            self._progress(min(self._done, self._total), self._total, "")


class WeightedRun:
    """A run's counts as arrays, and its scores under any weights of its images.

    beside : the images of another run follow
    """

    def __init__(self, run: Evaluation, metrics: Sequence[str], *beside: Evaluation) -> None:
        self._protocol = run.protocol
        self._metrics = [registry.get(m) for m in metrics]
        records = [r for each in (run, *beside) for r in each.records]
        self._stacks: list[Any] = [
            m.stack([r.counts[m.name] for r in records]) for m in self._metrics
        ]

    def scores(self, weights: Weights, told: Told | None = None) -> dict[str, F8]:
        """ "metric.score" -> (S,), the score columns of all metrics, in their order.

        Undefined is what is infinite too: a distance to nothing. told : hears of samples done
        """
        out: dict[str, F8] = {}
        for metric, stack in zip(self._metrics, self._stacks, strict=True):
            opt = metric.options_of(self._protocol)
            chunks = []
            for first in range(0, len(weights), _CHUNK):
                part = weights[first : first + _CHUNK]
                tree = metric.scores(stack, part, self._protocol, opt)
                chunks.append({c.key: at(tree, c.key) for c in metric.columns if c.score})
                if told:
                    told(len(part))
            keys = [key for key, values in chunks[0].items() if values is not None]
            for key in keys:
                values = np.concatenate([found[key] for found in chunks])
                out[f"{metric.name}.{key}"] = np.where(np.isfinite(values), values, np.nan)
        return out


def checked_sampling(n_boot: int, seed: int, level: float) -> tuple[int, int]:
    """n_boot and seed, which may be numpy's, as int. Raises DataError for what is out of range."""
    given_share(level, "level")
    return given_whole(n_boot, "n_boot", 1, 10_000_000), given_whole(seed, "seed", 0)


def bootstrap_weights(n_images: int, n_boot: int, seed: int) -> Weights:
    """(n_boot, n_images): how often each image is drawn when n_images are, with replacement."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_images, np.full(n_images, 1 / n_images), size=n_boot)


def jackknife_weights(n_images: int) -> Weights:
    """(n_images, n_images): each image left out once."""
    return 1 - np.eye(n_images, dtype=np.int64)


def per_image_values(run: Evaluation, metric: str) -> dict[str, float]:
    """image_id -> the value images are compared by, the metric's first image column."""
    key = registry.get(metric).image_columns[0].key
    return {image_id: row[key] for image_id, row in run.image_values(metric).items()}
