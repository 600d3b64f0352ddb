"""Sums, means and ratios of counts, for a data set and its resamples.

Where counts can be summed, a score is a ratio of integer sums, not a mean of ratios. Weights (S, N)
give the number of times each of N images occurs in each of S samples. A row is all ones for the
data set itself, random draws for a bootstrap, or ones with a single zero for a jackknife.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats, as_numbers

Weights = NDArray[np.integer[Any]]
_MAX_WEIGHTS = 4_000_000  # number of weights converted to float at a time, to save memory (32 MB)


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Return numerator / denominator as float64, with 0/0 = 0.

    Parameters
    ----------
    numerator, denominator : array_like
        Counts, numbers or arrays of equal or broadcastable shapes.

    Returns
    -------
    array
        float64, of the broadcast shape.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.ratio([1, 0], [4, 0]).tolist()
    [0.25, 0.0]
    """
    return divide(as_numbers(numerator, "numerator"), as_numbers(denominator, "denominator"))


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Return numerator / denominator for arrays of integers or float64, with x/0 = 0 for any x.

    All ratios in the package are computed by this function.
    """
    shape = numerator.shape
    if shape != denominator.shape:  # `broadcast_shapes` takes longer than most divisions
        shape = np.broadcast_shapes(shape, denominator.shape)
    quotient = np.zeros(shape)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def defined_ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Return numerator / denominator as float64, with NaN where the denominator is not positive."""
    return np.where(np.asarray(denominator) > 0, ratio(numerator, denominator), np.nan)


