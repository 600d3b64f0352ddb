"""Precision, recall and F from counts: `ratio` is the one function that divides.

A ratio is computed from integer sums, of one image or a data set, and never as a mean of ratios if
counts can be summed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import given_floats

F8 = NDArray[np.float64]


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> F8:
    """numerator / denominator as float64, with 0/0 = 0. The one place where ratios are made.

    Scalars or arrays of equal (or broadcastable) shape; returns a float64 array of that shape.

    Parameters
    ----------
    numerator : array_like
        Counts, a number or an array.
    denominator : array_like
        Totals, of an equal or broadcastable shape.

    Returns
    -------
    array
        f8, of the broadcast shape; 0/0 gives 0.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.ratio([1, 0], [4, 0]).tolist()
    [0.25, 0.0]
    """
    num = given_floats(numerator, "numerator")
    den = given_floats(denominator, "denominator")
    out = np.zeros(np.broadcast_shapes(num.shape, den.shape))
    np.divide(num, den, out=out, where=den != 0)
    return out


def f_measure(precision: ArrayLike, recall: ArrayLike) -> F8:
    """2PR / (P + R), with 0/0 = 0; float64, numbers or arrays of one shape.

    Parameters
    ----------
    precision : array_like
        Precision, numbers or arrays of one shape.
    recall : array_like
        Recall, of the same shape.

    Returns
    -------
    array
        F, of that shape; 0/0 gives 0.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.f_measure([0.5, 0.0], [1.0, 0.0]).round(3).tolist()
    [0.667, 0.0]
    """
    p = given_floats(precision, "precision")
    r = given_floats(recall, "recall")
    return ratio(2 * p * r, p + r)


def or_none(value: float) -> float | None:
    """A number for JSON: None where it is undefined."""
    return None if math.isnan(value) else value
