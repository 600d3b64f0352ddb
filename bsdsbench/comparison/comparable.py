"""Whether runs may be compared: the same images, ground truth and protocol, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bsdsbench.comparison.bootstrap import WeightedRun
from bsdsbench.errors import DataError, Setting
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import in_short, reference_notes


def refuse_equal_names(what: str, names: Sequence[str]) -> None:
    """Raise DataError if two "runs" or "methods" have the same name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"two {what} are named {twice[0]!r}, expected different names")


class ComparableRuns(NamedTuple):
    """Runs on the images that they share, and what a reader has to know beside who is left out."""

    runs: list[Evaluation]
    notes: list[str]


def comparable(
    runs: Sequence[Evaluation],
    common: bool | None = None,
    force: bool | None = None,
    strict: bool = False,
) -> ComparableRuns:
    """Return the runs on the images that they share, and what a reader has to know.

    Raises DataError where a difference forbids it. With `common` images that some runs lack are
    left out, also those that no run was told to leave out; with None every image must be in all.
    With `force` other protocols and ground truth are said, and no fault; with None there is no such
    choice. Under `strict` images that a run was told to leave out are a fault too, unless `common`.
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
        kept, shared_notes = _on_shared_images(runs, bool(common) or explained, optional)
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
                f"{run.name}: from official files, which do not state the protocol; AP by the rule "
                f"{run.protocol.ap_rule}{' without their row of threshold 0' if zero else ''}"
            )
    return ComparableRuns(kept, [*notes, *reference_notes(kept), *faults])


def _on_shared_images(runs: Sequence[Evaluation], allowed: bool, optional: bool) -> ComparableRuns:
    """Return the runs restricted to the images that all of them have, and a note about it.

    Raises DataError, which says who lacks which images, where that is not allowed or there are
    none; it names the option that allows it if it is `optional`.
    """
    ids = [set(run.image_ids) for run in runs]
    shared, every = set.intersection(*ids), set.union(*ids)
    odd, names = sorted(every - shared), ", ".join(run.name for run in runs)
    fault = f"{names}: {len(odd)} images are not in every run, such as {odd[0]!r}"
    if not shared or not allowed:
        lacking = []
        for run, has in zip(runs, ids, strict=True):
            if lacks := {i: run.left_out.get(i, "no counts") for i in odd if i not in has}:
                lacking.append(f"{run.name} lacks {in_short(lacks)}")
        fix = Setting("common", True, "compares those that all have")
        elsewhere = " (`compare` can take those that all have)" * (bool(shared) and not optional)
        raise DataError(
            f"{fault}; {'; '.join(lacking)}; expected the same images in all{elsewhere}",
            fix=fix if shared and optional else (),
        )
    kept = []
    for run, has in zip(runs, ids, strict=True):
        others = [other.name for other, images in zip(runs, ids, strict=True) if has - images]
        why = dict.fromkeys(sorted(has - shared), f"not in {', '.join(others)}")
        records = [record for record in run.records if record.image_id in shared]
        kept.append(replace(run, records=records, failed={**run.failed, **why}))
    return ComparableRuns(kept, [f"{fault}; compared on the {len(shared)} in all"])


def shared_metrics(runs: Sequence[Evaluation]) -> list[str]:
    """Return the metrics that every run has. Raises DataError for none."""
    metrics = [m for m in runs[0].metrics if all(m in run.metrics for run in runs)]
    if not metrics:
        names = ", ".join(run.name for run in runs)
        raise DataError(f"{names}: expected a metric that every run has")
    return metrics


def fewer_values(
    runs: Sequence[WeightedRun], labels: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return score -> over how many values its mean is in each run, where these differ."""
    defined, fewer = [run.defined() for run in runs], dict[str, str]()
    for score in scores:
        units = [n.get(score, {}) for n in defined]
        for unit in sorted(set.intersection(*map(set, units))):
            if len({n[unit] for n in units}) > 1:
                numbers = zip(units, labels, strict=True)
                fewer[score] = ", ".join(f"{n[unit]} {unit} in {name}" for n, name in numbers)
    return fewer
