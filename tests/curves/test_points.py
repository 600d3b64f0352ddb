"""Points of curves in both spaces, and curves of any kind in the one that is asked for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsdsbench import curves
from bsdsbench.curves.areas import point_areas
from bsdsbench.curves.geometry import relation
from bsdsbench.curves.points import meeting, points_of, to_space
from bsdsbench.curves.ranked import VARIANTS, parse_variant
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.scores.curve import PRCurve

CURVE_1 = [0, 0, 0.75, 1], [0, 0.5, 1, 1]
CURVE_2 = [0, 0.25, 1], [0, 1, 1]
LABELS, SCORES = [1, -1, 1, 1, -1, -1], [6.0, 5, 4, 3, 2, 1]


def test_the_areas_of_the_slides():
    """20 positives, 2000 negatives: .8125 and .875 in ROC space, .5198 and 1/26 in PR space."""
    one = curves.CurvePoints.of_rates(*CURVE_1, 20, 2000)
    two = curves.CurvePoints.of_rates(*CURVE_2, 20, 2000)
    assert (one.auc, two.auc) == (0.8125, 0.875)
    assert (one.area, two.area) == (pytest.approx(0.5198, abs=5e-5), pytest.approx(1 / 26))
    rows = {row.name: row.value for row in point_areas(one.tp, one.fp, 20, 2000)}
    assert rows["AUCCalculator"] == pytest.approx(0.5373, abs=5e-5)
    assert rows["step at each whole TP"] == pytest.approx(0.5126, abs=5e-5)
    assert rows["ROC trapezoids"] == rows["ROC hull"] == 0.8125
    assert rows["Davis-Goadrich, achievable (ROC hull)"] == pytest.approx(one.area)


def test_a_confusion_point_of_the_note():
    point = curves.CurvePoints.of_counts([4], [2], 5, 5)
    assert (point.fpr.tolist(), point.tpr.tolist()) == ([0.4], [0.8])
    assert (point.recall.tolist(), point.precision.tolist()) == ([0.8], [4 / 6])


def test_points_between_are_the_table_of_the_paper():
    whole = curves.CurvePoints.of_counts([5, 10], [5, 30], 20, 100).with_between()
    assert whole.tp.tolist() == [5, 6, 7, 8, 9, 10]
    assert whole.fp.tolist() == [5, 10, 15, 20, 25, 30]


def test_points_that_are_no_curve_have_a_hull_and_no_area():
    scattered = curves.CurvePoints.of_rates([0.5, 0.2, 0.6], [0.3, 0.6, 0.9], 10, 10)
    assert not scattered.is_curve
    assert math.isnan(scattered.auc)
    assert math.isnan(scattered.area)
    assert scattered.hull().is_curve
    assert scattered.hull().auc > 0.5


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30))
def test_every_form_of_a_ranking_has_the_same_points(rows):
    rows = [(True, 3), (False, 2), *rows]
    labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    pr, roc = curves.pr(labels, scores), curves.roc(labels, scores)
    assert to_space(pr, "roc").equals(roc)
    assert to_space(roc, "pr").equals(pr)
    for curve in (pr, roc, curves.pr(labels, scores, stable=True)):
        points = points_of(curve)
        assert set(zip(points.tpr, points.fpr, strict=True)) <= set(
            zip(roc.tpr, roc.fpr, strict=True)
        )
        assert points.is_curve
    assert points_of(roc).auc == pytest.approx(roc.auc)
    assert points_of(roc).area == pytest.approx(
        curves.davis_goadrich_area(pr.tp, pr.fp, pr.positives)
    )


def test_what_is_no_curve_of_that_space_is_refused():
    stack = PRCurve([0.1, 0.2], [[1, 0.5]] * 2, [[0.5, 1]] * 2)
    alone = curves.ROCPoints(np.array([0.1]), np.array([0.5]))
    for curve, axes, words in (
        (stack, "pr", "a stack of 2 curves"),
        (alone, "pr", "expected the totals of the classes"),
        (PRCurve([0.1], [1], [0.5]), "roc", "expected the totals of the classes"),
        ("x", "roc", "expected a curve"),
    ):
        with pytest.raises(DataError, match=words):
            to_space(curve, axes)


def test_a_relation_has_four_words():
    pairs = [
        ("neither", CURVE_1, CURVE_2),
        ("first", ((0, 0.2, 1), (0, 0.9, 1)), ((0, 1), (0, 1))),
        ("second", ((0, 1), (0, 1)), ((0, 0.2, 1), (0, 0.9, 1))),
        ("equal", ((0, 1), (0, 1)), ((0, 0.5, 1), (0, 0.5, 1))),
    ]
    for word, a, b in pairs:
        assert relation(a, b) == word
        assert curves.dominates(a, b) == (word in ("first", "equal"))


@pytest.mark.parametrize("space", ["roc", "pr"])
def test_the_undefined_end_of_a_converted_curve_is_left_out_and_said(space):
    """(0, 0) has no precision; recall 0 has no FPR."""
    if space == "pr":
        a, b = (curves.roc_to_pr(*curve, 20, 2000) for curve in (CURVE_1, CURVE_2))
        column, full = "precision", [(p[1:], r[1:]) for p, r in (a, b)]
        with pytest.warns(InputWarning, match=f"{column}: 1 undefined"):
            area = curves.auc_pr(*a)
        assert area == pytest.approx(0.5198, abs=5e-5)
    else:
        a = curves.pr_to_roc([0.9, 1, 0.5], [0, 0.5, 1], 4, 4)
        b = curves.pr_to_roc([0.9, 0.6, 0.5], [0, 0.75, 1], 4, 4)
        column, full = "fpr", [(x[1:], y[1:]) for x, y in (a, b)]
    assert np.isnan(a[0][0])
    with pytest.warns(InputWarning, match=f"{column}: 1 undefined") as caught:
        above = curves.dominates(a, b, space=space)
    assert caught[0].filename == __file__
    assert above == curves.dominates(*full, space=space)
    with pytest.warns(InputWarning, match=f"{column}: 1 undefined"):
        places = curves.crossings(a, b, space=space)
    np.testing.assert_allclose(places, curves.crossings(*full, space=space))
    # what is undefined elsewhere is refused
    broken = np.array([1, np.nan, 0.5]), np.array([0.2, 0.5, 1])
    with pytest.raises(DataError, match="NaN"):
        curves.dominates(broken[:: 1 if space == "pr" else -1], broken, space=space)


@pytest.mark.parametrize(
    ("words", "variant"),
    [
        ("FPTP", "fptp"),
        ("tpr over fpr", "fptp"),
        ("Recall against false-positive rate", "fptp"),
        ("specificity vs sensitivity", "tptn"),
        ("miss rate over false alarm rate", "fpfn"),
        ("tpfp", "tpfp"),
    ],
)
def test_variants_by_name_and_in_words(words, variant):
    assert parse_variant(words) == variant


@pytest.mark.parametrize("words", ["", "tp", "tptp", "recall over precision", "fpr over tnr"])
def test_other_words_are_no_variant(words):
    with pytest.raises(DataError, match=r"plot .*: expected fptp"):
        parse_variant(words)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_area_of_a_variant_is_that_below_its_curve(variant):
    roc = curves.roc(LABELS, SCORES, plot=variant)
    rates = {"fp": roc.fpr, "tp": roc.tpr, "fn": roc.fnr, "tn": roc.tnr}
    x, y = rates[variant[:2]], rates[variant[2:]]
    assert roc.auc == pytest.approx(abs(np.trapezoid(y, x)))


def test_1e4_is_a_whole_number():
    for total in (1e4, 10_000, np.float64(10_000)):
        assert curves.roc(LABELS, SCORES, num_negatives=total).negatives == 10_000
    with pytest.raises(DataError, match="num_negatives"):
        curves.roc(LABELS, SCORES, num_negatives=10.5)


RATES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4)


def curve_of(points):
    fpr, tpr = (np.sort(column) / 6 for column in zip(*points, strict=True))
    return curves.CurvePoints.of_rates(fpr, tpr, 6, 12)


@given(RATES, RATES)
def test_two_curves_meet_alike_in_both_spaces(one, other):
    """Theorem 3.2: completed to (P, N), domination in one space is that in the other."""
    a, b = curve_of(one), curve_of(other)
    in_roc, in_pr = (meeting(a, b, axes) for axes in ("roc", "pr"))
    assert in_roc.relation == in_pr.relation
    ends = [curves.CurvePoints.of_rates(np.r_[c.fpr, 1], np.r_[c.tpr, 1], 6, 12) for c in (a, b)]
    if all(c.tpr[0] > 0 for c in (a, b)):
        pairs = [(c.precision, c.recall) for c in ends]
        assert relation(*pairs, space="pr") == in_pr.relation
    for place in zip(in_roc.places.fpr, in_roc.places.tpr, strict=True):
        assert place in list(zip(in_pr.places.fpr, in_pr.places.tpr, strict=True))


def test_curves_of_other_totals_are_compared_as_they_are():
    rare = curves.CurvePoints.of_rates([0, 0.2, 1], [0, 0.8, 1], 10, 1000)
    often = curves.CurvePoints.of_rates([0, 0.2, 1], [0, 0.8, 1], 10, 10)
    assert meeting(rare, often, "roc").relation == "equal"
    assert meeting(rare, often, "pr").relation == "second"


def test_a_missing_class_has_no_hull_and_no_area():
    with pytest.warns(InputWarning, match="no negatives"):
        points = points_of(curves.roc([1, 1], [2, 1]))
    assert np.isnan(points.hull().fpr).all()
    assert math.isnan(points.auc)
    assert math.isnan(points.area)
