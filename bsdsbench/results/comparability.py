"""Decide whether the scores of two runs are comparable.

The result is a list of all differences between the runs, each with its effect on a comparison. Only
settings that the common metrics of the runs use matter. For example, two `pixel` runs with
different matching tolerances are comparable, because `pixel` does not use the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from attrs import evolve

from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import WORDS, Difference, Severity
from bsdsbench.protocol.tasks import Task
from bsdsbench.scores.counts import Values
from bsdsbench.text import join_names

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

EQUAL_COUNTS = "equal counts in every image, as from one set of predictions."
# Fields in which a reference run, the stored counts of a published method, may differ from others.
# They depend on the parameters of its method, and on how the official program matches.
OWN_OF_REFERENCES = {"thresholds", "match", "nms", "operator", "ods_rule"}


def comparability(a: Evaluation, b: Evaluation | Task) -> list[Difference]:
    """List the differences between two runs, with the effect of each on a comparison of scores.

    Each difference has a severity: `Severity.FORBIDS` if scores must not be compared because of it,
    `SAID` if they may be compared with a note, and `IGNORED` if no common score depends on it. The
    runs are comparable if no difference has the severity `FORBIDS`.

    Parameters
    ----------
    a : Evaluation
        A run.
    b : Evaluation or Task
        Another run, or a task whose published results are compared with the run.

    Returns
    -------
    list of Difference
        The `field` of a difference is a protocol field, an option of a metric, or one of these:

        - "metrics": the runs have no metric in common. Then no other difference is listed.
        - "images": the runs have different images.
        - "truth": an image has different annotations.
        - "reading": the predicted masks are binary in one run and gray in the other.
        - "pred": the predictions have different storage formats.
        - "valid", "ann", "ms", "match": another setting of the run, under its key in the signature.
        - "source of metric NAME": the source file of a plug-in metric was changed.

    Raises
    ------
    DataError
        If `a` is not a run, or `b` neither a run nor a task.

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
    for run in (a, b):
        # `evaluation` imports this module indirectly, so its class is recognised by a field
        if not hasattr(run, "provenance") and not (run is b and isinstance(run, Task)):
            raise DataError(f"comparability: {kind_of_value(run)}, expected runs (Evaluation)")
    if isinstance(b, Task):
        return _task_differences(a, b)
    shared = [name for name in a.metrics if name in b.metrics]
    if not shared:
        names = ", ".join(a.metrics), ", ".join(b.metrics)
        return [Difference("metrics", *names, Severity.FORBIDS)]
    return [
        *_differing_settings(a, b, shared),
        *_reading_differences(a, b),
        *_image_differences(a, b),
        *_truth_differences(a, b, shared),
    ]


def _differing_settings(a: Evaluation, b: Evaluation, names: Sequence[str]) -> Iterator[Difference]:
    """Yield a Difference for each setting in which the signatures of the runs differ.

    It is IGNORED if it affects no score of the named metrics in one of the runs. If one is a
    reference run, so are differences in the settings OWN_OF_REFERENCES, which belong to its method.
    Another Difference is yielded for each plug-in among the metrics whose source file was changed.
    """
    ignored = OWN_OF_REFERENCES if a.reference or b.reference else set[str]()
    fewest, most = sorted(len(run.protocol.thresholds) for run in (a, b))
    if 4 * fewest < most:  # so few that scores are lower, whatever the parameter is
        ignored = ignored - {"thresholds"}
    unused_a, unused_b = (registry.unused_settings(names, run.protocol) for run in (a, b))
    # `differences` gives the severity IGNORED to the settings that are `unused` in a signature
    signature = evolve(a.signature, unused=unused_a | unused_b)
    for difference in signature.differences(b.signature):
        if difference.field in ("set", "gt"):  # images and annotations are compared one by one
            continue
        if difference.field in ignored:
            difference = evolve(difference, severity=Severity.IGNORED)
        yield difference
    for name in changed_sources(a, b):
        if name in names:
            hash_a, hash_b = (str((run.provenance.sources or {})[name]) for run in (a, b))
            cost = "its file was changed between the runs, and may count otherwise"
            yield Difference(f"source of metric {name}", hash_a, hash_b, Severity.SAID, cost)


