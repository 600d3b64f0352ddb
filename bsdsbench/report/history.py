"""Scores over runs in their order, such as the versions of a detector: a table and a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench.comparison.comparison_tables import heading, score_field
from bsdsbench.comparison.method import matching_folders
from bsdsbench.errors import refuse_unless_forced
from bsdsbench.loaders.pairing import natural
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, flat_scores, usual_scores
from bsdsbench.results.score_tables import METHOD, made_how
from bsdsbench.tables.table import Cell, Field, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def history_of(
    folders: Sequence[str], names: Sequence[str] | None = None, force: bool = False
) -> list[Evaluation]:
    """Return runs in the order of their dates, by the names of their folders.

    Where a date is not known the order is the natural one of the folders: v2 before v10.

    Parameters
    ----------
    folders : sequence of str
        Folders, or patterns of them ("out/v*"), and whatever else stands for a run.
    names : sequence of str, optional
        In the order of the folders.
    force : bool
        Return them also where they are not comparable.

    Raises
    ------
    DataError
        For a pattern that no folder fits, and runs that are not comparable.
    """
    places = sorted(matching_folders(folders, "--history"), key=natural)
    last_parts = [os.path.basename(os.path.normpath(place)) for place in places]
    if names is None and len({*last_parts}) == len(places):
        names = last_parts
    runs = as_runs(places, names)
    refuse_unless_forced(forbidden(runs), force, "such scores have no history", "shows them")
    dates = [run.provenance.date or "" for run in runs]
    order = sorted(range(len(runs)), key=lambda k: dates[k] if all(dates) else "")
    return [runs[k] for k in order]


def history_table(runs: Sequence[Evaluation], columns: Sequence[str] | None = None) -> Table:
    """Return a row for each run, in their order.

    `columns` are the scores to show, "ods" or "all"; default: the usual ones. Raises DataError.
    """
    shown, values = _shown(runs, columns), [flat_scores(run) for run in runs]
    rows: list[list[Cell]] = []
    for run, scores in zip(runs, values, strict=True):
        day = (run.provenance.date or "")[:10] or None
        rows.append([run.name, day, *(scores.get(score) for score in shown)])
    fields = [METHOD, Field("date", "Date"), *map(score_field, shown)]
    return Table("history", "Scores over runs", fields, rows, **made_how(runs))


def plot_history(
    runs: Sequence[Evaluation],
    columns: Sequence[str] | None = None,
    *,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw scores over runs, in their order.

    Parameters
    ----------
    runs : sequence of Evaluation
        As `history_of` returns them.
    columns : sequence of str, optional
        The scores; default: the first of the usual ones.
    look, path : optional
        See `bsdsbench.plotting.style.draw_figure`.

    Raises
    ------
    DataError
        For a score that no run has.
    """
    from bsdsbench.plotting.style import draw_figure, font_size, legend, next_style

    shown = _shown(runs, columns)[: None if columns else 1]
    values = [flat_scores(run) for run in runs]

    def draw(ax: Axes) -> None:
        for score in shown:
            line = [scores.get(score, float("nan")) for scores in values]
            marked: Any = {
                "marker": "o",
                "markersize": 4,
                "label": heading(score),
                **next_style(ax),
            }
            ax.plot(range(len(runs)), line, **marked)
        days = [f"{run.name}\n{(run.provenance.date or '')[:10]}".strip() for run in runs]
        letters = ax.figure.figure.get_size_inches()[0] * 72 / (0.8 * font_size())
        wide = sum(2 + max(map(len, day.split("\n"))) for day in days) > letters
        turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if wide else {}
        ax.set_xticks(range(len(runs)), days, parse_math=False, **turned)
        if len(shown) > 1:
            legend(ax, ax.lines)
        else:
            ax.set_ylabel(heading(shown[0]), parse_math=False)

    note = "\n".join(f"{run.name}: {run.signature_line}" for run in runs if run.signature_line)
    return draw_figure(draw, path, look, note=note)


def history_page(runs: Sequence[Evaluation], columns: Sequence[str] | None = None) -> str:
    """Return a page of HTML with the picture and the table. Raises DataError."""
    from bsdsbench.plotting.style import drawn_bytes
    from bsdsbench.tables.forms import html_page

    svg = drawn_bytes(plot_history(runs, columns), "svg").decode()
    return html_page([history_table(runs, columns)], svg[svg.index("<svg") :])


def _shown(runs: Sequence[Evaluation], columns: Sequence[str] | None) -> Sequence[str]:
    """Return METRIC.SCORE of the scores to show. Raises DataError for one that no run has."""
    known = list(dict.fromkeys(score for run in runs for score in flat_scores(run)))
    return chosen_scores(columns, known) if columns else usual_scores(runs[-1], known)
