"""Explaining a score of any metric by what the metric itself says is in use.

Readings are its columns of one quantity, settings the values in use of its options and of the
protocol's fields that it reads. Existing counts are read first. A setting is counted on a few
images, then the nearest ones on all; pairs of two settings follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.causes import Choice, Setting, choices, option_settings
from bsdsbench.diagnosis.explanation import BY_CHANCE, Explanation, Trial, ranked, trial
from bsdsbench.diagnosis.recount import in_threads
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Column, counts_in_order
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import Sources
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.score import at as value_at

FEW = 6  # images that rank settings
STARTS = 4  # settings that pairs are made from
AT_HAND = 30  # images whose arrays are kept
Scores = dict[str, float]


class MetricSearch:
    """The search in one run of one metric."""

    def __init__(
        self,
        run: Evaluation,
        targets: Mapping[str, float],
        sources: Sources,
        seconds: float,
        workers: int,
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self.run, self.metric, self.sources = run, sources.metric, sources
        self.targets, self.workers, self.progress = dict(targets), workers, progress
        found = counts_in_order(run.records, self.metric.name)
        self.ids, self.own = [i for i, _ in found], [c for _, c in found]
        self.started, self.seconds = time.monotonic(), seconds
        self.trials: list[Trial] = []
        self.base = self.scores(self.own, run.protocol)
        lacking = [t for t in targets if self.base.get(t) is None]
        if lacking or not targets:
            known = ", ".join(k for k, v in self.base.items() if v is not None)
            raise DataError(f"target {lacking[:1] or 'missing'}: expected any of {known}")
        self.kept: dict[int, Any] = {}
        self.known: dict[tuple[int, ...], Scores] = {}
        self.made: dict[str, dict[int, Any]] = {}
        self.whole: dict[str, Scores] = {}  # of settings that are counted on all images

    def scores(self, counts: Sequence[Any], protocol: Protocol) -> Scores:
        """The score columns of a data set."""
        return self._subsets(counts, protocol, np.ones((1, len(counts)), np.int64))[0]

    def own_on(self, at: tuple[int, ...]) -> Scores:
        """The run's own score columns on some of its images."""
        if at not in self.known:
            self.known[at] = self.scores([self.own[k] for k in at], self.run.protocol)
        return self.known[at]

    def _subsets(
        self, counts: Sequence[Any], protocol: Protocol, weights: NDArray[np.int64]
    ) -> list[Scores]:
        opt = self.metric.options_of(protocol)
        tree = self.metric.scores(self.metric.stack(counts), weights, protocol, opt)
        every = ((c.key, value_at(tree, c.key)) for c in self.metric.columns if c.score)
        shown = {key: values for key, values in every if values is not None}
        rows = ({k: float(v[i]) for k, v in shown.items()} for i in range(len(weights)))
        return [{k: v for k, v in row.items() if v == v} for row in rows]

    def explanation(self, gt_dir: Path | None, sets: Mapping[str, Sequence[str]]) -> Explanation:
        """Try everything, what is there first. Every setting is tried though one has reached the
        targets: others may as well."""
        self.add("as it is", "as it is", self.base, n_causes=0)
        self.readings(self.base)
        self.images(choices(self.ids, gt_dir, sets))
        if not self.reached():
            self.settings()
        return Explanation(
            self.targets,
            {t: self.base[t] for t in self.targets},
            ranked(self.trials, self.targets),
            self.left > 0,
            time.monotonic() - self.started,
            len(self.ids),
        )

    def add(self, label: str, kind: str, scores: Mapping[str, float], **more: Any) -> None:
        """Note a trial in which every measure asked for is defined."""
        if all(t in scores for t in self.targets):
            asked = {t: scores[t] for t in self.targets}
            given = {"n_images": len(self.ids), **more}
            self.trials.append(trial(self.targets, label, kind, asked, **given))

    def reached(self) -> bool:
        """True if a trial has met the targets, and not by chance."""
        return any(t.settles for t in self.trials)

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - (time.monotonic() - self.started)

    def readings(self, scores: Scores, before: Setting | None = None) -> None:
        """The columns that go by the same names as those asked for, all by the same rule."""
        for rule, found in _other_columns(self.metric.columns, self.targets, scores):
            if any(abs(found[t] - scores[t]) > 1e-12 for t in self.targets):
                label = f"{before.label} + {rule}" if before else rule
                kind = "setting" if before else "reading"
                causes = 1 + before.n_causes if before else 1
                who = before.who if before else ""
                self.add(label, kind, found, n_causes=causes, who=who)

    def images(self, found: Sequence[Choice]) -> None:
        """Some of the images, from the counts that are there."""
        weights = np.zeros((len(found), len(self.ids)), np.int64)
        for row, choice in zip(weights, found, strict=True):
            row[choice.images] = 1
        if len(found):
            each = self._subsets(self.own, self.run.protocol, weights)
            for choice, scores in zip(found, each, strict=True):
                kind = "images" if choice.named else BY_CHANCE
                who = f"a run of {choice.images.size} images"
                self.add(choice.label, kind, scores, who=who)

    def settings(self) -> None:
        """Each setting alone, the nearest ones with every reading, then in pairs."""
        every = [s for s in option_settings(self.metric) if self._changes(s)]
        nearest = self.counted(every)
        self.with_readings(nearest)
        if self.reached() or self.left < 0:
            return
        pairs: dict[frozenset[str], Setting] = {}
        for one in nearest[:STARTS]:
            for two in every:
                both = one.with_other(two)
                if both and self._changes(both):
                    pairs.setdefault(frozenset((one.label, two.label)), both)
        self.with_readings(self.counted(list(pairs.values())))

    def with_readings(self, settings: Sequence[Setting]) -> None:
        """The readings of settings that are counted on all images."""
        for setting in settings:
            if scores := self.whole.get(setting.label):
                self.readings(scores, setting)

    def counted(self, settings: Sequence[Setting]) -> list[Setting]:
        """Settings by how near they come: some images first, then all of them, the nearest first.

        What gives the run's own counts or is refused is left out.
        """
        total = len(self.ids)
        order = np.argsort(np.modf(np.arange(total) * 0.6180339887498949)[0], kind="stable")
        gaps = {}
        for setting in self.filled(settings, order[:FEW]):
            gaps[setting.label] = self.estimate(setting)
        near = sorted((s for s in settings if s.label in gaps), key=lambda s: gaps[s.label])
        for setting in near:
            if self.left < 0:
                break
            if self.filled([setting], order):
                gaps[setting.label] = self.estimate(setting)
        return [s for s in near if np.isfinite(gaps[s.label])]

    def filled(self, settings: Sequence[Setting], at: NDArray[np.int64]) -> list[Setting]:
        """Count images under settings while there is time; those that could be, and differ."""
        faulty: set[str] = set()
        protocols = [setting.of(self.run.protocol) for setting in settings]

        def one(k: int) -> None:
            for setting, protocol in zip(settings, protocols, strict=True):
                made = self.made.setdefault(setting.label, {})
                if k not in made and setting.label not in faulty and self.left > 0:
                    try:
                        pred, gt = self._read(k, protocol)
                        opt = self.metric.options_of(protocol)
                        made[k] = Counts(**self.metric.count(pred, gt, protocol, opt))
                    except DataError:
                        faulty.add(setting.label)

        for done, _ in enumerate(in_threads(one, map(int, at), self.workers), 1):
            if self.progress:
                self.progress(done, len(at), f"{len(settings)} settings")
        wanted = set(map(int, at))
        return [
            s for s in settings if s.label not in faulty and wanted <= self.made[s.label].keys()
        ]

    def estimate(self, setting: Setting) -> float:
        """Note the trial of what is counted of a setting; its gap."""
        made = self.made[setting.label]
        at, protocol = sorted(made), setting.of(self.run.protocol)
        exact = len(at) == len(self.ids)
        scores = self.scores([made[k] for k in at], protocol)
        if exact:
            self.whole[setting.label] = scores
        else:
            own = self.own_on(tuple(at))
            both = scores.keys() & own.keys() & self.base.keys()
            scores = {t: self.base[t] + scores[t] - own[t] for t in both}
        moved = [abs(scores[t] - self.base[t]) for t in self.targets if t in scores]
        if len(moved) < len(self.targets) or (exact and max(moved) < 1e-12):
            return np.inf
        more = {"exact": exact, "n_images": len(at), "n_causes": setting.n_causes}
        self.add(setting.label, "setting", scores, who=setting.who, **more)
        return self.trials[-1].gap

    def _changes(self, setting: Setting) -> bool:
        before, after = self.run.protocol, setting.of(self.run.protocol)
        same = before.with_options({}) == after.with_options({})
        return not same or self.metric.options_of(before) != self.metric.options_of(after)

    def _read(self, k: int, protocol: Protocol) -> tuple[Prediction, GroundTruth]:
        """Prediction and truth; kept for settings that read files as the run did."""
        if protocol.gt_options() != self.run.protocol.gt_options():
            return self.sources.load(self.ids[k], self.run, protocol)
        found = self.kept.get(k) or self.sources.load(self.ids[k], self.run)
        if len(self.kept) < AT_HAND:
            self.kept.setdefault(k, found)
        return found


def _other_columns(
    columns: Sequence[Column], targets: Mapping[str, float], scores: Scores
) -> Iterator[tuple[str, Scores]]:
    """(words, scores) with each target read off another column of its quantity.

    Columns of several quantities belong together where their keys differ from these alike:
    "mae_sum" and "max_f_sum".
    """
    of = {c.key: c for c in columns if c.quantity}
    if not set(targets) <= of.keys():
        return

    def way(key: str) -> str:
        return key.replace(of[key].quantity, "", 1)

    for name in dict.fromkeys(way(k) for k in of):
        found = {
            t: next(k for k in of if of[k].quantity == of[t].quantity and way(k) == name)
            for t in targets
            if any(of[k].quantity == of[t].quantity and way(k) == name for k in of)
        }
        if len(found) == len(targets) and all(k in scores for k in found.values()):
            words = ", ".join(of[k].heading for k in found.values())
            yield words, {**scores, **{t: scores[k] for t, k in found.items()}}
