"""Methods of several runs as tables: means over runs with their spread, and differences."""

from __future__ import annotations

import statistics
from dataclasses import replace
from enum import Enum
from math import nan
from typing import TYPE_CHECKING, NamedTuple

from bsdsbench.comparison.comparison_tables import (
    difference_cells,
    difference_fields,
    heading,
    left_out_of,
    score_field,
)
from bsdsbench.results.score_tables import METHOD
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

if TYPE_CHECKING:
    from bsdsbench.comparison.methods import MethodComparison


class Spread(Enum):
    """What stands beside the mean over runs."""

    SD = "sd"
    RANGE = "range"
    SE = "se"


class ScoresOfRuns(NamedTuple):
    """One score of the runs of a method. Equal scores have exactly their value as mean."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean; NaN where one is undefined."""
        return statistics.mean(self.values)

    @property
    def sd(self) -> float:
        """The standard deviation between runs (n - 1); NaN for one run."""
        known = len(self.values) > 1 and self.mean == self.mean
        return statistics.stdev(self.values) if known else nan

    @property
    def se(self) -> float:
        """The standard error of the mean, of runs alone."""
        return self.sd / len(self.values) ** 0.5


SPREAD_WORDS = {
    Spread.SD: "mean ± standard deviation over runs (number of runs)",
    Spread.RANGE: "mean over runs [smallest, largest]",
    Spread.SE: "mean ± standard error over runs (number of runs)",
}


def spread_cell(scores: ScoresOfRuns, spread: Spread) -> Estimate:
    """Return the mean over runs with the chosen spread; a single run has no spread."""
    n = len(scores.values)
    if n < 2:
        return Estimate(scores.mean)
    if spread is Spread.RANGE:
        return Estimate(scores.mean, min(scores.values), max(scores.values))
    return Estimate(scores.mean, spread=scores.sd if spread is Spread.SD else scores.se, n=n)


def method_tables(compared: MethodComparison, spread: Spread) -> list[Table]:
    """Return the tables of means, of their intervals and, for several methods, of differences."""
    scores = compared.scores_shown
    images = counted(compared.n_images, "image")
    clustered = f" in {compared.n_clusters} clusters ({compared.cluster})" * bool(compared.cluster)
    caption = (
        f"{images}{clustered}, {compared.n_boot} bootstrap samples of images and runs, "
        f"seed {compared.seed}. Protocol: {compared.protocol}"
    )
    fields = [score_field(score) for score in scores]
    means: list[list[Cell]] = []
    intervals: list[list[Cell]] = []
    for method in compared.methods:
        means.append([method.name])
        intervals.append([method.name])
        for score in scores:
            interval = compared.interval_of(method.name, score)
            means[-1].append(spread_cell(compared.of_runs[method.name, score], spread))
            intervals[-1].append(Estimate(interval.value, interval.low, interval.high))
    notes: list[str | Note] = [f"{line.removesuffix('.')}." for line in compared.notes]
    notes = [*left_out_of(compared), *notes]
    words = SPREAD_WORDS[spread]
    tables = [
        Table(
            "methods",
            "Scores of methods",
            [METHOD, *fields],
            means,
            notes=[f"{words[0].upper()}{words[1:]}.", *notes],
            sentence=f"Scores on {images}: {words}",
        ),
        Table(
            "intervals",
            f"Means over runs with {compared.percent} intervals",
            [METHOD, *(replace(field, higher_is_better=None) for field in fields)],
            intervals,
            notes=notes,
            aside=True,
        ),
    ]
    if len(compared.methods) > 1:
        rows: list[list[Cell]] = []
        for d in compared.differences:
            if d.score in scores:
                rows.append([d.a, d.b, heading(d.score), *difference_cells(d, compared.level)])
        columns = difference_fields(compared.percent)
        tables.append(Table("differences", "Differences", columns, rows, notes=notes, n_labels=3))
    return [replace(table, caption=caption, reading=compared.reading) for table in tables]
