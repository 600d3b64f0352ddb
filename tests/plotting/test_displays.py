"""Benchmark pictures by their artists: what is drawn where, and files that do not change."""

from dataclasses import replace
from xml.etree import ElementTree

import click
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.comparison.curve_band import bootstrap_band
from bsdsbench.comparison.published import HUMAN_POINT, published_curves
from bsdsbench.plotting import (
    FThresholdDisplay,
    ImageScatterDisplay,
    PRCurveDisplay,
    ROCCurveDisplay,
    plot_curves,
    plot_f,
    plot_runs,
    plot_scatter,
)
from bsdsbench.plotting.curve_display import short
from bsdsbench.plotting.style import iso_f_points, save, style
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("better", 8, quality=0.4, seed=1),
        simulated_run("worse", 8, quality=0.0, seed=2),
    ]


def legend_texts(figure):
    found = figure.axes[0].get_legend() or figure.legends[0]
    return [t.get_text() for t in found.get_texts()]


def test_pr_display_draws_the_curve_and_its_best_point(runs):
    shown = PRCurveDisplay.from_evaluation(runs[0], name="mine").plot()
    score = runs[0].boundary_score()
    np.testing.assert_array_equal(shown.line_.get_xdata(), score.curve.recall)
    np.testing.assert_array_equal(shown.line_.get_ydata(), score.curve.precision)
    assert shown.point_.get_xdata()[0] == score.ods.recall
    assert shown.point_.get_ydata()[0] == score.ods.precision
    assert shown.ax_.get_xlabel() == "Recall"
    assert legend_texts(shown.figure_) == [f"[F={short(score.ods.f)}] mine"]


def test_thresholds_without_predictions_are_not_drawn():
    t = np.array([0.2, 0.5, 0.8])
    counts = BoundaryCounts(t, [4, 2, 0], [5, 5, 5], [4, 2, 0], [8, 2, 0])
    record = ImageRecord("a", (5, 7), {"boundary": counts})
    proto = bb.Protocol(thresholds=tuple(t))
    shown = PRCurveDisplay.from_evaluation(bb.Evaluation(proto, "x", (record,))).plot()
    assert shown.line_.get_xydata().tolist() == [[0.8, 0.5], [0.4, 1.0]]


def test_displays_on_one_axes_get_colours_names_and_lines_of_equal_f_once(runs):
    ax = Figure().add_subplot()
    shown = [PRCurveDisplay.from_evaluation(run).plot(ax) for run in (*runs, runs[0])]
    assert all(d.ax_ is ax for d in shown)
    assert len({d.line_.get_color() for d in shown}) == 3
    assert len(ax.lines) == 3 * 2 + 9
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim()) == ("Recall", "Precision", (0, 1))
    given = PRCurveDisplay.from_evaluation(runs[0]).plot(ax, color="red", iso_f=True)
    assert given.point_.get_color() == "red"
    assert len(ax.lines) == 4 * 2 + 9


def test_axes_in_use_keep_limits_and_names(runs):
    ax = Figure().add_subplot()
    ax.set(xlim=(0.4, 0.9), ylabel="mine")
    PRCurveDisplay.from_evaluation(runs[0]).plot(ax)
    assert (ax.get_xlim(), ax.get_xlabel(), ax.get_ylabel()) == ((0.4, 0.9), "Recall", "mine")
    assert len(ax.lines) == 2
    other = Figure().add_subplot()
    FThresholdDisplay.from_evaluation(runs[0]).plot(other)
    assert other.get_ylabel() == "F-measure"


@pytest.mark.parametrize("f", [0.1, 0.5, 0.9])
def test_lines_of_equal_f_are_smooth(f):
    recall, precision = iso_f_points(f)
    np.testing.assert_allclose(2 * recall * precision / (recall + precision), f, rtol=1e-12)
    assert (recall[-1], precision[0]) == pytest.approx((1, 1))
    steps = np.diff(np.c_[recall, precision], axis=0)
    angles = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    assert np.abs(np.diff(np.degrees(angles))).max() < 2  # degrees; 60 even steps of recall: 20


@pytest.mark.slow
def test_styles_for_paper(runs, tmp_path):
    sizes = {}
    for look in ("screen", "column", "page"):
        figure = plot_runs(runs, look=look)
        sizes[look] = tuple(figure.get_size_inches())
    assert sizes["column"] == pytest.approx((3.3, 3.3))
    assert sizes["page"] == pytest.approx((6.9, 6.9 / 1.9))
    with pytest.raises(bb.DataError, match="style 'wall': expected one of screen, column, page"):
        plot_runs(runs, look="wall")
    grey = plot_runs(runs, grey=True)
    for line in grey.axes[0].lines:
        r, g, b = to_rgb(line.get_color())
        assert r == g == b


