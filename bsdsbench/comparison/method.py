"""Groups of runs: the runs of one method with different seeds, or of one data set's splits."""

from __future__ import annotations

import glob
import statistics
from collections import Counter
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
from bsdsbench.loaders.formats.pictures import natural_sort_key
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability, equal_counts_notes
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import default_scores, flat_scores
from bsdsbench.results.storage import Provenance
from bsdsbench.tables.table import Cell, Estimate, Field, Table
from bsdsbench.text import counted, shared_names


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
        given = given_list(runs, f"method {name}", "a list of runs or of their folders")
        if not given:
            raise DataError(f"method {name}: no runs, expected at least one")
        names = [run.name if isinstance(run, Evaluation) else str(run) for run in given]
        paths = [Path(text).parts or (text,) for text in names]  # the components of each path
        seeds = [path[-1] for path in paths]  # the labels if depths differ, or if all are equal
        if len({len(path) for path in paths}) == 1:
            # The positions at which the paths differ: that of "seed0" in out/seed0/ours
            differing = [k for k in range(len(paths[0])) if len({path[k] for path in paths}) > 1]
            if differing:
                seeds = ["/".join(path[k] for k in differing) for path in paths]
        self.__attrs_init__(name, tuple(as_runs(given)), tuple(seeds))

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
        name, equals, patterns = spec.partition("=")
        if not (name and equals and patterns):
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


# ---- splits --------------------------------------------------------------------------------------


class Splits(NamedTuple):
    """The scores over all splits of a data set."""

    table: Table  # two rows: means over the splits with their spread, and pooled scores
    pooled: Evaluation  # one run with the images of all splits; their ids are SPLIT/ID


def splits(runs: Sequence[Evaluation], name: str = "") -> Splits:
    """Compute mean scores over the splits of a data set, and scores pooled over all images.

    Papers with random splits (Multicue, cross-validation) report the mean over the splits. Pooled
    scores are computed from the summed counts of all images; an image in several splits counts once
    for each. The table has the default scores that all splits have. `name` is the name of the
    pooled run, by default that of the first run.

    Raises DataError if there are no runs, if a run has no per-image counts, or if the runs differ
    in protocol, metrics or kinds of counts.
    """
    pooled = _pool(runs, name)
    scores_of_splits = [flat_scores(run) for run in runs]
    pooled_scores = flat_scores(pooled)
    # Of the scores that all splits have, those that tables show
    shown = default_scores(runs[0], shared_names([*scores_of_splits, pooled_scores]))
    means: list[Cell] = [f"mean over {counted(len(runs), 'split')}"]
    for score in shown:
        values = ScoresOfRuns(tuple(scores[score] for scores in scores_of_splits))
        means.append(values.cell(Spread.SD))  # printed as "0.780 ± 0.004 (5)"
    n_images = counted(len(pooled.records), "image")
    pooled_row: list[Cell] = [f"pooled, {n_images}", *(pooled_scores[score] for score in shown)]
    # Neither of the two rows is better than the other
    fields = [replace(score_field(score), higher_is_better=None) for score in shown]
    # Splits may number their images alike. Only with the same annotations, of which `truth` is a
    # fingerprint ("" if unknown), is it the same image
    images = Counter((r.image_id, r.truth) for run in runs for r in run.records if r.truth)
    n_repeated = sum(n > 1 for n in images.values())
    # "Mean ± standard deviation over splits (number of splits)." In the note, these are runs
    note = Spread.SD.note.replace("runs", "splits")
    note += " Pooled: the counts of all images are summed"
    if n_repeated:
        note += f"; {counted(n_repeated, 'image')} in several splits count in each"
    table = Table(
        "splits",
        f"{pooled.name}: scores over splits",
        [Field("scores", "Scores"), *fields],
        [means, pooled_row],
        caption=f"protocol {runs[0].described}",
        reading=pooled.read_as,  # a line on how the files were interpreted
        notes=[f"{note}.", *equal_counts_notes(runs)],
    )
    return Splits(table, pooled)


def _pool(runs: Sequence[Evaluation], name: str) -> Evaluation:
    """Merge the runs of all splits into one run, by default with the name of the first run.

    Its image ids are those of the runs, so that the pooled folds of two methods can be compared. If
    an id is in several runs, all become RUN/ID. Raises DataError as `splits` does.
    """
    if not runs:
        raise DataError("no runs given, expected one of each split")
    if lacking := [run.name for run in runs if not run.records]:
        raise DataError(f"{', '.join(lacking)}: no counts per image")
    first = runs[0]
    # Names of each metric's count arrays. Additional tolerances and error classes add arrays.
    expected = {metric: counts.keys() for metric, counts in first.records[0].counts.items()}
    n_of_id = Counter(image_id for run in runs for image_id in run.image_ids)
    are_distinct = max(n_of_id.values()) == 1
    records = []
    for run in runs:
        pair = f"{first.name}, {run.name}"
        # Differences of the images are expected, but not of a setting on which a score depends
        for difference in comparability(first, run):
            if difference.of_protocol and difference.severity is Severity.FORBIDS:
                raise DataError(f"{pair}: {difference.fault()}")  # "protocols differ in max_dist"
        names = {metric: counts.keys() for metric, counts in run.records[0].counts.items()}
        if names != expected:
            raise DataError(f"{pair}: other counts, expected the same of all splits")
        prefix = "" if are_distinct else f"{run.name}/"
        records += [replace(r, image_id=prefix + r.image_id) for r in run.records]
    # Of the provenance, only the kind of predictions holds for all splits: folders and dates differ
    origin = Provenance(pred_kind=first.provenance.pred_kind)
    return Evaluation(first.protocol, name or first.name, records, origin)
