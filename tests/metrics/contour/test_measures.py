"""Every measure against its plain definition, mask by mask and all labels in one go."""

import math

import numpy as np
import pytest
from skimage.morphology import skeletonize

from bsdsbench.files.errors import ProtocolError
from bsdsbench.metrics import contour as bc
from bsdsbench.metrics.contour.measures import (
    Sites,
    _length_quantile,
    davis_radius,
    shell_width,
)
from tests.helpers.masks import label_pairs, mask_pairs
from tests.helpers.runs import refused
from tests.reference import contours as ref

MASKS = [pytest.param(pred, gt, id=name) for name, pred, gt in mask_pairs()]
SPACINGS = [(1.0, 1.0), (0.7, 2.5)]


def plain(pred, gt, spacing=(1.0, 1.0)):
    """Measure -> value, of two masks that are not empty."""
    a, b = ref.both_ways(ref.rim, pred, gt, spacing)
    pooled = np.concatenate([a, b])
    skeleton = [skeletonize(np.ascontiguousarray(mask)) for mask in (pred, gt)]
    unit = ref.both_ways(ref.rim, pred, gt)
    values = {
        "hausdorff": max(a.max(), b.max()),
        "hd95 pooled": np.percentile(pooled, 95),
        "hd95 directed": max(np.percentile(a, 95), np.percentile(b, 95)),
        "assd pooled": pooled.mean(),
        "assd directed": (a.mean() + b.mean()) / 2,
        "nsd counts": (pooled <= 1.5).mean(),
        "nsd mean": ((a <= 1.5).mean() + (b <= 1.5).mean()) / 2,
        "nsd area": ref.area_nsd(pred, gt, 1.5, spacing),
        "bf": ref.f_of(*unit, 2.0),
        "bf strict": ref.f_of(*(np.where(d < 2, 0, 9) for d in unit), 2.0),
        "fom": (1 / (1 + unit[0] ** 2 / 9)).sum() / max(len(a), len(b)),
        "boundary iou": ref.iou(ref.shell(pred, 2), ref.shell(gt, 2)),
        "mask iou": ref.iou(pred, gt),
        "trimap": _trimap(pred, gt, 3),
    }
    if skeleton[0].any() and skeleton[1].any():
        p, r = gt[skeleton[0]].mean(), pred[skeleton[1]].mean()
        values["cldice"] = 2 * p * r / (p + r) if p + r else 0.0
    d = ref.both_ways(ref.side, pred, gt)
    if d[0].size and d[1].size:
        values |= {f"f{radius}": ref.f_of(*d, radius) for radius in (1, 3, 9)}
    return values


def _trimap(pred, gt, width):
    near = ref.band(gt.astype(int), width)
    if not ((pred | gt) & near).any() or not (gt & near).any() or not (pred & near).any():
        return math.nan
    return ref.iou(pred & near, gt & near)


