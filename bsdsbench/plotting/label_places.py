"""Labels of points that lie over no point and over no other label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from numpy.typing import NDArray

from bsdsbench.plotting.style import GREY, root_figure

# Where a label may stand beside its point, the first free one is taken: offset in points, then how
# the text is aligned to it.
_PLACES = tuple(
    (dx * gap, dy * gap, {-1: "right", 0: "center", 1: "left"}[dx], _VERTICAL)
    for gap in (4, 9, 15)
    for dx, dy, _VERTICAL in (
        (1, 1, "bottom"),
        (-1, 1, "bottom"),
        (1, -1, "top"),
        (-1, -1, "top"),
        (1, 0, "center"),
        (-1, 0, "center"),
        (0, 1, "bottom"),
        (0, -1, "top"),
    )
)


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
    taken: list[Any] = []
    if texts:
        # The layout decides how far apart points are; it settles in the second pass.
        figure.draw_without_rendering()
        figure.draw_without_rendering()
    at = ax.transData.transform(points)
    radius = dot * figure.dpi / 72
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
        costs = [_cost(ax, note, place, at, radius, taken) for place in _PLACES]
        _move(note, _PLACES[int(np.argmin(costs))])
        taken.append(_box(note))
        out.append(note)
    return out


def _move(note: Any, place: tuple[float, float, str, str]) -> None:
    note.xyann = place[:2]
    note.set(horizontalalignment=place[2], verticalalignment=place[3])


def _box(note: Any) -> Any:
    """Where the text stands, in pixels, without the line to its point.

    A little larger than it is now: at the resolution of a file it may be wider.
    """
    note.get_window_extent()  # moves the text to where it belongs
    return Text.get_window_extent(note).expanded(1.15, 1.1)


def _cost(
    ax: Axes,
    note: Any,
    place: tuple[float, float, str, str],
    at: NDArray[np.float64],
    radius: float,
    taken: list[Any],
) -> float:
    """How many points and labels the text would cover there; leaving the axes costs most."""
    _move(note, place)
    box = _box(note)
    gap = np.maximum(np.maximum([box.x0, box.y0] - at, at - [box.x1, box.y1]), 0)
    covered = int((np.hypot(*gap.T) < radius).sum())
    outside = not (
        ax.bbox.x0 <= box.x0
        and box.x1 <= ax.bbox.x1
        and ax.bbox.y0 <= box.y0
        and box.y1 <= ax.bbox.y1
    )
    return covered + 3 * sum(box.overlaps(other) for other in taken) + 1000 * outside
