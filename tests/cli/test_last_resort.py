"""Whatever goes wrong on the command line is one line and status 2, the traceback in a file."""

import re
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

from bsdsbench import cli
from bsdsbench.text import LINE


def call(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["bsdsbench", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr()


@pytest.fixture
def faulty(monkeypatch, tmp_path):
    """`bsdsbench protocols` with a bug in it."""

    def broken(name):
        raise TypeError("no \x1b[31m such\nthing " + 1000 * "x")

    monkeypatch.setattr("bsdsbench.protocol.protocol.Protocol.preset", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_an_unexpected_error_is_one_line_and_its_traceback_a_file(faulty, monkeypatch, capsys):
    status, shown = call(monkeypatch, capsys, "protocols")
    assert (status, shown.out) == (2, "")
    (line,) = shown.err.splitlines()
    assert line.startswith(r"bsdsbench: unexpected TypeError: no \x1b[31m such\nthing xxx")
    assert "this is a bug in bsdsbench" in line
    assert line.isprintable()
    assert len(line) <= LINE
    text = Path(re.search(r"traceback \(in (.*)\)", line)[1]).read_text("utf-8")
    assert "Traceback (most recent call last)" in text
    assert "in broken" in text


def test_every_bad_file_of_many_is_listed_in_a_file(tmp_path, monkeypatch, capsys):
    """Some stand in the line, for people; all in the file, each with what it has."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ids = [f"im{k:02}" for k in range(12)]
    for folder in ("pred", "gt"):
        (tmp_path / folder).mkdir()
    for k, name in enumerate(ids):
        np.save(tmp_path / "pred" / f"{name}.npy", np.full((5, 6), 7.5 + k))
        iio.imwrite(tmp_path / "gt" / f"{name}.png", np.eye(5, 6, dtype=np.uint8) * 255)
    words = "evaluate", tmp_path / "pred", "--gt", tmp_path / "gt", "--workers", "1", "--quiet"
    for expected in (
        [f"{name}.npy: soft map: values from {7.5 + k} to" for k, name in enumerate(ids)],
        [f"    {name}" for name in ids],  # of which there is no prediction
    ):
        status, shown = call(monkeypatch, capsys, *map(str, words))
        first, last = shown.err.splitlines()
        assert (status, ids[2] in first, ids[10] in first) == (2, True, False)
        path = re.fullmatch("bsdsbench: all are listed in (.*)", last)[1]
        listed = Path(path).read_text("utf-8")
        assert [line for line in expected if line not in listed] == []
        for name in ids:
            (tmp_path / "pred" / f"{name}.npy").unlink(missing_ok=True)
        np.save(tmp_path / "pred" / "other.npy", np.eye(5, 6))
        (tmp_path / "gt" / "other.png").write_bytes((tmp_path / "gt" / "im00.png").read_bytes())
    monkeypatch.setattr("tempfile.tempdir", "/no/such")
    status, shown = call(monkeypatch, capsys, *map(str, words))
    assert (status, shown.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_the_caller_closed_is_no_bug(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, name, None)
    status, shown = call(monkeypatch, capsys, "protocols", "nobody")
    assert (status, shown.out) == (2, "")
    assert ("expected a .toml file or one of" in shown.err) == (name == "stdout")


def test_memory_that_is_not_there_is_one_line(monkeypatch, capsys):
    def full(name):
        raise MemoryError

    monkeypatch.setattr("bsdsbench.protocol.protocol.Protocol.preset", full)
    status, shown = call(monkeypatch, capsys, "protocols")
    assert (status, shown.err.count("\n")) == (2, 1)
    assert "not enough memory" in shown.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shard", "\u00b2/4"], "--shard '\u00b2/4': expected I/N"),
        (["--shard", "3/2"], "--shard '3/2': expected I/N with 1 <= I <= N, such as 1/4"),
        (["--shard", "0/2"], "--shard '0/2': expected I/N with 1 <= I <= N, such as 1/4"),
        (["--metrics", ""], "--metrics '': expected words between commas"),
        (["--metrics", " ,"], "--metrics ' ,': expected words between commas"),
        (["--metrics", "boundary", "--metrics", ""], "--metrics '': expected words between"),
        (["--columns", ","], "--columns ',': expected words between commas"),
        (["--set", "max_dist_px=1e308"], "max_dist_px 1e+308: expected pixels, 0 to 1000"),
        (["--thresholds", "32768"], "thresholds 32768: expected their number, 1 to 32767"),
        (["--thresholds", "9" * 5000], "thresholds"),
        (["--set", "thresholds=" + "[" * 2000], "thresholds"),
    ],
)
def test_what_ended_in_a_traceback_is_one_line(tmp_path, monkeypatch, capsys, words, said):
    status, shown = call(monkeypatch, capsys, "evaluate", tmp_path, "--gt", tmp_path, *words)
    assert status == 2
    (line,) = shown.err.splitlines()
    assert line.startswith("bsdsbench: ")
    assert "unexpected" not in line
    assert said in line
    assert len(line) <= LINE + len("bsdsbench: ")


def test_a_file_where_a_folder_was_expected_is_named(tiny, tmp_path, monkeypatch, capsys):
    taken = tmp_path / "x.png"
    taken.touch()
    for place in (taken, taken / "below"):
        words = ["evaluate", tiny[0], "--gt", tiny[1], "--quiet", "--workers", "1", "-o", place]
        status, shown = call(monkeypatch, capsys, *words)
        assert (status, shown.err.count("\n")) == (2, 1)
        assert shown.err.startswith(f"bsdsbench: {taken}")


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted")
def test_a_current_folder_that_was_deleted_is_said(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    words = "evaluate", tmp_path / "p", "--gt", tmp_path / "g", "-o", "out"
    status, printed = call(monkeypatch, capsys, *words)
    assert status == 2
    said = "bsdsbench: the current folder was deleted, expected one that exists\n"
    assert printed.err == said
