"""F over threshold, ROC and DET curves, and two methods image by image, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bsdsbench.curves import DETResult, ROCResult, det, roc
from bsdsbench.curves.ranked import VARIANTS
from bsdsbench.curves.results import Variant
from bsdsbench.files.errors import DataError
from bsdsbench.plotting.displays import (
    ROOM,
    CurveDisplay,
    Drawing,
    Runs,
    checked,
    metric_with_curve,
    pair,
    plot_curves,
    written,
)
from bsdsbench.plotting.style import GREY, legend, new_axes, next_style, prepare, style, untouched
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.scores.curve import OperatingPoint

Scale = Literal["normal", "log"]
_STAR: dict[str, Any] = {"marker": "*", "markersize": 11, "label": "equal error rate"}
_RATE_NAMES = {
    "tn": "True negative rate",
    "tp": "True positive rate",
    "fp": "False positive rate",
    "fn": "False negative rate",
}
# Rates at which normal-deviate axes have their ticks.
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


class FThresholdDisplay(CurveDisplay):
    """F over threshold. thresholds, f : (T,); best : the point to mark, or None."""

    size = (3.4, 1.35)

    def __init__(
        self,
        thresholds: ArrayLike,
        f: ArrayLike,
        *,
        name: str = "",
        best: OperatingPoint | None = None,
    ) -> None:
        self.thresholds, self.f = pair(thresholds, f, "thresholds", "f")
        self.name, self.best = name, best

    @classmethod
    def from_evaluation(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> FThresholdDisplay:
        """F of a run's score at each threshold, with its ODS point; as of `PRCurveDisplay`."""
        score = run.score(metric_with_curve(run, metric))
        shown = run.name if name is None else name
        return cls(score.curve.thresholds, score.curve.f, name=shown, best=score.ods)

    def _drawing(self) -> Drawing:
        at = self.best and self.best.threshold
        best = None if self.best is None or at is None else (at, self.best.f)
        return Drawing(self.thresholds, self.f, None, best)

    def _axes(self, ax: Axes, empty: bool) -> None:
        prepare(ax, "Threshold", "F-measure", 0.0 if empty else None)


