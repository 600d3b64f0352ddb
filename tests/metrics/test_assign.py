"""Assignment at any costs against scipy's dense and sparse solvers, and what the call promises."""

import os
import pickle
import threading

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.kernels import assigning, graph
from bsdsbench.metrics.assign import in_threads
from tests.reference import assigning as reference

METRICS = ("l2", "l1", "linf")
MANY = pytest.param(2000, marks=pytest.mark.heavy)
WEIGHTINGS = ("distance", "confidence", "whole", "both", "table", "table and both")


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
        shape = (1, 40)
        at = np.arange(40)
        return (at % 2 == 0)[None] & (at < 38), (at % 2 == 1)[None] & (at > 2)
    return tuple(kinds[rng.choice(len(kinds), p=_LIKELY)]() for _ in range(2))


_LIKELY = np.array([6, 3, 1, 2, 1, 1, 1, 1, 0.3]) / 16.3


def options(rng, weighting, radius, shape):
    """Keywords of `assign`."""
    found = {}
    if weighting in ("confidence", "both", "table and both"):
        soft = rng.random(shape)
        found["pred_value"] = soft.astype(np.float32) if rng.random() < 0.5 else np.rint(9 * soft)
        found["weight"] = float(rng.choice([-5, -55, 3.7, -1e-6, 1e9, 0]))
    if weighting in ("both", "table and both"):
        found["gt_value"] = rng.normal(size=shape) * rng.choice([1, 100])
    if weighting == "whole":
        found["pred_value"] = rng.integers(-3, 4, shape)
        found["gt_value"] = rng.integers(0, 1000, shape)
    if weighting.startswith("table"):
        side = 2 * int(radius) + 1
        table = np.rint(rng.normal(size=(side, side)) * 4)
        table[rng.random((side, side)) < 0.2] = np.inf
        found["cost"] = table
    return found


def check(rng, k, metric, weighting):
    pred, gt = maps(rng, k)
    radius = float(rng.choice([0, 1, 1.5, 2, 3.3, 4.34, 8, 40]))
    given = options(rng, weighting, radius, pred.shape)
    found = bb.assign(pred, gt, radius, metric=metric, **given)
    values = {}
    if "pred_value" in given:
        values["a_value"] = given.get("weight", 1) * given["pred_value"].astype(float)[pred]
    if "gt_value" in given:
        values["b_value"] = given["gt_value"][gt]
    table = reference.cost_table(
        np.argwhere(pred), np.argwhere(gt), radius, metric, cost=given.get("cost"), **values
    )
    compare(found, table, np.cumsum(pred) - 1, np.cumsum(gt) - 1)


def compare(found, table, row_of, col_of):
    """The pairs are pairs, as many as scipy's, and as cheap."""
    n, cost = reference.dense(table)
    assert found.n_matched == n
    assert (np.diff(found.pred_index) > 0).all()
    lost = 2.0 ** (min(table.shape).bit_length() - 8)  # of costs below 2^34
    assert 0 < found.resolution <= max(lost, 0.5)
    rows, cols = row_of[found.pred_index], col_of[found.gt_index]
    assert len(set(rows.tolist())) == len(set(cols.tolist())) == n
    paid = table[rows, cols]
    assert np.isfinite(paid).all()
    assert found.cost == pytest.approx(paid.sum(), rel=1e-12, abs=1e-9)
    known = table[np.isfinite(table)]
    largest = np.abs(known).max(initial=0)
    rounding = 1e-11 * n * largest  # scipy's
    whole = np.array_equal(known, np.rint(known)) and largest < 1e8
    assert abs(found.cost - cost) <= (0 if whole else n * found.resolution + rounding)
    also_n, also_cost, error = reference.sparse(table)
    assert also_n == n
    assert abs(found.cost - also_cost) <= n * found.resolution + error


@pytest.mark.parametrize("count", [80, MANY])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("metric", METRICS)
def test_pairs_and_cost_equal_scipys(metric, weighting, count):
    rng = np.random.default_rng([count, METRICS.index(metric), WEIGHTINGS.index(weighting)])
    for k in range(count):
        check(rng, k, metric, weighting)


def check_points(rng, metric):
    n, m = rng.integers(0, 40, 2)
    grid = rng.random() < 0.4  # many equal distances, points that coincide
    a, b = rng.random((n, 2)) * 12 - 6, rng.random((m, 2)) * 12 - 6
    a, b = (np.rint(a), np.rint(b)) if grid else (a, b)
    values = {"pred_value": rng.random(n), "gt_value": rng.integers(0, 3, m)}
    given = {key: value for key, value in values.items() if rng.random() < 0.6}
    radius, weight = float(rng.choice([0, 1, 2, 2.5, 30])), float(rng.choice([-4, 1.5]))
    found = bb.assign_points(a, b, radius, metric=metric, weight=weight, **given)
    table = reference.cost_table(
        *(a, b, radius, metric),
        a_value=weight * given.get("pred_value", np.zeros(n)),
        b_value=given.get("gt_value", np.zeros(m)),
    )
    compare(found, table, np.arange(n), np.arange(m))


