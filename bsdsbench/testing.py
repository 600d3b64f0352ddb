"""A pytest suite that every metric must pass, for authors of metrics in other packages.

    import pytest

    from bsdsbench import GroundTruth, Prediction
    from bsdsbench.testing import MetricCase, MetricContract

    class TestMine(MetricContract):
        @pytest.fixture
        def case(self):
            images = [
                (Prediction("a", classes=pred_a), GroundTruth("a", labels=truth_a)),
                (Prediction("b", classes=pred_b), GroundTruth("b", labels=truth_b)),
            ]
            return MetricCase(MyMetric(), images)

Two or more images of different sizes are enough. With `counts`, `scores`, `perfect` and `write`,
more is checked. The package must be installed, because its metric is looked up in the entry point
group `bsdsbench.metrics`. Needs pytest.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import ArrayLike

from bsdsbench import StreamingEvaluator, evaluate
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.images import GroundTruth, Lines, Prediction
from bsdsbench.metrics.base import Metric, ScoreTree
from bsdsbench.metrics.optional import DrawsPixels, HumanForm
from bsdsbench.metrics.pixel_steps import PixelClass
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.merge import merge
from bsdsbench.scores.counts import sample_scores, value_at
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

# Tolerances for equal numbers: arguments of `pytest.approx`
_CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}
_DRAWS = 12  # number of samples, enough that compiled code is used


@dataclass
class MetricCase:
    """A metric, images to test it on, and optional reference implementations."""

    metric: Metric  #: The metric.
    #: Predictions and ground truths of two or more images of different sizes, sorted by id.
    images: Sequence[tuple[Prediction, GroundTruth]]
    protocol: Protocol | None = None  #: For counting; by default the metric's own.
    #: Reference implementation of the counts: (prediction, ground truth, protocol) -> dict by name.
    counts: Callable[..., Mapping[str, Any]] | None = None
    #: Reference implementation of the scores: (counts of each image, protocol) -> dict by column.
    scores: Callable[..., Mapping[str, float]] | None = None
    #: Ground truth -> (a perfect prediction, the ground truth with only one annotator).
    perfect: Callable[[GroundTruth], tuple[Prediction, GroundTruth]] | None = None
    #: Columns, or groups of columns, that are not 1 (or 0) for a perfect prediction.
    imperfect: tuple[str, ...] = ()
    #: Writes `images` as files into an empty folder; returns the prediction and truth folders.
    write: Callable[[Path], tuple[Path, Path]] | None = None

    @cached_property
    def run(self) -> Evaluation:
        """The evaluation of `images`, added one by one as in a training loop."""
        return self.streamed(self.images)

    def streamed(
        self, images: Iterable[tuple[Prediction, GroundTruth]], protocol: Protocol | None = None
    ) -> Evaluation:
        """Evaluate images one by one with a StreamingEvaluator (default: `self.protocol`)."""
        stream = StreamingEvaluator(protocol or self.protocol, self.metric.name)
        for pred, gt in images:
            stream.update(pred, gt, image_id=pred.image_id)
        return stream.compute()

    def counted(self) -> list[Any]:
        """Return the counts of each image, in the order of `images`."""
        return [r.counts[self.metric.name] for r in self.run.records]

    def tree(self, weights: ArrayLike, protocol: Protocol | None = None) -> ScoreTree:
        """Compute the metric's scores for S samples of the N images.

        `weights` (S, N) says how often each image occurs in each sample. `protocol` is the protocol
        for scoring; the default is that of the run.

        Returns nested mappings whose leaves are arrays (S,), or curves (S, T) over T thresholds.
        """
        metric, protocol = self.metric, protocol or self.run.protocol
        stack, opt = metric.stack(self.counted()), metric.options_of(protocol)
        return metric.scores(stack, np.array(weights), protocol, opt)

    def repeated(self, times: Iterable[int]) -> dict[str, float]:
        """Score a data set in which image k occurs times[k] times, with a new id for each copy.

        Returns a dict from column to score. Columns without a score have no entry.
        """
        records = np.repeat(np.array(self.run.records, object), [*times])
        copies = [replace(record, image_id=f"{k:04d}") for k, record in enumerate(records)]
        return _scores_by_column(self.metric, self.metric.score(copies, self.run.protocol))


def _assert_same(first_tree: object, second_tree: object) -> None:
    """Assert that two nested mappings of scores are equal, with NaN equal to NaN.

    The leaves are arrays, numbers and curves. Keys in only one mapping are ignored, because a run
    has no scores for a class that does not occur, but at least one key must be shared.
    """
    if isinstance(first_tree, Mapping) and isinstance(second_tree, Mapping):
        shared_keys = first_tree.keys() & second_tree.keys()
        assert shared_keys
        for key in shared_keys:
            _assert_same(first_tree[key], second_tree[key])
    elif hasattr(first_tree, "equals"):
        assert first_tree.equals(second_tree)
    else:
        np.testing.assert_array_equal(first_tree, second_tree)


def _scores_by_column(metric: Metric, score: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a score for the metric's columns, by column key, without n_images.

    Columns that the score lacks are left out.
    """
    values = {c.key: value_at(score, c.key) for c in metric.columns if c.key != "n_images"}
    return {key: value for key, value in values.items() if value is not None}


