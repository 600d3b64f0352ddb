"""Whole figures: what may stand together, how they look, and files that do not change."""

import threading
from xml.etree import ElementTree

import click
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.comparison.published import HUMAN_POINT, published_curves
from bsdsbench.detectors.baselines import BASELINES
from bsdsbench.plotting import (
    PRCurveDisplay,
    ROCCurveDisplay,
    plot_curves,
    plot_runs,
)
from bsdsbench.plotting.style import _next_line, curve_lines, save, style
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("better", 8, quality=0.4, seed=1),
        simulated_run("worse", 8, quality=0.0, seed=2),
    ]


@pytest.fixture(scope="module")
def nyu():
    return simulated_run("nyu", 8, protocol=bb.Protocol.preset("nyudv2"))


def legend_texts(figure):
    found = figure.axes[0].get_legend() or figure.legends[0]
    return [t.get_text() for t in found.get_texts()]


def colours(figure):
    lines = figure.axes[0].lines
    named = [line for line in lines if str(line.get_label()).startswith("[F=")]
    return {line.get_label().split()[-1]: to_hex(line.get_color()).upper() for line in named}


def test_runs_with_human_and_published_best_first(runs):
    figure = plot_runs(runs, published=("hed", "se"), human=True, force=True, ap=True)
    texts = legend_texts(figure)
    scores = [float(t[3:].partition("]")[0]) for t in texts]
    assert scores == sorted(scores, reverse=True)
    assert "[F=.788] HED (2015, published), AP .840" in texts
    assert "[F=.803] Human (BSDS500 test)" in texts
    assert len(texts) == 5
    lines = figure.axes[0].lines
    points = [tuple(line.get_xydata()[0]) for line in lines if len(line.get_xdata()) == 1]
    assert HUMAN_POINT in points
    hed = next(line for line in lines if "HED" in str(line.get_label()))
    stored = published_curves()["hed"]
    assert hed.get_xydata().tolist() == np.c_[stored.recall, stored.precision].tolist()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda a, b, o: plot_runs([a, o]), "better, nyu: protocols differ in max_dist"),
        (lambda a, b, o: plot_runs([o], published=["hed"]), "nyu: protocol nyudv2, but published"),
        (
            lambda a, b, o: plot_runs([], published=["hed", "oef-nyudv2-rgb"]),
            "curves of bsds500-test/boundary and of nyudv2-test/boundary",
        ),
        (lambda a, b, o: plot_runs([], published=["edter"]), "'edter': no curve is stored"),
        (lambda a, b, o: plot_runs([a], human=True), "better: 8 images, but published results"),
        (lambda a, b, o: plot_runs([]), "no runs given"),
        (lambda a, b, o: plot_runs([a], metric="region"), "'region' has no curve"),
    ],
)
def test_refusals(runs, nyu, draw, words):
    with pytest.raises(bb.DataError, match=words):
        draw(*runs, nyu)


@pytest.mark.parametrize("options", [["--published", "nope", "--ap"], ["--no-human"]])
def test_options_of_pr_curves_are_refused_for_other_kinds(options):
    with pytest.raises(click.UsageError, match="not with --kind f"):
        cli.main(["plot", "a", "b", "--kind", "f", "-o", "x.png", *options], standalone_mode=False)


def test_human_agreement_stands_beside_runs_of_its_images_alone(runs, nyu):
    for some in ([nyu], [runs[0], nyu]):
        assert len(legend_texts(plot_runs(some, force=True))) == len(some)
    whole = simulated_run("whole", 200)
    assert legend_texts(plot_runs([whole]))[0] == "[F=.803] Human (BSDS500 test)"


def test_many_curves_have_their_legend_beside_the_axes(runs):
    keys = ("hed", "rcf", "cob", "se", "mcg", "rds")
    figure = plot_runs(runs, published=keys, human=True, force=True)
    figure.draw_without_rendering()
    (ax,), (legend,) = figure.axes, figure.legends
    assert len(legend_texts(figure)) == 9
    assert legend.get_window_extent().x0 >= ax.bbox.x1
    assert ax.bbox.width > 0.8 * figure.bbox.height
    assert ax.yaxis.get_tightbbox().x0 > 0


