"""Plots of comparisons: ranks of methods over bootstrap samples, and scores of slices of images."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.ranks import indistinguishable_groups
from bsdsbench.comparison.slices import Slices, score_drawn, slices_of
from bsdsbench.errors import DataError
from bsdsbench.plotting import style
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import full_name, unknown_score

_ROW_HEIGHT = 2.2  # in font sizes
_MAX_LABEL_WIDTH = 0.5  # as a fraction of the figure's width


def plot_ranks(
    compared: Comparison | Mapping[str, Comparison],
    score: str | None = None,
    *,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot how often each method has each rank over bootstrap samples (blob plot of challengeR).

    Methods are rows, best first; ranks are columns. The area of a dot is proportional to the
    fraction of samples in which the method has that rank. A cross is the median rank, and a
    horizontal line its interval (see `bsdsbench.comparison.ranks`). Vertical lines at the right
    join groups of methods that do not differ significantly.

    Parameters
    ----------
    compared : Comparison or mapping
        A comparison of at least two runs or methods. The comparisons in a mapping of names to
        comparisons, such as `compare_slices` returns, are stacked vertically.
    score : str, optional
        The score to rank by: METRIC.SCORE, a short name such as "ods", or a metric, which means
        its first score. Default: the first score that the comparison shows.
    look : str, optional
        "screen" (default), "column" or "page" (sizes for a paper), or "slide".
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.

    Returns
    -------
    Figure
        One axes per comparison. A comparison in which all scores are undefined is left out.

    Raises
    ------
    DataError
        If there is only one method, if the score was not compared, or if it is undefined for all
        methods.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.plotting import plot_ranks
    >>> figure = plot_ranks(bb.compare(["ref:hed", "ref:se"], n_boot=100))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['1  ref:hed 0.780', '2  ref:se 0.740']
    """
    by_slice = dict(compared) if isinstance(compared, Mapping) else {"": compared}
    if not by_slice:
        raise DataError("no comparisons given, expected at least one to plot")
    first = next(iter(by_slice.values()))  # all compare the same methods by the same scores
    ranked_score = _score_to_rank_by(score, first)
    if len(first.names) < 2:
        raise DataError(f"{first.names[0]}: is the only run, expected two or more to rank")
    # Leave out comparisons in which the score is undefined for all methods: none has a rank
    comparisons = {k: v for k, v in by_slice.items() if v.ranks[ranked_score].names}
    if not comparisons:
        raise DataError(f"score {ranked_score}: undefined for all runs, expected one to rank by")
    with style.style(look, path is not None):
        # One row per method, three for the title and ticks of each axes, four for the caption
        n_rows = 4 + sum(len(c.ranks[ranked_score].names) + 3 for c in comparisons.values())
        height = n_rows * _ROW_HEIGHT * style.font_size() / 72  # inches, with 72 points each
        figure = style.new_figure(height)
        row_scale = figure.get_size_inches()[1] / height  # below 1 for a slide, of fixed height
        all_axes = figure.subplots(len(comparisons), 1, squeeze=False)[:, 0]  # from top to bottom
        for ax, (name, comparison) in zip(all_axes, comparisons.items(), strict=True):
            _draw_ranks(ax, comparison, ranked_score, row_scale)
            if name:
                ax.set_title(f"{name} ({comparison.n_images} images)", parse_math=False)
        caption = _caption(first)
        letters = style.letters_in(figure.get_size_inches()[0])  # that fit into the width
        lines = [f"Rank by {heading(ranked_score)}", *textwrap.wrap(caption, letters)]
        figure.supxlabel("\n".join(lines), fontsize=style.font_size(), parse_math=False)
        style.figure_notes[figure] = caption  # for the metadata of the file
        return style.save(figure, path)


