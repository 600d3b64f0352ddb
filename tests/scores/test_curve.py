"""Scores from counts: hand-worked cases, and the published rules on small numbers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsdsbench.files.errors import ShapeError
from bsdsbench.metrics.boundary import boundary_score
from bsdsbench.metrics.pixel import pixel_score
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import (
    PRCurve,
    area,
    average_precision,
    best,
    best_point,
    curve_counts,
    curve_scores,
    edges_r50,
    four_counts,
    pr_curve,
    recall_at_precision,
)
from bsdsbench.scores.ratios import f_measure, ratio
from tests.helpers.runs import refused


def counts(matched_gt, total_gt, matched_pred, total_pred):
    thresholds = np.arange(1, len(matched_gt) + 1) / 10
    return curve_counts(thresholds, np.transpose([matched_gt, total_gt, matched_pred, total_pred]))


A = counts([8, 6, 2], [10, 10, 10], [8, 6, 2], [40, 8, 2])
B = counts([3, 1, 0], [10, 10, 10], [3, 1, 0], [5, 1, 0])


def test_zero_over_zero_is_zero():
    assert ratio([0, 1, 3], [0, 2, 4]).tolist() == [0.0, 0.5, 0.75]
    assert f_measure(0.0, 0.0) == 0.0
    assert f_measure(1.0, 0.5) == pytest.approx(2 / 3)


def test_set_precision_comes_from_sums_not_from_a_mean_of_ratios():
    curve = PRCurve.of_counts(A.thresholds, four_counts(A) + four_counts(B))
    assert curve.recall.tolist() == [11 / 20, 7 / 20, 2 / 20]
    assert curve.precision.tolist() == [11 / 45, 7 / 9, 2 / 2]
    mean_of_ratios = (pr_curve(A).precision[0] + pr_curve(B).precision[0]) / 2
    assert curve.precision[0] != mean_of_ratios


def test_best_point_interpolates_recall_precision_and_threshold_together():
    curve = PRCurve([0.2, 0.6], [0.2, 1.0], [0.9, 0.3])
    d = np.linspace(0, 1, 100)
    p, r = 0.2 + 0.8 * d, 0.9 - 0.6 * d
    f = 2 * p * r / (p + r)
    k = int(np.argmax(f))
    best = best_point(curve)
    assert 0 < k < 99
    assert best.f == pytest.approx(f[k], abs=1e-15)
    assert best.threshold == pytest.approx(0.2 + 0.4 * d[k], abs=1e-15)
    assert (best.precision, best.recall) == pytest.approx((p[k], r[k]))


def test_best_point_of_one_threshold_and_of_a_tie():
    assert best_point(PRCurve([0.5], [0.5], [1.0])).f == pytest.approx(2 / 3)
    flat = best_point(PRCurve([0.1, 0.2, 0.3], [0.5] * 3, [0.5] * 3))
    assert flat.threshold == 0.1


def test_many_curves_at_once_equal_one_at_a_time():
    rng = np.random.default_rng(3)
    p, r = rng.random((20, 7)), rng.random((20, 7))
    p[3:5], p[5] = 0, p[6]
    t = np.arange(1, 8) / 8
    for rule in ("interpolated", "maximum"):
        many = best(PRCurve(t, p, r), rule)
        for i in range(20):
            one = best_point(PRCurve(t, p[i], r[i]), rule)
            found = tuple(float(values[i]) for values in many)
            assert found == (one.threshold, one.precision, one.recall, one.f)


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=6))
def test_the_best_point_is_the_first_largest_of_all_steps(rows):
    """Against all 100 steps of every segment, laid out in order: nothing is left out wrongly."""
    p, r = np.array(rows).T / 4
    t = np.arange(1, p.size + 1) / 10
    d = np.arange(100) / 99
    steps = [np.concatenate([b * d + a * (1 - d) for a, b in pairwise(v)]) for v in (t, p, r)]
    f = f_measure(steps[1], steps[2])
    found = best_point(PRCurve(t, p, r))
    k = int(np.argmax(f))
    assert (found.threshold, found.precision, found.recall, found.f) == (
        *(s[k] for s in steps),
        f[k],
    )


def test_ois_takes_each_image_at_its_own_first_best_threshold():
    # A is best at its second threshold (P 6/8, R 6/10), B at its first (3/5, 3/10).
    four = np.stack([four_counts(A), four_counts(B)])
    once, twice = curve_scores(A.thresholds, four, np.array([[1, 1]]), Protocol()), [[0, 3]]
    assert once["ois"]["recall"] == pytest.approx([(6 + 3) / 20])
    assert once["ois"]["precision"] == pytest.approx([(6 + 3) / (8 + 5)])
    alone = curve_scores(A.thresholds, four, np.array(twice), Protocol())
    assert (alone["ois"]["recall"], alone["ois"]["precision"]) == ([3 / 10], [3 / 5])
    tied = four_counts(counts([5, 5], [10, 10], [5, 5], [10, 10]))[None]
    assert curve_scores(np.array([0.1, 0.2]), tied, np.array([[1]]), Protocol())["ois"]["f"] == [
        0.5
    ]


@pytest.mark.parametrize(
    ("empty_gt", "predicted"), [("count", 2 + 4 + 6 + 5), ("error", 7 + 4 + 6 + 5)]
)
def test_ois_of_an_image_without_a_single_boundary(empty_gt, predicted):
    """F is 0 at all thresholds: of such images the fewest predicted, if they are to count.

    Of others the first best: where nothing is matched, and where one threshold alone has pixels.
    """
    images = [
        counts([0, 0, 0], [0, 0, 0], [0, 0, 0], [7, 2, 3]),
        counts([0, 0, 0], [9, 9, 9], [0, 0, 0], [4, 1, 2]),
        counts([3, 2, 1], [9, 9, 9], [3, 2, 1], [6, 5, 4]),
        counts([0, 2, 0], [0, 3, 0], [0, 2, 0], [1, 5, 1]),
    ]
    four = np.stack([four_counts(c) for c in images])
    found = curve_scores(
        images[0].thresholds, four, np.ones((1, 4), int), Protocol(empty_gt=empty_gt)
    )
    assert found["ois"]["precision"] == [5 / predicted]
    assert found["ois"]["recall"] == [5 / (9 + 9 + 3)]


def test_average_precision_constant_one_gives_1_01():
    assert average_precision(PRCurve([0.1, 0.2], [1, 1], [1, 0])) == pytest.approx(1.01)


def test_average_precision_counts_nothing_outside_the_measured_recalls():
    # Precision 1 at recalls 0.25 .. 0.5: the levels 0.25, 0.26 .. 0.50 are 26.
    assert average_precision(PRCurve([0.1, 0.2], [1, 1], [0.5, 0.25])) == pytest.approx(0.26)


def test_average_precision_keeps_the_first_of_equal_recalls():
    # At recall 1 the first precision (0) is kept, so precision falls from 1 to 0: 101 levels.
    curve = PRCurve([0.1, 0.2, 0.3], [0, 1, 1], [1, 1, 0])
    assert average_precision(curve) == pytest.approx(0.505)
    assert area(PRCurve([0.1, 0.2], [0.3, 0.4], [0.5, 0.5])) == 0.0


def test_recall_at_half_precision():
    curve = PRCurve([0.1, 0.2, 0.3], [0.25, 0.75, 1.0], [0.8, 0.4, 0.1])
    assert recall_at_precision(curve) == pytest.approx(0.6)
    assert edges_r50(curve) == pytest.approx(0.6)


def test_a_curve_that_never_falls_to_half_precision_has_no_r50():
    """HED's: the edges toolbox then writes the largest recall, or NaN (here 0) from below."""
    above, below = PRCurve([0.1, 0.2], [0.6, 0.9], [0.8, 0.4]), PRCurve([0.1], [0.1], [0.8])
    assert np.isnan(recall_at_precision(above))
    assert edges_r50(above) == pytest.approx(0.8)
    assert np.isnan(recall_at_precision(below))
    assert edges_r50(below) == 0.0
    assert edges_r50(PRCurve([0.1, 0.2], [0.1, 0.2], [0.8, 0.4])) == 0.0
    # nothing found at the highest threshold: 0/0 is no crossing
    empty = PRCurve([0.1, 0.2, 0.3], [0.6, 0.9, 0.0], [0.8, 0.4, 0.0])
    assert np.isnan(recall_at_precision(empty))
    assert edges_r50(empty) == pytest.approx(0.8 * 0.5 / 0.6)
    exact = PRCurve([0.1, 0.2, 0.3], [0.5, 0.9, 0.0], [0.8, 0.4, 0.0])
    assert recall_at_precision(exact) == 0.8
    assert recall_at_precision(PRCurve([0.1, 0.2], [0.3, 0.5], [0.8, 0.4])) == 0.4


