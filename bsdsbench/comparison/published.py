"""Published results on the BSDS500 test split, with their papers: for tables and plots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

from bsdsbench.core.errors import DataError

# The point drawn for human agreement on the BSDS500 test split: recall, precision (F = .803).
HUMAN_POINT = (0.7235, 0.9014)
N_TEST_IMAGES = 200


@dataclass(frozen=True, slots=True, eq=False)
class PublishedResult:
    """One method's published scores.

    boundary : ods, ois, ap where known; region : covering, pri, voi, fop as in result.json
    paper is where the method is described, note what to know about the numbers.
    """

    key: str
    name: str
    year: int
    paper: str
    note: str = ""
    boundary: Mapping[str, float] = field(default_factory=dict)
    region: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name with the year it was published, for legends."""
        return f"{self.name} ({self.year}, published)"


@lru_cache(maxsize=1)
def published_results() -> dict[str, PublishedResult]:
    """Key -> result, in the order of the shipped table (published.json)."""
    text = resources.files("bsdsbench.comparison").joinpath("published.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return {row["key"]: PublishedResult(**row) for row in found["methods"]}


def find_published(keys: Iterable[str]) -> list[PublishedResult]:
    """The results named by `keys`, in that order. Raises DataError naming every unknown key."""
    table = published_results()
    wanted = [key.strip().lower() for key in keys]
    unknown = [key for key in wanted if key not in table]
    if unknown:
        known = ", ".join(table)
        raise DataError.collect(
            [DataError(f"published method {key!r}: expected one of {known}") for key in unknown]
        )
    return [table[key] for key in wanted]


def not_beside(run: Any) -> str:
    """Why published BSDS500 results do not belong beside `run`; "" if they do.

    They are of the 200 test images under the protocol bsds500.
    """
    if run.protocol.name != "bsds500":
        return f"protocol {run.protocol.name}, but published results are of bsds500"
    if len(run.records) not in (0, N_TEST_IMAGES):
        return (
            f"{len(run.records)} images, but published results are of the "
            f"{N_TEST_IMAGES} BSDS500 test images"
        )
    return ""
