"""What would give a published score, tried on the run's own images.

What existing counts can show comes first: other readings of them, named choices of images. Then
images are counted under settings: whichever is nearest to the target so far on more of them, where
its difference from the run on the same images is added to the run's score; then pairs. Only a score
of all images can meet a target.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.diagnosis.causes import (
    READINGS,
    Curves,
    Setting,
    named_images,
    other_columns,
    settings,
)
from bsdsbench.diagnosis.explanation import Explanation, Number, Trial, ranked, resolution, trial
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.metrics.boundary import truth_maps, whole_image_counts
from bsdsbench.metrics.many_to_one import many_to_one_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.folder import is_run
from bsdsbench.runs.run import available_cores, evaluate
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.counts import at as value_at
from bsdsbench.scores.counts import one_of
from bsdsbench.scores.curve import FOUR, PRCurve, four_counts

METRIC = registry.DEFAULT[0]
STEPS = (2, 6, 25)  # images that a setting is counted on, before all of them
ROUGH = 20  # thresholds that they are counted at
STARTS = 4  # single settings that pairs are made from
LATE = 0.5  # of the time given: so much later images that were begun are counted to the end
OWN = Setting("", "", "")  # the run itself


def parse_targets(items: Sequence[str]) -> dict[str, str]:
    """`["boundary.ods=0.788"]` -> {"ods": "0.788"}; other metrics keep their name. Raises
    DataError."""
    targets: dict[str, str] = {}
    for item in (part for text in items for part in text.split(",")):
        name, _, value = (part.strip() for part in item.partition("="))
        name = name.lower().removeprefix(f"{METRIC}.")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not name or not 0 <= number < (inf if "." in name else 1 + 1e-9):
            raise DataError(
                f"target {item!r}: expected ods=, ois= or ap= and a number in [0, 1], or "
                "METRIC.SCORE= and a number of another metric"
            )
        if name in targets:
            raise DataError(f"target {item!r}: {name} is given more than once")
        targets[name] = value
    if not targets:
        raise DataError("target: none given, expected such as ods=0.788")
    return targets


def metric_of(targets: Mapping[str, Number]) -> tuple[str, dict[str, Number]]:
    """The metric that targets are of, and they by the keys of its columns. Raises DataError."""
    found: dict[str, dict[str, Number]] = {}
    for target, value in targets.items():
        name, _, key = target.partition(".")
        mine, key = (name, key) if name in registry.names() else (METRIC, target)
        found.setdefault(mine, {})[key] = value
    if len(found) != 1:
        of = "several metrics" if found else "none"
        raise DataError(f"targets {', '.join(targets)}: of {of}, expected those of one")
    return next(iter(found.items()))


def run_of(
    run: str | Path,
    gt_dir: str | Path | None,
    protocol: Protocol,
    *,
    metric: str = METRIC,
    **options: Any,
) -> tuple[Evaluation, Sources]:
    """A saved run and its files, or that of the folders, counted now with options of `evaluate`."""
    folder = Path(run)
    if is_run(folder):
        saved = Evaluation.load(folder)
    elif gt_dir is None:
        raise DataError(
            f"{run}: no saved run (result.json), expected one, or gt_dir='FOLDER' beside maps"
        )
    else:
        saved = evaluate(folder, gt_dir, protocol, metrics=metric, executor="thread", **options)
    return saved, find_sources(saved, gt_dir=gt_dir, metric=metric)


def explain(
    run: Evaluation,
    targets: Mapping[str, Number],
    *,
    sources: Sources | None = None,
    seconds: float = 60.0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """What the run would have to be done like to have the targets.

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
    """
    name, wanted = metric_of(targets)
    files = sources or find_sources(run, metric=name)
    search = Search(run, wanted, files, seconds, workers or available_cores(), progress)
    search.note("as it is", "as it is", search.base, n_causes=0)
    search.readings(OWN, search.own, search.base)
    for label, some in named_images(search.ids, run.place("gt")).items():
        who, scores = (
            f"a run of {len(some)} images",
            search.scores([search.own[k] for k in some], run.protocol),
        )
        search.note(label, "images", scores, n_images=len(some), who=who)
    search.settings()
    return Explanation(
        search.targets,
        {t: search.base[t] for t in wanted},
        ranked(search.trials.values()),
        search.left > 0,
        seconds - search.left,
        len(search.ids),
    )


class Search:
    """The search for one run: counts that are there, counts made on the way, and the clock."""

    def __init__(
        self,
        run: Evaluation,
        targets: Mapping[str, Number],
        sources: Sources,
        seconds: float,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.run, self.sources, self.metric = run, sources, sources.metric
        self.targets, self.workers, self.seconds = dict(targets), workers, seconds
        self.progress, self.until = progress, time.monotonic() + seconds
        found = dict(counts_in_order(run.records, self.metric.name))
        self.ids, self.own = list(found), list(found.values())
        self.base = self.scores(self.own, run.protocol)
        if unknown := [t for t in targets if t not in self.base]:
            known = ", ".join(self.base)
            raise DataError(f"target {unknown[0]!r}: expected any of {known}")
        # images spread over the run: a longer beginning of `order` holds a shorter one
        spread = np.modf(np.arange(len(self.ids)) * 0.6180339887498949)[0]
        self.order = np.argsort(spread, kind="stable").tolist()
        self.steps = [n for n in STEPS if n < len(self.ids)] + [len(self.ids)]
        # few of the thresholds for a first estimate; label maps have their own, all of them taken
        grid, own = run.protocol.thresholds, self.own[0].get("thresholds", ())
        self.few = run.protocol
        if len(grid) > ROUGH and np.array_equal(grid, own):
            self.few = run.protocol.replace(thresholds=grid[:: len(grid) // ROUGH])
        self.trials: dict[str, Trial] = {}  # by label: the last, or one that met the targets
        self.gaps: dict[str, float] = {}  # by the label of a setting, as far as it was counted

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
        tree = one_of(self.metric.scores(stack, once, protocol, opt))
        every = {c.key: value_at(tree, c.key) for c in self.metric.columns if c.score}
        return {k: float(v) for k, v in every.items() if v is not None and v == v}

    def note(self, label: str, kind: str, scores: Mapping[str, float], **more: Any) -> float:
        """Note a trial, of all images and of one cause unless said otherwise; its gap."""
        if not self.targets.keys() <= scores.keys():
            return inf
        found = trial(self.targets, label, kind, scores, **{"n_images": len(self.ids), **more})
        before = self.trials.get(label)
        if found.reached or not (before and before.reached):
            self.trials[label] = found
        return found.gap

    def readings(
        self, setting: Setting, counts: Sequence[Mapping[str, Any]], scores: Mapping[str, float]
    ) -> None:
        """Each other reading of all images' counts under a setting."""
        found = [(w, "", s) for w, s in other_columns(self.metric, self.targets, scores)]
        protocol = setting.on(self.run.protocol)
        opt = self.metric.options_of(protocol)
        if self.metric.has_curve(opt):
            stack, n = self.metric.stack(counts), len(counts)
            run, images = (
                self.metric.scores(stack, weights, protocol, opt)["curve"]
                for weights in (np.ones((1, n), np.int64), np.eye(n, dtype=np.int64))
            )
            whole, first = run[0], run.thresholds[0]
            matched = self.metric.reads == "annotators" and {*FOUR} <= stack.keys()
            if "ap" in self.targets and setting is OWN and matched and 0 < first < 1:

                def all_on(image_id: str) -> Any:
                    gt = self.sources.truth(image_id, protocol)
                    return whole_image_counts(truth_maps(gt, protocol))

                with ThreadPoolExecutor(self.workers) as pool:
                    row = np.sum(list(pool.map(all_on, self.ids)), axis=0)
                four = np.vstack([row, four_counts(stack).sum(axis=0)])
                whole = PRCurve.of_counts(np.r_[0.0, run.thresholds], four)
            for reading in READINGS:
                if reading.measure in self.targets:
                    value = float(reading.value(Curves(run[0], images, whole)))
                    found.append((reading.label, reading.who, {**scores, reading.measure: value}))
        for words, who, other in found:
            if not max(abs(other[t] - scores[t]) for t in self.targets) > 1e-12:
                continue  # nothing moves, or a value is undefined
            if setting is OWN:
                self.note(words, "reading", other, who=who)
            else:
                both = "; ".join(filter(None, (setting.who, who)))
                self.note(f"{setting.label} + {words}", "setting", other, n_causes=2, who=both)

    def settings(self) -> None:
        """Each setting alone, with every reading of the nearest, then in pairs."""
        every = [s for s in settings(self.metric) if s.differs(self.run.protocol, self.metric)]
        self.narrow(every)
        if self.reached:
            return
        pairs: dict[frozenset[str], Setting] = {}
        for one in sorted(every, key=lambda s: self.gaps.get(s.label, inf))[:STARTS]:
            for two in every:
                both = one.with_other(two)
                if both and both.differs(self.run.protocol, self.metric):
                    pairs.setdefault(frozenset((one.label, two.label)), both)
        self.narrow(list(pairs.values()))

    def narrow(self, every: Sequence[Setting]) -> None:
        """Count whichever setting is nearest on more images, until all are counted or time is up.

        Once the targets are met, those are counted on that may meet them too.
        """
        made: dict[str, dict[int, Any]] = {s.label: {} for s in every}
        own = dict(enumerate(self.own))
        begun = {False: own, True: own if self.few is self.run.protocol else {}}
        self.count(OWN, self.few, self.order[: STEPS[-1]], begun[True])
        open_ = {s.label: (-inf, s) for s in every}
        near = max(resolution(t) for t in self.targets.values())
        while open_ and self.left > 0:
            label = min(open_, key=lambda name: open_[name][0])
            gap, setting = open_.pop(label)
            if self.reached and gap > near:
                return
            n = next(step for step in self.steps if step > len(made[label]))
            exact, at = n == len(self.ids), sorted(self.order[:n])
            base, protocol = self.run.protocol, setting.on(self.run.protocol)
            few = not exact and protocol.thresholds == base.thresholds
            if few:
                base, protocol = self.few, setting.on(self.few)
            elif exact and self.few is not base:
                made[label] = {}
            if not self.count(setting, protocol, self.order[:n], made[label]):
                continue
            counts = [made[label][k] for k in at]
            scores = self.scores(counts, protocol)
            if exact:
                if all(scores.get(t) == self.base[t] for t in self.targets):  # it moves nothing
                    self.trials.pop(label, None)
                    continue
            else:
                before = self.scores([begun[few][k] for k in at], base)
                both = scores.keys() & before.keys() & self.base.keys()
                scores = {t: self.base[t] + scores[t] - before[t] for t in both}
            more = {"exact": exact, "n_images": n, "n_causes": setting.n_causes}
            gap = self.note(label, "setting", scores, who=setting.who, **more)
            self.gaps[label] = gap
            if not exact:
                open_[label] = gap, setting
            elif setting.n_causes == 1:
                self.readings(setting, counts, scores)

    def count(
        self, setting: Setting, protocol: Protocol, at: Sequence[int], made: dict[int, Any]
    ) -> bool:
        """Count images under a setting; False where time was up or an image is refused."""
        opt = self.metric.options_of(protocol)

        def one(k: int) -> None:
            if self.left < -LATE * self.seconds:
                return
            pred, gt = self.sources.load(self.ids[k], self.run, protocol)
            gt = setting.truth(gt)
            if setting.match == "1toN":
                made[k] = many_to_one_counts(pred, gt, protocol)
            else:
                made[k] = self.metric.count(pred, gt, protocol, opt)

        with ThreadPoolExecutor(self.workers) as pool:
            try:
                missing = [k for k in at if k not in made]
                for done, _ in enumerate(pool.map(one, missing), 1):
                    if self.progress:
                        self.progress(done, len(missing), setting.label)
            except DataError:
                return False
        return {*at} <= made.keys()
