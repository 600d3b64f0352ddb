"""Short runs of scripts/fuzz; the long ones are heavy."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUZZ = ROOT / "scripts" / "fuzz"


def fuzzed(kind, *options):
    found = subprocess.run(
        [sys.executable, FUZZ, kind, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.endswith("0 failures\n")
    return found.stdout


@pytest.mark.process
@pytest.mark.slow
def test_hostile_files_and_results():
    found = fuzzed("hostile", "--count", "120", "--seed", "14")
    for kind in ("ucm2.mat", "claim: hdf5", "result: counts.npz", "result: records.db"):
        assert f"\n{kind} " in found


@pytest.mark.heavy
def test_many_hostile_files_and_results():
    fuzzed("hostile", "--count", "50000", "--seed", "8")


@pytest.mark.slow
@pytest.mark.process
def test_one_large_file():
    assert "gray.jpg " in fuzzed(
        "large", "--only", "gray.jpg"
    )  # loaded or refused, within the bound


@pytest.mark.heavy
def test_all_large_files():
    fuzzed("large")


PLANTED = {
    "crash": (lambda path: os._exit(3), "exit status 3"),
    "hang": (lambda path: time.sleep(60), "exit status -9"),
    "word": (lambda path: os.write(1, b"said"), "wrote to the screen"),
    "fault": (lambda path: 1 // 0, "ZeroDivisionError"),
    "other": (lambda path: 2, "changed in silence"),
}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_seen_and_the_next_input_tried(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FUZZ)
    import targets

    program = {"__name__": "fuzz"}
    exec(compile((FUZZ / "__main__.py").read_text("utf-8"), "fuzz", "exec"), program)
    program["HANG"] = 0.1 if name == "hang" else 9
    read, words = PLANTED[name]
    target = targets.Target(tmp_path / "a", read, lambda rng: rng.randbytes(9), 1)
    found = program["hostile"]({"x": target}, 5, 2, 0)
    assert [line.startswith(f"input {k} (x): ") for k, line in enumerate(found, 5)] == [True, True]
    assert words in found[0]
