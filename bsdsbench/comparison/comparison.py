"""The result of comparing runs: scores with intervals, differences, per-image scores and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np

from bsdsbench.comparison.comparison_tables import comparison_tables
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread
from bsdsbench.comparison.ranks import Ranks
from bsdsbench.comparison.significance import holm
from bsdsbench.metrics import registry
from bsdsbench.results.score_names import chosen_scores, full_name, parse_score
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table
from bsdsbench.text import grouped

_SCHEMA = "bsdsbench.comparison/1"


@dataclass(frozen=True, slots=True)
class Interval:
    """A score of a run or method, with the ends of its confidence interval."""

    run: str
    score: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """The difference of a score between two runs or methods, with its interval and p-values."""

    a: str  # name of a run or method
    b: str
    score: str  # METRIC.SCORE
    value: float  # the score of `a` minus the score of `b`
    low: float  # ends of the interval
    high: float
    p: float  # before Holm's correction; NaN if untested
    p_holm: float  # after Holm's correction over the family of the score, see `holm_by_score`
    least: float = nan  # the smallest difference that is significant with probability 0.8
    # The official benchmark's pixel matching is randomized and misses pairs
    solver: bool = False  # True if the difference is smaller than `solver_moves`
    solver_moves: float = 0.0  # how much that matching alone can change the difference

    def significant(self, level: float) -> bool:
        """Return True if p_holm < 1 - level and the official matching alone cannot explain it."""
        return self.p_holm < 1 - level and not self.solver


def holm_together(differences: Iterable[ScoreDifference]) -> list[ScoreDifference]:
    """Return copies of the differences whose p-values are corrected together by Holm's method."""
    uncorrected = list(differences)
    p_holm = holm([difference.p for difference in uncorrected])
    return [replace(d, p_holm=p) for d, p in zip(uncorrected, p_holm, strict=True)]


def holm_by_score(differences: Iterable[ScoreDifference]) -> list[ScoreDifference]:
    """Correct the p-values of each family by Holm's method, and return the differences by family.

    A family consists of the differences of one score between all pairs of runs or methods. The
    differences of the same score of all parts of a metric, such as the Dice of every class, form
    one family, separate from that of the overall score.
    """
    named = [(parse_score(difference.score), difference) for difference in differences]
    families = grouped(((n.metric, n.column.key, n.part != ""), d) for n, d in named)
    return [corrected for family in families.values() for corrected in holm_together(family)]


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """The scores of one image in two runs, for example its best F."""

    image_id: str
    a: float
    b: float
    difference: float  # a - b
    influence: float  # fall of the difference on all images without this image (or its cluster)


