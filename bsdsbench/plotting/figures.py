"""Whole figures of runs, as `bsdsbench plot` writes them, and of several displays."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bsdsbench.comparison.method import Method, runs_of, with_runs
from bsdsbench.comparison.method_tables import Spread
from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    PublishedResult,
    find_published,
    labelled_runs,
    published_curves,
    why_not_beside,
)
from bsdsbench.curves.points import AnyCurve, AxesKind, meeting, points_of
from bsdsbench.curves.ranked import Variant
from bsdsbench.errors import DataError, Setting
from bsdsbench.metrics import registry
from bsdsbench.plotting.displays import (
    ARTISTS,
    CurveDisplay,
    DETCurveDisplay,
    FThresholdDisplay,
    PRCurveDisplay,
    ReliabilityDisplay,
    ROCCurveDisplay,
    metric_with_curve,
)
from bsdsbench.plotting.method_curves import AVERAGED, MethodCurve, drawn_how, method_curve
from bsdsbench.plotting.style import (
    HUMAN,
    curve_lines,
    draw_figure,
    figure_width,
    font_size,
    legend,
    marker_scale,
    new_row,
    save,
    signed,
    style,
)
from bsdsbench.plotting.tolerance_display import ToleranceDisplay
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, score_name
from bsdsbench.scores.curve import AP_RULES
from bsdsbench.scores.ratios import short

BOX = "box"
_PAGE_HEIGHT = 9.0  # inches of text on a page
Runs = Sequence[Evaluation | str | Path]
DISPLAYS: dict[str, Any] = {
    "pr": PRCurveDisplay,
    "f": FThresholdDisplay,
    "tolerance": ToleranceDisplay,
    "reliability": ReliabilityDisplay,
}
_IN_SPACE: dict[str, Any] = {"pr": PRCurveDisplay, "roc": ROCCurveDisplay, "det": DETCurveDisplay}


def plot_curves(
    displays: Sequence[CurveDisplay],
    path: str | Path | None = None,
    *,
    ax: Axes | None = None,
    chance: bool = True,
) -> Figure:
    """Return a figure with several displays of one kind, each its own colour, with a legend.

    path : also write it there, .pdf, .svg or .png
    ax : draw on these axes, in place of a new figure
    chance : draw the lines of random rankings
    Raises DataError for no display or displays of different kinds.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds, reach = dict[str, None](), 1.0
    for display in displays:
        kinds[f"{type(display).__name__} {display.kind}".strip()] = None
        reach = min(reach, getattr(display, "lowest", reach))
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    drawn = set()
    with style(file=path is not None):
        for display in displays:
            level = getattr(display, "chance", None)
            drawing: Any = copy(display)  # what is given keeps its own reach
            if hasattr(display, "lowest"):
                drawing.lowest = reach
            # A chance line that they share is drawn once
            ax = drawing.plot(ax, chance=chance and level not in drawn).ax_
            for artist in ARTISTS:
                setattr(display, artist, getattr(drawing, artist))
            drawn.add(level)
        if len(displays) > 1:  # the title is of one curve
            displays[0].ax_.set_title("")
    return save(displays[0].figure_, path)


def plot_spaces(
    curves: Mapping[str, AnyCurve],
    path: str | Path | None = None,
    *,
    spaces: Sequence[AxesKind] = ("roc", "pr"),
    hull: bool = False,
    crossed: bool = False,
    chance: bool = True,
    plot: Variant = "fptp",
    scale: Literal["normal", "log"] = "normal",
    look: str | None = None,
) -> Figure:
    """Return one figure with curves in each of several spaces, side by side.

    Parameters
    ----------
    curves : mapping
        Names and curves, any of the package.
    path : path, optional
        Also write it there, .pdf, .svg or .png.
    spaces : sequence of str
        "roc", "pr" and "det", from left to right.
    hull : bool
        Draw the hull of each curve too, dashed; in PR space it is the achievable curve.
    crossed : bool
        Mark where two curves cross.
    chance : bool
        Draw the line of a random ranking.
    plot, scale : str
        The axes of ROC (see `curves.roc`) and of DET.
    look : optional
        See `bsdsbench.plotting.style.style`.

    Raises
    ------
    DataError
        For no curve, one that a space cannot show, another suffix.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> one = curves.CurvePoints.of_rates([0, 0.75], [0.5, 1], 20, 2000)
    >>> [ax.get_xlabel() for ax in plot_spaces({"I": one}).axes]
    ['False positive rate', 'Recall']
    """
    with style(look, path is not None):
        row = new_row(len(spaces))
        for ax, space in zip(row, spaces, strict=True):
            arguments: Any = {"roc": {"kind": plot}, "det": {"scale": scale}}.get(space, {})
            shown = []
            for name, curve in curves.items():
                shown.append(_IN_SPACE[space].from_curve(curve, name, **arguments))
            plot_curves(shown, ax=ax, chance=chance)
            for display, curve in zip(shown, curves.values(), strict=True) if hull else ():
                corners = points_of(curve).hull()
                text = f"{display.name}: {'achievable' if space == 'pr' else 'hull'}"
                dashed: Any = {"color": display.line_.get_color(), "linestyle": (0, (5, 2))}
                above = _IN_SPACE[space].from_curve(corners, text, **arguments)
                above.plot(ax, chance=False, **dashed)
            marks = _crossing_marks(list(curves.values()), space, plot) if crossed else []
            if marks:
                black: Any = {"color": "black", "markersize": 7, "zorder": 4}
                ax.plot(*zip(*marks, strict=True), "X", **black, label="crossing")
            if hull or crossed:
                legend(ax, ax.lines)
        return save(row[0].figure.figure, path)


