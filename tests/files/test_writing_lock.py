"""The lock of a folder: who holds it, what it does with links and file systems without locks."""

import errno
import os
import threading

import pytest

from bsdsbench.files.errors import DataError, RunLockedError
from bsdsbench.files.writing import LOCK, locked


def in_another_thread(out, wait=0.0):
    faults: list[BaseException] = []

    def hold():
        try:
            with locked(out, wait=wait):
                pass
        except DataError as error:
            faults.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    return faults


def test_another_writer_is_told_who_holds_it(tmp_path):
    with locked(tmp_path), locked(tmp_path):  # again by the same is no other writer
        (fault,) = in_another_thread(tmp_path, 0.05)
    assert isinstance(fault, RunLockedError)
    assert f"another run is writing there (process {os.getpid()} on " in str(fault)
    assert in_another_thread(tmp_path) == []


def test_a_linked_lock_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="lock: is a link"), locked(out):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_linked_folder_is_not_cleared(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".x.part").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".records").symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="records: is a link"), locked(out, ".records"):
        pass
    assert (tmp_path / "mine" / ".x.part").exists()
    assert in_another_thread(out) == []


def test_errors_of_the_lock_name_its_file(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refused(*given):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(OSError, match="No locks available") as caught, locked(tmp_path):
        pass
    assert caught.value.filename == str(tmp_path / LOCK)