def _score_to_rank_by(score: str | None, comparison: Comparison) -> str:
    """Return the full name METRIC.SCORE of `score`, which may be short, such as "ods".

    A metric stands for its first score, and None for the first score of all. Scores that tables
    show come before the others. Raises DataError if the score was not compared.
    """
    for full_score in (*comparison.shown, *comparison.scores):
        if score is None or score == full_score.partition(".")[0]:
            return full_score
    full_score = full_name(str(score), comparison.scores)
    if full_score not in comparison.scores:
        raise unknown_score(score, comparison.scores)
    return full_score


def _caption(comparison: Comparison) -> str:
    """Return a text that explains the dots, crosses and lines of a plot of ranks."""
    units = f"clusters ({comparison.cluster})" if comparison.cluster else "images"
    criterion = f"p ({1 - comparison.level:.2g}, Holm)"
    if comparison.has_several_runs:
        units += " and runs"
        criterion += ", or by an interval that excludes 0 if there are too few runs"
    return (
        f"Dots: fraction of {comparison.n_boot:,} samples of {units} with that rank; cross: "
        f"median; line: {100 * comparison.level:g} % interval. Lines on the right join methods "
        f"that cannot be separated by {criterion}."
    )


def _draw_ranks(ax: Axes, comparison: Comparison, score: str, row_scale: float) -> None:
    """Draw the ranks of methods by a score, METRIC.SCORE: one row per method, the best at the top.

    A row has one dot per rank that occurs, whose area is proportional to the fraction of bootstrap
    samples with that rank. A horizontal line is the interval of the rank, and a cross its median.
    Vertical lines at the right join the rows of methods that do not differ significantly.
    `row_scale` is the height of a row relative to _ROW_HEIGHT, below 1 if there is little room.
    """
    # Each field has one entry per row. `low` and `high` are the ends of the interval of ranks
    ranks = comparison.ranks[score]
    # (first row, last row) of each group of methods that do not differ significantly
    groups = indistinguishable_groups(comparison, score)
    n = len(ranks.names)
    # In points, 72 per inch. The axes are taken to have 0.7 of the width of the figure, as their
    # true width is known only once they are drawn
    axes_width = style.figure_width() * 72 * 0.7
    x_range = n + 0.4 * len(groups)  # a rank is 1 wide on the x axis, each line at the right 0.4
    rank_width, row_height = axes_width / x_range, _ROW_HEIGHT * row_scale * style.font_size()
    # The largest dot (the same rank in all samples) almost touches the next row or rank
    max_area = (0.9 * min(row_height, rank_width)) ** 2
    dots: Any = {"color": style.PALETTE[0], "alpha": 0.35, "linewidths": 0}
    for row, shares in enumerate(ranks.shares):  # shares[k]: fraction of samples with rank k + 1
        occurring = np.flatnonzero(shares)  # rank - 1 for each rank that occurs
        areas = max_area * np.asarray(shares)[occurring]
        ax.scatter(occurring + 1, np.full(occurring.size, row), areas, **dots)
        ax.plot([ranks.low[row], ranks.high[row]], [row, row], color="black", linewidth=1)
        ax.plot([ranks.median[row]], [row], "x", color="black", markersize=0.6 * style.font_size())
    for k, (top_row, bottom_row) in enumerate(groups):
        x = n + 0.7 + 0.4 * k  # right of the dots of rank n, which end at n + 0.5
        ends = [top_row - 0.25, bottom_row + 0.25]  # a quarter of a row beyond the two rows
        ax.plot([x, x], ends, color="black", linewidth=2)
    value_of = {i.run: i.value for i in comparison.intervals if i.score == score}
    letters = style.letters_in(_MAX_LABEL_WIDTH * style.figure_width())
    labels = [
        textwrap.fill(f"{rank}  {name} {value_of[name]:.3f}", letters)
        for rank, name in zip(ranks.rank, ranks.names, strict=True)
    ]
    max_lines = 1 + max(label.count("\n") for label in labels)
    # A row has room for two lines; longer labels get smaller letters
    label_size = style.font_size() * min(1, 2 * row_scale / max_lines)
    ax.set_yticks(range(n), labels, parse_math=False, fontsize=label_size)
    ax.set_xticks(range(1, n + 1, 2 if n > 9 else 1))
    ax.set(xlim=(0.4, n + 0.6 + 0.4 * len(groups)), ylim=(n - 0.4, -0.6))


