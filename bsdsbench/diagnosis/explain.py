"""What would give a published score, tried on the run's own images.

What existing counts can show comes first: other readings of them, named choices of images. Then
images are counted under settings: whichever is nearest to the target so far on more of them, where
its difference from the run on the same images is added to the run's score; then pairs. Only a score
of all images can meet a target, where it agrees with it to the digits given. Pairs of causes, and
what no known program does, are tried in such numbers that some lie within half a hundredth of
anything: they count for targets of four digits alone.
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
from bsdsbench.metrics.optional import CurveOfPixels
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
STEPS = (2, 6, 25)  # images that a setting is counted on, before all of them
STARTS = 4  # single settings that pairs are made from
LATE = 0.5  # of the time given: so much later images that were begun are counted to the end
OWN = CountingChange("", "", "")  # the run itself
FINEST = 1e-6  # targets are not taken to be known better than this
FINE = 5e-5  # four digits
LIKELY_FIRST = ("as it is", "reading", "images", "setting")
Number = float | str  # a text says its digits: "0.760" is not "0.76"


def parse_targets(items: Sequence[str]) -> dict[str, str]:
    """Return {"ods": "0.788"} of ["boundary.ods=0.788"]; other metrics keep their name. Raises
    DataError."""
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
    """Return "ODS" for "ods"; a name with a class or a group of scores keeps its letters."""
    return measure if "." in measure else measure.upper()


class MetricTargets(NamedTuple):
    """The metric that targets are of, and their values by the keys of its columns."""

    metric: str
    values: dict[str, Number]


def metric_of(targets: Mapping[str, Number]) -> MetricTargets:
    """Return the metric that all targets are of. Raises DataError for several."""
    by_metric: dict[str, dict[str, Number]] = {}
    for target, value in targets.items():
        name, _, key = target.partition(".")
        metric, key = (name, key) if name in registry.names() else (METRIC, target)
        by_metric.setdefault(metric, {})[key] = value
    if len(by_metric) != 1:
        raise DataError(f"targets {', '.join(targets)}: of several metrics, expected those of one")
    return MetricTargets(*by_metric.popitem())


class RunWithFiles(NamedTuple):
    """A run and its files; a reference run (`ref:NAME`) and a shared one have none."""

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
    """Return the saved run in a folder, or count the two folders now with options of `evaluate`."""
    folder = Path(run)
    if str(run).startswith((PREFIX, *ADDRESSES)) or folder.is_file():
        # Counts without files are only read in other ways
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
    """Search for the settings and readings under which the run has the targets.

    Raises DataError for unknown scores, a run without counts of the metric, and whatever the
    loaders find.

    Parameters
    ----------
    run : Evaluation
        The run to explain.
    targets : dict
        Score ("ods", "ois", "ap") or METRIC.SCORE of another metric -> published value; a target
        is met to the digits that it has, a text as it is written ("0.760").
    sources : Sources, optional
        Where the run's files are; by default where its provenance says.
    seconds : float
        About how long to look; what was not tried then is missing, which is said.
    workers : int, optional
        Images at a time; by default the available cores.
    progress : callable, optional
        Told how far the search is.
    published : sequence of str
        Published results that have the targets, in words; they are named first.
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
    for one in sorted(every, key=lambda s: gaps.get(s.label, inf))[:STARTS]:
        for two in every:
            both = one.with_other(two)
            if both and both.differs(run.protocol, search.metric):
                pairs.setdefault(frozenset((one.label, two.label)), both)
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
    """The search for one run: counts that are there, counts made on the way, and the clock."""

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
        # images spread over the run: a longer beginning of `order` holds a shorter one
        spread = np.modf(np.arange(len(self.ids)) * 0.6180339887498949)[0]
        self.order = np.argsort(spread, kind="stable").tolist()
        self.made: dict[str, dict[int, Any]] = {}  # counts by setting, then by image
        self.trials: dict[str, Trial] = {}  # by label: the last, or one that met the targets
        self.late: list[CountingChange] = []  # not counted on all images

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.until - time.monotonic()

    @property
    def reached(self) -> bool:
        """True if a trial meets the targets."""
        return any(t.reached for t in self.trials.values())

    def scores(self, counts: Sequence[Mapping[str, Any]], protocol: Protocol) -> dict[str, float]:
        """The scores of images, those that are defined."""
        stack, opt = self.metric.stack(counts), self.metric.options_of(protocol)
        once = np.ones((1, len(counts)), np.int64)
        tree = sample_scores(self.metric.scores(stack, once, protocol, opt))
        columns = self.metric.score_columns(tree, protocol)
        return {key: float(value) for key, _, value in columns if value == value}

    def note(self, label: str, kind: str, scores: Mapping[str, float], **more: Any) -> float:
        """Note a trial, of all images and of one cause unless said otherwise; its gap."""
        if not self.targets.keys() <= scores.keys():
            return inf
        more = {"n_images": len(self.ids), **more}
        trial = Trial(label, kind, dict(scores), self.targets, **more)
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
        """Each other reading of all images' counts under a setting."""
        other_ways = [(w, "", s) for w, s in other_columns(self.metric, self.targets, scores)]
        protocol = setting.on(self.run.protocol)
        opt = self.metric.options_of(protocol)
        if self.metric.has_curve(opt):
            stack, n = self.metric.stack(counts), len(counts)
            weights = np.ones((1, n), np.int64), np.eye(n, dtype=np.int64)
            curves: list[Any] = [
                self.metric.scores(stack, w, protocol, opt)["curve"] for w in weights
            ]
            run, images = curves
            whole = run[0]
            matched = self.metric.reads == "annotators" and "matches" in stack
            if isinstance(self.metric, CurveOfPixels):
                whole = self.metric.with_whole_image(whole, stack)
            known = self.sources is not None and matched and 0 < run.thresholds[0] < 1
            if self.sources and "ap" in self.targets and setting is OWN and known:
                matches = stack["matches"].sum(axis=0)
                whole = with_whole_image(self.sources, protocol, run.thresholds, matches)
            for measure, words, who, value in readings(run[0], images, whole):
                other_ways.append((words, who, {**scores, measure: float(value)}))
        for words, who, other in other_ways:
            if not any(abs(other[t] - scores[t]) > 1e-12 for t in self.targets):
                continue  # nothing moves, or the value is undefined
            if setting is OWN:
                self.note(words, "reading", other, who=who)
            else:
                both = "; ".join(filter(None, (setting.who, who)))
                self.note(f"{setting.label} + {words}", "setting", other, n_causes=2, who=both)

    def narrow(self, every: Iterable[CountingChange]) -> dict[str, float]:
        """Count whichever setting is nearest on more images, until all are counted or time is up;
        the gaps by label, as far as it was counted.

        Once the targets are met, those are counted on that may meet them too.
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
            elif all(scores.get(t) == self.base[t] for t in self.targets):  # it moves nothing
                self.trials.pop(setting.label, None)
                continue
            more = {"exact": exact, "n_images": n, "n_causes": setting.n_causes}
            gap = self.note(setting.label, "setting", scores, who=setting.who, **more)
            gaps[setting.label] = gap
            if not exact:
                open_[setting] = gap, n
            elif setting.n_causes == 1:
                self.readings(setting, counts, scores)
        if self.left <= 0:
            self.late += open_
        return gaps

    def count(self, setting: CountingChange, images: Sequence[int]) -> list[Any] | None:
        """The counts of images under a setting; None where time was up or an image is refused."""
        protocol = setting.on(self.run.protocol)
        opt, made = self.metric.options_of(protocol), self.made.setdefault(setting.label, {})

        def one(k: int) -> None:
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
                for done, _ in enumerate(pool.map(one, missing), 1):
                    if self.progress:
                        self.progress(done, len(missing), setting.label)
            except DataError:
                return None
        return [made[k] for k in images] if {*images} <= made.keys() else None


@dataclass(slots=True)
class Trial:
    """What is done differently, the scores that gives, and the largest distance to a target.

    kind : one of LIKELY_FIRST; exact : of all images, else estimated from n_images of them
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
        """False for what no known program does."""
        return HOME_MADE not in self.who


