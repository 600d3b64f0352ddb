"""Workers that die, and a Dask cluster that loses one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders import pair
from bsdsbench.runs.executors import outcomes
from bsdsbench.runs.job import Failure, Job

ROOT = Path(__file__).parents[2]


def jobs_of(tiny):
    proto = bb.Protocol.preset("bsds500").replace(thresholds=5)
    return [Job(p, proto, ("boundary",)) for p in pair(*tiny)]


def test_an_image_that_kills_its_worker_is_blamed_and_the_others_are_done(
    tiny, tmp_path, monkeypatch
):
    """A sitecustomize makes every worker process die when it meets image im003."""
    (tmp_path / "sitecustomize.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("BSDSBENCH_START_METHOD", "spawn")
    found = list(outcomes(jobs_of(tiny), "process", 2))
    failed = [o for o in found if isinstance(o, Failure)]
    assert [f.image_id for f in failed] == ["im003"]
    assert "worker process died" in failed[0].problems[0]
    assert sorted(o.image_id for o in found) == [f"im{k:03d}" for k in range(6)]


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("stdin", [True, False])
def test_a_script_needs_no_main_guard(tiny, tmp_path, monkeypatch, method, stdin):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BSDSBENCH_START_METHOD", method)
    pred, gt = map(str, tiny)
    script = tmp_path / "script.py"
    script.write_text(
        "import bsdsbench as bb\n"
        f"run = bb.evaluate({pred!r}, {gt!r}, workers=2)\n"
        "print(len(run.records))\n"
    )
    found = subprocess.run(
        [sys.executable, "-" if stdin else str(script)],
        input=script.read_text() if stdin else None,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (found.stdout, found.returncode) == ("6\n", 0), found.stderr


DEADLY = """
import os

import bsdsbench.runs.job as job

real = job._evaluate


def deadly(each):
    if each.pair.image_id == "im003":
        os._exit(9)
    return real(each)


job._evaluate = deadly
"""


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")
    port = str(40000 + os.getpid() % 20000)
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler = subprocess.Popen(
        [*program, "--host", "127.0.0.1", "--no-dashboard", "--port", port], **quiet
    )
    program = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    workers = [
        subprocess.Popen(
            [
                *program,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                tmp_path / f"w{k}",
            ],
            **quiet,
        )
        for k in range(2)
    ]
    yield f"dask://127.0.0.1:{port}", workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bits(cluster, tmp_path):
    from tests.making import make_set
    from tests.runs.test_runner import bits

    address, workers = cluster
    many = make_set(tmp_path / "many", images=40)
    bb.evaluate(*many, workers=1, out=tmp_path / "here")

    def kill_one(done, total, image_id):
        if done == 8:
            workers[0].send_signal(signal.SIGKILL)

    bb.evaluate(*many, executor=address, out=tmp_path / "there", progress=kill_one)
    assert workers[0].wait(10) == -signal.SIGKILL
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


def test_no_scheduler_is_one_line(tiny):
    pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")
    started = time.monotonic()
    with pytest.raises(bb.DataError, match="no Dask scheduler answers"):
        bb.evaluate(*tiny, executor="dask://127.0.0.1:1")
    assert time.monotonic() - started < 60
