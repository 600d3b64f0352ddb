"""Scatter plot of two methods image by image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.plotting.displays import metric_with_curve
from bsdsbench.plotting.style import (
    GREY,
    name_axes,
    new_axes,
    next_style,
    root_figure,
    style,
    unit_axes,
    untouched,
)
from bsdsbench.runs.evaluation import Evaluation


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
            self.figure_ = root_figure(ax)
            if untouched(ax):
                unit_axes(ax)
            name_axes(ax, *(f"{name}, F per image" for name in self.names))
            better, worse = int((self.y > self.x).sum()), int((self.y < self.x).sum())
            if fresh:
                tied = self.x.size - better - worse
                counts = f"better on {better}, worse on {worse}, equal on {tied}"
                ax.set_title(f"{self.names[1]}:\n{counts}", parse_math=False)
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1.5, label="_equal")
            color = next_style(ax, self.names[1])["color"]
            look = {"s": 14, "color": color, "alpha": 0.7, "linewidths": 0, **points}
            self.points_ = ax.scatter(self.x, self.y, **look)
            gap = np.abs(self.y - self.x)
            far = [i for i in np.argsort(-gap, kind="stable")[:label] if gap[i] > 0]
            self.labels_ = [
                ax.annotate(
                    self.image_ids[i][:24],
                    (self.x[i], self.y[i]),
                    # away from the diagonal and each other, towards the middle of the axes
                    xytext=(0, (4 + 9 * k) * (1 if self.y[i] > self.x[i] else -1)),
                    textcoords="offset points",
                    ha="left" if self.x[i] < 0.5 else "right",
                    va="bottom" if self.y[i] > self.x[i] else "top",
                    fontsize="x-small",
                    arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY},
                    parse_math=False,
                )
                for k, i in enumerate(far if self.image_ids else ())
            ]
        return self
