"""The curve and its points: by hand, beside plain definitions, one curve and a stack."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsdsbench.metrics.boundary import boundary_score
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord, MatchCounts
from bsdsbench.scores.curve import ODS_RULES, PRCurve, best, curve_scores, recall_at_half
from bsdsbench.scores.ratios import f_measure
from tests.helpers.runs import refused
from tests.reference import scores as reference


def curve(*rows):
    """Of (precision, recall) at the thresholds .1, .2 .."""
    return PRCurve(np.arange(1, len(rows) + 1) / 10, *np.transpose(rows))


def four(*images):
    """(N, T, 4) of images given as columns."""
    return np.stack([np.transpose(each) for each in images])


def scored(images, weights=None, r50=False, **fields):
    once = np.ones((1, len(images)), int) if weights is None else np.array(weights)
    thresholds = np.arange(1, images.shape[1] + 1) / 10
    return curve_scores(thresholds, images, once, Protocol(**fields), r50)


def test_the_best_of_one_threshold_and_of_a_tie():
    assert best(curve((0.5, 1.0))).f == pytest.approx(2 / 3)
    assert best(curve(*[(0.5, 0.5)] * 3)).threshold == 0.1


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=6))
def test_the_best_point_is_the_first_largest_of_all_steps(rows):
    """Against all 100 steps of every segment, laid out in order: nothing is left out wrongly."""
    p, r = np.array(rows).T / 4
    t = np.arange(1, p.size + 1) / 10
    d = np.arange(100) / 99
    steps = [np.concatenate([b * d + a * (1 - d) for a, b in pairwise(v)]) for v in (t, p, r)]
    f = f_measure(steps[1], steps[2])
    k = int(np.argmax(f))
    threshold, precision, recall = (values[k] for values in steps)
    expected = {"threshold": threshold, "recall": recall, "precision": precision, "f": f[k]}
    assert best(PRCurve(t, p, r)) == expected


def test_a_point_at_a_threshold_lies_on_the_line():
    drawn = curve((0.5, 0.8), (0.7, 0.4), (1.0, 0.1))
    first, second, last = drawn.thresholds
    point, middle = drawn.at(first), drawn.at((first + second) / 2)
    assert (point.precision, point.recall) == (0.5, 0.8)
    assert (middle.precision, middle.recall) == pytest.approx((0.6, 0.6))
    refused("expected one from", drawn.at, last + 0.01)


def test_a_stack_has_the_points_of_its_curves():
    rng = np.random.default_rng(3)
    p, r = rng.random((2, 20, 7))
    p[3:5], p[5] = 0, p[6]
    stack = PRCurve(np.arange(1, 8) / 8, p, r)
    for rule in ODS_RULES:
        points = np.transpose(list(best(stack, rule).values()))
        assert points.tolist() == [list(best(stack[i], rule).values()) for i in range(20)]
    for name, values in recall_at_half(stack).items():
        np.testing.assert_array_equal(values, [recall_at_half(stack[i])[name] for i in range(20)])


@pytest.mark.parametrize(
    ("empty_gt", "predicted"), [("count", 2 + 4 + 6 + 5), ("error", 7 + 4 + 6 + 5)]
)
def test_ois_of_an_image_without_a_single_boundary(empty_gt, predicted):
    """F is 0 at all thresholds: of such images the fewest predicted, if they are to count.

    Of others the first best: where nothing is matched, and where one threshold alone has pixels.
    """
    images = four(
        [[0, 0, 0], [0, 0, 0], [0, 0, 0], [7, 2, 3]],
        [[0, 0, 0], [9, 9, 9], [0, 0, 0], [4, 1, 2]],
        [[3, 2, 1], [9, 9, 9], [3, 2, 1], [6, 5, 4]],
        [[0, 2, 0], [0, 3, 0], [0, 2, 0], [1, 5, 1]],
    )
    found = scored(images, empty_gt=empty_gt)["ois"]
    assert found["precision"] == [5 / predicted]
    assert found["recall"] == [5 / (9 + 9 + 3)]


@pytest.mark.parametrize(
    ("rows", "r50", "edges"),
    [
        ([(0.25, 0.8), (0.75, 0.4), (1, 0.1)], 0.6, 0.6),
        # HED's: never below. The edges toolbox then writes the largest recall, or NaN (here 0).
        ([(0.6, 0.8), (0.9, 0.4)], np.nan, 0.8),
        # nothing found at the highest threshold: 0/0 is no crossing
        ([(0.6, 0.8), (0.9, 0.4), (0, 0)], np.nan, 0.8 * 0.5 / 0.6),
        ([(0.5, 0.8), (0.9, 0.4), (0, 0)], 0.8, 0.8),
        ([(0.3, 0.8), (0.5, 0.4)], 0.4, 0.4),
        ([(0.3, 0.8), (0.4, 0.4)], np.nan, 0.0),
        # One false detection at the highest threshold must not move it to recall 0.001.
        ([(0.4, 0.8), (0.6, 0.6), (0.9, 0.2), (0.5, 0.001)], 0.7, 0.001),
    ],
)
def test_recall_at_half_precision_by_hand(rows, r50, edges):
    found = recall_at_half(curve(*rows))
    assert found == pytest.approx({"r50": r50, "edges_r50": edges}, nan_ok=True)


def test_scores_need_counts_no_more_matched_than_there_are():
    for records, named in (([], "records"), ([ImageRecord("a", (2, 3))], "boundary")):
        refused(named, boundary_score, records)
    for row in ([3, 2, 1, 1], [1, 1, 3, 2]):
        refused("matched", MatchCounts, [0.5], [row])


PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 9))
IMAGES = st.lists(st.lists(st.tuples(PAIRS, PAIRS), min_size=3, max_size=3), min_size=1, max_size=5)


@pytest.mark.slow
@given(IMAGES)
def test_scores_are_the_plain_ones_in_any_order(images):
    """Of each pair the first are matched, the second are not."""
    rows = np.array([[(a, a + b, c, c + d) for (a, b), (c, d) in each] for each in images])
    found = scored(rows, r50=True, empty_gt="error")
    plain = reference.curve_scores([0.1, 0.2, 0.3], rows.tolist(), Protocol())
    values = found["ods"]["f"], found["ois"]["f"], found["ap"], found["r50"]
    for value, name in zip(values, ("ods", "ois", "ap", "r50"), strict=True):
        assert value == pytest.approx([plain[name]], nan_ok=True), name
    turned = scored(rows[::-1], r50=True, empty_gt="error")
    np.testing.assert_equal({**turned, "curve": 0}, {**found, "curve": 0})


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_row_of_the_whole_image_comes_first_once(n):
    """Of one curve, and of stacks of 1 and 3, whose best points are arrays."""
    stack = (n,) if n else ()
    p, r, blank = (np.full((*stack, 2), values) for values in ([0.5, 1.0], [0.6, 0.2], [0, 1]))
    curve = PRCurve(np.array([0.3, 0.6]), p, r, blank.astype(bool))
    whole = curve.with_whole_image(np.full(stack, 0.1))
    assert whole.thresholds.tolist() == [0.0, 0.3, 0.6]
    rows = ([0.1, 0.5, 1.0], [1.0, 0.6, 0.2], [False, False, True])
    for values, row in zip((whole.precision, whole.recall, whole.blank), rows, strict=True):
        assert np.array_equal(values, np.full((*stack, 3), row))
    assert whole.whole_image
    assert whole.with_whole_image(0.4) is whole
    top = best(curve, "maximum").f
    assert type(top) is (np.ndarray if n else float)
    assert np.shape(top) == stack
    assert top == pytest.approx(0.6 / 1.1)
