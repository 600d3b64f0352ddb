"""BSDS300's text at its limits; whole files are in test_groundtruth."""

import numpy as np
import pytest

from bsdsbench.errors import FileFormatError
from bsdsbench.loaders.formats.pictures import read_arrays
from tests.helpers.runs import refused

TOP = 2**31 - 2  # its label, one more, is the largest of 32 bits
INSIDE = (0, 0, 0, 2)


@pytest.fixture
def seg(tmp_path):
    def write(runs, size=(2, 3), head="width {1}\nheight {0}\n"):
        body = "".join(" ".join(map(str, run)) + "\n" for run in runs)
        (tmp_path / "a.seg").write_text(head.format(*size) + "data\n" + body)
        return tmp_path / "a.seg"

    return write


@pytest.mark.parametrize("label", [0, 1, TOP])
def test_labels_are_one_more_than_segments(seg, label):
    runs = [(label, 0, 0, 1), (7, 0, 2, 2), (3, 1, 0, 2)]
    for given in (runs, runs[::-1]):
        found = read_arrays(seg(given))[""]
        assert (found.dtype, found.tolist()) == (np.int32, [[label + 1, label + 1, 8], [4, 4, 4]])
    for size in ((1, 1), (1, 3), (3, 1)):
        path = seg([(r, r, 0, size[1] - 1) for r in range(size[0])], size)
        assert read_arrays(path)[""].shape == size


@pytest.mark.parametrize(
    ("runs", "more", "words"),
    [
        *(
            ([INSIDE, run], {}, "a run lies outside")
            for run in ((TOP + 1, 1, 0, 2), (0, -1, 0, 2), (0, 2, 0, 2), (0, 1, 2, 0))
        ),
        ([INSIDE, (0, 1, 0, 1)], {}, "exactly once"),
        ([], {}, "four numbers"),
        *(([(0,) * 4], {"size": size}, "width and height") for size in ((0, 1), (-2, -2))),
        *(
            ([(0,) * 4], {"head": head}, "width and height")
            for head in ("width 3\n", "width\nheight 2\n")
        ),
    ],
)  # fmt: skip
def test_runs_and_heads_that_are_none(seg, runs, more, words):
    refused(rf"a\.seg: .*{words}", read_arrays, seg(runs[::-1], **more), error=FileFormatError)
