"""Runs of BSDS300 at the limits of the picture and of numbers, one bad run among good ones."""

import numpy as np
import pytest

from bsdsbench.files.errors import FileFormatError
from bsdsbench.loaders.segtext import seg_arrays
from tests.helpers.runs import refused


def write(tmp_path, *runs):
    head = "width 3\nheight 2\ndata\n"
    (tmp_path / "a.seg").write_text(head + "".join(f"{run}\n" for run in runs))
    return tmp_path / "a.seg"


def test_regions_keep_their_numbers_plus_one(tmp_path):
    most = 2**31 - 2
    found = seg_arrays(write(tmp_path, "0 0 0 0", f"{most} 0 1 2", "7 1 0 2"))[""]
    assert found.dtype == np.int32
    assert found.tolist() == [[1, most + 1, most + 1], [8, 8, 8]]


@pytest.mark.parametrize(
    "bad",
    [
        *("-1 1 0 2", "0 -1 0 2", "0 1 -1 2", "0 1 0 -1", "0 2 0 2", "0 1 0 3", "0 1 2 1"),
        f"{2**31 - 1} 1 0 2",
    ],
)
def test_one_bad_run_among_good_ones(tmp_path, bad):
    path = write(tmp_path, "0 0 0 2", bad)
    refused(
        "a.seg: .*a run lies outside the 2 x 3 picture", seg_arrays, path, error=FileFormatError
    )


@pytest.mark.parametrize(
    "runs",
    [("0 0 0 2",), ("0 0 0 2", "1 1 0 1"), ("0 0 0 2", "1 0 0 2"), ("0 0 0 2", "1 1 0 2") * 2],
)
def test_every_pixel_lies_in_one_run(tmp_path, runs):
    refused(
        "cover the picture exactly once", seg_arrays, write(tmp_path, *runs), error=FileFormatError
    )