def test_r50_of_several_crossings_is_the_one_of_largest_recall():
    """One false detection at the highest threshold must not move it to recall 0.001."""
    curve = PRCurve([0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.9, 0.5], [0.8, 0.6, 0.2, 0.001])
    assert recall_at_precision(curve) == pytest.approx(0.7)
    assert edges_r50(curve) == pytest.approx(0.001)


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=9),
    level=st.floats(0.05, 0.95),
)
def test_where_precision_falls_steadily_r50_is_that_of_the_edges_toolbox(steps, level):
    up, along = (np.cumsum(x) / (np.sum(x) + 0.1) for x in zip(*steps, strict=True))
    curve = PRCurve(np.arange(1, up.size + 1) / 20, up, along[::-1])
    found = recall_at_precision(curve, level)
    if up[0] <= level <= up[-1]:
        assert found == pytest.approx(edges_r50(curve, level))
    else:
        assert np.isnan(found)


def test_one_point_has_no_area():
    """Label maps have one threshold; a binary map is the same at all."""
    for recall, known in (([0.4], False), ([0.4, 0.4], False), ([0.4, 0.3], True)):
        curve = PRCurve(np.arange(1, len(recall) + 1) / 10, [0.5] * len(recall), recall)
        assert np.isfinite(average_precision(curve)) == known
    assert average_precision(PRCurve([0.1, 0.2], [0, 0], [0, 0])) == 0  # nothing found


