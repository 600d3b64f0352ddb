"""Resized maps beside sums over mirrored samples."""

from itertools import product

import numpy as np
import pytest

from bsdsbench.transforms.resize import bicubic, bilinear


def cubic(x):
    """Keys' kernel with a = -1/2."""
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0


def triangle(x):
    return max(1 - x, 0)


def slow(row, wanted, kernel):
    """Each new sample is a mean, by the kernel, of a row mirrored at its ends again and again."""
    size, out = len(row), []
    narrow = min(wanted / size, 1)
    for k in range(wanted):
        centre = (k + 0.5) * size / wanted - 0.5
        at = range(int(centre - 2 / narrow) - 2, int(centre + 2 / narrow) + 3)
        shares = [kernel(abs(centre - n) * narrow) for n in at]
        samples = [[*row, *row[::-1]][n % (2 * size)] for n in at]
        out.append(np.dot(shares, samples) / sum(shares))
    return np.clip(out, 0, 1)


@pytest.mark.parametrize(("resized", "kernel"), [(bicubic, cubic), (bilinear, triangle)])
def test_samples_are_mirrored_as_often_as_needed(resized, kernel):
    for size, wanted in product((1, 2, 3, 5, 9), (1, 2, 3, 4, 17)):
        row = np.random.default_rng(size).random(size)
        expected = slow(row.tolist(), wanted, kernel)
        np.testing.assert_allclose(resized(row[None], (1, wanted))[0], expected, atol=1e-12)
        np.testing.assert_allclose(resized(row[:, None], (wanted, 1))[:, 0], expected, atol=1e-12)


def test_bicubic_overshoots_no_further_than_the_ends():
    found = bicubic(np.repeat([[0, 255]], 4, axis=1).astype(np.uint8), (3, 40))
    assert (found.min(), found.max()) == (0, 1)


def test_the_last_bit_does_not_depend_on_what_is_resized_beside():
    """Nor on threads: BLAS would sum a column among others in another order."""
    wide = np.random.default_rng(0).random((301, 402))
    found = bilinear(wide, (97, 402))
    for k in (0, 200, 401):
        np.testing.assert_array_equal(bilinear(wide[:, [k]], (97, 1))[:, 0], found[:, k])
