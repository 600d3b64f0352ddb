"""Published results with their sources, AP rules and confidence, for tables and plots.

For the same counts, different AP rules give values that differ by up to 0.04. Each result therefore
names its rule: one of `bsdsbench.scores.curve`, or "unknown" if no source states it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.errors import DataError, refuse_unless_forced
from bsdsbench.metrics import registry
from bsdsbench.protocol.tasks import tasks
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import ExtraRow
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.text import rounding_error

# Human agreement on the BSDS500 test split, as drawn in plots: recall, precision (F = 0.803).
HUMAN_POINT = (0.7235, 0.9014)
HUMAN_TASK = "bsds500-test/boundary"
_ODS_IS = {
    "maximum": "is the plain maximum of its points",
    "interpolated": "is interpolated between its points",
}


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCurve:
    """A precision-recall curve of K points as it was published."""

    recall: Floats  # (K,)
    precision: Floats  # (K,)
    thresholds: Floats | None  # (K,), or None if they were not published
    ods: OperatingPoint  # the published ODS; its threshold is None
    ods_rule: str  # "maximum" of the points of the curve, or "interpolated" between them
    source: str

    def describe(self) -> str:
        """Describe the source of the curve, its thresholds, and how its ODS was found."""
        grid = "with its thresholds" if self.thresholds is not None else "without thresholds"
        return f"curve of {self.source}, {grid}; ODS {_ODS_IS[self.ods_rule]}"


@dataclass(frozen=True, slots=True, eq=False)
class PublishedResult:
    """The published scores of one method on one image set."""

    key: str
    name: str
    year: int | None
    tasks: Sequence[str]  # one SET/METRIC for each metric
    source: str
    confidence: str  # "high" or "medium"
    paper: str
    variant: str = ""  # distinguishes several results of one method, for example "multi-scale"
    input: str = ""  # RGB, RGB-D, RGB-HHA
    note: str = ""
    ap_rule: str | None = None  # "unknown" if no source states it; None without an AP
    n_thresholds: int | None = None  # None if not known
    nms: str | None = None
    region_source: str = ""
    region_note: str = ""
    boundary: Mapping[str, float] = field(default_factory=dict)  # ods, ois, ap
    region: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # as in result.json
    other: Mapping[str, float] = field(default_factory=dict)  # as printed (ac, fh)
    shown_as: str = ""  # a name given by the user, which replaces `label`

    def scores(self) -> dict[str, Mapping[str, object]]:
        """Return the published scores by metric, as in the `scores` object of result.json."""
        by_metric = {"boundary": self.boundary, "region": self.region}
        return {metric: scores for metric, scores in by_metric.items() if scores}

    @property
    def curve(self) -> PublishedCurve | None:
        """Return the precision-recall curve, or None if no curve is stored."""
        return published_curves().get(self.key)

    @property
    def label(self) -> str:
        """Return the name of the result in tables and plots.

        It is `shown_as` if the user gave such a name. Otherwise it is the method's name with
        details in parentheses, such as "HED (2015, published)": the year, "published", the input,
        the variant unless it is "single-scale", and the key unless it is the name in lower case.
        """
        if self.shown_as:
            return self.shown_as
        variant = "" if self.variant == "single-scale" else self.variant
        details = [str(self.year or ""), "published", self.input, variant]
        key = "" if self.key == self.name.lower() else f"; {self.key}"
        return f"{self.name} ({', '.join(filter(None, details))}{key})"


@cache
def published_results() -> dict[str, PublishedResult]:
    """Return all published results by key, in the order of the packaged published.json."""
    return {r["key"]: PublishedResult(**r) for r in _read_shipped("published.json")["methods"]}


def published_with(metric: str, targets: Mapping[str, float | str]) -> tuple[str, ...]:
    """Describe the published results with given scores: "HED (hed; bsds500-test; AP rule bsds)".

    `targets` maps score keys to the wanted values, such as {"ods": "0.788"}. A result must agree
    with every target to the given number of digits. Empty `targets` match nothing.
    """
    descriptions = []
    for key, published in published_results().items():
        scores = published.scores().get(metric, {})
        agrees = bool(targets)
        for score, target in targets.items():
            value = scores.get(score)  # None, which never agrees, if it was not published
            # Half a unit in the last digit of the target: 0.0005 for "0.788". 1e-9 for rounding
            tolerance = rounding_error(target) * (1 + 1e-9)
            agrees &= isinstance(value, int | float) and abs(value - float(target)) <= tolerance
        if agrees:
            image_set = published.tasks[0].partition("/")[0] if published.tasks else ""  # of SET/..
            rule = f"AP rule {published.ap_rule}" if published.ap_rule else ""
            details = filter(None, (key, image_set, rule, published.note))
            descriptions.append(f"{published.name} ({'; '.join(details)})")
    return tuple(descriptions)


def _read_shipped(name: str) -> dict[str, Any]:
    """Return the content of a JSON file in this package folder."""
    text = resources.files("bsdsbench.comparison").joinpath(name).read_text("utf-8")
    return dict(json.loads(text))


@cache
def published_curves() -> dict[str, PublishedCurve]:
    """Return the stored curves of published results by key (curves.json)."""
    curves = {}
    for key, stored in _read_shipped("curves.json").items():
        recall, precision, f = stored["ods"]  # the point of the curve that gives ODS
        curves[key] = PublishedCurve(
            recall=np.array(stored["recall"]),
            precision=np.array(stored["precision"]),
            thresholds=np.array(stored["threshold"]) if "threshold" in stored else None,
            ods=OperatingPoint(threshold=None, recall=recall, precision=precision, f=f),
            ods_rule=stored["ods_rule"],
            source=stored["source"],
        )
    return curves


def find_published(
    keys: Iterable[str], labels: Mapping[str, str] = MappingProxyType({})
) -> list[PublishedResult]:
    """Return the published results with these keys, in the order of the keys.

    Keys are matched without regard to case and surrounding spaces. `labels` maps keys to names to
    show instead of the published ones. If a key is unknown, raise a DataError that lists similar
    keys.

    Examples
    --------
    >>> [r.key for r in find_published(["hed", "edter"])]
    ['hed', 'edter']
    """
    known = published_results()
    chosen: list[PublishedResult] = []
    for key in (text.strip().lower() for text in keys):
        if key in known:
            chosen.append(replace(known[key], shown_as=labels.get(key, "")))
        else:
            similar = get_close_matches(key, known, n=5, cutoff=0.5) or list(known)[:10]
            raise DataError(
                f"published result {key!r}: unknown key, expected one such as {', '.join(similar)} "
                "(all keys: `bsdsbench report --published list`)"
            )
    return chosen


def labelled_runs(
    given: Sequence[object],
    runs: Sequence[Evaluation],
    labels: Mapping[str, str],
    published: Iterable[str] = (),
) -> list[Evaluation]:
    """Return the runs, renamed as `labels` says: a dict from key to new name.

    A key is the name of a run, its folder as in `given`, or the last component of that folder. A
    key of one of the `published` results is allowed too, and changes no run: the caller also passes
    `labels` to `find_published`, which renames these. Raises DataError if a key is none of these.
    """
    # A result may be requested as "HED", but a label must use the stored key, which is lower case
    allowed_keys = {key.strip().lower() for key in published}
    renamed = []
    for source, run in zip(given, runs, strict=True):  # a source is a folder or an Evaluation
        keys = [run.name]
        if isinstance(source, str | os.PathLike):
            keys += [str(source), os.path.basename(os.path.normpath(source))]
        allowed_keys.update(keys)
        new_name = next((labels[key] for key in keys if key in labels), None)
        renamed.append(run if new_name is None else replace(run, name=new_name))
    if unknown := [key for key in labels if key not in allowed_keys]:
        given_labels = f"label {', '.join(map(repr, unknown))}"
        known = ", ".join([*(run.name for run in runs), *published])
        if not known:  # such as for methods alone, whose names the caller chooses
            has = f"{given_labels}: no runs or published results to rename, expected no labels"
            raise DataError(has, fix="a method gets its name where it is given")
        raise DataError(f"{given_labels}: expected keys among {known}")
    return renamed


def why_not_beside(run: Evaluation, task: str) -> str:
    """Return why published results of a task SET/METRIC are not comparable with a run, else ""."""
    differences = comparability(run, tasks()[task])
    if not differences:
        return ""
    return f"{differences[0].ours}, but published results are of {differences[0].theirs}"


class PublishedRows(NamedTuple):
    """Table rows of published results, for the parameter `extra` of `score_tables`."""

    rows: list[ExtraRow]
    notes: list[str]  # one for each reason why rows are not comparable with runs


def published_beside(
    keys: Iterable[str],
    runs: Sequence[Evaluation],
    force: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> PublishedRows:
    """Build table rows of published results, to be shown next to the rows of runs.

    `keys` names the results, and `labels` maps keys to names to show instead of the published ones.
    If `force` is True, results that are not comparable with a run are included: their labels name
    the data set, and a note gives the reason. Raises DataError if a key is unknown and, unless
    `force` is True, if a result belongs to another task (image set and metric) than a run.
    """
    ap_rules = {run.protocol.ap_rule for run in runs}
    rows: list[ExtraRow] = []
    run_names_by_reason: dict[str, list[str]] = {}
    for published in find_published(keys, labels):
        task = published.tasks[0]  # SET/METRIC; the tasks of further metrics have the same set
        image_set, _, _ = task.partition("/")
        # Why the result is not comparable with a run; "" if it is
        reasons = {run.name: why_not_beside(run, task) for run in runs}
        for run_name, reason in reasons.items():
            if reason:
                run_names_by_reason.setdefault(reason, []).append(run_name)
        label = published.label
        # Key of a score -> text printed after it. A score with a mark, even "", is never the best
        # of its column
        marks: dict[str, str] = {}
        if any(reasons.values()):  # of other images, for example: no score can be the best
            label += f" [{image_set}]"
            for metric in published.scores():
                columns = registry.get(metric).columns
                marks |= {column.key: "" for column in columns if column.score}
        # Without an AP, `ap_rule` is None. It is "unknown" if no source states it, and no run's
        if published.ap_rule is not None and ap_rules != {published.ap_rule}:
            marks["ap"] = published.ap_rule
        rows.append(ExtraRow(label, published.scores(), marks))
    problems = [
        f"{', '.join(dict.fromkeys(names))}: {reason}"
        for reason, names in run_names_by_reason.items()
    ]
    # Raises unless there is no problem or `force` is True; the error says that force "shows them"
    refuse_unless_forced(problems, force, "such rows are not comparable", "shows them")
    return PublishedRows(rows, [f"{problem}; they are not comparable." for problem in problems])
