"""Runs that are killed, interrupted or short of disk: nothing is lost, nothing is half written."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.runs.record_store import FOLDER, LOG, RecordStore
from tests.helpers.making import make_set
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import bits, refused
from tests.helpers.simulated import simulated_run

ROOT = Path(__file__).parents[2]
IMAGES = 60

needs_signals = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for workers in /proc"
)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("many"), images=IMAGES, shape=(90, 120), annotators=3)


def start(many, out, *more, verb="evaluate", **environment):
    pred, gt = many
    command = [sys.executable, "-m", "bsdsbench", verb, str(pred), "--gt", str(gt)]
    # Where the tests run in the background Ctrl-C is ignored, and the child would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [*command, "-o", str(out), "--workers", "2", *more],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def finish(process, seconds=120):
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return out


HEADS = re.compile(rb"[0-9a-f]{20} [0-9a-f]{32} +[0-9]+ [0-9a-f]{32}\n")


def stored(out):
    """How many records there are, looked at beside the writer."""
    log = out / FOLDER / LOG
    return len(HEADS.findall(log.read_bytes())) if log.exists() else 0


def processes_of(session):
    """The living processes of a session (Linux: read from /proc)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def gone(session, seconds):
    limit = time.monotonic() + seconds
    while processes_of(session) and time.monotonic() < limit:
        time.sleep(0.05)
    return not processes_of(session)


def amid(many, root, records, act):
    """A run in whose midst `act` fell, after so many records: its folder and process.

    On a busy machine a run may end before this process is asked again: then another one is tried.
    """
    for attempt in range(9):
        out = root / f"amid{attempt}"
        process = start(many, out)
        while stored(out) < records and process.poll() is None:
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            act(process)
            if 0 < stored(out) < IMAGES:
                return out, process
        process.communicate(timeout=120)
    raise AssertionError("every run had ended before")


@pytest.fixture(scope="module")
def undisturbed(many, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    started = time.monotonic()
    finish(start(many, out))
    return bits(out), time.monotonic() - started


@needs_signals
@pytest.mark.process
def test_a_run_killed_at_two_moments_ends_with_the_same_bytes(many, undisturbed, tmp_path):
    at_once = start(many, tmp_path / "out")
    at_once.kill()
    for out, process in (
        (tmp_path / "out", at_once),
        amid(many, tmp_path, 25, lambda process: (process.kill(), process.wait())),
    ):
        process.communicate()
        assert gone(process.pid, 60), "a worker outlived its parent"
        kept = stored(out)
        finish(start(many, out))
        assert bits(out) == undisturbed[0], f"killed with {kept} records kept"


@pytest.mark.process
def test_what_a_killed_writer_left_half_written_is_swept_away(many, undisturbed, tmp_path):
    out = tmp_path / "out"
    for folder in (out, out / FOLDER, out / "per_image"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".im011_ev1.txt.a1b2c3.part").write_bytes(b"0.1")
    finish(start(many, out))
    assert bits(out) == undisturbed[0]
    assert not list(out.rglob("*.part"))


@needs_proc
@pytest.mark.process
def test_a_killed_worker_loses_nothing(many, undisturbed, tmp_path):
    def kill(process):
        # The workers are forked from the server, so not our grandchildren only: take the last.
        os.kill(max(processes_of(process.pid), default=process.pid), signal.SIGKILL)

    out, process = amid(many, tmp_path, 5, kill)
    finish(process)
    assert bits(out) == undisturbed[0]


@needs_signals
@pytest.mark.process
def test_ctrl_c_stops_soon_keeps_what_is_done_and_leaves_no_child(many, undisturbed, tmp_path):
    out, process = amid(many, tmp_path, 3, lambda p: os.killpg(p.pid, signal.SIGINT))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert gone(process.pid, 60)
    assert stored(out) >= 3
    assert not (out / "result.json").exists()
    finish(start(many, out))
    assert bits(out) == undisturbed[0]


@needs_signals
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("to_all", [True, False])
@pytest.mark.process
def test_ctrl_c_at_any_moment_of_the_start_is_one_line(many, tmp_path, method, to_all):
    """To the whole group, as a terminal sends it, or to the parent alone; imports included."""
    seen = []
    for k in range(4):
        process = start(many, tmp_path / f"out{k}", "--quiet", BSDSBENCH_START_METHOD=method)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.3 + 0.5 * k)
        if process.returncode is None:  # else it was quicker
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        assert gone(process.pid, 60)
        seen.append(process.returncode)
        if process.returncode:
            assert (process.returncode, err.strip().count("\n")) == (130, 0), (k, err)
    assert 130 in seen


@pytest.mark.process
def test_spawned_workers_give_the_same_bytes(many, undisturbed, tmp_path):
    out = tmp_path / "out"
    finish(start(many, out, BSDSBENCH_START_METHOD="spawn"))
    assert bits(out) == undisturbed[0]


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


@pytest.mark.process
@pytest.mark.parametrize("name", ["semantic", "saliency"])
def test_a_killed_run_of_classes_or_masks_goes_on_to_the_same_bytes(name, tmp_path):
    """Killed after its first image, without a chance to tidy up."""
    case = case_of(name)
    folders = case.write(tmp_path)
    (tmp_path / "set.toml").write_text(case.run.protocol.to_toml(), "utf-8")
    how = {"metrics": name, "workers": 1, "executor": "thread"}
    script = (
        "import os, bsdsbench as bb\n"
        f"bb.evaluate({str(folders[0])!r}, {str(folders[1])!r}, {str(tmp_path / 'set.toml')!r},\n"
        f"            out={str(tmp_path / 'out')!r}, progress=lambda *_: os._exit(9), **{how})\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 9
    assert not (tmp_path / "out" / "result.json").exists()
    for out in ("out", "whole"):
        bb.evaluate(*folders, tmp_path / "set.toml", out=tmp_path / out, **how)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")
    assert bb.Evaluation.load(tmp_path / "out").scores() == case.run.scores()
