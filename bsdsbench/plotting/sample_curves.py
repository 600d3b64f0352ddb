"""Pictures of curves of labels and scores: PR, ROC, DET, and several in one figure.

A display holds arrays; `plot(ax=None)` draws and returns the display, whose `ax_`, `figure_`,
`line_` and further artists can then be changed. `plot_curves` puts many displays on one axes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike, NDArray

from bsdsbench.curves import DETResult, PRResult, ROCResult, det, pr, roc
from bsdsbench.curves.ranked import VARIANTS
from bsdsbench.curves.results import Variant
from bsdsbench.files.errors import DataError
from bsdsbench.plotting.style import (
    GREY,
    draw_iso_f,
    line_style,
    new_axes,
    next_style,
    place_legend,
    root_figure,
    save,
    style,
    untouched,
)

F8 = NDArray[np.float64]
Scale = Literal["normal", "log"]
_CHANCE: dict[str, Any] = {"color": GREY, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1.5}
# Steps across an axis that a picture can show; finer moves of a curve are not drawn.
_STEPS = 4000
# Rates at which normal-deviate axes have their ticks.
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)
_TNR, _TPR, _FPR, _FNR = (
    "True negative rate",
    "True positive rate",
    "False positive rate",
    "False negative rate",
)
_AXES = {"fptp": (_FPR, _TPR), "tntp": (_TNR, _TPR), "tptn": (_TPR, _TNR), "fpfn": (_FPR, _FNR)}


class _CurveDisplay(ABC):
    """What the displays share: the order of drawing, the legend, the attributes."""

    ax_: Axes
    figure_: Figure
    line_: Any
    chance_: Any = None
    eer_: Any = None
    name: str
    #: where the legend of a figure goes
    corner = "lower left"
    #: what makes the curve of labels and scores; the number in the legend: its word and attribute
    curve_of: ClassVar[Callable[..., Any]]
    number: ClassVar[tuple[str, str]]

    @classmethod
    @abstractmethod
    def from_curve(cls, curve: Any, name: str = "") -> Any:
        """The display of a result of `curve_of`."""

    @classmethod
    def from_scores(
        cls, labels: ArrayLike, scores: ArrayLike, name: str = "", **options: Any
    ) -> Any:
        """The curve of labels and scores; options : those of `curves.pr`, `.roc` or `.det`."""
        return cls.from_curve(cls.curve_of(labels, scores, **options), name)

    @property
    def label(self) -> str:
        """The legend's text: the name, and the number where there is one."""
        word, attribute = self.number
        value = getattr(self, attribute)
        if value is None or not np.isfinite(value):
            return self.name
        return f"{self.name} ({word} {value:.3f})" if self.name else f"{word} {value:.3f}"

    def plot(
        self, ax: Axes | None = None, *, chance: bool = True, eer: bool = True, **line: Any
    ) -> Any:
        """Draw on `ax` or on a new figure. Returns the display.

        Axes that are still empty get the limits, names and iso-F lines of this kind; others keep
        theirs. Each further curve on one axes has another colour.

        line   : goes to the curve
        chance : also the line of a random ranking; eer : also mark the equal error rate
        """
        with style():
            fresh, title = ax is None, "" if ax is None else ax.get_title()
            self.ax_ = ax = self.new_axes() if ax is None else ax
            self.figure_ = root_figure(ax)
            if untouched(ax):
                self.set_axes(ax)
                ax.set_title(title or ax.get_title(), parse_math=False)
            if chance:
                self.draw_chance()
            x, y = self.points()
            look = {**next_style(ax), "label": self.label or None, **line}
            (self.line_,) = self.ax_.plot(x, y, **look)
            if eer:
                self.draw_eer()
            if fresh and look["label"]:
                place_legend(ax, [self.line_], self.corner)
        return self

    def new_axes(self) -> Axes:
        """Axes of a new figure, prepared for this kind of curve."""
        ax = new_axes(square=True)
        ax.set(aspect="auto")
        self.set_axes(ax)
        return ax

    @abstractmethod
    def points(self) -> tuple[F8, F8]:
        """x and y of the line, without the points too close to be seen apart."""

    @abstractmethod
    def set_axes(self, ax: Axes) -> None:
        """Scales, limits, labels."""

    def draw_chance(self) -> None:
        """The line of a random ranking, if the picture has one."""
        self.chance_ = None

    def draw_eer(self) -> None:
        """The mark of the equal error rate, if the picture has one."""
        self.eer_ = None

    def _star(self, x: float, y: float) -> None:
        if np.isfinite(x):
            (self.eer_,) = self.ax_.plot(
                [x],
                [y],
                marker="*",
                markersize=11,
                color=self.line_.get_color(),
                markeredgecolor="white",
                markeredgewidth=0.7,
                linestyle="none",
                zorder=3,
            )


