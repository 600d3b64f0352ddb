"""Ratios and means: what is not defined is left out, and is not a zero."""

import numpy as np
import pytest

from bsdsbench.scores.ratios import defined_mean, defined_ratio, f_beta, f_measure, ratio

NAN = np.nan


@pytest.mark.parametrize(
    ("values", "axis", "expected"),
    [
        ([[1.0, 2.0, NAN], [NAN, NAN, NAN], [0.0, 0.0, 6.0]], -1, [1.5, NAN, 2.0]),
        ([[1.0, 2.0, NAN], [5.0, NAN, NAN]], 0, [3.0, 2.0, NAN]),
        ([0.25, NAN, 0.75, 0.5], -1, 0.5),
    ],
)
def test_mean_of_what_is_defined(values, axis, expected):
    """Sums over how many: 3 / 2, 0 / 0, 6 / 3."""
    assert np.array_equal(defined_mean(np.array(values), axis), expected, equal_nan=True)


def test_nothing_of_nothing_is_zero_as_a_ratio_and_unknown_as_a_defined_one():
    assert ratio([1, 0, 0], [4, 5, 0]).tolist() == [0.25, 0.0, 0.0]
    assert np.array_equal(defined_ratio([1, 0, 0], [4, 5, 0]), [0.25, 0.0, NAN], equal_nan=True)


def test_f_beta_is_that_of_saliency_papers_and_f_with_a_weight_of_one():
    """1.3 P R / (.3 P + R): .416 / .64 at P .8, R .4."""
    precision, recall = np.array([0.8, 0.5, 0.0]), np.array([0.4, 0.5, 0.0])
    assert f_beta(precision, recall) == pytest.approx([0.65, 0.5, 0.0])
    assert f_beta(precision, recall, 1) == pytest.approx(f_measure(precision, recall))