class MetricContract:
    """The tests. A class that inherits them must define a fixture `case`, a MetricCase."""

    def test_counts_match_reference(self, case: MetricCase) -> None:
        """The metric's counts agree with those of the reference implementation, `case.counts`."""
        if case.counts is None:
            pytest.skip("no reference definition of the counts")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            for name, values in case.counts(pred, gt, case.run.protocol).items():
                assert counts[name] == pytest.approx(np.array(values, float), **_CLOSE), name

    def test_scores_match_reference_for_every_curve_rule(self, case: MetricCase) -> None:
        """The scores agree with the reference implementation, `case.scores`.

        Metrics with curves are tested under every ODS and AP rule. Columns of the reference that
        the metric lacks are skipped.
        """
        if case.scores is None:
            pytest.skip("no reference definition of the scores")
        # Scores of parts, such as classes, may come from curves of their own
        has_curve = case.metric.part_columns or any(c.key == "ods" for c in case.metric.columns)
        rules = list(product(ODS_RULES, AP_RULES))
        for ods_rule, ap_rule in rules if has_curve else rules[:1]:  # without a curve any will do
            protocol = case.run.protocol.replace(ods_rule=ods_rule, ap_rule=ap_rule)
            weights = [[1] * len(case.images)]  # one sample, in which each image occurs once
            scores = sample_scores(case.tree(weights, protocol), 0)  # those of this sample
            for key, expected in case.scores(case.counted(), protocol).items():
                value = value_at(scores, key)
                if value is not None:
                    assert value == pytest.approx(expected, **_CLOSE), (key, ods_rule, ap_rule)

    def test_sample_scores_equal_those_of_repeated_images(self, case: MetricCase) -> None:
        """The scores of a bootstrap sample, given as weights, equal those of repeated images.

        Metrics score many samples (_DRAWS) by compiled code, and two samples by NumPy.
        """
        n = len(case.images)
        weights = np.random.default_rng(3).multinomial(n, [1 / n] * n, _DRAWS)  # (samples, images)
        for samples in (weights, weights[:2]):
            scores_of_samples = case.tree(samples)  # nested, each score an array over the samples
            for number, times in enumerate(samples):  # image k occurs times[k] times
                scores = sample_scores(scores_of_samples, number)
                expected = case.repeated(times)  # {column: score}
                assert _scores_by_column(case.metric, scores) == pytest.approx(expected, **_CLOSE)

    def test_per_image_row_equals_scores_of_that_image_alone(self, case: MetricCase) -> None:
        """An image's row in the per-image table has the scores of a run of only that image.

        The table may also have one row per image and part (such as a class).
        """
        metric, protocol = case.metric, case.run.protocol
        table = case.run.per_image(metric.name)
        names = [column.key for column in table.columns]  # "image", "part", and a column per score
        rows = [dict(zip(names, cells, strict=True)) for cells in table.rows]
        image_rows = [row for row in rows if row.get("part") is None]
        times_of_runs = np.eye(len(case.images), dtype=int)  # in run k, image k once, others never
        for row, times, (pred, _) in zip(image_rows, times_of_runs, case.images, strict=True):
            expected = case.repeated(times)  # {key: score} of the run, defined scores only
            # The table writes the key "ods.f" as "ods_f"
            scores = {key: row.get(key.replace(".", "_")) for key in expected}
            assert scores == pytest.approx(expected, **_CLOSE)
            assert row["image"] == pred.image_id
        parts = metric.parts(protocol, metric.options_of(protocol))  # such as classes
        n_images = len(image_rows)
        assert len(rows) in (n_images, n_images * (1 + len(parts)))  # without or with rows of parts
        assert case.run.image_scores(metric.name).keys() == {*case.run.image_ids}

    def test_group_scores_equal_those_of_a_run_of_the_group(self, case: MetricCase) -> None:
        """The scores of a group of images equal, bit for bit, those of a run of these images.

        Four copies of the images are split at random into three non-empty groups.
        """
        records = case.run.records
        fourfold = [replace(r, image_id=f"{k}_{r.image_id}") for k in range(4) for r in records]
        run = replace(case.run, records=fourfold)
        rng = np.random.default_rng(len(fourfold))
        groups = np.array([0, 1, 2, *rng.integers(0, 3, len(fourfold) - 3)])  # of each image
        weights = (groups == np.arange(3)[:, None]).astype(np.int64)  # (groups, images)
        tree = case.metric.all_scores(run.stack(case.metric.name), weights, run.protocol)
        for number in range(3):
            members = [r for r, group in zip(run.records, groups, strict=True) if group == number]
            alone = replace(run, records=members).score(case.metric.name)
            _assert_same({**sample_scores(tree, number), "n_images": len(members)}, alone)

    def test_perfect_prediction_scores_one(self, case: MetricCase) -> None:
        """A perfect prediction scores 1, or 0 where lower is better, except in `case.imperfect`.

        At least one score must be defined.
        """
        if case.perfect is None:
            pytest.skip("no perfect prediction")
        # Thresholds between 0 and 1, and no thinning, which may change a perfect map
        protocol = case.run.protocol.replace(thresholds=(0.3, 0.6), thin=False)
        # A run that evaluates pairs of prediction and ground truth one by one
        run = case.streamed([case.perfect(gt) for _, gt in case.images], protocol)
        score = run.score(case.metric.name)
        n_checked = 0
        for column in case.metric.columns:
            group = column.key.partition(".")[0]  # "ods" for "ods.f"; may be in case.imperfect too
            value = value_at(score, column.key)
            is_defined = value is not None and not np.isnan(value)
            is_imperfect = column.key in case.imperfect or group in case.imperfect
            if column.score and is_defined and not is_imperfect:
                assert value == pytest.approx(0 if column.lower else 1, abs=1e-9), column.key
                n_checked += 1
        assert n_checked

    def test_empty_ground_truth_scores_or_reports(self, case: MetricCase) -> None:
        """Ground truth without annotations gives scores, or a one-line error or warning."""
        blank_pairs = [(pred, _blank(gt)) for pred, gt in case.images]
        attempts = [blank_pairs]  # the predictions, then perfect ones for blank truth
        if case.perfect:  # ground truth -> (a perfect prediction, the ground truth)
            attempts.append([case.perfect(gt) for _, gt in blank_pairs])
        for pairs in attempts:
            try:
                run = case.streamed(pairs)  # evaluates them one by one
                scores = run.scores()[case.metric.name]
            except (DataError, InputWarning) as error:  # rejected, or left out with a warning
                assert "\n" not in str(error)  # noqa: PT017 - scores are as good as an error
                continue
            assert scores["n_images"] == len(pairs)
            assert case.metric.title in run.summary()  # the tables as text, titled by metric

    def test_size_mismatch_raises_one_line_error(self, case: MetricCase) -> None:
        """A size mismatch raises a one-line DataError, unless the metric resizes."""
        (pred, _), (_, gt), *_ = case.images  # the author gives images of different sizes
        opt = case.metric.options_of(case.run.protocol)
        if case.metric.fits(pred, gt, opt):  # True if the metric accepts these sizes
            pytest.skip("resized")
        with pytest.raises(DataError) as caught:
            case.streamed([(pred, gt)])
        assert "\n" not in str(caught.value)

    def test_drawn_pixels_agree_with_counts(self, case: MetricCase) -> None:
        """The drawn pixels agree with the counts at every threshold.

        With one annotator, the numbers of matched and of predicted pixels equal the counts. Missed
        pixels are never more than the annotated ones; they may be fewer, because a pixel is drawn
        once but counted for each annotator.
        """
        metric, protocol = case.metric, case.run.protocol
        opt = metric.options_of(protocol)
        if not isinstance(metric, DrawsPixels):  # has the method `pixel_steps`
            pytest.skip("the metric draws no pixels itself")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            steps = metric.pixel_steps(pred, gt, protocol, opt)  # the pixels at each threshold
            # (T, 4): at each of T thresholds the pixels of the ground truth that are matched, and
            # all of them, then those of the prediction. Not every metric stores them as counts
            if "matches" in counts:
                np.testing.assert_array_equal(steps.matches, counts["matches"])
            for k, (_, total_gt, matched_pred, total_pred) in enumerate(steps.matches.tolist()):
                classes = steps.at(k)  # (H, W), the class of each pixel at threshold k
                # A pixel predicted as another class than annotated (OTHER) is false and missed
                predicted = PixelClass.MATCHED, PixelClass.FALSE, PixelClass.OTHER
                missed = PixelClass.MISSED, PixelClass.OTHER
                if steps.n_annotators == 1:
                    assert (classes == PixelClass.MATCHED).sum() == matched_pred
                    assert np.isin(classes, predicted).sum() == total_pred
                assert np.isin(classes, missed).sum() <= total_gt

    def test_run_survives_save_merge_pickle_and_resume(
        self, case: MetricCase, tmp_path: Path
    ) -> None:
        """Saving and loading, merging from two shards, and pickling preserve a run.

        With `case.write`, evaluating the same images from files gives the same scores and counts,
        also if the evaluation is interrupted and resumed.
        """
        run = case.run
        shards = []  # two runs: one of the first image, and one of the others
        for number, records in enumerate((run.records[:1], run.records[1:]), 1):
            provenance = evolve(run.provenance, shard=f"{number}/2")
            shards.append(replace(run, records=records, provenance=provenance))
        loaded = Evaluation.load(run.save(tmp_path / "out"))
        for copy in (loaded, merge(shards), pickle.loads(pickle.dumps(run))):
            assert copy.equals(run)
            assert copy.scores() == run.scores()
        if case.write is not None:
            (tmp_path / "files").mkdir()
            pred_dir, gt_dir = case.write(tmp_path / "files")
            for run_of_files in _runs_of_files(case, pred_dir, gt_dir, tmp_path / "kept"):
                assert run_of_files.scores() == run.scores()
                for record, counts in zip(run_of_files.records, case.counted(), strict=True):
                    assert record.counts[case.metric.name].equals(counts)

    def test_human_scores_need_two_annotators_and_ignore_their_order(
        self, case: MetricCase
    ) -> None:
        """Scoring annotators against each other needs two, and does not depend on their order."""
        gt = case.images[0][1]  # `count_image` counts its annotators if the prediction is None
        metric, protocol = case.metric, case.run.protocol
        # What each annotator drew: tuples of maps, one per annotator
        drawings = {n: gt.parts[n] for n in ("boundaries", "segmentations") if n in gt.parts}
        one_annotator = gt.replace(**{name: maps[:1] for name, maps in drawings.items()})
        with pytest.raises(DataError):
            metric.count_image(None, one_annotator, protocol)
        if isinstance(metric, HumanForm):  # it compares annotators; others raise DataError
            other_order = gt.replace(**{name: maps[::-1] for name, maps in drawings.items()})
            counts_of_other = metric.count_image(None, other_order, protocol)
            for name, values in metric.count_image(None, gt, protocol).items():
                assert values == pytest.approx(counts_of_other[name], **_CLOSE), name


