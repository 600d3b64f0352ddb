"""Counts of an image: what the single measures give, sums of them, and instances."""

import numpy as np
import pytest
from attrs import evolve

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import contour as bc
from bsdsbench.metrics.contour.contour_metric import contour_counts
from bsdsbench.metrics.contour.instances import pair_of
from bsdsbench.metrics.contour.label_options import GROUPS, ContourOptions
from tests.helpers.masks import label_pairs

EVERY = ContourOptions(groups=GROUPS, spacing=(0.5, 2.0), trimap_widths=(2,))


def single(pred, gt, **options):
    """Every measure by its own function."""
    at = {"spacing": (0.5, 2.0), **options}
    diagonal = np.hypot(*gt.shape)
    values = {
        "iou": bc.mask_iou(pred, gt, **{"empty": "skip", **options}),
        "biou@0.02": bc.boundary_iou(pred, gt, **options),
        "biou-min@0.02": bc.boundary_iou(pred, gt, with_mask=True, **options),
        "bf": bc.bf_score(pred, gt, 0.0075 * diagonal, **options),
        "hd": bc.hausdorff(pred, gt, **at),
        "fom": bc.pratt_fom(pred, gt, **options),
        "trimap@2": bc.trimap_iou(pred, gt, 2, **options),
        "cldice": bc.cl_dice(pred, gt, **options),
    }
    for bound in (0.008, 3, 5, 9, 12):
        values[f"f@{bound:g}"] = bc.davis_f(pred, gt, bound, **{"empty": "skip", **options})
    for definition in ("pooled", "directed", "area"):
        name = f"hd95-{definition}"
        values[name] = bc.hausdorff_percent(pred, gt, definition=definition, **at)
        if definition != "area":
            values[f"assd-{definition}"] = bc.assd(pred, gt, definition=definition, **at)
    for form in ("area", "counts", "mean"):
        for tolerance in (1, 2):
            values[f"nsd-{form}@{tolerance}"] = bc.nsd(pred, gt, tolerance, form=form, **at)
    return values


def means(counts):
    with np.errstate(invalid="ignore"):
        return counts.value_sum / np.where(counts.value_count, counts.value_count, np.nan)


def test_counts_hold_what_the_single_measures_give():
    for name, pred, gt, classes in label_pairs():
        params = ContourOptions(
            **{f: getattr(EVERY, f) for f in ("groups", "spacing", "trimap_widths")},
            classes=tuple(map(str, range(classes))),
        )
        found = means(contour_counts(pred, gt, params))
        expected = single(pred, gt, classes=classes)
        assert sorted(expected) == sorted(params.measures())
        for m, key in enumerate(params.measures()):
            assert found[:, m] == pytest.approx(expected[key], rel=1e-12, nan_ok=True), (name, key)


def test_counts_of_masks():
    pred, gt = np.zeros((9, 14), np.uint8), np.zeros((9, 14), np.uint8)
    pred[2:6, 2:8], gt[2:6, 3:11] = 255, 255
    counts = contour_counts(pred, gt, EVERY)
    assert counts.areas.tolist() == [[20, 24, 32]]
    assert counts.pairs.tolist() == [[1, 0, 0]]
    assert counts.shells.tolist() == [[[10, 16, 20]]]
    expected = single(pred, gt)
    found = dict(zip(EVERY.measures(), means(counts)[0], strict=True))
    assert found == pytest.approx(expected)
    for theta in (1, 2):  # from 1 on a distance in pixels
        found = contour_counts(pred, gt, ContourOptions(groups=("bf",), bf_theta=theta))
        assert means(found)[0, -1] == bc.bf_score(pred, gt, theta)


def objects():
    """Three objects of the ground truth, two of them found, one prediction without partner."""
    gt, pred = np.zeros((20, 30), int), np.zeros((20, 30), int)
    gt[1:7, 1:7], gt[1:7, 12:20], gt[10:18, 3:9] = 4, 2, 9
    pred[1:7, 2:7], pred[2:7, 12:20], pred[10:18, 20:28] = 7, 1, 3
    return pred, gt


@pytest.mark.slow
def test_instances_are_paired_by_their_overlap():
    pred, gt = objects()
    counts = contour_counts(pred, gt, ContourOptions(unit="instance"))
    assert counts.pairs.tolist() == [[2, 1, 1]]
    assert counts.value_sum[0, 0] == pytest.approx(30 / 36 + 40 / 48)
    assert counts.value_count[0, 0] == 4  # two pairs, and overlap 0 for each that has none
    hd = [*ContourOptions().measures()].index("hd")
    assert (counts.value_sum[0, hd], counts.value_count[0, hd]) == (2.0, 2)


def test_instances_are_paired_by_their_number():
    pred, gt = objects()
    found = np.where(pred == 7, 4, np.where(pred == 1, 2, np.where(pred == 3, 9, 0)))
    counts = contour_counts(found, gt, ContourOptions(unit="id", empty="perfect"))
    assert counts.pairs.tolist() == [[3, 0, 0]]
    assert counts.areas.tolist() == [[70, 134, 132]]


