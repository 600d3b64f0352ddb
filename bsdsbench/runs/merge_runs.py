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

import numpy as np

from bsdsbench.arguments import I8, given_list
from bsdsbench.errors import DataError, MergeError, warn
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.protocol.fields import clipped
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import EMPTY, Evaluation
from bsdsbench.results.storage import SPEED
from bsdsbench.scores.curve import curve_counts, four_counts
from bsdsbench.scores.ratios import f_measure, ratio
from bsdsbench.text import listed

COUNTS = "set of metrics or classes of errors"  # a run without records has none
METRIC = registry.DEFAULT[0]


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
    if not runs or not all(isinstance(each, Evaluation) for each in runs):
        raise MergeError(f"merge: {clipped(runs)}, expected the shards of a run")
    shards, problems, told = [], [], []
    empty, failed, taken = list[str](), dict[str, str](), []
    records = []
    for number, each in enumerate(runs, 1):
        shards.append(str(each.provenance.get("shard")))
        detector = each.provenance.get(SPEED)
        if isinstance(detector, dict):
            taken.append(int(detector.get("taken_over") or 0))
            detector = [detector.get(k) for k in ("function", "tag")]
        about = {
            "name": each.name,
            "protocol": each.protocol,
            COUNTS: {metric: [*each.records[0].counts[metric]] for metric in each.metrics} or None,
            "ground truth": each.provenance.get("truth"),
            "known set": each.identity.like if each.identity else "",
            "list of images": each.provenance.get("images"),
            "detector": detector,
        }
        told.append(about)
        for what, mine in told[0].items():
            free = what == COUNTS and None in (mine, about[what])
            if about[what] != mine and not free:
                label, named = f"run {number} ({each.name})", ""
                if what == "protocol":
                    fields = [d.line() for d in comparability(runs[0], each) if d.of_protocol]
                    named = f" ({'; '.join(fields)})" if fields else ""
                problems.append(f"{label}: another {what} than run 1{named}, expected the same")
        empty += each.empty
        failed |= each.failed
        records += each.records
    count = re.fullmatch("[1-9][0-9]{0,6}/([1-9][0-9]{0,6})", shards[0])
    every = [f"{i}/{count[1]}" for i in range(1, int(count[1]) + 1)] if count else []
    if sorted(shards) != sorted(every):
        expected = listed(every) or "those of a run made with shard=(I, N)"
        problems.append(f"merge: shards {listed(shards)}, expected {expected}")
    if problems:
        raise MergeError("\n".join(problems), problems)
    first = runs[0]
    origin = {k: v for k, v in first.provenance.items() if k not in ("shard", "truth")}
    if taken:  # times are those of the shards
        origin[SPEED] = {"taken_over": sum(taken)}
    if empty:
        origin[EMPTY] = sorted(empty)
    failed = dict(sorted(failed.items()))
    whole = Evaluation(first.protocol, first.name, records, origin, failed, first.places)
    for warning in whole.verdict():
        warn(warning)
    return whole


def best_rows(tables: I8) -> tuple[I8, I8]:
    """The run of the largest F at each threshold, and its counts.

    tables : i8 (M, T, 4), matched_gt, total_gt, matched_pred, total_pred of one image in M runs
    Returns (i8 (T,), i8 (T, 4)). Of equal F the first run stays; 0/0 counts as 0.

    Examples
    --------
    >>> one, two = [[4, 8, 4, 8], [2, 8, 2, 2]], [[4, 8, 4, 6], [1, 8, 1, 1]]
    >>> chosen, counts = best_rows(np.array([one, two]))
    >>> chosen.tolist(), counts.tolist()
    ([1, 0], [[4, 8, 4, 6], [2, 8, 2, 2]])
    """
    precision, recall = ratio(tables[..., 2], tables[..., 3]), ratio(tables[..., 0], tables[..., 1])
    chosen = np.argmax(f_measure(precision, recall), axis=0)
    return chosen, tables[chosen, np.arange(tables.shape[1])]


def best_of(runs: Sequence[Evaluation], name: str | None = None) -> Evaluation:
    """One evaluation of the best rows of several, by the ground truth.

    Its name says of how many runs it is and how it chose; provenance has the runs' names and how
    often each was chosen. Raises DataError for fewer than two runs or one without boundary counts,
    MergeError for other protocols, images or thresholds.
    """
    if len(runs) < 2:
        raise DataError(f"best of {len(runs)} runs: expected two or more")
    first, protocol = runs[0], runs[0].protocol
    tables = [dict(counts_in_order(run.records, METRIC)) for run in runs]
    for run, table in zip(runs, tables, strict=True):
        for difference in comparability(first, run):
            if difference.severity is Severity.FORBIDS and difference.field != "images":
                raise MergeError(f"{first.name}, {run.name}: {difference.fault()}")
        if other := sorted(tables[0].keys() ^ table.keys()):
            where = f"is not in both it and {first.name}"
            raise MergeError(f"{run.name}: image {other[0]!r} {where}, expected the same")
        for image_id, counts in tables[0].items():
            for key in ("thresholds", "total_gt"):
                if not np.array_equal(counts[key], table[image_id][key]):
                    where = f"image {image_id!r} has other {key} than in {first.name}"
                    raise MergeError(f"{run.name}: {where}, expected the same")
    records, times = [], np.zeros(len(runs), np.int64)
    for record in first.records:
        found = [four_counts(table[record.image_id]) for table in tables]
        chosen, rows = best_rows(np.stack(found))
        times += np.bincount(chosen, minlength=len(runs))
        own = {METRIC: curve_counts(record.counts[METRIC].thresholds, rows)}
        form = f"best-of-{len(runs)}"
        records.append(replace(record, counts=own, fingerprint="", seconds=0.0, form=form))
    title = f"{name or first.name} (best of {len(runs)} by the ground truth)"
    about = {k: v for k, v in first.provenance.items() if k == "gt"}
    about |= {"best_of": [run.name for run in runs], "chosen": times.tolist()}
    if not protocol.stated and protocol.whole_image:  # what the programs make of 100 rows
        protocol = protocol.replace(ap_rule="edter", name=protocol.name)
    return Evaluation(protocol, title, records, about, places=first.places)
