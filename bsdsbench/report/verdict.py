"""The comparison of runs in a report: a verdict in sentences, and intervals in tables of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.scores.ratios import short
from bsdsbench.tables.table import Estimate, Note, Table

_MAX_COMPARED = 4  # how many runs the verdict compares with the best run


def verdict_lines(comparison: Comparison) -> list[str]:
    """Say in sentences which run is best, by the first score that the comparison shows.

    The next _MAX_COMPARED runs are compared with the best run, with a line for each. If there are
    more runs, a last line gives their number. Runs with an undefined score are left out.
    """
    score = comparison.scores_shown[0]
    has_one_metric = len({s.partition(".")[0] for s in comparison.scores}) == 1
    title = heading(score, score if has_one_metric else "")
    ranked = [i for i in comparison.intervals if i.score == score and not np.isnan(i.value)]
    ranked.sort(key=lambda i: i.value, reverse=not lower_is_better(score))
    if not ranked:
        return []
    best, *worse = ranked
    best_text = f"{title} {best.value:.3f}"
    if not np.isnan(best.low):
        best_text += f" ({comparison.percent} interval {best.low:.3f} to {best.high:.3f})"
    if not worse:
        return [f"{best.run}: {best_text}."]
    lines = [f"{best.run} is best: {best_text}."]
    for interval in worse[:_MAX_COMPARED]:
        lines.append(_difference_line(comparison, best.run, interval.run, score))
    if len(worse) > _MAX_COMPARED:
        lines.append(f"{len(worse) - _MAX_COMPARED} more are lower.")
    return lines


def _difference_line(comparison: Comparison, best: str, other: str, score: str) -> str:
    """Say in a sentence how much better the run `best` is than the run `other`.

    The difference is printed as a positive number even if lower scores are better. Its interval is
    printed from the end nearer to 0. This end is printed as a negative number if 0 lies in the
    interval.
    """
    d = comparison.difference_of(best, other, score)
    low, high = sorted((abs(d.low), abs(d.high)))
    contains_zero = (d.low < 0) != (d.high < 0)
    span = f"{-low if contains_zero else low:.3f} to {high:.3f}"
    p = "p < 0.001" if d.p_holm < 0.001 else f"p = {short(d.p_holm)}"
    basis = f"{comparison.percent} interval {span}, {p} after Holm's correction"
    if np.isnan(d.p_holm):
        basis = "no p-value"
        conclusion = "it is unknown whether this is real"
    elif d.significant(comparison.level):
        conclusion = "this is real"
    else:
        conclusion = "this may be due to chance"
    return f"{abs(d.value):.3f} better than {other} ({basis}): {conclusion}."


def add_interval_notes(tables: Sequence[Table], compared: dict[str, Table]) -> None:
    """Add the notes of a comparison to the tables of scores that show its intervals, in place.

    tables : tables of scores, with the key METRIC or METRIC-parts
    compared : the tables of the comparison by key. Those whose scores `tables` show are removed:
        "scores", whose notes go to the last table of overall scores with intervals, and those with
        the key METRIC-parts, whose notes go to the table with this key
    """
    last = None
    for table in tables:
        if table.key in compared:
            _add_notes(table, compared.pop(table.key).notes)
        elif any(isinstance(c, Estimate) and c.low is not None for row in table.rows for c in row):
            last = table
    if last is not None and "scores" in compared:
        overall = compared.pop("scores")
        _add_notes(last, [f"{overall.sentence}.", *overall.notes])


def _add_notes(table: Table, notes: Sequence[str | Note]) -> None:
    """Add those notes to a table that are about no column: a table of scores has the others."""
    added = [note for note in notes if isinstance(note, str)]
    table.notes = list(dict.fromkeys([*table.notes, *added]))