class PRScoresDisplay(_CurveDisplay):
    """Precision against recall of a ranking, with iso-F lines and the chance line.

    Parameters
    ----------
    recall, precision : array_like
        (K,) along the curve.
    name : str
        The name in tables and legends.
    ap, chance : float or None
        Numbers, or None for none.
    title : str
        Over a figure of this curve alone.

    Raises
    ------
    DataError
        For arrays of different lengths or without points.
    """

    curve_of = staticmethod(pr)
    number = "AP", "ap"

    def __init__(
        self,
        recall: ArrayLike,
        precision: ArrayLike,
        *,
        name: str = "",
        ap: float | None = None,
        chance: float | None = None,
        title: str = "",
    ) -> None:
        self.recall, self.precision = _pair(recall, precision, "recall", "precision")
        self.name, self.ap, self.chance, self.title = name, ap, chance, title

    @classmethod
    def from_curve(cls, curve: PRResult, name: str = "") -> PRScoresDisplay:
        """The curve and summary numbers of a result of `curves.pr` (not a stable one)."""
        numbers = (("AUC", curve.auc), ("AP", curve.ap), ("AP11", curve.ap_11))
        return cls(
            curve.recall,
            curve.precision,
            name=name,
            ap=curve.ap,
            chance=curve.chance,
            title=", ".join(f"{word} {100 * v:.1f} %" for word, v in numbers),
        )

    def points(self) -> tuple[F8, F8]:
        return _visible(self.recall, self.precision)

    def set_axes(self, ax: Axes) -> None:
        _unit_axes(ax, "Recall", "Precision")
        draw_iso_f(ax)
        ax.set_title(self.title)

    def draw_chance(self) -> None:
        if self.chance is not None:
            self.chance_ = self.ax_.axhline(self.chance, **_CHANCE)


class ROCCurveDisplay(_CurveDisplay):
    """A ROC curve on any of VLFeat's four pairs of axes, its chance line and its EER.

    Parameters
    ----------
    fpr, tpr : array_like
        (K,) along the curve.
    name : str
        The name in tables and legends.
    auc, eer : float or None
        Numbers, or None for none.
    plot : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn".

    Raises
    ------
    DataError
        For another `plot`, arrays of different lengths or without points.
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
        self.fpr, self.tpr = _pair(fpr, tpr, "fpr", "tpr")
        self.name, self.auc, self.eer, self.variant = name, auc, eer, plot
        self.corner = {"fptp": "lower right", "fpfn": "upper right"}.get(plot, "lower left")

    @classmethod
    def from_curve(cls, curve: ROCResult, name: str = "") -> ROCCurveDisplay:
        """The curve and numbers of a result of `curves.roc` (not a stable one)."""
        return cls(curve.fpr, curve.tpr, name=name, auc=curve.auc, eer=curve.eer, plot=curve.plot)

    def points(self) -> tuple[F8, F8]:
        rate = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        return _visible(rate[self.variant[:2]], rate[self.variant[2:]])

    def set_axes(self, ax: Axes) -> None:
        _unit_axes(ax, *_AXES[self.variant])

    def draw_chance(self) -> None:
        ends = (0, 1) if self.variant == "fptp" else (1, 0)
        (self.chance_,) = self.ax_.plot([0, 1], ends, **_CHANCE)

    def draw_eer(self) -> None:
        if self.eer is not None:
            e = self.eer
            at = {"fptp": (e, 1 - e), "fpfn": (e, e)}.get(self.variant, (1 - e, 1 - e))
            self._star(*at)


class DETCurveDisplay(_CurveDisplay):
    """Miss rate against false alarm rate, on normal-deviate axes or (VLFeat) log-log axes.

    Normal scores of both classes give a straight line on normal-deviate axes. Rates of 0 and 1
    lie at infinity: the axes end just beyond the smallest rate that the curve can have.

    Parameters
    ----------
    fpr, fnr : array_like
        (K,) along the curve.
    name : str
        The name in tables and legends.
    eer : float or None
        Number, or None.
    scale : str
        "normal" or "log".

    Raises
    ------
    DataError
        For another `scale`, arrays of different lengths or without points.
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
        self.fpr, self.fnr = _pair(fpr, fnr, "fpr", "fnr")
        self.name, self.eer, self.scale = name, eer, scale
        self.corner = "upper right" if scale == "normal" else "lower left"

    @classmethod
    def from_scores(
        cls,
        labels: ArrayLike,
        scores: ArrayLike,
        name: str = "",
        scale: Scale = "normal",
        **options: Any,
    ) -> DETCurveDisplay:
        """The curve of `curves.det(labels, scores, **options)`."""
        return cls.from_curve(det(labels, scores, **options), name, scale)

    @classmethod
    def from_curve(
        cls, curve: DETResult, name: str = "", scale: Scale = "normal"
    ) -> DETCurveDisplay:
        """The curve and EER of a result of `curves.det` (not a stable one)."""
        return cls(curve.fpr, curve.fnr, name=name, eer=curve.eer, scale=scale)

    def lowest(self) -> float:
        """A power of ten below every rate of the curve that is neither 0 nor 1."""
        both = np.r_[self.fpr, self.fnr]
        inner = both[(both > 0) & (both < 1)]
        smallest = min(float(inner.min()), float(1 - inner.max())) if inner.size else 0.1
        return float(max(10.0 ** np.floor(np.log10(smallest)), 1e-9))

    def points(self) -> tuple[F8, F8]:
        """x and y, rates of 0 and 1 moved to just outside the axes."""
        low = self.lowest() / 4
        x, y = (np.clip(r, low, 1 - low) for r in (self.fpr, self.fnr))
        u, v = (_deviate(r) if self.scale == "normal" else np.log10(r) for r in (x, y))
        keep = _apart((u - u.min()) / max(np.ptp(u), 1e-9), (v - v.min()) / max(np.ptp(v), 1e-9))
        return x[keep], y[keep]

    def set_axes(self, ax: Axes) -> None:
        low = self.lowest()
        ax.set_box_aspect(1)
        if self.scale == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
            ax.set(xlabel="False alarm rate (FPR)", ylabel="Miss rate (FNR)")
            return
        ax.set(xlabel="False alarm rate (FPR), %", ylabel="Miss rate (FNR), %")
        ax.set_xscale("function", functions=(_deviate, _undeviate))
        ax.set_yscale("function", functions=(_deviate, _undeviate))
        ticks = [t for t in _RATES if t >= low]
        names = [f"{100 * t:g}" for t in ticks]
        ax.set(xlim=(low, _RATES[-1]), ylim=(low, _RATES[-1]))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, names)
            axis.set_minor_locator(NullLocator())

    def draw_chance(self) -> None:
        low = self.lowest()
        x = 10 ** np.linspace(np.log10(low), 0, 300)[:-1]
        x = np.r_[x[x < 0.5], 0.5, 1 - x[x < 0.5][::-1]]
        (self.chance_,) = self.ax_.plot(x, 1 - x, **_CHANCE)

    def draw_eer(self) -> None:
        if self.eer is not None and 0 < self.eer < 1:
            self._star(self.eer, self.eer)


