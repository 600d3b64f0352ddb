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
    """The scores of the splits of a data set together."""

    table: Table  # a row of means over the splits with their spread, and a row of pooled scores
    pooled: Evaluation  # one run of the images of all splits, whose ids are SPLIT/ID


def splits(runs: Sequence[Evaluation], name: str = "") -> Splits:
    """Return the mean of the splits' scores, and the pooled score of all their images.

    runs : a run for each split
    name : the name of the pooled run; default: the name of the first run

    An image may be in several splits; it then counts once for each. The table has the usual scores
    that all splits and the pooled run have. Raises DataError if there are no runs, if a run has no
    counts per image, or if protocols, metrics or kinds of counts differ.
    """
    if not runs:
        raise DataError("no runs given, expected one of each split")
    if lacking := [run.name for run in runs if not run.records]:
        raise DataError(f"{', '.join(lacking)}: no counts per image")
    first = runs[0]
    labels = [run.name for run in as_runs(runs)]
    # metric -> names of its counts for each run; tolerances and error classes add names
    names_of_counts = [{m: {*counts} for m, counts in r.records[0].counts.items()} for r in runs]
    records = []
    for run, label, names in zip(runs, labels, names_of_counts, strict=True):
        for difference in comparability(first, run):
            if difference.of_protocol and difference.severity is Severity.FORBIDS:
                raise DataError(f"{first.name}, {label}: {difference.fault()}")
        if names != names_of_counts[0]:
            raise DataError(f"{first.name}, {label}: other counts, expected the same of all splits")
        records += [replace(r, image_id=f"{label}/{r.image_id}") for r in run.records]
    origin = Provenance(pred_kind=first.provenance.pred_kind)
    pooled = Evaluation(first.protocol, name or first.name, records, origin)
    scores_of_splits = [flat_scores(run) for run in runs]
    pooled_scores = flat_scores(pooled)
    shared = [s for s in scores_of_splits[0] if all(s in scores for scores in scores_of_splits)]
    shown = [score for score in usual_scores(first, shared) if score in pooled_scores]
    means: list[Cell] = [f"mean over {counted(len(runs), 'split')}"]
    for score in shown:
        values = ScoresOfRuns(tuple(scores[score] for scores in scores_of_splits))
        means.append(values.cell(Spread.SD))
    n_images = counted(len(records), "image")
    pooled_row: list[Cell] = [f"pooled, {n_images}", *(pooled_scores[score] for score in shown)]
    fields = [replace(score_field(score), higher_is_better=None) for score in shown]
    note = Spread.SD.note.replace("runs", "splits")
    table = Table(
        "splits",
        f"{pooled.name}: scores over splits",
        [Field("scores", "Scores"), *fields],
        [means, pooled_row],
        caption=f"protocol {first.described}",
        reading=pooled.read_as,
        notes=[f"{note} Pooled: the counts of all images are summed."],
    )
    return Splits(table, pooled)
