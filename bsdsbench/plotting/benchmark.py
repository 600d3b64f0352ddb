"""Benchmark pictures: PR curves with iso-F lines, F over threshold, two methods image by image.

Display objects in the manner of scikit-learn: arrays in the constructor, drawing in
`plot(ax=None)`, which returns the display; `ax_`, `figure_` and the artists are its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bsdsbench.comparison.published import HUMAN_POINT, PublishedResult, find_published
from bsdsbench.core.errors import DataError
from bsdsbench.core.precision_recall import OperatingPoint, PRCurve
from bsdsbench.plotting.style import (
    GREY,
    draw_iso_f,
    line_style,
    new_axes,
    plain_text,
    root_figure,
    save,
    style,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.compare import CurveBand
    from bsdsbench.runs.evaluation import Evaluation

HUMAN_COLOR = "#2E7D32"


def short(value: float) -> str:
    """A score as the field prints it: .788, 1.000."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


class PRCurveDisplay:
    """A precision-recall curve, its best point, and a band around it.

    recall, precision : (T,) in the order of the curve
    best : the point to mark, or None; band : (recall, low, high), each (B,), or None
    """

    ax_: Axes
    figure_: Figure
    line_: Any
    point_: Any
    band_: Any

    def __init__(
        self,
        recall: ArrayLike,
        precision: ArrayLike,
        *,
        name: str = "",
        best: OperatingPoint | None = None,
        band: CurveBand | None = None,
    ) -> None:
        self.recall: NDArray[np.float64] = np.asarray(recall, np.float64)
        self.precision: NDArray[np.float64] = np.asarray(precision, np.float64)
        self.name = name
        self.best = best
        self.band = band

    @classmethod
    def from_evaluation(
        cls,
        run: Evaluation,
        name: str | None = None,
        metric: str = "boundary",
        band: CurveBand | None = None,
    ) -> PRCurveDisplay:
        """The curve of a run's boundary or pixel score with its ODS point.

        Thresholds above every prediction (precision 0/0) are not drawn. Raises DataError if the
        run has no counts of that metric.
        """
        score = metric_score(run, metric)
        drawn = _measured(score.curve)
        return cls(
            score.curve.recall[drawn],
            score.curve.precision[drawn],
            name=run.name if name is None else name,
            best=score.ods,
            band=band,
        )

    @property
    def label(self) -> str:
        """The legend's text: the F of the best point and the name."""
        parts = [f"[F={short(self.best.f)}]"] if self.best else []
        return " ".join([*parts, self.name]).strip()

    def plot(self, ax: Axes | None = None, *, iso_f: bool = True, **line: Any) -> PRCurveDisplay:
        """Draw on `ax`, or on a new figure with iso-F lines; `line` goes to the curve."""
        with style():
            fresh = ax is None
            self.ax_ = new_axes(ax)
            self.figure_ = root_figure(self.ax_)
            if fresh:
                _pr_axes(self.ax_, iso_f)
            look = {**line_style(0), "label": self.label or None, **line}
            (self.line_,) = self.ax_.plot(self.recall, self.precision, **look)
            color = self.line_.get_color()
            self.point_ = self.band_ = None
            if self.best is not None:
                (self.point_,) = self.ax_.plot(
                    [self.best.recall],
                    [self.best.precision],
                    marker="o",
                    markersize=5,
                    color=color,
                    markeredgecolor="white",
                    markeredgewidth=0.8,
                    linestyle="none",
                    zorder=3,
                )
            if self.band is not None:
                self.band_ = self.ax_.fill_between(
                    self.band.recall,
                    self.band.low,
                    self.band.high,
                    color=color,
                    alpha=0.2,
                    linewidth=0,
                )
            if fresh and look["label"]:
                plain_text(self.ax_.legend(loc="lower left"))
        return self


class FThresholdDisplay:
    """F over threshold. thresholds, f : (T,); best : the point to mark, or None."""

    ax_: Axes
    figure_: Figure
    line_: Any
    point_: Any

    def __init__(
        self,
        thresholds: ArrayLike,
        f: ArrayLike,
        *,
        name: str = "",
        best: OperatingPoint | None = None,
    ) -> None:
        self.thresholds: NDArray[np.float64] = np.asarray(thresholds, np.float64)
        self.f: NDArray[np.float64] = np.asarray(f, np.float64)
        self.name = name
        self.best = best

    @classmethod
    def from_evaluation(
        cls, run: Evaluation, name: str | None = None, metric: str = "boundary"
    ) -> FThresholdDisplay:
        """F of a run's boundary or pixel score at each threshold, with its ODS point."""
        score = metric_score(run, metric)
        shown = run.name if name is None else name
        return cls(score.curve.thresholds, score.curve.f, name=shown, best=score.ods)

    def plot(self, ax: Axes | None = None, **line: Any) -> FThresholdDisplay:
        """Draw on `ax` or on a new figure; `line` goes to the curve."""
        with style():
            fresh = ax is None
            self.ax_ = new_axes(ax, square=False, size=3.2)
            self.figure_ = root_figure(self.ax_)
            if fresh:
                _unit_axes(self.ax_, "Threshold", "F-measure")
            label = f"[F={short(self.best.f)}] {self.name}" if self.best else self.name
            look = {**line_style(0), "label": label or None, **line}
            (self.line_,) = self.ax_.plot(self.thresholds, self.f, **look)
            self.point_ = None
            if self.best is not None and self.best.threshold is not None:
                (self.point_,) = self.ax_.plot(
                    [self.best.threshold],
                    [self.best.f],
                    marker="o",
                    markersize=5,
                    color=self.line_.get_color(),
                    markeredgecolor="white",
                    linestyle="none",
                    zorder=3,
                )
            if fresh and look["label"]:
                plain_text(self.ax_.legend(loc="lower center"))
        return self


