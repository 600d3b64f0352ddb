"""The contract of metrics as tests, for authors of metrics in packages of their own. Needs pytest.

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

Two or more images of unequal sizes are enough; with `counts`, `scores`, `perfect` and `write` more
is checked. The package must be installed, as its metric is looked up by the entry point group
`bsdsbench.metrics`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from bsdsbench.metrics.pixel_steps import (
    FALSE_PIXEL,
    MATCHED_PIXEL,
    MISSED_PIXEL,
    OTHER_PIXEL,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.merge import merge
from bsdsbench.scores.counts import sample_scores, value_at
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

_CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}
_DRAWS = 12  # so many samples are summed by compiled code


@dataclass
class MetricCase:
    """A metric, images for it, and facts about the images from an independent source.

    Parameters
    ----------
    metric : Metric
        The metric.
    images : sequence of pairs
        Prediction and ground truth of two or more images, unequal and with ids in order.
    protocol : Protocol
        The protocol for counting; default: the metric's.
    counts : callable or None
        (prediction, ground truth, protocol) -> {name: values}, a plain definition of the counts.
    scores : callable or None
        (counts of the images, protocol) -> {column: value}, a plain definition of the scores.
    perfect : callable or None
        ground truth -> a perfect prediction, and the ground truth of one annotator.
    imperfect : tuple of str
        Columns, or groups of columns, that are not 1 (or 0) for a perfect prediction.
    write : callable or None
        (empty folder) -> folders of predictions and of ground truth with these images as files.
    """

    metric: Metric
    images: Sequence[tuple[Prediction, GroundTruth]]
    protocol: Protocol | None = None
    counts: Callable[..., Mapping[str, Any]] | None = None
    scores: Callable[..., Mapping[str, float]] | None = None
    perfect: Callable[[GroundTruth], tuple[Prediction, GroundTruth]] | None = None
    imperfect: tuple[str, ...] = ()
    write: Callable[[Path], tuple[Path, Path]] | None = None

    @cached_property
    def run(self) -> Evaluation:
        """The run of the images, counted one after the other as a training loop does."""
        return self.streamed(self.images)

    def streamed(
        self, images: Iterable[tuple[Prediction, GroundTruth]], protocol: Protocol | None = None
    ) -> Evaluation:
        """Count some images and return their run."""
        stream = StreamingEvaluator(protocol or self.protocol, self.metric.name)
        for pred, gt in images:
            stream.update(pred, gt, image_id=pred.image_id)
        return stream.compute()

    def counted(self) -> list[Any]:
        """Return the counts of the images."""
        return [r.counts[self.metric.name] for r in self.run.records]

    def tree(self, weights: ArrayLike, protocol: Protocol | None = None) -> ScoreTree:
        """Return the scores of weighted samples of the images."""
        proto = protocol or self.run.protocol
        opt = self.metric.options_of(proto)
        return self.metric.scores(self.metric.stack(self.counted()), np.array(weights), proto, opt)

    def repeated(self, times: Iterable[int]) -> dict[str, float]:
        """Return the score columns of a data set in which image k occurs times[k] times."""
        rows = [r for r, n in zip(self.run.records, times, strict=True) for _ in range(n)]
        renamed = [replace(r, image_id=f"{k:04d}") for k, r in enumerate(rows)]
        return _columns(self.metric, self.metric.score(renamed, self.run.protocol))


def _assert_same(first_tree: object, second_tree: object) -> None:
    """Check that two trees of scores are equal, with NaN equal to NaN.

    Keys of only one tree are skipped, because a class that is absent has no score in a run.
    """
    if isinstance(first_tree, Mapping) and isinstance(second_tree, Mapping):
        shared_keys = first_tree.keys() & second_tree.keys()
        assert shared_keys
        for key in shared_keys:
            _assert_same(first_tree[key], second_tree[key])
    elif hasattr(first_tree, "equals"):
        assert first_tree.equals(second_tree)
    elif isinstance(first_tree, np.ndarray | float):
        np.testing.assert_array_equal(first_tree, second_tree)
    else:
        assert first_tree == second_tree


def _columns(metric: Metric, score: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a metric's columns that are in a score."""
    values = {c.key: value_at(score, c.key) for c in metric.columns if c.key != "n_images"}
    return {key: value for key, value in values.items() if value is not None}


