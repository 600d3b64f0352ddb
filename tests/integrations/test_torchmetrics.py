"""The torchmetrics adapter against StreamingEvaluator; two gathered ranks against one."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError, InvertedWarning
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import refused

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

PROTOCOL = Protocol(thresholds=5, max_dist_px=2)


def images(count, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(count):
        soft = rng.random((12, 17)).astype(np.float32)
        yield f"im{i}", soft, [rng.random((12, 17)) < 0.2 for _ in range(1 + i % 3)]


@pytest.fixture
def exact():
    ev = bb.StreamingEvaluator(PROTOCOL)
    for name, soft, gts in images(6):
        ev.update(soft, gts, image_id=name)
    return ev.compute().boundary_score()


def filled(rows):
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    metric = BenchmarkMetric(PROTOCOL)
    for name, soft, gts in rows:
        metric.update(torch.from_numpy(soft), [torch.from_numpy(g) for g in gts], image_id=name)
    return metric


def test_the_scores_are_those_of_the_streaming_evaluator(exact):
    metric = filled(images(6))
    found = metric.compute()
    assert found["ods"].item() == exact.ods.f
    assert found["ois"].item() == exact.ois.f
    assert found["ap"].item() == exact.ap
    np.testing.assert_equal(found["r50"].item(), exact.r50)  # undefined: NaN in both
    again = pickle.loads(pickle.dumps(metric)).compute()
    assert again["ods"].item() == exact.ods.f
    metric.reset()
    refused("no images yet", metric.evaluation)


def test_gathered_ranks_with_a_repeated_image_give_the_numbers_of_one(exact):
    rows = list(images(6))
    one, two = filled(rows[:3]), filled([*rows[3:], rows[0]])
    # what a gather over ranks leaves in a "cat" state
    one.counts = torch.cat([*one.counts, *two.counts])
    assert one.compute()["ods"].item() == exact.ods.f


def test_a_rank_without_images_has_the_numbers_of_the_others(exact):
    here, there = filled([]).to("cpu"), torch.cat(filled(images(6)).counts)

    def gather(state, group):
        return [state, there if state.dtype == there.dtype else state]

    here.sync(dist_sync_fn=gather, distributed_available=lambda: True)
    assert here.evaluation().boundary_score().ods.f == exact.ods.f
    here.unsync()
    refused("no images yet", here.evaluation)


def test_images_of_one_id_are_refused_and_those_without_any_all_count():
    """Equal ones too; the streaming evaluator has the same records."""
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    (_, soft, gts), (_, other, _) = images(2)
    metric, stream = BenchmarkMetric(PROTOCOL), bb.StreamingEvaluator(PROTOCOL)
    for one in (metric, stream):
        one.update(np.stack([soft, soft]), [gts, gts])  # a batch
        one.update(other, gts)
    found, expected = metric.evaluation(), stream.compute()
    twice = BenchmarkMetric(PROTOCOL)
    for _ in "ab":
        twice.update([row[1] for row in images(2)], [row[2] for row in images(2)])
    with pytest.warns(match="each ground truth came 2 times"):
        twice.compute()
    assert found.image_ids == expected.image_ids
    assert found.boundary_score().ods.f == expected.boundary_score().ods.f
    with pytest.raises(DataError, match="im0"):
        filled([("im0", soft, gts), ("im0", other, gts)]).compute()


def test_the_loop_of_the_page_runs(capsys):
    page = Path(__file__).parents[2] / "docs" / "howto" / "torchmetrics.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    exec(compile(code, str(page), "exec"), {"__name__": "page"})
    assert "mean_iou" in capsys.readouterr().out


def labels(count, seed=0):
    rng = np.random.default_rng(seed)
    for number in range(count):
        truth = (rng.random((12, 17)) < 0.3).astype(np.int64)
        yield number, np.where(rng.random(truth.shape) < 0.1, 1 - truth, truth), truth


def test_several_metrics_with_classes_are_those_of_a_run():
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    names = ["segmentation", "calibration"]
    with pytest.raises(DataError, match="expected a run for each"):
        BenchmarkMetric(metrics=["segmentation", "boundary"])
    metric = BenchmarkMetric(metrics="segmentation", classes=["road", "car", "tram"])
    for number, pred, truth in labels(3):
        metric.update(torch.from_numpy(pred), torch.from_numpy(truth), image_id=number)
    run = bb.evaluate_items(labels(3), metrics="segmentation", classes=["road", "car", "tram"])
    logged, found = run.flat(per_class=True), metric.compute()
    assert {f"segmentation/{k}": v.item() for k, v in found.items() if v == v} == logged
    assert {"mean_iou", "road/iou", "tram/iou"} <= found.keys()
    assert found["tram/iou"].isnan()  # no image has one
    both = BenchmarkMetric(PROTOCOL, ["boundary", "calibration"])
    for name, soft, gts in images(3):
        both.update(soft, gts, image_id=name)
    assert {key.partition("/")[0] for key in both.compute()} == {"boundary", "calibration"}
    assert names[0] in repr(metric)


@pytest.mark.parametrize("one", [3, np.int64(3), "3"])
def test_a_number_of_any_kind_is_one_id(one):
    (_, soft, gts), (_, other, _) = images(2)
    metric, stream = filled([(torch.tensor(3), soft, gts)]), bb.StreamingEvaluator(PROTOCOL)
    metric.update(soft, gts, image_id=one)  # again, as a sampler repeats it
    assert metric.evaluation().image_ids == ["3"]
    with pytest.raises(DataError, match="3: two different images"):
        metric.update(other, gts, image_id=one)
    assert metric.evaluation().image_ids == ["3"]
    stream.update(soft, gts, image_id=torch.tensor(3))
    with pytest.raises(DataError, match="3: this image is already there"):
        stream.update(other, gts, image_id=one)
    batch = np.stack([soft, other]), [gts, gts], torch.tensor([3, 4])
    assert filled([]).forward(*batch).keys() == metric.compute().keys()


def test_forward_knows_the_images_before_and_reset_forgets_them():
    (_, soft, gts), (_, other, _) = images(2)
    metric = filled([("a", soft, gts)])
    alone = metric(other, gts, image_id="b")
    assert alone["ods"] == filled([("b", other, gts)]).compute()["ods"]
    assert metric.evaluation().image_ids == ["a", "b"]
    with pytest.raises(DataError, match="a: two different images"):
        metric(other, gts, image_id="a")
    metric.reset()
    metric.update(other, gts, image_id="a")
    assert len(metric.evaluation().records) == 1


def test_inverted_maps_are_warned_of_at_the_end_and_not_in_each_batch():
    rows = [(f"{k}", np.float32(1 - 0.9 * np.eye(20, k=k)), [np.eye(20, k=k)]) for k in range(3)]
    metric = filled(rows[1:])
    metric(rows[0][1], rows[0][2], image_id="0")
    with pytest.warns(InvertedWarning, match=r"3 of 3 maps are darker"):
        metric.evaluation()


def test_what_nobody_asked_for_is_not_there_and_what_is_undefined_is_nan():
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    metric = BenchmarkMetric("medical", "contour")
    empty, some = np.zeros((20, 24), bool), np.pad(np.ones((5, 6), bool), ((4, 11), (3, 15)))
    metric.update(empty, some, image_id="a")
    found = metric.compute()
    assert found["dice"] == 0
    assert found["hd95-pooled"].isnan()
    asked = {key for key, value in metric.evaluation().numbers().items() if value == value}
    assert {f"contour.{k}" for k, v in found.items() if v == v and "_" not in k} <= asked
    assert not any(key.startswith("small") for key in found)
    protocol = bb.Protocol.preset("masks").replace(options={"segmentation": {"unit": "instance"}})
    for preset, keys in (("masks", set()), (protocol, {"pq", "sq", "rq"})):
        labels = BenchmarkMetric(preset, "segmentation")
        labels.update(empty.astype(int), some.astype(int))
        found = labels.compute()
        assert {"pq", "sq", "rq"} & found.keys() == keys
        assert {key for key, value in found.items() if value.isnan()} == set()


def test_a_collection_keeps_the_metrics_of_two_protocols_apart():
    from torchmetrics import MetricCollection

    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    protocols = {"near": PROTOCOL, "far": PROTOCOL.replace(max_dist_px=6)}
    metrics = MetricCollection({name: BenchmarkMetric(p) for name, p in protocols.items()})
    (_, soft, gts), (_, other, _) = images(2)
    with pytest.warns(match="left out"):  # the states of both are still empty
        metrics.update(soft, [np.zeros_like(soft)], image_id="a")
    metrics.update(other, gts, image_id="b")
    found = metrics.compute()
    for name, protocol in protocols.items():
        alone = BenchmarkMetric(protocol)
        alone.update(other, gts, image_id="b")
        assert found[f"{name}_ods"] == alone.compute()["ods"]
    assert found["near_ods"] < found["far_ods"]
