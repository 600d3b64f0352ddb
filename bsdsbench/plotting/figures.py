"""Figures of several runs, as drawn by `bsdsbench plot`, or of several displays."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.arguments import check_list, check_word
from bsdsbench.comparison.comparable import shared_metric
from bsdsbench.comparison.method import Method, Spread, all_runs, replace_runs
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
from bsdsbench.plotting import style
from bsdsbench.plotting.curve_display import ARTISTS, CurveDisplay
from bsdsbench.plotting.displays import (
    DETCurveDisplay,
    FThresholdDisplay,
    PRCurveDisplay,
    ReliabilityDisplay,
    ROCCurveDisplay,
    ToleranceDisplay,
    metric_with_curve,
)
from bsdsbench.plotting.method_curves import AVERAGED, MethodCurve, method_curve, spread_entries
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.image_tables import values_by_score
from bsdsbench.results.score_names import chosen_scores, score_name
from bsdsbench.scores.curve import AP_RULES

_BOX = "box"
Runs = Sequence[Evaluation | str | Path]
# The display class for each `kind` of `plot_runs` except "box"
DISPLAYS: dict[str, Any] = {
    "pr": PRCurveDisplay,
    "f": FThresholdDisplay,
    "tolerance": ToleranceDisplay,
    "reliability": ReliabilityDisplay,
}
_DISPLAY_OF: dict[str, Any] = {"pr": PRCurveDisplay, "roc": ROCCurveDisplay, "det": DETCurveDisplay}


def plot_curves(
    displays: Sequence[CurveDisplay],
    path: str | Path | None = None,
    *,
    ax: Axes | None = None,
    chance: bool = True,
) -> Figure:
    """Draw several displays on the same axes, with different colours and a legend.

    Parameters
    ----------
    displays : sequence of CurveDisplay
        One or more displays of the same class and the same `kind`. Their attributes `ax_`, `line_`
        etc. are set as by `plot`.
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.
    ax : Axes, optional
        The axes to draw on. Default: those of a new figure.
    chance : bool
        Also draw the chance lines (random rankings).

    Raises
    ------
    DataError
        If there are no displays, if their classes or kinds differ, or if the suffix of `path` is
        unknown.
    """
    if not displays:
        raise DataError("no curves given, expected at least one to plot")
    kinds = {f"{type(display).__name__} {display.kind}".strip() for display in displays}
    if len(kinds) > 1:
        raise DataError(f"curves of kinds {', '.join(sorted(kinds))}, expected one kind per figure")
    # DET displays have their lower axis limit as `lowest`. The smallest one holds for all curves
    lowest = min(getattr(display, "lowest", 1.0) for display in displays)
    chance_levels_drawn = set()
    with style.style(file=path is not None):
        for display in displays:
            drawn_copy: Any = copy(display)  # the display keeps its own `lowest`
            if hasattr(display, "lowest"):
                drawn_copy.lowest = lowest
            # The height of the chance line of a PR curve. Other kinds have one line for all curves
            chance_level = getattr(display, "chance", None)
            is_new_level = chance_level not in chance_levels_drawn
            ax = drawn_copy.plot(ax, chance=chance and is_new_level).ax_
            chance_levels_drawn.add(chance_level)
            for attribute in ARTISTS:  # "ax_", "line_" and so on, which `plot` set on the copy
                setattr(display, attribute, getattr(drawn_copy, attribute))
        if len(displays) > 1:  # `plot` makes titles of the areas, which are for a single curve
            displays[0].ax_.set_title("")
    return style.save(displays[0].figure_, path)  # writes nothing if `path` is None


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
    """Draw the same curves in several spaces (ROC, PR, DET) side by side, one axes per space.

    Parameters
    ----------
    curves : mapping
        Name to show in the legend -> any curve object of the package.
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.
    spaces : sequence of str
        The spaces from left to right: "roc", "pr" or "det".
    hull : bool
        Also draw the convex hull of each curve in ROC space as a dashed line. In PR space, the
        points of this hull are the achievable PR curve.
    crossed : bool
        Mark the points at which two curves cross.
    chance : bool
        Draw the chance line (random ranking).
    plot : str
        The rates on the x and y axes of ROC space, such as "fptp"; see `curves.roc`.
    scale : str
        The scale of the DET axes, "normal" (normal deviates) or "log".
    look : str, optional
        "screen" (default), "column" or "page" (sizes for a paper), or "slide".

    Raises
    ------
    DataError
        If `curves` is empty, if a curve cannot be converted to a space, or if the suffix of `path`
        is unknown.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> one = curves.CurvePoints.of_rates([0, 0.75], [0.5, 1], 20, 2000)
    >>> [ax.get_xlabel() for ax in plot_spaces({"I": one}).axes]
    ['False positive rate', 'Recall']
    """
    options_of_space: dict[str, Any] = {"roc": {"kind": plot}, "det": {"scale": scale}}
    with style.style(look, path is not None):
        row = style.new_row(len(spaces))
        for ax, space in zip(row, spaces, strict=True):
            options = options_of_space.get(space, {})
            make_display = _DISPLAY_OF[space].from_curve
            displays = [make_display(curve, name, **options) for name, curve in curves.items()]
            plot_curves(displays, ax=ax, chance=chance)
            if hull:
                for display, curve in zip(displays, curves.values(), strict=True):
                    name = f"{display.name}: {'achievable' if space == 'pr' else 'hull'}"
                    hull_display = make_display(points_of(curve).hull(), name, **options)
                    color = display.line_.get_color()
                    hull_display.plot(ax, chance=False, color=color, linestyle=(0, (5, 2)))
            if crossed:
                _mark_crossings(ax, list(curves.values()), space, plot)
            if hull or crossed:
                style.legend(ax, ax.lines)
        return style.save(row[0].figure.figure, path)


def _mark_crossings(ax: Axes, curves: Sequence[AnyCurve], space: AxesKind, plot: Variant) -> None:
    """Mark the points at which any two curves cross, on the matplotlib axes `ax`.

    `space` is "roc", "pr" or "det". `plot` is the rates on the x and y axes of ROC space, such as
    "fptp" (x = FPR, y = TPR).
    """
    xs, ys = [], []
    for a, b in combinations(map(points_of, curves), 2):
        crossings = meeting(a, b, space).places  # the points at which the two cross
        if space == "pr":
            x, y = crossings.recall, crossings.precision
        else:
            fpr, tpr = crossings.fpr, crossings.tpr
            rates = {"fp": fpr, "tp": tpr, "fn": crossings.fnr, "tn": 1 - fpr}
            x_and_y = plot if space == "roc" else "fpfn"  # two codes of two letters: "fp", "fn"
            x, y = rates[x_and_y[:2]], rates[x_and_y[2:]]
        xs += x.tolist()
        ys += y.tolist()
    if xs:
        ax.plot(xs, ys, "X", color="black", markersize=7, zorder=4, label="crossing")


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
        Runs, folders of runs, or names of reference runs ("ref:cob"). May be empty if `published`
        or `methods` is not.
    names : sequence of str, optional
        One name per run, to replace the stored names.
    human : bool or Evaluation, optional
        The human performance to mark: True for the published value on the BSDS500 test set, a run
        of `evaluate_humans` for that run's value, False for none. Default: True if all runs were
        evaluated on the BSDS500 test set, or if "human" is in `published`; otherwise False. Only
        boundary plots of kind "pr" have this mark.
    published : sequence of str
        Keys of published methods with a stored curve, and "human".
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.
    kind : str
        The kind of plot:

        - "pr": precision against recall, with iso-F lines
        - "f": F against threshold
        - "tolerance": ODS against the tolerances at which a run was evaluated
        - "reliability": fraction of annotated pixels against the value of the map, for the metric
          calibration
        - "box": a box plot of the per-image scores
    metric : str, optional
        A metric with a curve of this kind. Default: the first one of each run. For "box", any
        metric, or METRIC.SCORE.
    look : str, optional
        "screen" (default), "column" or "page" (sizes for a paper), or "slide".
    ap : bool
        Show AP in the legend. A published AP is shown only if all runs use its AP rule.
    force : bool
        Draw even if the protocols of the runs, or the images of published results, differ.
    labels : mapping
        Replacement names in the legend, keyed by a run's name or folder or by a published result's
        key.
    methods : sequence of Method
        Methods (sets of one or more runs), each drawn in one colour; see `spread` and `each_run`.
    spread : Spread or str
        The band around the mean curve of a method with several runs: "sd" (standard deviation),
        "se" (standard error) or "range" (smallest to largest). Curves are averaged at equal recall
        (or threshold, or tolerance).
    each_run : bool
        Draw a thin curve for every run of a method instead of the mean and its band.

    Raises
    ------
    DataError
        If there is nothing to draw, if `kind` is unknown, if a published key is unknown or has no
        curve, if a run has no curve of this kind, if the names do not fit the runs, or if the
        suffix of `path` is unknown. If `force` is False, also if protocols or images differ.
    """
    check_word(kind, "kind", (*DISPLAYS, _BOX))
    drawn_methods = _methods_to_draw(runs, names, methods, labels, published)
    all_drawn_runs = [run for method in drawn_methods for run in method.runs]
    published_results = published_curves_of(published, labels) if published else []
    if not (drawn_methods or published_results):
        raise DataError("no runs given, expected at least one to plot")
    _check_comparable(all_drawn_runs, published_results, human is True, force)
    if any(method.n_runs > 1 for method in drawn_methods) and kind not in AVERAGED:
        raise DataError(f"kind {kind!r}: expected one run each, or one of {', '.join(AVERAGED)}")
    if kind == _BOX:
        return _plot_boxes(all_drawn_runs, metric, path, look)
    measure = Spread(spread)
    with style.style(look, path is not None):
        curves = []
        for method in drawn_methods:
            displays = [DISPLAYS[kind].of_run(run, metric=metric) for run in method.runs]
            scores = [run.score(metric_with_curve(run, metric)) for run in method.runs if ap]
            aps = [float(score.get("ap", math.nan)) for score in scores]  # [] unless `ap` is set
            curves.append(method_curve(method, displays, aps, measure, each_run))
        curves += _curves_of_published(published_results, all_drawn_runs, ap)
        figure = plot_curves([curve.display for curve in curves])
        for curve in curves:
            curve.draw_runs()  # of a method with several: the band, or the curves of the others
        # For each entry of the legend the F of its best point, or 0 if there is none
        f_of_artist: dict[Any, float] = {curve.display.line_: curve.f for curve in curves}
        if human is None:  # mark human performance if it was measured on the images of the runs
            reasons_against = [why_not_beside(run, HUMAN_TASK) for run in all_drawn_runs]
            is_human_comparable = bool(all_drawn_runs) and not any(reasons_against)
            human = "human" in published or is_human_comparable
        if human and kind == "pr" and metric in (None, *registry.DEFAULT_METRICS):
            f_of_artist |= _draw_human_point(figure.axes[0], human)
        best_first = sorted(f_of_artist, key=lambda artist: f_of_artist[artist], reverse=True)
        style.legend(figure.axes[0], [*best_first, *spread_entries(curves, kind, measure)])
        notes = [f"{p.label}: {p.curve.describe()}" for p in published_results if p.curve]
        style.figure_notes[figure] = "\n".join(filter(None, [_signatures(all_drawn_runs), *notes]))
        return style.save(figure, path)


