"""Short runs of the scripts that damage results and kill writers; long ones are heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(name: str, *options: str) -> str:
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.endswith("0 failures\n")
    return found.stdout


def test_damaged_results_are_refused_or_the_same() -> None:
    found = _run("fuzz_results.py", "--count", "900", "--seed", "5")
    assert found.count("refused") == 9


@pytest.mark.heavy
def test_many_damaged_results() -> None:
    _run("fuzz_results.py", "--count", "100000", "--seed", "6")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_killed_writers_leave_no_mixture() -> None:
    found = _run("kill_overwrites.py", "--kills", "12", "--seed", "5")
    assert "one line" in found


@pytest.mark.heavy
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_many_killed_writers() -> None:
    _run("kill_overwrites.py", "--kills", "200", "--seed", "6")