def _crossing_marks(
    curves: Sequence[AnyCurve], space: AxesKind, plot: Variant
) -> list[tuple[float, float]]:
    """Return the places on the axes of a space at which any two curves cross."""
    marks: list[tuple[float, float]] = []
    for a, b in combinations(map(points_of, curves), 2):
        places = meeting(a, b, space).places
        rates = {"fp": places.fpr, "tp": places.tpr, "fn": places.fnr, "tn": 1 - places.fpr}
        x, y = ("fp", "fn") if space == "det" else (plot[:2], plot[2:])
        pair = (places.recall, places.precision) if space == "pr" else (rates[x], rates[y])
        marks += zip(*pair, strict=True)
    return marks


def plot_runs(
    runs: Runs,
    names: Sequence[str] | None = None,
    human: bool | Evaluation | None = None,
    published: Sequence[str] = (),
    path: str | Path | None = None,
    *,
    kind: str = "pr",
    metric: str | None = None,
    look: str | None = None,
    ap: bool = False,
    force: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
    methods: Sequence[Method] = (),
    spread: Spread | str = Spread.SD,
    each_run: bool = False,
) -> Figure:
    """One figure with the curves of `runs` and `methods`, best first in the legend.

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
    kind : str
        "pr", with lines of equal F; "f", F over threshold; "tolerance", ODS over the tolerances
        that a run was counted at; "reliability", the bins of calibration; "box", the spread of the
        images' own scores.
    metric : str, optional
        A metric with a PR curve; default: the runs' first. For "box" any metric, or METRIC.SCORE.
    look : optional
        See `bsdsbench.plotting.style.style`.
    ap : bool
        Show AP in the legend, of published results where its rule is that of the runs.
    force : bool
        Draw even if the runs' protocols differ or the published results are of other images.
    labels : mapping
        Other names in the legend, by a run's name or folder or the key of a published result.
    methods : sequence of Method
        Methods of one or more runs, each of which has one colour: the mean of their curves at equal
        recall (or threshold) with a band as wide as `spread` says ("sd", "range", "se"), or with
        `each_run` every run's own curve, thin. The legend says which.

    Raises
    ------
    DataError
        An unknown key or one without a curve, names that do not fit the runs, another suffix;
        without `force` also other protocols and other images.
    """
    if kind not in (*DISPLAYS, BOX):
        raise DataError(f"kind {kind!r}: expected one of {', '.join(DISPLAYS)}, {BOX}")
    runs, given = as_runs(runs, names), list(runs)
    runs = labelled_runs(given, runs, labels, published)
    every_run = as_runs([*runs, *runs_of(methods)])  # by rules in common
    methods = [*(Method(run.name, [run]) for run in runs), *methods]
    methods = with_runs(methods, every_run)
    extra = published_curves_of(published, labels) if published else []
    if not (methods or extra):
        raise DataError("no runs given, expected at least one to plot")
    _refuse_together(every_run, extra, human, force)
    if any(method.n_runs > 1 for method in methods) and kind not in AVERAGED:
        raise DataError(f"kind {kind!r}: expected one run each, or one of {', '.join(AVERAGED)}")
    if kind == BOX:
        return _plot_boxes(every_run, metric, path, look)
    spread = Spread(spread)
    with style(look, path is not None):
        shown = [_curve_of(method, kind, metric, ap, spread, each_run) for method in methods]
        beside = _published_displays(extra, {r.protocol.ap_rule for r in every_run}, ap)
        figure = plot_curves([*(one.display for one in shown), *beside])
        for one in shown:
            one.draw_runs()
        entries: list[Any] = [(one.f, one.display.line_) for one in shown]
        entries += [(d.best.f if d.best is not None else 0.0, d.line_) for d in beside]
        if human is None:
            apart = [run for run in every_run if why_not_beside(run, HUMAN_TASK)]
            human = "human" in published or (bool(every_run) and not apart)
        if human and kind == "pr" and metric in (None, *registry.DEFAULT_METRICS):
            entries.append(_human_point(figure.axes[0], human))
        entries.sort(key=itemgetter(0), reverse=True)
        legend(figure.axes[0], [*(line for _, line in entries), *drawn_how(shown, kind, spread)])
        notes = [
            _signatures(every_run),
            *(f"{r.label}: {r.curve.describe()}" for r in extra if r.curve),
        ]
        signed[figure] = "\n".join(filter(None, notes))
        return save(figure, path)


