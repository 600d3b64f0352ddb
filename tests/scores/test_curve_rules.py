"""Every rule on made counts whose area is worked out by hand, and on the official tables."""

import numpy as np
import pytest

from bsdsbench.errors import ProtocolError
from bsdsbench.scores.curve import AP_RULES, PRCurve, area, describe_late_starts

# Thresholds rising: R .6 .4 .4 .2 0, P .5 .7 .9 1 -, nothing predicted at the last.
FOUR = np.array([[6, 10, 6, 12], [4, 10, 7, 10], [4, 10, 9, 10], [2, 10, 2, 2], [0, 10, 0, 0]])
ROWS = PRCurve.of_counts([0.1, 0.2, 0.3, 0.4, 0.5], FOUR)


def line(r0, p0, r1, p1):
    """Sum of precision at the levels k/100 of (r0, r1] on the line from (r0, p0) to (r1, p1)."""
    a, b = round(100 * r0), round(100 * r1)
    return sum(p0 + (p1 - p0) * (k - a) / (b - a) for k in range(a + 1, b + 1))


MIDDLE = line(0.2, 1, 0.4, 0.7) + line(0.4, 0.7, 0.6, 0.5)
BY_HAND = {
    # (0, 0) first, as 0/0 is 0; at R .4 the first row, P .7
    "bsds": (line(0, 0, 0.2, 1) + MIDDLE) / 100,
    # at R 0 the curve's own row stays; then on to (1, 0)
    "endpoints": (line(0, 0, 0.2, 1) + MIDDLE + line(0.6, 0.5, 1, 0)) / 100,
    # nothing predicted is (0, 1)
    "seism": (1 + line(0, 1, 0.2, 1) + MIDDLE) / 100,
    # at R .4 the last row, P .9
    "sbd": (line(0, 0, 0.2, 1) + line(0.2, 1, 0.4, 0.9) + line(0.4, 0.9, 0.6, 0.5)) / 100,
    # 1 at 21 levels, .9 at the 20 to .40, .5 at the 20 to .60
    "101-point": (21 * 1 + 20 * 0.9 + 20 * 0.5) / 101,
    # recall rises by .2 at P 1, by .2 at the first row of R .4, P .9, by .2 at P .5
    "step": 0.2 * 1 + 0.2 * 0.9 + 0.2 * 0.5,
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_by_hand(rule):
    assert area(ROWS, rule) == pytest.approx(BY_HAND[rule], abs=1e-12)


def test_the_row_of_threshold_zero_counts_for_two_rules():
    four = np.vstack([[[10, 10, 8, 50]], FOUR])
    rows = PRCurve.of_counts([0, 0.1, 0.2, 0.3, 0.4, 0.5], four)
    assert rows.whole_image
    for rule in BY_HAND.keys() - {"step"}:
        assert area(rows, rule) == pytest.approx(BY_HAND[rule], abs=1e-12)
    last = line(0.6, 0.5, 1, 0.16)
    assert area(rows, "edter") == pytest.approx(BY_HAND["bsds"] + last / 100, abs=1e-12)
    assert area(rows, "step") == pytest.approx(BY_HAND["step"] + 0.4 * 0.16, abs=1e-12)


def test_nothing_predicted_or_nothing_annotated():
    empty = np.array([[0, 10, 0, 0], [0, 10, 0, 0]])
    assert {float(area(PRCurve.of_counts([0.1, 0.2], empty), r)) for r in BY_HAND} == {0.0}
    blank = PRCurve.of_counts([0.1, 0.2], [[0, 0, 0, 5], [0, 0, 0, 2]])
    assert area(blank, "seism") == 0
    assert area(PRCurve([0.5], [0.5], [0.5]), "bsds") == 0
    assert area(PRCurve([0.5], [0.5], [0.5]), "101-point") == pytest.approx(51 * 0.5 / 101)


def test_a_stack_has_the_areas_of_its_curves():
    rng = np.random.default_rng(2)
    for t in ([0.2, 0.4, 0.6, 0.8], [0, 0.4, 0.6, 0.8], [0.5]):
        total = rng.integers(0, 9, (40, len(t), 2))
        four = np.stack([rng.integers(0, total[..., 0] + 1), total[..., 0]], -1)
        four = np.concatenate([four, rng.integers(0, total[..., 1:] + 1), total[..., 1:]], -1)
        for rule in AP_RULES:
            each = [float(area(PRCurve.of_counts(t, one), rule)) for one in four]
            np.testing.assert_array_equal(area(PRCurve.of_counts(t, four), rule), each)


@pytest.mark.parametrize(
    ("thresholds", "whole"),
    [([0, 0.5], True), ([-0.5, 0], False), ([0.1, 0.2], False), ([], False)],
)
def test_the_whole_image_is_a_first_threshold_of_0(thresholds, whole):
    four = np.ones((len(thresholds), 4), int)
    assert PRCurve.of_counts(thresholds, four).whole_image == whole
    assert not PRCurve.of_counts(thresholds, four, ">").whole_image
    assert not PRCurve(thresholds, np.ones(len(four)), np.ones(len(four))).whole_image


def test_what_a_curve_alone_does_not_tell():
    made = [[0.1, 0.2], [0.5, 0], [0.6, 0]]
    assert np.isnan(area(PRCurve(*made), "seism"))
    assert np.isnan(area(ROWS, "edter"))
    with pytest.raises(ProtocolError, match="ap_rule 'coco': expected one of bsds, edter"):
        area(ROWS, "coco")
    # from (0, 1), where nothing is predicted, on
    found = area(PRCurve(*made, blank=[False, True]), "seism")
    assert found == pytest.approx((1 + line(0, 1, 0.6, 0.5)) / 100)
    # annotated at one threshold is annotated
    four = [[6, 10, 5, 10], [0, 0, 0, 0]]
    assert area(PRCurve.of_counts([0.1, 0.2], four), "seism") == found


@pytest.mark.parametrize("rule", AP_RULES)
def test_a_late_start_is_said_where_a_rule_counts_nothing_below_it(rule):
    """By `endpoints`: 21 levels of 1, then on to (.6, .5) and (1, 0). There is no row for edter."""
    late, early = (PRCurve([0.1, 0.2], [0.5, 1.0], [0.6, first]) for first in (0.2, 0.02))
    by_hand = (21 + line(0.2, 1, 0.6, 0.5) + line(0.6, 0.5, 1, 0)) / 100
    if rule == "seism":
        late = PRCurve(late.thresholds, late.precision, late.recall, np.zeros(2, bool))
    said = describe_late_starts({"late": late, "early": early}, rule)
    if rule in ("bsds", "sbd", "seism"):
        assert said.startswith("the curve starts at recall 0.20 (late); below that, ")
        assert said.endswith(f"(AP by `endpoints` {by_hand:.3f})")
    else:
        assert said == ""
