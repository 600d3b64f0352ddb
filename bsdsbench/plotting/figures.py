"""Whole figures of runs, as `bsdsbench plot` writes them, and of several displays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from operator import itemgetter
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    PublishedResult,
    find_published,
    published_curves,
    why_not_beside,
)
from bsdsbench.errors import DataError, Setting
from bsdsbench.metrics import registry
from bsdsbench.plotting.displays import (
    ARTISTS,
    CurveDisplay,
    FThresholdDisplay,
    PRCurveDisplay,
    ReliabilityDisplay,
    metric_with_curve,
)
from bsdsbench.plotting.style import HUMAN, legend, save, signed, style
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.evaluation import Evaluation, as_runs
from bsdsbench.scores.curve import AP_RULES
from bsdsbench.scores.ratios import short

Runs = Sequence[Evaluation | str | Path]
DISPLAYS: dict[str, Any] = {
    "pr": PRCurveDisplay,
    "f": FThresholdDisplay,
    "reliability": ReliabilityDisplay,
}


def plot_curves(displays: Sequence[CurveDisplay], path: str | Path | None = None) -> Figure:
    """One figure with several displays of one kind, each its own colour, named in a legend.

    path : also write it there, .pdf, .svg or .png
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
    ax, drawn = None, set()
    with style(file=path is not None):
        for display in displays:
            chance = getattr(display, "chance", None)
            drawing: Any = copy(display)  # what is given keeps its own reach
            if hasattr(display, "lowest"):
                drawing.lowest = reach
            ax = drawing.plot(ax, chance=chance not in drawn).ax_  # one that they share once
            for artist in ARTISTS:
                setattr(display, artist, getattr(drawing, artist))
            drawn.add(chance)
        if len(displays) > 1:  # the title is of one curve
            displays[0].ax_.set_title("")
    figure = displays[0].figure_
    if path is not None:
        save(figure, path)
    return figure


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
) -> Figure:
    """One figure with the curves of `runs`, best first in the legend.

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
        "pr", with lines of equal F; "f", F over threshold; "reliability", the bins of calibration.
    metric : str, optional
        A metric with a PR curve; default: the runs' first.
    look : optional
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
    if kind not in DISPLAYS:
        raise DataError(f"kind {kind!r}: expected one of {', '.join(DISPLAYS)}")
    runs, extra = as_runs(runs, names), published_curves_of(published) if published else []
    if not (runs or extra):
        raise DataError("no runs given, expected at least one to plot")
    beside, faults = dict[str, None](), forbidden(runs)
    for result in extra:
        beside[result.tasks[0]] = None
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
    with style(look, path is not None):
        # An AP is shown of published results where its rule is the one of all runs.
        rules = {r.protocol.ap_rule for r in runs}
        rules = rules or {str(r.ap_rule) for r in extra} & set(AP_RULES)
        shown = []
        for run in runs:
            shown.append(DISPLAYS[kind].from_evaluation(run, metric=metric))
            if ap:
                value = float(run.score(metric_with_curve(run, metric)).ap)
                shown[-1].name += "" if math.isnan(value) else f", AP {short(value)}"
        for result in extra:
            shown.append(PRCurveDisplay.from_published(result))
            if ap and {result.ap_rule} == rules:
                shown[-1].name += f", AP {short(result.boundary['ap'])}"
        figure = plot_curves(shown)
        entries: list[Any] = [(d.best.f if d.best is not None else 0.0, d.line_) for d in shown]
        if human is None:
            apart = [run for run in runs if why_not_beside(run, HUMAN_TASK)]
            human = "human" in published or (bool(runs) and not apart)
        if human and kind == "pr" and metric in (None, *registry.DEFAULT_METRICS):
            f, (recall, precision) = find_published(["human"])[0].boundary["ods"], HUMAN_POINT
            name = "Human (BSDS500 test)"
            if isinstance(human, Evaluation):
                best, name = human.boundary_score().ods, "Human (each against the others)"
                f, recall, precision = best.f, best.recall, best.precision
            point: Any = {"markersize": 5.5, "color": HUMAN, "zorder": 4}
            point["label"] = f"[F={short(f)}] {name}"
            entries.append((f, *figure.axes[0].plot([recall], [precision], "D", **point)))
        entries.sort(key=itemgetter(0), reverse=True)
        legend(figure.axes[0], [line for _, line in entries])
        told = [f"{run.name}: {run.signature_line}" for run in runs if run.signature_line]
        told += [f"{r.label}: {r.curve.describe()}" for r in extra if r.curve]
        signed[figure] = "\n".join(told)
        if path is not None:
            save(figure, path)
        return figure


def plot_result(run: Evaluation, out: Path) -> None:
    """pr.png and pr.svg of a run into its folder, if there is a precision-recall curve."""
    if run.with_curve:
        figure = plot_runs([run], path=out / "pr.png")
        figure.set_layout_engine(None)  # which would draw it once more, and not move a thing
        save(figure, out / "pr.svg")


def published_curves_of(keys: Sequence[str]) -> list[PublishedResult]:
    """The published results of these keys but "human". Raises DataError for one without curve."""
    found = [result for result in find_published(keys) if result.key != "human"]
    known = ", ".join(published_curves())
    faults = [
        DataError(f"published {r.key!r}: no curve is stored, expected {known}")
        for r in found
        if r.curve is None
    ]
    if faults:
        raise DataError.collect(faults)
    return found