def _runs_of_files(case: MetricCase, pred_dir: Path, gt_dir: Path, out: Path) -> list[Evaluation]:
    """Evaluate files twice: at once, and interrupted after the first image and then resumed.

    The folder `out` keeps the counts of the interrupted run, which the next call takes up.
    """

    def interrupt(*_: object) -> None:  # `progress` is called after each image
        raise KeyboardInterrupt

    options: dict[str, Any] = {"metrics": case.metric.name, "workers": 1, "executor": "thread"}
    uninterrupted = evaluate(pred_dir, gt_dir, case.protocol, **options)
    options["out"] = out
    with pytest.raises(KeyboardInterrupt):
        evaluate(pred_dir, gt_dir, case.protocol, **options, progress=interrupt)
    resumed = evaluate(pred_dir, gt_dir, case.protocol, **options)
    assert 0 < resumed.kept < len(case.run.records)  # images counted before the interruption
    return [uninterrupted, resumed]


def _blank(gt: GroundTruth) -> GroundTruth:
    """Return a copy of the ground truth without annotations.

    Boundaries, mask and class labels are 0 everywhere, depth is 1, segmentations have a single
    region, and there are no lines.
    """
    zeros = {n: np.zeros_like(gt.parts[n]) for n in ("mask", "labels") if n in gt.parts}
    ones = {n: np.ones_like(gt.parts[n]) for n in ("segmentations", "depth") if n in gt.parts}
    parts: dict[str, Any] = {**zeros, **ones}
    if "lines" in gt.parts:
        parts["lines"] = Lines(gt.lines.ends[:0], gt.lines.scores[:0], None, gt.lines.grid)
    return gt.replace(boundaries=tuple(np.zeros_like(b) for b in gt.boundaries), **parts)