def _refuse_together(
    runs: Sequence[Evaluation],
    extra: Sequence[PublishedResult],
    human: bool | Evaluation | None,
    force: bool,
) -> None:
    """Raise DataError for curves that are not comparable, unless `force` is set."""
    beside, faults = dict[str, None](), forbidden(runs)
    for row in extra:
        beside[row.tasks[0]] = None
    if human is True:
        beside[HUMAN_TASK] = None
    if len(beside) > 1:
        faults.append(f"published: curves of {' and of '.join(beside)}")
    for run in runs:
        faults += [f"{run.name}: {why}" for task in beside if (why := why_not_beside(run, task))]
    if faults and not force:
        raise DataError(
            problems=[f"{fault}; such curves are not comparable" for fault in faults],
            fix=Setting("force", True, "draws them"),
        )


def _curve_of(
    method: Method, kind: str, metric: str | None, ap: bool, spread: Spread, each_run: bool
) -> MethodCurve:
    """Return the curve that is drawn for a method."""
    shown = [DISPLAYS[kind].of_run(run, metric=metric) for run in method.runs]
    aps = [
        float(run.score(metric_with_curve(run, metric)).get("ap", math.nan))
        for run in method.runs
        if ap
    ]
    return method_curve(method, shown, aps, spread, each_run)


def _published_displays(
    extra: Sequence[PublishedResult], rules: set[str], ap: bool
) -> list[PRCurveDisplay]:
    """Return the curves of published results; `rules` are the AP rules of the runs.

    An AP is shown of published results where its rule is the one of all runs.
    """
    rules = rules or {str(r.ap_rule) for r in extra} & set(AP_RULES)
    displays = []
    for row in extra:
        displays.append(PRCurveDisplay.from_published(row))
        if ap and {row.ap_rule} == rules:
            displays[-1].name += f", AP {short(row.boundary['ap'])}"
    return displays


def _human_point(ax: Axes, human: bool | Evaluation) -> tuple[float, Any]:
    """Mark human agreement on the axes, and return its F and the drawn marker."""
    f, (recall, precision) = find_published(["human"])[0].boundary["ods"], HUMAN_POINT
    name = "Human (BSDS500 test)"
    if isinstance(human, Evaluation):
        best, name = human.boundary_score().ods, "Human (each against the others)"
        f, recall, precision = best.f, best.recall, best.precision
    point: Any = {"markersize": 5.5 * marker_scale(), "color": HUMAN, "zorder": 4}
    point["label"] = f"[F={short(f)}] {name}"
    (drawn,) = ax.plot([recall], [precision], "D", **point)
    return f, drawn


def _signatures(runs: Sequence[Evaluation]) -> str:
    return "\n".join(f"{run.name}: {run.signature_line}" for run in runs if run.signature_line)


