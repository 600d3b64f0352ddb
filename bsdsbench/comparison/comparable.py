"""Check that runs are comparable: they need the same images, ground truth and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bsdsbench.comparison.bootstrap import WeightedRun
from bsdsbench.errors import DataError, Setting
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.footers import reference_notes, summarize_reasons
from bsdsbench.text import counted


def refuse_equal_names(what: str, names: Sequence[str]) -> None:
    """Raise DataError if two "runs" or "methods" have the same name."""
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise DataError(f"two {what} are named {repeated[0]!r}, expected different names")


class ComparableRuns(NamedTuple):
    """Runs restricted to the images that they share, with notes for the reader."""

    runs: list[Evaluation]
    notes: list[str]


def comparable(
    runs: Sequence[Evaluation],
    common: bool | None = None,
    force: bool | None = None,
    strict: bool = False,
) -> ComparableRuns:
    """Check that runs are comparable, and restrict them to the images that all of them have.

    common : True leaves out every image that a run lacks, False only those that a run was told to
        leave out. None requires the same images; the caller then has no such option.
    force : True turns differences of protocol and ground truth into notes. None means that the
        caller has no such option.
    strict : unless `common` is True, raise for images that a run was told to leave out too

    Raises DataError if there are no runs, a run has no counts of images, or the runs are not
    comparable.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to compare")
    for run in runs:
        run.require_records()
    notes, faults, images = list[str](), list[str](), set[Severity]()
    for pair in pair_differences(runs):
        difference = pair.difference
        if difference.field == "images":
            images.add(difference.severity)
        elif difference.severity is Severity.FORBIDS:
            faults.append(pair.line())
        elif difference.severity is Severity.SAID:
            notes.append(pair.line())
    kept, shared_notes = list(runs), list[str]()
    if images:
        explained = images == {Severity.SAID} and not strict and common is not None
        optional = common is not None
        allow_subset = bool(common) or explained
        kept, shared_notes = _restrict_to_shared_images(runs, allow_subset, optional)
    notes = [*shared_notes, *notes]
    if faults and not force:
        fix = Setting("force", True, "compares them all the same")
        raise DataError(
            problems=[f"{fault}; such scores are not comparable" for fault in faults],
            fix=() if force is None else fix,
        )
    for run in runs:
        if run.provenance.official is not None:
            zero = run.protocol.whole_image and run.protocol.ap_rule != "edter"
            notes.append(
                f"{run.name}: read from official files, which do not state the protocol; AP by the "
                f"rule {run.protocol.ap_rule}{' without the row of threshold 0' if zero else ''}"
            )
    return ComparableRuns(kept, [*notes, *reference_notes(kept), *faults])


def _restrict_to_shared_images(
    runs: Sequence[Evaluation], allow_subset: bool, can_be_fixed: bool
) -> ComparableRuns:
    """Drop the images that not every run has. Call only if the runs have different images.

    allow_subset : if False, raise instead
    can_be_fixed : the caller has an option `common`, which the error suggests

    Raises DataError, which lists the images that each run lacks, if `allow_subset` is False or no
    image is in all runs.
    """
    ids_of_runs = [set(run.image_ids) for run in runs]
    shared = set.intersection(*ids_of_runs)
    not_shared = sorted(set.union(*ids_of_runs) - shared)
    names = ", ".join(run.name for run in runs)
    problem = f"{names}: {len(not_shared)} images are not in every run, such as {not_shared[0]!r}"
    if not shared or not allow_subset:
        lines = []
        for run, ids in zip(runs, ids_of_runs, strict=True):
            lacking = {i: run.left_out.get(i, "no counts") for i in not_shared if i not in ids}
            if lacking:
                lines.append(f"{run.name} lacks {summarize_reasons(lacking)}")
        message = f"{problem}; {'; '.join(lines)}; expected the same images in all"
        if shared and can_be_fixed:
            raise DataError(message, fix=Setting("common", True, "compares the shared images"))
        if shared:
            message += " (`compare` can use the shared images)"
        raise DataError(message)
    restricted = []
    for run, ids in zip(runs, ids_of_runs, strict=True):
        lacking_runs = [
            other.name
            for other, other_ids in zip(runs, ids_of_runs, strict=True)
            if ids - other_ids
        ]
        newly_failed = dict.fromkeys(sorted(ids - shared), f"not in {', '.join(lacking_runs)}")
        records = [record for record in run.records if record.image_id in shared]
        restricted.append(replace(run, records=records, failed={**run.failed, **newly_failed}))
    n_shared = counted(len(shared), "shared image")
    return ComparableRuns(restricted, [f"{problem}; compared on the {n_shared}"])


def shared_metrics(runs: Sequence[Evaluation]) -> list[str]:
    """Return the metrics that every run has. Raises DataError if there are none."""
    metrics = [m for m in runs[0].metrics if all(m in run.metrics for run in runs)]
    if not metrics:
        names = ", ".join(run.name for run in runs)
        raise DataError(f"{names}: expected a metric that every run has")
    return metrics


def fewer_values(
    runs: Sequence[WeightedRun], labels: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Describe over how many values each score is averaged, for scores that differ in this.

    `labels` are the names of the runs. Returns score -> such as "9 images in A, 10 images in B".
    """
    defined, fewer = [run.defined() for run in runs], dict[str, str]()
    for score in scores:
        units = [n.get(score, {}) for n in defined]
        for unit in sorted(set.intersection(*map(set, units))):
            if len({n[unit] for n in units}) > 1:
                numbers = zip(units, labels, strict=True)
                fewer[score] = ", ".join(f"{n[unit]} {unit} in {name}" for n, name in numbers)
    return fewer
