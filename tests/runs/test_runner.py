"""Runs: the same bits however they are carried out, faults that name their file, resume."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.files.errors import MergeError, PairingError, RunLockedError
from bsdsbench.runs.record_store import run_locked
from tests.helpers.runs import bits, refused

TEN = bb.Protocol.preset("bsds500").replace(thresholds=10)


@pytest.mark.process
def test_any_worker_number_and_executor_give_the_same_bits(tiny, tmp_path):
    pred, gt = tiny
    options = {"one": {"workers": 1}, "two": {"workers": 2}, "three": {"workers": 3}}
    options["threads"] = {"workers": 2, "executor": "thread"}
    with ThreadPoolExecutor(2) as pool:
        options["own"] = {"executor": pool}
        for name, how in options.items():
            run = bb.evaluate(
                pred, gt, TEN, metrics=("boundary", "pixel"), out=tmp_path / name, **how
            )
            assert len(run.records) == 6
    first = bits(tmp_path / "one")
    assert {"result.json", "counts.npz", "eval_bdry.txt", "per_image/im000_ev1.txt"} <= set(first)
    for name in options:
        assert bits(tmp_path / name) == first, name


def test_saved_and_loaded_are_equal(tiny, tmp_path):
    run = bb.evaluate(*tiny, TEN, workers=1, out=tmp_path / "out")
    again = bb.Evaluation.load(tmp_path / "out")
    assert again.equals(run)
    assert again.scores() == run.scores()
    found = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert found["schema"] == "bsdsbench.result/1"
    assert set(found["scores"]["boundary"]) == {
        *("ods", "ois", "ap", "r50", "edges_r50", "n_images")
    }
    assert set(found["scores"]["boundary"]["ods"]) == {"threshold", "recall", "precision", "f"}


def test_an_unchanged_image_is_not_evaluated_again(tiny, tmp_path, monkeypatch):
    pred, gt = tiny
    out = tmp_path / "out"
    bb.evaluate(pred, gt, TEN, workers=1, out=out)
    iio.imwrite(pred / "im002.png", np.full((40, 52), 255, np.uint8))
    seen = []
    real = bb.boundary.boundary_counts
    monkeypatch.setattr(
        "bsdsbench.metrics.boundary.boundary_counts",
        lambda p, *rest: seen.append(p.image_id) or real(p, *rest),
    )
    again = bb.evaluate(pred, gt, TEN, workers=1, out=out)
    assert seen == ["im002"]
    assert again.equals(bb.evaluate(pred, gt, TEN, workers=1))
    seen.clear()
    bb.evaluate(pred, gt, TEN, workers=1, out=out, fresh=True)
    assert len(seen) == 6
    seen.clear()
    bb.evaluate(pred, gt, TEN.replace(max_dist=0.02), workers=1, out=out)
    assert len(seen) == 6


def test_there_may_be_more_shards_than_images(tiny):
    shards = [bb.evaluate(*tiny, TEN, workers=1, shard=(i, 9)) for i in range(1, 10)]
    assert [len(each.records) for each in shards].count(0) > 0
    assert bb.merge(shards).equals(bb.evaluate(*tiny, TEN, workers=1))


def test_shards_that_do_not_belong_together_are_refused(tiny, tmp_path):
    one, two = (bb.evaluate(*tiny, TEN, workers=1, shard=(i, 2)) for i in (1, 2))
    refused("shard 1/2 again", bb.merge, [one, two, one], error=MergeError)
    refused("shards 2/2 are not there", bb.merge, [one], error=MergeError)
    with pytest.raises(MergeError, match="not a shard"):
        bb.merge([one, bb.evaluate(*tiny, TEN, workers=1)])
    other = bb.evaluate(*tiny, TEN.replace(thin=False), workers=1, shard=(2, 2))
    refused("another protocol", bb.merge, [one, other], error=MergeError)
    third = bb.evaluate(*tiny, TEN, workers=1, shard=(3, 3))
    refused("3 shards, expected 2", bb.merge, [one, third], error=MergeError)


@pytest.mark.process
def test_every_bad_file_is_named_and_nothing_is_written(tiny, tmp_path):
    pred, gt = tiny
    (pred / "im001.png").write_bytes((pred / "im001.png").read_bytes()[:60])
    iio.imwrite(pred / "im003.png", np.zeros((52, 40), np.uint8))
    (pred / "im004.png").unlink()
    np.save(pred / "im004.npy", np.full((40, 52), np.nan))
    (pred / "im005.png").unlink()
    np.save(pred / "im005.npy", np.full((40, 52), 254.0))
    out = tmp_path / "out"
    with pytest.raises(bb.DataError) as caught:
        bb.evaluate(pred, gt, TEN, workers=2, out=out)
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    for name in ("im001.png", "im003.png", "im004.npy", "im005.npy"):
        assert sum(name in line for line in caught.value.problems) == 1
    assert "transposed" in text
    assert [p.name for p in out.iterdir() if not p.name.startswith(".")] == []
    run = bb.evaluate(pred, gt, TEN, workers=2, out=out, on_error="skip")
    assert [r.image_id for r in run.records] == ["im000", "im002"]
    assert sorted(run.failed) == ["im001", "im003", "im004", "im005"]


def test_missing_predictions(tiny):
    pred, gt = tiny
    (pred / "im002.png").unlink()
    refused("im002", bb.evaluate, pred, gt, TEN, workers=1, error=PairingError)
    skipped = bb.evaluate(pred, gt, TEN, workers=1, missing="skip")
    assert len(skipped.records) == 5
    zero = bb.evaluate(pred, gt, TEN, workers=1, missing="zero")
    assert zero.records[2].counts["boundary"].total_pred.tolist() == [0] * 10
    assert zero.records[2].counts["boundary"].total_gt[0] > 0


def test_the_second_run_on_one_folder_stops(tiny, tmp_path):
    who = f"another run is writing there .process {os.getpid()} on "
    with run_locked(tmp_path / "out"), ThreadPoolExecutor(1) as pool:
        other = pool.submit(bb.evaluate, *tiny, TEN, workers=1, out=tmp_path / "out")
        refused(who, other.result, error=RunLockedError)


def test_wrong_words_are_reported_together(tiny):
    with pytest.raises(bb.DataError) as caught:
        bb.evaluate(*tiny, TEN, metrics=("edges",), missing="maybe", shard=(3, 2))
    assert len(caught.value.problems) == 3
    refused("executor 'cloud'", bb.evaluate, *tiny, TEN, executor="cloud")


def test_a_file_that_changes_while_it_is_read(tiny, monkeypatch):
    pred, gt = tiny

    real = bb.boundary.boundary_counts

    def meddling(p, *rest):
        if p.image_id == "im000":
            iio.imwrite(pred / "im000.png", np.zeros((40, 52), np.uint8))
        return real(p, *rest)

    monkeypatch.setattr("bsdsbench.metrics.boundary.boundary_counts", meddling)
    refused("im000: a file changed", bb.evaluate, pred, gt, TEN, workers=1)


def test_kinds_and_ground_truths_that_do_not_go_together(tiny):
    with pytest.raises(bb.DataError, match="metric saliency: takes predictions of kind soft"):
        bb.evaluate(*tiny, metrics="saliency", pred_kind="labels")
    with pytest.raises(bb.DataError, match="boundary, saliency: read different ground truth"):
        bb.evaluate(*tiny, metrics=("boundary", "saliency"))
