"""One look for every picture: colours, rc settings, axes, iso-F lines, and files with fixed bytes.

Figures are made without pyplot: no global state, no window, safe in threads and headless.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.core.errors import DataError
from bsdsbench.core.files import write_atomic

# Okabe and Ito's colours that read on white, darkest contrast between neighbours.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#7F7F7F"
# With the palette this gives 28 distinct lines, and the first seven differ by colour alone.
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
ISO_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "bsdsbench",
}
# Nothing in a saved file may depend on the clock.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


@contextmanager
def style() -> Iterator[None]:
    """The rc settings of every picture of this package, undone on leaving.

    Starts from matplotlib's defaults, so that a user's own settings do not change our files.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def line_style(index: int) -> dict[str, Any]:
    """Colour and dash of the `index`-th curve in a figure."""
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": DASHES[index // len(PALETTE) % len(DASHES)],
    }


def new_axes(ax: Axes | None = None, square: bool = True, size: float = 4.4) -> Axes:
    """`ax` or the axes of a new figure, `size` inches high; `square`: unit axes of equal scale."""
    if ax is None:
        figure = Figure(figsize=(size if square else 1.35 * size, size), layout="constrained")
        ax = figure.add_subplot()
    if square:
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return ax


def draw_iso_f(ax: Axes, levels: Sequence[float] = ISO_LEVELS, label: bool = True) -> list[Any]:
    """Draw the lines of equal F = 2PR/(P+R) on axes with recall in x and precision in y.

    Returns the lines, one per level. Labels stand at the right edge, outside unit axes.
    """
    lines = []
    for f in levels:
        # From (f/(2-f), 1) to (1, f/(2-f)): the part of the hyperbola inside the unit square.
        recall = np.linspace(f / (2 - f), 1, 200)
        precision = f * recall / (2 * recall - f)
        lines += ax.plot(recall, precision, color="#B7D7C2", linewidth=0.7, zorder=1.1)
        if label:
            ax.annotate(
                f"F={f:g}",
                (1, f / (2 - f)),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=6.5,
                color="#5C8C6C",
                annotation_clip=False,
            )
    return lines


def save(fig: Figure, path: str | Path) -> Path:
    """Write `fig` as .pdf, .svg or .png: the same figure gives the same bytes, whole or not at all.

    Raises DataError for another suffix or a folder that does not exist.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _METADATA:
        raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
    if not path.parent.is_dir():
        raise DataError(f"{path}: folder {path.parent} does not exist, expected an existing one")
    buffer = io.BytesIO()
    with style():
        fig.savefig(buffer, format=kind, metadata=_METADATA[kind])
    write_atomic(path, buffer.getvalue(), durable=False)
    return path


def root_figure(ax: Axes) -> Figure:
    """The figure that holds `ax`, also where it lies in a subfigure."""
    figure = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure


def plain_text(legend: Any) -> None:
    """A name with dollars in it stays text."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def new_row(count: int, size: float = 3.6) -> list[Axes]:
    """`count` axes side by side in a new figure, each about `size` inches square."""
    figure = Figure(figsize=(size * count, size), layout="constrained")
    return list(figure.subplots(1, count, squeeze=False)[0])
