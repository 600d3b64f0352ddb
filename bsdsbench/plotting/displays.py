"""Pictures of one curve each.

Displays in the manner of scikit-learn: arrays in the constructor, drawing in `plot(ax=None)`, which
returns the display, and in `from_predictions` and `from_evaluation`; `ax_`, `figure_` and the
artists (`line_`, `point_`, `chance_`) are its attributes. Several displays on one axes get
different colours; axes that are still empty are given limits and labels, others keep theirs.
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
from bsdsbench.curves.points import AnyCurve, AxesKind, CurvePoints, in_space
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
# Axes extend so far beyond 0 and 1, so that a curve that runs along an edge is drawn in full width
_ROOM = 0.01
_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
_DOT = {**_EDGE, "marker": "o", "markersize": 5}
_STAR = {**_EDGE, "marker": "*", "markersize": 11, "label": "equal error rate"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "none"}
_RING |= {"clip_on": False, "label": "negatives ranked first"}
# Whole TPs are so near to each other that lines between them look like the curve
_FINE = 500
# Ticks of normal-deviate axes
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


_MOST_DOTS = 40

ARTISTS = ("ax_", "figure_", "line_", "point_", "chance_")  # the attributes that `plot` sets


class Drawing(NamedTuple):
    """The curve of a display, the line of a random ranking, a marked point, and given points."""

    x: F8
    y: F8
    chance: tuple[Any, Any] | None
    point: tuple[float, float] | None
    dots: tuple[F8, F8] | None = None


class CurveDisplay:
    """Base of all displays: checks the arrays, draws in a fixed order and makes the legend."""

    name: str = ""
    best: OperatingPoint | None = None
    #: title of a figure that has this curve alone
    title: str = ""
    #: False if the points are not joined, because nothing lies between them
    joined: bool = True
    #: displays of different kinds have different axes, and are not drawn together
    kind: str = ""
    #: style of the marked point
    look = _STAR
    #: names of the two array fields; labels of the axes, and how far these extend beyond 0 and 1
    arrays: tuple[str, str]
    axes: tuple[str, str]
    room: float = _ROOM
    #: height of a new figure in inches, and its width in heights
    size = 4.4, 1.0
    #: axes of `bsdsbench.curves` that have the rates of the two fields
    space: AxesKind
    #: few points that a line joins are marked
    dotted: bool = False
    #: the weight of recall in the lines of equal F
    beta2: float = 1.0
    #: x and y of given points, where what is drawn has points between them
    given: tuple[F8, F8] | None = None
    #: function from labels and scores to a curve; name of the field whose number is in the legend
    curve_of: Any
    number = ""
    #: made by a constructor that draws, and not by `plot`
    _first_figure: Any = None

    def __post_init__(self) -> None:
        sizes = []
        for array in self.arrays:
            values = np.asarray(getattr(self, array), np.float64).ravel()
            setattr(self, array, values)
            sizes.append(str(values.size))
        if len({*sizes}) > 1:
            both = f"{', '.join(self.arrays)}: {' and '.join(sizes)} values"
            raise DataError(f"{both}, expected as many")

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

        `ax` is as for `plot`; `options` are those of `curves.pr` etc., and further arguments of the
        display.
        """
        of_display = {f.name for f in fields(cls)} & options.keys()  # type: ignore[arg-type]
        arguments = {key: options.pop(key) for key in of_display}
        curve = cls.curve_of(labels, scores, **options)
        return cls.from_curve(curve, name, **arguments)._drawn(ax)

    @classmethod
    def of_run(cls: type[_D], run: Evaluation, name: str | None, metric: str | None) -> _D:
        """Return the display of a run without drawing it. Raises DataError for one without."""
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

        `metric` is by default the run's first that has one; `ax` and `line` are as for `plot`.
        Raises DataError if there is none.
        """
        return cls.of_run(run, name, metric)._drawn(ax, **line)

    def _drawn(self: _D, ax: Axes | None, **line: Any) -> _D:
        """Draw at once. A figure that was made so is replaced by that of a later `plot`."""
        self.plot(ax, **line)
        self._first_figure = self.figure_ if ax is None else None
        return self

    @classmethod
    def from_curve(cls: type[_D], curve: AnyCurve, name: str = "", **arguments: object) -> _D:
        """Return the display of any curve of the package: of samples, points, a hull, a score.

        `arguments` are further arguments of the display, and take precedence. Raises DataError for
        what is no curve, and for one that needs the totals of the classes to be drawn here.
        """
        curve = in_space(curve, cls.space)
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        fields_of_curve = {key: getattr(curve, key) for key in names if hasattr(curve, key)}
        display = cls(**{**fields_of_curve, "name": name, **arguments})
        if isinstance(curve, CurvePoints):
            display.dotted, display.joined = curve.thresholds.size <= _MOST_DOTS, curve.is_curve
        return display

    def _drawing(self) -> Drawing:
        raise NotImplementedError

    def _prepare(self, ax: Axes) -> None:
        """Give empty axes their scales and limits."""
        ax.set(xlim=(-self.room, 1 + self.room), ylim=(-self.room, 1 + self.room))

    @property
    def label(self) -> str:
        """Text of the legend: the F of the best point and the name, or the name and a number."""
        if self.best is not None:
            return f"[F={self.best.f:.3f}] {self.name}".strip()
        value = getattr(self, self.number, None)
        if value is None or np.isnan(value):
            return self.name
        text = f"{self.number.upper()} {value:.3f}"
        return f"{self.name} ({text})" if self.name else text

    def plot(self: _D, ax: Axes | None = None, *, chance: bool = True, **line: Any) -> _D:
        """Draw the curve on `ax` or on a new figure, and return the display.

        chance : draw the line of a random ranking too
        line : arguments of the curve's `Axes.plot`
        """
        if self._first_figure is not None:
            import matplotlib.pyplot as plt

            plt.close(self._first_figure)
            self._first_figure = None
        with style():
            empty = ax is None or untouched(ax)
            if ax is not None:
                prepare_layout(ax)
            self.ax_ = ax = ax or new_axes(*self.size)
            self.figure_ = ax.figure.figure
            ax.set_xlabel(ax.get_xlabel() or self.axes[0], parse_math=False)
            ax.set_ylabel(ax.get_ylabel() or self.axes[1], parse_math=False)
            if empty:
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
                shape = self.look if self.best is None else _DOT
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
        Of a ranking: the number in the legend, and the precision of a random ranking.
    auc : float or None
        The area, in the legend of curves of points, which have no AP.

    Raises
    ------
    DataError
        For arrays of different lengths.

    Examples
    --------
    >>> shown = PRCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="made")
    >>> shown.ax_.get_xlabel(), shown.line_.get_label()
    ('Recall', 'made (AP 0.833)')
    """

    arrays, axes, space = ("recall", "precision"), ("Recall", "Precision"), "pr"
    curve_of = staticmethod(pr)
    number, look = "ap", _RING
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
        """Return the display of a run's curve with its best point. Raises DataError without one."""
        score = run.score(metric_with_curve(run, metric))
        curve, best = score["curve"], OperatingPoint(**{"threshold": None, **score["ods"]})
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
        form = in_space(curve, "pr")
        if isinstance(form, CurvePoints) and form.is_curve and form.area == form.area:
            title = f"AUC (counts interpolated) {100 * form.area:.1f} %"
            scale = np.ceil(_FINE / form.positives)
            line = interpolate_pr(form.tp * scale, form.fp * scale, form.positives * scale)
            given = form.recall, form.precision
            display = super().from_curve(
                form, name, **{**line._asdict(), "title": title, **arguments}
            )
            display.given, display.number, display.auc = given, "auc", form.area
            return display
        if not isinstance(form, PRResult):
            return super().from_curve(form, name, **arguments)
        counts, total = (form.tp, form.fp), form.positives
        points = {}
        rule, area = "trapezoids", form.auc
        predicted = form.tp + form.fp > 0
        # The precision of an envelope, or for another prior, is not that of counts
        precision = ratio(form.tp, form.tp + form.fp)
        if total and np.allclose(form.precision[predicted], precision[predicted]):
            points = interpolate_pr(*counts, total)._asdict()
            rule, area = "counts interpolated", davis_goadrich_area(*counts, total)
        numbers = {"AP": form.ap, f"AUC ({rule})": area, "AP11": form.ap_11}
        percents = [f"{k} {100 * v:.1f} %" if v == v else f"{k} -" for k, v in numbers.items()]
        texts = {"title": ", ".join(percents)}
        return super().from_curve(form, name, **{**points, **texts, **arguments})

    def _drawing(self) -> Drawing:
        r, p, best, level = self.recall, self.precision, self.best, self.chance
        if best is not None:
            drawn = (p > 0) | (r > 0)  # the other points have no matched pixel
            return Drawing(r[drawn], p[drawn], None, (best.recall, best.precision))
        if level is None:
            return Drawing(r, p, None, None)
        wrong = r.size > 0 and r[0] == p[0] == 0
        ring = (0.0, 0.0) if wrong else None
        return Drawing(r, p, ((0, 1), (level, level)), ring, self.given)

    def _prepare(self, ax: Axes) -> None:
        self.room = 0.0 if self.chance is None else _ROOM
        super()._prepare(ax)
        draw_iso_f(ax, self.beta2)


