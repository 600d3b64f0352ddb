"""The README's Python example runs as it stands, and prints what a person reads."""

import re
import shutil
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_results

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_installs_into_the_system(page):
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        before, pip, _ = block.partition("pip install")
        assert not pip or ".venv/bin/" in before, block


@pytest.mark.process
@pytest.mark.slow
def test_the_python_example(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    (code,) = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.M)
    truth, maps = tmp_path / "BSDS500" / "data" / "groundTruth" / "test", tmp_path / "maps"
    for source, folder in ((sample_ground_truth(), truth), (sample_results("canny"), maps)):
        folder.mkdir(parents=True)
        for path in sorted(source.iterdir())[:4]:
            shutil.copy(path, folder / path.name.replace("fruit1", "100007"))
    monkeypatch.chdir(tmp_path)
    for name in ("hed", "ucm"):
        bb.evaluate("maps", truth, name=name, out=f"out/{name}", workers=1)
    exec(compile(code, str(README), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("<Evaluation 'maps', 4 images: boundary ODS 0.")
    assert lines[1].startswith("<Evaluation 'streaming', 1 images: boundary ODS 0.")
    assert "Differences" in lines