class ImageScatterDisplay:
    """Two methods image by image: a point is an image, above the diagonal where `y` is better.

    x, y : (N,) best F of each image; image_ids in the same order.
    """

    ax_: Axes
    figure_: Figure
    points_: Any

    def __init__(
        self, x: ArrayLike, y: ArrayLike, image_ids: Sequence[str] = (), names: Sequence[str] = ()
    ) -> None:
        self.x: NDArray[np.float64] = np.asarray(x, np.float64)
        self.y: NDArray[np.float64] = np.asarray(y, np.float64)
        self.image_ids = tuple(image_ids)
        self.names = tuple(names) or ("A", "B")

    @classmethod
    def from_evaluations(
        cls,
        run_x: Evaluation,
        run_y: Evaluation,
        names: Sequence[str] = (),
        metric: str = "boundary",
    ) -> ImageScatterDisplay:
        """Best F of each image under two runs. Raises DataError if their images differ."""
        x = dict(metric_score(run_x, metric).per_image)
        y = dict(metric_score(run_y, metric).per_image)
        if x.keys() != y.keys():
            odd = sorted(x.keys() ^ y.keys())[0]
            raise DataError(
                f"{run_x.name}, {run_y.name}: image {odd!r} is in one only, "
                "expected the same images"
            )
        ids = sorted(x)
        shown = tuple(names) or (run_x.name, run_y.name)
        return cls([x[i].f for i in ids], [y[i].f for i in ids], ids, shown)

    def plot(self, ax: Axes | None = None, label: int = 3, **points: Any) -> ImageScatterDisplay:
        """Draw on `ax` or on a new figure; the `label` images that differ most carry their id."""
        with style():
            self.ax_ = new_axes(ax)
            self.figure_ = root_figure(self.ax_)
            if ax is None:
                better = int((self.y > self.x).sum())
                worse = int((self.y < self.x).sum())
                tied = self.x.size - better - worse
                _unit_axes(
                    self.ax_, f"{self.names[0]}, F per image", f"{self.names[1]}, F per image"
                )
                self.ax_.set_title(
                    f"{self.names[1]} better on {better}, worse on {worse}, equal on {tied}",
                    parse_math=False,
                )
            self.ax_.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1.5)
            look = {"s": 14, "color": line_style(0)["color"], "alpha": 0.7, "linewidths": 0}
            self.points_ = self.ax_.scatter(self.x, self.y, **{**look, **points})
            gap = np.abs(self.y - self.x)
            for i in np.argsort(-gap, kind="stable")[:label] if self.image_ids else ():
                if gap[i] > 0:
                    above = self.y[i] > self.x[i]
                    self.ax_.annotate(
                        self.image_ids[i][:24],
                        (self.x[i], self.y[i]),
                        xytext=(-4, 4) if above else (4, -4),
                        textcoords="offset points",
                        ha="right" if above else "left",
                        va="bottom" if above else "top",
                        fontsize=7,
                        parse_math=False,
                    )
        return self


def plot_runs(
    runs: Sequence[Evaluation],
    names: Sequence[str] | None = None,
    human: bool | Evaluation = True,
    published: Sequence[str] = (),
    path: str | Path | None = None,
    *,
    metric: str = "boundary",
    bands: Sequence[CurveBand | None] | None = None,
) -> Figure:
    """One figure with the PR curves of `runs`, best first in the legend, and iso-F lines.

    human     : mark human agreement on BSDS500, or that of an `evaluate_humans` run (boundary
                metric only)
    published : keys of published methods; only their F is known, so each is a line of equal F
    bands     : one per run, see `bsdsbench.comparison.compare.bootstrap_band`
    path      : also write it there, .pdf, .svg or .png
    Raises DataError for an unknown key, names that do not fit the runs, or another suffix.
    """
    named = _names(runs, names)
    boundary = metric == "boundary"
    extra = [p for p in find_published(published) if p.key != "human" and "ods" in p.boundary]
    bands = bands or [None] * len(runs)
    with style():
        ax = new_axes()
        _pr_axes(ax, iso_f=True)
        entries: list[tuple[float, Any]] = []
        for i, (run, name, band) in enumerate(zip(runs, named, bands, strict=True)):
            shown = PRCurveDisplay.from_evaluation(run, name, metric, band)
            shown.plot(ax, **line_style(i))
            entries.append((shown.best.f if shown.best else 0.0, shown.line_))
        for i, result in enumerate(extra, len(runs)):
            entries.append((result.boundary["ods"], _draw_published(ax, result, i)))
        if boundary and (human or "human" in published):
            f, recall, precision, label = _human_point(human)
            entries.append((f, _draw_human(ax, recall, precision, f"[F={short(f)}] {label}")))
        handles = [line for _, line in sorted(entries, key=lambda e: -e[0])]
        _legend(ax, handles)
    figure = root_figure(ax)
    if path is not None:
        save(figure, path)
    return figure


