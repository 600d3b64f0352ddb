"""Show scores over a sequence of runs, such as versions of a detector, as table and plot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench.comparison.comparison_tables import heading, score_field
from bsdsbench.comparison.method import matching_folders
from bsdsbench.errors import DataError, refuse_unless_forced
from bsdsbench.loaders.formats.pictures import natural_sort_key
from bsdsbench.plotting import style
from bsdsbench.results.comparability import EQUAL_COUNTS, forbidden
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, default_scores, flat_scores
from bsdsbench.results.score_tables import METHOD, table_footer
from bsdsbench.tables.table import Cell, Field, Table
from bsdsbench.text import join_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history_of(
    folders: Sequence[str], names: Sequence[str] | None = None, force: bool = False
) -> list[Evaluation]:
    """Load runs and sort them by date.

    If the date of any run is unknown, all runs are sorted by folder in natural order: v2 before
    v10.

    Parameters
    ----------
    folders : sequence of str
        Run folders, wildcard patterns ("out/v*"), or names of stored runs such as "ref:hed".
    names : sequence of str, optional
        One name per run, in the natural order of the folders. Default: the folder names if they
        all differ; otherwise the names stored in the runs.
    force : bool
        Return the runs even if they are not comparable.

    Raises
    ------
    DataError
        If a pattern matches no folder, or the runs are not comparable.
    """
    paths = sorted(matching_folders(folders, "--history"), key=natural_sort_key)
    folder_names = [os.path.basename(os.path.normpath(path)) for path in paths]
    if names is None and len({*folder_names}) == len(paths):
        names = folder_names
    runs = as_runs(paths, names)
    faults = forbidden(runs)  # differences that make scores incomparable
    refuse_unless_forced(faults, force, "such scores have no history", "shows them")
    if all(run.provenance.date for run in runs):
        return sorted(runs, key=lambda run: str(run.provenance.date))
    return runs


def history_table(runs: Sequence[Evaluation], columns: Sequence[str] | None = None) -> Table:
    """Build a table with one row per run: its name, date and scores.

    The rows keep the order of `runs`. A cell is empty if the run lacks the score or has no date.

    Parameters
    ----------
    runs : sequence of Evaluation
        Runs, oldest first, as returned by `history_of`.
    columns : sequence of str, optional
        The scores to show, such as ["ods", "ap"], or ["all"] for every score. Default: the scores
        shown in the last run's own table.

    Raises
    ------
    DataError
        If `columns` names a score that no run has.
    """
    names = _chosen_scores(runs, columns)
    rows: list[list[Cell]] = []
    for run in runs:
        scores = flat_scores(run)
        day = (run.provenance.date or "")[:10] or None
        rows.append([run.name, day, *(scores.get(name) for name in names)])
    fields = [METHOD, Field("date", "Date"), *map(score_field, names)]
    footer = table_footer(runs)
    # Between some versions of a method nothing changes, which is no mistake
    footer["notes"] = [note for note in footer["notes"] if not str(note).endswith(EQUAL_COUNTS)]
    return Table("history", "Scores over runs", fields, rows, **footer)


def plot_history(
    runs: Sequence[Evaluation],
    columns: Sequence[str] | None = None,
    *,
    look: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot scores over a sequence of runs: one line per score, runs from left to right.

    Parameters
    ----------
    runs : sequence of Evaluation
        Runs, oldest first, as returned by `history_of`.
    columns : sequence of str, optional
        The scores to draw. Default: the first score shown in the last run's own table.
    look : str, optional
        "screen", "column" or "page" (sizes for a paper), or "slide"; see `plotting.style.style`.
    path : path, optional
        Also write the figure to this .pdf, .svg or .png file.

    Raises
    ------
    DataError
        If there is no score to draw, or if the suffix of `path` is unknown.
    """
    all_names = _chosen_scores(runs, columns)
    names = all_names[:1] if columns is None else all_names
    if not names:
        run_names = join_names([run.name for run in runs])
        raise DataError(f"{run_names}: every score is undefined, expected one to draw")
    scores_of_runs = [flat_scores(run) for run in runs]
    with style.style(look, path is not None):
        ax = style.new_axes(height=3.4, ratio=1.35)  # inches, width / height
        for name in names:
            values = [scores.get(name, float("nan")) for scores in scores_of_runs]
            # The next colour and line style that these axes do not have
            line: Any = {"marker": "o", "markersize": 4, **style.next_style(ax)}
            ax.plot(range(len(runs)), values, label=heading(name), **line)
        figure = ax.figure.figure  # also if `ax` were in a subfigure
        # Under each point the run and its day, of a date such as "2026-11-30T22:01:30"
        labels = [f"{run.name}\n{(run.provenance.date or '')[:10]}".strip() for run in runs]
        slanted: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(runs)), labels, parse_math=False, **slanted)
        if len(names) > 1:
            style.legend(ax, ax.lines)
        else:
            ax.set_ylabel(heading(names[0]), parse_math=False)
        signatures = [f"{run.name}: {run.signature_line}" for run in runs if run.signature_line]
        style.figure_notes[figure] = "\n".join(signatures)  # `save` puts them into the metadata
        return style.save(figure, path)


def _chosen_scores(runs: Sequence[Evaluation], columns: Sequence[str] | None) -> Sequence[str]:
    """Return the full names, such as "boundary.ods", of the scores to show.

    `columns` lists scores by key or heading. If it is empty or None, return the scores shown in
    the last run's own table. Raises DataError if no run has a listed score.
    """
    known = list(dict.fromkeys(score for run in runs for score in flat_scores(run)))
    return chosen_scores(columns, known) if columns else default_scores(runs[-1], known)