def plot_curves(
    displays: Sequence[_CurveDisplay], path: str | Path | None = None, *, title: str = ""
) -> Figure:
    """One figure with several displays of one kind, each its own colour, named in a legend.

    path : also write it there, .pdf, .svg or .png. A chance line that several share is drawn
    once (PR curves of other shares of positives have other ones). Raises DataError for no display
    or displays of different kinds.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {_kind(d) for d in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    first = max(displays, key=_room)
    with style():
        ax = first.new_axes()
        ax.set_title(title, parse_math=False)
        drawn: set[Any] = set()
        for k, display in enumerate(displays):
            chance = getattr(display, "chance", None)
            display.plot(ax, chance=chance not in drawn, **line_style(k))
            drawn.add(chance)
        lines = [d.line_ for d in displays if d.label]
        if lines:
            place_legend(ax, lines, first.corner)
    figure = root_figure(ax)
    if path is not None:
        save(figure, path)
    return figure


def _kind(display: _CurveDisplay) -> str:
    detail = getattr(display, "variant", None) or getattr(display, "scale", None)
    return type(display).__name__ + (f" {detail}" if detail else "")


def _room(display: _CurveDisplay) -> float:
    """How far down the axes must reach; all the same but for DET."""
    return -display.lowest() if isinstance(display, DETCurveDisplay) else 0.0


def _unit_axes(ax: Axes, x: str, y: str) -> None:
    # A little room, so that a line along an edge is not cut in half.
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel=x, ylabel=y)
    ax.set_box_aspect(1)
    ax.set(xticks=np.arange(6) / 5, yticks=np.arange(6) / 5)


def _pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str) -> tuple[F8, F8]:
    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    if x.size != y.size or x.size == 0:
        raise DataError(
            f"{name_a}, {name_b}: {x.size} and {y.size} values, expected as many, at least one"
        )
    return x, y


def _visible(x: F8, y: F8) -> tuple[F8, F8]:
    keep = _apart(x, y)
    return x[keep], y[keep]


def _apart(x: F8, y: F8) -> Any:
    """Which points to draw: of a run in one cell of a fine grid, the first and the last."""
    if x.size <= _STEPS:
        return slice(None)
    cell = np.round(x * _STEPS) * (4 * _STEPS) + np.round(y * _STEPS)
    new = cell[1:] != cell[:-1]
    return np.r_[True, new] | np.r_[new, True]


def _deviate(rate: Any) -> Any:
    from scipy.special import ndtri

    # The scale is also asked about limits outside (0, 1).
    return ndtri(np.clip(rate, 1e-12, 1 - 1e-12))


def _undeviate(value: Any) -> Any:
    from scipy.special import ndtr

    return ndtr(value)
