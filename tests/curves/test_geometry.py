"""Conversions, hull, interpolation, areas, dominance, crossings: the documents' worked examples."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from bsdsbench import curves
from bsdsbench.errors import DataError, ShapeError
from tests.helpers.runs import refused

# 20 positives, 2000 negatives: two ROC curves given by their corners (slides of 2006).
P, N = 20, 2000
CURVE_1 = np.array([0, 0, 0.75, 1]), np.array([0, 0.5, 1, 1])
CURVE_2 = np.array([0, 0.25, 1]), np.array([0, 1, 1])


def counts(curve):
    return curve[1] * P, curve[0] * N


def test_davis_goadrich_table():
    precision, recall = curves.interpolate_pr([5, 10], [5, 30], 20)
    assert [f"{p:.3f}" for p in precision] == ["0.500", "0.375", "0.318", "0.286", "0.265", "0.250"]
    assert recall.tolist() == [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    # x runs over 1 .. TP_B - TP_A - 1: four new points between the two.
    assert precision.tolist() == [t / (t + 5 + 5 * (t - 5)) for t in range(5, 11)]


def test_twenty_against_two_thousand():
    area = lambda *rates: curves.CurvePoints.of_rates(*rates).auc  # noqa: E731
    assert area(*CURVE_1) == 0.8125
    assert area(*CURVE_2) == 0.875
    assert area(*(np.flip(rates) for rates in CURVE_2)) == 0.875
    assert area([0, 0.5, 1 + 1e-15], [-1e-15, 1, 1]) == 0.75  # of running sums
    assert math.isnan(area([0, 0.5, 1], [1, 0.2, 0]))  # miss rates
    refused("^fpr: values", area, [0, 50, 100], [0, 80, 100])
    one = curves.davis_goadrich_area(*counts(CURVE_1), P)
    assert f"{one:.4f}" == "0.5198"
    assert curves.davis_goadrich_area(*counts(CURVE_2), P) == pytest.approx(1 / 26, rel=1e-15)
    pr, roc = curves.auccalculator_areas(*counts(CURVE_1), P, N)
    assert (f"{pr:.4f}", f"{roc:.4f}") == ("0.5373", "0.8125")
    unit = curves.interpolate_pr(*counts(CURVE_1), P)
    assert f"{curves.auc_pr(*unit, rule='step'):.4f}" == "0.5126"
    # The closed form is the integral of the count-linear precision.
    k = (1500 - 0) / (20 - 10)
    integral = 0.5 + quad(lambda t: t / (t + k * (t - 10)), 10, 20, epsabs=1e-13)[0] / P
    assert one == pytest.approx(integral, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(8))
def test_the_area_of_a_curve_of_precision_and_recall_is_that_of_its_counts(seed, dtype):
    """Where FP stands still, r (1/p - 1) falls by a rounding.

    Precision 0 at recall 0 says nothing of FP: the curve begins with its first true positive.
    """
    rng = np.random.default_rng(seed)
    labels, scores = rng.random(400) < rng.uniform(0.1, 0.9), rng.integers(0, 300, 400)
    curve = curves.pr(labels, scores)
    given = curve.precision.astype(dtype), curve.recall.astype(dtype)
    near = 1e-12 if dtype is np.float64 else 1e-5
    tp, fp = curve.tp[curve.tp > 0], curve.fp[curve.tp > 0]
    area = curves.davis_goadrich_area(tp, fp, curve.positives)
    assert curves.auc_pr(*given) == pytest.approx(area, rel=near)


def test_more_area_in_roc_is_not_more_in_pr():
    """Curve II has the larger area in ROC space, curve I in PR space; neither dominates."""
    assert not curves.dominates(CURVE_1, CURVE_2)
    assert not curves.dominates(CURVE_2, CURVE_1)
    assert curves.dominates(CURVE_1, CURVE_2, within=(0, 0.15))
    assert curves.dominates(CURVE_2, CURVE_1, within=(0.15, 1))
    cross = curves.crossings(CURVE_1, CURVE_2)
    assert cross.fpr == pytest.approx([0.15])
    assert cross.tpr == pytest.approx([0.6])
    pr_1, pr_2 = (curves.roc_to_pr(c[0][1:], c[1][1:], P, N) for c in (CURVE_1, CURVE_2))
    there = curves.crossings(pr_1, pr_2, space="pr")
    assert there.recall == pytest.approx([0.6])
    assert there.precision == pytest.approx([12 / (12 + 300)])
    back = curves.pr_to_roc(*there, P, N)
    assert (back.fpr, back.tpr) == (pytest.approx([0.15]), pytest.approx([0.6]))


def test_impossible_points_of_the_note():
    """3.3.1: with 5 positives and 5 negatives, no ranking is at (0.8, 0.2) or (0.8, 0.3)."""
    with pytest.raises(DataError, match=r"precision 0.2 at recall 0.8: .* rate of 3.2 with 5"):
        curves.pr_to_roc([0.9, 0.2, 0.3], [0.8, 0.8, 0.8], 5, 5)
    with pytest.raises(DataError, match=r"precision 0 at recall 0\.5"):
        curves.pr_to_roc([0.0], [0.5], 5, 5)


def test_where_the_spaces_do_not_map():
    precision, recall = curves.roc_to_pr([0, 0.5], [0, 0], 5, 5)
    assert math.isnan(precision[0])
    assert (precision[1], recall.tolist()) == (0, [0, 0])
    fpr = curves.pr_to_roc([1, 0, math.nan], [0, 0, 0], 5, 5).fpr
    assert fpr[0] == 0
    assert np.isnan(fpr[1:]).all()


def test_hull_by_hand():
    hull = curves.roc_convex_hull([0.2, 0.1, 0.4, 0.6, 0.7], [0.4, 0.2, 0.8, 0.7, 0.85])
    # (0.1, 0.2) and (0.2, 0.4) lie on the line to (0.4, 0.8); (0.6, 0.7) lies below
    assert hull.fpr.tolist() == [0, 0.4, 1]
    between = curves.achievable_pr([0.25], [0.85], 10, 10)  # 8.5 and 2.5 of 10 stay what they are
    assert 8.5 / 11 in between.precision[between.recall == 0.85]
    assert hull.tpr.tolist() == [0, 0.8, 1]
    assert curves.roc_convex_hull([], []).tpr.tolist() == [0, 1]
    worse = curves.roc_convex_hull([0.5], [0.1])
    assert worse.fpr.tolist() == [0, 1]


def test_achievable_pr_by_hand():
    # 4 positives, 4 negatives, one point TP 2, FP 1: hull (0,0) (1/4,1/2) (1,1)
    precision, recall = curves.achievable_pr([0.25], [0.5], 4, 4)
    assert recall.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert precision == pytest.approx([2 / 3, 2 / 3, 2 / 3, 3 / (3 + 2.5), 4 / 8])


def test_interpolation_edges():
    assert [part.size for part in curves.interpolate_pr([], [], 5)] == [0, 0]
    precision, recall = curves.interpolate_pr([0, 0, 2], [0, 3, 3], 4)
    assert precision == pytest.approx([0, 0, 1 / 4, 2 / 5])
    assert recall.tolist() == [0, 0, 0.25, 0.5]
    assert curves.interpolate_pr([0], [0], 4).precision.tolist() == [1]
    # fractional ends: whole counts strictly between only
    assert curves.interpolate_pr([0.5, 2.5], [1, 1], 4).recall.tolist() == [0.125, 0.25, 0.5, 0.625]


def test_every_rule_by_hand():
    precision, recall = np.array([1.0, 0.5, 2 / 3]), np.array([0.25, 0.25, 0.5])
    area = {rule: curves.auc_pr(precision, recall, rule=rule) for rule in ("step", "trapezoid")}
    assert area["step"] == pytest.approx(0.25 * 1 + 0.25 * 2 / 3)
    assert area["trapezoid"] == pytest.approx(0.25 * (0.5 + 2 / 3) / 2)
    eleven = curves.auc_pr(precision, recall, rule="11-point")
    assert eleven == pytest.approx((3 * 1 + 3 * 2 / 3) / 11)  # 0 .1 .2 | .3 .4 .5
    coco = curves.auc_pr(precision, recall, rule="101-point")
    assert coco == pytest.approx((26 * 1 + 25 * 2 / 3) / 101)
    # (recall 1/4, 2/4): FP per positive 0, then 1/4: flat 1, a jump, then FP stands still
    closed = curves.auc_pr(precision, recall)
    integral = 0.25 + quad(lambda r: r / (r + 0.25), 0.25, 0.5)[0]
    assert closed == pytest.approx(integral, rel=1e-12)
    assert curves.auc_pr([1, 1], [0, 1], rule="bsds") == 1.01
    assert curves.auc_pr([0.5], [0.5], rule="bsds") == 0
    # the order of the points does not matter, only for the first of equal recalls under "bsds"
    for rule in ("step", "trapezoid", "11-point", "davis-goadrich"):
        back = curves.auc_pr(precision[::-1], recall[::-1], rule=rule)
        assert back == curves.auc_pr(precision, recall, rule=rule)
    assert curves.auc_pr([], [], rule="step") == 0


def test_auccalculator_is_optimistic_when_negatives_come_first():
    # ranking - + +: the ROC area is 0, AUCCalculator drops the TP = 0 point and says 1/4
    roc = curves.roc([-1, 1, 1], [3.0, 2, 1])
    assert roc.auc == 0
    _, area = curves.auccalculator_areas(roc.tp, roc.fp, 2, 1)
    assert area == 0.25
    flat = curves.auccalculator_areas(roc.tp, roc.fp, 2, 1)[0]
    honest = curves.davis_goadrich_area(roc.tp, roc.fp, 2)
    assert flat == pytest.approx((0.5 + (0.5 + 2 / 3) / 2) / 2)
    assert honest == pytest.approx(quad(lambda t: t / (t + 1), 0, 2)[0] / 2)
    assert honest < flat


def test_auccalculator_puts_a_point_before_the_first():
    # TP 4, FP 2 first: (1, 1/2) comes before it, all on one line through the origin
    pr, roc = curves.auccalculator_areas([4], [2], 4, 8)
    assert pr == pytest.approx(4 / 6)
    assert roc == pytest.approx((0.25 * 1 / 2) + 0.75 * 1)


AREA, LINE_1 = curves.auc_pr, ([0.5], [1])


def dominates(*pair, space="pr", **options):
    return curves.dominates(*pair, space=space, **options)


REFUSED = {  # what is named: what is called
    "precision": lambda: AREA([-0.1, 0.5], [0, 1]),
    "precision 0": lambda: AREA([0.5, 0], [0.5, 1]),
    "precision: expected above 0": lambda: dominates(([0.5, 0], [0.5, 1]), LINE_1),
    "recall": lambda: AREA([1] * 3, [0, 1, 0.5]),
    "fpr: .* turning back": lambda: dominates(([0, 0.6, 0.4], [0, 1, 1]), CURVE_2, space="roc"),
    # FP may fall by what the digits of the points round, and no more
    "fp: expected counts": lambda: AREA([0.5, 0.8], [0.1, 0.2]),
    "positives": lambda: curves.interpolate_pr([1], [1], math.nan),
    "precision: 1 values, recall: 2": lambda: AREA([1], [0, 1]),
}


@pytest.mark.parametrize("named", REFUSED)
def test_bad_input_is_named(named):
    with pytest.raises(ShapeError if "values" in named else DataError, match=f"^{named}"):
        REFUSED[named]()


def test_areas_without_points_and_of_a_straight_line():
    assert curves.davis_goadrich_area([], [], 5) == 0
    # only (P, N) = (2, 3): precision 2/5 all along, a diagonal in ROC space
    assert curves.auccalculator_areas([], [], 2, 3) == pytest.approx((0.4, 0.5))


def test_min_recall_cuts_auccalculator_s_trapezoids():
    """TP 10, FP 0, then (20, 1500): FP rises by 150 with each of them."""
    tp = np.arange(15, 21)
    precision = tp / (tp + 150 * (tp - 10))
    area = sum(precision[:-1] + precision[1:]) / 2 / 20
    found = curves.auccalculator_areas([10, 20], [0, 1500], 20, 1500, min_recall=0.75)[0]
    assert found == pytest.approx(area, rel=1e-12)
    refused("min_recall: 75, expected", curves.auccalculator_areas, [1], [0], 1, 1, min_recall=75)


@pytest.mark.parametrize(("positives", "k"), [(98, 16), (100_000, 12501)])
def test_a_rate_of_whole_counts_adds_no_point_beside_them(positives, k):
    """k / P times P is not k."""
    recall = curves.achievable_pr([0], [k / positives], positives, 10).recall
    assert recall.size == positives + 1


LINE = [0, 1], [0, 1]
# x and y of a curve, and where it meets the diagonal: up to it and on from the other side
MEETS = {
    "jumps from 0 to .9": ([0, 0.4, 0.4, 1], [0, 0, 0.9, 1], 0.4),
    "jumps to it, then leaves it": ([0, 0.5, 0.5, 0.75, 1], [0, 0.2, 0.5, 0.9, 1], 0.5),
    "runs along it": ([0, 0.2, 0.4, 0.6, 0.8], [0, 0.3, 0.4, 0.6, 0.7], 0.4),
    "stairs above it": ([0, 0.2, 0.2, 0.6, 0.6], [0.3, 0.3, 0.7, 0.7, 1], None),
    "touches it": ([0, 0.2, 0.4, 0.6, 0.8], [0, 0.3, 0.4, 0.7, 0.9], None),
}


@pytest.mark.parametrize("case", MEETS)
def test_where_an_upright_piece_meets_a_line(case):
    x, y, at = MEETS[case]
    for pair in (((x, y), LINE), (LINE, (x, y))):
        cross = curves.crossings(*pair)
        points = [] if at is None else [at]
        assert (cross.fpr.tolist(), cross.tpr.tolist()) == (points, points)
    assert curves.dominates((x, y), LINE) == (at is None)
    assert not curves.dominates(LINE, (x, y))


def test_straight_lines_are_those_of_printed_figures():
    """From (.2, .9) to (1, .5), against a level .7; count-linear they meet elsewhere."""
    slope, level = ([1, 0.9, 0.5], [0, 0.2, 1]), ([0.7, 0.7], [0.5, 1])
    straight = curves.crossings(slope, level, space="pr", lines="straight")
    assert (straight.recall.tolist(), straight.precision.tolist()) == (
        [pytest.approx(0.6)],
        [pytest.approx(0.7)],
    )
    # FP/P: .2/.9 - .2, then to 1, against r (1/.7 - 1)
    first = 0.2 / 0.9 - 0.2
    share = (1 - first) / 0.8
    recall = (0.2 * share - first) / (share - (1 / 0.7 - 1))
    counted = curves.crossings(slope, level, space="pr")
    assert counted.recall.tolist() == [pytest.approx(recall)]
    # the first precision above recall 0 goes on to 0: .9, not the 1 that stands at 0
    assert curves.dominates(([0.95], [1]), slope, space="pr", lines="straight")


@pytest.mark.parametrize("space", ["roc", "pr"])
def test_curves_may_run_either_way(space):
    forth = np.array([[0.2, 0.5, 0.7], [0.6, 0.8, 0.9]])[:: 1 if space == "roc" else -1]
    for pair in ((forth, forth[:, ::-1]), (forth[:, ::-1], forth)):
        assert curves.dominates(*pair, space=space)


def test_points_above_each_other_stay_in_their_order():
    """(0, 0), (.2, .3), (.2, .7): at .1 it is .15 high."""
    assert not curves.dominates(([0.2, 0.2], [0.3, 0.7]), ([0.1], [0.2]))


def test_a_curve_begins_at_0_0():
    assert curves.dominates(LINE, ([0.5], [0.5]))
