"""Combine runs: merge the shards of one run, or take the best counts of several runs.

Some models (UAED, MuGE, SAUGE, DDN) are run at several granularities. For each image and threshold,
their programs use the counts of the run with the highest F, as `best_of` does. This choice uses the
ground truth, so such scores are not comparable with others. SAUGE's program also connects the last
point of the curve to the first. This is omitted here, as it can only add an ODS of about 0.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import attrs
import numpy as np

from bsdsbench.arguments import check_list, kind_of_value
from bsdsbench.errors import DataError, InputWarning, MergeError, warn
from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import changed_sources, comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_columns
from bsdsbench.results.storage import Provenance
from bsdsbench.scores.counts import MatchCounts, counts_by_image
from bsdsbench.scores.curve import PRCurve
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import join_names, shorten, show

_COUNTED, _GROUP_COLUMNS = "set of metrics or classes of errors", "columns of groups"
_PLUGIN_SOURCES = "source of plug-in metrics"
# Properties of a run that can be unknown, if it has no records or was constructed in Python
_MAY_BE_UNKNOWN = (_COUNTED, _GROUP_COLUMNS, _PLUGIN_SOURCES)
_BOUNDARY = registry.DEFAULT_METRICS[0]
_CountsByImage = Mapping[str, Mapping[str, Any]]  # image id -> boundary counts


def merge(runs: Sequence[Evaluation]) -> Evaluation:
    """Merge the shards of one run. The result equals the run without shards bit for bit.

    Parameters
    ----------
    runs : sequence of Evaluation
        All shards of the run, in any order.

    Returns
    -------
    Evaluation
        The whole run. Warnings about all of its files together are issued here.

    Raises
    ------
    MergeError
        If the runs are not all the shards of one run. Every problem is listed.
    DataError
        If the values in the files of all shards have no consistent interpretation.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> gt = sample_ground_truth()
    >>> parts = [bb.evaluate(maps, gt, shard=(part, 2), workers=1) for part in (1, 2)]
    >>> len(parts[0].records), len(bb.merge(parts).records)
    (8, 16)
    """
    runs = check_list(runs, "merge", "a list of runs")
    if not runs or not all(isinstance(run, Evaluation) for run in runs):
        given = ", ".join(kind_of_value(run) for run in runs if not isinstance(run, Evaluation))
        fault = f"merge: {shorten(given) or 'no runs'}, expected the shards of a run"
        raise MergeError(fault, fix="Evaluation.load(OUT) reads one")
    problems = _shard_problems(runs)  # lines, one for each difference such as another protocol
    shards = [str(run.provenance.shard) for run in runs]  # "I/N", or "None" if it is not a shard
    written = re.fullmatch("[1-9][0-9]{0,6}/([1-9][0-9]{0,6})", shards[0])
    n_shards = int(written[1]) if written else 0
    all_shards = [f"{i}/{n_shards}" for i in range(1, n_shards + 1)]
    if sorted(shards) != sorted(all_shards):
        if not n_shards:  # a complete run: the other problems do not matter
            expected = "runs made by `evaluate --shard I/N`, in Python shard=(I, N)"
            fault = f"merge: {runs[0].name} is not a shard, expected {expected}"
            raise MergeError(fault, fix="for complete runs: --best-of or --splits")
        problems.append(f"merge: shards {join_names(shards)}, expected {join_names(all_shards)}")
    if problems:
        raise MergeError("\n".join(problems), problems)
    failed = {image_id: reason for run in runs for image_id, reason in run.failed.items()}
    merged = replace(
        runs[0],
        records=[record for run in runs for record in run.records],  # `Evaluation` sorts them
        provenance=_join_provenance([run.provenance for run in runs]),
        failed=dict(sorted(failed.items())),
        kept=0,  # the first shard's number of records that were reused from an earlier call
    )
    folders, places = dict[str, None](), set[str]()  # as the user wrote them, and as absolute paths
    for run in runs:
        if run.provenance.pred:
            folders[show(run.provenance.pred)] = None
            places.add(run.places.get("pred", run.provenance.pred))
    # Different folders may hold the maps of two epochs. It is no mistake if a single folder has two
    # paths, as on the machines of a cluster, or if a detector wrote the maps: it has one per shard
    if min(len(folders), len(places)) > 1 and not runs[0].provenance.detector:
        fault = f"merge: the shards read predictions from {join_names([*folders])}"
        warn(InputWarning(f"{fault}, expected the same maps in all of them"))
    for warning in merged.verdict():  # of the values in all files together
        warn(warning)
    return merged


def _join_provenance(shards: Sequence[Provenance]) -> Provenance:
    """Combine the provenance of all shards of a run.

    Lists of left-out images are concatenated and sorted, and the date is the latest. If a detector
    made the maps, `detector` keeps only "taken_over", the total number of maps that were reused
    from earlier calls. Fields that belong to a shard become None; others are those of the first.
    """
    detectors = [shard.detector for shard in shards if shard.detector]
    n_taken_over = sum(int(detector.get("taken_over") or 0) for detector in detectors)
    return attrs.evolve(
        shards[0],
        shard=None,
        truth=None,
        empty_gt=tuple(sorted(image_id for shard in shards for image_id in shard.empty_gt)),
        no_prediction=tuple(sorted(i for shard in shards for i in shard.no_prediction)),
        date=max(shard.date or "" for shard in shards) or None,
        detector=ReadOnlyDict(taken_over=n_taken_over) if detectors else shards[0].detector,
    )


def _shard_problems(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each property in which a run differs from the first, but shards must not.

    A property in _MAY_BE_UNKNOWN is not compared if it is None (unknown) in one of the two runs.
    """
    problems = []
    expected = _shared_properties(runs[0])
    for number, run in enumerate(runs, 1):
        for name, value in _shared_properties(run).items():
            is_unknown = name in _MAY_BE_UNKNOWN and None in (value, expected[name])
            if value == expected[name] or is_unknown:
                continue
            details = ""
            if name == "protocol":
                lines = [d.line() for d in comparability(runs[0], run) if d.of_protocol]
                details = f" ({'; '.join(lines)})" if lines else ""
            elif name == _PLUGIN_SOURCES:
                details = f" ({', '.join(changed_sources(runs[0], run))} was changed)"
            problems.append(
                f"run {number} ({run.name}): its {name} differs from that of run 1{details}"
            )
    return problems


