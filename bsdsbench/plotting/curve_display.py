"""A precision-recall curve as a picture, and what pictures of curves share.

A display, several in one figure, the choice of points to draw.

Display objects in the manner of scikit-learn: arrays in the constructor, drawing in
`plot(ax=None)`, which returns the display; `ax_`, `figure_` and the artists are its attributes.
Several displays on one axes get different colours; axes that are still empty are given limits and
labels, others keep theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bsdsbench.curves import PRResult, pr
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.style import (
    GREY,
    draw_iso_f,
    for_file,
    new_axes,
    next_style,
    place_legend,
    root_figure,
    save,
    style,
    unit_axes,
    untouched,
)
from bsdsbench.runs.run_identity import reference_of
from bsdsbench.scores.curve import OperatingPoint
from bsdsbench.scores.ratios import short

if TYPE_CHECKING:
    from bsdsbench.comparison.curve_band import CurveBand
    from bsdsbench.comparison.published import PublishedResult
    from bsdsbench.runs.evaluation import Evaluation

F8 = NDArray[np.float64]
_D = TypeVar("_D", bound="CurveDisplay")
# Beyond 0 and 1, so that the line of a ranking, which may run along an edge, is not cut in half.
ROOM = 0.01
_CHANCE: dict[str, Any] = {"color": GREY, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1.5}
_MARK: dict[str, Any] = {"markeredgecolor": "white", "linestyle": "none", "zorder": 3}
# The curves named in legends of our own, on axes that a display has made.
_legends: WeakKeyDictionary[Axes, list[Any]] = WeakKeyDictionary()
# Steps across an axis that a picture can show; finer moves of a curve are not drawn.
_STEPS = 4000


class CurveDisplay(ABC):
    """What the displays share: the order of drawing, the axes, the legend, the attributes."""

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
    #: names of the axes, room beyond 0 and 1, whether empty axes get lines of equal F
    axis_names: tuple[str, str]
    room = 0.0
    iso_f = False
    #: how the best point or the equal error rate is marked; where the legend of a figure goes
    mark: ClassVar[dict[str, Any]] = {"marker": "o", "markersize": 5}
    corner = "lower left"
    #: what makes the curve of labels and scores; the number in the legend: its word and attribute
    curve_of: ClassVar[Callable[..., Any]]
    number: ClassVar[tuple[str, str]] = ("", "")

    @classmethod
    def from_scores(
        cls: type[_D], labels: ArrayLike, scores: ArrayLike, name: str = "", **options: Any
    ) -> _D:
        """The curve of labels and scores.

        Parameters
        ----------
        labels : array
            (N,), as of `curves.pr`.
        scores : array
            (N,), higher for true ones.
        name : str
            Its name in the legend.
        **options : object
            Options of `curves.pr`, `curves.roc` or `curves.det`.

        Returns
        -------
        CurveDisplay
            The display, not drawn yet.
        """
        return cls.from_curve(cls.curve_of(labels, scores, **options), name)

    @classmethod
    def from_curve(cls: type[_D], curve: Any, name: str = "") -> _D:
        """The curve and numbers of a result.

        Parameters
        ----------
        curve : PRResult, ROCResult or DETResult
            What `curves.pr`, `curves.roc` or `curves.det` gives (not a stable one).
        name : str
            Its name in the legend.

        Returns
        -------
        CurveDisplay
            The display, not drawn yet.
        """
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

    @abstractmethod
    def _points(self) -> tuple[F8, F8]:
        """x and y of the line, without points too close to be distinguished."""

    def _random(self) -> tuple[Any, Any] | None:
        """x and y of the line of a random ranking, if the picture has one."""
        return None

    def _marked(self) -> tuple[float, float] | None:
        """Where the best point or the equal error rate is, if the picture shows it."""
        return None

    def _reach(self) -> float:
        """How far the axes must reach, where that differs between curves of one kind."""
        return 0.0

    def _new_axes(self) -> Axes:
        """Axes of a new figure for this kind of curve."""
        return new_axes()

    def _set_axes(self, ax: Axes, empty: bool = True, iso_f: bool | None = None) -> None:
        """Name the axes; give empty ones their scales, limits and lines of equal F."""
        unit_axes(ax, *self.axis_names, empty=empty, room=self.room)
        if self.iso_f and (empty if iso_f is None else iso_f):
            draw_iso_f(ax)

    def plot(
        self: _D,
        ax: Axes | None = None,
        *,
        iso_f: bool | None = None,
        chance: bool = True,
        mark: bool = True,
        **line: Any,
    ) -> _D:
        """Draw on `ax` or on a new figure.

        Axes that are still empty get the limits, names and lines of equal F of this kind; others
        keep theirs. Each further curve on one axes has another colour.

        Parameters
        ----------
        ax : Axes or None
            Where to draw; a new figure if None.
        iso_f : bool or None
            Lines of equal F, where the picture may have some; default: on empty axes.
        chance : bool
            Draw the line of a random ranking, too.
        mark : bool
            Draw the best point or the equal error rate, too.
        **line : object
            Goes to the curve's `Axes.plot`.

        Returns
        -------
        CurveDisplay
            The display itself, with `ax_`, `figure_` and `line_`.
        """
        with style():
            fresh = ax is None
            self.ax_ = ax = self._new_axes() if ax is None else ax
            self.figure_ = root_figure(ax)
            empty = fresh or untouched(ax)
            self._set_axes(ax, empty, iso_f)
            if empty and self.title and not ax.get_title():
                ax.set_title(self.title, parse_math=False)
            ends, at = self._random() if chance else None, self._marked() if mark else None
            self.chance_ = ax.plot(*ends, **_CHANCE)[0] if ends else None
            look = {**next_style(ax, self.name), "label": self.label or None, **line}
            look |= {} if self.joined else {"linestyle": "none", "marker": ".", "markersize": 4}
            (self.line_,) = ax.plot(*self._points(), **look)
            color = self.line_.get_color()
            point = {**_MARK, **self.mark, "color": color}
            self.point_ = ax.plot([at[0]], [at[1]], **point)[0] if at else None
            self.band_ = None
            if self.band is not None:
                edges = self.band.recall, self.band.low, self.band.high
                self.band_ = ax.fill_between(*edges, color=color, alpha=0.2, linewidth=0)
            if fresh:
                _legends[ax] = []
            if ax in _legends and look["label"]:
                _legends[ax].append(self.line_)
                place_legend(ax, _legends[ax], self.corner)
        return self


class PRCurveDisplay(CurveDisplay):
    """A precision-recall curve of a run or of a ranking, with lines of equal F.

    Parameters
    ----------
    recall, precision : array_like
        (K,) in the order of the curve.
    name : str
        The name in tables and legends.
    best : OperatingPoint or None
        The point to mark, or None.
    band : CurveBand or None
        (recall, low, high), each (B,), or None.
    ap, chance : float or None
        Of a ranking: the number in the legend where there is no best point, and the height of the
        line of a random one.
    title : str
        Over a figure of this curve alone.

    Raises
    ------
    DataError
        For arrays of different lengths.

    Examples
    --------
    >>> shown = PRCurveDisplay.from_scores([1, -1, 1], [0.9, 0.5, 0.4], name="made").plot()
    >>> shown.ax_.get_xlabel(), shown.line_.get_label()
    ('Recall', 'made (AP 0.833)')
    """

    curve_of = staticmethod(pr)
    number = "AP", "ap"
    axis_names = "Recall", "Precision"
    iso_f = True
    mark: ClassVar[dict[str, Any]] = {**CurveDisplay.mark, "markeredgewidth": 0.8}

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
        self.recall, self.precision = pair(recall, precision, "recall", "precision", least=0)
        self.name, self.best, self.band = name, best, band
        self.ap, self.chance, self.title = ap, chance, title
        self.room = 0.0 if chance is None else ROOM

    @classmethod
    def from_evaluation(
        cls,
        run: Evaluation,
        name: str | None = None,
        metric: str | None = None,
        band: CurveBand | None = None,
    ) -> PRCurveDisplay:
        """The curve of a run's score with its ODS point.

        Thresholds above every prediction (precision 0/0) are not drawn.

        Parameters
        ----------
        run : Evaluation
            The run.
        name : str or None
            Its name in the legend; default: the run's.
        metric : str or None
            A metric with a precision-recall curve; default: the run's first.
        band : CurveBand or None
            Drawn around the curve.

        Returns
        -------
        PRCurveDisplay
            The display, not drawn yet.

        Raises
        ------
        DataError
            If the run has no counts of that metric.
        """
        score = run.score(curve_of(run, metric))
        recall, precision = score.curve.recall, score.curve.precision
        drawn = (precision > 0) | (recall > 0)
        name = run.name if name is None else name
        shown = cls(recall[drawn], precision[drawn], name=name, best=score.ods, band=band)
        about = reference_of(run)
        shown.joined = about is None or about.ordered
        return shown

    @classmethod
    def from_published(cls, result: PublishedResult) -> PRCurveDisplay:
        """The stored curve of a published result, with the ODS point of its summary line.

        Parameters
        ----------
        result : PublishedResult
            One with a curve.

        Returns
        -------
        PRCurveDisplay
            The display, not drawn yet.

        Raises
        ------
        DataError
            For a result without a curve.
        """
        curve = result.curve
        if curve is None:
            raise DataError(f"published {result.key!r}: no curve is stored, expected one with")
        drawn = (curve.precision > 0) | (curve.recall > 0)
        return cls(curve.recall[drawn], curve.precision[drawn], name=result.label, best=curve.ods)

    @classmethod
    def from_curve(cls, curve: PRResult, name: str = "") -> PRCurveDisplay:
        numbers = (("AUC", curve.auc), ("AP", curve.ap), ("AP11", curve.ap_11))
        title = ", ".join(
            f"{word} {100 * v:.1f} %" if v == v else f"{word} -" for word, v in numbers
        )
        own = {"ap": curve.ap, "chance": curve.chance, "title": title}
        return cls(curve.recall, curve.precision, name=name, **own)  # type: ignore[arg-type]

    def _points(self) -> tuple[F8, F8]:
        return visible_points(self.recall, self.precision)

    def _random(self) -> tuple[Any, Any] | None:
        """A level line, of a ranking."""
        return None if self.chance is None else ((0, 1), (self.chance, self.chance))

    def _marked(self) -> tuple[float, float] | None:
        return (self.best.recall, self.best.precision) if self.best else None


def plot_curves(
    displays: Sequence[CurveDisplay], path: str | Path | None = None, *, title: str = ""
) -> Figure:
    """One figure with several displays of one kind, each its own colour, named in a legend.

    path : also write it there, .pdf, .svg or .png. Raises DataError for no display or displays of
    different kinds.
    """
    with style(), for_file(path is not None):
        ax = draw_together(displays, title)
        lines = [d.line_ for d in displays if d.label]
        if lines:
            place_legend(ax, lines, displays[0].corner)
    figure = root_figure(ax)
    if path is not None:
        save(figure, path)
    return figure


def draw_together(displays: Sequence[CurveDisplay], title: str = "") -> Axes:
    """New axes with several displays of one kind, without a legend.

    A chance line that several share is drawn once (PR curves of other shares of positives have
    other ones). Raises as `plot_curves`.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {_kind(d) for d in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    widest = max(displays, key=lambda d: d._reach())
    ax = widest._new_axes()
    widest._set_axes(ax)
    ax.set_title(title, parse_math=False)
    drawn: set[Any] = set()
    for display in displays:
        chance = getattr(display, "chance", None)
        display.plot(ax, chance=chance not in drawn)
        drawn.add(chance)
    return ax


def _kind(display: CurveDisplay) -> str:
    detail = getattr(display, "variant", None) or getattr(display, "scale", None)
    return type(display).__name__ + (f" {detail}" if detail else "")


def pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, least: int = 1) -> tuple[F8, F8]:
    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    if x.size != y.size or x.size < least:
        found = f"{name_a}, {name_b}: {x.size} and {y.size} values"
        raise DataError(f"{found}, expected as many{', at least one' if least else ''}")
    return x, y


def visible_points(x: F8, y: F8) -> tuple[F8, F8]:
    keep = apart(x, y)
    return x[keep], y[keep]


def apart(x: F8, y: F8) -> Any:
    """Which points to draw: of a run in one cell of a fine grid, the first and the last."""
    if x.size <= _STEPS:
        return slice(None)
    cell = np.round(x * _STEPS) * (4 * _STEPS) + np.round(y * _STEPS)
    new = cell[1:] != cell[:-1]
    return np.r_[True, new] | np.r_[new, True]


def curve_of(run: Evaluation, metric: str | None = None) -> str:
    """The metric whose PR curve is drawn: the one given, or the run's first that has one.

    Raises DataError for another metric, or if the run has none.
    """
    curves = registry.with_curve(run.metrics, run.protocol)
    if not curves:
        raise DataError(
            f"{run.name}: none of its metrics has a precision-recall curve "
            f"({', '.join(run.metrics) or 'no metric'})"
        )
    if metric and metric not in curves:
        raise DataError(f"{run.name}: {metric!r} has no curve, expected {', '.join(curves)}")
    return metric or curves[0]
