"""pr, roc and det against hand counts, the slow VLFeat definition, and scikit-learn."""

import math
import re

import numpy as np
import pytest
from sklearn import metrics

import bsdsbench as bb
from bsdsbench import curves
from bsdsbench.curves import ranking as ranking_module
from bsdsbench.files.errors import DataError, InputWarning, ShapeError
from bsdsbench.plotting.displays import ROCCurveDisplay
from tests.curves.test_curves_properties import assert_merged_is_sklearn
from tests.reference import curves as slow

# 7 samples, 3 positives, 4 negatives, no ties:  score 7 6 5 4 3 2 1 -> + - + - - + -
LABELS = np.array([-1, 1, -1, 1, -1, 1, -1])
SCORES = np.array([1.0, 2, 3, 5, 4, 7, 6])


@pytest.fixture(params=["numpy", "compiled"])
def path(request, monkeypatch):
    """Both ways through the package: small inputs never reach the compiled one otherwise."""
    if request.param == "compiled":
        monkeypatch.setattr("bsdsbench.curves.ranking._LARGE", 0)
        monkeypatch.setattr("bsdsbench.curves.ranked._LARGE", 0)
    return request.param


def samples(seed, n=200, tied=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.35, 1, -1)
    scores = rng.normal(size=n) + 0.8 * labels
    return labels, (np.round(scores * 3) / 4 if tied else scores).astype(dtype)


def test_pr_by_hand(path):
    r = curves.pr(LABELS, SCORES)
    assert r.tp.tolist() == [0, 1, 1, 2, 2, 2, 3, 3]
    assert r.fp.tolist() == [0, 0, 1, 1, 2, 3, 3, 4]
    assert r.recall.tolist() == [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 1, 1]
    assert r.precision == pytest.approx([1, 1, 1 / 2, 2 / 3, 1 / 2, 2 / 5, 1 / 2, 3 / 7])
    assert r.thresholds.tolist() == [math.inf, 7, 6, 5, 4, 3, 2, 1]
    assert r.ap == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    assert r.auc == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (2 / 5 + 1 / 2) / 2) / 3)
    # levels 0..0.3 see precision 1, 0.4..0.6 see 2/3, 0.7..1 see 1/2
    assert r.ap_11 == pytest.approx((4 * 1 + 3 * 2 / 3 + 4 / 2) / 11)
    assert (r.chance, r.positives, r.negatives) == (3 / 7, 3, 4)


def test_roc_by_hand(path):
    r = curves.roc(LABELS, SCORES)
    assert r.fpr.tolist() == [0, 0, 1 / 4, 1 / 4, 2 / 4, 3 / 4, 3 / 4, 1]
    assert r.tpr.tolist() == [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 1, 1]
    # pairs won by the positives: 4 + 3 + 1 of 12
    assert r.auc == 8 / 12
    # TNR > TPR for the last time at point 3 (3/4 > 2/3); point 4 has TNR 1/2, same TPR
    assert r.eer == 1 - 2 / 3
    assert r.eer_threshold == 4
    d = curves.det(LABELS, SCORES)
    assert d.fpr.tolist() == r.fpr.tolist()
    assert d.fnr.tolist() == (1 - r.tpr).tolist()
    assert (d.eer, d.eer_threshold) == (r.eer, r.eer_threshold)


def test_without_positives_the_interpolated_area_is_undefined():
    # interpolated, auc is another form of ap: 0 / 0
    r = curves.pr([-1, -1, -1], [3.0, 2.0, 1.0], interpolate=True)
    assert np.isnan([r.auc, r.ap]).all()
    assert curves.pr([-1, -1, -1], [3.0, 2.0, 1.0]).auc == 0
    # with positives both forms agree
    r = curves.pr(LABELS, SCORES, interpolate=True)
    assert r.auc == pytest.approx(r.ap)


def test_surrogate_negatives_do_not_extend_the_curve():
    labels, scores = (
        np.r_[np.ones(100), -np.ones(100)],
        np.r_[np.arange(100.0), np.arange(100) - 3.5],
    )
    wide = {"num_negatives": 10_000}
    small = curves.roc(labels, scores).auc
    assert curves.roc(labels, scores, **wide).auc == pytest.approx(small / 100)
    assert curves.roc(labels, scores, plot="tptn", **wide).auc > 0.99
    assert curves.roc(labels, scores, plot="fpfn").auc == pytest.approx(1 - small)


