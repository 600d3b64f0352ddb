"""Counts of a run's images under other settings, computed once and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis.causes import Setting, settings
from bsdsbench.diagnosis.rule_variants import Table
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import counts_in_order
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import Sources
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.curve import four_counts

Load = Callable[[str, Protocol], tuple[Prediction, GroundTruth]]
Truth = Callable[[str, Protocol], GroundTruth]
METRIC = registry.DEFAULT[0]
AT_HAND = 30  # images whose arrays are kept
ROUGH = 20  # thresholds of the rounds that only rank
I8 = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")


def in_threads(function: Callable[[T], R], given: Iterable[T], workers: int) -> Iterator[R]:
    """`map` in some threads; a single worker is this one."""
    if workers == 1:
        yield from map(function, given)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, given)


class Counting:
    """The images of a run, their counts, and the counts of them under a setting.

    ids   : in the order of `own`
    own   : the counts of the run
    load  : image id and protocol -> what the run was made from; truth : its ground truth alone
    """

    def __init__(
        self,
        ids: Sequence[str],
        own: Table,
        protocol: Protocol,
        load: Load,
        truth: Truth,
        workers: int = 1,
    ) -> None:
        self.ids, self.own, self.protocol = list(ids), own, protocol
        self._load, self._truth, self.workers = load, truth, workers
        self._made: dict[str, dict[int, Counts]] = {}
        self._arrays: dict[int, tuple[Prediction, GroundTruth]] = {}

    def rough(self) -> Counting:
        """The same images at some of the thresholds, for rounds that only rank settings."""
        total = self.own.thresholds.size
        grid = self.protocol.thresholds
        if total <= ROUGH or not np.array_equal(self.own.thresholds, grid):
            return self
        at = _knots(self.own)
        own = Table(self.own.counts[:, at], self.own.thresholds[at], self.own.operator)
        protocol = self.protocol.replace(thresholds=tuple(grid[k] for k in at))
        found = Counting(self.ids, own, protocol, self._load, self._truth, self.workers)
        found._arrays = self._arrays
        return found

    def spread(self, n: int | None) -> NDArray[np.int64]:
        """Positions of n images spread over the run, those of a smaller n among them; None: all."""
        total = len(self.ids)
        if n is None or n >= total:
            return np.arange(total)
        order = np.argsort(np.modf(np.arange(total) * 0.6180339887498949)[0], kind="stable")
        return np.sort(order[:n])

    def is_there(self, setting: Setting) -> bool:
        """True if the run's own counts hold those of the setting: some of its thresholds."""
        return setting.kind == "thresholds" and self._positions(setting) is not None

    def is_whole(self, setting: Setting) -> bool:
        """True if every image has been counted under the setting."""
        return self.is_there(setting) or len(self._of(setting)) == len(self.ids)

    def done(self, setting: Setting) -> NDArray[np.int64]:
        """Positions of the images that have been counted under the setting, in order."""
        every = self.is_there(setting)
        return self.spread(None) if every else np.array(sorted(self._of(setting)), np.int64)

    def fill(
        self,
        tried: Sequence[Setting],
        at: NDArray[np.int64],
        in_time: Callable[[], bool] = lambda: True,
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.int64]:
        """Count images under every setting; gives the positions of those that are done.

        One reading of an image serves all settings. Images whose turn comes when `in_time` is
        False are left out.
        """
        tried = [s for s in tried if not self.is_there(s)]
        missing = [int(k) for k in at if any(int(k) not in self._of(s) for s in tried)]
        done = 0

        def one(k: int) -> None:
            nonlocal done
            if not in_time():
                return
            pair = self._read(k)
            for setting in tried:
                if k not in self._of(setting):
                    self._of(setting)[k] = self._count(setting, pair)
            done += 1
            if progress:
                progress(done, len(missing))

        for _ in in_threads(one, missing, self.workers):
            pass
        return np.array([k for k in at if all(int(k) in self._of(s) for s in tried)], np.int64)

    def between(self, setting: Setting) -> Table:
        """The run's counts between its thresholds, at those of a setting that changes no more."""
        wanted = setting.of(self.protocol)
        grid = wanted.threshold_array()
        own = self.own.counts.reshape(len(self.ids), self.own.thresholds.size, 4)
        at = np.interp(grid, self.own.thresholds, np.arange(self.own.thresholds.size))
        low = np.floor(at).astype(np.int64)
        share = (at - low)[None, :, None]
        high = np.minimum(low + 1, own.shape[1] - 1)
        counts = np.rint(own[:, low] * (1 - share) + own[:, high] * share).astype(np.int64)
        return Table(counts, grid, wanted.operator)

    def table(self, setting: Setting, at: NDArray[np.int64]) -> Table:
        """Counts of the images at these positions under a setting."""
        protocol = setting.of(self.protocol)
        positions = self._positions(setting) if self.is_there(setting) else None
        if positions is not None:
            own = self.own.counts[at][:, positions]
            return Table(own, self.own.thresholds[positions], protocol.operator)
        self.fill([setting], at)
        found = [self._of(setting)[int(k)] for k in at]
        counts = np.stack([four_counts(c) for c in found])
        return Table(counts, found[0].thresholds, protocol.operator)

    def warm_up(self) -> None:
        """Count one image in each way, so that the kernels are compiled."""
        ways: dict[str, Setting] = {}
        for setting in settings():
            if setting.changes_something(self.protocol):
                ways.setdefault(setting.kind, setting)
        self.fill(list(ways.values()), self.spread(1))

    def with_whole_image(self) -> Table:
        """The run's counts with the row of threshold 0, which the ground truth alone gives."""
        from bsdsbench.metrics.maps import truth_maps, whole_image_counts

        if self.own.thresholds[0] == 0 or self.own.thresholds[-1] > 1:
            return self.own

        def row(image_id: str) -> tuple[int, int, int, int]:
            return whole_image_counts(
                truth_maps(self._truth(image_id, self.protocol), self.protocol)
            )

        first = np.array(list(in_threads(row, self.ids, self.workers)), np.int64)[:, None]
        counts = np.concatenate([first, self.own.counts], axis=1)
        return Table(counts, np.r_[0.0, self.own.thresholds])

    def _positions(self, setting: Setting) -> NDArray[np.int64] | None:
        """Where the setting's thresholds are among the run's; None if one is not."""
        wanted = setting.of(self.protocol).threshold_array()
        at = np.searchsorted(self.own.thresholds, wanted - 1e-9)
        at = np.minimum(at, self.own.thresholds.size - 1)
        same = np.abs(self.own.thresholds[at] - wanted) < 1e-9
        return at if same.all() else None

    def _of(self, setting: Setting) -> dict[int, Counts]:
        return self._made.setdefault(setting.label, {})

    def _read(self, k: int) -> tuple[Prediction, GroundTruth]:
        found = self._arrays.get(k) or self._load(self.ids[k], self.protocol)
        if len(self._arrays) < AT_HAND:
            self._arrays.setdefault(k, found)
        return found

    def _count(self, setting: Setting, pair: tuple[Prediction, GroundTruth]) -> Counts:
        from bsdsbench.metrics.boundary import boundary_counts
        from bsdsbench.metrics.many_to_one import many_to_one_counts

        pred, gt = pair
        count = many_to_one_counts if setting.match == "1toN" else boundary_counts
        return count(pred, _chosen(gt, setting.annotators), setting.of(self.protocol))


