"""The result of comparing runs: scores with intervals, differences, images, and their tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from typing import Any

import numpy as np

from bsdsbench.comparison.comparison_tables import comparison_tables
from bsdsbench.comparison.ranks import Ranks
from bsdsbench.comparison.significance import holm
from bsdsbench.metrics import registry
from bsdsbench.results.score_names import chosen_scores, full_name
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table

_SCHEMA = "bsdsbench.comparison/1"


def without_nan(content: Mapping[str, object]) -> dict[str, object]:
    """Return content as plain JSON values, with None for NaN and infinite numbers."""
    return dict(json.loads(json.dumps(content), parse_constant=lambda constant: None))


@dataclass(frozen=True, slots=True)
class Interval:
    """A score of a run, with its interval."""

    run: str
    score: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """The difference of a score between two runs, with its interval and p-values."""

    a: str  # name of a run or method
    b: str
    score: str  # METRIC.SCORE
    value: float  # the score of `a` minus the score of `b`
    low: float  # ends of the interval
    high: float
    p: float  # before Holm's correction; NaN if untested
    p_holm: float  # after Holm's correction over the family of the score
    least: float = nan  # the smallest difference that is significant with probability 0.8
    # The official benchmark's program that matches pixels makes random choices and misses pairs
    solver: bool = False  # True if the difference is smaller than `solver_moves`
    solver_moves: float = 0.0  # how far that program can move the difference

    def significant(self, level: float) -> bool:
        """Return True if p is below 1 - level and the solver cannot have made the difference."""
        return self.p_holm < 1 - level and not self.solver


def correct_p(differences: Iterable[ScoreDifference]) -> list[ScoreDifference]:
    """Return copies of the differences, with their p-values corrected together by Holm's method."""
    uncorrected = list(differences)
    p_holm = holm([difference.p for difference in uncorrected])
    return [replace(d, p_holm=p) for d, p in zip(uncorrected, p_holm, strict=True)]


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """The scores of one image in two runs, such as its best F."""

    image_id: str
    a: float
    b: float
    difference: float  # a - b
    influence: float  # how much the difference on all images would fall without it or its cluster


