"""The columns of a score, and the score of a data set as an object of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bsdsbench.scores.ratios import or_none
from bsdsbench.tables.result_object import ShownScore

Over = Mapping[str, Mapping[str, list[int]]]


@dataclass(frozen=True, slots=True)
class Column:
    """A value of a score, or of one image, and how it is shown.

    Parameters
    ----------
    key : str
        Its path in `to_mapping()`, as "ods" or "covering.ods"; a point of a PR curve stands for its
        F, its other numbers are "ods.threshold", "ods.precision", "ods.recall".
    heading : str
        Over the column.
    short : str
        The same where space is scarce.
    lower : bool
        True where a smaller value is the better one.
    digits : int
        Decimals in a run's own table; tables of several runs have one less.
    shown : str
        "always", "own" (only in a run's own table) or "never" (only in files and gates).
    score : bool
        False for what is no score: a threshold, a number of images.
    undefined : str
        Why it is undefined where it is, for a note under the table.
    quantity : str
        Columns of one quantity go by one name in papers; `explain` takes each for the others.

    Examples
    --------
    >>> Column("ods", "ODS").digits
    4
    """

    key: str
    heading: str
    short: str = ""
    lower: bool = False
    digits: int = 4
    shown: str = "always"
    score: bool = True
    undefined: str = "nothing in these images defines it"
    quantity: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score(ShownScore):
    """The scores of a data set by their keys; `score.ods`, or `score.voi.ods` for "voi.ods".

    Parameters
    ----------
    values : dict of str to float
        By the keys of the metric's columns and more; undefined ones are NaN.
    n_images : int
        Number of images.
    over : dict
        Of means over fewer than there are, see `Metric.over`.

    Examples
    --------
    >>> score = Score({"voi.ods": 1.5}, n_images=2)
    >>> score.voi.ods, score.to_mapping()
    (1.5, {'voi': {'ods': 1.5}, 'n_images': 2})
    """

    values: Mapping[str, float]
    n_images: int
    over: Over = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("values", "n_images", "over"):
            raise AttributeError(name)
        if name in self.values:
            return self.values[name]
        inner = within(self.values, name)
        if not inner:
            raise AttributeError(f"score {name!r}: expected one of {', '.join(self.values)}")
        return Score(inner, self.n_images)

    def to_mapping(self) -> dict[str, Any]:
        return {**nested(self.values), "n_images": self.n_images, **said(self.over)}


def fewer(what: str, counts: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, list[int]]]:
    """Of the means (key -> over how many, of how many) those over fewer than there are.

    Examples
    --------
    >>> fewer("pairs", {"hd": (10, 100), "iou": (100, 100)})
    {'hd': {'pairs': [10, 100]}}
    """
    return {key: {what: [n, of]} for key, (n, of) in counts.items() if 0 < n < of}


def said(over: Over) -> dict[str, Any]:
    """Such means in a `to_mapping()`, under "over", where there are any."""
    return {"over": over} if over else {}


def nested(values: Mapping[str, float]) -> dict[str, Any]:
    """{"voi.ods": 1.0} as {"voi": {"ods": 1.0}}, NaN as None."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        inner = out
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = or_none(value)
    return out


def within(values: Mapping[str, float], part: str) -> dict[str, float]:
    """The scores of one part: {"seval.ods": 1.0} as {"ods": 1.0}."""
    start = f"{part}."
    return {k.removeprefix(start): v for k, v in values.items() if k.startswith(start)}
