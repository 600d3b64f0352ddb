"""Curves of methods with several runs: the mean curve with a band, or one curve per run.

Precision is averaged at equal recall (vertical averaging; Fawcett, An introduction to ROC analysis,
Pattern Recognition Letters 2006), wherever all runs are defined. Precision is interpolated linearly
between the points of a run, as in the AP of the benchmark. F is averaged at equal thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bsdsbench.arguments import Floats
from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread
from bsdsbench.errors import DataError, Setting
from bsdsbench.plotting.curve_display import CurveDisplay
from bsdsbench.plotting.style import GREY
from bsdsbench.results.given_runs import as_runs

# Kinds of curves that are averaged over runs -> (y, x): y is averaged at equal x
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
    """The curve of a method: that of its only run, the mean over runs, or one curve per run."""

    display: CurveDisplay  # the curve of the only run, the mean curve, or the first run's curve
    run_displays: Sequence[CurveDisplay] = ()  # the curves of all runs, if there are several
    band: _MeanCurve | None = None  # the mean curve and its band, if the mean is drawn

    @property
    def f(self) -> float:
        """The mean over runs of the F at each run's best point; 0 if no run has a best point."""
        displays = self.run_displays or [self.display]
        best_fs = [display.best.f for display in displays if display.best is not None]
        return sum(best_fs) / len(best_fs) if best_fs else 0.0

    def draw_runs(self) -> None:
        """Add the band, or the other runs' curves, to the axes on which `display` was drawn.

        If there is one curve per run, all of them, including the drawn one, are made thin. On
        precision-recall axes, a small dot marks the best point of each run.
        """
        ax = self.display.ax_
        color = self.display.line_.get_color()
        band = self.band
        if band is not None:
            ax.fill_between(band.x, band.low, band.high, color=color, alpha=0.2, linewidth=0)
        elif self.run_displays:
            width = 0.5 * self.display.line_.get_linewidth()
            self.display.line_.set_linewidth(width)  # it is the curve of the first run
            for display in self.run_displays[1:]:
                ax.plot(*_points(display), color=color, linewidth=width)
        for display in self.run_displays:
            if display.best is not None and display.arrays[0] == "recall":
                dot: Any = {"color": color, "marker": "o", "markersize": 2.5, "zorder": 3}
                ax.plot([display.best.recall], [display.best.precision], linestyle="none", **dot)


