"""Rank methods in every bootstrap sample, and count how often one beats another.

Methods are ranked in each sample by their score over all its images (aggregate, then rank). Equal
scores share the smallest rank, and an undefined score has the last rank. Medians and intervals are
quantiles of the ranks over the samples. P(A beats B) is the share of samples in which A is better,
plus half of those with equal scores.

Sources: Wiesenfarth et al., Methods and open-source toolkit for analyzing and visualizing challenge
results, Scientific Reports 11 (2021), whose program is challengeR; for P, Agarwal et al. (NeurIPS
2021); for methods that a line joins, Demsar, J. Mach. Learn. Res. 7 (2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.results.score_tables import METHOD
from bsdsbench.tables.table import Cell, Estimate, Field, Table

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison
    from bsdsbench.comparison.methods import MethodComparison


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of methods by one score: of all images, and over bootstrap samples.

    Parameters
    ----------
    names : tuple of str
        The methods whose score is defined, the best first.
    rank : tuple of int
        Their ranks by all images, from 1 on.
    median, low, high : tuple of float
        The median of their ranks over the samples, and the ends of the interval.
    shares : tuple of tuple of float
        Of each method, the share of samples in which it has each rank.
    beats : tuple of tuple of float
        Of each method, the share of samples in which it beats each method; 0.5 beside itself.
    """

    names: tuple[str, ...]
    rank: tuple[int, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    beats: tuple[tuple[float, ...], ...]


def ranks_of(score: str, scores: Mapping[str, tuple[float, F8]], level: float) -> Ranks:
    """Return the ranks of methods by METRIC.SCORE, with intervals of this level.

    `scores` has for each method the score over all images and the scores of the samples, f8 (B,).
    Methods with an undefined score over all images are left out.
    """
    sign = 1 if lower_is_better(score) else -1
    costs = {name: sign * value for name, (value, _) in scores.items() if value == value}
    names = sorted(costs, key=costs.__getitem__)  # stable: of equal scores the first given
    if not names:
        return Ranks((), (), (), (), (), (), ())
    drawn = np.array([sign * scores[name][1] for name in names])
    drawn[np.isnan(drawn)] = np.inf
    n = len(names)
    shares = np.empty((n, n))  # (method, rank)
    beats = np.empty((n, n))  # (method, beaten method)
    ranks = np.empty(drawn.shape, np.int64)  # (method, sample)
    for k, costs_of_method in enumerate(drawn):
        better = drawn < costs_of_method
        equal = drawn == costs_of_method
        ranks[k] = 1 + better.sum(axis=0)
        beats[k] = 1 - better.mean(axis=1) - equal.mean(axis=1) / 2
        shares[k] = np.bincount(ranks[k] - 1, minlength=len(names)) / drawn[0].size
    tails = (1 - level) / 2, 0.5, (1 + level) / 2
    low, median, high = np.quantile(ranks, tails, axis=1).tolist()
    rank = [1 + sum(costs[other] < costs[name] for other in names) for name in names]
    return Ranks(
        names=tuple(names),
        rank=tuple(rank),
        median=tuple(median),
        low=tuple(low),
        high=tuple(high),
        shares=tuple(map(tuple, shares.tolist())),
        beats=tuple(map(tuple, beats.tolist())),
    )


def joined(compared: Comparison | MethodComparison, score: str) -> list[tuple[int, int]]:
    """Return groups of methods that no test separates, as (first, last) positions in the ranking.

    Two methods are separated by a significant p. If p is undefined or cannot be significant because
    there are too few seeds, they are separated by an interval of their difference without 0.
    """
    ranks, apart = compared.ranks[score], set[frozenset[str]]()
    untestable = getattr(compared, "untestable", ())
    for d in compared.differences:
        separated = d.significant(compared.level)
        if d.p != d.p or (d.a, d.b) in untestable:
            separated = d.low > 0 or d.high < 0
        if d.score == score and separated:
            apart.add(frozenset((d.a, d.b)))
    spans, n = list[tuple[int, int]](), len(ranks.names)
    for first in range(n):
        last = first
        while last + 1 < n and not any(
            frozenset(pair) in apart for pair in combinations(ranks.names[first : last + 2], 2)
        ):
            last += 1
        if last > first and not any(last <= end for _, end in spans):
            spans.append((first, last))
    return spans


def rank_tables(
    comparisons: Mapping[str, Comparison | MethodComparison], by: str = ""
) -> list[Table]:
    """Return the table of ranks and the table of pairwise wins.

    comparisons : {"": comparison on all images}, or the comparison on each slice by its name
    by : the column of the slices, or "" for all images
    """
    first: Comparison | MethodComparison = next(iter(comparisons.values()))
    column, names = by.partition("=")[0], first.names
    labels = [Field("score", "Score"), *[Field("slice", column)] * bool(by), METHOD]
    rows, pairs = list[list[Cell]](), list[list[Cell]]()
    for score in first.scores_shown:
        for part, compared in comparisons.items():
            ranks = compared.ranks[score]
            for k, name in enumerate(ranks.names):
                label: list[Cell] = [heading(score), *[part] * bool(by), name]
                rank = Estimate(ranks.median[k], ranks.low[k], ranks.high[k])
                beats = dict(zip(ranks.names, ranks.beats[k], strict=True))
                following = beats[ranks.names[k + 1]] if k + 1 < len(beats) else None
                rows.append([*label, ranks.rank[k], rank, ranks.shares[k][0], following])
                pairs.append([*label, *(None if name == n else beats.get(n) for n in names)])
    fields = [
        Field("rank", "Rank", "", "d"),
        Field("median", f"Median rank [{first.percent} interval]", "Median", "g"),
        Field("first", "P(rank 1)", "", ".3f"),
        Field("next", "P(beats the next)", "P(next)", ".3f"),
    ]
    notes = [
        f"Ranks in {first.n_boot:,} bootstrap samples; equal scores share the smaller rank. "
        "P(A beats B): the fraction of samples in which A scores better; ties count one half."
    ]
    title, n_labels = f" by {column}" * bool(by), len(labels)
    beaten = [Field(f"beats_{k}", name, "", ".3f") for k, name in enumerate(names)]
    words: Any = {"n_labels": n_labels, "notes": notes, "reading": first.reading}
    words |= {"caption": f"protocol {first.protocol}"}
    return [
        Table("ranks", f"Ranks{title}", [*labels, *fields], rows, **words),
        Table("beats", f"P(row beats column){title}", [*labels, *beaten], pairs, **words),
    ]
