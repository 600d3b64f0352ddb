"""Whole figures of runs, as `bsdsbench plot` writes them: PR curves, F over threshold, scatter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.comparison.published import (
    HUMAN_POINT,
    PublishedResult,
    find_published,
)
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.curve_display import draw_together, short
from bsdsbench.plotting.displays import FThresholdDisplay, PRCurveDisplay
from bsdsbench.plotting.palette import HUMAN
from bsdsbench.plotting.scatter import ImageScatterDisplay
from bsdsbench.plotting.style import (
    for_file,
    is_grey,
    iso_f_points,
    next_style,
    place_legend,
    root_figure,
    save,
    sign,
    style,
)
from bsdsbench.runs.evaluation import as_runs
from bsdsbench.runs.run_identity import not_beside

if TYPE_CHECKING:
    from bsdsbench.comparison.curve_band import CurveBand
    from bsdsbench.runs.evaluation import Evaluation


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
    force: bool = False,
) -> Figure:
    """One figure with the PR curves of `runs`, best first in the legend, and iso-F lines.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs, or folders of finished runs.
    names : sequence of str, optional
        One per run, in place of their own.
    human : bool or Evaluation, optional
        Mark human agreement on BSDS500, or that of an `evaluate_humans` run. Default: that of
        BSDS500 where the runs are of BSDS500's test images.
    published : sequence of str
        Keys of published methods; only their F is known, so each is a line of equal F.
    path : path, optional
        Also write it there, .pdf, .svg or .png.
    metric : str, optional
        A metric with a PR curve; default: the runs' first. Human and published points are of the
        default metric alone.
    bands : sequence of CurveBand or None, optional
        One per run, see `bsdsbench.comparison.curve_band.bootstrap_band`.
    look, grey : optional
        See `bsdsbench.plotting.style.style`.
    force : bool
        Draw even if the runs' protocols differ or the published results are of other images.

    Raises
    ------
    DataError
        An unknown key, names that do not fit the runs, another suffix; without `force` also runs
        of different protocols, and human or published points of other images than the runs'.
    """
    runs = as_runs(runs)
    named = _names(runs, names)
    found = find_published(published) if published else []
    extra = [p for p in found if p.key != "human" and "ods" in p.boundary]
    point = _human(runs, human, "human" in published, metric)
    if not force:
        _check(runs, published, human)
    bands = bands or [None] * len(runs)
    with style(look, grey), for_file(path is not None):
        shown = [
            PRCurveDisplay.from_evaluation(run, name, metric, band)
            for run, name, band in zip(runs, named, bands, strict=True)
        ]
        ax = draw_together(shown)
        entries = [(d.best.f if d.best else 0.0, d.line_) for d in shown]
        entries += [(p.boundary["ods"], _draw_published(ax, p, i)) for i, p in enumerate(extra)]
        if point is not None:
            entries.append((point[0], _draw_human(ax, *point)))
        place_legend(ax, [line for _, line in sorted(entries, key=lambda e: -e[0])])
        return _done(ax, path, runs, named)


def plot_f(
    runs: Sequence[Evaluation | str | Path],
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    look: str | None = None,
    grey: bool | None = None,
    force: bool = False,
) -> Figure:
    """One figure with F over threshold of `runs`, the ODS points marked; see `plot_runs`."""
    runs = as_runs(runs)
    named = _names(runs, None)
    if not force:
        _check(runs)
    with style(look, grey), for_file(path is not None):
        shown = [
            FThresholdDisplay.from_evaluation(run, name, metric)
            for run, name in zip(runs, named, strict=True)
        ]
        ax = draw_together(shown)
        shown.sort(key=lambda d: -d.best.f if d.best else 0.0)
        place_legend(ax, [d.line_ for d in shown], None)  # curves are everywhere
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
    ax: Axes, path: str | Path | None, runs: Sequence[Evaluation], names: Sequence[str]
) -> Figure:
    figure = root_figure(ax)
    sign(figure, runs, names)
    if path is not None:
        save(figure, path)
    return figure


def _check(
    runs: Sequence[Evaluation],
    published: Sequence[str] = (),
    human: bool | Evaluation | None = None,
) -> None:
    """Raise DataError for what may not stand in one picture."""
    faults = [
        f"{run.name}, {runs[0].name}: protocols differ in {'; '.join(found)}"
        for run in runs[1:]
        if (found := run.protocol.differences(runs[0].protocol))
    ]
    if published or human is True:
        faults += [f"{run.name}: {why}" for run in runs if (why := not_beside(run))]
    if faults:
        raise DataError.collect(
            [DataError(f"{f}; such curves are not comparable (force draws them)") for f in faults]
        )


def _human(
    runs: Sequence[Evaluation], human: bool | Evaluation | None, asked: bool, metric: str | None
) -> tuple[float, float, float, str] | None:
    """F, recall, precision and name of the human point, or None for no point."""
    if metric not in (None, *registry.DEFAULT) or (human is False and not asked):
        return None
    if human is None and not asked and any(not_beside(run) for run in runs):
        return None
    if human is None or isinstance(human, bool):
        f = find_published(["human"])[0].boundary["ods"]
        return f, *HUMAN_POINT, "Human (BSDS500 test)"
    best = human.boundary_score().ods
    return best.f, best.recall, best.precision, "Human (each against the others)"


def _draw_published(ax: Axes, result: PublishedResult, index: int) -> Any:
    """The part of the line of equal F in the upper middle of the axes, where curves pass."""
    f = result.boundary["ods"]
    (line,) = ax.plot(
        *iso_f_points(f),
        color=next_style(ax, result.label)["color"],
        linestyle=(0, (2 + 2 * (index % 3), 2)),
        linewidth=1.0,
        zorder=1.6,
        label=f"[F={short(f)}] {result.label}",
    )
    return line


def _draw_human(ax: Axes, f: float, recall: float, precision: float, name: str) -> Any:
    (point,) = ax.plot(
        [recall],
        [precision],
        marker="D",
        markersize=5.5,
        color="black" if is_grey() else HUMAN,
        linestyle="none",
        zorder=4,
        label=f"[F={short(f)}] {name}",
    )
    return point


def _names(runs: Sequence[Evaluation], names: Sequence[str] | None) -> list[str]:
    if not runs:
        raise DataError("no runs given, expected at least one to plot")
    if names is None:
        return [run.name for run in runs]
    if len(names) != len(runs):
        raise DataError(f"{len(names)} names for {len(runs)} runs, expected one each")
    return list(names)
