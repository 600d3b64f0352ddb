"""The scores of runs as one flat list: METRIC.SCORE -> number, by the columns of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import column_values


def flat_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """The `scores` object of result.json as {"boundary.ods": F, "region.covering.ods": ...}.

    A point of a PR curve is named by its F. Thresholds, counts of images and undefined scores are
    left out.
    """
    return {
        f"{metric}.{column.key}": float(value)
        for metric, mapping in scores.items()
        for column, value in _cells(metric, mapping)
        if column.score and value is not None
    }


def _cells(metric: str, mapping: Mapping[str, Any]) -> Any:
    columns = registry.get(metric).columns
    found = column_values(columns, mapping)
    return ((c, found[c.key]) for c in columns)
