"""Common deviations: settings that need images counted again, and choices of images.

A setting changes the protocol, the annotators or the matching. Two settings of one kind exclude
each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.findings import counted
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.pairing import read_split
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.constants import RECIPES, NMSParams
from bsdsbench.protocol.fields import HOME_MADE, in_use
from bsdsbench.protocol.protocol import Protocol

MAX_SPLIT_BYTES = 1 << 20
MAX_SPLIT_FILES = 50


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing done differently when images are counted.

    kind, label : "tolerance", "max_dist 0.011"
    who         : whose programs do so
    changes     : fields of the protocol
    annotators  : "all", "first" (one annotator an image) or "union" (drawn into one map)
    match       : "1to1", or "1toN" for many-to-one matching
    """

    kind: str
    label: str
    who: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    annotators: str = "all"
    match: str = "1to1"
    n_causes: int = 1

    def of(self, protocol: Protocol) -> Protocol:
        """The protocol with this setting."""
        return protocol.replace(**self.changes) if self.changes else protocol

    def changes_something(self, protocol: Protocol) -> bool:
        """False if a run under this protocol has the setting already."""
        more = self.annotators != "all" or self.match != "1to1"
        return more or bool(protocol.differences(self.of(protocol)))

    def with_other(self, other: Setting) -> Setting | None:
        """Both at once, or None if they exclude each other."""
        kinds = {self.kind, other.kind}
        shared = (self.changes.keys() & other.changes.keys()) - {"options"}
        if len(kinds) == 1 or shared or (self.match != "1to1" and other.match != "1to1"):
            return None
        return Setting(
            f"{self.kind} + {other.kind}",
            f"{self.label} + {other.label}",
            f"{self.who}; {other.who}",
            _merged(self.changes, other.changes),
            self.annotators if self.annotators != "all" else other.annotators,
            self.match if self.match != "1to1" else other.match,
            2,
        )


