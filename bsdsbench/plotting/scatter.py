"""Scatter plot of two methods image by image, with labels that cover no point or other label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.plotting.curve_display import curve_of
from bsdsbench.plotting.style import (
    GREY,
    line_style,
    new_axes,
    root_figure,
    style,
    unit_axes,
    untouched,
)

if TYPE_CHECKING:
    from bsdsbench.runs.evaluation import Evaluation

# Where a label may stand beside its point, the first free one is taken: to which side, and how many
# points away; then how the text is aligned to it.
_ALIGNED = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}
_PLACES = tuple(
    (dx, dy, gap)
    for gap in (4, 9, 15)
    for dx, dy in ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
)


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
        metric = metric or curve_of(run_x)
        x, y = (
            {k: row["ods"] for k, row in run.image_values(metric).items()} for run in (run_x, run_y)
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
            self.ax_ = ax = new_axes() if ax is None else ax
            self.figure_ = root_figure(ax)
            x, y = (f"{name}, F per image" for name in self.names)
            unit_axes(ax, x, y, fresh or untouched(ax))
            if fresh:
                better, worse = int((self.y > self.x).sum()), int((self.y < self.x).sum())
                tied = self.x.size - better - worse
                ax.set_title(
                    f"{self.names[1]}:\nbetter on {better}, worse on {worse}, equal on {tied}",
                    parse_math=False,
                )
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1.5, label="_equal")
            look = {
                "s": 14,
                "color": line_style(self.names[1])["color"],
                "alpha": 0.7,
                "linewidths": 0,
            }
            self.points_ = ax.scatter(self.x, self.y, **{**look, **points})
            gap = np.abs(self.y - self.x)
            far = [int(i) for i in np.argsort(-gap, kind="stable")[:label] if gap[i] > 0]
            self.labels_ = place_labels(
                ax,
                np.c_[self.x, self.y],
                {i: self.image_ids[i][:24] for i in far} if self.image_ids else {},
            )
        return self


def place_labels(
    ax: Axes, points: NDArray[np.float64], texts: Mapping[int, str], dot: float = 3.0
) -> list[Any]:
    """Write texts beside some of the points (N, 2), in data coordinates; returns the annotations.

    texts : row of `points` -> its label; dot : radius of a drawn point, in typographic points.
    A label keeps clear of all points, of labels before it and of the edges of the axes; where no
    place is free it takes the one that hides the fewest points.
    """
    figure = root_figure(ax)
    out: list[Any] = []
    taken: list[Bbox] = []
    if texts:
        # The layout decides how far apart points are; it settles in the second pass.
        figure.draw_without_rendering()
        figure.draw_without_rendering()
    at = ax.transData.transform(points)
    pixels = figure.dpi / 72  # of a typographic point
    for i, text in texts.items():
        note = ax.annotate(
            text,
            tuple(points[i]),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize="x-small",
            parse_math=False,
            zorder=4,
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY, "shrinkA": 0, "shrinkB": 2},
        )
        note.set_in_layout(False)
        size = np.array(Text.get_window_extent(note).size)
        boxes = [_box(at[i], size, (dx, dy), gap * pixels) for dx, dy, gap in _PLACES]
        best = int(np.argmin([_cost(ax, box, at, dot * pixels, taken) for box in boxes]))
        dx, dy, gap = _PLACES[best]
        note.xyann = dx * gap, dy * gap
        note.set(horizontalalignment=_ALIGNED[dx][0], verticalalignment=_ALIGNED[dy][1])
        taken.append(boxes[best])
        out.append(note)
    return out


def _box(
    point: NDArray[np.float64], size: NDArray[np.float64], side: tuple[int, int], away: float
) -> Bbox:
    """Where a text of that size stands, in pixels.

    A little larger than it is now: at the resolution of a file it may be wider.
    """
    middle, half = point + np.array(side) * (away + size / 2), size * (1.15, 1.1) / 2
    return Bbox([middle - half, middle + half])


def _cost(
    ax: Axes, box: Bbox, at: NDArray[np.float64], radius: float, taken: Sequence[Bbox]
) -> float:
    """How many points and labels the text would cover there; leaving the axes costs most."""
    gap = np.maximum(np.maximum([box.x0, box.y0] - at, at - [box.x1, box.y1]), 0)
    covered = int((np.hypot(*gap.T) < radius).sum())
    outside = not (ax.bbox.contains(*box.min) and ax.bbox.contains(*box.max))
    return covered + 3 * sum(box.overlaps(other) for other in taken) + 1000 * outside
