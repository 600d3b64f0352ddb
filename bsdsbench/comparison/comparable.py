"""Whether runs may be compared: the same images, ground truth and protocol, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bsdsbench.comparison.bootstrap import WeightedRun
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.files.errors import DataError, Setting
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.score_tables import reference_notes
from bsdsbench.scores.counts import ImageRecord

# Words of a signature that do not make scores incomparable; those of SAID are said.
SAID = ("pred", "nms")
HARMLESS = ("set", "proto", "gt", *SAID)
# and those of a reference run, which has its own parameters and its program's matching
OWN_OF_REFERENCES = ("thr", "match", "nms", "op", "ods", "thin")


def comparable(
    runs: Sequence[Evaluation], common: bool = False, force: bool | None = None
) -> tuple[list[Evaluation], list[str]]:
    """The runs on the images they share, and what is to be said about it. Raises DataError.

    common : images that some runs lack are left out, and not a fault
    force  : other protocols and ground truth are said, and no fault; None: there is no such choice
    """
    labels = [run.name for run in runs]
    if not runs:
        raise DataError("no runs given, expected at least one to compare")
    for run in runs:
        if not run.records:
            raise DataError(f"{run.name}: no counts per image")
    ids = [set(run.image_ids) for run in runs]
    shared = set.intersection(*ids)
    kept, notes = list(runs), []
    if odd := sorted(set.union(*ids) - shared):
        fault = f"{', '.join(labels)}: {len(odd)} images are not in every run, such as {odd[0]!r}"
        if not (common and shared):
            raise DataError(f"{fault}; expected the same images in all")
        notes.append(f"{fault}; compared on the {len(shared)} in all")
        kept = [replace(r, records=[x for x in r.records if x.image_id in shared]) for r in runs]
    faults = []
    first = kept[0]
    for run in kept[1:]:
        both = f"{first.name}, {run.name}"
        found = first.signature.differences(run.signature)
        if first.reference or run.reference:
            found = [d for d in found if d.key not in OWN_OF_REFERENCES]
        faults += [
            f"{both}: protocols differ in {d.line()}"
            for d in found
            if d.key.partition(".")[0] not in HARMLESS
        ]
        records = zip(first.records, run.records, strict=True)
        if other := [x.image_id for x, y in records if not _same_truth(x, y)]:
            faults.append(f"{both}: ground truth of image {other[0]!r} differs")
        notes += [f"{both}: {d.line()}" for d in found if d.key in SAID]
    if faults and not force:
        fix = Setting("force", True, "compares them all the same")
        raise DataError(
            problems=[f"{fault}; such scores are not comparable" for fault in faults],
            fix=() if force is None else fix,
        )
    for run in runs:
        if "official" in run.provenance:
            zero = run.protocol.whole_image and run.protocol.ap_rule != "edter"
            notes.append(
                f"{run.name}: from official files, which do not state the protocol; AP by the rule "
                f"{run.protocol.ap_rule}{' without their row of threshold 0' if zero else ''}"
            )
    return kept, [*notes, *reference_notes(kept), *faults]


def _same_truth(a: ImageRecord, b: ImageRecord) -> bool:
    """By fingerprints; where one has none (official files), by the totals of ground truth."""
    if a.truth and b.truth:
        return a.truth == b.truth
    for metric in a.counts.keys() & b.counts.keys():
        mine, theirs = (r.counts[metric].get("total_gt", ()) for r in (a, b))
        if not np.array_equal(np.unique(mine), np.unique(theirs)):
            return False
    return True


def fewer_values(
    runs: Sequence[WeightedRun], labels: Sequence[str], scores: Sequence[str]
) -> list[str]:
    """A line for the scores that are means over other numbers of values in some of the runs."""
    found = [run.defined() for run in runs]
    said: dict[tuple[str, ...], list[str]] = {}
    for score in scores:
        units = [n.get(score, {}) for n in found]
        for unit in set.intersection(*map(set, units)):
            if len({n[unit] for n in units}) > 1:
                counts = (f"{n[unit]} {unit} in {k}" for n, k in zip(units, labels, strict=True))
                said.setdefault(tuple(counts), []).append(heading(score))
    return [
        f"{', '.join(names)}: means over {', '.join(counts)}; what is undefined is left out, so "
        "they are not of the same objects"
        for counts, names in said.items()
    ]
