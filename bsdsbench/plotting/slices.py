"""Plot the score of each slice, a group of images, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.slices import score_drawn, slices_of
from bsdsbench.plotting.style import curve_lines, new_axes, save, style
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs


def plot_slices(
    runs: Sequence[Evaluation | str | Path],
    by: str,
    *,
    metric: str | None = None,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw a score of runs in each slice, a row per slice, with 95 % intervals.

    In a row, each run has a dot and a line, its interval. A dotted vertical line is the score on
    all images of a run.

    runs   : runs whose images have groups, or the folders of such runs
    by     : the column of groups, possibly with limits, as in "size=0,1024"
    metric : the metric whose first score is drawn, by default the first that all runs have
    look   : see `bsdsbench.plotting.style.style`
    path   : also write the figure to this .pdf, .svg or .png file

    Raises DataError if a run lacks the column or the metric.
    """
    evaluations = as_runs(runs)
    slices_of_runs = [slices_of(run, by) for run in evaluations]
    drawn_score = score_drawn(evaluations, slices_of_runs, metric)
    names = list(dict.fromkeys(name for slices in slices_of_runs for name in slices.parts.names))
    row_of = {name: len(names) - k for k, name in enumerate(names)}  # from the top down
    n_runs = len(evaluations)
    with style(look, path is not None):
        ax = new_axes(1.2 + 0.3 * len(names) * max(1, 0.6 * n_runs), 1.6)
        ax.set_box_aspect(None)
        offsets = np.linspace(0.25, -0.25, n_runs) if n_runs > 1 else [0.0]
        entries = []  # the first dot of each run, for the legend
        for slices, offset, line in zip(slices_of_runs, offsets, curve_lines(n_runs), strict=True):
            dots = []
            for name, scored in zip(slices.parts.names, slices.scores[drawn_score], strict=True):
                y = row_of[name] + offset
                value, low, high = scored.score
                ax.plot([low, high], [y, y], "-", color=line.color, linewidth=1.2)
                dots += ax.plot([value], [y], "o", color=line.color, markersize=4.5)
            dots[0].set_label(slices.name)
            entries.append(dots[0])
            ax.axvline(slices.whole[drawn_score], color=line.color, linewidth=0.9, linestyle=":")
        n_images_of = dict(zip(slices_of_runs[0].parts.names, slices_of_runs[0].sizes, strict=True))
        tick_labels = [f"{n} ({n_images_of[n]})" if n in n_images_of else n for n in names]
        ax.set_yticks([row_of[name] for name in names], tick_labels, parse_math=False)
        ax.set(ylim=(0.4, len(names) + 0.6), xlabel=heading(drawn_score))
        column = slices_of_runs[0].parts.column
        ax.set_title(f"{column} (images); dotted: all images", parse_math=False)
        figure = ax.figure.figure
        if n_runs > 1:
            place: Any = {"loc": "outside lower center", "ncols": min(4, n_runs)}
            figure.legend(handles=entries, frameon=False, **place)
        return save(figure, path)
