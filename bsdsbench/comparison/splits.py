"""Score the splits or folds of a data set, each a run with its own images.

Papers with random splits (Multicue, cross-validation) report the mean over the splits. The pooled
score sums the counts of all images. The two scores differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bsdsbench.comparison.comparison_tables import score_field
from bsdsbench.comparison.method import ScoresOfRuns, Spread
from bsdsbench.errors import DataError
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.provenance import Provenance
from bsdsbench.results.score_names import flat_scores, usual_scores
from bsdsbench.tables.table import Cell, Field, Table
from bsdsbench.text import counted


class Splits(NamedTuple):
    """Runs of the splits of a data set, each with its own images."""

    table: Table  # a row of means over the splits with their spread, and a row of pooled scores
    pooled: Evaluation  # one run of the images of all splits, whose ids are SPLIT/ID


def _counted(run: Evaluation) -> dict[str, set[str]]:
    """Return the names of the counts of each metric; tolerances and error classes add names."""
    return {metric: {*counts} for metric, counts in run.records[0].counts.items()}


def splits(runs: Sequence[Evaluation], name: str = "") -> Splits:
    """Return the mean of the splits' scores and the pooled score.

    An image may be in several splits. `name` is by default the name of the first run. Raises
    DataError if there are no runs, or if protocols, metrics or kinds of counts differ.
    """
    if not runs:
        raise DataError("no runs given, expected one of each split")
    if lacking := [run.name for run in runs if not run.records]:
        raise DataError(f"{', '.join(lacking)}: no counts per image")
    first, labels = runs[0], [run.name for run in as_runs(runs)]
    records = []
    for run, label in zip(runs, labels, strict=True):
        for difference in comparability(first, run):
            if difference.of_protocol and difference.severity is Severity.FORBIDS:
                raise DataError(f"{first.name}, {label}: {difference.fault()}")
        if _counted(run) != _counted(first):
            raise DataError(f"{first.name}, {label}: other counts, expected the same of all splits")
        records += [replace(r, image_id=f"{label}/{r.image_id}") for r in run.records]
    origin = Provenance(pred_kind=first.provenance.pred_kind)
    pooled = Evaluation(first.protocol, name or first.name, records, origin)
    flat = [flat_scores(run) for run in (*runs, pooled)]
    shown = usual_scores(first, [score for score in flat[0] if all(score in run for run in flat)])
    means: list[Cell] = [f"mean over {counted(len(runs), 'split')}"]
    whole: list[Cell] = [f"pooled, {counted(len(records), 'image')}"]
    for score in shown:
        values = ScoresOfRuns(tuple(run[score] for run in flat[:-1]))
        means.append(values.cell(Spread.SD))
        whole.append(flat[-1][score])
    fields = [replace(score_field(score), higher_is_better=None) for score in shown]
    words = Spread.SD.note.replace("runs", "splits")
    table = Table(
        "splits",
        f"{pooled.name}: scores over splits",
        [Field("scores", "Scores"), *fields],
        [means, whole],
        caption=f"protocol {first.described}",
        reading=pooled.read_as,
        notes=[f"{words} Pooled: the counts of all images are summed."],
    )
    return Splits(table, pooled)