class _MeanCurve(NamedTuple):
    """A mean curve, and the lower and upper limits of its band at each x, float64 (K,) each."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def method_curve(
    method: Method,
    displays: list[CurveDisplay],
    aps: Sequence[float],
    spread: Spread,
    each_run: bool,
) -> MethodCurve:
    """Combine the curves of a method's runs into one entry of a plot, with a text for the legend.

    The text of several runs is, for example, "[F=0.780 ± 0.004] NAME (3 runs), AP 0.800 ± 0.002".

    displays : the curve of each run. A single one gets the name of the method in place
    aps : the AP of each run, or (). The legend shows their mean, unless one of them is NaN
    spread : the measure of spread that the band around the mean curve shows
    each_run : keep the curves of several runs instead of averaging them

    Raises DataError if the runs are not comparable, such as on different images, or if curves are
    to be averaged whose points are unordered.
    """
    ap_text = f", AP {_mean_text(aps, spread)}" if aps and not np.isnan(aps).any() else ""
    if method.n_runs == 1:
        displays[0].name = method.name + ap_text
        return MethodCurve(displays[0])
    comparable(as_runs(method.runs, method.labels))  # raises DataError unless comparable
    # Curves whose points have no order are not `joined`, and have no y at a given x
    if not each_run and not all(display.joined for display in displays):
        fix = Setting("each_run", True, "draws each of them")
        raise DataError(f"{method.name}: the points of its curves have no order", fix=fix)
    method_display = copy(displays[0])  # becomes the mean curve, or stays that of the first run
    best_fs = [display.best.f for display in displays if display.best is not None]
    f_text = f"[F={_mean_text(best_fs, spread)}] " if best_fs else ""
    method_display.name = f"{f_text}{method.name} ({method.n_runs} runs){ap_text}"
    method_display.best = None  # the best points of the runs are drawn instead
    if each_run:
        return MethodCurve(method_display, run_displays=displays)
    points_of_runs = [_points(display) for display in displays]  # (2, K) each: x and y
    band = _average_curves(points_of_runs, spread)  # with the mean
    # The names of the display's fields for x and y, such as "recall", "precision"
    x_name, y_name = method_display.arrays
    setattr(method_display, x_name, band.x)
    setattr(method_display, y_name, band.mean)
    return MethodCurve(method_display, run_displays=displays, band=band)


def _average_curves(curves: Sequence[Floats], spread: Spread) -> _MeanCurve:
    """Average y at equal x over two or more curves (2, K), x and y, and compute a band.

    Curves are interpolated linearly. Where a curve has several points at one x, its y is that of
    the first in order of x; if x is recall, this is the point with the highest threshold. The mean
    is computed at every x at which a curve has a point and that lies between the ends of all. The
    band is the range of y (RANGE), or the mean plus and minus one sample standard deviation (SD) or
    standard error (SE).
    """
    rising = []  # (x, y) of each curve
    for x, y in curves:
        if x[0] > x[-1]:  # falling x, as of recall by rising threshold
            x, y = x[::-1], y[::-1]
        # Leave out points at which x is smaller than before. Recall, for example, can fall again at
        # low thresholds, where thick lines are thinned to other pixels. The curve then has two
        # values at one x, and interpolating between all points would jump from one to the other
        is_largest_so_far = x == np.maximum.accumulate(x)
        rising.append((x[is_largest_so_far], y[is_largest_so_far]))
    x = np.unique(np.concatenate([curve_x for curve_x, _ in rising]))
    values = np.empty((len(curves), x.size))  # y of each curve at x, NaN beyond its ends
    for row, (curve_x, curve_y) in zip(values, rising, strict=True):
        # Between two x, a line from the last point at the one to the first point at the other
        row[:] = np.interp(x, curve_x, curve_y, left=np.nan, right=np.nan)
        # At an x with several points, the first
        unique_x, first = np.unique(curve_x, return_index=True)
        row[np.isin(x, unique_x)] = curve_y[first]
    is_defined = ~np.isnan(values).any(axis=0)
    x, values = x[is_defined], values[:, is_defined]
    # Average the differences from the first run, so that the mean of equal runs is exact
    offsets = values - values[0]
    mean = values[0] + offsets.mean(axis=0)
    if spread is Spread.RANGE:
        return _MeanCurve(x, mean, values.min(axis=0), values.max(axis=0))
    half_width = offsets.std(axis=0, ddof=1)
    if spread is Spread.SE:
        half_width = half_width / len(curves) ** 0.5
    return _MeanCurve(x, mean, mean - half_width, mean + half_width)


def spread_entries(curves: Sequence[MethodCurve], kind: str, spread: Spread) -> list[Artist]:
    """Return a list with the legend entry that explains the bands, or each run's thin line.

    The list is empty if no method has several runs. `kind` is the kind of plot, such as "pr", and
    `spread` is the measure of spread that the bands show.
    """
    y, x = AVERAGED.get(kind, ("", ""))  # other kinds have no bands
    if any(curve.band for curve in curves):
        text = f"of several runs: mean {y} at equal {x}; band: {_BANDS[spread]} over runs"
        return [Patch(facecolor=GREY, alpha=0.3, label=text)]
    if any(curve.run_displays for curve in curves):
        text = "of several runs: every run's own curve"
        return [Line2D([], [], color=GREY, linewidth=0.6, label=text)]
    return []


def _mean_text(values: Sequence[float], spread: Spread) -> str:
    """Format the mean over runs with its spread, e.g. "0.780 ± 0.004" (SD, SE).

    For RANGE it is e.g. "0.780, 0.776 to 0.784". A single value is shown without spread.
    """
    scores = ScoresOfRuns(tuple(values))
    if len(values) == 1:
        return f"{scores.mean:.3f}"
    if spread is Spread.RANGE:
        return f"{scores.mean:.3f}, {min(values):.3f} to {max(values):.3f}"
    half_width = scores.se if spread is Spread.SE else scores.sd
    return f"{scores.mean:.3f} ± {half_width:.3f}"


def _points(display: CurveDisplay) -> Floats:
    """Return the points (2, K) of a display's curve without those at (0, 0) (no pixel matches)."""
    points = np.array([getattr(display, name) for name in display.arrays], np.float64)
    return points[:, (points > 0).any(axis=0)]