@pytest.mark.parametrize("digits", [2, 15])
def test_many_samples_are_sklearn_too(digits):
    """Beyond the size from which the compiled passes are in use."""
    labels, scores = samples(10, n=100_000)
    scores = np.round(scores, digits)
    assert_merged_is_sklearn(labels, scores)
    # Per sample: the plain definition, tied or not.
    order = np.argsort(-scores, kind="stable")
    assert curves.rank(labels, scores).tp[1:].tolist() == np.cumsum(labels[order] > 0).tolist()


def test_det_against_sklearn():
    labels, scores = samples(4, n=60)
    fpr, fnr, thresholds = metrics.det_curve(labels, scores)
    d = curves.det(labels, scores, ties="merge")
    # scikit-learn runs the other way and keeps only last FPR = 0 .. first FNR = 0.
    first, last = np.flatnonzero(d.fpr == 0)[-1], np.flatnonzero(d.fnr == 0)[0]
    kept = slice(first, last + 1)
    np.testing.assert_allclose(d.fpr[kept][::-1], fpr, rtol=0, atol=1e-12)
    np.testing.assert_allclose(d.fnr[kept][::-1], fnr, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(d.thresholds[kept][::-1], thresholds)
    assert len(d.fpr) == 61 > len(fpr)


def test_where_sklearn_differs():
    """Ties per sample, the floor of 1e-10, a missing class, -inf scores."""
    labels = np.array([1, -1, 1, -1])
    flat = np.zeros(4)
    assert metrics.roc_auc_score(labels, flat) == curves.roc(labels, flat, ties="merge").auc == 0.5
    assert curves.roc(labels, flat).auc == 0.75
    assert curves.roc(labels[::-1], flat).auc == 0.25
    assert curves.roc([1, 1, -1, -1], flat).auc == 1
    assert curves.roc([-1, -1, 1, 1], flat).auc == 0
    late = curves.pr([-1, 1], [2.0, 1.0])
    assert late.precision[1] == 1e-10
    assert curves.pr([-1, 1], [2.0, 1.0], ties="merge").precision[1] == 0
    with pytest.warns(UserWarning, match="No positive class"):
        assert metrics.average_precision_score([0, 0], [2.0, 1.0]) == 0
    assert math.isnan(curves.pr([-1, -1], [2.0, 1.0], ties="merge").ap)
    with pytest.raises(ValueError, match="infinity"):
        metrics.roc_auc_score(labels, [1, 2, 3, -math.inf])
    with pytest.raises(ValueError, match="one class"):
        metrics.det_curve([1, 1], [1.0, 2.0])


def test_without_ties_both_modes_agree(path):
    labels, scores = samples(5)
    a, b = (curves.pr(labels, scores, ties=t) for t in ("sample", "merge"))
    assert a.tp.tolist() == b.tp.tolist()
    assert (a.auc, a.ap, a.ap_11) == pytest.approx((b.auc, b.ap, b.ap_11), rel=0, abs=1e-9)
    for prior in (0, 0.3, 1):
        a, b = (
            curves.pr(labels, scores, ties=t, normalize_prior=prior) for t in ("sample", "merge")
        )
        np.testing.assert_allclose(a.precision, b.precision, rtol=0, atol=1e-7)
    a, b = (curves.roc(labels, scores, ties=t) for t in ("sample", "merge"))
    assert (a.auc, a.eer, a.eer_threshold) == (b.auc, b.eer, b.eer_threshold)


def test_a_prior_with_one_sample_of_a_class():
    """prior tpr / (prior tpr + (1 - prior) fpr), without the first point."""
    for labels, expected in (([1, -1, -1], [1, 0.4, 0.25]), ([-1, 1, 1], [0, 1 / 7, 0.25])):
        curve = curves.pr(labels, [3.0, 2.0, 1.0], ties="merge", normalize_prior=0.25)
        assert curve.precision[1:].tolist() == pytest.approx(expected, rel=1e-15)


def test_merged_eer_lies_on_the_straight_line():
    # one level: from (0, 0) to (1, 1), which crosses TPR = TNR at 1/2
    r = curves.roc([1, 1, -1], np.ones(3), ties="merge")
    assert (r.eer, r.eer_threshold) == (0.5, 1)
    # levels: (TP 2, FP 1) of (3, 2), then the rest: from (1/2, 2/3) on; TNR 1/2 < TPR 2/3
    r = curves.roc([1, 1, -1, 1, -1], [2, 2, 2, 1, 1], ties="merge")
    assert r.eer == pytest.approx(3 / 7)  # 2t/3 = 1 - t/2
    assert r.eer_threshold == 2


def test_minus_infinity_is_never_retrieved(path):
    labels, scores = [1, -1, 1, -1, 1], [3.0, 2, -math.inf, -math.inf, 1]
    r = curves.pr(labels, scores)
    assert (r.tp.tolist(), r.fp.tolist()) == ([0, 1, 1, 2], [0, 0, 1, 1])
    assert (r.positives, r.negatives, r.recall[-1]) == (3, 2, 2 / 3)
    assert r.ap == pytest.approx((1 + 2 / 3) / 3)
    r = curves.pr(labels, scores, include_inf=True)
    assert (r.tp.tolist(), r.fp.tolist()) == ([0, 1, 1, 2, 3, 3], [0, 0, 1, 1, 1, 2])
    merged = curves.pr(labels, scores, include_inf=True, ties="merge")
    assert (merged.tp.tolist(), merged.fp.tolist()) == ([0, 1, 1, 2, 3], [0, 0, 1, 1, 2])
    assert curves.pr(labels, scores, ties="merge").tp.tolist() == [0, 1, 1, 2]
    # num_positives brings no surrogate in, include_inf or not
    assert curves.pr(labels, scores, include_inf=True, num_positives=9).recall[-1] == 3 / 9
    # all of them: only the "nothing predicted" point is left
    none = curves.roc([1, -1], [-math.inf] * 2)
    assert (none.tpr.tolist(), none.auc, none.eer_threshold) == ([0], 0, 0)
    assert math.isnan(none.eer)


def test_plus_infinity_is_ordinary(path):
    for ties in ("sample", "merge"):
        r = curves.pr([-1, 1, 1], [math.inf, math.inf, 0], ties=ties)
        assert r.fp.tolist() == ([0, 1, 1, 1] if ties == "sample" else [0, 1, 1])


def test_ignored_rows_keep_a_point_but_add_nothing(path):
    labels, scores = [1, 0, -1, 0], [4.0, 3, 2, 1]
    r = curves.pr(labels, scores)
    assert (r.tp.tolist(), r.fp.tolist()) == ([0, 1, 1, 1, 1], [0, 0, 0, 1, 1])
    assert curves.pr(labels, scores, ties="merge").tp.tolist() == [0, 1, 1]
    with pytest.warns(InputWarning, match="0 is ignored, .* given as labels == 1"):
        assert curves.pr([1, 0, 0], [3.0, 2, 1]).precision.tolist() == [1, 1, 1, 1]
    for curve in (curves.roc, curves.det, ROCCurveDisplay.from_scores):
        with pytest.warns(InputWarning, match="0 is ignored"):
            curve([1, 0, 0], [3.0, 2, 1])
    for labels in ([1, 1], [0, 0], [-1, 0]):
        curves.roc(labels, [2.0, 1])


def test_true_and_false_are_both_classes():
    labels, scores = samples(6)
    assert curves.roc(labels > 0, scores).equals(curves.roc(labels, scores))


@pytest.mark.parametrize("ties", ["sample", "merge"])
def test_stable_gives_input_order(ties):
    labels = np.array([1, -1, 0, 1, -1, 1, 0])
    scores = np.array([2.0, 5, 5, -math.inf, 5, 7, -math.inf])
    plain, stable = (curves.pr(labels, scores, ties=ties, stable=s) for s in (False, True))
    assert stable.recall.shape == (7,)
    assert np.isnan(stable.recall).tolist() == [False] * 3 + [True, False, False, True]
    assert stable.tp[3] == -1
    assert (stable.auc, stable.ap, stable.ap_11) == (plain.auc, plain.ap, plain.ap_11)
    # rank order: row 5, then rows 1, 2, 4 (score 5), then row 0
    assert stable.tp.tolist() == [2, 1, 1, -1, 1, 1, -1]
    first = 1 if ties == "sample" else 2
    assert stable.fp.tolist() == [2, first, first, -1, 2, 0, -1]
    roc = curves.roc(labels, scores, ties=ties, stable=True)
    np.testing.assert_array_equal(roc.tpr, stable.recall)
    np.testing.assert_array_equal(roc.tnr, 1 - roc.fpr)
    np.testing.assert_array_equal(curves.det(labels, scores, ties=ties, stable=True).fnr, roc.fnr)


def test_empty_and_one_class():
    e = curves.pr([], [])
    assert (e.recall.tolist(), e.precision.tolist(), e.auc, e.ap_11) == ([0], [1], 0, 1 / 11)
    assert math.isnan(e.ap)
    r = curves.roc([], [])
    assert (r.tpr.tolist(), r.tnr.tolist(), r.auc, r.eer_threshold) == ([0], [1], 0, 0)
    assert math.isnan(r.eer)
    positives = curves.roc([1, 1], [2.0, 1])
    assert (positives.auc, positives.eer) == (0, 0)
    assert curves.roc([1, 1], [2.0, 1], plot="tptn").auc == 1
    assert curves.pr([1, 1], [2.0, 1]).ap == 1
    negatives = curves.roc([-1, -1], [2.0, 1])
    assert (negatives.tpr.tolist(), negatives.auc, negatives.eer) == ([0, 0, 0], 0, 1)
    assert curves.pr([-1, -1], [2.0, 1]).ap_11 == pytest.approx(1 / 11)
    for ties in ("sample", "merge"):
        assert curves.pr([0, 0], [2.0, 1], ties=ties).recall.max() == 0


@pytest.mark.parametrize(
    ("match", "labels", "scores", "options"),
    [
        ("labels: 2 values, scores: 3 values", [1, -1], [1.0, 2, 3], {}),
        ("scores: 1 NaN, the first at index 1", [1, -1], [1.0, math.nan], {}),
        ("labels: 2 NaN, the first at index 0", [math.nan] * 2, [1.0, 2], {}),
        ("scores: type <U1, expected real numbers", [1, -1], ["a", "b"], {}),
        ("labels: type complex128", [1j, -1], [1.0, 2], {}),
        ("scores: rows of different lengths", [1, -1], [[1.0], [2.0, 3.0]], {}),
        (r"integers beyond 2\*\*53", [1, -1], [2**60, 2**60 + 1], {}),
        (r"integers beyond 2\*\*53", [1, -1], [1, -(2**53) - 1], {}),
        ("ties 'best': expected 'sample' or 'merge'", [1, -1], [1.0, 2], {"ties": "best"}),
        ("normalize_prior 2: expected a share", [1, -1], [1.0, 2], {"normalize_prior": 2}),
        ("num_positives -1: expected a whole", [1, -1], [1.0, 2], {"num_positives": -1}),
        ("num_negatives 1.5: expected a whole", [1, -1], [1.0, 2], {"num_negatives": 1.5}),
        ("num_negatives 'x': expected a whole", [1, -1], [1.0, 2], {"num_negatives": "x"}),
    ],
)
def test_bad_input_says_so(match, labels, scores, options):
    with pytest.raises(DataError, match=match) as caught:
        curves.pr(labels, scores, **options)
    sizes_differ = re.search(r"\d values", match)
    assert type(caught.value) is (ShapeError if sizes_differ else DataError)


def test_bad_variant_says_so():
    with pytest.raises(DataError, match="plot 'FPTP': expected one of fptp, tntp, tptn, fpfn"):
        curves.roc([1, -1], [1.0, 2], plot="FPTP")


def test_a_mask_is_not_lost():
    masked = np.ma.array([1, 0, 1], mask=[0, 0, 1])
    for labels, scores in ((masked, [3, 2, 1]), ([1, 0, 1], masked)):
        with pytest.raises(DataError, match="a masked array, expected one without a mask"):
            curves.pr(labels, scores)
    with pytest.raises(DataError, match="numerator: a masked array"):
        bb.ratio(masked, 1)


def test_an_unknown_option_is_an_error():
    with pytest.raises(TypeError, match="interpolate"):
        curves.roc([1, -1], [1.0, 2], interpolate=True)


def test_too_small_a_total_warns():
    with pytest.warns(UserWarning, match="num_positives 1: fewer than the 3 there are") as caught:
        r = curves.pr(LABELS, SCORES, num_positives=1)
    assert caught[0].filename == __file__
    assert r.recall[-1] == 3


def test_results_are_read_only_and_comparable():
    a, b = curves.pr(LABELS, SCORES), curves.pr(LABELS, SCORES)
    assert a.equals(b)
    assert not a.equals(curves.pr(LABELS, SCORES, interpolate=True))
    assert not a.equals(curves.roc(LABELS, SCORES))
    with pytest.raises(ValueError, match="read-only"):
        a.recall[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        curves.det(LABELS, SCORES).fnr[0] = 1
    labels, scores = LABELS.copy(), SCORES.copy()
    curves.pr(labels, scores)
    labels[0], scores[0] = 0, 0  # the input stays the caller's own


def test_any_shape_is_flattened():
    labels, scores = samples(7, n=12)
    flat = curves.roc(labels, scores)
    assert curves.roc(labels.reshape(3, 4), scores.reshape(3, 4)).equals(flat)


@pytest.mark.parametrize("ties", ["sample", "merge"])
def test_compiled_path_ranks_as_the_plain_one(ties, monkeypatch):
    """Ties between and inside classes, -0, infinities, ignored rows, wide and narrow floats."""
    rng = np.random.default_rng(8)
    scores = rng.choice([-math.inf, -2.5, -0.0, 0.0, 1e-40, 0.1, 1 / 3, 7, math.inf], 500)
    wide = np.r_[scores, 1 + 1e-12, 1 + 2e-12]  # not distinct as float32
    whole = [rng.integers(-9, 9, 500).astype(t) for t in (np.int8, np.int16, np.int64)]
    whole += [rng.integers(0, 9, 500).astype(t) for t in (np.uint8, np.uint16, bool)]
    for values in (scores, scores.astype(np.float32), wide, -wide, rng.normal(size=500), *whole):
        for labels in (rng.integers(-1, 2, values.size), rng.choice([-1, 1], values.size)):
            for include_inf in (False, True):
                ask = {"ties": ties, "include_inf": include_inf}
                monkeypatch.setattr(ranking_module, "_LARGE", 1 << 16)
                plain = curves.rank(labels, values, **ask)
                monkeypatch.setattr(ranking_module, "_LARGE", 0)
                quick = curves.rank(labels, values, **ask)
                for name in ("thresholds", "tp", "fp"):
                    np.testing.assert_array_equal(getattr(quick, name), getattr(plain, name))


def test_the_area_of_billions_of_samples():
    """Twice the area is above 2^63."""
    half = curves.Ranking.from_counts([0.5], [10**9], [10**9], 2 * 10**9, 10**10, complete=True)
    # Up to (0.1, 0.5), then to (1, 1).
    exact = 0.1 * 0.5 / 2 + 0.9 * (0.5 + 1) / 2
    assert curves.roc_from_ranking(half).auc == pytest.approx(exact, rel=1e-15)


def test_ranking_from_counts():
    r = curves.Ranking.from_counts([0.2, 0.8, 0.5], [4, 1, 2], [3, 0, 3], 5, 6)
    assert r.thresholds.tolist() == [math.inf, 0.8, 0.5, 0.2]
    assert r.tp.tolist() == [0, 1, 2, 4]
    assert r.fp.tolist() == [0, 0, 3, 3]
    assert curves.roc_from_ranking(r).tpr.tolist() == [0, 1 / 5, 2 / 5, 4 / 5]
    whole = curves.Ranking.from_counts([0.2], [4], [3], 5, 6, complete=True)
    assert (whole.tp.tolist(), whole.fp.tolist()) == ([0, 4, 5], [0, 3, 6])
    assert whole.thresholds.tolist() == [math.inf, 0.2, -math.inf]
    with pytest.raises(ShapeError, match="thresholds, tp, fp: 1, 2 and 1 values"):
        curves.Ranking.from_counts([1], [1, 2], [1], 5, 6)
    with pytest.raises(DataError, match="tp: expected counts from 0 to 5 that grow"):
        curves.Ranking.from_counts([1, 2], [6, 1], [0, 0], 5, 6)
    with pytest.raises(DataError, match="fp: expected counts from 0 to 6 that grow"):
        curves.Ranking.from_counts([1, 2], [1, 1], [0, 1], 5, 6)
    with pytest.raises(DataError, match=r"tp: 1\.7, expected whole numbers"):
        curves.Ranking.from_counts([0.5], [1.7], [2.0], 3, 4)
    with pytest.raises(DataError, match=r"fp: 2\.9, expected whole numbers"):
        curves.Ranking.from_counts([0.5], [1.0], [2.9], 3, 4)
    with pytest.raises(DataError, match="stable: expected a ranking made with rows=True"):
        curves.pr_from_ranking(r, stable=True)


def test_the_pixel_benchmark_uses_these_curves():
    """Its area and EER are those of all pixels ranked by their level."""
    from bsdsbench import ImageRecord, PixelCounts, pixel_score

    rng = np.random.default_rng(9)
    thresholds = np.linspace(0.1, 0.9, 9)
    levels, truth = rng.integers(0, 10, (2, 20, 30)), rng.random((2, 20, 30)) < 0.3
    levels += 3 * truth
    records = []
    for k in range(2):
        hit = levels[k] >= np.arange(1, 10)[:, None, None]
        tp, fp = (hit & truth[k]).sum((1, 2)), (hit & ~truth[k]).sum((1, 2))
        p, n = truth[k].sum(), (~truth[k]).sum()
        counts = PixelCounts(thresholds, tp, fp, p - tp, n - fp)
        records.append(ImageRecord(str(k), (20, 30), {"pixel": counts}))
    score = pixel_score(records)
    # Levels above the highest threshold are one level to the benchmark.
    expected = curves.roc(truth, np.minimum(levels, 9), ties="merge")
    assert (score.auc_roc, score.eer) == (expected.auc, expected.eer)
    assert score.auc_roc == pytest.approx(
        metrics.roc_auc_score(truth.ravel(), np.minimum(levels, 9).ravel()), rel=0, abs=1e-12
    )


def test_integers_up_to_2_to_the_53_are_ranked():
    for scores in ([2**53, 2**53 - 1], [1 - 2**53, -(2**53)]):
        assert curves.pr([1, -1], np.array(scores)).precision.tolist() == [1, 1, 0.5]


def test_totals_stay_with_their_class(path):
    for curve in (curves.pr, curves.roc, curves.det):
        found = curve(LABELS, SCORES)
        assert (found.positives, found.negatives) == (3, 4)
        found = curve(LABELS, SCORES, num_positives=5, num_negatives=9)
        assert (found.positives, found.negatives) == (5, 9)


def test_eleven_levels_where_more_are_found_than_there_are_to_be():
    with pytest.warns(UserWarning, match="num_positives 1: fewer"):
        assert curves.pr([1, 1, 1], [3.0, 2, 1], num_positives=1).ap_11 == pytest.approx(1)


def test_an_ignored_row_above_all_others_comes_in_before_the_first():
    for labels, scores in (([0, 1, -1], [9.0, 2, 1]), ([0, 1, -1], [math.inf, 2, 1])):
        r = curves.pr(labels, scores, ties="merge", stable=True)
        assert (r.tp.tolist(), r.precision.tolist()) == ([0, 1, 1], [1, 1, 0.5])


def test_the_area_is_whole_up_to_2_to_the_63():
    """All 2^31 positives before all 2^31 negatives: twice the area is 2^63, 1 beyond int64."""
    half = 2**31
    r = curves.Ranking.from_counts([0.5, 0.2], [half, half], [0, half], half, half)
    assert curves.roc_from_ranking(r).auc == 1


KINDS = {
    "tied floats": lambda rng: rng.integers(-3, 3, 60) / 4,
    "float32": lambda rng: (rng.integers(-9, 9, 60) / 8).astype(np.float32),
    "int8": lambda rng: rng.integers(-5, 5, 60).astype(np.int8),
    "uint16": lambda rng: rng.integers(0, 9, 60).astype(np.uint16),
    "truth values": lambda rng: rng.random(60) < 0.5,
    "one as float32": lambda rng: rng.choice([1 + 1e-12, 1 + 2e-12], 60),
    "no ties": lambda rng: rng.permutation(60) / 4,
}


@pytest.mark.parametrize("ignored", [0, 1, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_every_path_ranks_as_counted_one_by_one(path, kind, ignored):
    rng = np.random.default_rng(4)
    scores, labels = KINDS[kind](rng), rng.choice([-1, 1], 60)
    labels[:ignored] = 0
    given = labels.tolist(), scores.astype(float).tolist()
    for merge, ties in ((False, "sample"), (True, "merge")):
        expected = slow.counts(*given, merge=merge)
        for rows in (False, True):
            r = curves.rank(labels, scores, ties=ties, rows=rows)
            assert list(zip(r.thresholds, r.tp, r.fp, strict=True)) == expected
            assert (r.rows is not None) == rows
        # where a row comes in, its own level is the last
        levels = r.thresholds[r.rows]
        known = labels != 0 if merge else np.full(60, True)
        assert levels[known].tolist() == scores[known].astype(float).tolist()


def test_a_row_never_retrieved_is_at_minus_1():
    assert curves.rank([1, -1, 1], [2.0, -math.inf, 1], rows=True).rows.tolist() == [1, -1, 2]
