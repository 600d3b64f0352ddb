"""BinnedCurves: the additive state, and agreement with the exact curves."""

import math

import numpy as np
import pytest

from bsdsbench import curves
from bsdsbench.files.errors import DataError, MergeError, ShapeError


def samples(n=400, dtype=np.float64):
    rng = np.random.default_rng(1)
    labels = rng.choice([-1, -1, 1, 0], n)
    return labels, np.round(rng.random(n), 2).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_thresholds_at_every_score_give_the_exact_curves(dtype):
    labels, scores = samples(dtype=dtype)
    binned = curves.BinnedCurves(np.unique(scores[labels != 0]))
    binned.update(labels, scores)
    assert binned.pr().equals(curves.pr(labels, scores, ties="merge"))
    assert binned.roc(plot="tptn").equals(curves.roc(labels, scores, ties="merge", plot="tptn"))
    assert binned.det().equals(curves.det(labels, scores, ties="merge"))


def test_batches_workers_and_order_do_not_matter():
    labels, scores = samples()
    whole = curves.BinnedCurves(17)
    whole.update(labels, scores)
    parts = [curves.BinnedCurves(17) for _ in range(3)]
    for k, chunk in enumerate(np.array_split(np.random.default_rng(2).permutation(400), 9)):
        parts[k % 3].update(labels[chunk], scores[chunk])
    total = curves.BinnedCurves(17)
    for part in reversed(parts):
        total.merge(part)
    np.testing.assert_array_equal(total.state, whole.state)
    assert total.pr().equals(whole.pr())
    again = curves.BinnedCurves.from_state(whole.thresholds, sum(p.state for p in parts))
    assert again.roc().equals(whole.roc())
    total.reset()
    assert total.state.sum() == 0
    assert whole.state.sum() == np.count_nonzero(labels)


@pytest.mark.parametrize(
    "thresholds",
    [[0.5], [0.1, 0.1 + 1e-12, 0.9], np.geomspace(1e-9, 1, 300), [-5, 7], np.linspace(0, 1, 256)],
    ids=["one", "close", "geometric", "wide", "even"],
)
def test_bins_by_hand(thresholds):
    t = np.array(thresholds, float)
    rng = np.random.default_rng(3)
    edge = np.r_[t, np.nextafter(t, -9), np.nextafter(t, 9), -math.inf, math.inf, -100, 100, -0.0]
    scores = np.r_[edge, rng.random(200)]
    labels = rng.choice([-1, 1], scores.size)
    binned = curves.BinnedCurves(t)
    binned.update(labels, scores)
    at = np.searchsorted(t, scores, side="right")
    expected = [np.bincount(at[labels == sign], minlength=t.size + 1) for sign in (1, -1)]
    np.testing.assert_array_equal(binned.state, expected)
    r = binned.ranking()
    assert r.tp[1:].tolist() == [int(((scores >= x) & (labels > 0)).sum()) for x in t[::-1]]
    assert r.fp[1:].tolist() == [int(((scores >= x) & (labels < 0)).sum()) for x in t[::-1]]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_a_number_of_thresholds_may_be_of_numpy(kind):
    assert np.array_equal(curves.BinnedCurves(kind(5)).thresholds, [0, 0.25, 0.5, 0.75, 1])
    with pytest.raises(DataError, match="thresholds 1: expected 2 or more"):
        curves.BinnedCurves(kind(1))


def test_a_bad_batch_changes_nothing():
    binned = curves.BinnedCurves(5)
    binned.update([1, -1], [0.5, 0.2])
    before = binned.state
    with pytest.raises(DataError, match="scores: 1 NaN"):
        binned.update([1, -1], [0.5, math.nan])
    with pytest.raises(ShapeError, match="labels: 1 values"):
        binned.update([1], [0.5, 0.1])
    np.testing.assert_array_equal(binned.state, before)


def test_empty_and_bad_calls():
    empty = curves.BinnedCurves(3).pr()
    assert empty.recall.tolist() == [0, 0, 0, 0]
    assert empty.precision.tolist() == [1, 1, 1, 1]
    assert math.isnan(empty.ap)
    with pytest.raises(DataError, match="thresholds 1: expected 2 or more"):
        curves.BinnedCurves(1)
    with pytest.raises(DataError, match="strictly rising"):
        curves.BinnedCurves([0.5, 0.5])
    with pytest.raises(DataError, match="strictly rising"):
        curves.BinnedCurves([])
    with pytest.raises(MergeError, match="different thresholds"):
        curves.BinnedCurves(3).merge(curves.BinnedCurves(4))
    with pytest.raises(DataError, match=r"state: int64 \(2, 3\), expected whole numbers \(2, 4\)"):
        curves.BinnedCurves.from_state([0, 0.5, 1], np.zeros((2, 3), int))
    with pytest.raises(DataError, match="state: float64"):
        curves.BinnedCurves.from_state([0, 0.5, 1], np.zeros((2, 4)))


def test_what_lies_below_the_lowest_threshold_counts_in_the_totals():
    binned = curves.BinnedCurves([0.5, 0.7])
    binned.update([1, 1, -1, -1, -1], [0.6, 0.2, 0.8, 0.1, 0.1])
    r = binned.ranking()
    assert (r.positives, r.negatives, r.tp.tolist(), r.fp.tolist()) == (2, 3, [0, 0, 1], [0, 1, 1])


def test_two_thresholds_are_the_fewest_of_a_number():
    assert curves.BinnedCurves(2).thresholds.tolist() == [0, 1]


def test_one_negative_count_is_refused():
    with pytest.raises(DataError, match=r"state: int64 \(2, 3\), expected whole numbers"):
        curves.BinnedCurves.from_state([0, 1], [[1, 2, 3], [4, -1, 5]])