@dataclass(frozen=True, slots=True)
class ImagePairs:
    """Two runs compared image by image, for one metric."""

    a: str
    b: str
    metric: str
    effects: tuple[ImageEffect, ...]  # of the images with a value in both runs, sorted by id

    @property
    def record(self) -> tuple[int, int, int]:
        """Return the numbers of images on which run `a` wins, ties and loses, in this order."""
        n_higher = sum(effect.difference > 0 for effect in self.effects)
        n_lower = sum(effect.difference < 0 for effect in self.effects)
        n_ties = len(self.effects) - n_higher - n_lower
        lower_is_better = registry.get(self.metric).image_columns[0].lower
        return (n_lower, n_ties, n_higher) if lower_is_better else (n_higher, n_ties, n_lower)

    @property
    def effect_size(self) -> float:
        """Return Cohen's d, the mean difference per image over its standard deviation (n - 1).

        It is 0 if the deviation is 0, or if there are fewer than two images.
        """
        d = np.array([e.difference for e in self.effects])
        spread = float(d.std(ddof=1)) if d.size > 1 else 0.0
        return float(d.mean()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class ComparedScores(TabularResult):
    """The fields that comparisons of runs and comparisons of methods have in common.

    Parameters
    ----------
    names : tuple of str
        The names of the runs or methods, in the order of the call.
    scores : tuple of str
        The scores, METRIC.SCORE, or METRIC.PART.SCORE of classes and other parts.
    intervals : tuple of Interval
        For each score and each run or method.
    differences : tuple of ScoreDifference
        For each score and each pair of runs or methods.
    ranks : dict of str to Ranks
        The ranks of the runs or methods over the bootstrap samples, by score.
    n_images, n_boot, seed, level
        The number of images, and parameters of the call.
    protocol, reading : str
        How images were counted (several protocols are separated by " / "), and how the files of the
        runs were read, in words.
    notes : tuple of str
        What a reader has to know, besides `left_out`.
    shown : tuple of str
        The scores in tables; if empty, all scores.
    cluster, n_clusters
        The column of clusters and the number of clusters that were drawn; "" and 0 if single images
        were.
    left_out : dict of str to dict
        For each run or method, the images that are in none of its scores, with the reason, such as
        that another run lacks the image.
    """

    names: tuple[str, ...]
    scores: tuple[str, ...]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    ranks: Mapping[str, Ranks]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    reading: str
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    cluster: str
    n_clusters: int
    left_out: Mapping[str, Mapping[str, str]]

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs, of a `MethodComparison`, for which no p-value could be significant."""
        return set()

    @property
    def scores_shown(self) -> tuple[str, ...]:
        """Return the scores in tables: those that were chosen, or all."""
        return self.shown or self.scores

    @property
    def percent(self) -> str:
        """Return the level of the intervals as text, such as "95 %"."""
        return f"{100 * self.level:g} %"

    def interval_of(self, name: str, score: str) -> Interval:
        """Return a score of a run or method, such as "boundary.ods" or "ods", with its interval.

        Raises KeyError if the name or the score is unknown.
        """
        score = full_name(score, self.scores)
        for interval in self.intervals:
            if (interval.run, interval.score) == (name, score):
                return interval
        raise KeyError(f"{name}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> ScoreDifference:
        """Return the difference a - b of a score, such as "boundary.ods" or "ods".

        A stored difference b - a is reversed. Raises KeyError if a name or the score is unknown.
        """
        score = full_name(score, self.scores)
        for d in self.differences:
            if d.score == score and (d.a, d.b) == (a, b):
                return d
            if d.score == score and (d.a, d.b) == (b, a):
                return replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
        raise KeyError(f"{a}, {b}, {score}")


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Comparison(ComparedScores):
    """The comparison that `compare` returns: `ComparedScores` with six more fields.

    Parameters
    ----------
    letters : dict of str to tuple of str
        The letters of each run, by score. Runs that share a letter do not differ significantly. A
        run without a p-value has the letters "".
    images : tuple of ImagePairs
        Each pair of runs image by image, for each metric.
    test : str
        The source of the p-values, as in `compare`.
    signatures : tuple of str
        The signature of each run.
    late_starts : dict of str to str
        A note for each AP, if the curve of a run starts above recall 0. AP counts the part below
        the start as 0.
    coverage : dict of str to str
        For each score that is a mean over unequal numbers of values in the runs, these numbers in
        words; see `fewer_values`.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> compared = bb.compare(["ref:hed", "ref:cob"], n_boot=200)
    >>> round(compared.interval_of("ref:hed", "ods").value, 3)
    0.78
    >>> [table.key for table in compared.tables()]
    ['scores', 'differences', 'images']
    """

    letters: Mapping[str, tuple[str, ...]]
    images: tuple[ImagePairs, ...]
    test: str
    signatures: tuple[str, ...]
    late_starts: Mapping[str, str]
    coverage: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)} on {self.n_images} images>"

    def tables(self) -> list[Table]:
        """Return the tables: scores with intervals; for several runs, differences and images."""
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON. Undefined and infinite numbers are None.

        The keys are the fields, except that `signatures` maps the names of the runs to signatures,
        and that pairs of `images` also have "effect_size" and "win_tie_loss".
        """
        values: Any = without_nan(asdict(self))
        for pair, row in zip(self.images, values["images"], strict=True):
            row |= {"effect_size": pair.effect_size, "win_tie_loss": list(pair.record)}
        signatures = dict(zip(self.names, self.signatures, strict=False))
        return {"schema": _SCHEMA, **values, "signatures": signatures}

    def only(self, scores: Sequence[str]) -> Comparison:
        """Return the comparison with only some scores, such as "ods". "all" shows every score.

        P-values are not corrected anew. Raises DataError if a score is unknown.
        """
        if "all" in scores:
            return replace(self, shown=self.scores)
        kept = chosen_scores(scores, self.scores)
        return replace(
            self,
            scores=kept,
            intervals=tuple(i for i in self.intervals if i.score in kept),
            differences=tuple(d for d in self.differences if d.score in kept),
            letters={score: self.letters[score] for score in kept},
            ranks={score: self.ranks[score] for score in kept},
            coverage={score: text for score, text in self.coverage.items() if score in kept},
            shown=kept,
        )
