"""Summaries of the images' own values: mean, deviation, median and quartiles of each score.

Quartiles are interpolated linearly between the two nearest values (type 7, the default of numpy and
R). An infinite value counts as one in medians and quartiles, and makes mean and deviation infinite
and undefined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.score_names import chosen_scores
from bsdsbench.results.score_tables import METHOD, PART, made_how
from bsdsbench.scores.ratios import ratio
from bsdsbench.tables.table import Cell, Field, Table

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation


class Summary(Enum):
    """What of the images' own values is shown, each with what stands before it."""

    MEAN = "mean"
    MEDIAN = "median"
    IQR = "iqr"


class SpreadOfImages(NamedTuple):
    """How the values of images are spread."""

    n: int
    undefined: int
    mean: float
    sd: float
    median: float
    q1: float
    q3: float


def _spread_of(values: F8) -> SpreadOfImages:
    """Return the spread of values, leaving out NaN, which are undefined.

    Examples
    --------
    >>> _spread_of(np.array([1.0, 2.0, 4.0, np.nan]))[:2]
    (3, 1)
    >>> _spread_of(np.array([1.0, 2.0, 4.0, np.nan])).median
    2.0
    """
    known = np.sort(values[~np.isnan(values)])
    n, undefined = known.size, int(np.isnan(values).sum())
    if not n:
        return SpreadOfImages(0, undefined, *[np.nan] * 5)
    quartiles = []
    for share in (0.5, 0.25, 0.75):
        place, rest = divmod(share * (n - 1), 1)
        low, high = known[int(place)], known[min(int(place) + 1, n - 1)]
        quartiles.append(float(low + rest * (high - low)) if rest and low != high else float(low))
    is_finite = bool(np.isfinite(known).all())
    mean = float(ratio(known.sum(), n)) if is_finite else np.inf
    sd = float(known.std(ddof=1)) if is_finite and n > 1 else np.nan
    return SpreadOfImages(n, undefined, mean, sd, *quartiles)


def summary_tables(
    runs: Sequence[Evaluation],
    summary: Summary = Summary.IQR,
    columns: Sequence[str] | None = None,
    aside: bool = False,
) -> list[Table]:
    """Return a table for each metric: a row a score, of each class and run.

    `summary` is the last statistic to show, `columns` are the scores by key, heading, METRIC.SCORE
    or PART.SCORE, "all" for every one, by default those of tables. Tables that are `aside` are left
    out where a person reads all tables at once. Raises DataError for a score that no image has.
    """
    with_images = [run for run in runs if run.records]
    known = dict[str, None]()
    for run in with_images if columns is not None else ():
        for metric in run.metrics:
            for part, by_key in run.image_values(metric).items():
                known |= dict.fromkeys(".".join(filter(None, (metric, part, k))) for k in by_key)
    tables, asked = list[Table](), set(chosen_scores(columns or (), list(known)))
    for metric in dict.fromkeys(m for run in with_images for m in run.metrics):
        scorer, rows = registry.get(metric), dict[tuple[str, ...], list[Cell]]()
        of_metric = [run for run in with_images if metric in run.metrics]
        for run in of_metric:
            for part, column, values in _values_shown(run, metric, columns, asked):
                of_images = _spread_of(np.array(values, np.float64))
                labels = part, column.heading, run.name
                if of_images.n or columns is not None:
                    rows.setdefault(labels, [part or None, run.name, column.heading, *of_images])
        if not rows:
            continue
        several, has_parts = len(of_metric) > 1, any(part for part, *_ in rows)
        order = {part: k for k, part in enumerate(dict.fromkeys(part for part, *_ in rows))}
        scores = {name: k for k, name in enumerate(dict.fromkeys(name for _, name, _ in rows))}
        sorted_rows = [rows[k] for k in sorted(rows, key=lambda k: (order[k[0]], scores[k[1]]))]
        fields = [PART, METHOD, Field("score", "Score"), *_FIELDS[: _SHOWN[summary]]]
        title = f"{scorer.title}, values of the images"
        note = "n: images with a value; undefined: images without; SD: standard deviation (n - 1)."
        if summary is Summary.IQR:
            note += " Quartiles are interpolated linearly."
        note += " The mean is over images; a score may be a mean over classes or over all pixels."
        words: Any = {**made_how(of_metric), "aside": aside, "n_labels": 3}
        words["notes"] = [note, *words["notes"]]
        shown_rows = [row[: len(fields)] for row in sorted_rows]
        table = Table(f"{metric}-images", title, fields, shown_rows, **words)
        kept = [k for k in range(len(fields)) if (k or has_parts) and (k != 1 or several)]
        tables.append(table.only(kept))
    return tables


_FIELDS = (
    Field("n", "n", "", "d"),
    Field("undefined", "undefined", "", "d"),
    Field("mean", "mean", "", ".4f"),
    Field("sd", "SD", "", ".4f"),
    Field("median", "median", "", ".4f"),
    Field("q1", "lower quartile", "Q1", ".4f"),
    Field("q3", "upper quartile", "Q3", ".4f"),
)
_SHOWN = {Summary.MEAN: 4, Summary.MEDIAN: 5, Summary.IQR: 7}


def _values_shown(
    run: Evaluation, metric: str, wanted: Sequence[str] | None, asked: Collection[str]
) -> Iterator[tuple[str, Column, Sequence[float]]]:
    """Yield part, column and the values of the scores to show, those `asked` for if any."""
    scorer = registry.get(metric)
    usual = scorer.usual(scorer.options_of(run.protocol))
    for part, by_key in run.image_values(metric).items():
        of_whole = scorer.columns_of(by_key) if usual is not None else scorer.image_columns
        possible = [*(scorer.part_columns if part else of_whole)]
        if wanted is not None:
            possible += [*scorer.columns_of(by_key), *scorer.image_columns]
        for column in {c.key: c for c in possible}.values():
            if column.key not in by_key or not column.score:
                continue
            before = f"{part}." if part else ""
            shown = usual is None or column.key in usual
            if shown if wanted is None else f"{metric}.{before}{column.key}" in asked:
                yield part, column, by_key[column.key]
