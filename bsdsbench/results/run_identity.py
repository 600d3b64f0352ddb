"""Identify a run: its signature, and the tasks that it completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.results.references import NOT_STATED

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation


def sign_run(run: Evaluation) -> Signature:
    """Return the signature of a run: everything that its scores depend on.

    A set that the package knows is named with the number of its images, NAME:n/all. Any other set
    is "set:n". Properties that are not known are UNKNOWN.
    """
    identity = run.identity
    n_images = len(run.records)
    set_name = f"set:{n_images}"
    if identity is not None and identity.name:
        stored = identity.to_mapping()
        set_name = f"{stored['set']}:{n_images}/{stored['of']}"
    forms = sorted({record.form for record in run.records} - {"none"})
    if not forms or not forms[0]:  # "" is the form of a record that states none
        forms[:1] = [UNKNOWN]
    unused = registry.unused(tuple(run.records[0].counts) if n_images else (), run.protocol)
    if run.reference:
        unused |= NOT_STATED
    detector = run.provenance.detector or {}
    n_taken_over = detector.get("taken_over")
    has_taken_over = isinstance(n_taken_over, int) and 0 < n_taken_over <= n_images
    scales = detector.get("scales")
    return Signature(
        run.protocol,
        set_name,
        identity.fingerprint[:8] if identity else UNKNOWN,
        pred="+".join(forms),
        match="random" if run.reference else "1to1",
        maps=f"{n_taken_over} taken over" if has_taken_over else "",
        ms=scales if isinstance(scales, str) else "",
        valid="masks" if run.provenance.valid else "",
        unused=unused,
        named=registry.signed_options(run.metrics if n_images else (), run.protocol),
    )


def completed_tasks(run: Evaluation) -> tuple[Task, ...]:
    """Return the tasks that a run completes: the metric by the protocol on all images of the set.

    Besides the tasks of the package, this may be the task that the run was made for, as the run
    states. A statement does not replace a task of the package that has a fingerprint. Returns () if
    there are no records, if images failed, or if the protocol is not stated.
    """
    if not run.records or not run.protocol.stated or run.failed:
        return ()
    candidates = dict(tasks())
    stated = run.provenance.task
    if stated is not None:
        known = candidates.get(stated.name)
        if known is None or known.fingerprint is None:
            candidates[stated.name] = stated
    return tuple(task for task in candidates.values() if _completes(run, task))


def _completes(run: Evaluation, task: Task) -> bool:
    """Return True if a run completes a task.

    - The task's metric must be counted, by the task's protocol. A reference run may have another.
    - If the task has a fingerprint, the ground truth of the run must have it.
    - Otherwise the run must state that it was made for the task, and the ids and the number of its
      images must be those of the task, as far as the task names them.
    """
    has_protocol = task.protocol == run.protocol.name or run.reference is not None
    if task.metric not in run.metrics or not has_protocol:
        return False
    if task.fingerprint is not None:
        return run.identity is not None and run.identity.fingerprint == task.fingerprint
    has_ids = not task.ids or set(task.ids) == set(run.image_ids)
    has_number = task.images in (None, len(run.records))
    return run.provenance.task == task and has_ids and has_number
