"""Metrics other than the first: killed, in shards, on Dask, compared and gated like it."""

from __future__ import annotations

import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.metrics.class_maps import SemanticOptions
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.store import FOLDER
from tests.runs.test_faults import finish, needs_signals, start, stored

CLASSES = Protocol(
    name="halves",
    thresholds=9,
    max_dist_px=2,
    options={"semantic": SemanticOptions(classes=("left", "right"), first=1)},
)
IMAGES = 24


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """metric -> (predictions, ground truth, protocol file or None)."""
    root = tmp_path_factory.mktemp("sets")
    (root / "halves.toml").write_text(CLASSES.to_toml())
    for name in ("labels", "maps", "masks", "soft", "super", "segs"):
        (root / name).mkdir()
    for k in range(IMAGES):
        rng = np.random.default_rng(k)
        x = np.mgrid[:90, :120][1]
        edge = int(rng.integers(40, 80))
        labels = np.where(x < edge, 1, 2).astype(np.uint8)
        near = np.exp(-(((x - edge - rng.integers(0, 3)) / 2) ** 2))
        maps = np.clip(np.stack([near, near]) + 0.2 * rng.random((2, 90, 120)), 0, 1)
        np.save(root / "maps" / f"i{k:02d}.npy", maps.astype(np.float32))
        iio.imwrite(root / "labels" / f"i{k:02d}.png", labels)
        mask = (labels == 1).astype(np.uint8) * 255
        iio.imwrite(root / "masks" / f"i{k:02d}.png", mask)
        soft = np.clip(mask * 0.7 + 70 * rng.random(mask.shape), 0, 255)
        iio.imwrite(root / "soft" / f"i{k:02d}.png", soft.astype(np.uint8))
    return {
        "semantic": (root / "maps", root / "labels", root / "halves.toml"),
        "saliency": (root / "soft", root / "masks", None),
    }


def verb(metric, sets):
    pred, gt, protocol = sets[metric]
    more = ["--protocol", str(protocol)] if protocol else []
    return (pred, gt), ("--metrics", metric, "--quiet", *more)


def evaluated(metric, sets, **options):
    pred, gt, protocol = sets[metric]
    proto = Protocol.load(protocol) if protocol else None
    return bb.evaluate(pred, gt, proto, metrics=metric, **options)


def contents(folder: Path):
    return {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in ("timing.json", ".lock") and FOLDER not in p.parts
    }


@pytest.fixture(scope="module", params=["semantic", "saliency"])
def whole(request, sets, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    run = evaluated(request.param, sets, out=out, workers=1)
    return request.param, run, contents(out)


@needs_signals
def test_killed_and_resumed(whole, sets, tmp_path):
    metric, _, expected = whole
    folders, options = verb(metric, sets)
    out = tmp_path / "out"
    process = start(folders, out, *options)
    deadline = time.monotonic() + 60
    while stored(out) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert stored(out) > 0
    finish(start(folders, out, *options))
    assert contents(out) == expected


def test_three_shards_merged(whole, sets, tmp_path):
    metric, _, expected = whole
    parts = [evaluated(metric, sets, shard=(i, 3), workers=1) for i in (1, 2, 3)]
    bb.merge(parts).save(tmp_path)
    assert contents(tmp_path) == expected


def test_on_dask(whole, sets, tmp_path):
    distributed = pytest.importorskip("distributed")
    metric, _, expected = whole
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        evaluated(metric, sets, executor=client.get_executor(), out=tmp_path)
    assert contents(tmp_path) == expected


def test_compare_and_check(whole, tmp_path):
    metric, run, _ = whole
    again = bb.Evaluation(run.protocol, "again", run.records)
    found = bb.compare([run, again], n_boot=100)
    assert all(s.startswith(f"{metric}.") for s in found.scores)
    scores = run.score(metric).to_mapping()
    for score in found.scores:
        value = found.interval_of(run.name, score).value
        assert value == pytest.approx(scores[score.partition(".")[2]], rel=1e-12)
    assert all(d.p == 1 for d in found.differences)
    Baseline.of(run).save(tmp_path / "b.json")
    assert check(run, tmp_path / "b.json", statistical=True, n_boot=100).passed


def test_kinds_and_ground_truths_that_do_not_go_together(sets):
    pred, gt, _ = sets["saliency"]
    with pytest.raises(bb.DataError, match="metric saliency: takes predictions of kind soft"):
        bb.evaluate(pred, gt, metrics="saliency", pred_kind="labels")
    with pytest.raises(bb.DataError, match="boundary, saliency: read different ground truth"):
        bb.evaluate(pred, gt, metrics=("boundary", "saliency"))
    with pytest.raises(bb.DataError, match="metrics 'bundary': expected one of boundary, region"):
        bb.evaluate(pred, gt, metrics="bundary")
