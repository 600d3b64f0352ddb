"""Search for the settings that turn a run's scores into published ones, on the run's own images.

Trials that need no recounting come first: other scoring rules and columns, and named subsets of the
images. Then images are recounted under other settings, one setting at a time and then in pairs.
Only a score on all images can reach a target. There are so many pairs, and changes that no known
program makes, that some come close to any number; for them, a target needs four decimals.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import check_number, kind_of_value
from bsdsbench.diagnosis import causes
from bsdsbench.diagnosis.causes import CountingChange, OtherScores
from bsdsbench.diagnosis.explanation import Explanation, Number, Trial, rank_trials
from bsdsbench.errors import DataError, Setting
from bsdsbench.metrics import registry
from bsdsbench.metrics.optional import whole_curve
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.references import REF_PREFIX
from bsdsbench.results.score_names import score_name
from bsdsbench.results.sharing import is_address
from bsdsbench.results.storage import is_run
from bsdsbench.runs.engine import available_cores, evaluate
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.counts import counts_by_image, sample_scores
from bsdsbench.text import rounding_error

BOUNDARY = registry.DEFAULT_METRICS[0]  # the metric whose scores are "ods", "ois" and "ap"
SUBSET_SIZES = (2, 6, 25)  # numbers of images on which a setting is tried before all images
N_PAIRED = 4  # number of single settings that are combined with all others to pairs
MAX_OVERTIME = 0.5  # no image is started later than this fraction of the time limit after its end
ROUNDING_ERROR = 1e-12  # larger differences between scores are not rounding errors
GOLDEN_RATIO = 0.6180339887498949
NO_CHANGE = CountingChange(kind="", label="", who="")  # the run's own settings


def parse_targets(items: Sequence[str]) -> dict[str, str]:
    """Parse target scores such as "ods=0.788" into a dict.

    For example, ["boundary.ods=0.788", "ois=0.81"] gives {"ods": "0.788", "ois": "0.81"}. An item
    may contain several targets, separated by commas. Keys of the boundary metric lose the metric's
    name; keys of other metrics, METRIC.SCORE, keep it. Keys are lowercased unless they name a
    class. Values remain strings, because their number of decimals matters.
    """
    targets = {}
    for item in ",".join(items).split(","):
        name, _, value = map(str.strip, item.partition("="))
        score = score_name(name)  # None for a bare "ods" and for an unknown name
        if not (score and score.part):  # the name of a class, such as "Road", is not lowercased
            name = name.lower().removeprefix(f"{BOUNDARY}.")
        number = re.fullmatch(r"[0-9]*\.?[0-9]+", value)
        # A name with a dot is METRIC.SCORE, as "boundary." was removed: another metric's scores may
        # exceed 1
        is_in_range = number and ("." in name or float(value) <= 1)
        if not name or not is_in_range or name in targets:
            raise DataError(
                f"target {item!r}: expected ods=VALUE, ois=VALUE or ap=VALUE from 0 to 1, such as "
                "ods=0.788, or METRIC.SCORE=VALUE for another metric, each once"
            )
        targets[name] = value
    return targets


class MetricTargets(NamedTuple):
    """The targets (published scores) of one metric."""

    metric: str
    values: dict[str, Number]  # name of a score, such as "ods" -> published value


def find_metric(targets: Mapping[str, Number]) -> MetricTargets:
    """Find the metric that all targets belong to, and remove its name from their keys.

    A key without a metric's name is a score of the boundary metric.
    """
    by_metric: dict[str, dict[str, Number]] = {}
    if not isinstance(targets, Mapping) or not targets:
        raise DataError(f"targets {kind_of_value(targets)}: expected a dict of scores")
    for target, value in targets.items():
        number = math.nan
        with suppress(TypeError, ValueError):
            number = float(value)
        if not math.isfinite(number):
            raise DataError(f"target {target!r}: {kind_of_value(value)}, expected a number")
        name, _, key = target.partition(".")
        if name not in registry.names():  # a score without a metric's name, such as "ods"
            name, key = BOUNDARY, target
        if name == BOUNDARY and not 0 <= number <= 1:
            raise DataError(f"target {target!r}: {value}, expected a number in [0, 1]")
        by_metric.setdefault(name, {})[key] = value
    if len(by_metric) != 1:
        raise DataError(f"targets {', '.join(targets)}: of several metrics, expected those of one")
    metric, values = by_metric.popitem()
    return MetricTargets(metric, values)


class RunWithFiles(NamedTuple):
    """A run and its files."""

    run: Evaluation
    sources: Sources | None  # None if the run has counts only


def load_run_with_files(
    run: str | Path,
    gt_dir: str | Path | None,
    protocol: Protocol,
    *,
    metric: str = BOUNDARY,
    **options: Any,
) -> RunWithFiles:
    """Load a run and its files. If `run` is a folder of maps, evaluate the maps first.

    `run` is one of these:

    - "ref:NAME", a URL, or a file: a reference run or a shared run, which has no files.
    - The folder of a saved run. The maps and, unless `gt_dir` is given, the ground truth are read
      from the folders recorded in it.
    - Any other folder: maps, which are evaluated by `metric` with the ground truth in `gt_dir`,
      `protocol` and further `options` of `evaluate`.

    Raises DataError if a folder of maps is given without `gt_dir`, or if a saved run or its files
    cannot be read.
    """
    folder = Path(run)
    if str(run).startswith(REF_PREFIX) or is_address(run) or folder.is_file():
        return RunWithFiles(Evaluation.load(run), None)
    if is_run(folder):  # has a result.json
        loaded = Evaluation.load(folder)
    elif gt_dir is None:
        # The fix is to set the option "gt" to a folder, here called GT
        is_of_maps = Setting("gt", "GT", "if it is a folder of maps")
        raise DataError(f"{run}: has no result.json, expected the folder of a run", fix=is_of_maps)
    else:
        # Threads, because processes need a script with `if __name__ == "__main__":`
        loaded = evaluate(folder, gt_dir, protocol, metrics=metric, executor="thread", **options)
    # The files of each image, in the folders that the run has recorded
    return RunWithFiles(loaded, find_sources(loaded, gt_dir=gt_dir, metric=metric))


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
    """Search for settings, scoring rules and image subsets that turn the run's scores into targets.

    Parameters
    ----------
    run : Evaluation
        The run to explain.
    targets : dict
        Name of a score ("ods", "ois" or "ap", or METRIC.SCORE of another metric) -> published
        value. A target is reached if the score rounds to it. A string keeps its number of decimals
        ("0.760"); a float loses trailing zeros.
    sources : Sources, optional
        The run's files. Default: those in the folders recorded in the run.
    seconds : float
        The time limit of the search. The result lists what was not tried because time ran out.
    workers : int, optional
        Number of images counted in parallel. Default: the number of available cores.
    progress : callable, optional
        Called with (images done, images, setting).
    published : sequence of str
        Descriptions of published results that equal the targets, which the conclusion names first.

    Returns
    -------
    Explanation
        All trials, the most likely first. Its method `sentence` gives the conclusion as text.

    Raises
    ------
    DataError
        If a score is unknown, the run has no counts of the metric, or a file cannot be read.
    """
    name, values = find_metric(targets)
    if not isinstance(run, Evaluation):
        raise DataError(f"run: {kind_of_value(run)}, expected an Evaluation, as Evaluation.load")
    if run.records and name not in run.metrics:
        fix = f"{run.metrics[0]}.SCORE=VALUE for a score of {run.metrics[0]}"
        raise DataError(f"{run.name}: no {name} counts for target {next(iter(values))!r}", fix=fix)
    seconds = check_number(seconds, "seconds", 0, math.inf)
    # Only runs from elsewhere, reference runs and shared runs, have a `source`, and no files here
    if sources is None and run.provenance.source is None:
        sources = find_sources(run, metric=name)
    search = Search(run, name, values, sources, seconds, workers or available_cores(), progress)
    # Trials without recounting images: the run as it is, other scoring rules, subsets of the images
    search.record_trial("as it is", "as it is", search.run_scores, n_causes=0)
    search.record_other_rules(NO_CHANGE, search.run_counts, search.run_scores)
    # Subsets that a known data set or a split file beside the ground truth lists
    for label, indices in causes.find_named_subsets(search.ids, run.place("gt")).items():
        scores = search.compute_scores([search.run_counts[k] for k in indices], run.protocol)
        who = f"a run of {len(indices)} images"  # is known to make this change
        search.record_trial(label, "images", scores, n_images=len(indices), who=who)
    # Trials for which images are counted again under other settings, singly and then in pairs
    changes = [  # except what the run does already
        c for c in causes.counting_changes(search.metric) if c.differs(run.protocol, search.metric)
    ]
    if sources is None:  # without files, no image can be counted again
        search.not_tried = changes
    else:
        # Label of a setting -> its largest difference between a score and a target
        gap_by_label = search.search_settings(changes)
        if not search.reached:
            search.search_settings(_pair_nearest(changes, gap_by_label, search))
    single_not_tried = [change for change in search.not_tried if change.n_causes == 1]
    # Without files nothing was tried: list options ("nms"), not each setting ("NMS rcf (...)")
    names = [c.kind if sources is None else c.label for c in single_not_tried]
    return Explanation(
        search.targets,
        base={target: search.run_scores[target] for target in values},
        trials=rank_trials(search.trials.values()),
        seconds=seconds - search.seconds_left,
        n_images=len(search.ids),
        published=tuple(published),
        not_counted=tuple(dict.fromkeys(names)),  # without repetitions
        pairs_not_counted=len(search.not_tried) - len(single_not_tried),
        files=sources is not None,
    )


def _pair_nearest(
    changes: Sequence[CountingChange], gap_by_label: Mapping[str, float], search: Search
) -> list[CountingChange]:
    """Combine the N_PAIRED changes that came nearest to the targets with every other change.

    Targets are published scores, which a change of the protocol, such as another tolerance, might
    explain. The nearest changes have the smallest gap: the largest difference between a score under
    the change and its target. A change that was not evaluated has no gap, and ranks last.

    A pair is left out if the two changes exclude each other, or if both together would not affect
    how the run is counted.
    """
    by_gap = sorted(changes, key=lambda change: gap_by_label.get(change.label, inf))
    pairs = dict[frozenset[str], CountingChange]()  # both labels -> pair, so (a, b) equals (b, a)
    for nearest in by_gap[:N_PAIRED]:
        for partner in changes:
            pair = nearest.with_other(partner)  # None if they exclude each other
            if pair and pair.differs(search.run.protocol, search.metric):
                pairs.setdefault(frozenset((nearest.label, partner.label)), pair)
    return list(pairs.values())


class _Candidate(NamedTuple):
    """A setting that waits to be counted on more images."""

    setting: CountingChange
    gap: float = -inf  # from the scores to the targets; -inf before any image is counted
    n_images: int = 0  # number of images counted so far


class Search:
    """A search for the settings under which a run's scores equal the targets.

    A setting (`CountingChange`) is another way to count images, such as another tolerance. Because
    counting all images takes long, it is first tried on 2, 6 and 25 images, from which its scores
    are estimated, and those nearest to the targets come first.

    - run_counts: the run's counts of each image, in the order of `ids`
    - run_scores: column key -> score of the run
    - image_order: the indices of the images in the order of counting
    - not_tried: the settings that were not counted on all images because time ran out
    - unchanged: the indices of the images whose files were found to be those of the run
    - counted: label of a setting -> index of an image -> its counts under this setting
    - trials: label -> the scores under a change, see `record_trial`
    """

    def __init__(
        self,
        run: Evaluation,
        metric: str,
        targets: dict[str, Number],
        sources: Sources | None,
        seconds: float,
        workers: int,
        progress: Progress | None,
    ) -> None:
        """Start the clock, compute the run's scores, and choose the order of the images.

        metric : the name of the metric that all targets belong to
        targets : name of a score -> published value
        sources : the files of the run, or None if only its counts are available
        seconds : the time limit

        Raises DataError if the run has no counts of the metric, or no score for a target.
        """
        self.run, self.targets, self.sources = run, targets, sources
        self.seconds, self.workers, self.progress = seconds, workers, progress
        self.metric = registry.get(metric)
        self.end_time = time.monotonic() + seconds
        counts = counts_by_image(run.records, metric)
        self.ids = list(counts)
        self.records = {record.image_id: record for record in run.records}
        self.unchanged = set[int]()
        self.run_counts = list(counts.values())  # in the order of `ids`
        self.run_scores = self.compute_scores(self.run_counts, run.protocol)
        for target in targets:
            if target not in self.run_scores:
                known = ", ".join(self.run_scores)
                raise DataError(f"target {target!r}: expected any of {known}")
        # The order of counting: the first 2, 6 or 25 images shall be spread over the whole run. The
        # fractional parts of k * GOLDEN_RATIO order the images so.
        spread = np.arange(len(self.ids)) * GOLDEN_RATIO % 1
        self.image_order = np.argsort(spread, kind="stable").tolist()
        self.counted: dict[str, dict[int, Any]] = {}
        self.trials: dict[str, Trial] = {}
        self.not_tried: list[CountingChange] = []

    @property
    def seconds_left(self) -> float:
        """The number of seconds left, negative after the time limit."""
        return self.end_time - time.monotonic()

    @property
    def reached(self) -> bool:
        """True if a trial reaches the targets."""
        return any(trial.reached for trial in self.trials.values())

    def compute_scores(
        self, counts: Sequence[Mapping[str, Any]], protocol: Protocol
    ) -> dict[str, float]:
        """Compute the scores of images from their counts, such as {"ods": 0.788, "ois": 0.81}.

        The keys are those of the metric's score columns. Undefined scores are left out.
        """
        opt = self.metric.options_of(protocol)
        # `Metric.scores` takes weights (samples, images): one sample that has each image once
        once = np.ones((1, len(counts)), np.int64)
        tree = self.metric.scores(self.metric.stack(counts), once, protocol, opt)
        columns = self.metric.score_columns(sample_scores(tree), protocol)
        return {key: float(value) for key, _, value in columns if not math.isnan(value)}

    def record_trial(
        self, label: str, kind: str, scores: Mapping[str, float], **fields: Any
    ) -> float:
        """Record the scores under a change as a `Trial`, and return its gap.

        The gap is the largest absolute difference between a score and its target. If a score with a
        target is missing from `scores`, nothing is recorded, and inf is returned.

        label : the change in words; an earlier trial with this label is replaced, unless it reaches
            the targets and the new one does not
        kind : "as it is", "reading" (the same counts by another rule or column), "images" (a
            subset of the images) or "setting" (images counted in another way)
        fields : further fields of `Trial`: `who` makes the change, `n_causes` (1 by default), and
            exact=False and `n_images` if the scores are estimated from some images
        """
        if not self.targets.keys() <= scores.keys():
            return inf
        fields = {"n_images": len(self.ids), **fields}
        trial = Trial(label, kind, dict(scores), self.targets, **fields)
        before = self.trials.get(label)
        if before is None or trial.reached or not before.reached:
            self.trials[label] = trial
        return trial.gap

    def record_other_rules(
        self,
        setting: CountingChange,
        counts: Sequence[Mapping[str, Any]],
        scores: Mapping[str, float],
    ) -> None:
        """Record, as a trial, each other way to compute the run's scores from the same counts.

        A trial is a possible reason why the run's scores differ from the published ones, which are
        its targets (`self.targets`: name of a score, such as "ods" -> published number). Here the
        reason is another rule for ODS, OIS or AP, or another column of the metric, such as
        "ece_mean" for "ece". A way that changes no score with a target is left out. The trial is of
        the kind "reading", or under a setting "setting", and then has two causes.

        setting : the change of a setting under which the images were counted, such as another
            tolerance, or NO_CHANGE for the run's own settings
        counts : for each image, the counts under this setting, by name
        scores : the scores computed from these counts by the run's own rules, by name
        """
        # Each item has a label (the rule or column in words), `who` (the programs that use the
        # rule, "" for a column) and `scores` (those that it changes)
        other_columns = causes.iterate_other_columns(self.metric, self.targets, scores)
        other_rules = self._apply_other_rules(setting, counts)
        for other in (*other_columns, *other_rules):
            changed = {**scores, **other.scores}
            # A missing score is undefined: inf differs from all scores, and NaN is larger than none
            gaps = [abs(changed.get(t, math.nan) - scores.get(t, inf)) for t in self.targets]
            if not any(gap > ROUNDING_ERROR for gap in gaps):  # no score with a target changes
                continue
            if setting is NO_CHANGE:
                self.record_trial(other.label, "reading", changed, who=other.who)
            else:
                label = f"{setting.label} + {other.label}"
                who = "; ".join(filter(None, (setting.who, other.who)))
                self.record_trial(label, "setting", changed, n_causes=2, who=who)

    def _apply_other_rules(
        self, setting: CountingChange, counts: Sequence[Mapping[str, Any]]
    ) -> Iterator[OtherScores]:
        """Yield ODS, OIS and AP by other rules, such as an interpolated ODS.

        A rule is a way to compute such a score from the precision-recall curve. Nothing is yielded
        if the metric has no curve.

        setting : the change under which the images were counted, or NO_CHANGE for the run itself
        counts : the counts of all images under this setting
        """
        protocol = setting.on(self.run.protocol)  # the run's, with the change
        opt = self.metric.options_of(protocol)
        if not registry.with_curve([self.metric.name], protocol):
            return
        stack = self.metric.stack(counts)  # name of a count -> its values for all images
        # Weights (samples, images): one sample that has each image once, then each image alone
        weights = np.vstack([np.ones((1, len(counts)), np.int64), np.eye(len(counts), dtype=int)])
        curves: Any = self.metric.scores(stack, weights, protocol, opt)["curve"]  # (1 + N, T)
        run_curve = curves[0]
        # Some AP rules need the point at threshold 0, where every pixel is predicted. Some metrics
        # can add it from their counts; `whole_curve` leaves the curves of others unchanged
        curve_from_0 = whole_curve(self.metric, run_curve, stack)
        # Counts of matched boundaries do not suffice. The point is then counted from the ground
        # truth, which is slow: only for the run's own settings, if AP is a target, and if the files
        # are available. Thresholds from 1 on are levels of segmentations, without such a point
        are_boundaries = self.metric.reads == "annotators" and "matches" in stack
        lacks_point = are_boundaries and 0 < run_curve.thresholds[0] < 1
        is_needed = "ap" in self.targets and setting is NO_CHANGE
        if self.sources and is_needed and lacks_point:
            curve_from_0 = causes.add_whole_image(self.sources, protocol, run_curve, stack)
        yield from causes.iterate_rules(run_curve, curves[1:], curve_from_0)

    def search_settings(self, settings: Iterable[CountingChange]) -> dict[str, float]:
        """Count images under other settings, the nearest to the targets first (best-first search).

        Each setting is counted on 2 images, then on 6 and on 25 (SUBSET_SIZES), and finally on all.
        Its gap is the largest difference between a target and a score, which is estimated from the
        images counted so far. The setting with the smallest gap is counted next, but every setting
        is counted on 2 images before any is counted on more.

        The search ends when time runs out. Once a trial reaches the targets, it also ends when no
        other setting has a gap within half a unit of the last decimal. A setting is dropped if an
        image cannot be counted under it, or if it changes no target's score on all images.

        The scores are recorded as a trial, in place of that with fewer images. Settings for which
        time ran out are added to `not_tried`. Returns {label of a setting: its last gap}.
        """
        n_all = len(self.ids)
        sizes = [n for n in SUBSET_SIZES if n < n_all] + [n_all]
        half_unit = max(rounding_error(target) for target in self.targets.values())
        waiting = [_Candidate(setting) for setting in settings]
        gap_by_label: dict[str, float] = {}
        while waiting and self.seconds_left > 0:
            candidate = min(waiting, key=attrgetter("gap"))  # of equal gaps, the first one
            waiting.remove(candidate)
            setting = candidate.setting
            if self.reached and candidate.gap > half_unit:  # a trial has reached the targets
                break
            n = next(size for size in sizes if size > candidate.n_images)
            indices = sorted(self.image_order[:n])  # n images from all over the run
            counts = self.count_images(setting, indices)
            if counts is None:  # an image cannot be counted, or time is up
                if self.seconds_left <= 0:
                    self.not_tried.append(setting)
                continue
            scores = self._estimate_scores(setting, counts, indices)
            if n == n_all and all(scores.get(t) == self.run_scores[t] for t in self.targets):
                # No target's score changes: forget the trial on fewer images
                self.trials.pop(setting.label, None)
                continue
            fields = {"exact": n == n_all, "n_images": n, "n_causes": setting.n_causes}
            gap = self.record_trial(setting.label, "setting", scores, who=setting.who, **fields)
            gap_by_label[setting.label] = gap
            if n < n_all:
                waiting.append(_Candidate(setting, gap, n))
            elif setting.n_causes == 1:  # to a pair of settings, a rule would add a third cause
                self.record_other_rules(setting, counts, scores)
        if self.seconds_left <= 0:
            self.not_tried += [candidate.setting for candidate in waiting]
        return gap_by_label

    def _estimate_scores(
        self, setting: CountingChange, counts: Sequence[Mapping[str, Any]], indices: Sequence[int]
    ) -> dict[str, float]:
        """Estimate the scores on all images under a setting from its counts of some images.

        The estimate is the run's score on all images, plus the change of the score on the images
        `indices`, whose `counts` are given. If the run has 0.700 on all images, and these rise from
        0.650 to 0.660 under the setting, it is 0.710. It is exact if these are all images.
        """
        scores = self.compute_scores(counts, setting.on(self.run.protocol))
        if len(indices) == len(self.ids):
            return scores
        before = self.compute_scores([self.run_counts[k] for k in indices], self.run.protocol)
        defined = scores.keys() & before.keys() & self.run_scores.keys()
        return {key: self.run_scores[key] + scores[key] - before[key] for key in defined}

    def count_images(self, setting: CountingChange, images: Sequence[int]) -> list[Any] | None:
        """Count images, given by their indices, under a setting, and return the counts of each.

        Counts are kept in `counted`, so that no image is counted twice under the same setting.
        Returns None if an image cannot be counted, or if the time limit is exceeded by more than
        the fraction MAX_OVERTIME, after which no further image is started. Raises DataError if the
        files of an image are no longer those that the run counted.
        """
        counts = self.counted.setdefault(setting.label, {})  # index of an image -> its counts
        missing = [k for k in images if k not in counts]
        count_image = partial(self._count_image, setting, counts, [])
        with ThreadPoolExecutor(self.workers) as pool:
            for n_done, _ in enumerate(pool.map(count_image, missing), 1):
                if self.progress:
                    self.progress(n_done, len(missing), setting.label)
        return [counts[k] for k in images] if {*images} <= counts.keys() else None

    def _count_image(
        self, setting: CountingChange, counts: dict[int, Any], cannot_count: list[int], k: int
    ) -> None:
        """Count the image with the index `k` under a setting, and store its counts as `counts[k]`.

        If it cannot be counted, `k` is added to `cannot_count`. Nothing is done if this holds an
        image already, because the setting is then dropped, or if too much time has passed.
        """
        overtime = -self.seconds_left  # in seconds, positive after the time limit `seconds`
        if cannot_count or overtime > MAX_OVERTIME * self.seconds:
            return
        assert self.sources is not None  # without files no setting is searched
        # Check once that the files are still those of the run (or raise DataError): otherwise, the
        # effect of other maps would be attributed to the setting
        if k not in self.unchanged:
            self.sources.load_of_run(self.run, self.records[self.ids[k]], self.metric)
            self.unchanged.add(k)
        protocol = setting.on(self.run.protocol)  # the run's, with the change
        try:
            pred, gt = self.sources.load(self.ids[k], protocol)
            gt = setting.truth(gt)  # of all annotators, of the first, or of their union
            if setting.many_to_one:  # a pixel may be matched any number of times
                counts[k] = causes.many_to_one_counts(pred, gt, protocol)
            else:
                options = self.metric.options_of(protocol)
                counts[k] = self.metric.count(pred, gt, protocol, options)
        except DataError:
            cannot_count.append(k)
