"""How pictures look: colours by name, legends that hide nothing, bands, sizes, pyplot."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from bsdsbench.comparison.curve_band import CurveBand, bootstrap_band
from bsdsbench.integrations.baselines import BASELINES
from bsdsbench.plotting import PRCurveDisplay, ROCCurveDisplay, plot_curves, plot_runs, plot_scatter
from bsdsbench.plotting.palette import PIXELS, color_of, lines_of
from bsdsbench.plotting.style import for_file, pictures, style
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def runs():
    return [simulated_run(n, 8, quality=q, seed=1) for n, q in (("a", 0.4), ("b", 0.2), ("c", 0.0))]


def colours(figure):
    lines = figure.axes[0].lines
    named = [line for line in lines if str(line.get_label()).startswith("[F=")]
    return {line.get_label().split()[-1]: to_hex(line.get_color()).upper() for line in named}


@pytest.mark.slow
def test_a_method_keeps_its_colour_whatever_else_is_drawn(runs):
    whole = colours(plot_runs(runs))
    assert len(set(whole.values())) == 3
    for some in (runs[::-1], runs[1:], runs[:1], runs[2:]):
        assert colours(plot_runs(some)) == {run.name: whole[run.name] for run in some}
    assert colours(plot_runs(runs[:1]))["a"] == color_of("a") == color_of("A (2015, published)")


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("count", [2, 12, 45])
def test_no_two_methods_share_a_colour(runs, grey, count):
    many = [replace(runs[0], name=f"m{i}") for i in range(count)]
    figure = plot_runs(many, grey=grey)
    assert len(set(colours(figure).values())) == count
    if not grey:
        assert [c for c, _ in lines_of([f"m{i}" for i in range(count)])] == [
            *colours(figure).values()
        ]


def test_the_detectors_that_ship_have_colours_of_their_own():
    assert len({color_of(name) for name in BASELINES}) == len(BASELINES)


def test_a_second_curve_joins_the_legend_which_then_hides_neither():
    """The first leaves the corner free, the second runs through it."""
    first = PRCurveDisplay([0, 1], [0.9, 0.9], name="high").plot()
    size = tuple(first.figure_.get_size_inches())
    assert [t.get_text() for t in first.ax_.get_legend().get_texts()] == ["high"]
    PRCurveDisplay([0, 1], [0.1, 0.1], name="low").plot(first.ax_)
    assert first.ax_.get_legend() is None
    (legend,) = first.figure_.legends
    assert [t.get_text() for t in legend.get_texts()] == ["high", "low"]
    PRCurveDisplay([0, 1], [0.5, 0.5], name="mid").plot(first.ax_)
    assert len(first.figure_.legends) == 1
    grown = first.figure_.get_size_inches()
    assert size[1] < grown[1] < size[1] + 0.7  # the room of earlier legends is given back


@pytest.mark.parametrize("what", ["chance", "point", "band"])
def test_a_legend_hides_no_other_mark(what):
    if what == "chance":  # seven long names, lower right, would lie on the diagonal
        perfect = [0, 0, 1], [0, 1, 1]
        many = [
            ROCCurveDisplay(*perfect, name=f"a name of some length and more, {i}") for i in range(7)
        ]
        figure = plot_curves(many)
    elif what == "point":
        figure = ROCCurveDisplay([0, 0, 1], [0, 1, 1], name="x", eer=0.95).plot().figure_
    else:
        band = CurveBand(np.array([0, 1]), np.array([0.02, 0.8]), np.array([0.9, 0.9]))
        figure = PRCurveDisplay([0, 1], [0.9, 0.9], name="x", band=band).plot().figure_
    assert figure.axes[0].get_legend() is None
    assert len(figure.legends) == 1


@pytest.mark.parametrize("images", [3, 8])
def test_a_band_goes_from_one_end_of_its_curve_to_the_other_without_spikes(images):
    """Also where the highest thresholds have no prediction: (0, 0) is no point of a curve."""
    run = simulated_run("x", images, quality=0.3, seed=3)
    records = []
    for record in run.records:
        c = record.counts["boundary"]
        t = c.thresholds > 0.9
        arrays = {
            name: np.where(t, 0, getattr(c, name)) if name != "total_gt" else c.total_gt
            for name in ("matched_gt", "total_gt", "matched_pred", "total_pred")
        }
        records.append(replace(record, counts={"boundary": type(c)(c.thresholds, **arrays)}))
    run = replace(run, records=tuple(records))
    band = bootstrap_band(run, n_boot=300)
    shown = PRCurveDisplay.from_evaluation(run)
    assert band.recall[[0, -1]] == pytest.approx([shown.recall.min(), shown.recall.max()])
    curve = np.interp(band.recall, shown.recall[::-1], shown.precision[::-1])
    assert (band.low <= curve + 1e-9).all()
    assert (band.high >= curve - 1e-9).all()
    slope = np.abs(np.diff(curve)).max()
    for edge in (band.low, band.high):
        assert np.abs(np.diff(edge)).max() < slope + 0.05


@pytest.mark.parametrize("draw", [plot_runs, plot_scatter])
def test_a_page_is_filled_to_both_sides(runs, draw):
    figure = draw(runs[:2], look="page")
    figure.draw_without_rendering()
    boxes = [figure.axes[0].get_tightbbox(), *(x.get_window_extent() for x in figure.legends)]
    left, right = min(b.x0 for b in boxes), max(b.x1 for b in boxes)
    assert right - left > 0.95 * figure.bbox.width
    gap = 0 if draw is plot_scatter else boxes[1].x0 - boxes[0].x1
    assert gap < 0.05 * figure.bbox.width


@pytest.mark.slow
def test_files_of_a_figure_share_one_layout_until_it_changes(runs, tmp_path, monkeypatch):
    engine, layouts = ConstrainedLayoutEngine, []
    execute = engine.execute
    monkeypatch.setattr(engine, "execute", lambda self, fig: layouts.append(execute(self, fig)))
    figure, names = plot_runs(runs), [tmp_path / "a.png", tmp_path / "a.svg"]
    assert len(layouts) == 1  # for the legend
    first, again = pictures(figure, names), pictures(figure, names)
    assert first == again
    before, count = figure.axes[0].get_position().y0, len(layouts)
    figure.axes[0].set_xlabel("two\nlines")
    assert pictures(figure, names) != first
    assert len(layouts) == count + 1
    assert figure.axes[0].get_position().y0 > before
    assert isinstance(figure.get_layout_engine(), engine)


@pytest.mark.slow
def test_pyplot_shows_what_is_drawn_and_not_what_is_written(runs, tmp_path):
    shown = PRCurveDisplay.from_evaluation(runs[0]).plot()
    assert plt.get_fignums() == [shown.figure_.number]
    assert plot_runs(runs) in map(plt.figure, plt.get_fignums())
    before = plt.get_fignums()
    with for_file():
        PRCurveDisplay.from_evaluation(runs[0]).plot()
    plot_runs(runs, path=tmp_path / "a.png")
    plot_curves([PRCurveDisplay([0, 1], [1, 1])], tmp_path / "b.png")
    ax = Figure().add_subplot()
    assert PRCurveDisplay.from_evaluation(runs[0]).plot(ax).ax_ is ax
    beside = threading.Thread(target=lambda: PRCurveDisplay([0, 1], [1, 1]).plot())
    beside.start()
    beside.join()
    assert plt.get_fignums() == before


@pytest.mark.process
@pytest.mark.parametrize("backend", ["", "TkAgg"])
def test_without_a_display_a_figure_is_made_all_the_same(backend, tmp_path):
    words = (
        "from bsdsbench.plotting import PRCurveDisplay\n"
        "shown = PRCurveDisplay([0, 1], [1, 0.5], name='x').plot()\n"
        "shown.figure_.savefig('x.png')\n"
        "import sys; print('matplotlib.pyplot' in sys.modules)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"MPLBACKEND": backend} if backend else {}
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "x.png").stat().st_size > 3000


def test_a_users_settings_survive(runs):
    plt.rcParams["lines.linewidth"] = 7.5
    with style():
        PRCurveDisplay.from_evaluation(runs[0]).plot()
    assert plt.rcParams["lines.linewidth"] == 7.5
    plt.rcdefaults()


def test_overlays_and_pages_have_one_code_of_colours():
    from bsdsbench.report.overlays import COLORS, FALSE, MATCHED, MISSED

    for word, k in (("matched", MATCHED), ("false", FALSE), ("missed", MISSED)):
        assert "#{:02X}{:02X}{:02X}".format(*COLORS[k]) == PIXELS[word]
