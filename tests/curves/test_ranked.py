"""pr, roc and det against hand counts, the slow VLFeat definition, and scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from bsdsbench import curves
from bsdsbench.curves.ranked import roc_of_counts
from bsdsbench.curves.samples import Samples, rank
from bsdsbench.errors import DataError
from tests.curves.test_curves_properties import assert_merged_is_sklearn
from tests.reference import curves as slow

# 7 samples, 3 positives, 4 negatives, no ties:  score 7 6 5 4 3 2 1 -> + - + - - + -
LABELS = np.array([-1, 1, -1, 1, -1, 1, -1])
SCORES = np.array([1.0, 2, 3, 5, 4, 7, 6])
TIES = pytest.mark.parametrize("ties", ["merge", "sample"])


def samples(seed, n=200, tied=False):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.35, 1, -1)
    scores = rng.normal(size=n) + 0.8 * labels
    return labels, np.round(scores * 3) / 4 if tied else scores


@TIES
def test_pr_by_hand(ties):
    r = curves.pr(LABELS, SCORES, ties=ties)
    assert r.precision == pytest.approx([1, 1, 1 / 2, 2 / 3, 1 / 2, 2 / 5, 1 / 2, 3 / 7])
    assert r.ap == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    assert r.auc == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (2 / 5 + 1 / 2) / 2) / 3)
    # levels 0..0.3 see precision 1, 0.4..0.6 see 2/3, 0.7..1 see 1/2
    assert r.ap_11 == pytest.approx((4 * 1 + 3 * 2 / 3 + 4 / 2) / 11)
    assert (r.chance, r.positives, r.negatives) == (3 / 7, 3, 4)
    envelope = curves.pr(LABELS, SCORES, ties=ties, interpolate=True)
    assert envelope.auc == pytest.approx(envelope.ap)


def test_roc_and_det_by_hand():
    r = curves.roc(LABELS, SCORES)
    # pairs won by the positives: 4 + 3 + 1 of 12
    assert r.auc == 8 / 12
    # TNR > TPR for the last time at point 3 (3/4 > 2/3); point 4 has TNR 1/2, same TPR
    assert (r.eer, r.eer_threshold) == (1 - 2 / 3, 4)
    d = curves.det(LABELS, SCORES)
    assert (d.fnr.tolist(), d.tnr.tolist()) == ((1 - r.tpr).tolist(), (1 - r.fpr).tolist())


@pytest.mark.parametrize("seed", range(4))
def test_tied_scores_in_any_order_of_rows_are_sklearn(seed):
    labels, scores = samples(seed, tied=True)
    order = np.random.default_rng(seed).permutation(labels.size)
    for coded in (labels, (labels > 0).astype(int), labels > 0):
        assert_merged_is_sklearn(coded, scores)
        for curve in (curves.pr, curves.roc, curves.det):
            assert curve(coded[order], scores[order]).equals(curve(labels, scores))
    areas = [curves.roc(labels[o], scores[o], ties="sample").auc for o in (order, order[::-1])]
    assert areas[0] != areas[1]


@TIES
def test_a_missing_class_is_undefined(ties):
    """Neither 0 nor 1 is the area of one class."""
    for labels, word in (([0, 0], "no positives"), ([1, 1], "no negatives")):
        with pytest.warns(UserWarning, match=word) as caught:
            pr, roc = (f(labels, [2.0, 1], ties=ties) for f in (curves.pr, curves.roc))
        assert {c.filename for c in caught} == {__file__}
        assert np.isnan([roc.auc, roc.eer, roc.eer_threshold]).all()
        assert np.isnan([pr.auc, pr.ap, pr.ap_11]).all() or labels == [1, 1]
    assert (pr.ap, pr.chance) == (1, 1)
    nothing = curves.pr([], [], ties=ties)
    assert (nothing.precision.tolist(), nothing.tp.tolist()) == ([1], [0])
    assert np.isnan([nothing.auc, nothing.ap, nothing.ap_11, nothing.chance]).all()


def test_totals_below_the_samples_are_refused():
    """AP, recall and areas would be above 1."""
    labels, scores = [1, 1, 1, 0], [4.0, 3, 2, 1]
    for name, call in {
        "num_positives": lambda: curves.pr(labels, scores, num_positives=1),
        "num_negatives": lambda: curves.roc(labels, scores, num_negatives=0),
        "positives": lambda: curves.davis_goadrich_area([1, 3], [0, 1], 1),
        "positives ": lambda: curves.interpolate_pr([1, 3], [0, 1], 1),
    }.items():
        with pytest.raises(DataError, match=f"^{name.strip()} [01]: fewer than the [13] there are"):
            call()
    with pytest.raises(DataError, match=r"^positives 1234566: fewer than the 1234567 there are"):
        curves.davis_goadrich_area([0, 1234567], [0, 1], 1234566)


def test_merged_eer_lies_on_the_straight_line():
    # one level: from (0, 0) to (1, 1), which crosses TPR = TNR at 1/2
    r = curves.roc([1, 1, -1], np.ones(3))
    assert (r.eer, r.eer_threshold) == (0.5, 1)
    # levels: (TP 2, FP 1) of (3, 2), then the rest: from (1/2, 2/3) on; TNR 1/2 < TPR 2/3
    r = curves.roc([1, 1, -1, 1, -1], [2, 2, 2, 1, 1])
    assert r.eer == pytest.approx(3 / 7)  # 2t/3 = 1 - t/2
    assert r.eer_threshold == 2


def test_minus_infinity_that_is_never_retrieved():
    labels, scores = [1, -1, 1, -1, 1], [3.0, 2, -math.inf, -math.inf, 1]
    for ties, last in (("sample", [2, 3, 3]), ("merge", [2, 3])):
        r = curves.pr(labels, scores, ties=ties, include_inf=False)
        assert (r.tp.tolist(), r.fp.tolist()) == ([0, 1, 1, 2], [0, 0, 1, 1])
        assert (r.positives, r.negatives, r.recall[-1]) == (3, 2, 2 / 3)
        assert r.ap == pytest.approx((1 + 2 / 3) / 3)
        r = curves.pr(labels, scores, ties=ties, include_inf=True, num_positives=9)
        assert r.tp.tolist() == [0, 1, 1, *last]
        assert r.recall[-1] == 3 / 9  # no surrogate comes in
    # all of them: only the "nothing predicted" point is left
    none = curves.roc([1, -1], [-math.inf] * 2, include_inf=False)
    assert (none.tpr.tolist(), none.auc) == ([0], 0)


@TIES
def test_stable_gives_input_order(ties):
    labels = np.array([1, -1, 0, 1, -1, 1, 0])
    scores = np.array([2.0, 5, 5, -math.inf, 5, 7, -math.inf])
    how = {"ties": ties, "include_inf": False, "reading": "sign"}
    plain, stable = (curves.pr(labels, scores, stable=s, **how) for s in (False, True))
    assert np.isnan(stable.recall).tolist() == [False] * 3 + [True, False, False, True]
    assert (stable.auc, stable.ap, stable.ap_11) == (plain.auc, plain.ap, plain.ap_11)
    # rank order: row 5, then rows 1, 2, 4 (score 5), then row 0
    assert stable.tp.tolist() == [2, 1, 1, -1, 1, 1, -1]
    first = 1 if ties == "sample" else 2
    assert stable.fp.tolist() == [2, first, first, -1, 2, 0, -1]
    roc = curves.roc(labels, scores, stable=True, **how)
    np.testing.assert_array_equal(roc.tpr, stable.recall)


@pytest.mark.parametrize("top", [9.0, math.inf])
def test_an_ignored_row_above_all_others_comes_in_before_the_first(top):
    r = curves.pr([0, 1, -1], [top, 2, 1], stable=True, reading="sign")
    assert (r.tp.tolist(), r.precision.tolist()) == ([0, 1, 1], [1, 1, 0.5])


@pytest.mark.parametrize(
    "option", [{"num_positives": 1.5}, {"normalize_prior": 2}, {"ties": "best"}]
)
def test_a_bad_option_is_named(option):
    with pytest.raises(DataError, match=next(iter(option))):
        curves.pr([1, -1], [1.0, 2], **option)


KINDS = {
    "tied": lambda rng: rng.integers(-3, 3, 60) / 4,
    "infinite": lambda rng: rng.choice([-math.inf, -2.5, -0.0, 0.0, 1e-40, 0.1, math.inf], 60),
    "one as float32": lambda rng: rng.choice([1 + 1e-12, 1 + 2e-12], 60),
    "no ties": lambda rng: rng.permutation(60) / 4,
    "none": lambda rng: np.empty(0),
}


@TIES
@pytest.mark.parametrize("include_inf", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_counted_one_by_one(kind, include_inf, ties):
    rng = np.random.default_rng(4)
    scores = KINDS[kind](rng)
    labels = rng.integers(-1, 2, scores.size)
    found = rank(Samples(labels > 0, labels < 0, scores), ties, include_inf, stable=True)
    expected = slow.counts(labels, scores, merge=ties == "merge", include_inf=include_inf)
    assert list(zip(found.thresholds, found.tp, found.fp, strict=True)) == expected
    assert not np.signbit(found.thresholds[found.thresholds == 0]).any()
    for row, score, label in zip(found.point_of_sample, scores, labels, strict=True):
        if score == -math.inf and not include_inf:
            assert row == -1
        elif label or ties == "sample":
            assert found.thresholds[row] == score


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_scores_are_counted_as_few_are(kind):
    """More than 10,000, which are counted by compiled functions."""
    rng = np.random.default_rng(5)
    scores = KINDS[kind](rng)
    labels = rng.integers(-1, 2, scores.size)
    few = rank(Samples(labels > 0, labels < 0, scores))
    labels, many = np.pad(labels, (0, 10_001)), np.pad(scores, (0, 10_001))  # of neither class
    found = rank(Samples(labels > 0, labels < 0, many))
    for name in ("thresholds", "tp", "fp"):
        np.testing.assert_array_equal(getattr(found, name), getattr(few, name))
    assert (found.positives, found.negatives) == (few.positives, few.negatives)


def test_counts_at_thresholds():
    r = roc_of_counts([0.2, 0.5, 0.8], [4, 2, 1], [3, 3, 0], 5, 6)
    assert r.thresholds.tolist() == [math.inf, 0.8, 0.5, 0.2, -math.inf]
    assert (r.tp.tolist(), r.fp.tolist()) == ([0, 1, 2, 4, 5], [0, 0, 3, 3, 6])


def test_the_area_of_billions_of_samples():
    """The area is above 2^63, and at 2^63, 1 beyond int64."""
    # Up to (0.1, 0.5), then to (1, 1).
    exact = 0.1 * 0.5 / 2 + 0.9 * (0.5 + 1) / 2
    found = roc_of_counts([0.5], [10**9], [10**9], 2 * 10**9, 10**10).auc  # 2 * 10^19
    assert found == pytest.approx(exact, rel=1e-15)
    assert roc_of_counts([0.2, 0.5], [2**32, 2**32], [2**31, 0], 2**32, 2**31).auc == 1


@pytest.mark.parametrize("name", ["pr", "roc", "det"])
def test_a_wrong_keyword_names_the_function_that_was_called(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) .*'colour'"):
        getattr(curves, name)([0, 1], [0.1, 0.2], colour="red")


TWO_CLASSES = st.lists(st.booleans(), min_size=2, max_size=12).filter(lambda v: len(set(v)) == 2)


@pytest.mark.slow
@pytest.mark.parametrize("call", [curves.pr, curves.roc])
@given(data=st.data())
def test_minus_infinity_is_the_smallest_score(call, data):
    labels = data.draw(TWO_CLASSES)
    values = st.sampled_from([-math.inf, -3.0, -0.5, 0.0])
    scores = np.array(data.draw(st.lists(values, min_size=len(labels), max_size=len(labels))))
    finite = np.maximum(scores, -1e300)
    made = call(labels, scores)
    if call is curves.roc:
        assert made.auc == pytest.approx(sk.roc_auc_score(labels, finite), abs=1e-12)
    else:
        assert made.ap == pytest.approx(sk.average_precision_score(labels, finite), abs=1e-12)
    rows = {row.name: row.value for row in curves.area_table(labels, scores)}
    auc, ap = (sk.roc_auc_score(labels, finite), sk.average_precision_score(labels, finite))
    assert rows["scikit-learn roc_auc_score"] == pytest.approx(auc, abs=1e-12)
    assert rows["scikit-learn average_precision_score"] == pytest.approx(ap, abs=1e-12)


def test_vlfeat_never_retrieves_minus_infinity():
    labels, scores = [1, 0, 1], [0.5, 0.2, -math.inf]
    assert curves.pr(labels, scores, ties="sample").recall[-1] == 0.5
    assert curves.pr(labels, scores, ties="sample", include_inf=True).recall[-1] == 1
    assert curves.pr(labels, scores).recall[-1] == 1
    assert curves.pr(labels, scores, include_inf=False).recall[-1] == 0.5


@pytest.mark.parametrize(
    ("labels", "readings"),
    [([1, 2, 2], ["larger"]), ([0, 2, 5], ["binary"]), ([-3, 2, 7], ["sign"]), ([3, 4, 5], [])],
)
def test_a_refusal_of_labels_names_the_readings_that_fit(labels, readings):
    with pytest.raises(DataError, match=r"labels: . values with") as error:
        curves.roc(labels, [0.1, 0.2, 0.3])
    assert [fix.value for fix in error.value.problems[0].fix] == readings
    for reading in readings:
        assert curves.roc(labels, [0.1, 0.2, 0.3], reading=reading).auc == 1
