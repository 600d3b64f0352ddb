"""Show where the ODS of runs is lost: classes of missed and false pixels, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any

from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.slices import slices_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.error_classes import boundary_errors
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.footers import table_footer
from bsdsbench.results.score_tables import METHOD
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import Sources, check_same_counts, find_sources
from bsdsbench.scores.counts import ImageRecord, checked_counts
from bsdsbench.scores.error_scores import AGREEMENT, COUNTED, FALSE, MISSED
from bsdsbench.tables.table import Estimate, Field, Table

_CLASS_FIELDS = (
    Field("side", "Side"),
    Field("class", "Class"),
    Field("share", "share [95 % interval]", "share", ".3f"),
    Field("delta_ods", "dODS", "", "+.4f"),
)
# Of each side: the group of scores that its share is from, and its classes by their names there
ERROR_SIDES = {
    "missed": ("error_share", dict(zip(("suppressed", "near", "absent"), MISSED, strict=True))),
    "false": ("error_share", dict(zip(("duplicate", "near", "background"), FALSE, strict=True))),
    "agreement": ("agreement", dict(zip(AGREEMENT, AGREEMENT, strict=True))),
}


def metric_with_errors(run: Evaluation) -> Metric | None:
    """Return the first metric of a run that counted its errors by class, or None."""
    counts = run.records[0].counts if run.records else {}
    return next((registry.get(m) for m in run.metrics if COUNTED in counts.get(m, ())), None)


def with_errors(
    run: Evaluation, workers: int | None = None, progress: Progress | None = None
) -> Evaluation:
    """Return the run with every false and missed pixel assigned an error class.

    Images are counted again from the files if the run does not store the classes. Raises DataError
    if the run has no maps, no metric matches pixels, or the files have changed since.
    """
    if metric_with_errors(run) is not None:
        return run
    if run.by_official_solver:
        raise DataError(f"{run.name}: has counts and no maps, expected a run of maps for errors")
    metric = next((m for m in map(registry.get, run.metrics) if m.has_errors), None)
    if metric is None:
        raise DataError(f"{run.name}: {', '.join(run.metrics)} matches no pixels")
    sources, records = find_sources(run, metric=metric.name), []
    count = partial(_record_with_errors, run, metric, sources)
    with ThreadPool(workers or available_cores()) as pool:
        for done, record in enumerate(pool.imap(count, run.records), 1):
            records.append(record)
            if progress:
                progress(done, len(run.records), record.image_id)
    return replace(run, records=records)


def _record_with_errors(
    run: Evaluation, metric: Metric, sources: Sources, record: ImageRecord
) -> ImageRecord:
    """Count an image again with error classes. Raises DataError if other counts have changed."""
    pred, gt = sources.load(record.image_id, run.protocol)
    counts = checked_counts(metric.count_image(pred, gt, run.protocol, boundary_errors))
    matches = {name: counts[name] for name in ("thresholds", "matches")}
    check_same_counts(run, record.image_id, record.counts[metric.name], matches)
    return replace(record, counts={**record.counts, metric.name: counts})


def lost_scores(run: Evaluation, n_boot: int = N_BOOT, seed: int = SEED) -> dict[str, Any]:
    """Return the error classes of a run as plain values: side -> class -> share, low, high,
    delta_ods.

    `share` is a share of the missed or the false pixels at the ODS threshold. On the side
    "agreement" it is the share of matched pixels among those that one, some or all annotators drew.
    `delta_ods` is the rise of ODS if the class is repaired. Raises DataError if the classes were
    not counted.
    """
    metric = metric_with_errors(run)
    if metric is None:
        raise DataError(f"{run.name}: classes of errors were not counted, expected errors=True")
    comparison = compare([run], n_boot=n_boot, seed=seed)
    values: dict[str, Any] = {"name": run.name, "metric": metric.name}
    if "ods" in run.score(metric.name):
        ods = run.score(metric.name).ods
        values |= {"ods": ods.f, "threshold": ods.threshold}
    for side, (group, names) in ERROR_SIDES.items():
        values[side] = {}
        for shown, name in names.items():
            share = comparison.interval_of(run.name, f"{metric.name}.{group}.{name}")
            delta = comparison.interval_of(run.name, f"{metric.name}.delta_ods.{name}").value
            numbers = {"share": share.value, "low": share.low, "high": share.high}
            numbers |= {"delta_ods": delta}
            values[side][shown] = {k: None if v != v else v for k, v in numbers.items()}
    return values


def error_slices_table(runs: Sequence[Evaluation], by: str) -> Table:
    """Return a table with a row for each run, slice and error class, with jackknife intervals.

    Raises DataError if the classes were not counted, or under the conditions of `slices_of`.
    """
    rows: list[list[Any]] = []
    for run in runs:
        metric = metric_with_errors(run)
        if metric is None:
            raise DataError(f"{run.name}: classes of errors were not counted, expected errors=True")
        slices = slices_of(run, by)
        for number, part in enumerate(slices.parts.names):
            for side, (group, names) in ERROR_SIDES.items():
                for shown, name in names.items():
                    share = slices.scores[f"{metric.name}.{group}.{name}"][number].score
                    delta = slices.scores[f"{metric.name}.delta_ods.{name}"][number].score
                    rows.append([run.name, part, side, shown, Estimate(*share), delta.value])
    column = by.partition("=")[0]
    fields = [METHOD, Field("slice", column), *_CLASS_FIELDS]
    title = f"Where ODS is lost, by {column}"
    return Table("errors-by", title, fields, rows, n_labels=4, **table_footer(runs))


def error_table(runs: Sequence[Evaluation], losses: Sequence[dict[str, Any]]) -> Table:
    """Return a table with a row for each run and error class. `losses` are from `lost_scores`."""
    rows: list[list[Any]] = []
    for lost in losses:
        for side in ERROR_SIDES:
            for name, numbers in lost[side].items():
                share = Estimate(numbers["share"], numbers["low"], numbers["high"])
                rows.append([lost["name"], side, name, share, numbers["delta_ods"]])
    notes = [
        "share: the fraction of all missed, or of all false, pixels at the ODS threshold. For "
        "agreement: the matched fraction of the pixels that one, some or all annotators drew.",
        "dODS: how much ODS would rise if only this class were repaired.",
    ]
    captions = table_footer(runs)
    captions["notes"] = [*notes, *captions["notes"]]
    fields = [METHOD, *_CLASS_FIELDS]
    return Table("errors", "Where ODS is lost", fields, rows, n_labels=3, **captions)
