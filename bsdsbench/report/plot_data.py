"""The data for the plots in a report: curves, error classes, and slices (groups of images)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.lost_scores import ERROR_CLASSES
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
    """Return stacked bars of the error classes: (run name, [(error class, width), ...]) per run.

    A width is the gain in ODS if only the errors of this class were corrected, in percent of the
    longest bar. It is 0 if the gain is undefined.

    losses : the result of `lost_scores` for each run
    """
    bars = []  # (run name, [(error class, gain in ODS), ...])
    for lost in losses:
        rises = []
        for side in ("missed", "false"):
            for key, error_class in ERROR_CLASSES[side].items():
                rises.append((error_class, lost[side][key]["delta_ods"] or 0.0))
        bars.append((lost["name"], rises))
    lengths = [sum(rise for _, rise in rises) for _, rises in bars]
    longest = max(lengths, default=0.0) or 1.0  # not 0 if all widths are 0
    return [(name, [(k, 100 * rise / longest) for k, rise in rises]) for name, rises in bars]


def slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, str]:
    """Plot a score of the runs, with its interval, in each slice (group of images).

    It is the first score that tables of the first run show by default and that all runs have.

    slices : the slices of each run, all made from the same grouping column

    Returns the "title" and the "url", a data URL of an SVG file.
    """
    from bsdsbench.plotting.comparison_plots import draw_slices

    score = score_drawn(runs, slices)
    with style.style("screen", file=True):
        svg = style.drawn_bytes(draw_slices(slices, score), "svg")
    title = f"{heading(score)} by {slices[0].parts.column}"
    return {"title": title, "url": data_url("svg+xml", svg)}


def curves_data(
    runs: Sequence[Evaluation], published: Sequence[PublishedResult]
) -> list[dict[str, object]]:
    """Return the data for the plot of precision-recall curves: one dict per curve, for JSON.

    The runs come first, followed by the published results:

    - "name": the text in the legend.
    - "color": the color of the line as "#rrggbb".
    - "dash": the lengths of dashes and gaps for SVG, or "" for a solid line.
    - "curve", if there is one: its points [threshold or None, recall, precision, F].
    - "ods", if there is a curve: the point with the best F, as the same four numbers.
    - "level", for a run whose drawn metric has an ODS: the ODS threshold.
    """
    names = [*(run.name for run in runs), *(row.label for row in published)]
    data: list[dict[str, object]] = []
    for name, line in zip(names, style.curve_lines(len(names)), strict=True):
        # Lengths are in line widths, and the page draws lines that are 2 pixels wide
        dash = " ".join(f"{2 * length:g}" for length in line.dashes)
        data.append({"name": name, "color": line.color, "dash": dash})
    for run, entry in zip(runs, data[: len(runs)], strict=True):
        if run.with_curve:  # names of the metrics that have a curve; the first one is plotted
            score = run.score(run.with_curve[0])
            entry |= _points_of(score.curve, score.ods)
        # Of the metric whose pixels are drawn, for the button "ODS" above the pictures
        ods_threshold = chosen_threshold(run)
        if ods_threshold is not None:
            entry["level"] = round(ods_threshold, 5)
    for published_result, entry in zip(published, data[len(runs) :], strict=True):
        if published_result.curve:
            entry |= _points_of(published_result.curve, published_result.curve.ods)
    return data


def _points_of(curve: PRCurve | PublishedCurve, best: OperatingPoint) -> dict[str, object]:
    """Return {"curve": points, "ods": best point}, for JSON.

    A point is [threshold or None, recall, precision, F], rounded to five decimals. Points with
    recall and precision 0 are left out.
    """
    thresholds = [None] * curve.recall.size if curve.thresholds is None else curve.thresholds
    f = f_measure(curve.precision, curve.recall)
    points = zip(thresholds, curve.recall, curve.precision, f, strict=True)
    shown = [point for point in points if point[1] > 0 or point[2] > 0]
    shown.append((best.threshold, best.recall, best.precision, best.f))
    rounded = [[None if x is None else round(float(x), 5) for x in point] for point in shown]
    return {"curve": rounded[:-1], "ods": rounded[-1]}
