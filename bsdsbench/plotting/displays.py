"""Curves as pictures: precision-recall, ROC, DET, F over threshold; and whole figures of runs.

Displays in the manner of scikit-learn: arrays in the constructor, drawing in `plot(ax=None)`, which
returns the display; `ax_`, `figure_` and the artists (`line_`, `point_`, `chance_`, `band_`) are
its attributes. Several displays on one axes get different colours; axes that are still empty are
given limits and labels, others keep theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from bsdsbench.comparison.curve_band import CurveBand
from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    PublishedResult,
    find_published,
    published_keys,
    published_results,
)
from bsdsbench.curves import (
    DETResult,
    PRResult,
    ROCResult,
    davis_goadrich_area,
    det,
    interpolate_pr,
    pr,
    roc,
)
from bsdsbench.curves.ranked import VARIANTS
from bsdsbench.curves.results import Variant
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.style import (
    GREY,
    HUMAN,
    draw_iso_f,
    is_grey,
    legend,
    new_axes,
    next_style,
    prepare,
    save,
    signed,
    style,
    untouched,
)
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run_folder import as_runs
from bsdsbench.runs.run_identity import incomparable, not_beside, reference_of
from bsdsbench.scores.curve import AP_RULES, OperatingPoint
from bsdsbench.scores.ratios import ratio, short

F8 = NDArray[np.float64]
Scale = Literal["normal", "log"]
Runs = Sequence[Evaluation | str | Path]
_D = TypeVar("_D", bound="CurveDisplay")
# Beyond 0 and 1, so that the line of a ranking, which may run along an edge, is not cut in half.
_ROOM = 0.01
_DOT: dict[str, Any] = {"marker": "o", "markersize": 5}
_STAR: dict[str, Any] = {"marker": "*", "markersize": 11, "label": "equal error rate"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 7, "label": "negatives ranked first"}
_RATE_NAMES = {
    "tn": "True negative rate",
    "tp": "True positive rate",
    "fp": "False positive rate",
    "fn": "False negative rate",
}
# Rates at which normal-deviate axes have their ticks.
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


class Drawing(NamedTuple):
    """What a display draws: its line, the line of a random ranking, a marked point and its look."""

    x: F8
    y: F8
    chance: tuple[Any, Any] | None = None
    mark: tuple[float, float] | None = None
    look: dict[str, Any] = _DOT


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

    def _drawing(self) -> Drawing:
        raise NotImplementedError

    def _axes(self, ax: Axes, empty: bool) -> None:
        """Name the axes; give empty ones their scales and limits."""
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

    def plot(
        self: _D, ax: Axes | None = None, *, chance: bool = True, mark: bool = True, **line: Any
    ) -> _D:
        """Draw on `ax` or on a new figure, with the line of a random ranking (`chance`) and the
        best point or equal error rate (`mark`); `line` goes to the curve's `Axes.plot`."""
        with style():
            empty = ax is None or untouched(ax)
            self.ax_ = ax = ax or new_axes(*self.size)
            self.figure_ = ax.figure.figure
            self._axes(ax, empty)
            if empty and not ax.get_title():
                ax.set_title(self.title, parse_math=False)
            look = {**next_style(ax, self.name), "label": self.label or None, **line}
            look |= {} if self.joined else {"linestyle": "none", "marker": ".", "markersize": 4}
            drawn = self._drawing()
            self.chance_ = self.point_ = self.band_ = None
            if chance and drawn.chance:
                dashes: Any = {"linestyle": (0, (4, 3)), "linewidth": 0.9, "zorder": 1.5}
                (self.chance_,) = ax.plot(*drawn.chance, color=GREY, **dashes)
            (self.line_,) = ax.plot(drawn.x, drawn.y, **look)
            color = self.line_.get_color()
            if mark and drawn.mark:
                edge = {"color": color, "markeredgecolor": "white", "markeredgewidth": 0.8}
                if drawn.look is _RING:
                    edge = {"color": "none", "markeredgecolor": color, "clip_on": False}
                spot = {**edge, "linestyle": "none", "zorder": 3, **drawn.look}
                (self.point_,) = ax.plot(*([v] for v in drawn.mark), **spot)
            if self.band is not None:
                edges = self.band.recall, self.band.low, self.band.high
                self.band_ = ax.fill_between(*edges, color=color, alpha=0.2, linewidth=0)
            if self.name or self.label:
                legend(ax, ax.lines)
        return self


