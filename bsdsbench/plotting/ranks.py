"""A picture of ranks over bootstrap samples, and of the methods that cannot be separated."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.methods import MethodComparison
from bsdsbench.comparison.ranks import joined
from bsdsbench.errors import DataError
from bsdsbench.plotting.style import PALETTE, figure_width, font_size, new_axes, save, signed, style
from bsdsbench.results.score_names import full_name, unknown_score
from bsdsbench.scores.ratios import short

_ROW, _LABELS = 2.2, 0.5  # height of a row in heights of its text; widest label, of the width


def plot_ranks(
    compared: Comparison | MethodComparison | Mapping[str, Comparison | MethodComparison],
    score: str | None = None,
    *,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw how often each method has each rank over bootstrap samples, the best method first.

    The area of a blob is the share of samples, a cross the median, a line the interval (the blob
    plot of challengeR, see `bsdsbench.comparison.ranks`). Lines at the right join methods of which
    no two can be separated.

    Parameters
    ----------
    compared : Comparison, MethodComparison or mapping
        Of at least two runs or methods; or of several groups of images by their names, as
        `compare_slices` gives, each of which is drawn below the one before.
    score : str, optional
        METRIC.SCORE, "ods", or a metric, whose first it is; default: the first.
    look : optional
        See `bsdsbench.plotting.style.style`.
    path : path, optional
        Also write it there, .pdf, .svg or .png.

    Raises
    ------
    DataError
        For one run alone, and a score that was not compared or is undefined for all.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.plotting import plot_ranks
    >>> figure = plot_ranks(bb.compare(["ref:hed", "ref:se"], n_boot=100))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['1  ref:hed 0.780', '2  ref:se 0.740']
    """
    parts = dict(compared) if isinstance(compared, Mapping) else {"": compared}
    first = next(iter(parts.values()))
    known = [*first.shown, *first.scores]
    of_metric = [one for one in known if score in (None, one.partition(".")[0])]
    shown = of_metric[0] if of_metric else full_name(str(score), first.scores)
    if shown not in first.scores:
        raise unknown_score(score, first.scores)
    if len(first.names) < 2:
        raise DataError(f"{first.names[0]}: one run alone has no rank, expected several to rank")
    parts = {name: part for name, part in parts.items() if part.ranks[shown].names}
    if not parts:
        raise DataError(f"score {shown}: undefined for all runs, expected one to rank by")
    with style(look, path is not None):
        row = _ROW * font_size() / 72
        height = row * sum(len(part.ranks[shown].names) + 3 for part in parts.values()) + 4 * row
        figure = new_axes(height, figure_width() / height).figure.figure
        figure.clear()
        if look != "slide":
            figure.set_size_inches(figure_width(), height)
        squeezed = figure.get_size_inches()[1] / height
        column = figure.subplots(len(parts), 1, squeeze=False)[:, 0]
        for ax, (name, part) in zip(column, parts.items(), strict=True):
            _draw_ranks(ax, part, shown, squeezed)
            if name:
                ax.set_title(f"{name} ({part.n_images} images)", parse_math=False)
        units = f"clusters ({first.cluster})" if first.cluster else "images"
        units += " and runs" * isinstance(first, MethodComparison)
        apart = f"p ({1 - first.level:.2g}, Holm)"
        if isinstance(first, MethodComparison):
            apart += ", or by an interval without 0 where runs are too few for it"
        caption = (
            f"Blobs: share of {first.n_boot:,} samples of {units} with that rank; cross: median; "
            f"line: {100 * first.level:g} % interval. Lines at the right join methods that cannot "
            f"be separated by {apart}."
        )
        letters = int(figure.get_size_inches()[0] * 72 / (0.58 * font_size()))
        lines = [f"Rank by {heading(shown)}", *textwrap.wrap(caption, letters)]
        figure.supxlabel("\n".join(lines), fontsize=font_size(), parse_math=False)
        signed[figure] = caption
        return save(figure, path)


def _draw_ranks(
    ax: Axes, compared: Comparison | MethodComparison, score: str, squeezed: float
) -> None:
    """Draw the ranks of one comparison; `squeezed` is the height of its rows in usual heights."""
    ranks, spans = compared.ranks[score], joined(compared, score)
    n = len(ranks.names)
    width = figure_width() * 72 * 0.7 / (n + 0.4 * len(spans))
    largest = (0.9 * min(_ROW * squeezed * font_size(), width)) ** 2
    for k, shares in enumerate(ranks.shares):
        kept = [(rank, share) for rank, share in enumerate(shares, 1) if share]
        x, areas = zip(*kept, strict=True)
        blobs: Any = {"color": PALETTE[0], "alpha": 0.35, "linewidths": 0}
        ax.scatter(x, [k] * len(x), [largest * share for share in areas], **blobs)
        ax.plot([ranks.low[k], ranks.high[k]], [k, k], color="black", linewidth=1)
        ax.plot([ranks.median[k]], [k], "x", color="black", markersize=0.6 * font_size())
    for place, (above, below) in enumerate(spans):
        right = n + 0.7 + 0.4 * place
        ax.plot([right, right], [above - 0.25, below + 0.25], color="black", linewidth=2)
    values = {i.run: i.value for i in compared.intervals if i.score == score}
    letters = int(_LABELS * figure_width() * 72 / (0.58 * font_size()))
    labels = [
        textwrap.fill(f"{rank}  {name} {short(values[name])}", letters)
        for rank, name in zip(ranks.rank, ranks.names, strict=True)
    ]
    most_lines = 1 + max(label.count("\n") for label in labels)
    size = font_size() * min(1, 2 * squeezed / most_lines)
    ax.set_yticks(range(n), labels, parse_math=False, fontsize=size)
    ax.set_xticks(range(1, n + 1, 1 + (n > 9)))
    ax.set(xlim=(0.4, n + 0.6 + 0.4 * len(spans)), ylim=(n - 0.4, -0.6))
