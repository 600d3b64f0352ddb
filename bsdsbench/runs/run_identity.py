"""What a run is: its set, its signature, its tasks, and what it may stand beside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import ground_truths
from bsdsbench.loaders.identity import (
    Identity,
    KnownSet,
    folder_fingerprints,
    identify,
    set_fingerprint,
)
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.scores.counts import ImageRecord

# What the stored counts of a reference run do not tell.
_NOT_STATED = frozenset(["nms", "nms_params", "operator"])
TASK = "task"  # of a run's provenance: the task that it was made for
PREFIX = "ref:"
SOURCE = "stored results of SEISM v3 (Pont-Tuset and Marques, PAMI 2016)"
SOLVER = "the official randomised solver"
# How much that solver changes ODS; in an image, at most 19 of some thousands of counts.
SOLVER_MOVES = 0.0003
_MUST_AGREE = ("max_dist", "max_dist_px", "ap_rule")
MOST = 20_000  # images of a set that is looked for among the known ones


def identity_of(records: Sequence[ImageRecord], sets: Sequence[KnownSet] = ()) -> Identity | None:
    """Which ground-truth set the records are of; None where it is not known of every image.

    sets : known sets beside those that ship. No records, and very many, give None.
    """
    if not 0 < len(records) <= MOST:
        return None
    truths = {r.image_id: r.truth for r in records}
    return identify(truths, sets) if all(truths.values()) else None


def signature_of(
    protocol: Protocol,
    records: Sequence[ImageRecord],
    identity: Identity | None,
    provenance: Mapping[str, Any],
) -> Signature:
    """The signature of a run: what its metrics use of the protocol, its set, its predictions."""
    detector = provenance.get("detector")
    taken = detector.get("taken_over") if isinstance(detector, Mapping) else 0
    forms = sorted({r.form for r in records} - {"none"}) if len(records) <= MOST else []
    size = identity.to_mapping()["of"] if identity else None
    metrics = tuple(records[0].counts) if records else ()
    unused = registry.unused(metrics, protocol)
    stored = "reference" in provenance
    return Signature(
        protocol,
        identity.name if identity else None,
        len(records),
        size,
        identity.fingerprint if identity else UNKNOWN,
        pred="+".join(f or UNKNOWN for f in forms) or UNKNOWN,
        match="random" if stored else "1to1",
        unused=unused | _NOT_STATED if stored else unused,
        taken_over=taken if isinstance(taken, int) and 0 < taken <= len(records) else 0,
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference run: its form, parameters and source.

    key       : what follows `ref:`
    form      : "contours", "segmentations", or "hierarchy" for thresholds of an ultrametric map
    parameter : the method's own axis, in words
    ordered   : False if the axis is a list of combinations, which cannot be interpolated
    paper     : where the method is described; note : a remark about the counts
    """

    key: str
    name: str
    year: int | None
    form: str
    parameter: str
    paper: str
    ordered: bool = True
    note: str = ""

    def describe(self, count: int) -> str:
        """One line: form, parameters and source of the counts, and who matched."""
        said = f"{self.form}, {count} {self.parameter}; {SOURCE}, matched by {SOLVER}"
        return f"{said}; {self.note}" if self.note else said


@lru_cache(maxsize=1)
def references() -> dict[str, Reference]:
    """Key -> what it is, in the order of the shipped table (references.json)."""
    text = resources.files("bsdsbench.runs").joinpath("references.json").read_text("utf-8")
    return {row["key"]: Reference(**row) for row in json.loads(text)}


def reference_of(run: Any) -> Reference | None:
    """What the reference run `run` is; None for any other run."""
    key = run.provenance.get("reference") if isinstance(run.provenance, Mapping) else None
    return references().get(key) if isinstance(key, str) else None


def by_rules_of(runs: list[Any]) -> list[Any]:
    """The runs, with the AP and ODS rules of the first other run given to reference runs.

    Their counts allow any rule, except that combinations of parameters cannot be interpolated.
    """
    own = next((run.protocol for run in runs if reference_of(run) is None), None)
    if own is None or not own.stated:
        return runs
    fitted = []
    for run in runs:
        about = reference_of(run)
        if about is not None:
            rule = own.ods_rule if about.ordered else "maximum"
            protocol = run.protocol.replace(ap_rule=own.ap_rule, ods_rule=rule)
            run = replace(run, protocol=protocol)
        fitted.append(run)
    return fitted


