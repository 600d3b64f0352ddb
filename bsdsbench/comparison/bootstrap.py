"""Bootstrap and jackknife over images: draw image weights in blocks, and score runs with them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Floats, Ints, check_number, given_level
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import frames_note, group_columns, image_clusters
from bsdsbench.scores.counts import (
    MATCHED_GT,
    MATCHED_PRED,
    OTHER_MATCHES,
    TOTAL_GT,
    TOTAL_PRED,
    Stack,
)
from bsdsbench.scores.ratios import Weights

ReportSamples = Callable[[int], object]  # called with the number of samples of a finished block
# Upper limits of a block of weights: samples, and weights (samples times images, one byte each)
_MAX_SAMPLES, _MAX_WEIGHTS = 1250, 40_000_000
_MULTINOMIAL_CALLS = 16  # a block of weights is drawn in this many calls, to save memory
_BLOCKS_AHEAD = 4  # blocks of weights that are drawn in advance
# The defaults everywhere, so that a run's interval is the same in every table.
N_BOOT, SEED = 10_000, 0
_FEW_IMAGES = 20  # with fewer, a note warns that intervals are rough


class WeightedRun:
    """The counts of a run's N images, stacked so that any weighting of the images can be scored."""

    def __init__(
        self, run: Evaluation, metrics: Sequence[str], *beside: Evaluation, more_pairs: int = 0
    ) -> None:
        """Stack the counts that the named metrics made of the images of `run`.

        beside : further runs with the same protocol, whose images follow. Permutation tests use
            this to exchange images between two runs
        more_pairs : how many more pairs of a predicted and an annotated pixel of each edge map (of
            an image at a threshold and tolerance) are counted as matched, or all that are left.
            This estimates the scores of a run that the official benchmark's solver matched, which
            misses a few pairs per map
        """
        records = [record for other in (run, *beside) for record in other.records]
        self._protocol = run.protocol
        self._every_image_once = np.ones((1, len(records)), np.int64)  # (1, N) weights
        self._stacks: dict[Metric, Stack] = {}  # metric -> name of counts -> (N, ...)
        for metric in map(registry.get, metrics):
            if beside:
                stack = metric.stack([record.counts[metric.name] for record in records])
            else:
                stack = dict(run.stack(metric.name))  # the same arrays, which the run has kept
            # The arrays of matches at the first tolerance, and at further ones if there are any
            increased = {"matches", OTHER_MATCHES} & stack.keys() if more_pairs else set[str]()
            for name in increased:
                matches = stack[name].copy()  # (..., 4), the pixel counts of each map
                unmatched_gt = matches[..., TOTAL_GT] - matches[..., MATCHED_GT]
                unmatched_pred = matches[..., TOTAL_PRED] - matches[..., MATCHED_PRED]
                n_pairs_left = np.minimum(unmatched_gt, unmatched_pred)
                n_added = np.minimum(n_pairs_left, more_pairs)
                matches[..., MATCHED_GT] += n_added
                matches[..., MATCHED_PRED] += n_added
                stack[name] = matches
            self._stacks[metric] = stack

    def scores(self, weights: Weights) -> dict[str, Floats]:
        """Compute every score for S weightings (S, N), which say how often each image counts.

        Returns a dict from score name, such as "boundary.ods", to an array (S,). Scores of classes
        and other parts are named METRIC.PART.SCORE. Infinite scores become NaN.
        """
        scores: dict[str, Floats] = {}
        for metric, stack in self._stacks.items():
            tree = metric.all_scores(stack, weights, self._protocol)
            # `score_columns` selects the scores in the tree, which may also hold curves
            for key, _, values in metric.score_columns(tree, self._protocol):
                finite = np.where(np.isfinite(values), values, np.nan)  # (S,)
                # Overall scores come first: "iou" of a class "pooled" does not replace "pooled.iou"
                scores.setdefault(f"{metric.name}.{key}", finite)
        return scores

    def overall_scores(self) -> dict[str, float]:
        """Return every score with each image counted once, as a dict by name ("boundary.ods")."""
        scores = self.scores(self._every_image_once)
        return {score: float(values[0]) for score, values in scores.items()}

    def n_values_averaged(self) -> dict[str, dict[str, int]]:
        """Count the defined values over which each mean score averages, if each image counts once.

        Returns {score: {unit: number}}, such as {"contour.dice": {"images": 9}} for a mean over 9
        images; other units are "classes" and "pairs". Scores that are not means are left out.
        """
        numbers: dict[str, dict[str, int]] = {}
        for metric, stack in self._stacks.items():
            tree = metric.all_scores(stack, self._every_image_once, self._protocol)
            # The part is a class, for example, or "" for the overall scores
            for part, scores_of_part in metric.scores_by_part(tree, self._protocol).items():
                prefix = f"{metric.name}.{part}." if part else f"{metric.name}."
                # Key of a mean -> unit -> (weightings, 2): the numbers of defined and of all values
                counts_of_means = scores_of_part.get("over", {})
                for key, counts_by_unit in counts_of_means.items():
                    numbers[prefix + key] = {
                        unit: int(defined_and_all[0, 0])
                        for unit, defined_and_all in counts_by_unit.items()
                    }
        return numbers