def counting_of(run: Evaluation, sources: Sources, workers: int = 1) -> Counting:
    """The counting of a run that has boundary counts. Raises DataError if it has none."""
    found = dict(counts_in_order(run.records, METRIC))
    thresholds = next(iter(found.values())).thresholds
    table = np.stack([four_counts(c) for c in found.values()])

    def load(image_id: str, protocol: Protocol) -> tuple[Prediction, GroundTruth]:
        return sources.load(image_id, run, protocol)

    own = Table(table, thresholds, run.protocol.operator)
    return Counting(list(found), own, run.protocol, load, sources.truth, workers)


def _knots(own: Table) -> NDArray[np.int64]:
    """Positions of about ROUGH thresholds, even in recall, and those around the best F."""
    whole = own.curve()
    levels = np.linspace(whole.recall.min(), whole.recall.max(), ROUGH)
    falling = whole.recall[::-1]  # ascending: recall falls with the threshold
    at = whole.recall.size - 1 - np.clip(np.searchsorted(falling, levels), 0, falling.size - 1)
    best = int(whole.f.argmax())
    near = np.clip([best - 1, best, best + 1, 0, falling.size - 1], 0, falling.size - 1)
    return np.unique(np.concatenate([at, near])).astype(np.int64)


def _chosen(gt: GroundTruth, annotators: str) -> GroundTruth:
    if annotators == "first":
        return replace(gt, boundaries=gt.boundaries[:1], segmentations=())
    if annotators == "union":
        drawn = np.logical_or.reduce(gt.boundaries)
        return replace(gt, boundaries=(drawn,), segmentations=())
    return gt
