"""The run's folder is a whole result, an earlier whole result, or one line; never a mixture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bsdsbench.files.errors import FileFormatError
from bsdsbench.runs import manifest
from bsdsbench.runs.manifest import MANIFEST, is_run, verified, write_results

FILES = {"a.txt": "1 2\n", "per_image/b.txt": "3\n", "result.json": "{}", "counts.npz": b"\0\1"}


def written(folder: Path) -> Path:
    write_results(folder, FILES.items())
    return folder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    out = written(tmp_path / "out")
    assert verified(out, "result.json", "counts.npz", "per_image/b.txt") == [b"{}", b"\0\1", b"3\n"]
    assert is_run(out)
    assert not is_run(tmp_path)


def test_the_same_files_give_the_same_manifest(tmp_path: Path) -> None:
    one, two = (written(tmp_path / name) / MANIFEST for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", ["result.json", "counts.npz", "a.txt"])
def test_an_altered_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    out = written(tmp_path / "out")
    (out / name).write_bytes(b"other")
    with pytest.raises(FileFormatError, match=rf"{name}: is not what manifest\.json names.*again"):
        verified(out, name)
    (out / name).unlink()
    with pytest.raises(FileFormatError, match=rf"{name}: cannot be opened \(No such file"):
        verified(out, name)


def test_a_folder_that_is_none_of_ours_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"no manifest\.json.*run evaluate again with -o"):
        verified(tmp_path, "result.json")
    with pytest.raises(FileFormatError, match="not a folder"):
        verified(tmp_path / "none", "result.json")
    out = written(tmp_path / "out")
    for text, words in (
        ("{}", "expected schema"),
        ("[]", "no object"),
        (json.dumps({"schema": manifest.SCHEMA, "state": 3}), "state is 3, expected text"),
        (json.dumps({"schema": manifest.SCHEMA, "state": "finished"}), "has no 'files'"),
        (
            json.dumps({"schema": manifest.SCHEMA, "state": "finished", "files": {"a": 1}}),
            "a is 1, expected text",
        ),
    ):
        (out / MANIFEST).write_text(text)
        with pytest.raises(FileFormatError, match=rf"manifest\.json: .*{words}"):
            verified(out, "a.txt")


def test_a_writer_that_dies_anywhere_leaves_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each of its writes in turn, over a finished result of other files."""
    real = manifest.write_atomic
    for last in range(len(FILES) + 1):
        out = written(tmp_path / f"out{last}")
        calls = 0

        def dying(path: Path, data: bytes, *, last: int = last, **how: bool) -> None:
            nonlocal calls
            if calls > last:
                raise KeyboardInterrupt
            calls += 1
            real(path, data, **how)

        monkeypatch.setattr(manifest, "write_atomic", dying)
        with pytest.raises(KeyboardInterrupt):
            write_results(out, [(name, b"new") for name in FILES])
        monkeypatch.undo()
        with pytest.raises(FileFormatError, match=r"the run was not finished.*evaluate again"):
            verified(out, "result.json")
        write_results(out, [(name, b"new") for name in FILES])
        assert verified(out, *FILES) == [b"new"] * len(FILES)


def test_files_of_an_earlier_result_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    out = written(tmp_path / "out")
    (tmp_path / "outside.txt").write_text("mine")
    (out / "notes.txt").write_text("mine")
    (out / "pr.png").write_text("drawn from the earlier result")
    found = json.loads((out / MANIFEST).read_text())
    found["files"]["../outside.txt"] = "0"
    (out / MANIFEST).write_text(json.dumps(found))
    write_results(out, [("result.json", "{}")])
    assert sorted(p.name for p in out.rglob("*") if p.is_file()) == [
        "manifest.json",
        "notes.txt",
        "result.json",
    ]
    assert (tmp_path / "outside.txt").read_text() == "mine"
