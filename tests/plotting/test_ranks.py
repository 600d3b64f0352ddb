"""The picture of ranks: rows, blobs, crosses and the lines that join methods."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.ranks import indistinguishable_groups
from bsdsbench.comparison.slices import compare_slices
from bsdsbench.plotting import plot_ranks
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run(f"m{k}", 20, quality=0.03 * k, seed=k).with_groups(group_by="(?P<end>.)$")
        for k in range(12)
    ]


@pytest.fixture(scope="module")
def compared(runs):
    return bb.compare(runs, n_boot=200)


@pytest.mark.slow
@pytest.mark.parametrize("look", ["screen", "column", "page"])
def test_twelve_methods_are_readable(compared, look, tmp_path):
    """No two labels of a side overlap, and nothing lies outside the picture."""
    figure = plot_ranks(compared, look=look, path=tmp_path / "ranks.png")
    (ax,) = figure.axes
    figure.draw_without_rendering()
    for labels, low, high in (
        (ax.get_yticklabels(), "y0", "y1"),
        (ax.get_xticklabels(), "x0", "x1"),
    ):
        boxes = [label.get_window_extent() for label in labels]
        spans = sorted((getattr(box, low), getattr(box, high)) for box in boxes)
        assert all(a[1] < b[0] for a, b in pairwise(spans))
    outer = figure.bbox
    for text in (*ax.get_yticklabels(), *ax.get_xticklabels(), figure._supxlabel):
        box = text.get_window_extent()
        assert outer.x0 <= box.x0
        assert box.x1 <= outer.x1


def test_blobs_crosses_and_joining_lines(compared):
    figure = plot_ranks(compared, "ods")
    (ax,) = figure.axes
    ranks = compared.ranks["boundary.ods"]
    names = [label.get_text().split()[1] for label in ax.get_yticklabels()]
    assert names == list(ranks.names)
    for k, blobs in enumerate(ax.collections):
        sizes = dict(zip(blobs.get_offsets()[:, 0], blobs.get_sizes(), strict=True))
        drawn = np.array([sizes.get(rank, 0) for rank in range(1, 13)])
        assert drawn / drawn.sum() == pytest.approx(ranks.shares[k])
    upright = [line for line in ax.lines if np.ptp(line.get_ydata()) > 0]
    ends = [tuple(np.round(np.add(line.get_ydata(), [0.25, -0.25]))) for line in upright]
    assert ends == indistinguishable_groups(compared, "boundary.ods") != []
    plt.close(figure)


def test_slices_have_a_picture_each(runs):
    slices = compare_slices(runs[:3], "end=3,6", n_boot=50)
    figure = plot_ranks(slices)
    assert len(figure.axes) == len(slices) > 1
    assert [ax.get_title().split()[0] for ax in figure.axes] == [k.split()[0] for k in slices]
    plt.close(figure)


def test_what_has_no_ranks_is_refused(runs, compared):
    with pytest.raises(bb.DataError, match="'odds': expected some of boundary"):
        plot_ranks(compared, "odds")
    with pytest.raises(bb.DataError, match="no comparisons given"):
        plot_ranks({})
    with pytest.raises(bb.DataError, match="m0: is the only run"):
        plot_ranks(bb.compare(runs[:1], n_boot=5))
