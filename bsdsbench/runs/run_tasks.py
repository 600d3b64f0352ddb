"""The tasks that a run belongs to, what it may be compared with, and the check of its set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.loaders import ground_truths
from bsdsbench.loaders.formats import show
from bsdsbench.loaders.identity import folder_fingerprints, identify, set_fingerprint
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.runs.references import reference_of

KEY = "task"  # of a run's provenance: the task that it was made for


def check_truth(
    task: Task, gt_dir: str | Path, protocol: Protocol, split_file: str | Path | None = None
) -> None:
    """Raise DataError if the ground truth is not the task's set.

    For a set without a fingerprint only the ids or the number of images can be checked.
    """
    if task.fingerprint is None:
        there = [pair.image_id for pair in ground_truths(gt_dir, split_file)]
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


def fixed_by(
    task: Task,
    protocol: Protocol | str | None,
    metrics: str | Sequence[str],
    missing: str,
    on_error: str,
) -> tuple[Protocol, tuple[str, ...]]:
    """Protocol and metrics of a task. Raises DataError if the call asks for others."""
    faults = []
    if protocol is not None and Protocol.of(protocol) != task.resolved():
        faults.append(f"task {task.name}: its protocol is {task.protocol}, expected no other")
    if metrics not in (registry.DEFAULT, task.metric, (task.metric,), [task.metric]):
        faults.append(f"task {task.name}: its metric is {task.metric}, expected no other")
    if missing == "skip" or on_error == "skip":
        faults.append(f"task {task.name}: needs every image, expected none to be skipped")
    if faults:
        raise DataError.collect([DataError(fault) for fault in faults])
    return task.resolved(), (task.metric,)


def tasks_of(run: Any) -> tuple[Task, ...]:
    """The tasks that a run belongs to: it has the complete set, the protocol and the metric.

    The fingerprint identifies the set. Without one, or for a task that is not known here, the
    run's own statement counts.
    """
    if not run.metrics or not run.protocol.stated or getattr(run, "failed", {}):
        return ()
    known = dict(tasks())
    if (own := claimed(run)) is not None:
        known[own.name] = own
    return tuple(
        task for task in known.values() if task.metric in run.metrics and _is_of(run, task)
    )


def claimed(run: Any) -> Task | None:
    """The task that a run states; None if it states none that can be read."""
    try:
        return Task.from_mapping(run.provenance.get(KEY))
    except (DataError, TypeError):
        return None


def _is_of(run: Any, task: Task) -> bool:
    if run.protocol.name != task.protocol and reference_of(run) is None:
        return False
    if task.fingerprint is not None:
        identity = getattr(run, "identity", None)
        return identity is not None and identity.fingerprint == task.fingerprint
    own = claimed(run)
    mine = {record.image_id for record in run.records}
    listed = set(task.ids) in (set(), mine)
    return own == task and listed and task.images in (None, len(run.records))


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


def shared_task(runs: Sequence[Any], metric: str) -> Task | None:
    """The first task of that metric that all runs belong to, or None."""
    found = [{t.name for t in tasks_of(run) if t.metric == metric} for run in runs]
    names = set.intersection(*found) if found else set()
    return next((t for t in tasks_of(runs[0]) if t.name in names), None) if names else None
