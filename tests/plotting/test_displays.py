"""Curves by their artists: what is drawn where."""

from contextlib import nullcontext

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import bsdsbench as bb
from bsdsbench import curves, plotting
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.plotting import (
    DETCurveDisplay,
    FThresholdDisplay,
    PRCurveDisplay,
    ReliabilityDisplay,
    ROCCurveDisplay,
    plot_curves,
    plot_spaces,
)
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run

LABELS = np.array([-1, 1, -1, 1, -1, 1, -1])
SCORES = np.array([1.0, 2, 3, 5, 4, 7, 6])


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("better", 8, quality=0.4, seed=1),
        simulated_run("worse", 8, quality=0.0, seed=2),
    ]


def samples(n=500, gap=1.5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    return labels, gap * (labels > 0) + rng.normal(size=n)


def xy(line):
    return [np.asarray(v).tolist() for v in line.get_data()]


def legend_texts(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def test_a_run_is_drawn_with_its_best_point(runs):
    shown = PRCurveDisplay.from_evaluation(runs[0], "mine").plot()
    score = runs[0].boundary_score()
    assert xy(shown.line_) == [score.curve.recall.tolist(), score.curve.precision.tolist()]
    assert xy(shown.point_) == [[score.ods.recall], [score.ods.precision]]
    assert (shown.ax_.get_xlabel(), shown.ax_.get_xlim()) == ("Recall", (0, 1))
    assert legend_texts(shown.ax_) == [f"[F={score.ods.f:.3f}] mine"]


def test_a_run_is_given_or_its_folder_and_drawn_on_axes(runs, tmp_path):
    folder = runs[0].save(tmp_path / "out")
    lines = [PRCurveDisplay.from_evaluation(run).line_ for run in (runs[0], folder, str(folder))]
    assert xy(lines[0]) == xy(lines[1]) == xy(lines[2])
    refused("runs: None, expected runs or their folders", PRCurveDisplay.from_evaluation, None)
    for ax in ("ax", np.array([None, None])):
        refused("ax: .*, expected an Axes", PRCurveDisplay.from_evaluation(runs[0]).plot, ax)
    refused("runs: of type Evaluation, expected a list", plotting.plot_runs, runs[0])


def test_f_over_threshold(runs):
    shown = FThresholdDisplay.from_evaluation(runs[0]).plot()
    score = runs[0].boundary_score()
    assert xy(shown.line_)[1] == score.curve.f.tolist()
    assert xy(shown.point_) == [[score.ods.threshold], [score.ods.f]]


def test_reliability_has_the_filled_bins_and_the_line_of_what_is_calibrated():
    soft, gt = np.array([[0.9, 0.8, 0.1, 0.1]]), np.array([[True, False, False, True]])
    run = bb.evaluate_items([("a", soft, [gt])], "calibration", metrics="calibration", workers=1)
    shown = ReliabilityDisplay.from_evaluation(run, "m").plot()
    assert np.ravel(xy(shown.line_)) == pytest.approx([0.1, 0.8, 0.9, 0.5, 0, 1])
    assert xy(shown.chance_) == [[0, 1], [0, 1]]
    assert legend_texts(shown.ax_) == [f"m (ECE {run.score('calibration').ece:.3f})"]


def test_a_ranking_is_interpolated_and_has_its_numbers_and_chance():
    """The points of the page on interpolation: 5 of 10, then 10 of 40, of 20 positives."""
    scores = np.repeat([3.0, 2, 1], [10, 30, 20])
    labels = np.where(np.r_[np.arange(10), np.arange(30), np.arange(20) // 2] < 5, 1, -1)
    shown = PRCurveDisplay.from_predictions(labels, scores, "a").plot()
    points = dict(np.round(shown.line_.get_xydata(), 3))
    assert [points[r] for r in (0.25, 0.3, 0.35, 0.5)] == [0.5, 0.375, 0.318, 0.25]
    curve = curves.pr(labels, scores)
    assert shown.chance_.get_ydata() == pytest.approx([1 / 3, 1 / 3])
    area = curves.davis_goadrich_area(curve.tp, curve.fp, curve.positives)
    assert f"AUC (counts interpolated) {100 * area:.1f} %" in shown.ax_.get_title()
    assert legend_texts(shown.ax_) == [f"a (AP {curve.ap:.3f})"]


def test_a_curve_that_starts_with_negatives_says_so():
    shown = PRCurveDisplay.from_predictions(LABELS, -SCORES, "a").plot()
    assert xy(shown.point_) == [[0], [0]] == [v[:1] for v in xy(shown.line_)]
    assert legend_texts(shown.ax_)[1] == "negatives ranked first"


@pytest.mark.parametrize(
    ("plot", "x", "y", "chance", "star"),
    [
        ("fptp", "fpr", "tpr", [0, 1], (1 / 3, 2 / 3)),
        ("tntp", "tnr", "tpr", [1, 0], (2 / 3, 2 / 3)),
        ("tptn", "tpr", "tnr", [1, 0], (2 / 3, 2 / 3)),
        ("fpfn", "fpr", "fnr", [1, 0], (1 / 3, 1 / 3)),
    ],
)
def test_roc_variants(plot, x, y, chance, star):
    curve = curves.roc(LABELS, SCORES, plot=plot)
    shown = ROCCurveDisplay.from_predictions(LABELS, SCORES, "a", plot=plot).plot()
    assert xy(shown.line_) == [getattr(curve, x).tolist(), getattr(curve, y).tolist()]
    assert xy(shown.chance_) == [[0, 1], chance]
    assert np.ravel(shown.point_.get_data()) == pytest.approx(star)
    assert legend_texts(shown.ax_)[1:] == ["equal error rate"]


POINTS = curves.CurvePoints.of_rates([0, 0, 0.75, 1], [0, 0.5, 1, 1], 20, 2000)
OF_ANY_KIND = {
    "pr": curves.pr(LABELS, SCORES),
    "roc": curves.roc(LABELS, SCORES),
    "stable": curves.pr(LABELS, SCORES, stable=True),
    "det": curves.det(LABELS, SCORES, ties="sample"),
    "quantiles": curves.threshold_curve(LABELS > 0, SCORES),
    "points": POINTS,
    "hull": POINTS.hull(),
}


@pytest.mark.parametrize("curve", OF_ANY_KIND)
@pytest.mark.parametrize("kind", [PRCurveDisplay, ROCCurveDisplay, DETCurveDisplay])
def test_every_display_takes_every_curve(kind, curve):
    shown = kind.from_curve(OF_ANY_KIND[curve], "x").plot()
    x, y = np.asarray(xy(shown.line_))
    inside = np.isfinite(x) & np.isfinite(y)
    assert inside.sum() > 1
    if curve in ("pr", "roc", "stable", "det"):
        assert xy(shown.line_) == xy(kind.from_predictions(LABELS, SCORES).plot().line_)


def test_points_are_joined_by_what_lies_between_them():
    shown = PRCurveDisplay.from_curve(POINTS, "I").plot()
    recall, precision = np.asarray(xy(shown.line_))
    at = np.interp(0.75, recall, precision)
    assert at == pytest.approx(15 / (15 + 750), rel=1e-3)
    assert legend_texts(shown.ax_) == ["I (AUC 0.520)"]
    roc = ROCCurveDisplay.from_curve(curves.ROCPoints(np.r_[0.1, 0.5], np.r_[0.6, 0.9]), "a").plot()
    assert xy(roc.line_) == [[0.1, 0.5], [0.6, 0.9]]
    scattered = curves.CurvePoints.of_rates([0.2, 0.5], [0.6, 0.3])
    assert ROCCurveDisplay.from_curve(scattered).plot().line_.get_linestyle() == "None"


def test_options_of_a_display_reach_it():
    log = DETCurveDisplay.from_predictions(LABELS, SCORES, scale="log", ties="sample")
    assert log.plot().ax_.get_xscale() == "log"
    mine = PRCurveDisplay.from_predictions(LABELS, SCORES, title="mine", interpolate=True)
    assert mine.plot().ax_.get_title() == "mine"
    assert ROCCurveDisplay.from_curve(curves.roc(LABELS, SCORES), kind="tptn").kind == "tptn"


@pytest.mark.parametrize("crossed", [False, True])
def test_spaces_side_by_side(crossed):
    other = curves.CurvePoints.of_rates([0, 0.25, 1], [0, 1, 1], 20, 2000)
    figure = plot_spaces({"I": POINTS, "II": other}, hull=True, crossed=crossed)
    roc, pr = figure.axes
    assert (roc.get_xlabel(), pr.get_xlabel()) == ("False positive rate", "Recall")
    assert legend_texts(roc)[:3] == ["I (AUC 0.812)", "II (AUC 0.875)", "I: hull (AUC 0.812)"]
    assert legend_texts(pr)[2] == "I: achievable (AUC 0.520)"
    marks = [xy(line) for ax in (roc, pr) for line in ax.lines if line.get_label() == "crossing"]
    expected = [[[0.15], [0.6]], [[0.6], [12 / 312]]] if crossed else []
    assert np.shape(marks) == np.shape(expected)
    assert np.ravel(marks) == pytest.approx(np.ravel(expected))


def test_det_scales():
    labels, scores = samples()
    curve = curves.det(labels, scores)
    log = DETCurveDisplay.from_curve(curve, scale="log").plot()
    assert (log.ax_.get_xscale(), log.ax_.get_yscale()) == ("log", "log")
    normal = DETCurveDisplay.from_curve(curve).plot()
    x, y = (np.asarray(v) for v in normal.line_.get_data())
    inner = (curve.fpr > 0) & (curve.fnr > 0) & (curve.fpr < 1) & (curve.fnr < 1)
    assert set(zip(curve.fpr[inner], curve.fnr[inner], strict=True)) <= set(zip(x, y, strict=True))
    assert np.r_[x, y].min() > 0
    assert np.r_[x, y].max() < 1
    assert np.ravel(normal.point_.get_data()) == pytest.approx([curve.eer] * 2)
    # normal-deviate axes: equal steps of the deviate are equal steps on the page
    page = normal.ax_.transData.transform([(0.05, 0.5), (0.5, 0.5), (0.95, 0.5)])[:, 0]
    assert page[1] - page[0] == pytest.approx(page[2] - page[1])


@pytest.mark.parametrize("kind", [PRCurveDisplay, ROCCurveDisplay, DETCurveDisplay])
@pytest.mark.parametrize(
    ("words", "labels"), [("", [1, -1]), ("no negatives", [1, 1]), ("no positives", [-1, -1])]
)
def test_perfect_and_missing_classes_can_be_drawn(kind, words, labels):
    with pytest.warns(InputWarning, match=words) if words else nullcontext():
        shown = kind.from_predictions(labels, [2.0, 1], "x").plot()
    shown.figure_.canvas.draw()
    assert "nan" not in shown.ax_.get_title()


def test_several_on_one_axes_have_colours_of_their_own_and_lines_of_equal_f_once(runs):
    ax = Figure().add_subplot()
    shown = [PRCurveDisplay.from_evaluation(run).plot(ax) for run in (*runs, runs[0])]
    assert all(d.ax_ is ax for d in shown)
    assert len({d.line_.get_color() for d in shown}) == 3
    assert len(ax.collections) == 1
    given = PRCurveDisplay.from_evaluation(runs[0]).plot(ax, color="red")
    assert given.point_.get_color() == "red"


def test_subplots_overprint_nothing(runs):
    """Displays side by side, two of them on one axes: titles, labels and legends keep apart."""
    figure = plt.figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    for run in runs:
        PRCurveDisplay.from_evaluation(run, ax=left)
    for name, seed in (("first", 0), ("second", 1)):
        PRCurveDisplay.from_predictions(*samples(seed=seed), name=name, ax=right)
    figure.draw_without_rendering()
    title = right.get_title()
    assert title.startswith("first: AP")
    assert "second: AP" in title
    drawn = [ax.get_tightbbox() for ax in (left, right)]
    assert not drawn[0].overlaps(drawn[1])
    texts = [*left.texts, *right.texts, left.yaxis.label, right.yaxis.label, right.title]
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
    assert right.title.get_window_extent().y1 <= figure.bbox.height + 1
    plt.close(figure)


@pytest.mark.slow
def test_a_legend_beside_the_axes_of_a_user_lies_on_nothing(runs):
    figure = Figure((7, 3), layout="constrained")
    for ax in figure.subplots(1, 2):
        for k in range(9):
            PRCurveDisplay.from_evaluation(runs[k % 2], f"the long name of a method {k}", ax=ax)
    figure.draw_without_rendering()
    left, right = figure.axes
    assert not left.get_tightbbox().overlaps(right.get_tightbbox())
    for ax in (left, right):
        box = ax.get_legend().get_window_extent()
        assert not box.overlaps(ax.bbox)
        assert not any(text.get_window_extent().overlaps(box) for text in ax.texts)


def test_constructors_of_data_draw_at_once_and_a_later_plot_replaces_it(runs):
    before = plt.get_fignums()
    shown = PRCurveDisplay.from_evaluation(runs[0])
    assert len(plt.get_fignums()) == len(before) + 1
    assert shown.line_ in shown.ax_.lines
    first = shown.figure_
    assert shown.plot().figure_ is not first
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close(shown.figure_)
    ax = Figure().add_subplot()
    made = [
        ROCCurveDisplay.from_predictions(LABELS, SCORES, ax=ax),
        FThresholdDisplay.from_evaluation(runs[0], ax=Figure().add_subplot(), color="red"),
    ]
    assert made[0].ax_ is ax
    assert made[1].line_.get_color() == "red"
    plot_curves([PRCurveDisplay.from_evaluation(run) for run in runs])
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close("all")


def test_axes_of_the_user_keep_limits_and_names(runs):
    ax = Figure().add_subplot()
    ax.set(xlim=(0.4, 0.9), ylabel="mine", title="own")
    PRCurveDisplay.from_evaluation(runs[0]).plot(ax)
    assert (ax.get_xlim(), ax.get_xlabel(), ax.get_ylabel()) == ((0.4, 0.9), "Recall", "mine")
    assert (ax.get_title(), len(ax.lines), len(ax.collections)) == ("own", 2, 0)


def test_one_figure_for_many():
    shown = [PRCurveDisplay.from_predictions(*samples(gap=g), f"gap {g}") for g in (2.0, 1.0, 0.2)]
    (ax,) = plot_curves(shown).axes
    assert [t.split(" (")[0] for t in legend_texts(ax)] == ["gap 2.0", "gap 1.0", "gap 0.2"]
    assert len({d.line_.get_color() for d in shown}) == 3
    assert sum(d.chance_ is not None for d in shown) == 1  # the same labels: one chance line
    many = [DETCurveDisplay.from_predictions(*samples(n), name=f"{n}") for n in (50, 5000)]
    before = [(one.lowest, one.fpr.tolist(), one.name) for one in many]
    (ax,) = plot_curves(many).axes
    assert [(one.lowest, one.fpr.tolist(), one.name) for one in many] == before
    assert {one.ax_ for one in many} == {ax}
    assert ax.get_xlim()[0] == pytest.approx(1e-4)
    assert legend_texts(ax)[-1] == "equal error rate"


def test_lines_of_equal_f_are_smooth():
    (lines,) = PRCurveDisplay([0], [1]).plot().ax_.collections
    for k, line in enumerate(lines.get_paths(), 1):
        recall, precision = line.vertices.T
        np.testing.assert_allclose(2 * recall * precision / (recall + precision), k / 10)
        assert (recall[-1], precision[0]) == pytest.approx((1, 1))
        steps = np.diff(line.vertices, axis=0)
        angles = np.degrees(np.unwrap(np.arctan2(steps[:, 1], steps[:, 0])))
        assert np.abs(np.diff(angles)).max() < 2  # 60 even steps of recall: 20


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: plot_curves([]), "no curves given"),
        (
            lambda: plot_curves([ROCCurveDisplay([0], [0]), PRCurveDisplay([0], [0])]),
            "curves of kinds PRCurveDisplay, ROCCurveDisplay fptp, expected one kind",
        ),
        (lambda: ROCCurveDisplay([0], [0], kind="x"), "kind 'x': expected one of"),
        (lambda: ROCCurveDisplay([0, 1], [0]), "fpr, tpr: 2 and 1 values"),
        (lambda: ROCCurveDisplay([0, 60], [0, 90]), "fpr: values up to 60, .* by 100"),
        (lambda: PRCurveDisplay([0.5], [90.0]), "precision: values up to 90"),
        (lambda: PRCurveDisplay(["a"], [1]), "recall: of type list, expected float64 numbers"),
        (lambda: PRCurveDisplay.from_published("hedd"), "published result 'hedd': unknown key"),
        (lambda: plot_curves([PRCurveDisplay([0], [1])], "a.gif"), r"suffix '\.gif'"),
    ],
)
def test_bad_calls_say_so(make, words):
    with pytest.raises(DataError, match=words):
        make()


def test_rates_of_float32_may_be_rounded_up():
    rates = np.nextafter(np.float32(1), np.float32(2), dtype=np.float32)
    assert PRCurveDisplay([rates], [rates]).recall == rates
