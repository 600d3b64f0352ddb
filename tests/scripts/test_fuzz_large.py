"""Files that claim to be large take bounded memory: one of them here, all of them heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "fuzz_large.py"), *options],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "MiB" in found.stdout


def test_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _run(monkeypatch, "--only", "small.npz")


@pytest.mark.heavy
def test_all(monkeypatch: pytest.MonkeyPatch) -> None:
    _run(monkeypatch)
