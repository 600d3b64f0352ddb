"""The data of the plots on a page of runs: curves, classes of errors, and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.lost_scores import ERROR_SIDES
from bsdsbench.comparison.published import PublishedCurve, PublishedResult
from bsdsbench.comparison.slices import Slices, score_drawn
from bsdsbench.plotting import style
from bsdsbench.report.overlays import chosen_threshold
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_measure


def error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return the bars of the plot of error classes: for each run, (name, [(error class, width)]).

    The width of a class stands for the rise of ODS if the errors of this class alone were repaired.
    It is a percentage of the length of the longest bar. An undefined rise has the width 0.

    losses : the result of `lost_scores` for each run
    """
    rises_of_runs = []  # for each run, error class -> rise of ODS
    for lost in losses:
        rises = {}
        for side in ("missed", "false"):
            for key, error_class in ERROR_SIDES[side][1].items():
                rises[error_class] = lost[side][key]["delta_ods"] or 0.0
        rises_of_runs.append(rises)
    # If no error costs anything, any divisor will do: all widths are 0
    longest = max((sum(rises.values()) for rises in rises_of_runs), default=0.0) or 1.0
    bars = []
    for lost, rises in zip(losses, rises_of_runs, strict=True):
        widths = [(error_class, 100 * rise / longest) for error_class, rise in rises.items()]
        bars.append((lost["name"], widths))
    return bars


def slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, object]:
    """Return the data from which the template plots a score for each slice (group of images).

    `slices` has one entry for each run, all made from the same column of groups. The result has
    these keys; each x is a percentage of the width of the plot.

    title  : text
    rows   : for each slice of each run, (label, color, x of the score, x of the lower end of its
        interval, x of the upper end, text). Slices with an undefined score are omitted. If the
        interval is undefined, both of its ends are at the score
    wholes : for each run, (x of its score on all images, color)
    ends   : the smallest and the largest value on the axis, as text
    """
    score = score_drawn(runs, slices)
    colors = [line.color for line in style.curve_lines(len(runs))]
    values = []  # the axis covers scores on all images, scores of slices, ends of their intervals
    for run_slices in slices:
        values.append(run_slices.whole[score])
        for scored in run_slices.scores[score]:
            values += scored.score
    lowest, highest = np.nanmin(values), np.nanmax(values)

    def percent(value: float) -> float:
        """Return the x of a score, leaving a margin of 4 % on each side of the plot."""
        return round(4 + 92 * float((value - lowest) / ((highest - lowest) or 1.0)), 2)

    rows, wholes = [], []
    for run_slices, color in zip(slices, colors, strict=True):
        wholes.append((percent(run_slices.whole[score]), color))
        run_name = f"{run_slices.name}: " if len(slices) > 1 else ""
        names, scores = run_slices.parts.names, run_slices.scores[score]
        for name, scored, n in zip(names, scores, run_slices.sizes, strict=True):
            value, low, high = scored.score
            if np.isnan(value):
                continue
            if np.isnan(low):
                low = high = value
            text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            rows.append((f"{run_name}{name} ({n})", color, *map(percent, (value, low, high)), text))
    return {
        "title": f"{heading(score)} by {slices[0].parts.column}",
        "rows": rows,
        "wholes": wholes,
        "ends": (f"{lowest:.3f}", f"{highest:.3f}"),
    }


def curves_data(
    runs: Sequence[Evaluation], published: Sequence[PublishedResult]
) -> list[dict[str, object]]:
    """Return the data of the plot of curves: a dict for each run, then for each published result.

    The keys of a dict are:

    name, color : the text of the legend, and the color as "#rrggbb"
    dash  : the lengths of dashes and gaps for SVG, or "" for a solid line
    curve : the points [threshold, recall, precision, F], except those with a recall and precision
        of 0
    ods   : the best point of the curve, as a list of the same four numbers
    level : the ODS threshold of the metric whose pixels are drawn for a run, if it has one

    An unknown threshold is None. If there is no curve, "curve" and "ods" are missing.
    """
    names = [*(run.name for run in runs), *(row.label for row in published)]
    data: list[dict[str, object]] = []
    for name, line in zip(names, style.curve_lines(len(names)), strict=True):
        dash = " ".join(f"{2 * length:g}" for length in line.dashes)  # the lines are 2 wide
        data.append({"name": name, "color": line.color, "dash": dash})
    for run, mapping in zip(runs, data, strict=False):
        if run.with_curve:
            score = run.score(run.with_curve[0])
            mapping |= _points_of(score.curve, score.ods)
        threshold = chosen_threshold(run)
        if threshold is not None:
            mapping["level"] = round(threshold, 5)
    for row, mapping in zip(published, data[len(runs) :], strict=True):
        if row.curve:
            mapping |= _points_of(row.curve, row.curve.ods)
    return data


def _points_of(curve: PRCurve | PublishedCurve, best: OperatingPoint) -> dict[str, object]:
    """Return the entries "curve" and "ods" of `curves_data` for one curve.

    best : the best point of the curve, which becomes "ods"
    """
    thresholds = [None] * curve.recall.size if curve.thresholds is None else curve.thresholds
    f = f_measure(curve.precision, curve.recall)
    points = zip(thresholds, curve.recall, curve.precision, f, strict=True)
    return {
        "curve": [_round_point(point) for point in points if point[1] > 0 or point[2] > 0],
        "ods": _round_point((best.threshold, best.recall, best.precision, best.f)),
    }


def _round_point(point: Sequence[float | None]) -> list[float | None]:
    """Round the numbers of a point to five decimals. None stays None."""
    return [None if number is None else round(float(number), 5) for number in point]
