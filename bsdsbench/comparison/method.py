"""Several runs that belong together: one for each seed of a method, or each split of a data set."""

from __future__ import annotations

import glob
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from attrs import frozen

from bsdsbench.arguments import given_list
from bsdsbench.comparison.comparable import refuse_equal_names
from bsdsbench.comparison.comparison_tables import score_field
from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import natural_sort_key
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import flat_scores, usual_scores
from bsdsbench.results.storage import Provenance
from bsdsbench.tables.table import Cell, Estimate, Field, Table
from bsdsbench.text import counted


@frozen(eq=False, init=False)
class Method:
    """A method and its runs, one or more, which differ in the seed, fold or split.

    Parameters
    ----------
    name : str
        The name in tables.
    runs : sequence of Evaluation or path
        The runs, or their folders; "ref:NAME" stands for a reference run.

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
    seeds: tuple[str, ...]  # of each run: what tells it apart from the other runs

    def __init__(self, name: str, runs: Sequence[Evaluation | str | Path]) -> None:
        """Load the runs, and find what tells them apart, which is called their seeds.

        The seed of a run is what differs in the path of its folder from the other runs, such as
        "seed0". If a run is given as an Evaluation, its name is used in place of the path.
        """
        given = given_list(runs, f"method {name}", "a list of runs or of their folders")
        if not given:
            raise DataError(f"method {name}: no runs, expected at least one")
        paths = [run.name if isinstance(run, Evaluation) else str(run) for run in given]
        self.__attrs_init__(name, tuple(as_runs(given)), _differing_parts(paths))

    @property
    def n_runs(self) -> int:
        """Return the number of runs."""
        return len(self.runs)

    @property
    def left_out(self) -> dict[str, str]:
        """Return the images that any run left out, with the first such run's reason, sorted."""
        reasons: dict[str, str] = {}
        for run in reversed(self.runs):
            reasons |= run.left_out
        return dict(sorted(reasons.items()))

    @property
    def distinct(self) -> bool:
        """Return True if all runs have different seeds, so that they can be paired by seed."""
        return len({*self.seeds}) == self.n_runs

    def in_order(self) -> Method:
        """Return the method with its runs in the natural order of their seeds ("2" before "10").

        If two runs have the same seed, the order stays as it is.
        """
        order = list(range(self.n_runs))
        if self.distinct:
            order.sort(key=lambda k: natural_sort_key(self.seeds[k]))
        return self._with([self.runs[k] for k in order], tuple(self.seeds[k] for k in order))

    def _with(self, runs: Iterable[Evaluation], seeds: tuple[str, ...]) -> Method:
        """Return a method of the same name with these runs and their seeds."""
        changed = object.__new__(Method)
        changed.__attrs_init__(self.name, tuple(runs), seeds)
        return changed

    @property
    def labels(self) -> list[str]:
        """Return a label for each run: METHOD/SEED, or METHOD if there is a single run."""
        return [self.name] if self.n_runs == 1 else [f"{self.name}/{s}" for s in self.seeds]


class Spread(Enum):
    """The spread that is shown beside a mean over runs."""

    SD = "sd"
    RANGE = "range"
    SE = "se"

    @property
    def words(self) -> str:
        """Return what a cell contains, in words: a mean with its spread."""
        if self is Spread.RANGE:
            return "mean over runs [smallest, largest]"
        deviation = "deviation" if self is Spread.SD else "error"
        return f"mean ± standard {deviation} over runs (number of runs)"

    @property
    def note(self) -> str:
        """Return the description as a sentence."""
        return f"{self.words[0].upper()}{self.words[1:]}."


class ScoresOfRuns(NamedTuple):
    """One score of the runs of a method, in the order of the runs, NaN where it is undefined."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over runs, or NaN if a score is undefined."""
        return statistics.mean(self.values)

    @property
    def sd(self) -> float:
        """Return the standard deviation (n - 1), or NaN if undefined or for a single run."""
        is_defined = len(self.values) > 1 and not isnan(self.mean)
        return statistics.stdev(self.values) if is_defined else nan

    @property
    def se(self) -> float:
        """Return the standard error of the mean over runs."""
        return self.sd / len(self.values) ** 0.5

    def cell(self, spread: Spread) -> Estimate:
        """Return the mean over runs with the chosen spread, as a cell of a table.

        A range is shown as an interval, other spreads as "± x" with the number of runs. A single
        run has no spread.
        """
        n = len(self.values)
        if n < 2:
            return Estimate(self.mean)
        if spread is Spread.RANGE:
            return Estimate(self.mean, min(self.values), max(self.values))
        return Estimate(self.mean, spread=self.sd if spread is Spread.SD else self.se, n=n)


def _differing_parts(names: Sequence[str]) -> tuple[str, ...]:
    """Return, for each path, the components in which the paths differ, joined by "/".

    For out/seed0/ours and out/seed1/ours, these are "seed0" and "seed1". If the paths have
    different depths, or if they are all equal, the last component of each path is returned instead.
    """
    paths = [Path(name).parts or (name,) for name in names]  # the components of each path
    if len({len(path) for path in paths}) == 1:
        # For each position at which the paths differ, their components
        differing = [parts for parts in zip(*paths, strict=True) if len({*parts}) > 1]
        if differing:
            return tuple("/".join(parts) for parts in zip(*differing, strict=True))
    return tuple(path[-1] for path in paths)


