"""Draw figures of several runs, as `bsdsbench plot` does, or of several displays."""

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

from bsdsbench.comparison.method import Method, Spread, runs_of, with_runs
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
from bsdsbench.errors import DataError, refuse_unless_forced
from bsdsbench.metrics import registry
from bsdsbench.plotting.displays import (
    ARTISTS,
    CurveDisplay,
    DETCurveDisplay,
    FThresholdDisplay,
    PRCurveDisplay,
    ROCCurveDisplay,
    metric_with_curve,
)
from bsdsbench.plotting.method_curves import AVERAGED, MethodCurve, drawn_how, method_curve
from bsdsbench.plotting.reliability_display import ReliabilityDisplay
from bsdsbench.plotting.style import (
    HUMAN,
    curve_lines,
    draw_figure,
    figure_notes,
    figure_width,
    font_size,
    legend,
    marker_scale,
    new_row,
    save,
    style,
)
from bsdsbench.plotting.tolerance_display import ToleranceDisplay
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, score_name
from bsdsbench.scores.curve import AP_RULES
from bsdsbench.scores.ratios import short

_BOX = "box"
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
    """Draw several displays of one kind on the same axes, with different colours and a legend.

    path : also write the figure to this .pdf, .svg or .png file
    ax : draw on these axes instead of a new figure
    chance : also draw the lines of random rankings

    Raises DataError if `displays` is empty, or if displays have different kinds.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {f"{type(display).__name__} {display.kind}".strip() for display in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    # DET curves share the lower limit of the axes
    lowest = min(getattr(display, "lowest", 1.0) for display in displays)
    chance_levels = set()  # chance lines at the same level are drawn once
    with style(file=path is not None):
        for display in displays:
            level = getattr(display, "chance", None)
            drawn_copy: Any = copy(display)  # the display keeps its own lower limit
            if hasattr(display, "lowest"):
                drawn_copy.lowest = lowest
            ax = drawn_copy.plot(ax, chance=chance and level not in chance_levels).ax_
            for artist in ARTISTS:
                setattr(display, artist, getattr(drawn_copy, artist))
            chance_levels.add(level)
        if len(displays) > 1:  # a title names the areas of a single curve
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
    """Draw the same curves in several spaces side by side, and return the figure.

    Parameters
    ----------
    curves : mapping
        The curves by name. Any curve of the package is accepted.
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.
    spaces : sequence of str
        "roc", "pr" and "det", from left to right.
    hull : bool
        Also draw the hull of each curve, dashed. In PR space it is the achievable curve.
    crossed : bool
        Mark the points at which two curves cross.
    chance : bool
        Draw the line of a random ranking.
    plot, scale : str
        The axes of ROC (see `curves.roc`) and of DET.
    look : optional
        See `bsdsbench.plotting.style.style`.

    Raises
    ------
    DataError
        If `curves` is empty, a space cannot show a curve, or the suffix of `path` is unknown.

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
            make_display = _IN_SPACE[space].from_curve
            displays = [make_display(curve, name, **arguments) for name, curve in curves.items()]
            plot_curves(displays, ax=ax, chance=chance)
            if hull:
                for display, curve in zip(displays, curves.values(), strict=True):
                    name = f"{display.name}: {'achievable' if space == 'pr' else 'hull'}"
                    dashed: Any = {"color": display.line_.get_color(), "linestyle": (0, (5, 2))}
                    hull_display = make_display(points_of(curve).hull(), name, **arguments)
                    hull_display.plot(ax, chance=False, **dashed)
            crossings = _crossings(list(curves.values()), space, plot) if crossed else []
            if crossings:
                black: Any = {"color": "black", "markersize": 7, "zorder": 4}
                ax.plot(*zip(*crossings, strict=True), "X", **black, label="crossing")
            if hull or crossed:
                legend(ax, ax.lines)
        return save(row[0].figure.figure, path)


