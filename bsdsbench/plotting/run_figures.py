"""Whole figures of runs, as `bsdsbench plot` writes them: PR curves, F over threshold, scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.comparison.curve_band import CurveBand
from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    PublishedResult,
    find_published,
    published_keys,
    published_results,
)
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.displays import (
    FThresholdDisplay,
    PRCurveDisplay,
    ReliabilityDisplay,
    draw_together,
    metric_with_curve,
)
from bsdsbench.plotting.palette import HUMAN
from bsdsbench.plotting.scatter import ImageScatterDisplay
from bsdsbench.plotting.style import for_file, is_grey, legend, root_figure, save, sign, style
from bsdsbench.runs.evaluation import Evaluation, as_runs
from bsdsbench.runs.score_tables import incomparable, not_beside, reference_of
from bsdsbench.scores.curve import AP_RULES
from bsdsbench.scores.ratios import short


def plot_runs(
    runs: Sequence[Evaluation | str | Path],
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
    runs = as_runs(runs)
    extra = published_curves_of(published) if published else []
    named = _names(runs, names, least=0 if extra else 1)
    point = _human(runs, human, bool(published) and "human" in published_keys(published), metric)
    if not force:
        _check(runs, [result.tasks[0] for result in extra], human)
    bands = bands or [None] * len(runs)
    with style(look, grey), for_file(path is not None):
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
        ax = draw_together(shown)
        entries = [(d.best.f if d.best else 0.0, d.line_) for d in shown]
        if point is not None:
            f, recall, precision, name = point
            color, label = "black" if is_grey() else HUMAN, f"[F={short(f)}] {name}"
            look_of: Any = {"markersize": 5.5, "color": color, "label": label, "zorder": 4}
            (dot,) = ax.plot([recall], [precision], "D", **look_of)
            entries.append((f, dot))
        legend(ax, [line for _, line in sorted(entries, key=lambda e: -e[0])])
        return _done(ax, path, runs, named, extra)


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


def plot_f(
    runs: Sequence[Evaluation | str | Path],
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
    kind: str = "f",
) -> Figure:
    """One figure with F over threshold of `runs`, the ODS points marked, or with the bins of
    calibration (kind "reliability"); see `plot_runs`."""
    display = FThresholdDisplay if kind == "f" else ReliabilityDisplay
    runs = as_runs(runs)
    named = _names(runs, None)
    for run in runs:
        if (about := reference_of(run)) and about.form == "segmentations":
            raise DataError(
                f"{run.name}: {about.parameter}, expected thresholds for F over threshold"
            )
    if not force:
        _check(runs)
    with style(look, grey), for_file(path is not None):
        shown = [
            display.from_evaluation(run, name, metric)
            for run, name in zip(runs, named, strict=True)
        ]
        ax = draw_together(shown)
        shown.sort(key=lambda d: -d.best.f if d.best else 0.0)
        legend(ax, [d.line_ for d in shown])
        return _done(ax, path, runs, named)


def plot_scatter(
    runs: Sequence[Evaluation | str | Path],
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
) -> Figure:
    """One figure of the first run (x) and the second (y) image by image; see `plot_runs`."""
    runs = as_runs(runs)
    if len(runs) != 2:
        raise DataError(f"{len(runs)} runs, expected two for a scatter plot")
    if not force:
        _check(runs)
    with style(look, grey), for_file(path is not None):
        shown = ImageScatterDisplay.from_evaluations(runs[0], runs[1], metric=metric).plot()
        return _done(shown.ax_, path, runs, _names(runs, None))


def _done(
    ax: Axes,
    path: str | Path | None,
    runs: Sequence[Evaluation],
    names: Sequence[str],
    published: Sequence[PublishedResult] = (),
) -> Figure:
    figure = root_figure(ax)
    sign(figure, runs, names, [f"{r.label}: {r.curve.describe()}" for r in published if r.curve])
    if path is not None:
        save(figure, path)
    return figure


def _check(
    runs: Sequence[Evaluation], tasks: Sequence[str] = (), human: bool | Evaluation | None = None
) -> None:
    """Raise DataError for what may not stand in one picture."""
    faults = [
        f"{run.name}, {runs[0].name}: protocols differ in {'; '.join(found)}"
        for run in runs[1:]
        if (found := incomparable(run, runs[0]))
    ]
    beside = dict.fromkeys([*tasks, *([HUMAN_TASK] if human is True else [])])
    if len(beside) > 1:
        faults.append(f"published: curves of {' and of '.join(beside)}")
    faults += [f"{run.name}: {why}" for run in runs for t in beside if (why := not_beside(run, t))]
    if faults:
        why = "such curves are not comparable (force=True draws them)"
        raise DataError.collect([DataError(f"{f}; {why}") for f in faults])


def _human(
    runs: Sequence[Evaluation], human: bool | Evaluation | None, asked: bool, metric: str | None
) -> tuple[float, float, float, str] | None:
    """F, recall, precision and name of the human point, or None for no point."""
    fits = bool(runs) and not any(not_beside(run, HUMAN_TASK) for run in runs)
    wanted = asked or (fits if human is None else human is not False)
    if not wanted or metric not in (None, *registry.DEFAULT):
        return None
    if human is None or isinstance(human, bool):
        f = find_published(["human"])[0].boundary["ods"]
        return f, *HUMAN_POINT, "Human (BSDS500 test)"
    best = human.boundary_score().ods
    return best.f, best.recall, best.precision, "Human (each against the others)"


def _names(runs: Sequence[Evaluation], names: Sequence[str] | None, least: int = 1) -> list[str]:
    if len(runs) < least:
        raise DataError("no runs given, expected at least one to plot")
    if names is None:
        return [run.name for run in runs]
    if len(names) != len(runs):
        raise DataError(f"{len(names)} names for {len(runs)} runs, expected one each")
    return list(names)
