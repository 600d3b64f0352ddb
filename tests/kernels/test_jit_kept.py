"""Compiled kernels are kept on disk under all sources' hash, or the run says that they are not."""

import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from numba.core.errors import TypingError

KERNELS = Path(__file__).parents[2] / "bsdsbench" / "kernels"
INNER = "from kept.kernels.jit import kernel\n\n@kernel\ndef value():\n    return {}\n"
OUTER = """
from kept.kernels.inner import value
from kept.kernels.jit import kernel

@kernel
def twice():
    return 2 * value()
"""
SCRIPT = """
from kept.kernels.outer import twice
print(twice(), "kept" if twice.stats.cache_hits else "compiled")
"""


PASSES = """
import gc
from kept.kernels import compiler
from kept.kernels.outer import twice
ran, run = [], compiler._Steps.run
compiler._Steps.run = lambda *given: ran.append(given) or run(*given)
print("ready", flush=True)
input()
print(twice(), len(ran), gc.isenabled())
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two kernels, one calling the other, kept the way this package's are."""
    folder = tmp_path / "site" / "kept" / "kernels"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("__init__.py", "compiler.py", "jit.py"):
        text = (KERNELS / name).read_text("utf-8").replace("bsdsbench.kernels", "kept.kernels")
        (folder / name).write_text(text, "utf-8")
    (folder / "inner.py").write_text(INNER.format(1))
    (folder / "outer.py").write_text(OUTER)
    for name in [n for n in os.environ if n.startswith(("NUMBA", "BSDSBENCH", "XDG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BSDSBENCH_KERNELS_NOT_KEPT", "")  # is set where nothing is kept
    (tmp_path / "home").mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # sources change within a second
    yield folder
    forget()


def forget():
    for name in [n for n in sys.modules if n.partition(".")[0] == "kept"]:
        del sys.modules[name]


@pytest.fixture
def run(package, caplog):
    """Imported as if for the first time: what is computed and how, and what is said."""

    def found():
        forget()
        caplog.clear()
        twice = importlib.import_module("kept.kernels.outer").twice
        return twice(), "kept" if twice.stats.cache_hits else "compiled", *caplog.messages

    return found


@pytest.mark.slow
@pytest.mark.process
def test_a_change_in_a_called_kernel_is_seen(package, run):
    assert run() == (2, "compiled")
    command = [sys.executable, "-B", "-c", SCRIPT]
    other = subprocess.run(command, cwd=package.parents[1], capture_output=True, text=True)
    assert (other.stdout, other.stderr) == ("2 kept\n", "")
    (package / "inner.py").write_text(INNER.format(33))
    assert run() == (66, "compiled")
    assert len(list(package.glob("__pycache__/kernels-*"))) == 1  # the old one is gone


@pytest.mark.slow
@pytest.mark.process
def test_of_two_processes_one_compiles(package):
    """Both are ready before either begins; each tells how many functions it compiled."""
    call = [sys.executable, "-B", "-c", PASSES]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(call, cwd=package.parents[1], **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].split() for process in processes]
    values, compiled, collects = zip(*said, strict=True)
    assert values == ("2", "2")
    assert collects == ("True", "True")
    assert sorted(n == "0" for n in compiled) == [False, True]


def test_kept_where_files_cannot_be_locked(run, package, monkeypatch):
    """As on some network disks: it is compiled and kept all the same."""

    def acquire(*args, **options):
        raise OSError("no locks")

    monkeypatch.setattr("filelock.FileLock.acquire", acquire)
    assert run() == (2, "compiled")
    assert run() == (2, "kept")


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_leaves_no_lock(run, package):
    (package / "inner.py").write_text(INNER.format("unknown"))
    for _ in range(2):
        with pytest.raises(TypingError, match="unknown"):
            run()
    locks = list(package.glob("__pycache__/kernels-*/*.lock"))
    for path in locks:
        FileLock(path).acquire(timeout=0)
    assert gc.isenabled()


def test_kept_nowhere_it_runs_and_says_so_once(package, run, tmp_path, monkeypatch):
    for name in ("no-home", "site/kept/kernels/__pycache__"):
        (tmp_path / name).touch()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "no-home"))
    value, how, said = run()
    assert (value, how) == (2, "compiled")
    assert "compiled in every run" in said
    assert "set NUMBA_CACHE_DIR" in said
    assert not list(tmp_path.rglob("*.nb?"))  # so that the next one compiles it again
    assert run() == (2, "compiled")  # as workers do, which are told by the environment


def test_every_kernel_is_kept_that_way():
    others = [p.name for p in KERNELS.rglob("*.py") if "njit" in p.read_text("utf-8")]
    assert others == ["jit.py"]
