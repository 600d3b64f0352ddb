"""Sums and means under weights, by hand, with undefined values; few samples and many."""

import numpy as np
import pytest

from bsdsbench.scores.ratios import short, weighted_mean, weighted_sum

VALUES = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, np.nan]])
WEIGHTS = np.array([[1, 1, 0], [0, 2, 0], [0, 3, 1], [2, 0, 0]])


@pytest.mark.parametrize("times", [1, 5])
def test_an_undefined_value_is_one_where_it_is_drawn(times):
    weights = np.tile(WEIGHTS, (times, 1))
    sums = np.tile([[3, np.nan], [4, 10], [np.nan, np.nan], [2, np.nan]], (times, 1))
    np.testing.assert_array_equal(weighted_sum(weights, VALUES), sums)
    means = np.tile([[1.5, 5], [2, 5], [2, 5], [1, np.nan]], (times, 1))
    np.testing.assert_array_equal(weighted_mean(weights, VALUES), means)


def test_integers_are_summed_exactly():
    large = np.array([[2**50 + 1], [3], [1]])
    assert weighted_sum(np.array([[1, 1, 1], [0, 2, 1]]), large).tolist() == [[2**50 + 5], [7]]


def test_few_and_many_samples_have_the_same_bits():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-9, 9, (30, 3))
    weights = rng.integers(0, 3, (5, 30))
    few, many = weighted_sum(weights, values), weighted_sum(np.tile(weights, (5, 1)), values)
    assert np.tile(few, (5, 1)).tobytes() == many.tobytes()


def test_a_score_is_printed_with_three_digits_and_without_its_zero():
    assert [short(v) for v in (0.78849, 1, 0, -0.25)] == [".788", "1.000", ".000", "-0.250"]
    assert short(0.78849, 4) == ".7885"
