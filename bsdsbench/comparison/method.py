"""Methods: runs of one method with different seeds, folds or splits, and scores over them."""

from __future__ import annotations

import glob
import statistics
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import islice
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple, NoReturn

from attrs import frozen

from bsdsbench.arguments import check_list, kind_of_value
from bsdsbench.comparison.comparable import refuse_equal_names
from bsdsbench.errors import DataError
from bsdsbench.loaders.formats.pictures import natural_sort_key
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.tables.table import Estimate


@frozen(eq=False, init=False)
class Method:
    """A method and its runs, which differ in seed, fold or split.

    Parameters
    ----------
    name : str
        The name in tables.
    runs : sequence of Evaluation or path
        One or more runs, or their folders; "ref:NAME" stands for a reference run.

    Raises
    ------
    DataError
        If there are no runs, or if a folder holds none.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.Method("HED", ["ref:hed"]).n_runs
    1
    """

    name: str
    runs: tuple[Evaluation, ...]
    seeds: tuple[str, ...]  # a label of each run, such as "seed0"; see `__init__`

    def __init__(self, name: str, runs: Sequence[Evaluation | str | Path]) -> None:
        """Load the runs, and label each by what distinguishes its folder, such as "seed0".

        The label is the part of the folder's path that differs between the runs. For a run given as
        an Evaluation, its name takes the place of the path.
        """
        given = check_list(runs, f"method {name}", "a list of runs or of their folders")
        if not given:
            raise DataError(f"method {name}: no runs, expected at least one")
        names = [run.name if isinstance(run, Evaluation) else str(run) for run in given]
        paths = [Path(text).parts or (text,) for text in names]  # the components of each path
        labels = [path[-1] for path in paths]  # if depths differ, or if all paths are equal
        if len({len(path) for path in paths}) == 1:
            levels = enumerate(zip(*paths, strict=True))  # (depth, component of each path)
            # The depths at which the paths differ: that of "seed0" in out/seed0/ours
            differing = [depth for depth, components in levels if len(set(components)) > 1]
            if differing:
                labels = ["/".join(path[depth] for depth in differing) for path in paths]
        self.__attrs_init__(name, tuple(as_runs(given)), tuple(labels))

    @property
    def n_runs(self) -> int:
        """Return the number of runs."""
        return len(self.runs)

    @property
    def left_out(self) -> dict[str, str]:
        """Return the images that any run left out, sorted, with the first such run's reason."""
        reasons: dict[str, str] = {}
        for run in reversed(self.runs):
            reasons |= run.left_out
        return dict(sorted(reasons.items()))

    @property
    def distinct(self) -> bool:
        """Return True if the seeds of all runs differ, so that runs can be paired by seed."""
        return len({*self.seeds}) == self.n_runs

    def in_order(self) -> Method:
        """Return the method with its runs sorted by seed in natural order ("2" before "10").

        If two runs have the same seed, the order is not changed.
        """
        order = list(range(self.n_runs))
        if self.distinct:
            order.sort(key=lambda k: natural_sort_key(self.seeds[k]))
        return self._with([self.runs[k] for k in order], tuple(self.seeds[k] for k in order))

    def _with(self, runs: Iterable[Evaluation], seeds: tuple[str, ...]) -> Method:
        """Return a method of the same name with these runs and seeds."""
        changed = object.__new__(Method)
        changed.__attrs_init__(self.name, tuple(runs), seeds)
        return changed

    @property
    def labels(self) -> list[str]:
        """Return a label for each run: METHOD/SEED, or METHOD if there is a single run."""
        return [self.name] if self.n_runs == 1 else [f"{self.name}/{s}" for s in self.seeds]


class Spread(Enum):
    """The measure of spread shown with a mean over runs."""

    SD = "sd"
    RANGE = "range"
    SE = "se"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        """Raise DataError for a value that is not one of these."""
        words = ", ".join(spread.value for spread in cls)
        raise DataError(f"spread {kind_of_value(value)}: expected one of {words}")

    @property
    def words(self) -> str:
        """Describe a cell with this spread, such as "mean over runs [smallest, largest]"."""
        if self is Spread.RANGE:
            return "mean over runs [smallest, largest]"
        deviation = "deviation" if self is Spread.SD else "error"
        return f"mean ± standard {deviation} over runs (number of runs)"

    @property
    def note(self) -> str:
        """Return `words` as a sentence."""
        return f"{self.words[0].upper()}{self.words[1:]}."


