"""Search for the settings that turn a run's score into a published one, on the run's own images.

Trials that need no counting come first: other ways to read scores off the counts, and named subsets
of the images. Then images are counted under other settings, one setting at a time: the setting that
is nearest to the target so far is counted on more images. Its score is estimated by adding, to the
run's score, its difference from the run on the same images. Pairs of settings follow. Only a score
of all images can meet a target, if it agrees to the given digits. Pairs of causes, and changes that
no known program makes, are so many that some come within half a hundredth of any number; they count
only for targets of four digits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.diagnosis.ap_rules import with_whole_image
from bsdsbench.diagnosis.causes import (
    CountingChange,
    counting_changes,
    named_images,
    other_columns,
    readings,
)
from bsdsbench.diagnosis.many_to_one import many_to_one_counts
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.metrics.optional import whole_curve
from bsdsbench.protocol.fields import HOME_MADE
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.references import PREFIX
from bsdsbench.results.score_names import score_name
from bsdsbench.results.sharing import ADDRESSES
from bsdsbench.results.storage import is_run
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.entry import evaluate
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.counts import sample_scores
from bsdsbench.text import counted

METRIC = registry.DEFAULT_METRICS[0]
STEPS = (2, 6, 25)  # numbers of images on which a setting is counted, before all of them
STARTS = 4  # number of single settings from which pairs are formed
LATE = 0.5  # images that were begun are finished until this share of the limit has passed beyond it
OWN = CountingChange("", "", "")  # the settings of the run itself
FINEST = 1e-6  # no target is taken to be known more precisely
FINE = 5e-5  # half a unit of the fourth digit
LIKELY_FIRST = ("as it is", "reading", "images", "setting")
Number = float | str  # a text says its digits: "0.760" is not "0.76"


def parse_targets(items: Sequence[str]) -> dict[str, str]:
    """Parse targets: ["boundary.ods=0.788"] gives {"ods": "0.788"}.

    Scores of other metrics keep the name of the metric. Raises DataError if an item is no target.
    """
    targets = {}
    for item in ",".join(items).split(","):
        name, _, value = map(str.strip, item.partition("="))
        named = score_name(name)
        if not (named and named.part):  # names of classes keep their letters
            name = name.lower().removeprefix(f"{METRIC}.")
        number = re.fullmatch(r"[0-9]*\.?[0-9]+", value)
        if not (name and number and ("." in name or float(value) <= 1)) or name in targets:
            raise DataError(
                f"target {item!r}: expected ods=, ois= or ap= and a number in [0, 1], or "
                "METRIC.SCORE= and a number of another metric, each once"
            )
        targets[name] = value
    return targets


def in_capitals(measure: str) -> str:
    """Return "ODS" for "ods"; the name of a class or of a group of scores is left unchanged."""
    return measure if "." in measure else measure.upper()


class MetricTargets(NamedTuple):
    """The metric of the targets, and column key -> published value."""

    metric: str
    values: dict[str, Number]


def metric_of(targets: Mapping[str, Number]) -> MetricTargets:
    """Find the metric of all targets. Raises DataError if there are several metrics."""
    by_metric: dict[str, dict[str, Number]] = {}
    for target, value in targets.items():
        name, _, key = target.partition(".")
        metric, key = (name, key) if name in registry.names() else (METRIC, target)
        by_metric.setdefault(metric, {})[key] = value
    if len(by_metric) != 1:
        raise DataError(f"targets {', '.join(targets)}: of several metrics, expected those of one")
    return MetricTargets(*by_metric.popitem())


class RunWithFiles(NamedTuple):
    """A run and its files, None for reference runs (`ref:NAME`) and shared runs."""

    run: Evaluation
    sources: Sources | None


def run_of(
    run: str | Path,
    gt_dir: str | Path | None,
    protocol: Protocol,
    *,
    metric: str = METRIC,
    **options: Any,
) -> RunWithFiles:
    """Load a saved run, or evaluate a folder of maps now.

    `run` is a reference run (ref:NAME), a shared run (file or URL), the folder of a saved run, or a
    folder of maps, which is evaluated with the ground truth and options of `evaluate`. Raises
    DataError if a folder of maps comes without ground truth.
    """
    folder = Path(run)
    if str(run).startswith((PREFIX, *ADDRESSES)) or folder.is_file():
        # There are no files, so no image can be counted again.
        return RunWithFiles(Evaluation.load(run), None)
    if is_run(folder):
        saved = Evaluation.load(folder)
    elif gt_dir is None:
        raise DataError(
            f"{run}: no saved run (result.json), expected one",
            fix="give the ground truth as well where it holds maps",
        )
    else:
        saved = evaluate(folder, gt_dir, protocol, metrics=metric, executor="thread", **options)
    return RunWithFiles(saved, find_sources(saved, gt_dir=gt_dir, metric=metric))


def explain(
    run: Evaluation,
    targets: Mapping[str, Number],
    *,
    sources: Sources | None = None,
    seconds: float = 60.0,
    workers: int | None = None,
    progress: Progress | None = None,
    published: Sequence[str] = (),
) -> Explanation:
    """Search for the settings and readings that turn the run's scores into the targets.

    Parameters
    ----------
    run : Evaluation
        The run to explain.
    targets : dict
        Score ("ods", "ois", "ap") or METRIC.SCORE of another metric -> published value. A target
        is met if the score agrees to the target's digits; a text keeps them ("0.760").
    sources : Sources, optional
        The run's files; by default found by the run's provenance.
    seconds : float
        The time limit of the search. The result names what was not tried for want of time.
    workers : int, optional
        Number of images counted at the same time; by default the available cores.
    progress : callable, optional
        Called with (images done, images, setting).
    published : sequence of str
        Descriptions of published results that have the targets, to be named first.

    Raises
    ------
    DataError
        If a score is unknown, the run has no counts of the metric, or a file cannot be read.
    """
    name, wanted = metric_of(targets)
    files = sources
    if files is None and run.provenance.source is None:
        files = find_sources(run, metric=name)
    search = Search(run, name, wanted, files, seconds, workers or available_cores(), progress)
    search.note("as it is", "as it is", search.base, n_causes=0)
    search.readings(OWN, search.own, search.base)
    for label, images in named_images(search.ids, run.place("gt")).items():
        scores = search.scores([search.own[k] for k in images], run.protocol)
        who = f"a run of {len(images)} images"
        search.note(label, "images", scores, n_images=len(images), who=who)
    every = [s for s in counting_changes(search.metric) if s.differs(run.protocol, search.metric)]
    if files is None:
        search.late, every = every, []
    gaps, pairs = search.narrow(every), dict[frozenset[str], CountingChange]()
    for nearest in sorted(every, key=lambda s: gaps.get(s.label, inf))[:STARTS]:
        for partner in every:
            both = nearest.with_other(partner)
            if both and both.differs(run.protocol, search.metric):
                pairs.setdefault(frozenset((nearest.label, partner.label)), both)
    if not search.reached:
        search.narrow(pairs.values())
    base = {t: search.base[t] for t in wanted}
    trials, spent, n = ranked(search.trials.values()), seconds - search.left, len(search.ids)
    late = tuple(setting.label for setting in search.late if setting.n_causes == 1)
    n_pairs, rows, known = len(search.late) - len(late), tuple(published), files is not None
    if not known:
        late = tuple(dict.fromkeys(setting.kind for setting in search.late))
    return Explanation(search.targets, base, trials, spent, n, rows, late, n_pairs, known)


@dataclass
class Search:
    """The state of a search: the run's counts, the counts made so far, the trials and the clock."""

    run: Evaluation
    name: str
    targets: dict[str, Number]
    sources: Sources | None
    seconds: float
    workers: int
    progress: Progress | None

    def __post_init__(self) -> None:
        run, self.metric = self.run, registry.get(self.name)
        self.until = time.monotonic() + self.seconds
        counts = dict(counts_in_order(run.records, self.metric.name))
        self.ids, self.own = list(counts), list(counts.values())
        self.base = self.scores(self.own, run.protocol)
        for target in self.targets:
            if target not in self.base:
                raise DataError(f"target {target!r}: expected any of {', '.join(self.base)}")
        # An order in which any first n images are spread over the run (golden ratio).
        spread = np.modf(np.arange(len(self.ids)) * 0.6180339887498949)[0]
        self.order = np.argsort(spread, kind="stable").tolist()
        self.made: dict[str, dict[int, Any]] = {}  # counts by setting, then by image
        self.trials: dict[str, Trial] = {}  # by label: the last, or one that met the targets
        self.late: list[CountingChange] = []  # not counted on all images

    @property
    def left(self) -> float:
        """The number of seconds left."""
        return self.until - time.monotonic()

    @property
    def reached(self) -> bool:
        """True if a trial meets the targets."""
        return any(t.reached for t in self.trials.values())

    def scores(self, counts: Sequence[Mapping[str, Any]], protocol: Protocol) -> dict[str, float]:
        """Compute the scores of images by column key; undefined scores are left out."""
        stack, opt = self.metric.stack(counts), self.metric.options_of(protocol)
        once = np.ones((1, len(counts)), np.int64)
        tree = sample_scores(self.metric.scores(stack, once, protocol, opt))
        columns = self.metric.score_columns(tree, protocol)
        return {key: float(value) for key, _, value in columns if value == value}

    def note(self, label: str, kind: str, scores: Mapping[str, float], **fields: Any) -> float:
        """Record a trial, and return its gap to the targets (inf if a score is undefined).

        `fields` are further fields of `Trial`; by default the trial has all images and one cause.
        """
        if not self.targets.keys() <= scores.keys():
            return inf
        fields = {"n_images": len(self.ids), **fields}
        trial = Trial(label, kind, dict(scores), self.targets, **fields)
        before = self.trials.get(label)
        if trial.reached or not (before and before.reached):
            self.trials[label] = trial
        return trial.gap

    def readings(
        self,
        setting: CountingChange,
        counts: Sequence[Mapping[str, Any]],
        scores: Mapping[str, float],
    ) -> None:
        """Record every other way to read the targets off the counts of all images.

        `counts` and `scores` are those of the run under a setting.
        """
        # (label, who reads scores so, scores)
        other_readings = [(w, "", s) for w, s in other_columns(self.metric, self.targets, scores)]
        protocol = setting.on(self.run.protocol)
        opt = self.metric.options_of(protocol)
        if self.metric.has_curve(opt):
            stack, n = self.metric.stack(counts), len(counts)
            weights = np.ones((1, n), np.int64), np.eye(n, dtype=np.int64)
            curves: list[Any] = [
                self.metric.scores(stack, w, protocol, opt)["curve"] for w in weights
            ]
            run, images = curves
            whole = whole_curve(self.metric, run[0], stack)
            matched = self.metric.reads == "annotators" and "matches" in stack
            known = self.sources is not None and matched and 0 < run.thresholds[0] < 1
            if self.sources and "ap" in self.targets and setting is OWN and known:
                matches = stack["matches"].sum(axis=0)
                whole = with_whole_image(self.sources, protocol, run.thresholds, matches)
            for measure, words, who, value in readings(run[0], images, whole):
                other_readings.append((words, who, {**scores, measure: float(value)}))
        for label, who, changed in other_readings:
            if not any(abs(changed[t] - scores[t]) > 1e-12 for t in self.targets):
                continue  # no target changes, or a value is undefined
            if setting is OWN:
                self.note(label, "reading", changed, who=who)
            else:
                both = "; ".join(filter(None, (setting.who, who)))
                self.note(f"{setting.label} + {label}", "setting", changed, n_causes=2, who=both)

    def narrow(self, every: Iterable[CountingChange]) -> dict[str, float]:
        """Count settings, always the nearest one on more images, until all are done or time is up.

        Once the targets are met, only settings that may meet them too are continued. Returns the
        gap of each setting by its label, from the images counted so far.
        """
        steps = [n for n in STEPS if n < len(self.ids)] + [len(self.ids)]
        open_ = {s: (-inf, 0) for s in every}
        gaps = {}
        near = max(resolution(t) for t in self.targets.values())
        while open_ and self.left > 0:
            setting = min(open_, key=lambda s: open_[s][0])
            gap, done = open_.pop(setting)
            if self.reached and gap > near:
                break
            n = next(step for step in steps if step > done)
            exact, images = n == len(self.ids), sorted(self.order[:n])
            counts = self.count(setting, images)
            if counts is None:
                self.late += [setting] * (self.left <= 0)
                continue
            scores = self.scores(counts, setting.on(self.run.protocol))
            if not exact:
                before = self.scores([self.own[k] for k in images], self.run.protocol)
                both = scores.keys() & before.keys() & self.base.keys()
                scores = {t: self.base[t] + scores[t] - before[t] for t in both}
            elif all(scores.get(t) == self.base[t] for t in self.targets):  # no effect
                self.trials.pop(setting.label, None)
                continue
            fields = {"exact": exact, "n_images": n, "n_causes": setting.n_causes}
            gap = self.note(setting.label, "setting", scores, who=setting.who, **fields)
            gaps[setting.label] = gap
            if not exact:
                open_[setting] = gap, n
            elif setting.n_causes == 1:
                self.readings(setting, counts, scores)
        if self.left <= 0:
            self.late += open_
        return gaps

    def count(self, setting: CountingChange, images: Sequence[int]) -> list[Any] | None:
        """Count images under a setting, or return None if time is up or an image is refused."""
        protocol = setting.on(self.run.protocol)
        opt, made = self.metric.options_of(protocol), self.made.setdefault(setting.label, {})

        def count_image(k: int) -> None:
            if self.left < -LATE * self.seconds:
                return
            assert self.sources is not None  # without files there are no settings
            pred, gt = self.sources.load(self.ids[k], protocol)
            gt = setting.truth(gt)
            if "1toN" in setting.how:
                made[k] = many_to_one_counts(pred, gt, protocol)
            else:
                made[k] = self.metric.count(pred, gt, protocol, opt)

        missing = [k for k in images if k not in made]
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for done, _ in enumerate(pool.map(count_image, missing), 1):
                    if self.progress:
                        self.progress(done, len(missing), setting.label)
            except DataError:
                return None
        return [made[k] for k in images] if {*images} <= made.keys() else None