@pytest.mark.parametrize("count", [150, MANY])
@pytest.mark.parametrize("metric", METRICS)
def test_points_equal_scipys(metric, count):
    rng = np.random.default_rng([count, METRICS.index(metric)])
    for _ in range(count):
        check_points(rng, metric)


def batch(seed=3, shape=(60, 70)):
    rng = np.random.default_rng(seed)
    soft = rng.random((4, *shape))
    gts = [rng.random((n, *shape)) < 0.1 for n in (1, 3, 2, 5)]
    values = [rng.random(gt.shape) for gt in gts]
    return soft, soft > 0.6, gts, values


def same(a, b):
    return a.cost == b.cost and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("pred_index", "gt_index")
    )


def test_a_batch_gives_the_bits_of_each_problem_alone_in_any_number_of_threads():
    soft, pred, gts, values = batch()
    given = {"metric": "l1", "weight": -5}
    found = {
        n: bb.assign(pred, gts, 4, pred_value=soft, gt_value=values, threads=n, **given)
        for n in (None, 1, 8)
    }
    assert [len(of_image) for of_image in found[1]] == [1, 3, 2, 5]
    for k, gt in enumerate(gts):
        for a, one in enumerate(gt):
            value = {"pred_value": soft[k], "gt_value": values[k][a]}
            alone = bb.assign(pred[k], one, 4, **value, **given)
            assert all(same(f[k][a], alone) for f in found.values())
            assert alone.n_matched > 50


def test_the_form_of_the_result_is_that_of_the_ground_truth():
    _, pred, gts, _ = batch()
    one = bb.assign(pred[0], gts[0][0], 2)
    assert isinstance(one, bb.Assignment)
    truth = bb.GroundTruth("a", tuple(gts[1]))
    for many in (gts[1], list(gts[1]), truth):
        found = bb.assign(pred[1], many, 2)
        assert [f.n_matched for f in found] == [bb.assign(pred[1], g, 2).n_matched for g in gts[1]]
    of_batch = bb.assign(pred[:2], np.stack([g[0] for g in gts[:2]]), 2)
    assert same(of_batch[0], one)
    assert isinstance(of_batch[1], bb.Assignment)
    assert bb.assign(pred[:1], gts[:1], 2)[0][0].n_matched == one.n_matched


def test_partners_are_maps_and_read_only_also_in_a_copy():
    _, pred, gts, _ = batch()
    found = bb.assign(pred[0], gts[0][0], 2)
    for one in (found, pickle.loads(pickle.dumps(found))):
        assert one.pred_match.shape == one.gt_match.shape == (60, 70)
        assert (one.pred_match.flat[one.pred_index] == one.gt_index).all()
        assert (one.gt_match.flat[one.gt_index] == one.pred_index).all()
        assert np.count_nonzero(one.pred_match >= 0) == one.n_matched
        for array in (one.pred_index, one.gt_index, one.pred_match, one.gt_match):
            assert array.dtype == np.int64
            with pytest.raises(ValueError, match="read-only"):
                array.flat[0] = 0
        with pytest.raises(AttributeError):
            one.cost = 0.0
    assert repr(found) == f"Assignment({found.n_matched} pairs, cost {found.cost:.6g})"


def test_the_benchmarks_costs_give_the_benchmarks_matching():
    rng = np.random.default_rng(4)
    step = np.arange(-4, 5)
    cost = np.rint(100 * np.hypot(step[:, None], step))
    for share in (0.02, 0.1, 0.3):
        pred, gt = rng.random((80, 90)) < share, rng.random((80, 90)) < 0.1
        match, found = bb.match_boundaries(pred, gt, 4.34), bb.assign(pred, gt, 4.34, cost=cost)
        lost = 43400 * (pred.sum() + gt.sum() - match.n_matched)
        assert (found.n_matched, found.cost) == (match.n_matched, match.cost - lost)


def test_a_table_says_what_lies_where():
    pred, gt = np.zeros((5, 5), bool), np.zeros((5, 5), bool)
    pred[2, 2] = gt[1, 2] = gt[2, 3] = gt[3, 2] = True
    cost = np.full((3, 3), np.inf)
    cost[0, 1], cost[1, 2] = 3, 2  # above; to the right
    found = bb.assign(pred, gt, 1, cost=cost)
    assert (found.gt_index.tolist(), found.cost) == ([13], 2)
    cost[2, 1] = 1  # below
    assert bb.assign(pred, gt, 1, cost=cost).gt_index.tolist() == [17]
    assert bb.assign(gt, pred, 1, cost=cost).pred_index.tolist() == [7]  # it has `pred` below
    cost[:] = np.inf
    assert bb.assign(pred, gt, 1, cost=cost).n_matched == 0


