"""The identity of a run: its provenance (`provenance` in result.json), its signature, its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Required, TypedDict

import attrs

from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import Layout
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.scores.counts import ImageRecord, Score
from bsdsbench.tables.read_only import ReadOnlyDict

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_LAYOUTS = ("pred_layout", "gt_layout")
# Fields of the protocol that the stored counts of a reference run do not tell
_NOT_STATED = frozenset(["nms", "nms_params", "operator"])


@attrs.frozen(kw_only=True)
class Provenance:
    """The inputs of a run, and how it was made, as in result.json. Unknown is None or ()."""

    # Folders of a run, as they were given
    pred: str | None = None
    gt: str | None = None
    photos: str | None = None
    valid: str | None = None
    images: str | None = None  # hash of the ids of all shards' images
    pred_kind: str | None = None  # "soft" or "labels", see `Metric.pred_kinds`
    date: str | None = None  # when the last image was counted, in UTC
    # How the files of a side became images
    pred_layout: Layout | None = None
    gt_layout: Layout | None = None
    missing: str | None = None  # what is done without a prediction: "error", "zero" or "skip"
    sources: Mapping[str, Any] | None = None  # metric of another package -> hash of its file
    split: str | None = None  # the split file
    task: Task | None = None  # the task that the run was made for
    truth: str | None = None  # of a shard: hash of the ground truth of all shards
    shard: str | None = None  # "I/N"
    detector: Mapping[str, Any] | None = None  # its run.json and times; a file may hold anything
    empty_gt: tuple[str, ...] = ()  # images that the protocol left out
    no_prediction: tuple[str, ...] = ()  # images without a prediction, if that is allowed
    # Of a reference run: its key, and where its counts come from
    reference: str | None = None
    source: str | None = None
    about: str | None = None
    official: str | None = None  # folder of official files
    # Of a run that its author shares: terms of use, and the text to cite it by
    licence: str | None = None
    citation: str | None = None
    # Of the best of several runs: their names, and how often each was chosen
    best_of: tuple[str, ...] = ()
    chosen: tuple[int, ...] = ()

    def to_mapping(self) -> dict[str, object]:
        """Return the known values, but no default layout, in plain form, ready for JSON."""
        values = attrs.asdict(self, recurse=False)
        if self.task is not None:
            values["task"] = self.task.to_mapping()
        for name in _LAYOUTS:
            layout = values[name]
            values[name] = None if layout in (None, Layout()) else asdict(layout)
        known = {key: value for key, value in values.items() if value not in (None, ())}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in known.items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Provenance:
        """Rebuild a Provenance. Missing and malformed values, as in an edited file, are unknown."""
        known: dict[str, Any] = {}
        for field in attrs.fields(cls):
            value = values.get(field.name)
            if field.name == "task":
                with suppress(DataError, TypeError, KeyError):
                    known["task"] = Task.from_mapping(value)
            elif field.name in _LAYOUTS:
                known[field.name] = Layout.from_mapping(value)
            elif field.name in ("detector", "sources"):
                known[field.name] = ReadOnlyDict(value) if isinstance(value, Mapping) else None
            elif field.default == ():
                kind = int if field.name == "chosen" else str
                if isinstance(value, list | tuple):
                    known[field.name] = tuple(v for v in value if isinstance(v, kind))
            elif isinstance(value, str):
                known[field.name] = value
        return cls(**known)


class RunArguments(TypedDict, total=False):
    """The arguments of an Evaluation that was read from files."""

    protocol: Required[Protocol]
    name: Required[str]
    records: Required[Sequence[ImageRecord]]
    provenance: Provenance
    reported: dict[str, Score]
    failed: dict[str, str]
    places: dict[str, str]


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
        unused |= _NOT_STATED
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
    """Return the tasks whose metric a run has, by the protocol of the task and on its whole set.

    The set is recognised by its fingerprint. A task without one, or of the user, must be that which
    the run says it was made for; ids and number of images must be those of the task. A reference
    run may have another protocol. There are none if images failed or the protocol is not known.
    """
    if not run.records or not run.protocol.stated or run.failed:
        return ()
    candidates = dict(tasks())
    claimed = run.provenance.task
    if claimed is not None:
        known = candidates.get(claimed.name)
        if known is None or known.fingerprint is None:
            candidates[claimed.name] = claimed
    completed = []
    for task in candidates.values():
        if task.fingerprint is not None:
            is_set = run.identity is not None and run.identity.fingerprint == task.fingerprint
        else:
            has_ids = not task.ids or set(task.ids) == set(run.image_ids)
            is_set = task == claimed and has_ids and task.images in (None, len(run.records))
        has_protocol = task.protocol == run.protocol.name or run.reference is not None
        if is_set and has_protocol and task.metric in run.metrics:
            completed.append(task)
    return tuple(completed)
