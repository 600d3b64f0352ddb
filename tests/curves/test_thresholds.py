"""threshold_curve: Schroedl's prec_rec, and the note's examples that use it."""

from fractions import Fraction

import numpy as np
import pytest

from bsdsbench import curves
from bsdsbench.curves.points import _hazen_quantiles
from bsdsbench.errors import InputWarning
from tests.reference import curves as slow


def expect(curve, scores, targets, **options):
    expected = np.array(slow.prec_rec(scores, targets, curve.thresholds, **options))
    for k, name in enumerate(("precision", "tpr", "fpr")):
        np.testing.assert_allclose(getattr(curve, name), expected[:, k], rtol=0, atol=1e-14)


def test_note_6_2_misses_a_level():
    """32 x 32 picture: the quantiles are 128, 64 and 0, so grey level 192 gets no threshold."""
    picture, truth = np.zeros((32, 32)), np.zeros((32, 32), bool)
    truth[15:32] = True
    for rows, value in ((slice(0, 1), 64), (slice(15, 20), 64), (slice(20, 25), 128)):
        picture[rows] = value
    picture[25:31] = 192
    c = curves.threshold_curve(truth, picture)
    assert c.thresholds.tolist() == [128, 64, 0]
    assert c.tpr.tolist() == [11 / 17, 16 / 17, 1]
    assert c.precision.tolist() == [1, 16 / 17, 17 / 32]
    assert c.fpr.tolist() == [0, 1 / 15, 1]
    full = curves.pr(truth, picture)
    assert (full.recall[1], full.precision[1], full.fp[1]) == (6 / 17, 1, 0)


def test_there_are_100_quantiles_at_most_if_no_number_is_given():
    targets, scores = np.tile([0, 1], 125), np.arange(250.0)
    hundred = curves.threshold_curve(targets, scores, num_thresholds=100)
    assert np.array_equal(curves.threshold_curve(targets, scores).thresholds, hundred.thresholds)


@pytest.mark.parametrize("count", [None, 0, 1, 2, 7, 300])
def test_is_prec_rec(count):
    rng = np.random.default_rng(1)
    scores, targets = np.round(rng.normal(size=150), 1), rng.uniform(-0.3, 1.3, 150)
    c = curves.threshold_curve(targets, scores, num_thresholds=count)
    expect(c, scores, targets)
    assert c.thresholds[-1] == scores.min()
    assert (np.diff(c.thresholds) < 0).all()
    if count in (0, 1):
        assert c.thresholds.tolist() == [scores.min()]
    strict = curves.threshold_curve(targets, scores, num_thresholds=count, strict=True)
    if count not in (0, 1):
        expect(strict, scores, targets, strict=True)


@pytest.mark.parametrize(
    ("targets", "count", "positives"),
    [([5, -1, 2, 0.5], [3, 4, 2, 1], 3 - 1 + 2 + 0.5), ([1, 1, 0, 1], [0, 0.5, 3, 2], 1.5)],
)
def test_instance_counts(targets, count, positives):
    """A row may stand for none, and for a part of one."""
    scores = [3.0, 2, 2, 1]
    c = curves.threshold_curve(targets, scores, instance_count=count)
    expect(c, scores, targets, count=count)
    assert (c.positives, c.negatives) == (positives, sum(count) - positives)
    every = curves.threshold_curve(targets, scores, instance_count=2)
    expect(every, scores, targets, count=[2] * 4)


def test__hazen_quantiles_are_exact():
    rng = np.random.default_rng(2)
    for size in (1, 2, 7, 40):
        values = rng.integers(0, 20, size).astype(float)
        for parts in (1, 2, 3, 10, 41):
            expected = [float(slow.hazen(values, Fraction(i, parts))) for i in range(1, parts)]
            found = _hazen_quantiles(values, parts)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    # On a value exactly: 10 values, 20 parts, odd i fall on the values.
    assert _hazen_quantiles(np.arange(10.0) / 10, 20)[::2].tolist() == (np.arange(10) / 10).tolist()


def test_missing_classes_and_no_rows():
    c = curves.threshold_curve([0, 0], [1.0, 2])
    assert np.isnan(c.tpr).all()
    assert c.fpr.tolist() == [0.5, 1]
    assert np.isnan(curves.threshold_curve([1, 1], [1.0, 2]).fpr).all()
    empty = curves.threshold_curve([], [])
    assert (empty.thresholds.size, empty.positives) == (0, 0)


def test_the_chance_of_rows_without_instances_is_undefined():
    for counts in (None, 0):
        rows = [] if counts is None else [0, 1]
        assert np.isnan(curves.threshold_curve(rows, rows, instance_count=counts).chance)


def test_labels_of_one_and_two_are_said():
    with pytest.warns(InputWarning, match="2 above 1, which count as 1, and none at 0"):
        curves.threshold_curve([1, 2, 2], [0.1, 0.9, 0.4])
    curves.threshold_curve([1 + 1e-15, 0.5], [0.9, 0.4])  # shares: means of annotators
