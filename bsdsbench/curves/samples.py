"""Checks of labels, scores and points, and true and false positives at falling thresholds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import (
    Bools,
    Floats,
    Ints,
    check_array,
    check_number,
    check_word,
    kind_of_value,
)
from bsdsbench.errors import DataError, InputWarning, Setting, ShapeError, warn
from bsdsbench.text import quantity

Ties = Literal["merge", "sample"]
LabelReading = Literal["auto", "binary", "sign", "larger"]
EXACT = 2**53  # larger integers are not all distinct in float64, which could change the ranking
RATE_SLACK = 1e-6  # a rate beyond 0..1 by at most this is attributed to rounding, as of float32
_COUNT_ROUNDING = 1e-12  # tolerance relative to the total of a class


class Samples(NamedTuple):
    """The classes and scores of n samples. A sample may belong to neither class."""

    positive: Bools  # (n,)
    negative: Bools  # (n,)
    scores: Floats  # (n,)


def read_samples(labels: ArrayLike, scores: ArrayLike, reading: LabelReading) -> Samples:
    """Determine which samples are positive and which are negative, and convert scores to float64.

    Labels and scores of any shape are flattened. `reading` tells what labels are positive:
    "binary" all but 0 (also of bool labels), "sign" those above 0 (0 is neither class), "larger"
    the larger of two, "auto" by the values. If a class is missing, or if "auto" leaves out labels
    of 0, an InputWarning is given.

    Raises ShapeError if the sizes, or the shapes of maps, differ. Raises DataError if both are of
    pandas with one index in two orders, as of a sorted table, if a value is
    NaN or not a number, if the labels do not fit `reading` or are one-hot, or if the absolute value
    of an integer score exceeds 2**53. Labels (n, C) are one-hot if each row sums to 1, and C is 2
    or the scores are probabilities of C classes. A single row of two labels is not checked.
    """
    both: tuple[Any, Any] = (labels, scores)
    indices = [values.index for values in both if hasattr(values, "iloc")]  # of pandas
    if len(indices) == 2 and not indices[0].equals(indices[1]) and {*indices[0]} == {*indices[1]}:
        fix = "scores.loc[labels.index] pairs by index", "to_numpy() of both pairs by order"
        raise DataError("labels, scores: one index in two orders, expected one order", fix=fix)
    label_array, score_array = check_array(labels, "labels"), check_array(scores, "scores")
    label_shape, score_shape = label_array.shape, score_array.shape
    is_table = len(label_shape) == 2 and label_shape[1] > 1 and label_array.size > 2
    if is_table and (label_array.sum(axis=1) == 1).all():  # a single 1 in each row
        are_probabilities = score_shape == label_shape and np.allclose(score_array.sum(axis=1), 1)
        if label_shape[1] == 2 or are_probabilities:
            has = f"labels: one-hot, of shape {label_shape}"
            fix = "labels[:, 1] and scores[:, 1] for class 1", "of maps, ravel() of both"
            raise DataError(f"{has}, expected one per sample", fix=fix)
    # Axes of length 1 do not matter, and a flat array fits a map of its size; two maps must agree
    label_axes = [length for length in label_shape if length > 1]
    score_axes = [length for length in score_shape if length > 1]
    are_maps = len(label_axes) > 1 and len(score_axes) > 1
    if are_maps and label_axes != score_axes:  # such as a transposed map
        has = f"labels: shape {label_shape}, scores: shape {score_shape}"
        raise ShapeError(f"{has}, expected the same")
    y = _flat_numbers(label_array, "labels")
    s = _flat_numbers(score_array, "scores")
    _check_same_size(labels=y, scores=s)
    if s.dtype.kind in "iu" and s.size and (int(s.max()) > EXACT or int(s.min()) < -EXACT):
        raise DataError("scores: integers beyond 2**53, expected values that float64 holds exactly")
    check_word(reading, "reading", get_args(LabelReading))
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
    """Return "sign" if a label is -1, otherwise "binary".

    An InputWarning says how many labels of 0 are left out beside -1 and 1. If there are labels
    other than -1, 0 and 1, raise a DataError that suggests suitable readings.
    """
    is_usual = np.isin(labels, (-1, 0, 1))
    if is_usual.all():
        if not (labels < 0).any():
            return "binary"
        n_zeros = int((labels == 0).sum())
        # Without a label of 1, the caller warns that there are no positives, which says more
        if n_zeros and (labels > 0).any():
            fix = "if 0 is negative and -1 void, remove the rows of -1"
            has = f"left out beside -1 and 1: {quantity(n_zeros, 'label')} of 0"
            warn(InputWarning(has, fix=fix))
        return "sign"
    values = np.unique(labels)
    fixes: list[Setting | str] = []
    others = values[~np.isin(values, (0, 1))]
    if values.size == 2:
        fixes.append(Setting("reading", "larger", "for the larger of two as positive"))
    if (values == 0).any() and (values == np.rint(values)).all():  # not shares
        fixes.append(Setting("reading", "binary", "for all but 0 as positive"))
        if values.size == 3 and others.size == 1:
            fixes.append(f"remove the rows of {others[0]:g} if it is void")
    if values[0] < 0 < values[-1]:
        fixes.append(Setting("reading", "sign", "for those above 0 as positive"))
    raise DataError(
        f"labels: {values.size} values with {labels[is_usual.argmin()]:g} among them, "
        "expected 0 and 1, -1 and 1, or -1, 0 and 1",
        fix=fixes,
    )


def without_undefined_ends(ratios: ArrayLike, recalls: ArrayLike, name: str) -> list[NDArray[Any]]:
    """Drop undefined points (0/0) from both ends of a curve, with a warning if there are any.

    `ratios` are precision or FPR, and `name` is their name in the warning. `recalls` are recall or
    TPR. A point is undefined if its ratio is NaN and its recall is 0.

    Returns both arrays, flattened. The checks of the caller refuse arrays of different sizes, which
    are returned whole, and NaN between the ends, which is kept.
    """
    x, y = check_array(ratios, name).ravel(), check_array(recalls, name).ravel()
    if x.size != y.size:
        return [x, y]
    is_undefined = np.isnan(x) & (y == 0)
    defined = np.flatnonzero(~is_undefined)
    first, last = (defined[0], defined[-1]) if defined.size else (0, -1)  # (0, -1): no point
    kept_x, kept_y = x[first : last + 1], y[first : last + 1]
    n_left_out = x.size - kept_x.size
    if n_left_out:
        warn(InputWarning(f"{name}: {n_left_out} undefined (0/0) at the end, left out"))
    return [kept_x, kept_y]


def whole_number(value: float, name: str) -> int:
    """Convert a whole number, which may be a float such as 1e4, to int.

    Raises DataError, with `name` in the message, unless it is an integer from 0 to 2**53.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(check_number(value, name, 0, EXACT, whole=True))