def _methods_to_draw(
    runs: Runs,
    names: Sequence[str] | None,
    methods: Sequence[Method],
    labels: Mapping[str, str],
    published: Sequence[str],
) -> list[Method]:
    """Return the runs, each as a method of one run, followed by the `methods`.

    The runs are named by `names`, and renamed by `labels`, whose other keys must be in `published`.
    Reference runs get the AP and ODS rules of the other runs.
    """
    given = check_list(runs, "runs", "a list of runs or of their folders")
    named_runs = labelled_runs(given, as_runs(given, names), labels, published)
    drawn_methods = [*(Method(run.name, [run]) for run in named_runs), *methods]
    with_common_rules = as_runs([*named_runs, *all_runs(methods)])  # method by method
    return replace_runs(drawn_methods, with_common_rules)


def _curves_of_published(
    published: Sequence[PublishedResult], runs: Sequence[Evaluation], ap: bool
) -> list[MethodCurve]:
    """Return the curves of published results.

    If `ap` is True, the legend shows the AP of those that have the same AP rule as all runs or, if
    there are no runs, as all of these results.
    """
    rules = {run.protocol.ap_rule for run in runs}
    if not rules:  # a rule that is not in AP_RULES is "unknown"
        rules = {str(entry.ap_rule) for entry in published if entry.ap_rule in AP_RULES}
    shows_ap = {entry.key: ap and rules == {entry.ap_rule} for entry in published}
    return [MethodCurve(PRCurveDisplay.from_published(p, shows_ap[p.key])) for p in published]


