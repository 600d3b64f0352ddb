"""The lock of a folder: who holds it, what it does with links and file systems without locks."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from bsdsbench.files.errors import DataError, RunLockedError
from bsdsbench.files.locking import LOCK, locked


def in_another_thread(out: Path, wait: float = 0.0) -> list[BaseException]:
    faults: list[BaseException] = []

    def hold() -> None:
        try:
            with locked(out, wait=wait):
                pass
        except DataError as error:
            faults.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    return faults


def test_another_writer_is_told_who_holds_it(tmp_path: Path) -> None:
    with locked(tmp_path), locked(tmp_path):  # again by the same is no other writer
        (fault,) = in_another_thread(tmp_path, 0.05)
    assert isinstance(fault, RunLockedError)
    assert f"another run is writing there (process {os.getpid()} on " in str(fault)
    assert in_another_thread(tmp_path) == []


def test_a_linked_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="lock: is a link"), locked(out):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_linked_folder_is_not_cleared(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".x.part").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".records").symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="records: is a link"), locked(out, ".records"):
        pass
    assert (tmp_path / "mine" / ".x.part").exists()
    assert in_another_thread(out) == []


def test_errors_of_the_lock_name_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(*given: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(OSError, match="No locks available") as caught, locked(tmp_path):
        pass
    assert caught.value.filename == str(tmp_path / LOCK)
