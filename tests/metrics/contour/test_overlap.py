"""Sides and limits of the overlaps; their values are in test_surface.py."""

from functools import partial

import numpy as np
import pytest

from bsdsbench.metrics import contour as bc
from tests.helpers.runs import refused
from tests.reference import contours as ref

OVERLAPS = [
    bc.mask_iou,
    bc.boundary_iou,
    partial(bc.boundary_iou, with_mask=True),
    partial(bc.trimap_iou, width=2),
    bc.cl_dice,
]


@pytest.mark.parametrize("measure", OVERLAPS)
def test_the_side_that_is_empty_is_named(measure):
    """Of label maps, the first label of which one side is empty: 1 and not 0."""
    gt, pred = np.zeros((2, 5, 6), int)
    gt[2, 2:4] = 1
    for options, k in (({}, 0), ({"classes": 2}, 1)):
        words = f"^label {k}: the prediction empty, expected an outline"
        refused(words, partial(measure, pred, gt, empty="error", **options))
        if "width" not in getattr(measure, "keywords", {}):  # no outline of gt, no band
            words = f"^label {k}: the ground truth empty, expected an outline"
            refused(words, partial(measure, gt, pred, empty="error", **options))


@pytest.mark.parametrize("width", [0.5, 1, 2])
def test_a_trimap_has_any_width_above_0(width):
    pred, gt = np.zeros((2, 7, 8), bool)
    pred[1:5, 1:5], gt[2:6, 2:7] = True, True
    near = ref.band(gt.astype(int), width)
    expected = ref.iou(pred & near, gt & near) if near.any() else np.nan
    assert bc.trimap_iou(pred, gt, width) == pytest.approx(expected, nan_ok=True)
