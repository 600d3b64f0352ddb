"""The data of the plots on a page of runs: curves, classes of errors, and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.lost_scores import ERROR_SIDES
from bsdsbench.comparison.published import PublishedCurve, PublishedResult
from bsdsbench.comparison.slices import Slices, score_drawn
from bsdsbench.plotting import style
from bsdsbench.report.overlays import chosen_threshold
from bsdsbench.report.pictures import data_url
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_measure


def error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return the bars of the plot of error classes, one for each run.

    A bar is a pair of the name of the run and the segments of the bar, from left to right. A
    segment is a pair of a class of errors and its width. The width stands for the rise of ODS if
    the errors of this class alone were repaired, as a percentage of the length of the longest bar.
    It is 0 if the rise is undefined.

    losses : the result of `lost_scores` for each run
    """
    rises_of_runs = []  # for each run, error class -> rise of ODS
    for lost in losses:
        rises = {}
        for side in ("missed", "false"):
            _, class_of_key = ERROR_SIDES[side]
            for key, error_class in class_of_key.items():
                rises[error_class] = lost[side][key]["delta_ods"] or 0.0
        rises_of_runs.append(rises)
    longest = max((sum(rises.values()) for rises in rises_of_runs), default=0.0)
    if longest == 0:
        longest = 1.0  # any number will do, because all widths are 0
    bars = []
    for lost, rises in zip(losses, rises_of_runs, strict=True):
        widths = [(error_class, 100 * rise / longest) for error_class, rise in rises.items()]
        bars.append((lost["name"], widths))
    return bars


class SlicePlot(NamedTuple):
    """A plot of slices: its title, and the picture as the URL of an SVG file."""

    title: str
    url: str


def slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> SlicePlot:
    """Draw a score of the runs in each slice (group of images), as `plotting.plot_slices` does.

    runs : the runs
    slices : the slices of each run, all made from the same column of groups
    """
    from bsdsbench.plotting.comparison_plots import draw_slices

    score = score_drawn(runs, slices)
    with style.style("screen", file=True):
        svg = style.drawn_bytes(draw_slices(slices, score), "svg")
    return SlicePlot(f"{heading(score)} by {slices[0].parts.column}", data_url("svg+xml", svg))


def curves_data(
    runs: Sequence[Evaluation], published: Sequence[PublishedResult]
) -> list[dict[str, object]]:
    """Return the data of the plot of precision-recall curves, as dicts for JSON.

    There is a dict for each run, followed by one for each published result. Its keys are:

    - "name": the text of the legend.
    - "color": the color of the line as "#rrggbb".
    - "dash": the lengths of dashes and gaps for SVG, or "" for a solid line.
    - "curve": the points of the curve as lists [threshold, recall, precision, F]. Points with a
      recall and precision of 0 are left out.
    - "ods": the best point of the curve, as a list of the same four numbers.
    - "level": the ODS threshold of the metric whose pixels are drawn for a run. The key is missing
      for published results and for runs without such a threshold.

    A threshold that is not known is None. If there is no curve, the keys "curve" and "ods" are
    missing.
    """
    names = [*(run.name for run in runs), *(row.label for row in published)]
    data: list[dict[str, object]] = []
    for name, line in zip(names, style.curve_lines(len(names)), strict=True):
        # Lengths are in line widths, and the page draws lines that are 2 pixels wide
        dash = " ".join(f"{2 * length:g}" for length in line.dashes)
        data.append({"name": name, "color": line.color, "dash": dash})
    for run, entry in zip(runs, data[: len(runs)], strict=True):
        if run.with_curve:
            score = run.score(run.with_curve[0])
            entry |= _points_of(score.curve, score.ods)
        threshold = chosen_threshold(run)
        if threshold is not None:
            entry["level"] = round(threshold, 5)
    for published_result, entry in zip(published, data[len(runs) :], strict=True):
        if published_result.curve:
            entry |= _points_of(published_result.curve, published_result.curve.ods)
    return data


def _points_of(curve: PRCurve | PublishedCurve, best: OperatingPoint) -> dict[str, object]:
    """Return the points of one curve, as a dict with the keys "curve" and "ods" of `curves_data`.

    Points with a recall and precision of 0 are left out.

    best : the point with the best F on the curve, which becomes "ods"
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
