"""Runs from folders: ours (result.json), or official result files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.manifest import is_run
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.official import ReportedRun, reported_run
from bsdsbench.runs.store import FOLDER as RECORDS


def load_run(folder: str | Path, name: str | None = None) -> Evaluation | ReportedRun:
    """A run from its folder: ours, or anyone's official files.

    `name` replaces the name that is stored, or the folder's. Raises FileFormatError if it is
    neither.
    """
    path = Path(folder)
    if is_run(path):
        run = Evaluation.load(path)
        return replace(run, name=name) if name else run
    if not path.is_dir():
        raise FileFormatError(f"{path}: not a folder, expected the folder of a finished run")
    if (path / RECORDS).is_dir():
        raise FileFormatError(
            f"{path}: a run that was not finished; the command that began it goes on with it"
        )
    found = reported_run(path, name)
    return found if isinstance(found, ReportedRun) else Evaluation(*found)


def load_runs(folders: Iterable[str | Path], names: Iterable[str] | None = None) -> list[Any]:
    """Runs (Evaluation or ReportedRun) from folders, each with a name of its own.

    Raises DataError listing every bad folder.
    """
    paths = [Path(f) for f in folders]
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
    return _disambiguated(runs, paths)


def as_runs(runs: Iterable[Any]) -> list[Any]:
    """Runs, of which some may be given as folders.

    Folders of one name get the path beside it. Raises DataError for a single path in place of a
    list, and as `load_runs`.
    """
    if isinstance(runs, str | Path):
        raise DataError(f"runs {str(runs)!r}: expected a list, such as [{str(runs)!r}, ...]")
    given = given_list(runs, "runs", "a list of runs or of their folders")
    for run in given:
        if not isinstance(run, str | Path) and not hasattr(run, "records"):
            raise DataError(f"runs: {kind_of_value(run)}, expected runs or their folders")
    folders = [run for run in given if isinstance(run, str | Path)]
    loaded = iter(load_runs(folders))
    return [next(loaded) if isinstance(run, str | Path) else run for run in given]


def _disambiguated(runs: list[Any], paths: list[Path]) -> list[Any]:
    """Runs of one name get their folder's name beside it."""
    names = [run.name for run in runs]
    return [
        replace(run, name=f"{run.name} ({path})") if names.count(run.name) > 1 else run
        for run, path in zip(runs, paths, strict=True)
    ]
