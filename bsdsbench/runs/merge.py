"""Runs joined into one: shards, after all that must fit has been compared, and best of M.

Models with a granularity are run at M of them. Their programs (UAED, MuGE, SAUGE, DDN) take, for
each image and threshold, the run of the largest F there, of equal ones the first that is given; its
four counts are the image's row. ODS (interpolated) and OIS are then made of those rows as of any
others; AP of all rows, so by the rule edter where the row of threshold 0 is one of them. SAUGE's
loop over the curve also joins its first and last row: not done here, as it can only give an ODS of
about .5. The choice needs the ground truth, so such scores are not comparable with others, and the
name says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import attrs
import numpy as np

from bsdsbench.arguments import I8, given_list
from bsdsbench.errors import DataError, MergeError, warn
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.protocol.fields import clipped
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import changed_sources, comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_columns
from bsdsbench.results.storage import Provenance
from bsdsbench.scores.counts import (
    MATCHED_GT,
    MATCHED_PRED,
    OTHER_MATCHES,
    TOTAL_GT,
    TOTAL_PRED,
    MatchCounts,
)
from bsdsbench.scores.ratios import f_measure, ratio
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import listed

_COUNTS, _COLUMNS = "set of metrics or classes of errors", "columns of groups"
_SOURCES = "source of its plug-in metrics"
_MAY_LACK = (_COUNTS, _COLUMNS, _SOURCES)  # a run without records, one of an earlier version
_METRIC = registry.DEFAULT_METRICS[0]


def merge(runs: Sequence[Evaluation]) -> Evaluation:
    """Join the shards of one run; the result is bit for bit that of the undivided run.

    Parameters
    ----------
    runs : sequence of Evaluation
        The shards, each once.

    Returns
    -------
    Evaluation
        The undivided run.

    Raises
    ------
    MergeError
        If they are not all the parts of one whole.
    DataError
        If the files of all have no one reading, as the undivided run.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> gt = sample_ground_truth()
    >>> parts = [bb.evaluate(maps, gt, shard=(part, 2), workers=1) for part in (1, 2)]
    >>> len(parts[0].records), len(bb.merge(parts).records)
    (8, 16)
    """
    runs = given_list(runs, "merge", "a list of runs")
    if not runs or not all(isinstance(run, Evaluation) for run in runs):
        raise MergeError(f"merge: {clipped(runs)}, expected the shards of a run")
    problems = _shard_problems(runs)
    shards = [str(run.provenance.shard) for run in runs]
    count = re.fullmatch("[1-9][0-9]{0,6}/([1-9][0-9]{0,6})", shards[0])
    every = [f"{i}/{count[1]}" for i in range(1, int(count[1]) + 1)] if count else []
    if sorted(shards) != sorted(every):
        expected = listed(every) or "those of a run made with shard=(I, N)"
        problems.append(f"merge: shards {listed(shards)}, expected {expected}")
    if problems:
        raise MergeError("\n".join(problems), problems)
    first, failed = runs[0], dict[str, str]()
    for run in runs:
        failed |= run.failed
    empty = tuple(sorted(image_id for run in runs for image_id in run.provenance.empty_gt))
    absent = sorted(image_id for run in runs for image_id in run.provenance.no_prediction)
    date = max((run.provenance.date or "" for run in runs), default="") or None
    origin = attrs.evolve(first.provenance, shard=None, truth=None, empty_gt=empty, date=date)
    origin = attrs.evolve(origin, no_prediction=tuple(absent))
    if detectors := [run.provenance.detector for run in runs if run.provenance.detector]:
        taken_over = sum(int(detector.get("taken_over") or 0) for detector in detectors)
        origin = attrs.evolve(origin, detector=ReadOnlyDict(taken_over=taken_over))
    whole = Evaluation(
        first.protocol,
        first.name,
        [record for run in runs for record in run.records],
        origin,
        dict(sorted(failed.items())),
        first.places,
    )
    for warning in whole.verdict():
        warn(warning)
    return whole


def _shard_problems(runs: Sequence[Evaluation]) -> list[str]:
    """Say in what the runs are not shards of the first one's whole, a line each."""
    problems, first = [], _of_the_whole(runs[0])
    for number, run in enumerate(runs, 1):
        for field, value in _of_the_whole(run).items():
            if value == first[field] or (field in _MAY_LACK and None in (value, first[field])):
                continue
            differing = ""
            if field == "protocol":
                fields = [d.line() for d in comparability(runs[0], run) if d.of_protocol]
                differing = f" ({'; '.join(fields)})" if fields else ""
            elif field == _SOURCES:
                differing = f" ({', '.join(changed_sources(runs[0], run))} was changed)"
            problems.append(
                f"run {number} ({run.name}): another {field} than run 1{differing}, "
                "expected the same"
            )
    return problems


