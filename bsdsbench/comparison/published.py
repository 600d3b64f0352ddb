"""Published results with their sources, AP rules and confidence, for tables and plots.

AP values by different rules differ by up to 0.04 for the same counts, so each result names its
rule: one of `bsdsbench.scores.curve`, or "unknown" if no source states it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, refuse_unless_forced
from bsdsbench.metrics import registry
from bsdsbench.protocol.tasks import tasks
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import Row
from bsdsbench.scores.counts import OperatingPoint

# The point drawn for human agreement on the BSDS500 test split: recall, precision (F = 0.803).
HUMAN_POINT = (0.7235, 0.9014)
HUMAN_TASK = "bsds500-test/boundary"
_ODS_IS = {
    "maximum": "is the plain maximum of its points",
    "interpolated": "is interpolated between its points",
}


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCurve:
    """A precision-recall curve as it was published."""

    recall: F8
    precision: F8
    thresholds: F8 | None  # None where it came without
    ods: OperatingPoint  # of its summary line
    ods_rule: str  # by which that point was found
    source: str

    def describe(self) -> str:
        """Describe the source of the curve, its thresholds, and how its ODS was found."""
        grid = "with its thresholds" if self.thresholds is not None else "without thresholds"
        return f"curve of {self.source}, {grid}; ODS {_ODS_IS[self.ods_rule]}"


@dataclass(frozen=True, slots=True, eq=False)
class PublishedResult:
    """One method's published scores on one set."""

    key: str
    name: str
    year: int | None
    tasks: Sequence[str]  # what its scores are of, one for each metric
    source: str
    confidence: str  # "high" or "medium"
    paper: str
    variant: str = ""  # what else tells rows of one method apart
    input: str = ""  # RGB, RGB-D, RGB-HHA
    note: str = ""
    ap_rule: str | None = None  # "unknown" where no source says it, None without an AP
    n_thresholds: int | None = None  # None where not known
    nms: str | None = None
    region_source: str = ""
    region_note: str = ""
    boundary: Mapping[str, float] = field(default_factory=dict)  # ods, ois, ap
    region: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # as in result.json
    other: Mapping[str, float] = field(default_factory=dict)  # as printed (ac, fh)
    shown_as: str = ""  # the user's name for it, in place of `label`

    def scores(self) -> dict[str, Mapping[str, object]]:
        """Return metric -> scores, as in the `scores` object of result.json."""
        by_metric = {"boundary": self.boundary, "region": self.region}
        return {metric: scores for metric, scores in by_metric.items() if scores}

    @property
    def curve(self) -> PublishedCurve | None:
        """Return the precision-recall curve, or None if no curve is stored."""
        return published_curves().get(self.key)

    @property
    def label(self) -> str:
        """Return the name with year, input and variant, and with the key if it differs from the
        name.
        """
        if self.shown_as:
            return self.shown_as
        variant = "" if self.variant == "single-scale" else self.variant
        words = [str(self.year or ""), "published", self.input, variant]
        key = "" if self.key == self.name.lower() else f"; {self.key}"
        return f"{self.name} ({', '.join(word for word in words if word)}{key})"


@cache
def published_results() -> dict[str, PublishedResult]:
    """Return the results by key, in the order of the shipped table (published.json)."""
    return {row["key"]: PublishedResult(**row) for row in _shipped("published.json")["methods"]}


def published_with(metric: str, targets: Mapping[str, float | str]) -> tuple[str, ...]:
    """Return a short description of each published result that has all of the target values.

    Values are compared to the digits of the targets.
    """
    rows = []
    for key, row in published_results().items():
        scores = row.scores().get(metric, {})
        if targets and all(_agrees(scores.get(name), value) for name, value in targets.items()):
            sets = ", ".join(task.partition("/")[0] for task in row.tasks[:1])
            rule = f"AP rule {row.ap_rule}" if row.ap_rule else ""
            words = filter(None, (key, sets, rule, row.note))
            rows.append(f"{row.name} ({'; '.join(words)})")
    return tuple(rows)


def _agrees(value: object, target: float | str) -> bool:
    """Return True if a score equals the target to the digits given."""
    half = max(0.5 * 10.0 ** -len(str(target).partition(".")[2]), 1e-6)
    return isinstance(value, int | float) and abs(value - float(target)) <= half * (1 + 1e-9)


def _shipped(name: str) -> dict[str, Any]:
    text = resources.files("bsdsbench.comparison").joinpath(name).read_text("utf-8")
    return dict(json.loads(text))


