"""Many-to-one counts against a distance transform at each threshold, and what they hide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from bsdsbench.loaders.inputs import Prediction
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.metrics.many_to_one import many_to_one_counts
from bsdsbench.metrics.maps import thin
from bsdsbench.protocol.protocol import Protocol


def distance(bmap):
    return ndimage.distance_transform_edt(~bmap) if bmap.any() else np.full(bmap.shape, np.inf)


def slow(soft, gts, protocol):
    """matched_gt, total_gt, matched_pred, total_pred per threshold, (T, 4)."""
    radius, rows = protocol.radius(soft.shape), []
    for t in protocol.thresholds:
        bmap = soft >= t
        bmap = thin(bmap) if protocol.thin else bmap
        found = sum(int((gt & (distance(bmap) <= radius)).sum()) for gt in gts)
        right = np.any([distance(gt) <= radius for gt in gts], axis=0)
        rows.append((found, sum(int(g.sum()) for g in gts), int((bmap & right).sum()), bmap.sum()))
    return np.array(rows)


@given(
    st.integers(0, 10_000),
    st.tuples(st.integers(1, 14), st.integers(1, 11)),
    st.integers(1, 3),
    st.sampled_from([0, 1, 1.5, 2, 3.7]),
    st.booleans(),
)
def test_counts_are_those_of_a_distance_transform(seed, shape, annotators, radius, thinned):
    rng = np.random.default_rng(seed)
    soft = np.round(rng.random(shape), 1)
    gts = rng.random((annotators, *shape)) < 0.2
    protocol = Protocol(thresholds=(0.25, 0.55, 0.95), max_dist_px=radius, thin=thinned)
    found = many_to_one_counts(soft, gts, protocol)
    four = (found.matched_gt, found.total_gt, found.matched_pred, found.total_pred)
    np.testing.assert_array_equal(np.stack(four, axis=-1), slow(soft, gts, protocol))


def test_a_thick_edge_costs_nothing_here_only():
    """Three rows on, one row annotated, 9 columns: one to one 9 of 27, many to one all."""
    soft, gt = np.zeros((7, 9)), np.zeros((7, 9), bool)
    soft[2:5], gt[3] = 1, True
    protocol = Protocol(thresholds=(0.5,), max_dist_px=2, thin=False)
    one, many = boundary_counts(soft, [gt], protocol), many_to_one_counts(soft, [gt], protocol)
    assert (one.matched_pred.tolist(), many.matched_pred.tolist()) == ([9], [27])
    assert (one.matched_gt.tolist(), many.matched_gt.tolist()) == ([9], [9])


def test_segmentations_have_their_own_thresholds():
    seg = np.zeros((6, 7), np.int32)
    seg[2:, 3:] = 1
    counts = many_to_one_counts(Prediction("a", segs=(seg,)), [seg > 0], Protocol())
    assert counts.thresholds.tolist() == [1]


def test_never_below_the_benchmark(bsds500):
    from bsdsbench.loaders import load_ground_truth, load_prediction

    pred = load_prediction(bsds500 / "ucm2" / "val" / "101085.mat")
    gt = load_ground_truth(bsds500 / "groundTruth" / "val" / "101085.mat")
    protocol = Protocol.preset("bsds500").replace(thresholds=9)
    one, many = boundary_counts(pred, gt, protocol), many_to_one_counts(pred, gt, protocol)
    assert (many.matched_gt >= one.matched_gt).all()
    assert (many.matched_pred >= one.matched_pred).all()
    assert many.matched_pred.sum() > one.matched_pred.sum()
    for name in ("total_gt", "total_pred"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    with pytest.raises(ValueError, match="shape"):
        many_to_one_counts(np.zeros((3, 3)), gt, protocol)
