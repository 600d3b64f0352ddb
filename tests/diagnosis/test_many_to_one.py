"""Many-to-one counts against a distance transform at each threshold, and what they hide."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from bsdsbench.diagnosis.causes import many_to_one_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.transforms.maps import thin


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
