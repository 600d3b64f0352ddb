"""What every metric has to keep, as tests: a class to inherit beside a metric of another package.

    import pytest

    MINE = MetricCase(MyMetric(), images=((pred_a, truth_a), (pred_b, truth_b)))

    class TestMine(MetricContract):
        @pytest.fixture
        def case(self):
            return MINE

Two or more unequal images are enough; with `counts`, `scores` and `write` more is checked. The
metric must be in the registry (entry point group `bsdsbench.metrics`) under its name.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bsdsbench.metrics.curve_metric import CurveMetric, MatchingMetric

from bsdsbench.comparison.bootstrap import bootstrap_weights
from bsdsbench.comparison.compare import INTERVALS, compare
from bsdsbench.comparison.significance import bca_interval, percentile_interval
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Metric, column_values
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run import evaluate
from bsdsbench.runs.streaming import StreamingEvaluator
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from tests.helpers.runs import stored

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}
DRAWS = 12  # more than are summed without compiled code


@dataclass
class MetricCase:
    """A metric, images for it, and what is known of them from elsewhere.

    Parameters
    ----------
    metric : Metric
        The metric.
    images : sequence of pairs
        Prediction and ground truth of two or more images, unequal and with ids in order.
    protocol : Protocol
        Under which they are counted; default: the metric's.
    counts : callable or None
        (prediction, ground truth, protocol) -> {field: values}, a plain definition of the counts.
    scores : callable or None
        (counts of the images, protocol) -> {column: value}, a plain definition of the scores.
    write : callable or None
        (empty folder) -> folders of predictions and of ground truth with these images as files.
    """

    metric: Metric
    images: Sequence[tuple[Prediction, GroundTruth]]
    protocol: Protocol | None = None
    counts: Callable[..., Mapping[str, Any]] | None = None
    scores: Callable[..., Mapping[str, float]] | None = None
    write: Callable[[Path], tuple[Path, Path]] | None = None

    @cached_property
    def run(self) -> Evaluation:
        """The images counted one after the other, as a training loop does."""
        stream = StreamingEvaluator(self.protocol, self.metric.name)
        for pred, gt in self.images:
            stream.update(pred, gt, image_id=pred.image_id)
        return stream.compute()

    def counted(self) -> list[Any]:
        """The counts of the images."""
        return [r.counts[self.metric.name] for r in self.run.records]

    def stack(self) -> Stack:
        """The same as arrays."""
        return self.metric.stack(self.counted())

    def plain(self, protocol: Protocol) -> Mapping[str, float]:
        """Scores by their plain definition, where there is one."""
        return self.scores(self.counted(), protocol) if self.scores else {}

    def columns(self, times: Any, protocol: Protocol | None = None) -> dict[str, float]:
        """The score columns of a data set in which each image is so many times."""
        repeated = [r for r, n in zip(self.run.records, times, strict=True) for _ in range(n)]
        named = [replace(r, image_id=f"{k:04d}") for k, r in enumerate(repeated)]
        proto, once = protocol or self.run.protocol, np.ones((1, len(self.images)), int)
        made = self.metric.scores(self.stack(), once, proto)
        columns = [c for c in self.metric.columns if c.score and c.key in made]
        found = column_values(columns, self.metric.score(named, proto).to_mapping())
        return {key: np.nan if value is None else value for key, value in found.items()}


class MetricContract:
    """The tests. A class that inherits them has a fixture `case`."""

    def test_counts_are_the_plain_ones(self, case: MetricCase) -> None:
        if case.counts is None:
            pytest.skip("no plain definition of the counts")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            found = counts.arrays()
            for name, values in case.counts(pred, gt, case.run.protocol).items():
                assert found[name] == pytest.approx(np.array(values, float), **CLOSE), name

    def test_counts_add_field_by_field_in_any_order(self, case: MetricCase) -> None:
        counts = case.counted()
        assert not counts[0].equals(counts[1]), "expected unequal images"
        if not case.metric.counts_type.adds:
            with pytest.raises(TypeError):
                counts[0] + counts[1]
            return
        total, turned = reduce(add, counts), reduce(add, counts[::-1])
        for name, what in case.metric.counts_type.declared().items():
            each = [c.arrays()[name] for c in counts]
            expected = each[0] if what.shared else np.sum(each, axis=0)
            for found in (total, turned):
                assert found.arrays()[name] == pytest.approx(expected, **CLOSE), name

    def test_scores_of_the_whole_set_are_the_plain_ones(self, case: MetricCase) -> None:
        once = np.ones((1, len(case.images)), int)
        found = case.metric.scores(case.stack(), once, case.run.protocol)
        expected = case.columns(once[0])
        assert {key: found[key][0] for key in expected} == pytest.approx(expected, **CLOSE)
        assert not np.isnan(list(expected.values())).all()
        for key, value in case.plain(case.run.protocol).items():
            assert found[key][0] == pytest.approx(value, **CLOSE), key
        own = [case.metric.image_values(c, case.run.protocol) for c in case.counted()]
        np.testing.assert_equal([*case.run.image_values(case.metric.name).values()], own)
        for values in own:
            assert {c.key for c in case.metric.image_columns} <= values.keys()

    def test_a_sample_has_the_scores_of_its_images_repeated(self, case: MetricCase) -> None:
        (weights,) = bootstrap_weights(len(case.images), DRAWS, 3)
        for some in (weights, weights[:2]):  # with compiled code, and without
            found = case.metric.scores(case.stack(), some, case.run.protocol)
            for b, row in enumerate(some):
                expected = case.columns(row)
                assert {k: found[k][b] for k in expected} == pytest.approx(expected, **CLOSE)

    @pytest.mark.parametrize("kind", INTERVALS)
    def test_intervals_are_those_of_slow_draws(self, case: MetricCase, kind: str) -> None:
        n, runs = len(case.images), [case.run, replace(case.run, name="other")]
        whole = case.columns([1] * n)
        draws = [case.columns(row) for block in bootstrap_weights(n, DRAWS, 5) for row in block]
        left = [case.columns(row) for row in 1 - np.eye(n, dtype=int)]
        found = compare(runs, n_boot=DRAWS, seed=5, level=0.8, interval=kind)
        assert found.scores == tuple(f"{case.metric.name}.{key}" for key in whole)
        same = {(d.p, d.low, d.high) for d in found.differences if d.p == d.p}
        assert same <= {(1.0, 0.0, 0.0)}
        for key, value in whole.items():
            drawn, without = (np.array([each[key] for each in some]) for some in (draws, left))
            plain = percentile_interval(drawn, 0.8, n), bca_interval(value, drawn, without, 0.8)
            made = found.interval_of(case.run.name, f"{case.metric.name}.{key}")
            expected = (value, *plain[INTERVALS.index(kind)])
            assert (made.value, made.low, made.high) == pytest.approx(expected, **CLOSE), key

    def test_every_rule_of_a_curve_is_the_plain_one(self, case: MetricCase) -> None:
        if not isinstance(case.metric, CurveMetric):
            pytest.skip("no precision-recall curve")
        for ods, ap in ((ods, ap) for ods in ODS_RULES for ap in AP_RULES):
            protocol = case.run.protocol.replace(ods_rule=ods, ap_rule=ap)
            found, plain = case.columns([1] * len(case.images), protocol), case.plain(protocol)
            for key in found.keys() & plain.keys():
                assert found[key] == pytest.approx(plain[key], **CLOSE), (key, ods, ap)
        whole: Any = case.run.score(case.metric.name)
        once = np.ones((1, len(case.images)), int)
        made = case.metric.scores(case.stack(), once, case.run.protocol)
        for at in {"ods.precision", "ods.recall", "ois.precision", "ois.recall"} & made.keys():
            point, _, name = at.partition(".")
            assert getattr(getattr(whole, point), name) == made[at][0], at

    def test_what_is_drawn_as_matched_is_what_is_counted(self, case: MetricCase) -> None:
        metric, protocol = case.metric, case.run.protocol
        if not isinstance(metric, MatchingMetric) or not metric.draws(protocol):
            pytest.skip("no matched pixels")
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            each: Any = counts
            for k, threshold in enumerate(each.thresholds):
                maps = metric.match_maps(pred, gt, protocol, float(threshold))
                assert maps.matched_gt.sum() == each.matched_gt[k]
                assert (maps.matched_gt | maps.missed_gt).sum() == each.total_gt[k]
                assert maps.true_pred.sum() == each.matched_pred[k]
                assert (maps.true_pred | maps.false_pred).sum() == each.total_pred[k]

    def test_options_said_and_left_out_are_the_same(self, case: MetricCase) -> None:
        metric, protocol = case.metric, case.run.protocol
        if metric.options is None:
            pytest.skip("no options")
        said = protocol.replace(options={metric.name: metric.options_of(protocol)})
        for (pred, gt), counts in zip(case.images, case.counted(), strict=True):
            assert metric.count(pred, gt, said).equals(counts)
        once = [1] * len(case.images)
        assert case.columns(once, said) == pytest.approx(case.columns(once), **CLOSE)

    def test_saved_pickled_and_merged_it_is_the_same(
        self, case: MetricCase, tmp_path: Path
    ) -> None:
        run, records = case.run, case.run.records
        halves = [replace(run, records=part) for part in (records[1:], records[:1])]
        again = Evaluation.load(run.save(tmp_path))
        for other in (again, halves[0] + halves[1], pickle.loads(pickle.dumps(run))):
            assert other.equals(run)
            assert other.scores() == run.scores()

    def test_streaming_arrays_and_reading_files_count_the_same(
        self, case: MetricCase, tmp_path: Path
    ) -> None:
        stream = StreamingEvaluator(case.protocol, case.metric.name)
        for pred, gt in case.images:
            alone = pred.soft if pred.soft is not None else pred.classes
            first = gt.mask if gt.mask is not None else gt.labels
            drawn: Any = first if first is not None else gt.boundaries
            plain = alone is not None and pred.angles is None and pred.lines is None
            stream.update(alone if plain else pred, drawn if plain else gt, pred.image_id)
        runs = [stream.compute()]
        if case.write is not None:
            how: dict[str, Any] = {"metrics": case.metric.name, "workers": 1, "executor": "thread"}
            runs.append(evaluate(*case.write(tmp_path), case.protocol, **how))
        for run in runs:
            assert run.scores() == case.run.scores()
            for record, counts in zip(run.records, case.counted(), strict=True):
                assert record.counts[case.metric.name].equals(counts)

    def test_an_interrupted_run_goes_on_to_the_same_counts(
        self, case: MetricCase, tmp_path: Path
    ) -> None:
        if case.write is None:
            pytest.skip("no files")
        folders, out = case.write(tmp_path), tmp_path / "out"
        how: dict[str, Any] = {"metrics": case.metric.name, "workers": 1, "executor": "thread"}

        def stop(done: int, total: int, image_id: str) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            evaluate(*folders, case.protocol, **how, out=out, progress=stop)
        kept = stored(out)
        run = evaluate(*folders, case.protocol, **how, out=out)
        assert run.scores() == case.run.scores()
        assert 0 < len(kept) < len(stored(out))
        assert run.kept == len(kept)

    def test_humans_are_counted_in_any_order_or_refused(self, case: MetricCase) -> None:
        def some(which: slice) -> GroundTruth:
            maps = gt.boundaries[which], gt.segmentations[which]
            return replace(gt, boundaries=maps[0], segmentations=maps[1])

        gt, metric, protocol = case.images[0][1], case.metric, case.run.protocol
        with pytest.raises(DataError, match=r"has no human form|expected two or more to compare"):
            metric.count_humans(some(slice(1)), protocol)
        if type(metric).count_humans is not Metric.count_humans:
            turned = metric.count_humans(some(slice(None, None, -1)), protocol).arrays()
            for name, values in metric.count_humans(gt, protocol).arrays().items():
                assert values == pytest.approx(turned[name], **CLOSE), name
