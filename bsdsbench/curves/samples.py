"""Checks of labels, scores and points, and counts of both classes as the threshold falls."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8, Bool, given_array, given_number, given_word
from bsdsbench.errors import DataError, InputWarning, Setting, ShapeError, warn

Ties = Literal["merge", "sample"]
LabelReading = Literal["auto", "binary", "sign", "larger"]
EXACT = 2**53  # larger integers are not all distinct as float64, so that a ranking could change
_COUNT_ROUNDING = 1e-12  # relative to the total of a class


class Samples(NamedTuple):
    """The classes and scores of n samples. A sample may be neither positive nor negative."""

    positive: Bool  # (n,)
    negative: Bool  # (n,)
    scores: F8  # (n,)


def read_samples(labels: ArrayLike, scores: ArrayLike, reading: LabelReading) -> Samples:
    """Determine which samples are positive and which are negative, and convert their scores.

    Labels and scores may have any shape; the results are flat. The reading of labels is that of
    `pr`; bool labels are always read as "binary". An InputWarning is given if a class is missing.

    Raises ShapeError if the sizes differ. Raises DataError if a value is NaN or not a number, if
    the labels do not fit `reading`, or if an integer score is beyond 2**53.
    """
    y = _flat_numbers(labels, "labels")
    s = _flat_numbers(scores, "scores")
    _check_same_size(labels=y, scores=s)
    if s.dtype.kind in "iu" and s.size and (int(s.max()) > EXACT or int(s.min()) < -EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    given_word(reading, "reading", get_args(LabelReading))
    if y.dtype == bool:
        reading = "binary"
    elif reading == "auto":
        reading = _infer_reading(y)
    if reading == "larger":
        values = np.unique(y)
        if values.size != 2:
            raise DataError(f"labels: {values.size} values, expected two, of which one is larger")
        positive, negative = y == values[1], y == values[0]
    elif reading == "binary":
        positive, negative = y != 0, y == 0
    else:
        positive, negative = y > 0, y < 0
    for name, is_member in (("positives", positive), ("negatives", negative)):
        if y.size and not is_member.any():
            warn(InputWarning(f"no {name} (labels read as {reading})"))
    return Samples(positive, negative, s.astype(np.float64, copy=False))


def _infer_reading(labels: NDArray[Any]) -> LabelReading:
    """Return "sign" if there is a label -1, and "binary" otherwise.

    Raises DataError, which names readings that fit, if there are labels besides -1, 0 and 1.
    """
    is_other = ~np.isin(labels, (-1, 0, 1))
    if not is_other.any():
        return "sign" if (labels < 0).any() else "binary"
    values = np.unique(labels)
    fixes = []
    if values.size == 2:
        fixes.append(Setting("reading", "larger", "for the larger of two as positive"))
    if (values == 0).any():
        fixes.append(Setting("reading", "binary", "for all but 0 as positive"))
    if values[0] < 0 < values[-1]:
        fixes.append(Setting("reading", "sign", "for those above 0 as positive"))
    raise DataError(
        f"labels: {values.size} values with {labels[is_other.argmax()]:g} among them, "
        "expected 0 and 1, -1 and 1, or -1, 0 and 1",
        fix=fixes,
    )


def without_undefined_ends(ratios: ArrayLike, recalls: ArrayLike, name: str) -> list[NDArray[Any]]:
    """Drop points that are 0/0 from both ends of a curve, and warn if there are any.

    A point of precision and recall, or of FPR and TPR, is 0/0 if its ratio is NaN and its recall is
    0. The warning calls the ratio `name`.

    Returns both arrays, flattened. They are returned unchanged if their sizes differ, and NaN
    between the ends is kept: later checks raise errors for both.
    """
    x, y = given_array(ratios, name).ravel(), given_array(recalls, name).ravel()
    if x.size != y.size:
        return [x, y]
    is_undefined = np.isnan(x) & (y == 0)
    defined = np.flatnonzero(~is_undefined)
    kept = slice(0)
    if defined.size:
        kept = slice(defined[0], defined[-1] + 1)
    n_left_out = x.size - x[kept].size
    if n_left_out:
        warn(InputWarning(f"{name}: {n_left_out} undefined (0/0) at the end, left out"))
    return [x[kept], y[kept]]


def whole_number(value: float, name: str) -> int:
    """Convert a whole number, which may be a float such as 1e4, to int.

    Raises DataError, which calls the number `name`, unless it is whole and from 0 to 2**53.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(given_number(value, name, 0, EXACT, whole=True))


