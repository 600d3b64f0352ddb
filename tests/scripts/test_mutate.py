"""The mutator: what it changes, which tests it chooses, and that its list is that of this code."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import changes  # noqa: E402
import mutate  # noqa: E402

LISTED = mutate.listed()["mutant"]


@pytest.mark.parametrize("each", LISTED, ids=lambda each: each["name"])
def test_a_named_change_is_one_of_this_code_and_its_tests_are_there(each):
    text = (ROOT / each["file"]).read_text("utf-8")
    assert text.count(each["old"]) == 1
    ast.parse(text.replace(each["old"], each["new"]))
    for test in each["tests"]:
        assert (ROOT / test.partition("::")[0]).is_file()


def test_what_is_said_of_modules_is_of_modules_that_there_are():
    said = mutate.listed()
    files = said["equivalent"].keys() | {f"bsdsbench/{f}" for f in said["measured"]}
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_each_kind_of_change_is_made_once(tmp_path, monkeypatch):
    code = "def f(a, b):\n    if a < 2 and not b:\n        return min(a, b) + 0.5\n"
    code += "    return f(a, b, True)\n"
    (tmp_path / "m.py").write_text(code, "utf-8")
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    found = list(changes.mutants_of("m.py"))
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
        ("constant", "        return min(a, b) + 1.5"),
        ("arguments", "    return f(b, a, True)"),
        ("constant", "    return f(a, b, False)"),
    ]


def test_a_change_is_tested_by_what_ran_its_lines(tmp_path, monkeypatch):
    code = """
LIMIT = 3

def f(a):
    if (
        a > LIMIT
    ):
        return 1
    return [
        2,
        a,
    ]
"""
    (tmp_path / "m.py").write_text(code, "utf-8")
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    quick, slow, other, own = (
        "t/test_x.py::quick",
        "t/test_x.py::slow",
        "t/test_y.py::o",
        "test_m.py",
    )
    reached = {
        "seconds": {quick: 0.1, slow: 0.2, other: 0.01, own: 0.4, "test_y.py::no": 40},
        "lines": {"m.py": {"6": [slow, quick, other], "8": [own], "9": [other, quick, slow]}},
    }
    found = {m.words: mutate.tests_of(m, reached) for m in changes.mutants_of("m.py")}
    assert found == {
        "LIMIT = 3  ->  LIMIT = 4": ([own], [quick, slow, other]),
        "a > LIMIT  ->  a >= LIMIT": ([quick, slow], [other]),
        "return 1  ->  return 2": ([own], []),
        "return [2, a]  ->  return [3, a]": ([quick, slow], [other]),
    }


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_changes_of_a_small_tree(tmp_path):
    """Tests recorded by line, each change tried, one listed by name tried again."""
    listed = """
[[mutant]]
name = "least for most"
file = "bsdsbench/m.py"
old = "max(a, b)"
new = "min(a, b)"
tests = ["tests/k/test_m.py"]

[equivalent."bsdsbench/m.py"]
"return a + 1  ->  return a + 2" = "the same number"
"""
    code = "def most(a, b):\n    return max(a, b)\n\n\ndef more(a):\n    return a + 1\n"
    code += "\n\ndef never():\n    return 7\n"
    test = "from bsdsbench.m import more, most\n\n\ndef test_most():\n    assert most(1, 2) == 2\n"
    test += "    assert isinstance(more(1), int)\n"
    files = {"bsdsbench/__init__.py": "", "bsdsbench/m.py": code, "tests/k/test_m.py": test}
    ours = ("scripts/mutate.py", "scripts/changes.py")
    files |= {name: (ROOT / name).read_text("utf-8") for name in ours}
    for name, text in {**files, "scripts/mutants.toml": listed}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    plugins = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p _hypothesis_pytestplugin",
    }
    told, given = [], {**os.environ, **plugins, "PYTHONPATH": "scripts"}
    program = "import mutate; mutate.LIBRARIES = 'pytest'; raise SystemExit(mutate.main())"
    for words in (["modules", "bsdsbench/m.py"], ["named"]):
        command = [sys.executable, "-c", program, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=given)
        told += [done.returncode, *done.stdout.splitlines()]
    assert told == [
        1,
        "bsdsbench/m.py: 4 of 4, 2 live, 1 equivalent",
        "    line 6, arithmetic: return a + 1  ->  return a - 1",
        "    line 10, constant: return 7  ->  return 8",
        "2 of 4 live, 50.0 %: arithmetic 1 of 1, call 0 of 1, constant 1 of 2",
        0,
        "killed least for most: tests/k/test_m.py::test_most",
    ]
