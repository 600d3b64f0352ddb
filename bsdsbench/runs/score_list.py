"""The scores of runs as one flat list: METRIC.SCORE -> number, by the columns of the metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bsdsbench.metrics import registry
from bsdsbench.scores.score import at


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


def full_name(score: str, known: Collection[str]) -> str:
    """The known METRIC.SCORE that is meant by it or by SCORE alone; `score` itself if none is.

    SCORE alone is that of the default metric, or of the one metric that has it.

    Examples
    --------
    >>> full_name("ods", ["pixel.ods", "boundary.ods"]), full_name("mae", ["pixel.mae"])
    ('boundary.ods', 'pixel.mae')
    """
    alike = [name for name in known if name.partition(".")[2] == score]
    usual = f"{registry.DEFAULT[0]}.{score}"
    if score in known or not alike or (len(alike) > 1 and usual not in alike):
        return score
    return usual if usual in alike else alike[0]


def _cells(metric: str, mapping: Mapping[str, Any]) -> Any:
    columns = registry.get(metric).columns
    return ((c, at(mapping, c.key)) for c in columns)
