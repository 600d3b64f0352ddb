"""Compiled kernels are kept on disk under all sources' hash, or the run says that they are not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "bsdsbench" / "kernels"
INNER = "from bsdsbench.kernels.jit import kernel\n\n@kernel\ndef value():\n    return {}\n"
OUTER = """
from bsdsbench.kernels.inner import value
from bsdsbench.kernels.jit import kernel

@kernel
def twice():
    return 2 * value()
"""
SCRIPT = """
from bsdsbench.kernels.outer import twice
print(twice(), "kept" if twice.stats.cache_hits else "compiled")
"""


@pytest.fixture
def package(tmp_path):
    """A package of two kernels, one calling the other, kept the way this package's are."""
    folder = tmp_path / "site" / "bsdsbench" / "kernels"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("__init__.py", "jit.py"):
        shutil.copy(KERNELS / name, folder)
    (folder / "inner.py").write_text(INNER.format(1))
    (folder / "outer.py").write_text(OUTER)
    return folder


def run(package, **extra):
    """What a new process prints: standard output, standard error."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "BSDSBENCH", "XDG"))}
    home = package.parents[2] / "home"
    home.mkdir(exist_ok=True)
    env |= {"PYTHONPATH": str(package.parents[1]), "HOME": str(home), "USERPROFILE": str(home)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT],
        env={**env, **extra},
        cwd=package.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.process
def test_a_change_in_a_called_kernel_is_seen(package):
    assert run(package) == ("2 compiled", "")
    assert run(package) == ("2 kept", "")
    (package / "inner.py").write_text(INNER.format(33))
    assert run(package) == ("66 compiled", "")
    assert len(list(package.glob("__pycache__/kernels-*"))) == 1  # the old one is gone


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.process
def test_kept_elsewhere_where_the_package_cannot_be_written(package, tmp_path, variable):
    (package / "__pycache__").touch()  # a file: no folder can be made there, whoever runs this
    elsewhere = {variable: str(tmp_path / "elsewhere")}
    assert run(package, **elsewhere) == ("2 compiled", "")
    assert run(package, **elsewhere) == ("2 kept", "")
    assert list((tmp_path / "elsewhere").rglob("outer.twice*.nbc"))


@pytest.mark.process
def test_kept_nowhere_it_runs_and_says_so_once(package, tmp_path):
    for name in ("no-home", "site/bsdsbench/kernels/__pycache__"):
        (tmp_path / name).touch()
    nowhere = {name: str(tmp_path / "no-home") for name in ("HOME", "USERPROFILE")}
    printed, said = run(package, **nowhere)
    assert printed == "2 compiled"
    assert said.count("\n") == 1
    assert "compiled in every run" in said
    assert "set NUMBA_CACHE_DIR" in said
    assert not list(tmp_path.rglob("*.nb?"))  # so that the next one compiles it again
    assert run(package, **nowhere, BSDSBENCH_KERNELS_NOT_KEPT="1") == ("2 compiled", "")


def test_every_kernel_is_kept_that_way():
    others = [p.name for p in KERNELS.glob("*.py") if "njit" in p.read_text("utf-8")]
    assert others == ["jit.py"]
