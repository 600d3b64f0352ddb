"""Tables of methods without a comparison: means over runs, and scores over the splits of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

from bsdsbench.comparison.bootstrap import WeightedRun
from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.comparison_tables import score_field
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, all_runs
from bsdsbench.errors import DataError, InputWarning, warn
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability, equal_counts_notes
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, default_scores, flat_scores
from bsdsbench.results.score_tables import METHOD, ExtraRow, image_numbers, table_footer
from bsdsbench.results.storage import Provenance
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Field, Table
from bsdsbench.text import quantity, shared_names


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[ExtraRow] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of each method's mean scores over its runs, without comparing methods.

    columns : the scores to show, such as "ods", or "all". If None, the default scores are shown.
    extra, notes : additional rows (published results) and notes

    Raises DataError if a score is unknown, or if the runs of a method are not comparable.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))  # raises if its runs are not comparable
    runs = all_runs(methods)
    metrics = shared_names(run.metrics for run in runs)
    # The scores that all runs have, also undefined ones
    known = shared_names(WeightedRun(run, metrics).overall_scores() for run in runs)
    shown = chosen_scores(columns, known) if columns else default_scores(runs[0], known)
    rows: list[list[Cell]] = []
    for method in methods:
        of_runs = [flat_scores(run) for run in method.runs]
        cells: list[Cell] = [method.name]
        for score in shown:  # the mean is NaN if the score is undefined for a run
            values = tuple(scores_of_run.get(score, nan) for scores_of_run in of_runs)
            cells.append(ScoresOfRuns(values).cell(spread))
        rows.append(cells)
    for label, scores_by_metric, marks in extra:
        row: list[Cell] = [label]
        for score in shown:
            metric, _, key = score.partition(".")
            value = value_at(scores_by_metric.get(metric, {}), key)  # "region.pri.ods" is nested
            if value is None or key not in marks:  # None: it was not published
                row.append(value)
            else:  # not comparable with the others, and never the best of its column
                mark = f"[{marks[key]}]" if marks[key] else ""  # such as another rule for AP
                row.append(Estimate(value, mark=mark, comparable=False))
        rows.append(row)
    # Arguments of `Table`: caption, notes (the first is "Mean ± standard deviation ..."), ...
    footer: Any = table_footer(runs, [spread.note])
    footer["notes"] += notes
    footer["sentence"] = f"Scores on {image_numbers(runs)}: {spread.words}"  # caption in LaTeX
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **footer)


class Splits(NamedTuple):
    """The scores over all splits of a data set."""

    table: Table  # two rows: means over the splits with their spread, and pooled scores
    pooled: Evaluation  # one run with the images of all splits; their ids are SPLIT/ID


def splits(runs: Sequence[Evaluation], name: str = "") -> Splits:
    """Compute mean scores over the splits of a data set, and scores pooled over all images.

    Papers with random splits (Multicue, cross-validation) report the mean over the splits. Pooled
    scores are computed from the summed counts of all images; an image in several splits counts once
    for each. The table has the default scores that all splits have. `name` is the name of the
    pooled run, by default that of the first run.

    Raises DataError if there are no runs, if a run has no per-image counts, or if the runs differ
    in protocol, metrics or kinds of counts. An InputWarning says if all have the same images.
    """
    pooled = _pool(runs, name)
    if len(runs) > 1 and len({frozenset(run.image_ids) for run in runs}) == 1:
        has = f"the {len(runs)} runs have the same images: seeds or methods, not splits?"
        warn(InputWarning(has, fix="`compare --method NAME='out/seed*'` if they are"))
    scores_of_splits = [flat_scores(run) for run in runs]
    pooled_scores = flat_scores(pooled)
    # Of the scores that all splits have, those that tables show
    shown = default_scores(runs[0], shared_names([*scores_of_splits, pooled_scores]))
    means: list[Cell] = [f"mean over {quantity(len(runs), 'split')}"]
    for score in shown:
        values = ScoresOfRuns(tuple(scores[score] for scores in scores_of_splits))
        means.append(values.cell(Spread.SD))  # printed as "0.780 ± 0.004 (5)"
    n_images = quantity(len(pooled.records), "image")
    pooled_row: list[Cell] = [f"pooled, {n_images}", *(pooled_scores[score] for score in shown)]
    # Neither of the two rows is better than the other
    fields = [replace(score_field(score), higher_is_better=None) for score in shown]
    # "Mean ± standard deviation over splits (number of splits)." In the note, these are runs
    note = Spread.SD.note.replace("runs", "splits")
    note += " Pooled: the counts of all images are summed."
    table = Table(
        "splits",
        f"{pooled.name}: scores over splits",
        [Field("scores", "Scores"), *fields],
        [means, pooled_row],
        caption=f"protocol {runs[0].described}",
        reading=pooled.read_as,  # a line on how the files were interpreted
        notes=[note, *equal_counts_notes(runs)],
    )
    return Splits(table, pooled)


def _pool(runs: Sequence[Evaluation], name: str) -> Evaluation:
    """Merge the runs of all splits into one run, by default with the name of the first run.

    Its image ids are those of the runs, so that the pooled folds of two methods can be compared. If
    an id is in several runs, all become RUN/ID. Raises DataError as `splits` does.
    """
    if not runs:
        raise DataError("no runs given, expected one of each split")
    if lacking := [run.name for run in runs if not run.records]:
        raise DataError(f"{', '.join(lacking)}: no counts per image")
    first = runs[0]
    # Names of each metric's count arrays. Additional tolerances and error classes add arrays.
    expected = {metric: counts.keys() for metric, counts in first.records[0].counts.items()}
    ids = [image_id for run in runs for image_id in run.image_ids]
    are_distinct = len(set(ids)) == len(ids)
    records = []
    for run in runs:
        pair = f"{first.name}, {run.name}"
        # Differences of the images are expected, but not of a setting on which a score depends
        for difference in comparability(first, run):
            if difference.of_protocol and difference.severity is Severity.FORBIDS:
                raise DataError(f"{pair}: {difference.fault()}")  # "protocols differ in max_dist"
        names = {metric: counts.keys() for metric, counts in run.records[0].counts.items()}
        if names != expected:
            raise DataError(f"{pair}: other counts, expected the same of all splits")
        prefix = "" if are_distinct else f"{run.name}/"
        records += [replace(r, image_id=prefix + r.image_id) for r in run.records]
    # Of the provenance, only the kind of predictions holds for all splits: folders and dates differ
    origin = Provenance(pred_kind=first.provenance.pred_kind)
    return Evaluation(first.protocol, name or first.name, records, origin)
