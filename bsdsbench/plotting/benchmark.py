"""Benchmark pictures: PR curves with iso-F lines, F over threshold, two methods image by image.

Display objects in the manner of scikit-learn: arrays in the constructor, drawing in
`plot(ax=None)`, which returns the display; `ax_`, `figure_` and the artists are its attributes.
Several displays on one axes get different colours; axes that are still empty are given limits and
labels, others keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.label_places import place_labels
from bsdsbench.plotting.style import (
    GREY,
    draw_iso_f,
    line_style,
    name_axes,
    new_axes,
    next_style,
    place_legend,
    root_figure,
    style,
    untouched,
)
from bsdsbench.scores.curve import OperatingPoint, PRCurve

if TYPE_CHECKING:
    from bsdsbench.comparison.compare import CurveBand
    from bsdsbench.runs.evaluation import Evaluation


def short(value: float) -> str:
    """A score as the field prints it: .788, 1.000."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


class PRCurveDisplay:
    """A precision-recall curve, its best point, and a band around it.

    Parameters
    ----------
    recall, precision : array_like
        (T,) in the order of the curve.
    name : str
        The name in tables and legends.
    best : OperatingPoint or None
        The point to mark, or None.
    band : CurveBand or None
        (recall, low, high), each (B,), or None.
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
        metric: str | None = None,
        band: CurveBand | None = None,
    ) -> PRCurveDisplay:
        """The curve of a run's score with its ODS point; metric: default its first with a curve.

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

    def plot(
        self, ax: Axes | None = None, *, iso_f: bool | None = None, **line: Any
    ) -> PRCurveDisplay:
        """Draw on `ax` or on a new figure.

        iso_f : lines of equal F; default: on axes that are still empty. `line` goes to the curve.
        """
        with style():
            fresh = ax is None
            self.ax_ = ax = new_axes() if ax is None else ax
            self.figure_ = root_figure(ax)
            pr_axes(ax, (fresh or untouched(ax)) if iso_f is None else iso_f, fresh)
            look = {**next_style(ax), "label": self.label or None, **line}
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
                place_legend(self.ax_, [self.line_])
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
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> FThresholdDisplay:
        """F of a run's score at each threshold, with its ODS point."""
        score = metric_score(run, metric)
        shown = run.name if name is None else name
        return cls(score.curve.thresholds, score.curve.f, name=shown, best=score.ods)

    def plot(self, ax: Axes | None = None, **line: Any) -> FThresholdDisplay:
        """Draw on `ax` or on a new figure; `line` goes to the curve."""
        with style():
            fresh = ax is None
            self.ax_ = ax = new_axes(square=False, size=3.4) if ax is None else ax
            self.figure_ = root_figure(ax)
            unit_axes(ax, "Threshold", "F-measure", fresh)
            label = f"[F={short(self.best.f)}] {self.name}" if self.best else self.name
            look = {**next_style(ax), "label": label or None, **line}
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
                place_legend(self.ax_, [self.line_], "lower center")
        return self


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
        metric: str | None = None,
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
            fresh = ax is None
            self.ax_ = ax = new_axes(legend=False) if ax is None else ax
            self.figure_ = root_figure(ax)
            unit_axes(ax, f"{self.names[0]}, F per image", f"{self.names[1]}, F per image", fresh)
            if fresh:
                better, worse = int((self.y > self.x).sum()), int((self.y < self.x).sum())
                tied = self.x.size - better - worse
                ax.set_title(
                    f"{self.names[1]}:\nbetter on {better}, worse on {worse}, equal on {tied}",
                    parse_math=False,
                )
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1.5, label="_equal")
            look = {"s": 14, "color": line_style(0)["color"], "alpha": 0.7, "linewidths": 0}
            self.points_ = ax.scatter(self.x, self.y, **{**look, **points})
            gap = np.abs(self.y - self.x)
            far = [int(i) for i in np.argsort(-gap, kind="stable")[:label] if gap[i] > 0]
            self.labels_ = place_labels(
                ax,
                np.c_[self.x, self.y],
                {i: self.image_ids[i][:24] for i in far} if self.image_ids else {},
            )
        return self


def metric_score(run: Evaluation, metric: str | None = None) -> Any:
    """The score of `run` under a metric with a PR curve; default: the first it has.

    Raises DataError for another metric, or if the run has none.
    """
    if metric is None:
        curves = registry.with_curve(run.metrics)
        if not curves:
            raise DataError(
                f"{run.name}: none of its metrics has a precision-recall curve "
                f"({', '.join(run.metrics) or 'no metric'})"
            )
        metric = curves[0]
    return run.score(registry.curve_metric(metric).name)


def _measured(curve: PRCurve) -> NDArray[np.bool_]:
    return np.asarray((curve.precision > 0) | (curve.recall > 0))


def pr_axes(ax: Axes, iso_f: bool, fresh: bool = True) -> None:
    """Axes of recall and precision, with lines of equal F if wanted."""
    unit_axes(ax, "Recall", "Precision", fresh)
    if iso_f:
        draw_iso_f(ax)


def unit_axes(ax: Axes, x: str, y: str, fresh: bool = True) -> None:
    """Axes from 0 to 1, named; those of a user that are in use keep their limits and names."""
    if fresh or untouched(ax):
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=np.arange(11) / 10, yticks=np.arange(11) / 10)
        # In a column eleven numbers would touch.
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticklabels([f"{k / 10:.1f}" if k % 2 == 0 else "" for k in range(11)])
    name_axes(ax, x, y)
