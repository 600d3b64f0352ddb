"""Curves as pictures: precision-recall, ROC, DET, F over threshold.

Displays in the manner of scikit-learn: arrays in the constructor, drawing in `plot(ax=None)`, which
returns the display; `ax_`, `figure_` and the artists (`line_`, `point_`, `chance_`, `band_`) are
its attributes. Several displays on one axes get different colours; axes that are still empty are
given limits and labels, others keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from bsdsbench.comparison.curve_band import CurveBand
from bsdsbench.comparison.published import PublishedResult
from bsdsbench.curves import DETResult, PRResult, ROCResult, det, pr, roc
from bsdsbench.curves.ranked import VARIANTS
from bsdsbench.curves.results import Variant
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.style import (
    GREY,
    draw_iso_f,
    for_file,
    legend,
    name_axes,
    new_axes,
    next_style,
    root_figure,
    save,
    style,
    unit_axes,
    untouched,
)
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.score_tables import reference_of
from bsdsbench.scores.curve import OperatingPoint
from bsdsbench.scores.ratios import short

F8 = NDArray[np.float64]
Scale = Literal["normal", "log"]
_D = TypeVar("_D", bound="CurveDisplay")
# Beyond 0 and 1, so that the line of a ranking, which may run along an edge, is not cut in half.
_ROOM = 0.01
_DOT: dict[str, Any] = {"marker": "o", "markersize": 5}
_STAR: dict[str, Any] = {"marker": "*", "markersize": 11, "label": "equal error rate"}
_RATE_NAMES = {
    "tn": "True negative rate",
    "tp": "True positive rate",
    "fp": "False positive rate",
    "fn": "False negative rate",
}
# Rates at which normal-deviate axes have their ticks.
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


class CurveDisplay:
    """What the displays share: the order of drawing, the legend, the attributes."""

    ax_: Axes
    figure_: Figure
    line_: Any
    chance_: Any
    point_: Any
    band_: Any
    name: str
    best: OperatingPoint | None = None
    band: CurveBand | None = None
    #: over a figure of this curve alone
    title = ""
    #: False where nothing lies between two points: they are drawn without a line
    joined = True
    #: axes that differ are not drawn together
    kind = ""
    #: height of a new figure in inches, and its width in heights
    size: ClassVar[tuple[float, float]] = (4.4, 1.0)
    #: how the best point or the equal error rate is marked
    mark: ClassVar[dict[str, Any]] = _DOT
    #: what makes the curve of labels and scores; the number in the legend: its word and attribute
    curve_of: ClassVar[Callable[..., Any]]
    number: ClassVar[tuple[str, str]] = ("", "")

    @classmethod
    def from_predictions(
        cls: type[_D], labels: ArrayLike, scores: ArrayLike, name: str = "", **options: Any
    ) -> _D:
        """The curve of labels and scores (N,); `options` are those of `curves.pr`, `roc`, `det`, or
        `scale`."""
        own = {key: options.pop(key) for key in ("scale",) if key in options}
        return cls.from_curve(cls.curve_of(labels, scores, **options), name, **own)

    @classmethod
    def from_curve(cls: type[_D], curve: Any, name: str = "") -> _D:
        """The curve and numbers of what `curves.pr`, `curves.roc` or `curves.det` gives."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The legend's text: the F of the best point and the name, or the name and a number."""
        if self.best:
            return f"[F={short(self.best.f)}] {self.name}".strip()
        word, attribute = self.number
        value = getattr(self, attribute, None)
        if value is None or not np.isfinite(value):
            return self.name
        return f"{self.name} ({word} {value:.3f})" if self.name else f"{word} {value:.3f}"

    def _points(self) -> tuple[F8, F8]:
        """x and y of the line."""
        raise NotImplementedError

    def _random(self) -> tuple[Any, Any] | None:
        """x and y of the line of a random ranking, if the picture has one."""
        return None

    def _marked(self) -> tuple[float, float] | None:
        """Where the best point or the equal error rate is, if the picture shows it."""
        return None

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        """Name the axes; give empty ones their scales and limits."""
        raise NotImplementedError

    def plot(
        self: _D, ax: Axes | None = None, *, chance: bool = True, mark: bool = True, **line: Any
    ) -> _D:
        """Draw on `ax` or on a new figure, with the line of a random ranking (`chance`) and the
        best point or equal error rate (`mark`); `line` goes to the curve's `Axes.plot`."""
        with style():
            empty = ax is None or untouched(ax)
            self.ax_ = ax = ax or new_axes(*self.size)
            self.figure_ = root_figure(ax)
            self._set_axes(ax, empty)
            if empty and not ax.get_title():
                ax.set_title(self.title, parse_math=False)
            look = {**next_style(ax, self.name), "label": self.label or None, **line}
            look |= {} if self.joined else {"linestyle": "none", "marker": ".", "markersize": 4}
            ends, at = self._random() if chance else None, self._marked() if mark else None
            level: dict[str, Any] = {
                "color": GREY,
                "linewidth": 0.9,
                "linestyle": (0, (4, 3)),
                "zorder": 1.5,
            }
            self.chance_ = ax.plot(*ends, **level)[0] if ends else None
            (self.line_,) = ax.plot(*self._points(), **look)
            color = self.line_.get_color()
            self.point_ = self.band_ = None
            if at:
                edge = {"color": color, "markeredgecolor": "white", "markeredgewidth": 0.8}
                spot = {**edge, "linestyle": "none", "zorder": 3, **self.mark}
                (self.point_,) = ax.plot([at[0]], [at[1]], **spot)
            if self.band is not None:
                edges = self.band.recall, self.band.low, self.band.high
                self.band_ = ax.fill_between(*edges, color=color, alpha=0.2, linewidth=0)
            if self.name or self.label:
                legend(ax, ax.lines)
        return self