@pytest.mark.parametrize("look", ["screen", "column"])
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.slow
def test_labels_touch_no_dot_and_no_label(look, seed):
    rng = np.random.default_rng(seed)
    points = 0.6 + 0.12 * rng.normal(size=(40, 2)).clip(-3, 3)
    with style(look):
        shown = ImageScatterDisplay(*points.T, [f"image{i}" for i in range(40)]).plot(label=4)
    figure = shown.figure_
    for dpi in (100, 200):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        boxes = [Text.get_window_extent(note) for note in shown.labels_]
        assert len(boxes) == 4
        dots = shown.ax_.transData.transform(points)
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
            gap = np.maximum(np.maximum(box.min - dots, dots - box.max), 0)
            assert np.hypot(*gap.T).min() * 72 / dpi > np.sqrt(14) / 2  # the radius of a dot
            assert shown.ax_.bbox.padded(1).contains(*box.min)
            assert shown.ax_.bbox.padded(1).contains(*box.max)


def test_runs_that_do_not_compare_are_not_drawn_together(runs):
    other = simulated_run("nyu", 8, protocol=bb.Protocol.preset("nyudv2"))
    with pytest.raises(bb.DataError, match="nyu, better: protocols differ in max_dist"):
        plot_runs([runs[0], other])
    with pytest.raises(bb.DataError, match="protocols differ"):
        plot_f([runs[0], other])
    assert len(legend_texts(plot_runs([runs[0], other], force=True))) == 2
    with pytest.raises(bb.DataError, match="nyu: protocol nyudv2, but published results are of"):
        plot_runs([other], published=["hed"])
    with pytest.raises(
        bb.DataError, match="curves of bsds500-test/boundary and of nyudv2-test/boundary"
    ):
        plot_runs([], published=["hed", "oef-nyudv2-rgb"])
    with pytest.raises(bb.DataError, match="published 'edter': no curve is stored, expected rob"):
        plot_runs([], published=["edter"])
    with pytest.raises(bb.DataError, match="better: 8 images, but published results are of the"):
        plot_runs(runs[:1], human=True)
    assert len(legend_texts(plot_runs([other]))) == 1  # no human point unasked
    whole = simulated_run("whole", 200)
    assert legend_texts(plot_runs([whole]))[0] == "[F=.803] Human (BSDS500 test)"


def test_band_lies_around_the_curve(runs):
    band = bootstrap_band(runs[0], n_boot=100)
    shown = PRCurveDisplay.from_evaluation(runs[0], band=band).plot()
    low, high = shown.band_.get_paths()[0].get_extents().intervaly
    assert (low, high) == (band.low.min(), band.high.max())