def _crossings(
    curves: Sequence[AnyCurve], space: AxesKind, plot: Variant
) -> list[tuple[float, float]]:
    """Return (x, y) of all points at which two of the curves cross, on the axes of a space."""
    crossings: list[tuple[float, float]] = []
    for a, b in combinations(map(points_of, curves), 2):
        points = meeting(a, b, space).places
        if space == "pr":
            x, y = points.recall, points.precision
        elif space == "det":
            x, y = points.fpr, points.fnr
        else:
            rates = {"fp": points.fpr, "tp": points.tpr, "fn": points.fnr, "tn": 1 - points.fpr}
            x, y = rates[plot[:2]], rates[plot[2:]]
        crossings += zip(x, y, strict=True)
    return crossings


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
    """Draw the curves of runs and methods in one figure. The legend lists the best curve first.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs, or their folders, or reference runs ("ref:cob"); may be empty if `published` is given.
    names : sequence of str, optional
        A name per run, instead of the runs' own names.
    human : bool or Evaluation, optional
        Mark human agreement on BSDS500, or the agreement in this run. By default it is marked if
        all runs are of the test images of BSDS500.
    published : sequence of str
        Keys of published methods with a stored curve, and "human".
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.
    kind : str
        "pr", with lines of equal F; "f", F over threshold; "tolerance", ODS over the tolerances
        that a run was counted at; "reliability", the bins of calibration; "box", the spread of the
        images' own scores.
    metric : str, optional
        A metric with a PR curve; default: the runs' first. For "box" any metric, or METRIC.SCORE.
    look : optional
        See `bsdsbench.plotting.style.style`.
    ap : bool
        Show AP in the legend. A published AP is shown if its rule is the AP rule of all runs.
    force : bool
        Draw even if the protocols of runs differ or published results are of different images.
    labels : mapping
        Other names in the legend, by a run's name or folder or the key of a published result.
    methods : sequence of Method
        Methods of one or more runs. Each has one colour: the mean of its curves at equal recall (or
        threshold) with a band as wide as `spread` says ("sd", "range", "se"), or with `each_run`
        every run's own curve, thin. The legend says which.

    Raises
    ------
    DataError
        If a published key is unknown or has no curve, the names do not fit the runs, or the suffix
        of `path` is unknown; without `force` also if protocols or images differ.
    """
    if kind not in (*DISPLAYS, _BOX):
        raise DataError(f"kind {kind!r}: expected one of {', '.join(DISPLAYS)}, {_BOX}")
    labelled = labelled_runs(list(runs), as_runs(runs, names), labels, published)
    every_run = as_runs([*labelled, *runs_of(methods)])  # with the same AP and ODS rules
    methods = [*(Method(run.name, [run]) for run in labelled), *methods]
    methods = with_runs(methods, every_run)
    rows = published_curves_of(published, labels) if published else []
    if not (methods or rows):
        raise DataError("no runs given, expected at least one to plot")
    _check_comparable(every_run, rows, human, force)
    if any(method.n_runs > 1 for method in methods) and kind not in AVERAGED:
        raise DataError(f"kind {kind!r}: expected one run each, or one of {', '.join(AVERAGED)}")
    if kind == _BOX:
        return _plot_boxes(every_run, metric, path, look)
    spread = Spread(spread)
    with style(look, path is not None):
        curves = [_method_curve(method, kind, metric, ap, spread, each_run) for method in methods]
        published_displays = _published_displays(rows, {r.protocol.ap_rule for r in every_run}, ap)
        figure = plot_curves([*(curve.display for curve in curves), *published_displays])
        ax = figure.axes[0]
        for curve in curves:
            curve.draw_runs()
        entries: list[_LegendEntry] = [_LegendEntry(c.f, c.display.line_) for c in curves]
        for display in published_displays:
            f = display.best.f if display.best is not None else 0.0
            entries.append(_LegendEntry(f, display.line_))
        if human is None:
            is_human_task = not any(why_not_beside(run, HUMAN_TASK) for run in every_run)
            human = "human" in published or (bool(every_run) and is_human_task)
        if human and kind == "pr" and metric in (None, *registry.DEFAULT_METRICS):
            entries.append(_draw_human_point(ax, human))
        entries.sort(key=itemgetter(0), reverse=True)
        legend(ax, [*(entry.artist for entry in entries), *drawn_how(curves, kind, spread)])
        notes = [_signatures(every_run)]
        notes += [f"{row.label}: {row.curve.describe()}" for row in rows if row.curve]
        figure_notes[figure] = "\n".join(filter(None, notes))
        return save(figure, path)


class _LegendEntry(NamedTuple):
    """An artist in a legend, and the F by which the entries are sorted."""

    f: float
    artist: Any


def _check_comparable(
    runs: Sequence[Evaluation],
    rows: Sequence[PublishedResult],
    human: bool | Evaluation | None,
    force: bool,
) -> None:
    """Raise DataError if the runs and published results are not comparable, unless `force`."""
    problems = forbidden(runs)
    tasks = dict.fromkeys(row.tasks[0] for row in rows)
    if human is True:
        tasks[HUMAN_TASK] = None
    if len(tasks) > 1:
        problems.append(f"published: curves of {' and of '.join(tasks)}")
    for run in runs:
        reasons = [why_not_beside(run, task) for task in tasks]
        problems += [f"{run.name}: {reason}" for reason in reasons if reason]
    refuse_unless_forced(problems, force, "such curves are not comparable", "draws them")


