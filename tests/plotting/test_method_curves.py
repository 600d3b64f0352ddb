"""Curves of methods of several runs: the mean at equal recall, its band, every run thin."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.method import Spread
from bsdsbench.plotting import plot_runs
from bsdsbench.plotting.method_curves import _average_curves
from tests.helpers.runs import call, refused
from tests.helpers.simulated import simulated_run

N_IMAGES = 8


@pytest.fixture(scope="module")
def seeds():
    return [simulated_run(f"s{k}", N_IMAGES, quality=0.1 * k, seed=k) for k in range(3)]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts_of(figure):
    shown = figure.axes[0].get_legend() or figure.legends[0]
    return [t.get_text().replace("\n", " ") for t in shown.get_texts()]


def precision_by_hand(run, level):
    """Between the two neighbouring points of the curve; of equal recalls the lowest threshold."""
    curve = run.boundary_score().curve
    points = {}
    for r, p in zip(curve.recall.tolist(), curve.precision.tolist(), strict=True):
        if r > 0 or p > 0:
            points.setdefault(r, p)
    below, above = max(r for r in points if r <= level), min(r for r in points if r >= level)
    if below == above:
        return points[below]
    share = (level - below) / (above - below)
    return points[below] * (1 - share) + points[above] * share


@pytest.mark.parametrize(
    ("spread", "half"),
    [("sd", lambda p: np.std(p, ddof=1)), ("se", lambda p: np.std(p, ddof=1) / 3**0.5)],
)
def test_the_mean_is_at_equal_recall(seeds, spread, half):
    figure = plot_runs([], methods=[bb.Method("ours", seeds)], spread=spread)
    (line, *_) = figure.axes[0].lines
    x, y = line.get_xdata(), line.get_ydata()
    (band,) = (c for c in figure.axes[0].collections if c.get_alpha() == 0.2)
    edges = band.get_paths()[0].vertices
    for level in x[:: len(x) // 9]:
        by_hand = [precision_by_hand(run, level) for run in seeds]
        drawn = np.interp(level, x, y)
        assert drawn == pytest.approx(np.mean(by_hand))
        ends = edges[edges[:, 0] == level][:, 1]
        assert min(ends) == pytest.approx(drawn - half(by_hand))
        assert max(ends) == pytest.approx(drawn + half(by_hand))
    recalls = [run.boundary_score().curve.recall for run in seeds]
    assert x[-1] == min(r.max() for r in recalls)
    ods = [run.boundary_score().ods.f for run in seeds]
    first, how = texts_of(figure)[:2]
    assert first.startswith(f"[F={np.mean(ods):.3f} ± ")
    assert first.endswith("ours (3 runs)")
    assert "mean precision at equal recall; band: ± standard" in how


def test_the_range_is_that_of_the_runs(seeds):
    figure = plot_runs([], methods=[bb.Method("ours", seeds)], spread="range", ap=True)
    ods = [run.boundary_score().ods.f for run in seeds]
    text = texts_of(figure)[0]
    assert f"{min(ods):.3f} to {max(ods):.3f}" in text
    assert "AP 0." in text
    assert "smallest to largest" in texts_of(figure)[1]


def test_equal_runs_have_their_own_curve_and_no_width(seeds):
    figure = plot_runs([], methods=[bb.Method("ours", [seeds[0]] * 3)])
    (line, *_) = figure.axes[0].lines
    curve = seeds[0].boundary_score().curve
    own = {(r, p) for r, p in zip(curve.recall, curve.precision, strict=True) if r or p}
    assert {*zip(line.get_xdata(), line.get_ydata(), strict=True)} <= own
    (band,) = (c for c in figure.axes[0].collections if c.get_alpha() == 0.2)
    assert {tuple(v) for v in band.get_paths()[0].vertices} <= own


@pytest.mark.parametrize("kind", ["pr", "f"])
@pytest.mark.parametrize("each_run", [False, True])
def test_one_run_is_drawn_as_without_methods(seeds, kind, each_run):
    alone = plot_runs([seeds[0]], ["ours"], kind=kind)
    method = bb.Method("ours", seeds[:1])
    figure = plot_runs([], methods=[method], kind=kind, each_run=each_run)
    for a, b in zip(alone.axes[0].lines, figure.axes[0].lines, strict=True):
        assert np.array_equal(a.get_xydata(), b.get_xydata())
        assert (a.get_label(), a.get_color()) == (b.get_label(), b.get_color())
    assert texts_of(alone) == texts_of(figure)


def test_every_run_thin_in_one_colour(seeds):
    other = simulated_run("other", N_IMAGES, quality=-1)
    figure = plot_runs([other], methods=[bb.Method("ours", seeds)], each_run=True)
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 1]
    colours = [line.get_color() for line in lines]
    assert len({*colours}) == 2
    assert colours.count(colours[1]) == 3
    widths = [line.get_linewidth() for line in lines]
    assert widths[1:] == [widths[0] / 2] * 3
    assert texts_of(figure)[-1] == "of several runs: every run's own curve"
    assert texts_of(figure)[1].endswith("other")  # the lower F


def test_f_over_threshold_is_averaged(seeds):
    figure = plot_runs([], methods=[bb.Method("ours", seeds)], kind="f")
    (line, *_) = figure.axes[0].lines
    mean = np.mean([run.boundary_score().curve.f for run in seeds], axis=0)
    drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    thresholds = seeds[0].protocol.threshold_array()
    for threshold, f in zip(thresholds, mean, strict=True):
        assert drawn.get(threshold, 0) == pytest.approx(f)


def test_what_has_no_mean_is_refused(seeds):
    fewer = simulated_run("fewer", N_IMAGES - 1)
    refused(
        "m/s0, m/fewer: images: 8, 7 of both", plot_runs, [],
        methods=[bb.Method("m", [seeds[0], fewer])],
    )  # fmt: skip
    unordered = bb.Method("egb", ["ref:egb", "ref:mshift"])
    refused("no order", plot_runs, [], methods=[unordered])
    refused(
        "'box': expected one run each", plot_runs, [], methods=[bb.Method("m", seeds)], kind="box"
    )


@pytest.mark.slow
def test_the_command_line(seeds, tmp_path):
    for run in seeds:
        run.save(tmp_path / "ours" / run.name)
    method = f"ours={tmp_path}/ours/s*"
    file = tmp_path / "pr.pdf"
    call("plot", "--method", method, "--each-run", tmp_path / "ours/s0", "-o", file)
    assert file.stat().st_size
    ranks = tmp_path / "ranks.png"
    other = f"base={tmp_path}/ours/s0"
    call(
        "plot",
        "--kind",
        "ranks",
        "--method",
        method,
        "--method",
        other,
        "--n-boot",
        50,
        "-o",
        ranks,
    )
    assert ranks.stat().st_size


def test_a_vertical_end_does_not_slope():
    """Precision is 1 up to recall 0.6, where it falls, as that of maps that are nearly binary."""
    first = np.array([[0.6, 0.6, 0.1], [0.2, 1.0, 1.0]])  # recall and precision; thresholds ascend
    second = np.array([[0.7, 0.7, 0.3, 0.1], [0.3, 1.0, 1.0, 1.0]])
    band = _average_curves([first, second], Spread.RANGE)
    assert band.x.tolist() == [0.1, 0.3, 0.6]
    assert band.mean.tolist() == band.low.tolist() == [1, 1, 1]


def test_the_mean_leaves_out_points_where_recall_falls_again():
    """By hand: recall .2, .6, .5 as the threshold falls; the point (.5, .1) is on the way back."""
    turning = np.array([[0.5, 0.6, 0.2], [0.1, 0.4, 0.8]])  # thresholds ascend
    straight = np.array([[0.6, 0.2], [0.4, 0.8]])
    band = _average_curves([turning, straight], Spread.RANGE)
    np.testing.assert_array_equal(band.x, [0.2, 0.6])
    np.testing.assert_array_equal(band.mean, [0.8, 0.4])
    np.testing.assert_array_equal(band.low, band.high)
