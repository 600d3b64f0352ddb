"""Scores over the match tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bsdsbench.plotting.curve_display import curve_of
from bsdsbench.plotting.style import new_axes, next_style, root_figure, style

if TYPE_CHECKING:
    from bsdsbench.runs.evaluation import Evaluation


class ToleranceDisplay:
    """ODS, OIS and AP over the tolerance. max_dists : (N,); scores : name -> (N,)."""

    ax_: Axes
    figure_: Figure
    lines_: list[Any]

    def __init__(self, max_dists: ArrayLike, scores: dict[str, ArrayLike], name: str = "") -> None:
        self.max_dists: NDArray[np.float64] = np.asarray(max_dists, np.float64)
        self.scores = {k: np.asarray(v, np.float64) for k, v in scores.items()}
        self.name = name

    @classmethod
    def from_sweep(cls, sweep: Sequence[tuple[float, Evaluation]]) -> ToleranceDisplay:
        """The scores of what `tolerance_sweep` returned."""
        found = [run.score(curve_of(run)) for _, run in sweep]
        scores: dict[str, ArrayLike] = {
            "ODS": [s.ods.f for s in found],
            "OIS": [s.ois.f for s in found],
            "AP": [s.ap for s in found],
        }
        return cls([d for d, _ in sweep], scores, sweep[0][1].name)

    def plot(self, ax: Axes | None = None) -> ToleranceDisplay:
        """Draw on `ax` or on a new figure."""
        with style():
            self.ax_ = ax = new_axes(square=False, size=3.4) if ax is None else ax
            self.figure_ = root_figure(ax)
            self.lines_ = [
                ax.plot(self.max_dists, values, marker="o", ms=3.5, label=k, **next_style(ax, k))[0]
                for k, values in self.scores.items()
            ]
            ax.set(xlim=(0, None), ylim=(0, 1), yticks=np.arange(11) / 10)
            ax.locator_params(axis="x", nbins=5)
            ax.set_xlabel("Match tolerance, fraction of the image diagonal")
            ax.set_ylabel("Score")
            ax.set_title(self.name, parse_math=False)
            ax.legend(loc="lower right")
        return self
