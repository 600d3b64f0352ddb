"""Runs as callers give them: evaluations, folders, files, reference runs; with distinct names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bsdsbench.arguments import given_list, kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.references import with_common_rules
from bsdsbench.results.sharing import is_address


def as_runs(
    runs: Iterable[Evaluation | str | os.PathLike[str]],
    names: Iterable[str] | None = None,
    groups: object = None,
    group_by: str | None = None,
) -> list[Evaluation]:
    """Load runs given as folders, files or `ref:NAME`, and give them distinct names.

    Folders of one name get beside it what their paths do not have in common. Reference runs get the
    AP and ODS rules of the first other run, and those of the benchmark where their own differ.
    Their counts allow any, except that combinations of parameters cannot be interpolated. `groups`
    and `group_by` are those of all their images. Raises DataError that lists every bad folder.
    """
    given = given_list(runs, "runs", "a list of runs or of their folders")
    new_names = list(names) if names else [None] * len(given)
    if len(new_names) != len(given):
        raise DataError(f"{len(new_names)} names for {len(given)} runs, expected one each")
    loaded, faults, places = [], [], {}
    for k, (run, name) in enumerate(zip(given, new_names, strict=True)):
        try:
            if isinstance(run, str | Path):
                places[k] = run if is_address(run) else os.path.abspath(run)
                run = Evaluation.load(run)
            elif not isinstance(run, Evaluation):
                raise DataError(f"runs: {kind_of_value(run)}, expected runs or their folders")
            loaded.append(replace(run, name=name) if name else run)
        except DataError as error:
            faults.append(error)
    if faults:
        raise DataError.collect(faults)
    shown = [run.name for run in loaded]
    for k, place in places.items():
        same = [other for i, other in places.items() if shown[i] == shown[k]]
        if len(same) > 1:
            differing = place
            if not any(map(is_address, same)):
                differing = Path(os.path.relpath(place, os.path.commonpath(same))).as_posix()
            loaded[k] = replace(loaded[k], name=f"{shown[k]} ({differing})")
    others = {image_id for run in loaded for image_id in (*run.image_ids, *run.left_out)}
    loaded = [run.with_groups(groups, group_by, others) for run in loaded]
    return with_common_rules(loaded)
