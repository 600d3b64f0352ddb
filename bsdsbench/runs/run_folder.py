"""Finished runs from their folders, each with a name of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.folder import is_run, refuse_unfinished
from bsdsbench.runs.official import ReportedRun, reported_run
from bsdsbench.runs.references import reference_run
from bsdsbench.runs.run_identity import PREFIX, by_rules_of


def load_run(folder: str | Path, name: str | None = None) -> Evaluation | ReportedRun:
    """A run from its folder: ours, or anyone's official files; or a reference run, `ref:NAME`.

    `name` replaces the name that is stored, or the folder's. Raises FileFormatError if it is
    neither, DataError for an unknown reference run.
    """
    path = Path(folder)
    if isinstance(folder, str) and folder.startswith(PREFIX):
        run = reference_run(folder)
    elif is_run(path):
        run = Evaluation.load(path)
    elif not path.is_dir():
        raise FileFormatError(f"{path}: not a folder, expected the folder of a finished run")
    else:
        refuse_unfinished(path)
        return reported_run(path, name)
    return replace(run, name=name) if name else run


def load_runs(folders: Iterable[str | Path], names: Iterable[str] | None = None) -> list[Any]:
    """Runs (Evaluation or ReportedRun) from folders or `ref:NAME`, each with a name of its own.

    Reference runs have the rules of AP and ODS of the others.

    Raises DataError listing every bad folder.
    """
    paths = list(folders)
    given: list[str | None] = list(names) if names else [None] * len(paths)
    if len(given) != len(paths):
        raise DataError(f"{len(given)} names for {len(paths)} runs, expected one each")
    runs: list[Any] = []
    faults: list[DataError] = []
    for path, name in zip(paths, given, strict=True):
        try:
            runs.append(load_run(path, name))
        except DataError as error:
            faults.append(error)
    if faults:
        raise DataError.collect(faults)
    return by_rules_of(named_apart(runs, paths))


def as_runs(runs: Iterable[Any]) -> list[Any]:
    """Runs, of which some may be given as folders.

    Folders of one name get the last folders of their paths beside it. Raises DataError for a single
    path in place of a list, and as `load_runs`.
    """
    if isinstance(runs, str | Path):
        raise DataError(f"runs {str(runs)!r}: expected a list, such as [{str(runs)!r}, ...]")
    given = given_list(runs, "runs", "a list of runs or of their folders")
    places = []
    for k, run in enumerate(given):
        if isinstance(run, str | Path):
            places.append(k)
        elif not hasattr(run, "records"):
            raise DataError(f"runs: {kind_of_value(run)}, expected runs or their folders")
    if places:
        for k, run in zip(places, load_runs(given[k] for k in places), strict=True):
            given[k] = run
    return by_rules_of(given)


def named_apart(runs: list[Any], paths: Sequence[str | Path]) -> list[Any]:
    """Runs that share a name get the last folders of their paths beside it, as few as differ."""
    places = [(run, Path(path).absolute().parts) for run, path in zip(runs, paths, strict=True)]
    named = []
    for run, own in places:
        same = [parts for other, parts in places if other.name == run.name]
        if len(same) > 1:
            lengths = (n for n in range(1, len(own)) if len({p[-n:] for p in same}) == len(same))
            run = replace(run, name=f"{run.name} ({'/'.join(own[-next(lengths, 1) :])})")
        named.append(run)
    return named
