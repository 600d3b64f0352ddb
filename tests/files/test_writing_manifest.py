"""The run's folder is a whole result, an earlier whole result, or one line; never a mixture."""

import json
from contextlib import suppress

import pytest

from bsdsbench.files import writing
from bsdsbench.files.errors import FileFormatError
from bsdsbench.files.writing import MANIFEST, is_run, verified, write_results
from tests.helpers.runs import refused

FILES = {"a.txt": "1 2\n", "per_image/b.txt": "3\n", "result.json": "{}", "counts.npz": b"\0\1"}


def written(folder):
    write_results(folder, FILES.items())
    return folder


def test_what_was_written_is_read(tmp_path):
    out = written(tmp_path / "out")
    assert verified(out, "result.json", "counts.npz", "per_image/b.txt") == [b"{}", b"\0\1", b"3\n"]
    assert is_run(out)
    assert not is_run(tmp_path)


def test_the_same_files_give_the_same_manifest(tmp_path):
    one, two = (written(tmp_path / name) / MANIFEST for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", ["result.json", "counts.npz", "a.txt"])
def test_an_altered_or_missing_file_is_named(tmp_path, name):
    out = written(tmp_path / "out")
    (out / name).write_bytes(b"other")
    with pytest.raises(FileFormatError, match=rf"{name}: is not what manifest\.json names.*again"):
        verified(out, name)
    (out / name).unlink()
    refused(rf"{name}: cannot be opened \(No such file", verified, out, name, error=FileFormatError)


def test_a_folder_that_is_none_of_ours_says_what_to_do(tmp_path):
    with pytest.raises(FileFormatError, match=r"no manifest\.json.*run evaluate again with -o"):
        verified(tmp_path, "result.json")
    refused("not a folder", verified, tmp_path / "none", "result.json", error=FileFormatError)
    out = written(tmp_path / "out")
    for text, words in (
        ("{}", "expected schema"),
        ("[]", "no object"),
        (json.dumps({"schema": writing.SCHEMA, "state": 3}), "state is 3, expected text"),
        (json.dumps({"schema": writing.SCHEMA, "state": "finished"}), "has no 'files'"),
        (
            json.dumps({"schema": writing.SCHEMA, "state": "finished", "files": {"a": 1}}),
            "a is 1, expected text",
        ),
    ):
        (out / MANIFEST).write_text(text)
        refused(rf"manifest\.json: .*{words}", verified, out, "a.txt", error=FileFormatError)


@pytest.mark.parametrize("last", range(2 * len(FILES) + 4))
def test_a_writer_that_dies_anywhere_leaves_a_whole_result_or_none(last, tmp_path, monkeypatch):
    """Killed before each of its steps in turn, over a finished result with one more file."""
    out = tmp_path / "out"
    write_results(out, [*FILES.items(), ("per_image/old.txt", "4\n")])
    steps = 0

    def dying(real):
        def step(*given, **how):
            nonlocal steps
            if steps == last:
                raise KeyboardInterrupt
            steps += 1
            return real(*given, **how)

        return step

    for name in ("write_aside", "write_atomic", "move", "_clear"):
        monkeypatch.setattr(writing, name, dying(getattr(writing, name)))
    new = {name: b"new" for name in FILES}
    with suppress(KeyboardInterrupt):
        write_results(out, new.items())
    monkeypatch.undo()
    if last <= len(FILES) + 1:  # what is written aside harms nothing
        assert verified(out, *FILES)[0] == b"1 2\n"
    elif steps == last:
        with pytest.raises(FileFormatError, match=r"the run was not finished.*evaluate again"):
            verified(out, "result.json")
    write_results(out, new.items())
    assert verified(out, *FILES) == [b"new"] * len(FILES)
    there = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert there == {*FILES, MANIFEST}


def test_files_of_an_earlier_result_are_deleted_and_nothing_else(tmp_path):
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


def test_nothing_is_written_or_deleted_through_a_linked_folder(tmp_path):
    out, elsewhere = written(tmp_path / "out"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.txt").write_text("mine")
    (out / "per_image" / "b.txt").unlink()
    (out / "per_image").rmdir()
    (out / "per_image").symlink_to(elsewhere)
    refused("per_image: is a link, expected a folder of its own", written, out)
    assert verified(out, "result.json") == [b"{}"]  # the result that was there
    write_results(out, [("result.json", "{}")])  # b.txt of the earlier one is stale
    assert (elsewhere / "b.txt").read_text() == "mine"


def test_a_linked_file_is_replaced_and_what_it_led_to_stays(tmp_path):
    out = written(tmp_path / "out")
    (tmp_path / "notes").write_text("mine")
    for name in ("result.json", MANIFEST):
        (out / name).unlink()
        (out / name).symlink_to(tmp_path / "notes")
        written(out)
        assert not (out / name).is_symlink()
    assert (tmp_path / "notes").read_text() == "mine"