class ReliabilityDisplay(CurveDisplay):
    """The marked share of each bin of a soft map's values over their mean, see metric calibration.

    value, marked : (B,), NaN for empty bins; ece : the number in the legend, or None.
    """

    number = "ECE", "ece"
    best = None

    def __init__(
        self, value: ArrayLike, marked: ArrayLike, *, name: str = "", ece: float | None = None
    ) -> None:
        x, y = pair(value, marked, "value", "marked")
        self.value, self.marked = x[~np.isnan(x)], y[~np.isnan(x)]
        self.name, self.ece = name, ece

    @classmethod
    def from_evaluation(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> ReliabilityDisplay:
        """The bins of a run, of the pixels of all images. Raises DataError without any."""
        scores = map(run.score, [metric] if metric else run.metrics)
        score = next((score for score in scores if "reliability" in score), None)
        if score is None:
            raise DataError(f"{run.name}: no metric of it has bins, expected one that has")
        shown = run.name if name is None else name
        return cls(score.reliability.value, score.reliability.marked, name=shown, ece=score.ece)

    def _drawing(self) -> Drawing:
        return Drawing(self.value, self.marked, ((0, 1), (0, 1)), None)

    def _axes(self, ax: Axes, empty: bool) -> None:
        prepare(ax, "Mean value", "Marked share", ROOM if empty else None)


class ROCCurveDisplay(CurveDisplay):
    """A ROC curve on any of VLFeat's four pairs of axes, its chance line and its EER (a star).

    Parameters
    ----------
    fpr, tpr : array_like
        (K,) along the curve.
    name : str
        In the legend.
    auc, eer : float or None
        The number in the legend, and where the star is.
    plot : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn".

    Raises
    ------
    DataError
        For another `plot`, arrays of different lengths or without points.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.ROCCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="mine")
    >>> shown.name, shown.tpr.tolist()
    ('mine', [0.0, 0.5, 0.5, 1.0])
    """

    curve_of = staticmethod(roc)
    number = "AUC", "auc"

    def __init__(
        self,
        fpr: ArrayLike,
        tpr: ArrayLike,
        *,
        name: str = "",
        auc: float | None = None,
        eer: float | None = None,
        plot: Variant = "fptp",
    ) -> None:
        if plot not in VARIANTS:
            raise DataError(f"plot {plot!r}: expected one of {', '.join(VARIANTS)}")
        self.fpr, self.tpr = pair(fpr, tpr, "fpr", "tpr", least=1)
        self.name, self.auc, self.eer, self.kind = name, auc, eer, plot

    @classmethod
    def from_curve(cls, curve: ROCResult, name: str = "") -> ROCCurveDisplay:
        return cls(curve.fpr, curve.tpr, name=name, auc=curve.auc, eer=curve.eer, plot=curve.plot)

    def _drawing(self) -> Drawing:
        rates = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        x, y = rates[self.kind[:2]], rates[self.kind[2:]]
        ends = (0, 1), (0, 1) if self.kind == "fptp" else (1, 0)
        star, e = None, self.eer
        if e is not None and np.isfinite(e):
            star = {"fptp": (e, 1 - e), "fpfn": (e, e)}.get(self.kind, (1 - e, 1 - e))
        return Drawing(x, y, ends, star, _STAR)

    def _axes(self, ax: Axes, empty: bool) -> None:
        names = _RATE_NAMES[self.kind[:2]], _RATE_NAMES[self.kind[2:]]
        prepare(ax, *names, ROOM if empty else None)


class DETCurveDisplay(CurveDisplay):
    """Miss rate against false alarm rate, on normal-deviate axes or (VLFeat) log-log axes.

    Normal scores of both classes give a straight line on normal-deviate axes. Rates of 0 and 1
    lie at infinity: the axes end just beyond the smallest rate that the curve can have. A star
    marks the equal error rate.

    Parameters
    ----------
    fpr, fnr : array_like
        (K,) along the curve.
    name : str
        In the legend.
    eer : float or None
        In the legend, and where the star is.
    scale : str
        "normal" or "log".

    Raises
    ------
    DataError
        For another `scale`, arrays of different lengths or without points.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.DETCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4])
    >>> shown.fpr.shape
    (4,)
    """

    curve_of = staticmethod(det)
    number = "EER", "eer"

    def __init__(
        self,
        fpr: ArrayLike,
        fnr: ArrayLike,
        *,
        name: str = "",
        eer: float | None = None,
        scale: Scale = "normal",
    ) -> None:
        if scale not in ("normal", "log"):
            raise DataError(f"scale {scale!r}: expected 'normal' or 'log'")
        self.fpr, self.fnr = pair(fpr, fnr, "fpr", "fnr", least=1)
        self.name, self.eer, self.kind = name, eer, scale
        both = np.r_[self.fpr, self.fnr]
        inner = both[(both > 0) & (both < 1)]
        smallest = min(inner.min(), 1 - inner.max()) if inner.size else 0.1
        # a power of ten below every rate of the curve that is neither 0 nor 1
        self.lowest = float(max(10.0 ** np.floor(np.log10(smallest)), 1e-9))

    @classmethod
    def from_curve(
        cls, curve: DETResult, name: str = "", scale: Scale = "normal"
    ) -> DETCurveDisplay:
        return cls(curve.fpr, curve.fnr, name=name, eer=curve.eer, scale=scale)

    def _drawing(self) -> Drawing:
        low = self.lowest / 4  # rates of 0 and 1 lie just outside the axes
        chance = 10 ** np.linspace(np.log10(self.lowest), 0, 300)[:-1]
        chance = np.r_[chance[chance < 0.5], 0.5, 1 - chance[chance < 0.5][::-1]]
        star = (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None
        x, y = np.clip(self.fpr, low, 1 - low), np.clip(self.fnr, low, 1 - low)
        return Drawing(x, y, (chance, 1 - chance), star, _STAR)

    def _axes(self, ax: Axes, empty: bool) -> None:
        percent, low = ", %" if self.kind == "normal" else "", self.lowest
        prepare(ax, f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}")
        if empty and self.kind == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
        elif empty:
            ax.set_xscale("function", functions=(_deviate, ndtr))
            ax.set_yscale("function", functions=(_deviate, ndtr))
            ax.set(xlim=(low, _RATES[-1]), ylim=(low, _RATES[-1]))
            ticks = [t for t in _RATES if t >= low]
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_ticks(ticks, [f"{100 * t:g}" for t in ticks])
                axis.set_minor_locator(NullLocator())


class ImageScatterDisplay:
    """Two methods image by image: a point is an image, above the diagonal where `y` is better.

    x, y : (N,) best F of each image; image_ids in the same order.
    """

    ax_: Axes
    figure_: Figure
    points_: Any
    labels_: list[Any]

    def __init__(
        self, x: ArrayLike, y: ArrayLike, image_ids: Sequence[str] = (), names: Sequence[str] = ()
    ) -> None:
        self.x, self.y = pair(x, y, "x", "y")
        self.image_ids, self.names = tuple(image_ids), tuple(names) or ("A", "B")

    @classmethod
    def from_evaluations(
        cls,
        run_x: Evaluation,
        run_y: Evaluation,
        names: Sequence[str] = (),
        metric: str | None = None,
    ) -> ImageScatterDisplay:
        """Best F of each image under two runs. Raises DataError if their images differ."""
        metric = metric or metric_with_curve(run_x)
        x, y = (
            {k: row["ods"] for k, row in run.image_scores(metric).items()} for run in (run_x, run_y)
        )
        if x.keys() != y.keys():
            odd = sorted(x.keys() ^ y.keys())[0]
            raise DataError(
                f"{run_x.name}, {run_y.name}: image {odd!r} is in one only, "
                "expected the same images"
            )
        ids = sorted(x)
        shown = tuple(names) or (run_x.name, run_y.name)
        return cls([x[i] for i in ids], [y[i] for i in ids], ids, shown)

    def plot(self, ax: Axes | None = None, label: int = 3, **points: Any) -> ImageScatterDisplay:
        """Draw on `ax` or on a new figure; the `label` images that differ most carry their id."""
        with style():
            fresh = ax is None
            self.ax_ = ax = ax or new_axes()
            self.figure_ = ax.figure.figure
            empty = untouched(ax)
            x, y = (f"{name}, F per image" for name in self.names)
            prepare(ax, x, y, 0.0 if empty else None)
            better, worse = int((self.y > self.x).sum()), int((self.y < self.x).sum())
            if fresh:
                tied = self.x.size - better - worse
                counts = f"better on {better}, worse on {worse}, equal on {tied}"
                ax.set_title(f"{self.names[1]}:\n{counts}", parse_math=False)
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1.5, label="_equal")
            color = next_style(ax, self.names[1])["color"]
            look = {"s": 14, "color": color, "alpha": 0.7, "linewidths": 0, **points}
            self.points_ = ax.scatter(self.x, self.y, **look)
            self.labels_ = self._named(ax, label if self.image_ids else 0)
        return self

    def _named(self, ax: Axes, number: int) -> list[Any]:
        """Names of the points farthest from the diagonal, away from it, 10 points apart."""
        gap = np.abs(self.y - self.x)
        far = [i for i in np.argsort(-gap, kind="stable")[:number] if gap[i] > 0]
        self.figure_.draw_without_rendering()  # where the axes are is settled by this
        heights = ax.transData.transform(np.c_[self.x, self.y])[:, 1] * 72 / self.figure_.dpi
        tops, out = {True: -np.inf, False: -np.inf}, {}  # of the names left and right of points
        for i in sorted(far, key=heights.__getitem__):
            left = bool(self.x[i] > 0.2 and (self.y[i] > self.x[i] or self.x[i] > 0.8))
            tops[left] = max(heights[i], tops[left] + 10)
            out[i] = ax.annotate(
                self.image_ids[i][:24],
                (self.x[i], self.y[i]),
                xytext=(-8 if left else 8, tops[left] - heights[i]),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize="x-small",
                arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY},
                parse_math=False,
            )
        return [out[i] for i in far]


