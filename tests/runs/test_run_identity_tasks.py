"""Tasks: those that ship, those of users, what a run is of, and ground truth that is not it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.sets.identity import folder_fingerprints, set_fingerprint, shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.sources import check_truth
from tests.helpers.runs import call, counted, refused

DATASETS = Path(__file__).parents[2] / "datasets"


@pytest.fixture
def tiny(tiny, tmp_path):
    """With one annotator each: ground truth alone is not grouped by a guess."""
    (tmp_path / "flat").mkdir()
    for path in tiny[1].glob("*/1.png"):
        path.rename(tmp_path / "flat" / f"{path.parent.name}.png")
    return tiny[0], tmp_path / "flat"


@pytest.fixture
def own(tiny, tmp_path):
    """A task of one's own in a file, of the six made images."""
    images = folder_fingerprints(tiny[1], Protocol.preset("bsds500"))
    path = tmp_path / "own.toml"
    path.write_text(
        'name = "tiny/boundary"\nprotocol = "bsds500"\nimages = 6\n'
        f'fingerprint = "{set_fingerprint(images)}"\n'
    )
    return path


def test_every_task_that_ships_can_be_evaluated():
    known = shipped_sets()
    for name, task in tasks().items():
        metric, protocol = registry.get(task.metric), Protocol.preset(task.protocol)
        metric.options_of(protocol)
        assert name == task.name
        assert task.needs
        assert (DATASETS / f"{task.page}.md").is_file()
        if task.fingerprint:
            assert set_fingerprint(known[task.set]) == task.fingerprint
            assert len(known[task.set]) == task.images
    listed = call("protocols")
    assert all(f"\n  {name} v1" in listed for name in tasks())


def test_a_run_carries_its_task(tiny, own, tmp_path):
    run = counted(*tiny, task=own, out=tmp_path / "out")
    assert [t.name for t in run.tasks] == ["tiny/boundary"]
    assert json.loads((tmp_path / "out" / "result.json").read_text())["tasks"] == ["tiny/boundary"]
    again = bb.Evaluation.load(tmp_path / "out")
    assert again.tasks == run.tasks
    assert counted(*tiny).tasks == ()  # nobody knows the set
    part = replace(again, records=again.records[1:])
    assert part.tasks == ()
    other = replace(again, protocol=again.protocol.replace(max_dist=0.011))
    assert other.tasks == ()
    told = call("evaluate", tiny[0], "--gt", tiny[1], "--task", own, "--quiet", "--workers", 1)
    assert "task     tiny/boundary" in told


def test_other_ground_truth_is_refused(tiny, own, tmp_path):
    first = ground_truths(tiny[1])[0].gt_paths[-1]
    kept = first.read_bytes()
    refused(
        "an unknown set, 6 images, expected bsds500-test",
        *(counted, *tiny), task="bsds500-test/boundary",
    )  # fmt: skip
    refused(
        "6 images, expected the 654 of nyudv2-test", counted, *tiny, task="nyudv2-test/boundary"
    )
    first.unlink()
    refused("expected tiny", counted, *tiny, task=own)
    first.write_bytes(kept)
    wrong = {"protocol is": {"protocol": "nyudv2"}, "metric is": {"metrics": "region"}}
    for words, change in {**wrong, "none to be skipped": {"missing": "skip"}}.items():
        refused(words, counted, *tiny, task=own, **change)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "a"\nprotocol = "bsds500"', "expected SET/METRIC"),
        ('name = "a/b"\nprotocol = "bsds"', "expected a preset"),
        ('name = "a/b"\nprotocol = "bsds500"\nfingerprint = "x"', "expected 16 hex digits"),
        ('name = "a/b"\nprotocol = "bsds500"\nwhere = "x"', "field 'where'"),
        ("name =", "own.toml"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, words):
    (tmp_path / "own.toml").write_text(text)
    refused(words, Task.load, tmp_path / "own.toml")


def test_a_claim_does_not_stand_against_the_ground_truth(tiny):
    """A run that says a fingerprinted task without having its set is of none."""
    run = counted(*tiny)
    claim = tasks()["bsds500-test/boundary"].to_mapping()
    assert replace(run, provenance=Provenance.from_mapping({"task": claim})).tasks == ()
    for changed in ({"fingerprint": ""}, {"fingerprint": "0" * 16}):
        claim |= {"images": len(run.records), **changed}
        values = {key: value for key, value in claim.items() if value}
        assert replace(run, provenance=Provenance.from_mapping({"task": values})).tasks == ()
    nyud = {**tasks()["nyudv2-test/boundary"].to_mapping(), "images": 6}
    said = replace(
        run, protocol=Protocol.preset("nyudv2"), provenance=Provenance.from_mapping({"task": nyud})
    )
    assert [t.name for t in said.tasks] == ["nyudv2-test/boundary"]
    for wrong in ("text", 3, {"name": "x"}, {"name": "a/b", "protocol": "bsds500", "more": 1}):
        assert replace(run, provenance=Provenance.from_mapping({"task": wrong})).tasks == ()


def test_the_files_of_a_set_are_its_images(tmp_path):
    for k in range(1, 51):
        (tmp_path / f"RGB_{k:03}.png").touch()
    task = Task.load("biped-v1-test/boundary")
    check_truth(task, tmp_path, Protocol.preset(task.protocol))
    (tmp_path / "RGB_050.png").unlink()
    refused("49 images", check_truth, task, tmp_path, Protocol.preset(task.protocol))


def test_a_split_by_its_ids(tiny, tmp_path):
    """Of a larger folder only the listed images are evaluated, and the run is of the task."""
    task = Task("part/boundary", "bsds500", ids=["im001", "im004"])
    run = counted(*tiny, task=task)
    assert run.image_ids == ["im001", "im004"]
    assert run.tasks == (task,)
    assert replace(run, records=run.records[:1]).tasks == ()
    lost = Task("part/boundary", "bsds500", ids=["im001", "im009"])
    refused("no ground truth for: im009", counted, *tiny, task=lost)
    splits = [set(t.ids) for t in tasks().values() if t.set.startswith("mdbd-edges-pidinet")]
    assert [len(ids) for ids in splits] == [20, 20, 20]
    assert len(set.union(*splits)) > 50