def ours(pred, gt, spacing=(1.0, 1.0), **options):
    at = {"spacing": spacing, **options}
    return {
        "hausdorff": bc.hausdorff(pred, gt, **at),
        "hd95 pooled": bc.hausdorff_percent(pred, gt, **at),
        "hd95 directed": bc.hausdorff_percent(pred, gt, definition="directed", **at),
        "assd pooled": bc.assd(pred, gt, **at),
        "assd directed": bc.assd(pred, gt, definition="directed", **at),
        "nsd counts": bc.nsd(pred, gt, 1.5, form="counts", **at),
        "nsd mean": bc.nsd(pred, gt, 1.5, form="mean", **at),
        "nsd area": bc.nsd(pred, gt, 1.5, form="area", **at),
        "bf": bc.bf_score(pred, gt, 2.0, **options),
        "bf strict": bc.bf_score(pred, gt, 2.0, strict=True, **options),
        "fom": bc.pratt_fom(pred, gt, **options),
        "boundary iou": bc.boundary_iou(pred, gt, 2, **options),
        "mask iou": bc.mask_iou(pred, gt, **options),
        "trimap": bc.trimap_iou(pred, gt, 3, **options),
        "cldice": bc.cl_dice(pred, gt, **options),
        **{f"f{r}": bc.davis_f(pred, gt, r, **options) for r in (1, 3, 9)},
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
            found = bc.trimap_iou(pred, gt, width, classes=classes)
            near = ref.band(gt, width)
            for k in range(classes):
                a, b = (pred == k) & near, (gt == k) & near
                if a.any() and b.any():
                    assert found[k] == pytest.approx(ref.iou(a, b), rel=1e-9, abs=1e-12)


def same_as_masks(found, of_masks):
    """The values of all labels, but of the trimap, as those of their masks one by one."""
    del found["trimap"]
    for key, values in found.items():
        singles = [single[key] for single in of_masks]
        np.testing.assert_allclose(values, singles, rtol=1e-9, atol=1e-12, err_msg=key)


def test_all_labels_of_a_map_are_what_their_masks_are():
    for _, pred, gt, classes in label_pairs():
        of_masks = [ours(pred == k, gt == k) for k in range(classes)]
        same_as_masks(ours(pred, gt, classes=classes), of_masks)


def test_a_box_counted_by_hand():
    pred, gt = np.zeros((6, 8), bool), np.zeros((6, 8), bool)
    pred[1:4, 1:4], gt[1:4, 1:6] = True, True  # 8 of 9 and 12 of 15 pixels are rims
    assert bc.boundary_iou(pred, gt, 1, with_mask=True) == bc.boundary_iou(pred, gt, 1) == 7 / 13
    assert bc.boundary_iou(pred, gt, 3, with_mask=True) == bc.mask_iou(pred, gt) == 9 / 15
    assert [bc.hausdorff_percent(pred, gt, p) for p in (0, 100)] == [0.0, 2.0]
    refused("100.5", bc.hausdorff_percent, pred, gt, 100.5)
    for masks in ((pred, gt), (gt, pred)):  # the larger direction
        assert bc.hausdorff_percent(*masks, percent=100, definition="area") == 2.0


@pytest.mark.parametrize(
    ("empty", "both", "one"),
    [
        ("skip", (math.nan, math.nan), (0, math.nan)),
        ("inf", (math.nan, math.nan), (0, math.inf)),
        ("perfect", (1, 0), (0, math.nan)),
        ("diagonal", (1, 0), (0, 13.0)),
        ("zero", (0, math.nan), (0, math.nan)),
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
            expected = distance if name.split()[0] in ("hausdorff", "hd95", "assd") else overlap
            assert value == pytest.approx(expected, nan_ok=True), name


def test_empty_masks_can_be_an_error():
    """The side is named, and of label maps the first label."""
    none, some = np.zeros((5, 12), bool), np.eye(5, 12, dtype=bool)
    refused("label 0: both masks empty", bc.assd, none, none, empty="error")
    for function in (bc.mask_iou, bc.boundary_iou, bc.cl_dice, bc.hausdorff):
        refused("label 0: the prediction empty", function, none, some, empty="error")
        refused("label 0: the ground truth empty", function, some, none, empty="error")
    pred, gt = [[0, 0, 2]], [[0, 1, 2]]
    refused("label 1: the prediction empty", bc.mask_iou, pred, gt, classes=3, empty="error")
    refused("label 3: both masks empty", bc.hausdorff, gt, gt, classes=4, empty="error")
    assert bc.mask_iou(gt, gt, classes=3, empty="error").tolist() == [1, 1, 1]
    refused("empty 'none': expected", bc.hausdorff, none, some, empty="none", error=ProtocolError)


def test_widths_and_radii_round_as_their_programs_do():
    assert shell_width((100, 75), 0.02) == 2  # 2.5 to even
    assert shell_width((4, 3), 0.02) == 1
    assert shell_width((480, 640), bc.COCO) == 16
    assert shell_width((1024, 2048), bc.CITYSCAPES) == 11  # 11.4
    assert davis_radius((480, 854)) == 8.0
    assert davis_radius((1024, 2048), 0.00088) == 3.0
    for shift in range(6):  # the tolerances of an image of 180 x 240: 0.0075 x 300 and 0.008 x 300
        gt, pred = np.zeros((2, 180, 240), bool)
        gt[40:80, 50:90], pred[40 + shift : 80 + shift, 50:90] = True, True
        assert bc.bf_score(pred, gt) == bc.bf_score(pred, gt, 2.25)
        assert bc.davis_f(pred, gt) == bc.davis_f(pred, gt, 3)
        assert (bc.bf_score(pred, gt) == 1, bc.davis_f(pred, gt) == 1) == (shift < 3, shift < 4)
    assert davis_radius((1024, 2048), 0.005) == 12.0


@pytest.mark.parametrize(
    ("percent", "two", "even"),
    [(0, 0, 0), (74.9, 0, 149), (75.2, 9, 150), (98.9, 9, 197), (100, 9, 199)],
)
def test_a_percentile_by_area_is_where_that_share_of_the_length_is_reached(percent, two, even):
    """Three labels: two sites with 3 and 1 of the length, none, and 200 of equal lengths."""
    d, start = np.arange(200.0)[::-1], np.array([0, 2, 2, 202])
    far = np.concatenate([[9, 0], d]), np.concatenate([[1, 3], np.full(200, 0.1)])
    near = np.concatenate([[0, 0], d / 2]), np.concatenate([[1, 3], np.full(200, 0.3)])
    for one, other in ((far, near), (near, far)):
        sites = (Sites(start, *one), Sites(start, *other))
        found = [[_length_quantile(*each.of(k), percent / 100) for k in (0, 2)] for each in sites]
        assert np.max(found, axis=0) == pytest.approx([two, even])
