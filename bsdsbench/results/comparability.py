"""Decide whether the scores of two runs are comparable, for every part of the package.

The answer is a list of all differences between the runs, each with its effect on a comparison. Only
settings that the metrics of both runs use are looked at: two `pixel` runs with different matching
tolerances are comparable, because `pixel` does not use the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from attrs import evolve

from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import WORDS, Difference, Severity
from bsdsbench.protocol.tasks import Task
from bsdsbench.scores.counts import NO_EVIDENCE, ImageRecord, Values

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

# What a reference run has of its own: its method's parameters, its program's matching and thinning.
OWN_OF_REFERENCES = {"thresholds", "match", "nms", "operator", "ods_rule", "thin"}
# What says whose images and annotations these are; here it is read off the records.
_OF_IMAGES = {"set", "gt"}


def comparability(a: Evaluation, b: Evaluation | Task) -> list[Difference]:
    """List the differences of two runs, and what each does to a comparison of their scores.

    The runs may be compared if no difference forbids it.

    Parameters
    ----------
    a : Evaluation
        A run.
    b : Evaluation or Task
        Another one, or the task whose published results are to stand beside it.

    Returns
    -------
    list of Difference
        Fields of the protocol and options of metrics by their names; "images", "truth", "pred",
        "source of metric NAME".

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> soft, mask = np.linspace(0, 1, 400).reshape(20, 20), np.eye(20) > 0
    >>> wide = bb.Protocol.preset("bsds500").replace(max_dist=0.02)
    >>> for metric in ("boundary", "pixel"):
    ...     runs = [bb.evaluate_items([("a", soft, mask)], protocol, metric, workers=1)
    ...             for protocol in ("bsds500", wide)]
    ...     print([(d.field, d.severity.value) for d in bb.comparability(*runs)])
    [('max_dist', 'forbids')]
    [('max_dist', 'ignored')]
    """
    if isinstance(b, Task):
        return _of_task(a, b)
    shared = [name for name in a.metrics if name in b.metrics]
    if not shared:
        names = ", ".join(a.metrics), ", ".join(b.metrics)
        return [Difference("metrics", *names, Severity.FORBIDS)]
    unused = registry.unused(shared, a.protocol) | registry.unused(shared, b.protocol)
    left, right = (evolve(run.signature, unused=unused) for run in (a, b))
    differing = [d for d in left.differences(right) if d.field not in _OF_IMAGES]
    if a.reference or b.reference:
        for k, difference in enumerate(differing):
            if difference.field in OWN_OF_REFERENCES:
                differing[k] = evolve(difference, severity=Severity.IGNORED)
    for name in filter(shared.__contains__, changed_sources(a, b)):
        one, other = (str((run.provenance.sources or {})[name]) for run in (a, b))
        cost = "its file was changed between the runs, and may count otherwise"
        field = f"source of metric {name}"
        differing.append(Difference(field, one, other, Severity.SAID, cost))
    return [*differing, *_of_reading(a, b), *_of_images(a, b), *_of_truth(a, b, shared)]


def changed_sources(a: Evaluation, b: Evaluation) -> list[str]:
    """Return the metrics of other packages whose source files are known in both runs and differ."""
    one, other = (run.provenance.sources or {} for run in (a, b))
    return [name for name in one if one[name] != other.get(name, one[name])]


def _of_task(run: Evaluation, task: Task) -> list[Difference]:
    """Return the differences between a run and a published task.

    A known ground truth is compared by its fingerprint. For other runs, such as official files, the
    protocol and the number of images must be those of the task.
    """
    if any(task.name == known.name for known in run.tasks):
        return []
    where, identity, n, differing = task.set, run.identity, len(run.records), []
    if run.protocol.stated and run.protocol.name != task.protocol and run.reference is None:
        differing.append(("name", f"protocol {run.protocol.name}", task.protocol))
    if identity and (task.fingerprint is None or identity.fingerprint != task.fingerprint):
        differing.append(("truth", run.set_line, where))
    elif n not in (0, task.images):
        images = f"{task.images} images" if task.images else "images"
        differing.append(("images", f"{n} images", f"the {images} of {where}"))
    return [Difference(*both, Severity.FORBIDS) for both in differing]


def _of_reading(a: Evaluation, b: Evaluation) -> Iterator[Difference]:
    """Yield a difference if only one run has gray masks that were thresholded.

    Options of reading are fields of the protocol, and the reading of the ground truth is part of
    its fingerprint.
    """
    kinds = {run.readings.pred.kind for run in (a, b) if run.readings}
    known = all(record.pred.maps for run in (a, b) for record in run.records)
    if kinds == {Kind.MASK} and known:
        shown = [reduce(or_, (r.pred for r in run.records), NO_EVIDENCE).values for run in (a, b)]
        holds = ["gray, cut" if values & Values.GRAY else "two values" for values in shown]
        if holds[0] != holds[1]:
            cost = "gray masks were resized or are soft: where they are cut moves their outline"
            yield Difference("reading", holds[0], holds[1], Severity.SAID, cost)


def _of_images(a: Evaluation, b: Evaluation) -> Iterator[Difference]:
    """Yield a difference if only one run has some of the images.

    It does not forbid a comparison if the runs were told to leave these images out.
    """
    ids = [frozenset(run.image_ids) for run in (a, b)]
    if all(ids) and ids[0] != ids[1]:
        shared = ids[0] & ids[1]
        explained = all(run.may_lack(ids[1 - k] - ids[k]) for k, run in enumerate((a, b)))
        severity = Severity.SAID if explained and shared else Severity.FORBIDS
        counts = [f"{len(images)}, {len(shared)} of both" for images in ids]
        yield Difference("images", counts[0], counts[1], severity, WORDS["set"].cost)


def _of_truth(a: Evaluation, b: Evaluation, metrics: Sequence[str]) -> Iterator[Difference]:
    """Yield the first common image whose annotations differ in a part that the metrics read."""
    other, unknown = {record.image_id: record for record in b.records}, False
    whole = any(registry.get(name).reads_whole_truth for name in metrics)
    for ours in a.records:
        beside = other.get(ours.image_id)
        if beside is None:
            continue
        marks = ours.truth, beside.truth
        if whole and ours.whole_truth and beside.whole_truth:
            marks = ours.whole_truth, beside.whole_truth
        elif whole:
            beyond = {ours.whole_truth, beside.whole_truth} - {"", *marks}
            unknown = unknown or bool(beyond)
        if marks[0] != marks[1] if all(marks) else not _same_totals(ours, beside):
            yield Difference("truth", marks[0], marks[1], Severity.FORBIDS, image=ours.image_id)
            return
    if unknown:
        cost = "one run was saved by an earlier version, which did not look at them"
        known = ["known" if run.records[0].whole_truth else "not known" for run in (a, b)]
        yield Difference("segmentations", known[0], known[1], Severity.SAID, cost)


def _same_totals(a: ImageRecord, b: ImageRecord) -> bool:
    """Return False if the counts show that the annotations differ.

    Official files have counts only.
    """
    for metric in a.counts.keys() & b.counts.keys():
        totals = [np.unique(getattr(r.counts[metric], "total_gt", ())) for r in (a, b)]
        if not np.array_equal(totals[0], totals[1]):
            return False
    return True


class PairDifference(NamedTuple):
    """A difference between two of several runs, by their names."""

    a: str
    b: str
    difference: Difference

    def line(self) -> str:
        """Return the difference in one line, with the names of the runs."""
        difference = self.difference
        forbids = difference.severity is Severity.FORBIDS
        return f"{self.a}, {self.b}: {difference.fault() if forbids else difference.line()}"


def pair_differences(runs: Sequence[Evaluation]) -> list[PairDifference]:
    """List the differences of all pairs of runs. A field of a run is listed for one pair only."""
    listed, known = list[PairDifference](), set[tuple[int, str]]()
    for i, k in sorted(combinations(range(len(runs)), 2), key=lambda pair: (pair[1], pair[0])):
        for difference in comparability(runs[i], runs[k]):
            if (k, difference.field) not in known:
                known.add((k, difference.field))
                listed.append(PairDifference(runs[i].name, runs[k].name, difference))
    return listed


def forbidden(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each difference that makes the runs not comparable."""
    listed = pair_differences(runs)
    return [pair.line() for pair in listed if pair.difference.severity is Severity.FORBIDS]
