"""What others take over: the steps of action.yml and the Codabench bundle, run on the sample."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bsdsbench.io import parse_toml
from bsdsbench.kernels import compiled_folder
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from tests.helpers.runs import command

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "docs" / "howto" / "codabench"
yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.process


def bash(command, cwd, **env):
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=cwd,
        env={**os.environ, "PATH": here, **env},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_steps_of_the_action(tmp_path):
    """Structure tensors pass their own baseline, and Canny does not: on four images."""
    few = {"truth": sample_ground_truth()}
    few |= {method: sample_results(method) for method in ("structure-tensor", "canny")}
    for name, folder in few.items():
        (tmp_path / name).mkdir()
        for path in sorted(folder.iterdir())[:4]:
            shutil.copy(path, tmp_path / name)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {
        "ground-truth": str(tmp_path / "truth"),
        "options": "--set thresholds=5 --workers 1",
        "baseline": str(tmp_path / "baseline.json"),
        "out": "out dir",
    }
    inputs = {k: given.get(k, v.get("default", "")) for k, v in action["inputs"].items()}
    steps = {step["name"]: step for step in action["runs"]["steps"]}
    names = ["Install", "Compiled kernels of an earlier job", "Evaluate", "Check"]
    assert list(steps) == names

    def run(name):
        env = {}
        for key, value in steps[name]["env"].items():
            given = value.partition("inputs.")[2].rstrip(" }")
            env[key] = inputs[given] if given else str(compiled_folder().parent)
        summary = str(tmp_path / "summary.md")
        return bash(steps[name]["run"], tmp_path, GITHUB_STEP_SUMMARY=summary, **env)

    inputs |= {"predictions": str(tmp_path / "structure-tensor")}
    assert run("Evaluate").returncode == 0
    out, few = tmp_path / inputs["out"], ("--set", "thresholds=5", "--workers", 1)
    update = command("check", out, "--baseline", tmp_path / "baseline.json", "--update")
    assert update.returncode == 0
    evaluated = ("evaluate", tmp_path / "canny", "--gt", tmp_path / "truth", "-o", out, *few)
    for status in (0, 1):
        assert status == 0 or command(*evaluated).returncode == 0
        assert run("Check").returncode == status
        assert "boundary.ods" in (tmp_path / "summary.md").read_text()
        (tmp_path / "summary.md").unlink()
        assert "<testsuite" in (tmp_path / "out dir" / "junit.xml").read_text()


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text())
    project = parse_toml((ROOT / "pyproject.toml").read_bytes())["project"]
    assert recipe["context"]["version"] == project["version"]
    needed = {line.partition(";")[0].strip() for line in project["dependencies"]}
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert run == {n.replace("matplotlib", "matplotlib-base") for n in needed} | {
        f"python{project['requires-python']}"
    }


@pytest.fixture
def app(tmp_path):
    """The folders of Codabench's worker: program, input/res, input/ref, output."""
    shutil.copytree(BUNDLE / "scoring_program", tmp_path / "program")
    shutil.copytree(sample_results("canny"), tmp_path / "input" / "res")
    shutil.copytree(sample_ground_truth(), tmp_path / "input" / "ref")
    (tmp_path / "output").mkdir()
    command = yaml.safe_load((tmp_path / "program" / "metadata.yaml").read_text())["command"]
    return tmp_path, command.replace("/app/", f"{tmp_path}/")


@pytest.mark.slow
def test_a_codabench_submission_is_scored(app):
    where, command = app
    done = bash(command, where / "program")
    assert done.returncode == 0, done.stderr
    scores = json.loads((where / "output" / "scores.json").read_text())
    assert abs(scores["ods"] - 0.697) < 0.0005  # datasets/README.md
    assert "ODS" in (where / "output" / "detailed_results.html").read_text()
