"""A picture of slices: the score of each group of images with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.slices import Slices, slices_of
from bsdsbench.plotting.style import curve_lines, new_axes, save, style
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import full_name, unknown_score, usual_scores


def plot_slices(
    runs: Sequence[Evaluation | str | Path],
    by: str,
    *,
    metric: str | None = None,
    score: str | None = None,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw a score of runs in each slice, with 95 % intervals; a line is all images of a run.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs whose images have groups, or their folders.
    by : str
        The column of groups, as `slices_of` takes it.
    metric, score : str, optional
        What to draw; default: the first score of the first metric that all runs have.
    look : optional
        See `bsdsbench.plotting.style.style`.
    path : path, optional
        Also write it there, .pdf, .svg or .png.

    Raises
    ------
    DataError
        For a column or score that a run does not have.
    """
    given = as_runs(runs)
    slices = [slices_of(run, by) for run in given]
    shown = score_drawn(given, slices, metric, score)
    names = list(dict.fromkeys(name for one in slices for name in one.parts.names))
    places = {name: len(names) - k for k, name in enumerate(names)}
    with style(look, path is not None):
        ax = new_axes(1.2 + 0.3 * len(names) * max(1, 0.6 * len(given)), 1.6)
        ax.set_box_aspect(None)
        entries, figure = [], ax.figure.figure
        steps = np.linspace(0.25, -0.25, len(given)) if len(given) > 1 else [0.0]
        for one, step, line in zip(slices, steps, curve_lines(len(given)), strict=True):
            for name, scored in zip(one.parts.names, one.scores[shown], strict=True):
                height, (value, low, high) = places[name] + step, scored.score
                ax.plot([low, high], [height, height], "-", color=line.color, linewidth=1.2)
                (dot,) = ax.plot([value], [height], "o", color=line.color, markersize=4.5)
            dot.set_label(one.name)
            entries.append(dot)
            ax.axvline(one.whole[shown], color=line.color, linewidth=0.9, linestyle=":")
        sizes = dict(zip(slices[0].parts.names, slices[0].sizes, strict=True))
        labels = [f"{name} ({sizes[name]})" if name in sizes else name for name in names]
        ax.set_yticks([places[name] for name in names], labels, parse_math=False)
        ax.set(ylim=(0.4, len(names) + 0.6), xlabel=heading(shown))
        ax.set_title(f"{slices[0].parts.column} (images); dotted: all images", parse_math=False)
        if len(entries) > 1:
            place: Any = {"loc": "outside lower center", "ncols": min(4, len(entries))}
            figure.legend(handles=entries, frameon=False, **place)
        return save(figure, path)


def score_drawn(
    runs: Sequence[Evaluation],
    slices: Sequence[Slices],
    metric: str | None = None,
    score: str | None = None,
) -> str:
    """Return METRIC.SCORE of the score that is meant. Raises DataError for an unknown one."""
    known = [name for name in slices[0].scores if all(name in one.scores for one in slices)]
    if score is not None:
        meant = full_name(score, known)
    else:
        shown = usual_scores(runs[0], known)
        meant = next((s for s in shown if metric in (None, s.partition(".")[0])), "")
    if meant not in known:
        raise unknown_score(score or metric, known)
    return meant
