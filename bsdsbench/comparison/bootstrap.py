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

ReportSamples = Callable[[int], object]  # called with the number of samples of a finished block
_SAMPLES, _CELLS = 1250, 40_000_000  # at a time; cells are samples times images, a byte each
# Wherever an interval or a p-value is made: a run has one interval, in every table.
N_BOOT, SEED = 10_000, 0
_FEW_IMAGES = 20


class WeightedRun:
    """The counts of a run as arrays, which are scored under weights of its images.

    The images of the runs `beside` follow the run's own images; N is the number of all of them.
    `more_pairs` matched pairs are added to each map, as far as it has enough unmatched pixels.
    """

    def __init__(
        self, run: Evaluation, metrics: Sequence[str], *beside: Evaluation, more_pairs: int = 0
    ) -> None:
        """Stack the counts of the metrics: name -> (N, ...) for each metric.

        `beside` are runs under the same protocol, whose images are appended.
        """
        records = [record for other in (run, *beside) for record in other.records]
        self._protocol = run.protocol
        self._n_images = len(records)
        self._stacks: dict[Metric, Stack] = {}
        for metric in map(registry.get, metrics):
            if beside:
                stack: Stack = metric.stack([record.counts[metric.name] for record in records])
            else:
                stack = run.stack(metric.name)
            self._stacks[metric] = _add_pairs(stack, more_pairs) if more_pairs else stack

    def trees(self, weights: Weights) -> Iterator[tuple[Metric, Any]]:
        """Yield each metric with its tree of scores under weights (S, N), see `Metric.scores`.

        The arrays of scores have S as their first axis: a set of scores for each row of weights.
        """
        for metric, stack in self._stacks.items():
            yield metric, metric.all_scores(stack, weights, self._protocol)

    def scores(self, weights: Weights) -> dict[str, F8]:
        """Return METRIC.SCORE -> scores (S,) under weights (S, N), for metrics and their parts.

        Infinite values become NaN.
        """
        scores: dict[str, F8] = {}
        for metric, tree in self.trees(weights):
            for key, _, values in metric.score_columns(tree, self._protocol):
                finite = np.where(np.isfinite(values), values, np.nan)
                scores.setdefault(f"{metric.name}.{key}", finite)
        return scores

    def defined(self) -> dict[str, dict[str, int]]:
        """Return how many values each mean is over: METRIC.SCORE -> unit -> number.

        Units are pairs, classes and the like. Scores that are not means over units have no key.
        """
        numbers = {}
        for metric, tree in self.trees(np.ones((1, self._n_images), np.int64)):
            parts = metric.parts(self._protocol, metric.options_of(self._protocol))
            for part, path in {"": (), **parts}.items():
                for key, units in (part_of(tree, path) or {}).get("over", {}).items():
                    score = ".".join(filter(None, (metric.name, part, key)))
                    # n (1, 2): the number of defined values, and of all
                    numbers[score] = {unit: int(n[0, 0]) for unit, n in units.items()}
        return numbers


def _add_pairs(stack: Stack, n_pairs: int) -> Stack:
    """Return counts with `n_pairs` more matched pairs in each map.

    Fewer are added if a map has fewer unmatched pixels in the prediction or in the ground truth.
    """
    increased = dict(stack)
    for name in {"matches", OTHER_MATCHES} & stack.keys():
        increased[name] = matches = stack[name].copy()  # (..., 4): numbers of pixels
        unmatched = matches[..., [TOTAL_GT, TOTAL_PRED]] - matches[..., [MATCHED_GT, MATCHED_PRED]]
        n_added = np.minimum(unmatched.min(axis=-1, keepdims=True), n_pairs)
        matches[..., [MATCHED_GT, MATCHED_PRED]] += n_added
    return increased


def sample_counter(progress: Progress | None, total: int) -> ReportSamples:
    """Return a function that takes the size of a finished block, and reports to `progress`.

    `progress` is called with (samples done so far, `total`, "").
    """
    n_done = 0

    def count_samples(n_samples: int) -> None:
        nonlocal n_done
        n_done += n_samples
        if progress:
            progress(min(n_done, total), total, "")

    return count_samples


def scores_of(
    runs: Sequence[WeightedRun], weights: Iterable[Weights], report: ReportSamples = lambda _: None
) -> list[dict[str, F8]]:
    """Return the scores of each run under weights: METRIC.SCORE -> scores (B,).

    weights : blocks (S, N) with a row for each of B samples in total
    report : called with S after each run and block
    """
    scores_of_blocks: list[list[dict[str, F8]]] = [[] for _ in runs]
    for block in weights:
        for run, scores in zip(runs, scores_of_blocks, strict=True):
            scores.append(run.scores(block))
            report(len(block))
    joined = []
    for scores in scores_of_blocks:
        joined.append({key: np.concatenate([s[key] for s in scores]) for key in scores[0]})
    return joined


