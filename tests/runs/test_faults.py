"""Runs that are killed, interrupted or short of disk: nothing is lost, nothing is half written."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.runs.record_store import FOLDER, LOG, RecordStore
from tests.helpers.making import make_set
from tests.helpers.metric_cases import case_of
from tests.helpers.processes import TOLD, fields_of, gone, has_worked
from tests.helpers.runs import bits, counted, refused
from tests.helpers.simulated import simulated_run

ROOT = Path(__file__).parents[2]
IMAGES = 24

needs_signals = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
needs_proc = pytest.mark.skipif(not TOLD, reason="looks for workers in /proc")

# Workers take their time over an image: there is a midst of a run, on a busy machine too.
UNHURRIED = """
import sys

if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    import time

    import bsdsbench.runs.job as job

    def unhurried(each, evaluate=job._evaluate):
        time.sleep(0.05)
        return evaluate(each)

    job._evaluate = unhurried
"""
API = "import sys, bsdsbench as bb\npred, gt, out = sys.argv[1:]\n"
API += "bb.evaluate(pred, gt, workers=2, out=out)\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("many"), images=IMAGES)


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unhurried")
    (folder / "sitecustomize.py").write_text(UNHURRIED)
    return os.pathsep.join([str(folder), str(ROOT)])


def start(*words, **environment):
    # Where the tests run in the background Ctrl-C is ignored, and the child would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def evaluate(many, out):
    """Words of the command."""
    return ("-m", "bsdsbench", "evaluate", many[0], "--gt", many[1], "-o", out, "--workers", 2)


HEADS = re.compile(rb"[0-9a-f]{20} [0-9a-f]{32} +[0-9]+ [0-9a-f]{32}\n")


def stored(out):
    """How many records there are, looked at beside the writer; -1 if there is no place for them."""
    log = out / FOLDER / LOG
    return len(HEADS.findall(log.read_bytes())) if log.exists() else -1


def amid(begin, records, act):
    """A run in whose midst `act` fell, after so many records: its folder and process.

    On a busy machine a run may end before this process is asked again: then another one is tried.
    """
    for attempt in range(9):
        out, process = begin(attempt)
        while stored(out) < records and process.poll() is None:
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            act(process)
            if records <= stored(out) < IMAGES:
                return out, process
        process.communicate(timeout=120)
    raise AssertionError("every run had ended before")


@pytest.fixture
def run(many, unhurried, tmp_path):
    """Starts one, of which there is a midst."""

    def begin(number, program=None):
        out = tmp_path / f"out{number}"
        words = ("-c", program, *many, out) if program else evaluate(many, out)
        return out, start(*words, PYTHONPATH=unhurried)

    return begin


@pytest.fixture(scope="module")
def undisturbed(many, tmp_path_factory):
    return bits_of(many, tmp_path_factory.mktemp("undisturbed") / "out")


def bits_of(many, out):
    """What a run in this process leaves there, or one that goes on with what is there."""
    counted(*many, out=out)
    return bits(out)


@needs_signals
@pytest.mark.process
@pytest.mark.parametrize("records", [0, 8])
def test_a_killed_run_ends_with_the_same_bytes(many, undisturbed, run, records):
    out, process = amid(run, records, lambda process: (process.kill(), process.wait()))
    process.communicate()
    assert gone(process.pid), "a worker outlived its parent"
    assert bits_of(many, out) == undisturbed


def test_what_a_killed_writer_left_half_written_is_swept_away(many, undisturbed, tmp_path):
    out = tmp_path / "out"
    for folder in (out, out / FOLDER, out / "per_image"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".im011_ev1.txt.a1b2c3.part").write_bytes(b"0.1")
    assert bits_of(many, out) == undisturbed
    assert not list(out.rglob("*.part"))


@needs_proc
@pytest.mark.process
def test_a_killed_worker_loses_nothing(undisturbed, run):
    def kill(process):
        # The workers are forked from the server, so not our grandchildren only: take the last.
        os.kill(max(fields_of(process.pid), default=process.pid), signal.SIGKILL)

    out, process = amid(partial(run, program=API), 3, kill)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert bits(out) == undisturbed


@needs_signals
@pytest.mark.process
def test_ctrl_c_stops_soon_keeps_what_is_done_and_leaves_no_child(many, undisturbed, run):
    out, process = amid(run, 3, lambda p: os.killpg(p.pid, signal.SIGINT))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert gone(process.pid)
    assert stored(out) >= 3
    assert not (out / "result.json").exists()
    assert bits_of(many, out) == undisturbed


@needs_signals
@pytest.mark.parametrize(
    ("method", "moments"),
    [("forkserver", (0.05, 0.3, 0.6, 1.0)), ("spawn", (0.15, 0.4, 0.8, 1.3))],
)
@pytest.mark.process
def test_ctrl_c_at_any_moment_of_the_start_is_one_line(many, tmp_path, method, moments):
    """To the whole group, as a terminal sends it, or to the parent alone; imports included."""
    seen = []
    for k, moment in enumerate(moments):
        words = (*evaluate(many, tmp_path / f"out{k}"), "--quiet")
        process = start(*words, BSDSBENCH_START_METHOD=method)
        while process.poll() is None and not has_worked(process.pid, moment):
            time.sleep(0.02)
        if process.returncode is None:  # else it was quicker
            to_all = k % 2 == (method == "spawn")
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        assert gone(process.pid)
        seen.append(process.returncode)
        if process.returncode:
            assert (process.returncode, err.strip().count("\n")) == (130, 0), (k, err)
    assert 130 in seen


def test_a_full_disk_is_one_line_and_a_later_run_goes_on(tiny, tmp_path, monkeypatch):
    real, calls = RecordStore.add, []

    def full(self, record, data):
        calls.append(record)
        if len(calls) > 3:
            self._file.write(data[:50])
            raise OSError(28, "No space left on device", str(self.path))
        real(self, record, data)

    monkeypatch.setattr(RecordStore, "add", full)
    out = tmp_path / "out"
    refused("No space left", bb.evaluate, *tiny, workers=1, out=out, error=OSError)
    assert not (out / "result.json").exists()
    assert stored(out) == 3
    monkeypatch.undo()
    run = bb.evaluate(*tiny, workers=1, out=out)
    assert len(json.loads((out / "result.json").read_text("utf-8"))["images"]) == len(run.records)


@pytest.mark.parametrize(
    ("shard", "words"),
    [
        ("1/300000000", "shard '1/300000000', expected I/N as --shard gives it"),
        (3, "shard 3, expected I/N"),
        ([1, 2], r"shard \[1, 2\], expected I/N"),
        ({"a": 1}, "shard .*, expected I/N"),
        ("2/1", "shard '2/1', expected I/N"),
        ("x", "shard 'x', expected I/N"),
        ("1/9999999", "shards 2/9999999, .* 11/9999999 and 9999988 more are not there"),
    ],
)
def test_a_shard_that_a_file_tells_is_one_of_some(shard, words):
    run = simulated_run("a", 3)
    with pytest.raises(bb.DataError, match=words) as caught:
        bb.merge([replace(run, provenance={"shard": shard})])
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["semantic", "saliency"])
def test_a_killed_run_of_classes_or_masks_goes_on_to_the_same_bytes(name, tmp_path):
    """What is on the disk after its first image is what a process leaves that is killed then."""
    case = case_of(name)
    folders = case.write(tmp_path)
    killed, whole = tmp_path / "killed", tmp_path / "whole"

    def keep(done, total, image_id):
        if done == 1:
            shutil.copytree(whole, killed)

    how = (*folders, case.run.protocol, name)
    counted(*how, out=whole, progress=keep)
    assert stored(killed) == 1
    assert not (killed / "result.json").exists()
    run = counted(*how, out=killed)
    assert bits(killed) == bits(whole)
    assert run.scores() == bb.Evaluation.load(killed).scores() == case.run.scores()
