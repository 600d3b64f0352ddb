"""seg2bdry on hand-drawn maps with unequal rows and columns, and against its definition."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import ShapeError
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions
from bsdsbench.metrics import registry
from bsdsbench.runs.sanity import find_symptoms
from bsdsbench.scores.counts import Evidence, ImageRecord, Sides, Values
from tests.reference import contours


def test_equals_the_definition_pixel_by_pixel():
    labels = np.random.default_rng(0).integers(0, 3, (7, 11))
    np.testing.assert_array_equal(seg2bdry(labels), contours.side(labels))


@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (1, 6), (6, 1)])
def test_uniform_and_thin_maps_have_no_boundary(shape):
    edge = seg2bdry(np.full(shape, 3, np.uint16))
    assert edge.shape == shape
    assert edge.dtype == bool
    assert not edge.any()


def test_refuses_other_ranks():
    with pytest.raises(ShapeError, match=r"shape \(2, 2, 2\), expected \(H, W\)"):
        seg2bdry(np.zeros((2, 2, 2), int))


@pytest.mark.parametrize("dtype", [bool, np.uint8, float])
def test_void_pixels_are_those_of_0(dtype):
    labels = np.repeat([[1, 1, 2, 2, 3]], 4, axis=0)
    valid = np.ones((4, 5), dtype)
    valid[:, 2] = 0
    assert seg2bdry(labels, 255 * valid).tolist() == [[False, False, False, True, False]] * 4
    with pytest.raises(ShapeError, match=r"valid: shape \(4, 4\), expected \(4, 5\)"):
        seg2bdry(labels, valid[:, 1:])


@pytest.mark.parametrize("metric", ["region", "superpixel", "boundary"])
@pytest.mark.parametrize(
    ("labels", "is_said"),
    [((0, 1, 2, 255), True), ((0, 20, 58, 255), True), ((0, 85, 170, 255), False),
     ((0, 255), False), ((1, 2, 3, 254), False), ((100, 180, 240, 255), False)],
)  # fmt: skip
def test_a_region_of_255_may_be_void(metric, labels, is_said):
    """As in label maps of VOC, whose outlines are void."""
    truth = np.repeat(np.uint8(labels), 60).reshape(-1, 12)
    item = bb.GroundTruth("a", (bb.seg2bdry(truth),), (truth,))
    protocol = bb.Protocol.preset("bsds500").replace(gt_kind="labels")
    found = find_symptoms(bb.Prediction("a", segs=(truth,)), item, protocol, [registry.get(metric)])
    assert [code for code, problem, _ in found if "255 is a region" in problem] == [
        "void"
    ] * is_said


@pytest.mark.parametrize(("n_maps", "n_annotators"), [(12, 12), (12, 5), (5, 5)])
def test_slices_of_a_volume_are_no_annotators(n_maps, n_annotators):
    labels = np.arange(12 * 9).reshape(12, 9) // 30
    pred = bb.Prediction("a", segs=(labels,) * n_maps)
    gt = bb.GroundTruth("a", (bb.seg2bdry(labels),) * n_annotators, (labels,) * n_annotators)
    found = find_symptoms(pred, gt, bb.Protocol(), [registry.get("region")])
    assert [code for code, *_ in found] == ["volume"] * (n_maps == n_annotators == 12)


def test_inverted_maps_are_those_of_the_metric():
    """A second metric reads masks that the first one reads as labels."""
    light, dark = Evidence(maps=1), Evidence(Values.DARK, maps=1)
    masks = (ReadOptions(Kind.MASK, truth=side, metric="saliency") for side in (False, True))
    others = {"saliency": Sides(dark, light)}
    records = [ImageRecord(name, (1, 1), pred=light, gt=light, others=others) for name in "ab"]
    (warning,) = Readings(*masks).check_values(records)
    assert str(warning).startswith("2 of 2 maps are darker")