def _shared_properties(run: Evaluation) -> dict[str, object]:
    """Return the properties that must be equal in all shards of a run, by their name in messages.

    The value is None if the property is unknown, as the columns of groups (scene, patient ..) of a
    run without images.
    """
    # What is known of the function that made the maps; None if the maps were given
    detector = run.provenance.detector
    count_names = None  # metric -> names of its arrays of counts, such as "matches"
    if run.records:
        counts = run.records[0].counts  # their names are the same in all records of a run
        count_names = {metric: [*counts[metric]] for metric in run.metrics}
    return {
        "name": run.name,
        "protocol": run.protocol,
        _COUNTED: count_names,  # the key is "set of metrics or classes of errors"
        "ground truth": run.provenance.truth,  # a hash of the files of all shards
        _GROUP_COLUMNS: group_columns(run.records) if run.records else None,
        _PLUGIN_SOURCES: run.provenance.sources,  # of metrics that are not in this package
        "list of images": run.provenance.images,  # a hash of the ids of all shards
        # The function and the user's label of its maps. The other fields, such as the versions of
        # Python, may differ between machines
        "detector": [detector.get(key) for key in ("function", "tag")] if detector else None,
    }


def best_of(runs: Sequence[Evaluation], name: str | None = None) -> Evaluation:
    """Combine runs by taking, for each image and threshold, the counts of the run with the best F.

    - runs: two or more runs over the same images.
    - name: the name of the combined run, by default that of the first run. A suffix such as
      "(best of 3 by the ground truth)" is added.

    The provenance holds the names of the runs (`best_of`). If the runs come from result files of
    other programs and their counts start at threshold 0, the AP rule becomes "edter", as in these
    programs: it uses this first point of the curve, where every pixel is predicted.

    Raises DataError if there are fewer than two runs, or if a run has no boundary counts. Raises
    MergeError if the protocols, images, thresholds or numbers of annotated pixels differ, or if
    there are several tolerances.
    """
    if len(runs) < 2:
        raise DataError(f"best of {len(runs)} runs: expected two or more")
    first_run = runs[0]
    tables: list[_CountsByImage] = [counts_by_image(run.records, _BOUNDARY) for run in runs]
    for run, table in zip(runs, tables, strict=True):
        _check_same_images(first_run, tables[0], run, table)
    records = []
    form = f"best-of-{len(runs)}"  # in place of the format of the predictions, such as "soft8"
    for record in first_run.records:
        counts_of_runs = [table[record.image_id] for table in tables]
        thresholds = record.counts[_BOUNDARY].thresholds
        matches = np.stack([counts["matches"] for counts in counts_of_runs])  # (M, T, 4)
        f_of_runs = PRCurve.of_counts(thresholds, matches).f  # (M, T)
        chosen = f_of_runs.argmax(axis=0)  # (T,) indices of runs; ties go to the first run
        best = {_BOUNDARY: MatchCounts(thresholds, matches[chosen, np.arange(thresholds.size)])}
        records.append(replace(record, counts=best, fingerprint="", seconds=0.0, form=form))
    provenance = Provenance(
        gt=first_run.provenance.gt,
        valid=first_run.provenance.valid,
        pred_kind=first_run.provenance.pred_kind,
        best_of=tuple(run.name for run in runs),
    )
    protocol = first_run.protocol
    # Result files of programs do not state the protocol. `whole_image`: it starts at threshold 0
    if not protocol.stated and protocol.whole_image:
        # With the name, which `replace` marks as changed otherwise
        protocol = protocol.replace(ap_rule="edter", name=protocol.name)
    title = f"{name or first_run.name} (best of {len(runs)} by the ground truth)"
    return Evaluation(protocol, title, records, provenance, places=first_run.places)


def _check_same_images(
    first_run: Evaluation, first_table: _CountsByImage, run: Evaluation, table: _CountsByImage
) -> None:
    """Raise MergeError if protocol, images, thresholds or numbers of annotated pixels differ.

    The error is raised too if `run` was counted at several tolerances. `first_table` and `table`
    are the boundary counts of the two runs: image id -> name -> array.
    """
    for difference in comparability(first_run, run):
        if difference.severity is Severity.FORBIDS and difference.field != "images":
            raise MergeError(f"{first_run.name}, {run.name}: {difference.fault()}")
    if len(run.protocol.tolerances) > 1:
        tolerances = ", ".join(run.protocol.tolerance_names)
        raise MergeError(f"{run.name}: tolerances {tolerances}, expected one")
    if unshared := sorted(first_table.keys() ^ table.keys()):
        fault = f"image {unshared[0]!r} is not in both it and {first_run.name}"
        raise MergeError(f"{run.name}: {fault}, expected the same")
    for image_id, counts in first_table.items():
        for key in ("thresholds", "total_gt"):
            if not np.array_equal(counts[key], table[image_id][key]):
                fault = f"image {image_id!r} has other {key} than in {first_run.name}"
                raise MergeError(f"{run.name}: {fault}, expected the same")
