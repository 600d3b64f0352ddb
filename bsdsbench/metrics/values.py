"""The base class of metrics whose scores are means over images, or values of summed counts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from bsdsbench.arguments import F8
from bsdsbench.metrics.base import Metric, Opt, image_means
from bsdsbench.metrics.optional import Arrays as Arrays
from bsdsbench.metrics.optional import Counter as Counter
from bsdsbench.metrics.optional import ScoreTree
from bsdsbench.metrics.optional import Symptoms as Symptoms
from bsdsbench.metrics.optional import Texts as Texts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import (
    Stack,
)
from bsdsbench.scores.ratios import Weights, weighted_sum


def _nest(values: ScoreTree) -> ScoreTree:
    """Convert keys such as "pooled.aji" to nested mappings, {"pooled": {"aji": ...}}."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *groups, name = key.split(".")
        group = tree
        for part in groups:
            group = group.setdefault(part, {})
        group[name] = value
    return tree


class ValuesMetric(Metric[Opt]):
    """A metric whose scores are means over images.

    A column is the mean over the images in which it is defined or, with `Column.pooled`, computed
    from the counts summed over images.
    """

    @abstractmethod
    def values(self, counts: Stack, opt: Opt) -> dict[str, F8]:
        """Compute the values of N images, or N sums of images, from their counts (N, ...).

        Returns arrays (N,) with the keys of `columns`.
        """

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Return the mean of each column over images, or if it is pooled its value for the sums."""
        pooled = {column.key for column in self.columns if column.pooled}
        per_image = self.values(stack, opt)
        scores = image_means(weights, {k: v for k, v in per_image.items() if k not in pooled})
        if pooled:
            sums = {name: weighted_sum(weights, counts) for name, counts in stack.items()}
            scores |= {k: v for k, v in self.values(sums, opt).items() if k in pooled}
        return _nest(scores)
