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
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

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
    PRResult,
    davis_goadrich_area,
    interpolate_pr,
    pr,
)
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
from bsdsbench.runs.evaluation import Evaluation, as_runs, not_beside
from bsdsbench.runs.references import incomparable
from bsdsbench.scores.curve import AP_RULES, OperatingPoint
from bsdsbench.scores.ratios import ratio, short

F8 = NDArray[np.float64]
Runs = Sequence[Evaluation | str | Path]
_D = TypeVar("_D", bound="CurveDisplay")
# Beyond 0 and 1, so that the line of a ranking, which may run along an edge, is not cut in half.
ROOM = 0.01
_DOT: dict[str, Any] = {"marker": "o", "markersize": 5}
_RING: dict[str, Any] = {"marker": "o", "markersize": 7, "label": "negatives ranked first"}


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
        if self.best is not None:
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
        self.recall, self.precision = pair(recall, precision, "recall", "precision")
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
        shown = cls._of(score.curve, run.name if name is None else name, score.ods)
        shown.band = band
        about = run.reference
        shown.joined = about is None or about.ordered
        return shown

    @classmethod
    def from_published(cls, result: PublishedResult) -> PRCurveDisplay:
        """The stored curve of a published result. Raises DataError for one without."""
        if result.curve is None:
            raise DataError(f"published {result.key!r}: no curve is stored, expected one with")
        return cls._of(result.curve, result.label, result.curve.ods)

    @classmethod
    def _of(cls, curve: Any, name: str, best: OperatingPoint | None) -> PRCurveDisplay:
        drawn = (curve.precision > 0) | (curve.recall > 0)
        return cls(curve.recall[drawn], curve.precision[drawn], name=name, best=best)

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
        if best is not None:
            return Drawing(r, p, None, (best.recall, best.precision))
        level = None if self.chance is None else ((0, 1), (self.chance, self.chance))
        wrong = level is not None and r.size > 0 and r[0] == p[0] == 0
        return Drawing(r, p, level, (0.0, 0.0) if wrong else None, _RING)

    def _axes(self, ax: Axes, empty: bool) -> None:
        room = 0.0 if self.chance is None else ROOM
        prepare(ax, "Recall", "Precision", room if empty else None)
        if empty:
            draw_iso_f(ax)


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
            if hasattr(display, "lowest"):
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
    runs = checked(runs, force, tasks, least=0 if extra else 1)
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
        entries: list[Any] = [(d.best.f if d.best is not None else 0.0, d.line_) for d in shown]
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
        return written(figure, path, runs, named, more)


def plot_result(run: Evaluation, out: Path) -> None:
    """pr.png and pr.svg of a run into its folder, if there is a precision-recall curve."""
    if registry.with_curve(run.metrics, run.protocol):
        save(plot_runs([run], path=out / "pr.png"), out / "pr.svg")


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


def checked(
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


def written(
    figure: Figure,
    path: str | Path | None,
    runs: Sequence[Evaluation],
    names: Sequence[str] | None = None,
    more: Sequence[str] = (),
) -> Figure:
    """The figure, which knows the signatures of its runs; a file of it too."""
    lines = zip(names or [r.name for r in runs], [r.signature_line for r in runs], strict=True)
    signed[figure] = "\n".join([*(f"{name}: {line}" for name, line in lines if line), *more])
    if path is not None:
        save(figure, path)
    return figure


def pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, least: int = 0) -> tuple[F8, F8]:
    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    if x.size != y.size or x.size < least:
        found = f"{name_a}, {name_b}: {x.size} and {y.size} values"
        raise DataError(f"{found}, expected as many{', at least one' if least else ''}")
    return x, y
