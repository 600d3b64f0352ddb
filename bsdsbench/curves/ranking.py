"""From labels and scores to counts: how many positives and negatives lie at or above each score.

Everything else in this package is arithmetic on a `Ranking`. One ranking (one sort) serves the PR,
the ROC and the DET curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.curves.samples import F8, I8, Bools, check_samples, locked, numbers, total
from bsdsbench.files.arguments import given_floats
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.tables.read_only import ReadOnly

Ties = Literal["sample", "merge"]
# Below this, numpy alone is as quick as loading the compiled kernels.
_LARGE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Ranking(ReadOnly):
    """Counts along a ranking, best score first; point 0 is "nothing predicted".

    Parameters
    ----------
    thresholds : array
        f8 (K,), descending; the first is +inf. Point k predicts score >= thresholds[k] (ties
        "sample": the k best samples).
    tp, fp : array
        i8 (K,), true and false positives so far.
    positives, negatives : int
        All of them, the never retrieved (-inf) too.
    ties : str
        "sample" or "merge", see `rank`.
    rows : array or None
        i8 (n,), the point at which each input row comes in, -1 if never; or None.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> ranking = curves.rank([1, -1, 1], [0.9, 0.5, 0.4])
    >>> ranking.tp.tolist(), ranking.positives
    ([0, 1, 1, 2], 2)
    """

    thresholds: F8
    tp: I8
    fp: I8
    positives: int
    negatives: int
    ties: Ties = "merge"
    rows: I8 | None = None

    @classmethod
    def from_counts(
        cls,
        thresholds: ArrayLike,
        tp: ArrayLike,
        fp: ArrayLike,
        positives: int,
        negatives: int,
        *,
        complete: bool = False,
    ) -> Ranking:
        """A ranking from counts at given thresholds (score >= threshold), in any order.

        Pixel counts of a data set come in this way. The "nothing predicted" point is added;
        complete also adds "everything predicted", at threshold -inf.
        Raises ShapeError for arrays of different lengths, DataError for counts that fall while
        the threshold does, that exceed the totals or are no whole numbers.

        Parameters
        ----------
        thresholds : array_like
            f8 (T,).
        tp, fp : array_like
            (T,), true and false positives at each threshold.
        positives, negatives : int
            Totals.
        complete : bool
            Add the point "everything predicted".
        """
        t = numbers(thresholds, "thresholds").astype(np.float64)
        named = (("tp", tp), ("fp", fp))
        counts = [given_floats(numbers(c, name), name, np.int64) for name, c in named]
        if any(c.size != t.size for c in counts):
            raise ShapeError(
                f"thresholds, tp, fp: {t.size}, {counts[0].size} and {counts[1].size} values, "
                "expected as many of each"
            )
        order = np.argsort(-t, kind="stable")
        t, counts = np.r_[np.inf, t[order]], [np.r_[0, c[order]] for c in counts]
        limits = total(positives, "positives"), total(negatives, "negatives")
        for count, limit, name in zip(counts, limits, ("tp", "fp"), strict=True):
            if (np.diff(count) < 0).any() or count[-1] > limit:
                raise DataError(
                    f"{name}: expected counts from 0 to {limit} that grow as the threshold falls"
                )
        if complete:
            t = np.r_[t, -np.inf]
            counts = [np.r_[c, limit] for c, limit in zip(counts, limits, strict=True)]
        return cls(locked(t), locked(counts[0]), locked(counts[1]), *limits)


def rank(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "sample",
    include_inf: bool = False,
    rows: bool = False,
) -> Ranking:
    """Count positives and negatives along the descending scores.

    A row of label 0 has a point of its own under "sample" and none under "merge". No rows at all
    give the one point "nothing predicted".

    Parameters
    ----------
    labels, scores, ties, include_inf : as in `pr`
        The samples and what is done with ties and scores of -inf.
    rows : bool
        Also note at which point each row comes in.

    Returns
    -------
    Ranking
        Counts and thresholds along the scores.

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For NaN.

    References
    ----------
    Source: vl_tpfp (counts), scikit-learn (merged levels).

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.rank([1, -1, 1], [0.9, 0.5, 0.4]).tp.tolist()
    [0, 1, 1, 2]
    """
    if ties not in ("sample", "merge"):
        raise DataError(f"ties {ties!r}: expected 'sample' or 'merge'")
    positive, negative, s = check_samples(labels, scores, small_integers=True)
    found = None
    if s.dtype.kind != "f":
        if ties == "merge" and s.size >= _LARGE and not rows:
            found = _rank_tally(positive, negative, s)
        else:
            s = s.astype(np.float32)
    if found is None and not rows:
        found = _rank_large(positive, negative, s, ties)
    where = None
    if found is None:
        found, where = _rank_any(positive, negative, s, ties, rows)
    thresholds, tp, fp = found
    if not include_inf:
        kept = int(np.searchsorted(-thresholds, np.inf))
        thresholds, tp, fp = thresholds[:kept], tp[:kept], fp[:kept]
        if where is not None:
            where[s == -np.inf] = -1
    return Ranking(
        locked(thresholds),
        locked(tp),
        locked(fp),
        int(np.count_nonzero(positive)),
        int(np.count_nonzero(negative)),
        ties,
        None if where is None else locked(where),
    )


def _rank_tally(positive: Bools, negative: Bools, s: NDArray[Any]) -> Any:
    """Merged ties of integers of 8 or 16 bits: count each value in one pass, no sort."""
    from bsdsbench.kernels.ranks import tally

    low, high = int(s.min()), int(s.max())
    counts = np.zeros((2, high - low + 1), np.int64)
    tally(positive, negative, s.astype(np.uint8) if s.dtype == bool else s, low, *counts)
    counts = counts[:, ::-1]
    present = counts.any(axis=0)
    tp, fp = (np.r_[0, np.cumsum(c)] for c in counts[:, present])
    return np.r_[np.inf, np.arange(high, low - 1, -1.0)[present]], tp, fp


def _rank_large(positive: Bools, negative: Bools, s: NDArray[Any], ties: Ties) -> Any:
    """The same as `_rank_any` in a few compiled passes, or None where it does not apply."""
    if s.size < _LARGE:
        return None
    from bsdsbench.kernels import ranks as kernel

    both = np.empty(s.size + 1, s.dtype)
    end, begin = kernel.split(positive, negative, s, both)
    pos, neg = both[:end], both[begin:]
    pos.sort()
    neg.sort()
    size = pos.size + neg.size + 1
    out = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    if ties == "merge":
        k = kernel.merge_levels(pos, neg, *out)
        # Few levels: release the allocation that was made for one per sample.
        return tuple(a[:k] if 2 * k > s.size else a[:k].copy() for a in out)
    ignored = np.sort(s[~(positive | negative)])
    if ignored.size == 0 and kernel.merge_samples(pos, neg, *out):
        return out
    levels = np.unique(np.concatenate([_distinct(part) for part in (pos, neg, ignored)]))
    return _rank_packed(positive, negative, s, levels[::-1])


def _distinct(rising: NDArray[Any]) -> NDArray[Any]:
    return rising[np.r_[True, rising[1:] != rising[:-1]][: rising.size]]


def _rank_packed(positive: Bools, negative: Bools, s: NDArray[Any], levels: NDArray[Any]) -> Any:
    """Sort score, row and class as one integer; needs scores that stay distinct as float32."""
    from bsdsbench.kernels import ranks as kernel

    with np.errstate(over="ignore"):
        # Adding 0 makes -0 into 0.
        narrow, bits = levels.astype(np.float32), (s.astype(np.float32) + 0).view(np.int32)
    if s.size >= 1 << 30 or (narrow[1:] == narrow[:-1]).any():
        return None
    packed = np.empty(s.size, np.int64)
    kernel.pack(positive, negative, bits, packed)
    packed.sort()
    size = s.size + 1
    out = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    kernel.unpack(packed, levels.astype(np.float64), *out)
    return out


def _rank_any(
    positive: Bools, negative: Bools, s: NDArray[Any], ties: Ties, rows: bool
) -> tuple[tuple[F8, I8, I8], I8 | None]:
    """The plain definition: order the samples, add up, keep the last of each tie if merging."""
    order = np.argsort(-s, kind="stable")
    if ties == "merge":
        order = order[(positive | negative)[order]]
    thresholds = np.r_[np.inf, s[order].astype(np.float64)]
    tp, fp = (np.r_[0, np.cumsum(flag[order], dtype=np.int64)] for flag in (positive, negative))
    if ties == "merge":
        last = np.r_[True, thresholds[1:-1] != thresholds[2:], True][: thresholds.size]
        thresholds, tp, fp = thresholds[last], tp[last], fp[last]
    if not rows:
        return (thresholds, tp, fp), None
    if ties == "merge":
        where = np.searchsorted(-thresholds, -s.astype(np.float64), side="right") - 1
    else:
        where = np.empty(s.size, np.int64)
        where[order] = np.arange(1, s.size + 1)
    return (thresholds, tp, fp), where.astype(np.int64)
