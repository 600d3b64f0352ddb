"""The samples of a bootstrap and a jackknife, and a run's scores in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.metrics import registry
from bsdsbench.metrics.sampling import Sampler
from bsdsbench.runs.evaluation import Evaluation

F8 = NDArray[np.float64]


def samplers(run: Evaluation) -> Mapping[str, Sampler]:
    """Metric -> sampler, for the metrics of `run`."""
    return {m: registry.get(m).sampler(run.records, run.protocol) for m in run.metrics}


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
    """image_id -> the value images are compared by, the metric's first image column."""
    key = registry.get(metric).image_columns[0].key
    return {image_id: row[key] for image_id, row in run.image_values(metric).items()}
