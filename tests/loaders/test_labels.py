"""seg2bdry on hand-drawn maps with unequal rows and columns, and against its definition."""

import numpy as np
import pytest
from PIL import Image

import bsdsbench as bb
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.loaders.labels import has_specks, seg2bdry
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions, binarise
from bsdsbench.loaders.sample import sample_ground_truth
from bsdsbench.metrics import registry
from bsdsbench.runs.fit import CheckedImage
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
    for value in (0.5, np.nan, np.inf):
        with pytest.raises(DataError, match="label map: values that are not whole numbers"):
            seg2bdry(np.array([[1, value]]))


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
     ((0, 255), False), ((1, 2, 3, 254), False), ((100, 180, 240, 255), False), ((-1, 0, 1), True)],
)  # fmt: skip
def test_a_region_of_255_or_below_0_may_be_void(metric, labels, is_said):
    """As in label maps of VOC, whose outlines are void."""
    truth = np.repeat(np.int16(labels), 60).reshape(-1, 12)
    item = bb.GroundTruth("a", (bb.seg2bdry(truth),), (truth,))
    protocol = bb.Protocol.preset("bsds500").replace(gt_kind="labels")
    checked = CheckedImage(bb.Prediction("a", segs=(truth,)), item, protocol)
    found = find_symptoms(checked, [registry.get(metric)])
    assert [code for code, problem, _ in found if "is a region of" in problem] == ["void"] * is_said


@pytest.mark.parametrize("quality", [60, 95])
def test_regions_that_were_saved_as_jpeg_are_said(quality, tmp_path):
    regions = next(iter(bb.load_ground_truth(sample_ground_truth() / "town1.mat").segmentations))
    Image.fromarray(regions.astype(np.uint8)).save(tmp_path / "a.jpg", quality=quality)
    for labels, is_said in ((regions, False), (np.asarray(Image.open(tmp_path / "a.jpg")), True)):
        item = bb.GroundTruth("a", (bb.seg2bdry(labels),), (labels,))
        pred = bb.Prediction("a", segs=(regions,))
        found = find_symptoms(CheckedImage(pred, item, bb.Protocol()), [registry.get("region")])
        assert [code for code, *_ in found] == ["resized"] * is_said


def test_thin_lines_between_regions_are_no_specks():
    """As a watershed draws them, one pixel wide and also diagonal."""
    rows, cols = np.mgrid[:120, :120]
    labels = 1 + rows // 40 * 3 + cols // 40
    labels[((rows + cols) % 30 == 0) | ((rows - cols) % 40 == 0)] = 0
    assert not has_specks(labels)
    labels[3::6, 2::6] = 99
    assert has_specks(labels)


@pytest.mark.parametrize(("n_maps", "n_annotators"), [(12, 12), (12, 5), (5, 5)])
def test_slices_of_a_volume_are_no_annotators(n_maps, n_annotators):
    labels = np.arange(12 * 9).reshape(12, 9) // 30
    pred = bb.Prediction("a", segs=(labels,) * n_maps)
    gt = bb.GroundTruth("a", (bb.seg2bdry(labels),) * n_annotators, (labels,) * n_annotators)
    found = find_symptoms(CheckedImage(pred, gt, bb.Protocol()), [registry.get("region")])
    assert [code for code, *_ in found] == ["volume"] * (n_maps == n_annotators == 12)


def test_inverted_maps_are_those_of_the_metric():
    """A second metric reads masks that the first one reads as labels."""
    light, dark = Evidence(maps=1), Evidence(Values.DARK, maps=1)
    masks = (ReadOptions(Kind.MASK, truth=side, metric="saliency") for side in (False, True))
    others = {"saliency": Sides(dark, light)}
    records = [ImageRecord(name, (1, 1), pred=light, gt=light, others=others) for name in "ab"]
    (warning,) = Readings(*masks).check_values(records)
    assert str(warning).startswith("2 of 2 maps are darker")


@pytest.mark.parametrize(
    ("low", "high", "advice"),
    [
        (-1e-5, 1, ["clip to [0, 1]"]),
        (0, 1.02, ["clip to [0, 1]"]),
        (-12, 267, ["clip to [0, 255]"]),
        (-0.1, 1.1, ["clip to [0, 1]", "apply the sigmoid"]),
        (-3, 3, ["apply the sigmoid"]),
    ],
)
def test_values_that_a_resize_overshot_are_to_be_clipped(low, high, advice):
    values = np.linspace(low, high, 80).reshape(8, 10)
    mask_of = ReadOptions(Kind.MASK, truth=False).mask
    for read in (mask_of, lambda soft: bb.Prediction("a", soft=soft)):
        with pytest.raises(DataError) as error:
            read(values)
        every = ("clip to [0, 1]", "clip to [0, 255]", "apply the sigmoid", "divide by 255")
        assert [words for words in every if words in str(error.value)] == advice
        read(np.linspace(-1e-7, 1 + 1e-7, 80).reshape(8, 10))  # rounded


@pytest.mark.parametrize("low", [1, 2])
@pytest.mark.parametrize("high", [3, 255])
def test_a_threshold_of_almost_0_needs_a_ground_of_0(low, high):
    """Masks of cracks whose ground is 1 would be cracks everywhere."""
    levels = np.array([[low, high]], np.uint8)
    with pytest.raises(DataError, match=rf"mask: uint8 with values from {low} to {high}, expected"):
        binarise(levels, 0.001, "mask", inclusive=True)
    assert binarise(levels - low, 0.001, "mask", inclusive=True).any()
    assert binarise(levels[:, :1], 0.001, "mask", inclusive=True).all()
