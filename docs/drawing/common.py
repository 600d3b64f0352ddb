"""What the pictures share: their list, colours, the legend, the run of the sample."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

import bsdsbench as bb
from bsdsbench.detectors.baselines import baseline
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.plotting.style import PALETTE
from bsdsbench.report.overlays import COLORS

NAMES = ("matched", "false", "missed")
MATCHED, FALSE, MISSED = (tuple(c / 255 for c in colour) for colour in COLORS[1:4])
LINE, OTHER = PALETTE[0], PALETTE[1]
PICTURES: dict[str, tuple[tuple[float, float], Callable[[Figure], None]]] = {}


def picture(width: float, height: float):
    """Add a function to the list, by its name and with the size of its figure in inches."""

    def add(draw: Callable[[Figure], None]) -> Callable[[Figure], None]:
        PICTURES[draw.__name__] = (width, height), draw
        return draw

    return add


def plain(ax: Axes) -> None:
    """No axes, only what is drawn."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    for side in ax.spines.values():
        side.set_visible(False)


def square(x: float, y: float, colour: tuple[float, ...]) -> Rectangle:
    """A pixel."""
    return Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, facecolor=colour, edgecolor="0.75", lw=0.8)


def legend(ax: Axes, names: tuple[str, ...] = NAMES) -> None:
    """The colours of matched, false and missed pixels, under the axes."""
    colours = dict(zip(NAMES, (MATCHED, FALSE, MISSED), strict=True))
    for name in names:
        ax.plot([], [], "s", color=colours[name], markersize=8, label=name)
    close = {"handlelength": 1.2, "handletextpad": 0.3, "columnspacing": 1.2}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(names), **close)


@cache
def sample_run() -> bb.Evaluation:
    """The structure tensor on the 16 pictures of the sample."""
    with tempfile.TemporaryDirectory() as out:
        found = bb.run("structure-tensor", sample_images(), gt=sample_ground_truth(), out=out)
        assert found.evaluation is not None
        return found.evaluation


def soft_map(name: str, method: str = "structure-tensor") -> NDArray[np.float64]:
    """A detector's soft map of one picture of the sample."""
    return baseline(method)(photo(name))


def photo(name: str) -> NDArray[np.uint8]:
    """A picture of the sample."""
    return read_photo(sample_images() / f"{name}.jpg")


def truth(name: str) -> bb.GroundTruth:
    """Its annotations."""
    return bb.load_ground_truth(sample_ground_truth() / f"{name}.mat")