def _check_comparable(
    runs: Sequence[Evaluation], published: Sequence[PublishedResult], human: bool, force: bool
) -> None:
    """Raise DataError if the curves of a figure are not comparable, unless `force` is True.

    The runs must have the same protocol and images. All published results must belong to one task
    (a data set and a metric), and the runs must be comparable with it. If `human` is True, the task
    must be that of human performance on BSDS500.
    """
    problems = forbidden(runs)  # a text for each difference of protocol or images between runs
    # A result with scores of several metrics has several tasks, and a curve of the first
    tasks = dict.fromkeys(entry.tasks[0] for entry in published)  # without repetitions
    if human:
        tasks[HUMAN_TASK] = None
    if len(tasks) > 1:
        problems.append(f"published: curves of {' and of '.join(tasks)}")
    for run in runs:
        reasons = [why_not_beside(run, task) for task in tasks]
        problems += [f"{run.name}: {reason}" for reason in reasons if reason]
    # The error says what the option does: "force=True draws them"
    refuse_unless_forced(problems, force, "such curves are not comparable", "draws them")


def _draw_human_point(ax: Axes, human: bool | Evaluation) -> dict[Artist, float]:
    """Plot human performance as a point on precision-recall axes, and return {artist: F}.

    human : a run of `evaluate_humans`, or True for the published value on the BSDS500 test set
        (recall and precision HUMAN_POINT); never False
    """
    if isinstance(human, Evaluation):
        best = human.boundary_score().ods
        name = "Human (each against the others)"
        f, recall, precision = best.f, best.recall, best.precision
    else:
        name = "Human (BSDS500 test)"
        f = find_published(["human"])[0].boundary["ods"]
        recall, precision = HUMAN_POINT
    marker: Any = {"markersize": 5.5 * style.marker_scale(), "color": style.HUMAN, "zorder": 4}
    (artist,) = ax.plot([recall], [precision], "D", label=f"[F={f:.3f}] {name}", **marker)
    return {artist: f}