@dataclass(eq=False, repr=False)
class FThresholdDisplay(CurveDisplay):
    """F over threshold. thresholds, f : (T,); best : the point to mark, or None."""

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
        """Return the display of a run's F at each threshold, with its ODS point."""
        if run.reference and run.reference.form == "segmentations":
            what = run.reference.parameter
            raise DataError(f"{run.name}: {what}, expected thresholds for F over threshold")
        score = run.score(metric_with_curve(run, metric))
        curve = score.curve
        f = f_beta(curve.precision, curve.recall, _beta2(run, metric))
        best = OperatingPoint(**{"threshold": None, **score["ods"]})
        return cls(curve.thresholds, f, name=name or run.name, best=best)

    def _drawing(self) -> Drawing:
        best, threshold = self.best, self.best.threshold if self.best else None
        point = (threshold, best.f) if best and threshold is not None else None
        return Drawing(self.thresholds, self.f, None, point)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(CurveDisplay):
    """A reliability diagram: the share of marked pixels in each bin of a soft map's values.

    Parameters
    ----------
    value, marked : array_like
        (B,) mean value and marked share of each bin, NaN for empty bins; see metric calibration.
    name : str
        In the legend.
    ece : float or None
        Expected calibration error, the number in the legend.
    """

    arrays, axes = ("value", "marked"), ("Mean value", "Marked share")
    number = "ece"
    value: Any
    marked: Any
    _: KW_ONLY
    name: str = ""
    ece: float | None = None

    @classmethod
    def of_run(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> ReliabilityDisplay:
        """Return the diagram of a run, of the pixels of all images. Raises DataError without."""
        for candidate in [metric] if metric else run.metrics:
            if "reliability" in (score := run.score(candidate)):
                bins = score.reliability
                return cls(bins.value, bins.marked, name=name or run.name, ece=score.ece)
        raise DataError(f"{run.name}: no metric of it has bins, expected one that has")

    def _drawing(self) -> Drawing:
        filled = ~np.isnan(self.value)
        return Drawing(self.value[filled], self.marked[filled], ((0, 1), (0, 1)), None)


@dataclass(eq=False, repr=False)
class ROCCurveDisplay(CurveDisplay):
    """A ROC curve on any pair of rates as axes, its chance line and its EER (a star).

    Parameters
    ----------
    fpr, tpr : array_like
        (K,) along the curve.
    name : str
        In the legend.
    auc, eer : float or None
        The number in the legend, and where the star is.
    kind : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn" as in VLFeat; see `curves.roc`.

    Raises
    ------
    DataError
        For another `kind`, arrays of different lengths.

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
        kind = given_word(self.kind, "kind", VARIANTS)
        x, y = (RATE_NAMES[rate][0].capitalize() for rate in (kind[:2], kind[2:]))
        self.axes = x, y
        super().__post_init__()

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> ROCCurveDisplay:
        kind = getattr(curve, "plot", "fptp")
        return super().from_curve(curve, name, **{"kind": kind, **arguments})

    def _drawing(self) -> Drawing:
        e = np.nan if self.eer is None else self.eer
        rates: dict[str, tuple[Any, Any]] = {"fp": (self.fpr, e), "tp": (self.tpr, 1 - e)}
        rates |= {"tn": (1 - self.fpr, 1 - e), "fn": (1 - self.tpr, e)}
        (x, x_star), (y, y_star) = rates[self.kind[:2]], rates[self.kind[2:]]
        rising = self.kind in ("fptp", "tpfp", "tnfn", "fntn")
        ends = (0, 1), (0, 1) if rising else (1, 0)
        return Drawing(x, y, ends, None if np.isnan(e) else (x_star, y_star))


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
        In the legend, and where the star is.
    scale : str
        "normal" or "log".

    Raises
    ------
    DataError
        For another `scale`, arrays of different lengths.

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
        self.kind = given_word(self.scale, "scale", ("normal", "log"))
        percent = ", %" if self.scale == "normal" else ""
        self.axes = f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}"
        super().__post_init__()
        both = np.r_[self.fpr, self.fnr]
        inner = both[(both > 0) & (both < 1)]
        smallest = min(inner.min(), 1 - inner.max()) if inner.size else 0.1
        # A power of ten below all rates of the curve other than 0 and 1
        self.lowest = float(max(10.0 ** np.floor(np.log10(smallest)), 1e-9))

    def _drawing(self) -> Drawing:
        low = self.lowest / 4  # rates of 0 and 1 lie just outside the axes
        from scipy.special import ndtr

        chance = ndtr(np.linspace(_deviate(low), -_deviate(low), 300))
        star = (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None
        x, y = np.clip(self.fpr, low, 1 - low), np.clip(self.fnr, low, 1 - low)
        return Drawing(x, y, (chance, 1 - chance), star)

    def _prepare(self, ax: Axes) -> None:
        low = self.lowest
        if self.scale == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
            return
        from scipy.special import ndtr

        ax.set_xscale("function", functions=(_deviate, ndtr))
        ax.set_yscale("function", functions=(_deviate, ndtr))
        ax.set(xlim=(low, _RATES[-1]), ylim=(low, _RATES[-1]))
        ticks = [t for t in _RATES if t >= low]
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{100 * t:g}" for t in ticks])
            axis.set_minor_locator(NullLocator())


def _deviate(rate: ArrayLike) -> F8:
    """Return the normal deviate of a rate.

    Rates are clipped, because matplotlib also asks for limits outside (0, 1).
    """
    from scipy.special import ndtri  # a tenth of a second, which PR curves do not need

    return np.asarray(ndtri(np.clip(rate, 1e-12, 1 - 1e-12)))


def _beta2(run: Evaluation, metric: str | None) -> float:
    """Return the weight of recall in the F of a metric with a curve."""
    scorer = registry.get(metric_with_curve(run, metric))
    return float(getattr(scorer.options_of(run.protocol), "beta2", 1.0))


def metric_with_curve(run: Evaluation, metric: str | None = None) -> str:
    """Return `metric`, or the run's first metric that has a curve. Raises DataError without one."""
    drawn = {name for name in run.metrics if isinstance(run.score(name).get("curve"), PRCurve)}
    curves = (*run.with_curve, *sorted(drawn.difference(run.with_curve)))
    if not curves or (metric and metric not in curves):
        asked = metric or ", ".join(run.metrics)
        known = ", ".join(curves) or "a metric with a precision-recall curve"
        raise DataError(f"{run.name}: {asked!r} has no curve, expected {known}")
    return metric or curves[0]
