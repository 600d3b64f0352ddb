"""BSDS300's text at its limits; whole files are in test_groundtruth."""

import numpy as np
import pytest

from bsdsbench.files import bounded
from bsdsbench.loaders.segtext import read_seg
from tests.helpers.runs import refused

TOP = 2**31 - 2  # its label, one more, is the largest of 32 bits


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
        found = read_seg(seg(given))
        assert found.dtype == np.int32
        assert found.tolist() == [[label + 1, label + 1, 8], [4, 4, 4]]


@pytest.mark.parametrize(
    "run",
    [
        (TOP + 1, 1, 0, 2),
        (2**32, 1, 0, 2),
        (-1, 1, 0, 2),
        (0, -1, 0, 2),
        (0, 1, -1, 1),
        (0, 2, 0, 2),
        (0, 1, 1, 3),
        (0, 1, 2, 0),
    ],
)
def test_a_run_outside_is_refused_beside_one_inside(seg, run):
    for runs in ([(0, 0, 0, 2), run], [run, (0, 0, 0, 2)]):
        words = r"a\.seg: a run lies outside the 2 x 3 picture$"
        refused(words, read_seg, seg(runs))


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([(0, 0, 0, 2), (0, 1, 0, 1)], "the runs do not cover the picture exactly once"),
        ([(0, 0, 0, 2), (0, 0, 0, 2)], "the runs do not cover the picture exactly once"),
        ([(0, 0, 0, 2), (0, 1, 0, 2), (0, 1, 0, 0)], "the runs do not cover the picture"),
        ([], "a run is not four numbers"),
        ([(0, 0, 0)], "a run is not four numbers"),
    ],
)
def test_every_pixel_lies_in_one_run(seg, runs, words):
    refused(rf"a\.seg: {words}", read_seg, seg(runs))


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (3, 1)])
def test_the_smallest_pictures(seg, size):
    runs = [(r, r, 0, size[1] - 1) for r in range(size[0])]
    assert read_seg(seg(runs, size)).shape == size


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (-2, -2)])
def test_pictures_of_no_size(seg, size):
    words = rf"has size {size[0]} x {size[1]}, expected at least 1 x 1$"
    refused(words, read_seg, seg([(0, 0, 0, 0)], size))


@pytest.mark.parametrize("head", ["width 3\n", "height 2\n", "width\nheight 2\n"])
def test_heads_without_a_size(seg, head):
    refused("has no width and height, expected a BSDS300", read_seg, seg([(0,) * 4], head=head))


def test_bytes_and_pixels_are_bounded(seg, monkeypatch):
    path = seg([(0, 0, 0, 2), (0, 1, 0, 2)])
    size = path.stat().st_size
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 6 * 4)
    monkeypatch.setattr("bsdsbench.loaders.segtext.MAX_SEG_BYTES", size)
    assert read_seg(path).shape == (2, 3)
    monkeypatch.setattr("bsdsbench.loaders.segtext.MAX_SEG_BYTES", size - 1)
    refused(f"{size} bytes, expected at most {size - 1}$", read_seg, path)
    monkeypatch.undo()
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 6 * 4 - 1)
    refused("claims 2 x 3 values of 4 bytes", read_seg, path)
