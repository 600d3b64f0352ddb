"""The torchmetrics adapter against StreamingEvaluator; two gathered ranks against one."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError
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


def test_images_of_one_id_are_refused_and_those_without_any_all_count():
    """Equal ones too; the streaming evaluator has the same records."""
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    (_, soft, gts), (_, other, _) = images(2)
    metric, stream = BenchmarkMetric(PROTOCOL), bb.StreamingEvaluator(PROTOCOL)
    for one in (metric, stream):
        one.update(np.stack([soft, soft]), [gts, gts])  # a batch
        one.update(other, gts)
    found, expected = metric.evaluation(), stream.compute()
    assert found.image_ids == expected.image_ids
    assert found.boundary_score().ods.f == expected.boundary_score().ods.f
    with pytest.raises(DataError, match="im0"):
        filled([("im0", soft, gts), ("im0", other, gts)]).compute()


def test_the_loop_of_the_page_runs(capsys):
    page = Path(__file__).parents[2] / "docs" / "howto" / "torchmetrics.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    exec(compile(code, str(page), "exec"), {"__name__": "page"})
    assert "mean_iou" in capsys.readouterr().out
