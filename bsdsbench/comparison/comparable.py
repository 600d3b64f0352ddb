"""Check that runs are comparable: they need the same images, ground truth and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bsdsbench.comparison.bootstrap import WeightedRun
from bsdsbench.errors import DataError, Setting, refuse_unless_forced
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import equal_counts_notes, pair_differences
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import missing_notes, reference_notes, summarize_reasons
from bsdsbench.scores.curve import WITH_WHOLE_IMAGE
from bsdsbench.text import quantity, shared_names


def refuse_equal_names(what: str, names: Sequence[str]) -> None:
    """Raise DataError if two names are equal. `what` is the plural noun for the error ("runs")."""
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        fault = f"two {what} are named {repeated[0]!r} (or one is given twice)"
        raise DataError(f"{fault}, expected different names")


class ComparableRuns(NamedTuple):
    """Runs that cover the same images, with notes to show to the reader."""

    runs: list[Evaluation]
    notes: list[str]


def comparable(
    runs: Sequence[Evaluation],
    common: bool | None = None,
    force: bool | None = None,
    strict: bool = False,
) -> ComparableRuns:
    """Check that runs are comparable, and restrict them to the images that all of them have.

    common : if True, drop every image that some run lacks. If False, do so only if there is a
        reason for each of these images: it failed or has empty ground truth in the run that lacks
        it, or this run skips images without a prediction. None, of callers without such an option,
        drops nothing, and errors do not suggest it.
    force : if True, report differences in protocol and ground truth as notes instead of raising.
        None, of callers without such an option, is as False, but errors do not suggest it.
    strict : True for a check of a run against its own baseline. Then common=False drops nothing,
        and notes on missing predictions and on runs with equal counts are left out.

    Raises DataError if there are no runs, if a run has no per-image counts, if the images differ
    and may not be dropped, or if protocols or ground truth differ.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to compare")
    for run in runs:
        run.require_records()
    shared_metrics(runs)  # raises if there is none, which `force` does not help
    noted: list[str] = []  # lines on differences in spite of which scores may be compared
    forbidding: list[str] = []  # lines on those that make scores incomparable
    severities_of_missing_images: set[Severity] = set()
    for pair in pair_differences(runs):
        severity = pair.difference.severity
        if pair.difference.field == "images":
            severities_of_missing_images.add(severity)
        elif severity is Severity.FORBIDS:
            forbidding.append(pair.line())
        elif severity is Severity.SAID:
            noted.append(pair.line())
    shared, notes_on_images = list(runs), list[str]()
    if severities_of_missing_images:  # a run lacks images of another
        # SAID: there is a reason for each image that one of the two runs lacks
        is_explained = severities_of_missing_images == {Severity.SAID}
        may_drop = common is True or (common is False and is_explained and not strict)
        shared, notes_on_images = _restrict_to_shared_images(runs, may_drop, common is not None)
    effect_of_force = "" if force is None else "compares them all the same"  # "": not suggested
    refuse_unless_forced(forbidding, bool(force), "such scores are not comparable", effect_of_force)
    notes = [*notes_on_images, *noted]
    for run in runs:
        if run.provenance.official is not None:
            ap_rule = run.protocol.ap_rule
            # `whole_image`: the files have a row for threshold 0, where every pixel is predicted
            if run.protocol.whole_image and ap_rule not in WITH_WHOLE_IMAGE:
                ap_rule += " without the row of threshold 0"
            origin = "read from official files, which do not state the protocol"
            notes.append(f"{run.name}: {origin}; AP by the rule {ap_rule}")
    if not strict:  # a baseline made from the same run has equal counts, which is no mistake
        notes += missing_notes(shared) + equal_counts_notes(shared)
    # Last, the differences that `force` allows; otherwise they were raised above
    return ComparableRuns(shared, [*notes, *reference_notes(shared), *forbidding])


