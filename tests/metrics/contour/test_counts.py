"""Counts of an image: what the single measures give, sums of them, and instances."""

import numpy as np
import pytest
from attrs import evolve

from bsdsbench.metrics.contour import measure
from bsdsbench.metrics.contour.contour_metric import GROUPS, ContourOptions, contour_counts
from bsdsbench.metrics.contour.pairs import pair_of
from tests.helpers.masks import label_pairs

EVERY = ContourOptions(groups=GROUPS, spacing=(0.5, 2.0), trimap_widths=(2,))


def means(counts):
    with np.errstate(invalid="ignore"):
        return counts.value_sum / np.where(counts.value_count, counts.value_count, np.nan)


@pytest.mark.parametrize(
    "changes", [{}, {"empty": "perfect"}, {"empty": "diagonal", "bf_theta": 1.0, "percent": 90.0}]
)
def test_counts_hold_what_the_single_measures_give(changes):
    for name, pred, gt, classes in label_pairs():
        params = evolve(EVERY, classes=tuple(map(str, range(classes))), **changes)
        found = means(contour_counts(pred, gt, params))
        at = {"classes": classes, "spacing": params.spacing, "empty": params.empty}
        for m, (key, size) in enumerate(params.measures().values()):
            expected = measure(key, pred, gt, size, **at)
            np.testing.assert_allclose(found[:, m], expected, rtol=1e-12, err_msg=f"{name} {m}")


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
    assert counts.areas.tolist() == [[30 + 40, 30 + 40 + 64, 36 + 48 + 48]]
    assert counts.pairs.tolist() == [[2, 1, 1]]
    assert counts.value_sum[0, 0] == pytest.approx(30 / 36 + 40 / 48)
    assert counts.value_count[0, 0] == 4  # two pairs, and overlap 0 for each that has none
    hd = [*ContourOptions().measures()].index("hd")
    assert (counts.value_sum[0, hd], counts.value_count[0, hd]) == (2.0, 2)


def test_instances_of_classes_pair_within_their_class():
    pred, gt = objects()
    gt = np.where(gt == 4, 1004, np.where(gt == 2, 2002, np.where(gt == 9, 2009, 0)))
    pred = np.where(pred == 7, 2007, np.where(pred == 1, 2001, np.where(pred == 3, 1003, 0)))
    params = ContourOptions(classes=("car", "person"), first=1, unit="instance", divisor=1000)
    assert contour_counts(pred, gt, params).pairs.tolist() == [[0, 1, 1], [1, 1, 1]]
    gt[12, 4] = 255_000
    pair, _ = pair_of(pred, gt, params)
    assert pair.pred[12, 4] == pair.gt[12, 4] == -1


def test_only_what_was_asked_for_is_counted():
    labels, classes = [[0, 1, 1]], ("a", "b", "c")
    counts = contour_counts(labels, labels, ContourOptions(classes=classes, groups=()))
    assert {name: array.tolist() for name, array in counts.items()} == {
        "value_sum": [[1, 1], [1, 1], [0, 0]],
        "value_count": [[1, 1], [1, 1], [0, 0]],
        "areas": [[1, 1, 1], [2, 2, 2], [0, 0, 0]],
        "shells": [[]] * 3,
        "near": [[]] * 3,
        "outline": [[0, 0]] * 3,
        "pairs": [[1, 0, 0], [1, 0, 0], [0, 0, 0]],
    }
    assert (counts.shells.shape, counts.near.shape) == ((3, 0, 3), (3, 0, 2))


def test_the_radius_of_bf_is_a_share_of_the_diagonal_below_1():
    """30 x 40 pixels have a diagonal of 50; the right sides are 4 apart."""
    pred, gt = np.zeros((2, 30, 40), bool)
    pred[5:9, 2:12], gt[5:9, 2:16] = True, True
    for theta, pixels in ((0.1, 5), (0.04, 2), (1, 1), (3, 3)):
        counts = contour_counts(pred, gt, ContourOptions(groups=("bf",), bf_theta=theta))
        assert counts.value_sum[0, 2] == measure("bf", pred, gt, pixels)
        assert (counts.value_sum[0, 2] == 1) == (pixels == 5)