def _of_the_whole(run: Evaluation) -> dict[str, object]:
    """Return what all shards of a run have in common."""
    detector = run.provenance.detector
    return {
        "name": run.name,
        "protocol": run.protocol,
        _COUNTS: {metric: [*run.records[0].counts[metric]] for metric in run.metrics} or None,
        "ground truth": run.provenance.truth,
        _COLUMNS: group_columns(run.records) if run.records else None,
        _SOURCES: run.provenance.sources,
        "known set": run.identity.like if run.identity else "",
        "list of images": run.provenance.images,
        "detector": detector and [detector.get(key) for key in ("function", "tag")],
    }


class BestRows(NamedTuple):
    """The number of the run with the largest F at each threshold (T,), and its counts (T, 4)."""

    chosen: I8
    counts: I8


def _best_rows(tables: I8) -> BestRows:
    """Choose the run of the largest F at each threshold.

    The tables (M, T, 4) are the `matches` of one image in M runs.
    Of equal F the first run stays; 0/0 counts as 0.

    Examples
    --------
    >>> one, two = [[4, 8, 4, 8], [2, 8, 2, 2]], [[4, 8, 4, 6], [1, 8, 1, 1]]
    >>> chosen, counts = _best_rows(np.array([one, two]))
    >>> chosen.tolist(), counts.tolist()
    ([1, 0], [[4, 8, 4, 6], [2, 8, 2, 2]])
    """
    recall = ratio(tables[..., MATCHED_GT], tables[..., TOTAL_GT])
    precision = ratio(tables[..., MATCHED_PRED], tables[..., TOTAL_PRED])
    chosen = np.argmax(f_measure(precision, recall), axis=0)
    return BestRows(chosen, tables[chosen, np.arange(tables.shape[1])])


def best_of(runs: Sequence[Evaluation], name: str | None = None) -> Evaluation:
    """Return one evaluation of the best rows of several, chosen by the ground truth.

    Its name has the number of runs and the way of choosing; provenance has the runs' names and how
    often each was chosen. Raises DataError for fewer than two runs or one without boundary counts,
    MergeError for other protocols, images or thresholds.
    """
    if len(runs) < 2:
        raise DataError(f"best of {len(runs)} runs: expected two or more")
    first, protocol = runs[0], runs[0].protocol
    tables = [dict(counts_in_order(run.records, _METRIC)) for run in runs]
    for run, table in zip(runs, tables, strict=True):
        for difference in comparability(first, run):
            if difference.severity is Severity.FORBIDS and difference.field != "images":
                raise MergeError(f"{first.name}, {run.name}: {difference.fault()}")
        if other := sorted(tables[0].keys() ^ table.keys()):
            where = f"is not in both it and {first.name}"
            raise MergeError(f"{run.name}: image {other[0]!r} {where}, expected the same")
        for image_id, shared in tables[0].items():
            for key in ("thresholds", "total_gt"):
                if not np.array_equal(shared[key], table[image_id][key]):
                    where = f"image {image_id!r} has other {key} than in {first.name}"
                    raise MergeError(f"{run.name}: {where}, expected the same")
    records, times = [], np.zeros(len(runs), np.int64)
    for record in first.records:
        rows_of_runs = [table[record.image_id]["matches"] for table in tables]
        chosen, rows = _best_rows(np.stack(rows_of_runs))
        times += np.bincount(chosen, minlength=len(runs))
        others = [table[record.image_id].get(OTHER_MATCHES, ()) for table in tables]
        of_others = [
            _best_rows(np.stack(tolerance)).counts for tolerance in zip(*others, strict=True)
        ]
        more = {OTHER_MATCHES: of_others} if of_others else {}
        counts = {_METRIC: MatchCounts(record.counts[_METRIC].thresholds, rows, **more)}
        form = f"best-of-{len(runs)}"
        records.append(replace(record, counts=counts, fingerprint="", seconds=0.0, form=form))
    title = f"{name or first.name} (best of {len(runs)} by the ground truth)"
    origin = Provenance(
        gt=first.provenance.gt,
        valid=first.provenance.valid,
        best_of=tuple(run.name for run in runs),
        chosen=tuple(times.tolist()),
    )
    if not protocol.stated and protocol.whole_image:  # what the programs make of 100 rows
        protocol = protocol.replace(ap_rule="edter", name=protocol.name)
    return Evaluation(protocol, title, records, origin, places=first.places)