@pytest.mark.parametrize(
    ("look", "size"), [("column", (3.3, 3.3)), ("page", (6.9, 6.9 / 1.9)), ("screen", (4.4, 4.4))]
)
def test_long_names_stay_inside_the_figure_whole(runs, look, size):
    names = [letter + "$x" * 100 + letter for letter in "ab"]
    figure = plot_runs(runs, names, look=look)
    assert tuple(figure.get_size_inches()) == pytest.approx(size)
    figure.draw_without_rendering()
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    shown = legend.get_window_extent()
    assert -1 <= shown.x0 < shown.x1 <= figure.bbox.width + 1
    assert figure.axes[0].bbox.width > 0.3 * figure.bbox.width
    assert {"".join(text.split())[8:] for text in legend_texts(figure)} == {*names}


def test_a_method_keeps_its_colour_whatever_else_is_drawn(runs):
    whole = colours(plot_runs(runs))
    for some in (runs[::-1], runs[1:]):
        assert colours(plot_runs(some)) == {run.name: whole[run.name] for run in some}
    assert [c for c, _ in curve_lines([run.name for run in runs])] == [*whole.values()]
    assert (
        whole["better"]
        == _next_line("better", ())[0]
        == _next_line("BETTER (2015, published)", ())[0]
    )


def test_no_two_methods_are_drawn_alike(runs):
    assert len({_next_line(name, ())[0] for name in BASELINES}) == len(BASELINES)
    names = [f"m{i}" for i in range(27)]
    (ax,) = plot_runs([runs[0]] * len(names), names).axes
    lines = [line for line in ax.lines if str(line.get_label()).startswith("[F=")]
    looks = {(to_hex(line.get_color()), str(line._dash_pattern)) for line in lines}
    assert len(looks) == len(lines) == len(names)


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_files_are_the_same_bytes_each_time_and_signed(runs, suffix, tmp_path):
    """As PIL reads a PNG's text, an XML parser an SVG's metadata, and the bytes of a PDF's info."""
    path = tmp_path / f"a.{suffix}"
    first = save(plot_runs(runs), path).read_bytes()
    plot_runs(runs, path=path)
    assert path.read_bytes() == first
    expected = "\n".join(f"{run.name}: {run.signature}" for run in runs)
    if suffix == "png":
        with Image.open(path) as picture:
            assert picture.text["Description"] == expected
    elif suffix == "svg":
        (told,) = ElementTree.parse(path).iter("{http://purl.org/dc/elements/1.1/}description")
        assert told.text == expected
    else:
        escaped = expected.replace("(", r"\(").replace(")", r"\)").replace("\n", r"\n")
        assert b"/Subject (" in first
        assert escaped.encode() in first or expected.encode() in first


def test_pyplot_shows_what_is_drawn_and_not_what_is_written(runs, tmp_path):
    shown = PRCurveDisplay.from_evaluation(runs[0]).plot()
    before = plt.get_fignums()
    assert shown.figure_.number in before
    with style(file=True):
        PRCurveDisplay.from_evaluation(runs[0]).plot()
    plot_runs(runs, path=tmp_path / "a.png")
    plot_curves([ROCCurveDisplay([0, 1], [1, 1])], tmp_path / "b.png")
    PRCurveDisplay.from_evaluation(runs[0]).plot(Figure().add_subplot())
    beside = threading.Thread(target=lambda: PRCurveDisplay([0, 1], [1, 1]).plot())
    beside.start()
    beside.join()
    assert plt.get_fignums() == before


def test_a_users_settings_survive(runs):
    with plt.rc_context({"lines.linewidth": 7.5}):
        with style():
            PRCurveDisplay.from_evaluation(runs[0]).plot()
        assert plt.rcParams["lines.linewidth"] == 7.5
