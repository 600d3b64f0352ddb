"""The walks of docs/walks: their blocks run one after the other and print what the page shows.

BSDSBENCH_RENEW=1 writes what they print into the pages: then look at it.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.runs import command

ROOT = Path(__file__).parents[1]
PAGES = sorted(p for p in (ROOT / "docs" / "walks").glob("*.md") if p.stem != "index")
BLOCK = re.compile(r"^(```(python|console)\n)(.*?)(?=^```$)", re.M | re.S)
CALL = re.compile(r"^\$ .*\n(?:> .*\n)*", re.M)  # a prompt, and lines that go on


LOOP = re.compile(r"for (\w+) in ([\w ]+); do (.*); done")


def shell(line, given=None):
    """What bash does, with `bsdsbench` on its path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    words = ["bash", "-c", line]
    return subprocess.run(words, env=env, input=given, capture_output=True, text=True, timeout=120)


def printed(call):
    """What a call prints, then what it says on standard error, but how far it is.

    Calls of bsdsbench run in this process, those of a loop or before a pipe too."""
    line = re.sub("^[$>] ", "", call, flags=re.M)
    if loop := LOOP.fullmatch(line.strip()):
        name, values, body = loop.groups()
        return "".join(printed(body.replace(f"${name}", value)) for value in values.split())
    own, _, pipe = line.partition(" | ")
    if own.startswith("bsdsbench ") and ">" not in own:
        done = command(*shlex.split(own)[1:])
        shown = shell(pipe, done.stdout).stdout if pipe else done.stdout
    else:
        done = shell(line)
        shown = done.stdout
    said = re.sub(r"^(.* s elapsed.*|first run: .*)\n", "", done.stderr, flags=re.M)
    status = f"(exit status {done.returncode})\n" if done.returncode else ""
    return re.sub(r"\s+\Z", "\n", shown + said) + status


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_walk_prints_what_its_page_shows(page, tmp_path, monkeypatch):
    """In a folder that has the repository's `datasets`."""
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    text, names = page.read_text("utf-8"), {}

    def ran(block):
        start, kind, body = block.groups()
        if kind == "console":
            return start + "".join(call + printed(call) for call in CALL.findall(body))
        exec(compile(body, str(page), "exec"), names)
        return block[0]

    found = BLOCK.sub(ran, text)
    if os.environ.get("BSDSBENCH_RENEW"):
        page.write_text(found, "utf-8", newline="\n")
    else:
        assert found == text
    assert CALL.search(text)
