"""What set a run is of, and the line that says how it was made."""

import json
from dataclasses import replace

import pytest

import bsdsbench as bb
from bsdsbench.comparison.published import why_not_beside
from bsdsbench.loaders.sets.identity import folder_fingerprints, set_fingerprint
from bsdsbench.protocol.signature import Signature
from bsdsbench.results.evaluation import Evaluation
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def five(bsds500_bench, tmp_path_factory):
    """The official self-test, evaluated with few thresholds."""
    out = tmp_path_factory.mktemp("five")
    protocol = bb.Protocol.preset("bsds500").replace(thresholds=3)
    folders = bsds500_bench / "png", bsds500_bench / "groundTruth"
    return bb.evaluate(*folders, protocol, out=out, executor="thread"), out, folders


def test_a_run_knows_its_set(five):
    run, out, (_, gt) = five
    assert run.identity.describe() == "a part of bsds500-test, 5 of 200 images"
    marks = folder_fingerprints(gt, run.protocol)
    assert run.identity.fingerprint == set_fingerprint(marks)
    assert {r.image_id: r.truth for r in run.records} == marks
    told = json.loads((out / "result.json").read_text("utf-8"))
    assert told["set"] == {
        "set": "bsds500-test",
        "n_images": 5,
        "of": 200,
        "fingerprint": run.identity.fingerprint,
    }
    assert told["signature"] == str(run.signature)


def test_the_signature_is_read_back(five):
    run, out, _ = five
    assert str(run.signature).split("|")[1:6] == [
        "bsds500-test:5/200",
        f"gt:{run.identity.fingerprint[:8]}",
        "ann:all",
        "pred:soft8",
        "thr:3",
    ]
    assert Signature.parse(str(run.signature)).protocol == run.protocol
    assert str(Evaluation.load(out).signature) == str(run.signature)


def test_shards_have_the_identity_of_the_whole(five, tmp_path):
    run, _, folders = five
    parts = [
        bb.evaluate(*folders, run.protocol, shard=(k, 2), executor="thread", out=tmp_path / str(k))
        for k in (1, 2)
    ]
    assert [part.identity.n_images for part in parts] == [3, 2]
    assert str(bb.merge(parts).signature) == str(run.signature)


def test_unknown_where_a_record_does_not_tell():
    run = simulated_run("a", 4)
    assert run.identity is None
    assert str(run.signature).split("|")[1:5] == ["set:4", "gt:?", "ann:all", "pred:?"]
    assert replace(run, records=()).identity is None
    some = [replace(r, truth="0" * 16) for r in run.records]
    assert replace(run, records=some).identity.describe() == "an unknown set, 4 images"


def test_published_results_stand_beside_the_same_set_only(five):
    run, _, _ = five
    assert "protocol bsds500*" in why_not_beside(run, "bsds500-test/boundary")
    whole = replace(run, protocol=bb.Protocol.preset("bsds500"))
    assert why_not_beside(whole, "bsds500-test/boundary") == (
        "a part of bsds500-test, 5 of 200 images, but published results are of bsds500-test"
    )