class ScoresOfRuns(NamedTuple):
    """One score of each run of a method, in the order of the runs. Undefined scores are NaN."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over runs, or NaN if a score is undefined."""
        return statistics.mean(self.values)

    @property
    def sd(self) -> float:
        """Return the standard deviation (n - 1); NaN for a single run or an undefined score."""
        is_defined = len(self.values) > 1 and not isnan(self.mean)
        return statistics.stdev(self.values) if is_defined else nan

    @property
    def se(self) -> float:
        """Return the standard error of the mean; NaN if `sd` is NaN."""
        return self.sd / len(self.values) ** 0.5

    def cell(self, spread: Spread) -> Estimate:
        """Return the mean over runs and its spread as a table cell.

        A range is shown as an interval, other spreads as "± x" with the number of runs. For a
        single run, or an undefined mean, no spread is shown.
        """
        n = len(self.values)
        if n == 1 or isnan(self.mean):
            return Estimate(self.mean)
        if spread is Spread.RANGE:
            return Estimate(self.mean, min(self.values), max(self.values))
        return Estimate(self.mean, spread=self.sd if spread is Spread.SD else self.se, n=n)


def replace_runs(methods: Sequence[Method], runs: Sequence[Evaluation]) -> list[Method]:
    """Return copies of the methods with other `runs`, which come method by method."""
    remaining = iter(runs)
    return [method._with(islice(remaining, method.n_runs), method.seeds) for method in methods]


def all_runs(methods: Sequence[Method]) -> list[Evaluation]:
    """Return the runs of all methods, method by method, each named by its label."""
    labels = [label for method in methods for label in method.labels]
    return as_runs([run for method in methods for run in method.runs], labels)


def as_methods(
    runs: Iterable[Evaluation | str | Path | Method],
    names: Sequence[str] | None = None,
    groups: object = None,
    group_by: str | None = None,
) -> list[Method]:
    """Load runs as methods of a single run, beside methods that are given as such.

    The runs of a method are sorted by seed, and all runs are prepared for a comparison as `as_runs`
    does: reference runs get the rules of the others, and images are assigned to groups. `names` has
    a name for each run that is not given as a Method.
    """
    given = check_list(runs, "runs", "a list of runs, of their folders or of methods")
    single_runs = iter(as_runs([run for run in given if not isinstance(run, Method)], names))
    methods = []
    for method in given:
        if not isinstance(method, Method):
            run = next(single_runs)
            method = Method(run.name, [run])
        methods.append(method.in_order())
    return replace_runs(methods, as_runs(all_runs(methods), None, groups, group_by))


def load_methods(specs: Sequence[str]) -> list[Method]:
    """Load methods given as strings NAME=RUNS,RUNS, such as "ours=out/seed*"."""
    return [Method(name, folders) for name, folders in parse_methods(specs).items()]


def parse_methods(specs: Sequence[str]) -> dict[str, list[str]]:
    """Parse strings NAME=RUNS,RUNS to a dict from the name of a method to its runs.

    RUNS is a folder, a wildcard pattern of folders (out/ours/seed*), a file written by `share`, a
    URL, or ref:NAME for a reference run. Patterns are expanded. Raises DataError if a string does
    not have this form, if a pattern matches nothing, or if two methods have the same name.
    """
    folders: dict[str, list[str]] = {}
    for spec in specs:
        name, _, patterns = spec.partition("=")
        if not (name and patterns):
            expected = "expected NAME=OUT, NAME='out/seed*', NAME=ref:NAME"
            raise DataError(f"--method {spec!r}: {expected}")
        folders[name] = matching_folders(patterns.split(","), f"--method {name}")
    refuse_equal_names("methods", [spec.partition("=")[0] for spec in specs])
    return folders


def matching_folders(patterns: Sequence[str], option: str) -> list[str]:
    """Expand wildcard patterns to run folders and exported run files (.npz), in natural order.

    A path without wildcards is kept even if it does not exist. If a pattern matches nothing, raises
    DataError that names the command-line `option`.
    """
    folders = list[str]()
    for pattern in patterns:
        matching = [pattern]
        if glob.has_magic(pattern):
            paths = sorted(glob.glob(pattern), key=natural_sort_key)
            matching = [path for path in paths if Path(path).is_dir() or path.endswith(".npz")]
        if not matching:
            raise DataError(f"{option}: no folder fits {pattern!r}, expected some")
        folders += matching
    return folders
