"""Soft maps before their thresholds: inverted, stretched, rounded; and which are too faint."""

import numpy as np
import pytest

from bsdsbench.images import to_unit_range
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.sanity import _is_faint as is_faint
from bsdsbench.transforms.maps import as_float32, invert, prepare

LOW, HIGH = Protocol(thresholds=(0.001, 0.5)), Protocol(thresholds=(0.01, 0.5))


def up_to(top, kind):
    return np.array([[0, top]], kind)


@pytest.mark.parametrize(
    ("soft", "protocol", "with_curve", "without"),
    [
        (up_to(9, np.uint8), LOW, True, True),
        (up_to(255, np.uint16), LOW, True, True),
        (up_to(256, np.uint16), LOW, False, False),
        (up_to(256, np.uint16), HIGH, True, False),  # .0039
        (up_to(0.0099, float), HIGH, True, False),
        (up_to(0.01, float), HIGH, False, False),
        (up_to(0.4, float), Protocol(thresholds=(0, 0.5)), True, False),
        (up_to(9, np.uint8), HIGH.replace(invert=True), True, True),
        (up_to(9, np.uint8), HIGH.replace(normalise=True), False, False),
        (up_to(0, bool), HIGH, False, False),
    ],
)
def test_faint_maps(soft, protocol, with_curve, without):
    """No more than 9 of 255 or 255 of 65535; or, of a curve, below the lowest threshold."""
    assert is_faint(soft, protocol) is with_curve
    assert is_faint(soft, protocol, has_thresholds=False) is without


@pytest.mark.parametrize(
    ("soft", "turned", "shares"),
    [
        (np.array([[0, 100, 255]], np.uint8), [255, 155, 0], [0, 100 / 255, 1]),
        (np.array([[0, 100, 65535]], np.uint16), [65535, 65435, 0], [0, 100 / 65535, 1]),
        (np.array([[0, 0.25, 1]], np.float32), [1, 0.75, 0], [0, 0.25, 1]),
        (np.array([[0, 1, 1]], bool), [1, 0, 0], [0, 1, 1]),
    ],
)
def test_a_map_keeps_its_type_when_it_is_inverted(soft, turned, shares):
    assert invert(soft).dtype == soft.dtype
    assert invert(soft).tolist() == [turned]
    assert to_unit_range(soft)[0] == pytest.approx(shares)
    assert as_float32(soft).dtype == np.float32
    assert not np.shares_memory(as_float32(soft), soft)
    assert as_float32(soft)[0] == pytest.approx(shares, abs=1e-7)


def test_a_map_divided_by_its_largest_value():
    plain = Protocol(normalise=True)
    assert prepare(up_to(51, np.uint8), plain).tolist() == [[0, 1]]
    assert prepare(np.array([[0.1, 0.2]]), plain).tolist() == [[0.5, 1]]
    assert prepare(np.zeros((1, 2)), plain).tolist() == [[0, 0]]
    soft = up_to(51, np.uint8)
    assert prepare(soft, Protocol()) is soft
    assert prepare(soft, Protocol(invert=True)).tolist() == [[255, 204]]
