"""The base class of displays. A display holds one curve and can draw it, as in scikit-learn.

The constructor of a display takes arrays. `plot(ax=None)` draws the curve and returns the display.
`from_predictions` and `from_evaluation` create a display and draw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, as_numbers, kind_of_value
from bsdsbench.curves.points import AnyCurve, AxesKind, CurvePoints, to_space
from bsdsbench.errors import DataError
from bsdsbench.plotting import style
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.scores.counts import OperatingPoint

# Axes extend this far beyond 0 and 1, so that a curve along an edge is not clipped
ROOM = 0.01
_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
_DOT_STYLE = {**_EDGE, "marker": "o", "markersize": 5}
_STAR_STYLE = {**_EDGE, "marker": "*", "markersize": 11, "label": "equal error rate"}
_MAX_DOTS = 40  # a curve with more points is drawn without dots

ARTISTS = ("ax_", "figure_", "line_", "point_", "chance_")  # the attributes that `plot` sets


class Drawing(NamedTuple):
    """What a display draws, in data coordinates."""

    x: Floats  # (K,), of the points of the curve
    y: Floats  # (K,)
    chance: tuple[Any, Any] | None = None  # x and y of the chance line
    point: tuple[float, float] | None = None  # x and y of the marked point
    dots: tuple[Floats, Floats] | None = None  # x and y of dots on the curve; None: all its points


_ROUNDING = 1e-6  # a rate may exceed 1 by this, as one computed in float32 does


@dataclass(eq=False, repr=False, kw_only=True)
class CurveDisplay:
    """Base class of displays. It checks the arrays, draws the curve and makes the legend.

    A subclass is a dataclass whose fields include the two arrays of the curve. It sets `arrays`,
    `axes` and, for `from_predictions`, `curve_of` and `space`. It overrides `_drawing` if more than
    the curve is drawn.
    """

    arrays: ClassVar[tuple[str, str]]  #: names of the two array fields
    axes = "", ""  #: labels of the two axes
    space: ClassVar[AxesKind]  #: space ("pr", "roc" or "det") whose rates are the two arrays
    curve_of: ClassVar[Any]  #: function that computes a curve from labels and scores
    name: str = ""  #: text in the legend
    best: OperatingPoint | None = None  #: point to mark; the legend shows its F
    title: str = ""  #: title of a figure with only this curve
    number = ""  #: name of the field whose value is shown in the legend, such as "ap"
    joined = True  #: False if the points are unordered and must not be joined by a line
    dotted = False  #: True if the points are marked by dots
    #: (x, y) of the points before interpolation, or None if the curve was not interpolated
    original_points: tuple[Floats, Floats] | None = field(default=None, init=False)
    line_style: ClassVar[dict[str, Any]] = {}  #: style of the curve beside its colour and dashes
    marker_style = _STAR_STYLE  #: style of the marked point
    kind = ""  #: displays of different kinds cannot share axes
    room = ROOM  #: how far the axes extend beyond 0 and 1
    size = 4.4, 1.0  #: height of a new figure in inches, and width / height
    beta2 = 1.0  #: beta^2 of the F-measure whose iso-F lines are drawn
    #: the figure made by `from_predictions` or `from_evaluation`; the next `plot` closes it
    _first_figure: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Convert the two arrays of the curve to float64 (K,).

        Raises DataError if their lengths differ or, of a PR, ROC or DET curve, if a rate is above
        1, such as a percentage.
        """
        has_rates = hasattr(self, "space")  # "pr", "roc" or "det"; other displays lack it
        sizes = []
        for name in self.arrays:  # names of the two fields, such as "recall", "precision"
            values = as_numbers(getattr(self, name), name).ravel()
            defined = values[~np.isnan(values)]
            if has_rates and (defined > 1 + _ROUNDING).any():
                has = f"{name}: values up to {defined.max():g}, expected shares from 0 to 1"
                raise DataError(has, fix="divide percentages by 100")
            setattr(self, name, values)
            sizes.append(values.size)
        if sizes[0] != sizes[1]:
            lengths = f"{', '.join(self.arrays)}: {sizes[0]} and {sizes[1]} values"
            raise DataError(f"{lengths}, expected as many")

    @classmethod
    def from_predictions(
        cls,
        labels: ArrayLike,
        scores: ArrayLike,
        name: str = "",
        *,
        ax: Axes | None = None,
        **options: object,
    ) -> Self:
        """Compute the curve from labels and scores, draw it, and return the display.

        Parameters
        ----------
        labels, scores : array_like
            (N,), labels such as 1 and 0, and scores, higher meaning more likely positive; see
            `bsdsbench.curves.pr`.
        name : str
            Text for the legend.
        ax : Axes, optional
            The axes to draw on. Default: those of a new figure.
        **options
            Fields of the display, and options of the function in `bsdsbench.curves` that computes
            the curve, such as `pr`.
        """
        # Fields of the display are taken out of `options`; the others are for `curve_of`
        names = [field.name for field in fields(cls)]
        arguments = {name: options.pop(name) for name in names if name in options}
        curve = cls.curve_of(labels, scores, **options)
        return cls.from_curve(curve, name, **arguments)._draw_now(ax)

    @classmethod
    def of_run(cls, run: Evaluation, name: str | None, metric: str | None) -> Self:
        """Create the display of a run without drawing it.

        `metric` defaults to the run's first metric with such a curve. Raises DataError if there is
        none, or if `metric` has none. This implementation always raises: it is that of displays
        that can only be made from labels and scores. Other displays override it.
        """
        raise DataError(f"{cls.__name__}: not of runs, expected labels and scores")

    @classmethod
    def from_evaluation(
        cls,
        run: Evaluation | str | Path,
        name: str | None = None,
        metric: str | None = None,
        *,
        ax: Axes | None = None,
        **line: object,
    ) -> Self:
        """Draw the curve of a run, and return the display.

        Parameters
        ----------
        run : Evaluation or path
            The run, or its folder.
        name : str, optional
            Text for the legend. Default: the run's name.
        metric : str, optional
            The metric. Default: the run's first metric with a curve of this kind.
        ax : Axes, optional
            The axes to draw on. Default: those of a new figure.
        **line
            Arguments of `Axes.plot` for the curve, which override its style.

        Raises
        ------
        DataError
            If the run or the metric has no curve of this kind.
        """
        (evaluation,) = as_runs([run])
        return cls.of_run(evaluation, name, metric)._draw_now(ax, **line)

    def _draw_now(self, ax: Axes | None, **line: Any) -> Self:
        """Plot the display and return it.

        If `ax` is None, the next call of `plot` closes the figure that is made here. Otherwise
        `from_predictions(...).plot()`, which draws the curve twice, would show two figures.
        """
        self.plot(ax, **line)
        self._first_figure = self.figure_ if ax is None else None
        return self

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> Self:
        """Create the display of any curve object of this package without drawing it.

        The curve is converted to the axes of this display if necessary. `name` is the text for the
        legend. Fields of the display that are not in `arguments` are copied from the curve.

        `CurvePoints` with at most 40 points are marked by dots. They are joined by a line only if
        their `is_curve` is True.

        Raises DataError if `curve` is not a curve of the package, or if the conversion needs
        numbers of positives and negatives that the curve lacks.
        """
        converted = to_space(curve, cls.space)
        names = [field.name for field in fields(cls)]
        values = {key: getattr(converted, key) for key in names if hasattr(converted, key)}
        display = cls(**{**values, "name": name, **arguments})
        if isinstance(converted, CurvePoints):
            display.dotted = converted.thresholds.size <= _MAX_DOTS
            display.joined = converted.is_curve
        return display

    def _drawing(self) -> Drawing:
        """Return the points and lines that `plot` draws: here the curve alone."""
        x_name, y_name = self.arrays
        return Drawing(getattr(self, x_name), getattr(self, y_name))

    def _prepare(self, ax: Axes) -> None:
        """Set the limits of empty axes. Some subclasses also set their scales."""
        ax.set(xlim=(-self.room, 1 + self.room), ylim=(-self.room, 1 + self.room))

    @property
    def label(self) -> str:
        """The text in the legend.

        It is "[F=0.780] NAME" if there is a best point, "NAME (AP 0.833)" if there is a summary
        number such as an AP, and otherwise the name alone.
        """
        if self.best is not None:
            return f"[F={self.best.f:.3f}] {self.name}".strip()
        value = getattr(self, self.number, None)  # `number` is the name of a field, such as "ap"
        if value is None or np.isnan(value):
            return self.name
        text = f"{self.number.upper()} {value:.3f}"
        return f"{self.name} ({text})" if self.name else text

    def plot(self, ax: Axes | None = None, *, chance: bool = True, **line: Any) -> Self:
        """Draw the curve and return the display.

        Parameters
        ----------
        ax : Axes, optional
            The axes to draw on. Default: those of a new figure. Axes that already have content
            keep their limits, scales and labels.
        chance : bool
            Also draw the chance line (random ranking), if the display has one.
        **line
            Arguments of `Axes.plot` for the curve, which override its style.

        Returns
        -------
        CurveDisplay
            The display itself. Its attributes `ax_`, `figure_`, `line_`, `point_` and `chance_`
            hold what was drawn; the marked point and the chance line may be None.
        """
        if self._first_figure is not None:
            # `from_predictions(...).plot()` draws twice, but shall show one figure: close the first
            import matplotlib.pyplot as plt

            plt.close(self._first_figure)
            self._first_figure = None
        if not (ax is None or hasattr(ax, "plot")):
            raise DataError(f"ax: {kind_of_value(ax)}, expected an Axes of matplotlib")
        with style.style():
            if ax is None:
                height, ratio = self.size  # in inches, and width / height
                ax = style.new_axes(height, ratio)
            figure = ax.figure.figure  # the whole figure, even if the axes are in a subfigure
            # The layout "constrained" makes room for labels and legends, but it arranges only axes
            # in a grid of subplots, which have a subplotspec
            if figure.get_layout_engine() is None and ax.get_subplotspec() is not None:
                figure.set_layout_engine("constrained")
            x_label, y_label = self.axes
            ax.set_xlabel(ax.get_xlabel() or x_label, parse_math=False)
            ax.set_ylabel(ax.get_ylabel() or y_label, parse_math=False)
            has_limits = not (ax.get_autoscalex_on() and ax.get_autoscaley_on())  # of the user
            if not (ax.has_data() or has_limits):
                self._prepare(ax)  # sets limits and scales
            if self.title:
                style.add_title(ax, self.name, self.title)
            self.ax_, self.figure_ = ax, figure
            self._draw_artists(ax, chance, line)
            if self.label:
                style.legend(ax, ax.lines)  # an entry for each labelled line, also earlier ones
        return self

    def _draw_artists(self, ax: Axes, chance: bool, line: Mapping[str, Any]) -> None:
        """Draw the curve and what the display adds to it, and keep the lines as attributes.

        `line_` is the curve. `point_` is the marked point, such as the best operating point, and
        `chance_` the dashed line of a random ranking; each is None if it was not drawn.

        chance : if False, the chance line is not drawn
        line : arguments of `Axes.plot` for the curve, which override its style
        """
        # x and y of the curve, and of the chance line and the marked point if the display has them
        drawing = self._drawing()
        self.chance_ = self.point_ = None
        curve_style = {**style.next_style(ax), **self.line_style, "label": self.label or None}
        if not self.joined:  # its points have no order: draw them as dots, without a line
            curve_style |= {"linestyle": "none", "marker": ".", "markersize": 4}
        curve_style |= line
        if chance and drawing.chance:  # the zorder puts it above iso-F lines and below curves
            dashes: Any = {"linestyle": (0, (4, 3)), "linewidth": 0.9, "zorder": 1.5}
            (self.chance_,) = ax.plot(*drawing.chance, color=style.GREY, **dashes)
        (self.line_,) = ax.plot(drawing.x, drawing.y, **curve_style)
        on_top: Any = {"color": self.line_.get_color(), "linestyle": "none", "zorder": 3}
        if self.joined and self.dotted:  # a line through few points: draw dots on it too
            # An interpolated curve has its own `dots`, at the points before interpolation
            dots = drawing.dots or (drawing.x, drawing.y)
            ax.plot(*dots, **on_top, **_DOT_STYLE)
        if drawing.point:
            # A dot at the best operating point, or the marker of the display, such as a star at the
            # equal error rate. All of these styles have a "markersize"
            marker: Any = _DOT_STYLE if self.best is not None else self.marker_style
            size = marker["markersize"] * style.marker_scale()  # larger on slides
            (self.point_,) = ax.plot(*drawing.point, **{**on_top, **marker, "markersize": size})