def test_many_runs_with_human_and_published(runs):
    figure = plot_runs(runs, published=("hed", "se"), human=True, force=True, ap=True)
    texts = legend_texts(figure)
    scores = [float(t[3:].partition("]")[0]) for t in texts]
    assert scores == sorted(scores, reverse=True)
    assert "[F=.788] HED (2015, published), AP .840" in texts
    assert "[F=.803] Human (BSDS500 test)" in texts
    assert len(texts) == 5
    ax = figure.axes[0]
    points = [tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    assert HUMAN_POINT in points
    hed = next(line for line in ax.lines if "HED" in str(line.get_label()))
    stored = published_curves()["hed"]
    assert hed.get_xydata().tolist() == np.c_[stored.recall, stored.precision].tolist()


def test_a_long_legend_stands_beneath(runs):
    keys = ("hed", "rcf", "cob", "se", "mcg", "rds")
    figure = plot_runs(runs, published=keys, human=True, force=True)
    assert figure.axes[0].get_legend() is None
    assert len(legend_texts(figure)) == 9


def test_f_over_threshold(runs):
    shown = FThresholdDisplay.from_evaluation(runs[0]).plot()
    score = runs[0].boundary_score()
    np.testing.assert_array_equal(shown.line_.get_ydata(), score.curve.f)
    assert shown.point_.get_xydata().tolist() == [[score.ods.threshold, score.ods.f]]
    assert len(legend_texts(plot_f(runs))) == 2


def test_scatter_pairs_the_images(runs):
    shown = ImageScatterDisplay.from_evaluations(runs[1], runs[0]).plot(label=2)
    x = dict(runs[1].boundary_score().per_image)
    y = dict(runs[0].boundary_score().per_image)
    expected = [[x[i].f, y[i].f] for i in sorted(x)]
    assert shown.points_.get_offsets().tolist() == expected
    better = sum(b > a for a, b in expected)
    assert f"better:\nbetter on {better}, worse on {8 - better}" in shown.ax_.get_title()
    widest = max(sorted(x), key=lambda i: abs(x[i].f - y[i].f))
    assert shown.ax_.texts[0].get_text() == widest
    assert len(shown.ax_.texts) == 2


def test_names_with_dollars_stay_text(runs, tmp_path):
    odd = replace(runs[0], name="$x_1$ <b>")
    figure = plot_runs([odd], human=False, path=tmp_path / "odd.svg")
    found = figure.axes[0].get_legend().get_texts()[0]
    assert found.get_text().endswith("$x_1$ <b>")
    assert not found.get_parse_math()


@pytest.mark.slow
def test_files_are_the_same_bytes_each_time(runs, tmp_path):
    for kind in ("runs", "rankings"):
        found = []
        for _ in range(2):
            if kind == "runs":
                figure = plot_runs(runs)
            else:
                display = ROCCurveDisplay.from_scores([1, -1], [2, 1], "cost $5 $x^")
                figure = plot_curves([display])
            suffixes = ("pdf", "svg", "png")
            found.append([save(figure, tmp_path / f"a.{s}").read_bytes() for s in suffixes])
        assert found[0] == found[1]
        assert min(map(len, found[0])) > 3000
    assert len(list(tmp_path.iterdir())) == 3


def test_refusals(runs):
    with pytest.raises(bb.DataError, match="published method 'nope': expected such as"):
        plot_runs(runs, published=("nope",))
    with pytest.raises(bb.DataError, match="1 names for 2 runs"):
        plot_runs(runs, names=["a"])
    with pytest.raises(bb.DataError, match="no runs given"):
        plot_runs([])
    with pytest.raises(bb.DataError, match="'region': has no precision-recall curve"):
        plot_runs(runs, metric="region")
    with pytest.raises(bb.DataError, match="1 runs, expected two"):
        plot_scatter(runs[:1])
    fewer = replace(runs[1], records=runs[1].records[1:])
    with pytest.raises(bb.DataError, match="image 'im0000' is in one only"):
        ImageScatterDisplay.from_evaluations(runs[0], fewer)


@pytest.mark.parametrize("kind", ["f", "scatter"])
def test_options_of_pr_curves_are_refused_for_other_kinds(kind):
    words = ["plot", "a", "b", "--kind", kind, "-o", "x.png", "--published", "nope"]
    with pytest.raises(click.UsageError, match=f"--published, --band: not with --kind {kind}"):
        cli.main([*words, "--band"], standalone_mode=False)
    with pytest.raises(click.UsageError, match=f"--human: not with --kind {kind}"):
        cli.main([*words[:-2], "--no-human"], standalone_mode=False)


@pytest.mark.parametrize(("start", "inside"), [(0.9, True), (0.05, False)])
def test_a_legend_hides_no_curve(start, inside):
    """A curve that runs through the lower left corner has its legend beneath the axes."""
    shown = PRCurveDisplay([0, 1], [start, 0.9], name="some method").plot()
    assert (shown.ax_.get_legend() is not None) == inside
    assert len(shown.figure_.legends) == (not inside)


@pytest.mark.parametrize("look", ["screen", "column", "page"])
@pytest.mark.parametrize("draw", [plot_runs, plot_f])
@pytest.mark.parametrize("letters", [40, 70, 200])
def test_long_names_stay_inside_the_figure_and_apart(runs, draw, look, letters):
    names = ["a" + "x" * (letters - 2) + "b", "c" + "x" * (letters - 2) + "d"]
    named = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    figure = draw(named, look=look)
    figure.draw_without_rendering()
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    width, shown = figure.bbox.width, legend.get_window_extent()
    assert -1 <= shown.x0 < shown.x1 <= width + 1
    assert figure.axes[0].bbox.width > 0.3 * width
    texts = {text.get_text() for text in legend.get_texts()}
    assert {text[text.index("]") + 2] + text[-1] for text in texts} == {"ab", "cd"}
    if letters == 200:
        assert all("\N{HORIZONTAL ELLIPSIS}" in text for text in texts)


@pytest.mark.parametrize("draw", [plot_runs, plot_f, plot_scatter])
@pytest.mark.slow
def test_every_file_has_the_signatures_of_its_runs(runs, draw, tmp_path):
    """As PIL reads a PNG's text, an XML parser an SVG's metadata, and the bytes of a PDF's info."""
    figure = draw(runs, path=tmp_path / "a.png")
    expected = "\n".join(f"{run.name}: {run.signature}" for run in runs)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.text["Description"] == expected
    save(figure, tmp_path / "a.svg")
    tree = ElementTree.parse(tmp_path / "a.svg")
    (told,) = tree.iter("{http://purl.org/dc/elements/1.1/}description")
    assert told.text == expected
    save(figure, tmp_path / "a.pdf")
    escaped = expected.replace("(", r"\(").replace(")", r"\)").replace("\n", r"\n")
    found = (tmp_path / "a.pdf").read_bytes()
    assert b"/Subject (" in found
    assert escaped.encode() in found or expected.encode() in found
    first = (tmp_path / "a.png").read_bytes()
    draw(runs, path=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == first
