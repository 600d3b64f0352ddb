"""Strengths of an ultrametric contour map are floats."""

import numpy as np
import pytest
from scipy.io import savemat

from bsdsbench.files.errors import FileFormatError
from bsdsbench.loaders import load_prediction


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, bool])
def test_other_types_are_refused(tmp_path, dtype):
    savemat(tmp_path / "a.mat", {"ucm2": np.ones((9, 13), dtype)})
    with pytest.raises(FileFormatError, match=r"a\.mat: ucm2 of \w+, expected floats in \[0, 1\]"):
        load_prediction(tmp_path / "a.mat")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_read(tmp_path, dtype):
    ucm2 = np.zeros((9, 13), dtype)
    ucm2[4] = 0.25
    savemat(tmp_path / "a.mat", {"ucm2": ucm2})
    assert np.array_equal(load_prediction(tmp_path / "a.mat").ucm2, ucm2)
