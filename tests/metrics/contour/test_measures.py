"""Every measure against its plain definition, mask by mask and all labels in one go."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from skimage.morphology import skeletonize

from bsdsbench.metrics import contour
from bsdsbench.metrics.contour import measure
from bsdsbench.metrics.contour.measures import _length_quantile, davis_radius
from tests.helpers.masks import label_pairs, mask_pairs
from tests.helpers.runs import refused
from tests.reference import contours as ref

MASKS = [pytest.param(pred, gt, id=name) for name, pred, gt in mask_pairs()]
SPACINGS = [(1.0, 1.0), (0.7, 2.5)]
SIZES = {"f": 3, "bf": 2, "biou": 2, "trimap": 3, **dict.fromkeys(("area", "counts", "mean"), 1.5)}
DISTANCES = ("hd", "hd%-pooled", "hd%-directed", "assd-pooled", "assd-directed")
OVERLAPS = (
    *("nsd-area", "nsd-counts", "nsd-mean", "bf", "fom", "biou", "biou-min", "iou", "dice"),
    *("trimap", "cldice", "f"),
)


def plain(pred, gt, spacing=(1.0, 1.0)):
    """Measure -> value, of two masks that are not empty."""
    a, b = ref.both_ways(ref.rim, pred, gt, spacing)
    pooled = np.concatenate([a, b])
    skeleton = [skeletonize(np.ascontiguousarray(mask)) for mask in (pred, gt)]
    unit = ref.both_ways(ref.rim, pred, gt)
    values = {
        "hd": max(a.max(), b.max()),
        "hd%-pooled": np.percentile(pooled, 95),
        "hd%-directed": max(np.percentile(a, 95), np.percentile(b, 95)),
        "assd-pooled": pooled.mean(),
        "assd-directed": (a.mean() + b.mean()) / 2,
        "nsd-counts": (pooled <= 1.5).mean(),
        "nsd-mean": ((a <= 1.5).mean() + (b <= 1.5).mean()) / 2,
        "nsd-area": ref.area_nsd(pred, gt, 1.5, spacing),
        "bf": ref.f_of(*unit, 2.0),
        "fom": (1 / (1 + unit[0] ** 2 / 9)).sum() / max(len(a), len(b)),
        "biou": ref.iou(ref.shell(pred, 2), ref.shell(gt, 2)),
        "iou": ref.iou(pred, gt),
        "dice": 2 * (pred & gt).sum() / (pred.sum() + gt.sum()),
        "trimap": _trimap(pred, gt, 3),
    }
    if skeleton[0].any() and skeleton[1].any():
        p, r = gt[skeleton[0]].mean(), pred[skeleton[1]].mean()
        values["cldice"] = 2 * p * r / (p + r) if p + r else 0.0
    d = ref.both_ways(ref.side, pred, gt)
    if d[0].size and d[1].size:
        values["f"] = ref.f_of(*d, 3)
    return values


def _trimap(pred, gt, width):
    near = ref.band(gt.astype(int), width)
    if not ((pred | gt) & near).any() or not (gt & near).any() or not (pred & near).any():
        return math.nan
    return ref.iou(pred & near, gt & near)


def ours(pred, gt, spacing=(1.0, 1.0), **options):
    return {
        name: measure(
            *(name, pred, gt, SIZES.get(name.partition("nsd-")[2] or name)),
            spacing=spacing,
            **options,
        )
        for name in (*DISTANCES, *OVERLAPS)
    }


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize(("pred", "gt"), MASKS)
def test_masks_agree_with_the_plain_definitions(pred, gt, spacing):
    found = ours(pred, gt, spacing)
    for name, value in plain(pred, gt, spacing).items():
        if name == "trimap" and math.isnan(value):
            continue
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_trimap_of_a_label_map_is_the_band_around_all_its_labels():
    for _, pred, gt, classes in label_pairs():
        for width in (0.5, 1, 2):
            found = measure("trimap", pred, gt, width, classes=classes)
            near = ref.band(gt, width)
            for k in range(classes):
                a, b = (pred == k) & near, (gt == k) & near
                if a.any() and b.any():
                    assert found[k] == pytest.approx(ref.iou(a, b), rel=1e-9, abs=1e-12)


def test_all_labels_of_a_map_are_what_their_masks_are():
    """But of the trimap."""
    for _, pred, gt, classes in label_pairs():
        of_masks = [ours(pred == k, gt == k) for k in range(classes)]
        found = ours(pred, gt, classes=classes)
        del found["trimap"]
        for key, values in found.items():
            singles = [single[key] for single in of_masks]
            np.testing.assert_allclose(values, singles, rtol=1e-9, atol=1e-12, err_msg=key)


def test_a_box_counted_by_hand():
    pred, gt = np.zeros((6, 8), bool), np.zeros((6, 8), bool)
    pred[1:4, 1:4], gt[1:4, 1:6] = True, True  # 8 of 9 and 12 of 15 pixels are rims
    assert measure("biou-min", pred, gt, 1) == measure("biou", pred, gt, 1) == 7 / 13
    assert measure("biou-min", pred, gt, 3) == measure("iou", pred, gt) == 9 / 15
    for masks in ((pred, gt), (gt, pred)):  # the larger direction
        assert [measure("hd%-area", *masks, p) for p in (0, 100)] == [0.0, 2.0]
        assert [measure("hd%-pooled", *masks, p) for p in (0, 100)] == [0.0, 2.0]


@pytest.mark.parametrize(
    ("empty", "both", "one"),
    [
        ("skip", (math.nan, math.nan), (0, math.nan)),
        ("inf", (math.nan, math.nan), (0, math.inf)),
        ("perfect", (1, 0), (0, math.nan)),
    ],
)
def test_empty_masks_give_what_the_convention_says(empty, both, one):
    none, some = np.zeros((5, 12), bool), np.zeros((5, 12), bool)
    some[2, 3:6] = True
    for pred, gt, (overlap, distance) in [(none, none, both), (some, none, one), (none, some, one)]:
        found = ours(pred, gt, empty=empty)
        if not gt.any():
            del found["trimap"]  # no outline, no band: as if both were empty
        for name, value in found.items():
            expected = distance if name in DISTANCES else overlap
            assert value == pytest.approx(expected, nan_ok=True), name


def test_widths_and_radii_round_as_their_programs_do():
    # Shares of the diagonal: 2.5 pixels to even, less than a pixel, and 11.4 pixels
    for shape, share, width in [((100, 75), 0.02, 2), ((4, 3), 0.02, 1), ((1024, 2048), 0.005, 11)]:
        gt, pred = np.ones((2, *shape), bool)
        pred[0, 0] = False
        found = measure("biou", pred, gt, share)
        assert found == measure("biou", pred, gt, width) != measure("biou", pred, gt, width + 1)
    assert davis_radius((480, 854), 0.008) == 8.0
    assert davis_radius((1024, 2048), 0.00088) == 3.0
    for shift in range(6):  # the tolerances of an image of 180 x 240: 0.0075 x 300 and 0.008 x 300
        gt, pred = np.zeros((2, 180, 240), bool)
        gt[40:80, 50:90], pred[40 + shift : 80 + shift, 50:90] = True, True
        assert measure("bf", pred, gt) == measure("bf", pred, gt, 2.25)
        assert measure("f", pred, gt) == measure("f", pred, gt, 3)
        assert [measure(name, pred, gt) == 1 for name in ("bf", "f")] == [shift < 3, shift < 4]


@pytest.mark.parametrize(
    ("percent", "two", "even"),
    [(0, 0, 0), (74.9, 0, 149), (75.2, 9, 150), (98.9, 9, 197), (100, 9, 199)],
)
def test_a_percentile_by_area_is_where_that_share_of_the_length_is_reached(percent, two, even):
    """Two sites with 3 and 1 of the length, and 200 of equal lengths."""
    sites = (np.array([9.0, 0]), np.array([1.0, 3])), (np.arange(200.0)[::-1], np.full(200, 0.1))
    assert [_length_quantile(*each, percent / 100) for each in sites] == [two, even]


def test_names_and_sizes_out_of_range_are_refused():
    mask = np.eye(9, dtype=bool)
    refused("measure 'hd95'", measure, "hd95", mask, mask)
    refused("empty 'none'", measure, "hd", mask, mask, empty="none")
    refused("100.5", measure, "hd%-pooled", mask, mask, 100.5)
    for name in (*DISTANCES, *OVERLAPS):
        for bad in (-1.0, np.nan):
            refused("size of", measure, name, mask, mask, bad)
    for name in ("biou", "trimap"):
        for bad in (0, np.inf):
            refused("width", measure, name, mask, mask, bad)
    for spacing in ((1, 0), (np.inf, 1), (1,), (1, 1, 1), (-1, 1), (1, np.nan)):
        refused(r"^spacing \(", measure, "hd", mask, mask, spacing=spacing)
    refused("spacing 2: expected two steps", measure, "hd", mask, mask, spacing=2)
    refused("0.95, expected a percentile: 95", contour.hausdorff_percent, mask, mask, 0.95)
    for ignore in ("255", 0.5, np.nan):
        refused("ignore: .*, expected whole numbers", measure, "iou", mask, mask, ignore=ignore)
    for classes in ("2", ["a", "b"]):
        refused("classes: .*, expected a whole number", measure, "iou", mask, mask, classes=classes)
    void = np.where(mask, mask, 255)
    for sound in (
        255,
        255.0,
        (255.0,),
        np.uint8(255),
        np.array([255]),
        [np.float32(255)],
        range(2, 256),
    ):
        assert measure("iou", mask, void, ignore=sound) == 1
    void = np.where(mask, 1.0, -1)  # floats without fraction
    assert measure("iou", mask, void, classes=2, ignore=-1)[1] == 1
    named = NamedTuple("Step", [("row", float), ("column", float)])(0.5, 2)
    assert contour.ContourOptions(spacing=named).spacing == (0.5, 2)
    for wrong in ({"davis_bounds": (0.75,)}, {"boundary_sizes": (0.02, 0.5)}, {"bf_theta": 0.75}):
        refused("up to 0.1", contour.ContourOptions, **wrong)


def test_the_usual_measures_have_functions():
    pred, gt = np.eye(6, 8) > 0, np.eye(6, 8, 1) > 0
    assert contour.hausdorff(pred, gt) == measure("hd", pred, gt) == 1
    assert contour.nsd(pred, gt, 0.5) == measure("nsd-area", pred, gt, 0.5) < 1
    nothing, pred = np.zeros((6, 8), bool), np.tri(40, 50) > 0
    usual = {**dict.fromkeys(("nsd-area", "nsd-counts", "nsd-mean"), 1), "trimap": 3, "bf": 0.0075}
    for name, size in {**usual, "f": 0.008, "biou": 0.02, "hd%-area": 95, "fom": 1 / 9}.items():
        shifted = np.roll(pred, 2, 1)
        assert measure(name, pred, shifted) == measure(name, pred, shifted, size)
        assert measure(name, pred, shifted) != measure(name, pred, shifted, 0.5 if size < 1 else 2)
    assert contour.davis_f(nothing, nothing) == contour.mask_iou(nothing, nothing) == 1
