"""Counts of an image: what the single measures give, sums of them, and instances."""

import numpy as np
import pytest

from bsdsbench.metrics.contour.contour_metric import ContourOptions, _contour_counts
from bsdsbench.metrics.contour.pairs import pair_masks


def objects():
    """Three objects of the ground truth, two of them found, one prediction without partner."""
    gt, pred = np.zeros((20, 30), int), np.zeros((20, 30), int)
    gt[1:7, 1:7], gt[1:7, 12:20], gt[10:18, 3:9] = 4, 2, 9
    pred[1:7, 2:7], pred[2:7, 12:20], pred[10:18, 20:28] = 7, 1, 3
    return pred, gt


@pytest.mark.slow
def test_instances_are_paired_by_their_overlap():
    pred, gt = objects()
    counts = _contour_counts(pred, gt, ContourOptions(unit="instance"))
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
    assert _contour_counts(pred, gt, params).pairs.tolist() == [[0, 1, 1], [1, 1, 1]]
    gt[12, 4] = 255_000
    pair = pair_masks(pred, gt, params)
    assert pair.pred[12, 4] == pair.gt[12, 4] == -1


def test_only_what_was_asked_for_is_counted():
    counts = _contour_counts([[0, 1, 1]], [[0, 1, 1]], ContourOptions(classes=(*"abc",), groups=()))
    assert counts.value_sum.tolist() == counts.value_count.tolist() == [[1, 1], [1, 1], [0, 0]]
    assert counts.areas.tolist() == [[1, 1, 1], [2, 2, 2], [0, 0, 0]]
    assert counts.pairs.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert (counts.shells.shape, counts.near.shape) == ((3, 0, 3), (3, 0, 2))
    assert not counts.outline.any()
