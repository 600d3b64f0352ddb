"""Outlines of label maps, label by label, against scipy's morphology and windows of 2 x 2."""

from itertools import pairwise

import numpy as np
import pytest

from bsdsbench.kernels.distances.distances import corners, rims
from tests.reference.contours import rim


@pytest.fixture(params=range(4))
def labels(request):
    """Noise and blocks, with pixels of no label; -1 around."""
    rng = np.random.default_rng(request.param)
    found = rng.integers(-1, 3, (5 + request.param, 9)).astype(np.int32)
    return np.kron(found, np.ones((3, 2), np.int32)) if request.param % 2 else found


def by_label(start, *lists):
    return [[x[a:b].tolist() for x in lists] for a, b in pairwise(start)]


def test_rims_are_what_an_erosion_by_a_cross_takes_away(labels):
    found = by_label(*rims(np.pad(labels, 1, constant_values=-1), 4)[:3])
    assert found == [[at.tolist() for at in np.nonzero(rim(labels == k))] for k in range(4)]


@pytest.mark.parametrize("frame", [((1, 1), (1, 1)), ((0, 1), (0, 1))])
def test_corners_are_windows_with_a_part_of_a_label(labels, frame):
    padded = np.pad(labels, frame, constant_values=-1)
    expected = []
    for k in range(4):
        part = padded == k
        code = 8 * part[:-1, :-1] + 4 * part[:-1, 1:] + 2 * part[1:, :-1] + part[1:, 1:]
        rows, cols = np.nonzero((code > 0) & (code < 15))
        expected.append([rows.tolist(), cols.tolist(), code[rows, cols].tolist()])
    assert by_label(*corners(padded, 4)) == expected