def with_runs(methods: Sequence[Method], runs: Sequence[Evaluation]) -> list[Method]:
    """Return copies of the methods with other runs, ordered as by `runs_of`."""
    remaining = iter(runs)
    return [method._with(islice(remaining, method.n_runs), method.seeds) for method in methods]


def runs_of(methods: Sequence[Method]) -> list[Evaluation]:
    """Return the runs of all methods, method by method, each named by its label."""
    labels = [label for method in methods for label in method.labels]
    return as_runs([run for method in methods for run in method.runs], labels)


def methods_of(specs: Sequence[str]) -> list[Method]:
    """Load the methods that texts of the form NAME=RUNS,RUNS specify; see `folders_of`."""
    return [Method(name, folders) for name, folders in folders_of(specs)]


def folders_of(specs: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Parse texts of the form NAME=RUNS,RUNS, and return the names of methods with their runs.

    RUNS is a folder, a pattern of folders (out/ours/seed*), a file written by `share`, a URL, or
    ref:NAME for a reference run. Patterns are replaced by the folders that match them. Raises
    DataError if a text is not of this form, if a pattern matches nothing, or if two methods have
    the same name.
    """
    methods = []
    for spec in specs:
        name, equals, patterns = spec.partition("=")
        if not (name and equals and patterns):
            raise DataError(
                f"--method {spec!r}: expected NAME=OUT, NAME='out/seed*', NAME=ref:NAME"
            )
        methods.append((name, matching_folders(patterns.split(","), f"--method {name}")))
    refuse_equal_names("methods", [name for name, _ in methods])
    return methods


def matching_folders(patterns: Sequence[str], option: str) -> list[str]:
    """Return the folders and shared files (.npz) that match the patterns, in natural order.

    A path without wildcards is kept, even if there is no such folder. Raises DataError, which names
    the command-line `option`, if a pattern matches nothing.
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


# ---- splits --------------------------------------------------------------------------------------


class Splits(NamedTuple):
    """The scores of the splits of a data set together."""

    table: Table  # a row of means over the splits with their spread, and a row of pooled scores
    pooled: Evaluation  # one run of the images of all splits, whose ids are SPLIT/ID


def splits(runs: Sequence[Evaluation], name: str = "") -> Splits:
    """Compute the mean scores over the splits of a data set, and the scores of all images pooled.

    Papers with random splits (Multicue, cross-validation) report the mean over the splits. Pooled
    scores come from the summed counts of all images instead; an image that is in several splits
    counts once for each. The table has the scores that tables show and that all splits have. The
    pooled run has the given name, or that of the first run.

    Raises DataError if there are no runs, if a run has no counts per image, or if protocols,
    metrics or kinds of counts differ.
    """
    pooled = _pool(runs, name)
    first = runs[0]
    scores_of_splits = [flat_scores(run) for run in runs]
    pooled_scores = flat_scores(pooled)
    shared = [s for s in scores_of_splits[0] if all(s in scores for scores in scores_of_splits)]
    shown = [score for score in usual_scores(first, shared) if score in pooled_scores]
    means: list[Cell] = [f"mean over {counted(len(runs), 'split')}"]
    for score in shown:
        values = ScoresOfRuns(tuple(scores[score] for scores in scores_of_splits))
        means.append(values.cell(Spread.SD))
    n_images = counted(len(pooled.records), "image")
    pooled_row: list[Cell] = [f"pooled, {n_images}", *(pooled_scores[score] for score in shown)]
    fields = [replace(score_field(score), higher_is_better=None) for score in shown]
    note = Spread.SD.note.replace("runs", "splits")
    table = Table(
        "splits",
        f"{pooled.name}: scores over splits",
        [Field("scores", "Scores"), *fields],
        [means, pooled_row],
        caption=f"protocol {first.described}",
        reading=pooled.read_as,
        notes=[f"{note} Pooled: the counts of all images are summed."],
    )
    return Splits(table, pooled)


def _pool(runs: Sequence[Evaluation], name: str) -> Evaluation:
    """Return one run of the images of all splits, whose ids are SPLIT/ID.

    Without a name, it gets that of the first run. Raises DataError as `splits` does.
    """
    if not runs:
        raise DataError("no runs given, expected one of each split")
    if lacking := [run.name for run in runs if not run.records]:
        raise DataError(f"{', '.join(lacking)}: no counts per image")
    first = runs[0]
    labels = [run.name for run in as_runs(runs)]
    # The names of each metric's counts. Further tolerances and error classes add names.
    expected = {metric: counts.keys() for metric, counts in first.records[0].counts.items()}
    records = []
    for run, label in zip(runs, labels, strict=True):
        for difference in comparability(first, run):
            if difference.of_protocol and difference.severity is Severity.FORBIDS:
                raise DataError(f"{first.name}, {label}: {difference.fault()}")
        names = {metric: counts.keys() for metric, counts in run.records[0].counts.items()}
        if names != expected:
            raise DataError(f"{first.name}, {label}: other counts, expected the same of all splits")
        records += [replace(r, image_id=f"{label}/{r.image_id}") for r in run.records]
    origin = Provenance(pred_kind=first.provenance.pred_kind)
    return Evaluation(first.protocol, name or first.name, records, origin)
