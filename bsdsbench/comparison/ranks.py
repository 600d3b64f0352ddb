"""Rank methods in every bootstrap sample, and count how often one beats another.

In each sample, methods are ranked by their score over all images of the sample ("aggregate, then
rank"). Ties share the smallest rank, and an undefined score ranks last. Medians and intervals are
quantiles of the ranks over the samples. P(A beats B) is the share of samples in which A is better,
plus half the share of ties.

Sources: Wiesenfarth et al., Methods and open-source toolkit for analyzing and visualizing challenge
results, Scientific Reports 11 (2021), whose program is challengeR; for P, Agarwal et al. (NeurIPS
2021); for lines that join methods, Demsar, J. Mach. Learn. Res. 7 (2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.results.score_tables import METHOD
from bsdsbench.tables.table import Cell, Estimate, Field, Table

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of methods by one score, on all images and over bootstrap samples.

    Each field has one entry per method, from best to worst. Methods whose score on all images is
    undefined are left out.

    Parameters
    ----------
    names : tuple of str
        The methods.
    rank : tuple of int
        The rank on all images; 1 is the best. Ties share the smallest rank.
    median, low, high : tuple of float
        The median rank over the samples, and the ends of its interval.
    shares : tuple of tuple of float
        shares[i][k] is the share of samples in which method i has the rank k + 1.
    beats : tuple of tuple of float
        beats[i][k] is the share of samples in which method i beats method k. Ties count one half,
        so beats[i][i] is 0.5.
    """

    names: tuple[str, ...]
    rank: tuple[int, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    beats: tuple[tuple[float, ...], ...]


def ranks_of(score: str, scores: Mapping[str, tuple[float, Floats]], level: float) -> Ranks:
    """Rank methods by a score, such as "boundary.ods", on all images and in bootstrap samples.

    `scores` maps each method to its score on all images and its scores in B samples, (B,). Methods
    whose score on all images is NaN are left out. A method ranks last in samples in which its score
    is NaN. `level` is the confidence level of the intervals of ranks.
    """
    sign = 1 if lower_is_better(score) else -1  # turns scores into costs: lower is better
    # The cost of each method on all images
    costs = {name: sign * value for name, (value, _) in scores.items() if not math.isnan(value)}
    names = sorted(costs, key=costs.__getitem__)  # equal scores stay in the given order
    if not names:
        return Ranks((), (), (), (), (), (), ())
    sample_costs = np.array([sign * scores[name][1] for name in names])  # (methods, B)
    sample_costs[np.isnan(sample_costs)] = np.inf
    n_methods, n_samples = sample_costs.shape
    # [i, k]: the share of samples in which method i has rank k + 1, or beats method k
    shares = np.empty((n_methods, n_methods))
    beats = np.empty((n_methods, n_methods))  # a tie counts one half
    ranks = np.empty((n_methods, n_samples), np.int64)
    for k, costs_of_method in enumerate(sample_costs):
        # (methods, B): whether each method is better than method k in a sample, or tied with it
        is_better = sample_costs < costs_of_method
        is_equal = sample_costs == costs_of_method
        ranks[k] = 1 + is_better.sum(axis=0)
        # Method k beats another in the samples in which that one is neither better nor tied
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


def indistinguishable_groups(compared: Comparison, score: str) -> list[tuple[int, int]]:
    """Find the maximal groups of consecutively ranked methods without significant differences.

    If p is NaN, or if there are too few seeds for a significant p, a pair counts as different if
    the interval of its difference excludes 0. Returns pairs (first, last): the 0-based ranking
    positions of the best and the worst method of a group. Groups of a single method are left out.
    """
    different_pairs = set[frozenset[str]]()
    for d in compared.differences:
        # `untestable` are the pairs with too few seeds
        is_testable = not math.isnan(d.p) and (d.a, d.b) not in compared.untestable
        excludes_0 = d.low > 0 or d.high < 0
        differs = d.significant(compared.level) if is_testable else excludes_0
        if d.score == score and differs:
            different_pairs.add(frozenset((d.a, d.b)))
    names = compared.ranks[score].names
    groups = list[tuple[int, int]]()
    previous_last = 0  # the last position of the group before
    for first in range(len(names)):
        last = first
        # Extend the group as long as the next method differs from none of its members
        for name in names[first + 1 :]:
            members = names[first : last + 1]
            if any(frozenset((name, member)) in different_pairs for member in members):
                break
            last += 1
        if last > max(first, previous_last):  # several methods, not all in the group before
            groups.append((first, last))
            previous_last = last
    return groups


def rank_tables(comparisons: Mapping[str, Comparison], slice_column: str = "") -> list[Table]:
    """Return two tables with one row per score, slice and method: ranks, and win probabilities.

    In the second table, a cell is the probability that the row's method beats the column's method.
    `comparisons` maps each slice, a group of images by `slice_column`, to the comparison on it. For
    a single comparison on all images, both names are "".
    """
    first = next(iter(comparisons.values()))
    slice_fields = [Field("slice", slice_column)] if slice_column else []
    labels = [Field("score", "Score"), *slice_fields, METHOD]
    rank_rows = list[list[Cell]]()
    win_rows = list[list[Cell]]()
    for score in first.shown:
        for slice_name, compared in comparisons.items():
            ranks = compared.ranks[score]  # its fields have one entry per method, the best first
            for k, name in enumerate(ranks.names):
                slice_cells = [slice_name] if slice_column else []
                row_labels: list[Cell] = [heading(score), *slice_cells, name]
                median = Estimate(ranks.median[k], ranks.low[k], ranks.high[k])
                p_first = ranks.shares[k][0]  # shares[k][r]: share of samples with rank r + 1
                # beats[k][j]: the probability that method k beats method j
                p_beats_next = ranks.beats[k][k + 1] if name != ranks.names[-1] else None
                rank_rows.append([*row_labels, ranks.rank[k], median, p_first, p_beats_next])
                p_beats = dict(zip(ranks.names, ranks.beats[k], strict=True))
                del p_beats[name]  # no method beats itself
                # The columns are all methods; None for itself, and for methods without a score
                win_rows.append([*row_labels, *(p_beats.get(other) for other in first.names)])
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
    key_suffix = f"-by-{slice_column}" if slice_column else ""
    suffix = f" by {slice_column}" if slice_column else ""
    below: Any = {"notes": notes, "reading": first.reading, "n_labels": len(labels)}
    below["caption"] = f"protocol {first.protocol}"
    win_title = f"P(row beats column){suffix}"
    return [
        Table(f"ranks{key_suffix}", f"Ranks{suffix}", labels + rank_fields, rank_rows, **below),
        Table(f"beats{key_suffix}", win_title, labels + win_fields, win_rows, **below),
    ]
