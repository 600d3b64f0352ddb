"""What the command line says where a call is nearly right."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bsdsbench.cli import cli
from bsdsbench.cli.progress import _Pace, _PlainLines
from bsdsbench.core.errors import DataError, FileFormatError


def call(*words):
    found = CliRunner().invoke(cli, list(map(str, words)), standalone_mode=False)
    if found.exception:
        raise found.exception
    return found.output


def test_a_verb_nearly_right_is_recognised():
    with pytest.raises(click.UsageError, match="no verb 'evalute'; did you mean 'evaluate'"):
        call("evalute", "x")


def test_a_preset_nearly_right_is_recognised(tmp_path):
    with pytest.raises(DataError, match=r"protocol 'bsd500': .* did you mean 'bsds500'"):
        call("evaluate", tmp_path, "--gt", tmp_path, "--protocol", "bsd500")


def test_check_without_a_baseline_says_how_to_make_one(tmp_path):
    from tests.runs.simulated import simulated_run

    out = simulated_run("a", 3).save(tmp_path / "a")
    with pytest.raises(FileFormatError, match=r"no such file, .* --update` makes one"):
        call("check", out, "--baseline", tmp_path / "none.json")


def test_semantic_without_classes_names_the_protocols_that_have_them(tmp_path):
    with pytest.raises(DataError, match=r"bsds500: no classes, expected one of .*cityscapes.*sbd"):
        call("semantic", tmp_path, "--gt", tmp_path)


def test_the_remaining_time_leaves_the_first_image_out(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    lines, pace = _PlainLines("x"), _Pace()
    clock[0] = 60.0  # the first image compiled for a minute
    lines(1, 100, "a")
    assert pace.words(1, 100) == ""
    assert capsys.readouterr().err == "x: 1/100 images, 60 s elapsed\n"
    clock[0] = 70.0
    lines(21, 100, "b")
    assert pace.words(21, 100) == "2.0 images/s, 40 s left"
    assert "21/100 images, 70 s elapsed, 2.0 images/s, 40 s left" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "bsdsbench"],
        env={**os.environ, "_BSDSBENCH_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
    )
    assert "bsdsbench" in done.stdout, done.stderr
