"""Curves of methods of several runs: their mean with a band, or every run's own.

The mean is taken at equal recall (vertical averaging; Fawcett, An introduction to ROC analysis,
Pattern Recognition Letters 2006), where all runs have a value; between its points the precision of
a run is linear, as in the AP of the benchmark. F is averaged at equal thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bsdsbench.arguments import F8
from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.method import Method
from bsdsbench.comparison.method_tables import ScoresOfRuns, Spread
from bsdsbench.errors import DataError, Setting
from bsdsbench.plotting.displays import CurveDisplay
from bsdsbench.plotting.style import GREY
from bsdsbench.results.given_runs import as_runs
from bsdsbench.scores.ratios import short

# Kinds of curves that have a mean: of what, at equal what
AVERAGED = {
    "pr": ("precision", "recall"),
    "f": ("F", "threshold"),
    "tolerance": ("ODS", "tolerance"),
}
_BANDS = {
    Spread.SD: "± standard deviation",
    Spread.RANGE: "smallest to largest",
    Spread.SE: "± standard error",
}


class MethodCurve(NamedTuple):
    """What is drawn of a method.

    The display is its run's curve, the mean of its runs' curves, or the first of them; of one run
    alone `of_runs` has none. The band has the x, lower and upper ends around a mean.
    """

    display: CurveDisplay
    of_runs: list[CurveDisplay]
    band: tuple[F8, F8, F8] | None

    @property
    def f(self) -> float:
        """The mean of the largest F of the runs; 0 for curves without."""
        best = [d.best.f for d in self.of_runs or [self.display] if d.best is not None]
        return sum(best) / len(best) if best else 0.0

    def draw_runs(self) -> None:
        """Add the band, or the curves of the other runs, and every run's best point."""
        ax, color = self.display.ax_, self.display.line_.get_color()
        if self.band is not None:
            ax.fill_between(*self.band, color=color, alpha=0.2, linewidth=0)
        elif self.of_runs:
            width = 0.5 * self.display.line_.get_linewidth()
            self.display.line_.set_linewidth(width)
            for other in self.of_runs[1:]:
                x, y = _points(other)
                ax.plot(x, y, color=color, linewidth=width)
        for one in self.of_runs:
            if one.best is not None and one.arrays[0] == "recall":
                best: Any = {"color": color, "marker": "o", "markersize": 2.5, "zorder": 3}
                ax.plot([one.best.recall], [one.best.precision], linestyle="none", **best)


def method_curve(
    method: Method, shown: list[CurveDisplay], aps: Sequence[float], spread: Spread, each_run: bool
) -> MethodCurve:
    """Return a method's mean curve or, with `each_run`, the curve of every run.

    `aps` are the AP of each run for the legend; `spread` is the width of the band. Raises DataError
    for runs of other images, and for curves whose points have no order, which have no mean.
    """
    ap = f", AP {_mean_text(aps, spread)}" if aps and not np.isnan(aps).any() else ""
    if method.n_runs == 1:
        shown[0].name = method.name + ap
        return MethodCurve(shown[0], [], None)
    comparable(as_runs(method.runs, method.labels))
    if not (each_run or all(one.joined for one in shown)):
        fix = Setting("each_run", True, "draws each of them")
        raise DataError(f"{method.name}: the points of its curves have no order", fix=fix)
    drawn = copy(shown[0])
    best = [one.best.f for one in shown if one.best is not None]
    f = f"[F={_mean_text(best, spread)}] " if best else ""
    drawn.name, drawn.best = f"{f}{method.name} ({method.n_runs} runs){ap}", None
    if each_run:
        return MethodCurve(drawn, shown, None)
    curves = [_points(one) for one in shown]
    x = np.unique(np.concatenate([of_run[0] for of_run in curves]))
    values = np.array([_values_at(x, *of_run) for of_run in curves])
    known = ~np.isnan(values).any(axis=0)
    x, values = x[known], values[:, known]
    first, beyond = values[0], values - values[0]  # of equal runs the mean is exactly theirs
    mean = first + beyond.mean(axis=0)
    for name, array in zip(drawn.arrays, (x, mean), strict=True):
        setattr(drawn, name, array)
    half = beyond.std(axis=0, ddof=1) / (method.n_runs**0.5 if spread is Spread.SE else 1)
    low, high = mean - half, mean + half
    if spread is Spread.RANGE:
        low, high = values.min(axis=0), values.max(axis=0)
    return MethodCurve(drawn, shown, (x, low, high))


def drawn_how(curves: Sequence[MethodCurve], kind: str, spread: Spread) -> list[Artist]:
    """Return the legend entries that explain curves of several runs; [] for single runs."""
    y, x = AVERAGED.get(kind, ("", ""))
    if any(one.band for one in curves):
        text = f"of several runs: mean {y} at equal {x}; band: {_BANDS[spread]} over runs"
        return [Patch(facecolor=GREY, alpha=0.3, label=text)]
    text = "of several runs: every run's own curve"
    return [Line2D([], [], color=GREY, linewidth=0.6, label=text)] * any(c.of_runs for c in curves)


def _mean_text(values: Sequence[float], spread: Spread) -> str:
    """Return the mean of a score over runs with its spread, for a legend."""
    scores = ScoresOfRuns(tuple(values))
    if len(values) == 1:
        return short(scores.mean)
    if spread is Spread.RANGE:
        return f"{short(scores.mean)}, {short(min(values))} to {short(max(values))}"
    return f"{short(scores.mean)} ± {short(scores.se if spread is Spread.SE else scores.sd)}"


class _Points(NamedTuple):
    """The points of a curve."""

    x: F8
    y: F8


def _points(display: CurveDisplay) -> _Points:
    """Return the x and y of a curve, without points where nothing matches."""
    x, y = (np.asarray(getattr(display, name), np.float64) for name in display.arrays)
    drawn = (x > 0) | (y > 0)
    return _Points(x[drawn], y[drawn])


def _values_at(levels: F8, x: F8, y: F8) -> F8:
    """Return a curve at these x, NaN beyond its ends; of points with one x the first counts."""
    firsts, places = np.unique(x, return_index=True)
    return np.interp(levels, firsts, y[places], left=np.nan, right=np.nan)
