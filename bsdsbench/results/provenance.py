"""Provenance: where the inputs of a run came from, and how the run was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Required, TypedDict

import attrs

from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import Layout
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task
from bsdsbench.scores.counts import ImageRecord, Score
from bsdsbench.tables.read_only import ReadOnlyDict

_LAYOUTS = ("pred_layout", "gt_layout")


@attrs.frozen(kw_only=True)
class Provenance:
    """The inputs of a run, and how it was made, as in result.json. None or () means unknown."""

    # Folders of a run, as they were given
    pred: str | None = None
    gt: str | None = None
    photos: str | None = None
    valid: str | None = None
    images: str | None = None  # hash of the ids of the images, of all shards together
    pred_kind: str | None = None  # "soft" or "labels", see `Metric.pred_kinds`
    date: str | None = None  # when the last image was counted, in UTC
    # The numbers and names of the files per image, for predictions and for ground truth
    pred_layout: Layout | None = None
    gt_layout: Layout | None = None
    missing: str | None = None  # treatment of a missing prediction: "error", "zero" or "skip"
    sources: Mapping[str, Any] | None = None  # metric of another package -> hash of its file
    split: str | None = None  # the split file
    task: Task | None = None  # the task that the run was made for
    truth: str | None = None  # only for a shard: hash of the ground truth of all shards
    shard: str | None = None  # "I/N"
    # The content of the detector's run.json, and its times. Read from a file, it may be anything.
    detector: Mapping[str, Any] | None = None
    empty_gt: tuple[str, ...] = ()  # images that the protocol left out
    no_prediction: tuple[str, ...] = ()  # images without a prediction, if that is allowed
    # Only for a reference run: its key, and the source of its counts, briefly and in detail
    reference: str | None = None
    source: str | None = None
    about: str | None = None
    official: str | None = None  # folder of official files
    # Only for a run that its author shares: the terms of use, and the text to cite
    licence: str | None = None
    citation: str | None = None
    # Only for the best of several runs: their names, and how often each was chosen
    best_of: tuple[str, ...] = ()
    chosen: tuple[int, ...] = ()

    def to_mapping(self) -> dict[str, object]:
        """Return the known values, ready for JSON. Default layouts are left out."""
        known = {}
        for name, value in attrs.asdict(self, recurse=False).items():
            if value in (None, (), Layout()):
                continue
            if isinstance(value, Task):
                value = value.to_mapping()
            elif isinstance(value, Layout):
                value = asdict(value)
            known[name] = list(value) if isinstance(value, tuple) else value
        return known

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Provenance:
        """Rebuild a Provenance from `to_mapping`. Missing and malformed values become unknown."""
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
