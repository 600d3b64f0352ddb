"""Draw weights of images for a bootstrap or a jackknife, in blocks, and score runs with them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8, given_number
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.groups import frames_note, group_columns, image_clusters
from bsdsbench.scores.counts import (
    MATCHED_GT,
    MATCHED_PRED,
    OTHER_MATCHES,
    TOTAL_GT,
    TOTAL_PRED,
    Stack,
    part_of,
)
from bsdsbench.scores.ratios import Weights

Told = Callable[[int], object]  # of so many samples more that are done
_SAMPLES, _CELLS = 1250, 40_000_000  # at a time; cells are samples times images, a byte each
# Wherever an interval or a p-value is made: a run has one interval, in every table.
N_BOOT, SEED = 10_000, 0
_FEW_IMAGES = 20


class WeightedRun:
    """The counts of a run as arrays, with a method that scores weighted samples of its images.

    The images of the runs `beside` follow the run's own images. `more_pairs` is a number of pairs
    that are added to the matched pairs of each map, as far as it has enough pixels.
    """

    def __init__(
        self, run: Evaluation, metrics: Sequence[str], *beside: Evaluation, more_pairs: int = 0
    ) -> None:
        records = [r for one in (run, *beside) for r in one.records]
        self._protocol, self._n, self._stacks = run.protocol, len(records), {}
        for m in map(registry.get, metrics):
            counts = [r.counts[m.name] for r in records if beside]
            stack = m.stack(counts) if beside else run.stack(m.name)
            self._stacks[m] = _with_more_pairs(stack, more_pairs) if more_pairs else stack

    def trees(self, weights: Weights) -> Iterator[tuple[Metric, Any]]:
        """Yield each metric with its scores under the weights (S, N), see `Metric.scores`."""
        for metric, stack in self._stacks.items():
            yield metric, metric.all_scores(stack, weights, self._protocol)

    def scores(self, weights: Weights) -> dict[str, F8]:
        """Return the scores of all metrics and their parts, each (S,), by METRIC.SCORE.

        Infinite values become NaN.
        """
        scores: dict[str, F8] = {}
        for metric, tree in self.trees(weights):
            for key, _, values in metric.score_columns(tree, self._protocol):
                known = np.where(np.isfinite(values), values, np.nan)
                scores.setdefault(f"{metric.name}.{key}", known)
        return scores

    def defined(self) -> dict[str, dict[str, int]]:
        """Return over how many values each mean is taken: METRIC.SCORE -> unit -> number.

        Units are pairs, classes and the like.
        """
        numbers = {}
        for metric, tree in self.trees(np.ones((1, self._n), np.int64)):
            parts = metric.parts(self._protocol, metric.options_of(self._protocol))
            for part, path in {"": (), **parts}.items():
                for key, units in (part_of(tree, path) or {}).get("over", {}).items():
                    score = ".".join(filter(None, (metric.name, part, key)))
                    numbers[score] = {unit: int(n[0, 0]) for unit, n in units.items()}
        return numbers


def _with_more_pairs(stack: Stack, pairs: int) -> Stack:
    """Return counts with up to `pairs` more matched pairs per image, as far as there are pixels."""
    increased = dict(stack)
    for name in {"matches", OTHER_MATCHES} & stack.keys():
        increased[name] = matches = stack[name].copy()
        unmatched = matches[..., [TOTAL_GT, TOTAL_PRED]] - matches[..., [MATCHED_GT, MATCHED_PRED]]
        more = np.minimum(unmatched.min(axis=-1, keepdims=True), pairs)
        matches[..., [MATCHED_GT, MATCHED_PRED]] += more
    return increased


def sample_counter(progress: Progress | None, total: int) -> Told:
    """Return a function that takes the size of a finished block and reports to `progress`."""
    done = 0

    def count_samples(samples: int) -> None:
        nonlocal done
        done += samples
        if progress:
            progress(min(done, total), total, "")

    return count_samples


def scores_of(
    runs: Sequence[WeightedRun], weights: Iterable[Weights], report: Told = lambda _: None
) -> list[dict[str, F8]]:
    """Return the scores of each run under the weights of all blocks, each (B,) by METRIC.SCORE."""
    parts: list[list[dict[str, F8]]] = [[] for _ in runs]
    for block in weights:
        for run, blocks_of_run in zip(runs, parts, strict=True):
            blocks_of_run.append(run.scores(block))
            report(len(block))
    return [
        {key: np.concatenate([p[key] for p in blocks_of_run]) for key in blocks_of_run[0]}
        for blocks_of_run in parts
    ]


class Sampling(NamedTuple):
    """The settings of a bootstrap over `n` images or clusters.

    `clusters` (N,) is the cluster number of each image, or None if images are drawn.
    """

    n_boot: int
    seed: int
    level: float  # of intervals
    n: int = 0
    column: str = ""  # of the groups that are clusters
    clusters: I8 | None = None

    @property
    def units(self) -> str:
        """Return what is drawn, in words: "images" or "clusters (COLUMN)"."""
        return f"clusters ({self.column})" if self.column else "images"

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters, or 0 if images are drawn."""
        return self.n if self.column else 0

    def of(self, runs: Sequence[Evaluation], cluster: str | None) -> Sampling:
        """Return the sampling for the images of the runs, or for their clusters by a column.

        Raises DataError if two runs have different clusters.
        """
        if cluster is None:
            return self._replace(n=len(runs[0].records))
        known = [run for run in runs if group_columns(run.records)] or [runs[0]]
        first, *others = [image_clusters(run.records, cluster) for run in known]
        for run, other in zip(known[1:], others, strict=True):
            if other.members.tolist() != first.members.tolist():
                names = f"{known[0].name}, {run.name}"
                raise DataError(f"{names}: other groups by {cluster}, expected one")
        return self._replace(n=len(first.names), column=first.column, clusters=first.members)

    def notes(self, run: Evaluation) -> list[str]:
        """Return notes if there are few images, or if images look like frames of videos."""
        notes = []
        if self.n < _FEW_IMAGES:
            notes.append(f"{self.n} {self.units} only: intervals and p-values are rough")
        if not self.column and (advice := frames_note(run.records)):
            notes.append(advice)
        return notes