def _merged(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of two settings; options of one metric may come from both."""
    both = {**a, **b}
    if "options" in a and "options" in b:
        names = {**a["options"], **b["options"]}
        tables = ({**a["options"].get(n, {}), **b["options"].get(n, {})} for n in names)
        both["options"] = dict(zip(names, tables, strict=True))
    return both


def _in_use(field_name: str) -> Iterator[tuple[Any, str]]:
    """The values of a field of the protocol that are in use, and whose programs have them."""
    return ((value, who) for name, value, who in in_use(Protocol) if name == field_name)


def option_settings(metric: Metric) -> Iterator[Setting]:
    """The values that a metric's options say are in use, and what it reads of the protocol's."""
    for name, value, who in in_use(metric.options) if metric.options else ():
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        key = f"{metric.name}.{name}"
        yield Setting(key, f"{key} {shown}", who, {"options": {metric.name: {name: value}}})
    for each in settings():
        own = each.match == "1to1" and each.annotators == "all"
        if own and each.changes.keys() <= {*metric.uses, "max_dist_px"}:
            yield each


def settings() -> list[Setting]:
    """Every setting of boundaries known, those that are often met first."""
    return [*_matching(), *_thinning(), *_tolerances(), *_nms(), *_annotators(), *_thresholds()]


def _matching() -> Iterator[Setting]:
    who = f"{HOME_MADE} with a distance transform"
    yield Setting("matching", "many-to-one matching", who, match="1toN")
    label = "many-to-one matching of unthinned maps"
    yield Setting("matching", label, who, {"thin": False}, match="1toN")


def _thinning() -> Iterator[Setting]:
    for value, who in _in_use("thin"):
        yield Setting("thinning", f"with{'' if value else 'out'} thinning", who, {"thin": value})


def _tolerances() -> Iterator[Setting]:
    for value, who in _in_use("max_dist"):
        changes = {"max_dist": value, "max_dist_px": None}
        yield Setting("tolerance", f"max_dist {value:g}", who, changes)


def _nms() -> Iterator[Setting]:
    yield Setting("nms", "no NMS", "maps that had it already, or never", {"nms": False})
    names: dict[tuple[Any, ...], list[str]] = {}
    for name, recipe in RECIPES.items():
        names.setdefault(recipe.constants, []).append(name)
    for constants, known in names.items():
        label = f"NMS {known[0]} ({NMSParams(*constants).describe().partition(': ')[2]})"
        changes = {"nms": True, "nms_params": known[0]}
        yield Setting("nms", label, ", ".join(known), changes)


def _annotators() -> Iterator[Setting]:
    who = "scripts that read one annotation"
    yield Setting("annotators", "the first annotator alone", who, annotators="first")
    yield Setting("annotators", "all annotators drawn into one map", who, annotators="union")


def _thresholds() -> Iterator[Setting]:
    for value, who in _in_use("thresholds"):
        label = "255 thresholds k/255" if value == "8bit" else f"{value} thresholds"
        yield Setting("thresholds", label, who, {"thresholds": value})
    for value, who in _in_use("operator"):
        yield Setting("operator", f"value {value} threshold", who, {"operator": value})


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Some of the images: their positions in id order, and what they are.

    named : True if something beside the count names them: a data set, a folder, a split file
    """

    label: str
    images: NDArray[np.int64]
    named: bool


def choices(
    ids: Sequence[str], gt_dir: Path | None, sets: Mapping[str, Sequence[str]]
) -> list[Choice]:
    """Ways to have taken only some of the images, those with a name first.

    gt_dir : where split files and folders of splits are looked for; sets : known set -> ids
    """
    at = {image_id: k for k, image_id in enumerate(ids)}
    found: dict[tuple[int, ...], Choice] = {}

    def add(label: str, wanted: Sequence[str] | NDArray[np.int64], named: bool) -> None:
        if isinstance(wanted, np.ndarray):
            images = wanted
        else:
            images = np.array(sorted(at[i] for i in wanted if i in at), np.int64)
        if 0 < images.size < len(ids):
            found.setdefault(tuple(images.tolist()), Choice(label, images, named))

    for name, members in sets.items():
        add(f"the images of {name} only", list(members), True)
    for name, members in _split_files(gt_dir).items():
        add(f"the images of {name} only", members, True)
    for label, order in _orders(ids):
        for n in range(len(ids) - 1, 0, -1):
            some = counted(n, "image")
            add(f"the first {some} {label}", np.sort(order[:n]), False)
            add(f"the last {some} {label}", np.sort(order[-n:]), False)
    for step, start, label in ((2, 0, "odd"), (2, 1, "even")):
        add(f"every second image ({label} places)", np.arange(start, len(ids), step), False)
    for k, image_id in enumerate(ids):
        add(f"without image {image_id}", np.delete(np.arange(len(ids)), k), False)
    return list(found.values())


def _orders(ids: Sequence[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Positions in the order of names, and in that of the numbers in them."""
    places = np.arange(len(ids))
    yield "by name", places
    numbers = [[int(n) for n in re.findall(r"\d+", i)] for i in ids]
    yield "by number", np.array(sorted(places, key=lambda k: (numbers[k], k)), np.int64)


def _split_files(gt_dir: Path | None) -> dict[str, list[str]]:
    """Ids by split file (.txt, .lst) beside or above the ground truth, and by folder below it."""
    found: dict[str, list[str]] = {}
    if gt_dir is None or not gt_dir.is_dir():
        return found
    folders = [p for p in sorted(gt_dir.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    for folder in folders[:MAX_SPLIT_FILES]:
        found[f"the folder {folder.name}"] = [p.stem for p in folder.iterdir() if p.is_file()]
    for place in (gt_dir, gt_dir.parent, gt_dir.parent.parent):
        files = sorted([*place.glob("*.txt"), *place.glob("*.lst")])[:MAX_SPLIT_FILES]
        for path in files:
            try:
                if path.stat().st_size <= MAX_SPLIT_BYTES:
                    found.setdefault(f"the split file {path.name}", read_split(path))
            except (DataError, OSError):
                continue
    return found