def _method_curve(
    method: Method, kind: str, metric: str | None, ap: bool, spread: Spread, each_run: bool
) -> MethodCurve:
    """Return the curve of a method of one or more runs, with its AP in the legend if `ap`."""
    displays = [DISPLAYS[kind].of_run(run, metric=metric) for run in method.runs]
    aps = []
    if ap:
        scores = [run.score(metric_with_curve(run, metric)) for run in method.runs]
        aps = [float(score.get("ap", math.nan)) for score in scores]
    return method_curve(method, displays, aps, spread, each_run)


def _published_displays(
    rows: Sequence[PublishedResult], ap_rules: set[str], ap: bool
) -> list[PRCurveDisplay]:
    """Return the displays of published curves, with the AP in the name if `ap` is set.

    An AP is shown only if its rule is the single rule in `ap_rules`, those of the runs. Without
    runs it is shown if all published results have the same rule.
    """
    ap_rules = ap_rules or {str(row.ap_rule) for row in rows} & set(AP_RULES)
    displays = []
    for row in rows:
        display = PRCurveDisplay.from_published(row)
        if ap and ap_rules == {row.ap_rule}:
            display.name += f", AP {short(row.boundary['ap'])}"
        displays.append(display)
    return displays


def _draw_human_point(ax: Axes, human: bool | Evaluation) -> _LegendEntry:
    """Mark human agreement, that of BSDS500 test or of the run `human`, and return its entry."""
    if isinstance(human, Evaluation):
        best = human.boundary_score().ods
        name = "Human (each against the others)"
        f, recall, precision = best.f, best.recall, best.precision
    else:
        name = "Human (BSDS500 test)"
        f = find_published(["human"])[0].boundary["ods"]
        recall, precision = HUMAN_POINT
    marker: Any = {"markersize": 5.5 * marker_scale(), "color": HUMAN, "zorder": 4}
    marker["label"] = f"[F={short(f)}] {name}"
    (artist,) = ax.plot([recall], [precision], "D", **marker)
    return _LegendEntry(f, artist)


def _signatures(runs: Sequence[Evaluation]) -> str:
    """Return the signatures of runs, a line each."""
    return "\n".join(f"{run.name}: {run.signature_line}" for run in runs if run.signature_line)


def _plot_boxes(
    runs: Sequence[Evaluation], metric: str | None, path: str | Path | None, look: str | None
) -> Figure:
    """Draw a box plot of the images' own scores for each run, with a dot per image.

    `metric` is a metric, whose first score is drawn, or METRIC.SCORE. Raises DataError if not all
    runs have the metric.
    """
    shared = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    metric_name, _, key = (metric or (shared or [""])[0]).partition(".")
    if metric_name not in shared:
        expected = f"expected one that all runs have: {', '.join(shared)}"
        raise DataError(f"metric {metric_name!r}: {expected}")
    scorer = registry.get(metric_name)
    wanted = f"{metric_name}.{key or scorer.image_columns[0].key}"
    values_of_runs = []
    for run in runs:
        values_by_score = _image_values(run, metric_name)
        score, *_ = chosen_scores([wanted], list(values_by_score))
        values = np.array(values_by_score[score], np.float64)
        values_of_runs.append(values[np.isfinite(values)])
    heading = score
    if parsed := score_name(score):
        heading = parsed.column.heading
        if parsed.part:
            heading = f"{parsed.part}: {heading}"
    label = f"{scorer.title}: {heading} of an image"

    def draw(ax: Axes) -> None:
        lines = curve_lines(len(runs))
        for k, (values, (color, _)) in enumerate(zip(values_of_runs, lines, strict=True), 1):
            # Offsets by the golden ratio spread the dots evenly, and the same each time
            offsets = (np.arange(values.size) * 0.618034 % 1 - 0.5) * 0.5
            dots: Any = {"markersize": 2.5, "alpha": 0.45, "markeredgewidth": 0}
            ax.plot(k + offsets, values, "o", color=color, zorder=1.5, **dots)
            box: Any = {"color": color, "linewidth": 1.4}
            ax.boxplot(
                [values], positions=[k], widths=0.62, showfliers=False, showmeans=True,
                boxprops=box, whiskerprops=box, capprops=box, medianprops={**box, "linewidth": 2.4},
                meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": color},
            )  # fmt: skip
        points_per_run = ax.figure.figure.get_size_inches()[0] * 72 / max(3.0, len(runs))
        letters = max(int(points_per_run / (0.62 * font_size())), 6)
        names = [textwrap.fill(run.name, letters) for run in runs]
        ax.set_xticks(range(1, len(runs) + 1), names, parse_math=False)
        ax.grid(axis="x", visible=False)
        ax.set_ylabel(label, parse_math=False)

    return draw_figure(draw, path, look, note=_signatures(runs))


