"""A short run of scripts/fuzz_inputs.py; the whole one is heavy."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz_inputs.py"


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_inputs", SCRIPT)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_inputs"] = module
    spec.loader.exec_module(module)
    return module


def _run(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> None:
    path = os.pathsep.join([str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    tally = fuzz.run(0, count, seed)
    print(tally.table())
    assert tally.broken == []
    assert tally.failures == []
    assert sum(sum(c.values()) for c in tally.verdicts.values()) == count
    assert all(c["refused"] for c in tally.verdicts.values())


def test_short(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(fuzz, monkeypatch, 1500, seed=7)


@pytest.mark.heavy
def test_long(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(fuzz, monkeypatch, 25_000, seed=8)


def test_a_crash_and_a_hang_are_seen(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: a child that dies or stops is a failure of the input it was at."""
    child = (
        "import json,sys,time,os\n"
        "print(json.dumps({'begin': 5, 'name': 'x.png'}), flush=True)\n"
        "os._exit(3) if sys.argv[-1] == 'crash' else time.sleep(60)\n"
    )
    real = fuzz.subprocess.Popen
    monkeypatch.setattr(fuzz, "SECONDS_PER_INPUT", 0.5)
    for way, words in (("crash", "crash, exit status 3"), ("hang", "hang")):
        command = [sys.executable, "-c", child, way]
        monkeypatch.setattr(
            fuzz.subprocess, "Popen", lambda _, command=command, **kw: real(command, **kw)
        )
        tally = fuzz.Tally()
        assert fuzz._one_child(5, 9, 0, tally) == 6
        assert tally.failures == [(5, "x.png", words)]