@dataclass(slots=True)
class Trial:
    """A change, the scores that it gives, and their largest distance to a target.

    label : the change in words
    kind : one of LIKELY_FIRST
    who : who does so, "" if unknown
    n_causes : number of changes, 0 for the run as it is
    exact : whether the scores are those of all images, or estimated from `n_images`
    gap, reached : the largest distance to a target, and whether all targets are met
    """

    label: str
    kind: str
    scores: dict[str, float]
    targets: InitVar[Mapping[str, Number]]
    who: str = ""
    n_causes: int = 1
    exact: bool = True
    n_images: int = 0
    gap: float = 0.0
    reached: bool = False

    def __post_init__(self, targets: Mapping[str, Number]) -> None:
        self.scores = {m: self.scores[m] for m in targets}
        gaps = np.array([abs(self.scores[m] - float(t)) for m, t in targets.items()])
        reach = np.array([resolution(t) for t in targets.values()])
        known = self.n_causes < 2 and HOME_MADE not in self.who
        near = self.exact and bool((gaps <= reach * (1 + 1e-9)).all())
        self.gap, self.reached = float(gaps.max()), near and (known or min(reach) <= FINE)

    @property
    def in_use(self) -> bool:
        """True if a known program makes the change."""
        return HOME_MADE not in self.who


