"""Methods of one or more runs: means over seeds or folds, and tests that know both variances.

A score of a method is the mean of that score over its runs. It varies with the images that were
drawn and with the run (seed, fold): intervals come from a bootstrap that draws both, images and
runs, and crosses them (Owen, The pigeonhole bootstrap, Ann. Appl. Stat. 2007). A few runs say
little of their variance, so that the deviation of drawn runs is widened by sqrt(R / (R - 1)) for R
runs, and the interval by Student's t with Satterthwaite's degrees of freedom. Where the runs of two
methods have the same names (seed0, seed1 ...) they are drawn in pairs, and p comes from exchanging
the two runs of each pair, in all 2^R ways. With fewer than three runs of a method there is no p.
Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve, field, frozen

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    sample_counter,
    scores_of,
)
from bsdsbench.comparison.comparable import comparable, shared_metrics
from bsdsbench.comparison.compare import FEW_IMAGES, clusters_of
from bsdsbench.comparison.comparison import Interval, ScoreDifference
from bsdsbench.comparison.comparison_tables import score_field
from bsdsbench.comparison.method import Method, runs_of, with_runs
from bsdsbench.comparison.method_tables import (
    SPREAD_WORDS,
    ScoresOfRuns,
    Spread,
    method_tables,
    spread_cell,
)
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import Partition, frames_note
from bsdsbench.results.score_names import chosen_scores, flat_scores, full_name, usual_scores
from bsdsbench.results.score_tables import METHOD, Row, made_how, reading_line
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Cell, Estimate, Table
from bsdsbench.text import counted

LEAST_RUNS = 3  # from which the variance of runs is estimated, and p is given


def _scores_of_methods(methods: Sequence[Method]) -> dict[tuple[str, str], ScoresOfRuns]:
    """Return the scores that all runs have, by method and METRIC.SCORE.

    Raises DataError where runs of one method have other images than its first; it says which.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))
    flat = [[flat_scores(run) for run in method.runs] for method in methods]
    names = [score for score in flat[0][0] if all(score in run for runs in flat for run in runs)]
    return {
        (method.name, score): ScoresOfRuns(tuple(run[score] for run in runs))
        for method, runs in zip(methods, flat, strict=True)
        for score in names
    }


class _Draws(NamedTuple):
    """Bootstrap draws of a method's score, and how many images they are worth in an interval."""

    values: F8
    n_effective: float