class Sampling(NamedTuple):
    """The settings of a bootstrap over images or clusters of images.

    n_boot : number of samples
    seed : seed of the random numbers
    level : confidence level of intervals
    n : number of images or clusters; 0 before `over`
    column : the column of groups that are the clusters, or "" if images are drawn
    clusters (N,): the cluster number of each image, or None if images are drawn
    """

    n_boot: int
    seed: int
    level: float
    n: int = 0
    column: str = ""
    clusters: I8 | None = None

    @property
    def units(self) -> str:
        """Return what is drawn, in words: "images" or "clusters (COLUMN)"."""
        return f"clusters ({self.column})" if self.column else "images"

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters, or 0 if images are drawn."""
        return self.n if self.column else 0

    def over(self, runs: Sequence[Evaluation], cluster: str | None) -> Sampling:
        """Return the settings for the images of the runs, or for their clusters by a column.

        Runs without groups have the clusters of the others. Raises DataError if two runs have
        different clusters, or no run has the column.
        """
        if cluster is None:
            return self._replace(n=len(runs[0].records))
        grouped = [run for run in runs if group_columns(run.records)] or [runs[0]]
        partitions = [image_clusters(run.records, cluster) for run in grouped]
        for run, other in zip(grouped, partitions, strict=True):
            if other.members.tolist() != partitions[0].members.tolist():
                pair = f"{grouped[0].name}, {run.name}"
                raise DataError(f"{pair}: other groups by {cluster}, expected one")
        clusters = partitions[0]
        return self._replace(
            n=len(clusters.names), column=clusters.column, clusters=clusters.members
        )

    def notes(self, run: Evaluation) -> list[str]:
        """Return notes if there are few images, or if images look like frames of videos."""
        notes = []
        if self.n < _FEW_IMAGES:
            notes.append(f"{self.n} {self.units} only: intervals and p-values are rough")
        if not self.column and (advice := frames_note(run.records)):
            notes.append(advice)
        return notes


def check_sampling(n_boot: int, seed: int, level: float) -> Sampling:
    """Check the settings of a bootstrap, and return them without images.

    `n_boot` is the number of samples, `level` the confidence level of intervals, between 0 and 1.
    Raises DataError if a setting is out of range.
    """
    if not 0 < given_number(level, "level", 0, 1) < 1:
        raise DataError(f"level {level}: expected a share in (0, 1)")
    n_samples = int(given_number(n_boot, "n_boot", 1, 10_000_000, whole=True))
    return Sampling(n_samples, int(given_number(seed, "seed", 0, math.inf, whole=True)), level)


def blocks(count: int, n_images: int) -> list[range]:
    """Divide the numbers 0 to count - 1 of samples into ranges whose weights need little memory."""
    step = max(1, min(_SAMPLES, _CELLS // n_images))
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def bootstrap_weights(
    n_images: int, n_boot: int, seed: int, clusters: I8 | None = None
) -> Iterator[Weights]:
    """Yield int8 blocks (S, n_images): how often each bootstrap sample draws each image.

    A sample draws n_images images with replacement. Given `clusters` (n_images,), the cluster
    number of each image, it draws as many whole clusters as there are.

    Drawing starts at once, in a background thread that stays up to four blocks ahead. int8 is wide
    enough: a count of 128 has a probability of 1e-215.
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
    """Yield int8 blocks (S, n_images) of jackknife weights: row k is 0 at image k, else 1.

    Given `clusters` (n_images,), the cluster number of each image, row k is 0 at the images of
    cluster k. Without clusters the rows are views of one array.
    """
    if clusters is not None:
        for rows in blocks(int(clusters.max()) + 1, n_images):
            yield (clusters != np.array(rows)[:, None]).astype(np.int8)
        return
    # Ones with a 0 in the middle. The window that begins n_images - 1 - k places from the start has
    # the 0 at place k, so the windows in reverse order are the rows.
    row = np.ones(2 * n_images - 1, np.int8)
    row[n_images - 1] = 0
    views = np.lib.stride_tricks.sliding_window_view(row, n_images)[::-1]
    for rows in blocks(n_images, n_images):
        yield views[rows.start : rows.stop]
