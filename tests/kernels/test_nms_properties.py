"""Edge NMS against a slow definition, and the properties it must have."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import ndimage

from bsdsbench.protocol.protocol import Protocol
from bsdsbench.transforms.maps import _quantise, nms, prepare
from tests.reference import nms as slow


def smooth_noise(seed, shape, sigma=2.0):
    rng = np.random.default_rng(seed)
    field = ndimage.gaussian_filter(rng.standard_normal(shape), sigma)
    field -= field.min()
    return (field / field.max()).astype(np.float32)


@settings(max_examples=40, deadline=None)
@example(seed=5380, rows=17, cols=2, radius=1, border=0, multiplier=1.0, smooth=False)
@example(seed=275, rows=3, cols=3, radius=1, border=0, multiplier=1.01, smooth=True)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 40),
    cols=st.integers(2, 60),
    radius=st.integers(1, 3),
    border=st.integers(0, 6),
    multiplier=st.sampled_from([1.0, 1.01, 1.04]),
    smooth=st.booleans(),
)
def test_agrees_with_the_slow_definition(seed, rows, cols, radius, border, multiplier, smooth):
    image = smooth_noise(seed, (rows, cols))
    fast = nms(image, radius, border, multiplier, smooth)
    expected, margin = slow.edge_nms(image, radius, border, multiplier, smooth)
    assert fast.dtype == np.float32
    assert fast.shape == image.shape
    clear = np.abs(margin) > 1e-4
    differs = clear & (np.abs(fast - expected) > 1e-5)
    if min(rows, cols) >= 10:  # narrower ones are flat in one direction: see `steady`
        assert differs.sum() <= 0.01 * image.size
    clear &= steady(image, smooth)
    np.testing.assert_allclose(fast[clear], expected[clear], rtol=0, atol=1e-5)


def steady(image, smooth):
    """Pixels whose normal is not in the hands of float32's rounding, as it is where all is flat.

    The formula has sign(Gxy), and an angle of its own where that is 0.
    """
    image = image.astype(np.float64)
    blurred = slow.triangle(slow.triangle(image, 1) if smooth else image, 4)
    rounding = 2e-7 * np.random.default_rng(0).choice([-1, 1], (8, *image.shape))
    turn = np.array([slow.normal_angle(blurred + r) - slow.normal_angle(blurred) for r in rounding])
    turns = np.abs((turn + np.pi / 2) % np.pi - np.pi / 2).max(axis=0) > 1e-3
    return ~turns & (np.abs(slow.second_derivatives(blurred)[2]) > 1e-6)


def test_a_level_horizontal_ridge_is_left_as_the_formula_says():
    upright = np.tile(np.exp(-((np.arange(45) - 22) ** 2) / 8).astype(np.float32), (31, 1))
    image = np.ascontiguousarray(upright.T)
    # the last row is compared at the clamped coordinate height - 1.001, so it is left out
    assert np.array_equal(nms(image, 1, 0, 1.01, smooth=False)[:-1], image[:-1])
    kept = nms(upright, 1, 0, 1.01, smooth=False) > 0
    assert (np.flatnonzero(kept.any(axis=0)) == [22]).all()


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [
        ((20, 30), np.arange(6) / 5, np.arange(6) / 5),
        ((7, 30), [0, 1 / 3, 2 / 3, 1], [0, 1 / 3, 2 / 3, 1]),
        ((30, 4), [0, 1 / 2, 1], [0, 1 / 2]),
        ((3, 8), [0, 1], [0, 1]),
        ((1, 9), [1], [1]),
    ],
)
def test_the_fade_covers_at_most_half_of_the_shorter_side(shape, rows, columns):
    faded = nms(np.ones(shape, np.float32), 1, 5, 1.01, smooth=False)
    y, x = (np.minimum(np.arange(n), np.arange(n)[::-1]) for n in shape)
    y, x = np.minimum(y, len(rows) - 1), np.minimum(x, len(columns) - 1)
    assert np.allclose(faded, np.outer(np.take(rows, y), np.take(columns, x)))


@pytest.mark.parametrize("shape", [(0, 0), (0, 7), (1, 1), (1, 9), (9, 1), (2, 3)])
def test_tiny_maps(shape):
    out = nms(np.full(shape, 0.5, np.float32))
    assert out.shape == shape
    assert out.dtype == np.float32


def test_quantise_rounds_halves_up_at_both_depths():
    values = np.array([[0, 0.5 / 255, 1.49 / 255, 1]])
    assert _quantise(values, 8).tolist() == [[0, 1, 1, 255]]
    assert _quantise(values, 16).tolist() == [[0, 129, 383, 65535]]
    assert _quantise(values, 16).dtype == np.uint16


def test_prepare_does_what_the_protocol_says():
    soft = _quantise(smooth_noise(2, (33, 47)), 8)
    plain = Protocol.preset("bsds500")
    assert prepare(soft, plain) is soft
    assert np.array_equal(prepare(soft, plain.replace(invert=True)), 255 - soft)
    eight = prepare(soft, plain.replace(nms=True))
    assert eight.dtype == np.uint8
    assert np.array_equal(eight, _quantise(nms(soft), 8))
    kept = prepare(soft, plain.replace(nms=True, nms_params={"bits": 0, "radius": 2}))
    assert np.array_equal(kept, nms(soft, radius=2))
    dark = prepare(255 - soft, plain.replace(nms=True, invert=True))
    assert np.array_equal(dark, eight)