def changed_sources(a: Evaluation, b: Evaluation) -> list[str]:
    """Return the names of plug-in metrics whose source files have different hashes in two runs.

    Metrics whose hash (`Provenance.sources`) is missing from either run are skipped.
    """
    sources_a, sources_b = (run.provenance.sources or {} for run in (a, b))
    return [name for name, source in sources_a.items() if source != sources_b.get(name, source)]


def _task_differences(run: Evaluation, task: Task) -> list[Difference]:
    """List the differences between a run and a task: protocol, ground truth, number of images.

    All of them forbid a comparison with the task's published results. There are none if the run
    completes the task (`Evaluation.tasks`). The protocol is not compared if it is unknown
    (`stated` is False), or if the run is a reference run, which has thresholds of its own. The
    number of images is compared only if the fingerprint of the run's ground truth is unknown.
    """
    if any(task.name == known.name for known in run.tasks):
        return []
    differences = []
    if run.protocol.stated and run.protocol.name != task.protocol and run.reference is None:
        protocols = f"protocol {run.protocol.name}", task.protocol  # of the run, of the task
        differences.append(Difference("name", *protocols, Severity.FORBIDS))
    n_images = len(run.records)
    if run.identity and run.identity.fingerprint != task.fingerprint:
        # The sets in words: "bsds500-test, 200 of 200 images" and the name of the task's
        differences.append(Difference("truth", run.set_line, task.set, Severity.FORBIDS))
    elif run.identity is None and n_images not in (0, task.images):  # 0: a run without records
        expected = f"the {task.images} images" if task.images else "the images"
        numbers = f"{n_images} images", f"{expected} of {task.set}"
        differences.append(Difference("images", *numbers, Severity.FORBIDS))
    return differences


def _reading_differences(a: Evaluation, b: Evaluation) -> Iterator[Difference]:
    """Yield a Difference if the predicted masks are binary in one run and gray in the other.

    Gray masks (more than a few distinct values) are binarised when they are read, and their outline
    depends on the threshold. Nothing is yielded unless both runs predict masks, and the pixel
    values of all predictions were examined when they were read. Scores may be compared with a note
    (`Severity.SAID`).
    """
    contents = []  # of the masks of both runs, in words
    for run in (a, b):
        reader = registry.readers(run.metrics)[0]  # the metric that decides what the files mean
        reading = reader.readings(run.protocol, run.provenance.pred_kind or "").pred
        if reading.kind is not Kind.MASK:
            return
        # Of each prediction: flags of its values, and the number of examined maps
        evidence = [record.pred for record in run.records]
        if not all(e.maps > 0 for e in evidence):
            return
        has_gray = any(e.values & Values.GRAY for e in evidence)
        contents.append("gray, cut" if has_gray else "two values")  # cut: thresholded
    if contents[0] != contents[1]:
        cost = "gray masks were resized or are soft: where they are cut moves their outline"
        yield Difference("reading", contents[0], contents[1], Severity.SAID, cost)


def _image_differences(a: Evaluation, b: Evaluation) -> Iterator[Difference]:
    """Yield a Difference if the runs have different images; none if either run has no records.

    The difference forbids a comparison, unless the runs share an image and there is a reason for
    each image that one of them lacks: the image failed or has empty ground truth in the run that
    lacks it, or this run skips images without a prediction. Then it only needs a note (SAID). Its
    texts are, for example, "200, 190 of both" and "190, 190 of both".
    """
    ids_a, ids_b = frozenset(a.image_ids), frozenset(b.image_ids)
    if not ids_a or not ids_b or ids_a == ids_b:
        return
    shared = ids_a & ids_b
    is_explained = True
    for run, lacking in ((a, ids_b - ids_a), (b, ids_a - ids_b)):
        left_out = {*run.failed, *run.provenance.empty_gt}
        is_explained &= run.provenance.missing == "skip" or lacking <= left_out
    severity = Severity.SAID if is_explained and shared else Severity.FORBIDS
    counts = [f"{len(ids)}, {len(shared)} of both" for ids in (ids_a, ids_b)]
    cost = WORDS["set"].cost  # the effect in words: "scores of other images are not comparable"
    yield Difference("images", counts[0], counts[1], severity, cost)


