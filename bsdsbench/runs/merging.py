"""Shards of one run joined into one, after all that must fit has been compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import MergeError
from bsdsbench.protocol.settings import clipped
from bsdsbench.runs.evaluation import EMPTY, Evaluation
from bsdsbench.runs.score_tables import KEY as SPEED
from bsdsbench.runs.score_tables import joined_speed

FEW = 10  # missing shards that are named


def merge(runs: Sequence[Evaluation]) -> Evaluation:
    """Join the shards of one run; the result is bit for bit that of the undivided run.

    Parameters
    ----------
    runs : sequence of Evaluation
        The shards, each once.

    Returns
    -------
    Evaluation
        The undivided run.

    Raises
    ------
    MergeError
        If they are not all the parts of one whole.

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
    runs = given_list(runs, "merge", "a list of runs")
    for each in runs:
        if not isinstance(each, Evaluation):
            raise MergeError(f"merge: {kind_of_value(each)}, expected the shards of a run")
    if not runs:
        raise MergeError("merge: no runs given, expected the shards of one run")
    shards: dict[str, str] = {}
    problems: list[str] = []
    first = runs[0]
    for number, each in enumerate(runs, 1):
        label = f"run {number} ({each.name})"
        part = each.provenance.get("shard")
        if part is not None and not _is_part(part):
            problems.append(f"{label}: shard {clipped(part)}, expected I/N as --shard gives it")
        elif part is None:
            problems.append(f"{label}: not a shard, expected a run made with --shard I/N")
        elif part in shards:
            problems.append(f"{label}: shard {part} again, expected each once")
        else:
            shards[part] = label
        problems += _mismatches(first, each, label)
    if not problems:
        count = int(next(iter(shards)).partition("/")[2])
        if len(shards) != count:
            lost = (f"{i}/{count}" for i in range(1, count + 1) if f"{i}/{count}" not in shards)
            few, more = list(islice(lost, FEW)), count - len(shards) - FEW
            told = f"{', '.join(few)}{f' and {more} more' if more > 0 else ''}"
            problems.append(f"merge: shards {told} are not there, expected all {count}")
    if problems:
        raise MergeError("\n".join(problems), problems)
    return _joined(runs)


def _is_part(value: Any) -> bool:
    """Whether a value that a file gave is I/N with 1 <= I <= N, as --shard gives it."""
    found = re.fullmatch("([1-9][0-9]{0,6})/([1-9][0-9]{0,6})", str(value))
    return isinstance(value, str) and bool(found and int(found[1]) <= int(found[2]))


def _mismatches(first: Evaluation, other: Evaluation, label: str) -> list[str]:
    problems = []
    if other.protocol != first.protocol:
        problems.append(f"{label}: another protocol than run 1, expected the same")
    if other.records and first.records and other.metrics != first.metrics:
        problems.append(f"{label}: another set of metrics than run 1, expected the same")
    if other.provenance.get("images") != first.provenance.get("images"):
        problems.append(f"{label}: a part of another list of images than run 1, expected the same")
    if "" not in (_parts(other), _parts(first)) and _parts(other) != _parts(first):
        problems.append(f"{label}: {_parts(other)} shards, expected {_parts(first)} as in run 1")
    return problems


def _parts(run: Evaluation) -> str:
    return str(run.provenance.get("shard", "")).partition("/")[2]


def _joined(runs: Sequence[Evaluation]) -> Evaluation:
    origin: dict[str, Any] = {k: v for k, v in runs[0].provenance.items() if k != "shard"}
    if SPEED in origin:
        origin[SPEED] = joined_speed(runs)
    if empty := sorted(image_id for each in runs for image_id in each.empty):
        origin[EMPTY] = empty
    return Evaluation(
        runs[0].protocol,
        runs[0].name,
        [record for each in runs for record in each.records],
        origin,
        dict(sorted((k, v) for each in runs for k, v in each.failed.items())),
        all(each.own for each in runs),
        runs[0].places,
    )
