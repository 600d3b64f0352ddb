"""Settings that could account for the gap to a published score, tried on the run's own images.

Single causes come before pairs, and causes that existing counts can show before those that need
counting again. A setting is first counted on one image: its difference from the run on that image
is added to the run's score. The nearest settings are then counted on more images and the last few
on all; each complete one improves the estimates of similar settings. Only a score of all images can
reach a target.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.any_metric import MetricSearch
from bsdsbench.diagnosis.causes import Choice, Setting, choices, settings
from bsdsbench.diagnosis.explanation import BY_CHANCE, Explanation, Trial, ranked, trial
from bsdsbench.diagnosis.other_images import counted, groups_beside, other_choices
from bsdsbench.diagnosis.recount import METRIC, Counting, counting_of
from bsdsbench.diagnosis.rule_variants import MEASURES, READINGS, Table, measure
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.folder import is_run
from bsdsbench.runs.run import available_cores, evaluate
from bsdsbench.runs.sources import Sources, find_sources

Known = Mapping[str, Sequence[str]]
# Rounds: how many of the settings, the nearest first, on how many images, at some thresholds. Then
# the most hopeful one at a time, on ENOUGH images first, then on all at all thresholds.
ROUNDS = ((1000, 2), (12, 5), (6, 12), (4, 25))
ENOUGH = 25
STARTS = 4  # single settings that pairs are made from
LATE = 0.5  # of the time, to finish a round of all images that was begun in time
LEAST = 1  # images of a round that are counted however late it is
SHARE = 0.4  # of the time left, for images that the run does not have


def parse_targets(items: Sequence[str]) -> dict[str, float]:
    """`["boundary.ods=0.788", "ap=.84"]` -> {"ods": 0.788, "ap": 0.84}. Raises DataError.

    Scores of another metric keep its name: {"saliency.mae_mean": 0.04}.
    """
    targets: dict[str, float] = {}
    for item in (part for text in items for part in text.split(",")):
        name, equals, value = item.partition("=")
        name = name.strip().lower().removeprefix(f"{METRIC}.")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        other = name.partition(".")[0] in registry.names()
        if (
            not equals
            or not (other or name in MEASURES)
            or not 0 <= number <= (inf if other else 1)
        ):
            raise DataError(
                f"--target {item!r}: expected ods=, ois= or ap= and a number in [0, 1], or "
                "METRIC.SCORE= and a number of another metric"
            )
        if name in targets:
            raise DataError(f"--target {item!r}: {name} is given more than once")
        targets[name] = number
    if not targets:
        raise DataError("--target: none given, expected such as ods=0.788")
    return targets


def metric_of(targets: Mapping[str, float]) -> tuple[str, dict[str, float]]:
    """The metric that targets are of, and they by the names of its columns. Raises DataError."""
    split = [(t.partition("."), v) for t, v in targets.items()]
    others = {name for (name, _, _), _ in split if name in registry.names()}
    if not others:
        return METRIC, dict(targets)
    if len(others) > 1 or not all(name in others for (name, _, _), _ in split):
        raise DataError(f"targets {', '.join(targets)}: of several metrics, expected those of one")
    return others.pop(), {rest: v for (_, _, rest), v in split}


class Search:
    """The search for one run: counts that are there, counts made on the way, and the clock."""

    def __init__(
        self,
        counting: Counting,
        protocol: Protocol,
        targets: Mapping[str, float],
        seconds: float,
        progress: Progress | None,
    ) -> None:
        unknown = [m for m in targets if m not in MEASURES]
        if unknown or not targets:
            known = ", ".join(MEASURES)
            raise DataError(f"target {unknown[:1] or 'missing'}: expected any of {known}")
        self.counting, self.rough = counting, counting.rough()
        self.protocol, self.targets = protocol, dict(targets)
        self.started, self.seconds = time.monotonic(), seconds
        self.progress = progress
        self.base = self.scores(counting.own)
        self.trials: dict[str, Trial] = {}  # by label: the last, or one that reached the target
        # Counted on all images; the run itself, None, is the first.
        self.whole: list[tuple[Setting | None, dict[str, float]]] = [(None, self.base)]
        self.known: dict[tuple[bool, str, bytes], dict[str, float]] = {}
        # How many of `whole` a setting is compared with, how far the nearest is, what it says.
        self.estimates: dict[tuple[bool, str, bytes], tuple[int, float, dict[str, float]]] = {}

    def scores(self, table: Table) -> dict[str, float]:
        """The measures asked for, by the rules of the run's protocol."""
        p = self.protocol
        return {m: measure(table, m, p.ap_rule, p.ods_rule) for m in self.targets}

    def add(self, label: str, kind: str, scores: Mapping[str, float], **more: Any) -> Trial:
        """Note a trial, of all images and of one cause unless said otherwise."""
        given = {"n_images": len(self.counting.ids), **more}
        found = trial(self.targets, label, kind, scores, **given)
        before = self.trials.get(label)
        if found.reached or not (before and before.reached):
            self.trials[label] = found
        return found

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - (time.monotonic() - self.started)

    def reached(self, *kinds: str) -> bool:
        """True if a trial (of these kinds) has reached the target, and not by chance."""
        return any(t.settles and (not kinds or t.kind in kinds) for t in self.trials.values())

    def readings(self, table: Table, label: str = "", kind: str = "reading", who: str = "") -> None:
        """Each other rule of a measure asked for, on the counts of all images."""
        scores = self.scores(table)
        for rule in READINGS:
            if rule.measure not in self.targets:
                continue
            value = rule.value(table)
            if value != value or abs(value - scores[rule.measure]) < 1e-12:
                continue
            self.add(
                f"{label} + {rule.label}" if label else rule.label,
                kind,
                {**scores, rule.measure: value},
                n_causes=1 + bool(label),
                who=f"{who}; {rule.who}" if who else rule.who,
            )

    def images(self, found: Sequence[Choice]) -> None:
        """Each choice of images, from the counts that are there."""
        for choice in found:
            self.add(
                choice.label,
                "images" if choice.named else BY_CHANCE,
                self.scores(self.counting.own.of(choice.images)),
                who=f"a run of {choice.images.size} images",
            )

    def others(self, run: Evaluation, files: Sources, gt_dir: Path | None, sets: Known) -> None:
        """Images that the run does not have, counted as it counts, in a share of the time."""
        for group in groups_beside(run, files):
            if self.reached() or self.left < 0:
                return
            until = self.left * (1 - SHARE)

            def show(done: int, total: int) -> None:
                if self.progress:
                    self.progress(done, total, "other images")

            counts = counted(run, group, self.counting.workers, lambda: self.left > until, show)  # noqa: B023
            if counts:
                own = self.counting
                table, found = other_choices(own.ids, own.own, group, counts, gt_dir, sets)
                for choice in found:
                    who = f"a run of {choice.images.size} images"
                    self.add(choice.label, "images", self.scores(table.of(choice.images)), who=who)

    def place(self, setting: Setting, rough: bool) -> Counting:
        """Where a setting is counted: at some of the thresholds, unless it has its own."""
        return self.rough if rough and "thresholds" not in setting.changes else self.counting

    def round(self, tried: Sequence[Setting], n: int, rough: bool = False) -> list[Setting]:
        """Count the settings on n images spread over the run, or as many as there is time for.

        Returns them, the nearest to the targets first.
        """
        at = self.counting.spread(n)
        grace = LATE * self.seconds if n >= len(self.counting.ids) and not rough else 0.0

        def show(done: int, total: int) -> None:
            if self.progress:
                self.progress(done, total, f"{len(tried)} settings")

        known = [s for s in tried if rough and s.kind == "thresholds"]
        gaps = {s.label: self.guess(s) for s in known}
        counted = [s for s in tried if s not in known]
        for place in dict.fromkeys(self.place(s, rough) for s in counted):
            mine = [s for s in counted if self.place(s, rough) is place]
            place.fill(mine, self.counting.spread(min(n, LEAST)))
            done = place.fill(mine, at, lambda: self.left > -grace, show)
            gaps |= {s.label: self.estimate(s, done, rough).gap for s in mine}
        return sorted(tried, key=lambda setting: gaps[setting.label])

    def guess(self, setting: Setting) -> float:
        """The gap of other thresholds, from the counts between the run's own.

        ODS and AP are nearly exact so; OIS is not, and is left out where another measure is asked.
        """
        scores = self.scores(self.counting.between(setting))
        self.add(setting.label, "setting", scores, exact=False, who=setting.who)
        asked = [m for m in self.targets if m != "ois"] or list(self.targets)
        return max(abs(scores[m] - self.targets[m]) for m in asked)

    def counted(
        self, place: Counting, setting: Setting | None, at: NDArray[np.int64]
    ) -> dict[str, float]:
        """The scores of some images under a setting, None for the run's own; kept."""
        key = (place is self.counting, setting.label if setting else "", at.tobytes())
        if key not in self.known:
            table = place.table(setting, at) if setting else place.own.of(at)
            self.known[key] = self.scores(table)
        return self.known[key]

    def estimate(self, setting: Setting, at: NDArray[np.int64], rough: bool = False) -> Trial:
        """The score of all images, moved by what the setting moves on some; exact for all of them.

        It is moved from the run, or from that setting counted on all images which is most like it
        on the same ones: of two that are alike, the difference on a few images is that on all.
        """
        place = self.place(setting, rough)
        scores = self.counted(place, setting, at)
        more = {"n_images": at.size, "n_causes": setting.n_causes, "who": setting.who}
        if place is self.counting and at.size == len(self.counting.ids):
            if setting.label not in {s.label for s, _ in self.whole if s}:
                self.whole.append((setting, scores))
            return self.add(setting.label, "setting", scores, **more)
        key = (rough, setting.label, at.tobytes())
        seen, away, scored = self.estimates.get(key, (0, inf, scores))
        for other, whole in self.whole[seen:]:
            if other and self.place(other, rough) is not place:
                continue
            own = self.counted(place, other, at)
            distance = max(abs(scores[m] - own[m]) for m in scores)
            if distance < away:
                away, scored = distance, {m: whole[m] + scores[m] - own[m] for m in scores}
        self.estimates[key] = len(self.whole), away, scored
        return self.add(setting.label, "setting", scored, exact=False, **more)

    def single(self) -> list[Setting]:
        """Each setting alone; they come back with the nearest first."""
        order = [s for s in settings() if s.changes_something(self.protocol)]
        free = [s for s in order if self.counting.is_there(s)]
        self.round(free, len(self.counting.ids))
        order = [s for s in order if s not in free]
        return [] if self.reached("setting") else self.narrow(order)

    def narrow(self, order: list[Setting]) -> list[Setting]:
        """Rounds of more and more images, until a setting reaches the targets or the time is up."""
        total = len(self.counting.ids)
        for kept, n in ROUNDS:
            order = self.round(order[:kept], min(n, total), rough=True) + order[kept:]
        left = list(order)
        while left and not self.reached("setting") and self.left >= 0:
            known = self.place(left[0], True).done(left[0])
            if known.size < min(ENOUGH, total) and left[0].kind != "thresholds":
                self.round(left[:1], min(ENOUGH, total), rough=True)
            else:
                self.round([left.pop(0)], total)
            left.sort(key=self.hope)
        return order

    def hope(self, setting: Setting) -> float:
        """How near a setting seems to be, by what is counted of it."""
        if setting.kind == "thresholds":
            return self.guess(setting)
        at = self.place(setting, True).done(setting)
        return self.estimate(setting, at, True).gap

    def pairs(self, order: Sequence[Setting]) -> None:
        """The nearest settings with the readings, then with each setting of another kind."""
        for setting in order:
            if self.counting.is_whole(setting):
                table = self.counting.table(setting, self.counting.spread(None))
                self.readings(table, setting.label, "setting", setting.who)
        if self.reached() or self.left < 0:
            return
        found: dict[frozenset[str], Setting] = {}
        for one in order[:STARTS]:
            for two in settings():
                both = one.with_other(two)
                if both and both.of(self.protocol) != one.of(self.protocol):
                    found.setdefault(frozenset((one.label, two.label)), both)
        self.narrow(list(found.values()))


