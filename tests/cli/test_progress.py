"""Every verb that may take over two seconds says how far it is, and can be interrupted."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from bsdsbench.cli import COMMANDS, cli
from tests.helpers.making import make_set
from tests.helpers.runs import counted
from tests.helpers.simulated import simulated_run

pytestmark = [pytest.mark.process, pytest.mark.slow]
CALLED = ("compare", "check", "doctor", "merge", "report", "explain")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Verb -> a call of it."""
    tmp_path = tmp_path_factory.mktemp("progress")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    maps, gt = map(str, make_set(tmp_path))
    simulated_run("one", 5).save(one)
    simulated_run("two", 5, 0.2).save(two)
    drawn, page = str(tmp_path / "drawn"), str(tmp_path / "r.html")
    counted(maps, gt).save(drawn)
    base = str(tmp_path / "base.json")
    assert cli.main(["check", one, "--baseline", base, "--update"], standalone_mode=False) == 0
    few = ["--n-boot", "10"]
    return {
        "compare": ["compare", one, two, *few],
        "check": ["check", one, "--baseline", base, "--statistical", *few],
        "doctor": ["doctor", maps, "--gt", gt],
        "merge": ["merge", one, two, "--best-of", "-o", str(tmp_path / "best")],
        "report": ["report", drawn, "-o", page, *few],
        "explain": ["explain", drawn, "--target", "ods=0.5", "--seconds", "1"],
    }


@pytest.mark.usefixtures("brief_search")
@pytest.mark.parametrize("verb", CALLED)
def test_it_says_how_far_it_is(verb, words, monkeypatch):
    told = []

    @contextmanager
    def progress(title, what="images"):
        yield lambda done, total, name: told.append((title, done, total))

    monkeypatch.setattr(f"bsdsbench.cli.{COMMANDS[verb]}.progress", progress)
    assert cli.main(words[verb], standalone_mode=False) in (None, 0, 1)
    assert told
    titles = list(dict.fromkeys(title for title, *_ in told))
    assert titles[0].startswith(verb.partition(" ")[0])
    for title in titles:
        steps = [done for each, done, _ in told if each == title]
        assert steps == sorted(steps) or verb == "explain"  # which counts each of its rounds
    assert all(0 < done <= total for _, done, total in told)


def test_ctrl_c_ends_the_process(words):
    script = (
        "import sys, contextlib, bsdsbench.cli as cli\n"
        "from bsdsbench.cli import understand\n"
        "def stop(*_):\n    raise KeyboardInterrupt\n"
        "@contextlib.contextmanager\n"
        "def progress(*_):\n    yield stop\n"
        "understand.progress = progress\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words["doctor"]],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 130
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("bsdsbench: interrupted")
