"""What must hold for any labels and scores: hulls, dominance in both spaces, invariance."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics

from bsdsbench import curves
from tests.reference import curves as slow

SETTINGS = settings(max_examples=50, deadline=None)
TOLERANCE = 1e-9


@st.composite
def samples(draw, ties=True, both=True, min_size=2):
    """labels in -1, 0, 1 and scores, tied often, never NaN."""
    n = draw(st.integers(min_size, 30))
    labels = draw(st.lists(st.sampled_from([-1, 1, 1, -1, 0]), min_size=n, max_size=n))
    score = st.integers(-6, 6) if ties else st.integers(-1000, 1000)
    scores = draw(st.lists(score, min_size=n, max_size=n, unique=not ties))
    if both:
        assume(1 in labels and -1 in labels)
    return np.array(labels), np.array(scores, np.float64) / 4


@st.composite
def chain(draw, p, n):
    """A ROC curve in counts [(fp, tp)] from (0, 0) to (n, p), neither falling."""
    inner = draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, p)), max_size=6))
    fps, tps = sorted(f for f, _ in inner), sorted(t for _, t in inner)
    return [(0, 0), *zip(fps, tps, strict=True), (n, p)]


def assert_merged_is_sklearn(labels, scores):
    pr, roc = (f(labels, scores) for f in (curves.pr, curves.roc))
    precision, recall, thresholds = metrics.precision_recall_curve(labels, scores)
    np.testing.assert_allclose(pr.precision[::-1], precision, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pr.recall[::-1], recall, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(pr.thresholds[:0:-1], thresholds)
    fpr, tpr, thresholds = metrics.roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose([roc.fpr, roc.tpr], [fpr, tpr], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(roc.thresholds, thresholds)
    assert abs(pr.ap - metrics.average_precision_score(labels, scores)) < 1e-12
    assert abs(pr.auc - metrics.auc(recall, precision)) < 1e-12
    assert abs(roc.auc - metrics.roc_auc_score(labels, scores)) < 1e-12


def rates(points, p, n):
    return np.array([f / n for f, _ in points]), np.array([t / p for _, t in points])


TOTALS = st.fixed_dictionaries(
    {}, optional={"num_positives": st.integers(30, 90), "num_negatives": st.integers(30, 900)}
)


@SETTINGS
@given(
    data=samples(),
    dtype=st.sampled_from([np.float64, np.float32]),
    totals=TOTALS,
    prior=st.sampled_from([None, 0, 0.2, 1]),
    interpolate=st.booleans(),
    plot=st.sampled_from(["fptp", "tntp", "tptn", "fpfn"]),
)
@pytest.mark.slow
def test_curves_are_their_slow_definition(data, dtype, totals, prior, interpolate, plot):
    labels, scores = data[0].tolist(), data[1].tolist()
    given_scores = data[1].astype(dtype)
    totals = {**totals, "reading": "sign"}
    options = {**totals, "interpolate": interpolate, "ties": "sample"}
    pr = curves.pr(labels, given_scores, normalize_prior=prior, **options)
    roc = curves.roc(labels, given_scores, plot=plot, ties="sample", **totals)
    merged = curves.roc(labels, given_scores, **totals)
    for name in ("reading", "ties"):
        totals.pop(name, None)
        options.pop(name)
    recall, precision, *numbers = slow.vl_pr(labels, scores, prior=prior, **options)
    np.testing.assert_allclose(pr.recall, recall, rtol=0, atol=1e-15)
    np.testing.assert_allclose(pr.precision, precision, rtol=0, atol=1e-15)
    np.testing.assert_allclose([pr.auc, pr.ap, pr.ap_11], numbers, rtol=0, atol=1e-13)
    tpr, tnr, *numbers = slow.vl_roc(labels, scores, plot, **totals)
    np.testing.assert_allclose([roc.tpr, roc.tnr], [tpr, tnr], rtol=0, atol=1e-15)
    if np.isnan(numbers[1]):  # VLFeat gives the threshold 0 where there is no crossing
        numbers[2] = np.nan
    np.testing.assert_allclose([roc.auc, roc.eer, roc.eer_threshold], numbers, rtol=0, atol=1e-13)
    points = slow.counts(labels, scores, merge=True)
    assert list(zip(merged.thresholds, merged.tp, merged.fp, strict=True)) == points


@SETTINGS
@given(st.integers(1, 12), st.integers(1, 12), st.data())
@pytest.mark.slow
def test_hull_is_the_upper_hull(p, n, data):
    points = data.draw(chain(p, n))
    fpr, tpr = rates(points, p, n)
    hull = curves.roc_convex_hull(fpr, tpr)
    exact = [(Fraction(f, n), Fraction(t, p)) for f, t in points]
    assert curves.dominates(hull, (fpr, tpr))
    for x in {x for x, _ in exact}:
        height = float(slow.hull_height(exact, x))
        assert abs(max(np.interp(float(x), hull.fpr, hull.tpr), 0) - height) < TOLERANCE or x == 0
    # Corners are points of the curve.
    known = {(f / n, t / p) for f, t in points}
    assert set(zip(hull.fpr, hull.tpr, strict=True)) <= known


@SETTINGS
@given(st.integers(1, 10), st.integers(1, 10), st.data())
@pytest.mark.slow
def test_roc_dominance_is_pr_dominance(p, n, data):
    """Davis and Goadrich, theorem 3.2; the ROC side also by exact fractions."""
    a, b = data.draw(chain(p, n)), data.draw(chain(p, n))
    in_roc = curves.dominates(rates(a, p, n), rates(b, p, n))
    exact = [[(Fraction(f, n), Fraction(t, p)) for f, t in c] for c in (a, b)]
    inner = [x for x in {x for c in exact for x, _ in c} if 0 < x < 1]
    ends = [Fraction(1, 10**6), 1 - Fraction(1, 10**6)]
    truth = all(
        u >= v
        for x in inner + ends
        for u, v in zip(slow.tpr_at(exact[0], x), slow.tpr_at(exact[1], x), strict=True)
    )
    assert in_roc == truth

    def in_pr_space(points):
        fp, tp = zip(*points, strict=True)
        return curves.roc_to_pr([f / n for f in fp], [t / p for t in tp], p, n)

    # Compare from the first TP on: a leading (0, FP) has no place in PR space.
    assume(all(t > 0 or f == 0 for c in (a, b) for f, t in c))
    pr_a, pr_b = ([v[np.array(q.recall) > 0] for v in q] for q in map(in_pr_space, (a, b)))
    assert curves.dominates(pr_a, pr_b, space="pr") == truth


@SETTINGS
@given(st.integers(1, 10), st.integers(1, 10), st.data())
@pytest.mark.slow
def test_crossings_are_where_dominance_changes(p, n, data):
    a, b = (rates(data.draw(chain(p, n)), p, n) for _ in range(2))
    points = curves.crossings(a, b)
    one_sided = curves.dominates(a, b) or curves.dominates(b, a)
    assert (points.fpr.size == 0) == one_sided
    edges = np.unique(np.r_[0, points.fpr, 1])
    for low, high in itertools.pairwise(edges):
        if high - low > TOLERANCE:
            part = low + (high - low) * 1e-7, high - (high - low) * 1e-7
            assert curves.dominates(a, b, within=part) or curves.dominates(b, a, within=part)
    mirrored = curves.crossings(b, a)
    np.testing.assert_allclose(mirrored.fpr, points.fpr, rtol=0, atol=TOLERANCE)


@SETTINGS
@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_spaces_map_back(p, n, data):
    points = [(f, t) for f, t in data.draw(chain(p, n)) if t > 0]
    fpr, tpr = rates(points, p, n)
    back = curves.pr_to_roc(*curves.roc_to_pr(fpr, tpr, p, n), p, n)
    np.testing.assert_allclose(back.fpr, fpr, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(back.tpr, tpr)
