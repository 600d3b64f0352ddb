"""Depth maps ready to be compared: options, pixels that count, fits, parts, by hand."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.metrics.depth import DepthOptions, _prepare_depth_maps, dbe_parts
from bsdsbench.scores.counts import Counts
from tests.helpers.counting import score_of
from tests.helpers.runs import refused

METRIC = registry.get("depth")


def test_options_at_their_limits():
    for crop in ((), (0, 1, 0, 1), (0, 5, 4, 5)):
        assert DepthOptions(crop=crop).crop == crop
    bad = {
        "crop": [(1, 1, 0, 2), (0, 2, 1, 1), (-1, 2, 0, 2), (0, 2, 0), (0, 2, 0, 2.0)],
        "measures": [(), ("si", "sid")],
    }
    for field, values in bad.items():
        for value in values:
            words = f"^{field} .*: expected"
            refused(words, DepthOptions, **{field: value}, error=ProtocolError)


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        (np.array([[0, 127, 128, 255]], np.uint8), [0, 0, 1, 1]),
        (np.array([[0, 1, 100, 300]], np.uint16), [0, 1, 1, 1]),
    ],
)
def test_edges_in_a_file_of_one_map(values, drawn):
    """Pictures of 0 .. 255 are cut at one half; in all others what is not 0 is drawn."""
    pred, at = np.ones((1, 4)), DepthOptions(gt_holds="edges")
    maps = _prepare_depth_maps(pred, bb.GroundTruth("a", depth=values), at)
    assert maps.gt is None
    assert [e.tolist() for e in maps.edges] == [[[*map(bool, drawn)]]]


def test_a_matte_in_a_file_of_one_map():
    pred, at = np.ones((1, 3)), DepthOptions(gt_holds="matte")
    matte = np.array([[0, 25, 26]], np.uint8)
    maps = _prepare_depth_maps(pred, bb.GroundTruth("a", depth=matte), at)
    assert (maps.gt, maps.matte.tolist()) == (None, [[False, False, True]])


nan, inf = np.nan, np.inf


@pytest.mark.parametrize(
    ("invalid", "counted", "true"),
    [
        ("truth", [1, 1, 1, 0, 0, 0, 1, 0], [1, 2, 3, nan, nan, nan, 7, nan]),
        ("both", [1, 0, 0, 0, 0, 0, 0, 0], [1, 2, 3, nan, nan, nan, 7, nan]),
        ("none", [1] * 8, [1, 2, 3, nan, 5, nan, 7, -8]),
    ],
)
def test_which_pixels_count(invalid, counted, true):
    """0, NaN and infinite are no depth, below 0 is none that is known; the fifth is masked out."""
    pred = np.array([[1, 0, nan, 4, 5, 6, -7, 8]])
    mask = np.arange(8)[None] != 4
    truth = bb.GroundTruth("a", depth=np.array([[1, 2, 3, 0, 5, inf, 7, -8]]), valid=mask)
    maps = _prepare_depth_maps(pred, truth, DepthOptions(invalid=invalid))
    assert maps.valid.astype(int).tolist() == [counted]
    np.testing.assert_array_equal(maps.gt_for_canny, [true])
    np.testing.assert_array_equal(maps.pred_for_canny, [[1, nan, nan, 4, 5, 6, -7, 8]])


def test_values_are_divided_by_their_scales_and_cropped():
    values = np.arange(1.0, 13).reshape(3, 4)
    at = DepthOptions(pred_scale=4, gt_scale=2, crop=(1, 3, 1, 2))
    maps = _prepare_depth_maps(values, bb.GroundTruth("a", depth=values), at)
    assert (maps.pred.tolist(), maps.gt.tolist()) == ([[1.5], [2.5]], [[3], [5]])
    turned = _prepare_depth_maps(
        values, bb.GroundTruth("a", depth=values), DepthOptions(pred_holds="inverse")
    )
    assert turned.pred == pytest.approx(1 / values)
    with pytest.raises(
        bb.ShapeError, match=r"^prediction: shape \(3, 4\), transposed, expected \(4"
    ):
        _prepare_depth_maps(values, bb.GroundTruth("a", depth=values.T), DepthOptions())


def test_the_fit_is_of_pixels_known_in_both():
    """Twice as deep in the first three; one is masked out, one not predicted, one without truth."""
    pred = np.array([[1.0, 2, 3, 100, 0, 50]])
    truth = bb.GroundTruth(
        "a", depth=np.array([[2.0, 4, 6, 8, 10, 0]]), valid=np.arange(6)[None] != 3
    )
    maps = _prepare_depth_maps(pred, truth, DepthOptions(align="scale"))
    assert maps.pred[0] == pytest.approx([2, 4, 6, 200, 0, 100])
    lone = _prepare_depth_maps(pred * [[0, 0, 0, 1, 1, 1]], truth, DepthOptions(align="scale"))
    assert lone.pred.tolist() == [[0, 0, 0, 100, 0, 50]]  # none to fit


@pytest.mark.parametrize("strict", [True, False])
def test_completeness_is_the_radius_where_no_predicted_edge_is_near(strict):
    """Edges at 0 and 29, the true one at 15; nothing is known at 29."""
    pred, gt, valid = (np.zeros((1, 30), bool) for _ in range(3))
    pred[0, [0, 29]] = gt[0, 15] = valid[0, :29] = True
    at = DepthOptions(strict=strict)
    dbe_sum, dbe_n = dbe_parts(pred, gt, valid, at)
    assert (dbe_sum.tolist(), dbe_n.tolist()) == ([0, 20], [0, 3, 1] if strict else [0, 2, 1])
    counts = Counts(dbe_sum=dbe_sum, dbe_n=dbe_n)
    options = {"depth": {"measures": ("dbe",), "strict": strict}}
    found = score_of("depth", counts, protocol=bb.Protocol.preset("depth").replace(options=options))
    assert (found["dbe_accuracy"], found["dbe_completeness"]) == (10, 10)