def incomparable(a: Any, b: Any) -> list[str]:
    """The differences of protocol that make the scores of two runs incomparable, one per line.

    A reference run has its own parameters and was matched and thinned by its program. Only its
    tolerance and AP rule are compared, and `by_rules_of` sets the latter. Edge NMS may be done
    beforehand as well, so that it is no difference.
    """
    lines = a.protocol.differences(b.protocol)
    found = [line for line in lines if not line.startswith("nms")]
    if reference_of(a) is None and reference_of(b) is None:
        return found
    return [line for line in found if line.partition(":")[0] in _MUST_AGREE]


def reference_notes(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """A line about each reference run among these."""
    found = [(n, run, reference_of(run)) for n, run in zip(names, runs, strict=True)]
    lines = [f"{n}: reference run, {run.provenance['about']}." for n, run, about in found if about]
    rules = {run.protocol.ods_rule for run in runs}
    odd = [n for n, run, about in found if about and not about.ordered]
    if odd and len(rules) > 1:
        lines.append(
            f"{', '.join(odd)}: ODS is the best of the combinations; that of other runs is "
            "interpolated."
        )
    return lines


def check_truth(
    task: Task, gt_dir: str | Path, protocol: Protocol, split_file: str | Path | None = None
) -> None:
    """Raise DataError if the ground truth is not the task's set.

    For a set without a fingerprint only the ids or the number of images can be checked.
    """
    if task.fingerprint is None:
        ids = None if split_file else task.ids or None
        there = [pair.image_id for pair in ground_truths(gt_dir, split_file, ids)]
        count = len(set(there) & set(task.ids)) if task.ids else len(there)
        if task.images not in (None, count):
            raise DataError(
                f"{show(gt_dir)}: {count} images, expected the {task.images} of {task.set} "
                f"({task.name})"
            )
        return
    found = folder_fingerprints(gt_dir, protocol, split_file)
    if set_fingerprint(found) != task.fingerprint:
        raise DataError(
            f"{show(gt_dir)}: is {identify(found).describe()}, expected {task.set} ({task.name})"
        )


def tasks_of(run: Any) -> tuple[Task, ...]:
    """The tasks that a run belongs to: it has the complete set, the protocol and the metric.

    The fingerprint identifies the set. Without one, or for a task that is not known here, the
    run's own statement counts, if it can be read.
    """
    metrics = run.metrics
    if not metrics or not run.protocol.stated or getattr(run, "failed", {}):
        return ()
    known, own = dict(tasks()), None
    with suppress(DataError, TypeError):
        own = Task.from_mapping(run.provenance.get(TASK))
        known[own.name] = own
    identity, reference, found = getattr(run, "identity", None), reference_of(run), []
    for task in known.values():
        if task.metric not in metrics or (task.protocol != run.protocol.name and not reference):
            continue
        if task.fingerprint is not None:
            mine = identity is not None and identity.fingerprint == task.fingerprint
        else:
            listed = not task.ids or set(task.ids) == {record.image_id for record in run.records}
            mine = own == task and listed and task.images in (None, len(run.records))
        if mine:
            found.append(task)
    return tuple(found)


def not_beside(run: Any, name: str) -> str:
    """Why results of the task `name` cannot be compared with `run`; "" if they can.

    If the run's ground truth is known, its fingerprint decides. For other runs, such as result
    files of other programs, protocol and number of images must be those of the task.
    """
    if any(task.name == name for task in tasks_of(run)):
        return ""
    task = Task.load(name)
    preset = run.protocol.name
    if run.protocol.stated and preset != task.protocol and reference_of(run) is None:
        return f"protocol {preset}, but published results are of {task.protocol}"
    identity = getattr(run, "identity", None)
    if identity is not None and (
        task.fingerprint is None or identity.fingerprint != task.fingerprint
    ):
        return f"{identity.describe()}, but published results are of {task.set}"
    if len(run.records) not in (0, task.images):
        return (
            f"{len(run.records)} images, but published results are of the {task.images or ''} "
            f"images of {task.set}"
        ).replace("  ", " ")
    return ""
