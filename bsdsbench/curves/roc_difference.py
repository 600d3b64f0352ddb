"""Test of the difference between the areas under two ROC curves of the same samples."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bools, Floats, Ints, given_level
from bsdsbench.curves.samples import LabelReading, read_samples
from bsdsbench.errors import DataError

_ROUNDING = 1e-12  # a variance below this share of both areas' variances is a rounding error


class DeLongResult(NamedTuple):
    """The areas under two ROC curves of the same samples, and the test of their difference.

    Parameters
    ----------
    auc, other : float
        The areas under the ROC curves of `scores` and of `other`.
    difference, low, high : float
        auc - other, and the ends of its confidence interval.
    p : float
        Two-sided p-value for the hypothesis of equal areas. NaN if the difference has variance 0.
    covariance : array
        float64 (2, 2), the covariance matrix of the two areas.
    """

    auc: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    covariance: Floats


def delong(
    labels: ArrayLike,
    scores: ArrayLike,
    other: ArrayLike,
    *,
    level: float = 0.95,
    reading: LabelReading = "auto",
    clusters: ArrayLike | None = None,
) -> DeLongResult:
    """Test whether the areas under the ROC curves of two scores of the same samples differ.

    Parameters
    ----------
    labels : array_like
        (n,), interpreted according to `reading`.
    scores, other : array_like
        (n,) each, the two scores of each sample. A positive and a negative with equal scores count
        as half a correctly ordered pair.
    level : float
        Confidence level of the interval, from 0.5 to below 1.
    reading : str
        What labels are positive, as in `roc`: by default 1, where the others are 0 or -1.
    clusters : array_like or None
        (n,), the cluster of dependent samples (such as one patient) that each sample belongs to. If
        None, all samples are independent.

    Raises
    ------
    DataError
        If there are fewer than two positives or two negatives, if all samples of a class are in one
        cluster, or if `level` is out of range.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson, Biometrics 1988; computed by ranks as in Sun, Xu, IEEE Signal
    Processing Letters 2014. With clusters: Obuchowski, Biometrics 1997.

    Examples
    --------
    >>> test = delong([0, 0, 1, 1, 1], [1, 3, 2, 4, 5], [2, 1, 3, 5, 4])
    >>> round(test.difference, 3), round(test.p, 3)
    (-0.167, 0.48)
    """
    level = given_level(level)
    first, second = (read_samples(labels, values, reading) for values in (scores, other))
    positive, negative = first.positive, first.negative  # two masks, (n,)
    n_positive, n_negative = int(positive.sum()), int(negative.sum())
    if min(n_positive, n_negative) < 2:
        raise DataError(
            f"labels: {n_positive} positives and {n_negative} negatives, expected two of each"
        )
    # For both scores, the fraction of the negatives that score below each positive, (2, positives),
    # and of the positives that score above each negative, (2, negatives). The area is the mean of
    # either, as both are the share of correctly ordered pairs
    placed = _place_samples(first.scores[positive], first.scores[negative])
    other_placed = _place_samples(second.scores[positive], second.scores[negative])
    above = np.array([placed.above, other_placed.above])
    below = np.array([placed.below, other_placed.below])
    if clusters is None:  # the variances of two means, of positives and of negatives
        covariance = np.cov(above) / n_positive + np.cov(below) / n_negative
    else:
        covariance = _clustered_covariance(above, below, positive, negative, clusters)
    auc, other_auc = above.mean(axis=1).tolist()
    difference = auc - other_auc
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if variance < _ROUNDING * covariance.trace():
        variance = 0.0  # otherwise p would be that of a rounding error
    standard_error = float(np.sqrt(variance))
    half_width = NormalDist().inv_cdf((1 + level) / 2) * standard_error
    p = float("nan")
    if standard_error:  # two-sided
        p = 2 * NormalDist().cdf(-abs(difference) / standard_error)
    return DeLongResult(
        auc=auc,
        other=other_auc,
        difference=difference,
        low=difference - half_width,
        high=difference + half_width,
        p=p,
        covariance=covariance,
    )


class _Placements(NamedTuple):
    """How many scores of the other class each score is above, or below, as a fraction of them."""

    above: Floats  # (positives,): the fraction of the negatives that score lower
    below: Floats  # (negatives,): the fraction of the positives that score higher


def _place_samples(positives: Floats, negatives: Floats) -> _Placements:
    """Compare the score of each positive with those of all negatives, and the reverse.

    Equal scores count half. The mean of either fraction is the area under the ROC curve.
    """
    from scipy.stats import rankdata

    # The rank of a sample among all samples minus its rank in its own class is the number of
    # samples of the other class that score lower. A positive that is 7th of all and 3rd of the
    # positives scores higher than 4 negatives. Equal scores share their mean rank: each counts 1/2
    ranks = rankdata(np.r_[positives, negatives])
    ranks_of_positives, ranks_of_negatives = np.split(ranks, [positives.size])
    n_negatives_lower = ranks_of_positives - rankdata(positives)  # of each positive
    n_positives_lower = ranks_of_negatives - rankdata(negatives)  # of each negative
    above = n_negatives_lower / negatives.size
    below = 1 - n_positives_lower / positives.size  # all other positives score higher
    return _Placements(above, below)


def _clustered_covariance(
    above: Floats, below: Floats, positive: Bools, negative: Bools, clusters: ArrayLike
) -> Floats:
    """Return the covariance matrix (2, 2) of the areas under two ROC curves of clustered samples.

    The variance of an area is that of the mean over positives plus that of the mean over negatives,
    plus twice their covariance, as a cluster may contain both (Obuchowski, Biometrics 1997).

    above (2, positives): for both scores, the fraction of negatives that score below each positive.
    below (2, negatives): for both scores, the fraction of positives that score above each negative.
    positive, negative (n,): the masks of both classes. clusters (n,): the cluster of each sample.
    """
    names = np.asarray(clusters).ravel()
    try:
        is_missing = [name in ("", None) or name != name for name in names.tolist()]  # or NaN
        if any(is_missing):
            raise DataError(f"clusters: {sum(is_missing)} missing, expected one for each sample")
        _, numbers = np.unique(names, return_inverse=True)  # of clusters, from 0
    except TypeError:
        raise DataError("clusters: cannot be sorted, expected numbers or text") from None
    if numbers.shape != positive.shape:
        raise DataError(f"clusters: shape {numbers.shape}, expected {positive.shape}")
    positive_clusters, negative_clusters = numbers[positive], numbers[negative]
    n_clusters = max(positive_clusters.max(), negative_clusters.max()) + 1

    def sum_deviations(fractions: Floats, clusters_of_class: Ints) -> Floats:
        """Sum the deviations of `fractions` from their mean in each cluster, (2, n_clusters)."""
        offsets = fractions - fractions.mean(axis=1, keepdims=True)
        sums = [np.bincount(clusters_of_class, offset, n_clusters) for offset in offsets]
        return np.array(sums) / clusters_of_class.size

    # For both scores. Summed, because the samples of a cluster are not independent
    positives = sum_deviations(above, positive_clusters)  # (2, n_clusters)
    negatives = sum_deviations(below, negative_clusters)
    # Factors n / (n - 1), for unbiased estimates, of the clusters with positives, negatives, either
    factor_p, factor_n = _unbiased_factor(positive_clusters), _unbiased_factor(negative_clusters)
    factor_both = _unbiased_factor(np.concatenate([positive_clusters, negative_clusters]))
    within_classes = factor_p * (positives @ positives.T) + factor_n * (negatives @ negatives.T)
    between_classes = factor_both * (positives @ negatives.T)
    return np.asarray(within_classes + between_classes + between_classes.T)


def _unbiased_factor(clusters: Ints) -> float:
    """Return n / (n - 1) for n distinct clusters, the factor that makes their variance unbiased.

    Raises DataError if all samples belong to one cluster.
    """
    n = np.unique(clusters).size
    if n < 2:
        raise DataError("clusters: one has all positives or negatives, expected two or more")
    return n / (n - 1)