def plot_f(
    runs: Sequence[Evaluation], path: str | Path | None = None, *, metric: str = "boundary"
) -> Figure:
    """One figure with F over threshold of `runs`, the ODS points marked; see `plot_runs`."""
    named = _names(runs, None)
    with style():
        ax = new_axes(square=False, size=3.4)
        _unit_axes(ax, "Threshold", "F-measure")
        shown = [
            FThresholdDisplay.from_evaluation(run, name, metric).plot(ax, **line_style(i))
            for i, (run, name) in enumerate(zip(runs, named, strict=True))
        ]
        shown.sort(key=lambda d: -d.best.f if d.best else 0.0)
        _legend(ax, [d.line_ for d in shown])
    figure = root_figure(ax)
    if path is not None:
        save(figure, path)
    return figure


def plot_scatter(
    runs: Sequence[Evaluation], path: str | Path | None = None, *, metric: str = "boundary"
) -> Figure:
    """One figure of the first run (x) and the second (y) image by image; see `plot_runs`."""
    if len(runs) != 2:
        raise DataError(f"{len(runs)} runs, expected two for a scatter plot")
    figure = ImageScatterDisplay.from_evaluations(runs[0], runs[1], metric=metric).plot().figure_
    if path is not None:
        save(figure, path)
    return figure


def metric_score(run: Evaluation, metric: str) -> Any:
    """The score of `run` that has a PR curve. Raises DataError for another metric."""
    if metric not in ("boundary", "pixel"):
        raise DataError(f"metric {metric!r} has no PR curve, expected 'boundary' or 'pixel'")
    return run.boundary_score() if metric == "boundary" else run.pixel_score()


def _draw_published(ax: Axes, result: PublishedResult, index: int) -> Any:
    """The part of the line of equal F in the upper middle of the axes, where curves pass."""
    f = result.boundary["ods"]
    recall = np.linspace(f / (2 - f), 1, 200)
    look = line_style(index)
    (line,) = ax.plot(
        recall,
        f * recall / (2 * recall - f),
        color=look["color"],
        linestyle=(0, (2, 2)),
        linewidth=1.0,
        zorder=1.6,
        label=f"[F={short(f)}] {result.label}",
    )
    return line


def _human_point(human: bool | Evaluation) -> tuple[float, float, float, str]:
    """F, recall, precision and name of the human point."""
    if isinstance(human, bool):
        f = find_published(["human"])[0].boundary["ods"]
        return f, *HUMAN_POINT, "Human (BSDS500 test)"
    best = human.boundary_score().ods
    return best.f, best.recall, best.precision, "Human (each against the others)"


def _draw_human(ax: Axes, recall: float, precision: float, label: str) -> Any:
    (point,) = ax.plot(
        [recall],
        [precision],
        marker="D",
        markersize=5.5,
        color=HUMAN_COLOR,
        linestyle="none",
        zorder=4,
        label=label,
    )
    return point


def _measured(curve: PRCurve) -> NDArray[np.bool_]:
    return np.asarray((curve.precision > 0) | (curve.recall > 0))


def _names(runs: Sequence[Evaluation], names: Sequence[str] | None) -> list[str]:
    if not runs:
        raise DataError("no runs given, expected at least one to plot")
    if names is None:
        return [run.name for run in runs]
    if len(names) != len(runs):
        raise DataError(f"{len(names)} names for {len(runs)} runs, expected one each")
    return list(names)


def _pr_axes(ax: Axes, iso_f: bool) -> None:
    _unit_axes(ax, "Recall", "Precision")
    if iso_f:
        draw_iso_f(ax)


def _unit_axes(ax: Axes, x: str, y: str) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=np.arange(11) / 10, yticks=np.arange(11) / 10)
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)


def _legend(ax: Axes, handles: Sequence[Any]) -> None:
    """Inside, lower left, while it is small; else beneath the axes."""
    names = [h.get_label() for h in handles]
    if len(handles) <= 7:
        legend = ax.legend(handles, names, loc="lower left")
        legend.set(frame_on=True)
        legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.85)
    else:
        figure = root_figure(ax)
        # Beneath, in two columns; the axes keep their size.
        width, height = figure.get_size_inches()
        figure.set_size_inches(max(width, 5.0), height + 0.19 * ((len(handles) + 1) // 2))
        legend = figure.legend(handles, names, loc="outside lower center", ncols=2)
    plain_text(legend)
