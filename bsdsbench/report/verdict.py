"""The comparison of runs in a report: a verdict in sentences, and notes for the score tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.tables.table import Estimate, Note, Table

_MAX_COMPARED = 4  # how many runs the verdict compares with the best run


def verdict_lines(comparison: Comparison) -> list[str]:
    """Return sentences that say which run is best by the first score shown in the comparison.

    The first line names the best run. The next _MAX_COMPARED runs are compared with the best run,
    one line each, and a last line gives the number of the remaining runs. Runs with an undefined
    score are left out; if all are undefined, the list is empty.
    """
    score = comparison.scores_shown[0]
    metrics = {name.partition(".")[0] for name in comparison.scores}
    title = heading(score, in_title=len(metrics) == 1)  # names the metric if there are several
    # One interval per run: its value of the score, and the limits `low` and `high`
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
        lines.append(f"{len(worse) - _MAX_COMPARED} more are worse.")
    return lines


def _difference_line(comparison: Comparison, best: str, other: str, score: str) -> str:
    """Return a sentence that says how much better the run `best` is than the run `other`.

    The difference is given as positive even if lower scores are better: -0.02 with the interval
    [-0.03, 0.01] becomes 0.02 with the interval [-0.01, 0.03].
    """
    difference = comparison.difference_of(best, other, score)
    if np.isnan(difference.p_holm):  # the p-value after Holm's correction
        basis = "no p-value"
        conclusion = "it is unknown whether this is real"
    else:
        low, high = sorted((abs(difference.low), abs(difference.high)))
        if (difference.low < 0) != (difference.high < 0):  # 0 is inside the interval
            low = -low
        p = "p < 0.001" if difference.p_holm < 0.001 else f"p = {difference.p_holm:.3f}"
        interval = f"{comparison.percent} interval {low:.3f} to {high:.3f}, "
        if np.isnan(low):  # a single image has no interval
            interval = ""
        basis = f"{interval}{p} after Holm's correction"
        is_real = difference.significant(comparison.level)
        conclusion = "this is real" if is_real else "this may be due to chance"
    return f"{abs(difference.value):.3f} better than {other} ({basis}): {conclusion}."


def add_interval_notes(tables: Sequence[Table], compared: dict[str, Table]) -> None:
    """Move the notes on intervals from comparison tables to the score tables of a report, in place.

    The score tables have one metric each, and show the intervals too. So a comparison table whose
    notes were moved is removed from `compared` (tables by key), which has:

    - "scores", the overall scores of all metrics. Its notes hold for several score tables, and are
      printed once, under the last of them. So is its `sentence`, "Scores with 95 % intervals from
      10,000 bootstrap samples of 200 images".
    - METRIC-parts, the scores of parts such as classes. There is a score table with the same key.
    """
    added: list[tuple[Table, Sequence[str | Note]]] = []
    last_with_intervals = None
    for table in tables:
        if table.key in compared:  # METRIC-parts
            added.append((table, compared.pop(table.key).notes))
            continue
        estimates = [cell for row in table.rows for cell in row if isinstance(cell, Estimate)]
        if any(estimate.low is not None for estimate in estimates):
            last_with_intervals = table
    if last_with_intervals is not None and "scores" in compared:
        overall = compared.pop("scores")
        added.append((last_with_intervals, [f"{overall.sentence}.", *overall.notes]))
    for table, notes in added:
        # A `Note` is about single columns (curves that start late) or lists left-out images. The
        # table is of the same runs, and has these already
        texts = [note for note in notes if isinstance(note, str)]
        table.notes = list(dict.fromkeys([*table.notes, *texts]))
