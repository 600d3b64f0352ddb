"""`.ci/jobs.toml` names the jobs of the workflows and what they run; .ci/run in a plain clone."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bsdsbench.files.bounded import tomllib

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = tomllib.loads((ROOT / ".ci" / "jobs.toml").read_text("utf-8"))["job"]


def parts(workflow):
    """Job name -> its text."""
    text = (WORKFLOWS / workflow).read_text("utf-8").partition("\njobs:\n")[2]
    _, *found = re.split(r"^  (\w+):\n", text, flags=re.M)
    return dict(zip(found[::2], found[1::2], strict=True))


def test_every_job_of_the_workflows_is_listed_and_every_listed_one_is_there():
    listed = [(job["workflow"], job["name"]) for job in JOBS]
    there = [(p.name, name) for p in WORKFLOWS.glob("*.yml") for name in parts(p.name)]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job['workflow']}:{job['name']}")
def test_a_job_runs_what_is_listed(job):
    ours = (ROOT / ".ci" / "run").read_text("utf-8")
    for command in job["command"]:
        assert command in parts(job["workflow"])[job["name"]]
        assert not job["ours"] or command in ours
        if command.startswith(".ci/"):
            assert (ROOT / command.split()[0]).is_file()


def test_a_release_comes_after_all_tests():
    release = parts("release.yml")
    assert "uses: ./.github/workflows/tests.yml" in release["tests"]
    assert "needs: tests" in release["build"]
    assert "needs: build" in release["publish"]


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_a_clone_without_the_data_says_what_is_skipped(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BSDSBENCH_")}
    (tmp_path / "shared" / "spec").mkdir(parents=True)
    (tmp_path / "clone").mkdir()
    told = subprocess.run(
        ["bash", "-euc", f". {ROOT}/.ci/data; env"],
        cwd=tmp_path / "clone",
        env={**environment, "BSDSBENCH_BSDS500": "/given"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert told[:2] == [
        "ci: BSDSBENCH_BSDS500=/given",
        "ci: BSDSBENCH_BSDS500_BENCH is not set and there is no bsds500_bench beside the clone: "
        "the tests that need it are skipped",
    ]
    assert f"BSDSBENCH_SPEC={tmp_path}/clone/../shared/spec" in told
    assert not any(line.startswith("BSDSBENCH_BSDS500_BENCH=") for line in told)
