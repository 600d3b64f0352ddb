"""Runs that are killed or interrupted: nothing is wrong, nothing lost but what was in flight."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.making import make_set
from tests.helpers.processes import TOLD, gone, start_python
from tests.helpers.runs import bits, counted, stored

ROOT = Path(__file__).parents[2]
IMAGES = 24
pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("many"), images=IMAGES)


@pytest.fixture(scope="module")
def undisturbed(many, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    counted(*many, out=out)
    return bits(out)


def evaluate(many, out, *more):
    """Words of the command."""
    where = ("-m", "bsdsbench", "evaluate", many[0], "--gt", many[1])
    return (*where, *(("-o", out) if out else ()), "--quiet", "--workers", 2, *more)


# Records are stored slowly: there is a midst of a run, on a busy machine and with processes too.
UNHURRIED = """
import sys, time
from bsdsbench.results.storage import Records
real = Records.add
def unhurried(*given):
    real(*given)
    time.sleep(0.1)
Records.add = unhurried
"""
BY_COMMAND = UNHURRIED + "from bsdsbench.cli import main\nsys.argv[1:] = sys.argv[3:]\nmain()\n"


def amid(many, out, records, act, *more):
    """A run in whose midst `act` fell, after so many records, and what it said on its end."""
    words = ("-c", BY_COMMAND, *evaluate(many, out, *more))
    process = start_python(*words, cwd=ROOT, start_new_session=True)
    while len(stored(out)) < records and process.poll() is None:
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        act(process)
    _, err = process.communicate(timeout=120)
    assert gone(process.pid), "a worker outlived its parent"
    return process.returncode, err


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_killed_run_goes_on_to_the_same_bytes(many, undisturbed, tmp_path, executor):
    out = tmp_path / "out"
    status, _ = amid(many, out, 3, lambda p: p.kill(), "--executor", executor)
    assert status == -signal.SIGKILL
    kept = stored(out)
    assert 3 <= len(kept) < IMAGES
    assert counted(*many, out=out).kept == len(kept)
    assert bits(out) == undisturbed


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("more", "again"),
    [
        ((), ": repeat the same call to continue"),
        (("--fresh",), "repeat the same call to continue (without --fresh)"),
    ],
)
def test_ctrl_c_stops_soon_and_says_what_is_true(many, tmp_path, more, again):
    out = tmp_path / "out"
    status, err = amid(many, out, 3, lambda p: os.killpg(p.pid, signal.SIGINT), *more)
    (line,) = err.splitlines()
    assert (status, line.startswith("bsdsbench: interrupted; ")) == (130, True)
    kept = len(stored(out))
    assert f"{kept} images are kept in {out}" in line
    assert line.endswith(again)
    assert not (out / "result.json").exists()
    assert counted(*many, out=out).kept == kept >= 3


def test_an_interrupt_without_a_folder_promises_nothing(tiny):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="nothing was kept"):
        counted(*tiny, progress=stop)


@pytest.mark.skipif(not TOLD, reason="no /dev/full")
@pytest.mark.process
@pytest.mark.slow
def test_closed_and_full_outputs(tiny):
    words = " ".join(map(str, (sys.executable, *evaluate(tiny, None))))
    for where, status, said in (
        ("| head -c 1 > /dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("> /dev/full", 2, "No space left"),
        (">&-", 0, ""),
    ):
        done = subprocess.run(
            ["bash", "-c", f"{words} {where}"], capture_output=True, text=True, cwd=ROOT
        )
        assert done.returncode == status, (where, done.stderr)
        assert said in done.stderr
        assert done.stderr.count("\n") <= 1