def counts_from_rates(rates: F8, total: float) -> F8:
    """Multiply rates by the total of their class. NaN as the total makes all counts NaN.

    A count that differs from a whole number by no more than rounding becomes whole.
    """
    counts = rates * total
    whole_counts = np.rint(counts)
    differs_by_rounding = np.abs(counts - whole_counts) <= _COUNT_ROUNDING * max(total, 1)
    return np.where(differs_by_rounding, whole_counts, counts)


def _flat_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert values to a flat array of their own dtype. Raises DataError if any is NaN."""
    array = given_array(values, name).ravel()
    is_nan = np.isnan(array)
    if is_nan.any():
        fault = f"{int(is_nan.sum())} NaN, the first at index {int(is_nan.argmax())}"
        raise DataError(f"{name}: {fault}, expected numbers")
    return array


def check_columns(kind: Literal["number", "share", "count"], **arguments: ArrayLike) -> list[F8]:
    """Convert the keyword arguments to flat float64 arrays of one length, in the given order.

    The values must be finite. A "share" must also lie in [0, 1]. A "count" must be 0 or more, and
    not fall along the array. Raises DataError, which names the argument, if a value is not of this
    kind, and ShapeError if the lengths differ.
    """
    arrays = []
    for name, values in arguments.items():
        array = _flat_numbers(values, name).astype(np.float64)
        if not np.isfinite(array).all():
            raise DataError(f"{name}: infinite values, expected finite numbers")
        if kind == "share" and array.size and not (array.min() >= 0 and array.max() <= 1):
            raise DataError(
                f"{name}: values from {array.min():g} to {array.max():g}, expected 0..1"
            )
        if kind == "count" and (np.diff(array, prepend=0) < 0).any():
            raise DataError(f"{name}: expected counts, 0 or more, that do not fall along the curve")
        arrays.append(array)
    _check_same_size(**dict(zip(arguments, arrays, strict=True)))
    return arrays


def _check_same_size(**arrays: NDArray[Any]) -> None:
    """Raise ShapeError if the arrays differ in length."""
    if len({array.size for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name}: {array.size} values" for name, array in arrays.items())
        raise ShapeError(f"{sizes}, expected as many of each")


def above_zero(value: float, name: str) -> float:
    """Return `value` as a float. Raises DataError unless it is finite and above 0."""
    if not 0 < value < np.inf:
        raise DataError(f"{name} {value!r}: expected a number above 0")
    return float(value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only in place, and return it."""
    array.flags.writeable = False
    return array


class Ranking(NamedTuple):
    """True and false positives at each of K falling thresholds."""

    thresholds: F8  # (K,): inf, where nothing is predicted, then the lowest predicted score
    tp: I8  # (K,): number of positives with a score at or above the threshold
    fp: I8  # (K,): number of negatives with a score at or above the threshold
    positives: int  # all positives, including those that are never predicted
    negatives: int
    ties: Ties = "merge"  # see `rank`
    rows: I8 | None = None  # (n,): the first point at which each sample is predicted, or -1