def scores_of(
    runs: Sequence[WeightedRun], weights: Iterable[Weights], report: ReportSamples = lambda _: None
) -> list[dict[str, Floats]]:
    """Score each run under B weightings of its N images.

    weights : arrays (S, N) that say how often each image counts, with B rows in total
    report : progress callback, called with S each time a run has been scored on an array

    Returns, for each run, a dict from score name to an array (B,).
    """
    # For each run: score -> one array (S,) per block of weights
    blocks_of_runs: list[dict[str, list[Floats]]] = [{} for _ in runs]
    for block in weights:
        for run, blocks_by_score in zip(runs, blocks_of_runs, strict=True):
            for score, values in run.scores(block).items():
                blocks_by_score.setdefault(score, []).append(values)
            report(len(block))
    return [
        {score: np.concatenate(arrays) for score, arrays in blocks_by_score.items()}
        for blocks_by_score in blocks_of_runs
    ]


class Sampling(NamedTuple):
    """The settings of a bootstrap over images, or over clusters of images."""

    n_boot: int  # number of samples
    seed: int
    level: float  # confidence level of intervals
    n: int = 0  # number of images or clusters; 0 until `for_images_of` sets it
    column: str = ""  # the group column that defines the clusters, or "" if images are drawn
    clusters: Ints | None = None  # (N,): the cluster index of each image, None if images are drawn

    def unit_of_images(self, n_images: int) -> Ints:
        """Return the cluster index of each image, counted from 0, (n_images,).

        If images are drawn, each image is its own cluster.
        """
        return np.arange(n_images) if self.clusters is None else self.clusters

    @property
    def units(self) -> str:
        """Return what is drawn, in words: "images" or "clusters (COLUMN)"."""
        return f"clusters ({self.column})" if self.column else "images"

    def for_images_of(self, runs: Sequence[Evaluation], cluster: str | None) -> Sampling:
        """Return a copy of the settings that draws the images of the runs, or clusters of them.

        All runs have the same images. `cluster` is the group column whose groups are the clusters,
        or None to draw single images. Runs without any group columns are not checked: their images
        are in the clusters of the other runs. Raises DataError if two runs have different clusters,
        or if none has the column.
        """
        if cluster is None:
            return self._replace(n=len(runs[0].records))
        with_groups = [run for run in runs if group_columns(run.records)]
        # If no run has group columns, `image_clusters` raises for the first run
        first, *others = with_groups or [runs[0]]
        clusters = image_clusters(first.records, cluster)
        for other in others:
            members = image_clusters(other.records, cluster).members  # (N,): cluster of each image
            if not np.array_equal(members, clusters.members):
                names = f"{first.name}, {other.name}"
                raise DataError(f"{names}: other groups by {cluster}, expected one")
        n_clusters = len(clusters.names)
        return self._replace(n=n_clusters, column=clusters.column, clusters=clusters.members)

    def notes(self, run: Evaluation) -> list[str]:
        """Return warnings if there are few images or clusters, or if images may be video frames."""
        notes = []
        if self.n < _FEW_IMAGES:
            notes.append(f"only {self.n} {self.units}: intervals and p-values are rough")
        if not self.column and (advice := frames_note(run.records)):
            notes.append(advice)
        return notes


