"""From nothing compiled: the command runs, and after its first image nothing is left to compile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
from numba.core import event
from bsdsbench.kernels import never_compiled
from bsdsbench.metrics.boundary import boundary_counts

class Compiled(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
counts = boundary_counts(np.eye(9), [np.eye(9) > 0, np.eye(9) > 0])
print(never_compiled(), counts.matched_pred.tolist())
"""
WARM = "from bsdsbench.kernels import never_compiled, warm\nprint(never_compiled())\n"


@pytest.mark.process
def test_two_processes_compile_all_kernels_and_import_nothing_from_the_current_folder(
    tiny, tmp_path
):
    """Numba's cache in a folder of its own, empty at first; then a command finds it full."""
    (tmp_path / "here" / "bsdsbench").mkdir(parents=True)
    (tmp_path / "here" / "bsdsbench" / "__init__.py").write_text("open('imported', 'w')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "script.py").write_text(WARM + "warm.compile_once()\n")
    root = str(Path(__file__).parents[2])

    def run(*words, **options):
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": root},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run(tmp_path / "elsewhere" / "script.py", cwd=tmp_path / "here") == ["True"]
    assert not (tmp_path / "here" / "imported").exists()
    assert any((tmp_path / "kept").rglob("*.nbc"))
    assert run("-W", "error", "-c", SCRIPT) == [f"False {[9] * 99}"]
    pred, gt = tiny
    few = ("--thresholds", "5", "--workers", "1", "--quiet")
    assert run("-m", "bsdsbench", "evaluate", pred, "--gt", gt, *few)