def _plot_boxes(
    runs: Sequence[Evaluation], metric: str | None, path: str | Path | None, look: str | None
) -> Figure:
    """Draw the images' own scores of each run: a box from quartile to quartile, and every image."""
    shared = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    name, _, key = (metric or (shared or [""])[0]).partition(".")
    if name not in shared:
        raise DataError(f"metric {name!r}: expected one that all runs have: {', '.join(shared)}")
    scorer, scores = registry.get(name), []
    for run in runs:
        if run.records:
            of_parts = run.image_values(name)
        else:
            rows = run.image_scores(name).values()
            keys = dict.fromkeys(key for row in rows for key in row)
            of_parts = {"": {k: [row.get(k, np.nan) for row in rows] for k in keys}}
        known = {
            ".".join(filter(None, (name, part, k))): values
            for part, by_key in of_parts.items()
            for k, values in by_key.items()
        }
        word = f"{name}.{key or scorer.image_columns[0].key}"
        meant, *_ = chosen_scores([word], list(known))
        values = np.array(known[meant], np.float64)
        scores.append(values[np.isfinite(values)])
    named, heading = score_name(meant), meant
    if named:
        heading = f"{named.part}: " * bool(named.part) + named.column.heading
    label = f"{scorer.title}: {heading} of an image"

    def draw(ax: Axes) -> None:
        size = ax.figure.figure.get_size_inches()[0] * 72 / max(3.0, len(runs))
        lines = curve_lines(len(runs))
        for k, (values, (color, _)) in enumerate(zip(scores, lines, strict=True), 1):
            # Images beside each other by the golden ratio: even, and the same each time
            aside = (np.arange(values.size) * 0.618034 % 1 - 0.5) * 0.5
            dots: Any = {"markersize": 2.5, "alpha": 0.45, "markeredgewidth": 0}
            ax.plot(k + aside, values, "o", color=color, zorder=1.5, **dots)
            box: Any = {"color": color, "linewidth": 1.4}
            ax.boxplot(
                [values], positions=[k], widths=0.62, showfliers=False, showmeans=True,
                boxprops=box, whiskerprops=box, capprops=box, medianprops={**box, "linewidth": 2.4},
                meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": color},
            )  # fmt: skip
        letters = max(int(size / (0.62 * font_size())), 6)
        names = [textwrap.fill(run.name, letters) for run in runs]
        ax.set_xticks(range(1, len(runs) + 1), names, parse_math=False)
        ax.grid(axis="x", visible=False)
        ax.set_ylabel(label, parse_math=False)

    return draw_figure(draw, path, look, note=_signatures(runs))


class PictureRow(NamedTuple):
    """An image of a grid of pictures: its id, and each picture (H, W, 3) with the text under it."""

    label: str
    pictures: Sequence[tuple[NDArray[np.uint8], str]]


def draw_grid(
    headings: Sequence[str], rows: Sequence[PictureRow], path: str | Path, look: str = "page"
) -> Figure:
    """Write a grid of pictures that fits a page, or in the style "column" a column; text is text.

    Pictures keep their pixels. Raises DataError as `save` does.
    """
    with style(look, file=True):
        width, gap = figure_width(), font_size() / 72
        left, below = 1.6 * gap, 1.5 * gap
        cell = (width - left) / len(headings)
        letters = max(int(cell / (0.62 * gap)), 4)
        headings = [textwrap.fill(heading, letters) for heading in headings]
        top = (1 + max(heading.count("\n") for heading in headings)) * 1.4 * gap
        rest = _PAGE_HEIGHT - top
        high = min(2 / 3 * cell, rest / len(rows) - below)  # of a picture
        height = top + len(rows) * (high + below)
        figure = Figure((width, height))
        text: Any = {"parse_math": False, "ha": "center"}
        for k, heading in enumerate(headings):
            x = (left + (k + 0.5) * cell) / width
            figure.text(x, 1 - 0.2 * gap / height, heading, va="top", **text)
        for j, row in enumerate(rows):
            y = height - top - j * (high + below) - high
            middle = (y + high / 2) / height
            figure.text(0.7 * gap / width, middle, row.label, va="center", rotation=90, **text)
            for k, (pixels, caption) in enumerate(row.pictures):
                place = (left + k * cell + 0.03) / width, y / height
                ax = figure.add_axes((*place, (cell - 0.06) / width, high / height))
                ax.imshow(pixels, interpolation="none")
                ax.set_axis_off()
                x = (left + (k + 0.5) * cell) / width
                figure.text(
                    x, (y - 0.15 * gap) / height, caption, va="top", fontsize="small", **text
                )
        return save(figure, path)


def plot_result(run: Evaluation, out: Path) -> None:
    """Write pr.png and pr.svg of a run into its folder, if there is a precision-recall curve."""
    if run.with_curve:
        figure = plot_runs([run], path=out / "pr.png")
        figure.set_layout_engine(None)  # which would draw it once more, and not move a thing
        save(figure, out / "pr.svg")


def published_curves_of(
    keys: Sequence[str], labels: Mapping[str, str] = MappingProxyType({})
) -> list[PublishedResult]:
    """The published results of these keys but "human". Raises DataError for one without curve."""
    rows = [row for row in find_published(keys, labels) if row.key != "human"]
    known = ", ".join(published_curves())
    faults = [
        DataError(f"published {r.key!r}: no curve is stored, expected {known}")
        for r in rows
        if r.curve is None
    ]
    if faults:
        raise DataError.collect(faults)
    return rows