def test_equal_costs_are_decided_by_the_pixels_not_by_the_search():
    """Which side enters, and what lies far off, moves no pair."""
    rng = np.random.default_rng(6)
    pred, gt = rng.random((30, 30)) < 0.3, rng.random((30, 30)) < 0.25
    found, mirrored = bb.assign(pred, gt, 2, metric="l1"), bb.assign(gt, pred, 2, metric="l1")
    order = np.argsort(mirrored.gt_index)
    assert (mirrored.gt_index[order] == found.pred_index).all()
    assert (mirrored.pred_index[order] == found.gt_index).all()
    below = np.zeros((12, 30), bool)
    below[8:] = True
    more = bb.assign(np.vstack([pred, below]), np.vstack([gt, below]), 2, metric="l1")
    near = more.pred_index < 900
    assert (more.pred_index[near] == found.pred_index).all()
    assert (more.gt_index[near] == found.gt_index).all()


def test_a_small_arena_changes_nothing(monkeypatch):
    soft, pred, gts, _ = batch()
    expected = bb.assign(pred, gts, 4, pred_value=soft)
    monkeypatch.setattr(graph, "_ARENA", 1)
    for of_image, before in zip(bb.assign(pred, gts, 4, pred_value=soft), expected, strict=True):
        assert all(same(*two) for two in zip(of_image, before, strict=True))


@pytest.mark.slow
def test_large_maps_and_values_stay_exact():
    """Every pixel of both maps: the most pairs there can be; costs that differ by 1e12."""
    soft, pred, gts, _ = batch()
    assert bb.assign(pred[0], gts[0][0], 11, pred_value=soft[0], weight=-55).resolution < 2**-20
    full = np.ones((321, 481), bool)
    found = bb.assign(full, full, 11, metric="l1")
    assert (found.n_matched, found.cost) == (full.size, 0)
    assert found.resolution < 1e-5
    pred, gt = np.zeros((1, 9), bool), np.zeros((1, 9), bool)
    pred[0, [2, 5]], gt[0, [5, 8]] = True, True
    value = np.where(np.arange(9) == 2, 1e12, 0.0)[None]  # a pair more comes first all the same
    assert bb.assign(pred, gt, 3, pred_value=value).n_matched == 2


def test_too_many_pairs_of_points_are_refused(monkeypatch):
    points = np.zeros((30, 2))
    assert bb.assign_points(points, points, 1).n_matched == 30
    monkeypatch.setattr(assigning, "MOST_EDGES", 899)
    with pytest.raises(bb.DataError, match="900 pairs of points within the radius: expected at mo"):
        bb.assign_points(points, points, 1)


MAP = np.eye(4) > 0


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"gt": MAP[:3]}, bb.ShapeError, r"prediction: shape \(4, 4\), expected \(3, 4\)"),
        ({"pred": MAP[0]}, bb.ShapeError, r"prediction: shape \(4,\), expected \(H, W\) or"),
        ({"pred": MAP * 0.5}, bb.DataError, "prediction: values other than 0 and 1"),
        ({"gt": MAP * 2}, bb.DataError, "ground truth: values other than 0 and 1"),
        ({"gt": []}, bb.ShapeError, r"ground truth: shape \(0,\), expected \(H, W\) or"),
        ({"pred": MAP[None]}, bb.ShapeError, "ground truth: 4 items, expected 1, one for each"),
        ({"radius": -1}, bb.DataError, "radius: -1, expected a number from 0 to 1000"),
        ({"radius": float("nan")}, bb.DataError, "radius: nan, expected a number"),
        ({"metric": "l3"}, bb.DataError, "metric 'l3': expected one of l2, l1, linf"),
        ({"weight": float("inf")}, bb.DataError, "weight: inf, expected a number"),
        ({"pred_value": MAP[0]}, bb.ShapeError, r"pred_value: shape \(4,\), expected \(4, 4\)"),
        (
            {"pred_value": np.where(MAP, np.nan, 0)},
            bb.DataError,
            "pred_value: NaN or values beyond 1e",
        ),
        ({"pred_value": MAP * 1e9, "weight": 1e9}, bb.DataError, "pred_value: NaN or values bey"),
        ({"gt_value": MAP[:3]}, bb.ShapeError, "gt_value: shape other than the ground truth's"),
        ({"gt_value": np.where(MAP, np.inf, 0)}, bb.DataError, "gt_value: NaN or values beyond 1e"),
        ({"cost": np.zeros((3, 5))}, bb.ShapeError, r"cost: shape \(3, 5\), expected \(5, 5\)"),
        ({"cost": np.full((5, 5), np.nan)}, bb.DataError, "cost: NaN or values beyond"),
        ({"threads": 0}, bb.DataError, "threads: 0, expected a whole number, 1 or more"),
    ],
)
def test_other_input_is_refused_in_one_line(given, kind, message):
    given = {"pred": MAP, "gt": MAP, "radius": 2, **given}
    with pytest.raises(kind, match=message):
        bb.assign(**given)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"pred": MAP[0]}, bb.ShapeError, r"prediction: shape \(4,\), expected \(number of"),
        ({"gt": [(0, np.nan)]}, bb.DataError, "ground truth: NaN or values beyond"),
        ({"gt_value": [1, 2]}, bb.ShapeError, r"gt_value: shape \(2,\), expected \(1,\)"),
    ],
)
def test_other_points_are_refused_in_one_line(given, kind, message):
    with pytest.raises(kind, match=message):
        bb.assign_points(**{"pred": [(0, 0)], "gt": [(1, 1)], "radius": 2, **given})