def _restrict_to_shared_images(
    runs: Sequence[Evaluation], may_drop: bool, has_option: bool
) -> ComparableRuns:
    """Drop the images that some run lacks. To be called only if there are such images.

    The field `failed` of a returned run (image id -> why it has no counts) also lists each dropped
    image, with the reason "not in" and the names of the runs that lack it.

    may_drop : if False, raise instead of dropping images
    has_option : True if the caller has the option `common`, which the error then suggests

    Raises DataError if images may not be dropped, or if no image is in all runs.
    """
    ids_of_runs = [set(run.image_ids) for run in runs]
    shared = set.intersection(*ids_of_runs)
    not_shared = sorted(set.union(*ids_of_runs) - shared)
    names = ", ".join(run.name for run in runs)
    problem = f"{names}: {len(not_shared)} images are not in every run, such as {not_shared[0]!r}"
    if not shared or not may_drop:
        lacks = []
        for run, ids in zip(runs, ids_of_runs, strict=True):
            left_out = {k: run.left_out.get(k, "no counts") for k in not_shared if k not in ids}
            if left_out:
                lacks.append(f"{run.name} lacks {summarize_reasons(left_out)}")
        message = f"{problem}; {'; '.join(lacks)}; expected the same images in all"
        if shared and has_option:
            raise DataError(message, fix=Setting("common", True, "compares the shared images"))
        if shared:
            message += " (`compare` can use the shared images)"
        raise DataError(message)
    restricted = []
    for run, ids in zip(runs, ids_of_runs, strict=True):
        failed = dict(run.failed)
        for dropped in sorted(ids - shared):
            runs_and_ids = zip(runs, ids_of_runs, strict=True)
            lacking = [other.name for other, other_ids in runs_and_ids if dropped not in other_ids]
            failed[dropped] = f"not in {', '.join(lacking)}"
        records = [record for record in run.records if record.image_id in shared]
        restricted.append(replace(run, records=records, failed=failed))
    n_shared = quantity(len(shared), "shared image")
    return ComparableRuns(restricted, [f"{problem}; compared on the {n_shared}"])


def shared_metrics(runs: Sequence[Evaluation]) -> list[str]:
    """Return the metrics that every run has. Raises DataError if there are none."""
    metrics = shared_names(run.metrics for run in runs)
    if not metrics:
        have = "; ".join(f"{run.name} has {', '.join(run.metrics)}" for run in runs)
        raise DataError(f"{have}; expected a metric that every run has")
    return metrics


def shared_metric(runs: Sequence[Evaluation], metric: str | None) -> str:
    """Return `metric` or, if it is None, the first metric that every run has.

    Raises DataError if there is no such metric, or if a run lacks `metric`.
    """
    metrics = shared_metrics(runs)
    if metric is None:
        return metrics[0]
    if metric not in metrics:
        expected = f"expected one that all runs have: {', '.join(metrics)}"
        raise DataError(f"metric {metric!r}: {expected}")
    return metric


def unequal_coverage(
    runs: Sequence[WeightedRun], labels: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Describe those of the `scores` that are means over different numbers of values in the runs.

    Means skip undefined values, of which one run may have more than another. `labels` are the names
    of the runs. Returns a dict from score name to a text such as "9 images in A, 10 images in B".
    Other scores, and those that a run lacks, are left out.
    """
    # For each run: {score: {unit of the mean, such as "images": number of defined values}}
    n_defined_of_runs = [run.n_values_averaged() for run in runs]
    texts = dict[str, str]()
    for score in scores:
        by_unit_of_runs = [n_defined.get(score, {}) for n_defined in n_defined_of_runs]
        # A mean of means has several units, such as "classes" and "pairs": the last that differs
        for unit in sorted(by_unit_of_runs[0]):
            numbers = [by_unit.get(unit) for by_unit in by_unit_of_runs]  # None if a run lacks it
            if None not in numbers and len(set(numbers)) > 1:
                pairs = zip(numbers, labels, strict=True)
                texts[score] = ", ".join(f"{n} {unit} in {name}" for n, name in pairs)
    return texts
