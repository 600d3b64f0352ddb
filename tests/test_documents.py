"""Every row of the page of the source documents: its call prints what stands beside it."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from bsdsbench.errors import DataError
from tests.helpers.runs import command

PAGE = (Path(__file__).parents[1] / "docs/understand/documents.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (`[^|]+`) \| `([^|]+)` \|$", PAGE, re.M)
N_ROWS = len(re.findall(r"^\| (?!where)", PAGE, re.M))


def flat(text):
    return " ".join(str(text).split())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder with the files of the page, and the names that its code has."""
    root, names = tmp_path_factory.mktemp("documents"), {}
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        exec(compile(code, "documents.md", "exec"), names)
    return root, names


@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize(("where", "says", "shown", "call"), ROWS)
def test_a_call_prints_what_the_row_shows(where, says, shown, call, data, monkeypatch):
    root, names = data
    monkeypatch.chdir(root)
    if call.startswith("bsdsbench "):
        done = command(*shlex.split(call)[1:])
        assert done.returncode == 0, done.stderr
        printed = done.stdout + done.stderr
    else:
        with np.printoptions(precision=8):
            try:
                value = eval(call, names)
            except DataError as error:
                value = error
            parts = value if isinstance(value, list) else [value]
            printed = "\n".join(map(str, parts))
    parts = re.findall(r"`([^`]+)`", shown)
    assert parts
    assert [part for part in parts if flat(part) not in flat(printed)] == [], printed


def test_no_row_is_left_out():
    assert len(ROWS) == N_ROWS > 60