def resolution(value: Number) -> float:
    """Return half a unit of a printed number's last digit, at least 1e-6."""
    text = value if isinstance(value, str) else f"{value:.10f}".rstrip("0")
    return max(0.5 * 10.0 ** -len(text.partition(".")[2]), FINEST)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, best first, and the conclusion drawn from them.

    not_counted : settings that were not counted on all images for want of time; of a run without
        files, their kinds
    pairs_not_counted : how many pairs of settings were left out for want of time
    files : False for a run that has counts alone
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
        """False where settings were not counted."""
        return not self.not_counted and not self.pairs_not_counted

    @property
    def partly_line(self) -> str:
        """The number of settings that were counted on some images only, in a line; "" if none."""
        partly = counted(sum(not trial.exact for trial in self.trials), "more setting")
        line = f"{partly} counted on some images only, and further off there: one may fit too"
        return line * any(not trial.exact for trial in self.trials)

    @property
    def late_line(self) -> str:
        """The settings that were not counted, and why, in a line; "" if all were."""
        pairs, named = self.pairs_not_counted, list(self.not_counted)
        named += [f"{counted(pairs, 'pair')} of settings"] * (pairs > 0)
        why = "within the limit" if self.files else "for want of the files"
        return f"not counted {why}: {', '.join(named)}" if named else ""

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """Every trial that meets every target: one identifies the cause, several do not."""
        return tuple(t for t in self.trials if t.reached)

    @property
    def answer(self) -> Trial | None:
        """The likeliest trial that meets every target, or None."""
        return next(iter(self.fitting), None)

    def sentence(self) -> str:
        """The finding in one sentence, to be pasted."""
        trial = self.answer
        rows = f"Published with these numbers: {', '.join(self.published)}. " * bool(self.published)
        asked = ", ".join(f"{in_capitals(m)} {v}" for m, v in self.targets.items())
        present = ", ".join(f"{in_capitals(m)} {v:.4f}" for m, v in self.base.items())
        if trial is None:
            late = " in the time given" if self.files else " from their counts alone"
            late *= not self.complete
            near = next(t for t in self.trials if t.exact)
            return (
                f"{rows}The target ({asked}) is not reachable by any known reading of these "
                f"{self.n_images} images{late}; the nearest that was counted on all of them is "
                f"{near.label}, off by {near.gap:.4f}."
            )
        if not trial.n_causes:
            return f"{rows}The run already has the target ({asked}): {present}."
        if len(self.fitting) > 1:
            return (
                f"{rows}{len(self.fitting)} readings fit the target ({asked}), so none is "
                f"identified: {', '.join(map(_named, self.fitting))}. This run has {present}. More "
                "measures or digits in the target may tell them apart."
            )
        moved = ", ".join(
            f"{in_capitals(m)} from {v:.4f} to {trial.scores[m]:.4f}" for m, v in self.base.items()
        )
        if not trial.in_use:
            return (
                f"{rows}No setting that a known program uses gives the target ({asked}); "
                f"{trial.label!r} agrees with it: {moved}."
            )
        by = f"; used by {trial.who}" if trial.who else ""
        return f"{rows}This run reaches the target ({asked}) with {trial.label!r}: {moved}{by}."


def _named(trial: Trial) -> str:
    """A trial that fits, in a list of several."""
    return repr(trial.label) + " (no known program)" * (not trial.in_use)


def ranked(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Sort trials: those that meet the targets first, the likeliest first; then the nearest."""

    def key(t: Trial) -> tuple[float, ...]:
        likely = (t.n_causes, LIKELY_FIRST.index(t.kind)) if t.reached else ()
        return (not t.reached, *likely, t.gap)

    return tuple(sorted(trials, key=key))
