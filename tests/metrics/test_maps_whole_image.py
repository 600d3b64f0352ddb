"""Threshold 0: the closed form is what matching the whole image gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bsdsbench.images import Prediction
from bsdsbench.metrics.boundary import (
    boundary_counts,
    match_boundaries,
    whole_image_counts,
)
from bsdsbench.metrics.pixel import pixel_counts
from bsdsbench.protocol.protocol import Protocol

WITH_ZERO = Protocol.preset("bsds500").replace(thresholds=(0, 0.25, 0.5))


def matched_everywhere(maps, max_dist_px):
    """The four counts by the matcher itself, every pixel of the image being a prediction."""
    everywhere = np.ones(maps[0].shape, bool)
    union, pairs = np.zeros(maps[0].shape, bool), 0
    for drawn in maps:
        found = match_boundaries(everywhere, drawn, max_dist_px)
        union |= found.pred_match >= 0
        pairs += found.n_matched
    return pairs, sum(int(m.sum()) for m in maps), int(union.sum()), everywhere.size


@pytest.mark.filterwarnings("ignore:max_dist_px .* only equal pixels match")
@given(
    arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 7))),
    st.floats(0, 4),
)
def test_the_closed_form_is_the_matching_of_the_whole_image(maps, max_dist_px):
    assert tuple(whole_image_counts(maps)) == matched_everywhere(maps, max_dist_px)


def example():
    rng = np.random.default_rng(3)
    gts = rng.random((2, 11, 17)) < 0.15
    return (rng.integers(0, 256, (11, 17)) * gts[0]).astype(np.uint8), gts


def test_the_row_stands_before_the_others_and_changes_none():
    soft, gts = example()
    found = boundary_counts(soft, gts, WITH_ZERO)
    plain = boundary_counts(soft, gts, WITH_ZERO.replace(thresholds=(0.25, 0.5)))
    assert found.thresholds.tolist() == [0, 0.25, 0.5]
    drawn = int((gts[0] | gts[1]).sum())
    for name, first in (
        ("matched_gt", int(gts.sum())),
        ("total_gt", int(gts.sum())),
        ("matched_pred", drawn),
        ("total_pred", 11 * 17),
    ):
        assert getattr(found, name).tolist() == [first, *getattr(plain, name)]


def test_above_zero_is_no_whole_image():
    soft, gts = example()
    strict = WITH_ZERO.replace(operator=">", thin=False)
    found = boundary_counts(soft, gts, strict)
    assert found.total_pred[0] == np.count_nonzero(soft)
    pixels = pixel_counts(soft, gts, strict)
    assert pixels.tp[0] + pixels.fp[0] == 2 * np.count_nonzero(soft)


def test_segmentations_have_no_map_of_the_whole_image():
    _, gts = example()
    halves = np.repeat([1, 2], [5, gts.shape[2] - 5])[None].repeat(gts.shape[1], axis=0)
    pred = Prediction("a", segs=(halves,))
    assert 0 not in boundary_counts(pred, gts, WITH_ZERO).thresholds


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_a_value_at_the_threshold_is_on_with_one_operator_only(dtype):
    scale = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    values = np.array([[0, 51, 102, 255]]) * (scale / 255)
    soft = values.astype(dtype)
    cut = float(soft[0, 1].astype(np.float64) / scale)
    one = Protocol(thresholds=(cut,), thin=False)
    gts = np.ones((1, 1, 4), bool)
    assert boundary_counts(soft, gts, one).total_pred.tolist() == [3]
    assert boundary_counts(soft, gts, one.replace(operator=">")).total_pred.tolist() == [2]
