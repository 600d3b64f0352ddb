"""The quick compiler of kernels: loops, indices and results are those of Python."""

import itertools
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from bsdsbench.kernels import jit
from bsdsbench.kernels.jit import inner, kernel


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(jit, "_cache_folder", None)


def numbers_of_range(start, stop, step, numbers):
    """Write the numbers of a range, and return how many there are."""
    n = 0
    for number in range(start, stop, step):
        numbers[n] = number
        n += 1
        number = 99  # the next one does not depend on it
    for number in range(step, 3):
        n += 10 * number
    for number in range(stop):
        n += 100 + number
    return n


def test_ranges():
    compiled = kernel(numbers_of_range, _nrt=False)
    for words in itertools.product((-2, 0, 3), (-3, 0, 2, 3), (-2, -1, 1, 3)):
        expected, numbers = np.zeros((2, 9), np.int64)
        assert compiled(*words, numbers) == numbers_of_range(*words, expected)
        assert numbers.tolist() == expected.tolist()


def element_moved(a, b, index, row, col, flags):
    """Copy elements between arrays of several types, dimensions and layouts."""
    b[row, col] = a[index]
    flags[col] = a[index] > 1
    b[row, a.size - 1] = flags[col]
    b[0, 0] = b.shape[0] * 10 + b.shape[1] + b[row, 1]
    return b[row, col], flags[col]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("index", [np.int64, np.uint64, np.int32, np.uint8])
def test_elements_of_arrays(index, order):
    a, flags = np.array([0.5, 1.5, 2.75], np.float32), np.zeros((2, 3), np.bool_)
    for function in (element_moved, kernel(element_moved, _nrt=False)):
        b = np.asarray(np.arange(6).reshape(2, 3), order=order)
        assert function(a, b, index(2), index(1), index(1), flags[0]) == (2, True)
        assert b.tolist() == [[25, 1, 2], [3, 2, 1]]
        assert flags.tolist() == [[False, True, False], [False] * 3]
        flags[:] = False


def test_checked_indices(monkeypatch):
    """With NUMBA_BOUNDSCHECK=1 an index outside the array is refused, also in inner functions."""
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)

    @inner
    def element(a, k):
        return a[k]

    one = kernel(lambda a, k: a[k], _nrt=False)
    two = kernel(lambda a, k: element(a, k), _nrt=False)
    a = np.arange(3)
    for checked in (one, two):
        assert [checked(a, k) for k in range(-3, 3)] == [0, 1, 2, 0, 1, 2]
        for k in (-4, 3):
            with pytest.raises(IndexError, match="out of bounds"):
                checked(a, k)
    write = kernel(numbers_of_range, _nrt=False)
    with pytest.raises(IndexError):
        write(0, 4, 1, np.zeros(2, np.int64))


UNTESTED = """
import numba
numba.version_info = numba.version_info._replace(major=9)
import numpy as np
from bsdsbench.kernels.bits import count_set_bits
import sys
print(count_set_bits(np.array([[5], [4]], np.uint64))[0, :4].tolist())
print("bsdsbench.kernels.compiler" in sys.modules)
"""


@pytest.mark.slow
def test_numba_compiles_kernels_itself_in_versions_that_are_not_tested(tmp_path):
    """Internals may differ there; the counts are the same."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", UNTESTED]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout.split("\n"), done.returncode) == (["[1, 0, 2, 0]", "False", ""], 0), done
    assert list(tmp_path.rglob("*.nbi"))


def test_functions_of_others_wrap_negative_indices():
    """What numba compiles for other packages is as it always was."""
    assert kernel(lambda a: a[0], _nrt=False)(np.arange(3)) == 0
    assert numba.njit(lambda a: a[-1])(np.arange(3)) == 2