def resolution(value: Number) -> float:
    """Return half a unit of the last digit of a printed number, at least 1e-6."""
    text = value if isinstance(value, str) else f"{value:.10f}".rstrip("0")
    return max(0.5 * 10.0 ** -len(text.partition(".")[2]), FINEST)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, the best first, and the conclusion drawn from them.

    not_counted : settings that were not counted on all images for want of time; for a run without
        files, the kinds of all settings
    pairs_not_counted : number of pairs of settings left out for want of time
    files : False if the run has counts but no files
    """

    targets: dict[str, Number]
    base: dict[str, float]
    trials: tuple[Trial, ...]
    seconds: float
    n_images: int
    published: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()
    pairs_not_counted: int = 0
    files: bool = True

    @property
    def complete(self) -> bool:
        """True if all settings were counted."""
        return not self.not_counted and not self.pairs_not_counted

    @property
    def partly_line(self) -> str:
        """A line with the number of settings counted on some images only, or ""."""
        n_partly = sum(not trial.exact for trial in self.trials)
        if not n_partly:
            return ""
        partly = counted(n_partly, "more setting")
        return f"{partly} counted on some images only, without a match there; one may still fit"

    @property
    def late_line(self) -> str:
        """A line with the settings that were not counted and the reason, or ""."""
        left_out = list(self.not_counted)
        if self.pairs_not_counted:
            left_out.append(f"{counted(self.pairs_not_counted, 'pair')} of settings")
        reason = "within the time limit" if self.files else "because the files are not given"
        return f"not counted {reason}: {', '.join(left_out)}" if left_out else ""

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """The trials that meet every target; only a single one identifies the cause."""
        return tuple(t for t in self.trials if t.reached)

    @property
    def answer(self) -> Trial | None:
        """The most likely trial that meets every target, or None."""
        return next(iter(self.fitting), None)

    def sentence(self) -> str:
        """State the finding in a text that can be pasted into a paper or an issue."""
        trial = self.answer
        rows = f"Published with these numbers: {', '.join(self.published)}. "
        rows = rows if self.published else ""
        asked = ", ".join(f"{in_capitals(m)} {v}" for m, v in self.targets.items())
        present = ", ".join(f"{in_capitals(m)} {v:.4f}" for m, v in self.base.items())
        if trial is None:
            late = " in the given time" if self.files else " from their counts alone"
            late = "" if self.complete else late
            near = next(t for t in self.trials if t.exact)
            return (
                f"{rows}No known reading of these {self.n_images} images{late} reaches the target "
                f"({asked}); the nearest one counted on all images is {near.label}, off by "
                f"{near.gap:.4f}."
            )
        if not trial.n_causes:
            return f"{rows}The run already has the target ({asked}): {present}."
        if len(self.fitting) > 1:
            return (
                f"{rows}{len(self.fitting)} readings fit the target ({asked}), so the right one is "
                f"not identified: {', '.join(map(_named, self.fitting))}. This run has {present}. "
                "More measures or digits in the target may tell them apart."
            )
        moved = ", ".join(
            f"{in_capitals(m)} from {v:.4f} to {trial.scores[m]:.4f}" for m, v in self.base.items()
        )
        if not trial.in_use:
            return (
                f"{rows}No setting of a known program gives the target ({asked}), but "
                f"{trial.label!r} does: {moved}."
            )
        by = f"; used by {trial.who}" if trial.who else ""
        return f"{rows}This run reaches the target ({asked}) with {trial.label!r}: {moved}{by}."


def _named(trial: Trial) -> str:
    """Name a trial in a list of trials that meet the targets."""
    return repr(trial.label) + ("" if trial.in_use else " (no known program)")


def ranked(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Sort trials: those that meet the targets by likelihood, then the others by distance."""

    def key(t: Trial) -> tuple[float, ...]:
        likely = (t.n_causes, LIKELY_FIRST.index(t.kind)) if t.reached else ()
        return (not t.reached, *likely, t.gap)

    return tuple(sorted(trials, key=key))