class PRCurveDisplay(CurveDisplay):
    """A precision-recall curve of a run or of a ranking, with lines of equal F.

    Between the points of a ranking the counts are interpolated, after Davis and Goadrich, from the
    first score on; a ring marks a curve that starts with negatives.

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
        r, p = score.curve.recall, score.curve.precision
        drawn, named = (p > 0) | (r > 0), run.name if name is None else name
        shown = cls(r[drawn], p[drawn], name=named, best=score.ods, band=band)
        about = reference_of(run)
        shown.joined = about is None or about.ordered
        return shown

    @classmethod
    def from_published(cls, result: PublishedResult) -> PRCurveDisplay:
        """The stored curve of a published result. Raises DataError for one without."""
        if result.curve is None:
            raise DataError(f"published {result.key!r}: no curve is stored, expected one with")
        curve = result.curve
        return cls(curve.recall, curve.precision, name=result.label, best=curve.ods)

    @classmethod
    def from_curve(cls, curve: PRResult, name: str = "") -> PRCurveDisplay:
        recall, precision, tp, fp = curve.recall, curve.precision, curve.tp, curve.fp
        rule, area = "trapezoids", curve.auc
        some = tp + fp > 0
        # An envelope, or another share of positives, has no counts to interpolate.
        if curve.positives and np.allclose(precision[some], ratio(tp, tp + fp)[some]):
            precision, recall = interpolate_pr(tp, fp, curve.positives)
            rule, area = "counts interpolated", davis_goadrich_area(tp, fp, curve.positives)
        numbers = {"AP": curve.ap, f"AUC ({rule})": area, "AP11": curve.ap_11}
        title = ", ".join(
            f"{k} {100 * v:.1f} %" if v == v else f"{k} -" for k, v in numbers.items()
        )
        return cls(recall, precision, name=name, ap=curve.ap, chance=curve.chance, title=title)

    def _drawing(self) -> Drawing:
        r, p, best = self.recall, self.precision, self.best
        if best:
            return Drawing(r, p, None, (best.recall, best.precision))
        level = None if self.chance is None else ((0, 1), (self.chance, self.chance))
        wrong = level is not None and r.size > 0 and r[0] == p[0] == 0
        return Drawing(r, p, level, (0.0, 0.0) if wrong else None, _RING)

    def _axes(self, ax: Axes, empty: bool) -> None:
        room = 0.0 if self.chance is None else _ROOM
        prepare(ax, "Recall", "Precision", room if empty else None)
        if empty:
            draw_iso_f(ax)


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

    def _drawing(self) -> Drawing:
        at = self.best and self.best.threshold
        best = None if self.best is None or at is None else (at, self.best.f)
        return Drawing(self.thresholds, self.f, None, best)

    def _axes(self, ax: Axes, empty: bool) -> None:
        prepare(ax, "Threshold", "F-measure", 0.0 if empty else None)


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
        self.fpr, self.tpr = _pair(fpr, tpr, "fpr", "tpr", least=1)
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
        prepare(ax, *names, _ROOM if empty else None)


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
        self.x, self.y = _pair(x, y, "x", "y")
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


def plot_curves(
    displays: Sequence[CurveDisplay], path: str | Path | None = None, *, title: str = ""
) -> Figure:
    """One figure with several displays of one kind, each its own colour, named in a legend.

    path : also write it there, .pdf, .svg or .png
    Raises DataError for no display or displays of different kinds.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {f"{type(d).__name__} {d.kind}".strip() for d in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    reach = min(getattr(d, "lowest", 1.0) for d in displays)
    ax, drawn = None, set()
    with style(file=path is not None):
        for display in displays:
            chance = getattr(display, "chance", None)
            if isinstance(display, DETCurveDisplay):
                display.lowest = reach
            ax = display.plot(ax, chance=chance not in drawn).ax_  # one that they share once
            drawn.add(chance)
        displays[0].ax_.set_title(title, parse_math=False)
    figure = displays[0].figure_
    if path is not None:
        save(figure, path)
    return figure


# ---- whole figures of runs, as `bsdsbench plot` writes them -------------------------------------


def plot_runs(
    runs: Runs,
    names: Sequence[str] | None = None,
    human: bool | Evaluation | None = None,
    published: Sequence[str] = (),
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    bands: Sequence[CurveBand | None] | None = None,
    look: str | None = None,
    grey: bool | None = None,
    ap: bool = False,
    force: bool = False,
) -> Figure:
    """One figure with the PR curves of `runs`, best first in the legend, and iso-F lines.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs, or their folders, or reference runs ("ref:cob"); with `published` none at all.
    names : sequence of str, optional
        One per run, in place of their own.
    human : bool or Evaluation, optional
        Mark human agreement on BSDS500 (default where it fits), or that of this run.
    published : sequence of str
        Keys of published methods with a stored curve, and "human".
    path : path, optional
        Also write it there, .pdf, .svg or .png.
    metric : str, optional
        A metric with a PR curve; default: the runs' first.
    bands : sequence of CurveBand or None, optional
        One per run, see `bsdsbench.comparison.curve_band.bootstrap_band`.
    look, grey : optional
        See `bsdsbench.plotting.style.style`.
    ap : bool
        Show AP in the legend, of published results where its rule is that of the runs.
    force : bool
        Draw even if the runs' protocols differ or the published results are of other images.

    Raises
    ------
    DataError
        An unknown key or one without a curve, names that do not fit the runs, another suffix;
        without `force` also other protocols and other images.
    """
    extra = published_curves_of(published) if published else []
    tasks = [*(r.tasks[0] for r in extra), *([HUMAN_TASK] if human is True else [])]
    runs = _checked(runs, force, tasks, least=0 if extra else 1)
    named = [run.name for run in runs] if names is None else list(names)
    if len(named) != len(runs):
        raise DataError(f"{len(named)} names for {len(runs)} runs, expected one each")
    bands = bands or [None] * len(runs)
    with style(look, grey, path is not None):
        shown = [
            PRCurveDisplay.from_evaluation(run, name, metric, band)
            for run, name, band in zip(runs, named, bands, strict=True)
        ]
        shown += [PRCurveDisplay.from_published(result) for result in extra]
        if ap:
            # Of published results where its rule is the one of all runs.
            rules = {r.protocol.ap_rule for r in runs} or {r.ap_rule for r in extra} & set(AP_RULES)
            values = [float(run.score(metric_with_curve(run, metric)).ap) for run in runs]
            values += [r.boundary["ap"] if {r.ap_rule} == rules else math.nan for r in extra]
            for display, value in zip(shown, values, strict=True):
                if not math.isnan(value):
                    display.name += f", AP {short(value)}"
        figure = plot_curves(shown)
        entries: list[Any] = [(d.best.f if d.best else 0.0, d.line_) for d in shown]
        fits = bool(runs) and not any(not_beside(run, HUMAN_TASK) for run in runs)
        asked = bool(published) and "human" in published_keys(published)
        if (asked or (fits if human is None else human)) and metric in (None, *registry.DEFAULT):
            f, (recall, precision) = find_published(["human"])[0].boundary["ods"], HUMAN_POINT
            name = "Human (BSDS500 test)"
            if isinstance(human, Evaluation):
                best, name = human.boundary_score().ods, "Human (each against the others)"
                f, recall, precision = best.f, best.recall, best.precision
            color, label = "black" if is_grey() else HUMAN, f"[F={short(f)}] {name}"
            point: Any = {"markersize": 5.5, "color": color, "label": label, "zorder": 4}
            entries.append((f, *figure.axes[0].plot([recall], [precision], "D", **point)))
        legend(figure.axes[0], [line for _, line in sorted(entries, key=lambda e: -e[0])])
        more = [f"{r.label}: {r.curve.describe()}" for r in extra if r.curve]
        return _written(figure, path, runs, named, more)


def plot_f(
    runs: Runs,
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
) -> Figure:
    """One figure with F over threshold of `runs`, the ODS points marked; see `plot_runs`."""
    runs = _checked(runs, force)
    for run in runs:
        if (about := reference_of(run)) and about.form == "segmentations":
            raise DataError(
                f"{run.name}: {about.parameter}, expected thresholds for F over threshold"
            )
    with style(look, grey, path is not None):
        shown = [FThresholdDisplay.from_evaluation(run, metric=metric) for run in runs]
        figure = plot_curves(shown)
        shown.sort(key=lambda d: -d.best.f if d.best else 0.0)
        legend(figure.axes[0], [d.line_ for d in shown])
        return _written(figure, path, runs)


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
    runs = _checked(runs, force)
    if len(runs) != 2:
        raise DataError(f"{len(runs)} runs, expected two for a scatter plot")
    with style(look, grey, path is not None):
        shown = ImageScatterDisplay.from_evaluations(runs[0], runs[1], metric=metric).plot()
        return _written(shown.figure_, path, runs)


def published_curves_of(keys: Sequence[str]) -> list[PublishedResult]:
    """The published results with a curve of these keys. Raises DataError for one without."""
    found = [result for result in find_published(keys) if result.key != "human"]
    bare = [r.key for r in found if r.curve is None and r.key in published_keys(keys)]
    if bare:
        known = ", ".join(key for key, r in published_results().items() if r.curve)
        raise DataError.collect(
            [DataError(f"published {key!r}: no curve is stored, expected {known}") for key in bare]
        )
    return [result for result in found if result.curve is not None]


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


def _checked(
    runs: Runs, force: bool, tasks: Sequence[str] = (), least: int = 1
) -> Sequence[Evaluation]:
    """The runs; raises DataError for what may not stand in one picture, but by `force`."""
    runs = as_runs(runs)
    if len(runs) < least:
        raise DataError("no runs given, expected at least one to plot")
    faults = [
        f"{run.name}, {runs[0].name}: protocols differ in {'; '.join(found)}"
        for run in runs[1:]
        if (found := incomparable(run, runs[0]))
    ]
    beside = list(dict.fromkeys(tasks))
    if len(beside) > 1:
        faults.append(f"published: curves of {' and of '.join(beside)}")
    faults += [f"{run.name}: {why}" for run in runs for t in beside if (why := not_beside(run, t))]
    if faults and not force:
        why = "such curves are not comparable (force=True draws them)"
        raise DataError.collect([DataError(f"{f}; {why}") for f in faults])
    return runs


def _written(
    figure: Figure,
    path: str | Path | None,
    runs: Sequence[Evaluation],
    names: Sequence[str] | None = None,
    more: Sequence[str] = (),
) -> Figure:
    """The figure, which knows the signatures of its runs; a file of it too."""
    lines = zip(names or [r.name for r in runs], (r.signature for r in runs), strict=True)
    signed[figure] = "\n".join([*(f"{name}: {line}" for name, line in lines if line), *more])
    if path is not None:
        save(figure, path)
    return figure


def _pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, least: int = 0) -> tuple[F8, F8]:
    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    if x.size != y.size or x.size < least:
        found = f"{name_a}, {name_b}: {x.size} and {y.size} values"
        raise DataError(f"{found}, expected as many{', at least one' if least else ''}")
    return x, y


def _deviate(rate: Any) -> Any:
    # The scale is also asked about limits outside (0, 1).
    return ndtri(np.clip(rate, 1e-12, 1 - 1e-12))
