"""Limits that count up to and with themselves: k steps of s are within the limit k s, k + 1 not."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.diagnosis.causes import many_to_one_counts
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.kernels.matching.graph import disk
from bsdsbench.metrics import contour, registry

# Steps as people write them: .1, .35, 1.2 ... and the limit as they do, not as the product is
STEPS = st.integers(1, 400).map(lambda n: (n, n / 100))


def written(hundredths, k):
    """The limit of k steps as one writes it, and as a program multiplies it."""
    return (k * hundredths) / 100, k * (hundredths / 100)


@given(st.integers(1, 10_000), st.integers(1, 5000), st.sampled_from([10, 100, 1000, 3, 7]))
@example(1, 3, 10)
def test_k_steps_are_within_and_one_more_is_not(n, k, unit):
    step, limit = n / unit, k * n / unit
    for distance in (k * step, np.hypot(k * step, 0), np.sqrt((k * step) ** 2), sum([step] * k)):
        assert distance <= with_tolerance(limit)
    assert (k + 1) * step > with_tolerance(limit)
    assert with_tolerance(0) == 0


@given(st.integers(0, 10**8 - 1))
def test_the_next_distance_of_pixels_is_beyond(squared):
    """Up to 10,000 pixels, distances in any direction."""
    assert np.sqrt(squared) <= with_tolerance(np.sqrt(squared)) < np.sqrt(squared + 1)


def lines(k):
    """A line of pixels, and one k rows below."""
    line = np.zeros((k + 9, 12), bool)
    line[4] = True
    return np.roll(line, k, 0), line


@given(STEPS, st.integers(1, 12))
@example((10, 0.1), 3)
def test_centre_lines_within_the_buffer(step, k):
    (hundredths, spacing), (pred, gt) = step, lines(k)
    metric, one = registry.get("ccq"), spacing
    for buffer, share in ((k, 12), (k - 1, 0)):
        for limit in written(hundredths, buffer):
            options = {"buffer": limit, "spacing": (one, one), "lines": "given"}
            protocol = bb.Protocol.preset("masks").replace(options={"ccq": options})
            images = bb.Prediction("a", soft=pred), bb.GroundTruth("a", mask=gt)
            counts = metric.count_image(*images, protocol)
            assert counts["matched"] == [share, share]


@given(STEPS, st.integers(1, 12))
def test_surfaces_within_the_tolerance(step, k):
    (hundredths, spacing), (pred, gt) = step, lines(k)
    for name in ("nsd-counts", "nsd-mean"):
        for limit in written(hundredths, k):
            how = {"spacing": (spacing, spacing)}
            assert contour.measure(name, pred, gt, limit, **how) == 1
            if k > 1:
                assert contour.measure(name, pred, gt, limit * (k - 1) / k, **how) == 0


@given(st.integers(3, 40), st.integers(1, 9))
def test_radii_that_are_shares_of_the_diagonal(rows, k):
    """Of a 3 : 4 image, whose diagonal is whole: a share that is just k pixels."""
    shape = 3 * rows, 4 * rows
    assume(k + 2 < 3 * rows and k < 5 * rows)
    pred, gt = np.zeros(shape, bool), np.zeros(shape, bool)
    pred[0], gt[k] = True, True
    share = k / (5 * rows)
    assert contour.bf_score(pred, gt, share) == 1
    assert contour.measure("trimap", gt, gt, k + 0.0) == 1
    protocol = bb.Protocol(thresholds=(0.5,), max_dist=share, thin=False)
    for counts in (
        bb.boundary_counts(pred, [gt], protocol),
        many_to_one_counts(pred, [gt], protocol),
    ):
        assert counts.matched_gt == counts.total_gt
    assert bb.assign(pred, gt, share * 5 * rows).n_matched == 4 * rows


@given(st.integers(1, 120), st.sampled_from([0.1, 0.29, 0.57, 0.07, 0.0075]))
def test_a_product_of_just_k_pixels_reaches_them(k, share):
    """.29 of 100 is 28.999999999999996 as floats."""
    half = disk(share * (k / share), (400, 400)).half
    assert half[0] >= 0
    assert len(half) == 2 * k + 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_an_edge_of_bins_belongs_to_one_of_them(closed, dtype):
    """k / B, typed, multiplied, of 8 bits and in single precision; halves between them are sure."""
    for bins in (1, 2, 3, 7, 10, 15, 20, 49, 100):
        metric = registry.get("calibration")
        options = {"bins": bins, "closed": closed}
        protocol = bb.Protocol.preset("calibration").replace(options={"calibration": options})
        k = np.arange(1, bins)
        for values in (k / bins, k * (1 / bins), (k + 0.5) / bins):
            on_edge = values is not None and not np.allclose(values * bins % 1, 0.5)
            expected = k if closed == "left" or not on_edge else k - 1
            for value, number in zip(values.astype(dtype), expected, strict=True):
                soft = np.full((1, 1), value)
                counts = metric.count_image(
                    bb.Prediction("a", soft=soft), bb.GroundTruth("a", (soft > 2,)), protocol
                )
                assert np.flatnonzero(counts["pixels"]).tolist() == [number], (bins, value)
