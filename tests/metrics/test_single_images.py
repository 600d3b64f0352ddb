"""The functions for one image take arrays of a user in any form, or say what is wrong."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import InputWarning
from bsdsbench.metrics.structures import betti_numbers
from tests.helpers.runs import refused

SOFT = np.linspace(0, 1, 120).reshape(10, 12)
MASK = np.indices((10, 12))[1] > 5
MEASURES = {
    "s_measure": bb.saliency.s_measure,
    "weighted_f": bb.saliency.weighted_f,
}


@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_soft_maps(name):
    measure, bytes_of_map = MEASURES[name], np.rint(SOFT * 255).astype(np.uint8)
    plain = measure(bytes_of_map / 255, MASK)
    for soft in (bytes_of_map, (bytes_of_map / 255).tolist(), (bytes_of_map / 255)[::-1][::-1]):
        assert measure(soft, MASK.astype(np.uint8) * 255) == pytest.approx(plain, abs=1e-6)
    refused("soft map: values from 0 to 255", measure, SOFT * 255, MASK)
    refused("soft map: a masked array", measure, np.ma.array(SOFT), MASK)
    refused("soft map: 1 values are NaN", measure, np.where(SOFT == 1, np.nan, SOFT), MASK)
    if name != "crispness":
        refused("mask: values other than 0 and 1", measure, SOFT, bytes_of_map)
        refused("soft map: shape .*transposed", measure, SOFT.T, MASK)


@pytest.mark.parametrize("measure", [bb.saliency.s_measure, bb.saliency.weighted_f])
def test_valid_pixels_in_every_form(measure):
    valid = SOFT < 0.8
    expected = measure(SOFT, MASK, valid)
    assert expected != measure(SOFT, MASK)
    for form in (valid.astype(np.uint8), valid * 255, valid.astype(float), valid.tolist()):
        assert measure(SOFT, MASK, form) == expected
    refused("valid: shape", measure, SOFT, MASK, valid[:5])
    refused("valid: values other than 0 and 1", measure, SOFT, MASK, np.eye(10, 12) * 2)


def test_masked_arrays_are_refused_by_measures_of_masks():
    masked = np.ma.array(MASK, mask=SOFT > 0.5)
    for pair in ((masked, MASK), (MASK, masked)):
        refused("a masked array", bb.contour.measure, "dice", *pair)
        refused("a masked array", bb.contour.measure, "dice", *pair, ignore=255)


def test_a_fraction_of_the_diagonal_in_pixels_is_said():
    """As correspondPixels takes it."""
    line = np.eye(30, 40)
    with pytest.warns(InputWarning, match="max_dist_px 0.0075: .* .0.375, if it is a fraction"):
        assert bb.match_boundaries(line, line, 0.0075).n_matched == 30
    assert bb.match_boundaries(line, line, 0.5).n_matched == 30


@pytest.mark.parametrize(
    "function", ["boundary_counts", "pixel_counts", "boundary_errors", "s_measure", "weighted_f"]
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_masks_of_0_and_1_are_said(function, dtype):
    def call(pred):
        if function in MEASURES:
            return MEASURES[function](pred, MASK)
        return getattr(bb, function)(pred, [MASK], bb.Protocol(thresholds=(0.5,)))

    with pytest.warns(InputWarning, match="no value above 1 of .*save 0 and 1 as bool"):
        call(MASK.astype(dtype))
    for sound in (MASK, MASK.astype(dtype) * np.iinfo(dtype).max, np.zeros_like(MASK, dtype)):
        call(sound)


@pytest.mark.parametrize("white", [1, 255, 65535])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float32])
def test_betti_numbers_of_a_mask_in_every_form(dtype, white):
    """A ring and an object beside it: two components, one hole."""
    ring = np.zeros((12, 16), bool)
    ring[2:8, 2:8] = ring[4:8, 10:14] = True
    ring[4:6, 4:6] = False
    if white <= 255 or dtype != np.uint8:
        assert betti_numbers(ring * dtype(white)).tolist() == [[2, 1, 1]]
    assert betti_numbers(ring.tolist()).tolist() == [[2, 1, 1]]


def test_betti_numbers_of_what_is_no_mask():
    refused("mask: values other than 0 and 1", betti_numbers, np.eye(4, dtype=int) * 2)
    refused("mask: shape", betti_numbers, np.zeros((2, 4, 4), bool))
    assert betti_numbers(np.zeros((0, 3), bool)).shape == (0, 3)
    refused("connectivity 1, expected 8 or 4", betti_numbers, MASK, 1)  # 4 in scikit-image


@pytest.mark.parametrize("metric", ["saliency", "topology", "ccq", "contour", "instances"])
def test_masks_of_several_annotators_are_refused_where_a_metric_takes_one(metric):
    for truth in ([MASK, ~MASK], np.stack([MASK, ~MASK])):
        items = [("a", MASK, truth)]
        refused("a: .*of annotators: a run for each", bb.evaluate_items, items, metrics=metric)
