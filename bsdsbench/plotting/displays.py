"""Displays of one curve each, in the manner of scikit-learn.

The constructor takes arrays. `plot(ax=None)` draws the curve and returns the display;
`from_predictions` and `from_evaluation` draw at once. Drawing sets the attributes `ax_`, `figure_`
and the artists `line_`, `point_` and `chance_`. Several displays on the same axes get different
colours. Empty axes get limits and labels; other axes keep theirs.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, given_word
from bsdsbench.comparison.published import PublishedResult
from bsdsbench.curves import davis_goadrich_area, det, interpolate_pr, pr, roc
from bsdsbench.curves.points import AnyCurve, AxesKind, CurvePoints, to_space
from bsdsbench.curves.ranked import RATE_NAMES, VARIANTS, PRResult, Variant
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.style import (
    GREY,
    add_title,
    draw_iso_f,
    legend,
    marker_scale,
    new_axes,
    next_style,
    prepare_layout,
    style,
    untouched,
)
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_beta, ratio

_D = TypeVar("_D", bound="CurveDisplay")
# Axes extend so far beyond 0 and 1 that a curve along an edge is drawn in full width
_ROOM = 0.01
_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
_DOT = {**_EDGE, "marker": "o", "markersize": 5}
_STAR = {**_EDGE, "marker": "*", "markersize": 11, "label": "equal error rate"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "none"}
_RING |= {"clip_on": False, "label": "negatives ranked first"}
# Number of positives for which lines between whole TPs look like the curve
_SMOOTH_POSITIVES = 500
# Ticks of normal-deviate axes
_RATE_TICKS = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)
_MAX_DOTS = 40  # a curve of more points is drawn without dots

ARTISTS = ("ax_", "figure_", "line_", "point_", "chance_")  # the attributes that `plot` sets


class Drawing(NamedTuple):
    """What a display draws.

    x, y : the curve; chance : x and y of the line of a random ranking
    point : the marked point; dots : x and y of the dots on the curve, default all its points
    """

    x: F8
    y: F8
    chance: tuple[Any, Any] | None
    point: tuple[float, float] | None
    dots: tuple[F8, F8] | None = None


class CurveDisplay:
    """Base class of displays. It checks the arrays, draws the curve and makes the legend."""

    name: str = ""
    best: OperatingPoint | None = None
    #: title of a figure with this curve only
    title: str = ""
    #: False if no line joins the points, because the curve has no order
    joined: bool = True
    #: displays with different kinds have different axes, so they cannot share a figure
    kind: str = ""
    #: style of the marked point
    marker_style = _STAR
    #: names of the two array fields
    arrays: tuple[str, str]
    #: labels of the two axes
    axes: tuple[str, str]
    #: how far the axes extend beyond 0 and 1
    room: float = _ROOM
    #: height of a new figure in inches, and its width in heights
    size = 4.4, 1.0
    #: axes of `bsdsbench.curves` that have the rates of the two fields
    space: AxesKind
    #: True if the points are marked by dots
    dotted: bool = False
    #: the weight of recall in the lines of equal F
    beta2: float = 1.0
    #: x and y of the original points if interpolated points are drawn too
    original_points: tuple[F8, F8] | None = None
    #: function from labels and scores to a curve
    curve_of: Any
    #: name of the field whose number is in the legend
    number = ""
    #: the figure of a constructor that draws; a later `plot` closes it
    _first_figure: Any = None

    def __post_init__(self) -> None:
        """Convert the arrays to float64. Raises DataError if their lengths differ."""
        sizes = []
        for name in self.arrays:
            values = np.asarray(getattr(self, name), np.float64).ravel()
            setattr(self, name, values)
            sizes.append(str(values.size))
        if len({*sizes}) > 1:
            lengths = f"{', '.join(self.arrays)}: {' and '.join(sizes)} values"
            raise DataError(f"{lengths}, expected as many")

    @classmethod
    def from_predictions(
        cls: type[_D],
        labels: ArrayLike,
        scores: ArrayLike,
        name: str = "",
        *,
        ax: Axes | None = None,
        **options: object,
    ) -> _D:
        """Draw the curve of labels and scores (N,), and return the display.

        `ax` is as for `plot`. `options` are further arguments of the display, or options of the
        function in `bsdsbench.curves` that makes the curve, such as `pr`.
        """
        display_keys = {f.name for f in fields(cls)} & options.keys()  # type: ignore[arg-type]
        arguments = {key: options.pop(key) for key in display_keys}
        curve = cls.curve_of(labels, scores, **options)
        return cls.from_curve(curve, name, **arguments)._draw_now(ax)

    @classmethod
    def of_run(cls: type[_D], run: Evaluation, name: str | None, metric: str | None) -> _D:
        """Return the display of a run without drawing it. Raises DataError if it has no curve."""
        raise DataError(f"{cls.__name__}: not of runs, expected labels and scores")

    @classmethod
    def from_evaluation(
        cls: type[_D],
        run: Evaluation,
        name: str | None = None,
        metric: str | None = None,
        *,
        ax: Axes | None = None,
        **line: object,
    ) -> _D:
        """Draw the curve of a run, and return the display.

        `metric` is by default the run's first metric with a curve. `ax` and `line` are as for
        `plot`. Raises DataError if the run or the metric has no curve.
        """
        return cls.of_run(run, name, metric)._draw_now(ax, **line)

    def _draw_now(self: _D, ax: Axes | None, **line: Any) -> _D:
        """Plot the display and return it. A new figure is closed if `plot` is called again."""
        self.plot(ax, **line)
        self._first_figure = self.figure_ if ax is None else None
        return self

    @classmethod
    def from_curve(cls: type[_D], curve: AnyCurve, name: str = "", **arguments: object) -> _D:
        """Return the display of any curve of the package: of samples, points, a hull, a score.

        `arguments` are further arguments of the display, and override the fields of the curve.
        Raises DataError if `curve` is not a curve, or if these axes need totals that it lacks.
        """
        curve = to_space(curve, cls.space)
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        fields_of_curve = {key: getattr(curve, key) for key in names if hasattr(curve, key)}
        display = cls(**{**fields_of_curve, "name": name, **arguments})
        if isinstance(curve, CurvePoints):
            display.dotted = curve.thresholds.size <= _MAX_DOTS
            display.joined = curve.is_curve
        return display

    def _drawing(self) -> Drawing:
        """Return what `plot` draws. Each subclass defines it."""
        raise NotImplementedError

    def _prepare(self, ax: Axes) -> None:
        """Set the scales and limits of empty axes."""
        ax.set(xlim=(-self.room, 1 + self.room), ylim=(-self.room, 1 + self.room))

    @property
    def label(self) -> str:
        """Return the text in the legend: the name with the best F or another number."""
        if self.best is not None:
            return f"[F={self.best.f:.3f}] {self.name}".strip()
        value = getattr(self, self.number, None)
        if value is None or np.isnan(value):
            return self.name
        text = f"{self.number.upper()} {value:.3f}"
        return f"{self.name} ({text})" if self.name else text

    def plot(self: _D, ax: Axes | None = None, *, chance: bool = True, **line: Any) -> _D:
        """Draw the curve on `ax` or on a new figure, and return the display.

        chance : also draw the line of a random ranking
        line : arguments of `Axes.plot` for the curve
        """
        if self._first_figure is not None:
            import matplotlib.pyplot as plt

            plt.close(self._first_figure)
            self._first_figure = None
        with style():
            is_empty = ax is None or untouched(ax)
            if ax is None:
                ax = new_axes(*self.size)
            else:
                prepare_layout(ax)
            self.ax_ = ax
            self.figure_ = ax.figure.figure
            ax.set_xlabel(ax.get_xlabel() or self.axes[0], parse_math=False)
            ax.set_ylabel(ax.get_ylabel() or self.axes[1], parse_math=False)
            if is_empty:
                self._prepare(ax)
            if self.title:
                add_title(ax, self.name, self.title)
            line_style = {**next_style(ax), "label": self.label or None}
            if not self.joined:
                line_style |= {"linestyle": "none", "marker": ".", "markersize": 4}
            x, y, chance_line, point, dots = self._drawing()
            self.chance_ = self.point_ = None
            if chance and chance_line:
                dashes: Any = {"linestyle": (0, (4, 3)), "linewidth": 0.9, "zorder": 1.5}
                (self.chance_,) = ax.plot(*chance_line, color=GREY, **dashes)
            (self.line_,) = ax.plot(x, y, **{**line_style, **line})
            color = self.line_.get_color()
            if self.dotted and self.joined:
                ax.plot(*(dots or (x, y)), color=color, linestyle="none", zorder=3, **_DOT)
            if point:
                shape = self.marker_style if self.best is None else _DOT
                marker: Any = {"color": color, "linestyle": "none", "zorder": 3, **shape}
                marker["markersize"] *= marker_scale()
                (self.point_,) = ax.plot(*point, **marker)
            if self.label:
                legend(ax, ax.lines)
        return self


@dataclass(eq=False, repr=False)
class PRCurveDisplay(CurveDisplay):
    """A precision-recall curve of a run or of a ranking, with lines of equal F.

    Between the points of a ranking, from the first score on, counts are interpolated linearly
    (Davis and Goadrich 2006). A ring marks a curve whose highest scores are negatives.

    Parameters
    ----------
    recall, precision : array_like
        (K,) in the order of the curve.
    name, title : str
        Texts for the legend, and over a figure that has this curve alone.
    best : OperatingPoint or None
        The point to mark.
    ap, chance : float or None
        The AP of a ranking, for the legend, and the precision of a random ranking.
    auc : float or None
        The area of a curve of points, which has no AP, for the legend.

    Raises
    ------
    DataError
        If the arrays have different lengths.

    Examples
    --------
    >>> shown = PRCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="made")
    >>> shown.ax_.get_xlabel(), shown.line_.get_label()
    ('Recall', 'made (AP 0.833)')
    """

    arrays, axes, space = ("recall", "precision"), ("Recall", "Precision"), "pr"
    curve_of = staticmethod(pr)
    number = "ap"
    marker_style = _RING
    recall: Any
    precision: Any
    _: KW_ONLY
    name: str = ""
    best: OperatingPoint | None = None
    ap: float | None = None
    chance: float | None = None
    title: str = ""
    auc: float | None = None

    @classmethod
    def of_run(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> PRCurveDisplay:
        """Return the display of a run's curve with its ODS point.

        Raises DataError if the run or the metric has no curve.
        """
        score = run.score(metric_with_curve(run, metric))
        curve = score["curve"]
        best = OperatingPoint(**{"threshold": None, **score["ods"]})
        display = cls(curve.recall, curve.precision, name=name or run.name, best=best)
        display.joined = run.reference is None or run.reference.ordered
        display.beta2 = _beta2(run, metric)
        return display

    @classmethod
    def from_published(cls, published: PublishedResult) -> PRCurveDisplay:
        """Return the display of a published result. Raises DataError if it has no stored curve."""
        if (curve := published.curve) is None:
            raise DataError(f"published {published.key!r}: no curve is stored, expected one with")
        return cls(curve.recall, curve.precision, name=published.label, best=curve.ods)

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> PRCurveDisplay:
        """Return the display of any curve, with its areas in the title and interpolated points."""
        form = to_space(curve, "pr")
        if isinstance(form, CurvePoints) and form.is_curve and not np.isnan(form.area):
            title = f"AUC (counts interpolated) {100 * form.area:.1f} %"
            scale = np.ceil(_SMOOTH_POSITIVES / form.positives)
            points = interpolate_pr(form.tp * scale, form.fp * scale, form.positives * scale)
            display = super().from_curve(
                form, name, **{**points._asdict(), "title": title, **arguments}
            )
            display.original_points = form.recall, form.precision
            display.number = "auc"
            display.auc = form.area
            return display
        if not isinstance(form, PRResult):
            return super().from_curve(form, name, **arguments)
        interpolated = {}
        rule, area = "trapezoids", form.auc
        has_predictions = form.tp + form.fp > 0
        # The precision of an envelope, or for another prior, is not that of the counts
        precision = ratio(form.tp, form.tp + form.fp)
        if form.positives and np.allclose(
            form.precision[has_predictions], precision[has_predictions]
        ):
            interpolated = interpolate_pr(form.tp, form.fp, form.positives)._asdict()
            rule = "counts interpolated"
            area = davis_goadrich_area(form.tp, form.fp, form.positives)
        areas = {"AP": form.ap, f"AUC ({rule})": area, "AP11": form.ap_11}
        texts = [f"{k} -" if np.isnan(v) else f"{k} {100 * v:.1f} %" for k, v in areas.items()]
        return super().from_curve(
            form, name, **{**interpolated, "title": ", ".join(texts), **arguments}
        )

    def _drawing(self) -> Drawing:
        """Return the curve, with the best point of a run or the chance line of a ranking.

        Points of a run that match no pixel are left out. A ring at (0, 0) marks a ranking whose
        highest scores are negatives.
        """
        recall, precision, best = self.recall, self.precision, self.best
        if best is not None:
            matched = (precision > 0) | (recall > 0)
            return Drawing(recall[matched], precision[matched], None, (best.recall, best.precision))
        if self.chance is None:
            return Drawing(recall, precision, None, None)
        starts_at_zero = recall.size > 0 and recall[0] == precision[0] == 0
        ring = (0.0, 0.0) if starts_at_zero else None
        chance_line = (0, 1), (self.chance, self.chance)
        return Drawing(recall, precision, chance_line, ring, self.original_points)

    def _prepare(self, ax: Axes) -> None:
        """Set the limits, and draw the lines of equal F."""
        self.room = 0.0 if self.chance is None else _ROOM
        super()._prepare(ax)
        draw_iso_f(ax, self.beta2)


@dataclass(eq=False, repr=False)
class FThresholdDisplay(CurveDisplay):
    """A curve of F over threshold.

    thresholds, f : (T,)
    best : the point to mark, or None
    """

    arrays, axes, room = ("thresholds", "f"), ("Threshold", "F-measure"), 0.0
    size = (3.4, 1.35)
    thresholds: Any
    f: Any
    _: KW_ONLY
    name: str = ""
    best: OperatingPoint | None = None

    @classmethod
    def of_run(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> FThresholdDisplay:
        """Return the display of a run's F at each threshold, with its ODS point.

        Raises DataError if the run has no curve, or is a reference run of segmentations.
        """
        if run.reference and run.reference.form == "segmentations":
            parameter = run.reference.parameter
            raise DataError(f"{run.name}: {parameter}, expected thresholds for F over threshold")
        score = run.score(metric_with_curve(run, metric))
        curve = score.curve
        f = f_beta(curve.precision, curve.recall, _beta2(run, metric))
        best = OperatingPoint(**{"threshold": None, **score["ods"]})
        return cls(curve.thresholds, f, name=name or run.name, best=best)

    def _drawing(self) -> Drawing:
        """Return the curve, and the best point if its threshold is known."""
        point = None
        if self.best and self.best.threshold is not None:
            point = self.best.threshold, self.best.f
        return Drawing(self.thresholds, self.f, None, point)


@dataclass(eq=False, repr=False)
class ROCCurveDisplay(CurveDisplay):
    """A ROC curve on any pair of rates as axes, with a chance line and a star at the EER.

    Parameters
    ----------
    fpr, tpr : array_like
        (K,) along the curve.
    name : str
        In the legend.
    auc, eer : float or None
        The area, for the legend, and the equal error rate, for the star.
    kind : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn" as in VLFeat; see `curves.roc`.

    Raises
    ------
    DataError
        If `kind` is unknown or the arrays have different lengths.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.ROCCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="mine")
    >>> shown.name, shown.tpr.tolist()
    ('mine', [0.0, 0.5, 0.5, 1.0])
    """

    arrays, space = ("fpr", "tpr"), "roc"
    curve_of = staticmethod(roc)
    number = "auc"
    fpr: Any
    tpr: Any
    _: KW_ONLY
    name: str = ""
    auc: float | None = None
    eer: float | None = None
    kind: Variant = "fptp"

    def __post_init__(self) -> None:
        """Check the kind and the arrays, and label the axes by the names of the rates."""
        kind = given_word(self.kind, "kind", VARIANTS)
        x_rate, y_rate = kind[:2], kind[2:]
        self.axes = RATE_NAMES[x_rate][0].capitalize(), RATE_NAMES[y_rate][0].capitalize()
        super().__post_init__()

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> ROCCurveDisplay:
        """Return the display of any curve, by default on the axes that the curve was made for."""
        kind = getattr(curve, "plot", "fptp")
        return super().from_curve(curve, name, **{"kind": kind, **arguments})

    def _drawing(self) -> Drawing:
        """Return the curve on the axes of `kind`, the diagonal, and the EER as marked point."""
        eer = np.nan if self.eer is None else self.eer
        rates = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        rates_at_eer = {"fp": eer, "tp": 1 - eer, "tn": 1 - eer, "fn": eer}
        x_rate, y_rate = self.kind[:2], self.kind[2:]
        is_rising = self.kind in ("fptp", "tpfp", "tnfn", "fntn")
        diagonal = (0, 1), (0, 1) if is_rising else (1, 0)
        star = None if np.isnan(eer) else (rates_at_eer[x_rate], rates_at_eer[y_rate])
        return Drawing(rates[x_rate], rates[y_rate], diagonal, star)


@dataclass(eq=False, repr=False)
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
        The equal error rate, for the legend and the star.
    scale : str
        "normal" or "log".

    Raises
    ------
    DataError
        If `scale` is unknown or the arrays have different lengths.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.DETCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4])
    >>> shown.fpr.shape
    (4,)
    """

    arrays, space = ("fpr", "fnr"), "det"
    curve_of = staticmethod(det)
    number = "eer"
    fpr: Any
    fnr: Any
    _: KW_ONLY
    name: str = ""
    eer: float | None = None
    scale: Literal["normal", "log"] = "normal"

    def __post_init__(self) -> None:
        """Check the scale and the arrays, and set `lowest`, the lower limit of both axes.

        `lowest` is a power of ten below all rates of the curve other than 0 and 1.
        """
        self.kind = given_word(self.scale, "scale", ("normal", "log"))
        percent = ", %" if self.scale == "normal" else ""
        self.axes = f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}"
        super().__post_init__()
        rates = np.r_[self.fpr, self.fnr]
        inner = rates[(rates > 0) & (rates < 1)]
        smallest = min(inner.min(), 1 - inner.max()) if inner.size else 0.1
        self.lowest = float(max(10.0 ** np.floor(np.log10(smallest)), 1e-9))

    def _drawing(self) -> Drawing:
        """Return the curve, the line of a random ranking, and the EER as marked point."""
        from scipy.special import ndtr

        low = self.lowest / 4  # rates of 0 and 1 lie just outside the axes
        chance = ndtr(np.linspace(_deviate(low), -_deviate(low), 300))
        star = (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None
        x = np.clip(self.fpr, low, 1 - low)
        y = np.clip(self.fnr, low, 1 - low)
        return Drawing(x, y, (chance, 1 - chance), star)

    def _prepare(self, ax: Axes) -> None:
        """Set the scale and limits of both axes, and ticks in percent on normal axes."""
        low = self.lowest
        if self.scale == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
            return
        from scipy.special import ndtr

        ax.set_xscale("function", functions=(_deviate, ndtr))
        ax.set_yscale("function", functions=(_deviate, ndtr))
        ax.set(xlim=(low, _RATE_TICKS[-1]), ylim=(low, _RATE_TICKS[-1]))
        ticks = [tick for tick in _RATE_TICKS if tick >= low]
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{100 * tick:g}" for tick in ticks])
            axis.set_minor_locator(NullLocator())


def _deviate(rate: ArrayLike) -> F8:
    """Return the normal deviate of a rate.

    Rates are clipped, because matplotlib also asks for limits outside (0, 1).
    """
    from scipy.special import ndtri  # takes a tenth of a second, and PR curves do not need it

    return np.asarray(ndtri(np.clip(rate, 1e-12, 1 - 1e-12)))


def _beta2(run: Evaluation, metric: str | None) -> float:
    """Return the weight of recall in F for a metric with a curve, 1 if it has no such option."""
    scorer = registry.get(metric_with_curve(run, metric))
    options = scorer.options_of(run.protocol)
    return float(getattr(options, scorer.beta2_option)) if scorer.beta2_option else 1.0


def metric_with_curve(run: Evaluation, metric: str | None = None) -> str:
    """Return `metric`, or the run's first metric that has a curve.

    Raises DataError if `metric`, or every metric of the run, lacks a precision-recall curve.
    """
    has_pr_curve = {
        name for name in run.metrics if isinstance(run.score(name).get("curve"), PRCurve)
    }
    candidates = (*run.with_curve, *sorted(has_pr_curve.difference(run.with_curve)))
    if not candidates or (metric and metric not in candidates):
        wanted = metric or ", ".join(run.metrics)
        expected = ", ".join(candidates) or "a metric with a precision-recall curve"
        raise DataError(f"{run.name}: {wanted!r} has no curve, expected {expected}")
    return metric or candidates[0]