def test_scores_need_counts():
    for records, named in (([], "records"), ([ImageRecord("a", (2, 3))], "boundary")):
        refused(named, boundary_score, records)


def test_more_matched_than_there_are_is_refused():
    for row in ([3, 2, 1, 1], [1, 1, 3, 2]):
        refused("matched", curve_counts, [0.5], [row])


def test_a_curve_has_one_precision_and_one_recall_per_threshold():
    with pytest.raises(ShapeError, match=r"precision: shape \(2,\), expected \(1,\)"):
        PRCurve([0.1], [0.1, 0.2], [0.3])
    with pytest.raises(ShapeError, match=r"recall: shape \(1, 2\), expected \(2,\)"):
        PRCurve([0.1, 0.2], [0.1, 0.2], [[0.3, 0.4]])
    deep = np.ones((1, 1, 2))
    with pytest.raises(ShapeError, match=r"precision: shape \(1, 1, 2\), expected \(1, 2\)"):
        PRCurve([0.1, 0.2], deep, deep)
    refused(r"thresholds: shape \(\)", PRCurve, 0.1, 0.1, 0.3, error=ShapeError)


def test_pixel_score_by_hand():
    # The note, 3.2.1: TP 4, FP 2, FN 1, TN 3 is (2/5, 4/5) in ROC and (4/5, 2/3) in PR space.
    found = {"thresholds": [0.5], "tp": [4], "fp": [2], "fn": [1], "tn": [3], "abs_error_sum": 2.5}
    score = pixel_score([ImageRecord("a", (2, 5), {"pixel": found})])
    assert (score.ods.recall, score.ods.precision) == pytest.approx((4 / 5, 2 / 3))
    # (0,0) - (0.4,0.8) - (1,1): 0.16 + 0.54; the line 1 - fpr meets it at fpr 1/3.
    assert score.auc_roc == pytest.approx(0.7)
    assert score.eer == pytest.approx(1 / 3)
    assert score.mae == pytest.approx(0.25)


def test_pixel_score_with_one_class_has_no_roc():
    found = {"thresholds": [0.3, 0.6], "tp": [0, 0], "fp": [3, 1], "fn": [0, 0], "tn": [3, 5]}
    found["abs_error_sum"] = 0.0
    score = pixel_score([ImageRecord("a", (2, 3), {"pixel": found})])
    assert score.ods.f == 0.0
    assert np.isnan([score.auc_roc, score.eer]).all()
    assert (score.to_mapping()["auc_roc"], score.to_mapping()["eer"]) == (None, None)


PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 9))
IMAGES = st.lists(st.lists(st.tuples(PAIRS, PAIRS), min_size=3, max_size=3), min_size=1, max_size=5)


@given(IMAGES)
def test_scores_are_within_their_range(images):
    """Of each pair the first are matched, the second are not."""
    four = np.array([[(a, a + b, c, c + d) for (a, b), (c, d) in rows] for rows in images])
    t, once = np.array([0.25, 0.5, 0.75]), np.ones((1, len(four)), int)
    found = curve_scores(t, four, once, Protocol())
    (recall,), (f,) = found["curve"].recall, found["ods"]["f"][None]
    assert found["curve"].f.max() - 1e-12 <= f <= 1
    if recall[0] > 0 and (recall == recall[0]).all():  # one point has no area
        assert np.isnan(found["ap"])
    else:
        assert 0 <= found["ap"] <= 1.01 + 1e-12
    if len(four) == 1:
        assert found["ois"]["f"] == found["curve"].f.max()
    turned = curve_scores(t, four[::-1], once, Protocol())
    np.testing.assert_equal({**turned, "curve": 0}, {**found, "curve": 0})