def _image_values(run: Evaluation, metric: str) -> Mapping[str, Sequence[float]]:
    """Return the values of all images, NaN if undefined, by METRIC.SCORE or METRIC.PART.SCORE."""
    if not run.records:  # such as a run of official files
        rows = run.image_scores(metric).values()
        keys = dict.fromkeys(key for row in rows for key in row)
        return {f"{metric}.{key}": [row.get(key, np.nan) for row in rows] for key in keys}
    return {
        ".".join(filter(None, (metric, part, key))): values
        for part, values_by_key in run.image_values(metric).items()
        for key, values in values_by_key.items()
    }


class PictureRow(NamedTuple):
    """A row of a grid: the image id, and (pixels, caption) pairs with pixels (H, W, 3)."""

    label: str
    pictures: Sequence[tuple[NDArray[np.uint8], str]]


def draw_grid(
    headings: Sequence[str], rows: Sequence[PictureRow], path: str | Path, look: str = "page"
) -> Figure:
    """Draw a grid of images with captions, and write it to `path`.

    The grid fits a page, or a column if `look` is "column". Pixels are not resampled. Raises
    DataError if the suffix of `path` is unknown or its folder is missing.
    """
    with style(look, file=True):
        # All lengths are in inches
        width = figure_width()
        em = font_size() / 72
        left_margin = 1.6 * em
        caption_height = 1.5 * em
        cell_width = (width - left_margin) / len(headings)
        letters = max(int(cell_width / (0.62 * em)), 4)
        headings = [textwrap.fill(heading, letters) for heading in headings]
        top_margin = (1 + max(heading.count("\n") for heading in headings)) * 1.4 * em
        max_row_height = (_PAGE_HEIGHT - top_margin) / len(rows)
        image_height = min(2 / 3 * cell_width, max_row_height - caption_height)
        height = top_margin + len(rows) * (image_height + caption_height)
        figure = Figure((width, height))
        text: Any = {"parse_math": False, "ha": "center"}
        for k, heading in enumerate(headings):
            center = (left_margin + (k + 0.5) * cell_width) / width
            figure.text(center, 1 - 0.2 * em / height, heading, va="top", **text)
        for j, row in enumerate(rows):
            bottom = height - top_margin - j * (image_height + caption_height) - image_height
            middle = (bottom + image_height / 2) / height
            figure.text(0.7 * em / width, middle, row.label, va="center", rotation=90, **text)
            for k, (pixels, caption) in enumerate(row.pictures):
                left = left_margin + k * cell_width + 0.03
                box = (left, bottom, cell_width - 0.06, image_height)
                ax = figure.add_axes(
                    (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
                )
                ax.imshow(pixels, interpolation="none")
                ax.set_axis_off()
                center = (left_margin + (k + 0.5) * cell_width) / width
                caption_top = (bottom - 0.15 * em) / height
                figure.text(center, caption_top, caption, va="top", fontsize="small", **text)
        return save(figure, path)


def plot_result(run: Evaluation, out: Path) -> None:
    """Write pr.png and pr.svg of a run into the folder `out` if it has a precision-recall curve."""
    if run.with_curve:
        figure = plot_runs([run], path=out / "pr.png")
        figure.set_layout_engine(None)  # the layout is final: a second one would only take time
        save(figure, out / "pr.svg")


def published_curves_of(
    keys: Sequence[str], labels: Mapping[str, str] = MappingProxyType({})
) -> list[PublishedResult]:
    """Return the published results with these keys, without "human".

    Raises DataError if a key is unknown or its result has no stored curve.
    """
    rows = [row for row in find_published(keys, labels) if row.key != "human"]
    expected = ", ".join(published_curves())
    errors = [
        DataError(f"published {row.key!r}: no curve is stored, expected {expected}")
        for row in rows
        if row.curve is None
    ]
    if errors:
        raise DataError.collect(errors)
    return rows
