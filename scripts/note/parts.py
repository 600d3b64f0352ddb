"""What the examples are made of: rows of numbers, sections, axes in both spaces."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bsdsbench.plotting.palette import PALETTE
from bsdsbench.plotting.style import draw_iso_f


@dataclass
class Row:
    """A printed value beside the computed one; a difference needs its reason."""

    what: str
    printed: str
    computed: str
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.printed == self.computed) == bool(self.reason):
            raise ValueError(f"{self.what}: {self.printed} and {self.computed}, {self.reason!r}")


@dataclass
class Section:
    """One example: what it shows, its numbers, its pictures (name, caption, figure)."""

    title: str
    text: str
    rows: list[Row] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    figures: list[tuple[str, str, Any]] = field(default_factory=list)


def number(value: float, digits: int = 3) -> str:
    """0.45, 0.6207, 1: at most `digits` decimals."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def pair(a: float, b: float, digits: int = 3) -> str:
    """(a, b)."""
    return f"({number(a, digits)}, {number(b, digits)})"


def fraction(value: float) -> str:
    """2/3."""
    return str(Fraction(value).limit_denominator(1000))


def new_row(count: int, size: float = 3.6) -> list[Any]:
    """`count` axes side by side in a new figure, each about `size` inches square."""
    figure = Figure(figsize=(size * count, size), layout="constrained")
    return list(figure.subplots(1, count, squeeze=False)[0])


def spaces(count: int = 2, iso_f: bool = True) -> list[Any]:
    """Axes: ROC space, PR space, then plain ones."""
    axes = new_row(count)
    for ax, x, y in zip(axes, ("FPR", "Recall"), ("TPR", "Precision"), strict=False):
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x, ylabel=y)
        ax.set_box_aspect(1)
    axes[0].set_title("ROC space")
    axes[1].set_title("PR space")
    if iso_f:
        draw_iso_f(axes[1])
    return axes


def draw(ax: Any, x: Any, y: Any, index: int, name: str | None = None, **line: Any) -> None:
    """A curve in the house style."""
    ax.plot(x, y, label=name, **{"color": PALETTE[index], **line})


def grid(values: np.ndarray) -> list[list[str]]:
    """A picture as table rows."""
    return [[number(v, 2) for v in row] for row in values]
