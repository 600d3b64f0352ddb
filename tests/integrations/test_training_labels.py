"""Assignment at any costs against scipy's dense solver, and what the call promises."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import InputWarning
from bsdsbench.kernels.matching.training_pairs import _whole_costs
from tests.reference import assigning as reference

METRICS = ("l2", "l1", "linf")
WEIGHTINGS = ("distance", "confidence", "whole")
_LIKELY = np.array([6, 3, 1, 2, 1, 1, 1, 1, 0.3]) / 16.3


def maps(rng, k):
    """Two maps: noise of any density, lines, thick bands, full and empty ones, long chains."""
    rows, cols = rng.integers(1, 15, 2)
    shape = (int(rows), int(cols))
    row, col = np.indices(shape)
    kinds = (
        lambda: rng.random(shape) < rng.random(),
        lambda: rng.random(shape) < 0.1,
        lambda: row == rng.integers(0, rows),
        lambda: np.abs(row - rng.integers(0, rows)) <= 2,
        lambda: np.abs(row - col) < rng.integers(1, 4),
        lambda: (row + col) % 2 == rng.integers(0, 2),
        lambda: col % rng.integers(2, 5) == 0,
        lambda: np.ones(shape, bool),
        lambda: np.zeros(shape, bool),
    )
    if k % 7 == 0:  # each pair more moves all the others by one
        at = np.arange(40)
        return (at % 2 == 0)[None] & (at < 38), (at % 2 == 1)[None] & (at > 2)
    return tuple(kinds[rng.choice(len(kinds), p=_LIKELY)]() for _ in range(2))


def options(rng, weighting, shape):
    """Keywords of `assign`."""
    if weighting == "distance":
        return {}
    if weighting == "whole":
        return {"pred_value": rng.integers(-3, 4, shape)}
    soft = rng.random(shape)
    value = soft.astype(np.float32) if rng.random() < 0.5 else np.rint(9 * soft)
    return {"pred_value": value, "weight": float(rng.choice([-5, -55, 3.7, -1e-6, 1e9, 0]))}


def pairs(match):
    """Flat indices of the predicted pixels with a partner, and their partners."""
    at = np.flatnonzero(match.pred_match >= 0)
    return at, match.pred_match.flat[at]


def same(a, b):
    return a.cost == b.cost and np.array_equal(a.pred_match, b.pred_match)


def check(rng, k, metric, weighting):
    pred, gt = maps(rng, k)
    radius = float(rng.choice([0, 1, 1.5, 2, 3.3, 4.34, 8, 40]))
    given = options(rng, weighting, pred.shape)
    match = bb.assign(pred, gt, radius, metric=metric, **given)
    values = {}
    if "pred_value" in given:
        values["a_value"] = given.get("weight", 1) * given["pred_value"].astype(float)[pred]
    table = reference.cost_table(np.argwhere(pred), np.argwhere(gt), radius, metric, **values)
    n, cost = reference.dense(table)
    at, to = pairs(match)
    assert match.n_matched == len(at) == len(set(to.tolist())) == n
    assert (match.gt_match.flat[to] == at).all()
    assert np.count_nonzero(match.gt_match >= 0) == n
    paid = table[(np.cumsum(pred) - 1)[at], (np.cumsum(gt) - 1)[to]]
    assert np.isfinite(paid).all()
    assert match.cost == pytest.approx(paid.sum(), rel=1e-12, abs=1e-9)
    known = table[np.isfinite(table)]
    largest = np.abs(known).max(initial=0)
    resolution = max(2.0**-24, 2.0**-40 * min(table.shape) * np.ptp(known)) if n else 0
    whole = np.array_equal(known, np.rint(known)) and largest < 1e8
    assert abs(match.cost - cost) <= (0 if whole else n * (resolution + 1e-11 * largest))


@pytest.mark.parametrize("count", [80, pytest.param(2000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("metric", METRICS)
def test_pairs_and_cost_equal_scipys(metric, weighting, count):
    rng = np.random.default_rng([count, METRICS.index(metric), WEIGHTINGS.index(weighting)])
    for k in range(count):
        check(rng, k, metric, weighting)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 1023, 2**20])
@pytest.mark.parametrize("span", [1.0, 1.99, 4.34, 1e15])
def test_weights_are_as_fine_as_their_sums_allow(n, span):
    """n of them and one have at most 59 bits; no unit is finer than 2^-40."""
    low, high = -3.0, span - 3.0
    parts, most, unit = _whole_costs([np.array([high, low]), np.empty(0)], n)
    assert [part.tolist() for part in parts] == [[round((high - low) / unit), 0], []]
    assert n * most + 1 <= 2**59
    assert n * most + 1 > 2**56 or unit == 2**-40


def test_annotators_are_each_assigned_alone():
    rng = np.random.default_rng(3)
    pred, gts = rng.random((60, 70)) < 0.3, rng.random((3, 60, 70)) < 0.1
    soft = rng.random((60, 70))
    alone = [bb.assign(pred, *two, pred_value=soft) for two in zip(gts, [2] * 3, strict=True)]
    for many in (gts, list(gts), bb.GroundTruth("a", tuple(gts))):
        found = bb.assign(pred, many, 2, pred_value=soft)
        assert all(same(a, b) for a, b in zip(found, alone, strict=True))


def test_equal_costs_are_decided_by_the_pixels_not_by_the_search():
    """Which side enters, and what lies far off, moves no pair."""
    rng = np.random.default_rng(6)
    pred, gt = rng.random((30, 30)) < 0.3, rng.random((30, 30)) < 0.25
    found, mirrored = bb.assign(pred, gt, 2, metric="l1"), bb.assign(gt, pred, 2, metric="l1")
    assert (mirrored.pred_match == found.gt_match).all()
    assert (mirrored.gt_match == found.pred_match).all()
    below = np.zeros((12, 30), bool)
    below[8:] = True
    more = bb.assign(np.vstack([pred, below]), np.vstack([gt, below]), 2, metric="l1")
    assert (more.pred_match[:30] == found.pred_match).all()


def test_large_values_stay_exact():
    """Costs that differ by 1e12."""
    pred, gt = np.zeros((1, 9), bool), np.zeros((1, 9), bool)
    pred[0, [2, 5]], gt[0, [5, 8]] = True, True
    value = np.where(np.arange(9) == 2, 1e12, 0.0)[None]  # a pair more comes first all the same
    assert bb.assign(pred, gt, 3, pred_value=value).n_matched == 2


MAP = np.eye(4) > 0


@pytest.mark.parametrize(
    ("given", "kind", "named"),
    [
        ({"gt": MAP[:3]}, bb.ShapeError, "prediction"),
        ({"pred": MAP * 0.5}, bb.DataError, "prediction"),
        ({"gt": MAP * 2}, bb.DataError, "ground truth"),
        ({"radius": -1}, bb.DataError, "radius"),
        ({"metric": "l3"}, bb.DataError, "metric"),
        ({"weight": 1.1e15}, bb.DataError, "weight"),
        ({"pred_value": MAP[0]}, bb.ShapeError, "pred_value"),
        ({"pred_value": MAP * 1e9, "weight": 1e9}, bb.DataError, "pred_value"),
        ({"pred_value": np.where(MAP, np.inf, 0)}, bb.DataError, "pred_value"),
    ],
)
def test_other_input_is_refused_in_one_line(given, kind, named):
    with pytest.raises(kind, match=f"^{named}.*expected"):
        bb.assign(**{"pred": MAP, "gt": MAP, "radius": 2, **given})


def test_a_radius_that_may_be_a_fraction_is_warned_of():
    with pytest.warns(InputWarning, match=r"radius 0\.0075: only equal pixels match \(0\.\d+, if"):
        bb.assign(MAP, MAP, 0.0075)
    bb.assign(MAP, MAP, 1e-9)  # equal pixels, on purpose


@pytest.mark.slow
def test_numbers_at_their_limits_and_values_that_count_once():
    one = np.ones((1, 1), bool)
    for radius in (0, 1000):
        assert bb.assign(one, one, radius).n_matched == 1
    assert bb.assign(one, one, 0, weight=1e15, pred_value=one).cost == 1e15
    assert bb.assign(one, one, 1, pred_value=one * 3.0, weight=2).cost == 6
