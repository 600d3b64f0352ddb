"""What any matching must keep, on maps drawn by hypothesis: any shape, empty maps too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bsdsbench.kernels.matching.matching import match_maps, match_steps, prepare_truth
from bsdsbench.kernels.thinning import stack_changes
from bsdsbench.metrics.boundary import boundary_counts, match_boundaries
from bsdsbench.protocol.protocol import Protocol
from tests.reference import matching as reference

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 13))
RADII = st.sampled_from([0.0, 1.0, 1.42, 2.0, 3.5, 6.0, 40.0])
QUICK = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def two_maps(draw):
    shape = draw(SHAPES)
    return draw(hnp.arrays(bool, shape)), draw(hnp.arrays(bool, shape))


@st.composite
def steps(draw):
    """(T, H, W) maps in any order, (A, H, W) annotators."""
    shape = draw(SHAPES)
    bmaps = draw(hnp.arrays(bool, (draw(st.integers(1, 19)), *shape)))
    return bmaps, draw(hnp.arrays(bool, (draw(st.integers(1, 3)), *shape)))


@QUICK
@given(two_maps(), RADII, st.integers(0, 4))
def test_the_one_optimum(maps, radius, annotator) -> None:
    _, chosen = reference.optimum(*maps, radius, annotator)
    assert sorted(map(tuple, match_maps(*maps, radius, annotator).T)) == sorted(chosen)
    assert match_boundaries(*maps, radius).cost == reference.dense_cost(*maps, radius)


@QUICK
@given(steps(), RADII)
@pytest.mark.slow
def test_each_step_equals_its_map_alone(case, radius) -> None:
    """Pixels enter, leave and come back; the history must not show in any count."""
    bmaps, gts = case
    warm = np.array(match_steps(stack_changes(bmaps), prepare_truth(gts, radius)))[:, ::-1]
    for k, bmap in enumerate(bmaps):
        pairs = [reference.optimum(bmap, gt, radius, a)[1] for a, gt in enumerate(gts)]
        assert warm[0, k] == sum(map(len, pairs))
        assert warm[1, k] == len({pred for found in pairs for pred, _ in found})


@QUICK
@given(two_maps(), RADII, st.integers(2, 4))
def test_copies_of_an_annotator(maps, radius, copies) -> None:
    """Recall's counts multiply; a union over annotators can only grow, up to the pixels there."""
    bmap, gt = maps
    protocol = Protocol(thresholds=(0.5,), thin=False, max_dist_px=radius)
    one = boundary_counts(bmap, [gt], protocol)
    many = boundary_counts(bmap, [gt] * copies, protocol)
    assert many.matched_gt[0] == copies * one.matched_gt[0]
    assert many.total_gt[0] == copies * one.total_gt[0]
    assert one.matched_pred[0] == one.matched_gt[0]
    assert one.matched_pred[0] <= many.matched_pred[0] <= many.total_pred[0] == bmap.sum()
