"""The comparison of runs in a report: a verdict in sentences, and intervals in tables of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.tables.table import Estimate, Note, Table

_MAX_COMPARED = 4  # how many runs the verdict compares with the best run


def verdict_lines(comparison: Comparison) -> list[str]:
    """Say in sentences which run is best, by the first score that the comparison shows.

    The first line names the best run. The next _MAX_COMPARED runs are compared with it in a line
    each, and a last line counts those that remain. Runs whose score is undefined are left out; if
    there are no others, there are no lines.
    """
    score = comparison.scores_shown[0]
    metrics = {name.partition(".")[0] for name in comparison.scores}
    title = heading(score, score if len(metrics) == 1 else "")  # names the metric among several
    ranked = [i for i in comparison.intervals if i.score == score and not np.isnan(i.value)]
    ranked.sort(key=lambda interval: interval.value, reverse=not lower_is_better(score))
    if not ranked:
        return []
    best, *worse = ranked
    best_text = f"{title} {best.value:.3f}"
    if not np.isnan(best.low):
        best_text += f" ({comparison.percent} interval {best.low:.3f} to {best.high:.3f})"
    if not worse:
        return [f"{best.run}: {best_text}."]
    lines = [f"{best.run} is best: {best_text}."]
    lines += [_difference_line(comparison, best.run, i.run, score) for i in worse[:_MAX_COMPARED]]
    if len(worse) > _MAX_COMPARED:
        lines.append(f"{len(worse) - _MAX_COMPARED} more are lower.")
    return lines


def _difference_line(comparison: Comparison, best: str, other: str, score: str) -> str:
    """Say in a sentence how much better the run `best` is than the run `other`.

    The difference is positive even if lower scores are better: -0.02 with an interval from -0.03 to
    0.01 becomes 0.02 with an interval from -0.01 to 0.03.
    """
    difference = comparison.difference_of(best, other, score)
    if np.isnan(difference.p_holm):
        basis = "no p-value"
        conclusion = "it is unknown whether this is real"
    else:
        low, high = sorted((abs(difference.low), abs(difference.high)))
        if (difference.low < 0) != (difference.high < 0):  # 0 is inside the interval
            low = -low
        p = "p < 0.001" if difference.p_holm < 0.001 else f"p = {difference.p_holm:.3f}"
        interval = f"{comparison.percent} interval {low:.3f} to {high:.3f}"
        basis = f"{interval}, {p} after Holm's correction"
        is_real = difference.significant(comparison.level)
        conclusion = "this is real" if is_real else "this may be due to chance"
    return f"{abs(difference.value):.3f} better than {other} ({basis}): {conclusion}."


def add_interval_notes(tables: Sequence[Table], compared: dict[str, Table]) -> None:
    """Add the notes of a comparison to the tables of scores that show its intervals, in place.

    tables : tables of scores, with the key METRIC or, if their rows are parts such as classes,
        METRIC-parts
    compared : the tables of the comparison by key. The notes of METRIC-parts go to the table of
        scores with this key; those of "scores", with its caption, to the last table with intervals.
        A table whose notes have been added is removed from this dict
    """
    last_with_intervals = None
    for table in tables:
        if table.key in compared:
            _add_notes(table, compared.pop(table.key).notes)
        elif any(isinstance(c, Estimate) and c.low is not None for row in table.rows for c in row):
            last_with_intervals = table
    if last_with_intervals is not None and "scores" in compared:
        overall = compared.pop("scores")
        _add_notes(last_with_intervals, [f"{overall.sentence}.", *overall.notes])


def _add_notes(table: Table, notes: Sequence[str | Note]) -> None:
    """Add the notes on the whole table to `table`, in place and without repeats.

    Notes on single columns are not added, because the table of scores has these notes already.
    """
    added = [note for note in notes if isinstance(note, str)]
    table.notes = list(dict.fromkeys([*table.notes, *added]))
