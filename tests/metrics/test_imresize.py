"""Resized maps beside sums over mirrored samples."""

import numpy as np
import pytest

from bsdsbench.metrics.imresize import bicubic, bilinear


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
    far = [*row, *row[::-1]] * 9
    for k in range(wanted):
        at = (k + 0.5) * size / wanted - 0.5
        shares = [kernel(abs(at - n) * narrow) for n in range(-8 * size, 10 * size)]
        out.append(np.dot(shares, far) / sum(shares))
    return out


@pytest.mark.parametrize("wanted", [1, 2, 3, 7, 10, 11, 25])
@pytest.mark.parametrize(("resized", "kernel"), [(bicubic, cubic), (bilinear, triangle)])
def test_a_row_is_resized_by_its_kernel_and_mirrored(resized, kernel, wanted):
    row = np.random.default_rng(1).random(10)
    row[0], row[1:3] = 0.9, 0.1
    expected = np.clip(slow(row, wanted, kernel), 0, 1)
    np.testing.assert_allclose(resized(row[None], (1, wanted))[0], expected, atol=1e-12)
    np.testing.assert_allclose(resized(row[:, None], (wanted, 1))[:, 0], expected, atol=1e-12)


def test_bicubic_overshoots_no_further_than_the_ends():
    found = bicubic(np.repeat([[0, 255]], 4, axis=1).astype(np.uint8), (3, 40))
    assert (found.min(), found.max()) == (0, 1)