def counts_from_rates(rates: Floats, total: float) -> Floats:
    """Multiply rates by the total of their class. If the total is NaN, all counts are NaN.

    A count that differs from an integer only by rounding is set to that integer.
    """
    counts = rates * total
    whole_counts = np.rint(counts)
    differs_by_rounding = np.abs(counts - whole_counts) <= _COUNT_ROUNDING * max(total, 1)
    return np.where(differs_by_rounding, whole_counts, counts)


def _flat_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert values to a flat array without changing their dtype. Raises DataError for NaN."""
    array = check_array(values, name).ravel()
    is_nan = np.isnan(array)
    if is_nan.any():
        fault = f"{int(is_nan.sum())} NaN, the first at index {int(is_nan.argmax())}"
        raise DataError(f"{name}: {fault}, expected numbers")
    return array


def check_columns(
    kind: Literal["number", "share", "count"], **arguments: ArrayLike
) -> list[Floats]:
    """Convert the keyword arguments to flat float64 arrays of equal length, in the given order.

    All values must be finite. If `kind` is "share", they must lie in [0, 1], up to rounding, which
    is clipped. If it is "count", they must be 0 or more, and not decrease along the array. Raises
    a DataError that names the argument for other values, and ShapeError if the lengths differ.
    """
    arrays = []
    for name, values in arguments.items():
        array = _flat_numbers(values, name).astype(np.float64)
        if not np.isfinite(array).all():
            raise DataError(f"{name}: infinite values, expected finite numbers")
        if kind == "share" and array.size and (array.min() < 0 or array.max() > 1):
            low, high = array.min(), array.max()
            if low < -RATE_SLACK or high > 1 + RATE_SLACK:
                raise DataError(f"{name}: values from {low:.10g} to {high:.10g}, expected 0..1")
            array = array.clip(0, 1)
        if kind == "count" and (np.diff(array, prepend=0) < 0).any():  # also if the first is < 0
            raise DataError(f"{name}: expected counts, 0 or more, that do not fall along the curve")
        arrays.append(array)
    _check_same_size(**dict(zip(arguments, arrays, strict=True)))
    return arrays


def _check_same_size(**arrays: NDArray[Any]) -> None:
    """Raise ShapeError, which lists the sizes, if the arrays differ in size."""
    if len({array.size for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name}: {array.size} values" for name, array in arrays.items())
        raise ShapeError(f"{sizes}, expected as many of each")


def printed_step(precision: Floats, recall: Floats) -> float:
    """Return the step of the digits, from two to six, with which the points seem to be printed."""
    values = np.concatenate([precision, recall])
    for digits in range(2, 6):
        is_printed = abs(values - values.round(digits)) < 1e-9  # with this number of digits
        if is_printed.all():
            return 10.0**-digits
    return 1e-6


def above_zero(value: float, name: str) -> float:
    """Convert a value to float. Raises DataError unless it is finite and above 0."""
    with suppress(TypeError, ValueError):  # not a number
        if 0 < value < np.inf:
            return float(value)
    raise DataError(f"{name} {kind_of_value(value)}: expected a number above 0")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only in place, and return it."""
    array.flags.writeable = False
    return array


