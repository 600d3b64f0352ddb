"""The command as a user who may write nowhere but into a folder for results, and has no home."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.process
def test_a_user_without_a_home_and_a_read_only_installation(tiny):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # tmp_path lies where only its owner may go
        base = Path(folder)
        base.chmod(0o755)
        shutil.copytree(ROOT / "bsdsbench", base / "lib" / "bsdsbench", ignore=_compiled)
        for source, name in zip(tiny, ("pred", "gt"), strict=True):
            shutil.copytree(source, base / name)
        own = base / "own"
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        environment = {
            **{"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TMPDIR": str(own)},
            "PYTHONPATH": str(base / "lib"),
        }

        def call(*words):
            return subprocess.run(
                [sys.executable, *words],
                capture_output=True,
                text=True,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                env=environment,
                cwd=own,
            )

        try:
            readable = call("-c", "import numba, click, PIL").returncode == 0
        except PermissionError:
            readable = False
        if not readable:
            pytest.skip("others may not read this Python or its packages")
        words = ["-m", "bsdsbench", "evaluate", str(base / "pred"), "--gt", str(base / "gt")]
        done = call(*words, "--thresholds", "3", "--workers", "2", "-o", str(own / "out"))
        assert done.returncode == 0, done.stderr
        assert "interrupted" not in done.stderr
        assert "Traceback" not in done.stderr
        assert (own / "out" / "result.json").exists()


def _compiled(folder, names):
    return [name for name in names if name == "__pycache__"]
