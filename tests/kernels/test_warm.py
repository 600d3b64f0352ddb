"""After the kernels were compiled in two processes, the first image finds all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import numpy as np
from numba.core import event
from bsdsbench.kernels import never_compiled, warm
from bsdsbench.metrics.boundary import boundary_counts

missing = never_compiled()
warm.compile_once()

class Compiled(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
counts = boundary_counts(np.eye(9), [np.eye(9) > 0, np.eye(9) > 0])
print(missing, never_compiled(), counts.matched_pred.tolist())
"""


def test_nothing_is_left_to_compile(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"True False {[9] * 99}"]


def test_the_second_process_imports_nothing_from_the_current_folder(tmp_path):
    (tmp_path / "bsdsbench").mkdir()
    (tmp_path / "bsdsbench" / "__init__.py").write_text("open('imported', 'w')")
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "script.py"
    script.write_text("from bsdsbench.kernels import warm\nwarm.compile_once()\n")
    root = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": root},
        cwd=tmp_path,
        timeout=300,
        check=True,
    )
    assert not (tmp_path / "imported").exists()