class Ranking(NamedTuple):
    """True and false positives at each of K descending thresholds."""

    thresholds: Floats  # (K,): inf (nothing is predicted positive), then scores in descending order
    tp: Ints  # (K,): number of positives with a score at or above the threshold
    fp: Ints  # (K,): number of negatives with a score at or above the threshold
    positives: int  # all positives, including those that are never predicted positive
    negatives: int
    ties: Ties = "merge"  # see `rank`
    # (n,): the first point at which each sample is predicted positive, or -1 if it never is
    point_of_sample: Ints | None = None


def rank(
    samples: Samples,
    ties: Ties = "merge",
    include_inf: bool | None = None,
    stable: bool = False,
    num_positives: int | None = None,
    num_negatives: int | None = None,
) -> Ranking:
    """Count true and false positives as the threshold falls from inf to the lowest score.

    A sample is predicted positive if its score is at or above the threshold.

    ties : "merge": a point per distinct score; "sample": one per sample, equal scores as given.
    include_inf : if False, samples with score -inf are never predicted positive: points with this
        threshold are cut off. None means True for "merge" and False for "sample".
    stable : VLFeat's name for arrays in input order. If True, set `point_of_sample`, the index of
        the first point at which each sample, in this order, is predicted positive; -1 if never
    num_positives, num_negatives : totals of the classes for rates, if not all members have a score.
        They change no counts. A total below the number of samples raises DataError.
    """
    positive, negative, scores = samples
    n_positives = _class_total(positive, num_positives, "num_positives")
    n_negatives = _class_total(negative, num_negatives, "num_negatives")
    check_word(ties, "ties", get_args(Ties))
    if include_inf is None:
        include_inf = ties == "merge"
    point_of_sample = None
    if ties == "merge":
        thresholds, tp, fp = _count_at_distinct_scores(positive, negative, scores)
        if stable:  # the point whose threshold is the score; negated, because they descend
            point_of_sample = np.searchsorted(-thresholds, -scores, side="right") - 1
    else:
        by_falling_score = np.argsort(-scores, kind="stable")
        thresholds = np.r_[np.inf, scores[by_falling_score]] + 0  # -0 becomes 0
        tp = np.r_[0, np.cumsum(positive[by_falling_score])]
        fp = np.r_[0, np.cumsum(negative[by_falling_score])]
        if stable:  # point 0 has no predictions, and point k adds the k-th ranked sample
            point_of_sample = np.empty(scores.size, np.int64)
            point_of_sample[by_falling_score] = np.arange(1, scores.size + 1)
    n_points = thresholds.size
    if not include_inf:  # cut off the last points
        n_points = int(np.count_nonzero(thresholds > -np.inf))
        if point_of_sample is not None:
            point_of_sample[scores == -np.inf] = -1
    return Ranking(
        thresholds=thresholds[:n_points],
        tp=tp[:n_points],
        fp=fp[:n_points],
        positives=n_positives,
        negatives=n_negatives,
        ties=ties,
        point_of_sample=point_of_sample,
    )