def _truth_differences(a: Evaluation, b: Evaluation, names: Sequence[str]) -> Iterator[Difference]:
    """Yield a Difference for the first common image whose annotations differ, if there is one.

    Of the following, the first that is known for both runs is compared:

    1. The fingerprint of all annotations, only if a named metric uses more than boundaries.
    2. The fingerprint of the boundaries.
    3. The number of ground-truth pixels in the counts of each common metric (`total_gt`).
    """
    records_b = {record.image_id: record for record in b.records}
    reads_all = any(registry.get(name).reads_whole_truth for name in names)
    for record_a in a.records:
        record_b = records_b.get(record_a.image_id)
        if record_b is None:
            continue
        truths = record_a.truth, record_b.truth  # fingerprints of the boundaries, "" if unknown
        if reads_all and record_a.whole_truth and record_b.whole_truth:
            truths = record_a.whole_truth, record_b.whole_truth
        differ = truths[0] != truths[1]
        if not all(truths):  # unknown: compare the numbers of annotated pixels
            differ = False
            for name in record_a.counts.keys() & record_b.counts.keys():
                both = record_a.counts[name], record_b.counts[name]
                # Counts at several thresholds repeat the number, hence `unique`
                total_a, total_b = (np.unique(getattr(c, "total_gt", ())) for c in both)
                differ = differ or not np.array_equal(total_a, total_b)
        if differ:  # `Difference.line` names only the image, so that texts "" do no harm
            yield Difference("truth", *truths, Severity.FORBIDS, image=record_a.image_id)
            return


class PairDifference(NamedTuple):
    """A difference between the runs named `a` and `b`."""

    a: str
    b: str
    difference: Difference

    def line(self) -> str:
        """Describe the difference in one line that starts with the names of the runs."""
        difference = self.difference
        forbids = difference.severity is Severity.FORBIDS
        return f"{self.a}, {self.b}: {difference.fault() if forbids else difference.line()}"


def pair_differences(runs: Sequence[Evaluation]) -> list[PairDifference]:
    """Compare each run with all earlier ones, and list the differences.

    If a run differs from several earlier runs in the same field, such as "max_dist", only the
    difference from the first of them is listed.
    """
    pairs = dict[tuple[int, str], PairDifference]()  # (index of the run, field) -> difference
    for k, run in enumerate(runs):
        for earlier in runs[:k]:
            for difference in comparability(earlier, run):
                pair = PairDifference(earlier.name, run.name, difference)
                pairs.setdefault((k, difference.field), pair)
    return list(pairs.values())


def forbidden(runs: Sequence[Evaluation]) -> list[str]:
    """Return one line for each of the `pair_differences` that forbids a comparison."""
    pairs = pair_differences(runs)
    return [pair.line() for pair in pairs if pair.difference.severity is Severity.FORBIDS]


def equal_counts_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each group of runs with equal counts in every image.

    One run was given twice, or the seed of a method was never set. The standard deviation over such
    runs is too small.
    """
    groups: list[list[Evaluation]] = []  # runs with equal counts
    for run in runs:
        for group in groups:
            if _have_equal_counts(group[0], run):
                group.append(run)
                break
        else:
            groups.append([run])
    equal = [join_names([run.name for run in group]) for group in groups if len(group) > 1]
    return [f"{names}: {EQUAL_COUNTS}" for names in equal]


def _have_equal_counts(a: Evaluation, b: Evaluation) -> bool:
    """Return True if two runs have the same images with equal counts of the same metrics."""
    if not a.records or a.image_ids != b.image_ids or a.metrics != b.metrics:
        return False
    pairs = zip(a.records, b.records, strict=True)
    return all(x.counts[name].equals(y.counts[name]) for x, y in pairs for name in a.metrics)