def rank(
    samples: Samples,
    ties: Ties = "merge",
    include_inf: bool | None = None,
    stable: bool = False,
    num_positives: int | None = None,
    num_negatives: int | None = None,
) -> Ranking:
    """Count the predicted positives and negatives while the threshold falls from inf.

    A sample is predicted if its score is at or above the threshold.

    ties : "merge" makes one point for each distinct score. "sample" makes one point for each
        sample, with equal scores in input order.
    include_inf : if False, samples with the score -inf are never predicted: points with this
        threshold are cut off. None means True for "merge" and False for "sample".
    stable : if True, `rows` tells the first point at which each sample, in input order, is
        predicted
    num_positives, num_negatives : class totals to use instead of the numbers of samples. A warning
        is given if one is smaller than the number of samples.
    """
    positive, negative, scores = samples
    n_positives = _class_total(positive, num_positives, "num_positives")
    n_negatives = _class_total(negative, num_negatives, "num_negatives")
    given_word(ties, "ties", get_args(Ties))
    if include_inf is None:
        include_inf = ties == "merge"
    rows = None
    if ties == "merge":
        thresholds, tp, fp = _count_at_distinct_scores(positive, negative, scores)
        if stable:
            rows = np.searchsorted(-thresholds, -scores, side="right") - 1
    else:
        by_falling_score = np.argsort(-scores, kind="stable")
        thresholds = np.r_[np.inf, scores[by_falling_score]] + 0  # -0 becomes 0
        tp = np.r_[0, np.cumsum(positive[by_falling_score])]
        fp = np.r_[0, np.cumsum(negative[by_falling_score])]
        if stable:  # point 0 has no predictions, and point k adds the sample of the k-th rank
            rows = np.empty(scores.size, np.int64)
            rows[by_falling_score] = np.arange(1, scores.size + 1)
    n_points = thresholds.size
    if not include_inf:
        n_points = int(np.count_nonzero(thresholds > -np.inf))
        if rows is not None:
            rows[scores == -np.inf] = -1
    return Ranking(
        thresholds=thresholds[:n_points],
        tp=tp[:n_points],
        fp=fp[:n_points],
        positives=n_positives,
        negatives=n_negatives,
        ties=ties,
        rows=rows,
    )


def _class_total(is_member: Bool, total: int | None, name: str) -> int:
    """Return `total` if it is given, else the number of members of a class.

    An InputWarning, which calls the total `name`, is given if it is below the number of members.
    """
    n_members = int(np.count_nonzero(is_member))
    if total is None:
        return n_members
    n_given = whole_number(total, name)
    if n_given < n_members:
        warn(InputWarning(f"{name} {total}: fewer than the {n_members} there are"))
    return n_given


def _count_at_distinct_scores(positive: Bool, negative: Bool, scores: F8) -> list[NDArray[Any]]:
    """Count the positives and negatives with a score at or above each distinct score.

    Samples of neither class are left out. Returns three arrays (K,): the thresholds, which are inf
    and then the distinct scores in descending order, and the numbers of positives (TP) and of
    negatives (FP) at or above each threshold.
    """
    if scores.size > 10_000:  # for fewer samples, importing numba takes longer than it saves
        return _count_many_samples(positive, negative, scores)
    used = np.flatnonzero(positive | negative)
    by_falling_score = used[np.argsort(-scores[used])]
    s = scores[by_falling_score]
    is_last_of_equal_scores = np.r_[s[1:] != s[:-1], s.size > 0]
    last = np.flatnonzero(is_last_of_equal_scores)
    thresholds = np.r_[np.inf, s[last]] + 0  # -0 becomes 0
    tp = np.r_[0, np.cumsum(positive[by_falling_score])[last]]
    fp = np.r_[0, np.cumsum(negative[by_falling_score])[last]]
    return [thresholds, tp, fp]


def _count_many_samples(positive: Bool, negative: Bool, scores: F8) -> list[NDArray[Any]]:
    """Count as `_count_at_distinct_scores` does, but several times faster for many samples.

    The scores of each class are sorted separately and then merged.
    """
    from bsdsbench.kernels.ranks import merge_levels, partition_scores

    # Scores of the positives fill the array from the front, scores of the negatives from the back
    scores_by_class = np.empty(scores.size + 1)
    positives_end, negatives_start = partition_scores(positive, negative, scores, scores_by_class)
    positive_scores = scores_by_class[:positives_end]
    negative_scores = scores_by_class[negatives_start:]
    positive_scores.sort()
    negative_scores.sort()
    most_points = positive_scores.size + negative_scores.size + 1  # if all scores are distinct
    # Thresholds, TP and FP, which `merge_levels` fills
    columns = [np.empty(most_points, dtype) for dtype in (np.float64, np.int64, np.int64)]
    n_points = merge_levels(positive_scores, negative_scores, *columns)
    if 2 * n_points < most_points:  # copies free the memory of the unused rest
        return [column[:n_points].copy() for column in columns]
    return [column[:n_points] for column in columns]
