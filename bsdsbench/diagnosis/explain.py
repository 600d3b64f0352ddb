"""What would give a published score, tried on the run's own images.

What existing counts can show comes first: other readings of them, named choices of images. Then
settings are counted: each on a few images, at some of the thresholds, where its difference from the
run is added to the run's score; the nearest on more images, the last few on all; then pairs. Only a
score of all images can meet a target.
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
    beside,
    named_images,
    other_columns,
    settings,
)
from bsdsbench.diagnosis.explanation import Explanation, Number, Trial, ranked, resolution, trial
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
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
# Rounds: how many of the settings, the nearest first, on how many images, at some thresholds
ROUNDS = ((1000, 2), (16, 6), (8, 12), (4, 25))
STARTS = 4  # single settings that pairs are made from
LATE = 1.5  # times the time given: until then all images under a setting are counted to the end
SHARE = 0.6  # of the time left, for images that the run does not have
AT_HAND = 30  # images whose arrays are kept
ROUGH = 20  # thresholds of the rounds
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
    search.readings(search.own, search.base)
    search.images()
    if not search.reached:
        search.other_images()
    if not search.reached:
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
        self.targets, self.workers = dict(targets), workers
        self.progress = progress or (lambda *_: None)
        self.started, self.seconds = time.monotonic(), seconds
        found = dict(counts_in_order(run.records, self.metric.name))
        self.ids, self.own = list(found), list(found.values())
        self.base = self.scores(self.own, run.protocol)
        if unknown := [t for t in targets if t not in self.base]:
            known = ", ".join(self.base)
            raise DataError(f"target {unknown[0]!r}: expected any of {known}")
        self.gt_dir = Path(gt) if (gt := run.place("gt")) else None
        # images spread over the run: a longer beginning of `order` holds a shorter one
        spread = np.modf(np.arange(len(self.ids)) * 0.6180339887498949)[0]
        self.order = np.argsort(spread, kind="stable").tolist()
        # some thresholds of the rounds; label maps have their own, all of which are taken
        grid, own = run.protocol.thresholds, self.own[0].get("thresholds", ())
        some = len(grid) > ROUGH and np.array_equal(grid, own)
        self.knots = grid[:: len(grid) // ROUGH] if some else ()
        self.arrays: dict[int, tuple[Prediction, GroundTruth]] = {}
        self.trials: dict[str, Trial] = {}  # by label: the last, or one that met the targets
        self.refused: set[str] = set()
        # by setting and whether at some thresholds only: counts of images, scores of some
        self.made: dict[tuple[str, bool], dict[int, Any]] = {
            (OWN.label, False): dict(enumerate(self.own))
        }
        self.known: dict[Any, dict[str, float]] = {}
        self.between: dict[str, dict[str, float]] = {}
        self.whole = {OWN.label: (OWN, self.base)}  # scores of settings on all images

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - (time.monotonic() - self.started)

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

    # ---- counts that are there

    def readings(
        self,
        counts: Sequence[Mapping[str, Any]],
        scores: Mapping[str, float],
        setting: Setting = OWN,
    ) -> None:
        """Each other reading of all images' counts."""
        found = [(w, "", s) for w, s in other_columns(self.metric, self.targets, scores)]
        if curves := self._curves(counts, setting):
            for reading in READINGS:
                if reading.measure in self.targets:
                    value = float(reading.value(curves))
                    found.append((reading.label, reading.who, {**scores, reading.measure: value}))
        for words, who, other in found:
            moved = [abs(other[t] - scores[t]) for t in self.targets]
            if not max(moved) > 1e-12:  # nothing moves, or a value is undefined
                continue
            if setting is OWN:
                self.note(words, "reading", other, who=who)
            else:
                both = "; ".join(filter(None, (setting.who, who)))
                self.note(f"{setting.label} + {words}", "setting", other, n_causes=2, who=both)

    def _curves(self, counts: Sequence[Mapping[str, Any]], setting: Setting) -> Curves | None:
        protocol = self.run.protocol.replace(**setting.changes)
        opt = self.metric.options_of(protocol)
        if not self.metric.has_curve(opt):
            return None
        stack, n = self.metric.stack(counts), len(counts)
        run, images = (
            self.metric.scores(stack, weights, protocol, opt)["curve"]
            for weights in (np.ones((1, n), np.int64), np.eye(n, dtype=np.int64))
        )
        whole, first = run[0], run.thresholds[0]
        matched = self.metric.reads == "annotators" and {*FOUR} <= stack.keys()
        if "ap" in self.targets and setting is OWN and matched and 0 < first < 1:
            with ThreadPoolExecutor(self.workers) as pool:
                rows = list(pool.map(self._whole_image, self.ids))
            four = np.vstack([np.sum(rows, axis=0), four_counts(stack).sum(axis=0)])
            whole = PRCurve.of_counts(np.r_[0.0, run.thresholds], four)
        return Curves(run[0], images, whole)

    def _whole_image(self, image_id: str) -> tuple[int, int, int, int]:
        gt = self.sources.truth(image_id, self.run.protocol)
        return whole_image_counts(truth_maps(gt, self.run.protocol))

    def images(self) -> None:
        """Images that something names, from the counts that are there."""
        for label, some in named_images(self.ids, self.gt_dir).items():
            self._note_images(label, [self.own[k] for k in some])

    def _note_images(self, label: str, counts: Sequence[Mapping[str, Any]]) -> None:
        scores = self.scores(counts, self.run.protocol)
        who = f"a run of {len(counts)} images"
        self.note(label, "images", scores, n_images=len(counts), who=who)

    def other_images(self) -> None:
        """Images that the run does not have, counted as it counts, in a share of the time."""
        protocol, opt = self.run.protocol, self.metric.options_of(self.run.protocol)
        for label, group in beside(self.run, self.sources):
            until = self.left * (1 - SHARE)

            def one(image_id: str, group: Sources = group, until: float = until) -> Any:
                if self.left <= until:
                    return None
                try:
                    return self.metric.count(*group.load(image_id, self.run), protocol, opt)
                except DataError:
                    return None

            new: dict[str, Any] = {}
            with ThreadPoolExecutor(self.workers) as pool:
                for image_id, counts in zip(group.pairs, pool.map(one, group.pairs), strict=True):
                    new[image_id] = counts
                    self.progress(len(new), len(group.pairs), "other images")
            if any(counts is None for counts in new.values()):  # too late, or one is refused
                continue
            ids, every = [*self.ids, *new], [*self.own, *new.values()]
            for name, some in named_images(ids, self.gt_dir).items():
                if some.max() >= len(self.ids):
                    self._note_images(name, [every[k] for k in some])
            self._note_images(f"all {len(every)} images, with {label}", every)
            self._note_images(label, list(new.values()))
            if self.reached:
                return

    # ---- counts that are made

    def settings(self) -> None:
        """Each setting alone, the nearest with every reading, then in pairs."""
        every = [s for s in settings(self.metric) if s.differs(self.run.protocol, self.metric)]
        order = self.narrow(every)
        for setting in order:
            if self.reached or self.left < 0:
                return
            if setting.label in self.whole:
                made = self.made[self._key(setting, False)]
                counts = [made[k] for k in range(len(self.ids))]
                self.readings(counts, self.whole[setting.label][1], setting)
        pairs: dict[frozenset[str], Setting] = {}
        for one in order[:STARTS]:
            for two in every:
                both = one.with_other(two)
                if both and both.differs(self.run.protocol, self.metric):
                    pairs.setdefault(frozenset((one.label, two.label)), both)
        self.narrow(list(pairs.values()))

    def narrow(self, every: list[Setting]) -> list[Setting]:
        """Count settings on more and more images, the nearest first; they come back so ordered."""
        order, total = list(every), len(self.ids)
        for kept, n in ROUNDS:
            some = self.count(order[:kept], self.order[:n], rough=True)
            gaps = {s.label: self.estimate(s, True) for s in some}
            order = sorted(some, key=lambda s: gaps[s.label]) + order[kept:]
        open_ = list(order)
        enough = min(ROUNDS[-1][1], total)
        near = max(resolution(t) for t in self.targets.values())
        while open_ and self.left > 0:
            gaps = {s.label: self.estimate(s, True) for s in open_}
            open_.sort(key=lambda s: gaps[s.label])
            if self.reached and gaps[open_[0].label] > near:
                break
            few = len(self.made.get(self._key(open_[0], True), ())) < enough
            if few and not self._between(open_[0]):
                if not self.count(open_[:1], self.order[:enough], rough=True):
                    open_.pop(0)
                continue
            setting = open_.pop(0)
            if self.count([setting], self.order, rough=False):
                self.estimate(setting, False)
        order = [s for s in order if s.label not in self.refused]
        return sorted(order, key=lambda s: self.estimate(s, s.label not in self.whole))

    def count(self, some: Sequence[Setting], at: Sequence[int], rough: bool) -> list[Setting]:
        """Count images under settings while there is time; gives those that are counted on all of
        `at`."""
        tried = [s for s in some if s.label not in self.refused]
        if rough:
            tried = [OWN, *(s for s in tried if not self._between(s))]
        protocols = {s.label: self._protocol(s, rough) for s in tried}
        late = (LATE - 1) * self.seconds if not rough else 0.0
        for setting in tried:
            self.made.setdefault(self._key(setting, rough), {})

        def one(k: int) -> None:
            missing = [s for s in tried if k not in self.made[self._key(s, rough)]]
            if not missing or self.left < -late:
                return
            own = self.arrays.get(k) or self.sources.load(self.ids[k], self.run)
            if len(self.arrays) < AT_HAND:
                self.arrays.setdefault(k, own)
            for setting in missing:
                try:
                    made = self._count(setting, k, own, protocols[setting.label])
                    self.made[self._key(setting, rough)][k] = made
                except DataError:
                    self.refused.add(setting.label)

        with ThreadPoolExecutor(self.workers) as pool:
            for done, _ in enumerate(pool.map(one, at), 1):
                self.progress(done, len(at), f"{len(some)} settings")
        return [
            s
            for s in some
            if s.label not in self.refused
            and (
                (rough and self._between(s))
                or {*at} <= self.made.get(self._key(s, rough), {}).keys()
            )
        ]

    def _count(
        self, setting: Setting, k: int, own: tuple[Prediction, GroundTruth], protocol: Protocol
    ) -> Mapping[str, Any]:
        """The counts of an image, which is read again where the setting reads files otherwise."""
        pred, gt = own
        if protocol.gt_options() != self.run.protocol.gt_options():
            pred, gt = self.sources.load(self.ids[k], self.run, protocol)
        gt = setting.truth(gt)
        if setting.match == "1toN":
            return many_to_one_counts(pred, gt, protocol)
        return self.metric.count(pred, gt, protocol, self.metric.options_of(protocol))

    def estimate(self, setting: Setting, rough: bool) -> float:
        """Note the score of all images, moved by what the setting moves on some; its gap.

        It is moved from the run, or from the most similar setting that was counted on all images.
        """
        if rough and (guess := self._between(setting)):
            self.note(setting.label, "setting", guess, who=setting.who, exact=False)
            asked = [t for t in self.targets if t != "ois" and t in guess] or list(self.targets)
            return max(abs(guess.get(t, inf) - float(self.targets[t])) for t in asked)
        key = self._key(setting, rough)
        at = tuple(sorted(self.made.get(key, ())))
        if not at or setting.label in self.refused:
            return inf
        scores = self._scores(setting, key, at)
        exact = len(at) == len(self.ids) and not key[1]
        if exact:
            self.whole[setting.label] = setting, scores
            if all(scores.get(t) == self.base[t] for t in self.targets):  # it moves nothing
                self.refused.add(setting.label)
                self.trials.pop(setting.label, None)
                return inf
        else:
            found, away, scores = scores, inf, {}
            for other, whole in self.whole.values():
                theirs = other.label, key[1]
                if other is setting or not {*at} <= self.made.get(theirs, {}).keys():
                    continue
                own = self._scores(other, theirs, at)
                both = [t for t in self.targets if t in found and t in own and t in whole]
                distance = max((abs(found[t] - own[t]) for t in both), default=inf)
                if distance < away:
                    away, scores = distance, {t: whole[t] + found[t] - own[t] for t in both}
        more = {"exact": exact, "n_images": len(at), "n_causes": setting.n_causes}
        return self.note(setting.label, "setting", scores, who=setting.who, **more)

    def _between(self, setting: Setting) -> dict[str, float]:
        """The scores at other thresholds (ODS and AP nearly exact), between the run's own; {}
        without."""
        plain = setting.changes.keys() == {"thresholds"} and setting.n_causes == 1
        if not (plain and self.knots and {*FOUR} <= self.own[0].keys()):
            return {}
        if setting.label not in self.between:
            protocol = self._protocol(setting, rough=False)
            grid, last = protocol.threshold_array(), len(self.run.protocol.thresholds) - 1
            at = np.interp(grid, self.run.protocol.thresholds, np.arange(last + 1))
            low = np.floor(at).astype(np.int64)
            high, share = np.minimum(low + 1, last), at - low
            made = []
            for own in self.own:
                four = {n: np.rint(own[n][low] * (1 - share) + own[n][high] * share) for n in FOUR}
                counts = {name: array.astype(np.int64) for name, array in four.items()}
                made.append({"thresholds": grid, **counts})
            self.between[setting.label] = self.scores(made, protocol)
        return self.between[setting.label]

    def _scores(
        self, setting: Setting, key: tuple[str, bool], at: tuple[int, ...]
    ) -> dict[str, float]:
        """The scores of some images under a setting; kept."""
        if (key, at) not in self.known:
            counts = [self.made[key][k] for k in at]
            self.known[key, at] = self.scores(counts, self._protocol(setting, key[1]))
        return self.known[key, at]

    def _key(self, setting: Setting, rough: bool) -> tuple[str, bool]:
        """Under what its counts are kept; at all thresholds where it has its own."""
        return setting.label, rough and bool(self.knots) and "thresholds" not in setting.changes

    def _protocol(self, setting: Setting, rough: bool) -> Protocol:
        found = self.run.protocol.replace(**setting.changes)
        return found.replace(thresholds=self.knots) if self._key(setting, rough)[1] else found