def defined_mean(values: Floats, axis: int = -1) -> Floats:
    """Return the mean along an axis, ignoring NaN. It is NaN if all values are NaN."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(axis=axis)
    return defined_ratio(total, is_defined.sum(axis=axis))


def quantile(values: Floats, q: float) -> float:
    """Return the quantile `q` (in [0, 1]) of values (n,), interpolated linearly between ranks.

    numpy.quantile can differ in the last bit, and is NaN between two infinite values.
    """
    rank = q * (values.size - 1)
    first, last = math.floor(rank), math.ceil(rank)
    ranked = np.partition(values, (first, last))  # in the right order at these two ranks
    low, high = ranked[first], ranked[last]
    return float(low if low == high else low + (rank - first) * (high - low))


def f_beta(precision: Floats, recall: Floats, beta2: float = 0.3) -> Floats:
    """Return the F-beta score (1 + beta2) P R / (beta2 P + R), with 0/0 = 0.

    beta2: the square of beta. The default is from Achanta et al., CVPR 2009.
    """
    return ratio((1 + beta2) * precision * recall, beta2 * precision + recall)


def f_measure(precision: ArrayLike, recall: ArrayLike) -> Floats:
    """Return F = 2PR / (P + R), with 0/0 = 0.

    Parameters
    ----------
    precision, recall : array_like
        Numbers or arrays of one shape.

    Returns
    -------
    array
        float64, of that shape.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.f_measure([0.5, 0.0], [1.0, 0.0]).round(3).tolist()
    [0.667, 0.0]
    """
    return harmonic_mean(as_numbers(precision, "precision"), as_numbers(recall, "recall"))


def harmonic_mean(precision: Floats, recall: Floats) -> Floats:
    """Return F = 2PR / (P + R) with 0/0 = 0, for float64 arrays of equal shape."""
    return divide(2 * precision * recall, precision + recall)


def defined_f(shares: Floats) -> Floats:
    """Return the F-measure of precision and recall, either of which may be NaN (undefined).

    shares: (..., 2), precision and recall in either order.

    Returns float64 (...). F is NaN if both are NaN, and 0 if only one is NaN.
    """
    filled = np.nan_to_num(shares)
    f = harmonic_mean(filled[..., 0], filled[..., 1])
    return np.where(np.isnan(shares).all(axis=-1), np.nan, f)


# Number of images processed at a time, where arrays for all images would take too much memory
BLOCK = 1024


def weighted_sum(weights: Weights, values: NDArray[Any]) -> Floats:
    """Compute the weighted sum of the values of N images for each of S samples.

    A sample is the data set itself, or a resample of its images for a bootstrap or jackknife.

    weights: int (S, N), how many times each image occurs in each sample.
    values: (N, ...), integers or floats. Those of an image with weight 0 are ignored, even if NaN.

    Returns float64 (S, ...).

    Sums of integers are far below 2^53, so they are exact in any order. Floats are added in the
    order of the images, so that rounding does not depend on how the work is divided.
    """
    n = len(values)
    are_integers = values.dtype.kind in "iub"
    rows = values.reshape(n, values[0].size)  # one row of K values for each image
    if n == 1:  # nothing to add; `where` ignores NaN with weight 0
        sums = np.zeros((len(weights), rows.shape[1]))
        np.multiply(weights, rows, out=sums, where=weights != 0)
        sums += 0.0  # turns -0 into 0, which a sum with 0 has in the other cases too
    elif are_integers and (weights[:1] != 1).sum() < 2:
        # At most one weight of the first sample is not 1, so this is probably the data set itself
        # or a jackknife, where nearly all weights are 1; other samples are as exact, but slower.
        # Sum all images once, then correct each sample for its few other weights.
        samples, images = np.divmod(np.flatnonzero(weights != 1), n)  # faster than np.nonzero
        sums = np.zeros((len(weights), 1)) + rows.sum(axis=0)  # the same for all samples
        corrections = (weights[samples, images] - 1.0)[:, None] * rows[images]
        np.add.at(sums, samples, corrections)
    else:
        sums = _multiply_in_blocks(weights, rows, are_integers)
    return sums.reshape(len(weights), *values.shape[1:])


def _multiply_in_blocks(weights: Weights, values: NDArray[Any], are_integers: bool) -> Floats:
    """Return the matrix product of weights (S, N) and values (N, K) as float64.

    The weights of S samples tell how many times each of N images occurs. An image has K values.

    Integers are multiplied in float32, which takes half the time of float64, in blocks of so few
    images that no sum over a block exceeds 2^24, up to which float32 is exact. If such a block
    would have fewer than 64 images, they are multiplied in float64.

    For floats, the weights are converted to a sparse matrix. Its product adds the images of each
    sample one by one, in order, and skips those with weight 0, even if their values are NaN.
    """
    n = len(values)
    dtype: type[np.floating[Any]] = np.float64
    block_size = n  # number of images multiplied at a time
    if are_integers:
        # `initial` puts 0 into the range, so that no absolute value exceeds it
        value_range = float(values.max(initial=0)) - float(values.min(initial=0))
        largest_product = max(1, value_range * float(weights.max(initial=1)))  # 1: to divide by it
        n_exact = min(n, int(2**24 // largest_product))  # so many products are summed exactly
        if n_exact >= 64:
            dtype, block_size = np.float32, n_exact
    n_samples = max(1, _MAX_WEIGHTS // block_size)  # number of samples multiplied at a time
    sums = np.zeros((len(weights), values.shape[1]))
    for first in range(0, n, block_size):
        images = slice(first, first + block_size)
        value_block = np.ascontiguousarray(values[images], dtype)
        for first_sample in range(0, len(weights), n_samples):
            samples = slice(first_sample, first_sample + n_samples)
            weight_block: Any = np.ascontiguousarray(weights[samples, images], dtype)
            if not are_integers:
                from scipy.sparse import csr_array  # its import takes longer than most sums

                weight_block = csr_array(weight_block)
            sums[samples] += weight_block @ value_block
    return sums


def weighted_mean(weights: Weights, values: NDArray[Any]) -> Floats:
    """Compute the weighted mean of the values of N images, ignoring NaN, for each of S samples.

    weights: int (S, N), how many times each image occurs in each sample.
    values: (N, ...), NaN where an image has no value.

    Returns float64 (S, ...), NaN where no image of the sample has a value.
    """
    values = np.asarray(values, np.float64)
    is_defined = ~np.isnan(values)
    total = weighted_sum(weights, np.where(is_defined, values, 0.0))
    return defined_ratio(total, weighted_sum(weights, is_defined))