class WinsTiesLosses(NamedTuple):
    """The numbers of images on which one run is better than, equal to and worse than another."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class ImagePairs:
    """Two runs compared image by image, for one metric."""

    a: str
    b: str
    metric: str
    effects: tuple[ImageEffect, ...]  # one per image whose score is defined in both runs, by id

    @property
    def record(self) -> WinsTiesLosses:
        """Return the numbers of images on which run `a` wins, ties and loses against run `b`."""
        n_higher = sum(effect.difference > 0 for effect in self.effects)
        n_lower = sum(effect.difference < 0 for effect in self.effects)
        n_ties = len(self.effects) - n_higher - n_lower
        # Images are compared by the first per-image score of the metric
        lower_is_better = registry.get(self.metric).image_columns[0].lower
        n_wins, n_losses = (n_lower, n_higher) if lower_is_better else (n_higher, n_lower)
        return WinsTiesLosses(n_wins, n_ties, n_losses)

    @property
    def effect_size(self) -> float:
        """Return Cohen's d: the mean difference per image over its standard deviation (n - 1).

        It is 0 if the standard deviation is 0, or if there are fewer than two images.
        """
        d = np.array([e.difference for e in self.effects])
        spread = float(d.std(ddof=1)) if d.size > 1 else 0.0
        return float(d.mean()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class Comparison(TabularResult):
    """The result of `compare`.

    Parameters
    ----------
    names : tuple of str
        The names of the runs or methods, in the order of the call.
    scores : tuple of str
        The names of the scores: METRIC.SCORE, or METRIC.PART.SCORE for classes and other parts.
    intervals : tuple of Interval
        One for each score and each run or method.
    differences : tuple of ScoreDifference
        One for each score and each pair of runs or methods.
    ranks : dict of str to Ranks
        For each score, the ranks of the runs or methods over the bootstrap samples.
    letters : dict of str to tuple of str
        For each score, the letters of each run or method. Those that share a letter do not differ
        significantly. One without a p-value has the letters "".
    images : tuple of ImagePairs
        The image-by-image comparison of each pair of runs, for each metric. It is empty if a method
        has several runs.
    methods : tuple of Method
        The methods, with their runs sorted by seed. A run is a method of a single run.
    of_runs : dict of (str, str) to ScoresOfRuns
        The scores of the single runs, by (method name, METRIC.SCORE).
    paired : frozenset of (str, str)
        The pairs of methods whose runs have the same seeds, by name.
    n_images, n_boot, seed, level, test
        The number of images, and parameters of the call.
    protocol, reading : str
        One line that describes the protocol (several are separated by " / "), and one that
        describes how the prediction files were interpreted.
    notes : tuple of str
        Notes for the reader, such as forced differences. Images left out are in `left_out`.
    shown : tuple of str
        The scores to show in tables.
    cluster, n_clusters
        The column of the clusters and their number. If single images were drawn, "" and 0.
    left_out : dict of str to dict
        For each run or method, the images that are not in its scores: image id -> reason, such as
        that another run lacks the image.
    signatures : dict of str to str
        The signature of each run, by METHOD/SEED, or by METHOD if it is its only run.
    late_starts : dict of str to str
        For each AP, a note if the curve of a run starts above recall 0. AP counts the part below
        the start as 0.
    coverage : dict of str to str
        For each score that is a mean over different numbers of values in the runs, a text with
        these numbers; see `unequal_coverage`.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> compared = bb.compare(["ref:hed", "ref:cob"], n_boot=200)
    >>> round(compared.interval_of("ref:hed", "ods").value, 3)
    0.78
    >>> [table.key for table in compared.tables()]
    ['scores', 'differences', 'images']
    """

    names: tuple[str, ...]
    scores: tuple[str, ...]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    ranks: Mapping[str, Ranks]
    letters: Mapping[str, tuple[str, ...]]
    images: tuple[ImagePairs, ...]
    methods: tuple[Method, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    paired: frozenset[tuple[str, str]]
    n_images: int
    n_boot: int
    seed: int
    level: float
    test: str
    protocol: str
    reading: str
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    cluster: str
    n_clusters: int
    left_out: Mapping[str, Mapping[str, str]]
    signatures: Mapping[str, str]
    late_starts: Mapping[str, str]
    coverage: Mapping[str, str]

    @property
    def has_several_runs(self) -> bool:
        """Return True if a method has several runs, which were resampled too."""
        return any(method.n_runs > 1 for method in self.methods)

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs of methods with too few seeds for any p-value to be significant.

        With R seeds, the two runs of each seed can be exchanged in 2^R ways, so p is at least
        2/2^R.
        """
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    @property
    def percent(self) -> str:
        """Return the confidence level of the intervals as text, such as "95 %"."""
        return f"{100 * self.level:g} %"

    def interval_of(self, name: str, score: str) -> Interval:
        """Return the Interval of a run or method for a score, such as "boundary.ods" or "ods".

        Raises KeyError if the name or the score is unknown.
        """
        score = full_name(score, self.scores)
        for interval in self.intervals:
            if (interval.run, interval.score) == (name, score):
                return interval
        raise KeyError(f"{name}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> ScoreDifference:
        """Return the difference a - b of a score, such as "boundary.ods" or "ods".

        A stored b - a is returned with reversed sign. Raises KeyError if a name or the score is
        unknown.
        """
        score = full_name(score, self.scores)
        for d in self.differences:
            if d.score == score and (d.a, d.b) == (a, b):
                return d
            if d.score == score and (d.a, d.b) == (b, a):
                return replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
        raise KeyError(f"{a}, {b}, {score}")

    def __repr__(self) -> str:
        names = [m.name if m.n_runs == 1 else f"{m.name} ({m.n_runs})" for m in self.methods]
        return f"<Comparison of {', '.join(names)} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the tables of scores and, for several runs, of differences and wins.

        If a method has several runs, the first table has the means over runs with their `spread`:
        "sd" is the standard deviation, "se" the standard error, and "range" the smallest and
        largest value.
        """
        return comparison_tables(self, Spread(spread))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as a dict for JSON. Undefined and infinite numbers become None.

        The keys are the field names, and "schema". Each entry of `images` also has "effect_size"
        and "win_tie_loss" (numbers of images). In place of `methods` and `of_runs`, "runs" lists
        the method, the label and the scores of each run; it is empty if all methods have one run.
        """
        values = asdict(replace(self, methods=(), of_runs={}, paired=frozenset()))
        del values["methods"], values["of_runs"]
        for pair, row in zip(self.images, values["images"], strict=True):
            row |= {"effect_size": pair.effect_size, "win_tie_loss": list(pair.record)}
        runs = []
        for method in self.methods if self.has_several_runs else ():
            for k, label in enumerate(method.labels):
                scores = {
                    score: self.of_runs[method.name, score].values[k] for score in self.scores
                }
                runs.append({"method": method.name, "run": label, "scores": scores})
        values |= {"schema": _SCHEMA, "runs": runs, "paired": sorted(self.paired)}
        # JSON has no NaN and no infinite numbers
        return dict(json.loads(json.dumps(values), parse_constant=lambda constant: None))

    def only(self, scores: Sequence[str]) -> Comparison:
        """Return the comparison with tables that show only some scores, such as "ods", or "all".

        Raises DataError if a score is unknown.
        """
        return replace(self, shown=chosen_scores(scores, self.scores))
