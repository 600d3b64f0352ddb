"""The recipes of CONTRIBUTING.md: each diff is applied to a copy, and what it adds is used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bsdsbench.kernels import compiled_folder

ROOT = Path(__file__).parents[1]
RECIPES = re.findall(
    r"^### \d\. (.+?)\n.*?^```diff\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
)
APPLY = ("git", "apply", "--unidiff-zero")  # a line goes after another, whatever follows that
pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Python in a copy of the project to which all diffs are applied."""
    copy = tmp_path_factory.mktemp("recipes") / "copy"
    # Bytecode is copied with its source: Python would make all of it again.
    skip = shutil.ignore_patterns("kernels-*", "*.pyc.*", "_build", "generated", "browser")
    for folder in ("bsdsbench", "datasets", "docs", "scripts", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for _, diff in RECIPES:
        subprocess.run([*APPLY, "-"], input=diff.encode(), cwd=copy, check=True)

    def run(*words):
        env = {**os.environ, "PYTHONPATH": str(copy), "PYTEST_ADDOPTS": ""}
        env["NUMBA_CACHE_DIR"] = str(compiled_folder().parent)  # no recipe changes a kernel
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=copy, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_metric_or_verb_needs_no_file_that_its_recipe_does_not_name(python):
    """Tests by the contract, and those that ask something of every metric or verb."""
    files = ("metrics/test_contract.py", "report/test_schema.py", "test_site_pages.py")
    some = "wrong-pixels or every_metric_has or every_verb_has"
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", some)
    assert "passed" in python(*words, *(f"tests/{name}" for name in files))


def test_a_preset_a_reader_and_a_verb(python, tmp_path):
    for side in ("pred", "gt"):
        (tmp_path / side).mkdir()
    np.savetxt(tmp_path / "pred" / "a.rows", np.eye(9), "%g")
    np.savez(tmp_path / "gt" / "a.npz", np.eye(9) > 0)
    where = ("pred", "--gt", "gt", "-o", "out", "--protocol", "stairs", "--metrics", "pixel")
    calls = [["evaluate", *where, "--workers", "1", "--executor", "thread"], ["ids", "out"]]
    code = f"import os; from bsdsbench.cli import cli; os.chdir({str(tmp_path)!r})\n"
    code += f"for words in {calls}: cli.main(words, standalone_mode=False)"
    *table, names = python("-c", code).splitlines()
    assert "1.0000" in "".join(table)
    assert names == "a"


def test_recipes_apply_where_others_have_added_a_line(tmp_path):
    for file in {file for _, diff in RECIPES for file in re.findall(r"(?m)^--- a/(.*)$", diff)}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for _, diff in RECIPES:
        for file, line in re.findall(r"^--- a/(.*)\n\+.*\n@@.*\n(?:\+.*\n)* (.*)\n\+", diff, re.M):
            text = (tmp_path / file).read_text("utf-8")
            assert text.count(f"{line}\n") >= 1
            (tmp_path / file).write_text(text.replace(f"{line}\n", f"{line}\n    # another\n"))
        subprocess.run([*APPLY, "--check", "-"], input=diff.encode(), cwd=tmp_path, check=True)