def run_of(
    run: str | Path,
    gt_dir: str | Path | None,
    protocol: Protocol,
    *,
    metric: str = METRIC,
    split_file: str | Path | None = None,
    pred_kind: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Evaluation, Sources]:
    """A saved run and its files, or the run of the given folders, counted now.

    Of a saved run its own protocol, images, kind of prediction and missing images are taken; the
    other arguments are for folders. Raises DataError if there is neither a saved run nor a ground
    truth, or the files are gone.
    """
    folder = Path(run)
    if is_run(folder):
        saved = Evaluation.load(folder)
    elif gt_dir is None:
        raise DataError(f"{run}: no saved run (result.json), expected one, or --gt GT_DIR")
    else:
        saved = evaluate(
            folder,
            gt_dir,
            protocol,
            metrics=metric,
            split_file=split_file,
            pred_kind=pred_kind,
            workers=workers,
            executor="thread",
            progress=progress,
        )
    return saved, find_sources(saved, gt_dir=gt_dir, metric=metric)


def explain(
    run: Evaluation,
    targets: Mapping[str, float],
    *,
    sources: Sources | None = None,
    seconds: float = 60.0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """What the run would have to be done like to have the targets.

    targets : measure ("ods", "ois", "ap") or METRIC.SCORE of another metric -> published value; a
              target is met to the digits that it is printed with
    sources : where the run's files are; default: where its provenance says
    seconds : about how long to look; what was not tried then is missing, which is said
    workers : images at a time; default: the available cores
    Raises DataError for unknown measures, a run without counts of the metric, and whatever the
    loaders find.
    """
    name, targets = metric_of(targets)
    files = sources or find_sources(run, metric=name)
    gt_dir = Path(gt) if (gt := run.place("gt")) else None
    sets = {known.name: list(known.images) for known in shipped_sets()}
    cores = workers or available_cores()
    if name != METRIC:
        return MetricSearch(run, targets, files, seconds, cores, progress).explanation(gt_dir, sets)
    counting = counting_of(run, files, cores)
    counting.warm_up()  # compiling is not part of the search
    search = Search(counting, run.protocol, targets, seconds, progress)
    search.add("as it is", "as it is", search.base, n_causes=0)
    search.readings(counting.own)
    if "ap" in targets:
        search.readings(counting.with_whole_image())
    search.images(choices(counting.ids, gt_dir, sets))
    if not search.reached():
        search.others(run, files, gt_dir, sets)
    if not search.reached():
        order = search.single()
        if not search.reached():
            search.pairs(order)
    return Explanation(
        search.targets,
        search.base,
        ranked(list(search.trials.values()), search.targets),
        search.left > 0 or search.reached(),
        time.monotonic() - search.started,
        len(counting.ids),
    )
