"""The README's Python example runs as it stands, and prints what a person reads."""

import re
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

import bsdsbench as bb
from tests.helpers.runs import command

README = Path(__file__).parents[1] / "README.md"
PAGES = [README, *sorted((README.parent / "docs").glob("**/*.md"))]


def test_the_whole_installation_is_one_command_in_an_environment_of_its_own():
    """Debian's and Ubuntu's own pip refuses to install (PEP 668)."""
    text = README.read_text("utf-8")
    for name, last in (("first", ".venv/bin/bsdsbench demo"), ("test", "-m pytest")):
        (command,) = re.findall(rf"<!-- {name}-command -->\n```sh\n(.*)\n```", text)
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
        assert last in command.split(" && ")[-1]
    assert re.findall(r"```sh\n(.*)\n```", text)[0] in (README.parent / "docs/index.md").read_text()


def test_no_block_installs_into_the_system():
    for page in PAGES:
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text("utf-8"), re.S):
            before, pip, _ = block.partition("pip install")
            assert not pip or ".venv/bin/" in before, (page, block)


@pytest.mark.slow
def test_the_table_of_the_demo_is_what_demo_prints(tmp_path, detectors_once, monkeypatch):
    """The page has every column but the time, in README and on the first page of the site.

    What the demo draws and compares after its table is left out."""
    monkeypatch.setattr(bb, "compare", partial(bb.compare, n_boot=100))
    monkeypatch.setattr(bb, "evaluate_humans", lambda *_, **__: None)
    monkeypatch.setattr("bsdsbench.plotting.plot_runs", lambda *_, **__: None)
    done = command("demo", "-o", str(tmp_path / "demo"), "--workers", "1", "--quiet")
    printed = [line.split() for line in done.stdout.partition("\n\n")[0].splitlines()]
    printed = [words[: -1 if words[-1][0].isdigit() else None] for words in printed]
    printed[1] = printed[1][:5]
    for page in (README, README.parent / "docs/index.md"):
        table = page.read_text("utf-8").partition("```text\nBoundaries\n")[2].partition("```")[0]
        shown = [["Boundaries"], *(line.split() for line in table.splitlines())]
        assert shown[:2] + shown[3:] == printed[:2] + printed[3:]
    held = Image.open(README.parent / "docs/first_picture.png").text["Description"]
    drawn = [f"{float(score):.3f}" for score in re.findall(r"\d\.\d+", held)]
    assert (held.split(",")[0].split(), drawn) == (printed[3][:2], printed[3][2:5])


@pytest.mark.process
@pytest.mark.slow
def test_the_python_example_prints_its_comments(tmp_path, monkeypatch, capsys):
    """The block runs as it stands, in an empty folder."""
    (code,) = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.M)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})
    shown = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
    assert len(shown) > 5
    assert capsys.readouterr().out.splitlines() == shown
