"""Displays of curves: what is drawn where, and that files have fixed bytes."""

from contextlib import nullcontext

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import ndtri

from bsdsbench import curves
from bsdsbench.files.errors import DataError, InputWarning
from bsdsbench.plotting import DETCurveDisplay, PRCurveDisplay, ROCCurveDisplay, plot_curves, style

LABELS = np.array([-1, 1, -1, 1, -1, 1, -1])
SCORES = np.array([1.0, 2, 3, 5, 4, 7, 6])


def samples(n=500, gap=1.5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    return labels, gap * (labels > 0) + rng.normal(size=n)


def xy(line):
    return [np.asarray(v).tolist() for v in line.get_data()]


def test_pr_draws_the_curve_and_chance():
    curve = curves.pr(LABELS, SCORES)
    d = PRCurveDisplay.from_curve(curve, "a").plot()
    assert xy(d.line_) == [curve.recall.tolist(), curve.precision.tolist()]
    assert d.chance_.get_ydata() == pytest.approx([3 / 7, 3 / 7])
    assert d.line_.get_label() == f"a (AP {curve.ap:.3f})"
    assert d.ax_.get_title().startswith(f"AUC {100 * curve.auc:.1f} %")
    assert (d.ax_.get_xlabel(), d.ax_.get_ylabel()) == ("Recall", "Precision")
    assert isinstance(d.figure_, Figure)
    # nine iso-F lines, the chance line, the curve
    assert len(d.ax_.lines) == 11


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
    d = ROCCurveDisplay.from_scores(LABELS, SCORES, "a", plot=plot).plot()
    assert xy(d.line_) == [getattr(curve, x).tolist(), getattr(curve, y).tolist()]
    assert xy(d.chance_) == [[0, 1], chance]
    assert np.ravel(d.point_.get_data()) == pytest.approx(star)
    assert d.ax_.get_xlabel().lower().startswith({"f": "false", "t": "true"}[x[0]])


def test_det_scales():
    labels, scores = samples()
    curve = curves.det(labels, scores)
    log = DETCurveDisplay.from_curve(curve, scale="log").plot()
    assert (log.ax_.get_xscale(), log.ax_.get_yscale()) == ("log", "log")
    normal = DETCurveDisplay.from_curve(curve).plot()
    x, y = (np.asarray(v) for v in normal.line_.get_data())
    inner = (curve.fpr > 0) & (curve.fnr > 0) & (curve.fpr < 1) & (curve.fnr < 1)
    assert set(zip(curve.fpr[inner], curve.fnr[inner], strict=True)) <= set(zip(x, y, strict=True))
    assert ((x > 0) & (x < 1) & (y > 0) & (y < 1)).all()
    assert np.ravel(normal.point_.get_data()) == pytest.approx([curve.eer] * 2)
    # normal-deviate axes: equal steps of the deviate are equal steps on the page
    page = normal.ax_.transData.transform([(0.05, 0.5), (0.5, 0.5), (0.95, 0.5)])[:, 0]
    assert page[1] - page[0] == pytest.approx(page[2] - page[1])
    assert ndtri(0.95) == pytest.approx(-ndtri(0.05))
    assert normal._lowest() <= curve.fpr[curve.fpr > 0].min()


@pytest.mark.slow
def test_perfect_and_missing_classes_can_be_drawn():
    cases = {"": [1, -1], "no negatives": [1, 1], "no positives": [-1, -1]}
    for words, labels in cases.items():
        for kind in (PRCurveDisplay, ROCCurveDisplay, DETCurveDisplay):
            with pytest.warns(InputWarning, match=words) if words else nullcontext():
                d = kind.from_scores(labels, [2.0, 1], "x").plot()
            d.figure_.canvas.draw()
            assert "nan" not in d.ax_.get_title()
    assert ROCCurveDisplay.from_scores([], []).plot().point_ is None


def test_one_axes_for_many():
    shown = [PRCurveDisplay.from_scores(*samples(gap=g), f"gap {g}") for g in (2.0, 1.0, 0.2)]
    fig = plot_curves(shown, title="three")
    ax = fig.axes[0]
    (legend,) = [found for found in (ax.get_legend(), *fig.legends) if found]
    texts = [t.get_text() for t in legend.get_texts()]
    assert [t.split(" (")[0] for t in texts] == ["gap 2.0", "gap 1.0", "gap 0.2"]
    assert len({d.line_.get_color() for d in shown}) == 3
    # the same labels: one chance line
    assert sum(d.chance_ is not None for d in shown) == 1
    assert ax.get_title() == "three"
    det = plot_curves([DETCurveDisplay.from_scores(*samples(n, seed=n)) for n in (50, 5000)])
    assert det.axes[0].get_xlim()[0] == pytest.approx(1e-4)


def test_an_axes_of_the_user_is_left_as_it_is():
    with style.style():
        ax = Figure().add_subplot()
    ax.set(xlim=(0, 0.5), title="mine")
    d = ROCCurveDisplay.from_scores(LABELS, SCORES).plot(
        ax, color="black", chance=False, mark=False
    )
    assert d.ax_ is ax
    assert (ax.get_xlim(), ax.get_title(), ax.get_legend()) == ((0, 0.5), "mine", None)
    assert len(ax.lines) == 1
    assert d.line_.get_color() == "black"


def test_long_curves_are_thinned_but_not_moved():
    labels, scores = samples(60_000)
    d = ROCCurveDisplay.from_scores(labels, scores)
    x, y = d._points()
    assert x.size < 20_000
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    # every point left out is within a cell of the line drawn
    off = np.abs(np.interp(d.fpr + d.tpr, x + y, x) - d.fpr)
    assert off.max() < 1 / 2000


def test_bad_calls_say_so(tmp_path):
    roc = ROCCurveDisplay.from_scores(LABELS, SCORES)
    with pytest.raises(DataError, match="no curves given"):
        plot_curves([])
    with pytest.raises(DataError, match=r"curves of kinds .*fpfn, .*fptp, expected one kind"):
        plot_curves([roc, ROCCurveDisplay.from_scores(LABELS, SCORES, plot="fpfn")])
    with pytest.raises(DataError, match="plot 'x': expected one of"):
        ROCCurveDisplay([0], [0], plot="x")
    with pytest.raises(DataError, match="scale 'linear': expected 'normal' or 'log'"):
        DETCurveDisplay([0], [0], scale="linear")
    with pytest.raises(DataError, match="fpr, tpr: 2 and 1 values"):
        ROCCurveDisplay([0, 1], [0])
    with pytest.raises(DataError, match=r"suffix '\.gif', expected \.pdf, \.svg or \.png"):
        plot_curves([roc], tmp_path / "a.gif")
    with pytest.raises(DataError, match="does not exist"):
        plot_curves([roc], tmp_path / "no" / "a.png")
    assert list(tmp_path.iterdir()) == []