def _signatures(runs: Sequence[Evaluation]) -> str:
    """Return a line "NAME: SIGNATURE" (its settings) for each run that has a signature."""
    return "\n".join(f"{run.name}: {run.signature_line}" for run in runs if run.signature_line)


def _plot_boxes(
    runs: Sequence[Evaluation], metric: str | None, path: str | Path | None, look: str | None
) -> Figure:
    """Draw a box plot of the per-image scores of each run. A triangle is the mean.

    `metric` is METRIC.SCORE, or a metric, which means its first per-image score; None means the
    first metric that all runs have. The figure is written to `path` unless that is None, in the
    style `look`, such as "page". Undefined scores (NaN) are left out.
    """
    given_name, _, given_key = (metric or "").partition(".")
    metric_name = shared_metric(runs, given_name or None)  # raises if a run lacks the given one
    scorer = registry.get(metric_name)
    wanted = f"{metric_name}.{given_key or scorer.image_columns[0].key}"
    score = ""  # the full name of the score, the same for all runs
    values_of_runs = []  # of each run, one value per image in which the score is defined
    for run in runs:
        image_values = values_by_score(run, metric_name)  # full name of a score -> image values
        # Its full name is METRIC.SCORE or, if `metric` names a part, METRIC.PART.SCORE
        score = chosen_scores([wanted], list(image_values))[0]
        values = np.array(image_values[score], np.float64)
        values_of_runs.append(values[np.isfinite(values)])
    parsed = score_name(score)  # its metric, part and column; None if no metric has the column
    heading = score
    if parsed:
        # The ODS of an image is its best F, and is called so among the columns of images
        headings = {column.key: column.heading for column in scorer.image_columns}
        heading = headings.get(parsed.column.key, parsed.column.heading)
        if parsed.part:  # such as a class
            heading = f"{parsed.part}: {heading}"
    with style.style(look, path is not None):
        ax = style.new_axes(3.4, 1.35)  # height in inches, width / height
        ax.boxplot(values_of_runs, widths=0.62, showmeans=True)
        width_per_run = ax.figure.figure.get_size_inches()[0] / max(3.0, len(runs))
        letters = max(style.letters_in(width_per_run, style.LETTER_WIDTH), 6)
        names = [textwrap.fill(run.name, letters) for run in runs]
        ax.set_xticks(range(1, len(names) + 1), names, parse_math=False)
        ax.grid(axis="x", visible=False)
        ax.set_ylabel(f"{scorer.title}: {heading} of an image", parse_math=False)
        figure = ax.figure.figure
        style.figure_notes[figure] = _signatures(runs)  # metadata of the file: the runs' settings
        return style.save(figure, path)


def plot_result(run: Evaluation, out: Path) -> None:
    """Write pr.png and pr.svg into `out`, if the run has a precision-recall curve."""
    if run.with_curve:
        figure = plot_runs([run], path=out / "pr.png")
        figure.set_layout_engine(None)  # the layout is final; computing it again would take time
        style.save(figure, out / "pr.svg")


def published_curves_of(
    keys: Sequence[str], labels: Mapping[str, str] = MappingProxyType({})
) -> list[PublishedResult]:
    """Return the published results with these keys, all of which have a stored curve.

    The key "human" is skipped, because human performance is a point and not a curve. `labels` maps
    keys to names to show. Raises DataError if a key is unknown or has no stored curve.
    """
    published = [entry for entry in find_published(keys, labels) if entry.key != "human"]
    expected = f"no curve is stored, expected {', '.join(published_curves())}"
    without_curve = [entry.key for entry in published if entry.curve is None]
    errors = [DataError(f"published {key!r}: {expected}") for key in without_curve]
    if errors:
        raise DataError.collect(errors)
    return published