@cache
def published_curves() -> dict[str, PublishedCurve]:
    """Return the stored curves of published results by key (curves.json)."""
    out = {}
    for key, stored in _shipped("curves.json").items():
        recall, precision, f = stored["ods"]
        grid = np.array(stored["threshold"]) if "threshold" in stored else None
        points = np.array(stored["recall"]), np.array(stored["precision"])
        ods = OperatingPoint(threshold=None, recall=recall, precision=precision, f=f)
        out[key] = PublishedCurve(*points, grid, ods, stored["ods_rule"], stored["source"])
    return out


def find_published(
    keys: Iterable[str], labels: Mapping[str, str] = MappingProxyType({})
) -> list[PublishedResult]:
    """The results of `keys`, in that order. Raises DataError naming every unknown key.

    `labels` gives keys other names to be shown by.

    Examples
    --------
    >>> [r.key for r in find_published(["hed", "edter"])]
    ['hed', 'edter']
    """
    table, rows, faults = published_results(), [], []
    for key in (word.strip().lower() for word in keys):
        if key in table:
            rows.append(replace(table[key], shown_as=labels.get(key, "")))
            continue
        such = get_close_matches(key, table, n=5, cutoff=0.5) or [*table][:10]
        faults.append(DataError(f"published method {key!r}: expected such as {', '.join(such)}"))
    if faults:
        raise DataError.collect(faults)
    return rows


def labelled_runs(
    given: Sequence[object],
    runs: Sequence[Evaluation],
    labels: Mapping[str, str],
    published: Iterable[str] = (),
) -> list[Evaluation]:
    """Return the runs renamed by `labels`.

    A key of `labels` is the name of a run, its folder in `given`, or one of `published`, which
    `find_published` renames. Raises DataError if a key is none of these.
    """
    keys, named = {word.strip().lower() for word in published}, []
    for place, run in zip(given, runs, strict=True):
        keys_of_run = [run.name]
        if isinstance(place, str | os.PathLike):
            keys_of_run += [str(place), os.path.basename(os.path.normpath(place))]
        texts = [labels[key] for key in keys_of_run if key in labels]
        named.append(replace(run, name=texts[0]) if texts else run)
        keys.update(keys_of_run)
    if unknown := [key for key in labels if key not in keys]:
        known = ", ".join([*(run.name for run in runs), *published])
        raise DataError(f"label {', '.join(map(repr, unknown))}: expected keys among {known}")
    return named


def why_not_beside(run: Evaluation, task: str) -> str:
    """Return why published results of a task are not comparable with a run, or "" if they are."""
    for difference in comparability(run, tasks()[task]):
        return f"{difference.ours}, but published results are of {difference.theirs}"
    return ""


class PublishedRows(NamedTuple):
    """Rows of published results for `score_tables`, and notes on rows that do not fit the runs."""

    rows: list[Row]
    notes: list[str]


def published_beside(
    keys: Iterable[str],
    runs: Sequence[Evaluation],
    force: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> PublishedRows:
    """Build table rows of the published results `keys`, to show beside `runs`.

    An AP by another rule than that of the runs is marked with its rule. If the task of a result is
    not comparable with a run, DataError is raised. With `force` the row is shown all the same: its
    label names its data set, all of its scores are marked, and a note gives the reason. A marked
    score is never the best of its column.
    """
    run_rules = {run.protocol.ap_rule for run in runs}
    rows: list[Row] = []
    run_names_by_reason: dict[str, list[str]] = {}
    for published in find_published(keys, labels):
        task = published.tasks[0]
        reasons = {run.name: why_not_beside(run, task) for run in runs}
        for run_name, reason in reasons.items():
            if reason:
                run_names_by_reason.setdefault(reason, []).append(run_name)
        rows.append(_row_of(published, run_rules, comparable=not any(reasons.values())))
    problems = [
        f"{', '.join(dict.fromkeys(names))}: {reason}"
        for reason, names in run_names_by_reason.items()
    ]
    refuse_unless_forced(problems, force, "such rows are not comparable", "shows them")
    return PublishedRows(rows, [f"{problem}; they are not comparable." for problem in problems])


def _row_of(published: PublishedResult, run_rules: Collection[str], comparable: bool) -> Row:
    """Build the table row of a published result, with a mark for each score that is no match.

    `run_rules` are the AP rules of the runs. `comparable` is False if the task differs from a run.
    """
    marks: dict[str, str] = {}
    label = published.label
    if not comparable:
        columns = [c for metric in published.scores() for c in registry.get(metric).columns]
        marks = dict.fromkeys([c.key for c in columns if c.score], "")
        label += f" [{published.tasks[0].partition('/')[0]}]"
    if published.ap_rule is not None and set(run_rules) != {published.ap_rule}:
        marks["ap"] = published.ap_rule
    return label, published.scores(), marks