def test_instances_of_classes_pair_within_their_class():
    pred, gt = objects()
    gt = np.where(gt == 4, 1004, np.where(gt == 2, 2002, np.where(gt == 9, 2009, 0)))
    pred = np.where(pred == 7, 2007, np.where(pred == 1, 2001, np.where(pred == 3, 1003, 0)))
    params = ContourOptions(classes=("car", "person"), first=1, unit="instance", divisor=1000)
    assert contour_counts(pred, gt, params).pairs.tolist() == [[0, 1, 1], [1, 1, 1]]
    gt[12, 4] = 255_000
    pair, _ = pair_of(pred, gt, params)
    assert pair.pred[12, 4] == pair.gt[12, 4] == -1


@pytest.mark.parametrize(
    ("params", "labels", "message"),
    [
        ({"classes": ("a", "b"), "first": 1}, [[3, 1]], "label 3, expected 1 .. 2, or 0, or 255"),
        ({"classes": ("a", "b")}, [[2, 1]], r"label 2, expected 0 .. 1, or 255 \(ignored\)"),
        (
            {"classes": ("a",), "first": 1, "unit": "instance", "divisor": 10},
            [[11, 25]],
            "value 25 is class 2, expected 1 .. 1",
        ),
        ({}, [[1, 4]], "prediction: values other than 0 and 1"),
        ({"empty": "error"}, [[1, 0]], "label 0: the ground truth empty"),
    ],
)
def test_labels_of_no_class_are_named(params, labels, message):
    given_, wanted = np.array(labels), np.zeros((1, 2), int)
    with pytest.raises(DataError, match=message):
        contour_counts(given_, wanted, ContourOptions(**params))


@pytest.mark.parametrize("spacing", [(2.0, 1.0), (1.0, 2.0)])
def test_bf_and_the_figure_of_merit_are_in_pixels_with_any_spacing(spacing):
    pred, gt = np.zeros((2, 12, 14), bool)
    pred[2:6, 2:8], gt[4:9, 3:11] = True, True
    at = {"groups": ("bf", "fom"), "bf_theta": 1}
    with_spacing = means(contour_counts(pred, gt, ContourOptions(spacing=spacing, **at)))[0]
    assert with_spacing[1:] == pytest.approx([bc.bf_score(pred, gt, 1), bc.pratt_fom(pred, gt)])


@pytest.mark.parametrize("empty", ["skip", "error"])
def test_one_pixel_is_a_mask(empty):
    """Alike in both: every overlap is 1, every distance 0, and none is undefined."""
    mask = np.zeros((4, 5), bool)
    mask[1, 2] = True
    counts = contour_counts(mask, mask, ContourOptions(groups=GROUPS, empty=empty))
    names = ContourOptions(groups=GROUPS).measures()
    assert counts.value_sum[0].tolist() == [not n.startswith(("hd", "assd")) for n in names]
    assert counts.value_count.tolist() == [[1] * len(names)]
    assert counts.pairs.tolist() == [[1, 0, 0]]


def test_one_pixel_is_nothing_on_the_other_side():
    none, mask = np.zeros((2, 4, 5), bool)
    mask[1, 2] = True
    at = ContourOptions(groups=GROUPS)
    for pred, gt, pairs in ((mask, none, [0, 1, 0]), (none, mask, [0, 0, 1])):
        counts = contour_counts(pred, gt, at)
        assert (counts.pairs.tolist(), counts.value_sum.any()) == ([pairs], False)
        defined = dict(zip(at.measures(), counts.value_count[0].tolist(), strict=True))
        # no distance; without the ground truth no band
        assert defined == {
            n: int(not n.startswith(("hd", "assd")) and (gt.any() or "trimap" not in n))
            for n in defined
        }


def test_only_what_was_asked_for_is_counted():
    labels, classes = [[0, 1, 1]], ("a", "b", "c")
    counts = contour_counts(labels, labels, ContourOptions(classes=classes, groups=()))
    assert {name: array.tolist() for name, array in counts.items()} == {
        "value_sum": [[1], [1], [0]],
        "value_count": [[1], [1], [0]],
        "areas": [[1, 1, 1], [2, 2, 2], [0, 0, 0]],
        "shells": [[]] * 3,
        "near": [[]] * 3,
        "outline": [[0, 0]] * 3,
        "pairs": [[1, 0, 0], [1, 0, 0], [0, 0, 0]],
    }
    assert (counts.shells.shape, counts.near.shape) == ((3, 0, 3), (3, 0, 2))
    for group in GROUPS:
        at = ContourOptions(classes=classes, groups=(group,))
        alone, every = (
            contour_counts(labels, labels, at) for at in (at, evolve(at, groups=GROUPS))
        )
        for m, name in enumerate(at.measures()):
            k = [*ContourOptions(groups=GROUPS).measures()].index(name)
            assert alone.value_count[:, m].tolist() == every.value_count[:, k].tolist()
            assert alone.value_sum[:, m].tolist() == every.value_sum[:, k].tolist()


@pytest.mark.parametrize(("theta", "pixels"), [(0.1, 5), (0.04, 2), (1, 1), (3, 3)])
def test_the_radius_of_bf_is_a_share_of_the_diagonal_below_1(theta, pixels):
    """30 x 40 pixels have a diagonal of 50; the right sides are 4 apart."""
    pred, gt = np.zeros((2, 30, 40), bool)
    pred[5:9, 2:12], gt[5:9, 2:16] = True, True
    counts = contour_counts(pred, gt, ContourOptions(groups=("bf",), bf_theta=theta))
    assert counts.value_sum[0, 1] == bc.bf_score(pred, gt, pixels)
    assert (counts.value_sum[0, 1] == 1) == (pixels == 5)