def checked_sampling(n_boot: int, seed: int, level: float) -> Sampling:
    """Check the settings of a bootstrap. Raises DataError if one is out of range."""
    if not 0 < given_number(level, "level", 0, 1) < 1:
        raise DataError(f"level {level}: expected a share in (0, 1)")
    samples = given_number(n_boot, "n_boot", 1, 10_000_000, whole=True)
    return Sampling(int(samples), int(given_number(seed, "seed", 0, math.inf, whole=True)), level)


def blocks(count: int, n_images: int) -> list[range]:
    """Divide the numbers of `count` samples into ranges whose weights need little memory."""
    step = max(1, min(_SAMPLES, _CELLS // n_images))
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def bootstrap_weights(
    n_images: int, n_boot: int, seed: int, clusters: I8 | None = None
) -> Iterator[Weights]:
    """Yield int8 blocks (S, n_images): how often each bootstrap sample draws each image.

    Each sample draws n_images images with replacement or, given the cluster number of each image
    in `clusters` (n_images,), whole clusters.

    A background thread starts at once and stays up to four blocks ahead. int8 is wide enough: a
    count of 128 has a probability of 1e-215.
    """
    n_units = n_images if clusters is None else int(clusters.max()) + 1
    rng = np.random.default_rng(seed)
    probabilities = np.full(n_units, 1 / n_units)

    def draw(rows: range) -> Weights:
        block = np.empty((len(rows), n_units), np.int8)
        for part in np.array_split(block, 16):  # multinomial returns int64, so few rows at a time
            part[:] = rng.multinomial(n_units, probabilities, size=len(part))
        return block if clusters is None else block[:, clusters]

    def generate() -> Iterator[Any]:
        pool = ThreadPoolExecutor(1)
        rows = iter(blocks(n_boot, n_images))
        pending = deque(pool.submit(draw, samples) for samples in islice(rows, 4))
        try:
            yield
            while pending:
                block = pending.popleft().result()
                pending.extend(pool.submit(draw, samples) for samples in islice(rows, 1))
                yield block
        finally:  # after an interrupt nothing more is drawn
            pool.shutdown(wait=False, cancel_futures=True)

    weights = generate()
    next(weights)  # runs to the bare yield, so that drawing starts now and `finally` applies
    return weights


def jackknife_weights(n_images: int, clusters: I8 | None = None) -> Iterator[Weights]:
    """Yield blocks of weights (S, n_images) that leave out each image once.

    Given the cluster number of each image in `clusters` (n_images,), each cluster is left out once.
    Without clusters the rows are views of one row.
    """
    if clusters is not None:
        for rows in blocks(int(clusters.max()) + 1, n_images):
            yield (clusters != np.array(rows)[:, None]).astype(np.int8)
        return
    row = np.ones(2 * n_images - 1, np.int8)
    row[n_images - 1] = 0
    views = np.lib.stride_tricks.sliding_window_view(row, n_images)[::-1]
    for rows in blocks(n_images, n_images):
        yield views[rows.start : rows.stop]