def test_numbers_at_their_limits():
    """Radius 0 to 1000 pixels, values and weights to 1e15, as the docstrings say."""
    one, far = np.ones((1, 1), bool), np.nextafter(1e15, np.inf)
    for radius in (0, 1000):
        assert bb.assign(one, one, radius).n_matched == 1
    for given in ({"weight": 1e15, "pred_value": one}, {"gt_value": one * 1e15}):
        assert bb.assign(one, one, 0, **given).cost == 1e15
    assert bb.assign_points([(1e15, 0)], [(0, 0)], 1e15).n_matched == 1
    for given in ({"weight": far}, {"gt_value": one * far}, {"pred_value": one * far}):
        with pytest.raises(bb.DataError, match="1e\\+15"):
            bb.assign(one, one, 0, **given)
    with pytest.raises(bb.DataError, match="radius: 1001, expected a number from 0 to 1000"):
        bb.assign(one, one, 1001)
    with pytest.raises(bb.DataError, match="radius"):
        bb.assign_points([(0, 0)], [(0, 0)], far)


def test_a_value_counts_once_unless_a_weight_is_given():
    pred = gt = np.ones((1, 1), bool)
    assert bb.assign(pred, gt, 1, pred_value=pred * 3.0).cost == 3
    assert bb.assign(pred, gt, 1, pred_value=pred * 3.0, gt_value=gt * 0.5, weight=2).cost == 6.5
    one = [(0.0, 1.0)]
    assert bb.assign_points(one, one, 1, pred_value=[3.0]).cost == 3
    assert bb.assign_points(one, one, 1, pred_value=[3.0], gt_value=[0.5], weight=2).cost == 6.5
    diagonal = ([(0, 0)], [(1, 1)])
    assert bb.assign_points(*diagonal, 2).cost == pytest.approx(2**0.5)  # Euclidean


def test_unequal_numbers_of_points_and_none():
    found = bb.assign_points([(0, 0), (5, 5), (9, 9)], [(5, 4)], 2)
    assert (found.pred_match.tolist(), found.gt_match.tolist()) == ([-1, 0, -1], [1])
    for pred, gt in (([], [(1, 1)]), ([(1, 1)], []), ([], [])):
        found = bb.assign_points(pred, gt, 2)
        assert (found.n_matched, found.cost) == (0, 0)
        assert (found.pred_shape, found.gt_shape) == ((len(pred),), (len(gt),))
    with pytest.raises(bb.ShapeError, match=r"^ground truth: shape \(1, 3\), expected \(number of"):
        bb.assign_points([(0, 0)], [(1, 2, 3)], 2)


def test_without_a_partner_it_is_minus_1():
    found = bb.assign(np.eye(2) > 0, np.zeros((2, 2)), 1)
    assert found.pred_match.tolist() == found.gt_match.tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("n", "threads", "processors", "at_once"),
    [(2, None, 2, 2), (2, 2, 1, 2), (3, 2, 8, 2), (2, 1, 8, 1), (1, 8, 8, 1), (2, None, None, 1)],
)
def test_as_many_threads_as_there_is_work_for(monkeypatch, n, threads, processors, at_once):
    """`threads`, or one a processor; never more than problems; alone in the calling one."""
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    here, meeting = threading.get_ident(), threading.Barrier(at_once)

    def function(item):
        if item < at_once:
            meeting.wait(timeout=20)
        return item, threading.get_ident()

    found = in_threads(function, range(n), threads)
    assert [item for item, _ in found] == [*range(n)]
    seen = {thread for _, thread in found}
    assert seen == {here} if at_once == 1 else here not in seen
    assert len(seen) <= at_once
