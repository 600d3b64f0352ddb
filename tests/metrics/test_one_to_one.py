"""One-to-one labels against their plain definition, solved by scipy."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics.one_to_one import one_to_one_labels
from tests.reference import assigning as reference


def solved(prob, gt, radius, weight, delta, metric="l1"):
    """Predicted pixels, annotated pixels, and the table of what their pairs cost."""
    a, b = np.argwhere(prob >= delta), np.argwhere(gt)
    soft = prob[prob >= delta].astype(float)
    return a, b, reference.cost_table(a, b, radius, metric, a_value=-weight * soft)


def problem(seed, shape=(17, 21), annotators=1):
    rng = np.random.default_rng(seed)
    prob = rng.random(shape).astype(np.float32)
    return prob, rng.random((annotators, *shape)) < 0.15


RULES = [(4, 5, 0.8), (2, 20, 0.5), (0, 1, 0.9), (3.5, 0, 0.6)]


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
@pytest.mark.parametrize("rule", RULES)
def test_the_label_is_that_of_an_optimum(metric, rule):
    """No annotated pixel is predicted here, so that the label shows who was paired."""
    for seed in range(20):
        prob, (gt,) = problem(seed)
        prob[gt] = 0.3
        label = one_to_one_labels(prob, gt, *rule, metric=metric)
        assert label.dtype == np.float32
        assert set(np.unique(label)) <= {0.0, 1.0}
        a, b, table = solved(prob, gt, *rule, metric)
        n, cost = reference.dense(table)
        chosen, gone = label[tuple(a.T)] == 1, label[tuple(b.T)] == 0
        assert chosen.sum() == gone.sum() == n
        assert label.sum() == gt.sum()
        again_n, again = reference.dense(table[np.ix_(chosen, gone)])
        assert (again_n, again) == (n, pytest.approx(cost, abs=1e-5))


def test_annotated_pixels_that_are_predicted_keep_or_lose_their_label():
    for seed in range(20):
        prob, (gt,) = problem(seed)
        pairs = bb.assign(prob >= 0.8, gt, 4, metric="l1", pred_value=prob, weight=-5)
        expected = gt.astype(float)
        expected.flat[pairs.gt_index] = 0
        expected.flat[pairs.pred_index] = 1
        np.testing.assert_array_equal(one_to_one_labels(prob, gt), expected)


def test_a_line_beside_the_drawn_one_takes_its_label():
    prob, gt = np.zeros((9, 12)), np.zeros((9, 12), np.uint8)
    prob[3], prob[4], gt[5] = 0.85, 0.95, 255
    for weight, row in ((0, 4), (5, 4), (20, 4)):
        assert (
            one_to_one_labels(prob, gt, weight=weight) == (np.indices(gt.shape)[0] == row)
        ).all()
    prob[3] = 1  # a pixel farther, for .05 of probability
    assert one_to_one_labels(prob, gt, weight=5)[4].all()
    assert one_to_one_labels(prob, gt, weight=55)[3].all()
    assert (one_to_one_labels(prob, gt, delta=1, radius=1) == (gt > 0)).all()  # none in reach
    assert (one_to_one_labels(np.zeros((9, 12)), gt) == (gt > 0)).all()
    assert not one_to_one_labels(prob, np.zeros((9, 12))).any()


def test_batches_and_annotators_are_each_problem_alone():
    images = [problem(seed, annotators=3) for seed in range(4)]
    prob, gts = np.stack([p for p, _ in images]), np.stack([g for _, g in images])
    each = np.stack([[one_to_one_labels(p, g) for g in gs] for p, gs in images])
    for threads in (1, 8):
        np.testing.assert_array_equal(one_to_one_labels(prob, gts, threads=threads), each)
    np.testing.assert_array_equal(one_to_one_labels(prob[:, None], gts), each)
    np.testing.assert_array_equal(one_to_one_labels(prob, gts[:, 0]), each[:, 0])
    np.testing.assert_array_equal(one_to_one_labels(prob[0], gts[0]), each[0])
    ragged = one_to_one_labels(prob, [g[: k + 1] for k, g in enumerate(gts[:3])] + [gts[3, 0]])
    for k, label in enumerate(ragged[:3]):
        np.testing.assert_array_equal(label, each[k, : k + 1])
    np.testing.assert_array_equal(ragged[3], each[3, 0])


def test_the_type_is_that_of_the_probabilities():
    prob, gts = problem(0)
    for dtype, expected in ((np.float64, np.float64), (np.float16, np.float16), (bool, np.float32)):
        assert one_to_one_labels(prob.astype(dtype), gts).dtype == expected
    byte = np.rint(255 * prob).astype(np.uint8)
    np.testing.assert_array_equal(one_to_one_labels(byte, gts), one_to_one_labels(byte / 255, gts))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"prob": np.full((4, 4), 1.5)}, bb.DataError, "values from 1.5 to 1.5, expected"),
        ({"prob": np.zeros(4)}, bb.ShapeError, r"prediction: shape \(4,\), expected \(H, W\)"),
        ({"prob": np.zeros((2, 3, 4, 4))}, bb.ShapeError, r"prediction: shape \(2, 3, 4, 4\), exp"),
        ({"prob": np.zeros((2, 4, 4))}, bb.ShapeError, "ground truth: 4 items, expected 2"),
        ({"gt": np.full((4, 4), 0.5)}, bb.DataError, "ground truth: values other than 0 and 1"),
        ({"weight": -1}, bb.DataError, "weight: -1, expected a number from 0"),
        ({"delta": 2}, bb.DataError, "delta: 2, expected a number from 0 to 1"),
    ],
)
def test_other_input_is_refused_in_one_line(given, kind, message):
    with pytest.raises(kind, match=message):
        one_to_one_labels(**{"prob": np.zeros((4, 4)), "gt": np.eye(4), **given})


def test_lists_and_the_limits_of_weight_and_delta():
    prob, gt = [[0.1, 1.0, 0.1]], [[1, 0, 0]]
    assert one_to_one_labels(prob, gt).tolist() == [[0, 1, 0]]
    for weight, delta in ((0, 1), (1e9, 0), (5.0, 0.8)):
        assert one_to_one_labels(prob, gt, 1, weight, delta)[0, 1] == 1
    for given in ({"weight": 1e9 + 0.5}, {"delta": 1.001}, {"delta": -0.001}):
        with pytest.raises(bb.DataError, match=next(iter(given))):
            one_to_one_labels(prob, gt, **given)


def test_the_documented_rule():
    """Within 4, by l1: 2 + 2 is near enough, 2 + 3 is not; .8 is predicted."""
    prob, gt = np.zeros((6, 6)), np.zeros((6, 6))
    gt[0, 0], prob[2, 2] = 1, 0.8
    assert np.argwhere(one_to_one_labels(prob, gt)).tolist() == [[2, 2]]
    prob[2, 2], prob[2, 3] = 0.799, 0.9
    assert np.argwhere(one_to_one_labels(prob, gt)).tolist() == [[0, 0]]