def plot_f(
    runs: Runs,
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
    kind: str = "f",
) -> Figure:
    """One figure with F over threshold of `runs`, the ODS points marked, or with the bins of
    calibration (kind "reliability"); see `plot_runs`."""
    display = FThresholdDisplay if kind == "f" else ReliabilityDisplay
    runs = checked(runs, force)
    for run in runs:
        if (about := run.reference) and about.form == "segmentations":
            raise DataError(
                f"{run.name}: {about.parameter}, expected thresholds for F over threshold"
            )
    with style(look, grey, path is not None):
        shown = [display.from_evaluation(run, metric=metric) for run in runs]
        figure = plot_curves(shown)
        shown.sort(key=lambda d: -d.best.f if d.best else 0.0)
        legend(figure.axes[0], [d.line_ for d in shown])
        return written(figure, path, runs)


def plot_scatter(
    runs: Runs,
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
) -> Figure:
    """One figure of the first run (x) and the second (y) image by image; see `plot_runs`."""
    runs = checked(runs, force)
    if len(runs) != 2:
        raise DataError(f"{len(runs)} runs, expected two for a scatter plot")
    with style(look, grey, path is not None):
        shown = ImageScatterDisplay.from_evaluations(runs[0], runs[1], metric=metric).plot()
        return written(shown.figure_, path, runs)


def _deviate(rate: Any) -> Any:
    # The scale is also asked about limits outside (0, 1).
    return ndtri(np.clip(rate, 1e-12, 1 - 1e-12))
