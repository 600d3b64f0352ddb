"""Only a run of this user on this machine has the folders it names read unasked."""

import shutil

import pytest

import bsdsbench as bb
from bsdsbench.report import write_report
from bsdsbench.runs.run_identity import MARK
from bsdsbench.runs.sources import find_sources
from tests.helpers.making import make_set
from tests.helpers.runs import refused

FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture
def out(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    bb.evaluate(*tiny, FIVE, workers=1, out=tmp_path / "out")
    return tmp_path / "out"


def test_ones_own_run_has_its_files_read(out, tiny):
    run = bb.Evaluation.load(out)
    assert run.own
    assert len(find_sources(run).pairs) == 6
    assert (out.parent / "state" / "bsdsbench" / "key").stat().st_mode & 0o077 == 0


def test_the_run_of_another_user_is_read_but_not_the_folders_it_names(
    out, tiny, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other user"))
    run = bb.Evaluation.load(out)
    assert run.boundary_score().ods.f > 0
    refused("are not read unless they are given", find_sources, run)
    refused("are not read unless they are given", find_sources, run, pred_dir=tiny[0])
    assert len(find_sources(run, *tiny).pairs) == 6
    # made into one's own by no way of saving it again
    run.save(tmp_path / "again")
    assert not bb.Evaluation.load(tmp_path / "again").own
    bb.evaluate(*tiny, FIVE, workers=1, out=tmp_path / "mine")
    shutil.copy(tmp_path / "mine" / MARK, out / MARK)
    assert bb.Evaluation.load(tmp_path / "mine").own
    (out / MARK).write_text("0" * 64)
    assert not bb.Evaluation.load(out).own


def test_folders_are_found_from_anywhere_and_after_all_was_moved(tmp_path, monkeypatch):
    root = tmp_path / "work"
    make_set(root, images=2)
    monkeypatch.chdir(root)
    run = bb.evaluate("pred", "gt", FIVE, workers=1, out="runs/mine")
    assert run.provenance["pred"] == "pred"
    text = (root / "runs" / "mine" / "result.json").read_text("utf-8")
    assert str(tmp_path) not in text
    monkeypatch.chdir(tmp_path)
    assert len(find_sources(bb.Evaluation.load("work/runs/mine")).pairs) == 2
    again = bb.Evaluation.load("work/runs/mine").save(tmp_path / "copy")
    root.rename(tmp_path / "elsewhere")
    moved = bb.Evaluation.load("elsewhere/runs/mine")
    assert len(find_sources(moved).pairs) == 2
    notes = write_report([moved], "r.html", n_boot=10)
    assert not notes
    refused("work/pred|pred", find_sources, bb.Evaluation.load(again))


def test_without_a_home_nothing_is_signed_and_nothing_fails(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "no folder"))
    bb.evaluate(*tiny, FIVE, workers=1, out=tmp_path / "out")
    assert not (tmp_path / "out" / MARK).exists()
    assert not bb.Evaluation.load(tmp_path / "out").own


def test_a_fault_of_ours_costs_one_image(tiny, monkeypatch):
    import bsdsbench.runs.job as job

    real = job._evaluate

    def faulty(each):
        if each.pair.image_id == "im003":
            raise ZeroDivisionError("by zero")
        return real(each)

    monkeypatch.setattr(job, "_evaluate", faulty)
    run = bb.evaluate(*tiny, FIVE, workers=1, on_error="skip")
    assert list(run.failed) == ["im003"]
    words = "im003: unexpected ZeroDivisionError: by zero (a bug in bsdsbench, in test_sources.py"
    assert run.failed["im003"].startswith(words)