def plot_slices(
    runs: Sequence[Evaluation | str | Path],
    by: str,
    *,
    metric: str | None = None,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot the runs' score in each slice (group of images), with 95 % intervals.

    Each slice is a row, in which a dot and a line per run show the score and its interval. A dotted
    vertical line per run shows the score on all images.

    runs : runs whose images have grouping columns, or the folders of such runs
    by : the grouping column, optionally with bin limits, as in "size=0,1024"
    metric : the metric whose first score is drawn. Default: the first metric that all runs have
    look : "screen", "column" or "page" (sizes for a paper), or "slide"; default: "screen"
    path : also write the figure to this .pdf, .svg or .png file

    Raises DataError if a run lacks the column or the metric.
    """
    evaluations = as_runs(runs)
    slices_of_runs = [slices_of(run, by) for run in evaluations]
    drawn_score = score_drawn(evaluations, slices_of_runs, metric)
    with style.style(look, path is not None):
        return style.save(draw_slices(slices_of_runs, drawn_score), path)


def draw_slices(slices_of_runs: Sequence[Slices], drawn_score: str) -> Figure:
    """Plot the runs' score in each slice (group of images), in the current style.

    Each slice is a row, in which a dot and a line per run show the score and its interval. A dotted
    vertical line per run shows the score on all images.

    slices_of_runs : the slices of each run, all made from the same grouping column
    drawn_score : the score, METRIC.SCORE
    """
    first_run = slices_of_runs[0]
    # The names of all slices, such as scenes; a run may lack some
    names = list(dict.fromkeys(name for slices in slices_of_runs for name in slices.parts.names))
    row_of = {name: len(names) - k for k, name in enumerate(names)}  # from the top down
    n_runs = len(slices_of_runs)
    row_height = 0.3 * max(1, 0.6 * n_runs)  # inches; 0.18 for each of several runs
    height = max(3.2, 1.2 + row_height * len(names))  # 1.2 for title, ticks and label
    ax = style.new_axes(height, ratio=5.2 / height)  # 5.2 inches wide
    ax.set_box_aspect(None)  # `new_axes` makes square axes if this is as high as wide
    offsets = np.linspace(0.25, -0.25, n_runs) if n_runs > 1 else [0.0]  # of a run within a row
    lines = style.curve_lines(n_runs)
    entries = []  # the dots of each run, for the legend
    for slices, offset, line in zip(slices_of_runs, offsets, lines, strict=True):
        # The slices of this run, in the order of their scores: a value with an interval for each
        rows = [row_of[name] + offset for name in slices.parts.names]
        scores = [slice_score.score for slice_score in slices.scores[drawn_score]]
        for y, score in zip(rows, scores, strict=True):
            ax.plot([score.low, score.high], [y, y], "-", color=line.color, linewidth=1.2)
        values = [score.value for score in scores]
        entries += ax.plot(values, rows, "o", color=line.color, markersize=4.5, label=slices.name)
        on_all_images = slices.whole[drawn_score]
        ax.axvline(on_all_images, color=line.color, linewidth=0.9, linestyle=":")
    n_images_of = dict(zip(first_run.parts.names, first_run.sizes, strict=True))
    tick_labels = [f"{n} ({n_images_of[n]})" if n in n_images_of else n for n in names]
    ax.set_yticks([row_of[name] for name in names], tick_labels, parse_math=False)
    ax.set(ylim=(0.4, len(names) + 0.6), xlabel=heading(drawn_score))
    ax.set_title(f"{first_run.parts.column} (images); dotted: all images", parse_math=False)
    figure = ax.figure.figure
    if n_runs > 1:
        place: Any = {"loc": "outside lower center", "ncols": min(4, n_runs)}
        figure.legend(handles=entries, frameon=False, **place)
    return figure
