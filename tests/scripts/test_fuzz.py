"""Short runs of the programs in scripts/fuzz; the long ones are heavy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUZZ = ROOT / "scripts" / "fuzz"


def _run(kind, *options):
    found = subprocess.run(
        [sys.executable, str(FUZZ), kind, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.endswith("0 failures\n")
    return found.stdout


@pytest.mark.process
def test_hostile_files_and_folders():
    found = _run("hostile", "--count", "130", "--seed", "7")
    for kind in ("ucm2.mat", "claim: hdf5", "result: counts.npz"):
        assert f"\n{kind} " in found
    assert "refused" in found


@pytest.mark.heavy
def test_many_hostile_files_and_folders():
    _run("hostile", "--count", "50000", "--seed", "8")


@pytest.mark.process
def test_one_large_file():
    assert "MiB" in _run("large", "--only", "gray.jpg")


@pytest.mark.heavy
def test_all_large_files():
    _run("large")


@pytest.fixture
def hostile(monkeypatch):
    monkeypatch.syspath_prepend(FUZZ)
    import hostile  # type: ignore[import-not-found]

    return hostile


@pytest.mark.process
def test_a_crash_and_a_hang_are_seen(hostile, monkeypatch):
    """The harness itself: a child that dies or stops is a failure of the input it was at."""
    child = (
        "import json,sys,time,os\n"
        "print(json.dumps({'begin': 5, 'name': 'x.png'}), flush=True)\n"
        "os._exit(3) if sys.argv[-1] == 'crash' else time.sleep(60)\n"
    )
    real = hostile.subprocess.Popen
    monkeypatch.setattr(hostile, "SECONDS_TO_HANG", 0.5)
    for way, words in (("crash", "crash, exit status 3"), ("hang", "hang")):
        command = [sys.executable, "-c", child, way]
        monkeypatch.setattr(
            hostile.subprocess, "Popen", lambda _, command=command, **kw: real(command, **kw)
        )
        tally = hostile.Tally()
        assert hostile.one_child(5, 9, 0, tally) == 6
        assert tally.failures == [(5, "x.png", words)]