def _class_total(is_member: Bools, total: int | None, name: str) -> int:
    """Return `total` or, if it is None, the number of members of a class.

    Raises DataError with `name` in its message if `total` is below the number of members.
    """
    n_members = int(np.count_nonzero(is_member))
    if total is None:
        return n_members
    n_given = whole_number(total, name)
    refuse_small_total(n_members, n_given, name)
    return n_given


def refuse_small_total(count: float, total: float, name: str) -> None:
    """Raise DataError if a class has more members than its total, up to rounding.

    Rates and areas would exceed 1. `name` is the name of the total in the message.
    """
    if count > total + _COUNT_ROUNDING * max(total, 1):
        has = f"{name} {total:.15g}: fewer than the {count:.15g} there are"
        raise DataError(f"{has}, expected the total")


def _count_at_distinct_scores(
    positive: Bools, negative: Bools, scores: Floats
) -> list[NDArray[Any]]:
    """Count the positives and negatives with a score at or above each distinct score.

    Samples of neither class are ignored. Returns three arrays (K,): the thresholds (inf, then the
    distinct scores in descending order), and TP and FP at each threshold.
    """
    if scores.size > 10_000:  # for fewer samples, importing numba takes longer than it saves
        return _count_many_samples(positive, negative, scores)
    used = np.flatnonzero(positive | negative)
    by_falling_score = used[np.argsort(-scores[used])]
    s = scores[by_falling_score]
    differs_from_next = np.r_[s[1:] != s[:-1], s.size > 0]
    # The last of the samples with each score: the counts up to it include all of them
    last_of_score = np.flatnonzero(differs_from_next)
    thresholds = np.r_[np.inf, s[last_of_score]] + 0  # -0 becomes 0
    tp = np.r_[0, np.cumsum(positive[by_falling_score])[last_of_score]]
    fp = np.r_[0, np.cumsum(negative[by_falling_score])[last_of_score]]
    return [thresholds, tp, fp]


def _count_many_samples(positive: Bools, negative: Bools, scores: Floats) -> list[NDArray[Any]]:
    """Count the positives and negatives with a score at or above each distinct score.

    This takes a fraction of the time of `_count_at_distinct_scores` for many samples: the scores of
    both classes are sorted separately, then merged. Returns thresholds, TP and FP in the same way.
    """
    from bsdsbench.kernels.ranks import merge_levels, partition_scores

    # Scores of positives fill the array from the front, scores of negatives from the back
    scores_by_class = np.empty(scores.size + 1)
    positives_end, negatives_start = partition_scores(positive, negative, scores, scores_by_class)
    positive_scores = scores_by_class[:positives_end]
    negative_scores = scores_by_class[negatives_start:]
    positive_scores.sort()
    negative_scores.sort()
    most_points = positive_scores.size + negative_scores.size + 1  # if all scores are distinct
    thresholds = np.empty(most_points)
    tp, fp = np.empty(most_points, np.int64), np.empty(most_points, np.int64)
    n_points = merge_levels(positive_scores, negative_scores, thresholds, tp, fp)  # fills them
    columns = [thresholds[:n_points], tp[:n_points], fp[:n_points]]
    if 2 * n_points < most_points:  # copy, to free the memory of the unused rest
        return [column.copy() for column in columns]
    return columns