class MetricContract:
    """The tests of the contract. A class that inherits them has a fixture `case`."""

    def test_counts_are_the_plain_ones(self, case: MetricCase) -> None:
        """The counts equal those of the plain definition."""
        if case.counts is None:
            pytest.skip("no plain definition of the counts")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            for name, values in case.counts(pred, gt, case.run.protocol).items():
                assert counts[name] == pytest.approx(np.array(values, float), **_CLOSE), name

    def test_scores_are_the_plain_ones_by_every_rule_of_a_curve(self, case: MetricCase) -> None:
        """The scores equal those of the plain definition, under every ODS and AP rule."""
        if case.scores is None:
            pytest.skip("no plain definition of the scores")
        curve = case.metric.part_columns or any(c.key == "ods" for c in case.metric.columns)
        rules = [(o, a) for o in ODS_RULES for a in AP_RULES] if curve else [("maximum", "bsds")]
        for ods, ap in rules:
            protocol = case.run.protocol.replace(ods_rule=ods, ap_rule=ap)
            scores = sample_scores(case.tree([[1] * len(case.images)], protocol))
            plain = case.scores(case.counted(), protocol)
            for key, value in ((k, v) for k, v in plain.items() if value_at(scores, k) is not None):
                assert value_at(scores, key) == pytest.approx(value, **_CLOSE), (key, ods, ap)

    def test_a_sample_has_the_scores_of_its_images_repeated(self, case: MetricCase) -> None:
        """A weighted sample has the scores of a data set that repeats the images."""
        n = len(case.images)
        weights = np.random.default_rng(3).multinomial(n, [1 / n] * n, _DRAWS)
        for samples in (weights, weights[:2]):  # with and without compiled code
            tree = case.tree(samples)
            for b, row in enumerate(samples):
                expected = case.repeated(row)
                assert _columns(case.metric, sample_scores(tree, b)) == pytest.approx(
                    expected, **_CLOSE
                )

    def test_an_images_values_are_the_scores_of_it_alone(self, case: MetricCase) -> None:
        """The row of an image has the scores of a data set with this image alone."""
        eye = np.eye(len(case.images), dtype=int)
        table = case.run.per_image(case.metric.name)
        keys = {c.key.replace(".", "_"): c.key for c in case.metric.columns}
        row_mappings = [
            dict(zip([c.key for c in table.columns], row, strict=True)) for row in table.rows
        ]
        image_rows = [row for row in row_mappings if row.get("part") is None]
        for row, times, (pred, _) in zip(image_rows, eye, case.images, strict=True):
            expected = case.repeated(times)
            values = {keys[k]: v for k, v in row.items() if keys.get(k) in expected}
            assert values == pytest.approx(expected, **_CLOSE)
            assert row["image"] == pred.image_id
        parts = case.metric.parts(case.run.protocol, case.metric.options_of(case.run.protocol))
        assert len(row_mappings) in (len(image_rows), len(image_rows) * (1 + len(parts)))
        assert case.run.image_scores(case.metric.name).keys() == {*case.run.image_ids}

    def test_a_slice_is_a_run_of_its_images_bit_for_bit(self, case: MetricCase) -> None:
        """A group of images has exactly the scores of a run of these images."""
        records = case.run.records
        fourfold = [replace(r, image_id=f"{k}_{r.image_id}") for k in range(4) for r in records]
        run = replace(case.run, records=fourfold)
        rng = np.random.default_rng(len(fourfold))
        groups = np.array([0, 1, 2, *rng.integers(0, 3, len(fourfold) - 3)])
        weights = (groups == np.arange(3)[:, None]).astype(np.int64)
        tree = case.metric.all_scores(run.stack(case.metric.name), weights, run.protocol)
        for number in range(3):
            part = [r for r, group in zip(run.records, groups, strict=True) if group == number]
            alone = replace(run, records=part).score(case.metric.name)
            _assert_same({**sample_scores(tree, number), "n_images": len(part)}, alone)

    def test_perfect_is_perfect(self, case: MetricCase) -> None:
        """A perfect prediction has the best scores."""
        if case.perfect is None:
            pytest.skip("no perfect prediction")
        protocol = case.run.protocol.replace(thresholds=(0.3, 0.6), thin=False)
        run = case.streamed([case.perfect(gt) for _, gt in case.images], protocol)
        score = run.score(case.metric.name)
        checked = 0
        for c in case.metric.columns:
            value = value_at(score, c.key)
            is_imperfect = {c.key, c.key.partition(".")[0]} & {*case.imperfect}
            if c.score and value is not None and value == value and not is_imperfect:
                assert value == pytest.approx(0 if c.lower else 1, abs=1e-9), c.key
                checked += 1
        assert checked

    def test_empty_is_defined_or_said(self, case: MetricCase) -> None:
        """An empty ground truth gives scores, or an error or warning of one line."""
        for perfect in (False, True):
            pairs = [(pred, _blank(gt)) for pred, gt in case.images]
            if perfect and case.perfect:
                pairs = [case.perfect(gt) for _, gt in pairs]
            try:
                run = case.streamed(pairs)
                scores = run.scores()[case.metric.name]
            except (DataError, InputWarning) as error:  # refused, or left out with a warning
                assert "\n" not in str(error)  # noqa: PT017
                continue
            assert scores["n_images"] == len(pairs)
            assert case.metric.title in run.summary()

    def test_other_sizes_are_refused_in_one_line(self, case: MetricCase) -> None:
        """A prediction of another size is refused in one line, unless the metric resizes."""
        (pred, _), (_, gt) = case.images[:2]
        opt = case.metric.options_of(case.run.protocol)
        if case.metric.fits(pred, gt, opt):
            pytest.skip("resized")
        with pytest.raises(DataError) as caught:
            case.streamed([(pred, gt)])
        assert "\n" not in str(caught.value)

    def test_what_is_drawn_as_matched_is_what_is_counted(self, case: MetricCase) -> None:
        """The pixels that are drawn as matched, false and missed add up to the counts."""
        metric, protocol = case.metric, case.run.protocol
        opt = metric.options_of(protocol)
        if not isinstance(metric, DrawsPixels):
            pytest.skip("not drawn, or by the matching of boundaries")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            steps = metric.pixel_steps(pred, gt, protocol, opt)
            if "matches" in counts:
                np.testing.assert_array_equal(steps.matches, counts["matches"])
            for k, (_, total_gt, matched_pred, total_pred) in enumerate(steps.matches.tolist()):
                classes = steps.at(k)
                on = np.isin(classes, (MATCHED_PIXEL, FALSE_PIXEL, OTHER_PIXEL))
                if steps.n_annotators == 1:
                    assert (classes == MATCHED_PIXEL).sum() == matched_pred
                    assert on.sum() == total_pred
                assert np.isin(classes, (MISSED_PIXEL, OTHER_PIXEL)).sum() <= total_gt

    def test_saved_pickled_merged_read_and_resumed_it_is_the_same(
        self, case: MetricCase, tmp_path: Path
    ) -> None:
        """A run stays equal when it is saved, pickled, merged, read from files, or resumed."""
        run, records = case.run, case.run.records
        halves = [
            replace(run, records=part, provenance=evolve(run.provenance, shard=f"{k}/2"))
            for k, part in enumerate((records[:1], records[1:]), 1)
        ]
        again = Evaluation.load(run.save(tmp_path / "out"))
        copies = [again, merge(halves), pickle.loads(pickle.dumps(run))]
        for other in copies:
            assert other.equals(run)
            assert other.scores() == run.scores()
        if case.write is None:
            return
        (tmp_path / "files").mkdir()
        pair = case.write(tmp_path / "files")
        options: dict[str, Any] = {"metrics": case.metric.name, "workers": 1, "executor": "thread"}

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        read = evaluate(*pair, case.protocol, **options)
        with pytest.raises(KeyboardInterrupt):
            evaluate(*pair, case.protocol, **options, out=tmp_path / "kept", progress=stop)
        resumed = evaluate(*pair, case.protocol, **options, out=tmp_path / "kept")
        assert 0 < resumed.kept < len(records)
        for again in (read, resumed):
            assert again.scores() == run.scores()
            for record, counts in zip(again.records, case.counted(), strict=True):
                assert record.counts[case.metric.name].equals(counts)

    def test_humans_are_counted_in_any_order_or_refused(self, case: MetricCase) -> None:
        """Annotators score the same in any order; a single annotator is refused."""

        def drawn_by(annotators: slice) -> GroundTruth:
            names = gt.parts.keys() & {"boundaries", "segmentations"}
            return gt.replace(**{name: gt.parts[name][annotators] for name in names})

        gt = case.images[0][1]
        metric = case.metric
        protocol = case.run.protocol
        with pytest.raises(DataError):
            metric.count_image(None, drawn_by(slice(1)), protocol)
        if isinstance(metric, HumanForm):
            turned = metric.count_image(None, drawn_by(slice(None, None, -1)), protocol)
            for name, values in metric.count_image(None, gt, protocol).items():
                assert values == pytest.approx(turned[name], **_CLOSE), name


def _blank(gt: GroundTruth) -> GroundTruth:
    """Return the ground truth with nothing annotated."""
    zero_parts, one_parts = (
        gt.parts.keys() & n for n in ({"mask", "labels"}, {"segmentations", "depth"})
    )
    parts = {n: np.zeros_like(gt.parts[n]) for n in zero_parts}
    parts |= {n: np.ones_like(gt.parts[n]) for n in one_parts}
    if "lines" in gt.parts:
        parts["lines"] = Lines(gt.lines.ends[:0], gt.lines.scores[:0], None, gt.lines.grid)
    return gt.replace(boundaries=tuple(np.zeros_like(b) for b in gt.boundaries), **parts)
