"""Break down the loss of ODS by class of missed and false pixels, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import isnan
from multiprocessing.pool import ThreadPool
from typing import Any

from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.error_classes import boundary_errors
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.score_tables import METHOD, metric_with_errors, table_footer
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import check_same_counts, find_sources
from bsdsbench.scores.counts import ImageRecord, checked_counts
from bsdsbench.scores.error_scores import AGREEMENT, FALSE, MISSED
from bsdsbench.tables.table import Cell, Estimate, Field, Table

# Side (missed or false pixels, or all annotated ones) -> class as named in tables -> in scores
ERROR_CLASSES = {
    "missed": dict(zip(("suppressed", "near", "absent"), MISSED, strict=True)),
    "false": dict(zip(("duplicate", "near", "background"), FALSE, strict=True)),
    # All ground-truth pixels, in classes by the number of annotators that drew them
    "agreement": dict(zip(AGREEMENT, AGREEMENT, strict=True)),
}


def with_errors(
    run: Evaluation, workers: int | None = None, progress: Progress | None = None
) -> Evaluation:
    """Return the run with its missed and false pixels counted by error class.

    If the counts are missing, the maps of all images are read and matched again, by default with
    one thread per core. `progress` is called with (images done, number of images, image id). Raises
    DataError if the run was made from counts and has no maps, if none of its metrics matches
    pixels, or if the files have changed since the run.
    """
    if metric_with_errors(run) is not None:
        return run
    if run.by_official_solver:  # read from the counts of the official program, which has no classes
        raise DataError(f"{run.name}: has counts and no maps, expected a run of maps for errors")
    first_counts = run.records[0].counts  # by metric. Those of depth without edges have no matches
    matching = [registry.get(name) for name in run.metrics if "matches" in first_counts[name]]
    with_error_classes = [metric for metric in matching if metric.has_errors]
    if not with_error_classes:
        raise DataError(f"{run.name}: {', '.join(run.metrics)} matches no pixels")
    metric = with_error_classes[0]
    sources = find_sources(run, metric=metric.name)  # the files of predictions and ground truth

    def count_again(record: ImageRecord) -> ImageRecord:
        """Count an image again, and return its record with the counts of error classes."""
        pred, gt = sources.load(record.image_id, run.protocol)
        # `boundary_errors` counts as the metric does, and adds the arrays of error classes
        counts = checked_counts(metric.count_image(pred, gt, run.protocol, boundary_errors))
        # The record has only these, which differ if its files have changed: DataError
        recounted = {name: counts[name] for name in ("thresholds", "matches")}
        check_same_counts(run, record.image_id, record.counts[metric.name], recounted)
        return replace(record, counts={**record.counts, metric.name: counts})

    records = []
    with ThreadPool(workers or available_cores()) as pool:
        for n_done, record in enumerate(pool.imap(count_again, run.records), 1):
            records.append(record)
            if progress:
                progress(n_done, len(run.records), record.image_id)
    return replace(run, records=records)


def lost_scores(run: Evaluation, n_boot: int = N_BOOT, seed: int = SEED) -> dict[str, Any]:
    """Compute the share of each error class of a run, with bootstrap intervals.

    Returns a dict with these keys:

    - "name", "metric": the names of the run and of the metric
    - "ods", "threshold": the ODS and its threshold, if the metric has an ODS
    - "missed", "false": for each class of missed (or false) pixels, its share of all missed (or
      false) pixels at the ODS threshold
    - "agreement": the share of matched pixels among the ground-truth pixels that one, some or all
      annotators drew

    Each of the last three is a dict from class name to {"share", "low", "high", "delta_ods"}: the
    share, the ends of its interval, and the rise of ODS if only this class were repaired. Undefined
    numbers are None. Raises DataError if the error classes were not counted, see `with_errors`.
    """
    metric_with_counts = metric_with_errors(run)
    if metric_with_counts is None:
        raise DataError(f"{run.name}: classes of errors were not counted, expected errors=True")
    metric = metric_with_counts.name
    comparison = compare([run], n_boot=n_boot, seed=seed)
    lost: dict[str, Any] = {"name": run.name, "metric": metric}
    if "ods" in run.score(metric):
        ods = run.score(metric).ods
        lost |= {"ods": ods.f, "threshold": ods.threshold}
    for side, key_of_class in ERROR_CLASSES.items():
        share_score = "agreement" if side == "agreement" else "error_share"
        lost[side] = {}
        for error_class, key in key_of_class.items():
            # Such as "boundary.error_share.absent" and "boundary.delta_ods.absent"
            share = comparison.interval_of(run.name, f"{metric}.{share_score}.{key}")
            rise = comparison.interval_of(run.name, f"{metric}.delta_ods.{key}")
            numbers = {"share": share.value, "low": share.low, "high": share.high}
            numbers["delta_ods"] = rise.value
            lost[side][error_class] = {k: None if isnan(v) else v for k, v in numbers.items()}
    return lost


def error_table(runs: Sequence[Evaluation], losses: Sequence[dict[str, Any]]) -> Table:
    """Return a table of error classes, with one row per run and class.

    A row has the class's share of all missed (or false) pixels, and the rise of ODS if only the
    errors of this class were repaired. For a class of "agreement" (pixels that one, some or all
    annotators drew), the share is that of its pixels that are matched. `losses` has the dict of
    `lost_scores` for each run: "missed", "false" and "agreement" -> class -> its numbers.
    """
    rows: list[list[Cell]] = []
    for lost, side in product(losses, ERROR_CLASSES):
        for name, numbers in lost[side].items():
            share = Estimate(numbers["share"], numbers["low"], numbers["high"])
            rows.append([lost["name"], side, name, share, numbers["delta_ods"]])
    notes = [
        "share: the fraction of all missed, or of all false, pixels at the ODS threshold. For "
        "agreement: the matched fraction of the pixels that one, some or all annotators drew.",
        "dODS: how much ODS would rise if only this class were repaired.",
    ]
    fields = [
        METHOD,
        Field("side", "Side"),
        Field("class", "Class"),
        Field("share", "share [95 % interval]", "share", ".3f"),
        Field("delta_ods", "dODS", "", "+.4f"),
    ]
    footer = table_footer(runs, notes)
    return Table("errors", "Where ODS is lost", fields, rows, n_labels=3, **footer)
