"""Counts of positives and negatives along falling scores, the basis of PR and ROC curves."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from bsdsbench.arguments import F8, I8, Bool, given_word
from bsdsbench.curves.samples import whole_number
from bsdsbench.errors import InputWarning, warn
from bsdsbench.kernels import ranks

Ties = Literal["merge", "sample"]


class Ranking(NamedTuple):
    """True and false positives along falling scores.

    thresholds float64 (K,): +inf, then the scores. At point 0 nothing is predicted, at point k
        the samples with score >= thresholds[k] (with ties="sample" the best k samples).
    tp, fp int64 (K,): predicted positives and negatives.
    positives, negatives: totals of the classes, with samples that are never predicted.
    ties: the rule of `rank` by which points were made.
    rows int64 (n,): the point at which each sample is first predicted, -1 if never; or None.
    """

    thresholds: F8
    tp: I8
    fp: I8
    positives: int
    negatives: int
    ties: Ties = "merge"
    rows: I8 | None = None


def rank(
    positive: Bool,
    negative: Bool,
    scores: F8,
    ties: Ties = "merge",
    include_inf: bool | None = None,
    stable: bool = False,
    num_positives: int | None = None,
    num_negatives: int | None = None,
) -> Ranking:
    """Count the predicted positives and negatives along falling scores.

    positive, negative bool (n,), scores float64 (n,): the fields of `Samples`.
    ties: "merge" makes a point per distinct score, "sample" a point per sample.
    include_inf: if False, points with threshold -inf are cut off; by default with "sample" only.
    stable: whether the ranking gets `rows`.
    num_positives, num_negatives: totals instead of the numbers of samples; warns if smaller.
    """
    n_positives = _total(positive, num_positives, "num_positives")
    n_negatives = _total(negative, num_negatives, "num_negatives")
    given_word(ties, "ties", get_args(Ties))
    if include_inf is None:
        include_inf = ties == "merge"
    if ties == "merge":
        thresholds, tp, fp = _count_levels(positive, negative, scores)
    else:
        order = _falling_order(scores)
        thresholds = np.r_[np.inf, scores[order]] + 0  # -0 becomes 0
        tp = np.r_[0, np.cumsum(positive[order])]
        fp = np.r_[0, np.cumsum(negative[order])]
    rows = None
    if stable:
        if ties == "merge":
            rows = np.searchsorted(-thresholds, -scores, side="right") - 1
        else:
            rows = np.empty(scores.size, np.int64)
            rows[order] = np.arange(1, scores.size + 1)
        if not include_inf:
            rows[scores == -np.inf] = -1
    n_points = thresholds.size
    if not include_inf:
        n_points -= int(np.searchsorted(thresholds[::-1], -np.inf, "right"))
    return Ranking(
        thresholds=thresholds[:n_points],
        tp=tp[:n_points],
        fp=fp[:n_points],
        positives=n_positives,
        negatives=n_negatives,
        ties=ties,
        rows=rows,
    )


def _total(is_member: Bool, total: int | None, name: str) -> int:
    """Return `total`, or the number of members of a class, bool (n,), if it is None.

    Warns if `total` is smaller than the number of members; `name` is the option's.
    """
    n_members = int(np.count_nonzero(is_member))
    if total is None:
        return n_members
    n_given = whole_number(total, name)
    if n_given < n_members:
        warn(InputWarning(f"{name} {total}: fewer than the {n_members} there are"))
    return n_given


class _Levels(NamedTuple):
    """Points at falling thresholds, (K,) each: +inf without predictions, then each distinct score.

    tp and fp count the positives and the negatives with a score at or above the threshold.
    """

    thresholds: F8
    tp: I8
    fp: I8


def _count_levels(positive: Bool, negative: Bool, scores: F8) -> _Levels:
    """Count the positives and negatives with a score at or above each distinct score; all (n,).

    The scores of each class are sorted apart and then merged. Up to 10,000 samples the kernels run
    uncompiled, which takes less time than importing numba.
    """
    is_small = scores.size <= 10_000
    if is_small:
        partition, merge_levels = ranks.partition_scores, ranks.merge_levels
    else:
        partition, merge_levels = ranks.compiled()
    # Scores of the positives from the front on, scores of the negatives from the back on
    parted = np.empty(scores.size + 1)
    end, begin = partition(positive, negative, scores, parted)
    positive_scores, negative_scores = parted[:end], parted[begin:]
    positive_scores.sort()
    negative_scores.sort()
    size = positive_scores.size + negative_scores.size + 1
    thresholds = np.empty(size)
    tp = np.empty(size, np.int64)
    fp = np.empty(size, np.int64)
    n = merge_levels(positive_scores, negative_scores, thresholds, tp, fp)
    if 2 * n < size:  # copies free the memory of the unused rest
        return _Levels(thresholds[:n].copy(), tp[:n].copy(), fp[:n].copy())
    return _Levels(thresholds[:n], tp[:n], fp[:n])


def _falling_order(scores: F8) -> I8:
    """Return the indices (n,) that sort scores in descending order, stable for equal scores.

    A plain sort that is then repaired among equal scores takes half the time of a stable sort.
    """
    order = np.argsort(-scores)
    falling = scores[order]
    level = np.cumsum(falling[1:] != falling[:-1])  # number of larger distinct scores
    # Sort by level, then by index: both are held in one integer, n * level + index
    order[1:] += scores.size * level
    order.sort()
    order %= max(scores.size, 1)
    return order
