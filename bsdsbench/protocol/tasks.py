"""Tasks: a set, a protocol, a metric and a version under one name.

`bsds500-test/boundary` is the boundary metric by the protocol bsds500 on the test images of
BSDS500. Those that ship are in tasks.toml. Another package adds tasks by the entry point group
`bsdsbench.tasks` (a mapping of name to fields, or a function that returns one). A user adds one by
a file with the same fields and `name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from attr import asdict  # tuples become lists, unlike with attrs.asdict
from attrs import Factory, field, fields, frozen

from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import DataError, clip, did_you_mean
from bsdsbench.protocol.fields import check, is_int, listed, record_of
from bsdsbench.protocol.protocol import Protocol, preset_names

GROUP = "bsdsbench.tasks"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TEXT = check(lambda v: isinstance(v, str), "text")


def _images(task: Task, _: Any, images: Any) -> None:
    if not (images is None or (is_int(images) and images > 0)):
        raise DataError(f"images {clip(repr(images), 40)}: expected a count")
    if task.ids and images != len(set(task.ids)):
        raise DataError(f"images: {len(task.ids)} ids, expected {images}")


@frozen
class Task:
    """A set, a protocol and a metric under one name.

    Parameters
    ----------
    name, protocol : str
        SET/METRIC, such as "bsds500-test/boundary"; a preset.
    metric : str
        By default the second part of the name.
    version : int
        Raised when set, protocol or metric change.
    fingerprint : str or None
        Fingerprint of the set's ground truth; None if it is not known.
    ids : tuple of str
        The images that count, if the set is a split of a larger one: they replace a split file.
        Without a fingerprint, the set is checked by them.
    images : int or None
        Number of images in the set; None if no source states it.
    page, needs : str
        The set's page in `datasets/`; what ground truth is needed.

    Raises
    ------
    DataError
        For a field that is not as described.

    Examples
    --------
    >>> task = Task.load("bsds500-test/boundary")
    >>> task.set, task.images, task.resolved().max_dist
    ('bsds500-test', 200, 0.0075)
    """

    name: str = field(
        validator=check(lambda v: isinstance(v, str) and bool(_NAME.fullmatch(v)), "SET/METRIC")
    )
    protocol: str = field(validator=check(lambda v: v in preset_names(), "a preset"))
    metric: str = field(
        default=Factory(lambda task: task.name.partition("/")[2], takes_self=True), validator=_TEXT
    )
    version: int = field(default=1, validator=check(lambda v: is_int(v) and v > 0, "a count"))
    fingerprint: str | None = field(
        default=None,
        validator=check(
            lambda v: v is None or (isinstance(v, str) and bool(re.fullmatch("[0-9a-f]{16}", v))),
            "16 hex digits, as `bsdsbench data check` prints them",
        ),
    )
    ids: tuple[str, ...] = field(
        default=(),
        converter=listed,
        validator=check(
            lambda v: isinstance(v, tuple) and all(isinstance(i, str) for i in v), "a list of text"
        ),
    )
    images: int | None = field(
        default=Factory(lambda task: len(task.ids) or None, takes_self=True), validator=_images
    )
    page: str = field(default="", validator=_TEXT)
    needs: str = field(default="", validator=_TEXT)

    @property
    def set(self) -> str:
        """The name of its set."""
        return self.name.partition("/")[0]

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, without what is not known."""
        return {k: v for k, v in asdict(self).items() if v not in (None, "", [])}

    @classmethod
    def from_mapping(cls, values: Any) -> Task:
        """A task from plain values, of which `name` and `protocol` are needed.

        Raises DataError for other values.
        """
        if not isinstance(values, Mapping) or not {"name", "protocol"} <= set(values):
            known = ", ".join(f.name for f in fields(cls))
            raise DataError(f"task: expected name and protocol, and of the fields {known}")
        return record_of(cls, values, f"task {clip(str(values['name']), 60)}:")

    @classmethod
    def load(cls, name_or_path: Task | str | Path) -> Task:
        """The task of that name, or in a .toml file; a task is returned. Raises DataError."""
        if isinstance(name_or_path, Task):
            return name_or_path
        text = str(name_or_path)
        if Path(text).suffix == ".toml":
            source = read_text(Path(text), "a task", MAX_TOML_BYTES)
            with reading(text, "a task in TOML"):
                return cls.from_mapping(parse_toml(source.encode("utf-8", "surrogatepass")))
        if text not in tasks():
            raise DataError(
                f"task {clip(repr(text), 60)}: expected a .toml file or one of those that "
                f"`bsdsbench protocols` lists{did_you_mean(text, tasks())}"
            )
        return tasks()[text]

    def resolved(self) -> Protocol:
        """The preset that the task names."""
        return Protocol.preset(self.protocol)

    def describe(self) -> str:
        """One line: protocol, metric, images, and whether the set can be checked."""
        count = f"{self.images} images" if self.images else "number of images not stated"
        known = f"fingerprint {self.fingerprint}" if self.fingerprint else "no fingerprint known"
        known += ", a list of ids" * bool(self.ids)
        return f"{self.name} v{self.version}: {self.metric} by {self.protocol}; {count}, {known}"


@cache
def tasks() -> dict[str, Task]:
    """Name -> task: those that ship, then those of other packages.

    Raises DataError for an entry point that cannot be loaded or takes a name of ours.
    """
    text = resources.files("bsdsbench.protocol").joinpath("tasks.toml").read_text("utf-8")
    found = _tasks(parse_toml(text.encode()))
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            values = entry.load()
            more = _tasks(values() if callable(values) else values)
        except Exception as error:  # whatever another package does while it is imported
            raise DataError(f"tasks of {entry.value}: {type(error).__name__}: {error}") from None
        if both := sorted(found.keys() & more.keys()):
            raise DataError(f"tasks of {entry.value}: {both[0]} is there already, expected another")
        found |= more
    return found


def _tasks(values: Any) -> dict[str, Task]:
    return {name: Task.from_mapping({"name": name, **own}) for name, own in values.items()}
