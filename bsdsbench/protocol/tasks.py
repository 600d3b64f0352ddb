"""Tasks: named combinations of an image set, a protocol and a metric.

The task `bsds500-test/boundary`, for example, evaluates the boundary metric with the protocol
bsds500 on the test images of BSDS500. tasks.toml lists the tasks of the package. Users can define
tasks in TOML files with the same fields and a `name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from attr import asdict  # tuples become lists, unlike with attrs.asdict
from attrs import Factory, field, fields, frozen
from attrs.validators import optional

from bsdsbench.errors import DataError
from bsdsbench.protocol.fields import (
    accepting,
    each,
    option,
    read_packaged_toml,
    read_toml,
    record_of,
    whole,
)
from bsdsbench.protocol.protocol import preset_names
from bsdsbench.text import did_you_mean, shorten

_TEXT = accepting(lambda v: isinstance(v, str), "text")
_COUNT = whole(1, 10**9, "a count")


@frozen
class Task:
    """An image set, a protocol and a metric under one name. Raises DataError for wrong values.

    Examples
    --------
    >>> task = Task.load("bsds500-test/boundary")
    >>> task.set, task.images, task.protocol
    ('bsds500-test', 200, 'bsds500')
    """

    name: str = field(
        validator=accepting(
            lambda v: bool(re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", str(v))),
            "SET/METRIC",
        )
    )
    protocol: str = field(validator=accepting(lambda v: v in preset_names(), "a preset"))
    metric: str = field(
        default=Factory(lambda task: task.name.partition("/")[2], takes_self=True), validator=_TEXT
    )
    version: int = option(1, "Raised when set, protocol or metric change.", _COUNT)
    fingerprint: str | None = option(
        None,
        "Fingerprint of the ground truth; by default the set is checked by its ids.",
        accepting(
            lambda v: v is None or bool(re.fullmatch("[0-9a-f]{16}", str(v))),
            "16 hex digits, as `bsdsbench data check` prints them",
        ),
    )
    ids: tuple[str, ...] = option(
        (),
        "Images of the task, if they are a part of a larger set; replaces a split file.",
        each(lambda v: isinstance(v, str), 0, 10**9, "a list of text"),
    )
    images: int | None = field(
        default=Factory(lambda task: len(task.ids) or None, takes_self=True),
        validator=optional(_COUNT),
    )
    page: str = option("", "Page of the set in `datasets/`.", _TEXT)
    needs: str = option("", "The ground truth that is needed.", _TEXT)

    @property
    def set(self) -> str:
        """The name of the image set."""
        return self.name.partition("/")[0]

    def to_mapping(self) -> dict[str, object]:
        """Return the fields as a dict of plain values, without those that are None or empty."""
        return {k: v for k, v in asdict(self).items() if v not in (None, "", [])}

    @classmethod
    def from_mapping(cls, values: object) -> Task:
        """Build a task from a dict of its fields. Raises DataError for wrong or missing fields."""
        if not isinstance(values, Mapping) or not {"name", "protocol"} <= {*values}:
            known = ", ".join(field.name for field in fields(cls))
            raise DataError(f"task: expected name and protocol, and of the fields {known}")
        return record_of(cls, values, f"task {shorten(str(values['name']), 60)}:")

    @classmethod
    def load(cls, name_or_path: Task | str | Path) -> Task:
        """Return a task given as a Task, a .toml file, or the name of a task of the package.

        Raises DataError for an unknown name, and FileFormatError if the file is not valid TOML.
        """
        if isinstance(name_or_path, Task):
            return name_or_path
        text = str(name_or_path)
        if text.lower().endswith(".toml"):
            return cls.from_mapping(read_toml(text, "a task in TOML"))
        if text not in tasks():
            expected = "expected a .toml file or one of those that `bsdsbench protocols` lists"
            hint = did_you_mean(text, tasks())
            raise DataError(f"task {shorten(repr(text), 60)}: {expected}{hint}")
        return tasks()[text]

    def describe(self) -> str:
        """Describe the task in one line: metric, protocol, number of images, fingerprint."""
        count = f"{self.images} images" if self.images else "number of images not stated"
        check = f"fingerprint {self.fingerprint}" if self.fingerprint else "no fingerprint known"
        check += ", a list of ids" if self.ids else ""
        return f"{self.name} v{self.version}: {self.metric} by {self.protocol}; {count}, {check}"


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks of the package as a dict by name."""
    tables = read_packaged_toml("tasks.toml").items()
    return {name: Task.from_mapping({"name": name, **values}) for name, values in tables}
