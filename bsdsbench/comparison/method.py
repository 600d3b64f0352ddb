"""A method: one or more runs of it, and how the command line names them."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from attrs import frozen

from bsdsbench.arguments import given_list
from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import natural
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs


@frozen(eq=False, init=False)
class Method:
    """A method: one or more runs of it, by seed, fold or split.

    Parameters
    ----------
    name : str
        Its name in tables.
    runs : sequence of Evaluation or path
        Its runs, or their folders; what `ref:NAME` stands for, too.

    Raises
    ------
    DataError
        For no runs, or folders without one.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.Method("HED", ["ref:hed"]).n_runs
    1
    """

    name: str
    runs: tuple[Evaluation, ...]
    seeds: tuple[str, ...]  # the names of the runs' folders, or their own

    def __init__(self, name: str, runs: Sequence[Evaluation | str | Path]) -> None:
        given = given_list(runs, f"method {name}", "a list of runs or of their folders")
        if not given:
            raise DataError(f"method {name}: no runs, expected at least one")
        seeds = [run.name if isinstance(run, Evaluation) else Path(run).name for run in given]
        self.__attrs_init__(name, tuple(as_runs(given)), tuple(seeds))

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.runs)

    @property
    def labels(self) -> list[str]:
        """A name for each run: that of the method, with the seed's where there are several."""
        several = self.n_runs > 1
        return [f"{self.name}: {seed}" if several else self.name for seed in self.seeds]


def with_runs(methods: Sequence[Method], runs: Sequence[Evaluation]) -> list[Method]:
    """Return the methods with these runs, all in one list, in place of their own."""
    changed, rest = list[Method](), iter(runs)
    for method in methods:
        changed.append(object.__new__(Method))
        own_runs = tuple(islice(rest, method.n_runs))
        changed[-1].__attrs_init__(method.name, own_runs, method.seeds)
    return changed


def runs_of(methods: Sequence[Method]) -> list[Evaluation]:
    """Return the runs of all methods, each by its label."""
    labels = [label for method in methods for label in method.labels]
    return as_runs([run for method in methods for run in method.runs], labels)


def methods_of(specs: Sequence[str]) -> list[Method]:
    """Return the methods that NAME=RUNS,RUNS texts name, see `folders_of`. Raises DataError."""
    return [Method(name, folders) for name, folders in folders_of(specs)]


def folders_of(specs: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the name of each method and the folders of its runs, of NAME=RUNS,RUNS texts.

    RUNS is a folder, a pattern of folders (out/ours/seed*), a file of `share`, an address or
    ref:NAME. Raises DataError for a text of another form, and a pattern that no folder fits.
    """
    methods = []
    for spec in specs:
        name, equals, patterns = spec.partition("=")
        if not (name and equals and patterns):
            raise DataError(
                f"--method {spec!r}: expected NAME=OUT, NAME='out/seed*', NAME=ref:NAME"
            )
        methods.append((name, matching_folders(patterns.split(","), f"--method {name}")))
    return methods


def matching_folders(patterns: Sequence[str], option: str) -> list[str]:
    """Return what the patterns match, in natural order; others are names already.

    Raises DataError for a pattern that no folder fits, which names the option.
    """
    folders = list[str]()
    for pattern in patterns:
        matching = sorted(glob.glob(pattern), key=natural) if glob.has_magic(pattern) else [pattern]
        if not matching:
            raise DataError(f"{option}: no folder fits {pattern!r}, expected some")
        folders += matching
    return folders