@frozen(repr=False, eq=False)
class MethodComparison(Shown):
    """Methods compared over images and runs.

    Parameters
    ----------
    methods : tuple of Method
        As given.
    scores : tuple of str
        The scores, METRIC.SCORE.
    of_runs : dict
        (method, score) -> the scores of its runs.
    intervals : tuple of Interval
        Of the mean of each method and score.
    differences : tuple of ScoreDifference
        Of each pair of methods and score; p is NaN with fewer than three runs of one of them.
    paired : frozenset of (str, str)
        Pairs of methods whose runs are the same seeds.
    n_images, n_boot, seed, level
        Number of images, and what `compare_methods` was given.
    protocol, reading : str
        In words: how scores are made, and what the files of the runs were read as.
    notes, shown : tuple of str
        What a reader has to know; the scores of the tables.
    ranks : dict of str to Ranks
        Score -> the ranks of the methods over the samples.
    cluster, n_clusters
        The column whose groups were drawn together, and how many there are; "" and 0 for images.
    left_out : dict of str to dict
        Method -> image -> why it is in no score, of several runs of it in the first that lacks it.
    """

    methods: tuple[Method, ...]
    scores: tuple[str, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    paired: frozenset[tuple[str, str]]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    reading: str
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    ranks: Mapping[str, Ranks]
    cluster: str = ""
    n_clusters: int = 0
    left_out: Mapping[str, Mapping[str, str]] = field(factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(method.name for method in self.methods)

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """The pairs of the same seeds that are too few for a significant p."""
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the means with their spread and number of runs, and the differences."""
        return method_tables(self, Spread(spread))

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with these scores alone in its tables. Raises DataError."""
        return evolve(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON; undefined numbers are None."""

        def known(value: float) -> float | None:
            return value if isfinite(value) else None

        return {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": [
                {
                    "method": interval.run,
                    "score": interval.score,
                    "mean": known(interval.value),
                    "sd": known(self.of_runs[interval.run, interval.score].sd),
                    "runs": list(map(known, self.of_runs[interval.run, interval.score].values)),
                    "low": known(interval.low),
                    "high": known(interval.high),
                }
                for interval in self.intervals
            ],
            "differences": [
                {
                    "a": d.a,
                    "b": d.b,
                    "score": d.score,
                    "paired": (d.a, d.b) in self.paired,
                    **{k: known(getattr(d, k)) for k in ("value", "low", "high", "p", "p_holm")},
                }
                for d in self.differences
            ],
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
            "n_images": self.n_images,
            "cluster": self.cluster,
            "n_clusters": self.n_clusters,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "level": self.level,
            "protocol": self.protocol,
            "reading": self.reading,
            "notes": list(self.notes),
            "left_out": {name: dict(reasons) for name, reasons in self.left_out.items()},
        }

    def interval_of(self, method: str, score: str) -> Interval:
        """Return the interval of a method's mean, of "boundary.ods" or "ods". Raises KeyError."""
        by_name = {(i.run, i.score): i for i in self.intervals}
        return by_name[method, full_name(score, self.scores)]

    def difference_of(self, a: str, b: str, score: str) -> ScoreDifference:
        """Return the difference of two methods, in the order of the call. Raises KeyError."""
        by_pair = {(d.a, d.b, d.score): d for d in self.differences}
        return by_pair[a, b, full_name(score, self.scores)]


def compare_methods(
    methods: Sequence[Method],
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    common: bool = False,
    force: bool = False,
    cluster: str | None = None,
    groups: object = None,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> MethodComparison:
    """Compare methods of one or more runs each: means, intervals over images and runs, p.

    Parameters
    ----------
    methods : sequence of Method
        The methods; all runs on the same images.
    n_boot, seed, level, common, force, cluster, groups, group_by, progress
        As of `compare`.

    Returns
    -------
    MethodComparison
        Of the scores that all runs have.

    Raises
    ------
    DataError
        For no methods, two of one name, and runs that may not be compared; it says which.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> sauge = bb.Method("SAUGE", ["ref:sauge-b", "ref:sauge-l"])
    >>> compared = bb.compare_methods([sauge, bb.Method("HED", ["ref:hed"])], n_boot=200)
    >>> round(compared.of_runs["SAUGE", "boundary.ods"].mean, 3)
    0.843
    """
    n_boot, seed = checked_sampling(n_boot, seed, level)
    methods = [method.in_order() for method in methods]
    names = [method.name for method in methods]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"two methods are named {twice[0]!r}, expected different names")
    runs = as_runs(runs_of(methods), None, groups, group_by)
    kept, notes = comparable(runs, common, force)
    drawn_together = clusters_of(kept, cluster)
    sampling = _sampled(methods, kept, drawn_together, n_boot, seed, level, progress)
    units = f"clusters ({cluster})" if drawn_together else "images"
    if sampling.n_units < FEW_IMAGES:
        notes.append(f"{sampling.n_units} {units} only: intervals and p-values are rough")
    if cluster is None and (advice := frames_note(kept[0].records)):
        notes.append(advice)
    of_runs, intervals, differences = {}, list[Interval](), list[ScoreDifference]()
    ranks = {}
    for score in sampling.scores:
        drawn = {method.name: sampling.drawn(method, score) for method in methods}
        for method in methods:
            scores = sampling.of_runs(method, score)
            of_runs[method.name, score] = scores
            ends = sampling.interval(drawn[method.name])
            intervals.append(Interval(method.name, score, scores.mean, *ends))
        draws = {name: (of_runs[name, score].mean, d.values) for name, d in drawn.items()}
        ranks[score] = ranks_of(score, draws, level)
        family = [sampling.difference(a, b, score, drawn) for a, b in combinations(methods, 2)]
        corrected = significance.holm([d.p for d in family])
        differences += [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
    return MethodComparison(
        methods=tuple(methods),
        scores=sampling.scores,
        of_runs=of_runs,
        intervals=tuple(intervals),
        differences=tuple(differences),
        paired=sampling.paired,
        n_images=len(kept[0].records),
        n_boot=n_boot,
        seed=seed,
        level=level,
        protocol=sampling.protocol,
        reading=reading_line(kept),
        notes=(*_variance_notes(methods, sampling.paired, cluster), *notes),
        shown=sampling.shown,
        ranks=ranks,
        cluster=drawn_together.column if drawn_together else "",
        n_clusters=sampling.n_units if drawn_together else 0,
        left_out={
            method.name: on_shared.left_out | method.left_out
            for method, on_shared in zip(methods, with_runs(methods, kept), strict=True)
            if on_shared.left_out
        },
    )


@frozen(eq=False)
class _Sampling:
    """The scores of all runs: of all images (`once`), and of bootstrap draws of images."""

    methods: Sequence[Method]
    paired: frozenset[tuple[str, str]]
    once: Sequence[Mapping[str, F8]]
    draws: Sequence[Mapping[str, F8]]
    chosen: Mapping[int, I8]  # number of runs -> how often each is drawn, (B, R)
    n_units: int  # images, or clusters of them, that are drawn
    seed: int
    level: float
    scores: tuple[str, ...]
    shown: tuple[str, ...]
    protocol: str

    def _positions(self, method: Method) -> range:
        """Return the positions of a method's runs in the list of all runs."""
        place = self.methods.index(method)
        first = sum(before.n_runs for before in self.methods[:place])
        return range(first, first + method.n_runs)

    def of_runs(self, method: Method, score: str) -> ScoresOfRuns:
        """Return a score of the runs of a method."""
        values = [float(self.once[k][score][0]) for k in self._positions(method)]
        return ScoresOfRuns(tuple(values))

    def _by_run(self, method: Method, score: str) -> F8:
        """Return the draws of each run, (R, B)."""
        return np.array([self.draws[k][score] for k in self._positions(method)])

    def _crossed(self, by_run: F8) -> _Draws:
        """Return bootstrap means over runs, (R, B), where runs and images are drawn together.

        The draws of one run are those of its images, unchanged.
        """
        n_runs = len(by_run)
        if n_runs == 1:
            return _Draws(by_run[0], self.n_units)
        first, beyond = by_run[0], by_run - by_run[0]  # of equal runs the mean is exactly theirs
        mean_beyond = beyond.mean(axis=0)
        means = first + mean_beyond
        deviations = np.einsum("rb,br->b", beyond, self.chosen[n_runs]) / n_runs - mean_beyond
        deviations *= (n_runs / (n_runs - 1)) ** 0.5
        if np.isnan(means).all():
            return _Draws(means, self.n_units)
        of_images, of_runs = np.nanvar(means), np.nanvar(deviations)
        freedom = of_images**2 / max(self.n_units - 1, 1) + of_runs**2 / (n_runs - 1)
        equivalent = (of_images + of_runs) ** 2 / freedom if freedom > 0 else self.n_units - 1
        return _Draws(means + deviations, 1 + float(equivalent))

    def drawn(self, method: Method, score: str) -> _Draws:
        """Return the draws of a method's mean."""
        return self._crossed(self._by_run(method, score))

    def interval(self, drawn: _Draws) -> significance.Ends:
        """Return the ends of the interval of these draws."""
        return significance.percentile_interval(drawn.values, self.level, drawn.n_effective)

    def difference(
        self, a: Method, b: Method, score: str, of_methods: Mapping[str, _Draws]
    ) -> ScoreDifference:
        """Return the difference of two methods in one score, before Holm's correction.

        `of_methods` are the draws of each method's mean, which unpaired runs are compared by.
        """
        left, right = (self.of_runs(method, score) for method in (a, b))
        is_paired, gap, p = (a.name, b.name) in self.paired, left.mean - right.mean, nan
        if is_paired:
            drawn = self._crossed(self._by_run(a, score) - self._by_run(b, score))
        else:
            sides = [of_methods[method.name] for method in (a, b)]
            n_effective = min(side.n_effective for side in sides)
            drawn = _Draws(sides[0].values - sides[1].values, n_effective)
        enough = min(a.n_runs, b.n_runs) >= LEAST_RUNS or a.n_runs == b.n_runs == 1
        if enough and gap == gap:
            p = significance.p_value(drawn.values, drawn.n_effective)
            if is_paired:
                p = significance.sign_flip_p(np.subtract(left.values, right.values), self.seed)
        least = significance.detectable(drawn.values, self.level, drawn.n_effective)
        low, high = self.interval(drawn)
        return ScoreDifference(a.name, b.name, score, gap, low, high, p, p, least)


def _sampled(
    methods: Sequence[Method],
    kept: Sequence[Evaluation],
    drawn_together: Partition | None,
    n_boot: int,
    seed: int,
    level: float,
    progress: Progress | None,
) -> _Sampling:
    """Return the scores of the runs of all methods, `kept`, under draws of images or clusters."""
    clusters = drawn_together.members if drawn_together else None
    metrics, n_images = shared_metrics(kept), len(kept[0].records)
    tables = [WeightedRun(run, metrics) for run in kept]
    count_samples = sample_counter(progress, len(kept) * n_boot)
    once = scores_of(tables, [np.ones((1, n_images), np.int64)])
    draws = scores_of(tables, bootstrap_weights(n_images, n_boot, seed, clusters), count_samples)
    scores = tuple(score for score in once[0] if all(score in values for values in once))
    pairs = [
        (a, b)
        for a, b in combinations(methods, 2)
        if a.seeds == b.seeds and a.distinct and a.n_runs > 1
    ]
    return _Sampling(
        methods=list(methods),
        paired=frozenset((a.name, b.name) for a, b in pairs),
        once=once,
        draws=draws,
        chosen={n: _drawn_runs(n, n_boot, seed) for n in {m.n_runs for m in methods}},
        n_units=len(drawn_together.names) if drawn_together else n_images,
        seed=seed,
        level=level,
        scores=scores,
        shown=tuple(usual_scores(kept[0], scores)),
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
    )


def _drawn_runs(n_runs: int, n_boot: int, seed: int) -> I8:
    """Return how often each run is drawn, (B, R): equal for methods of as many runs."""
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return the means over the runs of each method, without a comparison.

    Parameters
    ----------
    methods, spread
        The methods, and what stands beside their means.
    columns : sequence of str or None
        The scores to show, "ods" or "all"; default: the usual ones.
    extra, notes
        Further rows, such as published results, and lines, as of `score_tables`.

    Raises
    ------
    DataError
        For another score, and runs of one method that are not comparable.
    """
    of_runs = _scores_of_methods(methods)
    known = list(dict.fromkeys(score for _, score in of_runs))
    first = methods[0].runs[0]
    shown = chosen_scores(columns, known) if columns else usual_scores(first, known)
    rows: list[list[Cell]] = []
    for method in methods:
        cells = [spread_cell(of_runs[method.name, score], spread) for score in shown]
        rows.append([method.name, *cells])
    for name, by_metric, marks in extra:
        rows.append([name])
        for metric, _, key in (score.partition(".") for score in shown):
            value, mark = value_at(by_metric.get(metric, {}), key), marks.get(key)
            if mark is not None and value is not None:
                value = Estimate(value, mark=f"[{mark}]" * bool(mark), comparable=False)
            rows[-1].append(value)
    words, made = SPREAD_WORDS[spread], made_how(runs_of(methods))
    lines = [f"{words[0].upper()}{words[1:]}.", *made["notes"], *notes]
    sentence = f"Scores on {counted(len(first.records), 'image')}: {words}"
    fields = [METHOD, *map(score_field, shown)]
    worded: Any = {**made, "notes": lines, "sentence": sentence}
    return Table("methods", "Scores of methods", fields, rows, **worded)


def _variance_notes(
    methods: Sequence[Method], paired: frozenset[tuple[str, str]], cluster: str | None
) -> list[str]:
    """Say which variance the intervals have, and why there is no p."""
    units = f"clusters ({cluster})" if cluster else "images"
    alone = [m.name for m in methods if m.n_runs == 1]
    several = any(m.n_runs > 1 for m in methods)
    few = [m.name for m in methods if m.n_runs < LEAST_RUNS and several]
    notes = []
    if several:
        notes.append(f"Intervals have the variance of {units} and of runs (crossed bootstrap)")
    if alone:
        notes.append(f"{', '.join(alone)}: the interval has that of {units} only: one run each")
    if few:
        notes.append(f"No p with {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    for a, b in sorted(paired):
        n = next(m.n_runs for m in methods if m.name == a)
        if n >= LEAST_RUNS:
            notes.append(
                f"{a}, {b}: the same seeds, so that p is that of exchanging the runs of each pair "
                f"(with {n} pairs {2 / 2**n:.3g} or more)"
            )
    return notes
