"""The mutator: what it changes, which tests it chooses, and that its list is that of this code."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import mutate  # noqa: E402

LISTED = mutate.listed()["mutant"]


@pytest.mark.parametrize("each", LISTED, ids=lambda each: each["name"])
def test_a_named_change_is_one_of_this_code_and_its_tests_are_there(each):
    text = (ROOT / each["file"]).read_text("utf-8")
    assert text.count(each["old"]) == 1
    ast.parse(text.replace(each["old"], each["new"]))
    for test in each["tests"]:
        assert (ROOT / test.partition("::")[0]).is_file()


def test_each_kind_of_change_is_made_once(tmp_path, monkeypatch):
    code = (
        "def f(a, b):\n    if a < 2 and not b:\n        return min(a, b) + 0.5\n    return True\n"
    )
    (tmp_path / "m.py").write_text(code, "utf-8")
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    found = list(mutate.mutants_of("m.py"))
    whole = ast.unparse(ast.parse(code))
    assert len({m.text for m in found} | {whole}) == len(found) + 1
    changed = [
        (m.kind, line)
        for m in found
        for line, old in zip(m.text.splitlines(), whole.splitlines(), strict=True)
        if line != old
    ]
    assert changed == [
        ("condition", "    if a < 2 or not b:"),
        ("comparison", "    if a <= 2 and (not b):"),
        ("constant", "    if a < 3 and (not b):"),
        ("condition", "    if a < 2 and +b:"),
        ("arithmetic", "        return min(a, b) - 0.5"),
        ("call", "        return max(a, b) + 0.5"),
        ("arguments", "        return min(b, a) + 0.5"),
        ("constant", "        return min(a, b) + 1.5"),
        ("constant", "    return False"),
    ]


@pytest.mark.slow
def test_a_module_is_tested_by_the_files_of_its_name_or_that_say_it():
    assert mutate.tests_of("bsdsbench/metrics/saliency.py")[0] == ["tests/metrics/test_saliency.py"]
    for file in mutate.files_of(mutate.SCORES):
        near, wide = mutate.tests_of(file)
        assert near
        assert all((ROOT / test).is_file() for test in [*near, *wide])


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_named_change_is_shown_again_by_one_command():
    words = [sys.executable, "scripts/mutate.py", "named", "--only", "effect size is the mean"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = "killed effect size is the mean difference: tests/comparison/test_compare.py::"
    assert done.stdout.startswith(line + "test_effect_size_is_the_mean_difference")
