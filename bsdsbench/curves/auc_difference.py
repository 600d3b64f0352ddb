"""DeLong's test: is the area under one ROC curve larger than under another of the same samples?"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.samples import F8, LabelReading, samples
from bsdsbench.files.errors import DataError


class DeLongResult(NamedTuple):
    """Two areas under ROC curves of the same samples, and whether they differ; see `delong`.

    Parameters
    ----------
    auc, other : float
        The areas of `scores` and of `other`.
    difference, low, high : float
        auc - other, and its interval.
    p : float
        Two-sided p-value of no difference; NaN if the variance is 0.
    covariance : array
        f8 (2, 2), of the two areas: the square root of its diagonal is their standard error.
    """

    auc: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    covariance: F8


def delong(
    labels: ArrayLike,
    scores: ArrayLike,
    other: ArrayLike,
    *,
    level: float = 0.95,
    reading: LabelReading = "auto",
) -> DeLongResult:
    """Compare the areas under the ROC curves of two scores of the same samples.

    Parameters
    ----------
    labels, scores, other : array
        (n,); labels as in `roc`, ties count half.
    level : float
        Of the interval, between 0 and 1.
    reading : str
        As in `roc`.

    Returns
    -------
    DeLongResult

    Raises
    ------
    DataError
        With fewer than two positives or negatives, where no variance can be estimated.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson, Biometrics 1988; computed by ranks as in Sun, Xu, IEEE Signal
    Processing Letters 2014.

    Examples
    --------
    >>> found = delong([0, 0, 1, 1, 1], [1, 3, 2, 4, 5], [2, 1, 3, 5, 4])
    >>> round(found.difference, 3), round(found.p, 3)
    (-0.167, 0.48)
    """
    from scipy.stats import rankdata

    if not 0 < level < 1:
        raise DataError(f"level {level!r}: expected a number between 0 and 1")
    above, below = [], []
    for values in (scores, other):
        positive, negative, s = samples(labels, values, reading)
        n_positive, n_negative = int(positive.sum()), int(negative.sum())
        if min(n_positive, n_negative) < 2:
            raise DataError(
                f"labels: {n_positive} positives and {n_negative} negatives, expected two of each"
            )
        ranks = rankdata(np.r_[s[positive], s[negative]])
        # for each positive the share of negatives below it, for each negative of positives above
        above.append((ranks[:n_positive] - rankdata(s[positive])) / n_negative)
        below.append(1 - (ranks[n_positive:] - rankdata(s[negative])) / n_positive)
    covariance = np.cov(above) / n_positive + np.cov(below) / n_negative
    auc, second = (float(np.mean(shares)) for shares in above)
    difference = auc - second
    error = float(np.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0)))
    width = NormalDist().inv_cdf((1 + level) / 2) * error
    p = 2 * NormalDist().cdf(-abs(difference) / error) if error else float("nan")
    return DeLongResult(
        auc, second, difference, difference - width, difference + width, p, covariance
    )
