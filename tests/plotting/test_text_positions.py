"""In every kind of figure no text lies on another or outside, and no legend on a curve."""

from itertools import combinations

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.plotting import plot_runs, plot_slices
from bsdsbench.plotting.displays import DETCurveDisplay, PRCurveDisplay, ROCCurveDisplay
from bsdsbench.plotting.figures import plot_curves
from bsdsbench.plotting.grid import draw_grid
from bsdsbench.plotting.style import style
from bsdsbench.report.history import plot_history
from tests.helpers.simulated import simulated_run

NAMES = ("one", "two with a longer name", "three")


def of_runs(look, path):
    runs = [simulated_run(n, 8, quality=0.2 * k, seed=k) for k, n in enumerate(NAMES)]
    return [plot_runs(runs, look=look, kind=kind) for kind in ("pr", "f", "box")]


def of_labels(look, path):
    rng = np.random.default_rng(0)
    labels = rng.random(300) < 0.4
    figures = []
    with style(look):
        for kind in (PRCurveDisplay, ROCCurveDisplay, DETCurveDisplay):
            drawn = []
            for k, name in enumerate(NAMES):
                make = bb.curves.pr if kind is PRCurveDisplay else bb.curves.roc
                make = bb.curves.det if kind is DETCurveDisplay else make
                curve = make(labels, labels * (0.5 + 0.5 * k) + rng.normal(size=300))
                drawn.append(kind.from_curve(curve, name=name))
            figures.append(plot_curves(drawn))
    return figures


def of_slices(look, path):
    runs = [
        simulated_run(n, 12, seed=k).with_groups(group_by="(?P<end>.)$")
        for k, n in enumerate(NAMES)
    ]
    return [plot_slices(runs, "end", look=look)]


def of_further_kinds(look, path):
    """Tolerances, bins of calibration, a saliency curve and a history."""
    several = bb.Protocol(thresholds=9, max_dist=(0.03, 0.015, 0.0075))
    rng, runs = np.random.default_rng(3), []
    truth = [rng.random((24, 32)) < 0.1 for _ in range(6)]
    masks = [np.kron(t[:6, :8], np.ones((4, 4), bool)) for t in truth]
    for name in NAMES:
        noise = [0.5 * rng.random(t.shape) for t in truth]
        items = [
            (str(i), t * 0.5 + n, [t]) for i, (t, n) in enumerate(zip(truth, noise, strict=True))
        ]
        soft = [(str(i), m * 0.5 + n, m) for i, (m, n) in enumerate(zip(masks, noise, strict=True))]
        lines = bb.evaluate_items(items, several, name=name, workers=1)
        metrics = ["calibration", "saliency"]
        areas = bb.evaluate_items(soft, "saliency", metrics=metrics, name=name, workers=1)
        runs.append((lines, areas))
    lines, areas = zip(*runs, strict=True)
    return [
        plot_runs(lines, look=look, kind="tolerance"),
        plot_runs(areas, look=look, kind="reliability"),
        plot_runs(areas, look=look, metric="saliency"),
        plot_history(lines, look=look),
    ]


def of_pictures(look, path):
    picture = np.zeros((32, 48, 3), np.uint8)
    rows = {f"image{k}": [(picture, f"F .{k}12")] * 4 for k in range(3)}
    headings = ["picture", "ground truth", "one", "two with a longer name"]
    return [draw_grid(headings, rows, path / "grid.pdf", look)]


def texts_of(figure):
    texts = [*figure.texts, *([figure._supxlabel] if figure._supxlabel else [])]
    for ax in figure.axes:
        if ax.axison:
            texts += [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
    for legend in (*figure.legends, *(ax.get_legend() for ax in figure.axes)):
        texts += legend.get_texts() if legend else []
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


@pytest.mark.slow
@pytest.mark.parametrize("look", ["page", "column"])
@pytest.mark.parametrize("draw", [of_runs, of_labels, of_slices, of_further_kinds, of_pictures])
def test_no_text_lies_on_another(draw, look, tmp_path):
    for figure in draw(look, tmp_path):
        figure.draw_without_rendering()
        boxes = [(t.get_text(), t.get_window_extent()) for t in texts_of(figure)]
        assert boxes
        whole = figure.bbox
        for text, box in boxes:
            assert -1 <= box.x0 < box.x1 <= whole.width + 1, text
            assert -1 <= box.y0 < box.y1 <= whole.height + 1, text
        pairs = combinations(boxes, 2)
        assert [(a, b) for (a, one), (b, two) in pairs if one.overlaps(two)] == []
        for legend in filter(None, (ax.get_legend() for ax in figure.axes)):
            frame = legend.get_window_extent()
            for line in figure.axes[0].lines:
                path = line.get_transform().transform_path(line.get_path()).interpolated(50)
                inside = (path.vertices > frame.min) & (path.vertices < frame.max)
                assert not inside.all(axis=1).any(), line.get_label()
