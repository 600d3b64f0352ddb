"""Before the first image: two processes compile all that it needs, and nothing from elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "bsdsbench" / "kernels"
SCRIPT = """
import sys
import numpy as np
from bsdsbench.kernels import never_compiled, warm
from bsdsbench.metrics.boundary import boundary_counts

def compiled():
    found = [vars(m) for name, m in sys.modules.items() if name.startswith("bsdsbench.kernels.")]
    return {f: list(f.overloads) for names in found for f in names.values()
            if getattr(f, "overloads", None)}

warm._compile_matching(), warm._compile_remaining_kernels()
before = compiled()
counts = boundary_counts(np.eye(9), [np.eye(9) > 0, np.eye(9) > 0])
names = {f.__name__ for f in before}
some = {"_match", "_count_changes", "_find_changes", "_float_levels"} <= names
some &= [len(found) for f, found in before.items() if f.__name__ == "_match"] == [1]
light = "scipy.linalg" not in sys.modules or not all(f.stats.cache_hits for f in before)
print(some, compiled() == before, never_compiled(), light, counts.matched_pred.tolist())
"""
# In place of each module of kernels: one that says which of its functions are called where.
STAND_IN = """
import os
from bsdsbench.kernels import compiled_folder

class Made:
    vertices = None

    def __iter__(self):
        return iter((self, self))

    def __getitem__(self, k):
        return self

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def function(*given, **options):
        with open(compiled_folder() / "called", "a") as file:
            file.write(f"{os.getpid()} {name}\\n")
        return Made()
    return function
"""
WARM = """
from bsdsbench.kernels import never_compiled, warm
print(never_compiled())
never_compiled() and warm.compile_once()
"""


def python(*words, **options):
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.process
def test_what_compiles_first_leaves_nothing_to_compile():
    own = {**os.environ, "PYTHONPATH": str(KERNELS.parents[1])}
    assert python("-W", "error", "-c", SCRIPT, env=own) == f"True True False True {[9] * 99}\n"


@pytest.mark.slow
@pytest.mark.process
def test_two_processes_compile_once_and_import_nothing_from_the_current_folder(tmp_path):
    package, here, script = tmp_path / "bsdsbench" / "kernels", tmp_path / "here", tmp_path / "s.py"
    package.mkdir(parents=True)
    (here / "bsdsbench").mkdir(parents=True)
    (here / "bsdsbench" / "__init__.py").write_text("open('imported', 'w')")
    (package.parent / "__init__.py").touch()
    for name in ("__init__.py", "compiler.py", "jit.py", "warm.py"):
        shutil.copy(KERNELS / name, package)
    (package / "matching").mkdir()
    (package / "matching" / "__init__.py").touch()
    for name in ("bits", "matching/graph", "matching/matching", "thinning", "thresholding"):
        (package / f"{name}.py").write_text(STAND_IN)
    script.write_text(WARM)
    own = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)}
    assert python(script, cwd=here, env=own) == "True\n"
    assert not (here / "imported").exists()
    (kept,) = (tmp_path / "kept").iterdir()
    told = (kept / "called").read_text()
    halves = {}
    for process, name in map(str.split, told.splitlines()):
        halves.setdefault(process, []).append(name)
    matching, others = sorted(halves.values(), key=lambda names: "levels" in names)
    nothing = ["number_vertices", "Steps", "disk", "Truth", "PredictedMaps"]
    assert matching == [*nothing, "match_all"]
    assert others == ["count_set_bits", "levels", "thinning_changes"]
    (kept / "of_this_folder").mkdir()
    (kept / "of_this_folder" / "matching.x.nbc").touch()
    assert python(script, cwd=here, env=own) == "False\n"
    assert (kept / "called").read_text() == told
