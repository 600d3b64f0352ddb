"""Draw the pictures that the other modules list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bsdsbench.plotting.style import style
from drawing import lessons, metric_pictures  # noqa: F401 (they fill the list)
from drawing.common import PICTURES, sample_run


def draw_all(out: Path, names: Sequence[str] = (), suffix: str = "svg") -> None:
    """Draw the named pictures, or all, below `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        size, draw = PICTURES[name]
        with style():
            figure = Figure(figsize=size, layout="constrained")
            draw(figure)
            about = {"Date": None} if suffix == "svg" else {"Description": what_it_shows()}
            figure.savefig(out / f"{name}.{suffix}", dpi=160, metadata=about)


def what_it_shows() -> str:
    """The numbers of `first_picture`, kept in the README's copy: a test compares them."""
    score = sample_run().boundary_score()
    return f"structure tensor, ODS {score.ods.f:.4f}, OIS {score.ois.f:.4f}, AP {score.ap:.4f}"
