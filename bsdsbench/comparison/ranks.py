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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.results.score_tables import METHOD
from bsdsbench.tables.table import Cell, Estimate, Field, Table

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import ComparedScores


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of methods by one score, on all images and over bootstrap samples.

    All fields have an entry per method, the best first. Methods whose score on all images is
    undefined are left out.

    Parameters
    ----------
    names : tuple of str
        The methods.
    rank : tuple of int
        The rank on all images; 1 is the best. Equal scores share the smallest rank.
    median, low, high : tuple of float
        The median of the ranks over the samples, and the ends of the interval.
    shares : tuple of tuple of float
        shares[i][k] is the share of samples in which method i has the rank k + 1.
    beats : tuple of tuple of float
        beats[i][k] is the share of samples in which method i beats method k; samples with equal
        scores count one half, so that beats[i][i] is 0.5.
    """

    names: tuple[str, ...]
    rank: tuple[int, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    beats: tuple[tuple[float, ...], ...]


def ranks_of(score: str, scores: Mapping[str, tuple[float, F8]], level: float) -> Ranks:
    """Rank methods by a score, such as "boundary.ods", on all images and in bootstrap samples.

    `scores` has the score of each method on all images and in each of B samples, (B,). A method
    whose score on all images is NaN is left out. In samples in which its score is NaN, a method
    ranks last. `level` is the confidence level of the intervals of ranks.
    """
    sign = 1 if lower_is_better(score) else -1  # makes a cost, of which less is better, of a score
    # Of each method, on all images
    costs = {name: sign * value for name, (value, _) in scores.items() if not math.isnan(value)}
    names = sorted(costs, key=costs.__getitem__)  # equal scores stay in the given order
    if not names:
        return Ranks((), (), (), (), (), (), ())
    sample_costs = np.array([sign * scores[name][1] for name in names])  # (methods, B)
    sample_costs[np.isnan(sample_costs)] = np.inf
    n_methods, n_samples = sample_costs.shape
    shares = np.empty((n_methods, n_methods))  # (method, rank - 1)
    beats = np.empty((n_methods, n_methods))  # (method, beaten method)
    ranks = np.empty((n_methods, n_samples), np.int64)
    for k, costs_of_method in enumerate(sample_costs):
        # (methods, B): in which samples each method is better than method k, or as good
        is_better = sample_costs < costs_of_method
        is_equal = sample_costs == costs_of_method
        ranks[k] = 1 + is_better.sum(axis=0)
        beats[k] = 1 - is_better.mean(axis=1) - is_equal.mean(axis=1) / 2
        shares[k] = np.bincount(ranks[k] - 1, minlength=n_methods) / n_samples
    quantiles = (1 - level) / 2, 0.5, (1 + level) / 2
    low, median, high = np.quantile(ranks, quantiles, axis=1).tolist()
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


def indistinguishable_groups(compared: ComparedScores, score: str) -> list[tuple[int, int]]:
    """Find the groups of consecutively ranked methods, no two of which differ significantly.

    Returns pairs (first, last): the positions, from 0 on, of the best and of the worst method of
    the group in the ranking by the score. Groups of a single method, and groups within a larger
    group, are left out.
    """
    different = _different_pairs(compared, score)
    names = compared.ranks[score].names
    groups = list[tuple[int, int]]()
    previous_last = 0
    for first in range(len(names)):
        last = first
        # Extend the group as long as the next method differs from none of its members
        for name in names[first + 1 :]:
            members = names[first : last + 1]
            if any(frozenset((name, member)) in different for member in members):
                break
            last += 1
        is_within_previous = last <= previous_last
        if last > first and not is_within_previous:
            groups.append((first, last))
            previous_last = last
    return groups


def _different_pairs(compared: ComparedScores, score: str) -> set[frozenset[str]]:
    """Return the pairs of methods that differ significantly by a score.

    Without a usable p-value, because it is NaN or because there are too few seeds for a significant
    one, a pair differs if the interval of the difference excludes 0.
    """
    different = set[frozenset[str]]()
    for d in compared.differences:
        is_testable = not math.isnan(d.p) and (d.a, d.b) not in compared.untestable
        excludes_0 = d.low > 0 or d.high < 0
        if d.score == score and (d.significant(compared.level) if is_testable else excludes_0):
            different.add(frozenset((d.a, d.b)))
    return different


def rank_tables(comparisons: Mapping[str, ComparedScores], slice_column: str = "") -> list[Table]:
    """Return two tables with a row per score, slice and method: one of ranks, one of wins.

    A cell of the second table is the probability that the method of the row beats the method of the
    column. `comparisons` has the comparison on each slice by its name, or a single one, on all
    images, under the name "". `slice_column` is the column of groups that are the slices, or "".
    """
    first = next(iter(comparisons.values()))
    slice_fields = [Field("slice", slice_column)] if slice_column else []
    labels = [Field("score", "Score"), *slice_fields, METHOD]
    rank_rows = list[list[Cell]]()
    win_rows = list[list[Cell]]()
    for score in first.scores_shown:
        for slice_name, compared in comparisons.items():
            ranks = compared.ranks[score]
            for k, name in enumerate(ranks.names):
                slice_cells = [slice_name] if slice_column else []
                row_labels: list[Cell] = [heading(score), *slice_cells, name]
                median = Estimate(ranks.median[k], ranks.low[k], ranks.high[k])
                beats = dict(zip(ranks.names, ranks.beats[k], strict=True))
                next_name = ranks.names[k + 1] if k + 1 < len(ranks.names) else ""
                shares = ranks.shares[k]
                rank_rows.append(
                    [*row_labels, ranks.rank[k], median, shares[0], beats.get(next_name)]
                )
                del beats[name]  # no method beats itself
                win_rows.append([*row_labels, *(beats.get(other) for other in first.names)])
    rank_fields = [
        Field("rank", "Rank", "", "d"),
        Field("median", f"Median rank [{first.percent} interval]", "Median", "g"),
        Field("first", "P(rank 1)", "", ".3f"),
        Field("next", "P(beats the next)", "P(next)", ".3f"),
    ]
    win_fields = [Field(f"beats_{k}", name, "", ".3f") for k, name in enumerate(first.names)]
    notes = [
        f"Ranks in {first.n_boot:,} bootstrap samples; equal scores share the smaller rank. "
        "P(A beats B): the fraction of samples in which A scores better; ties count one half."
    ]
    suffix = f" by {slice_column}" if slice_column else ""
    below: Any = {"notes": notes, "reading": first.reading, "n_labels": len(labels)}
    below["caption"] = f"protocol {first.protocol}"
    return [
        Table("ranks", f"Ranks{suffix}", labels + rank_fields, rank_rows, **below),
        Table("beats", f"P(row beats column){suffix}", labels + win_fields, win_rows, **below),
    ]