def check_sampling(n_boot: int, seed: int, level: float) -> Sampling:
    """Check the settings of a bootstrap, and return them.

    They do not say yet how many images or clusters are drawn; `Sampling.for_images_of` sets this.
    Raises DataError if a setting is out of range.
    """
    n_samples = int(check_number(n_boot, "n_boot", 1, 10_000_000, whole=True))
    first = int(check_number(seed, "seed", 0, math.inf, whole=True))
    return Sampling(n_samples, first, given_level(level))


def blocks(count: int, n_images: int) -> list[range]:
    """Split the sample numbers 0 to count - 1 into consecutive ranges.

    The weights of one range, a byte per sample and image, fit in memory.
    """
    length = max(1, min(_MAX_SAMPLES, _MAX_WEIGHTS // n_images))
    return [range(first, min(first + length, count)) for first in range(0, count, length)]


def bootstrap_weights(
    n_images: int, n_boot: int, seed: int, clusters: Ints | None = None
) -> Iterator[Weights]:
    """Draw bootstrap samples, and yield how often each sample contains each image.

    A sample consists of n_images images, drawn with replacement. If `clusters` (n_images,), the
    cluster index of each image, is given, a sample consists of whole clusters instead: as many as
    there are, drawn with replacement.

    Yields int8 arrays (S, n_images), one per block of S samples, with `n_boot` rows in total. S is
    chosen by `blocks`, so that an array fits in memory. A background thread starts to draw with the
    first `next`, and stays a few blocks ahead.
    """
    n_units = n_images if clusters is None else int(clusters.max()) + 1  # images, or clusters
    rng = np.random.default_rng(seed)
    probabilities = np.full(n_units, 1 / n_units)

    def draw(n_samples: int) -> Weights:
        """Draw samples of `n_units` images or clusters; count how often each contains each image.

        The counts, int8 (n_samples, n_images), do not overflow: the probability is 1e-215.
        """
        unit_weights = np.empty((n_samples, n_units), np.int8)
        # `multinomial` returns int64, eight times as large, so draw only a few rows at a time.
        # Each assignment to the view `rows` fills a part of `unit_weights`
        for rows in np.array_split(unit_weights, _MULTINOMIAL_CALLS):
            rows[:] = rng.multinomial(n_units, probabilities, size=len(rows))
        return unit_weights if clusters is None else unit_weights[:, clusters]

    pool = ThreadPoolExecutor(1)
    pending = deque[Future[Weights]]()  # blocks in order of drawing
    try:
        for samples in blocks(n_boot, n_images):
            pending.append(pool.submit(draw, len(samples)))
            if len(pending) > _BLOCKS_AHEAD:
                yield pending.popleft().result()  # waits for the thread
        while pending:
            yield pending.popleft().result()
    finally:  # also if the caller drops this generator: the thread then stops after its block
        pool.shutdown(wait=False, cancel_futures=True)


def jackknife_weights(units: Ints) -> Iterator[Weights]:
    """Yield the weights of a jackknife that leaves out one cluster of images at a time.

    `units` has the cluster index of each image, counted from 0, (N,). A cluster may be a single
    image. Yields int8 arrays (S, N), each for a block of S clusters. Over all blocks, row k is 0
    for the images of cluster k and 1 for all other images.
    """
    n_units = int(units.max()) + 1
    for left_out_units in blocks(n_units, len(units)):
        is_kept = units != np.array(left_out_units)[:, None]  # (S, N)
        yield is_kept.astype(np.int8)