class PRCurveDisplay(CurveDisplay):
    """A precision-recall curve of a run or of a ranking, with lines of equal F.

    Parameters
    ----------
    recall, precision : array_like
        (K,) in the order of the curve.
    name, title : str
        In the legend; over a figure of this curve alone.
    best : OperatingPoint or None
        The point to mark.
    band : CurveBand or None
        Drawn around the curve.
    ap, chance : float or None
        Of a ranking: the number in the legend, and the height of the line of a random one.

    Raises
    ------
    DataError
        For arrays of different lengths.

    Examples
    --------
    >>> shown = PRCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="made").plot()
    >>> shown.ax_.get_xlabel(), shown.line_.get_label()
    ('Recall', 'made (AP 0.833)')
    """

    curve_of = staticmethod(pr)
    number = "AP", "ap"

    def __init__(
        self,
        recall: ArrayLike,
        precision: ArrayLike,
        *,
        name: str = "",
        best: OperatingPoint | None = None,
        band: CurveBand | None = None,
        ap: float | None = None,
        chance: float | None = None,
        title: str = "",
    ) -> None:
        self.recall, self.precision = _pair(recall, precision, "recall", "precision")
        self.name, self.best, self.band = name, best, band
        self.ap, self.chance, self.title = ap, chance, title

    @classmethod
    def from_evaluation(
        cls,
        run: Evaluation,
        name: str | None = None,
        metric: str | None = None,
        band: CurveBand | None = None,
    ) -> PRCurveDisplay:
        """The curve of a run's score with its ODS point, without thresholds above every prediction.

        metric : by default the run's first with a curve. Raises DataError without its counts.
        """
        score = run.score(metric_with_curve(run, metric))
        shown = cls._of_curve(score.curve, run.name if name is None else name, score.ods)
        shown.band = band
        about = reference_of(run)
        shown.joined = about is None or about.ordered
        return shown

    @classmethod
    def from_published(cls, result: PublishedResult) -> PRCurveDisplay:
        """The stored curve of a published result. Raises DataError for one without."""
        if result.curve is None:
            raise DataError(f"published {result.key!r}: no curve is stored, expected one with")
        return cls._of_curve(result.curve, result.label, result.curve.ods)

    @classmethod
    def _of_curve(cls, curve: Any, name: str, best: OperatingPoint | None) -> PRCurveDisplay:
        drawn = (curve.precision > 0) | (curve.recall > 0)
        return cls(curve.recall[drawn], curve.precision[drawn], name=name, best=best)

    @classmethod
    def from_curve(cls, curve: PRResult, name: str = "") -> PRCurveDisplay:
        numbers = {"AUC (trapezoids)": curve.auc, "AP": curve.ap, "AP11": curve.ap_11}
        title = ", ".join(
            f"{k} {100 * v:.1f} %" if v == v else f"{k} -" for k, v in numbers.items()
        )
        own: Any = {"ap": curve.ap, "chance": curve.chance, "title": title}
        return cls(curve.recall, curve.precision, name=name, **own)

    def _points(self) -> tuple[F8, F8]:
        return self.recall, self.precision

    def _random(self) -> tuple[Any, Any] | None:
        """A level line, of a ranking."""
        return None if self.chance is None else ((0, 1), (self.chance, self.chance))

    def _marked(self) -> tuple[float, float] | None:
        return (self.best.recall, self.best.precision) if self.best else None

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        if empty:
            unit_axes(ax, 0.0 if self.chance is None else _ROOM)
            draw_iso_f(ax)
        name_axes(ax, "Recall", "Precision")


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
        self.thresholds, self.f = _pair(thresholds, f, "thresholds", "f")
        self.name, self.best = name, best

    @classmethod
    def from_evaluation(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> FThresholdDisplay:
        """F of a run's score at each threshold, with its ODS point; as of `PRCurveDisplay`."""
        score = run.score(metric_with_curve(run, metric))
        shown = run.name if name is None else name
        return cls(score.curve.thresholds, score.curve.f, name=shown, best=score.ods)

    def _points(self) -> tuple[F8, F8]:
        return self.thresholds, self.f

    def _marked(self) -> tuple[float, float] | None:
        best = self.best
        return None if best is None or best.threshold is None else (best.threshold, best.f)

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        if empty:
            unit_axes(ax)
        name_axes(ax, "Threshold", "F-measure")


class ReliabilityDisplay(CurveDisplay):
    """The marked share of each bin of a soft map's values over their mean, see metric calibration.

    value, marked : (B,), NaN for empty bins; ece : the number in the legend, or None.
    """

    number = "ECE", "ece"

    def __init__(
        self, value: ArrayLike, marked: ArrayLike, *, name: str = "", ece: float | None = None
    ) -> None:
        x, y = _pair(value, marked, "value", "marked")
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

    def _points(self) -> tuple[F8, F8]:
        return self.value, self.marked

    def _random(self) -> tuple[Any, Any]:
        """What is calibrated."""
        return (0, 1), (0, 1)

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        if empty:
            unit_axes(ax, _ROOM)
        name_axes(ax, "Mean value", "Marked share")


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
    mark = _STAR

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
        self.fpr, self.tpr = _pair(fpr, tpr, "fpr", "tpr", least=1)
        self.name, self.auc, self.eer, self.kind = name, auc, eer, plot

    @classmethod
    def from_curve(cls, curve: ROCResult, name: str = "") -> ROCCurveDisplay:
        return cls(curve.fpr, curve.tpr, name=name, auc=curve.auc, eer=curve.eer, plot=curve.plot)

    def _points(self) -> tuple[F8, F8]:
        rate = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        return rate[self.kind[:2]], rate[self.kind[2:]]

    def _random(self) -> tuple[Any, Any]:
        return (0, 1), (0, 1) if self.kind == "fptp" else (1, 0)

    def _marked(self) -> tuple[float, float] | None:
        e = self.eer
        if e is None or not np.isfinite(e):
            return None
        return {"fptp": (e, 1 - e), "fpfn": (e, e)}.get(self.kind, (1 - e, 1 - e))

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        if empty:
            unit_axes(ax, _ROOM)
        name_axes(ax, _RATE_NAMES[self.kind[:2]], _RATE_NAMES[self.kind[2:]])


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
    mark = _STAR

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
        self.fpr, self.fnr = _pair(fpr, fnr, "fpr", "fnr", least=1)
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

    def _points(self) -> tuple[F8, F8]:
        """x and y, rates of 0 and 1 moved to just outside the axes."""
        low = self.lowest / 4
        return np.clip(self.fpr, low, 1 - low), np.clip(self.fnr, low, 1 - low)

    def _set_axes(self, ax: Axes, empty: bool) -> None:
        """Both rates, on the scale asked for."""
        percent = ", %" if self.kind == "normal" else ""
        name_axes(ax, f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}")
        low = self.lowest
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

    def _random(self) -> tuple[Any, Any]:
        """Where miss rate and false alarm rate add up to 1."""
        x = 10 ** np.linspace(np.log10(self.lowest), 0, 300)[:-1]
        x = np.r_[x[x < 0.5], 0.5, 1 - x[x < 0.5][::-1]]
        return x, 1 - x

    def _marked(self) -> tuple[float, float] | None:
        return (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None


def plot_curves(
    displays: Sequence[CurveDisplay], path: str | Path | None = None, *, title: str = ""
) -> Figure:
    """One figure with several displays of one kind, each its own colour, named in a legend.

    path : also write it there, .pdf, .svg or .png
    Raises DataError for no display or displays of different kinds.
    """
    with style(), for_file(path is not None):
        ax = draw_together(displays, title)
    figure = root_figure(ax)
    if path is not None:
        save(figure, path)
    return figure


def draw_together(displays: Sequence[CurveDisplay], title: str = "") -> Axes:
    """New axes with several displays of one kind; a chance line that they share is drawn once."""
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {f"{type(d).__name__} {d.kind}".strip() for d in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    reach = min(getattr(d, "lowest", 1.0) for d in displays)
    ax, drawn = None, set()
    for display in displays:
        chance = getattr(display, "chance", None)
        if isinstance(display, DETCurveDisplay):
            display.lowest = reach
        ax = display.plot(ax, chance=chance not in drawn).ax_
        drawn.add(chance)
    ax = displays[0].ax_
    ax.set_title(title, parse_math=False)
    return ax


def _pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, least: int = 0) -> tuple[F8, F8]:
    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    if x.size != y.size or x.size < least:
        found = f"{name_a}, {name_b}: {x.size} and {y.size} values"
        raise DataError(f"{found}, expected as many{', at least one' if least else ''}")
    return x, y


def _deviate(rate: Any) -> Any:
    # The scale is also asked about limits outside (0, 1).
    return ndtri(np.clip(rate, 1e-12, 1 - 1e-12))


def metric_with_curve(run: Evaluation, metric: str | None = None) -> str:
    """The metric given, or the run's first that has a curve. Raises DataError for others."""
    curves = registry.with_curve(run.metrics, run.protocol)
    if not curves:
        raise DataError(
            f"{run.name}: none of its metrics has a precision-recall curve "
            f"({', '.join(run.metrics) or 'no metric'})"
        )
    if metric and metric not in curves:
        raise DataError(f"{run.name}: {metric!r} has no curve, expected {', '.join(curves)}")
    return metric or curves[0]
